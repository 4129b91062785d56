"""The programs of handwritten.c: compiled by gcc, called through ctypes."""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).with_name("handwritten.c")
FLAGS = [
    "-O3",
    "-march=native",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fopenmp",
    "-fopenmp-simd",
    "-mprefer-vector-width=512",
]

_P, _L, _D = ctypes.c_void_p, ctypes.c_long, ctypes.c_double


class NoCompiler(RuntimeError):
    """There is no gcc."""


@functools.cache
def library() -> ctypes.CDLL:
    """The compiled source; NoCompiler without gcc. Load torch before, so that both share OpenMP."""
    gcc = shutil.which("gcc")
    if gcc is None:
        raise NoCompiler("gcc is not on the path")
    with tempfile.TemporaryDirectory() as folder:
        target = f"{folder}/handwritten.so"
        command = [gcc, *FLAGS, "-shared", "-fPIC", str(SOURCE), "-o", target, "-lm"]
        subprocess.run(command, check=True, capture_output=True, text=True)
        return ctypes.CDLL(target)


def _function(name: str, *types: type, returns: type | None = None) -> Callable:
    function = getattr(library(), name)
    function.argtypes = types
    function.restype = returns
    return function


def _sine_chain() -> Callable:
    function = _function("sine_chain", _P, _P, _P, _L)

    def call(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        out = np.empty_like(a)
        function(a.ctypes.data, b.ctypes.data, out.ctypes.data, a.size)
        return out

    return call


def _outer_sum() -> Callable:
    function = _function("outer_sum", _P, _P, _P, _L, _L)

    def call(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        out = np.empty(len(x))
        function(x.ctypes.data, y.ctypes.data, out.ctypes.data, *x.shape)
        return out

    return call


def _heat_2d() -> Callable:
    function = _function("heat_2d", _P, _L, _L, _L)

    def call(u: np.ndarray, steps: int) -> None:
        function(u.ctypes.data, *u.shape, steps)

    return call


def _softmax() -> Callable:
    function = _function("softmax", _P, _P, _L, _L)

    def call(x: np.ndarray) -> np.ndarray:
        out = np.empty_like(x)
        function(x.ctypes.data, out.ctypes.data, *x.shape)
        return out

    return call


def _black_scholes() -> Callable:
    function = _function("black_scholes", _P, _P, _P, _D, _D, _P, _P, _L)

    def call(
        price: np.ndarray, strike: np.ndarray, years: np.ndarray, rate: float, volatility: float
    ) -> np.ndarray:
        out = np.empty((2, price.size))
        function(
            price.ctypes.data, strike.ctypes.data, years.ctypes.data, rate, volatility,
            out[0].ctypes.data, out[1].ctypes.data, price.size,
        )  # fmt: skip
        return out

    return call


def _cholesky() -> Callable:
    function = _function("cholesky", _P, _P, _L)

    def call(a: np.ndarray) -> np.ndarray:
        out = np.empty_like(a)
        function(a.ctypes.data, out.ctypes.data, len(a))
        return out

    return call


def _gauss_seidel() -> Callable:
    function = _function("gauss_seidel", _P, _P, _D, _L, _L, _L)

    def call(u: np.ndarray, f: np.ndarray, h: float, iterations: int) -> None:
        function(u.ctypes.data, f.ctypes.data, h, *u.shape, iterations)

    return call


def _edit_distance() -> Callable:
    function = _function("edit_distance", _P, _P, _L, _L, returns=_L)

    def call(a: np.ndarray, b: np.ndarray) -> int:
        return function(a.ctypes.data, b.ctypes.data, a.size, b.size)

    return call


def _csr_matvec() -> Callable:
    function = _function("csr_matvec", _P, _P, _P, _P, _P, _L)

    def call(start: np.ndarray, column: np.ndarray, value: np.ndarray, x: np.ndarray) -> np.ndarray:
        out = np.empty(start.size - 1)
        function(
            start.ctypes.data, column.ctypes.data, value.ctypes.data, x.ctypes.data,
            out.ctypes.data, out.size,
        )  # fmt: skip
        return out

    return call


def _mandelbrot() -> Callable:
    function = _function("mandelbrot", _D, _D, _D, _D, _L, _L, _L, _P)

    def call(
        left: float, right: float, low: float, high: float, height: int, width: int, limit: int
    ) -> np.ndarray:
        out = np.empty((height, width), np.int32)
        function(left, right, low, high, height, width, limit, out.ctypes.data)
        return out

    return call


def _n_body() -> Callable:
    function = _function("n_body", _P, _P, _P, _D, _L, _L)

    def call(x: np.ndarray, v: np.ndarray, mass: np.ndarray, dt: float, steps: int) -> None:
        function(x.ctypes.data, v.ctypes.data, mass.ctypes.data, dt, mass.size, steps)

    return call


# program -> a function that compiles the C and returns what calls it
MAKERS: dict[str, Callable[[], Callable]] = {
    "sine_chain": _sine_chain,
    "outer_sum": _outer_sum,
    "heat_2d": _heat_2d,
    "softmax": _softmax,
    "black_scholes": _black_scholes,
    "cholesky": _cholesky,
    "gauss_seidel": _gauss_seidel,
    "edit_distance": _edit_distance,
    "csr_matvec": _csr_matvec,
    "mandelbrot_by_element": _mandelbrot,
    "n_body_steps": _n_body,
}
