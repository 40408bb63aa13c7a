# SPDX-License-Identifier: Apache-2.0
"""What differs between two runs, for people: parameters that changed, what that did, and what explains it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from manyscale.report.evidence import Evidence
from manyscale.report.headline import headline
from manyscale.report.numbers import share, shown, spoken
from manyscale.report.top_down import cpi_shares
from manyscale.report.verdict import Verdict, verdict
from manyscale.results import Run

MOST = 10
_UNCHANGED = 1e-9  # of a number: rounding
_SMALL = 1e-3  # of the time of a run: a part that explains nothing
_WORDS = ("name", "description")  # of a machine: no parameters
_NOISE = re.compile(r"\.(min|max|p\d+|bucket|mean|count)$")


@dataclass(frozen=True)
class Change:
    """A parameter that is not the same in both runs; None where a run does not have it."""

    name: str
    a: str | None
    b: str | None


@dataclass(frozen=True)
class Difference:
    """A number of both runs; `share` is its part of what the time changed by, where it is a part of the time."""

    what: str
    a: float
    b: float
    unit: str
    share: float | None = None

    @property
    def ratio(self) -> float | None:
        """How many times as large it is in B."""
        return self.b / self.a if self.a else None

    @property
    def change(self) -> str:
        """The change in per cent, or as a factor where it is large."""
        if self.a == self.b:
            return "0%"
        if not self.a:
            return "new"
        ratio = self.b / self.a
        return f"{ratio:.3g} times" if ratio >= 2 else f"{100 * (ratio - 1):+.3g}%"


class Comparison:
    """Two runs side by side: `a` is what is compared with, `b` what is compared."""

    def __init__(self, a: Run, b: Run) -> None:
        self.a, self.b = Evidence(a), Evidence(b)

    @cached_property
    def verdicts(self) -> tuple[Verdict, Verdict]:
        """The verdict of each run."""
        return verdict(self.a), verdict(self.b)

    @cached_property
    def changes(self) -> list[Change]:
        """Parameters of machine and workload that differ."""
        found = []
        for title, sides in (
            ("", [_flat(each.machine) for each in (self.a, self.b)]),
            ("workload: ", [_flat(each.run.info["workload"]) for each in (self.a, self.b)]),
            ("", [{"seed": str(each.run.info["seed"])} for each in (self.a, self.b)]),
            ("version of ", [_flat({"manyscale": _version(each)}) for each in (self.a, self.b)]),
        ):
            first, second = sides
            for name in dict.fromkeys([*first, *second]):
                if first.get(name) != second.get(name) and (title or name not in _WORDS):
                    found.append(Change(title + name, first.get(name), second.get(name)))
        return found

    @property
    def seconds(self) -> tuple[float, float]:
        """The time of each run: of its kernels if it has kernels and no program around them, else all of it."""
        return time_of(self.a), time_of(self.b)

    @property
    def sentence(self) -> str:
        """What became of the time and of the verdict."""
        before, after = self.seconds
        first, second = self.verdicts
        if not before or not after:
            text = "The runs have no simulated time to compare."
        elif abs(after / before - 1) < _UNCHANGED:
            text = f"Both take {shown(after, 's')}."
        else:
            faster = before / after
            words = f"{faster:.3g} times as fast" if faster >= 1 else f"{1 / faster:.3g} times as slow"
            text = f"B takes {shown(after, 's')} where A takes {shown(before, 's')}: {words}."
        if first.limit and second.limit:
            text += (
                f" Both are limited by {first.limit}."
                if first.limit == second.limit
                else f" The limit moves from {first.limit} to {second.limit}."
            )
        return text

    @cached_property
    def headline(self) -> list[tuple[str, str, str]]:
        """The numbers that people look at first, of A and of B."""
        first, second = headline(self.a), headline(self.b)
        return [
            (name, first.get(name, "none"), second.get(name, "none"))
            for name in dict.fromkeys([*first, *second])
        ]

    @cached_property
    def differences(self) -> list[Difference]:
        """The differences that explain it: parts of the time by their share of the change, then counts that changed."""
        parts = self._time_parts()
        return (parts + self._counts())[:MOST]

    def _time_parts(self) -> list[Difference]:
        first, second = time_parts(self.a), time_parts(self.b)
        if not first or not second:
            return []
        before, after = sum(first.values()), sum(second.values())
        moved = after - before
        found = [
            Difference(
                f"time: {name}", first.get(name, 0.0), second.get(name, 0.0), "s",
                share(second.get(name, 0.0) - first.get(name, 0.0), moved) if moved else None,
            )
            for name in dict.fromkeys([*first, *second])
        ]  # fmt: skip
        least = _SMALL * max(before, after)
        found = [each for each in found if abs(each.b - each.a) > least]
        return sorted(found, key=lambda each: -abs(each.b - each.a))

    def _counts(self) -> list[Difference]:
        """Counters, summed over components of a kind, that changed most; the larger ones first among equals."""
        first, second = _sums(self.a), _sums(self.b)
        found = []
        for key in dict.fromkeys([*first, *second]):
            before, after = first.get(key, 0.0), second.get(key, 0.0)
            most = max(abs(before), abs(after))
            if most and abs(after - before) > _UNCHANGED * most:
                found.append(
                    (
                        abs(after - before) / most,
                        Difference(f"{key[0]}: {spoken(key[1])}", before, after, key[2]),
                    )
                )
        return [each for _, each in sorted(found, key=lambda entry: -entry[0])]

    def data(self) -> dict[str, Any]:
        """All of it, for scripts."""
        return {
            "changed": [asdict(change) for change in self.changes],
            "verdict": {"a": self.verdicts[0].text, "b": self.verdicts[1].text, "change": self.sentence},
            "differences": [asdict(each) for each in self.differences],
        }


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """A description as dotted names and texts."""
    found: dict[str, str] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{name}.")
        else:
            found[prefix + str(name)] = str(value)
    return found


def _version(evidence: Evidence) -> str:
    return str(evidence.run.info["versions"].get("manyscale"))


def time_of(evidence: Evidence) -> float:
    if evidence.gpu_time is None and evidence.kernels():
        return sum(evidence.metrics(kernel).get("duration", 0.0) for kernel in evidence.kernels())
    return evidence.seconds


def time_parts(evidence: Evidence) -> dict[str, float]:
    """What the time of a run is made of, in seconds: calls and kernels, warp states, causes, what ranks did."""
    use = evidence.gpu_time
    if use is not None:
        return {"kernels": use.kernels, "copies": use.copies, "host and launches": use.other}
    if evidence.kernels():
        return _warp_states(evidence)
    shares = cpi_shares(evidence)
    if shares:
        return {spoken(cause): part * evidence.seconds for cause, part in shares.items()}
    words = {"compute": "computing", "overhead": "MPI library", "waiting": "waiting for late ranks"}
    return {
        words.get(name, "messages on their way"): part * evidence.seconds
        for name, part in evidence.rank_shares.items()
    }


def _warp_states(evidence: Evidence) -> dict[str, float]:
    """The time of kernels: launch overhead, and the rest by the states of their warps."""
    from manyscale.gpu.metrics import STALLS

    found: dict[str, float] = {}
    for kernel in evidence.kernels():
        metrics = evidence.metrics(kernel)
        duration = metrics.get("duration", 0.0)
        overhead = duration * metrics.get("launch_overhead", 0.0) / 100
        found["launch overhead"] = found.get("launch overhead", 0.0) + overhead
        states = {stall.label: metrics.get(f"stall_{stall.name}", 0.0) for stall in STALLS}
        whole = sum(states.values()) or 1.0
        for label, part in states.items():
            found[label] = found.get(label, 0.0) + (duration - overhead) * part / whole
    return found


def _sums(evidence: Evidence) -> dict[tuple[str, str, str], float]:
    """Counters of the whole run, summed over components of a kind: (kind, statistic, unit) -> sum."""
    sums: dict[tuple[str, str, str], float] = {}
    for component, statistic, unit, value in _counters(evidence):
        key = (re.sub(r"\[\d+\]", "", component), statistic, unit)
        sums[key] = sums.get(key, 0.0) + value
    return sums


def _counters(evidence: Evidence) -> Iterator[tuple[str, str, str, float]]:
    if not evidence.scalars:
        return
    table = evidence.run.stats
    rows = table.filter(table["key"].is_null() & (table["scope"] == "run") & (table["kind"] == "counter"))
    for component, statistic, unit, value in rows.select(
        "component", "statistic", "unit", "value"
    ).iter_rows():
        if not _NOISE.search(statistic):
            yield component, statistic, unit, value
