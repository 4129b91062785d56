"""The setting `debug_dir`: a folder for each compile."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch

import np_compile
from np_compile import config, errors

from .. import fresh
from ..support import data


def wave(x):
    return np.sin(x) + 1


def folders(path):
    return [{f.name: f.read_text() for f in d.iterdir()} for d in sorted(path.iterdir())]


@pytest.mark.parametrize("backend", ["native", "eager"])
def test_a_folder_for_each_compile(backend, tmp_path):
    fast = np_compile.compile(wave, backend=backend, dynamic=False)
    with config.patch(debug_dir=str(tmp_path), compile_in="call", plain="never"):
        for n in (3, 3, 4):
            fast(data(n))
    first, second = folders(tmp_path)
    assert all(d.name.endswith("_wave") for d in tmp_path.iterdir())
    assert "np.sin(v0)" in first["calls.txt"]
    assert "return np.sin(x) + 1" in first["about.txt"]
    assert "new: shape of input 0: (3,) -> (4,)" in second["about.txt"]
    scope = {}
    exec(first["program.py"], scope)
    (result,) = scope["program"](torch.from_numpy(data(3)))
    np.testing.assert_allclose(result.numpy(), wave(data(3)))
    assert ("output.c" in first) == (backend == "native")
    if backend == "native":
        assert "sin" in first["output.c"]


def test_programs_with_gradients_and_loops_that_are_read(tmp_path):
    def total(x):
        s = 0.0
        for i in range(len(x)):
            s += x[i] * i
        return s

    with config.patch(debug_dir=str(tmp_path), compile_in="call", plain="never"):
        fast = np_compile.compile(np_compile.wrap_numpy(wave))
        fast(torch.ones(3, requires_grad=True))
        with config.patch(loops="whole"):
            np_compile.compile(total)(data(5))
    gradient, region = folders(tmp_path)
    assert "/* forward */" in gradient["output.c"]
    assert "read from its source" in region["about.txt"]


def test_the_environment_variable_and_what_is_no_folder(tmp_path):
    code = (
        "import numpy as np, np_compile\n"
        "np_compile.compile(lambda x: np.sin(x) + 1, backend='eager')(np.zeros(3))\n"
    )
    out, file = tmp_path / "out", tmp_path / "file"
    file.touch()
    done = fresh.run(code, env=os.environ | {"NP_COMPILE_DEBUG_DIR": str(out)})
    assert done.returncode == 0, done.stderr
    assert [d.name for d in out.iterdir()] == ["0000_lambda"]
    with (
        pytest.raises(errors.SettingError, match="this is no folder"),
        config.patch(debug_dir=str(file)),
    ):
        pass
