"""Functions of NumPy's that compiled code calls by itself: their arguments, results and errors; and
sums of arrays over comprehensions."""

from __future__ import annotations

import gc
import signal
import sys

import numpy as np
import pytest

import np_compile

from .support import case, check, check_call, each, exact, refusals, whole

RNG = np.random.default_rng(7)


def many_functions(x, m, n, z):
    out = []
    s = 0.0
    b = x * 2.0
    h = x[::2] * 1.5
    for k in range(n):
        b[k] += 1
        u, c = np.unique(np.round(b), return_counts=True)
        s += u[0] + c.sum()
        q = np.percentile(b, (25.0, 75.0))
        s += q[1] - q[0]
        out.append(float(np.linalg.norm(np.fft.fft(b[::-1]).imag)))
        w, v = np.linalg.eigh(m * (k + 1))
        s += w[0] + abs(v[0, 0])
        s += np.linalg.slogdet(m)[1]
        t = np.convolve(h, b[1:4], mode="same")
        s += t.sum()
        s += np.polyval(np.polyfit(x, b, 2), 0.5)
        e = np.einsum("ij,j->i", m, b[: m.shape[0]])
        s += e[0] + np.interp(0.3, x, b)
        y = np.tile(h, 2).reshape(2, -1)
        s += y[1, 0]
        z2 = np.fft.ifft(np.fft.fft(x) * z)
        s += z2.real[0]
        s += np.searchsorted(x, np.float64(0.5) + k * 0.01)
        s += np.bincount(np.array([1, 2, k])).sum()
    return s, out, b


def single_complex(w, n):
    """NumPy's single precision is no complex number of Python's."""
    found = []
    for k in range(n):
        found.append(np.minimum.reduce(w * np.float32(k)))
        found.append(np.minimum.reduce(w))
        found.append(np.prod(w, dtype=np.complex64))
    return found


def with_dtypes(x, n):
    found = []
    for k in range(n):
        try:
            found.append(np.logical_and.reduce(x[k:], dtype="i2"))
        except TypeError:
            found.append(np.logical_or.reduce(x, dtype=bool))
        found += [np.multiply.reduce(x, dtype="?"), np.add.reduce(x[1:], dtype=bool)]
    return found


def kinds_of_arguments(x, f, i, b, c, n):
    total = 0.0
    for k in range(n):
        total += np.interp(np.float32(f), x, x)
        total += np.sum(np.full(3, np.int16(i)))
        total += np.sum(np.full(3, b)) + np.sum(np.full(2, np.bool_(b)))
        total += np.abs(np.sum(np.full(2, c))) + np.abs(np.sum(np.full(2, np.complex64(c))))
        total += np.sum(np.full(2, np.complex128(c)).real)
        total += np.sum(np.full((2, k), np.uint8(7)))
        total += np.trapezoid(x, dx=0.5) + np.trapezoid(np.arange(4, dtype=np.float32))
    return total


def layouts(x, n):
    """Arguments that are views of others' memory and of C's own, of one element and of none."""
    own = x * 3.0
    total = 0.0
    for k in range(n):
        for a in (x, own):
            total += np.median(a[::-1, k]) + np.percentile(a.T[k:], 30.0)
            total += np.percentile(a[1:, 1::2], 60.0) + np.percentile(a[k : k + 1, :1], 50.0)
            total += np.histogram(a[:0], bins=2, range=(0.0, 1.0))[0].sum()
            total += np.vdot(a[::2], a[::2]) + np.vdot(a[:, 0], a[:, 1])
        own[k, 0] += 0.5
    return total, own


def results_outlive_the_call(x, n):
    kept = np.sort(x)[::-1] * 1.0
    last = np.fft.rfft(x)
    for k in range(n):
        last = np.fft.rfft(x + k)
        part = np.partition(x + k, 2)
        kept = np.convolve(kept, part[:3], mode="same")
    return kept, last


def of_other_dtypes(x, n):
    total = 0
    for k in range(n):
        a = np.sort(x - x[k])
        total += int(a[-1]) + int(np.partition(x, 1)[1])
        total += int(np.unique(x[k:]).size)
    return total


def searched(x, n):
    found = 0
    for k in range(n):
        found += np.searchsorted(np.sort(x), k)
    return found


CASES = [
    case(many_functions, (np.linspace(0, 1, 16), np.eye(9) + 0.1, 12, 1j), rtol=1e-9),
    exact(single_complex, (np.array(1.5 - 2j, "c8"), 3)),
    exact(with_dtypes, (np.arange(3, dtype="u2"), 3)),
    exact(kinds_of_arguments, (np.linspace(0, 1, 9), 0.3, -4, True, 1.5 - 2j, 4)),
    case(layouts, (RNG.random((6, 8)), 4), (np.asfortranarray(RNG.random((5, 5))), 3), rtol=1e-12),
    case(results_outlive_the_call, (RNG.random(12), 5), (RNG.random(3000), 3), rtol=1e-12),
    *(exact(of_other_dtypes, (np.arange(9).astype(t)[::-1].copy(), 5)) for t in ("i1", "u2", "i8")),
    exact(searched, (RNG.random(9) * 5, 5)),
]


@each(CASES)
def test_arguments_and_results(c):
    """None of these goes by way of Python."""
    assert check(c)._reading.called == 0


def inverses(x, n):
    y = np.zeros(3)
    for k in range(n):
        y[k % 3] = np.linalg.inv(x - k * np.eye(2))[0, 0]
    return y


def bad_percentile(x, q):
    total = 0.0
    for k in range(5):
        x[k] = -1.0
        total += np.percentile(x, q * k)
    return total


def test_errors_come_in_their_iteration():
    a = np.diag([5.0, 5.0])
    check(exact(inverses, (a, 5), (a, 9), (a, 3)))
    check(exact(bad_percentile, (np.arange(6.0), 40.0), (np.arange(6.0), 10.0)))


def test_memory_is_given_back():
    x = RNG.random(40)
    fast = check(exact(layouts_of_lines, (x, 30)))
    counts = []
    for _ in range(3):
        gc.collect()
        counts.append(sys.getrefcount(x))
        fast(x, 200)
    assert counts[0] == counts[2]


def layouts_of_lines(x, n):
    own = x + 1.0
    total = 0.0
    for k in range(n):
        total += np.percentile(x, 20.0) + np.percentile(own[k % 7 :], 20.0)
        u, c = np.unique(np.round(own * 3), return_counts=True)
        total += u[0] * c[0]
    return total


def rises(x, n):
    total = 0.0
    for _ in range(n):
        total += np.percentile(x, 50.0)
    return total


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_a_signals_handler_raises_amid_calls():
    fast = check(exact(rises, (np.arange(5.0), 3)))

    class Stop(Exception):
        pass

    def handler(*_):
        raise Stop

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Stop):
            fast(np.arange(5.0), 10**9)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def scaled(x, a, n):
    made = []
    for k in range(n):
        x[k] = k
        made.append((np.dot(x, a), np.dot(2, x), np.dot(x, 0.5)))
    return made


@pytest.mark.parametrize("dtype", ["f4", "i4", "u1", "c8", "f8"])
def test_products_with_pythons_numbers_have_a_dtype_of_their_own(dtype):
    check(exact(scaled, *((np.ones(5, dtype), a, 2) for a in (0.5, 3, 1j, np.float32(2)))))


# Sums of arrays


def neighbours(a, n):
    counts = []
    for _ in range(n):
        nb = sum(
            np.roll(np.roll(a, i, 0), j, 1)
            for i in (-1, 0, 1)
            for j in (-1, 0, 1)
            if (i, j) != (0, 0)
        )
        a = ((nb == 3) | ((a == 1) & (nb == 2))).astype(np.uint8)
        counts.append(a.sum())
    return a, counts


def windows(x, k, n):
    for _ in range(n):
        p = np.concatenate((x[:1], x, x[-1:]))
        x = sum(k[i] * p[i : i + len(x)] for i in range(len(k)))
    return x


def of_bools(x, n):
    total = 0
    for j in range(1, n):
        c = sum([x > 0.1 * i for i in range(j)])
        total += c[0] + np.sum(c)
    return total


def of_some(x, n):
    y = x[0] * 0
    for j in range(n):
        y = y + sum(x[i] for i in range(len(x)) if i % (j + 1) == 0)
    return y


def of_nothing(x, n):
    total = 0.0
    for j in range(n):
        total += np.sum(sum(x * i for i in range(j)))
    return total


def within(x, n):
    total = 0.0
    for j in range(1, n):
        total += sum(sum(x[i] * k for k in range(1, j + 1)) for i in range(j)).max()
    return total


def of_numbers(x, n):
    total = 0
    for j in range(n):
        total += sum(i * j for i in range(j)) + sum(int(v) for v in x)
    return total


BOARD = (RNG.random((9, 7)) < 0.5).astype(np.uint8)
SUMS = [
    exact(neighbours, (BOARD, 5), (BOARD[:1], 2)),
    case(windows, (RNG.random(30), np.array([0.2, 0.5, 0.3]), 4), rtol=1e-14),
    exact(of_bools, (RNG.random(9), 6)),
    case(of_some, (RNG.random((6, 4)), 5), rtol=1e-14),
    case(within, (RNG.random((5, 4)), 4), rtol=1e-14),
    exact(of_numbers, (np.arange(5), 6)),
]


@each(SUMS)
def test_sums_of_arrays(c):
    check(c)


def test_the_sum_of_no_arrays_is_a_number():
    check(case(of_nothing, (np.arange(5.0), 4), rtol=1e-14))


def filtered(img, k):
    p = np.pad(img, ((1, 1), (0, 0)), mode="edge")
    return sum(k[i] * p[i : i + img.shape[0]] for i in range(len(k)))


def test_large_arrays_are_known_behind_a_call():
    """Sizes of results and slices are estimated: recorded, all is one pass over memory."""
    made = [np.ones((300, 400)), np.array([0.2, 0.5, 0.3])]
    fast = np_compile.compile(filtered)
    with np_compile.config.patch(compile_in="call"):
        np.testing.assert_allclose(fast(*made), filtered(*made), rtol=1e-14)
    assert any("large" in why for why in refusals(fast))


def layers(x, w, v, n):
    y = x
    for _ in range(n):
        h = np.maximum(x @ w, 0)
        y = np.dot(h, v)
        v = v - 0.001 * (h.T @ y)[:, ::-1]
        x = 0.5 * x[::-1]
    return y, v


@pytest.mark.parametrize(("dtype", "rtol"), [("f8", 0), ("f4", 1e-5)])
def test_large_products_are_numpys(dtype, rtol):
    """BLAS makes them, whose bits in float32 depend on where memory begins; other sizes, down to
    nothing, go the same way."""
    rng = np.random.default_rng(0)

    def arguments(rows, inner, columns):
        return [rng.integers(-4, 5, s).astype(dtype)
                for s in ((rows, inner), (inner, 40), (40, columns))]  # fmt: skip

    fast = np_compile.compile(layers)
    with whole():
        for sizes in ((60, 20, 24), (30, 21, 24), (0, 20, 24), (60, 0, 24)):
            check_call(fast, layers, (*arguments(*sizes), 3), rtol)
    assert any("call_numpy(rt, 2)" in text for text in fast._reading.texts())


def power_steps(a, x, n):
    for _ in range(n):
        y = a @ x
        x = y @ a / 1e3
        x = x / (np.abs(x[:1]) + 1)
    return x


def test_large_products_with_vectors_are_numpys():
    """Bit for bit, which loops are not."""
    rng = np.random.default_rng(0)
    fast = np_compile.compile(power_steps)
    with whole():
        for n in (200, 201, 150, 0):
            check_call(fast, power_steps, (rng.random((n, n)), rng.random(n), 3), 0)
    assert any("call_numpy(rt, 1)" in text for text in fast._reading.texts())


def test_products_of_unlike_extents_raise_in_their_iteration():
    def shrinking(x, y, n):
        done = []
        for k in range(n):
            done.append((x[: len(x) - k // 2] @ y).sum())
            x[0, 0] += 1
            if k == 3:
                y = y[1:]
        return done

    x = np.arange(900.0).reshape(30, 30)
    fast = np_compile.compile(shrinking)
    with whole():
        for n in (3, 4, 8):
            check_call(fast, shrinking, (x, x + 1, n), 0)


def slopes(x, n):
    total = 0.0
    for k in range(0, len(x) - n, 5):
        total += np.polyfit(np.arange(n), x[k : k + n], 1)[0]
    return total


def test_integers_are_data_to_functions_that_are_tried_on_samples(capfd):
    check(case(slopes, (RNG.normal(size=40), 8), rtol=1e-12))
    assert "DLASCL" not in "".join(capfd.readouterr())  # LAPACK's, of points that are all the same
