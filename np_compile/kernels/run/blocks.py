"""Strided byte ranges that parts of nests touch, and whether different parts conflict.

A nest's parts touch blocks at equal distances: part i lies i steps behind part 0. Nests can take
turns part by part if no part of one meets another part of another, where one of them writes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True, order=True)
class Block:
    """Bytes that a part touches: begin..end of part 0. step: how much further those of the next
    part lie; 0 where every part may touch all of them."""

    begin: int
    end: int
    step: int
    written: bool

    def of(self, parts: int) -> Block:
        """The block of so many parts as one."""
        if parts == 1:
            return self
        last = (parts - 1) * self.step
        begin, end = min(self.begin, self.begin + last), max(self.end, self.end + last)
        return Block(begin, end, self.step * parts, self.written)

    def apart(self, other: Block, parts: int) -> bool:
        """Whether part i of the one and part k of the other do not meet, unless i is k."""
        if self.step and self.step == other.step:
            # They meet where i - k steps lie between `below` and `above`.
            step = abs(self.step)
            below, above = other.begin - self.end, other.end - self.begin
            least, most = max(below // step + 1, 1 - parts), min(-(-above // step) - 1, parts - 1)
            return least > most or least == most == 0
        one, two = self.of(parts), other.of(parts)
        return one.end <= two.begin or two.end <= one.begin

    def lines(self, line: int) -> tuple[int, int]:
        """The bytes of the cache that a part needs, as begin and end; line: bytes of its lines."""
        if abs(self.step) < line:
            return self.begin, self.begin + min(self.end - self.begin, abs(self.step))
        return self.begin // line * line, -(-self.end // line) * line


class _Lane:
    """The blocks of one memory with one step, sorted."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.hull: Block | None = None
        self._longest = 0

    def add(self, new: Block) -> None:
        insort(self.blocks, new)
        hull = self.hull or new
        begin, end = min(hull.begin, new.begin), max(hull.end, new.end)
        self.hull = replace(new, begin=begin, end=end, written=hull.written or new.written)
        self._longest = max(self._longest, new.end - new.begin)

    def near(self, new: Block, parts: int) -> Iterator[Block]:
        """The blocks of which a part may meet a part of a new one."""
        reach = abs(new.step) * parts
        first = new.begin - reach - self._longest
        for k in range(bisect_left(self.blocks, Block(first, first, 0, False)), len(self.blocks)):
            if self.blocks[k].begin > new.end + reach:
                return
            yield self.blocks[k]


class Memory:
    """The blocks of one memory that nests touch, one nest after the other.

    used: of each block the first and the last nest that touches it.
    """

    def __init__(self) -> None:
        self.used: dict[Block, tuple[int, int]] = {}
        self._lanes: dict[int, _Lane] = {}

    def add(self, new: Block, first: int, last: int) -> None:
        """Note that nests touch a block."""
        if new in self.used:
            self.used[new] = self.used[new][0], last
            return
        self.used[new] = first, last
        self._lanes.setdefault(new.step, _Lane()).add(new)

    def of(self, parts: int) -> Memory:
        """The same with so many parts as one."""
        if parts == 1:
            return self
        coarser = Memory()
        for block, (first, last) in self.used.items():
            coarser.add(block.of(parts), first, last)
        return coarser

    def admits(self, new: Block, parts: int) -> bool:
        """Whether no part of a block meets another part of one that is there, where one is
        written."""
        for step, lane in self._lanes.items():
            hull = lane.hull
            assert hull is not None
            if not (new.written or hull.written) or new.apart(hull, parts):
                continue
            blocks = lane.near(new, parts) if step == new.step else iter(lane.blocks)
            if not all(
                new.apart(b, parts) for b in blocks if new.written or b.written
            ):  # fmt: skip
                return False
        return True


def most_bytes(memories: list[Memory], nests: int, line: int) -> int:
    """The most bytes of a part that nests have in use at one time: from the first of so many nests
    that touches them to the last. line: bytes of a cache line."""
    change = [0] * (nests + 1)
    for memory in memories:
        found = [(*b.lines(line), *used) for b, used in memory.used.items() if b.step]
        reached: tuple[int, int, int, int] | None = None
        for begin, end, first, last in sorted(found):
            if reached is not None and begin < reached[1]:
                reached = (
                    reached[0], max(end, reached[1]), min(first, reached[2]), max(last, reached[3])
                )  # fmt: skip
                continue
            _count(change, reached)
            reached = begin, end, first, last
        _count(change, reached)
    total = most = 0
    for bytes_ in change:
        total += bytes_
        most = max(most, total)
    return most


def _count(change: list[int], used: tuple[int, int, int, int] | None) -> None:
    if used is not None:
        begin, end, first, last = used
        change[first] += end - begin
        change[last + 1] -= end - begin
