# SPDX-License-Identifier: Apache-2.0
"""SMs without a CTA while others still have one: a small grid, a last wave that is nearly empty, or uneven CTAs.

If the same work were spread evenly, all SMs would be busy for as long as they now are in the mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from .cause import Cause, cause
from .execution import Execution

_BUSY_SMS = 0.8  # of the time in which CTAs run that SMs have one: no problem
_FULL = 0.95  # of the time that SMs would have a CTA if all took the same: the last wave is no problem
_AS_EXPECTED = 0.85  # of that time: CTAs take about the same


@cause
def idle_sms(execution: Execution) -> Iterator[Cause]:
    counts, peaks = execution.counts, execution.peaks
    mean = execution.sm["active_cycles"] / peaks.sms
    if execution.cycles <= 0 or mean >= _BUSY_SMS * execution.cycles:
        return
    saved = (execution.cycles - mean) / peaks.clock
    idle = f"SMs have a CTA {100 * mean / execution.cycles:.0f}% of the time"
    waves = counts.ctas / (counts.ctas_per_sm * peaks.sms)
    each = counts.ctas / peaks.sms
    even = each / math.ceil(each)  # the part of the time that SMs would have a CTA if all took the same time
    if counts.sms < peaks.sms and counts.ctas < peaks.sms:
        used = f"a grid of {counts.ctas} gives work to {counts.sms} of {peaks.sms} SMs"
        yield Cause(
            "too few CTAs", f"{used}; {idle}", "Split the work among at least as many CTAs as SMs", saved
        )
    elif even < _FULL and mean > _AS_EXPECTED * even * execution.cycles:
        yield Cause(
            "tail effect",
            f"{counts.ctas} CTAs are {waves:.2f} waves: an SM runs {math.ceil(each)} of them at most and {each:.2f} in "
            f"the mean; {idle}",
            "Choose a grid that fills whole waves, with smaller CTAs or a grid-stride loop",
            saved,
        )
    else:
        yield Cause(
            "uneven CTAs",
            f"{idle}, since some CTAs run much longer than others",
            "Divide the work evenly, let CTAs take work from a queue, or start the longest first",
            saved,
        )
