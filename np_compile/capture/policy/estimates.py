"""What NumPy and the recorder take for calls, by how many they are and how many bytes they touch:
seconds."""

from __future__ import annotations

_CALL, _BYTE = 3e-7, 5e-12  # no less,
_USUAL_CALL, _USUAL_BYTE = 1e-6, 2e-10  # as a rule,
_LONG_CALL, _LONG_BYTE = 1e-5, 1e-9  # and seldom more
_SEGMENT, _RECORDED = 1e-5, 2e-6  # to run a known segment, and to look up each of its calls


def least_seconds(calls: int, touched: int) -> float:
    """What NumPy takes at least for so many calls that touch so many bytes."""
    return calls * _CALL + touched * _BYTE


def likely_seconds(calls: int, touched: int) -> float:
    """What NumPy takes for so many calls that touch so many bytes, as a rule."""
    return calls * _USUAL_CALL + touched * _USUAL_BYTE


def most_seconds(calls: int, touched: int) -> float:
    """What NumPy takes at most, in all likelihood, for so many calls that touch so many bytes."""
    return calls * _LONG_CALL + touched * _LONG_BYTE


def recorded_seconds(calls: int) -> float:
    """What a segment of so many calls takes at least that is recorded again, beside its kernels."""
    return _SEGMENT + calls * _RECORDED
