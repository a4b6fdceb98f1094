"""What is not installed is said with the command that installs it."""

import sys

import pytest

from ropeway.gateway.config import ConfigError
from ropeway.gateway.extras import needing, package


def test_a_module_of_an_extra_is_imported():
    assert package("json", "acl") is sys.modules["json"]


@pytest.mark.parametrize("extra", ["acl", "pulsar"])
def test_what_is_missing_is_named_with_its_extra(monkeypatch, extra):
    monkeypatch.setitem(sys.modules, "kazoo", None)
    wanted = rf"^kazoo is not installed; .*: pip install ropeway\[{extra}\]$"
    with pytest.raises(ConfigError, match=wanted):
        package("kazoo", extra)
    with pytest.raises(ConfigError, match=wanted), needing(extra):
        import kazoo  # noqa: F401 - that is what is missing
