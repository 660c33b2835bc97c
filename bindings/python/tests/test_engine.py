import os
import signal
import time

import linnet
import numpy as np
import pytest
from conftest import read


def final(utterances):
    return [(u.number, u.settled.to_json(), u.end) for u in utterances if u.ended]


def test_each_stream_gives_what_a_stream_gives(model, sounds):
    samples = [read(sounds(f"engine{i}", seconds=3, seed=i))[0] for i in range(5)]
    wanted = [final(model.stream(words=True).run([s])) for s in samples]
    with model.engine(streams=5, words=True, queue_s=10) as engine:
        streams = [engine.open() for _ in samples]
        with pytest.raises(linnet.TooSmallError):
            engine.open()
        for i in range(0, len(samples[0]), 1600):
            for stream, s in zip(streams, samples):
                engine.push(stream, s[i : i + 1600])
        for stream in streams:
            engine.finish(stream)
        events = []
        limit = time.monotonic() + 60
        while sum(e.kind == "ended" for e in events) < len(streams) and time.monotonic() < limit:
            events += engine.events(wait_s=0.1)
        got = [final(e.utterance for e in events if e.stream == stream and e.kind == "utterance") for stream in streams]
        assert got == wanted
        assert [e.time_s for e in events if e.kind == "ended"] == [3] * 5
        stats = engine.stats()
        assert (stats["open"], stats["streams"], stats["lost"]) == (5, 5, 0) and stats["stream_bytes"] > 100000
        engine.close_stream(streams[0])
        assert engine.stats()["open"] == 4 and engine.open(8000, channels=2)
    with pytest.raises(ValueError, match="closed"):
        engine.push(streams[0], samples[0])


def test_a_push_that_waits_loses_nothing(model, sounds):
    samples = read(sounds("wait", seconds=6, seed=9))[0]
    wanted = final(model.stream(words=True).run([samples]))
    with model.engine(streams=1, words=True, queue_s=0.5) as engine:
        stream = engine.open()
        engine.push(stream, samples, block=True)  # six times what the queue takes
        engine.push(stream, samples[:0], block=True)
        engine.finish(stream)
        events = []
        for event in engine.events(wait_s=60):
            events.append(event)
            if event.kind == "ended":
                break
        assert engine.stats()["lost"] == 0 and events[-1].time_s == 6
        assert final(e.utterance for e in events if e.kind == "utterance") == wanted
        with pytest.raises(linnet.InvalidError):
            engine.push(stream, samples, block=True)


def test_a_forked_process_has_no_engine(model, sounds):
    sound = read(sounds("fork", seconds=2, seed=4))[0]
    wanted = model.transcribe(sound, rate=16000).text
    engine = model.engine(streams=1)
    stream = engine.open()
    calls = (engine.open, lambda: engine.push(stream, sound), lambda: engine.finish(stream), lambda: engine.reset(stream),
             lambda: engine.close_stream(stream), lambda: next(engine.events(wait_s=60)), engine.stats)
    child = os.fork()
    if child == 0:
        signal.alarm(120)  # which ends it if something waits
        refused = 0
        for call in calls:
            try:
                call()
            except linnet.InvalidError as error:
                refused += "forked" in str(error)
        works = model.transcribe(sound, rate=16000).text == wanted
        del engine, calls
        os._exit(0 if works and refused == 7 else 1)
    assert os.waitpid(child, 0)[1] == 0
    engine.close()


def test_a_full_queue_loses_sound(model):
    engine = model.engine(streams=1, queue_s=0.5, growing=True)
    stream = engine.open(channels=2)
    with pytest.raises(linnet.TooSmallError):
        engine.push(stream, np.zeros((160000, 2)))
    engine.push(stream, np.zeros((4800, 2)))  # the loss is told with the sound that follows
    engine.finish(stream)
    lost = [e for e in engine.events(wait_s=5) if e.kind == "lost"]
    assert [(e.stream, e.lost, e.utterance, e.status) for e in lost] == [(stream, 160000, None, "ok")]
    engine.reset(stream)
    for bad in np.zeros(160), np.zeros((160, 3)):
        with pytest.raises(ValueError, match="2"):
            engine.push(stream, bad)
    with pytest.raises(linnet.NumericError):
        engine.push(stream, np.full((160, 2), np.nan))
    with pytest.raises(linnet.InvalidError):
        engine.finish(stream + 1)


def test_interrupts_end_a_wait(model):
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    begin = time.monotonic()
    with model.engine(1) as engine:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with pytest.raises(KeyboardInterrupt):
                list(engine.events(wait_s=120))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - begin < 120  # before the end of the wait
