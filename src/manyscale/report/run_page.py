# SPDX-License-Identifier: Apache-2.0
"""The report of a run: the sections for which it has left something."""

from __future__ import annotations

from collections.abc import Callable

from manyscale.report.evidence import Evidence
from manyscale.report.page import Page, Section
from manyscale.report.sections import cpu, general, gpu, memory, network, unified_memory
from manyscale.results import Run

Part = Callable[[Page | Section, Evidence], None]

PARTS: tuple[Part, ...] = (
    general.headline,
    general.limits,
    general.machine,
    gpu.verdicts,
    gpu.stalls,
    cpu.cpi_stacks,
    network.ranks,
    gpu.roofline,
    memory.levels,
    general.timeline,
    gpu.launches,
    cpu.tasks,
    network.network,
    network.critical_path,
    unified_memory.unified_memory,
    gpu.metrics,
    gpu.hot_instructions,
    cpu.regions,
    cpu.hot_lines,
    cpu.output,
    general.statistics,
    general.provenance,
)
"""All sections, in the order of a page."""


def run_page(run: Run) -> Page:
    """The report of one run."""
    evidence = Evidence(run)
    machine = evidence.machine.get("name")
    on = f" on {machine}" if isinstance(machine, str) and machine else ""
    page = Page(f"{evidence.name}{on}", f"{evidence.kind or 'run'} · {run.status} · {run.info['created']}")
    add_run(page, evidence)
    return page


def add_run(parent: Page | Section, evidence: Evidence, parts: tuple[Part, ...] = PARTS) -> None:
    """Adds the sections of a run to a page, or to a section of a page that is about several."""
    for part in parts:
        part(parent, evidence)
