"""Live sound: results while it goes on."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Mapping, NamedTuple

import numpy as np

from ._errors import call
from ._linnet import ffi, lib
from ._options import Options, c_text
from ._result import Result, copy_result, time_of
from ._sound import Samples, samples_of

if TYPE_CHECKING:
    from ._model import Decoder, Model

_ENDS = ("", "before", "after", "longest", "asked", "finished")


class Utterance(NamedTuple):
    """An utterance as it stands. Times are seconds from the beginning of the stream."""

    number: int
    """1, 2, ... of the stream"""
    end: str
    """"" while it grows; else why it ended: "before" or "after" (a silence), "longest", "asked", "finished" """
    settled: Result
    """what never changes: it only grows until the utterance has ended; with a second pass the final form is another one"""
    provisional: Result
    """the best hypothesis for what follows, which may change; empty once the utterance has ended"""
    incomplete: bool
    """the last provisional word goes on: only its first phonemes are known"""
    start_s: float
    end_s: float
    processed_s: float
    """the sound up to here has been judged"""

    @property
    def ended(self) -> bool:
        """This is its final form."""
        return bool(self.end)

    @property
    def text(self) -> str:
        """Settled and provisional text."""
        return " ".join(filter(None, (self.settled.text, self.provisional.text)))


def utterance_of(seen: Any) -> Utterance:
    """A copy of a linnet_utterance."""
    return Utterance(seen.number, _ENDS[seen.end], copy_result(seen.settled), copy_result(seen.provisional), bool(seen.incomplete),
                     time_of(seen.start_s), time_of(seen.end_s), time_of(seen.processed_s))


def phrases_of(phrases: Iterable[tuple[str, float]] | None) -> tuple[Any, list[Any]]:
    """linnet_phrase [n], and the texts that it points to."""
    given = [(c_text(text.encode()), bonus) for text, bonus in phrases or ()]
    return ffi.new("linnet_phrase[]", given), [text for text, _ in given]


class Stream:
    """One stream of sound, made by Model.stream: push sound, and iterate over what has changed.

        with model.stream(rate=48000, words=True) as stream:
            for block in microphone:
                for utterance in stream.push(block):
                    print(utterance.text)
            for utterance in stream.finish():
                print(utterance.text)

    Iterating gives the utterances that ended since the last time, then the present one if it changed. Results do not depend on how
    the sound is cut. Memory is constant. Methods may be called from any thread, one at a time runs.

    A stream can be pickled, also in the middle of a word: the copy goes on with the same bits, here or on another machine that
    has the same model file. Results are not in it: utterances count from 1 again, and the first one begins with what settles
    from then on. fork() makes a copy in this process, with the present utterance.
    """

    def __init__(self, model: Model, rate: int, decoder: Decoder | None, options: dict[str, Any], session: Any = None) -> None:
        self._model, self._decoder, self._options, self._rate = model, decoder, options, rate
        self._phrases: dict[str, float] | None = None  # None: the decoder's
        self._lock = threading.RLock()
        if session is None:
            o = Options("session_options", rate_hz=rate, decoder=decoder and decoder._c, **options)
            made = ffi.new("linnet_session **")
            call(lib.linnet_session_create, model._c, o.c, made)
            session = made[0]
        self._c = ffi.gc(session, lib.linnet_session_destroy)

    @property
    def rate(self) -> int:
        """Samples per second of the sound that is pushed."""
        return self._rate

    @property
    def channels(self) -> int:
        """Of the sound that is pushed."""
        return int(self._options["channels"])

    def _run(self, function: Any, *arguments: Any) -> Stream:
        with self._lock:
            if self._c is None:
                raise ValueError("the stream is closed")
            call(function, self._c, *arguments)
        return self

    def push(self, samples: Samples) -> Stream:
        """Takes in sound: [n] or [n, channels], floats of full scale -1 to 1, or 16- or 32-bit integers. Returns the stream.

        NumericError, and nothing is taken in, if a sample is NaN or infinite.
        """
        array = np.asarray(samples)
        if array.size == 0:
            return self
        if array.shape[1:] != (self.channels,) and not (array.ndim == self.channels == 1):
            raise ValueError(f"the stream takes sound [n, {self.channels}], not {list(array.shape)}")
        if array.dtype == np.int16:
            array = np.ascontiguousarray(array)
            return self._run(lib.linnet_session_push_int16, ffi.from_buffer("int16_t[]", array), len(array))
        array = samples_of(array)
        return self._run(lib.linnet_session_push, ffi.from_buffer("float[]", array), len(array))

    def __iter__(self) -> Iterator[Utterance]:
        """What has changed since the last time: utterances that ended, in order, then the present one."""
        while True:
            with self._lock:
                if self._c is None:
                    return
                seen = lib.linnet_session_next(self._c)
                if not seen:
                    return
                utterance = utterance_of(seen)
            yield utterance

    def run(self, blocks: Iterable[Samples]) -> Iterator[Utterance]:
        """Pushes all blocks and gives what changes on the way; the sound ends with the last one."""
        for block in blocks:
            yield from self.push(block)
        yield from self.finish()

    def end_utterance(self) -> Stream:
        """Ends the present utterance, as a push-to-talk button does."""
        return self._run(lib.linnet_session_end_utterance)

    def finish(self) -> Stream:
        """The sound has ended: the last utterance ends. Iterate once more; then reset() or close()."""
        return self._run(lib.linnet_session_finish)

    def reset(self) -> Stream:
        """A new sound: as newly made, without the cost. Results that were not asked for are dropped."""
        return self._run(lib.linnet_session_reset)

    def set_phrases(self, phrases: Mapping[str, float] | None) -> Stream:
        """Words or phrases that are likely from now on, each with its bonus (natural logarithm, 4 is usual), instead of those of the
        decoder. UnsupportedError: the decoder is greedy, or has n_best over 1."""
        given = dict(phrases or {})
        array, texts = phrases_of(given.items())
        with self._lock:
            self._run(lib.linnet_session_set_phrases, array, len(texts))
            self._phrases = given
        return self

    def save(self) -> bytes:
        """The state (0.9 MB; with words 2.4 MB), from which Model.stream(...).load(state) goes on with the same bits, after the same
        set_phrases. `linnet transcribe --load-state` reads it too.

        InvalidError: the stream was made without can_save, or is finished; UnsupportedError: n_best is over 1.
        """
        block, n = ffi.new("void **"), ffi.new("size_t *")
        self._run(lib.linnet_session_save, block, n)
        try:
            return bytes(ffi.buffer(block[0], n[0]))
        finally:
            lib.linnet_free(block[0])

    def load(self, state: bytes) -> Stream:
        """Goes on from a saved state. MismatchError: it is of another model or other options; FormatError: it is damaged. Then the
        stream is as newly made."""
        return self._run(lib.linnet_session_load, ffi.from_buffer(state), len(state))

    def fork(self) -> Stream:
        """A second stream that goes on from the same point. Fails as save, but not with n_best over 1."""
        copy = ffi.new("linnet_session **")
        with self._lock:
            self._run(lib.linnet_session_fork, copy)
            made = Stream(self._model, self._rate, self._decoder, self._options, copy[0])
            made._phrases = self._phrases
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        with self._lock:
            return _restore, (self._model, self._rate, self._decoder, self._options, self.save(), self._phrases)

    def close(self) -> None:
        """Frees the memory now. Without it, that happens with the last reference to the stream."""
        with self._lock:
            if self._c is not None:
                ffi.release(self._c)
                self._c = None

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _restore(model: Model, rate: int, decoder: Decoder | None, options: dict[str, Any], state: bytes,
             phrases: dict[str, float] | None = None) -> Stream:
    stream = Stream(model, rate, decoder, options)
    if phrases is not None:
        stream.set_phrases(phrases)
    return stream.load(state)
