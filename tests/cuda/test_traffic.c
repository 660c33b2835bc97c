// [cuda] The bytes and operations that the emulated device writes down (tests/emulation/traffic.cpp), against what the operations
// must move.
#include <stdio.h>
#include <unistd.h>

#include "tests/cuda/device.h"
#include "tests/emulation/emulation.h"

#define TEMPLATE "/tmp/linnet-traffic-XXXXXX"

enum { PAGE = 4096, ROWS = 512, N = 128, K = 256, COUNT = ROWS * K };

static char path[sizeof TEMPLATE];

// The next line of this name, template arguments aside: bytes read, bytes written, operations.
static void expect(FILE *lines, const char *name, double read, double written, double operations, const char *format)
{
    char line[300], got_name[300], got_format[16];
    double got[3];
    int same;
    do {
        ck_assert_msg(fgets(line, sizeof line, lines) != NULL, "no line of %s", name);
        ck_assert_int_eq(sscanf(line, "%299[^\t]\t%lf\t%lf\t%lf\t%15s", got_name, &got[0], &got[1], &got[2], got_format), 5);
        const size_t n = strlen(name);
        same = strncmp(got_name, name, n) == 0 && (!got_name[n] || got_name[n] == '<');
    } while (!same);
    ck_assert_msg(got[0] >= read && got[0] <= read + 4 * PAGE, "%s reads %g bytes, expected %g", name, got[0], read);
    ck_assert_msg(got[1] >= written && got[1] <= written + 4 * PAGE, "%s writes %g bytes, expected %g", name, got[1], written);
    ck_assert_msg(got[2] >= operations && got[2] <= operations, "%s: %g operations, expected %g", name, got[2], operations);
    ck_assert_str_eq(got_format, format);
}

static const lin_ops *ops;
static lin_exec *exec;
static void *blocks[10];
static int file, n_blocks;

static void begin(lin_precision precision)
{
    memcpy(path, TEMPLATE, sizeof path);
    file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    setenv("LINNET_EMULATION_TRAFFIC", path, 1);
    ops = test_device(precision);
    n_blocks = 0;
    OK(ops->exec_create(ops, 0, &exec, &err));
}

static void *block(size_t count)
{
    OK(ops->memory_create(exec, count * sizeof(float), &blocks[n_blocks], &err));
    return blocks[n_blocks++];
}

// Finishes everything; the lines, which the caller closes.
static FILE *end(void)
{
    OK(ops->finish(exec, &err));
    while (n_blocks > 0) ops->memory_destroy(exec, blocks[--n_blocks]);
    ops->exec_destroy(exec);
    unlink(path);
    return fdopen(file, "r");
}

START_TEST(traffic)
{
    begin(LIN_PRECISION_TF32);
    const lin_dropout none = {.p = 0};
    float *x = block(COUNT), *y = block(COUNT), *w = block(N * K), *packed = block(N * K);
    ops->copy(exec, y, x, COUNT * sizeof *x);
    ops->add_dropout(exec, y, y, x, COUNT, &none);
    ops->weights_pack(exec, packed, w, &(lin_packing){.n = N, .k = K}, 1);
    ops->linear_forward(exec, y, x, packed, NULL, ROWS, N, K, LIN_LINEAR);
    FILE *lines = end();
    expect(lines, "fill", 0, COUNT * 4, 0, "-"); // a new block is zeroed
    expect(lines, "copy", COUNT * 4, COUNT * 4, 0, "-");
    expect(lines, "drop", 2 * COUNT * 4, COUNT * 4, 0, "-"); // in place: y is read and written
    expect(lines, "cublasLtMatmul", (ROWS + N) * K * 4, ROWS * N * 4, 2.0 * ROWS * N * K, "tf32");
    fclose(lines);
}
END_TEST

// In bf16 what lies between the two products of a feed-forward block is in memory as bf16, and its pass reads and writes it once.
START_TEST(feedforward)
{
    enum { C = 128, F = 512, HIDDEN = ROWS * F * 2, ROW = ROWS * C * 2 };
    begin(LIN_PRECISION_BF16);
    float *x = block(ROWS * C), *y = block(ROWS * C), *h = block(ROWS * F), *dh = block(ROWS * F), *w1 = block(C * F),
          *w2 = block(C * F), *vectors = block(C * F);
    const lin_dropout dropout = {.p = 0.1, .key = block(4)};
    ops->feedforward_forward(exec, y, h, x, w1, vectors, w2, vectors, ROWS, C, F, &dropout);
    ops->feedforward_backward(exec, x, w1, vectors, w2, vectors, y, x, h, dh, w1, w2, ROWS, C, F, &dropout);
    FILE *lines = end();
    const double product = 2.0 * ROWS * C * F, weight = C * F * 2;
    expect(lines, "convert", 2 * ROW, ROW, 0, "-");
    expect(lines, "cublasLtMatmul", ROW + weight, HIDDEN, product, "bf16");
    expect(lines, "activate", HIDDEN, HIDDEN, 0, "-");
    expect(lines, "cublasLtMatmul", HIDDEN + weight, 2 * ROW, product, "bf16");
    expect(lines, "cublasLtMatmul", ROW + HIDDEN + 2 * weight, 2 * weight, product, "bf16"); // dw2
    expect(lines, "cublasLtMatmul", ROW + weight, HIDDEN, product, "bf16");
    expect(lines, "(pass_and_sum<To, From, GATED>)", 2 * HIDDEN, HIDDEN + ROWS / 64 * F * 4, 0, "-");
    fclose(lines);
}
END_TEST

// The gradient of a weight in slices: a slice's product is written once, and read once by the kernel that adds them up.
START_TEST(slices)
{
    enum { SLICES = 3, OTHER = 200, LEFT = OTHER % SLICES, PRODUCT = N * K * 4 };
    setenv("LINNET_CUDA_SLICE_ROWS", "60", 1);
    begin(LIN_PRECISION_TF32);
    float *x = block(OTHER * K), *dy = block(OTHER * N), *dw = block(N * K);
    ops->linear_backward_weight(exec, dw, NULL, dy, x, OTHER, N, K);
    FILE *lines = end();
    unsetenv("LINNET_CUDA_SLICE_ROWS");
    const double operations = 2.0 * (OTHER - LEFT) * N * K;
    expect(lines, "cublasLtMatmul<256, 128, 3>", (OTHER - LEFT) * (N + K) * 4, SLICES * PRODUCT, operations, "tf32");
    expect(lines, "add_slices", (SLICES + 1) * PRODUCT, PRODUCT, 0, "-");
    fclose(lines);
}
END_TEST

// In bf16 the operands of the products around attention are written as bf16 once, and the gradient of q, k and v as nothing else.
START_TEST(attention_block)
{
    enum { H = 4, E = 32, C = H * E, ROW = ROWS * C * 2, WEIGHT = C * C * 2 };
    begin(LIN_PRECISION_BF16);
    float *x = block(ROWS * C), *y = block(ROWS * C), *out = block(ROWS * C), *operands = block(ROWS * C),
          *qkv = block(3 * ROWS * C), *d_qkv = block(3 * ROWS * C), *wqkv = block(3 * C * C), *wout = block(C * C);
    int *offsets = block(2);
    ops->upload(exec, offsets, (int[]){0, ROWS}, 2 * sizeof *offsets);
    const lin_segments segments = {.B = 1, .rows = ROWS, .longest = ROWS, .offsets = offsets};
    ops->attention_block_forward(exec, out, qkv, y, operands, x, wqkv, wqkv, wout, wout, &segments, H, E, 0);
    ops->attention_block_backward(exec, x, wqkv, wqkv, wout, out, x, qkv, y, operands, d_qkv, wqkv, wout, &segments, H, E, 0);
    FILE *lines = end();
    const double product = 2.0 * ROWS * C * C;
    expect(lines, "convert", 2 * ROW, ROW, 0, "-"); // x
    expect(lines, "cublasLtMatmul", ROW + 3 * WEIGHT, 6 * ROW, 3 * product, "bf16");
    expect(lines, "cublasLtMatmul", ROW + WEIGHT, 2 * ROW, product, "bf16"); // y has been written as bf16 too
    expect(lines, "convert", 2 * ROW, ROW, 0, "-");                          // dy
    expect(lines, "cublasLtMatmul", 2 * ROW + 2 * WEIGHT, 2 * WEIGHT, product, "bf16"); // dwout
    expect(lines, "cublasLtMatmul", ROW + WEIGHT, 2 * ROW, product, "bf16");
    expect(lines, "sum_narrow", 3 * ROW, ROWS / 64 * 3 * C * 4, 0, "-");
    expect(lines, "cublasLtMatmul", 4 * ROW + 6 * WEIGHT, 6 * WEIGHT, 3 * product, "bf16"); // dwqkv
    expect(lines, "cublasLtMatmul", 3 * ROW + 3 * WEIGHT, 2 * ROW, 3 * product, "bf16");
    fclose(lines);
}
END_TEST

#if defined(__x86_64__) && defined(__linux__)
enum { COUNTED = !TEST_ASAN };
#else
enum { COUNTED = 0 };
#endif

TEST_MAIN("cuda_traffic", TESTS(traffic, 0, COUNTED), TESTS(slices, 0, COUNTED), TESTS(feedforward, 0, COUNTED),
          TESTS(attention_block, 0, COUNTED))
