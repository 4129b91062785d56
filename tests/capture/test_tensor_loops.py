"""Functions of tensors that go by elements: read, and run on NumPy's arrays in host memory."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest
import torch

import np_compile
from np_compile import config, tensor_loops

STEP = 0.5
WEIGHTS = torch.ones(3, dtype=torch.float64)
TABLE = np.arange(5.0)


@pytest.fixture(params=["shared", "copies", pytest.param("cuda", marks=pytest.mark.cuda)])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where tensors are; also in host memory as if the host did not reach it."""
    if request.param == "copies":
        monkeypatch.setattr(tensor_loops, "is_away", lambda device: True)
    return "cuda" if request.param == "cuda" else "cpu"


def compiled(f):
    return np_compile.compile(np_compile.wrap_numpy(f))


def is_read(fast):
    """Whether some of a compiled function is C with its loops."""
    return fast._reading.is_compiled


def series(n=400, seed=1):
    return torch.from_numpy(np.random.default_rng(seed).random(n))


def smoothed(x, take):
    y = np.empty_like(x)
    y[0] = x[0]
    for i in range(1, x.size):
        y[i] = y[i - 1] + take * (x[i] - y[i - 1])
    return y


def test_results_are_tensors_where_the_arguments_are(place):
    fast = compiled(smoothed)
    for k in range(3):
        x = series(300 + k).to(place)
        got = fast(x, 0.25)
        assert type(got) is torch.Tensor
        assert got.device == x.device
        np.testing.assert_allclose(got.cpu(), smoothed(x.cpu().numpy(), 0.25))
        assert x._version == 0
    assert is_read(fast)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int16, np.uint32, np.complex64, bool])
def test_dtypes(place, dtype):
    def runs(x):
        y = np.zeros_like(x)
        longest = x[0]
        for i in range(1, len(x)):
            y[i] = y[i - 1] + x[i]
            if x[i] == x[i - 1]:
                longest = y[i]
        return y, longest

    x = (np.arange(300) % 7 // 2).astype(dtype)
    fast = compiled(runs)
    for _ in range(2):
        got = fast(torch.from_numpy(x.copy()).to(place))
        for a, b in zip(got, runs(x), strict=True):
            assert a.cpu().numpy().dtype == b.dtype
            assert a.shape == b.shape
            np.testing.assert_array_equal(a.cpu(), b)


def test_what_is_written_is_written_to_the_tensors(place):
    def sweep(u, c, n):
        for i in range(1, n):
            for j in range(n):
                u[i, j] += c[j] * u[i - 1, j]

    fast = compiled(sweep)
    u, c = series(900).reshape(30, 30), series(30)
    want = u.numpy().copy()
    u, c = u.to(place), c.to(place)
    for _ in range(3):
        version = u._version
        assert fast(u, c, 30) is None
        sweep(want, c.cpu().numpy(), 30)
        np.testing.assert_allclose(u.cpu(), want)
        assert u._version > version
        assert c._version == 0  # read only
    assert is_read(fast)


def test_views_of_a_tensor_that_are_written(place):
    def halved(x):
        for i in range(len(x)):
            if x[i] > 0.5:
                x[i] /= 2
        return x[::3]

    whole = series(600).to(place)
    want = whole.cpu().numpy().copy()
    fast = compiled(halved)
    for _ in range(2):
        got = fast(whole[100:500:2])
        halved(want[100:500:2])
        np.testing.assert_allclose(whole.cpu(), want)
        assert got.data_ptr() == whole[100:].data_ptr()
        assert got.stride() == (6,)


def test_tensors_that_are_far_apart_stay_on_a_device(monkeypatch):
    monkeypatch.setattr(tensor_loops, "is_away", lambda device: True)
    fast, x = compiled(smoothed), series(300_000).reshape(100, 3000)
    np.testing.assert_allclose(fast(x[:, 0], 0.5), smoothed(x[:, 0].numpy(), 0.5))
    assert not is_read(fast)
    near = x.reshape(-1)[::9]
    np.testing.assert_allclose(fast(near, 0.5), smoothed(near.numpy(), 0.5))
    assert is_read(fast)


def test_results_that_are_arguments_and_views(place):
    def parts(x, n):
        y = np.empty((n, n))
        for i in range(n):
            for j in range(n):
                y[i, j] = x[i] - x[j]
        return x, x[5:9], y, y[1:, ::2], (y, [x[0], n])

    x = series(40).to(place)
    want = parts(x.cpu().numpy(), 40)
    for _ in range(3):
        got = fast(x, 40) if (fast := compiled(parts)) else None
        assert got[0] is x
        assert got[1].data_ptr() == x[5:].data_ptr()
        assert got[4][0] is got[2]
        assert got[3].data_ptr() == got[2][1:].data_ptr()
        assert got[3].stride() == (40, 2)
        assert got[4][1][1] == 40
        assert type(got[4][1][0]) is torch.Tensor
        for a, b in zip(got[:4], want[:4], strict=True):
            np.testing.assert_allclose(a.cpu(), b)


def test_backwards_views_are_copies(place):
    def turned(x):
        for i in range(1, len(x)):
            x[i] += x[i - 1]
        return x[::-1]

    x = series(200).to(place)
    want = turned(x.cpu().numpy().copy())
    np.testing.assert_allclose(compiled(turned)(x).cpu(), want)


def test_structures(place):
    def update(state, log):
        x = state["x"]
        for i in range(1, len(x)):
            x[i] = max(x[i], x[i - 1])
        state["top"] = x[-1]
        log.append(x.copy())
        return state

    fast = compiled(update)
    for k in range(3):
        state, log = {"x": series(200, k).to(place)}, []
        x = state["x"]
        want = np.maximum.accumulate(x.cpu().numpy())
        assert fast(state, log) is state
        assert state["x"] is x
        np.testing.assert_allclose(x.cpu(), want)
        assert type(state["top"]) is torch.Tensor
        assert state["top"].item() == want[-1]
        assert type(log[0]) is torch.Tensor
        np.testing.assert_allclose(log[0].cpu(), want)


def test_an_error_leaves_what_came_before(place):
    def fails(x, seen):
        for i in range(len(x)):
            if x[i] > 2:
                seen.append(x[i])
                raise KeyError("so", x[i])
            x[i] = 0
        return x

    fast = compiled(fails)
    for _ in range(3):
        x = series(200).to(place)
        x[150] = 3
        want, seen = x.cpu(), []
        want[:150] = 0
        with pytest.raises(KeyError, match="so") as e:
            fast(x, seen)
        assert torch.equal(x.cpu(), want)
        assert type(e.value.args[1]) is type(seen[0]) is torch.Tensor
        assert seen[0].device == x.device


def test_an_index_out_of_bounds(place):
    def picked(x, n):
        t = 0.0
        for i in range(n):
            t += x[i]
        return t

    fast, x = compiled(picked), series(100).to(place)
    np.testing.assert_allclose(fast(x, 100).cpu(), x.cpu().sum())
    with pytest.raises(IndexError, match="index 100 is out of bounds for axis 0 with size 100"):
        fast(x, 101)


def test_random_numbers_are_numpys(place):
    def walk(x, rng):
        for i in range(1, len(x)):
            x[i] = x[i - 1] + (STEP if rng.random() < 0.5 else -STEP)

    fast = compiled(walk)
    mine, its = np.random.default_rng(3), np.random.default_rng(3)
    want, x = np.zeros(300), torch.zeros(300, dtype=torch.float64, device=place)
    for _ in range(3):
        walk(want, its)
        fast(x, mine)
        np.testing.assert_array_equal(x.cpu(), want)
    assert mine.random() == its.random()


def test_functions_that_make_their_arrays(place):
    def primes(n):
        is_prime = np.ones(n, bool)
        is_prime[:2] = False
        for i in range(2, n):
            if is_prime[i]:
                for k in range(i * i, n, i):
                    is_prime[k] = False
        return np.flatnonzero(is_prime)

    fast = compiled(primes)
    with torch.device(place):
        for _ in range(2):
            got = fast(500)
            assert type(got) is torch.Tensor
            assert got.device.type == place
            np.testing.assert_array_equal(got.cpu(), primes(500))


def test_explain_says_where_the_loops_run(place):
    fast = compiled(smoothed)
    x = series().to(place)
    fast(x, 0.5)
    text = str(np_compile.explain(fast)(x, 0.5))
    assert "compiled whole from" in text
    copies = tensor_loops.is_away(x.device)
    assert ("on copies of the tensors: one thread of a device takes far longer" in text) is copies
    assert "for (" in np_compile.inspect(fast)(x, 0.5)[0].output


# What is not kept runs on arrays


def in_vain(x, rng, seen):
    y = x + rng.standard_normal(len(x))
    seen.append(float(y.sum()))
    if np.median(y) > 0:
        y[y < 0] = 0.0
    x[:2] += 1
    return y, [y.max(), y[::2]], y.argmax(), "done"


def test_what_is_not_kept_runs_on_arrays(place):
    fast = compiled(in_vain)
    x, seen, twin, of_twin = series(50).to(place), [], series(50).numpy(), []
    rng, of_plain = np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(6):
        got = fast(x, rng, seen)
        want = in_vain(twin, of_plain, of_twin)
        assert type(got[0]) is type(got[1][0]) is type(got[2]) is torch.Tensor
        assert got[0].device == got[1][1].device == x.device
        assert got[1][1].untyped_storage().data_ptr() == got[0].untyped_storage().data_ptr()
        assert (got[2].dtype, got[3]) == (torch.int64, "done")
        for a, b in zip((got[0], *got[1]), (want[0], *want[1]), strict=True):
            np.testing.assert_allclose(a.cpu(), b)
        np.testing.assert_allclose(x.cpu(), twin)
        np.testing.assert_allclose(seen, of_twin)
    assert rng.random() == of_plain.random()
    text = "\n".join(fast._reading.report())
    assert "it runs on arrays in place of its tensors" in text


def test_what_is_not_changed_keeps_its_version():
    def largest(x, y, rng):
        if np.median(x) > 0.1:
            y[rng.integers(3)] = 1.0
        return x.max()

    fast, rng = compiled(largest), np.random.default_rng(3)
    w = series(20).requires_grad_()
    for k in range(5):
        x, y = series(20), torch.zeros(20)
        loss = (w * x).sum()
        assert fast(x, y, rng) == x.max()
        loss.backward()  # x is what it was
        assert (x._version, y._version > 0) == (0, True), k


class Walk:
    size = 2

    def __init__(self, x, rng):
        self.at, self.rng = x.copy(), rng
        self.path = [self.at[0]]

    def step(self):
        self.at = self.at + self.rng.standard_normal(len(self.at))
        self.path.append(self.at[0])
        return self

    @property
    def far(self):
        return np.abs(self.at).max() > self.size


def walks(x, rng):
    walk, steps = Walk(x, rng), 0
    while not walk.far:
        walk.step()
        steps += 1
    return walk, steps, lambda: walk.at


def test_objects_that_a_call_makes(place):
    fast, rng, of_plain = compiled(walks), np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(5):
        walk, steps, last = fast(torch.zeros(9, dtype=torch.float64).to(place), rng)
        want, of_want, _ = walks(np.zeros(9), of_plain)
        assert (type(walk), steps) == (Walk, of_want)
        np.testing.assert_allclose(walk.at.cpu(), want.at)
        np.testing.assert_allclose([p.cpu() for p in walk.path], want.path)
        assert {type(walk.at), *map(type, walk.path)} == {torch.Tensor}
        assert last() is walk.at


@dataclasses.dataclass
class Filter:
    taps: object
    gain: float = 2.0
    seen: list = dataclasses.field(default_factory=list)

    def __call__(self, x):
        y = np.convolve(x, self.taps)[: len(x)] * self.gain
        self.seen.append(y.max())
        self.last = y
        return y


class TooLarge(Exception):
    pass


class Chain:
    def __init__(self, filters, limit):
        self.filters, self.limit, self.calls = filters, limit, 0

    def run(self, x, after):
        for f in self.filters:
            x = after(f(x))
        self.calls += 1
        if np.median(x) > self.limit:
            raise TooLarge(x.max())
        self.filters[0].gain *= 0.5
        return x


def chained(chain, x, table, after):
    MET["last"] = x[:2]
    return chain.run(x + table[0], after), table, table[1:]


MET = {"last": None}


def clipped(x):
    return np.minimum(x, 5.0)


def test_objects_among_the_arguments(place):
    def make(convert):
        taps = [convert(series(4, k).to(place)) for k in range(2)]
        chain = Chain([Filter(taps[0]), Filter(taps[1], 1.5)], 1e9)
        table = convert(torch.arange(3.0).to(place)) if place == "cuda" else np.arange(3.0)
        return chain, convert(series(30).to(place)), table, clipped

    MET["last"] = None
    fast = compiled(chained)
    mine, twin = make(lambda t: t), make(lambda t: t.cpu().numpy())
    first, tables = mine[0].filters[0], []
    for _ in range(6):
        y, *tables = fast(*mine)
        assert type(MET["last"]) is torch.Tensor
        np.testing.assert_allclose(y.cpu(), chained(*twin)[0])
        MET["last"] = None
        for a, b in zip(mine[0].filters, twin[0].filters, strict=True):
            assert a.gain == b.gain
            np.testing.assert_allclose(a.last.cpu(), b.last)
            np.testing.assert_allclose([v.cpu() for v in a.seen], b.seen)
            assert {type(a.last), *map(type, a.seen)} == {torch.Tensor}
    assert mine[0].filters[0] is first
    assert mine[0].calls == twin[0].calls == 6
    assert type(mine[2]) is (torch.Tensor if place == "cuda" else np.ndarray)
    assert {*map(type, tables)} == {torch.Tensor}
    if place == "cpu" and not tensor_loops.is_away(mine[1].device):
        assert not fast._reading._why
    mine[0].limit = twin[0].limit = -1.0
    with pytest.raises(TooLarge) as caught:
        fast(*mine)
    assert type(caught.value.args[0]) is torch.Tensor
    assert mine[0].calls == 7


class Hashed:
    def __init__(self, x):
        self.x = x

    def __hash__(self):
        KEPT.append(self.x)
        return 1


class Pair(NamedTuple("Pair", [("x", object), ("y", object)])):
    __slots__ = ()

    def __new__(cls, x, y):
        KEPT.append(x)
        return super().__new__(cls, x, y)


class Named(NamedTuple):
    x: object
    y: object

    def total(self):
        KEPT.append(self.x)
        return self.x + self.y


KEPT: list = []


def hashes(x, rng):
    known = {Hashed(x + rng.random()): 1}
    return len(known) if np.median(x) > 0 else None


def pairs(x, rng):
    return Pair(x + rng.random(), x)[1] if np.median(x) > 0 else None


def named(x, rng):
    return Named(x + rng.random(), x).total() if np.median(x) > 0 else None


@pytest.mark.parametrize("f", [hashes, pairs, named])
def test_methods_that_python_calls_keep_tensors(f):
    fast, rng = compiled(f), np.random.default_rng(3)
    for _ in range(4):
        KEPT.clear()
        fast(series(9), rng)
        assert [*map(type, KEPT)] == [torch.Tensor]
    assert "runs on arrays in place of its tensors" in "\n".join(fast._reading.report())


def filtered(f, x, rng):
    return f(x) if np.median(x) + rng.random() > 0 else None


def test_large_tensors_in_objects_are_not_copied(monkeypatch):
    copied = []
    place_on_host = tensor_loops.place_on_host
    monkeypatch.setattr(tensor_loops, "is_away", lambda device: True)
    monkeypatch.setattr(tensor_loops, "_FEW", 1000)
    monkeypatch.setattr(
        tensor_loops, "place_on_host", lambda x: copied.append(x) or place_on_host(x)
    )
    fast, rng = compiled(filtered), np.random.default_rng(3)
    for taps in (400, 4):
        f = Filter(series(taps))
        for _ in range(5):
            fast(f, series(20), rng)
        assert bool(copied) == (taps == 4)


class Sums:
    def __init__(self, x):
        self.sum, self.adders = x[:1] * 0, []

    def add(self, x):
        def later():
            self.sum = self.sum + x  # of the object, by a variable of the method
            self.largest = np.max([v for v in self.sum if v >= self.sum[0]])

        self.adders.append(later)


def by_closures(x, rng):
    sums = Sums(x)
    for _ in range(rng.integers(3) + 1):
        sums.add(x[: rng.integers(5) + 1].sum())
    for f in sums.adders:
        f()
    return sums.sum, sums.largest


ROWS = [[1.0, 2.0], [3.0, 4.0]]


def by_lists_of_lists(x, rng):
    return sum(x[rng.integers(9)] * row[1] for row in ROWS) if x[0] < 9 else None


def by_libraries(x, rng):
    name = hashlib.sha1(str(rng.integers(9)).encode()).hexdigest()
    return functools.reduce(np.add, [x[: int(c, 16)].sum() for c in name[:6]])


@pytest.mark.parametrize("f", [by_closures, by_lists_of_lists, by_libraries])
def test_what_leads_to_no_tensor_lets_calls_run_on_arrays(f):
    fast, rng, of_plain = compiled(f), np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(6):
        got, want = fast(series(20), rng), f(series(20).numpy(), of_plain)
        for a, b in zip(*[r if type(r) is tuple else (r,) for r in (got, want)], strict=True):
            assert type(a) is torch.Tensor
            np.testing.assert_allclose(a, b)
    assert fast._reading._why == ""


PATHS = [np.arange(4.0), np.arange(3.0)]


def walked(x, rng):
    path = PATHS[rng.integers(2)]
    if path[-1] < 9:
        PATHS.append(x[:2] * path[1])
    return path, path[1:].sum() + x[rng.integers(9)]


def test_arrays_in_lists_stay_arrays(monkeypatch):
    fast, rng, of_plain = compiled(walked), *map(np.random.default_rng, (3, 3))
    for _ in range(5):
        first = [np.arange(4.0), np.arange(3.0)]
        monkeypatch.setitem(globals(), "PATHS", [*first])
        got = fast(series(20), rng)
        assert fast._reading._why == ""
        assert [*map(type, got)] == [torch.Tensor] * 2
        paths = PATHS
        assert paths[0] is first[0]
        assert paths[1] is first[1]
        assert type(paths[2]) is torch.Tensor
        monkeypatch.setitem(globals(), "PATHS", [*first])
        want = walked(series(20).numpy(), of_plain)
        for a, b in zip((*got, *paths), (*want, *PATHS), strict=True):
            np.testing.assert_allclose(a, b)


def test_a_list_in_a_list_that_gets_a_tensor(monkeypatch):
    monkeypatch.setitem(globals(), "ROWS", [[1.0, 2.0], [3.0, 4.0]])
    fast, rng, of_plain = compiled(by_lists_of_lists), *map(np.random.default_rng, (3, 3))
    for k in range(8):
        if k == 5:
            ROWS[1][1] = torch.tensor(8.0, dtype=torch.float64)
        got = fast(series(20), rng)
        assert type(got) is torch.Tensor
        if k == 5:
            assert fast._reading._why == "the name ROWS, which holds a Tensor"
            ROWS[1][1] = 8.0
        np.testing.assert_allclose(got, by_lists_of_lists(series(20).numpy(), of_plain))


def shared(kind):
    def later(x):
        kind.known = x * 2  # of the class, by a variable of the method

    return later


def by_class(x, rng):
    kind = Counts
    shared(kind)(x)

    def own():
        kind.known = x * 3

    own()
    return x[rng.integers(9)] if np.median(x) > 0 else None


def test_numbers_are_keys(place):
    def priced(rates, rng):
        total = 0.0
        for years, rate in rates.items():
            total = total + years * rate[rng.integers(5)]
        rates[0.25] = total
        return total

    fast, rng, of_plain = compiled(priced), np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(5):
        rates = {k / 4: series(5, k + 1).to(place) for k in range(1, 4)}
        twin = {k: t.cpu().numpy() for k, t in rates.items()}
        got, want = fast(rates, rng), priced(twin, of_plain)
        assert type(got) is type(rates[0.25]) is torch.Tensor
        assert got.device == rates[0.5].device
        np.testing.assert_allclose([got.cpu(), rates[0.25].cpu()], [want, twin[0.25]])
    assert fast._reading._why == ""


@pytest.mark.parametrize("slow", ["host", "device"])
def test_what_is_not_kept_runs_where_it_is_quicker(slow, monkeypatch):
    clock, ran = [0.0], []

    def taking(way, f):
        def call(it, *args):
            if it in (fast, fast._reading):
                ran.append(way)
                clock[0] += 1.0 if way == slow else 0.1
            return f(it, *args)

        return call

    monkeypatch.setattr(tensor_loops, "is_away", lambda device: True)
    monkeypatch.setattr(tensor_loops, "_now", lambda device: clock[0])
    fast, rng = compiled(in_vain), np.random.default_rng(3)
    for _ in range(3):
        fast(series(9), rng, [])
    assert fast._keeper.in_vain
    monkeypatch.setattr(
        tensor_loops.TensorLoops, "_on_host", taking("host", tensor_loops.TensorLoops._on_host)
    )
    on_device = functools.partial(taking("device", type(fast)._run), fast)
    monkeypatch.setattr(fast, "_run", on_device)  # the class can no longer be changed
    for _ in range(40):
        fast(series(20), rng, [])
    quick = "host" if slow == "device" else "device"
    assert ran.count(quick) > 30
    assert 2 <= ran.count(slow) < 10  # of each again, later
    assert len(ran) == 40


class Counts:
    known: object = 0

    def count(self, x):
        kind = Counts
        kind.known = x * 2  # an attribute of the class
        return x.sum()


def counts(x, rng):
    return Counts().count(x) + rng.random() if np.median(x) > 0 else None


@pytest.mark.parametrize("f", [counts, by_class])
def test_attributes_of_classes_are_left_to_recording(f):
    fast, rng = compiled(f), np.random.default_rng(3)
    try:
        for _ in range(5):
            Counts.known = 0
            fast(series(9), rng)
            assert type(Counts.known) is torch.Tensor
    finally:
        Counts.known = 0


# What stays with recording


def test_gradients_are_recorded():
    fast = compiled(smoothed)
    x = series(20).requires_grad_()
    fast(x, 0.25).sum().backward()
    assert not is_read(fast)
    assert "a tensor asks for a gradient" in str(np_compile.explain(fast)(x, 0.25))
    assert x.grad is not None
    with torch.no_grad():
        got = fast(series(2000).requires_grad_(), 0.25)
    assert is_read(fast)
    assert not got.requires_grad


def test_loops_over_whole_arrays_are_recorded(place):
    def heat(u):
        for _ in range(20):
            u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        return u

    fast = compiled(heat)
    u = series(3000).to(place)
    want = heat(u.cpu().numpy().copy())
    np.testing.assert_allclose(fast(u).cpu(), want)
    assert not is_read(fast)


def test_large_tensors_of_short_loops_stay_on_a_device(monkeypatch):
    def first(x, n):
        t = 0.0
        for i in range(n):
            t += x[i]
        return np.sqrt(x) + t

    monkeypatch.setattr(tensor_loops, "is_away", lambda device: True)
    fast = compiled(first)
    x = series(500_000)
    for n in (80, 80, 4000):
        np.testing.assert_allclose(fast(x, n), first(x.numpy(), n))
        assert is_read(fast) is (n == 4000)
    assert "large for what its loops do" in "\n".join(fast._reading.report())


def global_tensor(x):
    t = 0.0
    for i in range(len(x)):
        t += x[i] * WEIGHTS[i % 3]
    return t


def kept_elsewhere(x):
    global STEP
    for i in range(len(x)):
        STEP = x[i]


def imports(x):
    import torch

    t = 0.0
    for i in range(len(x)):
        t += x[i]
    return torch.as_tensor(t)


@pytest.mark.parametrize("f", [global_tensor, imports])
def test_functions_that_come_to_other_tensors(f):
    fast, x = compiled(f), series(90)
    for _ in range(2):
        np.testing.assert_allclose(fast(x), x.sum())
    assert not is_read(fast)


def test_functions_that_keep_what_they_make():
    fast, x = compiled(kept_elsewhere), series(90)
    before = STEP
    try:
        fast(x)
        assert type(STEP) is torch.Tensor
    finally:
        globals()["STEP"] = before


def test_a_global_that_becomes_a_tensor(monkeypatch):
    def scaled(x):
        for i in range(1, len(x)):
            x[i] = x[i - 1] + x[i] * STEP

    fast = compiled(scaled)
    for value in (0.5, 0.25, torch.tensor(0.125, dtype=torch.float64), 1.0):
        monkeypatch.setitem(globals(), "STEP", value)
        x = series(100)
        want = np.cumsum(np.r_[x[0], x[1:] * float(value)])
        fast(x)
        np.testing.assert_allclose(x, want)
    assert is_read(fast)


def helped(x, i):
    return x[i] * TABLE[i % 5]


def test_helpers_and_constants():
    def total(x):
        t = 0.0
        for i in range(len(x)):
            t += helped(x, i)
        return t

    fast, x = compiled(total), series(300)
    for _ in range(2):
        np.testing.assert_allclose(fast(x), total(x.numpy()))
    assert is_read(fast)


def test_tensors_that_share_memory():
    def shifted(x, y):
        for i in range(len(y)):
            y[i] = x[i] + 1

    fast, x = compiled(shifted), torch.zeros(200)
    for k in range(1, 4):
        fast(x[:-1], x[1:])
        assert (x[0].item(), x[-1].item()) == (0, 199), k
    spread = torch.zeros(1).expand(200)
    got = compiled(lambda x: [x[i] for i in range(3)])(spread)
    assert len(got) == 3


def test_transforms_of_torch():
    def alternating(x):
        t = 0.0
        for i in range(len(x)):
            t += x[i] if i % 2 else -x[i]
        return t

    fast = compiled(alternating)
    fast(series(100))
    assert is_read(fast)
    rows = torch.stack([series(50, k) for k in range(3)])
    for a, row in zip(torch.func.vmap(fast)(rows), rows, strict=True):
        np.testing.assert_allclose(a, alternating(row.numpy()))


def test_the_empty_tuple():
    def pushes(x):
        found, t = {0: (1, 2)}, 0.0
        for k in range(len(x)):
            for j in found.get(k, ()):
                t += x[j] * k
            found[k + 1] = (k, 0)
        return t

    fast, x = compiled(pushes), series(30)
    for _ in range(2):
        np.testing.assert_allclose(fast(x), pushes(x.numpy()))


def test_the_setting():
    fast = compiled(smoothed)
    with config.patch(loops="recorded"):
        fast(series(20), 0.5)
    assert not is_read(fast)
