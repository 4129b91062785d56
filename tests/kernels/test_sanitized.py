"""Kernels under AddressSanitizer and UndefinedBehaviorSanitizer.

The compiler of the kernels is `gcc -fsanitize=...`, in a Python process that has the sanitizer's
runtime loaded first, so that it also guards the memory of NumPy and torch. Each program is compared
with NumPy on the way. `FEW` runs always, everything with `pytest -m sanitize`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ..support import check, data, thorough
from .native_checks import Watched

ROOT = Path(__file__).parents[2]
KINDS = "address,undefined,float-cast-overflow,bounds-strict"
OPTIONS = "-fno-sanitize-recover=all"

Case = tuple[Callable, tuple]


# -- programs ----------------------------------------------------------------------------------


def _in_place_stencil(u: np.ndarray) -> None:
    for _ in range(3):
        u[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])


def _sweep(u: np.ndarray) -> None:
    for _ in range(4):
        u[1:-1] += 0.1 * (u[:-2] - 2 * u[1:-1] + u[2:])


def _stencil_3d(u: np.ndarray, v: np.ndarray) -> None:
    v[1:-1, 1:-1, 1:-1] = (
        u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 2:, 1:-1]
    )
    u[1:-1, 1:-1, 1:-1] = v[1:-1, 1:-1, 2:] - v[1:-1, 1:-1, :-2]


def _periodic(u: np.ndarray) -> np.ndarray:
    return np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 3, 1) + np.roll(u, -1, 1) - 4 * u


def _smooth_chain(u: np.ndarray) -> np.ndarray:
    a = u[:-2] + u[1:-1] + u[2:]
    b = a[:-2] * a[1:-1] * a[2:]
    return b[1:] - b[:-1]


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _layer_norm(x: np.ndarray) -> np.ndarray:
    m = x.mean(axis=1, keepdims=True)
    v = ((x - m) ** 2).mean(axis=1, keepdims=True)
    return (x - m) / np.sqrt(v + 1e-5)


def _scatter(x: np.ndarray, i: np.ndarray, v: np.ndarray) -> np.ndarray:
    x[i] = v
    np.add.at(x, i, 1.0)
    return x[::-1]


def _masked(x: np.ndarray) -> np.ndarray:
    x[x < 0] = 0.0
    x[2:7] *= np.where(x[2:7] > 1, 2.0, 0.5)
    return x


def _mandelbrot(c: np.ndarray) -> np.ndarray:
    z = np.zeros_like(c)
    count = np.zeros(c.shape, np.int32)
    for _ in range(5):
        inside = np.abs(z) < 2
        z = np.where(inside, z * z + c, z)
        count += inside
    return count


def _views(x: np.ndarray) -> tuple:
    y = x[::-2, 1::3].T
    return y + 1, np.diagonal(x) * 2, x.reshape(-1)[5:-5:7] - 1, np.tril(x), np.flip(x, 1)


def _joined(x: np.ndarray, y: np.ndarray) -> tuple:
    return (
        np.concatenate([x, y, x], axis=1) + 1,
        np.stack([x, x * 2], axis=-1),
        np.pad(x, ((2, 0), (1, 3))) * 3,
        np.tile(x, (2, 3)) - 1,
    )


def _with_calls(x: np.ndarray, y: np.ndarray) -> tuple:
    z = np.tanh(x @ y) + 1
    return np.sort(z, axis=0)[::-1] * 2, np.fft.fft(z.sum(axis=1)).real + 1


def _products(x: np.ndarray, y: np.ndarray) -> tuple:
    z = np.tanh(x @ y)
    return z.T @ x, x.T @ x, x[::2].T @ x[1::2], y.reshape(3, -1, y.shape[1]) @ z[:, :31].T


def _moments(x: np.ndarray) -> tuple:
    return x.mean(), x.var(), x.std(axis=0), np.abs(x).max(axis=1), x.min(), (x > 0).any(axis=0)


def _integers(a: np.ndarray, b: np.ndarray) -> tuple:
    return a + b, a - b, a * b, a & b, a | b, a ^ b, ~a, -a, np.abs(a), np.minimum(a, b)


def _divided(a: np.ndarray, b: np.ndarray) -> tuple:
    return a // b, a % b, np.fmod(a, b), np.sign(a)


def _shifted(a: np.ndarray, b: np.ndarray) -> tuple:
    return a << b, a >> b, a**2, a**3


def _casts(x: np.ndarray) -> tuple:
    types = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.bool_, np.float32)
    return tuple(x.astype(t) for t in types)


def _complex(z: np.ndarray, w: np.ndarray) -> tuple:
    return z * w, z / w, np.abs(z), np.exp(z), z.conj() + w.real, (z * w).sum(), np.angle(z)


def _extremes(x: np.ndarray) -> tuple:
    return (
        x.argmin(), x.argmax(), x.argmax(axis=0), x.argmin(axis=1), x.max(), np.nanmin(x),
        np.isnan(x).sum(),
    )  # fmt: skip


def _running(x: np.ndarray) -> tuple:
    return np.cumsum(x, axis=0), np.cumsum(x, axis=1), np.cumprod(x[0]), np.diff(x, axis=1)


def _halves(x: np.ndarray) -> tuple:
    return x * 2 + 1, x.sum(axis=0), x.max(), np.sqrt(np.abs(x)), x.astype(np.float64) / 3


def _histogram(i: np.ndarray, w: np.ndarray) -> tuple:
    return np.bincount(i, w, minlength=12), w[i] * 2, np.take(w, i[:5]), w.take(-1 - i)


def _interpolated(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    low = (x * 31).astype(np.int64)
    return t[low] * (1 - x) + t[low + 1] * x + t[-1 - low]


def _put(x: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    x[i, j] = 5.0
    x[i, 1] += x[j, 2]
    return x[i[:, None], j[None, :]]


def _edges(integer: type) -> tuple:
    info = np.iinfo(integer)
    a = np.array([info.min, info.max, 0, 1, info.min, 7, info.max], integer)
    b = np.array([-1 if info.min else 1, 2, 0, 3, 1, info.max, info.max], integer)
    return a, b


_WILD = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300, 300.5, -1.5, 0.0, 3e9, 1e19] * 3)

PROGRAMS: dict[str, Case] = {
    "chain": (lambda x: np.sin(x) * 2 + np.exp(-x) / (1 + x * x), (data(1003),)),
    "chain_threads": (lambda x: np.sqrt(np.abs(x)) + x, (data(300, 701),)),
    "chain_f32": (lambda x: np.cos(x) * 2 + np.log1p(np.abs(x)), (data(37, 29, dtype="f4"),)),
    "transposed": (lambda x, y: x.T + y * 2, (data(65, 33), data(33, 65))),
    "broadcast": (lambda x, y: x[:, None] * y[None, :] + 1, (data(33), data(19))),
    "where": (lambda x: np.where(x > 0, x, -x * 2), (data(129),)),
    "sum_long": (lambda x: (x * x).sum(), (data(100_003),)),
    "sum_axis0": (lambda x: (x + 1).sum(axis=0), (data(301, 77),)),
    "sum_axis1": (lambda x: (x + 1).sum(axis=1), (data(77, 301),)),
    "sum_short": (lambda x: (x * 2).sum(axis=-1), (data(501, 3),)),
    "sum_middle": (lambda x: x.sum(axis=1), (data(7, 33, 19),)),
    "contraction": (
        lambda x, y: (x[:, :, None] * y[:, None, :]).sum(axis=(-2, -1)),
        (data(64, 17), data(64, 17)),
    ),
    "moments": (_moments, (data(65, 43),)),
    "softmax": (_softmax, (data(65, 43, dtype="f4"),)),
    "layer_norm": (_layer_norm, (data(65, 43),)),
    "extremes": (_extremes, (np.where(data(31, 33) > 1.9, np.nan, data(31, 33)),)),
    "running": (_running, (data(21, 33),)),
    "running_parts": (lambda x: np.cumsum(x) * 2 - x, (data(20_001),)),
    "running_columns": (lambda x: np.cumsum(x, axis=0), (data(17_000, 3),)),
    "columns_of_parts": (lambda x: (x - x.mean(axis=0)) / x.std(axis=0), (data(4111, 13),)),
    "wide_strips": (lambda x: (x.max(axis=0), np.cumsum(x, axis=0)), (data(9, 301),)),
    "running_integers": (lambda x: np.cumsum(x, axis=-1), (data(21, 33, dtype="i4"),)),
    "scatter": (_scatter, (data(50), np.array([3, -1, 7, 3, 49, -50, 0]), data(7))),
    "scatter_parts": (
        lambda x, i, v: np.add.at(x, i, v),
        (data(30), np.arange(40_003) * 7 % 60 - 30, data(40_003)),
    ),
    "indices_in_blocks": (_interpolated, (data(33), np.abs(data(1021)) % 1)),
    "put": (_put, (data(6, 7), np.array([0, -1, 5, 2]), np.array([3, -6, 1, 0]))),
    "histogram": (_histogram, (data(40, dtype="u1").astype(np.int64), data(40))),
    "masked": (_masked, (data(33),)),
    "stencil": (_in_place_stencil, (data(41, 53),)),
    "stencil_rows": (_in_place_stencil, (data(9, 700),)),
    "stencil_large": (_in_place_stencil, (data(500, 400),)),
    "sweep": (_sweep, (data(203),)),
    "sweep_large": (_sweep, (data(60_011),)),
    "stencil_3d": (_stencil_3d, (data(9, 11, 13), data(9, 11, 13))),
    "periodic": (_periodic, (data(33, 45),)),
    "periodic_small": (_periodic, (data(3, 4),)),
    "smooth_chain": (_smooth_chain, (data(205, 31),)),
    "views": (_views, (data(33, 33),)),
    "joined": (_joined, (data(9, 11), data(9, 4))),
    "complex": (_complex, (data(35, dtype="c16"), data(35, dtype="c16", seed=1) + 3)),
    "complex_f32": (_complex, (data(35, dtype="c8"), data(35, dtype="c8", seed=1) + 3)),
    "mandelbrot": (_mandelbrot, (data(19, 23, dtype="c16"),)),
    "halves": (_halves, (data(33, 17, dtype="f2"),)),
    "calls": (_with_calls, (data(17, 9), data(9, 23))),
    "products": (_products, (data(1700, 33), data(33, 31))),
    "casts": (_casts, (_WILD[5:8],)),
    "empty": (lambda x: (x + 1, x.sum(axis=0), np.sin(x).sum()), (data(0, 5),)),
    "single": (lambda x: (x + 1, x.sum(), np.cumsum(x), x[::-1] * 2), (data(1),)),
    **{
        f"{name}_{t.__name__}": (f, _edges(t))
        for t in (np.int8, np.int32, np.int64, np.uint8, np.uint64)
        for name, f in (("integers", _integers), ("divided", _divided))
    },
    **{
        f"shifted_{t.__name__}": (_shifted, (_edges(t)[0], np.array([0, 1, 3, 7, 8, 64, 100], t)))
        for t in (np.int8, np.int32, np.int64, np.uint8, np.uint64)
    },
}

# One of each kind of statement and schedule: what every run of the tests has time for.
FEW = (
    "chain_threads", "sum_long", "sum_axis0", "softmax", "extremes", "running", "running_parts",
    "scatter", "stencil_large", "periodic", "divided_int64", "products",
)  # fmt: skip


def _wild_casts(x: np.ndarray) -> Any:
    return x.astype(np.int32), x.astype(np.int64), x.astype(np.int8), x.astype(np.uint16)


def run(names: Sequence[str]) -> None:
    """Run programs and compare them with NumPy; what the process of a test executes."""
    for name in names:
        print(name, flush=True)
        if name == "wild_casts":  # NumPy's own results are the processor's: only look for faults
            import np_compile

            np_compile.compile(_wild_casts, backend=Watched())(_WILD)
            continue
        f, args = PROGRAMS[name]
        check(f, *args, backend=Watched(), rtol=3e-3 if name == "halves" else None)


# -- tests -------------------------------------------------------------------------------------


def _runtime() -> str:
    """The libraries to load before Python's: the sanitizer's, and that of C++, whose exceptions it
    has to know. Empty if there are none."""
    if sys.platform != "linux" or shutil.which("gcc") is None:
        return ""
    paths = []
    for name in ("libasan.so", "libstdc++.so"):
        done = subprocess.run(
            ["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=False
        )
        paths.append(os.path.realpath(done.stdout.strip()))
    return " ".join(paths) if all(map(os.path.isfile, paths)) else ""


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """Runs Python code in a process whose kernels are sanitized."""
    runtime = _runtime()
    if not runtime:
        pytest.skip("needs gcc with its sanitizers, on Linux")
    folder = tmp_path_factory.mktemp("sanitized")
    environment = os.environ | {
        "CC": f"gcc -fsanitize={KINDS} {OPTIONS}",
        "LD_PRELOAD": runtime,
        # Python and torch keep some memory until the end, and CPython's own checks are not ours.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "NP_COMPILE_CACHE_DIR": str(folder),
        "OMP_NUM_THREADS": "2",
        "PYTHONMALLOC": "malloc",
    }

    def python(code: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )

    return python


def _clean(done: subprocess.CompletedProcess[str]) -> None:
    said = f"{done.stdout[-500:]}\n{done.stderr[:2000]}\n...\n{done.stderr[-2000:]}"
    assert done.returncode == 0, said
    assert "runtime error" not in done.stderr, said
    assert "Sanitizer" not in done.stderr, said


FAULT = "a fault follows"
FAULTS = {
    "heap-buffer-overflow": "int f(int *p) { return p[7]; }",
    "shift exponent": "int f(int *p) { return p[0] << (p[0] + 40); }",
}


def _fault(said: str) -> str:
    """What a process does that is to end in a report with these words."""
    return (
        "import numpy as np, sys\n"
        "from np_compile.kernels import build\n"
        f"f = build.load({FAULTS[said]!r}).f\n"
        f"print({FAULT!r}, file=sys.stderr, flush=True)\n"
        "f(__import__('ctypes').c_void_p(np.ones(7, np.int32).ctypes.data))\n"
    )


@pytest.mark.parametrize("said", thorough(*FAULTS))
def test_a_fault_is_seen(sanitized: Callable, said: str) -> None:
    done = sanitized(_fault(said))
    assert done.returncode != 0
    assert said in done.stderr, done.stderr


def test_a_few_programs_and_a_fault(sanitized: Callable) -> None:
    """One process, as its imports take longer than the programs: no report but of the fault. The
    compiler takes most of the time, half as long where it optimizes less."""
    said = "heap-buffer-overflow"
    programs = (
        "from np_compile.kernels.build import toolchain\n"
        "from tests.support import less_optimized\n"
        "toolchain.FLAGS = less_optimized()\n"
        f"from tests.kernels.test_sanitized import run; run({FEW!r})\n"
    )
    done = sanitized(programs + _fault(said))
    before, mark, report = done.stderr.partition(FAULT)
    assert mark, done.stdout[-500:] + done.stderr
    _clean(subprocess.CompletedProcess(done.args, 0, done.stdout, before))
    assert done.returncode != 0
    assert said in report, report


_ALL = (*PROGRAMS, "wild_casts")


@pytest.mark.sanitize
@pytest.mark.parametrize("start", range(0, len(_ALL), 8))
def test_all_programs(sanitized: Callable, start: int) -> None:
    names = _ALL[start : start + 8]
    _clean(sanitized(f"from tests.kernels.test_sanitized import run; run({names!r})"))
