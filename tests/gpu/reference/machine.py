# SPDX-License-Identifier: Apache-2.0
"""What a thread is: registers, frames of functions, local memory, and its index among the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reference.memory import WINDOWS, GlobalMemory, Region, align, window_of
from reference.operations import UnsupportedError
from reference.parser import Variable
from reference.ptx_types import mask

if TYPE_CHECKING:
    from reference.compiler import Compiled

WARP_SIZE = 32

Step = Callable[["Thread"], object]
"""One instruction: changes the thread, and gives None, EXITED, or what the thread now waits for."""
Getter = Callable[["Thread"], int]
Setter = Callable[["Thread", int], None]

EXITED = object()


@dataclass
class Frame:
    """One activation of a function in one thread; its variables begin at `base` in the thread's local memory."""

    function: Compiled
    registers: dict[str, int]
    base: int
    return_to: int
    returned: list[tuple[Setter, Variable]] = field(default_factory=list)


@dataclass
class Cta:
    """What the threads of a CTA share."""

    index: tuple[int, int, int]
    size: tuple[int, int, int]
    grid: tuple[int, int, int]
    memory: GlobalMemory
    shared: Region
    parameters: Region
    dynamic_shared: int


class Thread:
    def __init__(self, cta: Cta, number: int) -> None:
        width, height, _depth = cta.size
        self.cta = cta
        self.index = (number % width, number // width % height, number // (width * height))
        self.number = number
        self.lane = number % WARP_SIZE
        self.warp = number // WARP_SIZE
        self.local = Region(0, bytearray())
        self.frames: list[Frame] = []
        self.registers: dict[str, int] = {}
        self.steps: list[Step] = []
        self.pc = 0
        self.carry = 0

    def enter(self, function: Compiled) -> Frame:
        """Starts a function: a frame above those there are, its registers zero."""
        top = align(self.frames[-1].base + self.frames[-1].function.frame_size, 16) if self.frames else 0
        frame = Frame(function, dict.fromkeys(function.source.registers, 0), top, self.pc)
        missing = top + function.frame_size - len(self.local.data)
        self.local.data.extend(bytes(max(missing, 0)))
        self.frames.append(frame)
        self._resume(0)
        return frame

    def leave(self) -> object:
        """Ends the function: results go to where the caller wants them."""
        frame = self.frames.pop()
        if not self.frames:
            return EXITED
        values = [self._result(frame, variable) for _setter, variable in frame.returned]
        self._resume(frame.return_to)
        for (setter, _variable), value in zip(frame.returned, values, strict=True):
            setter(self, value)
        return None

    def _result(self, frame: Frame, variable: Variable) -> int:
        if variable.space == "reg":
            return frame.registers[variable.name]
        return self.local.load(frame.base + frame.function.offsets[variable.name], variable.size, 1)

    def _resume(self, pc: int) -> None:
        self.registers = self.frames[-1].registers
        self.steps = self.frames[-1].function.steps
        self.pc = pc

    def region(self, space: str, address: int) -> tuple[Region, int]:
        """The bytes behind an address of a space, and the address within them."""
        if space == "generic":
            space = window_of(address)
            address -= WINDOWS[space]
        match space:
            case "shared":
                return self.cta.shared, address
            case "local":
                return self.local, address
            case "param":
                return self.cta.parameters, address
        return self.cta.memory.region(address), address


def special_value(name: str, thread: Thread) -> int:
    """The value of a predefined register."""
    cta = thread.cta
    base, _dot, part = name.partition(".")
    vectors = {"%tid": thread.index, "%ntid": cta.size, "%ctaid": cta.index, "%nctaid": cta.grid}
    if base in vectors:
        return vectors[base]["xyz".index(part)]
    bit = 1 << thread.lane
    values = {
        "%laneid": thread.lane,
        "%warpid": thread.warp,
        "%lanemask_eq": bit,
        "%lanemask_lt": bit - 1,
        "%lanemask_le": 2 * bit - 1,
        "%lanemask_gt": mask(32) & -(2 * bit),
        "%lanemask_ge": mask(32) & -bit,
        "%dynamic_smem_size": cta.dynamic_shared,
        "WARP_SZ": WARP_SIZE,
    }
    if name not in values:
        raise UnsupportedError(f"{name} is not known here")
    return values[name]
