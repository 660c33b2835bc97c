"""Exceptions: one class for each status of linnet.h, with the library's sentence as message."""

from __future__ import annotations

from typing import Any

from ._linnet import ffi


class Error(Exception):
    """What linnet could not do: str(error) is one sentence that says what, where and what to do."""


class InvalidError(Error, ValueError):
    """An argument or option is out of range."""


class TooSmallError(Error):
    """Something of a fixed size is full."""


class NoMemoryError(Error, MemoryError):
    """Memory is exhausted."""


class ReadError(Error, OSError):
    """The system refused to open, read or write."""


class FormatError(Error, ValueError):
    """Bytes are not what their format demands."""


class MismatchError(Error, ValueError):
    """Two valid things do not fit each other: the saved state of another model."""


class UnsupportedError(Error):
    """Valid, but not in this build, on this machine, or with this model."""


class NumericError(Error, ArithmeticError):
    """NaN or infinity where a number was needed."""


class StoppedError(Error):
    """A progress function asked to stop."""


_BY_STATUS = (Error, InvalidError, TooSmallError, NoMemoryError, ReadError, FormatError, MismatchError, UnsupportedError,
              NumericError, StoppedError)


def text_of(pointer: Any) -> str:
    """A C string, "" where there is none."""
    return ffi.string(pointer).decode("utf-8", "replace") if pointer else ""


def call(function: Any, *arguments: Any) -> None:
    """Calls a function of linnet.h whose last argument is the error. Other Python threads run meanwhile."""
    error = ffi.new("linnet_error *")
    status = function(*arguments, error)
    if status:
        raise (_BY_STATUS[status] if status < len(_BY_STATUS) else Error)(text_of(error.message))
