# SPDX-License-Identifier: Apache-2.0
"""Results: the run directory, its tidy statistics, and the comparison of runs."""

from manyscale.results.compare import compare, compare_headline, identical
from manyscale.results.run import Run, load
from manyscale.results.run_directory import RunWriter, default_directory

__all__ = ["Run", "RunWriter", "compare", "compare_headline", "default_directory", "identical", "load"]
