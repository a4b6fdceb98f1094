"""Pulsar's namespaces that a configuration means."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ropeway.gateway.config import Config


def own(config: Config) -> tuple[str, str]:
    """Tenant and namespace of topics whose names have none."""
    assert config.pulsar is not None
    return config.pulsar.tenant, config.pulsar.namespace or config.cluster
