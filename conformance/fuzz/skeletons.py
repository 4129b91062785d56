"""Algorithms as people write them, with choices: `$(one|other)` is one of these. `algorithms.py` makes
programs of them. What the names in a signature stand for, it says."""

TEXTS = '''
def program(x, idx, n, t):
    count = 0
    best = None

    def visit(k, by=$(1|t|0.5)):
        nonlocal count, best
        count += $(1|by|k)
        if best is None or x[k] $(>|<|>=) best:
            best = x[k]
        if k + 1 < len(x) and count < $(9|n + 3):
            return visit(k + $(1|2), by) + 1
        return $(0|count|x[0])

    made = [visit(int(k)) for k in idx]
    return made, count, best
====
class Ring:
    def __init__(self, size, dtype=float):
        self.data = np.zeros(size, dtype)
        self.at, self.full = 0, False

    def push(self, value):
        self.data[self.at] = value
        self.at = (self.at + 1) % $(len(self.data)|self.data.size|self.data.shape[0])
        if self.at == 0:
            self.full = True
        return self

    def __len__(self):
        return len(self.data) if self.full else self.at

    @property
    def values(self):
        return $(self.data[: len(self)]|np.roll(self.data, -self.at)|self.data[::-1][: len(self)])

    def __iter__(self):
        return iter(self.values)


def program(x, n, t):
    ring = Ring($(n + 1|3|max(n, 2)), $(float|int|x.dtype))
    out = []
    for k, e in enumerate(x):
        ring.push($(e|e * 2|k|x[-1 - k]))
        if $(ring.full|len(ring) > 1|k % 2):
            out.append(ring.values.$(sum|max|min)())
        $(x[k] = len(ring)|x[k] += ring.data[0]|ring.data[:1] += t|ring.values[:1] = t)
    return out, ring, list(ring), $(ring.values|x|ring.data is ring.values)
====
def program(m, n, t):
    rows, cols = m.shape
    seen = np.zeros(m.shape, $(bool|int|np.uint8))
    dist = np.full((rows, cols), $(-1|n - 9))
    queue = deque([(0, 0)])
    if rows and cols:
        dist[0, 0] = $(0|n)
        seen[0, 0] = 1
    while queue:
        r, c = queue.$(popleft|pop)()
        for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            i, j = r + dr, c + dc
            if 0 <= i < rows and 0 <= j < cols and not seen[i, j] and m[i, j] $(>|<|>=) t:
                seen[i, j] = True
                dist[i, j] = dist[r, c] + $(1|m[i, j]|2)
                queue.append((i, j))
    return dist, seen, $(dist.max(initial=0)|np.argwhere(seen)|seen.sum())
====
def program(x, y, n):
    a, b = len(x), len(y)
    cost = np.zeros((a + 1, b + 1), $(int|float|np.int32|np.int8))
    cost[0] = $(np.arange(b + 1)|range(b + 1)|n)
    cost[:, 0] = np.arange(a + 1)
    for i in range(1, a + 1):
        for j in range(1, b + 1):
            if x[i - 1] == y[j - 1]:
                cost[i, j] = cost[i - 1, j - 1]
            else:
                cost[i, j] = $(1|n|0.5) + min(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1])
    path = []
    i, j = a, b
    while i > 0 and j > 0:
        path.append($((i, j)|int(cost[i, j])|cost[i, j]))
        step = np.argmin([cost[i - 1, j - 1], cost[i - 1, j], cost[i, j - 1]])
        if step == 0:
            i, j = i - 1, j - 1
        elif step == 1:
            i -= 1
        else:
            j -= 1
    return cost, path, $(cost[-1, -1]|cost[a][b]|cost[-1])
====
def find(parent, k):
    while parent[k] != k:
        parent[k] = parent[parent[k]]
        k = parent[k]
    return k


def program(x, idx, n, t):
    parent = $(np.arange(len(x))|list(range(len(x)))|np.arange(len(x), dtype=np.int32))
    size = $(np.ones(len(x), int)|[1] * len(x)|dict.fromkeys(range(len(x)), 1))
    joined = 0
    for k in range(len(x) - 1):
        if abs(x[k] - x[k + 1]) $(<|>) t or k in idx:
            a, b = find(parent, k), find(parent, $(k + 1|idx[0]|len(x) - 1))
            if a == b:
                continue
            if size[a] < size[b]:
                a, b = b, a
            parent[b] = a
            size[a] += size[b]
            joined += 1
    roots = [int(find(parent, k)) for k in range(len(x))]
    return parent, size, joined, $(roots|sorted(set(roots))|np.unique(roots))
====
def program(x, idx, n, t, mode):
    def pooled(v, how="sum", *, keep=False, axis=None):
        if how == "sum":
            r = v.sum(axis=axis, keepdims=keep)
        elif how in ("max", "min"):
            r = getattr(np, how)(v, axis=axis, keepdims=keep, initial=0)
        else:
            raise ValueError(f"unknown {how!r}")
        return r

    made = {}
    for name in ("sum", mode, $("max"|"other"|"min")):
        try:
            made[name] = pooled(x, name, keep=$(n > 2|False|True))
        except ValueError as e:
            made[name] = str(e)
        else:
            made[name + "!"] = n
        finally:
            x[$(0|-1|n % len(x)) if len(x) else slice(0)] += $(1|t|n)
    options = {"how": mode, $("keep": True|"axis": 0|"axis": -1)}
    made["last"] = pooled(x, **options)
    taken = np.take(x, [n, -1, $(0|99)], mode=$("wrap"|"clip"|"wrap")) if len(x) else None
    return made, taken, np.pad(x, 1, mode=$("edge"|"wrap"|"reflect")) if len(x) > 2 else x
====
def program(x, n, t):
    made = np.zeros(len(x), dtype=[("pos", $("f8"|"f4"), (2,)), ("id", $("i4"|"u1")), ("on", "?")])
    made["pos"][:, 0] = x
    made["id"] = $(np.arange(len(x))|n|range(len(x)))
    made["on"] = made["pos"][:, 0] $(>|<) t
    for k in range(len(made)):
        if made["on"][k]:
            made["pos"][k] += $((t, n)|t|made["id"][k])
        else:
            made[k]["id"] = $(n|k + 1|made["id"][k] + 1)
    view = made["pos"][$(::-1|1:|::2)]
    view $(*= 2|+= 1|[...] = t)
    made["id"][made["on"]] = $(7|n)
    first = made[0] if len(made) else None
    return made, view, $(first|made["pos"].sum(axis=0)|made[made["on"]]|made.dtype.names)
====
class Adam:
    def __init__(self, params, rate=0.5):
        self.params, self.rate = params, rate
        self.m = {k: np.zeros_like(v) for k, v in params.items()}
        self.steps = 0

    def step(self, grads):
        self.steps += 1
        for name, g in grads.items():
            m = self.m[name]
            $(m *= 0.5|self.m[name] = m * 0.5|m[...] = m / 2)
            $(m += g|self.m[name] += g|m = m + g)
            $(self.params[name] -= self.rate * self.m[name]|p = self.params[name]; p -= self.rate * m)
        return self


def program(x, m, n, t):
    params = {"w": $(m|m.copy()|m[::-1]), "b": $(x|x + 0.0)}
    optimizer = Adam(params, rate=$(0.5|0.25|n))
    for k in range($(n|3)):
        error = params["w"].$(sum(axis=1)|max(axis=1, initial=0)) + params["b"] - t
        grads = {"b": error, "w": $(np.ones_like(m) * error[:, None]|error[:, None] + params["w"] * 0)}
        if k == $(1|2):
            grads.pop($("b"|"w"))
        optimizer.step(grads)
        if abs(error).max(initial=0) > $(50|1000):
            break
    return params, optimizer.m, optimizer.steps, $(x|params["b"] is x|m)
====
@contextlib.contextmanager
def scaled(v, by):
    v *= by
    try:
        yield $(v|v[:1]|len(v))
    finally:
        v $(/=|-=|+=) by


def program(x, y, n, t):
    out = []
    with scaled(x, $(2|4)) as s, scaled(y, 2):
        out.append($(s|x.sum()|y[0] if len(y) else 0))
        x[::2] += $(1|n)
        if n > $(2|3):
            return out, x
        for k in range(n):
            with scaled(x[k:], 2) as s:
                if $(k == 1|t > 1): $(continue|break|out.append(k))
                y[:k] $(=|+=) t
    return out, x, y
====
class Steps:
    def __init__(self, v, least):
        self.v, self.k, self.least = v, 0, least

    def __iter__(self):
        return self

    def __next__(self):
        while self.k < len(self.v):
            self.k += 1
            if self.v[self.k - 1] > self.least:
                return $(self.v[self.k - 1]|self.k|self.v[self.k - 1 :])
        raise StopIteration


def program(x, n, t):
    made = [e for e in Steps(x, $(0|t|n))]
    steps = Steps($(x|x[::-1]), 0)
    first = next(steps, $(None|t))
    total = 0
    for e in steps:
        total = total + $(e|np.sum(e)|2)
        if total $(> 20|< -5|== n):
            break
    else:
        total = -total
    return made, first, total, steps
====
def program(x, n, t):
    heap = []
    for k, e in enumerate(x):
        heapq.heappush(heap, $((e, k)|float(e)|(-e, k)|e))
        if len(heap) > $(n|3):
            heapq.heappop(heap)
    made = [heapq.heappop(heap) for _ in range(len(heap))]
    return made, $(heapq.nlargest(2, x)|heapq.nsmallest(2, x.tolist())|bisect.bisect(sorted(x), t))
====
def program(x, n, t):
    memo = {}

    def best(k, room):
        if k >= len(x) or room <= 0:
            return $(0|0.0|x[0] * 0 if len(x) else 0)
        if (k, room) in memo:
            return memo[k, room]
        value = best(k + 1, room)
        if x[k] $(>|<|>=) 0:
            value = max(value, x[k] + best(k + 1, room - $(1|2|k)))
        memo[k, room] = value
        return value

    found = best(0, $(n|3))
    return found, len(memo), $(memo.get((0, n))|sorted(memo)[:3]|list(memo.values())[-1:])
====
def program(x, y, n, t):
    with np.errstate($(all="ignore"|divide="ignore", invalid="ignore"|divide="raise")):
        try:
            r = $(x / y|np.divide(x, y)|x // y|1 / x)
        except FloatingPointError as e:
            r = $(str(e)|x * 0|None)
    z = np.zeros_like(x, dtype=float)
    np.divide(x, y, out=z, where=$(y != 0|x > t|y > x))
    np.sqrt(x, out=z, where=x > $(0|t))
    total = 0.0
    for a, b in zip(x, y):
        try:
            total += $(float(a) / float(b)|int(a) // int(b)|float(a) % float(b))
        except ZeroDivisionError:
            total -= $(1|t)
        except (ValueError, OverflowError):
            total = $(0.0|t)
    return r, z, total
====
def program(x, m, n, t):
    row, column = m[n % len(m)] if len(m) else x, m[:, $(0|-1)]
    row += $(1|t|column[0] if len(column) else 0)
    column[:] = $(x|column[::-1]|column * 2|0)
    part = m[$(1:|::2|:n), $(::-1|:|1:)]
    part $(*= 2|-= row[: part.shape[1]]|[...] = n|+= part.max(initial=0))
    flat = m.$(reshape(-1)|ravel()|T.ravel()|T)
    flat[$(:2|0|::3)] = t
    np.$(negative|abs|square)(part, out=part)
    x[$(:1|-1:|n:)] = $(row[:1]|column[-1:]|t)
    return row, column, part, $(m|flat|m.T), x
====
def sort(v):
    for i in range(1, len(v)):
        j = i
        while j > 0 and v[j - 1] $(>|<|>=) v[j]:
            v[j - 1], v[j] = v[j], v[j - 1]
            j -= 1
    return v


def quick(v, low, high):
    if low >= high:
        return 0
    pivot, at = v[high], low
    for k in range(low, high):
        if v[k] $(<|<=|>) pivot:
            v[[at, k]] = v[[k, at]]
            at += 1
    v[at], v[high] = v[high], v[at]
    return 1 + quick(v, low, at - 1) + quick(v, at + 1, high)


def merged(v):
    if len(v) <= 1:
        return v
    a, b = merged(v[: len(v) // 2]), merged(v[len(v) // 2 :])
    out, i, j = np.zeros_like(v), 0, 0
    for k in range(len(v)):
        if j == len(b) or (i < len(a) and a[i] <= b[j]):
            out[k] = a[i]
            i += 1
        else:
            out[k] = b[j]
            j += 1
    return out


def program(x, y, n):
    calls = quick(y, 0, len(y) - 1) if $(n > 1|True) else 0
    return sort($(x|x[::-1]|x[n:]|x.copy())), calls, merged($(x|y|x[::2])), x, y
====
def program(x, n, t):
    low, total, best = 0, $(0|0.0), (0, 0)
    for high in range(len(x)):
        total += x[high]
        while total > $(t|n|4) and low <= high:
            total -= x[low]
            low += 1
        if high - low + 1 > best[1] - best[0]:
            best = (low, high + 1)
    sums = np.concatenate(([0], np.cumsum(x)))
    windows = [sums[k + n] - sums[k] for k in range(len(x) - n + 1)]
    return best, total, $(windows|x[best[0] : best[1]]|x[slice(*best)]), $(max(windows, default=None)|low)
====
def program(m, n, t):
    a = m[: min(m.shape), : min(m.shape)].astype($(float|np.float32)) + $(4|n) * np.eye(min(m.shape))
    sign, swaps = 1, []
    for k in range(len(a)):
        p = k + int(np.argmax(np.abs(a[k:, k])))
        if a[p, k] == 0:
            return 0, swaps, a
        if p != k:
            a[[k, p]] = a[[p, k]]
            sign = -sign
            swaps.append((k, p))
        for i in range(k + 1, len(a)):
            f = a[i, k] / a[k, k]
            a[i, k:] -= f * a[k, k:]
            $(a[i, k] = f|a[i, k] = 0|pass)
    return sign * np.prod(np.diag(a)), swaps, $(a|a.T|np.tril(a, -1))
====
def program(m, n, t):
    d = np.$(abs|square)(m[: min(m.shape), : min(m.shape)])
    np.fill_diagonal(d, 0)
    way = np.full(d.shape, -1)
    for k in range(len(d)):
        for i in range(len(d)):
            for j in range(len(d)):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]
                    way[i, j] = k
        if $(n == k|d.max(initial=0) < t): break
    return d, way, $(d.argmin() if d.size else 0|np.minimum(d, d.T)|(d == d.T).all())
====
def program(x, idx, n, t):
    starts = np.zeros(len(x) + 1, $(int|np.int32))
    for k in idx:
        starts[k + 1] += 1
    starts = np.cumsum(starts)
    values = np.zeros(len(idx), x.dtype)
    fill = starts[:-1].copy()
    for k, c in enumerate(idx):
        values[fill[c]] = $(k|x[c]|x[k])
        fill[c] += 1
    out = np.zeros(len(x))
    for r in range(len(x)):
        for p in range(starts[r], starts[r + 1]):
            out[r] += values[p] * x[$(p % len(x)|r|idx[0])]
    return starts, values, out, $(fill|np.diff(starts)|np.add.reduceat(values, starts[:1]) if len(values) else 0)
====
def program(x, n, t):
    runs, at = [], 0
    while at < len(x):
        end = at + 1
        while end < len(x) and $(x[end] == x[at]|(x[end] > 0) == (x[at] > 0)|x[end] >= x[end - 1]):
            end += 1
        runs.append($((x[at], end - at)|[float(x[at]), end - at]|x[at:end]))
        at = end
    back = np.concatenate([np.repeat(r[0], len(r)) for r in runs]) if runs else x
    edges = np.flatnonzero(np.diff(x)) + 1
    parts = np.split(x, edges)
    parts[-1] $(+= 1|*= 2|[:] = n)
    return runs, back, edges, $(len(parts)|parts|max(map(len, parts)))
====
def program(x, m, n, seed):
    rng = np.random.$(default_rng|RandomState)(seed)
    out = []
    for k in range($(n|3)):
        e = rng.$(random()|normal()|uniform(-1, 1))
        if e > $(0.5|0):
            x[k % len(x) if len(x) else slice(0)] += 1
            continue
        out.append(e $(+ n|> 0.25|* 2))
    rng.shuffle($(x|m|x[1:]|m.T if False else x[::-1]))
    picked = rng.$(choice(len(x) + 1, 2)|permutation(len(x))|normal(size=3)|choice([1, 2, 3]))
    np.random.seed(seed)
    noise = np.random.$(rand(len(x))|normal(0, 1, (2, 2))|randint(0, 9, len(x))|random())
    return out, picked, noise, x, m, $(rng.random(2)|None)
====
class Shape:
    count = 0

    def __init__(self, points):
        self.points = points
        Shape.count += 1

    def area(self):
        raise NotImplementedError

    @classmethod
    def of(cls, *values):
        return cls(np.array(values, float))

    @functools.cached_property
    def middle(self):
        return self.points.sum() / max(len(self.points), 1)

    def __lt__(self, other):
        return self.area() < other.area()


class Square(Shape):
    def area(self):
        return (self.points * self.points).sum()


class Scaled(Square):
    def __init__(self, points, by=$(2|0.5)):
        super().__init__(points * by)
        self.by = by

    def area(self):
        return super().area() / self.by


def program(x, n, t):
    Shape.count = 0
    shapes = [Square(x), Scaled($(x|x[::-1])), Square.of(n, t), Scaled(x[:n], by=$(4|n + 1))]
    if $(n > 2|t > 1):
        shapes.append(Shape(x))
    areas = []
    for s in shapes:
        try:
            areas.append(s.area() + s.$(middle|points.size))
        except NotImplementedError:
            areas.append(None)
        s.points[:1] += $(1|t)
    return areas, $(min(shapes[:3]).area()|sorted(shapes[:2])[0].points|shapes[1] < shapes[0]), Shape.count, x
====
@dataclass(frozen=True)
class Vec:
    x: float
    y: float

    def __add__(self, other):
        return Vec(self.x + other.x, self.y + other.y)

    def __mul__(self, by):
        return Vec(self.x * by, self.y * by)

    __rmul__ = __mul__

    def __abs__(self):
        return max(abs(self.x), abs(self.y))

    def __matmul__(self, other):
        return self.x * other.x + self.y * other.y


def program(x, y, n, t):
    at, speed = Vec(0.0, $(0|t)), Vec(t, $(1|0.5))
    trail = []
    for a, b in zip(x, y):
        speed = speed + $(t * Vec(a, b)|Vec(a, b) * n|Vec(b, 1))
        at = at + speed $(* 0.5|* n|* a)
        if abs(at) > $(9|20):
            at = $(Vec(0, 0)|Vec(*[0.0] * 2)|dataclasses.replace(at, x=0.0))
        trail.append($(at|at @ speed|(at.x, at.y)))
    whole = Vec(x, y) * $(2|t) + Vec(y, x)
    return trail, at, whole, $(whole @ whole|hash(Vec(n, 1)) == hash(Vec(n, 1))|speed == at)
====
def source(v):
    for k in range(len(v)):
        got = yield v[k]
        if got is not None:
            v[k] = got


def twice(values):
    for e in values:
        yield e * 2
        if e > 3:
            return


def batched(values, size):
    batch = []
    for e in values:
        batch.append(e)
        if len(batch) == size:
            yield $(np.array(batch)|batch|tuple(batch))
            batch = $([]|batch[1:])
    if batch:
        yield batch


def program(x, n, t):
    made = list(batched(twice($(source(x)|x|iter(x))), $(2|n + 1)))
    g = source(x)
    first = next(g, None)
    try:
        second = g.send($(n|t|first))
    except (StopIteration, TypeError) as e:
        second = type(e).__name__
    x $(+= 1|*= 2)
    rest = $(list(g)|sum(g)|next(g, t)|max(g, default=0))
    pairs = {k: e for k, e in zip(range(n), source(x))}
    return made, first, second, rest, pairs, $(sum(e for e in twice(x))|any(e > t for e in source(x)))
====
def program(x, n, t, mode):
    steps = {
        "sum": lambda v: v + $(n|t|v[:1]),
        "max": $(np.negative|lambda v: v * 2|np.flip),
        "min": functools.partial($(np.multiply, 2|np.clip, a_min=-1, a_max=3|np.roll, shift=1)),
    }
    order = [mode, *$(steps|sorted(steps)|("sum", "min"))]
    values = x
    for name in order:
        values = steps[name](values)
        match name, len(values):
            case "sum", k if k > $(3|n):
                values[0] = t
            case ("max" | "min"), 0:
                break
            case other, k:
                values[k // 2 : k // 2 + 1] += $(1|len(other))
    f = functools.reduce(lambda f, g: lambda v: g(f(v)), list(steps.values())[: $(2|n)])
    return values, f(x), x
====
def program(x, n, t):
    bits = x.astype($(np.uint8|np.int64|np.uint16|np.int8))
    ones = np.zeros(len(bits), $(int|np.uint8))
    for k in range(len(bits)):
        v = $(int(bits[k])|bits[k])
        while v > 0 and ones[k] < 20:
            ones[k] += v & 1
            v >>= $(1|2)
    gray = bits ^ (bits >> $(1|2))
    bits[::2] $(<<=|+=|*=|-=) $(1|3|n)
    state = $(7|n + 1)
    drawn = []
    for _ in range(5):
        state = (state * 1103515245 + 12345) $(% 2**31|& 0x7FFFFFFF|% 1000)
        state ^= state >> $(3|7)
        drawn.append(state % 7)
    return ones, gray, bits, drawn, $(np.packbits(bits > 1)|np.bitwise_or.reduce(bits) if len(bits) else 0|hex(state))
====
def program(x, m, n, t):
    out = np.zeros((len(x), $(2|3)), $(x.dtype|float))
    np.take(x, $(range(len(x))|[0] * len(x)), out=out[:, 0]$(|, mode="wrap"))
    np.cumsum(x, out=out[:, 1])
    np.clip(x, $(0|-1|None), t, out=$(x|out[:, 1]|x[::1]))
    np.sum(m, axis=$(1|-1), out=$(out[:, 0]|x))
    np.max(m, axis=1, out=x, initial=$(0|n))
    np.concatenate([x[:1], x[1:]], out=$(x|out[:, 1]))
    np.multiply.outer(x, [1, 2], out=out[:, :2])
    np.add.accumulate($(x|m[:, 0]), out=out[:, -1])
    $(np.compress(x > t, x, out=out[: int((x > t).sum()), 0])|np.copyto(out[:, 0], x, where=x > t)|np.round(out, 1, out))
    $(np.matmul(m, np.ones(m.shape[1]), out=out[:, 0])|np.mean(m, axis=1, out=out[:, 1])|np.stack([x, x], 1, out=out[:, :2]))
    return out, x, $(m|np.shares_memory(out, x)|out[:, 0])
====
def program(x, m, n, t):
    made = []
    for i, j in np.ndindex($(*m.shape|m.shape|(2, 2))):
        if m[i % len(m), j] if len(m) and m.shape[1] > j else 0 $(>|<) t:
            made.append((i, j))
    for (k,), e in np.ndenumerate(x):
        $(x[k] = e + 1|made.append(e)|made.append((k, e)))
    for e in np.nditer(x, op_flags=[["readwrite"]]) if len(x) else ():
        e[...] = $(2 * e|t|e - 1)
    it = m.flat
    first = next(it, None)
    it[$(0|-1)] = $(t|n) if m.size else None
    return made, first, m, x, $(list(np.broadcast(x, 1))|[a.tolist() for a in np.array_split(x, 2)])
====
def program(x, n, t):
    r = np.lib.stride_tricks.sliding_window_view(x, $(2|n + 1)) if len(x) > n + 1 else x[None]
    made = $(r.sum(axis=1)|r.max(axis=-1, initial=0)|r[:, ::-1]|r.copy())
    lag = np.zeros((3, len(x)))
    lag[0] = x
    for k in range(1, 3):
        lag[k, k:] = lag[k - 1, $(: -1 if k == 1 else -2|: len(x) - k|k - k : len(x) - k)]
        lag[k, :k] = $(0|t|n)
    diff = x[$(2|1):] - x[: $(-2|-1)]
    smooth = x.copy()
    smooth[1:-1] = (x[:-2] + $(2 * x[1:-1]|x[1:-1]) + x[2:]) / 4
    return made, lag, diff if len(x) else 0, smooth
====
def program(x, idx, n, t, mode):
    table = {}
    for k, e in zip(idx, x):
        table.setdefault($(int(k)|k|str(k)), []).append($(e|float(e)|x[k]))
    groups = {k: $(sum(v)|max(v)|len(v)|np.array(v)) for k, v in table.items()}
    counts = $(Counter(int(e) for e in x)|defaultdict(int))
    for e in x:
        counts[$(int(e)|bool(e)|round(float(e)))] += 1
    text = ", ".join(f"{k}={len(v)}" for k, v in sorted(table.items()))
    words = f"{n:03d} {t:+.2f} {mode!r:>6} {x.sum():.1f}".split()
    if mode in text or len(words) $(>|<) n:
        return groups, counts, text
    del table[next(iter(table))]
    return groups, $(counts|counts.most_common(1) if hasattr(counts, "most_common") else 0), text, words, table
====
def program(x, n, t):
    coefficients = [$(1|t), n, *x[:2].tolist()]
    value = 0
    for c in coefficients:
        value = value * $(x|t|2) + c
    lo, hi = $(-4.0|0.0), 4.0
    f = lambda v: v * v - $(2|n)
    for steps in range(60):
        mid = (lo + hi) / 2
        if f(mid) == 0 or hi - lo < $(0.125|t / 64 + 0.01):
            break
        lo, hi = (mid, hi) if f(mid) < 0 else (lo, mid)
    z, steps2 = complex(t, 0), 0
    while abs(z) < 2 and steps2 < $(8|n):
        z = z * z + complex($(0.25|n), x[0] if len(x) else 0)
        steps2 += 1
    return value, mid, steps, steps2, z
====
def rotated(v, k, /, *, into=None):
    if into is None:
        into = np.zeros_like(v)
    into[:k], into[k:] = v[len(v) - k :], v[: len(v) - k]
    return into


def program(x, m, n, t):
    k = n % max(len(x), 1)
    a = rotated(x, k)
    b = rotated(x, k, into=$(np.zeros(len(x))|np.zeros(len(x), int)|m[:, 0]))
    grid = [[0] * $(3|len(x)) for _ in range(2)]
    for i in range(2):
        for j in range(len(grid[0])):
            grid[i][j] = $(i * j + n|x[j] if j < len(x) else t|grid[i - 1][j] + 1)
    rows = list(zip(*grid))
    total = sum(map(sum, grid))
    first, *rest = $(m|x|rows|grid) if len(m) else [0]
    return a, b, rows, total, first, len(rest), $([*x, *a]|{**{"a": a}, "b": 1}|x[None, ..., None])
====
class Pool:
    """An object with a state that several methods share."""

    def __init__(self, x):
        self.free, self.used = list(range(len(x))), {}
        self.store = x

    def take(self, value):
        if not self.free:
            raise $(MemoryError|RuntimeError|KeyError)("full")
        k = self.free.pop($(|0))
        self.store[k] = value
        self.used[k] = self.used.get(k, 0) + 1
        return k

    def give(self, k):
        $(self.free.append(k)|self.free.insert(0, k)|self.free += [k])
        self.store[k] = 0

    def __contains__(self, k):
        return k in self.used and k not in self.free

    def __getattr__(self, name):
        if name.startswith("n_"):
            return len(self.__dict__[name[2:]])
        raise AttributeError(name)


def program(x, idx, n, t):
    pool = Pool(x)
    log = []
    for step, k in enumerate(list(idx) * 2):
        try:
            if k in pool and step % $(2|3):
                pool.give(k)
            else:
                log.append(pool.take($(t|k|step + t)))
        except (MemoryError, RuntimeError, LookupError) as e:
            log.append(e.args)
            if n > $(1|3): break
        finally:
            log.append($(pool.n_free|step|pool.store.sum()))
    return log, pool.used, pool.free, x, getattr(pool, "n_other", None) if False else 0
'''.strip("\n").split("\n====\n")
