"""Hartree and Fock's method for molecules of s orbitals, with DIIS."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from ..whole_programs import whole

STO3G = {
    "H": (1.24, [0.109818, 0.405771, 2.22766], [0.444635, 0.535328, 0.154329]),
    "He": (2.0925, [0.109818, 0.405771, 2.22766], [0.444635, 0.535328, 0.154329]),
}
CHARGE = {"H": 1, "He": 2}


@dataclass
class Basis:
    centre: np.ndarray
    alpha: np.ndarray
    coef: np.ndarray

    @classmethod
    def sto3g(cls, symbol, centre):
        zeta, a, d = STO3G[symbol]
        a = np.array(a) * zeta**2
        return cls(np.asarray(centre, float), a, np.array(d) * (2 * a / np.pi) ** 0.75)

    def __iter__(self):
        return zip(self.alpha, self.coef)


@lru_cache(maxsize=4096)
def boys(x):
    if x < 1e-6:
        return 1 - x / 3
    return 0.5 * math.sqrt(math.pi / x) * math.erf(math.sqrt(x))


def overlap(a, b):
    r2 = ((a.centre - b.centre) ** 2).sum()
    s = 0.0
    for x, cx in a:
        for y, cy in b:
            s += cx * cy * (np.pi / (x + y)) ** 1.5 * np.exp(-x * y / (x + y) * r2)
    return s


def kinetic(a, b):
    r2 = ((a.centre - b.centre) ** 2).sum()
    t = 0.0
    for x, cx in a:
        for y, cy in b:
            p, q = x + y, x * y / (x + y)
            t += cx * cy * q * (3 - 2 * q * r2) * (np.pi / p) ** 1.5 * np.exp(-q * r2)
    return t


def nuclear(a, b, C, Z):
    r2 = ((a.centre - b.centre) ** 2).sum()
    v = 0.0
    for x, cx in a:
        for y, cy in b:
            p = x + y
            P = (x * a.centre + y * b.centre) / p
            v += (
                cx
                * cy
                * -2
                * np.pi
                / p
                * Z
                * np.exp(-x * y / p * r2)
                * boys(float(p * ((P - C) ** 2).sum()))
            )
    return v


def repulsion(a, b, c, d):
    rab, rcd = np.sum((a.centre - b.centre) ** 2), np.sum((c.centre - d.centre) ** 2)
    total = 0.0
    for x, cx in a:
        for y, cy in b:
            p = x + y
            P = (x * a.centre + y * b.centre) / p
            kab = math.exp(-x * y / p * rab)
            for z, cz in c:
                for w, cw in d:
                    q = z + w
                    Q = (z * c.centre + w * d.centre) / q
                    rpq = float(((P - Q) ** 2).sum())
                    total += (
                        cx
                        * cy
                        * cz
                        * cw
                        * 2
                        * math.pi**2.5
                        / (p * q * math.sqrt(p + q))
                        * kab
                        * math.exp(-z * w / q * rcd)
                        * boys(p * q / (p + q) * rpq)
                    )
    return total


def eri_tensor(basis):
    n = len(basis)
    G = np.zeros((n,) * 4)
    for i in range(n):
        for j in range(i + 1):
            for k in range(n):
                for l in range(k + 1):
                    if i * (i + 1) // 2 + j >= k * (k + 1) // 2 + l:
                        v = repulsion(basis[i], basis[j], basis[k], basis[l])
                        for a, b in ((i, j), (j, i)):
                            for c, d in ((k, l), (l, k)):
                                G[a, b, c, d] = G[c, d, a, b] = v
    return G


class DIIS:
    def __init__(self, size=4):
        self.F, self.e = deque(maxlen=size), deque(maxlen=size)

    def __call__(self, F, e):
        self.F.append(F)
        self.e.append(e)
        n = len(self.F)
        B = -np.ones((n + 1, n + 1))
        B[-1, -1] = 0
        for i in range(n):
            for j in range(n):
                B[i, j] = np.einsum("ij,ij", self.e[i], self.e[j])
        rhs = np.zeros(n + 1)
        rhs[-1] = -1
        try:
            c = np.linalg.solve(B, rhs)[:-1]
        except np.linalg.LinAlgError:
            return F
        return sum(ci * Fi for ci, Fi in zip(c, self.F))


@dataclass
class Result:
    energy: float = np.nan
    converged: bool = False
    history: list = field(default_factory=list)
    orbitals: np.ndarray = None
    C: np.ndarray = None


def scf(atoms, charge=0, maxiter=30, tol=1e-9):
    basis = [Basis.sto3g(s, c) for s, c in atoms]
    ne = sum(CHARGE[s] for s, _ in atoms) - charge
    if ne % 2:
        raise ValueError(f"odd number of electrons: {ne}")
    S = np.array([[overlap(a, b) for b in basis] for a in basis])
    T = np.array([[kinetic(a, b) for b in basis] for a in basis])
    V = sum(
        np.array([[nuclear(a, b, np.asarray(c, float), CHARGE[s]) for b in basis] for a in basis])
        for s, c in atoms
    )
    H, G = T + V, eri_tensor(basis)
    w, U = np.linalg.eigh(S)
    X = U @ np.diag(w**-0.5) @ U.T
    nuc = 0.0
    for i, (s, c) in enumerate(atoms):
        for z, d in atoms[:i]:
            nuc += CHARGE[s] * CHARGE[z] / np.linalg.norm(np.subtract(c, d))
    D, res, diis = np.zeros_like(S), Result(), DIIS()
    E = 0.0
    for it in range(maxiter):
        Jm, K = np.einsum("ijkl,kl->ij", G, D), np.einsum("ikjl,kl->ij", G, D)
        F = H + Jm - 0.5 * K
        Enew = 0.5 * np.sum(D * (H + F)) + nuc
        res.history.append(Enew)
        err = X.T @ (F @ D @ S - S @ D @ F) @ X
        if it and abs(Enew - E) < tol and np.abs(err).max() < 1e-6:
            res.converged = True
            break
        E = Enew
        if it > 1:
            F = diis(F, err)
        e, Cp = np.linalg.eigh(X.T @ F @ X)
        C = X @ Cp
        occ = C[:, : ne // 2]
        D = 2 * occ @ occ.T
    res.energy, res.orbitals, res.C = float(Enew), e, np.abs(C)
    return res, S, D


@whole([("H", (0, 0, 0)), ("H", (1.4, 0, 0))], 0)
def hartree_fock(atoms, charge):
    r, S, D = scf(atoms, charge)
    print(
        f"E = {r.energy:.8f} converged={r.converged} iterations={len(r.history)}",
        "orbitals",
        np.round(r.orbitals, 5),
    )
    return r.energy, r.converged, r.orbitals, S, np.trace(D @ S)
