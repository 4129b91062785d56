/* Some programs in C, as one writes them by hand: loops, OpenMP, libm's vector forms. */

#include <stdlib.h>
#include <string.h>

#define VECTOR __attribute__((simd("notinbranch"), const))

VECTOR double sin(double);
VECTOR double exp(double);
VECTOR double log(double);
VECTOR float expf(float);
double sqrt(double);
double fabs(double);

/* Below so many elements starting a team of threads costs more than it gains. */
enum { ALONE = 16384 };

void sine_chain(const double *restrict a, const double *restrict b, double *restrict out, long n)
{
#pragma omp parallel for simd schedule(static) if (n > ALONE)
    for (long i = 0; i < n; i++)
        out[i] = sin(a[i]) * b[i] + 1;
}

void outer_sum(const double *restrict x, const double *restrict y, double *restrict out, long rows,
               long columns)
{
#pragma omp parallel for schedule(static) if (rows * columns * columns > 4 * ALONE)
    for (long i = 0; i < rows; i++) {
        const double *yi = y + i * columns;
        double total = 0;
        for (long j = 0; j < columns; j++) {
            double xij = x[i * columns + j];
            double part = 0;
#pragma omp simd reduction(+ : part)
            for (long k = 0; k < columns; k++)
                part += xij * yi[k];
            total += part;
        }
        out[i] = total;
    }
}

void heat_2d(double *u, long rows, long columns, long steps)
{
    double *other = malloc(sizeof(double) * rows * columns);
    memcpy(other, u, sizeof(double) * rows * columns);
#pragma omp parallel if (rows * columns > ALONE)
    {
        double *from = u, *to = other;
        for (long step = 0; step < steps; step++) {
#pragma omp for schedule(static)
            for (long i = 1; i < rows - 1; i++) {
                const double *restrict up = from + (i - 1) * columns;
                const double *restrict at = from + i * columns;
                const double *restrict down = from + (i + 1) * columns;
                double *restrict new = to + i * columns;
#pragma omp simd
                for (long j = 1; j < columns - 1; j++)
                    new[j] = at[j] +
                             0.2 * (up[j] + down[j] + at[j - 1] + at[j + 1] - 4 * at[j]);
            }
            double *swap = from;
            from = to;
            to = swap;
        }
    }
    if (steps % 2)
        memcpy(u, other, sizeof(double) * rows * columns);
    free(other);
}

void softmax(const float *restrict x, float *restrict out, long rows, long columns)
{
#pragma omp parallel for schedule(static) if (rows * columns > ALONE)
    for (long i = 0; i < rows; i++) {
        const float *restrict in = x + i * columns;
        float *restrict e = out + i * columns;
        float top = in[0], total = 0;
#pragma omp simd reduction(max : top)
        for (long j = 1; j < columns; j++)
            top = in[j] > top ? in[j] : top;
#pragma omp simd reduction(+ : total)
        for (long j = 0; j < columns; j++) {
            e[j] = expf(in[j] - top);
            total += e[j];
        }
#pragma omp simd
        for (long j = 0; j < columns; j++)
            e[j] /= total;
    }
}

/* The normal distribution function (Abramowitz and Stegun 26.2.17). */
static inline double normal_cdf(double x)
{
    double k = 1 / (1 + 0.2316419 * fabs(x));
    double poly =
        k * (0.319381530 +
             k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))));
    double tail = 0.3989422804014327 * exp(-0.5 * x * x) * poly;
    return x > 0 ? 1 - tail : tail;
}

void black_scholes(const double *restrict price, const double *restrict strike,
                   const double *restrict years, double rate, double volatility,
                   double *restrict call, double *restrict put, long n)
{
#pragma omp parallel for simd schedule(static) if (n > ALONE / 8)
    for (long i = 0; i < n; i++) {
        double spread = volatility * sqrt(years[i]);
        double drift = (rate + 0.5 * volatility * volatility) * years[i];
        double d1 = (log(price[i] / strike[i]) + drift) / spread;
        double discounted = strike[i] * exp(-rate * years[i]);
        double c = price[i] * normal_cdf(d1) - discounted * normal_cdf(d1 - spread);
        call[i] = c;
        put[i] = c + discounted - price[i];
    }
}

/* ---- loops ---- */

static inline double dot(const double *restrict a, const double *restrict b, long n)
{
    double total = 0;
#pragma omp simd reduction(+ : total)
    for (long k = 0; k < n; k++)
        total += a[k] * b[k];
    return total;
}

/* Column by column, so that the rows below the diagonal are independent. */
void cholesky(const double *restrict a, double *restrict l, long n)
{
    memset(l, 0, sizeof(double) * n * n);
#pragma omp parallel if (n > 128)
    for (long j = 0; j < n; j++) {
        double *lj = l + j * n;
#pragma omp single
        lj[j] = sqrt(a[j * n + j] - dot(lj, lj, j));
#pragma omp for schedule(static)
        for (long i = j + 1; i < n; i++)
            l[i * n + j] = (a[i * n + j] - dot(l + i * n, lj, j)) / lj[j];
    }
}

void gauss_seidel(double *restrict u, const double *restrict f, double h, long rows, long columns,
                  long iterations)
{
    for (long step = 0; step < iterations; step++)
        for (long i = 1; i < rows - 1; i++) {
            const double *up = u + (i - 1) * columns, *down = u + (i + 1) * columns;
            double *at = u + i * columns;
            for (long j = 1; j < columns - 1; j++)
                at[j] = 0.25 * (up[j] + down[j] + at[j - 1] + at[j + 1] -
                                h * h * f[i * columns + j]);
        }
}

long edit_distance(const unsigned char *restrict a, const unsigned char *restrict b, long n, long m)
{
    long *row = malloc(sizeof(long) * (m + 1));
    for (long j = 0; j <= m; j++)
        row[j] = j;
    for (long i = 1; i <= n; i++) {
        long diagonal = row[0], left = i;
        row[0] = i;
        for (long j = 1; j <= m; j++) {
            long up = row[j], least = up < left ? up : left;
            least = diagonal < least ? diagonal : least;
            left = a[i - 1] == b[j - 1] ? diagonal : 1 + least;
            diagonal = up;
            row[j] = left;
        }
    }
    long found = row[m];
    free(row);
    return found;
}

void csr_matvec(const long *restrict start, const int *restrict column,
                const double *restrict value, const double *restrict x, double *restrict y,
                long rows)
{
#pragma omp parallel for schedule(static) if (start[rows] > ALONE)
    for (long i = 0; i < rows; i++) {
        double total = 0;
        for (long k = start[i]; k < start[i + 1]; k++)
            total += value[k] * x[column[k]];
        y[i] = total;
    }
}

void mandelbrot(double left, double right, double low, double high, long height, long width,
                long limit, int *restrict counts)
{
#pragma omp parallel for schedule(dynamic, 1) if (height * width * limit > ALONE)
    for (long i = 0; i < height; i++)
        for (long j = 0; j < width; j++) {
            double cr = left + (right - left) * j / width, ci = low + (high - low) * i / height;
            double re = 0, im = 0;
            long n = 0;
            while (n < limit && re * re + im * im <= 4) {
                double next = re * re - im * im + cr;
                im = re * im + im * re + ci;
                re = next;
                n++;
            }
            counts[i * width + j] = n;
        }
}

void n_body(double *restrict x, double *restrict v, const double *restrict mass, double dt, long n,
            long steps)
{
    double *at = malloc(sizeof(double) * 3 * n), *px = at, *py = at + n, *pz = at + 2 * n;
#pragma omp parallel if (n * n * steps > ALONE)
    for (long step = 0; step < steps; step++) {
#pragma omp for schedule(static)
        for (long i = 0; i < n; i++) {
            px[i] = x[3 * i];
            py[i] = x[3 * i + 1];
            pz[i] = x[3 * i + 2];
        }
#pragma omp for schedule(static)
        for (long i = 0; i < n; i++) {
            double ax = 0, ay = 0, az = 0;
#pragma omp simd reduction(+ : ax, ay, az)
            for (long j = 0; j < n; j++) {
                double dx = px[j] - px[i], dy = py[j] - py[i], dz = pz[j] - pz[i];
                double squared = dx * dx + dy * dy + dz * dz + 0.01;
                double f = mass[j] / (squared * sqrt(squared));
                ax += f * dx;
                ay += f * dy;
                az += f * dz;
            }
            v[3 * i] += dt * ax;
            v[3 * i + 1] += dt * ay;
            v[3 * i + 2] += dt * az;
            for (long k = 0; k < 3; k++)
                x[3 * i + k] += dt * v[3 * i + k];
        }
    }
    free(at);
}
