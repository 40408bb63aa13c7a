# SPDX-License-Identifier: Apache-2.0
"""Mutation testing of the C++ core: small faults are put into a model, one at a time, and the tests must notice.

`python tools/mutation.py core/memory/dram/*.cpp --tests tests/memory --count 20` copies the tree, builds it once, and
then for each fault compiles what changed and runs the tests. A mutant that no test notices has survived: it is printed
with its line. Which faults are tried follows from the seed alone. The tree itself is never changed.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "mutation"
TREE = WORK / "tree"
ENVIRONMENT = WORK / "venv"
BUILD = WORK / "build"
COPIED = (
    "core",
    "bindings",
    "cudart",
    "machines",
    "runtime",
    "src",
    "CMakeLists.txt",
    "pyproject.toml",
    "README.md",
    "LICENSE",
)

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


def run(command: Sequence[str | Path], seconds: float) -> bool:
    """Whether a command succeeds within a time."""
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def prepare() -> None:
    """A copy of the tree, installed into an environment of its own without link-time optimisation."""
    for name in COPIED:
        source, target = ROOT / name, TREE / name
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "--upgrade", "pip>=25.1"], check=True)
        subprocess.run(
            [python, "-m", "pip", "install", "-q", "--group", f"{ROOT}/pyproject.toml:dev"], check=True
        )
    settings = (
        "cmake.build-type=RelWithDebInfo",
        "cmake.define.CMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1",
        f"build-dir={BUILD}",
    )
    subprocess.run(
        [str(python), "-m", "pip", "install", "-q", "--no-build-isolation", str(TREE)]
        + [f"--config-settings={setting}" for setting in settings],
        check=True,
    )


def rebuild() -> bool:
    """Compiles what changed and puts the module into the environment; a mutant that does not compile is none."""
    if not run([ENVIRONMENT / "bin" / "cmake", "--build", BUILD, "--target", "_core"], 1200):
        return False
    module = next(BUILD.glob("_core*.so"))
    package = next(ENVIRONMENT.glob("lib/python*/site-packages/manyscale"))
    shutil.copy2(module, package / module.name)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, help="sources of the core")
    parser.add_argument("--tests", nargs="+", required=True, help="what pytest is given")
    parser.add_argument("--count", type=int, default=20, help="how many mutants are tried")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="a file for the outcome of each mutant")
    options = parser.parse_args()
    everything = [mutant for file in options.files for mutant in mutants_of(file.resolve())]
    chosen = random.Random(options.seed).sample(everything, min(options.count, len(everything)))
    prepare()
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
        path = TREE / mutant.file
        original = path.read_text(encoding="utf-8")
        lines = original.split("\n")
        lines[mutant.line - 1] = mutant.after
        path.write_text("\n".join(lines), encoding="utf-8")
        try:
            outcome = "does not compile" if not rebuild() else "survived" if run(tests, limit) else "killed"
        finally:
            path.write_text(original, encoding="utf-8")
        outcomes.append({**asdict(mutant), "outcome": outcome})
        print(f"{number}/{len(chosen)} {outcome}: {mutant.file}:{mutant.line}", flush=True)
        if outcome == "survived":
            print(f"    - {mutant.before.strip()}\n    + {mutant.after.strip()}", flush=True)
        if options.json:
            options.json.write_text(json.dumps(outcomes, indent=1) + "\n", encoding="utf-8")
    tried = [entry for entry in outcomes if entry["outcome"] != "does not compile"]
    killed = sum(entry["outcome"] == "killed" for entry in tried)
    print(f"{killed} of {len(tried)} mutants were noticed, of {len(everything)} possible ones")
    return 0


if __name__ == "__main__":
    sys.exit(main())
