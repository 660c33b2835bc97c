"""Python values as option structs of linnet.h."""

from __future__ import annotations

import os
from typing import Any

from ._linnet import ffi, lib


def c_text(text: str | bytes | os.PathLike[str]) -> Any:
    """A text or path for C. ValueError if it contains a NUL."""
    given = os.fsencode(text)
    if b"\0" in given:
        raise ValueError("embedded null byte")
    return ffi.new("char[]", given)


class Options:
    """A struct of linnet.h with its defaults, and what it points to. Values that are None keep their default; a Model is its
    linnet_model."""

    def __init__(self, name: str, **values: Any) -> None:
        self.c = ffi.new(f"linnet_{name} *")
        self.kept: list[Any] = []
        getattr(lib, f"linnet_{name}_init")(self.c, ffi.sizeof(f"linnet_{name}"))
        for field, value in values.items():
            if isinstance(value, (str, bytes, os.PathLike)):
                value = self.keep(c_text(value))
            if value is None:
                continue
            try:
                setattr(self.c, field, getattr(value, "_c", value))
            except TypeError as error:
                raise TypeError(f"{field} cannot be {values[field]!r}") from error

    def keep(self, value: Any) -> Any:
        self.kept.append(value)
        return value
