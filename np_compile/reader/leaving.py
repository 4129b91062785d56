"""Where compiled code ends, as C: a value is returned, or Python goes on at a statement."""

from __future__ import annotations

import ast
from typing import Any

from .exits import Exit, Export
from .read import Frame, Leave, Reader, line_of
from .values import Conflict, Known, Maybe, OrNone, Unreadable, Value
from .walk import count_loads, shared_names


def returning(r: Reader, x: Value) -> None:
    """The C that returns a value."""
    out = Export(r)
    number = _added(r, out, Exit(out.value(x)), r.frames[0].env)
    r.lines += [*out.lines, f"return {number};"]


def leaving(r: Reader, site: Leave, first: int) -> list[str]:
    """The C of a way out. first: the statement of the function that the region begins with."""
    out = Export(r)
    frames = []
    envs = {id(frame): env for frame, _, env in site.frames}
    if not r.base:
        out.attributes = site.frames[0][2]
    for frame, path, env in site.frames:
        asked_later = _asked_later(frame.node, path[0])
        names = {}
        makes: list[tuple[ast.stmt, Any]] = []
        for name, x in _with_free(r, frame, env, envs).items():
            asked = name in asked_later or name.startswith("__") or name not in env
            if name.startswith("@") or not asked:
                continue
            if isinstance(x, Conflict):
                raise Unreadable(f"{name!r}: {x.why}")
            f = x.value if isinstance(x, Maybe) else x
            if r.is_local(f):
                made, home = r.local[f.value]
                if _bound(made) != name or home is not (frame if name in env else frame.home):
                    raise Unreadable("a function that is made in it, under another name")
                is_made = Maybe(Known(True), x.flag) if isinstance(x, Maybe) else Known(True)
                makes.append((made, out.value(is_made)))
                continue
            names[name] = out.value(x)
        frames.append((frame.function, frame.node, path, names, makes))
    exit_ = Exit(frames=frames, reasons=tuple(site.reasons), certain=site.certain)
    exit_.line = line_of(site.frames[-1][1])
    exit_.top = site.frames[0][1][0][2] + first
    number = _added(r, out, exit_, site.frames[0][2])
    label, give = f"leave_{site.number}: ;", f"return {number};"
    if r.base:
        label += f" Word *const out = left_at(rt, {number}, {out.count}); (void)out;"
        give = "return 1;"
    return ["if (0) {", label, *site.first, *out.lines, give, "}"]


def _added(r: Reader, out: Export, exit_: Exit, env: dict[str, Value]) -> int:
    """The number of one more exit, which has the attributes that are set too."""
    entry = r.entry
    for key, place in entry.set.items():
        x = env.get(key)
        if key in entry.unset:
            if x == Known(None):
                continue
            x = Maybe(x.value, x.flag) if isinstance(x, OrNone) else x
        if x is not None:
            exit_.attributes[place] = out.value(x)
    number = len(entry.exits) + 1
    entry.exits[number] = exit_
    entry.most = max(entry.most, out.count)
    return number


def _bound(made: ast.stmt | None) -> str:
    """The name that a statement binds which makes a function."""
    if isinstance(made, ast.Assign):
        first = made.targets[0]
        return first.id if isinstance(first, ast.Name) and len(made.targets) == 1 else ""
    return made.name if isinstance(made, ast.FunctionDef) else ""


def _with_free(
    r: Reader, frame: Frame, env: dict[str, Value], envs: dict[int, dict[str, Value]]
) -> dict[str, Value]:
    """The names that what is left of a function asks for: of one that another makes, also those
    that it, and such functions that it calls, see of that one."""
    found = dict(env)
    waiting = [(frame.function, frame.home)]
    while waiting:
        f, home = waiting.pop()
        if home is None:
            continue
        for name in f.__code__.co_freevars:
            x = envs.get(id(home), home.env).get(name)
            if x is None:
                if home.home is not None and name not in home.scope:
                    raise Unreadable("a function in a function in a function")
                continue
            if name in frame.scope or (name in found and found[name] is not x):
                raise Unreadable(f"the name {name!r} of two functions, one in the other")
            if name in found:
                continue
            found[name] = x
            f = x.value if isinstance(x, Maybe) else x
            if r.is_local(f):
                waiting.append((f.value, r.local[f.value][1]))
    return found


def _asked_later(node: Any, block: tuple) -> frozenset[str]:
    """The names that a function asks for from a statement of its body on; Python's objects of
    others, such as long lists, would be made for nothing. block: the first step of the path."""
    _, nodes, k, _ = block
    return shared_names(node).union(*map(count_loads, nodes[k:]))
