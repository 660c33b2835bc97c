/*
 * lstm_golden.h - one case of tests/golden/lstm.py, which describes its files, for a table of operations over REAL, named OPS.
 * Included by test_lstm.c once per type, with NAME to name the functions.
 */

static REAL *NAME(golden_block)(const char *name, const char *what, size_t n)
{
    char path[256];
    snprintf(path, sizeof path, "tests/golden/lstm/%s/%s.f64", name, what);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "cannot open %s; tests run from the root of the source tree", path);
    REAL *block = test_buffer(n, sizeof *block);
    double value;
    size_t got = 0;
    for (; fread(&value, sizeof value, 1, file) == 1; got++)
        if (got < n) block[got] = (REAL)value;
    fclose(file);
    ck_assert_msg(got == n, "%s holds %zu doubles, not %zu", path, got, n);
    return block;
}

static void NAME(golden_compare)(const char *name, const char *what, REAL *got, size_t n, double tolerance)
{
    REAL *want = NAME(golden_block)(name, what, n);
    test_guards(got, what);
    for (size_t i = 0; i < n; i++)
        test_require(fabs((double)got[i] - (double)want[i]) <= tolerance * fmax(1, fabs((double)want[i])),
                     "%s: %s %zu of %zu is %.12g, not %.12g", name, what, i, n, (double)got[i], (double)want[i]);
    test_buffer_free(want);
    test_buffer_free(got);
}

static REAL *NAME(golden_packed)(const OPS *ops, lin_exec *exec, const REAL *R, int U, int D, int transposed)
{
    const size_t size = transposed ? ops->weight_size(U, 4 * U) : ops->weight_size(4 * U, U);
    REAL *packed = test_buffer((size_t)D * pitch_of(size), sizeof *packed);
    lin_packing items[2];
    items_of(items, U, D, size, transposed);
    ops->weights_pack(exec, packed, R, items, D);
    return packed;
}

/* The whole layer: gates = x wᵀ + bias, the operation, and their gradients. */
static void NAME(golden_run)(const char *name, const OPS *ops, lin_exec *exec, const lin_segments *s, int U, int D, int k,
                             double tolerance)
{
    const int n = 4 * D * U, rows = s->rows;
    const size_t nh = size_of(rows, D * U), nw = size_of(n, k), nR = size_of(n, U), n_states = size_of(s->B, 2 * U);
    REAL *x = NAME(golden_block)(name, "x", size_of(rows, k)), *w = NAME(golden_block)(name, "w", nw);
    REAL *bias = NAME(golden_block)(name, "bias", (size_t)n), *R = NAME(golden_block)(name, "R", nR);
    REAL *dh = NAME(golden_block)(name, "dh", nh), *states = NAME(golden_block)(name, "start", n_states);
    REAL *packed = NAME(golden_packed)(ops, exec, R, U, D, 0), *packed_dx = NAME(golden_packed)(ops, exec, R, U, D, 1);
    REAL *packed_w = test_buffer(ops->weight_size(n, k), sizeof(REAL)),
         *packed_w_dx = test_buffer(ops->weight_size(k, n), sizeof(REAL));
    REAL *gates = test_buffer(4 * nh, sizeof(REAL)), *h = test_buffer(nh, sizeof(REAL)), *cells = test_buffer(nh, sizeof(REAL));
    REAL *dgates = test_buffer(4 * nh, sizeof(REAL)), *dx = test_buffer(size_of(rows, k), sizeof(REAL));
    REAL *dw = test_buffer(nw, sizeof(REAL)), *dbias = test_buffer((size_t)n, sizeof(REAL)), *dR = test_buffer(nR, sizeof(REAL));
    REAL *table[MOST_B];
    ops->weights_pack(exec, packed_w, w, &(lin_packing){.n = n, .k = k}, 1);
    ops->weights_pack(exec, packed_w_dx, w, &(lin_packing){.n = n, .k = k, .transposed = 1}, 1);
    for (int b = 0; b < s->B; b++) table[b] = states + size_of(b, 2 * U);
    memset(dw, 0, nw * sizeof *dw);
    memset(dbias, 0, (size_t)n * sizeof *dbias);
    memset(dR, 0, nR * sizeof *dR);
    // first without states, for the gradients, then with them
    ops->linear_forward(exec, gates, x, packed_w, bias, rows, n, k, LIN_LINEAR);
    ops->lstm_forward(exec, h, cells, gates, packed, s, U, D, NULL, 0);
    ops->lstm_backward(exec, dgates, dR, dh, h, cells, gates, packed_dx, s, U, D);
    ops->linear_backward_weight(exec, dw, dbias, dgates, x, rows, n, k);
    ops->linear_forward(exec, dx, dgates, packed_w_dx, NULL, rows, k, n, LIN_LINEAR);
    test_poison(h, nh * sizeof *h);
    ops->linear_forward(exec, gates, x, packed_w, bias, rows, n, k, LIN_LINEAR);
    ops->lstm_forward(exec, h, cells, gates, packed, s, U, D, table, 0);
    NAME(golden_compare)(name, "h", h, nh, tolerance);
    NAME(golden_compare)(name, "dx", dx, size_of(rows, k), tolerance);
    NAME(golden_compare)(name, "dw", dw, nw, tolerance);
    NAME(golden_compare)(name, "dbias", dbias, (size_t)n, tolerance);
    NAME(golden_compare)(name, "dR", dR, nR, tolerance);
    NAME(golden_compare)(name, D == 1 ? "end" : "start", states, n_states, tolerance);
    REAL *all[] = {x, w, bias, R, dh, packed, packed_dx, packed_w, packed_w_dx, gates, cells, dgates};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) test_buffer_free(all[i]);
}

static void NAME(golden_case)(const char *name, const OPS *ops, double tolerance)
{
    char path[256];
    int D, k, U, lengths[MOST_B], offsets[MOST_B + 1], B = 0;
    lin_exec *exec;
    snprintf(path, sizeof path, "tests/golden/lstm/%s/sizes.txt", name);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "cannot open %s; tests run from the root of the source tree", path);
    ck_assert_int_eq(fscanf(file, "directions %d inputs %d units %d frames", &D, &k, &U), 3);
    while (B < MOST_B && fscanf(file, "%d", &lengths[B]) == 1) B++;
    fclose(file);
    ck_assert_int_eq(ops->exec_create(ops, 1, &exec, NULL), LIN_OK);
    const lin_segments s = segments_of(offsets, lengths, B);
    NAME(golden_run)(name, ops, exec, &s, U, D, k, tolerance);
    ops->exec_destroy(exec);
}
