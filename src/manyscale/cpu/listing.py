# SPDX-License-Identifier: Apache-2.0
"""A program's instructions in words, by function, with lines of source and the cycles of a run beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from manyscale import _core
from manyscale.cpu.program import Program
from manyscale.errors import InputError, nearest
from manyscale.results import load

_HOT_FILE = "hot_instructions.parquet"


class Labels:
    """The text of the instruction at an address, with its function; for logs of pipelines."""

    def __init__(self, program: Program) -> None:
        self._symbols = program.symbols
        self._code = program.symbols.code

    def __call__(self, address: int) -> str:
        for _, start, code in self._code:
            if start <= address < start + len(code):
                piece = code[address - start : address - start + 4]
                found = _core.riscv_disassemble(piece, address)
                text = found[0][2] if found else ""
                function = self._symbols.locate(address).function
                return f"{text}  ({function})" if function else text
        return ""


def listing(program: Program, functions: Sequence[str], run: Path | None = None) -> Iterator[str]:
    """Lines of text: the named functions, or those that a run spent cycles in, or all."""
    symbols = program.symbols
    for name in functions:
        if name not in symbols.addresses:
            raise InputError(
                f"{program.path}: there is no function '{name}'; {nearest(name, symbols.addresses)}"
            )
    hot = {} if run is None else _hot(run)
    total = sum(cycles for cycles, _ in hot.values()) or 1
    wanted = set(functions) or {symbols.locate(address).function for address in hot}
    current, source = "", ""
    for _, start, code in symbols.code:
        for address, bits, text in _core.riscv_disassemble(code, start):
            location = symbols.locate(address)
            if wanted and location.function not in wanted:
                continue
            if location.function != current:
                current, source = location.function, ""
                yield ""
                yield f"{current or '(no function)'}:"
            if location.source and location.source != source:
                source = location.source
                yield f"  {source}"
            cycles, executed = hot.get(address, (0, 0))
            beside = f"{cycles / total:7.2%} {executed:>14,} " if run is not None else ""
            if run is not None and not executed:
                beside = " " * len(beside)
            yield f"  {beside}{address:10x}  {_hexadecimal(bits):8}  {text}"


def _hexadecimal(bits: int) -> str:
    return f"{bits:08x}" if bits & 3 == 3 else f"{bits:04x}"


def _hot(run: Path) -> dict[int, tuple[int, int]]:
    """Cycles and executions of each instruction of a run."""
    if not (run / _HOT_FILE).is_file():
        raise InputError(f"{run}: there is no {_HOT_FILE} in it; run the program with --hot-lines")
    table = load(run).table(_HOT_FILE, columns=["address", "cycles", "instructions"])
    return {address: (cycles, executed) for address, cycles, executed in table.iter_rows()}
