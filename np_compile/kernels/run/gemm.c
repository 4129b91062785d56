/* Products of matrices, C = A B, of the numbers REAL, a macro that is set before this text.
 *
 *     npc_gemm(run, threads, shape, c, a, b)
 *
 * shape: how many products, m, n, k, and of C, A and B in turn the strides, in elements, from one
 * product to the next, of rows, and of columns. C overlaps neither A nor B. run: `npc_run` of pool.c.
 *
 * C is cut into tiles. Where C is small and k large, k is cut into parts, whose sums are added in
 * order. Both cuts depend on the shape alone, so the result does not depend on the number of threads.
 *
 * A tile is made panel by panel: the columns of a panel of B are copied so that they lie side by side
 * at each step of k, and a kernel holds some rows of the panel's product in registers while it walks
 * along k. Its steps are fused multiplications and additions, where the processor has them.
 */
#include <stdlib.h>
#include <string.h>

#if defined(__clang__)
#pragma clang fp contract(fast)
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=fast")
#endif

/* A kernel's registers: ROWS * VECTORS sums, VECTORS of B, and one of A. */
#if defined(__AVX512F__)
#define WIDTH 64
#define ROWS 8
#define VECTORS 3
#elif defined(__AVX__)
#define WIDTH 32
#define ROWS 6
#define VECTORS 2
#elif defined(__aarch64__)
#define WIDTH 16
#define ROWS 8
#define VECTORS 3
#else
#define WIDTH 16
#define ROWS 6
#define VECTORS 2
#endif
#define LANES ((long)(WIDTH / sizeof(REAL)))
#define COLUMNS (VECTORS * LANES)
#define DEPTH 192                    /* steps of k between two visits of C */
#define TILE_COLUMNS 480
#define TILE_ROWS 192
#define TILES 32                     /* so many are tried to make of a large product */
#define WORTH (1L << 18)             /* multiplications of a tile, at least */
#define PARTS 16                     /* of k, at most */

typedef REAL Vector __attribute__((vector_size(WIDTH)));
typedef REAL Unaligned __attribute__((vector_size(WIDTH), aligned(sizeof(REAL)), may_alias));
typedef void (*body_t)(void *, long, long);
typedef void (*run_t)(body_t, void *, long, long, int);

typedef struct {
    REAL *at;
    long down, right; /* strides of the rows and of the columns */
} Matrix;

/* ---- kernels: R rows of C, `right` = 1, from A and a panel of B; added to C, or stored ---- */

typedef void (*Kernel)(long depth, Matrix a, const REAL *panel, REAL *c, long down, int add);

#define UNROLL _Pragma("GCC unroll 8")
#define KERNEL(R, V)                                                                               \
    static void kernel_##R##_##V(long depth, Matrix a, const REAL *panel, REAL *c, long down,      \
                                 int add) {                                                        \
        Vector sum[R][V];                                                                          \
        UNROLL for (int i = 0; i < R; i++)                                                         \
            UNROLL for (int j = 0; j < V; j++)                                                     \
                sum[i][j] = (Vector){0};                                                           \
        const REAL *at = a.at;                                                                     \
        for (long k = 0; k < depth; k++, at += a.right, panel += V * LANES) {                      \
            Vector b[V];                                                                           \
            UNROLL for (int j = 0; j < V; j++)                                                     \
                b[j] = ((const Vector *)panel)[j];                                                 \
            UNROLL for (int i = 0; i < R; i++)                                                     \
                UNROLL for (int j = 0; j < V; j++)                                                 \
                    sum[i][j] += at[i * a.down] * b[j];                                            \
        }                                                                                          \
        UNROLL for (int i = 0; i < R; i++)                                                         \
            UNROLL for (int j = 0; j < V; j++) {                                                   \
                Unaligned *place = (Unaligned *)(c + i * down) + j;                                \
                if (add)                                                                           \
                    sum[i][j] += *place;                                                           \
                *place = sum[i][j];                                                                \
            }                                                                                      \
    }
#if VECTORS == 3
#define KERNELS(R) KERNEL(R, 1) KERNEL(R, 2) KERNEL(R, 3)
#define NAMES(R) {kernel_##R##_1, kernel_##R##_2, kernel_##R##_3}
#else
#define KERNELS(R) KERNEL(R, 1) KERNEL(R, 2)
#define NAMES(R) {kernel_##R##_1, kernel_##R##_2}
#endif

KERNELS(1) KERNELS(2) KERNELS(3) KERNELS(4) KERNELS(5) KERNELS(6)
#if ROWS == 8
KERNELS(7) KERNELS(8)
#endif

static const Kernel kernels[ROWS][VECTORS] = {
    NAMES(1), NAMES(2), NAMES(3), NAMES(4), NAMES(5), NAMES(6),
#if ROWS == 8
    NAMES(7), NAMES(8),
#endif
};

/* ---- a tile: one thread's work ---- */

static long least(long a, long b) { return a < b ? a : b; }

static long pieces(long whole, long piece) { return (whole + piece - 1) / piece; }

static long rounded(long count, long unit) { return pieces(count, unit) * unit; }

static Matrix part(Matrix x, long row, long column) {
    return (Matrix){x.at + row * x.down + column * x.right, x.down, x.right};
}

static Matrix turned(Matrix x) { return (Matrix){x.at, x.right, x.down}; }

/* Rows of B, from the first one, of which `wide` elements lie before the end of the last. */
static long overlapping(long depth, long columns, long wide, Matrix b) {
    long last = (depth - 1) * b.down + columns - wide;
    return b.right != 1 || b.down <= 0 || last < 0 ? 0 : least(depth, last / b.down + 1);
}

/* Copy columns of B, `wide` apart from one step of k to the next, in whole vectors: what is beside
 * the columns makes sums that nobody looks at. */
static void pack(long depth, long columns, long wide, Matrix b, REAL *restrict panel) {
    long k = 0, vectors = wide / LANES;
    for (long whole = overlapping(depth, columns, wide, b); k < whole; k++, panel += wide)
        UNROLL for (long v = 0; v < vectors; v++)
            ((Vector *)panel)[v] = ((const Unaligned *)(b.at + k * b.down))[v];
    for (; k < depth; k++, panel += wide) {
        const REAL *from = b.at + k * b.down;
        for (long j = 0; j < columns; j++)
            panel[j] = from[j * b.right];
        for (long j = columns; j < wide; j++)
            panel[j] = 0;
    }
}

/* A panel's columns of C. */
static void multiply(long m, long columns, long depth, Matrix c, Matrix a, const REAL *panel,
                     int add) {
    long vectors = pieces(columns, LANES), wide = vectors * LANES;
    long most = pieces(m, pieces(m, ROWS));
    for (long i = 0; i < m; i += most) {
        long rows = least(most, m - i);
        Kernel kernel = kernels[rows - 1][vectors - 1];
        Matrix to = part(c, i, 0);
        if (c.right == 1 && columns == wide) {
            kernel(depth, part(a, i, 0), panel, to.at, c.down, add);
            continue;
        }
        _Alignas(WIDTH) REAL sums[ROWS * COLUMNS];
        kernel(depth, part(a, i, 0), panel, sums, wide, 0);
        for (long r = 0; r < rows; r++)
            for (long j = 0; j < columns; j++) {
                REAL *place = part(to, r, j).at, sum = sums[r * wide + j];
                *place = add ? *place + sum : sum;
            }
    }
}

/* m rows and n columns of C. Of panel j only the rows up to the panel's last column plus `bound`. */
static void tile(long m, long n, long k, Matrix c, Matrix a, Matrix b, long bound) {
    _Alignas(WIDTH) REAL panel[DEPTH * COLUMNS];
    for (long done = 0; done < k; done += DEPTH) {
        long depth = least(DEPTH, k - done);
        for (long j = 0; j < n; j += COLUMNS) {
            long columns = least(COLUMNS, n - j), rows = least(m, j + columns + bound);
            if (rows <= 0)
                continue;
            pack(depth, columns, rounded(columns, LANES), part(b, done, j), panel);
            multiply(rows, columns, depth, part(c, 0, j), part(a, 0, done), panel, done > 0);
        }
    }
}

/* ---- all tiles ---- */

typedef struct {
    long m, n, k;
    Matrix c, a, b;
    int symmetric;             /* the product of a matrix turned with itself: half of it is made */
    long rows, columns, depth; /* of a tile */
    REAL *sums;                /* of the parts of k */
} Job;

static long bound(const Job *job, long row, long column) {
    return job->symmetric ? column - row : job->m;
}

static void some_tiles(void *context, long begin, long end) {
    const Job *job = context;
    long across = pieces(job->n, job->columns);
    for (long t = begin; t < end; t++) {
        long i = t / across * job->rows, j = t % across * job->columns;
        tile(least(job->rows, job->m - i), least(job->columns, job->n - j), job->k,
             part(job->c, i, j), part(job->a, i, 0), part(job->b, 0, j), bound(job, i, j));
    }
}

static void some_parts(void *context, long begin, long end) {
    const Job *job = context;
    for (long p = begin; p < end; p++) {
        long from = p * job->depth;
        Matrix c = {job->sums + p * job->m * job->n, job->n, 1};
        tile(job->m, job->n, least(job->depth, job->k - from), c, part(job->a, 0, from),
             part(job->b, from, 0), bound(job, 0, 0));
    }
}

static void add_parts(const Job *job, long parts) {
    long size = job->m * job->n;
    for (long i = 0; i < job->m; i++)
        for (long j = job->symmetric ? i : 0; j < job->n; j++) {
            REAL sum = job->sums[i * job->n + j];
            for (long p = 1; p < parts; p++)
                sum += job->sums[p * size + i * job->n + j];
            *part(job->c, i, j).at = sum;
        }
}

static void mirror(const Job *job) {
    for (long i = 0; i < job->m; i++)
        for (long j = 0; j < i; j++)
            *part(job->c, i, j).at = *part(job->c, j, i).at;
}

/* Of each step of k, half the vectors of products, and the copies: the panels are B's. */
static double cost(long m, long n, Matrix b) {
    return 0.5 * m * pieces(n, LANES) + (b.right == 1 ? 0.25 : 1.0) * n;
}

static void compute(Job *job, run_t run, int threads) {
    long m = job->m, n = job->n, k = job->k;
    double work = (double)m * n * k / WORTH;
    long wanted = work < 4 * TILES ? (long)work : 4 * TILES;
    long parts = least(least(k / (4 * DEPTH), wanted), PARTS);
    if (parts > 1 && m * n <= k) {
        job->depth = rounded(pieces(k, parts), DEPTH);
        parts = pieces(k, job->depth);
        job->sums = malloc(sizeof(REAL) * m * n * parts);
        if (job->sums) {
            run(some_parts, job, parts, 1, threads);
            add_parts(job, parts);
            free(job->sums);
            return;
        }
    }
    job->columns = rounded(pieces(n, pieces(n, TILE_COLUMNS)), COLUMNS);
    long across = pieces(n, job->columns), down = pieces(m, TILE_ROWS);
    if (across * down < wanted / 4)
        down = least(pieces(wanted / 4, across), pieces(m, 8 * ROWS));
    job->rows = rounded(pieces(m, down), ROWS);
    run(some_tiles, job, across * pieces(m, job->rows), 1, threads);
}

/* ---- products with a vector, y = A x ---- */

#define TOGETHER 8                   /* rows of A that are read side by side */
#define BLOCK 1024                   /* elements of y that stay in the first-level cache */
#define STREAMED (1L << 17)          /* elements of A that a thread reads, at least */

typedef struct {
    long m, k, each; /* each: rows, or columns, of a chunk */
    Matrix a;
    const REAL *x;   /* side by side */
    REAL *y;
    long step;       /* of y */
    REAL *sums;      /* of the chunks of columns, if there are several */
} Applied;

typedef __typeof__(_Generic((REAL)0, float: 0, double: 0LL)) Lane;
typedef Lane Mask __attribute__((vector_size(WIDTH)));
typedef Lane Anywhere __attribute__((vector_size(WIDTH), aligned(sizeof(REAL)), may_alias));

/* No lanes, then all: what begins at n has n lanes at its end. */
static const Lane counted[2 * LANES] = {[LANES ... 2 * LANES - 1] = -1};

static REAL total(Vector v) {
    REAL sum[LANES];
    *(Unaligned *)sum = v;
    UNROLL for (int l = 0; l < LANES / 2; l++)
        sum[l] += sum[l + LANES / 2];
    UNROLL for (int l = 1; l < LANES / 2; l++)
        sum[0] += sum[l];
    return sum[0];
}

/* Products of some rows, whose elements lie side by side, with x. */
#define DOTS(R)                                                                                    \
    static void dots_##R(long k, Matrix a, const REAL *x, REAL *y, long step) {                    \
        Vector sum[R];                                                                             \
        UNROLL for (int i = 0; i < R; i++)                                                         \
            sum[i] = (Vector){0};                                                                  \
        long j = 0;                                                                                \
        for (; j + LANES <= k; j += LANES) {                                                       \
            Vector v = *(const Unaligned *)(x + j);                                                \
            UNROLL for (int i = 0; i < R; i++)                                                     \
                sum[i] += *(const Unaligned *)(a.at + i * a.down + j) * v;                         \
        }                                                                                          \
        if (j < k) { /* the last vector, but for what is counted already */                        \
            Mask rest = *(const Anywhere *)(counted + k - j);                                      \
            Vector v = (Vector)(*(const Anywhere *)(x + k - LANES) & rest);                        \
            UNROLL for (int i = 0; i < R; i++)                                                     \
                sum[i] += (Vector)(*(const Anywhere *)(a.at + i * a.down + k - LANES) & rest) * v; \
        }                                                                                          \
        UNROLL for (int i = 0; i < R; i++)                                                         \
            y[i * step] = total(sum[i]);                                                           \
    }
DOTS(1)
DOTS(8)

static void some_dots(void *context, long begin, long end) {
    const Applied *job = context;
    long i = begin * job->each, last = least(job->m, end * job->each);
    for (; i + TOGETHER <= last; i += TOGETHER)
        dots_8(job->k, part(job->a, i, 0), job->x, job->y + i * job->step, job->step);
    for (; i < last; i++)
        dots_1(job->k, part(job->a, i, 0), job->x, job->y + i * job->step, job->step);
}

/* Columns from .. to of A, whose elements lie side by side, times their x, added up. */
static void add_columns(const Applied *job, long from, long to, REAL *y, long step) {
    for (long i = 0; i < job->m; i += BLOCK) {
        long rows = least(BLOCK, job->m - i), k = from;
        _Alignas(WIDTH) REAL sum[BLOCK];
        memset(sum, 0, sizeof sum);
        for (; k + TOGETHER <= to; k += TOGETHER) {
            const REAL *at = part(job->a, i, k).at, *x = job->x + k;
            long l = 0, right = job->a.right;
            for (; l + LANES <= rows; l += LANES) {
                Vector v = *(Vector *)(sum + l);
                UNROLL for (int c = 0; c < TOGETHER; c++)
                    v += *(const Unaligned *)(at + c * right + l) * x[c];
                *(Vector *)(sum + l) = v;
            }
            for (; l < rows; l++)
                UNROLL for (int c = 0; c < TOGETHER; c++)
                    sum[l] += at[c * right + l] * x[c];
        }
        for (; k < to; k++) {
            const REAL *at = part(job->a, i, k).at;
            for (long l = 0; l < rows; l++)
                sum[l] += at[l] * job->x[k];
        }
        for (long l = 0; l < rows; l++)
            y[(i + l) * step] = sum[l];
    }
}

static void some_columns(void *context, long begin, long end) {
    const Applied *job = context;
    for (long p = begin; p < end; p++)
        add_columns(job, p * job->each, least(job->k, (p + 1) * job->each),
                    job->sums + p * job->m, 1);
}

/* Whether y = A x was computed: it is not where A has gaps both ways or rows of less than a vector,
 * or where there is no memory. */
static int apply(Matrix y, Matrix a, Matrix x, long m, long k, run_t run, int threads) {
    if ((a.right != 1 && a.down != 1) || k < LANES)
        return 0;
    Applied job = {m, k, 0, a, x.at, y.at, y.down, NULL};
    long chunks = least((long)((double)m * k / STREAMED), 4 * TILES);
    int by_rows = a.right == 1, split = !by_rows && chunks > 1;
    job.each = by_rows ? rounded(pieces(m, chunks > 1 ? chunks : 1), TOGETHER)
                       : rounded(pieces(k, split ? least(chunks, PARTS) : 1), TOGETHER);
    chunks = pieces(by_rows ? m : k, job.each);
    REAL *memory = NULL;
    if (x.down != 1 || split) {
        memory = malloc(sizeof(REAL) * (k + (split ? chunks * m : 0)));
        if (!memory)
            return 0;
        job.sums = memory + k;
        job.x = memory;
        for (long j = 0; j < k; j++)
            memory[j] = x.at[j * x.down];
    }
    if (by_rows)
        run(some_dots, &job, chunks, 1, threads);
    else if (!split)
        add_columns(&job, 0, k, y.at, y.down);
    else {
        run(some_columns, &job, chunks, 1, threads);
        for (long i = 0; i < m; i++) {
            REAL sum = job.sums[i];
            for (long p = 1; p < chunks; p++)
                sum += job.sums[p * m + i];
            y.at[i * y.down] = sum;
        }
    }
    free(memory);
    return 1;
}

static void product(Job job, run_t run, int threads) {
    if (job.n == 1 && apply(job.c, job.a, job.b, job.m, job.k, run, threads))
        return;
    if (job.m == 1 && apply(turned(job.c), turned(job.b), turned(job.a), job.n, job.k, run, threads))
        return;
    job.symmetric = job.a.at == job.b.at && job.m == job.n && job.a.down == job.b.right &&
                    job.a.right == job.b.down;
    /* The other way round the panels are A's; then C may have to be written across its rows. */
    if (1.2 * cost(job.n, job.m, turned(job.a)) < cost(job.m, job.n, job.b))
        job = (Job){job.n, job.m, job.k, turned(job.c), turned(job.b), turned(job.a),
                    job.symmetric};
    compute(&job, run, threads);
    if (job.symmetric)
        mirror(&job);
}

/* ---- several products ---- */

typedef struct {
    const long *shape;
    REAL *c, *a, *b;
} Batch;

static Job job_of(const Batch *batch, long number) {
    const long *shape = batch->shape;
    return (Job){shape[1], shape[2], shape[3],
                 {batch->c + number * shape[4], shape[5], shape[6]},
                 {batch->a + number * shape[7], shape[8], shape[9]},
                 {batch->b + number * shape[10], shape[11], shape[12]}};
}

static void alone(body_t body, void *context, long count, long grain, int threads) {
    body(context, 0, count);
}

static void some_products(void *context, long begin, long end) {
    for (long q = begin; q < end; q++)
        product(job_of(context, q), alone, 1);
}

void npc_gemm(run_t run, int threads, const long *shape, REAL *c, REAL *a, REAL *b) {
    Batch batch = {shape, c, a, b};
    double work = (double)shape[1] * shape[2] * shape[3];
    if (work < 16 * WORTH) {
        long grain = work < WORTH ? (long)(WORTH / work) + 1 : 1;
        run(some_products, &batch, shape[0], grain, threads);
    } else
        for (long q = 0; q < shape[0]; q++)
            product(job_of(&batch, q), run, threads);
}
