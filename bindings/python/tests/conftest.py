"""Sounds and the program `linnet` of the source tree, whose output is what the package must give.

$LINNET is the program, $SOUND the tool that writes synthetic sounds (tests/app/sound.c): `make check-python` sets both. Tests of real
speech need the recordings of Debian's package pocketsphinx-testdata.
"""

import os
import subprocess
import wave
from pathlib import Path

import linnet
import numpy as np
import pytest

MODEL = Path(__file__).parents[3] / "share" / "linnet" / "en" / "default.safetensors"
SPEECH = Path("/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-0870.wav")


def program(*arguments):
    """What the program writes to standard output."""
    return subprocess.run([os.environ["LINNET"], *map(str, arguments)], check=True, stdout=subprocess.PIPE).stdout.decode()


@pytest.fixture(scope="session")
def sounds(tmp_path_factory):
    """A function that makes a WAV file: sounds("a", seconds=2, channels=2)"""
    folder = tmp_path_factory.mktemp("sounds")

    def make(name, **options):
        path = folder / f"{name}.wav"
        if not path.exists():
            subprocess.run([os.environ["SOUND"], path, *(f"{k}={v}" for k, v in options.items())], check=True)
        return path

    return make


@pytest.fixture(scope="session")
def model():
    return linnet.load()


@pytest.fixture(scope="session")
def file(sounds):
    """4 seconds at 16 kHz, one channel: speech if there is some, for what a model hears in synthetic sounds changes with the model"""
    path = sounds("speech", seconds=4)
    if SPEECH.exists():
        samples, rate = read(SPEECH)
        with wave.open(str(path), "wb") as w:
            w.setparams((1, 2, rate, 0, "NONE", ""))
            w.writeframes(samples[: 4 * rate].tobytes())
    return path


@pytest.fixture(scope="session")
def speech():
    """Real speech: path, samples, rate."""
    if not SPEECH.exists():
        pytest.skip("pocketsphinx-testdata is not installed")
    return SPEECH, *read(SPEECH)


def read(path):
    """int16 [n] or [n, channels], rate"""
    with wave.open(str(path)) as w:
        x = np.frombuffer(w.readframes(w.getnframes()), np.int16)
        return (x.reshape(-1, w.getnchannels()) if w.getnchannels() > 1 else x), w.getframerate()
