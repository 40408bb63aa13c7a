# SPDX-License-Identifier: Apache-2.0
"""What CONTRIBUTING.md says of additions: a policy is one file, because nothing else lists the names of its kind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from check_words import ROOT

FOLDERS = {
    "topology": "core/network/topologies",
    "routing algorithm": "core/network/routing_algorithms",
    "MPI library": "core/mpi/libraries",
    "collective algorithm": "core/mpi/collectives",
    "branch predictor": "core/cpu/core/predictors",
    "eviction policy": "core/gpu/uvm/eviction",
    "warp scheduler": "core/gpu/sm/warp_scheduler",
    "replacement policy": "core/memory/cache/replacement",
}
_REGISTERED = re.compile(r'Registered\w*<[^>]*>\s+\w+\s*[({]\s*"([^"]+)"')


def registered(folder: str) -> set[str]:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / folder).glob("*.cpp")]
    return {name for text in texts for name in _REGISTERED.findall(text)}


def sources() -> Iterator[Path]:
    for folder in ("core", "bindings", "src/manyscale"):
        for pattern in ("*.cpp", "*.hpp", "*.py"):
            yield from (ROOT / folder).rglob(pattern)


@pytest.mark.parametrize("kind", FOLDERS)
def test_no_other_source_lists_the_names_of_a_kind(kind: str):
    """A default or a special case may name one or two; a list that has to be extended names most."""
    names = registered(FOLDERS[kind])
    assert len(names) >= 2
    allowed = 1 if len(names) == 2 else max(2, len(names) // 2)
    lists = []
    for path in sources():
        if path.is_relative_to(ROOT / FOLDERS[kind]):
            continue
        text = path.read_text(encoding="utf-8")
        if sum(f'"{name}"' in text for name in names) > allowed:
            lists.append(str(path.relative_to(ROOT)))
    assert not lists


def test_a_command_is_a_module_and_its_lines_in_app():
    cli = ROOT / "src/manyscale/cli"
    app = (cli / "app.py").read_text(encoding="utf-8")
    modules = [
        path.stem
        for path in sorted(cli.glob("*.py"))
        if re.search(r"^commands = ", path.read_text(encoding="utf-8"), re.M)
    ]
    assert len(modules) > 10
    assert [name for name in modules if f'    "{name}": ' not in app] == []


def test_a_ptx_instruction_is_decoded_where_it_is_executed():
    """Each opcode is a row beside its handler; the decoder of functions names none of them."""
    rows = re.compile(r'\{"([a-z0-9_.]+)", decode_\w+\}')
    folder = ROOT / "core/gpu/exec/instructions"
    opcodes = {
        name for path in folder.glob("*.cpp") for name in rows.findall(path.read_text(encoding="utf-8"))
    }
    assert len(opcodes) > 50
    decoder = (ROOT / "core/gpu/exec/function_decoder.cpp").read_text(encoding="utf-8")
    assert sum(f'"{name}"' in decoder for name in opcodes) <= 5
