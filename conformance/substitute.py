"""A test module of NumPy's, loaded with the shim in the place of `numpy`.

The module's own `__import__` leads to it; NumPy itself stays what it is for everybody else.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import np_compile.shim as shim
import numpy as np


class MissingName(AttributeError):
    """A test used a name that the shim lacks."""


class Touched:
    """What the running test has used: names that the shim lacks, names that are NumPy's own."""

    def __init__(self) -> None:
        self.missing: set[str] = set()
        self.private: set[str] = set()
        self.running = False  # a test, not the loading of a module

    def start(self) -> None:
        self.missing, self.private, self.running = set(), set(), True


TOUCHED = Touched()


class Missing:
    """Stands for a name that the shim lacks, so that a module which uses it still loads."""

    def __init__(self, path: str):
        self.__dict__["_path"] = path
        self.__dict__["__name__"] = path

    def _use(self, *args: Any, **kwargs: Any) -> Any:
        path = self.__dict__["_path"]
        if not TOUCHED.running:
            return self
        TOUCHED.missing.add(path)
        raise MissingName(f"{path} is not in the shim")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{self._path}.{name}") if not TOUCHED.running else self._use()

    def __mro_entries__(self, bases: Any) -> tuple:
        return ()

    def __repr__(self) -> str:
        return f"<missing {self._path}>"

    __call__ = __getitem__ = __add__ = __radd__ = __mul__ = __rmul__ = __sub__ = __rsub__ = _use
    __neg__ = __truediv__ = __pow__ = __lt__ = __gt__ = __array__ = _use

    def __iter__(self) -> Any:
        self._use()
        return iter(())


def _public_paths() -> dict[int, tuple[str, str]]:
    """Where public functions and classes of NumPy are found: module and name, by identity."""
    found: dict[int, tuple[str, str]] = {}
    for module in ("numpy", "numpy.linalg", "numpy.fft", "numpy.random", "numpy.testing",
                   "numpy.exceptions", "numpy.dtypes", "numpy.char", "numpy.strings", "numpy.rec",
                   "numpy.lib.stride_tricks", "numpy.lib.array_utils", "numpy.lib.introspect",
                   "numpy.lib.scimath", "numpy.lib.mixins", "numpy.lib.npyio", "numpy.lib.format",
                   "numpy.polynomial", "numpy.polynomial.polynomial", "numpy.lib",
                   "numpy.polynomial.chebyshev", "numpy.polynomial.legendre",
                   "numpy.polynomial.hermite", "numpy.polynomial.hermite_e",
                   "numpy.polynomial.laguerre", "numpy.polynomial.polyutils"):  # fmt: skip
        real = importlib.import_module(module)
        for name in dir(real):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of names that are to go
                value = getattr(real, name)
            if not name.startswith("_") and callable(value):
                found.setdefault(id(value), (module, name))
    return found


_PUBLIC = _public_paths()
_MODULES = frozenset(module for module, _ in _PUBLIC.values())
_HARMLESS = ("numpy.testing._private", "numpy.version")  # helpers of tests that touch no array


def _shim_module(name: str) -> Any:
    """The shim's module for a public module of NumPy's; None where it has none."""
    found: Any = shim
    for part in name.split(".")[1:]:
        try:
            found = getattr(found, part)
        except AttributeError:
            return None
    return found


class Facade(types.ModuleType):
    """A module of NumPy's as a test sees it: the shim's names where they are public."""

    def __init__(self, real: types.ModuleType):
        super().__init__(real.__name__, real.__doc__)
        object.__setattr__(self, "_real", real)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        before, TOUCHED.private = TOUCHED.private, set()
        try:
            names = [n for n in vars(self._real) if not n.startswith("__")]
            return {n: getattr(self, n) for n in names if hasattr(self, n)}
        finally:
            TOUCHED.private = before

    def __getattr__(self, name: str) -> Any:
        real = self._real
        value = getattr(real, name)  # AttributeError where NumPy lacks it too
        if isinstance(value, types.ModuleType):
            return module(value.__name__) if value.__name__.startswith("numpy") else value
        return self._of(name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._real, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._real, name)

    def __dir__(self) -> list[str]:
        return dir(self._real)

    def _of(self, name: str, value: Any) -> Any:
        path = self.__name__, name
        if name in ("__array_namespace_info__", "__array_api_version__"):
            return getattr(shim, name)
        if name.startswith("__") or self.__name__.startswith(_HARMLESS):
            return value
        if path[0] not in _MODULES or (name.startswith("_") and path[0] in _MODULES):
            if id(value) not in _PUBLIC:
                if callable(value):
                    TOUCHED.private.add(".".join(path))
                return value
            path = _PUBLIC[id(value)]
        try:
            return getattr(_shim_module(path[0]), path[1])
        except AttributeError:
            missing = ".".join(path)
            TOUCHED.missing.add(missing)
            if TOUCHED.running:
                raise MissingName(f"{missing} is not in the shim") from None
            return Missing(missing)


_FACADES: dict[str, types.ModuleType] = {}


def module(name: str) -> types.ModuleType:
    """What stands for a module of NumPy's; ImportError where NumPy lacks it."""
    found = _FACADES.get(name)
    if found is None:
        if ".tests." in name:
            path = Path(np.__file__).parent.joinpath(*name.split(".")[1:]).with_suffix(".py")
            found = load(path, name)
        else:
            found = Facade(importlib.import_module(name))
        _FACADES[name] = found
    return found


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _import(
    name: str, scope: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
) -> Any:
    """`__import__` of a test module."""
    if level:
        package = scope["__package__"].split(".")
        base = ".".join(package[: len(package) - level + 1])
        name = f"{base}.{name}" if name else base
    if name != "numpy" and not name.startswith("numpy."):
        return builtins.__import__(name, scope, locals, fromlist, 0)
    if name.endswith(".tests"):
        found = types.ModuleType(name)
        for n in fromlist or ():
            setattr(found, n, module(f"{name}.{n}"))
        return found
    if not fromlist:
        module(name)
        return module("numpy")
    found = types.ModuleType(name)
    whole = module(name)
    wanted = list(fromlist)
    if "*" in wanted:
        wanted = getattr(whole, "__all__", None) or [n for n in dir(whole) if not n.startswith("_")]
        found.__all__ = wanted  # type: ignore[attr-defined]
    for n in wanted:
        try:
            value = getattr(whole, n)
        except MissingName:
            value = Missing(f"{name}.{n}")
        except AttributeError:
            if not _is_module(f"{name}.{n}"):
                raise ImportError(f"cannot import name {n!r} from {name!r}") from None
            value = module(f"{name}.{n}")
        setattr(found, n, value)
    return found


def load(path: Path, name: str, substituted: bool = True) -> types.ModuleType:
    """A test module, run statement by statement, so that one which fails does not lose the rest.

    Its `__lost__` has the statements that failed: line and error. Its `__private__` has the names
    of its own that are NumPy's private ones.
    """
    made = types.ModuleType(name)
    made.__file__ = str(path)
    made.__package__ = name.rpartition(".")[0]
    sys.modules[name] = made  # where dataclasses and pickle look
    made.__lost__ = lost = []  # type: ignore[attr-defined]
    made.__private__ = private = {}  # type: ignore[attr-defined]
    if substituted:
        made.__builtins__ = {**vars(builtins), "__import__": _import}  # type: ignore[attr-defined]
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    before, TOUCHED.running = TOUCHED.running, False
    try:
        for statement in tree.body:
            before_names = dict(vars(made))
            TOUCHED.private = set()
            code = compile(ast.Module([statement], []), str(path), "exec")
            try:
                exec(code, vars(made))
            except Exception as error:
                lost.append((statement.lineno, f"{type(error).__name__}: {error}"))
            if TOUCHED.private and isinstance(statement, (ast.ImportFrom, ast.Import)):
                last = {p.rpartition(".")[2]: p for p in TOUCHED.private}
                for n, value in vars(made).items():
                    own = getattr(value, "__name__", n)
                    if n not in before_names and (n in last or own in last):
                        private[n] = last.get(n) or last[own]
    finally:
        TOUCHED.running = before
    return made
