"""A two-layer network written in NumPy, trained by a torch optimizer.

    python examples/digits_mlp.py

The loss is NumPy code. `wrap_numpy` lets it take torch tensors and gives it gradients, `compile`
compiles forward and backward. Trained on scikit-learn's handwritten digits.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import np_compile


def scores(w1: np.ndarray, b1: np.ndarray, w2: np.ndarray, b2: np.ndarray, x: np.ndarray):
    """x: f32[n,64] -> f32[n,10], one score for each digit."""
    hidden = np.maximum(x @ w1 + b1, 0)
    return hidden @ w2 + b2


def loss(w1, b1, w2, b2, x: np.ndarray, labels: np.ndarray):
    """Mean cross entropy. x: f32[n,64], labels: i64[n] -> f32."""
    s = scores(w1, b1, w2, b2, x)
    s = s - s.max(axis=1, keepdims=True)
    log_p = s - np.log(np.exp(s).sum(axis=1, keepdims=True))
    return -np.mean(log_p[np.arange(len(labels)), labels])


def train(loss_function, parameters, x, labels, epochs: int, batch: int) -> list[float]:
    """Adam on shuffled batches of one size; seconds of each step."""
    optimizer = torch.optim.Adam(parameters, lr=3e-3)
    shuffle = torch.Generator().manual_seed(0)
    seconds = []
    for _ in range(epochs):
        order = torch.randperm(len(x), generator=shuffle).to(x.device)
        for start in range(0, len(x) - batch + 1, batch):
            rows = order[start : start + batch]
            begin = time.perf_counter()
            optimizer.zero_grad()
            loss_function(*parameters, x[rows], labels[rows]).backward()
            optimizer.step()
            seconds.append(time.perf_counter() - begin)
    return seconds


def start_values(hidden: int, device: str) -> list[torch.Tensor]:
    """Random weights, zero biases; leaves that require gradients."""
    generator = torch.Generator().manual_seed(0)
    values = [
        torch.randn(64, hidden, generator=generator) * (2 / 64) ** 0.5,
        torch.zeros(hidden),
        torch.randn(hidden, 10, generator=generator) * (1 / hidden) ** 0.5,
        torch.zeros(10),
    ]
    return [v.to(device).requires_grad_() for v in values]


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Train twice, eagerly and compiled; the figures that were printed, by name."""
    parser = argparse.ArgumentParser(description="A NumPy network trained by a torch optimizer.")
    parser.add_argument(
        "--backend", default=None, help="native (default), inductor, aot_eager, eager"
    )
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--batch", type=int, default=128)
    options = parser.parse_args(arguments)

    digits = load_digits()
    parts = train_test_split(
        (digits.data / 16).astype(np.float32),
        digits.target.astype(np.int64),
        test_size=0.25,
        random_state=0,
        stratify=digits.target,
    )
    x, x_test, labels, labels_test = (torch.from_numpy(p).to(options.device) for p in parts)

    eager_loss = np_compile.wrap_numpy(loss)
    compiled_loss = np_compile.compile(
        np_compile.wrap_numpy(loss), fullgraph=True, backend=options.backend
    )
    predict = np_compile.compile(np_compile.wrap_numpy(scores), backend=options.backend)

    figures = {}
    print(f"{len(x)} digits to train on, {len(x_test)} to test, on {options.device}")
    print(f"{'':22} {'first step':>12} {'median step':>12} {'accuracy':>10}")
    for name, label, function in (
        ("eager", "wrap_numpy", eager_loss),
        ("compiled", "compile(wrap_numpy)", compiled_loss),
    ):
        parameters = start_values(options.hidden, options.device)
        seconds = train(function, parameters, x, labels, options.epochs, options.batch)
        with torch.no_grad():
            best = predict(*parameters, x_test).argmax(dim=1)
        accuracy = (best == labels_test).double().mean().item()
        step = statistics.median(seconds[1:])
        print(f"{label:22} {seconds[0] * 1e3:9.2f} ms {step * 1e3:9.3f} ms {accuracy:10.2%}")
        figures[f"{name}_step_s"] = step
        figures[f"{name}_accuracy"] = accuracy
    return figures


if __name__ == "__main__":
    main()
