"""Lists, comprehensions and prints in compiled loops."""

from __future__ import annotations

import heapq
import resource
import threading
from collections import deque
from pathlib import Path

import numpy as np
import pytest

from .support import Case, case, check, check_whatever_leaves, each, exact, rarely, whole


def collects(x, t):
    found = []
    for i in range(len(x)):
        if x[i] > t:
            found.append(i)  # noqa: PERF401
    return found, len(found)


def collects_floats(x):
    out = [0.5]
    for v in x:
        out.append(float(v) + out[-1])
    return out, np.array(out), sum(out), max(out)


def stack(n):
    todo, seen = [n], 0
    while todo:
        k = todo.pop()
        seen += k
        if k > 1:
            todo.append(k // 2)
            todo.append(k - k // 2 - 1)
    return seen, todo


def queue_by_index(m, start):
    n = m.shape[0]
    reached = np.zeros(n, dtype=bool)
    order = [start]
    reached[start] = True
    at = 0
    while at < len(order):
        i = order[at]
        at += 1
        for j in range(n):
            if m[i, j] and not reached[j]:
                reached[j] = True
                order.append(j)
    return order, reached


def table(n):
    t = [0] * (n + 1)
    t[0] = 1
    for coin in (1, 2, 5):
        for k in range(coin, n + 1):
            t[k] += t[k - coin]
    return t, t[n]


def comprehensions(x, n):
    squares = [k * k for k in range(n)]
    odd = np.array([v for v in squares if v % 2], dtype=float)
    grid = np.array([[i * 10 + j for j in range(3)] for i in range(n)])
    total = sum(v * 2 for v in x)
    return squares, odd, grid, total, any(v > 3 for v in x), all(v > -9 for v in x)


def history(x, n):
    norms = []
    for _ in range(n):
        x = x * 0.5 + 1
        norms.append(np.sqrt((x**2).sum()))
    return x, norms, np.array(norms)


def means_of_groups(x, old):
    """An array that is made on one of two ways, of lists that grow beside one another."""
    groups = [[] for _ in range(len(old))]
    for row in x:
        k = int(row[0] * len(old))
        groups[k].append(row)
    new = [np.mean(g, axis=0) if g else old[j] for j, g in enumerate(groups)]
    total = np.zeros(x.shape[1])
    for k in range(len(x)):
        part = x[k] * 2 if x[k, 0] > 0.5 else total
        total = total + part
    return np.array(new), total


def principal(x, n):
    c = x.T @ x
    found, values, beside = [], [], [x[0].copy()]
    for _ in range(n):
        v = np.ones(len(c))
        for _ in range(9):
            v = c @ v
            for u in found:
                v -= (v @ u) * u
            v = v / np.sqrt((v * v).sum())
        found.append(v)
        values.append(v @ c @ v)
        beside.append(beside[-1] + v)
    return np.array(found), values, np.array(beside)


def snapshots(x, n):
    out = []
    for k in range(n):
        x[k] += 1
        out.append(x.copy())
    return np.array(out), out


def argument_list(values, n):
    for k in range(n):
        values[k] += k
        values.append(k)
    return values


def changed_while_used(n):
    a = [1, 2, 3]
    b = a
    for k in range(n):
        b.append(k)
        a[k] = -1
    return a, b, a is b


def out_of_list(n):
    a = [1.5, 2.5]
    s = 0.0
    for k in range(n):
        s += a[k] + a[-k - 1]
    return s


def empty_pop(n):
    a = [1, 2]
    for _ in range(n):
        a.pop()
    return a


def sorts(x):
    order = []
    for i in range(len(x)):
        k = len(order)
        while k > 0 and x[order[k - 1]] > x[i]:
            k -= 1
        order.insert(k, i)
    return order


def to_lists(x):
    a, total = x.tolist(), 0
    rows = np.stack((x, x)).tolist()
    for i in range(len(a)):
        total += a[i] + rows[1][i]
        rows[0][i] = a[i]
    a.append(total)
    return a, rows, total, x[1:].tolist(), (x + x).tolist(), x[::-2].tolist()


def to_lists_that_change(x):
    a = x.tolist()
    for i in range(len(a)):
        a[i] = a[i] * 0.5
    return a


def dictionary(x):
    counts = {}
    for v in x:
        counts[int(v)] = counts.get(int(v), 0) + 1
    return counts


def prints(x, n):
    print("start", n)
    s = 0.0
    for k in range(n):
        s += x[k]
        if k % 2:
            print(k, s, f"{s:.3f}")
    print("end", s)
    return s


def prints_arrays(x, n):
    for k in range(n):
        x[k] = -k
        print(x)
    return x


def prints_then_fails(x, n):
    for k in range(n):
        print("at", k)
        x[k] += 1
    return x


def prints_what_it_makes(x, n):
    """Lists that are made in what is printed: of which type their items are is learnt there."""
    pairs = [(k, float(x[k])) for k in range(n)]
    for k in range(n):
        print(f"{k}:", [v for i, v in pairs if i <= k], tuple(i + k for i, _ in pairs))
    return len(pairs)


# Lists of tuples, arrays, lists; deques; heaps


def flood(grid, start):
    stack = [start]
    seen = np.zeros(grid.shape, dtype=bool)
    count = 0
    while stack:
        i, j = stack.pop()
        if i < 0 or j < 0 or i >= grid.shape[0] or j >= grid.shape[1]:
            continue
        if seen[i, j] or grid[i, j]:
            continue
        seen[i, j] = True
        count += 1
        for di, dj in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            stack.append((i + di, j + dj))
    return seen, count, stack


def by_deque(grid, start):
    queue = deque([(start, start, 0)])
    far = np.full(grid.shape, -1)
    far[start, start] = 0
    while len(queue) > 0:
        i, j, d = queue.popleft()
        for di, dj in [(0, 1), (1, 0), (0, -1), (-1, 0)]:
            a, b = i + di, j + dj
            inside = 0 <= a < grid.shape[0] and 0 <= b < grid.shape[1]
            if inside and not grid[a, b] and far[a, b] < 0:
                far[a, b] = d + 1
                queue.append((a, b, d + 1))
    return far, queue


def shortest(cost, start):
    n = len(cost)
    far = [float("inf")] * n
    far[start] = 0.0
    heap = [(0.0, start)]
    order = []
    while heap:
        d, u = heapq.heappop(heap)
        if d > far[u]:
            continue
        order.append(u)
        for v in range(n):
            w = cost[u, v]
            if w > 0 and d + w < far[v]:
                far[v] = d + w
                heapq.heappush(heap, (far[v], v))
    return far, order, heap


def kept_heap(x, n):
    heap = []
    for k in range(len(x)):
        heapq.heappush(heap, x[k])
        if len(heap) > n:
            heapq.heappop(heap)
    return heap


def trajectory(x, n):
    states = [x.copy()]
    for k in range(n):
        x = x + 0.5 * k
        states.append(x)
        x[0] += 1
    return np.array(states), states[-1]


def list_of_views(a):
    rows = []
    for k in range(a.shape[0]):
        rows.append(a[k])  # noqa: PERF401
    for k in range(len(rows)):
        rows[k] += k
    return rows, a


def neighbours(m):
    n = len(m)
    near = [[] for _ in range(n)]
    for i in range(n):
        for j in range(n):
            if m[i, j]:
                near[i].append(j)
    count = 0
    for row in near:
        count += len(row)
    return near, count


def knapsack(weights, values, room):
    best = [[0] * (room + 1) for _ in range(len(weights) + 1)]
    for i in range(1, len(weights) + 1):
        w = int(weights[i - 1])
        for c in range(room + 1):
            best[i][c] = best[i - 1][c]
            if w <= c:
                best[i][c] = max(best[i][c], best[i - 1][c - w] + int(values[i - 1]))
    return best[-1][-1], best


def window_maxima(x, n):
    queue = deque()
    out = []
    for k in range(len(x)):
        while queue and x[queue[-1]] <= x[k]:
            queue.pop()
        queue.append(k)
        if queue[0] <= k - n:
            queue.popleft()
        if k >= n - 1:
            out.append(x[queue[0]])
    return np.array(out) if out else None


def both_ends(n):
    q = deque()
    for k in range(n):
        if k % 3:
            q.append(k)
        else:
            q.appendleft(-k)
        if k % 7 == 6:
            q.pop()
            q.popleft()
    return q, len(q), list(q)


def walks_back(parents, end):
    path = []
    k = end
    while k != -1:
        path.append(k)
        k = int(parents[k])
    path.reverse()
    return path, path[::-1], path[1:-1]


def polynomial_product(a, b):
    p, q = list(a), list(b)
    out = [0.0] * (len(p) + len(q) - 1)
    for i in range(len(p)):
        for j in range(len(q)):
            out[i + j] += p[i] * q[j]
    return out


def methods(n):
    a = list(range(n))
    a.insert(2, 100)
    for k in range(2):
        a.insert(0, 7 - k)
    a.insert(-1, 5)
    a.insert(99, 6)
    a.extend([8, 9])
    a.extend(range(3))
    a += [1, 1]
    a.remove(100)
    b = a + a[::2]
    c = a.copy()
    a.clear()
    return a, b, c, c.index(7), c.count(1), 5 in c, -5 in c, c.pop(0), c.pop(2), c.pop(-2)


def of_mixed(n):
    rows = []
    for k in range(n):
        rows.append((k, k * 0.5, k % 2 == 0, (k + 1j, -k)))  # noqa: PERF401
    k, half, even, (z, minus) = rows[n // 2]
    return rows, k, half, even, z, minus


def shared(n):
    inner = [1]
    outer = [inner, inner]
    for k in range(n):
        outer[k % 2].append(k)
    return outer, inner


def swapped_arrays(a, b, n):
    both = [a, b]
    for k in range(n):
        both[0][0] += k
        both[0], both[1] = both[1], both[0]
    return both, a, b


def table_of_tuples(n):
    rows = [(0, 0)] * 2
    for k in range(n):
        rows.append((k, k * k))
    return np.array(rows), rows


def queue_by_pop_from_front(m, start):
    queue, seen = [start], [start]
    while queue:
        v = queue.pop(0)
        for w in range(len(m)):
            if m[v, w] and w not in seen:
                seen.append(w)
                queue.append(w)
    return seen


def frames(u, n):
    found = []
    for k in range(n):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        if k % 2 == 0:
            found.append(u.copy())
    return np.array(found), found


def of_different_lengths(x, n):
    parts = []
    for k in range(n):
        parts.append(x[: k + 1] * 2)  # noqa: PERF401
    return parts, np.concatenate(parts)


def fails_in_the_middle(n):
    a = [(1, 2.0)]
    for k in range(n):
        a.append((k, 0.5))
        x, y = a.pop(k - 3)
        a.append((x + 1, y))
    return a


def adaptive_times(y, t0, t1, tol):
    t, h = t0, 0.1
    ts, ys = [t], [y]
    while t < t1:
        h = min(h, t1 - t)
        k1 = -y + np.sin(t)
        k2 = -(y + h * k1) + np.sin(t + h)
        e = np.abs(h * (k2 - k1) / 2).max()
        if e < tol:
            t += h
            y = y + h * (k1 + k2) / 2
            ts.append(t)
            ys.append(y)
        h *= min(2.0, max(0.3, 0.9 * np.sqrt(tol / (e + 1e-15))))
    return np.array(ts), np.array(ys)


def hull(points):
    lower = []
    for p in points[np.lexsort((points[:, 1], points[:, 0]))]:
        while len(lower) >= 2:
            a, b = lower[-2], lower[-1]
            if (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]) > 0:
                break
            lower.pop()
        lower.append(p)
    return np.array(lower)


def events(rng, n):
    queue = [(0.0, 0)]
    log = []
    t = 0.0
    while queue and len(log) < n:
        t, kind = heapq.heappop(queue)
        log.append((t, kind))
        heapq.heappush(queue, (t + rng.exponential(1.0), 1 - kind))
        if rng.random() < 0.2:
            heapq.heappush(queue, (t + 0.5, 2))
    return log, t


def of_lists(n):
    table = [[(0, 1.0)]]
    for k in range(n):
        row = []
        for j in range(k):
            row.append((j, table[-1][0][1] + j))  # noqa: PERF401
        if row:
            table.append(row)
    return table


GRID = np.random.default_rng(3).random((9, 7)) < 0.3
COST = np.random.default_rng(4).random((7, 7)).round(1)
X = np.array([3.0, -1.0, 4.0, 1.5, -9.5])
M = np.array([[0, 1, 0, 0], [1, 0, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]])


def with_dtypes(x, y):
    """Items that C cannot hold, in a list that is there where Python goes on."""
    out = []
    out.append((y.size, y.dtype))
    try:
        out.append(y.spam)
    except AttributeError:
        out.append(0)
    for k in range(len(x)):
        x[k] *= 2
    return out


def running_complex(z):
    a = b = z * 1
    for _ in range(2):
        a, b = np.cumsum(z, axis=-1) + a, np.cumprod(z[0]) * b
    return a, b


CASES = [
    exact(means_of_groups, (np.random.default_rng(1).random((9, 2)), np.ones((4, 2)))),
    case(principal, (np.random.default_rng(1).random((7, 3)), 3)),
    *rarely(exact(collects, (X, 0), (X, 99), (X[:0], 0.0), (X, 0.5))),
    exact(collects_floats, (X,), (X[:0],), (X[:1],)),
    exact(stack, (0,), (1,), (30,)),
    *rarely(exact(queue_by_index, (M, 0), (M, 2), (M[:1, :1], 0), (M, 7))),
    exact(table, (0,), (1,), (50,), (4,)),
    exact(comprehensions, (X, 4), (X, 0), (X[:0], 1)),
    exact(history, (X, 3), (X, 0), (X[:0], 2)),
    *rarely(exact(snapshots, (X, 3), (X, 0), (X, 6))),
    exact(argument_list, ([1, 2, 3], 3), ([1, 2], 4), ([], 0)),
    exact(changed_while_used, (0,), (2,), (9,)),
    exact(out_of_list, (0,), (2,), (3,)),
    exact(empty_pop, (0,), (2,), (3,)),
    exact(sorts, (X,), (X[:0],)),
    exact(flood, (GRID, (4, 4)), (GRID[:1, :1], (0, 0)), (GRID, (-1, 0))),
    exact(by_deque, (GRID, 4), (GRID[:1, :1], 0)),
    *rarely(exact(shortest, (COST, 0), (COST[:1, :1], 0), (np.ones((4, 4)), 2))),
    exact(kept_heap, (X, 3), (X, 0), (X[:0], 2), (np.array([1, np.nan, 0.5]), 3)),
    exact(trajectory, (X, 3), (X, 0)),
    exact(list_of_views, (M,), (M[:0],)),
    exact(neighbours, (M,), (M[:0],), (M[:1, :1],)),
    exact(knapsack, (np.array([2, 3, 4]), np.array([3, 4, 5]), 7), (M[0], M[1], 0)),
    exact(window_maxima, (X, 2), (X, 1), (X, 9), (X[:0], 1)),
    exact(both_ends, (0,), (1,), (50,)),
    exact(walks_back, (np.array([-1, 0, 0, 2]), 3), (np.array([-1]), 0)),
    *rarely(exact(polynomial_product, (X, M[1] * 0.5), (X[:1], M[1] * 0.5))),
    exact(methods, (3,), (9,)),
    exact(of_mixed, (1,), (5,), (0,)),
    exact(shared, (0,), (5,)),
    exact(swapped_arrays, (X, X[::-1].copy(), 3)),
    exact(table_of_tuples, (0,), (3,)),
    exact(queue_by_pop_from_front, (M, 0), (M, 2)),
    exact(frames, (np.arange(6.0) ** 2, 5), (np.arange(6.0) ** 2, 1)),
    exact(of_different_lengths, (X, 4), (X, 1)),
    case(adaptive_times, (np.array([1.0, 2.0]), 0.0, 2.0, 1e-3), (np.ones(2), 0.0, 0.0, 1e-3)),
    exact(hull, (np.random.default_rng(8).random((30, 2)),), (np.zeros((1, 2)),)),
    exact(events, (np.random.default_rng(8), 40)),
    exact(of_lists, (6,), (0,)),
    exact(fails_in_the_middle, (2,), (9,)),
    exact(dictionary, (X,), (X[:0],)),
    exact(
        to_lists, *[(X.astype(t),) for t in ("f4", "i2", "c16")], (X,), (X[:0],)
    ),
    exact(to_lists_that_change, (X,), (X[:0],)),
    case(prints, (X, 0), (X, 5), (X, 6)),
    exact(prints_arrays, (X, 3), (X, 6)),
    exact(prints_what_it_makes, (X, 3), (X, 0)),
    case(with_dtypes, (np.arange(3.0), np.ones(2)), refused="of a list"),
    exact(running_complex, (np.arange(6.0).reshape(2, 3) * (1 + 2j),)),
    exact(prints_then_fails, (X, 3), (X, 9)),
]  # fmt: skip


@each(CASES)
def test_lists_and_prints(c: Case) -> None:
    check(c)


def rows_in_conditions(n):
    rows = [[k, -k] for k in range(n)]
    found = 0
    for k in range(2 * n):
        if k < len(rows) and rows[k][0] > 1 and (rows[k][1] < -2 or rows[k - 1][0] > 5):
            found += rows[k][1] if k % 2 else 1
    return found


def test_items_that_are_lists_in_parts_of_conditions() -> None:
    check(exact(rows_in_conditions, (9,), (0,)))


def turned(x, items):
    for _ in range(len(x)):
        items = items[::-1]
    items[1:] = [2**70]
    return items


def longer_by_turns(x, items):
    kept = items
    for i in range(len(x)):
        kept = kept[::-1]
        kept.append(i)
    kept.append("end")
    return kept, items


def test_a_list_from_outside_that_a_loop_replaces_by_another_one() -> None:
    calls = [(np.ones(n), list(items)) for n in (1, 0, 2) for items in ([1, 2, 3], [2, 0.25])]
    check_whatever_leaves(turned, calls)
    check_whatever_leaves(longer_by_turns, calls)


def arrays_of_lists(x, top):
    """Of a list without items NumPy makes an array of floats."""
    places, signs, rows = [], [], []
    s = 0.0
    for i in range(len(x)):
        row = []
        if x[i] > top:
            places.append(i)
            signs.append(x[i] > 2 * top)
            row.append(i)
        rows.append(row)
        s += x[places].sum()
    typed = np.array(places, dtype=np.int32), np.asarray(signs, bool)
    if len(places) in (0, len(x)):
        return np.array(places), np.asarray(signs), np.array(rows), np.cumsum(places), typed, s
    return np.array(places), np.concatenate([places, [1]]), np.sum(signs), typed, s


def sums_of_ranges(n):
    found = []
    for k in range(n):
        y = np.array(range(k))
        found.append(y.sum())
    return y, found


def test_arrays_of_no_items():
    x = np.arange(1.0, 13.0)
    check_whatever_leaves(arrays_of_lists, [(x, 4.0), (x, 20.0), (x, 0.0), (x[:1], 3.0)])
    check_whatever_leaves(sums_of_ranges, [(4,), (1,)])


STATUS = Path("/proc/self/statm")


def round_and_round(x, n):
    items = [x[k] for k in range(len(x))]
    for _ in range(n):
        items.insert(0, items.pop())
    items.append(0.5)
    return items


@pytest.mark.skipif(not STATUS.exists(), reason="Linux tells how large a process is")
def test_a_list_that_goes_round_takes_no_more_room():
    """256 MB, which were some more with each round."""
    x = np.arange(100.0)
    fast = check(exact(round_and_round, (x, 1000), (x[:1], 1000), (x, 0), (x[:9], 100)))
    sizes, ended, begun = [], threading.Event(), threading.Event()

    def looks():
        while not ended.wait(0.001):
            sizes.append(int(STATUS.read_text().split()[0]) * resource.getpagesize())
            begun.set()

    looking = threading.Thread(target=looks)
    looking.start()
    begun.wait()
    seen = len(sizes)
    with whole():
        fast(x, 32_000_000)
    ended.set()
    looking.join()
    assert len(sizes) > seen + 10
    assert max(sizes) - sizes[0] < 128 << 20
