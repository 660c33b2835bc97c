// Cases of ops_cases.h for mixtures of discretised logistics. A backend without the operation passes.
#include "tests/kernels/ops_cases_internal.h"

/* Sums are in double on every backend: each element of the gradient is as exact as its type. */
static void check_gradient(ops_context *c, const char *name, pair dx, double scale)
{
    ops_digest_bytes(c, dx.f, dx.n * sizeof *dx.f);
    for (size_t i = 0; i < dx.n && !c->options->digest_only; i++)
        test_require(fabs((double)dx.f[i] - dx.d[i]) <= 1e-6 * fabs(dx.d[i]) + 1e-12 * scale,
                     "%s, %s: element %zu of %zu is %.9g, expected %.9g", c->what, name, i, dx.n, (double)dx.f[i], dx.d[i]);
}

/* x [rows, 3 M] and targets as they are: loss, loss alone, gradient, and in place. */
static void check(ops_context *c, const lin_segments *segments, pair x, const int *targets, int M)
{
    const size_t B = (size_t)segments->B;
    const double scale = 0.5, *on_device = ops_block(c, 1, sizeof scale, &scale);
    double *loss = ops_block(c, B, sizeof *loss, NULL), *alone = ops_block(c, B, sizeof *loss, NULL),
           *want = ops_block(c, B, sizeof *loss, NULL);
    pair dx = ops_out(c, x.n), alias = ops_inout(c, x.n, 0, 0);
    if (x.n) memcpy(alias.f, x.f, x.n * sizeof *x.f);
    c->ops->mixture(c->exec, loss, dx.f, x.f, segments, targets, M, on_device);
    c->ops->mixture(c->exec, alone, NULL, x.f, segments, targets, M, NULL);
    c->ref->mixture(c->ref_exec, want, dx.d, x.d, segments, targets, M, &scale);
    check_gradient(c, "dx", dx, scale);
    ops_check_loss(c, loss, want, segments->B, 1e-12);
    ops_check_loss(c, alone, want, segments->B, 1e-12);
    for (size_t b = 0; b < B; b++) test_require(loss[b] >= 0 && isfinite(loss[b]), "%s: loss %zu is %g", c->what, b, loss[b]);
    for (int t = 0; t < segments->rows; t++)
        for (int i = 0; i < 3 * M; i++) {
            const float g = dx.f[t * 3 * M + i];
            test_require(isfinite(g) && (targets[t] >= 0 || g == 0), "%s: gradient %d of row %d, with target %d, is %g", c->what,
                         i, t, targets[t], (double)g);
        }
    c->ops->mixture(c->exec, loss, alias.f, alias.f, segments, targets, M, on_device);
    ops_check_same(c, "in place", alias.f, dx.f, dx.n, 1e-6);
    ops_check_loss(c, loss, want, segments->B, 1e-12);
}

/* Numbers as a network has them: means in and around the range, log scales down to where -7 is taken for them. */
static void check_shape(ops_context *c, const ops_layout *layout, int M)
{
    const lin_segments segments = ops_segments(c, layout);
    int *targets = ops_block(c, (size_t)segments.rows, sizeof *targets, NULL);
    pair x = ops_in(c, (size_t)(segments.rows * 3 * M), -4, 4);
    for (int t = 0; t < segments.rows; t++) {
        const int kind = ops_pick(c, 0, 9);
        targets[t] = kind == 0 ? -1 : kind == 1 ? 0 : kind == 2 ? 255 : ops_pick(c, 0, 255);
        for (int m = 0; m < M; m++) {
            x.f[t * 3 * M + M + m] *= 0.4F;
            x.f[t * 3 * M + 2 * M + m] -= 4;
        }
    }
    ops_widen(x);
    ops_say(c, "mixture B %d rows %d M %d", layout->B, segments.rows, M);
    check(c, &segments, x, targets, M);
    ops_end(c);
}

void ops_case_mixture(ops_context *c)
{
    const int sizes[] = {1, 2, 10, 64};
    if (!c->ops->mixture) return;
    for (int i = 0; i < 4; i++)
        for (int l = 0; l < OPS_N_LAYOUTS; l++)
            if (!ops_thin(c, 5) && !ops_too_large(c, &ops_layouts[l])) check_shape(c, &ops_layouts[l], sizes[i]);
    const ops_layout long_one = {2, {300, 1}}; // more rows than a block has threads
    check_shape(c, &long_one, 3);
}

/* Each extreme of one logistic with each of the other, for targets at and between the ends. */
void ops_case_mixture_extremes(ops_context *c)
{
    const float logits[] = {0, -50, 1e4F, -1e30F}, means[] = {-1, 0.3F, 1, -40, 1e4F, -1e30F},
                scales[] = {-7, -7.0001F, -6.9999F, -100, -1e30F, -3, 0, 30, 700, 1e5F};
    const int values[] = {0, 1, 128, 254, 255, -1};
    enum { M = 2, LOGITS = 4, MEANS = 6, SCALES = 10, VALUES = 6, ROWS = LOGITS * MEANS * SCALES * VALUES };
    if (!c->ops->mixture) return;
    const lin_segments segments = ops_segments_of(c, (const int[]){ROWS / 2, ROWS / 2}, 2);
    int *targets = ops_block(c, ROWS, sizeof *targets, NULL);
    pair x = ops_in(c, ROWS * 3 * M, -1, 1);
    for (int t = 0; t < ROWS; t++) {
        int left = t;
        float *row = x.f + t * 3 * M;
        targets[t] = values[left % VALUES], left /= VALUES;
        row[2 * M] = scales[left % SCALES], left /= SCALES;
        row[M] = means[left % MEANS], left /= MEANS;
        row[0] = logits[left % LOGITS];
        row[1] = 0;
        if (t % 4 == 1) row[2 * M + 1] = scales[t % SCALES];
    }
    ops_widen(x);
    ops_say(c, "mixture of extremes");
    check(c, &segments, x, targets, M);
    ops_end(c);
}
