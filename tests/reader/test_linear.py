"""Proofs of inequalities between integers: what they find, and that they end soon."""

from __future__ import annotations

from np_compile.reader.linear import TRIES, Facts


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
    bounds = Facts.bounds
    monkeypatch.setattr(Facts, "bounds", lambda self, x: looked.append(x) or bounds(self, x))
    assert not facts.proves(names[3] - 1)
    assert len(looked) <= TRIES + 1


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
