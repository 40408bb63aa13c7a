# SPDX-License-Identifier: Apache-2.0
"""Memory traces: what is read, and what is refused with file, line and reason."""

from __future__ import annotations

import contextlib
import gzip
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manyscale.errors import InputError
from manyscale.workloads import memory_trace, read_memory_trace

KINDS = {"R": 0, "W": 1, "A": 2}
in_one_folder = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def records(path: Path) -> list[tuple[int, int, int]]:
    """Kind, address and size of each access."""
    packed = read_memory_trace(path).records
    return [(word & 0xFF, address, word >> 32) for address, word in struct.iter_unpack("<QQ", packed)]


def trace(folder: Path, text: str | bytes, name: str = "own.trace") -> Path:
    path = folder / name
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_memory_trace(path)
    return str(caught.value).replace(str(path), path.name)


PLAIN = "R 0x1000 8\nW 0x1040 8\nA 0x2000 4\n"
EXPECTED = [(0, 0x1000, 8), (1, 0x1040, 8), (2, 0x2000, 4)]


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        "# made by hand\n\n  R\t0x1000   8 # first\r\nW 0x1040 8\n\nA 0x2000 4\n#\n",
        PLAIN.replace("0x1000", "0x0001000"),
    ],
    ids=["plain", "with comments and blanks", "with zeros"],
)
def test_the_form(tmp_path: Path, text: str) -> None:
    assert records(trace(tmp_path, text)) == EXPECTED
    assert records(trace(tmp_path, text, "own.trace.gz")) == EXPECTED


def test_an_empty_trace_has_no_accesses(tmp_path: Path) -> None:
    assert read_memory_trace(trace(tmp_path, "")).accesses == 0
    assert read_memory_trace(trace(tmp_path, "# nothing\n")).accesses == 0


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("R 0x1000", "expected kind, address and size, such as 'R 0x1000 8', got 'R 0x1000'"),
        ("R 0x1000 8 8", "expected kind, address and size"),
        ("X 0x1000 8", "there is no kind 'X'; known: R (load), W (store), A (atomic addition)"),
        ("R 1000 8", "expected a hexadecimal address such as 0x1000, got '1000'"),
        ("R 0x10_0 8", "expected a hexadecimal address"),
        ("R 0xzz 8", "expected a hexadecimal address"),
        ("R 0x 8", "expected a hexadecimal address"),
        ("R -0x10 8", "expected a hexadecimal address"),
        ("R 0x8000000000000000 8", "the address '0x8000000000000000' is beyond 2**63 - 1"),
        ("R 0x" + "f" * 40 + " 8", "is beyond 2**63 - 1"),
        ("R 0x1000 0", "expected a size from 1 to 32 bytes, got '0'"),
        ("R 0x1000 08", "expected a size from 1 to 32 bytes, got '08'"),
        ("R 0x1000 -8", "expected a size from 1 to 32 bytes, got '-8'"),
        ("R 0x1000 33", "an access of '33' bytes is too large: split it into accesses of at most 32"),
        ("R 0x1000 64", "split it into accesses of at most 32"),
        ("W 0x103c 8", "crosses a line of 64 bytes: split it into 'W 0x103c 4' and 'W 0x1040 4'"),
    ],
)
def test_a_wrong_record_is_refused_with_its_line(tmp_path: Path, line: str, reason: str) -> None:
    assert refusal(trace(tmp_path, f"{PLAIN}{line}\n{PLAIN}")).startswith("own.trace, line 4: ")
    assert reason in refusal(trace(tmp_path, f"{PLAIN}{line}\n{PLAIN}"))


def test_lines_are_counted_over_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_trace, "_BLOCK", 16)
    assert len(records(trace(tmp_path, PLAIN * 100))) == 300
    assert "own.trace, line 301: " in refusal(trace(tmp_path, PLAIN * 100 + "R 5 8\n" + PLAIN))
    assert "own.trace, line 301: the trace ends" in refusal(trace(tmp_path, PLAIN * 100 + "R 0x1"))


def test_a_trace_that_is_cut_off_says_so(tmp_path: Path) -> None:
    for length in range(1, len(PLAIN)):
        path = trace(tmp_path, PLAIN[:length])
        if PLAIN[length - 1] == "\n":
            assert len(records(path)) == PLAIN[:length].count("\n")
        else:
            assert "the trace ends in the middle of a record" in refusal(path)


def test_a_compressed_trace_that_is_cut_off_says_so(tmp_path: Path) -> None:
    path = trace(tmp_path, PLAIN * 1000, "own.trace.gz")
    path.write_bytes(path.read_bytes()[:-20])
    assert "own.trace.gz is cut off or damaged" in refusal(path)
    path.write_bytes(b"R 0x10 8\n")
    assert "cannot read own.trace.gz: Not a gzipped file" in refusal(path)


def test_what_is_no_file(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "absent")
    assert "Is a directory" in refusal(tmp_path)


def test_a_line_without_end_is_not_read_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_trace, "_BLOCK", 100)
    assert "own.trace, line 1: the line is longer than 65536 bytes" in refusal(trace(tmp_path, b"R" * 10**6))


def test_a_trace_of_too_many_accesses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_trace, "LARGEST_TRACE", 2)
    assert "own.trace has more than 2 accesses" in refusal(trace(tmp_path, PLAIN))


def test_lines_may_be_of_another_size(tmp_path: Path) -> None:
    path = trace(tmp_path, "R 0x1020 32\n")
    assert read_memory_trace(path, 64).accesses == 1
    with pytest.raises(InputError, match="crosses a line of 32 bytes"):
        read_memory_trace(trace(tmp_path, "R 0x1010 32\n"), 32)


@in_one_folder
@given(st.lists(st.tuples(st.sampled_from("RWA"), st.integers(0, 2**57 - 1), st.sampled_from([1, 8, 32]))))
def test_what_is_written_is_read(tmp_path: Path, accesses: list[tuple[str, int, int]]) -> None:
    plain = "".join(f"{kind} {line * 64:#x} {size}\n" for kind, line, size in accesses)
    expected = [(KINDS[kind], line * 64, size) for kind, line, size in accesses]
    assert records(trace(tmp_path, plain)) == expected
    assert records(trace(tmp_path, plain.replace(" ", "  "))) == expected


@in_one_folder
@given(
    st.one_of(
        st.binary(max_size=200),
        st.text("RWAx0123456789abcdef #\n\t_-", max_size=200).map(str.encode),
        st.lists(st.sampled_from(["R", "W", "0x10", "0x3f", "8", "33", " ", "\n", "#"])).map(
            lambda parts: "".join(parts).encode()
        ),
    )
)
def test_nothing_but_an_input_error_comes_out(tmp_path: Path, data: bytes) -> None:
    for name in ("fuzz.trace", "fuzz.trace.gz"):
        path = tmp_path / name
        path.write_bytes(data)
        with contextlib.suppress(InputError):
            read = read_memory_trace(path)
            assert len(read.records) == 16 * read.accesses


@in_one_folder
@given(st.text("RW0x18 \n", max_size=60))
def test_both_ways_of_reading_agree(tmp_path: Path, text: str) -> None:
    """A comment on a line of its own makes the reader go line by line."""

    def outcome(data: str) -> object:
        path = trace(tmp_path, data)
        try:
            return records(path)
        except InputError as error:
            return str(error).partition(": ")[2]

    assert outcome(f"R 0x0 8\n{text}\n") == outcome(f"R 0x0 8\n{text}\n#\n")
