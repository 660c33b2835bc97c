"""Sound: arrays of samples and files, as the library takes them."""

from __future__ import annotations

import logging
import os
import tempfile
from types import TracebackType
from typing import Any, Callable, Optional, Protocol, Sequence, Union

import numpy as np
import numpy.typing as npt

from ._errors import Error, StoppedError, call
from ._linnet import ffi, lib
from ._options import Options, c_text


class HasArray(Protocol):
    """What numpy makes an array of, such as a tensor."""

    def __array__(self) -> npt.NDArray[Any]: ...


#: [n] or [n, channels]. A number alone, which numpy.typing.ArrayLike allows, is no sound.
Samples = Union[npt.NDArray[Any], HasArray, Sequence[float], Sequence[Sequence[float]]]
#: A file, the bytes of one, or samples [n] or [n, channels]: floats of full scale -1 to 1, or 16- or 32-bit integers.
Sound = Union[str, "os.PathLike[str]", bytes, bytearray, Samples]
#: Called now and then with the seconds that are processed and in all (None: unknown). What is true ends the call.
Progress = Callable[[float, Optional[float]], Any]

_SCALE = {np.dtype(np.int16): 1 / 32768, np.dtype(np.int32): 1 / 2147483648}


_LOUDEST = 1.5  # of floats that are clipped a little, as resampled sound is
_FAINTEST = 256  # of int32: less is rounding in silence
_told = False


def _check_scale(array: npt.NDArray[Any]) -> None:
    """Warns once in a process if the samples are most likely 16-bit integers that were only converted to floats or int32."""
    global _told
    if _told or array.size == 0:
        return
    most = max(float(array.max()), -float(array.min()))
    if array.dtype.kind == "f" and _LOUDEST < most < np.inf:
        what = "floats have a full scale of -1 to 1; divide 16-bit values by 32768, or give them as int16"
    elif array.dtype.kind == "i" and _FAINTEST <= most <= 32768 and (array & 255).any():  # no silence of a 24-bit converter
        what = "int32 has a full scale of 2147483648; give 16-bit values as int16"
    else:
        return
    _told = True
    logging.getLogger("linnet").warning("samples reach %g: %s", most, what)


def samples_of(sound: Samples) -> npt.NDArray[np.float32]:
    """float32 [n, channels] of what the caller has. TypeError, ValueError if it is no sound."""
    array = np.asarray(sound)
    if array.ndim == 0:
        raise TypeError(f"a sound is a path, the bytes of a file or an array [n] or [n, channels], not {type(sound).__name__}")
    if array.ndim == 1:
        array = array[:, np.newaxis]
    if array.ndim != 2:
        raise ValueError(f"sound is an array [n] or [n, channels], not one of {array.ndim} dimensions")
    if array.shape[1] > 64 >= array.shape[0]:
        raise ValueError(f"sound is [n, channels]; this array is [{array.shape[0]}, {array.shape[1]}]: give its transpose")
    scale = _SCALE.get(array.dtype.newbyteorder("="))
    if scale is None and array.dtype.kind != "f":
        raise TypeError(f"samples are floats, int16 or int32, not {array.dtype}")
    if array.dtype.newbyteorder("=") != np.int16:
        _check_scale(array)
    if scale is not None:
        array = array * np.float32(scale)
    with np.errstate(over="ignore"):  # the library refuses what is infinite
        return np.ascontiguousarray(array, np.float32)


def whole_rate(rate: float) -> int:
    """Samples per second. ValueError if it is not a whole number."""
    if rate != int(rate) or rate < 1:
        raise ValueError(f"rate is {rate}: a whole number of samples per second, 4000 to 192000")
    return int(rate)


def checked_channel(channel: int | None) -> int | None:
    """-1 would be the mean, and not the last one."""
    if channel is not None and channel < 0:
        raise ValueError(f"channel is {channel}: 0, 1, ..., or None for the mean of all")
    return channel


class _Watch:
    """The progress function of one call. Also lets Ctrl-C through: Python looks for it when the library calls back."""

    def __init__(self, function: Progress | None) -> None:
        self.function = function
        self.error: BaseException | None = None


def _keep_error(kind: type[BaseException], error: BaseException, trace: TracebackType) -> None:
    """SoundCall.run raises it again. Not an except clause: Ctrl-C can arrive before a try is reached."""
    ffi.from_handle(trace.tb_frame.f_locals["context"]).error = error


@ffi.def_extern(error=1, onerror=_keep_error)  # type: ignore[untyped-decorator]
def linnet_py_progress(context: Any, seconds: float, duration: float) -> int:
    function = ffi.from_handle(context).function
    return bool(function and function(seconds, None if duration < 0 else duration))


class SoundCall:
    """A linnet_sound, and the calls that read it."""

    def __init__(self, sound: Sound, rate: float | None, channel: int | None, start_s: float, end_s: float | None, threads: int,
                 progress: Progress | None) -> None:
        self.options = o = Options("sound", channel=checked_channel(channel), start_s=start_s, end_s=end_s, threads=threads)
        self.watch = _Watch(progress)
        o.c.progress = lib.linnet_py_progress
        o.c.context = o.keep(ffi.new_handle(self.watch))
        self.file = ""  # of bytes
        if isinstance(sound, bytearray):
            sound = bytes(sound)
        if isinstance(sound, bytes):  # the library reads files
            if rate is not None:
                raise ValueError("bytes are those of a file, which knows its rate; np.frombuffer(b, np.int16) gives samples")
            file = o.keep(tempfile.NamedTemporaryFile(prefix="sound-"))
            file.write(sound)
            file.flush()
            sound = self.file = file.name
        if isinstance(sound, (str, os.PathLike)):
            if rate is not None:
                raise ValueError("a file knows its rate: rate is for arrays")
            o.c.path = o.keep(c_text(sound))
            return
        samples = samples_of(sound)
        if rate is None:
            raise ValueError("an array needs its rate, in samples per second")
        o.c.samples = o.keep(ffi.from_buffer("float[]", samples)) if len(samples) else o.keep(ffi.new("float[1]"))
        o.c.n_samples, o.c.channels = samples.shape
        o.c.rate_hz = whole_rate(rate)

    def run(self, function: Any, owner: Any, *arguments: Any) -> None:
        """function(owner, sound, *arguments, error)"""
        try:
            call(function, owner, self.options.c, *arguments)
        except StoppedError:
            if self.watch.error is not None:
                raise self.watch.error from None
            raise
        except Error as error:
            if not self.file:
                raise
            raise type(error)(str(error).replace(self.file, "the sound in memory")) from None
