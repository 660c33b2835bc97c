// Cases of ops_cases.h for the operations of a training run between its passes: the tally of losses, clipping, the
// optimiser.
#include "tests/kernels/ops_cases_internal.h"

/* ---- losses ---------------------------------------------------------------------------------------------------------------- */

static void ops_check_tally(ops_context *c, const lin_tally *got, const lin_tally *want)
{
    ops_digest_bytes(c, got, sizeof *got);
    test_require(got->bad == want->bad && (!want->bad || got->bad_index == want->bad_index),
                 "%s: bad is %d at %d, expected %d at %d", c->what, got->bad, got->bad_index, want->bad, want->bad_index);
    test_require(got->steps == want->steps, "%s: %lld steps, expected %lld", c->what, (long long)got->steps,
                 (long long)want->steps);
    if (want->bad) return; // the sums after a bad step are undefined
    test_require(fabs(got->loss - want->loss) <= 1e-12 * fabs(want->loss), "%s: the loss is %.17g, expected %.17g", c->what,
                 got->loss, want->loss);
    test_require(fabs(got->norm - want->norm) <= 1e-12 * want->norm, "%s: the norm is %.17g, expected %.17g", c->what, got->norm,
                 want->norm);
}

/* B utterances of random length, the first of every five with more labels than frames and the corresponding loss; then a bad one
 * or none. */
static void ops_tally_shape(ops_context *c, int B, double bad_loss, int bad_at)
{
    int *lengths = test_buffer((size_t)B, sizeof *lengths), *counts = test_buffer((size_t)B + 1, sizeof *counts);
    double *loss = test_buffer((size_t)B, sizeof *loss), sum = 0;
    counts[0] = 0;
    for (int b = 0; b < B; b++) {
        lengths[b] = ops_pick(c, 0, 30);
        counts[b + 1] = counts[b] + (b % 5 ? ops_pick(c, 0, lengths[b]) : lengths[b] + 1);
        loss[b] = b % 5 ? 300 * lin_random_uniform(ops_next_key(c), 0) : -1;
        if (b % 5) sum += loss[b];
    }
    const lin_segments segments = ops_segments_of(c, lengths, B);
    const int *label_offsets = ops_block(c, (size_t)B + 1, sizeof *counts, counts);
    lin_tally *tally = ops_block(c, 1, sizeof *tally, NULL), want = {.loss = 17.25, .norm = 3, .steps = 9};
    *tally = want;
    double *first = ops_block(c, (size_t)B, sizeof *loss, loss), *second = NULL;
    ops_say(c, "tally_losses of %d, the one at %d being %g", B, bad_at, bad_loss);
    c->ops->tally_losses(c->exec, tally, first, &segments, label_offsets);
    c->ref->tally_losses(c->ref_exec, &want, first, &segments, label_offsets);
    ops_check_tally(c, tally, &want);
    test_require(fabs(want.loss - 17.25 - sum) <= 1e-12 * sum, "%s: ref/ says %.17g for 17.25 + %.17g", c->what, want.loss, sum);
    if (bad_at >= 0) {
        loss[bad_at] = bad_loss;
        second = ops_block(c, (size_t)B, sizeof *loss, loss);
        const lin_tally before = want;
        c->ops->tally_losses(c->exec, tally, second, &segments, label_offsets);
        c->ref->tally_losses(c->ref_exec, &want, second, &segments, label_offsets);
        ops_check_tally(c, tally, &want);
        test_require(bad_at % 5 ? want.bad == LIN_BAD_LOSS && want.bad_index == bad_at : !want.bad, "%s: ref/ says %d at %d",
                     c->what, want.bad, want.bad_index);
        test_require(tally->norm == before.norm && isfinite(tally->loss), "%s: a bad loss got into the sums", c->what);
        const lin_tally settled = *tally;
        c->ops->tally_losses(c->exec, tally, first, &segments, label_offsets);
        ops_done(c);
        test_require(!want.bad || memcmp(tally, &settled, sizeof settled) == 0, "%s: a bad tally was changed", c->what);
    }
    TEST_FREE(lengths, counts, loss);
    ops_end(c);
}

void ops_case_tally_losses(ops_context *c)
{
    const int sizes[] = {1, 2, 33, 300};
    const double bad[] = {NAN, INFINITY, -INFINITY, -1, -1e-3};
    for (int s = 0; s < 4; s++) {
        ops_tally_shape(c, sizes[s], 0, -1);
        for (int i = 0; i < 5; i++) {
            if (ops_thin(c, 3)) continue;
            ops_tally_shape(c, sizes[s], bad[i], sizes[s] - 1); // the last one, which may be one that is skipped
            ops_tally_shape(c, sizes[s], bad[i], sizes[s] / 3);
        }
    }
    ops_tally_shape(c, 0, 0, -1);
}

/* ---- clipping -------------------------------------------------------------------------------------------------------------- */

/* `zeros`: of the norms, every third is 0. most is given as a share of what decides: the norm of all, or 1. */
static void ops_clip_shape(ops_context *c, int n, double most, int per_tensor)
{
    double *random = test_buffer((size_t)n, sizeof *random), total = 0;
    test_fill_f64(random, (size_t)n, ops_next_key(c), 0, 4);
    for (int i = 0; i < n; i += 3) random[i] = i ? 0 : 1; // the norm of the first is exactly 1
    for (int i = 0; i < n; i++) total += random[i];
    if (!per_tensor) most *= sqrt(total);
    double *norms = ops_block(c, (size_t)n, sizeof *norms, random), *scale = ops_block(c, (size_t)n, sizeof *scale, NULL);
    double *want_scale = ops_block(c, (size_t)n, sizeof *want_scale, NULL);
    lin_tally *tally = ops_block(c, 1, sizeof *tally, NULL), want = {.loss = 2.5, .norm = 99, .steps = 41};
    *tally = want;
    ops_say(c, "clip of %d tensors to %g, per tensor %d", n, most, per_tensor);
    c->ops->clip(c->exec, scale, tally, norms, n, most, per_tensor);
    c->ref->clip(c->ref_exec, want_scale, &want, norms, n, most, per_tensor);
    ops_check_tally(c, tally, &want);
    ops_digest_bytes(c, scale, (size_t)n * sizeof *scale);
    test_require(want.steps == 42 && fabs(want.norm - sqrt(total)) <= 1e-12 * want.norm, "%s: ref/ says a norm of %g", c->what,
                 want.norm);
    double worst = 0;
    for (int i = 0; i < n; i++) {
        test_require(fabs(scale[i] - want_scale[i]) <= 1e-12, "%s: scale %d is %.17g, expected %.17g", c->what, i, scale[i],
                     want_scale[i]);
        const double size = want_scale[i] * sqrt(per_tensor ? norms[i] : total);
        worst = fmax(worst, size);
        test_require(want_scale[i] == 1 || fabs(size - most) <= 1e-12 * most, "%s: ref/ scales %d by %g", c->what, i,
                     want_scale[i]);
    }
    test_require(most == 0 || worst <= most * (1 + 1e-12), "%s: ref/ leaves a norm of %g", c->what, worst);
    test_buffer_free(random);
    ops_end(c);
}

/* One norm that is no number, and perhaps others after it. */
static void ops_clip_bad(ops_context *c, int n, int at, double value, int per_tensor)
{
    double *random = test_buffer((size_t)n, sizeof *random);
    test_fill_f64(random, (size_t)n, ops_next_key(c), 0, 4);
    const double *good = ops_block(c, (size_t)n, sizeof *random, random);
    for (int i = at; i < n; i += 5) random[i] = value;
    const double *norms = ops_block(c, (size_t)n, sizeof *random, random);
    double *scale = ops_block(c, (size_t)n, sizeof *scale, NULL);
    lin_tally *tally = ops_block(c, 1, sizeof *tally, NULL), want = {.loss = 2.5, .norm = 99, .steps = 41};
    *tally = want;
    ops_say(c, "clip of %d tensors, %g at %d", n, value, at);
    c->ops->clip(c->exec, scale, tally, norms, n, 1, per_tensor);
    c->ref->clip(c->ref_exec, scale, &want, norms, n, 1, per_tensor);
    ops_check_tally(c, tally, &want);
    test_require(want.bad == LIN_BAD_GRADIENT && want.bad_index == at && want.steps == 41, "%s: ref/ says %d at %d", c->what,
                 want.bad, want.bad_index);
    const lin_tally settled = *tally;
    c->ops->clip(c->exec, scale, tally, good, n, 1, per_tensor);
    ops_done(c);
    test_require(memcmp(tally, &settled, sizeof settled) == 0, "%s: a bad tally was changed", c->what);
    test_buffer_free(random);
    ops_end(c);
}

void ops_case_clip(ops_context *c)
{
    const int sizes[] = {1, 7, 33, 150, 1025};
    const double limits[] = {0, 1, 0.25, 1.5, 1e-3, 1e3};
    for (int s = 0; s < 5; s++)
        for (int per_tensor = 0; per_tensor < 2; per_tensor++) {
            for (int m = 0; m < 6; m++)
                if (!ops_thin(c, 5)) ops_clip_shape(c, sizes[s], limits[m], per_tensor);
            ops_clip_bad(c, sizes[s], 0, NAN, per_tensor);
            ops_clip_bad(c, sizes[s], sizes[s] - 1, INFINITY, per_tensor);
            ops_clip_bad(c, sizes[s], sizes[s] / 2, NAN, per_tensor);
        }
}

/* ---- optimiser ------------------------------------------------------------------------------------------------------------- */

void ops_case_optimiser(ops_context *c)
{
    enum { N_TENSORS = 450, KINDS = 7 }; // more than a launch lists
    const size_t lengths[KINDS] = {1, 0, 7, 17, 4097, 48, c->options->quick ? 3000 : 20000};
    const double shares[KINDS] = {1, 1, 0.25, 0, 0.5, 1, 0.125};
    size_t offsets[N_TENSORS + 1] = {5};
    double factors[N_TENSORS];
    unsigned char decay[N_TENSORS];
    for (int i = 0; i < N_TENSORS; i++) {
        const int some = i >= KINDS && i % 150 != 149; // of few elements
        offsets[i + 1] = offsets[i] + (some ? i % 9 == 4 ? 0 : (size_t)ops_pick(c, 1, 60) : lengths[i < KINDS ? i : 4]);
        factors[i] = some ? lin_random_uniform(ops_next_key(c), 0) : shares[i % KINDS];
        decay[i] = i % 3 != 2;
    }
    const size_t n = offsets[N_TENSORS];
    const lin_tensors tensors = {N_TENSORS, offsets, decay};
    for (int form = 0; form < 4; form++) {
        pair p = ops_inout(c, n, -1, 1), m = ops_inout(c, n, 0, 0), v = ops_inout(c, n, 0, 0);
        const double *scale = ops_block(c, N_TENSORS, sizeof *scale, factors);
        const lin_tally good = {.loss = 1, .steps = 5}, bad = {.bad = LIN_BAD_LOSS, .bad_index = 3};
        const lin_tally *tally = ops_block(c, 1, sizeof good, &good), *stopped = ops_block(c, 1, sizeof bad, &bad);
        ops_say(c, "adam, adaptive %d, decoupled %d", form & 1, form >> 1);
        for (int t = 1; t <= 4; t++) {
            pair grad = ops_in(c, n, -3, 2);
            const lin_adam_step scalars = {.beta1 = 0.9,
                                           .beta2 = 0.999,
                                           .eps = 1e-8,
                                           .weight_decay = 0.01,
                                           .lr = 0.02,
                                           .step_size = 0.02 / (1 - pow(0.9, t)),
                                           .v_scale = 1 / sqrt(1 - pow(0.999, t)),
                                           .adaptive = form & 1,
                                           .decoupled = form >> 1};
            const lin_adam_step *step = ops_block(c, 1, sizeof scalars, &scalars);
            c->ops->adam(c->exec, p.f, grad.f, m.f, v.f, &tensors, scale, step, t % 2 ? NULL : tally);
            c->ops->adam(c->exec, p.f, grad.f, m.f, v.f, &tensors, scale, step, stopped); // nothing happens
            c->ref->adam(c->ref_exec, p.d, grad.d, m.d, v.d, &tensors, scale, step, NULL);
            c->ref->adam(c->ref_exec, p.d, grad.d, m.d, v.d, &tensors, scale, step, stopped);
        }
        ops_check(c, "p", p, 4e-6);
        ops_check(c, "m", m, 2e-6);
        ops_check(c, "v", v, 2e-6);
        double *norms = ops_block(c, N_TENSORS, sizeof *norms, NULL), want[N_TENSORS];
        ops_widen(p);
        c->ops->sum_squares(c->exec, norms, p.f, &tensors);
        c->ref->sum_squares(c->ref_exec, want, p.d, &tensors);
        ops_digest_bytes(c, norms, sizeof want);
        for (int i = 0; i < N_TENSORS; i++)
            ck_assert_msg(fabs(norms[i] - want[i]) <= 1e-12 * want[i], "%s: sum of squares %d is %.17g, expected %.17g", c->what,
                          i, norms[i], want[i]);
        ops_end(c);
    }
}
