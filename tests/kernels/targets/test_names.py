"""Names in the text of a kernel."""

from __future__ import annotations

import pytest

from np_compile.kernels.ir import expr as E
from np_compile.kernels.ir.dtypes import DTYPES
from np_compile.kernels.targets.values import Code


@pytest.mark.parametrize("letter", "ijkuf")
def test_no_loop_has_the_name_of_a_type(letter):
    code = Code(None)
    names = [code.axis(E.axis(3, letter)) for _ in range(70)]
    assert len({*names}) == 70
    assert not {*names} & {*DTYPES}
