# SPDX-License-Identifier: Apache-2.0
"""The ISA that a module runs as: SASS where that can be had and executed, else PTX, whose time is less accurate."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from manyscale import _core
from manyscale.errors import InputError

from .assembler import (
    ANY_ASSEMBLER,
    NO_ASSEMBLER,
    OtherAssemblerError,
    assembler_version,
    can_assemble_for,
    require_version,
)
from .parsing import ParsedModule
from .sass import executable_sass

if TYPE_CHECKING:
    from manyscale.machine import Machine

Isa = Literal["auto", "sass", "ptx"]
"""What to run; "auto": SASS where that is possible, else PTX."""


class IsaChoice(enum.Enum):
    """How the ISA of a module was chosen."""

    REQUESTED = "requested"
    CUBIN = "cubin"  # the file or program has SASS for the GPU
    ASSEMBLED = "assembled"  # SASS was assembled from PTX
    FALLBACK = "fallback"  # PTX, because there is no SASS that can be executed
    UNTIMED = "untimed"  # PTX, because there is no machine whose SASS it would be
    CHECKED = "checked"  # PTX, because races and uninitialised reads are found in PTX


LESS_ACCURATE = (
    "the less accurate form: registers, instructions and their order are estimates of what ptxas would make"
)
"""What is said of a run with time whose kernels run as PTX."""


@dataclass(frozen=True)
class CodeRules:
    """How the ISA of modules is chosen."""

    isa: Isa = "auto"
    architecture: str | None = None  # whose SASS is made; None: SASS of this GPU cannot be read
    assembler: str = ANY_ASSEMBLER  # version of ptxas, or "none": as if there were none
    why_ptx: IsaChoice | None = None  # why PTX is preferred where the ISA is left open

    def stated(self) -> dict[str, str]:
        """What a machine file has to state so that another run makes the same choices."""
        if self.isa == "ptx":
            return {"isa": self.isa}
        found = assembler_version() if self.assembler == ANY_ASSEMBLER else self.assembler
        return {"isa": self.isa, "assembler": found or NO_ASSEMBLER}


@dataclass(frozen=True)
class LoadedCode:
    """A module on a device, the ISA that it runs as, and the reason for it."""

    native: _core.GpuModule
    isa: Literal["sass", "ptx"]
    choice: IsaChoice
    reason: str
    assembler: str | None = None  # version of ptxas that made it

    def described(self) -> dict[str, str | None]:
        """For the files of a run."""
        return {
            "isa": self.isa,
            "choice": self.choice.value,
            "reason": self.reason,
            "assembler": None if self.assembler is None else f"ptxas {self.assembler}",
        }


def described_code(modules: Mapping[str, LoadedCode], *, timed: bool = True) -> dict[str, Any]:
    """What the modules of a run were executed as, for `run.json` and JSON: ISA and assembler of all, and of each."""
    isas = sorted({code.isa for code in modules.values()})
    assemblers = sorted({code.assembler for code in modules.values() if code.assembler is not None})
    return {
        "isa": "+".join(isas) or None,
        "assembler": f"ptxas {', '.join(assemblers)}" if assemblers else None,
        "note": f"PTX is {LESS_ACCURATE}" if timed and "ptx" in isas else None,
        "modules": {name: code.described() for name, code in modules.items()},
    }


def isa_of(value: Any) -> Isa:
    """The value as an ISA; an error if it is none."""
    if value not in get_args(Isa):
        raise InputError(f"isa is one of {', '.join(get_args(Isa))}, not {value!r}")
    return value  # type: ignore[no-any-return]


def isa_for(machine: Machine, isa: Isa | None) -> Isa:
    """The ISA of a run on a machine: the one that is requested, else that of the machine, else "auto"."""
    stated = None if machine.gpu is None else machine.gpu.isa
    return isa_of(isa or stated or "auto")


def rules_for(machine: Machine, isa: Isa, otherwise: str | None = None, *, check: bool = False) -> CodeRules:
    """How the ISA of a module is chosen on a machine; `otherwise`: the architecture if the machine states none."""
    gpu = machine.gpu
    architecture = (None if gpu is None else gpu.architecture) or otherwise
    return CodeRules(
        isa_of(isa),
        architecture if can_assemble_for(architecture) else None,
        (None if gpu is None else gpu.assembler) or ANY_ASSEMBLER,
        IsaChoice.CHECKED if check else None,
    )


_WHY_PTX = {
    IsaChoice.UNTIMED: "without a machine, PTX is executed",
    IsaChoice.CHECKED: "races and uninitialised reads are found in PTX",
}


def load_code(device: _core.GpuDevice, parsed: ParsedModule, rules: CodeRules) -> LoadedCode:
    """Loads a module of PTX as PTX, or as SASS that is assembled from it."""

    def as_ptx(choice: IsaChoice, reason: str) -> LoadedCode:
        return LoadedCode(device.load(parsed.native), "ptx", choice, reason)

    if rules.isa == "ptx":
        return as_ptx(IsaChoice.REQUESTED, "requested")
    if rules.isa == "auto" and rules.why_ptx is not None:
        return as_ptx(rules.why_ptx, _WHY_PTX[rules.why_ptx])
    try:
        if rules.architecture is None:
            hint = "; run it as PTX" if rules.isa == "sass" else ""
            raise InputError(f"{parsed.name}: SASS of this GPU cannot be read{hint}")
        require_version(rules.assembler, parsed.name)
        machine = executable_sass(parsed, rules.architecture)
    except OtherAssemblerError:
        raise
    except InputError as error:
        if rules.isa == "sass":
            raise
        return as_ptx(IsaChoice.FALLBACK, str(error))
    version = assembler_version()
    reason = f"assembled for {rules.architecture} by ptxas {version}"
    return LoadedCode(device.load(parsed.native, machine), "sass", IsaChoice.ASSEMBLED, reason, version)
