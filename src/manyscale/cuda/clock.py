# SPDX-License-Identifier: Apache-2.0
"""The simulated time of a program on the host."""

from __future__ import annotations

NANOSECOND = 10**6  # femtoseconds
MICROSECOND = 10**9
SECOND = 10**15


class HostClock:
    """The time at which the host is, in femtoseconds; it only goes forward.

    All threads of a process share it: a thread that waits for the GPU takes the others along. `call_time` is what each
    call of the runtime takes; `measured` says whether the program's own time between calls counts.
    """

    def __init__(self, call_time: int, measured: bool) -> None:
        self.now = 0
        self.call_time = call_time
        self._measured = measured

    def called(self, native_nanoseconds: int, costs: bool = True) -> int:
        """A call is made after so much time of the program itself; the time at which it begins."""
        if self._measured:
            self.now += native_nanoseconds * NANOSECOND
        begin = self.now
        if costs:
            self.now += self.call_time
        return begin

    def wait_until(self, time: int) -> None:
        """The host waits for something that happens at this time."""
        if time > self.now:
            self.now = time
