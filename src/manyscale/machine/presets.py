# SPDX-License-Identifier: Apache-2.0
"""Where the presets are: the checkout's `machines/` folder, or the one installed in the package."""

from __future__ import annotations

from pathlib import Path

from manyscale.errors import InputError, nearest

_PACKAGE = Path(__file__).resolve().parents[1]


def presets_folder() -> Path:
    """The folder of the presets that belong to this package."""
    checkout = _PACKAGE.parents[1]
    if (checkout / "pyproject.toml").is_file() and (checkout / "machines").is_dir():
        return checkout / "machines"
    return _PACKAGE / "machines"


def list_presets() -> list[str]:
    """The names of all presets, sorted."""
    return sorted(path.stem for path in presets_folder().glob("*.toml"))


def preset_path(name: str) -> Path:
    """The file of a preset; an unknown name is an error that says the nearest."""
    names = list_presets()
    if name not in names:
        raise InputError(f"there is no machine named '{name[:60]}'; {nearest(name, names)}")
    return presets_folder() / f"{name}.toml"
