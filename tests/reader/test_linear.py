"""Proofs of inequalities between integers: what they find, and that they end soon."""

from __future__ import annotations

import random

from np_compile.reader.linear import DEPTH, TRIES, WIDE, Facts, Linear


def test_a_proof_puts_facts_together():
    facts = Facts()
    n = facts.name("n", 0)
    names = [n]
    for k in range(5):
        x = facts.name(f"x{k}")
        facts.add(x - names[-1] - 1)
        names.append(x)
    assert facts.proves(names[-1] - n - 5)
    assert not facts.proves(names[-1] - n - 6)


def test_a_proof_among_many_facts_ends_soon(monkeypatch):
    """Views of one array bind the names of its lengths in dozens of facts; the search went through
    them all, in the power of its depth."""
    facts = Facts()
    names = [facts.name(f"n{k}") for k in range(40)]
    for k, a in enumerate(names):
        for b in names[:k]:
            facts.add(a - b)
            facts.add(b - a + 1000)
    looked = []
    below = Facts._below

    def counted(self, x):
        for found in below(self, x):
            looked.append(found)
            yield found

    monkeypatch.setattr(Facts, "_below", counted)
    assert not facts.proves(names[3] - 1)
    assert TRIES <= len(looked) <= TRIES + 1


def test_a_short_proof_comes_before_the_long_way_of_another_fact() -> None:
    """What became known last was followed to its end first, until there were no tries left."""
    facts = Facts()
    n = facts.name("n", 0)
    names = [facts.name(f"x{k}") for k in range(12)]
    last = facts.name("last", 0)
    facts.add(n - last - 1)
    for k, a in enumerate(names):
        facts.add(a - last)
        for b in names[:k]:
            facts.add(a - b)
            facts.add(b - a + 100)
    assert facts.proves(n - last - 1)
    assert not facts.proves(n - last - 2)


def _proves(facts: Facts, x: Linear) -> bool:
    """As `Facts.proves`, of forms that are made and looked at one by one."""
    if facts.bounds(x)[0] >= 0:
        return True
    seen, forms, tries = {(x.const, *sorted(x.terms.items()))}, [x], 0
    for _ in range(DEPTH):
        found = []
        for form in forms:
            for fact, factor in facts._below(form):
                tries += 1
                if tries > TRIES:
                    return False
                y = form - fact * factor
                if (y.const, *sorted(y.terms.items())) in seen:
                    continue
                if facts.bounds(y)[0] >= 0:
                    return True
                seen.add((y.const, *sorted(y.terms.items())))
                found.append(y)
        forms = found
    return False


def test_proofs_are_those_of_forms_that_are_made():
    rng = random.Random(5)
    proved = 0
    for _ in range(60):
        facts = Facts()
        names = []
        for k in range(rng.randint(2, 8)):
            low, high = rng.choice([(0, 9), (-4, 4), (1, 1 << 40), (-WIDE, WIDE - 1)])
            names.append(facts.name(f"n{k}", low, high))

        def form(names=names):
            some = rng.sample(names, rng.randint(1, min(3, len(names))))
            return sum(
                (a * rng.choice([-3, -1, 1, 1, 2]) for a in some), Linear(rng.randint(-5, 5))
            )

        for _ in range(rng.randint(1, 12)):
            facts.add(form())
        for x in [form() + 3 for _ in range(20)]:
            found = facts.proves(x)
            assert found == _proves(facts, x)
            proved += found
    assert 100 < proved < 1100


def test_equal_forms_have_one_key():
    facts = Facts()
    a, b = facts.name("a"), facts.name("b")
    assert (a + b).key == a.key + b.key == (b + a).key
    assert (a - b + b).key == a.key
    assert len({a + b + 1, b + 1 + a, a}) == 2


def test_answers_are_those_of_what_is_known_now():
    facts = Facts()
    n, k = facts.name("n"), facts.name("k")
    assert not facts.proves(n - k)
    before = facts.mark()
    facts.add(n - k - 1)
    assert facts.proves(n - k)
    assert facts.proves(n - k)
    facts.back_to(before)
    assert not facts.proves(n - k)
