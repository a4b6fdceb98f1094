"""Makes the mutants of a source text: one small change each, by its syntax tree.

Left alone, since no behaviour that is promised hangs on them: annotations, strings,
assertions, log lines, what stands under TYPE_CHECKING, and one more or less of a number
that is a constant and a size or a time: of a module a float and what is 32 or more, and
what is computed, as 8 << 20 is.
"""

from __future__ import annotations

import ast
import copy
import difflib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

COMPARISONS: dict[type[ast.cmpop], list[type[ast.cmpop]]] = {
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}
EXTREMES = {"min": "max", "max": "min"}
LOG_LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
LEAST_PACE = 32
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Mutant:
    """One change to one file.

    Args:
        path: The file, relative to the tree.
        where: The qualified name of the function or class around it.
        line: The line that it begins at, from 1.
        operator: What kind of change it is.
        was: The lines that change, as they are, without what stands around them.
        becomes: Those lines as they become.
        number: Which one of those with the same text, from 0.
        start: Where the replaced bytes begin in the file.
        end: Where they end.
        text: What replaces them.
        in_function: Whether it is made to the body of a function, which can be put into
            place without importing the module anew.
    """

    path: str
    where: str
    line: int
    operator: str
    was: str
    becomes: str
    number: int
    start: int
    end: int
    text: str
    in_function: bool

    @property
    def key(self) -> str:
        """What stays the same when lines are put in above it."""
        # No tab stands in what was joined by single spaces.
        return "\t".join(
            [self.path, self.where, self.was, self.becomes, str(self.number)]
        )

    def apply(self, source: bytes) -> bytes:
        """The file with the change."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    def diff(self, source: bytes) -> str:
        """The change as a unified diff with three lines around it."""
        lines = difflib.unified_diff(
            source.decode().splitlines(),
            self.apply(source).decode().splitlines(),
            f"a/{self.path}",
            f"b/{self.path}",
            lineterm="",
        )
        return "\n".join(lines)


def _unparse(node: ast.expr) -> str:
    text = ast.unparse(node)
    if isinstance(
        node,
        ast.BoolOp
        | ast.BinOp
        | ast.Compare
        | ast.IfExp
        | ast.Lambda
        | ast.NamedExpr
        | ast.UnaryOp
        | ast.Await,
    ):
        return f"({text})"
    return text


def _is_log_call(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in LOG_LEVELS
        and ast.unparse(node.func.value).split(".")[-1].strip("_") in {"log", "logger"}
    )


def _negated(test: ast.expr) -> str:
    return f"not {_unparse(test)}"


def _is_told_elsewhere(test: ast.expr) -> bool:
    """Whether another operator negates this condition already."""
    if isinstance(test, ast.UnaryOp):
        return isinstance(test.op, ast.Not)
    return isinstance(test, ast.Compare) and len(test.ops) == 1


def _changes(  # noqa: C901, PLR0912, PLR0915 - a table, a case for each kind
    node: ast.AST,
) -> Iterator[tuple[ast.AST, str, str]]:
    """What is replaced, by what kind of change, and with what text."""
    match node:
        case ast.Compare():
            for at, op in enumerate(node.ops):
                for other in COMPARISONS[type(op)]:
                    changed = copy.copy(node)
                    changed.ops = [*node.ops[:at], other(), *node.ops[at + 1 :]]
                    yield node, "comparison", _unparse(changed)
        case ast.BoolOp():
            other_op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield (
                node,
                "and/or",
                _unparse(ast.BoolOp(op=other_op, values=node.values)),
            )
        case ast.UnaryOp(op=ast.Not()):
            yield node, "without not", _unparse(node.operand)
        case ast.UnaryOp(op=ast.USub()) if not isinstance(node.operand, ast.Constant):
            yield node, "without minus", _unparse(node.operand)
        case ast.BinOp() if type(node.op) in ARITHMETIC:
            other = ARITHMETIC[type(node.op)]()
            yield (
                node,
                "arithmetic",
                _unparse(ast.BinOp(left=node.left, op=other, right=node.right)),
            )
        case ast.AugAssign():
            yield node, "without statement", "pass"
            if type(node.op) in ARITHMETIC:
                changed_one = copy.copy(node)
                changed_one.op = ARITHMETIC[type(node.op)]()
                yield node, "arithmetic", ast.unparse(changed_one)
        case ast.Constant(value=bool()):
            yield node, "constant", str(not node.value)
        case ast.Constant(value=int() | float()):
            yield node, "constant", repr(node.value + 1)
            if node.value:
                yield node, "constant", repr(node.value - 1)
        case ast.Name(id="min" | "max", ctx=ast.Load()):
            yield node, "min/max", EXTREMES[node.id]
        case ast.If() | ast.IfExp() if not _is_told_elsewhere(node.test):
            yield node.test, "negated condition", _negated(node.test)
        case ast.While():
            yield node.test, "no round", "False"
        case ast.For():
            yield node.iter, "no round", "()"
        case ast.comprehension():
            for test in node.ifs:
                yield test, "no filter", "True"
        case ast.Break():
            yield node, "break/continue", "continue"
        case ast.Continue():
            yield node, "break/continue", "break"
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield node, "without statement", "pass"
        case ast.Raise() | ast.Delete():
            yield node, "without statement", "pass"
        case ast.Assign() if all(
            isinstance(one, ast.Attribute | ast.Subscript) for one in node.targets
        ):
            yield node, "without statement", "pass"
        case ast.Return(value=None):
            yield node, "without statement", "pass"
        case ast.Return() if not isinstance(node.value, ast.Constant):
            yield node, "returns None", "return None"
        case ast.Call():
            for at, keyword in enumerate(node.keywords):
                if keyword.arg not in {None, "strict"}:
                    call = copy.copy(node)
                    call.keywords = node.keywords[:at] + node.keywords[at + 1 :]
                    yield node, "without keyword", ast.unparse(call)


def _is_pace_or_type(node: ast.AST) -> bool:
    """Whether it is a number of which one more or less is as good, or `A | B`."""
    match node:
        case ast.BinOp(op=ast.BitOr()):
            return True
        case ast.Constant(value=bool()):
            return False
        case ast.Constant(value=float()):
            return True
        case ast.Constant(value=int()):
            return node.value >= LEAST_PACE
    return False


class _Walk:
    """Goes through a tree and keeps what may be changed, and where it stands."""

    def __init__(self) -> None:
        self.found: list[tuple[ast.AST, str, str, str, bool]] = []

    def block(self, nodes: list[ast.stmt], where: str, in_function: bool) -> None:
        for node in nodes:
            self.node(node, where, in_function)

    def node(  # noqa: C901, PLR0911, PLR0912 - likewise
        self, node: ast.AST, where: str, in_function: bool
    ) -> None:
        if isinstance(node, ast.JoinedStr | ast.Assert) or _is_log_call(node):
            return  # positions in f-strings are not those of the text, before 3.12
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "TypeVar":
            return
        if isinstance(node, ast.Expr) and _is_log_call(node.value):
            return
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node, FUNCTIONS):
            name = f"{where}.{node.name}" if where else node.name
            for one in [*node.decorator_list, *node.args.defaults]:
                self.node(one, name, in_function)
            for default in node.args.kw_defaults:
                if default is not None:
                    self.node(default, name, in_function)
            self.block(node.body, name, True)
            return
        if isinstance(node, ast.ClassDef):
            name = f"{where}.{node.name}" if where else node.name
            for decorator in node.decorator_list:
                self.node(decorator, name, in_function)
            self.block(node.body, name, in_function)
            return
        if not in_function and isinstance(node, ast.Assign | ast.AnnAssign):
            before = len(self.found)
            if node.value is not None:
                self.node(node.value, where, in_function)
            computed = isinstance(node.value, ast.BinOp)
            self.found[before:] = [
                one
                for one in self.found[before:]
                if not (_is_pace_or_type(one[0]) and not where)
                and not (computed and one[1] == "constant")
            ]
            return
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                if isinstance(node.target, ast.Attribute):
                    self.found.append(
                        (node, "without statement", "pass", where, in_function)
                    )
                self.node(node.value, where, in_function)
            return
        if isinstance(node, ast.keyword) and node.arg == "strict":
            return  # zip's: it asserts
        for target, operator, text in _changes(node):
            self.found.append((target, operator, text, where, in_function))
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.arguments):
                for default in child.defaults:
                    self.node(default, where, in_function)
            else:
                self.node(child, where, in_function)


def _line_starts(source: bytes) -> list[int]:
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def mutants(path: str, source: bytes) -> list[Mutant]:
    """Every mutant of a file, in the order of the text."""
    walk = _Walk()
    walk.block(ast.parse(source).body, "", False)
    starts = _line_starts(source)
    found: list[Mutant] = []
    numbers: Counter[tuple[str, str, str]] = Counter()
    for node, operator, text, where, in_function in walk.found:
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        if source[start:end].decode() == text:
            continue
        # The whole lines that it stands in, before and after.
        first, last = starts[node.lineno - 1], starts[node.end_lineno]
        was = source[first:last].decode()
        becomes = (source[first:start] + text.encode() + source[end:last]).decode()
        words = (where, _joined(was), _joined(becomes))
        found.append(
            Mutant(
                path,
                where,
                node.lineno,
                operator,
                words[1],
                words[2],
                numbers[words],
                start,
                end,
                text,
                in_function,
            )
        )
        numbers[words] += 1
    return found


def _joined(text: str) -> str:
    return " ".join(text.split())
