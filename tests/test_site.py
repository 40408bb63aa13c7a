# SPDX-License-Identifier: Apache-2.0
"""The documentation as a site: nothing is fetched from elsewhere, and its search works from a folder."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from browser import CHROMIUM, DRIVER, MISSING, Browser

from docs_pages import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={"NO_MKDOCS_2_WARNING": "1", "PATH": "/usr/local/bin:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder


def test_pages_fetch_nothing_from_elsewhere(site: Path):
    fetched = re.compile(r'<(?:script|img|iframe|link rel="stylesheet")[^>]*(?:src|href)="?(https?:[^" >]*)')
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    found = {str(page.relative_to(site)): fetched.findall(page.read_text(encoding="utf-8")) for page in pages}
    assert not {page: links for page, links in found.items() if links}


@pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason=MISSING)
def test_the_search_works_from_a_folder(site: Path):
    with Browser(1280, 900) as browser:
        browser._send("POST", browser._session + "/url", {"url": (site / "index.html").as_uri()})
        browser.run(
            "const input = document.querySelector('input.md-search__input'); input.focus();"
            "input.value = 'page fault'; input.dispatchEvent(new Event('input', {bubbles: true}));"
            "input.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}));"
        )
        links: list[str] = []
        end = time.monotonic() + 60
        while not links and time.monotonic() < end:
            time.sleep(0.2)
            links = browser.run(
                "return [...document.querySelectorAll('.md-search-result__link')].map((link) => link.href)"
            )
        assert any("unified-memory.html" in link for link in links)
        assert not browser.errors()
