"""No compiler, a compiler that fails, settings that make no sense.

What a user is told, and that the answer is right all the same. Each case is a process of its own.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from .. import fresh

PROGRAM = """
import sys
import numpy as np
import np_compile

@np_compile.compile
def first(x):
    return np.sin(x) * 2 + 1

@np_compile.compile
def second(x):
    x += 1
    return np.cos(x).sum()

for n in (3, 5):
    for _ in range(3):
        x = np.arange(float(n))
        assert np.allclose(first(x), np.sin(x) * 2 + 1)
        want = np.cos(x + 1).sum()
        assert np.isclose(second(x), want)
        assert x[0] == 1
print("right")
"""

GRADIENT = """
import numpy as np
import torch
import np_compile

@np_compile.compile
@np_compile.wrap_numpy
def loss(w):
    return np.sum(np.sin(w) ** 2)

w = torch.linspace(0, 1, 7, dtype=torch.float64, requires_grad=True)
loss(w).backward()
assert torch.allclose(w.grad, torch.sin(2 * w.detach()))
print("right")
"""


def run(
    tmp_path: Path, code: str = PROGRAM, **environment: str
) -> subprocess.CompletedProcess[str]:
    """A process with an empty cache and these variables."""
    own = {k: v for k, v in os.environ.items() if k != "CC" and not k.startswith("NP_COMPILE_")}
    own |= {"NP_COMPILE_CACHE_DIR": str(tmp_path / "cache"), "NP_COMPILE_PLAIN": "never"}
    own["NP_COMPILE_COMPILE_IN"] = "call"
    own |= environment
    return fresh.run(code, env=own)


def script(tmp_path: Path, text: str) -> str:
    """An executable shell script."""
    path = tmp_path / "compiler"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return str(path)


@pytest.mark.parametrize(
    ("code", "variable", "value", "words"),
    [
        (PROGRAM, "PATH", "/nowhere", "there is no C compiler"),
        (GRADIENT, "PATH", "/nowhere", "there is no C compiler"),
        (PROGRAM, "CC", "no-such-compiler -O2", "CC='no-such-compiler -O2' names no program"),
        (PROGRAM, "CC", "'unclosed", "cannot be read"),
    ],
)
def test_no_compiler(tmp_path: Path, code: str, variable: str, value: str, words: str) -> None:
    if variable == "PATH" and _has_ziglang():
        pytest.skip("ziglang is a compiler that PATH does not hide")
    done = run(tmp_path, code, **{variable: value})
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr
    assert done.stderr.count("RuntimeWarning") == 1
    assert words in done.stderr
    assert "install gcc or clang, or `pip install ziglang`" in done.stderr
    assert "operator by operator" in done.stderr


def _has_ziglang() -> bool:
    import importlib.util

    return importlib.util.find_spec("ziglang") is not None


@pytest.mark.skipif(os.name != "posix", reason="needs shell scripts")
def test_a_compiler_that_fails(tmp_path: Path) -> None:
    cc = script(tmp_path, "echo 'internal error: no such instruction' >&2\nexit 3")
    done = run(tmp_path, CC=cc)
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr
    # Two functions with two shapes each; no call repeats a warning.
    assert done.stderr.count("the back end 'native' failed") == 4, done.stderr
    assert done.stderr.count("calls go by Python, since the C compiler failed") == 1
    assert f"Command: {cc} -O3" in done.stderr
    assert "internal error: no such instruction" in done.stderr
    sources = [line.split()[1] for line in done.stderr.splitlines() if "  Source:" in line]
    assert len(sources) == len({*sources}) == done.stderr.count("RuntimeWarning")
    texts = [Path(source).read_text() for source in sources]
    assert sum("kernel_0" in text or "npc_run" in text for text in texts) >= 4


@pytest.mark.skipif(os.name != "posix", reason="needs shell scripts")
@pytest.mark.parametrize("body", ["exit 1", "exit 0", "kill -9 $$"])
def test_a_compiler_that_makes_nothing(tmp_path: Path, body: str) -> None:
    done = run(tmp_path, CC=script(tmp_path, body))
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr
    assert "and no library" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="needs shell scripts")
def test_a_compiler_that_writes_nonsense(tmp_path: Path) -> None:
    body = 'while [ "$1" != -o ]; do shift; done\necho nonsense >"$2"'
    done = run(tmp_path, CC=script(tmp_path, body))
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr
    assert "cannot be loaded" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="needs shell scripts")
def test_the_backward_program_alone_fails(tmp_path: Path) -> None:
    """The compiler makes whatever has no cosine in it, which the slope of a sine is."""
    body = (
        'for file in "$@"; do [ -f "$file" ] && grep -q "cos(" "$file" && exit 1; done\n'
        'exec gcc "$@"'
    )
    done = run(tmp_path, GRADIENT, CC=script(tmp_path, body))
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr
    assert "a gradient is computed operator by operator" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="needs shell scripts")
def test_inspect_says_that_there_are_no_kernels(tmp_path: Path) -> None:
    code = PROGRAM + "print(np_compile.inspect(first)(np.ones(3))[0].output)"
    failed = run(tmp_path, code, CC=script(tmp_path, "echo broken; exit 1"))
    assert "no kernels, the tensor program runs itself: compiling" in failed.stdout
    assert "broken" in failed.stdout
    missing = run(tmp_path, code, CC="no-such-compiler")
    assert "/* no kernels, the tensor program runs itself */" in missing.stdout


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("NP_COMPILE_BACKEND", "nonsense", "there are eager, aot_eager, inductor, native"),
        ("NP_COMPILE_BACKEND", "", "there are eager, aot_eager, inductor, native"),
        ("NP_COMPILE_DISABLE", "maybe", "expected 0 or 1"),
        ("NP_COMPILE_DEBUG", "9", "expected a level from 0 to 5"),
        ("NP_COMPILE_DEBUG", "high", "expected a level from 0 to 5"),
        ("NP_COMPILE_UNROLL", "-1", "expected a number that is not negative"),
        ("NP_COMPILE_UNROLL", "many", "expected a number that is not negative"),
        ("NP_COMPILE_MAX_CALLS", "1.5", "expected a number that is not negative"),
        ("NP_COMPILE_PLAIN", "sometimes", "expected auto, never or always"),
        ("NP_COMPILE_CACHE_DIR", __file__, "this is no folder"),
        ("NP_COMPILE_CACHE_DIR", "~no-such-user/x", "there is no such home folder"),
    ],
)
def test_a_setting_that_makes_no_sense(
    tmp_path: Path, variable: str, value: str, words: str
) -> None:
    done = run(tmp_path, "import np_compile", **{variable: value})
    assert done.returncode == 1
    last = done.stderr[done.stderr.index("SettingError") :]
    assert f"{variable}={value!r}: {words}. It sets: " in last
    assert "docs/errors.md#settings" in last


def test_a_cache_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run(tmp_path, NP_COMPILE_CACHE_DIR=str(tmp_path / "file" / "cache"))
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr
    assert done.stderr.count("RuntimeWarning") == 1
    assert "cannot be used: Not a directory" in done.stderr
    assert "NP_COMPILE_CACHE_DIR" in done.stderr
