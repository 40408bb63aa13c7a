# SPDX-License-Identifier: Apache-2.0
"""The verdict of a run: what limits it, in one sentence, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from manyscale.report.evidence import Evidence
from manyscale.report.findings import findings
from manyscale.report.numbers import percent, share, shown
from manyscale.report.top_down import cpi_shares, top_down
from manyscale.results.names import short

_MUCH = 0.3  # of the time in which accesses wait for pages: the verdict of a program with unified memory


@dataclass(frozen=True)
class Verdict:
    """What limits a run and what to do; `mood` is "warn", "good" or nothing, `limit` what limits it in a few words."""

    text: str
    advice: str = ""
    mood: str = ""
    limit: str = ""


def verdict(evidence: Evidence) -> Verdict:
    """The verdict of a run; there always is one."""
    rules: tuple[Callable[[Evidence], Verdict | None], ...] = (
        _status,
        _page_faults,
        _idle_gpu,
        _kernel,
        _cores,
        _ranks,
        _memory,
    )
    for rule in rules:
        found = rule(evidence)
        if found is not None:
            return found
    first = findings(evidence)[0]
    return Verdict(first.text, mood=first.mood)


def _status(evidence: Evidence) -> Verdict | None:
    if evidence.run.status == "done":
        return None
    if evidence.run.status == "running":
        return Verdict("The run is in progress.", "Numbers are those of what has ended.", limit="in progress")
    error = evidence.run.info.get("error")
    partial = " The numbers are those of the part that ran." if evidence.run.info.get("partial") else ""
    return Verdict(
        f"The run is not whole ({evidence.run.status}){f': {error}' if error else '.'}",
        partial.strip(),
        "warn",
        "not whole",
    )


def _page_faults(evidence: Evidence) -> Verdict | None:
    for uvm in evidence.group("uvm"):
        stalled = evidence.value(uvm, "stalled") / 10**15
        part = share(stalled, evidence.seconds)
        if part < _MUCH:
            continue
        evicted = evidence.value(uvm, "pages_evicted")
        faults = evidence.value(uvm, "faults")
        advice = (
            "The working set does not fit: reorder the accesses, or use less memory at a time."
            if evicted
            else "Prefetch before the launch (cudaMemPrefetchAsync), or choose a prefetcher that brings more pages."
        )
        return Verdict(
            f"Page faults: in {percent(part)} of the {shown(evidence.seconds, 's')} at least one access waits for a "
            f"page of managed memory ({shown(faults)} faults, {shown(evicted)} pages evicted).",
            advice,
            "warn",
            "page faults",
        )
    return None


def _idle_gpu(evidence: Evidence) -> Verdict | None:
    """Of a CUDA program whose kernels take less than half of the time."""
    use = evidence.gpu_time
    if use is None or not use.whole or use.kernels >= 0.5 * use.whole:
        return None
    if use.copies >= use.other:
        return Verdict(
            f"Copies take {percent(use.copies / use.whole)} of the {shown(use.whole, 's')}, kernels "
            f"{percent(use.kernels / use.whole)}.",
            "Copy less, from pinned memory, and beside kernels (cudaMemcpyAsync in streams).",
            "warn",
            "copies",
        )
    return Verdict(
        f"The GPU is idle {percent(use.other / use.whole)} of the {shown(use.whole, 's')}: calls and launches of the "
        f"host take longer than kernels ({percent(use.kernels / use.whole)}).",
        "Launch fewer and larger kernels, or put the launches into a CUDA graph.",
        "warn",
        "launches and host",
    )


def _kernel(evidence: Evidence) -> Verdict | None:
    kernels = evidence.longest_kernels()
    if not kernels:
        return None
    name = kernels[0]
    limit = evidence.profiles.get(name, {}).get("limit", {})
    metrics = evidence.metrics(name)
    whole = sum(evidence.metrics(each).get("duration", 0.0) for each in kernels)
    part = share(metrics.get("duration", 0.0), whole)
    which = short(evidence.titles[name]) + (
        f" ({percent(part)} of the kernels' time)" if len(kernels) > 1 else ""
    )
    if not isinstance(limit, dict) or not limit.get("kind"):
        return Verdict(f"{which} takes {shown(metrics.get('duration'), 's')}.")
    gain = f" ({limit['gain']})" if limit.get("gain") else ""
    advice = str(limit.get("advice") or "")
    return Verdict(
        f"{which} is limited by {_lowered(str(limit['kind']))}: {str(limit.get('evidence', '')).rstrip('.')}.",
        f"{advice.rstrip('.')}{gain}." if advice else "",
        "warn" if gain else "",
        str(limit["kind"]),
    )


def _lowered(text: str) -> str:
    return text if text[:2].isupper() else text[:1].lower() + text[1:]


_CORE_ADVICE = {
    "Retiring": "The cores work at their width: fewer instructions (vectors, a better algorithm) or more cores help.",
    "Bad speculation": "Make branches predictable, or replace them by selects; a better predictor would help.",
    "Front-end bound": "Make the hot code smaller or straighter, so that it fits the instruction cache.",
    "Memory bound": "Improve locality (blocking, smaller types, arrays of structures the right way round) or prefetch.",
    "Core bound": "Break chains of dependent operations (unrolling, several accumulators).",
    "Waiting for threads": "Balance the work between threads, and hold locks for a shorter time.",
    "Idle": "Use as many threads as cores, or give serial parts less to do.",
}


def _cores(evidence: Evidence) -> Verdict | None:
    shares = cpi_shares(evidence)
    if not shares:
        return None
    groups = {name: sum(parts.values()) for name, parts in top_down(shares).items()}
    top = max(groups, key=groups.__getitem__)
    causes = top_down(shares)[top]
    cause = max(causes, key=causes.__getitem__)
    detail = (
        f", mostly {_cause_words(cause)} ({percent(causes[cause])})"
        if len(causes) > 1 or top == "Memory bound"
        else ""
    )
    cores = len(evidence.group("core["))
    of_cores = "the core" if cores == 1 else f"{cores:,} cores"
    retiring = groups.get("Retiring", 0.0)
    also = "" if top == "Retiring" else f" Instructions retire in {percent(retiring)} of the cycles."
    return Verdict(
        f"{top}: {percent(groups[top])} of the cycles of {of_cores}{detail}.{also}",
        _CORE_ADVICE[top],
        "good" if top == "Retiring" else "warn",
        top,
    )


def _cause_words(cause: str) -> str:
    words = {"base": "instructions", "l1": "L1", "l2": "L2", "l3": "L3", "dram": "DRAM", "tlb": "the TLB"}
    words |= {
        "shared": "the shared cache",
        "peer": "lines of other cores",
        "store_buffer": "the store buffer",
    }
    words |= {"unit": "functional units", "window": "a full window", "dependency": "dependences"}
    return words.get(cause, cause)


_RANK_ADVICE = {
    "compute": ("computing", "Faster nodes help more than a faster network."),
    "overhead": ("in the MPI library", "Send fewer and larger messages, or let the NIC do more of the work."),
    "waiting": ("waiting for late ranks", "Balance the ranks: look at who is late, and why."),
    "transfer": ("waiting for messages on their way", "Bandwidth, latency and routes of the network decide."),
}


def _ranks(evidence: Evidence) -> Verdict | None:
    parts = evidence.rank_shares
    if not parts:
        return None
    outside = 1 - parts["compute"]
    others = [name for name in parts if name != "compute"]
    top = max(others, key=parts.__getitem__) if outside > 0.5 else "compute"
    words, advice = _RANK_ADVICE[top]
    if top == "compute":
        text = f"{percent(parts['compute'])} of the {shown(evidence.seconds, 's')} computing, the rest communicating"
    else:
        text = (
            f"{percent(outside)} of the {shown(evidence.seconds, 's')} communicating, most of it {words} "
            f"({percent(parts[top])})"
        )
    mood = "good" if top == "compute" else "warn"
    return Verdict(f"{evidence.ranks:,} ranks spend {text}.", advice, mood, words)


def _memory(evidence: Evidence) -> Verdict | None:
    channels = evidence.group("channel[")
    cores = [core for core in evidence.group("core[") if evidence.has(core, "l1.hits")]
    if evidence.kind != "memory" or not channels or not cores or not evidence.seconds:
        return None
    busy = share(evidence.total(channels, "bus_busy") / 10**15, evidence.seconds * len(channels))
    mean = evidence.mean_seconds(cores, "latency")
    moved = evidence.total(channels, "read_bytes", "write_bytes") / evidence.seconds
    hits = share(evidence.total(cores, "l1.hits"), evidence.total(cores, "l1.reads", "l1.writes"))
    if busy >= 0.6:
        return Verdict(
            f"DRAM bandwidth: the data buses are busy {percent(busy)} of the time ({shown(moved, 'B/s')}).",
            "More channels, or more reuse in caches, would help.",
            "warn",
            "DRAM bandwidth",
        )
    return Verdict(
        f"Latency: an access takes {shown(mean, 's')} in the mean, {percent(hits)} of them hit the L1; DRAM buses are "
        f"busy {percent(busy)} of the time.",
        "More outstanding accesses or larger caches would help; bandwidth would not.",
        "",
        "memory latency",
    )
