"""A capture: one call of a compiled function, recorded, cut at breaks, and run.

Its state stands here. What is done with it stands in the modules of its parts, as functions of the
capture: `record` appends to the tape, `segments` cuts it and runs what was recorded, `values` gives
data for stand-ins, `stand_ins` takes arrays in, `outside` and `plain` run what is not recorded.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import torch

from np_compile import config, errstate
from np_compile.devices import count_of_modes
from np_compile.tape.node import Node, Segment

from . import outside, plain, record, segments
from .arrays import elements as single_elements
from .arrays import in_place, on_device, stand_ins, values
from .arrays.array import Array
from .arrays.loans import Loan
from .state import Options

if TYPE_CHECKING:
    from np_compile.runtime.general import Job
    from np_compile.runtime.program import Program

_clock = time.perf_counter


class Capture:
    """The recording of one call.

    options: of the compiled function. device: where arrays live, None for host memory.
    listener: called with each event ("segment", node, program), ("break", reason, user line).
    """

    array_type = Array
    seg: Segment
    root: Node  # of the tree of recordings

    # appends to the tape
    call = record.call
    getitem = record.getitem
    setitem = record.setitem
    enter = record.enter
    rewind = record.rewind
    admit = record.admit
    admit_named = record.admit_named
    step = record.step
    results = record.results
    shape_seen = record.shape_seen
    length_seen = record.length_seen
    load = record.load
    rows = record.rows
    elements = record.elements
    # cuts the tape, compiles and runs what was recorded
    cut = segments.cut
    tell = segments.tell
    begin_tree = segments.begin_tree
    tree_root = segments.tree_root
    writes_outside = segments.writes_outside
    finish = segments.finish
    # data for stand-ins
    are_recorded = single_elements.are_recorded
    told = single_elements.told
    settled = values.settled
    noted = values.noted
    real = values.real
    decided = values.decided
    settle = values.settle
    memory = values.memory
    tensor = values.tensor
    shim_array = values.shim_array
    meta = values.meta
    has_data = values.has_data
    to_caller = values.to_caller
    reals = values.reals
    tensors_of = values.tensors_of
    shims = values.shims
    differentiates = values.differentiates
    # stand-ins for arrays
    adopt = stand_ins.adopt
    separate = stand_ins.separate
    take_over = stand_ins.take_over
    snapshot = stand_ins.snapshot
    adopt_foreign = stand_ins.adopt_foreign
    fresh = stand_ins.fresh
    taken_from = stand_ins.taken_from
    window_of = stand_ins.window_of
    view_of_tensor = stand_ins.view_of_tensor
    from_tensor = stand_ins.from_tensor
    # calls that are not recorded
    run_at_once = outside.run_at_once
    through_shim = outside.through_shim
    by_shim = outside.by_shim
    through_numpy = outside.through_numpy
    foreign = outside.foreign
    aside = outside.aside
    real_ufunc = outside.real_ufunc
    real_function = outside.real_function
    # arrays that live on a device
    notes_new = on_device.notes_new
    leave_device = on_device.leave_device
    end_leaving = on_device.end_leaving
    # plain mode
    stay_plain = plain.stay_plain
    go_plain = plain.go_plain
    end_plain = plain.end_plain
    is_plain = plain.is_plain
    lend = plain.lend
    enter_thread = plain.enter_thread
    hear = plain.hear
    is_told = plain.is_told
    send = plain.send
    plainly = plain.plainly
    new_plain = plain.new_plain
    plain_item = plain.plain_item
    plain_view = plain.plain_view
    put_plain = plain.put_plain
    # changes of flags, shape, dtype, size
    set_flags = in_place.set_flags
    change_in_place = in_place.change_in_place
    resize = in_place.resize
    change_callers = in_place.change_callers

    def __init__(self, options: Options, device: torch.device | None, listener: Any = None):
        self.options = options
        self.device = device
        self.listener = listener
        self.tensors = options.tensors
        self.fullgraph = options.fullgraph
        # Whether single elements of settled host arrays are read and written at once.
        self.immediate = device is None and not options.tensors and not options.fullgraph
        # Whether reading elements of arguments is recorded, see `elements`; and how many were read.
        self.elements_are_data = options.elements_are_data and self.immediate
        self.elements_read = 0
        self.grads = options.tensors  # whether arrays may have gradients
        self.tensors_on: torch.device | None = None  # where those of the caller's lie
        self.begin_tree(device)
        self.known: dict[int, tuple[Any, Array]] = {}  # id of a caller's array -> its stand-in
        # By address, of arrays that code outside has read. They are kept for nobody.
        self.shown: WeakValueDictionary[int, Array] = WeakValueDictionary()
        self.moved: list[Array] = []  # roots whose master copy is on the device
        self.born: WeakValueDictionary[int, Array] = WeakValueDictionary()  # not the caller's
        self.left_device = False  # and what torch makes is made on the host since
        self.modes = 0 if device is None else count_of_modes()  # of torch's, around the call
        self.ahead: list[Array] = []  # those of them that plain mode has touched in host memory
        self.left = 0  # how often the call left the device for plain mode, see `runs.Run`
        self.asked = 0
        self.lent: list[Array] = []  # whose memory torch has too, see `recording.TensorDoors`
        # What `decide` goes by. Plain: calls run in NumPy; nothing waits to run then.
        self.plain = False
        self.limit = float("inf")  # elements of an array that ends it
        self.until: Program | Job | None = None  # that ends it when it is ready
        self.pended = 0  # segments that waited for a program for many sizes
        self.awaited: Program | Job | None = None  # for which NumPy ran something
        self.resumes = False  # whether the segment begins where they came, at no place of its own
        self.loans: list[Loan] = []  # memory that may be kept outside: plain until it is not
        self.weighs = self.immediate and config.measures()
        self.signature: tuple | None = None  # of the arguments
        self.built = 0  # programs compiled
        self.ran: Program | None = None  # the last one
        self.count = 0  # NumPy calls run in segments, and the bytes of arrays that they touch
        self.bytes = 0
        self.repeats: Counter[Node] = Counter()  # see `decide.of_value`
        self.began = _clock()
        self.budget = options.budget
        self.turn = self.budget.next_turn()
        self.overhead = 0.0  # seconds of recording and compiling what is new
        # What iterations of the loops that are marked are under way, and the calls before which
        # the others are cut, see `loops`.
        self.iterations: list[int] = []
        self.unrolled = 1  # how often the present one comes in this segment, by these
        self.loop_places: set[int] = set()
        self.begins = False  # whether the present call begins such a segment
        self.thread = threading.get_ident()
        self.lasting = False  # whether plain mode lasts to the end of the call
        self.before_loans = False  # whether it was plain mode before something was lent
        self.heard = False  # plain, as somebody asks to be told of floating-point errors
        # Of warnings, as the call began; None where calls of other threads may have set some.
        self.filters: tuple[Any, ...] | None = errstate.filters()
        self.ints_are_data = True  # whether integer operands become parameters (see Break "static")
        self.closed = False
        self.unheard: BaseException | None = None  # an error that C code may have dropped
        self.leaving = False  # for plain mode, from a device or from the beginning of a loop
        self.in_vain = False  # whether calls like it are known not to be kept
        self.substitution: Any = None
        self.exchange: Any = None
        self.watch: Any = None  # replay.watch.Watch, where the call may be kept
        self.traces = False  # whether sizes that Python sees know what they are, see `traced`
