"""Whole sounds: the results are those of the program."""

import io
import json
import pickle
import signal
import threading
import time
import wave

import linnet
import numpy as np
import pytest
from conftest import MODEL, program, read
from linnet._result import time_of


def told(path, *options):
    return json.loads(program("transcribe", "--quiet", "--no-readable", "-f", "json", *options, path))


@pytest.mark.parametrize("sound", [{"seconds": 4}, {"seconds": 2, "channels": 2, "rate": 44100}])
def test_results_are_those_of_the_program(model, sounds, sound):
    path = sounds("x".join(map(str, sound.values())), **sound)
    id = path.stem
    assert json.loads(model.transcribe(path).to_json(id=id)) == told(path)
    assert json.loads(model.transcribe(path, words=True).to_json(id=id)) == told(path, "--words")
    best = model.transcribe(path, decoder=model.decoder(lm="phones.lm", n_best=3))
    assert json.loads(best.to_json(id=id)) == told(path, "--lm", "phones.lm", "-n", 3)
    assert len(best.alternatives) == 3 and best.alternatives[0].text == best.text != best.alternatives[1].text
    wanted = json.loads(program("align", "--quiet", "-f", "json", "-t", "hello there", path))
    assert json.loads(model.align(path, "hello there").to_json(id=id)) == wanted


def test_speech(model, speech):
    path, samples, rate = speech
    text = model.transcribe(path, words=True)
    assert "john dashwood had then leisure to consider" in text.text
    assert "John Dashwood had then leisure to consider" in text.readable
    assert model.transcribe(samples, rate, words=True).text == text.text
    spoken = model.align(samples, text.text, rate)
    assert spoken.text == text.text and spoken.fit > -1
    assert all(p.goodness <= 0 for p in spoken.phones)
    for of, phones in [(spoken, spoken.phones)] + [(word, word.phones) for word in spoken.words]:
        assert of.goodness == pytest.approx(np.log(np.mean([np.exp(p.goodness) for p in phones])), abs=1e-5)
    assert model.transcribe(path, words=True).words[0].goodness is None
    assert model.align(path, "Call me Ishmael, some years ago").fit < spoken.fit - 1


@pytest.mark.parametrize("kind", [np.int16, np.int32, np.float32, np.float64])
def test_arrays_give_what_files_give(model, file, kind):
    samples, rate = read(file)
    wanted = model.transcribe(file).to_json()
    scaled = {np.int16: samples, np.int32: samples.astype(np.int32) << 16}.get(kind, samples.astype(kind) / 32768)
    assert len(model.transcribe(file).phones) > 3
    assert model.transcribe(scaled, rate).to_dict()["phones"] == json.loads(wanted)["phones"]
    assert model.transcribe(scaled[:, np.newaxis], rate).text == model.transcribe(file).text
    assert model.transcribe(np.repeat(scaled, 2)[::2], rate).text == model.transcribe(file).text  # not contiguous


def test_bytes_of_a_file(model, file):
    assert model.transcribe(file.read_bytes()).to_json() == model.transcribe(file).to_json()
    with pytest.raises(linnet.FormatError):
        model.transcribe(b"RIFF and no sound at all, but long enough to be looked at by its first bytes")


def test_channels_and_parts(model, file, tmp_path):
    mono, rate = read(file)
    samples = np.stack([np.roll(mono, rate), mono], axis=1)
    path = tmp_path / "stereo.wav"
    with wave.open(str(path), "wb") as w:
        w.setparams((2, 2, rate, 0, "NONE", ""))
        w.writeframes(samples.tobytes())
    right = model.transcribe(path, channel=1)
    assert right.text == model.transcribe(samples, rate, channel=1).text == model.transcribe(samples[:, 1], rate).text
    assert right.text != model.transcribe(path, channel=0).text
    part = model.transcribe(path, channel=1, start_s=1, end_s=2.5)
    assert part.phones and all(1 <= p.start_s < p.end_s <= 2.5 for p in part.phones)
    assert model.transcribe(path, threads=2).text == model.transcribe(path).text


def test_rows(model, file, tmp_path):
    samples, rate = read(file)
    for rows, command, columns in (model.posteriors, "posteriors", 40), (model.features, "features", 40):
        program(command, file, "--model", MODEL, "-o", tmp_path / "rows.npy")
        wanted = np.load(tmp_path / "rows.npy")
        got = rows(file)
        assert got.dtype == np.float32 and got.shape == wanted.shape and got.shape[1] == columns
        np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(rows(samples, rate), wanted)
        assert rows(np.zeros(0), 16000).shape == (0, columns)
    posteriors = model.posteriors(file)
    np.testing.assert_allclose(np.exp(posteriors).sum(axis=1), 1, atol=1e-5)
    assert model.decode(posteriors).text == model.transcribe(file).text
    searched = model.posteriors(file, search=True)
    assert model.decode(searched.astype(np.float64), words=True).text == model.transcribe(file, words=True).text
    with pytest.raises(ValueError, match="40"):
        model.decode(posteriors[:, :5])
    posteriors[3] = np.nan
    with pytest.raises(linnet.NumericError, match="3"):
        model.decode(posteriors)


def test_bad_sounds(model, file, tmp_path):
    samples, rate = read(file)
    for bad, error, message in [
        ((tmp_path / "missing.wav",), linnet.ReadError, "missing.wav"),
        ((__file__,), linnet.FormatError, "test_sounds.py"),
        ((samples,), ValueError, "rate"),
        ((file, 16000), ValueError, "rate"),
        ((samples, 16000.5), ValueError, "16000.5"),
        ((samples, 1), linnet.UnsupportedError, "1 Hz"),
        ((samples.reshape(1, -1), rate), ValueError, "transpose"),
        ((samples.reshape(1, 1, -1), rate), ValueError, "3 dimensions"),
        ((samples.astype(np.complex64), rate), TypeError, "complex64"),
        ((samples.astype(np.uint16), rate), TypeError, "uint16"),
        ((np.full(16000, np.nan), rate), linnet.NumericError, "nan"),
        ((np.zeros((10, 0)), rate), linnet.UnsupportedError, "0 channels"),
        ((io.BytesIO(file.read_bytes()),), TypeError, "BytesIO"),
        ((None, rate), TypeError, "NoneType"),
        ((samples.tobytes(), rate), ValueError, "frombuffer"),
        ((b"no sound at all",), linnet.FormatError, "^the sound in memory is not an audio file"),
        ((np.array([0, 1e300]), rate), linnet.NumericError, "inf"),
    ]:
        with pytest.raises(error, match=message):
            model.transcribe(*bad)
    with pytest.raises(linnet.MismatchError):
        model.align(samples, "much longer " * 100, rate)
    with pytest.raises(linnet.InvalidError):
        model.align(samples, "", rate)
    assert model.transcribe(np.zeros(0), 16000).text == ""
    for channel in -1, 1:
        with pytest.raises(ValueError, match="channel"):
            model.transcribe(samples, rate, channel=channel)
    with pytest.raises(TypeError, match="threads cannot be 1.5"):
        model.transcribe(samples, rate, threads=1.5)
    with pytest.raises(TypeError, match="Model.decoder"):
        model.transcribe(samples, rate, decoder="words")


def test_progress_can_stop(model):
    sound, seen = np.zeros(16000 * 120, np.float32), []
    model.transcribe(sound, 16000, progress=lambda *at: seen.append(at))
    assert seen and all(0 <= s <= d == 120 for s, d in seen)
    with pytest.raises(linnet.StoppedError):
        model.transcribe(sound, 16000, progress=lambda s, d: True)
    with pytest.raises(ZeroDivisionError):
        model.transcribe(sound, 16000, progress=lambda s, d: 1 / 0)


@pytest.mark.parametrize("how", ["transcribe", "posteriors", "align"])
def test_interrupts_end_long_calls(model, how):
    sound = np.random.default_rng(1).normal(0, 0.1, 16000 * 1200).astype(np.float32)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    begin = time.process_time()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            getattr(model, how)(sound, *["hello"] * (how == "align"), rate=16000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    stopped = time.process_time() - begin
    begin = time.process_time()
    model.posteriors(sound[: len(sound) // 20], 16000)
    assert stopped < 20 * (time.process_time() - begin) / 2  # much earlier than the end


def test_other_threads_run(model):
    rows = np.log(np.random.default_rng(1).dirichlet(np.ones(40), 300)).astype(np.float32)
    decoder = model.decoder(words=True)
    done = threading.Event()

    def work():
        for _ in range(3):
            model.decode(rows, decoder=decoder)  # does not call back
        done.set()

    thread = threading.Thread(target=work)
    begin = time.monotonic()
    thread.start()
    ticks = 0
    while not done.is_set():
        time.sleep(0.002)
        ticks += 1
    thread.join()
    assert ticks > 10 * (time.monotonic() - begin) + 5


def test_threads_share_a_model(model, sounds):
    paths = [sounds(f"thread{i}", seconds=2, seed=i) for i in range(4)]
    wanted = [model.transcribe(p, words=True).text for p in paths]
    got = [None] * 8

    def work(i):
        got[i] = model.transcribe(paths[i % 4], words=True).text

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert got == wanted * 2


# ---- results ----


def test_formats_are_those_of_the_program(model, file):
    result = model.transcribe(file, words=True)
    assert set(linnet.formats()) == {"text", "json", "ctm", "trn", "srt", "vtt", "textgrid", "csv", "audacity", "nemo", "rttm"}
    for name in linnet.formats():
        wanted = program("transcribe", "--quiet", "--no-readable", "--words", "-f", name, file)
        wanted = wanted.replace(f'"audio_filepath":"{file}",', "")  # which a result does not know
        assert result.format(name, id=file.stem) == wanted == getattr(result, f"to_{name}")(id=file.stem)
    assert result.to_text(ipa=True, phones=True).split() == [p.ipa for p in result.phones]
    assert result.to_text(times=True).count("\n") >= len(result.words)
    with pytest.raises(linnet.InvalidError, match="docx"):
        result.format("docx")
    with pytest.raises(linnet.InvalidError):
        model.transcribe(file).to_srt(words=True)


def test_phones_and_words(model, file):
    result = model.transcribe(file)
    assert str(result) == result.text == " ".join(p.name for p in result.phones)
    assert not result.has_words and result.words == () and result.readable == result.text
    assert result.seconds == 4 and not result.incomplete and result.warning == "" and result.fit is None
    for a, b in zip(result.phones, result.phones[1:]):
        assert 0 <= a.start_s < a.end_s <= b.end_s and 0 < a.confidence <= 1
        assert model.phones[a.label] == a.name and model.ipa[a.label] == a.ipa
    words = model.transcribe(file, words=True).words
    assert words and all(w.phones[0].start_s == w.start_s and w.phones[-1].end_s == w.end_s for w in words)


def test_a_result_outlives_its_model(file):
    model = linnet.load()
    result = model.transcribe(file)
    rows = model.posteriors(file)
    text, total = result.text, rows.sum()
    del model
    assert result.to_text().strip() == text and rows.sum() == total


def test_results_do_not_pickle(model, file):
    with pytest.raises(TypeError, match="to_dict"):
        pickle.dumps(model.transcribe(file))
    assert pickle.loads(pickle.dumps(model.transcribe(file).phones)) == model.transcribe(file).phones


def test_samples_out_of_scale_are_told_once(model, caplog, monkeypatch):
    import linnet._sound

    def told(samples):
        caplog.clear()
        model.stream().push(samples)
        return [r.getMessage() for r in caplog.records if r.name == "linnet"]

    monkeypatch.setattr(linnet._sound, "_told", False)
    assert told(np.array([0, 1.4, -1.4] * 500)) == told(np.full(1600, -20000, np.int16)) == []
    assert told(np.array([0.0, -23000.0] * 800)) == [
        "samples reach 23000: floats have a full scale of -1 to 1; divide 16-bit values by 32768, or give them as int16"]
    assert told(np.full(1600, 4.0)) == []
    monkeypatch.setattr(linnet._sound, "_told", False)
    assert told(np.array([1, -2] * 800, np.int32)) == told(np.array([512, -768] * 800, np.int32)) == []  # silence
    assert told(np.array([-23000, 17] * 800, np.int32)) == [
        "samples reach 23000: int32 has a full scale of 2147483648; give 16-bit values as int16"]


def test_frames(model, file):
    pandas = pytest.importorskip("pandas")
    words, phones = model.transcribe(file, words=True), model.transcribe(file)
    frame = words.to_frame()
    assert list(frame.columns) == list(linnet.Word._fields) and list(frame.text) == [w.text for w in words.words]
    assert list(frame.phones) == [" ".join(p.name for p in w.phones) for w in words.words]
    assert (frame.end_s > frame.start_s).all() and frame.known.dtype == bool
    assert list(words.to_frame("phones").name) == [p.name for p in words.phones]
    assert phones.to_frame().equals(phones.to_frame("phones")) and list(phones.to_frame().columns) == list(linnet.Phone._fields)
    empty = model.transcribe(np.zeros(16000), 16000, words=True).to_frame()
    assert isinstance(empty, pandas.DataFrame) and len(empty) == 0 and "text" in empty
    with pytest.raises(ValueError, match="words"):
        words.to_frame("letters")


def test_plot(model, file):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    result = model.transcribe(file, words=True)
    axes = result.plot()
    assert [t.get_text() for t in axes.texts] == [p.ipa for p in result.phones] + [w.text for w in result.words]
    assert axes.get_xlim() == (0, result.seconds) and result.plot(axes) is axes


def test_what_is_not_installed_is_named(model, monkeypatch):
    import sys

    result = model.transcribe(np.zeros(1600), 16000)
    for module, function in ("pandas", result.to_frame), ("matplotlib.pyplot", result.plot):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ImportError, match=f"needs {module.partition('.')[0]}"):
            function()


def test_times_print_as_they_are_meant(model, sounds):
    times = [t for p in model.transcribe(sounds("times", seconds=8, seed=3)).phones for t in (p.start_s, p.end_s)]
    assert times and all(len(repr(t)) <= 6 for t in times), times
    assert repr(time_of(0.010999999999999996)) == "0.011"


def test_types_refuse_what_is_no_sound():
    mypy = pytest.importorskip("mypy.api")
    code = "import linnet, numpy as np\nm = linnet.load()\n"
    good = "m.transcribe('x.wav'); m.transcribe(b'RIFF'); m.transcribe([0.5, 0.5]); m.transcribe(np.zeros((9, 2), np.int16))"
    assert mypy.run(["--strict", "-c", code + good])[2] == 0
    for wrong in ("m.transcribe(3)", "m.transcribe(None)", "m.stream().push(3)"):
        assert mypy.run(["--strict", "-c", code + wrong])[2] == 1
