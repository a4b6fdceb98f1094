"""Where spans and metrics go is an address with its scheme."""

import pytest

from ropeway.gateway.config import ConfigError, OtlpConfig
from ropeway.gateway.tracing import receiver


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:4317", "https://[::1]:4317"])
def test_an_address_with_its_scheme_is_taken(endpoint):
    assert receiver.endpoint(OtlpConfig(endpoint)) == endpoint


@pytest.mark.parametrize("endpoint", ["", "127.0.0.1:4317", "grpc://127.0.0.1:4317"])
def test_another_is_refused_with_what_is_allowed(endpoint):
    with pytest.raises(ConfigError, match="allowed: http://HOST:PORT or https"):
        receiver.endpoint(OtlpConfig(endpoint))
