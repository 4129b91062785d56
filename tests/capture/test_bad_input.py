"""Mistakes: each has its error class, the user's line and the remedy; nothing else is changed."""

from __future__ import annotations

import collections
import functools
import re
import warnings

import numpy as np
import pytest
import torch

import np_compile
from np_compile import errors, shim

from ..support import check, compiled, data, observe


def test_an_unknown_backend():
    with pytest.raises(errors.UnknownBackend) as e:
        np_compile.compile(lambda x: x, backend="fast")
    text = str(e.value)
    assert "'fast'" in text
    for name in ("'eager'", "'aot_eager'", "'inductor'"):
        assert name in text
    assert "callable" in text
    assert "docs/errors.md#unknown-backend" in text
    assert isinstance(e.value, ValueError)


@pytest.mark.parametrize("backend", [3, 1.5, ["eager"], b"eager"])
def test_a_backend_of_another_type(backend):
    with pytest.raises(errors.UnknownBackend, match=type(backend).__name__):
        np_compile.compile(lambda x: x, backend=backend)


@pytest.mark.parametrize("dynamic", ["yes", 2, []])
def test_a_wrong_dynamic(dynamic):
    with pytest.raises(errors.SettingError, match="expected True, False or None"):
        np_compile.compile(lambda x: x, dynamic=dynamic)


def test_an_unknown_setting():
    with (
        pytest.raises(errors.SettingError, match="no setting named 'nonsense'"),
        np_compile.config.patch(nonsense=1),
    ):
        pass


def generator(x):
    yield x


async def coroutine(x):
    return x


async def asynchronous_generator(x):
    yield x


class Class:
    pass


@pytest.mark.parametrize(
    ("what", "word", "remedy"),
    [
        (generator, "generator function", "compile the function that"),
        (asynchronous_generator, "generator function", "compile the function that"),
        (coroutine, "coroutine function", "await around it"),
        (Class, "is a class", "methods one by one"),
        (3, "is no function", ""),
        (None, "", ""),
        (np.sin, "not written in Python", "wrap it in a function"),
        (len, "not written in Python", "wrap it in a function"),
    ],
)
def test_what_is_no_plain_function(what, word, remedy):
    if what is None:
        assert callable(np_compile.compile(None))
        return
    for wrapper in (np_compile.compile, np_compile.wrap_numpy):
        with pytest.raises(errors.NotCompilable, match=word) as e:
            wrapper(what)
        assert remedy in str(e.value)
        assert isinstance(e.value, TypeError)


def test_a_generator_function_names_its_line():
    with pytest.raises(errors.NotCompilable) as e:
        np_compile.compile(generator)
    assert f"{__file__}:{generator.__code__.co_firstlineno}" in str(e.value)


@pytest.mark.filterwarnings("ignore:__array_wrap__:DeprecationWarning")
def test_a_tensor_given_to_a_plain_compiled_function_is_explained():
    fast, counter = compiled(lambda x, y: np.sin(x) + y)
    for args in [(torch.ones(3), np.ones(3)), (np.ones(3), torch.ones(3))]:
        try:
            want = np.sin(args[0]) + args[1]
        except TypeError as e:
            with pytest.raises(TypeError, match=re.escape(str(e))):
                fast(*args)
            continue
        report = np_compile.explain(fast)(*args)
        assert torch.equal(report.result, want)
        assert "wrap_numpy" in str(report)
    assert counter.count <= 1


@pytest.mark.filterwarnings("ignore:__array_wrap__:DeprecationWarning")
def test_a_tensor_in_a_structure_given_to_a_plain_compiled_function():
    fast, _ = compiled(lambda d: np.sin(d["x"][0]))
    got = fast({"x": [torch.ones(3)]})
    assert type(got) is torch.Tensor
    torch.testing.assert_close(got, torch.sin(torch.ones(3)))


def test_an_object_array_runs_in_numpy():
    a = np.array([1, "b", None, [2]], dtype=object)
    check(lambda a, x: (a[1], len(a), x * 2, a[:2]), a, data(3), alias=False, new=False)
    check(lambda a: a + 1, np.array([1, 2.5, 10**30], dtype=object), new=False)
    check(lambda a, x: a + x, np.array([1, 2, 3], dtype=object), data(3), new=False)


@pytest.mark.parametrize("dtype", ["U3", "S3", "M8[D]", "m8[s]", "g", "V4"])
def test_arrays_that_tensors_cannot_hold_run_in_numpy(dtype):
    a = np.zeros(3, dtype)
    check(lambda a, x: (a[1:], a == a, x * 2, a.dtype, a.reshape(3, 1)), a, data(3), new=False)


def test_byte_swapped_arrays():
    check(lambda x: (x * 2, x.sum(), x.dtype), data(4).astype(">f8"), new=False)
    check(lambda x: x.__iadd__(1), data(4).astype(">i4"), new=False)


def test_misaligned_arrays():
    raw = np.zeros(33, np.uint8)
    x = raw[1:].view(np.float64)
    x[:] = [1, 2, 3, 4]
    check(lambda x: (x * 2, x.__iadd__(1)), x, new=False)


def test_strides_that_are_no_multiple_of_the_element():
    r = np.zeros(4, dtype=[("a", "u1"), ("b", "f8")])
    r["b"] = np.arange(4.0)
    check(lambda b: (b * 2, b.__iadd__(1)), r["b"], new=False)


@pytest.mark.parametrize("backend", ["eager", "native"])
@pytest.mark.parametrize("shape", [(1,), (1, 1), (0,), (1, 2)], ids=str)
def test_strides_that_are_no_multiple_along_an_axis_of_one_element(shape, backend):
    """NumPy calls such an array contiguous and aligned: it is a field of one record, say."""

    def f(x):
        x += 1
        return x * 2, x.sum(), x[:1], x[::-1]

    odd = np.lib.stride_tricks.as_strided(np.zeros(8), shape, (12, 8)[: len(shape)])
    check(f, odd, backend=backend, new=False)
    fast = np_compile.compile(f, backend=backend)
    for k in range(6):
        x = np.ones(1, dtype=[("a", "f8"), ("b", "i4")])["a"] if k % 2 else np.ones(1)
        assert fast(x)[0] == 4
        assert x == 2


def test_subclasses_run_in_numpy():
    class Tagged(np.ndarray):
        pass

    m = np.ma.masked_array(data(4), [True, False, False, True])
    check(lambda m: (m.sum(), m * 2, m.filled(0)), m, new=False, alias=False)
    x = data(2, 2).view(Tagged)
    got, want = compiled(lambda x: x * 2)[0](x), x * 2
    assert type(got) is Tagged
    np.testing.assert_array_equal(got, want)
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix([[1.0, 2.0], [3.0, 4.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        got, want = compiled(lambda m: m * m)[0](matrix), matrix * matrix
    assert type(got) is np.matrix
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "what", [None, "text", object(), {1, 2}, {"a": 1}, b"b", [1, "a"], 3.5, [1, 2]]
)
def test_a_non_array_where_an_array_is_needed(what):
    check(lambda x, w: x + w, data(2), what, new=False)
    check(lambda x, w: (x * 2, np.sin(w)), data(2), what, new=False)


@pytest.mark.parametrize(
    "name", ["sum", "max", "mean", "var", "all", "nansum", "ptp", "count_nonzero"]
)
@pytest.mark.parametrize("axis", [[1], [0, 1], []], ids=str)
def test_a_list_is_no_axes(name, axis):
    """As of NumPy's reductions. Those that are written in Python take one."""
    check(lambda x: getattr(np, name)(x, axis=axis), data(2, 3), new=False)
    check(lambda x: (np.flip(x, (0,)), np.median(x, axis=axis)), data(2, 3))


@pytest.mark.parametrize("axis", [[1], range(2), {}, 1.5, (1,), None], ids=str)
def test_axes_of_a_vector_norm(axis):
    check(lambda x: np.linalg.vector_norm(x, axis=axis), data(2, 3), new=False)


@pytest.mark.parametrize("axis", [2, True, "a", (0, 0), 2**40, 1.0, np.array(1)], ids=repr)
def test_axes_of_what_runs_as_a_whole(axis):
    """Such a call fails where it runs: its words are NumPy's, not torch's."""
    check(lambda x: np.nanargmax(x + 1, axis=axis), data(2, 3), new=False)


@pytest.mark.parametrize("axis", [2, True, "a", (0, 0)], ids=repr)
def test_axes_of_what_runs_as_a_whole_on_tensors(axis):
    def f(x):
        return np.nanargmax(x + 1, axis=axis)

    numpys = observe(f, (data(2, 3),), {}).error
    wrapped = np_compile.wrap_numpy(f)
    for fast in (wrapped, compiled(wrapped)[0]):
        with pytest.raises(type(numpys), match=re.escape(str(numpys))):
            fast(torch.from_numpy(data(2, 3)))


@pytest.mark.parametrize("sections", [3.5, 2.5, 2.0, 3, np.float32(1.5)])
def test_parts_by_a_number_that_is_no_integer(sections):
    """What is left is NumPy's of that number; nothing asks for the parts."""
    fast = np_compile.compile(lambda x: len(np.split(x, sections)), backend="eager")
    for n in (12, 7, 33, 5, 33, 0):
        seen = []
        for f in (fast.__wrapped__, fast):
            try:
                seen.append(f(np.ones(n)))
            except ValueError as e:
                seen.append(str(e))
        assert seen[0] == seen[1], n


def test_axes_that_a_tensor_equation_has_not():
    check(lambda a, b: np.linalg.tensorsolve(a + 1, b, axes=(5,)), np.eye(3), data(3), new=False)


def test_a_complex_value_beyond_real_points():
    check(lambda x: np.interp(x + 1, [0, 1], [0, 3], left=1j), data(3), new=False)
    check(lambda x, v: np.interp(x + 1, [0, 1], [0, 3], right=v), data(3), 2j, new=False)
    check(lambda x, v: np.interp(x + 1, [0, 1], [0, 3j], right=v), data(3), 2j, new=False)


def test_a_non_array_where_an_array_is_needed_in_methods():
    check(lambda x: x.sum(), [1, 2, 3])
    check(lambda x: np.sum(x), [1, 2, 3])
    check(lambda x: np.dot(x, (4, 5, 6)), [1, 2, 3])
    check(lambda x: x[0] + np.mean(x), (1.0, 2.0))


def test_ragged_lists_raise_as_numpy_does():
    check(lambda x: np.array([[1, 2], [3]]) + x, data(2))


def failing_backend(graph, example_inputs):
    raise OSError("no space left")


def test_a_backend_that_fails_to_compile():
    fast = np_compile.compile(lambda x: np.sin(x) + 1, backend=failing_backend)
    x = data(3)
    with pytest.raises(errors.BackendError) as e:
        fast(x)
    text = str(e.value)
    assert "OSError: no space left" in text
    assert "failing_backend" in text
    assert "backend='eager'" in text
    assert "docs/errors.md#backend-failed" in text


def test_a_backend_that_gives_nothing_to_call():
    fast = np_compile.compile(lambda x: np.sin(x) + 1, backend=lambda graph, inputs: None)
    with pytest.raises(errors.BackendError, match="NoneType"):
        fast(data(3))


def test_a_failed_call_leaves_the_callers_arrays():
    fast = np_compile.compile(lambda x: x.__iadd__(1), backend=failing_backend)
    x, before = data(3), data(3)
    with pytest.raises(errors.BackendError):
        fast(x)
    np.testing.assert_array_equal(x, before)


def test_a_compiled_function_works_after_an_error():
    def f(x, n):
        y = x * 2
        if n == 0:
            raise RuntimeError("zero")
        return y[n]

    fast, _ = compiled(f)
    for n, error in [(1, None), (0, RuntimeError), (2, None), (9, IndexError), (1, None)]:
        if error is None:
            assert fast(data(4), n) == data(4)[n] * 2
        else:
            with pytest.raises(error):
                fast(data(4), n)
    assert not np_compile.is_compiling()


def test_disable_by_argument_and_setting():
    def f(x):
        return type(x) is np.ndarray and not np_compile.is_compiling()

    assert np_compile.compile(f, disable=True, backend="eager")(data(2)) is True
    with np_compile.config.patch(disable=True):
        assert np_compile.compile(f, backend=failing_backend)(data(2)) is True


def test_all_errors_have_one_base_and_a_section():
    kinds = [
        errors.SettingError, errors.UnknownBackend, errors.BackendError, errors.GraphBreak,
        errors.NotCompilable,
        errors.TensorArgument, errors.GradientLost,
    ]  # fmt: skip
    for kind in kinds:
        assert issubclass(kind, errors.NpCompileError)
        assert f"docs/errors.md#{kind.section}" in str(kind("text"))
    assert len({k.section for k in kinds}) == len(kinds)


def test_a_dict_subclass_and_a_user_list_are_left_as_they_are():
    class Names(dict):
        pass

    def f(d, o, c):
        return d["a"] * 2, type(d).__name__, list(o), c.most_common(1)

    d, o = Names(a=data(2)), collections.OrderedDict(b=data(2), a=1)
    want = f(d, o, collections.Counter("aab"))
    got = compiled(f)[0](d, o, collections.Counter("aab"))
    np.testing.assert_array_equal(got[0], want[0])
    assert type(got[0]) is np.ndarray
    assert got[1:] == want[1:]


def test_a_memoryview_is_no_key():
    def f(x):
        y = np.cos(x)
        np.asarray(memoryview(y))[:2] = 5.0
        return y

    check(f, data(4))


@pytest.mark.parametrize(
    "call",
    ["np.indices(len(v) for v in [x, x])", "np.zeros(n for n in (2, 3))",
     "np.tile(x, (n for n in (2, 2)))", "np.broadcast_to(x, (n for n in (2, 6)))",
     "np.sum(v for v in x)", "np.max(v for v in x)", "np.fromiter((v * 2 for v in x), float)",
     "np.hstack(v for v in [x, x])", "np.rot90(x.reshape(2, 3), 1, iter((0, 1)))",
     "np.moveaxis(x.reshape(2, 3), (n for n in (0,)), (n for n in (1,)))",
     "np.zeros(map(len, [x]))"],
)  # fmt: skip
def test_an_iterator_is_not_used_up_before_numpy_gets_it(call):
    scope = {"np": np}
    text = f"def f(x):\n    try:\n        return {call}\n"
    exec(text + "    except TypeError as e:\n        return str(e).partition(' at 0x')[0]", scope)
    check(scope["f"], np.arange(6.0))


@pytest.mark.parametrize(
    "call",
    ["x.reshape((True, 6))", "x.reshape(True, 6)", "np.zeros((True, 2))", "np.zeros(True)",
     "np.sum(y, axis=True)", "y.mean(axis=False)", "np.cumsum(y, axis=True)", "np.eye(True)",
     "np.argmax(y, axis=True)", "np.partition(x, True)", "np.roll(x, True)", "np.diag(x, True)",
     "np.swapaxes(y, False, True)", "np.repeat(y, 2, axis=True)", "np.insert(x, [True, False], 1)",
     "np.sort(y, axis=False)", "np.fft.fft(x, True)", "x[True]", "np.take(x, True)",
     "np.identity(True)", "np.vander(x, True)", "np.bincount([0, 1], minlength=True)",
     "np.stack([x, x], axis=True)", "np.full((True,), 2)", "y.transpose(True, False)",
     "np.squeeze(x[None], False)"],
)  # fmt: skip
def test_a_bool_in_place_of_an_integer(call):
    scope = {"np": np}
    exec(f"def f(x):\n    y = x.reshape(2, 3)\n    return {call}", scope)
    check(scope["f"], np.arange(6.0))


@pytest.mark.parametrize(
    "call",
    ["np.partition(x, 6)", "np.argpartition(x, k)", "x.argpartition((1, 9))", "x.partition(-k)",
     "np.partition(x, [k])"],
)  # fmt: skip
def test_places_to_partition_at_are_looked_at(call):
    scope = {"np": np}
    exec(f"def f(x, k):\n    return {call}", scope)
    for k in (2, 9):
        check(scope["f"], np.arange(6.0), k)


@pytest.mark.parametrize(
    "call",
    ["np.quantile(x, y / 2)", "np.percentile(x, y * 40)", "np.percentile(x, k)",
     "np.nanquantile(x, [0.5, k])", "np.average(x, weights=y - 1.5)", "np.cov(x, aweights=y - 1)",
     "np.unravel_index((y + 1).astype(int), (2, 2))", "np.unravel_index(int(k), (2, 50))",
     "np.ravel_multi_index((y.astype(int), y.astype(int)), (4, 3))", "np.geomspace(y, 1, 3)[0]",
     "np.geomspace(k - 101, 1, 3)", "np.histogram(np.sqrt(2 - y), 3)",
     "np.histogram(x, -y)", "np.histogram(1 + x * 2e-16, 10)", "np.place(x, x > 2, [])",
     "np.digitize(x, np.sin(3 * y))"],
)  # fmt: skip
@pytest.mark.parametrize("backend", ["eager", "native"])
def test_data_that_numpy_refuses(call, backend):
    scope = {"np": np}
    exec(f"def f(x, y, k):\n    r = {call}\n    return r, x + 1", scope)
    f = np_compile.compile(scope["f"], backend=backend)
    given = (101.0, 101.0, 7.0)
    expected = [outcome(scope["f"], k) for k in given]
    assert any(type(e) is tuple for e in expected)
    assert [outcome(f, k) for k in given] == expected


def outcome(f, k):
    """What a call gives as text, or its error's class and text."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return repr(f(np.arange(4.0), np.arange(4.0), k))
        except Exception as error:
            return type(error), str(error)


# -- settings, decorators, tensors ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("loops", "hole", "expected auto, whole or recorded"),
        ("plain", True, "expected a value such as 'auto'"),
        ("unroll", -1, "not negative"),
        ("debug", 9, "a level from 0 to 5"),
        ("disable", "yes", "expected a value such as False"),
        ("backend", "indcutor", "there are eager, aot_eager, inductor, native"),
        ("bakend", "eager", "did you mean 'backend'"),
    ],
)
def test_a_setting_is_looked_at_when_it_is_set(name, value, words):
    config = np_compile.config
    before = getattr(config, name, None)
    with pytest.raises(errors.SettingError, match=words):
        setattr(config, name, value)
    with pytest.raises(errors.SettingError, match=words), config.patch(**{name: value}):
        pass
    assert getattr(config, name, None) == before


@pytest.mark.parametrize("kind", [staticmethod, classmethod])
def test_decorators_above_static_and_class_methods(kind):
    def method(*args):
        return np.sin(args[-1]) * 2

    class Model:
        fast = np_compile.compile(kind(method), backend="eager")
        wrapped = np_compile.wrap_numpy(kind(method))

    x = data(3)
    for owner in (Model, Model()):
        np.testing.assert_allclose(owner.fast(x), np.sin(x) * 2)
        torch.testing.assert_close(owner.wrapped(torch.from_numpy(x)), torch.sin(tensor(x)) * 2)


def tensor(x, grad=False):
    return torch.from_numpy(x).requires_grad_(grad)


@pytest.mark.parametrize("kind", [property, functools.cached_property])
@pytest.mark.parametrize("wrapper", [np_compile.compile, np_compile.wrap_numpy])
def test_a_property_goes_above(kind, wrapper):
    with pytest.raises(errors.NotCompilable, match=f"put @{kind.__name__} above"):
        wrapper(kind(lambda self: np.ones(3)))


def test_a_wrapped_function_is_wrapped_once():
    once = np_compile.wrap_numpy(lambda x: np.sin(x))
    fast = np_compile.compile(once, backend="eager")
    assert np_compile.wrap_numpy(once) is once
    assert np_compile.wrap_numpy(fast) is fast
    torch.testing.assert_close(np_compile.wrap_numpy(once)(torch.ones(3)), torch.sin(torch.ones(3)))


@pytest.mark.parametrize("backend", ["eager", "native"])
def test_a_wrong_call_on_tensors_with_gradients_has_numpys_error(backend):
    def f(x, y):
        return (np.sin(x) + y).sum()

    def reshaped(x, y):
        return np.sin(x).reshape(2, 5) + y

    for g in (f, reshaped):
        fast = np_compile.compile(np_compile.wrap_numpy(g), backend=backend)
        with pytest.raises(ValueError, match="shape") as want:
            g(data(3), data(4))
        with pytest.raises(type(want.value), match=re.escape(str(want.value))):
            fast(tensor(data(3), grad=True), tensor(data(4)))


@pytest.mark.parametrize("backend", ["eager", "native"])
def test_a_leaf_that_is_written_to(backend):
    def f(x):
        x += 1
        return x

    x = tensor(data(3), grad=True)
    fast = np_compile.compile(np_compile.wrap_numpy(f), backend=backend)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad") as e:
            fast(x)
        assert "traceback" not in str(e.value)
    assert x.tolist() == data(3).tolist()


def test_a_function_of_torch_on_an_array_names_the_way_out():
    fast = np_compile.compile(np_compile.wrap_numpy(lambda x: torch.sin(x)), backend="eager")
    with pytest.raises(errors.TensorArgument, match=r"torch's sin .*") as e:
        fast(torch.ones(3))
    assert "torch.from_numpy(x)" in str(e.value)


@pytest.mark.parametrize("made", [3, None, [1.0], [], [np.ones(3)]])
def test_a_back_end_whose_program_gives_no_tensors(made):
    fast = np_compile.compile(lambda x: x + 1, backend=lambda graph, inputs: lambda *args: made)
    with pytest.raises(errors.BackendError, match="a list of 1 tensors"):
        fast(np.ones(3))


def test_a_result_that_no_tensor_can_hold_names_the_function():
    def texts(x):
        return x + 1, np.array(["a"])

    fast = np_compile.compile(np_compile.wrap_numpy(texts), backend="eager")
    with pytest.raises(shim.NotSupported, match="no torch counterpart") as e:
        fast(torch.ones(3))
    line = texts.__code__.co_firstlineno
    assert e.value.__notes__ == [f"  of what {texts.__qualname__} gives, at {__file__}:{line}"]
