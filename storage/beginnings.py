"""What every log refuses to make: numbers and first offsets that it cannot hold.

Where partitions begin is part of the contract of `storage.api.Log.create`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.storage.api import MAX_PARTITIONS, BeginsElsewhereError, LogLimitError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


def refuse_impossible(
    topic: str,
    partitions: Collection[int],
    begins: Mapping[int, int],
    last_offset: int,
) -> None:
    """Look at what `create` is asked for before anything is made.

    Args:
        topic: Its name.
        partitions: Numbers.
        begins: First offsets, by number.
        last_offset: The largest that the log can hold.

    Raises:
        LogLimitError: A number or an offset is out of bounds.
    """
    for number in (*partitions, *begins):
        if not 0 <= number < MAX_PARTITIONS:
            raise LogLimitError(
                f"partition {number} of topic {topic}; "
                f"allowed: 0 to {MAX_PARTITIONS - 1}"
            )
    for number, begin in begins.items():
        if not 0 <= begin <= last_offset:
            raise LogLimitError(
                f"partition {number} of topic {topic} would begin at offset {begin}; "
                f"allowed: 0 to {last_offset}"
            )


def refuse_other(topic: str, number: int, begin: int, wanted: int) -> None:
    """Look at where a partition begins that is there.

    Raises:
        BeginsElsewhereError: It is not where it is wanted.
    """
    if begin != wanted:
        raise BeginsElsewhereError(
            f"partition {number} of topic {topic} begins at offset {begin}; asked for: "
            f"{wanted}. Where a partition begins never changes"
        )
