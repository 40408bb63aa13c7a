# SPDX-License-Identifier: Apache-2.0
"""Shows that a change of the code changes no number: a broad set of runs, all statistics compared to the bit.

    python tools/same_statistics.py record FOLDER             before the change: keep what each run counts
    python tools/same_statistics.py compare FOLDER [--only GROUP] [--match TEXT]    after it

`tools/same_statistics.toml` lists the runs by group. FOLDER gets the input files too, so that both sides run the same
programs. Statistics that were renamed on purpose are listed in `tools/statistic_renames.toml`. Numbers of the host's
clock (`wall_…`) are left out. The exit code is 1 when a number differs.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl

from manyscale import toml_text

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
KEYS = ("component", "statistic", "scope")
SHOWN = 8  # differences to print of a run

Values = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("record", "compare"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", help="one group of runs")
    parser.add_argument("--match", help="only runs whose command has this text")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    options = parser.parse_args()
    if options.action == "record":
        prepare(options.folder)
    listed = toml_text.parse((options.folder / "runs.toml").read_text(encoding="utf-8"))["runs"]
    commands = [
        (group, command)
        for group, lines in listed.items()
        for command in expand(lines)
        if options.only in (None, group) and (options.match or "") in command
    ]
    with ThreadPoolExecutor(options.jobs) as pool:
        results = pool.map(lambda entry: one_run(options, *entry), commands)
        wrong = sum(not same for same in results)
    print(f"{len(commands)} runs, {wrong} wrong")
    return 1 if wrong or not commands else 0


def expand(lines: list[str]) -> Iterator[str]:
    """Commands of lines in which {a|b|c} stands for one of several words."""
    for line in lines:
        choice = re.search(r"\{([^{}]*\|[^{}]*)\}", line)
        if choice is None:
            yield line
        else:
            yield from expand(
                [line[: choice.start()] + word + line[choice.end() :] for word in choice[1].split("|")]
            )


def prepare(folder: Path) -> None:
    """Copies the list of runs to `folder`, and makes the files they need if they are not there."""
    described = toml_text.parse((HERE / "same_statistics.toml").read_text(encoding="utf-8"))
    inputs = folder / "inputs"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "same_statistics.toml", folder / "runs.toml")
    if inputs.is_dir():
        return
    inputs.mkdir()
    for name, source in described["inputs"].items():
        shutil.copy(ROOT / source, inputs / name)
    sys.path.insert(0, str(ROOT / "tests"))
    importlib.import_module("systems").make_phold().save(inputs / "system.toml", force=True)
    for words in map(str.split, described["prepare"]["commands"]):
        if words[0] == "manyscale" or shutil.which(words[0]):
            subprocess.run(arguments(words), cwd=inputs, check=True, stdout=subprocess.DEVNULL)


def arguments(words: list[str]) -> list[str]:
    """A command with `manyscale` as the package of this interpreter."""
    program = [str(Path(sys.executable).with_name("manyscale"))] if words[0] == "manyscale" else [words[0]]
    return [*program, *(word.replace("ROOT", str(ROOT)) for word in words[1:])]


def one_run(options: argparse.Namespace, group: str, command: str) -> bool:
    stored = options.folder / "results" / group / (re.sub(r"[^\w.=-]+", "_", command)[:180] + ".json")
    if options.action == "compare" and not stored.is_file():
        print(f"no record  {command}", flush=True)
        return True
    try:
        found = numbers_of(command, options.folder / "inputs")
    except RuntimeError as error:
        print(f"FAILED     {command}\n{error}", flush=True)
        return False
    if options.action == "record":
        stored.parent.mkdir(parents=True, exist_ok=True)
        stored.write_text(json.dumps(found, indent=0, sort_keys=True), encoding="utf-8")
        print(f"recorded   {command}: {len(found):,} numbers", flush=True)
        return True
    differences = differing(json.loads(stored.read_text(encoding="utf-8")), json.loads(json.dumps(found)))
    print(f"{'DIFFERENT' if differences else 'identical':10} {command}: {len(found):,} numbers", flush=True)
    for line in differences[:SHOWN]:
        print(f"    {line}")
    if len(differences) > SHOWN:
        print(f"    … and {len(differences) - SHOWN:,} more", flush=True)
    return not differences


def numbers_of(command: str, inputs: Path) -> Values:
    """The numbers that a command gives: the JSON it prints, and the statistics of its run directory."""
    words = command.split()
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "run"
        rest = words.index("--") if "--" in words else len(words)
        leaves_run = words[0] != "validate"
        options = [*(["--out", str(out)] if leaves_run else []), "--json", "--quiet"]
        called = arguments(["manyscale", *words[:rest], *options, *words[rest:]])
        done = subprocess.run(
            called, cwd=inputs, capture_output=True, text=True, env=os.environ | {"COLUMNS": "200"}
        )
        if done.returncode != 0:
            raise RuntimeError(f"    exit code {done.returncode}: {done.stderr[-600:]}")
        text = done.stdout[done.stdout.find("{") :]
        found = dict(flat(json.loads(text), "json"))
        for table in sorted(out.rglob("stats.parquet")) if out.is_dir() else []:
            where = table.parent.relative_to(out)
            found |= statistics(table, "" if str(where) == "." else f"{where}/")
    return found


def flat(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The leaves of a JSON document, without what the host's clock and file names give."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not key.startswith("wall_") and key not in (
                "out",
                "run",
                "directory",
                "path",
                "command",
                "file",
            ):
                yield from flat(inner, f"{name}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from flat(inner, f"{name}[{index}]")
    elif not isinstance(value, str):
        yield name, value


def statistics(table: Path, prefix: str) -> Values:
    """The rows of a table of statistics by component, name and scope."""
    found: Values = {}
    for row in pl.read_parquet(table).iter_rows(named=True):
        name = prefix + " | ".join(str(row[key]) for key in KEYS)
        if "wall" not in name:
            while name in found:
                name += "'"
            found[name] = row["value"]
    return found


def renamed(name: str, rules: list[tuple[re.Pattern[str], str]]) -> str:
    for pattern, new in rules:
        name = pattern.sub(new, name)
    return name


def differing(before: Values, after: Values) -> list[str]:
    """What differs, a line each."""
    file = HERE / "statistic_renames.toml"
    listed = toml_text.parse(file.read_text(encoding="utf-8"))["renames"] if file.is_file() else []
    rules = [(re.compile(rule["old"]), rule["new"]) for rule in listed]
    before = {renamed(name, rules): value for name, value in before.items()}
    lines = [
        f"{name}: {value} is now {after.get(name, 'missing')}"
        for name, value in before.items()
        if name not in after or after[name] != value
    ]
    return lines + [f"{name}: new, {value}" for name, value in after.items() if name not in before]


if __name__ == "__main__":
    sys.exit(main())
