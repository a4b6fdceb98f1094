"""Attacks: what somebody sends who means harm. `all_attacks` is the table of them."""

from benchmarks.attacks import brokers, calls, consumers, naming, pages
from benchmarks.attacks.attack import KNOWN, UNKNOWN, Attack

ALL: dict[str, Attack] = {
    one.name: one
    for module in (brokers, consumers, naming, calls, pages)
    for one in module.ATTACKS
}

__all__ = ["ALL", "KNOWN", "UNKNOWN", "Attack"]
