# SPDX-License-Identifier: Apache-2.0
"""Where ranks run and what networks look like: mappings, files of graphs, pictures."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyscale.errors import InputError
from manyscale.network import picture
from manyscale.network.graph_file import read_graph
from manyscale.network.mapping import map_ranks
from manyscale.results.line_chart import line_chart


def test_block_cyclic_and_random():
    assert map_ranks("block", 6, 3, 2).tolist() == [0, 0, 1, 1, 2, 2]
    assert map_ranks("cyclic", 6, 3, 2).tolist() == [0, 1, 2, 0, 1, 2]
    random = map_ranks("random", 100, 50, 2, seed=3)
    assert sorted(random.tolist()) == sorted(map_ranks("block", 100, 50, 2).tolist())
    assert random.tolist() != map_ranks("block", 100, 50, 2).tolist()
    assert random.tolist() == map_ranks("random", 100, 50, 2, seed=3).tolist()
    assert random.tolist() != map_ranks("random", 100, 50, 2, seed=4).tolist()


def test_a_mapping_in_a_file(tmp_path: Path):
    file = tmp_path / "map"
    file.write_text("# nodes\n2\n0  # the first\n\n1\n")
    assert map_ranks(str(file), 3, 3, 1).tolist() == [2, 0, 1]
    for text, message in [
        ("3\n", "line 1: expected a node from 0 to 2, got '3'"),
        ("0\nx\n", "line 2: expected a node"),
        ("0\n-1\n", "line 2: expected a node"),
        ("0\n0\n", "has nodes for 2 ranks, but there are 3"),
        ("0\n0\n0\n0\n", "line 4: there are only 3 ranks"),
        ("9" * 500, "line 1: expected a node"),
    ]:
        file.write_text(text)
        with pytest.raises(InputError, match=message):
            map_ranks(str(file), 3, 3, 1)
    with pytest.raises(InputError, match="is no mapping"):
        map_ranks("blok", 3, 3, 1)
    with pytest.raises(InputError, match="do not fit"):
        map_ranks("block", 7, 3, 2)


GRAPH = """\
switches 3   # a triangle
link 0 1
link 1 2 25GB/s
link 0 2 12.5GB/s 200ns
nodes 0 2
nodes 2
"""


def test_a_graph_in_a_file(tmp_path: Path):
    file = tmp_path / "graph"
    file.write_text(GRAPH)
    graph = read_graph(file, 10**9, 90 * 10**6)
    assert graph["switches"] == 3
    assert list(zip(graph["from"].tolist(), graph["to"].tolist(), strict=True)) == [(0, 1), (1, 2), (0, 2)]
    assert graph["bandwidth"].tolist() == [10**9, 25 * 10**9, 12_500_000_000]
    assert graph["latency"].tolist() == [90 * 10**6, 90 * 10**6, 200 * 10**6]
    assert graph["node_switch"].tolist() == [0, 0, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "needs 'switches N'"),
        ("switches 2\n", "at least one line of 'nodes'"),
        ("link 0 1\n", "line 1: there is no switch 0; 'switches N' must come first"),
        ("switches 2\nlink 0 2\n", "line 2: there is no switch 2; they are 0 to 1"),
        ("switches 2\nlink 1 1\n", "line 2: a link joins two different switches"),
        ("switches 2\nlink 0 1 fast\n", "line 2: 'fast' is not a bandwidth"),
        ("switches 2\nlink 0 1 1GB/s -1ns\n", "line 2: a link has a bandwidth"),
        ("switches 2\nswitches 2\n", "line 2: switches is said twice"),
        ("switches 2\nnodes 0 99999999999\n", "line 2: expected a whole number of at most 10,000,000"),
        ("switches 2\nhello\n", "line 2: expected 'switches N'"),
        ("switches many\n", "line 1: expected a whole number"),
    ],
)
def test_mistakes_in_graphs_name_their_line(text: str, message: str, tmp_path: Path):
    file = tmp_path / "graph"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_graph(file, 10**9, 0)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=100))
def test_no_file_breaks_the_reader(tmp_path_factory: pytest.TempPathFactory, data: bytes):
    file = tmp_path_factory.mktemp("graph") / "graph"
    file.write_bytes(GRAPH.encode()[:40] + data)
    try:
        graph = read_graph(file, 10**9, 0)
    except InputError:
        return
    assert graph["switches"] == 3


def test_a_picture_shows_every_switch_and_link():
    links = [picture.LinkLoad(0, 2, 0.0, "idle <&>"), picture.LinkLoad(1, 2, 1.0, "busy")]
    levels = picture.levels_of([0, 1, 2, 3], [0, 1], [(0, 2), (1, 2)])
    assert levels == [[0, 1], [2], [3]]
    text = picture.draw("a & b", picture.layered(levels), links, {0: 0.5, 1: 1.0})
    root = ElementTree.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    lines = root.findall(f"{space}line")
    assert [line.get("stroke") for line in lines] == ["#dee2e6", "#c92a2a"]
    assert [line.find(f"{space}title").text for line in lines] == ["idle <&>", "busy"]
    circles = root.findall(f"{space}circle")
    assert len(circles) == 4
    assert {circle.get("fill") for circle in circles} == {"#ffd43b", "#c92a2a", "white"}


def test_positions_are_all_different():
    for positions, count in [
        (picture.box([5, 5, 4]), 100),
        (picture.box([4]), 4),
        (picture.box([2, 3, 2, 2]), 24),
        (picture.groups(5, 18), 90),
        (picture.layered([[0, 1, 2], [3]]), 4),
    ]:
        assert len({(round(x, 6), round(y, 6)) for x, y in positions.values()}) == count
        assert np.all(np.isfinite(list(positions.values())))


def test_colours_run_from_idle_to_busy():
    assert picture.colour(0.0) == "#dee2e6"
    assert picture.colour(2.0) == picture.colour(1.0) == "#c92a2a"
    assert picture.colour(-1.0) == picture.colour(0.0)


def test_a_chart_has_a_line_for_each_name():
    text = line_chart("a < b", "nodes", "s", {"one": [(1, 2.0), (10, 3.0)], "two": [(1, 1.0)]})
    root = ElementTree.fromstring(text)
    lines = root.findall("{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == 2
    first, second = ([float(n) for n in pair.split(",")] for pair in lines[0].get("points").split())
    assert first[0] < second[0]
    assert first[1] > second[1]  # higher up is less
    for wrong in (
        lambda: line_chart("", "", "", {}),
        lambda: line_chart("", "", "", {"a": [(0, 1)]}),
    ):
        with pytest.raises(InputError):
            wrong()
