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


def figures_of(command: Sequence[str]) -> dict[str, Any]:
    """The figures that a command prints last, as JSON."""
    return figures_of_runs(command, 1)[0]


def figures_of_runs(command: Sequence[str], times: int) -> list[dict[str, Any]]:
    """Those of each run of a command, one after the other, with one cache. What it says of how far
    it is, on the standard error, is seen at once."""
    with tempfile.TemporaryDirectory() as cache:
        variables = {**os.environ, "NP_COMPILE_CACHE_DIR": cache}
        runs = [
            subprocess.run(
                command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True, check=True
            )
            for _ in range(times)
        ]
    return [json.loads(run.stdout.splitlines()[-1]) for run in runs]
