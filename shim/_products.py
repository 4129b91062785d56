"""Products of arrays: dot, matmul and its kin, outer, tensordot, cross, kron, trace."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import torch

from ._dtypes import TO_NUMPY, NotSupported, result_type, torch_dtype
from ._matmul import conjugate, matmul, product
from ._ndarray import as_tensor, before_write, ndarray, write
from ._normalize import Array, DType, Into, NoValue, Out, Raw, Static, function
from ._parts import diagonal_of
from ._reduce import reduce_engine
from ._shapes import common_shape, let_numpy_raise, let_numpy_warn, normalize_axis, stand_in
from ._ufuncs import _laid_out
from ._unsigned import cast, from_signed, to_signed

_memo: dict[tuple, torch.dtype] = {}


def _loop_dtype(ufunc: Any, a: torch.Tensor, b: torch.Tensor, dtype: Any, casting: str) -> Any:
    """The dtype a gufunc computes in, by NumPy's resolution."""
    key = (ufunc, a.dtype, b.dtype, dtype, casting)
    found = _memo.get(key)
    if found is None:
        more = {} if dtype is None else {"signature": (None, None, TO_NUMPY[dtype])}
        given = (TO_NUMPY[a.dtype], TO_NUMPY[b.dtype], None)
        found = torch_dtype(ufunc.resolve_dtypes(given, casting=casting, **more)[0])
        _memo[key] = found
    return found


def _as_pair(a: torch.Tensor, b: torch.Tensor, dtype: torch.dtype) -> tuple:
    if a.device != b.device:
        a, b = (a.to(b.device), b) if a.dim() == 0 else (a, b.to(a.device))
    return cast(a, dtype), cast(b, dtype)


# generalized ufuncs


def _columns(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return matmul(a, b.unsqueeze(-1)).squeeze(-1)


def _rows(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return matmul(conjugate(a).unsqueeze(-2), b).squeeze(-2)


def _vectors(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return matmul(conjugate(a).unsqueeze(-2), b.unsqueeze(-1)).squeeze(-1).squeeze(-1)


# name -> (computes, core dimensions of the two operands, the axes that must agree)
_GUFUNCS = {
    "matmul": (matmul, (1, 1), (-1, -2)),
    "vecdot": (_vectors, (1, 1), (-1, -1)),
    "matvec": (_columns, (2, 1), (-1, -1)),
    "vecmat": (_rows, (1, 2), (-1, -2)),
}


def _fits(name: str, a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether the shapes agree: core dimensions equal, loop dimensions broadcasting."""
    _, (na, nb), (ia, ib) = _GUFUNCS[name]
    if a.dim() < na or b.dim() < nb:
        return False
    core_a, core_b = (2, 2) if name == "matmul" else (na, nb)
    ib = -1 if b.dim() == 1 else ib
    if a.shape[ia] != b.shape[ib]:
        return False
    lead = zip(reversed(a.shape[:-core_a]), reversed(b.shape[:-core_b]), strict=False)
    return all(n == m or n == 1 or m == 1 for n, m in lead)


def _gufunc(name: str, x1: Any, x2: Any, options: dict) -> ndarray:
    """One call of matmul, vecdot, matvec or vecmat, with the options of a gufunc."""
    ufunc = getattr(np, name)
    a, b = as_tensor(x1), as_tensor(x2)
    if options["axes"] is not NoValue:
        raise NotSupported(f"np.{name}(axes=)")
    if options["signature"] is not None:
        raise NotSupported(f"np.{name}(signature=)")
    axis, keepdims = options["axis"], options["keepdims"]
    if name != "vecdot" and (axis is not NoValue or keepdims):
        more = {} if axis is NoValue else {"axis": axis}
        more.update({"keepdims": True} if keepdims else {})
        let_numpy_raise(ufunc, np.ones((1, 1)), np.ones((1, 1)), **more)
    if axis is not NoValue:
        place = axis
        a, b = (t.movedim(normalize_axis(place, t.dim()), -1) for t in (a, b))
    if not _fits(name, a, b):
        let_numpy_raise(ufunc, stand_in(a), stand_in(b))
    dtype = _loop_dtype(ufunc, a, b, options["dtype"], options["casting"])
    result = _GUFUNCS[name][0](*_as_pair(a, b, dtype))
    if keepdims:
        result = result.unsqueeze(-1)
        if axis is not NoValue:
            result = result.movedim(-1, normalize_axis(axis, result.dim()))
    if options["order"] == "F":
        result = _laid_out(result, "F")
    elif options["order"] not in ("C", "K", "A"):
        let_numpy_raise(ufunc, np.ones((1, 1)), np.ones((1, 1)), order=options["order"])
    out = options["out"][0] if isinstance(options["out"], tuple) else options["out"]
    core = {"matmul": (a.dim() > 1) + (b.dim() > 1), "vecdot": 0}.get(name, 1)
    if type(out) is ndarray and core and out.shape[-core:] != tuple(result.shape[-core:]):
        let_numpy_raise(ufunc, stand_in(a), stand_in(b), out=np.empty(out.shape, bool))
    return _into(name, options["out"], result, options["casting"])


def _into(name: str, out: Any, result: torch.Tensor, casting: str) -> ndarray:
    if isinstance(out, tuple):
        if len(out) != 1:
            raise ValueError("The 'out' tuple must have exactly one entry per ufunc output")
        out = out[0]
    if out is None:
        return ndarray(result, (), result.dim() == 0)
    if type(out) is not ndarray or out._scalar:
        raise TypeError("return arrays must be of ArrayType")
    if out._readonly:
        raise ValueError("output array is read-only")
    if not np.can_cast(TO_NUMPY[result.dtype], out.dtype, casting):
        let_numpy_raise(
            getattr(np, name),
            *(np.zeros((1, 1), TO_NUMPY[result.dtype]) for _ in range(2)),
            out=np.zeros((1,) if name != "matmul" else (1, 1), out.dtype),
            casting=casting,
        )
    try:
        result = cast(result, out._t.dtype).expand(out._t.shape)
    except RuntimeError:
        raise ValueError(
            f"non-broadcastable output operand with shape {_text(out.shape)} doesn't match the "
            f"broadcast shape {_text(result.shape)}"
        ) from None
    write(out, result)
    return out


def _text(shape: Any) -> str:
    return str(tuple(shape)).replace(" ", "")


def _enter_gufunc(name: str, says: str) -> None:
    def call(
        x1: Raw,
        x2: Raw,
        /,
        out: Raw = None,
        *,
        axes: Static = NoValue,
        axis: Static = NoValue,
        keepdims: bool = False,
        casting: str = "same_kind",
        order: str = "K",
        dtype: DType = None,
        subok: bool = True,
        signature: Static = None,
    ):
        return _gufunc(
            name,
            x1,
            x2,
            {
                "out": out,
                "axes": axes,
                "axis": axis,
                "keepdims": keepdims,
                "casting": casting,
                "order": order,
                "dtype": dtype,
                "signature": signature,
            },
        )

    call.__name__, call.__doc__ = name, says
    function(name)(call)


_SAYS = {
    "matmul": "x1: [..., n, k], x2: [..., k, m] -> [..., n, m]; vectors lose their axis.",
    "vecdot": "x1, x2: [..., n] -> [...]: sum(conj(x1) * x2).",
    "matvec": "x1: [..., m, n], x2: [..., n] -> [..., m].",
    "vecmat": "x1: [..., n], x2: [..., n, m] -> [..., m], with conj(x1).",
}
for _name, _says in _SAYS.items():
    if hasattr(np, _name):
        _enter_gufunc(_name, _says)

_PLAIN = {
    "out": None,
    "axes": NoValue,
    "axis": NoValue,
    "keepdims": False,
    "casting": "same_kind",
    "order": "K",
    "dtype": None,
    "signature": None,
}


def matrix_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """np.matmul of two tensors of any dtypes, as a tensor."""
    return _gufunc("matmul", ndarray(a), ndarray(b), _PLAIN)._t


@function("linalg.matmul")
def _linalg_matmul(x1: Array, x2: Array, /):
    """As np.matmul."""
    return matrix_product(x1, x2)


@function("linalg.vecdot")
def _linalg_vecdot(x1: Array, x2: Array, /, *, axis: int = -1):
    """As np.vecdot along one axis."""
    return _gufunc("vecdot", ndarray(x1), ndarray(x2), {**_PLAIN, "axis": axis})


# dot


def _not_aligned(a: torch.Tensor, i: int, b: torch.Tensor, j: int) -> ValueError:
    return ValueError(
        f"shapes {_text(a.shape)} and {_text(b.shape)} not aligned: "
        f"{a.shape[i]} (dim {i % a.dim()}) != {b.shape[j]} (dim {j % b.dim()})"
    )


def _contracted(a: torch.Tensor, b: torch.Tensor, i: int, j: int) -> torch.Tensor:
    """The sum over axis i of `a` against axis j of `b`; the remaining axes of a, then of b."""
    if a.shape[i] != b.shape[j]:
        raise _not_aligned(a, i, b, j)
    if a.dim() <= 2 and b.dim() <= 2:
        left = a.movedim(i, -1)
        right = b if j % b.dim() == 0 else b.movedim(j, 0)
        return matmul(left, right)
    left, right = a.movedim(i, -1), b.movedim(j, 0)
    n = a.shape[i]
    flat = matmul(
        left.reshape(math.prod(left.shape[:-1]), n), right.reshape(n, math.prod(right.shape[1:]))
    )
    return flat.reshape(left.shape[:-1] + right.shape[1:])


def dot_tensors(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """np.dot of two tensors, as a fresh tensor. ValueError for shapes that are not aligned."""
    a, b = _as_pair(a, b, result_type(a.dtype, b.dtype))
    if a.dim() == 0 or b.dim() == 0:
        return _scaled(a, b)
    return _contracted(a, b, -1, -2 if b.dim() > 1 else -1)


def _scaled(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The product with a number: NumPy's BLAS adds that of several elements to zeros."""
    scaled = product(a, b)
    return scaled + 0.0 if scaled.dtype in _OF_BLAS and scaled.numel() != 1 else scaled


_OF_BLAS = frozenset((torch.float32, torch.float64, torch.complex64, torch.complex128))


def _exactly_into(out: Any, result: torch.Tensor) -> ndarray:
    """`out=` of dot: no casts, no broadcasting, C order. One number is also a result of its own."""
    if out is None:
        return ndarray(result, (), result.dim() == 0)
    if type(out) is not ndarray:
        raise TypeError("'out' must be an array")
    exact = result.dtype.is_floating_point or result.dtype.is_complex
    if (
        exact
        and out._t.dtype is result.dtype
        and out.ndim == result.dim()
        and tuple(out.shape) != tuple(result.shape)
    ):
        raise ValueError("output array has wrong dimensions")
    if (
        out._t.dtype is not result.dtype
        or tuple(out._t.shape) != tuple(result.shape)
        or out._flip
        or not out._t.is_contiguous()
        or out._readonly
    ):
        raise ValueError(
            "output array is not acceptable (must have the right datatype, number of dimensions, "
            "and be a C-Array)"
        )
    before_write(out, result)
    out._t.copy_(result)
    return out if result.dim() else ndarray(result, (), True)


# Whether a list of nothing as first operand has the dtype of the second, as from NumPy 2.5 on.
_BOTH_WAYS = np.dot([], np.zeros(0, "i1")).dtype == np.int8


def operands(a: Any, b: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Of a product: a list that tells of no dtype has that of the other one."""
    s, t = as_tensor(a), as_tensor(b)
    if _holds_nothing(b):
        return s, cast(t, s.dtype)
    return (cast(s, t.dtype) if _BOTH_WAYS and _holds_nothing(a) else s), t


def _holds_nothing(x: Any) -> bool:
    return isinstance(x, (list, tuple, range)) and all(map(_holds_nothing, x))


@function(method=True)
def dot(a: Raw, b: Raw, out: Raw = None):
    """Sum over the last axis of `a` and the second to last of `b`. ValueError if not aligned."""
    return _exactly_into(out, dot_tensors(*operands(a, b)))


@function()
def inner(a: Raw, b: Raw, /):
    """Sum over the last axes of both. ValueError where they differ."""
    a, b = operands(a, b)
    a, b = _as_pair(a, b, result_type(a.dtype, b.dtype))
    if a.dim() == 0 or b.dim() == 0:
        return _scaled(a, b)
    return _contracted(a, b if b.dim() == 1 else b.mT, -1, -2 if b.dim() > 1 else -1)


@function()
def vdot(a: Raw, b: Raw, /):
    """Sum of conj(a) * b over all elements: a scalar. ValueError for sizes that differ."""
    a, b = operands(a, b)
    a, b = _as_pair(a.reshape(-1), b.reshape(-1), result_type(a.dtype, b.dtype))
    if a.shape != b.shape:
        let_numpy_raise(np.vdot, np.zeros(tuple(a.shape)), np.zeros(tuple(b.shape)))
    return matmul(conjugate(a), b)


# outer products


@function(scalar=False)
def outer(a: Array, b: Array, out: Out = None):
    """a: [n], b: [m] -> [n, m]: all products; both are flattened."""
    a, b = _as_pair(a.reshape(-1), b.reshape(-1), result_type(a.dtype, b.dtype))
    return product(a.unsqueeze(1), b.unsqueeze(0))


@function("linalg.outer", scalar=False)
def _linalg_outer(x1: Array, x2: Array, /):
    """x1: [n], x2: [m] -> [n, m]. ValueError for other numbers of dimensions."""
    if x1.dim() != 1 or x2.dim() != 1:
        raise ValueError(
            "Input arrays must be one-dimensional, but they are "
            f"x1.ndim={x1.dim()} and x2.ndim={x2.dim()}."
        )
    a, b = _as_pair(x1, x2, result_type(x1.dtype, x2.dtype))
    return product(a.unsqueeze(1), b.unsqueeze(0))


@function()
def kron(a: Array, b: Array):
    """The Kronecker product: each element of `a` times the whole of `b`, in blocks."""
    a, b = _as_pair(a, b, result_type(a.dtype, b.dtype))
    if a.dim() == 0 or b.dim() == 0:
        return product(a, b)
    n = max(a.dim(), b.dim())
    a = a[(None,) * (n - a.dim()) + (...,)]
    b = b[(None,) * (n - b.dim()) + (...,)]
    shape = [i * j for i, j in zip(a.shape, b.shape, strict=True)]
    for d in range(n):
        a, b = a.unsqueeze(2 * d + 1), b.unsqueeze(2 * d)
    return product(a, b).reshape(shape).contiguous()


# tensordot


def _axis_lists(axes: Any) -> tuple[list, list]:
    if isinstance(axes, (tuple, list)) or hasattr(axes, "__iter__"):
        first, second = axes
    else:
        first, second = range(-axes, 0), range(axes)
    as_list = [list(x) if hasattr(x, "__iter__") else [x] for x in (first, second)]
    return tuple([operator.index(d) for d in x] for x in as_list)


def _tensordot(a: torch.Tensor, b: torch.Tensor, axes: Any) -> torch.Tensor:
    over_a, over_b = _axis_lists(axes)
    if len(set(over_a)) != len(over_a) or len(set(over_b)) != len(over_b):
        let_numpy_raise(np.tensordot, stand_in(a), stand_in(b), axes)
        raise ValueError("duplicate axes are not allowed in tensordot")
    agree = len(over_a) == len(over_b) and all(
        a.shape[i] == b.shape[j] for i, j in zip(over_a, over_b, strict=True)
    )
    if not agree:
        raise ValueError("shape-mismatch for sum")
    over_a = [d % a.dim() for d in over_a]
    over_b = [d % b.dim() for d in over_b]
    free_a = [d for d in range(a.dim()) if d not in over_a]
    free_b = [d for d in range(b.dim()) if d not in over_b]
    shape = [a.shape[d] for d in free_a] + [b.shape[d] for d in free_b]
    terms = math.prod(a.shape[d] for d in over_a)
    left = a.permute(free_a + over_a).reshape(math.prod(a.shape[d] for d in free_a), terms)
    right = b.permute(over_b + free_b).reshape(terms, math.prod(b.shape[d] for d in free_b))
    left, right = _as_pair(left, right, result_type(a.dtype, b.dtype))
    return matmul(left, right).reshape(shape)


@function(scalar=False)
def tensordot(a: Array, b: Array, axes: Static = 2):
    """Sum over several axes of both: the remaining axes of `a`, then those of `b`.

    axes: a number (the last of `a` with the first of `b`) or two lists. ValueError on mismatch.
    """
    return _tensordot(a, b, axes)


@function("linalg.tensordot", scalar=False)
def _linalg_tensordot(x1: Array, x2: Array, /, *, axes: Static = 2):
    """As np.tensordot."""
    return _tensordot(x1, x2, axes)


# cross products


def _minus(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return from_signed(to_signed(a) - to_signed(b), a.dtype)


def _cross(a: torch.Tensor, b: torch.Tensor, axes: tuple, axisc: int) -> torch.Tensor:
    if a.dim() < 1 or b.dim() < 1:
        raise ValueError("At least one array has zero dimension")
    a = a.movedim(normalize_axis(axes[0], a.dim(), "axisa"), -1)
    b = b.movedim(normalize_axis(axes[1], b.dim(), "axisb"), -1)
    flat = a.shape[-1] == 2 and b.shape[-1] == 2
    if a.shape[-1] != 3 or b.shape[-1] != 3:  # an error or deprecated, by the version of NumPy
        let_numpy_warn(np.cross, np.zeros(int(a.shape[-1])), np.zeros(int(b.shape[-1])))
    try:
        shape = common_shape(a.shape[:-1], b.shape[:-1])
    except ValueError:
        let_numpy_raise(np.broadcast, stand_in(a[..., 0]), stand_in(b[..., 0]))
        raise
    if not flat:
        axisc = normalize_axis(axisc, len(shape) + 1, "axisc")
    a, b = _as_pair(a, b, result_type(a.dtype, b.dtype))
    if a.dtype is torch.bool:
        let_numpy_raise(np.cross, np.zeros(3, bool), np.zeros(3, bool))
    a, b = (_with_third(t) if not flat else t for t in (a, b))

    def component(i: int, j: int) -> torch.Tensor:
        return _minus(product(a[..., i], b[..., j]), product(a[..., j], b[..., i]))

    if flat:
        return component(0, 1)
    parts = (component(1, 2), component(2, 0), component(0, 1))
    return torch.stack([p.expand(shape) for p in parts], -1).movedim(-1, axisc)


def _with_third(t: torch.Tensor) -> torch.Tensor:
    if t.shape[-1] == 3:
        return t
    zero = torch.zeros((*t.shape[:-1], 1), dtype=t.dtype, device=t.device)
    return torch.cat((t, zero), -1)


@function(scalar=False)
def cross(
    a: Array, b: Array, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Static = None
):
    """The cross product of vectors of three components (or two). ValueError, AxisError."""
    if axis is not None:
        axisa = axisb = axisc = operator.index(axis)
    return _cross(a, b, (axisa, axisb), axisc)


@function("linalg.cross", scalar=False)
def _linalg_cross(x1: Array, x2: Array, /, *, axis: int = -1):
    """The cross product of vectors of three components. ValueError for others."""
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, but they are "
            f"{x1.shape[axis]} and {x2.shape[axis]} dimensional instead."
        )
    return _cross(x1, x2, (axis, axis), axis)


# trace


@function(method=True)
def trace(
    a: Array,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DType = None,
    out: Into = None,
):
    """The sum over the diagonals of two axes. ValueError, AxisError."""
    return reduce_engine("add", diagonal_of(ndarray(a), offset, axis1, axis2)._t, -1, dtype)


@function("linalg.trace")
def _linalg_trace(x: Array, /, *, offset: int = 0, dtype: DType = None):
    """The sum over the diagonals of the last two axes."""
    return reduce_engine("add", diagonal_of(ndarray(x), offset, -2, -1)._t, -1, dtype)
