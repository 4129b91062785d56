"""The differentiable functions: arguments with which each is checked against finite differences.

`docs/coverage.md` calls a function differentiable where it is in this table. Functions that are
constant between jumps are, too: their gradient is zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_rng = np.random.default_rng(0)
A = _rng.uniform(0.2, 0.8, (3, 3)) + np.eye(3)
B = _rng.uniform(0.2, 0.8, (3, 3))
U, V, W = A[0], B[1], B[2]
_MASK = V > 0.5

# Arguments, and the functions that are checked with them. Arrays of floats are differentiated.
_WITH: tuple[tuple[tuple, str], ...] = (
    (
        (A,),
        """abs absolute amax amin angle arcsinh arctan around array asanyarray asarray
        asarray_chkfinite ascontiguousarray asfortranarray asinh atan atleast_1d atleast_2d
        atleast_3d average block broadcast_arrays cbrt ceil clip column_stack concat concatenate
        conj conjugate copy corrcoef cos cosh cov cumprod cumsum deg2rad degrees diag diagflat
        diagonal diff dstack ediff1d exp exp2 expm1 fabs fix flip fliplr flipud floor frexp gradient
        histogram histogram_bin_edges hstack i0 log log10 log1p log2 matrix_transpose max mean
        median meshgrid min modf nan_to_num nancumprod nancumsum nanmax nanmean nanmedian nanmin
        nanprod nanstd nansum nanvar negative permute_dims positive prod ptp rad2deg radians ravel
        real real_if_close reciprocal rint rot90 round row_stack sign sin sinc sinh sort spacing
        sqrt square squeeze stack std sum tan tanh trace transpose trapezoid tril trim_zeros triu
        trunc unique unique_all unique_counts unique_inverse unique_values unstack unwrap var vstack
        linalg.cond linalg.det linalg.diagonal linalg.eig linalg.eigvals linalg.inv
        linalg.matrix_norm linalg.matrix_transpose linalg.norm linalg.pinv linalg.qr linalg.slogdet
        linalg.svd linalg.svdvals linalg.trace linalg.vector_norm fft.fft fft.fft2 fft.fftn
        fft.fftshift fft.hfft fft.ifft fft.ifft2 fft.ifftn fft.ifftshift fft.ihfft fft.irfft
        fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftn""",
    ),
    ((A + 1,), "acosh arccosh"),
    ((B,), "acos arccos arcsin arctanh asin atanh"),
    ((U,), "cumulative_prod cumulative_sum ix_ vander"),
    (
        (U, V),
        """add append arctan2 atan2 convolve copysign correlate cross divide divmod dot
        float_power floor_divide fmax fmin fmod full_like geomspace heaviside hypot
        inner intersect1d kron linspace logaddexp logaddexp2 logspace matmul maximum minimum mod
        multiply nanpercentile nanquantile nextafter outer percentile polyval pow power quantile
        remainder setdiff1d setxor1d subtract true_divide union1d vdot vecdot linalg.cross
        linalg.matmul linalg.vecdot""",
    ),
    (
        (A, B),
        "matvec tensordot vecmat linalg.lstsq linalg.solve linalg.tensordot",
    ),
    ((A, U), "linalg.tensorsolve"),
    ((A, 3), "array_split hsplit split vsplit"),
    (([A, B],), "linalg.multi_dot"),
    ((V, np.sort(U), W), "interp"),
    ((_MASK, U, V), "where"),
    ((_MASK, U), "extract"),
    (
        (A, 1),
        """delete expand_dims ldexp pad partition repeat resize roll rollaxis take tile
        linalg.matrix_power linalg.tensorinv""",
    ),
    ((A, 9), "reshape"),
    ((A, 2, 0), "lib.stride_tricks.sliding_window_view"),
    ((A, (2, 2, 2), (16, 8, 8)), "lib.stride_tricks.as_strided"),
    ((A, (2, 3, 3)), "broadcast_to"),
    ((A, 0, 1), "insert moveaxis swapaxes"),
    ((A @ A.T,), "linalg.eigh linalg.eigvalsh"),
)
TABLE: dict[str, tuple[Any, ...]] = {
    name: arguments
    for arguments, names in _WITH
    for name in names.split()
    if name != "row_stack" or hasattr(np, name)  # gone from NumPy 2.5 on
}
# Of these torch has the derivatives from 2.12 on.
LATER = frozenset(("linalg.eig", "nextafter", "spacing"))
# Of these the matrix is made symmetric first: the checks change one element at a time.
SYMMETRIC = frozenset(("linalg.eigh", "linalg.eigvalsh"))
