# SPDX-License-Identifier: Apache-2.0
"""Machine files: inheritance, overrides, sources, and refusals that say where."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manyscale.errors import InputError
from manyscale.machine import load_machine, to_toml
from manyscale.machine.loading import LARGEST_FILE
from manyscale.spec import parameters


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refusal(path: Path | str, overrides: list[str] | None = None) -> str:
    with pytest.raises(InputError) as error:
        load_machine(path, overrides or [])
    return str(error.value)


def test_a_file_states_values_with_their_sources(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "mine.toml",
        """
        [gpu]  # a heading is no source
        clock = "1.5GHz"  # data sheet, page 3
        sm_count = 4
        crossbar = {latency = "1ns", flit_size = "32B"}  # guess
        memory.stacks = 2  # picture
        [cpu]
        cores = 2  # here
        [gpu.uvm]
        page_size = "4KiB"  # driver
        """,
    )
    resolved = load_machine(path, [])
    assert resolved.machine.name == "mine"
    assert resolved.machine.gpu is not None
    assert resolved.machine.gpu.clock == 1_500_000_000
    assert resolved.sources == {
        "name": "file name",
        "description": "default",
        "cpu.cores": "here",
        "gpu.clock": "data sheet, page 3",
        "gpu.sm_count": "mine.toml",
        "gpu.memory.stacks": "picture",
        "gpu.crossbar.latency": "guess",
        "gpu.crossbar.flit_size": "guess",
        "gpu.uvm.page_size": "driver",
    }
    assert resolved.workload == {}


def test_values_are_inherited_along_a_chain(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    write(
        tmp_path,
        "old.toml",
        'inherits = "v100-sst"\n[gpu]\nclock = "1GHz"  # old book\nsm_count = 10  # old book\n',
    )
    write(tmp_path / "sub", "middle.toml", 'inherits = "../old.toml"\n[gpu]\nsm_count = 20  # middle book\n')
    path = write(tmp_path, "new.toml", 'inherits = "sub/middle.toml"\n[gpu]\nl2_slices = 3  # new book\n')
    resolved = load_machine(path, [])
    gpu = resolved.machine.gpu
    assert gpu is not None
    assert gpu.memory is not None
    assert (gpu.clock, gpu.sm_count, gpu.l2_slices, gpu.memory.stacks) == (10**9, 20, 3, 4)
    assert resolved.machine.name == "new"
    assert resolved.sources["gpu.clock"] == "old book (inherited from old)"
    assert resolved.sources["gpu.sm_count"] == "middle book (inherited from middle)"
    assert resolved.sources["gpu.l2_slices"] == "new book"
    assert resolved.sources["gpu.memory.stacks"].endswith("Table 2b, HBM Stacks (inherited from v100-sst)")


def test_overrides_come_last_and_need_no_quotes() -> None:
    resolved = load_machine(
        "v100-sst",
        ["gpu.clock=1.5GHz", "gpu.sm_count = 4", 'link.bandwidth="16GB/s"', "name=small", "cpu={cores=2}"],
    )
    machine = resolved.machine
    assert machine.gpu is not None
    assert machine.link is not None
    assert machine.cpu is not None
    assert (machine.name, machine.gpu.clock, machine.gpu.sm_count) == ("small", 1_500_000_000, 4)
    assert machine.link.bandwidth == 16 * 10**9
    assert (machine.cpu.cores, machine.cpu.clock) == (2, 2_660_000_000)
    assert {resolved.sources[name] for name in ("name", "gpu.clock", "link.bandwidth", "cpu.cores")} == {
        "command line"
    }
    assert "Table 2a" in resolved.sources["cpu.clock"]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("gpu.clock", "--set 'gpu.clock': expected path=value, such as gpu.clock=1.5GHz"),
        ("=3", "--set '=3': expected path=value"),
        ("gpu..clock=3GHz", "expected path=value"),
        ("gpu clock=3GHz", "expected path=value"),
        ("gpu.clok=3GHz", "--set gpu.clok: there is no such parameter; did you mean 'gpu.clock'"),
        ("gup.clock=3GHz", "--set gup.clock: there is no such parameter; did you mean 'gpu.clock'"),
        ("gpu.clock=3", "--set gpu.clock: gpu.clock: 3 has no unit; a frequency takes Hz"),
        ("gpu.clock=fast", "gpu.clock: 'fast' is not a frequency"),
        ("gpu.clock.x=3", "gpu.clock: expected a frequency such as '1312MHz', got {'x': 3}"),
        ("gpu.sm_count=0", "gpu.sm_count: 0 is out of range; it must be at least 1"),
        ("gpu.sm_count=true", "gpu.sm_count: expected a count such as '84', got True"),
        ("gpu=3", "--set gpu: gpu: expected a section of parameters, got 3"),
        ("gpu.sm_count=0x" + "f" * 9000, "gpu.sm_count: a very large int is beyond the range of a count"),
        ("inherits=p100", "--set inherits: there is no such parameter"),
    ],
)
def test_a_wrong_override_says_which(override: str, message: str) -> None:
    assert message in refusal("v100", [override])


def test_all_problems_are_reported_with_their_files(tmp_path: Path) -> None:
    parent = write(tmp_path, "parent.toml", '[gpu]\nclock = "5s"\n')
    child = write(tmp_path, "child.toml", 'inherits = "parent.toml"\n[gpu]\nsm_cuont = 3\n')
    lines = refusal(child, ["cpu.cores=0"]).splitlines()
    assert lines[0].startswith("--set cpu.cores: cpu.cores: 0 is out of range")
    assert lines[1].startswith(f"{parent}: gpu.clock: '5s': 's' is no unit of a frequency")
    assert lines[2] == f"{child}: gpu.sm_cuont: there is no such parameter; did you mean 'sm_count'?"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[gpu]\nclock = "1GHz', "bad.toml, line 2, column "),
        ("a = 1\na = 2\n", "already exists"),
        ("inherits = 3\n", 'inherits: expected the name or file of a machine, such as "v100"'),
        ("[inherits]\nx = 1\n", "inherits: expected the name or file of a machine"),
        ('inherits = "v10"\n', "bad.toml: inherits: there is no machine named 'v10'; did you mean 'v100'?"),
        ('inherits = "other.toml"\n', "bad.toml: inherits: there is no file"),
        ('inherits = "bad.toml"\n', "machines inherit in a circle: "),
        ("a = " + "[" * 5000, "bad.toml"),
        ("a." * 3000 + "b = 1", "bad.toml"),
        ("[gpu]\nsm_count = " + "9" * 10000, "bad.toml"),
        ("[gpu]\nsm_count = 99999999999999999999", "gpu.sm_count: 99999999999999999999 is beyond the range"),
        ("[gpu]\nclock = 2020-01-01", "gpu.clock: expected a frequency such as '1312MHz', got "),
        ("[[gpu]]\nsm_count = 3", "gpu: expected a section of parameters, got [{'sm_count': 3}]"),
        ('"a.b" = 3', "a.b: there is no such parameter"),
    ],
)
def test_a_wrong_file_says_where(tmp_path: Path, text: str, message: str) -> None:
    refused = refusal(write(tmp_path, "bad.toml", text))
    assert message in refused
    assert len(refused) < 1000


def test_a_longer_circle_is_found(tmp_path: Path) -> None:
    write(tmp_path, "a.toml", 'inherits = "b.toml"\n')
    write(tmp_path, "b.toml", 'inherits = "c.toml"\n')
    write(tmp_path, "c.toml", 'inherits = "a.toml"\n')
    assert refusal(tmp_path / "a.toml").count("->") == 3


def test_what_is_no_text_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b'name = "caf\xe9"\n')
    assert refusal(tmp_path / "latin.toml").endswith("latin.toml is not UTF-8 text (byte 11)")
    (tmp_path / "huge.toml").write_bytes(b"#" * (LARGEST_FILE + 1))
    assert "huge.toml is larger than 1MiB" in refusal(tmp_path / "huge.toml")
    assert "is a folder, not a machine file" in refusal(tmp_path)
    assert "there is no file" in refusal(tmp_path / "missing.toml")
    assert "there is no machine named" in refusal("a\0b")
    assert "/dev/null is not a file" in refusal("/dev/null")
    assert "there is no machine named" in refusal("x" * 5000)


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "mark.toml").write_bytes(b'\xef\xbb\xbfname = "marked"\n')
    assert load_machine(tmp_path / "mark.toml", []).machine.name == "marked"


def test_a_saved_machine_loads_back_with_its_sources(tmp_path: Path) -> None:
    resolved = load_machine("uvm-listing1", ["gpu.clock=1.5GHz"])
    text = to_toml(resolved.machine, resolved.sources)
    again = load_machine(write(tmp_path, "machine.toml", text), [])
    assert again.machine == resolved.machine
    assert again.sources == resolved.sources
    assert 'clock = "1500MHz" # command line' in text


def test_a_source_cannot_break_out_of_its_comment(tmp_path: Path) -> None:
    resolved = load_machine("v100", [])
    text = to_toml(resolved.machine, {"gpu.clock": 'x\nsm_count = 1\r\n"""\0'})
    assert load_machine(write(tmp_path, "machine.toml", text), []).machine == resolved.machine


WORDS = [
    *{part for row in parameters(type(load_machine("v100", []).machine)) for part in row.path.split(".")},
    *[
        "inherits",
        "v100",
        "1GHz",
        "[",
        "]",
        "[[",
        "]]",
        "{",
        "}",
        "=",
        '"',
        "'",
        ".",
        ",",
        "#",
        "\n",
        "\n",
        " ",
    ],
    *[
        "1",
        "-1",
        "1e9",
        "0x1F",
        "true",
        "nan",
        "2020-01-01",
        '"""',
        "\\u0000",
        ":",
        "CPU",
        "GPU",
        "clock: 1GHz\n",
    ],
]
ANY_TEXT = st.one_of(st.text(), st.lists(st.sampled_from(WORDS)).map("".join))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(ANY_TEXT, st.sampled_from(["fuzz.toml", "fuzz.ini", "fuzz.txt"]))
def test_any_text_in_a_file_is_a_machine_or_an_input_error(tmp_path: Path, text: str, name: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", errors="replace")
    with contextlib.suppress(InputError):
        load_machine(path, [])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(), st.sampled_from(["fuzz.toml", "fuzz.ini"]))
def test_any_bytes_in_a_file_are_a_machine_or_an_input_error(tmp_path: Path, data: bytes, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with contextlib.suppress(InputError):
        load_machine(path, [])


@settings(deadline=None, max_examples=40)
@given(ANY_TEXT)
def test_any_override_is_accepted_or_an_input_error(text: str) -> None:
    for override in (text, f"gpu.clock={text}", f"gpu={text}", f"{text}=3"):
        with contextlib.suppress(InputError):
            load_machine("v100", [override])


@settings(deadline=None)
@given(ANY_TEXT)
def test_any_name_is_a_machine_or_an_input_error(text: str) -> None:
    with contextlib.suppress(InputError):
        load_machine(text, [])


def test_former_names_of_parameters_are_understood(tmp_path):
    """In files, as traces and run directories of earlier versions hold them, and on the command line."""
    path = tmp_path / "old.toml"
    path.write_text('inherits = "broadwell"\n[cpu.core]\nmisses_apart = false\n')
    for resolved in (load_machine(path), load_machine("broadwell", ["cpu.core.misses_apart=false"])):
        assert "cpu.core.mshrs_per_level" in resolved.changed
        assert "mshrs_per_level = false" in to_toml(resolved.machine, resolved.sources)


def test_a_parameter_of_a_subsection_is_suggested() -> None:
    with pytest.raises(
        InputError,
        match=r"link\.page_size: there is no such parameter; did you mean 'link\.copy_engine\.page_size'\?",
    ):
        load_machine("v100", ["link.page_size=8KiB"])
