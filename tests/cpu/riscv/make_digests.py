# SPDX-License-Identifier: Apache-2.0
"""Stores what qemu-riscv64 makes of random sequences: a checksum of each snapshot, so that tests need no qemu.

PYTHONPATH=tests/cpu python -m riscv.make_digests
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import zlib
from pathlib import Path

from riscv.sequences import Program, make_program, snapshots

DIGESTS = Path(__file__).with_name("digests.json")
SEEDS = range(120)
QEMU = "qemu-riscv64"


def checksum(data: bytes) -> str:
    """8 hexadecimal digits."""
    return f"{zlib.crc32(data):08x}"


def run_under_qemu(program: Program, folder: Path) -> bytes:
    """What a random program writes, which must end as it should."""
    path = folder / f"{program.seed}.elf"
    path.write_bytes(program.elf)
    path.chmod(0o755)
    result = subprocess.run([QEMU, str(path)], capture_output=True, timeout=60, check=False)
    assert result.returncode == program.seed % 64, f"seed {program.seed}: {result}"
    assert len(snapshots(result.stdout)) == len(program.pieces)
    return result.stdout


def main() -> None:
    """Writes digests.json."""
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for seed in SEEDS:
            program = make_program(seed)
            found = snapshots(run_under_qemu(program, Path(folder)))
            rows[seed] = {"elf": checksum(program.elf), "snapshots": "".join(map(checksum, found))}
    version = subprocess.run(
        [QEMU, "--version"], capture_output=True, text=True, check=True
    ).stdout.splitlines()[0]
    lines = ",\n".join(f'"{seed}": {json.dumps(row)}' for seed, row in rows.items())
    DIGESTS.write_text(f'{{"qemu": {json.dumps(version)},\n"sequences": {{\n{lines}\n}}}}\n')


if __name__ == "__main__":
    main()
