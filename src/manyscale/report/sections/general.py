# SPDX-License-Identifier: Apache-2.0
"""What every run has: headline, machine, what limits it, timeline, statistics, provenance."""

from __future__ import annotations

import re
from collections import Counter

from manyscale.report.charts import Graph
from manyscale.report.evidence import Evidence
from manyscale.report.findings import findings
from manyscale.report.machine_picture import layers_of, machine_picture
from manyscale.report.numbers import shown
from manyscale.report.page import Page, Section

Parent = Page | Section

_MOST_DRAWN = 400  # components of a graph
_MOST_TEXT = 200_000  # letters of a machine file that a page shows


def headline(parent: Parent, evidence: Evidence) -> None:
    """How the run ended, and the numbers people look at first; those of the host's clock last."""
    section = parent.section("Headline")
    run = evidence.run
    if run.status != "done":
        partial = "; the numbers are those of the part that ran" if run.info.get("partial") else ""
        section.finding(f"Status: {run.status}{partial}. {run.info.get('error') or ''}", "warn")
    entries = sorted(run.headline.items(), key=lambda entry: entry[0].startswith("wall_"))
    section.numbers({name.replace("_", " "): shown(entry["value"], entry["unit"]) for name, entry in entries})


def machine(parent: Parent, evidence: Evidence) -> None:
    """The machine as a picture: layers of parts, or the graph of a system."""
    simulated = Counter(
        name.rpartition(".")[2] for name in (re.split(r"\[\d+\]$", each)[0] for each in evidence.components)
    )
    if not evidence.total(evidence.group("uvm"), "translations", "bytes_to_device"):
        simulated.pop("uvm", None)  # there, but without work
    described = evidence.machine
    if not described:
        return
    section = parent.section("Machine")
    text = described.get("description")
    if isinstance(text, str):
        section.words(text)
    layers = layers_of(described, simulated)
    if layers:
        section.drawing(
            machine_picture(layers), "The parts that were simulated; equal ones beside each other."
        )
    else:
        _graph(section, evidence)
    if len(evidence.run.machine_text) <= _MOST_TEXT:
        section.code(evidence.run.machine_text, "machine.toml: every parameter with its source")


def _graph(section: Section, evidence: Evidence) -> None:
    """Of a system of components: who is connected with whom."""
    import math

    components, links = evidence.machine.get("component"), evidence.machine.get("link")
    if not isinstance(components, list) or not components or len(components) > _MOST_DRAWN:
        return
    names = [str(each.get("name")) for each in components if isinstance(each, dict)]
    models = [str(each.get("model", "")) for each in components if isinstance(each, dict)]
    place = {name: number for number, name in enumerate(names)}
    things = [
        (math.cos(2 * math.pi * k / len(names)), math.sin(2 * math.pi * k / len(names)), f"{name} ({model})")
        for k, (name, model) in enumerate(zip(names, models, strict=True))
    ]
    connections = []
    for link in links if isinstance(links, list) else []:
        ends = (
            [str(link.get(end, "")).rpartition(".")[0] for end in ("a", "b")]
            if isinstance(link, dict)
            else []
        )
        if len(ends) == 2 and ends[0] in place and ends[1] in place:
            connections.append((place[ends[0]], place[ends[1]], 0.0))
    section.chart(
        Graph("Components and links", things, connections, scale="links"),
        f"{len(names)} components, {len(connections)} links.",
    )


def limits(parent: Parent, evidence: Evidence) -> None:
    """What limits the run, in words, with the numbers that say so."""
    section = parent.section("What limits the run")
    for finding in findings(evidence):
        section.finding(finding.text, finding.mood)


def timeline(parent: Parent, evidence: Evidence) -> None:
    """What was busy when."""
    found = evidence.timeline
    if found is None or not found.events:
        return
    section = parent.section("Timeline")
    lanes = found.lanes("Spans")
    if lanes is not None:
        chart, left_out = lanes
        also = f" The {len(chart.lanes)} busiest of {len(chart.lanes) + left_out} tracks." if left_out else ""
        section.chart(
            chart,
            f"{found.events:,} events, put together where they are too close to be seen; timeline.pftrace has them "
            f"all, for ui.perfetto.dev.{also}",
        )
    for counter in found.counters():
        section.chart(counter)


def statistics(parent: Parent, evidence: Evidence) -> None:
    """All statistics, to sort and filter."""
    if not evidence.scalars:
        return
    import polars as pl

    table = evidence.run.stats
    section = parent.section("Statistics")
    single = table.filter(pl.col("key").is_null()).select(
        "component", "statistic", "scope", "value", "unit", "kind", "description"
    )
    section.table(
        single,
        f"{single.height:,} numbers; the {table.height - single.height:,} rows of histograms and series are in "
        "stats.parquet.",
    )


def provenance(parent: Parent, evidence: Evidence) -> None:
    """Where the numbers come from: enough to get them again."""
    info = evidence.run.info
    section = parent.section("Provenance")
    machine_hash = info.get("machine")
    section.facts(
        {
            "command": " ".join(str(word) for word in info["command"]),
            "directory": str(evidence.run.path),
            "status": evidence.run.status,
            "seed": str(info["seed"]),
            "machine": str(machine_hash.get("hash")) if isinstance(machine_hash, dict) else "none",
            "workload": info["workload_hash"],
            "created": str(info["created"]),
            "ended": str(info.get("ended")),
            **{f"version of {name}": str(version) for name, version in info["versions"].items()},
        }
    )
    import json

    section.code(json.dumps(info["workload"], indent=2, ensure_ascii=False), "workload")
    if evidence.troubles:
        section.finding("Not all that the run left could be shown: " + "; ".join(evidence.troubles), "warn")
