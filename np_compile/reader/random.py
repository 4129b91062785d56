"""Random numbers in compiled code, from NumPy's own stream.

A generator's bits come through its C interface, `bitgen_t`; NumPy's distributions are called by
address, so the numbers, and the generator's state afterwards, are those that NumPy gives.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .functions.operands import extents_of
from .lists import length, size_of_item
from .nest import alloc, loops, place, write
from .numbers import convert, to_int
from .read import C_STORAGE, Reader
from .values import Arr, Known, Lst, MadeRng, Num, Rng, Unreadable, Value, is_none, python

# name in C -> the symbol in NumPy's library, and its C type.
DISTRIBUTIONS = {
    "standard_normal": ("random_standard_normal", "f64 (*)(void *)"),
    "standard_exponential": ("random_standard_exponential", "f64 (*)(void *)"),
    "bounded": ("random_bounded_uint64", "u64 (*)(void *, u64, u64, u64, u8)"),
}  # fmt: skip


# `np.random.seed` of the Mersenne twister; 1 if it is another generator, or no such number. What
# `np.random` keeps beside the generator is the next normal number.
SEEDED = f"""\
typedef struct {{ bitgen *bits; int has; f64 normal; }} Kept;
INLINE int draw_seeded(Runtime *rt, bitgen *g, i64 seed) {{
    Kept *kept = rt->draws[{len(DISTRIBUTIONS)}];
    if ((u64)seed >> 32 || !kept || kept->bits->state != g->state) return 1;
    if ((void *)g->next_double != rt->draws[{len(DISTRIBUTIONS) + 1}]) return 1;
    u32 *key = g->state, x = (u32)seed;
    for (u32 k = 0; k < 624; k++) {{ key[k] = x; x = 1812433253U * (x ^ x >> 30) + k + 1; }}
    *(int *)(key + 624) = 624;
    kept->has = 0;
    kept->normal = 0;
    return 0;
}}
"""


@functools.cache
def addresses() -> tuple[int, ...]:
    """Where NumPy's distributions lie, in the order of the table, then what `SEEDED` asks for; 0
    for what is not there."""
    import numpy.random._generator as library

    try:
        found = ctypes.CDLL(library.__file__)
    except OSError:
        return (0,) * (len(DISTRIBUTIONS) + 2)
    made = []
    for symbol, _ in DISTRIBUTIONS.values():
        f = getattr(found, symbol, None)
        made.append(0 if f is None else ctypes.cast(f, ctypes.c_void_p).value or 0)
    return *made, *_of_legacy()


def _of_legacy() -> tuple[int, int]:
    """Where `np.random` keeps its next normal number, and the Mersenne twister's `next_double`;
    zeros where both are not laid out as is thought."""
    probe = np.random.RandomState(1)
    normal = probe.standard_normal(3)[-1]
    told, bits = probe.get_state(legacy=False), probe._bit_generator.ctypes
    state, size = bits.state_address, type(probe).__basicsize__
    words = struct.unpack("624Ii", ctypes.string_at(state, 2500))
    memory, kept = ctypes.string_at(id(probe), size), told["gauss"]
    found = [
        k for k in range(0, size - 23, 8)
        if struct.unpack_from("i", memory, k + 8) == (1,)
        and struct.unpack_from("d", memory, k + 16) == (kept,)
        and 0 <= struct.unpack_from("P", memory, k)[0] - id(probe) < size
    ]  # fmt: skip
    if normal == kept or not told["has_gauss"] or len(found) != 1:
        return 0, 0
    if words != (*told["state"]["key"].tolist(), told["state"]["pos"]):
        return 0, 0
    double = ctypes.cast(bits.next_double, ctypes.c_void_p).value or 0
    return id(np.random.mtrand._rand) + found[0], double


def _drawn(r: Reader, size: Value | None, rep: str, kind: str, text: Callable[[], str]) -> Value:
    """One number, or an array of them."""
    r.one_by_one()
    made: Value
    if not is_none(size):
        made = alloc(r, rep, extents_of(r, size))
        with loops(r, made.dims, vector="") as index:
            write(r, made, index, text())
    elif rep == "i64":
        name = r.named(text(), "i64", "n")
        made = Num(name, rep, (kind,), "", r.facts.name(name))
    else:
        made = r.number(text(), rep, (kind,))
    r.changed()
    return made


def _double(g: Rng | MadeRng) -> str:
    return f"next_double({g.text})"


def _random(r: Reader, g: Rng | MadeRng, size: Value | None = None) -> Value:
    return _drawn(r, size, "f64", "float", lambda: _double(g))


def _rand(r: Reader, g: Rng | MadeRng, *shape: Value) -> Value:
    from .values import Tup

    return _random(r, g, Tup(shape) if shape else None)


def _float(r: Reader, x: Value) -> str:
    from .nest import named_numbers

    if not isinstance(x, Num):
        raise Unreadable("arrays as a distribution's parameters")
    return named_numbers(r, convert(r, x, "f64", exact=True)).text


def _uniform(
    r: Reader,
    g: Rng | MadeRng,
    low: Value | None = None,
    high: Value | None = None,
    size: Value | None = None,
) -> Value:
    a, b = _float(r, low or python(0.0)), _float(r, high or python(1.0))
    r.leave_if(f"!__builtin_isfinite({b} - {a})", "a range that is not finite")
    width = r.named(f"{b} - {a}", "f64")
    if not g.legacy:
        r.leave_if(f"{width} < 0", "an upper bound below the lower")
    return _drawn(r, size, "f64", "float", lambda: f"({a} + {width} * {_double(g)})")


def _normal(
    r: Reader,
    g: Rng | MadeRng,
    loc: Value | None = None,
    scale: Value | None = None,
    size: Value | None = None,
) -> Value:
    if g.legacy:
        raise Unreadable("normal numbers from np.random itself, which keeps every other one")
    a, b = _float(r, loc or python(0.0)), _float(r, scale or python(1.0))
    r.leave_if(f"!({b} >= 0)", "a negative scale")
    return _drawn(
        r, size, "f64", "float", lambda: f"({a} + {b} * draw_standard_normal(rt, {g.text}))"
    )


def _standard_normal(r: Reader, g: Rng | MadeRng, size: Value | None = None) -> Value:
    if g.legacy:
        raise Unreadable("normal numbers from np.random itself, which keeps every other one")
    return _drawn(r, size, "f64", "float", lambda: f"draw_standard_normal(rt, {g.text})")


def _exponential(
    r: Reader, g: Rng | MadeRng, scale: Value | None = None, size: Value | None = None
) -> Value:
    if g.legacy:
        raise Unreadable("exponential numbers from np.random itself")
    b = _float(r, scale or python(1.0))
    r.leave_if(f"!({b} >= 0)", "a negative scale")
    return _drawn(
        r, size, "f64", "float", lambda: f"({b} * draw_standard_exponential(rt, {g.text}))"
    )


def _integers(
    r: Reader,
    g: Rng | MadeRng,
    low: Value,
    high: Value | None = None,
    size: Value | None = None,
    **more: Value,
) -> Value:
    if more:
        raise Unreadable("integers with these arguments")
    if is_none(high):
        low, high = python(0), low
    if not (isinstance(low, Num) and isinstance(high, Num) and low.is_int and high.is_int):
        raise Unreadable("integers between what are no integers")
    a, b = to_int(r, low), to_int(r, high)
    r.leave_if(f"{a.text} >= {b.text}", "an upper bound that is not above the lower")
    span = r.named(f"(u64){b.text} - 1UL - (u64){a.text}", "u64")
    kind = "int" if g.legacy else "int64"
    masked = int(g.legacy)
    mask = r.named(f"low_bits({span})", "u64") if masked else "0"
    made = _drawn(
        r, size, "i64", kind,
        lambda: f"(i64)((u64){a.text} + draw_bounded(rt, {g.text}, 0, {span}, {mask}, {masked}))",
    )  # fmt: skip
    if isinstance(made, Num) and a.lin is not None and b.lin is not None and made.lin is not None:
        r.facts.add(made.lin - a.lin)
        r.facts.add(b.lin - made.lin - 1)
        return Num(made.text, "i64", (kind,), "", made.lin, max(a.low, made.low), b.high)
    return made


def _seed(r: Reader, g: Rng | MadeRng, seed: Value) -> Value:
    if r.entry.paths.get(g) != ("state",):
        raise Unreadable("another state than that of np.random, which is seeded")
    if not (isinstance(seed, Num) and seed.is_int):
        raise Unreadable("a seed that is no integer")
    r.leave_if(f"draw_seeded(rt, {g.text}, {to_int(r, seed).text})", "a seed that C does not take")
    r.changed()
    return Known(None)


def _shuffle(r: Reader, g: Rng | MadeRng, x: Value) -> Value:
    """Items trade places with those before them, the last one first."""
    if not isinstance(x, (Arr, Lst)) or (isinstance(x, Lst) and x.made is not list):
        raise Unreadable("a shuffle of this")
    if isinstance(x, Arr) and (not x.ndim or x.readonly):
        raise Unreadable("a shuffle of an array that it cannot change")
    if not _shuffles_as_numpy():
        raise Unreadable("a shuffle, which this NumPy makes in another way")
    n = length(r, x) if isinstance(x, Lst) else x.dims[0]
    k, j = r.fresh("i"), r.fresh("j")
    with r.block(f"for (i64 {k} = {n.text} - 1; {k} > 0; {k}--)"):
        r.line(f"const i64 {j} = draw_bounded(rt, {g.text}, 0, {k}, low_bits({k}), 1);")
        if isinstance(x, Lst):
            size = C_STORAGE(x.of.rep) if x.kind else f"Word[{size_of_item(r, x.of) // 8}]"
            r.line(f"swap((char *){x.buf}->data, {k}, {j}, sizeof({size}));" if x.of else "")
        else:
            row = replace(x, dims=x.dims[1:], strides=x.strides[1:])
            with loops(r, row.dims, vector="") as index:
                a, b = (place(x, [at, *index]) for at in (k, j))
                r.line(f"const {C_STORAGE(x.rep)} held = {a}; {a} = {b}; {b} = held;")
    r.one_by_one()
    r.changed(x.roots)
    r.changed()
    return Known(None)


@functools.cache
def _shuffles_as_numpy() -> bool:
    """Whether this NumPy trades places as `_shuffle` has it: of lists and of arrays, with each kind
    of generator."""
    address = addresses()[[*DISTRIBUTIONS].index("bounded")]
    if not address:
        return False
    draw = ctypes.CFUNCTYPE(
        ctypes.c_uint64, ctypes.c_void_p, *[ctypes.c_uint64] * 3, ctypes.c_uint8
    )(address)
    for made in (np.random.default_rng, np.random.RandomState):
        for x in ([*range(40)], np.arange(40)):
            g, its = made(1), made(1)
            bits, mine = generator_of(g)[0].ctypes.bit_generator, [*range(40)]  # type: ignore
            for k in range(39, 0, -1):
                j = draw(bits, 0, k, (1 << k.bit_length()) - 1, 1)
                mine[k], mine[j] = mine[j], mine[k]
            its.shuffle(x)
            if [*x] != mine:
                return False
    return True


METHODS: dict[str, Callable] = {
    "random": _random, "uniform": _uniform, "normal": _normal, "standard_normal": _standard_normal,
    "exponential": _exponential, "integers": _integers, "rand": _rand, "random_sample": _random,
    "randint": _integers, "standard_exponential": _exponential, "seed": _seed,
    "shuffle": _shuffle,
}  # fmt: skip
# Those that Python is asked for; they change nothing but the generator.
_NAMES = (
    "beta binomial chisquare choice dirichlet exponential f gamma geometric gumbel hypergeometric "
    "integers laplace logistic lognormal logseries multinomial multivariate_hypergeometric "
    "multivariate_normal negative_binomial noncentral_chisquare noncentral_f normal pareto "
    "permutation permuted poisson power rand randint randn random random_integers random_sample "
    "ranf rayleigh sample seed standard_cauchy standard_exponential standard_gamma standard_normal "
    "standard_t triangular uniform vonmises wald weibull zipf"
)
IN_PYTHON = frozenset(_NAMES.split())


def generator_of(x: object) -> tuple[object, bool] | None:
    """The bit generator behind a Generator, a RandomState or `np.random`, and whether it is of
    the legacy kind."""
    if type(x) is np.random.Generator:
        return x.bit_generator, False
    if type(x) is np.random.RandomState:
        return x._bit_generator, True
    return None
