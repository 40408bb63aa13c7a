# SPDX-License-Identifier: Apache-2.0
"""Handlers of calls on device code: modules, functions, variables, launches, occupancy."""

from __future__ import annotations

import struct

from .commands import LaunchRecord
from .modules import CudaModule, LoadedKernel
from .node import Gpu
from .properties import Attribute
from .run_time_linking import link_images
from .session import Function, Request, Session, answers
from .status import CudaError, Status, UnsupportedKernelError
from .wire import COOPERATIVE, LAYOUTS, Call

_WORKSPACE_BYTES = 256
_MAXIMUM_DYNAMIC_SHARED = 8  # of cudaFuncAttribute
_PREFERRED_CARVEOUT = 9
_WITHOUT_ASKING = 48 * 1024  # bytes of shared memory per block without opting in
_FUNCTION_ANSWER = LAYOUTS[Call.FUNCTION].reply()
_SYMBOL_ANSWER = LAYOUTS[Call.SYMBOL].reply()
_MOST_PARTS = 65536
_WITH_LINKED_CODE = 3  # a kind of wrapper: its first part is the linked SASS of the others


@answers(Call.LOAD_MODULE)
def load_module(request: Request, number: int, wrapper: int, parts: int) -> bytes:
    """Registers the containers of a module; they are parsed when it is first used."""
    if parts > _MOST_PARTS or len(request.tail) != 8 * parts:
        raise CudaError(Status.INVALID_VALUE, f"module {number} says that it has {parts} parts")
    sizes = struct.unpack(f"<{parts}Q", request.tail)
    data = request.staged_bytes(sum(sizes)) if parts else b""
    at, containers = 0, []
    for size in sizes:
        containers.append(data[at : at + size])
        at += size
    session = request.session
    session.modules[number] = CudaModule(
        number,
        containers,
        session.records.ptx,
        session.node.heap.add_variables,
        session.notify_once,
        linked=wrapper == _WITH_LINKED_CODE,
    )
    return b""


@answers(Call.LINK)
def link_parts(request: Request, parts: int) -> bytes:
    """Links what the staging memory has into a module, which it has then."""
    if not 0 < parts <= _MOST_PARTS or len(request.tail) != 16 * parts:
        raise CudaError(Status.INVALID_VALUE, f"a link says that it has {parts} parts")
    rows = list(struct.iter_unpack("<QQ", request.tail))
    data = request.staged_bytes(sum(size for _, size in rows))
    at, inputs = 0, []
    for kind, size in rows:
        inputs.append((kind, data[at : at + size]))
        at += size
    linked = link_images(inputs, request.gpu.capability)
    request.stage(linked)
    return struct.pack("<Q", len(linked))


@answers(Call.UNLOAD_MODULE)
def unload_module(request: Request, number: int) -> bytes:
    request.session.modules.pop(number, None)
    return b""


def _module(session: Session, number: int) -> CudaModule:
    module = session.modules.get(number)
    if module is None:
        raise CudaError(Status.INVALID_VALUE, f"there is no module {number}")
    return module


@answers(Call.KERNELS)
def kernels(request: Request, number: int) -> bytes:
    names = _module(request.session, number).kernel_names(request.gpu)
    return b"".join(name.encode() + b"\0" for name in names)


@answers(Call.FUNCTION)
def function(request: Request, number: int, module_number: int) -> bytes:
    """The attributes of a kernel and the layout of its parameters."""
    session, gpu = request.session, request.gpu
    known = session.functions.get(number)
    if known is None:
        module = _module(session, module_number)
        known = session.functions[number] = Function(module, request.tail.decode(errors="replace"))
    try:
        kernel = known.kernel(gpu)
    except CudaError as error:
        del session.functions[number]
        if error.status == Status.NOT_SUPPORTED:
            session.refused[number] = error.message
        raise
    module = known.module
    if kernel.registers == 0:
        _, kernel.registers = gpu.occupancy(kernel, min(kernel.maximum_threads, 32), 0)
    answer = _FUNCTION_ANSWER.pack(
        kernel.static_shared,
        0,
        kernel.local_bytes,
        kernel.maximum_threads,
        kernel.registers,
        module.architecture,
        kernel.dynamic_shared,
        kernel.carveout,
        gpu.capability,
        0,
        len(kernel.parameters),
    )
    return answer + b"".join(struct.pack("<II", p.offset, p.size) for p in kernel.parameters)


@answers(Call.SYMBOL)
def symbol(request: Request, module_number: int) -> bytes:
    """The address and size of a variable on the GPU."""
    module = _module(request.session, module_number)
    return _SYMBOL_ANSWER.pack(*module.variable(request.gpu, request.tail.decode(errors="replace")))


@answers(Call.LAUNCH)
def launch(
    request: Request,
    number: int,
    stream_number: int,
    flags: int,
    grid_x: int,
    grid_y: int,
    grid_z: int,
    block_x: int,
    block_y: int,
    block_z: int,
    shared: int,
    size: int,
) -> bytes:
    """Queues a kernel. A kernel with unsupported instructions is a sticky error, as a fault is: a program that ignores
    the status must not continue with values that were not computed."""
    session = request.session
    if number in session.refused:
        raise UnsupportedKernelError(session.refused[number])
    stream = session.streams.find(stream_number, request.gpu)
    gpu = stream.gpu
    kernel = session.function(number).kernel(gpu)
    if kernel.problem is not None:
        raise UnsupportedKernelError(kernel.problem)
    if size != len(request.tail) or size < kernel.parameter_bytes:
        raise CudaError(
            Status.INVALID_VALUE,
            f"kernel {kernel.name} takes {kernel.parameter_bytes} bytes of parameters, not {size}",
        )
    if shared > kernel.dynamic_shared:
        raise CudaError(
            Status.INVALID_VALUE,
            f"kernel {kernel.name} is launched with {shared} bytes of dynamic shared memory, but may have "
            f"{kernel.dynamic_shared}; cudaFuncSetAttribute allows more",
        )
    grid, block = (grid_x, grid_y, grid_z), (block_x, block_y, block_z)
    workspace = _workspace(gpu, kernel, grid, block, shared) if flags & COOPERATIVE else 0
    record = LaunchRecord(kernel.name, gpu.number, stream_number, grid, block, shared)
    record.range = session.ranges.get(session.thread)
    session.streams.enter(stream)
    packed = request.tail if size == kernel.parameter_bytes else request.tail[: kernel.parameter_bytes]
    try:
        stream.last = gpu.launch(
            stream.queue,
            kernel,
            record,
            packed,
            workspace,
            session.printed,
            (lambda: _free(gpu, workspace)) if workspace else _nothing,
        )
    except CudaError:
        _free(gpu, workspace)
        raise
    if gpu.checks:
        session.found(gpu)
    return b""


def _nothing() -> None:
    """The callback at the end of a kernel without a workspace."""


def _free(gpu: Gpu, workspace: int) -> None:
    if workspace:
        gpu.native.free(workspace)


def _workspace(
    gpu: Gpu, kernel: LoadedKernel, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int
) -> int:
    """Memory for the grid barrier of a cooperative launch, whose CTAs must all be resident."""
    threads = block[0] * block[1] * block[2]
    ctas, _ = gpu.occupancy(kernel, max(threads, 1), shared)
    sms = gpu.description.attributes[Attribute.MULTIPROCESSOR_COUNT]
    if grid[0] * grid[1] * grid[2] > ctas * sms:
        raise CudaError(
            Status.COOPERATIVE_LAUNCH_TOO_LARGE,
            f"kernel {kernel.name}: a cooperative grid of {grid[0] * grid[1] * grid[2]} blocks does not fit "
            f"on the GPU, which holds {ctas} on each of {sms} SMs",
        )
    address = int(gpu.native.allocate(_WORKSPACE_BYTES, "workspace of a cooperative grid"))
    gpu.native.mark_written(address, _WORKSPACE_BYTES)  # with zeros
    return address


@answers(Call.OCCUPANCY)
def occupancy(request: Request, number: int, threads: int, shared: int) -> bytes:
    """CTAs of a kernel that fit on an SM."""
    kernel = request.session.function(number).kernel(request.gpu)
    if not 0 < threads <= kernel.maximum_threads:
        return struct.pack("<I", 0)
    ctas, _ = request.gpu.occupancy(kernel, threads, shared)
    return struct.pack("<I", ctas)


@answers(Call.FUNCTION_ATTRIBUTE)
def set_function_attribute(request: Request, number: int, attribute: int, value: int) -> bytes:
    """Sets an attribute of a kernel."""
    gpu = request.gpu
    kernel = request.session.function(number).kernel(gpu)
    if attribute == _MAXIMUM_DYNAMIC_SHARED:
        most = gpu.description.shared_optin - kernel.static_shared
        if not 0 <= value <= most:
            raise CudaError(
                Status.INVALID_VALUE,
                f"kernel {kernel.name} may have at most {most} bytes of dynamic shared memory on this GPU, not {value}",
            )
        kernel.dynamic_shared = max(value, _WITHOUT_ASKING - kernel.static_shared)
    elif attribute == _PREFERRED_CARVEOUT:
        kernel.carveout = value
    return b""
