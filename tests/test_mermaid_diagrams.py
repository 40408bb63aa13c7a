# SPDX-License-Identifier: Apache-2.0
"""Mermaid diagrams of the documentation: drawn by a script in the site where there is one, else left as text."""

from __future__ import annotations

from pathlib import Path

import pytest

import mermaid_diagrams

mkdocs = pytest.importorskip("mkdocs.config.defaults", reason="mkdocs is not installed")


def config():
    found = mkdocs.MkDocsConfig()
    found.load_dict({"site_name": "test", "markdown_extensions": ["pymdownx.superfences"]})
    found.validate()
    return found


def test_diagrams_are_drawn_by_a_script_of_the_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    kept = tmp_path / "mermaid.min.js"
    kept.write_text("var mermaid;")
    monkeypatch.setattr(mermaid_diagrams, "KEPT", kept)
    changed = mermaid_diagrams.on_config(config())
    assert [str(name) for name in changed.extra_javascript] == [mermaid_diagrams.IN_SITE]
    (fence,) = changed.mdx_configs["pymdownx.superfences"]["custom_fences"]
    assert fence["name"] == fence["class"] == "mermaid"


def test_diagrams_stay_text_without_npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mermaid_diagrams, "KEPT", tmp_path / "missing.js")
    monkeypatch.setenv("PATH", str(tmp_path))
    changed = mermaid_diagrams.on_config(config())
    assert not changed.extra_javascript
    assert not changed.mdx_configs.get("pymdownx.superfences", {}).get("custom_fences")
