# SPDX-License-Identifier: Apache-2.0
"""Signals that stop a command: SIGTERM (of batch systems) and SIGHUP end it as Ctrl-C does, with partial results."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_AT_ONCE = 1.0  # seconds within which a signal that comes again is the same request


class StopSignalError(KeyboardInterrupt):
    """A signal asked the command to stop; whoever handles Ctrl-C handles this."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)


class StopSignals:
    """Which signal has stopped a command, if one has."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._when = -_AT_ONCE

    @property
    def exit_code(self) -> int:
        """As a shell gives it: 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP."""
        return 128 + (signal.SIGINT if self.number is None else self.number)

    @property
    def message(self) -> str:
        """What the user is told."""
        if self.number in (None, signal.SIGINT):
            return "stopped"
        return f"stopped by {signal.Signals(self.number).name}"

    def take(self, number: int, frame: FrameType | None = None) -> None:
        """Raises `StopSignalError`; not for the second of the two that timeout(1) sends, while results are written."""
        now = time.monotonic()
        again = self.number is not None and now - self._when < _AT_ONCE
        if self.number is None:
            self.number = number
        if again and number != signal.SIGINT:
            return
        self._when = now
        raise StopSignalError(number)


@contextlib.contextmanager
def stop_signals() -> Iterator[StopSignals]:
    """For the length of a command, the signals above raise `StopSignalError` in the main thread.

    A signal that is ignored stays so (nohup), and one that somebody else handles is left to them.
    """
    signals = StopSignals()
    old = {}
    if threading.current_thread() is threading.main_thread():
        for number in STOP_SIGNALS:
            handler = signal.getsignal(number)
            if handler in (signal.SIG_DFL, signal.default_int_handler):
                old[number] = handler
                signal.signal(number, signals.take)
    try:
        yield signals
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
