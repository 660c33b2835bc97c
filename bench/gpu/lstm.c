// One layer of the paper's bidirectional LSTM, 320 units a direction on the 640 outputs of the layer below: the recurrence
// alone, and with the product of its inputs; forward, and forward and backward. All utterances are of the same length.
#include "bench/gpu/gpu.h"

enum { U = 320, DIRECTIONS = 2, K = DIRECTIONS * U, N = DIRECTIONS * 4 * U, MOST_B = 64 };

typedef struct layer {
    gpu_bench *b;
    lin_segments segments;
    float *x, *w, *R, *bias, *dh; // w [N, K], R [DIRECTIONS, 4, U, U]
    float *packed_w, *packed_w_dx, *packed_R, *packed_R_dx;
    float *gates, *h, *cells, *dgates, *dx, *dw, *dbias, *dR;
    int inputs; // with their product
} layer;

static size_t pitch(const gpu_bench *b, int n, int k) { return (b->ops->weight_size(n, k) + 15) / 16 * 16; }

static void run_forward(void *context)
{
    const layer *l = context;
    const lin_ops *ops = l->b->ops;
    lin_exec *exec = l->b->exec;
    if (l->inputs) ops->linear_forward(exec, l->gates, l->x, l->packed_w, l->bias, l->segments.rows, N, K, LIN_LINEAR);
    ops->lstm_forward(exec, l->h, l->cells, l->gates, l->packed_R, &l->segments, U, DIRECTIONS, NULL, 0);
}

static void run_both(void *context)
{
    const layer *l = context;
    const lin_ops *ops = l->b->ops;
    lin_exec *exec = l->b->exec;
    run_forward(context);
    ops->lstm_backward(exec, l->dgates, l->dR, l->dh, l->h, l->cells, l->gates, l->packed_R_dx, &l->segments, U, DIRECTIONS);
    if (!l->inputs) return;
    ops->linear_backward_weight(exec, l->dw, l->dbias, l->dgates, l->x, l->segments.rows, N, K);
    ops->linear_forward(exec, l->dx, l->dgates, l->packed_w_dx, NULL, l->segments.rows, K, N, LIN_LINEAR);
}

static void pack(const layer *l)
{
    lin_packing items[DIRECTIONS], items_dx[DIRECTIONS];
    for (int d = 0; d < DIRECTIONS; d++) {
        items[d] = (lin_packing){.from = (size_t)d * 4 * U * U, .to = (size_t)d * pitch(l->b, 4 * U, U), .n = 4 * U, .k = U};
        items_dx[d] = (lin_packing){.from = (size_t)d * 4 * U * U, .to = (size_t)d * pitch(l->b, U, 4 * U),
                                    .n = 4 * U, .k = U, .transposed = 1};
    }
    l->b->ops->weights_pack(l->b->exec, l->packed_R, l->R, items, DIRECTIONS);
    l->b->ops->weights_pack(l->b->exec, l->packed_R_dx, l->R, items_dx, DIRECTIONS);
    l->b->ops->weights_pack(l->b->exec, l->packed_w, l->w, &(lin_packing){.n = N, .k = K}, 1);
    l->b->ops->weights_pack(l->b->exec, l->packed_w_dx, l->w, &(lin_packing){.n = N, .k = K, .transposed = 1}, 1);
}

static void say(const layer *l, int both, double seconds)
{
    static const char *const names[2][2] = {{"recurrence, forward", "recurrence, both passes"},
                                            {"layer, forward", "layer, both passes"}};
    gpu_line("lstm", "linnet");
    gpu_text("precision", l->b->precision_name);
    gpu_text("what", names[l->inputs][both]);
    gpu_number("B", l->segments.B);
    gpu_number("T", l->segments.longest);
    gpu_number("us", 1e6 * seconds);
    gpu_number("us_per_step", 1e6 * seconds / l->segments.longest);
    const double mib = gpu_memory_mib(l->b);
    if (mib >= 0) gpu_number("mib", mib);
    gpu_line_end();
}

static void measure(gpu_bench *b, int B, int T)
{
    int offsets[MOST_B + 1];
    for (int i = 0; i <= B; i++) offsets[i] = i * T;
    gpu_open(b);
    if (!b->ops->lstm_forward) {
        gpu_close(b);
        return;
    }
    int *on_device = gpu_integers(b, offsets, (size_t)B + 1);
    layer l = {.b = b, .segments = {.B = B, .rows = B * T, .longest = T, .offsets = on_device}};
    const size_t rows = (size_t)B * (size_t)T;
    const struct {
        float **to;
        size_t count;
        double deviation; // 0: zeros
    } blocks[] = {{&l.x, rows * K, 1},          {&l.w, (size_t)N * K, 0.03},  {&l.R, (size_t)N * U, 0.03},
                  {&l.bias, N, 0.03},           {&l.dh, rows * K, 1},         {&l.packed_w, b->ops->weight_size(N, K), 0},
                  {&l.gates, rows * N, 1},      {&l.h, rows * K, 0},          {&l.packed_w_dx, b->ops->weight_size(K, N), 0},
                  {&l.cells, rows * K, 0},      {&l.dgates, rows * N, 0},     {&l.packed_R, DIRECTIONS * pitch(b, 4 * U, U), 0},
                  {&l.dx, rows * K, 0},         {&l.dw, (size_t)N * K, 0},
                  {&l.packed_R_dx, DIRECTIONS * pitch(b, U, 4 * U), 0},
                  {&l.dR, (size_t)N * U, 0},    {&l.dbias, N, 0}};
    enum { BLOCKS = sizeof blocks / sizeof *blocks };
    for (int i = 0; i < BLOCKS; i++)
        *blocks[i].to = blocks[i].deviation > 0 ? gpu_random(b, blocks[i].count, blocks[i].deviation, (uint64_t)i + 1)
                                                : gpu_block(b, blocks[i].count * sizeof(float));
    pack(&l);
    for (l.inputs = 0; l.inputs < 2; l.inputs++)
        for (int both = 0; both < 2 && !gpu_late(b); both++) {
            const double seconds = gpu_clock(b, both ? run_both : run_forward, &l);
            if (seconds > 0) say(&l, both, seconds);
        }
    for (int i = 0; i < BLOCKS; i++) b->ops->memory_destroy(b->exec, *blocks[i].to);
    b->ops->memory_destroy(b->exec, on_device);
    gpu_close(b);
}

void gpu_part_lstm(gpu_bench *b)
{
    static const int batches[] = {16, 48, 1};
    for (int i = 0; i < (b->quick ? 1 : 3) && !gpu_late(b); i++) measure(b, b->quick ? 2 : batches[i], b->quick ? 12 : 800);
}
