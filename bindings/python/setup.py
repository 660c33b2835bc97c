"""Builds the package; see binding.py for the extension module. From a source tree the model and lexicons come with it."""

import shutil
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).parent))
import binding  # noqa: E402


class BuildWithData(build_py):
    """The data that `make install` puts into share/linnet, without the page of the server."""

    def run(self):
        super().run()
        if not binding.IN_SOURCE_TREE or self.editable_mode:
            return  # the library finds its own
        data = Path(self.build_lib) / "linnet" / "data"
        shutil.copytree(binding.TOP / "share" / "linnet", data, ignore=shutil.ignore_patterns("web"), dirs_exist_ok=True)
        for file in ("LICENSE", "NOTICE"):
            shutil.copyfile(binding.TOP / file, data / file)


setup(
    version=binding.version(),
    packages=["linnet"],
    package_data={"linnet": ["py.typed", "*.pyi"]},
    cffi_modules=["binding.py:ffi"],
    cmdclass={"build_py": BuildWithData},
    options={"bdist_wheel": {"py_limited_api": "cp39"}},
)
