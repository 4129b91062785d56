"""What CUDA programs begin with: gcc's builtins in CUDA's words, scalar functions, and how threads
combine what they have.

The scalar functions are those of C (`targets/c/prelude.py`) but for the elementary ones, which are
CUDA's, and for quotients of integers, which the hardware has no vectors for.
"""

from __future__ import annotations

import re
from functools import cache

from ...ir.dtypes import TYPEDEFS
from ..c import prelude as c
from ..c.libm import BINARY, UNARY

# Greatest distance from the exact result, in units of its last place, for f64 and f32: CUDA's.
ULP: dict[str, tuple[int, int]] = dict.fromkeys((*UNARY, *BINARY), (4, 4)) | {
    "erfc": (6, 5),
    "lgamma": (8, 8),
    "tgamma": (10, 6),
}

_REAL = ("fabs", "trunc", "floor", "rint", "ceil", "copysign", "sqrt", "fma")
_BUILTINS = "".join(f"#define __builtin_{f} {f}\n#define __builtin_{f}f {f}f\n" for f in _REAL)

# So many elementary functions in a program are called: written out at each place, a hundred of them
# take NVRTC many seconds.
_MANY = 32

_HEAD = """\
#define __builtin_memcpy memcpy
#define __builtin_inff() __int_as_float(0x7f800000)
#define __builtin_inf() __longlong_as_double(0x7ff0000000000000LL)
#define __builtin_nanf nanf
#define __builtin_nan nan
#ifdef BYTES
#define ALIGNED(p) __builtin_assume_aligned(p, BYTES)
#else
#define ALIGNED(p) (p)
#endif
#define INLINE static __device__ __forceinline__
#define CALLED static __device__ __noinline__
template <class B, class A> INLINE B bits(A a) { B b; memcpy(&b, &a, sizeof b); return b; }
"""

# How threads combine what they have. Partial results are combined in the order of threads, so that
# the result is the same in each run.
_THREADS = """\
template <class T> struct Ranked { T value; i64 at; };
template <class T> INLINE T moved(unsigned group, T v, int from, int width) {
    u32 words[(sizeof(T) + 3) / 4] = {};
    memcpy(words, &v, sizeof v);
    #pragma unroll
    for (int k = 0; k < (int)((sizeof(T) + 3) / 4); k++)
        words[k] = __shfl_sync(group, words[k], from, width);
    memcpy(&v, words, sizeof v);
    return v;
}
template <int N> INLINE unsigned group_of() {
    return N >= 32 ? ~0u : ((1u << (N % 32)) - 1) << (threadIdx.x % 32 / N * N);
}
template <int N> INLINE void together() {
    if (N > 32) __syncthreads();
    else if (N > 1) __syncwarp(group_of<N>());
}
template <int N, class T, class F> INLINE T fold(T v, F f) {
    constexpr int W = N < 32 ? N : 32;
    const int lane = threadIdx.x % W;
    #pragma unroll
    for (int o = W / 2; o; o /= 2) {
        T other = moved(group_of<N>(), v, lane + o, W);
        v = lane + o < W ? f(v, other) : v;
    }
    if (N <= 32) return N > 1 ? moved(group_of<N>(), v, 0, W) : v;
    __shared__ T parts[N > 32 ? N / 32 : 1];
    __syncthreads();
    if (lane == 0) parts[threadIdx.x / 32] = v;
    __syncthreads();
    v = parts[0];
    for (int k = 1; k < N / 32; k++) v = f(v, parts[k]);
    return v;
}
template <int N, class T, class F> INLINE T running(T v, T &so_far, F f) {
    constexpr int W = N < 32 ? N : 32;
    const int lane = threadIdx.x % W;
    #pragma unroll
    for (int o = 1; o < W; o *= 2) {
        T other = moved(group_of<N>(), v, lane - o, W);
        v = lane >= o ? f(other, v) : v;
    }
    T left = moved(group_of<N>(), v, lane - 1, W);
    T before = so_far;
    if (N <= 32) {
        so_far = f(so_far, moved(group_of<N>(), v, W - 1, W));
        return lane ? f(before, left) : before;
    }
    __shared__ T parts[N > 32 ? N / 32 : 1];
    __syncthreads();
    if (lane == 31) parts[threadIdx.x / 32] = v;
    __syncthreads();
    T mine = before;
    for (int k = 0; k < N / 32; k++) {
        if (k == threadIdx.x / 32) mine = before;
        before = f(before, parts[k]);
    }
    so_far = before;
    return lane ? f(mine, left) : mine;
}
INLINE bool last_block(unsigned *counter) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicInc(counter, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) __threadfence();
    return last;
}
template <class T, class F> INLINE void combine(T *place, F f) {
    if (sizeof(T) == 8) {
        unsigned long long *p = (unsigned long long *)place, seen = *p, was;
        do {
            was = seen;
            T made = f(bits<T>(was));
            unsigned long long next = 0;
            memcpy(&next, &made, sizeof made);
            if (next == was) return;
            seen = atomicCAS(p, was, next);
        } while (seen != was);
    } else {
        unsigned *p = (unsigned *)((u64)place & ~3ul), seen = *p, was;
        const int shift = ((u64)place & 3) * 8;
        do {
            was = seen;
            T old;
            unsigned low = was >> shift;
            memcpy(&old, &low, sizeof old);
            T made = f(old);
            unsigned next = 0, mask = sizeof(T) < 4 ? (1u << (8 * sizeof(T) % 32)) - 1 : ~0u;
            memcpy(&next, &made, sizeof made);
            next = (was & ~(mask << shift)) | (next << shift);
            if (next == was) return;
            seen = atomicCAS(p, was, next);
        } while (seen != was);
    }
}
"""


@cache
def _functions() -> dict[str, str]:
    """The texts of scalar functions by name, each after those that it calls."""
    table = _elementary()
    return table | c.scalar_functions(table.keys(), by_hardware=True)


@cache
def _elementary() -> dict[str, str]:
    """Those that CUDA has, of which each place takes much code."""
    table: dict[str, str] = {}
    for real in ("f32", "f64"):
        s = "f" if real == "f32" else ""
        for names, operands in ((UNARY, "a"), (BINARY, "ab"), (("fmod",), "ab")):
            listed = ", ".join(f"{real} {x}" for x in operands)
            given = ", ".join(operands)
            for name in names:
                body = f"return {name}{s}({given});"
                table[f"{name}_{real}"] = f"INLINE {real} {name}_{real}({listed}) {{ {body} }}\n"
        for name in ("lgamma", "tgamma"):
            body = f"return {name}{s}(a);"
            table[f"{name}_{real}"] = f"INLINE {real} {name}_{real}({real} a) {{ {body} }}\n"
    return table


@cache
def _long() -> frozenset[str]:
    """The names of elementary functions, and of those that call them."""
    names = _elementary().keys()
    inside = {name: re.findall(r"\w+", text) for name, text in _functions().items()}
    return frozenset(name for name, words in inside.items() if not names.isdisjoint(words))


@cache
def named() -> frozenset[str]:
    """The names of the scalar functions."""
    return frozenset(_functions())


def prelude(source: str, threads: bool = True) -> str:
    """The typedefs, and the functions that a source names, with those that they name. threads: and
    how threads combine what they have."""
    needed = c.needed(_functions(), source)
    long = _long()
    if sum([word in long for word in re.findall(r"\w+(?=\()", source)]) >= _MANY:
        for text in _elementary().values():
            needed = needed.replace(text, text.replace("INLINE", "CALLED", 1))
    return TYPEDEFS + _BUILTINS + _HEAD + needed + (_THREADS if threads else "")
