# SPDX-License-Identifier: Apache-2.0
"""The report that the demo ends with: a section for each step, with what its runs have left."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from manyscale.cli import demo_steps
from manyscale.cli.demo_steps import Outcome
from manyscale.report import Page
from manyscale.report.evidence import Evidence
from manyscale.report.run_page import Part, add_run
from manyscale.report.sections import cpu, general, gpu, memory, network, unified_memory
from manyscale.results import load

REPORT_FILE = "report.html"

_SHORT: tuple[Part, ...] = (general.headline, general.limits, general.machine)
_PARTS: dict[str, tuple[Part, ...]] = {
    "credits": (*_SHORT, general.timeline, general.statistics),
    "memory": (*_SHORT, memory.levels),
    "timing": (
        *_SHORT,
        gpu.stalls,
        gpu.roofline,
        memory.levels,
        general.timeline,
        gpu.metrics,
        gpu.hot_instructions,
    ),
    "unified-memory": (*_SHORT, gpu.stalls, unified_memory.unified_memory),
    "programs": (*_SHORT, cpu.cpi_stacks, memory.levels, cpu.regions, cpu.output),
    "replays": (*_SHORT, cpu.cpi_stacks, cpu.tasks, memory.levels),
    "network": (*_SHORT, network.ranks, network.network, network.critical_path, general.timeline),
}
"""What is shown of the runs of a step; of others, the headline and what limits them."""


def write_report(directory: Path, outcomes: Mapping[str, Outcome]) -> Path:
    """Writes the page into the directory of the demo."""
    page = Page("Manyscale: every scale once", "the report of `manyscale demo`")
    page.section("In short").table(
        [
            (name, _title(name), str(fact), str(outcome.facts[fact]))
            for name, outcome in outcomes.items()
            for fact in list(outcome.facts)[:3]
            if fact != "more"
        ],
        "The first facts of each step; a section for each follows.",
        columns=("step", "what it shows", "fact", ""),
    )
    for name, outcome in outcomes.items():
        section = page.section(_title(name))
        section.facts({key: str(fact) for key, fact in outcome.facts.items()})
        for chart in outcome.charts:
            section.chart(chart)
        for title, path in outcome.runs.items():
            part = section.section(title)
            add_run(part, Evidence(load(path)), _PARTS.get(name, (general.headline, general.limits)))
            part.words(f"All of this run: manyscale report {path}")
    last = next(run for outcome in reversed(list(outcomes.values())) for run in outcome.runs.values())
    general.provenance(page, Evidence(load(last)))
    return page.write(directory / REPORT_FILE)


def _title(name: str) -> str:
    return (demo_steps.STEPS[name].__doc__ or name).partition(":")[0]
