"""`x[m]` with a boolean array: recorded while nobody needs to know how many elements it has."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import np_compile
from np_compile import config
from np_compile.errors import GraphBreak
from np_compile.tools.explain import kept_calls

from ..support import check, compiled, data, examples, same, thorough

# Statements over x and c, arrays of one shape, masks m and n, and what is taken by them, y and z.
STATEMENTS = (
    "m = x > 0.5", "m = ~m", "m = m & (c > 0)", "m[1:3] = True", "m[0] = False", "n = m",
    "m = y > 0", "y = x[m]", "z = c[m]", "y = c[n]", "z = x[n]", "y = y * 2", "y += 1", "y *= z",
    "y = y + z", "z = -y", "y = y > z", "y = y + x", "c[m] = x[m]", "x[n] = y * 1",
    "x[m] *= 2", "x[m] += c[m]", "c[n] -= x[n]", "c[m] = x[m] ** 2 + 1", "x[m] = 4",
    "x[x < 0] = x[x < 0] * 3", "x[x > c] += c[x > c]", "w = w + (x[x > 0] * c[x > 0]).sum()",
    "c[np.abs(x) > 1] = x[np.abs(x) > 1] + 1", "y = x[x > 0]; x[0] = -1; z = x[x > 0]",
    "y = x[c > 1] * 2; c[1] = 7; x[c > 1] = y",
    "x[0] = 5", "x[::2] *= -1", "c[...] = x", "x = x[::-1]", "c = c * 1.0",
    "w = w + y.sum()", "w = w + np.prod(z)", "w = w + (y > 0).any() + (z < 2).all()",
    "w = w + y.sum(axis=0).sum() + z.sum(-1).sum()", "w = w + len(y)",
    "w = w + np.mean(y) - z.mean(axis=0).sum()", "w = w + y.var(ddof=1) + np.std(z)",
    "y[y > 0] = 0", "y[y > 0] *= 2", "y[z > 0] = 7", "y[:2] = 0", "y = y[y < 1]",
    "z = z[z > -2]", "z = y[y > 0][:3]", "y = np.sort(y)", "y = np.where(y > 0, y, -1)",
    "z = np.clip(y, -1, 1)", "y = y.astype(np.float32)", "y = x[m].copy()", "np.add(y, 1, y)",
    "z = np.minimum(y, z)", "out.append(y)", "out.extend([v * 2 for v in (y, z)])",
    "y = y - 1 if w > 3 else y", "np_compile.graph_break()",
)  # fmt: skip
SHAPES = ((7,), (0,), (1,), (3, 4), (2, 0), (4, 3, 2))
DTYPES = (np.float64, np.float32, np.int64, np.uint8, np.complex128, np.bool_)


def program(statements, mask):
    lines = [f"m = n = {mask}", "y = x[m]; z = c[m]; w = 0; out = []", *statements]
    lines.append("return x, c, m, y, z, w, out")
    space = {"np": np, "np_compile": np_compile}
    exec("def f(x, c):\n    " + "\n    ".join(lines), space)
    return space["f"]


def miscounts(f, *args):
    """Whether NumPy refuses to assign a wrong number of values: compiled code need not see that."""
    try:
        with np.errstate(all="ignore"):
            f(*(a.copy() for a in args))
    except ValueError as e:
        return "boolean array indexing assignment" in str(e)
    except Exception:
        return False
    return False


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(st.sampled_from(STATEMENTS), max_size=8),
    st.sampled_from(SHAPES),
    st.sampled_from(DTYPES),
    st.sampled_from(DTYPES),
    st.sampled_from(("x > 0", "x > x", "x == x", "x[..., 0] > 0")),
    st.integers(0, 9),
)
@pytest.mark.filterwarnings("ignore")
def test_programs_with_masks_give_what_numpy_gives(statements, shape, dtype, other, mask, seed):
    f = program(statements, "x > 0" if shape in ((0,), (2, 0)) else mask)
    args = data(*shape, dtype=dtype, seed=seed), data(*shape, dtype=other, seed=seed + 1)
    if not miscounts(f, *args) and not miscounts(f, *(np.roll(a, 1) for a in args)):
        check(f, *args, rtol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, -1, -2, None])
@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 2), (4, 1)])
def test_sums_along_the_axes_of_a_selection(shape, axis):
    """The elements that a mask takes lie along one axis, whatever axes the mask has."""

    def f(x):
        rows, elements = x[x[:, 0] > 0], x[x > 0]
        sums = rows.sum(axis=axis), np.mean(rows, axis), rows.any(axis=axis)
        return *sums, elements.sum(axis=-1), elements.prod(axis=0), np.sum(elements, None)

    check(f, data(*shape), rtol=1e-12)


def test_an_axis_that_a_selection_has_not():
    for axis in (1, -2, 2):
        check(lambda x, axis=axis: x[x > 0].sum(axis=axis), data(4, 3))


def signs_of_zero(x, c):
    x[c / 0.0 > 0] = x[c / -0.0 > 0] * 2
    return x


def operand_written_later(x, c):
    a, b = c * 2, c * 2
    b[:2] = b[1::-1]
    x[a > 0] = x[b > 0] * 2
    return x


def operand_written_earlier(x, c):
    a, b = c * 2, c * 2
    b[:2] = b[1::-1]
    x[b > 0] = x[a > 0] * 2
    return x


def operand_written_between(x, c):
    m = c > 0
    c[:2] = c[1::-1]
    x[m] = x[c > 0] * 2
    x[c > 0] = x[m] - 1
    return x


def operand_written_through_a_view(x, c):
    head = c[:2]
    m = c > 0
    head[...] = head[::-1] * 1
    n = c > 0
    x[n] = x[m] * 2
    return x, head


@pytest.mark.parametrize(
    "f",
    [
        signs_of_zero, operand_written_later, operand_written_earlier, operand_written_between,
        operand_written_through_a_view,
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_masks_that_only_look_alike(f):
    check(f, np.arange(1.0, 5.0), np.array([-1.0, 1.0, 2.0, -2.0]), new=False)
    check(f, np.arange(1.0, 5.0), np.array([3.0, -1.0, -2.0, 2.0]), new=False)


# What is one segment


def damped(x):
    x[x > 1.5] = 1.5
    x[x < 0] *= 0.5


def escaping(z, c):
    inside = np.abs(z) < 2
    z[inside] = z[inside] ** 2 + c[inside]
    return z


def twice_the_mask(x):
    x[x < 0] = np.exp(x[x < 0]) - 1
    return x


def rows(x):
    front = x[:, 0] > 0
    x[front] = x[front] * x[0] + 1
    return x[front].sum(axis=0), x[front].sum(), x[front].any()


def narrowed(x):
    y = x[x < 1]
    y[y < 0] *= 2
    y[y > 0.5] = 0
    return y[y < -1].sum(), y.mean(), y.std(), y[y > 9].mean(), x[x > 9].var(ddof=1)


def of_a_view(x):
    x[::2][x[::2] > 0] -= 1
    x.T[x.T < 0] = 3
    return x


def given_back(x):
    y = x[x > 0] * 2
    return y, y + 1


ONE_SEGMENT = [
    (damped, (data(50),)),
    (escaping, (data(50, dtype=complex), data(50, dtype=complex, seed=1))),
    (twice_the_mask, (data(50),)),
    (rows, (data(6, 4),)),
    (narrowed, (data(50),)),
    (of_a_view, (data(8, 6),)),
    (given_back, (data(50),)),
]


@pytest.mark.parametrize("backend", ["eager", "native"])
@pytest.mark.parametrize(("f", "args"), ONE_SEGMENT, ids=lambda v: getattr(v, "__name__", ""))
def test_it_is_one_segment(f, args, backend):
    assert check(f, *args, backend=backend, fullgraph=True).compiles == 1


@pytest.mark.parametrize(("f", "args"), ONE_SEGMENT, ids=lambda v: getattr(v, "__name__", ""))
@pytest.mark.filterwarnings("ignore:(Mean of empty|Degrees of freedom|invalid value)")
def test_calls_are_kept(f, args):
    fast = np_compile.compile(f)
    with config.patch(plain="never"):
        for seed in range(4):
            mine = [np.roll(a, seed) for a in args]
            theirs = [a.copy() for a in mine]
            same((fast(*mine), mine), (f(*theirs), theirs))
    assert len(kept_calls(fast)) == 1


def test_an_array_given_twice_is_one_array():
    def f(x):
        y = x[x > 0]
        return y, [y]

    fast = np_compile.compile(f)
    with config.patch(plain="never"):
        for _ in range(4):
            y, (z,) = fast(data(20))
            assert y is z


# What it holds


def test_later_writes_are_not_seen():
    def f(x):
        m = x > 0
        y, again = x[m], x[m]
        x[m] = 7
        m[:] = True
        x += 1
        y += 1
        return y, again, x[m], m

    assert check(f, data(20)).compiles == 1


def test_two_names_are_one_array():
    def f(x):
        y = z = x[x > 0]
        y *= 2
        z[z > 1] = 0
        return y, z, y is z

    check(f, data(20))


def test_it_survives_breaks():
    def f(x):
        m = x > 0
        y = x[m] + 1
        if x.sum() > 100:
            x += 1
        x *= 2
        m[0] = ~m[0]
        y += 1
        x[m] -= 1
        np_compile.graph_break()
        return x, y * 2, y.sum()

    check(f, data(20))
    check(f, np.zeros(20))


@pytest.mark.parametrize("plain", ["never", "auto", "always"])
def test_loops(plain):
    def f(c, steps):
        z = np.zeros_like(c)
        count = np.zeros(c.shape, np.int64)
        last = None
        for _ in range(steps):
            inside = np.abs(z) < 2
            last = z[inside]
            z[inside] = last * last + c[inside]
            count[inside] += 1
        return count, last

    check(f, data(6, 7, dtype=complex), 40, plain=plain)


def test_attributes():
    def f(x):
        y = x[x > 0] * 2
        return (
            y.ndim, y.dtype, y.shape, y.size, len(y), y.strides, y.flags.owndata, y.base is None,
            isinstance(y, np.ndarray), y.T, y.nbytes, list(y), repr(y), y.tolist(),
        )  # fmt: skip

    for x in (data(9), np.zeros(0), np.ones(1)):
        check(f, x)


def test_what_has_to_know_the_elements():
    def f(x):
        y = x[x > 0]
        return (
            np.concatenate([y, x[x < 0]]), y.reshape(-1, 1), y[0], y[::-1], y.min(), y.max(),
            np.cumsum(y), np.stack([y, y]), y.real, y @ y, np.outer(y, y), y.sum(keepdims=True),
        )  # fmt: skip

    check(f, np.arange(1.0, 9))


def test_arrays_in_objects_and_closures():
    class Box:
        pass

    box = Box()

    def f(x):
        box.y = x[x > 0] * 2
        return len([x])

    fast, _ = compiled(f)
    x = data(20)
    fast(x)
    assert type(box.y) is np.ndarray
    np.testing.assert_array_equal(box.y, x[x > 0] * 2)


# Errors


def other_mask(x):
    x[x > 0] = (x + 1)[x > 0.5]


def more_values(x):
    x[x > 0.5] = x[x > 0]


def other_length(x):
    return x[x > 0] + x[x > 0.5]


def whole_array(x):
    return x[x > 0] * x


def wrong_mask(x):
    return x[x[1:] > 0]


def wrong_cast(x):
    y = x.astype(np.int64)
    y[y > 0] /= 2
    return y


def wrong_argument(x):
    return np.clip(x[x > 0], "a", "b")


@pytest.mark.parametrize(
    "f",
    [other_mask, more_values, other_length, whole_array, wrong_mask, wrong_cast, wrong_argument],
)
def test_errors_are_numpys(f):
    assert check(f, data(20) * 3).first.error is not None


def test_elements_beside_the_mask_raise_nothing():
    def f(x, k):
        m = k > 0
        x[m] = 1 / x[m]
        y = x[m] ** k[m]
        k[m] **= k[m]
        k[m] //= k[m]
        return y, k

    check(f, np.zeros(5), np.array([-2, 0, 1, 2, 3]))


def test_an_integer_out_of_bounds_is_refused():
    def f(x):
        return x[x > 3] + 300

    assert type(check(f, np.arange(9, dtype=np.uint8)).first.error) is OverflowError


def test_a_read_only_array_is_not_written_to():
    x = data(20)
    x.flags.writeable = False
    assert type(check(damped, x).first.error) is ValueError


def test_fullgraph_refuses_what_needs_the_elements():
    def f(x):
        return np.sort(x[x > 0] + 1)

    fast = np_compile.compile(f, fullgraph=True)
    with pytest.raises(GraphBreak, match="depends on the data"):
        fast(data(20))


@pytest.mark.parametrize("backend", [*thorough("eager"), "native"])
@pytest.mark.parametrize(
    ("count", "shape"), [(0, ()), (1, ()), (2, ()), (3, ()), (4, ()), (2, (2,)), (3, (2,))]
)
def test_as_many_values_as_places(backend, count, shape):
    def f(x, m, v):
        y = x + 1
        y[m] = v
        return y

    def in_place(x, m, v):
        x[m] = v

    def handled(x, m, v):
        try:
            x[m] = v
        except ValueError:
            x[:] = -1

    x, m = data(5, *shape), np.array([True, False, True, True, False])
    for function in (f, in_place, handled):
        check(function, x, m, np.ones((count, *shape)), backend=backend)


def test_a_kept_call_counts_the_values_too():
    def f(x, m, v):
        x[m] = v
        return x * 2

    mask, values = np.array([True, False, True]), np.array([5.0, 6.0])
    with config.patch(plain="never"):
        fast = np_compile.compile(f)
        for _ in range(4):
            fast(np.zeros(3), mask, values)
        assert kept_calls(fast)
        x = np.zeros(3)
        for wrong in (~mask, np.ones(3, bool)):
            with pytest.raises(ValueError, match="cannot assign 2 input values to the"):
                fast(x, wrong, values)
        assert not x.any()
        np.testing.assert_array_equal(fast(x, mask, values), [10.0, 0.0, 12.0])


@pytest.mark.parametrize("mask", [[1, 0, 1, 0], [1, 1, 1, 1], [0, 0, 0, 1]])
@pytest.mark.parametrize("columns", [3, 4])
def test_values_of_fewer_axes_than_their_places(mask, columns):
    def f(a, x, m):
        a[m] = x[m]
        return a

    check(f, np.zeros((4, columns)), data(4), np.array(mask, bool))


# Tensors


def of_tensors(f, *args):
    """What the compiled function of tensors gives and leaves in its arguments, as arrays."""

    def arrays(x):
        if isinstance(x, torch.Tensor):
            return x.numpy()
        return type(x)(map(arrays, x)) if isinstance(x, (tuple, list)) else x

    fast = np_compile.compile(np_compile.wrap_numpy(f), backend="eager")
    made = []
    for _ in range(3):
        given = [torch.from_numpy(a.copy()) for a in args]
        made.append((arrays(fast(*given)), arrays(given)))
    return made


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(st.sampled_from(STATEMENTS), max_size=8),
    st.sampled_from(SHAPES),
    st.sampled_from(DTYPES),
    st.sampled_from(DTYPES),
    st.sampled_from(("x > 0", "x > x", "x == x", "x[..., 0] > 0")),
    st.integers(0, 9),
)
@pytest.mark.filterwarnings("ignore")
def test_programs_with_masks_on_tensors(statements, shape, dtype, other, mask, seed):
    f = program(statements, "x > 0" if shape in ((0,), (2, 0)) else mask)
    args = [data(*shape, dtype=dtype, seed=seed), data(*shape, dtype=other, seed=seed + 1)]
    mine = [a.copy() for a in args]
    try:
        with np.errstate(all="ignore"):
            want = f(*mine)
    except Exception as e:
        if not miscounts(f, *args):
            with pytest.raises(type(e)):
                of_tensors(f, *args)
        return
    for got, left in of_tensors(f, *args):
        same(left, mine, rtol=1e-5)
        same(got, tuple(np.asarray(w) if isinstance(w, np.generic) else w for w in want), rtol=1e-5)


def test_a_masked_update_of_tensors_is_one_segment():
    def update(x):
        x[x > 1.5] = 1.5
        x[x < 0] *= 0.5

    fast = np_compile.compile(np_compile.wrap_numpy(update), fullgraph=True)
    for seed in range(4):
        mine = data(200, seed=seed)
        its = torch.from_numpy(mine.copy())
        update(mine)
        fast(its)
        np.testing.assert_array_equal(its, mine)
    assert kept_calls(fast)
    assert len(np_compile.explain(fast)(torch.ones(200)).segments) == 1


def test_selections_of_tensors_are_given_by_kept_calls():
    fast = np_compile.compile(np_compile.wrap_numpy(lambda x: (x[x > 0] * 2, x[x > 9])))
    for seed in range(5):
        x = data(40, seed=seed)
        got = fast(torch.from_numpy(x))
        np.testing.assert_array_equal(got[0], x[x > 0] * 2)
        assert got[1].shape == (0,)
    assert kept_calls(fast)


def test_gradients_do_not_see_what_lies_beside_a_mask():
    """There it is infinite, and zero times that is no zero."""

    def loss(x, w):
        return np.sum(np.sqrt(x[x > 0])) + np.sum(1 / x[x != 0]) * w

    fast = np_compile.compile(np_compile.wrap_numpy(loss))
    x = torch.tensor([-1.0, 0.0, 4.0], dtype=torch.float64)
    w = torch.tensor(2.0, dtype=torch.float64)
    fast(x, w)  # without gradients: one segment
    for wanted in (x, w):
        wanted.requires_grad_()
        (got,) = torch.autograd.grad(fast(x, w), wanted)
        assert got.isfinite().all()
    (gx,) = torch.autograd.grad(fast(x, w), x)
    np.testing.assert_allclose(gx, [-2.0, 0.0, 0.25 - 2 / 16])


WEIGHT = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)


def test_a_gradient_that_comes_later():
    def scaled(x):
        y = np.log(x[x > 0])
        weight = np.multiply(WEIGHT, 1.0)
        return np.sum(y * weight[x > 0])

    fast = np_compile.compile(np_compile.wrap_numpy(scaled))
    x = torch.tensor([-1.0, 2.0, 0.0], dtype=torch.float64)
    (got,) = torch.autograd.grad(fast(x), WEIGHT)
    np.testing.assert_allclose(got, [0, np.log(2), 0])


def copied_backwards(x):
    np.copyto(x[::-1], x, where=x)
    return x


def copied_one_on(x):
    np.copyto(x[1:], True, where=x[:-1])
    return x


def copied_in_place(x):
    np.copyto(x, False, where=x)
    return x


def copied_by_a_mask_backwards(x):
    np.copyto(x, False, where=x[::-1])
    return x


def copied_by_a_row(x):
    np.copyto(x.reshape(2, 2), False, where=x[1:3])
    return x


@pytest.mark.parametrize(
    "f",
    [copied_backwards, copied_one_on, copied_in_place, copied_by_a_mask_backwards, copied_by_a_row],
)
@pytest.mark.parametrize("backend", ["eager", "native"])
def test_a_mask_that_shares_memory_with_what_is_written(f, backend):
    """NumPy looks at it while it writes."""
    fast = np_compile.compile(f, backend=backend)
    for bits in itertools.product((False, True), repeat=4):
        x, y = np.array(bits), np.array(bits)
        assert fast(x).tolist() == f(y).tolist(), bits
