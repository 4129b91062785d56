"""Calls that NumPy refuses: the class and the text of its exception."""

from __future__ import annotations

import numpy as np
import pytest

from .support import assert_matches

A = np.array([[1, 2], [3, 4]])
EDGES = np.array([np.nan, 1.0, np.inf])
NONE = np.zeros((0, 2, 3), int)
DEEP = np.ones((1,) * 64)


def _assign(a, index):
    a[index] = 0


# Programs of a namespace and of arrays of it.
CALLS = {
    "put_into_a_list": (lambda m: m.put([1, 2], [0], 5),),
    "copy_to_a_list": (lambda m: m.copyto([1, 2], [0]),),
    "copy_safely": (lambda m, a: m.copyto(a, 3.0, casting="safe"), A),
    "copy_a_number_alike": (lambda m, a: m.copyto(a, 3, casting="equiv"), A.astype("u1")),
    "copy_a_float_alike": (lambda m, a: m.copyto(a, 3.0, casting="equiv"), A.astype("f4")),
    "copy_a_bool_alike": (lambda m, a: m.copyto(a, True, casting="no"), A),
    "copy_a_large_int": (lambda m, a: m.copyto(a, 2**64 - 1, casting="unsafe"), A > 2),
    "no_number_for_nan": (lambda m, a, b: m.nan_to_num(a, nan=b), EDGES, np.array([1j])),
    "no_number_for_infinity": (lambda m, a, b: m.nan_to_num(a, posinf=b), EDGES, np.zeros(2)),
    "median_of_merged_axes": (lambda m, a: m.median(a, axis=()), NONE),
    "quantile_of_merged_axes": (lambda m, a: m.quantile(a, 0.5, axis=(1, 2)), NONE),
    "shifts_of_no_axis": (lambda m, a: m.roll(a, (), axis=()), A[0, 0].reshape(())),
    "shifts_of_two_axes": (lambda m, a, b: m.roll(a, b), A, A),
    "initial_array": (lambda m, a, b: m.sum(a, initial=b), A, A[0]),
    "edge_array": (lambda m, a, b: m.interp(a, [0, 1], [1, 2], left=b), A, A[0]),
    "dtype_array": (lambda m, a: m.ones(3, dtype=a), A),
    "keepdims_float": (lambda m, a: a.sum(keepdims=1.0), A),
    "keepdims_array": (lambda m, a, b: a.mean(keepdims=b), A, A[0, :1]),
    "axis_bool": (lambda m, a: m.cumsum(a, axis=True), A),
    "axis_bool_of_argmax": (lambda m, a: m.argmax(a, axis=True), A),
    "axis_bool_of_take": (lambda m, a: m.take(a, 0, axis=True), A),
    "partition_by_bool": (lambda m, a: m.partition(a, True), A),
    "split_at_floats": (lambda m, a, b: m.split(a, b), A, np.array([1.0])),
    "split_at_rows": (lambda m, a, b: m.array_split(a, b), A, A),
    "put_at_uint64": (lambda m, a, b: m.put(a, b, 1), A, A[0].astype("u8")),
    "choose_by_uint64": (lambda m, a, b: m.choose(b, [a, a]), A, (A // 3).astype("u8")),
    "resize_by_text": (lambda m, a: a.copy().resize("hi"), A),
    "resize_refcheck": (lambda m, a: a.copy().resize(4, refcheck="hi"), A),
    "signature_of_none": (lambda m: m.add(3, 4, signature=(None,)),),
    "take_at_a_large_int": (lambda m, a: m.take(a, 2**64 - 1), A),
    "put_at_large_ints": (lambda m, a: a.put([2**64 - 1], 1), A),
    "take_along_a_list": (lambda m, a: m.take_along_axis(a[0], [1], 0), A),
    "take_along_a_flat_list": (lambda m, a: m.take_along_axis(a, [1], None), A),
    "take_along_axis_of_a_list": (lambda m, a, b: m.take_along_axis([1, 2], b, 0), A, A[0] - 1),
    "put_along_a_list": (lambda m, a: m.put_along_axis(a[0], [1], 3, 0), A),
    "rounded_by_python": (lambda m, a: round(a, 1), A),
    "choices": (lambda m, a: m.choose(a, [0] * 65), A),
    "table_of_far_values": (
        lambda m, a, b: m.isin(a, b, kind="table"), A, np.array([-1, 2**63 - 1]),
    ),
    "table_of_narrow_values": (
        lambda m, a, b: m.isin(a, b, kind="table"), A, np.array([-128, 127], "i1"),
    ),
    "compress_out": (
        lambda m, a, o: m.compress([True, False], a, axis=1, out=o), A, np.zeros((2, 1), "f4"),
    ),
    "take_out": (lambda m, a, o: m.take(a, [0], out=o), A, np.zeros(1, "f4")),
    "einsum_order": (lambda m: m.einsum("", 0, order="W"),),
    "einsum_label": (lambda m, a: m.einsum(a, [0, 52], a, [52, 2], [0, 2]), A),
    "einsum_negative_label": (lambda m, a: m.einsum(a, [-1, 5], a, [5, 2], [-1, 2]), A),
    "copy_word": (lambda m: m.array([1, 2], copy="always"),),
    "ndmin": (lambda m: m.array([1], ndmin=65),),
    "new_axes": (lambda m, a: a[(None,) * 70], A),
    "index_arrays": (lambda m, a: a[(m.array([0]),) * 64], DEEP),
    "masks": (lambda m, a: a[(True,) * 80], np.ones(1)),
    "result_axes": (lambda m, a: a[(True,) * 33], DEEP),
    "assigned_axes": (lambda m, a: _assign(a, (None,) * 70), A),
    "array_as_bound": (lambda m, a: a[a:a:a], np.array([[[1]]])),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_refused_as_in_numpy(call):
    program, *arrays = CALLS[call]
    assert_matches(program, *arrays, meta=False)
