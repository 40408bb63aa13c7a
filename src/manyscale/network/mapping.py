# SPDX-License-Identifier: Apache-2.0
"""Which node each rank runs on."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from manyscale.errors import InputError
from manyscale.units import shown

KINDS = ("block", "cyclic", "random")

Nodes = npt.NDArray[np.int32]


def map_ranks(mapping: str, ranks: int, nodes: int, ranks_per_node: int, seed: int = 0) -> Nodes:
    """The node of each rank.

    block: the first ranks on the first node, and so on; cyclic: one rank on each node in turn; random: block, on
    nodes in random order; anything else is the name of a file with one node in each line.
    """
    if ranks < 1 or nodes < 1 or ranks_per_node < 1:
        raise InputError(f"a job has at least 1 rank on 1 node, not {ranks} on {nodes}")
    everyone = np.arange(ranks)
    if mapping not in KINDS:
        return _read(mapping, ranks, nodes)
    if ranks > nodes * ranks_per_node:
        raise InputError(f"{ranks} ranks do not fit on {nodes} nodes with {ranks_per_node} ranks each")
    if mapping == "cyclic":
        return (everyone % nodes).astype(np.int32)
    block = everyone // ranks_per_node
    if mapping == "random":
        block = np.random.default_rng(seed).permutation(nodes)[block]
    return block.astype(np.int32)


def _read(name: str, ranks: int, nodes: int) -> Nodes:
    path = Path(name)
    if not path.is_file():
        raise InputError(
            f"{shown(name)} is no mapping: write {', '.join(KINDS)} or a file of one node in each line"
        )
    chosen: list[int] = []
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                text = line.partition("#")[0].strip()
                if not text:
                    continue
                if not text.isdigit() or len(text) > 12 or int(text) >= nodes:
                    raise InputError(
                        f"{path}, line {number}: expected a node from 0 to {nodes - 1}, got {shown(text)}"
                    )
                if len(chosen) == ranks:
                    raise InputError(f"{path}, line {number}: there are only {ranks} ranks")
                chosen.append(int(text))
    except OSError as error:
        raise InputError(f"cannot read {os.fspath(path)}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text") from None
    if len(chosen) < ranks:
        raise InputError(f"{path} has nodes for {len(chosen)} ranks, but there are {ranks}")
    return np.array(chosen, np.int32)
