"""RocketMQ's version numbers, as clients tell them, in words."""

from __future__ import annotations

_FIRST = 212
"""MQVersion.V4_0_0_SNAPSHOT; from there on each version has two numbers, and ten
follow each other. MQVersion.java, RocketMQ 5.5.0."""


def version_text(number: int) -> str:
    """The version of a number of MQVersion; the number, where it is older than 4.0."""
    count, is_final = divmod(number - _FIRST, 2)
    if count < 0:
        return str(number)
    text = f"{4 + count // 100}.{count // 10 % 10}.{count % 10}"
    return text if is_final else f"{text}-SNAPSHOT"
