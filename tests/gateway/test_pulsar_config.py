"""What a file says of Pulsar is taken whole, and half of it is refused in words."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from ropeway.gateway import on_pulsar
from ropeway.gateway.config import ConfigError
from ropeway.gateway.config_file import read

SECURE = 'service_url = "pulsar+ssl://h"\nadmin_url = "https://h"\n'


def settings(text: str):
    config = read(tomllib.loads(f"[pulsar]\n{text}"))
    assert config.pulsar is not None
    return on_pulsar.settings(config, config.pulsar)


def test_each_way_in_reaches_the_log():
    made = settings(f'{SECURE}certificate = "c"\nkey = "k"\nlistener_name = "outer"')
    assert (made.certificate, made.key, made.listener_name) == ("c", "k", "outer")
    assert settings("keep_alive_ms = 500").keep_alive_ms == 500
    made = settings('user = "u"\npassword_file = "~/p"')
    assert (made.user, made.password_file) == ("u", str(Path("~/p").expanduser()))
    made = settings(
        '[pulsar.oauth2]\nissuer_url = "https://i"\ncredentials_file = "f"\n'
        'audience = "a"\nscope = "s"\nca_certificate = "ca"'
    )
    assert made.oauth2 is not None
    assert made.oauth2.issuer_url == "https://i"
    assert (made.oauth2.audience, made.oauth2.scope) == ("a", "s")
    assert (made.oauth2.credentials_file, made.oauth2.tls_ca_file) == ("f", "ca")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('user = "u"', "pulsar: user is given without password_file; allowed: both"),
        ('key = "k"', "pulsar: key is given without certificate; allowed: both, or"),
        (
            'certificate = "c"\nkey = "k"',
            "pulsar: certificate is given, and service_url is 'pulsar://.*'; allowed ",
        ),
        (
            'token_file = "t"\nuser = "u"\npassword_file = "p"',
            "pulsar: token_file and user are given; allowed: one of token_file, user, ",
        ),
        ("keep_alive_ms = 499", "pulsar: keep_alive_ms is 499; allowed: 500 or more"),
        ('admin_url = "h:8080"', "pulsar: admin_url is 'h:8080'; allowed: http://host"),
        ('service_url = "h:6650"', "pulsar: service URL 'h:6650'; allowed: pulsar://"),
        (
            '[pulsar.oauth2]\nissuer_url = "https://i"',
            "pulsar.oauth2.credentials_file is missing",
        ),
        (
            '[pulsar.oauth2]\nissuer_url = "i"\ncredentials_file = "f"',
            r"pulsar: oauth2.issuer_url is 'i'; allowed: https://host\[/path\]",
        ),
        (
            '[pulsar.oauth2]\nissuer = "i"',
            "pulsar.oauth2.issuer is not a setting; the nearest is pulsar.oauth2.iss",
        ),
    ],
)
def test_what_does_not_go_together_is_refused_with_what_is_allowed(
    text: str, said: str
):
    with pytest.raises(ConfigError, match=said):
        settings(text)
