"""More of what `skeletons.py` has: errors, text, containers, small integers, arrays that grow."""

TEXTS = '''
class Full(Exception):
    def __init__(self, at, values):
        super().__init__($(at|f"at {at}"|at, len(values)))
        self.at, self.values = at, values


def put(v, k, value, most=$(3|5)):
    if k >= most:
        raise Full(k, v[:k])
    v[k] = value
    return k + 1


def program(x, n, t):
    k, log = 0, []
    for e in x:
        try:
            if e $(>|<) t:
                k = put(x, k, $(e * 2|t|n))
            else:
                log.append(1 $(/|//|%) k)
        except Full as e:
            log.append((e.at, $(e.values|e.values.sum()|str(e))))
            k = $(0|1)
            continue
        except ZeroDivisionError as e:
            log.append(str(e))
            if n > $(2|4):
                raise ValueError(f"{n} {k}") from e
        else:
            log.append(k)
        finally:
            $(x[-1] += 1|k += 0|log.append("f"))
    return x, log, k
====
def program(x, n, t):
    words = []
    for k, e in enumerate(x):
        word = $("up"|f"{k}"|"abc"[k % 3]) if e > t else $("down"|"-" * n|str(int(e)))
        words.append(word)
    text = $(" "|"-"|"").join(words)
    counts = {}
    for c in text:
        counts[c] = counts.get(c, 0) + $(1|n|t)
    codes = np.array([ord(c) for c in text], $(np.uint8|int|np.int16))
    codes[codes > $(100|60)] $(-= 32|= 0|+= 200)
    back = "".join(chr(c) for c in codes if c > 31)
    table = np.zeros(128, int)
    for c in text.$(upper|lower|strip)():
        table[ord(c)] += 1
    return text, counts, codes, back, np.flatnonzero(table), text.find($("d"|"up"|"-")), text[:: $(-1|2)]
====
def program(x, idx, n):
    small = $(np.uint8|np.int8|np.int16|np.uint16)
    total, wide = small(0), 0
    table = np.zeros(4, small)
    for k, i in enumerate(idx):
        total = total + small(i)
        table[k % 4] $(+=|-=|*=|^=) $(100|n + 1|small(50)|i)
        wide = wide * $(256|3) + int(table[k % 4])
        if total $(>|==) $(3|n):
            total = small($(1|n))
    last = table[0] $(+|-|*) table[1]
    return total, table, wide, last, table.sum(), table $(//|%|>>) $(3|2|small(2)), -table, wide $(% 7|>> 3|// 5)
====
def program(x, y, n, t):
    grown = np.zeros($(0|(0,)), $(float|x.dtype))
    rows = $(np.empty((0, 2))|[[0, 0]]|np.zeros((1, 2)))
    for k, e in enumerate(x):
        if e > t:
            grown = np.$(append(grown, e)|concatenate([grown, x[k : k + 2]])|insert(grown, 0, e)|r_[grown, e, n])
        elif len(grown) > $(1|2):
            grown = $(grown[1:]|np.delete(grown, -1)|grown[::2]|np.delete(grown, [0, 1]))
        rows = np.vstack([rows, [k, $(e|len(grown)|n)]])
    parts = [grown[k:] for k in range(len(grown))]
    ragged = sum(len(p) for p in parts)
    return grown, rows, ragged, $(parts|rows[:, 0].astype(int)|rows.T), len(rows)
====
def program(x, n, t):
    out = []
    fs = [$(lambda v: v + k|lambda v, k=k: v + k|lambda v: v * len(fs)) for k in range($(3|n))]
    for f in fs:
        out.append(f(x[0] if len(x) else t))

    def counting(f):
        @functools.wraps(f)
        def wrapper(*args, **kwargs):
            wrapper.calls += 1
            return f(*args, **kwargs)

        wrapper.calls = 0
        return wrapper

    @counting
    def step(v, by=1, *more, scale=$(1|2)):
        """A step."""
        return (v + by + sum(more)) * scale

    for e in x:
        t = step($(e|t), $(n|by=n|n, 1, 2))
        if t $(>|<) $(20|-20):
            break
    return out, t, step.calls, step.__name__, $(step(x)|step(x[:1], scale=n)|step.__doc__)
====
def program(x, y, n, t):
    runs = [(k, list(g)) for k, g in itertools.groupby(x, key=lambda e: $(e > 0|int(e) % 2|e > t))]
    sums = list(itertools.accumulate($(x|x.tolist()|y), $(max|lambda a, b: a * 2 + b|initial=0)))
    firsts = list(itertools.islice(zip(x, y), $(n|1, 4)))
    pairs = [(a, b) for a, b in itertools.product(x[:3], y[:2]) if a $(<|!=|>) b]
    chain = [*itertools.chain.from_iterable([x[:2], y[:1], [n]])]
    longest = list(itertools.zip_longest(x, y[: n], fillvalue=$(None|t|0)))
    total = 0
    for (a, b), c in zip(itertools.pairwise(x), itertools.count(n)):
        total += $(a * b|b - a) + c
        if c > $(n + 3|9):
            break
    best = $(max(zip(x, range(len(x))), default=None)|min(enumerate(y), key=lambda p: p[1], default=0))
    return runs, sums, firsts, pairs, chain, longest, total, best
====
def inner(v, least):
    count = 0
    for e in v:
        if e >= least:
            yield e
            count += 1
    return $(count|v[:1]|(count, least))


def outer(v, least):
    found = yield from inner(v, least)
    yield $(found|-1)
    while least > $(0|1):
        least -= 1
        try:
            got = yield least
        except ValueError:
            yield "caught"
        finally:
            v[:1] += 1


def program(x, n, t):
    made = list(outer(x, n))
    g = outer(x, $(t|n|0))
    taken = []
    for e in g:
        taken.append(e)
        if len(taken) > $(2|4):
            break
    $(g.close()|taken.append(next(g, None))|del g)
    h = outer(x[:0], 3)
    next(h)
    taken.append(next(h))
    try:
        taken.append(h.throw(ValueError))
    except $(ValueError|(ValueError, StopIteration)) as e:
        taken.append(type(e).__name__)
    return made, taken, x
====
LIMIT = 3
SEEN = {}
COUNTS = [0, 0]


def note(name, value):
    global LIMIT
    SEEN[name] = $(value|SEEN.get(name, 0) + value|[*SEEN.get(name, []), value])
    COUNTS[len(SEEN) % 2] += 1
    if len(SEEN) > LIMIT:
        LIMIT += $(1|2)
        SEEN.pop(next(iter(SEEN)))
    return len(SEEN)


def program(x, n, t):
    global LIMIT
    import math
    from math import floor as low

    out = []
    for k in range(min(len(x), $(LIMIT|4))):
        try:
            out.append(note($(k|f"k{k}"|n), $(float(x[k])|x[k]|t)))
        except TypeError as e:
            out.append(type(e).__name__)
        if out[-1] == $(2|3) and LIMIT > 5:
            LIMIT = $(3|2)
    x[: LIMIT] $(+= COUNTS[0]|*= 2|-= LIMIT)
    return out, dict(SEEN), LIMIT, low(t), math.$(ceil(t)|gcd(n, 6)|hypot(n, 4)), list(COUNTS)
====
class Mode(Enum):
    ADD = "add"
    TOP = "top"

    @property
    def is_sum(self):
        return self is Mode.ADD


class Item(NamedTuple):
    key: int
    value: float = 0.5

    def scaled(self, by):
        return self._replace(value=self.value * by)


@dataclass(slots=True, order=True)
class Entry:
    rank: float
    data: object = dataclasses.field(compare=False, default=None)

    def __post_init__(self):
        self.rank = $(-self.rank|self.rank * 2|abs(self.rank))


def program(x, n, t):
    mode = Mode($("add"|"top")) if n < 4 else Mode["TOP"]
    items = [Item(k, e) for k, e in enumerate(x)]
    entries = [Entry(e, x[k:]) for k, e in enumerate(x)]
    total = 0
    for item in items:
        key, value = item
        if mode.is_sum:
            total += item.scaled($(n|t|2)).value
        elif $(mode is Mode.TOP|mode == Mode.TOP|mode.value == "top"):
            total = max(total, value)
        if key == $(3|n):
            mode = Mode.ADD
    first = min(entries, default=None)
    if first is not None:
        first.data $(+= 1|*= 2|[...] = n)
        first.rank = total
    return items[:2], total, mode, $(first|sorted(entries)[:1]|[e.rank for e in entries]), x, Item(n)
====
def program(x, m, n, t):
    h, w = m.shape
    r = 0
    while r < h - 1:
        c = 0
        while c < w:
            if m[r, c] $(>|<) m[r + 1, c]:
                m[r, c], m[r + 1, c] = m[r + 1, c], m[r, c]
            elif m[r, c] == m[r + 1, c] and c + 1 < w:
                m[r, c + 1] $(+=|-=) $(1|n)
                c += $(1|2)
            c += 1
        r += $(1|2)
    top, left, steps = 0, 0, []
    while top < h and left < w:
        window = m[top : top + $(2|n + 1), left : left + 2]
        steps.append($(window.sum()|window|window.shape|window.max()))
        if window[0, 0] > t: left += 1
        else: top += 1
    for k in range(min(h, w)):
        m[k:, k] $(-= m[k, k]|*= 2|[::-1].sort())
        m[k, k:] = $(m[k:, k][: w - k][:1]|t|m[k, k:][::-1])
    return m, steps, r
====
def program(x, idx, n, t):
    nodes = {k: [] for k in range(len(x))}
    for a, b in zip(idx, idx[$(1:|::-1)]):
        nodes[int(a)].append($(int(b)|b))
        if $(a != b|True): nodes[int(b)].append(int(a))
    best = {0: 0.0}
    heap = [(0.0, 0)]
    while heap:
        d, k = heapq.heappop(heap)
        if d > best.get(k, np.inf):
            continue
        for other in nodes.get(k, ()):
            new = d + abs($(x[other]|x[k] - x[other]|t))
            if new < best.get(other, $(math.inf|100)):
                best[other] = new
                heapq.heappush(heap, (new, $(int(other)|other)))
    order, left = [], set(nodes)
    while left:
        k = min(left, key=lambda k: (len(nodes[k]), $(k|-k|x[k])))
        left -= {k}
        order.append(k)
    dense = np.zeros((len(x), len(x)), $(bool|int|float))
    for k, others in nodes.items():
        dense[k, others] = $(1|True|n)
    return best, order, dense, $(dense.sum(axis=0)|nodes|dense @ dense)
====
def program(x, y, n, t):
    a = np.where(x > t, x, $(y[: len(x)] if len(y) >= len(x) else 0|n|-1))
    mask = (a > 0) $(&|^) (x $(<|>=) 2)
    a[mask] = $(x[mask]|n|a[mask][::-1]|x[mask] * 2)
    mask[::2] $(= False|^= True|&= a[::2] > 0)
    order = np.argsort(a, kind="stable")[$(::-1|:|: n)]
    a[order] = $(np.arange(len(order))|x[order]|a[order[::-1]])
    a[[0, 0, -1] if len(a) else []] += $(1|t)
    np.add.at(a, $(order|[0, -1, 0] if len(a) else []), $(1|n))
    counts = np.bincount(order, minlength=$(len(a)|2), weights=$(None|x[order]))
    top = $(a[a.argmax()] if len(a) else None|a.take(order, mode="clip")|np.unique(a, return_inverse=True)|np.split(a, [n]))
    return a, mask, counts, top, x
====
def program(x, n, t):
    nan = float("nan")
    v = [*x[:3].tolist(), $(nan|t|-0.0), n]
    told = [max(v), min(v), sorted(v), nan in v, v.index(v[-2]), $(v == v|sum(v)|max(v[::-1]))]
    for e in v:
        told.append($(round(e, 1)|int(e) if e == e else 0|e % 3|e // 0.5|divmod(e, 2)|-e ** 2|e > 1 < 3))
    z = np.array(v)
    z[z != z] = $(n|0)
    told.append((z $(==|<|>=) t).sum() + (t in z))
    k = -n $(// 2|% 3|// -2|% -3)
    told += [k, -7 // 2, -7 % 3, 7 % -3, (-1) ** n, 2 ** -n if n else 1, n << 2, ~n, n ^ 5, bool(n) + 1]
    told.append($(float(n) / 3|n / 4|t ** 2|t * n - n|abs(-t)|(t > 0) - (t < 0)))
    told.append([int(e) for e in $(z|z * 2|z[::-1])])
    return told, z, $(z.tolist()|z.astype(int)|np.float32(t) + n|np.int32(n) + t|np.float32(0.1) * 3)
====
def program(x, m, n, t):
    layers = [(m, x), (m.T.copy(), x[:1])][: $(2|n)]
    grads = []
    state = {"step": 0, "best": None, "log": []}
    h = m.$(sum(axis=0)|max(axis=0, initial=0)|T[:, 0])
    for k, (w, b) in enumerate(layers):
        if w.shape[-1] != len(h):
            state["log"].append((k, w.shape))
            break
        z = (w * h).sum(axis=-1) + b[:1].sum()
        h = np.$(maximum(z, 0)|where(z > t, z, z / 2)|abs(z))
        grads.append({"w": (z > 0)[:, None] * h[:, None], "b": $(h|z > 0)})
        state["step"] += 1
        if state["best"] is None or h.max(initial=-9) $(>|<) state["best"]:
            state["best"] = h.max(initial=-9)
    for (w, b), g in zip(layers, reversed(grads)):
        if w.shape[0] == len(g["b"]):
            w -= $(0.5|n) * g["w"]
            b[...] = $(b - 1|g["b"][: 1]|t)
        else:
            state["log"].append($("skip"|len(g)))
    return h, grads, state, $(m|layers|x), x
====
def program(x, n, t):
    view = memoryview(x.view()) if x.flags.c_contiguous else None
    raw = x.tobytes()
    back = np.frombuffer(raw, x.dtype)
    copy = np.array(x, $(copy=True|order="F"|ndmin=2))
    x[$(0|-1|:2)] = $(n|t|5) if len(x) else 0
    told = [len(raw), back.flags.writeable, $(view is not None and view[0] if len(x) else 0|back[:1]|raw == x.tobytes())]
    try:
        back[0] = 1
    except (ValueError, IndexError) as e:
        told.append(str(e))
    same = $(x is x[:]|np.shares_memory(x, x[::2])|x.base is copy.base|np.may_share_memory(x, copy))
    i8 = x.astype($(np.int64|np.int32)).view($(np.uint8|np.int16|np.float32))
    i8[:1] = $(1|n)
    return told, copy, same, i8[: 2], $(back|x[::-1].tobytes() == raw[::-1]|x.itemsize), x
====
class Matrix:
    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, key):
        if isinstance(key, tuple):
            r, c = key
            return self.rows[r][c]
        return self.rows[key]

    def __setitem__(self, key, value):
        r, c = key
        self.rows[r][c] = value

    def __mul__(self, other):
        if isinstance(other, Matrix):
            return Matrix([[sum(a * b for a, b in zip(r, c)) for c in zip(*other.rows)] for r in self.rows])
        return Matrix([[e * other for e in r] for r in self.rows])

    __rmul__ = __mul__

    def __eq__(self, other):
        return isinstance(other, Matrix) and len(self.rows) == len(other.rows)

    def __bool__(self):
        return any(any(r) for r in self.rows)

    def __neg__(self):
        return self * -1

    def __contains__(self, e):
        return any(e in r for r in self.rows)


def program(x, m, n, t):
    a = Matrix($(m.tolist()|[list(r) for r in m]|list(m)|[x.tolist(), x.tolist()]))
    b = Matrix([$([t, n]|x[:2].tolist()|[1, 0])] * len(a.rows[0])) if a.rows else a
    if a and len(a.rows[0]):
        a[0, 0] = $(t|n|a[0, -1])
        a[-1, 0] $(+=|-=|*=) $(2|n)
    product = $(a * b|2 * a|-a|a * t)
    return a, product, product == b, n in a, bool(b), $(a[0] if a.rows else 0|x|m)
'''.strip("\n").split("\n====\n")
