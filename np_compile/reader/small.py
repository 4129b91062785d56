"""Functions of small arrays by C of their own: systems of equations, medians, sorted vectors.

A call of NumPy's in Python costs more than the work itself where loops do it for each step, pixel
or element. Larger ones are called in Python, see `outside`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .functions.operands import as_operand
from .nest import alloc, cast, copied, lazy, loops, size_of
from .read import Reader
from .values import INTEGERS, Arr, Lazy, Unreadable, Value, is_none

_MOST = 24  # rows of a matrix, and
_ELEMENTS = 512  # elements, up to which C of its own is used

C = r"""
/* The factors of a matrix, rows exchanged, as LAPACK's getrf has them; 1 if it is singular. */
QUIET int lu_f64(i64 n, f64 *a, i64 *rows, int *odd) {
    int singular = 0;
    *odd = 0;
    for (i64 j = 0; j < n; j++) {
        i64 p = j;
        for (i64 i = j + 1; i < n; i++)
            if (__builtin_fabs(a[i * n + j]) > __builtin_fabs(a[p * n + j])) p = i;
        rows[j] = p;
        if (p != j) {
            *odd = !*odd;
            for (i64 k = 0; k < n; k++) {
                f64 x = a[j * n + k]; a[j * n + k] = a[p * n + k]; a[p * n + k] = x;
            }
        }
        if (a[j * n + j] == 0) { singular = 1; continue; }
        f64 inverse = 1 / a[j * n + j];
        for (i64 i = j + 1; i < n; i++) {
            f64 x = a[i * n + j] *= inverse;
            for (i64 k = j + 1; k < n; k++) a[i * n + k] -= x * a[j * n + k];
        }
    }
    return singular;
}
/* Solutions in the place of m right-hand sides; 1 if the matrix is singular. */
QUIET int solve_f64(i64 n, i64 m, f64 *a, f64 *b) {
    i64 rows[64];
    int odd;
    if (lu_f64(n, a, rows, &odd)) return 1;
    for (i64 j = 0; j < n; j++) {
        f64 *x = b + j * m, *y = b + rows[j] * m;
        for (i64 k = 0; x != y && k < m; k++) { f64 z = x[k]; x[k] = y[k]; y[k] = z; }
    }
    for (i64 j = 0; j < n; j++)
        for (i64 i = j + 1; i < n; i++)
            for (i64 k = 0; k < m; k++) b[i * m + k] -= a[i * n + j] * b[j * m + k];
    for (i64 j = n - 1; j >= 0; j--) {
        for (i64 k = 0; k < m; k++) b[j * m + k] /= a[j * n + j];
        for (i64 i = 0; i < j; i++)
            for (i64 k = 0; k < m; k++) b[i * m + k] -= a[i * n + j] * b[j * m + k];
    }
    return 0;
}
QUIET f64 det_f64(i64 n, f64 *a) {
    i64 rows[64];
    int odd;
    f64 total = 0;
    if (lu_f64(n, a, rows, &odd)) return 0;
    for (i64 j = 0; j < n; j++) {
        if (a[j * n + j] < 0) odd = !odd;
        total += __builtin_log(__builtin_fabs(a[j * n + j]));
    }
    return (odd ? -1 : 1) * __builtin_exp(total);
}
/* In ascending order; NaN at the end. */
QUIET void sort_f64(i64 n, f64 *x) {
    for (i64 gap = n > 32 ? n / 2 : 1; gap; gap = gap > 1 ? gap * 5 / 11 + (gap == 2) : 0)
        for (i64 i = gap; i < n; i++) {
            f64 v = x[i];
            i64 k = i;
            for (; k >= gap && (v < x[k - gap] || (v == v && x[k - gap] != x[k - gap])); k -= gap)
                x[k] = x[k - gap];
            x[k] = v;
        }
}
/* In ascending or descending order, equal items as they were; 1 if there is no memory. */
#define SORTED(T) \
QUIET int sorted_##T(i64 n, T *x, i64 descending) { \
    T *from = x, *to = n > 1 ? malloc(n * sizeof(T)) : x, *held = to; \
    if (!to) return 1; \
    for (i64 run = 1; run < n; run *= 2) { \
        for (i64 low = 0; low < n; low += 2 * run) { \
            i64 middle = n - low < run ? n : low + run; \
            i64 end = n - low < 2 * run ? n : low + 2 * run; \
            i64 a = low, b = middle; \
            for (i64 k = low; k < end; k++) { \
                int second = b < end && (a == middle || \
                    (descending ? from[b] > from[a] : from[b] < from[a])); \
                to[k] = second ? from[b++] : from[a++]; \
            } \
        } \
        T *other = from; from = to; to = other; \
    } \
    if (from != x) __builtin_memcpy(x, from, n * sizeof(T)); \
    if (n > 1) free(held); \
    return 0; \
}
SORTED(i64)
SORTED(f64)
/* Item k where it is in ascending order, none before it greater, none behind it less; no NaN. */
QUIET void select_f64(i64 n, f64 *x, i64 k) {
    i64 low = 0, high = n - 1, turns = 2 * (64 - __builtin_clzl((u64)n));
    while (high - low > 16 && turns--) {
        f64 a = x[low], b = x[low + (high - low) / 2], c = x[high];
        f64 pivot = a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
        i64 i = low, j = high;
        while (i <= j) {
            while (x[i] < pivot) i++;
            while (x[j] > pivot) j--;
            if (i <= j) {
                f64 t = x[i];
                x[i++] = x[j];
                x[j--] = t;
            }
        }
        if (k <= j) high = j;
        else if (k >= i) low = i;
        else return;
    }
    sort_f64(high - low + 1, x + low);
}
QUIET f64 median_f64(i64 n, f64 *x) {
    for (i64 k = 0; k < n; k++)
        if (x[k] != x[k]) return x[k];
    i64 half = n / 2;
    select_f64(n, x, half);
    if (n % 2) return x[half];
    f64 below = x[0];
    for (i64 k = 1; k < half; k++) below = x[k] > below ? x[k] : below;
    return (below + x[half]) / 2;
}
"""


NAMES = ("solve_f64", "det_f64", "median_f64", "sort_f64", "sorted_i64", "sorted_f64")


def _array(r: Reader, x: Value) -> Arr | Lazy:
    x = as_operand(r, x)
    if not isinstance(x, (Arr, Lazy)) or x.rep not in (INTEGERS | {"f64", "bool"}):
        raise Unreadable("an array of another dtype")
    return x


def _is_small(r: Reader, x: Arr | Lazy, most: int) -> bool:
    sizes = [d.value if d.value is not None else r.entry.at(d.lin) for d in x.dims]
    return all(n is not None for n in sizes) and int(np.prod(sizes)) <= most


def _matrix(r: Reader, x: Value) -> tuple[Arr, str]:
    """A copy of a square matrix, in doubles, and its number of rows."""
    a = _array(r, x)
    if a.ndim != 2 or not _is_small(r, a, _MOST**2):
        raise Unreadable("a large matrix")
    m, n = a.dims
    r.leave_if(f"{m.text} != {n.text} || {n.text} > {2 * _MOST} || {n.text} == 0",
               "a matrix that is large, or not square")  # fmt: skip
    return copied(r, cast(lazy(a), "f64")), n.text


def _inv(r: Reader, x: Value) -> Value:
    a, n = _matrix(r, x)
    made = alloc(r, "f64", (a.dims[0], a.dims[0]), zero=True)
    with loops(r, [a.dims[0]], vector="") as index:
        r.line(f"{made.data}[{index[0]} * ({n} + 1)] = 1;")
    r.leave_if(f"solve_f64({n}, {n}, {a.data}, {made.data})", "a singular matrix")
    return made


def _solve(r: Reader, x: Value, b: Value) -> Value:
    right = _array(r, b)
    a, n = _matrix(r, x)
    if right.ndim not in (1, 2):
        raise Unreadable("right-hand sides of several axes")
    r.leave_if(f"{right.dims[0].text} != {n}", "a right-hand side of another length")
    made = copied(r, cast(lazy(right), "f64"))
    m = made.dims[1].text if made.ndim == 2 else "1"
    r.leave_if(f"solve_f64({n}, {m}, {a.data}, {made.data})", "a singular matrix")
    return made


def _det(r: Reader, x: Value) -> Value:
    a, n = _matrix(r, x)
    return r.number(f"det_f64({n}, {a.data})", "f64", ("float64",))


def _median(r: Reader, x: Value, axis: Value | None = None) -> Value:
    a = _array(r, x)
    if not is_none(axis):
        raise Unreadable("medians along an axis")
    if not _is_small(r, a, _ELEMENTS):
        raise Unreadable("a large array")
    n = size_of(r, a.dims)
    r.leave_if(f"{n.text} == 0", "the median of nothing")
    made = copied(r, cast(lazy(a), "f64"))
    return r.number(f"median_f64({n.text}, {made.data})", "f64", ("float64",))


def _sort(r: Reader, x: Value) -> Value:
    a = _array(r, x)
    if a.ndim != 1 or a.rep != "f64" or not _is_small(r, a, _ELEMENTS):
        raise Unreadable("sorting this")
    made = copied(r, a)
    r.line(f"sort_f64({made.dims[0].text}, {made.data});")
    return made


TABLE: dict[Any, Callable] = {
    np.linalg.inv: _inv, np.linalg.solve: _solve, np.linalg.det: _det, np.median: _median,
    np.sort: _sort,
}  # fmt: skip
