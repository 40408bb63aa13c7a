# SPDX-License-Identifier: Apache-2.0
"""Mutation testing of the C++ core: small faults are put into a model, one at a time, and the tests must notice.

`python tools/mutation.py core/memory/dram/*.cpp --programs "test_memory_*" --tests tests/memory --count 20` compiles
each fault into one object, links it with the objects that `make install` left, and runs first programs of `tests/core`,
then tests of pytest, until one fails. A mutant that no test notices has survived: it is printed with its line. Which
faults are tried follows from the seed alone. Neither the tree nor the environment is changed.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "editable"
WORK = ROOT / "build" / "mutation"
ENVIRONMENT = WORK / "venv"
PACKAGE = WORK / "package" / "manyscale"
_OBJECTS = "CMakeFiles/manyscale_core.dir"
_CORE_TEST_LIMIT = 600.0  # seconds for one program

# (what is searched in a line of code, what stands there in the mutant)
OPERATORS: tuple[tuple[str, str], ...] = (
    (r" < ", " <= "),
    (r" <= ", " < "),
    (r" > ", " >= "),
    (r" >= ", " > "),
    (r" == ", " != "),
    (r" != ", " == "),
    (r" && ", " || "),
    (r" \|\| ", " && "),
    (r" \+ ", " - "),
    (r" - ", " + "),
    (r" \* ", " + "),
    (r" \+= ", " -= "),
    (r" -= ", " += "),
    (r"\bstd::max\b", "std::min"),
    (r"\bstd::min\b", "std::max"),
    (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"),
    (r"\+\+(?=[a-z_])", "--"),
    (r"(?<=[\w\])])\+\+", "--"),
    (r"(?<== )0(?=;)", "1"),
    (r"(?<=[ (])1(?=[;,) ])", "2"),
)
_CONDITION = re.compile(r"\bif \(")
_STATEMENT = re.compile(r"^\s+[a-z_][\w.\->\[\]]*(\(.*\)| [-+|&]?= .*);$")
_SKIPPED = re.compile(
    r"^\s*(//|#|\*|template|using|static_assert|namespace|case )|\boperator\b|\bassert\(|\binclude\b"
)


@dataclass(frozen=True)
class Mutant:
    """A fault in one line of a source."""

    file: str
    line: int
    before: str
    after: str


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Every fault that the operators can put into a file, and every statement left out."""
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        code = text.split("//")[0].rstrip()
        if not code or _SKIPPED.search(code) or '"' in code:
            continue
        name = str(path.relative_to(ROOT))
        for pattern, other in OPERATORS:
            for match in re.finditer(pattern, code):
                yield Mutant(name, number, code, code[: match.start()] + other + code[match.end() :])
        for match in _CONDITION.finditer(code):
            if negated := _negated(code, match.end()):
                yield Mutant(name, number, code, negated)
        if _STATEMENT.match(code) and not code.lstrip().startswith(("return", "throw", "const ", "auto ")):
            yield Mutant(name, number, code, code[: len(code) - len(code.lstrip())] + ";")


def _negated(code: str, start: int) -> str:
    """The condition that begins at `start`, negated; nothing if it does not end in this line."""
    depth = 1
    for at in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 0:
            return f"{code[:start]}!({code[start:at]}){code[at:]}" if ";" not in code[start:at] else ""
    return ""


def run(command: Sequence[str | Path], seconds: float, folder: Path = ROOT) -> bool:
    """Whether a command succeeds within a time."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def command_of(target: str) -> list[str]:
    """What ninja runs last for a target, in the folder of the build."""
    listed = subprocess.run(
        [Path(sys.executable).parent / "ninja", "-C", BUILD, "-t", "commands", target],
        capture_output=True,
        text=True,
        check=True,
    )
    return [word for word in shlex.split(listed.stdout.splitlines()[-1]) if word not in (":", "&&")]


def prepare(programs: Sequence[str]) -> None:
    """The programs of `tests/core`, and an environment whose package is ours with another module."""
    if programs:
        build = [str(Path(sys.executable).parent / "cmake"), "--build", str(BUILD), "--target", *programs]
        subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(WORK, ignore_errors=True)
    PACKAGE.mkdir(parents=True)
    installed = Path(sysconfig.get_path("purelib"))
    for source in (*(ROOT / "src" / "manyscale").iterdir(), *(installed / "manyscale").iterdir()):
        if source.suffix != ".so":
            (PACKAGE / source.name).symlink_to(source)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", ENVIRONMENT], check=True)
    # Paths in such a file are searched, and what makes ours editable is left out.
    (found,) = ENVIRONMENT.glob("lib/python*/site-packages")
    (found / "mutation.pth").write_text(f"{PACKAGE.parent}\n{installed}\n", encoding="utf-8")


class Build:
    """The objects of the core with one of them replaced by a mutant's."""

    def __init__(self, mutant: Mutant, text: str) -> None:
        self._object = f"{_OBJECTS}/{mutant.file}.o"
        self._source = WORK / Path(mutant.file).name
        self._source.write_text(text, encoding="utf-8")
        self._mutated = WORK / "mutant.o"

    def compile(self) -> bool:
        """Whether it compiles; a mutant that does not is none."""
        words = command_of(self._object)
        at = words.index("-o")
        words[at + 1], words[-1] = str(self._mutated), str(self._source)
        return run([*words, "-O1", "-fno-lto"], 1200, BUILD)

    def link(self, target: str, out: Path) -> bool:
        """Links a program or the module with it."""
        words = [str(self._mutated) if word == self._object else word for word in command_of(target)]
        words[words.index("-o") + 1] = str(out)
        return run([word for word in words if not word.startswith("-flto")] + ["-fno-lto"], 1200, BUILD)


def outcome_of(mutant: Mutant, programs: Sequence[str], tests: Sequence[str | Path], limit: float) -> str:
    """Which tests notice a mutant, if any do."""
    lines = (ROOT / mutant.file).read_text(encoding="utf-8").split("\n")
    lines[mutant.line - 1] = mutant.after
    build = Build(mutant, "\n".join(lines))
    if not build.compile():
        return "does not compile"
    for name in programs:
        if not build.link(name, WORK / name):
            return "does not link"
        if not run([WORK / name], _CORE_TEST_LIMIT, WORK):
            return f"killed by {name}"
    module = next(BUILD.glob("_core*.so")).name
    if not build.link(module, PACKAGE / module):
        return "does not link"
    return "survived" if run(tests, limit) else "killed by pytest"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, help="sources of the core")
    parser.add_argument("--tests", nargs="+", required=True, help="what pytest is given")
    parser.add_argument(
        "--programs", nargs="*", default=[], help="programs of tests/core, such as test_memory_*"
    )
    parser.add_argument("--count", type=int, default=20, help="how many mutants are tried")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="a file for the outcome of each mutant")
    options = parser.parse_args()
    everything = [mutant for file in options.files for mutant in mutants_of(file.resolve())]
    chosen = random.Random(options.seed).sample(everything, min(options.count, len(everything)))
    programs = sorted(
        {file.stem for pattern in options.programs for file in ROOT.glob(f"tests/core/{pattern}.cpp")}
    )
    prepare(programs)
    shutil.copy2(next(BUILD.glob("_core*.so")), PACKAGE)
    tests = [
        ENVIRONMENT / "bin" / "python",
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        *options.tests,
    ]
    begin = time.monotonic()
    if not run(tests, 3600):
        print("the tests fail without any mutant", file=sys.stderr)
        return 2
    limit = 60 + 5 * (time.monotonic() - begin)
    outcomes = []
    for number, mutant in enumerate(chosen, 1):
        outcome = outcome_of(mutant, programs, tests, limit)
        outcomes.append({**asdict(mutant), "outcome": outcome})
        print(f"{number}/{len(chosen)} {outcome}: {mutant.file}:{mutant.line}", flush=True)
        if outcome == "survived":
            print(f"    - {mutant.before.strip()}\n    + {mutant.after.strip()}", flush=True)
        if options.json:
            options.json.write_text(json.dumps(outcomes, indent=1) + "\n", encoding="utf-8")
    tried = [entry for entry in outcomes if not entry["outcome"].startswith("does not")]
    killed = sum(entry["outcome"] != "survived" for entry in tried)
    print(f"{killed} of {len(tried)} mutants were noticed, of {len(everything)} possible ones")
    return 0


if __name__ == "__main__":
    sys.exit(main())
