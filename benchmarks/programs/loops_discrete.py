"""Integers, bits, graphs and dynamic programming with loops in Python."""

from __future__ import annotations

import numpy as np

from .registry import jnp, lax, prange, program


def _words(rng, n):
    return rng.integers(97, 101, n, dtype=np.uint8), rng.integers(97, 101, n, dtype=np.uint8)


@program("loops", make=_words, small=(12,), medium=(130,), large=(800,))
def edit_distance(a, b):
    """Levenshtein's distance of two texts, given by their bytes."""
    n, m = len(a), len(b)
    D = np.zeros((n + 1, m + 1), dtype=np.int64)
    D[:, 0] = np.arange(n + 1)
    D[0, :] = np.arange(m + 1)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            if a[i - 1] == b[j - 1]:
                D[i, j] = D[i - 1, j - 1]
            else:
                D[i, j] = 1 + min(D[i - 1, j], D[i, j - 1], D[i - 1, j - 1])
    return D[n, m]


def _sequences(rng, n):
    return rng.integers(0, 4, n), rng.integers(0, 4, n), 3, -2, 2


@program("loops", make=_sequences, small=(10,), medium=(110,), large=(700,))
def smith_waterman(a, b, match, mismatch, gap):
    """Local alignment of two sequences: the best score, where it ends, and the ways to it."""
    H = np.zeros((len(a) + 1, len(b) + 1), dtype=np.int64)
    trace = np.zeros((len(a) + 1, len(b) + 1), dtype=np.uint8)
    best = 0
    end = (0, 0)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            s = match if a[i - 1] == b[j - 1] else mismatch
            diagonal = H[i - 1, j - 1] + s
            up = H[i - 1, j] - gap
            left = H[i, j - 1] - gap
            H[i, j] = max(0, diagonal, up, left)
            if H[i, j] == 0:
                trace[i, j] = 0
            elif H[i, j] == diagonal:
                trace[i, j] = 1
            elif H[i, j] == up:
                trace[i, j] = 2
            else:
                trace[i, j] = 3
            if H[i, j] > best:
                best = H[i, j]
                end = (i, j)
    return best, end, trace


def _distances(rng, n):
    dist = np.where(rng.random((n, n)) < 0.3, rng.random((n, n)), np.inf)
    np.fill_diagonal(dist, 0.0)
    return (dist,)


@program("loops", make=_distances, small=(12,), medium=(80,), large=(450,), in_place=(0,))
def floyd_warshall(dist):
    """Shortest ways between all nodes of a graph, row by row, in place."""
    n = len(dist)
    for k in range(n):
        for i in range(n):
            if dist[i, k] != np.inf:
                dist[i] = np.minimum(dist[i], dist[i, k] + dist[k])


@floyd_warshall.numba
def _floyd_warshall_numba(dist):
    n = len(dist)
    for k in range(n):
        for i in prange(n):
            through = dist[i, k]
            for j in range(n):
                dist[i, j] = min(dist[i, j], through + dist[k, j])


@floyd_warshall.jax
def _floyd_warshall_jax(dist):
    def step(k, dist):
        return jnp.minimum(dist, dist[:, k, None] + dist[k])

    return lax.fori_loop(0, len(dist), step, dist)


def _bytes(rng, n):
    return (rng.integers(0, 256, n, dtype=np.uint8),)


@program("loops", make=_bytes, small=(60,), medium=(15_000,), large=(500_000,))
def crc32(data):
    """The cyclic redundancy check of bytes, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= int(byte)
        for _ in range(8):
            if crc & 1:
                crc = (crc >> 1) ^ 0xEDB88320
            else:
                crc >>= 1
    return crc ^ 0xFFFFFFFF


def _limit(rng, n):
    return (n,)


@program("loops", make=_limit, small=(1000,), medium=(100_000,), large=(4_000_000,))
def sieve(n):
    """Primes up to a number, by the sieve of Eratosthenes."""
    is_prime = np.ones(n + 1, dtype=np.bool_)
    is_prime[:2] = False
    i = 2
    while i * i <= n:
        if is_prime[i]:
            for multiple in range(i * i, n + 1, i):
                is_prime[multiple] = False
        i += 1
    return np.nonzero(is_prime)[0]


def _cells(rng, rows, columns, steps):
    return (rng.random((rows, columns)) < 0.35).astype(np.uint8), steps


@program("loops", make=_cells, small=(8, 8, 1), medium=(30, 40, 4), large=(90, 100, 30))
def game_of_life(grid, steps):
    """Steps of the Game of Life on a torus, cell by cell."""
    rows, columns = grid.shape
    for _ in range(steps):
        new = np.zeros_like(grid)
        for i in range(rows):
            for j in range(columns):
                alive = 0
                for di in (-1, 0, 1):
                    for dj in (-1, 0, 1):
                        if di != 0 or dj != 0:
                            alive += grid[(i + di) % rows, (j + dj) % columns]
                if alive == 3 or (alive == 2 and grid[i, j] == 1):
                    new[i, j] = 1
        grid = new
    return grid


@game_of_life.numba
def _game_of_life_numba(grid, steps):
    rows, columns = grid.shape
    for _ in range(steps):
        new = np.zeros_like(grid)
        for i in prange(rows):
            for j in range(columns):
                alive = 0
                for di in (-1, 0, 1):
                    for dj in (-1, 0, 1):
                        if di != 0 or dj != 0:
                            alive += grid[(i + di) % rows, (j + dj) % columns]
                if alive == 3 or (alive == 2 and grid[i, j] == 1):
                    new[i, j] = 1
        grid = new
    return grid


@game_of_life.jax
def _game_of_life_jax(grid, steps):
    def step(_, grid):
        ways = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
        alive = sum(jnp.roll(grid, way, (0, 1)) for way in ways)
        return ((alive == 3) | ((alive == 2) & (grid == 1))).astype(grid.dtype)

    return lax.fori_loop(0, steps, step, grid)


def _items(rng, n, capacity):
    return rng.integers(1, 30, n), rng.integers(1, 100, n), capacity


@program("loops", make=_items, small=(8, 40), medium=(40, 600), large=(120, 10_000))
def knapsack(weights, values, capacity):
    """The best value of things that can be carried, and which they are."""
    n = len(weights)
    best = np.zeros((n + 1, capacity + 1), dtype=np.int64)
    for i in range(1, n + 1):
        for w in range(capacity + 1):
            best[i, w] = best[i - 1, w]
            if weights[i - 1] <= w:
                taken = best[i - 1, w - weights[i - 1]] + values[i - 1]
                if taken > best[i, w]:
                    best[i, w] = taken
    chosen = np.zeros(n, dtype=np.bool_)
    w = capacity
    for i in range(n, 0, -1):
        if best[i, w] != best[i - 1, w]:
            chosen[i - 1] = True
            w -= weights[i - 1]
    return best[n, capacity], chosen


def _seed(rng, n):
    return n, 12345


@program("loops", make=_seed, small=(300,), medium=(50_000,), large=(2_000_000,))
def lcg_random(n, seed):
    """Numbers of a linear congruential generator, and pi by counting with them."""
    out = np.empty(n)
    state = seed
    inside = 0
    for i in range(n):
        state = (1664525 * state + 1013904223) % 2**32
        out[i] = state / 2**32
        if i % 2 == 1 and out[i - 1] ** 2 + out[i] ** 2 < 1:
            inside += 1
    return out, 4 * inside / max(n // 2, 1)


def _edges(rng, nodes, edges):
    return nodes, rng.integers(0, max(nodes, 1), (edges, 2))


def find(parent, i):
    """The representative of a node's set; the way to it is halved."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@program("loops", make=_edges, small=(60, 40), medium=(6000, 5000), large=(300_000, 280_000))
def union_find(nodes, edges):
    """Connected components of a graph by union and find."""
    parent = np.arange(nodes)
    size = np.ones(nodes, dtype=np.int64)
    components = nodes
    for a, b in edges:
        a, b = find(parent, a), find(parent, b)
        if a == b:
            continue
        if size[a] < size[b]:
            a, b = b, a
        parent[b] = a
        size[a] += size[b]
        components -= 1
    labels = np.empty(nodes, dtype=np.int64)
    for i in range(nodes):
        labels[i] = find(parent, i)
    return components, labels


def _maze(rng, rows, columns):
    image = (rng.random((rows, columns)) < 0.3).astype(np.uint8)
    image[rows // 2 : rows // 2 + 1, columns // 2 : columns // 2 + 1] = 0
    return image, rows // 2, columns // 2, 2


@program(
    "loops",
    make=_maze,
    small=(12, 12),
    medium=(100, 120),
    large=(700, 800),
    in_place=(0,),
)
def flood_fill(image, row, column, color):
    """Fill what is connected to a place of an image of bytes, in place, with a stack of places."""
    old = image[row, column]
    if old == color:
        return
    stack = [(row, column)]
    while len(stack) > 0:
        y, x = stack.pop()
        if image[y, x] != old:
            continue
        image[y, x] = color
        if y > 0:
            stack.append((y - 1, x))
        if y < image.shape[0] - 1:
            stack.append((y + 1, x))
        if x > 0:
            stack.append((y, x - 1))
        if x < image.shape[1] - 1:
            stack.append((y, x + 1))


def _lines(rng, lines, size):
    return np.zeros((size, size), dtype=np.uint8), rng.integers(0, size, (lines, 4))


@program(
    "loops",
    make=_lines,
    small=(15, 32),
    medium=(250, 200),
    large=(1800, 1500),
    in_place=(0,),
)
def bresenham_lines(canvas, lines):
    """Draw lines on an image of bytes by Bresenham's algorithm, in place."""
    for x0, y0, x1, y1 in lines:
        dx, dy = abs(x1 - x0), -abs(y1 - y0)
        sx = 1 if x0 < x1 else -1
        sy = 1 if y0 < y1 else -1
        error = dx + dy
        while True:
            canvas[y0, x0] = 255
            if x0 == x1 and y0 == y1:
                break
            twice = 2 * error
            if twice >= dy:
                error += dy
                x0 += sx
            if twice <= dx:
                error += dx
                y0 += sy


def _places(rng, points, queries):
    """A balanced k-d tree of three dimensions in arrays, node k's children at 2k+1 and 2k+2."""
    points, queries = rng.random((points, 3)), rng.random((queries, 3))
    tree = np.full(2 ** len(points).bit_length() - 1, -1)
    waiting = [(0, np.arange(len(points)), 0)]
    while waiting:
        node, inside, axis = waiting.pop()
        if len(inside) == 0:
            continue
        inside = inside[np.argsort(points[inside, axis], kind="stable")]
        # As many points below as a complete tree has there, so that no level is left open.
        half = len(inside) // 2
        tree[node] = inside[half]
        waiting.append((2 * node + 1, inside[:half], (axis + 1) % 3))
        waiting.append((2 * node + 2, inside[half + 1 :], (axis + 1) % 3))
    return points, tree, queries


@program("loops", make=_places, small=(15, 5), medium=(1000, 50), large=(20_000, 1200))
def kd_search(points, tree, queries):
    """Nearest neighbours by a k-d tree in an array, with a stack of nodes to visit."""
    nearest = np.empty(len(queries), dtype=np.int64)
    distance = np.empty(len(queries))
    stack = np.empty((64, 2), dtype=np.int64)
    for q in range(len(queries)):
        query = queries[q]
        best, best_squared = -1, np.inf
        stack[0] = 0, 0
        top = 1
        while top > 0:
            top -= 1
            node, axis = stack[top]
            if node >= len(tree) or tree[node] < 0:
                continue
            point = points[tree[node]]
            squared = np.sum((point - query) ** 2)
            if squared < best_squared:
                best, best_squared = tree[node], squared
            difference = query[axis] - point[axis]
            near, far = 2 * node + 1, 2 * node + 2
            if difference > 0:
                near, far = far, near
            if difference**2 < best_squared:
                stack[top, 0] = far
                stack[top, 1] = (axis + 1) % 3
                top += 1
            stack[top, 0] = near
            stack[top, 1] = (axis + 1) % 3
            top += 1
        nearest[q] = best
        distance[q] = np.sqrt(best_squared)
    return nearest, distance


@kd_search.numba
def _kd_search_numba(points, tree, queries):
    nearest = np.empty(len(queries), dtype=np.int64)
    distance = np.empty(len(queries))
    for q in prange(len(queries)):
        stack = np.empty((64, 2), dtype=np.int64)
        best, best_squared = np.int64(-1), np.inf
        stack[0] = 0
        top = 1
        while top > 0:
            top -= 1
            node, axis = stack[top, 0], stack[top, 1]
            if node >= len(tree) or tree[node] < 0:
                continue
            place = tree[node]
            squared = 0.0
            for k in range(3):
                squared += (points[place, k] - queries[q, k]) ** 2
            if squared < best_squared:
                best, best_squared = place, squared
            difference = queries[q, axis] - points[place, axis]
            near, far = 2 * node + 1, 2 * node + 2
            if difference > 0:
                near, far = far, near
            if difference**2 < best_squared:
                stack[top, 0] = far
                stack[top, 1] = (axis + 1) % 3
                top += 1
            stack[top, 0] = near
            stack[top, 1] = (axis + 1) % 3
            top += 1
        nearest[q] = best
        distance[q] = np.sqrt(best_squared)
    return nearest, distance


def _dimensions(rng, n):
    return (rng.integers(2, 60, n + 1),)


@program("loops", make=_dimensions, small=(6,), medium=(45,), large=(150,))
def matrix_chain(dimensions):
    """The cheapest order of a product of matrices: costs and where to split."""
    n = len(dimensions) - 1
    cost = np.zeros((n, n), dtype=np.int64)
    split = np.zeros((n, n), dtype=np.int32)
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            cost[i, j] = np.iinfo(np.int64).max
            for k in range(i, j):
                product = dimensions[i] * dimensions[k + 1] * dimensions[j + 1]
                total = cost[i, k] + cost[k + 1, j] + product
                if total < cost[i, j]:
                    cost[i, j] = total
                    split[i, j] = k
    return cost, split
