// Sums of values in elements that data tell, in an order of their own: REAL x[place[i]] += value[i].
//
// Many values in few elements (`scatter`, `gather`): each warp adds a part of the values to an array
// of its own, in memory that its threads share. The threads take 32 values at a time; those that
// meet in one element take turns, in their order. Which do takes long to tell, so it is asked first
// whether any may: each leaves its number at its element's tag, and finds it there if none does.
// Then the arrays of all warps are added to x, in the order of the warps, where no flag is set.
//
// Else the places are in order, or sorted (`segments`, `carry`): the values of one element follow
// one another, as a segment. A thread adds up a run of values, a block the segments that begin and
// end in its tile; what crosses tiles is added by the thread of the tile where the segment begins.

typedef long long i64;
#define EACH 8    // values of a thread that are read before the first of them is added
#define TAGS 8192
#define LEAST 512 // elements, of which it is rare that threads of a warp meet
#define ROWS 8    // rows of threads that add up some of the arrays each
#define THREADS 256
#define RUN 8     // values of a thread, one after the other
#define TILE (THREADS * RUN)
enum { ENDS, BEGINS, PASSES };  // what the segment at the end of a tile does

struct Memory {
    const void *place;
    const REAL *value;
    REAL *part, *x;
    const i64 *order;  // of sorted places, which are int then: where their values are
    int *state;
    const i64 *flag;  // in memory of the host, which one thread asks, as that takes a microsecond
    i64 count, size, length, parts;
};

static __device__ __forceinline__ i64 place_of(const Memory &m, i64 i) {
    return m.order ? ((const int *)m.place)[i] : ((const i64 *)m.place)[i];
}

// The values of a thread, from one on: before the end, and nothing behind it.
struct Values { int at[EACH]; REAL v[EACH]; };

static __device__ __forceinline__ void read(Values &x, const Memory &m, i64 first, i64 end) {
    #pragma unroll
    for (int e = 0; e < EACH; e++) {
        const i64 i = first + 32 * e;
        x.at[e] = i < end ? (int)((const i64 *)m.place)[i] : -1 - (int)(threadIdx.x % 32);
        x.v[e] = i < end ? m.value[i] : (REAL)0;
    }
}

extern "C" __global__ void __launch_bounds__(32) scatter(const __grid_constant__ Memory memory) {
    extern __shared__ __align__(16) char shared[];
    REAL *held = (REAL *)shared;
    const Memory m = memory;
    const int lane = threadIdx.x, size = (int)m.size;
    if (!blockIdx.x && !lane) *m.state = m.flag && *(const volatile i64 *)m.flag;
    volatile unsigned char *tag = (volatile unsigned char *)(held + size);
    for (int k = lane; k < size; k += 32) held[k] = (REAL)-0.0;  // so that -0.0 stays so
    __syncwarp();
    const i64 first = blockIdx.x * m.length;
    const i64 end = first + m.length < m.count ? first + m.length : m.count;
    Values now, next;
    read(next, m, first + lane, end);
    for (i64 base = first; base < end; base += 32 * EACH) {
        now = next;
        read(next, m, base + 32 * EACH + lane, end);
        bool meets[EACH];
        #pragma unroll
        for (int e = 0; e < EACH; e++) {
            meets[e] = size < LEAST;
            if (size < LEAST) continue;
            if (now.at[e] >= 0) tag[now.at[e] % TAGS] = (unsigned char)lane;
            __syncwarp();
            meets[e] = now.at[e] >= 0 && tag[now.at[e] % TAGS] != lane;
            __syncwarp();
        }
        #pragma unroll
        for (int e = 0; e < EACH; e++) {
            const int at = now.at[e];
            if (!__any_sync(~0u, meets[e])) {
                if (at >= 0) held[at] += now.v[e];
                __syncwarp();
                continue;
            }
            const unsigned same = __match_any_sync(~0u, at);
            const int turn = __popc(same & ((1u << lane) - 1));
            for (int k = 0; __any_sync(~0u, turn >= k); k++) {
                if (turn == k && at >= 0) held[at] += now.v[e];
                __syncwarp();
            }
        }
    }
    for (int k = lane; k < size; k += 32) m.part[blockIdx.x * m.size + k] = held[k];
}

extern "C" __global__ void __launch_bounds__(32 * ROWS)
gather(const __grid_constant__ Memory memory) {
    __shared__ REAL sums[ROWS][32];
    const Memory m = memory;
    const bool stopped = *m.state;
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32;
    const i64 k = blockIdx.x * 32LL + lane;
    REAL sum = (REAL)-0.0;
    if (k < m.size)
        for (i64 p = row; p < m.parts; p += ROWS) sum += m.part[p * m.size + k];
    sums[row][lane] = sum;
    __syncthreads();
    if (row || k >= m.size || stopped) return;
    for (int r = 1; r < ROWS; r++) sum += sums[r][lane];
    m.x[k] += sum;
}

// Whether any place is less than the one before it.
extern "C" __global__ void __launch_bounds__(THREADS)
descents(const __grid_constant__ Memory memory) {
    const Memory m = memory;
    const i64 *place = (const i64 *)m.place;
    bool found = false;
    const i64 first = (i64)blockIdx.x * TILE + threadIdx.x;
    #pragma unroll
    for (int e = 0; e < RUN; e++) {
        const i64 i = first + e * THREADS;
        if (i && i < m.count) found |= place[i] < place[i - 1];
    }
    if (found) *m.state = 1;
}

// The values of a segment so far, and whether it begins in what they are from.
struct Segment { bool begins; REAL sum; };

static __device__ __forceinline__ Segment then(Segment a, Segment b) {
    return {a.begins || b.begins, b.begins ? b.sum : a.sum + b.sum};
}

static __device__ __forceinline__ void ended(const Memory &m, Segment s, i64 at) {
    if (s.begins) m.x[at] += s.sum;
    else m.part[blockIdx.x] = s.sum;
}

extern "C" __global__ void __launch_bounds__(THREADS)
segments(const __grid_constant__ Memory memory) {
    __shared__ bool begun[2][THREADS];
    __shared__ REAL sums[2][THREADS];
    const Memory m = memory;
    const int t = threadIdx.x;
    const i64 first = ((i64)blockIdx.x * THREADS + t) * RUN;
    const i64 end = first + RUN < m.count ? first + RUN : m.count;
    const bool any = first < m.count;
    i64 at = any ? place_of(m, first) : -1, front_at = -1;
    const bool begins = !any || !first || place_of(m, first - 1) != at;
    bool several = false;  // segments in this run
    REAL sum = (REAL)-0.0, front = (REAL)-0.0;
    for (i64 i = first; i < end; i++) {
        const i64 next = place_of(m, i);
        if (next != at) {
            if (several) m.x[at] += sum;
            else front = sum, front_at = at;
            several = true;
            sum = (REAL)-0.0, at = next;
        }
        sum += m.value[m.order ? m.order[i] : i];
    }
    Segment so_far = {begins || several, sum}, before = {false, (REAL)-0.0};
    begun[0][t] = so_far.begins, sums[0][t] = so_far.sum;
    int side = 0;
    for (int o = 1; o < THREADS; o *= 2) {
        __syncthreads();
        if (t >= o) so_far = then({begun[side][t - o], sums[side][t - o]}, so_far);
        side ^= 1;
        begun[side][t] = so_far.begins, sums[side][t] = so_far.sum;
    }
    __syncthreads();
    if (t) before = {begun[side][t - 1], sums[side][t - 1]};
    if (several) ended(m, then(before, {begins, front}), front_at);
    const bool goes_on = any && end < m.count && place_of(m, end) == at;
    if (any && !goes_on) ended(m, so_far, at);
    if (t < THREADS - 1) return;
    m.state[blockIdx.x] = goes_on ? so_far.begins ? BEGINS : PASSES : ENDS;
    m.part[m.parts + blockIdx.x] = so_far.sum;
}

extern "C" __global__ void __launch_bounds__(THREADS) carry(const __grid_constant__ Memory memory) {
    const Memory m = memory;
    i64 tile = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (tile >= m.parts || m.state[tile] != BEGINS) return;
    const i64 at = place_of(m, (tile + 1) * TILE - 1);
    REAL sum = m.part[m.parts + tile];
    while (m.state[++tile] == PASSES) sum += m.part[m.parts + tile];
    m.x[at] += sum + m.part[tile];
}
