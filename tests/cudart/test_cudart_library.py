# SPDX-License-Identifier: Apache-2.0
"""The library by itself: its names, its versions, its layouts, and what it does without a server."""

from __future__ import annotations

import os
import re
import socket
import struct
import subprocess
import threading
from pathlib import Path

import pytest
from cudart_support import COMPILER, PROGRAMS, build, library, needs_compiler, run, run_alone
from elftools.elf.elffile import ELFFile

from manyscale.cuda import wire

pytestmark = [pytest.mark.core, needs_compiler]
SOURCES = Path(__file__).parents[2] / "cudart"


def names_of(version: str) -> dict[str, str]:
    """What a library exports: the version of each name."""
    with library(version).open("rb") as file:
        elf = ELFFile(file)
        symbols = elf.get_section_by_name(".dynsym")
        definitions = {
            definition.entry.vd_ndx: next(iter(names)).name
            for definition, names in elf.get_section_by_name(".gnu.version_d").iter_versions()
        }
        versions = elf.get_section_by_name(".gnu.version")
        return {
            symbol.name: definitions[versions.get_symbol(number).entry["ndx"]]
            for number, symbol in enumerate(symbols.iter_symbols())
            if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["type"] == "STT_FUNC"
        }


@pytest.mark.parametrize("version", ["11.0", "12", "13"])
def test_every_name_of_the_runtime_is_there_with_its_version(version):
    wanted = (Path(__file__).parent / f"names_{version.partition('.')[0]}.txt").read_text().split()
    names = names_of(version)
    assert len(wanted) > 390
    assert set(wanted) <= set(names)
    assert {names[name] for name in wanted} == {f"libcudart.so.{version}"}
    with library(version).open("rb") as file:
        dynamic = ELFFile(file).get_section_by_name(".dynamic")
        entries = {tag.entry.d_tag: tag for tag in dynamic.iter_tags()}
        assert entries["DT_SONAME"].soname == f"libcudart.so.{version}"
        needed = {tag.needed for tag in dynamic.iter_tags("DT_NEEDED")}
    assert not any(name.startswith(("libstdc++", "libgcc", "libpython")) for name in needed), needed


def test_nothing_but_the_interface_is_exported():
    others = {
        name: version for name, version in names_of("13").items() if not name.startswith(("cuda", "__cuda"))
    }
    stands_before = {"read", "pread", "pread64", "write", "pwrite", "pwrite64", "fread", "fwrite"}
    assert set(others) <= stands_before
    assert all(version.startswith("GLIBC_") for version in others.values())


def test_the_wire_is_that_of_the_server(tmp_path):
    """Each call's number, and each field's offset, as wire.py has them."""
    checks = [
        f'static_assert(sizeof(wire::RequestHeader) == {wire.REQUEST.size}, "header of requests");',
        f'static_assert(sizeof(wire::ReplyHeader) == {wire.REPLY.size}, "header of replies");',
        f"static_assert(wire::kVersion == {wire.VERSION} && wire::kAgain == {wire.AGAIN});",
    ]
    for call, layout in wire.LAYOUTS.items():
        name = "".join(word.capitalize() for word in call.name.split("_"))
        checks.append(f"static_assert(wire::{name}::kCall == {int(call)});")
        for part, fields in (("Request", layout.fields), ("Answer", layout.answer)):
            offset = 0
            for field, form in fields:
                checks.append(f"static_assert(offsetof(wire::{name}::{part}, {field}) == {offset});")
                offset += struct.calcsize("<" + form)
            if fields:
                checks.append(f"static_assert(sizeof(wire::{name}::{part}) == {offset});")
    source = tmp_path / "wire.cpp"
    source.write_text(
        '#include <cstddef>\n#include "wire.hpp"\nusing namespace manyscale::cudart;\n' + "\n".join(checks)
    )
    done = subprocess.run(
        [str(COMPILER), "-std=c++20", "-fsyntax-only", f"-I{SOURCES}", str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    defined = set(re.findall(r"kCall = (\d+)", (SOURCES / "wire.hpp").read_text()))
    assert defined == {str(int(call)) for call in wire.Call}


@pytest.mark.parametrize(
    ("version", "function", "offsets"),
    [
        # Of cudaDeviceProp: bytes, offsets of warpSize, major, multiProcessorCount and maxBlocksPerMultiProcessor,
        # as the compilers of the three versions lay the public struct out.
        ("11.0", "cudaGetDeviceProperties", (728, 308, 360, 388, 712)),
        ("12", "cudaGetDeviceProperties_v2", (1032, 308, 360, 388, 712)),
        ("13", "cudaGetDeviceProperties", (1008, 308, 360, 384, 688)),
    ],
)
def test_properties_are_where_programs_of_each_version_look(version, function, offsets, tmp_path):
    program = build(PROGRAMS / "properties.cpp", tmp_path, f"-DPROPERTIES={function}", version=version)
    done = run(program, *map(str, offsets))
    major = version.partition(".")[0]
    assert done == (0, f"{major} Manyscale v100: warps of 32, 7.0, 80 SMs with 32 blocks\n")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return build(PROGRAMS / "alone.cpp", tmp_path_factory.mktemp("alone"))


def test_without_a_server(alone):
    done = run_alone(alone)
    assert done.stdout == "cudaErrorNoDevice 0 cudaErrorNoDevice cudaErrorNoDevice cudaErrorNoDevice\n"
    assert done.stderr.count("start the program with: manyscale cuda -- PROGRAM") == 1


def test_a_server_that_does_not_answer(alone, tmp_path):
    done = run_alone(alone, str(tmp_path / "nobody"))
    assert done.stdout.startswith("cudaErrorNoDevice 0")
    assert f"no simulator answers at {tmp_path / 'nobody'}" in done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("answers", [0, 1])
def test_a_server_that_goes_away(alone, tmp_path, answers):
    """It ends before its answer to the first call, or after it: no call hangs, all give an error."""
    path = tmp_path / "gpu"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def serve():
            connection, _ = server.accept()
            with connection:
                header = connection.recv(wire.REQUEST.size, socket.MSG_WAITALL)
                connection.recv(wire.REQUEST.unpack(header)[0], socket.MSG_WAITALL)
                if answers:
                    hello = wire.LAYOUTS[wire.Call.HELLO].reply().pack(2, 1 << 45, 1 << 20, 0)
                    heap = os.memfd_create("heap")
                    os.ftruncate(heap, 1 << 20)
                    reply = wire.REPLY.pack(0, len(hello), 0, 0, 0) + hello
                    socket.send_fds(connection, [reply], [heap])
                    os.close(heap)

        thread = threading.Thread(target=serve)
        thread.start()
        done = run_alone(alone, str(path))
        thread.join()
    assert done.returncode == 0
    count = "cudaSuccess 2" if answers else "cudaErrorUnknown 0"
    assert done.stdout == f"{count} cudaErrorUnknown cudaErrorUnknown cudaErrorUnknown\n"
    assert done.stderr.count("the simulator has ended") == 1


@pytest.mark.parametrize(
    "reply",
    [
        b"\xff" * 24,  # bytes without end
        wire.REPLY.pack(0, 2, 0, 0, 0) + b"ab",  # an answer that is too short
        wire.REPLY.pack(0, 28, 0, 0, 0) + bytes(28),  # no memory to share
        wire.REPLY.pack(0, 1 << 31, 0, 0, 0),  # too long
    ],
)
def test_answers_that_make_no_sense(alone, tmp_path, reply):
    path = tmp_path / "gpu"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def serve():
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        done = run_alone(alone, str(path))
        thread.join()
    assert done.returncode == 0
    assert "cudaSuccess" not in done.stdout
    assert done.stderr.startswith("manyscale: ")


def test_unsupported_functions_are_reported_once(tmp_path, capfd):
    program = build(PROGRAMS / "unsupported.cpp", tmp_path)
    assert run(program) == (0, "ok\n")
    errors = capfd.readouterr().err
    assert errors.count("cudaGLSetGLDevice is not supported") == 1
    assert "cudaIpcGetEventHandle is not supported" in errors
