# SPDX-License-Identifier: Apache-2.0
"""PTX as compilers write it is read, and anything else is refused with its line: no text crashes the parser."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest

from manyscale import InputError, gpu

pytestmark = pytest.mark.core

HERE = Path(__file__).parent
FIXTURES = sorted(HERE.glob("fixtures/*/*.ptx"))
CORPUS = sorted(HERE.glob("fuzz/corpus/*.ptx"))
WORDS = re.compile(rb"[\w$%]+|\.[\w:]+|\s+|.", re.S)
MESSAGE = re.compile(r"<ptx>:[1-9]\d*:[1-9]\d*: \S")


def parsed_or_refused(text: bytes) -> bool:
    """Whether the text is PTX; a refusal must say where it is not."""
    message = ""
    try:
        gpu.parse(text)
    except InputError as error:
        message = str(error)
    assert not message or MESSAGE.match(message), message
    return not message


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_compilers_write_is_read(path: Path) -> None:
    module = gpu.parse(path)
    text = path.read_text()
    assert sorted(module.kernels) == sorted(set(re.findall(r"\.entry\s+([\w$]+)", text)))
    assert module.target == re.search(r"\.target\s+(\w+)", text)[1]


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_what_the_fuzzer_kept_is_read_or_refused(path: Path) -> None:
    parsed = parsed_or_refused(path.read_bytes())
    assert parsed or path.stem.startswith("mutated")


def test_line_ends_and_comments_do_not_matter() -> None:
    text = (HERE / "fixtures/sm_75/switch_cases.ptx").read_bytes()
    kernels = gpu.parse(text).kernels
    without_comments = re.sub(rb"//.*", b"", text)
    for variant in (
        text.replace(b"\n", b"\r\n"),
        without_comments,
        re.sub(rb"\s+", b" ", without_comments),
        b"\xef\xbb\xbf" + text,
        text.rstrip() + b"\0",
    ):
        assert gpu.parse(variant).kernels == kernels


def test_a_text_cut_anywhere_is_refused() -> None:
    text = (HERE / "fixtures/sm_75/function_table.ptx").read_bytes()
    end = text.rindex(b"}")
    for cut in random.Random(1).sample(range(text.rindex(b"{"), end), 200):
        assert not parsed_or_refused(text[:cut])
    for cut in range(0, end, 97):  # between functions it is complete
        parsed_or_refused(text[:cut])


@pytest.mark.parametrize("name", ["function_table", "switch_cases", "struct_parameters", "textures"])
def test_changed_words_are_read_or_refused(name: str) -> None:
    rng = random.Random(name)
    original = WORDS.findall((HERE / f"fixtures/sm_60/{name}.ptx").read_bytes())
    outcomes = set()
    for _ in range(300):
        words = original.copy()
        for _ in range(rng.choice([1, 1, 2, 5])):
            here, there = rng.randrange(len(words)), rng.randrange(len(words))
            change = rng.randrange(4)
            if change == 0:
                del words[here]
            elif change == 1:
                words.insert(here, words[there])
            elif change == 2:
                words[here], words[there] = words[there], words[here]
            else:
                words[here] = rng.choice(
                    [b"4294967296", b"-1", b"%r<99>", b"{", b"}", b"\0", b"\xff", b".reg", b"0x"]
                )
        outcomes.add(parsed_or_refused(b"".join(words)))
    assert outcomes == {True, False}


def test_any_bytes_are_refused() -> None:
    rng = random.Random(2)
    head = b".version 8.0\n.target sm_80\n.address_size 64\n.entry k() {\n"
    for _ in range(500):
        assert not parsed_or_refused(head + rng.randbytes(rng.randrange(1, 200)) + b"(")


def test_the_message_has_the_line_and_the_nearest_name() -> None:
    text = (
        ".version 8.0\n.target sm_80\n.entry k() {\n  .reg .b32 total, %r<4>;\n  add.s32 %r1, %r2, totl;\n}\n"
    )
    with pytest.raises(InputError) as refused:
        gpu.parse(text)
    assert str(refused.value) == "<ptx>:5:21: unknown name 'totl', did you mean 'total'?"


@pytest.mark.long
def test_a_large_module_is_read_in_a_moment() -> None:
    """100,000 lines are to be read in well under a second, so that nobody has to wait for it."""
    lines = []
    for function in range(100):
        lines.append(
            f".visible .entry kernel{function}(.param .u64 a) {{ .reg .b32 %r<1000>; .reg .pred %p<8>;"
        )
        for i in range(250):
            lines.append(
                f"$L{i}:\n\tmad.lo.s32 \t%r{i}, %r{i + 1}, %r{i + 2}, {i};\n\tsetp.ne.s32 \t%p1, %r{i}, 0;"
            )
            lines.append(f"\t@%p1 bra \t$L{249 - i};")
        lines.append("}")
    text = (".version 8.0\n.target sm_80\n.address_size 64\n" + "\n".join(lines)).encode()
    assert text.count(b"\n") >= 100_000
    seconds = []
    for _ in range(3):
        begin = time.process_time()
        gpu.parse(text)
        seconds.append(time.process_time() - begin)
    assert min(seconds) < 1, f"it took {min(seconds):.2f} s"
