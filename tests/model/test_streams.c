// Streams. One: any split gives the bits of the batch, images, forks, no allocation. Many at once: the cases of streams_cases.h,
// refusals, and nothing allocated by a tick.

#include "base/memory.h"
#include "tests/model/streams_cases.h"

enum { D = 8, V = 7, FRAMES = 700 };

/* ---- one ------------------------------------------------------------------------------------------------------------------- */

static struct {
    lin_model *model;
    lin_encoder *encoder;
    lin_worker *worker;
    float *features, *want, *got; // FRAMES frames as one utterance, its log-probabilities in batch form, and those of a test
    int rows;
} f;

static lin_streams *s; // one stream of the network

static lin_config small_config(int stack, int ahead, int conv, lin_norm norm)
{
    lin_config c = sized_config(3, 2, 8, 40, D, V);
    if (conv) c = with_conv(c, 4, 2);
    c.stack = stack;
    c.ahead = ahead;
    c.norm = norm;
    return c;
}

// The variants that stream: each keeps something else. Those of paper/ are the last.
typedef enum variant { LINEAR, FIXED, GATED, CONDITION, SINUSOID, TOKENS, SOFTMAX, POLY2, RANDOM, LSTM, COUNTED } variant;
enum { VARIANTS = TEST_PAPER ? COUNTED + 1 : SOFTMAX };

static lin_config vary(lin_config c, variant v)
{
    static const network_kind kinds[] = {OF_LINEAR, OF_FIXED, OF_GATED, OF_CONDITION, OF_SINUSOID, OF_LINEAR,
                                         OF_SOFTMAX, OF_POLY2, OF_RANDOM, OF_LSTM, OF_SINUSOID};
    c = of_kind(c, kinds[v]);
    if (v == TOKENS) c.tokens = 9, c.stack = 1, c.ahead = 0;
    return v == COUNTED ? of_kind(c, OF_SOFTMAX) : c;
}

static void make(lin_config config)
{
    f.model = model_of(&config, NULL, 5);
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
    OK(lin_encoder_create(f.model, lin_ops_cpu(), &f.encoder, &err));
    OK(lin_worker_create(f.encoder, 1, &f.worker, &err));
    f.features = test_buffer(FRAMES * D, sizeof(float));
    test_fill_f32(f.features, FRAMES * D, 9, -2, 2);
    f.rows = lin_config_frames_out(&config, FRAMES);
    f.want = test_buffer((size_t)f.rows * V, sizeof(float));
    OK(lin_encoder_run(f.worker, f.features, (const int[]){0, FRAMES}, 1, f.want, &err));
    test_guards(f.want, "lin_encoder_run");
    f.got = test_buffer((size_t)f.rows * V, sizeof(float));
}

static void make_stream(lin_config config)
{
    make(config);
    s = one_stream(f.encoder, 1, 0);
}

static void drop(void)
{
    lin_streams_destroy(s);
    lin_worker_destroy(f.worker);
    lin_encoder_destroy(f.encoder);
    lin_model_destroy(f.model);
    TEST_FREE(f.features, f.want, f.got);
    s = NULL;
    memset(&f, 0, sizeof f);
}

// Feeds frames from..to in pieces of random size (0 to `most`) and appends to f.got at *n rows.
static void feed_pieces(lin_streams *to_stream, int from, int to, int most, uint64_t key, int *n)
{
    for (int t = from, i = 0; t < to; i++) {
        int piece = (int)lin_random_below(key, (uint64_t)i, (uint32_t)most + 1);
        if (piece > to - t) piece = to - t;
        *n += one_stream_feed(to_stream, D, V, f.features + (size_t)t * D, piece, 0, f.got + (size_t)*n * V);
        t += piece;
    }
}

static void finish(lin_streams *stream, int *n) { *n += one_stream_feed(stream, D, V, NULL, 0, 1, f.got + (size_t)*n * V); }

static void reset(lin_streams *stream) { ck_assert_int_eq(lin_streams_reset(stream, 0, NULL), LIN_OK); }

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

static lin_config shape(int i)
{
    return vary(small_config(shapes[i].stack, shapes[i].ahead, shapes[i].conv, shapes[i].norm), shapes[i].variant);
}

// In pieces of any size; the last frames come with the end, before it, or with what is too much for one tick.
START_TEST(any_split_gives_the_bits_of_the_batch)
{
    make_stream(shape(_i));
    static const int most[] = {1, 4, 17, 200, FRAMES, 30, 30, 30}, ends[] = {0, 1, 4, 0, FRAMES, 50, FRAMES / 2, FRAMES - 1};
    for (size_t m = 0; m < sizeof most / sizeof *most; m++) {
        const int from = FRAMES - ends[m];
        int n = 0;
        test_poison(f.got, (size_t)f.rows * V * sizeof *f.got);
        feed_pieces(s, 0, from, most[m], 77 + m, &n);
        n += one_stream_feed(s, D, V, f.features + (size_t)from * D, ends[m], 1, f.got + (size_t)n * V);
        ck_assert_int_eq(n, f.rows);
        test_same_f32("log-probabilities", f.got, f.want, (size_t)f.rows * V);
        test_guards(f.got, "lin_streams_tick");
        reset(s);
    }
}
END_TEST

START_TEST(utterances_together_give_the_bits_of_each_alone)
{
    make_stream(vary(small_config(3, 2, 1, LIN_NORM_PRE), (variant)_i));
    static const int lengths[] = {1, 0, 50, 2, 410, 3, 90};
    enum { N = sizeof lengths / sizeof *lengths };
    int offsets[N + 1] = {0}, rows = 0;
    for (int b = 0; b < N; b++) {
        offsets[b + 1] = offsets[b] + lengths[b];
        rows += lin_config_frames_out(&f.model->config, lengths[b]);
    }
    float *together = test_buffer((size_t)rows * V, sizeof *together), *alone = test_buffer((size_t)rows * V, sizeof *alone);
    OK(lin_encoder_run(f.worker, f.features, offsets, N, together, &err));
    for (int b = 0, row = 0; b < N; b++) {
        const int pair[] = {0, lengths[b]};
        OK(lin_encoder_run(f.worker, f.features + (size_t)offsets[b] * D, pair, 1, alone + (size_t)row * V, &err));
        row += lin_config_frames_out(&f.model->config, lengths[b]);
    }
    test_same_f32("a batch", together, alone, (size_t)rows * V);
    test_guards(together, "lin_encoder_run");
    TEST_FREE(together, alone);
}
END_TEST

// Several threads go through the layers as a wave, chunk after chunk: in every form of the network, for whole utterances and for
// streams in pieces that are one chunk, several, and many; and allocate nothing.
START_TEST(threads_do_not_change_the_bits)
{
    make_stream(shape(_i));
    const int grows = shapes[_i].variant == SOFTMAX || shapes[_i].variant == COUNTED;
    for (int threads = 2; threads <= 5; threads++) {
        lin_worker *worker;
        lin_streams *stream = one_stream(f.encoder, threads, 0);
        OK(lin_worker_create(f.encoder, threads, &worker, &err));
        if (!grows && shapes[_i].variant != LSTM)
            ck_assert(lin_pool_threads(worker->wave.pool) == threads && lin_streams_threads(stream) == threads);
        const unsigned long before = lin_memory_count();
        test_poison(f.got, (size_t)f.rows * V * sizeof *f.got);
        OK(lin_encoder_run(worker, f.features, (const int[]){0, FRAMES}, 1, f.got, &err));
        test_same_f32("log-probabilities", f.got, f.want, (size_t)f.rows * V);
        const int most[] = {FRAMES, 150, 400};
        for (int m = 0; m < 3; m++) {
            int n = 0;
            test_poison(f.got, (size_t)f.rows * V * sizeof *f.got);
            feed_pieces(stream, 0, FRAMES, most[m], 5 + (uint64_t)threads, &n);
            finish(stream, &n);
            ck_assert_int_eq(n, f.rows);
            test_same_f32("log-probabilities", f.got, f.want, (size_t)f.rows * V);
            test_guards(f.got, "lin_streams_tick");
            reset(stream);
        }
        // (softmax attention takes a whole utterance at once, and room for it)
        if (!grows) ck_assert_uint_eq(lin_memory_count(), before);
        lin_worker_destroy(worker);
        lin_streams_destroy(stream);
    }
}
END_TEST

START_TEST(saved_loaded_and_forked_at_any_moment)
{
    make_stream(vary(small_config(3, 5, 1, LIN_NORM_PRE), (variant)_i));
    lin_streams *other = one_stream(f.encoder, 1, 0);
    const size_t empty = lin_streams_image_bytes(s, 0), row = lin_config_cache_count(&f.model->config) * sizeof(float);
    for (int cut = 0; cut < FRAMES - 41; cut += cut < 30 ? 1 : 150) {
        int n = 0;
        reset(s);
        feed_pieces(s, 0, cut, 3, 5, &n);
        const size_t size = lin_streams_image_bytes(s, 0);
        ck_assert_uint_eq(size, empty + row * (size_t)n);
        unsigned char *image = test_buffer(size, 1);
        OK(lin_streams_save(s, 0, image, &err));
        test_guards(image, "lin_streams_save");
        ck_assert_int_eq((int)((lin_stream_image *)(void *)image)->frames_in, cut);
        lin_streams *copy = one_stream(f.encoder, 1, 0);
        OK(lin_streams_load(copy, 0, image, size, &err));
        feed_pieces(s, cut, cut + 40, 40, 6, &(int){n}); // the first gets other input: its copies must not change
        OK(lin_streams_load(other, 0, image, size, &err));
        lin_streams *const both[] = {other, copy};
        for (int i = 0; i < 2; i++) {
            int m = n;
            feed_pieces(both[i], cut, FRAMES, 50, 7, &m);
            finish(both[i], &m);
            ck_assert_int_eq(m, f.rows);
            test_same_f32("after load or fork", f.got + (size_t)n * V, f.want + (size_t)n * V, (size_t)(f.rows - n) * V);
        }
        lin_streams_destroy(copy);
        test_buffer_free(image);
    }
    lin_streams_destroy(other);
}
END_TEST

// Whether an image is whole and of this model is the owner's to see (linnet/stream.h); its size and numbers are looked at.
START_TEST(contradicting_images_are_refused)
{
    make_stream(vary(small_config(2, 3, 1, LIN_NORM_PRE), (variant)_i));
    int n = 0;
    feed_pieces(s, 0, 100, 9, 3, &n);
    const size_t size = lin_streams_image_bytes(s, 0);
    unsigned char *image = test_buffer(size, 1);
    lin_stream_image *header = (lin_stream_image *)(void *)image, good;
    OK(lin_streams_save(s, 0, image, &err));
    good = *header;
    FAILS(lin_streams_load(s, 0, image, 10, &err), LIN_FORMAT, "");
    FAILS(lin_streams_load(s, 0, image, size - 4, &err), LIN_FORMAT, "");
    const lin_stream_image bad[] = {{-1, good.waiting, 0}, {good.frames_in, -1, 0}, {good.frames_in, 5, 0}};
    for (int i = 0; i < 3; i++) {
        *header = bad[i];
        FAILS(lin_streams_load(s, 0, image, size, &err), LIN_FORMAT, "");
    }
    feed_pieces(s, 100, FRAMES, 60, 3, &n);
    finish(s, &n);
    test_same_f32("after refused images", f.got, f.want, (size_t)f.rows * V);
    TEST_FREE(image);
}
END_TEST

// Where the state has a constant size; with softmax attention until the cache is full.
START_TEST(streaming_allocates_nothing)
{
    make_stream(vary(small_config(3, 2, 1, LIN_NORM_PRE), (variant)_i));
    const unsigned long before = lin_memory_count();
    for (int round = 0; round < 3; round++) {
        int n = 0;
        feed_pieces(s, 0, FRAMES, 40, 1, &n);
        finish(s, &n);
        reset(s);
    }
    ck_assert_uint_eq(lin_memory_count(), before);
}
END_TEST

START_TEST(softmax_grows_and_says_so)
{
    if (!TEST_PAPER) return;
    make_stream(vary(small_config(1, 0, 0, LIN_NORM_PRE), SOFTMAX));
    const size_t row = lin_config_cache_count(&f.model->config) * sizeof(float);
    ck_assert_uint_eq(row, 3 * 2 * 16 * sizeof(float));
    const unsigned long before = lin_memory_count();
    int n = 0;
    feed_pieces(s, 0, FRAMES, 10, 1, &n);
    ck_assert_uint_eq(lin_memory_count(), before + 2); // 256 rows were doubled twice
    // Without memory nothing changes, and the same frames can be fed again.
    lin_streams *fresh = one_stream(f.encoder, 1, 0);
    const lin_tick tick = {
        .n = 1, .slots = (const int[]){0}, .counts = (const int[]){50}, .input = f.features + (size_t)250 * D};
    lin_tick_results results;
    n = 0;
    feed_pieces(fresh, 0, 250, 100, 1, &n);
    lin_memory_fail_at(1);
    FAILS(lin_streams_tick(fresh, &tick, &results, &err), LIN_NO_MEMORY, "");
    lin_memory_fail_at(0);
    feed_pieces(fresh, 250, FRAMES, 100, 1, &n);
    finish(fresh, &n);
    ck_assert_int_eq(n, f.rows);
    test_same_f32("after LIN_NO_MEMORY", f.got, f.want, (size_t)f.rows * V);
    lin_streams_destroy(fresh);
}
END_TEST

START_TEST(what_cannot_stream_says_why)
{
    static const char *const why[] = {
        "is bidirectional: it needs whole utterances and cannot stream",
        "has LSH attention, which sorts all frames of an utterance: it needs whole utterances and cannot stream",
        "(softmax-naive): it needs whole utterances and cannot stream"};
    static const network_kind kinds[] = {OF_LINEAR, OF_LSH, OF_NAIVE};
    for (int i = 0; i < 3; i++) {
        lin_config c = of_kind(small_config(1, 0, 0, LIN_NORM_PRE), kinds[i]);
        c.causal = i > 0;
        if (TEST_LACKS(&c)) continue;
        make(c);
        s = (lin_streams *)why; // to be cleared
        FAILS(lin_streams_create(f.encoder, &(lin_streams_options){.capacity = 1}, &s, &err), LIN_UNSUPPORTED, why[i]);
        ck_assert_ptr_null(s);
        drop();
    }
}
END_TEST

START_TEST(the_papers_network_costs_228096_bytes)
{
    const lin_config config = lin_config_default(40);
    lin_model *model = model_of(&config, NULL, 1);
    lin_encoder *encoder;
    OK(lin_encoder_create(model, lin_ops_cpu(), &encoder, &err));
    ck_assert_uint_eq(lin_streams_attention_bytes(encoder), 228096);
    ck_assert_uint_eq(lin_config_state_count(&config) * sizeof(float), 228096);
    ck_assert_uint_lt(lin_streams_state_bytes(encoder), 228096 + 256);
    lin_streams_destroy(one_stream(encoder, 1, 0));
    lin_encoder_destroy(encoder);
    lin_model_destroy(model);
    if (!TEST_PAPER) return;
    const lin_config lstm = of_kind(config, OF_LSTM);
    model = model_of(&lstm, NULL, 1);
    OK(lin_encoder_create(model, lin_ops_cpu(), &encoder, &err));
    ck_assert_uint_eq(lin_streams_attention_bytes(encoder), 2 * 2 * 20 * sizeof(float)); // h and c of two layers
    lin_encoder_destroy(encoder);
    lin_model_destroy(model);
}
END_TEST

START_TEST(a_failed_allocation_is_an_error)
{
    lin_config config = small_config(2, 1, 1, LIN_NORM_PRE);
    lin_model *model = model_of(&config, NULL, 1);
    const lin_streams_options o = {.capacity = 1, .threads = 2, .decodes = 1};
    lin_encoder *encoder;
    lin_worker *worker;
    FAIL_EVERY_ALLOCATION_OF(encoder, lin_encoder_create(model, lin_ops_cpu(), &encoder, NULL), lin_encoder_destroy(encoder));
    OK(lin_encoder_create(model, lin_ops_cpu(), &encoder, &err));
    FAIL_EVERY_ALLOCATION_OF(worker, lin_worker_create(encoder, 2, &worker, NULL), lin_worker_destroy(worker));
    s = (lin_streams *)model; // to be cleared
    FAIL_EVERY_ALLOCATION_OF(s, lin_streams_create(encoder, &o, &s, NULL), lin_streams_destroy(s); s = NULL);
    lin_encoder_destroy(encoder);
    lin_model_destroy(model);
}
END_TEST

// A longer utterance takes new room in place of the old. Where memory is short for it, the next utterances are run all the same.
START_TEST(a_worker_works_on_after_a_lack_of_memory)
{
    lin_config config = small_config(1, 0, 0, LIN_NORM_PRE);
    config.causal = 0;
    make(config);
    lin_worker_destroy(f.worker);
    OK(lin_worker_create(f.encoder, 1, &f.worker, &err));
    for (int frames = 3; frames <= FRAMES; frames += FRAMES - 3) {
        lin_memory_fail_at(1);
        FAILS(lin_encoder_run(f.worker, f.features, (const int[]){0, FRAMES}, 1, f.got, &err), LIN_NO_MEMORY, "out of memory");
        lin_memory_fail_at(0);
        OK(lin_encoder_run(f.worker, f.features, (const int[]){0, frames}, 1, f.got, &err));
    }
    test_same_f32("after LIN_NO_MEMORY", f.got, f.want, (size_t)f.rows * V);
}
END_TEST

/* ---- many ------------------------------------------------------------------------------------------------------------------ */

static const struct {
    int stack, ahead, conv_layers, batch;
    streams_kind kind;
} groups[] = {{1, 0, 0, 0, STREAMS_LINEAR}, {1, 2, 3, 4, STREAMS_LINEAR}, {3, 4, 1, 0, STREAMS_LINEAR},
              {2, 1, 0, 1, STREAMS_LINEAR}, {1, 0, 0, 0, STREAMS_SINUSOID}, {2, 1, 0, 3, STREAMS_SINUSOID},
              {1, 0, 0, 0, STREAMS_POLY2},  {2, 1, 1, 4, STREAMS_POLY2},  {1, 0, 0, 0, STREAMS_LSTM},
              {3, 2, 0, 3, STREAMS_LSTM}};

START_TEST(company)
{
    streams_case_company(lin_ops_cpu(), groups[_i].stack, groups[_i].ahead, groups[_i].conv_layers, groups[_i].kind,
                         groups[_i].batch);
}
END_TEST

START_TEST(phones) { streams_case_phones(lin_ops_cpu(), (streams_kind)_i); }
END_TEST

START_TEST(moved) { streams_case_moved(lin_ops_cpu(), (streams_kind)_i); }
END_TEST

START_TEST(refusals)
{
    static streams_world w;
    lin_streams *streams;
    lin_tick_results results;
    streams_begin(&w, lin_ops_cpu(), 1, 0, 0, STREAMS_LINEAR);
    const lin_streams_options none = {.capacity = 0, .longest = 1}, long_ticks = {.capacity = 1, .longest = 1025};
    FAILS(lin_streams_create(w.encoder, &none, &streams, &err), LIN_INVALID, "");
    ck_assert_ptr_null(streams);
    FAILS(lin_streams_create(w.encoder, &long_ticks, &streams, &err), LIN_INVALID, "");
    const lin_streams_options too_many = {.capacity = 40000000, .longest = 64};
    FAILS(lin_streams_create(w.encoder, &too_many, &streams, &err), LIN_INVALID, "more than 2147483647 rows");
    const lin_fbank_table table = {.D = STREAMS_D, .hop_samples = 1, .window_samples = 2, .n_fft = 2};
    FAILS(lin_streams_create(w.encoder, &(lin_streams_options){.capacity = 1, .longest = 1, .fbank = &table}, &streams, &err),
          LIN_UNSUPPORTED, "");
    OK(lin_streams_create(w.encoder, &(lin_streams_options){.capacity = 3, .longest = 4}, &streams, &err));
    const int twice[] = {1, 1}, none_such[] = {3}, one[] = {1}, counts[] = {1, 1}, many[] = {5}, few[] = {-1};
    const unsigned char last[] = {1};
    const lin_tick bad[] = {{2, twice, counts, NULL, w.features[0]}, {1, none_such, counts, NULL, w.features[0]},
                            {1, one, many, NULL, w.features[0]},     {1, one, few, NULL, w.features[0]},
                            {4, one, counts, NULL, w.features[0]},   {-1, one, counts, NULL, w.features[0]}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        FAILS(lin_streams_tick(streams, &bad[i], &results, &err), LIN_INVALID, "");
    OK(lin_streams_tick(streams, &(lin_tick){1, one, counts, last, w.features[0]}, &results, &err));
    ck_assert_int_eq(results.offsets[1], 1);
    streams_judge(&w, "after refusals", results.logp, w.want[0], STREAMS_V);
    FAILS(lin_streams_tick(streams, &(lin_tick){1, one, counts, NULL, w.features[0]}, &results, &err), LIN_INVALID, "finished");
    FAILS(lin_streams_reset(streams, 3, &err), LIN_INVALID, "");
    lin_streams_destroy(streams);
    streams_end(&w);
}
END_TEST

TEST_MAIN_WITH(NULL, drop, "model/streams", TESTS(any_split_gives_the_bits_of_the_batch, 0, SHAPES),
               TESTS(utterances_together_give_the_bits_of_each_alone, 0, VARIANTS),
               TESTS(threads_do_not_change_the_bits, 0, SHAPES), TESTS(saved_loaded_and_forked_at_any_moment, 0, VARIANTS),
               TESTS(contradicting_images_are_refused, 0, VARIANTS), TESTS(streaming_allocates_nothing, 0, VARIANTS),
               TEST(softmax_grows_and_says_so), TEST(what_cannot_stream_says_why), TEST(the_papers_network_costs_228096_bytes),
               TEST(a_failed_allocation_is_an_error), TEST(a_worker_works_on_after_a_lack_of_memory),
               TESTS(company, 0, TEST_PAPER ? (int)(sizeof groups / sizeof *groups) : 6),
               TESTS(phones, 0, STREAMS_KINDS), TESTS(moved, 0, STREAMS_KINDS), TEST(refusals))
