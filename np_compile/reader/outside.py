"""Functions of NumPy that compiled code calls in Python: those without loops of their own here.

Which type the result has is found by calling the function on small samples of such arguments. At
run time the result is looked at: if it is of another type after all, or the function raises,
compiled code leaves, and Python makes the call again.
"""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Any

import numpy as np

from np_compile.shim import is_writeable, quiet

from . import direct
from .exits import Export
from .nest import FAR, contiguous, kept, materialized
from .random import IN_PYTHON, generator_of
from .read import C_STORAGE, Reader, certain
from .runtime import data_of
from .source import code_of
from .twister import Twister
from .values import (
    C_TYPE,
    KIND_OF_DTYPE,
    MEMBERS,
    PARTS,
    PYTHON,
    PYTHON_TYPE,
    REPRESENTATION,
    SIZES,
    TEXT,
    Arr,
    Known,
    Lazy,
    Lst,
    MadeRng,
    Num,
    OrNone,
    Range,
    Rng,
    Tup,
    Unreadable,
    Value,
)

_SAMPLE = 4  # the extent of a sample's axes


@dataclass
class Site:
    """A call. args, kwargs: how the arguments are made of words. result: what the result is."""

    function: Any
    args: list[Any]
    kwargs: dict[str, Any]
    result: Any
    where: int  # the first word of the result
    row: direct.Row | None = None  # for C to make it itself


# They give new arrays, views or numbers, and change nothing.
_NAMES = {
    np: (
        "sort argsort median percentile quantile unique searchsorted interp convolve correlate "
        "einsum kron histogram bincount digitize nonzero where argwhere flatnonzero take repeat "
        "tile pad polyfit polyval roots cov corrcoef gradient trapezoid nansum nanmean nanmin "
        "nanmax nanstd nanvar nanmedian tensordot lexsort partition argpartition round around isin "
        "nan_to_num angle unwrap insert delete append matmul inner vdot linspace arange "
        "meshgrid average choose compress extract triu tril block dstack setdiff1d union1d "
        "intersect1d logspace geomspace hanning hamming blackman sinc vander ediff1d heaviside "
        "cumulative_sum diagflat indices bitwise_count nanargmin nanargmax fix rot90 var std "
        "array full zeros ones eye concatenate stack hstack vstack column_stack outer cross "
        "roll diff clip min max sum prod any all mean argmin argmax cumsum cumprod norm "
        "histogram2d array_equal allclose isclose triu_indices tril_indices diag_indices "
        "unravel_index ravel_multi_index moveaxis swapaxes squeeze diag_indices_from "
        "tril_indices_from triu_indices_from ix_ nancumsum nanprod nanpercentile nanquantile "
        "cumulative_prod trim_zeros resize setxor1d float_power i0 kaiser bartlett poly polyder "
        "polyint polymul polyadd polysub diagonal diag tri select nancumprod "
        "histogram_bin_edges isreal iscomplex isposinf isneginf"
    ),
    np.linalg: (
        "inv solve det slogdet eig eigh eigvals eigvalsh svd qr cholesky lstsq pinv matrix_power "
        "cond matrix_rank norm multi_dot outer cross"
    ),
    np.lib.stride_tricks: "sliding_window_view",
    np.random: "default_rng RandomState",
    np.fft: (
        "fft ifft rfft irfft fft2 ifft2 fftn ifftn rfft2 irfft2 fftfreq rfftfreq fftshift ifftshift"
    ),
}  # fmt: skip
PURE = frozenset(
    getattr(module, name)
    for module, names in _NAMES.items()
    for name in names.split()
    if hasattr(module, name)
)
METHODS = frozenset(
    (
        *("argsort", "nonzero", "round", "repeat", "take", "searchsorted", "cumsum", "cumprod"),
        *("sum", "mean", "std", "var", "min", "max", "argmin", "argmax", "any", "all", "prod"),
        *("dot", "trace", "astype", "clip", "copy", "flatten", "ptp", "conj", "swapaxes"),
        *("squeeze", "diagonal", "ravel", "reshape", "transpose"),
    )
)


def call(r: Reader, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The value of a call that is made in Python."""
    if not is_known(function):
        raise Unreadable(f"a call of {getattr(function, '__qualname__', function)}")
    args = [_solid(r, a) for a in args]
    kwargs = {k: _solid(r, v) for k, v in kwargs.items()}
    if "out" in kwargs:
        raise Unreadable("out= of this function")
    result, given = _sampled(function, args, kwargs)
    out = Export(r)
    made = [out.value(a) for a in args]
    named = {k: out.value(v) for k, v in kwargs.items()}
    number = len(r.tables)
    site = Site(function, made, named, None, out.count)
    r.tables.append(site)
    r.lines += out.lines
    how = _called(r, number, "call_numpy(rt, {})")
    r.line(f"if ({how} == 2) return -1;")
    r.leave_if(how, f"{getattr(function, '__name__', function)} raises")
    words = [out.count]
    site.result, value = _result(r, result, words, given)
    _guess_extents(r, value, [x for x in (*args, *kwargs.values()) if isinstance(x, Arr)])
    name = function.name if isinstance(function, Method) else None
    site.row = direct.row(function, name, made, named, site.result)
    r.entry.most = max(r.entry.most, words[0])
    return value


def is_known(function: Any) -> bool:
    """Whether a function is one of NumPy's that gives something new, and changes nothing."""
    if isinstance(function, (np.ufunc, Method)) or function in PURE:
        return True
    owner = getattr(function, "__self__", None)
    return isinstance(owner, np.ufunc) and function.__name__ != "at"


def _guess_extents(r: Reader, x: Value, given: list[Arr]) -> None:
    """How large a result is thought to be: as the largest array that the function is given."""
    if isinstance(x, Tup):
        for y in x.items:
            _guess_extents(r, y, given)
    elif isinstance(x, Arr) and given and x.ndim:
        known = [[r.entry.at(d.lin) for d in a.dims] for a in given]
        largest = max(known, key=math.prod)
        alike = [round(math.prod(largest) ** (1 / x.ndim))] * x.ndim
        extents = largest if len(largest) == x.ndim else alike
        r.entry.known |= {d.text: n for d, n in zip(x.dims, extents, strict=True)}


def _called(r: Reader, number: int, call: str = "rt->python({})") -> str:
    """The C name of how a call in Python ended. A signal's handler has its turn before: amid the
    call back, what it raises would be lost."""
    r.line("if (ask_python(rt)) return -1;")
    return r.named(call.format(number), "int", "how")


@dataclass(frozen=True)
class Method:
    """A method of arrays, called by name."""

    name: str

    def __call__(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(x, self.name)(*args, **kwargs)


@dataclass(frozen=True)
class Draw(Method):
    """A method of a random generator. Where Python is to make a call again, the generator has to be
    as it was."""

    @staticmethod
    def state(g: Any) -> Any:
        """What `restore` takes."""
        of_state = type(g) is np.random.RandomState
        return g.get_state(legacy=False) if of_state else g.bit_generator.state

    @staticmethod
    def restore(g: Any, state: Any) -> None:
        if type(g) is np.random.RandomState:
            g.set_state(state)
        else:
            g.bit_generator.state = state


def drawn(
    r: Reader, g: Rng | MadeRng, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """Random numbers that a generator draws in Python."""
    if name not in IN_PYTHON:
        raise Unreadable(f"random numbers by {name!r}")
    r.one_by_one()
    made = call(r, Draw(name), [g, *args], kwargs)
    r.changed()
    return made


def _solid(r: Reader, x: Value, shown: bool = False) -> Value:
    if not shown and isinstance(x, (Num, Lst)) and (getattr(x, "kind", 0) in TEXT or (
        isinstance(x, Lst) and x.made in (str, bytes)
    )):  # fmt: skip
        raise Unreadable("text in a function of NumPy's")
    if isinstance(x, OrNone) and not shown:
        x = certain(r, x)
    if isinstance(x, Tup):
        return Tup(tuple(_solid(r, y) for y in x.items), x.made)
    if isinstance(x, Lazy):
        return materialized(r, x) if x.ndim else kept(r, x)
    if isinstance(x, (Num, Arr, Known, Range, Lst, OrNone)):
        return kept(r, x)
    if isinstance(x, (Rng, MadeRng)) and not isinstance(x, Twister):
        return x
    raise Unreadable("this as an argument of NumPy's")


# What is shown


def is_print(r: Reader, node: ast.stmt) -> bool:
    """Whether a statement is a call of Python's `print`."""
    call = node.value if isinstance(node, ast.Expr) else None
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "print"
        and not {"print"} & {*r.env, *r.frame.scope, *r.frame.function.__globals__}
    )


def printed(r: Reader, node: ast.Expr) -> None:
    """`print(...)`, in Python: its arguments are read here, their texts are made there."""
    shown = _Shown(r)
    assert isinstance(node.value, ast.Call)
    call = shown.visit_Call(node.value)
    names = [ast.arg(name) for name in shown.values]
    body = ast.Lambda(ast.arguments([], [], None, names, [None] * len(names), None, []), call)
    tree = ast.fix_missing_locations(ast.copy_location(ast.Expression(body), node))
    f = r.frame.function
    code = code_of(tree, f.__code__.co_filename, "eval")
    out = Export(r)
    values = {name: out.value(x) for name, x in shown.values.items()}
    number = len(r.tables)
    r.tables.append(Site(eval(code, f.__globals__), [], values, ("nothing",), out.count))
    r.lines += out.lines
    r.line(f"if ({_called(r, number)}) return -1;")
    r.changed()
    r.entry.most = max(r.entry.most, out.count)


_FORMS = (ast.JoinedStr, ast.FormattedValue, ast.Constant, ast.Tuple, ast.List, ast.BinOp,
          ast.Call, ast.keyword, ast.Load, ast.operator)  # fmt: skip
_TEXTS = frozenset(("str", "repr", "format", "round", "len", "int", "float", "list", "tuple"))


class _Shown(ast.NodeTransformer):
    """An expression of texts, with names for the values in it. The values are read where they
    stand: what is learnt of lists that are made there is known by the place."""

    def __init__(self, r: Reader):
        self.values: dict[str, Value] = {}
        self._r = r

    def visit(self, node: ast.AST) -> Any:
        r = self._r
        if isinstance(node, ast.expr) and not isinstance(node, (ast.Constant, ast.JoinedStr)):
            saved = r.save()
            try:
                value = _solid(r, r.grammar.anything(r, node), shown=True)
            except Unreadable:
                r.restore(saved)
            else:
                name = f"__shown{len(self.values)}"
                self.values[name] = value
                return ast.copy_location(ast.Name(name, ast.Load()), node)
        if not isinstance(node, _FORMS) or (isinstance(node, ast.Call) and not self._is_text(node)):
            raise Unreadable("what is printed")
        return self.visit_Call(node) if isinstance(node, ast.Call) else self._copied(node)

    def visit_Call(self, node: ast.Call) -> Any:
        args, keywords = map(self.visit, node.args), map(self.visit, node.keywords)
        return ast.copy_location(ast.Call(node.func, [*args], [*keywords]), node)

    def _copied(self, node: ast.AST) -> Any:
        made = copy.copy(node)
        for name, x in ast.iter_fields(node):
            if isinstance(x, list):
                setattr(made, name, [*x])
        return self.generic_visit(made)

    def _is_text(self, node: ast.Call) -> bool:
        """Whether a call makes a text of its arguments, and does nothing else."""
        f = node.func
        if isinstance(f, ast.Attribute):
            return isinstance(f.value, ast.Constant) and isinstance(f.value.value, str)
        known = {*self._r.env, *self._r.frame.scope, *self._r.frame.function.__globals__}
        return isinstance(f, ast.Name) and f.id in _TEXTS and f.id not in known


# Which type the result has


def _sampled(
    function: Any, args: list[Value], kwargs: dict[str, Value]
) -> tuple[Any, list[tuple[np.ndarray, frozenset[str]]]]:
    """What it gives of samples; these, and whose memory each stands for."""
    failed: Exception | None = None
    # Integers of arrays are data at first, then indices that are within all bounds: of zeros alone
    # LAPACK writes to the terminal that it cannot fit anything to them.
    for length, number, step in (
        (_SAMPLE, 1, 1), (_SAMPLE, 1, 0), (2, 1, 0), (1, 1, 0), (3, 1, 0), (_SAMPLE, _SAMPLE, 0)
    ):  # fmt: skip
        given = [_sample(x, length, number, step) for x in args]
        named = {k: _sample(v, length, number, step) for k, v in kwargs.items()}
        samples = list(_arrays([*args, *kwargs.values()], [*given, *named.values()]))
        if isinstance(function, Draw):  # floats may be probabilities
            given, named = [*map(_shares, given)], {k: _shares(v) for k, v in named.items()}
        try:
            with quiet(), np.errstate(all="ignore"):
                return function(*given, **named), samples
        except Unreadable:
            raise
        except Exception as e:
            failed = failed or e
    name = getattr(function, "__name__", function)
    raise Unreadable(f"{name} does not take a sample: {failed}")


def _arrays(values: Any, samples: Any) -> Iterator[tuple[np.ndarray, frozenset[str]]]:
    for x, y in zip(values, samples, strict=True):
        if isinstance(x, Arr):
            yield y, x.roots
        elif isinstance(x, Tup):
            yield from _arrays(x.items, y)


def _shares(x: Any) -> Any:
    is_array = isinstance(x, np.ndarray) and x.dtype.kind == "f"
    return x / x.sum() if is_array else x


def _sample(x: Value, length: int = _SAMPLE, number: int = 1, step: int = 0) -> Any:
    """A value such as this one. length: of lists; number: in the place of numbers; step: from one
    integer of an array to the next."""
    if isinstance(x, Known):
        return x.itself
    if isinstance(x, Tup):
        items = [_sample(y, length, number, step) for y in x.items]
        return x.made(items) if x.made in (tuple, list) else x.made(*items)
    if isinstance(x, Range):
        return range(_SAMPLE)
    if isinstance(x, (Rng, MadeRng)):
        return np.random.RandomState(0) if x.legacy else np.random.default_rng(0)
    if isinstance(x, Num):
        if x.kind is None:
            raise Unreadable("a number of one kind or another as an argument of NumPy's")
        value = x.value if x.value is not None else number
        if x.kind in PYTHON:
            if x.kind in MEMBERS:
                return next(iter(MEMBERS[x.kind]))
            if x.kind == "wide":
                raise Unreadable("an integer of 64 bits without a sign, in a function of NumPy's")
            return PYTHON_TYPE[x.kind](value)
        return np.dtype(x.kind.rstrip("_")).type(value)
    if isinstance(x, Lst):
        kinds = x.of.kinds if isinstance(x.of, Num) else (None,)
        of = [replace(x.of, kinds=(k,)) if k else x.of for k in kinds]
        return x.made(
            [_sample(y, length, number, step) for y in islice(cycle(of), length)] if x.of else []
        )
    if not isinstance(x, Arr):
        raise Unreadable("such an argument of a function of NumPy's")
    shape = tuple(_SAMPLE if d.value is None else d.value for d in x.dims)
    made = np.zeros(shape, x.dtype)
    if x.rep == "bool":
        made.flat[::2] = True
    elif x.dtype.kind in "iu":
        made.flat[:] = step * np.arange(made.size)
    elif x.dtype.kind in "fc" and made.ndim >= 2:
        made[...] = np.eye(shape[-2], shape[-1]) + 0.125
    elif x.dtype.kind in "fc":
        made.flat[:] = np.arange(made.size) + 1
    return made


def _result(
    r: Reader, x: Any, words: list[int], given: list[tuple[np.ndarray, frozenset[str]]]
) -> tuple[Any, Value]:
    """How a result is stored in words, and its value. given: the arrays whose memory it may be."""
    at = words[0]
    if x is None:
        return ("nothing",), Known(None)
    if generator_of(x) is not None:
        words[0] += 2
        buf = r.named(f"adopt(rt, out[{at}].i, out[{at + 1}].p)", "Buf *", "g")
        r.made_here(buf)
        return ("generator", type(x), at), MadeRng(buf, None, frozenset((buf,)), made=type(x))
    if isinstance(x, np.ndarray):
        kind = KIND_OF_DTYPE.get(x.dtype)
        if kind is None or x.ndim > 8:
            raise Unreadable(f"an array of dtype {x.dtype}")
        rep = REPRESENTATION[kind]
        words[0] += 2 + 2 * x.ndim
        listed = f"adopt(rt, out[{at}].i, out[{at + 1}].p)"
        buf = r.named(listed, "Buf *", "b")
        r.made_here(buf)
        ctype = f"{C_STORAGE(rep)} *"
        data = r.named(f"({ctype})out[{at + 1}].p", ctype, "p")
        dims = tuple(r.integer(f"out[{at + 2 + k}].i", 0, FAR) for k in range(x.ndim))
        strides: tuple[Num, ...] = tuple(
            r.integer(f"out[{at + 2 + x.ndim + k}].i", -FAR, FAR) for k in range(x.ndim)
        )
        flat = x.flags.c_contiguous
        if flat:
            strides = contiguous(r, dims)
        shared = frozenset[str]().union(*[k for y, k in given if np.may_share_memory(x, y)])
        # What C has made, Python gets a copy of: what is written to a view of that would be lost.
        if not shared <= set(map(r.entry.root, range(r.entry.arrays))):
            raise Unreadable("a view of NumPy's of an array that the function has made")
        roots = shared | {buf}
        made = Arr(rep, buf, data, dims, strides, roots, None, not is_writeable(x), flat)
        return ("array", x.dtype, x.ndim, at, flat, is_writeable(x), SIZES[rep]), made
    if isinstance(x, tuple):
        parts = [_result(r, y, words, given) for y in x]
        made_of = tuple if type(x) is tuple else type(x)
        return ("tuple", type(x), [p[0] for p in parts]), Tup(tuple(p[1] for p in parts), made_of)
    is_numpy = isinstance(x, np.generic)  # whose `bool` has the name of Python's
    kind = KIND_OF_DTYPE.get(x.dtype, "") if is_numpy else type(x).__name__
    if kind not in REPRESENTATION:
        raise Unreadable(f"a result of type {type(x).__name__}")
    rep = REPRESENTATION[kind]
    if rep in PARTS:
        words[0] += 2
        text = f"({rep}){{out[{at}].f, out[{at + 1}].f}}"
        return ("complex", type(x), at), r.number(text, rep, (kind,))
    words[0] += 1
    part = "f" if rep in ("f64", "f32") else "i"
    if rep == "i64":
        made_int = r.integer(f"out[{at}].i")
        number = Num(made_int.text, rep, (kind,), "", made_int.lin)
        return ("number", type(x), at, part), number
    if rep == "u64":
        raise Unreadable("an unsigned number")
    return ("number", type(x), at, part), r.number(f"({C_TYPE[rep]})out[{at}].{part}", rep, (kind,))


def stored(x: Any, result: Any, out: Any, adopt: Callable[[Any], None]) -> bool:
    """Store a result in words, as compiled code expects it; False if it is of another type. adopt:
    told of the arrays and generators whose addresses are stored."""
    kind = result[0]
    if kind == "nothing":
        return True
    if kind == "array":
        _, dtype, ndim, at, flat, writeable, size = result
        if type(x) is not np.ndarray or x.dtype != dtype or x.ndim != ndim:
            return False
        if (flat and not x.flags.c_contiguous) or (writeable and not is_writeable(x)):
            return False
        adopt(x)
        out[at].i = id(x)
        out[at + 1].p = data_of(x)
        for k in range(ndim):
            out[at + 2 + k].i = x.shape[k]
            out[at + 2 + ndim + k].i = x.strides[k] // size
        return True
    if kind == "tuple":
        if type(x) is not result[1] or len(x) != len(result[2]):
            return False
        return all(stored(y, s, out, adopt) for y, s in zip(x, result[2], strict=True))
    if type(x) is not result[1]:
        return False
    if kind == "generator":
        adopt(x)
        bits: Any = generator_of(x)[0]  # type: ignore[index]
        out[result[2]].i = id(x)
        out[result[2] + 1].p = bits.ctypes.bit_generator.value
        return True
    if kind == "complex":
        out[result[2]].f, out[result[2] + 1].f = x.real, x.imag
        return True
    if result[3] == "f":
        out[result[2]].f = x
        return True
    n = int(x)
    if not -(1 << 63) <= n < 1 << 63:
        return False
    out[result[2]].i = n
    return True
