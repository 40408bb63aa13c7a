# SPDX-License-Identifier: Apache-2.0
"""A hook of mkdocs: Mermaid diagrams, drawn by a copy of mermaid.js in the site, so that pages fetch nothing.

The script comes from npm when the site is built, and is kept in `build/mermaid`. Without npm, diagrams stay text.
"""

from __future__ import annotations

import logging
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

VERSION = "11.17.2"
KEPT = Path(__file__).resolve().parents[1] / "build" / "mermaid" / f"mermaid-{VERSION}.min.js"
IN_SITE = "assets/mermaid.min.js"
_IN_PACKAGE = "package/dist/mermaid.min.js"

_log = logging.getLogger("mkdocs.hooks.mermaid")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Lets blocks of the language `mermaid` become diagrams; called by mkdocs."""
    if script() is None:
        _log.info("mermaid.js is not there and npm cannot fetch it: diagrams are shown as text")
        return config
    from pymdownx.superfences import fence_code_format  # type: ignore[import-untyped]

    fence = {"name": "mermaid", "class": "mermaid", "format": fence_code_format}
    config.mdx_configs.setdefault("pymdownx.superfences", {}).setdefault("custom_fences", []).append(fence)
    config.extra_javascript.append(IN_SITE)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Puts the script into the site; called by mkdocs."""
    from mkdocs.structure.files import File

    if KEPT.is_file():
        files.append(File.generated(config, IN_SITE, abs_src_path=str(KEPT)))
    return files


def script() -> Path | None:
    """The script: the one that is kept, else fetched by npm; None if neither is possible."""
    npm = shutil.which("npm")
    if not KEPT.is_file() and npm is not None:
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [npm, "pack", "--silent", f"mermaid@{VERSION}"],
            cwd=KEPT.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            _unpack(KEPT.parent / done.stdout.split()[-1])
    return KEPT if KEPT.is_file() else None


def _unpack(archive: Path) -> None:
    with tarfile.open(archive) as package:
        member = package.extractfile(_IN_PACKAGE)
        assert member is not None
        KEPT.write_bytes(member.read())
    archive.unlink()
