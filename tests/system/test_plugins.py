# SPDX-License-Identifier: Apache-2.0
"""Plug-ins: every kind has names and docs, and one from outside the tree works like those in it.

The templates of `manyscale new` are compiled into one library, once, and loaded by a process of its own. The same
policy in C++ and in Python gives the same statistics, to the bit.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from manyscale import plugins
from manyscale.cli.app import main
from manyscale.errors import InputError

pytestmark = pytest.mark.core

KINDS = {
    "topology": "my_ring",
    "routing": "my_two",
    "collective": "my_token",
    "mpi-library": "my_mpi",
    "replacement": "my_fifo",
    "prefetcher": "my_next",
}

SCRIPT = """
import json
from manyscale import System, network, plugins

tree = ['network.topology.shape="4,4:4"', 'network.topology.roots=0']


def memory(**caches):
    system = System("memory")
    given = {"pattern": "random", "accesses": 3000, "footprint": "256KiB", "writes": 0.3, **caches}
    core = system.add("memory.generator", "core", **given)
    dram = system.add("memory.dram", "dram", backend="simple")
    system.connect(core.memory, dram.requests, latency="5ns")
    result = system.run()
    return [list(row) for row in zip(result.columns["statistic"], result.columns["value"])]


def walk(kind):
    return memory(pattern="stream", prefetcher={"kind": kind})


def job(work, topology, changes=(), **parameters):
    result = network.run(work, machine="omnipath", nodes=16, topology=topology, changes=list(changes), **parameters)
    return [result.messages, result.simulated_seconds]


print(json.dumps({
    "names": {kind: sorted(plugins.plugins(kind)) for kind in plugins.kinds()},
    "parameters": [row["name"] for row in plugins.find("topology", "my_ring").parameters],
    "ring": job("pingpong", "my_ring", ["network.topology.stride=0"]),
    "torus": job("pingpong", None, ['network.topology.kind="torus"', 'network.topology.shape="16"']),
    "chords": job("alltoall", "my_ring", ["network.topology.stride=4"]),
    "no chords": job("alltoall", "my_ring", ["network.topology.stride=0"]),
    "two": job("alltoall", None, [*tree, 'network.routing.algorithm="my_two"']),
    "ecmp": job("alltoall", None, [*tree, 'network.routing.algorithm="ecmp"']),
    "my library": job("allreduce", "fat-tree", ['network.mpi.collectives="my_mpi"'], iterations=1, bytes="8B"),
    "its rings": job("allreduce", "fat-tree", ['network.mpi.collectives="my_mpi"'], iterations=1, bytes="1MiB"),
    "token": job("allreduce", "fat-tree", algorithm="my_token", iterations=1),
    "fifo": memory(l1={"replacement": "my_fifo"}),
    "python fifo": memory(l1={"replacement": "py_fifo"}),
    "lru": memory(l1={"replacement": "lru"}),
    "next": walk("my_next"),
    "python next": walk("py_next"),
    "none": walk("none"),
}))
"""


@pytest.fixture(scope="module")
def outside(tmp_path_factory) -> dict[str, object]:
    """What a process sees that loads one plug-in of each kind from outside the tree."""
    if shutil.which(os.environ.get("CXX", "c++")) is None:
        pytest.skip("there is no C++ compiler")
    folder = tmp_path_factory.mktemp("plugins")
    for kind, name in KINDS.items():
        assert main(["new", kind, name, "--into", str(folder), "--quiet"]) == 0
    for kind, name in {"replacement": "py_fifo", "prefetcher": "py_next"}.items():
        assert main(["new", kind, name, "--language", "python", "--into", str(folder), "--quiet"]) == 0
    sources = sorted(folder.glob("*.cpp"))
    assert len(sources) == len(KINDS)
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", environment["XDG_CACHE_HOME"])
        library = plugins.compile_library(sources)
        stamp = library.stat().st_mtime_ns
        assert plugins.compile_library(sources).stat().st_mtime_ns == stamp  # from the cache
    environment[plugins.VARIABLE] = os.pathsep.join(
        [str(library), str(folder / "py_fifo.py"), str(folder / "py_next.py")]
    )
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_all_kinds_are_listed_with_those_from_outside(outside):
    names = outside["names"]
    assert "my_ring" in names["topology"]
    assert "torus" in names["topology"]
    assert {"my_two", "ecmp"} <= set(names["routing algorithm"])
    assert "allreduce.my_token" in names["collective algorithm"]
    assert {"my_mpi", "openmpi"} <= set(names["MPI library"])
    assert {"my_fifo", "py_fifo", "lru"} <= set(names["replacement policy"])
    assert {"my_next", "py_next", "stream"} <= set(names["prefetcher"])


def test_a_topology_from_outside_declares_its_parameters(outside):
    assert outside["parameters"] == ["switches", "stride"]
    assert outside["ring"] == outside["torus"]  # neighbours are as far apart on both
    assert outside["chords"][1] < outside["no chords"][1]


def test_a_routing_algorithm_from_outside_selects_paths(outside):
    messages, seconds = outside["two"]
    assert messages == outside["ecmp"][0]
    assert 0 < seconds != outside["ecmp"][1]


def test_an_mpi_library_from_outside_chooses_algorithms(outside):
    """Linear: to the root and back. A ring of n members has 2 n (n - 1) messages."""
    assert outside["my library"][0] == 2 * 15
    assert outside["its rings"][0] == 2 * 16 * 15


def test_a_collective_from_outside_runs(outside):
    messages, seconds = outside["token"]
    assert messages == 2 * 16 - 1
    assert seconds > 0


def test_policies_in_python_and_in_cpp_give_the_same_statistics(outside):
    assert outside["fifo"] == outside["python fifo"] != outside["lru"]
    assert outside["next"] == outside["python next"] != outside["none"]


SCHEDULER = """
#include "gpu/sm/warp_scheduler.hpp"
namespace {
struct Mine final : manyscale::gpu::WarpScheduler {
  Rank rank() const override {
    return [](const Eligible& warp) -> std::uint64_t { return warp.warp + std::uint64_t{1}; };
  }
};
const manyscale::Registered<Mine> registered{"NAME", "One of several libraries."};
}  // namespace
"""
LOADED = """
import sys
from manyscale import plugins
for file in sys.argv[1:]:
    plugins.load_plugin(file)
found = plugins.plugins("warp scheduler").items()
print(*(name for name, plugin in found if plugin.doc == "One of several libraries."))
"""


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_several_libraries_are_loaded_one_after_the_other(tmp_path: Path):
    files = [tmp_path / f"{name}.cpp" for name in ("first", "second", "third")]
    for file in files:
        file.write_text(SCHEDULER.replace("NAME", file.stem), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *map(str, files)], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["first", "second", "third"], done.stderr


def test_every_plugin_has_a_name_and_a_sentence():
    kinds = plugins.kinds()
    assert {"model", "topology", "collective algorithm", "replacement policy", "prefetcher"} <= set(kinds)
    for kind in kinds:
        for plugin in plugins.plugins(kind).values():
            assert plugin.doc.endswith("."), plugin
            assert plugin.doc[0].isupper(), plugin
            assert all(row["doc"] for row in plugin.parameters), plugin


def test_the_command_lists_a_kind(capsys):
    assert main(["plugins", "topology", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == sorted(plugins.plugins("topology"))
    assert main(["plugins", "topolgy"]) != 0
    assert "did you mean 'topology'?" in capsys.readouterr().err


def test_wrong_plugins_are_refused_in_words(tmp_path: Path):
    with pytest.raises(InputError, match="there is no plug-in file"):
        plugins.load_plugin(tmp_path / "missing.py")
    broken = tmp_path / "broken.cpp"
    broken.write_text("this is no C++\n")
    with pytest.raises(InputError, match="does not compile"):
        plugins.load_plugin(broken)
    taken = tmp_path / "taken.py"
    taken.write_text(
        "from manyscale.plugins import register\n\n"
        '@register("prefetcher", "stream", "Is there already.")\n'
        "class Taken:\n    pass\n"
    )
    with pytest.raises(InputError, match="there is already a prefetcher 'stream'"):
        plugins.load_plugin(taken)
    model = tmp_path / "model.py"
    model.write_text(taken.read_text().replace('"prefetcher"', '"topology"'))
    with pytest.raises(InputError, match="a topology cannot be written in Python"):
        plugins.load_plugin(model)
    with pytest.raises(InputError, match="there is no topology 'toruss'; did you mean 'torus'"):
        plugins.find("topology", "toruss")
