"""The registry: one declaration a command, and everything reads the rows.

A command is declared by a `Header` class under `@request`. Its row holds the code
and the header of the answer; codec, processors, client and documents all read that.
What its sender must be allowed is declared with its processor. A second declaration of
a code fails at import.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from ropeway.gateway.wire.errors import HeaderError
from ropeway.gateway.wire.unreadable import UNREADABLE, reason_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from enum import IntEnum


class Header(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The typed fields of one command, in snake case; on the wire in camel case."""


H = TypeVar("H", bound=Header)


class Empty(Header, frozen=True):
    """A command without fields of its own."""


class Row(NamedTuple):
    """What is known of one command."""

    code: IntEnum
    header: type[Header]
    reply: type[Header]
    decode: Callable[[msgspec.Raw], Any]


ROWS: dict[int, Row] = {}
"""Every declared command by its code."""

_ROW_OF_HEADER: dict[type[Header], Row] = {}


def request(
    code: IntEnum, *, reply: type[Header] = Empty
) -> Callable[[type[H]], type[H]]:
    """Declare a command.

    Args:
        code: Its request code, one of `RequestCode`; another package has its own.
        reply: The header of a successful answer.
    """

    def declare(header: type[H]) -> type[H]:
        if not isinstance(code, Enum):
            # As with a code that is declared twice.
            raise ValueError(  # noqa: TRY004
                f"{code} is a number; allowed: a member of an IntEnum"
            )
        if code in ROWS or header in _ROW_OF_HEADER:
            raise ValueError(f"{header.__name__} declares {code} a second time")
        decoder = msgspec.json.Decoder(header, strict=False)
        row = Row(code, header, reply, decoder.decode)
        ROWS[code] = _ROW_OF_HEADER[header] = row
        return header

    return declare


row_of: Callable[[type[Header]], Row] = _ROW_OF_HEADER.__getitem__
"""Gives the row that a header class declared."""


def decode_request(row: Row, fields: msgspec.Raw) -> Any:
    """Read the fields of a request into the header that its row names.

    Raises:
        HeaderError: Says which field is missing or wrong, what came, what is allowed.
    """
    try:
        return row.decode(fields)
    except UNREADABLE:
        return _read_as_text(row.code.name, row.header, fields)


def from_fields(header: type[H], fields: msgspec.Raw) -> H:
    """Read the fields of an answer.

    Raises:
        HeaderError: One is missing or of the wrong type.
    """
    try:
        return msgspec.json.decode(fields, type=header, strict=False)
    except UNREADABLE:
        return _read_as_text(header.__name__, header, fields)


def _read_as_text(name: str, header: type[H], fields: msgspec.Raw) -> H:
    # What Java does with every field, and the slow way here: it forgives numbers
    # where text belongs, null where nothing belongs, and no fields at all.
    try:
        given = decode_fields(fields)
    except HeaderError as error:
        raise HeaderError(f"{name}: {error}") from error
    try:
        return msgspec.convert(given, header, strict=False)
    except msgspec.ValidationError as error:
        complaint = _explain(header, given) or str(error)
        raise HeaderError(f"{name}: {complaint}") from error


def _explain(header: type[Header], given: dict[str, str]) -> str | None:
    for field in msgspec.structs.fields(header):
        label = _label(field)
        if field.encode_name not in given:
            if field.required:
                return f"field {label} is missing"
            continue
        value = given[field.encode_name]
        try:
            msgspec.convert(value, field.type, strict=False)
        except msgspec.ValidationError:
            return f"{label} is {value!r:.80}; allowed: {_allowed(field.type)}"
    return None


def _label(field: msgspec.structs.FieldInfo) -> str:
    camel = "".join(
        part if index == 0 else part.capitalize()
        for index, part in enumerate(field.name.split("_"))
    )
    if camel == field.encode_name:
        return camel
    return f"{field.encode_name} ({camel})"


def _allowed(kind: Any) -> str:
    schema = msgspec.json.schema(kind)
    names = {
        "integer": "a whole number",
        "boolean": "true or false",
        "string": "text",
        "number": "a number",
    }
    for part in (schema, *schema.get("anyOf", ())):
        if text := names.get(part.get("type", "")):
            if "minimum" in part and "maximum" in part:
                return f"{text} from {part['minimum']} to {part['maximum']}"
            return text
    return "see the protocol"


def decode_fields(raw: msgspec.Raw) -> dict[str, str]:
    """Read a command's own fields without knowing the command, values as text.

    Raises:
        HeaderError: They are not a flat object.
    """
    try:
        fields = msgspec.json.decode(
            raw, type=dict[str, str | int | float | bool | None] | None
        )
    except UNREADABLE as error:
        raise HeaderError(
            f"extFields are not names and values: {reason_of(error)}"
        ) from error
    return {
        key: field_text(value)
        for key, value in (fields or {}).items()
        if value is not None
    }


def field_text(value: str | float | bool) -> str:
    """A field's value as the text it has on the wire."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def to_fields(header: Header) -> dict[str, str]:
    """A header's fields as they go on the wire; members that are None are left out."""
    names = header.__struct_encode_fields__
    values = msgspec.structs.astuple(header)
    return {
        name: field_text(value)
        for name, value in zip(names, values, strict=True)
        if value is not None
    }
