"""Programs that call other libraries, which get NumPy arrays and call back."""

import functools

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import PIL.Image
import pytest
import scipy
import scipy.cluster.vq
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.sparse
import scipy.sparse.linalg
import scipy.spatial
import scipy.special
import scipy.stats
import sklearn.cluster
import sklearn.linear_model
import sklearn.metrics
import sklearn.model_selection
import sklearn.neighbors
import sklearn.preprocessing
import sklearn.tree

import np_compile

from ..support import check, data

matplotlib.use("Agg")

PROGRAMS = {}


def case(*args, **options):
    """Enter a program, with the arguments that it is called with."""

    def enter(f):
        PROGRAMS[f.__name__] = f, args, options
        return f

    return enter


@case(data(6))
def minimize(x):
    return scipy.optimize.minimize(
        lambda p: ((p - x) ** 2).sum() + np.abs(p).mean(), np.zeros(6), method="BFGS"
    ).x.round(3)


@case(data(3))
def ode(x):

    def f(t, y):
        return -np.abs(x) * y + np.sin(t)

    s = scipy.integrate.solve_ivp(f, (0, 1), np.ones(3), t_eval=np.linspace(0, 1, 5))
    return (s.y, s.t)


@case(data(3))
def roots(x):
    return (
        scipy.integrate.quad(lambda t: float(np.sum(x) * t), 0, 1)[0],
        scipy.optimize.brentq(lambda t: t - x.sum(), -50, 50),
        scipy.optimize.fsolve(lambda v: v - x, np.zeros(3)),
    )


@case(data(40))
def filters(x):
    b, a = scipy.signal.butter(2, 0.3)
    y = scipy.signal.lfilter(b, a, x)
    f, p = scipy.signal.welch(y, nperseg=16)
    return (
        scipy.signal.filtfilt(b, a, x),
        f,
        p,
        scipy.signal.find_peaks(x)[0],
        scipy.signal.convolve(x, [1, 2], "same"),
    )


@case(data(8, 8))
def images(x):
    return (
        scipy.ndimage.label(x > 0)[0],
        scipy.ndimage.convolve(x, np.ones((3, 3))),
        scipy.ndimage.median_filter(x, 3),
        scipy.ndimage.zoom(x, 2),
        scipy.ndimage.map_coordinates(x, [[0.5, 1], [1, 2]]),
    )


@case(data(6, 6))
def sparse_solve(x):
    A = scipy.sparse.csr_matrix(np.where(x > 0, x, 0))
    B = A @ A.T + scipy.sparse.eye(6)
    y = scipy.sparse.linalg.spsolve(B.tocsc(), x[0])
    return (y, B.toarray(), A.dot(x[1]), (A * 2).sum(), A.T @ x)


@case(data(10, 2))
def neighbours(x):
    t = scipy.spatial.cKDTree(x)
    d, i = t.query(x, k=2)
    h = scipy.spatial.ConvexHull(x)
    return (
        d,
        i,
        h.vertices,
        scipy.spatial.distance.cdist(x, x),
        scipy.spatial.Delaunay(x).simplices.shape,
    )


@case(data(10))
def splines(x):
    s = scipy.interpolate.CubicSpline(np.arange(10), x)
    r = scipy.interpolate.UnivariateSpline(np.arange(10), x, s=0)
    return (
        s(np.linspace(0, 9, 20)),
        s.derivative()(2.5),
        r(3.3),
        scipy.interpolate.griddata(
            (np.arange(10.0), x), x, (np.arange(3.0), x[:3]), method="nearest"
        ),
    )


@case(data(30))
def statistics(x):
    return (
        scipy.stats.ttest_1samp(x, 0).statistic,
        scipy.stats.linregress(np.arange(30), x).slope,
        scipy.stats.gaussian_kde(x)(np.array([0.0, 1.0])),
        scipy.stats.pearsonr(x, x[::-1])[0],
        scipy.stats.norm.fit(x),
        scipy.stats.describe(x).variance,
        scipy.stats.mode(np.round(x)).mode,
    )


@case(np.abs(data(6)) + 1)
def special_functions(x):
    return (
        scipy.special.gamma(x),
        scipy.special.erf(x),
        scipy.special.logsumexp(x),
        scipy.special.softmax(x),
        scipy.special.expit(x),
        scipy.special.jv(0, x),
        scipy.special.xlogy(x, x),
    )


@case(data(6, 6))
def transforms(x):
    return (
        scipy.fft.fft2(x),
        scipy.fft.dct(x),
        scipy.linalg.expm(x * 0.1),
        scipy.linalg.solve(x + np.eye(6) * 9, x[0]),
        scipy.linalg.lu(x)[2],
        scipy.linalg.cholesky(x @ x.T + np.eye(6)),
        scipy.linalg.eigh(x + x.T)[0],
        scipy.linalg.block_diag(x, x).shape,
        scipy.linalg.toeplitz(x[0]),
    )


@case(data(20, 3), np.arange(20) % 2)
def regression(X, y):
    m = sklearn.linear_model.LogisticRegression().fit(X, y)
    r = sklearn.linear_model.Ridge().fit(X, X[:, 0])
    s = sklearn.preprocessing.StandardScaler().fit(X)
    return (
        m.coef_.round(4),
        m.predict(X),
        r.predict(X * 2),
        s.transform(X),
        sklearn.metrics.accuracy_score(y, m.predict(X)),
        sklearn.tree.DecisionTreeClassifier(random_state=0).fit(X, y).predict(X),
    )


@case(data(20, 3))
def clustering(X):
    k = sklearn.cluster.KMeans(2, n_init=1, random_state=0).fit(X)
    n = sklearn.neighbors.NearestNeighbors(n_neighbors=2).fit(X)
    X[0] += 100
    return (
        k.labels_,
        n.kneighbors(X[1:3])[1],
        sklearn.model_selection.train_test_split(X, random_state=0)[0],
    )


@case((np.abs(data(8, 8)) * 80).astype(np.uint8))
def pictures(im):
    p = PIL.Image.fromarray(im)
    q = np.asarray(p.resize((4, 4)))
    im[0, 0] = 0
    return (q, np.array(p.rotate(90)), p.size, np.asarray(p)[0, 0])


@case(data(8))
def plots(x):
    fig, ax = plt.subplots()
    (line,) = ax.plot(x, x * 2)
    n, b, _ = ax.hist(x, bins=4)
    ax.imshow(np.outer(x, x))
    plt.close(fig)
    return (line.get_xdata(), n, b)


@case(data(12, 2))
def vector_quantization(x):
    c, d = scipy.cluster.vq.kmeans(x, x[:3])
    return (scipy.cluster.vq.vq(x, c)[0], c, d)


@case(data(5))
def masked_arrays(x):
    m = np.ma.masked_where(x > 0, x)
    n = np.ma.masked_invalid(np.log(x))
    return (
        m.mean(),
        m.count(),
        m * 2 + x,
        np.ma.average(m),
        m.compressed(),
        n.filled(0),
        np.ma.concatenate([m, m]).sum(),
        m.std(),
        (m > -1).sum(),
        np.ma.dot(m, m),
    )


@case(data(5))
def polynomials(x):
    P = np.polynomial.Polynomial(x)
    C = np.polynomial.chebyshev.chebfit(np.arange(5.0), x, 2)
    return (
        P.deriv().coef,
        P.integ()(1.0),
        P.roots(),
        C,
        np.polyval(x, 2.0),
        np.polyfit(np.arange(5.0), x, 2),
        np.roots(x),
        (P * P).coef,
        P(x),
    )


@case(data(5))
def numpys_submodules(x):
    return (
        np.char.upper(np.array(["a", "b"])),
        np.rec.fromarrays([x, x * 2], names="a,b").a,
        np.emath.sqrt(x),
        np.lib.scimath.log(x),
        np.busday_count("2020-01", "2020-02"),
        np.datetime64("2020") + np.timedelta64(int(abs(x[0]) * 10), "D"),
    )


# What the fits keep goes when garbage is collected, and the call records until then or not.
@case(data(5), plain="auto")
def fits(x):
    f = scipy.interpolate.interp1d(np.arange(5.0), x)
    g = scipy.optimize.curve_fit(lambda t, a, b: a * t + b, np.arange(5.0), x)[0]
    h = scipy.optimize.least_squares(lambda p: p[0] * np.arange(5.0) + p[1] - x, [0.0, 0.0]).x
    return (
        f([0.5, 1.5]),
        g,
        h,
        scipy.optimize.linprog([1, 1], A_ub=[[-1, -1]], b_ub=[-abs(x[0])]).fun,
        scipy.optimize.root(lambda v: v**3 - x, np.ones(5)).x.round(4),
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    f, args, options = PROGRAMS[name]
    check(f, *args, rtol=1e-6, **options)


def test_a_function_by_cython_gets_arrays():
    label = pytest.importorskip("scipy.ndimage._ni_label")._label
    assert type(label).__name__ == "cython_function_or_method"

    def f(x):
        found = np.zeros(x.shape, np.int32)
        n = label(np.sin(x) > 0, np.ones((3, 3), bool), found)
        return n, found + 1

    check(f, np.arange(20.0).reshape(4, 5))


class Decay:
    """A model whose methods are compiled, and called by a library in a compiled call."""

    def __init__(self, k):
        self.k = np.linspace(0, 1, 5) * k
        self.calls = 0

    @np_compile.compile(backend="eager")
    def __call__(self, t, y):
        self.calls += 1
        return -self.k * y

    @np_compile.compile(backend="eager")
    def by_elements(self, t, y):
        made = np.zeros(5)
        for i in range(5):
            made[i] = -self.k[i] * y[i] if y[i] > 0.2 else -0.1 * t
        return made

    @np_compile.compile(backend="eager")
    def changes(self, t, y):
        self.k[0] += 1
        self.k = self.k * 1.0
        return -y


def solved(f, y):
    return scipy.integrate.solve_ivp(f, (0, 1), y, max_step=0.5).y[:, -1]


def of_an_object(k):
    m = Decay(k)
    return solved(m, m.k * 2), m.calls, m.k


def of_a_loop(k):
    m = Decay(k)
    return solved(m.by_elements, m.k * 2)


def of_what_changes(k):
    m = Decay(k)
    return solved(m.changes, m.k * 2), m.k


def of_a_closure(k):
    w = np.linspace(0, 1, 5) * k

    def inner(y):
        return w * y

    @np_compile.compile(backend="eager")
    def f(t, y):
        return inner(y) + w[::-1]

    return solved(f, w * 2), w


def of_a_partial(k):
    w = np.linspace(0, 1, 5) * k
    return solved(functools.partial(with_weights, w=w), w * 2)


@np_compile.compile(backend="eager")
def with_weights(t, y, w):
    return w * y


@pytest.mark.parametrize(
    "f", [of_an_object, of_a_loop, of_what_changes, of_a_closure, of_a_partial]
)
def test_a_compiled_function_is_called_back_within_a_compiled_call(f):
    check(f, 2.0, make=lambda: f, rtol=1e-6)
