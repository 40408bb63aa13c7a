# SPDX-License-Identifier: Apache-2.0
"""The scaffolds: what is generated works as it is, and nothing is overwritten."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from manyscale.cli.app import main

REPOSITORY = Path(__file__).parents[2]
LONGEST = "longest_name_that_is_allowed"


def tool(*command, cwd=REPOSITORY):
    result = subprocess.run(
        [sys.executable, "-m", *command], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture
def checkout(tmp_path):
    """As much of a checkout as the scaffold looks at."""
    shutil.copytree(REPOSITORY / "core/engine", tmp_path / "core/engine")
    shutil.copy(REPOSITORY / ".clang-format", tmp_path)
    return tmp_path


def test_the_python_model_runs_and_its_test_passes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "model", "ring_buffer"]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "Wrote ring_buffer.py",
        "Wrote test_ring_buffer.py",
        "Try it: python ring_buffer.py; pytest test_ring_buffer.py",
    ]
    assert "class RingBuffer(ms.Component):" in Path("ring_buffer.py").read_text()
    assert "first handled 5 messages" in tool("ring_buffer", cwd=tmp_path)
    assert "5 passed" in tool("pytest", "-p", "no:cacheprovider", cwd=tmp_path)
    assert sorted(path.name for path in tmp_path.glob("*.py")) == ["ring_buffer.py", "test_ring_buffer.py"]


@pytest.mark.parametrize("name", ["x", LONGEST])
def test_what_is_generated_is_as_ruff_wants_it(tmp_path, checkout, name):
    assert main(["new", "model", name, "--into", str(tmp_path / "mine"), "--quiet"]) == 0
    assert main(["new", "model", name, "--language", "c++", "--into", str(checkout), "--quiet"]) == 0
    files = sorted(map(str, [*tmp_path.glob("mine/*.py"), *checkout.glob("tests/synthetic/*.py")]))
    assert len(files) == 3
    # Whose imports are whose depends on the folder, so their order is not looked at.
    tool("ruff", "check", "--no-cache", "--config", "pyproject.toml", "--ignore", "I001", *files)
    tool("ruff", "format", "--no-cache", "--check", "--config", "pyproject.toml", *files)


@pytest.mark.parametrize(("name", "layer"), [("ring_buffer", "synthetic"), (LONGEST, "longest_kind")])
def test_the_cpp_model_compiles_and_is_formatted(checkout, name, layer):
    arguments = ["new", "model", name, "--language", "c++", "--layer", layer, "--into", str(checkout)]
    assert main([*arguments, "--quiet"]) == 0
    folder = checkout / "core" / layer / name
    assert sorted(path.name for path in folder.iterdir()) == [f"{name}.cpp", f"{name}.hpp"]
    assert f'registered{{"{layer}.{name}", doc}}' in (folder / f"{name}.cpp").read_text()
    assert f'MODEL = "{layer}.{name}"' in (checkout / "tests" / layer / f"test_{name}.py").read_text()
    clang_format = Path(sys.executable).with_name("clang-format")
    subprocess.run([clang_format, "--dry-run", "--Werror", *folder.iterdir()], check=True)
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++")
    flags = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", checkout / "core"]
    subprocess.run([compiler, *flags, folder / f"{name}.cpp"], check=True)


@pytest.mark.parametrize("present", ["ring_buffer.py", "test_ring_buffer.py"])
def test_nothing_is_overwritten(tmp_path, capsys, present):
    (tmp_path / present).write_text("precious")
    assert main(["new", "model", "ring_buffer", "--into", str(tmp_path)]) == 2
    assert f"{present} exists already" in capsys.readouterr().err
    assert [path.read_text() for path in tmp_path.iterdir()] == ["precious"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ring-buffer", "'ring-buffer' is no name for a model: use letters, digits and _"),
        ("2nd", "'2nd' is no name for a model"),
        ("../up", "'../up' is no name for a model"),
        ("", "'' is no name for a model"),
        (LONGEST + "s", "at most 28"),
        ("while", "'while' is a word of Python itself; choose another, such as my_while"),
        ("none", "'none' is a word of Python itself"),
        ("queue", "queue.py would hide the module 'queue'; choose another, such as my_queue"),
    ],
)
def test_a_name_that_would_not_work_is_refused(tmp_path, capsys, name, message):
    assert main(["new", "model", name, "--into", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["timer"], "the class would be Timer, which"),
        (["ring_buffer", "--layer", "../up"], "'../up' is no name for a layer"),
    ],
)
def test_a_cpp_name_that_would_not_work_is_refused(checkout, capsys, arguments, message):
    assert main(["new", "model", *arguments, "--language", "c++", "--into", str(checkout)]) == 2
    assert message in capsys.readouterr().err
    assert [path.name for path in (checkout / "core").iterdir()] == ["engine"]


def test_a_cpp_model_is_not_begun_twice(checkout, capsys):
    arguments = ["new", "model", "ring_buffer", "--language", "c++", "--into", str(checkout)]
    assert main(arguments) == 0
    assert "Try it: make install; manyscale models show synthetic.ring_buffer" in capsys.readouterr().err
    assert main(arguments) == 2
    assert "core/synthetic/ring_buffer exists already" in capsys.readouterr().err


def test_a_cpp_model_needs_a_checkout(tmp_path, capsys):
    assert main(["new", "model", "ring_buffer", "--language", "c++", "--into", str(tmp_path)]) == 2
    assert f"{tmp_path} is no checkout of Manyscale: clone the repository" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_language_lists_the_known_ones(capsys):
    assert main(["new", "model", "ring_buffer", "--language", "rust"]) == 2
    message = capsys.readouterr().err
    assert "python" in message
    assert "c++" in message
