"""The rows of the ufuncs: a name, its other names, and a formula by kind of dtype.

Which dtypes a ufunc takes and gives is NumPy's own answer (`resolve_dtypes`); a row only says how
to compute once the operands have them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from . import _ufunc_math as m
from . import _unsigned
from ._dtypes import WIDER

Formula = Callable[..., "torch.Tensor | tuple[torch.Tensor, ...]"]


@dataclass(frozen=True, slots=True)
class Formulas:
    """How one ufunc computes, by the kind of its first operand.

    bool, int, float, complex: formulas on tensors of one dtype. bits: on uint64 read as int64.
    unsigned: on uint16 and uint32 held in wider ints, where the signed formula would be wrong.
    mixed: int64 against uint64 (comparisons). narrow: torch has the float formula for float16;
    otherwise float16 is computed in float32. numbers: the formulas take a Python number as their
    second operand.
    """

    name: str
    aliases: tuple[str, ...] = ()
    bool: Formula | None = None
    int: Formula | None = None
    float: Formula | None = None
    complex: Formula | None = None
    bits: Formula | None = None
    unsigned: Formula | None = None
    mixed: Formula | None = None
    narrow: bool = True
    numbers: bool = False

    @property
    def numpy(self) -> np.ufunc:
        return getattr(np, self.name)


def _real(name: str, formula: Formula, *aliases: str, **more: object) -> Formulas:
    return Formulas(name, aliases, float=formula, **more)


def _rounded(name: str, formula: Formula, *aliases: str, **more: object) -> Formulas:
    """An elementary function of real numbers: its last places are the library's."""
    return _real(name, m.by_numpy(name, formula), *aliases, **more)


def _inexact(
    name: str, formula: Formula, *aliases: str, complex: Formula | None = None
) -> Formulas:
    of_complex = m.by_numpy(name, m.dense(complex or formula))
    return _rounded(name, formula, *aliases, complex=of_complex)


def _whole(name: str, formula: Formula, *aliases: str, **more: object) -> Formulas:
    return Formulas(name, aliases, int=formula, **{"bits": formula, **more})


def _rounding(name: str, formula: Formula) -> Formulas:
    return Formulas(name, bool=m.clone, int=m.clone, bits=m.clone, float=formula)


def _same(name: str, formula: Formula, *aliases: str, **more: object) -> Formulas:
    """One formula for numbers of every kind."""
    kinds = dict.fromkeys(("int", "float", "complex", "bits"), formula)
    return Formulas(name, aliases, **{**kinds, **more})


def _compare(
    name: str, formula: Formula, of_complex: Formula, of_bits: Formula, mixed: Formula
) -> Formulas:
    kinds = dict.fromkeys(("bool", "int", "float"), formula)
    return Formulas(name, **kinds, complex=of_complex, bits=of_bits, mixed=mixed, numbers=True)


def _swapped(formula: Formula) -> Formula:
    return lambda a, b: formula(b, a)


def _negated(formula: Formula) -> Formula:
    return lambda *operands: ~formula(*operands)


def _at_zero_false(a: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(a, dtype=torch.bool)


def _true(a: torch.Tensor) -> torch.Tensor:
    return torch.ones_like(a, dtype=torch.bool)


def _float_test(name: str, formula: Formula, otherwise: Formula) -> Formulas:
    kinds = dict.fromkeys(("bool", "int", "bits"), otherwise)
    return Formulas(name, **kinds, float=formula, complex=formula)


def _int_count(a: torch.Tensor) -> torch.Tensor:
    return _unsigned.popcount(torch.abs(a.to(torch.int64))).to(torch.uint8)


def _bits_count(a: torch.Tensor) -> torch.Tensor:
    return _unsigned.popcount(a).to(torch.uint8)


def _bits_sign(a: torch.Tensor) -> torch.Tensor:
    return (a != 0).to(a.dtype)


def _extremum(
    name: str, formula: Formula, of_bool: Formula, of_complex: Formula, of_bits: Formula
) -> Formulas:
    return Formulas(
        name, bool=of_bool, int=formula, float=formula, complex=of_complex, bits=of_bits
    )


_greater = _swapped(m.complex_less)
_bits_greater = _swapped(_unsigned.less)

ROWS: tuple[Formulas, ...] = (
    _same("add", torch.add, bool=torch.logical_or, complex=m.by_parts(torch.add), numbers=True),
    _same("subtract", torch.sub, complex=m.by_parts(torch.sub), numbers=True),
    _same("multiply", torch.mul, bool=torch.logical_and, complex=m.complex_multiply, numbers=True),
    Formulas("divide", ("true_divide",), float=m.true_divide, complex=m.complex_divide),
    _whole(
        "floor_divide",
        m.int_floor_divide,
        float=m.float_floor_divide,
        bits=_unsigned.divide,
        narrow=False,
    ),
    _whole(
        "remainder",
        m.int_remainder,
        "mod",
        float=m.float_remainder,
        bits=_unsigned.remainder,
        narrow=False,
    ),
    _whole("fmod", m.int_fmod, float=torch.fmod, bits=_unsigned.remainder, narrow=False),
    _whole("divmod", m.int_divmod, float=m.float_divmod, bits=m.bits_divmod, narrow=False),
    _whole(
        "power",
        m.int_power,
        "pow",
        float=m.by_numpy("power", m.float_power),
        complex=m.by_numpy("power", m.dense(m.complex_power)),
        bits=m.bits_power,
        unsigned=m.natural_power,
    ),
    _inexact("float_power", torch.pow, complex=m.complex_power),
    _same("negative", torch.neg, complex=m.by_parts(torch.neg)),
    _same("positive", m.clone),
    _same(
        "absolute",
        torch.abs,
        "abs",
        bool=m.clone,
        bits=m.clone,
        complex=m.by_numpy("absolute", torch.abs),
    ),
    _real("fabs", torch.abs),
    _whole(
        "sign",
        torch.sign,
        float=m.sign,
        complex=m.by_numpy("sign", m.complex_sign),
        bits=_bits_sign,
    ),
    Formulas("rint", float=torch.round, complex=m.complex_rint),
    _same("conjugate", m.clone, "conj", complex=m.conjugate),
    _inexact("exp", torch.exp),
    _inexact("exp2", torch.exp2),
    _inexact("expm1", torch.expm1),
    _inexact("log", torch.log),
    _inexact("log2", torch.log2, complex=m.complex_log(2)),
    _inexact("log10", torch.log10, complex=m.complex_log(10)),
    _inexact("log1p", torch.log1p, complex=m.complex_log1p),
    _inexact("sqrt", torch.sqrt),
    _same("square", torch.square, complex=m.by_numpy("square", torch.square)),
    _rounded("cbrt", m.cbrt),
    _whole(
        "reciprocal",
        m.int_reciprocal,
        float=torch.reciprocal,
        complex=m.complex_reciprocal,
        bits=m.bits_reciprocal,
        unsigned=m.bits_reciprocal,
    ),
    _whole("gcd", m.int_gcd, bits=_unsigned.gcd),
    _whole("lcm", m.int_lcm, bits=m.bits_lcm),
    _inexact("sin", torch.sin),
    _inexact("cos", torch.cos),
    _inexact("tan", torch.tan),
    _inexact("arcsin", torch.arcsin, "asin"),
    _inexact("arccos", torch.arccos, "acos", complex=m.complex_arccos),
    _inexact("arctan", torch.arctan, "atan"),
    _rounded("arctan2", torch.atan2, "atan2"),
    _rounded("hypot", torch.hypot),
    _inexact("sinh", torch.sinh),
    _inexact("cosh", torch.cosh),
    _inexact("tanh", torch.tanh),
    _inexact("arcsinh", torch.arcsinh, "asinh"),
    _inexact("arccosh", torch.arccosh, "acosh"),
    _inexact("arctanh", torch.arctanh, "atanh"),
    _real("degrees", m.scaled_as(np.degrees)),
    _real("rad2deg", m.scaled_as(np.rad2deg)),
    _real("radians", m.scaled_as(np.radians)),
    _real("deg2rad", m.scaled_as(np.deg2rad)),
    _whole("bitwise_and", torch.bitwise_and, bool=torch.logical_and),
    _whole("bitwise_or", torch.bitwise_or, bool=torch.logical_or),
    _whole("bitwise_xor", torch.bitwise_xor, bool=torch.logical_xor),
    _whole("invert", torch.bitwise_not, "bitwise_invert", "bitwise_not", bool=torch.logical_not),
    _whole("left_shift", m.shift_left, "bitwise_left_shift"),
    _whole("right_shift", m.shift_right, "bitwise_right_shift", bits=_unsigned.shift_right),
    _whole("bitwise_count", _int_count, bits=_bits_count),
    _compare("greater", torch.gt, _greater, _bits_greater, _swapped(m.mixed_less)),
    _compare(
        "greater_equal",
        torch.ge,
        _swapped(m.complex_less_equal),
        _negated(_unsigned.less),
        _negated(m.mixed_less),
    ),
    _compare("less", torch.lt, m.complex_less, _unsigned.less, m.mixed_less),
    _compare(
        "less_equal",
        torch.le,
        m.complex_less_equal,
        m.bits_less_equal,
        _negated(_swapped(m.mixed_less)),
    ),
    _compare("equal", torch.eq, torch.eq, torch.eq, m.mixed_equal),
    _compare("not_equal", torch.ne, torch.ne, torch.ne, _negated(m.mixed_equal)),
    _same("logical_and", torch.logical_and, bool=torch.logical_and),
    _same("logical_or", torch.logical_or, bool=torch.logical_or),
    _same("logical_xor", torch.logical_xor, bool=torch.logical_xor),
    _same("logical_not", torch.logical_not, bool=torch.logical_not),
    _extremum("maximum", m.maximum, torch.logical_or, m.complex_maximum, m.bits_maximum),
    _extremum("minimum", m.minimum, torch.logical_and, m.complex_minimum, m.bits_minimum),
    _extremum("fmax", torch.fmax, torch.logical_or, m.complex_fmax, m.bits_maximum),
    _extremum("fmin", torch.fmin, torch.logical_and, m.complex_fmin, m.bits_minimum),
    _float_test("isfinite", torch.isfinite, _true),
    _float_test("isinf", torch.isinf, _at_zero_false),
    _float_test("isnan", torch.isnan, _at_zero_false),
    Formulas("isnat"),
    _real("signbit", torch.signbit),
    _real("copysign", torch.copysign),
    _real("nextafter", m.nextafter),
    _real("spacing", m.spacing),
    _real("modf", m.modf, narrow=False),
    Formulas("ldexp", float=m.ldexp),
    _real("frexp", m.frexp, narrow=False),
    _rounding("floor", torch.floor),
    _rounding("ceil", torch.ceil),
    _rounding("trunc", torch.trunc),
    _real("heaviside", m.heaviside),
    _rounded("logaddexp", m.logaddexp, narrow=False),
    _rounded("logaddexp2", m.logaddexp2, narrow=False),
)
BY_NAME: dict[str, Formulas] = {f.name: f for f in ROWS}

_loops: dict[tuple, Formula] = {}


def loop(name: str, ins: tuple[torch.dtype, ...], outs: tuple[torch.dtype, ...]) -> Formula:
    """The formula of a ufunc for operands of these dtypes, which gives tensors of `outs`."""
    key = (name, ins, outs)
    found = _loops.get(key)
    if found is None:
        found = _loops[key] = _make_loop(BY_NAME[name], ins, outs)
    return found


def _make_loop(f: Formulas, ins: tuple, outs: tuple) -> Formula:
    d = ins[0]
    if len(ins) == 2 and torch.uint64 in ins and ins[0] is not ins[1] and f.mixed is not None:
        return f.mixed
    if d is torch.bool:
        return _checked(f, f.bool)
    if d.is_complex:
        return _checked(f, f.complex)
    if d is torch.float16 and not f.narrow:
        return _through_float32(_checked(f, f.float), ins, outs)
    if d.is_floating_point:
        return _checked(f, f.float)
    if d in WIDER:
        formula = f.bits if d is torch.uint64 else (f.unsigned or f.int)
        return _through_signed(_checked(f, formula), outs)
    return _checked(f, f.int)


def _checked(f: Formulas, formula: Formula | None) -> Formula:
    if formula is None:
        raise TypeError(
            f"ufunc '{f.name}' not supported for the input types, and the inputs could not be "
            "safely coerced to any supported types according to the casting rule ''safe''"
        )
    return formula


def _through_float32(formula: Formula, ins: tuple, outs: tuple) -> Formula:
    def run(*operands: torch.Tensor):
        wide = [
            t.to(torch.float32) if d is torch.float16 else t
            for t, d in zip(operands, ins, strict=True)
        ]
        result = formula(*wide)
        if isinstance(result, tuple):
            return tuple(r.to(d) for r, d in zip(result, outs, strict=True))
        return result.to(outs[0])

    return run


def _through_signed(formula: Formula, outs: tuple) -> Formula:
    def run(*operands):
        signed = [_unsigned.to_signed(t) if type(t) is not int else t for t in operands]
        result = formula(*signed)
        if isinstance(result, tuple):
            return tuple(_unsigned.from_signed(r, d) for r, d in zip(result, outs, strict=True))
        return _unsigned.from_signed(result, outs[0])

    return run
