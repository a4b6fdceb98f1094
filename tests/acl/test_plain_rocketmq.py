"""plain_acl.yml is read as RocketMQ reads it: its own files, and any values."""

import subprocess
import zipfile
from pathlib import Path

import pytest

from ropeway.acl.plain_file import PUB, SUB, RuleFileError, parse
from tests import builds
from tests.acl.test_plain_file import account

HERE = Path(__file__).parent
VALUES = [
    *(
        ("secretKey", one)
        for one in (
            *("12345678", "012345678", "01234567", "0x12345678", "1_234_567"),
            *("12345678.5", "1234567.0", "1.50000000", "1e5000000", "1.0e+500"),
            *("190:20:30", "2024-01-01", "2024-01-01T00:00:00Z", "true", "yes"),
            *("null", "~", "", "'null    '", '"12345678"', "+1234567", "-1234567"),
            *("0b1010101", "0o1234567", ".inf", ".NaN", "!!str 12345678", "=", "<<"),
            *("12345678 # c", "99999999999999999999", "hush hush", "'it''s hush'"),
        )
    ),
    *(("accessKey", one) for one in ("12345678", "01234567", "true", "2024-01-01")),
    *(
        ("admin", one)
        for one in (
            *("true", "false", "yes", "no", "on", "OFF", "1", "0", "'true'", '"yes"'),
            *("TRUE", "tRue", "y", "maybe"),
        )
    ),
]
"""What is said of one key of an account."""


def read_by_rocketmq(tmp_path: Path, version: str, files: list[bytes]) -> list[str]:
    """The accounts of files as that version of RocketMQ has them."""
    homes = []
    for number, data in enumerate(files):
        folder = tmp_path / version / str(number) / "conf"
        folder.mkdir(parents=True)
        (folder / "plain_acl.yml").write_bytes(data)
        homes.append(str(folder.parent))
    jars = builds.classpath(HERE / "rocketmq_acl.xml", version)
    classes = builds.java_classes(HERE / "java", jars)
    answers = tmp_path / f"{version}.txt"
    subprocess.run(
        [
            *["java", "-cp", f"{classes}:{jars}", f"-Duser.home={tmp_path}"],
            *["ReadPlainAcl", str(answers), *homes],
        ],
        check=True,
        capture_output=True,
        timeout=300,
    )
    return answers.read_text().split("--\n")[:-1]


def read_by_us(data: bytes) -> str:
    try:
        accounts = parse(data).accounts
    except RuleFileError:
        return "refused"
    return "\n".join(
        f"{one.name}\t{one.secret.decode()}\t{str(one.admin).lower()}"
        for one in accounts.values()
    )


def shortened(answer: str) -> str:
    """What RocketMQ printed, as far as we print it."""
    rows = (line.split("\t") for line in answer.splitlines())
    return "\n".join("\t".join((row[0], *row[1:2], *row[3:4])) for row in rows)


@pytest.mark.jvm
def test_every_value_is_read_as_rocketmq_5_reads_it(tmp_path: Path) -> None:
    files = [account(*one) for one in VALUES]
    theirs = read_by_rocketmq(tmp_path, "5.1.4", files)
    for value, data, answer in zip(VALUES, files, theirs, strict=True):
        assert (value, read_by_us(data)) == (value, shortened(answer))


@pytest.mark.jvm
@pytest.mark.parametrize("version", ["4.9.8", "5.1.4"])
def test_the_files_that_rocketmq_comes_with_are_read(tmp_path: Path, version: str):
    source = builds.downloaded(
        f"org.apache.rocketmq:rocketmq-all:{version}:zip:source-release"
    )
    with zipfile.ZipFile(source) as archive:
        files = {
            name.partition("/")[2]: archive.read(name)
            for name in archive.namelist()
            if Path(name).match("*acl*.yml") and "tools" not in name
        }
    own = files["distribution/conf/plain_acl.yml"]
    assert b"secretKey: 12345678" in own
    rules = parse(own)
    assert {one.secret for one in rules.accounts.values()} == {b"12345678"}
    first, second = rules.accounts.values()
    assert (first.name, first.admin, second.admin) == ("RocketMQ", False, True)
    assert first.topics == {"topicA": 0, "topicB": PUB | SUB, "topicC": SUB}
    assert first.groups == {"groupA": 0, "groupB": PUB | SUB, "groupC": SUB}
    assert len(rules.white) == 2
    # And those of its own tests.
    theirs = read_by_rocketmq(tmp_path, version, list(files.values()))
    for (name, data), answer in zip(files.items(), theirs, strict=True):
        ours = read_by_us(data)
        if not answer and ours == "refused":
            continue  # nobody gets in, and we say why
        assert (name, ours) == (name, shortened(answer))
