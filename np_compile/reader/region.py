"""Regions: functions, or the rest of one from a statement on, compiled for types of values."""

from __future__ import annotations

import ast
import contextlib
import ctypes
import functools
import signal
import struct
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from np_compile.kernels.build.beside import Libraries
from np_compile.kernels.run import pool, private
from np_compile.shim import is_writeable

from . import direct, dispatch, offload, runtime, spread, threads
from .columns import column, numbers, of_kind
from .entry import Entry, Exit
from .exits import first_row
from .inputs import binder
from .kernels import Loops
from .nest import CODES
from .outside import Draw, Site, stored
from .random import addresses
from .values import ANYWHERE, DTYPE_OF

MISS = object()  # in the place of a value that there is none
OTHER = object()  # a call that is not the region's
LATER = object()  # the C compiler is still at work


class Region:
    """A compiled region: `run` carries it out. sites: calls that it makes in Python. runs: how
    often it ran; left: how often it left compiled code in a loop; listed: how many items of lists
    it has made for Python; called: how many calls it has made there. threaded: the lines of loops
    that threads share; offers: these loops, for a device; touches, blank: as of `Loops`. written:
    the roots of memory that it may change."""

    def __init__(
        self,
        text: str,
        entry: Entry,
        sites: list[Site],
        waits: bool,
        loops: Loops,
        written: frozenset[str],
    ):
        self.text = text
        self.exits, self.layouts = entry.exits, entry.layouts
        self.gives_objects = bool(entry.classes)
        self._runs = self.left = self.listed = self.called = 0
        self._room = max(entry.most, 1)
        self._paths = {k: v for k, v in entry.paths.items() if isinstance(k, str)}
        self._places = {path: k for k, path in enumerate(entry.inputs)}
        self.arrays = tuple(entry.owners)
        anything = ANYWHERE in written
        self._written = [
            path for k, path in enumerate(self.arrays) if anything or entry.root(k) in written
        ]
        self.sites = sites
        rows = [None if s.row is None else ctypes.addressof(s.row.words) for s in sites]
        self.rows = (ctypes.c_void_p * max(len(rows), 1))(*rows)
        self._bind = binder(entry)
        in_c = all(s.row is not None for s in sites)
        self._inputs = dispatch.rows(entry) if in_c else None
        self._forms: dict[tuple, dispatch.Form] = {}
        self._words = struct.Struct("".join(entry.formats))
        self._loops = loops
        self.offers = [offload.Offer(k) for k in loops.kernels]
        self.touches, self.blank, self.shares = loops.touches, loops.blank, loops.shares
        self.threaded = sorted({k.line for k in loops.kernels if not k.light})
        self._was_away = False  # whether a call had a device for its loops
        more = [(pool.source(), "pool"), (spread.source(), "spread")] if loops.shares else []
        self._libraries = Libraries([(text, "region"), *more], waits)
        dispatch.available()  # the C compiler begins, after this one
        self._function: Any = None
        self._finish: Any = None
        self._free: list[_Call] = []

    @property
    def ready(self) -> bool:
        """Whether the C compiler is done."""
        return self._libraries.ready

    @property
    def is_loaded(self) -> bool:
        """Whether its library is loaded."""
        return self._function is not None

    @property
    def seconds_left(self) -> float:
        """How long it does, roughly."""
        return self._libraries.seconds_left

    def wait(self) -> None:
        """Wait for the C compiler."""
        library = self._libraries.get()[0]
        self._function, self._finish = library.region, library.finish
        self._function.restype = ctypes.c_int64
        self._function.argtypes = self._finish.argtypes = None
        self._function.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self._finish.argtypes = [ctypes.c_void_p]

    @property
    def runs(self) -> int:
        """How often it ran."""
        return self._runs + self.runs_in_c

    @property
    def runs_in_c(self) -> int:
        """How often that was without a line of Python."""
        return sum([form.runs for form in self._forms.values()])

    def ran(self) -> None:
        """Note that it ran."""
        self._runs += 1

    def has_form(self, count: int, names: tuple[str, ...]) -> bool:
        """Whether C makes calls with so many arguments, the last by these names, or never will."""
        return self._inputs is None or (count, names) in self._forms

    def form(self, f: Any, count: int, names: tuple[str, ...], ended: Callable) -> dispatch.Form:
        """Its calls with so many arguments, the last ones by these names, for C."""
        assert self._inputs is not None

        def more() -> _Call:
            return _Call(self, self._words.size, self._room)

        made = self._forms[count, names] = dispatch.Form(
            f, count, names, self._inputs, self._function, self._finish, more, ended
        )
        return made

    def end(self) -> None:
        """Have C make no more calls."""
        for form in self._forms.values():
            form.end()

    def ended(self, state: _Call, number: int) -> Any:
        """As `run`, of a call that C has made up to its end."""
        try:
            if number == -1:
                raise state.raised()
            return self._exit(state, self.exits[number])
        finally:
            self._gives_back(state)

    def _gives_back(self, state: _Call) -> None:
        if state.first.next:
            self._finish(state.address)
            state.first.next = None
        state.clear()

    def run(self, values: dict[str, Any]) -> Any:
        """The exit that compiled code takes from these values of names, what it returns, and where
        it left; OTHER if the call is not one that the region is compiled for."""
        try:
            bound = self._bind(values)
            if bound is None:  # an object under two names
                return None
            found, words, locks = bound
        except (KeyError, AttributeError, ValueError, IndexError, TypeError):
            return OTHER
        if self._function is None:
            if not self._libraries.ready:
                return LATER
            self.wait()
        state = self._free.pop() if self._free else _Call(self, self._words.size, self._room)
        self._words.pack_into(state.words, 0, *words)
        state.found = found
        state.runtime.threads = 0
        if self.shares:
            state.runtime.worth = threads.WORTH
        away = offload.current()
        if away is not None:
            self._goes_away(away, state)
        number = 0
        try:
            if locks:
                with contextlib.ExitStack() as stack:
                    for lock in locks:
                        stack.enter_context(lock)
                    number = self._function(state.address, state.words_address)
            else:
                number = self._function(state.address, state.words_address)
            if number <= 0:
                if number == -1:
                    raise state.raised()
                return OTHER if number == 0 else None
            return self._exit(state, self.exits[number])
        finally:
            if away is not None:
                state.runtime.device = runtime.DEVICE()
                if number == -1 or (number > 0 and self.exits[number].frames is not None):
                    away.settle()  # Python goes on
            self._gives_back(state)
            self._free.append(state)

    @property
    def texts(self) -> list[str]:
        """Its C, and the kernels that have run."""
        return [self.text, *(x.kernel.text for x in self.offers if x.ran)]

    def _goes_away(self, away: offload.Offload, state: _Call) -> None:
        """Have C ask for a device."""
        self._was_away = True
        if self._loops.reads or not self.offers:
            away.settle()
        if self.offers:
            state.runtime.device = state.asks

    def on_device(self) -> list[str]:
        """What became of the loops where there was a device for them, for people."""
        if not self._was_away:
            return []
        made = []
        for offer in self.offers:
            line, what = (
                offer.kernel.line,
                "the iterations of two loops" * bool(offer.kernel.across),
            )
            if offer.ran:
                what = what or "an iteration"
                made.append(f"the loop of line {line} runs on the device: a thread for {what}")
            else:
                why = offer.why or "it was not come to"
                made.append(f"the loop of line {line} runs on the host: {why}")
        end, kernels = 0, self._loops.kernels
        for line, (last, why) in sorted(self._loops.dependent.items()):
            spread = any(line <= k.line <= last or k.line <= line <= k.last for k in kernels)
            if line > end and not spread:
                made.append(f"the loop of line {line} runs on the host: {why}")
                end = last
        return made

    def changed(self, values: dict[str, Any]) -> list[np.ndarray | None]:
        """The arrays among these values of names, also in tuples, that a run may have changed;
        None for an attribute's, as it may be another array by now."""
        made: list[np.ndarray | None] = []
        for where, name, *items in self._written:
            if where == "local":
                x = values[name]
                for k in items:
                    x = None if x is None or type(k) is str else x[k]
                made.append(x)
        return made

    def _exit(self, state: _Call, exit_: Exit) -> Any:
        for (place, name), spec in exit_.attributes.items():
            owner, x = self.at(state, place), state.value(spec, self)
            if name.startswith("["):
                owner[ast.literal_eval(name)[0]] = x
            elif x is not MISS:
                setattr(owner, name, x)
        if exit_.frames is None:
            return exit_, state.value(exit_.result, self), None
        left = []
        for words, frames in state.left(self, exit_):
            for f, node, path, names, makes in frames:
                made = {k: state.value(v, self, words) for k, v in names.items()}
                named = {k: v for k, v in made.items() if v is not MISS}
                there = [s for s, v in makes if state.value(v, self, words) is not MISS]
                left.append((f, node, path, named, there))
        return exit_, None, left

    def at(self, state: _Call, path: Any) -> Any:
        """The value of an input, by its path or by its name."""
        path = path if isinstance(path, tuple) else self._paths[path]
        place = self._places.get(path)
        if place is not None:
            return state.found[place]
        return self.at(state, path[:-1])[path[-1]]  # an item of a tuple


def calls_left() -> int:
    """How many calls of functions Python allows in the one that is compiled."""
    frame: Any = sys._getframe()
    used = 1
    while frame is not None:
        used += not frame.f_globals.get("__name__", "").startswith("np_compile")
        frame = frame.f_back
    return sys.getrecursionlimit() - used


def _raised_by_a_signal(error: Exception) -> bool:
    """Whether it comes out of a signal's handler, not of the function that was called."""
    at = error.__traceback__
    frames = set()
    while at is not None:
        frames.add(at.tb_frame.f_code)
        at = at.tb_next
    handlers = map(signal.getsignal, signal.valid_signals())
    return any(getattr(h, "__code__", None) in frames for h in handlers if callable(h))


class _Call:
    """One run of a region at a time: words, buffers, and what C asks of Python meanwhile."""

    def __init__(self, region: Region, size: int, room: int):
        self._region = region
        self.words = bytearray(max(size, 8))
        self._held = (ctypes.c_char * len(self.words)).from_buffer(self.words)
        self.words_address = ctypes.addressof(self._held)
        self._out = (runtime.Word * room)()
        self.runtime = runtime.Runtime()
        r = self.runtime
        r.python = self._callback = runtime.PYTHON(self._python)
        self.asks = runtime.DEVICE(self._ask)
        r.api = ctypes.addressof(runtime.api)
        self.runtime.out = ctypes.addressof(self._out)
        table = addresses()
        self._draws = (ctypes.c_void_p * len(table))(*table)
        self.runtime.draws = ctypes.addressof(self._draws)
        self._given = (runtime.Buffer * max(len(region.arrays), 1))()
        self.runtime.given = ctypes.addressof(self._given)
        if region.shares:
            self.runtime.run = pool.run_address()
            self.runtime.count_threads = private.num_threads
            self.runtime.spread = spread.address()
            self.runtime.worth = threads.WORTH
        self.runtime.rows = ctypes.addressof(region.rows)
        self.address = ctypes.addressof(self.runtime)
        self.first = self.runtime.first
        self._small: dict[Any, Any] = {}
        self._waiting: list[tuple] = []  # objects that have no attributes yet
        self._views: dict[Any, Any] = {}  # and lists that may be there twice
        self._kept: dict[Any, Any] | None = None
        self.found: tuple = ()
        self.arrays: list[np.ndarray] = []
        self.error: BaseException | None = None
        self._is_amid = False  # compiled code: lists are not given back yet

    def clear(self) -> None:
        """Forget the call."""
        self.found, self.arrays, self.error, self._is_amid = (), [], None, False
        if self._small:
            self._small = {}
        if self._views:
            self._views = {}
        self._kept = None

    # Meanwhile

    def given_arrays(self) -> list[np.ndarray]:
        """The arrays that the region takes."""
        if not self.arrays:
            self.arrays = [self._region.at(self, path) for path in self._region.arrays]
        return self.arrays

    def _ask(self, *request: int) -> int:
        """Have a device do iterations of a loop, see `Offload.ask`."""
        away = offload.current()
        if away is None:
            return 0
        done = away.ask(self._region, self, *request)
        self.error = away.error
        return done

    def left(self, region: Region, exit_: Exit) -> Iterator[tuple[Any, list]]:
        """The words, and what they mean, of each C function that was left, from the outermost."""
        yield None, exit_.frames or []
        at = self.runtime.left
        while at:
            b = runtime.Buffer.from_address(at)
            frames = region.exits[b.dims[0]].frames or []
            yield (runtime.Word * (1 << 20)).from_address(b.data), frames
            at = b.dims[1]

    def raised(self) -> BaseException:
        """The exception with which compiled code was ended."""
        value = self.runtime.error[1]
        if value is None:
            return self.error or KeyboardInterrupt()
        found = ctypes.cast(value, ctypes.py_object).value
        if trace := self.runtime.error[2]:
            found.__traceback__ = ctypes.cast(trace, ctypes.py_object).value
        for k in range(3):
            if self.runtime.error[k]:  # they are held since they were fetched
                ctypes.pythonapi.Py_DecRef(ctypes.c_void_p(self.runtime.error[k]))
                self.runtime.error[k] = None
        return found

    def _python(self, number: int) -> int:
        """Make a call in Python; 1 if compiled code has to leave, 2 if the exception ends it.
        number: of the site; -1: C has made the call, which raised; -2: C asks how many calls of
        Python may be in one another."""
        if number == -2:
            return calls_left()
        if number < 0:
            self.error = self.raised()
            by_call = isinstance(self.error, Exception) and not _raised_by_a_signal(self.error)
            return 1 if by_call else 2
        try:
            region = self._region
            region.called += 1
            site = region.sites[number]
            offload.settle()
            self._is_amid = True
            args = [self.value(a, region) for a in site.args]
            kwargs = {k: self.value(v, region) for k, v in site.kwargs.items()}
            self._is_amid = False
            # What lies in C's own memory was copied, and may change before the next call.
            self._small, self._views, self._kept = {}, {}, None
            draws = isinstance(site.function, Draw)
            state = Draw.state(args[0]) if draws else None
            made = False
            held: list[np.ndarray] = []
            try:
                result = site.function(*args, **kwargs)
                made = stored(result, site.result, self._out, held.append)
            finally:
                if draws and not made:
                    Draw.restore(args[0], state)
            if not made:
                return 1
            for x in held:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(x))
            return 0
        except Exception as e:
            self.error = e  # compiled code leaves, or, behind a statement, ends
            return 2 if _raised_by_a_signal(e) else 1
        except BaseException as e:
            self.error = e
            return 2

    # Out

    def value(self, spec: Any, region: Region, out: Any = None) -> Any:
        """The Python value that a description and the words give."""
        kind = spec[0]
        if out is None:
            out = self._out
        if kind == "constant":
            return spec[1]
        if kind == "number":
            _, kinds, at, tag, part = spec
            x = out[at].f if part == "f" else out[at].i
            return of_kind(x, kinds[out[tag].i if tag is not None else 0])
        if kind == "complex":
            _, kinds, at, tag = spec
            z = complex(out[at].f, out[at + 1].f)
            return of_kind(z, kinds[out[tag].i if tag is not None else 0])
        if kind == "array":
            return self._array(spec, out)
        if kind == "tuple":
            made, key = spec[1], (id(spec), id(out))
            if key in self._views:
                return self._views[key]
            items = [self.value(x, region, out) for x in spec[2]]
            if made is list and out is self._out:
                return self._views.setdefault(key, items)
            return made(items) if made in (tuple, list) else made(*items)
        if kind == "list":
            return self._list(spec, region, out[spec[3]].p)
        if kind == "range":
            return range(*[self.value(x, region, out) for x in spec[1]])
        if kind == "object":
            return self._object(spec[1], region, out[spec[2]].p)
        if kind == "begun":
            return self._begun(spec, region, out)
        if kind == "maybe":
            return self.value(spec[2], region, out) if out[spec[1]].i else MISS
        if kind == "or none":
            return self.value(spec[2], region, out) if out[spec[1]].i else None
        if kind == "partial":
            f, *given = (self.value(x, region, out) for x in spec[1])
            by_name = {k: self.value(x, region, out) for k, x in spec[2].items()}
            return functools.partial(f, *given, **by_name)
        if kind == "method":
            return getattr(self.value(spec[1], region, out), spec[2])
        if kind == "path":
            return region.at(self, spec[1])
        if kind == "held":
            owner = runtime.Buffer.from_address(out[spec[1]].p).owner
            return ctypes.cast(owner, ctypes.py_object).value
        raise AssertionError(kind)

    def _array(self, spec: Any, out: Any) -> np.ndarray:
        _, rep, owner, at, dims, strides, view = spec
        shape = tuple([d[1] if type(d) is tuple else out[d].i for d in dims])
        dtype = DTYPE_OF[rep]
        size = dtype.itemsize
        steps = tuple([(s[1] if type(s) is tuple else out[s].i) * size for s in strides])
        buf, data = out[at].p, out[at + 1].p or 0
        owner = runtime.Buffer.from_address(buf).owner if owner is None else out[owner].i
        base = self._owner(owner, buf)
        start = runtime.data_of(base)
        same = base.shape == shape and base.dtype == dtype and _alike(shape, base.strides, steps)
        moved = data - start if owner >= 0 else data - self._small[buf][1]
        kind = view[1] if type(view) is tuple else out[view].i
        if same and moved == 0 and not kind:
            return base
        key = (owner, buf if owner < 0 else 0, dtype, shape, steps, moved, kind)
        found = self._views.get(key)
        if found is None:
            found = self._attribute(base, moved + start, dtype, shape, steps, kind)
        if found is None:
            found = self._views[key] = _view(base, dtype, shape, moved, steps)
            if kind == 2:
                found.flags.writeable = False
        return found

    def _attribute(
        self, base: np.ndarray, start: int, dtype: np.dtype, shape: tuple, steps: tuple, kind: int
    ) -> np.ndarray | None:
        """The view that was made for an attribute of an object of Python's, if there is one."""
        if self._kept is None:
            self._kept = {}
            at = self.runtime.first.next if self._region.gives_objects else None
            while at:
                b = at.contents
                if b.form and ctypes.string_at(b.form, 1) == b"v":
                    x = ctypes.cast(b.owner, ctypes.py_object).value
                    key = (b.object, b.data, x.dtype, x.shape, x.strides, is_writeable(x))
                    self._kept[key] = x
                at = b.next
        writeable = kind != 2 and is_writeable(base)
        return self._kept.get((id(base), start, dtype, shape, steps, writeable))

    def _owner(self, owner: int, address: int) -> np.ndarray:
        """The array whose memory it is."""
        if owner >= direct.OWN:
            return ctypes.cast(owner, ctypes.py_object).value
        if owner >= 0:
            return self.given_arrays()[owner]
        if address not in self._small:
            b = runtime.Buffer.from_address(address)
            if b.object:  # an attribute of an object of Python's was set to it
                made = ctypes.cast(b.object, ctypes.py_object).value
            else:
                dtype = DTYPE_OF[CODES[b.code]]
                made = np.empty(tuple(b.dims[: b.ndim]), dtype)
                ctypes.memmove(runtime.data_of(made), b.data, b.bytes)
            self._small[address] = made, b.data
        return self._small[address][0]

    def _object(self, kind: type, region: Region, address: int) -> Any:
        """An object that was made; what it refers to is made behind it, one after the other: a
        chain may be long, and may lead back to it."""
        found = self._small.get(address)
        if found is not None:
            return found
        if python := _Fields.from_address(address)[_OBJECT]:
            return ctypes.cast(python, ctypes.py_object).value
        make: Any = kind.__new__
        found = self._small[address] = make(kind)
        waiting = self._waiting
        waiting.append((found, kind, address))
        if len(waiting) == 1:
            for made, kind, at in waiting:
                fields = _Fields.from_address(at)
                row = (runtime.Word * (fields[_SIZE] // 8)).from_address(fields[_DATA])
                for name, part in region.layouts[kind]:
                    x = self.value(part, region, row)
                    if x is not MISS:  # which is set later
                        object.__setattr__(made, name, x)
            self._waiting = []
        return found

    def _begun(self, spec: Any, region: Region, out: Any) -> Any:
        """An object whose `__init__` is at work."""
        _, kind, path, fields = spec
        found = self._small.get(path)
        if found is None:
            make: Any = kind.__new__
            found = self._small[path] = make(kind)
            for name, part in fields.items():
                x = self.value(part, region, out)
                if x is not MISS:  # which is set on one way only
                    object.__setattr__(found, name, x)
        return found

    def _list(self, spec: Any, region: Region, address: int) -> Any:
        _, made, items, _ = spec
        fields = _Fields.from_address(address)
        if fields[_OBJECT] and not (fields[_CHANGES] and self._is_amid):
            return ctypes.cast(fields[_OBJECT], ctypes.py_object).value
        found = self._small.get(address)
        if found is None:
            n, data = fields[_DIMS], fields[_DATA]
            region.listed += n
            if isinstance(items, str):
                found = numbers(data, n, items, CODES[fields[_CODE]])
            else:
                found = [] if items is None else self._rows(items, region, data, n, fields)
            self._small[address] = found = found if made is list else made(found)
        return found

    def _rows(self, items: Any, region: Region, data: int, n: int, fields: Any) -> list:
        """The n items of a list, or the entries of a dict that are not gone."""
        if n == 0:
            return []
        size = fields[_SIZE]
        held = memoryview((ctypes.c_char * (n * size)).from_address(data))
        words = np.frombuffer(held, np.int64).reshape(n, -1)
        places: Any = range(n)
        if fields[_GONE]:
            places = np.flatnonzero(words[:, 0])  # an entry that is gone has no hash
            words = words[places]
        return self._column(items, region, words, lambda k: data + int(places[k]) * size)

    def _column(
        self, items: Any, region: Region, words: np.ndarray, place: Callable[[int], int]
    ) -> list:
        """The values of rows of words. place: where a row lies."""
        row = runtime.Word * words.shape[1]

        def listed(spec: Any, addresses: list[int]) -> list:
            if spec[1] is first_row:
                return self._records(spec[2], region, addresses)
            return [self._list(spec, region, at) for at in addresses]

        def other(spec: Any, k: int) -> Any:
            return self.value(spec, region, row.from_address(place(k)))

        return column(items, words, listed, other)

    def _records(self, items: Any, region: Region, addresses: list[int]) -> list:
        """The lists that records are, those that are not there yet made all at once."""
        small = self._small
        new = [at for at in dict.fromkeys(addresses) if at not in small]
        if new:
            row = ctypes.c_char * _Fields.from_address(new[0])[_SIZE]
            word, data = ctypes.c_int64.from_address, 8 * _DATA
            places = [word(at + data).value for at in new]
            held = b"".join(map(row.from_address, places))
            words = np.frombuffer(held, np.int64).reshape(len(new), -1)
            made = self._column(items, region, words, places.__getitem__)
            small.update(zip(new, made, strict=True))
            region.listed += len(new)
        return [small[at] for at in addresses]


# The fields of a buffer as words: those of a structure are read slowly.
_Fields = ctypes.c_int64 * (ctypes.sizeof(runtime.Buffer) // 8)
_OBJECT, _CHANGES, _CODE, _DATA, _DIMS = (
    getattr(runtime.Buffer, name).offset // 8
    for name in ("object", "changes", "code", "data", "dims")
)
_SIZE, _GONE = _DIMS + 4, _DIMS + 7


def _alike(shape: tuple, a: tuple, b: tuple) -> bool:
    """Whether strides lead to the same elements."""
    return (
        a == b or 0 in shape or all(n == 1 or s == t for n, s, t in zip(shape, a, b, strict=True))
    )


def _view(base: np.ndarray, dtype: np.dtype, shape: tuple, moved: int, steps: tuple) -> np.ndarray:
    """A part of an array's memory, `moved` bytes from its first element."""
    if 0 in shape:  # where it begins is nowhere
        nothing = base[:0] if base.ndim else base.reshape(1)[:0]
        return np.ndarray(shape, dtype, nothing, 0, steps)
    row = _row(base)
    if row is not None:
        at = runtime.data_of(base) - runtime.data_of(row) + moved
        made = np.ndarray(shape, dtype, row, at, steps)
        made.flags.writeable = is_writeable(base)
        return made
    if not moved and base.dtype == dtype:
        return np.lib.stride_tricks.as_strided(base, shape, steps, writeable=is_writeable(base))
    return np.asarray(_Holder(base, runtime.data_of(base) + moved, shape, steps, dtype))


def _row(base: np.ndarray) -> np.ndarray | None:
    """All of the array that NumPy makes the `base` of a view of `base`, in one row; None where it
    has gaps, or is read-only while `base` is not."""
    owner = base
    while not owner.flags.owndata and type(owner.base) is np.ndarray:
        owner = owner.base
    if is_writeable(base) and not is_writeable(owner):
        return None
    if not owner.flags.c_contiguous:
        owner = owner.T
    return owner.reshape(-1, copy=False) if owner.flags.c_contiguous else None


class _Holder:
    """Memory of an array from an address on."""

    def __init__(self, base: Any, address: int, shape: tuple, steps: tuple, dtype: np.dtype):
        self.base = base
        self.__array_interface__ = {
            "data": (address, not is_writeable(base)), "shape": shape, "strides": steps,
            "typestr": dtype.str, "version": 3,
        }  # fmt: skip
