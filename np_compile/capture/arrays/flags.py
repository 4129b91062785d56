"""`a.flags` of a stand-in: read without data, set on the array itself."""

from __future__ import annotations

from typing import Any


class Flags:
    """The memory layout of a stand-in, as NumPy's flags object has it."""

    __slots__ = ("_array",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, array: Any):
        object.__setattr__(self, "_array", array)

    def _now(self) -> Any:
        a = self._array
        if a._np is not None and (
            a._as_value is None or a._in_capture.plain or id(a._np) in a._in_capture.known
        ):
            return a._np.flags
        return a._in_capture.meta(a).flags

    def __getattr__(self, name: str) -> Any:
        return getattr(self._now(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        options = {"writeable": "write", "aligned": "align", "writebackifcopy": "uic"}
        if name not in options:  # an error
            setattr(self._now(), name, value)
        self._array.setflags(**{options[name]: value})

    def __getitem__(self, key: Any) -> Any:
        return self._now()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        names = {"W": "writeable", "A": "aligned", "X": "writebackifcopy"}
        name = names.get(key, key.lower() if isinstance(key, str) else key)
        if name not in names.values():
            raise KeyError("Unknown flag")
        setattr(self, name, value)

    def __eq__(self, other: object) -> bool:
        return repr(self) == repr(other)

    def __repr__(self) -> str:
        return repr(self._now())
