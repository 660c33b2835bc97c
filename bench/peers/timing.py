# What both peers' scripts use.
import time


def clock(run, repeats):
    """Seconds of each of `repeats` calls, after two that do not count."""
    run(), run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return times
