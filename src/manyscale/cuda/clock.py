# SPDX-License-Identifier: Apache-2.0
"""The host clock of a process, in simulated time."""

from __future__ import annotations

NANOSECOND = 10**6  # femtoseconds
MICROSECOND = 10**9
SECOND = 10**15


class HostClock:
    """The host time of a process in femtoseconds; it never decreases.

    All threads of a process share it: when one waits for the GPU, it advances for all. `call_time`: duration of each
    call of the runtime. `measured`: add the program's own time between calls. Leaves out clocks per thread.
    """

    def __init__(self, call_time: int, measured: bool) -> None:
        self.now = 0
        self.call_time = call_time
        self._measured = measured

    def called(self, native_nanoseconds: int, costs: bool = True) -> int:
        """Begins a call, `native_nanoseconds` of the program after the last one; returns the begin."""
        if self._measured:
            self.now += native_nanoseconds * NANOSECOND
        begin = self.now
        if costs:
            self.now += self.call_time
        return begin

    def wait_until(self, time: int) -> None:
        """Advances to this time, if it is later."""
        if time > self.now:
            self.now = time
