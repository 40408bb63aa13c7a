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
    page = Page("Manyscale: from a kernel to 1,024 GPUs", "the report of manyscale demo")
    titles = [_title(name) for name in outcomes]
    first = page.answer(
        f"{len(outcomes)} questions answered by simulation, from {_lowered(titles[0])} to {_lowered(titles[-1])}.",
        "The table has the answers, the sections below it the evidence; manyscale report and manyscale compare take "
        "the run directories.",
        mood="good",
    )
    charts = [chart for outcome in outcomes.values() for chart in outcome.charts]
    if charts:
        first.chart(charts[0])
    page.section("In short", folded=False).table(
        [
            (_title(name), str(fact), str(value))
            for name, outcome in outcomes.items()
            for fact, value in outcome.facts.items()
        ],
        columns=("step", "what", "answer"),
        page_size=50,
    )
    for name, outcome in outcomes.items():
        section = page.section(_title(name))
        section.words(_question(name))
        section.facts({key: str(fact) for key, fact in outcome.facts.items()})
        for chart in outcome.charts:
            section.chart(chart)
        for title, path in outcome.runs.items():
            part = section.section(title, folded=True)
            evidence = Evidence(load(path))
            answer(part, evidence)
            add_run(part, evidence, _PARTS)
            part.words(f"All of this run: manyscale report {path}")
    last = next(run for outcome in reversed(list(outcomes.values())) for run in outcome.runs.values())
    general.simulation(page, Evidence(load(last)))
    return page.write(directory / REPORT_FILE)


def _title(name: str) -> str:
    return (demo_steps.STEPS[name].__doc__ or name).partition(":")[0]


def _question(name: str) -> str:
    text = (demo_steps.STEPS[name].__doc__ or "").partition(":")[2].strip()
    return text[:1].upper() + text[1:]


def _lowered(title: str) -> str:
    return title[:1].lower() + title[1:] if title[1:2].islower() or title[1:2] == " " else title
