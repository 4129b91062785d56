"""Simulations with loops in Python: orbits, particles, time steps, random moves."""

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
