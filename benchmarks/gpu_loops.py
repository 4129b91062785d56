"""Functions that go by elements on a CUDA device, a thread an iteration, against all threads of the
host: NumPy's arrays under `torch.device("cuda")`, which are sent and come back, and tensors.

python -m benchmarks.gpu_loops

A ratio above 1: the device is the faster one.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

import np_compile

from .gpu_programs import milliseconds

_LIMIT = 120.0  # seconds for the calls of one program one way
_RNG = np.random.default_rng(0)


def mandelbrot(out, most):
    h, w = out.shape
    for i in range(h):
        for j in range(w):
            re, im = 3.0 * j / w - 2.0, 2.0 * i / h - 1.0
            x = y = 0.0
            n = 0
            while n < most and x * x + y * y <= 4:
                x, y = x * x - y * y + re, 2 * x * y + im
                n += 1
            out[i, j] = n


def sparse_product(data, indices, ptr, x, y):
    for i in range(len(y)):
        s = 0.0
        for k in range(ptr[i], ptr[i + 1]):
            s += data[k] * x[indices[k]]
        y[i] = s


def life(a, b, steps):
    h, w = a.shape
    for _ in range(steps):
        for i in range(h):
            for j in range(w):
                s = 0
                for di in (-1, 0, 1):
                    for dj in (-1, 0, 1):
                        if di or dj:
                            s += a[(i + di) % h, (j + dj) % w]
                b[i, j] = 1 if s == 3 or (s == 2 and a[i, j]) else 0
        a, b = b, a


def forces(p, f):
    for i in range(len(p)):
        fx = fy = fz = 0.0
        for j in range(len(p)):
            dx, dy, dz = p[j, 0] - p[i, 0], p[j, 1] - p[i, 1], p[j, 2] - p[i, 2]
            r = dx * dx + dy * dy + dz * dz + 0.01
            s = 1 / (r * np.sqrt(r))
            fx += dx * s
            fy += dy * s
            fz += dz * s
        f[i, 0], f[i, 1], f[i, 2] = fx, fy, fz


def bilinear(image, ys, xs, out):
    h, w = image.shape
    for k in range(len(ys)):
        y, x = ys[k], xs[k]
        i, j = int(y), int(x)
        if i < 0 or j < 0 or i >= h - 1 or j >= w - 1:
            out[k] = np.nan
            continue
        a, b = y - i, x - j
        top = image[i, j] * (1 - b) + image[i, j + 1] * b
        low = image[i + 1, j] * (1 - b) + image[i + 1, j + 1] * b
        out[k] = top * (1 - a) + low * a


def inside(polygon, points, out):
    n = len(polygon)
    for k in range(len(points)):
        x, y = points[k, 0], points[k, 1]
        odd = False
        j = n - 1
        for i in range(n):
            if (polygon[i, 1] > y) != (polygon[j, 1] > y) and x < (
                polygon[j, 0] - polygon[i, 0]
            ) * (y - polygon[i, 1]) / (polygon[j, 1] - polygon[i, 1]) + polygon[i, 0]:
                odd = not odd
            j = i
        out[k] = odd


def nearest(points, queries, out):
    for i in range(len(queries)):
        best, at = np.inf, -1
        for j in range(len(points)):
            d = 0.0
            for c in range(3):
                d += (queries[i, c] - points[j, c]) ** 2
            if d < best:
                best, at = d, j
        out[i] = at


def options(spot, strike, out):
    for i in range(len(spot)):
        u = np.exp(0.2 * np.sqrt(1 / 100))
        p = (np.exp(0.05 / 100) - 1 / u) / (u - 1 / u)
        v = np.empty(101)
        for j in range(101):
            v[j] = max(spot[i] * u ** (2 * j - 100) - strike, 0.0)
        for k in range(100, 0, -1):
            for j in range(k):
                v[j] = np.exp(-0.05 / 100) * (p * v[j + 1] + (1 - p) * v[j])
        out[i] = v[0]


def _sparse(n: int) -> tuple:
    ptr = np.concatenate([[0], np.cumsum(_RNG.integers(0, 32, n))])
    count = int(ptr[-1])
    return _RNG.random(count), _RNG.integers(0, n, count), ptr, _RNG.random(n), np.zeros(n)


def programs() -> list[tuple[Callable, tuple]]:
    """The functions and their arguments."""
    return [
        (mandelbrot, (np.zeros((1024, 1024), np.int32), 500)),
        (sparse_product, _sparse(1_000_000)),
        (life, (_RNG.integers(0, 2, (1024, 1024), np.uint8), np.zeros((1024, 1024), np.uint8), 20)),
        (forces, (_RNG.random((8192, 3)), np.zeros((8192, 3)))),
        (
            bilinear,
            (
                _RNG.random((2048, 2048)),
                *(_RNG.random(4_000_000) * 2048 for _ in range(2)),
                np.zeros(4_000_000),
            ),
        ),
        (inside, (_RNG.random((100, 2)), _RNG.random((1_000_000, 2)), np.zeros(1_000_000, bool))),
        (nearest, (_RNG.random((2000, 3)), _RNG.random((20_000, 3)), np.zeros(20_000, int))),
        (options, (_RNG.random(20_000) * 100, 50.0, np.zeros(20_000))),
    ]


def _copies(args: tuple, on_device: bool) -> list:
    made = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    if on_device:
        made = [torch.from_numpy(a).cuda() if isinstance(a, np.ndarray) else a for a in made]
    return made


def _under_cuda(fast: Callable, *args: Any) -> None:
    with torch.device("cuda"):
        fast(*args)


def _differences(f: Callable, args: tuple, ways: dict[str, tuple[Callable, bool]]) -> list[str]:
    """Which ways leave other arguments than the host."""
    want = _copies(args, False)
    np_compile.compile(f)(*want)
    found = []
    for name, (call, on_device) in ways.items():
        got = _copies(args, on_device)
        call(*got)
        arrays = [x.cpu().numpy() if isinstance(x, torch.Tensor) else x for x in got]
        pairs = [(a, b) for a, b in zip(want, arrays, strict=True) if isinstance(a, np.ndarray)]
        if not all(np.allclose(a, b, 1e-12, 0, equal_nan=True) for a, b in pairs):
            found.append(name)
    return found


def main() -> None:
    np_compile.config.compile_in = "call"
    print("program".ljust(18) + "".join(x.rjust(12) for x in ("host ms", "arrays", "tensors"))
          + "".join(x.rjust(14) for x in ("host/arrays", "host/tensors")))  # fmt: skip
    ratios: list[tuple[float, float]] = []
    for f, args in programs():
        on_host, on_arrays = np_compile.compile(f), np_compile.compile(f)
        on_tensors = np_compile.compile(np_compile.wrap_numpy(f))
        ways = {"arrays": (partial(_under_cuda, on_arrays), False), "tensors": (on_tensors, True)}
        host = milliseconds(partial(on_host, *_copies(args, False)), _LIMIT)
        times = [
            milliseconds(partial(call, *_copies(args, d)), _LIMIT) for call, d in ways.values()
        ]
        ratios.append((host / times[0], host / times[1]))
        print(f"{f.__name__:18}{host:12.3f}{times[0]:12.3f}{times[1]:12.3f}"
              + "".join(f"{x:14.2f}" for x in ratios[-1]), flush=True)  # fmt: skip
        for name in _differences(f, args, ways):
            print(f"    {name} give other results than the host")
        for fast in (on_arrays, on_tensors):
            for line in fast._reading.report():
                if "runs on the host" in line:
                    print(f"    {line.strip()}")
    means = [math.exp(statistics.fmean(map(math.log, x))) for x in zip(*ratios, strict=True)]
    print(f"in the geometric mean: arrays {means[0]:.2f}, tensors {means[1]:.2f}")


if __name__ == "__main__":
    main()
