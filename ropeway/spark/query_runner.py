"""Queries that run to their end, started again where Spark was too impatient."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyspark.errors import StreamingQueryException

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.streaming.query import StreamingQuery

_log = logging.getLogger(__name__)

_STARTS = 5
_TOO_SLOW = "Python worker failed to connect back"
"""Spark waits 10 s for the Python process of a source, and has no setting for it. A
loaded machine may take longer; what the query has done is in its checkpoint."""


class Running:
    """A query that goes on.

    Args:
        start: Starts it, from its checkpoint where it has one.
    """

    def __init__(self, start: Callable[[], StreamingQuery]) -> None:
        self._start = start
        self._left = _STARTS - 1
        self.query = start()
        """As it runs now; another one after it was started again."""

    def wait(self, timeout_s: int | None = None) -> bool:
        """Wait until it has ended; returns whether it has.

        Args:
            timeout_s: How long at most, each time that it is started.

        Raises:
            StreamingQueryException: It has failed.
        """
        while True:
            try:
                return self.query.awaitTermination(timeout_s) is not False
            except StreamingQueryException as error:
                if not self._left or _TOO_SLOW not in str(error):
                    raise
                _log.warning("a query is started again: its Python was too slow")
                self._left -= 1
                self.query = self._start()

    def stop(self) -> None:
        """Stop it; a later start goes on from there."""
        self.query.stop()
