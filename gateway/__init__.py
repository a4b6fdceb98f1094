"""The server: wire codecs, the node's state, processors, endpoints and the command."""

__version__ = "0.1.0"
