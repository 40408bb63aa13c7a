# SPDX-License-Identifier: Apache-2.0
"""Every command that writes files: what is there is never lost, and nothing is left of what failed."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from run_directories import kernel_run

from manyscale import cpu
from manyscale.cli.app import app, main
from manyscale.cpu import gem5_trace
from manyscale.results import files, load

pytestmark = pytest.mark.core

HEAT = [str(cpu.sample("heat")), "-m", "boom", "-n", "1"]
HEAT_ARGUMENTS = ["--", "1", "8", "1"]
DEMO = str(Path(__file__).resolve().parents[2] / "examples/gpu/kernels.ptx")
SAXPY = [
    "--kernel",
    "saxpy",
    "-g",
    "1",
    "-b",
    "32",
    "-a",
    "2",
    "-a",
    "f32[32]",
    "-a",
    "y=f32[32]",
    "-a",
    "32",
]
LISTING = "[CPU]\nclock: 2660MHz\n\n[GPU]\nclock: 1200MHz\n"
STUDY = """
name = "small"
machine = "omnipath"
[workload]
kind = "network"
work = "allreduce"
param = {iterations = 1}
[axes]
"workload.nodes" = [2]
"""

Command = Callable[[], list[str]]


def a_trace() -> str:
    shutil.copy(Path(os.environ["MANYSCALE_TEST_TRACE"]), "in.trace")
    return "in.trace"


def gem5_files() -> list[str]:
    gem5_trace.export_gem5(a_trace(), "gem5")
    return ["gem5/core0.data.gz", "--fetch", "gem5/core0.inst.gz"]


def a_source() -> str:
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc to compile for this machine")
    Path("in.c").write_text("int main(void) { return 0; }\n")
    return "in.c"


def a_run() -> str:
    return str(kernel_run(Path("run")).path)


def a_listing() -> str:
    Path("in.ini").write_text(LISTING)
    return "in.ini"


def figures() -> list[str]:
    pytest.importorskip("matplotlib", reason="pip install 'manyscale[figures]'")
    return ["report", a_run(), "--out", "page.html", "--figures", "figures", "--format", "svg"]


def measured() -> list[str]:
    """Phase 2, with a result that is made up: the simulation is not what is looked at."""
    Path("job").write_bytes(Path(HEAT[0]).read_bytes())
    return ["project", "node", "job", "--nodes", "2", "--out", "out"]


def predicted() -> list[str]:
    a_measured_job().save("out")
    return ["project", "predict", "--nodes", "2", "--skeleton", "halo3d", "-p", "iterations=1", "--repetitions", "1",
            "--no-what-if", "--out", "out"]  # fmt: skip


def a_measured_job() -> Any:
    from manyscale.studies.projection.calibration import MpiCosts
    from manyscale.studies.projection.measured_job import GroupTimings, MeasuredJob
    from manyscale.studies.projection.timings import PhaseTiming, TimingProfile

    profile = TimingProfile([PhaseTiming.of("MPI_Waitall..MPI_Irecv", [[1e-3, 2e-3]])])
    facts = {
        "network": "omnipath",
        "network_changes": [],
        "machine": "broadwell",
        "program": "heat",
        "arguments": [],
    }
    numbers = dict.fromkeys(MpiCosts.__dataclass_fields__, 0) | {"latency": 10**9, "local_bandwidth": 10**10}
    costs = MpiCosts(**numbers | {"measured": {"8": 1.0}, "modelled": {"8": 1.0}})
    group = GroupTimings(profile, profile)
    return MeasuredJob([0, 0], 1, [group], [group], costs, {"0": {"issue": 1.0}}, facts)


# Name, option or argument that says where to write -> a command that does, with its files in the current folder.
FILES: dict[tuple[str, str], Command] = {
    ("cpu record", "--out"): lambda: [
        "cpu", "record", *HEAT, "--functional", "--out", "out.trace", *HEAT_ARGUMENTS],
    ("cpu import-gem5", "--out"): lambda: ["cpu", "import-gem5", *gem5_files(), "--out", "out.trace"],
    ("cpu export-gem5", "--out"): lambda: ["cpu", "export-gem5", a_trace(), "--out", "out"],
    ("cpu run", "--konata"): lambda: [
        "cpu", "run", *HEAT, "--konata", "out.kanata", "--konata-count", "5", "--out", "$NEW", *HEAT_ARGUMENTS],
    ("cpu cc", "--output"): lambda: ["cpu", "cc", a_source(), "--host", "--output", "out"],
    ("cpu scale", "--out"): lambda: ["cpu", "scale", a_trace(), "--weak", "1", "--out", "out"],
    ("cpu replay", "--out"): lambda: ["cpu", "replay", a_trace(), "--vary", "l2.size=256KiB", "--out", "out"],
    ("export", "--csv"): lambda: ["export", a_run(), "--csv", "out.csv"],
    ("mem curve", "--csv"): lambda: [
        "mem", "curve", "-m", "memory-small", "--accesses", "2", "--footprint", "64KiB", "--csv", "out.csv"],
    ("gpu run", "--save"): lambda: ["gpu", "run", DEMO, *SAXPY, "--save", "y=out.npy"],
    ("machines import", "--out"): lambda: ["machines", "import", a_listing(), "--out", "out.toml"],
    ("net goal", "file"): lambda: ["net", "goal", "allreduce", "out.goal", "--ranks", "2", "-p", "iterations=1"],
    ("compare", "--out"): lambda: ["compare", a_run(), "run", "--out", "out.html"],
    ("report", "--out"): lambda: ["report", a_run(), "--out", "out.html"],
    ("report", "--figures"): figures,
    ("validate", "--report"): lambda: ["validate", "--only", "network", "--report", "out.html"],
    ("project profile", "--out"): lambda: ["project", "profile", "--nodes", "2", "--groups", "0,1", "--out", "out"],
    ("project node", "--out"): measured,
    ("project predict", "--out"): predicted,
}  # fmt: skip

# The same for commands that leave a run directory or the like, which is never written over.
DIRECTORIES: dict[tuple[str, str], Command] = {
    ("run", "--out"): lambda: ["run", a_system(), "--out", "out"],
    ("mem run", "--out"): lambda: ["mem", "run", "random", "-m", "memory-small", "--accesses", "2", "--out", "out"],
    ("gpu run", "--out"): lambda: ["gpu", "run", DEMO, *SAXPY, "-m", "v100", "--set", "gpu.sm_count=1", "--out", "out"],
    ("cpu run", "--out"): lambda: ["cpu", "run", *HEAT, "--out", "out", *HEAT_ARGUMENTS],
    ("cpu run --functional", "--out"): lambda: [
        "cpu", "run", *HEAT, "--functional", "--out", "out", *HEAT_ARGUMENTS],
    ("cpu replay", "--out"): lambda: ["cpu", "replay", a_trace(), "--out", "out"],
    ("net run", "--out"): lambda: ["net", "run", "allreduce", "--nodes", "2", "-p", "iterations=1", "--out", "out"],
    ("demo", "--out"): lambda: ["demo", "--out", "out"],
    ("sweep", "--out"): lambda: ["sweep", a_study(), "--workers", "1", "--out", "out"],
}  # fmt: skip

ELSEWHERE = {
    ("export", "--chrome-trace"): "needs a CUDA program: tests/cuda/test_ranges.py",
    ("cuda", "--out"): "needs a CUDA program: tests/cuda/test_command.py; its directory is that of all runs",
    **{
        (command, option): "replaces a file of its own kind, as test reports are: tests/cli/test_findings.py"
        for command in ("check", "cuda", "gpu run")
        for option in ("--junit", "--sarif")
    },
    ("new model", "--into"): "never replaces anything: tests/cli/test_cli_new.py, and below",
    **{
        (f"new {kind}", "--into"): "never replaces anything: tests/cli/test_cli_new.py"
        for kind in ("topology", "routing", "collective", "mpi-library", "replacement", "prefetcher")
    },
    **{
        ("correlate", option): "needs a CUDA program: tests/cuda/test_correlation.py"
        for option in ("--out", "--report")
    },
    ("validate", "--markdown"): "changes a page between its marks: below",
}
READ = {
    "--machine", "--trace", "--root", "--stdin", "--run", "--task2core", "--fetch", "--mapping", "--program",
    "--native", "--network", "--programs", "file", "sources", "trace", "machine", "command", "program",
}  # fmt: skip


def a_system() -> str:
    from systems import make_ring

    make_ring(stages=2).save("in.toml")
    return "in.toml"


def a_study() -> str:
    Path("in.toml").write_text(STUDY)
    return "in.toml"


@pytest.fixture(scope="module", autouse=True)
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    path = tmp_path_factory.mktemp("recorded") / "heat.trace"
    cpu.record(cpu.Program(HEAT[0], HEAT_ARGUMENTS[1:]), path, machine="boom", cores=1, functional=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MANYSCALE_TEST_TRACE", str(path))
        yield


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    from manyscale import validation
    from manyscale.studies.projection import measured_job

    monkeypatch.chdir(tmp_path)
    row = validation.Row("a row", 1.0, 1.0, "s", "a source")
    monkeypatch.setattr(validation, "tables", lambda *_: [("network", [row])])
    monkeypatch.setattr(measured_job, "measure_job", lambda *_, **__: a_measured_job())
    return tmp_path


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    if getattr(command, "commands", None):
        for name, one in command.commands.items():
            yield from commands(one, (*path, name))
    else:
        yield " ".join(path), command


def snapshot() -> dict[str, bytes | None]:
    """Everything in the current folder but new run directories."""
    return {
        str(path): path.read_bytes() if path.is_file() else None
        for path in Path().rglob("*")
        if path.parts[0] != "new"
    }


def run(arguments: list[str], *more: str) -> int:
    """A command; $NEW is a run directory that nobody has."""
    number = len(list(Path("new").iterdir())) if Path("new").exists() else 0
    given = [f"new/{number}" if word == "$NEW" else word for word in arguments]
    at = given.index("--") if "--" in given else len(given)
    return main([*given[:at], *more, *given[at:]])


def test_every_option_that_names_files_is_known_here():
    """A new option of a command is either read only, or has to obey the rules that are tested below."""
    known = {
        (name.removesuffix(" --functional"), option) for name, option in (*FILES, *DIRECTORIES, *ELSEWHERE)
    }
    found = set()
    for name, command in commands(typer.main.get_command(app)):
        for parameter in command.params:
            shown = str(getattr(parameter, "metavar", "") or "")
            if any(word in shown for word in ("FILE", "DIR", "TRACE", "PROG", "SOURCE")):
                option = max(parameter.opts, key=len)
                if option not in READ or (name, option) in known:
                    found.add((name, option))
    assert found == known


@pytest.mark.parametrize("case", FILES, ids=" ".join)
def test_files_are_replaced_only_when_asked_and_never_lost(case, monkeypatch, capsys):
    command = FILES[case]()
    before = snapshot()
    assert run(command) == 0, capsys.readouterr().err
    written = snapshot()
    made = [name for name in written if name not in before and written[name] is not None]
    assert made
    assert not [name for name in written if Path(name).name.startswith(".")]

    capsys.readouterr()
    assert run(command) == 2
    assert "exists already; give --force" in capsys.readouterr().err
    assert snapshot() == written

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", raising(OSError(errno.ENOSPC, "No space left on device")))
        if "$NEW" not in command:  # there it is the run directory that fails first
            assert run(command, "--force") == 2
            assert "No space left on device" in capsys.readouterr().err
            assert snapshot() == written
    with monkeypatch.context() as patch:
        patch.setattr(files.OutputFile, "sync", raising(KeyboardInterrupt()))
        assert run(command, "--force") == 130
        assert snapshot() == written

    assert run(command, "--force") == 0, capsys.readouterr().err
    assert set(snapshot()) == set(written)

    for name in made:
        Path(name).write_bytes(b"years of work")
    spoilt = snapshot()
    assert run(command, "--force") == 2
    assert "is not written over even with --force" in capsys.readouterr().err
    assert snapshot() == spoilt


def raising(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


@pytest.mark.parametrize("case", FILES, ids=" ".join)
def test_a_failure_leaves_nothing(case, monkeypatch, capsys):
    command = FILES[case]()
    before = snapshot()
    monkeypatch.setattr(files.os, "fsync", raising(OSError(errno.ENOSPC, "No space left on device")))
    assert run(command) != 0
    assert "No space left on device" in capsys.readouterr().err
    assert snapshot() == before


@pytest.mark.parametrize("case", DIRECTORIES, ids=" ".join)
def test_a_directory_with_something_in_it_is_left_alone(case, capsys):
    command = DIRECTORIES[case]()
    Path("out").mkdir()
    Path("out/thesis.tex").write_text("years of work")
    before = snapshot()
    assert run(command) != 0
    assert "out" in capsys.readouterr().err
    assert snapshot() == before


@pytest.mark.parametrize(
    "case", [case for case in DIRECTORIES if case[0] not in ("demo", "sweep")], ids=" ".join
)
def test_a_disk_that_is_full_or_ctrl_c_never_reads_as_done(case, monkeypatch, capsys):
    """The first file after run.json cannot be written, or is interrupted: the run has not ended well."""
    command = DIRECTORIES[case]()
    real = files.OutputFile.sync
    for error, status in (
        (OSError(errno.ENOSPC, "No space left on device"), "failed"),
        (KeyboardInterrupt(), "stopped"),
    ):

        def sync(self: Any, error: BaseException = error) -> None:
            if self.path.name not in ("run.json", "machine.toml"):
                raise error
            real(self)

        monkeypatch.setattr(files.OutputFile, "sync", sync)
        assert run(command) != 0
        assert load("out").status == status
        assert not [path for path in Path("out").iterdir() if path.name.startswith(".")]
        shutil.rmtree("out")
        capsys.readouterr()
    monkeypatch.setattr(files.OutputFile, "sync", real)
    assert run(command) == 0, capsys.readouterr().err
    assert load("out").status == "done"


@pytest.mark.parametrize(
    "command",
    [
        ["gpu", "run", DEMO, *SAXPY[:-2], "-m", "v100", "--out", "out/deep"],  # an argument too few
        ["gpu", "run", DEMO, *SAXPY, "-m", "v100", "--shared", "1GiB", "--out", "out/deep"],
        ["gpu", "run", DEMO, *SAXPY, "-m", "v100", "--set", "gpu.clok=1GHz", "--out", "out/deep"],
        ["cpu", "run", *HEAT, "--set", "cpu.clok=1GHz", "--out", "out/deep"],
        ["cpu", "run", *HEAT, "--roi", "nowhere", "--out", "out/deep"],
        ["net", "run", "allreduce", "--nodes", "2", "-p", "iteration=1", "--out", "out/deep"],
        ["mem", "run", "randm", "-m", "memory-small", "--out", "out/deep"],
    ],
    ids=lambda command: " ".join(command[:2] + command[-4:-2]),
)
def test_a_wrong_argument_does_not_take_the_directory(command, capsys):
    assert run(command) != 0
    assert capsys.readouterr().err
    assert snapshot() == {}


def test_a_run_without_time_leaves_its_output(capsys):
    assert run(DIRECTORIES["cpu run --functional", "--out"](), "--json") == 0
    found = load("out")
    assert (found.status, found.headline["exit_code"]["value"]) == ("done", 0)
    assert b"1 steps on 8 x 8 cells" in found.content("stdout.txt")


def test_tables_on_a_page_survive_a_full_disk(monkeypatch, capsys):
    command = ["validate", "--only", "network", "--markdown", "page.md"]
    assert run(command) == 0
    written = snapshot()
    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", raising(OSError(errno.ENOSPC, "No space left on device")))
        assert run(command) == 2
    assert snapshot() == written
    Path("page.md").write_text("years of work")
    assert run(command) == 2
    assert Path("page.md").read_text() == "years of work"


def test_a_new_model_is_written_whole_or_not_at_all(monkeypatch, capsys):
    calls = []

    def sync(self: Any) -> None:
        calls.append(self)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files.OutputFile, "sync", sync)
        assert run(["new", "model", "ring_buffer", "--into", "models"]) == 2
    assert snapshot() == {}
    assert run(["new", "model", "ring_buffer", "--into", "models"]) == 0
    written = snapshot()
    assert run(["new", "model", "ring_buffer", "--into", "models"]) == 2
    assert snapshot() == written


def test_the_report_of_a_run_is_made_anew_but_not_over_changes(capsys):
    a_run()
    assert run(["report", "run"]) == 0
    assert "report.html" in load("run").files
    assert run(["report", "run"]) == 0
    page = Path("run/report.html")
    page.write_text(page.read_text() + "<!-- my notes -->")
    changed = snapshot()
    assert run(["show", "run"]) == 4
    assert "report.html was changed" in capsys.readouterr().err
    assert run(["report", "run"]) == 2
    assert "exists already; give --force" in capsys.readouterr().err
    assert snapshot() == changed
    assert run(["report", "run", "--force"]) == 0
    assert run(["show", "run"]) == 0


REPLACED = [
    case for case in DIRECTORIES if case[0] not in ("demo", "sweep") and "--functional" not in case[0]
]


@pytest.mark.parametrize("case", REPLACED, ids=" ".join)
def test_force_replaces_a_run_and_nothing_else(case, monkeypatch, capsys):
    command = DIRECTORIES[case]()
    options = command.index("--out")
    forced = [*command[:options], "--force", *command[options:]]
    assert main(command) == 0
    assert main(command) != 0
    assert "--force" in capsys.readouterr().err
    assert main(forced) == 0
    precious = Path("out", "notes.txt")
    precious.write_text("precious")
    assert main(forced) != 0
    assert "notes.txt" in capsys.readouterr().err
    assert precious.read_text() == "precious"
