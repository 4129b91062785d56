"""Programs of algorithms as people write them; details are chosen, and some of them changed."""

from __future__ import annotations

import ast
import random
import re
from pathlib import Path

from .maker import DATA, Maker, Program

_FILE = Path(__file__).with_name("skeletons.txt")
_, *TEXTS = _FILE.read_text(encoding="utf-8").strip().split("\n====\n")

HEAD = """
import bisect
import contextlib
import dataclasses
import functools
import heapq
import itertools
import math
from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np
"""
_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Add, ast.Sub, ast.FloorDiv, ast.Mod)
INEXACT = ("/ 4", "sqrt", "a[k, k]", "rng", "/ max", "mean", "/ y", "prod")


def filled(text: str, rng: random.Random) -> str:
    """A skeleton with its choices made."""
    while (begin := text.find("$(")) >= 0:
        depth, parts, end = 1, [""], begin + 2
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            if depth == 1 and text[end] == "|":
                parts.append("")
            elif depth:
                parts[-1] += text[end]
            end += 1
        text = text[:begin] + rng.choice(parts) + text[end:]
    return text


class _Changed(ast.NodeTransformer):
    """Some operators, comparisons and small integers are others."""

    def __init__(self, rng: random.Random, count: int):
        self.random, self.count = rng, count

    def _is_hit(self) -> bool:
        hit = self.count > 0 and self.random.random() < 0.03
        self.count -= hit
        return hit

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, _OPERATORS) and self._is_hit():
            node.op = self.random.choice(_OPERATORS)()
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, _OPERATORS) and self._is_hit():
            node.op = self.random.choice(_OPERATORS)()
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ops[0], _COMPARISONS) and self._is_hit():
            node.ops[0] = self.random.choice(_COMPARISONS)()
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if type(node.value) is int and abs(node.value) < 5 and self._is_hit():
            node.value += self.random.choice((-1, 1))
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        return node  # which should end

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        calls = (n.func for n in ast.walk(node) if isinstance(n, ast.Call))
        if any(isinstance(f, ast.Name) and f.id == node.name for f in calls):
            return node  # which should come to its end, too
        self.generic_visit(node)
        if len(node.body) > 2 and self._is_hit():
            k = self.random.randrange(len(node.body) - 1)
            node.body.insert(k, node.body[k])
        return node


class Algorithms(Maker):
    """One algorithm, and calls with other data, sizes and dtypes."""

    def given(self, name: str, n: int, k: int, f: str) -> str:  # type: ignore[override]
        """An argument, by its name."""
        if name in ("x", "y"):
            return self.laid_out((n if name == "x" or self.pick(3) else k,), f)
        if name == "m":
            return self.laid_out((n, k), f)
        if name == "idx":
            places = [self.pick(max(n, 1)) for _ in range(min(n, 4))]
            return f"np.array({places}, {self.of(['int', 'int', repr('i4'), repr('u1')])})"
        if name == "mode":
            return repr(self.of(("sum", "max", "min")))
        return {
            "n": str(self.pick(5)), "seed": str(self.pick(4)),
            "t": self.of(["0.5", "1.5", "-0.75", "3.0", "2", "np.float64(1.25)"]),
        }[name]  # fmt: skip

    def source(self) -> str:
        """The module."""
        text = filled(self.of(TEXTS), self.random)
        if self.once_in(2):
            tree = _Changed(self.random, 2).visit(ast.parse(text))
            text = ast.unparse(ast.fix_missing_locations(tree))
        (names,) = re.findall(r"def program\((.*)\):", text)
        self.depth = 0
        with self.block("def history():"):
            for call in range(5):
                if call in (0, 3) or self.once_in(2):
                    n, k = (self.of((1, 2, 3, 4, 5, 7, 9)) for _ in range(2))
                    n = 0 if self.once_in(20) else n
                if call in (0, 3):
                    f = self.of(["f8", "f8", "f8", "f4", "i8", "i4", "u1"])
                for name in names.split(", "):
                    self.put(f"{name} = {self.given(name, n, k, f)}")
                self.put(f"yield {names}{',' if ',' not in names else ''}")
        return "\n".join([HEAD + DATA, "", text, "", "", *self.lines, ""])


def program(rng: random.Random) -> Program:
    """An algorithm."""
    source = Algorithms(rng, True).source()
    within = source[source.index(DATA) + len(DATA) : source.index("def history")]
    return Program(source, not any(word in within for word in INEXACT))
