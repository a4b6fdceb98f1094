"""What is kept is its owner's alone, whatever the umask is and whoever made it."""

import os
import sqlite3
import stat

import pytest

from ropeway.storage import private


@pytest.fixture(autouse=True)
def _no_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_directories_are_made_for_their_owner_alone(tmp_path):
    private.directory(tmp_path / "a" / "b")
    assert mode(tmp_path / "a") == mode(tmp_path / "a" / "b") == 0o700


def test_an_existing_directory_is_taken_from_others(tmp_path):
    (tmp_path / "a").mkdir(0o755)
    private.directory(tmp_path / "a")
    assert mode(tmp_path / "a") == 0o700


def test_a_group_keeps_what_an_administrator_gave_it(tmp_path):
    (tmp_path / "a").mkdir(0o770)
    private.directory(tmp_path / "a")
    assert mode(tmp_path / "a") == 0o770


def test_a_directory_with_other_things_in_it_stays_as_it_is(tmp_path):
    home = tmp_path / "home"
    home.mkdir(0o755)
    private.root(home)
    assert mode(home) == 0o700
    (home / "letters").touch()
    home.chmod(0o755)
    private.root(home)
    assert mode(home) == 0o755


def test_a_database_and_what_lies_beside_it_are_its_owners_alone(tmp_path):
    path = tmp_path / "offsets.db"
    private.database(path)
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("CREATE TABLE t (x)")
    files = list(tmp_path.iterdir())
    assert {one.name for one in files} == {
        *("offsets.db", "offsets.db-shm", "offsets.db-wal")
    }
    assert {mode(one) for one in files} == {0o600}
    for one in files:
        one.chmod(0o644)
    private.database(path)
    assert {mode(one) for one in files} == {0o600}
    database.close()


def test_a_file_that_is_opened_new_is_its_owners_alone(tmp_path):
    with open(tmp_path / "x", "w", opener=private.opener):
        assert mode(tmp_path / "x") == 0o600
