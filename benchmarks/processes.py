"""Measurements in processes of their own, whose kernel cache is empty at first."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def figures_of(command: Sequence[str], times: int = 1) -> dict[str, Any]:
    """The figures that a command prints last, as JSON, when it has run so often with one cache."""
    with tempfile.TemporaryDirectory() as cache:
        variables = {**os.environ, "NP_COMPILE_CACHE_DIR": cache}
        for _ in range(times):
            done = subprocess.run(
                command, cwd=ROOT, env=variables, capture_output=True, text=True, check=True
            )
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures
