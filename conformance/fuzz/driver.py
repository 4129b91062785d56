"""Many programs, one after the other, each in a process that may crash or be stopped."""

from __future__ import annotations

import importlib
import json
import os
import random
import re
import select
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import KINDS
from .maker import Program
from .minimise import minimised
from .plainly import TakesLonger, limited, running_on
from .run import Outcome, Setup, observed, run, run_plainly

SECONDS = 180.0  # for one program
BATCH = 40  # programs of one process
MINIMISING = 60.0  # seconds for one finding
ALIKE = 2  # findings of one kind that are minimised
LONGER = "takes longer in NumPy itself"
SHARES = ("programs", "calls", "calls with an exception", "read whole", "read in part", "recorded",
          "neither read nor recorded")  # are counted for each kind of program, too  # fmt: skip


def made(kind: str, seed: int, k: int) -> Program:
    """Program number k of a seed."""
    generator = importlib.import_module(f".{kind}", __package__)
    return generator.program(random.Random(f"{seed} {kind} {k}"))


def setup(kind: str, seed: int, k: int, backend: str, way: str | None, device: str | None) -> Setup:
    """How it is compiled: chosen too, but for what is asked for."""
    r = random.Random(f"{seed} {kind} {k} setup")
    usual = (
        ("whole",) * 5 + ("recorded", "auto") if kind == "loops" else ("auto", "recorded", "whole")
    )
    settings = {
        "loops": way or r.choice(usual),
        "plain": r.choice(("never", "never", "never", "auto")),
        "unroll": r.choice((8, 8, 2)),
        "compile_in": r.choice(("call", "background")) if kind == "sizes" else "call",
        "debug": 1,
    }
    dynamic = r.choice((None,) * 6 + (True, False))
    return Setup(backend, dynamic, tuple(settings.items()), device)


def _in_child(job: Callable[[Callable[[dict], None]], None], take: Callable[[dict], None]) -> str:
    """Run a job in a process of its own, and take what it tells. Why it ended early, if it did."""
    read, write = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(read)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            with os.fdopen(write, "w") as out:
                job(lambda entry: print(json.dumps(entry), file=out, flush=True))
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    buffer = b""
    why = ""
    while True:
        ready, _, _ = select.select([read], [], [], SECONDS)
        if not ready:
            os.kill(pid, signal.SIGKILL)
            why = f"takes longer than {SECONDS:.0f} s"
            break
        data = os.read(read, 65536)
        if not data:
            break
        *lines, buffer = (buffer + data).split(b"\n")
        for line in lines:
            take(json.loads(line))
    os.close(read)
    _, status = os.waitpid(pid, 0)
    if not why and status:
        killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        why = f"crashes: {signal.Signals(killed).name}" if killed else "the process ends"
    return why


def judged(program: Program, how: Setup, folder: Path) -> str:
    """What differs in a program that runs alone in a process."""
    path = folder / "alone.py"
    path.write_text(program.source, encoding="utf-8")
    told: list[dict] = []
    why = _in_child(lambda tell: tell(_attempt(path, program.exact, how)), told.append)
    return why or (told[-1]["finding"] if told else "")


def of_numpy(program: Program, folder: Path) -> str:
    """What NumPy alone does with a program that no process stands: it crashes, or takes longer than
    there is time; nothing where it does not."""
    path = folder / "plain.py"
    path.write_text(program.source, encoding="utf-8")

    def job(_: Callable) -> None:
        run_plainly(path)

    why = _in_child(job, lambda _: None)
    return next((word for word in ("crashes", "takes longer") if why.startswith(word)), "")


def _path(folder: Path, k: int) -> Path:
    return folder / f"program_{k}.py"


def prepared(program: Program, k: int, path: Path) -> None:
    """Write program number k, as it is run: one of four may raise in all of its calls."""
    with limited():
        source = running_on(program.source, observed)
    path.write_text(source if k % 4 else program.source, encoding="utf-8")


def _attempt(path: Path, exact: bool, how: Setup) -> dict:
    try:
        outcome = run(path, exact, how)
    except Exception as e:
        outcome = Outcome(f"the compiler fails: {type(e).__name__}: {e}")
    outcome.seen["programs"] = 1
    return {"finding": outcome.finding, "seen": outcome.seen}


def kind_of(finding: str) -> str:
    """A finding without its numbers and names, by which findings are told apart."""
    text = re.sub(r"^call \d+: |\[[^]]*\]", "", finding)
    return re.sub(r"'[^']*'|[-\d.]+|np\.\w+\([^)]*\)", "#", text)[:200]


class Fuzzing:
    """A run of the fuzzer: findings go to files of a folder, which are tests."""

    def __init__(
        self, seed: int, backend: str, way: str | None, folder: Path, device: str | None = None
    ):
        self.seed, self.backend, self.way, self.folder = seed, backend, way, folder
        self.device = device
        self.seen: Counter = Counter()
        self.findings: Counter = Counter()

    def run(self, kinds: list[str], seconds: float, most: int = sys.maxsize) -> int:
        """Programs of these kinds in turn, until the time has passed; how many findings."""
        ends = time.monotonic() + seconds
        k = 0
        with tempfile.TemporaryDirectory(prefix="fuzz_") as name:
            while k < most and time.monotonic() < ends:
                k = self._batch(kinds, k, min(most, k + BATCH), ends, Path(name))
        return sum(self.findings.values())

    def _batch(self, kinds: list[str], first: int, last: int, ends: float, folder: Path) -> int:
        """A batch in one process; the number of the next program."""
        at = {"k": first}

        def job(tell: Callable[[dict], None]) -> None:
            for k in range(first, last):
                if time.monotonic() > ends:
                    return
                tell({"k": k})
                kind, program, how = self._case(kinds, k)
                path = _path(folder, k)
                try:
                    prepared(program, k, path)
                except TakesLonger:
                    tell({"finding": "", "seen": {"programs": 1, LONGER: 1}})
                    continue
                told = _attempt(path, program.exact, how)
                told["seen"].update({f"{kind}: {what}": told["seen"][what] for what in SHARES})
                tell(told)

        found: list[tuple[int, str]] = []

        def take(entry: dict[str, Any]) -> None:
            at.update({"k": entry["k"]} if "k" in entry else {"k": at["k"] + 1})
            if "k" not in entry:
                self.seen.update(entry["seen"])
                if entry["finding"]:
                    found.append((at["k"] - 1, entry["finding"]))

        why = _in_child(job, take)
        if why:
            self.seen["programs"] += 1
            if word := of_numpy(self._case(kinds, at["k"], folder)[1], folder):
                self.seen[f"{word} in NumPy itself"] += 1
            else:
                found.append((at["k"], why))
            at["k"] += 1
        for k, finding in found:
            self._report(kinds, k, finding, folder)
        return at["k"]

    def _case(
        self, kinds: list[str], k: int, folder: Path | None = None
    ) -> tuple[str, Program, Setup]:
        """Program number k and how it is compiled. folder: where it may lie as it is run."""
        kind = kinds[k % len(kinds)]
        how = setup(kind, self.seed, k, self.backend, self.way, self.device)
        program = made(kind, self.seed, k)
        if folder is not None and _path(folder, k).exists():
            program.source = _path(folder, k).read_text(encoding="utf-8")
        return kind, program, how

    def _report(self, kinds: list[str], k: int, finding: str, folder: Path) -> None:
        kind, program, how = self._case(kinds, k, folder)
        sort = sort_met = kind_of(finding)
        self.findings[sort] += 1
        print(f"{kind} {k}: {finding[:300]}", flush=True)
        if self.findings[sort] > ALIKE:
            return
        alone = judged(program, how, folder)
        if not alone:
            print("  not when it runs alone", flush=True)
        else:
            sort = kind_of(alone)
            program.source = minimised(
                program.source,
                lambda s: kind_of(judged(Program(s, program.exact), how, folder)) == sort,
                MINIMISING,
            )
            finding = judged(program, how, folder) or alone
            if finding.startswith("crashes") and of_numpy(program, folder) == "crashes":
                print("  NumPy itself crashes, though not each time", flush=True)
                self.findings[sort_met] -= 1
                self.seen["crashes in NumPy itself"] += 1
                return
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"test_{kind}_{self.seed}_{k}.py"
        path.write_text(as_test(program, how, finding), encoding="utf-8")
        print(f"  {path}", flush=True)

    def told(self) -> str:
        """The statistics."""
        shares = [f"{kind}: {what}" for kind in KINDS for what in SHARES]
        lines = [f"{self.seen.pop('programs', 0)} programs, {sum(self.findings.values())} findings"]
        lines += [f"{self.seen[w]:>8} {w}" for w in shares if self.seen[w]]
        lines += [f"{n:>8} {w}" for w, n in self.seen.most_common() if w not in shares]
        lines += [f"{n:>8} found: {what}" for what, n in self.findings.most_common()]
        return "\n".join(lines)


def as_test(program: Program, how: Setup, finding: str) -> str:
    """The source of a test that fails as long as the finding is there."""
    options = ", ".join(
        [
            f"backend={how.backend!r}",
            f"dynamic={how.dynamic}",
            f"settings={how.settings!r}",
            f"device={how.device!r}",
        ]
    )
    told = finding[:300].replace("\\", "/").replace('"""', "'''")
    return (
        f'"""{told}"""\n\nfrom conformance.fuzz.run import agree\n\n{program.source.rstrip()}\n\n\n'
        f"def test_program():\n    agree(__file__, {program.exact}, {options})\n"
    )
