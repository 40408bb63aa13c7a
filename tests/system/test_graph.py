# SPDX-License-Identifier: Apache-2.0
"""A system's graph is checked before it runs, and can be printed, drawn and saved."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import manyscale as ms
from systems import make_phold, make_ring


class Probe(ms.Component):
    """A port of each sort."""

    class Spec(ms.Spec):
        """One parameter."""

        wait: ms.Time = ms.parameter("1ns", doc="how long", minimum="1ps", maximum="1s")

    asks = ms.Port("talk", "asker", "teller", doc="asks")
    tells = ms.Port("talk", "teller", "asker", doc="tells", links="optional")


def test_an_unconnected_port_is_named_with_what_it_needs() -> None:
    system = ms.System()
    system.add(Probe, "p")
    with pytest.raises(
        ms.GraphError, match=r"port p\.asks is not connected; it needs .* 'teller' of .* 'talk'"
    ):
        system.run()


def test_all_problems_are_listed_together() -> None:
    system = ms.System()
    for name in ("p", "q"):
        system.add(Probe, name)
    with pytest.raises(ms.GraphError) as error:
        system.check()
    assert str(error.value).count("is not connected") == 2


def test_an_empty_system_is_refused() -> None:
    with pytest.raises(ms.GraphError, match="has no components"):
        ms.System().run()


def test_the_wrong_role_is_named() -> None:
    system = ms.System()
    a, b = system.add("synthetic.relay", "a"), system.add("synthetic.relay", "b")
    with pytest.raises(ms.GraphError, match=r"a\.output to b\.output: both are 'producer'.* is 'consumer'"):
        system.connect(a.output, b.output, "1ns")


def test_another_protocol_is_named() -> None:
    system = ms.System()
    a, b = system.add("synthetic.relay", "a"), system.add("synthetic.phold", "b")
    with pytest.raises(ms.GraphError, match="one speaks 'token', the other 'job'"):
        system.connect(a.output, b.peers, "1ns")


def test_a_port_for_one_link_takes_no_second() -> None:
    system = make_ring(stages=2)
    spare = system.add("synthetic.relay", "spare")
    with pytest.raises(
        ms.GraphError, match=r"stage\[0\]\.output takes one link and is connected to stage\[1\]"
    ):
        system.connect(system.port("stage[0].output"), spare.input, "1ns")


def test_a_duplicate_name_is_refused() -> None:
    system = ms.System("s")
    system.add("synthetic.relay", "a")
    with pytest.raises(ms.GraphError, match="already a component named 'a' in s"):
        system.add("synthetic.phold", "a")


@pytest.mark.parametrize("name", ["", "a b", "1st", "a..b", "a[x]", "a/b", "a[1", "ä b"])
def test_a_bad_name_shows_the_form(name: str) -> None:
    with pytest.raises(ms.InputError, match=r"no name for a component: .* such as 'gpu\.sm\[3\]'"):
        ms.System().add("synthetic.relay", name)


def test_zero_latency_across_a_cut_is_refused() -> None:
    system = make_ring(stages=2, latency="0fs")
    system.hint(system.components["stage[0]"], group="left")
    system.hint(system.components["stage[1]"], group="right")
    with pytest.raises(ms.GraphError, match=r"zero latency across a cut: stage\[0\] \(group 'left'\)"):
        system.run(threads=2)


def test_zero_latency_without_groups_keeps_both_ends_together() -> None:
    system = make_ring(stages=2, latency="0fs")
    assert system.lookahead is None
    assert system.run(threads=4).threads == 1


@pytest.mark.parametrize(
    ("latency", "message"),
    [("5", "has no unit"), ("5GB", "accepts?|takes"), ("-1ns", "is negative"), (750, "has no unit")],
)
def test_a_bad_latency_says_why(latency: object, message: str) -> None:
    system = ms.System()
    a, b = system.add("synthetic.relay", "a"), system.add("synthetic.relay", "b")
    with pytest.raises(ms.InputError, match=message):
        system.connect(a.output, b.input, latency)  # type: ignore[arg-type]


def test_parameters_are_checked_for_core_and_python_models_alike() -> None:
    system = ms.System()
    with pytest.raises(ms.InputError, match=r"a \(synthetic.relay\): clok: .*did you mean 'clock'"):
        system.add("synthetic.relay", "a", clok="1GHz")
    with pytest.raises(ms.InputError, match="slots: 0 is out of range; it must be from 1 to 1000000"):
        system.add("synthetic.relay", "a", slots=0)
    with pytest.raises(ms.InputError, match="wait: 1fs is out of range; it must be from 1ps to 1s"):
        system.add(Probe, "p", wait="1fs")
    with pytest.raises(ms.InputError, match=r"wait: .*unit"):
        system.add(Probe, "p", wait="3 parsecs")


def test_an_unknown_model_names_the_nearest() -> None:
    with pytest.raises(
        ms.InputError, match=r"no model named 'synthetic.rely'; did you mean 'synthetic.relay'"
    ):
        ms.System().add("synthetic.rely", "a")


def test_an_unknown_port_names_the_nearest() -> None:
    relay = ms.System().add("synthetic.relay", "a")
    with pytest.raises(AttributeError, match="no port 'outputs'; did you mean 'output'"):
        _ = relay.outputs


def test_nothing_is_added_after_the_start() -> None:
    system = make_ring()
    system.run()
    with pytest.raises(ms.GraphError, match="the simulation has started"):
        system.add("synthetic.relay", "late")


def test_the_graph_prints_components_links_and_lookahead() -> None:
    text = str(make_ring(stages=2, latency="750ps"))
    assert "ring: 2 components, 2 links" in text
    assert "stage[0]: synthetic.relay(clock=1GHz, slots=4, tokens=1, hops=20)" in text
    assert "stage[0].output -- 750ps -- stage[1].input" in text
    assert "lookahead 750ps" in text


def test_dot_text_has_every_component_and_link() -> None:
    dot = make_ring(stages=3, latency="2ns").to_dot()
    assert dot.startswith('graph "ring" {')
    assert dot.count("synthetic.relay") == 3
    assert dot.count('label="2ns"') == 3
    assert dot.count("{") == dot.count("}")


def test_a_saved_system_runs_to_the_same_statistics(tmp_path: Path) -> None:
    system = make_phold(cut_latency="200ps")
    system.hint(system.components["node[0]"], system.components["node[1]"], group="pair", weight=2.0)
    system.save(tmp_path / "phold.toml")
    loaded = ms.System.load(tmp_path / "phold.toml")
    assert loaded.to_toml() == system.to_toml()
    assert loaded.run(until="300ns", threads=2).stats.equals(system.run(until="300ns").stats)


def test_a_loaded_system_can_be_changed(tmp_path: Path) -> None:
    make_ring(stages=2).save(tmp_path / "ring.toml")
    changes = ["stage[1].slots=8", "stage[0].clock=2GHz"]
    system = ms.System.load(tmp_path / "ring.toml", changes=changes, seed=9)
    assert system.parameters(system.components["stage[1]"])["slots"] == 8
    assert system.parameters(system.components["stage[0]"])["clock"] == "2GHz"
    assert system.seed == 9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("slots", "expected component.parameter=value"),
        ("stage[2].slots=3", r"no component 'stage\[2\]' in .*; did you mean 'stage\["),
        ("stage[1].slot=3", "did you mean 'slots'"),
        ("stage[1].slots=0", "must be from 1"),
    ],
)
def test_a_wrong_change_says_what_is_right(tmp_path: Path, change: str, message: str) -> None:
    make_ring(stages=2).save(tmp_path / "ring.toml")
    with pytest.raises(ms.InputError, match=message):
        ms.System.load(tmp_path / "ring.toml", changes=[change])


def test_python_models_are_loaded_only_when_given(tmp_path: Path) -> None:
    system = ms.System()
    a, b = system.add(Probe, "a", wait="5ns"), system.add(Probe, "b")
    system.connect(a.asks, b.tells, "1ns")
    system.connect(b.asks, a.tells, "1ns")
    system.save(tmp_path / "s.toml")
    loaded = ms.System.load(tmp_path / "s.toml", models=[Probe])
    assert loaded.to_toml() == system.to_toml()
    with pytest.raises(ms.InputError, match=r"component a is a Python model 'Probe', which must be given"):
        ms.System.load(tmp_path / "s.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = [", "s.toml:"),
        ("a = 1", "is not a saved system"),
        ("format = 'manyscale.system/1'", "component: is required"),
        ("format = 'manyscale.system/1'\ncomponent = 3", r"expected \[\[component\]\] tables"),
        (
            "format = 'manyscale.system/1'\n[[component]]\nname='a'\nmodl='synthetic.relay'",
            "did you mean 'model'",
        ),
        (
            "format = 'manyscale.system/1'\n[[component]]\nname='a'\nmodel='synthetic.relay'\n"
            "[[link]]\na='a.output'\nb='b.input'\nlatency='1ns'",
            "there is no component 'b'",
        ),
    ],
)
def test_a_broken_file_says_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text(text)
    with pytest.raises(ms.InputError, match=message):
        ms.System.load(path)


@given(st.text(max_size=200))
def test_any_text_gives_an_input_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "s.toml"
    path.write_text("format = 'manyscale.system/1'\n" + text, encoding="utf-8")
    with pytest.raises(ms.InputError):
        ms.System.load(path)


def test_a_single_cluster_has_no_lookahead() -> None:
    assert make_phold(cut_latency="1us").lookahead is None


def test_the_cut_latency_is_chosen_so_that_work_can_be_shared() -> None:
    """Four pairs with 10 ps inside and 5 ns between them: the pairs stay together, the window is 5 ns."""
    system = ms.System()
    nodes = [system.add("synthetic.phold", f"n[{i}]", jobs=1) for i in range(8)]
    for i in range(0, 8, 2):
        system.connect(nodes[i].peers, nodes[i + 1].peers, "10ps")
        system.connect(nodes[i + 1].peers, nodes[(i + 2) % 8].peers, "5ns")
    assert system.lookahead == 5_000_000
    assert system.run(until="10ns", threads=8).threads == 4
