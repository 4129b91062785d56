"""Linear models with families, smoothing, and survival."""

from __future__ import annotations

import warnings

import numpy as np

from ..whole_programs import whole


class Family:
    registry = {}

    def __init_subclass__(cls, **kw):
        super().__init_subclass__(**kw)
        Family.registry[cls.__name__.lower()] = cls

    @staticmethod
    def clip(mu):
        return mu


class Gaussian(Family):
    link = staticmethod(lambda m: m)
    inverse = staticmethod(lambda e: e)
    dmu = staticmethod(np.ones_like)
    variance = staticmethod(np.ones_like)

    @classmethod
    def deviance(cls, y, mu):
        return ((y - mu) ** 2).sum()


class Binomial(Family):
    @staticmethod
    def link(m):
        return np.log(m / (1 - m))

    @staticmethod
    def inverse(e):
        return 1 / (1 + np.exp(-np.clip(e, -30, 30)))

    @staticmethod
    def dmu(e):
        p = Binomial.inverse(e)
        return p * (1 - p)

    @staticmethod
    def variance(m):
        return m * (1 - m)

    @staticmethod
    def clip(m):
        return np.clip(m, 1e-6, 1 - 1e-6)

    @classmethod
    def deviance(cls, y, mu):
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(y > 0, y * np.log(y / mu), 0) + np.where(
                y < 1, (1 - y) * np.log((1 - y) / (1 - mu)), 0
            )
        return 2 * t.sum()


class Poisson(Family):
    link = staticmethod(np.log)
    inverse = staticmethod(np.exp)
    dmu = staticmethod(np.exp)
    variance = staticmethod(lambda m: m)

    @classmethod
    def deviance(cls, y, mu):
        t = np.zeros_like(mu)
        np.log(y / mu, out=t, where=y > 0)
        return 2 * (y * t - (y - mu)).sum()


class GLM:
    def __init__(self, family="gaussian", tol=1e-9, maxiter=25):
        try:
            self.family = Family.registry[family]
        except KeyError:
            raise ValueError(
                f"unknown family {family!r}, expected one of {sorted(Family.registry)}"
            ) from None
        self.tol, self.maxiter = tol, maxiter

    def fit(self, X, y):
        X = np.column_stack([np.ones(len(y)), X])
        fam = self.family
        mu = fam.clip((y + y.mean()) / 2 if fam is not Binomial else (y + 0.5) / 2)
        eta = fam.link(mu)
        dev = np.inf
        for self.n_iter in range(1, self.maxiter + 1):
            d = fam.dmu(eta)
            w = d**2 / fam.variance(mu)
            z = eta + (y - mu) / d
            sw = np.sqrt(w)[:, None]
            beta, res, rank, sv = np.linalg.lstsq(sw * X, sw[:, 0] * z, rcond=None)
            if rank < X.shape[1]:
                warnings.warn(f"rank deficient: {rank} < {X.shape[1]}", UserWarning)
            eta = X @ beta
            mu = fam.clip(fam.inverse(eta))
            new = fam.deviance(y, mu)
            if abs(dev - new) < self.tol * (abs(new) + 0.1):
                break
            dev = new
        else:
            warnings.warn("no convergence")
        self.coef_ = beta
        self.cov_ = np.linalg.pinv(X.T @ (w[:, None] * X))
        self.deviance_ = float(new)
        return self

    @property
    def stderr(self):
        return np.sqrt(self.cov_.diagonal())

    def summary(self):
        lines = [
            f"{self.family.__name__} after {self.n_iter} iterations, deviance {self.deviance_:.5f}"
        ]
        for i, (b, s) in enumerate(zip(self.coef_, self.stderr)):
            stars = "***" if abs(b / s) > 3.29 else "*" if abs(b / s) > 1.96 else ""
            lines.append(f"  b{i} {b:10.5f} {s:9.5f} {stars}".rstrip())
        return "\n".join(lines)


def loess(x, y, frac=0.5, iters=2):
    n = len(x)
    k = max(int(np.ceil(frac * n)), 3)
    h = np.array([np.sort(np.abs(x - x[i]))[min(k, n) - 1] for i in range(n)])
    w = np.clip(np.abs((x[:, None] - x[None, :]) / h), 0.0, 1.0)
    w = (1 - w**3) ** 3
    fit, delta = np.zeros(n), np.ones(n)
    for _ in range(iters):
        for i in range(n):
            wi = delta * w[:, i]
            b = np.array([np.sum(wi * y), np.sum(wi * y * x)])
            A = np.array([[np.sum(wi), np.sum(wi * x)], [np.sum(wi * x), np.sum(wi * x * x)]])
            c = np.linalg.solve(A, b)
            fit[i] = c[0] + c[1] * x[i]
        r = y - fit
        s = np.median(np.abs(r))
        delta = np.clip(r / (6.0 * s), -1, 1)
        delta = (1 - delta**2) ** 2
    return fit


def kaplan_meier(t, event):
    order = np.lexsort((~event, t))
    t, event = t[order], event[order]
    times, start = np.unique(t, return_index=True)
    d = np.add.reduceat(event.astype(int), start)
    at_risk = len(t) - start
    S = np.cumprod(1 - d / at_risk)
    var = S**2 * np.cumsum(d / np.maximum(at_risk * (at_risk - d), 1))
    below = np.flatnonzero(S <= 0.5)
    return times, S, np.sqrt(var), times[below[0]] if below.size else np.nan


def cox(t, event, X, iters=8):
    order = np.argsort(-t, kind="stable")
    t, event, X = t[order], event[order], X[order]
    beta = np.zeros(X.shape[1])
    for _ in range(iters):
        e = np.exp(X @ beta)
        s0 = np.cumsum(e)
        s1 = np.cumsum(e[:, None] * X, axis=0)
        s2 = np.cumsum(e[:, None, None] * X[:, :, None] * X[:, None, :], axis=0)
        m = s1 / s0[:, None]
        g = (X - m)[event].sum(axis=0)
        H = (s2 / s0[:, None, None] - m[:, :, None] * m[:, None, :])[event].sum(0)
        step = np.linalg.solve(H, g)
        beta += step
        if np.linalg.norm(step) < 1e-8:
            break
    return beta, H


@whole(
    np.stack([np.sin(np.arange(20.0)), np.cos(2 * np.arange(20.0))], 1),
    "poisson",
    np.arange(20.0) % 4,
    1.0 + np.arange(20) % 7,
    np.arange(20) % 3 > 0,
)
def fitted_and_survived(X, family, y, t, event):
    m = GLM(family).fit(X, y)
    print(m.summary())
    smooth = loess(X[:, 0], y)
    km = kaplan_meier(t, event)
    b, H = cox(t, event, X)
    return m.coef_, m.stderr, m.n_iter, smooth, km, b
