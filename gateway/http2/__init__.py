"""HTTP/2 as a server speaks it (RFC 9113), on any asyncio transport.

A `Connection` reads frames and keeps the rules that hold for all streams; a `Stream` is
one request and its answer, and whoever serves makes its own kind of it. Nothing here
knows what is asked and answered.
"""
