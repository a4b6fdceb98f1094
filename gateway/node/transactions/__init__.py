"""Transactions: half messages, how they end, and asking producers that do not say.

The half topic and the topic of ends are the truth: `Book` is what they say about open
transactions, in memory; `records` makes what is stored; `ends` writes and reads how
transactions ended; `checks` asks producers; `Transactions` joins them.
"""

from ropeway.gateway.node.transactions.checks import Producers
from ropeway.gateway.node.transactions.end_transaction import TransactionError
from ropeway.gateway.node.transactions.service import Transactions, not_found

__all__ = ["Producers", "TransactionError", "Transactions", "not_found"]
