"""Traces: `Spans` records what was done with messages that carry a trace context.

Primitives: `Parent`, the context of a message, as W3C's Trace Context writes it, and
`Spans`, which makes spans below it and keeps them until they are sent. Which requests
are recorded is said in `processors/traced.py`.
"""
