"""What Python does before a call of a region: find the values of its inputs, look at their types,
and put them into words. `dispatch` has C do so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import dispatch, twister
from .entry import KEYS, LISTED, SAME, Entry
from .linear import WIDE
from .pieces import LIST, SMALL, piece
from .random import generator_of
from .values import KIND_OF_DTYPE


def binder(entry: Entry) -> Callable[[dict[str, Any]], tuple | None]:
    """A function that gives the values of a region's inputs, the words that C takes, and locks to
    hold; it raises where a value is not what it has to be. None where one object has two names, and
    attributes of it are set."""
    scope: dict[str, Any] = {
        "ndarray": np.ndarray, "piece": piece, "words_of": words_of, "small": entry.small,
        "locks_of": locks_of,
    }  # fmt: skip
    lines = []
    names: dict[tuple, str] = {}
    words: list[str] = []
    locks: list[str] = []
    formats: list[str] = []
    lists: list[str] = []
    for k, i in enumerate(entry.inputs.values()):
        x = names[i.path] = f"x{k}"
        lines.append(f"{x} = {_source(i.path, names, scope, k)}")
        sample = i.value
        kind = type(sample)
        if i.piece is SAME or (type(i.piece) is tuple and i.piece[0] == "same"):
            scope[f"p{k}"] = sample
            lines.append(f"if {x} is not p{k}: raise TypeError")
        elif i.piece is KEYS:
            scope[f"p{k}"] = sample
            lines.append(f"if {x} != p{k}: raise TypeError")
        elif i.piece is LISTED:
            lines.append(f"if type({x}) is not {kind.__name__}: raise TypeError")
            lists.append(f"id({x})")
        elif kind is np.ndarray:
            scope[f"d{k}"] = sample.dtype
            lines.append(f"if type({x}) is not ndarray or {x}.dtype != d{k}: raise TypeError")
            if KIND_OF_DTYPE.get(sample.dtype) is not None and i.taken:
                words.append(f"id({x})")
                formats.append("q")
        elif kind is int and -SMALL < sample < SMALL:
            lines.append(
                f"if type({x}) is not int or not {-SMALL} < {x} < {SMALL}: raise TypeError"
            )
            words.append(x)
            formats.append("q")
        elif kind is float:
            lines.append(f"if type({x}) is not float: raise TypeError")
            words.append(x)
            formats.append("d")
        elif kind in (bool, type(None)):
            lines.append(f"if {x} is not {sample}: raise TypeError")
        else:
            scope[f"p{k}"] = i.piece
            lines.append(f"if piece({x}, small) != p{k}: raise TypeError")
            made: list[Any] = []
            form: list[str] = []
            if i.taken:
                words_of(sample, made, form)
            if form:
                words.append(f"*words_of({x}, [], [])")
                formats += form
            if generator_of(sample) is not None or twister.is_drawn(sample):
                locks.append(f"locks_of({x})")
    if lists:
        lists += [f"id({_item_source(path, names)})" for path in entry.taken_apart()]
        scope["classes"] = entry.attributes_in_lists()
        lists += [str(id(x)) for x in scope["classes"]]
    words += lists
    formats += ["q"] * len(lists)
    entry.formats = formats
    one = [_item_source(path, names) for path in dispatch.may_be_one(entry)]
    if one:
        ids = ", ".join(f"id({x})" for x in one)
        lines.append(f"if len({{{ids}}}) < {len(one)}: return None")
    found = ", ".join(names.values())
    lines.append(
        f"return ({found}{',' if found else ''}), ({', '.join(words)}{',' if words else ''}), "
        f"({', '.join(locks)}{',' if locks else ''})"
    )
    text = "def bind(values):\n" + "".join(f"    {line}\n" for line in lines)
    exec(compile(text, "<inputs of a region>", "exec"), scope)
    return scope["bind"]


def _source(path: tuple, names: dict[tuple, str], scope: dict[str, Any], k: int) -> str:
    """The Python that finds the value at a path."""
    where, last = path[0], path[-1]
    if last == KEYS:
        return f"tuple({_item_source(path[:-1], names)})"
    if where == "local" and len(path) == 2:
        return f"values[{last!r}]"
    if isinstance(last, str) and last.startswith((".", "[")):
        return f"{_item_source(path[:-1], names)}{last}"
    if where == "global":
        scope[f"s{k}"] = path[1].__globals__
        return f"s{k}[{last!r}]"
    if where == "builtin":
        scope[f"s{k}"], scope[f"t{k}"] = path[1].__globals__, path[1].__builtins__
        return f"t{k}[{last!r}] if {last!r} not in s{k} else None"
    if where == "cell":
        f = path[1]
        scope[f"s{k}"] = f.__closure__[f.__code__.co_freevars.index(last)]
        return f"s{k}.cell_contents"
    if where in ("module", "function"):
        scope[f"s{k}"] = path[1]
        return f"s{k}.{last}"
    scope[f"s{k}"] = np.random.mtrand
    return f"s{k}._rand"


def _item_source(path: tuple, names: dict[tuple, str]) -> str:
    """The Python of what is found at a path, or in what is found there."""
    return names[path] if path in names else f"{_item_source(path[:-1], names)}[{path[-1]}]"


def words_of(x: Any, words: list[Any], form: list[str]) -> list[Any]:
    """The words that C takes of a value, with their formats."""
    kind = type(x)
    if kind is np.ndarray:
        if x.dtype in KIND_OF_DTYPE:
            words.append(id(x))
            form.append("q")
    elif kind is bool or x is None or kind is str:
        pass
    elif kind is int:
        if -WIDE <= x < 2 * WIDE:
            words.append(x if x < WIDE else x - 2 * WIDE)
            form.append("q")
    elif kind is float or isinstance(x, np.floating):
        words.append(float(x))
        form.append("d")
    elif kind is complex or isinstance(x, np.complexfloating):
        words += (x.real, x.imag)
        form += ("d", "d")
    elif isinstance(x, np.generic):
        if x.dtype in KIND_OF_DTYPE:
            n = int(x)
            words.append(n if n < WIDE else n - 2 * WIDE)
            form.append("q")
    elif isinstance(x, tuple) or (kind is list and len(x) <= LIST):
        for y in x:
            words_of(y, words, form)
    elif kind is range:
        words_of(x.start, words, form)
        words_of(x.stop, words, form)
    elif twister.is_drawn(x):
        words.append(twister.address_of(x))
        form.append("q")
    elif (found := generator_of(x)) is not None:
        bits: Any = found[0]
        words.append(bits.ctypes.bit_generator.value)
        form.append("q")
    return words


def locks_of(x: Any) -> Any:
    """What is held while a generator is used."""
    if twister.is_drawn(x):
        return twister.lock_of(x)
    bits: Any = generator_of(x)[0]  # type: ignore[index]
    return bits.lock
