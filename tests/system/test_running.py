# SPDX-License-Identifier: Apache-2.0
"""How runs end: by themselves, by a model, by an error, by Ctrl-C, by deadlock; and what they leave behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import psutil
import pytest

import manyscale as ms
from systems import make_phold, make_ring


class Stopper(ms.Component):
    """Passes a number back and forth; one side stops or fails when it reaches a mark."""

    class Spec(ms.Spec):
        """When it does what."""

        stop_at: ms.Count = ms.parameter(-1, doc="number at which it stops the run")
        fail_at: ms.Count = ms.parameter(-1, doc="number at which it raises")
        sends: bool = ms.parameter(False, doc="whether it begins")

    line = ms.Port("number", doc="the other side")
    handled = ms.Counter("1", "numbers that came")

    def start(self) -> None:
        if self.spec.sends:
            self.line.send(0)

    @line
    def receive(self, number: int, lane: int) -> None:
        self.handled.add()
        if number == self.spec.stop_at:
            self.stop()
        if number == self.spec.fail_at:
            raise ValueError(f"{self.name} fails at {number}")
        self.line.send(number + 1)


def pairs(count: int, **parameters: int) -> ms.System:
    """Independent pairs; the first has the parameters."""
    system = ms.System("pairs")
    for i in range(count):
        given = parameters if i == 0 else {}
        a = system.add(Stopper, f"a[{i}]", sends=True, **given)
        b = system.add(Stopper, f"b[{i}]", **given)
        system.connect(a.line, b.line, f"{10 + i}ns")
    return system


@pytest.mark.parallel
def test_a_stop_means_the_same_moment_on_any_number_of_threads() -> None:
    results = [pairs(4, stop_at=20).run(threads=threads) for threads in (1, 2, 4)]
    assert [result.outcome for result in results] == ["stopped"] * 3
    assert results[0].columns == results[1].columns == results[2].columns
    # The stop takes effect at the end of its window, which is no longer than the shortest link.
    assert results[0].now <= 21 * 10_000_000 + 10_000_000


def test_a_stop_is_immediate_where_nothing_can_be_cut() -> None:
    system = pairs(1, stop_at=7)
    system.hint(*system.components.values(), group="all")
    result = system.run()
    assert (result.outcome, result.now) == ("stopped", 8 * 10_000_000)


@pytest.mark.parallel
@pytest.mark.parametrize("threads", [1, 2])
def test_what_a_model_raises_comes_out_unchanged(threads: int) -> None:
    with pytest.raises(ValueError, match=r"[ab]\[0\] fails at 5"):
        pairs(3, fail_at=5).run(threads=threads)


@pytest.mark.parallel
def test_of_several_errors_the_earliest_comes_out() -> None:
    """Pair 1 would fail at 11 ns x 4, pair 0 at 10 ns x 4: pair 0 is first, on any number of threads."""
    for threads in (1, 2, 4):
        system = ms.System()
        for i in (1, 0):
            a = system.add(Stopper, f"a[{i}]", sends=True, fail_at=3)
            b = system.add(Stopper, f"b[{i}]", fail_at=3)
            system.connect(a.line, b.line, f"{10_000 + i}ps")
        with pytest.raises(ValueError, match=r"a\[0\] fails at 3"):
            system.run(threads=threads)


@pytest.mark.parallel
@pytest.mark.parametrize("threads", [1, 2])
def test_a_deadlock_names_who_waits_for_what_and_the_circle(threads: int) -> None:
    """Each stage starts with more tokens of its own than the next has slots, and they are first in line."""
    with pytest.raises(ms.DeadlockError) as error:
        make_ring(stages=3, tokens=6, slots=4).run(threads=threads)
    message = str(error.value)
    assert "no event is left, but 3 wait" in message
    assert "stage[0]: 6 tokens wait for a credit at port output (held by stage[1])" in message
    assert "they wait in a circle: stage[0] -> stage[1] -> stage[2] -> stage[0]" in message


def test_a_python_model_can_say_what_it_waits_for() -> None:
    class Waiter(ms.Component):
        """Waits for ever."""

        alarm = ms.Timer()

        def start(self) -> None:
            self.alarm.after("1ns")

        @alarm
        def ring(self, payload: object) -> None:
            pass

        def waits(self) -> list[tuple[str, str]]:
            return [("an answer", "nobody")]

    system = ms.System()
    system.add(Waiter, "w")
    with pytest.raises(ms.DeadlockError, match=r"deadlock at 1ns: .*\n  w: an answer \(held by nobody\)"):
        system.run()


def test_a_deadlock_of_a_python_model_leaves_its_statistics(tmp_path: Path) -> None:
    class Stuck(ms.Component):
        """Counts once and waits for ever."""

        alarm = ms.Timer()
        rung = ms.Counter("1", "alarms")

        def start(self) -> None:
            self.alarm.after("1ns")

        @alarm
        def ring(self, payload: object) -> None:
            self.rung.add()

        def waits(self) -> list[tuple[str, str]]:
            return [("nothing in particular", "")]

    system = ms.System()
    system.add(Stuck, "s")
    with pytest.raises(ms.DeadlockError):
        system.run(out=tmp_path / "run")
    assert ms.load(tmp_path / "run").value("s", "rung") == 1


def test_before_the_first_run_it_is_time_zero_and_nothing_can_be_sent() -> None:
    system = pairs(1)
    component = system.components["a[0]"]
    assert isinstance(component, Stopper)
    assert component.now == 0
    with pytest.raises(RuntimeError, match="before the run"):
        component.line.send(1)


def test_what_is_sent_between_runs_arrives_in_the_next() -> None:
    for threads in (1, 2):
        system = pairs(1, stop_at=3)
        system.run(threads=threads)
        component = system.components["a[0]"]
        assert isinstance(component, Stopper)
        component.line.send(100)
        before = system.simulation.now
        system.run(until="1us", threads=threads)
        assert system.components["b[0]"].handled.value > 3  # type: ignore[union-attr]
        assert system.simulation.now > before


def test_a_limit_is_no_deadlock() -> None:
    assert make_ring(stages=3, tokens=6, slots=4).run(until="1ps").outcome == "limit"


@pytest.mark.parallel
def test_two_simulations_run_at_the_same_time_in_one_process() -> None:
    expected = {seed: make_phold(seed=seed).run(until="1us").columns for seed in (1, 2)}
    found: dict[int, object] = {}

    def run(seed: int) -> None:
        found[seed] = make_phold(seed=seed).run(until="1us", threads=2).columns

    threads = [threading.Thread(target=run, args=(seed,)) for seed in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected


def test_progress_is_told_on_long_runs() -> None:
    calls: list[tuple[int, int]] = []
    make_phold(components=40).run(until="20us", progress=lambda now, events: calls.append((now, events)))
    assert calls
    assert calls == sorted(calls)


def test_an_error_in_progress_comes_out() -> None:
    def fail(now: int, events: int) -> None:
        raise RuntimeError("broken display")

    with pytest.raises(RuntimeError, match="broken display"):
        make_phold(components=40).run(until="1ms", progress=fail)


@pytest.mark.long
def test_200_runs_in_one_process_do_not_grow_memory() -> None:
    def once(threads: int) -> None:
        make_phold(components=8, jobs=500).run(until="20ns", threads=threads)
        pairs(2, stop_at=20).run(threads=threads)
        with pytest.raises(ValueError, match="fails at"):
            pairs(2, fail_at=5).run(threads=threads)

    process = psutil.Process()
    for i in range(60):
        once(1 + i % 2)
    before = process.memory_info().rss
    for i in range(200):
        once(1 + i % 2)
    growth = process.memory_info().rss - before
    assert growth < 3 * 2**20, f"{growth / 2**20:.1f} MiB in 200 runs"


INTERRUPTED = """
    import sys
    from manyscale import System

    system = System("long", seed=1)
    nodes = [system.add("synthetic.phold", f"n[{i}]", jobs=50) for i in range(8)]
    for i in range(8):
        system.connect(nodes[i].peers, nodes[(i + 1) % 8].peers, "300ps")
    print("ready", flush=True)
    system.run(until="1s", threads=int(sys.argv[2]), out=sys.argv[1])
"""


def start_long_run(directory: Path, threads: int) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(INTERRUPTED), str(directory), str(threads)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.6)
    return process


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_stops_within_a_second_and_leaves_a_partial_result(tmp_path: Path, threads: int) -> None:
    """The quickest of a few tries, since the host may be busy with other tests."""
    took: list[float] = []
    while not took or (min(took) >= 1.5 and len(took) < 4):
        directory = tmp_path / f"run-{len(took)}"
        process = start_long_run(directory, threads)
        began = time.monotonic()
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=20)
        took.append(time.monotonic() - began)
        assert "KeyboardInterrupt" in errors
        run = ms.load(directory)
        assert run.status == "stopped"
        assert run.info["partial"] is True
        assert run.value("n[0]", "received") > 0
    assert min(took) < 1.5  # the run within a second, then Python's own end


def test_kill_9_leaves_a_run_that_reads_as_interrupted(tmp_path: Path) -> None:
    process = start_long_run(tmp_path / "run", 2)
    assert ms.load(tmp_path / "run").status == "running"
    process.kill()
    process.communicate(timeout=20)
    assert ms.load(tmp_path / "run").status == "interrupted"


def test_a_run_directory_explains_itself_and_runs_again(tmp_path: Path) -> None:
    result = make_phold(seed=5).run(until="200ns", threads=2, out=tmp_path / "first")
    run = ms.load(tmp_path / "first")
    assert run.status == "done"
    assert run.info["seed"] == 5
    assert run.info["workload"] == {"kind": "system", "name": "phold", "until": "200ns"}
    assert run.headline["events"] == {"value": result.events, "unit": "event"}
    assert run.stats.equals(result.stats)
    again = ms.System.load(tmp_path / "first" / "machine.toml")
    again.run(until=run.info["workload"]["until"], out=tmp_path / "second")
    assert ms.identical(run, ms.load(tmp_path / "second"))


def test_a_deadlocked_run_is_failed_with_its_statistics(tmp_path: Path) -> None:
    with pytest.raises(ms.DeadlockError):
        make_ring(stages=3, tokens=6, slots=4).run(out=tmp_path / "run")
    run = ms.load(tmp_path / "run")
    assert run.status == "failed"
    assert "they wait in a circle" in run.info["error"]
    assert run.value("stage[0]", "passed") == 4


def test_a_failed_run_says_why(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="fails at 5"):
        pairs(1, fail_at=5).run(out=tmp_path / "run")
    assert ms.load(tmp_path / "run").info["error"] == "ValueError: a[0] fails at 5"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": 0}, "cannot run on 0 threads; give at least 1"),
        ({"queue": "fifo"}, "no event queue 'fifo'; known: heap, radix"),
        ({"until": "-1ns"}, "the time limit is before the start"),
        ({"until": "1 week"}, "week"),
        ({"timeline": True}, "a timeline is written to the run directory: give out="),
    ],
)
def test_bad_options_say_what_is_right(options: dict[str, object], message: str) -> None:
    with pytest.raises(ms.InputError, match=message):
        make_ring().run(**options)  # type: ignore[arg-type]


def test_every_statistic_has_name_kind_unit_description_and_path() -> None:
    stats = make_ring().run().stats
    for column in ("component", "statistic", "kind", "unit", "description"):
        assert stats[column].str.len_chars().min() > 0
    assert set(stats["kind"]) == {"counter", "gauge", "histogram"}
