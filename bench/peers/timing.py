# What both peers' scripts use.
import time


def clock(run, repeats, now=time.perf_counter):
    """Seconds of each of `repeats` calls, after two that do not count. now: time.thread_time on a machine with other load."""
    run(), run()
    times = []
    for _ in range(repeats):
        start = now()
        run()
        times.append(now() - start)
    return times
