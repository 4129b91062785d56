"""Programs of kernels, products and Fourier transforms on a GPU as one CUDA graph.

What torch's calls give lies where they are told, so all addresses of a run are known before it
begins. When they come a second time, the launches are captured, torch's own among them; from then
on the host starts the graph.
"""

from __future__ import annotations

import functools
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import torch

from ..build.driver import launch
from ..ir.program import Buffer, Call, Fence, Tensor
from .execute import KEPT_BYTES, Source, _Old, _Workspace, size_of
from .on_gpu import OnGpu, _Space
from .private import empty_strided_cuda

_aten = torch.ops.aten
# Operators, and their forms that store into a given tensor. None of them waits for the device.
_INTO = {
    _aten.mm.default: _aten.mm.out, _aten.bmm.default: _aten.bmm.out,
    _aten.addmm.default: _aten.addmm.out, _aten.mv.default: _aten.mv.out,
    _aten._fft_r2c.default: _aten._fft_r2c.out, _aten._fft_c2r.default: _aten._fft_c2r.out,
    _aten._fft_c2c.default: _aten._fft_c2c.out,
}  # fmt: skip
_GRAPHS = 4  # graphs of one work, each for addresses of its own
_CAPTURES = 24  # graphs of a program, after which its addresses are taken to change for ever


def can_be_one_graph(source: Source) -> bool:
    """Whether a program calls nothing but such operators, and looks at no index."""
    assert source.launches is not None
    steps = source.program.steps
    calls = [s for s in steps if isinstance(s, Call)]
    return (
        bool(calls)
        and all(s.target in _INTO and not s.kwargs and len(s.strides) == 1 for s in calls)
        and not any(isinstance(s, Fence) for s in steps)
        and not any(x.checks for section in source.launches.sections for x in section)
        and source.layout.size + source.layout.partials <= KEPT_BYTES
    )


@functools.cache
def _side(index: int, stream: int) -> torch.cuda.Stream:
    """A stream for the captures of what runs on another one. What torch's products need beside
    their arguments is kept for it, so all its graphs share that: one runs after the other."""
    return torch.cuda.Stream(index)


def _precision() -> Any:
    """How torch multiplies matrices of f32, which a graph goes on with; equal to nothing else where
    torch does not say."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:  # it was set by the old names and by the new ones
        return object()


class _Graphs:
    """Of one work. own: what calls make that is not given, by buffers. made: graphs, by addresses
    and parameters; seen: the last ones, which may come again, also by turns."""

    def __init__(self, own: dict[Buffer, torch.Tensor]) -> None:
        self.own = own
        self.made: OrderedDict[tuple, torch.cuda.CUDAGraph] = OrderedDict()
        self.seen: deque[tuple] = deque(maxlen=_GRAPHS)


class Graphed(OnGpu):
    """Such a program. graphs: whether they may be used."""

    def __init__(self, *parts: Any, graphs: Callable[[], bool]):
        super().__init__(*parts)
        self._allowed = graphs
        self._captures = 0
        # Of what each call makes: shape, strides and dtype, as the first run has found them.
        self._shapes: dict[Buffer, tuple[tuple[int, ...], tuple[int, ...], torch.dtype]] = {}

    def _call(self, call: Call, tensor: Callable, held: dict, work: _Workspace) -> None:
        super()._call(call, tensor, held, work)
        r = held[call.writes[0]]
        self._shapes[call.writes[0]] = tuple(r.shape), r.stride(), r.dtype

    def _in_sections(
        self, work: _Workspace, given: Sequence[torch.Tensor], floats: Sequence[float],
        ints: Sequence[int], made: list[torch.Tensor], old: Sequence[_Old],
    ) -> list[Any]:  # fmt: skip
        assert isinstance(work, _Space)
        if len(self._shapes) < len(self._calls) or self._last >= len(given) or work.longer:
            return super()._in_sections(work, given, floats, ints, made, old)
        held = {o.buffer: x for o, x in zip(self._fresh, made, strict=True)}
        slots = self._layout.slots
        graphs = work.graphs
        if graphs is None:
            graphs = work.graphs = _Graphs(self._own())
        own = graphs.own
        for b, layout in self._shapes.items():
            r = held[b] = own[b] if b in own else empty_strided_cuda(*layout)
            if b in slots:
                work.pointers[slots[b]] = r.data_ptr()
        key = (
            *[t.data_ptr() for t in given], *[t.data_ptr() for t in held.values()],
            *floats, *ints, _precision(),
        )  # fmt: skip
        graph = graphs.made.get(key)
        if graph is not None:
            graph.replay()
        else:
            if self._may_capture(graphs, key):
                graph = self._captured(graphs, key, work, given, held)
            if graph is not None:
                graph.replay()
            else:
                graphs.seen.append(key)
                self._steps(work, work.stream, given, held)
        results = [
            held[b] if b else self._tensor(x, given, held) if isinstance(x, Tensor) else x
            for x, b in zip(self.source.interface.outputs, self._made, strict=True)
        ]
        self._put_back(work)
        return results

    @cached_property
    def _made(self) -> list[Buffer | None]:
        """Of each result the buffer that it is all of, if a run makes that."""
        made = {o.buffer: (o.shape, o.strides, o.dtype) for o in self._fresh} | self._shapes
        return [
            x.buffer
            if isinstance(x, Tensor)
            and made.get(x.buffer) == (x.shape, x.strides, x.dtype)
            and x.offset == 0
            else None
            for x in self.source.interface.outputs
        ]

    def _own(self) -> dict[Buffer, torch.Tensor]:
        """Tensors for what calls make that is not given: kept, like the memory of kernels, where
        they are not large."""
        inner = {b: layout for b, layout in self._shapes.items() if b.kind == "temporary"}
        if sum(map(size_of, inner)) + self._bytes > KEPT_BYTES:
            return {}
        return {b: empty_strided_cuda(*layout) for b, layout in inner.items()}

    def _may_capture(self, graphs: _Graphs, key: tuple) -> bool:
        return (
            key in graphs.seen
            and self._captures < _CAPTURES
            and self._allowed()
            and not torch.cuda.is_current_stream_capturing()
        )

    def _steps(self, work: _Space, stream: int, given: Sequence[torch.Tensor], held: dict) -> None:
        """Launch all, on torch's current stream."""

        def tensor(x: Any) -> torch.Tensor:
            view = work.views.get(x)
            return self._tensor(x, given, held) if view is None else view

        for k, section in enumerate(work.sections):
            launch(section, stream)
            if k < len(self._calls):
                call = self._calls[k]
                args = [tensor(x) if isinstance(x, Tensor) else x for x in call.args]
                _INTO[call.target](*args, out=held[call.writes[0]])

    def _captured(
        self, graphs: _Graphs, key: tuple, work: _Space, given: Sequence[torch.Tensor], held: dict
    ) -> torch.cuda.CUDAGraph | None:
        """The launches of a run as a graph; None where torch cannot make one, which is noted."""
        self._captures += 1
        graph = torch.cuda.CUDAGraph()
        side = _side(self._index, work.stream)
        try:
            with torch.cuda.stream(side):
                graph.capture_begin(capture_error_mode="thread_local")
                try:
                    self._steps(work, side.cuda_stream, given, held)
                finally:
                    graph.capture_end()
        except RuntimeError as e:
            self._captures = _CAPTURES
            self.source.program.notes.append(f"it is no CUDA graph: {str(e).splitlines()[0]}")
            return None
        graphs.made[key] = graph
        if len(graphs.made) > _GRAPHS:
            graphs.made.popitem(last=False)
        return graph
