# SPDX-License-Identifier: Apache-2.0
"""Files that are whole or absent: written beside their name, synced, and moved into place.

Everything that Manyscale writes goes through here. `replace_file` is for files that are Manyscale's own, such as those
of a run directory. `write_file` and `OutputFile` are for files that the user named: what is there already is replaced
only when that is asked for, and only by a file of the same kind.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, TextIO

from manyscale.errors import InputError

_BUFFER_BYTES = 1 << 20
_HEAD_BYTES = 1 << 16  # of a file, by which its kind is told
_MOST_NAME = 40  # letters of a file's name in that of its temporary file, since names have a longest length
_DESCRIPTORS = re.compile(r"/dev/(stdin|stdout|stderr|fd/\d+)|/proc/[^/]+/fd/\d+")

PathLike = str | os.PathLike[str]
Write = Callable[[BinaryIO], object]


@dataclass(frozen=True)
class FileKind:
    """A kind of file, told by how it begins; an empty file is of every kind."""

    name: str
    """With its article, such as "a trace"."""
    begins: Callable[[bytes], bool]
    """Whether these first bytes (at most 64 KiB) are of such a file."""

    @classmethod
    def magic(cls, name: str, *beginnings: bytes) -> FileKind:
        """A kind whose files begin with one of these bytes."""
        return cls(name, lambda head: head.startswith(beginnings))

    @classmethod
    def csv(cls, *columns: str) -> FileKind:
        """CSV files with these first columns."""
        return cls.magic(f"a CSV file with the columns {', '.join(columns)}", ",".join(columns).encode())

    def matches(self, path: Path) -> bool:
        """Whether the file is of this kind."""
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        return not head or self.begins(head)


def document_kind(kind: str) -> FileKind:
    """JSON documents of Manyscale that say that they are of this kind."""
    return FileKind(f"a document of the kind '{kind}'", lambda head: f'"kind": "{kind}"'.encode() in head)


def check_output(path: PathLike, kind: FileKind, *, force: bool = False) -> None:
    """Refuses a file that cannot or must not be written; called before the work, so that a slip costs none."""
    target = Path(path)
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        mode = 0
    except OSError as error:
        raise cannot_write(target, error) from None
    if stat.S_ISDIR(mode):
        raise InputError(f"cannot write {target}: it is a directory; give the name of a file")
    if _is_stream(target, mode):
        return
    if mode:
        _check_existing(target, kind, force)
    folder = Path(os.path.realpath(target)).parent
    if not folder.is_dir():
        raise InputError(f"cannot write {target}: there is no folder {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"cannot write {target}: nothing can be written to the folder {folder}")


def write_file(
    path: PathLike, write: Write, kind: FileKind, *, force: bool = False, mode: int | None = None
) -> Path:
    """Writes a file that the user named: the whole of it or nothing, and over what is there only with `force`.

    `mode` are its permissions, if they are other than those of the file that it replaces or the usual ones.
    """
    target = Path(path)
    try:
        with OutputFile(target, kind, force=force, mode=mode) as file:
            write(file)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise cannot_write(target, error) from None
    return target


def replace_file(path: Path, write: Write) -> None:
    """Writes `path` so that a reader, even after a crash, sees the old content or all of the new."""
    with OutputFile(path) as file:
        write(file)


def replace_file_by_name(path: Path, write: Callable[[str], object]) -> None:
    """The same for a writer that opens the file itself, such as the core, by the name that it is given."""
    with OutputFile(path) as file:
        write(file.temporary_name)


def as_text(write: Callable[[TextIO], object]) -> Write:
    """For writers of text: in UTF-8, with line ends as they are."""

    def write_text(file: BinaryIO) -> None:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        try:
            write(text)
        finally:
            text.detach()

    return write_text


def cannot_write(path: PathLike, error: Exception) -> InputError:
    """The error of a file that could not be written."""
    return InputError(f"cannot write {os.fspath(path)}: {getattr(error, 'strerror', None) or error}")


class OutputFile(io.BufferedIOBase, BinaryIO):
    """A file while it is written: it appears under its name by `commit`, and until then what was there stays.

    Used as a context manager it is committed at the end of the block, and discarded after an error. With a `kind` it
    is one that the user named: see `write_file`. A device or a pipe is written directly.
    """

    def __init__(
        self, path: PathLike, kind: FileKind | None = None, *, force: bool = False, mode: int | None = None
    ) -> None:
        self.path = Path(path)
        self._mode = mode
        self._kind, self._force = kind, force
        self._pending = bytearray()
        self._written = 0
        self._descriptor = -1
        self._temporary: Path | None = None
        self._error: BaseException | None = None  # the first one of writing
        if kind is not None:
            check_output(self.path, kind, force=force)
        if _is_stream(self.path):
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
            return
        # Beside the file itself, not beside a link to it, so that the link stays one.
        self._target = Path(os.path.realpath(self.path))
        self._temporary = self._target.with_name(
            f".{self._target.name[:_MOST_NAME]}.{secrets.token_hex(4)}.tmp"
        )
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._descriptor = os.open(self._temporary, flags, 0o666)

    @property
    def temporary_name(self) -> str:
        """Where the content is until `commit`."""
        return os.fspath(self._temporary or self.path)

    def write(self, data: Any) -> int:
        """Keeps bytes; an error may come later, at the latest from `commit`."""
        if self._descriptor < 0:
            raise ValueError(f"{self.path} is written and closed")
        content = memoryview(data).cast("B")
        if len(self._pending) + len(content) > _BUFFER_BYTES:
            self.flush()
        if len(content) > _BUFFER_BYTES:
            self._write_all(content)
        else:
            self._pending += content
        return len(content)

    def flush(self) -> None:
        """Hands what was written so far to the operating system."""
        if self._pending and self._descriptor >= 0:
            pending, self._pending = self._pending, bytearray()
            self._write_all(memoryview(pending))

    def commit(self) -> None:
        """Makes sure that all is on the disk and moves it into place."""
        try:
            self.sync()
            if self._temporary is not None:
                self._move_to_target(self._temporary)
        except BaseException:
            self.discard()
            raise
        self._temporary = None

    def sync(self) -> None:
        """Ends writing: all of it is on the disk, under its temporary name."""
        if self._descriptor < 0:
            return
        self.flush()
        if self._temporary is not None:
            with contextlib.suppress(FileNotFoundError):
                mode = os.stat(self._target).st_mode if self._mode is None else self._mode
                os.fchmod(self._descriptor, stat.S_IMODE(mode))
            os.fsync(self._descriptor)
        self._close_descriptor()

    def discard(self) -> None:
        """Gives up: what was written so far is removed, what was there before stays."""
        self._pending.clear()
        with contextlib.suppress(OSError):
            self._close_descriptor()
        if self._temporary is not None:
            with contextlib.suppress(OSError):
                self._temporary.unlink(missing_ok=True)
            self._temporary = None

    def writable(self) -> bool:
        """It is."""
        return self._descriptor >= 0

    def tell(self) -> int:
        """Bytes written so far."""
        return self._written + len(self._pending)

    def close(self) -> None:
        """Discards what was not committed."""
        self.discard()
        super().close()

    def __enter__(self) -> OutputFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.commit()
            return
        self.discard()
        if self._error not in (None, error):
            raise self._error from None

    @contextlib.contextmanager
    def naming_errors(self) -> Iterator[None]:
        """Around a library that has errors of its own for those of writing to this file: the first counts."""
        try:
            yield
        except BaseException as error:
            if self._error not in (None, error):
                raise self._error from None
            raise

    def _write_all(self, content: memoryview) -> None:
        try:
            while content:
                count = os.write(self._descriptor, content)
                self._written += count
                content = content[count:]
        except BaseException as error:
            self._error = self._error or error
            raise

    def _close_descriptor(self) -> None:
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def _move_to_target(self, temporary: Path) -> None:
        if self._kind is None:
            os.replace(temporary, self._target)
        elif self._force:
            if self._target.exists():
                try:
                    _check_existing(self._target, self._kind, force=True)
                except InputError as error:
                    raise InputError(
                        f"{error}; what was written is in {_kept(temporary, self._target)}"
                    ) from None
            os.replace(temporary, self._target)
        else:
            try:
                _move_new(temporary, self._target)
            except FileExistsError:
                raise InputError(
                    f"{self.path} appeared while it was being written, and is left alone; "
                    f"what was written is in {_kept(temporary, self._target)}"
                ) from None
        _sync_folder(self._target.parent)


class FileGroup:
    """Several files that appear together: all are written and synced before the first is moved into place.

    A context manager. The folder is made if it is not there; after an error nothing is left of it or in it.
    """

    def __init__(
        self, folder: PathLike, kinds: Callable[[str], FileKind] | FileKind, *, force: bool = False
    ) -> None:
        self.folder = Path(folder)
        self._kinds, self._force = kinds, force
        self._files: dict[Path, OutputFile] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> FileGroup:
        with _for_people(self.folder):
            self._stack.enter_context(made_folder(self.folder))
        return self

    def add(self, name: str, write: Write) -> Path:
        """Writes the file of this name within the folder."""
        path = self.folder / name
        file = self.open(name)
        with _for_people(path), file.naming_errors():
            write(file)
        return path

    def open(self, name: str) -> OutputFile:
        """A file of the group to write to."""
        path = self.folder / name
        with _for_people(path):
            self._stack.enter_context(made_folder(path.parent))
            kind = self._kinds if isinstance(self._kinds, FileKind) else self._kinds(name)
            self._files[path] = OutputFile(path, kind, force=self._force)
        return self._files[path]

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[None]:
        """Around writing to a file of the group: an error of the disk becomes one for people."""
        with _for_people(self.folder / name):
            yield

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        fresh: list[Path] = []
        try:
            if error is None:
                for path, file in self._files.items():
                    with _for_people(path):
                        file.sync()
                for path, file in self._files.items():
                    is_new = not path.exists()
                    with _for_people(path):
                        file.commit()
                    fresh += [path] if is_new else []
        except BaseException as problem:
            for path in fresh:
                path.unlink(missing_ok=True)
            self._discard()
            self._stack.__exit__(type(problem), problem, problem.__traceback__)
            raise
        self._discard()
        self._stack.__exit__(kind, error, trace)

    def _discard(self) -> None:
        for file in self._files.values():
            file.discard()


@contextlib.contextmanager
def made_folder(folder: Path) -> Iterator[Path]:
    """Makes a folder and those it is in; after an error those that it made are gone again if they are empty."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
    except BaseException:
        remove_empty(missing)
        raise


def remove_empty(folders: Iterable[Path]) -> None:
    """Removes folders, innermost first, as far as they are empty."""
    for one in folders:
        try:
            one.rmdir()
        except OSError:
            return


@contextlib.contextmanager
def _for_people(path: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise cannot_write(path, error) from None


def _is_stream(path: Path, mode: int | None = None) -> bool:
    """Whether this is no file but something that takes bytes as they come: a device, a pipe, an open descriptor."""
    if mode is None:
        try:
            mode = os.stat(path).st_mode
        except OSError:
            return False
    if stat.S_ISDIR(mode) or not mode:
        return False
    return not stat.S_ISREG(mode) or _DESCRIPTORS.fullmatch(os.path.abspath(path)) is not None


def _check_existing(path: Path, kind: FileKind, force: bool) -> None:
    if not force:
        raise InputError(
            f"{path} exists already; give --force (in Python: force=True) to replace it, or choose another file"
        )
    try:
        same = kind.matches(path)
    except OSError as error:
        raise InputError(f"{path} exists already and cannot be read: {error.strerror or error}") from None
    if not same:
        raise InputError(
            f"{path} exists already and is not {kind.name}, so it is not written over even with --force; "
            "choose another file, or delete this one"
        )


def _move_new(temporary: Path, target: Path) -> None:
    """Moves a file to a name that nobody has; FileExistsError if somebody has."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if target.exists():
            raise FileExistsError from None
        os.replace(temporary, target)
        return
    temporary.unlink()


def _kept(temporary: Path, target: Path) -> Path:
    """Moves what was written to a free name beside the one that it was to have."""
    number = 2
    while True:
        free = target.with_name(f"{target.stem}-{number}{target.suffix}")
        with contextlib.suppress(FileExistsError):
            _move_new(temporary, free)
            return free
        number += 1


def _sync_folder(folder: Path) -> None:
    # The file is whole under its name by now; at worst a power failure brings the old one back.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
