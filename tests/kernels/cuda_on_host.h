// CUDA C++ on the host: what kernels take for granted, with fibers for threads.
//
// The threads of a block take turns: each runs until it waits for others or ends. Threads that
// touch what others do without waiting therefore give other results in another order of turns.
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define __global__
#define __device__
#define __shared__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(n)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))

enum { WARP = 32, MOST = 1024, STACK = 1 << 16 };
enum State { READY, AT_BLOCK, AT_WARP, ENDED };
struct Place { unsigned x; };
static Place threadIdx, blockIdx, gridDim;

static jmp_buf scheduler, fibers[MOST];
static char *stacks[MOST];            // of the fibers that there are: each runs thread after thread
static State state[MOST];
static unsigned group[MOST];          // lanes that a thread waits for
static unsigned given[MOST];          // what threads hand to others of their warp
alignas(16) static char shared[1 << 18];
static void (*body)(void *);
static void *memory_of_body;

static void waits(State s, unsigned lanes) {
    unsigned me = threadIdx.x;
    state[me] = s;
    group[me] = lanes;
    if (!_setjmp(fibers[me])) _longjmp(scheduler, 1);
}
static void __syncthreads() { waits(AT_BLOCK, 0); }
static void __syncwarp(unsigned lanes = ~0u) { waits(AT_WARP, lanes); }
static unsigned __shfl_sync(unsigned lanes, unsigned v, int from, int width = WARP) {
    unsigned me = threadIdx.x, first = me / width * width;
    given[me] = v;
    __syncwarp(lanes);
    unsigned found = given[first + (from & (width - 1))];
    __syncwarp(lanes);
    return found;
}
static unsigned __match_any_sync(unsigned lanes, int v) {
    unsigned me = threadIdx.x, first = me / WARP * WARP, same = 0;
    given[me] = v;
    __syncwarp(lanes);
    for (unsigned k = 0; k < WARP; k++)
        same |= (lanes >> k & 1 && given[first + k] == (unsigned)v) << k;
    __syncwarp(lanes);
    return same;
}
static bool __any_sync(unsigned lanes, bool v) {
    return __match_any_sync(lanes, v) != (v ? 0 : lanes);
}
static int __popc(unsigned v) { return __builtin_popcount(v); }
static void __threadfence() {}

template <class T, class V> static T changed(T *p, V v) { T was = *p; *p = (T)v; return was; }
template <class T> static T atomicAdd(T *p, T v) { return changed(p, *p + v); }
template <class T> static T atomicMin(T *p, T v) { return changed(p, v < *p ? v : *p); }
template <class T> static T atomicMax(T *p, T v) { return changed(p, v > *p ? v : *p); }
template <class T> static T atomicCAS(T *p, T is, T v) { return changed(p, *p == is ? v : *p); }
static unsigned atomicInc(unsigned *p, unsigned most) {
    return changed(p, *p >= most ? 0 : *p + 1);
}
static long __mul64hi(long a, long b) { return (long)((__int128)a * b >> 64); }
static float __int_as_float(int v) { float r; memcpy(&r, &v, 4); return r; }
static double __longlong_as_double(long long v) { double r; memcpy(&r, &v, 8); return r; }

static void fiber() {
    for (;;) {
        body(memory_of_body);
        waits(ENDED, 0);
    }
}

static __attribute__((noinline)) void turn(unsigned t) {
    threadIdx.x = t;
    if (_setjmp(scheduler)) return;
    if (stacks[t]) _longjmp(fibers[t], 1);
    ucontext_t made;
    getcontext(&made);
    stacks[t] = (char *)malloc(STACK);
    made.uc_stack.ss_sp = stacks[t];
    made.uc_stack.ss_size = STACK;
    made.uc_link = 0;
    makecontext(&made, fiber, 0);
    setcontext(&made);
}

// Whether all lanes that a thread waits for are there, and wait for the same ones.
static bool warp_is_there(unsigned me, unsigned threads) {
    unsigned first = me / WARP * WARP;
    for (unsigned l = 0; l < WARP; l++)
        if (group[me] >> l & 1) {
            unsigned it = first + l;
            if (it >= threads || state[it] != AT_WARP || group[it] != group[me]) return false;
        }
    return true;
}

// Run a block; whether its threads wait for ever.
static bool run_block(unsigned threads, const unsigned *order) {
    for (unsigned t = 0; t < threads; t++) state[t] = READY;
    for (;;) {
        unsigned at_block = 0, ended = 0;
        bool any = false;
        for (unsigned k = 0; k < threads; k++) {
            unsigned t = order[k];
            if (state[t] != READY) continue;
            any = true;
            turn(t);
        }
        for (unsigned t = 0; t < threads; t++) {
            if (state[t] == AT_WARP && warp_is_there(t, threads)) {
                unsigned first = t / WARP * WARP, lanes = group[t];
                for (unsigned l = 0; l < WARP; l++)
                    if (lanes >> l & 1) state[first + l] = READY;
                any = true;
            }
            at_block += state[t] == AT_BLOCK;
            ended += state[t] == ENDED;
        }
        if (ended == threads) return false;
        if (at_block && at_block + ended == threads) {
            for (unsigned t = 0; t < threads; t++)
                if (state[t] == AT_BLOCK) state[t] = READY;
        } else if (!any) {
            return true;
        }
    }
}

// The place of the k-th of n in some order: as they are, backwards, or mixed.
static unsigned place(unsigned k, unsigned n, int turns) {
    if (turns == 0) return k;
    if (turns == 1) return n - 1 - k;
    unsigned step = n / 2 + 1;  // without a common divisor, so that each has its turn
    for (;; step++) {
        unsigned a = step, b = n;
        while (b) { unsigned r = a % b; a = b; b = r; }
        if (a == 1) return (unsigned)((unsigned long)k * step % n);
    }
}

static int run_grid(void (*kernel)(void *), void *memory, unsigned blocks, unsigned threads,
                    int turns) {
    unsigned order[MOST];
    body = kernel;
    memory_of_body = memory;
    gridDim.x = blocks;
    for (unsigned k = 0; k < threads; k++) order[k] = place(k, threads, turns);
    for (unsigned k = 0; k < blocks; k++) {
        blockIdx.x = place(k, blocks, turns);
        memset(shared, 0xa5, sizeof shared);
        if (run_block(threads, order)) return 1;
    }
    return 0;
}
