"""Reverse-mode differentiation with operators, closures and a sort of the graph."""

from __future__ import annotations

import numpy as np

from ..whole_programs import whole


def unbroadcast(g, shape):
    while g.ndim > len(shape):
        g = g.sum(axis=0)
    for i, n in enumerate(shape):
        if n == 1 and g.shape[i] != 1:
            g = g.sum(axis=i, keepdims=True)
    return g


class Tensor:
    __array_priority__ = 100

    def __init__(self, data, _children=(), _op=""):
        self.data = np.asarray(data, dtype=np.float64)
        self.grad = np.zeros_like(self.data)
        self._backward = lambda: None
        self._prev = set(_children)
        self._op = _op

    def __add__(self, other):
        other = other if isinstance(other, Tensor) else Tensor(other)
        out = Tensor(self.data + other.data, (self, other), "+")

        def _backward():
            self.grad += unbroadcast(out.grad, self.data.shape)
            other.grad += unbroadcast(out.grad, other.data.shape)

        out._backward = _backward
        return out

    def __mul__(self, other):
        other = other if isinstance(other, Tensor) else Tensor(other)
        out = Tensor(self.data * other.data, (self, other), "*")

        def _backward():
            self.grad += unbroadcast(other.data * out.grad, self.data.shape)
            other.grad += unbroadcast(self.data * out.grad, other.data.shape)

        out._backward = _backward
        return out

    def __matmul__(self, other):
        out = Tensor(self.data @ other.data, (self, other), "@")

        def _backward():
            self.grad += out.grad @ other.data.T
            other.grad += self.data.T @ out.grad

        out._backward = _backward
        return out

    def __pow__(self, k):
        assert isinstance(k, (int, float)), "only supporting int/float powers for now"
        out = Tensor(self.data**k, (self,), f"**{k}")

        def _backward():
            self.grad += k * self.data ** (k - 1) * out.grad

        out._backward = _backward
        return out

    def tanh(self):
        t = np.tanh(self.data)
        out = Tensor(t, (self,), "tanh")

        def _backward():
            self.grad += (1 - t**2) * out.grad

        out._backward = _backward
        return out

    def exp(self):
        out = Tensor(np.exp(self.data), (self,), "exp")

        def _backward():
            self.grad += out.data * out.grad

        out._backward = _backward
        return out

    def log(self):
        out = Tensor(np.log(self.data), (self,), "log")
        out._backward = lambda: np.add(self.grad, out.grad / self.data, out=self.grad)
        return out

    def sum(self, axis=None, keepdims=False):
        out = Tensor(self.data.sum(axis=axis, keepdims=keepdims), (self,), "sum")

        def _backward():
            g = out.grad
            if axis is not None and not keepdims:
                g = np.expand_dims(g, axis)
            self.grad += np.broadcast_to(g, self.data.shape)

        out._backward = _backward
        return out

    def __getitem__(self, idx):
        out = Tensor(self.data[idx], (self,), "[]")

        def _backward():
            np.add.at(self.grad, idx, out.grad)

        out._backward = _backward
        return out

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + (-other)

    def __truediv__(self, other):
        return self * other**-1

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other):
        return Tensor(other) - self

    def __repr__(self):
        return f"Tensor{self.data.shape}({self._op})"

    def backward(self):
        topo, visited = [], set()

        def build(v):
            if id(v) not in visited:
                visited.add(id(v))
                for c in sorted(v._prev, key=lambda t: t._op):
                    build(c)
                topo.append(v)

        build(self)
        self.grad = np.ones_like(self.data)
        for v in reversed(topo):
            v._backward()
        return len(topo)


class MLP:
    def __init__(self, sizes, rng):
        self.W = [Tensor(rng.normal(0, m**-0.5, (m, n))) for m, n in zip(sizes, sizes[1:])]
        self.b = [Tensor(np.zeros((1, n))) for n in sizes[1:]]

    @property
    def parameters(self):
        return [p for wb in zip(self.W, self.b) for p in wb]

    def __call__(self, x):
        for k, (W, b) in enumerate(zip(self.W, self.b)):
            x = x @ W + b
            if k < len(self.W) - 1:
                x = x.tanh()
        return x


def cross_entropy(z, y):
    m = z - z.data.max(axis=1, keepdims=True)
    logp = m - m.exp().sum(axis=1, keepdims=True).log()
    picked = logp[np.arange(len(y)), y]
    return -picked.sum() / Tensor(float(len(y)))


@whole(np.linspace(-1, 1, 12).reshape(6, 2), np.array([0, 1, 0, 1, 1, 0]), [2, 3, 2], 2, 0.5)
def trained_by_own_autodiff(X, y, sizes, steps, lr):
    net = MLP(sizes, np.random.default_rng(0))
    losses, n = [], None
    for k in range(steps):
        loss = cross_entropy(net(Tensor(X)), y)
        for p in net.parameters:
            p.grad[...] = 0
        n = loss.backward()
        for p in net.parameters:
            p.data -= lr * p.grad
        losses.append(float(loss.data))
    a = Tensor([1.0, 2.0])
    r = (2 * a + 1) ** 2 / (a - 3.5) + np.array([1.0, 1.0])
    print(repr(loss), n, f"{losses[0]:.5f} -> {losses[-1]:.5f}", r)
    return losses, [p.grad for p in net.parameters], net(Tensor(X)).data, r.data
