"""What `itertools` gives, as generators that loops go through (`generators.py`), in its order."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType
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


def running(xs: Any) -> Iterator[Any]:
    begun, total = False, None
    for x in xs:
        if begun:
            total = total + x
        else:
            begun, total = True, x
        yield total


def running_from(xs: Any, initial: Any) -> Iterator[Any]:
    total = initial
    yield total
    for x in xs:
        total = total + x
        yield total


def running_by(xs: Any, f: Any) -> Iterator[Any]:
    begun, total = False, None
    for x in xs:
        if begun:
            total = f(total, x)
        else:
            begun, total = True, x
        yield total


def neighbours(xs: Any) -> Iterator[tuple]:
    begun, before = False, None
    for x in xs:
        if begun:
            yield before, x
        begun, before = True, x


def chain_of_2(xs: Any, ys: Any) -> Iterator[Any]:
    yield from xs
    yield from ys


def chain_of_3(xs: Any, ys: Any, zs: Any) -> Iterator[Any]:
    yield from xs
    yield from ys
    yield from zs


def chain_of_all(xss: Any) -> Iterator[Any]:
    for xs in xss:
        yield from xs


def counted(start: Any = 0, step: Any = 1) -> Iterator[Any]:
    n = start
    while True:
        yield n
        n = n + step


def repeated(x: Any, times: Any) -> Iterator[Any]:
    for _ in range(times):
        yield x


def sliced(xs: Any, start: Any, stop: Any, step: Any) -> Iterator[Any]:
    at = start
    for k, x in enumerate(xs):
        if k >= stop:
            break
        if k == at:
            at += step
            yield x


def sliced_from(xs: Any, start: Any, step: Any) -> Iterator[Any]:
    at = start
    for k, x in enumerate(xs):
        if k == at:
            at += step
            yield x


# Of a function and how many items it gives at a time, or how many arguments it has; of `product`
# by its arguments and `repeat`.
_TABLE: dict[tuple, Callable] = {
    (itertools.combinations, 2): pairs, (itertools.combinations, 3): triples,
    (itertools.combinations, 4): quadruples,
    (itertools.combinations_with_replacement, 2): pairs_with_equal,
    (itertools.permutations, 2): ordered_pairs, (itertools.permutations, 3): ordered_triples,
    (itertools.product, 1, 2): square, (itertools.product, 1, 3): cube,
    (itertools.product, 2, 1): product_of_2, (itertools.product, 3, 1): product_of_3,
    (itertools.accumulate, 1): running, (itertools.accumulate, 2): running_by,
    (itertools.pairwise, 1): neighbours, (itertools.repeat, 2): repeated,
    (itertools.chain, 2): chain_of_2, (itertools.chain, 3): chain_of_3,
    (itertools.chain.from_iterable, 1): chain_of_all,
    (itertools.count, 0): counted, (itertools.count, 1): counted, (itertools.count, 2): counted,
}  # fmt: skip
_MAKERS = (itertools.combinations, itertools.combinations_with_replacement, itertools.permutations)


def generator_of(f: Any, call: ast.Call) -> tuple[FunctionType, list[ast.expr]] | None:
    """The generator that a call of such a function is, and its arguments; None of others."""
    args, words = list(call.args), {k.arg: k.value for k in call.keywords}
    if type(f) is not type and not isinstance(f, BuiltinFunctionType):
        return None
    if any(isinstance(x, ast.Starred) for x in args):
        return None
    if f is itertools.islice:
        return _slice_of(args) if not words else None
    if f is itertools.product:
        repeat = words.pop("repeat", ast.Constant(1))
        key: tuple = f, len(args), getattr(repeat, "value", None)
    elif f in _MAKERS and len(args) == 2:
        key, args = (f, getattr(args[1], "value", None)), args[:1]
    elif f is itertools.accumulate and len(args) == 1 and words.keys() == {"initial"}:
        return running_from, [*args, words["initial"]]  # type: ignore[return-value]
    elif f in _BY_ARGUMENTS:
        key = f, len(args)
    else:
        return None
    found: Any = _TABLE.get(key)
    return (found, args) if found is not None and not words else None


_BY_ARGUMENTS = (itertools.accumulate, itertools.pairwise, itertools.repeat, itertools.chain,
                 itertools.chain.from_iterable, itertools.count)  # fmt: skip


def _slice_of(args: list[ast.expr]) -> tuple[FunctionType, list[ast.expr]] | None:
    """The same of `islice`, with constant bounds that it takes."""
    if not 2 <= len(args) <= 4 or not all(isinstance(x, ast.Constant) for x in args[1:]):
        return None
    bounds = [x.value for x in args[1:] if isinstance(x, ast.Constant)]
    found = slice(*bounds)
    start = 0 if found.start is None else found.start
    step = 1 if found.step is None else found.step
    stop = found.stop
    if any(type(x) is not int or x < 0 for x in (start, step, *([] if stop is None else [stop]))):
        return None
    if step == 0:
        return None
    if stop is None:
        return sliced_from, [args[0], ast.Constant(start), ast.Constant(step)]  # type: ignore[return-value]
    return sliced, [args[0], *map(ast.Constant, (start, stop, step))]  # type: ignore[return-value]
