# SPDX-License-Identifier: Apache-2.0
"""Correlation of a CUDA program's simulation with measurements of it on a GPU.

>>> from manyscale.studies import correlation
>>> found = correlation.correlate(["./app"], "measured.csv", "gv100")                # doctest: +SKIP
>>> print(f"{found.weighted_error:.1%}")                                             # doctest: +SKIP
"""

from .comparison import Correlation, KernelComparison, data
from .formats import Measurements, read_measurements
from .matching import match
from .page import correlation_page
from .running import correlate
from .values import QUANTITIES, LaunchValues

__all__ = [
    "QUANTITIES",
    "Correlation",
    "KernelComparison",
    "LaunchValues",
    "Measurements",
    "correlate",
    "correlation_page",
    "data",
    "match",
    "read_measurements",
]
