/* The first group of programs in C, as one writes them by hand: loops, OpenMP, libm's vector forms. */

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
