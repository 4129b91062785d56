"""One program for many sizes: the first is a constant, the second makes it general."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import np_compile
from benchmarks.programs import PROGRAMS
from np_compile import config

from ..support import compiled, data, thorough


def equal(got, want, rtol=1e-11):
    """Values, dtypes, shapes and types."""
    if isinstance(want, (tuple, list)):
        assert type(got) is type(want)
        for a, b in zip(got, want, strict=True):
            equal(a, b, rtol)
        return
    assert type(got) is type(want)
    if want is None:
        return
    a, b = np.asarray(got), np.asarray(want)
    if b.dtype.kind in "fc":
        finite = np.abs(b[np.isfinite(b)])
        np.testing.assert_allclose(a, b, rtol, rtol * finite.max(initial=0), strict=True)
    else:
        np.testing.assert_array_equal(a, b, strict=True)


def copied(a):
    """A copy of an array that lies in memory as it does, gaps included."""
    if not isinstance(a, np.ndarray):
        return a
    low, high = np.lib.array_utils.byte_bounds(a)
    memory = np.empty(max(high - low, 1), np.uint8)
    at = a.__array_interface__["data"][0] - low
    made = np.ndarray(a.shape, a.dtype, memory, at if a.size else 0, a.strides)
    made[...] = a
    return made


def same(fast, f, *args, rtol=1e-11):
    """The compiled function does what the function does, with its arguments too."""
    mine, theirs = [[*map(copied, args)] for _ in range(2)]
    try:
        want = f(*theirs)
    except Exception as e:
        with pytest.raises(type(e)):
            fast(*mine)
    else:
        equal(fast(*mine), want, rtol)
    equal(mine, theirs, rtol)


@pytest.fixture(autouse=True)
def kernels():
    with config.patch(plain="never", compile_in="call", recompile_limit=1000):
        yield


def compiles(fast):
    return len(np_compile.recompiles(fast))


SIZES = (7, 12, 1, 40, 2, 13, 0, 64, 97, 30, 3, 150)


def shifted(x):
    y = np.sin(x) * 2
    y[1:-1] += x[2:] - x[:-2]
    return y, y[::-1], y[: len(x) // 2]


def made(x):
    n = len(x)
    return np.arange(n) * 2 + np.zeros(n), np.linspace(0, 1, n) * x, np.ones((n, 3)) * x[:, None]


def joined(x):
    return np.concatenate([x, 2 * x]), np.stack([x, -x]), np.tile(x, 3), np.roll(x, 2), x.repeat(2)


def reshaped(x):
    y = np.tile(x, 6).reshape(-1, 3)
    return y.sum(axis=0), y.T @ y, y.reshape(2, -1).max(axis=1)


def reduced(x):
    z = np.exp(-np.abs(x))
    return z.sum(), z.mean(), z.std(), np.cumsum(x), z @ z, np.prod(z[:3])


def ordered(x):
    i = np.argsort(x)
    return x[i], np.sort(x), np.searchsorted(np.sort(x), x), np.where(x > 0, x, 0)


def written(x):
    x[::2] = 0
    x *= 2
    x[1:] += x[:-1].copy()
    view = x[: len(x) // 3]
    view -= 1
    return view


def gathered(x):
    i = np.arange(len(x))[::-1].copy()
    y = x[i] * 2
    y[i] += x
    np.add.at(y, i % 5, 1.0) if len(x) > 5 else None
    return y, np.bincount(i % 4, minlength=4)


def outer(x):
    d = x[:, None] - x[None, :]
    e = np.sqrt((d * d).sum(axis=1))
    return e, d.max(axis=0), np.tril(d).sum(), d.T[1:].mean(axis=1)


def integers(x):
    k = (x * 10).astype(int)
    return k // 3, k % 4, k << 2, k >> 1, (k > 3).sum(), np.minimum(k, 7).argmax() if len(x) else 0


def complexes(x):
    z = x + 1j * x[::-1]
    return z.conj() * z, np.abs(z), z.sum(), np.fft.fft(z) if len(x) else z


FUNCTIONS = (
    shifted, made, joined, reshaped, reduced, ordered, written, gathered, outer, integers,
    complexes,
)  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["native", *thorough("eager")])
def test_any_sizes(f, backend):
    fast = np_compile.compile(f, backend=backend)
    for n in SIZES:
        same(fast, f, data(n))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("f", [shifted, made, joined, reduced, written], ids=lambda f: f.__name__)
def test_few_compiles_serve_all_sizes(f):
    fast = np_compile.compile(f)
    for n in range(600, 640):
        same(fast, f, data(n))
    assert compiles(fast) <= 6


def test_arrays_of_few_columns_and_of_many_have_one_program():
    def columns(x):
        out = np.zeros((len(x), x.shape[1] - 2))
        for k in range(3):
            out += x[:, k : k + x.shape[1] - 2]
        return out

    fast = np_compile.compile(columns)
    for n in (7, 8, 9, 10, 11, 30):
        same(fast, columns, data(n, n))
    assert compiles(fast) <= 2


def test_arithmetic_on_few_elements_and_on_many_has_one_program():
    def f(x):
        out = np.zeros(len(x))
        out += 0.5 * x
        out *= x
        return np.multiply(out, x[::-1])

    fast = np_compile.compile(f)
    for n in (1000, 1001, 16384, 16385, 50_000):
        same(fast, f, data(n))
    assert compiles(fast) <= 2


def test_thirty_sizes_and_thirty_integers():
    def f(x, s):
        return np.sin(x * s) + s

    fast = np_compile.compile(f)
    for n in range(30):
        same(fast, f, data(100 + 7 * n), n + 3)
    assert compiles(fast) <= 3


def test_dynamic_false_never_and_true_at_once():
    def f(x):
        return np.sin(x) + x.sum()

    never, at_once = np_compile.compile(f, dynamic=False), np_compile.compile(f, dynamic=True)
    for n in (50, 60, 70, 81):
        same(never, f, data(n))
        same(at_once, f, data(n))
    assert compiles(never) == 4
    assert compiles(at_once) == 1


def test_sizes_that_are_equal_and_then_are_not():
    def f(x, y):
        return x * y + 1, (x - y).sum()

    fast = np_compile.compile(f)
    for n, m in ((5, 5), (6, 6), (7, 7), (7, 1), (1, 9), (8, 8), (4, 5), (11, 11), (1, 1)):
        same(fast, f, data(n), data(m, seed=1))


def layouts(n):
    """Arrays of n rows, laid out in many ways."""
    whole = data(2 * n, 8)
    yield data(n, 4)
    yield np.asfortranarray(data(n, 4))
    yield whole[::2, ::2]
    yield whole[n:, 4:]
    yield whole[:n, 3::-1]
    yield data(4, n).T
    yield np.broadcast_to(data(4), (n, 4)).copy()[:, ::-1]


def test_layouts_and_sizes():
    def f(a):
        b = a * 2 + a.sum(axis=0)
        return b.ravel(), a.T @ a, np.cumsum(a, axis=0), b[1:] - a[:-1]

    fast = np_compile.compile(f)
    for n in (9, 14, 5, 21, 33):
        for a in layouts(n):
            same(fast, f, a)


def test_an_integer_that_changes_after_the_sizes_did():
    def f(x, k):
        return x * k + k

    fast = np_compile.compile(f)
    for n, k in ((10, 3), (11, 3), (12, 3), (13, 4), (14, 4), (12, 5), (15, 3)):
        same(fast, f, data(n), k)


def test_sizes_that_follow_from_data():
    def f(x):
        y = np.sort(x[x > 0])
        i = np.nonzero(y > 0.5)[0]
        return np.exp(y) * 2 + y.mean(), np.unique(np.round(x, 1)) * 3, y[i] - 1

    fast = np_compile.compile(f)
    for seed in range(14):
        same(fast, f, data(60 + seed, seed=seed) + 0.1)
    before = compiles(fast)
    for seed in range(14, 24):
        same(fast, f, data(60 + seed, seed=seed) + 0.1)
    assert compiles(fast) <= before + 1


def test_errors_keep_their_class_and_moment():
    def f(x, y, i):
        x += 1
        z = x[: len(y)] + y
        x[i] = 5
        return z

    fast = np_compile.compile(f)
    for n, m, i in ((9, 4, 2), (12, 5, 3), (13, 6, 4), (14, 20, 1), (15, 7, 99), (16, 8, -3)):
        same(fast, f, data(n), data(m), i)


def test_calls_that_are_kept_at_each_size():
    def f(x):
        return np.tanh(x) * 2 + x

    fast = np_compile.compile(f)
    for n in (10, 20, 30, 40) * 6:
        same(fast, f, data(n))
    assert np_compile.explain(fast)(data(30)).kept


def test_explain_names_sizes_and_guards():
    def f(x, y):
        return np.concatenate([x[2:], y]) * 2

    fast = np_compile.compile(f)
    for n in (10, 20, 30):
        fast(data(n), data(n + 3))
    (segment,) = np_compile.explain(fast)(data(41), data(43)).segments
    text = "\n".join(segment.notes)
    assert "one program for many sizes" in text
    assert "extent 0 of input 0" in text
    assert "it serves sizes with" in text


def test_tensors_of_many_sizes():
    def f(x):
        return (np.sin(x) * 2).sum(axis=0) + x[0]

    fast = np_compile.compile(np_compile.wrap_numpy(f))
    for n in (5, 9, 14, 20, 33):
        x = torch.from_numpy(data(n, 3))
        np.testing.assert_allclose(fast(x).numpy(), f(data(n, 3)), rtol=1e-12)
        g = x.clone().requires_grad_()
        fast(g).sum().backward()
        assert g.grad.shape == (n, 3)
    assert compiles(fast) <= 2 + 2


def classifier(x, labels, w, b):
    z = np.maximum(x @ w + b, 0)
    z -= z.max(axis=1, keepdims=True)
    p = np.exp(z)
    p /= p.sum(axis=1, keepdims=True)
    return -np.log(p[np.arange(len(x)), labels]).mean()


def running(x, labels, w, b):
    y = np.concatenate([x @ w, np.where(x[:, :4] > 0, b, 2 * b)])
    y[:, 1] *= 2
    y[-1, 2] = b[0]
    return (np.cumsum(y, axis=0) / len(x)).std(axis=1), y[1:].sum() * x.shape[0]


def by_library(x, labels, w, b):
    return (np.linalg.solve(w.T @ w + np.eye(4), b) * np.sin(x[:, :4])).sum(), len(x) * b


def of_waves(x, labels, w, b):
    waves = np.fft.fft(x @ w, axis=0) * np.exp(1j * b)
    return np.abs(waves.conj() + 1).mean()


def of_real_waves(x, labels, w, b):
    signal = np.concatenate([x, x]) @ w
    waves = np.fft.rfft(signal, axis=0) * np.exp(-(b**2))
    return np.fft.irfft(waves, len(signal), axis=0), np.abs(waves) ** 2


def of_windows(x, labels, w, b):
    y = np.pad(x @ w * b, ((1, 4), (0, 0)), mode="edge")
    near = [np.pad(y, ((2, 3), (0, 0)), mode) for mode in ("reflect", "symmetric", "wrap")]
    z = np.sin(sum(near))
    short = np.lib.stride_tricks.sliding_window_view(z, 4, axis=0)
    wide = np.lib.stride_tricks.sliding_window_view(np.concatenate([z, y, z]), 18, axis=0)
    return (short * np.arange(4.0)).sum(2), (wide * np.arange(18.0)).sum(2)


def of_products(x, labels, w, b):
    y = 1 + x @ w * b / 9
    without = np.where(labels[:, None] == 3, 0, y)
    return np.cumprod(y, axis=0), np.cumprod(without, axis=0), np.cumprod(1j * y, axis=1).real


def of_matrices(x, labels, w, b):
    y = x @ w * b
    m = y @ y.T + len(x) * np.eye(len(x))
    solved = np.linalg.solve(m, y), np.linalg.solve(m, y[:, 0])
    sign, logarithm = np.linalg.slogdet(m)
    det = np.linalg.det(m / len(x))
    return *solved, np.linalg.inv(m), np.linalg.cholesky(m), sign * logarithm, det


def gradients(f, n, grad=True, place="cpu"):
    x = torch.from_numpy(data(n, 5, seed=n) + 0.1).to(place)
    w, b = (torch.from_numpy(data(*s, seed=3)).to(place) for s in ((5, 4), (4,)))
    w, b = w.requires_grad_(), b.requires_grad_()
    with torch.set_grad_enabled(grad):
        made = f(x, torch.arange(n, device=place) % 4, w, b)
    made = made if isinstance(made, tuple) else (made,)
    assert all(t.requires_grad is grad and t.device.type == place for t in made)
    total = sum(
        (t * torch.arange(1, t.numel() + 1, device=place).reshape(t.shape)).sum() for t in made
    )
    return [t.detach() for t in made], torch.autograd.grad(total, (w, b)) if grad else ()


@pytest.mark.parametrize("place", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("backend", ["native", "eager"])
@pytest.mark.parametrize(
    "f",
    [
        classifier,
        running,
        by_library,
        of_waves,
        of_real_waves,
        of_windows,
        of_products,
    ],
)
def test_gradients_of_many_sizes(f, backend, place):
    if place == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    wrapped = np_compile.wrap_numpy(f)
    fast = np_compile.compile(wrapped, backend=backend)
    for sizes in ((9, 14, 12, 10, 15, 11), (5, 33, 20, 20, 20, 2, 70, 1, 14)):
        for n in sizes:
            made = gradients(fast, n, place=place), gradients(wrapped, n, place=place)
            for got, want in zip(*made, strict=True):
                for a, b in zip(got, want, strict=True):
                    torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)
        if place == "cpu" or sizes[0] == 9:
            # On a device axes are shared out by how long they are, roughly: of these waves, rows of
            # up to 14 elements have a thread each.
            apart = place != "cpu" and f is of_real_waves
            assert compiles(fast) <= (2 if sizes[0] == 9 else 5) + apart
    for n in (9, 14, 6, 11):  # nothing that is differentiated stands for what is not
        (got, _), (want, _) = (gradients(g, n, False) for g in (fast, wrapped))
        for a, b in zip(got, want, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)
    assert place == "cuda" or compiles(fast) <= 5 + 3


def test_gradients_of_matrices_of_many_sizes():
    wrapped = np_compile.wrap_numpy(of_matrices)
    fast = np_compile.compile(wrapped)
    for n in (9, 14, 12, 10, 15, 11):
        for made, wanted in zip(gradients(fast, n), gradients(wrapped, n), strict=True):
            for got, want in zip(made, wanted, strict=True):
                torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-11)
    assert compiles(fast) <= 2


def test_singular_matrices_of_many_sizes():
    fast = np_compile.compile(np_compile.wrap_numpy(lambda a: np.linalg.inv(a * 2.0).sum()))
    for n in (4, 7, 9, 5, 8):
        for singular in (True, False):
            a = torch.zeros(n, n) if singular else torch.eye(n)
            a.requires_grad_()
            if singular:
                with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
                    fast(a)
            else:
                fast(a).backward()
                torch.testing.assert_close(a.grad, torch.full((n, n), -0.5))
    assert compiles(fast) <= 2


def test_gradients_of_many_sizes_under_vmap_and_twice():
    def f(x, w):
        return (np.tanh(x @ w) ** 2).mean()

    fast = np_compile.compile(np_compile.wrap_numpy(f))
    for n in (6, 9, 13):
        x = torch.from_numpy(data(n, 3))
        w = torch.from_numpy(data(3, 2, seed=1)).requires_grad_()
        made = fast(x, w)
        vectors = torch.ones(4, dtype=torch.float64)
        (many,) = torch.autograd.grad(
            made, w, vectors, is_grads_batched=True, retain_graph=True, create_graph=n == 13
        )
        (one,) = torch.autograd.grad(made, w, create_graph=True)
        torch.testing.assert_close(many, one.expand(4, 3, 2))
        with pytest.raises(RuntimeError, match="backend='eager'"):
            one.sum().backward()


def test_hooks_on_what_is_saved_see_nothing_of_a_trace():
    places = set()
    fast = np_compile.compile(np_compile.wrap_numpy(classifier))
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: places.add(t.device.type) or t, lambda t: t
    ):
        for n in (9, 14, 20):
            gradients(fast, n)
    assert places == {"cpu"}
    assert compiles(fast) == 2


def test_an_index_out_of_bounds_with_a_gradient_of_many_sizes():
    def f(table, i):
        return (table[i] ** 2).sum()

    fast = np_compile.compile(np_compile.wrap_numpy(f))
    for n in (4, 7, 11):
        table = torch.from_numpy(data(5, 2)).requires_grad_()
        made = fast(table, torch.arange(n) % 5)
        (found,) = torch.autograd.grad(made, table)
        times = torch.bincount(torch.arange(n) % 5, minlength=5)[:, None]
        torch.testing.assert_close(found, 2 * table.detach() * times)
        with pytest.raises(IndexError, match="index 5 is out of bounds"):
            fast(table, torch.arange(n) % 5 + (torch.arange(n) == n - 1) * (5 - (n - 1) % 5))
    assert compiles(fast) == 2


def test_growing_arrays():
    def f(x, n):
        for i in range(n):
            x = np.concatenate([x, np.sin(x[-2:]) + i])
            x[-1] -= x.mean()
        return x

    fast = np_compile.compile(f)
    same(fast, f, data(5), 40)
    assert compiles(fast) <= 8


def test_a_program_for_all_sizes_is_made_beside_the_program():
    def f(x):
        return np.sin(x) * x + np.cos(x).mean()

    fast = np_compile.compile(f)
    with config.patch(compile_in="background", plain="never"):
        deadline = time.monotonic() + 120
        n = 200
        while compiles(fast) < 2 and time.monotonic() < deadline:
            n += 1
            same(fast, f, data(n))
            time.sleep(0.01)
        for n in range(900, 910):
            same(fast, f, data(n))
    assert compiles(fast) == 2


def nodes(fast):
    """How many nodes the trees of recordings have."""
    waiting = [*fast._options.roots.values()]
    count = 0
    while waiting:
        node = waiting.pop()
        count += 1
        waiting += node.next.values()
    return count


@pytest.fixture
def recorded():
    """Calls that are not kept are recorded each time."""
    with np_compile.config.patch(loops="recorded"):
        yield


def several_parts(x, y):
    a = np.sin(x) * 2 + y
    if a.sum() > 1e9:  # a value: not kept, recorded each time
        return a
    b, c = np.split(np.concatenate([a, y]), [3])
    d = np.outer(b, b) + a[:3]
    d[1:, 0] = c[:2]
    return d, np.where(a > 0, a, y).reshape(-1)[::-1], np.cumsum(c)


def products_of_parts(low):
    n = len(low)
    made = np.zeros((n, n))
    for j in range(n):
        made[j, j] = 1.0 / low[j, j]
        for i in range(j + 1, n):
            made[i, j] = -(low[i, j:i] @ made[j:i, j]) / low[i, i]
    return made


def test_what_is_inferred_late_is_no_part_of_the_program(recwarn):
    low = np.tril(data(12, 12)) + 12 * np.eye(12)
    fast = np_compile.compile(products_of_parts, backend="eager")
    for _ in range(3):
        same(fast, products_of_parts, low)
    assert not [w for w in recwarn if "could not be traced" in str(w.message)]


@pytest.mark.usefixtures("recorded")
def test_a_new_size_is_not_inferred_again(monkeypatch):
    from np_compile.capture import infer

    fast = np_compile.compile(several_parts)
    for n in (20, 21, 23, 26):
        same(fast, several_parts, data(n), data(n))
    count = []
    run = infer._on_meta
    monkeypatch.setattr(infer, "_on_meta", lambda *args: (count.append(1), run(*args))[1])
    before = compiles(fast)
    for n in range(30, 50):
        same(fast, several_parts, data(n), data(n))
    assert compiles(fast) == before
    assert not count


@pytest.mark.usefixtures("recorded")
def test_sizes_that_come_once_leave_nothing_behind():
    fast = np_compile.compile(several_parts)
    for n in (20, 21, 22):
        fast(data(n), data(n))
    before = nodes(fast)
    for n in range(30, 60):
        fast(data(n), data(n))
    assert nodes(fast) == before
    for _ in range(3):  # from the second time on they are there
        same(fast, several_parts, data(40), data(40))
    assert nodes(fast) > before
    kept = nodes(fast)
    same(fast, several_parts, data(40), data(40))
    assert nodes(fast) == kept


@pytest.mark.usefixtures("recorded")
def test_layouts_of_rules_are_those_of_the_shim():
    """Shapes, strides and aliasing of values that rules have made, against the meta tensors."""
    fast = np_compile.compile(several_parts)
    for n in (20, 21, 33, 33, 33):
        fast(data(n), data(n))
    seen = 0
    waiting = [*fast._options.roots.values()]
    while waiting:
        node = waiting.pop()
        waiting += node.next.values()
        for v in node.values:
            if v._meta is None:
                seen += 1
                layout = v.shape, v.strides, v.dtype, v.ndim
                meta = v.meta
                assert layout == (meta.shape, meta._t.stride(), meta.dtype, meta.ndim)
    assert seen > 5, seen


def test_errors_of_new_sizes_are_numpys():
    def f(x, y):
        return (x + y)[5] * 2, x.reshape(2, -1)

    fast = np_compile.compile(f)
    for n in (20, 22, 24):
        same(fast, f, data(n), data(n))
    for n, m in ((30, 31), (31, 31), (4, 4), (30, 1), (1, 30), (26, 26), (2, 3)):
        same(fast, f, data(n), data(m))


def test_an_index_that_changes_alone_becomes_data():
    def f(x, i):
        y = x * 2 + x[i]
        return y[-1] + y[1:] if y.sum() < 1e9 else y

    fast = np_compile.compile(f)
    for n in (20, 21, 22, 23):
        same(fast, f, data(n), n - 4)
    before = compiles(fast)
    for i in range(2, 14):
        same(fast, f, data(23), i)
    assert compiles(fast) <= before + 4


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.fft.fft(x, 18),
        lambda x: np.fft.rfft(x, 2 * len(x)),
        lambda x: np.fft.irfft(x + 1j),
        lambda x: np.fft.fftn(x.reshape(2, -1), (3, 9), (0, 1)),
    ],
)
def test_transforms_of_a_length_of_their_own(f, capfd):
    """torch cannot fill up an array of unknown size, and said so on the terminal."""
    fast = np_compile.compile(f, dynamic=True)
    for n in (10, 14, 10):  # of which no length is the half of another: that is a guard
        same(fast, f, data(n))
    assert compiles(fast) == 1
    assert not capfd.readouterr().err


BENCHMARKS = [p for p in PROGRAMS.values() if p.name != "smoothing" and p.group != "loops"]
BENCHMARKS = [p if k % 2 else thorough(p)[0] for k, p in enumerate(BENCHMARKS)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", BENCHMARKS, ids=lambda p: p.name)
def test_benchmark_programs_at_several_sizes(program):
    fast = np_compile.compile(program.function)
    base = program.sizes["small"]
    for k, scale in enumerate((1, 1.4, 0.7, 2.1, 1.13)):
        size = tuple(max(3, int(n * scale) + k % 2) if n > 8 else n for n in base)
        args = program.make(np.random.default_rng(k), *size)
        same(fast, program.function, *args, rtol=program.rtol)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=3, max_size=8))
def test_histories_of_sizes(history):
    def f(a, b):
        c = a @ b
        d = np.maximum(c, c.mean()) if c.size else c
        d[: len(d) // 2] *= 2
        return d, d.sum(axis=0), np.concatenate([a.ravel(), b.ravel()])[1:] * 3

    fast, _ = compiled(f)
    for n, m in history:
        same(fast, f, data(n, m), data(m, 3))


@pytest.mark.parametrize("backend", ["eager", "native"])
def test_a_vector_times_a_matrix_is_a_vector_for_many_sizes(backend):
    """torch takes the axis of 1 of such a product out in place."""

    def f(a, b):
        return (a @ b) @ a

    fast = np_compile.compile(f, backend=backend, dynamic=True)
    with np_compile.config.patch(plain="never", compile_in="call"):
        for n in (4, 4, 3, 6):
            a, b = data(n, seed=1), np.arange(n * n * 1.0).reshape(n, n)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                got, want = fast(a, b), f(a, b)
            assert type(got) is type(want)
            np.testing.assert_allclose(got, want)
