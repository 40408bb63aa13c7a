# SPDX-License-Identifier: Apache-2.0
"""The time that a launch takes besides its CTAs."""

from __future__ import annotations

from collections.abc import Iterator

from .cause import Cause, cause
from .execution import Execution


@cause
def overhead(execution: Execution) -> Iterator[Cause]:
    counts = execution.counts
    saved = counts.seconds - execution.seconds
    yield Cause(
        "launch overhead",
        f"{100 * saved / max(counts.seconds, 1e-15):.0f}% of the duration is before the first CTA or after the last",
        "Fuse the kernel with others, or launch them as a CUDA graph or with more work each",
        saved,
        outside=True,
    )
