# SPDX-License-Identifier: Apache-2.0
"""Files appear whole or not at all, whatever fails: every system call of every writer fails once."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import trace_samples
from run_directories import kernel_run

from manyscale import network
from manyscale.cpu import gem5_trace
from manyscale.cpu.task_assignments import write_task_assignments
from manyscale.cpu.trace_file import TRACE, TraceWriter
from manyscale.errors import InputError, ManyscaleError
from manyscale.network.goal import write_goal
from manyscale.network.goal_export import schedule_of
from manyscale.network.job import program_for
from manyscale.results import load
from manyscale.results.additions import add_file
from manyscale.results.files import FileGroup, FileKind, OutputFile, check_output, replace_file, write_file
from manyscale.studies.projection.timings import PhaseTiming, TimingProfile
from systems import make_ring

TEXT = FileKind.magic("a text", b"text")
CALLS = ("open", "write", "fsync", "close", "replace", "link", "fchmod")


def put(content: bytes) -> Callable[[Any], object]:
    return lambda file: file.write(content)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_what_is_there_is_replaced_only_with_force_and_by_its_kind(tmp_path):
    path = tmp_path / "a"
    write_file(path, put(b"text 1"), TEXT)
    with pytest.raises(
        InputError, match=r"a exists already; give --force \(in Python: force=True\) to replace it"
    ):
        write_file(path, put(b"text 2"), TEXT)
    assert path.read_bytes() == b"text 1"
    write_file(path, put(b"text 2"), TEXT, force=True)
    assert path.read_bytes() == b"text 2"
    path.write_bytes(b"years of work")
    with pytest.raises(InputError, match=r"is not a text, so it is not written over even with --force"):
        write_file(path, put(b"text 3"), TEXT, force=True)
    assert path.read_bytes() == b"years of work"
    path.write_bytes(b"")
    write_file(path, put(b"text 4"), TEXT, force=True)
    assert names(tmp_path) == {"a"}


def test_a_file_that_appears_meanwhile_is_kept_and_so_is_the_work(tmp_path):
    for force in (False, True):
        path = tmp_path / f"{force}.trace"
        file = OutputFile(path, TEXT, force=force)
        file.write(b"text of hours")
        path.write_bytes(b"of somebody else")
        with pytest.raises(InputError, match=r"what was written is in .*-2\.trace"):
            file.commit()
        assert path.read_bytes() == b"of somebody else"
        assert (tmp_path / f"{force}-2.trace").read_bytes() == b"text of hours"


def test_permissions_links_and_long_names_stay(tmp_path):
    path = tmp_path / ("long" * 62)
    path.write_bytes(b"text 1")
    path.chmod(0o600)
    link = tmp_path / "link"
    link.symlink_to(path)
    write_file(link, put(b"text 2"), TEXT, force=True)
    assert link.is_symlink()
    assert path.read_bytes() == b"text 2"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_devices_and_pipes_are_written_directly(tmp_path):
    write_file("/dev/null", put(b"x"), TEXT)
    with pytest.raises(InputError, match="cannot write /dev/full: No space left on device"):
        write_file("/dev/full", put(b"x"), TEXT)
    reading, writing = os.pipe()
    write_file(f"/dev/fd/{writing}", put(b"through a pipe"), TEXT)
    os.close(writing)
    with os.fdopen(reading, "rb") as end:
        assert end.read() == b"through a pipe"


def test_what_cannot_be_written_is_found_before_the_work(tmp_path):
    with pytest.raises(InputError, match="it is a directory; give the name of a file"):
        check_output(tmp_path, TEXT)
    with pytest.raises(InputError, match=r"there is no folder .*nowhere"):
        check_output(tmp_path / "nowhere" / "a", TEXT)
    with pytest.raises(InputError, match=r"cannot write"):
        write_file(tmp_path / ("x" * 300), put(b"x"), TEXT)


def test_several_files_appear_together_or_not_at_all(tmp_path):
    folder = tmp_path / "new" / "deep"

    def write(last: Callable[[Any], object]) -> None:
        with FileGroup(folder, TEXT) as group:
            group.add("a", put(b"text"))
            group.add("inner/b", put(b"text"))
            group.add("c", last)

    def fail(file: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(InputError, match=r"cannot write .*c: Input/output error"):
        write(fail)
    assert names(tmp_path) == set()
    write(put(b"text"))
    assert names(folder) == {"a", "inner", "c"}
    with pytest.raises(InputError, match="exists already"):
        write(put(b"text"))


# --- every call of every writer fails once


def a_trace(path: Path) -> None:
    writer = TraceWriter(path, trace_samples.header(), force=True)
    try:
        rows = trace_samples.loads(3)
        writer.add(0, 0, len(rows), len(rows), trace_samples.block(trace_samples.nodes(rows)))
        columns = {name: [] for name in trace_samples.COLUMN_TYPES}
        writer.finish(trace_samples.facts(), columns)
    except BaseException:
        writer.abandon()
        raise


def a_gem5_trace(path: Path) -> None:
    gem5_trace.write_nodes(path, gem5_trace.Gem5Header("core0"), [], force=True)


def a_page(path: Path) -> None:
    from manyscale.report import Page

    Page("T").write(path, force=True)


def a_goal(path: Path) -> None:
    write_goal(schedule_of(program_for("allreduce", 2, {"iterations": 1})), path, force=True)


WRITERS: dict[str, Callable[[Path], object]] = {
    "text": lambda path: write_file(path, put(b"text"), TEXT, force=True),
    "large": lambda path: write_file(path, put(b"text" * 600_000), TEXT, force=True),
    "own": lambda path: replace_file(path, put(b"text")),
    "trace": a_trace,
    "gem5.gz": a_gem5_trace,
    "goal": a_goal,
    "page.html": a_page,
    "system.toml": lambda path: make_ring(stages=2).save(path, force=True),
    "tasks": lambda path: write_task_assignments(path, [(0, 0)], force=True),
    "timings.json": lambda path: TimingProfile([PhaseTiming.of("a", [[1e-3]])]).save(path, force=True),
    "table.csv": lambda path: load(path.parent.parent / "run").to_csv(path, force=True),
}


class Failing:
    """The n-th call of some functions of `os` fails; those of other modules go on, but fail as well."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: Callable[[], BaseException]) -> None:
        self.left = -1
        self.failed: str | None = None
        for name in CALLS:
            monkeypatch.setattr(os, name, self._wrapped(name, getattr(os, name), error))

    def _wrapped(self, name: str, real: Callable[..., Any], error: Callable[[], BaseException]) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            if name == "close":  # is done, whatever it says
                real(*given, **named)
            if self.left == 0:
                self.left, self.failed = -1, name
                raise error()
            self.left -= self.left > 0
            return None if name == "close" else real(*given, **named)

        return call


ERRORS: dict[str, Callable[[], BaseException]] = {
    "full": lambda: OSError(errno.ENOSPC, "No space left on device"),
    "stopped": KeyboardInterrupt,
}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("name", WRITERS)
def test_whatever_call_fails_the_old_file_stays_and_nothing_is_left(name, error, tmp_path, monkeypatch):
    if name == "table.csv":
        kernel_run(tmp_path / "run")
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / name
    write = WRITERS[name]
    write(path)
    whole = path.read_bytes()
    assert names(folder) == {name}
    with monkeypatch.context() as patch:
        failing = Failing(patch, ERRORS[error])
        for number in range(1000):
            failing.left, failing.failed = number, None
            problem: BaseException | None = None
            try:
                write(path)
            except (ManyscaleError, OSError, KeyboardInterrupt) as caught:
                problem = caught
            failing.left = -1
            if error == "stopped":
                assert problem is None or isinstance(problem, KeyboardInterrupt)
            else:
                assert problem is None or "No space left on device" in str(problem)
            assert path.read_bytes() == whole, f"after {failing.failed}, call {number}"
            assert names(folder) == {name}, f"after {failing.failed}, call {number}"
            if failing.failed is None:
                break
        assert number > 3  # open, write, fsync, replace at least


@pytest.mark.parametrize("error", ERRORS)
def test_whatever_call_of_a_run_fails_it_never_reads_as_done(error, tmp_path, monkeypatch):
    """A whole run of a system, its n-th call of the operating system failing, for every n."""
    make_ring(stages=2).run(out=tmp_path / "whole", timeline=True)
    expected = load(tmp_path / "whole").stats
    with monkeypatch.context() as patch:
        failing = Failing(patch, ERRORS[error])
        for number in range(1000):
            out = tmp_path / str(number)
            failing.left, failing.failed = number, None
            problem: BaseException | None = None
            try:
                make_ring(stages=2).run(out=out, timeline=True)
            except (ManyscaleError, KeyboardInterrupt) as caught:
                problem = caught
            failing.left = -1
            assert not out.exists() or not [name for name in names(out) if name.endswith(".tmp")]
            if (out / "run.json").exists():
                run = load(out)
                # Ctrl-C may come when all is done; a call that fails then matters no more.
                assert (
                    run.status == "done"
                    if problem is None
                    else isinstance(problem, KeyboardInterrupt) or (run.status != "done")
                )
                if run.status == "done":
                    assert run.stats.equals(expected)
                    assert run.has("timeline.pftrace")
            if failing.failed is None:
                break
        assert number > 20
        assert problem is None


@pytest.mark.parametrize("error", ERRORS)
def test_whatever_call_of_an_addition_fails_the_run_stays_whole(error, tmp_path, monkeypatch):
    make_ring(stages=2).run(out=tmp_path)
    add_file(tmp_path, "page.txt", put(b"first"))
    with monkeypatch.context() as patch:
        failing = Failing(patch, ERRORS[error])
        for number in range(1000):
            failing.left, failing.failed = number, None
            with contextlib.suppress(ManyscaleError, KeyboardInterrupt):
                add_file(tmp_path, "page.txt", put(b"second"))
            failing.left = -1
            assert (tmp_path / "page.txt").read_bytes() in (b"first", b"second")
            assert load(tmp_path).status == "done"
            if failing.failed is None:
                break
        assert number > 10
    assert load(tmp_path).content("page.txt") == b"second"


def test_short_writes_and_interrupted_calls_go_on(tmp_path, monkeypatch):
    real, calls = os.write, []

    def write(descriptor: int, content: Any) -> int:
        calls.append(len(content))
        return real(descriptor, bytes(content[:7]))

    monkeypatch.setattr(os, "write", write)
    table = pl.DataFrame({"a": list(range(50))})
    replace_file(tmp_path / "a.parquet", table.write_parquet)
    assert pl.read_parquet(tmp_path / "a.parquet").equals(table)
    assert len(calls) > 10


def killed(body: str, folder: Path) -> None:
    program = f"import os, signal\nfrom manyscale.cpu.trace_file import *\n{body}\nos.kill(os.getpid(), signal.SIGKILL)"
    ended = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr


def test_a_recording_that_is_killed_does_not_touch_the_trace_that_is_there(tmp_path):
    a_trace(tmp_path / "a.trace")
    whole = (tmp_path / "a.trace").read_bytes()
    killed("w = TraceWriter('a.trace', {}, force=True); w.add(0, 0, 1, 1, bytes(300_000))", tmp_path)
    assert (tmp_path / "a.trace").read_bytes() == whole
    assert TRACE.matches(tmp_path / "a.trace")


# --- the timeline, which the core writes


LIMITED = """
import resource, signal, sys
sys.path[:0] = {path!r}
from systems import make_ring
system = make_ring(stages=4, hops=400)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
system.run(out={out!r}, timeline=True)
"""


def timeline(out: Path, limit: int, **environment: str) -> subprocess.CompletedProcess[str]:
    body = LIMITED.format(path=[str(Path(__file__).parent.parent)], limit=limit, out=str(out))
    return subprocess.run(
        [sys.executable, "-c", body],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )


def test_a_timeline_that_does_not_fit_is_an_error_for_people(tmp_path):
    assert timeline(tmp_path / "whole", 1 << 30).returncode == 0
    size = (tmp_path / "whole" / "timeline.pftrace").stat().st_size
    others = max(path.stat().st_size for path in (tmp_path / "whole").iterdir() if path.suffix != ".pftrace")
    assert size > others
    ended = timeline(tmp_path / "run", size - 1)
    assert "timeline.pftrace: File too large" in ended.stderr
    run = load(tmp_path / "run")
    assert run.status == "failed"
    assert "timeline.pftrace: File too large" in run.info["error"]
    assert {name for name in names(tmp_path / "run") if not name.startswith("stats")} == {
        "run.json",
        "machine.toml",
    }


def test_the_core_names_the_reason(tmp_path):
    system = make_ring(stages=2)
    system.simulation.enable_timeline()
    system.run()
    for path, reason in (
        ("/dev/full", "No space left on device"),
        (str(tmp_path / "no" / "a"), "No such file"),
    ):
        with pytest.raises(OSError, match=reason):
            system.simulation.write_timeline(path, 1000)


SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>
ssize_t write(int file, const void *bytes, size_t count) {
  static ssize_t (*real)(int, const void *, size_t);
  static unsigned long calls;
  if (!real) real = dlsym(RTLD_NEXT, "write");
  struct stat status; /* files only: libraries wake their threads through other descriptors */
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return real(file, bytes, count);
  if (++calls % 3 == 0) { errno = EINTR; return -1; }
  return real(file, bytes, count > 13 ? 13 : count);
}
"""


def test_the_core_goes_on_after_interrupted_and_short_writes(tmp_path):
    compiler = next((name for name in ("cc", "gcc", "clang") if _found(name)), None)
    if compiler is None:
        pytest.skip("there is no C compiler to build the library that makes calls fail")
    (tmp_path / "shim.c").write_text(SHIM)
    command = [
        compiler,
        "-shared",
        "-fPIC",
        "-o",
        str(tmp_path / "shim.so"),
        str(tmp_path / "shim.c"),
        "-ldl",
    ]
    subprocess.run(command, check=True)
    assert timeline(tmp_path / "plain", 1 << 30).returncode == 0
    ended = timeline(tmp_path / "shaken", 1 << 30, LD_PRELOAD=str(tmp_path / "shim.so"))
    assert ended.returncode == 0, ended.stderr
    whole = (tmp_path / "plain" / "timeline.pftrace").read_bytes()
    assert (tmp_path / "shaken" / "timeline.pftrace").read_bytes() == whole
    assert load(tmp_path / "shaken").status == "done"


def _found(name: str) -> bool:
    import shutil

    return shutil.which(name) is not None


def test_a_network_run_whose_disk_is_full_is_not_done(tmp_path, monkeypatch):
    real = os.write

    def write(descriptor: int, content: Any) -> int:
        if "ranks.parquet" in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, content)

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(ManyscaleError, match=r"ranks\.parquet: No space left on device"):
        network.run("allreduce", nodes=2, iterations=1, out=tmp_path / "run")
    assert load(tmp_path / "run").status == "failed"
