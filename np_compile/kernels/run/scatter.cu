// Sums of many values in few elements, in an order of their own: REAL x[place[i]] += value[i].
//
// Each warp adds a part of the values to an array of its own, in memory that its threads share. The
// threads take 32 values at a time; those that meet in one element take turns, in their order. Then
// the arrays of all warps are added to x, in the order of the warps.

typedef long long i64;
#define EACH 8    // values of a thread that are read before the first of them is added
#define ROWS 8    // rows of threads that add up some of the arrays each

struct Memory {
    i64 *place;
    REAL *value, *part, *x;
    i64 count, size, length, parts;
};

extern "C" __global__ void __launch_bounds__(32) scatter(const __grid_constant__ Memory memory) {
    extern __shared__ __align__(16) char shared[];
    REAL *held = (REAL *)shared;
    const Memory m = memory;
    const int lane = threadIdx.x, size = (int)m.size;
    for (int k = lane; k < size; k += 32) held[k] = (REAL)-0.0;  // so that -0.0 stays so
    __syncwarp();
    const i64 first = blockIdx.x * m.length;
    const i64 end = first + m.length < m.count ? first + m.length : m.count;
    for (i64 base = first; base < end; base += 32 * EACH) {
        int at[EACH];
        REAL v[EACH];
        #pragma unroll
        for (int e = 0; e < EACH; e++) {
            const i64 i = base + 32 * e + lane;
            at[e] = i < end ? (int)m.place[i] : -1 - lane;  // met by no other
            v[e] = i < end ? m.value[i] : (REAL)0;
        }
        #pragma unroll
        for (int e = 0; e < EACH; e++) {
            const unsigned same = __match_any_sync(~0u, at[e]);
            const int turn = __popc(same & ((1u << lane) - 1));
            for (int k = 0; __any_sync(~0u, turn >= k); k++) {
                if (turn == k && at[e] >= 0) held[at[e]] += v[e];
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
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32;
    const i64 k = blockIdx.x * 32LL + lane;
    REAL sum = (REAL)-0.0;
    if (k < m.size)
        for (i64 p = row; p < m.parts; p += ROWS) sum += m.part[p * m.size + k];
    sums[row][lane] = sum;
    __syncthreads();
    if (row || k >= m.size) return;
    for (int r = 1; r < ROWS; r++) sum += sums[r][lane];
    m.x[k] += sum;
}
