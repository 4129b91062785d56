"""Building libraries: the compilers that are found, and the cache with all that may hurt it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shlex
import shutil
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from np_compile import config
from np_compile.errors import BackendError
from np_compile.kernels import build
from np_compile.kernels.build import cache, library, publish, toolchain

from ... import fresh
from ...support import wait_for

COMPILER = next((p for p in map(shutil.which, ("cc", "gcc", "clang")) if p), None)
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler on the path")
posix = pytest.mark.skipif(os.name != "posix", reason="needs modes and signals of POSIX")

SOURCE = "int answer(void) { return 42; }\n"

# A second process, which answers with the library's result.
CHILD = """
import sys
from np_compile.kernels import build
print(build.load(sys.argv[1]).answer())
"""


def forget() -> None:
    """Make this process forget what it has loaded and decided, as if it were new."""
    library._loaded.clear()
    toolchain._compiler.cache_clear()
    cache._refused.clear()
    cache._swept = False


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache folder of this test's own."""
    path = tmp_path / "cache"
    monkeypatch.setenv("NP_COMPILE_CACHE_DIR", str(path))
    monkeypatch.delenv("CC", raising=False)
    forget()
    with config.patch(cache_dir=str(path)):
        yield path
    forget()


def script(path: Path, text: str) -> Path:
    """An executable shell script, in which $CC_REAL is a compiler that works."""
    path.write_text(f"#!/bin/sh\nCC_REAL={shlex.quote(COMPILER or '')}\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes CC a compiler that notes each call in the file returned."""
    path = tmp_path / "log"
    path.touch()
    compiler = script(tmp_path / "logging", f'echo "$@" >> {path}\nexec "$CC_REAL" "$@"')
    monkeypatch.setenv("CC", str(compiler))
    return path


def compiles(log: Path) -> int:
    """How often a logging compiler was asked to compile, and not just for its version."""
    return sum(" -o " in line for line in log.read_text().splitlines())


def child(source: str = SOURCE, **more: str) -> fresh.Process:
    return fresh.Process(CHILD, source, env={**os.environ, **more}, quiet=True)


def answer(process: fresh.Process) -> int:
    """The result that a child printed."""
    out, err = process.communicate()
    assert process.returncode == 0, err
    return int(out)


def endings(folder: Path) -> list[str]:
    return sorted(p.suffix for p in folder.iterdir() if not p.name.startswith("compiler-"))


def test_load_compiles_and_keeps_the_source(folder: Path) -> None:
    library = build.load(SOURCE)
    assert library.answer() == 42
    assert endings(folder) == [".c", ".so"]
    (text,) = folder.glob("*.c")
    assert text.read_text() == SOURCE
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_loaded_library_is_not_loaded_again(folder: Path) -> None:
    first = build.load(SOURCE)
    shutil.rmtree(folder)
    assert build.load(SOURCE) is first


def test_a_deleted_folder_is_made_again(folder: Path) -> None:
    build.load(SOURCE)
    shutil.rmtree(folder)
    assert build.load(SOURCE + "\n").answer() == 42
    assert endings(folder) == [".c", ".so"]


def test_the_mathematical_functions_are_linked() -> None:
    library = build.load("double sin(double); double f(double x) { return sin(x); }")
    library.f.restype = ctypes.c_double
    assert library.f(ctypes.c_double(0.5)) == pytest.approx(0.479425538604203)


def test_a_product_and_a_sum_are_rounded_twice() -> None:
    library = build.load("double f(double a, double b, double c) { return a * b + c; }")
    library.f.restype = ctypes.c_double
    a = 1 + 2.0**-30
    assert library.f(*map(ctypes.c_double, (a, a, -(a * a)))) == 0


def test_the_key_knows_what_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = build.compiler()
    keys = {
        build.key(SOURCE, compiler),
        build.key(SOURCE + " ", compiler),
        build.key(SOURCE, build.Compiler(compiler.argv, compiler.identity + "1")),
        build.key(SOURCE, build.Compiler((*compiler.argv, "-g"), compiler.identity)),
    }
    monkeypatch.setattr(toolchain, "processor", lambda: "x86_64\nanother")
    keys.add(build.key(SOURCE, compiler))
    assert len(keys) == 5


def test_several_libraries_are_compiled_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each compiler waits until the other one has come.
    meet = f"echo x >> {tmp_path}/came; for i in $(seq 1200); do [ $(wc -l < {tmp_path}/came) = 2 ]"
    met = f"echo x >> {tmp_path}/met"
    text = f'case "$*" in *--version*) ;; *) {meet} && {met} && break; sleep 0.05; done;; esac'
    compiler = script(tmp_path / "meeting", f'{text}\nexec "$CC_REAL" "$@"')
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    libraries = build.load_all([(SOURCE, "one"), ("int answer(void) { return 43; }", "two")])
    assert [library.answer() for library in libraries] == [42, 43]
    assert (tmp_path / "met").read_text().split() == ["x", "x"]


def test_a_failure_among_several_leaves_nothing_behind(folder: Path) -> None:
    with pytest.raises(build.CompileFailed, match="'bad'"):
        build.load_all([("no C", "bad"), (SOURCE, "good")])
    assert not list(folder.glob("*.tmp"))


@posix
def test_two_processes_compile_the_same_source(folder: Path, log: Path) -> None:
    # Each compiler waits until the other one has come, so that both are at work together.
    meets = (
        f"for i in $(seq 1200); do [ $(grep -c -e ' -o ' {log}) = 2 ] && break; sleep 0.05; done"
    )
    waits = f'case "$*" in *--version*) ;; *) {meets};; esac'
    script(log.parent / "logging", f'echo "$@" >> {log}\n{waits}\nexec "$CC_REAL" "$@"')
    children = [child(), child()]
    assert [answer(c) for c in children] == [42, 42]
    assert compiles(log) == 2
    assert endings(folder) == [".c", ".so"]
    assert answer(child()) == 42
    assert compiles(log) == 2


@posix
def test_a_second_process_does_not_ask_the_compiler(log: Path) -> None:
    build.load(SOURCE)
    before = log.read_text()
    assert answer(child()) == 42
    assert log.read_text() == before


@posix
def test_a_killed_process_leaves_a_usable_cache(folder: Path, tmp_path: Path) -> None:
    # Half a library is written under the name given to -o, and then the compiler hangs.
    text = 'while [ $# -gt 0 ]; do if [ "$1" = -o ]; then head -c 4000 /bin/sh > "$2"; '
    text += f"echo $$ > {tmp_path}/pid; exec sleep 100; fi; shift; done"
    killed = child(CC=str(script(tmp_path / "hanging", text)))
    pid = tmp_path / "pid"
    wait_for(lambda: pid.exists() and pid.read_text())
    killed.kill()
    killed.communicate()
    os.kill(int(pid.read_text()), signal.SIGKILL)
    (half,) = folder.glob("*.so.*.tmp")
    assert build.load(SOURCE).answer() == 42
    assert half.exists()
    os.utime(half, (time.time() - 7200,) * 2)
    forget()
    assert build.load(SOURCE + "\n").answer() == 42
    assert not half.exists()


@pytest.mark.parametrize("damage", ["empty", "half", "bit", "text"])
def test_a_damaged_library_is_built_again(folder: Path, damage: str, log: Path) -> None:
    answer(child())
    (path,) = folder.glob("*.so")
    data = path.read_bytes()
    at = len(data) // 2
    damaged = {
        "empty": b"",
        "half": data[:at],
        "bit": data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :],
        "text": b"no library",
    }
    path.write_bytes(damaged[damage])
    assert build.load(SOURCE).answer() == 42
    assert path.read_bytes() == data
    assert compiles(log) == 2


def test_a_sealed_file_that_cannot_be_loaded_is_built_again(folder: Path, tmp_path: Path) -> None:
    folder.mkdir(0o700)
    path = folder / (build.key(SOURCE, build.compiler()) + ".so")
    (tmp_path / "false").write_bytes(b"no library")
    publish.publish(str(tmp_path / "false"), str(path))
    assert cache.find(str(path))
    assert build.load(SOURCE).answer() == 42


@posix
def test_a_link_in_place_of_a_library_is_not_followed(folder: Path, tmp_path: Path) -> None:
    build.load(SOURCE)
    (path,) = folder.glob("*.so")
    path.rename(tmp_path / "elsewhere.so")
    path.symlink_to(tmp_path / "elsewhere.so")
    assert not cache.find(str(path))


@contextlib.contextmanager
def refusal(match: str) -> Iterator[None]:
    """The cache folder is refused in the block, with one warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
        assert build.load(SOURCE + "\n\n").answer() == 42  # a second one does not warn again
    assert len(caught) == 1
    assert caught[0].category is RuntimeWarning
    assert re.search(match, str(caught[0].message))
    assert "NP_COMPILE_CACHE_DIR" in str(caught[0].message)


def test_a_folder_below_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with config.patch(cache_dir=str(tmp_path / "file" / "cache")), refusal("Not a directory"):
        assert build.load(SOURCE).answer() == 42


def test_a_read_only_file_system(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(0o700)
    real = os.open

    def opening(path: str, flags: int, *rest: int) -> int:
        if flags & os.O_CREAT and str(path).startswith(str(folder)):
            raise OSError(30, "Read-only file system")
        return real(path, flags, *rest)

    monkeypatch.setattr(os, "open", opening)
    with refusal("Read-only file system"):
        assert build.load(SOURCE).answer() == 42
    assert not list(folder.iterdir())


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write all")
def test_a_read_only_folder(folder: Path) -> None:
    folder.mkdir(0o500)
    with refusal("Permission denied"):
        assert build.load(SOURCE).answer() == 42


def test_a_read_only_folder_serves_what_it_has(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build.load(SOURCE)
    forget()

    def opening(path: str, flags: int, *rest: int) -> int:
        assert not flags & os.O_CREAT
        return real(path, flags, *rest)

    real = os.open
    monkeypatch.setattr(os, "open", opening)
    assert build.load(SOURCE).answer() == 42


@posix
def test_a_folder_of_somebody_else(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(0o700)
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    with pytest.warns(RuntimeWarning, match=f"belongs to user {me}, not to you"):
        assert cache.is_private(cache.folder())


@posix
@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
def test_a_folder_that_others_may_write(folder: Path, mode: int) -> None:
    folder.mkdir()
    folder.chmod(mode)
    with refusal(f"others may write to it \\(mode {mode:o}\\)"):
        assert build.load(SOURCE).answer() == 42
    assert not list(folder.iterdir())


@posix
def test_a_library_that_others_may_write_is_not_loaded(folder: Path) -> None:
    build.load(SOURCE)
    (path,) = folder.glob("*.so")
    path.chmod(0o770)
    assert not cache.find(str(path))


FULL = """
import ctypes, os, pathlib, subprocess, sys, warnings
folder, size, text = sys.argv[1:]
own = ctypes.CDLL(None).unshare(0x20000) == 0  # of mounts
if not own or subprocess.run(["mount", "--make-rprivate", "/"]).returncode:
    sys.exit(77)
mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "none", folder]
if subprocess.run(mount).returncode:
    sys.exit(77)
from np_compile.kernels import build
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    library = build.load(pathlib.Path(text).read_text())
print(library.answer(), len(caught), caught[0].message)
print(sorted(os.path.splitext(name)[1] for name in os.listdir(folder)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a small file system")
@pytest.mark.parametrize(("size", "length"), [("8k", 20000), ("16k", 10)])
def test_a_full_disk(folder: Path, tmp_path: Path, size: str, length: int) -> None:
    """The first disk has no place for the source, the second for the source but no library."""
    folder.mkdir(0o700)
    text = tmp_path / "text.c"
    text.write_text(SOURCE + "/*" + "x" * length + "*/")
    done = fresh.run(FULL, str(folder), size, str(text))
    if done.returncode == 77:
        pytest.skip("may not mount a file system")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"42 1 the cache folder {folder} cannot be used:")
    assert ".so" not in done.stdout


def test_no_space_anywhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def writing(path: str, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache, "write", writing)
    monkeypatch.setattr(cache, "_private", None)
    with (
        pytest.warns(RuntimeWarning, match="No space left"),
        pytest.raises(build.CompileFailed, match="no folder takes its files"),
    ):
        build.load(SOURCE)


@posix
def test_a_private_folder_is_deleted_at_exit(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "temporary").mkdir()
    process = child(
        NP_COMPILE_CACHE_DIR=str(tmp_path / "file" / "x"), TMPDIR=f"{tmp_path}/temporary"
    )
    assert answer(process) == 42
    assert not list((tmp_path / "temporary").glob("np_compile-*"))


def test_the_sweep_deletes_what_was_used_least_recently(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.mkdir(0o700)
    for age in range(10):
        path = folder / f"{age}.so"
        path.write_bytes(bytes(1000))
        os.utime(path, (time.time() - 100 * age,) * 2)
    monkeypatch.setattr(cache, "LIMIT", 4500)
    cache.sweep(str(folder))
    assert sorted(p.name for p in folder.iterdir()) == ["0.so", "1.so", "2.so", "3.so"]
    (folder / "5.so").write_bytes(bytes(5000))
    cache.sweep(str(folder))  # once a process
    assert (folder / "5.so").exists()


def test_a_hit_renews_the_time_of_use(folder: Path) -> None:
    build.load(SOURCE)
    (path,) = folder.glob("*.so")
    os.utime(path, (1e9, 1e9))
    assert cache.find(str(path))
    assert time.time() - path.stat().st_mtime < 100


def test_a_compiler_that_refuses_the_source(folder: Path) -> None:
    with pytest.raises(build.CompileFailed) as caught:
        build.load("int answer(void) { return oops; }", name="my kernel")
    (text,) = folder.glob("*.c")
    message = str(caught.value)
    assert isinstance(caught.value, BackendError)
    assert "'my kernel'" in message
    assert "oops" in message
    assert f"Source:  {text}" in message
    assert f"Command: {build.compiler().argv[0]} -O3" in message
    assert endings(folder) == [".c"]


def test_a_flood_of_errors_is_cut_short() -> None:
    with pytest.raises(build.CompileFailed, match="lines more"):
        build.load("\n".join(f"int a{i} = b{i};" for i in range(50)))


def test_an_unknown_symbol() -> None:
    with pytest.raises(build.CompileFailed, match=r"cannot be loaded.*nowhere"):
        build.load("int nowhere(void); int answer(void) { return nowhere(); }")


@posix
def test_a_compiler_that_makes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, words in (("true", "no library"), ("false", "exit status 1"), ("echo", "-O3")):
        monkeypatch.setenv("CC", name)
        with pytest.raises(build.CompileFailed, match=words):
            build.load(SOURCE)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/no/such/compiler", "names no program"),
        ("surely-no-such-compiler -O2", "names no program"),
        ("'gcc", "cannot be read"),
        ("''", "names no program"),
    ],
)
def test_cc_with_nonsense(text: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", text)
    with pytest.raises(build.NoCompiler, match=words) as caught:
        build.load(SOURCE)
    assert "CC" in str(caught.value)


@posix
def test_cc_that_is_no_program_for_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "strange"
    path.write_bytes(b"\x7fELF nonsense")
    path.chmod(0o755)
    monkeypatch.setenv("CC", str(path))
    with pytest.raises(build.NoCompiler, match="cannot be run"):
        build.load(SOURCE)


def test_cc_may_have_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", f"{COMPILER} -DVALUE=43")
    assert build.load("int answer(void) { return VALUE; }").answer() == 43


def test_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(build.NoCompiler, match="install gcc or clang, or `pip install ziglang`"):
        build.load(SOURCE)


def test_ziglang_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "packages" / "ziglang"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(
        "import os, subprocess, sys\n"
        "assert sys.argv[1] == 'cc'\n"
        "words = [w for w in sys.argv[2:] if w != '-fno-sanitize=all']\n"
        "assert len(words) == len(sys.argv) - 3\n"
        f"environment = dict(os.environ, PATH={os.environ['PATH']!r})\n"
        f"sys.exit(subprocess.call([{COMPILER!r}, *words], env=environment))\n"
    )
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    monkeypatch.setenv("PATH", str(tmp_path))
    compiler = build.compiler()
    assert compiler.argv == (sys.executable, "-m", "ziglang", "cc")
    assert compiler.kind == "zig"
    assert build.load(SOURCE).answer() == 42


@posix
@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("gcc (Debian 12.2.0) 12.2.0", "gcc"),
        ("Ubuntu clang version 15.0.7", "clang"),
        ("Apple clang version 15.0.0", "clang"),
        ("something else", "gcc"),
    ],
)
def test_the_kind_is_learned_once(
    words: str, kind: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f'[ "$1" = --version ] && {{ echo x >> {tmp_path}/asked; echo "{words}"; }}'
    monkeypatch.setenv("CC", str(script(tmp_path / "fake", text)))
    for _ in range(2):
        forget()
        compiler = build.compiler()
        assert compiler.kind == kind
        assert compiler.version == words
        assert "-fno-sanitize=all" not in build.flags(compiler)
    assert (tmp_path / "asked").read_text() == "x\n"


def test_flags_follow_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = build.compiler()
    monkeypatch.setattr(toolchain, "processor", lambda: "x86_64\nflags : sse2 avx512f")
    assert {"-march=native", "-mprefer-vector-width=512"} <= set(build.flags(compiler))
    monkeypatch.setattr(toolchain, "processor", lambda: "x86_64\nflags : sse2 avx2")
    assert "-mprefer-vector-width=512" not in build.flags(compiler)
    monkeypatch.setattr(toolchain, "processor", lambda: "aarch64\nFeatures : asimd")
    assert "-mcpu=native" in build.flags(compiler)
    assert "-march=native" not in build.flags(compiler)


def test_the_processor_is_described() -> None:
    text = toolchain.processor()
    assert text.splitlines()[0] == os.uname().machine
    if os.path.exists("/proc/cpuinfo"):
        assert len(text.splitlines()) > 1
    assert "MHz" not in text


def test_the_default_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    with config.patch(cache_dir="auto"):
        assert cache.configured() == f"{tmp_path}/.cache/np_compile"
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        assert cache.configured() == f"{tmp_path}/.cache/np_compile"
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        assert cache.configured() == f"{tmp_path}/xdg/np_compile"
