# SPDX-License-Identifier: Apache-2.0
"""The errors of the CUDA runtime that the server gives, by their numbers."""

from __future__ import annotations

import enum

from manyscale.errors import ManyscaleError


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
    """A call of the program that fails; `message` says why, in words that CUDA's number does not have."""

    def __init__(self, status: Status, message: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message


_FAULTS = (
    ("cannot be executed", Status.NOT_SUPPORTED),
    ("the assembler refuses it", Status.NOT_SUPPORTED),
    ("assertion failed", Status.ASSERT),
    ("misaligned access", Status.MISALIGNED_ADDRESS),
    ("trap:", Status.LAUNCH_FAILURE),
    ("out of bounds", Status.ILLEGAL_ADDRESS),
    ("invalid address", Status.ILLEGAL_ADDRESS),
    ("it reads behind", Status.ILLEGAL_ADDRESS),
    ("executed more than", Status.LAUNCH_TIMEOUT),
)


def status_of_fault(text: str) -> Status:
    """What CUDA would say of a fault that a simulated kernel has raised."""
    first = text.partition("\n")[0]
    return next((status for words, status in _FAULTS if words in first), Status.LAUNCH_FAILURE)
