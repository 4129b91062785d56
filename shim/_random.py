"""numpy.random: NumPy's own stream of numbers, as arrays on torch's default device."""

from __future__ import annotations

import numpy as np

from ._handed import drawing, handed_class
from ._table import Kind, Row, add_row


def _enter() -> None:
    for name in np.random.__all__:
        value = getattr(np.random, name)
        if not callable(value):
            continue
        takes_arrays = isinstance(value, type) and value is not np.random.BitGenerator
        function = value
        if takes_arrays:
            function = handed_class(value)
        elif value is not np.random.BitGenerator:
            function = drawing(value)
        add_row(Row(f"random.{name}", function, Kind.IMPURE))


_enter()
