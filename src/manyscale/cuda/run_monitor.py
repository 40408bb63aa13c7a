# SPDX-License-Identifier: Apache-2.0
"""Callbacks during long simulations: progress, collection of ended kernels, end of abandoned runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class RunMonitor:
    """Callbacks of the GPUs of a node while they simulate."""

    progress: Callable[[int, int], None] | None = None
    collected: Callable[[], None] = lambda: None  # kernels have ended
    abandoned: Callable[[], bool] = lambda: False  # whether the program has died
    period: float = 1.0  # seconds after which kernels that have ended are collected


class Pause:
    """Interrupts a run of several commands periodically, so that ended ones are collected.

    The core stops between two windows and continues from there: results do not depend on when.
    """

    def __init__(self, monitor: RunMonitor, *, several: bool) -> None:
        self._monitor = monitor
        self._due = time.monotonic() + monitor.period if several else float("inf")
        self.taken = False

    def report(self, now: int, events: int) -> None:
        """Called by the core."""
        if self._monitor.progress is not None:
            self._monitor.progress(now, events)
        if self._monitor.abandoned():
            raise KeyboardInterrupt
        if time.monotonic() >= self._due:
            self.taken = True
            raise KeyboardInterrupt
