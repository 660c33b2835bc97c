"""The extension module linnet._linnet: linnet.h, as cffi compiles it.

In linnet's source tree `make` builds the library, which becomes a part of the module. Elsewhere, or with LINNET_INSTALLED=1 in the
environment, the module is linked with the installed liblinnet.so that pkg-config finds.
"""

import os
import re
import shlex
import subprocess
from pathlib import Path

import cffi

TOP = Path(__file__).resolve().parent.parent.parent
IN_SOURCE_TREE = (TOP / "linnet" / "library.mk").exists() and not os.environ.get("LINNET_INSTALLED")


def last_line(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1]


def pkg_config(*arguments):
    return last_line("pkg-config", *arguments, "linnet")


def header():
    return TOP / "linnet" / "linnet.h" if IN_SOURCE_TREE else Path(pkg_config("--variable=includedir")) / "linnet.h"


def version():
    return re.search(r'^#define LINNET_VERSION "(.*)"', header().read_text(), re.MULTILINE)[1]


def declarations():
    """What linnet.h declares, without the preprocessor's lines, and the callbacks that Python implements."""
    text = header().read_text()
    text = re.sub(r"^#ifdef __cplusplus\n.*?^#endif\n", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("LINNET_API ", "")
    return text + """
        extern "Python" void linnet_py_warning(void *context, const char *text);
        extern "Python" int linnet_py_progress(void *context, double seconds, double duration);
    """


def build_library():
    """Runs make and returns its last line. pip hides output: on a terminal, the file that is compiled stands below pip's line."""
    try:
        terminal = open("/dev/tty", "w")
    except OSError:
        terminal = open(os.devnull, "w")
    command = ["make", "-C", str(TOP), "--no-print-directory", "python-library"]
    below = "\033D\033M\0337\033D\r\033[K{}\0338"  # scrolls if it must, writes on the next line, and returns to the place before
    with terminal, subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as make:
        for line in make.stdout:
            if line.startswith("  "):
                print(line, end="", flush=True)
                print(below.format("  compiling linnet:" + line.rstrip()[:60]), end="", file=terminal, flush=True)
        print(below.format(""), end="", file=terminal)
    if make.returncode:
        raise subprocess.CalledProcessError(make.returncode, command)
    return line


def how_to_link():
    """Arguments of cffi's set_source."""
    if IN_SOURCE_TREE:
        archive, *flags = shlex.split(build_library())
        return {"extra_objects": [archive], "depends": [archive], "extra_link_args": flags}
    library = pkg_config("--variable=libdir")
    return {"extra_link_args": shlex.split(pkg_config("--libs")), "runtime_library_dirs": [library]}


ffi = cffi.FFI()
ffi.cdef(declarations())
ffi.set_source("linnet._linnet", "#include <linnet.h>", include_dirs=[str(header().parent)], **how_to_link())
