"""What `itertools` gives, as generators that loops go through (`generators.py`), in its order."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any


def pairs(xs: Any) -> Iterator[tuple]:
    items = list(xs)
    for i in range(len(items)):
        for j in range(i + 1, len(items)):
            yield items[i], items[j]


def triples(xs: Any) -> Iterator[tuple]:
    items = list(xs)
    for i in range(len(items)):
        for j in range(i + 1, len(items)):
            for k in range(j + 1, len(items)):
                yield items[i], items[j], items[k]


def quadruples(xs: Any) -> Iterator[tuple]:
    items = list(xs)
    for i in range(len(items)):
        for j in range(i + 1, len(items)):
            for k in range(j + 1, len(items)):
                for m in range(k + 1, len(items)):
                    yield items[i], items[j], items[k], items[m]


def pairs_with_equal(xs: Any) -> Iterator[tuple]:
    items = list(xs)
    for i in range(len(items)):
        for j in range(i, len(items)):
            yield items[i], items[j]


def ordered_pairs(xs: Any) -> Iterator[tuple]:
    items = list(xs)
    for i in range(len(items)):
        for j in range(len(items)):
            if i != j:
                yield items[i], items[j]


def ordered_triples(xs: Any) -> Iterator[tuple]:
    items = list(xs)
    for i in range(len(items)):
        for j in range(len(items)):
            if i != j:
                for k in range(len(items)):
                    if k != i and k != j:
                        yield items[i], items[j], items[k]


def square(xs: Any) -> Iterator[tuple]:
    items = list(xs)
    for i in range(len(items)):
        for j in range(len(items)):
            yield items[i], items[j]


def cube(xs: Any) -> Iterator[tuple]:
    items = list(xs)
    for i in range(len(items)):
        for j in range(len(items)):
            for k in range(len(items)):
                yield items[i], items[j], items[k]


def product_of_2(xs: Any, ys: Any) -> Iterator[tuple]:
    first, second = list(xs), list(ys)
    for i in range(len(first)):
        for j in range(len(second)):
            yield first[i], second[j]


def product_of_3(xs: Any, ys: Any, zs: Any) -> Iterator[tuple]:
    first, second, third = list(xs), list(ys), list(zs)
    for i in range(len(first)):
        for j in range(len(second)):
            for k in range(len(third)):
                yield first[i], second[j], third[k]


# Of a function and how many items it gives at a time; of `product` by its arguments and `repeat`.
_TABLE: dict[tuple, Callable] = {
    (itertools.combinations, 2): pairs, (itertools.combinations, 3): triples,
    (itertools.combinations, 4): quadruples,
    (itertools.combinations_with_replacement, 2): pairs_with_equal,
    (itertools.permutations, 2): ordered_pairs, (itertools.permutations, 3): ordered_triples,
    (itertools.product, 1, 2): square, (itertools.product, 1, 3): cube,
    (itertools.product, 2, 1): product_of_2, (itertools.product, 3, 1): product_of_3,
}  # fmt: skip


def generator_of(f: Any, call: ast.Call) -> tuple[FunctionType, list[ast.expr]] | None:
    """The generator that a call of such a function is, and its arguments; None of others."""
    args, words = call.args, {k.arg: k.value for k in call.keywords}
    if any(isinstance(x, ast.Starred) for x in args):
        return None
    if f is itertools.product:
        repeat = words.pop("repeat", ast.Constant(1))
        key: tuple = f, len(args), getattr(repeat, "value", None)
    elif f in _MAKERS and len(args) == 2:
        key, args = (f, getattr(args[1], "value", None)), args[:1]
    else:
        return None
    found: Any = _TABLE.get(key)
    return (found, list(args)) if found is not None and not words else None


_MAKERS = (itertools.combinations, itertools.combinations_with_replacement, itertools.permutations)
