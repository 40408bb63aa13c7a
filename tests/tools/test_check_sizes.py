# SPDX-License-Identifier: Apache-2.0
"""The check of sizes measures functions of C++ and Python as a reader counts them."""

import subprocess
from pathlib import Path

import pytest

import check_sizes

CPP = """\
namespace x {

// A comment with a { brace.
constexpr int table[] = {
    1,
    2,
};

struct Pair {
  int first{1};
  int sum() const {
    return first;
  }
};

Pair::Pair(int a, int b)
    : first{a}, second(b), third{} {
  call({1, 2}, "}");
}

template <class T>
auto longer(T value) noexcept -> std::vector<T> {
  auto inner = [&](int x) {
    return x;
  };
  if (value) {
    inner('{');
  }
}

MACRO(one, two)
MACRO(three, four)

int last() { return 1; }

TEST(a_thing_works) {
  check(true, "it does");
}

}  // namespace x
"""

PYTHON = '''\
def command(
    one: int,
    two: int,
) -> None:
    """Doc."""
    pass


class Thing:
    def method(self):
        def inner():
            return 1

        return inner
'''


def test_cpp_functions_are_found_with_their_lengths():
    found = list(check_sizes.cpp_functions(CPP))
    assert found[:3] == [("sum", 11, 3), ("Pair::Pair", 16, 4), ("longer", 21, 9)]
    assert found[3:] == [("last", 34, 1), ("a_thing_works", 36, 3)]


def test_python_functions_are_measured_without_their_parameters():
    found = list(check_sizes.python_functions(PYTHON))
    assert found == [("command", 1, 2), ("Thing.method", 10, 4), ("Thing.method.inner", 11, 1)]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with a file that is too long, and one with a function that is."""
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    (tmp_path / "tools").mkdir()
    (tmp_path / "long.py").write_text("x = 1\n" * 501)
    (tmp_path / "core.cpp").write_text("void f() {\n" + "  g();\n" * 79 + "}\n")
    (tmp_path / "fits.cpp").write_text("void f() {\n" + "  g();\n" * 78 + "}\n" + "\n" * 420)
    subprocess.run(["git", "add", "--all"], cwd=tmp_path, check=True)
    return tmp_path


def write(tree: Path, *entries: tuple[str, str, int]) -> None:
    exceptions = [
        check_sizes.Exemption(file, function, lines, "a table") for file, function, lines in entries
    ]
    (tree / check_sizes.EXCEPTIONS).write_text(check_sizes.exceptions_text(exceptions))


def test_files_and_functions_over_the_limit_are_named(tree: Path, capsys: pytest.CaptureFixture[str]):
    write(tree)
    assert check_sizes.main([], root=tree) == 1
    assert capsys.readouterr().err.splitlines() == [
        "core.cpp:1: f has 81 lines; at most 80 are allowed",
        "long.py:1: the file has 501 lines; at most 500 are allowed",
    ]


def test_exceptions_hold_to_their_own_length(tree: Path, capsys: pytest.CaptureFixture[str]):
    write(tree, ("long.py", "", 501), ("core.cpp", "f", 81))
    assert check_sizes.main([], root=tree) == 0
    (tree / "long.py").write_text("x = 1\n" * 502)
    assert check_sizes.main([], root=tree) == 1
    assert "has 502 lines; at most 501 are allowed" in capsys.readouterr().err


def test_an_update_drops_what_is_not_needed(tree: Path):
    write(tree, ("long.py", "", 900), ("core.cpp", "f", 81), ("gone.cpp", "", 600), ("fits.cpp", "f", 90))
    assert check_sizes.main(["--update"], root=tree) == 0
    left = check_sizes.read_exceptions(tree / check_sizes.EXCEPTIONS)
    assert [(one.file, one.function, one.lines) for one in left] == [
        ("core.cpp", "f", 81),
        ("long.py", "", 501),
    ]
