"""Last-writer elimination: scatters run in order, so no search for the last of several values.

torch leaves it open which one stays, so the shim finds the last writer of each place first: the
greatest position that is scattered to it. The loops here need no such search: in

    t[k] = -1 for all k;  t[wrap(index[i])] max= i;  x[wrap(index[i])] = value[t[wrap(index[i])]]

the position found is that of the last writer, and writing the values one after the other ends with
the same one. So `t[wrap(index[i])]` in such a store may as well be i.
"""

from __future__ import annotations

from ..analysis.access import grows
from ..ir import expr as E
from ..ir.expr import Expr
from ..ir.program import Buffer, Program, Statement
from ..target import Target
from .dead_code import only_checks


def last_writer(program: Program, machine: Target) -> Program:
    """The program without such searches."""
    searches: dict[Buffer, Statement] = {}
    writers: dict[Buffer, list[Statement]] = {}
    for s in program.steps:
        if isinstance(s, Statement):
            writers.setdefault(s.target, []).append(s)
    for s in program.steps:
        if not isinstance(s, Statement):
            continue
        place = s.index[0] if s.index else None
        if s.op == "max" and not s.over and place is not None and place.op == "wrap":
            start = writers[s.target][0]
            if len(writers[s.target]) != 2 or start.op is not None or start.value.op != "const":
                continue
            if not grows(s.value, s.axes):
                continue
            searches[s.target] = s
        elif only_checks(s) or (s.op is None and any(i.op == "wrap" for i in s.index)):
            _reduce(s, searches)
    return program


def _reduce(s: Statement, searches: dict[Buffer, Statement]) -> None:
    """Replace what a search found by the position itself, in a store to the same places, and in
    a check of the position, which then is none."""
    mine = [i for i in s.index if i.op == "wrap"]
    if len(mine) != 1 and not only_checks(s):
        return

    def change(x: Expr, _: E.Rewrite) -> Expr | None:
        if x.op == "wrap" and x.args[0].op == "load":
            x = x.args[0]
        if x.op != "load" or x.value not in searches:
            return None
        search = searches[x.value]
        if [a.extent for a in search.axes] != [a.extent for a in s.axes]:
            return None
        renamed = dict(zip(search.axes, s.axes, strict=True))
        where = E.substitute(search.index[0], renamed)
        same = where is x.args[0] and (not mine or set(E.loads(mine[0])) == set(E.loads(where)))
        return E.substitute(search.value, renamed) if same else None

    s.value = E.rewriter(change)(s.value)
