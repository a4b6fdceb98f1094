"""ZooKeeper's tree: what each request does to it and is answered, and what it tells.

As ZooKeeper 3.9.5 does it; `test_zookeeper` holds it against a real one. Requests are
kazoo's own (`kazoo.protocol.serialization`), and so are errors and stats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kazoo.exceptions import (
    BadVersionError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
    ZookeeperError,
)
from kazoo.protocol.serialization import (
    CheckVersion,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    SetData,
    Transaction,
)
from kazoo.protocol.states import EventType, ZnodeStat

if TYPE_CHECKING:
    from collections.abc import Callable

EPHEMERAL, SEQUENCE = 1, 2
"""Flags of `Create`."""


class Event(NamedTuple):
    """What happened to a path."""

    kind: str
    path: str


class Znode:
    """One node."""

    def __init__(self, data: bytes, owner: int, zxid: int) -> None:
        self.data = data
        self.version = 0
        self.owner = owner
        """The session that it goes with; 0 where it stays."""
        self.made = 0
        """How many children it ever had: the number of the next in a sequence."""
        self.children: dict[str, None] = {}
        self.made_at = self.set_at = self.children_at = zxid

    def stat(self) -> ZnodeStat:
        """What a request is told of it; no node has a time here."""
        return ZnodeStat(
            czxid=self.made_at,
            mzxid=self.set_at,
            ctime=0,
            mtime=0,
            version=self.version,
            cversion=2 * self.made - len(self.children),
            aversion=0,
            ephemeralOwner=self.owner,
            dataLength=len(self.data),
            numChildren=len(self.children),
            pzxid=self.children_at,
        )


class Tree:
    """All nodes, as one server has them."""

    def __init__(self) -> None:
        self.nodes: dict[str, Znode] = {"/": Znode(b"", 0, 0)}
        self.zxid = 0
        """Of the last change, done or refused."""
        self._events: list[Event] = []
        self._undo: list[Callable[[], None]] = []

    # -- reading

    def read(self, request: Any) -> Any:
        """What a request that changes nothing is answered.

        Raises:
            NoNodeError: There is no such node.
        """
        node = self.nodes.get(request.path)
        if isinstance(request, Exists):
            return node.stat() if node is not None else None
        if node is None:
            raise NoNodeError
        if isinstance(request, GetChildren):
            return [*node.children]
        assert isinstance(request, GetData)
        return node.data, node.stat()

    # -- changing

    def apply(self, request: Any, session: int) -> tuple[Any, list[Event]]:
        """Do what a request asks for, all or nothing.

        Returns:
            What it is answered, an error perhaps; and what there is to tell.
        """
        self.zxid += 1
        self._events, self._undo = [], []
        answer: Any
        if isinstance(request, Transaction):
            answer = self._all(request.operations, session)
        else:
            try:
                answer = self._change(request, session)
            except ZookeeperError as error:
                answer = error
        return answer, self._events

    def end(self, session: int) -> list[Event]:
        """Have all nodes gone that go with a session."""
        self.zxid += 1
        self._events, self._undo = [], []
        for path in [path for path, one in self.nodes.items() if one.owner == session]:
            self._delete(Delete(path, -1))
        return self._events

    def _all(self, operations: list[Any], session: int) -> list[Any]:
        answers: list[Any] = []
        for number, one in enumerate(operations):
            try:
                answers.append(self._change(one, session))
            except ZookeeperError as error:
                for undo in reversed(self._undo):
                    undo()
                self._events = []
                after = len(operations) - number - 1
                rest = [RuntimeInconsistency() for _ in range(after)]
                return [*(RolledBackError() for _ in answers), error, *rest]
        return answers

    def _change(self, request: Any, session: int) -> Any:
        if isinstance(request, Create):
            return self._create(request, session)
        if isinstance(request, Delete):
            return self._delete(request)
        if isinstance(request, SetData):
            return self._set(request)
        assert isinstance(request, CheckVersion)
        self._found(request.path, request.version)
        return True

    def _found(self, path: str, version: int) -> Znode:
        node = self.nodes.get(path)
        if node is None:
            raise NoNodeError
        if version not in (-1, node.version):
            raise BadVersionError
        return node

    def _create(self, request: Any, session: int) -> str:
        path: str = request.path
        above = _above(path)
        parent = self.nodes.get(above)
        if parent is None:
            raise NoNodeError
        if request.flags & SEQUENCE:
            path = f"{path}{parent.made:010d}"
        if path in self.nodes:
            raise NodeExistsError
        if parent.owner:
            raise NoChildrenForEphemeralsError
        owner = session if request.flags & EPHEMERAL else 0
        before_at = parent.children_at
        self.nodes[path] = Znode(request.data, owner, self.zxid)
        parent.children[_name(path)] = None
        parent.made += 1
        parent.children_at = self.zxid

        def undo() -> None:
            del self.nodes[path], parent.children[_name(path)]
            parent.made -= 1
            parent.children_at = before_at

        self._undo.append(undo)
        self._tell(EventType.CREATED, path)
        self._tell(EventType.CHILD, above)
        return path

    def _delete(self, request: Any) -> bool:
        path: str = request.path
        node = self._found(path, request.version)
        if node.children:
            raise NotEmptyError
        above = _above(path)
        parent = self.nodes[above]
        before_at = parent.children_at
        del self.nodes[path], parent.children[_name(path)]
        parent.children_at = self.zxid

        def undo() -> None:
            self.nodes[path] = node
            parent.children[_name(path)] = None
            parent.children_at = before_at

        self._undo.append(undo)
        self._tell(EventType.DELETED, path)
        self._tell(EventType.CHILD, above)
        return True

    def _set(self, request: Any) -> ZnodeStat:
        node = self._found(request.path, request.version)
        before = node.data, node.version, node.set_at

        def undo() -> None:
            node.data, node.version, node.set_at = before

        self._undo.append(undo)
        node.data = request.data
        node.version += 1
        node.set_at = self.zxid
        self._tell(EventType.CHANGED, request.path)
        return node.stat()

    def _tell(self, kind: str, path: str) -> None:
        self._events.append(Event(kind, path))


def _above(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _name(path: str) -> str:
    return path.rpartition("/")[2]
