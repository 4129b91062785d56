"""Sealing a library and putting it in place; as a program, with the compiler that makes it.

As a program it outlives the interpreter that started it, so that what was begun is in the cache at
the next start: python publish.py OUTPUT TARGET COMPILER ARGUMENT...
"""

from __future__ import annotations

import hashlib
import os
import sys

SEAL = b"np_compile seal\0"
SEAL_LENGTH = len(SEAL) + hashlib.sha256().digest_size
_WORDS = 20_000  # bytes of a compiler's words that are passed on: fewer than a pipe holds


def seal(data: bytes) -> bytes:
    """What follows a library's bytes in a file that is whole."""
    return SEAL + hashlib.sha256(data).digest()


def publish(name: str, path: str) -> None:
    """Seal the library written at the temporary `name`, and put it in place at `path`.

    What follows a library's last section is ignored by the loader, so the seal is appended.
    """
    with open(name, "rb") as file:
        mark = seal(file.read())
    with open(name, "ab") as file:
        file.write(mark)
    os.chmod(name, 0o700)
    os.replace(name, path)


def main(output: str, target: str, *command: str) -> int:
    """Run the compiler, publish its output, pass its words on; its exit status."""
    import subprocess

    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        check=False,
    )  # fmt: skip
    try:
        if done.returncode == 0 and os.path.isfile(output):
            publish(output, target)
        sys.stdout.buffer.write(done.stdout[:_WORDS])
        sys.stdout.buffer.flush()
    except OSError as e:
        print(e, flush=True)
    finally:
        if os.path.exists(output):
            os.unlink(output)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
