"""Libraries written for the array API, on the shim's arrays."""

from __future__ import annotations

import os

import numpy as np
import pytest

from .. import fresh
from .support import assert_same, from_shim, shim, to_shim

pytestmark = pytest.mark.handing

X = np.linspace(0.1, 0.9, 12).reshape(3, 4)

# SciPy and scikit-learn read SCIPY_ARRAY_API when they are imported: another process. Each line is
# an expression of a namespace `m` and arrays of it: rows, matrix, labels. Of an even number of
# points `simpson` takes single numbers for arrays from SciPy 1.18 on, see docs/deviations.md.
SCIPY = """
scipy.special.logsumexp(v)
scipy.special.expit(v)
scipy.special.softmax(a, axis=1)
scipy.special.xlogy(v, v)
scipy.stats.zscore(a, axis=1)
scipy.stats.skew(a, axis=1)
scipy.stats.moment(a, 3, axis=1)
scipy.fft.fft(v)
scipy.fft.irfft(scipy.fft.rfft(v))
scipy.fft.dct(v)
scipy.cluster.vq.whiten(a)
scipy.integrate.trapezoid(a)
scipy.integrate.simpson(v[1:])
scipy.ndimage.gaussian_filter(a, 1.0)
scipy.signal.detrend(v)
scipy.signal.hilbert(v)
scipy.signal.convolve(v, v)
scipy.signal.lfilter(m.asarray([1.0, 0.5]), m.asarray([1.0, 0.2]), v)
scipy.spatial.transform.Rotation.from_rotvec(v[:3]).as_matrix()
sklearn.preprocessing.MinMaxScaler().fit_transform(a)
sklearn.preprocessing.Normalizer().fit_transform(a)
sklearn.decomposition.PCA(2, svd_solver="full").fit_transform(a)
sklearn.discriminant_analysis.LinearDiscriminantAnalysis().fit(a, y).predict(a)
sklearn.metrics.accuracy_score(y, y)
sklearn.metrics.r2_score(v, v * v)
"""
PROGRAM = """
import sys, warnings
import numpy as np
import scipy.cluster, scipy.fft, scipy.integrate, scipy.ndimage, scipy.signal, scipy.special
import scipy.spatial, scipy.stats
import sklearn.decomposition, sklearn.discriminant_analysis, sklearn.metrics, sklearn.preprocessing
import np_compile.shim as shim

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
matrix = rng.normal(size=(12, 4))
given = matrix[:, 0], matrix, (matrix[:, 0] > 0).astype(int)
with sklearn.config_context(array_api_dispatch=True):
    for line in sys.argv[1].strip().splitlines():
        expected, got = (
            eval(line, globals(), dict(zip("mvay", (m, *map(m.asarray, given)))))
            for m in (np, shim)
        )
        assert isinstance(expected, np.ndarray) == (type(got) is shim.ndarray), line
        np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-9, atol=1e-12, err_msg=line)
        print(line)
"""


def test_scipy_and_scikit_learn():
    pytest.importorskip("scipy", "1.17")
    pytest.importorskip("sklearn", "1.8")
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = fresh.run(PROGRAM, SCIPY, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == SCIPY.split()


def test_array_api_compat():
    compat = pytest.importorskip("array_api_compat")
    x = to_shim(X)
    assert compat.array_namespace(x) is shim
    assert compat.is_array_api_obj(x)
    assert compat.device(x) == "cpu"
    assert compat.size(x) == X.size
    assert compat.to_device(x, "cpu") is x


def test_einops():
    einops = pytest.importorskip("einops.array_api")
    x = to_shim(X)
    assert_same(einops.rearrange(x, "(a b) c -> c b a", a=1), X.T.reshape(4, 3, 1))
    assert_same(einops.reduce(x, "a (b c) -> b", "mean", b=2), X.reshape(3, 2, 2).mean((0, 2)))
    assert_same(einops.repeat(x, "a b -> a b c", c=2), np.stack([X, X], -1))
    packed, shapes = einops.pack([x, x[0]], "* b")
    assert_same(from_shim(packed), np.concatenate([X, X[:1]]))
    assert [from_shim(p).shape for p in einops.unpack(packed, shapes, "* b")] == [(3, 4), (4,)]
