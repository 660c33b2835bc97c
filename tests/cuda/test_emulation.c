// [cuda] The emulation of CUDA that the backend's tests use: faults are detected. That correct kernels give correct results is
// shown by those of the backend.
#include <signal.h>
#include <sys/wait.h>

#include "tests/cuda/planted.h"
#include "tests/emulation/emulation.h"
#include "tests/support.h"

enum { ASCENDING = 1, SHUFFLED = 3 };

/* ---- faults that must be detected: a child process that ends with a message ------------------------------------------------ */

static char said[65536];

// Runs planted(fault) in a separate process. Returns whether it failed; `said` receives its output.
static int dies(void (*planted)(planted_fault), planted_fault fault)
{
    int ends[2], status = 0;
    size_t n = 0;
    ck_assert(pipe(ends) == 0);
    fflush(stdout);
    const pid_t child = fork();
    ck_assert(child >= 0);
    if (child == 0) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        close(ends[0]);
        planted(fault);
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], said + n, sizeof said - 1 - n)) > 0;) n += (size_t)got;
    said[n] = 0;
    close(ends[0]);
    ck_assert(waitpid(child, &status, 0) == child);
    return !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void must_say(const char *what)
{
#if TEST_ASAN
    if (strstr(said, "ERROR: AddressSanitizer")) return;
#endif
    ck_assert_msg(strstr(said, what) != NULL, "expected \"%s\" in: %.2000s", what, said);
}

/* ---- shared memory and barriers -------------------------------------------------------------------------------------------- */

enum { N = 200, BLOCK = 64 };

// Number of correct elements of N.
static int reversed(planted_fault fault, int order)
{
    float x[N], y[N];
    int right = 0;
    test_fill_f32(x, N, 1, -1, 1);
    emulation_set(EMULATION_ORDER, order);
    ck_assert_int_eq(planted_reverse(y, x, N, BLOCK, fault), 0);
    for (int i = 0; i < N; i++) {
        const int from = i / BLOCK * BLOCK + BLOCK - 1 - i % BLOCK;
        right += y[i] == (from < N ? x[from] : 0);
    }
    return right;
}

START_TEST(test_barrier)
{
    for (int order = 0; order <= SHUFFLED; order++) ck_assert_int_eq(reversed(PLANTED_NOTHING, order), N);
}
END_TEST

START_TEST(test_missing_barrier)
{
    for (int order = 0; order <= SHUFFLED; order++) ck_assert_int_lt(reversed(PLANTED_NO_BARRIER, order), N);
}
END_TEST

START_TEST(test_unwritten_shared) { ck_assert_int_lt(reversed(PLANTED_UNWRITTEN_SHARED, ASCENDING), N); }
END_TEST

static void run_reverse(planted_fault fault)
{
    float x[N], y[N];
    test_fill_f32(x, N, 1, -1, 1);
    planted_reverse(y, x, N, BLOCK, fault);
}

static const struct {
    planted_fault fault;
    const char *message;
} writes[] = {
    {PLANTED_SHARED_PAST, "reverse, block ("},
    {PLANTED_SHARED_PAST, "shared memory was written 0 bytes past its 256"},
    {PLANTED_SHARED_BEFORE, "shared memory was written 4 bytes before its beginning"},
    {PLANTED_GLOBAL_PAST, "a block of 800 bytes was written 0 bytes past its end"},
    {PLANTED_GLOBAL_BEFORE, "a block of 800 bytes was written 4 bytes before its beginning"},
    {PLANTED_HOST_POINTER, "reverse: its pointer argument 1, counted from 0 and pointers alone, is not memory of the device"},
};

START_TEST(test_stray_write)
{
    ck_assert(dies(run_reverse, writes[_i].fault));
    must_say(writes[_i].message);
    ck_assert(!dies(run_reverse, PLANTED_NOTHING));
}
END_TEST

START_TEST(test_divergent_barrier)
{
    ck_assert(dies(run_reverse, PLANTED_DIVERGENT_BARRIER));
    must_say("deadlock: a barrier that some threads never reach");
    must_say("threads 0-15 wait at tests/cuda/planted.cu:");
    must_say(", a shuffle, mask ffffffff");
    must_say("threads 48-63 wait at tests/cuda/planted.cu:");
}
END_TEST

START_TEST(test_other_barrier)
{
    ck_assert(dies(run_reverse, PLANTED_OTHER_BARRIER));
    must_say("divergent barrier: this thread waits at tests/cuda/planted.cu:");
}
END_TEST

START_TEST(test_early_end)
{
    int y[96];
    ck_assert_int_eq(planted_early_end(y, 96), 0);
    for (int i = 0; i < 96; i++) ck_assert_int_eq(y[i], i % 2 == 0);
}
END_TEST

/* ---- warps ----------------------------------------------------------------------------------------------------------------- */

static int sums(planted_fault fault, int order)
{
    enum { BLOCKS = 5, THREADS = 160 };
    float x[BLOCKS * THREADS], y[BLOCKS];
    int right = 0;
    for (int i = 0; i < BLOCKS * THREADS; i++) x[i] = (float)(i % 97); // sums are exact
    emulation_set(EMULATION_ORDER, order);
    ck_assert_int_eq(planted_sum(y, x, BLOCKS, THREADS, fault), 0);
    for (int b = 0; b < BLOCKS; b++) {
        float want = 0;
        for (int i = 0; i < THREADS; i++) want += x[b * THREADS + i];
        right += y[b] == want;
    }
    return right == BLOCKS;
}

START_TEST(test_sum)
{
    for (int order = 0; order <= SHUFFLED; order++) {
        ck_assert(sums(PLANTED_NOTHING, order));
        ck_assert(!sums(PLANTED_NO_WARP_BARRIER, order));
    }
    // Missed only in the one order in which the reading warp runs last.
    ck_assert(!sums(PLANTED_NO_BARRIER, ASCENDING));
    ck_assert(!sums(PLANTED_NO_BARRIER, SHUFFLED));
}
END_TEST

static void expect_warp(int lanes)
{
    uint32_t y[32 * 10];
    ck_assert_int_eq(planted_warp(y, lanes, PLANTED_NOTHING), 0);
    const int whole = lanes == 32;
    for (int l = 0; l < lanes; l++) {
        const uint32_t *g = &y[10 * l];
        const int far = l ^ 9, near = far / 8 == l / 8 ? far : l; // 9 leaves the segment of eight lanes
        uint32_t ballot = 0;
        for (int i = 0; i < lanes; i += 3) ballot |= 1u << i;
        const uint32_t want[10] = {100 + 5 % (uint32_t)lanes,
                                   100 + (uint32_t)(l < 3 ? l : l - 3),
                                   100 + (uint32_t)(l + 3 < lanes ? l + 3 : l),
                                   100 + (uint32_t)(whole ? l ^ 17 : l),
                                   100 + (uint32_t)(whole ? near : l),
                                   1 + 2 * (uint32_t)(l % 4 ? l - 1 : l),
                                   ballot,
                                   (uint32_t)(10 * (lanes > 1) + !whole),
                                   (uint32_t)(lanes - 4),
                                   100 + (uint32_t)(l < 16 ? 0 : 16)};
        for (int i = 0; i < 10; i++)
            test_require(g[i] == want[i], "%d lanes, lane %d, item %d: %u, not %u", lanes, l, i, g[i], want[i]);
    }
}

START_TEST(test_warp)
{
    for (int order = ASCENDING; order <= SHUFFLED; order++) {
        emulation_set(EMULATION_ORDER, order);
        expect_warp(32);
        expect_warp(23);
        expect_warp(1);
    }
}
END_TEST

static void run_warp(planted_fault fault)
{
    uint32_t y[32 * 10];
    planted_warp(y, 32, fault);
}

START_TEST(test_wrong_shuffles)
{
    ck_assert(dies(run_warp, PLANTED_FOREIGN_LANE));
    must_say("shuffles from lane 7, which does not take part (lanes 0000000f)");
    ck_assert(dies(run_warp, PLANTED_OWN_LANE_MISSING));
    must_say("lane 0 is not in its own mask fffffffe");
    ck_assert(dies(run_warp, PLANTED_DIFFERENT_SHUFFLES));
    must_say("waits in a shuffle at tests/cuda/planted.cu:");
    ck_assert(!dies(run_warp, PLANTED_NOTHING));
}
END_TEST

static float tf32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x1000u) & 0xffffe000u;
    memcpy(&x, &bits, sizeof x);
    return x;
}

START_TEST(test_product)
{
    float a[128], b[64], c[128], got[128];
    for (uint64_t round = 0; round < 20; round++) {
        test_fill_f32(a, 128, 3 * round, -2, 2);
        test_fill_f32(b, 64, 3 * round + 1, -2, 2);
        test_fill_f32(c, 128, 3 * round + 2, -2, 2);
        memcpy(got, c, sizeof c);
        ck_assert_int_eq(planted_product(got, a, b, PLANTED_NOTHING), 0);
        for (int i = 0; i < 128; i++) {
            double want = (double)c[i];
            for (int k = 0; k < 8; k++) want += (double)tf32(a[i / 8 * 8 + k]) * (double)tf32(b[k * 8 + i % 8]);
            test_require(fabs((double)got[i] - want) < 1e-5, "element %d: %g, not %g", i, (double)got[i], want);
        }
    }
}
END_TEST

static void run_product(planted_fault fault)
{
    float a[128], b[64], c[128] = {0};
    test_fill_f32(a, 128, 1, -2, 2);
    test_fill_f32(b, 64, 2, -2, 2);
    planted_product(c, a, b, fault);
}

START_TEST(test_wrong_products)
{
    ck_assert(dies(run_product, PLANTED_NOT_ROUNDED));
    must_say("operand a of a tf32 product was not rounded");
    ck_assert(dies(run_product, PLANTED_HALF_WARP_PRODUCT));
    must_say("takes all 32 lanes, here 0000ffff");
    ck_assert(!dies(run_product, PLANTED_NOTHING));
}
END_TEST

/* ---- asynchronous copies --------------------------------------------------------------------------------------------------- */

static int copied(int bytes, planted_fault fault)
{
    enum { COUNT = 512 };
    float x[COUNT], y[COUNT];
    int right = 0;
    test_fill_f32(x, COUNT, 4, -1, 1);
    ck_assert_int_eq(planted_copy(y, x, COUNT, bytes, fault), 0);
    for (int i = 0; i < COUNT; i++) right += y[i] == x[i];
    return right == COUNT;
}

START_TEST(test_copies)
{
    ck_assert(copied(4, PLANTED_NOTHING));
    ck_assert(copied(16, PLANTED_NOTHING));
    ck_assert(!copied(16, PLANTED_NO_COPY_WAIT));
    ck_assert(!copied(16, PLANTED_LATE_COPY_WAIT));
}
END_TEST

static void run_copy(planted_fault fault) { copied(16, fault); }

START_TEST(test_wrong_copies)
{
    ck_assert(dies(run_copy, PLANTED_UNALIGNED_COPY));
    must_say("a copy of 16 bytes that is not aligned to its size");
    ck_assert(dies(run_copy, PLANTED_HOST_COPY));
    must_say("not memory of the device");
}
END_TEST

/* ---- blocks, launches ------------------------------------------------------------------------------------------------------ */

static int blocks_right(planted_fault fault, int order)
{
    int y[20], right = 0;
    emulation_set(EMULATION_ORDER, order);
    ck_assert_int_eq(planted_blocks(y, 20, fault), 0);
    for (int i = 0; i < 20; i++) right += y[i] == i;
    return right == 20;
}

START_TEST(test_blocks)
{
    for (int order = 0; order <= SHUFFLED; order++) ck_assert(blocks_right(PLANTED_NOTHING, order));
    ck_assert(blocks_right(PLANTED_BLOCKS_IN_ORDER, ASCENDING));
    ck_assert(!blocks_right(PLANTED_BLOCKS_IN_ORDER, 2));
    ck_assert(!blocks_right(PLANTED_BLOCKS_IN_ORDER, SHUFFLED));
    // By default, one launch in three runs in each order.
    int wrong = 0;
    for (int i = 0; i < 3; i++) wrong += !blocks_right(PLANTED_BLOCKS_IN_ORDER, 0);
    ck_assert_int_ge(wrong, 2);
}
END_TEST

static int meeting_right(planted_fault fault, int order)
{
    enum { BLOCKS_MET = 7, STEPS = 5 };
    int y[BLOCKS_MET * STEPS], right = 1;
    emulation_set(EMULATION_ORDER, order);
    ck_assert_int_eq(planted_meet(y, BLOCKS_MET, 70, STEPS, fault), 0);
    for (int b = 0; b < BLOCKS_MET; b++)
        for (int s = 0, sum = 0; s < STEPS; s++) {
            sum += 100 * s + (b + 1) % BLOCKS_MET;
            right &= y[b * STEPS + s] == sum;
        }
    return right;
}

static void run_meeting(planted_fault fault) { meeting_right(fault, ASCENDING); }

START_TEST(test_blocks_together)
{
    enum { TOO_LARGE = 720, MULTIPROCESSORS = 8, EACH = 2 };
    int y[MULTIPROCESSORS * EACH + 1];
    ck_assert(dies(run_meeting, PLANTED_NO_SIGNAL));
    must_say("deadlock");
    must_say("lin_await");
    ck_assert(dies(run_meeting, PLANTED_APART));
    must_say("need not be resident together");
    for (int order = 0; order <= SHUFFLED; order++) {
        ck_assert(meeting_right(PLANTED_NOTHING, order));
        ck_assert(!meeting_right(PLANTED_NO_AWAIT, order));
    }
    ck_assert_int_eq(planted_meet(y, MULTIPROCESSORS * EACH, 1024, 1, PLANTED_NOTHING), 0);
    ck_assert_int_eq(planted_meet(y, MULTIPROCESSORS * EACH + 1, 1024, 1, PLANTED_NOTHING), TOO_LARGE);
}
END_TEST

enum { INVALID_VALUE = 1, NO_MEMORY = 2, INITIALIZATION = 3, INVALID_CONFIGURATION = 9, UNAVAILABLE = 46 };

START_TEST(test_launches)
{
    ck_assert_int_eq(planted_launch(1, 1, 1, 1024, 1, 1, 0, 0), 0);
    ck_assert_int_eq(planted_launch(1, 1, 1, 1025, 1, 1, 0, 0), INVALID_CONFIGURATION);
    ck_assert_int_eq(planted_launch(1, 1, 1, 32, 33, 1, 0, 0), INVALID_CONFIGURATION);
    ck_assert_int_eq(planted_launch(1, 1, 1, 1, 1, 65, 0, 0), INVALID_CONFIGURATION);
    ck_assert_int_eq(planted_launch(0, 1, 1, 32, 1, 1, 0, 0), INVALID_CONFIGURATION);
    ck_assert_int_eq(planted_launch(1, 0, 1, 32, 1, 1, 0, 0), INVALID_CONFIGURATION);
    ck_assert_int_eq(planted_launch(1, 1, 1, 0, 1, 1, 0, 0), INVALID_CONFIGURATION);
    ck_assert_int_eq(planted_launch(1, 65535, 1, 1, 1, 1, 0, 0), 0);
    ck_assert_int_eq(planted_launch(1, 65536, 1, 1, 1, 1, 0, 0), INVALID_CONFIGURATION);
    ck_assert_int_eq(planted_launch(1, 1, 65536, 1, 1, 1, 0, 0), INVALID_CONFIGURATION);
    ck_assert_int_eq(planted_launch(1, 1, 1, 32, 1, 1, 48 << 10, 0), 0);
    ck_assert_int_eq(planted_launch(1, 1, 1, 32, 1, 1, (48 << 10) + 1, 0), INVALID_VALUE);
    ck_assert_int_eq(planted_launch(1, 1, 1, 32, 1, 1, 100 << 10, 100 << 10), 0);
    ck_assert_int_eq(planted_launch(1, 1, 1, 32, 1, 1, 101 << 10, 100 << 10), INVALID_VALUE);
    ck_assert_int_eq(planted_launch(1, 1, 1, 32, 1, 1, 227 << 10, 227 << 10), 0);
    ck_assert_int_eq(planted_launch(1, 1, 1, 32, 1, 1, 0, 228 << 10), INVALID_VALUE);
}
END_TEST

static void run_host_touch(planted_fault fault) { planted_host_touch(fault != PLANTED_NOTHING); }

START_TEST(test_host_touch)
{
    ck_assert(dies(run_host_touch, PLANTED_NOTHING));
    must_say("the host touched memory of the device");
    ck_assert(dies(run_host_touch, PLANTED_HOST_POINTER));
    must_say("the host touched memory of the device");
}
END_TEST

/* ---- streams and graphs ---------------------------------------------------------------------------------------------------- */

START_TEST(test_graph)
{
    float x[100], y[100];
    test_fill_f32(x, 100, 5, -1, 1);
    for (int times = 0; times < 4; times++) {
        ck_assert_int_eq(planted_graph(y, x, 100, times), 0);
        for (int i = 0; i < 100; i++) ck_assert_float_eq_tol(y[i], x[i] + (float)times, 1e-6f);
    }
    ck_assert_int_eq(planted_graph_unjoined(), 904);
    ck_assert_int_eq(planted_graph_waits(), 901);
    ck_assert_uint_eq(emulation_count(EMULATION_OBJECTS), 0);
}
END_TEST

START_TEST(test_streams)
{
    int read_it, before, after;
    ck_assert_int_eq(planted_streams(1, &read_it), 0);
    ck_assert(read_it);
    ck_assert_int_eq(planted_streams(0, &read_it), 0);
    ck_assert_msg(!read_it, "a stream saw what another wrote without waiting for it");
    ck_assert_int_eq(planted_async_copy(&before, &after), 0);
    ck_assert(!before && after);
    emulation_set(EMULATION_EAGER, 1);
    ck_assert_int_eq(planted_async_copy(&before, &after), 0);
    ck_assert(before && after);
}
END_TEST

/* ---- faults on demand ------------------------------------------------------------------------------------------------------ */

START_TEST(test_fork)
{
    float x[N], y[N];
    int status;
    test_fill_f32(x, N, 1, -1, 1);
    emulation_reset();
    ck_assert_int_eq(planted_reverse(y, x, N, BLOCK, PLANTED_NOTHING), 0);
    const pid_t child = fork();
    ck_assert(child >= 0);
    if (child == 0) _exit(planted_reverse(y, x, N, BLOCK, PLANTED_NOTHING) == INITIALIZATION ? 0 : 1);
    ck_assert(waitpid(child, &status, 0) == child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a context survived a fork");
}
END_TEST

START_TEST(test_faults)
{
    float x[N], y[N];
    test_fill_f32(x, N, 1, -1, 1);
    // A stream and two blocks.
    for (int k = 1; k <= 3; k++) {
        emulation_reset();
        emulation_set(EMULATION_FAIL_ALLOCATION, k);
        ck_assert_int_eq(planted_reverse(y, x, N, BLOCK, PLANTED_NOTHING), NO_MEMORY);
        ck_assert_uint_eq(emulation_count(EMULATION_LIVE), 0);
    }
    emulation_reset();
    ck_assert_int_eq(planted_reverse(y, x, N, BLOCK, PLANTED_NOTHING), 0);
    ck_assert_uint_eq(emulation_count(EMULATION_ALLOCATIONS), 3);
    ck_assert_uint_eq(emulation_count(EMULATION_LAUNCHES), 1);
    emulation_set(EMULATION_MEMORY, 2 * N * (long)sizeof *x - 1);
    ck_assert_int_eq(planted_reverse(y, x, N, BLOCK, PLANTED_NOTHING), NO_MEMORY);
    emulation_set(EMULATION_MEMORY, 2 * N * (long)sizeof *x);
    ck_assert_int_eq(planted_reverse(y, x, N, BLOCK, PLANTED_NOTHING), 0);
    emulation_set(EMULATION_LOSE_AFTER, 2);
    ck_assert_int_eq(planted_reverse(y, x, N, BLOCK, PLANTED_NOTHING), 0);
    ck_assert_int_eq(planted_reverse(y, x, N, BLOCK, PLANTED_NOTHING), UNAVAILABLE);
    ck_assert_int_eq(planted_reverse(y, x, N, BLOCK, PLANTED_NOTHING), UNAVAILABLE);
    emulation_reset();
    ck_assert_int_eq(planted_reverse(y, x, N, BLOCK, PLANTED_NOTHING), 0);
    ck_assert_uint_eq(emulation_count(EMULATION_LIVE), 0);
    ck_assert_uint_eq(emulation_count(EMULATION_OBJECTS), 0);
    emulation_set(EMULATION_DRIVER, 12000);
    ck_assert_int_eq(planted_reverse(y, x, N, BLOCK, PLANTED_NOTHING), 35);
    emulation_reset();
    emulation_set(EMULATION_DEVICES, 0);
    ck_assert_int_eq(planted_reverse(y, x, N, BLOCK, PLANTED_NOTHING), 100);
    emulation_reset();
    emulation_set(EMULATION_CAPABILITY, 61);
    ck_assert_int_eq(planted_reverse(y, x, N, BLOCK, PLANTED_NOTHING), 209);
}
END_TEST

/* ---- cublasLt -------------------------------------------------------------------------------------------------------------- */

enum { BF16 = 32, REFUSED = 70000 };

START_TEST(test_matmul_refuses)
{
    float a[64], b[64], c[64], d[64];
    test_fill_f32(a, 64, 1, -1, 1);
    test_fill_f32(b, 64, 1, -1, 1);
    test_fill_f32(c, 64, 1, -1, 1);
    ck_assert_int_eq(planted_matmul(d, a, b, c, NULL, 8, 8, 8, 8, 8, 8, 1, 0, 0, 0), 0);
    ck_assert_int_eq(planted_matmul(d, a, b, c, NULL, 8, 8, 8, 8, 8, 8, 1, 0, 0, 1), REFUSED); // the search was given 256 bytes
    // a column longer than its distance
    ck_assert_int_eq(planted_matmul(d, a, b, c, NULL, 8, 7, 8, 7, 8, 8, 1, 0, 0, 0), REFUSED);
    ck_assert_int_eq(planted_matmul(d, a, b, c, NULL, 4, 4, 4, 4, 8, 8, 1, 0, BF16, 0), 150000);
    emulation_set(EMULATION_REFUSE_PRODUCTS, 1);
    ck_assert_int_eq(planted_matmul(d, a, b, c, NULL, 8, 8, 8, 8, 8, 8, 1, 0, 0, 0), 150000);
}
END_TEST

TEST_MAIN("emulation", TEST(test_barrier), TEST(test_missing_barrier), TEST(test_unwritten_shared),
          TESTS(test_stray_write, 0, sizeof writes / sizeof *writes), TEST(test_divergent_barrier), TEST(test_other_barrier),
          TEST(test_early_end), TEST(test_sum), TEST(test_warp), TEST(test_wrong_shuffles), TEST(test_product),
          TEST(test_wrong_products), TEST(test_copies), TEST(test_wrong_copies), TEST(test_blocks),
          TEST(test_blocks_together), TEST(test_launches), TEST(test_host_touch), TEST(test_graph), TEST(test_streams),
          TEST(test_faults), TEST(test_fork), TEST(test_matmul_refuses))
