# SPDX-License-Identifier: Apache-2.0
"""Reports: runs and studies as HTML pages that explain themselves."""

from manyscale.report import charts
from manyscale.report.page import Page, Section
from manyscale.report.run_page import run_page
from manyscale.report.sweep_page import sweep_page

__all__ = ["Page", "Section", "charts", "run_page", "sweep_page"]
