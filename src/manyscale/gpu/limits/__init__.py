# SPDX-License-Identifier: Apache-2.0
"""The verdict on a kernel: what limits it, advice, and the estimated saving.

Each file of this folder detects one kind of problem and estimates, from counters, the time that solving it would save.
The largest saving is the verdict, the others are notes. A new file registers its function with `@cause`. If no problem
costs much, the verdict is the busiest component, or the most frequent stall (bound.py).
"""

from __future__ import annotations

import importlib
import pkgutil

from manyscale.gpu.kernel_counts import KernelCounts

from .bound import bound_of
from .cause import CAUSES, Cause, Limit
from .execution import Execution

__all__ = ["CAUSES", "Cause", "Execution", "Limit", "limit_of"]

_WORTH_IT = 0.10  # of the time in which CTAs run: a cause that costs as much is the verdict
_WORTH_A_NOTE = 0.05  # of the duration
_MOSTLY_LAUNCH = 0.5  # of the duration: the launch, which is no matter of the kernel's, is the verdict

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")


def limit_of(counts: KernelCounts) -> Limit:
    """The verdict on a kernel, with notes on other problems, ordered by their savings."""
    execution = Execution(counts)
    found = [cause for look in CAUSES.values() for cause in look(execution)]
    found.sort(key=lambda cause: (-cause.saved, cause.kind))
    duration = max(counts.seconds, 1e-15)
    notes = [cause for cause in found if cause.saved >= _WORTH_A_NOTE * duration]
    for main in notes:
        of_kernel = main.saved >= _WORTH_IT * execution.seconds
        if main.saved >= _MOSTLY_LAUNCH * duration if main.outside else of_kernel:
            break
    else:
        main = bound_of(execution)
    return Limit(main, tuple(note for note in notes if note is not main), counts.seconds)
