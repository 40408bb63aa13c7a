# SPDX-License-Identifier: Apache-2.0
"""Small traces made by hand, for tests of files and replays."""

import numpy as np

from manyscale import _core
from manyscale.cpu.trace import KINDS, NODE_TYPES
from manyscale.cpu.trace_file import COLUMN_TYPES, TraceWriter

THREAD_END = _core.cpu_sync_kinds().index("thread_end")
DATA, CODE = (1 << 40) + 0x2000_0000, (1 << 40) + 0x10_000
HALTS_STREAM = 8


def header(cores=1, **changes):
    """What a trace says of itself, as small as it can be."""
    program = {
        "kind": "test",
        "name": "sample",
        "hash": None,
        "arguments": [],
        "environment": {},
        "ranks": 1,
        "input_hash": None,
    }
    return {
        "manyscale": "test",
        "created": "",
        "command": ["test"],
        "program": program,
        "machine": "",
        "machine_toml": "",
        "clock": 10**9,
        "cores": cores,
        "functional": True,
        "seed": 0,
    } | changes


def facts(**changes):
    """What a trace says at its end."""
    run = {"exit_code": 0, "instructions": 0, "cycles": None, "seconds": None}
    return {"statistics": {}, "sync": [], "overheads": {}, "regions": [], "run": run} | changes


def nodes(rows):
    """Columns of nodes; each row gives what is not 0."""
    columns = {name: np.zeros(len(rows), kind) for name, kind in NODE_TYPES.items()}
    for name in ("producers", "delays"):
        columns[name] = np.zeros((len(rows), 3), NODE_TYPES[name])
    for number, row in enumerate(rows):
        for name, value in row.items():
            columns[name][number] = KINDS.index(value) if name == "kind" else value
    return columns


def block(columns):
    """Nodes as the bytes of a block."""
    return _core.cpu_encode_block({name: column.tobytes() for name, column in columns.items()})


def thread_end(thread=0):
    """The last node of a thread."""
    return {
        "kind": "system",
        "size": THREAD_END,
        "flags": HALTS_STREAM,
        "address": thread,
        "thread": thread,
    }


def loads(count, stride=64, thread=0):
    """Nodes that load one address after the other."""
    rows = [
        {"kind": "load", "pc": CODE + 4 * (i % 8), "address": DATA + stride * i, "size": 8, "thread": thread}
        for i in range(count)
    ]
    return [*rows, thread_end(thread)]


def write(path, streams, cores=None, block_nodes=100, **given):
    """A trace of threads without regions; `streams` are the rows of each."""
    writer = TraceWriter(path, header(cores or len(streams)))
    columns = {name: [] for name in COLUMN_TYPES}
    for number, rows in enumerate(streams):
        for at in range(0, len(rows), block_nodes):
            part = nodes(rows[at : at + block_nodes])
            writer.add(number, at // block_nodes, len(part["pc"]), len(part["pc"]), block(part))
        one = {
            "is_task": 0,
            "subject": number,
            "process": 0,
            "region": _core.cpu_no_region,
            "parent": 0,
            "thread": number,
            "instructions": len(rows),
            "nodes": len(rows),
            "dependences": 0,
        }
        for name, value in one.items():
            columns[f"stream.{name}"].append(value)
    writer.finish(facts(**given), columns)
    return path
