# SPDX-License-Identifier: Apache-2.0
"""Kernels: the threads of a CTA run in turns, each until it waits for others or ends; CTAs run one after the other."""

from __future__ import annotations

import struct
from collections import defaultdict

import numpy as np

from reference import memory_steps, warp_steps  # noqa: F401  (their instructions become known)
from reference.compiler import Compiled, constant_bits, layout
from reference.machine import EXITED, WARP_SIZE, Cta, Thread
from reference.memory import GlobalMemory, Region, align
from reference.operations import UnsupportedError
from reference.parser import Constant, Name, Variable, parse
from reference.warp_steps import BarrierRequest, WarpRequest

_FIRST_FUNCTION = 1 << 47
_STEPS_LIMIT = 5_000_000


class DeadlockError(Exception):
    """Threads wait for each other, or for ones that have ended."""


class Program:
    """A module in memory: its variables placed and filled, its functions compiled.

    With `backwards` the threads of a CTA take turns from the last to the first, which must not change what PTX defines.
    """

    def __init__(self, text: str, backwards: bool = False) -> None:
        self.backwards = backwards
        self.module = parse(text)
        self.memory = GlobalMemory()
        self.symbols: dict[str, int] = {}
        self.functions: dict[str, Compiled] = {}
        for index, (name, source) in enumerate(self.module.functions.items()):
            self.symbols[name] = _FIRST_FUNCTION + 16 * index
            self.functions[name] = Compiled(self, source)
        self._lay_out_shared()
        self._lay_out_global()
        for function in self.functions.values():
            function.compile()

    def _lay_out_shared(self) -> None:
        """All shared variables of the module one after the other; dynamic shared memory follows them."""
        variables = list(self.module.variables.values())
        for function in self.module.functions.values():
            variables += function.variables
        shared = [each for each in variables if each.space == "shared"]
        sized = [each for each in shared if each.count is not None]
        dynamic = [each for each in shared if each.count is None]
        offsets, self.static_shared = layout(sized)
        alignment = max([16, *(each.alignment for each in dynamic)])
        self.static_shared = align(self.static_shared, alignment) if dynamic else self.static_shared
        self.symbols |= offsets | {each.name: self.static_shared for each in dynamic}

    def _lay_out_global(self) -> None:
        variables = [each for each in self.module.variables.values() if each.space in ("global", "const")]
        for function in self.module.functions.values():
            variables += [each for each in function.variables if each.space in ("global", "const")]
        data = {each.name: bytearray(each.size) for each in variables}
        for each in variables:
            self.symbols[each.name] = self.memory.allocate(data[each.name])
        for each in variables:
            self._fill(each, data[each.name])

    def _fill(self, variable: Variable, data: bytearray) -> None:
        for index, value in enumerate(variable.initial or []):
            if isinstance(value, Constant):
                bits = constant_bits(value, variable.type)
            elif isinstance(value, Name):
                bits = self.symbols[value.text] + value.offset
            else:
                raise UnsupportedError(f"initial value {value}")
            size = variable.type.size
            data[size * index : size * (index + 1)] = bits.to_bytes(size, "little")

    def function_at(self, address: int) -> Compiled:
        return list(self.functions.values())[(address - _FIRST_FUNCTION) // 16]

    def launch(self, name: str, grid, block, *arguments, dynamic_shared: int = 0) -> None:
        """Runs a kernel. Arrays are device memory that the kernel changes; numbers and bytes are passed as they are."""
        kernel = self.functions[name]
        parameters = bytearray(kernel.parameter_size)
        for variable, argument in zip(kernel.source.parameters, arguments, strict=True):
            bits = self._argument(argument, variable)
            offset = kernel.parameters[variable.name]
            parameters[offset : offset + len(bits)] = bits
        grid, block = _three(grid), _three(block)
        for number in range(grid[0] * grid[1] * grid[2]):
            index = (number % grid[0], number // grid[0] % grid[1], number // (grid[0] * grid[1]))
            shared = Region(0, bytearray(self.static_shared + dynamic_shared))
            cta = Cta(index, block, grid, self.memory, shared, Region(0, parameters), dynamic_shared)
            CtaRun(kernel, cta, self.backwards).run()

    def _argument(self, argument: object, variable: Variable) -> bytes:
        if isinstance(argument, np.ndarray):
            return struct.pack("<Q", self.memory.allocate(memoryview(argument.reshape(-1).view(np.uint8))))
        if isinstance(argument, bytes):
            return argument
        if variable.type.kind == "f":
            return struct.pack({16: "<e", 32: "<f", 64: "<d"}[variable.type.width], argument)
        return (int(argument) % (1 << variable.type.width)).to_bytes(variable.type.size, "little")


def _three(size) -> tuple[int, int, int]:
    size = (size,) if isinstance(size, int) else tuple(size)
    return (*size, 1, 1, 1)[:3]


class CtaRun:
    """The threads of one CTA and what they wait for."""

    def __init__(self, kernel: Compiled, cta: Cta, backwards: bool) -> None:
        width, height, depth = cta.size
        numbers = range(width * height * depth)
        self.ready = [Thread(cta, number) for number in (reversed(numbers) if backwards else numbers)]
        self.alive = set(self.ready)
        self.warp_waiting: dict[Thread, WarpRequest] = {}
        self.barriers: dict[int, list[BarrierRequest]] = defaultdict(list)
        self.steps = 0
        for thread in self.ready:
            thread.enter(kernel)

    def run(self) -> None:
        while self.alive:
            for thread in self.ready:
                self._advance(thread)
            self.ready = []
            advanced = self._complete_warps() or self._complete_barriers() or self._complete_converged()
            if self.alive and not advanced:
                raise DeadlockError(f"{len(self.alive)} threads wait for what does not come")

    def _advance(self, thread: Thread) -> None:
        """Runs a thread until it waits or ends."""
        while True:
            step = thread.steps[thread.pc]
            thread.pc += 1
            request = step(thread)
            self.steps += 1
            if request is None:
                if self.steps > _STEPS_LIMIT:
                    raise DeadlockError("too many steps")
                continue
            if request is EXITED:
                self.alive.discard(thread)
            elif isinstance(request, WarpRequest):
                self.warp_waiting[thread] = request
            else:
                self.barriers[request.barrier].append(request)
                if not request.waits:
                    continue
            return

    def _lanes(self, warp: int) -> int:
        return sum(1 << thread.lane for thread in self.alive if thread.warp == warp)

    def _groups(self) -> dict[tuple, dict[int, WarpRequest]]:
        groups: dict[tuple, dict[int, WarpRequest]] = defaultdict(dict)
        for thread, request in self.warp_waiting.items():
            groups[(thread.warp, *request.key)][thread.lane] = request
        return groups

    def _finish(self, group: dict[int, WarpRequest]) -> None:
        for request in group.values():
            request.complete(group)
            del self.warp_waiting[request.thread]
            self.ready.append(request.thread)

    def _complete_warps(self) -> bool:
        """Requests with a member mask: complete when all members that have not exited have come."""
        done = False
        for (warp, *_key), group in self._groups().items():
            members = next(iter(group.values())).members
            if members is None:
                continue
            came = sum(1 << lane for lane in group)
            if members & self._lanes(warp) & ~came == 0:
                self._finish(group)
                done = True
        return done

    def _complete_barriers(self) -> bool:
        """A barrier of all threads also completes when those that miss have exited."""
        done = False
        for barrier, requests in list(self.barriers.items()):
            if not requests:
                continue
            came = {request.thread for request in requests}
            count = requests[0].count
            if self.alive - came if count is None else self._arrived(came) < count:
                continue
            self.barriers[barrier] = []
            sources = [request.source for request in requests]
            for request in requests:
                request.complete(sources)
                if request.waits:
                    self.ready.append(request.thread)
            done = True
        return done

    def _arrived(self, came: set[Thread]) -> int:
        """Against a count, a warp arrives as a whole, once none of its threads is missing."""
        missing = {thread.warp for thread in self.alive - came}
        return WARP_SIZE * len({thread.warp for thread in came} - missing)

    def _complete_converged(self) -> bool:
        """Requests without a mask: nothing else can go on, so those that wait at one instruction are all that come."""
        for group in self._groups().values():
            if next(iter(group.values())).members is None:
                self._finish(group)
                return True
        return False


def run(text: str, kernel: str, grid, block, *arguments, dynamic_shared: int = 0) -> None:
    """Runs one kernel of a module on arrays, which it changes, and numbers."""
    Program(text).launch(kernel, grid, block, *arguments, dynamic_shared=dynamic_shared)
