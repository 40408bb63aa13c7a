# SPDX-License-Identifier: Apache-2.0
"""Faults of kernels and results of checks for other tools: JUnit XML of test reports, SARIF of code scanners."""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Annotated, Any
from xml.etree import ElementTree

import typer

from manyscale.errors import KernelError, ManyscaleError

Junit = Annotated[
    Path | None,
    typer.Option("--junit", metavar="FILE", help="Write faults and findings as JUnit XML, for test reports."),
]
Sarif = Annotated[
    Path | None,
    typer.Option("--sarif", metavar="FILE", help="Write faults and findings as SARIF, for code scanning."),
]
_SOURCE = re.compile(r"([^\s()]+\.\w+)(?::|, line )(\d+)")
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a program, and where."""

    rule: str  # what kind of problem, such as "race" or "unsupported"
    subject: str  # the kernel or file that has it
    message: str
    file: str = ""
    line: int = 0
    level: str = "error"  # as SARIF has it: error, warning or note

    @classmethod
    def of_fault(cls, error: Exception, subject: str) -> Finding:
        """A fault of a kernel, with its line where it is known."""
        location = getattr(error, "location", None)
        kind = getattr(error, "kind", None)
        file, line = source_line("" if location is None else location.source)
        rule = "fault" if kind is None else str(getattr(kind, "name", kind)).lower().replace("_", "-")
        name = subject if location is None else location.kernel or subject
        return cls(rule, name, str(error), file, line)

    @classmethod
    def of_warning(cls, text: str, subject: str) -> Finding:
        """What a check of a launch says, with its line where it names one."""
        return cls("check", subject, text, *source_line(text), level="warning")


def source_line(text: str) -> tuple[str, int]:
    """The file and line in a text, of the source rather than of the PTX.

    >>> source_line("saxpy.ptx:30 (saxpy.cu:12)"), source_line("")
    (('saxpy.cu', 12), ('', 0))
    """
    found = _SOURCE.findall(text)
    return (found[-1][0], int(found[-1][1])) if found else ("", 0)


@dataclass
class Findings:
    """What was looked at, and what was found."""

    subjects: list[str] = field(default_factory=list)
    found: list[Finding] = field(default_factory=list)


@contextlib.contextmanager
def findings_to(junit: Path | None, sarif: Path | None, subject: str) -> Iterator[Findings]:
    """Writes what was found to the files that are wanted; a fault of a kernel is found, too, and raised on."""
    findings = Findings([subject])
    try:
        yield findings
    except ManyscaleError as error:
        if isinstance(error, KernelError):
            findings.found.append(Finding.of_fault(error, subject))
            _write(findings, junit, sarif)
        raise
    _write(findings, junit, sarif)


def _write(findings: Findings, junit: Path | None, sarif: Path | None) -> None:
    """Replaces files of the same kind, as those of the last run are, and no others."""
    from manyscale.results.files import FileKind, write_file

    kinds = (
        (junit, junit_text, FileKind("a JUnit report", lambda data: b"<testsuite" in data)),
        (sarif, sarif_text, FileKind("a SARIF log", lambda data: b"sarif" in data)),
    )
    for path, make, kind in kinds:
        if path is not None:
            content = make(findings.subjects, findings.found)
            write_file(path, functools.partial(_put, content), kind, force=True)


def _put(content: bytes, file: IO[bytes]) -> None:
    file.write(content)


def junit_text(subjects: Sequence[str], found: Sequence[Finding]) -> bytes:
    """A test case for each subject; one with problems has failed."""
    names = list(dict.fromkeys([*(finding.subject for finding in found), *subjects]))
    by_name = {name: [finding for finding in found if finding.subject == name] for name in names}
    failed = sum(map(bool, by_name.values()))
    suite = ElementTree.Element("testsuite", name="manyscale", tests=str(len(names)), failures=str(failed))
    for name, problems in by_name.items():
        case = ElementTree.SubElement(suite, "testcase", classname="manyscale", name=name)
        if problems:
            first = problems[0]
            if first.file:
                case.set("file", first.file)
            if first.line:
                case.set("line", str(first.line))
            failure = ElementTree.SubElement(
                case, "failure", type=first.rule, message=first.message.splitlines()[0]
            )
            failure.text = "\n".join(_text(problem) for problem in problems)
    ElementTree.indent(suite)
    text: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _text(finding: Finding) -> str:
    where = f"{finding.file}:{finding.line}: " if finding.line else ""
    return f"{where}{finding.message}"


def sarif_text(subjects: Sequence[str], found: Sequence[Finding]) -> bytes:
    """SARIF 2.1.0 with a result for each problem."""
    from manyscale.results.run_directory import package_version

    rules = list(dict.fromkeys(finding.rule for finding in found))
    driver = {"name": "Manyscale", "version": package_version(), "rules": [{"id": rule} for rule in rules]}
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": [_result(finding) for finding in found]}],
    }
    return (json.dumps(log, indent=2, ensure_ascii=False) + "\n").encode()


def _result(finding: Finding) -> dict[str, Any]:
    location: dict[str, Any] = {"logicalLocations": [{"name": finding.subject, "kind": "function"}]}
    if finding.file:
        location["physicalLocation"] = {"artifactLocation": {"uri": finding.file}}
        if finding.line:
            location["physicalLocation"]["region"] = {"startLine": finding.line}
    return {
        "ruleId": finding.rule,
        "level": finding.level,
        "message": {"text": finding.message},
        "locations": [location],
    }
