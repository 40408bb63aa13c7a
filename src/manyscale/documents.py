# SPDX-License-Identifier: Apache-2.0
"""Reading JSON documents: each format is a pydantic model, and a file that does not fit it is an error for people."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from manyscale.errors import InputError
from manyscale.results.integrity import unsealed

LARGEST = 2**62  # that times in femtoseconds, and other whole numbers of the core, can be


class Document(BaseModel):
    """The content of a file, or of a part of one: values are of the stated types, and numbers are finite."""

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False)


Natural = Annotated[int, Field(ge=0, le=LARGEST)]
Positive = Annotated[int, Field(ge=1, le=LARGEST)]

Format = TypeVar("Format", bound=BaseModel)


def read_json(path: str | os.PathLike[str], what: str, first_sealed: int | None = None) -> Any:
    """The content of a JSON file; `what` it should be is named where it is something else.

    Documents from the version `first_sealed` of their schema on have a checksum.
    """
    try:
        content = Path(path).read_bytes()
        return json.loads(content) if first_sealed is None else unsealed(content, first_sealed)
    except OSError as error:
        raise InputError(f"cannot read {os.fspath(path)}: {error.strerror or error}") from None
    except RecursionError:
        raise InputError(f"{os.fspath(path)} is no {what}: it is nested too deeply") from None
    except ValueError as error:  # broken JSON, no UTF-8, or a number of thousands of digits
        raise InputError(f"{os.fspath(path)} is damaged, and no {what}: {error}") from None


def read_document(
    path: str | os.PathLike[str], model: type[Format], what: str, *, kind: str, schema: int
) -> Format:
    """A JSON file that says of itself which kind of document it is, by which version of its schema."""
    document = read_json(path, what, first_sealed=schema)
    if not isinstance(document, dict) or document.get("kind") != kind:
        raise InputError(f"{os.fspath(path)} is no {what}: it is not of the kind '{kind}'")
    version = document.get("schema")
    if type(version) is not int or not 1 <= version <= schema:
        raise InputError(
            f"{os.fspath(path)}: schema {_short(version)} is unknown; this version reads up to {schema}"
        )
    return validated(document, model, f"{os.fspath(path)} is no {what}")


def validated(data: Any, model: type[Format], complaint: str) -> Format:
    """Data as what a model says it is."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{complaint}: {where}: {first['msg']}") from None
    except RecursionError:
        raise InputError(f"{complaint}: it is nested too deeply") from None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:40] + "…"
