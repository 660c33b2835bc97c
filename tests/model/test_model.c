// Models and their files: exact round trips, the same results from every form of a file, every kind of damage with its message.
#include "model/model.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/memory.h"
#include "base/number.h"
#include "model/streams.h"
#include "tests/model/networks.h"

enum { D = 2, V = 3 };

static const char *path, *damaged;

static void enter(void)
{
    path = test_path("m.safetensors");
    damaged = test_path("damaged.safetensors");
}

static lin_model *small_model(void)
{
    lin_config c = sized_config(1, 1, 2, 3, D, V);
    const lin_features f = {16000, 25, 10, 20, -400.125, 0.97, 0};
    lin_model *model;
    c.dropout = 0.1;
    OK(lin_model_create(&c, &f, "<blank> AA \xC9\x99", 5, &model, &err));
    model->mean[1] = -3.7F;
    model->istd[0] = 0.3F;
    OK(lin_model_label(model, "small", "Apache-2.0", "{\"data\": [\"a\", 1]}", &err));
    lin_model_seal(model);
    return model;
}

typedef struct file {
    unsigned char *bytes;
    size_t n, header; // header: length of the JSON text
} file;

static file read_file(const char *from)
{
    file f = {malloc(1 << 16), 0, 0};
    f.n = test_read_file(from, f.bytes, 1 << 16);
    uint64_t length;
    memcpy(&length, f.bytes, 8);
    f.header = (size_t)length;
    return f;
}

static file saved(lin_dtype dtype)
{
    lin_model *model = small_model();
    OK(lin_model_save(model, path, dtype, &err));
    lin_model_destroy(model);
    return read_file(path);
}

// The file with the first `from` in its header replaced, lengths corrected.
static file edited(const file *f, const char *from, const char *to)
{
    const size_t a = strlen(from), b = strlen(to);
    unsigned char *at = memmem(f->bytes + 8, f->header, from, a);
    ck_assert_msg(at != NULL, "no %s in the header", from);
    const size_t before = (size_t)(at - f->bytes);
    file g = {malloc(f->n + b), f->n + b - a, f->header + b - a};
    memcpy(g.bytes, f->bytes, before);
    memcpy(g.bytes + before, to, b);
    memcpy(g.bytes + before + b, at + a, f->n - before - a);
    const uint64_t length = g.header;
    memcpy(g.bytes, &length, 8);
    return g;
}

static void refused(const void *bytes, size_t n, lin_status status, const char *message)
{
    lin_model *model;
    lin_error err = {0};
    unsigned char *copy = malloc(n ? n : 1); // a block of exactly n bytes
    if (n) memcpy(copy, bytes, n);
    const lin_status got = lin_model_load_memory(copy, n, "m", &model, &err);
    free(copy);
    // an opened file is checked alike
    lin_model *opened;
    lin_error same = {0};
    test_write_file(damaged, bytes, n);
    ck_assert_int_eq(lin_model_open(damaged, 0, &opened, &same), got);
    ck_assert_ptr_null(opened);
    ck_assert_msg(strncmp(same.message, damaged, strlen(damaged)) == 0 &&
                      strcmp(same.message + strlen(damaged), err.message + 1) == 0,
                  "\"%s\", in a file \"%s\"", err.message, same.message);
    ck_assert_msg(got == status && strstr(err.message, message), "expected %s \"%s\", got %s \"%s\"", lin_status_name(status),
                  message, lin_status_name(got), err.message);
    ck_assert_ptr_null(model);
    ck_assert_msg(strncmp(err.message, "m: ", 3) == 0, "the file is not named: %s", err.message);
}

typedef struct edit {
    const char *from, *to, *message;
} edit;

static void edits_refused(const file *f, const edit *edits, size_t n, lin_status status)
{
    for (size_t i = 0; i < n; i++) {
        file g = edited(f, edits[i].from, edits[i].to);
        refused(g.bytes, g.n, status, edits[i].message);
        free(g.bytes);
    }
}

static void same_model(const lin_model *a, const lin_model *b)
{
    ck_assert_int_eq(memcmp(&a->config, &b->config, offsetof(lin_config, causal) + sizeof a->config.causal), 0);
    ck_assert(a->config.dropout == b->config.dropout);
    ck_assert(lin_features_equal(&a->features, &b->features));
    test_same_f32("mean", a->mean, b->mean, D);
    test_same_f32("istd", a->istd, b->istd, D);
    test_same_f32("weights", a->values, b->values, b->params.n_elements);
    ck_assert_str_eq(a->phones, b->phones);
    ck_assert_str_eq(a->name, b->name);
    ck_assert_str_eq(a->license, b->license);
    ck_assert_str_eq(a->provenance, b->provenance);
    ck_assert_uint_eq(a->fingerprint, b->fingerprint);
}

/* ---- round trips ----------------------------------------------------------------------------------------------------------- */

START_TEST(floats_come_back_to_the_bit)
{
    lin_model *model = small_model(), *back;
    model->values[3] = -0.0F;
    model->values[4] = 1e-45F;
    model->values[5] = 3.4e38F;
    lin_model_seal(model);
    OK(lin_model_save(model, path, LIN_F32, &err));
    OK(lin_model_load(path, &back, &err));
    same_model(back, model);
    ck_assert_str_eq(lin_symbols_text(&back->phone, 2), "\xC9\x99");
    ck_assert_str_eq(lin_symbols_text(&back->phone, 1), "AA");
    lin_model_destroy(back);
    lin_model_destroy(model);
}
END_TEST

START_TEST(halves_come_back_rounded)
{
    lin_model *model = small_model(), *back, *again;
    OK(lin_model_save(model, path, LIN_F16, &err));
    OK(lin_model_load(path, &back, &err));
    for (size_t i = 0; i < model->params.n_elements; i++) {
        const float want = lin_half_to_float(lin_float_to_half(model->values[i]));
        test_require(back->values[i] == want, "weight %zu", i);
    }
    test_same_f32("mean", back->mean, model->mean, D);
    ck_assert(back->fingerprint != model->fingerprint);
    OK(lin_model_save(back, path, LIN_F16, &err));
    OK(lin_model_load(path, &again, &err));
    same_model(again, back);
    lin_model_destroy(again);
    lin_model_destroy(back);
    lin_model_destroy(model);
}
END_TEST

// The same numbers, those of matrices in the file; a file of floats has none there.
START_TEST(an_opened_model_is_the_loaded_one)
{
    for (int half = 0; half < 2; half++) {
        lin_model *loaded, *opened;
        free(saved(half ? LIN_F16 : LIN_F32).bytes);
        OK(lin_model_load(path, &loaded, &err));
        OK(lin_model_open(path, 0, &opened, &err));
        ck_assert_ptr_null(loaded->stored);
        int in_file = 0;
        for (int i = 0; i < opened->params.n_tensors; i++) {
            const lin_param *p = &opened->params.table[i];
            if (!opened->stored[i].half) continue;
            in_file++;
            ck_assert_int_gt(p->parts, 0);
            lin_half_widen(opened->stored[i].half, lin_param_count(p), opened->values + p->offset);
        }
        ck_assert(half ? in_file > 3 : in_file == 0);
        same_model(opened, loaded);
        lin_model_destroy(loaded);
        lin_model_destroy(opened);
    }
}
END_TEST

START_TEST(every_configuration_comes_back)
{
    for (int positions = 0; positions < 3; positions++)
        for (int other = 0; other < 2; other++) {
            lin_config c = lin_config_default(300);
            c.layers = 2;
            c.heads = 1;
            c.head_width = 4;
            c.positions = (lin_positions)positions;
            c.conv_kernel = positions == LIN_POSITIONS_CONV ? 5 : 0;
            c.conv_layers = positions == LIN_POSITIONS_CONV ? 2 : 0;
            c.norm = (lin_norm)other;
            c.causal = !other;
            c.decay = other ? LIN_DECAY_NONE : (lin_decay_kind)positions;
            c.stack = 1 + other * 3;
            c.ahead = other * 2;
            c.dropout = other ? 1.0 / 3 : 0;
            const lin_features f = {8000, 24.999999999999996, 1.0 / 3, 0, 3999.5, 0, 61.125};
            lin_model *model, *back;
            OK(lin_model_create(&c, &f, NULL, 1, &model, &err));
            OK(lin_model_save(model, path, LIN_F32, &err));
            OK(lin_model_load(path, &back, &err));
            same_model(back, model);
            ck_assert(lin_config_same_shape(&back->config, &c) && back->features.level_db == f.level_db);
            lin_model_destroy(back);
            lin_model_destroy(model);
        }
}
END_TEST

START_TEST(checkpoints_come_back_to_the_bit)
{
    const float moments[] = {1.5F, -0.0F, NAN, INFINITY};
    const lin_tensor tensors[] = {{"train.raw", LIN_I8, 1, {3}, "\0\xFF\7"},
                                  {"train.m", LIN_F32, 2, {2, 2}, moments},
                                  {"train.best", LIN_F32, 0, {0}, moments},
                                  {"train.none", LIN_F32, 1, {0}, moments}};
    const lin_text texts[] = {{"train.conf", "line 1\nline \"2\"\t\\\n"}, {"train.a", ""}};
    lin_model *model = small_model(), *back;
    lin_checkpoint got;
    OK(lin_model_save_checkpoint(model, path, tensors, 4, texts, 2, &err));
    OK(lin_model_load_checkpoint(path, &back, &got, &err));
    same_model(back, model);
    float m[4], best;
    OK(lin_checkpoint_read(&got, "train.m", 4, m, &err));
    OK(lin_checkpoint_read(&got, "train.best", 1, &best, &err));
    OK(lin_checkpoint_read(&got, "train.none", 0, NULL, &err));
    ck_assert(memcmp(m, moments, sizeof m) == 0 && best == *moments);
    ck_assert_mem_eq(lin_safetensors_find(&got.file, "train.raw")->data, "\0\xFF\7", 3);
    ck_assert_int_eq(lin_safetensors_find(&got.file, "train.m")->n_dims, 2);
    ck_assert_str_eq(lin_safetensors_text(&got.file, "train.conf"), texts[0].value);
    ck_assert_str_eq(lin_safetensors_text(&got.file, "train.a"), "");
    ck_assert_ptr_null(lin_safetensors_text(&got.file, "train.b"));
    FAILS(lin_checkpoint_read(&got, "train.v", 4, m, &err), LIN_FORMAT, "tensor train.v is missing");
    FAILS(lin_checkpoint_read(&got, "train.m", 3, m, &err), LIN_FORMAT, "");
    FAILS(lin_checkpoint_read(&got, "train.raw", 3, m, &err), LIN_FORMAT, "3 elements of type I8; expected 3 of type F32");
    lin_checkpoint_close(&got);
    lin_model_destroy(back);

    OK(lin_model_load(path, &back, &err)); // for other readers it is a model
    same_model(back, model);
    lin_model_destroy(back);

    const lin_text odd = {"train.x", "\xFF"};
    FAILS(lin_model_save_checkpoint(model, path, NULL, 0, &odd, 1, &err), LIN_INVALID, "");
    const lin_tensor twice[] = {tensors[0], tensors[0]};
    FAILS(lin_model_save_checkpoint(model, path, twice, 2, NULL, 0, &err), LIN_INVALID, "");
    lin_model_destroy(model);
}
END_TEST

START_TEST(the_fingerprint_covers_what_counts)
{
    lin_model *model = small_model();
    const uint64_t before = model->fingerprint;
    struct {
        void *at;
        size_t n;
        int counts;
    } fields[] = {{&model->values[7], 4, 1},          {&model->values[model->params.n_elements - 1], 4, 1},
                  {&model->mean[0], 4, 1},            {&model->istd[D - 1], 4, 1},
                  {&model->config.causal, 1, 1},      {&model->config.ahead, 1, 1},
                  {&model->config.norm, 1, 1},        {&model->features.hop_ms, 8, 1},
                  {&model->features.sample_hz, 2, 1}, {&model->phones[9], 1, 1},
                  {&model->config.dropout, 8, 0},     {&model->name[0], 1, 0}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        unsigned char *byte = fields[i].at;
        *byte ^= 1;
        lin_model_seal(model);
        ck_assert_msg((model->fingerprint != before) == fields[i].counts, "field %zu", i);
        *byte ^= 1;
    }
    lin_model_seal(model);
    ck_assert_uint_eq(model->fingerprint, before);
    lin_model_destroy(model);
}
END_TEST

static lin_config config_of_tokens(int mixture)
{
    lin_config c = sized_config(1, 1, 2, 3, D, V);
    c.tokens = mixture ? 256 : 5;
    c.mixture = mixture;
    if (mixture) c.outputs = 3 * mixture;
    return c;
}

// Only networks of tokens have the two texts; the table is a tensor, also in half precision.
START_TEST(tokens_come_back)
{
    enum { KINDS = TEST_PAPER ? 3 : 1 }; // a softmax, and mixtures
    lin_model *models[KINDS], *back;
    for (int i = 0; i < KINDS; i++) {
        const lin_config c = config_of_tokens(i);
        lin_model *m = models[i] = model_of(&c, NULL, 1);
        ck_assert_str_eq(m->params.table[m->params.embedding].name, "embedding.weight");
        ck_assert_str_eq(lin_symbols_text(&m->phone, V - 1), "2");
        ck_assert_int_eq(lin_config_symbols(&m->config), i ? 256 : V);
        for (int half = 0; half < 2; half++) {
            OK(lin_model_save(m, path, half ? LIN_F16 : LIN_F32, &err));
            OK(lin_model_load(path, &back, &err));
            ck_assert(lin_config_same_shape(&back->config, &c));
            if (!half) same_model(back, m);
            lin_model_destroy(back);
        }
    }
    lin_model *m = models[KINDS > 1];
    // every number counts
    for (int i = 0; i < 3; i++) {
        const uint64_t before = m->fingerprint;
        m->config.tokens += i == 0;
        m->config.mixture += i == 1;
        if (i == 2) m->config.tokens = m->config.mixture = 0;
        lin_model_seal(m);
        ck_assert_uint_ne(m->fingerprint, before);
    }
    m->config = config_of_tokens(KINDS > 1);
    static const edit cases[] = {
        {"\"tokens\":\"256\"", "\"tokens\":\"0\"", "tokens is \"0\"; must be a number from 1 to 65536"},
        {"\"tokens\":\"256\"", "\"tokens\":\"-1\"", "tokens is \"-1\"; must be a number"},
        {"\"tokens\":\"256\"", "\"tokens\":\"65537\"", "tokens is \"65537\"; must be a number"},
        {"\"tokens\":\"256\"", "\"tokens\":\"4294967552\"", "tokens is \"4294967552\"; must be a number"},
        {"\"tokens\":\"256\"", "\"tokens\":\"2.5\"", "tokens is \"2.5\"; must be a number"},
        {"\"tokens\":\"256\"", "\"tokens\":\"\"", "tokens is \"\"; must be a number"},
        {"\"tokens\":\"256\"", "\"tokens\":\"257\"", "embedding.weight has the shape [256, 2]; the configuration requires [257,"},
        {"\"tokens\":\"256\",", "", "only a network of tokens has it"},
        {"\"mixture\":\"1\"", "\"mixture\":\"2\"", "a mixture of 2 has 6 outputs, not 3"},
        {"\"mixture\":\"1\"", "\"mixture\":\"65\"", "mixture is \"65\"; must be a number from 1 to 64"},
        {",\"mixture\":\"1\"", "", "phones: 256 names, but the network has 3 outputs"},
        {"\\\"stack\\\":1", "\\\"stack\\\":2", "tokens come one by one"},
        {"\\\"ahead\\\":0", "\\\"ahead\\\":1", "tokens come one by one"},
    };
    lin_model_seal(m);
    OK(lin_model_save(m, path, LIN_F32, &err));
    file whole = read_file(path);
    if (KINDS > 1) edits_refused(&whole, cases, sizeof cases / sizeof *cases, LIN_FORMAT);
    free(whole.bytes);
    for (int i = 0; i < KINDS; i++) lin_model_destroy(models[i]);
}
END_TEST

static lin_config of_speech(void)
{
    lin_config c = of_kind(sized_config(3, 2, 8, 32, 4, V), OF_GATED);
    c.norm = LIN_NORM_PRE;
    c.condition_every = 2;
    return c;
}

// Matrices packed from a file in half precision give the bits of those packed from floats.
START_TEST(an_opened_model_computes_the_same)
{
    enum { FRAMES = 40, VARIANTS = 8 };
    float features[FRAMES * 4];
    test_fill_f32(features, FRAMES * 4, 4, -2, 2);
    for (int i = 0; i < VARIANTS; i++) {
        lin_config c = of_speech();
        lin_model *model, *loaded, *opened;
        float a[FRAMES * V], b[FRAMES * V];
        static const network_kind kinds[] = {[2] = OF_LSTM, OF_SOFTMAX, OF_LSH, OF_RANDOM, [7] = OF_SINUSOID};
        if (i > 1) c.decay = LIN_DECAY_NONE, c.condition_every = 0;
        if (i == 1) c = with_conv(c, 3, 2), c.norm = LIN_NORM_POST;
        c = of_kind(c, kinds[i]);
        if (i == 6) c.feedforward = LIN_HALF_COLUMNS + 8; // some of its matrices are widened
        if (i == 7) c.tokens = 6;
        if (TEST_LACKS(&c)) continue;
        model = model_of(&c, NULL, 1);
        OK(lin_model_save(model, path, LIN_F16, NULL));
        OK(lin_model_load(path, &loaded, NULL));
        OK(lin_model_open(path, 0, &opened, NULL));
        // what stays in the file is not in values
        for (int t = 0; t < opened->params.n_tensors; t++)
            if (opened->stored[t].half)
                for (size_t n = lin_param_count(&opened->params.table[t]); n-- > 0;)
                    opened->values[opened->params.table[t].offset + n] = NAN;
        rows_of(loaded, lin_ops_cpu(), 1, 0, features, FRAMES, a);
        rows_of(opened, lin_ops_cpu(), 1, 0, features, FRAMES, b);
        test_same_f32("log-probabilities", b, a, FRAMES * V);
        lin_model_destroy(model);
        lin_model_destroy(loaded);
        lin_model_destroy(opened);
    }
}
END_TEST

// The second output is kept in the file, and is what a worker or streams that ask for it have: the same bits
// as a network whose only output it is. Others do not see it.
START_TEST(a_second_output_is_for_searches)
{
    enum { FRAMES = 200 };
    lin_config c = of_speech();
    lin_model *one = model_of(&c, NULL, 1), *two, *again;
    static float features[FRAMES * 4], first[FRAMES * V], a[FRAMES * V], b[FRAMES * V];
    test_fill_f32(features, FRAMES * 4, 4, -2, 2);
    c.search = 1;
    ck_assert(!lin_config_same_shape(&one->config, &c));
    two = model_of(&c, NULL, 2);
    ck_assert_uint_eq(two->params.n_elements, one->params.n_elements + V * (2 * 8 + 1));
    memcpy(two->values, one->values, one->params.n_elements * sizeof *one->values); // the search's tensors are the last
    for (int i = 0; i < 2; i++)
        memcpy(two->values + two->params.table[two->params.search[i]].offset,
               one->values + one->params.table[one->params.output[i]].offset,
               lin_param_count(&one->params.table[one->params.output[i]]) * sizeof *one->values);
    lin_model_seal(two);
    ck_assert_uint_ne(two->fingerprint, one->fingerprint);
    rows_of(one, lin_ops_cpu(), 1, 1, features, FRAMES, first); // of a network without one, it is the only one
    for (int search = 0; search < 2; search++) {
        rows_of(two, lin_ops_cpu(), 1, search, features, FRAMES, a);
        test_same_f32("a second output that is equal", a, first, FRAMES * V);
    }
    for (int i = 0; i < 2; i++) {
        const lin_param *to = &two->params.table[two->params.search[i]], *of = &one->params.table[one->params.output[i]];
        test_fill_f32(two->values + to->offset, lin_param_count(to), 7 + (uint64_t)i, -1, 1);
        memcpy(one->values + of->offset, two->values + to->offset, lin_param_count(to) * sizeof(float));
    }
    lin_model_seal(one);
    lin_model_seal(two);
    OK(lin_model_save(two, path, LIN_F32, NULL));
    OK(lin_model_load(path, &again, NULL));
    ck_assert_uint_eq(again->fingerprint, two->fingerprint);
    rows_of(one, lin_ops_cpu(), 1, 0, features, FRAMES, b);
    for (int threads = 1; threads < 4; threads += 2) {
        rows_of(again, lin_ops_cpu(), threads, 0, features, FRAMES, a);
        test_same_f32("the first output", a, first, FRAMES * V);
        rows_of(again, lin_ops_cpu(), threads, 1, features, FRAMES, a);
        test_same_f32("the second output", a, b, FRAMES * V);
    }
    lin_encoder *encoder;
    lin_streams *streams;
    lin_tick_results results;
    OK(lin_encoder_create(again, lin_ops_cpu(), &encoder, NULL));
    for (int search = 0; search < 2; search++) {
        const lin_streams_options o = {.capacity = 1, .longest = 64, .search = search};
        OK(lin_streams_create(encoder, &o, &streams, NULL));
        for (int t = 0, n = 40; t < FRAMES; t += n) {
            const lin_tick tick = {.n = 1, .slots = (const int[]){0}, .counts = &n, .input = features + (size_t)t * 4};
            OK(lin_streams_tick(streams, &tick, &results, NULL));
            test_same_f32("a tick", results.logp, (search ? b : first) + (size_t)t * V, (size_t)n * V);
        }
        lin_streams_destroy(streams);
    }
    lin_encoder_destroy(encoder);
    lin_model_destroy(one);
    lin_model_destroy(two);
    lin_model_destroy(again);
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------------------------------------------- */

START_TEST(damaged_headers_are_refused)
{
    static const edit damage[] = {
        {"\"shape\":[2,2]", "\"shape\":[4,1]", "tensor input.weight has the shape [4, 1]; the configuration requires [2, 2]"},
        {"\"shape\":[2,2]", "\"shape\":[4]", "tensor input.weight has the shape [4]; the configuration requires [2, 2]"},
        {"\"shape\":[2,2]", "\"shape\":[2,3]", "tensor input.weight needs 24 bytes for its shape and type but has 16"},
        {"\"shape\":[2,2]", "\"shape\":[-2,-2]", "the shape of tensor input.weight has values that are not whole numbers"},
        {"\"shape\":[2,2]", "\"shape\":[1.5,2]", "the shape of tensor input.weight has values that are not whole numbers"},
        {"\"shape\":[2,2]", "\"shape\":[4611686018427387905,4]", "the shape of tensor input.weight has values that are not"},
        {"\"shape\":[2,2]", "\"shape\":[4503599627370496,4503599627370496]", "tensor input.weight is too large"},
        {"\"shape\":[2,2]", "\"shape\":[1,1,1,2,2]", "tensor input.weight has more than 4 dimensions"},
        {"\"shape\":[2,2]", "\"shape\":\"2,2\"", "tensor input.weight has no dtype, shape or data_offsets"},
        {"\"shape\":[2,2]", "\"shape\":[2,2],\"shape\":[2,2]", "tensor input.weight has a repeated field"},
        {"\"shape\":[2,2]", "\"shape\":[2,2],\"x\":1", "tensor input.weight has a field besides"},
        {"{\"dtype\":\"F32\",\"shape\":[2,2]", "{\"dtype\":\"F16\",\"shape\":[2,2]", "tensor input.weight needs 8 bytes"},
        {"\"data_offsets\":[16,32]", "\"data_offsets\":[12,28]", "tensor input.weight overlaps another one at byte 12"},
        {"\"data_offsets\":[32,40]", "\"data_offsets\":[36,44]", "tensor input.bias leaves a gap before it at byte 36"},
        {"\"data_offsets\":[16,32]", "\"data_offsets\":[32,16]", "are not two whole numbers in rising order"},
        {"\"data_offsets\":[16,32]", "\"data_offsets\":[16,900000]", "tensor input.weight ends at byte 900000 of the data"},
        {"\"data_offsets\":[16,32]", "\"data_offsets\":[16]", "has no dtype, shape or data_offsets"},
        {"\"input.bias\"", "\"norm.bias\"", "tensor norm.bias is repeated"},
        {"\"input.bias\"", "\"input.bios\"", "tensor input.bias is missing"},
        {"\"input.bias\"", "\"train.bias\"", "tensor input.bias is missing"},
        {"\"input.weight\"", "\"more\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[16,16]},\"input.weight\"",
         "tensor more is not part of this configuration"},
        {"\"input.weight\":{", "\"input.weight\":[{", "is not JSON"},
        {"\"input.weight\":{", "\"input.weight\":[{", ": the model is damaged; get a new copy"},
        {"\"input.weight\"", "\"in\\u001bput\"", "contains control characters"},
        {"\"input.weight\"", "\"\xFFweight\"", "is not text in UTF-8"},
        {"{\"__metadata__\":{", "{\"__metadata__\":{\"a\":1,", "the metadata value a is not a string"},
        {"{\"__metadata__\":{", "{\"__metadata__\":{\"name\":\"\",", "the metadata value name is repeated"},
        {"{\"__metadata__\":", "{\"__metadata__\":{},\"__metadata__\":", "__metadata__ is repeated"},
        {"{\"__metadata__\":", "{\"x\":[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]],\"__metadata__\":", "nests deeper than 16 levels"},
        {"\"format\":\"linnet\"", "\"format\":\"pt\"", "not a linnet model (its format is \"pt\")"},
        {"\"name\":\"small\"", "\"name\":\"smell\"", "the checksum of the file is wrong: the model is damaged; get a new copy"},
        {"\"checksum\"", "\"checks\"", "the checksum of the file is wrong"},
        {"\"format_version\":\"3\",", "", "the metadata have no format_version"},
        {"\"fingerprint\":\"", "\"fingerprint\":\"0", "is not 16 hexadecimal digits"},
        {"\\\"layers\\\":1,", "\\\"layers\\\":2,", "tensor layers.1.qkv.weight is missing"},
        {"\\\"layers\\\":1,", "\\\"layers\\\":65,", "network configuration: layers is 65; must be 1 to 64"},
        {"\\\"layers\\\":1,", "\\\"layers\\\":1.5,", "config: layers is not a whole number"},
        {"\\\"layers\\\":1,", "\\\"layers\\\":1e99,", "config: layers is not a whole number"},
        {"\\\"layers\\\":1,", "", "config: layers is missing"},
        {"\\\"layers\\\":1,", "\\\"layers\\\":1,\\\"layers\\\":1,", "config: layers is repeated"},
        {"\\\"layers\\\":1,", "\\\"layers\\\":1,\\\"more\\\":1,", "config: more is unknown"},
        {"\\\"layers\\\":1,", "\\\"layers\\\":1", "config is not JSON"},
        {"\\\"heads\\\":1,", "\\\"heads\\\":64,", "requires [128, 2]"},
        {"\\\"positions\\\":\\\"none\\\"", "\\\"positions\\\":\\\"rope\\\"", "config: positions is not one of its names"},
        {"\\\"causal\\\":true", "\\\"causal\\\":1", "config: causal is not true or false"},
        {"\\\"dropout\\\":0.1", "\\\"dropout\\\":1.1", "dropout is 1.1"},
        {"\\\"sample_hz\\\":16000", "\\\"sample_hz\\\":99", "features: sample_hz is 99; must be 4000 to 192000"},
        {"<blank> AA", "<blank> AA B", "phones: 4 names, but the network has 3 outputs"},
        {"<blank> AA", "AA AA", "phones: AA is repeated"},
        {"<blank> AA", "<blank>  AA", "phones: name 2 is empty"},
        {"<blank> AA", "<blank> A\\nA", "phones: byte 9 is not UTF-8 text"},
        {"{\\\"data\\\":", "{\\\"data\\\"", "provenance is not JSON"},
        {"{\"__metadata__\":{", "{\"__metadata__\":{\"decay\":\"gated\",", "tensor layers.0.decay.weight is missing"},
        {"{\"__metadata__\":{", "{\"__metadata__\":{\"decay\":\"fixed\",", "tensor layers.0.decay.bias is missing"},
        {"{\"__metadata__\":{", "{\"__metadata__\":{\"decay\":\"none\",", "the checksum of the file is wrong"},
    };
    static const edit foreign[] = {
        {"{\"dtype\":\"F32\",\"shape\":[2,2]", "{\"dtype\":\"BF16\",\"shape\":[2,2]", "tensor input.weight is of type BF16"},
        {"{\"dtype\":\"F32\",\"shape\":[2,2]", "{\"dtype\":\"I\\n\",\"shape\":[2,2]", "(text of severa"},
        {"\"format_version\":\"3\"", "\"format_version\":\"2\"", "model format version 2; this program reads version 3"},
        {"\\\"window\\\":\\\"povey\\\"", "\\\"window\\\":\\\"hamming\\\"", "features: window is not \"povey\""},
        {"\\\"dither\\\":0", "\\\"dither\\\":1", "features: dither is not 0"},
        {"\\\"remove_dc\\\":true", "\\\"remove_dc\\\":false", "features: remove_dc is not true"},
        {"{\"__metadata__\":{", "{\"__metadata__\":{\"decay\":\"often\",",
         "decay is \"often\"; this program supports none, fixed and gated"},
    };
    file f = saved(LIN_F32);
    edits_refused(&f, damage, sizeof damage / sizeof *damage, LIN_FORMAT);
    edits_refused(&f, foreign, sizeof foreign / sizeof *foreign, LIN_UNSUPPORTED);
    free(f.bytes);
}
END_TEST

START_TEST(lying_header_lengths_are_refused)
{
    file f = saved(LIN_F32);
    const struct {
        uint64_t length;
        const char *message;
    } cases[] = {{UINT64_MAX, "the header gives its size as 18446744073709551615 bytes, over the limit"},
                 {1ULL << 60, "over the limit of 16777216; damaged, or not a model"},
                 {(16 << 20) + 1, "over the limit"},
                 {f.n, "bytes but the file has"},
                 {f.n - 7, "it is truncated"},
                 {0, "is not JSON"},
                 {1, "is not JSON"},
                 {f.header - 64, "is not JSON"},
                 {f.header + 4, "m: the header"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(f.bytes, &cases[i].length, 8);
        refused(f.bytes, f.n, LIN_FORMAT, cases[i].message);
    }
    free(f.bytes);
}
END_TEST

START_TEST(foreign_files_are_refused)
{
    const struct {
        const char *bytes;
        size_t n;
        const char *message;
    } cases[] = {{"", 0, "m: the file is empty"},
                 {"\2\0\0\0\0\0\0\0{", 9, "9 bytes are too few"},
                 {"RIFF\0\0\0\0WAVEfmt ", 16, "not a safetensors file"},
                 {"To be, or not to be\n", 20, "not a safetensors file"},
                 {"\2\0\0\0\0\0\0\0{}", 10, "not a linnet model (its format is not given)"},
                 {"\2\0\0\0\0\0\0\0{}more", 14, "4 bytes after the last tensor"},
                 {"\4\0\0\0\0\0\0\0{} x", 12, "has extra text after its end, at byte 11"},
                 {"\4\0\0\0\0\0\0\0{}\0\0", 12, "is not text in UTF-8 at byte 10"},
                 {"\7\0\0\0\0\0\0\0{\"a\":1}", 15, "tensor a is not an object"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) refused(cases[i].bytes, cases[i].n, LIN_FORMAT, cases[i].message);
    lin_model *model;
    FAILS(lin_model_load(test_path(""), &model, &err), LIN_IO, "it is a directory");
    FAILS(lin_model_load(path, &model, &err), LIN_IO, "m.safetensors: No such file or directory");
    FAILS(lin_model_load("/dev/null", &model, &err), LIN_IO, "");
    test_write_file(path, "", 0);
    FAILS(lin_model_load(path, &model, &err), LIN_FORMAT, "the file is empty");
}
END_TEST

START_TEST(a_swarm_of_values_is_refused)
{
    const size_t n = 3 << 20;
    char *bytes = malloc(n + 8);
    const uint64_t length = n;
    memcpy(bytes, &length, 8);
    memset(bytes + 8, ',', n);
    memcpy(bytes + 8, "{\"a\":[0", 7);
    refused(bytes, n + 8, LIN_FORMAT, "has more than 200000 values");
    free(bytes);
}
END_TEST

START_TEST(weights_that_are_no_numbers_are_refused)
{
    const struct {
        lin_dtype dtype;
        unsigned char bits[4];
        const char *message;
    } cases[] = {{LIN_F32, {0, 0, 0xC0, 0x7F}, "tensor input.weight holds NaN at element 1"},
                 {LIN_F32, {0, 0, 0x80, 0xFF}, "tensor input.weight holds infinity at element 1"},
                 {LIN_F16, {0x01, 0x7C}, "tensor input.weight holds NaN at element 1"},
                 {LIN_F16, {0x00, 0xFC}, "tensor input.weight holds infinity at element 1"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        file f = saved(cases[i].dtype);
        const size_t size = cases[i].dtype == LIN_F32 ? 4 : 2;
        memcpy(f.bytes + 8 + f.header + 16 + size, cases[i].bits, size);
        refused(f.bytes, f.n, LIN_NUMERIC, cases[i].message);
        free(f.bytes);
    }
    file f = saved(LIN_F32);
    memset(f.bytes + 8 + f.header + 8, 0, 4);
    refused(f.bytes, f.n, LIN_FORMAT, "tensor features.istd is not positive at element 0");
    free(f.bytes);
}
END_TEST

START_TEST(no_part_of_a_file_is_a_model)
{
    file f = saved(LIN_F16);
    for (size_t n = 0; n < f.n; n++) {
        lin_model *model;
        unsigned char *copy = malloc(n ? n : 1);
        memcpy(copy, f.bytes, n);
        test_require(lin_model_load_memory(copy, n, "m", &model, NULL) == LIN_FORMAT && !model, "%zu bytes were taken", n);
        free(copy);
    }
    f.bytes = realloc(f.bytes, f.n + 1);
    f.bytes[f.n] = 0;
    refused(f.bytes, f.n + 1, LIN_FORMAT, "1 bytes after the last tensor");
    free(f.bytes);
}
END_TEST

// A change of any bit of the file is detected.
START_TEST(any_flipped_bit_is_found)
{
    file f = saved(_i ? LIN_F16 : LIN_F32);
    for (size_t bit = 0; bit < f.n * 8; bit++) {
        lin_model *model;
        lin_error err = {0};
        f.bytes[bit / 8] ^= (unsigned char)(1u << (bit % 8));
        test_require(lin_model_load_memory(f.bytes, f.n, "m", &model, &err) != LIN_OK, "bit %zu of byte %zu", bit % 8, bit / 8);
        test_require(strncmp(err.message, "m: ", 3) == 0, "the file is not named: %s", err.message);
        f.bytes[bit / 8] ^= (unsigned char)(1u << (bit % 8));
    }
    free(f.bytes);
}
END_TEST

// The checksum does not depend on the order of tensors and texts, so it stays valid if another program rewrites the file.
START_TEST(the_checksum_is_of_the_contents)
{
    const float a[] = {1, 2, 3, 4}, b[] = {5};
    lin_tensor tensors[] = {{"a", LIN_F32, 2, {2, 2}, a}, {"b", LIN_F32, 1, {1}, b}};
    lin_text texts[] = {{"k", "v"}, {"checksum", "0"}, {"l", "w"}};
    const uint64_t sum = lin_safetensors_checksum(tensors, 2, texts, 3);
    ck_assert_uint_eq(sum, 0xCD04C93AB7848672u); // docs/formats.md has the formula
    const lin_tensor turned[] = {tensors[1], tensors[0]};
    const lin_text turned_texts[] = {texts[2], texts[0]};
    ck_assert_uint_eq(lin_safetensors_checksum(turned, 2, turned_texts, 2), sum);
    tensors[0].shape[0] = 4, tensors[0].shape[1] = 1;
    ck_assert(lin_safetensors_checksum(tensors, 2, texts, 3) != sum);
    texts[0].value = "w", texts[2].value = "v", tensors[0].shape[0] = tensors[0].shape[1] = 2;
    ck_assert(lin_safetensors_checksum(tensors, 2, texts, 3) != sum);
}
END_TEST

/* ---- saving ---------------------------------------------------------------------------------------------------------------- */

START_TEST(what_cannot_be_saved_is_refused)
{
    lin_model *model = small_model();
    const float was = model->values[5];
    model->values[5] = NAN;
    FAILS(lin_model_save(model, path, LIN_F32, &err), LIN_NUMERIC, "tensor input.bias holds NaN at element 1");
    model->values[5] = 65520;
    FAILS(lin_model_save(model, path, LIN_F16, &err), LIN_NUMERIC, "in half precision: tensor input.bias holds 65520");
    model->values[5] = was;
    model->istd[0] = 0;
    FAILS(lin_model_save(model, path, LIN_F32, &err), LIN_NUMERIC, "");
    ck_assert_int_ne(access(path, F_OK), 0);
    FAILS(lin_model_label(model, NULL, NULL, "{", &err), LIN_FORMAT, "");
    FAILS(lin_model_label(model, "n\xFF", NULL, NULL, &err), LIN_INVALID, "the name of a model must be one line of UTF-8 text");
    FAILS(lin_model_label(model, NULL, "a\nb", NULL, &err), LIN_INVALID, "the licence of a model must be one line");
    ck_assert_str_eq(model->provenance, "{\"data\": [\"a\", 1]}");
    lin_model_destroy(model);
}
END_TEST

START_TEST(a_full_disk_leaves_the_old_file)
{
    file before = saved(LIN_F32);
    lin_model *model = small_model();
    lin_error err = {0};
    char temporary[320];
    snprintf(temporary, sizeof temporary, "%s.linnet-0.tmp", path);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    const rlim_t all = limit.rlim_cur;
    for (rlim_t most = 0; most < before.n; most += 500) {
        limit.rlim_cur = most;
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
        const lin_status status = lin_model_save(model, path, LIN_F32, &err);
        limit.rlim_cur = all;
        setrlimit(RLIMIT_FSIZE, &limit);
        ck_assert_int_eq(status, LIN_IO);
        HAS(err.message, "cannot write", path);
        ck_assert_int_ne(access(temporary, F_OK), 0);
        file after = read_file(path);
        ck_assert(after.n == before.n && memcmp(after.bytes, before.bytes, before.n) == 0);
        free(after.bytes);
    }
    signal(SIGXFSZ, SIG_DFL);
    free(before.bytes);
    lin_model_destroy(model);
}
END_TEST

START_TEST(folders_that_take_no_file_are_named)
{
    lin_model *model = small_model();
    char below[400];
    test_write_file(path, "x", 1);
    const char *targets[] = {"%s/m.safetensors/x", "%s/none/x", "%s"};
    const char *messages[] = {"Not a directory", "No such file or directory", "it is a directory"};
    for (int i = 0; i < 3; i++) {
        snprintf(below, sizeof below, i == 0 ? targets[0] : i == 1 ? targets[1] : targets[2], test_path(""));
        FAILS(lin_model_save(model, below, LIN_F32, &err), LIN_IO, messages[i], below);
    }
    FAILS(lin_model_save(model, "/dev/null", LIN_F32, &err), LIN_IO, "it is not a regular file");
    lin_model_destroy(model);
}
END_TEST

static void *load_many(void *arg)
{
    for (int i = 0; i < 50; i++) {
        lin_model *model;
        if (lin_model_load(path, &model, NULL) != LIN_OK) return arg;
        lin_model_destroy(model);
    }
    return NULL;
}

START_TEST(threads_load_at_once)
{
    free(saved(LIN_F16).bytes);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, load_many, (void *)test_path(""));
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
    }
}
END_TEST

// cJSON's own allocations are made to fail as well.
static void *hooked_alloc(size_t n)
{
    void *block = lin_alloc(n, 1);
    if (!block) errno = ENOMEM;
    return block;
}

START_TEST(a_failed_allocation_is_an_error)
{
    lin_model *model = small_model();
    lin_error err = {0};
    const float step = 1;
    lin_tensor tensor = {"train.step", LIN_F32, 0, {0}, &step};
    cJSON_Hooks hooks = {hooked_alloc, lin_free};
    cJSON_InitHooks(&hooks);
    lin_model *back = NULL;
    lin_checkpoint got = {0};
    FAIL_EVERY_ALLOCATION(lin_model_save_checkpoint(model, path, &tensor, 1, NULL, 0, &err), (void)0);
    FAIL_EVERY_ALLOCATION_OF(back, lin_model_load_checkpoint(path, &back, &got, &err), lin_checkpoint_close(&got);
                             lin_model_destroy(back));
    FAIL_EVERY_ALLOCATION(lin_model_save(model, path, LIN_F16, &err), (void)0);
    FAIL_EVERY_ALLOCATION_OF(back, lin_model_load(path, &back, &err), lin_model_destroy(back));
    FAIL_EVERY_ALLOCATION_OF(back, lin_model_open(path, 0, &back, &err), lin_model_destroy(back));
    FAIL_EVERY_ALLOCATION_OF(back, lin_model_create(&model->config, &model->features, NULL, 1, &back, &err),
                             lin_model_destroy(back));
    cJSON_InitHooks(NULL);
    lin_model_destroy(model);
}
END_TEST

TEST_MAIN_WITH(enter, NULL, "model/model", TEST(floats_come_back_to_the_bit), TEST(halves_come_back_rounded),
               TEST(an_opened_model_is_the_loaded_one), TEST(every_configuration_comes_back),
               TEST(checkpoints_come_back_to_the_bit), TEST(the_fingerprint_covers_what_counts),
               TEST(tokens_come_back), TEST(an_opened_model_computes_the_same), TEST(a_second_output_is_for_searches),
               TEST(damaged_headers_are_refused), TEST(lying_header_lengths_are_refused), TEST(foreign_files_are_refused),
               TEST(a_swarm_of_values_is_refused), TEST(weights_that_are_no_numbers_are_refused),
               TEST(no_part_of_a_file_is_a_model), TESTS(any_flipped_bit_is_found, 0, 2), TEST(the_checksum_is_of_the_contents),
               TEST(what_cannot_be_saved_is_refused), TEST(a_full_disk_leaves_the_old_file),
               TEST(folders_that_take_no_file_are_named), TEST(threads_load_at_once), TEST(a_failed_allocation_is_an_error))
