"""Objects that attributes of ndarray give: flags and the flat iterator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ._assigned import assigned
from ._index import getitem, setitem
from ._ndarray import before_write, ndarray, refuse_own
from ._unsigned import flip

_BITS = {
    "c_contiguous": 0x1, "f_contiguous": 0x2, "owndata": 0x4, "aligned": 0x100, "writeable": 0x400,
}  # fmt: skip


class flagsobj:
    """Memory layout of an array; `writeable` may be set."""

    __slots__ = ("_array",)

    def __init__(self, array: ndarray):
        refuse_own(array)
        object.__setattr__(self, "_array", array)

    def _straight(self) -> torch.Tensor | None:
        a = self._array
        return None if any(a._t.shape[d] > 1 for d in a._flip) and a._t.numel() else a._t

    @property
    def c_contiguous(self) -> bool:
        t = self._straight()
        return t is not None and t.is_contiguous()

    @property
    def f_contiguous(self) -> bool:
        t = self._straight()
        return t is not None and t.permute(tuple(reversed(range(t.dim())))).is_contiguous()

    @property
    def owndata(self) -> bool:
        return self._array.base is None

    @property
    def writeable(self) -> bool:
        return not (self._array._scalar or self._array._readonly)

    @writeable.setter
    def writeable(self, value: Any) -> None:
        a = self._array
        base = a.base
        if value and (a._scalar or (base is not None and base._readonly)):
            raise ValueError("cannot set WRITEABLE flag to True of this array")
        a._readonly = not value

    contiguous = c_contiguous
    fortran = f_contiguous
    aligned = property(lambda self: True)
    writebackifcopy = property(lambda self: False)
    fnc = property(lambda self: self.f_contiguous and not self.c_contiguous)
    forc = property(lambda self: self.f_contiguous or self.c_contiguous)
    behaved = property(lambda self: self.writeable)
    carray = property(lambda self: self.writeable and self.c_contiguous)
    farray = property(lambda self: self.writeable and self.fnc)

    @property
    def num(self) -> int:
        """The flags as bits."""
        return sum(bit for name, bit in _BITS.items() if getattr(self, name))

    def _name(self, key: Any) -> str:
        short = {
            "C": "c_contiguous",
            "F": "f_contiguous",
            "O": "owndata",
            "W": "writeable",
            "A": "aligned",
            "X": "writebackifcopy",
            "B": "behaved",
            "CA": "carray",
            "FA": "farray",
        }
        name = short.get(key, key.lower() if isinstance(key, str) else "")
        if name not in (*short.values(), "contiguous", "fortran", "fnc", "forc"):
            raise KeyError("Unknown flag")
        return name

    def __getitem__(self, key: Any) -> bool:
        return getattr(self, self._name(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._name(key) != "writeable":
            raise KeyError("Unknown flag")
        self.writeable = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, flagsobj) and repr(self) == repr(other)

    __hash__ = None

    def __repr__(self) -> str:
        names = ("C_CONTIGUOUS", "F_CONTIGUOUS", "OWNDATA", "WRITEABLE", "ALIGNED")
        lines = [f"  {n} : {self[n]}" for n in (*names, "WRITEBACKIFCOPY")]
        return "\n".join(lines) + "\n"


class flatiter:
    """The elements of an array in C order: iteration, indexing, assignment."""

    __slots__ = ("_next", "base")

    def __init__(self, base: ndarray):
        refuse_own(base)
        self.base = base
        self._next = 0

    def _flat(self) -> ndarray:
        return ndarray(self.base.tensor.reshape(-1))

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Iterator[ndarray]:
        flat = self._flat()
        return (flat[i] for i in range(self.base.size))

    def __next__(self) -> ndarray:
        if self._next >= self.base.size:
            raise StopIteration
        self._next += 1
        return self._flat()[self._next - 1]

    @property
    def index(self) -> int:
        return self._next

    def copy(self) -> ndarray:
        """A one-dimensional copy."""
        return ndarray(self._flat()._t.clone())

    __shim_array__ = copy

    def __array__(self, dtype: Any = None, *, copy: bool | None = None) -> Any:
        return self._flat().__array__(dtype, copy=copy)

    def __getitem__(self, index: Any) -> ndarray:
        found = getitem(self._flat(), index)
        return found if found._scalar else ndarray(found.tensor.clone())

    def __setitem__(self, index: Any, value: Any) -> None:
        base = self.base
        if base._readonly:
            raise ValueError("assignment destination is read-only")
        places = ndarray(torch.arange(base.size, device=base._t.device))
        chosen = getitem(places, index).tensor
        flat = ndarray(base.tensor.reshape(-1).clone())
        v = assigned(value, base._t.dtype, base._t.device)
        if v.dim() and chosen.dim():
            v = _repeated(v, chosen.numel()).reshape(chosen.shape)
        setitem(flat, ndarray(chosen.reshape(-1)), ndarray(v.expand(chosen.shape).reshape(-1)))
        self._store(flat._t)

    def _store(self, flat: torch.Tensor) -> None:
        base = self.base
        before_write(base, flat)
        full = flat.reshape(base._t.shape)
        base._t.copy_(flip(full, base._flip) if base._flip else full)

    def assign(self, value: Any) -> None:
        """Set all elements, repeating the value as often as needed (`a.flat = value`)."""
        if self.base._readonly:
            raise ValueError("assignment destination is read-only")
        v = assigned(value, self.base._t.dtype, self.base._t.device)
        self._store(_repeated(v, self.base.size))


def _repeated(v: torch.Tensor, count: int) -> torch.Tensor:
    flat = v.reshape(-1)
    if flat.numel() == 0:
        raise ValueError("Cannot copy from an empty array")
    times = -(-count // flat.numel())
    return flat.repeat(times)[:count]
