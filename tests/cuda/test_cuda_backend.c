// [cuda] The context of the CUDA backend: ordering, graphs, several GPUs and threads, and its messages and state after running
// out of memory; and, in emulation, after losing the device and where each allocation fails.
#include <pthread.h>

#include "base/memory.h"
#include "tests/cuda/device.h"

#ifdef LIN_ON_GPU
enum { ON_GPU = 1 };
#else
enum { ON_GPU = 0 };
#endif
enum { ROWS = 37, C = 24, F = 300, COUNT = ROWS * C };

// Operations that need scratch, a plan and a workspace: a linear layer, its gradient, a norm and its gradient.
typedef struct bench {
    const lin_ops *ops;
    lin_exec *exec;
    float *x, *w, *packed, *back, *y, *z, *dx, *dw, *bias, *gamma, *beta, *dgamma, *stats;
    float *block;
} bench;

enum { WEIGHTS = F * C, BLOCK = 2 * COUNT + 4 * WEIGHTS + 2 * ROWS * F + 4 * F + 4096 };

static lin_status bench_open(bench *b, lin_precision precision, lin_error *err)
{
    memset(b, 0, sizeof *b);
    lin_status status = test_device_open(0, precision, &b->ops, err);
    if (status == LIN_OK) status = b->ops->exec_create(b->ops, 0, &b->exec, err);
    if (status == LIN_OK) status = b->ops->memory_create(b->exec, BLOCK * sizeof(float), (void **)&b->block, err);
    if (status != LIN_OK) return status;
    size_t at = 0;
    float **const parts[] = {&b->x,  &b->dx,   &b->y,     &b->z,    &b->w,      &b->packed, &b->back,
                             &b->dw, &b->bias, &b->gamma, &b->beta, &b->dgamma, &b->stats};
    const size_t sizes[] = {COUNT, COUNT, ROWS * F, ROWS * F, WEIGHTS, WEIGHTS, WEIGHTS, WEIGHTS, F, F, F, F, 2 * ROWS};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        *parts[i] = b->block + at;
        at += (sizes[i] + 63) / 64 * 64;
    }
    ck_assert_uint_le(at, BLOCK);
    return LIN_OK;
}

static void bench_close(bench *b)
{
    if (b->block) b->ops->memory_destroy(b->exec, b->block);
    if (b->exec) b->ops->exec_destroy(b->exec);
}

static void fill(bench *b, uint64_t key)
{
    float host[WEIGHTS];
    test_fill_f32(host, WEIGHTS, key, -1, 1);
    b->ops->upload(b->exec, b->x, host, COUNT * sizeof(float));
    memset(host, 0xFF, COUNT * sizeof(float)); // upload has read it
    test_fill_f32(host, WEIGHTS, key + 1, -1, 1);
    b->ops->upload(b->exec, b->w, host, WEIGHTS * sizeof(float));
    b->ops->upload(b->exec, b->bias, host, F * sizeof(float));
    b->ops->upload(b->exec, b->gamma, host + F, F * sizeof(float));
}

static void work(bench *b)
{
    const lin_ops *ops = b->ops;
    const lin_packing items[] = {{.n = F, .k = C}, {.to = (size_t)(b->back - b->packed), .n = F, .k = C, .transposed = 1}};
    ops->zero(b->exec, b->dw, WEIGHTS * sizeof(float));
    ops->weights_pack(b->exec, b->packed, b->w, items, 2);
    ops->linear_forward(b->exec, b->y, b->x, b->packed, b->bias, ROWS, F, C, LIN_RELU);
    ops->layer_norm_forward(b->exec, b->z, b->stats, b->y, b->gamma, b->beta, ROWS, F);
    ops->linear_forward(b->exec, b->dx, b->z, b->back, NULL, ROWS, C, F, LIN_LINEAR);
    ops->layer_norm_backward(b->exec, NULL, b->dx, NULL, b->dgamma, b->beta, NULL, b->dx, NULL, NULL, b->x, b->stats, b->gamma,
                             ROWS, C, NULL);
    ops->linear_backward_weight(b->exec, b->dw, b->bias, b->z, b->dx, ROWS, F, C);
}

static uint64_t result(bench *b)
{
    float host[WEIGHTS];
    uint64_t digest = 0xCBF29CE484222325u;
    b->ops->download(b->exec, host, b->dw, sizeof host);
    for (size_t i = 0; i < sizeof host; i++) digest = (digest ^ ((const unsigned char *)host)[i]) * 0x100000001B3u;
    return digest;
}

static uint64_t run(bench *b, uint64_t key)
{
    fill(b, key);
    b->ops->zero(b->exec, b->beta, F * sizeof(float));
    work(b);
    uint64_t digest = result(b);
    OK(b->ops->finish(b->exec, &err));
    return digest;
}

/* ---- order and graphs ------------------------------------------------------------------------------------------------------ */

// Each round's copy begins only when the last round's values were read, and its values are there when they are read.
START_TEST(copies_beside)
{
    enum { ROUNDS = 20 };
    bench b;
    float *staging;
    OK(bench_open(&b, LIN_PRECISION_FP32, &err));
    OK(b.ops->staging_create(b.exec, 2 * ROUNDS * COUNT * sizeof(float), (void **)&staging, &err));
    float *results = staging + ROUNDS * COUNT;
    test_fill_f32(staging, ROUNDS * COUNT, 1, 1, 2);
    for (int round = 0; round < ROUNDS; round++) {
#ifndef LIN_ON_GPU
        emulation_set(EMULATION_EAGER, round >= ROUNDS / 2); // the copy as late as it may, then as early
#endif
        b.ops->upload_beside(b.exec, b.x, staging + round * COUNT, COUNT * sizeof(float), 2);
#ifndef LIN_ON_GPU
        emulation_set(EMULATION_EAGER, 0);
#endif
        b.ops->relu_backward(b.exec, b.dx, b.x, b.x, COUNT, 2);
        b.ops->fence(b.exec, 2);
        b.ops->fetch(b.exec, results + round * COUNT, b.dx, COUNT * sizeof(float));
        if (round == ROUNDS / 2 - 1) {
            b.ops->upload_beside(b.exec, b.x, staging, 0, 2);
            OK(b.ops->finish(b.exec, &err));
        }
    }
    OK(b.ops->finish(b.exec, &err));
    for (int i = 0; i < ROUNDS * COUNT; i++)
        test_require(results[i] == 2 * staging[i], "number %d of round %d", i % COUNT, i / COUNT);
    b.ops->staging_destroy(b.exec, staging);
    bench_close(&b);
}
END_TEST

// A graph recorded before any plan or allocation; replayed after scratch has grown, with other data.
START_TEST(graphs)
{
    bench b;
    lin_graph *graph, *empty;
    const unsigned long objects = emulation_count(EMULATION_OBJECTS), live = emulation_count(EMULATION_LIVE);
    OK(bench_open(&b, LIN_PRECISION_BF16, &err));
    const unsigned long before = emulation_count(EMULATION_LAUNCHES);
    OK(b.ops->graph_begin(b.exec, &err));
    b.ops->fence(b.exec, 0); // neither may affect the recording
    b.ops->wait(b.exec, 0);
    b.ops->zero(b.exec, b.beta, F * sizeof(float));
    work(&b);
    OK(b.ops->graph_end(b.exec, &graph, &err));
    ck_assert_uint_eq(emulation_count(EMULATION_LAUNCHES), before);
    OK(b.ops->graph_begin(b.exec, &err));
    OK(b.ops->graph_end(b.exec, &empty, &err));
    const uint64_t want = run(&b, 7), other = run(&b, 8);
    ck_assert_uint_ne(want, other);
    float *wide; // more scratch than any before
    OK(b.ops->memory_create(b.exec, 3 * 4096 * sizeof(float), (void **)&wide, &err));
    b.ops->layer_norm_backward(b.exec, NULL, wide, NULL, wide + 4096, wide + 8192, NULL, wide, NULL, NULL, wide, wide, wide, 1,
                               4096, NULL);
    for (int i = 0; i < 3; i++) {
        fill(&b, i == 1 ? 8 : 7);
        b.ops->graph_launch(b.exec, empty);
        b.ops->graph_launch(b.exec, graph);
        ck_assert_uint_eq(result(&b), i == 1 ? other : want);
    }
    b.ops->memory_destroy(b.exec, wide);
    b.ops->graph_destroy(graph);
    b.ops->graph_destroy(empty);
    b.ops->graph_destroy(NULL);
    bench_close(&b);
    ck_assert_uint_eq(emulation_count(EMULATION_OBJECTS), objects);
    ck_assert_uint_eq(emulation_count(EMULATION_LIVE), live);
}
END_TEST

// The end of a graph does not disturb what another exec records.
START_TEST(graph_ends_beside_a_recording)
{
    bench a, b, direct;
    lin_graph *graph, *other;
    OK(bench_open(&direct, LIN_PRECISION_FP32, &err));
    const uint64_t want = run(&direct, 7);
    bench_close(&direct);
    OK(bench_open(&a, LIN_PRECISION_FP32, &err));
    OK(bench_open(&b, LIN_PRECISION_FP32, &err));
    OK(a.ops->graph_begin(a.exec, &err));
    work(&a);
    OK(a.ops->graph_end(a.exec, &graph, &err));
    fill(&a, 7);
    fill(&b, 7);
    a.ops->graph_launch(a.exec, graph);
    OK(b.ops->graph_begin(b.exec, &err));
    work(&b);
    a.ops->graph_destroy(graph); // while it may be running
    OK(b.ops->graph_end(b.exec, &other, &err));
    b.ops->graph_launch(b.exec, other);
    ck_assert_uint_eq(result(&a), want);
    ck_assert_uint_eq(result(&b), want);
    b.ops->graph_destroy(other);
    bench_close(&a);
    bench_close(&b);
}
END_TEST

// A kernel's limit of shared memory is set once, not at each launch, and two execs do not change each other's.
START_TEST(limits_once)
{
    enum { T = 100, E = 32, N = T * E };
    bench first, second;
    const int offsets[] = {0, T};
    int *on_device;
    OK(bench_open(&first, LIN_PRECISION_FP32, &err));
    OK(bench_open(&second, LIN_PRECISION_FP32, &err));
    OK(first.ops->memory_create(first.exec, sizeof offsets, (void **)&on_device, &err));
    first.ops->upload(first.exec, on_device, offsets, sizeof offsets);
    const lin_segments segments = {.B = 1, .rows = T, .longest = T, .offsets = on_device};
    for (int round = 0; round < 3; round++) {
        bench *b = round == 1 ? &second : &first;
        const unsigned long before = emulation_count(EMULATION_ATTRIBUTES);
        for (int i = 0; i < 4; i++) b->ops->attention_forward(b->exec, b->block, b->block + N, &segments, 1, E, i % 2, NULL, 0);
        OK(b->ops->finish(b->exec, &err));
        const unsigned long set = emulation_count(EMULATION_ATTRIBUTES) - before;
        ck_assert_uint_eq(set, ON_GPU || round == 2 ? 0 : 4); // for each kernel what it may have, and what it prefers
    }
    first.ops->memory_destroy(first.exec, on_device);
    bench_close(&second);
    bench_close(&first);
}
END_TEST

static void *run_there(void *context)
{
    bench *b = context;
    static uint64_t digest;
    digest = run(b, 7);
    return &digest;
}

// An exec of the second GPU (the first, if there is one only), made here, used by a thread that never selected a GPU.
START_TEST(another_thread)
{
    bench first, second;
    pthread_t thread;
    void *digest;
    int other = 1;
#ifdef LIN_ON_GPU
    lin_device device;
    other = lin_device_get(1, &device) && !device.why_not[0];
#else
    emulation_set(EMULATION_DEVICES, 2);
#endif
    OK(bench_open(&first, LIN_PRECISION_FP32, &err));
    const uint64_t want = run(&first, 7);
    second = first;
    OK(test_device_open(other, LIN_PRECISION_FP32, &second.ops, &err));
    ck_assert_int_eq(second.ops->device, other);
    OK(second.ops->exec_create(second.ops, 0, &second.exec, &err));
    ck_assert_int_eq(pthread_create(&thread, NULL, run_there, &second), 0);
    pthread_join(thread, &digest);
    ck_assert_uint_eq(*(uint64_t *)digest, want);
    ck_assert_uint_eq(run(&first, 7), want);
    second.ops->exec_destroy(second.exec);
    bench_close(&first);
}
END_TEST

// The same bits for any earlier computations, by any exec.
START_TEST(same_bits)
{
    bench b;
    for (int p = 0; p < 3; p++) {
        uint64_t want = 0;
        for (int round = 0; round < 3; round++) {
            OK(bench_open(&b, (lin_precision)p, &err));
            for (int rows = 1; round == 1 && rows < 60; rows += 7) { // other plans first
                b.ops->linear_forward(b.exec, b.y, b.x, b.packed, b.bias, rows < ROWS ? rows : ROWS, F, C, LIN_RELU);
            }
            const uint64_t got = run(&b, 7);
            if (round == 0) want = got;
            ck_assert_uint_eq(got, want);
            bench_close(&b);
        }
    }
}
END_TEST

/* ---- faults ---------------------------------------------------------------------------------------------------------------- */

START_TEST(too_much)
{
    bench b;
    lin_error why = {0};
    void *block = &why;
    size_t more = 60000000;
#ifdef LIN_ON_GPU
    lin_device device;
    ck_assert_int_eq(lin_device_get(0, &device), 1);
    more = 2 * device.memory_bytes;
#else
    emulation_set(EMULATION_MEMORY, 40000000);
#endif
    OK(bench_open(&b, LIN_PRECISION_FP32, &err));
    const uint64_t want = run(&b, 7);
    ck_assert_int_eq(b.ops->memory_create(b.exec, more, &block, &why), LIN_NO_MEMORY);
    ck_assert_ptr_null(block);
    HAS(why.message, ON_GPU ? "GPU 0: out of memory: " : "GPU 0: out of memory: 60.0 MB requested, ",
        ON_GPU ? " free; smaller batches" : " of 40.0 MB free; smaller batches");
    ck_assert_uint_eq(run(&b, 7), want);
    bench_close(&b);
}
END_TEST

#ifndef LIN_ON_GPU
static uint64_t undisturbed(lin_precision precision)
{
    bench b;
    OK(bench_open(&b, precision, &err));
    const uint64_t digest = run(&b, 7);
    bench_close(&b);
    return digest;
}

// Every allocation in the life of a context fails once: on the device, of cublasLt's descriptions, on the host. The failing call
// reports it, succeeds when it is repeated, and leaks nothing.
static void fail_each(int on_host, lin_precision precision)
{
    const uint64_t want = undisturbed(precision);
    const unsigned long live = emulation_count(EMULATION_LIVE), objects = emulation_count(EMULATION_OBJECTS);
    const unsigned long host = lin_memory_live();
    int refused = 0, k = 1;
    for (int over = 0; !over; k++) {
        bench b;
        lin_error err = {0};
        const unsigned long made = emulation_count(EMULATION_ALLOCATIONS), made_host = lin_memory_count();
        if (on_host) lin_memory_fail_at((unsigned long)k);
        else emulation_set(EMULATION_FAIL_ALLOCATION, k);
        lin_status status = bench_open(&b, precision, &err);
        if (status == LIN_OK) {
            fill(&b, 7);
            b.ops->zero(b.exec, b.beta, F * sizeof(float));
            work(&b);
            status = b.ops->finish(b.exec, &err);
            if (status == LIN_OK) ck_assert_uint_eq(result(&b), want);
            const unsigned long now = on_host ? lin_memory_count() - made_host : emulation_count(EMULATION_ALLOCATIONS) - made;
            over = status == LIN_OK && now < (unsigned long)k;
            if (status != LIN_OK) ck_assert_uint_eq(run(&b, 7), want);
        }
        if (status != LIN_OK) {
            refused++;
            ck_assert_msg(status == LIN_NO_MEMORY, "allocation %d: status %d, %s", k, (int)status, err.message);
            ck_assert_msg(strlen(err.message) > 10, "allocation %d: \"%s\"", k, err.message);
        }
        lin_memory_fail_at(0);
        emulation_set(EMULATION_FAIL_ALLOCATION, 0);
        bench_close(&b);
        ck_assert_msg(emulation_count(EMULATION_LIVE) == live && emulation_count(EMULATION_OBJECTS) == objects &&
                          lin_memory_live() == host,
                      "a leak after the failure of allocation %d", k);
        ck_assert_int_lt(k, 500);
    }
    ck_assert_int_ge(refused, on_host ? 3 : 8);
}

START_TEST(allocations_fail) { fail_each(_i % 2, _i / 2 ? LIN_PRECISION_BF16 : LIN_PRECISION_FP32); }
END_TEST

START_TEST(memory_ends_in_a_graph)
{
    bench b;
    lin_error why = {0};
    lin_graph *graph;
    int refused = 0;
    for (int k = 1; k <= 40; k++) {
        OK(bench_open(&b, LIN_PRECISION_FP32, &err));
        OK(b.ops->graph_begin(b.exec, &err));
        emulation_set(EMULATION_FAIL_ALLOCATION, k);
        work(&b);
        lin_status status = b.ops->graph_end(b.exec, &graph, &why);
        emulation_set(EMULATION_FAIL_ALLOCATION, 0);
        ck_assert_int_eq(graph != NULL, status == LIN_OK);
        if (status != LIN_OK) ck_assert_msg(status == LIN_NO_MEMORY, "%s", why.message);
        refused += status != LIN_OK;
        run(&b, 7);
        b.ops->graph_destroy(graph);
        bench_close(&b);
    }
    ck_assert_int_ge(refused, 8);
}
END_TEST

// At every launch in turn. The fault persists: no operation of the exec works again, and nothing crashes.
START_TEST(lost)
{
    for (int k = 1;; k++) {
        bench b;
        lin_error why = {0};
        void *block;
        emulation_reset();
        OK(bench_open(&b, LIN_PRECISION_TF32, &err));
        emulation_set(EMULATION_LOSE_AFTER, k);
        fill(&b, 7);
        work(&b);
        lin_status status = b.ops->finish(b.exec, &why);
        if (status == LIN_OK) {
            ck_assert_int_gt(k, 8);
            bench_close(&b);
            return;
        }
        ck_assert_int_eq(status, LIN_IO);
        ck_assert_msg(strstr(why.message, "GPU 0: ") == why.message && strstr(why.message, "lost") != NULL, "%s", why.message);
        work(&b);
        FAILS(b.ops->finish(b.exec, &err), LIN_IO, "");
        FAILS(b.ops->memory_create(b.exec, 100, &block, &err), LIN_IO, "");
        FAILS(b.ops->graph_begin(b.exec, &err), LIN_IO, "");
        bench_close(&b);
    }
}
END_TEST

START_TEST(opened_wrongly)
{
    const lin_ops *ops;
    lin_error why = {0};
    ck_assert_int_eq(lin_cuda_open(1, LIN_PRECISION_FP32, &ops, &why), LIN_UNSUPPORTED);
    ck_assert_str_eq(why.message, "there is no GPU 1; the last is 0");
    ck_assert_ptr_null(ops);
    FAILS(lin_cuda_open(-1, LIN_PRECISION_FP32, &ops, &err), LIN_UNSUPPORTED, "");
    FAILS(lin_cuda_open(0, (lin_precision)3, &ops, &err), LIN_INVALID, "");
    emulation_set(EMULATION_DEVICES, 20);
    OK(lin_cuda_open(15, LIN_PRECISION_FP32, &ops, &err));
    FAILS(lin_cuda_open(16, LIN_PRECISION_FP32, &ops, &err), LIN_UNSUPPORTED, "CUDA_VISIBLE_DEVICES");
    emulation_set(EMULATION_DEVICES, 0);
    FAILS(lin_cuda_open(0, LIN_PRECISION_FP32, &ops, &err), LIN_UNSUPPORTED, "");
}
END_TEST

#endif

int main(void)
{
    const test_entry tests[] = {
        TEST(copies_beside), TEST(graphs), TEST(graph_ends_beside_a_recording), TEST(limits_once), TEST(another_thread),
        TEST(same_bits), TEST(too_much),
#ifndef LIN_ON_GPU
        TEST(opened_wrongly), TESTS(allocations_fail, 0, 4), TEST(memory_ends_in_a_graph), TEST(lost),
#endif
    };
    return test_all("cuda_backend", NULL, NULL, NULL, NULL, tests, sizeof tests / sizeof *tests);
}
