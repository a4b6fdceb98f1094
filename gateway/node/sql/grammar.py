"""The grammar of RocketMQ's SQL92: from text to a node.

The parser keeps a stack of its own, so that no text is too deep for it.

Source: SelectorParser.jj, RocketMQ 5.5.0.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from lark import Lark, Token, UnexpectedCharacters, UnexpectedToken

from ropeway.gateway.node.sql.builder import Builder
from ropeway.gateway.node.sql.nodes import SqlError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from lark.parsers.lalr_interactive_parser import InteractiveParser

    from ropeway.gateway.node.sql.nodes import Node

_GRAMMAR = r"""
start: disjunction

?disjunction: conjunction (OR conjunction)*
?conjunction: equality (AND equality)*

?equality: comparison
    | equality EQUAL comparison             -> equal
    | equality NOT_EQUAL comparison         -> not_equal
    | equality IS NULL                      -> is_null
    | equality IS NOT NULL                  -> is_not_null

?comparison: unary
    | comparison (LESS | LESS_OR_EQUAL | GREATER | GREATER_OR_EQUAL) unary -> ordered
    | comparison (CONTAINS | STARTSWITH | ENDSWITH) TEXT        -> having
    | comparison NOT (CONTAINS | STARTSWITH | ENDSWITH) TEXT    -> not_having
    | comparison BETWEEN unary AND unary                        -> between
    | comparison NOT BETWEEN unary AND unary                    -> not_between
    | comparison IN "(" TEXT ("," TEXT)* ")"                    -> within
    | comparison NOT IN "(" TEXT ("," TEXT)* ")"                -> not_within

?unary: primary
    | "+" unary
    | MINUS unary   -> minus
    | NOT unary     -> inverted

?primary: TEXT      -> text
    | WHOLE         -> whole
    | FRACTION      -> fraction
    | TRUE          -> true
    | FALSE         -> false
    | NULL          -> null
    | NAME          -> property
    | "(" disjunction ")"

NOT: "NOT"i
AND: "AND"i
OR: "OR"i
BETWEEN: "BETWEEN"i
IN: "IN"i
TRUE: "TRUE"i
FALSE: "FALSE"i
NULL: "NULL"i
IS: "IS"i
CONTAINS: "CONTAINS"i
STARTSWITH: "STARTSWITH"i
ENDSWITH: "ENDSWITH"i

EQUAL: "="
NOT_EQUAL: "<>"
LESS: "<"
LESS_OR_EQUAL: "<="
GREATER: ">"
GREATER_OR_EQUAL: ">="
MINUS: "-"

NAME: /[a-z_$][a-z0-9_$]*/i
TEXT: /'(?:''|[^'])*'/
FRACTION.2: /(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|[0-9]+e[+-]?[0-9]+/i
WHOLE.1: /(?:0|[1-9][0-9]*)l?/i

BLANK: /[ \t\n\r\f]+/
LINE_COMMENT.2: /--[^\n\r]*(?:\r\n|\n|\r)/
BLOCK_COMMENT.2: /\/\*[^*]*\*(?:\*|[^*\/][^*]*\*)*\//
%ignore BLANK
%ignore LINE_COMMENT
%ignore BLOCK_COMMENT
"""

_PARSER = Lark(
    _GRAMMAR,
    parser="lalr",
    # The other lexer would take a reserved word for a name where only a name may stand.
    lexer="basic",
    transformer=Builder(),
    maybe_placeholders=False,
    # Reserved words are ASCII in any case; without it, some other letters would do.
    g_regex_flags=re.ASCII,
)

_STEP_TOKENS = 64
"""Half a millisecond."""

_SHOWN = 40
"""Characters of what came that an error repeats."""

_OPERAND = frozenset({"NAME", "TEXT", "WHOLE", "FRACTION", "TRUE", "FALSE", "NULL"})
_NAMES = {
    "$END": "the end",
    "COMMA": "','",
    "EQUAL": "=",
    "GREATER": ">",
    "GREATER_OR_EQUAL": ">=",
    "LESS": "<",
    "LESS_OR_EQUAL": "<=",
    "LPAR": "'('",
    "MINUS": "-",
    "NOT_EQUAL": "<>",
    "PLUS": "+",
    "RPAR": "')'",
    "TEXT": "a text in single quotes",
}
"""What a user calls a terminal that is no word."""


def parse_in_steps(text: str) -> Iterator[Node | None]:
    """Read an expression, each step less than a millisecond; the last one gives it.

    Raises:
        SqlError: It is none; the text says where, what came, and what is allowed.
    """
    try:
        parser = _PARSER.parse_interactive(text)
        token = yield from _read(parser)
        whole = parser.feed_eof(token)  # type: ignore[no-untyped-call]
        yield cast("Node", whole)
    except UnexpectedToken as error:
        if error.token.type == "$END":
            allowed = yield from _allowed(text)
            raise SqlError(f"the end; {allowed}", _end(text)) from error
        came = repr(str(error.token)[:_SHOWN])
        allowed = yield from _allowed(text[: error.token.start_pos])
        raise SqlError(f"{came}; {allowed}", error.token) from error
    except UnexpectedCharacters as error:
        place = Token("", "", line=error.line, column=error.column)
        problem = yield from _unreadable(text, error.pos_in_stream or 0)
        raise SqlError(problem, place) from error


def _read(parser: InteractiveParser) -> Generator[None, None, Token | None]:
    last = None
    for number, token in enumerate(parser.iter_parse(), 1):
        last = token
        if number % _STEP_TOKENS == 0:
            yield
    return last


def _end(text: str) -> Token:
    line = text.count("\n") + 1
    return Token("", "", line=line, column=len(text) - text.rfind("\n"))


def _unreadable(text: str, place: int) -> Generator[None, None, str]:
    if text.startswith("'", place):
        return "a text without its closing quote; allowed: 'text', and '' for a quote"
    if text.startswith("/*", place):
        return "a comment without its end; allowed: /* comment */"
    allowed = yield from _allowed(text[:place])
    return f"{text[place]!r}; {allowed}"


def _allowed(before: str) -> Generator[None, None, str]:
    # What the error itself has is less: the parser may have closed parts before it.
    parser = _PARSER.parse_interactive(before)
    yield from _read(parser)
    return f"allowed: {_listed(parser.accepts())}"  # type: ignore[no-untyped-call]


def _listed(terminals: Iterable[str]) -> str:
    left = set(terminals)
    names = []
    if left >= _OPERAND:
        left -= _OPERAND
        names.append("a property, a number, a text in single quotes, TRUE, FALSE, NULL")
    names += sorted(_NAMES.get(one, one) for one in left)
    return ", ".join(names)
