// linear.c - the matrix product: packing, and work cut into pieces for the pool; see linear.h.
#include <assert.h>
#include <string.h>

#include "base/number.h"
#include "kernels/cpu/linear_vectors.h"

/* ---- for each instruction set ---------------------------------------------------------------------------------------------- */

#define LINEAR(name) LIN_NAME(lin_linear_##name)
#define PAIRS 0
#define vec_fma vfma // rounded twice where the machine has no fused multiply-add
#include "kernels/cpu/linear_body.h"

#if LIN_WIDTH == 8
// Transposes 8 x 8 elements of w [.., k] into 8 rows of the panel.
static inline void transpose_8x8(float *to, size_t width, const float *w, size_t k)
{
    vf a[8], b[8];
    for (int i = 0; i < 8; i++) a[i] = vload(w + (size_t)i * k);
    for (int i = 0; i < 8; i += 2) { // pairs of rows
        b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
        b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) { // quads
        a[i] = _mm256_shuffle_ps(b[i], b[i + 2], 0x44);
        a[i + 1] = _mm256_shuffle_ps(b[i], b[i + 2], 0xEE);
        a[i + 2] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0x44);
        a[i + 3] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0xEE);
    }
    for (int i = 0; i < 4; i++) {
        vstore(to + (size_t)i * width, _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
        vstore(to + (size_t)(i + 4) * width, _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
    }
}

void lin_pack_rows_avx2(float *to, const float *w, int rows, int k, int width)
{
    const int whole = k / 8 * 8;
    int c = 0;
    for (; c + 8 <= rows; c += 8)
        for (int t = 0; t < whole; t += 8)
            transpose_8x8(to + (size_t)t * (size_t)width + c, (size_t)width, w + (size_t)c * (size_t)k + t, (size_t)k);
    for (int t = 0; t < k; t++) // the rest
        for (int i = t < whole ? c : 0; i < rows; i++)
            to[(size_t)t * (size_t)width + (size_t)i] = w[(size_t)i * (size_t)k + (size_t)t];
}
#endif

#ifdef LIN_ONCE
size_t lin_cpu_weight_size(int n, int k) { return (size_t)lin_round_up(n, LIN_COLUMN_GROUP) * (size_t)k; }

/* ---- packing --------------------------------------------------------------------------------------------------------------- */

typedef struct pack_job {
    lin_exec *exec;
    float *packed;
    const float *values;
    const lin_packing *items;
    int panel;
    lin_pack_panel *straight, *transposed;
} pack_job;

static void pack_panel(float *packed, const float *w, int n, int k, int piece, int panel)
{
    const int c0 = lin_panel_start(n, piece, panel), width = lin_panel_width(n, c0, panel);
    const int used = n - c0 < width ? n - c0 : width;
    float *to = packed + (size_t)c0 * (size_t)k;
    if (used < width) memset(to, 0, (size_t)width * (size_t)k * sizeof *to);
#if defined(__x86_64__)
    if (lin_cpu_level() >= LIN_ISA_AVX2) {
        lin_pack_rows_avx2(to, w, used, k, width);
        return;
    }
#endif
    for (int t0 = 0; t0 < k; t0 += 16) { // 16 columns of 48 rows: source and destination stay in the first-level cache
        const int t1 = t0 + 16 < k ? t0 + 16 : k;
        for (int c = 0; c < used; c++) {
            const float *row = w + (size_t)c * (size_t)k;
            for (int t = t0; t < t1; t++) to[(size_t)t * (size_t)width + (size_t)c] = row[t];
        }
    }
}

// The panels run over the k columns of w; each has n rows.
static void pack_panel_transposed(float *packed, const float *w, int n, int k, int piece, int panel)
{
    const int c0 = lin_panel_start(k, piece, panel), width = lin_panel_width(k, c0, panel);
    const int used = k - c0 < width ? k - c0 : width;
    float *to = packed + (size_t)c0 * (size_t)n;
    for (int i = 0; i < n; i++, to += width) {
        memcpy(to, w + (size_t)i * (size_t)k, (size_t)used * sizeof *to);
        if (used < width) memset(to + used, 0, (size_t)(width - used) * sizeof *to);
    }
}

// The panel's rows of w, widened from half precision into `rows`.
static const float *widen_rows(const lin_packing *item, int c0, int panel, float *rows)
{
    const int width = lin_panel_width(item->n, c0, panel), used = item->n - c0 < width ? item->n - c0 : width;
    const size_t k = (size_t)item->k;
    lin_half_widen((const unsigned char *)item->half + 2 * (size_t)c0 * k, (size_t)used * k, rows);
    return rows;
}

// Work items are the panels of the first item, then those of the second, and so on.
static void pack_piece(void *context, int piece, int thread)
{
    const pack_job *job = context;
    const lin_packing *item = job->items;
    for (; piece >= lin_item_panels(item, job->panel); item++) piece -= lin_item_panels(item, job->panel);
    const int c0 = lin_panel_start(item->transposed ? item->k : item->n, piece, job->panel);
    const size_t first = item->from + (size_t)c0 * (item->transposed ? 1 : (size_t)item->k);
    const float *w = item->half ? widen_rows(item, c0, job->panel, lin_scratch(job->exec, thread)) : job->values + first;
    (item->transposed ? job->transposed : job->straight)(job->packed + item->to, w, item->n, item->k, piece, job->panel);
}

void lin_pack_panels(lin_exec *exec, float *packed, const float *values, const lin_packing *items, int n_items, int panel,
                     lin_pack_panel *straight, lin_pack_panel *transposed)
{
    pack_job job = {exec, packed, values, items, panel, straight, transposed};
    size_t work = 0;
    int panels = 0;
    for (int i = 0; i < n_items; i++) {
        const lin_packing *item = &items[i];
        assert(item->n > 0 && item->k > 0 && item->to % 16 == 0);
        assert(!item->half || (!item->transposed && item->k <= LIN_HALF_COLUMNS)); // widened rows fit the scratch
        work += (size_t)items[i].n * (size_t)items[i].k;
        panels += lin_item_panels(&items[i], panel);
    }
    lin_pool_run(work < LIN_THREAD_WORK / 64 ? NULL : exec->pool, panels, pack_piece, &job);
}

void lin_cpu_weights_pack(lin_exec *exec, float *packed, const float *values, const lin_packing *items, int n_items)
{
    lin_pack_panels(exec, packed, values, items, n_items, lin_panel(), pack_panel, pack_panel_transposed);
}

/* ---- forward --------------------------------------------------------------------------------------------------------------- */

typedef struct forward_job {
    lin_exec *exec;
    float *y;
    const float *x, *packed, *bias;
    int rows, n, k, words, piece_rows;
    lin_activation act;
    lin_row_rounding *round;
    lin_row_product *product;
} forward_job;

static void forward_piece(void *context, int piece, int thread)
{
    const forward_job *job = context;
    const int r = piece * job->piece_rows, rows = job->rows - r < job->piece_rows ? job->rows - r : job->piece_rows;
    const float *x = job->x + (size_t)r * (size_t)job->k;
    if (job->round) {
        float *words = lin_scratch(job->exec, thread);
        job->round(words, x, rows, job->k);
        x = words;
    }
    job->product(job->y + (size_t)r * (size_t)job->n, x, job->packed, job->bias, rows, job->n, job->words, job->act,
                 job->exec->pool ? NULL : &job->exec->expected);
}

void lin_cpu_expect_states(lin_exec *exec, float *const *states, int B, size_t at, size_t count)
{
    if (!exec->pool) exec->expected = (lin_expected){.states = states, .B = B, .at = at, .count = count};
}

void lin_linear_forward(lin_exec *exec, float *y, const float *x, const float *packed, const float *bias, int rows, int n, int k,
                        lin_activation act, int words, lin_row_rounding *round, lin_row_product *product)
{
    assert(rows >= 0 && n > 0 && k > 0 && (y != x || rows == 0)); // y is written while x is read
    const size_t least = round ? 2 * LIN_THREAD_WORK : LIN_THREAD_WORK;
    const int threads = rows <= 8 || (size_t)rows * (size_t)n * (size_t)k < least ? 1 : exec->n_threads;
    // At most 64 rows, whose x stays in the second-level cache during all panels; fewer if the threads' shares would be uneven,
    // or if the scratch of a thread, where they are rounded, does not hold as many.
    int piece_rows = 64;
    if (threads > 1 && rows < threads * 8 * 64) piece_rows = lin_round_up((rows + threads * 8 - 1) / (threads * 8), 8);
    const int room = round ? (int)(LIN_SCRATCH_BYTES / sizeof(float)) / words : piece_rows;
    if (piece_rows > room) piece_rows = room > 8 ? room / 8 * 8 : room;
    forward_job job = {exec, y, x, packed, bias, rows, n, k, words, piece_rows, act, round, product};
    lin_pool_run(threads > 1 ? exec->pool : NULL, (rows + piece_rows - 1) / piece_rows, forward_piece, &job);
}

void lin_cpu_linear_forward(lin_exec *exec, float *y, const float *x, const float *packed, const float *bias, int rows, int n,
                            int k, lin_activation act)
{
    lin_linear_forward(exec, y, x, packed, bias, rows, n, k, act, k, NULL, LIN_DISPATCH(lin_linear_rows));
}

/* ---- backward: weights ----------------------------------------------------------------------------------------------------- */

typedef struct weight_job {
    lin_exec *exec;
    float *dw, *db;
    const float *dy, *x;
    int rows, n, k;
    lin_tiling tiling;
    lin_tile_product *product;
} weight_job;

static int at_most(int value, int limit) { return value < limit ? value : limit; }

lin_tile lin_tiling_tile(const lin_tiling *tiling, int piece, int n, int k)
{
    const int n0 = piece / tiling->k_parts * tiling->tile_n, k0 = piece % tiling->k_parts * tiling->tile_k;
    return (lin_tile){.n0 = n0, .n1 = at_most(n0 + tiling->tile_n, n), .k0 = k0, .k1 = at_most(k0 + tiling->tile_k, k)};
}

static void weight_piece(void *context, int piece, int thread)
{
    const weight_job *job = context;
    lin_tile tile = lin_tiling_tile(&job->tiling, piece, job->n, job->k);
    tile.ldw = tile.ldx = (size_t)job->k;
    tile.ldy = (size_t)job->n;
    job->product(job->dw, tile.k0 == 0 ? job->db : NULL, job->dy, job->x, job->rows, tile, lin_scratch(job->exec, thread));
}

// The tiles fit the scratch. Cost of a tile: products (32 per cycle) and copies.
lin_tiling lin_linear_tiling(int n, int k, int copies, int threads)
{
    lin_tiling cut = {0};
    long best = -1;
    const int most_n = (n + 23) / 24, most_k = (k + LIN_PANEL - 1) / LIN_PANEL;
    for (int i = 1; i <= most_n; i++) {
        const int tile_n = lin_round_up((n + i - 1) / i, 8);
        if (tile_n > LIN_TILE_N) continue;
        for (int j = 1; j <= most_k; j++) {
            const int tile_k = lin_round_up((k + j - 1) / j, LIN_PANEL);
            if (tile_k > LIN_TILE_K) continue;
            const int n_parts = (n + tile_n - 1) / tile_n, k_parts = (k + tile_k - 1) / tile_k;
            const long turns = (copies * n_parts * k_parts + threads - 1) / threads;
            const long cost = turns * ((long)tile_n * tile_k / 32 + tile_n + tile_k);
            if (best >= 0 && cost >= best) continue;
            best = cost;
            cut = (lin_tiling){n_parts, k_parts, tile_n, tile_k};
        }
    }
    assert(best >= 0); // some tile fits the scratch, whatever n and k are
    return cut;
}

void lin_linear_weight_gradient(lin_exec *exec, float *dw, float *db, const float *dy, const float *x, int rows, int n, int k,
                                lin_tile_product *product)
{
    assert(rows >= 0 && n > 0 && k > 0);
    weight_job job = {.exec = exec, .dw = dw, .db = db, .dy = dy, .x = x, .rows = rows, .n = n, .k = k, .product = product};
    const int threads = (size_t)rows * (size_t)n * (size_t)k < LIN_THREAD_WORK ? 1 : exec->n_threads;
    job.tiling = lin_linear_tiling(n, k, 1, threads);
    lin_pool_run(threads > 1 ? exec->pool : NULL, job.tiling.n_parts * job.tiling.k_parts, weight_piece, &job);
}

void lin_cpu_linear_backward_weight(lin_exec *exec, float *dw, float *db, const float *dy, const float *x, int rows, int n, int k)
{
    lin_linear_weight_gradient(exec, dw, db, dy, x, rows, n, k, LIN_DISPATCH(lin_linear_tile));
}
#endif
