"""A provider is found by its URL, or it is said what there is."""

from __future__ import annotations

import sys

import pytest

from ropeway.storage.api import LogUnfitError
from ropeway.storage.tiered.memory import MemoryProvider
from ropeway.storage.tiered.posix import PosixProvider
from ropeway.storage.tiered.providers import open_provider


def test_the_scheme_names_the_provider(tmp_path):
    assert isinstance(open_provider("memory://x"), MemoryProvider)
    assert isinstance(open_provider(f"file://{tmp_path}"), PosixProvider)


def test_an_unknown_scheme_is_told_what_is_allowed():
    with pytest.raises(LogUnfitError, match="'ftp'; allowed: az, file, gs, memory, s3"):
        open_provider("ftp://x")


def test_a_url_that_cannot_be_used_says_why():
    with pytest.raises(LogUnfitError, match=r"file://h/p cannot be used.*allowed"):
        open_provider("file://h/p")
    with pytest.raises(LogUnfitError, match="secret_access_key stands in a URL"):
        open_provider("s3://bucket/prefix?secret_access_key=x")


def test_a_library_that_is_not_there_is_named_with_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.delitem(sys.modules, "ropeway.storage.tiered.objects", raising=False)
    with pytest.raises(LogUnfitError, match=r"pip install ropeway\[tier\]"):
        open_provider("s3://bucket/prefix")
