# SPDX-License-Identifier: Apache-2.0
"""Runs that will take hours say so before they begin, with what to reduce."""

from __future__ import annotations

from manyscale.cli.console import say

_LONG = 3600.0  # seconds

# What one core of a fast machine does in a second at best, so that a forecast is a lower bound.
OPERATIONS = 2e6  # MPI operations of all ranks
ACCESSES = 4e6  # of cores to memory
FUNCTIONAL_WARPS = 4e6  # short ones, executed without time
TIMED_WARPS = 4e5


def warn_if_long(amount: float, what: str, rate: float, reduce: str) -> None:
    """A warning on standard error if so much cannot be done within the hour."""
    seconds = amount / rate
    if seconds > _LONG:
        say(
            f"Warning: {amount:,.3g} {what} will take {_text(seconds)} or more; to be done sooner, reduce {reduce}"
        )


def _text(seconds: float) -> str:
    """
    >>> _text(7200), _text(1e6), _text(1e12)
    ('2 hours', '12 days', '31,710 years')
    """
    for name, length in (("years", 365.0 * 86400), ("days", 86400.0), ("hours", 3600.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {name}"
    return "an hour"
