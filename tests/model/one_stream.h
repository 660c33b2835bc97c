/* one_stream.h - a stream of its own, a batch of one, that takes any number of frames at once: for tests. */
#ifndef LIN_TESTS_ONE_STREAM_H
#define LIN_TESTS_ONE_STREAM_H

#include <string.h>

#include "model/streams.h"
#include "tests/support.h"

static inline lin_streams *one_stream(const lin_encoder *encoder, int threads, int search)
{
    const lin_streams_options o = {.capacity = 1, .search = search, .exact = 1, .threads = threads};
    lin_streams *s;
    OK(lin_streams_create(encoder, &o, &s, &err));
    return s;
}

/* Gives frames [n, bins] to the stream, in as many ticks as it needs; last: and its end. logp [rows, outputs]; returns the rows.
 */
static inline int one_stream_feed(lin_streams *s, int bins, int outputs, const float *frames, int n, int last, float *logp)
{
    int rows = 0, done = 0, ended = !last;
    while (done < n || !ended) {
        lin_tick_results results;
        const int count = n - done < lin_streams_longest(s) ? n - done : lin_streams_longest(s);
        const unsigned char ends = last && done + count == n;
        const lin_tick tick = {
            .n = 1, .slots = (const int[]){0}, .counts = &count, .last = &ends, .input = frames + (size_t)done * (size_t)bins};
        OK(lin_streams_tick(s, &tick, &results, &err));
        const int more = results.offsets[1];
        if (more) memcpy(logp + (size_t)rows * (size_t)outputs, results.logp, (size_t)more * (size_t)outputs * sizeof *logp);
        rows += more;
        done += count;
        ended |= ends;
    }
    return rows;
}

#endif
