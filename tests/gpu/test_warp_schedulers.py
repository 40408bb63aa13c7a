# SPDX-License-Identifier: Apache-2.0
"""Warp schedulers are plug-ins: those of the tree, and one from a library outside of it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from manyscale import _core, gpu
from manyscale.errors import ManyscaleError
from manyscale.machine import load_machine

pytestmark = pytest.mark.core

CORE = Path(__file__).resolve().parents[2] / "core"
SMALL = ("gpu.sm_count=2", "gpu.l2_slices=4", "gpu.memory.channels_per_stack=1")

# Greedy then oldest again, by a rank of its own; and the warp in the last slot first.
OUTSIDE = """
#include "gpu/sm/warp_scheduler.hpp"
namespace {
using manyscale::gpu::WarpScheduler;
struct OldestByRank final : WarpScheduler {
  std::uint64_t priority(std::uint64_t age) const override { return ~age >> 1; }
  Rank rank() const override {
    return [](const Eligible& warp) -> std::uint64_t {
      if (warp.warp == warp.last) return warp.yields ? 0 : ~std::uint64_t{0};
      return warp.priority;
    };
  }
};
struct LastSlot final : WarpScheduler {
  Rank rank() const override {
    return [](const Eligible& warp) -> std::uint64_t { return warp.warp + std::uint64_t{1}; };
  }
};
const manyscale::Registered<OldestByRank> oldest{"outside_oldest", "The same, else the oldest, by rank."};
const manyscale::Registered<LastSlot> last{"outside_last_slot", "The warp in the last slot."};
}  // namespace
"""
KERNEL = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 data)
{
 .reg .b32 %r<8>; .reg .b64 %d<4>;
 ld.param.u64 %d1,[data];
 mov.u32 %r1,%ctaid.x; mov.u32 %r2,%ntid.x; mov.u32 %r3,%tid.x; mad.lo.s32 %r1,%r1,%r2,%r3;
 mul.wide.u32 %d2,%r1,4; add.s64 %d3,%d1,%d2;
 ld.global.u32 %r4,[%d3]; mad.lo.s32 %r4,%r4,%r4,%r1; mad.lo.s32 %r4,%r4,%r4,%r1; mad.lo.s32 %r4,%r4,%r4,%r1;
 ld.global.u32 %r5,[%d3+65536]; add.s32 %r4,%r4,%r5; mul.lo.s32 %r4,%r4,%r4; st.global.u32 [%d3],%r4;
 ret;
}
"""


def counts(scheduler: str) -> dict[str, int]:
    machine = load_machine("v100", [*SMALL, f"gpu.sm.scheduler={scheduler}"]).machine
    on = gpu.TimedDevice(machine)
    launch = on.load(KERNEL)["k"][64, 256](on.zeros(64 * 256 * 2, np.uint32))
    return {"cycles": launch.cycles, **launch.profile.counts.sm}


@pytest.fixture(scope="module")
def _outside(tmp_path_factory: pytest.TempPathFactory) -> None:
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "schedulers.cpp").write_text(OUTSIDE, encoding="utf-8")
    library = folder / "schedulers.so"
    command = [
        compiler,
        "-std=c++20",
        "-O1",
        "-shared",
        "-fPIC",
        f"-I{CORE}",
        "-include",
        "engine/plugin_export.hpp",
    ]
    subprocess.run([*command, "-o", str(library), str(folder / "schedulers.cpp")], check=True)
    _core.load_plugin_library(str(library))


def test_the_schedulers_of_the_tree_are_listed() -> None:
    listed = _core.plugins()["warp scheduler"]
    assert {"gto", "gty", "lrr"} <= set(listed)
    assert all(entry["doc"].endswith(".") for entry in listed.values())


def test_schedulers_differ_in_time_and_not_in_instructions() -> None:
    found = {name: counts(name) for name in ("gto", "gty", "lrr")}
    assert len({each["issued_instructions"] for each in found.values()}) == 1
    assert len({each["stall_not_selected"] for each in found.values()}) == 3


def test_an_unknown_scheduler_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ManyscaleError, match=r"no warp scheduler 'oldest'; there are gto, gty, lrr"):
        counts("oldest")


@pytest.mark.usefixtures("_outside")
def test_a_scheduler_from_outside_runs_by_its_name() -> None:
    assert counts("outside_oldest") == counts("gto")
    last = counts("outside_last_slot")
    assert last["issued_instructions"] == counts("gto")["issued_instructions"]
    assert last["stall_not_selected"] != counts("gto")["stall_not_selected"]
