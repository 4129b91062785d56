"""Circuits by nodal analysis, Newton's method, a sweep, and a power flow."""

from __future__ import annotations

import cmath
import math
from abc import ABC, abstractmethod

import numpy as np

from ..whole_programs import whole


class Element(ABC):
    extra = 0

    def __init__(self, name, *nodes, value=None):
        self.name, self.nodes, self.value = name, nodes, value

    @abstractmethod
    def stamp(self, A, b, x, k, w): ...

    def __repr__(self):
        return f"{type(self).__name__}({self.name}, {self.nodes})"


def add(A, i, j, v):
    if i and j:
        A[i - 1, j - 1] += v


def conductance(A, a, b, g):
    add(A, a, a, g)
    add(A, b, b, g)
    add(A, a, b, -g)
    add(A, b, a, -g)


class R(Element):
    def stamp(self, A, b, x, k, w):
        conductance(A, *self.nodes, 1 / self.value)


class C(Element):
    def stamp(self, A, b, x, k, w):
        if w:
            conductance(A, *self.nodes, 1j * w * self.value)


class L(Element):
    extra = 1

    def stamp(self, A, b, x, k, w):
        p, q = self.nodes
        add(A, p, k, 1)
        add(A, q, k, -1)
        add(A, k, p, 1)
        add(A, k, q, -1)
        add(A, k, k, -1j * w * self.value if w else 0)


class V(Element):
    extra = 1

    def stamp(self, A, b, x, k, w):
        p, q = self.nodes
        add(A, p, k, 1)
        add(A, q, k, -1)
        add(A, k, p, 1)
        add(A, k, q, -1)
        b[k - 1] += self.value


class D(Element):
    Is, Vt = 1e-12, 0.02585

    def stamp(self, A, b, x, k, w):
        p, q = self.nodes
        v = (x[p - 1] if p else 0.0) - (x[q - 1] if q else 0.0)
        v = min(v, 0.8)
        e = math.exp(v / self.Vt)
        g = self.Is / self.Vt * e + 1e-12
        i = self.Is * (e - 1) - g * v
        conductance(A, p, q, g)
        if p:
            b[p - 1] -= i
        if q:
            b[q - 1] += i


class Circuit:
    kinds = {c.__name__: c for c in (R, C, L, V, D)}

    def __init__(self, netlist):
        self.elements = []
        for line in netlist.strip().splitlines():
            name, *rest = line.split()
            try:
                kind = self.kinds[name[0]]
            except KeyError:
                raise ValueError(f"unknown element {name!r}") from None
            nodes = tuple(int(t) for t in rest[:2])
            self.elements.append(
                kind(name, *nodes, value=float(rest[2]) if len(rest) > 2 else None)
            )
        self.n = max(max(e.nodes) for e in self.elements)
        self.size = self.n + sum(e.extra for e in self.elements)

    def assemble(self, x, w, dtype):
        A, b = np.zeros((self.size, self.size), dtype), np.zeros(self.size, dtype)
        k = self.n
        for e in self.elements:
            k += e.extra
            e.stamp(A, b, x, k, w)
        return A, b

    def dc(self, maxiter=100, tol=1e-9):
        x = np.zeros(self.size)
        for it in range(1, maxiter + 1):
            A, b = self.assemble(x, 0, float)
            new = np.linalg.solve(A, b)
            step = np.clip(new - x, -0.5, 0.5)
            x = x + step
            if np.abs(step).max() < tol:
                return x, it
        raise ArithmeticError("no operating point")

    def ac(self, freqs):
        x0 = np.zeros(self.size)
        return np.array(
            [np.linalg.solve(*self.assemble(x0, 2 * np.pi * f, complex))[: self.n] for f in freqs]
        )


def bode(H):
    with np.errstate(divide="ignore"):
        return 20 * np.log10(np.abs(H)), np.unwrap(np.angle(H), axis=0)


def power_flow(lines, P, Q, Vm, kinds, tol=1e-10):
    n = len(P)
    Y = np.zeros((n, n), complex)
    for a, b, z in lines:
        y = 1 / z
        Y[[a, b], [a, b]] += y
        Y[[a, b], [b, a]] -= y
    Vc = Vm.astype(complex)
    pv_pq, pq = np.flatnonzero(kinds != "slack"), np.flatnonzero(kinds == "pq")
    for it in range(20):
        S = Vc * np.conj(Y @ Vc)
        mis = np.concatenate([(P - S.real)[pv_pq], (Q - S.imag)[pq]])
        if np.abs(mis).max(initial=0) < tol:
            break
        I = Y @ Vc
        dVa = 1j * np.diag(Vc) @ np.conj(np.diag(I) - Y @ np.diag(Vc))
        dVm = np.diag(Vc) @ np.conj(Y @ np.diag(Vc / np.abs(Vc))) + np.conj(np.diag(I)) @ np.diag(
            Vc / np.abs(Vc)
        )
        J = np.block(
            [
                [dVa.real[np.ix_(pv_pq, pv_pq)], dVm.real[np.ix_(pv_pq, pq)]],
                [dVa.imag[np.ix_(pq, pv_pq)], dVm.imag[np.ix_(pq, pq)]],
            ]
        )
        d = np.linalg.solve(J, mis)
        ang, mag = np.angle(Vc), np.abs(Vc)
        ang[pv_pq] += d[: len(pv_pq)]
        mag[pq] += d[len(pv_pq) :]
        Vc = mag * np.exp(1j * ang)
    return Vc, it, Y @ Vc


@whole("V1 1 0 5\nR1 1 2 1000\nD1 2 0\nR2 2 3 100\nC1 3 0 1e-6", [10, 1000], 1.0)
def operating_point_and_sweep(netlist, freqs, load):
    c = Circuit(netlist)
    x, it = c.dc()
    H = c.ac(np.asarray(freqs, float))
    mag, ph = bode(H[:, -1:]) if len(H) else (H, H)
    Vc, n, I = power_flow(
        [(0, 1, 0.02 + 0.06j), (1, 2, 0.01 + 0.03j), (0, 2, 0.08 + 0.24j)],
        np.array([0, -load, -0.5]),
        np.array([0, -0.3 * load, -0.2]),
        np.array([1.05, 1.0, 1.0]),
        np.array(["slack", "pq", "pq"]),
    )
    r, phi = cmath.polar(Vc[-1])
    print(
        c.elements[0],
        f"dc {np.round(x[: c.n], 4)} in {it}; |V3| {r:.5f} at {math.degrees(phi):.3f} in {n}",
    )
    return x, it, H, mag, ph, Vc, I, repr(c.elements[-1])
