# SPDX-License-Identifier: Apache-2.0
"""The device code of a program: selection of PTX or SASS, kernels and variables on each GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from manyscale import _core
from manyscale.errors import InputError
from manyscale.gpu.arguments import KernelParameter
from manyscale.gpu.checking import describe_problems, problems_of
from manyscale.gpu.isa import LESS_ACCURATE, IsaChoice, LoadedCode, load_code
from manyscale.gpu.parsing import ParsedModule
from manyscale.gpu.sass import read_sass
from manyscale.gpu.targets import fits, refusal

from .fatbin import Image, best_cubin, best_ptx, images
from .linking import link
from .properties import Attribute, DeviceDescription
from .status import CudaError, Status

if TYPE_CHECKING:
    from .node import Gpu

_SHOWN = 8  # problems of a kernel
# CUDA C++ programming guide, technical specifications: allocation of registers per warp, and of shared memory.
_REGISTER_UNIT, _SUB_CORES, _SHARED_UNIT = 256, 4, 256


class LoadedKernel:
    """A kernel on one GPU, with its attributes."""

    def __init__(self, module: str, name: str, native: _core.GpuKernel) -> None:
        self.name = name
        self.native = native
        self._module = module
        self.parameters = [KernelParameter(*row) for row in native.parameters]
        self.parameter_bytes: int = native.parameter_bytes
        self.static_shared: int = native.static_shared_bytes
        self.maximum_threads: int = native.maximum_threads
        self.local_bytes: int = native.local_bytes
        self.dynamic_shared = 48 * 1024 - self.static_shared  # cudaFuncAttributeMaxDynamicSharedMemorySize
        self.carveout = -1
        self.registers: int = native.registers  # per thread; 0: not computed yet

    @cached_property
    def problem(self) -> str | None:
        """Why it cannot be executed; its code is decoded for that."""
        problems = problems_of(self.native.problems)
        if not problems:
            return None
        more = f"\n  … and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        return f"kernel {self.name} cannot be executed:\n{describe_problems(self._module, problems[:_SHOWN])}{more}"


def fitting_ctas(device: DeviceDescription, kernel: LoadedKernel, threads: int, shared: int) -> int:
    """CTAs of a kernel, whose registers are known, that an SM holds."""
    limits = device.attributes
    warps = max(-(-threads // 32), 1)
    registers = max(-(-kernel.registers * 32 // _REGISTER_UNIT), 1) * _REGISTER_UNIT  # of a warp
    of_a_sub_core = limits[Attribute.MAX_REGISTERS_PER_MULTIPROCESSOR] // _SUB_CORES // registers
    reserved = limits[Attribute.RESERVED_SHARED_MEMORY_PER_BLOCK]
    shared_bytes = -(-(kernel.static_shared + shared + reserved) // _SHARED_UNIT) * _SHARED_UNIT
    return min(
        limits[Attribute.MAX_BLOCKS_PER_MULTIPROCESSOR],
        limits[Attribute.MAX_THREADS_PER_MULTIPROCESSOR] // 32 // warps,
        of_a_sub_core * _SUB_CORES // warps,
        limits[Attribute.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR] // max(shared_bytes, 1),
    )


class CudaModule:
    """The device code that a program registers together: that of one file, or all that is linked (-rdc=true)."""

    def __init__(
        self,
        number: int,
        parts: Sequence[bytes],
        kept: dict[str, bytes],
        manage: Callable[[Gpu, int, int], None],
        notify_once: Callable[[str], None],
        *,
        linked: bool = False,
    ) -> None:
        """`linked`: the first part is the linked SASS of the others."""
        self.name = f"module-{number}.ptx"
        self._kept = kept  # texts of PTX by name, for the run directory
        self._manage = manage  # makes the memory of managed variables managed
        self._notify_once = notify_once  # shows the user a message, once
        self._linked = parts[0] if linked and parts else None
        self._parts = parts[1:] if linked else parts
        self._parsed: dict[int, ParsedModule] = {}  # by compute capability
        self._loaded: dict[Gpu, LoadedCode] = {}
        self._kernels: dict[tuple[Gpu, str], LoadedKernel] = {}
        self._names: dict[Gpu, list[str]] = {}  # of the kernels of cubins
        self.ptx_version = 0
        self.architecture = 0

    def kernel(self, gpu: Gpu, name: str) -> LoadedKernel:
        """A kernel on a GPU; loads the module if need be."""
        known = self._kernels.get((gpu, name))
        if known is not None:
            return known
        native = self._on(gpu).kernel(name)
        if native is None:
            raise CudaError(Status.INVALID_DEVICE_FUNCTION, f"there is no kernel {name} in {self.name}")
        kernel = LoadedKernel(self.name, name, native)
        # Registers and the like of SASS are known: libraries ask for those of many kernels, and launch few.
        if native.isa != "sass" and kernel.problem is not None:
            raise CudaError(Status.NOT_SUPPORTED, kernel.problem)
        self._kernels[(gpu, name)] = kernel
        return kernel

    def kernel_names(self, gpu: Gpu) -> list[str]:
        """The names of all kernels; loads the module if need be."""
        self._on(gpu)
        names = self._names.get(gpu)
        return list(self._parsed[gpu.capability].kernels) if names is None else names

    def variable(self, gpu: Gpu, name: str) -> tuple[int, int]:
        """The address and the size of a variable on a GPU."""
        placed = self._on(gpu).variable(name)
        if placed is None:
            raise CudaError(Status.INVALID_SYMBOL, f"there is no variable {name} in {self.name}")
        return int(placed[0]), int(placed[1])

    def forget(self, gpu: Gpu) -> None:
        """Removes what was loaded on a GPU that was reset."""
        self._loaded.pop(gpu, None)
        self._kernels = {key: kernel for key, kernel in self._kernels.items() if key[0] is not gpu}

    def code(self, gpu: Gpu) -> LoadedCode:
        """The module on a GPU, with its ISA and the reason for it; loads it if need be."""
        loaded = self._loaded.get(gpu)
        if loaded is None:
            try:
                loaded = self._load(gpu)
            except MemoryError:
                raise CudaError(
                    Status.MEMORY_ALLOCATION,
                    f"{self.name}: its variables do not fit into the device's memory",
                ) from None
            for address, size in loaded.native.managed:
                self._manage(gpu, address, size)
            self._loaded[gpu] = loaded
            if loaded.isa == "sass" and "racecheck" in gpu.checks:
                self._notify_once(f"{self.name}: it runs as SASS; racecheck finds races in PTX only")
            gpu.loaded_code[self.name] = loaded
        return loaded

    def _on(self, gpu: Gpu) -> _core.GpuModule:
        return self.code(gpu).native

    def _load(self, gpu: Gpu) -> LoadedCode:
        """Loads the cubin of the program if SASS is wanted or there is no PTX, else PTX or SASS assembled from it."""
        found = self._images(self._parts)
        has_ptx = best_ptx(found, gpu.capability, gpu.allow_newer) is not None  # that this GPU takes
        whole = self._parts if len(self._parts) == 1 else ()
        if self._linked is not None:
            whole = (self._linked,)
        machine = best_cubin(self._images(whole), gpu.capability)
        if machine is not None and (gpu.isa != "ptx" or not has_ptx):
            try:
                file = read_sass(machine.unpacked(), self.name.replace(".ptx", ".cubin"))
                if not has_ptx or gpu.isa != "auto" or file.is_executable():
                    self.architecture = machine.architecture
                    self._names[gpu] = list(file.kernels)
                    return LoadedCode(
                        gpu.native.load(file), "sass", IsaChoice.CUBIN, "the program has SASS for this GPU"
                    )
            except InputError as error:
                if not has_ptx or gpu.isa == "sass":
                    raise CudaError(Status.NO_KERNEL_IMAGE_FOR_DEVICE, str(error)) from None
        parsed = self._parse(gpu.capability, gpu.allow_newer)
        if not fits("PTX", parsed.target, gpu.capability):
            self._notify_once(
                f"{self.name}: PTX for {parsed.target} is taken on a GPU of compute capability "
                f"{gpu.capability // 10}.{gpu.capability % 10}, as --allow-newer wants it"
            )
        try:
            code = load_code(gpu.native, parsed, gpu.code_rules(parsed))
        except InputError as error:
            raise CudaError(Status.NOT_SUPPORTED, str(error)) from None
        if code.choice is IsaChoice.FALLBACK and gpu.has_time:
            self._notify_once(
                f"{self.name}: its kernels run as PTX, {LESS_ACCURATE} ({code.reason.splitlines()[0].rstrip(':')})"
            )
        return code

    def _images(self, parts: Sequence[bytes]) -> list[Image]:
        try:
            return [image for part in parts for image in images(part, self.name)]
        except InputError as error:
            raise CudaError(Status.INVALID_PTX, str(error)) from None

    def _parse(self, capability: int, allow_newer: bool) -> ParsedModule:
        parsed = self._parsed.get(capability)
        if parsed is None:
            text = self._text(capability, allow_newer)
            try:
                native = _core.parse_ptx(text, self.name)
            except _core.PtxSyntaxError as error:
                raise CudaError(Status.INVALID_PTX, str(error)) from None
            parsed = ParsedModule(self.name, native.kernels, native.target, native)
            if not allow_newer and (why := refusal(self.name, "PTX", parsed.target, capability)) is not None:
                raise CudaError(Status.NO_KERNEL_IMAGE_FOR_DEVICE, why)
            self._parsed[capability] = parsed
            self._kept[self.name] = text
        return parsed

    def _text(self, capability: int, allow_newer: bool) -> bytes:
        """The PTX of all parts that have some, linked."""
        texts = []
        others: list[Image] = []
        for part in self._parts:
            try:
                found = images(part, self.name)
                chosen = best_ptx(found, capability, allow_newer)
                if chosen is None:
                    others += found
                    continue
                texts.append(chosen.ptx())
            except InputError as error:
                raise CudaError(Status.INVALID_PTX, str(error)) from None
            self.ptx_version = chosen.version[0] * 10 + chosen.version[1]
            self.architecture = max(self.architecture, chosen.architecture)
        if not texts:
            raise CudaError(Status.NO_KERNEL_IMAGE_FOR_DEVICE, unsuitable(others, capability))
        return link(texts)


def unsuitable(found: Sequence[Image], capability: int | None = None) -> str:
    """The message for a program without code for a GPU."""
    if not found:
        return "the program has no device code"
    kinds = [
        f"{name} for {', '.join(sorted({image.target for image in images}))}"
        for name, images in (
            ("PTX", [image for image in found if image.is_ptx]),
            ("SASS", [image for image in found if not image.is_ptx]),
        )
        if images
    ]
    has_ptx = any(image.is_ptx for image in found)
    oldest = min(image.architecture for image in found)
    advice = (
        "choose a --machine with such a GPU, or take the PTX all the same with --allow-newer"
        if has_ptx
        else f"and no PTX; build it again with PTX, such as -gencode arch=compute_{oldest},code=compute_{oldest}"
    )
    mine = "" if capability is None else f" (its compute capability is {capability // 10}.{capability % 10})"
    separator = ";" if has_ptx else ","
    return f"the program has {' and '.join(kinds)} only, which this GPU cannot run{separator} {advice}{mine}"
