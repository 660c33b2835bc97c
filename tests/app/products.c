// products.c - a tool of make check-wasm: a hash of products of eight bits by the best kernel here, a line for each shape.
//
// It is compiled for this machine and for WebAssembly, and must print the same lines in both (kernels/cpu/linear_int8.h). Each
// product is compared with tests/kernels/ref/ too; the status is 1 if one differs.
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "kernels/ops.h"
#include "tests/kernels/ref/ref_int8.h"

// All shapes of the shipped network's layers, numbers of rows for every register block, and odd ones.
static const struct shape {
    int rows, n, k;
} shapes[] = {{1, 1, 1}, {2, 3, 5}, {7, 49, 17}, {5, 720, 240}, {3, 240, 240}, {4, 960, 240}, {64, 240, 960}, {13, 101, 255}};

// Exact in a float: whole numbers of 16 bits over a power of two, a row in three of one sign.
static void fill(float *x, int rows, int k, uint64_t key)
{
    for (int r = 0; r < rows; r++) {
        for (int t = 0; t < k; t++) {
            const int whole = (int)(lin_mix64(key + (uint64_t)r * 65536 + (uint64_t)t) & 0xFFFF) - (r % 3 ? 0x8000 : 0);
            x[r * k + t] = (float)whole / 4096;
        }
    }
}

static int one(lin_exec *exec, const lin_ops *ops, struct shape s, uint64_t key)
{
    const size_t xs = (size_t)s.rows * (size_t)s.k, ws = (size_t)s.n * (size_t)s.k, ys = (size_t)s.rows * (size_t)s.n;
    float *x = lin_alloc(xs, sizeof *x), *w = lin_alloc(ws, sizeof *w), *bias = lin_alloc((size_t)s.n, sizeof *bias);
    float *y = lin_alloc(ys, sizeof *y), *want = lin_alloc(ys, sizeof *want);
    float *packed = lin_alloc(ops->weight_size(s.n, s.k), sizeof *packed);
    int same = x && w && bias && y && want && packed;
    if (same) {
        const lin_packing item = {.n = s.n, .k = s.k};
        fill(x, s.rows, s.k, key);
        fill(w, s.n, s.k, key + 1);
        fill(bias, 1, s.n, key + 2);
        ops->weights_pack(exec, packed, w, &item, 1);
        ops->linear_forward(exec, y, x, packed, bias, s.rows, s.n, s.k, LIN_RELU);
        lin_ref_int8_linear(want, x, w, bias, s.rows, s.n, s.k, LIN_RELU);
        same = memcmp(y, want, ys * sizeof *y) == 0;
        lin_hasher h;
        lin_hash_begin(&h, key);
        lin_hash_add(&h, y, ys * sizeof *y);
        printf("%d x %d x %d: %016llx%s\n", s.rows, s.n, s.k, (unsigned long long)lin_hash_end(&h), same ? "" : " differs");
    }
    lin_free(x), lin_free(w), lin_free(bias), lin_free(y), lin_free(want), lin_free(packed);
    return same;
}

int main(void)
{
    const lin_ops *ops = lin_ops_cpu_int8();
    lin_exec *exec = NULL;
    lin_error err = {0};
    int same = ops->exec_create(ops, 1, &exec, &err) == LIN_OK;
    for (size_t i = 0; same && i < sizeof shapes / sizeof *shapes; i++) same = one(exec, ops, shapes[i], i + 1);
    ops->exec_destroy(exec);
    return !same;
}
