"""What modules of Python's own are given: numbers of NumPy's, where their C asks for floats."""

import contextlib
import datetime
import json
import sqlite3
import time
from decimal import Decimal
from json import dumps

import numpy as np
import pytest

from ..support import check


def notes_floats(x, log):
    loss = (x * 2).sum()
    log.append(json.dumps({"loss": loss, "each": [x[0] * 2, (x.max(),)]}))
    log.append(dumps(x * 1.0, default=lambda a: a.tolist()))
    time.sleep(loss * 0)
    log.append(datetime.timedelta(seconds=loss))
    log.append(Decimal(x.sum()))
    log.append(Decimal.from_float(x.mean()))
    log.append(datetime.datetime.fromtimestamp(loss, datetime.UTC))
    return x + 1


def compares_classes(x):
    span = datetime.timedelta(3)
    return x * 2, type(span) is datetime.timedelta, isinstance(span, datetime.timedelta)


def compares_a_name(x):
    number = Decimal(3)
    return x * 2, type(number) is Decimal, datetime.timedelta(seconds=x.sum())


def made_a_base(x):
    class Span(datetime.timedelta):
        pass

    return x * 2, Span(1).days


@pytest.mark.parametrize("f", [compares_classes, compares_a_name, made_a_base])
def test_classes_of_pythons_own_are_themselves(f):
    check(f, np.arange(3.0))


def test_float64_is_a_float_to_pythons_own_modules():
    """Their C asks for the class, which no stand-in has."""
    check(notes_floats, np.arange(1.0, 4.0), [])


def test_float64_is_a_float_to_a_database():
    def f(x):
        with contextlib.closing(sqlite3.connect(":memory:")) as base:
            base.execute("create table t (a, b)")
            base.execute("insert into t values (?, ?)", ((x * 2).sum(), x[1] * 3))
            base.execute("insert into t values (:a, :b)", {"a": x.max(), "b": 1})
            return base.execute("select a, typeof(a), b from t").fetchall(), x + 1

    check(f, np.arange(1.0, 4.0))


def test_an_array_has_an_interface_to_who_asks_for_it_by_name():
    def f(x):
        y = x * 2
        return hasattr(y, "__array_interface__"), y + 1

    check(f, np.arange(3.0))
