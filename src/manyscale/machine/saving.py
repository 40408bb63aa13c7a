# SPDX-License-Identifier: Apache-2.0
"""Writes a machine as TOML that loads back to an equal machine, each value with its source on its line."""

from __future__ import annotations

from collections.abc import Mapping

from manyscale import toml_text
from manyscale.machine.description import Machine
from manyscale.results.files import FileKind
from manyscale.spec import build, dump


def _is_machine(text: bytes) -> bool:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        found = set(tomlkit.parse(text.decode()))
    except (TOMLKitError, UnicodeDecodeError):
        return False
    return bool(found) and found <= set(Machine.model_fields)


MACHINE_FILE = FileKind("a machine file", _is_machine)


def to_toml(machine: Machine, sources: Mapping[str, str]) -> str:
    """The text of a machine file; `sources` holds the text for the comment behind each dotted path."""
    comments = {path: _one_line(source) for path, source in sources.items()}
    return "\n".join(toml_text.lines(dump(machine, reads=False), comments=comments)) + "\n"


def with_network(
    machine: Machine, sources: Mapping[str, str], network: Machine, network_sources: Mapping[str, str]
) -> tuple[Machine, dict[str, str]]:
    """A machine with the network section of another, and the sources of both."""
    data = dump(machine, reads=False) | {"network": dump(network, reads=False)["network"]}
    found = {path: source for path, source in sources.items() if not path.startswith("network.")}
    found |= {path: source for path, source in network_sources.items() if path.startswith("network.")}
    return build(Machine, data, machine.name or "the machine"), found


def _one_line(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
