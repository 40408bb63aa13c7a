# SPDX-License-Identifier: Apache-2.0
"""What explains that a kernel takes another time than on hardware: the counter that differs most, and what the kernel
is sensitive to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .values import QUANTITIES, Quantity

if TYPE_CHECKING:
    from .comparison import KernelComparison

Sensitivity = Mapping[str, float]
"""By mechanism: by which power of it the time of a kernel changes, 1 where it is proportional."""

_CLOSE = 0.05  # a difference in time that needs no explanation
_AGREES = 0.03  # a counter that differs less explains nothing
_MATTERS = 0.15  # a sensitivity below this is none
_TITLES = {
    "latency": "the latency of memory",
    "bandwidth": "the bandwidth of memory",
    "issue": "the clock of the SMs (issue, pipes and L1)",
}


@dataclass(frozen=True)
class Explanation:
    """The counter that differs most, by how much, and the sentence about it."""

    text: str
    counter: str | None = None
    difference: float = 0.0


def explain(kernel: KernelComparison, sensitivity: Sensitivity | None = None) -> Explanation:
    """What explains a kernel's difference in time; with sensitivities, also which mechanism may do so."""
    error = kernel.time_error
    if error is None:
        return Explanation("no time was measured")
    if abs(error) < _CLOSE:
        return Explanation(f"the times agree ({error:+.1%})")
    differences = {q: _difference(kernel, q) for q in QUANTITIES if q.counter}
    counter = max(differences, key=lambda q: abs(differences[q]))
    text = _counter_text(kernel, counter, differences[counter])
    if sensitivity:
        text += "; " + _sensitivity_text(error, sensitivity)
    if abs(differences[counter]) < _AGREES:
        return Explanation(text)
    return Explanation(text, counter.name, differences[counter])


def _difference(kernel: KernelComparison, quantity: Quantity) -> float:
    """The logarithm of the ratio; of shares their difference, of which half counts: some are defined otherwise."""
    error = kernel.error(quantity.name)
    if error is None:
        return 0.0
    if quantity.share:
        return error / 2
    return math.log1p(error) if error > -1 else -10.0


def _counter_text(kernel: KernelComparison, counter: Quantity, difference: float) -> str:
    if abs(difference) < _AGREES:
        return "all counters agree: the timing differs, not the work"
    error = kernel.error(counter.name) or 0.0
    ours, theirs = kernel.simulated(counter.name) or 0.0, kernel.measured(counter.name) or 0.0
    if counter.share:
        return f"{counter.title} differs most: {ours:.0%} instead of {theirs:.0%}"
    more = "more" if error > 0 else "fewer"
    return f"{counter.title} differ most: {abs(error):.0%} {more}"


def _sensitivity_text(error: float, sensitivity: Sensitivity) -> str:
    strongest = max(sensitivity, key=lambda name: abs(sensitivity[name]))
    power = sensitivity[strongest]
    title = _TITLES.get(strongest, strongest)
    if abs(power) < _MATTERS:
        return "its time hardly depends on latency, bandwidth or issue: look at launch overhead and barriers"
    needed = (1 / (1 + error)) ** (1 / power) - 1
    return f"most sensitive to {title} (power {power:+.2f}): {needed:+.0%} of it would explain the difference"
