# SPDX-License-Identifier: Apache-2.0
"""Any network as a file: switches, the links between them, and where nodes are attached.

One statement in a line: `switches N`, `link A B [BANDWIDTH [LATENCY]]`, `nodes SWITCH [COUNT]`; `#` begins a comment.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from manyscale import units
from manyscale.errors import InputError

MOST_SWITCHES = 1_000_000
MOST_LINKS = 10_000_000
MOST_NODES = 10_000_000


def read_graph(path: str | os.PathLike[str], bandwidth: int, latency: int) -> dict[str, Any]:
    """The arrays of a graph; links that do not state them have the given bandwidth and latency."""
    file = Path(path)
    switches = 0
    links: list[tuple[int, int, int, int]] = []
    attached: list[int] = []
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                words = line.partition("#")[0].split()
                where = f"{file}, line {number}"
                if not words:
                    continue
                if words[0] == "switches" and len(words) == 2:
                    if switches:
                        raise InputError(f"{where}: switches is said twice")
                    switches = _number(words[1], MOST_SWITCHES, where)
                elif words[0] == "link" and 3 <= len(words) <= 5:
                    links.append(_link(words, switches, bandwidth, latency, where))
                elif words[0] == "nodes" and len(words) in (2, 3):
                    count = _number(words[2], MOST_NODES, where) if len(words) == 3 else 1
                    if len(attached) + count > MOST_NODES:
                        raise InputError(f"{where}: a network has at most {MOST_NODES:,} nodes")
                    attached += [_switch(words[1], switches, where)] * count
                else:
                    raise InputError(
                        f"{where}: expected 'switches N', 'link A B [BANDWIDTH [LATENCY]]' or 'nodes SWITCH [COUNT]', "
                        f"got {units.shown(line.strip())}"
                    )
                if len(links) > MOST_LINKS:
                    raise InputError(f"{where}: a network has at most {MOST_LINKS:,} links")
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{file} is not text") from None
    if not switches or not attached:
        raise InputError(f"{file}: a network needs 'switches N' and at least one line of 'nodes'")
    columns = np.array(links, np.int64).reshape(len(links), 4).T
    return {
        "switches": switches,
        "from": columns[0].astype(np.uint32),
        "to": columns[1].astype(np.uint32),
        "bandwidth": np.ascontiguousarray(columns[2]),
        "latency": np.ascontiguousarray(columns[3]),
        "node_switch": np.array(attached, np.uint32),
    }


def _link(
    words: list[str], switches: int, bandwidth: int, latency: int, where: str
) -> tuple[int, int, int, int]:
    a, b = (_switch(word, switches, where) for word in words[1:3])
    if a == b:
        raise InputError(f"{where}: a link joins two different switches, not {a} and {b}")
    try:
        if len(words) > 3:
            bandwidth = int(units.parse(words[3], units.BANDWIDTH))
        if len(words) > 4:
            latency = int(units.parse(words[4], units.TIME))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    if bandwidth < 1 or latency < 0:
        raise InputError(f"{where}: a link has a bandwidth of at least 1B/s and a latency of at least 0fs")
    return a, b, bandwidth, latency


def _switch(word: str, switches: int, where: str) -> int:
    number = _number(word, MOST_SWITCHES, where)
    if number >= switches:
        raise InputError(
            f"{where}: there is no switch {number}; "
            + (f"they are 0 to {switches - 1}" if switches else "'switches N' must come first")
        )
    return number


def _number(word: str, most: int, where: str) -> int:
    if not word.isdigit() or len(word) > 12 or int(word) > most:
        raise InputError(f"{where}: expected a whole number of at most {most:,}, got {units.shown(word)}")
    return int(word)
