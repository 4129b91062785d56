"""Dicts and sets in compiled loops."""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict, deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import np_compile

from ..support import examples
from .support import Case, check, check_call, each, exact, rarely, whole


def counts(x):
    found = {}
    for v in x:
        found[v] = found.get(v, 0) + 1
    return found, len(found), sorted(found)


def counts_of_python_ints(x):
    found = {}
    for v in x:
        k = int(v)
        if k in found:
            found[k] += 1
        else:
            found[k] = 1
    best, most = -1, 0
    for k, n in found.items():
        if n > most:
            best, most = k, n
    return best, most, found


def keys_of_both_kinds(x):
    found = {}
    for i in range(len(x)):
        found[x[i]] = i
        found[i] = x[i]  # the key that came first stays
    return found


def sums(rows, cols, values):
    total = {}
    for r, c, v in zip(rows, cols, values):  # noqa: B905
        total[(r, c)] = total.get((r, c), 0.0) + v
    out = np.zeros((10, 10))
    for (r, c), v in total.items():
        out[r, c] = v
    return out, total


def by_two_indices(n):
    d = {}
    for i in range(n):
        for j in range(n):
            d[i % 3, j % 2] = i * j
    s = 0
    for i in range(3):
        for j in range(2):
            s += d[i, j]
    return s, d


def adjacency(edges):
    graph = {}
    for k in range(len(edges)):
        a, b = int(edges[k, 0]), int(edges[k, 1])
        graph.setdefault(a, []).append(b)
        graph.setdefault(b, []).append(a)
    longest = max(len(v) for v in graph.values())
    return graph, longest


def shortest_paths(edges, w):
    graph = {}
    for i in range(len(edges)):
        a, b = int(edges[i, 0]), int(edges[i, 1])
        graph.setdefault(a, []).append((b, w[i]))
        graph.setdefault(b, []).append((a, w[i]))
    dist = {0: 0.0}
    heap = [(0.0, 0)]
    while heap:
        d, u = heapq.heappop(heap)
        if d > dist.get(u, math.inf):
            continue
        for v, c in graph.get(u, []):
            if v not in dist or d + c < dist[v]:
                dist[v] = d + c
                heapq.heappush(heap, (d + c, v))
    return dist, graph


def memo(n):
    known = {1: 1}
    for start in range(1, n):
        x, path = start, []
        while x not in known:
            path.append(x)
            x = 3 * x + 1 if x % 2 else x // 2
        steps = known[x]
        for p in reversed(path):
            steps += 1
            known[p] = steps
    return known


def seen_before(x):
    seen, out = set(), []
    for v in x:
        if v not in seen:
            seen.add(v)
            out.append(v)
    return out, seen, len(seen), sorted(seen)


def made_sets(n):
    a = {1, 2, 3}
    b = set([5, 5, 6])  # noqa: C405
    c = {k % 4 for k in range(n)}
    for k in range(n):
        if k in a and k not in b:
            a.add(k + 10)
    return a, b, c, len(a), bool(set()), set()


def floats(x):
    d = {}
    for v in x:
        d[v] = d.get(v, 0) + 1
        d[-v] = len(d)
    return d


def missing(x, k):
    d = {}
    for i in range(len(x)):
        d[i] = x[i]
    s = 0.0
    for i in range(len(x) + k):
        s += d[i]
    return s, d


def pairs(x, target):
    where, found = {}, []
    for i in range(len(x)):
        if target - x[i] in where:
            found.append((where[target - x[i]], i))
        where[x[i]] = i
    return found, where


def groups(g, v):
    total, n, members = defaultdict(float), defaultdict(int), defaultdict(list)
    for i in range(len(g)):
        total[g[i]] += v[i]
        n[g[i]] += 1
        members[int(g[i])].append(i)
    out = []
    for k in total:
        out.append(total[k] / n[k])  # noqa: PERF401
    return out, total, n, members, members[77], 78 in members


def late_failure(g, v):
    """The item is made before what is added to it is asked for."""
    total = defaultdict(int)
    for i in range(len(g)):
        total[g[i]] += v[i]
    return total


def nested(x, n):
    tables = {}
    for i in range(len(x)):
        if i % n not in tables:
            tables[i % n] = {}
        tables[i % n][i] = x[i]
    s = 0.0
    for inner in tables.values():
        for v in inner.values():
            s += v
    return tables, s


def of_arrays(x, n):
    rows = {}
    for i in range(n):
        rows[i % 3] = x[i] * 2
    s = rows[0] + rows[1]
    rows[0][0] = -1.0
    return s, rows


def replaced(n):
    lists = {0: [1]}
    for k in range(n):
        old = lists[0]
        lists[0] = [k, k + 1]
        old.append(k)
    return lists, old


def changed_in_its_loop(n, grows):
    d = {k: k for k in range(n)}
    for k in d:
        d[k] *= 2
        if k == grows:
            d[-1] = 0
    return d


def lists_of_parts(x):
    d = {}
    for i in range(len(x)):
        d[i * i] = x[i]
    a, b, c = list(d), list(d.values()), list(d.items())
    total, most = sum(d.values()), max(d.values())
    return a, b, c, total, most, min(d), np.array(list(d.values())), sorted(d.keys())


def with_places(x):
    d = {}
    for i, v in enumerate(x):
        d[i % 5] = v
    out = []
    for k, (key, v) in enumerate(d.items()):
        out.append((k, key, v))
    for key, w in zip(d, x):  # noqa: B905
        out.append((0, key, w))
    return out


def none_or_not(x):
    d, n = {}, 0
    for v in x:
        k = int(v)
        old = d.get(k)
        if old is None:
            d[k] = n
        else:
            n += old + 1
    return d, n


def copies(n):
    a = {}
    for k in range(n):
        a[k] = k * k
    b = a.copy()
    c = dict(a)
    d = a
    for k in range(n):
        b[k] = 0
        d[k + n] = 1
    a.clear()
    a[5] = 5
    return a, b, c, d is a


def made_in_one_expression(x, n):
    squares = {k: k * k for k in range(n) if k % 3}
    where = {v: i for i, v in enumerate(x)}
    return squares, where, len(dict.fromkeys(range(n), 1))


def kept_in_turns(x):
    """Another dict in each iteration, and one that is left behind."""
    last = {}
    for i in range(len(x)):
        now = {}
        for k in range(i % 4):
            now[k] = x[i]
        if len(now) > len(last):
            last = now
    return last, now


def truth(x):
    d, todo = {}, {1}
    n = 0
    for v in x:
        if d and todo:
            n += 1
        d[int(v)] = True
    return n, d, not d


def one_of_two(x, first):
    a, b = {}, {}
    for i in range(len(x)):
        d = a if i % 2 == first else b
        d[i] = x[i]
    return a, b


def large_keys(n):
    d = {}
    for k in range(n):
        d[k * 2**40 - 2**62] = k
        d[-k] = k
    return d, (2**62 in d), d.get(-(2**62), 7)


def grows_under_another_name(n):
    tables = []
    a = {0: 0, 1: 1}
    tables.append(a)
    tables.append({5: 5})
    seen = 0
    for k in a:
        tables[n][k + 10] = 1
        seen += 1
    return tables, seen


def _put(d, k):
    d[k + 10] = k


def grows_in_a_helper(x):
    d, e = {}, {}
    for i in range(len(x)):
        d[i] = i  # noqa: PERF403
    for k in d:
        _put(e, k)
    for k in d:
        _put(d, k)
    return d, e


def _push(q, v):
    q.append(v)


def queue_grows_in_a_helper(n):
    q, other = deque([1, 2]), deque()
    for v in q:
        _push(other, v)
    for v in q:
        _push(q, v + n)
    return q, other


def keys_of_tuples(n):
    d, e, f = {}, {}, {}
    for i in range(n):
        p = (i, i + 1)
        d[i,] = i
        d[(i + 1,)] = d[i,] + 1
        e[p, i] = i
        e[(i, i), n] = e[p, i]
        f[p] = i
        f[p] += 1
        f[i > 1, 7] = f[p]
    s = 0
    for (a, b), c in e:
        s += a * b - c
    return d, e, f, s


def booleans(x):
    d = {}
    for v in x:
        d[v > 0] = d.get(v > 0, 0) + 1
    return d


def not_a_number(x):
    d = {}
    for v in x:
        d[v] = d.get(v, 0) + 1
    return [repr(k) for k in d], list(d.values())


x = np.array([3, 1, 3, -5, 2, 1, 0])


def set_at_once(n):
    d = {}
    for k in range(n):
        d[k], d[k] = k, k + 1
        d[-k] = d[k + 1000] = k
        d[k], d[0] = d[0], d[k]
    return d


def taken_out(x, n):
    d = {}
    for v in x:
        d[v] = d.get(v, 0) + v
    for k in range(n):
        if k in d and d[k] > -9:
            del d[k]
        if k % 3 == 0:
            d[k * 2] = k
    got, total = d.pop(3, -1), 0
    for k, v in d.items():
        total = total * 7 % 1000 + k + v
    return d, got, len(d), total, list(d), d.copy(), bool(d)


def least_recent(n, room):
    cache, hits, x = {}, 0, 7
    for k in range(n):
        x = x * 1103515245 % 2147483648 + 12345
        key = (x >> 7) % (2 * room)
        if key in cache:
            hits += 1
            cache[key] = cache.pop(key) + 1
        else:
            if len(cache) >= room:
                for old in cache:
                    first = old
                    break
                del cache[first]
            cache[key] = k
    return hits, cache


def in_its_loop(x, n):
    d = {}
    for v in x:
        d[v] = {v: n}
    for k in d:
        if k == n:
            del d[k]
    for k in list(d):
        if k > 2:
            del d[k]
    return d


def in_and_out(n):
    d, out = {}, []
    for k in range(n):
        d[k % 17, k] = [k]
        if k > 9:
            out += d.pop(((k - 10) % 17, k - 10))
        if k % 50 == 49:
            key, v = d.popitem()
            out.append(key[1] + v[0])
            d.clear()
            for j in range(k - 9, k + 1):
                d[j % 17, j] = [j, j]
    d.pop((1, 1))
    return out, d


def of_a_list(x, k):
    items = list(x)
    for j in range(3):
        items.append(j)
        del items[k]
    return items


def counted(x, n):
    c, d = Counter(), Counter(x)
    for v in x:
        c[v] += 1
    d.update(x[:3])
    d.update(range(n))
    for k in range(n):
        c[100 + k] -= 1
    total = 0
    for k, v in d.items():
        total += k * v
    most = d.most_common(1), d.most_common(), d.most_common(n)
    return c, d, c[1000], total, most, sum(c.values()), max(c, key=c.get, default=None), len(c)


def by_constants(x):
    d, most = defaultdict(list), defaultdict(lambda: -1.5)
    least = defaultdict(lambda: math.inf)
    for i, v in enumerate(x):
        d[v].append(i)
        most[v] = max(most[v], i)
        least[v] = min(least[v], i)
    found = dict(d), dict(most), dict(Counter(x))
    return found, least[7], least


def left_amid(n):
    c, d = Counter(), defaultdict(lambda: 0)
    for k in range(n):
        c[k % 3] += 2**k
        d[k % 2] += k
        if k == 5:
            print(c, dict(d))
        try:
            c[k] //= k - 4
        except ZeroDivisionError:
            del c[10000]
    return c, d[7], type(c).__name__, list(d.items())


f = np.array([0.5, -0.5, 0.0, -0.0, 2.5, 1e300])
edges = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [0, 4], [1, 1]])
many = np.random.default_rng(0).integers(-40, 40, 700)


def taken_out_again(x):
    d = {}
    for v in x:
        v = int(v)
        if v in d and d[v] >= 2:
            del d[v]
        else:
            d[v] = d.get(v, 0) + 1
    return d


CASES: list[Case] = [
    exact(taken_out_again, (x,), (x % 3,), (x[:0],)),
    exact(counts, (x,), (many,), (x.astype(np.int16),), (x[:0],)),
    exact(counts_of_python_ints, (x,), (many,), (x[:0],)),
    exact(keys_of_both_kinds, (x,), (many,)),
    *rarely(exact(sums, (x % 5, x % 3, f[x % 5]), (many % 10, many % 7, many * 0.5))),
    exact(by_two_indices, (4,), (9,), (1,)),
    exact(adjacency, (edges,), (np.abs(many[:600]).reshape(-1, 2),)),
    exact(shortest_paths, (edges, np.arange(6) + 0.5)),
    exact(memo, (40,), (2,), (0,)),
    exact(seen_before, (x,), (many,), (f,), (x[:0],)),
    exact(made_sets, (12,), (0,)),
    exact(floats, (f,), (f[:0],)),
    exact(missing, (f, 0), (f, 1), (f[:0], 1)),
    exact(pairs, (x, 4), (many, 10)),
    exact(groups, (x, x * 0.5), (many, many * 0.25)),
    exact(late_failure, (x, x * 2), (x, x[:3] * 2)),
    exact(nested, (f, 2), (f[:0], 2)),
    exact(of_arrays, (np.arange(40.0).reshape(10, 4), 9), (np.arange(40.0).reshape(10, 4), 1)),
    exact(replaced, (3,), (20,)),
    exact(changed_in_its_loop, (5, -2), (5, 2), (5, 4), (0, 0)),
    exact(lists_of_parts, (f,), (many * 0.5,), (f[:1],)),
    *rarely(exact(with_places, (f,), (many,))),
    exact(none_or_not, (x,), (many,)),
    exact(copies, (4,), (30,), (0,)),
    exact(made_in_one_expression, (x, 10), (many, 0)),
    exact(kept_in_turns, (f,), (many * 0.5,)),
    exact(truth, (x,), (many,)),
    exact(one_of_two, (f, 0), (many * 0.5, 1)),
    exact(large_keys, (20,), (500,)),
    exact(grows_under_another_name, (0,), (1,)),
    exact(grows_in_a_helper, (x,), refused="while a loop runs"),
    exact(queue_grows_in_a_helper, (5,), refused="while a loop runs"),
    exact(keys_of_tuples, (4,), (20,)),
    exact(booleans, (x,)),
    exact(counted, (x, 2), (many, 30), (x[:0], 0), ([5, 3] * 30 + [9], 5), ([True, False], 1)),
    exact(counted, (f, 3), refused="of type Counter"),
    exact(by_constants, (x,), (many,), (f,), (x[:0],), ([3, 1, 3],)),
    exact(left_amid, (9,), (80,)),
    exact(set_at_once, (5,), (100,), (0,)),
    exact(taken_out, (x, 2), (many, 30), (x[:0], 0), (list(range(40)) * 2, 39)),
    exact(least_recent, (50, 5), (2000, 64), (3, 1)),
    exact(in_its_loop, (x, 100), (x, 3), (many, 100), (x[:0], 1)),
    exact(in_and_out, (300,), (12,), (3,)),
    exact(of_a_list, (f, 1), (x, -1), (x[:1], 0), (x[:1], 7)),
    exact(not_a_number, (np.array([1.0, np.nan, np.nan, 1.0]),), refused="repr"),
]


@each(CASES)
def test_dicts(c):
    check(c)


def orders_of_sets(x, n):
    a = {64, 8, 0, 16, 40, 24}
    b = set()
    for v in x:
        b.add(int(v) * n)
        a.add(int(v) * n)
    c = {int(v) * n for v in x}
    d = set([int(v) * n for v in x])  # noqa: C403
    return a, b, c, d


def copies_of_sets(x, n):
    a = set()
    for v in x:
        a.add(int(v) * n)
    b = a.copy()
    c = set(a)
    d = set({int(v) * n: 1 for v in x})
    for v in x:
        b.add(-int(v) * n)
        c.add(-int(v) * n)
    return a, b, c, d


@pytest.mark.parametrize("f", [orders_of_sets, copies_of_sets])
def test_orders_of_sets(f):
    """Sets come back in the order that they have in Python."""
    fast = np_compile.compile(f)
    with whole():
        for n in (1, 8, 16, 64, 1 << 20):
            for values in (x, many, many[:20], x[:0]):
                want, got = f(values, n), fast(values, n)
                assert [list(s) for s in got] == [list(s) for s in want]


# Programs that are put together at random

_STEPS = [
    "d[{k}] = {v}",
    "d[{k}] = d.get({k}, 0) + {v}",
    "n += {k} in d",
    "if {k} in d:\n            n += d[{k}]",
    "n += d.get({k}, {v})",
    "n += d.setdefault({k}, {v})",
    "n += d[{k}]",
    "d[{k}] += {v}",
    "s.add({k})",
    "n -= {k} in s",
    "out.append((len(d), len(s)))",
    "d = {{{k}: {v}}}",
    "d = d.copy()",
    "old, d = d, old",
    "if n > 40:\n            d.clear()",
    "for q in d:\n            n += d[q]",
    "for q, w in d.items():\n            n += q + w\n            d[{k}] = w",
    "for w in d.values():\n            n -= w",
    "out += sorted(d)",
]
_KEYS = ["i", "x[i]", "x[i] % 5", "int(x[i])", "i // 3", "n", "7"]


@settings(max_examples=examples(20))  # each compiles a program
@given(st.lists(st.tuples(*[st.integers(0, 10**6)] * 3), min_size=1, max_size=6), st.booleans())
def test_programs_at_random(steps, in_tuples):
    lines = []
    for a, b, c in steps:
        key = _KEYS[b % len(_KEYS)]
        step = _STEPS[a % len(_STEPS)]
        if in_tuples and "{k}" in step and "q" not in step and "sorted" not in step:
            key = f"({key}, i % 2)"
        lines.append(step.format(k=key, v=_KEYS[c % len(_KEYS)]))
    if in_tuples:
        lines = [s for s in lines if "q" not in s and "sorted" not in s] or ["n += 1"]
    body = "\n        ".join(lines)
    text = (
        f"def f(x):\n    d, old, s, n, out = {{}}, {{}}, set(), 0, []\n"
        f"    for i in range(len(x)):\n        {body}\n    return d, old, s, n, out\n"
    )
    plain = _function(text)
    fast = np_compile.compile(plain)
    with whole():
        for values in ([3, 1, 3, -5, 2, 1, 0], [], [1] * 5, list(range(-20, 40))):
            check_call(fast, plain, (np.array(values, int),), 0)


_texts: dict[str, str] = {}


def _function(text):
    """A function whose source is found."""
    import linecache

    name = f"<dicts {len(_texts)}>"
    _texts[name] = text
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope: dict = {}
    exec(compile(text, name, "exec"), scope)
    return scope["f"]
