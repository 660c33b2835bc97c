"""The examples of docs/python.md and of README.md run, in the order of the page."""

import re
import shutil
from pathlib import Path

import pytest
from conftest import read

TOP = Path(__file__).parents[3]


@pytest.mark.parametrize("page", ["docs/python.md", "README.md", "bindings/python/README.md"])
def test_examples(page, sounds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(sounds("talk", seconds=4), "talk.wav")
    shutil.copy("talk.wav", "speech.wav")
    Path("names.txt").write_text("KATHAROPOULOS\n", encoding="utf-8")
    samples, rate = read("talk.wav")
    assert rate == 16000
    names = {"microphone": [samples[i : i + 1600] for i in range(0, len(samples), 1600)]}
    blocks = re.findall(r"^```python\n(.*?)^```", (TOP / page).read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), names)
