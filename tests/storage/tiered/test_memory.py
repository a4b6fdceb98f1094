"""The provider in memory keeps the contract."""

from __future__ import annotations

import pytest

from ropeway.storage.tiered.memory import MemoryProvider, open_provider
from tests.contracts.provider import ProviderContract


class TestMemoryProvider(ProviderContract):
    @pytest.fixture
    def open_provider(self):
        objects: dict[str, bytes] = {}
        return lambda: MemoryProvider(objects=objects)


def test_one_url_is_one_set_of_objects():
    here = open_provider("memory://test-one")
    assert open_provider("memory://test-one").objects is here.objects
    assert open_provider("memory://test-other").objects is not here.objects
