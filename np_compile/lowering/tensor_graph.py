"""The form of a tensor graph that torch's back ends take, made at little cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import graph as fx_graph

from np_compile.shim._ufunc_math import sqrt

_SQRT = torch.ops.aten.sqrt.default
# torch writes constants into the code of graphs, those of back ends too, as `repr` has them, and
# gives that code `inf` and `nan`. A complex one is `(nan+nanj)`.
for _name, _part in (("infj", math.inf), ("nanj", math.nan)):
    fx_graph._register_custom_builtin(
        _name, f"{_name} = complex(0, float('{_part}'))", complex(0, _part)
    )


class TensorGraph(torch.fx.GraphModule):
    """A `torch.fx.GraphModule` whose Python code is generated when somebody asks for it.

    `forward` and `code` ask for it. A back end that reads the graph alone never does, and that is
    half the time of lowering. Roots are rounded correctly in it, as torch's on the CPU are not.
    """

    def recompile(self) -> Any:
        """Bring the generated code up to date with the graph; torch's code object, if any."""
        return self._written() if self._generated() else None

    def _generated(self) -> bool:
        return "forward" in vars(type(self))  # torch makes a class for each graph

    def _generate(self) -> None:
        if not self._generated():
            self._written()

    def _written(self) -> Any:
        roots = [node for node in self.graph.nodes if node.target is _SQRT]
        for node in roots:
            node.target = sqrt
        try:
            return super().recompile()
        finally:
            for node in roots:
                node.target = _SQRT

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
