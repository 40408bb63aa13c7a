# SPDX-License-Identifier: Apache-2.0
"""The report of a run: the answer first, then the sections for which the run has left something, folded."""

from __future__ import annotations

from collections.abc import Callable

from manyscale.report.charts import Chart
from manyscale.report.evidence import Evidence
from manyscale.report.headline import headline
from manyscale.report.page import Page, Section
from manyscale.report.sections import cpu, general, gpu, kernel, listing, memory, network, unified_memory
from manyscale.report.verdict import verdict
from manyscale.results import Run

Part = Callable[[Page | Section, Evidence], None]

PARTS: tuple[Part, ...] = (
    general.limits,
    gpu.verdicts,
    kernel.stalls,
    kernel.roofline,
    kernel.occupancy,
    kernel.memory_access,
    listing.listing,
    unified_memory.unified_memory,
    gpu.operators,
    gpu.launches,
    cpu.cpi_stacks,
    cpu.misses,
    cpu.tasks,
    cpu.regions,
    cpu.hot_lines,
    network.ranks,
    network.network,
    network.critical_path,
    general.timeline,
    memory.dram_over_time,
    memory.levels,
    gpu.metrics,
    cpu.output,
    general.machine,
    general.statistics,
    general.simulation,
)
"""All sections, in the order of a page."""

_PICTURES: tuple[Callable[[Evidence], Chart | None], ...] = (
    unified_memory.page_map,
    gpu.launches_chart,
    kernel.speed_of_light_chart,
    cpu.tasks_chart,
    cpu.top_down_chart,
    network.ranks_chart,
    memory.latency_chart,
    general.timeline_chart,
)
"""What a page may show first; the first of them that the run has."""


def run_page(run: Run) -> Page:
    """The report of one run."""
    evidence = Evidence(run)
    page = Page(title_of(evidence), f"{kind_of(evidence)} · {run.status} · {moment(run.info['created'])}")
    answer(page, evidence)
    add_run(page, evidence)
    return page


def title_of(evidence: Evidence) -> str:
    """What ran on what."""
    machine = evidence.machine.get("name")
    on_one = isinstance(machine, str) and machine and machine != evidence.name
    return f"{evidence.name} on {machine}" if on_one else evidence.name


def moment(created: object) -> str:
    """When a run began, to the minute."""
    text = str(created)
    return f"{text[:10]} {text[11:16]} UTC" if text.endswith("+00:00") else text


def kind_of(evidence: Evidence) -> str:
    """The kind of run in words."""
    return _KINDS.get(evidence.kind, evidence.kind.replace("-", " ") or "run")


_KINDS = {
    "gpu-kernel": "GPU kernel",
    "gpu-program": "GPU program",
    "cuda": "CUDA program",
    "cpu-program": "program on cores",
    "cpu-trace": "replay of a trace",
    "gem5-trace": "replay of a gem5 trace",
    "network": "MPI job",
    "memory": "memory accesses",
    "system": "system of components",
}


def answer(parent: Page | Section, evidence: Evidence) -> None:
    """The verdict, five numbers and one picture."""
    found = verdict(evidence)
    first = parent.answer(found.text, found.advice, numbers=headline(evidence), mood=found.mood)
    picture = first_picture(evidence)
    if picture is not None:
        first.chart(picture)


def first_picture(evidence: Evidence) -> Chart | None:
    """The picture that a page shows first."""
    return next((chart for make in _PICTURES if (chart := make(evidence)) is not None), None)


def add_run(parent: Page | Section, evidence: Evidence, parts: tuple[Part, ...] = PARTS) -> None:
    """Adds the sections of a run to a page, or to a section of a page that is about several."""
    for part in parts:
        part(parent, evidence)
