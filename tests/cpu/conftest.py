# SPDX-License-Identifier: Apache-2.0
"""The stored RISC-V programs, unpacked once for all tests."""

import lzma
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parent / "programs" / "fixtures"


@pytest.fixture(scope="session")
def binaries(tmp_path_factory):
    """The path of each stored program by its name."""
    folder = tmp_path_factory.mktemp("binaries")
    paths = {}
    for packed in sorted(FIXTURES.glob("*.xz")):
        path = folder / packed.stem
        path.write_bytes(lzma.decompress(packed.read_bytes()))
        path.chmod(0o755)
        paths[path.name] = path
    return paths
