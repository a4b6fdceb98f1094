"""A provider in an object store: S3 and compatible ones, Azure, Google Cloud.

The only obstore code. Keys and regions come from the environment or the machine's
role, as with the stores' own tools (AWS_ACCESS_KEY_ID ...), never from the URL; options
that are no secrets may stand behind its `?`, such as `endpoint` and `region`.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn, cast
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import obstore
from obstore.exceptions import BaseError, NotFoundError
from obstore.store import from_url

from ropeway.storage.tiered.api import ObjectMissingError, ProviderError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

CONNECT_S, REQUEST_S, RETRY_S = 5, 60, 20
"""Longest waits: for a connection, for an answer, and for retries of one request."""
RETRIES = 4
NO_BUCKET = ("NoSuchBucket", "ContainerNotFound", "bucket does not exist")
"""What S3, Azure and Google Cloud answer where a bucket is missing."""
MULTIPART_BYTES = 16 * 1024 * 1024
"""Larger objects go up in parts of this size, several at once."""


class ObjectProvider:
    """Objects of one bucket, below one prefix."""

    def __init__(self, label: str, store: Any) -> None:
        self.label = label
        self._store = store

    async def put(self, name: str, pieces: Sequence[bytes | memoryview]) -> None:
        """Keep an object; see `storage.tiered.api`."""
        data = b"".join(pieces)
        try:
            await obstore.put_async(
                self._store,
                name,
                data,
                use_multipart=len(data) > MULTIPART_BYTES,
                chunk_size=MULTIPART_BYTES,
            )
        except (BaseError, OSError, ValueError) as error:
            self._refuse(name, error)

    async def get(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        """Bytes of an object; see `storage.tiered.api`."""
        try:
            if start == 0 and size is None:
                answer = await obstore.get_async(self._store, name)
                return bytes(await answer.bytes_async())
            if size == 0:
                return b""
            options: Any = {"range": {"offset": start}}
            if size is not None:
                options = {"range": (start, start + size)}
            answer = await obstore.get_async(self._store, name, options=options)
            return bytes(await answer.bytes_async())
        except (BaseError, OSError, ValueError) as error:
            self._refuse(name, error)

    async def names(self, prefix: str) -> AsyncIterator[tuple[str, int]]:
        """All objects below a prefix; see `storage.tiered.api`."""
        try:
            async for page in obstore.list(self._store, prefix or None):
                for one in page:
                    yield one["path"], one["size"]
        except (BaseError, OSError, ValueError) as error:
            self._refuse(prefix, error)

    async def delete(self, name: str) -> None:
        """Take an object away; see `storage.tiered.api`."""
        try:
            await obstore.delete_async(self._store, name)
        except (BaseError, OSError, ValueError) as error:
            with suppress(ObjectMissingError):
                self._refuse(name, error)

    async def close(self) -> None:
        """Connections are the library's, and end with it."""

    def _refuse(self, name: str, error: Exception) -> NoReturn:
        # Not even its bucket is there: nothing is known of the object.
        nowhere = any(word in str(error) for word in NO_BUCKET)
        if isinstance(error, (NotFoundError, FileNotFoundError)) and not nowhere:
            raise ObjectMissingError(f"{self.label} has no object {name}") from error
        # The library's own text goes on for pages, with the request's headers.
        cause = str(error).strip().partition("\n")[0][:300]
        raise ProviderError(
            f"{self.label}, object {name}: {cause}; check that the store answers, "
            "and that the credentials in the environment may read and write there"
        ) from error


def open_provider(url: str) -> ObjectProvider:
    """The bucket and prefix of a URL like `s3://bucket/prefix?endpoint=http://...`.

    Raises:
        ValueError: An option is not known, or is a secret.
    """
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    plain = urlunsplit(parts._replace(query=""))
    if secret := next(
        (one for one in options if "secret" in one or "key" in one), None
    ):
        raise ValueError(f"{secret} stands in a URL; allowed: the environment")
    if options.get("endpoint", "").startswith("http://"):
        client: dict[str, Any] = {"allow_http": True}
    else:
        client = {}
    client |= {
        "connect_timeout": timedelta(seconds=CONNECT_S),
        "timeout": timedelta(seconds=REQUEST_S),
    }
    try:
        # Which options there are depends on the scheme; it says what it does not know.
        store = cast("Any", from_url)(
            plain,
            config=options,
            client_options=client,
            retry_config={
                "max_retries": RETRIES,
                "retry_timeout": timedelta(seconds=RETRY_S),
            },
        )
    except BaseError as error:
        raise ValueError(str(error).strip().partition("\n")[0]) from error
    return ObjectProvider(url, store)
