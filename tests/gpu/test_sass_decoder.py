# SPDX-License-Identifier: Apache-2.0
"""Machine instructions are read as NVIDIA's own disassembler reads them.

`MANYSCALE_DISASSEMBLE=all` compares every module of the test set, and `MANYSCALE_DISASSEMBLE=FOLDER[:FOLDER…]` every
PTX file below these folders as well; without it, a sample is compared.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from sass_support import (
    BYTES,
    FIXTURES,
    needs_assembler,
    needs_disassembler,
    nvdisasm_texts,
    words_as_bytes,
)

from manyscale import _core
from manyscale.gpu.assembler import AssemblyError, assemble
from manyscale.gpu.disassembly import disassemble_cubin

pytestmark = pytest.mark.core

_WANTED = os.environ.get("MANYSCALE_DISASSEMBLE", "")
_SAMPLE = ("saxpy", "atomics_integer", "half_arithmetic", "special_functions_f64", "warp_votes", "wmma_half")
_BATCH = 20_000  # instructions that nvdisasm reads at once
# Bits that only the issue logic reads: instructions that differ in nothing else are compared once.
_SCHEDULE = ((1 << 17) - 1) << (105 - 64)


def _stored() -> Iterator[tuple[int, int, int, int, str]]:
    for line in (FIXTURES / "sass" / "instructions.txt").read_text().splitlines():
        if not line.startswith("#"):
            architecture, high, low, offset, text = line.split(" ", 4)
            yield int(architecture[3:]), int(high, 16), int(low, 16), int(offset, 16), text


def test_one_instruction_of_each_kind_reads_as_nvdisasm_prints_it() -> None:
    rows = list(_stored())
    assert len(rows) > 900
    wrong = []
    for architecture, high, low, offset, expected in rows:
        (found,) = _core.instruction_texts(words_as_bytes(low, high), architecture, offset)
        if found != expected:
            wrong.append(f"sm_{architecture} {high:016x} {low:016x}: {found!r} instead of {expected!r}")
    assert not wrong, "\n".join(wrong)


def test_opcodes_that_a_gpu_lacks_are_unknown_to_it() -> None:
    uniform_move = words_as_bytes(0x0000000800077882, 0x000FC40000000000)
    assert _core.instruction_texts(uniform_move, 75) == ["UMOV UR7, 0x8"]
    assert _core.instruction_texts(uniform_move, 70) == [None]
    for other in (60, 100, 120):
        assert _core.instruction_texts(uniform_move, other) == [None]


def test_any_bits_are_read_or_refused() -> None:
    """No bits make the reader fail: it gives a text, or says that there is none."""
    generator = random.Random(1)
    known = [words_as_bytes(low, high) for _, high, low, _, _ in _stored()]
    for architecture in (70, 75, 80, 86, 89, 90):
        code = bytearray(generator.randbytes(4000 * BYTES))
        for word in known:
            at = generator.randrange(BYTES * 8)
            flipped = int.from_bytes(word, "little") ^ 1 << at
            code += flipped.to_bytes(BYTES, "little")
        texts = _core.instruction_texts(bytes(code), architecture)
        assert len(texts) == len(code) // BYTES
        assert any(text is None for text in texts)
        assert any(text is not None for text in texts)


def _modules() -> list[Path]:
    fixtures = sorted(FIXTURES.rglob("*.ptx"))
    if not _WANTED:
        return [path for path in fixtures if path.stem in _SAMPLE and path.parent.name in ("sm_80", "sm_75")]
    folders = [] if _WANTED == "all" else _WANTED.split(":")
    return fixtures + [path for folder in folders for path in sorted(Path(folder).rglob("*.ptx"))]


@needs_assembler
@needs_disassembler
@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_86", "sm_90"])
def test_assembled_modules_read_as_nvdisasm_prints_them(
    architecture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    words: dict[tuple[int, int], bytes] = {}
    assembled = 0
    for path in _modules():
        try:
            code = assemble(path.read_bytes(), path.name, architecture)
        except AssemblyError:
            continue  # it uses what this GPU lacks
        assembled += 1
        for function in disassemble_cubin(code, path.name).functions:
            for row in function.instructions:
                low, high = row.words
                words.setdefault((low, high & ~_SCHEDULE), words_as_bytes(low, high))
    assert assembled >= 5
    wrong = []
    every = list(words.values())
    for begin in range(0, len(every), _BATCH):
        code = b"".join(every[begin : begin + _BATCH])
        theirs = nvdisasm_texts(code, architecture)
        ours = _core.instruction_texts(code, int(architecture[3:]))
        wrong += [
            f"{found!r} instead of {text!r}"
            for found, text in zip(ours, theirs, strict=True)
            if found != text
        ]
    assert not wrong, f"{len(wrong)} of {len(every)} differ:\n" + "\n".join(wrong[:20])
