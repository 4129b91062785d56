"""The table of functions against NumPy's namespace: names, signatures, reachability."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from np_compile.shim._normalize import Array, function

from .support import assert_matches, shim

TABLE, Kind = shim.TABLE, shim.Kind
FUNCTIONS = sorted(n for n in TABLE if not n.startswith("ndarray.") and "#" not in n)
METHODS = sorted(n.removeprefix("ndarray.") for n in TABLE if n.startswith("ndarray."))
METHODS = [n for n in METHODS if not n.startswith("_") or n.startswith("__")]


def _numpy(name):
    found = np
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _signature(f):
    try:
        return inspect.signature(f)
    except (ValueError, TypeError):
        return None


@pytest.mark.parametrize("name", FUNCTIONS)
def test_reachable(name):
    found = shim
    for part in name.split("."):
        found = getattr(found, part)
    row = TABLE[name]
    assert found is row.function or _row_behind(found) == row.function
    assert isinstance(row.kind, Kind)
    assert callable(_numpy(name)), f"NumPy has no {name}"


def _row_behind(public):
    return public._row if isinstance(public, shim.ufunc) else public.__wrapped__


# Parameters that were deprecated when the shim began, and that later versions of NumPy lack
DEPRECATED = {"corrcoef": ("bias", "ddof"), "reshape": ("newshape",)} | dict.fromkeys(
    ("quantile", "percentile", "nanquantile", "nanpercentile"), ("interpolation",)
)

# Parameters that later versions of NumPy have: a call with one of them runs there
ADDED = {"lib.stride_tricks.as_strided": ("check_bounds",)}


def _settled(name, signature):
    """NumPy's signature as of the versions that lack what is deprecated, and what is added."""
    gone = {*DEPRECATED.get(name, ()), *ADDED.get(name, ())} & set(signature.parameters)
    kept = [p for n, p in signature.parameters.items() if n not in gone]
    if "newshape" in gone:  # for its sake `shape` has a default
        kept = [p.replace(default=p.empty) if p.name == "shape" else p for p in kept]
    return signature.replace(parameters=kept)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signature(name):
    theirs, ours = _signature(_numpy(name)), _signature(TABLE[name].function)
    theirs = theirs and _settled(name, theirs)
    if theirs is None or ours is None or name.partition(".")[2] in ("reduce", "outer"):
        return
    if TABLE[name].kind is Kind.IMPURE and set(ours.parameters) == {"args", "kwargs"}:
        return  # handed on to NumPy's generator as it came
    wild = {p.kind for p in theirs.parameters.values()} & {
        inspect.Parameter.VAR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    }
    if wild or "like" in theirs.parameters:
        theirs = theirs.replace(parameters=[p for n, p in theirs.parameters.items() if n != "like"])
    if wild:
        return
    told = {n: (p.kind, _default(p)) for n, p in theirs.parameters.items()}
    given = {n: (p.kind, _default(p)) for n, p in ours.parameters.items() if n != "like"}
    assert list(given) == list(told)
    assert given == told


def _default(parameter):
    value = parameter.default
    return repr(value) if value is not parameter.empty else ""


@pytest.mark.parametrize("name", ADDED)
def test_an_added_parameter_is_numpys_to_judge(name):
    added = dict.fromkeys(ADDED[name], True)
    with shim.strict(False):
        assert_matches(name, np.arange(4.0), (2,), (8,), meta=False, **added)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_data_parameters_exist(name):
    row = TABLE[name]
    signature = _signature(row.function)
    if signature is not None:
        assert row.data <= set(signature.parameters)


@pytest.mark.parametrize("name", METHODS)
def test_methods(name):
    assert hasattr(np.ndarray, name) or name in ("__cuda_array_interface__", "__round__")
    assert name in dir(shim.ndarray)


def test_documented():
    named = {n: row for n, row in TABLE.items() if "#" not in n}  # the others are the user's
    missing = [
        n for n, row in named.items() if "__" not in n and not (row.function.__doc__ or "").strip()
    ]
    assert missing == []


def test_submodules_and_constants():
    for module in ("linalg", "fft", "random"):
        assert inspect.ismodule(getattr(shim, module))
    for name in ("pi", "e", "inf", "newaxis", "euler_gamma", "float64", "int32", "bool_", "dtype"):
        assert getattr(shim, name) is getattr(np, name)
    assert np.isnan(shim.nan)
    assert set(shim.__all__) <= set(dir(shim))


def test_missing_names():
    for module in (shim, shim.linalg):
        with pytest.raises(
            AttributeError, match=r"no attribute '(linalg\.)?spam' \(nor has NumPy\)"
        ):
            _ = module.spam
    assert not hasattr(shim, "spam")


GENERATED = [
    n for n, row in TABLE.items() if "_compiled" in getattr(row.function, "__globals__", {})
]


@pytest.mark.parametrize("name", GENERATED)
def test_the_code_of_each_row_can_be_generated(name):
    """A row's code is generated by its first call; nobody should meet a fault of it there."""
    public = TABLE[name].function
    assert public.__globals__["_compiled"]() is public
    code, stars = public.__code__, (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(public).parameters.values()
    named = {p.name for p in parameters if p.kind not in stars}
    assert set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]) == named


def test_an_annotation_that_nothing_handles():
    def wrong(a: Array, b: spam):  # noqa: F821
        """Never entered."""

    with pytest.raises(TypeError, match=r"wrong: nothing handles parameter 'b': spam"):
        function()(wrong)

    def bare(a):
        """Never entered."""

    with pytest.raises(TypeError, match=r"bare: nothing handles parameter 'a'"):
        function()(bare)
    assert "wrong" not in TABLE


def test_functions_are_known_by_what_stays_there():
    """What is known by its identity is held: nothing else gets it."""
    from np_compile.shim import _namespace

    assert all(id(own) == key for key, (own, _) in _namespace._ROWS.items())
