// The ring: against an obviously correct queue, at its limits, and with a thread at each end.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "frontend/microphone.h"
#include "tests/frontend/support.h"

static lin_ring *make(size_t frames, int width)
{
    lin_ring *ring;
    OK(lin_ring_create(frames, width, &ring, &err));
    return ring;
}

START_TEST(capacity_is_the_next_power_of_two)
{
    static const size_t asked[] = {1, 2, 3, 4, 5, 1000, 1024, 1025, 480000}, given[] = {1, 2, 4, 4, 8, 1024, 1024, 2048, 524288};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        lin_ring *ring = make(asked[i], 1);
        float *sound = calloc(given[i] + 1, sizeof *sound);
        ck_assert_uint_eq(lin_ring_readable(ring), 0);
        ck_assert_uint_eq(lin_ring_write(ring, sound, given[i] + 1), given[i]);
        ck_assert_uint_eq(lin_ring_dropped(ring), 1);
        free(sound);
        lin_free(ring);
    }
}
END_TEST

START_TEST(misuse)
{
    lin_error why = {0};
    lin_ring *ring = (void *)&why;
    FAILS(lin_ring_create(0, 1, &ring, &err), LIN_INVALID, "0 frames");
    ck_assert_ptr_null(ring);
    FAILS(lin_ring_create(10, 0, &ring, &err), LIN_INVALID, "0 channels");
    FAILS(lin_ring_create(10, -1, &ring, &err), LIN_INVALID, "-1 channels");
    FAILS(lin_ring_create(SIZE_MAX, 1, &ring, &err), LIN_INVALID, "2^30");
    FAILS(lin_ring_create((size_t)1 << 20, 2000, &ring, &err), LIN_INVALID, "2^30");
}
END_TEST

// An obviously correct queue: every frame ever written, in order. A sample encodes its frame and channel.
START_TEST(behaves_like_a_queue)
{
    static const int widths[] = {1, 2, 3, 64};
    enum { MOST = 41 };
    static float x[MOST * 64], want[MOST * 64];
    for (int w = 0; w < 4; w++) {
        const int C = widths[w];
        const uint64_t key = (uint64_t)w;
        lin_ring *ring = make(32, C);
        uint64_t in = 0, out = 0, dropped = 0; // frames
        for (uint64_t i = 0; i < 20000; i++) {
            const size_t n = lin_random_below(key, 2 * i, MOST + 1), there = (size_t)(in - out);
            const int kind = (int)lin_random_below(key, 2 * i + 1, 5);
            if (kind < 2) {
                for (size_t k = 0; k < n * (size_t)C; k++) x[k] = (float)((in * (uint64_t)C + k) % 16000000);
                const size_t fits = n < 32 - there ? n : 32 - there;
                test_require(lin_ring_write(ring, x, n) == fits, "step %d: not %zu of %zu written", (int)i, fits, n);
                in += fits;
                dropped += n - fits;
            } else {
                const size_t gives = n < there ? n : there;
                float *y = test_buffer(n * (size_t)C, sizeof *y);
                for (size_t k = 0; k < gives * (size_t)C; k++) want[k] = (float)((out * (uint64_t)C + k) % 16000000);
                const size_t got = lin_ring_read(ring, y, n);
                test_require(got == gives, "step %d: %zu of %zu read, %zu were there", (int)i, got, n, there);
                test_same_f32("read", y, want, gives * (size_t)C);
                test_guards(y, "read");
                test_buffer_free(y);
                out += gives;
            }
            test_require(lin_ring_readable(ring) == in - out, "step %d: count", (int)i);
            test_require(lin_ring_written(ring) == in && lin_ring_taken(ring) == out && lin_ring_dropped(ring) == dropped,
                         "step %d: totals", (int)i);
        }
        ck_assert_uint_gt(dropped, 100);
        lin_free(ring);
    }
}
END_TEST

/* ---- two threads ----------------------------------------------------------------------------------------------------------- */

enum { TOTAL = 2000000, WIDTH = 2, ROOM = 512 };

// For the producer a lower bound: the consumer only increases it.
static size_t room(const lin_ring *ring) { return ROOM - lin_ring_readable(ring); }

typedef struct sender {
    lin_ring *ring;
    int patient; // waits for room, else drops what does not fit
    atomic_int done;
} sender;

// Frame i is (i, -i): a torn, repeated, lost or reordered frame is detected. Both are exact below 2^24.
static void *send(void *context)
{
    sender *s = context;
    float block[257 * WIDTH];
    int heard = 0;
    for (uint64_t i = 0, sent = 0; sent < TOTAL; i++) {
        size_t n = 1 + lin_random_below(5, i, 256);
        if (n > TOTAL - sent) n = (size_t)(TOTAL - sent);
        for (size_t k = 0; k < n; k++) {
            block[k * WIDTH] = (float)(sent + k);
            block[k * WIDTH + 1] = -(float)(sent + k);
        }
        if (s->patient) {
            while (room(s->ring) < n) sched_yield();
            // Room that the producer has read cannot shrink.
            if (lin_ring_write(s->ring, block, n) != n) break;
        } else {
            // For any scheduling of the threads, some of the second half is read.
            while (sent >= TOTAL / 2 && !heard && room(s->ring) == 0) sched_yield();
            heard |= sent >= TOTAL / 2;
            lin_ring_write(s->ring, block, n);
            if (i % 64 == 0) sched_yield();
        }
        sent += n;
    }
    atomic_store(&s->done, 1);
    return NULL;
}

static void with_two_threads(int patient)
{
    sender s = {.ring = make(ROOM, WIDTH), .patient = patient};
    pthread_t thread;
    static float block[300 * WIDTH];
    double last = -1;
    uint64_t got = 0, gaps = 0;
    ck_assert_int_eq(pthread_create(&thread, NULL, send, &s), 0);
    while (!patient && lin_ring_dropped(s.ring) == 0) sched_yield(); // and some of the first is dropped
    for (uint64_t i = 0;; i++) {
        // Checked before reading: frames written before the end are read after it.
        const int done = atomic_load(&s.done);
        // The count is not always queried first: reading alone must ensure that the frames are visible with their number.
        const size_t promised = i % 4 == 0 ? lin_ring_readable(s.ring) : 0, most = 1 + lin_random_below(6, i, 300);
        const size_t n = lin_ring_read(s.ring, block, most);
        test_require(n <= most && promised <= 512 && (n == most || n >= promised), "%zu were promised, %zu given", promised, n);
        for (size_t k = 0; k < n; k++) {
            const double now = (double)block[k * WIDTH];
            test_require((double)block[k * WIDTH + 1] == -now, "frame %g is torn", now);
            test_require(now > last && (!patient || now == last + 1), "frame %g after %g", now, last);
            gaps += now != last + 1;
            last = now;
        }
        got += n;
        if (n == 0 && done) break;
        if (n == 0 || (!patient && i % 256 == 0)) sched_yield();
    }
    pthread_join(thread, NULL);
    ck_assert_uint_eq(got, lin_ring_taken(s.ring));
    ck_assert_uint_eq(got, lin_ring_written(s.ring));
    ck_assert_uint_eq(got + lin_ring_dropped(s.ring), TOTAL);
    if (patient) {
        ck_assert_uint_eq(lin_ring_dropped(s.ring), 0);
        ck_assert_uint_eq(got, TOTAL);
    } else {
        ck_assert_msg(gaps > 0 && got > 512, "%llu frames, %llu gaps: the ring never ran over", (unsigned long long)got,
                      (unsigned long long)gaps);
    }
    lin_free(s.ring);
}

START_TEST(nothing_is_lost_between_threads) { with_two_threads(1); }
END_TEST

START_TEST(what_is_lost_between_threads_is_counted) { with_two_threads(0); }
END_TEST

START_TEST(every_allocation_may_fail)
{
    lin_error why = {0};
    lin_ring *ring;
    FAIL_EVERY_ALLOCATION_OF(ring, lin_ring_create(100, 2, &ring, &why), lin_free(ring));
}
END_TEST

TEST_MAIN("frontend/ring", TEST(capacity_is_the_next_power_of_two), TEST(misuse), TEST(behaves_like_a_queue),
          TEST(nothing_is_lost_between_threads), TEST(what_is_lost_between_threads_is_counted), TEST(every_allocation_may_fail))
