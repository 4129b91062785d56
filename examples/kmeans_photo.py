"""Colour quantization of a photograph by k-means, in plain NumPy and compiled.

    python examples/kmeans_photo.py --colours 16 --out kmeans_photo.png [--device cuda]

Every pixel of scikit-learn's sample photograph gets one of a few colours. `kmeans` is written as a
NumPy user writes it; the compiled run is the same function behind `np_compile.compile`. Printed are
the times of both (the first call apart), their ratio, and how far the results differ. The picture
before and after is written as a PNG file.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.datasets import load_sample_image

import np_compile


def step(pixels: np.ndarray, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One step: f64[n,3], f64[k,3] -> the means f64[k,3] of the pixels nearest to each centre,
    and the number of each pixel's nearest centre i64[n].

    A function of its own, so that nothing but its results is alive at the caller's test.
    """
    distances = ((pixels[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    labels = distances.argmin(axis=1)
    members = (labels[:, None] == np.arange(len(centres))).astype(pixels.dtype)
    counts = members.sum(axis=0)[:, None]
    means = members.T @ pixels / np.maximum(counts, 1)
    return np.where(counts > 0, means, centres), labels


def kmeans(
    pixels: np.ndarray, centres: np.ndarray, steps: int, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """pixels: f64[n,3], centres: f64[k,3] -> final centres f64[k,3], nearest centre i64[n]."""
    for _ in range(steps):
        moved, labels = step(pixels, centres)
        shift = np.abs(moved - centres).max()
        centres = moved
        if shift < tolerance:
            break
    return centres, labels


@dataclass
class Run:
    """One contender: seconds of the first call, seconds of the later ones, result of the last."""

    first: float
    rounds: list[float]
    centres: np.ndarray
    labels: np.ndarray

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)


def measure(function: Callable, args: tuple, rounds: int) -> Run:
    """Call once, then `rounds` times."""
    times = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        centres, labels = function(*args)
        times.append(time.perf_counter() - start)
    return Run(times[0], times[1:], centres, labels)


def picture(photo: np.ndarray, quantized: np.ndarray, colours: int, path: str) -> None:
    """Write both images, side by side, as a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4.4), layout="constrained")
    for axes, image, title in zip(
        figure.subplots(1, 2),
        (photo, quantized),
        ("the photograph", f"{colours} colours"),
        strict=True,
    ):
        axes.imshow(np.clip(image, 0, 1))
        axes.set_title(title)
        axes.set_axis_off()
    figure.savefig(path, dpi=110)


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Run the comparison; the figures that were printed, by name."""
    parser = argparse.ArgumentParser(description="Colour quantization of a photograph by k-means.")
    parser.add_argument(
        "--backend", default=None, help="native (default), inductor, aot_eager, eager"
    )
    parser.add_argument("--device", default="cpu", help="where the compiled one runs: cpu or cuda")
    parser.add_argument("--colours", type=int, default=16)
    parser.add_argument("--steps", type=int, default=20, help="most k-means steps")
    parser.add_argument("--rounds", type=int, default=3, help="timed calls after the first")
    parser.add_argument("--every", type=int, default=1, help="use every n-th row and column")
    parser.add_argument("--out", default="kmeans_photo.png", help="picture to write; '' for none")
    options = parser.parse_args(arguments)

    photo = load_sample_image("china.jpg")[:: options.every, :: options.every]
    photo = photo / 255
    pixels = photo.reshape(-1, 3)
    chosen = np.random.default_rng(0).choice(len(pixels), options.colours, replace=False)
    args = (pixels, pixels[chosen], options.steps, 1e-3)

    plain = measure(kmeans, args, options.rounds)
    with torch.device(options.device):
        fast = np_compile.compile(kmeans, backend=options.backend)
        compiled = measure(fast, args, options.rounds)

    same = float(np.mean(plain.labels == compiled.labels))
    apart = float(np.abs(plain.centres - compiled.centres).max())
    ratio = plain.median / compiled.median
    height, width = photo.shape[:2]
    print(f"china.jpg, {width}x{height} pixels, {options.colours} colours")
    print(f"{'':12} {'first call':>12} {'median of ' + str(options.rounds):>12} {'ratio':>8}")
    print(f"{'NumPy':12} {plain.first:10.3f} s {plain.median:10.3f} s {1:8.1f}")
    print(f"{'np_compile':12} {compiled.first:10.3f} s {compiled.median:10.3f} s {ratio:8.1f}")
    print(f"pixels with the same colour: {same:.4%}; centres differ by at most {apart:.1e}")
    if options.out:
        quantized = compiled.centres[compiled.labels].reshape(photo.shape)
        picture(photo, quantized, options.colours, options.out)
        print(f"wrote {options.out}")
    return {
        "numpy_s": plain.median,
        "np_compile_s": compiled.median,
        "first_s": compiled.first,
        "ratio": ratio,
        "same_pixels": same,
        "centres_apart": apart,
    }


if __name__ == "__main__":
    main()
