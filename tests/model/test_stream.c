// Streams: any split gives the bits of the batch, images, forks, no allocation.
#include "model/stream.h"

#include "base/memory.h"
#include "tests/support.h"

enum { D = 8, V = 7, FRAMES = 700 };

typedef struct fixture {
    lin_model *model;
    lin_encoder *encoder;
    lin_worker *worker;
    float *features, *want; // FRAMES frames as one utterance, and its log-probabilities in batch form
    int rows;
} fixture;

static lin_config small_config(int stack, int ahead, int conv, lin_norm norm)
{
    lin_config c = lin_config_default(V);
    c.layers = 3;
    c.heads = 2;
    c.head_width = 8;
    c.feedforward = 40;
    c.mel_bins = D;
    c.stack = stack;
    c.ahead = ahead;
    c.norm = norm;
    if (conv) {
        c.positions = LIN_POSITIONS_CONV;
        c.conv_kernel = 4;
        c.conv_layers = 2;
    }
    return c;
}

// The variants that stream: each keeps something else. Those of paper/ are the last.
typedef enum variant { LINEAR, FIXED, GATED, CONDITION, SINUSOID, TOKENS, SOFTMAX, POLY2, RANDOM, LSTM, COUNTED } variant;
enum { VARIANTS = TEST_PAPER ? COUNTED + 1 : SOFTMAX };

static lin_config vary(lin_config c, variant v)
{
    if (v == SINUSOID || v == COUNTED) c.positions = LIN_POSITIONS_SINUSOID, c.conv_kernel = c.conv_layers = 0;
    if (v == TOKENS) c.tokens = 9, c.stack = 1, c.ahead = 0;
    if (v == SOFTMAX || v == COUNTED) c.attention = LIN_ATTENTION_SOFTMAX;
    if (v == POLY2) c.feature_map = LIN_MAP_POLY2;
    if (v == RANDOM) c.feature_map = LIN_MAP_RANDOM, c.features = 20;
    if (v == FIXED) c.decay = LIN_DECAY_FIXED;
    if (v == GATED) c.decay = LIN_DECAY_GATED;
    if (v == CONDITION) c.condition_every = 1;
    if (v == LSTM)
        c = (lin_config){.network = LIN_NETWORK_LSTM,
                         .layers = 2,
                         .width = 24,
                         .mel_bins = D,
                         .outputs = V,
                         .stack = c.stack,
                         .ahead = c.ahead,
                         .causal = 1};
    return c;
}

static fixture make(lin_config config)
{
    fixture f = {0};
    lin_error err = {0};
    const lin_features features = lin_features_default();
    ck_assert_msg(lin_model_create(&config, &features, NULL, 5, &f.model, &err) == LIN_OK, "%s", err.message);
    // 0 at first: the gates would not depend on the input
    for (int l = 0; l < config.layers && config.decay == LIN_DECAY_GATED; l++) {
        const lin_param *weight = &f.model->params.table[f.model->params.layers[l].decay[0]];
        test_fill_f32(f.model->values + weight->offset, (size_t)(weight->n * weight->k), 50 + (uint64_t)l, -2, 2);
    }
    if (config.condition_every) { // 0 at first too
        const lin_param *weight = &f.model->params.table[f.model->params.condition[0]];
        test_fill_f32(f.model->values + weight->offset, (size_t)(weight->n * weight->k), 49, -2, 2);
    }
    for (int d = 0; d < D; d++) {
        f.model->mean[d] = (float)d * 0.1F;
        f.model->istd[d] = 1 + (float)d * 0.05F;
    }
    lin_model_seal(f.model);
    ck_assert_msg(lin_encoder_create(f.model, lin_ops_cpu(), &f.encoder, &err) == LIN_OK, "%s", err.message);
    ck_assert_msg(lin_worker_create(f.encoder, 1, &f.worker, &err) == LIN_OK, "%s", err.message);
    f.features = test_buffer(FRAMES * D, sizeof(float));
    test_fill_f32(f.features, FRAMES * D, 9, -2, 2);
    f.rows = lin_config_frames_out(&config, FRAMES);
    f.want = test_buffer((size_t)f.rows * V, sizeof(float));
    ck_assert_msg(lin_encoder_run(f.worker, f.features, (const int[]){0, FRAMES}, 1, f.want, &err) == LIN_OK, "%s", err.message);
    test_guards(f.want, "lin_encoder_run");
    return f;
}

static void drop(fixture *f)
{
    lin_worker_destroy(f->worker);
    lin_encoder_destroy(f->encoder);
    lin_model_destroy(f->model);
    test_buffer_free(f->features);
    test_buffer_free(f->want);
}

// Feeds frames from..to of f in pieces of random size (0 to `most`) and appends to got at *n rows.
static void feed_pieces(fixture *f, lin_stream *s, int from, int to, int most, uint64_t key, float *got, int *n)
{
    lin_error err = {0};
    for (int t = from, i = 0; t < to; i++) {
        int piece = (int)lin_random_below(key, (uint64_t)i, (uint32_t)most + 1), out = -1;
        if (piece > to - t) piece = to - t;
        const int expected = lin_stream_frames_out(s, piece);
        ck_assert_msg(lin_stream_feed(s, f->worker, f->features + (size_t)t * D, piece, got + (size_t)*n * V, expected, &out,
                                      &err) == LIN_OK,
                      "%s", err.message);
        ck_assert_int_eq(out, expected);
        *n += out;
        t += piece;
    }
}

static void finish(fixture *f, lin_stream *s, float *got, int *n)
{
    lin_error err = {0};
    int out = -1;
    const int left = lin_stream_frames_left(s);
    ck_assert(lin_stream_finish(s, f->worker, got + (size_t)*n * V, left, &out, &err) == LIN_OK);
    ck_assert_int_eq(out, left);
    *n += out;
}

static const struct {
    int stack, ahead, conv;
    lin_norm norm;
    variant variant;
} shapes[] = {{1, 0, 0, LIN_NORM_POST, LINEAR}, {1, 3, 1, LIN_NORM_PRE, LINEAR}, {3, 0, 1, LIN_NORM_PRE, LINEAR},
              {3, 7, 1, LIN_NORM_POST, LINEAR}, {4, 1, 0, LIN_NORM_PRE, LINEAR}, {2, 64, 1, LIN_NORM_PRE, LINEAR},
              {2, 1, 1, LIN_NORM_PRE, FIXED}, {1, 0, 0, LIN_NORM_POST, GATED}, {3, 2, 1, LIN_NORM_PRE, GATED},
              {2, 1, 0, LIN_NORM_POST, SINUSOID}, {1, 0, 0, LIN_NORM_PRE, TOKENS},
              {1, 2, 1, LIN_NORM_PRE, SOFTMAX}, {2, 0, 0, LIN_NORM_POST, SOFTMAX}, {1, 0, 1, LIN_NORM_PRE, POLY2},
              {2, 3, 0, LIN_NORM_POST, RANDOM}, {1, 0, 0, LIN_NORM_POST, LSTM}, {3, 2, 0, LIN_NORM_POST, LSTM},
              {1, 0, 0, LIN_NORM_POST, COUNTED}};
enum { SHAPES = TEST_PAPER ? sizeof shapes / sizeof *shapes : 11 };

static fixture make_shape(int i)
{
    return make(vary(small_config(shapes[i].stack, shapes[i].ahead, shapes[i].conv, shapes[i].norm), shapes[i].variant));
}

START_TEST(any_split_gives_the_bits_of_the_batch)
{
    fixture f = make_shape(_i);
    lin_error err = {0};
    lin_stream *s;
    ck_assert(lin_stream_create(f.encoder, &s, &err) == LIN_OK);
    float *got = test_buffer((size_t)f.rows * V, sizeof *got);
    static const int most[] = {1, 4, 17, 200, FRAMES};
    for (size_t m = 0; m < sizeof most / sizeof *most; m++) {
        int n = 0;
        test_poison(got, (size_t)f.rows * V * sizeof *got);
        feed_pieces(&f, s, 0, FRAMES, most[m], 77 + m, got, &n);
        ck_assert_int_eq((int)lin_stream_frames_in(s), FRAMES);
        finish(&f, s, got, &n);
        ck_assert_int_eq(n, f.rows);
        test_same_f32("log-probabilities", got, f.want, (size_t)f.rows * V);
        test_guards(got, "lin_stream_feed");
        lin_stream_reset(s);
    }
    test_buffer_free(got);
    lin_stream_destroy(s);
    drop(&f);
}
END_TEST

// In one pass with what waits, or, if that is too much for one, in several.
START_TEST(the_last_frames_are_fed_and_finished)
{
    fixture f = make_shape(_i);
    lin_error err = {0};
    lin_stream *s;
    ck_assert(lin_stream_create(f.encoder, &s, &err) == LIN_OK);
    float *got = test_buffer((size_t)f.rows * V, sizeof *got);
    const int from[] = {0, 1, FRAMES / 2, FRAMES - 50, FRAMES - 4, FRAMES - 1, FRAMES};
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
        int n = 0, out = -1;
        test_poison(got, (size_t)f.rows * V * sizeof *got);
        feed_pieces(&f, s, 0, from[i], 30, 7, got, &n);
        const float *rest = f.features + (size_t)from[i] * D;
        if (f.rows > n) {
            ck_assert_int_eq(lin_stream_feed_last(s, f.worker, rest, FRAMES - from[i], got, f.rows - n - 1, &out, &err),
                             LIN_TOO_SMALL);
            ck_assert_int_eq((int)lin_stream_frames_in(s), from[i]);
        }
        ck_assert_msg(lin_stream_feed_last(s, f.worker, rest, FRAMES - from[i], got + (size_t)n * V, f.rows - n, &out, &err) ==
                          LIN_OK,
                      "%s", err.message);
        ck_assert_int_eq(n + out, f.rows);
        ck_assert_int_eq((int)lin_stream_frames_in(s), FRAMES);
        test_same_f32("log-probabilities", got, f.want, (size_t)f.rows * V);
        test_guards(got, "lin_stream_feed_last");
        ck_assert_int_eq(lin_stream_feed_last(s, f.worker, rest, 0, got, f.rows, &out, &err), LIN_INVALID);
        lin_stream_reset(s);
    }
    test_buffer_free(got);
    lin_stream_destroy(s);
    drop(&f);
}
END_TEST

START_TEST(utterances_together_give_the_bits_of_each_alone)
{
    fixture f = make(vary(small_config(3, 2, 1, LIN_NORM_PRE), (variant)_i));
    lin_error err = {0};
    static const int lengths[] = {1, 0, 50, 2, 410, 3, 90};
    enum { N = sizeof lengths / sizeof *lengths };
    int offsets[N + 1] = {0}, rows = 0;
    for (int b = 0; b < N; b++) {
        offsets[b + 1] = offsets[b] + lengths[b];
        rows += lin_config_frames_out(&f.model->config, lengths[b]);
    }
    float *together = test_buffer((size_t)rows * V, sizeof *together), *alone = test_buffer((size_t)rows * V, sizeof *alone);
    ck_assert(lin_encoder_run(f.worker, f.features, offsets, N, together, &err) == LIN_OK);
    for (int b = 0, row = 0; b < N; b++) {
        const int pair[] = {0, lengths[b]};
        ck_assert(lin_encoder_run(f.worker, f.features + (size_t)offsets[b] * D, pair, 1, alone + (size_t)row * V, &err) ==
                  LIN_OK);
        row += lin_config_frames_out(&f.model->config, lengths[b]);
    }
    test_same_f32("a batch", together, alone, (size_t)rows * V);
    test_guards(together, "lin_encoder_run");
    test_buffer_free(together);
    test_buffer_free(alone);
    drop(&f);
}
END_TEST

// Several threads go through the layers as a wave, chunk after chunk: in every form of the network, for whole utterances and for
// streams in pieces that are one chunk, several, and many; and allocate nothing.
START_TEST(threads_do_not_change_the_bits)
{
    fixture f = make_shape(_i);
    lin_worker *alone = f.worker;
    lin_error err = {0};
    lin_stream *s;
    ck_assert(lin_stream_create(f.encoder, &s, &err) == LIN_OK);
    float *got = test_buffer((size_t)f.rows * V, sizeof *got);
    feed_pieces(&f, s, 0, FRAMES, FRAMES, 4, got, &(int){0}); // what softmax attention keeps grows once; a reset keeps its memory
    lin_stream_reset(s);
    for (int threads = 2; threads <= 5; threads++) {
        ck_assert(lin_worker_create(f.encoder, threads, &f.worker, &err) == LIN_OK);
        if (shapes[_i].variant != SOFTMAX && shapes[_i].variant != LSTM && shapes[_i].variant != COUNTED)
            ck_assert_int_eq(lin_worker_threads(f.worker), threads);
        const unsigned long before = lin_memory_count();
        test_poison(got, (size_t)f.rows * V * sizeof *got);
        ck_assert(lin_encoder_run(f.worker, f.features, (const int[]){0, FRAMES}, 1, got, &err) == LIN_OK);
        test_same_f32("log-probabilities", got, f.want, (size_t)f.rows * V);
        const int most[] = {FRAMES, 150, 400};
        for (int m = 0; m < 3; m++) {
            int n = 0;
            test_poison(got, (size_t)f.rows * V * sizeof *got);
            feed_pieces(&f, s, 0, FRAMES, most[m], 5 + (uint64_t)threads, got, &n);
            finish(&f, s, got, &n);
            ck_assert_int_eq(n, f.rows);
            test_same_f32("log-probabilities", got, f.want, (size_t)f.rows * V);
            test_guards(got, "lin_stream_feed");
            lin_stream_reset(s);
        }
        // (softmax attention takes a whole utterance at once, and room for it)
        if (shapes[_i].variant != SOFTMAX && shapes[_i].variant != COUNTED) ck_assert_uint_eq(lin_memory_count(), before);
        lin_worker_destroy(f.worker);
    }
    f.worker = alone;
    test_buffer_free(got);
    lin_stream_destroy(s);
    drop(&f);
}
END_TEST

START_TEST(saved_loaded_and_forked_at_any_moment)
{
    fixture f = make(vary(small_config(3, 5, 1, LIN_NORM_PRE), (variant)_i));
    lin_error err = {0};
    lin_stream *s, *other, *copy;
    ck_assert(lin_stream_create(f.encoder, &s, &err) == LIN_OK);
    ck_assert(lin_stream_create(f.encoder, &other, &err) == LIN_OK);
    const size_t empty = lin_stream_image_bytes(s), row = lin_config_cache_count(&f.model->config) * sizeof(float);
    float *got = test_buffer((size_t)f.rows * V, sizeof *got);
    for (int cut = 0; cut < FRAMES - 41; cut += cut < 30 ? 1 : 150) {
        int n = 0;
        lin_stream_reset(s);
        feed_pieces(&f, s, 0, cut, 3, 5, got, &n);
        const size_t size = lin_stream_image_bytes(s);
        ck_assert_uint_eq(size, empty + row * (size_t)n);
        unsigned char *image = test_buffer(size, 1);
        ck_assert(lin_stream_save(s, image, size - 1, &err) == LIN_TOO_SMALL);
        ck_assert(lin_stream_save(s, image, size, &err) == LIN_OK);
        test_guards(image, "lin_stream_save");
        ck_assert(lin_stream_create(f.encoder, &copy, &err) == LIN_OK);
        ck_assert(lin_stream_load(copy, image, size, &err) == LIN_OK);
        feed_pieces(&f, s, cut, cut + 40, 40, 6, got, &(int){n}); // the first gets other input: its copies must not change
        ck_assert_msg(lin_stream_load(other, image, size, &err) == LIN_OK, "%s", err.message);
        ck_assert_int_eq((int)lin_stream_frames_in(other), cut);
        lin_stream *const both[] = {other, copy};
        for (int i = 0; i < 2; i++) {
            int m = n;
            feed_pieces(&f, both[i], cut, FRAMES, 50, 7, got, &m);
            finish(&f, both[i], got, &m);
            ck_assert_int_eq(m, f.rows);
            test_same_f32("after load or fork", got + (size_t)n * V, f.want + (size_t)n * V, (size_t)(f.rows - n) * V);
        }
        lin_stream_destroy(copy);
        test_buffer_free(image);
    }
    lin_stream_destroy(s);
    lin_stream_destroy(other);
    test_buffer_free(got);
    drop(&f);
}
END_TEST

START_TEST(damaged_images_are_refused)
{
    fixture f = make(vary(small_config(2, 3, 1, LIN_NORM_PRE), (variant)_i));
    lin_config config = f.model->config;
    lin_model *model;
    lin_encoder *encoder;
    lin_stream *s, *of_another;
    lin_error err = {0};
    const lin_features features = lin_features_default();
    ck_assert(lin_model_create(&config, &features, NULL, 6, &model, &err) == LIN_OK);
    lin_model_seal(model);
    ck_assert(lin_encoder_create(model, lin_ops_cpu(), &encoder, &err) == LIN_OK);
    ck_assert(lin_stream_create(f.encoder, &s, &err) == LIN_OK);
    ck_assert(lin_stream_create(encoder, &of_another, &err) == LIN_OK);
    float *got = test_buffer((size_t)f.rows * V, sizeof *got);
    int n = 0;
    feed_pieces(&f, s, 0, 100, 9, 3, got, &n);
    const size_t size = lin_stream_image_bytes(s);
    unsigned char *image = test_buffer(size, 1), *damaged = test_buffer(size, 1);
    ck_assert(lin_stream_save(s, image, size, &err) == LIN_OK);
    ck_assert(lin_stream_load(of_another, image, size, &err) == LIN_MISMATCH);
    ck_assert(strstr(err.message, "another model") != NULL);
    ck_assert(lin_stream_load(s, image, 10, &err) == LIN_FORMAT);
    ck_assert(lin_stream_load(s, image, size - 4, &err) == LIN_FORMAT);
    for (uint64_t i = 0; i < 300; i++) {
        memcpy(damaged, image, size);
        const size_t at = i < 56 ? i : lin_random_below(4, i, (uint32_t)size);
        damaged[at] ^= (unsigned char)(1U << lin_random_below(5, i, 8));
        ck_assert_msg(lin_stream_load(s, damaged, size, &err) != LIN_OK, "a flip in byte %zu was not seen", at);
    }
    ck_assert(lin_stream_load(s, image, size, &err) == LIN_OK);
    feed_pieces(&f, s, 100, FRAMES, 60, 3, got, &n);
    finish(&f, s, got, &n);
    test_same_f32("after refused images", got, f.want, (size_t)f.rows * V);
    lin_stream_destroy(s);
    lin_stream_destroy(of_another);
    lin_encoder_destroy(encoder);
    lin_model_destroy(model);
    test_buffer_free(image);
    test_buffer_free(damaged);
    test_buffer_free(got);
    drop(&f);
}
END_TEST

// Where the state has a constant size; with softmax attention until the cache is full.
START_TEST(streaming_allocates_nothing)
{
    fixture f = make(vary(small_config(3, 2, 1, LIN_NORM_PRE), (variant)_i));
    lin_stream *s;
    lin_error err = {0};
    ck_assert(lin_stream_create(f.encoder, &s, &err) == LIN_OK);
    float *got = test_buffer((size_t)f.rows * V, sizeof *got);
    const unsigned long before = lin_memory_count();
    for (int round = 0; round < 3; round++) {
        int n = 0;
        feed_pieces(&f, s, 0, FRAMES, 40, 1, got, &n);
        finish(&f, s, got, &n);
        lin_stream_reset(s);
    }
    ck_assert_uint_eq(lin_memory_count(), before);
    lin_stream_destroy(s);
    test_buffer_free(got);
    drop(&f);
}
END_TEST

START_TEST(softmax_grows_and_says_so)
{
    if (!TEST_PAPER) return;
    fixture f = make(vary(small_config(1, 0, 0, LIN_NORM_PRE), SOFTMAX));
    lin_stream *s;
    lin_error err = {0};
    ck_assert(lin_stream_create(f.encoder, &s, &err) == LIN_OK);
    float *got = test_buffer((size_t)f.rows * V, sizeof *got);
    const size_t row = lin_config_cache_count(&f.model->config) * sizeof(float);
    ck_assert_uint_eq(row, 3 * 2 * 16 * sizeof(float));
    const unsigned long before = lin_memory_count();
    int n = 0;
    feed_pieces(&f, s, 0, 256, 10, 1, got, &n);
    feed_pieces(&f, s, 256, FRAMES, 10, 1, got, &n);
    ck_assert_uint_eq(lin_memory_count(), before + 2); // 256 rows were doubled twice
    // Without memory nothing changes, and the same frames can be fed again.
    lin_stream_reset(s);
    lin_stream *fresh;
    ck_assert(lin_stream_create(f.encoder, &fresh, &err) == LIN_OK);
    n = 0;
    feed_pieces(&f, fresh, 0, 250, 100, 1, got, &n);
    lin_memory_fail_at(1);
    ck_assert_int_eq(lin_stream_feed(fresh, f.worker, f.features + 250 * D, 50, got + 250 * V, 50, &(int){0}, &err),
                     LIN_NO_MEMORY);
    lin_memory_fail_at(0);
    lin_stream_destroy(fresh);
    lin_stream_destroy(s);
    test_buffer_free(got);
    drop(&f);
}
END_TEST

START_TEST(what_cannot_stream_says_why)
{
    lin_error err = {0};
    lin_stream *s;
    static const char *const why[] = {"bidirectional", "LSH attention", "softmax-naive"};
    for (int i = 0; i < 3; i++) {
        lin_config c = small_config(1, 0, 0, LIN_NORM_PRE);
        if (i == 0) c.causal = 0;
        if (i == 1) c.attention = LIN_ATTENTION_LSH, c.lsh_rounds = 1, c.lsh_chunk = 8;
        if (i == 2) c.attention = LIN_ATTENTION_SOFTMAX_NAIVE;
        if (TEST_LACKS(&c)) continue;
        fixture f = make(c);
        ck_assert_int_eq(lin_stream_create(f.encoder, &s, &err), LIN_UNSUPPORTED);
        ck_assert_msg(strstr(err.message, why[i]) && strstr(err.message, "cannot stream"), "%s", err.message);
        drop(&f);
    }
}
END_TEST

START_TEST(misuse_is_answered)
{
    fixture f = make(small_config(2, 0, 0, LIN_NORM_POST));
    lin_stream *s;
    lin_error err = {0};
    int n = 0, out;
    ck_assert(lin_stream_create(f.encoder, &s, &err) == LIN_OK);
    float *got = test_buffer((size_t)f.rows * V, sizeof *got);
    ck_assert(lin_stream_feed(s, f.worker, f.features, 10, got, 4, &out, &err) == LIN_TOO_SMALL);
    ck_assert_int_eq((int)lin_stream_frames_in(s), 0);
    feed_pieces(&f, s, 0, FRAMES, 100, 1, got, &n);
    finish(&f, s, got, &n);
    test_same_f32("after LIN_TOO_SMALL", got, f.want, (size_t)f.rows * V);
    ck_assert(lin_stream_feed(s, f.worker, f.features, 1, got, 4, &out, &err) == LIN_INVALID);
    ck_assert(strstr(err.message, "reset") != NULL);
    n = 0;
    finish(&f, s, got, &n);
    ck_assert_int_eq(n, 0);
    lin_stream_destroy(s);
    test_buffer_free(got);
    drop(&f);

    lin_config config = small_config(1, 0, 0, LIN_NORM_POST);
    config.causal = 0;
    f = make(config);
    ck_assert(lin_stream_create(f.encoder, &s, &err) == LIN_UNSUPPORTED);
    ck_assert(strstr(err.message, "bidirectional") != NULL && s == NULL);
    drop(&f);
}
END_TEST

START_TEST(the_papers_network_costs_228096_bytes)
{
    const lin_config config = lin_config_default(40);
    const lin_features features = lin_features_default();
    lin_model *model;
    lin_encoder *encoder;
    lin_stream *s;
    lin_error err = {0};
    ck_assert(lin_model_create(&config, &features, NULL, 1, &model, &err) == LIN_OK);
    ck_assert(lin_encoder_create(model, lin_ops_cpu(), &encoder, &err) == LIN_OK);
    ck_assert_uint_eq(lin_stream_attention_bytes(encoder), 228096);
    ck_assert_uint_eq(lin_config_state_count(&config) * sizeof(float), 228096);
    ck_assert_uint_lt(lin_stream_state_bytes(encoder), 228096 + 256);
    ck_assert(lin_stream_create(encoder, &s, &err) == LIN_OK);
    lin_stream_destroy(s);
    lin_encoder_destroy(encoder);
    lin_model_destroy(model);
}
END_TEST

START_TEST(a_failed_allocation_is_an_error)
{
    lin_config config = small_config(2, 1, 1, LIN_NORM_PRE);
    const lin_features features = lin_features_default();
    lin_model *model;
    lin_error err = {0};
    ck_assert(lin_model_create(&config, &features, NULL, 1, &model, &err) == LIN_OK);
    const unsigned long live = lin_memory_live();
    int succeeded = 0;
    for (unsigned long k = 1; k < 100 && !succeeded; k++) {
        lin_encoder *encoder = NULL;
        lin_worker *worker = NULL;
        lin_stream *s = NULL;
        lin_memory_fail_at(k);
        lin_status status = lin_encoder_create(model, lin_ops_cpu(), &encoder, &err);
        if (status == LIN_OK) status = lin_worker_create(encoder, 2, &worker, &err);
        if (status == LIN_OK) status = lin_stream_create(encoder, &s, &err);
        lin_memory_fail_at(0);
        succeeded = status == LIN_OK;
        if (!succeeded) ck_assert_int_eq(status, LIN_NO_MEMORY);
        lin_stream_destroy(s);
        lin_worker_destroy(worker);
        lin_encoder_destroy(encoder);
        ck_assert_uint_eq(lin_memory_live(), live);
    }
    ck_assert(succeeded);
    lin_model_destroy(model);
}
END_TEST

TEST_MAIN("model/stream", TESTS(any_split_gives_the_bits_of_the_batch, 0, SHAPES),
          TESTS(the_last_frames_are_fed_and_finished, 0, SHAPES),
          TESTS(utterances_together_give_the_bits_of_each_alone, 0, VARIANTS), TESTS(threads_do_not_change_the_bits, 0, SHAPES),
          TESTS(saved_loaded_and_forked_at_any_moment, 0, VARIANTS), TESTS(damaged_images_are_refused, 0, VARIANTS),
          TESTS(streaming_allocates_nothing, 0, VARIANTS), TEST(softmax_grows_and_says_so), TEST(what_cannot_stream_says_why),
          TEST(misuse_is_answered), TEST(the_papers_network_costs_228096_bytes), TEST(a_failed_allocation_is_an_error))
