"""Where OpenTelemetry's receiver is, as a node's configuration says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.config import ConfigError

if TYPE_CHECKING:
    from ropeway.gateway.config import OtlpConfig

_SCHEMES = ("http://", "https://")


def endpoint(otlp: OtlpConfig) -> str:
    """The receiver's gRPC port.

    Raises:
        ConfigError: What is given is none.
    """
    if not otlp.endpoint.startswith(_SCHEMES):
        raise ConfigError(
            f"otlp.endpoint is {otlp.endpoint!r:.200}; allowed: http://HOST:PORT or "
            "https://HOST:PORT"
        )
    return otlp.endpoint
