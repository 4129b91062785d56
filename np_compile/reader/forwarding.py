"""Elements that an iteration has read or stored, and reads again.

C does not know that two arrays share no memory: behind a store in one it reads the other again, and
a processor waits for what it has just stored. Where nothing in between may have written to an
element, its value is taken from the C name that it has there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .dependence import Access, are_apart
from .innermost import JUMP, Load, Store, element, places, texts
from .read import C_STORAGE, Reader
from .values import ANYWHERE, C_TYPE

_LOOP = re.compile(r"(?:for|while) \(|do \{")
_SWITCH = re.compile(r"switch \(")

_Known = dict[tuple, tuple[str, Load | Store]]  # by element: the C name of its value, who has it


def forwarded(r: Reader, body: list, accesses: Sequence[Access]) -> None:
    """Change the body of a loop so. accesses: all that it reads and writes."""
    lines = list(texts(body))
    own = {id(line.what.access) for *_, line in places(body) if isinstance(line.what, Store)}
    loose = [x for x in accesses if x.write and id(x) not in own]
    if not any(JUMP.search(x) or _SWITCH.match(x) for x in lines):
        _Forward(r, loose).through(body)


class _Forward:
    def __init__(self, r: Reader, loose: Sequence[Access]):
        """loose: the writes that no line tells of."""
        self._r, self._loose = r, loose
        self._known: list[_Known] = [{}]  # of each block that is open
        self._stored: list[list[Store]] = [[]]

    def through(self, lines: list) -> None:
        for k, x in enumerate(lines):
            if isinstance(x, list):
                self.through(x)
                continue
            if not isinstance(x, str) or x.startswith("/* "):
                continue
            if x.startswith("}"):
                self._end()
            if x.endswith("{"):
                # What a loop stores, its next iteration reads.
                self._known.append({} if _LOOP.match(x) else dict(self._known[-1]))
                self._stored.append([])
            what = getattr(x, "what", None)
            if isinstance(what, Load):
                if (found := self._known[-1].get(element(what))) is not None:
                    lines[k] = f"const {C_TYPE[what.a.rep]} {what.name} = {found[0]};"
                elif self._is_told(what):
                    self._known[-1][element(what)] = what.name, what
            elif isinstance(what, Store):
                self._forget(what)
                self._stored[-1].append(what)
                if self._is_told(what):
                    self._known[-1][element(what)] = what.value, what

    def _end(self) -> None:
        self._known.pop()
        for x in self._stored.pop():
            self._forget(x)
            self._stored[-1].append(x)

    def _is_told(self, x: Load | Store) -> bool:
        """Whether lines tell of all that is written to an array, and its values are kept as they
        are."""
        return (
            bool(x.a.roots) and x.access is not None and C_TYPE[x.a.rep] == C_STORAGE(x.a.rep)
            and not any(w.roots & x.a.roots or ANYWHERE in w.roots | x.a.roots for w in self._loose)
        )  # fmt: skip

    def _forget(self, store: Store) -> None:
        known = self._known[-1]
        for key in [key for key, (_, x) in known.items() if self._may_be(store, x)]:
            del known[key]

    def _may_be(self, store: Store, x: Load | Store) -> bool:
        """Whether an element may be the one that is stored."""
        if not (store.a.roots & x.a.roots or ANYWHERE in store.a.roots | x.a.roots):
            return False
        p, q = store.access, x.access
        if p is None or q is None or p.base != q.base or p.hulls is None or q.hulls is None:
            return True
        if len(p.hulls) != len(q.hulls):
            return True
        pairs = zip(p.hulls, q.hulls, strict=True)
        return not any(are_apart(self._r.facts, *pair, "") for pair in pairs)
