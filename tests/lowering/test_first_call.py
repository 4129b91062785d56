"""What a first call leaves alone: the parts of torch and NumPy that take long to import."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from .. import fresh

ROOT = Path(__file__).parents[2]
HEAVY = ("torch._dynamo", "torch._inductor", "sympy", "numpy.ma")
_MORE = """
def masked(m, mask, x):
    m[mask] = np.arange(m.size)[: mask.sum()]
    m[m < 0] = 2.0
    return m

more = {
    "convolve": lambda x, m: np.convolve(x, x[:3]),
    "correlate": lambda x, m: np.correlate(x, x[:3], "same"),
    "interp": lambda x, m: np.interp(x, m[0], m[1]),
    "digitize": lambda x, m: np.digitize(m, x),
    "histogram": lambda x, m: np.histogram(x, 4)[0],
    "select": lambda x, m: np.select([m > 2, m < 1], [m, -m], 9),
    "isin": lambda x, m: np.isin(m, x),
    "frexp": lambda x, m: np.frexp(m),
    "copy": lambda x, m: np.broadcast_to(x, (3, 4)).copy(),
    "solve": lambda x, m: np.linalg.solve(np.stack([m, m + 1]), m),
    "cross": lambda x, m: np.cross(m[:, :3], x[:3]),
    "broadcast": lambda x, m: np.broadcast_arrays(m, x[:, None])[1],
    "mask": lambda x, m: masked(m + 1.0, m > 2, x),
    "stacks": lambda x, m: np.stack([m, m])[:, None] @ np.stack([m, m]),
}
arrays = np.arange(1.0, 5.0), np.arange(16.0).reshape(4, 4) + 3 * np.eye(4)
more = {k: (f, *arrays) for k, f in more.items()}
"""
_RUN = f"""
import json, sys, warnings
import numpy as np
import np_compile
from tests.lowering.test_record import PROGRAMS

def heavy():
    return {{m for m in {HEAVY} if m in sys.modules}}

{_MORE}
warnings.simplefilter("error")
found = {{"import": heavy()}}
for name, (program, *arrays) in (PROGRAMS | more).items():
    before = heavy()
    np_compile.compile(program, backend=lambda graph, inputs: graph.forward)(*arrays)
    found[name] = heavy() - before
print(json.dumps({{k: sorted(v) for k, v in found.items() if v}}))
"""


def test_imports_of_a_first_call() -> None:
    done = fresh.run(_RUN, cwd=str(ROOT))
    assert done.returncode == 0, done.stderr
    # The shape functions of transforms are torch's own, and bring it, where torch has another
    # library for them.
    want = {} if torch.backends.mkl.is_available() else {"fft": ["sympy"]}
    assert json.loads(done.stdout.splitlines()[-1]) in ({}, want)


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
    done = fresh.run(_SIZES % (HEAVY,), cwd=str(ROOT))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
