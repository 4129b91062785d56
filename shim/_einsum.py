"""einsum: subscripts parsed here, operands contracted pair by pair as matrix products."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from ._dtypes import TO_NUMPY, result_type
from ._matmul import matmul, summed
from ._ndarray import as_array, ndarray
from ._normalize import DType, Raw, Static, function
from ._parts import diagonal_of
from ._shapes import (
    inverse,
    is_f_contiguous,
    let_numpy_raise,
    permuted,
    stand_in,
    viewed,
    walked_axes,
)
from ._table import Kind
from ._unsigned import cast

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
Labels = list  # one label for each axis: a letter, or ("...", k) counted from the right


def _interleaved(operands: tuple) -> tuple[str, list]:
    """The form einsum(a, [0, 1], b, [1, 2], [0, 2]) as subscripts and arrays."""
    arrays, parts = [], []
    rest = list(operands)
    while len(rest) >= 2:
        arrays.append(rest.pop(0))
        parts.append(_subscript(rest.pop(0)))
    text = ",".join(parts)
    return (f"{text}->{_subscript(rest[0])}" if rest else text), arrays


def _subscript(labels: Any) -> str:
    numbers = [x for x in labels if x is not Ellipsis]
    if any(isinstance(x, int) and not 0 <= x < len(_LETTERS) for x in numbers):
        raise ValueError(f"subscript is not within the valid range [0, {len(_LETTERS)})")
    return "".join("..." if x is Ellipsis else _LETTERS[x] for x in labels)


def _split_terms(text: str, count: int) -> tuple[list[str], str | None]:
    text = text.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    terms = inputs.split(",")
    letters = inputs.replace(",", "") + output
    good = len(terms) == count and all(c in _LETTERS or c == "." for c in letters)
    good = good and all(
        t.count(".") in (0, 3) and t.count("...") == t.count(".") // 3 for t in (*terms, output)
    )
    if not good:
        raise ValueError("einsum: malformed subscripts")
    return terms, output if arrow else None


def _labels(term: str, ndim: int) -> Labels:
    head, dots, tail = term.partition("...")
    width = ndim - len(head) - len(tail)
    if width < 0 or (width and not dots):
        raise ValueError("einsum: subscripts do not match the number of dimensions")
    return [*head, *(("...", width - k) for k in range(width)), *tail]


def _parse(text: str, shapes: list) -> tuple[list[Labels], Labels, dict]:
    """Labels of the operands and of the result, and the extent of each label."""
    terms, output = _split_terms(text, len(shapes))
    inputs = [_labels(t, len(s)) for t, s in zip(terms, shapes, strict=True)]
    sizes: dict = {}
    for labels, shape in zip(inputs, shapes, strict=True):
        for x, n in zip(labels, shape, strict=True):
            if sizes.get(x, 1) == 1:
                sizes[x] = n
            elif n not in (1, sizes[x]):
                raise ValueError("einsum: extents of one label differ")
    dots = sorted((x for x in sizes if isinstance(x, tuple)), key=lambda x: -x[1])
    if output is None:
        flat = [x for labels in inputs for x in labels if isinstance(x, str)]
        result = [*dots, *sorted(x for x in set(flat) if flat.count(x) == 1)]
    else:
        head, given, tail = output.partition("...")
        if (dots and not given) or len(set(head + tail)) != len(head + tail):
            raise ValueError("einsum: output subscripts do not fit")
        result = [*head, *(dots if given else ()), *tail]
        if any(x not in sizes for x in result):
            raise ValueError("einsum: output label not in the inputs")
    return inputs, result, sizes


def _diagonals(a: ndarray, labels: Labels) -> tuple[ndarray, Labels]:
    """Axes with one label become their diagonal."""
    labels = list(labels)
    while len(set(labels)) != len(labels):
        x = next(x for x in labels if labels.count(x) > 1)
        i = labels.index(x)
        j = labels.index(x, i + 1)
        if a.shape[i] != a.shape[j]:
            raise ValueError("einsum: extents of one label differ")
        a = diagonal_of(a, 0, i, j)
        labels = [y for d, y in enumerate(labels) if d not in (i, j)] + [x]
    return a, labels


def _arranged(t: torch.Tensor, labels: Labels, wanted: Labels) -> torch.Tensor:
    """Axes in the order of `wanted`, with extent one for labels that are absent."""
    t = t.permute([labels.index(x) for x in wanted if x in labels])
    for d, x in enumerate(wanted):
        if x not in labels:
            t = t.unsqueeze(d)
    return t


def _reduced(t: torch.Tensor, labels: Labels, keep: set) -> tuple[torch.Tensor, Labels]:
    """Sum over the labels that nobody else needs."""
    gone = tuple(d for d, x in enumerate(labels) if x not in keep)
    return summed(t, gone), [x for x in labels if x in keep]


def _contract(
    a: torch.Tensor, la: Labels, b: torch.Tensor, lb: Labels, keep: set, sizes: dict
) -> tuple[torch.Tensor, Labels]:
    """Two operands as one batched matrix product; labels outside `keep` are summed over."""
    a, la = _full(a, la, set(lb), sizes)
    b, lb = _full(b, lb, set(la), sizes)
    a, la = _reduced(a, la, keep | set(lb))
    b, lb = _reduced(b, lb, keep | set(la))
    batch = [x for x in la if x in lb and x in keep]
    over = [x for x in la if x in lb and x not in keep]
    left = [x for x in la if x not in lb]
    right = [x for x in lb if x not in la]

    def extent(labels: Labels, t: torch.Tensor, own: Labels) -> list:
        return [t.shape[own.index(x)] for x in labels]

    nb, nl = extent(batch, a, la), extent(left, a, la)
    no, nr = extent(over, a, la), extent(right, b, lb)
    p, k = math.prod(nb), math.prod(no)
    a = _arranged(a, la, batch + left + over).reshape(p, math.prod(nl), k)
    b = _arranged(b, lb, batch + over + right).reshape(p, k, math.prod(nr))
    return matmul(a, b).reshape(nb + nl + nr), batch + left + right


def _full(t: torch.Tensor, labels: Labels, shared: set, sizes: dict) -> tuple:
    """Extents of one broadcast to those of their label, where the label is shared."""
    shape = [sizes[x] if x in shared else n for x, n in zip(labels, t.shape, strict=True)]
    return t.expand(shape), labels


def _pairs(text: str, tensors: list, optimize: Any) -> list:
    """The order of contraction: NumPy's path, or from left to right."""
    n = len(tensors)
    if n < 3 or optimize is False:
        return [(0, 1)] * max(n - 1, 0)
    path = np.einsum_path(text, *map(stand_in, tensors), optimize=optimize)[0]
    return [step for step in path[1:] if len(step) > 1]


def _stride(t: torch.Tensor, axis: int) -> int:
    return 0 if t.shape[axis] == 1 else t.stride(axis)


def contracted(text: str, arrays: list, optimize: Any) -> ndarray:
    """The einsum of arrays of one dtype: a view where one operand is only rearranged."""
    inputs, output, sizes = _parse(text, [a.shape for a in arrays])
    operands = [_diagonals(a, x) for a, x in zip(arrays, inputs, strict=True)]
    if len(operands) == 1 and set(operands[0][1]) == set(output):
        a, labels = operands[0]
        axes = tuple(labels.index(x) for x in output)
        view = permuted(a, axes) if axes else viewed(a, a._t.view_as(a._t), a._flip)
        return view
    work = [(a.tensor, labels) for a, labels in operands]
    walked = [*output, *sorted(x for x in sizes if x not in output and isinstance(x, str))]
    strides = [
        tuple(_stride(t, labels.index(x)) if x in labels else 0 for x in walked)
        for t, labels in work
    ]
    for step in _pairs(text, arrays, optimize):
        taken = [work[i] for i in step]
        work = [w for i, w in enumerate(work) if i not in step]
        t, labels = taken[0]
        for k, (other, names) in enumerate(taken[1:], 1):
            needed = set(output).union(*(x for _, x in work), *(x for _, x in taken[k + 1 :]))
            t, labels = _contract(t, labels, other, names, needed, sizes)
        if optimize is False:
            work.insert(0, (t, labels))
        else:
            work.append((t, labels))
    t, labels = work[0]
    t, labels = _full(t, labels, set(labels), sizes)
    t, labels = _reduced(t, labels, set(output))
    result = t.permute([labels.index(x) for x in output])
    result = result.clone() if result.is_conj() or result._is_view() else result
    if optimize is False and result.dim() > 1:
        axes = tuple(d for d in walked_axes(strides, len(walked)) if d < result.dim())
        result = result.permute(axes).contiguous().permute(inverse(axes))
    return ndarray(result)


@function()
def einsum(
    *operands: Raw,
    out: Raw = None,
    optimize: Static = False,
    dtype: DType = None,
    order: str = "K",
    casting: str = "safe",
):
    """Sum of products named by subscripts, "ij,jk->ik", or by lists of axis numbers.

    A view where one operand is only rearranged, else a fresh array. optimize: as in NumPy, the
    order in which more than two operands are contracted. Errors: ValueError, in NumPy's words.
    """
    if not operands:
        np.einsum()
    text, arrays = (
        (operands[0], list(operands[1:]))
        if isinstance(operands[0], str)
        else _interleaved(operands)
    )
    if order not in ("C", "F", "A", "K"):
        few = [0.0] * len(arrays)
        let_numpy_raise(
            np.einsum, "," * (len(few) - 1), *few, order=order, optimize=bool(optimize)
        )  # fmt: skip
        order = "K" if order is None else order.upper()
    arrays = [as_array(a) for a in arrays]
    if not arrays:
        np.einsum(text)
    options = {} if dtype is None else {"dtype": TO_NUMPY[dtype]}
    target = dtype
    if target is None:
        extra = [out._t.dtype] if type(out) is ndarray and not optimize else []
        target = result_type(*(a._t.dtype for a in arrays), *extra)
    for a in arrays:
        if not np.can_cast(a.dtype, TO_NUMPY[target], casting):
            let_numpy_raise(
                np.einsum, ",".join(["i"] * len(arrays)), *(np.zeros(1, b.dtype) for b in arrays),
                casting=casting, **options,
            )  # fmt: skip
    converted = [
        a if a._t.dtype is target else ndarray(cast(a._t, target), a._flip) for a in arrays
    ]
    try:
        result = contracted(text, converted, optimize)
    except ValueError:
        let_numpy_raise(np.einsum, text, *map(stand_in, arrays), optimize=optimize)
        raise
    result = _finished(result, arrays, converted, out, order, casting)
    if out is None and optimize is not False and result.ndim == 0 and len(arrays) > 1:
        # NumPy gives a 0-D array or a scalar, by how its last step was computed.
        small = np.einsum(text, *(np.zeros((2,) * a.ndim) for a in arrays), optimize=optimize)
        result._scalar = not isinstance(small, np.ndarray)
    return result


def _finished(
    result: ndarray, arrays: list, converted: list, out: Any, order: str, casting: str
) -> ndarray:
    if out is not None:
        if type(out) is not ndarray:
            raise TypeError("return arrays must be of ArrayType")
        if out._readonly:
            raise ValueError("output array is read-only")
        if tuple(out.shape) != tuple(result.shape):
            raise ValueError(
                f"output array has wrong shape {tuple(out.shape)}, expected {tuple(result.shape)}"
            )
        if not np.can_cast(result.dtype, out.dtype, casting):
            let_numpy_raise(
                np.einsum, "i->i", np.zeros(1, result.dtype), out=np.zeros(1, out.dtype),
                casting=casting,
            )  # fmt: skip
        from ._ndarray import store

        return store(out, ndarray(cast(result.tensor, out._t.dtype)))
    if result.base is not None and converted[0] is not arrays[0]:
        result = ndarray(result._t, result._flip)  # a view of a conversion, which nobody else has
    if result.ndim == 0:
        return ndarray(result._t.clone() if result.base is not None else result._t, (), True)
    if order == "A":
        order = "F" if all(is_f_contiguous(a) for a in arrays) else "C"
    if order in ("C", "F") and result.base is None:
        from ._ufuncs import _laid_out

        return ndarray(_laid_out(result.tensor, order))
    return result


@function(kind=Kind.QUERY)
def einsum_path(*operands: Raw, optimize: Static = "greedy", einsum_call: bool = False):
    """NumPy's own answer, from the shapes: the order of contraction, and a table of its cost."""
    if not isinstance(operands[0], str):
        text, arrays = _interleaved(operands)
        operands = (text, *arrays)
    shapes = [stand_in(as_array(a)._t, as_array(a).dtype) for a in operands[1:]]
    return np.einsum_path(operands[0], *shapes, optimize=optimize, einsum_call=einsum_call)
