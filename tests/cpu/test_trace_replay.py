# SPDX-License-Identifier: Apache-2.0
"""Recording programs and replaying them: the same work in nearly the same time, and clear errors for what cannot be."""

import json
import random

import numpy as np
import pytest
import trace_samples
from riscv.elf import CODE, EXECUTE, READ, Elf, Segment
from typer.testing import CliRunner

from manyscale import _core, cpu
from manyscale.cli.app import app
from manyscale.cpu import trace_file
from manyscale.cpu.task_assignments import read_task_assignments, write_task_assignments
from manyscale.cpu.trace_file import COLUMN_TYPES, TraceReader, TraceWriter
from manyscale.errors import InputError, ManyscaleError, ProgramError
from manyscale.machine import ResolvedMachine, load_machine

pytestmark = pytest.mark.core

MACHINE = "elasticsimmate"


@pytest.fixture(scope="module")
def parallel_trace(binaries, tmp_path_factory):
    """An OpenMP program on four cores: what its detailed run gave, and its trace."""
    path = tmp_path_factory.mktemp("traces") / "triad.trace"
    program = cpu.Program(binaries["parallel"], ["omp_triad", "4", "4000", "2"])
    summary = cpu.record(program, path, machine=MACHINE, cores=4)
    return path, summary, cpu.run(program, machine=MACHINE, cores=4)


@pytest.fixture(scope="module")
def task_trace(binaries, tmp_path_factory):
    """A program with tasks, recorded without time."""
    path = tmp_path_factory.mktemp("traces") / "tasks.trace"
    program = cpu.Program(binaries["parallel"], ["tasks", "4"])
    return path, cpu.record(program, path, machine=MACHINE, cores=4, functional=True)


@pytest.mark.parametrize("functional", [False, True])
@pytest.mark.parametrize("arguments", [["matrix", "24"], ["triad", "3000", "2"]])
def test_one_thread_takes_the_same_time(binaries, tmp_path, arguments, functional):
    program = cpu.Program(binaries["c"], arguments)
    detailed = cpu.run(program, machine=MACHINE, cores=1)
    recorded = cpu.record(program, tmp_path / "a.trace", machine=MACHINE, cores=1, functional=functional)
    assert recorded.stdout == detailed.stdout
    assert recorded.bytes_per_instruction < 2.5
    result = cpu.replay(tmp_path / "a.trace")
    # The stream has one node more than the program has instructions: its end.
    assert result.instructions == pytest.approx(detailed.instructions, abs=2)
    assert result.cycles == pytest.approx(detailed.cycles, rel=0.05)


def test_recording_does_not_change_the_run(parallel_trace):
    path, _, detailed = parallel_trace
    with cpu.Trace(path) as trace:
        assert trace.run.cycles == detailed.cycles
        assert trace.run.instructions == detailed.instructions


def test_a_trace_knows_its_origin(parallel_trace, binaries):
    path, summary, _ = parallel_trace
    with cpu.Trace(path) as trace:
        trace.check()
        assert trace.threads == summary.threads == 4
        assert trace.nodes == summary.nodes
        assert trace.instructions == summary.instructions
        assert trace.header.machine == MACHINE
        assert trace.header.program.arguments == ["omp_triad", "4", "4000", "2"]
        assert trace.header.program.hash == cpu.Program(binaries["parallel"]).description()["hash"]
        teams = trace.parts.group_by("team").len()["len"].to_list()
        assert teams
        assert set(teams) == {4}  # its master and three workers
        assert all(region.startswith("parallel") for region in trace.parts["region"])
        stream, number, node = trace.parts.select("stream", "block", "node").row(1)
        kinds = _core.cpu_sync_kinds()
        assert kinds[trace.nodes_of(stream, number)["size"][node]] in ("fork", "begin")


def test_threads_meet_as_in_the_program(parallel_trace):
    path, _, detailed = parallel_trace
    result = cpu.replay(path)
    assert result.value("trace", "forks") == result.regions.filter(kind="parallel", thread=0)["visits"].sum()
    assert result.cycles == pytest.approx(
        detailed.cycles, rel=0.25
    )  # thread creation is much of this small program
    assert set(result.regions["region"]) >= {"outside regions"}
    assert any("openmp_kernels.c" in source for source in result.regions["source"])


def test_results_do_not_depend_on_host_threads(parallel_trace):
    path, _, _ = parallel_trace
    first, second = (cpu.replay(path, threads=threads) for threads in (1, 2))
    assert first.stats.equals(second.stats)


def test_changes_of_the_machine_count(parallel_trace):
    path, _, _ = parallel_trace
    usual = cpu.replay(path)
    slow = cpu.replay(path, changes=["cpu.clock=1GHz"])
    assert slow.simulated_seconds > 1.2 * usual.simulated_seconds


def test_cores_compute_further_ahead_than_in_a_run(parallel_trace):
    """That saves events and changes next to nothing; a machine that says how far is obeyed."""
    path, _, _ = parallel_trace
    usual, often = cpu.replay(path), cpu.replay(path, changes=["cpu.core.quantum=4ns"])
    assert usual.events < 0.95 * often.events
    assert usual.cycles == pytest.approx(often.cycles, rel=0.005)


def test_copies_are_played_side_by_side(parallel_trace):
    path, summary, _ = parallel_trace
    twice = cpu.replay(path, changes=["cpu.cores=8"], replicate=2)
    assert twice.cores == 8
    assert twice.instructions == 2 * cpu.replay(path).instructions
    assert summary.threads == 4
    same = cpu.replay(path, changes=["cpu.cores=8"], replicate=2, offset=False)
    assert same.dram_bytes < twice.dram_bytes  # they find in the shared cache what the others brought


def test_everything_shared_is_as_without_offset(parallel_trace):
    path, _, _ = parallel_trace
    options = {"changes": ["cpu.cores=8"], "replicate": 2}
    whole = cpu.replay(path, shared=["0-0xffffffffffffffff"], **options)
    assert whole.cycles == cpu.replay(path, offset=False, **options).cycles


def test_tasks_on_any_scheduler(task_trace, tmp_path):
    path, summary = task_trace
    assert summary.tasks > 10
    with cpu.Trace(path) as trace:
        tasks = trace.columns["stream.subject"][trace.columns["stream.is_task"] != 0].tolist()
        assert trace.task_stream(tasks[3]) >= 4
        trace.check()
    work = set()
    for scheduler in ("recorded", "fifo", "work_stealing", "locality", "critical_path"):
        result = cpu.replay(path, scheduler=scheduler)
        assert result.value("trace", "tasks") == len(tasks)
        work.add(result.instructions)
    assert len(work) == 1
    write_task_assignments(tmp_path / "assignments", [(task, 2) for task in tasks])
    result = cpu.replay(path, scheduler="task2core", task2core=tmp_path / "assignments")
    assert result.instructions in work
    runs = result.task_runs
    assert sorted(runs["task"]) == sorted(tasks)
    assert set(runs["core"]) == {2}
    assert (runs["begin"] <= runs["end"]).all()


def test_task_assignments_are_read(tmp_path):
    path = tmp_path / "assignments"
    path.write_text("# task core\n3 0\n4,1\n\n5: 2  # the last\n")
    assert read_task_assignments(path) == [(3, 0), (4, 1), (5, 2)]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("3\n", "line 1"),
        ("1 2\nx 3\n", "line 2"),
        ("1 2\n1 3\n", "before"),
        ("1 99999999\n", "out of bounds"),
    ],
)
def test_bad_task_assignments(tmp_path, text, what):
    path = tmp_path / "assignments"
    path.write_text(text)
    with pytest.raises(InputError, match=what):
        read_task_assignments(path)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"replicate": 3, "cores": 4}, "3 copies"),
        ({"scheduler": "fastest"}, "no scheduler"),
        ({"scheduler": "task2core"}, "needs a list"),
        ({"task2core": [(0, 0)]}, "needs a list"),
        ({"shared": ["everything"]}, "range of addresses"),
        ({"shared": [(5, 5)]}, "empty"),
        ({"cores": 1000}, "cores"),
        ({"overheads": {"barier_latency": 5}}, "barrier_latency"),
        ({"overheads": {"barrier_latency": "-1ns"}}, "barrier_latency"),
        ({"machine": "nowhere"}, "nowhere"),
    ],
)
def test_what_cannot_be_replayed(parallel_trace, options, what):
    with pytest.raises(ManyscaleError, match=what):
        cpu.replay(parallel_trace[0], **options)


def test_a_recording_that_fails_leaves_no_file(tmp_path):
    """The program's first instruction is none."""
    program, path = tmp_path / "illegal", tmp_path / "a.trace"
    program.write_bytes(Elf([Segment(CODE, bytes(16), READ | EXECUTE)], CODE).encoded())
    for functional in (False, True):
        with pytest.raises(ProgramError):
            cpu.record(program, path, machine=MACHINE, cores=1, functional=functional)
        assert not path.exists()


def test_a_full_disk_is_named(binaries, tmp_path, monkeypatch):
    """What the file says reaches the user, not what the run made of it."""

    def refuse(self, *pieces):
        raise InputError(f"cannot write {self.path}: No space left on device")

    program = cpu.Program(binaries["c"], ["triad", "30000", "2"])
    original = TraceWriter.__init__

    def begin(self, *given, **named):
        original(self, *given, **named)
        monkeypatch.setattr(TraceWriter, "_write", refuse)

    monkeypatch.setattr(TraceWriter, "__init__", begin)
    monkeypatch.setattr(trace_file, "CHUNK_BYTES", 1000)
    with pytest.raises(InputError, match="No space left"):
        cpu.record(program, tmp_path / "a.trace", machine=MACHINE, cores=1)


def rewritten(source, target, change):
    """A trace with other blocks and right check sums."""
    reader = TraceReader(source)
    writer = TraceWriter(target, reader.header, force=True)
    columns = {
        name: reader.columns[name]
        for name in COLUMN_TYPES
        if not name.startswith(("chunk.", "block.", "part."))
    }
    for stream in range(len(reader.columns["stream.subject"])):
        for number, row in enumerate(reader.blocks(stream)):
            nodes = int(reader.columns["block.nodes"][row])
            writer.add(stream, number, nodes, nodes, change(reader.block(stream, number)))
    writer.finish(reader.facts, columns)
    reader.close()
    return target


def replays_or_refuses(path):
    """Whether a trace can be replayed; every other end than a result must be an error for people."""
    try:
        cpu.replay(path)
    except ManyscaleError:
        return False
    return True


def test_hostile_blocks(tmp_path, task_trace):
    """Any bytes in blocks: a replay ends, or says why not."""
    source = random.Random(8)

    def damage(content):
        changed = bytearray(content)
        for _ in range(source.randrange(3)):
            changed[source.randrange(len(changed))] = source.randrange(256)
        return bytes(changed)

    ends = [replays_or_refuses(rewritten(task_trace[0], tmp_path / "a.trace", damage)) for _ in range(20)]
    assert not all(ends)


def test_hostile_nodes(tmp_path, task_trace):
    """Right blocks of wrong nodes: unknown teams and tasks, locks that nobody holds, threads that do not end."""
    source = random.Random(9)
    system = 16

    def damage(content):
        columns = cpu.trace.columns_of(_core.cpu_decode_block(content))
        columns = {name: column.copy() for name, column in columns.items()}
        for at in np.flatnonzero(columns["kind"] == system):
            if source.random() < 0.02:
                columns["size"][at] = source.randrange(len(_core.cpu_sync_kinds()))
            if source.random() < 0.02:
                columns["address"][at] = source.choice([0, 1, 7, 2**32, 2**64 - 1])
            if source.random() < 0.02:
                columns["kind"][at] = source.choice([0, 9, 10, 13])
        return trace_samples.block(columns)

    ends = [replays_or_refuses(rewritten(task_trace[0], tmp_path / "a.trace", damage)) for _ in range(20)]
    assert not all(ends)


def test_a_damaged_chunk_is_named_in_a_replay(parallel_trace, tmp_path):
    content = bytearray(parallel_trace[0].read_bytes())
    with cpu.Trace(parallel_trace[0]) as trace:
        offset = int(trace.columns["chunk.offset"][0])
    content[offset + 100] ^= 1
    path = tmp_path / "damaged.trace"
    path.write_bytes(content)
    with pytest.raises(cpu.TraceError, match="check sum") as raised:
        cpu.replay(path)
    assert raised.value.offset == offset


def test_commands(binaries, tmp_path):
    """Record, look, replay, and the same with gem5's format in between."""
    trace, runner = str(tmp_path / "a.trace"), CliRunner()

    def invoke(*arguments):
        result = runner.invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.output
        return result.stdout

    given = ["cpu", "record", binaries["c"], "-m", MACHINE, "-o", trace, "--json", "--", "triad", "500", "2"]
    recorded = json.loads(invoke(*given))
    given.insert(2, "--force")
    every = json.loads(invoke(*given[:2], "--filter-l1", "0", *given[2:]))
    assert every["instructions"] == recorded["instructions"]
    assert every["nodes"] > recorded["nodes"]
    recorded = json.loads(invoke(*given))
    assert recorded["bytes_per_instruction"] == recorded["bytes"] / recorded["instructions"]
    shown = json.loads(invoke("cpu", "trace", trace, "--check", "--json"))
    assert shown["instructions"] == recorded["instructions"]
    replayed = json.loads(invoke("cpu", "replay", trace, "--out", tmp_path / "run", "--json"))
    assert replayed["instructions"] == recorded["instructions"]
    assert (tmp_path / "run" / "run.json").exists()
    invoke("cpu", "export-gem5", trace, "-o", tmp_path / "gem5")
    pair = [tmp_path / "gem5" / f"core0.{kind}.gz" for kind in ("data", "inst")]
    imported = invoke("cpu", "import-gem5", pair[0], "--fetch", pair[1], "-o", tmp_path / "b.trace", "--json")
    assert json.loads(imported)["threads"] == 1
    again = invoke("cpu", "replay", tmp_path / "b.trace", "-m", MACHINE, "--out", tmp_path / "run2", "--json")
    assert json.loads(again)["instructions"] == pytest.approx(recorded["instructions"], rel=0.01)
    refused = runner.invoke(
        app, ["cpu", "record", str(binaries["c"]), "-o", str(tmp_path / "no" / "a.trace")]
    )
    assert refused.exit_code != 0


def test_accesses_that_hit_any_l1_cache_are_compacted(tmp_path):
    program = cpu.Program(cpu.sample("elastic"), ["matrix", "1", "16"])
    every, compacted = tmp_path / "every.trace", tmp_path / "compacted.trace"
    all_kept = cpu.record(program, every, machine=MACHINE, cores=1, filter_l1=0)
    few_kept = cpu.record(program, compacted, machine=MACHINE, cores=1)
    assert few_kept.instructions == all_kept.instructions
    assert few_kept.nodes < 0.8 * all_kept.nodes
    times = [cpu.replay(trace).cycles for trace in (every, compacted)]
    assert times[1] == pytest.approx(times[0], rel=0.08)
    # A hit that takes longer shows in both.
    slower = [cpu.replay(trace, changes=["memory.l1.data_latency=8"]).cycles for trace in (every, compacted)]
    assert slower[0] > 1.02 * times[0]
    assert slower[1] / times[1] == pytest.approx(slower[0] / times[0], rel=0.1)
    with pytest.raises(InputError, match="record it with filter_l1=4096"):
        cpu.replay(compacted, changes=["memory.l1.size=4KiB"])
    for wrong in (-1, "2GiB", "4"):
        with pytest.raises(InputError, match="filter_l1"):
            cpu.record(program, tmp_path / "wrong.trace", machine=MACHINE, cores=1, filter_l1=wrong)


def test_a_machine_has_to_state_what_openmp_takes(tmp_path):
    resolved = load_machine(MACHINE)
    cpu_section = resolved.machine.cpu
    without = resolved.machine.model_copy(update={"cpu": cpu_section.model_copy(update={"openmp": None})})
    with pytest.raises(InputError, match=r"there is no section \[cpu.openmp\]"):
        cpu.record(cpu.sample("heat"), tmp_path / "x.trace", machine=ResolvedMachine(without, {}), cores=1)


def test_what_openmp_takes_is_the_machines_where_a_run_has_no_time(tmp_path):
    changes = ["cpu.openmp.barrier=777"]
    program = cpu.Program(cpu.sample("heat"), ["2", "8", "1"])
    path = tmp_path / "functional.trace"
    cpu.record(program, path, machine=MACHINE, cores=2, functional=True, changes=changes)
    with cpu.Trace(path) as trace:
        cycle = 10**15 // trace.header.clock
        assert trace.overheads["barrier_latency"] == 777 * cycle
        assert trace.overheads["fork_latency"] == 1000 * cycle
