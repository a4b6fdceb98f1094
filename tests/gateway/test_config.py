"""The sample file of the documentation has every setting, with its default."""

import re
import typing
from pathlib import Path

import msgspec

from gateway.config import Config, PulsarConfig, TierConfig
from gateway.config_file import is_struct, load

SAMPLE = Path(__file__).parents[2] / "docs" / "ropeway.toml"
GUIDE = Path(__file__).parents[2] / "docs" / "configuration.md"


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
        if header := re.match(r"\[+(\w+)\]+", bare):
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
        r"^# (?=\[+\w+\]+$|\w+ = )", "", SAMPLE.read_text(), flags=re.MULTILINE
    )
    path = tmp_path / "all.toml"
    path.write_text(switched_on)
    config = load(path, {})
    assert config.tls is not None
    assert config.pulsar == PulsarConfig(
        token_file=Path("token"),
        ca_certificate=Path("pulsar-ca.pem"),
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
