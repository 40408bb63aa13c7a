# SPDX-License-Identifier: Apache-2.0
"""Linking at run time (cuLinkComplete): PTX becomes one text of PTX, cubins one cubin where nvlink is installed."""

from __future__ import annotations

import enum
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from manyscale.errors import InputError
from manyscale.guard import temporary_folder

from .fatbin import best_cubin, best_ptx, images
from .linking import link
from .status import CudaError, Status


class InputKind(enum.IntEnum):
    """CUjitInputType."""

    CUBIN = 0
    PTX = 1
    FATBINARY = 2
    OBJECT = 3
    LIBRARY = 4


def link_images(inputs: Sequence[tuple[int, bytes]], capability: int) -> bytes:
    """A module of all inputs, which can be loaded."""
    texts, cubins = [], []
    for kind, data in inputs:
        if kind == InputKind.PTX:
            texts.append(data.rstrip(b"\0"))
        elif kind == InputKind.CUBIN:
            cubins.append(data)
        elif kind == InputKind.FATBINARY:
            text, cubin = _of_container(data, capability)
            texts += [] if text is None else [text]
            cubins += [] if cubin is None else [cubin]
        else:
            raise CudaError(
                Status.NOT_SUPPORTED,
                "cuLinkAddData: objects and libraries of the host's linker are not supported",
            )
    if texts and cubins:
        raise CudaError(Status.NOT_SUPPORTED, "cuLinkComplete: PTX is not linked with cubins")
    if texts:
        return link(texts) + b"\0"
    if not cubins:
        raise CudaError(Status.NO_KERNEL_IMAGE_FOR_DEVICE, "cuLinkComplete: nothing to link for this GPU")
    return cubins[0] if len(cubins) == 1 else _link_cubins(cubins, capability)


def _of_container(data: bytes, capability: int) -> tuple[bytes | None, bytes | None]:
    """The PTX of a fat binary that fits a GPU, else its cubin."""
    try:
        found = images(data)
        text = best_ptx(found, capability, False)
        cubin = best_cubin(found, capability) if text is None else None
        return None if text is None else text.ptx(), None if cubin is None else cubin.unpacked()
    except InputError as error:
        raise CudaError(Status.INVALID_PTX, str(error)) from None


def _link_cubins(cubins: Sequence[bytes], capability: int) -> bytes:
    linker = shutil.which("nvlink")
    if linker is None:
        raise CudaError(
            Status.NOT_SUPPORTED,
            "cuLinkComplete: several cubins are linked by nvlink, which is not on the PATH",
        )
    with temporary_folder() as folder:
        files = [Path(folder) / f"{number}.cubin" for number in range(len(cubins))]
        for file, data in zip(files, cubins, strict=True):
            file.write_bytes(data)
        linked = Path(folder) / "linked.cubin"
        command = [linker, f"-arch=sm_{capability}", *map(str, files), "-o", str(linked)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CudaError(Status.INVALID_PTX, f"cuLinkComplete: {(done.stdout + done.stderr).strip()}")
        return linked.read_bytes()
