"""Every request is answered once: what goes over each client's connection, counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.wire.codes import ONE_WAY_FLAG, RESPONSE_FLAG
from ropeway.gateway.wire.frame import FrameReader, decode_envelope

if TYPE_CHECKING:
    from collections.abc import Callable


class Tap:
    """The client's end of a connection.

    Args:
        wrong: Told what should not be.
        clock: The loop's time.
    """

    def __init__(
        self, wrong: Callable[[str], None], clock: Callable[[], float]
    ) -> None:
        self._wrong = wrong
        self._clock = clock
        self._asks = FrameReader()
        self._answers = FrameReader()
        self.open: dict[int, tuple[int, float]] = {}
        """By opaque: the code of a request that is not answered, and when it went."""
        self._one_way: set[int] = set()

    def sent(self, data: bytes) -> None:
        """See what the client sends."""
        for serialize_type, header, _ in self._asks.feed(data):
            envelope = decode_envelope(serialize_type, header)
            if envelope.flag & RESPONSE_FLAG:
                continue
            if envelope.flag & ONE_WAY_FLAG:
                self._one_way.add(envelope.opaque)
            else:
                self.open[envelope.opaque] = envelope.code, self._clock()

    def received(self, data: bytes) -> None:
        """See what the client is sent."""
        for serialize_type, header, _ in self._answers.feed(data):
            envelope = decode_envelope(serialize_type, header)
            if not envelope.flag & RESPONSE_FLAG:
                continue
            if self.open.pop(envelope.opaque, None) is None:
                kind = "one-way" if envelope.opaque in self._one_way else "answered"
                self._wrong(f"answers: request {envelope.opaque} was {kind} already")

    def late(self, before_s: float) -> list[str]:
        """Requests that went before a time and have no answer."""
        return [
            f"answers: request {code} of {at:.3f} s has none"
            for code, at in self.open.values()
            if at < before_s
        ]
