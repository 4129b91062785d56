"""Arrays joined by brackets: `np.r_[x, 0.0, 1:5]`, `np.c_[x, y]`."""

from __future__ import annotations

from typing import Any

import numpy as np

_PYTHON = (bool, int, float, complex)


def bracketed(xp: Any, own: Any, key: Any) -> Any:
    """What `own[key]` gives, `own` being `np.r_` or `np.c_`, by functions of the namespace `xp`.
    None where NumPy itself has to make it: matrices, and what it refuses."""
    items = list(key) if isinstance(key, tuple) else [key]
    axis, ndim, place = own.axis, own.ndmin, own.trans1d
    if items and isinstance(items[0], str):
        try:
            given = [int(n) for n in items.pop(0).split(",")]
        except ValueError:
            return None
        axis, ndim, place = (*given, *(axis, ndim, place)[len(given) :])
    if not items or ndim < 1 or any(isinstance(i, str) for i in items):
        return None
    parts = [_range(xp, i) if isinstance(i, slice) else i for i in items]
    numbers = [type(p) in _PYTHON or isinstance(p, np.generic) for p in parts]
    arrays = [p if n else xp.asarray(p) for p, n in zip(parts, numbers, strict=True)]
    kinds = [a if n else a.dtype for a, n in zip(arrays, numbers, strict=True)]
    made = []
    for a in arrays:
        t = xp.asarray(a, dtype=np.result_type(*kinds))
        new = max(ndim - t.ndim, 0)
        before = place if place >= 0 else place + new + 1
        if new and t.ndim and not 0 <= before <= new:
            return None
        if new:
            axes = (None,) * (before if t.ndim else new)
            t = t[(*axes, ..., *(None,) * (new - len(axes)))]
        made.append(t)
    return xp.concatenate(made, axis=axis)


def _range(xp: Any, item: slice) -> Any:
    start, step = (item.start or 0), (1 if item.step is None else item.step)
    if isinstance(step, complex):
        return xp.linspace(start, item.stop, num=int(abs(step)))
    return xp.arange(start, item.stop, step)
