# SPDX-License-Identifier: Apache-2.0
"""The cache of what the assembler made: by content, whole or not at all, bounded, and without need."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from manyscale.gpu import cubin_cache


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_what_was_made_is_found_again_by_what_it_was_made_of():
    name = cubin_cache.key(b"ptx", ("options", "12.9"))
    assert cubin_cache.read(name) is None
    cubin_cache.write(name, b"\x7fELF cubin")
    assert cubin_cache.read(name) == b"\x7fELF cubin"
    others = {cubin_cache.key(b"ptx ", ("options", "12.9")), cubin_cache.key(b"ptx", ("options", "12.8"))}
    assert name not in others
    assert all(cubin_cache.read(other) is None for other in others)


def test_a_refusal_is_kept_as_text():
    cubin_cache.write("refused", "line 3: no such instruction")
    assert cubin_cache.read("refused") == "line 3: no such instruction"


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: data[:10], lambda data: b"", lambda data: data + b"x"]
)
def test_a_damaged_file_is_not_used(damage):
    cubin_cache.write("name", b"a cubin")
    file = cubin_cache.folder() / "name"
    file.write_bytes(damage(file.read_bytes()))
    assert cubin_cache.read("name") is None
    cubin_cache.write("name", b"a cubin")
    assert cubin_cache.read("name") == b"a cubin"


@pytest.mark.parametrize(("bound", "value"), [("MOST_FILES", 3), ("MOST_BYTES", 3 * 133)])
def test_what_was_not_used_for_longest_goes_first(bound, value, monkeypatch):
    monkeypatch.setattr(cubin_cache, bound, value)
    for index, name in enumerate("abc"):
        cubin_cache.write(name, bytes(100))
        os.utime(cubin_cache.folder() / name, (index, index))
    assert cubin_cache.read("a") is not None  # used: "b" is the oldest now
    cubin_cache.write("d", bytes(100))
    assert sorted(path.name for path in cubin_cache.folder().iterdir()) == ["a", "c", "d"]


def test_a_cache_that_cannot_be_written_is_ignored(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    cubin_cache.write("name", b"a cubin")
    assert cubin_cache.read("name") is None


def test_processes_that_write_at_the_same_time_leave_whole_files(tmp_path):
    script = (
        "from manyscale.gpu import cubin_cache as c\n"
        "c.MOST_FILES = 5\n"
        "for i in range(200):\n"
        "    name = f'n{i % 10}'\n"
        "    found = c.read(name)\n"
        "    assert found is None or found == name.encode() * 1000, name\n"
        "    c.write(name, name.encode() * 1000)\n"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    running = [subprocess.Popen([sys.executable, "-c", script], env=environment) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    left = [path.name for path in cubin_cache.folder().iterdir()]
    assert 0 < len(left) <= 8
    assert all(cubin_cache.read(name) == name.encode() * 1000 for name in left)


def test_a_second_run_does_not_start_the_assembler(monkeypatch):
    from manyscale.gpu import assembler

    if assembler.find_assembler() is None:
        pytest.skip("there is no ptxas")
    text = b".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing() { ret; }\n"
    made = assembler.assemble(text, "nothing", "sm_70")
    monkeypatch.setattr(assembler, "_run", lambda *_: pytest.fail("it was started again"))
    begin = time.process_time()
    assert assembler.assemble(text, "nothing", "sm_70") == made
    assert time.process_time() - begin < 0.05


def test_a_refusal_is_not_repeated(monkeypatch):
    from manyscale.gpu import assembler

    if assembler.find_assembler() is None:
        pytest.skip("there is no ptxas")
    text = b".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing() { nonsense; }\n"
    with pytest.raises(assembler.AssemblyError, match="nothing: the assembler refuses it"):
        assembler.assemble(text, "nothing", "sm_70")
    monkeypatch.setattr(assembler, "_run", lambda *_: pytest.fail("it was started again"))
    with pytest.raises(assembler.AssemblyError, match="other: the assembler refuses it"):
        assembler.assemble(text, "other", "sm_70")
