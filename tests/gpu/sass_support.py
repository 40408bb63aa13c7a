# SPDX-License-Identifier: Apache-2.0
"""What tests of SASS share: NVIDIA's disassembler where it is there, and instructions as bytes."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from manyscale.gpu.assembler import find_assembler

FIXTURES = Path(__file__).parent / "fixtures"
BYTES = 16  # of an instruction
_LINE = re.compile(r"^\s*/\*([0-9a-f]+)\*/\s+(.*?)\s*;", re.MULTILINE)

needs_assembler = pytest.mark.skipif(find_assembler() is None, reason="there is no ptxas")


def find_disassembler() -> Path | None:
    package = importlib.util.find_spec("nvidia")
    for folder in () if package is None else package.submodule_search_locations or ():
        for candidate in sorted(Path(folder).glob("cu*/bin/nvdisasm")):
            if os.access(candidate, os.X_OK):
                return candidate
    command = shutil.which("nvdisasm")
    return None if command is None else Path(command)


needs_disassembler = pytest.mark.skipif(
    find_disassembler() is None, reason="there is no nvdisasm; pip install nvidia-cuda-nvdisasm brings one"
)


def words_as_bytes(low: int, high: int) -> bytes:
    return low.to_bytes(8, "little") + high.to_bytes(8, "little")


def nvdisasm_texts(code: bytes, architecture: str) -> list[str]:
    """What NVIDIA's disassembler prints for instructions that follow one another from offset 0 on."""
    command = find_disassembler()
    assert command is not None
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(code)
        file.flush()
        done = subprocess.run(
            [str(command), "--binary", architecture.upper().replace("_", ""), "-ndf", "-raw", file.name],
            capture_output=True,
            text=True,
            check=True,
        )
    found = {int(at, 16): text for at, text in _LINE.findall(done.stdout)}
    return [found[at] for at in range(0, len(code), BYTES)]
