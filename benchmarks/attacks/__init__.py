"""Attacks: what somebody sends who means harm. `all_attacks` is the table of them."""

from benchmarks.attacks import brokers, calls, consumers, pages
from benchmarks.attacks.attack import KNOWN, UNKNOWN, Attack

ALL: dict[str, Attack] = {
    one.name: one
    for one in (*brokers.ATTACKS, *consumers.ATTACKS, *calls.ATTACKS, *pages.ATTACKS)
}

__all__ = ["ALL", "KNOWN", "UNKNOWN", "Attack"]
