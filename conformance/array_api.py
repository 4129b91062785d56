"""The test suite of the array API standard, from where the user has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def run(suite: Path, examples: int, plain: bool, jobs: int) -> tuple[dict[str, str], set[str]]:
    """Failures (why, by id), and the tests that passed. plain: of NumPy itself."""
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    environment["ARRAY_API_TESTS_MODULE"] = "numpy" if plain else "np_compile.shim"
    environment["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(Path(__file__).parent.parent), environment.get("PYTHONPATH")])
    )
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [
            *(sys.executable, "-m", "pytest", "array_api_tests", "--max-examples", str(examples)),
            *("-p", "no:cacheprovider", "-q", "--tb=line", "--json-report"),
            *("--json-report-file", str(report), "--hypothesis-derandomize"),
            *(("-n", str(jobs)) if jobs > 1 else ()),
        ]
        done = subprocess.run(command, cwd=suite, env=environment, capture_output=True, text=True)
        if not report.exists():
            raise SystemExit(f"the suite did not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        tests = json.loads(report.read_text(encoding="utf-8"))["tests"]
    failures, passed = {}, set()
    for test in tests:
        if test["outcome"] == "passed":
            passed.add(test["nodeid"])
        elif test["outcome"] in ("failed", "error"):
            stage = test.get("call") or test["setup"]
            failures[test["nodeid"]] = _why(stage.get("crash", {}).get("message", ""))
    return failures, passed


def _why(message: str) -> str:
    first = message.partition("\n")[0]
    if "is not in the shim" in message or "has no attribute" in message:
        return f"name: {first}"
    if "NotSupported" in message:
        return f"option: {first}"
    return f"{'value' if first.startswith('Assert') else 'raises'}: {first}"
