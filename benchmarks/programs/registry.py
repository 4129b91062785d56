"""The table of benchmark programs, and the names their forms for Numba and JAX are written with."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SIZES = ("small", "medium", "large")
LOOPS = "loops"  # the group of programs that are loops in Python; it has bars of its own


@dataclass
class Program:
    """One NumPy function, its arguments in three sizes, and forms of it for other compilers.

    make(rng, *size) gives the arguments. A program that writes to arguments lists their positions
    in `in_place` and returns nothing; its JAX form returns the new arrays instead. A gradient
    program is the hand-written gradient; `loss` is the function to differentiate by the arguments
    `wrt`.
    """

    name: str
    function: Callable
    group: str
    sizes: dict[str, tuple[int, ...]]
    make: Callable[..., tuple]
    rtol: float = 1e-9
    in_place: tuple[int, ...] = ()
    python_loop: bool = False
    scalar_loop: bool = False
    loss: Callable | None = None
    wrt: tuple[int, ...] = ()
    forms: dict[str, Callable] = field(default_factory=dict)

    @property
    def description(self) -> str:
        """The first paragraph of the function's docstring."""
        return " ".join((inspect.getdoc(self.function) or "").split("\n\n")[0].split())

    @property
    def section(self) -> str:
        """Which of the report's two tables the program stands in."""
        return LOOPS if self.group == LOOPS else "arrays"

    def arguments(self, size: str) -> tuple:
        """The arguments of a size, the same in every process."""
        return self.make(np.random.default_rng(0), *self.sizes[size])

    def numba(self, form: Callable) -> Callable:
        """Register the form that Numba compiles; `prange` in it is Numba's."""
        self.forms["numba"] = form
        return form

    def jax(self, form: Callable) -> Callable:
        """Register the form that JAX traces."""
        self.forms["jax"] = form
        return form


PROGRAMS: dict[str, Program] = {}


def program(
    group: str,
    *,
    make: Callable[..., tuple],
    small: tuple[int, ...],
    medium: tuple[int, ...],
    large: tuple[int, ...],
    **traits: Any,
) -> Callable[[Callable], Program]:
    """A decorator that enters a NumPy function in the table; `traits` are fields of Program."""

    def enter(function: Callable) -> Program:
        name = function.__name__
        if name in PROGRAMS:
            raise ValueError(f"two programs are called {name}")
        sizes = {"small": small, "medium": medium, "large": large}
        PROGRAMS[name] = Program(name, function, group, sizes, make, **traits)
        return PROGRAMS[name]

    return enter


class _Later:
    """A module that is imported when a name in it is first asked for."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


jax, jnp, lax = _Later("jax"), _Later("jax.numpy"), _Later("jax.lax")
prange = range  # in a form for Numba, the contender puts numba.prange in its place
