"""A vault hides secrets, changes keys, and says when it cannot read."""

import pytest

from ropeway.acl.api import VaultError
from ropeway.acl.vault import FernetVault, NoVault, new_key


def test_a_secret_comes_back_and_looks_different_each_time():
    vault = FernetVault([new_key()])
    first, second = vault.seal("hush"), vault.seal("hush")
    assert "hush" not in first
    assert first != second
    assert vault.unseal(first) == vault.unseal(second) == "hush"


def test_a_new_key_in_front_still_reads_what_the_old_one_sealed():
    old, new = new_key(), new_key()
    sealed = FernetVault([old]).seal("hush")
    both = FernetVault([new, old])
    assert both.unseal(sealed) == "hush"
    assert FernetVault([new]).unseal(both.seal("hush")) == "hush"


@pytest.mark.parametrize("text", ["", "x", "gAAAA", "\u00e4", "a" * 10_000])
def test_what_was_sealed_otherwise_is_an_error_without_secrets(text):
    with pytest.raises(VaultError, match="another key"):
        FernetVault([new_key()]).unseal(text)


@pytest.mark.parametrize("keys", [[], ["short"], ["\u00e4" * 32]])
def test_what_is_no_key_is_refused(keys):
    with pytest.raises(VaultError, match="ropeway acl key"):
        FernetVault(keys)


def test_without_a_key_nothing_is_sealed():
    for work in (NoVault().seal, NoVault().unseal):
        with pytest.raises(VaultError, match="ROPEWAY_ACL_KEY"):
            work("hush")


def test_without_a_key_there_is_no_vault():
    with pytest.raises(VaultError, match="no key; make one with"):
        FernetVault([])
