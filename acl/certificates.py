"""Who somebody is, by the certificate that their TLS connection showed.

The server has verified it already: only what `tls.client_ca` signed comes here. Whoever
also gives an access key is left to the hooks that know those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from ropeway.acl.api import Hook, HookError, Principal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ropeway.acl.api import Credentials, Setting, Source


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `acl.options.certificates`."""

    name_from: Literal["CN", "subject", "DNS", "URI", "email"] = "CN"
    """What names a client: its subject's common name, the whole subject as
    `CN=a,O=b`, or the first alternative name of a kind."""
    superusers: tuple[Annotated[str, msgspec.Meta(min_length=1)], ...] = ()
    """Names of those who may do everything."""


_SHORT = {
    "commonName": "CN",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "domainComponent": "DC",
    "userId": "UID",
}
"""RFC 4514, 3."""
_MUST_BE_ESCAPED = ',+"\\<>;='


def open_hook(setting: Setting) -> Hook:
    """Make the hook of a configuration.

    Raises:
        HookError: An option cannot be used.
    """
    try:
        options = msgspec.convert(setting.options, Options)
    except msgspec.ValidationError as error:
        raise HookError(f"acl.options.{setting.name}: {error}") from error
    certificates = Certificates(setting.name, options)
    return Hook(authenticator=certificates, find=certificates.find)


class Certificates:
    """An authenticator: whoever has shown a certificate is its subject.

    Args:
        name: The hook's.
        options: What names a client.
    """

    def __init__(self, name: str, options: Options) -> None:
        self._name = name
        self._options = options

    def authenticate(
        self, credentials: Credentials, source: Source
    ) -> Principal | None:
        """Who has shown a certificate, and no access key; None where nobody has."""
        if source.certificate is None or credentials.given:
            return None
        name = _name(source.certificate, self._options.name_from)
        return self.find(name) if name else None

    def find(self, name: str) -> Principal:
        """Who has shown the certificate of a name."""
        return Principal(
            name,
            self._name,
            super=name in self._options.superusers,
            rule=f"a certificate, by its {self._options.name_from}",
            roles=(name,),
        )


def _name(certificate: Mapping[str, Any], wanted: str) -> str:
    """What names whom a certificate is of; nothing where it does not say."""
    subject = [one for several in certificate.get("subject", ()) for one in several]
    if wanted == "subject":
        # The most specific part comes last in a certificate, and first in text.
        return ",".join(
            f"{_SHORT.get(kind, kind)}={_escaped(value)}"
            for kind, value in reversed(subject)
        )
    if wanted == "CN":
        # With two of them, each could be meant.
        return _only(value for kind, value in subject if kind == "commonName")
    alternative = certificate.get("subjectAltName", ())
    return next((value for kind, value in alternative if kind == wanted), "")


def _only(values: Iterable[str]) -> str:
    first, *others = [*values, ""]
    return "" if others[:-1] else first


def _escaped(value: str) -> str:
    return "".join(f"\\{one}" if one in _MUST_BE_ESCAPED else one for one in value)
