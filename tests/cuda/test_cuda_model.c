// [cuda] The whole network on the CUDA backend: against PyTorch in double, streams and files against the CPU, and training.
#include "tests/cuda/device.h"
#include "tests/model/streams_cases.h"
#include "tests/train/golden_training.h"
#include "tests/train/tokens_support.h"

static const lin_ops *fp32(void) { return test_device(LIN_PRECISION_FP32); }

/* ---- the network ----------------------------------------------------------------------------------------------------------- */

// Polynomial and random feature maps run on the CPU only.
START_TEST(small_case)
{
    const int is_mapped = strncmp(golden_names[_i], "poly2", 5) == 0 || strncmp(golden_names[_i], "random", 6) == 0;
    if (is_mapped) ck_assert(!fp32()->mapped_attention_forward && !fp32()->mapped_attention_backward);
    else golden_check_case(golden_names[_i], fp32(), 1e-4);
}
END_TEST

// Softmax and LSH attention have only tiles: a model with wider heads is refused, and so is a call without a model.
START_TEST(wide_heads)
{
    static const network_kind kinds[] = {OF_SOFTMAX, OF_LSH, OF_NAIVE, OF_LINEAR};
    const lin_segments one = {.B = 1, .rows = 1, .longest = 1};
    lin_encoder *encoder;
    lin_exec *exec;
    if (!TEST_PAPER) return;
    for (int i = 0; i < 4; i++) {
        const lin_config c = of_kind(sized_config(1, 1, 65, 8, 4, 3), kinds[i]);
        lin_model *model = model_of(&c, NULL, 1);
        if (i < 2)
            FAILS(lin_encoder_create(model, fp32(), &encoder, &err), LIN_UNSUPPORTED, "for a head_width up to 64, not 65");
        else OK(lin_encoder_create(model, fp32(), &encoder, &err));
        lin_encoder_destroy(encoder);
        lin_model_destroy(model);
    }
    OK(fp32()->exec_create(fp32(), 1, &exec, &err));
    fp32()->softmax_forward(exec, NULL, NULL, NULL, &one, 1, 65, 1, NULL, 0);
    FAILS(fp32()->finish(exec, &err), LIN_IO, "heads wider than 64");
    OK(fp32()->finish(exec, &err));
    fp32()->exec_destroy(exec);
}
END_TEST

START_TEST(default_network) { golden_check_default(fp32(), 1e-4); }
END_TEST

START_TEST(training_trace) { golden_check_traces(golden_models[_i], fp32(), 1e-4); }
END_TEST

// The largest change of log-probabilities by rounded operands, on networks whose weights are of ordinary size.
START_TEST(rounded_operands)
{
    static const struct {
        lin_precision precision;
        double bound;
    } modes[] = {{LIN_PRECISION_TF32, 0.02}, {LIN_PRECISION_BF16, 0.2}};
    golden_check_case(golden_names[0], test_device(modes[_i].precision), modes[_i].bound);
    golden_check_case(golden_names[1], test_device(modes[_i].precision), modes[_i].bound);
}
END_TEST

// In bf16 norms write the operands of the blocks beside them: fewer launches than with conversions, and the same bits, but for
// the gradient of the feed-forward blocks' last bias, which a norm then sums in another order. Where another operation precedes
// the block (a convolution, a condition), the operand is converted.
START_TEST(norms_write_operands)
{
    static const struct {
        const char *name;
        unsigned long fewer; // a layer: of the feed-forward block 1, post-norm 3 more; of attention 1, and 1 of its input
    } networks[] = {{"post-causal", 2 * 4 + 1}, {"pre-causal-conv-stack", 3 * 2 + 1}, {"condition-pre-conv", 4 * 2}};
    const uint64_t key[2] = {7, 0};
    char path[64];
    snprintf(path, sizeof path, "network/%s", networks[_i].name);
    golden_case g;
    golden_open(&g, path, NULL, NULL);
    golden_load(&g);
    g.config.dropout = 0.1;
    lin_ops converts = *test_device(LIN_PRECISION_BF16);
    converts.writes_operands = 0;
    const lin_ops *ops[] = {test_device(LIN_PRECISION_BF16), &converts};
    float *logp[2], *gradient[2];
    unsigned long launches[2];
    const size_t logits = (size_t)g.offsets[g.n_utterances] * (size_t)g.config.outputs;
    for (int i = 0; i < 2; i++) {
        golden_device t = golden_begin(&g, ops[i], 1, 1);
        t.batch.dropout_key = golden_place(&t, key, sizeof key);
        const unsigned long before = emulation_count(EMULATION_LAUNCHES);
        golden_step(&g, &t);
        logp[i] = golden_fetch(&t, t.logp, logits, sizeof **logp);
        launches[i] = emulation_count(EMULATION_LAUNCHES) - before;
        gradient[i] = golden_fetch(&t, t.gradient, g.params.n_elements, sizeof **gradient);
        golden_end(&t);
    }
    (void)launches; // a GPU does not count them
#ifndef LIN_ON_GPU
    ck_assert_uint_eq(launches[1] - launches[0], networks[_i].fewer);
#endif
    test_require(memcmp(logp[0], logp[1], logits * sizeof **logp) == 0, "%s: log-probabilities differ", path);
    for (int i = 0; i < g.params.n_tensors; i++) {
        const lin_param *t = &g.params.table[i];
        const size_t n = (size_t)t->n * (size_t)(t->k ? t->k : 1);
        const double tolerance = strstr(t->name, "ff2.bias") ? 1e-5 : 0;
        for (size_t j = t->offset; j < t->offset + n; j++)
            test_require(fabs((double)gradient[0][j] - (double)gradient[1][j]) <= tolerance * (1 + fabs((double)gradient[1][j])),
                         "%s: the gradient of %s is %.9g, expected %.9g", path, t->name, (double)gradient[0][j],
                         (double)gradient[1][j]);
    }
    for (int i = 0; i < 2; i++) test_buffer_free(logp[i]), test_buffer_free(gradient[i]);
    golden_close(&g);
}
END_TEST

/* ---- many streams ---------------------------------------------------------------------------------------------------------- */

START_TEST(company)
{
    static const int shapes[][4] = {{1, 0, 0, 0}, {3, 4, 1, 4}};
    const int *s = shapes[_i % 2];
    if (_i / 2 != STREAMS_POLY2) streams_case_company(fp32(), s[0], s[1], s[2], (streams_kind)(_i / 2), s[3]);
}
END_TEST

START_TEST(phones)
{
    if (_i != STREAMS_POLY2) streams_case_phones(fp32(), (streams_kind)_i);
}
END_TEST

START_TEST(moved)
{
    if (_i != STREAMS_POLY2) streams_case_moved(fp32(), (streams_kind)_i);
}
END_TEST

// Softmax attention streams one at a time, with a cache that grows.
START_TEST(a_stream_with_a_cache)
{
    static streams_world w;
    float logp[STREAMS_FRAMES * STREAMS_V];
    int n = 0;
    if (!TEST_PAPER) return;
    streams_begin(&w, fp32(), 2, 1, 1, STREAMS_SOFTMAX);
    lin_streams *stream = one_stream(w.encoder, 1, 0);
    for (int i = 0; i < STREAMS_FRAMES; i++)
        n += one_stream_feed(stream, STREAMS_D, STREAMS_V, w.features[2] + i * STREAMS_D, 1, i + 1 == STREAMS_FRAMES,
                             logp + n * STREAMS_V);
    ck_assert_int_eq(n, w.rows[2]);
    streams_judge(&w, "a stream frame by frame", logp, w.want[2], n * STREAMS_V);
    lin_streams_destroy(stream);
    streams_end(&w);
}
END_TEST

/* ---- training -------------------------------------------------------------------------------------------------------------- */

// The program opens the backend as a library; in emulation that of this configuration.
static void training_set_up(void)
{
    set_up();
#ifndef LIN_ON_GPU
    char path[300];
    const char *config = getenv("CONFIG");
    snprintf(path, sizeof path, "build/%s/emulated/liblinnet_cuda.so", config ? config : "release");
    setenv("LINNET_CUDA_LIBRARY", path, 1);
    snprintf(path, sizeof path, "build/%s/emulated/libcuda.so.1", config ? config : "release");
    setenv("LINNET_CUDA_DRIVER", path, 1);
#endif
}

static int augmented; // the runs

static float *trained(const char *name, const char *device, int stop_after, int resume, watch *w, lin_status want)
{
    lin_error err = {0};
    float *values;
    lin_train_options o = quick_run(name);
    o.device = device;
    o.precision = LIN_PRECISION_FP32;
    o.epochs = 3;
    o.resume = resume;
    if (augmented) o.augment = some_acoustics(0.2), o.join_part = 0.6;
    w->stop_after = stop_after;
    const lin_status status = train(&o, w, &values, &err);
    ck_assert_msg(status == want, "%s on %s: %s", name, device, err.message);
    return values;
}

// The features as they are, or augmented, with utterances that continue others.
START_TEST(training_follows_the_cpu_and_repeats_itself)
{
    training_set_up();
    augmented = _i;
    watch cpu = {0}, gpu = {0}, other = {0};
    float *want = trained("whole", "cpu", 0, 0, &cpu, LIN_OK), *got = trained("gpu", "cuda", 0, 0, &gpu, LIN_OK);
    const size_t n = n_elements();
    ck_assert_int_eq(gpu.last.step, cpu.last.step);
    ck_assert_int_eq(gpu.left_out, 1);
    ck_assert_msg(fabs(gpu.last.loss - cpu.last.loss) < 1e-3 && fabs(gpu.last.dev_loss - cpu.last.dev_loss) < 1e-3,
                  "loss %g and %g on dev, the CPU's %g and %g", gpu.last.loss, gpu.last.dev_loss, cpu.last.loss,
                  cpu.last.dev_loss);
    for (size_t i = 0; i < n; i++)
        test_require(fabsf(got[i] - want[i]) < 5e-3f, "weight %zu is %g, the CPU's %g", i, (double)got[i], (double)want[i]);

    float *again = trained("again", "cuda", 0, 0, &other, LIN_OK);
    test_same_f32("a second run", again, got, n);
    free(again);
    again = trained("stopped", "cuda", 5, 0, &other, LIN_STOPPED);
    free(again);
    again = trained("stopped", "cuda", 0, 1, &other, LIN_OK);
    test_same_f32("stopped and resumed", again, got, n);
    free(again);
    free(want);
    free(got);
}
END_TEST

// Sets of tokens: padding rows and sequences have no loss, and those without targets lie between others.
START_TEST(tokens_train_as_on_the_cpu)
{
    training_set_up();
    static const char *const devices[] = {"cpu", "cuda"};
    watch w[2];
    float *values[2];
    size_t n;
    const token_task task = token_task_of(_i ? TOKEN_MIXTURE : TOKEN_LINEAR);
    if (TEST_LACKS(&task.config)) return;
    memset(w, 0, sizeof w);
    write_tokens(train_path, &task, 20, 100, 0.2);
    write_tokens(dev_path, &task, 5, 200, 0.2);
    for (int i = 0; i < 2; i++) {
        lin_train_options o = token_run(devices[i]);
        o.device = devices[i];
        o.precision = LIN_PRECISION_FP32;
        o.epochs = 2;
        const lin_train_hooks hooks = {&w[i], on_progress, on_note, on_stop};
        OK(train_model(new_network(&task.config), train_path, &o, &hooks, &values[i], &n, &err));
    }
    ck_assert_double_eq_tol(w[1].last.loss, w[0].last.loss, 1e-4 * w[0].last.loss);
    ck_assert_double_eq_tol(w[1].last.dev_loss, w[0].last.dev_loss, 1e-3 * w[0].last.dev_loss);
    ck_assert_double_eq_tol(w[1].last.dev_per, w[0].last.dev_per, 0.02);
    for (size_t i = 0; i < n; i++)
        test_require(fabsf(values[1][i] - values[0][i]) < 5e-3f, "weight %zu is %g, the CPU's %g", i, (double)values[1][i],
                     (double)values[0][i]);
    free(values[0]);
    free(values[1]);
}
END_TEST

// Training first: after all others, which leave threads behind, the leak checker of a process of training stops itself.
TEST_MAIN("cuda/model", TESTS(training_follows_the_cpu_and_repeats_itself, 0, 2), TESTS(tokens_train_as_on_the_cpu, 0, 2),
          TESTS(small_case, 0, GOLDEN_CASES), TEST(wide_heads), TEST(default_network),
          TESTS(training_trace, 0, (int)(sizeof golden_models / sizeof *golden_models)), TESTS(rounded_operands, 0, 2),
          TESTS(norms_write_operands, 0, 3), TESTS(company, 0, 2 * STREAMS_KINDS), TESTS(phones, 0, STREAMS_KINDS),
          TESTS(moved, 0, STREAMS_KINDS), TEST(a_stream_with_a_cache))
