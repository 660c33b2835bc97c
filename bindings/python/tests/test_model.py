import logging
import os
import pickle
import threading
from pathlib import Path

import linnet
import pytest
from conftest import MODEL, program

DATA = Path(linnet.__file__).parent / "data"


def test_what_it_is(model):
    assert linnet.__version__ in program("--version")
    assert (model.rate, model.frame_s, len(model.phones), model.streams) == (16000, 0.01, 40, True)
    assert model.phones[:2] == ("<blank>", "AA") and model.ipa[1] == "ɑ"
    assert 0 < model.row_s < model.delay_s < 1
    assert model.name in repr(model) and model.license
    assert "trained_on" in model.provenance


def test_installed_files_are_those_of_the_package(model):
    if not DATA.exists():
        pytest.skip("built against an installed library")
    assert linnet.load(DATA / "en" / "default.safetensors").fingerprint == model.fingerprint
    assert model.decoder(lm="phones.lm").kind == "beam"


def test_languages(model):
    assert model.language == "en"
    with pytest.raises(linnet.InvalidError, match="there is no language 'tlh'"):
        linnet.set_language("tlh")
    linnet.set_language("de")
    try:
        with pytest.raises(linnet.Error, match="lexicon"):
            model.decoder(words=True)
    finally:
        linnet.set_language(None)
    assert model.decoder(words=True).kind == "words"


def test_from_bytes(model, file):
    other = linnet.load(MODEL.read_bytes())
    assert other.fingerprint == model.fingerprint
    assert other.transcribe(file).text == model.transcribe(file).text
    with pytest.raises(linnet.FormatError):
        linnet.load(MODEL.read_bytes()[:1000])


def test_eight_bits(model, file, tmp_path):
    half, again = tmp_path / "half.safetensors", tmp_path / "again.safetensors"
    program("average", "--half", MODEL, "-o", half)
    program("quantise", half, "-o", again)
    assert again.read_bytes() == MODEL.read_bytes()
    rows = [linnet.load(path, precision=p).posteriors(file) for path, p in ((MODEL, "auto"), (MODEL, "int8"), (half, "int8"), (half, "auto"))]
    assert all((rows[0] == other).all() for other in rows[1:3])
    assert (rows[0] != rows[3]).any()  # which is fp32
    assert model.transcribe(file).text + "\n" == program("transcribe", "-q", "--precision", "int8", file)


def test_with_the_room(file):
    model = linnet.load(MODEL, dereverb=False)
    assert model.transcribe(file).text + "\n" == program("transcribe", "-q", "--no-dereverb", file)
    assert pickle.loads(pickle.dumps(model)).transcribe(file).text == model.transcribe(file).text


def test_pickles_load_once(model):
    text = pickle.dumps(model)
    assert len(text) < 200
    one, two = pickle.loads(text), pickle.loads(text)
    assert one is two and one.fingerprint == model.fingerprint
    decoder = one.decoder(words=True, lm=False, phrases={"hello": 3})
    assert pickle.loads(pickle.dumps(decoder)) is pickle.loads(pickle.dumps(decoder))
    assert pickle.loads(pickle.dumps(decoder)).vocabulary == decoder.vocabulary > 1000


def test_decoders(model):
    assert model.decoder().kind == "greedy" and model.decoder().vocabulary == 0
    assert model.decoder(beam=8).kind == "beam"
    assert model.decoder(phrases={"HH AH L OW": 4}).kind == "beam"
    with pytest.raises(linnet.ReadError, match="missing.lm"):
        model.decoder(lm="missing.lm")
    with pytest.raises(linnet.InvalidError):
        model.decoder(beam=-1)


def test_keywords(model, speech):
    found = model.transcribe(speech[0], decoder=model.decoder(keywords=["a=0.05", "zebra crossing"])).keywords
    assert found and all(k.text == "a" and 0.05 <= k.confidence <= 1 and k.start_s < k.end_s for k in found)
    for wrong in ("a", [None], [b"a"]):
        with pytest.raises(TypeError):
            model.decoder(keywords=wrong)
    with pytest.raises(linnet.InvalidError, match="threshold"):
        model.decoder(keywords=["a=2"])


def test_grammar(model, speech, tmp_path):
    heard = model.transcribe(speech[0], words=True).text
    (tmp_path / "commands.txt").write_text(f"{heard}\nnothing else\n")
    for grammar in ([heard, "nothing else"], tmp_path / "commands.txt"):
        decoder = model.decoder(grammar=grammar, grammar_confidence=0.05)
        assert decoder.kind == "words" and model.transcribe(speech[0], decoder=decoder).text == heard
    assert model.transcribe(speech[0], decoder=model.decoder(grammar=["nothing else"])).text == ""
    with pytest.raises(linnet.FormatError, match="is missing"):
        model.decoder(grammar=["(a"])
    for empty in ("", []):
        with pytest.raises(linnet.FormatError, match="the grammar has no phrase"):
            model.decoder(grammar=empty)
    for wrong in ({"grammar": b"turn on"}, {"grammar": [b"turn on"]}, {"phrases": ["turn on"]}):
        with pytest.raises(TypeError, match="such as"):
            model.decoder(**wrong)


def test_errors_are_exceptions(tmp_path):
    with pytest.raises(linnet.ReadError, match="missing.safetensors") as error:
        linnet.load(tmp_path / "missing.safetensors")
    assert isinstance(error.value, OSError) and isinstance(error.value, linnet.Error)
    with pytest.raises(linnet.FormatError) as error:
        linnet.load(__file__)
    assert isinstance(error.value, ValueError)
    with pytest.raises(linnet.InvalidError, match="abacus"):
        linnet.load(device="abacus")
    with pytest.raises(ValueError, match="fp64"):
        linnet.load(precision="fp64")
    with pytest.raises(ValueError, match="null"):
        linnet.load("a\0b")
    with pytest.raises(linnet.InvalidError, match="empty"):
        linnet.load("")


def test_warnings_are_logged(model, tmp_path, caplog):
    lexicon = tmp_path / "lexicon"
    lexicon.write_text("hello HH AH L OW\nthis line has no phones of the model\n")
    assert model.decoder(words=True, lm=False, lexicon=lexicon).vocabulary == 1
    assert [r.name for r in caplog.records] == ["linnet"] and os.fspath(lexicon) in caplog.text


def test_a_handler_of_warnings_can_use_the_model(model, speech, tmp_path, monkeypatch):
    (tmp_path / "words").write_text("hello HH AH L OW\nodd this line has no phones of the model\n")
    texts, log = [], logging.getLogger("linnet")
    monkeypatch.setattr(log, "handle", lambda _: texts.append(model.transcribe(speech[0], words=True).text))
    call = threading.Thread(target=lambda: model.align(speech[0], "hello", add_lexicon=tmp_path / "words"), daemon=True)
    call.start()
    call.join(60)
    assert texts and texts[0] and not call.is_alive()


def test_added_words(model, tmp_path):
    lexicon, names = tmp_path / "lexicon", tmp_path / "names.txt"
    lexicon.write_text("hello HH AH L OW\n")
    names.write_text("zebra Z IY B R AH\nKowalczyk\n")
    assert model.decoder(words=True, lm=False, lexicon=lexicon, add_lexicon=names).vocabulary == 3
    with pytest.raises(linnet.ReadError, match="missing.txt"):
        model.decoder(words=True, lm=False, lexicon=lexicon, add_lexicon=tmp_path / "missing.txt")
    with pytest.raises(linnet.ReadError, match="missing.g2p"): # for Kowalczyk
        model.decoder(words=True, lm=False, lexicon=lexicon, add_lexicon=names, g2p=tmp_path / "missing.g2p")


def test_combine(model, speech):
    offline = linnet.load("offline")
    decoder = offline.decoder(n_best=4, combine=model, combine_weight=0.3)
    plain, both = (offline.transcribe(speech[0], decoder=d) for d in (offline.decoder(n_best=4), decoder))
    assert both.phones and both.acoustic != plain.acoustic
    with pytest.raises(linnet.InvalidError, match="combine_weight is 2"):
        offline.decoder(combine=model, combine_weight=2)


def test_best(model, speech):
    offline = linnet.load("offline")
    best, named, plain = (offline.transcribe(speech[0], decoder=offline.decoder(words=True, **how))
                          for how in ({"best": True}, {"combine": model, "rescore": "words"}, {}))
    assert best.words == named.words and best.acoustic == named.acoustic != plain.acoustic


def test_second_pass(model, tmp_path):
    with pytest.raises(linnet.ReadError, match="missing.safetensors"):
        model.decoder(words=True, rescore=tmp_path / "missing.safetensors", rescore_n=20, rescore_weight=0.3)
    with pytest.raises(linnet.InvalidError, match="rescore_n is 1"):
        model.decoder(words=True, rescore_n=1)
