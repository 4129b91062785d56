"""C code that reads, or writes, the memory of arrays: hashes, packed bytes, files, ctypes."""

import base64
import binascii
import ctypes
import hashlib
import io
import struct
import zlib

import numpy as np
import pytest
import torch

import np_compile

from ..support import check

PROGRAMS = {}
X = np.linspace(0.1, 3, 12)


def program(f):
    PROGRAMS[f.__name__] = f
    return f


@program
def hashes(x):
    y = x * 2 + 1
    y[3] = 4
    digest = hashlib.sha1()
    digest.update(y)
    y += 1
    digest.update(y[1:4])
    return digest.hexdigest(), hashlib.md5(y.max()).hexdigest(), y


@program
def checksums(x):
    y = (x * 2).reshape(3, 4)
    packed = zlib.compress(y)
    return zlib.crc32(y), zlib.decompress(packed), binascii.hexlify(y), base64.b64encode(y[1])


@program
def packed(x):
    y = (x * 2).astype(np.uint8)
    struct.pack_into("<i", y, 4, 77)
    return struct.unpack("12B", y), struct.unpack_from("4B", y, 2), y + 1


@program
def files(x):
    file = io.BytesIO()
    np.save(file, x * 2)
    file.write(x + 1)
    file.seek(0)
    read, rest = np.load(file), np.zeros(12)
    file.readinto(rest)
    return read, rest - 1, file.getvalue()


@program
def joined(x):
    y = (x * 2).astype(np.uint8)
    return b"".join([y, y[:3]]), int.from_bytes(y, "little"), bytearray(y), bytes(y)


@program
def kept(x):
    y = x * 2
    memory = (ctypes.c_double * 12).from_buffer(y)
    memory[3] = 2.5
    z = y * 2
    memory[4] = 3.5
    return z, y + memory[3]


@program
def kept_view(x):
    y = x * 2
    view = memoryview(y)
    y[1] = 9
    first = view[1]
    view[2] = 7
    return first, y * 2


@program
def strided(x):
    return hashlib.md5(x[::2] * 1).hexdigest() + hashlib.md5((x + 1)[::2]).hexdigest()


@program
def too_short(x):
    return struct.unpack("3d", x * 2)


@program
def read_only(x):
    y = np.broadcast_to(x[:1] * 2, (3,))
    return struct.pack_into("<d", y, 0, 1.0)


@pytest.mark.parametrize("backend", ["eager", "native"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_numpy(name, backend):
    check(PROGRAMS[name], X, backend=backend)


def test_fullgraph_says_that_memory_is_read():
    f = np_compile.compile(lambda x: hashlib.md5(x * 2).hexdigest(), fullgraph=True)
    with pytest.raises(np_compile.errors.GraphBreak, match="reads an array's memory"):
        f(X)


KEPT = {
    "view": lambda x: memoryview(x.view()),
    "part": lambda x: memoryview(x[1:][1:]),
    "data": lambda x: x[1:].data,
    "turned": lambda x: memoryview(x.T),
    "iterator": lambda x: x[2:].flat,
    "part of a memoryview": lambda x: memoryview(x[1:])[1:],
    "of its own": lambda x: memoryview((x * 2)[1:]),
    "array": lambda x: np.frombuffer(x[1:], float),
    "tensor": lambda x: torch.from_dlpack(x),
    "tensor of a part": lambda x: torch.from_dlpack(x[1:].__dlpack__()),
}


@pytest.mark.parametrize("name", KEPT)
def test_memory_of_views_that_nobody_else_has_is_kept(name):
    def f(x, t):
        kept = KEPT[name](x)
        x += t
        first = float(kept[0])
        del kept
        x *= 2
        return first, x

    check(f, np.arange(5.0), 5.5)
