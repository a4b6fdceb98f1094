"""Popping: the broker hands messages out one by one, and takes acknowledgements.

`InFlight` is what is in consumers' hands, in memory; `Ledger` keeps what stays there
for long, in the log and in RocksDB; `Revive` stores again what comes back; `OrderBook`
keeps queues in order; `Lines` lets pops wait; `Pop` joins them.
"""
