"""Random small programs of views, in-place writes, reductions and breaks, compared with NumPy."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ..changing import build, program
from ..support import Copier, check, compare, compiled, examples, observe

# Each step takes the list of arrays (all of shape (4, 3) or views of it) and small numbers a, b.
VIEW = {
    "reverse": lambda x, a, b: x[::-1],
    "flip": lambda x, a, b: x[:, ::-1],
    "itself": lambda x, a, b: x,
    "view": lambda x, a, b: x[...],
    "double transpose": lambda x, a, b: x.T[::-1].T,
    "rows": lambda x, a, b: x[[3, 1, 0, 2]],
    "reshape": lambda x, a, b: x.reshape(-1).reshape(4, 3),
    "roll": lambda x, a, b: np.roll(x, a, 0),
}
PURE = {
    "add": lambda x, y, a, b: x + y,
    "subtract scaled": lambda x, y, a, b: x - a * y,
    "minimum": lambda x, y, a, b: np.minimum(x, y),
    "where": lambda x, y, a, b: np.where(x > y, x, y * 0.5),
    "scaled": lambda x, y, a, b: (x * (b + 0.5)).astype(x.dtype),
    "row mean": lambda x, y, a, b: x - y.mean(axis=0),
    "broadcast": lambda x, y, a, b: x + y[a % 4],
    "column": lambda x, y, a, b: x * y[:, b % 3, None],
    "cumulative": lambda x, y, a, b: np.cumsum(x, axis=a % 2) * 0.25,
    "sorted": lambda x, y, a, b: np.sort(x, axis=a % 2),
    "matmul": lambda x, y, a, b: x @ (y.T @ x) * 0.01,
    "clip": lambda x, y, a, b: np.clip(x, -a, b),
    "stack": lambda x, y, a, b: np.stack([x, y])[a % 2],
    "concatenate": lambda x, y, a, b: np.concatenate([x, y])[b % 5 : b % 5 + 4],
    "scalar": lambda x, y, a, b: x + y[a % 4, b % 3],
    "sum": lambda x, y, a, b: x + y.sum() * 0.125,
    "abs": lambda x, y, a, b: np.abs(x),
    "float": lambda x, y, a, b: x + float(y[0, 0]),
    "branch": lambda x, y, a, b: x if y.sum() > a else -x,
    "mask": lambda x, y, a, b: x + x[x > 0].size,
}
WRITE = {
    "row": lambda x, y, a, b: x.__setitem__(a % 4, y[b % 4]),
    "column": lambda x, y, a, b: x.__setitem__((slice(None), a % 3), y[:, b % 3]),
    "part": lambda x, y, a, b: x.__setitem__(slice(a % 3, None), y[: 4 - a % 3]),
    "add": lambda x, y, a, b: x.__iadd__(y),
    "scale": lambda x, y, a, b: x.__imul__(2),
    "shift": lambda x, y, a, b: x[1:].__iadd__(x[:-1]),
    "element": lambda x, y, a, b: x.__setitem__((a % 4, b % 3), a - b),
    "mask": lambda x, y, a, b: x.__setitem__(y > a, b),
    "out": lambda x, y, a, b: np.subtract(y, 1, out=x, casting="unsafe"),
    "sort": lambda x, y, a, b: x.sort(axis=0),
    "reverse": lambda x, y, a, b: x.__setitem__(slice(None), x[::-1]),
    "steps": lambda x, y, a, b: x[::2].__setitem__((slice(None), slice(None, None, 2)), a),
    "fill": lambda x, y, a, b: x[a % 4].fill(b),
    "fancy": lambda x, y, a, b: x.__setitem__(([0, 2], [a % 3, b % 3]), y[1, :2]),
}

numbers = st.integers(0, 5)
pick = st.integers(0, 7)
step = st.one_of(
    st.tuples(st.just("view"), st.sampled_from(sorted(VIEW)), pick, pick, numbers, numbers),
    st.tuples(st.just("pure"), st.sampled_from(sorted(PURE)), pick, pick, numbers, numbers),
    st.tuples(st.just("write"), st.sampled_from(sorted(WRITE)), pick, pick, numbers, numbers),
)


def run(steps, arrays, repeat):
    arrays = list(arrays)
    for _ in range(repeat):
        for kind, name, i, j, a, b in steps:
            x, y = arrays[i % len(arrays)], arrays[j % len(arrays)]
            if kind == "view":
                arrays.append(VIEW[name](x, a, b))
            elif kind == "pure":
                arrays.append(PURE[name](x, y, a, b))
            else:
                WRITE[name](x, y, a, b)
        arrays = arrays[:3] + arrays[-4:]
    return arrays


@st.composite
def programs(draw):
    steps = draw(st.lists(step, min_size=1, max_size=9))
    dtype = draw(st.sampled_from(["f8", "f4", "i8", "i4", "u1"]))
    rng = np.random.default_rng(draw(st.integers(0, 5)))
    base = rng.integers(0, 9, (4, 6)).astype(dtype)
    layout = draw(st.sampled_from(["apart", "overlapping", "transposed", "the same"]))
    first = {
        "apart": lambda: [base[:, :3].copy(), base[:, 3:].copy()],
        "overlapping": lambda: [base[:, :3], base[:, 1:4]],
        "transposed": lambda: [rng.integers(0, 9, (3, 4)).astype(dtype).T, base[::-1, ::2]],
        "the same": lambda: [base[:, :3], base[:, :3]],
    }[layout]()
    return steps, first, draw(st.sampled_from([1, 1, 2, 11]))


@settings(
    max_examples=examples(150), deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip
@given(programs())
def test_random_programs(program):
    steps, arrays, repeat = program

    def f(arrays, repeat):
        return run(steps, arrays, repeat)

    check(f, arrays, repeat, rtol=1e-5 if arrays[0].dtype == np.float32 else 1e-9)


@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(programs())
def test_random_programs_under_aot_eager(program):
    steps, arrays, _ = program

    def f(arrays):
        return run(steps, arrays, 1)

    rtol = 1e-5 if arrays[0].dtype == np.float32 else 1e-9
    check(f, arrays, backend="aot_eager", new=False, rtol=rtol)


INDEX = st.one_of(
    st.integers(-5, 4),
    st.builds(
        slice, st.none() | st.integers(-6, 6), st.none() | st.integers(-6, 6),
        st.none() | st.sampled_from([-3, -2, -1, 1, 2, 3]),
    ),
    st.just(None),
    st.just(Ellipsis),
    st.sampled_from([np.array([0, 2, -1]), [1, 1], np.array([[0, 1], [2, 0]]), np.int64(1), True,
    False]),
    st.sampled_from([np.array([True, False, True, False, True]), np.array([1.5]), "a"]),
)  # fmt: skip


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(INDEX, min_size=1, max_size=4), st.booleans())
def test_random_indices_read_and_write(key, reverse):
    key = key[0] if len(key) == 1 else tuple(key)

    def f(x):
        y = x[::-1] if reverse else x
        part = y[key]
        y[key] = 7
        y[key] += 1
        return part, x

    check(f, np.arange(60.0).reshape(5, 4, 3), new=False)


@st.composite
def changing(draw):
    made, steps, results = build(lambda n: draw(st.integers(0, n - 1)), 8)
    return made, steps, results, draw(st.sampled_from([1, 1, 3, 12])), draw(st.integers(0, 9))


@settings(
    max_examples=examples(150), deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip
@given(changing())
def test_random_views_at_changing_indices(case):
    arrays, steps, results, rounds, k = case
    f = program(steps, results, rounds)
    fast, _ = compiled(f, dynamic=True if rounds < 12 else None)
    for number in (k, k + 1, k + 3):
        mine, theirs = Copier()((number, *arrays)), Copier()((number, *arrays))
        compare(observe(fast, theirs, {}), observe(f, mine, {}), 1e-5)
