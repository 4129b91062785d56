"""Segments: where the tape is cut, what was recorded is compiled, once, and run."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import torch
from torch._C._functorch import peek_interpreter_stack as _transform
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

from np_compile import config, debug_output, log, shim
from np_compile.errors import GraphBreak
from np_compile.runtime.general import General, Job, Sizes, build_general
from np_compile.runtime.program import OF_DATA, Program, build, by_operators
from np_compile.shim._saved import hooks
from np_compile.tape.form import Form
from np_compile.tape.node import Break, Node, Segment

from . import state
from .arrays.transfers import to_host
from .arrays.window import needs_operators
from .frames import inside_try, user_line
from .policy import decide, guess, loops
from .policy.budget import effort
from .policy.decide import Decision, Way
from .rerun import rerun
from .variants import Variants, fixed_ints, index_ints, live_roots

if TYPE_CHECKING:
    from .capture import Capture
    from .state import Options


class Late(BaseException):
    """An error of a call that stands before the `try` block in which its segment runs: `error`,
    which the compiled function raises. No handler of the user's sees this."""

    def __init__(self, error: Exception):
        super().__init__(error)
        self.error = error


_BOUND = 64  # programs of one segment, for integers that are sizes of one for many
_LibraryError = torch.linalg.LinAlgError
_lock = state.lock
_clock = time.perf_counter


def cut(c: Capture, reason: Break) -> None:
    """End the segment: compile it, if this is the first time, run it, and start a new one."""
    if _transform() is not None:  # of what torch is doing, not of what was recorded
        with temporarily_clear_interpreter_stack():
            return c.cut(reason)
    seg = c.seg
    node = seg.node
    resumes, c.resumes = c.resumes, False
    watch = c.watch
    if watch is not None:
        watch.cut(reason, seg.inputs)
    if reason.kind not in ("end", "loop", "library", "try"):
        c.tell(reason)
    if c.fullgraph and reason.kind in ("value", "data", "numpy", "foreign", "asked"):
        where = user_line()
        raise GraphBreak(
            f"fullgraph=True, but {reason.text}\n  at {where}\n"
            "  Remedy: compute it with NumPy calls that need no value in Python, or drop "
            "fullgraph=True: the function then runs in several compiled segments."
        )
    renewed = _renewed(c, seg)
    c.seg = Segment(c.root)
    alive = live_roots(seg.values) if node.count else ()
    live = (*renewed, *alive)
    if not live and not any(a._written_in is seg for a in seg.inputs):
        seg.values.clear()  # nothing of it can be seen any more
        seg.inputs.clear()
        return
    variants = node.programs.get(live)
    if variants is None:
        variants = Variants()
    grad = _may_differentiate(c)
    key = (grad, *variants.key(seg.ints))
    program = variants.programs.get(key)
    again = program is not None
    decision = None
    job = None
    if program is None and (made := variants.jobs.get(key)) is not None and not made.ready:
        job = made
    if program is None and job is None and c.options.dynamic is not False:
        program, job = _known_for_sizes(c, seg, live, variants)
        if program is not None and node.is_kept:
            node.programs.setdefault(live, variants)
    if program is None:
        node.keep()
        variants = node.programs.setdefault(live, variants)
        begins = reason is loops.BEGINNING or resumes
        decision = decide.of_segment(c, node, variants, begins, job is not None)
        c.awaited = job or c.awaited
        if decision.way is Way.OPERATORS:
            program = by_operators(node, live, seg.inputs, seg.floats, seg.ints, c.device)
        elif decision.way is Way.KERNELS:
            program = _compile(c, seg, live, variants, grad)
            if program is None:
                decision = decide.IN_THE_MAKING
    if program is not None and not program.ready:
        decision = decide.of_pending(c, program, node, again)
        if decision.way is not Way.KERNELS:
            c.awaited = program
    if decision is not None and decision.way is Way.NUMPY:
        c.leave_device(decision.reason)
        try:
            _run_in_numpy(c, seg, alive, decision)
        except Exception as e:
            _raise(seg, reason, e)
        return
    assert program is not None
    needs = not program.ready or (c.tensors and needs_operators(program.written, seg.inputs))
    if node.guesses:
        guess.check(program, needs, c.device)
    run = program.run_by_operators if needs else program.run
    before = _before(c, seg, program) if needs or program.backend_name != "native" else []
    failure: Exception | None = None
    try:
        with hooks(True):
            outputs = run(seg.inputs, seg.floats, seg.ints)
    except Exception as e:
        failure = e
    if failure is not None:  # here, where it is no context of NumPy's exception
        for t, values in before:
            t.copy_(values)
        try:
            outputs = _failed(c, seg, live, program, failure, bool(before))
        except Exception as error:
            _raise(seg, reason, error)
        finally:
            failure = None
    if watch is not None:
        watch.ran(program, seg, [a._t for a in seg.inputs], outputs)
    if c.grads:
        for k in program.written:
            seg.inputs[k]._sig = None  # it may have a gradient history now
    c.ran = program
    sigs = program.signatures(outputs)
    for i, t, sig in zip(live, outputs, sigs, strict=True):
        root = seg.values[i]
        root._t = t
        root._sig = sig
        c.notes_new(root)
    c.count += node.count
    c.bytes += node.bytes
    seg.values.clear()  # stand-ins hold their segment: leave no cycle
    seg.inputs.clear()
    if c.listener is not None:
        c.listener("segment", node, program)
    comes_again = reason is loops.COMES_AGAIN and c.immediate
    if comes_again or (reason.kind == "value" and (c.immediate or c.device is not None)):
        decision = decide.of_value(c, node)
        if decision.way is Way.NUMPY:
            c.go_plain(decision)


def writes_outside(c: Capture, seg: Segment, roots: Iterable[int]) -> bool:
    """Whether what is written to, of these numbers, is there already and no array of the
    function's own."""
    found = {a._as_number for a in seg.inputs}.intersection(roots)
    return not found <= {a._as_number for a in _own_inputs(c, seg)}


def _renewed(c: Capture, seg: Segment) -> tuple[int, ...]:
    """Numbers of the function's own arrays that a segment writes to, and for which it makes new
    ones: autograd may have saved what they hold."""
    written = {root for step, _ in seg.node.calls() for root in step.mutates}
    return (
        tuple([a._as_number for a in _own_inputs(c, seg) if a._as_number in written])
        if written
        else ()
    )


def _own_inputs(c: Capture, seg: Segment) -> list[Any]:
    """The inputs that are arrays of the function's own, where a gradient may be asked for."""
    if not c.differentiates():
        return []
    seen = {id(a) for a in c.lent} | {id(a) for _, a in c.known.values()}
    own = [a for a in seg.inputs if a._np is None and a._host is None and a._root is None]
    return [a for a in own if id(a) not in seen]


def _raise(seg: Segment, reason: Break, error: Exception) -> NoReturn:
    """Raise what a segment has raised on its data; past the handlers of a `try` block that was
    entered after the call that failed. A call within one that may raise ends its segment."""
    if reason.kind != "try" and inside_try() and any(n.raises for n in seg.node.path()):
        raise Late(error) from None
    raise error


def _before(c: Capture, seg: Segment, program: Program) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The arrays that a program writes to which may fail on its data, and copies: torch's operators
    leave them as they are by then."""
    if not program.written or c.grads or not any(node.raises for node in seg.node.path()):
        return []
    tensors = [seg.inputs[k]._t for k in program.written]
    return [(t, t.clone()) for t in tensors]


def _failed(
    c: Capture, seg: Segment, live: tuple, program: Program, error: Exception, restored: bool
) -> list:
    """A program raised on its data: NumPy says what was wrong; on copies, if something is written
    already. restored: whether what was written is as it was."""
    if seg.node.guesses:
        raise guess.Wrong
    if c.grads and any(a._t is not None and _is_torchs(a._t) for a in seg.values):
        # On a device an index out of bounds would end the process: its kernels have looked.
        of_data = OF_DATA if c.device is None else _LibraryError
        if not program.written and isinstance(error, of_data):
            error = _as_far_as_it_goes(c, seg, live) or error
        _put_into_words(seg, error)
        raise error
    # NumPy writes what comes before what fails; tensors are left as they were.
    undone = (restored or getattr(error, "undone", False)) and not c.grads
    if undone:
        c.leave_device(str(error))
    real = [c.real(a, None) if a._t is not None else None for a in seg.values]
    for i in () if undone else program.mutates:
        written = real[i]
        if written is not None:
            real[i] = written.copy(order="K")
    try:
        rerun(seg, real)
    except Exception:
        for i in live:  # what was made before the call that failed, the caller may find somewhere
            if seg.values[i]._t is None:
                seg.values[i]._np = real[i]
        raise
    if program.mutates and not undone:
        raise error
    warnings.warn(
        f"the {program.backend_name} back end failed on data that NumPy accepts, NumPy's "
        f"results are used: {error}",
        RuntimeWarning,
        stacklevel=2,
    )
    return [shim.share_numpy(np.asarray(real[i]))._t for i in live]


def _as_far_as_it_goes(c: Capture, seg: Segment, live: tuple) -> Exception | None:
    """Make what stands before the call that fails, which somebody may hold; the shim's error."""
    made: list[torch.Tensor] = []
    run = by_operators(seg.node, live, seg.inputs, seg.floats, seg.ints, c.device, made.extend).run
    error = None
    try:
        with hooks(True):
            run(seg.inputs, seg.floats, seg.ints)
    except Exception as e:
        error = e
    for i in live:
        if i < len(made) and not seg.values[i]._as_value.meta._flip:
            seg.values[i]._t = made[i]
            c.notes_new(seg.values[i])
    return error


def _put_into_words(seg: Segment, error: Exception) -> None:
    """Have an error of torch's operators, or of kernels on a device, say what NumPy says: of an
    index out of bounds NumPy is asked, on copies."""
    text = str(error).partition("\n\nWhile executing %")[0]  # torch.fx tells where in its graph
    if text != str(error):
        error.args = (text,)
    if not isinstance(error, IndexError):
        return
    try:
        rerun(seg, [None if a._t is None else _copied(a) for a in seg.values])
    except IndexError as told:
        error.args = told.args
    except Exception:  # it is about another call, or there is no memory for it
        return


def _copied(a: Any) -> np.ndarray:
    """What an array on torch's memory holds, as NumPy's."""
    return shim.to_numpy(shim.ndarray(to_host(a._t), a._flip, a._is_scalar()))


def _is_torchs(t: torch.Tensor) -> bool:
    """Whether NumPy cannot make a call on a tensor: it has a gradient, or lies on a device."""
    return t.requires_grad or t.device.type != "cpu"


def _run_in_numpy(c: Capture, seg: Segment, live: tuple[int, ...], why: Decision) -> None:
    """Make the calls of a segment as they stand; go on in NumPy, if that was decided."""
    if c.watch is not None:
        c.watch.spoil(why.reason, for_now=True)
    values: list[Any] = [None] * len(seg.values)
    for a in seg.inputs:
        values[a._as_number] = c.real(a, None)
    try:
        with shim.quiet(), np.errstate(all="ignore"):
            rerun(seg, values, live=live)
    finally:
        for i in live:
            seg.values[i]._np = r = values[i]
            if isinstance(r, np.generic):
                seg.values[i]._t = shim.share_numpy(np.asarray(r))._t
    c.count += seg.node.count
    c.bytes += seg.node.bytes
    seg.values.clear()
    seg.inputs.clear()
    if not why.rest:
        c.tell(Break("plain", why.reason))
    elif not c.plain:
        c.go_plain(why)
        c.until = c.awaited


def _compile(
    c: Capture, seg: Segment, live: tuple, variants: Variants, grad: bool
) -> Program | None:
    """The program of a segment; None where it is made beside the program, which begins here."""
    with _lock:
        dynamic = variants.widen(seg.node, seg.ints, c.options.dynamic)
        key = (grad, *variants.key(seg.ints))
        program = variants.programs.get(key)
        if program is None and c.options.dynamic is not False:
            program = _for_sizes(c, seg, live, variants)
        if program is None:
            beside = decide.is_beside(c, seg.node) and key not in variants.jobs
            inputs = [a._t for a in seg.inputs]
            if beside:
                inputs = [*map(_like, inputs)]
            make = partial(
                build, seg.node, live, inputs, list(seg.floats), list(seg.ints), dynamic,
                c.options, c.device, grad,
            )  # fmt: skip
            if beside:
                made = partial(_made_beside, c.options, variants, key, make)
                c.awaited = variants.jobs[key] = Job(made)
                return None
            program = variants.programs[key] = make()
            _note(c.options, program)
            _charge(c, program)
        return program


def _like(t: torch.Tensor) -> torch.Tensor:
    """A tensor that looks like one, in memory that nobody touches: the user's is not held."""
    span = (
        1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)) if t.numel() else 0
    )
    room = torch.empty(t.storage_offset() + span, dtype=t.dtype)
    return room.as_strided(t.shape, t.stride(), t.storage_offset())


def _made_beside(
    options: Options, variants: Variants, key: tuple, make: Callable[[], Program]
) -> Program:
    """Make a program beside the program, for the calls that come. Where that fails, the job stays,
    and it is made again in a call, which raises then."""
    program = make()
    with _lock:
        variants.programs[key] = program
        variants.jobs.pop(key, None)
        _note(options, program)
    return program


def _note(options: Options, program: Program) -> None:
    """Note a compile."""
    options.compiles.add(program)
    if config.logs_any():
        log.compiled(program, options.name, options.compiles.changes(program), sys.stderr)
    if debug_output.is_wanted():
        log.save(program, options.name, options.compiles.changes(program))


def _charge(c: Capture, program: Program) -> None:
    """Note that a call has waited for a compile."""
    seconds = sum(program.phases.values())
    c.built += 1
    c.budget.compiled(effort(program.node), seconds)
    c.overhead += seconds


def _may_differentiate(c: Capture) -> bool:
    """Whether torch notes what is done with tensors that require gradients."""
    return c.grads and torch.is_grad_enabled()


def _differentiates(c: Capture, seg: Segment) -> bool:
    """Whether it notes what is done in a segment."""
    return _may_differentiate(c) and any(a._t.requires_grad for a in seg.inputs)


def _known_for_sizes(
    c: Capture, seg: Segment, live: tuple, variants: Variants
) -> tuple[Program | None, Job | None]:
    """The program of a segment from one that serves many sizes; or what makes such a one beside the
    program, which begins here."""
    form, known = c.options.forms.of(seg.node, live, _differentiates(c, seg))
    known.data |= variants.changed(seg.ints)
    general = known.find(form.sizes, seg.ints)
    if general is not None and (general.fits(known.data - fixed_ints(seg.node)) or known.is_full):
        return _bound(c, seg, live, variants, general, form.sizes), None
    if not (config.waits() or config.only_known() or known.pending) and known.seen:
        _build(c, seg, live, form, known)
    return None, known.job if known.pending else None


def _build(c: Capture, seg: Segment, live: tuple, form: Form, known: Sizes) -> General | None:
    every = frozenset(range(len(seg.ints)))
    of_indices = index_ints(seg.node) - known.data if c.options.dynamic is None else frozenset()
    data = every - of_indices - fixed_ints(seg.node)
    return build_general(
        seg.node,
        live,
        seg.inputs,
        seg.floats,
        seg.ints,
        data,
        c.options,
        c.device,
        form,
        known,
        _differentiates(c, seg),
    )


def _bound(
    c: Capture, seg: Segment, live: tuple, variants: Variants, general: General, sizes: tuple
) -> Program:
    start = _clock()
    program = general.program(seg.node, live, sizes, seg.ints, c.options)
    c.budget.owed += _clock() - start
    variants.take(general.dynamic, seg.ints)
    if len(variants.programs) >= _BOUND:
        variants.programs.clear()
    variants.programs[(_may_differentiate(c), *variants.key(seg.ints))] = program
    if not general.noted:
        general.noted = True
        program.seconds = general.seconds
        _note(c.options, program)
        if config.waits():
            _charge(c, program)
    return program


def _for_sizes(c: Capture, seg: Segment, live: tuple, variants: Variants) -> Program | None:
    """A new program that serves many sizes, where segments of this form had others before; None
    for the first of a form, and where there cannot be one."""
    form, known = c.options.forms.of(seg.node, live, _differentiates(c, seg))
    program = None
    if config.waits() and (known.seen or c.options.dynamic is True):
        general = _build(c, seg, live, form, known) or known.find(form.sizes, seg.ints)
        if general is not None:
            program = _bound(c, seg, live, variants, general, form.sizes)
    if program is None:
        known.seen.append((form.sizes, tuple(seg.ints)))
    return program


def tell(c: Capture, reason: Break) -> None:
    """Say to whom it may concern that the tape is cut, and where."""
    if c.listener is not None:
        c.listener("break", reason, user_line())
    if config.logs_any():
        log.broke(reason, c.options.name, user_line(), sys.stderr)


def begin_tree(c: Capture, device: torch.device | None) -> None:
    c.root = c.tree_root(device)
    c.seg = Segment(c.root)


def tree_root(c: Capture, key: Any) -> Node:
    """The root of a tree of recordings."""
    roots = c.options.roots
    root = roots.get(key)
    return roots.setdefault(key, Node(None, (), c.options.forms.root)) if root is None else root


def finish(c: Capture) -> None:
    """The call is over: stand-ins that are still held answer with their values."""
    c.end_leaving()
    c.loans.clear()
    c.lasting = c.heard = c.traces = False
    c.end_plain()
    c.closed = True
    c.plain = True
    c.immediate = c.weighs = False
    c.fullgraph = False
    c.change_callers()
    c.known.clear()
    for a in c.moved:
        if a._dirty:
            c.real(a, None)
    c.moved.clear()  # what is held here would be taken for stand-ins that have escaped
    c.lent.clear()
