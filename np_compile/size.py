"""Sizes that are not known when a program is compiled: integer expressions over symbols.

A `Size` takes part in arithmetic like an `int`, and is one again as soon as no symbol is left in
it. It is a polynomial with integer coefficients over atoms: symbols, and quotients and remainders
by numbers. What a pass asks of it (`n > 4`, `n % 8 == 0`, `m == n`) is answered by what is known of
the symbols, or else by the sizes at hand, and then noted as a *guard*: the program holds for all
sizes of which its guards are true. A size that has to be a number (`range(n)`) is one from then
on, by a guard. An estimate needs no guard: `hint`.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

_ONE: tuple[Atom, ...] = ()
_HOLDS: dict[str, Callable[[int, int], bool]] = {">=": operator.ge, "==": operator.eq}


@dataclass(frozen=True, order=True)
class Atom:
    """A symbol, or the quotient or the remainder of a size by a number. op: "symbol", "//", "%".
    name: of a symbol. terms: of the dividend. by: the divisor."""

    op: str
    name: str
    terms: tuple = ()
    by: int = 0


Terms = dict[tuple[Atom, ...], int]  # products of atoms, and their coefficients


@dataclass(frozen=True)
class Guard:
    """A condition that the program asks of its sizes: `size op 0` is `holds`. where: the place in
    the compiler that asked."""

    size: Size
    op: str
    holds: bool
    where: str

    @property
    def test(self) -> str:
        """It as Python has it."""
        return f"{self.size.text('//')} {self._so} 0"

    @property
    def _so(self) -> str:
        return self.op if self.holds else {">=": "<", "==": "!="}[self.op]

    def __str__(self) -> str:
        return f"{self.size} {self._so} 0, for {self.where}"


class Facts:
    """What is known of the symbols of one compile.

    values: of the symbols, in the segment at hand. guards: conditions that were asked for and did
    not follow from the others. least: lower bounds of symbols. closed: whether the program is made,
    and no more guards can be noted.
    """

    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        self.least: dict[str, int] = {}
        self.guards: list[Guard] = []
        self.closed = False
        self.recipes: dict[str, Callable[[Mapping[str, int]], int]] = {}
        self.bounds: dict[tuple, int] = {}  # lower ones of sizes, by their keys
        self._known: dict[tuple, bool] = {}
        self._seen: dict[tuple, int] = {}  # how many conditions have been tried to prove a bound
        self._least: list[Size] = []  # that are known not to be negative

    def symbol(self, name: str, value: int, least: int = 2) -> Size:
        """A new symbol that stands for `value` at hand, and never for less than `least`."""
        self.values[name] = value
        self.least[name] = least
        return self.size(name)

    def size(self, name: str) -> Size:
        """The symbol of a name."""
        return Size({(Atom("symbol", name),): 1}, self)

    def later(self, recipe: Callable[[Mapping[str, int]], int], least: int = 0) -> Size:
        """A symbol whose value, no less than `least`, is computed from those of the others."""
        name = f"m{len(self.recipes)}"
        self.recipes[name] = recipe
        return self.symbol(name, recipe(self.values), least)

    def all_values(self, values: Mapping[str, int]) -> dict[str, int]:
        """The values of all symbols, from those of the sizes."""
        found = dict(values)
        for name, recipe in self.recipes.items():
            found[name] = recipe(found)
        return found

    def predicate(self) -> Callable[[Sequence[int]], bool]:
        """Whether all guards are true of values of the symbols, in their order."""
        tests = [guard.test for guard in self.guards]
        names = [name for name in self.values if name not in self.recipes]
        code = f"lambda values: (lambda {', '.join(names)}: {' and '.join(tests) or True})(*values)"
        made: Callable[[Sequence[int]], bool] = eval(code, {})
        return made

    def fixed(self) -> set[str]:
        """The symbols of which a guard says what number they are."""
        equal = (guard.size for guard in self.guards if guard.op == "==" and guard.holds)
        alone = ([p for p in size.terms if p] for size in equal)
        return {p[0][0].name for p in alone if len(p) == 1 and len(p[0]) == 1 and p[0][0].name}

    def merged(self) -> dict[str, str]:
        """Of symbols that are equal to others, by a guard, one of these."""
        found: dict[str, str] = {}
        for guard in self.guards:
            if guard.op != "==" or not guard.holds or guard.size.terms.get(_ONE):
                continue
            terms = sorted(guard.size.terms.items(), key=lambda term: term[1])
            if [c for _, c in terms] == [-1, 1] and all(
                len(p) == 1 and p[0].name for p, _ in terms
            ):
                a, b = (p[0].name for p, _ in terms)
                a, b = sorted((found.get(a, a), found.get(b, b)), key=[*self.values].index)
                found = {k: a if v == b else v for k, v in found.items()}
                if a != b:
                    found[b] = a
        return found

    def holds(self, size: Size, op: str) -> bool:
        """Whether `size op 0`; a guard, where that does not follow from what is known."""
        if self.closed:
            raise RuntimeError(f"{size}: a size is asked for when the program is made already")
        if abs(size.terms.get(_ONE, 0)) >= _BEYOND:
            return _HOLDS[op](size.hint, 0)
        proved = self._proved(size, op)
        if proved is not None:
            return proved
        key = size.key, op
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _HOLDS[op](size.hint, 0)
            self.guards.append(Guard(size, op, found, _asking()))
            if op == ">=":
                self._least.append(size if found else -size - 1)
            elif found:
                self._least += [size, -size]
        return found

    def mark(self) -> tuple:
        """What is known now, for `back`."""
        return [*self.guards], dict(self._known), dict(self._seen), [*self._least]

    def back(self, mark: tuple) -> None:
        """Know no more than at a mark: what was asked since has led to nothing."""
        self.guards, self._known, self._seen, self._least = mark

    def _proved(self, size: Size, op: str) -> bool | None:
        if op == ">=":
            if self._is_at_least(size, 0):
                return True
            return False if self._is_at_least(-size, 1) else None
        if self._is_at_least(size, 1) or self._is_at_least(-size, 1):
            return False
        return True if self._is_at_least(size, 0) and self._is_at_least(-size, 0) else None

    def _is_at_least(self, size: Size, bound: int) -> bool:
        """Whether it follows from lower bounds of symbols, and at most one known condition."""
        if size.hint < bound:  # it is not so at hand
            return False
        if size.least >= bound:
            return True
        key = size.key, bound
        seen = self._seen.get(key, 0)
        if seen == _ALL:
            return True
        for known in self._least[seen:]:
            if size.hint - known.hint < bound:
                continue
            rest = size - known
            if (rest if isinstance(rest, int) else rest.least) >= bound:
                self._seen[key] = _ALL
                return True
        self._seen[key] = len(self._least)
        return False


_ALL = -1  # there is no condition that has to be looked at any more
_FAR = -(1 << 62)
_FEW = 4  # a greatest quotient of two sizes of which it is asked whether it is the quotient
_MANY = 8  # times what a size is at hand, beyond which the same way to cut it up is a bad one
_BEYOND = 1 << 60  # more than any array's elements: what is compared with it is not in doubt


def _asking() -> str:
    """The function outside of this module that asks."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        frame = frame.f_back
    return f"{frame.f_code.co_name} (line {frame.f_lineno})"


class Size:
    """An integer expression over the symbols of a compile; see the head of the module.

    hint: its value for the sizes at hand. least: a lower bound. key: equal for equal expressions.
    """

    __slots__ = ("_hash", "facts", "hint", "key", "terms")

    def __init__(self, terms: Terms, facts: Facts):
        self.terms = terms
        self.facts = facts
        self.key = tuple(sorted(terms.items()))
        self._hash = hash(self.key)
        self.hint = self.value(facts.values)

    # -- arithmetic ---------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, (int, Size)):
            return NotImplemented
        terms = dict(self.terms)
        for product, c in _terms(other).items():
            terms[product] = terms.get(product, 0) + c
        return _made(terms, self.facts)

    __radd__ = __add__

    def __neg__(self) -> Any:
        return _made({p: -c for p, c in self.terms.items()}, self.facts)

    def __sub__(self, other: Any) -> Any:
        return self + -other if isinstance(other, (int, Size)) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, (int, Size)):
            return NotImplemented
        terms: Terms = {}
        for p, c in self.terms.items():
            for q, d in _terms(other).items():
                product = tuple(sorted(p + q))
                terms[product] = terms.get(product, 0) + c * d
        return _made(terms, self.facts)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return self._divided(other, "//")

    def __mod__(self, other: Any) -> Any:
        return self._divided(other, "%")

    def __rfloordiv__(self, other: int) -> Any:
        return self._numbered(operator.floordiv, other)

    def __rmod__(self, other: int) -> Any:
        return self._numbered(operator.mod, other)

    def _numbered(self, function: Callable, other: int) -> Any:
        """`function(other, self)`: where a comparison tells that self is more."""
        if other >= 0 and self > other:
            return 0 if function is operator.floordiv else other
        if other < 0 and self >= -other:
            return -1 if function is operator.floordiv else self + other
        return function(other, int(self))

    def __divmod__(self, other: Any) -> tuple:
        return self // other, self % other

    def _divided(self, other: Any, op: str) -> Any:
        if type(other) is Size:
            quotient = _quotient(self, other)
            if quotient is not None:
                return quotient if op == "//" else 0
            many = self.hint // other.hint
            if 0 <= many <= _FEW and self >= other * many and self < other * (many + 1):
                return many if op == "//" else self - other * many
            other = int(other)
        if type(other) is not int:
            return NotImplemented
        if other == 1:
            return self if op == "//" else 0
        if self._is_remainder(other):
            return 0 if op == "//" else self
        if other > 1 and self.least < 0 and (-self).least >= 0:  # -(-n // 4) rounds up
            up = -((-self + (other - 1)) // other)
            return up if op == "//" else self - up * other
        if other <= 0:
            return operator.floordiv(int(self), other) if op == "//" else int(self) % other
        # What divides leaves the quotient: (4*n + m) // 4 is n + m // 4.
        whole = {p: c // other for p, c in self.terms.items() if c % other == 0}
        rest = {p: c for p, c in self.terms.items() if c % other}
        part: Any = _made(rest, self.facts)
        if type(part) is int:
            part = part // other if op == "//" else part % other
        else:
            if part < 0:  # C rounds to zero
                return operator.floordiv(int(self), other) if op == "//" else int(self) % other
            atom = Atom(op, "", part.key, other)
            part = Size({(atom,): 1}, self.facts)
        return _made(whole, self.facts) + part if op == "//" else part

    def _is_remainder(self, most: int) -> bool:
        """Whether it is a remainder by a number that is not larger."""
        if len(self.terms) != 1:
            return False
        ((product, c),) = self.terms.items()
        return c == 1 and len(product) == 1 and product[0].op == "%" and product[0].by <= most

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __index__(self) -> int:
        self.facts.holds(_size(self - self.hint, self.facts), "==")
        return self.hint

    __int__ = __index__

    def bit_length(self) -> int:
        """Of the number that it is from now on."""
        return int(self).bit_length()

    # -- questions ----------------------------------------------------------------------------

    def __bool__(self) -> bool:
        return self != 0

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: Any) -> Any:
        if type(other) is Size and (other.key == self.key or other.facts is not self.facts):
            return other.facts is self.facts
        if not isinstance(other, (int, Size)):
            return NotImplemented
        return _holds(self - other, "==", self.facts)

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, 1, 0)

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, 1, -1)

    def __le__(self, other: Any) -> Any:
        return self._compared(other, -1, 0)

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, -1, -1)

    def _compared(self, other: Any, sign: int, more: int) -> Any:
        """Whether sign * (self - other) + more is not negative."""
        if not isinstance(other, (int, Size)):
            return NotImplemented
        return _holds((self - other) * sign + more, ">=", self.facts)

    @property
    def least(self) -> int:
        """A lower bound, of all values that its symbols may have."""
        bounds = self.facts.bounds
        found = bounds.get(self.key)
        if found is None:
            found = bounds[self.key] = self._lower_bound()
        return found

    def _lower_bound(self) -> int:
        """With each atom as its least value and an offset that is not negative, the constant term,
        if no other coefficient is negative."""
        terms: dict[tuple, int] = {}
        for product, c in self.terms.items():
            expanded: dict[tuple, int] = {_ONE: c}
            for atom in product:
                low = _atom_least(atom, self.facts)
                if low <= _FAR:
                    return _FAR
                new: dict[tuple, int] = {}
                for p, d in expanded.items():
                    new[p] = new.get(p, 0) + d * low
                    longer = tuple(sorted((*p, atom)))
                    new[longer] = new.get(longer, 0) + d
                expanded = new
            for p, d in expanded.items():
                terms[p] = terms.get(p, 0) + d
        constant = terms.pop(_ONE, 0)
        total = constant
        for p, d in terms.items():
            if d < 0:
                # A remainder is bounded from above as well.
                if len(p) == 1 and p[0].op == "%":
                    total += d * (p[0].by - 1)
                    continue
                return _FAR
        return total

    def value(self, values: Mapping[str, int]) -> int:
        """Its value for these values of the symbols."""
        total = 0
        for product, c in self.terms.items():
            for atom in product:
                c *= _atom_value(atom, values)
            total += c
        return total

    def renamed(self, names: Mapping[str, str]) -> Any:
        """It with symbols in the place of others."""
        if not names.keys() & self.names:
            return self
        total: Any = 0
        for product, c in self.key:
            term: Any = c
            for atom in product:
                if atom.op == "symbol":
                    factor: Any = self.facts.size(names.get(atom.name, atom.name))
                else:
                    inside = Size(dict(atom.terms), self.facts).renamed(names)
                    factor = inside // atom.by if atom.op == "//" else inside % atom.by
                term = factor * term
            total = total + term
        return total

    @property
    def symbol(self) -> str:
        """The name of the symbol that it is; "" where it is more than one."""
        ((product, c), *others) = self.key
        alone = not others and c == 1 and len(product) == 1
        return product[0].name if alone else ""

    @property
    def names(self) -> set[str]:
        """Of the symbols in it."""
        return {*_names(self.key)}

    # -- text ---------------------------------------------------------------------------------

    def __str__(self) -> str:
        return self.text("/")

    def text(self, quotient: str) -> str:
        """As C has it, in parentheses if it is more than a symbol; or as Python has it, whose
        quotients are written in another way. Dividends are never negative."""
        parts = []
        for product, c in self.key:
            factors = [_atom_text(a, quotient) for a in product]
            if not factors or abs(c) != 1:
                factors.insert(0, str(abs(c)))
            parts.append(("-" if c < 0 else "+") + "*".join(factors))
        parts.sort(key=lambda p: p[0] == "-")
        text = "".join(parts).removeprefix("+")
        return text if text.isidentifier() else f"({text})"

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return str(self)


@dataclass(frozen=True)
class Real:
    """A size as a float, among the arguments of an operator."""

    size: int | Size


def hint(x: Any) -> Any:
    """A number or a size as a number, for an estimate: no guard is noted."""
    return x.hint if type(x) is Size else x


def span(begin: int | Size, end: int | Size) -> list[Any]:
    """The numbers from `begin` to before `end`, which are so many whatever the sizes are."""
    count = end - begin
    return [begin + k for k in range(int(count))] if count > 0 else []


def some(n: int | Size) -> bool:
    """Whether there may be something, of a number that is not negative."""
    return isinstance(n, Size) or n > 0


def zero(n: int | Size) -> bool:
    """Whether a number is known to be 0, for a choice that is right in any case."""
    return not isinstance(n, Size) and n == 0


def reaches(x: int | Size, threshold: int) -> bool:
    """Whether a number is at least so large, for a choice that is right in any case: where it is
    not known, the program is made for large ones."""
    return isinstance(x, Size) or x >= threshold


def near(x: int | Size) -> bool:
    """Whether a number is at most some times what it is at hand: a size is, by a guard."""
    return bool(x <= _MANY * hint(x))


def evaluated(x: Any, values: Mapping[str, int]) -> Any:
    """A number, a size, or a tuple of such, for these values of the symbols."""
    if type(x) is Size:
        return x.value(values)
    return tuple([evaluated(v, values) for v in x]) if isinstance(x, tuple) else x


def function_of(sizes: Sequence[int | Size]) -> Callable[[Mapping[str, int]], tuple[int, ...]]:
    """What gives the values of numbers and sizes, of those of the symbols: quicker than
    `evaluated`, from the second time on."""
    names = sorted({name for x in sizes if type(x) is Size for name in x.names})
    parts = "".join([f"{x.text('//') if type(x) is Size else x}, " for x in sizes])
    known = "".join([f"    {name} = values[{name!r}]\n" for name in names])
    made: dict[str, Any] = {}
    exec(f"def function(values):\n{known}    return ({parts})", made)
    function: Callable[[Mapping[str, int]], tuple[int, ...]] = made["function"]
    return function


def _names(terms: tuple) -> Iterator[str]:
    """The names of the symbols in a size, or in what an atom divides."""
    for product, _ in terms:
        for atom in product:
            if atom.op == "symbol":
                yield atom.name
            else:
                yield from _names(atom.terms)


def _terms(x: int | Size) -> Terms:
    if isinstance(x, Size):
        return x.terms
    return {_ONE: x}


def _made(terms: Terms, facts: Facts) -> Any:
    terms = {p: c for p, c in terms.items() if c}
    if not terms:
        return 0
    if len(terms) == 1 and _ONE in terms:
        return terms[_ONE]
    return Size(terms, facts)


def _size(x: int | Size, facts: Facts) -> Size:
    return x if isinstance(x, Size) else Size({_ONE: x}, facts)


def _holds(x: int | Size, op: str, facts: Facts) -> bool:
    return facts.holds(x, op) if isinstance(x, Size) else _HOLDS[op](x, 0)


def _quotient(a: Size, b: Size) -> Any:
    """a // b where b divides a as a polynomial: of a single product, or of a multiple."""
    if len(b.terms) == 1:
        ((divisor, d),) = b.terms.items()
        terms: Terms = {}
        for product, c in a.terms.items():
            rest = list(product)
            for atom in divisor:
                if atom not in rest:
                    return None
                rest.remove(atom)
            if c % d:
                return None
            terms[tuple(rest)] = c // d
        return _made(terms, a.facts)
    product, c = next(iter(a.terms.items()))
    for other, d in b.terms.items():
        if set(other) <= set(product) and c % d == 0:
            rest = list(product)
            for atom in other:
                if atom in rest:
                    rest.remove(atom)
            factor = _made({tuple(rest): c // d}, a.facts)
            if (b * factor).__class__ is Size and (b * factor).key == a.key:
                return factor
    return None


def _atom_least(atom: Atom, facts: Facts) -> int:
    if atom.op == "symbol":
        return facts.least[atom.name]
    if atom.op == "%":
        return 0
    inside = Size(dict(atom.terms), facts).least
    return _FAR if inside <= _FAR else inside // atom.by


def _atom_value(atom: Atom, values: Mapping[str, int]) -> int:
    if atom.op == "symbol":
        return values[atom.name]
    inside = sum(
        reduce(operator.mul, (_atom_value(a, values) for a in product), c)
        for product, c in atom.terms
    )
    return inside // atom.by if atom.op == "//" else inside % atom.by


def _atom_text(atom: Atom, quotient: str) -> str:
    if atom.op == "symbol":
        return atom.name
    inside = Size.__new__(Size)
    inside.key = atom.terms
    return f"({inside.text(quotient)}{quotient if atom.op == '//' else '%'}{atom.by})"
