"""Pointwise programs: chains of operations, masks, complex numbers."""

from __future__ import annotations

import numpy as np

from .registry import jnp, lax, prange, program


def _normal(count):
    """A maker of `count` standard normal vectors."""
    return lambda rng, n: tuple(rng.standard_normal(n) for _ in range(count))


@program("elementwise", make=_normal(2), small=(100,), medium=(10_000,), large=(1_000_000,))
def sine_chain(a, b):
    """sin(a) * b + 1 on vectors."""
    return np.sin(a) * b + 1


@program("elementwise", make=_normal(1), small=(100,), medium=(10_000,), large=(1_000_000,))
def polynomial(x):
    """A polynomial of degree 6 by Horner's rule, clipped to [-10, 10]."""
    y = 0.5 * x - 1.25
    for c in (0.75, -2.0, 1.5, -0.3, 0.1):
        y = y * x + c
    return np.minimum(np.maximum(y, -10.0), 10.0)


def _options(rng, n):
    return (
        rng.uniform(10, 50, n),  # price
        rng.uniform(10, 50, n),  # strike
        rng.uniform(0.1, 2, n),  # years
        0.05,
        0.2,
    )


def normal_cdf(x):
    """The normal distribution function, by a polynomial (Abramowitz and Stegun 26.2.17)."""
    k = 1.0 / (1.0 + 0.2316419 * np.abs(x))
    poly = k * (
        0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
    )
    tail = 0.3989422804014327 * np.exp(-0.5 * x * x) * poly
    return np.where(x > 0, 1.0 - tail, tail)


@program("elementwise", make=_options, small=(100,), medium=(10_000,), large=(1_000_000,))
def black_scholes(price, strike, years, rate, volatility):
    """Prices of European call and put options, as two rows."""
    spread = volatility * np.sqrt(years)
    d1 = (np.log(price / strike) + (rate + 0.5 * volatility * volatility) * years) / spread
    d2 = d1 - spread
    discounted = strike * np.exp(-rate * years)
    call = price * normal_cdf(d1) - discounted * normal_cdf(d2)
    return np.stack((call, call + discounted - price))


@black_scholes.numba
def _black_scholes_numba(price, strike, years, rate, volatility):
    out = np.empty((2, price.size))
    for i in prange(price.size):
        spread = volatility * np.sqrt(years[i])
        drift = (rate + 0.5 * volatility * volatility) * years[i]
        d1 = (np.log(price[i] / strike[i]) + drift) / spread
        discounted = strike[i] * np.exp(-rate * years[i])
        call = price[i] * _cdf(d1) - discounted * _cdf(d1 - spread)
        out[0, i] = call
        out[1, i] = call + discounted - price[i]
    return out


def _cdf(x):
    """normal_cdf of one number."""
    k = 1.0 / (1.0 + 0.2316419 * np.abs(x))
    poly = k * (
        0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
    )
    tail = 0.3989422804014327 * np.exp(-0.5 * x * x) * poly
    return 1.0 - tail if x > 0 else tail


@program(
    "elementwise",
    make=_normal(1),
    small=(100,),
    medium=(10_000,),
    large=(1_000_000,),
    in_place=(0,),
)
def masked_update(x):
    """Clamp and damp a vector in place through boolean masks."""
    x[x > 1.5] = 1.5
    x[x < 0] *= 0.5


@masked_update.numba
def _masked_update_numba(x):
    for i in prange(x.size):
        if x[i] > 1.5:
            x[i] = 1.5
        if x[i] < 0:
            x[i] *= 0.5


@masked_update.jax
def _masked_update_jax(x):
    x = jnp.where(x > 1.5, 1.5, x)
    return jnp.where(x < 0, 0.5 * x, x)


@program("elementwise", make=_normal(1), small=(100,), medium=(10_000,), large=(1_000_000,))
def piecewise(x):
    """A function given by three formulas, chosen by np.where (Huber's loss with a flat end)."""
    a = np.abs(x)
    return np.where(a < 1.0, 0.5 * x * x, np.where(a < 2.5, a - 0.5, np.sqrt(a) + 0.4))


def _plane(rng, height, width):
    real = np.linspace(-2.0, 0.6, width)
    imaginary = np.linspace(-1.2, 1.2, height)
    return real[None, :] + 1j * imaginary[:, None], 20


@program(
    "elementwise",
    make=_plane,
    small=(10, 10),
    medium=(100, 100),
    large=(1000, 1000),
    python_loop=True,
)
def mandelbrot(c, steps):
    """Steps until each point of the complex plane escapes, by a mask of the points still inside."""
    z = np.zeros_like(c)
    count = np.zeros(c.shape, np.int64)
    for _ in range(steps):
        inside = z.real * z.real + z.imag * z.imag < 4.0
        z = np.where(inside, z * z + c, z)
        count += inside
    return count


@mandelbrot.numba
def _mandelbrot_numba(c, steps):
    count = np.zeros(c.shape, np.int64)
    for i in prange(c.shape[0]):
        for j in range(c.shape[1]):
            z = 0j
            for _ in range(steps):
                if z.real * z.real + z.imag * z.imag >= 4.0:
                    break
                z = z * z + c[i, j]
                count[i, j] += 1
    return count


@mandelbrot.jax
def _mandelbrot_jax(c, steps):
    def step(_, state):
        z, count = state
        inside = z.real * z.real + z.imag * z.imag < 4.0
        return jnp.where(inside, z * z + c, z), count + inside

    start = jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int64)
    return lax.fori_loop(0, steps, step, start)[1]
