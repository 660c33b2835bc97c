"""Models, decoders, and what they do with whole sounds."""

from __future__ import annotations

import functools
import json
import logging
import os
import threading
from typing import Any, Iterable, Mapping

import numpy as np
import numpy.typing as npt

from ._engine import Engine
from ._errors import call, text_of
from ._linnet import ffi, lib
from ._options import Options, c_text
from ._result import Result, own_result
from ._sound import Progress, Sound, SoundCall, checked_channel, whole_rate
from ._stream import Stream, phrases_of

_PRECISIONS = {"fp32": 0, "tf32": 1, "bf16": 2, "int8": 3, "auto": 4}
_log = logging.getLogger("linnet")


@ffi.def_extern()  # type: ignore[untyped-decorator]
def linnet_py_warning(context: Any, text: Any) -> None:
    _log.warning("%s", text_of(text))


def load(
    path: str | os.PathLike[str] | bytes | None = None, *, device: str = "cpu", precision: str = "auto", dereverb: bool = True
) -> Model:
    """Loads a model.

    path       a model file, or its bytes. None: $LINNET_MODEL, else the model that came with the package
    device     "cpu", "cuda", "cuda:1", or "auto": a GPU if one can be used
    precision  "fp32", "bf16", "int8" (on a CPU), on a GPU "tf32", or "auto": "int8" if the file is in eight bits, else "fp32"
    dereverb   take the echo of a room out of the sound, where there is one; False saves a stream 131 KB

    ReadError: there is no such file; FormatError: it is no model or is damaged; UnsupportedError: the device cannot be used.
    What is wrong but no error, such as a lexicon line that is left out, goes to the logger "linnet".
    """
    return Model(path, device, precision, dereverb)


def texts_of(keywords: Iterable[str] | None) -> tuple[str, ...] | None:
    texts = tuple(keywords or ())
    if isinstance(keywords, str) or not all(isinstance(text, str) for text in texts):
        raise TypeError('keywords is a list of texts, such as ["hey linnet"]')
    return texts or None


def grammar_of(grammar: str | os.PathLike[str] | Iterable[str] | None) -> str | None:
    """A file's name, or the lines of a grammar as the text of one."""
    if grammar is None:
        return None
    if isinstance(grammar, (str, os.PathLike)):
        return os.fspath(grammar)
    lines = tuple(grammar)
    if not all(isinstance(line, str) for line in lines):
        raise TypeError('grammar is a file or a list of lines, such as ["turn on the light"]')
    return "".join(f"{line}\n" for line in lines)


class Decoder:
    """How the network's output becomes phonemes or words, made by Model.decoder. Any number of threads and streams share one."""

    def __init__(self, model: Model, options: dict[str, Any]) -> None:
        self._model, self._options = model, options
        o = Options("decoder_options", **{name: value for name, value in options.items() if name not in ("phrases", "keywords")})
        phrases, texts = phrases_of(options.get("phrases"))
        o.c.phrases, o.c.n_phrases = phrases, len(texts)
        keywords = [c_text(text.encode()) for text in options.get("keywords", ())]
        list_of_keywords = ffi.new("char *[]", keywords)
        o.c.keywords, o.c.n_keywords = list_of_keywords, len(keywords)
        made = ffi.new("linnet_decoder **")
        call(lib.linnet_decoder_create, model._c, o.c, made)
        self._c = ffi.gc(made[0], lib.linnet_decoder_destroy)

    @property
    def kind(self) -> str:
        """"greedy", "beam" or "words"."""
        return text_of(lib.linnet_decoder_kind(self._c))

    @property
    def vocabulary(self) -> int:
        """Words in the lexicon that can be found; 0 for decoders of phonemes."""
        return int(lib.linnet_decoder_vocabulary(self._c))

    def __reduce__(self) -> tuple[Any, ...]:
        return _shared_decoder, (self._model, self._options)


class Model:
    """A trained network, made by linnet.load. It never changes: any number of threads and streams share one.

    Long calls let other Python threads run, and Ctrl-C ends them. A pickled model is its path and options: it is loaded
    once in each process that unpickles it.
    """

    def __init__(self, path: str | os.PathLike[str] | bytes | None, device: str, precision: str, dereverb: bool = True) -> None:
        if precision not in _PRECISIONS:
            raise ValueError(f"precision is {precision!r}: one of {', '.join(_PRECISIONS)}")
        # For other processes, which may be in another folder; the name of an installed model is no path.
        found = os.path.abspath(path) if isinstance(path, (str, os.PathLike)) and os.path.exists(path) else path
        self._arguments = (found, device, precision, dereverb)
        self._lock = threading.RLock()  # reentrant: making one logs warnings, whose handler may use the model
        self._made: dict[Any, Any] = {}  # decoders and aligners by their options
        o = Options("model_options", device=device, precision=_PRECISIONS[precision], dereverb=dereverb)
        o.c.warning = lib.linnet_py_warning
        made = ffi.new("linnet_model **")
        if isinstance(path, bytes):
            call(lib.linnet_model_load_memory, ffi.from_buffer(path), len(path), o.c, made)
        else:
            call(lib.linnet_model_load, ffi.NULL if path is None else c_text(path), o.c, made)
        self._c = ffi.gc(made[0], lib.linnet_model_destroy)
        self._info = info = lib.linnet_model_describe(self._c)
        #: Names of the labels, the columns of posteriors: "<blank>", "AA", ...
        self.phones: tuple[str, ...] = tuple(text_of(info.phones[i]) for i in range(info.n_labels))
        #: The same in the International Phonetic Alphabet where that is known.
        self.ipa: tuple[str, ...] = tuple(text_of(info.ipa[i]) for i in range(info.n_labels))

    def __repr__(self) -> str:
        return f"<linnet.Model {self.name!r}: {len(self.phones)} labels, {self.rate} Hz>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _shared_model, self._arguments

    @property
    def name(self) -> str:
        """The model's name; "" if the file has none."""
        return text_of(self._info.name)

    @property
    def license(self) -> str:
        """The licence of its weights; "" if the file has none."""
        return text_of(self._info.license)

    @property
    def provenance(self) -> dict[str, Any]:
        """How it was trained; empty if the file has none."""
        return dict(json.loads(text_of(self._info.provenance) or "{}"))

    @property
    def rate(self) -> int:
        """Samples per second that sound is resampled to."""
        return int(self._info.sample_hz)

    @property
    def frame_s(self) -> float:
        """Seconds from one row of features to the next: 0.01."""
        return float(self._info.frame_s)

    @property
    def row_s(self) -> float:
        """Seconds from one row of posteriors to the next: 0.03."""
        return float(self._info.row_s)

    @property
    def delay_s(self) -> float:
        """Seconds from the end of a phoneme until its rows are known, by the construction of the model."""
        return float(self._info.delay_s)

    @property
    def streams(self) -> bool:
        """The model can run while sound comes: stream() works."""
        return bool(self._info.streams)

    @property
    def language(self) -> str:
        """The code of the language, "en"; "" if the file has none."""
        return text_of(self._info.language)

    @property
    def fingerprint(self) -> int:
        """A hash of all that changes results; saved streams carry it."""
        return int(self._info.fingerprint)

    def decoder(self, *, words: bool = False, beam: int | None = None, n_best: int | None = None,
                lexicon: str | os.PathLike[str] | None = None, add_lexicon: str | os.PathLike[str] | None = None, lm: str | os.PathLike[str] | bool | None = None, all_words: bool = False, no_unknown: bool = False,
                unknown: float | None = None, lm_weight: float | None = None, bonus: float | None = None,
                beam_score: float | None = None, blank_penalty: float | None = None, settle: float | None = None, show: float | None = None,
                rescore: str | os.PathLike[str] | None = None, rescore_n: int | None = None, rescore_weight: float | None = None,
                g2p: str | os.PathLike[str] | None = None, combine: Model | None = None, combine_weight: float | None = None,
                phrases: Mapping[str, float] | None = None, keywords: Iterable[str] | None = None, best: bool = False,
                grammar: str | os.PathLike[str] | Iterable[str] | None = None, grammar_confidence: float | None = None,
                speakers: int | None = None) -> Decoder:
        """A decoder for transcribe, decode and stream. Make it once, because that takes a moment.

        words        True: words by a lexicon and a language model; False: phonemes
        beam         number of hypotheses. None: 512 for words, 1024 for words of whole utterances (a model that cannot stream,
                     second_pass); 16 for phonemes with a language model, phrases or n_best; else greedy decoding, the best label
                     of each row, which is fastest
        n_best       number of Result.alternatives, 1 to 256, for phonemes to 1024
        lexicon      pronunciations in CMUdict's format; None: $LINNET_LEXICON, else the one of the package
        add_lexicon  a file of words that extend the lexicon, in its format; a word alone in its line is pronounced by rules. They
                     can be found though the language model lacks them
        g2p          letter-to-sound rules for words of add_lexicon and phrases without a pronunciation; None: $LINNET_G2P, else
                     the rules of the language
        lm           language model of words or phonemes, ARPA or packed: a path, or the name of one of the package such as
                     "phones.lm". None: with words $LINNET_LM, else the one of the package; without words none. False: none
        all_words    True: also words of the lexicon that the language model lacks
        no_unknown   True: only words of the lexicon; False: other speech becomes words made of phonemes
        unknown, lm_weight, bonus, beam_score, blank_penalty, settle
                     natural logarithms and a weight, as in linnet.h; None: the defaults of the search
        show         provisional words of less confidence are shown by their phonemes; None: 0.45
        rescore      a network of tokens (linnet lm), of words or phonemes, that scores the best hypotheses of an utterance again
                     when it ends
        rescore_n, rescore_weight
                     number of these hypotheses, 2 to 256; share of the network in the language model's score, 0 to 1
        combine      a second model, such as load() for load("offline"), that also scores the sound of the best hypotheses
                     (rescore_n) of each whole utterance
        combine_weight
                     weight of that model in the score of the sound, 0 to 1
        phrases      likely phrases, each with its bonus: natural logarithm, 4 is usual
        keywords     "hey linnet", or "hey linnet=0.3" with the least confidence: found in all speech (Result.keywords)
        best         True: fewest errors, for 1.3 to 2.4 times the time, by the models of the package: rescore "words" with words,
                     combine load(), and second_pass load("offline") of streams and engines. Values that you give stay. For whole
                     sounds use a decoder of load("offline")
        grammar      the sentences that can be said, and no others: a file (docs/commands.md), or a list of its lines
        grammar_confidence
                     a sentence of less is none; None: 0.25
        speakers     who speaks is told apart (docs/speakers.md): 1 to 10 speakers; -1: their number is not known. Word.speaker
                     and Result.voices tell; in streams, when an utterance has ended

        ReadError, FormatError, MismatchError name the file, the line and what to do.
        """
        if lm is True:
            raise ValueError("lm is a path, the name of an installed model, None or False")
        if phrases and not isinstance(phrases, Mapping):
            raise TypeError('phrases is a dictionary of texts and bonuses, such as {"hey linnet": 4}')
        given = {"words": words, "beam": beam, "n_best": n_best, "lexicon": lexicon and os.fspath(lexicon), "no_lm": lm is False,
                 "add_lexicon": add_lexicon and os.fspath(add_lexicon), "g2p": g2p and os.fspath(g2p),
                 "lm": os.fspath(lm) if lm else None, "all_words": all_words, "no_unknown": no_unknown, "unknown": unknown,
                 "lm_weight": lm_weight, "bonus": bonus, "beam_score": beam_score,
                 "blank_penalty": blank_penalty, "settle": settle, "show": show, "rescore": rescore and os.fspath(rescore),
                 "rescore_n": rescore_n, "rescore_weight": rescore_weight, "combine": combine,
                 "combine_weight": combine_weight, "phrases": tuple((phrases or {}).items()) or None,
                 "keywords": texts_of(keywords), "best": best, "grammar": grammar_of(grammar), "grammar_confidence": grammar_confidence, "speakers": speakers}
        return Decoder(self, {name: value for name, value in given.items() if value is not None and value is not False})

    def _once(self, key: Any, make: Any) -> Any:
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            return self._made[key]

    def _choose(self, words: bool, decoder: Decoder | None) -> Any:
        if decoder is None:
            return _shared_decoder(self, {"words": True}) if words else None
        if words:
            raise ValueError("words=True is for calls without a decoder: give it to Model.decoder")
        if not isinstance(decoder, Decoder):
            raise TypeError(f"decoder is what Model.decoder makes, not {decoder!r}")
        return decoder

    def transcribe(self, sound: Sound, rate: float | None = None, *, words: bool = False, decoder: Decoder | None = None,
                   channel: int | None = None, start_s: float = 0, end_s: float | None = None, threads: int = 1,
                   progress: Progress | None = None) -> Result:
        """Recognises a whole sound.

        sound     a file (WAV, FLAC, Ogg, Opus, MP3, SPHERE; with ffmpeg installed all of its formats), the bytes of a file, or an array [n] or [n, channels]: floats of full scale -1 to 1, or 16- or 32-bit integers
        rate      of an array: samples per second, 4000 to 192000
        words     True: words; False: phonemes
        decoder   in place of words
        channel   0, 1, ...; None: the mean of all
        start_s, end_s  only this part, in seconds; times in the result stay those of the sound
        threads   that work together on this sound; 0: one per core
        progress  called now and then with the seconds processed and the duration (None: unknown); if it returns a true value, the
                  call ends with StoppedError

        ReadError, FormatError, UnsupportedError: the file cannot be read; NumericError: a sample is NaN or infinite.
        """
        chosen = self._choose(words, decoder)
        given = SoundCall(sound, rate, channel, start_s, end_s, threads, progress)
        result = ffi.new("linnet_result **")
        given.run(lib.linnet_decode, self._c, chosen._c if chosen else ffi.NULL, result)
        return own_result(result[0])

    def align(self, sound: Sound, text: str, rate: float | None = None, *, phonemes: bool = False,
              lexicon: str | os.PathLike[str] | None = None, add_lexicon: str | os.PathLike[str] | None = None,
              follow_sound: bool = True, beam: float | None = None, g2p: str | os.PathLike[str] | None = None,
              channel: int | None = None, start_s: float = 0, end_s: float | None = None, threads: int = 1) -> Result:
        """When each phoneme and word of a text was said in a sound, and how well: goodness, Word.goodness, Phone.goodness and Phone.said.

        sound, rate, channel, start_s, end_s, threads  as in transcribe
        text          words, or phonemes
        phonemes      True: the text is phonemes, "HH AH L OW" or in IPA
        lexicon, add_lexicon  as in decoder; words that they lack are pronounced by rules, with a warning
        g2p           these rules; None: as in decoder
        follow_sound  phonemes end where the sound changes; False: at the network's rows
        beam          paths worse than the best by more than this, natural logarithm, are dropped; None: 600

        A text that fits badly is aligned: Result.fit and Result.warning say so. InvalidError: no words, or words that cannot be
        pronounced; MismatchError: the text is too long for the sound.
        """
        options = {"phonemes": phonemes, "lexicon": lexicon and os.fspath(lexicon),
                   "add_lexicon": add_lexicon and os.fspath(add_lexicon), "g2p": g2p and os.fspath(g2p), "follow_sound": follow_sound, "beam": beam}
        aligner = self._once(("align", *options.values()), lambda: self._aligner(options))
        given = SoundCall(sound, rate, channel, start_s, end_s, threads, None)
        result = ffi.new("linnet_result **")
        given.run(lib.linnet_align, aligner, c_text(text.encode()), result)
        return own_result(result[0])

    def _aligner(self, options: dict[str, Any]) -> Any:
        made = ffi.new("linnet_aligner **")
        call(lib.linnet_aligner_create, self._c, Options("aligner_options", **options).c, made)
        return ffi.gc(made[0], lib.linnet_aligner_destroy)

    def features(self, sound: Sound, rate: float | None = None, *, channel: int | None = None, start_s: float = 0,
                 end_s: float | None = None) -> npt.NDArray[np.float32]:
        """The network's input: log-mel energies [n, D], natural logarithm, not normalised, a row every frame_s seconds."""
        return self._rows(lib.linnet_features, int(self._info.n_features), sound, rate, channel, start_s, end_s)

    def posteriors(self, sound: Sound, rate: float | None = None, *, channel: int | None = None, start_s: float = 0,
                   end_s: float | None = None, search: bool = False) -> npt.NDArray[np.float32]:
        """The network's output: natural-log probabilities [n, V], a row every row_s seconds, a column for each of `phones`, the CTC
        blank first. Nothing is reset at endpoints here. search: what a decoder with words or a language model reads, of a network
        with an output for it."""
        return self._rows(lib.linnet_posteriors, len(self.phones), sound, rate, channel, start_s, end_s, search)

    def _rows(self, function: Any, columns: int, sound: Sound, rate: float | None, channel: int | None, start_s: float,
              end_s: float | None, search: bool = False) -> npt.NDArray[np.float32]:
        given = SoundCall(sound, rate, channel, start_s, end_s, 1, None)
        given.options.c.search = search
        rows, n = ffi.new("float **"), ffi.new("size_t *")
        given.run(function, self._c, rows, n)
        if not rows[0]:
            return np.empty((0, columns), np.float32)
        owned = ffi.gc(rows[0], lib.linnet_free)  # freed with the array
        return np.frombuffer(ffi.buffer(owned, n[0] * columns * 4), np.float32).reshape(n[0], columns)

    def decode(self, rows: npt.ArrayLike, *, words: bool = False, decoder: Decoder | None = None) -> Result:
        """Decodes rows [n, V] of natural-log probabilities, of this or another network with the model's labels. NumericError names
        the row that is not one."""
        array = np.ascontiguousarray(rows, np.float32)
        if array.ndim != 2 or array.shape[1] != len(self.phones):
            raise ValueError(f"rows are [n, {len(self.phones)}], not {list(array.shape)}")
        chosen = self._choose(words, decoder)
        result = ffi.new("linnet_result **")
        call(lib.linnet_decode_rows, self._c, ffi.from_buffer("float[]", array), len(array), chosen._c if chosen else ffi.NULL, result)
        return own_result(result[0])

    def stream(self, rate: int | None = None, *, words: bool = False, decoder: Decoder | None = None, channels: int = 1,
               channel: int | None = None, endpoints: bool = True, silence_before_s: float = 5, silence_after_s: float = 0.8,
               longest_s: float = 30, reset_at_endpoints: bool | None = None, can_save: bool | None = None,
               second_pass: Model | None = None) -> Stream:
        """A stream of live sound: push sound, iterate over what has changed.

        rate                samples per second; None: the model's own
        words, decoder, channel  as in transcribe
        channels            of the sound
        endpoints           True: utterances end by the next three rules; False: only by Stream.end_utterance
        silence_before_s    ends an utterance after this much silence without speech; 0: never
        silence_after_s     ends an utterance after this much silence behind speech; 0: never
        longest_s           longest utterance; 0: no limit
        reset_at_endpoints  the network is reset at each endpoint; None: unless the model forgets by itself
        can_save            Stream.save, fork and pickle work. None: if the rate is the model's; at other rates making such a
                            stream takes up to a second
        second_pass         a model such as load("offline"), which decodes each finished utterance again: the final form has fewer
                            errors, and may differ from settled text

        UnsupportedError: the model needs whole utterances (streams is False). MismatchError: the second model has other features,
        phones or steps.
        """
        chosen = self._choose(words, decoder)
        rate = self.rate if rate is None else whole_rate(rate)
        return Stream(self, rate, chosen, {
            "channels": channels, "channel": checked_channel(channel), "endpoints": endpoints, "silence_before_s": silence_before_s,
            "silence_after_s": silence_after_s, "longest_s": longest_s, "reset_at_endpoints": reset_at_endpoints,
            "can_save": rate == self.rate if can_save is None else can_save, "second_pass": second_pass})


    def engine(self, streams: int = 64, *, words: bool = False, decoder: Decoder | None = None, threads: int = 0,
               endpoints: bool = True, silence_before_s: float = 5, silence_after_s: float = 0.8, longest_s: float = 30,
               reset_at_endpoints: bool | None = None, growing: bool = False, queue_s: float = 1,
               exact: bool = False, second_pass: Model | None = None) -> Engine:
        """Many live streams at once, on all cores or on the model's GPU.

        streams   largest number of streams; their memory is taken now
        threads   0: one per core
        growing   True: events also for growing utterances; False: only for finished ones
        queue_s   seconds of sound that may wait in each stream, 0.5 to 60
        exact     on a GPU, True: matrix products in the model's precision; False: tf32 for an fp32 model
        The others are those of stream().
        """
        return Engine(self, self._choose(words, decoder), {
            "streams": streams, "threads": threads, "endpoints": endpoints, "silence_before_s": silence_before_s,
            "silence_after_s": silence_after_s, "longest_s": longest_s, "reset_at_endpoints": reset_at_endpoints, "growing": growing,
            "queue_s": queue_s, "exact": int(exact), "second_pass": second_pass})


# ---- models of other processes ----------------------------------------------------------------------------------------------

_loading = threading.Lock()


@functools.lru_cache(maxsize=4)
def _load_once(path: str | bytes | None, device: str, precision: str, dereverb: bool) -> Model:
    return Model(path, device, precision, dereverb)


def _shared_model(path: str | bytes | None, device: str, precision: str, dereverb: bool) -> Model:
    with _loading:
        return _load_once(path, device, precision, dereverb)


def _shared_decoder(model: Model, options: dict[str, Any]) -> Decoder:
    made: Decoder = model._once(("decoder", *sorted(options.items())), lambda: Decoder(model, options))
    return made
