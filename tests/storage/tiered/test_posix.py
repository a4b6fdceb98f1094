"""A directory keeps the contract of providers."""

from __future__ import annotations

import asyncio
import os

import pytest

from ropeway.storage.tiered import posix
from ropeway.storage.tiered.api import ProviderError
from ropeway.storage.tiered.posix import PosixProvider, open_provider
from tests.contracts.provider import NAME, ProviderContract


class TestPosixProvider(ProviderContract):
    @pytest.fixture
    def open_provider(self, tmp_path):
        return lambda: PosixProvider(tmp_path / "tier")


def test_a_put_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    async def main():
        provider = PosixProvider(tmp_path)
        await provider.put(NAME, [b"old"])

        def full(_descriptor):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(posix.os, "fsync", full)
        with pytest.raises(ProviderError, match=f"{NAME}: No space left.*free space"):
            await provider.put(NAME, [b"new"])
        monkeypatch.undo()
        assert await provider.get(NAME) == b"old"
        assert [one async for one in provider.names("")] == [(NAME, 3)]
        assert [name for _, _, files in os.walk(tmp_path) for name in files] == [
            NAME.rpartition("/")[2]
        ]
        await provider.close()

    asyncio.run(main())


def test_what_a_crash_left_half_written_is_no_object(tmp_path):
    async def main():
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "x.0123.new").write_bytes(b"half")
        provider = PosixProvider(tmp_path)
        assert [one async for one in provider.names("")] == []
        await provider.close()

    asyncio.run(main())


def test_a_url_names_a_directory(tmp_path):
    provider = open_provider(f"file://{tmp_path}/a%20b")
    assert provider.label == f"file://{tmp_path}/a b"
    for url in ("file://host/path", "file:path"):
        with pytest.raises(ValueError, match="allowed: file:///absolute/path"):
            open_provider(url)
