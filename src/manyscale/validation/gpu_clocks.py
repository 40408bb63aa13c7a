# SPDX-License-Identifier: Apache-2.0
"""What faster clocks are worth to a hydrodynamics code: the SMs' and the memory's, as the SST-GPU report varies them.

The report runs LULESH at size 22; here it is a code of our own whose kernels do the same kind of work
(`kernels/lulesh_like.cu`). As in the report's model, the L2 follows the SMs' clock, and the crossbar keeps its own.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from manyscale.errors import ManyscaleError
from manyscale.gpu import DeviceArray, TimedDevice, TimedLaunch, parse
from manyscale.gpu.isa import Isa
from manyscale.machine import Machine, load_machine
from manyscale.validation import sst_gpu_programs
from manyscale.validation.gpu_programs import checked_folder
from manyscale.validation.gpu_target import GpuTarget
from manyscale.validation.rows import Row

SM_CLOCKS = (500, 1312, 1800)  # MHz
MEMORY_CLOCKS = (877, 1200, 1600)  # MHz

_PTX = Path(__file__).parent / "kernels" / "lulesh_like.ptx"
_SOURCE = "SST-GPU final report, Section C.6: its own simulations"
_EDGE = 22  # cells

_CORNERS = 8
_BLOCK = 128
_DAMPING_BLOCK = 256
_REGION_COSTS = (1, 1, 2, 10)  # repetitions of the equation of state in each of as many regions
_CONSERVED = 1e-12  # of what cancels, the largest that may be left

Numbers = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int32]


def rows(
    machine: str = "v100-sst",
    isa: Isa = "auto",
    programs: Path | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> list[Row]:
    """How much faster the code gets with faster SMs, and with faster memory where that helps most.

    With a folder of programs that has it, also LULESH itself.
    """
    found = _speedups("", lambda sms, memory: step_seconds(machine, sms, memory, isa=isa))
    if programs is not None and sst_gpu_programs.is_there(
        checked_folder(programs, "gpu-clocks"), sst_gpu_programs.LULESH, say
    ):
        found += _speedups(
            "LULESH, edge 22: ",
            lambda sms, memory: sst_gpu_programs.lulesh_seconds(
                programs, machine, isa, _changes(machine, sms, memory)
            ),
        )
    return found


def _speedups(title: str, seconds: Callable[[int, int], float]) -> list[Row]:
    slow, usual, fast = (seconds(clock, MEMORY_CLOCKS[0]) for clock in SM_CLOCKS)
    fast_memory = seconds(SM_CLOCKS[0], MEMORY_CLOCKS[-1])
    return [
        Row(f"{title}SM clock 500 to 1312 MHz", slow / usual, 2.5, "times faster", _SOURCE),
        Row(f"{title}SM clock 1312 to 1800 MHz", usual / fast, 1.3, "times faster", _SOURCE),
        Row(f"{title}memory clock 877 to 1600 MHz", slow / fast_memory, 1.04, "times faster", _SOURCE),
    ]


def step_seconds(
    machine: str, sm_clock: int, memory_clock: int, edge: int = _EDGE, isa: Isa = "auto"
) -> float:
    """Simulated seconds of a step that finds in the caches what the step before has left; clocks in MHz."""
    blast = Blast(GpuTarget(_clocked(machine, sm_clock, memory_clock), isa).device(), edge)
    blast.step()
    return blast.step()


def _clocked(machine: str, sm_clock: int, memory_clock: int) -> Machine:
    return load_machine(machine, _changes(machine, sm_clock, memory_clock)).machine


def _changes(machine: str, sm_clock: int, memory_clock: int) -> list[str]:
    overrides = [f"gpu.clock={sm_clock}MHz", f"gpu.memory.clock={memory_clock}MHz"]
    gpu = load_machine(machine).machine.gpu
    if gpu is not None and gpu.clock is not None and gpu.l2 is not None:
        l2_clock = gpu.l2.model_dump().get("clock")
        if l2_clock is not None:
            overrides.append(f"gpu.l2.clock={l2_clock * sm_clock * 10**6 // gpu.clock}Hz")
    return overrides


class Blast:
    """A cube of gas with much energy in the cell at its corner, on a simulated GPU."""

    def __init__(self, device: TimedDevice, edge: int) -> None:
        self._device = device
        self._kernels = device.load(parse(_PTX, portable=True))
        self.cells, self.nodes = edge**3, (edge + 1) ** 3
        self._ctas_of_cells, self._ctas_of_nodes = -(-self.cells // _BLOCK), -(-self.nodes // _BLOCK)
        self._time_step = 1e-4
        corners = _corners(edge)
        self._corners = device.array(corners)
        self._first, self._corners_of_nodes = (
            device.array(part) for part in _corners_of_nodes(corners, self.nodes)
        )
        self._neighbours = device.array(_neighbours(edge))
        self._held = device.array(_held(edge))
        self._regions = [device.array(members) for members in _regions(self.cells)]
        self.positions = [device.array(axis) for axis in _positions(edge)]
        self.velocities = [self._zeros(self.nodes) for _ in range(3)]
        self.forces = [self._zeros(self.nodes) for _ in range(3)]
        self._pushes, self._damps = ([self._zeros(_CORNERS * self.cells) for _ in range(3)] for _ in range(2))
        size = float(edge) ** -3
        self.volumes = self._full(self.cells, size)
        self._initial_volumes, self._masses = self._full(self.cells, size), self._full(self.cells, size)
        share = np.bincount(corners.ravel(), minlength=self.nodes) * size / _CORNERS
        self.node_masses = device.array(share)
        energies = np.full(self.cells, 1e-3)
        energies[0] = 10.0
        self.energies = device.array(energies)
        self._pressures, self._sounds = self._full(self.cells, 1e-3), self._full(self.cells, 1e-2)
        self._viscosities, self._rates, self._lengths = (self._zeros(self.cells) for _ in range(3))
        self._resistances = [self._zeros(self.cells) for _ in range(2)]
        self._gradients = self._zeros(3 * self.cells)
        self._limits, self._limit = self._zeros(self._ctas_of_cells), self._zeros(1)
        self._seconds = 0.0

    def step(self) -> float:
        """One step of the code; what is returned are the simulated seconds of its kernels."""
        self._seconds = 0.0
        cells, nodes, time_step = self.cells, self.nodes, self._time_step
        position, speed = self.positions, self.velocities
        of_cells, of_nodes = self._ctas_of_cells, self._ctas_of_nodes
        stress = (self._pressures, self._viscosities)
        self._run("push_corners", of_cells, cells, self._corners, *position, *stress, *self._pushes)
        threads = _CORNERS * cells
        about = (self.volumes, self._sounds, self._masses)
        self._run(
            *("damp_corners", -(-threads // _DAMPING_BLOCK), cells, self._corners),
            *(*position, *speed, *about, *self._damps),
            block=_DAMPING_BLOCK,
        )
        lists = (self._first, self._corners_of_nodes)
        self._run("sum_forces", of_nodes, nodes, *lists, *self._pushes, *self._damps, *self.forces)
        self._check_forces()
        self._run("accelerate", of_nodes, nodes, self._held, self.node_masses, *self.forces)
        self._run("change_velocity", of_nodes, nodes, time_step, *self.forces, *speed)
        self._run("move_nodes", of_nodes, nodes, time_step, *speed, *position)
        changes = (self.volumes, self._rates, self._lengths, self._gradients)
        self._run("follow_cells", of_cells, cells, time_step, self._corners, *position, *speed, *changes)
        shock = (self._gradients, self._rates, self.volumes, self._lengths, self._masses)
        self._run("resist_shocks", of_cells, cells, self._neighbours, *shock, *self._resistances)
        volumes = (self.volumes, self._initial_volumes, self._rates, *self._resistances)
        state = (self.energies, self._pressures, self._viscosities, self._sounds)
        for members, cost in zip(self._regions, _REGION_COSTS, strict=True):
            self._run(
                *("equation_of_state", -(-members.size // _BLOCK), members.size, members, cost, time_step),
                *(*volumes, *state),
            )
        self._run("limit_step", of_cells, cells, self._lengths, self._sounds, self._rates, self._limits)
        self._run("least_limit", 1, of_cells, self._limits, self._limit)
        self._check_cells()
        self._time_step = min(float(self._limit.numpy()[0]), 1.1 * time_step)
        return self._seconds

    def _run(self, kernel: str, grid: int, *arguments: DeviceArray | float, block: int = _BLOCK) -> None:
        launch = self._kernels[kernel][grid, block](*arguments)
        assert isinstance(launch, TimedLaunch)
        self._seconds += launch.seconds

    def _check_forces(self) -> None:
        """What a cell does to one corner it does to the others in the opposite direction."""
        for force in self.forces:
            values = force.numpy()
            if not abs(values.sum()) <= _CONSERVED * np.abs(values).sum():
                raise ManyscaleError("hydrodynamics: the forces within the gas do not cancel")

    def _check_cells(self) -> None:
        if not np.isfinite(self.energies.numpy()).all() or not (self.volumes.numpy() > 0).all():
            raise ManyscaleError("hydrodynamics: a cell has turned inside out, or its energy is no number")

    def _zeros(self, count: int) -> DeviceArray:
        return self._device.zeros(count, np.float64)

    def _full(self, count: int, value: float) -> DeviceArray:
        return self._device.array(np.full(count, value))


def _grid(points: int) -> tuple[Indices, Indices, Indices]:
    """The three coordinates of the points of a cube, x fastest."""
    z, y, x = (axis.ravel().astype(np.int32) for axis in np.indices((points, points, points)))
    return x, y, z


def _positions(edge: int) -> list[Numbers]:
    """A cube of side 1 whose inner nodes are moved a little, so that no two cells are alike."""
    moved = np.random.default_rng(1)
    axes = []
    for axis in _grid(edge + 1):
        inside = (axis > 0) & (axis < edge)
        axes.append((axis + inside * 0.1 * (moved.random(axis.size) - 0.5)) / edge)
    return axes


def _corners(edge: int) -> Indices:
    """The node of each corner of each cell, by corner and cell."""
    x, y, z = _grid(edge)
    points = edge + 1
    rows = [
        (x + (corner & 1)) + points * ((y + (corner >> 1 & 1)) + points * (z + (corner >> 2)))
        for corner in range(_CORNERS)
    ]
    return np.array(rows, np.int32)


def _corners_of_nodes(corners: Indices, nodes: int) -> tuple[Indices, Indices]:
    """For each node where the corners that meet in it begin in a list, and that list."""
    flat = corners.ravel()
    first = np.concatenate(([0], np.cumsum(np.bincount(flat, minlength=nodes))))
    return first.astype(np.int32), np.argsort(flat, kind="stable").astype(np.int32)


def _neighbours(edge: int) -> Indices:
    """The cells across the faces of each cell, -1 where there is none."""
    axes = _grid(edge)
    cell = np.arange(edge**3, dtype=np.int32)
    found = []
    for axis, stride in zip(axes, (1, edge, edge * edge), strict=True):
        found += [np.where(axis > 0, cell - stride, -1), np.where(axis < edge - 1, cell + stride, -1)]
    return np.array(found, np.int32)


def _held(edge: int) -> npt.NDArray[np.uint32]:
    """The directions in which each node cannot move: out of the three faces at zero."""
    x, y, z = _grid(edge + 1)
    held: npt.NDArray[np.uint32] = np.uint32(1) * (x == 0) + np.uint32(2) * (y == 0) + np.uint32(4) * (z == 0)
    return held


def _regions(cells: int) -> list[Indices]:
    """The cells of each region, scattered over the cube."""
    shuffled = np.random.default_rng(2).permutation(cells).astype(np.int32)
    return [np.sort(part) for part in np.array_split(shuffled, len(_REGION_COSTS))]
