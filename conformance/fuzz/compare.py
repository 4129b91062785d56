"""What a call shows to its caller, as data, and where two such observations differ."""

from __future__ import annotations

import array
import collections
import contextlib
import datetime
import io
import numbers
import types
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

# Units in the last place, at the size of the largest number of a call, by which results may differ
# in programs that round (sums in another order, elementary functions). Others agree to the bit.
ULPS = 512
FRACTION = 2.0**-8  # of which exact programs' numbers are multiples
QUIET = ("(Mean of empty|Degrees of freedom|All-NaN|invalid value|overflow|divide by|underflow)",
         "Casting complex values", "(?s).*recompile_limit")  # fmt: skip


@dataclass
class Seen:
    """One call: what it gave or raised, its arguments and the module's state afterwards, who shares
    memory with whom, what it printed. Values are copies: `described`."""

    result: Any
    error: tuple[str, str] | None
    arguments: Any
    state: Any
    sharing: list[str]
    text: str


def described(x: Any, known: dict[int, int] | None = None) -> Any:
    """A copy of a value for comparison, of tuples, lists, numbers and arrays."""
    known = {} if known is None else known
    if isinstance(x, torch.Tensor):
        return ("tensor", described(x.cpu().numpy()))
    if isinstance(x, np.ndarray):
        values = [described(v, known) for v in x.flat] if x.dtype == object else np.array(x)
        return ("array", type(x).__name__, x.dtype, x.shape, x.flags.writeable, values)
    if isinstance(x, np.generic):
        return ("scalar", type(x).__name__, np.array(x))
    if isinstance(x, (float, complex)):
        return (type(x).__name__, np.array(x))
    if isinstance(x, (bytes, numbers.Number, datetime.date, datetime.timedelta)):
        return (type(x).__name__, repr(x))
    if isinstance(x, (array.array, memoryview)):
        return (f"{type(x).__name__} of", described(x.tolist(), known))
    if isinstance(x, (bool, int, str, type(None), range, slice, np.dtype)):
        return (type(x).__name__, x)
    if isinstance(x, type):  # a module that is loaded twice has two
        return ("type", f"{x.__module__}.{x.__qualname__}")
    if not isinstance(x, tuple):
        if id(x) in known:
            return ("again", known[id(x)])
        known[id(x)] = len(known)
    if isinstance(x, (list, tuple, set, collections.deque)):
        return (type(x).__name__, [described(v, known) for v in x])
    if isinstance(x, dict):
        return ("dict", [(k, described(v, known)) for k, v in x.items()])
    if isinstance(x, np.random.Generator):
        return ("Generator", repr(x.bit_generator.state))
    if isinstance(x, types.FunctionType):
        return ("function", x.__name__)
    if type(x).__module__ not in ("builtins", "numpy", "torch") and hasattr(x, "__dict__"):
        return (type(x).__name__, [(k, described(v, known)) for k, v in vars(x).items()])
    return (type(x).__name__,)


def arrays(x: Any, found: list[np.ndarray] | None = None, met: set[int] | None = None) -> list:
    """The arrays of a value, in a fixed order."""
    found = [] if found is None else found
    met = set() if met is None else met
    if isinstance(x, np.ndarray):
        found.append(x)
    elif id(x) not in met and not isinstance(x, (types.FunctionType, type, types.ModuleType)):
        met.add(id(x))
        inside = (
            x.values() if isinstance(x, dict) else vars(x).values() if hasattr(x, "__dict__") else x
        )
        if isinstance(inside, (list, tuple)) or inside is not x:
            for v in inside:
                arrays(v, found, met)
    return found


def sharing(result: Any, arguments: tuple) -> list[str]:
    """Which arrays of result and arguments are one object, or lie in one memory; of results, also
    which lie where others do."""
    named = [(f"result {k}", a) for k, a in enumerate(arrays(result)[:16])]
    named += [(f"argument {k}", a) for k, a in enumerate(arrays(arguments)[:16])]
    found = []
    for k, (left, a) in enumerate(named):
        for right, b in named[k + 1 :]:
            results = left[0] == right[0] == "r"
            if a is b:
                found.append(f"{left} is {right}")
            elif results and _places(a) == _places(b):
                found.append(f"{left}{_WHERE}{right}")
            elif np.may_share_memory(a, b) and np.shares_memory(a, b):
                found.append(f"{left} shares memory with {right}")
    return found


_WHERE = " lies where "


def _places(a: np.ndarray) -> tuple:
    """Where elements lie, in their order: strides of axes of one lead nowhere."""
    if not a.size:
        return a.shape, a.dtype
    steps = [s for n, s in zip(a.shape, a.strides, strict=True) if n > 1]
    return a.__array_interface__["data"], a.shape, steps, a.dtype


def _of_views(got: Sequence[str], want: Sequence[str]) -> list[str]:
    """What is shared, but that views of the same elements are one object where NumPy's only lie
    where others do: see docs/deviations.md, "Views that compiled loops make"."""
    apart = [s.replace(" is ", _WHERE) for s in got]
    return [b if b in want else a for a, b in zip(got, apart, strict=True)]


def observe(f: Callable, arguments: tuple, state: Callable[[], Any]) -> tuple[Seen, Any]:
    """Call f; what it shows, and its result (None after an exception)."""
    out = io.StringIO()
    result = error = None
    with contextlib.redirect_stdout(out), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        for text in QUIET:
            warnings.filterwarnings("ignore", text)
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.filterwarnings("ignore", category=RuntimeWarning, module="numpy")
        try:
            result = f(*arguments)
        except Exception as e:
            error = (type(e).__name__, str(e))
    seen = Seen(
        described(result), error, described(arguments), described(state()),
        sharing(result, arguments), out.getvalue(),
    )  # fmt: skip
    return seen, result


def difference(
    got: Seen,
    want: Seen,
    exact: bool,
    unit: float,
    signs: bool,
    poles: bool = False,
    sums: bool = False,
) -> str:
    """What differs; empty if nothing does. unit: the last place of the program's numbers. signs:
    whether those of zeros count. poles: whether it may have divided by a zero of either sign. sums:
    whether it adds in an order that may be another: of small numbers, sums are exact in any."""
    if (got.error and got.error[0]) != (want.error and want.error[0]):
        return f"{_ending(got)}; NumPy {_ending(want)}"
    if got.error and want.error and got.error[0] != "TypeError" and got.error[1] != want.error[1]:
        return f"raises {got.error[0]}: {got.error[1]!r}; NumPy has {want.error[1]!r}"
    size = max(1.0, _largest(want.result), _largest(want.arguments))
    rounds = not exact or (sums and size * unit > FRACTION)
    bound = ULPS * unit * size if rounds else 0.0
    for name in ("result", "arguments", "state"):
        found = _difference(getattr(got, name), getattr(want, name), name, bound, signs, poles)
        if found:
            return found
    if got.text != want.text:
        return f"prints {got.text!r}; NumPy {want.text!r}"
    shared = _of_views(got.sharing, want.sharing)
    if shared != want.sharing:
        odd = sorted(set(shared) ^ set(want.sharing))
        return "memory: " + "; ".join(
            f"{s} ({'only compiled' if s in got.sharing else 'only plain'})" for s in odd
        )
    return ""


def _ending(seen: Seen) -> str:
    return f"raises {seen.error[0]}: {seen.error[1]}" if seen.error else "raises nothing"


def _largest(x: Any) -> float:
    """The largest finite float of a description."""
    if isinstance(x, np.ndarray):
        if x.dtype.kind not in "fc" or not x.size:
            return 0.0
        size = np.abs(x)
        return float(size[np.isfinite(size)].max(initial=0.0))
    if isinstance(x, (list, tuple)):
        return max(map(_largest, x), default=0.0)
    return 0.0


def _difference(got: Any, want: Any, where: str, bound: float, signs: bool, poles: bool) -> str:
    if isinstance(want, np.ndarray) and isinstance(got, np.ndarray):
        return _of_values(got, want, where, bound, signs, poles)
    if isinstance(want, (list, tuple)) and isinstance(got, (list, tuple)):
        if len(got) != len(want):
            return f"{where}: {_short(got)}; NumPy has {_short(want)}"
        if want and want[0] == "array" and got[:5] != want[:5]:
            return f"{where}: {_short(got[1:5])}; NumPy has {_short(want[1:5])}"
        for k, (g, w) in enumerate(zip(got, want, strict=True)):
            at = f"{where}[{k}]" if isinstance(want, list) else where
            found = _difference(g, w, at, bound, signs, poles)
            if found:
                return found
        return ""
    return (
        ""
        if type(got) is type(want) and got == want
        else f"{where}: {_short(got)}; NumPy has {_short(want)}"
    )


def _of_values(
    got: np.ndarray, want: np.ndarray, where: str, bound: float, signs: bool, poles: bool
) -> str:
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{where}: {got.dtype}{got.shape}; NumPy has {want.dtype}{want.shape}"
    if want.dtype.names is not None:
        parts = (
            _of_values(got[name], want[name], f"{where}[{name!r}]", bound, signs, poles)
            for name in want.dtype.names
        )
        return next(filter(None, parts), "")
    if want.dtype.kind in "mM":
        same = (got == want) | (np.isnat(got) & np.isnat(want))
    elif want.dtype.kind not in "fc":
        same = got == want
    else:
        with np.errstate(all="ignore"):
            near = np.abs(got - want) <= bound
        same = (got == want) | near | ((got != got) & (want != want))
        if poles:
            same |= np.isinf(got) & np.isinf(want)
        if signs:
            same &= _signs(got) == _signs(want)
    if np.all(same):
        return ""
    at = tuple(int(k) for k in np.argwhere(~np.atleast_1d(same))[0])
    pair = f"{np.atleast_1d(got)[at]!r}; NumPy has {np.atleast_1d(want)[at]!r}"
    return f"{where}{list(at) if want.shape else ''}: {pair}"


def _signs(x: np.ndarray) -> np.ndarray:
    """Which zeros are negative; of complex numbers in either part."""
    if x.dtype.kind == "c":
        return _signs(x.real) + 2 * _signs(x.imag)
    return ((x == 0) & np.signbit(x)).astype(int)


def _short(x: Any) -> str:
    return repr(x)[:120]
