"""Loops with independent iterations run on a device: here the host is one (`loops_on_host`)."""

from __future__ import annotations

import _thread
import copy
import threading
from unittest import mock

import numpy as np
import pytest
import torch

import np_compile
from benchmarks.gpu_loops import bilinear, forces, inside, sparse_product
from np_compile import api, tensor_loops
from np_compile.kernels.build.nvrtc import KernelsFailed, NoCuda
from np_compile.reader import offers, offload
from np_compile.reader.reading import MISS, Reading

from ..kernels import cuda_on_host
from ..support import first, observe
from .loops_on_host import HOST, away, device, loops_of
from .support import check_call, whole

pytestmark = pytest.mark.skipif(not cuda_on_host.available(), reason="needs gcc")

R = np.random.default_rng(11)


def reading_of(f):
    """A function that is read, whatever it is called on, and what is known of it."""
    reading = Reading(f)

    def call(*args):
        with whole():
            result = reading.call(args, {})
        assert result is not MISS
        return result

    return call, reading


def compared(f, *args, rtol=0.0, ran=None, turns=(0, 1, 2)):
    """Calls of a function in which its loops run on the device, which give what it gives; `ran` are
    the lines of those that do, counted from the function's first."""
    call, reading = reading_of(f)
    turn = 0

    def fast(*given):
        with away(turn):
            return call(*given)

    for k in turns:
        turn = k
        check_call(fast, f, args, rtol)
    first = f.__code__.co_firstlineno
    lines, why = loops_of(reading)
    assert [line - first for line in lines] == ([1] if ran is None else ran), why
    return reading


# Programs


def mandelbrot(c, out, most):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            z, n = 0j, 0
            while n < most and abs(z) <= 2:
                z = z * z + c[i, j]
                n += 1
            out[i, j] = n


def julia(out, re, im, most):
    h, w = out.shape
    for i in range(h):
        y0 = 3.0 * i / h - 1.5
        for j in range(w):
            x, y = 3.0 * j / w - 1.5, y0
            n = 0
            while x * x + y * y < 4 and n < most:
                x, y = x * x - y * y + re, 2 * x * y + im
                n += 1
            out[i, j] = n


def life(a, b):
    h, w = a.shape
    for i in range(h):
        for j in range(w):
            s = 0
            for di in (-1, 0, 1):
                for dj in (-1, 0, 1):
                    if di or dj:
                        s += a[(i + di) % h, (j + dj) % w]
            b[i, j] = 1 if s == 3 or (s == 2 and a[i, j]) else 0


def ray_march(origin, out):
    h, w = out.shape
    for i in range(h):
        for j in range(w):
            dx, dy, dz = (j - w / 2) / w, (i - h / 2) / h, 1.0
            size = (dx * dx + dy * dy + dz * dz) ** 0.5
            t, steps = 0.0, 0
            while steps < 64:
                x = origin[0] + t * dx / size
                y = origin[1] + t * dy / size
                z = origin[2] + t * dz / size
                d = min((x * x + y * y + z * z) ** 0.5 - 1.0, y + 1.5)
                if d < 1e-3:
                    break
                t += d
                steps += 1
            out[i, j] = t


def spheres(centres, radii, width, height):
    out = np.full((height, width), -1)
    for i in range(height):
        for j in range(width):
            x, y = j / width * 4 - 2, i / height * 4 - 2
            best, hit = np.inf, -1
            for s in range(len(radii)):
                dx, dy = x - centres[s, 0], y - centres[s, 1]
                rest = radii[s] * radii[s] - dx * dx - dy * dy
                if rest > 0:
                    z = centres[s, 2] - np.sqrt(rest)
                    if z < best:
                        best, hit = z, s
            out[i, j] = hit
    return out


def neighbours(points, near, squares):
    n, k = near.shape
    for i in range(n):
        for s in range(k):
            squares[i, s] = np.inf
            near[i, s] = -1
        for j in range(n):
            d = 0.0
            for c in range(points.shape[1]):
                step = points[i, c] - points[j, c]
                d += step * step
            s = k
            while s > 0 and squares[i, s - 1] > d:
                if s < k:
                    squares[i, s] = squares[i, s - 1]
                    near[i, s] = near[i, s - 1]
                s -= 1
            if s < k:
                squares[i, s] = d
                near[i, s] = j


def options(spot, strike, out):
    for i in range(len(spot)):
        u = np.exp(0.2 * np.sqrt(1 / 32))
        p = (np.exp(0.05 / 32) - 1 / u) / (u - 1 / u)
        v = np.empty(33)
        for j in range(33):
            v[j] = max(spot[i] * u ** (2 * j - 32) - strike, 0.0)
        for k in range(32, 0, -1):
            for j in range(k):
                v[j] = np.exp(-0.05 / 32) * (p * v[j + 1] + (1 - p) * v[j])
        out[i] = v[0]


def in_circle(x, y):
    hits = 0
    for i in range(len(x)):
        if x[i] * x[i] + y[i] * y[i] < 1:
            hits += 1
    return hits


def hits_of_image(image, level):
    n = 0
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            if image[i, j] > level:
                n += 1
    return n


def collatz(start, steps):
    for i in range(len(start)):
        n, k = int(start[i]), 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            k += 1
        steps[i] = k


_c = np.linspace(-2, 1, 23)[None, :] + 1j * np.linspace(-1, 1, 37)[:, None]
_ptr = np.concatenate([[0], np.cumsum(R.integers(0, 6, 700))])
_n = int(_ptr[-1])


def swept(x, w):
    """Interchanged: a thread takes some rows through all iterations."""
    for k in range(1, x.shape[1]):
        x[:, k] = 0.5 * x[:, k - 1] + w[:, k]
        x[:, k] *= w[:, 0]


PROGRAMS = [
    (swept, (R.random((803, 9)), R.random((803, 9))), 0, [2]),
    (mandelbrot, (_c, np.zeros(_c.shape, int), 30), 0, [1]),
    (julia, (np.zeros((31, 17), np.int32), -0.4, 0.6, 40), 0, [2]),
    (
        sparse_product,
        (R.random(_n), R.integers(-50, 50, _n), _ptr, R.random(50), np.zeros(700)),
        *(0, [1]),
    ),
    (life, (R.integers(0, 2, (20, 33)).astype(np.uint8), np.zeros((20, 33), np.uint8)), 0, [2]),
    (forces, (R.random((60, 3)), np.zeros((60, 3))), 0, [1]),
    (
        bilinear,
        (R.random((15, 20)), R.random(900) * 16 - 1, R.random(900) * 22 - 1, np.zeros(900)),
        *(0, [2]),
    ),
    (ray_march, (np.array([0.1, 0.2, -4.0]), np.zeros((20, 30))), 1e-12, [2]),
    (spheres, (R.random((5, 3)) * 4 - 2, R.random(5), 40, 30), 0, [2]),
    (inside, (R.random((9, 2)), R.random((500, 2)), np.zeros(500, bool)), 0, [2]),
    (neighbours, (R.random((70, 3)), np.zeros((70, 4), int), np.zeros((70, 4))), 0, [2]),
    (options, (R.random(300) * 100, 50.0, np.zeros(300)), 1e-12, [1]),
    (in_circle, (R.random(4000), R.random(4000)), 0, [2]),
    (hits_of_image, (R.random((40, 50)), 0.3), 0, [2]),
    (collatz, (R.integers(1, 1000, 500), np.zeros(500, np.int16)), 0, [1]),
]
# Of these one in each kind runs each time.
SHOWN = swept, ray_march, options, life, sparse_product, mandelbrot, collatz, hits_of_image


@pytest.mark.parametrize(
    ("f", "args", "rtol", "ran"),
    [
        pytest.param(*p, id=p[0].__name__, marks=[] if p[0] in SHOWN else pytest.mark.thorough)
        for p in PROGRAMS
    ],
)
def test_programs(f, args, rtol, ran):
    compared(f, *args, rtol=rtol, ran=ran)


# Loops that stay on the host


def alignment(a, b, score):
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            same = 2 if a[i - 1] == b[j - 1] else -1
            score[i, j] = max(
                0, score[i - 1, j - 1] + same, score[i - 1, j] - 1, score[i, j - 1] - 1
            )


def histogram(x, bins):
    for i in range(len(x)):
        bins[int(x[i] * 10)] += 1


def random_walks(rng, out):
    for i in range(len(out)):
        s = 0.0
        for _ in range(10):
            s += rng.random()
        out[i] = s


def lists(x, out):
    for i in range(len(x)):
        seen = []
        for j in range(i):
            seen.append(x[j] * 2)  # noqa: PERF401
        out[i] = len(seen)


def large_arrays(x, out):
    for i in range(len(x)):
        held = np.zeros(400)
        for j in range(400):
            held[j] = x[i] * j
        out[i] = held[399]


def in_python(x, out):
    for i in range(len(x)):
        out[i] = np.linalg.norm(x[i] * np.ones((30, 30)), 2)


@pytest.mark.parametrize(
    ("f", "args", "line", "why"),
    [
        (
            *(alignment, (R.integers(0, 4, 30), R.integers(0, 4, 40), np.zeros((31, 41), int))),
            *(1, "an iteration touches what another one writes"),
        ),
        (
            *(histogram, (R.random(200), np.zeros(10, int))),
            *(1, "an iteration touches what another one writes"),
        ),
        (random_walks, (np.random.default_rng(3), np.zeros(50)), 1, "touches"),
        (lists, (R.random(50), np.zeros(50)), 1, "it uses a list, a dict or a set"),
        (large_arrays, (R.random(50), np.zeros(50)), 1, "in memory of their own"),
        (in_python, (R.random(50), np.zeros(50)), 1, "it calls functions in Python"),
    ],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_loops_that_stay(f, args, line, why):
    reading = compared(f, *args, rtol=1e-12, ran=[])
    line += f.__code__.co_firstlineno
    told = [x for x in reading.report() if f"the loop of line {line} runs on the host: " in x]
    assert len(told) == 1
    assert why in told[0]


# Iterations that leave


def divided(x, d, out):
    for i in range(len(x)):
        out[i] = x[i] // d[i]


def gathered(x, index, out):
    for i in range(len(index)):
        out[i] = x[index[i]]
        out[i] += 1


def increased(x, step):
    for i in range(len(x)):
        x[i] = x[i] + step
        x[i] = 1 / (int(x[i]) - 40)


@pytest.mark.parametrize("bad", [0, 17, 499])
def test_an_error_comes_in_its_iteration(bad):
    """What comes before it is done, and nothing after it."""
    index = R.integers(0, 30, 500)
    index[bad] = 30
    reading = compared(gathered, R.random(30), index, np.zeros(500), ran=[])
    assert "an iteration has left it" in str(reading.report())
    x = np.full(500, 7.0)
    x[bad] = 39
    compared(increased, x, 1, ran=[])


def test_what_a_device_has_is_as_before_an_iteration_that_leaves():
    def twice(x, index, y):
        for i in range(len(y)):
            y[i] = i * 2.0
        for i in range(len(y)):
            y[i] += 1
            y[i] += x[index[i]]

    index = R.integers(0, 30, 500)
    index[123] = 30
    compared(twice, R.random(30), index, np.zeros(500))


def test_what_two_loops_do_between():
    """Then a thread has an iteration of the outer one."""

    def counted(x, n, out):
        for i in range(len(n)):
            n[i] += 1
            for j in range(len(x)):
                out[i, j] = x[j] * n[i]

    def halved(x, n, out):
        for i in range(len(n)):
            for j in range(len(x)):
                out[i, j] = x[j] * n[i]
            n[i] //= 2

    def hits(x, n):
        found = 0
        for i in range(len(n)):
            found += 2
            for j in range(len(x)):
                if x[j] > n[i]:
                    found += 1
        return found

    args = R.random(300), R.integers(1, 9, 40)
    for f in (counted, halved):
        reading = compared(f, *args, np.zeros((40, 300)))
        assert "a thread for an iteration" in str(reading.report())
    compared(hits, args[0], args[1] / 10, ran=[2])


def test_after_an_error_the_loop_is_a_devices_again():
    call, reading = reading_of(gathered)
    x, out = R.random(30), np.zeros(500)
    for index, fails in ((np.full(500, 31), True), (np.full(500, 3), False)):
        with away():
            assert (observe(call, (x, index, out), {}).error is not None) == fails
    assert loops_of(reading)[0]
    np.testing.assert_array_equal(out, x[3] + 1)


def test_sums_beyond_64_bits():
    def total(x, start):
        n = start
        for i in range(len(x)):
            n += int(x[i])
        return n

    for start, ran in ((5, [2]), (2**63 - 101, [2]), (2**63 - 99, [])):
        compared(total, np.ones(100, int), start, ran=ran)


# Memory


class Copies:
    """The bytes that go between the host and the device, in an `Offload`."""

    def __init__(self, monkeypatch):
        self.sent = self.fetched = 0
        send, bring = offload.Offload._send, offload.Offload._bring

        def sends(this, m):
            self.sent += 0 if m.away or m.blank else m.size
            send(this, m)

        def brings(this, m):
            self.fetched += m.size
            bring(this, m)

        monkeypatch.setattr(offload.Offload, "_send", sends)
        monkeypatch.setattr(offload.Offload, "_bring", brings)


def heat(u, steps):
    v = np.zeros_like(u)
    n, m = u.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                v[i, j] = u[i, j] + 0.1 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] - 3 * u[i, j])
        u, v = v, u
    return u


def test_what_stays_on_the_device_is_sent_once(monkeypatch):
    copies = Copies(monkeypatch)
    size = 8 * 60 * 70
    for steps, fetched in ((11, 2), (10, 1)):  # the argument, and the result, if it is another one
        copies.sent = copies.fetched = 0
        compared(heat, R.random((60, 70)), steps, ran=[4], turns=(1,))
        assert copies.sent == size  # nobody has written to the other array before
        assert copies.fetched == fetched * size


def from_zeros(x):
    y, z = np.zeros(len(x)), np.empty(len(x))
    for i in range(1, len(x)):
        y[i] = y[i - 1] * 0 + x[i]
    for i in range(len(x)):
        z[i] = y[i] + x[i]
    return y, z


def every_other(x):
    y = np.zeros((len(x), 2))
    for i in range(len(x)):
        if x[i] > 0.5:
            y[i, 0] = y[i, 1] + x[i]
    return y


def first_by_the_host(x):
    y = np.zeros(len(x))
    y[3] = 7
    for i in range(len(x)):
        y[i] += x[i]
    return y


def until_one(x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        y[i] = y[i] + x[i]
        if x[i] > 0.999:
            raise ValueError(i)
    return y


@pytest.mark.parametrize(
    ("f", "ran", "sent"),
    [
        (every_other, [2], 1),
        (first_by_the_host, [3], 2),
        (from_zeros, [4], 3),  # a loop of the host's is before
        (until_one, [2], 1),
    ],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_what_nobody_has_written_is_not_sent(f, ran, sent, monkeypatch):
    copies = Copies(monkeypatch)
    x = R.random(20_000) * 0.998
    compared(f, x, ran=ran, turns=(1,))
    assert copies.sent == sent * x.nbytes
    if f is until_one:
        x[11_111] = 0.9995
        with away():
            for _ in range(2):
                with pytest.raises(ValueError, match="11111"):
                    np_compile.compile(f)(x)


def new_each_time(u, steps):
    for _ in range(steps):
        v = np.empty_like(u)
        for i in range(len(u)):
            for _ in range(1):
                v[i] = u[i] * 2 + u[(i + 1) % len(u)]
        u = v
    return u


def test_arrays_that_come_and_go(monkeypatch):
    held = []
    find = offload.Offload._find

    def finds(this, *args):
        found = find(this, *args)
        held.append(len(this._memories))
        return found

    monkeypatch.setattr(offload.Offload, "_find", finds)
    compared(new_each_time, R.random(3000), 12, ran=[3])
    assert max(held) <= 4


def line_of_heat(u, steps):
    v = u.copy()
    for _ in range(steps):
        for i in range(1, len(u) - 1):
            v[i] = u[i] + 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1])
        u, v = v, u
    return u


def test_a_long_loop_in_another_one(monkeypatch):
    copies = Copies(monkeypatch)
    compared(line_of_heat, R.random(40_000), 5, ran=[1, 3], turns=(1,))
    assert copies.sent == 320_000
    compared(line_of_heat, R.random(400), 5, ran=[])


def host_between(u, out):
    for step in range(3):
        for i in range(len(u)):
            for _ in range(1):
                out[i] = u[i] + step
        out[0] = out[-1] * 2
        u[3] = out[5]
    return out.sum()


def ones_first(x):
    y = np.ones(len(x))
    z = x[1:] + x[:-1]
    for i in range(len(z)):
        y[i] += z[i]
    return y, z


def two_loops(x, y):
    n = len(x)
    z = np.zeros(n)
    for i in range(n):
        z[i] = x[i] * 2
    for i in range(n):
        y[n - 1 - i] = z[i] + x[i]
    for i in range(1, n):
        y[i] += y[i - 1]
    for i in range(n):
        z[i] += y[i]
    return z


def last_names(x, y):
    t = -1.0
    for i in range(len(x)):
        t = x[i] * 2
        y[i] = t + 1
    return i, t


def small_table(x, out):
    w = np.array([0.25, 0.5, 0.25])
    for i in range(1, len(x) - 1):
        s = 0.0
        for k in range(3):
            s += w[k] * x[i + k - 1]
        out[i] = s


def result_is_a_view(x):
    y = np.zeros((len(x), 3))
    for i in range(len(x)):
        for k in range(3):
            y[i, k] = x[i] * k
    return y[1:, ::2], y.T


def numpy_between(x, y):
    for i in range(len(x)):
        y[i] = x[i] * 2
    s = np.linalg.norm(y, 3)
    for i in range(len(x)):
        y[i] /= s
    return s


@pytest.mark.parametrize(
    ("f", "args", "ran"),
    [
        (host_between, (R.random(400), np.zeros(400)), [2]),
        (ones_first, (R.random(3000),), [3]),
        (two_loops, (R.random(3000), np.zeros(3000)), [3, 5, 9]),
        (last_names, (R.random(400), np.zeros(400)), [2]),
        (small_table, (R.random(400), np.zeros(400)), [2]),
        (result_is_a_view, (R.random(2000),), [2]),
        (new_each_time, (R.random(20), 3), [3]),
        (numpy_between, (R.random(2000), np.zeros(2000)), [1, 4]),
    ],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_what_the_host_does_between(f, args, ran):
    compared(f, *args, ran=ran)


def scaled(x, out):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * 2 + i


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[:, :39:3],
        lambda a: a[::-1],
        lambda a: a[:, ::-2],
        lambda a: a.T,
        lambda a: a[3:7, 2:],
        lambda a: a[:0],
    ],
)
def test_views(view):
    """What lies between the elements of an array that is written stays as the caller has it."""
    x, a = R.random((30, 40)), R.random((30, 40))
    want, got = a.copy(), a.copy()
    scaled(view(x), view(want))
    call, reading = reading_of(scaled)
    with away(1):
        call(view(x), view(got))
    np.testing.assert_array_equal(got, want)
    # Of an array that is written, two indices might lead to one element but for an order of axes.
    ordered = list(view(a).strides) == sorted(view(a).strides, reverse=True)
    ordered = ordered and min(view(a).strides) > 0
    assert bool(loops_of(reading)[0]) == (ordered and view(a).size > 0)


def test_an_array_far_apart_is_not_sent():
    def doubled(x):
        for i in range(len(x)):
            x[i] *= 2

    x = np.ones((2000, 300))
    call, reading = reading_of(doubled)
    with away():
        call(x[:, 7])
    assert (x[:, 7] == 2).all()
    assert x.sum() == 602000
    assert not loops_of(reading)[0]


DTYPES = ["bool", "int8", "uint16", "int32", "uint32", "int64", "uint64", "float32", "complex64"]


@pytest.mark.parametrize("dtype", first(DTYPES, "bool", "int8", "uint64", "float32", "complex64"))
def test_dtypes(dtype):
    def mixed(x, y):
        for i in range(len(x)):
            y[i] = x[i] if x[i] != x[0] else y[i]
            if i % 3 == 0:
                y[i] = x[i] * x[1]

    x = (R.random(300) * 100).astype(dtype)
    compared(mixed, x, x[::-1].copy())


def test_overflowing_integers_wrap_as_on_the_host():
    def powers(x, n, out):
        for i in range(len(x)):
            k = int(x[i])
            out[i] = (k**n) % 1000003 + (k << 3) - k * k

    compared(powers, R.integers(0, 1000, 200), 5, np.zeros(200, int))
    compared(powers, R.integers(2**20, 2**21, 200), 4, np.zeros(200, int), ran=[])


def test_rows_in_variables_and_powers_ahead():
    def pulls(x, m, a):
        for i in range(len(x)):
            for j in range(len(m)):
                d = x[j] - x[i]
                a[i] += m[j] * d * (d[0] * d[0] + d[1] * d[1] + 0.5) ** -1.5

    x, m = R.standard_normal((50, 2)), R.standard_normal(50)
    compared(pulls, x, m, np.zeros((50, 2)))
    compared(pulls, x, np.append(m, 1), np.zeros((50, 2)), ran=[])


# What is worth it


def test_short_loops_stay_on_the_host():
    call, reading = reading_of(in_circle)
    with device(always=False), offload.on(HOST, torch.Tensor.copy_):
        call(R.random(40), R.random(40))
    ran, why = loops_of(reading)
    assert not ran
    assert [*why.values()] == ["there is too little to do for a device"]


def test_a_long_loop_goes_to_the_device_once_it_is_worth_a_compile(monkeypatch):
    monkeypatch.setattr(offload, "FASTER", 1e9)
    monkeypatch.setattr(offload, "SLOWER", 0)
    call, reading = reading_of(collatz)
    args = R.integers(1, 10**6, 20000), np.zeros(20000, int)
    call(*args)
    for gain, ran in ((1e9, False), (0, True)):
        monkeypatch.setattr(offload, "COMPILE", gain)
        beside = np_compile.config.patch(compile_in="background")
        with beside, device(always=False), offload.on(HOST, torch.Tensor.copy_):
            reading.call(args, {})
        assert bool(loops_of(reading)[0]) == ran
        want = np.zeros(20000, int)
        collatz(args[0][:50], want)
        np.testing.assert_array_equal(args[1][:50], want[:50])


def test_what_cannot_be_compiled_stays():
    def fails(*_):
        raise KernelsFailed("NVRTC: no\nmore")

    call, reading = reading_of(in_circle)
    x, y = R.random(300), R.random(300)
    with away(), mock.patch.object(offers, "Modules", fails):
        assert call(x, y) == in_circle(x, y)
    assert [*loops_of(reading)[1].values()] == ["NVRTC: no"]

    def none(_):
        raise NoCuda("CuPy is not installed")

    call, reading = reading_of(in_circle)
    with away(), mock.patch.object(offload, "machine_of", none):
        assert call(x, y) == in_circle(x, y)
    assert [*loops_of(reading)[1].values()] == ["CuPy is not installed"]


def test_without_a_device_nothing_is_asked():
    call, reading = reading_of(in_circle)
    x, y = R.random(300), R.random(300)
    assert call(x, y) == in_circle(x, y)
    assert loops_of(reading) == ([], {2 + in_circle.__code__.co_firstlineno: ""})
    assert "runs on" not in str(reading.report())


# Both ways in


@pytest.fixture
def elsewhere(monkeypatch):
    """The host is a device that the host does not reach."""

    def place(args, kwargs, tensors):
        return torch.device("cpu") if tensors or api._context_depth() else None

    monkeypatch.setattr(api, "_device", place)
    monkeypatch.setattr(tensor_loops, "is_away", lambda device: True)
    with device(2), whole():
        yield


@pytest.mark.parametrize(
    ("f", "args", "rtol", "ran"), [pytest.param(*p, id=p[0].__name__) for p in PROGRAMS]
)
def test_arrays_and_tensors(f, args, rtol, ran, elsewhere):
    fast = np_compile.compile(f)
    with torch.device("cpu"):
        check_call(fast, f, args, rtol)
    assert loops_of(fast)[0]
    fast = np_compile.compile(np_compile.wrap_numpy(f))
    mine = copy.deepcopy(args)
    given = [torch.from_numpy(x.copy()) if isinstance(x, np.ndarray) else x for x in args]
    want, got = f(*mine), fast(*given)
    assert loops_of(fast._reading._away)[0]
    for a, b in zip((want, *mine), (got, *given), strict=True):
        assert isinstance(b, torch.Tensor) == isinstance(a, np.ndarray)
        if a is not None or b is not None:
            np.testing.assert_allclose(b, a, rtol=rtol)


def test_tensors_stay_where_they_are(elsewhere, monkeypatch):
    """Nothing is copied to the host, nor a result sent back; autograd knows what is written."""

    def f(x, y):
        out = np.zeros(len(x))
        for i in range(len(x)):
            out[i] = x[i] * 2
            y[i] += out[i]
        return out, out[::2]

    copies = Copies(monkeypatch)
    fast = np_compile.compile(np_compile.wrap_numpy(f))
    x, y = torch.rand(3000, dtype=torch.float64), torch.zeros(3000, dtype=torch.float64)
    version = x._version, y._version
    out, part = fast(x, y)
    assert torch.equal(out, x * 2)
    assert torch.equal(y, x * 2)
    assert out.data_ptr() == part.data_ptr()
    assert x._version == version[0]
    assert y._version > version[1]
    assert copies.fetched == 0
    assert copies.sent == 0  # nobody has written to the zeros before
    assert fast(x, y)[0] is not out


def test_tensors_that_are_read_are_not_written(elsewhere):
    """Also where the host has their values in between."""

    def f(x, y):
        for i in range(len(x)):
            y[i] = x[i] * 2
        y[0] = x[1]
        for i in range(len(x)):
            y[i] += x[i]

    fast = np_compile.compile(np_compile.wrap_numpy(f))
    x, y = torch.rand(500, dtype=torch.float64), torch.zeros(500, dtype=torch.float64)
    for _ in range(2):
        version = x._version, y._version
        fast(x, y)
        assert x._version == version[0]
        assert y._version > version[1]
        assert torch.equal(y[1:], (x * 2 + x)[1:])
        assert y[0] == x[1] + x[0]
    assert len(loops_of(fast._reading._away)[0]) == 2


def test_tensors_after_an_error(elsewhere):
    fast = np_compile.compile(np_compile.wrap_numpy(gathered))
    x, out = torch.rand(30), torch.zeros(500)
    index = torch.randint(0, 30, (500,))
    index[200] = 30
    with pytest.raises(IndexError):
        fast(x, index, out)
    assert torch.equal(out[:200], x[index[:200]] + 1)
    assert not out[200:].any()


def test_python_between_the_loops(elsewhere):
    """Values are on the host while Python runs, and what it changes is seen by the device."""
    seen = []

    def note(x):
        seen.append(float(x.sum()))
        x[0] = -1

    def f(x, y):
        for i in range(len(x)):
            y[i] = x[i] * 2
        note(y)
        for i in range(len(x)):
            x[i] = y[i] + 1
        return x

    x = R.random(500)
    fast = np_compile.compile(f)
    for _ in range(2):
        seen.clear()
        mine, y = x.copy(), np.zeros(500)
        with torch.device("cpu"):
            got = fast(mine, y)
        assert seen == [float((x * 2).sum())]
        assert got is mine
        np.testing.assert_array_equal(y[1:], x[1:] * 2)
        np.testing.assert_array_equal(got, np.concatenate([[0], x[1:] * 2 + 1]))


def test_inspect_shows_the_kernels_that_ran(elsewhere):
    fast = np_compile.compile(in_circle)
    args = R.random(400), R.random(400)
    assert all("__global__" not in s.output for s in np_compile.inspect(fast)(*args))
    with torch.device("cpu"):
        texts = [s.output for s in np_compile.inspect(fast)(*args)]
    assert any("__global__" in x and "/* hits += 1 */" in x for x in texts)


def test_explain(elsewhere):
    fast = np_compile.compile(mandelbrot)
    with torch.device("cpu"):
        text = str(np_compile.explain(fast)(_c, np.zeros(_c.shape, int), 30))
    line = mandelbrot.__code__.co_firstlineno + 1
    assert f"the loop of line {line} runs on the device: a thread for the iterations of two" in text


# On a device


@pytest.fixture
def cuda(monkeypatch):
    """Loops go to the device whenever they can."""
    monkeypatch.setattr(offload, "ALWAYS", True)
    with whole():
        yield


def on_cuda(f, *args):
    """What a function of arrays leaves and gives, for tensors of the device."""
    fast = np_compile.compile(np_compile.wrap_numpy(f))
    given = [torch.from_numpy(x.copy()).cuda() if isinstance(x, np.ndarray) else x for x in args]
    result = fast(*given)
    return fast, [x.cpu().numpy() if isinstance(x, torch.Tensor) else x for x in (result, *given)]


@pytest.mark.cuda
@pytest.mark.parametrize(
    ("f", "args", "rtol", "ran"), [pytest.param(*p, id=p[0].__name__) for p in PROGRAMS]
)
def test_programs_on_cuda(f, args, rtol, ran, cuda):
    """Of elementary functions the last bits are CUDA's."""
    fast = np_compile.compile(f)
    with torch.device("cuda"):
        check_call(fast, f, args, rtol)
    lines, why = loops_of(fast)
    assert [line - f.__code__.co_firstlineno for line in lines] == ran, why
    mine = copy.deepcopy(args)
    want = f(*mine)
    fast, got = on_cuda(f, *args)
    assert loops_of(fast._reading._away)[0] == lines
    for a, b in zip((want, *mine), got, strict=True):
        if a is not None or b is not None:
            np.testing.assert_allclose(b, a, rtol=rtol)


@pytest.mark.cuda
@pytest.mark.parametrize(
    ("f", "args"),
    [
        (heat, (R.random((60, 70)), 11)),
        (new_each_time, (R.random(3000), 12)),
        (host_between, (R.random(400), np.zeros(400))),
        (ones_first, (R.random(3000),)),
        (two_loops, (R.random(3000), np.zeros(3000))),
        (last_names, (R.random(400), np.zeros(400))),
        (small_table, (R.random(400), np.zeros(400))),
        (result_is_a_view, (R.random(2000),)),
        (gathered, (R.random(30), np.full(500, 31), np.zeros(500))),
        (increased, (np.arange(500.0), 1)),
    ],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_memory_on_cuda(f, args, cuda):
    fast = np_compile.compile(f)
    for _ in range(2):
        with torch.device("cuda"):
            check_call(fast, f, args, 0)


@pytest.mark.cuda
def test_streams_on_cuda(cuda):
    """Kernels run on torch's current stream, behind what makes their arguments."""
    fast = np_compile.compile(np_compile.wrap_numpy(collatz))
    start = torch.arange(1, 200_001, device="cuda")
    want = torch.zeros_like(start)
    fast(start, want)
    other = torch.cuda.Stream()
    with torch.cuda.stream(other):
        for _ in range(3):
            torch.cuda._sleep(20_000_000)
            mine = start.flip(0)
            got = torch.zeros_like(mine)
            fast(mine, got)
            assert torch.equal(got.flip(0), want)


@pytest.mark.cuda
def test_a_signal_ends_a_kernel(cuda):
    def spins(x, n):
        for i in range(len(x)):
            k = 0
            while k < n:
                k += 1 if x[i] < 1 else 2
            x[i] = k

    fast = np_compile.compile(np_compile.wrap_numpy(spins))
    x = torch.zeros(1000, device="cuda", dtype=torch.float64)
    fast(x, 10)
    assert (x == 10).all()
    x.zero_()
    threading.Timer(3, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        fast(x, 1 << 60)
    assert not x.any()
    fast(x, 7)
    assert (x == 7).all()


@pytest.mark.cuda
def test_cupy_arrays_on_cuda(cuda):
    cupy = pytest.importorskip("cupy")
    fast = np_compile.compile(sparse_product)
    args = next(args for f, args, *_ in PROGRAMS if f is sparse_product)
    given = [cupy.asarray(x) for x in args]
    fast(*given)
    mine = copy.deepcopy(args)
    sparse_product(*mine)
    np.testing.assert_array_equal(given[-1].get(), mine[-1])
