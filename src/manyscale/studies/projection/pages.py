# SPDX-License-Identifier: Apache-2.0
"""The reports of a projection: ranks and their groups, and the prediction with what limits it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from manyscale.report import Page, Section, charts
from manyscale.studies.projection.measured_job import MeasuredJob
from manyscale.studies.projection.predict import BEST, PARTS, Improvement, Prediction
from manyscale.studies.projection.profiling import RankProfile

_MEANINGS = {
    "compute": "computing",
    "overhead": "processor time for messages",
    "waiting": "waiting for a partner that is late",
    "transfer": "waiting for a message on its way",
    "done": "done before the last rank",
}
_VARIANT_NAMES = {
    "no ext-ct": "node alone, constant times",
    "no ext-var": "node alone, variable times",
    "ext-ct": "with external ranks, constant times",
    "ext-var": "with external ranks, variable times",
}


def seconds_text(seconds: float) -> str:
    """A time with a unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"


def write_profile_page(profile: RankProfile, path: Path, title: str, *, force: bool = False) -> Path:
    """The ranks of a job, what was counted of them, and their groups."""
    page = Page(f"Ranks of {title}", f"{profile.ranks} ranks, {profile.ranks_per_node} on a node")
    add_groups(page.section("Groups of ranks"), profile)
    return page.write(path, force=force)


def add_groups(section: Section, profile: RankProfile) -> None:
    """The groups of ranks, why there are so many, and a picture of what was counted."""
    found = profile.clusters
    section.finding(found.why, "good" if found.count == 1 else "")
    section.words(
        f"Counted by: {profile.source}. To be simulated in detail: "
        f"{'node' if len(profile.nodes) == 1 else 'nodes'} {', '.join(map(str, profile.nodes))}."
    )
    if profile.counters:
        section.chart(
            charts.Lines(
                "What ranks do, as a share of the mean of all",
                x="rank",
                y="share of the mean",
                dots={
                    f"{name}, group {group}": [
                        (rank, values[rank] / (sum(values) / len(values) or 1.0))
                        for rank in found.members(group)
                    ]
                    for name, values in profile.counters.items()
                    for group in range(found.count)
                },
            )
        )
        names = list(profile.counters)
        section.table(
            [
                (
                    rank,
                    rank // profile.ranks_per_node,
                    found.labels[rank],
                    *(profile.counters[n][rank] for n in names),
                )
                for rank in range(profile.ranks)
            ],
            "Each rank",
            columns=["rank", "node", "group", *names],
        )
    if found.attempts:
        section.table(
            [
                (one.clusters, f"{one.spread:.2%}", "" if one.silhouette is None else f"{one.silhouette:.2f}")
                for one in found.attempts
            ],
            "How many groups: how far a rank is from the mean of its group at most, and how well groups are apart",
            columns=["groups", "largest difference", "silhouette"],
        )


def write_prediction_page(
    path: Path,
    title: str,
    measured: MeasuredJob,
    predictions: Mapping[str, Sequence[Prediction]],
    helps: Sequence[Improvement],
    profile: RankProfile | None = None,
    *,
    force: bool = False,
) -> Path:
    """The prediction: time against nodes, where it goes, what would help, and what it was made of."""
    best = predictions.get(BEST) or next(iter(predictions.values()))
    last = best[-1]
    page = Page(
        f"Projection of {title}",
        f"{measured.facts['machine']} nodes with {measured.ranks_per_node} ranks each, network "
        f"{measured.facts['network']}",
    )
    _answer(page, last, helps).chart(_curves(predictions), "Bands are 95% confidence intervals of the mean.")
    _add_predictions(page.section("Time against nodes"), predictions)
    _add_breakdown(page.section("Where time goes"), predictions, best)
    _add_cpi(page.section("Ranks that differ most"), measured)
    _add_improvements(page.section("What would help"), last, helps)
    if profile is not None:
        add_groups(page.section("Groups of ranks"), profile)
    _add_phases(page.section("Compute phases"), measured)
    _add_stand_ins(page.section("Phases that were not measured"), best)
    _add_costs(page.section("MPI library"), measured)
    return page.write(path, force=force)


def _answer(page: Page, last: Prediction, helps: Sequence[Improvement]) -> Section:
    """How long the job takes on the most nodes, what that time is, and what would help."""
    advice = [f"Not all was measured: {last.stand_ins.text}."] if last.stand_ins.text else []
    if helps and helps[0].gain > 0.01:
        advice.append(f"What would help most: {helps[0].name}, {helps[0].gain:.1%} less time.")
    return page.answer(
        f"{last.nodes:,} nodes take {seconds_text(last.seconds)}; most of the time is {_MEANINGS[last.limit]} "
        f"({last.shares[last.limit]:.0%}).",
        " ".join(advice),
        numbers={
            "nodes": f"{last.nodes:,}",
            "time": seconds_text(last.seconds),
            "95% interval of the mean": f"± {last.half_width / last.seconds:.2%}",
            "computing": f"{last.shares['compute']:.1%}",
            "repetitions": f"{len(last.runs):,}",
        },
        mood="good" if last.limit == "compute" else "warn",
    )


def _curves(predictions: Mapping[str, Sequence[Prediction]]) -> charts.Lines:
    return charts.Lines(
        "Predicted time",
        x="nodes",
        y="seconds",
        log_x=True,
        lines={
            _VARIANT_NAMES[name]: [(float(one.nodes), one.seconds) for one in found]
            for name, found in predictions.items()
        },
        bands={
            _VARIANT_NAMES[name]: [(float(one.nodes), one.low, one.high) for one in found]
            for name, found in predictions.items()
            if len(found[0].runs) > 1
        },
    )


def _add_predictions(section: Section, predictions: Mapping[str, Sequence[Prediction]]) -> None:
    section.table(
        [
            (
                one.nodes,
                _VARIANT_NAMES[name],
                one.seconds,
                one.half_width,
                len(one.runs),
                *(100 * one.shares[part] for part in PARTS),
            )
            for name, found in predictions.items()
            for one in found
        ],
        "All predictions",
        columns=["nodes", "variant", "time", "half width", "repetitions", *PARTS],
        titles=_MEANINGS,
        units={"time": "s", "half width": "s"} | dict.fromkeys(PARTS, "%"),
    )


def _add_breakdown(
    section: Section, predictions: Mapping[str, Sequence[Prediction]], best: Sequence[Prediction]
) -> None:
    bars = {
        _VARIANT_NAMES[name]: {_MEANINGS[part]: found[-1].shares[part] * found[-1].seconds for part in PARTS}
        for name, found in predictions.items()
    }
    section.chart(
        charts.Stacks(f"The four ways to predict, at {best[-1].nodes} nodes", "seconds of a rank", bars)
    )
    if len(best) > 1:
        section.chart(
            charts.Stacks(
                f"{_VARIANT_NAMES[best[0].variant]}, by nodes",
                "seconds of a rank",
                {
                    f"{one.nodes} nodes": {_MEANINGS[part]: one.shares[part] * one.seconds for part in PARTS}
                    for one in best
                },
            )
        )


def _add_cpi(section: Section, measured: MeasuredJob) -> None:
    stacks = {rank: stack for rank, stack in measured.cpi.items() if any(stack.values())}
    if not stacks:
        section.words("No rank was simulated.")
        return
    total = {rank: sum(stack.values()) for rank, stack in stacks.items()}
    slow, fast = max(total, key=lambda rank: total[rank]), min(total, key=lambda rank: total[rank])
    chosen = dict.fromkeys((slow, fast))
    section.chart(
        charts.Stacks(
            "Cycles of an instruction, without those in which a core had nothing to do",
            "cycles per instruction",
            {f"rank {rank}": stacks[rank] for rank in chosen},
        )
    )
    if len(chosen) > 1:
        causes = sorted(stacks[slow], key=lambda cause: -abs(stacks[slow][cause] - stacks[fast][cause]))
        section.words(
            f"The {total[slow] - total[fast]:.3f} cycles between them come mostly from: {causes[0]} "
            f"({stacks[slow][causes[0]] - stacks[fast][causes[0]]:+.3f})."
        )


def _add_improvements(section: Section, last: Prediction, helps: Sequence[Improvement]) -> None:
    if not helps:
        section.words("Nothing was tried.")
        return
    section.table(
        [(one.name, f"{one.gain:+.2%}", seconds_text(one.seconds)) for one in helps],
        f"Each change by itself, at {last.nodes} nodes: the share of time that it saves",
        columns=["change", "saves", "time"],
    )


def _add_phases(section: Section, measured: MeasuredJob) -> None:
    found = measured.external or measured.alone
    rows = []
    for group, timings in enumerate(found):
        for name, phase in timings.phases.items():
            order = phase.pattern.order
            pattern = " ".join(map(str, order[:24])) + (" …" if len(order) > 24 else "")
            rows.append(
                (
                    group,
                    name,
                    phase.samples,
                    phase.mean * 1e6,
                    phase.mean * phase.samples * 1e6,
                    len(phase.pattern.clusters),
                    pattern,
                    round(phase.explained, 3),
                )
            )
    rows.sort(key=lambda row: -float(row[4]))
    section.table(
        rows,
        "What ranks do between two MPI calls; a number behind @ names the call sites",
        columns=["group", "phase", "samples", "mean us", "sum us", "clusters", "pattern", "explained"],
    )


def _add_stand_ins(section: Section, best: Sequence[Prediction]) -> None:
    rows = [
        (one.nodes, phase.phase, phase.words, phase.ranks, phase.occurrences, phase.seconds * 1e6)
        for one in best
        for phase in one.stand_ins.phases
    ]
    if not rows:
        section.words("Ranks that were simulated ran all phases of the job.")
        return
    section.table(
        rows,
        "Phases of ranks that no simulated rank ran: a compiler, or a rank's position in the job, makes two of one",
        columns=["nodes", "phase", "what is done", "ranks", "occurrences", "sum us"],
    )


def _add_costs(section: Section, measured: MeasuredJob) -> None:
    costs = measured.costs
    section.words(
        "The library's costs are measured by ping-pongs on two detailed nodes and on one, and the network's model is "
        "fitted to them."
    )
    section.table(
        [
            (name, time * 1e9, costs.modelled[name] * 1e9, f"{costs.modelled[name] / time - 1:+.1%}")
            for name, time in costs.measured.items()
        ],
        "One way, in nanoseconds",
        columns=["message", "in detail", "modelled", "difference"],
    )
