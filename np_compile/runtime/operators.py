"""A tensor graph, operator by operator, on tensors of which some overlap in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from np_compile.shim._ufunc_math import sqrt


class Operators(fx.Interpreter):
    """Runs a graph as NumPy does what it stands for: what an operator reads is as it was before the
    operator writes, which torch refuses where both overlap in part."""

    def call_function(self, target: Callable | str, args: tuple, kwargs: dict) -> Any:
        """What the operator gives."""
        if target is torch.ops.aten.sqrt.default:
            return sqrt(*args)
        schema = getattr(target, "_schema", None)
        if schema is not None and schema.is_mutable:
            written = [a.alias_info is not None and a.alias_info.is_write for a in schema.arguments]
            args = tuple(
                a if w else _copied(a) for a, w in zip(args, written[: len(args)], strict=True)
            )
        return super().call_function(target, args, kwargs)


def _copied(x: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return type(x)(map(_copied, x))
    return x.clone() if isinstance(x, torch.Tensor) else x
