"""Who somebody is, by a token: its signature, its times, its audience, its role.

What was found valid is remembered until the token ends, the last used ones, so a client
that shows its token with every request costs one look-up.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import jwt
import msgspec

from ropeway.acl.api import Principal, Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.acl.api import Credentials, Source
    from ropeway.acl.pulsar.keys import Key
    from ropeway.acl.pulsar.options import Options

MOST_TOKEN_BYTES = 8192
"""Tokens of Pulsar travel in HTTP headers, too, and Jetty takes so many in all."""
_SIGNATURES = jwt.PyJWS()
_is_compact = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII).fullmatch
"""RFC 7515, 7.1. Lenient decoders of base64 would read many spellings as one token."""
_NEVER = float("inf")
_LOOKS = "ey"
"""How the base64 of a JSON object begins: other access keys are not our business."""


class TokenError(Exception):
    """A token is not accepted; the text says why, and has nothing of the token."""


class Tokens:
    """An authenticator: whoever shows a token is its role.

    Args:
        name: The hook's.
        options: What tokens must have.
        key: Verifies signatures.
        clock: Seconds since 1970.
    """

    def __init__(
        self, name: str, options: Options, key: Key, clock: Callable[[], float]
    ) -> None:
        self._name = name
        self._options = options
        self._key = key
        self._clock = clock
        self._superusers = frozenset(options.superusers)
        self._known: OrderedDict[str, tuple[float, Principal]] = OrderedDict()
        """Until when each token is valid, and whose it is; the last used one last."""
        self._first_ends_s = _NEVER
        """No token that was shown since the last one ended ends before."""
        self._were_forgotten = False
        """Since the last `use`: nobody would see when those end."""

    def authenticate(
        self, credentials: Credentials, _source: Source
    ) -> Principal | Refused | None:
        """Whose token the access key is; None where it is none."""
        token = credentials.access_key
        known = self._known.get(token)
        if known is not None and self._clock() < known[0]:
            self._known.move_to_end(token)
            return known[1]
        if not token.startswith(_LOOKS) or "." not in token:
            return None
        try:
            ends_s, role = self.verify(token)
        except TokenError as error:
            self._known.pop(token, None)
            return Refused(str(error))
        principal = self.find(role)
        self._known[token] = ends_s, principal
        self._first_ends_s = min(self._first_ends_s, ends_s)
        if len(self._known) > self._options.tokens:
            self._known.popitem(last=False)
            self._were_forgotten = True
        return principal

    def find(self, role: str) -> Principal:
        """Who shows a token of a role."""
        return Principal(
            role,
            self._name,
            super=role in self._superusers,
            rule=f"a token signed with {self._key.algorithm}",
            roles=(role,),
        )

    def verify(self, token: str) -> tuple[float, str]:
        """Until when a token is valid, in seconds since 1970, and its role.

        Raises:
            TokenError: It is not.
        """
        if len(token) > MOST_TOKEN_BYTES:
            raise TokenError(
                f"a token of {len(token)} characters; allowed: {MOST_TOKEN_BYTES}"
            )
        if not _is_compact(token):
            raise TokenError("not a token: not three parts of base64 with dots between")
        claims = self._signed(token)
        ends_s = self._check_times(claims)
        self._check_audience(claims)
        return ends_s, self._role(claims)

    def expire(self) -> bool:
        """Forget tokens that have ended; whether there were any.

        Also those that are known no more because somebody has shown them since.
        """
        now_s = self._clock()
        if now_s < self._first_ends_s:
            return False
        ended = [token for token, one in self._known.items() if one[0] <= now_s]
        for token in ended:
            del self._known[token]
        self._first_ends_s = min(
            (one[0] for one in self._known.values()), default=_NEVER
        )
        return True

    def use(self, key: Key, superusers: frozenset[str]) -> bool:
        """Verify by this from now on; whether who waits has to be judged again.

        It has where this is new, and where tokens were forgotten since the last time.
        What was remembered is verified again.
        """
        were_forgotten, self._were_forgotten = self._were_forgotten, False
        superusers |= frozenset(self._options.superusers)
        if key.source != self._key.source or superusers != self._superusers:
            self._key = key
            self._superusers = superusers
            self._known.clear()
            return True
        return were_forgotten

    def _signed(self, token: str) -> dict[str, Any]:
        key = self._key
        try:
            payload = _SIGNATURES.decode(token, key.key, algorithms=[key.algorithm])
            return msgspec.json.decode(payload, type=dict[str, Any])
        except jwt.InvalidAlgorithmError:
            raise TokenError(f"not signed with {key.algorithm}") from None
        except jwt.InvalidSignatureError:
            raise TokenError("not signed with our key") from None
        except (jwt.InvalidTokenError, jwt.InvalidKeyError) as error:
            raise TokenError(f"not a token: {type(error).__name__}") from None
        except (msgspec.DecodeError, ValueError, RecursionError):
            raise TokenError("not a token: it holds no claims") from None

    def _check_times(self, claims: dict[str, Any]) -> float:
        now_s = self._clock()
        skew_s = self._options.token_allowed_clock_skew_seconds
        begins_s, ends_s = (
            _number(claims, "nbf", float("-inf")),
            _number(claims, "exp", float("inf")),
        )
        if now_s < begins_s - skew_s:
            raise TokenError(f"not valid before {begins_s:.0f}, and it is {now_s:.0f}")
        if now_s >= ends_s + skew_s:
            raise TokenError(f"not valid since {ends_s:.0f}, and it is {now_s:.0f}")
        return ends_s + skew_s

    def _check_audience(self, claims: dict[str, Any]) -> None:
        claim = self._options.token_audience_claim
        if claim is None:
            return
        given = claims.get(claim)
        if self._options.token_audience not in (
            given if isinstance(given, list) else [given]
        ):
            raise TokenError(f"its {claim} is not {self._options.token_audience}")

    def _role(self, claims: dict[str, Any]) -> str:
        claim = self._options.token_auth_claim
        given = claims.get(claim)
        # As AuthenticationProviderToken, Pulsar 4.0.8.
        role = given[0] if isinstance(given, list) and given else given
        if not isinstance(role, str) or not role:
            raise TokenError(f"it has no role in {claim}")
        return role


def _number(claims: dict[str, Any], claim: str, default: float) -> float:
    given = claims.get(claim, default)
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise TokenError(f"its {claim} is not a number")
    try:
        return float(given)
    except OverflowError:
        raise TokenError(f"its {claim} is no time") from None
