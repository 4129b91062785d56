"""Whether a function does the same each time it is called on arrays of the same kind.

It does if all that it can reach is its arguments, constants, and functions that only compute:
NumPy's that are recorded, a few of Python's, and Python functions for which the same holds, also
those of classes, of which it may make objects. Then a second call records what the first recorded,
and Python need not run again; see `keeper`. The proof looks at the bytecode: an instruction or a
name that is not known to be harmless ends it.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from np_compile import shim
from np_compile.capture.names.entrances import own_code
from np_compile.capture.names.numpy_names import row_of_function
from np_compile.capture.names.substitute import MISSING, contents

from .classes import HEAP, LIBRARIES, is_simple, members
from .guards import Cell, Function, Name, Reach, Refused, text_of

# Instructions that change nothing but the frame's own variables and stack.
_HARMLESS = frozenset(
    [
        "RESUME", "NOP", "CACHE", "EXTENDED_ARG", "PRECALL", "PUSH_NULL", "POP_TOP", "SWAP",
        "COPY", "KW_NAMES", "NOT_TAKEN", "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_AND_CLEAR",
        "LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_BORROW_LOAD_FAST_BORROW",
        "STORE_FAST", "STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST", "DELETE_FAST",
        "LOAD_CONST", "LOAD_SMALL_INT", "RETURN_CONST", "RETURN_VALUE", "LOAD_CLOSURE",
        "MAKE_CELL", "COPY_FREE_VARS", "LOAD_METHOD", "LOAD_ATTR", "LOAD_GLOBAL", "LOAD_DEREF",
        "STORE_DEREF", "MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE", "CALL", "CALL_KW",
        "CALL_FUNCTION_EX", "DICT_MERGE", "DICT_UPDATE", "LIST_TO_TUPLE", "CALL_INTRINSIC_1",
        "BINARY_OP", "BINARY_SUBSCR", "BINARY_SLICE", "STORE_SLICE", "STORE_SUBSCR",
        "UNARY_NEGATIVE", "UNARY_POSITIVE", "UNARY_NOT", "UNARY_INVERT", "COMPARE_OP", "IS_OP",
        "CONTAINS_OP", "TO_BOOL", "BUILD_TUPLE", "BUILD_LIST", "BUILD_SLICE", "BUILD_MAP",
        "BUILD_CONST_KEY_MAP", "BUILD_STRING", "FORMAT_VALUE", "FORMAT_SIMPLE", "LIST_EXTEND",
        "LIST_APPEND", "MAP_ADD", "UNPACK_SEQUENCE", "UNPACK_EX", "GET_ITER", "GET_LEN",
        "FOR_ITER", "END_FOR", "POP_ITER", "JUMP_FORWARD", "JUMP_BACKWARD",
        "JUMP_BACKWARD_NO_INTERRUPT", "POP_JUMP_IF_FALSE", "POP_JUMP_IF_TRUE",
        "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE", "POP_JUMP_FORWARD_IF_FALSE",
        "POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_FORWARD_IF_NOT_NONE",
        "POP_JUMP_BACKWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_NONE",
        "POP_JUMP_BACKWARD_IF_NOT_NONE", "JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP",
        "RAISE_VARARGS", "LOAD_ASSERTION_ERROR", "RERAISE", "LOAD_COMMON_CONSTANT",
        # `with`, of what `_reached` lets through, and how it goes on with exceptions
        "BEFORE_WITH", "LOAD_SPECIAL", "WITH_EXCEPT_START", "POP_EXCEPT",
        # A generator expression, which the functions that it is given to run to its end
        "RETURN_GENERATOR", "YIELD_VALUE",
        # Classes, and attributes of the objects that are made of them: of all else that can be
        # reached none can be set, but for those of functions and classes, which guards compare.
        "LOAD_BUILD_CLASS", "LOAD_NAME", "STORE_NAME", "LOAD_CLASSDEREF", "LOAD_LOCALS",
        "LOAD_FROM_DICT_OR_DEREF", "LOAD_FROM_DICT_OR_GLOBALS", "STORE_ATTR", "LOAD_SUPER_ATTR",
    ]
)  # fmt: skip

_BUILTINS = (
    abs, all, any, bool, complex, dict, divmod, enumerate, float, int, isinstance, len, list, max,
    min, pow, range, reversed, round, slice, sorted, sum, tuple, type, zip, property, classmethod,
    staticmethod, super,
)  # fmt: skip

# Attributes that say or change more than the values, shape, strides and dtype of what they are of.
_REACHING = frozenset(
    [
        "base", "ctypes", "data", "dump", "dumps", "flags", "metadata", "resize", "setflags",
        "tofile",
    ]
)  # fmt: skip

# Those of arrays that change them when they are set.
_CHANGING = frozenset(["data", "dtype", "flat", "imag", "real", "shape", "strides"])

# Attributes with two underscores that say no more than `type(x)`, or begin an object.
_PLAIN_NAMES = frozenset(["__class__", "__init__", "__module__", "__qualname__", "__classcell__"])

# Functions of NumPy that look at where arrays lie.
_LOOKING = (np.may_share_memory, np.shares_memory)

# What gives arrays of ranges, or indices, by brackets.
_GRIDS = (np.mgrid, np.ogrid, np.s_, np.index_exp, np.r_, np.c_)

# Types of values that cannot change. Subclasses may: they have attributes, and operators of their
# own; so may records and what object arrays hold.
_VALUES = {int, float, complex, str, bool, type(None), type(NotImplemented)} | {
    np.dtype(char).type for char in np.typecodes["All"] if char not in "VO"
}


class _Unknown(Exception):
    """An instruction that is not known to be harmless."""


def reach(function: Any) -> Reach:
    """What a function reads beside its arguments.

    Errors: Refused, if it may do anything else; with the instruction or name.
    """
    found = Reach()
    if not isinstance(function, types.FunctionType):
        raise Refused(f"a {type(function).__name__} is no Python function")
    try:
        _function(function, found)
        members(found, _member)
    except RecursionError:
        raise Refused("its functions nest too deeply") from None
    return found


def _function(f: types.FunctionType, found: Reach) -> None:
    if any(type(known) is Function and known.function is f for known in found.guards):
        return
    name, named = f.__qualname__, f.__kwdefaults__ or {}
    if f.__dict__:
        raise Refused(f"the function {name} has attributes")
    if not all(map(_is_value, (*(f.__defaults__ or ()), *named.values()))):
        raise Refused(f"a default of {name} can change")
    if type(f.__globals__) is not dict:
        raise Refused(f"the globals of {name} are no plain dict")
    code = own_code(f)
    found.guards.append(Function(f, code, f.__defaults__, f.__kwdefaults__))
    for key, value in named.items():
        found.guards.append(Name(f"default {key} of {name}", named, key, value))
    cells: dict[str, types.CellType | None] = dict(
        zip(code.co_freevars, f.__closure__ or (), strict=True)
    )
    scopes = {"global": f.__globals__, "builtin": f.__builtins__}  # type: ignore[attr-defined]
    _code(code, scopes, cells, found)


def _code(
    code: types.CodeType, scopes: dict[str, dict], cells: dict[str, types.CellType | None],
    found: Reach,
) -> None:  # fmt: skip
    """One code object. cells: its free variables; None for those of a function around it."""
    if code.co_flags & (0x20 | 0x80 | 0x200) and code.co_name != "<genexpr>":
        raise Refused(f"{code.co_qualname} is a generator or coroutine")
    steps = iter(_instructions(code))
    for step in steps:
        try:
            if step.opname in _OF_CLASSES:
                _in_class(step, code, scopes, cells, steps, found)
            else:
                _step(step, scopes, cells, steps, found)
        except _Unknown as e:
            line = step.positions.lineno if step.positions else None
            raise Refused(f"{e} (line {line}, in {code.co_qualname})") from None
    own: dict[str, types.CellType | None] = dict.fromkeys(code.co_cellvars)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _code(constant, scopes, {**cells, **own}, found)


def _step(
    step: dis.Instruction, scopes: dict[str, dict], cells: dict[str, types.CellType | None],
    steps: Iterator[dis.Instruction], found: Reach,
) -> None:  # fmt: skip
    """One instruction, with those after it that look up attributes of a module."""
    name = step.opname
    if name == "PUSH_EXC_INFO":  # of a `with`, or of the handlers of a `try`
        name = next(steps).opname
        if name != "WITH_EXCEPT_START":
            raise _Unknown("a handler of exceptions")
    if name.startswith("FORMAT_") or (name == "BINARY_OP" and "%" in step.argrepr):
        found.texts = True
    if name not in _HARMLESS:
        raise _Unknown(f"the instruction {name}")
    if name == "LOAD_GLOBAL":
        _global(step.argval, scopes, steps, found)
    elif name == "LOAD_DEREF" and (cell := cells.get(step.argval)) is not None:
        value = contents(cell)
        found.guards.append(Cell(step.argval, cell, value))
        _reached(step.argval, value, steps, found)
    elif name == "STORE_DEREF" and step.argval in cells:
        raise _Unknown(f"it sets {step.argval}, of the function around it")
    elif name in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"):
        if step.argval in _REACHING or (
            step.argval.startswith("__") and step.argval not in _PLAIN_NAMES
        ):
            raise _Unknown(f"the attribute {step.argval}")
        found.attributes.add(step.argval)
        found.texts = found.texts or step.argval == "format"
    elif name == "STORE_ATTR":
        if step.argval in _CHANGING or step.argval.startswith("__"):
            raise _Unknown(f"it sets the attribute {step.argval}")
        found.attributes.add(step.argval)


# What reads a name of a class that is being made, else one around it.
_OF_CLASSES = (
    "LOAD_NAME", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF", "LOAD_FROM_DICT_OR_GLOBALS",
)  # fmt: skip


def _in_class(
    step: dis.Instruction, code: types.CodeType, scopes: dict[str, dict],
    cells: dict[str, types.CellType | None], steps: Iterator[dis.Instruction], found: Reach,
) -> None:  # fmt: skip
    """A look-up of a name in the code of a class."""
    name = step.argval
    if cells.get(name) is not None:
        _step(step._replace(opname="LOAD_DEREF"), scopes, cells, steps, found)
    elif name not in cells and not (
        name in _set_in(code) and all(name not in scope for scope in scopes.values())
    ):
        _global(name, scopes, steps, found)


@cache
def _set_in(code: types.CodeType) -> frozenset[str]:
    """The names that the code of a class sets."""
    return frozenset([s.argval for s in _instructions(code) if s.opname == "STORE_NAME"])


def _member(name: str, value: Any, found: Reach) -> None:
    """An attribute of a class. Errors: Refused."""
    if isinstance(value, types.FunctionType):
        _function(value, found)
    elif isinstance(value, type) and is_simple(value):
        found.classes.append(value)
    elif not _harmless(value):
        raise Refused(f"the attribute {name}, a {type(value).__name__}")


@cache
def _instructions(code: types.CodeType) -> list[dis.Instruction]:
    return list(dis.get_instructions(code))


def _global(
    name: str, scopes: dict[str, dict], steps: Iterator[dis.Instruction], found: Reach
) -> None:
    for what, scope in scopes.items():
        value = scope.get(name, MISSING)
        found.guards.append(Name(f"{what} {name}", scope, name, value))
        if value is not MISSING:
            _reached(name, value, steps, found)
            return
    raise _Unknown(f"the name {name}, which leads nowhere")


def _reached(name: str, value: Any, steps: Iterator[dis.Instruction], found: Reach) -> None:
    """A value that a name leads to, with the attributes that are looked up on a module."""
    while isinstance(value, types.ModuleType):
        library = value.__name__.partition(".")[0]
        if type(value) is not types.ModuleType or library not in ("numpy", "math"):
            raise _Unknown(f"the name {name}, {text_of(value)}")
        step = next((s for s in steps if s.opname not in ("CACHE", "EXTENDED_ARG")), None)
        if step is None or step.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
            raise _Unknown(f"{text_of(value)} as a value")
        scope, name = vars(value), f"{value.__name__}.{step.argval}"
        found.guards.append(Name(name, scope, step.argval, scope.get(step.argval, MISSING)))
        value = getattr(value, step.argval, MISSING)
    found.texts = found.texts or value is str
    if _harmless(value) or (value is np.errstate and _ignores(steps)):
        return
    if isinstance(value, type) and is_simple(value):
        found.classes.append(value)
        return
    if isinstance(value, types.FunctionType):
        library = (value.__module__ or "").partition(".")[0]
        if library not in LIBRARIES:
            _function(value, found)
            return
    raise _Unknown(f"the name {name}, a {type(value).__name__}")


def _ignores(steps: Iterator[dis.Instruction]) -> bool:
    """Whether np.errstate is called to ignore errors, of which kernels say nothing, in a `with`."""
    for step in steps:
        name, value = step.opname, step.argval
        if name == "LOAD_CONST":
            # Newer versions of Python have the names of the arguments as a constant, too.
            if value != "ignore" and type(value) is not tuple:
                return False
        elif name not in ("KW_NAMES", "PUSH_NULL", "PRECALL", "CALL", "CALL_KW"):
            return name in ("BEFORE_WITH", "COPY")
    return False


def _harmless(value: Any) -> bool:
    """Whether a value cannot change, or is a function or type that only computes."""
    if _is_value(value) or any(value is known for known in (*_BUILTINS, *_GRIDS)):
        return True
    if isinstance(value, type) and _is_plain_type(value):
        return True
    if isinstance(value, types.BuiltinFunctionType) and value.__module__ == "math":
        return True
    row = row_of_function(value)
    if row is None or row not in shim.TABLE or any(value is f for f in _LOOKING):
        return False
    return shim.TABLE[row].kind is not shim.Kind.IMPURE


def _is_value(value: Any) -> bool:
    """Whether a value cannot change."""
    if type(value) is tuple:
        return all(_is_value(v) for v in value)
    if isinstance(value, np.dtype):  # names of fields can be set
        return value.names is None and value.metadata is None and value.subdtype is None
    return type(value) in _VALUES


def _is_plain_type(value: type) -> bool:
    return not value.__flags__ & HEAP and (
        issubclass(value, (np.generic, np.ndarray, *_PLAIN_TYPES))
    )


_PLAIN_TYPES = (int, float, complex, bool, str, tuple, list, Exception)
