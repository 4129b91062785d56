"""Kalman, unscented and particle filters behind one abstract class."""

from __future__ import annotations

import abc

import numpy as np

from ..whole_programs import whole


class Filter(abc.ABC):
    def __init__(self, x0, P0):
        self.x = np.asarray(x0, float)
        self.P = np.array(P0, float)
        self.history = []

    @abc.abstractmethod
    def predict(self, dt): ...

    @abc.abstractmethod
    def update(self, z): ...

    def run(self, zs, dt):
        for z in zs:
            self.predict(dt)
            if np.isnan(z).any():
                self.history.append(self.x.copy())
                continue
            self.update(z)
            self.history.append(self.x.copy())
        return np.array(self.history).reshape(-1, len(self.x))

    @property
    def stds(self):
        return np.sqrt(np.diag(self.P))


def F(dt):
    A = np.eye(4)
    A[0, 2] = A[1, 3] = dt
    return A


def measure(x):
    x = np.atleast_2d(x)
    out = np.stack([np.hypot(x[:, 0], x[:, 1]), np.arctan2(x[:, 1], x[:, 0])], axis=1)
    return out


def wrap(a):
    return (a + np.pi) % (2 * np.pi) - np.pi


class EKF(Filter):
    Qs, R = 0.05, np.diag([0.1**2, 0.02**2])

    def predict(self, dt):
        A = F(dt)
        G = np.array([[dt * dt / 2, 0], [0, dt * dt / 2], [dt, 0], [0, dt]])
        self.x = A @ self.x
        self.P = A @ self.P @ A.T + self.Qs * G @ G.T

    def jacobian(self):
        px, py = self.x[:2]
        r2 = px**2 + py**2
        r = np.sqrt(r2)
        return np.array([[px / r, py / r, 0, 0], [-py / r2, px / r2, 0, 0]])

    def update(self, z):
        H = self.jacobian()
        y = z - measure(self.x)[0]
        y[1] = wrap(y[1])
        S = H @ self.P @ H.T + self.R
        K = np.linalg.solve(S, H @ self.P).T
        self.x = self.x + K @ y
        IKH = np.eye(4) - K @ H
        self.P = IKH @ self.P @ IKH.T + K @ self.R @ K.T


class UKF(EKF):
    alpha, beta, kappa = 0.5, 2.0, 0.0

    def sigma(self):
        n = len(self.x)
        lam = self.alpha**2 * (n + self.kappa) - n
        L = np.linalg.cholesky((n + lam) * self.P)
        pts = np.vstack([self.x, self.x + L.T, self.x - L.T])
        wm = np.full(2 * n + 1, 0.5 / (n + lam))
        wc = wm.copy()
        wm[0] = lam / (n + lam)
        wc[0] = wm[0] + 1 - self.alpha**2 + self.beta
        return pts, wm, wc

    def update(self, z):
        pts, wm, wc = self.sigma()
        Z = measure(pts)
        zbar = wm @ Z
        dz = Z - zbar
        dz[:, 1] = wrap(dz[:, 1])
        dx = pts - self.x
        S = (wc[:, None] * dz).T @ dz + self.R
        C = (wc[:, None] * dx).T @ dz
        K = C @ np.linalg.inv(S)
        nu = z - zbar
        nu[1] = wrap(nu[1])
        self.x = self.x + K @ nu
        self.P -= K @ S @ K.T
        self.P = (self.P + self.P.T) / 2


class Particles(Filter):
    def __init__(self, x0, P0, n=100, seed=0):
        super().__init__(x0, P0)
        self.rng = np.random.default_rng(seed)
        self.p = self.rng.multivariate_normal(self.x, self.P, size=n)
        self.w = np.ones(n) / n
        self.resampled = 0

    def predict(self, dt):
        a = self.rng.normal(0, np.sqrt(0.05), (len(self.p), 2))
        self.p[:, :2] += self.p[:, 2:] * dt + a * dt**2 / 2
        self.p[:, 2:] += a * dt

    def update(self, z):
        d = measure(self.p) - z
        d[:, 1] = wrap(d[:, 1])
        logw = -0.5 * (d**2 / np.diag(EKF.R)).sum(1)
        self.w *= np.exp(logw - logw.max())
        self.w /= self.w.sum()
        if 1 / (self.w**2).sum() < len(self.w) / 2:
            self._systematic()
        self.x = self.w @ self.p
        self.P = np.cov(self.p.T, aweights=self.w, bias=True)

    def _systematic(self):
        n = len(self.w)
        u = (self.rng.random() + np.arange(n)) / n
        c = np.cumsum(self.w)
        c[-1] = 1.0
        i = j = 0
        idx = np.zeros(n, dtype=int)
        while i < n:
            if u[i] < c[j]:
                idx[i] = j
                i += 1
            else:
                j += 1
        self.p = self.p[idx]
        self.w.fill(1 / n)
        self.resampled += 1


def simulate(n, dt, rng):
    x = np.array([1.0, 2.0, 0.5, -0.1])
    truth, zs = np.empty((n, 4)), np.empty((n, 2))
    for k in range(n):
        x = F(dt) @ x
        if k == n // 2:
            x[2:] = x[3], x[2]
        truth[k] = x
        zs[k] = measure(x)[0] + rng.normal(size=2) * [0.1, 0.02]
    return truth, zs


@whole(9, 0, [3])
def tracked_targets(n, seed, gaps):
    rng = np.random.default_rng(seed)
    truth, zs = simulate(n, 0.1, rng)
    zs[gaps] = np.nan
    out = {}
    for cls in (EKF, UKF, Particles):
        f = cls([1, 2, 0.5, 0], np.eye(4) * 0.1)
        est = f.run(zs, 0.1)
        rmse = np.sqrt(((est - truth)[:, :2] ** 2).mean()) if n else float("nan")
        print(f"{cls.__name__:10s} {rmse:.4f} {np.array2string(f.stds, precision=3)}")
        out[cls.__name__] = est, f.P, rmse, getattr(f, "resampled", None)
    return out
