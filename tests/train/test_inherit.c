// train/inherit.c: weights from one model to another.
#include "train/inherit.h"

#include <math.h>

#include "model/encoder.h"
#include "tests/model/networks.h"

enum { V = 3, K = 3, MORE = 9 };

static lin_model *make(lin_positions positions, int causal, int kernel, int width, uint64_t seed)
{
    lin_config c = with_conv(sized_config(2, 1, width, 5, 4, V), kernel, kernel ? 2 : 0);
    c.positions = positions;
    c.causal = causal;
    return model_of(&c, "<blank> a b", seed);
}

// The tap at `lag` frames before the frame (negative: after it), or 0.
static float tap(const lin_model *m, int layer, int lag, int channel)
{
    const lin_config *c = &m->config;
    const int j = c->conv_kernel - 1 - lin_config_conv_after(c) - lag;
    const lin_param *p = &m->params.table[m->params.layers[layer].conv[0]];
    return j < 0 || j >= c->conv_kernel ? 0 : m->values[p->offset + (size_t)(j * p->k + channel)];
}

START_TEST(weights_of_the_same_network_are_copied)
{
    lin_model *from = make(LIN_POSITIONS_CONV, 1, K, 6, 1), *to = make(LIN_POSITIONS_CONV, 1, K, 6, 2);
    ck_assert_uint_ne(from->fingerprint, to->fingerprint);
    OK(lin_inherit_weights(to, from, NULL));
    ck_assert_uint_eq(from->fingerprint, to->fingerprint);
    lin_model_destroy(from);
    lin_model_destroy(to);
}
END_TEST

START_TEST(taps_keep_their_distance_in_time)
{
    lin_model *from = make(LIN_POSITIONS_CONV, 1, K, 6, 1), *to = make(LIN_POSITIONS_CENTRED_CONV, 0, MORE, 6, 2);
    OK(lin_inherit_weights(to, from, NULL));
    for (int layer = 0; layer < 2; layer++)
        for (int lag = -MORE; lag <= MORE; lag++)
            for (int c = 0; c < 6; c++) ck_assert(tap(to, layer, lag, c) == tap(from, layer, lag, c)); // NOLINT: the same bits
    ck_assert(tap(to, 1, 0, 3) != 0 && tap(to, 1, K - 1, 3) != 0);
    const lin_param *a = &from->params.table[from->params.output[0]], *b = &to->params.table[to->params.output[0]];
    ck_assert_mem_eq(from->values + a->offset, to->values + b->offset, (size_t)(a->n * a->k) * sizeof(float));
    lin_model_destroy(from);
    lin_model_destroy(to);
}
END_TEST

START_TEST(hidden_units_are_added)
{
    lin_model *from = make(LIN_POSITIONS_CONV, 1, K, 6, 1), *to, *before;
    lin_config wider = from->config;
    const int F = wider.feedforward, C = lin_config_width(&wider), G = wider.feedforward += 5;
    to = model_of(&wider, from->phones, 2);
    before = model_of(&wider, from->phones, 2);
    OK(lin_inherit_weights(to, from, NULL));
    for (int layer = 0; layer < wider.layers; layer++) {
        const lin_param_layer *p = &to->params.layers[layer], *q = &from->params.layers[layer];
#define VALUES(model, role, part) ((model)->values + (model)->params.table[role[part]].offset)
        for (int part = 0; part < 2; part++) { // weight, bias
            const int width = part ? 1 : C;
            test_same_f32("old inputs", VALUES(to, p->ff1, part), VALUES(from, q->ff1, part), (size_t)(F * width));
            test_same_f32("new inputs", VALUES(to, p->ff1, part) + F * width, VALUES(before, p->ff1, part) + F * width,
                          (size_t)((G - F) * width));
        }
        for (int c = 0; c < C; c++) {
            const float *row = VALUES(to, p->ff2, 0) + c * G;
            test_same_f32("old outputs", row, VALUES(from, q->ff2, 0) + c * F, (size_t)F);
            for (int i = F; i < G; i++) ck_assert(row[i] == 0); // NOLINT: the same bits
        }
        test_same_f32("bias", VALUES(to, p->ff2, 1), VALUES(from, q->ff2, 1), (size_t)C);
    }
    FAILS(lin_inherit_weights(from, to, &err), LIN_MISMATCH, ""); // none are taken away
    lin_model_destroy(from);
    lin_model_destroy(to);
    lin_model_destroy(before);
}
END_TEST

static lin_config with_heads_of(int width)
{
    lin_config c = of_kind(sized_config(3, 2, width, 4 * width, 4, V), OF_GATED);
    c.norm = LIN_NORM_PRE;
    c.condition_every = 2;
    return c;
}

// The channels of what a tensor [n, k] writes, less their mean.
static void centre(lin_model *m, int index)
{
    const lin_param *p = &m->params.table[index];
    const int k = p->k ? p->k : 1;
    float *w = m->values + p->offset;
    for (int c = 0; c < k; c++) {
        double mean = 0;
        for (int r = 0; r < p->n; r++) mean += (double)w[r * k + c] / p->n;
        for (int r = 0; r < p->n; r++) w[r * k + c] -= (float)mean;
    }
}

// The same function, where the mean over the channels is 0: norms are all that reads them.
START_TEST(heads_grow_wider)
{
    enum { FRAMES = 50 };
    const lin_config narrow = with_heads_of(4), wide = with_heads_of(7);
    lin_model *from = model_of(&narrow, NULL, 1), *to = model_of(&wide, NULL, 2);
    float features[FRAMES * 4], a[FRAMES * V], b[FRAMES * V];
    test_fill_f32(from->values, from->params.n_elements, 3, -0.7, 0.7);
    for (int l = 0; l < narrow.layers; l++) {
        const lin_param_layer *p = &from->params.layers[l];
        for (int part = 0; part < 2; part++) {
            centre(from, p->out[part]);
            centre(from, p->ff2[part]);
        }
    }
    for (int part = 0; part < 2; part++) {
        centre(from, from->params.input[part]);
        centre(from, from->params.condition[part]);
    }
    lin_model_seal(from);
    test_fill_f32(features, FRAMES * 4, 4, -2, 2);
    rows_of(from, lin_ops_cpu(), 1, 0, features, FRAMES, a);
    rows_of(to, lin_ops_cpu(), 1, 0, features, FRAMES, b);
    double difference = 0;
    for (int i = 0; i < FRAMES * V; i++) difference = fmax(difference, fabs((double)a[i] - (double)b[i]));
    ck_assert_double_gt(difference, 0.1);
    OK(lin_inherit_weights(to, from, NULL));
    rows_of(to, lin_ops_cpu(), 1, 0, features, FRAMES, b);
    difference = 0;
    for (int i = 0; i < FRAMES * V; i++) difference = fmax(difference, fabs((double)a[i] - (double)b[i]));
    ck_assert_msg(difference < 1e-3, "the log-probabilities differ by %g", difference);
    ck_assert_int_eq(lin_inherit_weights(from, to, NULL), LIN_MISMATCH);
    lin_model_destroy(from);
    lin_model_destroy(to);
}
END_TEST


// A table of the same tokens; another one, or the layer that sound has in its place, is refused.
START_TEST(tokens_are_copied)
{
    lin_model *models[6];
    for (int i = 0; i < 6; i++) {
        lin_config c = with_heads_of(8);
        c.condition_every = 0;
        if (i < 5) c.tokens = i == 2 ? 257 : 256;
        if (i == 3 && TEST_PAPER) c.mixture = 1, c.outputs = 3;
        else if (i == 3) c.outputs = V + 1;
        if (i == 4) c.feedforward += 8;
        models[i] = model_of(&c, NULL, (uint64_t)i + 1);
    }
    for (int i = 1; i < 6; i++) { // from 0 to each; 4 has more hidden units
        const uint64_t before = models[i]->fingerprint;
        lin_error err = {0};
        const lin_status status = lin_inherit_weights(models[i], models[0], &err);
        ck_assert_msg(status == (i == 1 || i == 4 ? LIN_OK : LIN_MISMATCH), "%d: %s", i, err.message);
        lin_model_seal(models[i]);
        if (status != LIN_OK) ck_assert_uint_eq(models[i]->fingerprint, before);
        else
            ck_assert_mem_eq(models[i]->values, models[0]->values,
                             lin_param_count(&models[0]->params.table[models[0]->params.embedding]) * sizeof(float));
    }
    ck_assert_uint_eq(models[1]->fingerprint, models[0]->fingerprint);
    ck_assert_int_eq(lin_inherit_weights(models[0], models[5], NULL), LIN_MISMATCH);
    for (int i = 0; i < 6; i++) {
        lin_error err = {0};
        ck_assert_int_eq(lin_model_check_sound(models[i], "m", &err), i < 5 ? LIN_UNSUPPORTED : LIN_OK);
        if (i < 5) ck_assert_msg(strstr(err.message, "m is a network of tokens: it takes no sound"), "%s", err.message);
        lin_model_destroy(models[i]);
    }
}
END_TEST

START_TEST(other_networks_are_refused)
{
    lin_model *to = make(LIN_POSITIONS_CENTRED_CONV, 0, MORE, 6, 2);
    lin_model *others[] = {make(LIN_POSITIONS_CONV, 1, K, 7, 1), make(LIN_POSITIONS_CONV, 1, 6, 6, 1),
                           make(LIN_POSITIONS_NONE, 0, 0, 6, 1), make(LIN_POSITIONS_CENTRED_CONV, 0, MORE + 2, 6, 1)};
    const char *const why[] = {"shape", "do not reach", "shape", "do not reach"};
    const uint64_t before = to->fingerprint;
    for (int i = 0; i < 4; i++) {
        FAILS(lin_inherit_weights(to, others[i], &err), LIN_MISMATCH, why[i]);
        lin_model_seal(to);
        ck_assert_uint_eq(to->fingerprint, before);
        lin_model_destroy(others[i]);
    }
    lin_model_destroy(to);
}
END_TEST

// A network without decays gives its tensors to one that has them, and fixed ones to gated ones: what is new keeps its values.
START_TEST(decays_are_added)
{
    lin_model *models[3];
    lin_error err = {0};
    for (int kind = 0; kind < 3; kind++) {
        lin_config c = lin_config_default(5);
        c.layers = 2;
        c.decay = (lin_decay_kind)kind;
        models[kind] = model_of(&c, NULL, (uint64_t)kind + 1);
    }
    const struct {
        int to, from, good;
    } takes[] = {{0, 0, 1}, {1, 0, 1}, {2, 0, 1}, {2, 1, 1}, {2, 2, 1}, {0, 1, 0}, {0, 2, 0}, {1, 2, 0}};
    for (size_t i = 0; i < sizeof takes / sizeof *takes; i++) {
        const lin_model *from = models[takes[i].from];
        lin_model *to = model_of(&models[takes[i].to]->config, NULL, 7);
        float *before = test_buffer(to->params.n_elements, sizeof *before);
        memcpy(before, to->values, to->params.n_elements * sizeof *before);
        ck_assert_int_eq(lin_inherit_weights(to, from, &err), takes[i].good ? LIN_OK : LIN_MISMATCH);
        for (int t = 0; t < to->params.n_tensors; t++) {
            const lin_param *a = &to->params.table[t];
            const float *want = before + a->offset;
            for (int j = 0; j < from->params.n_tensors && takes[i].good; j++)
                if (strcmp(from->params.table[j].name, a->name) == 0) want = from->values + from->params.table[j].offset;
            test_same_f32(a->name, to->values + a->offset, want, (size_t)a->n * (size_t)(a->k ? a->k : 1));
        }
        test_buffer_free(before);
        lin_model_destroy(to);
    }
    for (int i = 0; i < 3; i++) lin_model_destroy(models[i]);
}
END_TEST

// It begins as the first, and is not taken away.
START_TEST(a_second_output_is_added)
{
    lin_config c = with_heads_of(8);
    lin_model *one = model_of(&c, NULL, 1);
    c.search = 1;
    lin_model *two = model_of(&c, NULL, 2);
    ck_assert_int_eq(lin_inherit_weights(one, two, NULL), LIN_MISMATCH);
    OK(lin_inherit_weights(two, one, NULL));
    for (int i = 0; i < 2; i++) {
        const lin_param *a = &two->params.table[two->params.search[i]], *b = &one->params.table[one->params.output[i]];
        test_same_f32("a second output", two->values + a->offset, one->values + b->offset, lin_param_count(b));
    }
    lin_model_destroy(one);
    lin_model_destroy(two);
}
END_TEST

TEST_MAIN("train/inherit", TEST(weights_of_the_same_network_are_copied), TEST(taps_keep_their_distance_in_time),
          TEST(hidden_units_are_added), TEST(heads_grow_wider), TEST(tokens_are_copied), TEST(decays_are_added),
          TEST(a_second_output_is_added), TEST(other_networks_are_refused))
