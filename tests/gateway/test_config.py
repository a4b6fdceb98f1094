"""The documentation has every setting, with its default, and no other."""

import re
import tomllib
import typing
from pathlib import Path

import msgspec
import pytest
import yaml

from ropeway.acl.pulsar.options import Options
from ropeway.gateway.config import Config, TierConfig
from ropeway.gateway.config_file import is_struct, load, read
from ropeway.gateway.pulsar_config import OAuth2Config, PulsarConfig

SAMPLE = Path(__file__).parents[2] / "docs" / "ropeway.toml"
GUIDE = Path(__file__).parents[2] / "docs" / "configuration.md"
CHART = GUIDE.parents[1] / "deploy" / "helm" / "ropeway"
CHART_PAGE = "kubernetes.md"
PAGES = [*sorted(GUIDE.parent.glob("*.md")), GUIDE.parents[1] / "README.md"]
FILES = (".crt", ".db", ".key", ".md", ".py", ".toml")
"""How names end that are no settings, though they may look so."""


def keys(kind: type[msgspec.Struct], at: str = "") -> list[str]:
    """Every key of the file, as `table.key`."""
    found = []
    for field in msgspec.structs.fields(kind):
        name = f"{at}{field.name}"
        kinds = [field.type, *typing.get_args(field.type)]
        inner = next((one for one in kinds if is_struct(one)), None)
        found += keys(inner, f"{name}.") if inner else [name]
    return found


def sample_keys() -> list[str]:
    found, table = [], ""
    for line in SAMPLE.read_text().splitlines():
        bare = line.removeprefix("# ")
        if header := re.match(r"\[+([\w.]+)\]+", bare):
            table = f"{header[1]}."
        elif setting := re.match(r"(\w+) = ", bare):
            found.append(table + setting[1])
    return found


def test_the_sample_names_every_setting_once_and_no_other():
    assert sorted(sample_keys()) == sorted(keys(Config))


def test_the_sample_loads_to_the_defaults():
    assert load(SAMPLE, {}) == Config()


def test_the_sample_loads_with_every_setting_switched_on(tmp_path):
    switched_on = re.sub(
        r"^# (?=\[+[\w.]+\]+$|\w+ = )", "", SAMPLE.read_text(), flags=re.MULTILINE
    )
    path = tmp_path / "all.toml"
    path.write_text(switched_on)
    config = load(path, {})
    assert config.tls is not None
    assert config.pulsar == PulsarConfig(
        listener_name="external",
        ca_certificate=Path("pulsar-ca.pem"),
        certificate=Path("pulsar-client.pem"),
        key=Path("pulsar-client.key"),
        token_file=Path("token"),
        user="ropeway",
        password_file=Path("pulsar-password"),
        oauth2=OAuth2Config(
            issuer_url="https://issuer.example.com/realm",
            credentials_file=Path("pulsar-credentials.json"),
            audience="urn:pulsar:production",
            scope="pulsar",
            ca_certificate=Path("issuer-ca.pem"),
        ),
        namespace="DefaultCluster",
        namespaces=("sales/orders",),
        adopt="empty",
    )
    assert config.zookeeper.key == Path("zookeeper-client.key")
    assert config.tier == TierConfig(
        url="file:///srv/ropeway-tier", upload_bytes_per_s=10485760
    )
    assert config.log.retention_bytes == 107374182400
    assert config.listeners[0].advertised_host == "mq.example.com"


def test_the_guide_points_to_the_sample():
    assert "(ropeway.toml)" in GUIDE.read_text()


def named_in(page: str, heading: str) -> set[str]:
    """What the first column names of the first table behind a line of a page."""
    text = (GUIDE.parent / page).read_text().partition(f"\n{heading}")[2]
    table = text[text.index("\n|---") :].split("\n\n")[0]
    first = [row.split("|")[1] for row in table.splitlines()[2:]]
    return {name for cell in first for name in re.findall(r"`(\w+)`", cell)}


@pytest.mark.parametrize(
    ("page", "heading", "kind"),
    [
        ("pulsar.md", "## Settings", PulsarConfig),
        ("pulsar.md", "### OAuth2", OAuth2Config),
        ("pulsar-tokens.md", "| option | default | meaning |", Options),
    ],
)
def test_a_pages_table_names_each_setting_of_its_table_and_no_other(
    page: str, heading: str, kind: type[msgspec.Struct]
):
    fields = {field.name for field in msgspec.structs.fields(kind)}
    assert named_in(page, heading) == fields


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_names_as_a_setting_is_one(page: Path):
    known = set(keys(Config))
    tables = {key.partition(".")[0] for key in known if "." in key}
    named = re.findall(r"`\[*(\w+\.[\w.]+)\]*(?: = [^`]*)?`", page.read_text())
    settings = {
        one
        for one in named
        if one.partition(".")[0] in tables
        and not one.endswith(FILES)
        and not one.startswith("acl.options.")
    }
    assert settings <= known | (chart_values() if page.name == CHART_PAGE else set())


def chart_values() -> set[str]:
    """The values of the Helm chart, some of which are called like tables."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    return {
        f"{table}.{key}"
        for table, inside in values.items()
        if isinstance(inside, dict)
        for key in inside
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_settings_that_a_page_shows_are_taken(page: Path):
    shown = re.findall(
        r"^```(?:toml\n|\n(?=\[))(.*?)```", page.read_text(), re.MULTILINE | re.DOTALL
    )
    for block in shown:
        assert isinstance(read(tomllib.loads(block)), Config)
