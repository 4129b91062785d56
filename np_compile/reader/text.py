"""Text and bytes, one after the other: `s[i]`, `for c in s`, `len(s)`, slices, comparisons.

A text that is gone through is a list of the code points of its characters (`Lst` with `made=str`),
bytes one of integers; C copies them out of Python's object when the region begins. One character is
a number of kind "char". A text that nothing asks a part of stays what it is: a constant of the
region (`mode == "wrap"`), which is taken as characters when a part of it is asked for.
"""

from __future__ import annotations

from typing import Any

from .lists import allocated, contains, list_method, list_of
from .lists import joined as joined_lists
from .nest import kept
from .read import Again, Reader, int_constant
from .unions import binary, unlike
from .values import CHAR, Known, Lst, Num, Unreadable, Value, char, letters, python

_TEXTS = (str, bytes)
_BYTE = Num("", "i64", ("int",), low=0, high=255)
_LONG = 4096  # characters of a constant that is written out
_ASCII = 128


def is_text(x: Value) -> bool:
    """Whether a value is a text, or bytes, of any length."""
    if isinstance(x, Known):
        return type(x.value) in _TEXTS
    return isinstance(x, Lst) and x.made in _TEXTS


def is_char(x: Value) -> bool:
    return isinstance(x, Num) and x.kind == "char"


def is_word(x: Value) -> bool:
    return isinstance(x, Num) and x.kind == "word"


def is_long(x: Value) -> bool:
    """Whether a value is a constant text that is no single character."""
    return isinstance(x, Known) and type(x.value) is str and len(x.value) != 1


def in_parts(r: Reader, x: Value) -> Value:
    """A text as its characters; anything else as it is."""
    if not isinstance(x, Known) or type(x.value) not in _TEXTS:
        return x
    path = r.entry.texts.get(x.value)
    if path is not None and ("list", "text", path) not in r.memory:
        r.memory["list", "text", path] = {}
        raise Again
    if len(x.value) > _LONG:
        raise Unreadable("a long text that is a constant")
    kind = type(x.value)
    codes = list(map(ord, x.value)) if kind is str else list(x.value)
    of = CHAR if kind is str else _BYTE
    made = allocated(r, of, int_constant(len(codes)), None, kind)
    if codes:
        ctype = "unsigned" if kind is str else "i64"
        size = 4 if kind is str else 8
        name = r.fresh("text")
        r.line(f"static const {ctype} {name}[] = {{{', '.join(map(str, codes))}}};")
        r.line(f"__builtin_memcpy({made.buf}->data, {name}, {len(codes) * size});")
    return made


def compared(r: Reader, op: str, a: Value, b: Value) -> Value | None:
    """A comparison of which one side is a text or a character; None of others."""
    if not any(is_text(x) or is_char(x) or is_word(x) for x in (a, b)):
        return None
    if isinstance(a, Known) and isinstance(b, Known):
        return None
    if is_word(a) or is_word(b):
        a, b = letters(a) or a, letters(b) or b
        if isinstance(a, Num) and isinstance(b, Num):
            return binary(r, op, a, b)
        raise Unreadable("one text or another, and another value")
    x: Any = char(a) or a
    y: Any = char(b) or b
    if is_char(x) and is_char(y):
        return binary(r, op, x, y)
    if op not in ("Eq", "NotEq"):
        raise Unreadable("texts of any length are put in an order")
    if is_char(x) or is_char(y):
        c, other = (x, y) if is_char(x) else (y, x)
        if not is_text(other):
            return _unlike(op, other)
        if isinstance(other, Known):
            return python(op == "NotEq")  # it is no single character
        test = f"({other.buf}->dims[0] == 1 && *(unsigned *){other.buf}->data == {c.text})"
        if other.made is not str:
            return python(op == "NotEq")
    else:
        if not (is_text(x) and is_text(y)):
            return _unlike(op, y if is_text(x) else x)
        x, y = in_parts(r, x), in_parts(r, y)
        if x.made is not y.made:
            return python(op == "NotEq")
        r.one_by_one()
        test = f"same_items({x.buf}, {y.buf})"
    found = r.named(test, "u8", "c")
    sign = "" if op == "Eq" else "!"
    return Num(f"({sign}{found})", "bool", ("bool",), low=0, high=1)


def _unlike(op: str, x: Value) -> Value | None:
    """A comparison of a text and what is none; None where that has a say in what it gives."""
    if isinstance(x, Known) and x.value is not None and type(x.value).__eq__ != object.__eq__:
        raise Unreadable("a comparison of a text and an object")
    return unlike(op, x) if isinstance(x, (Num, Known, Lst)) else None


def found_in(r: Reader, x: Value, text: Value) -> Value:
    """`x in text`."""
    c = char(x) or x
    if isinstance(text, Known) and isinstance(text.value, str) and is_char(c):
        if c.value is not None:
            return python(c.value in text.value)
        if len(text.value) <= 32:
            tests = [f"{c.text} == {ord(t)}" for t in dict.fromkeys(text.value)]
            test = " || ".join(tests)
            return Num(f"({test})" if tests else "0", "bool", ("bool",), low=0, high=1)
    text = in_parts(r, text)
    if text.made is str and is_char(c):
        return contains(r, text, c)
    if text.made is bytes:
        return contains(r, text, _byte(r, c))
    raise Unreadable("a text in another one")


def _byte(r: Reader, x: Value) -> Num:
    """An integer that is looked for in bytes: Python raises where it is none of a byte."""
    if not isinstance(x, Num) or not x.is_int:
        raise Unreadable("what is no integer, in bytes")
    if x.low < 0 or x.high > _BYTE.high:
        r.fails_if(f"(u64){x.text} > {_BYTE.high}", "an integer that is no byte", ValueError)
    return x


def joined(r: Reader, a: Value, b: Value) -> Value:
    """`a + b` of texts and characters."""
    x, y = (_as_text(r, v) for v in (a, b))
    if x.made is not y.made:
        raise Unreadable("text and bytes together")
    made = joined_lists(r, x, y)
    return Lst(made.buf, made.of, made.roots, made=x.made)


def _as_text(r: Reader, x: Value) -> Lst:
    """A text or a character as a text in memory."""
    if is_char(x):
        made = allocated(r, CHAR, int_constant(1), None, str)
        r.line(f"*(unsigned *){made.buf}->data = {x.text};")
        return made
    x = in_parts(r, x)
    if not is_text(x):
        raise Unreadable("a text, and another value")
    return x


# Functions and methods


def ord_(r: Reader, x: Value) -> Value:
    """`ord(x)`."""
    x = char(x) or x
    if is_char(x):
        if x.value is not None:
            return python(ord(x.value))
        return r.integer(f"(i64){x.text}", 0, 0x10FFFF)
    raise Unreadable("ord of this")


def chr_(r: Reader, x: Value) -> Value:
    """`chr(x)`."""
    if not isinstance(x, Num) or x.kind != "int":
        raise Unreadable("chr of this")
    if x.value is not None and 0 <= x.value <= 0x10FFFF:
        return char(Known(chr(x.value)))
    if x.low < 0 or x.high > 0x10FFFF:
        r.leave_if(f"(u64){x.text} > 0x10FFFF", "chr of this number")
    return r.number(f"(u32){x.text}", "u32", ("char",))


def digit(r: Reader, x: Num) -> Value:
    """`int(c)` of a character."""
    r.leave_if(f"{x.text} - 48 > 9", "a character that is no digit")
    return r.integer(f"(i64)({x.text} - 48)", 0, 9)


_CLASSES = {
    "isdigit": "{0} - 48 < 10", "isdecimal": "{0} - 48 < 10", "isnumeric": "{0} - 48 < 10",
    "isalpha": "({0} | 32) - 97 < 26", "isupper": "{0} - 65 < 26", "islower": "{0} - 97 < 26",
    "isalnum": "({0} - 48 < 10 || ({0} | 32) - 97 < 26)",
    "isspace": "({0} == 32 || {0} - 9 < 5 || {0} - 28 < 4)",
    "isascii": "1",
}  # fmt: skip


def char_method(r: Reader, x: Num, name: str, args: list[Value]) -> Value:
    """A method of a character, if it is one of ASCII."""
    if x.kind != "char":
        raise Unreadable(f"the method {name!r} of one text or another")
    r.one_by_one()
    if name in _CLASSES and not args:
        _is_ascii(r, x)
        return Num(f"({_CLASSES[name].format(x.text)})", "bool", ("bool",), low=0, high=1)
    if name in ("upper", "lower") and not args:
        _is_ascii(r, x)
        first = 97 if name == "upper" else 65
        return r.number(f"({x.text} - {first} < 26 ? {x.text} ^ 32 : {x.text})", "u32", ("char",))
    raise Unreadable(f"the method {name!r} of a character")


def _is_ascii(r: Reader, x: Num) -> None:
    r.leave_if(f"{x.text} >= {_ASCII}", "a character beyond ASCII")


def text_method(r: Reader, a: Lst, name: str, args: list[Value]) -> Value:
    """A method of a text whose parts are asked for."""
    if len(args) == 1 and name in ("count", "index"):
        c = char(args[0]) or args[0]
        if a.made is bytes:
            c = _byte(r, c)
        if a.made is bytes or is_char(c):
            return list_method(r, Lst(a.buf, a.of, a.roots), name, [c], {})
    raise Unreadable(f"the method {name!r} of a {a.made.__name__}")


def join_texts(r: Reader, x: Value) -> Value:
    """`"".join(x)` of a list of characters."""
    x = kept(r, x)
    if not isinstance(x, Lst) or x.made is not list or x.kind != "char":
        raise Unreadable("join of these")
    made = list_of(r, x)
    return Lst(made.buf, made.of, made.roots, made=str)
