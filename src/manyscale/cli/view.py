# SPDX-License-Identifier: Apache-2.0
"""`manyscale view`: the runs and sweeps of a folder in a browser, also while they run."""

from __future__ import annotations

import contextlib
import html
import json as json_text
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Annotated, Any
from urllib.parse import quote, unquote

import typer

from manyscale.cli.console import say
from manyscale.cli.options import Quiet

commands = typer.Typer()

ADDRESS = "127.0.0.1"  # this machine only
_DEEPEST = 4  # folders below the one that is viewed
_MOST = 1_000  # runs of a list
_REFRESH = 2_000  # milliseconds between two looks at a folder
_SMALL = "<style>{}</style>"


@commands.command()
def view(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A folder with runs and sweeps, or one of them.")
    ] = Path("runs"),
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="On which port; 0: one that is free.")
    ] = 0,
    open_it: Annotated[bool, typer.Option("--open", help="Show it in a browser.")] = False,
    quiet: Quiet = False,
) -> None:
    """Show the runs and sweeps of a folder in a browser, also while they run.

    Pages are made when they are asked for, and served on this machine only, until Ctrl-C.

    Example: manyscale view runs --open
    """
    from manyscale.errors import InputError

    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; give one with runs in it")
    try:
        server = Server(folder, port)
    except OSError as error:
        raise InputError(f"cannot listen on port {port}: {error.strerror or error}") from None
    typer.echo(server.url)
    say("Ctrl-C ends it.", quiet=quiet)
    if open_it:
        import webbrowser

        webbrowser.open(server.url)
    with server, contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()


@dataclass(frozen=True)
class Entry:
    """A run or a sweep, as its own file tells."""

    name: str  # the path below the folder
    path: Path
    is_sweep: bool
    info: dict[str, Any]

    @property
    def status(self) -> str:
        return str(self.info.get("status", "unreadable"))

    @property
    def row(self) -> dict[str, str]:
        """What the list says of it."""
        workload = self.info.get("workload")
        kind = (
            "sweep"
            if self.is_sweep
            else str((workload if isinstance(workload, dict) else {}).get("kind", ""))
        )
        return {
            "name": self.name,
            "kind": kind.replace("-", " "),
            "status": self.status,
            "progress": self._progress(),
            "created": str(self.info.get("created", ""))[:16].replace("T", " "),
        }

    def _progress(self) -> str:
        """How far it is: points of a sweep, simulated time of a run."""
        from manyscale.report.numbers import shown

        counts = self.info.get("counts")
        if self.is_sweep and isinstance(counts, dict):
            failed = f", {counts['failed']:,} failed" if counts.get("failed") else ""
            return f"{counts.get('done', 0):,} of {counts.get('distinct', 0):,} points{failed}"
        headline = self.info.get("headline")
        entry = headline.get("simulated_seconds") if isinstance(headline, dict) else None
        return f"{shown(entry['value'], 's')} simulated" if isinstance(entry, dict) else ""


def entries(folder: Path) -> Iterator[Entry]:
    """The runs and sweeps below a folder, in the order of their names."""
    found = 0
    for path in [folder, *(each for each in sorted(folder.rglob("*")) if each.is_dir())]:
        relative = path.relative_to(folder)
        if len(relative.parts) > _DEEPEST or found >= _MOST:
            continue
        for file, is_sweep in (("sweep.json", True), ("run.json", False)):
            if (path / file).is_file():
                found += 1
                name = str(relative) if relative.parts else folder.resolve().name
                yield Entry(name, path, is_sweep, _info(path, is_sweep))
                break


def _info(path: Path, is_sweep: bool) -> dict[str, Any]:
    from manyscale.errors import ManyscaleError
    from manyscale.results import load
    from manyscale.studies.sweep.sweep_directory import read_info

    try:
        return dict(read_info(path)) if is_sweep else load(path, check=False).info
    except ManyscaleError as error:
        return {"status": "unreadable", "error": str(error)}


@dataclass
class Pages:
    """The pages of a folder, made when they are asked for and kept until their run changes."""

    folder: Path
    _kept: dict[Path, tuple[tuple[int, ...], bytes]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """Status, type and content for the path of a request."""
        if path == "/":
            return 200, "text/html", self._list().encode()
        if path == "/state.json":
            rows = [entry.row for entry in entries(self.folder)]
            return 200, "application/json", json_text.dumps(rows).encode()
        if path.startswith("/run/"):
            name = unquote(path.removeprefix("/run/"))
            # Only what the list has is served, whatever a path may say.
            entry = next((each for each in entries(self.folder) if each.name == name), None)
            if entry is not None:
                return 200, "text/html", self._page(entry)
        return 404, "text/html", _plain("Not found", "There is no such run.").encode()

    def _list(self) -> str:
        rows = "".join(_row(entry) for entry in entries(self.folder))
        heads = "".join(f"<th>{name}</th>" for name in ("run", "kind", "status", "progress", "created"))
        table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        return _plain(f"Runs in {self.folder}", "", table + _poll("/"))

    def _page(self, entry: Entry) -> bytes:
        from manyscale.errors import ManyscaleError

        key = tuple(file.stat().st_mtime_ns for file in (entry.path, *sorted(entry.path.glob("*.json*"))))
        with self._lock:
            kept = self._kept.get(entry.path)
            if kept is None or kept[0] != key:
                try:
                    text = _report(entry)
                except ManyscaleError as error:
                    text = _plain(entry.name, f"It cannot be shown ({entry.status}): {error}")
                if entry.status == "running":
                    text += _poll(f"/run/{quote(entry.name)}")
                kept = self._kept[entry.path] = (key, text.encode())
        return kept[1]


def _report(entry: Entry) -> str:
    if entry.is_sweep:
        from manyscale.report.sweep_page import sweep_page
        from manyscale.studies.sweep.sweep_directory import load_sweep

        sweep = load_sweep(entry.path, ignoring=("report.html",))
        return sweep_page(entry.path, sweep.info, sweep.table).html()
    from manyscale.report.run_page import run_page
    from manyscale.results import load

    return run_page(load(entry.path, ignoring=("report.html",))).html()


def _row(entry: Entry) -> str:
    row = entry.row
    cells = "".join(
        f"<td>{html.escape(row[name])}</td>" for name in ("kind", "status", "progress", "created")
    )
    link = f'<a href="/run/{quote(entry.name)}">{html.escape(entry.name)}</a>'
    return f"<tr><td>{link}</td>{cells}</tr>"


def _plain(title: str, words: str, body: str = "") -> str:
    from manyscale.report.page import asset

    text = f"<p>{html.escape(words)}</p>" if words else ""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title>{_SMALL.format(asset('page.css'))}</head>"
        f"<body><header><h1>{html.escape(title)}</h1></header><main>{text}{body}</main></body></html>\n"
    )


def _poll(path: str) -> str:
    """A script that looks at the folder now and then, and loads the page again when something changed."""
    return (
        "<script>(() => { let before = null; const look = () => fetch('/state.json').then((found) => found.text())"
        ".then((text) => { if (before !== null && text !== before) location.replace("
        f"{json_text.dumps(path)}); before = text; }}).catch(() => {{}}).finally(() => setTimeout(look, {_REFRESH})); "
        "look(); })();</script>"
    )


class Server(ThreadingHTTPServer):
    """Serves the pages of a folder on this machine."""

    daemon_threads = True

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.pages = Pages(folder)
        super().__init__((ADDRESS, port), _Handler)

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.server_address[1]}/"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        port = server.server_address[1]
        # A page from elsewhere whose name leads here must not read runs.
        if self.headers.get("Host") not in (f"{ADDRESS}:{port}", f"localhost:{port}"):
            self.send_error(403)
            return
        status, kind, content = server.pages.answer(self.path.partition("?")[0])
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: the terminal is the user's."""
