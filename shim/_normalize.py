"""From a plain function on tensors to a NumPy function: the signature is compiled, once, here.

An implementation is annotated with what each parameter is; the annotation decides how an argument
is converted, and an annotation that nothing handles is an error at definition:

    Array         array-like -> torch.Tensor (Python numbers get NumPy's default dtype)
    View          array-like -> shim ndarray, to return views of (flipped axes visible)
    Arrays        sequence of array-likes -> list of torch.Tensor
    Views         sequence of array-likes -> list of shim ndarray
    Operand       array-like -> torch.Tensor, or a Python number / Weak as it is (weak promotion)
    Operands      sequence of operands -> list
    DType         dtype-like -> torch.dtype
    Raw           data in any form, passed as it is: the implementation converts it itself
    Out           `out=`: the result is stored there, cast same_kind, and `out` itself returned
    Into          as Out, of a sum or a product: its dtype has a say in the one that is computed in
    Static        any Python value, passed as it is; part of the call's identity
    int, bool, str, float  likewise Static (int through operator.index)

`X | None` passes None through. The default `_NoValue` of NumPy's signatures is `NoValue` here.
Implementations return tensors, shim arrays, tuples/lists/namedtuples of them, or Python objects.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Collection, Sequence
from types import FunctionType
from typing import Any, TypeAlias

import numpy as np
import torch

from ._dtypes import NotSupported, Weak, torch_dtype
from ._ndarray import as_array, as_operand, as_tensor, fresh, ndarray, store
from ._reduce import reduce_dtype
from ._table import Deferred, Kind, Row, add_row
from ._unsigned import cast

Array: TypeAlias = torch.Tensor
Places: TypeAlias = torch.Tensor
View: TypeAlias = ndarray
Arrays: TypeAlias = list[torch.Tensor]
Views: TypeAlias = list[ndarray]
Operand: TypeAlias = "torch.Tensor | Weak | bool | int | float | complex"
Operands: TypeAlias = list
DType: TypeAlias = "torch.dtype | None"
Out: TypeAlias = "ndarray | None"
Into: TypeAlias = "ndarray | None"
Static: TypeAlias = Any
Raw: TypeAlias = Any
NoValue = np._NoValue


def _sequence(convert: Callable) -> Callable:
    def convert_all(values: Any) -> list:
        if isinstance(values, (ndarray, np.ndarray)) or not isinstance(values, Sequence):
            values = list(as_array(values)) if not isinstance(values, Sequence) else values
        return [convert(v) for v in values]

    return convert_all


def _places(value: Any) -> torch.Tensor:
    """Indices. OverflowError for Python integers that int64 cannot hold."""
    t = as_tensor(value)
    if t.dtype is torch.uint64 and not hasattr(value, "dtype"):
        np.asarray(value, np.int64)
    return t


# annotation -> (converter or None, takes data)
def _index(value: Any) -> Any:
    """An integer; one that is a symbol as it is."""
    if isinstance(value, torch.SymInt):
        return value
    n = operator.index(value)
    if not -(2**63) <= n < 2**63:
        raise NotSupported(f"the integer {n}, which int64 cannot hold")
    return n


_CONVERTERS: dict[str, tuple[Callable | None, bool]] = {
    "Array": (as_tensor, True),
    "Places": (_places, True),
    "View": (as_array, True),
    "Arrays": (_sequence(as_tensor), True),
    "Views": (_sequence(as_array), True),
    "Operand": (as_operand, True),
    "Operands": (_sequence(as_operand), True),
    "DType": (torch_dtype, False),
    "Raw": (None, True),
    "Out": (None, True),
    "Into": (None, True),
    "Static": (None, False),
    "int": (_index, False),
    "bool": (None, False),
    "str": (None, False),
    "float": (None, False),
}


def finish(result: Any, scalar: bool) -> Any:
    """Wrap what an implementation returned; 0-D tensors become NumPy scalars where `scalar`."""
    if isinstance(result, torch.Tensor):
        return ndarray(result, (), scalar and result.dim() == 0)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*(finish(r, scalar) for r in result))
    if isinstance(result, (tuple, list)):
        return type(result)(finish(r, scalar) for r in result)
    return result


def widened(t: torch.Tensor, out: Any) -> torch.Tensor:
    """What is summed into `out`, in the floats that both are promoted to."""
    if type(out) is not ndarray or out._t.dtype is t.dtype:
        return t
    work = reduce_dtype("add", t.dtype, None, out._t.dtype)
    return cast(t, work) if work.is_floating_point or work.is_complex else t


def _theirs(name: str) -> dict[str, inspect.Parameter] | None:
    """The parameters of NumPy's function; None where they are not told, or take anything."""
    found: Any = np
    try:
        for part in name.split("."):
            found = getattr(found, part)
        parameters = inspect.signature(found).parameters
    except (AttributeError, TypeError, ValueError):
        return None
    kinds = {p.kind for p in parameters.values()}
    wild = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    return None if kinds & wild else dict(parameters)


def _public_signature(
    implementation: Callable, name: str, without: Collection[str]
) -> inspect.Signature:
    """The implementation's signature less `without`, less the keyword-only parameters and the
    defaults that the NumPy at hand lacks."""
    signature = inspect.signature(implementation)
    kept = [p for n, p in signature.parameters.items() if n not in without]
    theirs = None if name.startswith("ndarray.") else _theirs(name)
    if theirs is not None:
        kept = [p for p in kept if p.name in theirs or p.kind is not p.KEYWORD_ONLY]
        kept = [
            p.replace(default=p.empty) if p.name in theirs and _required(theirs[p.name]) else p
            for p in kept
        ]
    return signature.replace(parameters=kept)


def _bare(signature: inspect.Signature) -> inspect.Signature:
    """As users see it: without the annotations, which are of use here alone."""
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return inspect.Signature(parameters)


def _required(p: inspect.Parameter) -> bool:
    return p.default is p.empty


def _annotations(implementation: Callable) -> dict[str, str]:
    """What each parameter is. TypeError for an annotation that nothing handles."""
    code = implementation.__code__
    stars = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + stars]
    found = {n: str(implementation.__annotations__.get(n)) for n in names}
    for name, annotation in found.items():
        if _core(annotation) not in _CONVERTERS:
            label = implementation.__name__
            raise TypeError(f"{label}: nothing handles parameter {name!r}: {annotation}")
    return found


def _core(annotation: str) -> str:
    return annotation.removesuffix(" | None")


def _first_call(*args: Any, **kwargs: Any) -> Any:
    """The code of a public function until it is called."""
    return _compiled()(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821


def _define(
    implementation: Callable, row_name: str, scalar: bool, without: Collection[str]
) -> tuple[Callable, frozenset[str], inspect.Signature]:
    """The public function of an implementation, its data parameters, its signature.

    Annotations are checked now; the code is generated by the first call, which most functions
    of the table never see.
    """
    annotations = _annotations(implementation)
    signature = Deferred(lambda: _public_signature(implementation, row_name, without))
    scope: dict[str, Any] = {
        "__name__": __name__,
        "_impl": implementation,
        "_finish": finish,
        "_store": store,
        "_widened": widened,
        "_scalar": scalar,
        "_Tensor": torch.Tensor,
        "_ndarray": ndarray,
        "_fresh": fresh,
        "_NoValue": NoValue,
    }
    name = implementation.__name__
    public = FunctionType(_first_call.__code__, scope, name)

    def compiled() -> Callable:
        source = _source(name, signature, scope, scalar)
        exec(compile(source, f"<np_compile.shim {name}>", "exec"), scope)
        made = scope[name]
        public.__defaults__, public.__kwdefaults__ = made.__defaults__, made.__kwdefaults__
        public.__code__ = made.__code__  # last: another thread may call at any time
        return public

    scope["_compiled"] = compiled
    public.__qualname__ = name
    public.__doc__ = implementation.__doc__
    public.__module__ = implementation.__module__
    public.__signature__ = Deferred(lambda: _bare(signature))  # type: ignore[attr-defined]
    public.__wrapped__ = implementation  # type: ignore[attr-defined]
    takes_data = (n for n, a in annotations.items() if _CONVERTERS[_core(a)][1])
    return public, frozenset(takes_data).difference(without), signature


def _source(name: str, signature: inspect.Signature, scope: dict[str, Any], scalar: bool) -> str:
    """The text of a public function; what it refers to is put into `scope`."""
    head: list[str] = []
    body: list[str] = []
    call: list[str] = []
    out: str | None = None
    widens = slash = star = False
    for p in signature.parameters.values():
        annotation = str(p.annotation)
        optional = annotation.endswith(" | None") or annotation in ("DType", "Out", "Into")
        core = _core(annotation)
        convert = _CONVERTERS[core][0]
        if slash and p.kind is not p.POSITIONAL_ONLY:
            head.append("/")
            slash = False
        slash = slash or p.kind is p.POSITIONAL_ONLY
        text = p.name
        if p.kind is p.VAR_POSITIONAL:
            text, star = "*" + text, True
        elif p.kind is p.VAR_KEYWORD:
            text = "**" + text
        elif p.kind is p.KEYWORD_ONLY and not star:
            head.append("*")
            star = True
        if p.default is not p.empty:
            scope[f"_d_{p.name}"] = p.default
            text += f"=_d_{p.name}"
        head.append(text)
        if core in ("Out", "Into"):
            out, widens = p.name, core == "Into"
            continue
        if convert is not None:
            scope[f"_c_{p.name}"] = convert
            if p.kind is p.VAR_POSITIONAL:
                body.append(f"{p.name} = [_c_{p.name}(v) for v in {p.name}]")
            elif optional or p.default is NoValue:
                guard = f"{p.name} is not None"
                guard += f" and {p.name} is not _NoValue" if p.default is NoValue else ""
                body.append(f"if {guard}: {p.name} = _c_{p.name}({p.name})")
            else:
                body.append(f"{p.name} = _c_{p.name}({p.name})")
        if p.kind is p.VAR_POSITIONAL:
            call.append("*" + p.name)
        elif p.kind is p.VAR_KEYWORD:
            call.append("**" + p.name)
        elif p.kind is p.KEYWORD_ONLY or out is not None:  # `out` leaves a gap among positions
            call.append(f"{p.name}={p.name}")
        else:
            call.append(p.name)
    if slash:
        head.append("/")
    if widens:
        first, asked = next(iter(signature.parameters)), "dtype" in signature.parameters
        guard = f"{out} is not None" + (" and dtype is None" if asked else "")
        body.append(f"if {guard}: {first} = _widened({first}, {out})")
    body.append(f"r = _impl({', '.join(call)})")
    if out is not None:
        body.append(f"if {out} is not None: return _store({out}, r)")
    if scalar:
        body.append("if type(r) is _Tensor: return _fresh(r, r.dim() == 0)")
    body.append("return r if type(r) is _ndarray else _finish(r, _scalar)")
    return f"def {name}({', '.join(head)}):\n" + "".join(f"    {line}\n" for line in body)


def function(
    name: str | None = None,
    *aliases: str,
    kind: Kind = Kind.ARRAY,
    scalar: bool = True,
    method: bool = False,
    without: Collection[str] = (),
) -> Callable[[Callable], Callable]:
    """Decorator: enter an implementation into the table as a NumPy function.

    name: NumPy's dotted name, by default the implementation's. aliases: NumPy's other names.
    scalar: whether a 0-D result is a NumPy scalar (most functions) or a 0-D array (`reshape`).
    method: also a method of ndarray, under "ndarray.<name>".
    without: keyword parameters that a method lacks, as the NumPy at hand lacks them; those of a
        function are found by themselves.
    Returns the public function.
    """

    def enter(implementation: Callable) -> Callable:
        row_name = name or implementation.__name__
        missing = () if method else without
        public, data, signature = _define(implementation, row_name, scalar, missing)
        add_row(Row(row_name, public, kind, data, signature), *aliases)
        if method:
            method_name = f"ndarray.{row_name.rpartition('.')[2]}"
            own = public, data, signature
            if without:
                own = _define(implementation, method_name, scalar, without)
            add_row(Row(method_name, own[0], kind, *own[1:]))
        return public

    return enter
