"""Objects that a compiled function makes: attributes, methods, identity, and where they go."""

from __future__ import annotations

import dataclasses
import heapq
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import np_compile

from .support import check, check_call, check_whatever_leaves, each, exact, refusals, whole


class Particle:
    count = 3

    def __init__(self, x, v=0.0):
        self.x = x
        self.v = v

    @property
    def energy(self):
        return 0.5 * (self.x * self.x + self.v * self.v)

    @staticmethod
    def half(x):
        return x / 2

    def step(self, dt):
        self.v -= self.x * dt
        self.x += self.v * dt
        return self.x


class Charged(Particle):
    def __init__(self, x, charge):
        super().__init__(x)
        self.charge = charge

    def step(self, dt):
        self.v += self.charge * dt
        return super().step(dt)


@dataclasses.dataclass
class Vector:
    x: float
    y: float = 0.0

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __mul__(self, k):
        return Vector(self.x * k, self.y * k)

    __rmul__ = __mul__

    def __iadd__(self, other):
        self.x += other.x
        self.y += other.y
        return self

    def __neg__(self):
        return Vector(-self.x, -self.y)

    def __abs__(self):
        return math.sqrt(self.x * self.x + self.y * self.y)


@dataclasses.dataclass(frozen=True, order=True, slots=True)
class Job:
    at: float
    who: int


@dataclasses.dataclass
class Walker:
    x: int
    trace: list = dataclasses.field(default_factory=list)
    best: float = dataclasses.field(init=False)

    def __post_init__(self):
        self.best = self.x * 1.0

    def go(self, d):
        self.x += d
        self.trace.append(self.x)
        self.best = max(self.best, float(self.x))


class Node:
    def __init__(self, value, next=None):
        self.value = value
        self.next = next


class Tree:
    def __init__(self, key):
        self.key = key
        self.left = None
        self.right = None
        self.seen = 1


class Ring:
    def __init__(self, n):
        self.items = [0] * n
        self.at = 0

    def __len__(self):
        return len(self.items)

    def __getitem__(self, k):
        return self.items[(self.at + k) % len(self.items)]

    def __setitem__(self, k, x):
        self.items[(self.at + k) % len(self.items)] = x

    def __contains__(self, x):
        return x in self.items

    def __call__(self, k):
        return self[k] + 1


class Ranked:
    def __init__(self, rank, name):
        self.rank = rank
        self.name = name

    def __lt__(self, other):
        return self.rank < other.rank


class Positive:
    def __init__(self, x):
        if x <= 0:
            raise ValueError(f"{x} is not positive")
        self.x = x


def one(n, dt):
    p = Particle(1.0)
    total = 0.0
    for _ in range(n):
        p.step(dt)
        total += p.energy + Particle.half(p.x) + p.count
    return total, p.x, p.v


def many(n, steps):
    ps = [Particle(float(k), -1.0) for k in range(n)]
    for _ in range(steps):
        for p in ps:
            if p.x > 2:
                p.step(0.1)
    return [p.x for p in ps], sum([p.energy for p in ps][:3], 0.0)


def inherited(n):
    p = Charged(1.0, 2.0)
    for _ in range(n):
        p.step(0.01)
    return p.x, p.v, p.charge, isinstance(p, Particle), isinstance(p, Vector)


def vectors(n):
    a, b, c = Vector(1.0), Vector(0.0, 1.0), Vector(2, 3)
    same = 0
    for k in range(n):
        a = a + 0.5 * b * 2.0 + -c
        b += a
        c = Vector(k, k + 1)
        same += c == Vector(3, 4)
        same += c != Vector(5, 6)
    return a.x, a.y, b.x, b.y, abs(a), c.x, same


def kept_alike(n):
    """Two names of one object, and two objects with equal attributes."""
    p = Particle(0.0)
    q = p
    other = Particle(0.0)
    seen = []
    for k in range(n):
        q.x += k
        if k == 2:
            other = p
        seen.append((p.x, p is q, p is other, p is not other, p == other))
    return seen


def out_of(n):
    """Objects go to the caller: in lists, dicts, tuples, each the same one everywhere."""
    ps = [Particle(k) for k in range(n)]
    first = ps[0]
    found = {k: ps[k] for k in range(2)}
    for p in ps:
        p.v += 1.5
    return ps, first, found, (first, ps[1])


def chain(n):
    head = None
    for k in range(n):
        head = Node(k, head)
    total = 0
    node = head
    while node is not None:
        total += node.value
        node = node.next
    return total


def reversed_chain(n):
    head = None
    for k in range(n):
        head = Node(k * 0.5, head)
    back = None
    while head is not None:
        head.next, back, head = back, head, head.next
    return back


def circle(n):
    first = Node(0)
    last = first
    for k in range(1, n):
        last.next = Node(k)
        last = last.next
    last.next = first
    return first


def tree(keys):
    root = None
    for key in keys:
        if root is None:
            root = Tree(key)
            continue
        node = root
        while True:
            if key == node.key:
                node.seen += 1
                break
            if key < node.key:
                if node.left is None:
                    node.left = Tree(key)
                    break
                node = node.left
            else:
                if node.right is None:
                    node.right = Tree(key)
                    break
                node = node.right
    found = []
    stack = []
    node = root
    while stack or node is not None:
        while node is not None:
            stack.append(node)
            node = node.left
        node = stack.pop()
        found.append((node.key, node.seen))
        node = node.right
    return found


def jobs(n):
    heap = []
    for k in range(n):
        heapq.heappush(heap, Job(float(k * 7 % 5), k))
    order = []
    while heap:
        job = heapq.heappop(heap)
        order.append((job.at, job.who))
    return order, Job(1.0, 2) < Job(1.0, 3), Job(1.0, 2) >= Job(1.0, 3)


def ranked(n):
    heap = []
    for k in range(n):
        heapq.heappush(heap, Ranked(k * 7 % 5, k))
    order = []
    while heap:
        order.append(heapq.heappop(heap).name)
    return order


def walkers(n):
    ws = [Walker(k) for k in range(n)]
    for k in range(20):
        ws[k % n].go(k % 3 - 1)
    return ws


def ring(n):
    r = Ring(n)
    total = 0
    for k in range(3 * n):
        r[k] = k
        r.at += 1
        total += r[0] * len(r) + (k in r) + r(1)
    return total, bool(r)


def arrays(n):
    class_of_arrays = Particle(np.zeros(n), np.ones(n))
    for k in range(n):
        class_of_arrays.x[k] = k
        if k == 3:
            class_of_arrays.v = class_of_arrays.x
    return class_of_arrays.x, class_of_arrays.v


def checked(xs):
    total = 0
    for x in xs:
        total += Positive(x).x
    return total


def left_amid(xs, n):
    """An integer beyond 64 bits: Python goes on in the method, with the objects."""
    ps = [Particle(1, 1), Particle(2, 3)]
    for _ in range(n):
        for p in ps:
            p.x = p.x * 3 + p.v
            xs.append(p.x)
    return ps


@dataclasses.dataclass
class Body:
    place: np.ndarray
    speed: np.ndarray
    trail: list = dataclasses.field(default_factory=list)

    @classmethod
    def at(cls, x, y=0.0):
        return cls(np.array([x, y]), np.zeros(2))

    @staticmethod
    def pull(a, b):
        d = b.place - a.place
        return d / (d @ d + 0.1)


def bodies(n):
    all_ = [Body.at(0.0), Body.at(1.0, 0.5), Body.at(-1.0, 2.0)]
    for _ in range(n):
        for a in all_:
            for b in all_:
                if a is not b:
                    a.speed = a.speed + 0.01 * Body.pull(a, b)
        for a in all_:
            a.place = a.place + a.speed
            a.trail.append(a.place.copy())
    return all_


class Filter:
    """Its list holds Python's numbers first, then NumPy's."""

    def __init__(self, gain, poles):
        self.gain, self.poles = gain, poles
        self.state = [0.0, 0.0]

    @classmethod
    def at(cls, f):
        return cls(1 - f, (f, f * f / 4))

    def __call__(self, x):
        y = np.empty_like(x)
        z1, z2 = self.state
        for n, v in enumerate(x):
            y[n] = o = self.gain * v + z1
            z1, z2 = self.poles[0] * o + z2, -self.poles[1] * o
        self.state = [z1, z2]
        return y


def cascade(x, poles):
    stages = [Filter.at(f) for f in poles]
    out = []
    for block in np.array_split(x, 3):
        for stage in stages:
            block = stage(block)
        out.append(block)
    return np.concatenate(out), [stage.state for stage in stages]


@each([
    exact(cascade, (np.arange(20.0), [0.1, 0.3]), (np.arange(3.0), [0.5])),
    exact(one, (50, 0.01), (0, 0.1)), exact(many, (6, 30), (3, 1)), exact(inherited, (40,)),
    exact(vectors, (12,)), exact(kept_alike, (5,)), exact(chain, (30,), (0,)),
    exact(tree, ([5, 2, 8, 2, 9, 1, 5, 7, 3, 3, 11],)), exact(jobs, (12,)), exact(ranked, (12,)),
    exact(ring, (5,)), exact(arrays, (9,)), exact(bodies, (4,), (0,)),
])  # fmt: skip
def test_objects(c):
    check(c)


def shown(x, seen):
    """Values of objects, with a number for each that says where it came first."""
    if isinstance(x, (list, tuple)):
        return [shown(y, seen) for y in x]
    if isinstance(x, dict):
        return {k: shown(y, seen) for k, y in x.items()}
    if type(x).__module__ == __name__:
        if id(x) in seen:
            return seen[id(x)]
        seen[id(x)] = len(seen)
        names = vars(x) if hasattr(x, "__dict__") else x.__slots__
        return type(x), seen[id(x)], {k: shown(getattr(x, k), seen) for k in names}
    return type(x), x


@pytest.mark.parametrize(
    ("f", "args"), [(out_of, (4,)), (reversed_chain, (20,)), (circle, (7,)), (walkers, (3,))]
)
def test_objects_that_leave(f, args):
    fast = np_compile.compile(f)
    with whole():
        for _ in range(3):
            assert shown(fast(*args), {}) == shown(f(*args), {})
    assert not refusals(fast)


def long_chain(n):
    head = None
    for k in range(n):
        head = Node(k, head)
    return head


def test_a_long_chain_is_made_and_given_back():
    fast = np_compile.compile(long_chain)
    fast_sum = np_compile.compile(chain)
    with whole():
        node = fast(200_000)
        assert fast_sum(200_000) == chain(200_000)
    n = 0
    while node is not None:
        node, n = node.next, n + 1
    assert n == 200_000


def test_an_exception_of_init_comes_where_python_has_it():
    fast = np_compile.compile(checked)
    with whole():
        for xs in ([3, 1, 2], [3, 0, 2], [2, 2]):
            check_call(fast, checked, (xs,), 0)


def test_python_goes_on_with_the_objects():
    fast = np_compile.compile(left_amid)
    with whole():
        for n in (3, 60, 60):
            a, b = [], []
            assert shown(fast(a, n), {}) == shown(left_amid(b, n), {})
            assert a == b


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(-20, 20), max_size=40))
def test_trees_of_any_keys(keys):
    with whole():
        check_call(_trees, tree, (keys,), 0)


_trees = np_compile.compile(tree)


class Built:
    """What `__init__` sets in branches and changes in loops."""

    def __init__(self, k, n):
        self.total = 0
        if k % 2:
            self.x = k
        else:
            self.x = 0.5
        for i in range(n):
            self.total += i * k
        while self.x < 3:
            self.x += 1
        self.clear()

    def clear(self):
        self.done = False


def built(n):
    found = []
    for k in range(n):
        b = Built(k, n)
        found.append((b.total, b.x, b.done))
    return found


def of_elements(x, y, out):
    for i in range(len(x)):
        v = Vector(x[i], y[i])
        w = v + v * 0.5
        out[i] = abs(w)
    return out


def identities(rows, other, n):
    """Lists from outside, under two names or one, and numbers."""
    mine = [0]
    found = []
    for _ in range(n):
        pair = rows is other, rows[0] is other[0]
        found.append((*pair, rows[0] is rows[1], mine is rows, mine is mine))
    return found


def identities_of_numbers(n, m):
    found = []
    for k in range(n):
        same = k is m
        found.append(same)
    return found


def test_objects_in_loops_that_threads_share():
    fast = np_compile.compile(of_elements)
    x = np.linspace(0, 1, 20_000)
    with whole():
        for _ in range(2):
            check_call(fast, of_elements, (x, x + 1, np.zeros(20_000)), 0)
    assert not refusals(fast)


def test_attributes_that_init_sets_in_branches():
    check(exact(built, (6,), (2,)))


def test_identity_of_lists_from_outside():
    rows = [[1, 2], [3, 4], [1, 2]] * 4
    fast, fast_of_numbers = (
        np_compile.compile(identities),
        np_compile.compile(identities_of_numbers),
    )
    with whole():
        for a, b in ((rows, rows), (rows, list(rows)), (rows, [list(x) for x in rows])):
            assert fast(a, b, 3) == identities(a, b, 3)
        assert fast_of_numbers(4, 2) == identities_of_numbers(4, 2)


class Dying:
    def __init__(self, x):
        self.x = x

    def __del__(self):
        DEAD.append(self.x)


DEAD: list = []


class Odd:
    def __init__(self, k):
        if k % 2:
            self.x = k
        else:
            self.y = k


class Late:
    def __init__(self, k):
        self.k = k


def with_a_finalizer(n):
    for k in range(n):
        Dying(k)
    return n


def with_odd_attributes(n):
    total = 0
    for k in range(n):
        x = Odd(k)
        total += x.x if k % 2 else x.y
    return total


def with_late_attributes(n):
    total = 0
    for k in range(n):
        x = Late(k)
        x.more = k
        total += x.more
    return total


def set_frozen(n):
    j = Job(1.0, 2)
    for k in range(n):
        j.at = k
    return j.at


@pytest.mark.parametrize(
    "f", [with_a_finalizer, with_odd_attributes, with_late_attributes, set_frozen]
)
def test_what_is_not_read_is_pythons(f):
    fast = np_compile.compile(f)
    with whole():
        for _ in range(3):
            DEAD.clear()
            check_call(fast, f, (5,), 0)
            assert DEAD in ([], [0, 1, 2, 3, 4] * 2)


def test_a_class_whose_init_is_exchanged(monkeypatch):
    fast = np_compile.compile(one)
    with whole():
        before = fast(5, 0.1)
        assert before == one(5, 0.1)

        def other(self, x, v=0.0):
            self.x = x * 2
            self.v = v

        monkeypatch.setattr(Particle, "__init__", other)
        assert fast(5, 0.1) == one(5, 0.1) != before


class Length:
    """A unit of the user's, which no array can hold."""

    def __init__(self, n):
        self.n = n

    def __radd__(self, other):
        return Length(self.n + other)


class Nothing:
    def __radd__(self, other):
        return None


def added_to_elements(x, i, length):
    for k in range(len(x)):
        x[k] += length
        x[i] += length
    return x


def added_to_gathered(x, i, length):
    for _ in range(len(x)):
        x[i] += length
    return x


def test_objects_into_elements():
    for x in (np.arange(3), np.arange(3.0)):
        for length in (Length(2), Nothing(), 2):
            check_whatever_leaves(added_to_elements, [(x, 1, length)])
            check_whatever_leaves(added_to_gathered, [(x, np.array([0, 1]), length)])


@dataclasses.dataclass(frozen=True)
class State:
    t: float
    n: int = 0


@dataclasses.dataclass
class Account:
    r: float
    x: list
    n: int = 2

    def __post_init__(self):
        self.r = self.r + 1


def replaces(values):
    s, a, found = State(0.0), Account(0.0, [1]), []
    for v in values:
        s = dataclasses.replace(s, t=s.t + v, n=s.n + 1)
        a = dataclasses.replace(a, n=s.n)
        a.x.append(v)
        found.append(a.r)
    return s, a, found


def replaces_a_given_one(s, values):
    found = []
    for v in values:
        t = dataclasses.replace(s, t=v)
        found.append(t.t + t.n)
    return found, t


def replaces_what_it_lacks(s, values):
    for v in values:
        s = dataclasses.replace(s, other=v)
    return s


def test_dataclasses_replace():
    check(exact(replaces, ([0.5, 2.5, 1.5] * 4,)))
    check(exact(replaces_a_given_one, (State(0.5, 2), [0.5, 2.5] * 6)))
    check_whatever_leaves(replaces_what_it_lacks, [(State(0.5, 2), [0.5, 2.5] * 6)])


class Rows:
    """Items by one index or two, of lists or of an array."""

    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, k):
        return self.rows[k[0]][k[1]] if isinstance(k, tuple) else self.rows[k]

    def __setitem__(self, k, x):
        if isinstance(k, tuple):
            self.rows[k[0]][k[1]] = x
        else:
            self.rows[k] = x + 1


def items_changed_by_number(n):
    r = Ring(4)
    for k in range(n):
        r[k] += k
        r.at += 1
        r[-1] *= 2.5
    return r.items, r.at


def items_of_rows_changed(n):
    r = Rows([[1.0, 2.0], [3.0, 4.0]])
    for k in range(n):
        r[k % 2, 0] -= r[0, 1]
        r[-1, k % 2] += 2
    return r.rows


def items_of_an_array_changed(x, n):
    r = Rows(x)
    for k in range(n):
        r[k] += k
        r[0] *= x[1]
    return x


@pytest.mark.parametrize(
    ("f", "arguments"),
    [
        (items_changed_by_number, (9,)),
        (items_of_rows_changed, (7,)),
        (items_of_an_array_changed, (np.arange(5.0), 4)),
    ],
)
def test_items_of_made_objects_are_changed_by_their_methods(f, arguments):
    check_whatever_leaves(f, [arguments])


class Sometimes:
    """Attributes that are set on one way only."""

    def __init__(self, n, x):
        self.n = n
        if n < 3:
            return
        if n > 5:
            self.extra = 1
            return
        self.extra = n * 0.5
        if n == 4:
            self.row = x * n
            self.n = self.n + self.row[1]


def set_on_one_way(x):
    s, made = 0.0, []
    for i in range(len(x)):
        k = i * 4 % 9
        o = Sometimes(k, x)
        s += o.n
        made.append(o)
        if k > 2:
            s += o.extra
        if k == 4:
            s += o.row[k % len(x)]
    return s, made


def asks_for_one_that_is_not_set(x):
    s = 0.0
    for i in range(len(x)):
        s += Sometimes(i + 2, x).extra
    return s


class Unlucky:
    def __init__(self, n, x):
        if n > 1:
            self.late = x[n] * 2
        self.last = x[n + 2]


def fails_in_its_init(x, seen):
    for i in range(len(x)):
        o = Unlucky(i, x)
        seen[i] = o.last
    return o


@pytest.mark.parametrize("n", [3, 5, 9])
def test_attributes_that_are_set_on_one_way_only(n):
    x = np.linspace(0, 1, n)
    fast = np_compile.compile(set_on_one_way)
    with whole():
        for _ in range(3):
            (s, made), (t, those) = fast(x), set_on_one_way(x)
            assert s == t
            assert [repr(vars(o)) for o in made] == [repr(vars(o)) for o in those]
    assert not refusals(fast)


def test_one_that_is_not_set_raises():
    check_whatever_leaves(asks_for_one_that_is_not_set, [(np.ones(4),), (np.ones(1),)])
    check_whatever_leaves(fails_in_its_init, [(np.arange(5.0), np.zeros(5))])
