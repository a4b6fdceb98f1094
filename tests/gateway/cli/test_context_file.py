"""The file with the user's contexts."""

import os
from pathlib import Path

import pytest

from ropeway.gateway.cli import context_file
from ropeway.gateway.cli.context_file import Context, Contexts
from ropeway.gateway.cli.failures import CannotError, MisusedError

PROD = Contexts("prod", {"prod": Context(name_server="mq:1", token="hush", tls=False)})


def test_what_is_saved_is_loaded_and_for_its_owner_alone(contexts):
    before = os.umask(0)
    try:
        context_file.save(PROD)
    finally:
        os.umask(before)
    assert context_file.load() == PROD
    assert contexts.stat().st_mode & 0o777 == 0o600
    assert contexts.parent.stat().st_mode & 0o777 == 0o700
    assert list(contexts.parent.iterdir()) == [contexts]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_a_file_that_others_can_open_is_narrowed_and_that_is_said(
    contexts, capsys, mode
):
    context_file.save(PROD)
    contexts.chmod(mode)
    assert context_file.load() == PROD
    assert contexts.stat().st_mode & 0o777 == 0o600
    assert f"mode {mode:04o}" in capsys.readouterr().err


def test_one_that_cannot_be_narrowed_is_refused(contexts, monkeypatch):
    context_file.save(PROD)
    contexts.chmod(0o644)

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchmod", refuse)
    with pytest.raises(CannotError, match="others can read"):
        context_file.load()


def test_without_a_file_there_are_none(monkeypatch):
    assert context_file.load() == Contexts()
    monkeypatch.setenv("XDG_CONFIG_HOME", "/dev/null")
    assert context_file.load() == Contexts()


def test_a_relative_folder_is_ignored(monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", "here")
    monkeypatch.setenv("HOME", "/somebody")
    assert context_file.path() == Path("/somebody/.config/ropeway/contexts.json")


@pytest.mark.parametrize("text", ["", "[]", '{"contexts":{"a":{"adress":"b"}}}'])
def test_a_file_that_is_something_else_is_refused_with_its_name(contexts, text):
    contexts.parent.mkdir()
    contexts.write_text(text)
    contexts.chmod(0o600)
    with pytest.raises(MisusedError, match=r"contexts\.json cannot be used"):
        context_file.load()


def test_a_link_stays_one(contexts, tmp_path):
    real = tmp_path / "real.json"
    contexts.parent.mkdir()
    contexts.symlink_to(real)
    context_file.save(PROD)
    assert contexts.is_symlink()
    assert context_file.load() == PROD


def test_where_it_cannot_be_written_that_is_said(monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", "/dev/null")
    with pytest.raises(CannotError, match="cannot be written"):
        context_file.save(PROD)
