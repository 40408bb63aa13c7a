# SPDX-License-Identifier: Apache-2.0
"""Machines: typed descriptions with units, presets, and the files they come from."""

from manyscale.machine.description import Machine
from manyscale.machine.loading import ResolvedMachine, load_machine, resolve_machine
from manyscale.machine.presets import list_presets
from manyscale.machine.saving import to_toml

__all__ = ["Machine", "ResolvedMachine", "list_presets", "load_machine", "resolve_machine", "to_toml"]
