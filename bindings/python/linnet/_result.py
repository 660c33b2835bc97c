"""Results: phonemes, words, and the formats that the library writes."""

from __future__ import annotations

import importlib
import json
import math
import threading
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

from ._errors import call, text_of
from ._linnet import ffi, lib
from ._options import Options


class Phone(NamedTuple):
    """A phoneme. Times are seconds from the beginning of the sound."""

    name: str
    """ARPAbet: "AH" """
    ipa: str
    """International Phonetic Alphabet: "ʌ" """
    start_s: float
    end_s: float
    confidence: float
    """0 to 1: geometric mean of the network's probabilities for it"""
    label: int
    """column of Model.posteriors"""
    stress: int | None
    """0, 1 or 2 as in CMUdict; None: unknown"""
    goodness: float | None
    """of aligned results: goodness of pronunciation, natural logarithm, 0 at best, below -3: something else was said"""
    said: str | None
    """of aligned results: the phoneme that was said instead, "" if none was said; None: the phoneme itself, or not measured"""
    speaker: int | None = None
    """1, 2, ... with decoder(speakers=...)"""


class Word(NamedTuple):
    """A word. Times are seconds from the beginning of the sound."""

    text: str
    """of a word outside the lexicon: its phonemes in small letters, "[hh_ah_l_ow]" """
    start_s: float
    end_s: float
    confidence: float
    """0 to 1"""
    known: bool
    """in the lexicon, or in a phrase or text that was given"""
    phones: tuple[Phone, ...]
    goodness: float | None
    """of aligned results: natural logarithm of the probability that a phoneme picked among its own was said; 0: all were said"""
    speaker: int | None = None
    """1, 2, ... with decoder(speakers=...)"""


class Keyword(NamedTuple):
    """A keyword that was found. Times are seconds from the beginning of the sound."""

    text: str
    confidence: float
    """0 to 1: by its phonemes, against the most probable ones"""
    start_s: float
    end_s: float


class Result:
    """What was recognised or aligned. It never changes, and any thread may use it.

    str(result) is its text. A result cannot be pickled: send result.to_dict() or a format to another process.
    """

    def __init__(self, pointer: Any) -> None:  # an owned linnet_result *
        self._c = pointer
        self._info = lib.linnet_result_describe(pointer)
        self._lock = threading.Lock()
        #: Words, where they were looked for, else phonemes, with blanks between them.
        self.text: str = text_of(lib.linnet_result_text(pointer))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<linnet.Result {self.seconds:.2f} s: {self.text!r}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a linnet.Result cannot be pickled: send result.to_dict(), result.text or a format such as result.to_srt()")

    @cached_property
    def readable(self) -> str:
        """The text with numbers as digits, capitals, full stops, commas and question marks. Of phonemes: text."""
        with self._lock:
            return text_of(lib.linnet_result_readable(self._c))

    @cached_property
    def phones(self) -> tuple[Phone, ...]:
        """All phonemes, those of words too."""
        return tuple(_phone(lib.linnet_result_phone(self._c, i)) for i in range(lib.linnet_result_phones(self._c)))

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """Empty where no words were looked for (has_words)."""
        return tuple(_word(lib.linnet_result_word(self._c, i), self.phones) for i in range(lib.linnet_result_words(self._c)))

    @cached_property
    def keywords(self) -> tuple[Keyword, ...]:
        """Those of the decoder's keywords that were found, in the order in which they were certain."""
        found = [lib.linnet_result_keyword(self._c, i) for i in range(lib.linnet_result_keywords(self._c))]
        return tuple(Keyword(text_of(k.text), k.confidence, k.start_s, k.end_s) for k in found)

    @cached_property
    def voices(self) -> tuple[tuple[float, ...], ...]:
        """A vector of length 1 for each speaker, with decoder(speakers=...): two of one voice have a high product. What they must
        not be used for: docs/speakers.md."""
        n = ffi.new("int *")
        found: list[tuple[float, ...]] = []
        while (voice := lib.linnet_result_voice(self._c, len(found) + 1, n)) != ffi.NULL:
            found.append(tuple(ffi.unpack(voice, n[0])))
        return tuple(found)

    @cached_property
    def alternatives(self) -> tuple[Result, ...]:
        """With n_best: the best first, which is this result once more."""
        return tuple(copy_result(lib.linnet_result_alternative(self._c, i))
                     for i in range(lib.linnet_result_alternatives(self._c)))

    @property
    def seconds(self) -> float:
        """Length of the sound."""
        return float(self._info.seconds)

    @property
    def score(self) -> float:
        """Natural logarithm of all that the search weighs: 0 where it gives none, as acoustic and language."""
        return float(self._info.score)

    @property
    def acoustic(self) -> float:
        """The sound's part of the score."""
        return float(self._info.acoustic)

    @property
    def language(self) -> float:
        """The language model's part of the score, before its weight."""
        return float(self._info.language)

    @property
    def has_words(self) -> bool:
        """Words were looked for; there may still be none."""
        return bool(self._info.has_words)

    @property
    def incomplete(self) -> bool:
        """Of a file: sound is missing, it breaks off or is damaged. warning says more."""
        return bool(self._info.incomplete)

    @property
    def warning(self) -> str:
        """What was wrong with the file, or with how the text fits; "" if nothing."""
        return text_of(self._info.warning)

    @property
    def fit(self) -> float | None:
        """Of an aligned result: how well the text fits, mean logarithm per phoneme; below -4 it is probably another text."""
        return _number(self._info.fit)

    @property
    def goodness(self) -> float | None:
        """Of an aligned result: that of all its phonemes together, as Word.goodness."""
        return _number(self._info.goodness)

    def format(self, name: str, *, id: str | None = None, speaker: str | None = None, channel: int | None = None,
               with_id: bool = False, times: bool = False, ipa: bool = False, stress: bool = False, word_times: bool = False,
               phones: bool = False, words: bool = False, readable: bool = False) -> str:
        """The result as a file of a format, as the program `linnet` writes it.

        name         one of linnet.formats()
        id, speaker  of the utterance, for formats that name them; default "sound", ""
        channel      from 1, for formats that name it
        with_id      text: the id first
        times        text: a line for each phoneme or word with its times
        ipa, stress  phonemes in the IPA; with stress where it is known, AH0
        word_times   vtt: the time of every word
        phones, words  that unit, or both; default: words where there are any, else phonemes
        readable     text, srt, vtt, json: with numbers as digits, capitals and punctuation

        InvalidError: there is no such format, or it cannot hold the result (words where none were looked for).
        """
        o = Options("format_options", id=id, speaker=speaker, channel=channel, with_id=with_id, times=times, ipa=ipa, stress=stress,
                    word_times=word_times, phones=phones, words=words, readable=readable)
        text, length = ffi.new("char **"), ffi.new("size_t *")
        call(lib.linnet_result_format, self._c, name.encode(), o.c, text, length)
        try:
            return bytes(ffi.buffer(text[0], length[0])).decode()
        finally:
            lib.linnet_free(text[0])

    def to_dict(self) -> dict[str, Any]:
        """What to_json says, as dictionaries and lists: for data frames and other processes."""
        return dict(json.loads(self.to_json()))

    def to_frame(self, unit: str | None = None) -> Any:
        """A pandas.DataFrame, a row for each of unit: "words" or "phones" (default: words where they were looked for). Its columns are
        the fields of Word or Phone; the phones of a word are their names with blanks between them. Needs pandas."""
        unit = unit or ("words" if self.has_words else "phones")
        if unit not in ("words", "phones"):
            raise ValueError(f"unit is 'words' or 'phones', not {unit!r}")
        rows: list[dict[str, Any]] = [p._asdict() for p in self.phones]
        if unit == "words":
            rows = [{**w._asdict(), "phones": " ".join(p.name for p in w.phones)} for w in self.words]
        return _needed("pandas", "to_frame").DataFrame(rows, columns=(Word if unit == "words" else Phone)._fields)

    def plot(self, axes: Any = None) -> Any:
        """Draws phonemes, the darker the more certain, and above them the words, against seconds; into `axes` of matplotlib, by default
        into new ones of pyplot. Returns them. Needs matplotlib."""
        if axes is None:
            pyplot = _needed("matplotlib.pyplot", "plot")
            axes = pyplot.subplots(figsize=(min(max(4, 2 * self.seconds), 60), 1.6), layout="constrained")[1]
        for phone in self.phones:
            axes.axvspan(phone.start_s, phone.end_s, alpha=0.2 + 0.6 * phone.confidence, color="tab:blue", ec="white")
            axes.text((phone.start_s + phone.end_s) / 2, 0.3, phone.ipa, ha="center", fontsize=9, clip_on=True)
        for word in self.words:
            axes.text((word.start_s + word.end_s) / 2, 0.75, word.text, ha="center", fontsize=9, clip_on=True)
        axes.set(xlim=(0, self.seconds), ylim=(0, 1), yticks=[], xlabel="seconds")
        return axes

    def to_text(self, **options: Any) -> str:
        """A line of words or phonemes; with times=True a line for each. Options as format."""
        return self.format("text", **options)

    def to_json(self, **options: Any) -> str:
        """A JSON object in one line: phonemes, words, times, confidences, scores, alternatives. Options as format."""
        return self.format("json", **options)

    def to_srt(self, **options: Any) -> str:
        """SubRip subtitles. Options as format."""
        return self.format("srt", **options)

    def to_vtt(self, **options: Any) -> str:
        """WebVTT subtitles. Options as format."""
        return self.format("vtt", **options)

    def to_textgrid(self, **options: Any) -> str:
        """A TextGrid of Praat with the tiers "words" and "phones". Options as format."""
        return self.format("textgrid", **options)

    def to_ctm(self, **options: Any) -> str:
        """NIST CTM. Options as format."""
        return self.format("ctm", **options)

    def to_trn(self, **options: Any) -> str:
        """NIST TRN. Options as format."""
        return self.format("trn", **options)

    def to_csv(self, **options: Any) -> str:
        """RFC 4180, a line per phoneme or word. Options as format."""
        return self.format("csv", **options)

    def to_nemo(self, **options: Any) -> str:
        """A line of a JSON manifest as NeMo reads it, the text as pred_text; without a path."""
        return self.format("nemo", **options)

    def to_rttm(self, **options: Any) -> str:
        """NIST RTTM: who speaks when. Options: those of format()."""
        return self.format("rttm", **options)

    def to_audacity(self, **options: Any) -> str:
        """Labels of Audacity. Options as format."""
        return self.format("audacity", **options)


def _needed(module: str, function: str) -> Any:
    """A package that only some functions need."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"Result.{function} needs {module.partition('.')[0]}: {error}", name=error.name) from error


def formats() -> list[str]:
    """Names of the formats that Result.format writes."""
    names: list[str] = []
    while lib.linnet_format_name(len(names)):
        names.append(text_of(lib.linnet_format_name(len(names))))
    return names


def own_result(pointer: Any) -> Result:
    """Of a linnet_result * that the caller owns."""
    return Result(ffi.gc(pointer, lib.linnet_result_destroy))


def copy_result(pointer: Any) -> Result:
    """Of a const linnet_result * that belongs to something else."""
    copy = ffi.new("linnet_result **")
    call(lib.linnet_result_copy, pointer, copy)
    return own_result(copy[0])


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def time_of(seconds: float) -> float:
    """Without the last bits of a sum: 0.011, not 0.010999999999999996."""
    return round(seconds, 9)


def _phone(p: Any) -> Phone:
    return Phone(text_of(p.name), text_of(p.ipa), time_of(p.start_s), time_of(p.end_s), p.confidence, p.label,
                 None if p.stress < 0 else p.stress, _number(p.goodness), text_of(p.said) if p.said else None, p.speaker or None)


def _word(w: Any, phones: tuple[Phone, ...]) -> Word:
    return Word(text_of(w.text), time_of(w.start_s), time_of(w.end_s), w.confidence, bool(w.known),
                phones[w.first_phone : w.first_phone + w.n_phones], _number(w.goodness), w.speaker or None)
