"""Many live streams at once."""

from __future__ import annotations

import os
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Iterator, NamedTuple

from ._errors import InvalidError, call, text_of
from ._linnet import ffi, lib
from ._options import Options
from ._sound import Samples, samples_of, whole_rate
from ._stream import Utterance, utterance_of

if TYPE_CHECKING:
    from ._model import Decoder, Model

_LOOK_AGAIN_S = 0.01
_INTERRUPT_S = 0.2
_KINDS = ("", "utterance", "lost", "ended", "failed")


class Event(NamedTuple):
    """What happened to a stream of an engine."""

    kind: str
    """"utterance": it has changed or ended; "lost": sound did not fit the queue; "ended": all before finish is processed, the last
    event of the stream; "failed": the stream gives nothing more before reset"""
    stream: int
    """as Engine.open returned it"""
    utterance: Utterance | None
    """None unless kind is "utterance" """
    time_s: float
    """seconds of the stream's sound"""
    lost: int
    """samples of each channel that did not fit; later times do not count them"""
    status: str
    """"ok", or why the stream failed: "no_memory", ... """


class Engine:
    """Many live streams, made by Model.engine: what is ready of all streams moves through the network together, on all cores or on a
    GPU. Each stream gives the results of a Stream with the same options. All methods may be called from any thread.

        with model.engine(streams=400, words=True) as engine:
            speaker = engine.open(rate=16000)
            engine.push(speaker, samples)              # never waits
            for event in engine.events(wait_s=0.5):
                if event.kind == "utterance":
                    print(event.stream, event.utterance.text)
    """

    def __init__(self, model: Model, decoder: Decoder | None, options: dict[str, Any]) -> None:
        o = Options("engine_options", decoder=decoder and decoder._c, **options)
        made = ffi.new("linnet_engine **")
        call(lib.linnet_engine_create, model._c, o.c, made)
        self._rate = model.rate
        self._process = os.getpid()
        self._reading = threading.Lock()
        self._channels: dict[int, int] = {}
        # Destroyed with the last reference: a call that is in progress in another thread has one.
        self._c = ffi.gc(made[0], lib.linnet_engine_destroy)

    def _engine(self) -> Any:
        if self._c is None:
            raise ValueError("the engine is closed")
        if self._process != os.getpid():  # its threads, and whoever held a lock, are not here
            raise InvalidError("the engine was created before this process was forked: create another one here")
        return self._c

    def open(self, rate: int | None = None, channels: int = 1) -> int:
        """A new stream of sound: its number. Channels are mixed. rate None: the model's. TooSmallError: all places are taken."""
        stream = ffi.new("linnet_stream *")
        call(lib.linnet_engine_open, self._engine(), self._rate if rate is None else whole_rate(rate), channels, ffi.NULL, stream)
        self._channels[stream[0]] = channels
        return int(stream[0])

    def push(self, stream: int, samples: Samples, block: bool = False) -> None:
        """Takes in sound [n] or [n, channels], which is copied; does not wait for the network.

        TooSmallError: it does not fit the queue, and counts as lost. NumericError: a sample is NaN or infinite.
        With block, for sound that can wait (a file): it waits until all of it fits the queue, and nothing is lost. Then one thread at a
        time pushes into this stream.
        """
        array = samples_of(samples)
        if array.shape[1] != self._channels.get(stream, array.shape[1]):
            raise ValueError(f"the stream takes sound [n, {self._channels[stream]}], not {list(array.shape)}")
        room = ffi.new("size_t *", len(array))
        while len(array):
            if block:
                call(lib.linnet_engine_room, self._engine(), stream, room)
                if room[0] == 0:
                    time.sleep(_LOOK_AGAIN_S)
                    continue
            part, array = array[: room[0]], array[room[0] :]
            call(lib.linnet_engine_push, self._engine(), stream, ffi.from_buffer("float[]", part), len(part))

    def finish(self, stream: int) -> None:
        """The sound has ended: the event "ended" comes when all of it is processed."""
        call(lib.linnet_engine_finish, self._engine(), stream)

    def reset(self, stream: int) -> None:
        """As newly opened: sound and events that wait are dropped."""
        call(lib.linnet_engine_reset, self._engine(), stream)

    def close_stream(self, stream: int) -> None:
        """Gives the place back; no event comes afterwards. A stream that is not open is ignored."""
        lib.linnet_engine_close(self._engine(), stream)
        self._channels.pop(stream, None)

    def events(self, wait_s: float = 0) -> Iterator[Event]:
        """Events of all streams, until none comes for wait_s seconds. Events wait until you ask for them; of a growing utterance
        only the latest waits."""
        until = time.monotonic() + wait_s
        while True:
            left = until - time.monotonic()
            engine = self._engine()
            with self._reading:
                seen = lib.linnet_engine_next(engine, min(left, _INTERRUPT_S))
                if not seen and left > _INTERRUPT_S:
                    continue  # Ctrl-C is seen between two waits
                if not seen:
                    return
                event = Event(_KINDS[seen.kind], int(seen.stream), utterance_of(seen.utterance) if seen.utterance else None,
                              seen.time_s, seen.lost, text_of(lib.linnet_status_name(seen.status)))
            yield event
            until = time.monotonic() + wait_s

    def stats(self) -> dict[str, float]:
        """Measurements: open, streams (places), stream_bytes, lag_p50_ms, lag_p95_ms, lag_p99_ms (from the push that completed a
        row's sound to the row's results), lost, missed."""
        stats = ffi.new("linnet_engine_stats *")
        stats.size = ffi.sizeof("linnet_engine_stats")
        call(lib.linnet_engine_measure, self._engine(), stats)
        return {name: getattr(stats, name) for name, _ in ffi.typeof("linnet_engine_stats").fields if name != "size"}

    def close(self) -> None:
        """Ends the engine. Without it, that happens with the last reference."""
        self._c = None

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
