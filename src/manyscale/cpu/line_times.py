# SPDX-License-Identifier: Apache-2.0
"""How long a machine takes to give a line of memory from one core that writes it to another: it is simulated."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from manyscale import _core
from manyscale.cpu.trace import KINDS, NODE_TYPES
from manyscale.cpu.trace_file import COLUMN_TYPES
from manyscale.guard import temporary_folder
from manyscale.machine import ResolvedMachine, load_machine, to_toml
from manyscale.machine.cpu_system import build_cpu

_QUANTUM = "4ns"  # how far cores compute ahead of each other where the machine does not state it
_TURNS = 100  # that each of two cores takes
_APART = 250  # cycles between them, so that the other has its turn meanwhile
_LINE, _CODE, _FAR = (1 << 40) + 0x2000_0000, (1 << 40) + 0x10_000, 0x10_000  # addresses
_HALTS_STREAM = 8


def transfer_time(machine: ResolvedMachine) -> int:
    """Femtoseconds that an atomic operation on a line takes longer if another core had it last; 0 for one core."""
    cpu = machine.machine.cpu
    if cpu is None or cpu.cores is None or cpu.cores < 2:
        return 0
    return _transfer_time(to_toml(machine.machine, machine.sources))


@functools.lru_cache(maxsize=16)
def _transfer_time(text: str) -> int:
    with temporary_folder() as folder:
        path = folder / "machine.toml"
        path.write_text(text)
        machine = load_machine(path)
        return max(0, _time(machine, [_LINE, _LINE]) - _time(machine, [_LINE, _LINE + _FAR])) // _TURNS


def _time(machine: ResolvedMachine, lines: list[int]) -> int:
    """Of two cores that write these lines."""
    stated = machine.machine.cpu and machine.machine.cpu.core
    own: dict[str, Any] = {} if getattr(stated, "quantum", None) is not None else {"quantum": _QUANTUM}
    parts = build_cpu(machine.machine, 2, trace={}, **own)
    blocks = [_block(thread, line) for thread, line in enumerate(lines)]
    _core.cpu_play(parts.program.native, _index(), [], lambda stream, _: blocks[stream], [], 0)
    return int(parts.system.run().now)


def _index() -> dict[str, bytes]:
    """Two threads of one block each."""
    columns = {
        name: np.zeros(2 if name.startswith("stream.") else 0, kind) for name, kind in COLUMN_TYPES.items()
    }
    columns["stream.blocks"] = np.ones(2, "<u4")
    for name in ("stream.subject", "stream.thread"):
        columns[name][1] = 1
    return {name: column.tobytes() for name, column in columns.items()}


def _block(thread: int, line: int) -> bytes:
    """Atomic operations on the line, each some time after the one before, and the end of the thread."""
    shapes = {name: (_TURNS + 1, 3) if name in ("producers", "delays") else _TURNS + 1 for name in NODE_TYPES}
    columns = {name: np.zeros(shapes[name], kind) for name, kind in NODE_TYPES.items()}
    columns["pc"][:] = _CODE
    columns["address"][:_TURNS] = line
    columns["producers"][1:, 0] = 1
    columns["delays"][1:, 0] = _APART
    columns["kind"][:] = KINDS.index("atomic")
    columns["size"][:] = 8
    columns["thread"][:] = thread
    columns["kind"][_TURNS] = KINDS.index("system")
    columns["flags"][_TURNS] = _HALTS_STREAM
    columns["size"][_TURNS] = _core.cpu_sync_kinds().index("thread_end")
    return bytes(_core.cpu_encode_block({name: column.tobytes() for name, column in columns.items()}))
