"""Whose token it is; and that nothing else passes for one."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from hypothesis import given, settings
from hypothesis import strategies as st

from ropeway.acl.api import Channel, Credentials, Principal, Refused, Source
from ropeway.acl.pulsar.keys import Key, read_key
from ropeway.acl.pulsar.options import Options, read_options
from ropeway.acl.pulsar.tokens import MOST_TOKEN_BYTES, TokenError, Tokens
from tests.acl.pulsar.issuing import SECRET, encoded, signed, token

SOURCE = Source("10.0.0.1", Channel.REMOTING)
NOW_S = 1_800_000_000.0


def inline(data: bytes) -> str:
    return f"data:;base64,{base64.b64encode(data).decode()}"


class Clock:
    def __init__(self) -> None:
        self.now_s = NOW_S

    def __call__(self) -> float:
        return self.now_s


def tokens_of(clock: Clock | None = None, **options: Any) -> Tokens:
    if "token_public_key" not in options:
        options = {"token_secret_key": inline(SECRET), **options}
    read = read_options("pulsar", options)
    return Tokens("pulsar", read, read_key(read, {}), clock or Clock())


def shown(tokens: Tokens, access_key: str) -> Principal | Refused | None:
    return tokens.authenticate(Credentials(access_key=access_key), SOURCE)


def refusal(tokens: Tokens, access_key: str) -> str:
    answer = shown(tokens, access_key)
    assert isinstance(answer, Refused), answer
    assert access_key not in answer.reason + answer.remark
    return answer.reason


RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())


def der(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def rs256(claims: dict[str, Any], **header: Any) -> str:
    text = f"{encoded({'alg': 'RS256', **header})}.{encoded(claims)}"
    made = RSA.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{text}.{encoded(made)}"


def es256(claims: dict[str, Any]) -> str:
    text = f"{encoded({'alg': 'ES256'})}.{encoded(claims)}"
    made = EC.sign(text.encode(), ec.ECDSA(hashes.SHA256()))
    joined = b"".join(part.to_bytes(32, "big") for part in decode_dss_signature(made))
    return f"{text}.{encoded(joined)}"


def test_a_token_is_its_role():
    answer = shown(tokens_of(), token({"sub": "orders-app"}))
    assert answer == Principal(
        "orders-app",
        "pulsar",
        rule="a token signed with HS256",
        roles=("orders-app",),
    )


def test_the_token_of_the_release_notes_is_accepted_with_its_key():
    # rocketmq-mwnb7map28je, from RoP 0.2.0's announcement; its header has a keyId.
    text = (
        "eyJrZXlJZCI6InJvY2tldG1xLW13bmI3bWFwMjhqZSIsImFsZyI6IkhTMjU2In0."
        "eyJzdWIiOiJyb2NrZXRtcS1td25iN21hcDI4amVfdGVzdCJ9"
    )
    answer = shown(tokens_of(), signed(text))
    assert isinstance(answer, Principal)
    assert answer.name == "rocketmq-mwnb7map28je_test"
    published = "BDOjqqY25a6apnZTMZCqg0I0pxVFcqz7fvZbaTqkf5U"
    assert refusal(tokens_of(), f"{text}.{published}") == "not signed with our key"


@pytest.mark.parametrize("encode", [der, pem])
def test_public_keys_verify_their_own_algorithm(encode):
    by_rsa = tokens_of(token_public_key=inline(encode(RSA)))
    by_ec = tokens_of(token_public_key=inline(encode(EC)), token_public_alg="ES256")
    assert shown(by_rsa, rs256({"sub": "a"})).name == "a"
    assert shown(by_ec, es256({"sub": "b"})).name == "b"
    assert refusal(by_rsa, es256({"sub": "a"})) == "not signed with RS256"
    assert refusal(by_ec, rs256({"sub": "a"})) == "not signed with ES256"
    # A signature of another key, and one in DER, as OpenSSL makes it.
    assert refusal(by_rsa, rs256({"sub": "a"})[:-8] + "AAAAAAAA")
    assert refusal(by_ec, es256({"sub": "a"})[:-8] + "AAAAAAAA")


@pytest.mark.parametrize("encode", [der, pem])
def test_a_public_key_is_never_taken_for_a_secret(encode):
    public = encode(RSA)
    by_rsa = tokens_of(token_public_key=inline(public))
    for secret in (public, public.strip(), base64.b64encode(public)):
        forged = token({"sub": "admin"}, secret=secret)
        assert refusal(by_rsa, forged) == "not signed with RS256"
        lying = token({"sub": "admin"}, secret=secret, header={"alg": "RS256"})
        assert refusal(by_rsa, lying) == "not signed with our key"


@pytest.mark.parametrize(
    "alg", ["none", "None", "NONE", "nOnE", "", None, 0, ["HS256"], "HS512", "hs256"]
)
def test_only_the_configured_algorithm_counts(alg: Any):
    body = f"{encoded({'alg': alg})}.{encoded({'sub': 'admin'})}"
    for tokens in (tokens_of(), tokens_of(token_public_key=inline(der(RSA)))):
        for forged in (
            f"{body}.",
            f"{body}.AAAA",
            f"{body}.AA==",
            signed(body),
            signed(body, b""),
        ):
            assert refusal(tokens, forged)


@pytest.mark.parametrize(
    "header",
    [
        {"kid": "../../../../dev/null"},
        {"kid": "' UNION SELECT 'key"},
        {"kid": 7},
        {"kid": ["a"]},
        {"jku": "http://127.0.0.1:1/keys"},
        {"x5u": "http://127.0.0.1:1/cert"},
        {"jwk": {"kty": "oct", "k": encoded(b"x" * 32)}},
        {"x5c": [base64.b64encode(der(RSA)).decode()]},
    ],
)
def test_a_header_cannot_bring_its_own_key(header: dict[str, Any]):
    tricky = {"alg": "HS256", **header}
    for secret in (b"x" * 32, b"", der(RSA)):
        assert refusal(tokens_of(), token({"sub": "a"}, secret=secret, header=tricky))


@pytest.mark.parametrize(
    "header",
    [{"crit": ["exp"], "exp": 0}, {"b64": False, "crit": ["b64"]}, {"crit": []}],
)
def test_a_header_that_demands_what_we_do_not_know_is_refused(header: dict[str, Any]):
    assert refusal(tokens_of(), token({"sub": "a"}, header={"alg": "HS256", **header}))


def test_times_are_kept_to_the_second():
    clock = Clock()
    tokens = tokens_of(clock)
    expiring = token({"sub": "a", "exp": NOW_S + 10})
    coming = token({"sub": "b", "nbf": NOW_S + 5})
    assert shown(tokens, expiring).name == "a"
    assert "not valid before" in refusal(tokens, coming)
    clock.now_s += 5
    assert shown(tokens, coming).name == "b"
    clock.now_s += 4.9
    assert shown(tokens, expiring).name == "a"
    assert shown(tokens, coming).name == "b"
    clock.now_s += 0.1
    assert "not valid since" in refusal(tokens, expiring)
    skewed = tokens_of(clock, token_allowed_clock_skew_seconds=30)
    assert shown(skewed, expiring).name == "a"
    clock.now_s += 30
    assert "not valid since" in refusal(skewed, expiring)
    soon = token({"sub": "c", "nbf": clock.now_s + 30})
    assert shown(skewed, soon).name == "c"
    later = token({"sub": "c", "nbf": clock.now_s + 31})
    assert "not valid before" in refusal(skewed, later)


@pytest.mark.parametrize("when", ["soon", True, None, [], {}, 10**400, -(10**400)])
@pytest.mark.parametrize("claim", ["exp", "nbf"])
def test_a_time_that_is_none_is_refused(claim: str, when: Any):
    assert claim in refusal(tokens_of(), token({"sub": "a", claim: when}))


@pytest.mark.parametrize("when", [b"Infinity", b"NaN", b"-Infinity", b"1e999"])
def test_a_time_beyond_all_times_is_refused(when: bytes):
    assert refusal(tokens_of(), token(b'{"sub": "a", "nbf": ' + when + b"}"))


def test_the_audience_must_be_ours_where_one_is_configured():
    tokens = tokens_of(token_audience_claim="aud", token_audience="us")
    for audience in ("us", ["them", "us"]):
        assert shown(tokens, token({"sub": "a", "aud": audience})).name == "a"
    for audience in ("them", ["them"], [], "", None, {"us": 1}, "us ", "US", ["us2"]):
        assert "aud" in refusal(tokens, token({"sub": "a", "aud": audience}))
    assert "aud" in refusal(tokens, token({"sub": "a"}))
    assert shown(tokens_of(), token({"sub": "a", "aud": "anybody"})).name == "a"


def test_the_role_is_in_the_claim_that_is_configured():
    tokens = tokens_of(token_auth_claim="roles")
    assert shown(tokens, token({"sub": "a", "roles": "b"})).name == "b"
    assert shown(tokens, token({"sub": "a", "roles": ["c", "d"]})).name == "c"
    for roles in (None, "", [], [7], 7, {"b": 1}, [["b"]], [""]):
        assert "no role" in refusal(tokens, token({"sub": "a", "roles": roles}))
    assert "no role" in refusal(tokens, token({"sub": "a"}))


def test_superusers_are_those_of_the_options_and_those_of_pulsar():
    tokens = tokens_of(superusers=["root"])
    assert shown(tokens, token({"sub": "root"})).super
    operator = token({"sub": "operator"})
    assert not shown(tokens, operator).super
    key = tokens._key
    tokens.use(key, frozenset({"operator"}))
    assert shown(tokens, operator).super
    assert shown(tokens, token({"sub": "root"})).super
    tokens.use(key, frozenset())
    assert not shown(tokens, operator).super
    # Look-alikes are others.
    for role in ("Root", "root ", "r\u043eot", "root\u200b"):
        assert not shown(tokens, token({"sub": role})).super


def test_access_keys_of_other_hooks_are_left_to_them():
    for other in ("", "RocketMQ", "user.name", "eyJhbGciOiJIUzI1NiJ9", "a.b.c"):
        assert shown(tokens_of(), other) is None


def test_a_token_cut_anywhere_is_refused():
    whole = token({"sub": "a"})
    tokens = tokens_of()
    for end in range(whole.index(".") + 1, len(whole)):
        assert refusal(tokens, whole[:end])
    for more in (".", ".x", "=", "\n", " ", "\x00", "A"):
        assert refusal(tokens, whole + more)


def test_a_token_that_is_too_long_is_refused_unread():
    long = token({"sub": "a", "more": "x" * MOST_TOKEN_BYTES})
    assert f"allowed: {MOST_TOKEN_BYTES}" in refusal(tokens_of(), long)


@pytest.mark.parametrize("bracket", [b"[", b'{"a":'])
def test_deep_nesting_is_refused(bracket: bytes):
    deep = b'{"a":' + bracket * (4000 // len(bracket))
    assert refusal(tokens_of(), token({"sub": "a"}, header=deep))
    assert refusal(tokens_of(), token(deep))


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200), st.binary(max_size=200), st.binary(max_size=40))
def test_no_bytes_let_in_without_the_key(head: bytes, claims: bytes, mac: bytes):
    made = f"ey{encoded(head)}.{encoded(claims)}.{encoded(mac)}"
    answer = shown(tokens_of(), made)
    assert isinstance(answer, Refused)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=100))
def test_no_text_breaks_the_hook(text: str):
    for access_key in (text, f"ey{text}.", f"ey.{text}.{text}"):
        assert not isinstance(shown(tokens_of(), access_key), Principal)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 255))
def test_one_changed_character_is_one_too_many(at: int, by: int):
    whole = token({"sub": "a", "exp": NOW_S + 10})
    at %= whole.rindex(".")
    changed = whole[:at] + chr(ord(whole[at]) ^ by) + whole[at + 1 :]
    assert not isinstance(shown(tokens_of(), changed), Principal)


def test_a_known_token_is_not_verified_again(monkeypatch: pytest.MonkeyPatch):
    tokens = tokens_of()
    shown_one = token({"sub": "a"})
    first = shown(tokens, shown_one)
    monkeypatch.setattr(hmac, "new", None)
    monkeypatch.setattr(hmac, "digest", None)
    assert shown(tokens, shown_one) is first


def test_the_last_used_tokens_are_remembered_and_no_more():
    tokens = tokens_of(tokens=3)
    kept, *others = [token({"sub": str(number)}) for number in range(20)]
    first = shown(tokens, kept)
    for other in others:
        assert shown(tokens, kept) is first
        shown(tokens, other)
    assert len(tokens._known) == 3
    assert kept in tokens._known
    shown(tokens, "eyJ.garbage.x")
    assert len(tokens._known) == 3


def test_a_token_that_was_forgotten_is_told_of_once():
    """Else what waits with it would wait on when it ends."""
    tokens = tokens_of(tokens=2)
    same = tokens._key, frozenset[str]()
    for number in range(2):
        shown(tokens, token({"sub": str(number)}))
    assert not tokens.use(*same)
    shown(tokens, token({"sub": "another"}))
    assert tokens.use(*same)
    assert not tokens.use(*same)


def test_a_token_that_has_ended_is_told_of_although_it_was_shown_again():
    """Else who shows one at that moment would have what waits with it wait on."""
    clock = Clock()
    tokens = tokens_of(clock)
    ending = token({"sub": "a", "exp": NOW_S + 10})
    assert isinstance(shown(tokens, ending), Principal)
    clock.now_s = NOW_S + 10.1
    assert isinstance(shown(tokens, ending), Refused)
    assert tokens.expire()
    assert not tokens.expire()


def test_each_token_that_ends_is_told_once():
    clock = Clock()
    tokens = tokens_of(clock)
    for role, seconds in (("a", 10), ("b", 20), ("c", 30)):
        shown(tokens, token({"sub": role, "exp": NOW_S + seconds}))
    told = []
    for second in range(40):
        clock.now_s = NOW_S + second
        if tokens.expire():
            told.append(second)
    assert told == [10, 20, 30]
    assert not tokens._known


def test_a_new_key_ends_what_the_old_one_signed():
    tokens = tokens_of()
    old, secret = token({"sub": "a"}), hashlib.sha256(b"new").digest()
    assert isinstance(shown(tokens, old), Principal)
    tokens.use(Key("HS256", secret, secret), frozenset())
    assert refusal(tokens, old) == "not signed with our key"
    assert isinstance(shown(tokens, token({"sub": "a"}, secret=secret)), Principal)


def test_reasons_hold_nothing_of_a_token():
    with pytest.raises(TokenError) as caught:
        tokens_of().verify(token({"sub": "secret-role", "exp": 1}))
    assert "secret-role" not in str(caught.value)


def test_options_have_pulsars_defaults():
    options = Options(token_secret_key="x")
    assert (options.token_auth_claim, options.token_public_alg) == ("sub", "RS256")


def test_options_that_nobody_gave_are_those_of_the_manual():
    options = Options(token_secret_key="x")
    assert (options.tokens, options.namespaces) == (10_000, 1000)
    assert (options.refresh_s, options.outage_s) == (20.0, 300.0)
