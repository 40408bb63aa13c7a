# SPDX-License-Identifier: Apache-2.0
"""Checks that files have at most 500 lines and functions at most 80: what is longer is two things.

Run by `make lint`. A Python function is measured without its parameters, which are an option list for commands; a C++
function from its first line to its closing brace. `tools/size_exceptions.toml` lists what may be longer, and why.
`python tools/check_sizes.py --update` lowers those lengths to what they are, and removes exceptions without a use.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tomlkit

from check_words import ROOT, tracked_files

EXCEPTIONS = "tools/size_exceptions.toml"
FILE_LINES = 500
FUNCTION_LINES = 80
CPP = {".hpp", ".cpp", ".h", ".c", ".cu", ".cuh"}
MEASURED = CPP | {".py", ".js", ".css", ".md", ".sh"}


@dataclass(frozen=True)
class Size:
    """The length of a file (without a function's name) or of a function."""

    file: str
    function: str
    line: int
    lines: int

    @property
    def limit(self) -> int:
        """How long it may be without an exception."""
        return FUNCTION_LINES if self.function else FILE_LINES


def python_functions(text: str) -> Iterator[tuple[str, int, int]]:
    """Name, line and number of lines of each function in Python, methods with their class."""

    def visit(node: ast.AST, prefix: str) -> Iterator[tuple[str, int, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                end = child.end_lineno or child.lineno
                yield prefix + child.name, child.lineno, end - child.body[0].lineno + 1
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield from visit(child, f"{prefix}{child.name}.")
            else:
                yield from visit(child, prefix)

    yield from visit(ast.parse(text), "")


_RAW_STRING = r'R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)"'
_IGNORED = re.compile(
    rf"""{_RAW_STRING}|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"""
    r"|^[ \t]*\#(?:[^\n\\]|\\.)*",
    re.S | re.M,
)
_SCOPE = re.compile(
    r'^(?:template\s*<.*?>\s*)?(?:[\w:\[\]\s()"]*?\b)?(?:namespace|class|struct|union|enum|extern)\b', re.S
)
_NOT_A_FUNCTION = re.compile(
    r"^(?:if|for|while|switch|catch|do|else|try|return)\b|=\s*$|\[[^\]]*\]\s*\([^()]*\)\s*$"
)
_MACRO = re.compile(
    r"^[A-Z][A-Z0-9_]+\((?:[^()]|\([^()]*\))*\)$"
)  # used as a declaration, without a semicolon
_FUNCTION = re.compile(
    r"\)\s*(?:const|noexcept(?:\([^()]*\))?|override|final|mutable|&&?|requires\b.*|->.*|\s)*$", re.S
)


def without_text(text: str) -> str:
    """The source with comments, strings and directives blank, on the same lines."""
    return _IGNORED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def cpp_functions(text: str) -> Iterator[tuple[str, int, int]]:
    """Name, line and number of lines of each C or C++ function, by a scan of braces; lambdas count with theirs."""
    code = without_text(text)
    head = ""  # what stands before the next brace, from `begin` on
    begin = 0
    open_braces: list[tuple[str, str, int]] = []  # kind, head and begin of each
    inside = 0  # open braces since the body of the present function began
    for position, character in enumerate(code):
        if character == "{":
            if inside:
                inside += 1
                continue
            kind = _kind(head.strip())
            open_braces.append((kind, head, begin))
            if kind == "function":
                inside = 1
            elif kind == "scope":
                head = ""
        elif character == "}":
            if inside > 1:
                inside -= 1
                continue
            kind, before, start = open_braces.pop() if open_braces else ("scope", "", 0)
            if kind == "function":
                inside = 0
                first = code.count("\n", 0, start)
                yield _name(before), first + 1, code.count("\n", 0, position) - first + 1
                head = ""
            elif kind == "scope":
                head = ""
            else:  # an initialiser is a part of what stands before
                head, begin = before + "()", start
        elif not inside:
            in_initialiser = bool(open_braces) and open_braces[-1][0] == "initialiser"
            if (character == ";" and not in_initialiser) or (
                character == "\n" and _MACRO.match(head.strip())
            ):
                head = ""
            else:
                if not head.strip():
                    head, begin = "", position
                head += character


def _kind(head: str) -> str:
    """What an opening brace opens, by what stands before it."""
    head = re.sub(r"^(?:public|protected|private)\s*:\s*", "", head)
    if _NOT_A_FUNCTION.search(head):
        return "initialiser"
    if _FUNCTION.search(head) and "(" in head:
        return "function"
    if not head or _SCOPE.match(head):
        return "scope"
    return "initialiser"


def _name(head: str) -> str:
    """The name of the function, or of the test case, with this head."""
    if test_case := re.search(r"\bTEST\((\w+)\)", head):
        return test_case[1]
    found = re.search(r"([\w:~]+|operator\s*[^\s\w(]+|operator\(\))\s*\(", head)
    return found[1] if found else "?"


def sizes(root: Path, files: list[str]) -> Iterator[Size]:
    """The lengths of all files and functions."""
    for name in files:
        suffix = Path(name).suffix
        if suffix not in MEASURED:
            continue
        text = (root / name).read_text(encoding="utf-8")
        yield Size(name, "", 1, text.count("\n"))
        if suffix == ".py":
            functions = python_functions(text)
        elif suffix in CPP:
            functions = cpp_functions(text)
        else:
            continue
        for function, line, lines in functions:
            yield Size(name, function, line, lines)


@dataclass(frozen=True)
class Exemption:
    """A file or function that may be longer, with the reason."""

    file: str
    function: str
    lines: int
    reason: str


def read_exceptions(path: Path) -> list[Exemption]:
    """The list of what may be longer."""
    entries = tomlkit.parse(path.read_text(encoding="utf-8")).unwrap().get("exception", [])
    return [Exemption(e["file"], e.get("function", ""), e["lines"], e["reason"]) for e in entries]


def exceptions_text(exceptions: list[Exemption]) -> str:
    """The file of exceptions."""
    parts = [
        "# SPDX-License-Identifier: Apache-2.0\n"
        "# What may be longer than 500 lines (files) or 80 lines (functions), and why. tools/check_sizes.py reads it."
    ]
    for one in sorted(exceptions, key=lambda one: (one.file, one.function)):
        function = f'function = "{one.function}"\n' if one.function else ""
        parts.append(
            f'[[exception]]\nfile = "{one.file}"\n{function}lines = {one.lines}\nreason = "{one.reason}"'
        )
    return "\n\n".join(parts) + "\n"


def longest(measured: list[Size]) -> dict[tuple[str, str], Size]:
    """What is over its limit; of functions with one name in one file, the longest."""
    over: dict[tuple[str, str], Size] = {}
    for size in measured:
        key = (size.file, size.function)
        if size.lines > size.limit and (key not in over or over[key].lines < size.lines):
            over[key] = size
    return over


def problems(over: dict[tuple[str, str], Size], exceptions: list[Exemption]) -> list[str]:
    """What is too long, one sentence each."""
    allowed = {(one.file, one.function): one.lines for one in exceptions}
    return [
        f"{size.file}:{size.line}: {size.function or 'the file'} has {size.lines} lines; "
        f"at most {allowed.get(key, size.limit)} are allowed"
        for key, size in over.items()
        if size.lines > allowed.get(key, size.limit)
    ]


def lowered(over: dict[tuple[str, str], Size], exceptions: list[Exemption]) -> list[Exemption]:
    """The exceptions that are needed still, each no longer than what it is for."""
    return [
        Exemption(one.file, one.function, min(one.lines, over[one.file, one.function].lines), one.reason)
        for one in exceptions
        if (one.file, one.function) in over
    ]


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Prints the problems and returns 1 if there are any."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--update", action="store_true", help="lower the exceptions to what is needed")
    options = parser.parse_args(arguments)
    over = longest(list(sizes(root, tracked_files(root))))
    exceptions = read_exceptions(root / EXCEPTIONS)
    if options.update:
        exceptions = lowered(over, exceptions)
        (root / EXCEPTIONS).write_text(exceptions_text(exceptions), encoding="utf-8")
    wrong = problems(over, exceptions)
    for problem in wrong:
        print(problem, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
