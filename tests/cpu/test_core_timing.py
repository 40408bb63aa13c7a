# SPDX-License-Identifier: Apache-2.0
"""The time of RISC-V loops on each machine, from program to cycles, against closed forms.

A loop runs n times and 2n times; the difference over n is what an iteration takes when caches and predictors are warm.
Latencies and widths in the closed forms are read from the machine's description, not from the simulator.
"""

from pathlib import Path

import pytest
from riscv import encoding as e
from riscv.code import call, constant
from riscv.elf import DATA, small_elf

from manyscale import InputError, cpu
from manyscale.machine import load_machine
from manyscale.machine.cpu_system import build_cpu

pytestmark = pytest.mark.core

MACHINES = ["broadwell", "nehalem", "boom"]
REPEATS = 16  # of the body in an iteration
EXIT = call(93, 0)


def core_spec(machine: str, changes: tuple[str, ...] = ()):
    """What a core of the machine is told, with defaults."""
    return build_cpu(load_machine(machine, changes).machine, 1).cores[0].spec


def iterations(n: int, body: list[e.Instruction], before: list[e.Instruction]) -> list[e.Instruction]:
    """A loop that runs the body n times, its counter in x5."""
    back = -sum(each.size for each in body) - 4
    loop = [*body, e.immediate("addi", 5, 5, -1), e.branch("bne", 5, 0, back)]
    return [*constant(8, DATA), *before, *constant(5, n), *loop, *EXIT]


def cycles_of_iteration(
    folder: Path,
    machine: str,
    body: list[e.Instruction],
    before: list[e.Instruction] | None = None,
    changes: tuple[str, ...] = (),
    n: int = 200,
    data: int = 4096,
) -> float:
    """What an iteration of a loop takes in the long run."""
    cycles = []
    for count in (n, 2 * n):
        path = folder / f"loop{count}"
        path.write_bytes(small_elf(iterations(count, body, before or []), bytes(data)).encoded())
        cycles.append(cpu.run(str(path), machine=machine, changes=changes, cores=1).cycles)
    return (cycles[1] - cycles[0]) / n


def longest(spec, body: list[e.Instruction], chain: int) -> float:
    """The cycles of an iteration: its chain, or all its instructions through the narrowest stage."""
    width = min(spec.fetch_width, spec.dispatch_width, spec.commit_width)
    return max(chain, (len(body) + 2) / width)


CHAINS = {
    "integer": e.register("add", 6, 6, 6),
    "multiply": e.register("mul", 6, 6, 6),
    "divide": e.register("divu", 6, 6, 7),
    "float_add": e.float_two("fadd", True, 6, 6, 7, 0),
    "float_multiply": e.float_two("fmul", True, 6, 6, 7, 0),
    "float_fused": e.float_fused("fmadd", True, 6, 6, 7, 7, 0),
    "float_divide": e.float_two("fdiv", True, 6, 6, 7, 0),
    "float_divide_single": e.float_two("fdiv", False, 6, 6, 7, 0),
    "float_root": e.conversion("fsqrt.d", 6, 6, 0),
}


@pytest.mark.parametrize("kind", CHAINS)
@pytest.mark.parametrize("machine", MACHINES)
def test_a_chain_takes_the_latency_of_each(machine: str, kind: str, tmp_path: Path) -> None:
    """cycles = repeats x latency"""
    spec = core_spec(machine)
    body = [CHAINS[kind]] * REPEATS
    expected = longest(spec, body, REPEATS * getattr(spec.timing, kind).latency)
    assert cycles_of_iteration(tmp_path, machine, body) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("machine", [*MACHINES, "dibona"])
def test_divisions_keep_their_unit_busy(machine: str, tmp_path: Path) -> None:
    """Eight chains side by side, planned far ahead: cycles = divisions x interval, or the chain's latency"""
    spec = core_spec(machine)
    body = [e.register("divu", 10 + i % 8, 10 + i % 8, 7) for i in range(64)]
    timing = spec.timing.divide
    expected = max(len(body) * timing.interval, len(body) / 8 * timing.latency)
    assert cycles_of_iteration(tmp_path, machine, body, n=40) == pytest.approx(expected, rel=0.005)


@pytest.mark.parametrize("cache", ["memory.l1", "memory.l2", "cpu.core.l1i"])
def test_ports_of_a_cores_caches_are_refused(cache: str) -> None:
    """What begins in a cycle is said by the core's issue ports, so a number here would mean nothing."""
    with pytest.raises(InputError, match=rf"{cache.rpartition('.')[2]}\.ports: .*leave it out"):
        core_spec("broadwell", (f"{cache}.ports=2",))


def test_a_quantum_is_no_longer_than_the_cycles_that_ports_know() -> None:
    """A core's ports keep the next 1024 cycles; half of those may lie ahead. At 2 GHz these are 256 ns."""
    with pytest.raises(InputError, match=r"quantum: at most 512 cycles .* 256 ns"):
        core_spec("elasticsimmate", ("cpu.core.quantum=257ns",))
    assert core_spec("elasticsimmate", ("cpu.core.quantum=256ns",)).quantum == 256 * 10**6


@pytest.mark.parametrize("machine", MACHINES)
def test_a_chain_of_loads_takes_the_l1_latency(machine: str, tmp_path: Path) -> None:
    """A pointer to itself: cycles = repeats x (latency before the access + tags + data)"""
    spec = core_spec(machine)
    before = [e.store("sd", 8, 8, 0), e.immediate("addi", 6, 8, 0), *[e.immediate("addi", 0, 0, 0)] * 300]
    body = [e.load("ld", 6, 6, 0)] * REPEATS
    latency = spec.timing.load.latency + spec.l1.tag_latency + spec.l1.data_latency
    expected = longest(spec, body, REPEATS * latency)
    assert cycles_of_iteration(tmp_path, machine, body, before) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_value_through_memory_takes_the_forwarding_latency(machine: str, tmp_path: Path) -> None:
    """Load, add, store to one address: cycles = repeats x (forwarding + addition)"""
    spec = core_spec(machine)
    body = [e.load("ld", 6, 8, 0), e.immediate("addi", 6, 6, 1), e.store("sd", 6, 8, 0)] * REPEATS
    found = cycles_of_iteration(tmp_path, machine, body)
    assert found == pytest.approx(REPEATS * (spec.forward_latency + spec.timing.integer.latency), rel=0.02)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize("where", ["fetch_width", "dispatch_width", "commit_width", "issue_width"])
def test_independent_instructions_fill_the_width(where: str, width: int, tmp_path: Path) -> None:
    """No chain is longer than the loop is wide: cycles = instructions / width, or one more for the last group."""
    body = [e.immediate("addi", 10 + i % 8, 0, i) for i in range(46)]
    found = cycles_of_iteration(tmp_path, "broadwell", body, changes=(f"cpu.core.{where}={width}",))
    assert 48 / width <= found <= 48 / width + 1.01


@pytest.mark.parametrize("machine", ["broadwell", "nehalem"])
def test_a_mispredicted_branch_costs_the_way_back(machine: str, tmp_path: Path) -> None:
    """Every branch wrong: each costs its execution, the redirection and the front end again."""
    changes = ('cpu.core.branch.kind="always_wrong"',)
    spec = core_spec(machine)
    # Branches to the next instruction, one after the other.
    body = [e.branch("beq", 0, 0, 4)] * REPEATS
    found = cycles_of_iteration(tmp_path, machine, body, changes=changes)
    each = spec.mispredict_penalty + spec.front_end_depth + 1 + spec.timing.control.latency
    assert found == pytest.approx((REPEATS + 1) * each, abs=2)


@pytest.mark.parametrize(("reorder_buffer", "at_a_time"), [(16, 1), (64, 4), (128, 8)])
def test_the_window_limits_misses_side_by_side(reorder_buffer: int, at_a_time: int, tmp_path: Path) -> None:
    """Loads of new lines every 16 instructions: as many at a time as fit into the window."""
    line = 64
    load = [e.load("ld", 6, 8, 0), e.immediate("addi", 8, 8, line), *[e.immediate("addi", 10, 0, 1)] * 14]
    changes = (
        f"cpu.core.reorder_buffer={reorder_buffer}",
        "cpu.core.translation.enabled=false",
        "memory.prefetcher.kind=none",
        "cpu.core.first_prefetcher.kind=none",
    )
    n = 100

    def cycles(at_once: tuple[str, ...]) -> float:
        return cycles_of_iteration(
            tmp_path, "broadwell", load * 4, changes=at_once, n=n, data=n * 2 * 4 * line + 4096
        )

    one = cycles((*changes, "cpu.core.load_queue=1"))
    assert one / cycles(changes) == pytest.approx(at_a_time, rel=0.2)


def test_causes_add_up_to_the_cycles(binaries: dict[str, Path]) -> None:
    for which in (["c", "sort", "500"], ["parallel", "omp_triad", "4", "2000", "2"]):
        cores = 4 if which[0] == "parallel" else 1
        result = cpu.run(cpu.Program(binaries[which[0]], which[1:]), machine="broadwell", cores=cores)
        for core in range(cores):
            name = f"core[{core}]"
            causes = [
                value
                for component, statistic, value in zip(
                    result.columns["component"],
                    result.columns["statistic"],
                    result.columns["value"],
                    strict=True,
                )
                if component == name and statistic.startswith("cpi.")
            ]
            assert len(causes) == 17
            assert sum(causes) == result.value(name, "cycles")
