# SPDX-License-Identifier: Apache-2.0
"""What limits a run, in words with the evidence: rules on what the run directory holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from manyscale.report.evidence import Evidence
from manyscale.report.numbers import percent, share, shown
from manyscale.report.top_down import cpi_shares

_LARGE = 0.15  # of the time: worth a sentence
_SATURATED = 0.6  # of a peak
_MOST_KERNELS = 8

_CPU_CAUSES = {
    "dependency": "waiting for results of earlier instructions",
    "unit": "waiting for a functional unit",
    "branch": "refilling after branches that were predicted wrongly",
    "fetch": "waiting for instructions to arrive",
    "window": "waiting for room in the window",
    "l1": "waiting for the L1",
    "l2": "waiting for the L2",
    "l3": "waiting for the L3",
    "shared": "waiting for the shared cache",
    "peer": "waiting for lines that other cores have changed",
    "dram": "waiting for DRAM",
    "tlb": "waiting for page tables",
    "store_buffer": "waiting for room for stores",
    "synchronisation": "waiting at locks, barriers and other threads",
    "sleeping": "asleep in the kernel, waiting for other threads",
    "idle": "without a thread to run",
}


@dataclass(frozen=True)
class Finding:
    """A sentence with its numbers; `weight` is the share of time it is about."""

    text: str
    weight: float
    mood: str = ""


def findings(evidence: Evidence) -> list[Finding]:
    """What limits the run, the heaviest first; at least one sentence."""
    rules: tuple[Callable[[Evidence], Iterator[Finding]], ...] = (
        _status,
        _code,
        _kernels,
        _page_faults,
        _cores,
        _memory,
        _ranks,
        _links,
        _host_between_kernels,
    )
    found = [finding for rule in rules for finding in rule(evidence)]
    found.sort(key=lambda finding: -finding.weight)
    found = found or list(_waiting(evidence))
    return found or [
        Finding("Nothing in the statistics of this run says that something waited for something else.", 0.0)
    ]


def _status(evidence: Evidence) -> Iterator[Finding]:
    info = evidence.run.info
    if evidence.run.status != "done":
        why = f": {info['error']}" if info.get("error") else ""
        yield Finding(f"The run is not whole ({evidence.run.status}){why}", 9.0, "warn")


def _code(evidence: Evidence) -> Iterator[Finding]:
    """Of kernels that ran in the form whose time is less accurate."""
    code = evidence.run.info.get("code")
    note = code.get("note") if isinstance(code, dict) else None
    if isinstance(note, str):
        yield Finding(f"{note}.", 1.0, "warn")


def _kernels(evidence: Evidence) -> Iterator[Finding]:
    """Of each kernel, the longest first: what limits it, its largest stall, bandwidth and roofline bound."""
    kernels = sorted(evidence.kernels(), key=lambda kernel: -evidence.metrics(kernel).get("duration", 0.0))
    whole = sum(evidence.metrics(kernel).get("duration", 0.0) for kernel in kernels)
    for kernel in kernels[:_MOST_KERNELS]:
        metrics = evidence.metrics(kernel)
        limit = evidence.profiles.get(kernel, {}).get("limit", {})
        name = f"{evidence.titles[kernel]} ({shown(metrics.get('duration'), 's')})"
        text = f"{limit.get('kind')}: {limit.get('evidence')}"
        if limit.get("advice"):
            text += f". {limit['advice']}" + (f" ({limit['gain']})" if limit.get("gain") else "")
        text = ". Also: ".join((text, *(str(note).rstrip(".") for note in limit.get("notes") or ())))
        parts = [f"{name}: {text.rstrip('.')}" if limit.get("kind") else name]
        stalls = {key: value for key, value in metrics.items() if key.startswith("stall_")}
        if stalls:
            top = max(stalls, key=stalls.__getitem__)
            words = _stall_words(top)
            parts.append(f"most of its warps' cycles ({stalls[top]:.0f}%) {words}")
        if metrics.get("dram_utilization"):
            parts.append(
                f"DRAM moves {shown(metrics.get('dram_throughput'), 'B/s')}, "
                f"{percent(metrics['dram_utilization'] / 100)} of its peak"
            )
        if metrics.get("roofline"):
            parts.append(f"it reaches {percent(metrics['roofline'] / 100)} of its roofline bound")
        yield Finding("; ".join(parts) + ".", 2 + share(metrics.get("duration", 0.0), whole))


def _stall_words(stall: str) -> str:
    from manyscale.gpu.metrics import STALLS

    return next((f"{each.doc} ({each.label})" for each in STALLS if f"stall_{each.name}" == stall), stall)


def _page_faults(evidence: Evidence) -> Iterator[Finding]:
    for uvm in evidence.group("uvm"):
        faults, groups = evidence.value(uvm, "faults"), evidence.value(uvm, "fault_batches")
        if not faults:
            continue
        stalled = evidence.value(uvm, "stalled") / 10**15
        part = share(stalled, evidence.seconds)
        came = evidence.value(uvm, "pages_prefetched")
        along = f"{share(evidence.value(uvm, 'prefetched_used'), came):.0%} of them used" if came else "none"
        yield Finding(
            f"Page faults: for {shown(stalled, 's')} ({part:.0%} of the simulated time) at least one access waited "
            f"for a page. {shown(faults)} page faults were served in {shown(groups)} batches; "
            f"{shown(evidence.value(uvm, 'pages_faulted_in'))} pages migrated by faults, {shown(came)} were "
            f"prefetched with them ({along}); {shown(evidence.value(uvm, 'pages_evicted'))} were evicted to make room.",
            3 + part if part >= _LARGE else part,
            "warn" if part >= _LARGE else "",
        )


def _cores(evidence: Evidence) -> Iterator[Finding]:
    stack = cpi_shares(evidence)
    if not stack:
        return
    cores = evidence.group("core[")
    causes = sorted(stack.items(), key=lambda entry: -entry[1])
    instructions = evidence.total(cores, "instructions")
    cycles = max((evidence.value(core, "cycles") for core in cores), default=0.0)
    ipc = share(instructions, cycles * len(cores))
    base = stack.get("base", 0.0)
    waits = [(cause, part) for cause, part in causes if cause != "base"]
    of_cores = f"the cycles of {_plural(len(cores), 'core')}"
    if base >= 0.5 or not waits:
        yield Finding(
            f"Instructions: {base:.0%} of {of_cores} commit at the width of the core, with nothing in particular in "
            f"the way; IPC is {ipc:.2f} for each core.",
            3 + base,
            "good",
        )
    for cause, part in waits[:3]:
        if part >= _LARGE or (cause == waits[0][0] and base < 0.5):
            yield Finding(
                f"{part:.0%} of {of_cores} went to '{cause}': {_CPU_CAUSES.get(cause, cause)}. "
                f"{base:.0%} went to instructions themselves; IPC is {ipc:.2f} for each core.",
                2 + part,
                "warn" if part >= _LARGE else "",
            )
    waiting = sum(part for cause, part in causes if cause in ("l2", "l3", "shared", "peer", "dram", "tlb"))
    caches = evidence.columns("caches", "level", "mpki")
    if waiting >= _LARGE and caches is not None:
        levels = ", ".join(
            f"{row['level']} {row['mpki']:.2f}" for row in caches.iter_rows(named=True)
            if row["mpki"] is not None
        )  # fmt: skip
        yield Finding(
            f"Memory beyond the L1 takes {waiting:.0%} of the cycles; misses in 1000 instructions: {levels}.",
            1 + waiting,
        )


def _memory(evidence: Evidence) -> Iterator[Finding]:
    channels = evidence.group("channel[")
    moved = evidence.total(channels, "read_bytes", "write_bytes")
    if not moved or not evidence.seconds:
        return
    busy = share(evidence.total(channels, "bus_busy") / 10**15, evidence.seconds * len(channels))
    hits, others = (
        evidence.total(channels, "row_hits"),
        evidence.total(channels, "row_misses", "row_conflicts"),
    )
    latency = evidence.mean_seconds(channels, "read_latency")
    queueing = evidence.mean_seconds(channels, "queueing_delay")
    text = (
        f"The data buses of {_plural(len(channels), 'DRAM channel')} are busy {percent(busy)} of the time "
        f"({shown(moved / evidence.seconds, 'B/s')})"
    )
    if hits + others:
        text += f"; {share(hits, hits + others):.0%} of bursts find their row open"
    if latency and queueing is not None:
        text += f"; a read takes {shown(latency, 's')}, {shown(queueing, 's')} of it in queues"
    saturated = busy >= _SATURATED
    weight = 1.5 + busy if saturated else 0.1 + 0.2 * busy
    yield Finding(
        ("Memory bandwidth is nearly used up. " if saturated else "") + text + ".",
        weight,
        "warn" if saturated else "",
    )
    cores = [core for core in evidence.group("core[") if evidence.has(core, "l1.hits")]
    if cores and evidence.kind == "memory":
        accesses = evidence.total(cores, "l1.reads", "l1.writes")
        mean = evidence.mean_seconds(cores, "latency")
        hit = share(evidence.total(cores, "l1.hits"), accesses)
        yield Finding(
            f"An access takes {shown(mean, 's')} on average; {hit:.1%} of {shown(accesses)} hit the L1.",
            2.0,
        )


def _ranks(evidence: Evidence) -> Iterator[Finding]:
    means = evidence.rank_shares
    ranks = evidence.columns("ranks", "compute") if means else None
    if ranks is None:
        return
    words = {
        "compute": "computing",
        "overhead": "in the MPI library (processor time for messages)",
        "waiting": "waiting for ranks that were late",
        "transfer": "waiting for messages on their way",
    }
    top = max(means, key=means.__getitem__)
    rest = ", ".join(f"{words[name]} {part:.0%}" for name, part in means.items() if name != top)
    yield Finding(
        f"{ranks.height:,} ranks spend {means[top]:.0%} of their time {words[top]}; {rest}.", 2 + means[top]
    )
    if means["transfer"] + means["overhead"] + means["waiting"] >= _LARGE:
        largest = max(("transfer", "overhead", "waiting"), key=means.__getitem__)
        advice = {
            "transfer": "bandwidth, latency and routes of the network decide",
            "overhead": "fewer and larger messages, or a NIC that does more, would help",
            "waiting": "the ranks are not in step: look at imbalance and at who is late",
        }[largest]
        yield Finding(
            f"Communication takes {1 - means['compute']:.0%} of the time, most of it {words[largest]} "
            f"({means[largest]:.0%}): {advice}.",
            2.5 if means["compute"] < 0.5 else 1.0,
            "warn" if means["compute"] < 0.5 else "",
        )
    most, mean = float(ranks["compute"].max() or 0.0), float(ranks["compute"].mean() or 0.0)  # type: ignore[arg-type]
    if mean and most / mean >= 1.1:
        yield Finding(
            f"Imbalance: the busiest rank computes {most / mean:.2f} times as long as the mean.", 1.0, "warn"
        )


def _links(evidence: Evidence) -> Iterator[Finding]:
    links = evidence.columns("links", "from", "to", "from_node", "to_node", "link", "busy", "queueing")
    if links is None:
        return
    from manyscale.network.result import link_name

    busiest = links.sort("busy", descending=True).row(0, named=True)
    used = int((links["busy"] > 0).sum())
    text = (
        f"The busiest of {used:,} used links ({link_name(busiest)}) is busy {busiest['busy']:.0%} of the time; "
        f"the mean of the used ones is {float(links.filter(links['busy'] > 0)['busy'].mean() or 0):.0%}"  # type: ignore[arg-type]
    )
    yield Finding(text + ".", busiest["busy"], "warn" if busiest["busy"] >= _SATURATED else "")


def _host_between_kernels(evidence: Evidence) -> Iterator[Finding]:
    """Of CUDA programs: what of the time kernels and copies took."""
    kernels, copies = (
        evidence.columns("kernels", "begin_ns", "end_ns"),
        evidence.columns("copies", "begin_ns", "end_ns"),
    )
    if kernels is None or not evidence.seconds:
        return
    busy = float((kernels["end_ns"] - kernels["begin_ns"]).sum()) / 1e9
    moving = 0.0 if copies is None else float((copies["end_ns"] - copies["begin_ns"]).sum()) / 1e9
    yield Finding(
        f"{_plural(kernels.height, 'kernel launch', 'kernel launches')} take {shown(busy, 's')} and copies "
        f"{shown(moving, 's')} of {shown(evidence.seconds, 's')} of simulated time "
        f"({share(busy, evidence.seconds):.0%} and {share(moving, evidence.seconds):.0%}).",
        1.0 + (share(moving, evidence.seconds) if moving > busy else 0.0),
        "warn" if moving > busy else "",
    )


def _waiting(evidence: Evidence) -> Iterator[Finding]:
    """Of components that no rule knows: those that counted the most waiting."""
    if not evidence.scalars:
        return
    table = evidence.run.stats
    rows = table.filter(
        table["key"].is_null()
        & (table["kind"] == "counter")
        & (table["value"] > 0)
        & table["statistic"].str.contains("stall|wait|blocked|queue")
    ).sort("value", descending=True)
    for row in rows.head(3).iter_rows(named=True):
        yield Finding(
            f"{row['component']}: {row['statistic']} is {shown(row['value'], row['unit'])} ({row['description']}).",
            0.5,
        )


def _plural(count: int, one: str, many: str = "") -> str:
    return f"1 {one}" if count == 1 else f"{count:,} {many or one + 's'}"
