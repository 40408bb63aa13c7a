# SPDX-License-Identifier: Apache-2.0
"""Who looks after simulations that take long: shows progress, keeps what has ended, ends what nobody waits for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Watch:
    """What the GPUs of a node call while they simulate."""

    progress: Callable[[int, int], None] | None = None
    collected: Callable[[], None] = lambda: None  # kernels have ended
    abandoned: Callable[[], bool] = lambda: False  # whether the program has died
    period: float = 1.0  # seconds after which kernels that have ended are collected


class Pause:
    """Interrupts a run of several commands after a while, so that those which have ended are collected.

    The core stops between two windows and goes on from there: when it does has no influence on results.
    """

    def __init__(self, watch: Watch, *, several: bool) -> None:
        self._watch = watch
        self._due = time.monotonic() + watch.period if several else float("inf")
        self.taken = False

    def report(self, now: int, events: int) -> None:
        """Called by the core."""
        if self._watch.progress is not None:
            self._watch.progress(now, events)
        if self._watch.abandoned():
            raise KeyboardInterrupt
        if time.monotonic() >= self._due:
            self.taken = True
            raise KeyboardInterrupt
