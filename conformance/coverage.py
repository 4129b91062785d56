"""docs/coverage.md: what each public name of NumPy's is in the shim and in a compiled function."""

from __future__ import annotations

import types
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import np_compile.shim as shim
import numpy as np
import torch
from np_compile.shim._handed import Handed

from tests.shim.gradients import TABLE as GRADIENTS

PAGE = Path(__file__).parent.parent / "docs" / "coverage.md"
MODULES = (np, np.linalg, np.fft, np.random)

COMPILED = {
    shim.Kind.ARRAY: "recorded",
    shim.Kind.QUERY: "answered at once",
    shim.Kind.DATA: "runs between kernels: its shape, value or calls need the data",
    shim.Kind.LIBRARY: "runs between kernels: it may fail on its data",
    shim.Kind.IMPURE: "runs in NumPy: it draws numbers",
}

HEAD = """# Coverage

What the public names of NumPy are here. `python -m conformance coverage` writes this page from the
shim's table; do not edit it.

- **tensors**: computed with torch, on any device. **NumPy**: the shim hands the call over to NumPy,
  on the same memory; a compiled function does so between its kernels. **NumPy's own**: the object
  itself is handed out, as no array goes in or comes out.
- **gradient**: whether the function is differentiable, and checked to be in
  `tests/shim/gradients.py`; empty where no call with plain arrays of floats gives floats.
"""


def _attempts() -> Iterator[tuple]:
    x = np.random.default_rng(0).uniform(0.2, 0.8, (3, 3))
    for shape in ((3, 3), (3,), ()):
        a = x[tuple(slice(n) for n in shape)] if shape else x[0, 0]
        yield (a,)
        yield (a, x[: len(a)] if shape == (3, 3) else a)
        yield ([a, a],)
        yield (a, 1)
        yield (a, 0, 1)
        yield (a, a, a)
    yield (x[0], x[1], x[2])
    yield (x, 0.5)
    yield (x[0], 2)


def _traced(value: Any) -> Any:
    if isinstance(value, list):
        return [_traced(v) for v in value]
    if isinstance(value, (np.ndarray, np.floating)):
        return shim.from_tensor(torch.tensor(np.asarray(value), requires_grad=True))
    return value


def _carries(result: Any) -> bool | None:
    if type(result) is shim.ndarray:
        t = result._t
        return t.requires_grad if t.is_floating_point() or t.is_complex() else None
    if isinstance(result, (tuple, list)):
        found = [c for c in map(_carries, result) if c is not None]
        return any(found) if found else None
    return None


def carries(row: shim.Row) -> bool | None:
    """Whether a row's result carries gradients; None where no result of floats was seen."""
    if row.kind is shim.Kind.IMPURE or isinstance(row.function, type):
        return None
    answer = None
    for arguments in _attempts():
        try:
            with shim.strict(), np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = _carries(row.function(*map(_traced, arguments)))
        except Exception:  # no call of this function
            continue
        if found:
            return True
        answer = answer if found is None else False
    return answer


def state(name: str, own: Any, found: Any) -> tuple[str, str, str]:
    """How a name is had, what a compiled function does with it, and whether gradients pass."""
    row = shim.TABLE.get(name)
    if row is not None and row.kind is not shim.Kind.IMPURE:
        differentiable = "yes" if name in GRADIENTS else "" if carries(row) is None else "no"
        return "tensors", COMPILED[row.kind], differentiable
    if row is not None and not isinstance(row.function, type):
        return "NumPy", COMPILED[row.kind], ""
    if name == "ndarray":
        return "tensors", "stand-ins", ""
    if isinstance(own, types.ModuleType):
        return ("NumPy's own" if found is own else "NumPy"), "", ""
    if isinstance(found, (Handed, shim.ufunc)) or hasattr(found, "__numpy__"):
        return "NumPy", "runs in NumPy", ""
    if isinstance(found, type) and issubclass(found, Handed):
        return "NumPy", "runs in NumPy", ""
    return "NumPy's own", "", ""


def names(module: types.ModuleType) -> list[str]:
    """The public names of a module of NumPy's."""
    return sorted(n for n in module.__all__ if not n.startswith("_"))


def page() -> str:
    """The text of docs/coverage.md."""
    parts = [HEAD]
    totals = []
    for module in MODULES:
        short = module.__name__.removeprefix("numpy").lstrip(".")
        counts: Counter = Counter()
        lines = ["| name | state | in a compiled function | gradient |", "|---|---|---|---|"]
        for name in names(module):
            path = f"{short}.{name}" if short else name
            own = getattr(module, name)
            found = shim
            for part in path.split("."):
                found = getattr(found, part)
            how = state(path, own, found)
            counts[how[0]] += 1
            lines.append(f"| `{name}` | {' | '.join(how)} |")
        told = ", ".join(f"{n} {what}" for what, n in counts.most_common())
        totals.append(f"- `{module.__name__}`: {sum(counts.values())} names: {told}")
        parts.append(f"## {module.__name__}\n\n" + "\n".join(lines) + "\n")
    parts.insert(1, "\n".join(totals) + "\n")
    return "\n".join(parts)


def write() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
