"""LZ77, Burrows and Wheeler's transform, codes of Reed, Solomon and Hamming."""

from __future__ import annotations

import struct

import numpy as np

from ..whole_programs import whole


class BitWriter:
    def __init__(self):
        self.bits = []

    def write(self, value, n):
        for k in range(n - 1, -1, -1):
            self.bits.append((value >> k) & 1)

    def __bytes__(self):
        return np.packbits(np.array(self.bits, dtype=np.uint8)).tobytes()

    def __len__(self):
        return len(self.bits)


class BitReader:
    def __init__(self, data):
        self.bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8))
        self.pos = 0

    def read(self, n):
        v = 0
        for _ in range(n):
            v = v << 1 | int(self.bits[self.pos])
            self.pos += 1
        return v


def lz77(data, window=64, longest=15):
    i, out = 0, []
    while i < len(data):
        best = (0, 0)
        for j in range(max(0, i - window), i):
            k = 0
            while k < longest and i + k < len(data) - 1 and data[j + k] == data[i + k]:
                k += 1
            if k > best[1]:
                best = (i - j, k)
        off, n = best
        out.append((off, n, int(data[i + n])))
        i += n + 1
    return out


def unlz77(tokens):
    out = bytearray()
    for off, n, c in tokens:
        for _ in range(n):
            out.append(out[-off])
        out.append(c)
    return bytes(out)


def bwt(s):
    n = len(s)
    if n == 0:
        return s, 0
    rank = s.astype(np.int64)
    k = 1
    while k < n:
        second = rank[(np.arange(n) + k) % n]
        order = np.lexsort((second, rank))
        pairs = np.stack([rank[order], second[order]])
        rank = np.empty(n, np.int64)
        rank[order] = np.concatenate(
            [[0], np.cumsum(np.any(pairs[:, 1:] != pairs[:, :-1], axis=0))]
        )
        if rank.max() == n - 1:
            break
        k *= 2
    order = np.argsort(rank, kind="stable")
    return s[(order - 1) % n], int(np.flatnonzero(order == 0)[0])


def unbwt(last, k):
    n = len(last)
    order = np.argsort(last, kind="stable")
    out = np.empty_like(last)
    for i in range(n):
        k = order[k]
        out[i] = last[k]
    return out


def mtf(s):
    table = list(range(256))
    out = np.empty(len(s), dtype=np.uint8)
    for i, c in enumerate(s):
        k = table.index(c)
        out[i] = k
        table.insert(0, table.pop(k))
    return out


def unmtf(codes):
    table = np.arange(256, dtype=np.uint8)
    out = np.empty_like(codes)
    for i, k in enumerate(codes):
        c = table[k]
        out[i] = c
        table[1 : int(k) + 1] = table[: int(k)].copy()
        table[0] = c
    return out


class GF:
    """GF(256) with log tables."""

    exp = np.zeros(512, dtype=np.int64)
    log = np.zeros(256, dtype=np.int64)

    @classmethod
    def build(cls):
        x = 1
        for i in range(255):
            cls.exp[i] = x
            cls.log[x] = i
            x <<= 1
            if x & 0x100:
                x ^= 0x11D
        cls.exp[255:] = cls.exp[:257]

    @classmethod
    def mul(cls, a, b):
        a, b = np.broadcast_arrays(a, b)
        r = cls.exp[cls.log[a] + cls.log[b]]
        return np.where((a == 0) | (b == 0), 0, r)

    @classmethod
    def polymul(cls, p, q):
        r = np.zeros(len(p) + len(q) - 1, dtype=np.int64)
        for i, a in enumerate(p):
            r[i : i + len(q)] ^= cls.mul(a, q)
        return r

    @classmethod
    def eval(cls, p, x):
        y = 0
        for c in p:
            y = int(cls.mul(y, x)) ^ int(c)
        return y


GF.build()


def rs_encode(msg, nsym):
    gen = np.array([1], dtype=np.int64)
    for i in range(nsym):
        gen = GF.polymul(gen, np.array([1, GF.exp[i]]))
    out = np.concatenate([msg.astype(np.int64), np.zeros(nsym, np.int64)])
    for i in range(len(msg)):
        if out[i]:
            out[i + 1 : i + len(gen)] ^= GF.mul(gen[1:], out[i])
    return np.concatenate([msg, out[len(msg) :]])


def syndromes(code, nsym):
    return np.array([GF.eval(code, int(GF.exp[i])) for i in range(nsym)])


def hamming_fix(bits):
    H = np.array([[int(b) for b in f"{k:03b}"] for k in range(1, 8)]).T
    words = bits.reshape(-1, 7)
    s = (words @ H.T) % 2
    at = s @ [4, 2, 1]
    bad = np.flatnonzero(at)
    words[bad, at[bad] - 1] ^= 1
    return len(bad)


def adaptive_arithmetic(data):
    """Bits that an ideal adaptive coder would need; counts change as it goes."""
    counts = np.ones(256)
    total, bits = 256.0, 0.0
    for c in data:
        bits -= np.log2(counts[c] / total)
        counts[c] += 1
        total += 1
    return bits


@whole(b"abracadabra abra", 4, 0)
def coded_and_corrected(text, nsym, seed):
    data = np.frombuffer(text, dtype=np.uint8)
    tokens = lz77(data)
    assert unlz77(tokens) == text
    w = BitWriter()
    for off, n, c in tokens:
        w.write(off, 7)
        w.write(n, 4)
        w.write(c, 8)
    r = BitReader(bytes(w))
    again = [(r.read(7), r.read(4), r.read(8)) for _ in tokens]
    last, k = bwt(data)
    m = mtf(last)
    back = unbwt(unmtf(m), k) if len(data) else data
    code = rs_encode(data, nsym)
    good = syndromes(code, nsym)
    rng = np.random.default_rng(seed)
    code = code.copy()
    if len(code):
        code[rng.integers(len(code))] ^= 0x55
    bits = rng.integers(0, 2, 28).astype(np.uint8)
    fixed = hamming_fix(bits)
    print(
        f"{len(text)} -> {len(bytes(w))} bytes, "
        f"zeros after mtf {np.mean(m == 0) if len(m) else 0:.3f}, "
        f"{adaptive_arithmetic(data):.1f} bits, fixed {fixed}"
    )
    head = struct.pack("<IH", len(text), nsym) + code[:2].astype(np.uint8).tobytes()
    return again == tokens, last, k, back.tobytes() == text, good, syndromes(code, nsym), bits, head
