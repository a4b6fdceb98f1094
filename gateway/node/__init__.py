"""What a node knows and does, free of the protocol.

Topics, groups, clients, locks, waiting pulls and scheduled messages, over one log and
one route store.
"""
