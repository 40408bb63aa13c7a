# SPDX-License-Identifier: Apache-2.0
"""The report that the demo ends with: a section for each step, with what its runs have left."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from manyscale.cli import demo_steps
from manyscale.cli.demo_steps import Outcome
from manyscale.report import Page
from manyscale.report.evidence import Evidence
from manyscale.report.run_page import PARTS, add_run, answer
from manyscale.report.sections import general, gpu
from manyscale.results import load

REPORT_FILE = "report.html"

_LEFT_OUT = (general.statistics, general.simulation, gpu.metrics)  # `manyscale report RUN` has them
_PARTS = tuple(part for part in PARTS if part not in _LEFT_OUT)


def write_report(directory: Path, outcomes: Mapping[str, Outcome]) -> Path:
    """Writes the page into the directory of the demo."""
    page = Page("Manyscale: from a kernel to 1,024 GPUs", "the report of `manyscale demo`")
    page.answer(
        f"{len(outcomes)} steps ran, from {_title(next(iter(outcomes)))} to {_title(list(outcomes)[-1])}.",
        "A section for each step follows; its runs are open to `manyscale report` and `manyscale compare`.",
        mood="good",
    )
    page.section("In short", folded=False).table(
        [
            (_title(name), str(fact), str(outcome.facts[fact]))
            for name, outcome in outcomes.items()
            for fact in list(outcome.facts)[:3]
        ],
        "The first facts of each step.",
        columns=("step", "fact", "result"),
    )
    for name, outcome in outcomes.items():
        section = page.section(_title(name))
        section.facts({key: str(fact) for key, fact in outcome.facts.items()})
        for chart in outcome.charts:
            section.chart(chart)
        for title, path in outcome.runs.items():
            part = section.section(title)
            evidence = Evidence(load(path))
            answer(part, evidence)
            add_run(part, evidence, _PARTS)
            part.words(f"All of this run: manyscale report {path}")
    last = next(run for outcome in reversed(list(outcomes.values())) for run in outcome.runs.values())
    general.simulation(page, Evidence(load(last)))
    return page.write(directory / REPORT_FILE)


def _title(name: str) -> str:
    return (demo_steps.STEPS[name].__doc__ or name).partition(":")[0]
