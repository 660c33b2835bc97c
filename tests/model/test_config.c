// The shape of a network and the layout of its parameters.
#include "model/config.h"

#include "base/memory.h"
#include "tests/support.h"

static lin_config conv_config(void)
{
    lin_config c = lin_config_default(40);
    c.positions = LIN_POSITIONS_CONV;
    c.conv_kernel = 15;
    c.conv_layers = 3;
    c.stack = 3;
    c.ahead = 2;
    return c;
}

START_TEST(the_default_is_the_papers)
{
    const lin_config c = lin_config_default(40);
    OK(lin_config_check(&c, &err));
    ck_assert_int_eq(lin_config_width(&c), 192);
    ck_assert_int_eq(lin_config_input_width(&c), 40);
    // L(4(C²+C) + 2CF + F + C + 4C) + (DC+C) + 2C + (CV+V)
    const size_t L = 9, C = 192, F = 768, D = 40, V = 40;
    lin_params p;
    OK(lin_params_create(&c, &p, &err));
    ck_assert_uint_eq(p.n_elements, L * (4 * (C * C + C) + 2 * C * F + F + C + 4 * C) + (D * C + C) + 2 * C + (C * V + V));
    lin_params_free(&p);
    ck_assert_ptr_null(p.table);
}
END_TEST

START_TEST(output_frames_are_rounded_up)
{
    lin_config c = lin_config_default(40);
    c.stack = 3;
    const int frames[][2] = {{0, 0}, {1, 1}, {2, 1}, {3, 1}, {4, 2}, {6, 2}, {7, 3}};
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++)
        ck_assert_int_eq(lin_config_frames_out(&c, frames[i][0]), frames[i][1]);
}
END_TEST

// Each bound of each field: values inside are accepted, one beyond is refused with the field's name.
START_TEST(every_field_has_its_range)
{
    const struct {
        const char *name;
        size_t at;
        int low, high;
    } fields[] = {{"layers", offsetof(lin_config, layers), 3, 64}, // 3 conv layers
                  {"heads", offsetof(lin_config, heads), 1, 64},
                  {"head_width", offsetof(lin_config, head_width), 1, 256},
                  {"feedforward", offsetof(lin_config, feedforward), 1, 65536},
                  {"mel_bins", offsetof(lin_config, mel_bins), 1, 512},
                  {"outputs", offsetof(lin_config, outputs), 2, 65536},
                  {"stack", offsetof(lin_config, stack), 1, 16},
                  {"ahead", offsetof(lin_config, ahead), 0, 64},
                  {"conv_kernel", offsetof(lin_config, conv_kernel), 1, 63},
                  {"conv_layers", offsetof(lin_config, conv_layers), 1, 9},
                  {"causal", offsetof(lin_config, causal), 0, 1}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const int values[] = {fields[i].low, fields[i].high, fields[i].low - 1, fields[i].high + 1};
        for (int j = 0; j < 4; j++) {
            lin_config c = conv_config();
            lin_error err = {0};
            memcpy((char *)&c + fields[i].at, &values[j], sizeof(int));
            const lin_status status = lin_config_check(&c, &err);
            ck_assert_msg(status == (j < 2 ? LIN_OK : LIN_INVALID), "%s = %d: %s", fields[i].name, values[j], err.message);
            // the number of conv layers is checked against that of layers, so either name may be given
            if (j >= 2 && strcmp(fields[i].name, "layers") != 0) ck_assert_ptr_nonnull(strstr(err.message, fields[i].name));
        }
    }
    const double rates[] = {-0.1, 1, (double)NAN};
    for (int i = 0; i < 3; i++) {
        lin_config c = lin_config_default(40);
        c.dropout = rates[i];
        ck_assert_int_eq(lin_config_check(&c, NULL), LIN_INVALID);
    }
    lin_config c = lin_config_default(40);
    c.conv_layers = 1; // without convolutions
    ck_assert_int_eq(lin_config_check(&c, NULL), LIN_INVALID);
    for (int i = -1; i < 5; i++) { // a second output: of a transformer that hears sound
        c = lin_config_default(40);
        c.search = i < 3 ? i : 1;
        if (i == 3) c.tokens = 7;
        if (i == 4)
            c = (lin_config){.network = LIN_NETWORK_LSTM, .layers = 1, .width = 4, .mel_bins = 40, .outputs = 40, .stack = 1,
                             .search = 1};
        if (TEST_LACKS(&c)) continue;
        ck_assert_int_eq(lin_config_check(&c, NULL), i == 0 || i == 1 ? LIN_OK : LIN_INVALID);
    }
}
END_TEST

// A network of tokens has a table in place of the first layer, a mixture three outputs for each of its logistics.
START_TEST(tokens_and_mixtures)
{
    static const struct {
        int tokens, mixture, outputs, stack, ahead, condition_every;
        const char *why;
    } cases[] = {{1, 0, 2, 1, 0, 0, NULL},     {65536, 0, 65536, 1, 0, 1, NULL}, {9, 1, 3, 1, 0, 0, NULL},
                 {9, 64, 192, 1, 0, 0, NULL},  {65537, 0, 2, 1, 0, 0, "tokens is 65537"}, {-1, 0, 2, 1, 0, 0, "tokens is -1"},
                 {9, 65, 195, 1, 0, 0, "mixture is 65"}, {9, -1, 3, 1, 0, 0, "mixture is -1"},
                 {9, 2, 5, 1, 0, 0, "a mixture of 2 has 6 outputs, not 5"}, {0, 2, 6, 1, 0, 0, "only a network of tokens has it"},
                 {9, 0, 5, 2, 0, 0, "stack is 1"}, {9, 0, 5, 1, 1, 0, "ahead 0"},
                 {9, 2, 6, 1, 0, 1, "only a network without a mixture has it"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lin_config c = lin_config_default(cases[i].outputs);
        lin_error err = {0};
        lin_params p;
        c.tokens = cases[i].tokens;
        c.mixture = cases[i].mixture;
        c.stack = cases[i].stack;
        c.ahead = cases[i].ahead;
        c.condition_every = cases[i].condition_every;
        if (TEST_LACKS(&c)) continue;
        ck_assert_int_eq(lin_params_create(&c, &p, &err), cases[i].why ? LIN_INVALID : LIN_OK);
        if (cases[i].why) {
            HAS(err.message, cases[i].why);
            continue;
        }
        const lin_param *table = &p.table[0];
        ck_assert(p.embedding == 0 && p.input[0] == -1 && p.input[1] == -1);
        ck_assert(table->n == c.tokens && table->k == lin_config_width(&c) && table->parts == 0);
        ck_assert_int_eq(lin_config_symbols(&c), c.mixture ? LIN_LEVELS : c.outputs);
        lin_config other = c;
        other.tokens++;
        ck_assert(!lin_config_same_shape(&c, &other));
        other = c;
        other.mixture++;
        ck_assert(!lin_config_same_shape(&c, &other));
        lin_params_free(&p);
    }
}
END_TEST

START_TEST(parameters_lie_end_to_end)
{
    const lin_config c = conv_config();
    lin_params p;
    OK(lin_params_create(&c, &p, NULL));
    size_t at = 0;
    for (int i = 0; i < p.n_tensors; i++) {
        const lin_param *t = &p.table[i];
        ck_assert_uint_eq(t->offset, at);
        at += (size_t)t->n * (size_t)(t->k ? t->k : 1);
        ck_assert_int_eq(t->decay, t->k > 0);
        for (int j = 0; j < i; j++) ck_assert_str_ne(t->name, p.table[j].name);
    }
    ck_assert_uint_eq(at, p.n_elements);
    ck_assert_str_eq(p.table[p.input[0]].name, "input.weight");
    ck_assert_int_eq(p.table[p.input[0]].k, 5 * 40);
    ck_assert_str_eq(p.table[p.layers[2].conv[0]].name, "layers.2.conv.weight");
    ck_assert_int_eq(p.layers[3].conv[0], -1);
    ck_assert_str_eq(p.table[p.layers[8].ff2[1]].name, "layers.8.ff2.bias");
    ck_assert_int_eq(p.table[p.layers[0].qkv[0]].n, 3 * 192);
    ck_assert_str_eq(p.table[p.output[1]].name, "output.bias");
    lin_params_free(&p);
}
END_TEST

START_TEST(initial_values_follow_the_seed)
{
    lin_config c = conv_config();
    c.layers = 4;
    lin_params p;
    OK(lin_params_create(&c, &p, NULL));
    float *a = test_buffer(p.n_elements, sizeof *a), *b = test_buffer(p.n_elements, sizeof *b);
    lin_params_init(&p, a, 1);
    lin_params_init(&p, b, 1);
    test_guards(a, "lin_params_init");
    test_same_f32("same seed", a, b, p.n_elements);
    lin_params_init(&p, b, 2);
    ck_assert(memcmp(a, b, p.n_elements * sizeof *a) != 0);
    for (int i = 0; i < p.n_tensors; i++) {
        const lin_param *t = &p.table[i];
        const size_t count = (size_t)t->n * (size_t)(t->k ? t->k : 1);
        float most = 0;
        for (size_t j = 0; j < count; j++) {
            const float x = a[t->offset + j];
            if (t->is_scale) test_require(x == 1, "%s is not 1", t->name);
            else if (!t->fan_in) test_require(x == 0, "%s is not 0", t->name);
            most = fmaxf(most, fabsf(x));
        }
        const float bound = t->fan_in ? 1 / sqrtf((float)t->fan_in) : 1;
        ck_assert_msg(most <= bound, "%s reaches %g, over %g", t->name, (double)most, (double)bound);
        if (t->fan_in && count > 1000) ck_assert_msg(most > 0.99F * bound, "%s reaches only %g", t->name, (double)most);
    }
    TEST_FREE(a, b);
    lin_params_free(&p);
}
END_TEST

// Only causal linear attention with elu forgets.
START_TEST(decays_belong_to_one_kind_of_attention)
{
    for (int i = 0; i < 7; i++) {
        lin_config c = conv_config();
        lin_error err = {0};
        c.decay = i == 5 ? (lin_decay_kind)3 : i == 6 ? (lin_decay_kind)-1 : LIN_DECAY_GATED;
        if (i == 1) c.causal = 0;
        if (i == 2) c.feature_map = LIN_MAP_POLY2;
        if (i == 3) c.attention = LIN_ATTENTION_SOFTMAX;
        if (i == 4)
            c = (lin_config){.network = LIN_NETWORK_LSTM, .layers = 1, .width = 4, .mel_bins = 3, .outputs = 4, .stack = 1,
                             .causal = 1, .decay = LIN_DECAY_FIXED};
        const lin_status status = lin_config_check(&c, &err);
        ck_assert_msg(status == (i ? LIN_INVALID : LIN_OK), "case %d: %s", i, err.message);
        if (i > 0 && i < 5)
            HAS(err.message, "only causal linear attention with feature_map = elu has it");
        if (i >= 5) ck_assert_ptr_nonnull(strstr(err.message, "decay is "));
    }
    lin_config a = conv_config(), b = a;
    b.decay = LIN_DECAY_FIXED;
    ck_assert(lin_config_same_shape(&a, &a) && !lin_config_same_shape(&a, &b));
    ck_assert(lin_config_is_plain(&a) && !lin_config_is_plain(&b));
    char text[64];
    lin_config_variant(&b, text, sizeof text);
    ck_assert_str_eq(text, "linear, decay fixed");
}
END_TEST

// A program that was built without the paper's comparison says so.
START_TEST(rivals_need_the_paper)
{
    for (int i = 0; i < 5; i++) {
        lin_config c = conv_config();
        lin_error err = {0};
        if (i == 1) c.feature_map = LIN_MAP_POLY2;
        if (i == 2) c.attention = LIN_ATTENTION_SOFTMAX;
        if (i == 3) c.attention = LIN_ATTENTION_LSH, c.lsh_rounds = c.lsh_chunk = 1;
        if (i == 4)
            c = (lin_config){.network = LIN_NETWORK_LSTM, .layers = 1, .width = 4, .mel_bins = 3, .outputs = 4, .stack = 1};
        const int lacks = !TEST_PAPER && i > 0;
        ck_assert_int_eq(lin_config_check(&c, &err), lacks ? LIN_UNSUPPORTED : LIN_OK);
        ck_assert(!lacks || strstr(err.message, "without the paper's comparison (PAPER=0)"));
    }
}
END_TEST

// After as many steps as a half-life has, half is left; from head to head the half-lives grow by the same factor. The weights are
// 0.
START_TEST(initial_decays_are_spread)
{
    for (int kind = LIN_DECAY_FIXED; kind <= LIN_DECAY_GATED; kind++)
        for (int H = 1; H <= 6; H += 5) {
            lin_config c = conv_config();
            lin_params p;
            c.decay = (lin_decay_kind)kind;
            c.heads = H;
            OK(lin_params_create(&c, &p, NULL));
            float *values = test_buffer(p.n_elements, sizeof *values);
            lin_params_init(&p, values, 1);
            for (int l = 0; l < c.layers; l++) {
                const lin_param *bias = &p.table[p.layers[l].decay[1]];
                char name[48];
                snprintf(name, sizeof name, "layers.%d.decay.bias", l);
                ck_assert_str_eq(bias->name, name);
                ck_assert_int_eq(bias->is_fixed, kind == LIN_DECAY_FIXED);
                ck_assert_int_eq(p.layers[l].decay[0] < 0, kind == LIN_DECAY_FIXED);
                for (int h = 0; h < H; h++) {
                    const double a = pow(1 / (1 + exp(-(double)values[bias->offset + (size_t)h])), 1.0 / 16),
                                 steps = H == 1 ? sqrt(50.0 * 6000) : 50 * pow(120, h / 5.0);
                    ck_assert_double_eq_tol(pow(a, steps), 0.5, 1e-5);
                }
                if (kind == LIN_DECAY_FIXED) continue;
                const lin_param *weight = &p.table[p.layers[l].decay[0]];
                ck_assert(weight->n == H && weight->k == 32 * H && weight->decay && weight->parts == 1 && !weight->is_fixed);
                for (int j = 0; j < weight->n * weight->k; j++) ck_assert(values[weight->offset + (size_t)j] == 0);
            }
            lin_params_init_decay(&p, values, 7, 7);
            const double all =
                pow(1 / (1 + exp(-(double)values[p.table[p.layers[8].decay[1]].offset + (size_t)(H - 1)])), 7.0 / 16);
            ck_assert_double_eq_tol(all, 0.5, 1e-6);
            test_guards(values, "lin_params_init");
            test_buffer_free(values);
            lin_params_free(&p);
        }
}
END_TEST

START_TEST(a_failed_allocation_is_an_error)
{
    const lin_config c = conv_config();
    lin_params p;
    FAIL_EVERY_ALLOCATION(lin_params_create(&c, &p, NULL), lin_params_free(&p));
}
END_TEST

TEST_MAIN("model/config", TEST(the_default_is_the_papers), TEST(output_frames_are_rounded_up), TEST(every_field_has_its_range),
          TEST(tokens_and_mixtures), TEST(parameters_lie_end_to_end), TEST(initial_values_follow_the_seed),
          TEST(decays_belong_to_one_kind_of_attention), TEST(rivals_need_the_paper), TEST(initial_decays_are_spread),
          TEST(a_failed_allocation_is_an_error))
