"""The tag of a dict: what Python changes with it, so that C need not look a name up again."""

from __future__ import annotations

import types
from ctypes import c_int64
from typing import Any

_THIRD = object.__basicsize__ + 8


def tag_of(x: dict) -> int:
    """What Python changes with a dict, before 3.14: the third word of its own."""
    return c_int64.from_address(id(x) + _THIRD).value


def are_kept() -> bool:
    """Whether each change of a dict gives it another tag, and no two have the same."""
    x: dict[str, Any] = {"a": 1}
    seen = [tag_of({"a": 1}), tag_of(x)]
    for change in (
        lambda: x.update(b=2), lambda: x.__setitem__("a", 3), lambda: x.pop("b"),
        lambda: x.__delitem__("a"), lambda: x.setdefault("a", 4), x.clear,
    ):  # fmt: skip
        x.get("a")
        if tag_of(x) != seen[-1]:
            return False
        change()
        seen.append(tag_of(x))
    module = types.ModuleType("of_a_dict")
    for text in ("a = 1", "global a\na = 2", "del a"):
        seen.append(tag_of(vars(module)))
        exec(text, vars(module))
    module.a = 1  # type: ignore[attr-defined]
    seen.append(tag_of(vars(module)))
    return len(set(seen)) == len(seen)


# Where it is in a dict; 0: there is none.
OFFSET = _THIRD if are_kept() else 0
