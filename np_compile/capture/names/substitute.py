"""Running user code on other names: the same code object, with a globals mapping of ours.

In that mapping, names bound to NumPy and its functions lead to a replacement (the recording
namespace, or the shim), helper functions to their own substituted copies, other libraries'
functions to a call outside the tape; a few builtins know stand-ins. The user's module stays as it
is. Names are compared at every call, so a rebound global is seen, as are changed code and defaults
of a helper, builtins and attributes of NumPy; `global x; x = ...` is carried back.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import itertools
import sys
import types
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from np_compile.attributes import held

from .codes import compared, compared_attributes, compared_by_identity, mentioned
from .entrances import ASKED_OF, Entrances, is_of_threads, own_code
from .origins import OF_FLOATS, is_compiled, is_in_c, origin_of, takes_floats

MISSING = object()
NOT_MADE = object()  # for a stand-in whose segment has failed: the place keeps what it has
_ROOM = 64  # copies of functions, before the first look at which of them are still needed
BUILTINS = dict(vars(builtins))  # as they were, whatever a program puts in their place later
# Names of a module that are its own, whatever is substituted.
_OF_MODULE = (
    "__name__", "__file__", "__package__", "__spec__", "__doc__", "__loader__", "__builtins__",
)  # fmt: skip
_LOOKED_AT = 100  # items of a container among which functions are looked for


def contents(cell: types.CellType) -> Any:
    """What a cell holds; MISSING where its variable is not set."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


class Names(Protocol):
    """What a substitution puts in the place of things (see capture.recording, eager)."""

    builtins: dict[str, Any]  # what stands for some of Python's own

    def renew(self) -> None:
        """A call begins: what stands for NumPy's modules is to show what they hold now."""

    def numpy(self, value: Any) -> Any:
        """For a NumPy module or function."""

    def foreign(self, value: Any) -> Any:
        """For a function of another library."""

    def maker(self, value: type) -> Any:
        """For a class of such a library that code calls."""

    def torch(self, value: Any) -> Any:
        """For torch's module or a function of it."""

    def instance(self, value: Any) -> Any:
        """For any other object; the object itself where nothing stands for it."""

    def real(self, value: Any) -> Any:
        """The other way round: what a value stands for, or the value."""

    def helper(self, f: types.FunctionType, copy: types.FunctionType) -> Callable:
        """For a function of the user's that captured code calls: its copy, or what calls it."""

    def of_one_call(self, value: Any) -> bool:
        """Whether what stands for a value belongs to one call: see `array`."""

    def array(self, value: Any) -> Any:
        """For an array (or other state) found in a global, a closure or a module."""


def compares_numpy(f: types.FunctionType) -> bool:
    """Whether a function asks by `is` for a function of NumPy's: no stand-in could answer, but to
    methods that are given one."""
    if f.__name__ in ASKED_OF:
        return False
    for name, attribute in compared_by_identity(own_code(f)):
        value = f.__globals__.get(name)
        if attribute is not None:
            value = getattr(value, attribute, None) if isinstance(value, types.ModuleType) else None
        if callable(value) and not isinstance(value, type) and origin_of(value) == "numpy":
            return True
    return False


class _Overlay:
    """The substituted globals of one module, for the functions of one substitution."""

    __slots__ = (
        "arrays", "builtins", "compared", "given", "module", "names", "own", "seen", "written",
    )  # fmt: skip

    def __init__(self, module: dict, names: dict[str, Any], own: dict, builtins: dict[str, Any]):
        self.module = module  # the module's own globals
        self.names: dict[str, Any] = names  # what the code sees
        self.own = own  # the functions' own builtins: Python's, or those of a module without them
        self.builtins = builtins  # what the code sees of them
        self.seen: dict[str, Any] = {}  # name -> what it led to when it was replaced
        self.given: dict[str, Any] = {}  # name -> what was put in its place
        self.arrays: list[str] = []
        self.written: set[str] = set()  # names that the code has given other values in this call
        self.compared: set[str] = set()  # names that lead to functions themselves

    def now(self, name: str) -> Any:
        """What a name leads to; MISSING where to nothing."""
        value = self.module.get(name, MISSING)
        return self.own.get(name, MISSING) if value is MISSING else value


class _Copy:
    """A substituted function. called: what captured code calls in its place. code, defaults,
    named: what both had when they were last compared; shown: the function's code then, which may be
    an entrance."""

    __slots__ = ("called", "code", "copy", "defaults", "function", "named", "shown")

    def __init__(self, function: types.FunctionType, copy: types.FunctionType):
        self.function = function
        self.copy = copy
        self.called: Any = None
        self._agree()

    def _agree(self) -> None:
        f = self.function
        self.shown, self.defaults, self.named = f.__code__, f.__defaults__, f.__kwdefaults__
        self.code = own_code(f)

    def follow(self) -> bool:
        """Let the copy be what the function is; whether it has got other code."""
        f, code = self.function, self.code
        if (
            f.__code__ is self.shown
            and f.__defaults__ is self.defaults
            and f.__kwdefaults__ is self.named
        ):
            return False
        self._agree()
        self.copy.__code__ = self.code
        self.copy.__defaults__ = self.defaults
        self.copy.__kwdefaults__ = self.named
        return self.code is not code

    def carry_back(self, real: Callable[[Any], Any]) -> None:
        """Give the function what captured code has set on the copy."""
        f, copy = self.function, self.copy
        for name, value in list(f.__dict__.items()):  # they share it
            if type(value) is types.FunctionType:
                f.__dict__[name] = real(value)
        if copy.__code__ is not self.code:
            f.__code__ = self.shown = self.code = copy.__code__
        if copy.__defaults__ is not self.defaults:
            f.__defaults__ = copy.__defaults__ = self.defaults = real(copy.__defaults__)
        if copy.__kwdefaults__ is not self.named:
            f.__kwdefaults__ = copy.__kwdefaults__ = self.named = real(copy.__kwdefaults__)


class _Cell:
    """A closure cell and its copy. seen, given: what the cell held, and what the copy got for it;
    MISSING, while no call runs. compared: as an overlay's names."""

    __slots__ = ("cell", "compared", "copy", "given", "seen")

    def __init__(self, cell: types.CellType, compared: bool):
        self.cell = cell
        self.compared = compared
        self.copy = types.CellType()
        self.seen: Any = MISSING
        self.given: Any = MISSING


class Substitution:
    """Substituted copies of functions, for one call at a time. `names` says what replaces what."""

    def __init__(self, names: Names):
        self.names = names
        self._overlays: dict[tuple[int, int], _Overlay] = {}
        self._builtins: dict[int, tuple[dict, dict[str, Any]]] = {}
        self._functions: dict[int, _Copy] = {}
        self._partials: dict[int, tuple[Any, Any]] = {}
        self._copied: dict[int, Any] = {}  # id of a copy -> the function, or the partial
        self._cells: dict[int, _Cell] = {}
        self._modules: dict[int, Any] = {}
        self.entrances = Entrances()
        self.compared_attributes: frozenset[str] = frozenset()  # by code that was substituted
        self._room = _ROOM

    # -- functions --------------------------------------------------------------------------

    def function(self, f: types.FunctionType) -> types.FunctionType:
        """The copy of a Python function that runs on the substituted names."""
        found = self._functions.get(id(f))
        if found is not None:
            if found.follow():
                self._mentioned(f)
            return found.copy
        if self.module_of(f) is not None:
            return f  # captured code has made it: its names and cells are those of what runs
        overlay = self._overlay(f)
        closure = None
        code = own_code(f)
        if f.__closure__ is not None:
            names = compared(code)
            named = zip(code.co_freevars, f.__closure__, strict=True)
            closure = tuple(self._cell(c, name in names) for name, c in named)
            found = self._functions.get(id(f))
            if found is not None:  # made for a cell that leads back to it
                return found.copy
        copy = types.FunctionType(code, overlay.names, f.__name__, f.__defaults__, closure)
        copy.__kwdefaults__ = f.__kwdefaults__
        copy.__dict__ = f.__dict__  # one dictionary: `f.calls += 1` inside f is seen outside
        copy.__qualname__ = f.__qualname__
        copy.__module__ = f.__module__
        copy.__doc__ = f.__doc__
        self._functions[id(f)] = _Copy(f, copy)
        self._copied[id(copy)] = f
        self._mentioned(f)
        self.meet(f.__dict__)
        return copy

    def helper(self, f: types.FunctionType) -> Callable:
        """What captured code calls in the place of a function."""
        known = self._functions.get(id(f))
        if known is None or known.called is None:
            copy = self.function(f)
            if copy is f:
                return f
            known = self._functions[id(f)]
            known.called = self.names.helper(f, copy)
            self._copied[id(known.called)] = f
        elif known.follow():
            self._mentioned(f)
        return known.called

    def _tidy(self) -> None:
        """Forget functions and cells that nobody else refers to: a program may make new ones, a
        lambda in each of many calls, say."""
        for key, known in list(self._functions.items()):
            if sys.getrefcount(known.function) == 3:  # its own, `_copied`'s and getrefcount's
                del self._functions[key], self._copied[id(known.copy)]
                self._copied.pop(id(known.called), None)
        for key in list(self._cells):
            if sys.getrefcount(self._cells[key].cell) == 2:
                del self._cells[key]
        self._room = 2 * len(self._functions) + _ROOM

    def _mentioned(self, f: types.FunctionType) -> None:
        """Substitute the names in a function's code."""
        overlay, code = self._overlay(f), own_code(f)
        self.compared_attributes |= compared_attributes(code)
        newly = compared(code) - overlay.compared
        overlay.compared |= newly
        for name in (*mentioned(code), "__warningregistry__"):
            if name not in overlay.seen:
                overlay.seen[name] = MISSING
                self._refresh(overlay, name)
            elif name in newly and overlay.names.get(name) is overlay.given.get(name):
                self._refresh(overlay, name)

    def _overlay(self, f: types.FunctionType) -> _Overlay:
        module, own = f.__globals__, f.__builtins__  # type: ignore[attr-defined]
        found = self._overlays.get((id(module), id(own)))
        if found is None:
            if id(own) not in self._builtins:
                given: dict[str, Any] = {}  # known before it is filled: it may lead to itself
                self._builtins[id(own)] = own, given
                given.update([(k, self._builtin(k, v)) for k, v in own.items()])
            given = self._builtins[id(own)][1]
            names = {n: module[n] for n in _OF_MODULE if n in module}
            names["__builtins__"] = given
            found = _Overlay(module, names, own, given)
            self._overlays[id(module), id(own)] = found
        return found

    def _builtin(self, name: str, value: Any) -> Any:
        """What stands for a builtin."""
        if value is BUILTINS.get(name, MISSING):
            return self.names.builtins.get(name, value)
        return self.value(value)

    def _refresh(self, overlay: _Overlay, name: str) -> None:
        value = overlay.module.get(name, MISSING)
        overlay.seen[name] = value
        if name in overlay.arrays:
            overlay.arrays.remove(name)
        if value is MISSING:
            overlay.names.pop(name, None)
            overlay.given[name] = MISSING
            builtin = overlay.seen[name] = overlay.own.get(name, MISSING)
            if builtin is MISSING:
                overlay.builtins.pop(name, None)
            else:
                overlay.builtins[name] = self._builtin(name, builtin)
            return
        if self.names.of_one_call(value):
            overlay.arrays.append(name)
            given = value
        else:
            given = self.itself(value) if name in overlay.compared else self.value(value)
        overlay.names[name] = overlay.given[name] = given

    def _cell(self, cell: types.CellType, compared: bool) -> types.CellType:
        found = self._cells.get(id(cell))
        if found is None:
            found = self._cells[id(cell)] = _Cell(cell, compared)
            self._fill(found)
        elif compared and not found.compared:
            found.compared = True
            if contents(found.copy) is found.given:
                self._fill(found)
        return found.copy

    def _fill(self, known: _Cell) -> None:
        value = known.seen = contents(known.cell)
        if value is MISSING:
            if contents(known.copy) is not MISSING:
                del known.copy.cell_contents
            known.given = MISSING
            return
        if self.names.of_one_call(value):
            given = self.names.array(value)
        else:
            given = self.itself(value) if known.compared else self.value(value)
        known.copy.cell_contents = known.given = given

    def itself(self, value: Any) -> Any:
        """As `value`, for code that may compare what it reaches: a function of the user's is
        itself, as it is in containers and objects; calls of it come to its copy all the same."""
        if is_compiled(value):
            self.meet(value.__dict__)
            return value
        if isinstance(value, type) and takes_floats(value):
            return value
        called = self.value(value)
        if isinstance(value, types.FunctionType) and origin_of(value) == "user":
            as_it_is = called is self._functions[id(value)].copy
            return value if self.entrances.add(value, as_it_is) else called
        return called

    def value(self, value: Any) -> Any:
        """What stands for a value that user code reaches by a name, to call it or for its
        attributes."""
        if isinstance(value, types.ModuleType):
            return self.module(value)
        if is_compiled(value):
            copy = self.helper(value.__np_compile_captured__)
            copy.__dict__ = value.__dict__
            self.meet(value.__dict__)
            return copy
        replaced = self.names.instance(value)
        if replaced is not value:
            return replaced
        if isinstance(value, types.FunctionType):
            origin = origin_of(value)
            if origin == "user":
                return self.helper(value)
            if origin == "numpy":
                return self.names.numpy(value)
            if origin == "foreign" or takes_floats(value):
                return self.names.foreign(value)
            return value
        if isinstance(value, types.MethodType):
            f = self.value(value.__func__)
            return value if f is value.__func__ else types.MethodType(f, value.__self__)
        if type(value) is functools.partial:
            return self._partial(value)
        if isinstance(value, np.ufunc):
            mapped = self.names.numpy(value)
            return self.names.foreign(value) if mapped is value else mapped
        self.meet(value)
        if isinstance(value, type) and takes_floats(value):
            return self.names.maker(value)
        if isinstance(value, type) or not callable(value):
            return value
        if is_in_c(value) and takes_floats(value):
            return self.names.foreign(value)
        origin = origin_of(value)
        if origin == "numpy" and not inspect.isclass(value):
            return self.names.numpy(value)
        if origin in ("foreign", "user") and is_in_c(value):
            return self.names.foreign(value)
        if origin == "torch":
            return self.names.torch(value)
        return value

    def meet(self, value: Any, depth: int = 2) -> None:
        """Make entrances for the functions that code may reach through a value: those of a class of
        the user's or of an instance of one, and what lies in a container."""
        if isinstance(value, types.FunctionType):
            if origin_of(value) == "user":
                self.entrances.add(value)
            return
        if is_of_threads(value):
            self.entrances.locks = True
        inside: Any = ()
        if isinstance(value, (list, tuple, set, dict)):
            inside = value.values() if isinstance(value, dict) else value
        elif not isinstance(value, types.ModuleType):
            for kind in (value if isinstance(value, type) else type(value)).__mro__:
                if kind.__module__ != "builtins" and origin_of(kind) == "user":
                    self.entrances.add_class(kind)
                    inside = held(value).values()
        if depth:
            for v in itertools.islice(inside, _LOOKED_AT):
                self.meet(v, depth - 1)

    def all_names(self, names: dict) -> None:
        """Put every global of its module into a mapping of substituted ones, which so far has
        those that code mentions: for `globals()`, and for code given as text."""
        for overlay in list(self._overlays.values()):
            if overlay.names is names:
                for name in list(overlay.module):
                    if name not in overlay.seen and name not in names:
                        overlay.seen[name] = MISSING
                        self._refresh(overlay, name)

    def _partial(self, value: functools.partial) -> functools.partial:
        """The copy of a partial; both have one dictionary of keywords."""
        found = self._partials.get(id(value))
        if found is not None:
            return found[1]
        f = self.value(value.func)
        if f is value.func:
            return value
        copy = functools.partial(f)
        self._partials[id(value)] = value, copy
        self._copied[id(copy)] = value
        self._follow(value, copy)
        return copy

    def _follow(self, partial: Any, copy: Any) -> None:
        state = self.value(partial.func), partial.args, partial.keywords, partial.__dict__
        copy.__setstate__(state)

    def module(self, module: types.ModuleType) -> Any:
        """What stands for a module: its functions are found through `value`."""
        found = self._modules.get(id(module))
        if found is None:
            origin = origin_of(module)
            if origin == "numpy":
                found = self.names.numpy(module)
            elif origin == "torch":
                found = self.names.torch(module)
            elif origin in ("library", "own") and module.__name__ not in OF_FLOATS:
                found = module
            else:
                found = _ModuleProxy(module, self)
            self._modules[id(module)] = found
        return found

    def real(self, x: Any) -> Any:
        """What x stands for, x itself where it is nothing that was put in a place."""
        if isinstance(x, _ModuleProxy):
            return x._np_compile_parts[0]
        if type(x) in (types.FunctionType, functools.partial):
            found = self._copied.get(id(x))
            if found is not None:
                return found
        return self.names.real(x)

    def module_of(self, f: types.FunctionType) -> dict[str, Any] | None:
        """The globals of the module in which captured code has made a function; None of others."""
        for overlay in self._overlays.values():
            if overlay.names is f.__globals__:
                return overlay.module
        return None

    def cell_of(self, cell: types.CellType) -> types.CellType:
        """The cell that a copy of one stands for, a cell that is none itself."""
        return next((c.cell for c in self._cells.values() if c.copy is cell), cell)

    def mentions(self, name: str) -> bool:
        """Whether code that was substituted uses a name, as a global or as an attribute."""
        return any(name in overlay.seen for overlay in self._overlays.values())

    def uses_torch(self) -> bool:
        """Whether such code comes to torch by a name."""
        values = [x for overlay in self._overlays.values() for x in overlay.seen.values()]
        return self.mentions("torch") or any(origin_of(x) == "torch" for x in values)

    # -- at each call -----------------------------------------------------------------------

    def enter(self) -> None:
        """Look at everything again: names, helpers, cells, and the arrays of this call."""
        self.names.renew()
        for known in list(self._functions.values()):
            if known.follow():
                self._mentioned(known.function)
        for partial, its_copy in list(self._partials.values()):
            self._follow(partial, its_copy)
        self.entrances.open()
        for overlay in list(self._overlays.values()):
            now = overlay.now
            for name, value in list(overlay.seen.items()):
                if now(name) is not value:
                    self._refresh(overlay, name)
            for name in overlay.arrays:
                array = self.names.array(overlay.seen[name])
                overlay.names[name] = overlay.given[name] = array
        for cell in list(self._cells.values()):
            self._fill(cell)

    def show(self, real: Callable[[Any], Any]) -> None:
        """Carry writes to globals, closures and helpers back. real: gives arrays for stand-ins."""
        for known in list(self._functions.values()):
            known.carry_back(real)
        for overlay in list(self._overlays.values()):
            names = overlay.names
            for name, given in list(overlay.given.items()):
                value = names.get(name, MISSING)
                if value is given:
                    continue
                if value is MISSING:
                    overlay.module.pop(name, None)
                elif (made := real(value)) is not NOT_MADE:
                    overlay.module[name] = made
                overlay.given[name] = value
                overlay.seen[name] = overlay.now(name)
                overlay.written.add(name)
        for cell in list(self._cells.values()):
            value = contents(cell.copy)
            if value is cell.given:
                continue
            cell.given = value
            if value is MISSING:
                del cell.cell.cell_contents
            elif (made := real(value)) is not NOT_MADE:
                cell.cell.cell_contents = made
            cell.seen = contents(cell.cell)

    def look(self) -> None:
        """See what code that is not substituted has written meanwhile."""
        for known in list(self._functions.values()):
            if known.follow():
                self._mentioned(known.function)
        for overlay in list(self._overlays.values()):
            for name, value in list(overlay.seen.items()):
                if overlay.now(name) is not value:
                    self._refresh(overlay, name)
                    if name in overlay.arrays:
                        array = self.names.array(overlay.seen[name])
                        overlay.names[name] = overlay.given[name] = array
        for cell in list(self._cells.values()):
            if contents(cell.cell) is not cell.seen:
                self._fill(cell)

    def leave(self, real: Callable[[Any], Any]) -> None:
        """The call ends: `show`, and let go of its arrays. real may give NOT_MADE."""
        self.show(real)
        self.entrances.close()
        for overlay in list(self._overlays.values()):
            for name in overlay.written:
                self._refresh(overlay, name)
            overlay.written.clear()
            for name in overlay.arrays:
                overlay.names[name] = overlay.given[name] = overlay.seen[name]
            for name in [n for n in overlay.names if n not in overlay.given]:
                if name not in _OF_MODULE:  # made by `globals()["name"] = ...`
                    overlay.module[name] = real(overlay.names[name])
                    overlay.seen[name] = MISSING
                    self._refresh(overlay, name)
        for cell in list(self._cells.values()):
            if contents(cell.copy) is not MISSING:
                del cell.copy.cell_contents
            cell.seen = cell.given = MISSING
        if len(self._functions) > self._room:
            self._tidy()

    def reachable(self) -> list[Any]:
        """What the functions reach by names: values of globals, cells; and the functions."""
        found: list[Any] = [known.function for known in self._functions.values()]
        found += [known.cell for known in self._cells.values()]
        for overlay in list(self._overlays.values()):
            found += [overlay.module.get(name) for name in overlay.seen]
        return found


class _ModuleProxy(types.ModuleType):
    """A module of the user's or of another library, with its functions substituted."""

    __slots__ = ("_np_compile_parts",)

    def __init__(self, real: types.ModuleType, substitution: Substitution):
        super().__init__(real.__name__, real.__doc__)
        types.ModuleType.__setattr__(self, "_np_compile_parts", (real, substitution))

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        return vars(self._np_compile_parts[0])

    def __getattr__(self, name: str) -> Any:
        real, substitution = self._np_compile_parts
        value = getattr(real, name)
        if substitution.names.of_one_call(value):
            return substitution.names.array(value)
        if name in substitution.compared_attributes:
            return substitution.itself(value)
        return substitution.value(value)

    def __setattr__(self, name: str, value: Any) -> None:
        real, substitution = self._np_compile_parts
        setattr(real, name, substitution.real(value))

    def __delattr__(self, name: str) -> None:
        delattr(self._np_compile_parts[0], name)

    def __dir__(self) -> list[str]:
        return dir(self._np_compile_parts[0])


# Python 3.13 takes more by name.
_EVALUATORS: dict[Callable, inspect.Signature] = {f: inspect.signature(f) for f in (eval, exec)}


def evaluators(substitution_of: Callable[[], Substitution | None]) -> dict[str, Callable]:
    """`globals`, `eval` and `exec` that find all names of the module where they are called."""

    def complete(names: dict) -> None:
        substitution = substitution_of()
        if substitution is not None:
            substitution.all_names(names)

    def globals_() -> dict:
        names = sys._getframe(1).f_globals
        complete(names)
        return names

    def evaluator(real: Callable) -> Callable:
        @functools.wraps(real)
        def run(source: Any, /, *args: Any, **named: Any) -> Any:
            try:
                given = _EVALUATORS[real].bind(source, *args, **named)
            except TypeError:
                return real(source, *args, **named)  # which says so
            given.apply_defaults()
            names = given.arguments
            frame = sys._getframe(1)
            if names["globals"] is None:
                names["globals"] = frame.f_globals
                if names["locals"] is None:
                    # A copy from Python 3.13 on, where those of a frame are no dict.
                    here = frame.f_locals
                    names["locals"] = here if isinstance(here, dict) else dict(here)
            complete(names["globals"])
            return real(*given.args, **given.kwargs)

        return run

    return {"globals": globals_, "eval": evaluator(eval), "exec": evaluator(exec)}


def importer(substitution_of: Callable[[], Substitution | None]) -> Callable:
    """An `__import__` whose modules are substituted (imports inside functions)."""
    real_import = builtins.__import__

    def import_substituted(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        module = real_import(name, globals, locals, fromlist, level)
        substitution = substitution_of()
        return module if substitution is None else substitution.module(module)

    return import_substituted
