"""Linear algebra with loops in Python: factorizations, solvers that sweep, sparse matrices."""

from __future__ import annotations

import numpy as np

from .registry import jnp, lax, prange, program


def _positive_definite(rng, n):
    matrix = rng.standard_normal((n, n))
    return (matrix @ matrix.T / max(n, 1) + np.eye(n),)


@program("loops", make=_positive_definite, small=(12,), medium=(100,), large=(800,))
def cholesky(A):
    """Cholesky factor of a positive definite matrix, row by row with growing slices."""
    n = A.shape[0]
    L = np.zeros_like(A)
    for i in range(n):
        for j in range(i + 1):
            s = A[i, j] - np.dot(L[i, :j], L[j, :j])
            if i == j:
                L[i, i] = np.sqrt(s)
            else:
                L[i, j] = s / L[j, j]
    return L


@cholesky.numba
def _cholesky_numba(A):
    n = A.shape[0]
    L = np.zeros_like(A)
    for j in range(n):
        s = A[j, j]
        for k in range(j):
            s -= L[j, k] * L[j, k]
        L[j, j] = np.sqrt(s)
        for i in prange(j + 1, n):
            s = A[i, j]
            for k in range(j):
                s -= L[i, k] * L[j, k]
            L[i, j] = s / L[j, j]
    return L


def _square(rng, n):
    return (rng.standard_normal((n, n)),)


@program("loops", make=_square, small=(12,), medium=(200,), large=(1000,))
def lu_pivoting(A):
    """LU factors in one matrix, and the order of the rows, with partial pivoting."""
    n = A.shape[0]
    LU = A.copy()
    order = np.arange(n)
    for k in range(n - 1):
        p = k + np.argmax(np.abs(LU[k:, k]))
        if LU[p, k] == 0:
            raise np.linalg.LinAlgError("matrix is singular")
        if p != k:
            LU[[k, p]] = LU[[p, k]]
            order[[k, p]] = order[[p, k]]
        LU[k + 1 :, k] /= LU[k, k]
        LU[k + 1 :, k + 1 :] -= np.outer(LU[k + 1 :, k], LU[k, k + 1 :])
    return LU, order


@lu_pivoting.numba
def _lu_pivoting_numba(A):
    n = A.shape[0]
    LU = A.copy()
    order = np.arange(n)
    for k in range(n - 1):
        p = k + np.argmax(np.abs(LU[k:, k]))
        if LU[p, k] == 0:
            raise ValueError("matrix is singular")
        if p != k:
            for j in range(n):
                LU[k, j], LU[p, j] = LU[p, j], LU[k, j]
            order[k], order[p] = order[p], order[k]
        for i in prange(k + 1, n):
            LU[i, k] /= LU[k, k]
            for j in range(k + 1, n):
                LU[i, j] -= LU[i, k] * LU[k, j]
    return LU, order


def _tall(rng, rows, columns):
    return (rng.standard_normal((rows, columns)),)


@program("loops", make=_tall, small=(20, 8), medium=(150, 80), large=(1000, 450))
def gram_schmidt(A):
    """QR factors by the modified Gram-Schmidt process."""
    m, n = A.shape
    Q = np.zeros((m, n))
    R = np.zeros((n, n))
    for j in range(n):
        v = A[:, j].copy()
        for i in range(j):
            R[i, j] = Q[:, i] @ v
            v -= R[i, j] * Q[:, i]
        R[j, j] = np.linalg.norm(v)
        Q[:, j] = v / R[j, j]
    return Q, R


def _upper(rng, n):
    matrix = np.triu(rng.standard_normal((n, n))) / max(n, 1) + np.eye(n)
    return matrix, rng.standard_normal(n)


@program("loops", make=_upper, small=(20,), medium=(300,), large=(2000,))
def back_substitution(U, b):
    """Solve an upper triangular system, element by element."""
    n = len(b)
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        s = b[i]
        for j in range(i + 1, n):
            s -= U[i, j] * x[j]
        x[i] = s / U[i, i]
    return x


def _lower(rng, n):
    return (np.tril(rng.standard_normal((n, n))) / max(n, 1) + np.eye(n),)


@program("loops", make=_lower, small=(12,), medium=(120,), large=(700,))
def triangular_inverse(L):
    """Inverse of a lower triangular matrix, column by column."""
    n = len(L)
    X = np.zeros((n, n))
    for j in range(n):
        X[j, j] = 1.0 / L[j, j]
        for i in range(j + 1, n):
            X[i, j] = -(L[i, j:i] @ X[j:i, j]) / L[i, i]
    return X


@triangular_inverse.numba
def _triangular_inverse_numba(L):
    n = len(L)
    X = np.zeros((n, n))
    for j in prange(n):
        X[j, j] = 1.0 / L[j, j]
        for i in range(j + 1, n):
            s = 0.0
            for k in range(j, i):
                s += L[i, k] * X[k, j]
            X[i, j] = -s / L[i, i]
    return X


def _tridiagonal(rng, n):
    a, c = rng.random(n), rng.random(n)
    return a, 2.5 + rng.random(n), c, rng.standard_normal(n)


@program("loops", make=_tridiagonal, small=(200,), medium=(20_000,), large=(1_000_000,))
def thomas(a, b, c, d):
    """Solve a tridiagonal system by the Thomas algorithm."""
    n = len(d)
    cp = np.zeros(n)
    dp = np.zeros(n)
    cp[0] = c[0] / b[0]
    dp[0] = d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    x = np.zeros(n)
    x[-1] = dp[-1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x


@thomas.jax
def _thomas_jax(a, b, c, d):
    def forward(before, row):
        a, b, c, d = row
        m = b - a * before[0]
        after = c / m, (d - a * before[1]) / m
        return after, after

    def backward(x, row):
        x = row[1] - row[0] * x
        return x, x

    rows = lax.scan(forward, (0.0, 0.0), (a, b, c, d))[1]
    return lax.scan(backward, 0.0, rows, reverse=True)[1]


def _poisson(rng, n, iterations):
    return np.zeros((n, n)), rng.standard_normal((n, n)), 1.0 / max(n - 1, 1), iterations


@program(
    "loops",
    make=_poisson,
    small=(10, 5),
    medium=(40, 20),
    large=(120, 80),
    in_place=(0,),
)
def gauss_seidel(u, f, h, iterations):
    """Sweeps of Gauss and Seidel over a grid, in place: Poisson's equation."""
    rows, columns = u.shape
    for _ in range(iterations):
        for i in range(1, rows - 1):
            for j in range(1, columns - 1):
                u[i, j] = 0.25 * (
                    u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - h * h * f[i, j]
                )


def _dominant(rng, n):
    matrix = rng.standard_normal((n, n)) / max(n, 1) + 2 * np.eye(n)
    return matrix, rng.standard_normal(n), 1.1, 1e-10


@program("loops", make=_dominant, small=(8,), medium=(200,), large=(4500,))
def sor(A, b, omega, tol):
    """Successive over-relaxation until nothing changes any more; the solution and the sweeps."""
    x = np.zeros_like(b)
    sweeps = 0
    change = tol + 1
    while change > tol and sweeps < 1000:
        change = 0.0
        for i in range(len(b)):
            sigma = A[i, :i] @ x[:i] + A[i, i + 1 :] @ x[i + 1 :]
            new = (1 - omega) * x[i] + omega * (b[i] - sigma) / A[i, i]
            change = max(change, abs(new - x[i]))
            x[i] = new
        sweeps += 1
    return x, sweeps


def _dense(rng, n):
    matrix = rng.standard_normal((n, n))
    return (matrix @ matrix.T / max(n, 1) + 0.05 * np.eye(n),)


@program("loops", make=_dense, small=(8,), medium=(600,), large=(3000,))
def conjugate_gradient(A):
    """Solve for a right side of ones by conjugate gradients, while the residual is too large."""
    b = np.ones(len(A))
    x = np.zeros_like(b)
    r = b - A @ x
    p = r.copy()
    rs = r @ r
    while np.sqrt(rs) > 1e-10:
        Ap = A @ p
        alpha = rs / (p @ Ap)
        x += alpha * p
        r -= alpha * Ap
        rs_new = r @ r
        p = r + (rs_new / rs) * p
        rs = rs_new
    return x


@conjugate_gradient.jax
def _conjugate_gradient_jax(A):
    def going_on(state):
        return jnp.sqrt(state[3]) > 1e-10

    def step(state):
        x, r, p, rs = state
        Ap = A @ p
        alpha = rs / (p @ Ap)
        x, r = x + alpha * p, r - alpha * Ap
        rs_new = r @ r
        return x, r, r + (rs_new / rs) * p, rs_new

    b = jnp.ones(len(A))
    return lax.while_loop(going_on, step, (jnp.zeros(len(A)), b, b, b @ b))[0]


def _symmetric(rng, n):
    matrix = rng.standard_normal((n, n))
    return matrix + matrix.T, 1e-18


@program("loops", make=_symmetric, small=(4,), medium=(20,), large=(110,))
def jacobi_eigenvalues(A, tol):
    """Eigenvalues of a symmetric matrix by cyclic Jacobi rotations, in order."""
    A = A.copy()
    n = A.shape[0]
    while True:
        off = 0.0
        for p in range(n):
            for q in range(p + 1, n):
                off += A[p, q] ** 2
        if off <= tol:
            break
        for p in range(n - 1):
            for q in range(p + 1, n):
                if A[p, q] == 0:
                    continue
                theta = (A[q, q] - A[p, p]) / (2 * A[p, q])
                t = 1 / (abs(theta) + np.sqrt(theta**2 + 1))
                if theta < 0:
                    t = -t
                c = 1 / np.sqrt(t**2 + 1)
                s = t * c
                row_p, row_q = A[p].copy(), A[q].copy()
                A[p] = c * row_p - s * row_q
                A[q] = s * row_p + c * row_q
                column_p, column_q = A[:, p].copy(), A[:, q].copy()
                A[:, p] = c * column_p - s * column_q
                A[:, q] = s * column_p + c * column_q
    return np.sort(np.diag(A))


def _autocorrelation(rng, order):
    x = rng.standard_normal(4 * order + 8)
    return (np.correlate(x, x, "full")[x.size - 1 : x.size + order] / x.size,)


@program("loops", make=_autocorrelation, small=(20,), medium=(300,), large=(2500,))
def levinson_durbin(r):
    """Coefficients of a linear prediction from autocorrelations, and the error that is left."""
    order = len(r) - 1
    a = np.zeros(order + 1)
    a[0] = 1.0
    error = r[0]
    for k in range(1, order + 1):
        acc = 0.0
        for i in range(k):
            acc += a[i] * r[k - i]
        reflection = -acc / error
        a[1:k] += reflection * a[k - 1 : 0 : -1]
        a[k] = reflection
        error *= 1 - reflection**2
    return a, error


def _csr(rng, rows, per_row):
    lengths = rng.integers(0, 2 * per_row + 1, rows)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = rng.integers(0, max(rows, 1), indptr[-1]).astype(np.int32)
    return indptr, indices, rng.standard_normal(indptr[-1]), rng.standard_normal(rows)


@program("loops", make=_csr, small=(30, 5), medium=(5000, 10), large=(200_000, 10))
def csr_matvec(indptr, indices, data, x):
    """A sparse matrix in compressed rows times a vector."""
    y = np.zeros(len(indptr) - 1)
    for row in range(len(y)):
        for k in range(indptr[row], indptr[row + 1]):
            y[row] += data[k] * x[indices[k]]
    return y


@csr_matvec.numba
def _csr_matvec_numba(indptr, indices, data, x):
    y = np.zeros(len(indptr) - 1)
    for row in prange(len(y)):
        s = 0.0
        for k in range(indptr[row], indptr[row + 1]):
            s += data[k] * x[indices[k]]
        y[row] = s
    return y


def _links(rng, pages, per_page):
    start = per_page * np.arange(pages + 1)
    return start, rng.integers(0, max(pages, 1), pages * per_page), 0.85, 1e-8


@program("loops", make=_links, small=(6, 3), medium=(400, 5), large=(16_000, 8))
def pagerank(start, target, damping, tol):
    """Ranks of pages that link to each other, while they still change."""
    n = len(start) - 1
    rank = np.ones(n) / n
    err = 1.0
    while err > tol:
        new = np.full(n, (1 - damping) / n)
        for page in range(n):
            share = damping * rank[page] / (start[page + 1] - start[page])
            for k in range(start[page], start[page + 1]):
                new[target[k]] += share
        err = np.abs(new - rank).sum()
        rank = new
    return rank


@pagerank.jax
def _pagerank_jax(start, target, damping, tol):
    n = len(start) - 1
    count = jnp.diff(start)
    source = jnp.repeat(jnp.arange(n), count, total_repeat_length=len(target))

    def going_on(state):
        return state[1] > tol

    def step(state):
        rank = state[0]
        share = damping * rank / count
        new = jnp.full(n, (1 - damping) / n).at[target].add(share[source])
        return new, jnp.abs(new - rank).sum()

    return lax.while_loop(going_on, step, (jnp.ones(n) / n, 1.0))[0]
