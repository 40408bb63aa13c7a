# SPDX-License-Identifier: Apache-2.0
"""Status codes of the CUDA runtime, and the codes of faults and of launches that are refused."""

from __future__ import annotations

import enum

from manyscale._core import BadLaunch
from manyscale._core import GpuFaultKind as FaultKind
from manyscale._core import GpuLaunchProblem as LaunchProblem
from manyscale.errors import DeadlockError, KernelError, ManyscaleError


class Status(enum.IntEnum):
    """Some of cudaError_t."""

    SUCCESS = 0
    INVALID_VALUE = 1
    MEMORY_ALLOCATION = 2
    INVALID_CONFIGURATION = 9
    INVALID_SYMBOL = 13
    INVALID_DEVICE_POINTER = 17
    INVALID_DEVICE_FUNCTION = 98
    INVALID_DEVICE = 101
    NO_KERNEL_IMAGE_FOR_DEVICE = 209
    INVALID_PTX = 218
    INVALID_RESOURCE_HANDLE = 400
    NOT_READY = 600
    ILLEGAL_ADDRESS = 700
    LAUNCH_OUT_OF_RESOURCES = 701
    LAUNCH_TIMEOUT = 702
    PEER_ACCESS_ALREADY_ENABLED = 704
    PEER_ACCESS_NOT_ENABLED = 705
    ASSERT = 710
    ILLEGAL_INSTRUCTION = 715
    MISALIGNED_ADDRESS = 716
    LAUNCH_FAILURE = 719
    COOPERATIVE_LAUNCH_TOO_LARGE = 720
    NOT_SUPPORTED = 801
    UNKNOWN = 999


class CudaError(ManyscaleError):
    """A call of the program that fails; `message` has the reason in more detail than CUDA's code."""

    def __init__(self, status: Status, message: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class UnsupportedKernelError(KernelError):
    """A kernel has instructions that the simulator cannot execute."""


_FAULTS = {
    FaultKind.assertion: Status.ASSERT,
    FaultKind.misaligned_address: Status.MISALIGNED_ADDRESS,
    FaultKind.invalid_address: Status.ILLEGAL_ADDRESS,
    FaultKind.instruction_limit: Status.LAUNCH_TIMEOUT,
    FaultKind.deadlock: Status.LAUNCH_TIMEOUT,
}
_LAUNCHES = {
    LaunchProblem.shared_memory: Status.INVALID_VALUE,
    LaunchProblem.maximum_threads: Status.LAUNCH_OUT_OF_RESOURCES,
    LaunchProblem.resources: Status.LAUNCH_OUT_OF_RESOURCES,
}


def status_of_fault(error: KernelError | DeadlockError) -> Status:
    """The status code of a fault of a kernel."""
    if isinstance(error, DeadlockError):
        return Status.LAUNCH_TIMEOUT
    if isinstance(error, UnsupportedKernelError):
        return Status.NOT_SUPPORTED
    return Status.LAUNCH_FAILURE if error.kind is None else _FAULTS.get(error.kind, Status.LAUNCH_FAILURE)


def status_of_bad_launch(error: BadLaunch) -> Status:
    """The status code of a launch that is refused."""
    return _LAUNCHES.get(error.problem, Status.INVALID_CONFIGURATION)
