# SPDX-License-Identifier: Apache-2.0
"""Former names of machine parameters: machines, traces and run directories of version 0.1 state them."""

from __future__ import annotations

_RENAMED = {
    "page_fault_handling_latency": "fault_latency",
    "page_walk_latency": "walk_latency",
    "misses_apart": "mshrs_per_level",
    "requester_places": "requester_positions",
    "stores_under_way": "outstanding_stores",
    "responder_places": "responder_positions",
}


def current(name: str) -> str:
    """The name that a parameter has now."""
    return _RENAMED.get(name, name)
