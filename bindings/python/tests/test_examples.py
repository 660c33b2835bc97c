"""The examples, as a user runs them. Those of Ray and Spark need `make check-python-engines`."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import program

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name, *arguments, cwd):
    # Spark and Ray start workers by the name `python3`, or by this variable.
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run([sys.executable, EXAMPLES / f"{name}.py", *arguments], cwd=cwd, check=True, stdout=subprocess.PIPE, text=True,
                          env=environment)
    return done.stdout.splitlines()[-1]


def test_plot(file, tmp_path):
    pytest.importorskip("matplotlib")
    said = run("plot", file, "picture.png", "2", cwd=tmp_path)
    assert said.startswith("picture.png: ")
    picture = (tmp_path / "picture.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) > 20000


def test_plot_help(tmp_path):
    script = EXAMPLES / "plot.py"  # -S: without the packages that it draws with
    said = subprocess.run([sys.executable, "-S", script, "--help"], cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "spectrogram" in said and "seconds" in said


@pytest.mark.parametrize("engine", ["ray", "pyspark"])
def test_a_pile_of_files(engine, sounds, tmp_path):
    pytest.importorskip(engine)
    if engine == "pyspark" and not shutil.which("java"):
        pytest.skip("Spark needs Java")
    paths = [str(sounds(f"pile{i}", seconds=2, seed=i)) for i in range(6)]
    said = json.loads(run({"ray": "ray_files", "pyspark": "spark_files"}[engine], "out", *paths, "missing.wav", cwd=tmp_path))
    assert said == {"files": 7, "seconds": 12.0, "errors": 1}
    rows = {}
    for part in (tmp_path / "out").glob("*.json"):
        for line in part.read_text().splitlines():
            row = json.loads(line)
            rows[row["path"]] = row
    assert set(rows) == {*paths, "missing.wav"}
    assert "cannot open missing.wav" in rows["missing.wav"]["error"]
    for line in program("transcribe", "--quiet", "--words", "--no-readable", "-f", "json", *paths).splitlines():
        wanted = json.loads(line)
        path = next(p for p in paths if Path(p).stem == wanted["id"])
        got = json.loads(rows[path]["json"])
        assert {**got, "id": 0} == {**wanted, "id": 0} and got["id"] == path
