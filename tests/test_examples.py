"""The examples run, on small sizes, and what they print is right."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def load(name: str) -> ModuleType:
    """An example as a module; it is no package."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_kmeans_photo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "photo.png"
    figures = load("kmeans_photo").main(
        ["--backend=eager", "--every=8", "--colours=8", "--rounds=1", f"--out={picture}"]
    )
    assert figures["same_pixels"] > 0.999
    assert figures["centres_apart"] < 1e-5
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "np_compile" in capsys.readouterr().out


def test_kmeans_finds_the_centres() -> None:
    blobs = np.array([[0, 0, 0], [1, 1, 1], [0, 1, 0]], np.float32)
    noise = np.random.default_rng(0).normal(0, 0.02, (50, 3, 3)).astype(np.float32)
    pixels = (blobs + noise).reshape(-1, 3)
    centres, labels = load("kmeans_photo").kmeans(pixels, pixels[:3], 20, 1e-4)
    assert np.abs(centres - blobs).max() < 0.02
    assert labels.reshape(50, 3).tolist() == [[0, 1, 2]] * 50


def test_digits_mlp(capsys: pytest.CaptureFixture[str]) -> None:
    figures = load("digits_mlp").main(["--backend=eager"])
    assert figures["eager_accuracy"] > 0.95
    assert figures["compiled_accuracy"] > 0.95
    assert "compile(wrap_numpy)" in capsys.readouterr().out


def test_heat(capsys: pytest.CaptureFixture[str]) -> None:
    figures = load("heat").main(
        ["--backend=eager", "--size=48", "--steps=40", "--tolerance=0.05", "--rounds=1"]
    )
    assert figures["diffuse_apart"] < 1e-10
    assert figures["settle_apart"] < 1e-10
    assert figures["settle_steps"] > 100
    assert "diffuse" in capsys.readouterr().out


@pytest.mark.cuda
def test_kmeans_photo_on_cuda() -> None:
    figures = load("kmeans_photo").main(["--device=cuda", "--every=8", "--rounds=2", "--out="])
    assert figures["same_pixels"] > 0.999


@pytest.mark.cuda
def test_digits_mlp_on_cuda() -> None:
    figures = load("digits_mlp").main(["--device=cuda", "--backend=aot_eager"])
    assert figures["compiled_accuracy"] > 0.95
