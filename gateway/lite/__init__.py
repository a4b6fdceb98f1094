"""Lite topics: a hundred thousand small topics in the queues of one.

`Catalogue` knows each lite topic that has messages, and `Store` where they are;
`Follower` fills both from the parents' queues. `Subscribers` knows who wants what, and
what may be new to whom; `Lite` joins them and hands out, each lite topic in order.
"""
