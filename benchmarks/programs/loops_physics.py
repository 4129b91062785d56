"""Simulations with loops in Python: particles, fields, time steps, random moves."""

from __future__ import annotations

import numpy as np

from .registry import jnp, lax, prange, program


def _window(rng, height, width, limit):
    return -1.9, 0.6, -1.15, 1.2, height, width, limit


@program(
    "loops",
    make=_window,
    small=(6, 6, 20),
    medium=(50, 60, 60),
    large=(300, 400, 100),
)
def mandelbrot_by_element(left, right, low, high, height, width, limit):
    """Steps until each point of the complex plane escapes, point by point."""
    counts = np.zeros((height, width), dtype=np.int32)
    for i in range(height):
        for j in range(width):
            c = complex(left + (right - left) * j / width, low + (high - low) * i / height)
            z = 0j
            n = 0
            while abs(z) <= 2 and n < limit:
                z = z * z + c
                n += 1
            counts[i, j] = n
    return counts


@mandelbrot_by_element.numba
def _mandelbrot_by_element_numba(left, right, low, high, height, width, limit):
    counts = np.zeros((height, width), dtype=np.int32)
    for i in prange(height):
        for j in range(width):
            c = complex(left + (right - left) * j / width, low + (high - low) * i / height)
            z = 0j
            n = 0
            while abs(z) <= 2 and n < limit:
                z = z * z + c
                n += 1
            counts[i, j] = n
    return counts


@mandelbrot_by_element.jax
def _mandelbrot_by_element_jax(left, right, low, high, height, width, limit):
    x = left + (right - left) * jnp.arange(width) / width
    y = low + (high - low) * jnp.arange(height) / height
    c = x + 1j * y[:, None]

    def step(_, state):
        z, counts = state
        inside = jnp.abs(z) <= 2
        return jnp.where(inside, z * z + c, z), counts + inside

    return lax.fori_loop(0, limit, step, (0 * c, jnp.zeros(c.shape, jnp.int32)))[1]


def _plane(rng, height, width):
    x, y = np.linspace(-2, 0.6, width), np.linspace(-1.2, 1.2, height)
    return x + 1j * y[:, np.newaxis], 60


@program("loops", make=_plane, small=(5, 5), medium=(160, 200), large=(1400, 1800))
def mandelbrot_by_mask(c, limit):
    """Steps until points escape, with masks that say which are left, and an end when none is."""
    z = np.zeros_like(c)
    counts = np.full(c.shape, limit)
    alive = np.ones(c.shape, dtype=bool)
    for n in range(limit):
        z[alive] = z[alive] ** 2 + c[alive]
        escaped = alive & (np.abs(z) > 2)
        counts[escaped] = n
        alive &= ~escaped
        if not alive.any():
            break
    return counts


@mandelbrot_by_mask.numba
def _mandelbrot_by_mask_numba(c, limit):
    height, width = c.shape
    counts = np.full(c.shape, limit)
    for i in prange(height):
        for j in range(width):
            z = 0j
            for n in range(limit):
                z = z**2 + c[i, j]
                if np.abs(z) > 2:
                    counts[i, j] = n
                    break
    return counts


def _bodies(rng, n, steps):
    return (
        rng.standard_normal((n, 3)),
        0.1 * rng.standard_normal((n, 3)),
        rng.random(n),
        0.01,
        steps,
    )


@program(
    "loops",
    make=_bodies,
    small=(4, 5),
    medium=(20, 12),
    large=(80, 30),
    in_place=(0, 1),
)
def n_body_steps(x, v, mass, dt, steps):
    """Leapfrog steps of bodies that attract each other, pair by pair, in place."""
    n = len(mass)
    a = np.zeros_like(x)
    for _ in range(steps):
        a[:] = 0.0
        for i in range(n):
            for j in range(i + 1, n):
                d = x[j] - x[i]
                inverse = (np.dot(d, d) + 0.01) ** -1.5
                a[i] += mass[j] * inverse * d
                a[j] -= mass[i] * inverse * d
        v += dt * a
        x += dt * v


@n_body_steps.numba
def _n_body_steps_numba(x, v, mass, dt, steps):
    n = len(mass)
    for _ in range(steps):
        for i in prange(n):
            ax = ay = az = 0.0
            for j in range(n):
                dx = x[j, 0] - x[i, 0]
                dy = x[j, 1] - x[i, 1]
                dz = x[j, 2] - x[i, 2]
                squared = dx * dx + dy * dy + dz * dz + 0.01
                f = mass[j] / (squared * np.sqrt(squared))
                ax += f * dx
                ay += f * dy
                az += f * dz
            v[i, 0] += dt * ax
            v[i, 1] += dt * ay
            v[i, 2] += dt * az
        x += dt * v


@n_body_steps.jax
def _n_body_steps_jax(x, v, mass, dt, steps):
    def step(_, state):
        x, v = state
        d = x[None] - x[:, None]
        inverse = ((d * d).sum(axis=2) + 0.01) ** -1.5
        v = v + dt * jnp.einsum("j,ij,ijk->ik", mass, inverse, d)
        return x + dt * v, v

    return lax.fori_loop(0, steps, step, (x, v))


def _fluid(rng, n, steps):
    side = max(n, 1) ** 0.5
    return side * rng.random((n, 2)), 0.1 * rng.standard_normal((n, 2)), 1.5, 0.01, steps


@program(
    "loops",
    make=_fluid,
    small=(10, 1),
    medium=(250, 2),
    large=(1000, 15),
    in_place=(0, 1),
)
def sph_steps(x, v, h, dt, steps):
    """Steps of smoothed particle hydrodynamics: density, pressure, forces of neighbours."""
    n = len(x)
    for _ in range(steps):
        density = np.zeros(n)
        for i in range(n):
            r2 = np.sum((x - x[i]) ** 2, axis=1)
            near = r2[r2 < h * h]
            density[i] = np.sum((1 - near / (h * h)) ** 3)
        pressure = 2.0 * (density - 1.0)
        force = np.zeros((n, 2))
        for i in range(n):
            d = x - x[i]
            r = np.sqrt(np.sum(d**2, axis=1))
            for j in np.where((r < h) & (r > 1e-9))[0]:
                q = 1 - r[j] / h
                shared = (pressure[i] + pressure[j]) / (2 * density[j])
                force[i] -= shared * q * d[j] / r[j]
                force[i] += 0.5 * q * (v[j] - v[i]) / density[j]
        force[:, 1] -= 0.5
        v += dt * force / density[:, np.newaxis]
        x += dt * v
        low = x[:, 1] < 0
        x[low, 1] = -x[low, 1]
        v[low, 1] *= -0.5


@sph_steps.numba
def _sph_steps_numba(x, v, h, dt, steps):
    n = len(x)
    density = np.zeros(n)
    force = np.zeros((n, 2))
    for _ in range(steps):
        for i in prange(n):
            total = 0.0
            for j in range(n):
                r2 = (x[j, 0] - x[i, 0]) ** 2 + (x[j, 1] - x[i, 1]) ** 2
                if r2 < h * h:
                    total += (1 - r2 / (h * h)) ** 3
            density[i] = total
        for i in prange(n):
            force[i] = 0.0
            for j in range(n):
                dx, dy = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1]
                r = np.sqrt(dx**2 + dy**2)
                if r < h and r > 1e-9:
                    q = 1 - r / h
                    pressure = 2.0 * (density[i] - 1.0) + 2.0 * (density[j] - 1.0)
                    shared = pressure / (2 * density[j])
                    drag = 0.5 * q / density[j]
                    force[i, 0] += drag * (v[j, 0] - v[i, 0]) - shared * q * dx / r
                    force[i, 1] += drag * (v[j, 1] - v[i, 1]) - shared * q * dy / r
        for i in prange(n):
            force[i, 1] -= 0.5
            for k in range(2):
                v[i, k] += dt * force[i, k] / density[i]
                x[i, k] += dt * v[i, k]
            if x[i, 1] < 0:
                x[i, 1] = -x[i, 1]
                v[i, 1] *= -0.5


def _crystal(rng, side):
    axis = 1.1 * np.arange(side)
    x = np.stack(np.meshgrid(axis, axis, axis), axis=-1).reshape(-1, 3)
    return x + 0.05 * rng.standard_normal(x.shape), 1.1 * side, 2.5


@program("loops", make=_crystal, small=(2,), medium=(4,), large=(8,))
def lennard_jones(x, box, cutoff):
    """Forces and energy of particles in a periodic box, with a cut-off."""
    n = len(x)
    force = np.zeros_like(x)
    energy = 0.0
    for i in range(n - 1):
        for j in range(i + 1, n):
            d = x[i] - x[j]
            d -= box * np.round(d / box)
            r2 = d @ d
            if r2 > cutoff**2:
                continue
            inverse = 1.0 / r2
            sixth = inverse**3
            energy += 4 * sixth * (sixth - 1)
            f = 48 * sixth * (sixth - 0.5) * inverse * d
            force[i] += f
            force[j] -= f
    return force, energy


@lennard_jones.numba
def _lennard_jones_numba(x, box, cutoff):
    n = len(x)
    force = np.zeros_like(x)
    energy = 0.0
    for i in prange(n):
        for j in range(n):
            if i == j:
                continue
            dx, dy, dz = x[i, 0] - x[j, 0], x[i, 1] - x[j, 1], x[i, 2] - x[j, 2]
            dx -= box * np.round(dx / box)
            dy -= box * np.round(dy / box)
            dz -= box * np.round(dz / box)
            r2 = dx * dx + dy * dy + dz * dz
            if r2 > cutoff**2:
                continue
            inverse = 1.0 / r2
            sixth = inverse**3
            energy += 2 * sixth * (sixth - 1)
            f = 48 * sixth * (sixth - 0.5) * inverse
            force[i, 0] += f * dx
            force[i, 1] += f * dy
            force[i, 2] += f * dz
    return force, energy


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


def _spins(rng, n, sweeps):
    return rng.choice(np.array([-1, 1], dtype=np.int8), (n, n)), 0.44, sweeps, 7


def _spins_and_generator(rng, n, sweeps):
    return (*_spins(rng, n, sweeps)[:3], np.random.default_rng(7))


@program(
    "loops",
    make=_spins_and_generator,
    small=(8, 1),
    medium=(30, 8),
    large=(60, 80),
    in_place=(0,),
)
def ising(spins, beta, sweeps, rng):
    """Metropolis moves of the Ising model in place, with a Generator."""
    n = spins.shape[0]
    for _ in range(sweeps * n * n):
        i = rng.integers(0, n)
        j = rng.integers(0, n)
        around = spins[(i + 1) % n, j] + spins[i - 1, j] + spins[i, (j + 1) % n] + spins[i, j - 1]
        cost = 2 * spins[i, j] * around
        if cost <= 0 or rng.random() < np.exp(-beta * cost):
            spins[i, j] = -spins[i, j]


@program("loops", make=_spins, small=(8, 1), medium=(30, 8), large=(60, 80))
def ising_legacy(spins, beta, sweeps, seed):
    """Magnetization over sweeps of the Ising model, with NumPy's legacy random numbers."""
    np.random.seed(seed)
    spins = spins.astype(np.int64)
    n, m = spins.shape
    magnetization = np.zeros(sweeps)
    for sweep in range(sweeps):
        for i in range(n):
            for j in range(m):
                around = (
                    spins[(i + 1) % n, j]
                    + spins[(i - 1) % n, j]
                    + spins[i, (j + 1) % m]
                    + spins[i, (j - 1) % m]
                )
                cost = 2 * spins[i, j] * around
                if cost < 0 or np.random.rand() < np.exp(-cost * beta):
                    spins[i, j] *= -1
        magnetization[sweep] = np.abs(spins.sum()) / (n * m)
    return magnetization, spins


def _walkers(rng, n):
    return n, np.random.default_rng(11)


@program("loops", make=_walkers, small=(200,), medium=(6000,), large=(250_000,))
def metropolis_sampling(n, rng):
    """A Markov chain of normal steps for a density with two peaks; samples and acceptance."""
    samples = np.empty(n)
    x, accepted = 0.0, 0
    density = np.exp(-0.5 * (x - 2) ** 2) + 0.5 * np.exp(-0.5 * (x + 2) ** 2)
    for i in range(n):
        proposal = x + rng.normal(0.0, 1.5)
        new = np.exp(-0.5 * (proposal - 2) ** 2) + 0.5 * np.exp(-0.5 * (proposal + 2) ** 2)
        if rng.random() < new / density:
            x, density = proposal, new
            accepted += 1
        samples[i] = x
    return samples, accepted / max(n, 1)


def _oscillator(rng, t_end):
    return np.array([2.0, 0.0]), float(t_end), 5.0, 1e-8


def van_der_pol(y, mu):
    """Derivatives of van der Pol's oscillator."""
    return np.array([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])


@program("loops", make=_oscillator, small=(0.05,), medium=(5,), large=(200,))
def adaptive_runge_kutta(y, t_end, mu, tol):
    """An oscillator by the method of Bogacki and Shampine, with steps that adapt to the error."""
    t, h = 0.0, 0.001
    steps = 0
    k1 = van_der_pol(y, mu)
    while t < t_end:
        h = min(h, t_end - t)
        k2 = van_der_pol(y + h / 2 * k1, mu)
        k3 = van_der_pol(y + 3 * h / 4 * k2, mu)
        new = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
        k4 = van_der_pol(new, mu)
        error = np.max(np.abs(h * (-5 * k1 / 72 + k2 / 12 + k3 / 9 - k4 / 8)))
        if error <= tol:
            t += h
            y = new
            k1 = k4
            steps += 1
        h *= min(5.0, max(0.2, 0.9 * (tol / max(error, 1e-15)) ** (1 / 3)))
    return y, steps


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
