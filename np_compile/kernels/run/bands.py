"""Cross-kernel tiling: consecutive nests run block by block, so that data stay in the cache.

Nests one after the other read and write their arrays from end to end, and what one makes for the
next has left the cache when it is read. If part i of each of them touches, of all memory that any
of them writes, only part i, they can run in bands: some parts of the first nest, the same parts of
the second, and so on, then the next parts. Threads share the bands, and wait for each other once.

The iterations of a group's nests are counted in parts, equally many of each nest; a part is the
same number of iterations throughout a nest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..analysis.cost import chunk
from ..analysis.footprint import Footprint
from ..target import Target
from .blocks import Block, Memory, most_bytes

_NESTS = 512  # most nests of a group

# Of a pointer: a number of what it leads to, and how many bytes behind its beginning; None for what
# is never written. What has different numbers does not overlap, where it is written.
Place = tuple[int, int] | None


@dataclass(frozen=True)
class Member:
    """A nest of a group. step: its run; address: of its function; per: its iterations in a part."""

    step: int
    address: int
    per: int


@dataclass(frozen=True)
class Group:
    """Nests that run together: `parts` parts, `band` of them at a time, in chunks of `grain`."""

    members: tuple[Member, ...]
    parts: int
    band: int
    grain: int


@dataclass(frozen=True)
class Alone:
    """A section that runs as a whole."""

    step: int
    address: int


# A section: the run that it belongs to, its address, and its nests if they may run in parts.
Section = tuple[int, int, "list[tuple[int, Footprint]] | None"]


class Runs(Protocol):
    """What is known of the pointers of each run."""

    def place(self, step: int, slot: int) -> Place:
        """Where a pointer leads to."""

    def integers(self, step: int, slot: int) -> Sequence[int] | None:
        """The vector of given integers that a pointer leads to, if it does."""


def plan(sections: Iterable[Section], runs: Runs, machine: Target) -> list[Group | Alone]:
    """The sections of several runs, in order, in groups where they can run so."""
    return list(_planned(sections, runs, machine))


def _planned(sections: Iterable[Section], runs: Runs, machine: Target) -> Iterator[Group | Alone]:
    group = _Growing(machine)
    for step, address, nests in sections:
        touched = None if nests is None else [_blocks(step, found, runs) for _, found in nests]
        if nests is None or touched is None or None in touched:
            yield from group.ended()
            group = _Growing(machine)
            yield Alone(step, address)
            continue
        for (function, found), blocks in zip(nests, touched, strict=True):
            nest = _Nest(step, function, found)
            if not found.idle and not group.add(nest, blocks or {}):
                yield from group.ended()
                group = _Growing(machine)
                group.add(nest, blocks or {})
    yield from group.ended()


# Number of a memory -> what an iteration touches of it.
_Blocks = dict[int, set[Block]]


def _blocks(step: int, found: Footprint, runs: Runs) -> _Blocks | None:
    """What an iteration of a nest touches; None where that is not known, or where it writes to
    what is not to be written."""
    touches = found.touches(lambda slot: runs.integers(step, slot))
    if touches is None:
        return None
    blocks: _Blocks = {}
    for t in touches:
        place = runs.place(step, t.slot)
        if place is not None:
            number, at = place
            block = Block(t.begin + at, t.end + at, t.step or 0, t.written)
            blocks.setdefault(number, set()).add(block)
        elif t.written:
            return None
    return blocks


@dataclass(frozen=True)
class _Nest:
    step: int
    address: int
    found: Footprint


class _Growing:
    """A group, nest by nest."""

    def __init__(self, machine: Target) -> None:
        self._machine = machine
        self._nests: list[_Nest] = []
        self._parts = 0
        self._together = 1  # parts that stay together
        self._memories: dict[int, Memory] = {}
        self._time = 0.0

    def add(self, nest: _Nest, blocks: _Blocks) -> bool:
        """Add a nest, if it can run in bands with those of the group; to an empty one always."""
        found = nest.found
        parts = math.gcd(self._parts, found.extent)
        coarser, per = self._parts // parts, found.extent // parts
        if self._nests:
            fewest = min(self._parts, found.extent, self._machine.band_parts)
            if len(self._nests) >= _NESTS or parts < fewest:
                return False
            together = math.lcm(_fewest(self._together, coarser), _fewest(found.width, per))
            if together >= parts:
                return False
        else:
            together = found.width
        memories = self._memories
        if coarser > 1:
            memories = {k: m.of(coarser) for k, m in memories.items()}
        scaled = [(k, b.of(per)) for k, some in blocks.items() for b in some]
        if not all(memories[k].admits(b, parts) for k, b in scaled if k in memories):
            return False
        for k, b in scaled:
            memories.setdefault(k, Memory()).add(b, len(self._nests), len(self._nests))
        self._memories, self._parts, self._together = memories, parts, together
        self._nests.append(nest)
        self._time += found.time
        return True

    def ended(self) -> Iterator[Group]:
        """The group, if there is any."""
        if len(self._nests) == 1:
            (nest,) = self._nests
            extent = nest.found.extent
            yield Group((Member(nest.step, nest.address, 1),), extent, extent, nest.found.grain)
        elif self._nests:
            members = [
                Member(n.step, n.address, n.found.extent // self._parts) for n in self._nests
            ]
            grain, band = self._sizes()
            yield Group(tuple(members), self._parts, band, grain)

    def _sizes(self) -> tuple[int, int]:
        """The parts of a chunk, and of a band."""
        machine, nests = self._machine, len(self._nests)
        used = max(most_bytes(list(self._memories.values()), nests, machine.line_bytes), 1)
        held = used * self._parts <= machine.l2_bytes
        least = machine.band_ns * nests * self._parts / max(self._time, 1.0)
        few = max(least, self._parts / machine.shared_chunks) if held else least
        grain = self._whole(max(chunk(self._time, self._parts, self._together, machine), few))
        if 2 * grain > self._parts + self._together:  # the second chunk would be a small one
            grain = self._parts
        if held:
            return grain, self._parts
        band = self._whole(min(max(machine.working_bytes / used, least), grain))
        return -(-grain // band) * band, band

    def _whole(self, parts: float) -> int:
        """At most so many parts, of those that stay together."""
        return max(int(parts) // self._together, 1) * self._together


def _fewest(width: int, per: int) -> int:
    """The least number of parts of `per` iterations that are a multiple of `width` iterations."""
    return width // math.gcd(width, per)
