"""Clusters that the command has saved, as options of the data source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict

from ropeway.gateway.cli import context_file
from ropeway.gateway.cli.context_file import Context, Contexts
from ropeway.spark import saved_context
from ropeway.spark.options import read_options
from ropeway.spark.saved_context import of_context

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's own configuration."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def save() -> None:
    context_file.save(
        Contexts(
            contexts={
                "shop": Context(
                    name_server="10.0.0.1:9876",
                    access_key="me",
                    secret_key="s3cret",
                    tls=True,
                    tls_ca="/ca.pem",
                    tls_cert="/me.pem",
                    tls_key="/me.key",
                    output="json",
                ),
                "test": Context(name_server="10.0.0.2:9876"),
                "nowhere": Context(access_key="me", secret_key="s3cret"),
            }
        )
    )


def test_a_context_has_what_the_command_saved() -> None:
    save()
    assert of_context({"context": "shop", "topic": "orders"}) == {
        "nameServer": "10.0.0.1:9876",
        "accessKey": "me",
        "secretKey": "s3cret",
        "tls": "true",
        "tlsCa": "/ca.pem",
        "tlsCertificate": "/me.pem",
        "tlsKey": "/me.key",
    }
    read = read_options({"context": "test", "topic": "orders"})
    assert read.name_server == "10.0.0.2:9876"
    assert of_context({"topic": "orders"}) == {}


def test_every_member_of_a_context_is_an_option_or_the_commands_own() -> None:
    of_command = {"site", "output"}
    assert set(Context.__struct_fields__) == set(saved_context._OPTIONS) | of_command
    assert saved_context._VERSION == context_file.VERSION
    assert saved_context._path() == context_file.path()


def test_options_come_first() -> None:
    save()
    found = of_context({"context": "shop", "token": "t"})
    assert not found.keys() & {"accessKey", "secretKey", "token"}
    assert found["tls"] == "true"
    # Spark's own options are of any case.
    given = CaseInsensitiveDict({"Context": "test", "NAMESERVER": "a:1", "topic": "t"})
    read = read_options(given)
    assert (read.name_server, read.topics) == ("a:1", ("t",))
    without = CaseInsensitiveDict({"CONTEXT": "test", "topic": "t"})
    assert read_options(without).name_server == "10.0.0.2:9876"


def test_what_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"context is 'shop', .* there are: none"):
        read_options({"context": "shop"})
    save()
    with pytest.raises(ValueError, match=r"is 'shp', .* are: nowhere, shop, test"):
        read_options({"context": "shp"})
    with pytest.raises(ValueError, match="'nowhere', which has no name server in"):
        read_options({"context": "nowhere", "topic": "orders"})
    beside = {"context": "nowhere", "topic": "orders", "nameServer": "a:1"}
    assert read_options(beside).credentials is not None
    file = tmp_path / "ropeway" / "contexts.json"
    file.write_text('{"version": 2}')
    with pytest.raises(ValueError, match="has format 2; this program reads up to 1"):
        read_options({"context": "shop"})
    file.write_text("{")
    with pytest.raises(ValueError, match="cannot be used"):
        read_options({"context": "shop"})
