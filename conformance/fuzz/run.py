"""Runs a program plainly and compiled, and says what differs."""

from __future__ import annotations

import contextlib
import re
import types
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

import np_compile
from np_compile.reader.reading import Reading

from .compare import Seen, described, difference, observe
from .documented import forms
from .loan import on_tensors, without_scalars
from .maker import (
    Program,
    adds,
    divides,
    leaves_signs_open,
    multiplies_complex,
    sizes_complex,
)

# Errors of a recorded segment's data come when it runs, and nothing of it is written then: see
# docs/deviations.md, "Errors".
LATE = ("IndexError", "OverflowError")
_NAN = "ValueError", "cannot convert float NaN to integer"


def _is_late(error: tuple[str, str] | None) -> bool:
    return error is not None and (error[0] in LATE or error == _NAN)


@dataclass(frozen=True)
class Setup:
    """How programs are compiled, and on which device their arrays live: in host memory, if none is
    named. settings: np_compile's, as pairs."""

    backend: str = "native"
    dynamic: bool | None = None
    settings: tuple[tuple[str, Any], ...] = ()
    device: str | None = None

    def __str__(self) -> str:
        words = [f"backend={self.backend!r}", f"dynamic={self.dynamic}", f"device={self.device!r}"]
        return ", ".join(words + [f"{name}={value!r}" for name, value in self.settings])


@dataclass
class Outcome:
    """finding: what differs, empty if nothing does. seen: words for the statistics."""

    finding: str = ""
    seen: Counter = field(default_factory=Counter)


def load(path: Path, source: str | None = None) -> types.ModuleType:
    """A new module of a file. source: in the place of what stands there."""
    module = types.ModuleType(path.stem)
    module.__file__ = str(path)
    text = path.read_text(encoding="utf-8") if source is None else source
    exec(compile(text, str(path), "exec", dont_inherit=True), vars(module))
    return module


def _state(module: types.ModuleType) -> dict[str, Any]:
    """What a module's names hold, but for functions, classes and modules."""
    fixed = (types.FunctionType, types.ModuleType, type)
    return {
        k: v for k, v in vars(module).items() if not k.startswith("__") and not isinstance(v, fixed)
    }


def observed(module: types.ModuleType, f: Callable) -> tuple[list[Seen], list[Any]]:
    """All calls of a module's history with f; and what their results are at the end of it."""
    seen, results = [], []
    np.random.seed(0)
    history = module.history()
    sent = None
    while True:
        try:
            arguments = history.send(sent)
        except StopIteration:
            return seen, [described(r) for r in results]
        call, sent = observe(f, arguments, lambda: _state(module))
        seen.append(call)
        results.append(sent)


# dtypes of the floats that a source names, the least precise first; and of integers, which have
# elementary functions in these.
_FLOATS = (("f2", "float16"), np.float16), (("f4", "c8", "float32"), np.float32)
_WIDENED = (("i1", "u1", "?"), np.float16), (("i2", "u2"), np.float32)
_ELEMENTARY = re.compile(r"np\.(exp|expm1|log|log1p|sin|cos|tan|tanh|arctan|hypot|sqrt|arctan2)\(")


def _unit(source: str) -> float:
    """The last place of the least precise floats that a source computes with."""
    integers = _WIDENED if _ELEMENTARY.search(source) else ()
    for words, dtype in sorted((*_FLOATS, *integers), key=lambda row: np.finfo(row[1]).bits):
        if any(f"'{w}'" in source or f'"{w}"' in source or f"np.{w}" in source for w in words):
            return float(np.finfo(dtype).eps)
    return float(np.finfo(np.float64).eps)


def run_plainly(
    path: Path, device: str | None = None, source: str | None = None
) -> tuple[bool, list[Seen], list[Any]]:
    """The program of a file in NumPy: whether it is one of tensors, its calls, its results. device:
    of tensors that the program makes. source: in the place of the file's."""
    plain = load(path, source)
    tensors = hasattr(plain, "ON_TENSORS")
    program = without_scalars(plain.program) if tensors else plain.program
    with _place(None if tensors else device):
        return tensors, *observed(plain, program)


def _place(device: str | None) -> contextlib.AbstractContextManager:
    return torch.device(device) if device else contextlib.nullcontext()


def run(path: Path, exact: bool, setup: Setup) -> Outcome:
    """The program of a file, in both ways."""
    outcome = Outcome()
    tensors, wanted, kept = run_plainly(path, setup.device)
    outcome.seen["calls"] += len(wanted)
    outcome.seen["calls with an exception"] += sum(s.error is not None for s in wanted)
    module = load(path)
    own = np_compile.wrap_numpy(module.program) if tensors else module.program
    fast = np_compile.compile(own, backend=setup.backend, dynamic=setup.dynamic)
    place = _place(None if tensors else setup.device)
    with np_compile.config.patch(**dict(setup.settings)), place:
        got, got_kept = observed(module, on_tensors(fast, setup.device) if tensors else fast)
    _notes(fast, outcome.seen)
    reading = fast._reading if isinstance(fast._reading, Reading) else None
    failed = reading.given_up if reading is not None else ""
    if failed.startswith("the C compiler"):
        outcome.finding = failed
        return outcome
    source = path.read_text(encoding="utf-8")
    unit = _unit(source)
    exact = exact and not multiplies_complex(source)
    if setup.backend != "native" or setup.device:
        exact = exact and not sizes_complex(source)
    signs = exact and not leaves_signs_open(source)
    sums = adds(source)
    poles = not signs and divides(source)
    backwards = tensors and ("::-" in source or "np.flip" in source)
    late = outcome.seen["recorded segments"] > 0

    def differing(wanted: list[Seen], kept: list[Any]) -> str:
        if backwards:  # torch has nothing that does: results that do are copies
            for call in (*got, *wanted):
                call.sharing = []
        for k, (g, w) in enumerate(zip(got, wanted, strict=False)):
            if late and _is_late(w.error) and _is_late(g.error):
                return ""  # nothing can be said of the calls after it
            found = difference(g, w, exact, unit, signs, poles, sums)
            if found:
                return f"call {k + 1}: {found}"
        if len(got) != len(wanted):
            return f"{len(got)} calls; NumPy has {len(wanted)}"
        later = [Seen(x, None, (), (), [], "") for x in (got_kept, kept)]
        found = difference(*later, exact, unit, signs, poles, sums)
        return f"after the last call: {found}" if found else ""

    outcome.finding = differing(wanted, kept)
    for what, form in forms(source, late) if outcome.finding else ():
        _, *seen = run_plainly(path, setup.device, form)
        if not differing(*seen):
            outcome.finding = ""
            outcome.seen[f"documented: {what}"] += 1
            break
    return outcome


def _notes(fast: Any, seen: Counter) -> None:
    """What became of a program."""
    programs = np_compile.recompiles(fast)
    seen["recorded segments"] += len(programs)
    seen["NumPy calls in them"] += sum(len(p.calls) for p in programs)
    reading = fast._reading if isinstance(fast._reading, Reading) else None
    regions = sum(map(len, reading._regions.values())) if reading is not None else 0
    if regions:
        seen["read whole" if not reading._refused else "read in part"] += 1
    if programs:
        seen["recorded"] += 1
    if fast._keeper is not None and (fast._keeper.kept or fast._keeper.for_sizes):
        seen["calls kept"] += 1
    if not regions and not programs:
        seen["neither read nor recorded"] += 1
    if reading is not None and reading.is_tried:
        whys = {r.why for r in reading._refused.values()} or {reading.given_up} - {""}
        for why in whys:
            seen["refused: " + re.sub(r"\d+", "#", re.sub(r"['\"`].*", "...", why))[:70]] += 1


def agree(file: str, exact: bool, **options: Any) -> None:
    """Assert that a file's program does compiled what it does plainly. options: of `Setup`."""
    setup = Setup(**options)
    found = run(Path(file), exact, setup).finding
    assert not found, f"{found} ({setup})"


def written(program: Program, path: Path) -> Path:
    """The file of a program."""
    path.write_text(program.source, encoding="utf-8")
    return path
