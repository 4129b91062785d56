"""The table of functions against NumPy's namespace: names, signatures, reachability."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from .support import shim

TABLE, Kind = shim.TABLE, shim.Kind
FUNCTIONS = sorted(n for n in TABLE if not n.startswith("ndarray."))
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
    assert found == row.function
    assert isinstance(row.kind, Kind)
    assert callable(_numpy(name)), f"NumPy has no {name}"


# Parameters that were deprecated when the shim began, and that later versions of NumPy lack
DEPRECATED = {"corrcoef": ("bias", "ddof"), "reshape": ("newshape",)} | dict.fromkeys(
    ("quantile", "percentile", "nanquantile", "nanpercentile"), ("interpolation",)
)


def _without_deprecated(name, signature):
    """NumPy's signature as of the versions that lack the deprecated parameters."""
    gone = set(DEPRECATED.get(name, ())) & set(signature.parameters)
    kept = [p for n, p in signature.parameters.items() if n not in gone]
    if "newshape" in gone:  # for its sake `shape` has a default
        kept = [p.replace(default=p.empty) if p.name == "shape" else p for p in kept]
    return signature.replace(parameters=kept)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signature(name):
    theirs, ours = _signature(_numpy(name)), _signature(TABLE[name].function)
    theirs = theirs and _without_deprecated(name, theirs)
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
    missing = [
        n for n, row in TABLE.items() if "__" not in n and not (row.function.__doc__ or "").strip()
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
    with pytest.raises(AttributeError, match=r"numpy\.busday_count is not in the shim; a compiled"):
        _ = shim.busday_count
    with pytest.raises(AttributeError, match=r"has no attribute 'spam' \(nor has NumPy\)"):
        _ = shim.spam
    with pytest.raises(AttributeError, match=r"has no attribute 'spam' \(nor has NumPy\)"):
        _ = shim.linalg.spam
    assert not hasattr(shim, "spam")
