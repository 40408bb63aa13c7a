# SPDX-License-Identifier: Apache-2.0
"""Former names of machine parameters: machines, traces and run directories of version 0.1 state them."""

from __future__ import annotations

_RENAMED = {
    "misses_apart": "mshrs_per_level",
    "requester_places": "requester_positions",
    "responder_places": "responder_positions",
}


def current(name: str) -> str:
    """The name that a parameter has now."""
    return _RENAMED.get(name, name)
