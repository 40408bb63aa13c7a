# SPDX-License-Identifier: Apache-2.0
"""An audit of the sources: all files that are left behind are written through manyscale.results.files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import manyscale

PACKAGE = Path(manyscale.__file__).resolve().parent
CHECKOUT = Path(__file__).resolve().parents[1]

# Functions that write without results/files.py -> why they may.
PYTHON = {
    "results/files.py": "the one writer",
    "plugins.py:compile_library": "a compiled plug-in of the cache, made beside it and moved when whole",
    "results/lock.py": "a lock has no content",
    "studies/sweep/sweep_directory.py:_claim": "a lock has no content",
    "results/journal.py:append": "a journal that only grows, a checksum in each line; gone when the tables are written",
    "studies/sweep/result_log.py:__init__": "a log that only grows, a checksum in each line; a torn end is cut off",
    "studies/sweep/cluster.py:keep": "keys of a cluster, in a temporary folder",
    "studies/sweep/kinds.py:*": "opens the null device",
    "processes.py:_speechless": "what the other processes print, in a scratch folder",
    "cli/app.py:main": "opens the null device",
    "cuda/environment.py:start": "opens the null device",
    "cpu/line_times.py:_transfer_time": "input of a loader, in a temporary folder",
    "cpu/replaying.py:_recorded_machine": "input of a loader, in a temporary folder",
    "cpu/mpi_host.py:start_rank": "what a rank prints, in a temporary folder",
    "gpu/cuda_compiler.py:*": "input of a compiler, in a temporary folder",
    "cuda/run_time_linking.py:_link_cubins": "input of a linker, in a temporary folder",
    "gpu/assembler.py:*": "input of an assembler, in a temporary folder",
    "studies/projection/programs/build.py:*": "a developer's script, which makes a file of this package",
}
CPP = {
    "core/engine/file_writer.cpp": "writes to the temporary file that results/files.py names",
    "core/cpu/linux/host_directory.cpp": "files that the simulated program itself writes",
    "core/cpu/linux/calls_paths.cpp": "files that the simulated program itself writes",
    "core/cluster/external_ranks.cpp": "memory that ranks share, in a temporary folder",
    "runtime/mpi/segment.c": "memory that ranks share, in a temporary folder",
    "runtime/mpi/recording.c": "a recording of a rank, in a temporary folder",
    "cudart/driver/logs.cpp": "cuLogsDumpToFile: the program names the file, and CUDA writes over it",
    "cudart/graphs.cpp": "cudaGraphDebugDotPrint: the program names the file, and CUDA writes over it",
}
WRITING = re.compile(r"[wax+]")
METHODS = {
    "write_text",
    "write_bytes",
    "savefig",
    "write_html",
    "write_image",
    "rename",
    "symlink_to",
    "sink_parquet",
}
CALLS = {
    ("os", "replace"), ("os", "rename"), ("os", "link"), ("os", "truncate"), ("shutil", "copy"), ("shutil", "copy2"),
    ("shutil", "copyfile"), ("shutil", "move"), ("tempfile", "NamedTemporaryFile"), ("tempfile", "mkstemp"),
    ("np", "save"), ("np", "savez"), ("json", "dump"), ("gzip", "open"), ("gzip", "GzipFile"), ("lzma", "open"),
}  # fmt: skip
CPP_WRITERS = re.compile(r"\b(ofstream|fstream|freopen|O_CREAT|creat|mkstemp)\b|\bfopen\s*\([^;]*\"[wa]")
# Calls that take a file which results/files.py has opened: told by what they are given.
FILE_ARGUMENTS = {"file", "drawn", "part"}


def writers(tree: ast.AST) -> Iterator[tuple[str, int, str]]:
    """Calls that write a file by its name: the function they are in, their line, what they are."""

    def visit(node: ast.AST, function: str) -> Iterator[tuple[str, int, str]]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
        if isinstance(node, ast.Call) and (what := kind_of(node)) is not None:
            yield function, node.lineno, what
        for child in ast.iter_child_nodes(node):
            yield from visit(child, function)

    yield from visit(tree, "")


def kind_of(call: ast.Call) -> str | None:
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if any(isinstance(value, ast.Name) and value.id in FILE_ARGUMENTS for value in given):
        return None
    target = call.func
    if isinstance(target, ast.Name):
        return "open" if target.id == "open" and _writes(given) else None
    if not isinstance(target, ast.Attribute):
        return None
    owner = target.value.id if isinstance(target.value, ast.Name) else ""
    if (owner, target.attr) == ("os", "open"):
        flags = {node.attr for value in given for node in ast.walk(value) if isinstance(node, ast.Attribute)}
        return "os.open" if flags & {"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"} else None
    if target.attr == "open" and owner not in ("gzip", "lzma", "webbrowser", "group"):
        return f"{owner}.open" if _writes(given) else None
    if (owner, target.attr) in CALLS:
        return None if owner in ("gzip", "lzma") and not _writes(given) else f"{owner}.{target.attr}"
    if target.attr in METHODS:
        return target.attr
    if target.attr in ("write_parquet", "write_csv") and given:
        return target.attr
    return None


def _writes(given: list[ast.expr]) -> bool:
    modes = [
        value.value for value in given if isinstance(value, ast.Constant) and isinstance(value.value, str)
    ]
    return any(re.fullmatch(r"[rwaxbt+]{1,3}", mode) and WRITING.search(mode) for mode in modes)


def test_python_writes_through_one_writer():
    found, used = [], set()
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        for function, line, what in writers(ast.parse(path.read_text(encoding="utf-8"))):
            allowed = next((key for key in (name, f"{name}:{function}", f"{name}:*") if key in PYTHON), None)
            used.add(allowed)
            if allowed is None:
                found.append(f"{name}:{line}: {what} in {function}")
    assert found == [], "write with manyscale.results.files, or say here why not"
    assert set(PYTHON) - used == set(), "these exceptions are not needed any more"


def test_the_core_writes_through_one_writer():
    found, used = [], set()
    for folder in ("core", "bindings", "runtime", "cudart"):
        for path in sorted((CHECKOUT / folder).rglob("*")):
            if path.suffix not in (".cpp", ".hpp", ".c", ".h"):
                continue
            name = path.relative_to(CHECKOUT).as_posix()
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if CPP_WRITERS.search(line):
                    used.add(name)
                    if name not in CPP:
                        found.append(f"{name}:{number}: {line.strip()}")
    assert found == [], (
        "write with FileWriter to a file that manyscale.results.files names, or say here why not"
    )
    assert set(CPP) - used == set(), "these exceptions are not needed any more"


def test_the_audit_sees_writers():
    """What the audit is to find, as it would be written."""
    bad = """
def f(path, table, figure):
    path.open("w")
    path.open("xb")
    open(path, mode="ab")
    path.write_text("x")
    table.write_parquet(path)
    table.write_csv(path / "x")
    figure.savefig(path)
    os.replace(a, b)
    os.open(path, os.O_WRONLY | os.O_CREAT)
    gzip.open(path, "wb")
    np.save(path, table)
"""
    good = """
def f(path, table):
    path.open("rb")
    open(path)
    gzip.open(path, "rb")
    os.open(path, os.O_RDONLY)
    replace_file(path, table.write_parquet)
    group.add("x", lambda file: table.write_csv(file))
"""
    assert len(list(writers(ast.parse(bad)))) == 11
    assert list(writers(ast.parse(good))) == []
