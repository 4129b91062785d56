"""Constant texts as values: names of states and events, keys of dicts.

Where a value may be one of several constant texts, it is a number in C, of kind "word". That of one
character is its code point, so that a character is a word; that of another text follows from the
text, so that the same C is made of the same source in each process.
"""

from __future__ import annotations

import re
import zlib

BEFORE = "word_before"
_FIRST = 0x110000  # no code point
_texts: dict[int, str] = {}


def code_of(text: str) -> int:
    """The number of a text."""
    if len(text) == 1:
        return ord(text)
    code = max(zlib.crc32(text.encode("utf-32", "surrogatepass")), _FIRST)
    while _texts.setdefault(code, text) != text:
        code = max((code + 1) % (1 << 32), _FIRST)
    return code


def text_of(code: int) -> str:
    """The text of a number."""
    return chr(code) if code < _FIRST else _texts[code]


def order(c: str) -> list[str]:
    """The C function that says whether a word comes before another one, for the words that are
    mentioned in C; none if it is not called there."""
    if f"{BEFORE}(" not in c:
        return []
    mentioned = {int(code) for code in re.findall(r"\b(\d+)U\b", c)}
    known = sorted((_texts[code], code) for code in mentioned & _texts.keys())
    cases = [
        f"    case {code}U: *rank = {k + 1}; return {ord(text[0]) if text else -1};"
        for k, (text, code) in enumerate(known)
    ]
    return [
        "static i64 first_of_word(u32 w, int *rank) {", "    switch (w) {", *cases, "    }",
        "    *rank = 0; return w;", "}",
        f"static int {BEFORE}(u32 a, u32 b) {{", "    int p, q;",
        "    const i64 x = first_of_word(a, &p), y = first_of_word(b, &q);",
        "    return x != y ? x < y : p < q;", "}",
    ]  # fmt: skip
