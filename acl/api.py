"""The contract of access control: hooks that know who asks, and whether they may.

A hook is found by its name among the entry points `ropeway.acl`: a callable that takes
a `Setting` and returns a `Hook`. The configuration's `acl.hooks` names those that are
asked, in their order.

The first authenticator that takes credentials for its own decides who sends a request;
where none does, the request is refused. Then for each thing that the request touches,
the first authorizer that has an opinion decides; where none has, it is refused. No hook
may let something in because it failed: what it raises refuses the request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from ropeway.acl.administration import Administration
from ropeway.acl.audit_api import Auditor
from ropeway.acl.principal import Channel, Principal, Source

if TYPE_CHECKING:
    from ropeway.common.eager import Eventual

__all__ = [
    "Action",
    "Authenticator",
    "Authorizer",
    "Channel",
    "Credentials",
    "Decision",
    "Explanation",
    "Guard",
    "Hook",
    "HookError",
    "Identity",
    "Need",
    "Open",
    "Opinion",
    "Principal",
    "PulsarAdmin",
    "Refused",
    "Resource",
    "ResourceKind",
    "RuleStore",
    "Setting",
    "Source",
    "StoreError",
    "Vault",
    "VaultError",
    "Verdict",
]


class Action(StrEnum):
    """What is done to a resource, by ACL 2.0's names."""

    PUB = "Pub"
    SUB = "Sub"
    CREATE = "Create"
    UPDATE = "Update"
    DELETE = "Delete"
    GET = "Get"
    LIST = "List"


class ResourceKind(StrEnum):
    """What can be guarded, by ACL 2.0's names."""

    CLUSTER = "Cluster"
    NAMESPACE = "Namespace"
    TOPIC = "Topic"
    GROUP = "Group"


class Resource(Struct, frozen=True, gc=False):
    """One thing that a request touches."""

    kind: ResourceKind
    name: str
    """As the client named it, but a group's without %RETRY% or %DLQ%."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


class Need(Struct, frozen=True, cache_hash=True, gc=False):
    """What a request must be allowed: one of the actions on the resource."""

    resource: Resource
    actions: tuple[Action, ...]

    @property
    def of_clients(self) -> tuple[Action, ...]:
        """The actions, for rules without Get and List, where who sends may look, too.

        Where Sub would do as well, a request shows messages, or where they are: by such
        rules that takes Sub.
        """
        if Action.SUB not in self.actions:
            return self.actions
        return tuple(one for one in self.actions if one not in _LOOKING)


_LOOKING = (Action.GET, Action.LIST)


class Credentials(Struct, gc=False):
    """What a client says of itself. Nothing of it is believed yet, nor bounded."""

    access_key: str = ""
    signature: str = ""
    """Base64 of the HMAC of `content()`."""
    security_token: str = ""
    signature_method: str = ""
    """Which hash the HMAC has; empty where the client does not say."""
    namespace: str = ""
    """That of the client, where it says it beside its resources' names."""
    signed: bytes = b""
    """What the signature is of, without the body."""
    body: bytes = b""

    @property
    def given(self) -> bool:
        """Whether the client says anything at all of who it is."""
        return bool(self.access_key or self.signature or self.security_token)

    def content(self) -> bytes:
        """The bytes that the signature is of; made when asked for, each time."""
        return self.signed + self.body


class Refused(Struct, frozen=True, gc=False):
    """An authenticator's answer: the credentials are its business, and are wrong.

    The client never learns which part of them was; the log does.
    """

    reason: str
    """For the audit log."""
    remark: str = "the access key, signature or token is not valid"
    """For the client: what to fix, and nothing that helps to guess."""


class Decision(Struct, frozen=True, gc=False):
    """Whether something is allowed, and why."""

    allowed: bool
    rule: str
    """Which rule decided, as people find it in the configuration."""
    reason: str = ""
    """For the audit log, where there is more to say than the rule."""
    remark: str = ""
    """For the client, where there is more to say than who may not do what."""
    valid_s: float | None = None
    """For how long it may be remembered; None: until the hook says that its rules have
    changed; 0: not at all."""


Identity = Principal | Refused | None
Opinion = Decision | None


class Authenticator(Protocol):
    """Knows who clients are."""

    def authenticate(
        self, credentials: Credentials, source: Source
    ) -> Eventual[Identity]:
        """Say who sent a request.

        It is called for every request, so an awaitable is for what is not known yet;
        what is remembered, and for how long, is the hook's business.

        Returns:
            None where these credentials are not of the hook's kind.
        """


class Authorizer(Protocol):
    """Knows who may do what."""

    def authorize(
        self, principal: Principal, need: Need, source: Source
    ) -> Eventual[Opinion]:
        """Say whether somebody may do one of the actions that are needed.

        The answer is remembered, by `Decision.valid_s`, for the principal, the need,
        the address and the channel, and for nothing else; so it must depend on nothing
        else. It is never asked for a principal that is `super`.

        Returns:
            None where the hook has no opinion of this principal or resource.
        """


class Hook(Struct, frozen=True):
    """What a name in `acl.hooks` stands for."""

    authenticator: Authenticator | None = None
    authorizer: Authorizer | None = None
    administration: Administration | None = None
    find: Callable[[str], Principal | None] | None = None
    """The principal of a name, as if it had proved it; to explain decisions."""
    close: Callable[[], Awaitable[None]] | None = None
    """Called once, at the end."""


class RuleStore(Protocol):
    """Where hooks keep rules that all nodes of a cluster share; by keys of their own.

    It is kept with the routes: who can read or write those can read or write this.
    """

    def items(self) -> Mapping[str, str]:
        """All that is kept, as this node knows it now; a copy."""

    async def change(
        self, key: str, change: Callable[[str | None], str | None]
    ) -> None:
        """Set or remove what is kept under a key.

        Args:
            key: Any text without a slash.
            change: Gets what is kept, None where nothing is, and returns what is to be;
                nobody else changes it meanwhile. It may be called again. What it raises
                is passed on.

        Raises:
            StoreError: Nothing was changed; or nobody knows.
        """

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed` after something was changed, on any node."""


class StoreError(Exception):
    """Rules cannot be stored now; asking again later may work."""


class Vault(Protocol):
    """Encrypts what must not be read where rules are kept."""

    def seal(self, secret: str) -> str:
        """Encrypt a secret; each time it looks different."""

    def unseal(self, sealed: str) -> str:
        """Decrypt what `seal` made.

        Raises:
            VaultError: It was sealed with another key, or is damaged.
        """


class VaultError(Exception):
    """A secret cannot be read; the text says why, and has nothing of the secret."""


class PulsarAdmin(Protocol):
    """The admin REST of a Pulsar, asked as somebody whom it knows."""

    async def get(self, path: str) -> tuple[int, bytes]:
        """Ask for what is at `/admin/v2/PATH`; the status and the content.

        Raises:
            OSError: Nobody answers, or there is nothing to sign in with.
        """


class Setting(Struct, frozen=True):
    """What a hook is given when it is made."""

    name: str
    """Its own, as the configuration has it; `Principal.hook` of whom it knows."""
    options: Mapping[str, Any]
    """Its table in the configuration, `acl.options.NAME`; empty where there is none."""
    cluster: str
    store: RuleStore
    vault: Vault
    changed: Callable[[], None]
    """To be called when rules have changed: what was decided is asked again."""
    environment: Mapping[str, str]
    """The process' environment, for secrets that are in no file."""
    audit: Auditor
    """For changes of rules that no request makes."""
    pulsar: PulsarAdmin | None = None
    """The one that the log is on, asked as the log does; None for another log."""


class Open(Protocol):
    """What an entry point of `ropeway.acl` is."""

    def __call__(self, setting: Setting) -> Eventual[Hook]:
        """Make a hook.

        Raises:
            HookError: Not of these options.
        """


class HookError(Exception):
    """A hook cannot be made of its options; the text says which, what is allowed."""


class Verdict(Struct, frozen=True, gc=False):
    """What a guard answers for a whole request."""

    allowed: bool
    principal: Principal | None = None
    """None where nobody knows who sent it."""
    remark: str = ""
    """What the client reads where it is refused."""


class Explanation(Struct, frozen=True):
    """What would be decided, and who decides it."""

    principal: Principal | None
    """None where no hook knows the name."""
    decision: Decision
    hook: str = ""
    """The authorizer that decides; empty where none does."""


class Guard(Protocol):
    """Asks the hooks, remembers what they said, and writes what was refused.

    Both questions are answered at once where the hooks do so: see `eager.begin`.
    """

    @property
    def administration(self) -> Administration | None:
        """That of the first hook that has one."""

    async def identify(
        self, credentials: Credentials, source: Source, request: str
    ) -> Verdict:
        """Say who sends a request; allowed means that it is known.

        Args:
            credentials: What the client says.
            source: Where it comes from.
            request: What is asked, for the audit log.
        """

    async def permit(
        self,
        principal: Principal | None,
        needs: tuple[Need, ...],
        source: Source,
        request: str,
    ) -> Verdict:
        """Say whether somebody may have a request done: all needs must be met.

        Args:
            principal: Who; None where nobody knows, which only a dry run lets pass.
            needs: What the request touches; nothing: whoever is known may.
            source: Where it comes from.
            request: What is asked, for the audit log.
        """

    async def may(
        self, principal: Principal | None, needs: tuple[Need, ...], source: Source
    ) -> bool:
        """Say the same of what nobody tries yet: a refusal is not written.

        Args:
            principal: Who.
            needs: What it would touch.
            source: Where it would come from.
        """

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed` after rules have changed: what was let in may not be now."""

    async def explain(self, principal: str, need: Need, source: Source) -> Explanation:
        """Say what would be decided for a principal of a name.

        Nothing of it is written to the audit log, nor remembered.
        """

    async def close(self) -> None:
        """Close every hook."""
