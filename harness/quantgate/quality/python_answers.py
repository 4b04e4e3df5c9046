"""Finds and parses the Python code in an answer. The code is read, never run."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

_FENCE = re.compile(r"```[ \t]*(?:python3?|py)?[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)
_CODE_LINE = re.compile(r"^(?:def |async def |class |import |from |@)", re.MULTILINE)


def parse_answer(text: str, *, truncated: bool) -> ast.Module | None:
    """The answer's code as a syntax tree; None where there is none that parses.

    Code is the first fenced block or, without fences, the text from its first line that starts a statement: prose
    after unfenced code makes it unparsable, as it would for the program that reads it. An answer that the token limit
    cut is judged by its whole lines: the longest beginning that parses.
    """
    code = _code(text)
    if code is None:
        return None
    for candidate in _beginnings(code) if truncated else [code]:
        module = _parse(candidate)
        if module is not None and module.body:
            return module
    return None


def defines_function(module: ast.Module, name: str, parameter_count: int) -> bool:
    """Whether a top-level function of that name takes that many positional arguments and returns a value."""
    return any(
        isinstance(node, ast.FunctionDef)
        and node.name == name
        and _accepts(node.args, parameter_count)
        and _returns_value(node)
        for node in module.body
    )


def _code(text: str) -> str | None:
    fenced = _FENCE.search(text)
    if fenced:
        return fenced.group(1)
    start = _CODE_LINE.search(text)
    return text[start.start() :] if start else None


def _beginnings(code: str) -> Iterator[str]:
    lines = code.splitlines(keepends=True)
    for count in range(len(lines), 0, -1):
        yield "".join(lines[:count])


def _parse(code: str) -> ast.Module | None:
    with warnings.catch_warnings():
        # The parser warns of odd escapes in the answer's string literals; that is the arm's style, not our fault.
        warnings.simplefilter("ignore")
        try:
            return ast.parse(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _accepts(arguments: ast.arguments, count: int) -> bool:
    positional = len(arguments.posonlyargs) + len(arguments.args)
    required = positional - len(arguments.defaults)
    needs_keywords = any(default is None for default in arguments.kw_defaults)
    return required <= count and (count <= positional or arguments.vararg is not None) and not needs_keywords


def _returns_value(function: ast.FunctionDef) -> bool:
    return any(
        isinstance(node, (ast.Yield, ast.YieldFrom)) or (isinstance(node, ast.Return) and node.value is not None)
        for node in _own_nodes(function)
    )


def _own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The function's nodes without those of functions inside it, whose returns are not its own."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            pending.extend(ast.iter_child_nodes(node))
