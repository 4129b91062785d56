"""Constant texts as values in compiled functions: states, events, keys."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict, deque
from dataclasses import dataclass

import numpy as np
import pytest

import np_compile

from .support import check, check_whatever_leaves, each, exact, rarely, whole


class Gate:
    def __init__(self):
        self.state, self.n = "idle", 0

    def tick(self, v):
        if self.state == "idle" and v > 3:
            self.state = "busy"
        elif self.state == "busy":
            self.n += 1
            if v < 2:
                self.state = "idle"


def state_of_an_object(xs):
    gate = Gate()
    for v in xs:
        gate.tick(v)
    return gate.state, gate.n, gate


def items_by_name(xs):
    found = {"low": 0, "high": 0, "": 0.5}
    for v in xs:
        if v > 3:
            found["high"] += 1
        else:
            found["low"] += v
        if v == 7:
            found["seven"] = v
    return found, "seven" in found, found.get("low"), list(found), sorted(found)


def counts_and_lists(xs):
    counts, names = Counter(), []
    by = defaultdict(list)
    for v in xs:
        name = "even" if v % 2 == 0 else "odd"
        counts[name] += 1
        names.append(name)
        by["big" if v > 2 else "s"].append(v)
    total = {k: sum(v) for k, v in by.items()}
    return counts, names, total, set(names) == {"odd"}, len(set(names)), names.count("odd")


def events(xs):
    """Ties are put in the order of the texts, one of which begins another one."""
    queue = [(float(v % 3), "arrive", i) for i, v in enumerate(xs)]
    heapq.heapify(queue)
    log = []
    n = 0
    while queue:
        t, kind, i = heapq.heappop(queue)
        if kind == "arrive":
            heapq.heappush(queue, (t + 1, "arrived" if i % 2 else "a", i))
            if i % 3 == 0:
                heapq.heappush(queue, (t + 1, "", i))
            n += 1
        elif kind in ("a", "arrived"):
            n -= i
        log.append((t, kind, i))
    return log, n


def machine(xs):
    state, before = "start", None
    seen = []
    for v in xs:
        cost = {"start": 1, "run": 2, "stop": 3}[state]
        last = state
        if state == "start" and v > 2:
            state = "run"
        elif state == "run" and v == 1:
            state = "stop"
        elif state != "run":
            state = "start"
        if last != state:
            before = last
        seen.append(cost)
    return seen, state, before, before is None, not state


def walk(steps):
    moves = {"N": (-1, 0), "S": (1, 0), "E": (0, 1), "WW": (0, -2)}
    at = [0, 0]
    facing = "N"
    for s in steps:
        if s % 4 == 0:
            facing = "S"
        elif s % 4 == 1:
            facing = "WW"
        elif s % 4 == 2:
            facing = "E"
        dy, dx = moves[facing]
        at[0] += dy
        at[1] += dx
    return at, facing, facing < "S", facing < "Sx", facing <= facing


@dataclass
class Job:
    kind: str
    size: int


def jobs(xs):
    waiting = deque(Job("long" if v > 2 else "short", v) for v in xs)
    done = {}
    while waiting:
        job = waiting.popleft()
        if job.kind == "long" and job.size > 1:
            waiting.append(Job("rest", job.size - 2))
        done[job.kind] = done.get(job.kind, 0) + job.size
    return done, max(done, key=done.get), [(k, v) for k, v in done.items() if k != "rest"]


def labels(x):
    out = []
    for v in x:
        if v < 0:
            label = "negative"
        elif v == 0:
            label = None
        else:
            label = "positive"
        out.append(label)
    return out, [label or "none" for label in out]


def none_or_a_word(xs):
    """What may be None is compared without a way out."""
    tag, count, seen = None, None, []
    for v in xs:
        if v == 1:
            tag, count = "one", v
        elif v == 2:
            tag = ""
        elif v == 3:
            tag = count = None
        seen.append((tag, bool(tag), tag == "one", tag != "", count == 1, count != v))
    return seen, tag


def matched(xs):
    mode, n = "off", 0
    for v in xs:
        match (v, mode):
            case _ if v > 40:
                n += 1000
        match v:
            case 1 | 2:
                mode = "on"
            case None | True:
                n -= 100
            case _ if mode == "off":
                n += 1
            case 4:
                mode = "off"
        match mode:
            case "on":
                n += v
            case "off" | "idle":
                n -= 1
    return n, mode


class Laps:
    def __init__(self):
        self.laps = defaultdict(int)
        self.lines = defaultdict(deque)

    def note(self, name, v):
        self.laps[name] += v
        self.lines[name].append(v)


def noted(xs):
    """An item of a defaultdict that is an attribute is made, and then changed."""
    laps, last = Laps(), {0: None}
    for k, v in enumerate(xs):
        laps.note("big" if v > 2 else "small", v)
        last[k + 1] = k if v != 2 else None
    k = len(xs)
    while last[k] is not None:
        laps.laps["back"] += 1
        k = last[k]
    return dict(laps.laps), laps.lines["big"].popleft(), len(laps.lines["none"]), k


def raised(xs):
    state, n = "one", 0
    for v in xs:
        state = "two" if state == "one" else "one"
        n += 10 // v
        if state not in {"one": 1, "two": 2} or v == 40:
            raise KeyError(state)
    return n, state, f"{state}: {n}"


X = [1, 2, 3, 4] * 5


@each([
    exact(state_of_an_object, (X,), ([1, 5, 5],)),
    exact(items_by_name, (X,), ([7, 1] * 4,)),
    exact(counts_and_lists, (X,), ([1],)),
    exact(events, (X,), ([5, 1, 2],)),
    exact(machine, (X,), ([1, 2, 1],), ([5] * 9,)),
    exact(walk, (X,), ([3, 7],), ([6],)),
    exact(matched, (X,), ([1, 4, 50],)), exact(noted, (X,), ([4, 2],)),
    exact(none_or_a_word, (X,)), exact(jobs, (X,)),
    exact(labels, (np.array([1.0, 0, -2]),), (np.array([0.0]),)),
])  # fmt: skip
def test_words(c):
    check(c)


def test_what_leaves():
    check_whatever_leaves(raised, [([1, 2, 3] * 4,), ([1, 2, 0],), ([1, 2, 3, 40],), ([1, 40],)])


def grown(xs):
    """What is a character at first is a word later."""
    name, found = "a", []
    for c in "xyz":
        found.append(c)
        name = found[0]
    for v in xs:
        if v > 3:
            name = "abc"
        found.append(name)
    return found, found[0], found[-1], name == "a", "xyz"[len(xs) % 3] == name


@each(rarely(exact(grown, (X,), ([1],))))
def test_characters_are_words(c):
    check(c)


def spoken(xs):
    word = "no"
    for v in xs:
        if v > 3:
            word = "yes"
    return word.upper()


def dtypes(xs):
    kind, total = "f4", np.zeros(3)
    for v in xs:
        if v > 3:
            kind = "f8"
        total = total + np.full(3, v, dtype=kind)
    return total


@pytest.mark.parametrize("f", [spoken, dtypes])
def test_what_asks_for_the_text_is_pythons(f):
    check_whatever_leaves(f, [(X,), ([1, 2],)])


def test_none_is_compared_without_a_way_out():
    fast = np_compile.compile(none_or_a_word)
    with whole():
        fast(X)
        fast(X)
        assert "left" not in str(np_compile.explain(fast)(X))
