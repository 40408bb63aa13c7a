# SPDX-License-Identifier: Apache-2.0
"""What every run has: machine, what limits it, timeline, statistics, how the simulator got there."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from manyscale.report.charts import Graph, Lane, Lanes
from manyscale.report.evidence import TIMELINE_FILE, Evidence
from manyscale.report.findings import findings
from manyscale.report.headline import internals
from manyscale.report.machine_picture import layers_of, machine_picture
from manyscale.report.numbers import shown, spoken
from manyscale.report.page import Page, Section

Parent = Page | Section

_MOST_DRAWN = 400  # components of a graph
_MOST_TEXT = 200_000  # letters of a machine file that a page shows


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
    index = {name: number for number, name in enumerate(names)}
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
        if len(ends) == 2 and ends[0] in index and ends[1] in index:
            connections.append((index[ends[0]], index[ends[1]], 0.0))
    section.chart(
        Graph("Components and links", things, connections, scale="links"),
        f"{len(names)} components, {len(connections)} links.",
    )


def limits(parent: Parent, evidence: Evidence) -> None:
    """What limits the run, in words, with the numbers that say so."""
    section = parent.section("What limits the run")
    for finding in findings(evidence):
        section.finding(finding.text, finding.mood)


def timeline_chart(evidence: Evidence) -> Lanes | None:
    """What was busy when, from the timeline that the run was asked for."""
    found = evidence.timeline
    chart = None if found is None or not found.events else found.lanes("Timeline")
    return None if chart is None else _with_kernels(chart, evidence)


def _with_kernels(chart: Lanes, evidence: Evidence) -> Lanes:
    """The timeline below a lane of kernels, from their turn to their end: what precedes their first CTA is overhead."""
    factor = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[chart.unit]
    spans = sorted(
        (profile["begin_seconds"] * factor, profile["end_seconds"] * factor, evidence.titles.get(name, name))
        for name, profile in evidence.profiles.items()
        if "begin_seconds" in profile and "end_seconds" in profile
    )
    if not spans:
        return chart
    names = list(dict.fromkeys([*chart.names, *(name for _, _, name in spans)]))
    what = [names.index(name) for _, _, name in spans]
    lane = Lane("kernels", [begin for begin, _, _ in spans], [end for _, end, _ in spans], what)
    return replace(chart, names=names, lanes=[lane, *chart.lanes])


def timeline(parent: Parent, evidence: Evidence) -> None:
    """What was busy when."""
    chart = timeline_chart(evidence)
    if chart is None or evidence.timeline is None:
        return
    section = parent.section("Timeline")
    section.chart(
        chart,
        f"{evidence.timeline.events:,} events on {len(chart.lanes):,} tracks; those that are too close to be seen are "
        "put together. A group shows the share of its tracks that is busy, or the sum of its counters; a click opens "
        "it. Kernels begin with their launch overhead, before their first CTA is on an SM.",
    )
    section.words(
        f"For all events, drop {TIMELINE_FILE} of the run directory on ui.perfetto.dev, or choose it there with Open "
        "trace file: the trace stays in your browser."
    )
    section.link(TIMELINE_FILE, f"{TIMELINE_FILE}, beside this page in the run directory")


def statistics(parent: Parent, evidence: Evidence) -> None:
    """All statistics, to sort and filter."""
    if not evidence.scalars:
        return
    import polars as pl

    table = evidence.run.stats
    section = parent.section("All statistics")
    single = table.filter(pl.col("key").is_null())
    section.table(
        single.select("component", "statistic", "value", "description", "scope"),
        f"{single.height:,} numbers; the {table.height - single.height:,} rows of histograms and series are in "
        "stats.parquet.",
        units={"value": single["unit"].to_list()},
        names={"description": "meaning"},
    )


def simulation(parent: Parent, evidence: Evidence) -> None:
    """What the simulator did, and where the numbers come from: enough to get them again."""
    info = evidence.run.info
    section = parent.section("Simulator and provenance")
    numbers = internals(evidence)
    if numbers:
        section.numbers(numbers)
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
            **_code_facts(info.get("code")),
        }
    )
    others = {
        spoken(name): shown(entry["value"], entry["unit"])
        for name, entry in evidence.run.headline.items()
        if spoken(name) not in numbers
    }
    section.facts(others)
    import json

    section.code(json.dumps(info["workload"], indent=2, ensure_ascii=False), "workload")
    if evidence.troubles:
        troubles = "; ".join(dict.fromkeys(evidence.troubles))
        section.finding(f"Not all that the run left could be shown: {troubles}", "warn")


def _code_facts(code: object) -> dict[str, str]:
    """What kernels ran as, and the assembler that made it."""
    if not isinstance(code, dict) or not isinstance(code.get("isa"), str):
        return {}
    return {"kernels run as": code["isa"].upper(), "assembler": str(code.get("assembler") or "none")}
