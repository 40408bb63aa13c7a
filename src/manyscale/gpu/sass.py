# SPDX-License-Identifier: Apache-2.0
"""SASS of a module: read from a cubin, or assembled from PTX, and checked for instructions that are not executed."""

from __future__ import annotations

import re

from manyscale import _core
from manyscale.errors import InputError

from .assembler import NEWEST_ARCHITECTURE, OLDEST_ARCHITECTURE, assemble
from .parsing import ParsedModule

_SHOWN = 8  # problems of a module
_FUNCTION = rb"\.func\s*(?:\([^)]*\)\s*)?([\w$]+)\s*(?:\([^)]*\))?"
_VARIABLE = rb"\.(?:global|const)\b[^;={}]*?([\w$]+)\s*(?:\[[^\]]*\])*\s*"
_FUNCTION_DECLARATION = re.compile(rb"^[ \t]*\.extern\s+" + _FUNCTION + rb"\s*;", re.MULTILINE)
_FUNCTION_DEFINITION = re.compile(rb"^[ \t]*\.(?:visible|weak)\s+" + _FUNCTION + rb"[^;{]*\{", re.MULTILINE)
_VARIABLE_DECLARATION = re.compile(rb"^[ \t]*\.extern\s+" + _VARIABLE + rb";", re.MULTILINE)
_VARIABLE_DEFINITION = re.compile(
    rb"^[ \t]*\.(?:visible|weak|common)\s+" + _VARIABLE + rb"(?:=[^;]*)?;", re.MULTILINE
)


def read_sass(data: bytes, name: str) -> _core.MachineFile:
    """The SASS of a cubin; an error if the file is broken or its architecture cannot be read."""
    try:
        machine = _core.read_cubin(data, name)
    except _core.CubinError as error:
        raise InputError(str(error)) from None
    if not OLDEST_ARCHITECTURE <= machine.architecture <= NEWEST_ARCHITECTURE:
        raise InputError(
            f"{name}: its SASS is for sm_{machine.architecture}; "
            f"SASS of sm_{OLDEST_ARCHITECTURE} to sm_{NEWEST_ARCHITECTURE} can be executed"
        )
    return machine


def architecture_near(target: str) -> str:
    """The architecture nearest to the target of a module ("sm_61") whose SASS can be read."""
    digits = "".join(character for character in target if character.isdigit())
    wanted = int(digits) if digits else OLDEST_ARCHITECTURE
    return f"sm_{min(max(wanted, OLDEST_ARCHITECTURE), NEWEST_ARCHITECTURE)}"


def assembled_sass(parsed: ParsedModule, architecture: str) -> _core.MachineFile:
    """The SASS of a module of PTX; an error if it cannot be assembled."""
    text = without_resolved_declarations(parsed.native.text)
    return read_sass(assemble(text, parsed.name, architecture), parsed.name)


def without_resolved_declarations(ptx: bytes) -> bytes:
    """Linked PTX as ptxas accepts it: symbols that it defines are not declared `.extern`, and are defined before use.

    Line numbers do not change.
    """
    functions = {found[1] for found in _FUNCTION_DEFINITION.finditer(ptx)}
    ptx = _FUNCTION_DECLARATION.sub(
        lambda found: found[0].replace(b".extern", b".visible", 1) if found[1] in functions else found[0], ptx
    )
    definitions = {found[1]: found for found in _VARIABLE_DEFINITION.finditer(ptx)}
    moved: set[bytes] = set()

    def definition_instead(found: re.Match[bytes]) -> bytes:
        definition = definitions.get(found[1])
        if definition is None:
            return found[0]
        first = found[1] not in moved and found.start() < definition.start()
        moved.add(found[1])
        lines = b"\n" * found[0].count(b"\n")
        return definition[0].replace(b"\n", b" ") + lines if first else lines

    before = {
        found[1]
        for found in _VARIABLE_DECLARATION.finditer(ptx)
        if found[1] in definitions and found.start() < definitions[found[1]].start()
    }
    ptx = _VARIABLE_DEFINITION.sub(
        lambda found: b"\n" * found[0].count(b"\n") if found[1] in before else found[0], ptx
    )
    return _VARIABLE_DECLARATION.sub(definition_instead, ptx)


def executable_sass(parsed: ParsedModule, architecture: str) -> _core.MachineFile:
    """The SASS of a module of PTX; an error with the reasons if it cannot be assembled or executed."""
    machine = assembled_sass(parsed, architecture)
    rows = [] if machine.is_executable() else machine.problems()
    if rows:
        lines = [f"  {parsed.name}:{row[4]}: {row[2] or row[0]}: {row[3]}" for row in rows[:_SHOWN]]
        more = [f"  … and {len(rows) - _SHOWN} more"] if len(rows) > _SHOWN else []
        raise InputError(
            f"{parsed.name}: its SASS for {architecture} cannot be executed:\n" + "\n".join(lines + more)
        )
    return machine
