"""What was measured, as ratios, bars, tables and a picture."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from . import handwritten
from .contenders import DEFAULT, REFERENCES
from .programs import LOOPS, PROGRAMS, SIZES, Program


def result(program: Program, size: str, outcomes: dict[str, dict]) -> dict[str, Any]:
    """One program and size, as it stands in the JSON file."""
    return {
        "program": program.name,
        "group": program.group,
        "section": program.section,
        "size": size,
        "shape": list(program.sizes[size]),
        "python_loop": program.python_loop,
        "scalar_loop": program.scalar_loop,
        "contenders": outcomes,
    }


def ran(row: dict, name: str | None) -> bool:
    """Whether a contender gave NumPy's result and was timed."""
    return row["contenders"].get(name, {}).get("status") == "ok"


def reference(results: list[dict]) -> str | None:
    """The contender that the others are compared with: the first of REFERENCES that ran."""
    for name in REFERENCES:
        if any(ran(row, name) for row in results):
            return name
    return None


def ratio(row: dict, of: str, to: str | None) -> float | None:
    """Median over the rounds of one contender's time by another's; None unless both ran."""
    if to is None or not (ran(row, of) and ran(row, to)):
        return None
    a, b = row["contenders"][of]["rounds_s"], row["contenders"][to]["rounds_s"]
    return statistics.median(x / y for x, y in zip(a, b, strict=True))


def geometric_mean(ratios: Iterable[float]) -> float | None:
    """None for no ratios."""
    logs = [math.log(r) for r in ratios]
    return math.exp(statistics.fmean(logs)) if logs else None


@dataclass(frozen=True)
class Bar:
    """What is demanded of the reference in one section, against the best of some contenders.

    Each ratio (contender's time by the reference's) must be at least `least`, their geometric mean
    with each contender at least `mean`; best: with the best contender of each program and size.
    busy: whether it holds for a run with a busy core, or for one without.
    """

    text: str
    against: tuple[str, ...]
    counts: Callable[[dict], bool]
    least: float
    mean: float | None = None
    best: bool = False
    section: str = "arrays"
    busy: bool = False


def _any(row: dict) -> bool:
    return True


def _not_small(row: dict) -> bool:
    return row["size"] != "small"


def _fair_to_loops(row: dict) -> bool:
    """From 10^4 elements up; loops in Python at 10^6 only; loops over single elements not."""
    if row["scalar_loop"]:
        return False
    return row["size"] == "large" or (row["size"] == "medium" and not row["python_loop"])


def _by_hand(row: dict) -> bool:
    return row["size"] == "large" and row["program"] in handwritten.MAKERS


BARS = (
    Bar("C by hand: at most 1.15 times its time", ("c",), _by_hand, 1 / 1.15),
    Bar("torch.compile: faster everywhere, mean 2", ("torch",), _any, 1.0, 2.0),
    Bar(
        "Numba and JAX: mean 1.5 with each, at most 1.1 times the best of both",
        ("numba", "jax"),
        _fair_to_loops,
        1 / 1.1,
        1.5,
    ),
    Bar("NumPy: not slower from 10^4 elements up", ("numpy",), _not_small, 1.0),
    Bar(
        "a busy core: at most 2 times NumPy's time, from 10^4 elements up",
        ("numpy",),
        _not_small,
        0.5,
        busy=True,
    ),
    Bar(
        "loops, Numba's variants and Pythran: mean 1.2 with the best, at most 1.15 times its time",
        ("njit", "numba", "pythran"),
        _not_small,
        1 / 1.15,
        1.2,
        best=True,
        section=LOOPS,
    ),
    Bar(
        "loops, C by hand: at most 1.3 times its time",
        ("c",),
        _by_hand,
        1 / 1.3,
        section=LOOPS,
    ),
    Bar("loops, NumPy: not slower, mean 30", ("numpy",), _any, 1.0, 30.0, section=LOOPS),
)
FIRST_CALL_BARS = (("empty_cache", 0.6), ("full_cache", 0.1))
WORST_FIRST_CALL = 2.0  # of a loop


def judge(bar: Bar, results: list[dict], ours: str | None) -> dict[str, Any] | None:
    """How a bar was met; None where nothing was measured that it is about."""
    misses: list[tuple[float, str]] = []
    ratios: dict[str, list[float]] = {
        name: [] for name in (("the best of them",) if bar.best else bar.against)
    }
    unmeasured = []
    lowest = math.inf, ""
    for row in results:
        if row["section"] != bar.section or not bar.counts(row):
            continue
        found = {name: ratio(row, name, ours) for name in bar.against}
        known = {name: r for name, r in found.items() if r is not None}
        place = f"{row['program']} {row['size']}"
        if known:
            name, worst = min(known.items(), key=lambda item: item[1])
            lowest = min(lowest, (worst, f"{place} ({name} {_factor(worst)})"))
            if worst < bar.least:
                misses.append((worst, f"{place} ({name} {_factor(worst)})"))
            for name, r in ({"the best of them": worst} if bar.best else known).items():
                ratios[name].append(r)
        elif ours is not None and not ran(row, ours) and ours in row["contenders"]:
            unmeasured.append(place)
    if not any(ratios.values()) and not unmeasured:
        return None
    means = {name: geometric_mean(values) for name, values in ratios.items()}
    low = [n for n, m in means.items() if bar.mean and m is not None and m < bar.mean]
    return {
        "bar": bar.text,
        "met": not misses and not low and not unmeasured,
        "programs": max(map(len, ratios.values())),
        "geometric_means": means,
        "mean_demanded": bar.mean,
        "worst": lowest[1],
        "missed_by": [place for _, place in sorted(misses)],
        "without_result": unmeasured,
    }


def judge_first_calls(figures: dict[str, dict]) -> list[dict[str, Any]]:
    """The first calls' bars: of outer_sum with the import of np_compile, of loops without it."""
    loops = [name for name in figures if PROGRAMS[name].section == LOOPS]
    found = []
    for which, most in FIRST_CALL_BARS:
        words = which.replace("_", " ")
        if "outer_sum" in figures:
            parts = figures["outer_sum"][which]
            total = parts.get("import_s", math.inf) + parts.get("call_s", math.inf)
            found.append(
                {
                    "bar": f"first call of outer_sum, {words}: at most {most} s",
                    "met": total <= most,
                    "seconds": total if math.isfinite(total) else None,
                    "detail": str(parts),
                }
            )
        if loops:
            times = {name: figures[name][which].get("call_s", math.inf) for name in loops}
            middle = statistics.median(times.values())
            slow = sorted(loops, key=lambda name: -times[name])
            over = [f"{n} {seconds(times[n])}" for n in slow if times[n] > WORST_FIRST_CALL]
            found.append(
                {
                    "bar": f"first calls of loops, {words}: median at most {most} s, "
                    f"none over {WORST_FIRST_CALL:g} s",
                    "met": middle <= most and not over,
                    "seconds": middle if math.isfinite(middle) else None,
                    "detail": f"the longest {slow[0]}, {seconds(times[slow[0]])}"
                    + (f"; over the limit {', '.join(over)}" if over else ""),
                }
            )
    return found


def summarize(figures: dict[str, Any]) -> None:
    """Add the ratios, the geometric means of each section, and the bars to the figures."""
    results = figures["results"]
    ours = reference(results)
    figures["reference"] = ours
    for row in results:
        for name, outcome in row["contenders"].items():
            outcome["ratio"] = ratio(row, name, ours)
    figures["geometric_means"] = {
        section: {
            size: {
                name: geometric_mean(
                    r
                    for row in results
                    if (row["section"], row["size"]) == (section, size)
                    and (r := ratio(row, name, ours)) is not None
                )
                for name in figures["options"]["contenders"]
            }
            for size in figures["options"]["sizes"]
        }
        for section in DEFAULT
        if any(row["section"] == section for row in results)
    }
    busy = figures["options"]["busy"]
    judged = [judge(bar, results, ours) for bar in BARS if bar.busy == busy and ours != "numpy"]
    figures["bars"] = [j for j in judged if j is not None]
    figures["bars"] += judge_first_calls(figures.get("first_calls", {}))


def seconds(value: float | None) -> str:
    """A time with a unit, four characters of figures at most."""
    if value is None:
        return "-"
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * scale >= 1 or unit == "µs":
            return f"{value * scale:.3g} {unit}"
    return ""


def _factor(value: float | None) -> str:
    if value is None:
        return ""
    for below, form in ((0.1, ".1g"), (10.0, ".2f"), (1e4, ".0f")):
        if value < below:
            return f"{value:{form}}"
    return f"{value:.0e}"


def _cell(outcome: dict | None) -> str:
    if outcome is None:
        return "-"
    if outcome["status"] != "ok":
        return {"wrong": "WRONG", "failed": "failed", "unsupported": "-"}[outcome["status"]]
    return f"{seconds(outcome['median_s']):>8} {_factor(outcome['ratio']):>6}"


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Columns set under each other; the first two to the left, the others to the right."""
    lines = [heads, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _rows(figures: dict, section: str) -> tuple[list[dict], list[str]]:
    """The results of a section, and the contenders that have any there."""
    rows = [row for row in figures["results"] if row["section"] == section]
    names = figures["options"]["contenders"]
    return rows, [n for n in names if any(n in row["contenders"] for row in rows)]


def _times(figures: dict, section: str) -> str:
    rows, names = _rows(figures, section)
    lines = [
        [row["program"], row["size"], *(_cell(row["contenders"].get(n)) for n in names)]
        for row in rows
    ]
    for size, means in figures["geometric_means"][section].items():
        lines.append(["geometric mean", size, *(_factor(means[n]) for n in names)])
    return table(["program", "size", *names], lines)


def _first_calls(figures: dict, section: str) -> str:
    rows, names = _rows(figures, section)
    lines = [
        [
            row["program"],
            row["size"],
            *(seconds(row["contenders"].get(n, {}).get("first_call_s")) for n in names),
        ]
        for row in rows
    ]
    return table(["first calls", "size", *names], lines)


def _notes(figures: dict) -> list[str]:
    """Why contenders did not run, or what they got wrong; one line where all sizes agree."""
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for row in figures["results"]:
        for name, outcome in row["contenders"].items():
            if outcome["status"] != "ok":
                why = f"{outcome['status'].upper()}: {outcome['reason']}"
                reasons.setdefault((name, row["program"], why), []).append(row["size"])
    lines = []
    everywhere: dict[tuple[str, str], list[str]] = {}
    for (name, program, why), sizes in reasons.items():
        if why.startswith("UNSUPPORTED"):
            everywhere.setdefault((name, why), []).append(program)
        else:
            lines.append(f"{name}, {program} ({', '.join(sizes)}): {why}")
    for (name, why), programs in everywhere.items():
        many = f"{len(programs)} programs" if len(programs) > 3 else ", ".join(programs)
        lines.append(f"{name}, {many}: {why}")
    return lines


def _bars(figures: dict) -> list[str]:
    lines = []
    for j in figures["bars"]:
        lines.append(f"{'met   ' if j['met'] else 'MISSED'}  {j['bar']}")
        if "seconds" in j:
            lines.append(f"          {seconds(j['seconds'])}; {j['detail']}")
            continue
        means = ", ".join(f"{n} {_factor(m)}" for n, m in j["geometric_means"].items() if m)
        lines.append(f"          geometric mean of {j['programs']}: {means}; worst {j['worst']}")
        if j["missed_by"]:
            lines.append(f"          missed by {', '.join(j['missed_by'])}")
        if j["without_result"]:
            lines.append(f"          no result for {', '.join(j['without_result'])}")
    return lines


def text(figures: dict[str, Any]) -> str:
    """All tables."""
    m = figures["machine"]
    versions = ", ".join(f"{k} {v}" for k, v in m["versions"].items())
    busy = ", another process keeps a core busy" if figures["options"]["busy"] else ""
    parts = [
        f"{m['cpu']}, {m['cores']} cores{busy}; Python {m['python']}, {versions}",
        f"Times of a call, and how many times that of {figures['reference']} they are "
        f"({figures['seconds']:.0f} s in all).",
    ]
    for section in figures["geometric_means"]:
        parts += [_times(figures, section), _first_calls(figures, section)]
    for title, lines in (("Not measured, or wrong:", _notes(figures)), ("Bars:", _bars(figures))):
        if lines:
            parts.append("\n".join((title, *(f"  {line}" for line in lines))))
    return "\n\n".join(parts)


def listing() -> str:
    """The programs, with their sizes."""
    rows = [
        [p.name, p.group, " ".join("x".join(map(str, p.sizes[s])) for s in SIZES), p.description]
        for p in PROGRAMS.values()
    ]
    width = [max(len(row[i]) for row in rows) for i in range(3)]
    return "\n".join(
        "  ".join([*(cell.ljust(w) for cell, w in zip(row[:3], width, strict=True)), row[3]])
        for row in rows
    )


def plot(figures: dict[str, Any], path: str) -> None:
    """Draw each contender's time by the reference's, programs down, one panel for each size."""
    from matplotlib.figure import Figure

    ours, results = figures["reference"], figures["results"]
    wanted = figures["options"]["contenders"]
    names = [n for n in wanted if n != ours and any(ran(row, n) for row in results)]
    programs = list(dict.fromkeys(row["program"] for row in results))
    sizes = figures["options"]["sizes"]
    height = 1.6 + 0.23 * len(programs)
    figure = Figure(figsize=(2.5 + 3.8 * len(sizes), height), layout="constrained")
    panels = figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
    for panel, size in zip(panels, sizes, strict=True):
        for k, name in enumerate(names):
            dots = [
                (r, programs.index(row["program"]))
                for row in results
                if row["size"] == size and (r := ratio(row, name, ours)) is not None
            ]
            marker = "osD^vPX*dh"[k % 10]
            x, y = [d[0] for d in dots], [d[1] for d in dots]
            panel.scatter(x, y, s=22, marker=marker, color=f"C{k}", alpha=0.85, label=name)
        panel.axvline(1.0, color="black", linewidth=1)
        panel.set_xscale("log")
        panel.set_title(size)
        panel.set_xlabel(f"time / time of {ours}")
        panel.grid(True, which="major", color="0.9")
        panel.set_axisbelow(True)
    panels[0].set_yticks(range(len(programs)), programs)
    panels[0].set_ylim(len(programs) - 0.5, -0.5)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper center", ncols=4, frameon=False,
        title=f"{figures['machine']['cpu']}, {figures['machine']['cores']} cores",
    )  # fmt: skip
    figure.savefig(path, dpi=150)
