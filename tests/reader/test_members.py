"""Members of the user's enumerations as values."""

from __future__ import annotations

from enum import Enum, Flag, IntEnum, StrEnum, auto

import numpy as np
import pytest

import np_compile

from .support import case, check, check_whatever_leaves, each, exact, refusals, whole

A = np.array([1.5, -0.5, 0.0, 3.0, -2.5, 0.0, 7.0, 0.25])
CALLS = (A,), (A[:1],), (np.zeros(0),), (-A,)


class State(Enum):
    S = auto()
    I = auto()  # noqa: E741
    R = auto()


class Turn(Enum):
    UP = 1
    DOWN = -1
    IDLE = 0


class Kind(Enum):
    X = "first"
    Y = "y"


def in_lists(a):
    states, n = [State.S] * len(a), 0
    for i, v in enumerate(a):
        if v > 0:
            states[i] = State.I
        elif v < -1:
            states[i] = State.R
    for s in states:
        if s is State.I:
            n += 1
        elif s == State.R:
            n += 10
        if s in (State.S, State.I):
            n += 100
        if s is not State.S and s != State.I:
            n += 1000
    return states, n


def values(a):
    turn, at = Turn.IDLE, 0
    for v in a:
        turn = Turn.UP if v > 0.3 else Turn.DOWN if v < -0.3 else Turn.IDLE
        at += turn.value
        if turn:
            at += 10
    return at, turn, turn.name, turn.value


def texts(a):
    kind, n = Kind.X, 0
    for v in a:
        kind = Kind.Y if v > 0 else Kind.X
        n += kind.value == "first"
    return kind, n, kind.value


def keys(a):
    counts = {}
    for v in a:
        k = State.S if v > 0 else State.I
        counts[k] = counts.get(k, 0) + 1
    return counts


def or_none(a):
    x, n = None, 0
    for _ in a:
        if x is None:
            x = State.S
        elif x == State.S:
            x = State.I
        else:
            x = State.R
        n += isinstance(x, State) + 10 * (x is Turn.UP) + 100 * (x == 1) + 1000 * (x is None)
    return x, n, [x] * 2, (x, State.I)


class Lift:
    def __init__(self):
        self.turn, self.at, self.log = Turn.IDLE, 0, []

    def go(self, to):
        if to > self.at:
            self.turn = Turn.UP
        elif to < self.at:
            self.turn = Turn.DOWN
        else:
            self.turn = Turn.IDLE
        self.at += self.turn.value
        self.log.append(self.turn)


def attributes(a):
    lift = Lift()
    for v in a:
        lift.go(v * 5)
    return lift.at, lift.turn, lift.log


def shown(a):
    s = State.S
    for v in a:
        if s == State.S and v > 0:
            s = State.I
        print(s, s.name, f"{s}")
    return s


def all_of_them(a):
    n = 0
    for k in State:
        for v in a:
            if k is State.I and v > 0:
                n += 1
    return n, [sum(1 for v in a if v > 0 and k is State.S) for k in State]


def leaves(a):
    s, out = State.S, []
    for v in a:
        if v > 0:
            s = State.I
        out.append((s, v))
        if v > 2:
            out[10]
    return out


@each([exact(f, *CALLS) for f in (in_lists, values, texts, keys, or_none, attributes, shown,
                                  all_of_them, leaves)])  # fmt: skip
def test_reads(c):
    check(c)


def test_from_outside():
    def run(turn, a):
        n = 0
        for v in a:
            n += v > turn.value
            turn = Turn.UP if v > 0 else Turn.DOWN
        return n, turn

    fast = np_compile.compile(run)
    with whole():
        for turn in (*Turn, *Turn):
            assert fast(turn, A) == run(turn, A)
    assert not refusals(fast)


class Number(IntEnum):
    ONE = 1
    TWO = 2


class Bits(Flag):
    A = 1
    B = 2


class Odd(Enum):
    A = 1
    B = 2

    def __eq__(self, other):
        return True

    __hash__ = Enum.__hash__


class Mixed(Enum):
    A = "text"
    B = 2.5

    def twice(self):
        return 2


@pytest.mark.parametrize("kind", [Number, Bits, Odd, Mixed])
def test_others_are_pythons(kind):
    first, second = kind

    def run(a):
        n, s = 0, first
        for v in a:
            s = second if v > 0 else first
            if s == first:
                n += 1
        return n, s, s.value

    check_whatever_leaves(run, list(CALLS))


def ordered(a):
    s, n = State.S, 0
    for v in a:
        if v > 0:
            s = State.I
        n += s < State.I
    return n


def sorted_ones(a):
    found = [State.S]
    for v in a:
        if v > 0:
            found += [State.I]
    return sorted(found)


def of_two_enumerations(a):
    s = State.S
    for v in a:
        s = State.I if v > 0 else Turn.UP
    return s


def as_an_array(a):
    s = State.S
    for v in a:
        if v > 0:
            s = State.I
    return np.array([s, State.S])


def numpy_compares(a):
    s, n = State.S, 0
    for v in a:
        if v > 0:
            s = State.I
        n += bool(v == s)
    return n


@each([case(f, *CALLS) for f in (ordered, sorted_ones, of_two_enumerations, as_an_array,
                                 numpy_compares)])  # fmt: skip
def test_what_is_not_read_is_pythons(c):
    check_whatever_leaves(c.function, c.calls)


class Code(IntEnum):
    ADD = 0
    MUL = 1
    NEG = 2
    LAST = -3


class Changed(IntEnum):
    """With an operator of its own."""

    A = 1

    def __add__(self, other):
        return 100


class Mixed(int, Enum):
    A = 1


def as_integers(a):
    code, t, counts, table = Code.ADD, 0, np.zeros(3), [5, 6, 7]
    for v in a:
        if v > 0:
            code = Code.MUL
        elif v < -3:
            code = Code.ADD
        else:
            code = Code.NEG
        t += code * 2 - v + table[code]
        counts[code] += 1
        if code:
            t += 100
        if code is Code.NEG:
            t += 1000
        if code < Code.NEG and code in (0, Code.LAST):
            t += 10000
        t += (code == 1) + (code != 2.0) + int(code) + code.value + code % 2 + (code == Mixed.A)
        t += (Mixed.A == Code.MUL) + (code in table) + len([0] * code)
    return t, code, counts, [code, Code.MUL], code.name


def decoded(codes):
    stack, n = [], 0
    for c in codes:
        if c == Code.ADD:
            stack.append(1)
        elif c == Code.MUL:
            stack.append(2)
        elif c >= Code.NEG:
            n += 1
        else:
            stack.append(int(Code.NEG))
    return stack, n


def matched(a):
    t = 0
    for i in range(len(a)):
        match int(a[i]):
            case Code.ADD:
                t += 1
            case Code.LAST:
                t += 10
    return t


def given_codes(op, a):
    t = 0
    for v in a:
        t += v * op
        if op == Code.MUL:
            t += 1
    return t, op


def counted_codes(a):
    counts = {}
    for v in a:
        k = Code.MUL if v > 0 else Code.NEG
        counts[k] = counts.get(k, 0) + 1
    return counts


class Steps:
    def __init__(self):
        self.state, self.n = Code.ADD, 0

    def step(self, v):
        if self.state == Code.ADD:
            self.state = Code.MUL if v > 0 else Code.NEG
        elif self.state >= Code.NEG:
            self.state = Code.ADD
        else:
            self.n += self.state + 1
            self.state = Code.NEG


def by_steps(a):
    steps = Steps()
    for v in a:
        steps.step(v)
    return steps.state, steps.n


def widened(x):
    y = x
    for _ in range(3):
        y = y * Code.NEG + Code.MUL
    return y


def of_numpys(x):
    t = 0
    for i in range(len(x)):
        t += x[i] * Code.NEG
    return t


def with_its_own_operator(a):
    t = 0
    for v in a:
        t += Changed.A + v
    return t


N = np.array([3, -5, 0, 2, -3, 7, 1, -1, 0, -3])
OF_INTEGERS = [
    exact(as_integers, (N,), (N.tolist() * 4,), (A,)),
    exact(decoded, (N,), (N.tolist() * 4,), (N.astype(np.int8),), (A,)),
    exact(matched, (N,), (A,)), exact(by_steps, (N,), (A,)), exact(counted_codes, (N,)),
    exact(given_codes, (2, N), (1.5, N), (True, A)),
]  # fmt: skip


@each(OF_INTEGERS)
def test_members_that_are_integers(c):
    check(c)


def test_members_that_are_integers_as_arguments():
    fast = np_compile.compile(given_codes)
    with whole():
        for op in (Code.MUL, Code.NEG, Code.ADD, 1, Code.MUL):
            assert repr(fast(op, N)) == repr(given_codes(op, N))
    assert not refusals(fast)


def test_members_beside_arrays_are_as_numpy_takes_them():
    for dtype in (np.int8, np.int32, np.int64, np.float32, float):
        check_whatever_leaves(widened, [(N.astype(dtype),)])
        check_whatever_leaves(of_numpys, [(N.astype(dtype),)])
    check_whatever_leaves(with_its_own_operator, [(N,)])


class Side(str, Enum):  # noqa: UP042 - as programs have them
    CALL = "call"
    PUT = "put"


def of_a_side(side, a):
    t, n = 0.0, 0
    for v in a:
        t += v if side is Side.CALL else 2 * v
        n += side is not Side.PUT
    return t, n, side is Side.PUT


def of_equal_sides(side, a):
    t = 0.0
    for v in a:
        t += v if side == Side.CALL else 2 * v
        t *= 0.5 if side == "put" else 1.0
    return t, side in (Side.CALL, "x")


def test_members_that_are_text_are_no_constants():
    for f in (of_a_side, of_equal_sides):
        check_whatever_leaves(f, [(Side.CALL, A), (Side.PUT, A), ("call", A)])


class Phase(str, Enum):  # noqa: UP042 - as programs have them
    READY = "ready"
    RUN = "run"
    DONE = "x"

    def __str__(self):
        return f"<{self.value}>"


class Word(StrEnum):
    RUN = "run"
    STOP = "stop"


def phases(a):
    """Members are equal to texts and to members of other enumerations of texts."""
    s, t, n, seen = Phase.READY, Word.STOP, 0, []
    for v in a:
        if s is Phase.READY and v > 0:
            s, t = Phase.RUN, Word.RUN
        elif s == "run" and v < 0:
            s = Phase.DONE
        elif s == Phase.DONE:
            s = Phase.READY
        n += (s == t) + 2 * (t == s) + 4 * (s != Word.RUN) + 8 * (s == "x") + 16 * (s == "y")
        n += 32 * (s in ("ready", Phase.DONE)) + 64 * (s not in (Word.RUN, "x")) + 128 * bool(s)
        n += 256 * (s == State.S) + 512 * (s == 1) + 1024 * (t is Word.RUN)
        seen.append(s)
    return s, t, n, seen, s.value, s.name


def matched_phases(a):
    n, s = 0, Phase.READY
    for v in a:
        match s:
            case "ready":
                s, n = Phase.RUN, n + 1
            case Phase.RUN if v > 0:
                s, n = Phase.DONE, n + 10
            case Phase.DONE:
                s = Phase.READY
    return n, s


def counted_phases(a):
    count = {Phase.READY: 0, Phase.RUN: 0}
    for v in a:
        count[Phase.RUN if v > 0 else Phase.READY] += 1
    return count, count[Phase.RUN]


def of_a_phase(s, a):
    n = 0.0
    for v in a:
        n += 2 * v if s == Phase.RUN else v if s == "x" else 0.0 if s in ("y", Word.STOP) else 1.0
    return n, s == "run"


def named_by_phases(d, a):
    t, s = 0.0, Phase.READY
    for v in a:
        t += d[Phase.RUN] * v + d.get(Phase.DONE, 3.0) + (Phase.READY in d) + (s in d)
        s = Phase.RUN if v > 0 else Phase.READY
        if s == "run":
            t += d[s]
    return t


TEXTS_OF_MEMBERS = [
    case(phases, *CALLS),
    case(matched_phases, *CALLS),
    case(counted_phases, *CALLS),
    case(of_a_phase, *[(s, A) for s in (*Phase, *Word, "run", "x", "other", None, Phase.RUN)]),
    case(named_by_phases, ({"run": 2.0, "ready": 1.0}, A), ({"run": 2.0}, A)),
]


@each(TEXTS_OF_MEMBERS)
def test_members_that_are_texts(c):
    check(c)


def one_or_the_other(a):
    """A text and a member that is equal to it are two objects."""
    s, n = "run", 0
    for v in a:
        n += (s == Phase.RUN) + 2 * isinstance(s, Phase)
        s = Phase.RUN if v > 0 else "run"
    return s, type(s), n


def a_text_or_a_member(a):
    out = []
    for v in a:
        s = Phase.RUN if v > 0 else "run"
        out.append(s)
        out.append(v)
    return out


def as_texts_are(a):
    n, s = 0, Phase.RUN
    for v in a:
        s = Phase.RUN if v > 0 else Phase.DONE
        n += len(s) + (s < "s") + ("u" in s) + (s + "!" == "run!") + s.count("r")
    return n, s.upper(), s[0], f"{s}", sorted([s, Phase.READY]), max(s, "b"), ",".join([s, "a"])


def keys_by_text(a):
    count = {Phase.READY: 0, Phase.RUN: 0}
    for v in a:
        count["run" if v > 0 else "ready"] += 1
    names = {"run": 1, "ready": 2}
    return count, sum(names[Phase.RUN if v > 0 else Phase.READY] for v in a)


def in_containers(a):
    n, seen, s = 0, set(), Phase.READY
    words = ["run", "ready"]
    for v in a:
        s = Phase.RUN if v > 0 else Phase.DONE
        n += (s in words) + 10 * ("run" in seen) + 100 * (s in seen)
        seen.add(s)
    return n, len(seen), [Phase.RUN] == ["run"], (Phase.RUN, 1) == ("run", 1)


def beside_arrays(a):
    n = 0
    for v in a:
        s = Phase.RUN if v > 0 else Phase.READY
        n += (s == v) + (v != s)
    return n, a == Phase.RUN


MORE = (
    one_or_the_other, a_text_or_a_member, as_texts_are, keys_by_text, in_containers, beside_arrays,
)  # fmt: skip


@pytest.mark.parametrize("f", MORE)
def test_members_that_are_texts_are_pythons_where_more_is_asked(f):
    check_whatever_leaves(f, list(CALLS))


class Compared(str, Enum):  # noqa: UP042
    A = "a"
    B = "b"

    def __eq__(self, other):
        return other == 1

    __hash__ = str.__hash__


class Made(str, Enum):  # noqa: UP042
    A = "a"
    B = "b"

    def __new__(cls, value):
        made = str.__new__(cls, value + "!")
        made._value_ = value
        return made


@pytest.mark.parametrize("kind", [Compared, Made])
def test_members_with_a_text_of_their_own(kind):
    first, second = kind

    def run(a):
        n, s = 0, first
        for v in a:
            s = second if v > 0 else first
            n += (s == first) + 2 * (s == "a") + 4 * (s == "a!") + 8 * (s == 1)
        return n, s

    check_whatever_leaves(run, list(CALLS))
