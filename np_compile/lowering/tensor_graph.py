"""The form of a tensor graph that torch's back ends take, made at little cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch.fx import graph as fx_graph

from np_compile.shim._accumulate import from_the_first
from np_compile.shim._host import is_concrete
from np_compile.shim._ufunc_math import complex_divide, sqrt

_aten = torch.ops.aten
# torch writes constants into the code of graphs, those of back ends too, as `repr` has them, and
# gives that code `inf` and `nan`. A complex one is `(nan+nanj)`.
for _name, _part in (("infj", math.inf), ("nanj", math.nan)):
    fx_graph._register_custom_builtin(
        _name, f"{_name} = complex(0, float('{_part}'))", complex(0, _part)
    )


def quotient(a: Any, b: Any) -> torch.Tensor:
    """`torch.div`, of complex numbers by NumPy's algorithm."""
    if isinstance(a, torch.Tensor) and a.is_complex() and getattr(b, "dtype", None) is a.dtype:
        return complex_divide(a, b)
    return torch.div(a, b)


def _running(name: str) -> Callable[..., torch.Tensor]:
    """`torch.cumsum`, `torch.cumprod`, which round halves once: NumPy's do at each step; and whose
    sums begin with 0: NumPy's begin with the first element."""
    plain, own = getattr(torch, name), np.errstate(all="ignore")(getattr(np, name))

    def run(t: torch.Tensor, dim: int, dtype: torch.dtype | None = None) -> torch.Tensor:
        if not is_concrete(t):
            return plain(t, dim, dtype=dtype)
        if (dtype or t.dtype) is not torch.float16:
            made = plain(t, dim, dtype=dtype)
            return from_the_first(t.to(made.dtype), made, dim) if name == "cumsum" else made
        return torch.from_numpy(own(t.numpy(), dim, np.float16))

    run.__name__ = run.__qualname__ = name  # it stands in a graph's code
    return run


# Operators that Python code of a graph replaces, as torch's on the CPU have other last places
_EXACTLY = {
    _aten.sqrt.default: sqrt,
    _aten.div.Tensor: quotient,
    _aten.cumsum.default: _running("cumsum"),
    _aten.cumprod.default: _running("cumprod"),
}


class TensorGraph(torch.fx.GraphModule):
    """A `torch.fx.GraphModule` whose Python code is generated when somebody asks for it.

    `forward` and `code` ask for it. A back end that reads the graph alone never does, and that is
    half the time of lowering. What `replaced` names is computed as NumPy does it.
    """

    replaced: Mapping[Any, Callable] = _EXACTLY

    def recompile(self) -> Any:
        """Bring the generated code up to date with the graph; torch's code object, if any."""
        return self._written() if self._generated() else None

    def _generated(self) -> bool:
        return "forward" in vars(type(self))  # torch makes a class for each graph

    def _generate(self) -> None:
        if not self._generated():
            self._written()

    def _written(self) -> Any:
        replaced = [
            (node, node.target) for node in self.graph.nodes if node.target in self.replaced
        ]
        for node, operator in replaced:
            node.target = self.replaced[operator]
        try:
            return super().recompile()
        finally:
            for node, operator in replaced:
                node.target = operator

    @property
    def forward(self) -> Callable[..., list[torch.Tensor]]:  # type: ignore[override]
        self._generate()
        return self.forward  # the generated method hides this property from now on

    @property
    def code(self) -> str:
        self._generate()
        return super().code

    def __str__(self) -> str:
        self._generate()
        return super().__str__()

    def __reduce__(self) -> Any:
        """What is read again is traced, and has to be torch's operators."""
        return torch.fx.GraphModule(self, self.graph).__reduce__()


class Differentiable(TensorGraph):
    """One that autograd goes through: all its operators are torch's."""

    replaced: Mapping[Any, Callable] = {}
