# SPDX-License-Identifier: Apache-2.0
"""A program simulated beside measured: errors by kernel, and all together weighted by time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from manyscale.results.names import readable

from .explanation import Explanation, Sensitivity, explain
from .matching import Matched, Pair
from .values import BY_NAME, QUANTITIES

if TYPE_CHECKING:
    from .formats import Measurements

SAME_CODE = 0.1
"""Beyond this share, instructions differ so much that the measured program was other code."""


@dataclass(frozen=True)
class KernelComparison:
    """The launches of a kernel that were found on both sides; values are their means."""

    kernel: str
    pairs: Sequence[Pair]

    def simulated(self, name: str) -> float | None:
        return self._mean(name)[0]

    def measured(self, name: str) -> float | None:
        return self._mean(name)[1]

    def error(self, name: str) -> float | None:
        """How far the simulated is above the measured: as a share of it, of shares their difference."""
        simulated, measured = self._mean(name)
        if simulated is None or measured is None:
            return None
        if BY_NAME[name].share:
            return simulated - measured
        return simulated / measured - 1 if measured else None

    @property
    def time(self) -> str:
        """What its time is compared by: cycles where they were measured, else seconds."""
        return "cycles" if self.error("cycles") is not None else "seconds"

    @property
    def time_error(self) -> float | None:
        """The mean error of its launches' times."""
        errors = [
            pair.simulated.values[self.time] / pair.measured.values[self.time] - 1
            for pair in self.pairs
            if pair.measured.values.get(self.time) and self.time in pair.simulated.values
        ]
        return sum(errors) / len(errors) if errors else None

    @property
    def weight(self) -> float:
        """Its measured time, all launches together."""
        return sum(pair.measured.values.get(self.time, 0.0) for pair in self.pairs)

    @property
    def same_code(self) -> bool:
        """Whether the instructions agree well enough for the same code."""
        error = self.error("warp_instructions")
        return error is None or abs(error) <= SAME_CODE

    def _mean(self, name: str) -> tuple[float | None, float | None]:
        """Of launches that have it on both sides."""
        both = [
            (pair.simulated.values[name], pair.measured.values[name])
            for pair in self.pairs
            if name in pair.simulated.values and name in pair.measured.values
        ]
        if not both:
            return None, None
        return sum(ours for ours, _ in both) / len(both), sum(theirs for _, theirs in both) / len(both)


@dataclass(frozen=True)
class Correlation:
    """A program simulated beside measured."""

    program: str
    machine: str
    measurements: Measurements
    matched: Matched
    kernels: Sequence[KernelComparison]
    sensitivities: dict[str, Sensitivity] = field(default_factory=dict)  # by kernel

    @property
    def mean_error(self) -> float | None:
        """The mean of the absolute errors of all kernels."""
        errors = self._errors()
        return sum(abs(error) for _, error in errors) / len(errors) if errors else None

    @property
    def weighted_error(self) -> float | None:
        """The same, weighted by the measured time of the kernels."""
        errors = self._errors()
        whole = sum(kernel.weight for kernel, _ in errors)
        return sum(kernel.weight * abs(error) for kernel, error in errors) / whole if whole else None

    @property
    def total_error(self) -> float | None:
        """Of the time of all launches together."""
        errors = self._errors()
        whole = sum(kernel.weight for kernel, _ in errors)
        ours = sum((kernel.simulated(kernel.time) or 0.0) * len(kernel.pairs) for kernel, _ in errors)
        return ours / whole - 1 if whole else None

    @property
    def coefficient(self) -> float | None:
        """Pearson's, between the logarithms of the launches' simulated and measured times."""
        points = [(math.log(y), math.log(x)) for x, y in self.times() if x > 0 and y > 0]
        return _pearson(points) if len(points) > 2 else None

    def times(self) -> list[tuple[float, float]]:
        """Measured and simulated times of all launches."""
        return [
            (pair.measured.values[kernel.time], pair.simulated.values[kernel.time])
            for kernel in self.kernels
            for pair in kernel.pairs
            if kernel.time in pair.measured.values and kernel.time in pair.simulated.values
        ]

    def explanation(self, kernel: KernelComparison) -> Explanation:
        """What explains the difference in a kernel's time."""
        return explain(kernel, self.sensitivities.get(kernel.kernel))

    def _errors(self) -> list[tuple[KernelComparison, float]]:
        found = [(kernel, kernel.time_error) for kernel in self.kernels]
        return [(kernel, error) for kernel, error in found if error is not None]


def by_kernel(matched: Matched) -> list[KernelComparison]:
    """The pairs of each kernel, the longest first; launches with other grids count as other kernels."""
    shapes: dict[str, set[object]] = {}
    for pair in matched.pairs:
        shapes.setdefault(pair.simulated.kernel, set()).add(pair.simulated.grid)
    groups: dict[str, list[Pair]] = {}
    for pair in matched.pairs:
        kernel, grid = pair.simulated.kernel, pair.simulated.grid
        name = readable(kernel)
        if 1 < len(shapes[kernel]) <= _FEW_SHAPES and grid is not None:
            name += f" [{'x'.join(map(str, grid))}]"
        groups.setdefault(name, []).append(pair)
    found = [KernelComparison(name, pairs) for name, pairs in groups.items()]
    return sorted(found, key=lambda kernel: -kernel.weight)


_FEW_SHAPES = 6  # of a kernel; with more, its launches are put together


def _pearson(points: Sequence[tuple[float, float]]) -> float | None:
    count = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / count, sum(y for _, y in points) / count
    product = sum((x - mean_x) * (y - mean_y) for x, y in points)
    squares = sum((x - mean_x) ** 2 for x, _ in points) * sum((y - mean_y) ** 2 for _, y in points)
    return product / math.sqrt(squares) if squares > 0 else None


def data(correlation: Correlation) -> dict[str, object]:
    """All of it as data; scripts rely on the keys."""
    return {
        "program": correlation.program,
        "machine": correlation.machine,
        "source": correlation.measurements.source,
        "launches": len(correlation.matched.pairs),
        "only_simulated": correlation.matched.only_simulated,
        "only_measured": correlation.matched.only_measured,
        "mean_error": correlation.mean_error,
        "weighted_error": correlation.weighted_error,
        "total_error": correlation.total_error,
        "correlation": correlation.coefficient,
        "kernels": [
            {
                "kernel": kernel.kernel,
                "launches": len(kernel.pairs),
                "time_error": kernel.time_error,
                "same_code": kernel.same_code,
                "explanation": correlation.explanation(kernel).text,
                "quantities": {
                    quantity.name: {
                        "simulated": kernel.simulated(quantity.name),
                        "measured": kernel.measured(quantity.name),
                        "error": kernel.error(quantity.name),
                    }
                    for quantity in QUANTITIES
                    if kernel.error(quantity.name) is not None
                },
                "sensitivity": dict(correlation.sensitivities.get(kernel.kernel, {})),
            }
            for kernel in correlation.kernels
        ],
    }
