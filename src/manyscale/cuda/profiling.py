# SPDX-License-Identifier: Apache-2.0
"""Which launches of a program take time, and from what state, so that a run compares with that of a profiler."""

from __future__ import annotations

import re
from dataclasses import dataclass

from manyscale.errors import InputError
from manyscale.results.names import readable


class StopError(Exception):
    """The last launch that was wanted has ended, and the program is to end with it."""


@dataclass(frozen=True)
class Profiling:
    """How launches are measured. The defaults leave the program as it is.

    Nsight Compute runs launches one after the other, empties the caches before each, and runs it several times, so that
    its instructions are in the caches: `Profiling(cold_l2=True, warm_instructions=True)`. Of the launches whose name
    matches `kernel`, the first `skip` and those after the next `launches` are executed without time.
    """

    cold_l2: bool = False  # before each launch
    warm_instructions: bool = False  # instruction caches hold the code of a launch when it begins
    kernel: str | None = None  # a regular expression: launches with another name take no time
    skip: int = 0  # so many of those that match take no time
    launches: int | None = None  # so many of the others do, at most
    stop: bool = False  # the program ends with the last of them

    def __post_init__(self) -> None:
        if self.skip < 0 or (self.launches is not None and self.launches < 1):
            raise InputError("--skip is at least 0 and --launches at least 1")
        if self.stop and self.launches is None:
            raise InputError("--stop needs --launches: after how many the program ends")
        try:
            re.compile(self.kernel or "")
        except re.error as error:
            raise InputError(f"--kernel {self.kernel}: this is not a regular expression: {error}") from None

    @property
    def selects(self) -> bool:
        """Whether some launches may take no time."""
        return self.kernel is not None or self.skip > 0 or self.launches is not None

    @property
    def one_by_one(self) -> bool:
        """Whether launches wait for all that is queued, and everything else waits for them."""
        return self.cold_l2 or self.warm_instructions or self.selects

    def data(self) -> dict[str, object]:
        """What differs from the defaults, for the run directory."""
        return {name: value for name, value in vars(self).items() if value not in (None, False, 0)}


class LaunchSelection:
    """The launches of a node's GPUs as they come: which of them take time."""

    def __init__(self, profiling: Profiling) -> None:
        self._profiling = profiling
        self._pattern = None if profiling.kernel is None else re.compile(profiling.kernel)
        self._matched = 0
        self.untimed = 0

    def takes_time(self, name: str) -> bool:
        """Whether the next launch, of this kernel, takes time."""
        wanted = self._wanted(name)
        self.untimed += not wanted
        return wanted

    @property
    def complete(self) -> bool:
        """Whether no later launch takes time."""
        wanted = self._profiling.launches
        return wanted is not None and self._matched >= self._profiling.skip + wanted

    def _wanted(self, name: str) -> bool:
        if self._pattern and not (self._pattern.search(name) or self._pattern.search(readable(name))):
            return False
        done = self.complete
        self._matched += 1
        return not done and self._matched > self._profiling.skip
