# SPDX-License-Identifier: Apache-2.0
"""A program reaches the files under its root and nothing else of the host, by whatever path it tries."""

import contextlib

import pytest
from riscv import encoding as e
from riscv.code import call, constant
from riscv.elf import DATA, small_program

from manyscale import cpu
from manyscale.errors import ProgramError

pytestmark = pytest.mark.core

READ_ONLY, WRITE_CREATE_TRUNCATE = 0, 0o1101
OPENAT, READ, WRITE, EXIT, SYMLINKAT, LINKAT = 56, 63, 64, 93, 36, 37
ROOM = DATA + 1024


def texts(*strings):
    """Strings for the data of a program, each in 512 bytes."""
    return b"".join(each.encode().ljust(512, b"\0") for each in strings) + bytes(2048)


def show(path):
    """A program that writes the first 64 bytes of a file; its exit code is 9 if it cannot open it."""
    code = [*call(OPENAT, -100, DATA, READ_ONLY, 0), e.branch("bge", 10, 0, 4 + 5 * 4)]
    code += [*constant(10, 9), *constant(17, EXIT), e.ecall()]
    code += [*call(READ, None, ROOM, 64), e.immediate("addi", 12, 10, 0), *call(WRITE, 1, ROOM, None)]
    return [*code, *call(EXIT, 0)], texts(path)


@pytest.fixture
def folders(tmp_path):
    """A root with a file and links, beside what must stay unseen."""
    outside, root = tmp_path / "outside", tmp_path / "outside" / "root"
    root.mkdir(parents=True)
    (outside / "secret").write_text("SECRET")
    (root / "inside").write_text("in the root")
    (root / "folder").mkdir()
    (root / "link_to_file").symlink_to(outside / "secret")
    (root / "link_to_folder").symlink_to(outside)
    (root / "relative_link").symlink_to("../secret")
    (root / "good_link").symlink_to("inside")
    (root / "rooted_link").symlink_to("/inside")
    (root / "loop").symlink_to("loop")
    return outside, root


def run(folder, code, data, root, writable=False):
    """Runs a small program with that root."""
    program = cpu.Program(small_program(folder, code, data), root=root, writable=writable)
    return cpu.run_functional(program, limit=10_000)


@pytest.mark.parametrize("path", ["inside", "/inside", "./folder/../inside", "/../../inside", "good_link"])
def test_files_in_the_root(path, folders, tmp_path):
    result = run(tmp_path, *show(path), folders[1])
    assert (result.stdout, result.exit_code) == ("in the root", 0)


@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "/../secret",
        "folder/../../secret",
        "link_to_file",
        "link_to_folder/secret",
        "relative_link",
        "link_to_folder/root/../secret",
        "loop",
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd/../secret",
        "/proc/self/environ",
        "/proc/1/cmdline",
        "/etc/passwd",
        "/dev/mem",
        "",
        "x" * 500,
    ],
)
def test_nothing_else_can_be_read(path, folders, tmp_path):
    result = run(tmp_path, *show(path), folders[1], writable=True)
    assert (result.stdout, result.exit_code) == ("", 9)


def test_absolute_path_outside(folders, tmp_path):
    outside, root = folders
    assert run(tmp_path, *show(str(outside / "secret")), root).exit_code == 9


@pytest.mark.parametrize("path", ["../new", "link_to_folder/new", "link_to_file", "relative_link", "/../new"])
def test_nothing_outside_is_written(path, folders, tmp_path):
    """What is opened for writing, if anything, is in the root."""
    outside, root = folders
    code = [
        *call(OPENAT, -100, DATA, WRITE_CREATE_TRUNCATE, 0o644),
        *call(WRITE, None, DATA, 8),
        *call(EXIT, 0),
    ]
    run(tmp_path, code, texts(path), root, writable=True)
    assert (outside / "secret").read_text() == "SECRET"
    assert {each.name for each in outside.iterdir()} == {"secret", "root"}


MADE_LINKS = {
    "symbolic": call(SYMLINKAT, DATA + 512, -100, DATA),
    "hard": call(LINKAT, -100, DATA + 512, -100, DATA, 0),
}


@pytest.mark.parametrize("kind", MADE_LINKS)
def test_a_link_made_by_the_program_leads_nowhere(kind, folders, tmp_path):
    """The program may be refused the call itself, by name; otherwise the link must not lead outside."""
    outside, root = folders
    code, _ = show("made")
    data = texts("made", str(outside / "secret"))
    with contextlib.suppress(ProgramError):
        result = run(tmp_path, [*MADE_LINKS[kind], *code], data, root, writable=True)
        assert (result.stdout, result.exit_code) == ("", 9)


def test_read_only_root_stays_as_it_is(folders, tmp_path):
    _, root = folders
    before = sorted(each.name for each in root.rglob("*"))
    code = [
        *call(OPENAT, -100, DATA, WRITE_CREATE_TRUNCATE, 0o644),
        *call(OPENAT, -100, DATA + 512, 0o1101, 0o644),
    ]
    code += [*call(34, -100, DATA + 512, 0o755), *call(35, -100, DATA, 0), *call(EXIT, 0)]
    run(tmp_path, code, texts("inside", "new"), root)
    assert sorted(each.name for each in root.rglob("*")) == before
    assert (root / "inside").read_text() == "in the root"


def test_without_a_root_there_are_no_files(folders, tmp_path):
    for path in ("/", "inside", "/etc/passwd", "/tmp"):
        assert run(tmp_path, *show(path), None).stdout == ""
