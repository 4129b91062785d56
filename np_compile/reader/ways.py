"""Ways that come together: the names behind a branch, or behind a `try`."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .read import Reader
from .values import (
    HELD,
    Bound,
    Conflict,
    Known,
    Maybe,
    Num,
    Obj,
    Opaque,
    Partial,
    Range,
    Rng,
    Tup,
    Unreadable,
    Value,
)
from .variables import Variable, as_type, is_same, join, stored

Names = dict[str, Value]


@dataclass
class Way:
    """One way: its C, the names at its end, whether it ends before, and the C that gives back what
    it has made."""

    lines: list
    names: list[Names]
    dead: bool
    releases: list[str]


def joined(r: Reader, before: list[Names], ways: Sequence[Way]) -> list[dict[str, Variable]]:
    """The names of `r` become those behind the ways; the variables that carry those that differ,
    which have their values at the end of each way."""
    alive = [way for way in ways if not way.dead]
    r.frame.dead = not alive
    names = before
    variables: list[dict[str, Variable]] = [{} for _ in before]
    if len(alive) == 1:  # what it has made is seen behind it
        names = alive[0].names
        variables = [_exported(r, x, y) for x, y in zip(before, names, strict=True)]
    elif alive:
        merged = [_merged(r, envs) for envs in zip(*(way.names for way in alive), strict=True)]
        names, variables = [m[0] for m in merged], [m[1] for m in merged]
    r.set_names(names)
    for of_frame in variables:
        for v in of_frame.values():
            r.lines += v.declare
    for way in alive:
        put(r, way.lines, variables, way.names)
        way.lines += way.releases
    return variables


def put(
    r: Reader, lines: list, variables: Sequence[dict[str, Variable]], names: Sequence[Names]
) -> None:
    """Variables get the values of names, at the end of these lines."""
    with r.elsewhere(lines):
        pairs = zip(variables, names, strict=True)
        r.lines += stored(r, [x for vs, env in pairs for x in _values_of(r, vs, env)])


def loaded(r: Reader, variables: Sequence[dict[str, Variable]]) -> None:
    """Names have the values of variables."""
    for env, of_frame in zip(r.environments, variables, strict=True):
        for name, v in of_frame.items():
            env[name] = v.load(r)
            r.owned[-1] += v.buffers()


def _values_of(
    r: Reader, variables: dict[str, Variable], env: Names
) -> Iterator[tuple[Variable, Value]]:
    """What variables hold on one way."""
    for name, v in variables.items():
        if name in env:
            yield v, env[name]
        elif name in r.entry.attributes:
            yield v, r.entry.attributes[name]


def _exported(r: Reader, before: Names, after: Names) -> dict[str, Variable]:
    """Variables for what a way changed."""
    made: dict[str, Variable] = {}
    for name, x in list(after.items()):
        if name in before and is_same(before[name], x):
            continue
        if _has_c_names(x):
            if isinstance(x, HELD):
                made[name] = Variable(r, name, as_type(x))
            else:
                after[name] = Conflict("it is made on one way only")
    return made


def _has_c_names(x: Value) -> bool:
    """Whether a value is in C names, which mean nothing outside the block where it was made."""
    if isinstance(x, Num):
        return x.value is None
    if isinstance(x, Tup):
        return any(map(_has_c_names, x.items))
    if isinstance(x, Range):
        return any(map(_has_c_names, (x.start, x.stop, x.step)))
    if isinstance(x, Bound):
        return _has_c_names(x.owner)
    if isinstance(x, Partial):
        return any(map(_has_c_names, (x.function, *x.args, *x.kwargs.values())))
    return not isinstance(x, (Known, Obj, Opaque, Conflict, Rng))


def _merged(r: Reader, envs: Sequence[Names]) -> tuple[Names, dict[str, Variable]]:
    """The names behind several ways, and the variables that carry those that differ."""
    names: Names = {}
    variables: dict[str, Variable] = {}
    for name in dict.fromkeys(name for env in envs for name in env):
        found = [env[name] for env in envs if name in env]
        x = found[0]
        if len(found) == len(envs):
            if all(is_same(x, y) for y in found[1:]):
                names[name] = x
                continue
            of = _joined(r, found)
        elif name in r.entry.attributes:
            of = _joined(r, [*found, r.entry.attributes[name]])
            names[name], variables[name] = x, Variable(r, name, as_type(of))
            if isinstance(of, Conflict):
                raise Unreadable(f"{name[1:]}: {of.why}")
            continue
        else:
            if any(not isinstance(y, (Known, *HELD)) for y in found):
                names[name] = Conflict("it has a value on one way only")
                continue
            of = _joined(r, found)
            if not isinstance(of, (Conflict, Maybe)):
                of = Maybe(as_type(of), "")
        if isinstance(of, Conflict) or not isinstance(of, HELD):
            names[name] = of if isinstance(of, Conflict) else Conflict("it is one or another")
            continue
        # In its place, which tells in which order the attributes of a new object were set.
        names[name], variables[name] = x, Variable(r, name, as_type(of))
    return names, variables


def _joined(r: Reader, values: Sequence[Value]) -> Value:
    return functools.reduce(lambda x, y: x if isinstance(x, Conflict) else join(x, y, r), values)
