"""Run the benchmark programs by every contender, one process for each program.

python -m benchmarks [PROGRAM ...] [--group GROUP ...] [--sizes small medium large]
                     [--contenders numpy native ...]
                     [--rounds N] [--limit SECONDS] [--threads N] [--busy]
                     [--json FILE] [--plot FILE] [--list]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from . import report
from .contenders import CONTENDERS, DEFAULT
from .programs import LOOPS, PROGRAMS, SIZES

ROOT = Path(__file__).parent.parent
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NPROC",  # XLA's pool
)
PACKAGES = ("numpy", "torch", "numba", "pythran", "jax", "jaxlib", "np_compile")
PROGRAM_SECONDS = 3600.0  # for all sizes of a program; then its process is ended
# Measured processes for each first call, and the size: of outer_sum, the time itself is the bar; of
# loops, the median and the worst of many programs, on a size whose run takes next to nothing.
FIRST_CALLS = {"outer_sum": (3, "large")}
FIRST_CALLS |= {p.name: (1, "small") for p in PROGRAMS.values() if p.section == LOOPS}
UNREPORTED = ("bytecode", "cache", "list")


def environment(cache: str, threads: int | None, bytecode: str | None) -> dict[str, str]:
    """The variables of a measuring process: compilers start with an empty cache in `cache`, modules
    with what lies in `bytecode`."""
    variables = dict(os.environ)
    variables["XDG_CACHE_HOME"] = cache
    variables["NP_COMPILE_CACHE_DIR"] = f"{cache}/np_compile"
    variables["NP_COMPILE_COMPILE_IN"] = "call"
    variables["TORCHINDUCTOR_CACHE_DIR"] = f"{cache}/inductor"
    if bytecode is not None:
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        variables["PYTHONPYCACHEPREFIX"] = bytecode
    if threads is not None:
        variables.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    return variables


def run_process(
    name: str, options: argparse.Namespace, contenders: list[str], sizes: list[str], *more: str
) -> tuple[list[dict], str]:
    """The lines that a measuring process wrote, and why it ended early (empty if it did not)."""
    with tempfile.TemporaryDirectory(prefix="np_compile_benchmark_") as folder:
        target = f"{folder}/report"
        command = [
            *(sys.executable, "-W", "ignore", "-m", "benchmarks.measure", name),
            *("--report", target, "--sizes", *sizes, "--contenders", *contenders),
            *("--rounds", str(options.rounds), "--limit", str(options.limit), *more),
        ]
        cache = options.cache or f"{folder}/cache"
        with open(f"{folder}/text", "w+", encoding="utf-8", errors="replace") as text:
            try:
                status = subprocess.run(
                    command,
                    cwd=ROOT,
                    env=environment(cache, options.threads, options.bytecode),
                    stdout=text,
                    stderr=subprocess.STDOUT,
                    timeout=PROGRAM_SECONDS,
                ).returncode
                ended = f"crashed, status {status}" if status else ""
            except subprocess.TimeoutExpired:
                ended = f"the process was stopped after {PROGRAM_SECONDS:g} s"
            text.seek(0)
            last = [line for line in text.read().splitlines() if line.strip()][-1:]
        lines = []
        if os.path.exists(target):
            for line in Path(target).read_text(encoding="utf-8").splitlines():
                with contextlib.suppress(ValueError):  # a killed process leaves half a line
                    lines.append(json.loads(line))
    return lines, (f"{ended}: {last[0][:200]}" if ended and last else ended)


def contenders_of(name: str, options: argparse.Namespace) -> list[str]:
    """Who runs a program: those that are named, else those of its section."""
    return list(options.contenders or DEFAULT[PROGRAMS[name].section])


def run_program(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """One result for each size. A contender that ends the process is left out of the next try."""
    contenders, sizes = contenders_of(name, options), list(options.sizes)
    lost: dict[str, str] = {}
    results = []
    while sizes and contenders:
        lines, ended = run_process(name, options, contenders, sizes)
        for line in lines:
            if "result" in line:
                sizes.remove(line["size"])
                gone = {n: {"status": "failed", "reason": r} for n, r in lost.items()}
                results.append(report.result(PROGRAMS[name], line["size"], line["result"] | gone))
        if not ended:
            break
        culprits = [line["doing"] for line in lines if "doing" in line]
        if not culprits or culprits[-1] not in contenders:
            raise RuntimeError(f"{name}: {ended}")
        reasons = [line["out"] for line in lines if "out" in line]
        lost[culprits[-1]] = reasons[0] if reasons else ended
        contenders.remove(culprits[-1])
    return results


def measure_first_calls(
    names: list[str], options: argparse.Namespace, backend: str
) -> dict[str, dict[str, Any]]:
    """The first call of each program in a new process, with an empty cache and with a full one.

    Medians of a few processes. The modules' bytecode lies ready, as it does once a package has been
    imported before.
    """
    with tempfile.TemporaryDirectory(prefix="np_compile_benchmark_") as bytecode:

        def measure(name: str, cache: str) -> dict[str, Any]:
            shared = argparse.Namespace(**vars(options) | {"cache": cache, "bytecode": bytecode})
            more = ("--first-call", backend)
            lines, ended = run_process(name, shared, ["numpy"], [FIRST_CALLS[name][1]], *more)
            return lines[-1]["first_call"] if lines else {"failed": ended}

        def runs(name: str, number: int) -> dict[str, dict[str, Any]]:
            found: dict[str, list[dict[str, Any]]] = {"empty_cache": [], "full_cache": []}
            for _ in range(number):
                with tempfile.TemporaryDirectory(prefix="np_compile_benchmark_") as cache:
                    for each in found.values():
                        each.append(measure(name, cache))
            return {which: _middle(each) for which, each in found.items()}

        runs(names[0], 1)  # writes the bytecode
        return {name: runs(name, FIRST_CALLS[name][0]) for name in names}


def _middle(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The run of the median time; a failed one, if there is any."""
    failed = [run for run in runs if "failed" in run]
    return failed[0] if failed else sorted(runs, key=lambda r: sum(r.values()))[len(runs) // 2]


@contextlib.contextmanager
def busy_core(wanted: bool) -> Iterator[None]:
    """Another process keeps one core busy, the last one this process may use."""
    if not wanted:
        yield
        return
    pin = ""
    if hasattr(os, "sched_getaffinity"):
        pin = f"import os; os.sched_setaffinity(0, {{{max(os.sched_getaffinity(0))}}})\n"
    loop = subprocess.Popen([sys.executable, "-c", f"{pin}while True: pass"])
    try:
        yield
    finally:
        loop.kill()
        loop.wait()


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    versions = {}
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    cpu = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                cpu = line.partition(":")[2].strip()
                break
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    system = f"{platform.system()} {platform.machine()}"
    waiting = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", *THREAD_VARIABLES)
    return {
        "python": platform.python_version(),
        "environment": {name: os.environ[name] for name in waiting if name in os.environ},
        "versions": versions,
        "system": system,
        "cpu": cpu,
        "cores": cores,
    }


def write(figures: dict[str, Any], path: str) -> None:
    """All figures as JSON."""
    Path(path).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Time NumPy programs by every contender; see benchmarks/README.md.",
    )
    made.add_argument("programs", nargs="*", metavar="PROGRAM", help="all, unless some are named")
    groups = sorted({group for p in PROGRAMS.values() for group in (p.group, p.section)})
    made.add_argument(
        "--group", nargs="+", choices=groups, help="all programs of groups; arrays: all but loops"
    )
    made.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    made.add_argument("--contenders", nargs="+", choices=CONTENDERS)
    made.add_argument("--rounds", type=_positive, default=7, help="rounds of each size (7)")
    made.add_argument(
        "--limit", type=float, default=120.0, help="seconds for a contender's first call (120)"
    )
    made.add_argument("--threads", type=_positive, help="threads of every contender")
    made.add_argument("--busy", action="store_true", help="another process keeps a core busy")
    made.add_argument("--json", metavar="FILE", help="write all figures")
    made.add_argument("--plot", metavar="FILE", help="draw the ratios; needs matplotlib")
    made.add_argument("--list", action="store_true", help="list the programs and end")
    made.set_defaults(cache=None, bytecode=None)
    return made


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("expected a positive number")
    return number


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Measure, print, and return all figures."""
    options = parser().parse_args(arguments)
    for name in options.programs:
        if name not in PROGRAMS:
            parser().error(f"no program {name!r}; there are {', '.join(PROGRAMS)}")
    if options.list:
        print(report.listing())
        return {}
    names = options.programs or [
        p.name
        for p in PROGRAMS.values()
        if not options.group or {p.group, p.section} & set(options.group)
    ]
    running = {n for name in names for n in contenders_of(name, options)}
    begin = time.perf_counter()
    figures: dict[str, Any] = {
        "machine": machine(),
        "options": {k: v for k, v in vars(options).items() if k not in UNREPORTED}
        | {"contenders": [n for n in CONTENDERS if n in running]},
        "results": [],
    }
    with busy_core(options.busy):
        for place, name in enumerate(names, 1):
            print(f"[{place}/{len(names)}] {name}", file=sys.stderr, flush=True)
            figures["results"] += run_program(name, options)
            if options.json:  # what is there stays, should the run be ended
                write(figures, options.json)
        reference = report.reference(figures["results"])
        timed = [name for name in names if name in FIRST_CALLS]
        if timed and reference not in (None, "numpy"):
            figures["first_calls"] = measure_first_calls(timed, options, reference)
    figures["seconds"] = time.perf_counter() - begin
    report.summarize(figures)
    print(report.text(figures))
    if options.json:
        write(figures, options.json)
    if options.plot:
        report.plot(figures, options.plot)
    return figures


if __name__ == "__main__":
    main()
