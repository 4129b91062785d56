"""Fields on grids with loops in Python: flow, diffusion, advection, waves."""

from __future__ import annotations

import numpy as np

from .registry import jnp, lax, prange, program

DIRECTIONS = np.array(
    [[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1], [1, 1], [-1, 1], [-1, -1], [1, -1]]
)
WEIGHTS = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)


def _flow(rng, rows, columns, steps):
    u = 0.05 * rng.standard_normal((2, rows, columns))
    density = 1 + 0.01 * rng.random((rows, columns))
    y, x = np.ogrid[:rows, :columns]
    wall = (y - rows / 2) ** 2 + (x - columns / 4) ** 2 < (rows / 8) ** 2
    F = np.stack([w * density * (1 + 3 * (c[0] * u[0] + c[1] * u[1]))
                  for c, w in zip(DIRECTIONS, WEIGHTS, strict=True)])  # fmt: skip
    return F, wall, 0.6, steps


@program(
    "loops",
    make=_flow,
    small=(6, 8, 2),
    medium=(50, 80, 16),
    large=(200, 320, 150),
)
def lattice_boltzmann(F, wall, tau, steps):
    """Flow around a cylinder by the lattice Boltzmann method, nine directions in whole arrays."""
    F = F.copy()
    for _ in range(steps):
        for i in range(9):
            F[i] = np.roll(F[i], DIRECTIONS[i, 0], axis=1)
            F[i] = np.roll(F[i], DIRECTIONS[i, 1], axis=0)
        bounced = F[:, wall]
        bounced = bounced[[0, 3, 4, 1, 2, 7, 8, 5, 6]]
        rho = F.sum(axis=0)
        ux = (F[1] - F[3] + F[5] - F[6] - F[7] + F[8]) / rho
        uy = (F[2] - F[4] + F[5] + F[6] - F[7] - F[8]) / rho
        F[:, wall] = bounced
        ux[wall] = 0
        uy[wall] = 0
        for i in range(9):
            cu = 3 * (DIRECTIONS[i, 0] * ux + DIRECTIONS[i, 1] * uy)
            equilibrium = WEIGHTS[i] * rho * (1 + cu + cu**2 / 2 - 1.5 * (ux**2 + uy**2))
            F[i] += (equilibrium - F[i]) / tau
    return F, ux, uy


@lattice_boltzmann.numba
def _lattice_boltzmann_numba(F, wall, tau, steps):
    rows, columns = wall.shape
    opposite = (0, 3, 4, 1, 2, 7, 8, 5, 6)
    F, G = F.copy(), np.empty_like(F)
    ux, uy = np.zeros((rows, columns)), np.zeros((rows, columns))
    for _ in range(steps):
        for y in prange(rows):
            f = np.empty(9)
            for x in range(columns):
                rho = 0.0
                for i in range(9):
                    f[i] = F[i, (y - DIRECTIONS[i, 1]) % rows, (x - DIRECTIONS[i, 0]) % columns]
                    rho += f[i]
                u = (f[1] - f[3] + f[5] - f[6] - f[7] + f[8]) / rho
                v = (f[2] - f[4] + f[5] + f[6] - f[7] - f[8]) / rho
                if wall[y, x]:
                    u = v = 0.0
                ux[y, x], uy[y, x] = u, v
                for i in range(9):
                    cu = 3 * (DIRECTIONS[i, 0] * u + DIRECTIONS[i, 1] * v)
                    target = WEIGHTS[i] * rho * (1 + cu + cu**2 / 2 - 1.5 * (u**2 + v**2))
                    before = f[opposite[i]] if wall[y, x] else f[i]
                    G[i, y, x] = before + (target - before) / tau
        F, G = G, F
    return F, ux, uy


@lattice_boltzmann.jax
def _lattice_boltzmann_jax(F, wall, tau, steps):
    opposite = jnp.array([0, 3, 4, 1, 2, 7, 8, 5, 6])
    cx, cy = DIRECTIONS[:, 0, None, None], DIRECTIONS[:, 1, None, None]

    def step(_, state):
        F = state[0]
        F = jnp.stack(
            [jnp.roll(f, (c[1], c[0]), (0, 1)) for f, c in zip(F, DIRECTIONS, strict=True)]
        )
        rho = F.sum(axis=0)
        ux = jnp.where(wall, 0, (cx * F).sum(axis=0) / rho)
        uy = jnp.where(wall, 0, (cy * F).sum(axis=0) / rho)
        F = jnp.where(wall, F[opposite], F)
        cu = 3 * (cx * ux + cy * uy)
        weights = WEIGHTS[:, None, None]
        equilibrium = weights * rho * (1 + cu + cu**2 / 2 - 1.5 * (ux**2 + uy**2))
        return F + (equilibrium - F) / tau, ux, uy

    zero = jnp.zeros(wall.shape)
    return lax.fori_loop(0, steps, step, (F, zero, zero))


def _cavity(rng, n, steps):
    dt = (2.0 / max(n - 1, 1)) ** 2  # a step at which diffusion is stable
    return np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n)), min(dt, 0.001), 1e-4, steps


def pressure_poisson(p, b, h, tol):
    """Pressure by Jacobi's iteration, in place, until it changes little; the iterations."""
    iterations = 0
    change = 1.0
    while change > tol and iterations < 100:
        old = p.copy()
        p[1:-1, 1:-1] = 0.25 * (
            old[1:-1, 2:] + old[1:-1, :-2] + old[2:, 1:-1] + old[:-2, 1:-1] - h**2 * b[1:-1, 1:-1]
        )
        p[:, -1] = p[:, -2]
        p[:, 0] = p[:, 1]
        p[0, :] = p[1, :]
        p[-1, :] = 0
        change = np.abs(p - old).sum() / (np.abs(old).sum() + 1e-12)
        iterations += 1
    return iterations


@program(
    "loops",
    make=_cavity,
    small=(6, 3),
    medium=(31, 12),
    large=(151, 250),
    in_place=(0, 1, 2),
)
def cavity_flow(u, v, p, dt, tol, steps):
    """Flow in a box under a moving lid: Navier-Stokes with a pressure that is iterated."""
    h = 2.0 / (len(u) - 1)
    rho, nu = 1.0, 0.1
    b = np.zeros_like(u)
    for _ in range(steps):
        du = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * h)
        dv = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * h)
        cross = (u[2:, 1:-1] - u[:-2, 1:-1]) * (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * h * h)
        b[1:-1, 1:-1] = rho * ((du + dv) / dt - du**2 - cross - dv**2)
        pressure_poisson(p, b, h, tol)
        un, vn = u.copy(), v.copy()
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / h * (un[1:-1, 1:-1] - un[1:-1, :-2])
            - vn[1:-1, 1:-1] * dt / h * (un[1:-1, 1:-1] - un[:-2, 1:-1])
            - dt / (2 * rho * h) * (p[1:-1, 2:] - p[1:-1, :-2])
            + nu * dt / h**2 * (un[1:-1, 2:] - 2 * un[1:-1, 1:-1] + un[1:-1, :-2])
            + nu * dt / h**2 * (un[2:, 1:-1] - 2 * un[1:-1, 1:-1] + un[:-2, 1:-1])
        )
        v[1:-1, 1:-1] = (
            vn[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / h * (vn[1:-1, 1:-1] - vn[1:-1, :-2])
            - vn[1:-1, 1:-1] * dt / h * (vn[1:-1, 1:-1] - vn[:-2, 1:-1])
            - dt / (2 * rho * h) * (p[2:, 1:-1] - p[:-2, 1:-1])
            + nu * dt / h**2 * (vn[1:-1, 2:] - 2 * vn[1:-1, 1:-1] + vn[1:-1, :-2])
            + nu * dt / h**2 * (vn[2:, 1:-1] - 2 * vn[1:-1, 1:-1] + vn[:-2, 1:-1])
        )
        u[0, :] = 0
        u[:, 0] = 0
        u[:, -1] = 0
        u[-1, :] = 1
        v[0, :] = 0
        v[-1, :] = 0
        v[:, 0] = 0
        v[:, -1] = 0


def _diffusion(rng, n, steps):
    return rng.random((n, n)), 0.4, steps


@program(
    "loops",
    make=_diffusion,
    small=(6, 1),
    medium=(40, 5),
    large=(150, 15),
    in_place=(0,),
)
def adi_diffusion(u, r, steps):
    """Diffusion by alternating directions: along rows and columns, one line after the other."""
    n = len(u)
    p = np.zeros((n, n))
    q = np.zeros((n, n))
    v = np.zeros((n, n))
    for _ in range(steps):
        for i in range(1, n - 1):
            v[0, i] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = 1.0
            for j in range(1, n - 1):
                p[i, j] = r / (1 + 2 * r - r * p[i, j - 1])
                line = r * u[j, i - 1] + (1 - 2 * r) * u[j, i] + r * u[j, i + 1]
                q[i, j] = (line + r * q[i, j - 1]) / (1 + 2 * r - r * p[i, j - 1])
            v[n - 1, i] = 1.0
            for j in range(n - 2, 0, -1):
                v[j, i] = p[i, j] * v[j + 1, i] + q[i, j]
        for i in range(1, n - 1):
            u[i, 0] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = 1.0
            for j in range(1, n - 1):
                p[i, j] = r / (1 + 2 * r - r * p[i, j - 1])
                line = r * v[i - 1, j] + (1 - 2 * r) * v[i, j] + r * v[i + 1, j]
                q[i, j] = (line + r * q[i, j - 1]) / (1 + 2 * r - r * p[i, j - 1])
            u[i, n - 1] = 1.0
            for j in range(n - 2, 0, -1):
                u[i, j] = p[i, j] * u[i, j + 1] + q[i, j]


@adi_diffusion.numba
def _adi_diffusion_numba(u, r, steps):
    n = len(u)
    p = np.zeros((n, n))
    q = np.zeros((n, n))
    v = np.zeros((n, n))
    for _ in range(steps):
        for i in prange(1, n - 1):
            v[0, i] = 1.0
            q[i, 0] = 1.0
            for j in range(1, n - 1):
                p[i, j] = r / (1 + 2 * r - r * p[i, j - 1])
                line = r * u[j, i - 1] + (1 - 2 * r) * u[j, i] + r * u[j, i + 1]
                q[i, j] = (line + r * q[i, j - 1]) / (1 + 2 * r - r * p[i, j - 1])
            v[n - 1, i] = 1.0
            for j in range(n - 2, 0, -1):
                v[j, i] = p[i, j] * v[j + 1, i] + q[i, j]
        for i in prange(1, n - 1):
            u[i, 0] = 1.0
            q[i, 0] = 1.0
            for j in range(1, n - 1):
                p[i, j] = r / (1 + 2 * r - r * p[i, j - 1])
                line = r * v[i - 1, j] + (1 - 2 * r) * v[i, j] + r * v[i + 1, j]
                q[i, j] = (line + r * q[i, j - 1]) / (1 + 2 * r - r * p[i, j - 1])
            u[i, n - 1] = 1.0
            for j in range(n - 2, 0, -1):
                u[i, j] = p[i, j] * u[i, j + 1] + q[i, j]


def _column(rng, rows, columns, levels):
    shape = rows, columns, levels
    return (*(rng.random(shape) for _ in range(3)), 0.1)


@program(
    "loops",
    make=_column,
    small=(4, 4, 6),
    medium=(60, 70, 60),
    large=(220, 240, 80),
    in_place=(0,),
)
def vertical_advection(phi, w, source, dt):
    """Implicit transport up and down columns of air: forward and backward sweeps over levels."""
    levels = phi.shape[2]
    ccol = np.zeros_like(phi)
    dcol = np.zeros_like(phi)
    for k in range(levels):
        a = np.zeros_like(phi[:, :, 0])
        if k > 0:
            a = -0.25 * dt * (w[:, :, k - 1] + w[:, :, k])
        c = 0.25 * dt * (w[:, :, k] + w[:, :, min(k + 1, levels - 1)])
        if k == levels - 1:
            c[:] = 0.0
        b = 1.0 - a - c
        d = phi[:, :, k] + dt * source[:, :, k]
        if k == 0:
            ccol[:, :, k] = c / b
            dcol[:, :, k] = d / b
        else:
            divided = 1.0 / (b - a * ccol[:, :, k - 1])
            ccol[:, :, k] = c * divided
            dcol[:, :, k] = (d - a * dcol[:, :, k - 1]) * divided
    for k in range(levels - 1, -1, -1):
        if k == levels - 1:
            phi[:, :, k] = dcol[:, :, k]
        else:
            phi[:, :, k] = dcol[:, :, k] - ccol[:, :, k] * phi[:, :, k + 1]


@vertical_advection.numba
def _vertical_advection_numba(phi, w, source, dt):
    rows, columns, levels = phi.shape
    for i in prange(rows):
        ccol, dcol = np.empty(levels), np.empty(levels)
        for j in range(columns):
            for k in range(levels):
                a = c = 0.0
                if k > 0:
                    a = -0.25 * dt * (w[i, j, k - 1] + w[i, j, k])
                if k < levels - 1:
                    c = 0.25 * dt * (w[i, j, k] + w[i, j, k + 1])
                b = 1.0 - a - c
                d = phi[i, j, k] + dt * source[i, j, k]
                if k == 0:
                    ccol[k], dcol[k] = c / b, d / b
                else:
                    divided = 1.0 / (b - a * ccol[k - 1])
                    ccol[k], dcol[k] = c * divided, (d - a * dcol[k - 1]) * divided
            for k in range(levels - 1, -1, -1):
                if k == levels - 1:
                    phi[i, j, k] = dcol[k]
                else:
                    phi[i, j, k] = dcol[k] - ccol[k] * phi[i, j, k + 1]


def _string(rng, points, steps):
    return np.sin(np.linspace(0, np.pi, points)), 0.5, steps


class WaveEquation:
    """A string with fixed ends."""

    def __init__(self, u, courant):
        self.u = u.copy()
        self.before = u.copy()
        self.courant = courant
        self.time = 0

    def step(self):
        """One step of the leapfrog scheme."""
        new = np.zeros_like(self.u)
        new[1:-1] = (
            2 * self.u[1:-1]
            - self.before[1:-1]
            + self.courant**2 * (self.u[2:] - 2 * self.u[1:-1] + self.u[:-2])
        )
        self.before, self.u = self.u, new
        self.time += 1

    def energy(self):
        """Half the squares of velocities and slopes."""
        velocity = self.u - self.before
        return 0.5 * np.sum(velocity**2) + 0.5 * self.courant**2 * np.sum(np.diff(self.u) ** 2)


@program("loops", make=_string, small=(20, 20), medium=(100, 700), large=(1000, 30_000))
def wave_by_class(u, courant, steps):
    """A string's time steps by a class that holds its state; the string and its energies."""
    wave = WaveEquation(u, courant)
    energies = np.zeros(steps)
    for t in range(steps):
        wave.step()
        energies[t] = wave.energy()
    return wave.u, energies


@wave_by_class.numba
def _wave_by_class_numba(u, courant, steps):
    u, before, new = u.copy(), u.copy(), np.zeros_like(u)
    energies = np.zeros(steps)
    n = len(u)
    for t in range(steps):
        for i in prange(1, n - 1):
            new[i] = 2 * u[i] - before[i] + courant**2 * (u[i + 1] - 2 * u[i] + u[i - 1])
        new[0] = new[-1] = 0
        before, u, new = u, new, before
        energy = 0.0
        for i in prange(n):
            energy += (u[i] - before[i]) ** 2
            if i > 0:
                energy += courant**2 * (u[i] - u[i - 1]) ** 2
        energies[t] = 0.5 * energy
    return u, energies


@wave_by_class.jax
def _wave_by_class_jax(u, courant, steps):
    def step(state, _):
        u, before = state
        inner = 2 * u[1:-1] - before[1:-1] + courant**2 * (u[2:] - 2 * u[1:-1] + u[:-2])
        new = jnp.zeros_like(u).at[1:-1].set(inner)
        energy = 0.5 * ((new - u) ** 2).sum() + 0.5 * courant**2 * (jnp.diff(new) ** 2).sum()
        return (new, u), energy

    (u, _), energies = lax.scan(step, (u, u), length=steps)
    return u, energies


def _ring(rng, points, steps):
    return rng.random(points).astype(np.float32), np.float32(0.2), steps


@program(
    "loops",
    make=_ring,
    small=(20, 10),
    medium=(500, 3000),
    large=(20_000, 40_000),
    rtol=1e-4,
    in_place=(0,),
)
def heat_in_place(u, r, steps):
    """Heat in a rod with a source that is switched, many steps in place, in float32."""
    for step in range(steps):
        u[1:-1] += r * (u[2:] - 2 * u[1:-1] + u[:-2])
        if step % 10 < 5:
            u[0] = 1
        else:
            u[0] = 0
        u[-1] = u[-2]


@heat_in_place.numba
def _heat_in_place_numba(u, r, steps):
    a, b = u, u.copy()
    n = len(u)
    for step in range(steps):
        for i in prange(1, n - 1):
            b[i] = a[i] + r * (a[i + 1] - 2 * a[i] + a[i - 1])
        b[0] = 1 if step % 10 < 5 else 0
        b[-1] = b[-2]
        a, b = b, a
    if steps % 2:
        u[:] = a


@heat_in_place.jax
def _heat_in_place_jax(u, r, steps):
    def step(t, u):
        u = u.at[1:-1].add(r * (u[2:] - 2 * u[1:-1] + u[:-2]))
        u = u.at[0].set(jnp.where(t % 10 < 5, 1, 0).astype(u.dtype))
        return u.at[-1].set(u[-2])

    return lax.fori_loop(0, steps, step, u)
