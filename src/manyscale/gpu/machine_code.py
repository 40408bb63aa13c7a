# SPDX-License-Identifier: Apache-2.0
"""Whether a module runs as PTX or as machine code (SASS), and how the machine code is come by."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, get_args

from manyscale import _core
from manyscale.errors import InputError

from .assembler import NEWEST_ARCHITECTURE, OLDEST_ARCHITECTURE, assemble
from .parsing import ParsedModule

Isa = Literal["auto", "sass", "ptx"]
"""What to run: machine code, PTX, or machine code where that is possible."""

_SHOWN = 8  # problems of a module
_FUNCTION = rb"\.func\s*(?:\([^)]*\)\s*)?([\w$]+)\s*(?:\([^)]*\))?"
_VARIABLE = rb"\.(?:global|const)\b[^;={}]*?([\w$]+)\s*(?:\[[^\]]*\])*\s*"
_FUNCTION_DECLARATION = re.compile(rb"^[ \t]*\.extern\s+" + _FUNCTION + rb"\s*;", re.MULTILINE)
_FUNCTION_DEFINITION = re.compile(rb"^[ \t]*\.(?:visible|weak)\s+" + _FUNCTION + rb"[^;{]*\{", re.MULTILINE)
_VARIABLE_DECLARATION = re.compile(rb"^[ \t]*\.extern\s+" + _VARIABLE + rb";", re.MULTILINE)
_VARIABLE_DEFINITION = re.compile(
    rb"^[ \t]*\.(?:visible|weak|common)\s+" + _VARIABLE + rb"(?:=[^;]*)?;", re.MULTILINE
)


@dataclass(frozen=True)
class LoadedCode:
    """A module on a device, whether it is machine code, and why that was taken."""

    native: _core.GpuModule
    isa: Literal["sass", "ptx"]
    reason: str


def isa_of(value: Any) -> Isa:
    """The value as a choice of code; an error if it is none."""
    if value not in get_args(Isa):
        raise InputError(f"isa is one of {', '.join(get_args(Isa))}, not {value!r}")
    return value  # type: ignore[no-any-return]


def read_machine_code(data: bytes, name: str) -> _core.MachineFile:
    """A file of machine code (a cubin); an error if it is broken or for a GPU whose code cannot be read."""
    try:
        machine = _core.read_cubin(data, name)
    except _core.CubinError as error:
        raise InputError(str(error)) from None
    if not OLDEST_ARCHITECTURE <= machine.architecture <= NEWEST_ARCHITECTURE:
        raise InputError(
            f"{name}: its machine code is for sm_{machine.architecture}; "
            f"that of sm_{OLDEST_ARCHITECTURE} to sm_{NEWEST_ARCHITECTURE} can be executed"
        )
    return machine


def architecture_near(target: str) -> str:
    """The architecture nearest to that of a module ("sm_61") for which there is machine code."""
    digits = "".join(character for character in target if character.isdigit())
    wanted = int(digits) if digits else OLDEST_ARCHITECTURE
    return f"sm_{min(max(wanted, OLDEST_ARCHITECTURE), NEWEST_ARCHITECTURE)}"


def assembled(parsed: ParsedModule, architecture: str) -> _core.MachineFile:
    """The machine code of a module of PTX; an error if it cannot be made."""
    text = without_resolved_declarations(parsed.native.text)
    return read_machine_code(assemble(text, parsed.name, architecture), parsed.name)


def without_resolved_declarations(ptx: bytes) -> bytes:
    """Linked PTX as assemblers want it: what it defines itself is not declared as external, and is defined before use.

    Lines stay where they are.
    """
    functions = {found[1] for found in _FUNCTION_DEFINITION.finditer(ptx)}
    ptx = _FUNCTION_DECLARATION.sub(
        lambda found: found[0].replace(b".extern", b".visible", 1) if found[1] in functions else found[0], ptx
    )
    definitions = {found[1]: found for found in _VARIABLE_DEFINITION.finditer(ptx)}
    moved: set[bytes] = set()

    def in_its_place(found: re.Match[bytes]) -> bytes:
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
    return _VARIABLE_DECLARATION.sub(in_its_place, ptx)


def assemble_module(parsed: ParsedModule, architecture: str) -> _core.MachineFile:
    """The machine code of a module of PTX; an error if it cannot be made or executed, which says why."""
    machine = assembled(parsed, architecture)
    rows = machine.problems()
    if rows:
        lines = [f"  {parsed.name}:{row[4]}: {row[2] or row[0]}: {row[3]}" for row in rows[:_SHOWN]]
        more = [f"  … and {len(rows) - _SHOWN} more"] if len(rows) > _SHOWN else []
        raise InputError(
            f"{parsed.name}: its machine code for {architecture} cannot be executed:\n"
            + "\n".join(lines + more)
        )
    return machine


def load_code(
    device: _core.GpuDevice, parsed: ParsedModule, isa: Isa, architecture: str | None
) -> LoadedCode:
    """Loads a module as PTX or as machine code for an architecture; None: there is no machine code for the GPU."""
    if isa == "ptx":
        return LoadedCode(device.load(parsed.native), "ptx", "it was asked for")
    if architecture is None:
        if isa == "sass":
            raise InputError(f"{parsed.name}: machine code of this GPU cannot be read; run it as PTX")
        return LoadedCode(device.load(parsed.native), "ptx", "machine code of this GPU cannot be read")
    try:
        machine = assemble_module(parsed, architecture)
    except InputError as error:
        if isa == "sass":
            raise
        return LoadedCode(device.load(parsed.native), "ptx", str(error))
    reason = f"assembled for {architecture}"
    return LoadedCode(device.load(parsed.native, machine), "sass", reason)
