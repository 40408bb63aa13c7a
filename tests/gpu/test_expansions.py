# SPDX-License-Identifier: Apache-2.0
"""The table of expansions beside what ptxas emits (tools/make_expansions.py), where ptxas is installed."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from manyscale.gpu.assembler import can_assemble_for

TOOL = Path(__file__).parents[2] / "tools" / "make_expansions.py"

pytestmark = [
    pytest.mark.skipif(not TOOL.is_file(), reason="only in a checkout"),
    pytest.mark.skipif(
        not can_assemble_for("sm_70"), reason="ptxas, which makes SASS for sm_70, is not installed"
    ),
]

# Rows that have other instructions than the probe. ptxas calls a function for division of 16 and 64 bits; the other
# sequences are those of larger kernels, in which ptxas shares or moves parts of them.
IN_FUNCTIONS = {f"{opcode}.{kind}" for opcode in ("div", "rem") for kind in ("u16", "s16", "u64", "s64")}
OTHERS = {
    *("div.u32", "div.u32, constant", "div.s32", "div.s32, constant", "rem.u32, constant", "rem.s32"),
    *(
        "rem.s32, constant",
        "div.f64",
        "rcp.f32",
        "sqrt.f32",
        "min.u16",
        "max.u16",
        "mul.u16",
        "mad.s16",
        "mad.u16",
    ),
    *(
        "mul.lo.s64, constant",
        "mul.lo.u64, constant",
        "mad.hi.u64",
        "mad.hi.s64",
        "bfe, constant",
        "bfi, constant",
    ),
    *("bfind.u64", "bfind.s64", "shr.s16", "fns"),
}


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    specification = importlib.util.spec_from_file_location("make_expansions", TOOL)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module


def test_the_table_has_the_instructions_that_ptxas_emits(tool: ModuleType) -> None:
    different = {
        row.name
        for row, found in tool.expansions(tool.table_rows(), "sm_70")
        if tool.counts(found) != tool.counts(row.steps)
    }
    assert different == IN_FUNCTIONS | OTHERS


def test_a_chain_follows_registers(tool: ModuleType) -> None:
    texts = ["I2F.F64 R4, R2", "MOV R20, 0x1", "MUFU.RCP64H R7, R5", "IADD3 R8, R7, -0x2, RZ", "MOV R3, R20"]
    assert tool.chain(texts) == [True, False, True, True, False]


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90"])
def test_rows_of_other_architectures_can_be_made(
    tool: ModuleType, architecture: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if not can_assemble_for(architecture):
        pytest.skip(f"ptxas, which makes SASS for {architecture}, is not installed")
    assert tool.main(["--architecture", architecture, "--rows"]) == 0
    rows = capsys.readouterr().out
    assert rows.count("_steps") == len(tool.table_rows())
    assert '{"popc", "", "b32", ">POPC"_steps},' in rows
