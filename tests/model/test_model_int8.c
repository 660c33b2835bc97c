// Models in eight bits: what a file holds, the same results from every form of it, streams, and files that cannot be.
#include "base/number.h"
#include "tests/model/streams_cases.h"

enum { D = 5, V = 6, FRAMES = 150, STACK = 2 };

static const char *path, *other;

static void enter(void)
{
    path = test_path("m.safetensors");
    other = test_path("other.safetensors");
}

// half: all weights are numbers of half precision.
static lin_model *small_model(int half)
{
    lin_config c = of_kind(sized_config(4, 3, 7, 50, D, V), OF_GATED);
    c.stack = STACK;
    c.ahead = 1;
    c.norm = LIN_NORM_PRE;
    c.condition_every = 2;
    lin_model *model = model_of(&c, NULL, 5);
    for (size_t i = 0; half && i < model->params.n_elements; i++)
        model->values[i] = lin_half_to_float(lin_float_to_half(model->values[i]));
    lin_model_seal(model);
    return model;
}

static float *run(const lin_model *model, const lin_ops *ops, int threads, const float *features)
{
    const int rows = lin_config_frames_out(&model->config, FRAMES);
    float *logp = test_buffer((size_t)(rows * V), sizeof *logp);
    rows_of(model, ops, threads, 0, features, FRAMES, logp);
    test_guards(logp, "lin_encoder_run");
    return logp;
}

static float *sound(void)
{
    float *features = test_buffer(FRAMES * D, sizeof *features);
    test_fill_f32(features, FRAMES * D, 8, -2, 2);
    return features;
}

START_TEST(what_a_file_holds)
{
    for (int half = 0; half < 2; half++) {
        lin_model *model = small_model(half), *back, *opened, *again;
        OK(lin_model_save(model, path, LIN_I8, &err));
        OK(lin_model_load(path, &back, &err));
        OK(lin_model_open(path, 1, &opened, &err));
        int n_whole = 0;
        for (int i = 0; i < model->params.n_tensors; i++) {
            const lin_param *p = &model->params.table[i];
            const float *was = model->values + p->offset, *is = back->values + p->offset;
            if (!p->eight_bits) {
                test_same_f32(p->name, is, was, lin_param_count(p));
                ck_assert_ptr_null(opened->stored[i].whole);
                continue;
            }
            n_whole++;
            ck_assert_ptr_nonnull(opened->stored[i].whole);
            for (int r = 0; r < p->n; r++) {
                const size_t k = (size_t)p->k, at = (size_t)r * k;
                signed char q[64];
                float want[64];
                lin_int8_widen(q, k, lin_int8_narrow(was + at, k, q), want);
                test_same_f32(p->name, is + at, want, k);
                ck_assert(memcmp(q, (const signed char *)opened->stored[i].whole + at, k) == 0);
            }
        }
        ck_assert_int_eq(n_whole, 4 * model->config.layers);
        ck_assert_uint_eq(back->fingerprint, opened->fingerprint);
        ck_assert_uint_ne(back->fingerprint, model->fingerprint);
        OK(lin_model_save(back, other, LIN_I8, &err)); // the same file
        OK(lin_model_load(other, &again, &err));
        ck_assert_uint_eq(again->fingerprint, back->fingerprint);
        lin_file_map a, b;
        OK(lin_file_map_open(path, &a, &err));
        OK(lin_file_map_open(other, &b, &err));
        ck_assert(a.size == b.size && memcmp(a.bytes, b.bytes, a.size) == 0);
        lin_safetensors st;
        OK(lin_safetensors_parse(a.bytes, a.size, "m", &st, &err));
        ck_assert_str_eq(lin_safetensors_text(&st, "format_version"), "3");
        ck_assert_int_eq((int)lin_safetensors_find(&st, "input.weight")->dtype, half ? LIN_F16 : LIN_F32);
        ck_assert_int_eq((int)lin_safetensors_find(&st, "layers.3.ff2.weight")->dtype, LIN_I8);
        lin_safetensors_free(&st);
        lin_file_map_close(&a);
        lin_file_map_close(&b);
        lin_model_destroy(model);
        lin_model_destroy(back);
        lin_model_destroy(opened);
        lin_model_destroy(again);
    }
}
END_TEST

// Products of eight bits give the same bits with the model, its file as floats, and its file as it is; and differ from fp32.
START_TEST(the_same_results)
{
    lin_model *model = small_model(1), *back, *opened, *half, *widened;
    float *features = sound();
    const size_t count = (size_t)(lin_config_frames_out(&model->config, FRAMES) * V);
    OK(lin_model_save(model, path, LIN_I8, &err));
    OK(lin_model_load(path, &back, &err));
    OK(lin_model_open(path, 1, &opened, &err));
    OK(lin_model_open(path, 0, &widened, &err));
    OK(lin_model_save(model, other, LIN_F16, &err));
    OK(lin_model_open(other, 1, &half, &err));
    float *want = run(model, lin_ops_cpu_int8(), 1, features), *fp32 = run(model, lin_ops_cpu(), 1, features);
    const lin_model *forms[] = {model, back, opened, half, widened};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (int threads = 1; threads < 4; threads += 2) {
            float *got = run(forms[i], lin_ops_cpu_int8(), threads, features);
            test_same_f32("a form of the model", got, want, count);
            test_buffer_free(got);
        }
    float *a = run(back, lin_ops_cpu(), 1, features), *b = run(widened, lin_ops_cpu(), 1, features);
    test_same_f32("in fp32", a, b, count);
    double worst = 0, rounded = 0;
    for (size_t i = 0; i < count; i++) {
        worst = fmax(worst, fabs((double)want[i] - (double)fp32[i]));
        rounded = fmax(rounded, fabs((double)a[i] - (double)fp32[i]));
    }
    ck_assert_msg(worst > 1e-5 && worst < 0.1, "eight bits and fp32 are %g apart", worst);
    ck_assert_msg(rounded > 1e-6 && rounded < 0.05, "rounded weights and fp32 are %g apart", rounded);
    TEST_FREE(features, want, fp32, a, b);
    lin_model_destroy(model);
    lin_model_destroy(back);
    lin_model_destroy(opened);
    lin_model_destroy(half);
    lin_model_destroy(widened);
}
END_TEST

START_TEST(streams_give_the_bits_of_the_batch)
{
    static const streams_kind kinds[] = {STREAMS_LINEAR, STREAMS_DECAY, STREAMS_SINUSOID};
    streams_case_company(lin_ops_cpu_int8(), 2, 1, kinds[_i] != STREAMS_SINUSOID, kinds[_i], 3);
    streams_case_moved(lin_ops_cpu_int8(), kinds[_i]);
}
END_TEST

/* ---- files that cannot be -------------------------------------------------------------------------------------------------- */

// Writes the file of a good model with one change, and a checksum that fits.
static void write_changed(void (*change)(lin_tensor *tensors, int *n))
{
    lin_model *model = small_model(1);
    lin_file_map map;
    lin_safetensors st;
    lin_tensor tensors[200];
    lin_text texts[32];
    char sum[17];
    OK(lin_model_save(model, path, LIN_I8, &err));
    lin_model_destroy(model);
    OK(lin_file_map_open(path, &map, &err));
    OK(lin_safetensors_parse(map.bytes, map.size, "m", &st, &err));
    int n = st.n_tensors;
    memcpy(tensors, st.tensors, (size_t)n * sizeof *tensors);
    memcpy(texts, st.texts, (size_t)st.n_texts * sizeof *texts);
    change(tensors, &n);
    snprintf(sum, sizeof sum, "%016llx", (unsigned long long)lin_safetensors_checksum(tensors, n, texts, st.n_texts));
    for (int i = 0; i < st.n_texts; i++)
        if (strcmp(texts[i].key, LIN_CHECKSUM_KEY) == 0) texts[i].value = sum;
    OK(lin_safetensors_write(other, tensors, n, texts, st.n_texts, &err));
    lin_safetensors_free(&st);
    lin_file_map_close(&map);
}

static lin_tensor *named(lin_tensor *tensors, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(tensors[i].name, name) == 0) return &tensors[i];
    ck_abort_msg("no %s", name);
    return NULL;
}

// In the third scale, or the weights of the third row.
static union {
    float f[64];
    signed char q[8192];
    uint16_t half[64];
} changed;

static float *new_scales(lin_tensor *tensors, int n)
{
    lin_tensor *t = named(tensors, n, "layers.1.out.weight.scale");
    memcpy(changed.f, t->data, lin_tensor_count(t) * sizeof(float));
    t->data = &changed;
    return changed.f;
}

static void scale_nan(lin_tensor *tensors, int *n) { new_scales(tensors, *n)[2] = NAN; }
static void scale_infinite(lin_tensor *tensors, int *n) { new_scales(tensors, *n)[2] = INFINITY; }
static void scale_negative(lin_tensor *tensors, int *n) { new_scales(tensors, *n)[2] *= -1; }
static void scale_zero(lin_tensor *tensors, int *n) { new_scales(tensors, *n)[2] = 0; }
static void scale_long(lin_tensor *tensors, int *n) { new_scales(tensors, *n)[2] *= 1.0000001F; }

static void scale_half(lin_tensor *tensors, int *n)
{
    lin_tensor *t = named(tensors, *n, "layers.1.out.weight.scale");
    t->dtype = LIN_F16;
    t->data = &changed;
}

static void scale_short(lin_tensor *tensors, int *n) { named(tensors, *n, "layers.1.out.weight.scale")->shape[0]--; }

static void scale_missing(lin_tensor *tensors, int *n)
{
    *named(tensors, *n, "layers.1.out.weight.scale") = tensors[*n - 1];
    --*n;
}

static void scale_too_many(lin_tensor *tensors, int *n)
{
    tensors[*n] = *named(tensors, *n, "layers.1.out.weight.scale");
    tensors[(*n)++].name = "output.weight.scale";
}

static signed char *new_weights(lin_tensor *tensors, int n)
{
    lin_tensor *t = named(tensors, n, "layers.1.out.weight");
    memcpy(changed.q, t->data, lin_tensor_count(t));
    t->data = &changed;
    return changed.q + 2 * t->shape[1];
}

static void weight_lowest(lin_tensor *tensors, int *n) { new_weights(tensors, *n)[1] = -128; }

static void weights_small(lin_tensor *tensors, int *n)
{
    signed char *row = new_weights(tensors, *n);
    for (int i = 0; i < 21; i++) row[i] /= 2;
}

static void weights_of_output(lin_tensor *tensors, int *n)
{
    lin_tensor *t = named(tensors, *n, "output.weight");
    t->dtype = LIN_I8;
    t->data = &changed;
}

static void weights_turned(lin_tensor *tensors, int *n)
{
    lin_tensor *t = named(tensors, *n, "layers.1.ff1.weight");
    const size_t swap = t->shape[0];
    t->shape[0] = t->shape[1];
    t->shape[1] = swap;
}

START_TEST(files_that_cannot_be)
{
    static const struct {
        void (*change)(lin_tensor *tensors, int *n);
        const char *message;
        lin_status status;
    } cases[] = {
        {scale_nan, "tensor layers.1.out.weight, row 2 has a scale that is negative or not finite", LIN_NUMERIC},
        {scale_infinite, "row 2 has a scale that is negative or not finite", LIN_NUMERIC},
        {scale_negative, "row 2 has a scale that is negative or not finite", LIN_NUMERIC},
        {scale_zero, "row 2 has weights other than 0, and the scale 0", LIN_NUMERIC},
        {scale_long, "row 2 has a scale of more than 17 bits", LIN_NUMERIC},
        {scale_half, "tensor layers.1.out.weight.scale is of type F16; must be F32", LIN_FORMAT},
        {scale_short, "tensor layers.1.out.weight.scale has the shape [20]", LIN_FORMAT},
        {scale_missing, "tensor layers.1.out.weight.scale is missing", LIN_FORMAT},
        {scale_too_many, "tensor output.weight.scale is not part of this configuration", LIN_FORMAT},
        {weight_lowest, "row 2 holds -128", LIN_NUMERIC},
        {weights_small, "row 2 has no weight of the magnitude 127", LIN_NUMERIC},
        {weights_of_output, "tensor output.weight is of type I8; must be F32 or F16", LIN_FORMAT},
        {weights_turned, "tensor layers.1.ff1.weight has the shape [21, 50]", LIN_FORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int form = 0; form < 3; form++) {
            lin_model *model;
            lin_error err = {0};
            write_changed(cases[i].change);
            const lin_status status = form == 2 ? lin_model_load(other, &model, &err) : lin_model_open(other, form, &model, &err);
            ck_assert_msg(status == cases[i].status && strstr(err.message, cases[i].message), "%s: %s, not %s",
                          lin_status_name(status), err.message, cases[i].message);
            ck_assert_ptr_null(model);
        }
}
END_TEST

START_TEST(models_that_cannot_be_saved)
{
    lin_model *model = small_model(0);
    model->values[model->params.table[model->params.layers[2].ff1[0]].offset + 50] = 2e38F;
    FAILS(lin_model_save(model, path, LIN_I8, &err), LIN_NUMERIC, "tensor layers.2.ff1.weight has too large weights in row 2");
    ck_assert(access(path, F_OK) != 0);
    lin_model_destroy(model);
    if (!TEST_PAPER) return;
    const lin_config c = of_kind(lin_config_default(V), OF_LSTM);
    model = model_of(&c, NULL, 5);
    FAILS(lin_model_save(model, path, LIN_I8, &err), LIN_UNSUPPORTED, "only those of a transformer do");
    lin_model_destroy(model);
}
END_TEST

// Without anything in eight bits the table is that of fp32.
START_TEST(other_networks_stay_in_fp32)
{
    if (!TEST_PAPER) return;
    const lin_config c = of_kind(sized_config(2, 2, 8, 24, D, V), OF_LSTM);
    lin_model *model = model_of(&c, NULL, 5);
    float *x = sound(), *a = run(model, lin_ops_cpu_int8(), 1, x), *b = run(model, lin_ops_cpu(), 1, x);
    test_same_f32("an LSTM", a, b, (size_t)(lin_config_frames_out(&c, FRAMES) * V));
    TEST_FREE(x, a, b);
    lin_model_destroy(model);
}
END_TEST

START_TEST(training_refuses)
{
    lin_model *model = small_model(0);
    lin_exec *exec;
    lin_weights *weights;
    const lin_ops *ops = lin_ops_cpu_int8();
    OK(ops->exec_create(ops, 1, &exec, &err));
    FAILS(lin_weights_create(ops, exec, &model->config, &model->params, model->values, NULL, 1, &weights, &err), LIN_UNSUPPORTED,
          "for recognition only");
    ck_assert_ptr_null(weights);
    ops->exec_destroy(exec);
    lin_model_destroy(model);
}
END_TEST

TEST_MAIN_WITH(enter, NULL, "model_int8", TEST(what_a_file_holds), TEST(the_same_results),
               TESTS(streams_give_the_bits_of_the_batch, 0, 3), TEST(files_that_cannot_be), TEST(models_that_cannot_be_saved),
               TEST(other_networks_stay_in_fp32), TEST(training_refuses))
