# SPDX-License-Identifier: Apache-2.0
"""The page of several runs: what was changed, what that did to verdict and headline, and what explains it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from manyscale.errors import InputError
from manyscale.report.charts import Stacks
from manyscale.report.comparison import Comparison, Difference, time_of, time_parts
from manyscale.report.evidence import Evidence
from manyscale.report.headline import headline
from manyscale.report.numbers import scale_of, shown
from manyscale.report.page import Page, Section
from manyscale.report.run_page import answer
from manyscale.report.verdict import verdict
from manyscale.results import Run, compare

_MOST_CHANGES = 5
_MOST_ROWS = 50_000
_VISIBLE = 0.005  # of the longest bar


def comparison_page(runs: Sequence[Run], *, everything: bool = False) -> Page:
    """The page of two or more runs; each is compared with the first. With `everything`, all statistics that differ."""
    if len(runs) < 2:
        raise InputError("a page of several runs needs two or more")
    pairs = [Comparison(runs[0], other) for other in runs[1:]]
    evidences = [pairs[0].a, *(pair.b for pair in pairs)]
    names = _names(evidences)
    page = Page(" / ".join(names[:4]) + (" ..." if len(names) > 4 else ""), f"{len(runs)} runs compared")
    _answer(page, pairs, evidences, names)
    _changes(page.section("What was changed", folded=False), pairs, names)
    for pair, name in zip(pairs, names[1:], strict=True):
        title = f"What explains {name}" if len(pairs) > 1 else "What explains it"
        _differences(page.section(title, folded=len(pairs) > 1), pair.differences)
    for evidence, name in zip(evidences, names, strict=True):
        section = page.section(f"Answer of {name}")
        answer(section, evidence)
        section.words(f"All of this run: manyscale report {evidence.run.path}")
    if everything:
        for pair, name in zip(pairs, names[1:], strict=True):
            _all_statistics(page.section(f"All statistics that differ: {name}"), pair)
    return page


def _names(evidences: Sequence[Evidence]) -> list[str]:
    """Names of the runs' directories, with the folder above where they are alike."""
    paths = [evidence.run.path.resolve() for evidence in evidences]
    names = [path.name for path in paths]
    if len(set(names)) < len(names):
        names = [f"{path.parent.name}/{path.name}" for path in paths]
    return names if len(set(names)) == len(names) else [f"{n}: {name}" for n, name in enumerate(names, 1)]


def _answer(
    page: Page, pairs: Sequence[Comparison], evidences: Sequence[Evidence], names: Sequence[str]
) -> None:
    times = {name: time_of(evidence) for name, evidence in zip(names, evidences, strict=True)}
    numbers = {name: shown(time, "s") for name, time in list(times.items())[:5]}
    if len(pairs) == 1:
        text = (
            pairs[0].sentence.replace("B takes", f"{names[1]} takes").replace("A takes", f"{names[0]} takes")
        )
    else:
        least, most = min(times, key=times.__getitem__), max(times, key=times.__getitem__)
        text = f"{least} is the fastest of {len(names)} runs ({shown(times[least], 's')})"
        text += f", {times[most] / times[least]:.3g} times as fast as {most}." if times[least] else "."
    changes = pairs[0].changes
    few = "; ".join(f"{each.name}: {each.a} → {each.b}" for each in changes[:_MOST_CHANGES])
    more = f"; {len(changes) - _MOST_CHANGES} more" if len(changes) > _MOST_CHANGES else ""
    advice = f"Changed: {few}{more}." if len(pairs) == 1 and changes else ""
    first = page.answer(text, advice, numbers=numbers)
    parts = {name: time_parts(evidence) for name, evidence in zip(names, evidences, strict=True)}
    factor, unit = scale_of(times.values(), "s")
    if all(parts.values()):
        bars = _large(parts, factor)
    else:
        bars = {name: {"time": time * factor} for name, time in times.items()}
    first.chart(Stacks("Where the time goes", f"time in {unit}", bars))


def _large(parts: Mapping[str, Mapping[str, float]], factor: float) -> dict[str, dict[str, float]]:
    """Parts that can be seen beside the longest run; the others together."""
    longest = max(sum(each.values()) for each in parts.values())
    seen = {what for each in parts.values() for what, part in each.items() if part >= _VISIBLE * longest}
    return {
        name: {what: part * factor for what, part in each.items() if what in seen}
        | {"other": factor * sum(part for what, part in each.items() if what not in seen)}
        for name, each in parts.items()
    }


def _changes(section: Section, pairs: Sequence[Comparison], names: Sequence[str]) -> None:
    rows = [
        (name, change.name, change.a or "not there", change.b or "not there")
        for pair, name in zip(pairs, names[1:], strict=True)
        for change in pair.changes
    ]
    if rows:
        section.table(rows, f"Compared with {names[0]}.", columns=("run", "parameter", "was", "is"))
    else:
        section.words("No parameter of machine or workload differs.")
    evidences = [pairs[0].a, *(pair.b for pair in pairs)]
    heads = [headline(evidence) for evidence in evidences]
    columns = list(dict.fromkeys(name for head in heads for name in head))
    section.table(
        [
            (name, verdict(evidence).limit or "none", *(head.get(column, "") for column in columns))
            for name, evidence, head in zip(names, evidences, heads, strict=True)
        ],
        "Verdict and headline of each run.",
        columns=("run", "limited by", *columns),
    )


def _differences(section: Section, differences: Sequence[Difference]) -> None:
    if not differences:
        section.words("The runs gave identical statistics.")
        return
    units = [each.unit for each in differences]
    section.table(
        [
            (each.what, None if each.share is None else 100 * each.share, each.a, each.b, each.change)
            for each in differences
        ],
        "Parts of the time by their share of the change, then counts that changed most, summed over equal components.",
        columns=("what", "share of the change", "was", "is", "change"),
        units={"share of the change": "%", "was": units, "is": units},
        titles={"share of the change": "negative where a part changed the other way"},
    )


def _all_statistics(section: Section, pair: Comparison) -> None:
    table = compare(pair.a.run, pair.b.run)
    rows = table.head(_MOST_ROWS).select("component", "statistic", "scope", "a", "b", "percent")
    section.table(
        rows,
        f"{table.height:,} statistics differ, the largest change first.",
        units={side: table["unit"].head(_MOST_ROWS).to_list() for side in ("a", "b")} | {"percent": "%"},
        names={"a": "was", "b": "is", "percent": "change"},
    )
