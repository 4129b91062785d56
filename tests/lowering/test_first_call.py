"""What a first call leaves alone: the parts of torch and NumPy that take long to import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).parents[2]
HEAVY = ("torch._dynamo", "torch._inductor", "sympy", "numpy.ma")
_RUN = f"""
import json, sys, warnings
import np_compile
from tests.lowering.test_record import PROGRAMS

def heavy():
    return {{m for m in {HEAVY} if m in sys.modules}}

warnings.simplefilter("error")
found = {{"import": heavy()}}
for name, (program, *arrays) in PROGRAMS.items():
    before = heavy()
    np_compile.compile(program, backend=lambda graph, inputs: graph.forward)(*arrays)
    found[name] = heavy() - before
print(json.dumps({{k: sorted(v) for k, v in found.items() if v}}))
"""


def test_imports_of_a_first_call() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _RUN], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # The shape functions of these are torch's own, and bring it: of transforms where torch has
    # another library for them.
    first = "search" if torch.backends.mkl.is_available() else "fft"
    assert json.loads(done.stdout.splitlines()[-1]) in ({}, {first: ["sympy"]})


_SIZES = """
import sys, numpy as np, np_compile
from np_compile import config
from np_compile.runtime import general
config.compile_in = "call"
config.plain = "never"
lower, made = general.lower_for_sizes, []
general.lower_for_sizes = lambda *args: made.append(lower(*args)) or made[-1]
f = np_compile.compile(lambda x: np.sqrt(x) + x.mean() + np.concatenate([x[1:], x[:1]]))
for n in (10, 20, 30):
    f(np.arange(float(n)))
assert len(made) == 1
print([m for m in %r if m in sys.modules])
"""


def test_imports_of_a_program_for_many_sizes() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SIZES % (HEAVY,)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
