"""The changes that `python -m tests.mutate` tries: each makes the code wrong in one small way."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """In a file the old text, which stands there once, becomes the new one; the tests, files in
    this folder, should notice."""

    file: str
    old: str
    new: str
    tests: str


MUTATIONS = (
    Mutation(
        "np_compile/kernels/targets/c/loops.py",
        "isinstance(extent, int) and extent <= _UNROLLED",
        "False",
        "kernels/test_native_reductions.py",
    ),
    Mutation(
        "np_compile/reader/numbers.py",
        "    if before:\n        made = replace(made, text=",
        "    if False:\n        made = replace(made, text=",
        "reader/test_sums.py",
    ),
    Mutation(
        "np_compile/reader/variables.py",
        "        if a.made is list and a.path != b.path:\n",
        "        if False:\n",
        "reader/test_given.py",
    ),
    Mutation(
        "np_compile/reader/marshalling.py",
        "if (!old || !is_same(rt, f, old, w)) {{",
        "if (is_new) {{",
        "reader/test_given_objects.py",
    ),
    Mutation(
        "np_compile/reader/dispatch.c",
        "if (s->found[p[j]] == s->found[p[k]]) holds = 0;",
        ";",
        "reader/test_dispatch.py",
    ),
    Mutation(
        "np_compile/reader/dispatch.c",
        "changed |= f->tags[k] != tag;",
        ";",
        "reader/test_dispatch.py",
    ),
    Mutation(
        "np_compile/reader/dispatch.c",
        "        if (looks_like(o->views[k],",
        "        if (0 && looks_like(o->views[k],",
        "reader/test_dispatch.py",
    ),
    Mutation(
        "np_compile/reader/dispatch.c",
        "    if (b->data == (void *)(b + 1)) data = a->data + (data - (char *)b->data);\n",
        "",
        "reader/test_dispatch.py",
    ),
    Mutation(
        "np_compile/reader/dispatch.c",
        "PyFunction_GetDefaults(f->of) != f->defaults ||",
        "0 ||",
        "reader/test_dispatch.py",
    ),
    Mutation(
        "np_compile/replay/calls.c",
        "if (is_read && !result && !PyErr_Occurred()) continue; /* another one may be for it */",
        "if (is_read && !result && !PyErr_Occurred()) break;",
        "reader/test_dispatch.py",
    ),
    Mutation(
        "np_compile/reader/dispatch.c",
        "        while (taken) unlock(locks[--taken]);\n        const",
        "        taken = 0;\n        const",
        "reader/test_dispatch.py",
    ),
    Mutation(
        "np_compile/reader/objects.py",
        '    texts.append(f"same_object({x.buf}, {y.buf})")\n',
        '    texts.append(f"{x.buf} == {y.buf}")\n',
        "reader/test_made_objects.py",
    ),
    Mutation(
        "np_compile/reader/wide.py",
        "    elif x.low < 0:\n",
        "    elif False:\n",
        "reader/test_wide.py",
    ),
    Mutation(
        "np_compile/reader/text.py",
        "{x.text} >= {_ASCII}",
        "{x.text} >= 1 << 20",
        "reader/test_text.py",
    ),
    Mutation(
        "np_compile/reader/generators.py",
        "        if ended and in_loop:\n",
        "        if ended and in_loop and False:\n",
        "reader/test_generators.py",
    ),
    Mutation(
        "np_compile/reader/statements.py",
        "    if not goes_out(frame, node):\n",
        "    if True:\n",
        "reader/test_generators.py",
    ),
    Mutation(
        "np_compile/reader/managers.py",
        "    return isinstance(node, ast.Return) or not any("
        "step[0] in _LOOPS for step in inside)\n",
        "    return True\n",
        "reader/test_managers.py",
    ),
    Mutation(
        "np_compile/reader/words.py",
        "return {ord(text[0]) if text else -1};",
        "return {ord(text[0]) if text else 0};",
        "reader/test_words.py",
    ),
    Mutation(
        "np_compile/reader/inputs.py",
        '            lines.append(f"if {x} != p{k}: raise TypeError")\n'
        "        elif i.piece is LISTED",
        "            pass\n        elif i.piece is LISTED",
        "reader/test_named_items.py",
    ),
    Mutation(
        "np_compile/reader/selection.py",
        " = ({no}) ^ ((({yes}) ^",
        " = ({yes}) ^ ((({yes}) ^",
        "reader/test_selection.py",
    ),
    Mutation(
        "np_compile/reader/objects.py",
        "int((owner.made, name) in r.added)",
        "0",
        "reader/test_sums.py",
    ),
    Mutation(
        "np_compile/reader/interchange.py",
        "            if k is not None:\n                raise _Refused",
        "            if False:\n                raise _Refused",
        "reader/test_interchange.py",
    ),
    Mutation(
        "np_compile/reader/interchange.py",
        "tests |= dict.fromkeys(rests_on(r, found))",
        "pass",
        "reader/test_interchange.py",
    ),
    Mutation(
        "np_compile/reader/interchange.py",
        "made & (live.begin | live.after | live.shared)",
        "made & live.shared",
        "reader/test_interchange.py",
    ),
    Mutation(
        "np_compile/reader/interchange.py",
        "        if found is None:\n            raise",
        "        if False:\n            raise",
        "reader/test_interchange.py",
    ),
    Mutation(
        "np_compile/reader/conditional_stores.py",
        " and element(way[-1].what) in stored",
        "",
        "reader/test_selection.py",
    ),
    Mutation(
        "np_compile/reader/masked_loads.py",
        "_has_ways(body) and not _is_simple(body)",
        "_has_ways(body) and False",
        "reader/test_masked_loads.py",
    ),
    Mutation(
        "np_compile/reader/nest.py",
        "    if there and not real:\n",
        "    if False:\n",
        "reader/test_masks.py",
    ),
    Mutation(
        "np_compile/reader/nest.py",
        "    if len(extents) == len(dims) and 0 < size",
        "    if 0 < size",
        "reader/test_stack.py",
    ),
    Mutation(
        "np_compile/backends/joint.py",
        "            sums[-1].target = sums[-1].name",
        "            pass",
        "replay/test_joint.py",
    ),
    Mutation(
        "np_compile/lowering/lower.py",
        "            t = t.clone() if value.index in live else t",
        "            pass",
        "replay/test_joint.py replay/test_tensors.py",
    ),
    Mutation(
        "np_compile/capture/policy/decide.py",
        "    if c.alone:",
        "    if False:",
        "replay/test_tensors.py",
    ),
    Mutation(
        "np_compile/backends/joint.py",
        " if k in self._own\n",
        " if False\n",
        "replay/test_joint.py",
    ),
    Mutation(
        "np_compile/backends/in_place.py",
        "            inverse = [axes.index(k) for k in range(len(axes))]\n",
        "            inverse = list(range(len(axes)))\n",
        "backends/test_in_place.py replay/test_joint.py",
    ),
    Mutation(
        "np_compile/backends/in_place.py",
        "        root[x] in before for n in left if n is not write for x in n.all_input_nodes\n",
        "        x in () for n in left if n is not write for x in n.all_input_nodes\n",
        "backends/test_in_place.py",
    ),
    Mutation(
        "np_compile/backends/in_place.py",
        "        if not lies[n]:\n",
        "        if True:\n",
        "backends/test_in_place.py",
    ),
    Mutation(
        "np_compile/backends/in_place.py",
        "order is not None and order != sorted(order)",
        "False",
        "backends/test_in_place.py",
    ),
    Mutation(
        "np_compile/backends/joint.py",
        "        kept = {*needs, *[self.numbers[n] for n in self.wanted]}\n",
        "        kept = {*[self.numbers[n] for n in self.wanted]}\n",
        "replay/test_joint.py",
    ),
    Mutation(
        "np_compile/backends/joint.py",
        "last[s] == k and sources.count(s) == 1",
        "sources.count(s) == 1",
        "replay/test_joint.py",
    ),
    Mutation(
        "np_compile/backends/joint.py",
        '                if place[0] == "tangent":\n',
        "                if False:\n",
        "replay/test_joint.py",
    ),
    Mutation(
        "np_compile/backends/joint.py",
        ' and saved[at][0] != "constant"',
        "",
        "replay/test_joint.py",
    ),
    Mutation(
        "np_compile/size.py",
        "            self.guards.append(Guard(size, op, found, _asking()))\n",
        "",
        "test_size.py",
    ),
    Mutation(
        "np_compile/size.py",
        "            if d < 0:\n",
        "            if d < -9:\n",
        "test_size.py",
    ),
    Mutation(
        "np_compile/size.py",
        "            if part < 0:  # C rounds to zero",
        "            if False:",
        "test_size.py",
    ),
    Mutation(
        "np_compile/size.py",
        "(other.key == self.key or other.facts is not self.facts)",
        "(other.key == self.key)",
        "test_size.py",
    ),
    Mutation(
        "np_compile/lowering/extents.py",
        "            strides[a] > strides[b]  # noqa: B015\n",
        "            pass\n",
        "lowering/test_sized.py",
    ),
    Mutation(
        "np_compile/lowering/extents.py",
        "        if runs and runs[-1][1] == s * n:\n",
        "        if runs:\n",
        "lowering/test_sized.py",
    ),
    Mutation(
        "np_compile/lowering/extents.py",
        "    return place if place <= n else n\n",
        "    return place\n",
        "lowering/test_sized.py",
    ),
    Mutation(
        "np_compile/lowering/trace.py",
        "        _symbolic_trace._is_fx_tracing_flag = False\n",
        "",
        "lowering/test_trace.py",
    ),
    Mutation(
        "np_compile/reader/iterables.py",
        "        if n.low is None or n.low < 0:\n",
        "        if False:\n",
        "reader/test_places.py",
    ),
    Mutation(
        "np_compile/lowering/general.py",
        "if any(sizes[k] != n for k, n in constant):",
        "if False:",
        "capture/test_sizes.py",
    ),
    Mutation(
        "np_compile/tape/form.py",
        "        if shape[d] != 1 and strides[d] != total:\n            return None\n",
        "",
        "capture/test_sizes.py",
    ),
    Mutation(
        "np_compile/runtime/general.py",
        "self._graph.holds(every) and self._made.serves(every)",
        "self._graph.holds(every)",
        "capture/test_sizes.py",
    ),
    Mutation(
        "np_compile/runtime/general.py",
        "        return all(n == ints[k] for k, n in self._constants)",
        "        return True",
        "capture/test_sizes.py",
    ),
    Mutation(
        "np_compile/lowering/general.py",
        "        if any(sizes[k] != sizes[t.position] + t.more for k, t in ties.items()):\n"
        "            return False\n",
        "",
        "capture/test_sizes.py",
    ),
    Mutation(
        "np_compile/lowering/general.py",
        '                tests.append(f"{place} == {form.sizes[k]}")',
        '                tests.append("True")',
        "capture/test_sizes.py",
    ),
    Mutation(
        "np_compile/tape/node.py",
        "        if self._met.get(key, turn) != turn:",
        "        if key in self._met:",
        "capture/test_sizes.py",
    ),
    Mutation(
        "np_compile/runtime/general.py",
        "        there = [j for j in extents if j < entered[k]]",
        "        there = extents",
        "capture/test_sizes.py",
    ),
    Mutation(
        "np_compile/capture/arrays/traced.py",
        "        return made.known() if settled else made",
        "        return made.value if settled else made",
        "replay/test_sizes.py",
    ),
    Mutation(
        "np_compile/capture/arrays/traced.py",
        "        self.asked.append(Asked(self.how, self.text, self.value))\n",
        "",
        "replay/test_sizes.py",
    ),
    Mutation(
        "np_compile/replay/keeper.py",
        "            others = 0 < self._others <= _OTHERS",
        "            others = False",
        "replay/test_sizes.py",
    ),
    Mutation(
        "np_compile/replay/sizes.py",
        "        return min(a.strides, default=0) >= 0 and _order(a) == self.order",
        "        return min(a.strides, default=0) >= 0",
        "replay/test_sizes.py",
    ),
    Mutation(
        "np_compile/replay/sizes.py",
        "        return not (pair.apart and np.may_share_memory(one, other))",
        "        return True",
        "replay/test_sizes.py",
    ),
    Mutation(
        "np_compile/replay/sizes.py",
        "        for asked in self._asked:",
        "        for asked in ():",
        "replay/test_sizes.py",
    ),
    Mutation(
        "np_compile/replay/evaluate.py",
        "        if new:",
        "        if False:",
        "replay/test_sizes.py",
    ),
    Mutation(
        "np_compile/capture/policy/decide.py",
        "        and likely_seconds(node.count, node.bytes) < _COMPILE + _TRANSLATE * effort(node)",
        "        and False",
        "capture/test_background.py",
    ),
    Mutation(
        "np_compile/kernels/build/beside.py",
        "    if making.acquire(timeout=_WAIT):",
        "    if False:",
        "capture/test_background.py",
    ),
    Mutation(
        "np_compile/replay/calls.c",
        "    if (!*pause || pause[3] != *ended) return 0;",
        "    if (!*pause) return 0;",
        "capture/test_budget.py",
    ),
    Mutation(
        "np_compile/replay/calls.c",
        "    if (clock >= *pause && (pause[1] >= pause[2] || clock > pause[5])) return 0;",
        "    if (clock >= *pause) return 0;",
        "capture/test_budget.py",
    ),
    Mutation(
        "np_compile/lowering/meta.py",
        "    _aten.masked_scatter.default: _masked_scatter,",
        "",
        "lowering/test_first_call.py",
    ),
    Mutation(
        "np_compile/replay/keeper.py",
        "not found or self.reach is None or not self._unchanged(self.reach)",
        "not found or self.reach is None",
        "replay/test_sizes.py",
    ),
    Mutation(
        "np_compile/replay/hot.py",
        "                if other.heat._best <= self._best:",
        "                if True:",
        "replay/test_hot.py",
    ),
    Mutation(
        "np_compile/kernels/build/beside.py",
        "if self._pid != os.getpid() and not self.done.is_set():",
        "if False:",
        "capture/test_background.py",
    ),
    Mutation(
        "np_compile/kernels/passes/check_hoisting.py",
        "known = all(made.get(y.value, -1) < first for y",
        "known = all(made.get(y.value, -1) <= first for y",
        "kernels/test_safety.py::test_an_index_array_that_is_written_to",
    ),
    Mutation(
        "np_compile/kernels/passes/check_hoisting.py",
        'negative = E.scalar("lt", at, E.integer(0))',
        'negative = E.scalar("le", at, E.integer(0))',
        (
            "kernels/test_safety.py::test_indices_up_to_the_ends_are_accepted "
            "kernels/test_native_indexing.py"
        ),
    ),
    Mutation(
        "np_compile/kernels/passes/check_hoisting.py",
        "        fenced.add(first)\n    looked",
        "        pass\n    looked",
        (
            "kernels/test_safety.py::test_several_index_arrays "
            "kernels/test_safety.py::test_random_programs_write_everything_or_nothing"
        ),
    ),
    Mutation(
        "np_compile/kernels/passes/check_hoisting.py",
        'parts = {y for x in found for y in E.walk(*x.args) if y.op == "wrap"}',
        "parts = set(found[1:])",
        (
            "kernels/test_safety.py::test_several_index_arrays "
            "kernels/test_safety.py::test_the_second_index_is_wrong"
        ),
    ),
    Mutation(
        "np_compile/kernels/passes/fuse.py",
        "or (r & writes):\n            return False",
        "or set():\n            return False",
        "kernels/passes/test_passes.py",
    ),
    Mutation(
        "np_compile/kernels/passes/fuse.py",
        "or (r & writes):\n            break",
        "or set():\n            break",
        (
            "kernels/passes/test_passes.py "
            "kernels/test_native_joining.py "
            "kernels/test_random_programs.py::test_random_programs"
        ),
    ),
    Mutation(
        "np_compile/kernels/passes/fuse.py",
        '(s.target.kind == "input" or _trusting(s))',
        's.target.kind == "input"',
        ("kernels/test_safety.py::test_an_index_out_of_bounds kernels/test_native_indexing.py"),
    ),
    Mutation(
        "np_compile/kernels/passes/fuse.py",
        "    if partner in s.over and any(a not in s.over for a in left):",
        "    if False:",
        "kernels/passes/test_passes.py kernels/test_native_reductions.py",
    ),
    Mutation(
        "np_compile/kernels/passes/index_staging.py",
        "if some(extent % size) else []",
        "if some(extent % size) > 1 else []",
        "kernels/passes/test_vectors.py::test_the_rest_of_a_loop_in_blocks",
    ),
    Mutation(
        "np_compile/kernels/analysis/dependence.py",
        "    if below >= abs(c):",
        "    if below > abs(c):",
        "kernels/analysis/test_dependence.py",
    ),
    Mutation(
        "np_compile/kernels/analysis/dependence.py",
        "        if abs(n) <= below:",
        "        if abs(n) < below:",
        "kernels/analysis/test_dependence.py",
    ),
    Mutation(
        "np_compile/kernels/analysis/dependence.py",
        "    if xh < yl or yh < xl:",
        "    if xh <= yl or yh <= xl:",
        "kernels/analysis/test_dependence.py",
    ),
    Mutation(
        "np_compile/kernels/analysis/dependence.py",
        "    if first.target is second.target:",
        "    if False:",
        "kernels/passes/test_passes.py kernels/test_random_programs.py::test_random_programs",
    ),
    Mutation(
        "np_compile/kernels/analysis/parallel.py",
        "for a in takewhile(lambda a: a is not axis, s.axes)",
        "for a in s.axes",
        "kernels/analysis/test_dependence.py",
    ),
    Mutation(
        "np_compile/kernels/analysis/parallel.py",
        "            if s.scan or is_in_order(s) or any(E.axes_of(i) for i in s.index):",
        "            if s.scan or is_in_order(s):",
        (
            "kernels/passes/test_schedules.py kernels/test_native_reductions.py "
            "kernels/run/test_pool.py "
            "kernels/passes/test_random_steps.py"
        ),
    ),
    Mutation(
        "np_compile/kernels/analysis/parallel.py",
        "    if s.scan and axis in s.over:\n        return True",
        "    if s.scan and axis in s.over:\n        return False",
        "kernels/passes/test_scans.py kernels/passes/test_passes.py",
    ),
    Mutation(
        "np_compile/kernels/passes/double_buffering.py",
        "if run and store_of(run[0]) != store_of(step):",
        "if False:",
        "kernels/passes/test_double_buffering.py",
    ),
    Mutation(
        "np_compile/kernels/passes/double_buffering.py",
        "len(updates) % 2 == 1",
        "False",
        "kernels/passes/test_double_buffering.py",
    ),
    Mutation(
        "np_compile/kernels/passes/double_buffering.py",
        "elif not isinstance(step, Statement) or x in accesses(step)[1]:",
        "elif False:",
        "kernels/passes/test_double_buffering.py",
    ),
    Mutation(
        "np_compile/kernels/passes/row_caching.py",
        "if any(_alike(a, b) for k, a in enumerate(general) for b in general[:k]):",
        "if False:",
        "kernels/test_on_gpu.py",
    ),
    Mutation(
        "np_compile/capture/arrays/tensors.py",
        "device is not None and t.device != device",
        "False",
        "capture/test_several_devices.py",
    ),
    Mutation(
        "np_compile/kernels/passes/copy_elision.py",
        "        if x in touched and first is not None and k < last:",
        "        if False:",
        "kernels/passes/test_passes.py",
    ),
    Mutation(
        "np_compile/kernels/passes/copy_elision.py",
        "(first is None or k > last or not",
        "(first is None or not",
        "kernels/passes/test_passes.py",
    ),
    Mutation(
        "np_compile/kernels/passes/copy_elision.py",
        "if full and len(set(free)) == len(free) else",
        "if full else",
        "kernels/passes/test_passes.py kernels/test_native_views.py",
    ),
    Mutation(
        "np_compile/kernels/passes/inline.py",
        "if p <= w < q and not",
        "if p < w < q and not",
        "kernels/passes/test_passes.py kernels/passes/test_random_steps.py",
    ),
    Mutation(
        "np_compile/kernels/passes/inline.py",
        "before = [w for w in self.writers[x.value] if w[0] < q]",
        "before = self.writers[x.value]",
        "kernels/passes/test_passes.py kernels/test_random_programs.py::test_random_programs",
    ),
    Mutation(
        "np_compile/kernels/passes/dead_code.py",
        "            or only_checks(step)\n",
        "",
        ("kernels/passes/test_passes.py"),
    ),
    Mutation(
        "np_compile/kernels/passes/buffer_reuse.py",
        "and target not in read and writes[target] == 1",
        "and target not in read",
        "kernels/passes/test_reuse.py kernels/test_random_programs.py::test_random_programs",
    ),
    Mutation(
        "np_compile/kernels/passes/buffer_reuse.py",
        "        t in upto and x.args == s.index",
        "        x.args == s.index",
        "kernels/passes/test_reuse.py",
    ),
    Mutation(
        "np_compile/kernels/passes/buffer_reuse.py",
        "        t in upto and x.args == s.index",
        "        t in upto",
        "kernels/passes/test_reuse.py",
    ),
    Mutation(
        "np_compile/kernels/passes/buffer_reuse.py",
        "if b in ended and not writes[b] and",
        "if b in ended and",
        "kernels/passes/test_reuse.py kernels/passes/test_random_steps.py",
    ),
    Mutation(
        "np_compile/kernels/passes/dead_store_elimination.py",
        "        if any(x.value is s.target and x.args != s.index for x in step.reads()):",
        "        if False:",
        "kernels/passes/test_vectors.py",
    ),
    Mutation(
        "np_compile/kernels/passes/dead_store_elimination.py",
        "            held.pop(s.target, None)\n",
        "",
        "kernels/passes/test_passes.py",
    ),
    Mutation(
        "np_compile/kernels/passes/dead_store_elimination.py",
        "            if any(s.target in part for part in accesses(step)):",
        "            if False:",
        "kernels/passes/test_vectors.py",
    ),
    Mutation(
        "np_compile/kernels/analysis/memory.py",
        "if begin <= last and first <= end",
        "if begin < last and first < end",
        "kernels/passes/test_passes.py",
    ),
    Mutation(
        "np_compile/kernels/analysis/memory.py",
        "if at + size <= begin:",
        "if at <= begin:",
        "kernels/test_random_programs.py::test_temporaries_that_live_at_once_lie_apart",
    ),
    Mutation(
        "np_compile/kernels/analysis/parallel.py",
        "    return all(k < read.get(b, len(loop.body)) for b, k in stored.items())\n",
        "    return True\n",
        "kernels/passes/test_vectors.py",
    ),
    Mutation(
        "np_compile/kernels/passes/check_hoisting.py",
        "    first = _with_single(steps, first, made)\n",
        "",
        "kernels/passes/test_scatter.py",
    ),
    Mutation(
        "np_compile/capture/arrays/operators.py",
        "return c.told(seg, node.value) if c.elements_read else recorded(c, seg, node.value)",
        "return recorded(c, seg, node.value)",
        "capture/test_elements.py",
    ),
    Mutation(
        "np_compile/replay/sizes.py",
        "            if type(v.value) is float:\n",
        "            if False:\n",
        "replay/test_sizes.py",
    ),
    Mutation(
        "np_compile/kernels/passes/last_writer.py",
        "if len(writers[s.target]) != 2 or",
        "if",
        (
            "kernels/passes/test_passes.py kernels/test_native_indexing.py "
            "kernels/passes/test_random_steps.py"
        ),
    ),
    Mutation(
        "np_compile/kernels/passes/last_writer.py",
        "same = where is x.args[0] and",
        "same =",
        (
            "kernels/passes/test_passes.py kernels/test_native_indexing.py "
            "kernels/passes/test_random_steps.py"
        ),
    ),
    Mutation(
        "np_compile/kernels/passes/cse.py",
        " or writers[b] != 1:",
        ":",
        "kernels/passes/test_passes.py kernels/passes/test_random_steps.py",
    ),
    Mutation(
        "np_compile/kernels/passes/cse.py",
        'if any(writers.get(x.value, 0) > (x.value.kind == "temporary") for x in step.reads()):',
        "if False:",
        "kernels/passes/test_passes.py kernels/test_random_programs.py::test_random_programs",
    ),
    Mutation(
        "np_compile/kernels/passes/index_set_splitting.py",
        "found.update((at, at + 1))",
        "found.update((at,))",
        (
            "kernels/passes/test_passes.py kernels/passes/test_schedules.py "
            "kernels/test_native_views.py "
            "kernels/passes/test_random_steps.py"
        ),
    ),
    Mutation(
        "np_compile/kernels/passes/index_set_splitting.py",
        "(k + axis.extent - 1) // x.value + 1",
        "(k + axis.extent - 1) // x.value",
        "kernels/passes/test_passes.py kernels/passes/test_schedules.py",
    ),
    Mutation(
        "np_compile/kernels/passes/rolling_buffer.py",
        "            if row < self.at:",
        "            if row <= self.at:",
        "kernels/passes/test_schedules.py",
    ),
    Mutation(
        "np_compile/kernels/passes/rolling_buffer.py",
        "            if row >= length + self.at:",
        "            if row > length + self.at:",
        "kernels/passes/test_schedules.py kernels/passes/test_random_steps.py",
    ),
    Mutation(
        "np_compile/kernels/passes/rolling_buffer.py",
        "if elsewhere and not all(disjoint(x.args, w) for w in writes):",
        "if False:",
        "kernels/passes/test_schedules.py kernels/passes/test_random_steps.py",
    ),
    Mutation(
        "np_compile/kernels/passes/rolling_buffer.py",
        'if any(t.kind != "temporary" or t in others for t in targets) or',
        'if any(t.kind != "temporary" for t in targets) or',
        "kernels/passes/test_passes.py kernels/passes/test_schedules.py",
    ),
    Mutation(
        "np_compile/kernels/passes/rolling_buffer.py",
        "        lag = max(self.at - self.low, 0)\n",
        "        lag = min(max(self.at - self.low, 0), 2)\n",
        "kernels/passes/test_passes.py::test_old_values_are_read_before_new_ones_are_stored",
    ),
    Mutation(
        "np_compile/kernels/passes/rolling_buffer.py",
        "        last = length - after\n",
        "        last = length - after + 1\n",
        "kernels/passes/test_schedules.py",
    ),
    Mutation(
        "np_compile/kernels/analysis/access.py",
        "(k - end) // -c + 1",
        "(k - end) // -c",
        "kernels/passes/test_pieces.py kernels/passes/test_random_steps.py",
    ),
    Mutation(
        "np_compile/kernels/passes/store_trimming.py",
        '    if left == [box] or any(x.op == "wrap" for x in E.walk(s.value)):',
        "    if left == [box]:",
        (
            "kernels/passes/test_pieces.py "
            "kernels/test_safety.py::test_random_programs_write_everything_or_nothing"
        ),
    ),
    Mutation(
        "np_compile/kernels/passes/reduction_splitting.py",
        "E.integer(most * size), rest)",
        "E.integer(most * size - 1), rest)",
        "kernels/passes/test_schedules.py kernels/test_native_reductions.py",
    ),
    Mutation(
        "np_compile/kernels/passes/unroll.py",
        "    for v, at in reversed(others):",
        "    for v, at in others:",
        "kernels/test_native_reductions.py kernels/passes/test_passes.py",
    ),
    Mutation(
        "np_compile/kernels/passes/unroll.py",
        '            found = E.scalar("or", found, E.scalar("ne", v, v))',
        "            pass",
        "kernels/test_native_reductions.py kernels/passes/test_passes.py",
    ),
    Mutation(
        "np_compile/kernels/passes/scatter_privatization.py",
        "E.plus(step, count * size), E.integer",
        "E.plus(step, count * size - 1), E.integer",
        "kernels/passes/test_scatter.py",
    ),
    Mutation(
        "np_compile/kernels/passes/scatter_sharing.py",
        "E.plus(left, parts * length)",
        "E.plus(left, parts * length - 1)",
        "kernels/test_cuda_on_host.py",
    ),
    Mutation(
        "np_compile/kernels/targets/cuda/blocks.py",
        "            if any(self._meet(other, step) for other in before):",
        "            if False:",
        "kernels/test_cuda_on_host.py",
    ),
    Mutation(
        "np_compile/tensor_loops.py",
        "        loan.settle(changed)",
        "        pass",
        "capture/test_tensor_loops.py",
    ),
    Mutation(
        "np_compile/tensor_loops.py",
        "            if before is None or made.tobytes() != before:",
        "            if True:",
        "capture/test_tensor_loops.py",
    ),
    Mutation(
        "np_compile/tensor_loops.py",
        "            loan.end()\n            self._reached.give(loan)\n        if key",
        "            loan.end()\n        if key",
        "capture/test_tensor_loops.py",
    ),
    Mutation(
        "np_compile/reached.py",
        "        if changes and not harmless:",
        "        if False:",
        "capture/test_tensor_loops.py",
    ),
    Mutation(
        "np_compile/reached.py",
        "            others |= {",
        "            {",
        "capture/test_tensor_loops.py",
    ),
    Mutation(
        "np_compile/reader/builtins.py",
        '            self.r.line(f"if ({counts})',
        '            self.r.line(f"if (1)',
        "reader/test_python_sums.py",
    ),
    Mutation(
        "np_compile/capture/arrays/transfers.py",
        "    if not pinned and _is_whole(t):  # NumPy",
        "    if not pinned:  # NumPy",
        "capture/test_tensor_loops.py",
    ),
    Mutation(
        "np_compile/capture/policy/guess.py",
        "(program.mutates or device is not None)",
        "program.mutates",
        "capture/test_guess.py",
    ),
    Mutation(
        "np_compile/kernels/passes/loop_order.py",
        "        if s.scan:\n            ranked",
        "        if False:\n            ranked",
        (
            "kernels/passes/test_scans.py kernels/passes/test_passes.py "
            "kernels/passes/test_random_steps.py"
        ),
    ),
    Mutation(
        "np_compile/kernels/passes/collapse.py",
        " or (s.scan and (a in s.over)):",
        ":",
        (
            "kernels/passes/test_scans.py kernels/passes/test_passes.py "
            "kernels/passes/test_random_steps.py"
        ),
    ),
    Mutation(
        "np_compile/kernels/passes/collapse.py",
        "        if mine.get(a, 0) != mine.get(b, 0) * b.extent:",
        "        if mine.get(a, 0) < mine.get(b, 0) * b.extent:",
        "kernels/passes/test_passes.py",
    ),
    Mutation(
        "np_compile/kernels/passes/tile.py",
        "    if any(serial(s, loop.axis) for s in inside):\n        return None\n",
        "",
        "kernels/analysis/test_dependence.py",
    ),
    Mutation(
        "np_compile/kernels/passes/tile.py",
        "(0, rows, 0, columns), (0, rows, columns, m), (rows, n, 0, m)",
        "(0, rows, 0, columns), (0, rows, columns, m), (rows, n, 0, columns)",
        "kernels/passes/test_schedules.py",
    ),
    Mutation(
        "np_compile/kernels/run/blocks.py",
        "return least > most or least == most == 0",
        "return least > most or least == most",
        "kernels/run/test_bands.py",
    ),
    Mutation(
        "np_compile/kernels/run/blocks.py",
        "return one.end <= two.begin or two.end <= one.begin",
        "return one.end < two.begin or two.end <= one.begin + 8",
        "kernels/run/test_bands.py",
    ),
    Mutation(
        "np_compile/kernels/run/bands.py",
        "scaled = [(k, b.of(per)) for",
        "scaled = [(k, b) for",
        "kernels/run/test_bands.py",
    ),
    Mutation(
        "np_compile/kernels/analysis/footprint.py",
        "    return lo, hi + 1, step, tuple",
        "    return lo, hi, step, tuple",
        "kernels/run/test_bands.py",
    ),
    Mutation(
        "np_compile/kernels/run/execute.py",
        "            t.copy_(values)\n",
        "            pass\n",
        "kernels/test_safety.py::test_an_index_array_that_is_written_to",
    ),
    Mutation(
        "np_compile/kernels/run/execute.py",
        "if self._results is None or self._early:",
        "if self._results is None:",
        "kernels/test_safety.py::test_an_index_array_that_is_written_to",
    ),
    Mutation(
        "np_compile/lowering/lower.py",
        "        if _writes(a) != before[k]:",
        "        if step.mutates:",
        "lowering/test_lens.py",
    ),
    Mutation(
        "np_compile/lowering/lower.py",
        "part if value.source is not None else part.get(settle(args[0]))",
        "part",
        "lowering/test_lens.py",
    ),
    Mutation(
        "np_compile/lowering/lower.py",
        "return held.setdefault(id(x), (x, x.read()))[1]",
        "return x.read()",
        "lowering/test_lens.py",
    ),
    Mutation(
        "np_compile/lowering/lens.py",
        "            self.base.write(base)",
        "            pass",
        "lowering/test_lens.py",
    ),
    Mutation(
        "np_compile/lowering/lens.py",
        "    if order == axes:",
        "    if True:",
        "lowering/test_lens.py",
    ),
    Mutation(
        "np_compile/lowering/lens.py",
        "shape[position] = index.shape[0]",
        "shape[-1] = index.shape[0]",
        "lowering/test_lens.py",
    ),
    Mutation(
        "np_compile/lowering/record.py",
        "        if func is _aten._to_copy.default and _moves_only(args[0], kwargs):",
        "        if func is _aten._to_copy.default:",
        "lowering/test_record.py",
    ),
    Mutation(
        "np_compile/lowering/record.py",
        'if not node.users and node.op in ("call_function", "get_attr") and not _writes(node):',
        'if not node.users and node.op in ("call_function", "get_attr"):',
        "lowering/test_record.py",
    ),
    Mutation(
        "np_compile/kernels/analysis/parallel.py",
        "if s.scan or is_in_order(s) or any(",
        "if s.scan or any(",
        "kernels/test_native_reductions.py",
    ),
    Mutation(
        "np_compile/kernels/targets/reductions.py",
        "in_order = along and lanes > 1 and is_in_order(s)",
        "in_order = lanes > 1 and is_in_order(s)",
        "kernels/test_native_reductions.py",
    ),
    Mutation(
        "np_compile/kernels/targets/c/prelude.py",
        "u -= got > size;",
        "",
        "kernels/test_native_ufuncs.py",
    ),
    Mutation(
        "np_compile/kernels/frontend/complex.py",
        "return re, _finite_or(im, _is(y, 0), y)\n\n\ndef _cosh",
        "return re, im\n\n\ndef _cosh",
        "kernels/test_native_ufuncs.py",
    ),
    Mutation(
        "np_compile/capture/exchange/escape.py",
        "        return [x.__dict__]\n",
        "        return []\n",
        "capture/test_escape.py",
    ),
    Mutation(
        "np_compile/capture/exchange/escape.py",
        "        if any(id(k) in real for k in holder):",
        "        if False:",
        "capture/test_escape.py",
    ),
    Mutation(
        "np_compile/capture/exchange/escape.py",
        "        if type(x.__self__) is Array:\n            return getattr(owner, x.__name__)",
        "        if False:\n            return getattr(owner, x.__name__)",
        "capture/test_escape.py",
    ),
    Mutation(
        "np_compile/capture/exchange/escape.py",
        "        if id(holder.__defaults__) in real:",
        "        if False:",
        "capture/test_escape.py",
    ),
    Mutation(
        "np_compile/capture/exchange/escape.py",
        "        if id(values.get(name)) in real:",
        "        if False:",
        "capture/test_escape.py capture/test_objects.py",
    ),
    Mutation(
        "np_compile/capture/exchange/escape.py",
        "    if not raised:  # somebody",
        "    if raised:  # somebody",
        "capture/test_escape.py",
    ),
    Mutation(
        "np_compile/capture/exchange/escape.py",
        "    if sys.getrefcount(held[0]) <= _OWN:\n        return",
        "    if sys.getrefcount(held[0]) <= _OWN + 1:\n        return",
        "capture/test_escape.py",
    ),
    Mutation(
        "np_compile/capture/names/entrances.py",
        "entrance.users == 0 and f.__code__ is entrance.code:",
        "entrance.users == 0:",
        "capture/test_unseen_code.py capture/test_objects.py capture/test_state.py",
    ),
    Mutation(
        "np_compile/capture/names/entrances.py",
        "(entrance.users == 0 and f.__code__ is not entrance.own)",
        "False",
        "capture/test_unseen_code.py capture/test_objects.py capture/test_state.py",
    ),
    Mutation(
        "np_compile/capture/arrays/loans.py",
        "n - k > c for n",
        "n - k > c + 1 for n",
        "capture/test_libraries.py capture/test_unseen_code.py capture/test_fuzz_objects.py",
    ),
    Mutation(
        "np_compile/capture/arrays/loans.py",
        "        yield a\n        a = a.base",
        "        yield a\n        a = None",
        "capture/test_libraries.py capture/test_unseen_code.py capture/test_fuzz_objects.py",
    ),
    Mutation(
        "np_compile/reader/calls.py",
        "            if f not in TAKES_ALL and f not in (any, all):",
        "            if False:",
        "reader/test_generator_expressions.py",
    ),
    Mutation(
        "np_compile/capture/segments.py",
        "    if c.grads and any(a._t is not None and _is_torchs(a._t) for a in seg.values):",
        "    if c.grads:",
        "capture/test_failing_segments.py",
    ),
    Mutation(
        "np_compile/capture/record.py",
        "inside_try() and _may_raise(seg):",
        "False:",
        "capture/test_failing_segments.py",
    ),
    Mutation(
        "np_compile/capture/record.py",
        "    if node.mutates and any(seg.values[i]._copied for i in node.mutates):",
        "    if False:",
        "capture/test_unseen_code.py",
    ),
    Mutation(
        "shim/_strided.py",
        "owner is not None and owner._t.dtype is a._t.dtype",
        "False",
        "shim/test_views.py",
    ),
    Mutation(
        "shim/_ndarray.py",
        "if not t.is_contiguous() and overlaps_itself(t.shape, t.stride()):",
        "if False:",
        "shim/test_views.py",
    ),
    Mutation(
        "np_compile/capture/arrays/stand_ins.py",
        "if not (r._readonly or a.flags.contiguous) and overlaps_itself(a.shape, a.strides):",
        "if False:",
        "capture/test_views.py",
    ),
    Mutation(
        "np_compile/capture/arrays/stand_ins.py",
        '            c.stay_plain("arguments of different dtypes share memory")',
        "            pass",
        "capture/test_views.py",
    ),
    Mutation(
        "np_compile/capture/plain.py",
        "    c.plain = c.lasting or c.heard or bool(c.loans)",
        "    c.plain = c.heard or bool(c.loans)",
        "capture/test_unseen_code.py capture/test_plain.py capture/test_flags.py",
    ),
    Mutation(
        "np_compile/capture/segments.py",
        '("value", "data", "numpy", "foreign", "asked"):',
        '("value", "data", "numpy", "asked"):',
        "capture/test_breaks.py",
    ),
    Mutation(
        "np_compile/capture/segments.py",
        "(c.tensors and needs_operators(",
        "(False and needs_operators(",
        "capture/test_wrap_numpy.py capture/test_tensors.py",
    ),
    Mutation(
        "np_compile/capture/segments.py",
        "            seg.inputs[k]._sig = None  # it",
        "            pass  # it",
        "capture/test_wrap_numpy.py capture/test_tensors.py replay/test_tensors.py",
    ),
    Mutation(
        "np_compile/capture/arrays/in_place.py",
        'if state.get("_base") is a:  # be it',
        'if state.get("_root") is old and state.get("_base") is a:  # be it',
        "capture/test_views.py",
    ),
    Mutation(
        "np_compile/capture/names/namespace.py",
        "    return within and any(",
        "    return within and False and any(",
        "capture/test_objects.py",
    ),
    Mutation(
        "shim/_float_errors.py",
        "if type(size) is int and size <= ONE_THREAD and not noted()",
        "if bool(size <= ONE_THREAD) and not noted()",
        "capture/test_sizes.py",
    ),
    Mutation(
        "np_compile/reader/dicts.py",
        "    if not alone:\n",
        "    if False:\n",
        "reader/test_dicts.py",
    ),
    Mutation(
        "np_compile/reader/marshalling.py",
        "    if (b->changes == 2) {{",
        "    if (0) {{",
        "reader/test_given.py",
    ),
    Mutation(
        "np_compile/reader/region.py",
        "        if fields[_GONE]:",
        "        if False:",
        "reader/test_dicts.py",
    ),
    Mutation(
        "np_compile/reader/inputs.py",
        "    if one:\n",
        "    if False:\n",
        "reader/test_objects.py",
    ),
    Mutation(
        "np_compile/reader/reading.py",
        "            beginning.vain = True\n",
        "            pass\n",
        "reader/test_leaving.py",
    ),
    Mutation(
        "np_compile/reader/variables.py",
        'text = text if text in d.lin.terms else f"({text})"',
        'text = text if len(parts) == 1 else f"({text})"',
        "reader/test_arrays.py",
    ),
    Mutation(
        "np_compile/capture/arrays/in_place.py",
        'if state.get("_base") is a:  # be it',
        "if False:  # be it",
        "capture/test_views.py capture/test_flags.py",
    ),
    Mutation(
        "np_compile/capture/arrays/stand_ins.py",
        "        r._readonly = not shim.is_writeable(a)\n",
        "        r._readonly = False\n",
        "capture/test_flags.py capture/test_arguments.py capture/test_views.py",
    ),
    Mutation(
        "np_compile/capture/record.py",
        "    if check is not None and not check.holds(",
        "    if False and not check.holds(",
        "capture/test_stored_numbers.py",
    ),
    Mutation(
        "np_compile/capture/record.py",
        "    if get_ident() != c.thread:",
        "    if False:",
        "capture/test_python.py",
    ),
    Mutation(
        "np_compile/reader/leaving.py",
        "    return shared_names(node).union(*map(count_loads, nodes[k:]))",
        "    return frozenset().union(*map(count_loads, nodes[k:]))",
        "reader/test_columns.py",
    ),
    Mutation(
        "np_compile/reader/leaving.py",
        "    return shared_names(node).union(*map(count_loads, nodes[k:]))",
        "    return shared_names(node).union(*map(count_loads, nodes[k + 1 :]))",
        "reader/test_columns.py",
    ),
    Mutation(
        "np_compile/reader/source.py",
        "    for name in _asking_for_names(node):",
        "    for name in ():",
        "reader/test_names.py",
    ),
    Mutation(
        "np_compile/reader/columns.py",
        "places = (tags == tag).nonzero()[0]",
        "places = (tags <= tag).nonzero()[0]",
        "reader/test_columns.py",
    ),
    Mutation(
        "np_compile/capture/policy/choice.py",
        "self.compiled > self._aside(listed, called):",
        "self.compiled > _SHORT:",
        "capture/test_plain.py",
    ),
    Mutation(
        "np_compile/capture/policy/choice.py",
        "by_element = seconds < _ELEMENT * single",
        "by_element = True",
        "capture/test_plain.py",
    ),
    Mutation(
        "np_compile/reader/reading.py",
        " for n, times in work.arrays if n >= _LARGE) > work.single * _LOSS",
        " for n, times in work.arrays if n >= _LARGE) > 0",
        "reader/test_choices.py",
    ),
    Mutation(
        "np_compile/tape/key.py",
        "            if isinstance(item, list) and not _are_within(item, shape[axis]):",
        "            if False:",
        "capture/test_failing_segments.py",
    ),
    Mutation(
        "np_compile/tape/key.py",
        " or (value == 0 and type(value) is float):",
        ":",
        "capture/test_scalars.py capture/test_programs.py replay/test_arrays.py",
    ),
    Mutation(
        "np_compile/tape/key.py",
        "capture.ints_are_data and _INT64[0] <= value <= _INT64[1]:",
        "capture.ints_are_data:",
        "capture/test_scalars.py capture/test_stored_numbers.py",
    ),
    Mutation(
        "np_compile/tape/node.py",
        "            if not all(low <= i <= high for i in ints):",
        "            if not all(low <= i for i in ints):",
        "capture/test_scalars.py capture/test_stored_numbers.py",
    ),
    Mutation(
        "np_compile/tape/node.py",
        "isfinite(floats[k]) and low <= int(floats[k]) <= high",
        "isfinite(floats[k]) and low <= int(floats[k])",
        "capture/test_stored_numbers.py",
    ),
    Mutation(
        "np_compile/tape/key.py",
        '    if hasattr(kind, "__next__"):',
        "    if False:",
        "capture/test_arguments.py capture/test_python.py capture/test_programs.py",
    ),
    Mutation(
        "np_compile/capture/arrays/stand_ins.py",
        "        r._readonly = not shim.is_writeable(result)\n",
        "        r._readonly = False\n",
        "capture/test_views.py capture/test_flags.py capture/test_breaks.py",
    ),
    Mutation(
        "np_compile/capture/arrays/stand_ins.py",
        "if low <= first and last <= high and not root._flip:",
        "if not root._flip:",
        "capture/test_wrap_numpy.py capture/test_tensors.py capture/test_views.py",
    ),
    Mutation(
        "np_compile/capture/exchange/arguments.py",
        "    if list(values)[: len(target)] != list(target):",
        "    if False:",
        "capture/test_arguments.py capture/test_objects.py",
    ),
    Mutation(
        "np_compile/capture/exchange/arguments.py",
        "        elif name in present:",
        "        elif False:",
        "capture/test_objects.py capture/test_arguments.py",
    ),
    Mutation(
        "np_compile/capture/names/substitute.py",
        (
            "overlay.now(name) is not value:\n                    self._refresh(overlay, name)\n"
            "                    if name in overlay.arrays:"
        ),
        (
            "False:\n                    self._refresh(overlay, name)\n"
            "                    if name in overlay.arrays:"
        ),
        "capture/test_state.py capture/test_unseen_code.py",
    ),
    Mutation(
        "np_compile/replay/guards.py",
        "            and f.__kwdefaults__ is self.named\n",
        "",
        "replay/test_arrays.py",
    ),
    Mutation(
        "np_compile/replay/guards.py",
        "            (f.__code__ is self.code or own_code(f) is self.code)",
        "            True",
        "replay/test_arrays.py",
    ),
    Mutation(
        "np_compile/replay/proof.py",
        "        return value.names is None and value.metadata is None and value.subdtype is None",
        "        return True",
        "replay/test_arrays.py",
    ),
    Mutation(
        "np_compile/replay/proof.py",
        "    return shim.TABLE[row].kind is not shim.Kind.IMPURE",
        "    return True",
        "replay/test_arrays.py",
    ),
    Mutation(
        "np_compile/replay/keeper.py",
        "watch.reach is not self.reach or not watch.reach.unchanged()",
        "watch.reach is not self.reach",
        "replay/test_calls.py",
    ),
    Mutation(
        "np_compile/reader/source.py",
        "            if _encloses(outer, code) and _compiles_to(tree, outer, code):",
        "            if _encloses(outer, code):",
        "reader/test_source.py",
    ),
    Mutation(
        "np_compile/reader/source.py",
        "    module = ast.Module([*imports, outer], [])",
        "    module = ast.Module([outer], [])",
        "reader/test_source.py",
    ),
    Mutation(
        "np_compile/capture/arrays/elements.py",
        "        return real._w is not seg and id(real._np) in c.known",
        "        return id(real._np) in c.known",
        "capture/test_elements.py",
    ),
    Mutation(
        "np_compile/capture/arrays/elements.py",
        "        watch.reads(real, args[1], alone=True)",
        "        pass",
        "capture/test_elements.py",
    ),
    Mutation(
        "np_compile/replay/watch.py",
        "        if self.written:",
        "        if False:",
        "replay/test_arrays.py",
    ),
    Mutation(
        "shim/_ndarray.py",
        "            if stride <= reach:",
        "            if stride < reach:",
        "capture/test_views.py",
    ),
    Mutation(
        "np_compile/capture/arrays/window.py",
        "        if low < end:\n",
        "        if False:\n",
        "capture/test_views.py",
    ),
    Mutation(
        "np_compile/capture/masks/masked.py",
        "    if a._extents() != full._extents() or (",
        "    if (",
        "capture/test_masked.py",
    ),
    Mutation(
        "np_compile/capture/masks/masked.py",
        "        if number in node.mutates:\n            return True",
        "        if False:\n            return True",
        "capture/test_masked.py",
    ),
    Mutation(
        "np_compile/replay/arrays.py",
        "a is b, writes, sizes",
        "a is b, False, sizes",
        "replay/test_calls.py capture/test_views.py",
    ),
    Mutation(
        "np_compile/replay/arrays.py",
        "names[k], a, USABLE)",
        "names[k], a, 0)",
        "replay/test_arrays.py capture/test_flags.py",
    ),
    Mutation(
        "np_compile/replay/guards.py",
        "sum(i % extent * stride for",
        "sum(i * stride for",
        "replay/test_calls.py",
    ),
    Mutation(
        "np_compile/replay/tensors.py",
        "m > k or (m < k and m not in plan.written)",
        "m > k",
        "replay/test_tensors.py",
    ),
    Mutation(
        "np_compile/replay/plan.py",
        "            written = written or bool(program.mutates)",
        "            pass",
        "replay/test_arrays.py replay/test_tensors.py",
    ),
    Mutation(
        "shim/_index_plan.py",
        "found.append(~part if first + k in p.flip else part)",
        "found.append(p.view.shape[first + k] - 1 - part if first + k in p.flip else part)",
        "shim/test_indexing.py",
    ),
    Mutation(
        "shim/_index_plan.py",
        "        if low < -n or high >= n:",
        "        if low < -n - 1 or high >= n:",
        "shim/test_indexing.py",
    ),
    Mutation(
        "shim/_assigned.py",
        "        if single and value._scalar and",
        "        if value._scalar and",
        "shim/test_indexing.py shim/test_special_values.py capture/test_stored_numbers.py",
    ),
    Mutation(
        "shim/_assigned.py",
        "        fits = (whole >= low) & (whole < float(high + 1))",
        "        fits = (whole >= low) & (whole <= float(high + 1))",
        "shim/test_indexing.py shim/test_special_values.py capture/test_stored_numbers.py",
    ),
    Mutation(
        "shim/_selection.py",
        '    last = last.scatter_reduce(dim, index, order, "amax")',
        '    last = last.scatter_reduce(dim, index, order, "amin", include_self=False)',
        "shim/test_indexing.py shim/test_sorting.py shim/test_views.py",
    ),
    Mutation(
        "shim/_sorting.py",
        "torch.where(index < 0, n, index)",
        "torch.where(index < 0, index + n, index)",
        "capture/test_stored_numbers.py",
    ),
    Mutation(
        "np_compile/reader/offload.py",
        "m.host, m.away = m.host and left, not (m.host and left)",
        "m.host, m.away = True, True",
        "reader/test_loops_on_device.py",
    ),
    Mutation(
        "np_compile/reader/offload.py",
        "            for m, tensor in saved if left else ():\n",
        "            for m, tensor in ():\n",
        "reader/test_loops_on_device.py",
    ),
    Mutation(
        "np_compile/reader/offload.py",
        "            if m.made:  # the memory goes with it\n",
        "            if True:\n",
        "reader/test_loops_on_device.py",
    ),
    Mutation(
        "np_compile/reader/offload.py",
        "            elif region.touches:\n",
        "            elif False:\n",
        "reader/test_loops_on_device.py",
    ),
    Mutation(
        "np_compile/reader/region.py",
        "            site = region.sites[number]\n            offload.settle()\n",
        "            site = region.sites[number]\n",
        "reader/test_loops_on_device.py",
    ),
    Mutation(
        "np_compile/reader/kernels.py",
        "    if writes or not all(map(_COPY.match, after)):\n",
        "    if not all(map(_COPY.match, after)):\n",
        "reader/test_loops_on_device.py",
    ),
    Mutation(
        "np_compile/reader/kernels.py",
        "    if writes or not all(map(_COPY.match, after)):\n",
        "    if writes:\n",
        "reader/test_loops_on_device.py",
    ),
    Mutation(
        "np_compile/reader/kernels.py",
        "            if copy is None or copy[2] not in passed:\n                return None\n",
        "            if copy is None or copy[2] not in passed:\n                continue\n",
        "reader/test_loops_on_device.py",
    ),
    Mutation(
        "np_compile/reader/kernels.py",
        "    return __mul64hi(a, b) != *product >> 63;\n",
        "    return 0;\n",
        "reader/test_loops_on_device.py",
    ),
    Mutation(
        "np_compile/reader/recursion.py",
        "    steady = dict.fromkeys(x.buf for _, x in r.steady) if whole else ()\n",
        "    steady = ()\n",
        "reader/test_recursion.py",
    ),
    Mutation(
        "np_compile/reader/recursion.py",
        "    r.frames[0].env |= {name: v.load(r) for name, v in bound.items()}\n",
        "",
        "reader/test_recursion.py",
    ),
    Mutation(
        "np_compile/reader/recursion.py",
        "    rt->left = b;\n",
        "",
        "reader/test_recursion.py",
    ),
    Mutation(
        "np_compile/reader/recursion.py",
        "            known.gives = _settled(_joined(before, of, q))\n",
        "            known.gives = of\n",
        "reader/test_recursion.py",
    ),
    Mutation(
        "np_compile/reader/iterators.py",
        "for j in range(i, len(items)):",
        "for j in range(i + 1, len(items)):",
        "reader/test_iterators.py",
    ),
    Mutation(
        "np_compile/reader/iterators.py",
        "if k != i and k != j:",
        "if k != i:",
        "reader/test_iterators.py",
    ),
    Mutation(
        "np_compile/reader/iterators.py",
        "yield first[i], second[j], third[k]",
        "yield first[i], third[k], second[j]",
        "reader/test_iterators.py",
    ),
    Mutation(
        "np_compile/reader/iterators.py",
        "if found is not None and not words else None",
        "if found is not None else None",
        "reader/test_iterators.py",
    ),
    Mutation(
        "np_compile/reader/functions/ufunc_methods.py",
        '    if own != other or not np.can_cast(dtypes[-1], a.dtype, "same_kind"):',
        "    if own != other:",
        "reader/test_as_programs_have_them.py",
    ),
    Mutation(
        "np_compile/reader/functions/ufunc_methods.py",
        "        if isinstance(x, Arr) and (a.roots & x.roots or ANYWHERE in a.roots | x.roots):",
        "        if False:",
        "reader/test_as_programs_have_them.py",
    ),
    Mutation(
        "np_compile/reader/functions/ufunc_methods.py",
        "                common_extent_of_product(r, d, n)\n",
        "                pass\n",
        "reader/test_as_programs_have_them.py",
    ),
    Mutation(
        "np_compile/reader/functions/ufunc_methods.py",
        "[*whole, *[Known(None)] * y.ndim]",
        "[*whole, Known(None)]",
        "reader/test_as_programs_have_them.py",
    ),
)
