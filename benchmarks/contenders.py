"""The contenders: how each one turns a program into something to call on NumPy arrays."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import tempfile
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import handwritten
from .programs import LOOPS, Program


class Unsupported(Exception):
    """A contender has no way to run a program; the text says why."""


@dataclass(frozen=True)
class Contender:
    """load imports what it needs; build(program, arguments) gives the function that is measured.

    The measured function takes NumPy arrays and gives NumPy arrays. same_dtype: its results must
    have NumPy's dtypes, not only NumPy's values.
    """

    name: str
    what: str
    load: Callable[[], object]
    build: Callable[[Program, tuple], Callable]
    same_dtype: bool = False


def rebound(function: Callable, names: dict[str, Any], wrap: Callable = lambda f: f) -> Callable:
    """A copy of a function, and of its module's helpers, in which globals mean other things."""
    scope = dict(vars(importlib.import_module(function.__module__)))
    code = function.__code__
    for name in code.co_names:
        helper = scope.get(name)
        if isinstance(helper, types.FunctionType) and helper.__module__ == function.__module__:
            scope[name] = wrap(rebound(helper, names, wrap))
    scope.update(names)
    return types.FunctionType(code, scope, function.__name__, function.__defaults__)


def np_compile_contender(name: str) -> Contender:
    """np_compile with a back end, which need not exist: building then raises Unsupported."""
    load = _load_compiler if name in ("inductor", "aot_eager") else _nothing
    return Contender(name, f"np_compile, {name}", load, _np_compile(name), same_dtype=True)


def _nothing() -> None:
    """NumPy and np_compile are loaded in any case."""


def _numpy(program: Program, arguments: tuple) -> Callable:
    return program.function


def _load_compiler() -> None:
    import torch._dynamo
    import torch._inductor.compile_fx  # noqa: F401


def _by_autograd(loss: Callable, wrt: tuple[int, ...]) -> Callable:
    """A function of arrays that gives the gradients of a loss of tensors."""
    import torch

    def gradient(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        tensors = [torch.from_numpy(a) for a in arrays]
        inputs = [tensors[i].requires_grad_() for i in wrt]
        return tuple(g.numpy() for g in torch.autograd.grad(loss(*tensors), inputs))

    return gradient


def _np_compile(backend: str) -> Callable[[Program, tuple], Callable]:
    def build(program: Program, arguments: tuple) -> Callable:
        import np_compile
        from np_compile.backends import lookup

        try:
            lookup(backend)
        except np_compile.errors.UnknownBackend as e:
            raise Unsupported(f"np_compile has no back end {backend!r}") from e
        if program.loss is not None:
            wrapped = np_compile.wrap_numpy(program.loss)
            return _by_autograd(np_compile.compile(wrapped, backend=backend), program.wrt)
        return np_compile.compile(program.function, backend=backend)

    return build


def _on_device(program: Program, arguments: tuple) -> Callable:
    import torch

    import np_compile

    _find_gpu()
    if program.loss is not None:
        raise Unsupported("a gradient is one of tensors")
    compiled = np_compile.compile(program.function, backend="native")

    def call(*arrays: Any) -> Any:
        with torch.device("cuda"):
            return compiled(*arrays)

    return call


def _on_tensors(program: Program, arguments: tuple) -> Callable:
    """Tensors on a GPU, made of the arrays in each call; what is written goes back into them."""
    import torch

    import np_compile

    _find_gpu()
    if any(isinstance(a, np.random.Generator) for a in arguments):
        raise Unsupported("takes a Generator, whose numbers are NumPy's")
    function = program.loss or program.function
    compiled = np_compile.compile(np_compile.wrap_numpy(function), backend="native")

    def to_numpy(x: Any) -> Any:
        if isinstance(x, (tuple, list)):
            return type(x)(map(to_numpy, x))
        return x.detach().cpu().numpy() if isinstance(x, torch.Tensor) else x

    def call(*arrays: Any) -> Any:
        tensors = [torch.from_numpy(a).cuda() if isinstance(a, np.ndarray) else a for a in arrays]
        if program.loss is not None:
            inputs = [tensors[i].requires_grad_() for i in program.wrt]
            return to_numpy(torch.autograd.grad(compiled(*tensors), inputs))
        returned = compiled(*tensors)
        for i in program.in_place:
            np.copyto(arrays[i], to_numpy(tensors[i]))
        return to_numpy(returned)

    return call


def _find_gpu() -> None:
    """Unsupported without a CUDA device."""
    import torch

    if not torch.cuda.is_available():
        raise Unsupported("there is no CUDA device")


def _torch(program: Program, arguments: tuple) -> Callable:
    import torch

    if program.loss is not None:
        wrapped = torch.compiler.wrap_numpy(program.loss)
        return _by_autograd(torch.compile(wrapped, dynamic=False), program.wrt)
    return torch.compile(program.function, dynamic=False)


def _load_numba() -> None:
    import numba  # noqa: F401


def _njit(program: Program, arguments: tuple) -> Callable:
    import numba

    warnings.simplefilter("ignore", numba.NumbaPerformanceWarning)
    compiled = numba.njit(fastmath=False)
    return compiled(rebound(program.function, {}, compiled))


def _numba(program: Program, arguments: tuple) -> Callable:
    import numba

    warnings.simplefilter("ignore", numba.NumbaPerformanceWarning)
    form = program.forms.get("numba", program.function)
    compiled = numba.njit(parallel=True, fastmath=False)
    helper = numba.njit(fastmath=False)
    return compiled(rebound(form, {"prange": numba.prange}, helper))


def _load_jax() -> None:
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_platforms", "cpu")


def _jax(program: Program, arguments: tuple) -> Callable:
    import jax
    import jax.numpy as jnp

    if program.loss is not None:
        form = jax.grad(rebound(program.loss, {"np": jnp}), argnums=program.wrt)
    elif program.section == LOOPS and "jax" not in program.forms:
        raise Unsupported("no form that one would write for JAX; it would unroll the loops")
    else:
        form = program.forms.get("jax") or rebound(program.function, {"np": jnp})
    counts = tuple(i for i, a in enumerate(arguments) if isinstance(a, int))
    jitted = jax.jit(form, static_argnums=counts)

    def call(*arrays: Any) -> Any:
        return jax.tree.map(np.asarray, jax.block_until_ready(jitted(*arrays)))

    return call


def exported(value: Any) -> str:
    """The type of an argument in the words of Pythran's export lines."""
    if isinstance(value, np.ndarray):
        order = " order(C)" if value.ndim == 2 else ""  # else there is a transposed variant too
        return f"{value.dtype}[{','.join(':' * value.ndim)}]{order}"
    if isinstance(value, np.generic):
        return str(value.dtype)
    if type(value) in (bool, int, float, complex):
        return type(value).__name__
    raise Unsupported(f"takes a {type(value).__name__}, which Pythran has no type for")


def extracted(function: Callable) -> str:
    """The source of a function without its decorators, after all of its module that it uses."""
    module = ast.parse(inspect.getsource(inspect.getmodule(function)))  # type: ignore[arg-type]
    defined: dict[str, ast.stmt] = {}
    for statement in module.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            defined[statement.name] = statement
        elif isinstance(statement, ast.Assign):
            defined |= {t.id: statement for t in statement.targets if isinstance(t, ast.Name)}
    wanted, waiting = set(), [function.__name__]
    while waiting:
        name = waiting.pop()
        if name not in wanted and name in defined:
            wanted.add(name)
            statement = defined[name]
            if isinstance(statement, ast.FunctionDef):
                statement.decorator_list.clear()
            waiting += [n.id for n in ast.walk(statement) if isinstance(n, ast.Name)]
    parts = [ast.unparse(statement) for name, statement in defined.items() if name in wanted]
    return "\n\n".join(["import numpy as np", *parts])


def _load_pythran() -> None:
    import logging

    import pythran  # noqa: F401

    logging.getLogger("pythran").setLevel(logging.CRITICAL)


def _pythran(program: Program, arguments: tuple) -> Callable:
    import pythran
    from pythran.errors import PythranCompileError, PythranSyntaxError

    if program.section != LOOPS:
        raise Unsupported("measured on loops only")
    name = program.function.__name__
    line = f"# pythran export {name}({', '.join(map(exported, arguments))})"
    with tempfile.TemporaryDirectory() as folder:
        try:
            built = pythran.compile_pythrancode(
                f"{name}_pythran",
                f"{line}\n{extracted(program.function)}\n",
                output_file=f"{folder}/{name}_pythran.so",
                config=["compiler.blas=scipy-openblas"],  # the system's headers are rarely there
                extra_compile_args=["-O3", "-march=native", "-DUSE_XSIMD", "-fopenmp", "-w"],
                extra_link_args=["-fopenmp"],
            )
        except (PythranSyntaxError, PythranCompileError) as e:
            raise Unsupported(f"does not compile: {e}") from e
        spec = importlib.util.spec_from_file_location(f"{name}_pythran", built)
        module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
        spec.loader.exec_module(module)  # type: ignore[union-attr]
    return getattr(module, name)


def _handwritten(program: Program, arguments: tuple) -> Callable:
    maker = handwritten.MAKERS.get(program.name)
    if maker is None:
        raise Unsupported("not written by hand")
    return maker()


CONTENDERS: dict[str, Contender] = {
    c.name: c
    for c in (
        Contender("numpy", "NumPy", _nothing, _numpy),
        *map(np_compile_contender, ("native", "inductor", "aot_eager", "eager")),
        Contender("device", "np_compile on a GPU, arrays", _nothing, _on_device, True),
        Contender("tensors", "np_compile on a GPU, tensors", _nothing, _on_tensors, True),
        Contender("torch", "torch.compile on the NumPy function", _load_compiler, _torch),
        Contender("njit", "Numba, the NumPy function", _load_numba, _njit),
        Contender("numba", "Numba, parallel", _load_numba, _numba),
        Contender("pythran", "Pythran, the NumPy function", _load_pythran, _pythran),
        Contender("jax", "JAX on the CPU, float64 enabled", _load_jax, _jax),
        Contender("c", "C written by hand, gcc and OpenMP", _nothing, _handwritten),
    )
}
# The contenders of a section, where none are named. torch.compile unrolls loops, for minutes.
DEFAULT = {
    "arrays": ("numpy", "native", "inductor", "torch", "numba", "jax", "c"),
    LOOPS: ("numpy", "native", "njit", "numba", "pythran", "jax", "c"),
}
# The first of these that ran is what the others are compared with.
REFERENCES = ("native", "inductor", "aot_eager", "eager", "numpy")
