/*
 * engine_cases.h - a small network, sound, what comes of it without an engine, and many streams of an engine pushed from several
 * threads: for the tests of linnet/engine.h on the CPU and, emulated, on a GPU.
 */
#ifndef LIN_TESTS_ENGINE_CASES_H
#define LIN_TESTS_ENGINE_CASES_H

#include <pthread.h>
#include <stdatomic.h>

#include "decoder/search.h"
#include "linnet/engine.h"
#include "tests/model/one_stream.h"
#include "tests/support.h"

enum { D = 8, V = 5, MOST_EVENTS = 4000, RATE = 16000 };

/* ---- a model, sound, and what comes of it without an engine ---------------------------------------------------------------- */

/* The judge is on the CPU. Where the engine is elsewhere, confidences may differ by so much. */
static lin_encoder *judge;
static double slack, seconds_each = 3;

typedef struct shape {
    int stack, ahead, conv_layers, chunk_frames, shards, threads;
} shape;

static const shape shapes[] = {{1, 0, 0, 4, 2, 2}, {3, 4, 1, 3, 3, 3}, {2, 1, 0, 1, 1, 2}, {1, 2, 2, 7, 2, 4}};

typedef struct voice {
    int rate, channels, n; /* n frames of sound */
    float *samples;
} voice;

// Tones and rests in turn, twelve a second, so that the network has something to tell apart.
static inline voice speak(uint64_t key, int rate, int channels, double seconds)
{
    voice v = {rate, channels, (int)(seconds * rate), NULL};
    v.samples = malloc((size_t)(v.n * channels) * sizeof *v.samples);
    for (int i = 0; i < v.n; i++) {
        const int tone = (int)lin_random_below(key, 1000000 + (uint64_t)(i / (rate / 12)), 6);
        const double hz = 200 * pow(1.7, tone), wave = tone ? 0.3 * sin(6.283185307 * hz * i / rate) : 0;
        for (int c = 0; c < channels; c++)
            v.samples[i * channels + c] = (float)(wave + 0.01 * (lin_random_uniform(key, (uint64_t)(i * channels + c)) - 0.5));
    }
    return v;
}

// So that what the network is given changes from frame to frame: the mean and deviation of such features.
static inline void normalize(lin_model *m, const lin_fbank_config *config)
{
    enum { FRAMES = 98 };
    lin_fbank *fbank;
    float frames[FRAMES * D];
    int n;
    voice v = speak(1, RATE, 1, 1);
    OK(lin_fbank_create(config, &fbank, &err));
    OK(lin_fbank_push(fbank, v.samples, v.n, frames, FRAMES, &n, &err));
    for (int d = 0; d < D; d++) {
        double sum = 0, squares = 0;
        for (int t = 0; t < n; t++) sum += (double)frames[t * D + d];
        for (int t = 0; t < n; t++) squares += pow((double)frames[t * D + d] - sum / n, 2);
        m->mean[d] = (float)(sum / n);
        m->istd[d] = (float)(2 / sqrt(squares / n));
    }
    lin_fbank_destroy(fbank);
    free(v.samples);
}

static inline void begin_on(lin_recognizer *r, const shape *s, const lin_ops *ops)
{
    lin_config c = lin_config_default(V);
    c.layers = 2;
    c.heads = 2;
    c.head_width = 8;
    c.feedforward = 24;
    c.mel_bins = D;
    c.stack = s->stack;
    c.ahead = s->ahead;
    if (s->conv_layers) {
        c.positions = LIN_POSITIONS_CONV;
        c.conv_kernel = 4;
        c.conv_layers = s->conv_layers;
        c.norm = LIN_NORM_PRE;
    }
    const lin_features features = lin_features_default();
    memset(r, 0, sizeof *r);
    OK(lin_model_create(&c, &features, NULL, 5, &r->model, &err));
    test_fill_f32(r->model->values, r->model->params.n_elements, 6, -0.4, 0.4);
    for (int i = 0; i < r->model->params.n_tensors; i++) { // so that labels change from row to row
        const lin_param *t = &r->model->params.table[i];
        if (t->is_scale) test_fill_f32(r->model->values + t->offset, (size_t)t->n, 7, 0.8, 1.2);
        if (i == r->model->params.output[0]) test_fill_f32(r->model->values + t->offset, (size_t)(t->n * t->k), 8, -2, 2);
        if (i == r->model->params.input[0]) test_fill_f32(r->model->values + t->offset, (size_t)(t->n * t->k), 9, -2, 2);
    }
    r->fbank = lin_fbank_from_model(&features, D);
    normalize(r->model, &r->fbank);
    lin_model_seal(r->model);
    OK(lin_encoder_create(r->model, ops, &r->encoder, &err));
    OK(lin_encoder_create(r->model, lin_ops_cpu(), &judge, &err));
    slack = ops->on_host ? 0 : 1e-3;
    r->streams = 1;
    r->row_seconds = c.stack * features.hop_ms / 1000;
    r->V = V;
}

static inline void begin(lin_recognizer *r, const shape *s) { begin_on(r, s, lin_ops_cpu()); }

static inline void end(lin_recognizer *r)
{
    lin_encoder_destroy(judge);
    lin_encoder_destroy(r->encoder);
    lin_model_destroy(r->model);
}

enum { PHONE = 100, UTTERANCE_END, END = LIN_ENGINE_FINISHED, FAILURE = LIN_ENGINE_FAILED };

typedef struct noted {
    int kind, label, end, status;
    float confidence;
    double start_s, end_s;
} noted;

typedef struct notes {
    int n;
    atomic_int ends, failed; /* all before them may be read once one is seen */
    long long lost;
    noted events[MOST_EVENTS];
} notes;

static inline void add_note(notes *to, noted event)
{
    test_require(to->n < MOST_EVENTS && !to->ends, "events behind the last, or too many");
    to->events[to->n++] = event;
    to->ends += event.kind == END;
    to->failed += event.kind == FAILURE;
}

static inline void note_phones(notes *to, const lin_result *result, int from)
{
    for (const lin_result_phone *p = result->phones + from; p < result->phones + result->n_phones; p++)
        add_note(to, (noted){.kind = PHONE, .label = p->label, .confidence = p->confidence, .start_s = p->start_s,
                             .end_s = p->end_s});
}

// Utterances without phones are shown or not: their ends do not count.
static inline void note(notes *to, const lin_engine_event *event)
{
    const lin_session_view *view = event->view;
    if (event->kind == LIN_ENGINE_SETTLED) note_phones(to, event->settled, 0);
    if (view) note_phones(to, view->settled, view->old_phones);
    if (view && view->end != LINNET_GROWS && view->end != LINNET_FINISHED && view->settled->n_phones)
        add_note(to, (noted){.kind = UTTERANCE_END, .end = view->end, .end_s = event->time_s});
    to->lost += event->lost;
    if (event->kind == LIN_ENGINE_FINISHED || event->kind == LIN_ENGINE_FAILED)
        add_note(to, (noted){.kind = event->kind, .end_s = event->time_s, .status = event->status});
}

static inline void note_path(const lin_recognizer *r, notes *to, lin_path *path)
{
    for (const lin_path_phone *p = path->phones; p < path->phones + path->n_phones; p++)
        add_note(to, (noted){.kind = PHONE, .label = p->label, .confidence = p->confidence,
                             .start_s = (double)p->start * r->row_seconds, .end_s = (double)p->end * r->row_seconds});
    lin_path_clear(path);
}

// Offline: all features at once, then one stream, greedy decoding and endpoints, and after an endpoint with a reset a new stream.
static inline void alone(const lin_recognizer *r, const lin_engine_options *o, const voice *v, notes *want)
{
    lin_feature_options options = lin_feature_options_default();
    lin_extractor *extractor;
    options.fbank = r->fbank;
    memset(want, 0, sizeof *want);
    OK(lin_extractor_create(v->rate, v->channels, &options, &extractor, &err));
    int capacity = lin_extractor_most_out(extractor, v->n) + 400, n, rest;
    float *frames = malloc((size_t)(capacity * D) * sizeof *frames), *logp = malloc((size_t)(capacity * V) * sizeof *logp);
    OK(lin_extractor_push(extractor, v->samples, v->n, frames, capacity, &n, &err));
    OK(lin_extractor_finish(extractor, frames + n * D, capacity - n, &rest, &err));
    n += rest;
    lin_streams *stream = one_stream(judge, 1, 0);
    lin_greedy greedy;
    lin_path path = {0};
    lin_endpoint endpoint;
    lin_endpoint_reset(&endpoint, &o->ends.rules, r->row_seconds);
    const int stack = r->model->config.stack;
    int64_t row = 0;
    for (int first = 0, again = 1; again;) {
        int i = 0;
        OK(lin_streams_reset(stream, 0, &err));
        const int rows = one_stream_feed(stream, D, V, frames + first * D, n > first ? n - first : 0, 1, logp);
        lin_greedy_reset(&greedy, V, row, 0);
        for (again = 0; i < rows && !again; i++, row++) {
            OK(lin_greedy_push(&greedy, logp + i * V, 1, &path, &err));
            note_path(r, want, &path);
            if (!o->ends.endpoints) continue;
            double sum = 0;
            for (int k = 0; k < stack * D && first + (i + 1) * stack <= n; k++)
                sum += exp((double)frames[(first + i * stack) * D + k]);
            const lin_endpoint_rule rule = lin_endpoint_push(&endpoint, logp + i * V, sum > 0 ? 10 * log10(sum) : NAN);
            if (!rule) continue;
            OK(lin_greedy_finish(&greedy, &path, &err));
            note_path(r, want, &path);
            if (want->n && want->events[want->n - 1].kind == PHONE)
                add_note(want, (noted){.kind = UTTERANCE_END, .end = LINNET_BEFORE + (int)(rule - LIN_ENDPOINT_BEFORE),
                                       .end_s = (double)(row + 1) * r->row_seconds});
            again = o->ends.resets;
            lin_greedy_reset(&greedy, V, row + 1, 1);
        }
        first += i * stack;
        if (again) continue;
        OK(lin_greedy_finish(&greedy, &path, &err));
        note_path(r, want, &path);
    }
    add_note(want, (noted){.kind = END, .end_s = (double)v->n / v->rate});
    lin_path_free(&path);
    lin_streams_destroy(stream);
    lin_extractor_destroy(extractor);
    free(frames);
    free(logp);
}

static inline void compare(const char *what, const notes *got, const notes *want)
{
    for (int i = 0; i < got->n && i < want->n; i++) {
        const noted *g = &got->events[i], *w = &want->events[i];
        test_require(g->kind == w->kind && g->label == w->label && g->end == w->end && g->start_s == w->start_s &&
                         (memcmp(&g->confidence, &w->confidence, sizeof g->confidence) == 0 ||
                          fabs((double)g->confidence - (double)w->confidence) < slack) &&
                         fabs(g->end_s - w->end_s) < (g->kind == END ? 0.01 : 1e-12),
                     "%s: event %d of %d is %d, label %d, end %d, %.3f..%.3f s (%a);"
                     " expected %d, label %d, end %d, %.3f..%.3f s (%a)",
                     what, i, want->n, g->kind, g->label, g->end, g->start_s, g->end_s, (double)g->confidence, w->kind, w->label,
                     w->end, w->start_s, w->end_s, (double)w->confidence);
    }
    test_require(got->n == want->n, "%s: %d events, expected %d", what, got->n, want->n);
}

/* ---- streams pushed from several threads ----------------------------------------------------------------------------------- */

enum { N = 12, PRODUCERS = 3 };

typedef struct group {
    lin_engine *engine;
    voice voices[N];
    lin_engine_id ids[N];
    notes got[N], want[N];
} group;

static inline void collect(void *context, const lin_engine_event *event)
{
    group *c = context;
    const int i = (int)((notes *)event->user - c->got);
    test_require(event->stream == c->ids[i], "an event of one stream for the owner of another");
    note(event->user, event);
}

static inline void pause_ms(int ms) { usleep((useconds_t)ms * 1000); }

static inline void wait_for_end(notes *got)
{
    while (!got->ends && !got->failed) pause_ms(1);
}

static inline void push_all(lin_engine *engine, lin_engine_id id, const voice *v, int from, int n)
{
    lin_error why = {0};
    lin_status status;
    while ((status = lin_engine_push(engine, id, v->samples + from * v->channels, n, &why)) == LIN_TOO_SMALL) usleep(20);
    test_require(status == LIN_OK, "%s", why.message);
}

typedef struct producer {
    group *c;
    int number;
} producer;

// Random pieces of its streams in turn; what does not fit is tried again later.
static inline void *produce(void *argument)
{
    const producer *p = argument;
    group *c = p->c;
    int at[N] = {0}, left = 0;
    for (int i = p->number; i < N; i += PRODUCERS) left++;
    for (uint64_t turn = 0; left; turn++) {
        const int i = p->number + PRODUCERS * (int)lin_random_below((uint64_t)p->number, 3 * turn, N / PRODUCERS);
        const voice *v = &c->voices[i];
        if (at[i] > v->n) continue;
        int n = 1 + (int)lin_random_below((uint64_t)p->number, 3 * turn + 1, 1500);
        if (n > v->n - at[i]) n = v->n - at[i];
        push_all(c->engine, c->ids[i], v, at[i], n);
        at[i] += n;
        if (at[i] == v->n) {
            OK(lin_engine_finish(c->engine, c->ids[i], &err));
            at[i]++;
            left--;
        }
        if (lin_random_below((uint64_t)p->number, 3 * turn + 2, 20) == 0) pause_ms(1);
    }
    return NULL;
}

static inline void run_group(lin_recognizer *r, lin_engine_options *o, group *c)
{
    static const int rates[] = {16000, 16000, 8000, 44100, 48000, 16000}, channels[] = {1, 2, 1, 2, 1, 1};
    pthread_t threads[PRODUCERS];
    producer producers[PRODUCERS];
    memset(c, 0, sizeof *c);
    o->context = c;
    o->views = o->ends.endpoints;
    OK(lin_engine_create(r, o, &c->engine, &err));
    for (int i = 0; i < N; i++) {
        const double seconds = i == 5 ? 0.01 : i == 11 ? 0 : seconds_each - 0.1 * i;
        c->voices[i] = speak(100 + (uint64_t)i, rates[i % 6], channels[i % 6], seconds);
        alone(r, o, &c->voices[i], &c->want[i]);
        OK(lin_engine_open(c->engine, rates[i % 6], channels[i % 6], &c->got[i], &c->ids[i], &err));
    }
    for (int i = 0; i < PRODUCERS; i++) {
        producers[i] = (producer){c, i};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, produce, &producers[i]), 0);
    }
    for (int i = 0; i < PRODUCERS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < N; i++) wait_for_end(&c->got[i]);
    lin_engine_destroy(c->engine);
}

static inline int judge_group(group *c)
{
    int phones = 0;
    for (int i = 0; i < N; i++) {
        char what[64];
        snprintf(what, sizeof what, "stream %d, %d Hz, %d channels", i, c->voices[i].rate, c->voices[i].channels);
        compare(what, &c->got[i], &c->want[i]);
        phones += c->got[i].n;
        free(c->voices[i].samples);
    }
    return phones;
}

#endif
