# SPDX-License-Identifier: Apache-2.0
"""Memory channels against closed forms: latency to the cycle, bandwidth to a few per cent, order of service."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from manyscale import _core
from manyscale.machine.dram import dram_standard, list_dram_standards
from memory.dram_driver import DATA, WANTS_ACK, WRITE_ACK, base_parameters, drive, period, read, write

pytestmark = pytest.mark.core

STANDARDS = list_dram_standards()
COLUMN_LOW = "row:rank:bank:bankgroup:column"
LATER = 10**9  # femtoseconds: 1 us, when all is quiet again


class Channel:
    """A standard with a plain mapping and no refresh: closed forms and addresses."""

    def __init__(self, standard: str = "ddr4-2400", **changes: Any) -> None:
        self.p = base_parameters(standard, mapping=COLUMN_LOW, trefi=0, **changes)
        self.period = period(self.p)
        self.row = self.p["ranks"] * self.p["bank_groups"] * self.p["banks"] * self.p["row_bytes"]
        self.bank_group = self.p["row_bytes"]
        self.bank = self.bank_group * self.p["bank_groups"]
        self.rank = self.bank * self.p["banks"]
        self.burst = self.p["burst_bytes"]
        self.hit = self.p["tcl"] + self.p["burst_cycles"]
        self.miss = self.p["trcd"] + self.hit
        self.conflict = self.p["trp"] + self.miss

    def drive(self, script: Any, until: str | None = None, **changes: Any) -> Any:
        texts = {"clock": f"{self.p['clock']}Hz", "row_bytes": f"{self.p['row_bytes']}B"}
        texts["burst_bytes"] = f"{self.p['burst_bytes']}B"
        return drive(script, until, **{**self.p, **texts, **changes})


def test_the_simple_backend_takes_latency_and_transfer_time() -> None:
    """latency + bytes / bandwidth; a second request waits for the bus."""
    done = drive(
        [(0, read(0, 0b1111)), (0, read(128, 0b11)), (LATER, read(256, 1))],
        backend="simple",
        latency="100ns",
        bandwidth="32GB/s",
    )
    assert done.at(0) == 104_000_000
    assert done.at(128) == 106_000_000
    assert done.at(256) == LATER + 101_000_000
    assert done.stat("bus_busy") == 7_000_000
    assert done.stat("queueing_delay.max") == 4_000_000


@pytest.mark.parametrize("backend", ["banked", "timing"])
@pytest.mark.parametrize("standard", STANDARDS)
def test_hit_miss_and_conflict_take_what_the_timings_say(standard: str, backend: str) -> None:
    """tCL + burst, plus tRCD where the bank is closed, plus tRP where another row is open."""
    channel = Channel(standard)
    other_row = channel.row
    done = channel.drive(
        [(0, read(0)), (LATER, read(channel.burst)), (2 * LATER, read(other_row))], backend=backend
    )
    edge = [-(-time // channel.period) * channel.period for time in (0, LATER, 2 * LATER)]
    assert done.at(0) == channel.miss * channel.period
    assert done.at(channel.burst) == edge[1] + channel.hit * channel.period
    assert done.at(other_row) == edge[2] + channel.conflict * channel.period
    counts = [done.stat(name) for name in ("row_hits", "row_misses", "row_conflicts", "activates")]
    assert counts == [1, 1, 1, 2]


def test_a_request_waits_for_the_next_edge_and_no_longer() -> None:
    channel = Channel()
    for arrival, edge in ((1, 1), (channel.period, 1), (channel.period + 1, 2)):
        assert channel.drive([(arrival, read(0))]).at(0) == (edge + channel.miss) * channel.period


@pytest.mark.parametrize("backend", ["banked", "timing"])
def test_several_bursts_follow_each_other(backend: str) -> None:
    """Four bursts of one row: tCCD_L apart, or the burst's length where only the bus counts."""
    channel = Channel("hbm2e")
    apart = channel.p["tccd_l"] if backend == "timing" else channel.p["burst_cycles"]
    done = channel.drive([(0, read(0, 0b1111))], backend=backend)
    assert done.at(0) == (channel.miss + 3 * apart) * channel.period
    assert done.answers[0][1]["op"] == DATA
    assert done.answers[0][1]["sectors"] == 0b1111


def test_sectors_that_share_a_burst_are_one_burst() -> None:
    channel = Channel()  # bursts of two sectors
    for sectors, bursts in ((0b1, 1), (0b11, 1), (0b101, 2), (0b1111, 2), (0b11111111, 4)):
        done = channel.drive([(0, read(0, sectors))])
        assert len(done.cycles("RD")) == bursts, bin(sectors)
    assert len(channel.drive([(0, read(32, 0b11))]).cycles("RD")) == 2  # begins in the middle of a burst


@pytest.mark.parametrize("standard", STANDARDS)
def test_a_stream_fills_the_bus_but_for_refreshes(standard: str) -> None:
    """Peak x (1 - tRFC / tREFI), within 3%."""
    p = base_parameters(standard, ranks=1)
    got = _core.dram_exercise(
        p, requests=100_000, pattern="stream", outstanding=64, sectors=15, line_bytes=128
    )
    bandwidth = got["statistics"]["read_bytes"] / (got["now"] / 1e15)
    bound = dram_standard(standard).channel.bandwidth * (1 - p["trfc"] / p["trefi"])
    assert 0.97 < bandwidth / bound <= 1.001, f"{bandwidth / bound:.4f} of {bound / 1e9:.2f} GB/s"


@pytest.mark.parametrize("standard", STANDARDS)
def test_random_reads_are_bound_by_activates(standard: str) -> None:
    """One activate each: at most 4 in tFAW, one in tRRD_S, and one in tRC for each bank, less refreshes."""
    p = base_parameters(standard, ranks=1)
    sectors = p["burst_bytes"] // 32
    got = _core.dram_exercise(
        p,
        requests=60_000,
        outstanding=128,
        sectors=(1 << sectors) - 1,
        line_bytes=p["burst_bytes"],
        span=2**29,
        seed=1,
    )
    assert got["statistics"]["row_hits"] < 600
    banks = p["bank_groups"] * p["banks"]
    interval = max(p["tfaw"] / 4, p["trrd_s"], p["trc"] / banks)
    bound = 1 / (interval * period(p) / 1e15) * (1 - p["trfc"] / p["trefi"])
    rate = 60_000 / (got["now"] / 1e15)
    assert 0.85 < rate / bound < 1.01, f"{rate / bound:.4f} of {bound / 1e6:.1f} M/s"


@pytest.mark.parametrize("standard", STANDARDS)
def test_reads_of_one_bank_are_bound_by_trc(standard: str) -> None:
    """Every read another row of the same bank: one in max(tRC, tRAS + tRP), to the cycle."""
    channel = Channel(standard)
    done = channel.drive([(0, read(i * channel.row)) for i in range(20)])
    between = max(channel.p["trc"], channel.p["tras"] + channel.p["trp"])
    activates = done.cycles("ACT")
    assert [b - a for a, b in pairwise(activates)] == [between] * 19


@pytest.mark.parametrize("standard", STANDARDS)
def test_four_activates_fit_into_tfaw_and_the_fifth_does_not(standard: str) -> None:
    channel = Channel(standard)
    done = channel.drive([(0, read(i % 4 * channel.bank_group + i // 4 * channel.bank)) for i in range(5)])
    activates = done.cycles("ACT")
    # On a command bus that reads share, one that is due at the same cycle goes first.
    taken = [] if channel.p["separate_row_bus"] else done.cycles("RD")
    expected = activates[:1]
    for number in range(1, 5):
        due = expected[-1] + channel.p["trrd_s"]
        if number == 4:
            due = max(due, activates[0] + channel.p["tfaw"])
        expected.append(due + (due in taken))
    assert activates == expected


@pytest.mark.parametrize("standard", STANDARDS)
def test_turning_the_bus_costs_what_the_timings_say(standard: str) -> None:
    """Read to write tCL + burst + turnaround - tCWL, write to read tCWL + burst + tWTR, to the cycle."""
    channel = Channel(standard)
    p = channel.p
    done = channel.drive([(0, read(0)), (0, write(0 + channel.burst))])
    (rd,), (wr,) = done.cycles("RD"), done.cycles("WR")
    assert wr - rd == p["tcl"] + p["burst_cycles"] + p["turnaround"] - p["tcwl"]
    for target, twtr in ((channel.burst, p["twtr_l"]), (channel.bank_group, p["twtr_s"])):
        done = channel.drive(
            [
                (0, read(channel.bank_group + channel.burst)),  # opens the other group's row
                (LATER, write(0)),
                (LATER + (p["trcd_write"] + 2) * channel.period, read(target)),
            ]
        )
        (wr,), rd = done.cycles("WR"), done.cycles("RD")[-1]
        assert rd - wr == p["tcwl"] + p["burst_cycles"] + twtr


def test_another_rank_has_to_wait_for_the_bus() -> None:
    """Read to read of another rank: burst + tRTRS."""
    channel = Channel(ranks=2)
    done = channel.drive([(0, read(0)), (0, read(channel.rank))])
    first, second = done.cycles("RD")
    assert second - first == channel.p["burst_cycles"] + channel.p["trtrs"]


def test_a_read_that_meets_a_refresh_waits_for_its_end() -> None:
    """Due at tREFI in an idle channel, it lasts tRFC: a read one cycle later waits tRFC - 1 more."""
    channel = Channel(ranks=1)
    trefi, trfc = 9360, channel.p["trfc"]
    for arrival, start in ((trefi - 1, trefi - 1), (trefi + 1, trefi + trfc), (trefi + trfc, trefi + trfc)):
        done = channel.drive([(arrival * channel.period, read(0))], trefi=trefi)
        assert done.at(0) == (start + channel.miss) * channel.period, arrival


def test_an_open_row_is_closed_before_a_refresh() -> None:
    """A conflict just before a refresh: PREA when tRAS allows, REF tRP later."""
    channel = Channel(ranks=1)
    trefi = 9360
    done = channel.drive(
        [((trefi - 2) * channel.period, read(0)), (trefi * channel.period, read(channel.row))], trefi=trefi
    )
    (precharge,), (refresh,) = done.cycles("PREA"), done.cycles("REF")
    assert done.cycles("ACT") == [trefi - 2, refresh + channel.p["trfc"]]
    assert precharge == trefi - 2 + channel.p["tras"]
    assert refresh == precharge + channel.p["trp"]


def test_a_write_that_a_refresh_overtakes_opens_its_row_again() -> None:
    """A write to an open row, in a bank that is not the first, waits for the bus to turn while a refresh falls due.

    PREA after the read comes before the write, so that the write needs an ACT after REF.
    """
    channel = Channel(ranks=1)
    trefi, address = 9360, channel.bank_group
    overtaken = 0
    for early in range(12):
        done = channel.drive(
            [
                ((trefi - 200) * channel.period, read(address)),
                ((trefi - early) * channel.period, read(address + channel.burst)),
                ((trefi - early) * channel.period, write(address + 2 * channel.burst)),
            ],
            trefi=trefi,
        )
        (written,) = done.cycles("WR")
        refresh = done.cycles("REF")
        if refresh and done.cycles("RD")[1] < refresh[0] < written:
            overtaken += 1
            assert done.cycles("ACT")[1:] == [refresh[0] + channel.p["trfc"]], early
            assert written == done.cycles("ACT")[1] + channel.p["trcd"], early
    assert overtaken > 0


def test_an_idle_channel_counts_its_refreshes_without_events() -> None:
    channel = Channel(ranks=2)
    trefi = 9360
    time = 1000 * trefi * channel.period + channel.period * trefi // 4
    done = channel.drive([(0, read(0)), (time, read(64))], trefi=trefi)
    assert done.stat("refreshes") == 1999  # the second rank's are half an interval later
    assert done.result.events < 20
    assert done.at(64) == -(-time // channel.period) * channel.period + channel.miss * channel.period


def test_a_bank_that_is_refreshed_keeps_only_its_own_reads_waiting() -> None:
    """Bank n of N is refreshed at tREFI + offset + n tREFI / N for tRFC; another bank answers as ever."""
    channel = Channel(ranks=1, refresh_by_bank=True)
    trefi, trfc, offset = 9360, channel.p["trfc"], 100
    for number, address in ((0, 0), (1, channel.bank), (4, channel.bank_group)):
        due = trefi + offset + trefi * number // 16
        for arrival, start in ((due - 1, due - 1), (due + 1, due + trfc), (due + trfc, due + trfc)):
            for bank, begin in ((address, start), (3 * channel.bank, arrival)):
                done = channel.drive(
                    [(arrival * channel.period, read(bank))], trefi=trefi, refresh_offset=offset
                )
                assert done.at(bank) == (begin + channel.miss) * channel.period, (number, arrival, bank)


def test_a_stream_hardly_notices_refreshes_of_single_banks() -> None:
    """One of 16 banks away leaves 98% of the peak; refreshes of all banks take tRFC / tREFI, 12%."""
    p = base_parameters("hbm2-v100", ranks=1, trfc=395, read_queue=256)
    wanted = {"requests": 50_000, "pattern": "stream", "outstanding": 256, "sectors": 15, "line_bytes": 128}
    peak = dram_standard("hbm2-v100").channel.bandwidth
    rates = {}
    for by_bank in (False, True):
        got = _core.dram_exercise({**p, "refresh_by_bank": by_bank}, **wanted)
        rates[by_bank] = got["statistics"]["read_bytes"] / (got["now"] / 1e15) / peak
    assert rates[True] > 0.98, rates
    assert rates[False] < 0.89, rates


@pytest.mark.parametrize("standard", STANDARDS)
def test_refreshes_cost_their_share_of_a_stream(standard: str) -> None:
    p = base_parameters(standard, ranks=1)
    wanted = {"requests": 50_000, "pattern": "stream", "outstanding": 64, "sectors": 15, "line_bytes": 128}
    with_refresh = _core.dram_exercise(p, **wanted)
    without = _core.dram_exercise({**p, "trefi": 0}, **wanted)
    assert without["statistics"]["refreshes"] == 0
    cost = (with_refresh["now"] - without["now"]) / with_refresh["statistics"]["refreshes"] / period(p)
    most = p["trfc"] + p["trp"] + p["tras"] + p["trcd"] + p["tcl"]
    assert p["trfc"] < cost < most, f"{cost:.0f} cycles a refresh of {p['trfc']}"


def test_hits_go_first_but_starve_nobody() -> None:
    """An old conflict waits behind younger hits, but no longer than the limit."""
    channel = Channel()
    hits = [(0, read(channel.burst * (i + 1))) for i in range(40)]
    script = [(0, read(0)), (0, read(channel.row)), *hits]
    patient = channel.drive(script)
    assert max(patient.answers, key=lambda answer: answer[0])[1]["address"] == channel.row
    limit = 100
    bound = channel.drive(script, starvation_limit=limit)
    served = [message["address"] for _, message in bound.answers]
    assert 0 < served.index(channel.row) < len(served) - 1
    # Past the limit come at most the column command in flight, tRTP and the conflict itself.
    assert (
        bound.at(channel.row)
        <= (limit + channel.p["tccd_l"] + channel.p["trtp"] + channel.conflict) * channel.period
    )


def test_hits_of_another_bank_do_not_starve_a_rank() -> None:
    """A stream of hits leaves no gap for a change of rank, until the other rank's burst is old enough."""
    channel = Channel(ranks=2, tccd_l=4)
    hits = [(0, read(channel.burst * i)) for i in range(60)]
    script = [*hits[:2], (0, read(channel.rank)), *hits[2:]]
    assert channel.drive(script, starvation_limit=90).at(channel.rank) <= (90 + 40) * channel.period


def test_reads_do_not_starve_behind_writes() -> None:
    """Writes that keep coming at full speed do not hold a read for longer than the limit and a turn."""
    channel = Channel()
    script = [(0, write(channel.burst * i)) for i in range(1500)]
    script.insert(100, (0, read(channel.bank)))
    limit = 500
    done = channel.drive(script, starvation_limit=limit)
    turn = channel.p["tcwl"] + channel.p["burst_cycles"] + channel.p["twtr_l"] + channel.conflict
    accepted = done.at(channel.bank) - done.stat("read_latency.max")
    assert accepted == 0
    # It first waits for the writes before it to leave the input queue.
    waiting = (100 - 64) * channel.p["tccd_l"] + channel.miss
    assert done.at(channel.bank) <= (waiting + limit + 2 * turn) * channel.period


def test_a_drain_goes_from_the_high_to_the_low_watermark() -> None:
    """With reads waiting all the time: 48 writes start a drain, 16 end it."""
    channel = Channel()
    reads = [(0, read(channel.bank + channel.burst * i)) for i in range(64)]
    writes = [(0, write(channel.burst * i)) for i in range(48)]
    done = channel.drive([*reads[:8], *writes, *reads[8:]])
    order = [entry[1] for entry in done.commands if entry[1] in ("RD", "WR")]
    runs = [(order[0], 0)]
    for name in order:
        runs = [*runs[:-1], (name, runs[-1][1] + 1)] if name == runs[-1][0] else [*runs, (name, 1)]
    assert ("WR", 32) in runs
    assert runs[-1] == ("WR", 16)


def test_writes_are_acknowledged_when_accepted() -> None:
    """At once while the queue has a free entry, else when one becomes free."""
    channel = Channel()
    parameters = {"write_queue": 4, "write_high": 3, "write_low": 1}
    script = [(0, write(channel.burst * i, flags=WANTS_ACK, source=i)) for i in range(6)]
    done = channel.drive(script, **parameters)
    times = {message["destination"]: time for time, message in done.answers}
    assert {message["op"] for _, message in done.answers} == {WRITE_ACK}
    assert [times[i] for i in range(4)] == [0] * 4
    written = done.cycles("WR")
    assert [times[4], times[5]] == [written[0] * channel.period, written[1] * channel.period]
    assert channel.drive([(0, write(0))]).answers == []  # nobody asked for one
    assert done.stat("input_queue_length.max") == 1


def test_reads_find_their_value_in_the_write_queue() -> None:
    channel = Channel()
    script = [(0, write(0, value=7)), (0, read(0)), (LATER, read(0)), (LATER, read(channel.burst))]
    done = channel.drive(script, keep_values=True)
    first, *others = [(time, message["address"], message["value"]) for time, message in done.answers]
    assert first == (channel.period, 0, 7)
    assert {(address, value) for _, address, value in others} == {(0, 7), (channel.burst, 0)}
    assert done.stat("forwarded") == 1
    assert channel.drive(script).answers[0][1]["value"] == 0


def test_a_later_write_is_not_seen_by_an_earlier_read() -> None:
    channel = Channel()
    done = channel.drive([(0, read(0)), (0, write(0, value=9)), (LATER, read(0))], keep_values=True)
    assert [message["value"] for _, message in done.answers] == [0, 9]


def test_a_closed_page_is_a_miss_again() -> None:
    channel = Channel()
    done = channel.drive(
        [(0, read(0)), (LATER, read(channel.burst)), (2 * LATER, read(channel.row))], closed_page=True
    )
    assert [done.stat(name) for name in ("row_hits", "row_misses", "row_conflicts")] == [0, 3, 0]
    assert len(done.cycles("RDA")) == 3
    assert done.cycles("PRE", "PREA") == []
    edge = -(-2 * LATER // channel.period)
    assert done.at(channel.row) == (edge + channel.miss) * channel.period


def test_queued_requests_keep_a_page_open() -> None:
    channel = Channel()
    done = channel.drive([(0, read(0)), (0, read(channel.burst))], closed_page=True)
    assert [entry[1] for entry in done.commands] == ["ACT", "RD", "RDA"]


@pytest.mark.parametrize("channels", [1, 4, 6])
def test_a_channel_takes_its_bits_out_of_the_address(channels: int) -> None:
    """Every `channels`-th 256 bytes are neighbours in one channel."""
    channel = Channel(interleave_channels=channels)
    done = channel.drive([(0, read(0)), (0, read(192)), (0, read(256 * channels))], interleave_bytes="256B")
    assert [entry[6] for entry in done.commands if entry[1] == "RD"] == [0, 3, 4]


def test_the_mapping_says_where_an_address_lies() -> None:
    channel = Channel(ranks=2)

    def coordinates(address: int, **parameters: Any) -> tuple[int, ...]:
        (entry,) = [e for e in channel.drive([(0, read(address))], **parameters).commands if e[1] == "RD"]
        return tuple(entry[2:])

    assert coordinates(64 * 5, mapping="row:rank:bank:bankgroup:column") == (0, 0, 0, 0, 5)
    assert coordinates(64 * 5, mapping="row:rank:bank:column:bankgroup") == (0, 1, 0, 0, 1)
    assert coordinates(64 * 5, mapping="row:rank:bank:column:bankgroup:column1") == (0, 2, 0, 0, 1)
    assert coordinates(64 * 5, mapping="row:column:rank:bank:bankgroup") == (0, 1, 1, 0, 0)
    # Row 6 = 0b110: XORed into (bank group, bank) = (0, 0) it gives group 1, bank 2.
    row = channel.row * 6
    assert coordinates(row, mapping="row:rank:bank:bankgroup:column", bank_xor=True) == (0, 1, 2, 6, 0)


def test_full_queues_count_their_delay() -> None:
    channel = Channel()
    done = channel.drive([(0, read(channel.row * i)) for i in range(8)], read_queue=2)
    assert done.stat("input_queue_length.max") == 5
    assert done.stat("read_queue_length.max") == 2
    last = done.cycles("PRE")[-1]
    assert done.stat("queueing_delay.max") == last * channel.period
    assert done.stat("read_latency.max") == max(time for time, _ in done.answers)


def test_answers_go_back_where_they_came_from() -> None:
    channel = Channel()
    done = channel.drive([(0, read(0, source=5, destination=3))])
    ((_, answer),) = done.answers
    assert (answer["source"], answer["destination"]) == (3, 5)
