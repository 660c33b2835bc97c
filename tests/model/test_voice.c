// A network of voices that is opened: its vectors against the definition in double, from the rows of the same network without the
// last layers; what it refuses; many threads at once.
#include <math.h>

#include "base/pool.h"
#include "model/encoder.h"
#include "model/voice.h"
#include "tests/model/networks.h"

enum { BINS = 5, SIZE = 7, C = 8, FRAMES = 61, VOICES = 9 };

static const char *path;

static lin_config voice_config(void)
{
    lin_config c = sized_config(2, 2, C / 2, 12, BINS, VOICES);
    c.voice = SIZE;
    c.causal = 0;
    c.stack = 3;
    c.ahead = 1;
    return c;
}

static lin_model *new_model(void)
{
    const lin_config c = voice_config();
    lin_model *m = model_of(&c, NULL, 5);
    test_fill_f32(m->mean, BINS, 6, -1, 1);
    test_fill_f32(m->istd, BINS, 7, 0.5, 2);
    lin_model_seal(m);
    return m;
}

static void enter(void)
{
    lin_model *m = new_model();
    path = test_path("voice.safetensors");
    OK(lin_model_save(m, path, LIN_F32, &err));
    lin_model_destroy(m);
}

static lin_voice *must_open(void)
{
    lin_voice *voice;
    OK(lin_voice_open(path, &voice, &err));
    return voice;
}

// The rows of the last norm: a recogniser with the same layers and the unit matrix as its output has log-probabilities that are
// those rows less a number of each row, and as the norm's weights are 1 and its biases 0, the sum of a row is 0.
static void normed_rows(const float *frames, double rows[FRAMES][C], int *n)
{
    lin_config c = voice_config();
    float logp[FRAMES * C];
    lin_model *of = new_model();
    c.voice = 0;
    c.outputs = C;
    lin_model *m = model_of(&c, NULL, 5);
    const int output = m->params.output[0];
    memcpy(m->mean, of->mean, BINS * sizeof *m->mean);
    memcpy(m->istd, of->istd, BINS * sizeof *m->istd);
    memcpy(m->values, of->values, m->params.table[output].offset * sizeof *m->values);
    for (int i = 0; i < C * C; i++) m->values[m->params.table[output].offset + (size_t)i] = i % (C + 1) == 0;
    for (int i = 0; i < C; i++) m->values[m->params.table[m->params.output[1]].offset + (size_t)i] = 0;
    rows_of(m, lin_ops_cpu(), 1, 0, frames, FRAMES, logp);
    *n = lin_config_frames_out(&c, FRAMES);
    for (int t = 0; t < *n; t++) {
        double mean = 0;
        for (int i = 0; i < C; i++) mean += (double)logp[t * C + i] / C;
        for (int i = 0; i < C; i++) rows[t][i] = (double)logp[t * C + i] - mean;
    }
    lin_model_destroy(m);
    lin_model_destroy(of);
}

START_TEST(the_definition)
{
    float frames[FRAMES * BINS], vector[SIZE];
    double rows[FRAMES][C], pooled[2 * C], want[SIZE], length = 0, got = 0;
    int n;
    lin_voice *voice = must_open();
    lin_model *m = new_model();
    ck_assert_int_eq(lin_voice_size(voice), SIZE);
    ck_assert_int_eq(lin_voice_bins(voice), BINS);
    ck_assert(lin_features_equal(lin_voice_features(voice), &m->features));
    test_fill_f32(frames, FRAMES * BINS, 8, -3, 3);
    normed_rows(frames, rows, &n);
    for (int c = 0; c < C; c++) {
        double mean = 0, squares = 0;
        for (int t = 0; t < n; t++) mean += rows[t][c] / n;
        for (int t = 0; t < n; t++) squares += (rows[t][c] - mean) * (rows[t][c] - mean) / n;
        pooled[c] = mean;
        pooled[C + c] = sqrt(squares + 1e-5);
    }
    const float *weight = m->values + m->params.table[m->params.voice[0]].offset,
                *bias = m->values + m->params.table[m->params.voice[1]].offset;
    for (int d = 0; d < SIZE; d++) {
        want[d] = (double)bias[d];
        for (int c = 0; c < 2 * C; c++) want[d] += (double)weight[d * 2 * C + c] * pooled[c];
        length += want[d] * want[d];
    }
    OK(lin_voice_vector(voice, frames, FRAMES, vector, &err));
    for (int d = 0; d < SIZE; d++) {
        got += (double)vector[d] * (double)vector[d];
        ck_assert_msg(fabs((double)vector[d] - want[d] / sqrt(length)) < 1e-5, "%d: %g, not %g", d, (double)vector[d],
                      want[d] / sqrt(length));
    }
    ck_assert(fabs(got - 1) < 1e-5);
    lin_model_destroy(m);
    lin_voice_destroy(voice);
}
END_TEST

START_TEST(refused)
{
    lin_voice *voice;
    float frames[BINS] = {0}, vector[SIZE];
    const lin_config speech = sized_config(1, 1, 4, 4, BINS, 4);
    lin_model *m = model_of(&speech, NULL, 1);
    const char *other = test_path("speech.safetensors");
    OK(lin_model_save(m, other, LIN_F32, &err));
    OK(lin_model_check_sound(m, "x", &err));
    lin_model_destroy(m);
    FAILS(lin_voice_open(other, &voice, &err), LIN_UNSUPPORTED, "");
    ck_assert_ptr_null(voice);
    m = new_model();
    FAILS(lin_model_check_sound(m, "x", &err), LIN_UNSUPPORTED, "");
    lin_model_destroy(m);
    voice = must_open();
    FAILS(lin_voice_vector(voice, frames, 0, vector, &err), LIN_INVALID, "");
    FAILS(lin_voice_vector(voice, frames, LIN_VOICE_MOST + 1, vector, &err), LIN_INVALID, "");
    OK(lin_voice_vector(voice, frames, 1, vector, &err));
    lin_voice_destroy(voice);
}
END_TEST

enum { MANY = 64 };
typedef struct asked {
    const lin_voice *voice;
    float frames[FRAMES * BINS], vectors[MANY][SIZE];
} asked;

static void ask(void *context, int i, int thread)
{
    asked *a = context;
    (void)thread;
    if (lin_voice_vector(a->voice, a->frames, FRAMES - i % 4, a->vectors[i], NULL) != LIN_OK) a->vectors[i][0] = 9;
}

START_TEST(many_threads_at_once)
{
    static asked a;
    lin_pool *pool;
    lin_voice *voice = must_open();
    a.voice = voice;
    test_fill_f32(a.frames, FRAMES * BINS, 8, -3, 3);
    OK(lin_pool_create(4, &pool, &err));
    lin_pool_run(pool, MANY, ask, &a);
    lin_pool_destroy(pool);
    for (int i = 4; i < MANY; i++) ck_assert(memcmp(a.vectors[i], a.vectors[i % 4], sizeof a.vectors[0]) == 0);
    ck_assert(memcmp(a.vectors[0], a.vectors[1], sizeof a.vectors[0]) != 0);
    lin_voice_destroy(voice);
}
END_TEST

TEST_MAIN_WITH(enter, NULL, "model/voice", TEST(the_definition), TEST(refused), TEST(many_threads_at_once))
