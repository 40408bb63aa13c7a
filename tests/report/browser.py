# SPDX-License-Identifier: Apache-2.0
"""A real browser for tests: headless Chromium, driven over WebDriver, which is plain JSON over HTTP."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
MISSING = "needs Chromium and its driver: apt-get install chromium chromium-driver"

_OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"),
    *("--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND"),  # no network, even if there is one
)


class Browser:
    """A window of a given size; `open` waits until a report has drawn itself."""

    def __init__(self, width: int = 1280, height: int = 1600, dark: bool = False) -> None:
        assert DRIVER is not None
        assert CHROMIUM is not None
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._driver = subprocess.Popen(
            [DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._address = f"http://127.0.0.1:{self._port()}"
        arguments = [
            *_OPTIONS,
            f"--window-size={width},{height}",
            f"--user-data-dir={self._profile.name}",
            *(["--blink-settings=preferredColorScheme=0", "--force-dark-mode"] if dark else []),
        ]
        always: dict[str, Any] = {
            "goog:chromeOptions": {"args": arguments, "binary": CHROMIUM},
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        always["timeouts"] = {"script": 120_000, "pageLoad": 120_000}
        answer = self._send("POST", "/session", {"capabilities": {"alwaysMatch": always}})
        self._session = f"/session/{answer['sessionId']}"
        # In time of the processor: a busy machine makes nothing look slow.
        self.command("Performance.enable", {"timeDomain": "threadTicks"})

    def _port(self) -> int:
        assert self._driver.stdout is not None
        for line in self._driver.stdout:
            if "successfully on port" in line:
                return int(line.rsplit(None, 1)[1].rstrip("."))
        raise RuntimeError("chromedriver did not start")

    def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        request = urllib.request.Request(
            self._address + path,
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=150) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode(errors="replace")) from None

    def open(self, page: Path, seconds: float = 300.0) -> float:
        """Opens a report from the disk and returns how long it took to be whole, in seconds of the page's clock."""
        self._send("POST", self._session + "/url", {"url": page.resolve().as_uri()})
        end = time.monotonic() + seconds
        while self.run("return document.body.dataset.ready") is None:
            assert time.monotonic() < end, f"{page} was not drawn within {seconds:g} s: {self.log()}"
            time.sleep(0.05)
        return float(self.run("return performance.now() / 1000"))

    def unfold(self) -> None:
        """Opens all sections, and waits until what is in them is drawn."""
        self.run("return manyscaleReport.unfold(true).then(() => null)")

    def run(self, script: str) -> Any:
        """What a script on the page returns."""
        return self._send("POST", self._session + "/execute/sync", {"script": script, "args": []})

    def command(self, name: str, parameters: dict[str, Any] | None = None) -> Any:
        """What a command of the DevTools protocol answers."""
        body = {"cmd": name, "params": parameters or {}}
        return self._send("POST", self._session + "/goog/cdp/execute", body)

    def page_seconds(self) -> float:
        """Time of the processor that the page has taken since it was opened."""
        found = {entry["name"]: entry["value"] for entry in self.command("Performance.getMetrics")["metrics"]}
        return float(found["TaskDuration"])

    def errors(self) -> list[str]:
        """Errors of scripts on the page: those it has seen itself, and those in the browser's log."""
        seen: list[str] = self.run("return window.manyscaleReport ? window.manyscaleReport.errors : []")
        return seen + [entry["message"] for entry in self.log() if entry["level"] == "SEVERE"]

    def log(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._send("POST", self._session + "/se/log", {"type": "browser"})
        return found

    def text(self) -> str:
        """All text on the page."""
        return str(self.run("return document.body.innerText"))

    def resize(self, width: int, height: int) -> None:
        """Makes the page as wide and high as another screen, such as a phone's."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 640}
        self.command("Emulation.setDeviceMetricsOverride", size)

    def screenshot(self, file: Path) -> None:
        """A picture of the whole page, however long it is."""
        height = int(self.run("return document.documentElement.scrollHeight"))
        clip = {"x": 0, "y": 0, "width": 1280, "height": min(height, 15_000), "scale": 0.5}
        # Not the driver's own way, which gives up after ten seconds: a busy machine needs longer.
        answer = self.command("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
        file.write_bytes(base64.b64decode(answer["data"]))

    def close(self) -> None:
        """Ends the browser and its driver."""
        with contextlib.suppress(OSError, RuntimeError):
            self._send("DELETE", self._session)
        self._driver.terminate()
        self._driver.wait(10)
        if self._driver.stdout is not None:
            self._driver.stdout.close()
        self._profile.cleanup()

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
