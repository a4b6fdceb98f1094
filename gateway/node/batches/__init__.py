"""Batches: messages over many queues that are delivered together, and once.

Two topics are the truth: one has what producers staged, the other which batches were
committed. `records` makes what is stored; `Publisher` brings a committed batch to its
queues, as often as it takes; `Batches` joins them.
"""

from ropeway.gateway.node.batches.service import BatchError, Batches, ForeignBatchError

__all__ = ["BatchError", "Batches", "ForeignBatchError"]
