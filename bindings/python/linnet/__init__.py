"""Streaming speech recognition: sound in, phonemes and words out, while the speaker is still talking.

    import linnet
    model = linnet.load()
    print(model.transcribe("talk.wav", words=True).readable)

load() gives a Model; Model.transcribe, align, features and posteriors take files or NumPy arrays; Model.stream takes live sound,
Model.engine many streams at once.
Results have phonemes and words with times and confidences, and are written as text, JSON, SRT, WebVTT, TextGrid and more.
Errors are linnet.Error or one of its subclasses. Times are seconds, rates samples per second.
"""

from __future__ import annotations

import os as _os

from ._engine import Engine, Event
from ._errors import (Error, FormatError, InvalidError, MismatchError, NoMemoryError, NumericError, ReadError, StoppedError,
                      TooSmallError, UnsupportedError)
from ._errors import call as _call
from ._errors import text_of as _text_of
from ._linnet import ffi as _ffi
from ._linnet import lib as _lib
from ._model import Decoder, Model, load
from ._options import c_text as _c_text
from ._result import Keyword, Phone, Result, Word, formats
from ._stream import Stream, Utterance

__version__ = _text_of(_lib.linnet_version())

# A package that was built from the source tree brings its model and lexicons.
_data = _os.path.join(_os.path.dirname(_os.path.abspath(__file__)), "data")
if _os.path.isdir(_data):
    _call(_lib.linnet_set_data_folder, _c_text(_data))


def set_language(language: str | _os.PathLike[str] | None) -> None:
    """Sets the language, for the whole process: the code of an installed one, "en", or a folder with the files of one
    (docs/languages.md). Its files are used where none is named. None: each model's language."""
    _call(_lib.linnet_set_language, _ffi.NULL if language is None else _c_text(language))


__all__ = ["Decoder", "Engine", "Error", "Event", "FormatError", "InvalidError", "Keyword", "MismatchError", "Model", "NoMemoryError", "NumericError", "Phone",
           "ReadError", "Result", "StoppedError", "Stream", "TooSmallError", "UnsupportedError", "Utterance", "Word", "formats",
           "load", "set_language"]
