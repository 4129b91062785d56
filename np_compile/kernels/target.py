"""Machine model: what passes and analyses know of the machine that a program is compiled for.

A `Target` holds facts (sizes in bytes) and thresholds (iterations, cycles, nanoseconds). Decisions
follow from it and from the program alone, never from the number of threads, so results do not.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A machine, and from which sizes on the passes find their work worth it.

    "Elements" are elements of an array, "iterations" those of one loop, "cycles" an estimate of
    what an expression takes for each element (`analysis.cost`).
    """

    # The machine.
    vector_bytes: int = 64  # bytes of its widest vectors
    cycle_bytes: int = 32  # bytes of a vector operation's operand that one cycle does, on average
    latency: int = 4  # cycles of an addition: so many hide each other's time
    line_bytes: int = 64  # bytes of a cache line
    l1_bytes: int = 1 << 15  # bytes of the first-level cache of a core
    l2_bytes: int = 1 << 20  # bytes of its second-level cache
    cycles_per_ns: float = 3.0

    # Threads.
    parallel_ns: int = 20_000  # nanoseconds of a nest from which threads are worth it
    chunk_ns: int = 12_000  # nanoseconds of a chunk
    chunks: int = 64  # most chunks: each costs an atomic operation, a reduction a partial result

    # Memory that a thread has in use.
    working_bytes: int = 1 << 18  # bytes of scratch arrays of a strip, a rolling buffer, or a band
    tiled_bytes: int = 1 << 17  # bytes of an array from which it is walked in tiles
    tile_side: int = 32  # iterations of a tile along each of its axes

    # Inlining, unrolling, splitting into regions.
    recompute_cycles: int = 12  # most cycles of a value that is computed again for each of its uses
    unrolled_results: int = 32  # fewest results of a short reduction that is written out
    region_elements: int = 512  # fewest elements of an array that is stored in regions
    frame_elements: int = 1 << 18  # fewest of one whose inner part alone is told apart

    # Reductions of many rows to few columns, in parts.
    reduction_parts: int = 16
    reduction_steps: int = 256  # fewest iterations of a part
    reduction_columns: int = 512  # most elements of the result

    # Scatters in parts.
    scatter_parts: int = 8  # most parts
    scatter_values: int = 1 << 15  # fewest values
    scatter_density: int = 4  # fewest values for each element of the parts' arrays

    # Running reductions in parts.
    scan_float_steps: int = 1 << 13  # fewest iterations where each waits some cycles for the last
    scan_steps: int = 1 << 17  # fewest iterations of others, which threads alone speed up
    scan_parts: int = 16
    long_scan_steps: int = 1 << 18  # fewest iterations of a long one
    long_scan_parts: int = 64
    scan_cycles: int = 4  # most cycles of what is computed along with one, which has no vectors

    # Rolling buffers.
    rolling_rows: int = 12  # fewest rows of a chunk for each row that is saved before
    rolling_chunks: int = 12  # most chunks
    rolling_reach: int = 4  # most rows between the first and the last that a row is made of

    # Indices from data.
    staged_block: int = 256  # fewest iterations of a block whose indices are computed ahead
    staged_widest: int = 512  # most iterations of one
    staged_group: int = 8  # elements that are put together to a vector; blocks are multiples of it
    picked_elements: int = 16  # most iterations of a loop that picks elements, to be unrolled

    # Vectors.
    wide_cycles: int = 24  # most cycles of a loop's body from which its strips are wide
    row_iterations: int = 16  # fewest rows of a loop in strips of rows
    row_cycles: int = 12  # fewest cycles of what it computes beside the loops inside
    row_elements: int = 16  # most elements of a scratch array of each row
    sum_steps: int = 64  # additions of a lane, after which its sum is put aside
    aligned_iterations: int = 2048  # fewest iterations of a loop whose vectors begin at cache lines

    # Nests that run block by block.
    shared_chunks: int = 4  # chunks of what the second-level cache holds
    band_ns: int = 30  # fewest nanoseconds of a nest in a band
    band_parts: int = 64  # fewest parts that may be left to share, where the nests have more

    @property
    def by_length(self) -> bool:
        """Whether reductions are cut into the more parts the longer they are."""
        return False

    @property
    def near_bytes(self) -> int:
        """Bytes of an array that stays in the first-level cache beside what else is read."""
        return self.l1_bytes // 2

    @property
    def local_bytes(self) -> int:
        """Most bytes of scratch memory of one iteration: nearly in the first-level cache."""
        return 2 * self.l1_bytes

    def lanes(self, size: int) -> int:
        """Elements of that many bytes in as many vectors as hide the time of an addition."""
        return self.latency * self.vector_bytes // size

    def reduction_count(self, kept: int, rows: int, reduced: int, walks_kept: bool) -> int:
        """Parts of a reduction of so many rows, which keeps `kept` elements of `reduced` values
        each; 0 for none. walks_kept: whether memory is walked along an axis that is kept."""
        enough = rows >= self.reduction_parts * self.reduction_steps
        few = kept <= self.reduction_columns
        return self.reduction_parts if walks_kept and few and enough else 0

    def scan_count(self, steps: int) -> int:
        """Parts of a long running reduction."""
        return self.long_scan_parts if steps >= self.long_scan_steps else self.scan_parts


@dataclass(frozen=True)
class Gpu(Target):
    """A GPU. What has no meaning there (vectors, caches of a core) keeps its value; what is set
    here differs as a launch costs microseconds, and a block's threads are many."""

    name: str = "sm_90"  # the architecture, in the words of the compiler
    processors: int = 132
    resident: int = 2048  # threads that a processor holds
    warp: int = 32  # threads that run together
    shared_bytes: int = 200 << 10  # bytes of memory that a block's threads share
    access_bytes: int = 16  # bytes of the widest access of a thread
    block_threads: int = 256  # threads of a block whose iterations are independent
    most_threads: int = 1024  # of a block
    row_threads: int = 16  # fewest threads that share a row
    waves: int = 4  # blocks of a processor that share one reduction

    line_bytes: int = 128
    recompute_cycles: int = 16
    region_elements: int = 1 << 20
    frame_elements: int = 1 << 20
    reduction_steps: int = 32
    scan_float_steps: int = 1 << 14
    scan_steps: int = 1 << 14
    scan_cycles: int = 1 << 30  # what runs along with one costs nothing there
    scan_elements: int = 1 << 13  # of a part of a long one
    shared_values: int = 1 << 10  # fewest values that a block adds in memory that its threads share
    row_elements: int = 16  # elements of a row for each thread, where there are enough rows
    private_elements: int = 32  # most that a thread keeps of an array
    private_bytes: int = 256  # most bytes of an array that a thread has for itself

    @property
    def threads(self) -> int:
        """Threads that keep the GPU busy."""
        return self.processors * self.resident

    @property
    def local_bytes(self) -> int:
        """Most bytes of an array in memory that a block's threads share."""
        return self.shared_bytes // 4

    def reduction_count(self, kept: int, rows: int, reduced: int, walks_kept: bool) -> int:
        """Parts of a reduction: as many as give each thread of the GPU something to do."""
        if not walks_kept and kept == 1:
            return 0  # the blocks share it
        busy = kept * (1 if walks_kept else min(self.most_threads, reduced))
        parts = min(self.threads // max(busy, 1), rows // self.reduction_steps)
        return parts if parts > 1 else 0

    @property
    def by_length(self) -> bool:
        return True

    def scan_count(self, steps: int) -> int:
        """Parts of a long running reduction: as long as one block runs over quickly."""
        return max(steps // self.scan_elements, 1)


HOST = Target()
