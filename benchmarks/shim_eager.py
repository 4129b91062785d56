"""What one small eager call costs: in NumPy, in torch, in the shim, in torch's own NumPy shim.

Run: python benchmarks/shim_eager.py. Prints the median microseconds of a call on arrays of ten
float64 elements over several rounds, the contenders taking turns in one process, and ratios.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable

import np_compile.shim as shim
import numpy as np
import torch

CALLS = 5000
ROUNDS = 9


def contenders() -> dict[str, Callable[[], object]]:
    """Name -> a call on arrays of ten elements."""
    a, b = np.arange(10.0), np.ones(10)
    ta, tb = torch.from_numpy(a), torch.from_numpy(b)
    sa, sb = shim.from_numpy(a), shim.from_numpy(b)
    mask = a > 4
    tmask, smask = torch.from_numpy(mask), shim.from_numpy(mask)
    found = {
        "np.add": lambda: np.add(a, b),
        "torch.add": lambda: torch.add(ta, tb),
        "shim.add": lambda: shim.add(sa, sb),
        "shim a + b": lambda: sa + sb,
        "shim a * 2.5": lambda: sa * 2.5,
        "np.sum": lambda: np.sum(a),
        "torch.sum": lambda: torch.sum(ta),
        "shim.sum": lambda: shim.sum(sa),
        "np.where": lambda: np.where(mask, a, b),
        "torch.where": lambda: torch.where(tmask, ta, tb),
        "shim.where": lambda: shim.where(smask, sa, sb),
        "shim a[3]": lambda: sa[3],
        "shim a[2:5]": lambda: sa[2:5],
        "shim a[3] = 1.5": lambda: sa.__setitem__(3, 1.5),
    }
    try:
        import torch._numpy as torch_numpy

        na, nb = torch_numpy.asarray(a), torch_numpy.asarray(b)
        found["torch._numpy.add"] = lambda: torch_numpy.add(na, nb)
    except ImportError:
        pass
    return found


def microseconds(call: Callable[[], object]) -> float:
    """Time of one call."""
    start = time.thread_time()
    for _ in range(CALLS):
        call()
    return (time.thread_time() - start) / CALLS * 1e6


def main() -> None:
    """Print the table."""
    calls = contenders()
    times: dict[str, list[float]] = {name: [] for name in calls}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(ROUNDS):
            for name, call in calls.items():
                times[name].append(microseconds(call))
    medians = {name: statistics.median(t) for name, t in times.items()}
    print(f"{'call':<20}{'µs':>8}{'x np.add':>10}{'x torch.add':>13}")
    for name, t in medians.items():
        ratio, torch_ratio = t / medians["np.add"], t / medians["torch.add"]
        print(f"{name:<20}{t:8.2f}{ratio:10.1f}{torch_ratio:13.1f}")


if __name__ == "__main__":
    main()
