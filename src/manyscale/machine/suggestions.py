# SPDX-License-Identifier: Apache-2.0
"""Which parameter of a machine a misspelt path may mean."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Sequence

from manyscale.machine.description import Machine
from manyscale.spec import Spec, field_type, parameters

_MOST = 3  # that are named
_SIMILAR = 0.6  # of two words, by difflib's ratio
_ENOUGH = 0.7  # of the words of a path that a suggestion must have, on average
# What people call things, and the words of paths that mean them.
_CALLED = {
    "dram": ("memory", "channel", "dram"),
    "hbm": ("memory", "channel"),
    "frequency": ("clock",),
    "freq": ("clock",),
    "sms": ("sm",),
    "number": ("count",),
    "num": ("count",),
    "lat": ("latency",),
    "bw": ("bandwidth",),
    "capacity": ("capacity", "size"),
    "size": ("size", "capacity"),
    "assoc": ("ways",),
    "associativity": ("ways",),
    "mshr": ("outstanding_misses",),
    "mshrs": ("outstanding_misses",),
    "nic": ("nic", "network"),
    "rob": ("reorder_buffer",),
    "l3": ("shared",),
    "llc": ("shared",),
}


def is_parameter(path: str) -> bool:
    """Whether a machine has a parameter or a section at a dotted path; within a parameter, its value decides."""
    spec: type[Spec] | None = Machine
    for name in path.split("."):
        if spec is None:
            return True
        if name not in spec.model_fields:
            return False
        spec = field_type(spec.model_fields[name]).spec
    return True


def suggestion(path: str, stated: Collection[str]) -> str:
    """In words, the parameters that a path may mean; those that the machine states come first."""
    known = [row.path for row in parameters(Machine) if "[]" not in row.path]
    wanted = _words(path)
    scores = {one: _score(wanted, _words(one)) + 0.02 * (one in stated) for one in known}
    best = sorted((one for one in known if scores[one] >= _ENOUGH), key=lambda one: (-scores[one], len(one)))
    if not best:
        return "`manyscale machines parameters` lists all"
    chosen = [one for one in best if scores[one] > scores[best[0]] - 0.05][:_MOST]
    named = [f"'{one}'" for one in chosen]
    return f"did you mean {' or '.join([', '.join(named[:-1]), named[-1]] if len(named) > 1 else named)}?"


def _words(path: str) -> list[str]:
    return [word for word in re.split(r"[._]", path.lower()) if word]


def _score(wanted: Sequence[str], words: Sequence[str]) -> float:
    """How much of the wanted words a path has; the last of them counts twice, and long paths are no better."""
    likeness = [max(_likeness(word, other) for other in words) for word in wanted]
    return (sum(likeness) + likeness[-1]) / (len(wanted) + 1) - 0.01 * len(words)


def _likeness(word: str, other: str) -> float:
    if word == other:
        return 1.0
    if other in {part for called in _CALLED.get(word, ()) for part in called.split("_")}:
        return 0.95
    ratio = difflib.SequenceMatcher(None, word, other).ratio()
    return 0.9 * ratio if ratio >= _SIMILAR else 0.0
