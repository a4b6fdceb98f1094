"""What can be wrong with bytes from a peer, divided by what happens next."""


class WireError(Exception):
    """Bytes that do not follow the protocol."""


class FrameError(WireError):
    """The stream can no longer be trusted: close the connection."""


class HeaderError(WireError):
    """One request's fields are wrong: answer it, and go on."""


class MessageError(WireError):
    """A stored message, a batch or a message id is malformed."""


class ReceiptError(WireError):
    """A text is no receipt of a popped message."""
