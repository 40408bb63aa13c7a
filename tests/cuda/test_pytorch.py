# SPDX-License-Identifier: Apache-2.0
"""PyTorch as it is shipped, on a simulated A100: its results are those of its CPU tensors.

`MANYSCALE_TORCH_PYTHON=/path/to/python` names a Python with a PyTorch for CUDA; without it the tests are skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PYTHON = os.environ.get("MANYSCALE_TORCH_PYTHON", "")
OPERATORS = Path(__file__).parent / "pytorch" / "operators.py"
FIRST = Path(__file__).parent / "pytorch" / "first_programs.py"
MODELS = Path(__file__).parent / "pytorch" / "models.py"

pytestmark = pytest.mark.skipif(
    not PYTHON, reason="MANYSCALE_TORCH_PYTHON names no Python with a PyTorch for CUDA"
)


def on_gpu(*command: str, folder: Path, options: tuple[str, ...] = ("--functional",)) -> str:
    manyscale = [sys.executable, "-m", "manyscale.cli.app", "cuda", "--machine", "a100", *options]
    done = subprocess.run(
        [*manyscale, "--out", str(folder / "run"), "--", PYTHON, *command],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "group",
    ["reductions", "elementwise", "layers", "indices", "transforms", "linear_algebra", "sparse"],
)
def test_operators_give_what_they_give_on_the_cpu(group: str, tmp_path: Path) -> None:
    lines = on_gpu(str(OPERATORS), group, folder=tmp_path).splitlines()
    agreed, failed = (int(word) for word in lines[-1].split() if word.isdigit())
    assert failed == 0, "\n".join(lines)
    assert agreed > 0


@pytest.mark.parametrize("model", ["perceptron", "transformer"])
def test_a_model_is_trained_as_on_the_cpu(model: str, tmp_path: Path) -> None:
    assert f"{model}: 2 steps agree" in on_gpu(str(MODELS), model, folder=tmp_path)


@pytest.mark.skipif(
    "MANYSCALE_CUDART_STATIC" not in os.environ,
    reason="MANYSCALE_CUDART_STATIC names no libcudart_static.a of the version that cuDNN was linked with",
)
@pytest.mark.parametrize("model", ["convolutional"])
def test_a_model_with_layers_of_cudnn_is_trained_as_on_the_cpu(model: str, tmp_path: Path) -> None:
    assert f"{model}: 2 steps agree" in on_gpu(str(MODELS), model, folder=tmp_path)


@pytest.mark.parametrize("program", ["compiled", "captured", "launched_by_triton", "in_a_segment"])
def test_a_first_program_gives_what_it_gives_on_the_cpu(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    if program == "in_a_segment":
        monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    assert on_gpu(str(FIRST), program, folder=tmp_path).splitlines()[-1] == f"{program}: agrees"


def test_a_sum_takes_simulated_time(tmp_path: Path) -> None:
    code = (
        "import torch; x = torch.ones(1000, device='cuda'); "
        "begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2)); "
        "begin.record(); total = x.sum(); end.record(); end.synchronize(); "
        "print(total.item(), 0 < begin.elapsed_time(end) < 1)"
    )
    assert on_gpu("-c", code, folder=tmp_path, options=()) == "1000.0 True\n"
