"""Lists of objects from outside: they are read when a region begins, and stay who they are."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

import np_compile

from .support import (
    Case,
    calls_in_python,
    check,
    check_call,
    check_whatever_leaves,
    each,
    exact,
    whole,
)


@dataclass
class Body:
    x: float
    y: float
    vx: float = 0.0
    vy: float = 0.0
    m: float = 1.0

    def push(self, fx, fy, dt):
        self.vx += fx / self.m * dt
        self.vy += fy / self.m * dt
        self.x += self.vx * dt
        self.y += self.vy * dt

    @property
    def energy(self):
        return 0.5 * self.m * (self.vx**2 + self.vy**2)


class Agent:
    kinds = 3

    def __init__(self, pos, state=0):
        self.pos = np.array(pos, float)
        self.state = state
        self.age = 0
        self.seen = []
        self.name = f"a{state}"
        self.mate = None

    def move(self, step, box):
        self.pos = (self.pos + step) % box
        self.age += 1

    def drift(self, step):
        self.pos += step


class Base:
    def __init__(self, n):
        self.n = n


class Counted(Base):
    def __init__(self, n, hits):
        super().__init__(n)
        self.hits = hits


class Slotted:
    __slots__ = ("left", "n")

    def __init__(self, n):
        self.n = n


class Narrow(Slotted):
    __slots__ = ("hits",)

    def __init__(self, n, hits):
        super().__init__(n)
        self.hits = hits


@dataclass(frozen=True)
class Edge:
    a: int
    b: int
    w: float = 1.0


@dataclass
class Ranked:
    score: float
    tags: list = field(default_factory=list)
    best: float | None = None


@dataclass
class World:
    agents: list
    t: int = 0

    def step(self, n):
        for _ in range(n):
            for a in self.agents:
                a.age += 1
                if a.age > 3 and a.state == 0:
                    a.state = 1
            self.t += 1
        return sum(a.state for a in self.agents)


def bodies(n):
    r = np.random.default_rng(n)
    return [Body(*map(float, r.normal(size=4)), m=1.0 + k % 3) for k in range(n)]


def agents(n):
    r = np.random.default_rng(n)
    return [Agent(r.uniform(0, 10, 2), k % 3) for k in range(n)]


def gravity(ps, steps, dt):
    for _ in range(steps):
        forces = []
        for p in ps:
            fx = fy = 0.0
            for q in ps:
                if q is p:
                    continue
                dx, dy = q.x - p.x, q.y - p.y
                d2 = dx * dx + dy * dy + 0.01
                fx += q.m * dx / (d2 * math.sqrt(d2))
                fy += q.m * dy / (d2 * math.sqrt(d2))
            forces.append((fx, fy))
        for p, (fx, fy) in zip(ps, forces):  # noqa: B905
            p.push(fx, fy, dt)
    return sum(p.energy for p in ps), max(ps, key=lambda p: p.x)


def moved(those, steps, n):
    for t in range(n):
        for a in those:
            a.move(steps[t], 10.0)
            if a.state == 1 and a.pos[0] > 5:
                a.state = 2
    return np.array([a.pos for a in those]), [a.age for a in those]


def in_place(those, steps):
    """Memory that objects share with each other, and with arguments, is changed for all."""
    for k in range(len(steps)):
        for a in those:
            a.drift(steps[k])
            a.pos[1] *= 0.5
        steps[k, 0] += those[0].pos[0]
    return those[0].pos, those[-1].pos is those[0].pos


def rebound(those, x):
    for k in range(len(those)):
        a = those[k]
        if k % 3 == 0:
            a.pos = x[k]
        elif k % 3 == 1:
            a.pos = those[k - 1].pos
        else:
            a.pos = np.zeros(2) + k
        x[k] += a.pos
    return [a.pos for a in those], x


def who(those, n):
    """Objects come back as who they are."""
    found = [a for a in those if a.state == 1]
    last = those[0]
    for k in range(n):
        if those[k].age <= last.age:
            last = those[k]
        those[k], those[-1 - k] = those[-1 - k], those[k]
    return found, last, those[2] is last, those


def twice(those, n):
    """One object in two places."""
    for k in range(n):
        those[k % len(those)].age += 1
        those[0].age *= 2
    return [a.age for a in those], those[0] is those[-1]


def born(those, n):
    for k in range(n):
        if those[k].n % 2:
            those.append(Counted(those[k].n * 10, k))
        else:
            those[k].hits -= 1
    return those, those[-1]


def gone(those, limit):
    kept = []
    for a in those:
        if a.score < limit:
            a.tags.append(len(kept))
            continue
        a.best = a.score if a.best is None else max(a.best, a.score)
        kept.append(a)
    those[:] = kept
    return len(kept)


def listed(those):
    for k in range(len(those)):
        those[k].tags.append(k)
        those[k].tags[0] += 1
    return those[0].tags


def other_types(those, n):
    for k in range(n):
        those[k % len(those)].n += 0.5 if k % 3 else 1
    return those


def shortest(edges, n):
    best = [math.inf] * n
    best[0] = 0.0
    for _ in range(n):
        for e in edges:
            best[e.b] = min(best[e.b], best[e.a] + e.w)
    return best, sorted(edges, key=lambda e: -e.w)[0]


def fails(those, n):
    for _ in range(n):
        for a in those:
            a.n += 1
            a.hits = 10 // (5 - a.n)
    return those


def of_an_attribute(w, n):
    return w.step(n), w.t


def with_one_of_them(those, leader, n):
    for _ in range(n):
        for a in those:
            a.x += 1.0
        leader.x *= 2.0
    return leader.x


def totals(those):
    t = 0.0
    for k, a in enumerate(reversed(those)):
        t += k * a.x + len(those)
    return t, any(a.x > 1 for a in those), np.array([[a.x, a.y] for a in those])


class Server:
    def __init__(self):
        self.free_at, self.log, self.names, self.score = 0.0, [], [], None

    def rate(self):
        self.score = self.free_at * 2 % 7
        return self.score


def queue(servers, arrivals, services):
    """A few objects, of which a function finds one."""
    waits = []
    for a, s in zip(arrivals, services):  # noqa: B905
        first = min(servers, key=lambda x: x.free_at)
        start = max(a, first.free_at)
        first.free_at = start + s
        first.log.append((a, start))
        first.names.append(len(waits))
        waits.append(start - a)
    return sum(waits), [len(s.log) for s in servers]


def rated(servers, n):
    """What is None at first."""
    for k in range(n):
        servers[k % len(servers)].free_at += 1.5 * k
        for s in servers:
            s.rate()
        servers.sort(key=lambda s: s.score)
    return servers[0].score


def rated_in_vain(servers):
    servers[1].rate()
    servers.sort(key=lambda s: s.score)


def cells(grid, steps):
    """Lists of lists of objects."""
    for _ in range(steps):
        for i in range(len(grid)):
            for j in range(len(grid[0])):
                c = grid[i][j]
                c.hits = c.n + grid[i - 1][j].n
        for row in grid:
            for c in row:
                c.n = c.hits % 5
    return sum(c.n > 2 for row in grid for c in row)


def texts_appended(servers, n):
    """Lists that are to hold what C does not read."""
    for k in range(n):
        servers[0].log.append(("in", k))
        servers[1].free_at += k
    return servers[0].log


def counted(n):
    return [Counted(k, k * k) for k in range(n)]


def ranked(n):
    return [Ranked(float(k * 7 % 5), [k]) for k in range(n)]


def edges(n):
    return [Edge(k, (k * 3 + 1) % n, 1.0 + k % 4) for k in range(n)]


def shared(n):
    made = agents(n)
    made[-1].pos = made[0].pos
    return made


X = np.arange(24.0).reshape(12, 2)
CASES: list[Case] = [
    exact(gravity, (bodies(12), 3, 0.01), (bodies(9), 2, 0.1), (bodies(70), 1, 0.01)),
    exact(moved, (agents(10), X, 4), (agents(70), X, 2)),
    exact(in_place, (agents(9), X[:3]), (shared(9), X[:2]), (agents(66), X[:2])),
    exact(rebound, (agents(12), X), (shared(9), X)),
    exact(who, (agents(12), 5), (agents(70), 3)),
    exact(twice, ([*(a := agents(9)), a[0]], 14), (agents(9), 5)),
    exact(born, (counted(10), 6), (counted(9), 0)),
    exact(gone, (ranked(12), 2.5), (ranked(12), -1.0), (ranked(12), 99.0)),
    exact(listed, (ranked(12),)),
    exact(other_types, (counted(10), 20), (counted(10), 1)),
    exact(shortest, (edges(12), 12), (edges(80), 80)),
    exact(of_an_attribute, (World(agents(12)), 5), (World(agents(70)), 2)),
    exact(totals, (bodies(12),), (bodies(90),)),
    exact(queue, ([Server() for _ in range(3)], list(X[:, 0]), [2.5, 7.0, 1.0] * 4)),
    exact(rated, ([Server() for _ in range(10)], 4)),
    exact(cells, ([[Counted(j * i, 0) for j in range(9)] for i in range(4)], 3)),
]


@each(CASES)
def test_lists_of_objects(c: Case) -> None:
    fast = check(c)
    assert not calls_in_python(fast)


def test_what_runs_in_python() -> None:
    """Lists of which C does not read the objects, or that are not what they were."""
    b = bodies(9)
    check_whatever_leaves(
        with_one_of_them, [(b, b[3], 3), (bodies(9), Body(1.0, 2.0), 3), (b, b[0], 2)]
    )
    check_whatever_leaves(totals, [(bodies(12),), ([*bodies(9), agents(1)[0]],), (bodies(12),)])
    odd = bodies(12)
    odd[5].x = 7  # type: ignore[assignment]
    odd[6].__dict__.pop("m")
    check_whatever_leaves(totals, [(bodies(12),), (odd,), (bodies(12),)])
    check_whatever_leaves(gravity, [(bodies(12), 2, 0.1), (odd, 1, 0.1), (bodies(12), 2, 0.1)])


def test_an_exception_amid() -> None:
    check_whatever_leaves(fails, [(counted(12), 2), (counted(4), 1), (counted(12), 3)])


def test_what_is_none() -> None:
    check_whatever_leaves(rated_in_vain, [([Server() for _ in range(10)],)])
    check_whatever_leaves(texts_appended, [([Server() for _ in range(n)], 3) for n in (3, 12, 70)])


def test_classes_that_change() -> None:
    """A method that is replaced, an attribute that becomes a property."""

    class Thing:
        def __init__(self, v):
            self.v = v

        def value(self):
            return self.v

    def total(those):
        t = 0.0
        for a in those:
            t += a.value()
        return t

    those = [Thing(float(k)) for k in range(12)]
    fast = np_compile.compile(total)
    with whole():
        assert fast(those) == fast(those) == 66.0
        Thing.value = lambda self: 2 * self.v  # type: ignore[method-assign]
        assert fast(those) == 132.0
        Thing.v = property(lambda self: 1.0, lambda self, x: None)  # type: ignore[attr-defined]
        assert fast(those) == 24.0


def test_objects_with_slots() -> None:
    def grown(those, n):
        for k in range(n):
            those[k].hits += those[k].n
            those.append(Narrow(those[k].n * 10, k))
        return those[-1]

    mine, theirs = ([Narrow(k, 2 * k) for k in range(12)] for _ in range(2))
    before = list(mine)
    fast = np_compile.compile(grown)
    with whole():
        for _ in range(2):
            assert fast(mine, 5) is mine[-1]
            grown(theirs, 5)
    assert all(a is b for a, b in zip(mine, before, strict=False))
    assert [(type(a), a.n, a.hits) for a in mine] == [(Narrow, a.n, a.hits) for a in theirs]
    assert not hasattr(mine[-1], "left")
    assert not fast._reading.given_up


class Called:
    """With an attribute that C does not read."""

    def __init__(self, n):
        self.n = n
        self.f = abs


def made_beside(those, n):
    """Objects of the class are made, where a list of them is not read as one."""
    t = 0
    for k in range(n):
        t += Called(k).n + those[k].f(-k)
    return t


def test_objects_with_attributes_that_are_not_read() -> None:
    check_whatever_leaves(made_beside, [([Called(k) for k in range(n)], 3) for n in (3, 12, 70)])


def pushed_by_name(rows, x):
    t = 0.0
    for _, body in rows:
        t += body.m * x[0]
        body.vx = t
    return t


def pairs_of_pairs(rows, x):
    t = 0.0
    for _, (a, b) in rows:
        t += a.m * x[0] + b.y
        a.y += t
    return t


def with_dicts(rows, x):
    t = 0.0
    for body, d in rows:
        t += body.m * d["k"] + sum(d.values()) * x[1]
        d["k"] = t
    return t


def made_of_dicts(rows, x):
    t = 0.0
    for _, (scale, d) in rows:
        t += Body(**d).y * scale * x[0] + d["y"]
    return t


@pytest.mark.parametrize("loops", ["auto", "whole"])
@pytest.mark.parametrize(
    ("f", "rows"),
    [
        (pushed_by_name, [("a", Body(1.0, 2.0)), ("b", Body(3.0, 4.0, m=2.0))]),
        (pairs_of_pairs, [(k, (Body(k, 2.0), Body(1.0, k))) for k in (1.5, 2.5)]),
        (with_dicts, [(Body(1.0, 2.0), {"k": 1.0}), (Body(1.0, 2.0), {"k": 2.0, "l": 3.0})]),
        (made_of_dicts, [("a", (2.0, {"x": 1.0, "y": 2.0})), ("b", (0.5, {"x": 1.0, "y": 0.5}))]),
    ],
)
def test_objects_and_dicts_in_tuples_of_a_list(f, rows, loops):
    fast = np_compile.compile(f)
    with np_compile.config.patch(loops=loops):
        for k in range(4):
            check_call(fast, f, (rows, np.arange(3.0) + k), 0)


def test_rows_of_an_attribute():
    def total(o, x):
        t = 0.0
        for _, d in o.rows:
            t += Body(**d).y * x[0]
            for k in range(len(x)):
                t += d["y"] * x[k]
        return t

    fast = np_compile.compile(total)
    for k in range(4):
        o = SimpleNamespace(rows=[("a", {"x": 1.0, "y": 2.0}), ("b", {"x": 1.0, "y": 0.5})])
        assert fast(o, np.arange(3.0) + k) == total(o, np.arange(3.0) + k)
