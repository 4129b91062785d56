"""Disk cache of compiled libraries: which folder is used, and its files.

A file appears in the folder under its final name only when it is whole (it is written under a
temporary name and renamed), so several processes may share the folder and any of them may be
killed. A library carries a seal, the hash of its own bytes: after a crash of the machine a renamed
file may be shorter than it was written, and a loader that maps such a file dies of SIGBUS.

The folder must belong to the user and be writable by nobody else, for what lies in it is executed.
A folder that is not, or that cannot be written, is replaced by a private one, with a warning.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
import warnings
from collections.abc import Iterator

from np_compile import config

from .publish import SEAL_LENGTH, seal

LIMIT = 1 << 30  # bytes in the folder before the least recently used files are deleted
_STALE = 3600.0  # seconds after which a temporary file belongs to no living process
_DAY = 86400.0
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_NEW = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
)

_refused: set[str] = set()
_private: tuple[int, str] | None = None
_swept = False


def configured() -> str:
    """The folder that the setting names, whether or not it can be used."""
    if config.cache_dir not in ("", "auto"):
        return config.cache_dir
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "np_compile")


def folder() -> str:
    """The folder to use, made if it is missing: the configured one, or else a private one.

    Links are resolved before the folder is judged, so a link that is turned elsewhere afterwards
    changes nothing.
    """
    path = configured()
    if path in _refused:
        return private()
    try:
        if not os.path.isdir(path):
            os.makedirs(path, 0o700, exist_ok=True)
        real = os.path.realpath(path)
        fault = _fault(real)
    except OSError as e:
        return refuse(e.strerror or str(e))
    return refuse(fault) if fault else real


def _fault(path: str) -> str:
    """Why nothing may be loaded from a folder; empty if it may."""
    status = os.stat(path)
    foreign = _foreign(status)
    if foreign:
        return foreign
    if hasattr(os, "ST_NOEXEC") and os.statvfs(path).f_flag & os.ST_NOEXEC:
        return "its file system is mounted noexec"
    return ""


def _foreign(status: os.stat_result) -> str:
    """How somebody else could have put something into a file or folder; empty if nobody could."""
    if not hasattr(os, "geteuid"):
        return ""
    if status.st_uid != os.geteuid():
        return f"it belongs to user {status.st_uid}, not to you"
    if status.st_mode & 0o022:
        return f"others may write to it (mode {stat.S_IMODE(status.st_mode):o})"
    return ""


def refuse(reason: str) -> str:
    """A private folder, to use in place of the configured one; the first refusal warns."""
    path = configured()
    instead = private()
    if path not in _refused:
        _refused.add(path)
        warnings.warn(
            f"the cache folder {path} cannot be used: {reason}. Kernels are compiled anew in each "
            "process. Remedy: make it a folder that you own, with free space and mode 700, or set "
            "NP_COMPILE_CACHE_DIR to one.",
            RuntimeWarning,
            stacklevel=2,
        )
    return instead


def private() -> str:
    """This process's own temporary folder, deleted when the process ends."""
    global _private
    if _private is None or _private[0] != os.getpid() or not os.path.isdir(_private[1]):
        import atexit
        import tempfile

        _private = (os.getpid(), tempfile.mkdtemp(prefix="np_compile-"))
        atexit.register(_remove, *_private)
    return _private[1]


def _remove(owner: int, path: str) -> None:
    """Delete a private folder, unless this process is a fork of its owner."""
    if os.getpid() == owner:
        import shutil

        shutil.rmtree(path, ignore_errors=True)


def is_private(path: str) -> bool:
    """Whether a folder is this process's private one."""
    return _private is not None and path == _private[1]


def writable(path: str) -> bool:
    """Whether a folder takes a new file of the size of a kernel."""
    name = temporary(os.path.join(path, "probe"))
    try:
        _write_new(name, bytes(1 << 18))
    except OSError:
        return False
    finally:
        discard(name)
    return True


def temporary(path: str) -> str:
    """A new name beside `path`, to write to before it is renamed to `path`.

    Random, since processes in two containers that share the folder may have one number.
    """
    return f"{path}.{os.urandom(8).hex()}.tmp"


def write(path: str, data: bytes) -> None:
    """Put a whole file in place. OSError if it cannot be."""
    name = temporary(path)
    try:
        _write_new(name, data)
        os.replace(name, path)
    except BaseException:
        discard(name)
        raise


def _write_new(name: str, data: bytes) -> None:
    with os.fdopen(os.open(name, _NEW, 0o600), "wb") as file:
        file.write(data)


def discard(path: str) -> None:
    """Delete a file, if it is there and can be deleted."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def read(path: str) -> bytes | None:
    """The bytes of a file of the cache; None if there is none, or it is no plain file of ours."""
    try:
        handle = os.open(path, _READ)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or _foreign(status):
            return None
        if time.time() - status.st_mtime > _DAY:
            with contextlib.suppress(OSError):
                os.utime(path)  # for the sweep: it was used
        return file.read()


def find(path: str) -> bool:
    """Whether a whole library is at `path`. One that is not whole is deleted."""
    data = read(path)
    if data is None:
        return False
    if data[-SEAL_LENGTH:] == seal(data[:-SEAL_LENGTH]):
        return True
    discard(path)
    return False


def sweep(path: str) -> None:
    """Once a process: delete temporaries of dead processes, and what is over the size limit."""
    global _swept
    if _swept:
        return
    _swept = True
    files = list(_files(path))
    horizon = time.time() - _STALE
    for used, _, name in files:
        if name.endswith(".tmp") and used < horizon:
            discard(name)
    total = sum(size for _, size, _ in files)
    for _, size, name in sorted(files):
        if total <= LIMIT:
            break
        if not name.endswith(".tmp"):
            discard(name)
            total -= size


def _files(path: str) -> Iterator[tuple[float, int, str]]:
    """Time of last use, size and path of every file in a folder."""
    with contextlib.suppress(OSError), os.scandir(path) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    yield status.st_mtime, status.st_size, entry.path
