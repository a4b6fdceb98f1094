"""Processors: one function a command, grouped by family; `dispatch` finds them.

A processor is a function under `@handles(Header)`. It is given the decoded header and
a `Context`, and returns the answer's header, an `Answer`, or `LATER` when it answers
by itself. One that has to wait is a coroutine function.
"""
