# SPDX-License-Identifier: Apache-2.0
"""`manyscale cuda --env`: whatever a shell starts runs on simulated GPUs, until the shell ends."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from host_programs import EMPTY, compiled
from wire_client import container

from manyscale import load
from manyscale.cli.app import main
from manyscale.cuda.loader import library_folder

pytestmark = pytest.mark.core

SOURCE = Path(__file__).parents[2] / "benchmarks" / "support" / "cuda_calls.cpp"
ENV = f'eval "$({shlex.quote(sys.executable)} -m manyscale.cli.start cuda --env --machine v100)"'


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that launches and copies as often as its arguments say."""
    if not SOURCE.exists():
        pytest.skip("only in a checkout")
    runtime = str(library_folder() / "libcudart.so.13")
    folder = tmp_path_factory.mktemp("calls")
    return compiled(folder, SOURCE.read_text(), container((EMPTY, 70)), "calls", runtime)


def in_shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-e", "-c", script], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )


def test_programs_of_a_shell_are_simulated_each_on_gpus_of_its_own(calls: Path, tmp_path: Path) -> None:
    done = in_shell(f"{ENV}\n{calls} 5 4\n{calls} 2 1 & {calls} 3 1\nwait", tmp_path)
    assert done.returncode == 0, done.stderr
    runs = sorted((tmp_path / "runs").iterdir())
    assert [run.name for run in runs] == ["cuda-calls-1", "cuda-calls-2", "cuda-calls-3"]
    launches = [load(run).headline["launches"]["value"] for run in runs]
    assert launches[0] == 6
    assert sorted(launches[1:]) == [3, 4]
    assert [load(run).status for run in runs] == ["done"] * 3


def test_the_dispatcher_ends_with_its_shell(tmp_path: Path) -> None:
    """subprocess.run returned, so nobody holds the shell's output; nobody listens at the address either."""
    done = in_shell(f'{ENV}\necho "$MANYSCALE_CUDA_SOCKET"\nsleep 2', tmp_path)
    name = done.stdout.strip()
    assert name.startswith("@manyscale-cuda-")
    for _ in range(50):
        if name not in Path("/proc/net/unix").read_text():
            break
        time.sleep(0.1)
    assert name not in Path("/proc/net/unix").read_text()


def test_it_takes_no_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cuda", "--env", "--", "true"]) == 2
    assert "--env runs no program" in capsys.readouterr().err
    assert main(["cuda"]) == 2
    assert "say which program" in capsys.readouterr().err


def test_a_program_without_a_cuda_call_is_told(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "manyscale.cli.start", "cuda", "--", "true"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert "The program made no CUDA call." in " ".join(done.stderr.split())
