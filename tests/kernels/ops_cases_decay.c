// Cases of ops_cases.h for linear attention that forgets. A backend without the operations passes.
#include "tests/kernels/ops_cases_internal.h"

typedef struct shape {
    int H, E, constant;
    double low, high; // of the gates
} shape;

static void check_shape(ops_context *c, const ops_layout *layout, shape s, double lo, double hi)
{
    const lin_segments segments = ops_segments(c, layout);
    const int H = s.H, E = s.E;
    const size_t n = (size_t)segments.rows * (size_t)(H * E), n_gates = (size_t)segments.rows * (size_t)H;
    pair qkv = ops_in(c, 3 * n, lo, hi), dy = ops_in(c, n, -1, 1),
         gates = ops_in(c, s.constant ? (size_t)H : n_gates, s.low, s.high), y = ops_out(c, n), carried = ops_out(c, n),
         dqkv = ops_out(c, 3 * n), dgates = ops_out(c, n_gates), again = ops_out(c, 3 * n);
    const ops_states states = ops_some_states(c, layout->B, (size_t)(H * (E + 1) * E), 0, 4);
    ops_say(c, "decayed attention B %d rows %d H %d E %d in %g..%g, %s gates in %g..%g", layout->B, segments.rows, H, E, lo, hi,
            s.constant ? "constant" : "own", s.low, s.high);
    c->ops->decayed_attention_forward(c->exec, y.f, qkv.f, gates.f, s.constant, &segments, H, E, NULL, 0);
    c->ops->decayed_attention_backward(c->exec, dqkv.f, dgates.f, dy.f, qkv.f, gates.f, s.constant, y.f, &segments, H, E);
    c->ops->decayed_attention_backward(c->exec, again.f, NULL, dy.f, qkv.f, gates.f, s.constant, y.f, &segments, H, E);
    c->ops->decayed_attention_forward(c->exec, carried.f, qkv.f, gates.f, s.constant, &segments, H, E, states.f, states.at);
    if (!c->options->digest_only) {
        c->ref->decayed_attention_forward(c->ref_exec, y.d, qkv.d, gates.d, s.constant, &segments, H, E, NULL, 0);
        c->ref->decayed_attention_backward(c->ref_exec, dqkv.d, dgates.d, dy.d, qkv.d, gates.d, s.constant, y.d, &segments, H, E);
        c->ref->decayed_attention_forward(c->ref_exec, carried.d, qkv.d, gates.d, s.constant, &segments, H, E, states.d,
                                          states.at);
    }
    const double decays = segments.longest * 0x1p-25; // a is rounded to fp32: so far off is the product of a over an utterance
    ops_check(c, "y", y, 4e-6 + decays);
    ops_check(c, "dqkv", dqkv, 2e-5 + decays);
    ops_check_same(c, "dqkv without dgates", again.f, dqkv.f, 3 * n, 0);
    ops_check_scaled(c, "dgates", dgates, 1e-5, 1); // a sum of large terms that cancel
    ops_check(c, "y after a state", carried, 4e-6 + decays);
    for (int b = 0; b < layout->B; b++) ops_check(c, "state", states.of[b], 4e-6 + decays);
    ops_end(c);
}

void ops_case_decayed(ops_context *c)
{
    const int widths[] = {1, 5, 8, 16, 32, 33, 64}, heads[] = {6, 1, 2, 3, 2, 1, 1};
    const double gates[][2] = {{-2, 2}, {-30, 0}, {3, 9}};
    if (!c->ops->decayed_attention_forward) return;
    for (int constant = 0; constant < 2; constant++)
        for (int g = 0; g < 3; g++)
            for (int w = 0; w < 7; w++)
                for (int l = 0; l < OPS_N_LAYOUTS; l++)
                    if (!ops_thin(c, 7) && !ops_too_large(c, &ops_layouts[l]))
                        check_shape(c, &ops_layouts[l], (shape){heads[w], widths[w], constant, gates[g][0], gates[g][1]}, -2, 2);
}

/* Many chunks, and heads without tiles on a GPU. */
void ops_case_decayed_long(ops_context *c)
{
    const ops_layout one = {1, {333}}, several = {3, {128, 129, 63}}, stretches = {4, {1300, 0, 10, 700}};
    if (!c->ops->decayed_attention_forward) return;
    check_shape(c, &one, (shape){1, 32, 0, -1, 8}, -1, 1);
    check_shape(c, &ops_layouts[4], (shape){2, 70, 0, -2, 8}, -1, 1);
    if (c->options->quick) return;
    check_shape(c, &stretches, (shape){1, 32, 0, 4, 8}, -1, 1);
    check_shape(c, &stretches, (shape){1, 8, 1, 5, 6}, -1, 1);
    check_shape(c, &several, (shape){1, 17, 0, -80, 80}, -3, 3);
    check_shape(c, &several, (shape){2, 256, 0, 0, 8}, -1, 1);
    check_shape(c, &ops_layouts[4], (shape){6, 32, 0, 0, 8}, -1, 1);
}

/* Gates at both ends: without decay the result is that of attention_forward; below -80 a gate counts as -80. */
void ops_case_decayed_extremes(ops_context *c)
{
    enum { H = 2, E = 8 };
    const ops_layout *layout = &ops_layouts[4];
    if (!c->ops->decayed_attention_forward) return;
    check_shape(c, layout, (shape){H, E, 0, -1000, -70}, -2, 2);
    check_shape(c, layout, (shape){H, E, 1, 1e30, 1e30}, -2, 2);
    const lin_segments segments = ops_segments(c, layout);
    const size_t n = (size_t)segments.rows * H * E;
    pair qkv = ops_in(c, 3 * n, -2, 2), dy = ops_in(c, n, -1, 1), gates = ops_in(c, H, 25, 60), y = ops_out(c, n),
         plain = ops_out(c, n), dqkv = ops_out(c, 3 * n), plain_dqkv = ops_out(c, 3 * n);
    ops_say(c, "attention with gates that keep everything");
    c->ops->decayed_attention_forward(c->exec, y.f, qkv.f, gates.f, 1, &segments, H, E, NULL, 0);
    c->ops->attention_forward(c->exec, plain.f, qkv.f, &segments, H, E, 1, NULL, 0);
    ops_check_same(c, "y", y.f, plain.f, n, 4e-6);
    c->ops->decayed_attention_backward(c->exec, dqkv.f, NULL, dy.f, qkv.f, gates.f, 1, y.f, &segments, H, E);
    c->ops->attention_backward(c->exec, plain_dqkv.f, dy.f, qkv.f, y.f, &segments, H, E, 1);
    ops_check_same(c, "dqkv", dqkv.f, plain_dqkv.f, 3 * n, 2e-5);
    ops_end(c);
}

/* x: rows of qkv, then the gates. */
static void decayed_call(ops_context *c, const void *context, float *y, const float *x, const lin_segments *segments,
                         float *const *carry, size_t at)
{
    const shape *s = context;
    const size_t rows = (size_t)segments->rows, H = (size_t)s->H, wide = 3 * H * (size_t)s->E;
    float *qkv = test_buffer(rows * wide + 1, sizeof *qkv), *gates = test_buffer(rows * H + 1, sizeof *gates);
    for (size_t t = 0; t < rows; t++) {
        memcpy(qkv + t * wide, x + t * (wide + H), wide * sizeof *x);
        memcpy(gates + t * H, x + t * (wide + H) + wide, H * sizeof *x);
    }
    for (size_t i = 0; i < rows * H; i++) gates[i] *= 4;
    c->ops->decayed_attention_forward(c->exec, y, qkv, gates, 0, segments, s->H, s->E, carry, at);
    ops_done(c);
    TEST_FREE(qkv, gates);
}

void ops_case_decayed_splits(ops_context *c)
{
    const shape shapes[] = {{.H = 6, .E = 1},  {.H = 2, .E = 8},  {.H = 2, .E = 32},
                            {.H = 1, .E = 33}, {.H = 3, .E = 16}, {.H = 2, .E = 40}};
    const ops_layout longer = {3, {150, 64, 257}};
    if (!c->ops->decayed_attention_forward) return;
    for (int s = 0; s < 6; s++)
        for (int l = 0; l <= OPS_N_LAYOUTS; l++)
            for (int longest = 1; longest < 300; longest = longest * 5 + 1) {
                const size_t H = (size_t)shapes[s].H, E = (size_t)shapes[s].E;
                if (ops_thin(c, 11) || (c->options->quick && (l == OPS_N_LAYOUTS || ops_too_large(c, &ops_layouts[l])))) continue;
                ops_say(c, "decayed_attention_forward in pieces up to %d, layout %d H %zu E %zu", longest, l, H, E);
                ops_check_splits(c, decayed_call, &shapes[s], l < OPS_N_LAYOUTS ? &ops_layouts[l] : &longer, 3 * H * E + H, H * E,
                                 H * E * (E + 1), longest, 4e-6);
            }
}
