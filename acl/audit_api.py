"""The contract of the audit log: who changed what, who signed in, what was refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ropeway.acl.principal import Principal, Source


class Auditor(Protocol):
    """Writes the audit log; a line each, as far as its rates allow."""

    @property
    def counts(self) -> Mapping[str, tuple[int, int]]:
        """Lines that were wanted, and left out, by `attempt` or `change`."""

    @property
    def unwritten(self) -> int:
        """Lines that the file did not take."""

    def attempt(self, event: str, **values: str | None) -> None:
        """Write that something was refused, or that somebody signed in or out.

        Args:
            event: `refused`, `signed in` or `signed out`.
            values: What else is known. Of `claimed`, an access key, a long one is a
                token and a secret: only its beginning is written.
        """

    def change(
        self,
        request: str,
        principal: Principal | None,
        source: Source | None,
        resource: str,
        before: Any = None,
        after: Any = None,
        *,
        failure: str = "",
    ) -> None:
        """Write that something was changed, or that a change failed.

        Args:
            request: What was asked.
            principal: Who asked; None where nobody has to say who it is.
            source: From where; None for what the node does by its configuration.
            resource: What was to be changed.
            before: How it was, as what JSON has; None: it was not there.
            after: How it is now, likewise.
            failure: Why it failed; the rest says how far it came. Empty where it did
                not fail.
        """
