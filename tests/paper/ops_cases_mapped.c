// Cases of ops_cases.h for linear attention with other feature maps. A backend without the operations passes.
#include "tests/kernels/ops_cases_internal.h"

typedef struct mapped_shape {
    lin_map map;
    int H, E, causal;
    const float *omega;
} mapped_shape;

static mapped_shape shape_of(lin_map_kind kind, int D, int H, int E, int causal)
{
    return (mapped_shape){{kind, kind == LIN_MAP_POLY2 ? E * (E + 3) / 2 + 1 : D}, H, E, causal, NULL};
}

/* Rows of omega; [0] where there are none. */
static pair omega_for(ops_context *c, const mapped_shape *s)
{
    return ops_in(c, s->map.kind == LIN_MAP_RANDOM ? (size_t)s->H * (size_t)s->map.D * (size_t)s->E : 0, -1.5, 1.5);
}

/* A state that some frames could have left: the denominator of a sum of products of features is positive, that of any numbers is
 * not. */
static void fill_state(ops_context *c, pair state, size_t at, const mapped_shape *s, pair omega)
{
    enum { FRAMES = 3 };
    const size_t width = (size_t)(s->H * s->E), used = state.n - at;
    const int offsets[] = {0, FRAMES};
    const lin_segments segments = {1, FRAMES, FRAMES, offsets};
    double *qkv = test_buffer(FRAMES * 3 * width, sizeof *qkv), *y = test_buffer(FRAMES * width, sizeof *y), *table[] = {state.d};
    test_fill_f64(qkv, FRAMES * 3 * width, ops_next_key(c), -0.8, 0.8);
    for (size_t i = at; i < state.n; i++) state.d[i] = 0;
    c->ref->mapped_attention_forward(c->ref_exec, y, qkv, omega.d, &segments, &s->map, s->H, s->E, 1, table, at);
    for (size_t i = 0; i < used; i++) state.f[at + i] = (float)state.d[at + i];
    ops_widen(state);
    TEST_FREE(qkv, y);
}

static void check_shape(ops_context *c, const ops_layout *layout, mapped_shape s, double lo, double hi)
{
    const lin_segments segments = ops_segments(c, layout);
    const size_t n = (size_t)segments.rows * (size_t)(s.H * s.E);
    const int D = s.map.D, H = s.H, E = s.E;
    pair qkv = ops_in(c, 3 * n, lo, hi), dy = ops_in(c, n, -1, 1), omega = omega_for(c, &s), y = ops_out(c, n),
         carried = ops_out(c, n), dqkv = ops_out(c, 3 * n);
    const ops_states states = ops_some_states(c, layout->B, (size_t)H * (size_t)D * (size_t)(E + 1), 0, 0);
    for (int b = 0; b < layout->B; b++) fill_state(c, states.of[b], states.at, &s, omega);
    ops_say(c, "mapped attention kind %d B %d rows %d H %d E %d D %d causal %d in %g..%g", (int)s.map.kind, layout->B,
            segments.rows, H, E, D, s.causal, lo, hi);
    c->ops->mapped_attention_forward(c->exec, y.f, qkv.f, omega.f, &segments, &s.map, H, E, s.causal, NULL, 0);
    c->ops->mapped_attention_backward(c->exec, dqkv.f, dy.f, qkv.f, omega.f, y.f, &segments, &s.map, H, E, s.causal);
    if (s.causal)
        c->ops->mapped_attention_forward(c->exec, carried.f, qkv.f, omega.f, &segments, &s.map, H, E, 1, states.f, states.at);
    if (!c->options->digest_only) {
        c->ref->mapped_attention_forward(c->ref_exec, y.d, qkv.d, omega.d, &segments, &s.map, H, E, s.causal, NULL, 0);
        c->ref->mapped_attention_backward(c->ref_exec, dqkv.d, dy.d, qkv.d, omega.d, y.d, &segments, &s.map, H, E, s.causal);
        if (s.causal)
            c->ref->mapped_attention_forward(c->ref_exec, carried.d, qkv.d, omega.d, &segments, &s.map, H, E, 1, states.d,
                                             states.at);
    }
    ops_check(c, "y", y, 2e-5);
    ops_check(c, "dqkv", dqkv, 1e-4);
    if (s.causal) ops_check(c, "y after a state", carried, 2e-5);
    for (int b = 0; b < layout->B; b++) ops_check(c, "state", states.of[b], 4e-6);
    ops_end(c);
}

void ops_case_mapped(ops_context *c)
{
    const int widths[] = {1, 2, 5, 8, 16, 32, 33}, heads[] = {3, 2, 2, 1, 2, 1, 1}, features[] = {1, 7, 16, 64, 33, 48, 100};
    if (!c->ops->mapped_attention_forward) return;
    for (int kind = LIN_MAP_POLY2; kind <= LIN_MAP_RANDOM; kind++)
        for (int causal = 0; causal < 2; causal++)
            for (int w = 0; w < 7; w++)
                for (int l = 0; l < OPS_N_LAYOUTS; l++)
                    if (!ops_thin(c, 7) && !ops_too_large(c, &ops_layouts[l]))
                        check_shape(c, &ops_layouts[l], shape_of(kind, features[w], heads[w], widths[w], causal), -0.8, 0.8);
}

/* Inputs far from 0: products of poly2 of 1e8 and more, random features near the ends of a float's range. Nothing overflows. */
static void check_far(ops_context *c, mapped_shape s, double range)
{
    enum { T = 50 };
    const lin_segments segments = ops_segments_of(c, (const int[]){T}, 1);
    const size_t n = (size_t)(T * s.H * s.E);
    pair qkv = ops_in(c, 3 * n, -range, range), dy = ops_in(c, n, -1, 1), omega = omega_for(c, &s), y = ops_out(c, n),
         dqkv = ops_out(c, 3 * n);
    ops_say(c, "mapped attention kind %d causal %d in +-%g", (int)s.map.kind, s.causal, range);
    c->ops->mapped_attention_forward(c->exec, y.f, qkv.f, omega.f, &segments, &s.map, s.H, s.E, s.causal, NULL, 0);
    c->ops->mapped_attention_backward(c->exec, dqkv.f, dy.f, qkv.f, omega.f, y.f, &segments, &s.map, s.H, s.E, s.causal);
    ops_done(c);
    for (size_t i = 0; i < 3 * n; i++)
        test_require(isfinite(dqkv.f[i]) && isfinite(y.f[i / 3]), "%s: element %zu is not finite", c->what, i);
    ops_end(c);
}

/* Many chunks, and the largest shapes. */
void ops_case_mapped_long(ops_context *c)
{
    const ops_layout one = {1, {333}}, few = {2, {9, 20}}, around = {8, {31, 32, 33, 63, 64, 97, 2, 1}}, longest = {1, {2400}};
    if (!c->ops->mapped_attention_forward) return;
    for (int causal = 0; causal < 2; causal++) {
        check_far(c, shape_of(LIN_MAP_POLY2, 0, 1, 16, causal), 300);
        check_far(c, shape_of(LIN_MAP_RANDOM, 40, 1, 16, causal), 8);
        check_shape(c, &one, shape_of(LIN_MAP_RANDOM, 64, 1, 16, causal), -1.5, 1.5);
        if (c->options->quick) continue;
        for (int kind = LIN_MAP_POLY2; kind <= LIN_MAP_RANDOM; kind++) { // lengths around a chunk's
            check_shape(c, &around, shape_of(kind, 19, 1, 5, causal), -0.8, 0.8);
            check_shape(c, &longest, shape_of(kind, 32, 1, 8, causal), -0.8, 0.8);
        }
        check_shape(c, &one, shape_of(LIN_MAP_POLY2, 0, 1, 32, causal), -0.8, 0.8);
        check_shape(c, &few, shape_of(LIN_MAP_POLY2, 0, 1, 64, causal), -0.8, 0.8);
        check_shape(c, &few, shape_of(LIN_MAP_RANDOM, 1024, 1, 64, causal), -1, 1);
    }
}

static void mapped_call(ops_context *c, const void *shape, float *y, const float *x, const lin_segments *segments,
                        float *const *carry, size_t at)
{
    const mapped_shape *s = shape;
    c->ops->mapped_attention_forward(c->exec, y, x, s->omega, segments, &s->map, s->H, s->E, 1, carry, at);
}

void ops_case_mapped_splits(ops_context *c)
{
    const mapped_shape shapes[] = {shape_of(LIN_MAP_POLY2, 0, 2, 5, 1), shape_of(LIN_MAP_POLY2, 0, 1, 32, 1),
                                   shape_of(LIN_MAP_RANDOM, 33, 2, 8, 1), shape_of(LIN_MAP_RANDOM, 64, 1, 32, 1)};
    if (!c->ops->mapped_attention_forward) return;
    for (int i = 0; i < 4; i++)
        for (int l = 0; l < OPS_N_LAYOUTS; l++)
            for (int longest = 1; longest < 60; longest = longest * 4 + 1) {
                if (ops_thin(c, 11) || ops_too_large(c, &ops_layouts[l])) continue;
                mapped_shape s = shapes[i];
                s.omega = omega_for(c, &s).f;
                const size_t width = (size_t)(s.H * s.E), state = (size_t)s.H * (size_t)s.map.D * (size_t)(s.E + 1);
                ops_say(c, "mapped_attention_forward kind %d in pieces up to %d, layout %d H %d E %d", (int)s.map.kind, longest,
                        l, s.H, s.E);
                ops_check_splits(c, mapped_call, &s, &ops_layouts[l], 3 * width, width, state, longest, 2e-5);
            }
}
