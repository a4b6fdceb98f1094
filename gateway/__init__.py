"""The server: wire codecs, the node's state, processors, endpoints and the command."""
