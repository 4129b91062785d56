"""Tensors that are more than memory, and tensors that meet arrays in compiled code."""

from __future__ import annotations

import operator
import warnings

import numpy as np
import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.autograd import forward_ad
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vmap

import np_compile
from np_compile import errors

from ..support import data

BACKENDS = ["eager", "native"]


def values():
    return torch.from_numpy(data(3, 4))


class Named(torch.Tensor):
    """A subclass that torch's functions hand on."""


class Dispatching(torch.Tensor):
    """A tensor without memory of its own."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, strides=inner.stride()
        )

    def __init__(self, inner):
        self.content = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        inner = torch.utils._pytree.tree_map_only(cls, lambda t: t.content, (args, kwargs or {}))
        result = func(*inner[0], **inner[1])
        return torch.utils._pytree.tree_map_only(torch.Tensor, cls, result)


def distributed():
    dist = torch.distributed
    if not dist.is_available():
        pytest.skip("torch is built without torch.distributed")
    from torch.distributed.tensor import Replicate, distribute_tensor, init_device_mesh

    if not dist.is_initialized():
        dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return distribute_tensor(values(), init_device_mesh("cpu", (1,)), [Replicate()])


def local(t):
    """The values of an unusual tensor."""
    t = getattr(t, "content", t)
    t = t.to_local() if hasattr(t, "to_local") else t
    t = torch._from_functional_tensor(t) if torch._is_functional_tensor(t) else t
    return t.detach().as_subclass(torch.Tensor).clone().resolve_conj().resolve_neg().numpy()


UNUSUAL = {
    "subclass": lambda: values().as_subclass(Named),
    "dispatching": lambda: Dispatching(values()),
    "distributed": distributed,
    "functional": lambda: torch._to_functional_tensor(values()),
    "conjugate": lambda: (values() + 1j * values()).conj(),
    "negative": lambda: torch._neg_view(values()),
    "zeros": lambda: torch._efficientzerotensor((3, 4), dtype=torch.float64),
}


def pointwise(x):
    return np.sin(x) * 2 + x.sum()


@pytest.mark.parametrize("kept", [False, True], ids=["new", "kept"])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", UNUSUAL)
def test_an_unusual_tensor_runs_operator_by_operator(kind, backend, kept):
    wrapped = np_compile.wrap_numpy(pointwise)
    fast = np_compile.compile(wrapped, backend=backend)
    if kept:
        for _ in range(4):
            fast(values())
    x = UNUSUAL[kind]()
    want = wrapped(x)
    for _ in range(2):
        got = fast(x)
        assert type(got) is type(want)
        np.testing.assert_array_equal(local(got), local(want))
        np.testing.assert_allclose(local(got), pointwise(local(x)), rtol=1e-12)
    assert torch.equal(fast(values()), fast(values()))


@pytest.mark.parametrize("backend", BACKENDS)
def test_tensors_without_data(backend):
    fast = np_compile.compile(np_compile.wrap_numpy(pointwise), backend=backend)
    for _ in range(4):
        fast(values())
    got = fast(values().to("meta"))
    assert got.device.type == "meta"
    assert got.shape == (3, 4)
    with FakeTensorMode() as mode:
        assert type(fast(mode.from_tensor(values()))).__name__ == "FakeTensor"
    assert type(fast(mode.from_tensor(values()))).__name__ == "FakeTensor"


def test_an_unusual_tensor_is_explained():
    fast = np_compile.compile(np_compile.wrap_numpy(pointwise), backend="eager")
    report = np_compile.explain(fast)(values().as_subclass(Named))
    assert type(report.result) is Named
    assert "operator by operator" in str(report)


REFUSED = {
    "sparse": (lambda: values().to_sparse(), "sparse_coo"),
    "compressed": (lambda: values().to_sparse_csr(), "sparse_csr"),
    "quantized": (
        lambda: torch.quantize_per_tensor(values().float(), 0.1, 0, torch.quint8), "quint8",
    ),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "nested"),
    "jagged": (
        lambda: torch.nested.nested_tensor(
            [torch.ones(2), torch.ones(3)], layout=torch.jagged
        ), "nested",
    ),
    "mkldnn": (lambda: values().float().to_mkldnn(), "_mkldnn"),
    "bfloat16": (lambda: values().bfloat16(), "bfloat16"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", REFUSED)
def test_a_tensor_that_no_array_can_stand_for(kind):
    make, word = REFUSED[kind]
    wrapped = np_compile.wrap_numpy(lambda items: items[0] + 1)
    for fast in (wrapped, np_compile.compile(wrapped), np_compile.compile(wrapped)):
        for _ in range(3):
            fast([values()])
        given = [values(), make()]
        with pytest.raises(errors.TensorArgument, match=word) as e:
            fast(given)
        assert "Remedy" in str(e.value)
        assert len(given) == 2
    kept = np_compile.compile(np_compile.wrap_numpy(pointwise))
    for _ in range(3):
        kept(values())
    with pytest.raises(errors.TensorArgument, match=word):
        kept(make())


def test_an_unusual_tensor_met_on_the_way_says_so():
    x = UNUSUAL["dispatching"]()
    fast = np_compile.compile(np_compile.wrap_numpy(lambda y: y * 2 + x), backend="eager")
    with pytest.raises(errors.TensorArgument, match="Dispatching that the function did not get"):
        fast(values())


def writes(x):
    x[0] = 3
    x += 1
    return x.copy()


def trimmed(x, w):
    z = x * w
    y = np.trim_zeros(z)
    z[1] = 5.0
    y[1] = 7.0
    return y * 2, z * 1, np.trim_zeros(z[::-1], "b")


def trimmed_in_a_loop(x, w):
    z = x * w
    for k in range(3):
        y = np.trim_zeros(z)
        z[k] = k
        y[2] += k
    return y * 2, z * 1


def real_part(x, w):
    z = x * w + 0j
    y = np.real_if_close(z)
    z[1] = 5.0
    y[0] = 7.0
    return y * 2, (z * 1).real


@pytest.mark.parametrize("place", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("f", [trimmed, trimmed_in_a_loop, real_part])
def test_views_that_depend_on_data_share_memory(f, place):
    """What torch runs at once, as gradients or a device are asked for."""
    if place == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    x = np.array([0, 0, 1.0, 2, 3, 0])
    for backend in ("eager", "native"):
        fast = np_compile.compile(np_compile.wrap_numpy(f), backend=backend)
        for asked in (True, False):
            w = torch.tensor(2.0, dtype=torch.float64, device=place, requires_grad=asked)
            for _ in range(3):
                made = fast(torch.from_numpy(x.copy()).to(place), w)
                for got, want in zip(made, f(x, 2.0), strict=True):
                    np.testing.assert_array_equal(got.detach().cpu().numpy(), want)


@pytest.mark.parametrize("backend", BACKENDS)
def test_writes_to_elements_that_share_memory(backend):
    def given():
        return torch.as_strided(torch.arange(6.0, dtype=torch.float64), (3, 4), (1, 1))

    want = writes(given().numpy())
    fast = np_compile.compile(np_compile.wrap_numpy(writes), backend=backend)
    plain = np_compile.compile(writes, backend=backend)
    made = np_compile.compile(
        lambda m: (writes(np.lib.stride_tricks.as_strided(m, (3, 4), (8, 8))), m), backend=backend
    )
    for _ in range(4):
        np.testing.assert_array_equal(fast(given()).numpy(), want)
        np.testing.assert_array_equal(plain(given().numpy()), want)
        np.testing.assert_array_equal(made(np.arange(6.0))[0], want)
        row = torch.ones(1, 4)
        assert fast(row.expand(3, 4)).tolist() == [[4.0] * 4] * 3  # as NumPy's, at each write
        assert row.tolist() == [[4.0] * 4]


PLACED = {
    "diagonal": lambda x, y: np.diagonal(x.reshape(4, 3)[::-1]) * 2,
    "strides": lambda x, y: np.lib.stride_tricks.as_strided(x[2:], (4, 3), (8, 16)) * 2,
    "one in the other": lambda x, y: (y.__imul__(3), x + 1)[1],
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", PLACED)
def test_tensors_that_begin_elsewhere_in_their_storage(name, backend):
    fast = np_compile.compile(np_compile.wrap_numpy(PLACED[name]), backend=backend)
    for start in (0, 0, 0, 5, 7, 0):
        x, mine = (torch.arange(24.0, dtype=torch.float64)[start : start + 12] for _ in range(2))
        want = PLACED[name](x.numpy(), x.numpy()[3:9])
        np.testing.assert_array_equal(fast(mine, mine[3:9]).numpy(), want)
        np.testing.assert_array_equal(mine, x)


@pytest.mark.parametrize("backend", BACKENDS)
def test_writes_to_an_inference_tensor(backend):
    fast = np_compile.compile(np_compile.wrap_numpy(writes), backend=backend)
    for _ in range(4):
        fast(values())
        with torch.inference_mode():
            x = values()
            assert fast(x)[0, 0] == 4
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
            fast(x)


# -- containers --------------------------------------------------------------------------------


def changes(d):
    d["new"] = d["x"] * 2
    d["list"].append(d["x"] + 1)
    return d["a"] + d["x"]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_changes_of_containers_arrive(compiled):
    f = np_compile.wrap_numpy(changes)
    f = np_compile.compile(f, backend="eager") if compiled else f
    x, a = torch.ones(2), np.arange(2.0)
    d = {"x": x, "list": [a], "a": a}
    assert torch.equal(f(d), torch.tensor([1.0, 2.0], dtype=torch.float64))
    assert d["x"] is x
    assert d["a"] is a
    assert d["list"][0] is a
    assert torch.equal(d["new"], 2 * x)
    assert torch.equal(d["list"][1], 1 + x)


# -- wrapped functions within compiled code ----------------------------------------------------


def energy(x):
    return (np.sin(x) * x).sum()


TRANSFORMS = {
    "grad": lambda f, x: grad(f)(x),
    "vmap": lambda f, x: vmap(f)(x.expand(2, 3)),
    "jacrev": lambda f, x: jacrev(f)(x),
    "jacfwd": lambda f, x: jacfwd(f)(x),
    "jvp": lambda f, x: jvp(f, (x,), (x,))[1],
    "hessian": lambda f, x: hessian(f)(x),
    "vmap grad": lambda f, x: vmap(grad(f))(x.expand(2, 3)),
    "jacobian": lambda f, x: torch.autograd.functional.jacobian(f, x),
}


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("inner", ["wrapped", "compiled"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_within_compiled_code(name, inner):
    transform = TRANSFORMS[name]
    f = np_compile.wrap_numpy(energy)
    x = torch.arange(3.0, dtype=torch.float64)
    want = transform(f, x)
    f = f if inner == "wrapped" else np_compile.compile(f, backend="eager")

    def outer(z):
        y = np.cos(z)
        made = transform(f, x)
        return y * 2, made, y + 1

    for fast in (
        np_compile.compile(outer, backend="eager"),
        np_compile.compile(np_compile.wrap_numpy(outer), backend="eager"),
    ):
        z = np.ones(2) if fast._tensors is False else torch.ones(2)
        for _ in range(2):
            a, got, b = fast(z)
            assert torch.equal(got, want)
            np.testing.assert_allclose(np.asarray(a), 2 * np.cos(1) * np.ones(2), rtol=1e-6)
            np.testing.assert_allclose(np.asarray(b), 1 + np.cos(1) * np.ones(2), rtol=1e-6)


def test_a_wrapped_function_gives_tensors_to_plain_code_and_arrays_to_wrapped_code():
    inner = np_compile.wrap_numpy(energy)
    x = data(3)
    want = inner(torch.from_numpy(x))
    for f in (inner, np_compile.compile(inner, backend="eager")):
        fast = np_compile.compile(lambda x, f=f: f(x * 1), backend="eager")
        assert torch.equal(fast(x), want)
        for outer in (
            np_compile.wrap_numpy(lambda x, f=f: np.exp(f(x * 1))),
            np_compile.compile(np_compile.wrap_numpy(lambda x, f=f: np.exp(f(x * 1)))),
        ):
            t = torch.from_numpy(x).requires_grad_()
            (g,) = torch.autograd.grad(outer(t), t)
            torch.testing.assert_close(g, torch.exp(want) * (t.cos() * t + t.sin()))


# -- an array and a tensor in one operation ----------------------------------------------------

MIXED = {
    "a * t": lambda a, t: a * t,
    "t * a": lambda a, t: t * a,
    "a @ t": lambda a, t: a @ t,
    "t @ a": lambda a, t: t @ a,
    "a - t": lambda a, t: a - t,
    "t - a": lambda a, t: t - a,
    "a / t": lambda a, t: a / (t + 1),
    "a ** t": lambda a, t: a**t,
    "t ** a": lambda a, t: t**a,
    "a == t": lambda a, t: a == t,
    "t == a": lambda a, t: t == a,
    "a < t": lambda a, t: a < t,
    "t & a": lambda a, t: (t > 0) & (a > 0),
    "a += t": lambda a, t: operator.iadd(a, t),
    "t += a": lambda a, t: operator.iadd(t.clone(), a),
    "add": lambda a, t: np.add(a, t),
    "add t": lambda a, t: np.add(t, a),
    "sin": lambda a, t: np.sin(t),
    "sqrt of none": lambda a, t: np.sqrt(torch.tensor(4.0)),
    "asarray": lambda a, t: np.asarray(t) + a,
    "array": lambda a, t: np.array([t, t]) + a,
    "sum": lambda a, t: np.sum(t),
    "dot": lambda a, t: np.dot(a, t),
    "method": lambda a, t: a.dot(t),
    "concatenate": lambda a, t: np.concatenate([a, t]),
    "where": lambda a, t: np.where(t > 0, a, t),
    "a[t]": lambda a, t: a[t.long()],
    "a[mask]": lambda a, t: a[t > 0],
    "t[a]": lambda a, t: t[a.astype(int)],
    "t[mask]": lambda a, t: t[a > 0],
    "a[:] = t": lambda a, t: (a.__setitem__(slice(None), t), a)[1],
    "t[:] = a": lambda a, t: t.__setitem__(slice(None), a),
    "torch.add": lambda a, t: torch.add(t, a),
    "torch.sin": lambda a, t: torch.sin(a),
    "scalar": lambda a, t: a.max() * t,
    "requires grad": lambda a, t: a * t.requires_grad_(),
    "clip": lambda a, t: np.clip(a, t, 2),
    "bfloat16": lambda a, t: np.sin(t.bfloat16()),
}


def outcome(f, *args):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = f(*args)
    except Exception as e:
        return type(e), str(e)
    return type(result), getattr(result, "dtype", None), str(result)


@pytest.mark.parametrize("name", MIXED)
def test_an_array_and_a_tensor_in_one_operation(name):
    mixed = MIXED[name]

    def f(a, t):
        a = a + np.cos(a) * 0
        return mixed(a, t)

    fast = np_compile.compile(f, backend="eager")
    for _ in range(3):
        a, t = np.arange(3.0), torch.arange(3, dtype=torch.float32)
        assert outcome(fast, a, t) == outcome(f, a.copy(), t.clone())


def test_fullgraph_names_the_tensor():
    fast = np_compile.compile(lambda a, t: np.add(a, t), backend="eager", fullgraph=True)
    with pytest.raises(errors.GraphBreak, match="wrap_numpy"):
        fast(np.ones(3), torch.ones(3))


FAR = torch.empty(3, device="meta")  # as on any device that NumPy does not reach
OF_FAR = {
    "asarray": lambda x: np.asarray(FAR) + x,
    "array": lambda x: np.array(FAR),
    "dtype": lambda x: np.asarray(FAR, dtype=float),
    "made": lambda x: np.asarray(torch.empty(3, device="meta")) * x,
    "numpy": lambda x: FAR.numpy() + x,
    "force": lambda x: FAR.numpy(force=True) + x,
}


@pytest.mark.filterwarnings("ignore:__array__ impl")  # torch's has no `copy`
@pytest.mark.parametrize("f", OF_FAR.values(), ids=OF_FAR)
def test_a_tensor_on_a_device_is_no_array(f):
    fast = np_compile.compile(f, backend="eager")
    with pytest.raises((TypeError, NotImplementedError)) as want:
        f(np.ones(3))
    for _ in range(3):
        with pytest.raises(want.type) as got:
            fast(np.ones(3))
        assert str(got.value) == str(want.value)


# -- memory that arrays and tensors share ------------------------------------------------------


def torch_reads(x, t):
    shared = torch.from_numpy(x)
    x += 1
    return shared.sum()


def torch_writes(x, t):
    shared = torch.from_numpy(x)
    y = x * 2
    shared += 1
    return y, x + 0


def torch_writes_between(x, t):
    shared = torch.from_numpy(x)
    y = x * 2
    shared.add_(1)
    x *= 3
    return y, shared * 1, shared


def of_a_new_array(x, t):
    y = np.sin(x)
    shared = torch.as_tensor(y)
    y *= 2
    return shared * 1, y


def numpy_of_a_tensor(x, t):
    a = t.numpy()
    a += 1
    return t.sum(), x * 2


def asarray_of_a_tensor(x, t):
    a = np.asarray(t)
    a += 1
    return t.sum(), a, x * 2


def array_of_a_tensor(x, t):
    a = np.array(t)
    a += 1
    return t.sum(), a


def twice(x, t):
    a, b = np.asarray(t), t[1:].numpy()
    a *= 2
    b += 1
    return a * 1, b * 1, t


def there_and_back(x, t):
    a = torch.from_numpy(x)[1:].numpy()
    x *= 2
    a += 1
    return x * 1, a * 1


def as_another_dtype(x, t):
    a = torch.from_numpy(x).view(torch.int64).numpy()
    x *= 2
    return a.tolist(), x


@pytest.mark.parametrize("f", [
    torch_reads, torch_writes, torch_writes_between, of_a_new_array, numpy_of_a_tensor,
    asarray_of_a_tensor, array_of_a_tensor, twice, there_and_back, as_another_dtype,
], ids=lambda f: f.__name__)  # fmt: skip
def test_memory_that_an_array_and_a_tensor_share(f):
    fast = np_compile.compile(f, backend="eager")
    for _ in range(3):
        x, t = np.arange(3.0), torch.arange(3.0)
        y, u = x.copy(), t.clone()
        assert outcome(fast, x, t) == outcome(f, y, u)
        np.testing.assert_array_equal(x, y)
        assert torch.equal(t, u)


# -- torch's modes -----------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "native"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_has_no_say(backend, dtype):
    def f(x):
        return (x @ x).sum()

    fast = np_compile.compile(np_compile.wrap_numpy(f), backend=backend)
    x = torch.ones(3, 3, requires_grad=True)
    plain = np_compile.compile(lambda x: x @ x, backend=backend)
    with torch.autocast("cpu", dtype=dtype):
        for _ in range(3):
            for g in (fast, np_compile.wrap_numpy(f)):
                y = g(x)
                assert y.dtype is torch.float32
                assert torch.autograd.grad(y, x)[0].dtype is torch.float32
            third = np.full((2, 2), 1 / 3, np.float32)
            np.testing.assert_array_equal(plain(third), third @ third)


# -- derivatives that are not autograd's ---------------------------------------------------------


def _by_element(x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        y[i] = np.exp(x[i]) if x[i] > 1 else x[i] * 3
    return y


def _over(x):
    x *= 2.0
    return np.sqrt(x) * np.sort(x)


def _scaled_by_a_number(x):
    return float(x[0]) * np.sin(x) + len(x.tolist()) * x


FORWARD = [_by_element, _over, _scaled_by_a_number, lambda x: np.fft.fft(x).real * np.sin(x)]


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", FORWARD)
def test_forward_derivatives(f, compiled):
    wrapped = np_compile.wrap_numpy(f)
    (want,) = (torch.autograd.functional.jacobian(lambda x: wrapped(x * 1), given()).sum(1),)
    fast = np_compile.compile(wrapped, backend="eager") if compiled else wrapped
    for _ in range(2):
        fast(given())
        with forward_ad.dual_level():
            x = given()
            found = forward_ad.unpack_dual(fast(forward_ad.make_dual(x, torch.ones_like(x))))
        torch.testing.assert_close(found.tangent, want)
        _, tangent = jvp(lambda x: fast(x * 1), (given(),), (torch.ones_like(x),))
        torch.testing.assert_close(tangent, want)
        torch.testing.assert_close(jacrev(lambda x: fast(x * 1))(given()).sum(1), want)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_code_outside_that_would_lose_a_forward_derivative():
    outside = np_compile.wrap_numpy(lambda x: np.asarray(memoryview(np.asarray(x, dtype=object))))
    library = np_compile.wrap_numpy(lambda x: np.vectorize(lambda v: v * 2)(x))
    for f, why in ((outside, "dtype"), (library, "derivative, which would be lost")):
        lost = pytest.raises(NotImplementedError, match=why)
        with forward_ad.dual_level(), lost:
            f(forward_ad.make_dual(given(), given()))
        with lost:
            jvp(f, (given(),), (given(),))


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_vmap_over_code_that_writes_and_asks():
    def f(x):
        y = np.zeros_like(x, dtype=float)
        y[0], y[1:] = x[1], x[:-1] * 2
        return y

    x = torch.arange(12).reshape(3, 4)
    fast = np_compile.wrap_numpy(f)
    assert vmap(fast)(x).tolist() == [f(row).tolist() for row in x.numpy()]
    slope = jacrev(lambda x: fast(x.sin()))
    rows = x.double()
    assert torch.equal(vmap(slope)(rows), torch.stack([slope(row) for row in rows]))
    with pytest.raises(NotImplementedError, match="vmap: what differs among its examples"):
        vmap(np_compile.wrap_numpy(lambda x, y: y.__setitem__(0, x[1])), (0, None))(x, x[0] * 1)
    with pytest.raises(RuntimeError, match="vmap: Python asks for the elements"):
        vmap(np_compile.wrap_numpy(lambda x: x * float(x[0])))(x)


def _views_written(x):
    y = np.zeros((2, 3))
    row, turned = y[1], y.T
    row[:] = x
    turned[0] *= x[:2]
    y[0, :] += x
    return y * turned[1, 1]


def _places_written(x):
    y = np.ones(4)
    y[np.argmax(x)] = 2.0
    np.add.at(y, np.array([0, 0, 1]), x)
    y[::-1][0] = x[2]
    y.flat[2] = x[0]
    return y * x[0]


def _outputs_written(x):
    y, z, m = np.zeros(3), np.zeros(3), np.ones((3, 3))
    np.add(y, x, out=y)
    y[x > 0] = x[1]
    np.cumsum(x, out=z)
    np.copyto(z, x, where=x < 2)
    np.fill_diagonal(m, x)
    np.dot(m, x, out=y)
    m[0].fill(x[1])
    return y * z + m.sum(axis=0)


def _integers_written(x):
    y = np.arange(3)
    y[0] = (x > 0).sum()
    return y * x


@pytest.mark.parametrize(
    "f", [_views_written, _places_written, _outputs_written, _integers_written]
)
def test_arrays_of_the_functions_own_are_written_to_under_vmap(f):
    fast = np_compile.wrap_numpy(f)
    rows = torch.tensor([[1.0, -2.0, 3.0], [3.0, -3.0, 7.0], [-1.0, 2.0, -3.0]]).double()
    for g in (fast, jacrev(fast), jacfwd(fast), grad(lambda x: (fast(x) ** 2).sum())):
        want = torch.stack([g(row) for row in rows])
        torch.testing.assert_close(vmap(g)(rows), want)
    np.testing.assert_allclose(vmap(fast)(rows), [f(row) for row in rows.numpy()])


# -- what torch does around a wrapped function -------------------------------------------------


def given():
    return torch.arange(1.0, 5.0, dtype=torch.float64)


def slope(y, x):
    (g,) = torch.autograd.grad(y.sum(), x)
    return g


AROUND = {}


def around(f):
    AROUND[f.__name__] = f
    return f


@around
def requires_grad_toggled(wrap):
    fast = wrap(lambda x: (np.sin(x) * x).sum())
    x = given()
    for k in range(6):
        y = fast(x.requires_grad_(k % 2 == 1))
        if y.requires_grad:
            y.backward()
    return x.grad


@around
def no_grad_within(wrap):
    def f(x):
        with torch.no_grad():
            y = np.sin(x) * 2
        with torch.enable_grad():
            z = y * x
        return z * 3

    x = given().requires_grad_()
    return slope(wrap(f)(x), x)


@around
def detached_within(wrap):
    def f(x):
        return x * torch.from_numpy(np.asarray(x)).detach().numpy()

    x = given().requires_grad_()
    return slope(wrap(f)(x), x)


@around
def backward_within(wrap):
    def f(x):
        t = torch.from_numpy(np.asarray(x) * 1).detach().requires_grad_()
        (t * t).sum().backward()
        return np.asarray(t.grad) + x

    return wrap(f)(given())


@around
def in_place_within_history(wrap):
    def f(x, z):
        z[1:] += x[1:] ** 2
        z *= 2
        return z.sum()

    x, z = given().requires_grad_(), torch.ones(4, dtype=torch.float64)
    wrap(f)(x, z).backward()
    return x.grad, z


@around
def parameters_in_objects(wrap):
    class Holder:
        pass

    def f(o, x):
        o.y = o.w * x
        return (o.y * o.items[0]).sum() + o.named["k"].sum()

    o = Holder()
    o.w = torch.nn.Parameter(given())
    o.items, o.named = [given().requires_grad_()], {"k": given().requires_grad_()}
    wrap(f)(o, given()).backward()
    return o.w.grad, o.items[0].grad, o.named["k"].grad, o.y


@around
def a_parameter_in_a_closure(wrap):
    p = torch.nn.Parameter(given())
    wrap(lambda x: (x * p + np.sin(p)).sum())(given()).backward()
    return p.grad


@around
def checkpointed(wrap):
    x = given().requires_grad_()
    f = wrap(lambda x: np.sin(x) * x)
    return slope(torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False), x)


@around
def saved_elsewhere(wrap):
    x = given().requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: [t.clone()], lambda t: t[0]):
        y = wrap(lambda x: np.sin(x) * x)(x)
    return slope(y, x)


@around
def hooked(wrap):
    x = given().requires_grad_()
    x.register_hook(lambda g: g * 2)
    y = wrap(lambda x: np.sin(x) * x)(x)
    y.register_hook(lambda g: g * 3)
    return slope(y, x)


@around
def counted(wrap):
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        wrap(lambda x: x @ x)(torch.ones(4, 4))
    return counter.get_total_flops()


@around
def traced_by_make_fx(wrap):
    from torch.fx.experimental.proxy_tensor import make_fx

    return make_fx(wrap(lambda x: np.sin(x) * 2))(given())(given() * 3)


@around
def traced_by_jit(wrap):
    f = wrap(lambda x: np.sin(x) * 2)
    return torch.jit.trace(lambda x: f(x), (given(),))(given() * 3)


@around
def called_from_torch_compile(wrap):
    f = wrap(lambda x: np.sin(x) * 2 + x.sum())
    x = given().requires_grad_()
    y = torch.compile(lambda x: f(x) + 1, backend="eager")(x)
    return y, slope(y, x)


@around
def the_same_tensor_twice(wrap):
    def f(a, b):
        a += 1
        return a is b, a + b

    x = given()
    return wrap(f)(x, x), x


def plain_values(x):
    if isinstance(x, (list, tuple)):
        return [v for y in x for v in plain_values(y)]
    return [x.tolist(), x.dtype, x.requires_grad] if isinstance(x, torch.Tensor) else [x]


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning",
    "ignore::torch.jit.TracerWarning",
    "ignore:The .grad attribute of a Tensor:UserWarning",  # of torch.compile's
)
@pytest.mark.parametrize("name", AROUND)
def test_what_torch_does_around_a_wrapped_function(name):
    f = AROUND[name]
    want = plain_values(f(np_compile.wrap_numpy))
    for backend in BACKENDS:
        got = f(lambda g: np_compile.compile(np_compile.wrap_numpy(g), backend=backend))  # noqa: B023
        for g, w in zip(plain_values(got), want, strict=True):
            assert g == pytest.approx(w) if isinstance(w, list) else g == w
