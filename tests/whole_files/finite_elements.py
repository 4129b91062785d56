"""Finite elements: triplets, a sparse matrix class, conjugate gradients that may fail."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..whole_programs import whole


class COOBuilder:
    """Triplets, summed by (row, column) into CSR."""

    def __init__(self, n):
        self.n = n
        self.rows, self.cols, self.vals = [], [], []

    def add(self, dofs, ke):
        for i, gi in enumerate(dofs):
            for j, gj in enumerate(dofs):
                self.rows.append(gi)
                self.cols.append(gj)
                self.vals.append(ke[i, j])

    def tocsr(self):
        r = np.array(self.rows, dtype=np.int64)
        c = np.array(self.cols, dtype=np.int64)
        v = np.array(self.vals)
        key = r * self.n + c
        u, inv = np.unique(key, return_inverse=True)
        data = np.zeros(len(u))
        np.add.at(data, inv, v)
        indptr = np.searchsorted(u // self.n, np.arange(self.n + 1))
        return CSR(indptr, u % self.n, data)


@dataclass
class CSR:
    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray

    @property
    def shape(self):
        n = self.indptr.size - 1
        return n, n

    @property
    def nnz(self):
        return self.data.size

    def __matmul__(self, x):
        return np.add.reduceat(self.data * x[self.indices], self.indptr[:-1])

    def diagonal(self):
        d = np.zeros(self.shape[0])
        for i in range(len(d)):
            for k in range(self.indptr[i], self.indptr[i + 1]):
                if self.indices[k] == i:
                    d[i] = self.data[k]
        return d


@dataclass
class Mesh:
    nx: int
    ny: int
    nodes: np.ndarray = field(init=False, repr=False)
    elems: np.ndarray = field(init=False, repr=False)

    def __post_init__(self):
        x, y = np.meshgrid(np.linspace(0, 1, self.nx + 1), np.linspace(0, 1, self.ny + 1))
        self.nodes = np.column_stack([x.ravel(), y.ravel()])
        e = []
        for j in range(self.ny):
            for i in range(self.nx):
                a = j * (self.nx + 1) + i
                b, c, d = a + 1, a + self.nx + 1, a + self.nx + 2
                e.append([a, b, d])
                e.append([a, d, c])
        self.elems = np.asarray(e)

    def boundary(self):
        x, y = self.nodes.T
        return np.flatnonzero((x == 0) | (x == 1) | (y == 0) | (y == 1))


def local_stiffness(xy):
    B = np.array(
        [
            [xy[1, 1] - xy[2, 1], xy[2, 1] - xy[0, 1], xy[0, 1] - xy[1, 1]],
            [xy[2, 0] - xy[1, 0], xy[0, 0] - xy[2, 0], xy[1, 0] - xy[0, 0]],
        ]
    )
    area = 0.5 * abs(np.linalg.det(np.vstack([np.ones(3), xy.T])))
    return B.T @ B / (4 * area), area


def pcg(A, b, free, tol=1e-10, maxiter=500):
    x = np.zeros_like(b)
    mask = np.zeros(b.size, bool)
    mask[free] = True
    r = np.where(mask, b, 0.0)
    Minv = 1 / A.diagonal()
    z = Minv * r
    p = z.copy()
    rz = r @ z
    hist = []
    for it in range(maxiter):
        Ap = np.where(mask, A @ p, 0)
        alpha = rz / (p @ Ap)
        x += alpha * p
        r -= alpha * Ap
        res = np.linalg.norm(r)
        hist.append(res)
        if res < tol:
            break
        z = Minv * r
        rz, old = r @ z, rz
        p *= rz / old
        p += z
    else:
        raise RuntimeError(f"no convergence after {maxiter} iterations, residual {res:.2e}")
    return x, hist


@whole(4, 3, np.array([1.0, 2.0, 5.0]))
def heated_plate(nx, ny, coeff, maxiter=500):
    mesh = Mesh(nx, ny)
    A = COOBuilder(len(mesh.nodes))
    f = np.zeros(len(mesh.nodes))
    for k, el in enumerate(mesh.elems):
        ke, area = local_stiffness(mesh.nodes[el])
        A.add(el, coeff[k % len(coeff)] * ke)
        f[el] += area / 3
    K = A.tocsr()
    bd = mesh.boundary()
    free = np.setdiff1d(np.arange(len(f)), bd)
    u, hist = pcg(K, f, free, maxiter=maxiter)
    print(f"{mesh} nnz={K.nnz} iterations={len(hist)} max={u.max():.6f}")
    return u, K.nnz, hist[0], K.shape, bd
