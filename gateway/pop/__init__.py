"""Popping: the broker hands messages out one by one, and takes acknowledgements.

`Handouts` is what is in consumers' hands, in memory; `Ledger` keeps what stays there
for long, in the log and in RocksDB; `Returns` stores again what comes back; `OrderBook`
keeps queues in order; `Lines` lets pops wait; `Pop` joins them.
"""
