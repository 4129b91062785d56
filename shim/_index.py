"""x[index] and x[index] = value, every kind of index."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from ._assigned import assigned
from ._index_plan import Plan, differentiated, plan, positions_of, readable
from ._ndarray import before_write, check_places, may_share, ndarray, view_of
from ._shapes import common_shape, let_numpy_raise
from ._table import Kind, Row, add_row
from ._unsigned import bits, choose_by, flip, unbits


def getitem(self: ndarray, index: Any, /) -> ndarray:
    """Basic indices give a view (a NumPy scalar when they name one element), others a copy.

    Errors: IndexError in NumPy's words; DataDependent for a mask on a tensor without data.
    """
    if self._scalar and index not in ((), Ellipsis) and not _keeps_scalar(index):
        raise IndexError("invalid index to scalar variable.")
    p = plan(self, index)
    if p.gathers:
        return _gather(p)
    if p.scalar or (self._scalar and isinstance(index, tuple) and index == ()):
        return ndarray(p.view.clone(), (), True)
    return view_of(self, p.view, p.flip)


def _keeps_scalar(index: Any) -> bool:
    """Whether a NumPy scalar takes this index: new axes and ellipses."""
    items = index if isinstance(index, tuple) else (index,)
    return all(i is None or i is Ellipsis or isinstance(i, (bool, np.bool_)) for i in items)


take_index = getitem


def _memory_order(p: Plan) -> tuple[torch.Tensor, list[int], tuple[int, ...]]:
    """The view with the gathered axes in front; those axes; reversed axes among the rest."""
    taken, rest = p.taken(), p.rest()
    backwards = tuple(k for k, d in enumerate(rest) if d in p.flip)
    return p.view.permute(taken + rest), taken, backwards


def _gather(p: Plan) -> ndarray:
    where = positions_of(p)
    front, _, backwards = _memory_order(p)
    found = unbits(torch.ops.aten.index(bits(front), where), front.dtype)
    width = found.dim() - len(p.rest())
    if backwards:
        found = flip(found, tuple(width + k for k in backwards))
    if p.place:
        found = found.movedim(tuple(range(width)), tuple(range(p.place, p.place + width)))
    return ndarray(found, (), found.dim() == 0)


def setitem(self: ndarray, index: Any, value: Any, /) -> None:
    """Assign through any index; the value is broadcast and cast as NumPy does.

    Masks with a value that does not depend on their count need no look at data. Of repeated
    indices the last wins. Errors: ValueError (read-only, shapes), IndexError, TypeError.
    """
    if self._scalar:
        raise TypeError(
            f"'numpy.{self.dtype.type.__name__}' object does not support item assignment"
        )
    if self._readonly:
        raise ValueError("assignment destination is read-only")
    before_write(self, index, value)
    p = plan(self, index)
    check_places(p.view)
    t = self._t
    if p.scalar:
        refuse_list(value, self.dtype)
    v = assigned(value, t.dtype, t.device, p.basic)
    if isinstance(v, torch.Tensor) and v.dim() and may_share(v, t):
        v = v.clone()
    if p.scalar and v.dim():
        v = one_element(v, value)
    if p.gathers:
        _scatter(p, v, index)
        return
    p.view.copy_(_fitted(v, p.view.shape, p.flip))


def refuse_list(value: Any, dtype: np.dtype) -> None:
    """ValueError, TypeError for a list where one element is asked for."""
    if isinstance(value, (list, tuple)):
        let_numpy_raise(np.zeros(1, dtype).__setitem__, 0, type(value)([0] * len(value)))


def one_element(v: torch.Tensor, value: Any) -> torch.Tensor:
    """What becomes one element, of a value with axes. ValueError, unless NumPy takes those."""
    if v.numel() != 1 or not isinstance(value, (ndarray, np.ndarray)):
        raise ValueError("setting an array element with a sequence.")
    let_numpy_raise(np.zeros(1).__setitem__, 0, np.ones(v.shape))  # from NumPy 2.4 on
    return v.reshape(())


def _fitted(v: torch.Tensor, shape: Any, backwards: tuple[int, ...]) -> torch.Tensor:
    """The value broadcast to the shape of the target and laid out as its memory runs."""
    given = v
    while v.dim() > len(shape) and v.shape[0] == 1:
        v = v[0]
    try:
        full = v.expand(shape)
    except RuntimeError:
        raise ValueError(
            f"could not broadcast input array from shape {_text(given.shape)} "
            f"into shape {_text(shape)}"
        ) from None
    if backwards:
        lead = len(shape) - v.dim()
        own = tuple(d - lead for d in backwards if d >= lead and v.shape[d - lead] > 1)
        full = flip(v, own).expand(shape) if own else full
    return full


def _text(shape: Any) -> str:
    return str(tuple(shape)).replace(" ", "")


# assignment through arrays and masks


def _scatter(p: Plan, v: torch.Tensor, index: Any) -> None:
    masks = [t for _, t in p.gathers if t.dtype is torch.bool]
    if len(masks) == 1 and len(p.gathers) == 1 and _fill(p, masks[0], v, index):
        return
    where = positions_of(p)
    front, taken, backwards = _memory_order(p)
    lead = common_shape(*(i.shape for i in where))
    rest = tuple(front.shape[len(taken) :])
    shape = rest[: p.place] + lead + rest[p.place :]
    given = v
    while v.dim() > len(shape) and v.shape[0] == 1:
        v = v[0]
    whole = len(masks) == 1 and not isinstance(index, tuple) and not rest
    if whole and v.dim() == 1 and v.shape[0] not in (1, lead[0]):
        raise ValueError(
            f"NumPy boolean array indexing assignment cannot assign {v.shape[0]} input values "
            f"to the {lead[0]} output values where the mask is true"
        )
    try:
        v = v.expand(shape)
    except RuntimeError:
        raise ValueError(
            f"shape mismatch: value array of shape {_text(given.shape)} could not be broadcast to "
            f"indexing result of shape {_text(shape)}"
        ) from None
    if p.place and lead:
        v = v.movedim(tuple(range(p.place, p.place + len(lead))), tuple(range(len(lead))))
    if backwards:
        v = flip(v, tuple(len(lead) + k for k in backwards))
    unique = bool(masks) and len(p.gathers) == 1
    where = [i.clone() if may_share(i, front) else i for i in where]  # read before any write
    _put(front, where, v, lead, unique)


def _put(front, where, v, lead, unique) -> None:
    """front[where] = v; of repeated places the last wins."""
    count = math.prod(lead)
    sizes = front.shape[: len(where)]
    if unique or count <= 1 or math.prod(sizes) == 0:
        bits(front).index_put_(tuple(where), bits(v))
        return
    line = torch.zeros(lead, dtype=torch.int64, device=front.device)
    for i, n in zip(where, sizes, strict=True):
        line = line * n + torch.where(i < 0, i + n, i)
    line = line.reshape(-1)
    if readable(line) and _distinct(line):
        bits(front).index_put_(tuple(where), bits(v))
        return
    total = math.prod(sizes)
    order = torch.arange(count, device=front.device)
    last = torch.full((total,), -1, dtype=torch.int64, device=front.device)
    last = last.scatter_reduce(0, line, order, "amax")
    rows = bits(v).reshape(count, -1) if v.numel() else None
    if rows is None:
        return
    at = last[line]
    chosen = rows.detach()[at]
    if differentiated(v, front):  # of values for one place the last one has the gradient
        chosen = torch.where((at == order).unsqueeze(-1), rows, chosen)
    bits(front).index_put_(tuple(where), chosen.reshape(v.shape))


def _distinct(line: torch.Tensor) -> bool:
    ordered = torch.sort(line).values
    return not bool((ordered[1:] == ordered[:-1]).any())


def _fill(p: Plan, mask: torch.Tensor, v: torch.Tensor, index: Any) -> bool:
    """Assignment through one mask without its count. False when the value has one for each True."""
    front, taken, backwards = _memory_order(p)
    k = len(taken)
    if k == 0:
        return False
    flipped = tuple(i for i, d in enumerate(taken) if d in p.flip)
    if flipped:
        mask = torch.flip(mask, flipped)
    rest = tuple(front.shape[k:])
    plain = not isinstance(index, tuple) or len(index) == 1
    if plain and v.dim() > 1 and not rest:
        raise TypeError(
            "NumPy boolean array indexing assignment requires a 0 or 1-dimensional input, input "
            f"has {v.dim()} dimensions"
        )
    width = 1 + len(rest)
    given = v
    while v.dim() > width and v.shape[0] == 1:
        v = v[0]
    if v.dim() > width:
        return False
    missing = width - v.dim()
    v = v.reshape((1,) * missing + tuple(v.shape)).movedim(p.place, 0)
    if v.shape[0] == 1:
        if any(n not in (1, m) for n, m in zip(v.shape[1:], rest, strict=True)):
            return _mismatch(given, mask, rest, p.place)
        own = tuple(1 + b for b in backwards if v.shape[1 + b] > 1)
        v = flip(v, own) if own else v
        v = v.reshape((1,) * k + tuple(v.shape[1:]))
        wide = mask.reshape(tuple(mask.shape) + (1,) * len(rest))
        front.copy_(choose_by(wide, v, front))
        return True
    if readable(mask) or flipped or any(m != n for n, m in zip(v.shape[1:], rest, strict=True)):
        return False
    # The values in order. Whether there are as many as places is found out where there are data: it
    # is an index, out of bounds where it is not 0.
    surplus = torch.abs(mask.sum() - v.shape[0]).reshape(1)
    mask = mask & torch.ones(1, dtype=torch.bool, device=mask.device)[surplus]
    if backwards:
        v = flip(v, tuple(1 + b for b in backwards))
    wide = mask.reshape(tuple(mask.shape) + (1,) * len(rest)).expand(front.shape)
    front.copy_(unbits(torch.masked_scatter(bits(front), wide, bits(v)), front.dtype))
    return True


def _mismatch(v: torch.Tensor, mask: torch.Tensor, rest: tuple, place: int) -> bool:
    count = int(mask.sum()) if readable(mask) else "?"
    shape = (*rest[:place], count, *rest[place:])
    raise ValueError(
        f"shape mismatch: value array of shape {_text(v.shape)} could not be broadcast to "
        f"indexing result of shape {_text(shape)}"
    )


for _name, _function, _data in (
    ("__getitem__", getitem, ("self", "index")),
    ("__setitem__", setitem, ("self", "index", "value")),
):
    add_row(Row(f"ndarray.{_name}", _function, Kind.ARRAY, frozenset(_data)))
