import pickle
import subprocess
import sys
import threading

import linnet
import numpy as np
import pytest
from conftest import read


def blocks(samples, n):
    return [samples[i : i + n] for i in range(0, len(samples), n)]


def final(utterances):
    return [(u.text, u.settled.to_json(), u.end) for u in utterances if u.ended]


@pytest.fixture(scope="module")
def sound(file):
    """16 kHz with a pause, so that there are two utterances"""
    samples, _ = read(file)
    one, two = samples[:48000], samples[16000:]
    return np.concatenate([one, np.zeros(24000, np.int16), two])


def test_results_do_not_depend_on_the_cuts(model, sound):
    wanted = final(model.stream().run([sound]))
    assert len(wanted) >= 2 and all(w[0] for w in wanted)
    assert wanted[0][2] == "after" and wanted[-1][2] == "finished"
    assert [w[2] for w in final(model.stream(longest_s=2, silence_after_s=0).run([sound]))][0] == "longest"
    for n in 160, 1600, 7777:
        assert final(model.stream().run(blocks(sound, n))) == wanted
    assert final(model.stream(16000).run(blocks(sound / 32768, 1600))) == wanted
    assert final(model.stream(words=True).run(blocks(sound, 1600))) == final(model.stream(words=True).run([sound]))


def test_speech(model, speech):
    _, samples, rate = speech
    with model.stream(rate, words=True) as stream:
        seen = list(stream.run(blocks(samples, rate // 25)))
    assert "john dashwood had then leisure to consider" in " ".join(u.text for u in seen if u.ended)
    assert len(seen) > 20 and any(u.provisional.text for u in seen)
    for a, b in zip(seen, seen[1:]):
        if a.number == b.number:
            assert b.settled.text.startswith(a.settled.text) and b.processed_s >= a.processed_s


def test_second_pass(model, sound):
    offline = linnet.load("offline")
    plain = list(model.stream().run(blocks(sound, 1600)))
    seen = list(model.stream(second_pass=offline).run(blocks(sound, 1600)))
    assert [u.text for u in seen if not u.ended] == [u.text for u in plain if not u.ended]
    assert [u.text for u in seen if u.ended] != [u.text for u in plain if u.ended]
    assert final(model.stream(second_pass=offline).run([sound])) == final(seen)
    stream = model.stream(second_pass=offline)
    list(stream.push(sound[:32000]))
    copy = pickle.loads(pickle.dumps(stream))
    assert final(stream.fork().run([sound[32000:]])) == final(seen)
    assert final(copy.run([sound[32000:]])) == final(seen)
    with model.engine(streams=2, second_pass=offline) as engine:
        speaker = engine.open()
        for block in blocks(sound, 1600):
            engine.push(speaker, block, block=True)
        engine.finish(speaker)
        got = []
        while not got or got[-1].kind != "ended":
            got += engine.events(wait_s=1)
    assert [e.utterance.text for e in got if e.kind == "utterance"] == [u.text for u in seen if u.ended]


def test_iteration_gives_what_changed(model, sound):
    stream = model.stream()
    assert list(stream) == []
    first = list(stream.push(sound[:32000]))
    assert len(first) == 1 and not first[0].ended and first[0].text
    assert list(stream) == []
    stream.end_utterance()
    ended = [u for u in stream if u.ended]
    assert [u.end for u in ended] == ["asked"] and ended[0].number == first[0].number
    stream.push(sound[32000:])
    assert [u.end for u in stream.finish() if u.ended][-1] == "finished"
    with pytest.raises(linnet.InvalidError):
        stream.push(sound)
    assert final(stream.reset().run([sound])) == final(model.stream().run([sound]))
    assert first[0].settled.to_json()  # lives on


def test_a_pickle_goes_on_with_the_same_bits(model, sound, tmp_path):
    at = 40000
    for options in {}, {"words": True}, {"decoder": model.decoder(lm="phones.lm")}:
        stream = model.stream(**options)
        list(stream.push(sound[:at]))
        text = pickle.dumps(stream)
        copy = pickle.loads(text)
        state = stream.save()
        assert copy.save() == state
        wanted = final(copy.run([sound[at:]]))
        assert wanted
        assert final(pickle.loads(text).run(blocks(sound[at:], 1000))) == wanted
        assert final(model.stream(**options).load(state).run([sound[at:]])) == wanted
        script = "import pickle, sys, numpy; s, x = pickle.load(open(sys.argv[1], 'rb')); " \
                 "print([u.settled.to_json() for u in s.run([x]) if u.ended])"
        (tmp_path / "state").write_bytes(pickle.dumps((stream, sound[at:])))
        said = subprocess.run([sys.executable, "-c", script, "state"], cwd=tmp_path, check=True, stdout=subprocess.PIPE, text=True).stdout
        assert said.strip() == str([w[1] for w in wanted])


def test_a_fork_goes_on_by_itself(model, sound):
    stream = model.stream()
    list(stream.push(sound[:40000]))
    fork = stream.fork()
    whole = final(stream.run([sound[40000:]]))
    assert final(fork.run(blocks(sound[40000:], 999))) == whole


def test_damaged_and_foreign_states(model):
    stream = model.stream()
    state = bytearray(stream.save())
    with pytest.raises(linnet.MismatchError):
        model.stream(words=True).load(state)
    state[len(state) // 2] ^= 1
    with pytest.raises(linnet.FormatError):
        stream.load(state)
    with pytest.raises(linnet.InvalidError):
        model.stream(8000).save()
    assert model.stream(8000, can_save=True).save()


def test_rates_and_channels(model, sounds):
    samples, rate = read(sounds("rate", seconds=2, rate=44100, channels=2))
    stream = model.stream(rate, channels=2, channel=1)
    assert (stream.rate, stream.channels) == (44100, 2)
    assert final(stream.run([samples])) == final(model.stream(rate).run([samples[:, 1]]))
    for bad in samples[:, 0], samples.T, samples[:, :, np.newaxis]:
        with pytest.raises(ValueError):
            model.stream(rate, channels=2).push(bad)
    with pytest.raises(ValueError):
        model.stream(rate).push(samples)
    with pytest.raises(linnet.NumericError):
        model.stream().push([0.0, float("inf")])
    with pytest.raises(linnet.UnsupportedError, match="1 Hz"):
        model.stream(1)
    for rate in 0, 16000.5, -16000:
        with pytest.raises(ValueError, match=f"rate is {rate}"):
            model.stream(rate)
        with pytest.raises(ValueError, match=f"rate is {rate}"):
            model.engine(1).open(rate)
    with pytest.raises(ValueError, match="channel"):
        model.stream(channel=-1)


def test_phrases(model):
    stream = model.stream(decoder=model.decoder(words=True))
    stream.set_phrases({"dashwood": 4.0, "elinor": 2})
    stream.set_phrases(None)
    with pytest.raises(linnet.UnsupportedError):
        model.stream().set_phrases({"dashwood": 4.0})


def test_phrases_go_with_a_pickle(model, speech):
    _, samples, rate = speech
    stream = model.stream(rate, words=True, can_save=True)
    list(stream.set_phrases({"leisure": -40}).push(samples[:rate]))
    copies = pickle.loads(pickle.dumps(stream)), pickle.loads(pickle.dumps(stream.fork()))
    wanted = " ".join(text for text, _, _ in final(stream.run([samples[rate:]])))
    assert "leisure" not in wanted
    for copy in copies:
        assert wanted.endswith(" ".join(text for text, _, _ in final(copy.run([samples[rate:]]))))


def test_closed(model, sound):
    with model.stream() as stream:
        stream.push(sound)
    assert list(stream) == []
    for call in (lambda: stream.push(sound), stream.save, stream.finish, stream.fork):
        with pytest.raises(ValueError, match="closed"):
            call()
    stream.close()


def test_threads_may_meet_in_a_stream(model, sound):
    stream = model.stream()
    stop = threading.Event()

    def read_all():
        while not stop.is_set():
            list(stream)

    reader = threading.Thread(target=read_all)
    reader.start()
    for _ in range(2):
        for block in blocks(sound, 1600):
            stream.push(block)
    stop.set()
    reader.join()
    stream.close()
