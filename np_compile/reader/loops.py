"""Loops. A loop is read until the types of the names that it changes are settled."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .assignments import target
from .conditional_stores import joined_stores, selected_stores
from .counters import Steps, as_counted, counters, within_reach
from .expressions import condition, kept
from .forwarding import forwarded
from .innermost import hoisted, places
from .interchange import planned, tiled
from .iterables import Run, by_tables, iterable
from .linear import WIDE, Linear
from .managers import named
from .named_items import has_named_items
from .nest import FAR
from .polls import ends_early, loops_in, out_of_strips, own, strip, tick
from .powers import Power, distributed, in_strips
from .read import BRANCH, SOME, LoopState, Reader, assigned
from .rows import by_rows, in_variables
from .selection import settle
from .threads import Iteration, threaded
from .values import (
    FLOATS,
    HELD,
    Aggregate,
    Arr,
    Conflict,
    Flagged,
    Items,
    Known,
    Maybe,
    NotYet,
    Num,
    Tup,
    Unreadable,
    Value,
    one_or_another,
)
from .variables import Variable, as_type, is_same, join, same_type, stored
from .walk import walk

Block = Sequence[ast.stmt]
_UNROLL = "#pragma GCC unroll 4"  # before a loop whose iterations come one after the other
_SHORT = 24  # lines of C of an iteration for which that is worth it
_FEW_TIMES = 8  # iterations that need no look at what Python wants
_UNROLLED = 500  # names in C of a loop over a tuple: the compiler takes seconds for more
_LONG = 1 << 15  # iterations of a loop inside another one, from which a device may have it


def for_(r: Reader, node: ast.For) -> None:
    values = iterable(r, node.iter)
    if isinstance(values, Tup):
        saved = r.save()
        try:
            _unrolled(r, node, values)
            return
        except _Long:
            r.restore(saved)
            values = by_tables(r, node.iter, values)
    header = _For(r, node, values)
    if header.n is not None and not r.quiet:
        plan = planned(r, node)
        if plan is not None:
            r.lines.append(header.place)
            header.tiles = tiled(r, plan, for_)
    _loop(r, node, header)
    for name in values.sources:
        r.env.pop(name, None)


def while_(r: Reader, node: ast.While) -> None:
    _loop(r, node, _While(node))


class _Long(Exception):
    """The body of a loop over a tuple is not to be written once for each item."""


def _unrolled(r: Reader, node: ast.For, values: Tup) -> None:
    """A loop over a tuple: its body once for each item."""
    if not values.items:
        return
    if len(values.items) > 64 or any(
        isinstance(x, (ast.Break, ast.Continue)) for x in own(node.body)
    ):
        raise _Long
    hidden = r.hidden("src", node)
    before = r.names
    source: Any = named(r, node.iter)  # Python, where it goes on, sees whether a dict grows
    source = source if has_named_items(source) else values
    for k, x in enumerate(values.items):
        if k and (r.names - before) * len(values.items) > _UNROLLED * k:
            raise _Long
        r.env[hidden] = source
        r.frame.path.append(("unrolled", node, hidden, k))
        with r.at_statement():
            target(r, node.target, x)()
        r.grammar.block(r, node.body, "body")
        r.frame.path.pop()
        if r.frame.dead:
            return


class _For:
    """The head of a `for` loop over values that are counted."""

    always = False
    unknown = None

    def __init__(self, r: Reader, node: ast.For, values: Run):
        self._values, self._node = values, node
        self._hidden = r.hidden("at", node)
        self.steady = values.steady
        self.after: list[str] = []  # lines behind it, if there was an iteration
        self.place: list = []  # before it: for what does the same by tiles
        self.tiles: tuple[list, str] | None = None
        self.powers: list[Power] = []  # that it takes from loops before it
        self.unrolls = False  # whether several iterations are written one after the other
        self.counter = r.fresh("k")
        r.env.update(values.sources)

    @property
    def facts(self) -> tuple[Linear, ...]:
        """What is so if there is an iteration."""
        n, more = self.n, self._values.facts
        return more if n is None or n.lin is None else (*more, n.lin - 1)

    @property
    def n(self) -> Num | None:
        """The number of iterations, where it is known when the loop begins."""
        return None if self._values.there else self._values.n

    def around(
        self, r: Reader, body: list, low: str, high: str, many: int, breaks: list[list]
    ) -> list:
        """The loop from one iteration to another, with looks at what Python wants. many: the
        iterations of a strip; 0 without strips. breaks: the places of the C that ends it early."""
        k, there = self.counter, self._values.there
        n = self._values.n.value
        if not many or there or r.quiet or (n is not None and n <= many):
            few = n is not None and n <= _FEW_TIMES
            counts = [] if r.quiet or (many and not there) or few else [tick(body)]
            ends = [f"if ({high} > {low}) {{", *self.after, "}"] if self.after else []
            if there:
                return [f"for (i64 {k} = {low}; {there(k)}; {k}++) {{", *counts, body, "}", *ends]
            return [*in_strips(r, self.powers, k, low, high, counts, body), *ends]
        begin, end = r.fresh("begin"), r.fresh("end")
        # More than one strip is rare, and to look at that takes longer than a few iterations.
        return [
            f"i64 {begin} = {low};", f"if ({begin} < {high}) {{", "for (;;) {",
            f"const i64 {end} = {high} - {begin} <= {many} ? {high} : {begin} + {many};",
            *([_UNROLL] if self.unrolls and not self.powers else []),
            *in_strips(r, self.powers, k, begin, end, [], body), *self.after,
            f"if (__builtin_expect({end} >= {high}, 1)) break;",
            "if (is_wanted(rt)) return -1;", f"{begin} = {end};", "}", "}",
            *out_of_strips(r, breaks),
        ]  # fmt: skip

    def times(self, r: Reader) -> float:
        """How often the body runs, as far as the values of this call tell."""
        n = r.entry.at(self._values.n.lin)
        r.guesses |= n is None
        r.entry.known[self.counter] = (n or SOME) // 2
        return n or SOME

    def varies(self, r: Reader) -> bool:
        """Whether elements of arrays say how many there are, for each iteration of a loop around:
        often a few. Where they are written out together, processors guess wrongly how many are
        left over."""
        n = self._values.n.lin
        terms = n.terms if n is not None and r.is_inside else ()
        facts = [*self.facts, *(x for name in terms for x in r.facts.mentioning(name))]
        return bool(terms) and any(x.terms.keys() & r.facts.elements for x in facts)

    def begin(self, r: Reader) -> None:
        """The next value, in the body."""
        n = self._values.n
        high = FAR if self._values.there else max(n.high - 1, 0)
        lin = r.facts.name(self.counter, 0, high)
        if self.n is not None:
            r.accesses.counters.append(self.counter)
        if n.lin is not None and not self._values.there:
            r.facts.add(n.lin - lin - 1)
        for fact in self.facts:
            r.facts.add(fact)
        k = Num(self.counter, "i64", ("int",), "", lin, 0, high)
        r.env[self._hidden] = k
        with r.at_statement():
            target(r, self._node.target, kept(r, self._values.get(r, k)))()

    def step(self, r: Reader) -> tuple:
        return ("for", self._node, self._hidden, self._values.text)


class _While:
    """The head of a `while` loop. unknown: why its test has no meaning yet."""

    steady: tuple[Items, ...] = ()
    counter = n = tiles = None
    facts: tuple[Linear, ...] = ()

    def __init__(self, node: ast.While):
        self._node = node
        self.always = isinstance(node.test, ast.Constant) and bool(node.test.value)
        self.unknown: NotYet | None = None

    def around(
        self, r: Reader, body: list, low: str, high: str, many: int, breaks: list[list]
    ) -> list:
        """The loop, with looks at what Python wants."""
        if not many:
            return ["for (;;) {", tick(body), body, "}"]
        left = r.fresh("left")
        return [
            "for (;;) {", f"for (i64 {left} = {many}; {left}; {left}--) {{", body, "}",
            "if (is_wanted(rt)) return -1;", "}", *out_of_strips(r, breaks),
        ]  # fmt: skip

    def times(self, r: Reader) -> float:
        r.guesses = True
        return SOME

    def begin(self, r: Reader) -> None:
        """The test; what it is where it is true is known in the body."""
        self.unknown = None
        if self.always:
            return
        saved = r.save()
        r.frame.path[-1] = ("while", self._node, "test")
        try:
            with r.at_statement():
                test = condition(r, self._node.test)
        except NotYet as e:  # of what the body gives a name, say: it is read first
            r.restore(saved)
            self.unknown = e
            return
        r.frame.path[-1] = self.step(r)
        if test.value is True:
            return
        r.one_by_one(BRANCH)
        lines: list = []
        r.loops[-1].ends.append((r.snapshot(), lines))
        r.lines += [f"if (!{test.text}) {{", lines, r.loops[-1].breaks(), "}"]
        for fact in test.true:
            r.facts.add(fact)

    def step(self, r: Reader) -> tuple:
        return ("while", self._node, "body")


def _loop(r: Reader, node: ast.For | ast.While, header: Any) -> None:
    key = ("loop", id(node), r.inlined)
    memory = r.memory.setdefault(key, {})
    wanted = dict.fromkeys(name for name in assigned([node]) if "." not in name)
    r.forget_dead(node, wanted)
    code = r.frame.function.__code__
    steps = counters(node, frozenset((*code.co_cellvars, *code.co_freevars)))
    for _ in range(40):
        saved = r.save()
        attributes = dict(r.frames[0].env)
        missing, r.missing = r.missing, set()
        if _attempt(r, node, header, memory, wanted, steps):
            r.missing = missing | r.missing
            return
        r.missing = missing
        r.restore(saved)
        r.frames[0].env = {k: r.entry.attributes[k] for k in r.late} | attributes
    raise Unreadable("a loop whose types do not settle")


Key = tuple[int, str]  # whose name it is: 0 of the function that is read, 1 of the outermost one


def _attempt(
    r: Reader, node: ast.For | ast.While, header: Any, memory: dict[Key, Value], wanted: dict,
    steps: Steps,
) -> bool:  # fmt: skip
    """Read a loop once; False if a name needs another type than was thought."""
    frame = r.frame
    before = r.snapshot()
    carried, counted = _carried(r, before, memory, wanted, steps)
    envs = r.environments
    for (which, name), v in carried.items():
        for line in v.declare:
            r.line(line)
        if name in envs[which]:
            r.lines += v.store(r, envs[which][name])
    state = LoopState(len(r.owned), header.steady, frame, counted)
    body: list = []
    since, born = len(r.accesses.noted), len(r.born)
    sites, spent, times = len(r.tables), r.seconds, header.times(r)
    with r.elsewhere(body), r.scope(), r.in_loop(state, times):
        for (which, name), v in carried.items():
            x = envs[which][name] = v.load(r)
            _guess_extents(r, before[which].get(name), x)
            if isinstance(x, Num) and x.rep in FLOATS:
                r.sums[x.text] = 0
        entry = state.entry = r.snapshot()
        frame.path.append(header.step(r))
        header.begin(r)
        r.grammar.block(r, node.body, "body")
        frame.path.pop()
        if not frame.dead:
            end: list = []
            state.agains.append((_narrowed(r, state), end))
            r.lines.append(end)
            r.lines += r.releases(state.scopes)
        accesses = r.accesses.noted[since:]
        found = r.accesses.leave(since, header.counter, set(r.born[born:]))
    frame.dead = False
    if _outgrown(r, node, carried, entry, state, memory):
        return False
    if header.unknown is not None:
        raise header.unknown
    fresh = _new_names(r, node, entry, state, memory)
    carried |= fresh
    if not _stores(r, carried, entry, state, memory):
        return False
    for v in fresh.values():
        for line in v.declare:
            r.line(line)
    innermost = not loops_in(body, written_out=False)
    goes_on = innermost and not ends_early(node)
    many = strip(node, body) if innermost else 0
    sums: list[Variable] = []
    if header.counter is None or header.n is None:
        why = "how many iterations there are shows as it runs"
    elif found is None:
        why = "an iteration touches what another one writes"
    elif sites != len(r.tables):
        why = "it calls functions in Python"
    else:
        sums, why = _sums(r, node, carried, state)
    light = r.is_inside and not loops_in(body)
    spreads = found is not None and not why and (not light or times >= _LONG)
    once = body  # what an iteration does that is no kernel
    if header.n is not None and innermost:
        joined_stores(r, body, header.counter, header.n, header.facts, accesses)
        first, header.after = hoisted(
            r, body, header.counter, header.n, header.facts, accesses, goes_on, spreads
        )
        r.lines += first
        selected_stores(r, body, header.counter)
        forwarded(r, body, accesses)
        header.powers = []
        if goes_on and not r.quiet:
            n = header.n.value
            once, header.powers = distributed(r, body, header.counter, n, accesses)
        if found is None or why:
            if goes_on and not r.quiet:
                r.lines += in_variables(r, once, header, accesses)
            r.lines += by_rows(r, once, header.counter)
    if found is not None and not why:
        low, high = ("from", "to") if spreads else ("0", header.n.text)
        lines = header.around(r, once, low, high, many, state.jumps)
        kept = [v for v in carried.values() if v not in sums]
        each = (r.seconds - spent) / max(r.executions * times, 1)
        as_it_is = Iteration(
            header.counter, body, each, times, node.end_lineno or node.lineno, light
        )
        where = node.lineno, header.counter, lines, header.n.text
        r.lines.append(threaded(r, *where, kept, sums, found, as_it_is, spreads))
    else:
        own_file = r.frame.function.__code__.co_filename
        if header.tiles is None and own_file == r.entry.function.__code__.co_filename:
            r.dependent[node.lineno] = node.end_lineno or node.lineno, why
        if innermost:
            settle(places(once))
            header.unrolls = header.n is not None and _is_short(once) and not header.varies(r)
        high = header.n.text if header.n else ""
        if header.tiles is not None:
            lines, done = header.tiles
            header.place += lines
            high = f"({done} ? 0 : {high})"
        r.lines += header.around(r, once, "0", high, many, state.jumps)
    if header.always and not state.ends:
        frame.dead = True
        return True
    envs = r.environments
    for env, was in zip(envs, before, strict=True):
        env.clear()
        env.update(was)
    for (which, name), v in carried.items():
        envs[which][name] = v.load(r)
        r.owned[-1] += v.buffers()
    for (which, name), known in memory.items():
        if isinstance(known, Conflict):
            envs[which][name] = known
    return True


def _sums(
    r: Reader, node: ast.stmt, carried: dict[Key, Variable], state: LoopState
) -> tuple[list[Variable], str]:
    """Of a loop whose iterations do not meet in memory: the integers that it adds up, and why it is
    one thread's, if it is: an iteration takes another name from those before, say."""
    live = r.entry.live(r.frame.node).get(id(node))
    if not r.frame.whole or live is None:
        return [], "it is in a function that is read in its place"
    if state.ends or not state.agains or any(isinstance(x, ast.Return) for x in walk(node)):
        return [], "it may end before its last iteration"
    sums = []
    for (which, name), v in carried.items():
        if which or name.startswith(("__", "@")):
            return [], "it sets an attribute"
        if name in live.begin:
            adds = name not in live.shared and _only_adds(node, name)
            if not (isinstance(v.of, Num) and v.of.kind == "int" and adds):
                return [], f"an iteration takes {name!r} from the one before"
            sums.append(v)
        elif any(isinstance(env[0].get(name), (Maybe, type(None))) for env, _ in state.agains):
            return [], f"not each iteration gives {name!r} a value"
    return (sums, "") if len(sums) <= 8 else ([], "it adds up many integers")


def _only_adds(node: ast.stmt, name: str) -> bool:
    """Whether all that a loop does with a name is to add to it."""
    adds = {
        id(x.target) for x in walk(node)
        if isinstance(x, ast.AugAssign) and isinstance(x.op, (ast.Add, ast.Sub))
    }  # fmt: skip
    return all(id(x) in adds for x in walk(node) if isinstance(x, ast.Name) and x.id == name)


def _carried(
    r: Reader, before: list[dict[str, Value]], memory: dict[Key, Value], wanted: dict, steps: Steps
) -> tuple[dict[Key, Variable], frozenset[str]]:
    """Variables for the names that a loop changes, with the types that are known so far; which of
    these are counters."""
    carried: dict[Key, Variable] = {}
    counted: set[str] = set()
    envs = r.environments
    for which, env in enumerate(before):
        for name, x in env.items():
            key = which, name
            if key not in memory and name not in (wanted if which == 0 else ()):
                continue
            known = memory.get(key)
            of = x if known is None else join(x, known, r)
            counter = within_reach(r, name, x, steps) if which == 0 else None
            if counter is not None and isinstance(of, Num) and of.kinds == counter.kinds:
                counted.add(name)
                of = counter
            if isinstance(of, Conflict):
                envs[which][name] = of
            elif isinstance(of, HELD):
                memory[key] = of = as_type(of, keep=True)
                carried[key] = Variable(r, name, of)
            elif known is not None:
                envs[which][name] = Conflict(one_or_another(x, known))
    for key, known in memory.items():  # names that get their first value in the loop
        if key[1] not in before[key[0]] and isinstance(known, Maybe):
            carried[key] = Variable(r, key[1], known)
    return carried, frozenset(counted)


def _guess_extents(r: Reader, before: Value, x: Value) -> None:
    """How large an array is thought to be in a loop: as it was before."""
    if isinstance(before, Arr) and isinstance(x, Arr):
        for old, new in zip(before.dims, x.dims, strict=True):
            if new.lin is not None and new.text in new.lin.terms:
                r.entry.known[new.text] = r.entry.at(old.lin)


def _is_between(r: Reader, name: str) -> bool:
    """Whether a name is the reader's own, of a value between two steps of an iteration: not one of
    the function's, nor of a generator or a manager that is read in its place."""
    return name.startswith("__") and name not in r.frame.scope and not _IN_PLACE.match(name)


_IN_PLACE = re.compile(r"__(each|with|numbered)\d+_\d+_")


def _outgrown(
    r: Reader, node: ast.stmt, carried: dict[Key, Variable], entry: list, state: LoopState,
    memory: dict[Key, Value],
) -> bool:  # fmt: skip
    """Whether the types that come back to the head of a loop are not those it was read for."""
    grew = False
    for snapshot, _ in state.agains:
        for which, env in enumerate(snapshot):
            for name, x in env.items():
                key = which, name
                old = entry[which].get(name)
                if key in carried:
                    if which == 0 and name in state.counted:
                        x = as_counted(x, carried[key].of)
                    if not same_type(carried[key].of, x, r):
                        _grow(r, memory, key, carried[key].of, x)
                        grew = True
                elif old is not None:
                    same = is_same(old, x) or isinstance(old, Conflict)
                    if not same and not _is_between(r, name):
                        memory[key] = as_type(join(old, x, r), keep=True)
                        grew = True
                elif name.startswith("@"):
                    r.late.add(name)
                    grew = True
                elif name in r.missing or (
                    # Bound in some iterations: what an earlier one has bound is kept.
                    isinstance(x, Maybe)
                    and not _is_between(r, name)
                    and r.is_read_later(node, name, in_it=True)
                ):
                    memory[key] = as_type(x) if isinstance(x, Maybe) else Maybe(as_type(x), "")
                    grew = True
    for snapshot, _ in state.ends:  # where attributes were set before a `break`
        for which, env in enumerate(snapshot):
            for name, x in env.items():
                old = entry[which].get(name)
                if not name.startswith("@") or (which, name) in carried:
                    continue
                if old is None:
                    r.late.add(name)
                    grew = True
                elif not is_same(old, x) and not isinstance(old, Conflict):
                    memory[which, name] = as_type(join(old, x, r), keep=True)
                    grew = True
    return grew


def _stores(
    r: Reader, carried: dict[Key, Variable], entry: list, state: LoopState,
    memory: dict[Key, Value],
) -> bool:  # fmt: skip
    """Write the stores at each way back, and each way out; False if a type does not do."""
    for snapshot, lines in (*state.agains, *state.ends):
        stores: list = []
        pairs: list[tuple[Variable, Value]] = []
        with r.elsewhere(stores):
            for (which, name), v in carried.items():
                if name not in snapshot[which]:
                    continue
                x = snapshot[which][name]
                if name in entry[which] and is_same(entry[which][name], x):
                    continue
                if which == 0 and name in state.counted:
                    x = as_counted(x, v.of)
                if not same_type(v.of, x, r):
                    _grow(r, memory, (which, name), v.of, x)
                    return False
                pairs.append((v, x))
            r.lines += stored(r, pairs)
        lines[:0] = stores
    return True


def _grow(r: Reader, memory: dict, key: Key, of: Value, x: Value) -> None:
    """Make the type of a name hold x as well."""
    memory[key] = _widened(of, as_type(join(of, x, r), keep=True))


def _narrowed(r: Reader, state: LoopState) -> list[dict[str, Value]]:
    """The names at the end of an iteration. Integers that it has changed are no larger than indices
    where that is known, as of those that were indices."""
    names = r.snapshot()
    for env, was in zip(names, state.entry, strict=True):
        for name, x in env.items():
            if not isinstance(x, Num) or x.rep != "i64" or x.lin is None or x.high <= FAR:
                continue
            if not (name in was and is_same(was[name], x)) and r.facts.proves(-x.lin + FAR):
                env[name] = replace(x, high=FAR)
    return names


def _widened(of: Value, new: Value) -> Value:
    """A type that has grown, with bounds of integers that will not do so for ever."""
    if isinstance(new, Num) and isinstance(of, Num) and new.rep == of.rep:
        low = of.low if new.low >= of.low else 0 if new.low >= 0 else -WIDE
        high = of.high if new.high <= of.high else FAR if new.high <= FAR else WIDE - 1
        return replace(new, low=low, high=high)
    if isinstance(new, Flagged):
        return type(new)(_widened(of.value if isinstance(of, Flagged) else of, new.value), "")
    if isinstance(new, Aggregate) and type(of) is type(new) and len(of.items) == len(new.items):
        return replace(new, items=tuple(map(_widened, of.items, new.items)))
    return new


def _is_short(lines: list) -> bool:
    """Whether what was written is a few lines of C, without loops."""
    return _length(lines) <= _SHORT and not loops_in(lines)


def _length(lines: list) -> int:
    texts = [x for x in lines if isinstance(x, str) and not x.startswith("/*")]
    return len(texts) + sum(_length(x) for x in lines if isinstance(x, list))


def _new_names(
    r: Reader, node: ast.stmt, entry: list, state: LoopState, memory: dict[Key, Value]
) -> dict[Key, Variable]:
    """Variables for names that have their first value in a loop, and are asked for behind it. Of a
    name that no variable holds, `memory` has why."""
    found: dict[Key, Value] = {}
    for snapshot, _ in (*state.agains, *state.ends):
        for which, env in enumerate(snapshot):
            for name, x in env.items():
                if name in entry[which] or _is_between(r, name):
                    continue
                if which == 0 and not r.is_read_later(node, name):
                    continue
                new: Value
                if isinstance(x, (Known, *HELD)):
                    new = x if isinstance(x, Maybe) else Maybe(x, "")
                else:
                    new = x if isinstance(x, Conflict) else Conflict("it is set in a loop only")
                old = found.get((which, name))
                of = new if old is None else join(old, new, r)
                found[which, name] = (
                    of if isinstance(of, Conflict) else Maybe(as_type(of.value), "")
                )
    memory |= {key: of for key, of in found.items() if isinstance(of, Conflict)}
    return {key: Variable(r, key[1], of) for key, of in found.items() if isinstance(of, Maybe)}


def break_(r: Reader, node: ast.Break) -> None:
    lines: list = []
    if not r.loops:
        raise Unreadable("break")
    state = r.loops[-1]
    state.ends.append((r.snapshot(), lines))
    r.lines += [lines, *r.releases(state.scopes), state.breaks()]
    r.frame.dead = True


def continue_(r: Reader, node: ast.Continue) -> None:
    lines: list = []
    if not r.loops:
        raise Unreadable("continue")
    state = r.loops[-1]
    state.agains.append((_narrowed(r, state), lines))
    r.lines += [lines, *r.releases(state.scopes), "continue;"]
    r.frame.dead = True
