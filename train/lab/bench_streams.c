// bench_streams.c - linnet bench streams: how many live streams this machine can hold, simulated in real time.

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "app/common.h"
#include "app/shared_options.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "base/hash.h"
#include "train/lab/cmd_bench.h"
#include "linnet/engine.h"
#include "model/streams.h"

enum { MOST_PRODUCERS = 8, STREAMS_OF_A_PRODUCER = 4000, CHUNK_MS = 40 }; // CHUNK_MS: a stream's sound arrives in such chunks

/* The sound of all streams: each loops over it from its own starting point. */
typedef struct speech {
    float *samples; /* [frames, channels] */
    int frames, channels, rate_hz;
} speech;

typedef struct trial {
    int streams, held;
    lin_engine_stats stats;
    lin_lags late; /* delays of the producers: the machine, not the engine, was busy */
    double cores;  /* processor time divided by time */
    double bytes;  /* resident memory of one stream, with its share of common memory */
    double grown;  /* growth of resident memory during the trial */
    long long phones;
} trial;

typedef struct bench {
    const lin_bench_values *values;
    const lin_recognizer *recognizer;
    speech speech;
    int chunk; /* frames of sound */
    lin_buffer out;
    int n_trials;
    lin_progress progress;
} bench;

/* ---- sound ----------------------------------------------------------------------------------------------------------------- */

// Makes ten seconds of noise that swells four times a second, as speech does.
static lin_status make_noise(speech *s, int rate_hz, lin_error *err)
{
    *s = (speech){.frames = 10 * rate_hz, .channels = 1, .rate_hz = rate_hz};
    s->samples = lin_alloc((size_t)s->frames, sizeof *s->samples);
    if (!s->samples) return lin_no_memory(err, "sound", (size_t)s->frames * sizeof *s->samples);
    for (int i = 0; i < s->frames; i++) {
        const double swell = sin(4 * 3.14159265358979 * i / rate_hz);
        s->samples[i] = (float)(0.2 * swell * swell * (2 * lin_random_uniform(1, (uint64_t)i) - 1));
    }
    return LIN_OK;
}

static lin_status read_speech(speech *s, const char *path, lin_error *err)
{
    enum { BLOCK = 16384 };
    lin_audio *audio;
    int n = 1;
    size_t room = 0;
    lin_status status = lin_audio_open(path, NULL, &audio, err);
    if (status != LIN_OK) return status;
    *s = (speech){.rate_hz = lin_audio_info(audio)->rate_hz, .channels = lin_audio_info(audio)->channels};
    while (status == LIN_OK && n > 0) {
        status = lin_grow(&s->samples, &room, (size_t)(s->frames + BLOCK) * (size_t)s->channels, sizeof *s->samples, path, err);
        if (status == LIN_OK)
            status = lin_audio_read(audio, s->samples + (size_t)s->frames * (size_t)s->channels, BLOCK, &n, err);
        if (status == LIN_OK) s->frames += n;
        if (s->frames > 600 * s->rate_hz) break; // ten minutes are variety enough
    }
    lin_audio_close(audio);
    return status;
}

/* ---- a trial --------------------------------------------------------------------------------------------------------------- */

typedef struct producer {
    pthread_t thread;
    const bench *b;
    lin_engine *engine;
    const lin_engine_id *ids;
    int first, n, all; /* its streams, and how many there are */
    double begun, ends, counts_from;
    lin_lags late;
    int counts;         // 1: the first producer, which starts the measurement: the main thread might not get a processor while
                        // the engine uses all
    double busy, bytes; // when it began: processor time, resident memory
} producer;

static void sleep_until(double when)
{
    const struct timespec t = {.tv_sec = (time_t)when, .tv_nsec = (long)(1e9 * (when - floor(when)))};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

// Producers must not wait for the engine: if the program has a real-time priority, they get a higher one.
static void hurry(void)
{
    struct sched_param priority;
    int policy;
#ifdef __linux__
    prctl(PR_SET_TIMERSLACK, 1UL);
#endif
    if (pthread_getschedparam(pthread_self(), &policy, &priority) != 0 || (policy != SCHED_FIFO && policy != SCHED_RR)) return;
    priority.sched_priority++;
    pthread_setschedparam(pthread_self(), policy, &priority);
}

static double resident(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    if (file) fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static double processor_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

// In each round, each of its streams sends a chunk at its own time within the round.
static void *produce(void *context)
{
    producer *p = context;
    const speech *s = &p->b->speech;
    const int chunk = p->b->chunk;
    const double chunk_s = (double)chunk / s->rate_hz;
    hurry();
    for (long long round = 0;; round++) {
        for (int i = p->first; i < p->first + p->n; i++) {
            const double due = p->begun + ((double)round + (double)i / p->all) * chunk_s;
            double now = lin_now();
            if (due >= p->ends || now >= p->ends + 5 || lin_interrupted) return NULL;
            if (p->counts && due >= p->counts_from) {
                p->counts = 0;
                p->busy = processor_seconds();
                p->bytes = resident();
                lin_engine_stats_reset(p->engine);
            }
            if (due > now) { // wakes at most once a millisecond, as for sound from a network; the delay counts as lateness
                sleep_until(p->begun + 1e-3 * ceil(1e3 * (due - p->begun)));
                now = lin_now();
            }
            const long long at = ((long long)i * 7919 + round * chunk) % (s->frames - chunk);
            lin_engine_push(p->engine, p->ids[i], s->samples + at * s->channels, chunk, NULL);
            if (due >= p->counts_from) lin_lags_add(&p->late, now - due);
        }
    }
}

static void on_event(void *context, const lin_engine_event *event)
{
    (void)context;
    long long *phones = event->user; // no lock: events of a stream are never concurrent
    if (event->kind == LIN_ENGINE_SETTLED) *phones += event->settled->n_phones;
}

static lin_status say(const bench *b, lin_engine *engine, const lin_engine_id *ids, trial *t, lin_error *err)
{
    const int n = t->streams / STREAMS_OF_A_PRODUCER + 1, n_producers = n < MOST_PRODUCERS ? n : MOST_PRODUCERS;
    static producer producers[MOST_PRODUCERS];
    const double begun = lin_now() + 0.01, counts_from = begun + 1, ends = counts_from + b->values->seconds;
    int started = 0;
    lin_status status = LIN_OK;
    for (; started < n_producers && status == LIN_OK; started++) {
        producer *p = &producers[started];
        const int first = (int)((long long)t->streams * started / n_producers);
        *p = (producer){.b = b, .engine = engine, .ids = ids, .first = first,
                        .n = (int)((long long)t->streams * (started + 1) / n_producers) - first, .all = t->streams,
                        .begun = begun, .ends = ends, .counts_from = counts_from, .counts = started == 0};
        if (pthread_create(&p->thread, NULL, produce, p) != 0) {
            status = lin_fail(err, LIN_NO_MEMORY, "cannot start a thread");
            break;
        }
    }
    for (int i = 0; i < started; i++) {
        pthread_join(producers[i].thread, NULL);
        lin_lags_merge(&t->late, &producers[i].late);
    }
    lin_engine_stats_get(engine, &t->stats);
    t->cores = (processor_seconds() - producers[0].busy) / t->stats.seconds;
    t->grown = resident() - producers[0].bytes;
    return status;
}

static lin_status try(const bench *b, int streams, trial *t, lin_error *err)
{
    *t = (trial){.streams = streams};
    const lin_bench_values *v = b->values;
    const lin_features *f = &b->recognizer->model->features;
    lin_engine_options o = lin_engine_default(streams);
    const double bytes = resident();
    o.chunk_frames = (int)lround(CHUNK_MS / f->hop_ms);
    if (o.chunk_frames < 1) o.chunk_frames = 1;
    o.threads = v->threads;
    o.exact = v->model.precision == LIN_MODEL_FP32;
    o.deliver = on_event;
    lin_engine *engine;
    lin_status status = lin_engine_create(b->recognizer, &o, &engine, err);
    if (status != LIN_OK) return status;
    lin_engine_id *ids = lin_calloc((size_t)streams, sizeof *ids);
    long long *phones = lin_calloc((size_t)streams, sizeof *phones);
    if (!ids || !phones) status = lin_no_memory(err, "streams", (size_t)streams * (sizeof *ids + sizeof *phones));
    for (int i = 0; i < streams && status == LIN_OK; i++)
        status = lin_engine_open(engine, b->speech.rate_hz, b->speech.channels, &phones[i], &ids[i], err);
    if (status == LIN_OK) status = say(b, engine, ids, t, err);
    t->bytes = (resident() - bytes) / streams;
    lin_engine_destroy(engine);
    for (int i = 0; i < streams && phones; i++) t->phones += phones[i];
    lin_free(ids);
    lin_free(phones);
    if (status == LIN_OK && lin_interrupted) status = lin_fail(err, LIN_STOPPED, "interrupted");
    // A late producer makes its results late too.
    t->held = t->stats.lost_samples == 0 && t->stats.lag_p99_ms + 1e3 * lin_lags_quantile(&t->late, 0.99) <= CHUNK_MS;
    return status;
}

/* ---- the report ------------------------------------------------------------------------------------------------------------ */

static void cell(lin_buffer *out, double value, int digits, size_t width)
{
    const size_t from = out->n;
    lin_buffer_fixed(out, value, digits);
    lin_buffer_pad(out, from, width, 1);
}

static double rate_of(const bench *b, const trial *t)
{
    return (double)t->stats.rows / t->stats.seconds * lin_config_flop(&b->recognizer->model->config) * 1e-9;
}

static void report_json(bench *b, const trial *t)
{
    const lin_engine_stats *s = &t->stats;
    lin_buffer *out = &b->out;
    lin_buffer_text(out, b->n_trials ? "," : "\"trials\": [");
    lin_buffer_json_format(out, "\n  {'streams': %d, 'held': ", t->streams);
    lin_buffer_text(out, t->held ? "true" : "false");
    lin_buffer_json_format(out, ", 'seconds': %.3f, 'lag_p50_ms': %.3f, 'lag_p95_ms': %.3f, 'lag_p99_ms': %.3f", s->seconds,
                           s->lag_p50_ms, s->lag_p95_ms, s->lag_p99_ms);
    lin_buffer_json_format(out, ", 'lag_most_ms': %.3f, 'late_p99_ms': %.3f, 'late_most_ms': %.3f", s->lag_most_ms,
                           1e3 * lin_lags_quantile(&t->late, 0.99), 1e3 * t->late.most_s);
    lin_buffer_json_format(out, ", 'ticks': %lld, 'chunks': %lld, 'rows': %lld", (long long)s->ticks, (long long)s->chunks,
                           (long long)s->rows);
    lin_buffer_json_format(out, ", 'phones': %lld, 'sound_s': %.3f, 'network_s': %.3f, 'results_s': %.3f, 'cores': %.3f",
                           (long long)t->phones, s->sound_s, s->network_s, s->results_s, t->cores);
    lin_buffer_json_format(out, ", 'gflops': %.1f, 'lost_samples': %lld, 'bytes_each': %lld", rate_of(b, t),
                           (long long)s->lost_samples, (long long)s->bytes_each);
    lin_buffer_json_format(out, ", 'resident_bytes_each': %.0f, 'resident_growth_bytes': %.0f}", t->bytes, t->grown);
}

static void report_text(bench *b, const trial *t)
{
    const lin_engine_stats *s = &t->stats;
    lin_buffer *out = &b->out;
    if (b->n_trials == 0)
        lin_buffer_text(out, "streams   lag p50    p95    p99   most   late   streams   GFLOP/s   cores   of a shard's time, %:\n"
                             "                ms     ms     ms     ms    p99    a tick"
                             "                     sound network results\n");
    const double all = 0.01 * s->seconds * s->shards;
    cell(out, t->streams, 0, 7);
    cell(out, s->lag_p50_ms, 2, 10);
    cell(out, s->lag_p95_ms, 2, 7);
    cell(out, s->lag_p99_ms, 2, 7);
    cell(out, s->lag_most_ms, 1, 7);
    cell(out, 1e3 * lin_lags_quantile(&t->late, 0.99), 2, 7);
    cell(out, s->ticks ? (double)s->chunks / (double)s->ticks : 0, 1, 10);
    cell(out, rate_of(b, t), 0, 10);
    cell(out, t->cores, 2, 8);
    cell(out, s->sound_s / all, 1, 9);
    cell(out, s->network_s / all, 1, 8);
    cell(out, s->results_s / all, 1, 8);
    lin_buffer_text(out, t->held ? "   holds\n" : s->lost_samples ? "   loses sound\n" : "   too late\n");
}

// Text appears trial by trial; JSON at the end.
static lin_status report(bench *b, const trial *t, lin_error *err)
{
    if (b->values->json) report_json(b, t);
    else report_text(b, t);
    b->n_trials++;
    lin_status status = lin_buffer_status(&b->out, err);
    if (b->values->json || status != LIN_OK) return status;
    lin_progress_end(&b->progress);
    status = lin_buffer_write(&b->out, stdout, "standard output", err);
    fflush(stdout);
    lin_buffer_clear(&b->out);
    return status;
}

static void describe(bench *b)
{
    const lin_config *c = &b->recognizer->model->config;
    const int on_gpu = !b->recognizer->encoder->ops->on_host, choice = b->values->model.precision;
    const char *automatic = on_gpu ? "tf32" : b->recognizer->model->eight_bits ? "int8" : "fp32";
    const char *precision = choice == LIN_MODEL_BF16   ? "bf16"
                            : choice == LIN_MODEL_INT8 ? "int8"
                            : choice == LIN_MODEL_AUTO ? automatic
                                                       : "fp32";
    const char *device = on_gpu ? "cuda" : lin_cpu_isa();
    lin_buffer_format(
        &b->out,
        b->values->json
            ? "{\"device\": \"%s\", \"precision\": \"%s\", \"layers\": %d, \"width\": %d, \"row_ms\": %g, "
              "\"chunk_ms\": %d, \"state_bytes\": %zu, "
            : "%s, %s; %d layers of width %d, a row every %g ms; chunks of %d ms; %zu bytes of attention state\n",
        device, precision, c->layers, lin_config_width(c), 1e3 * b->recognizer->row_seconds, CHUNK_MS,
        lin_streams_attention_bytes(b->recognizer->encoder));
}

static void conclude(bench *b, const trial *best)
{
    if (b->values->json) {
        lin_buffer_text(&b->out, "\n]");
        if (!b->values->streams) lin_buffer_json_format(&b->out, ", 'most_streams': %d", best->streams);
        lin_buffer_text(&b->out, "}\n");
        return;
    }
    if (!b->values->streams)
        lin_buffer_format(&b->out, "%d streams at once, each within a chunk of the end of its sound\n", best->streams);
    if (best->streams)
        lin_buffer_format(&b->out,
                          "a stream takes %zu bytes; resident, with its share of common memory: %.0f; growth of all: %.0f\n",
                          best->stats.bytes_each, best->bytes, best->grown);
}

/* ---- the command ----------------------------------------------------------------------------------------------------------- */

static lin_status trial_of(bench *b, int streams, trial *t, lin_error *err)
{
    lin_progress_of(&b->progress, -1, "%d streams ...", streams);
    lin_status status = try(b, streams, t, err);
    return status == LIN_OK ? report(b, t, err) : status;
}

// Finds the most streams that hold: doubles their number, then bisects.
static lin_status find(bench *b, trial *best, lin_error *err)
{
    static trial t;
    int low = 0, high = 0;
    lin_status status = LIN_OK;
    while (status == LIN_OK && !(high && (high - low <= 1 || high - low <= 0.03 * low))) {
        const int n = high ? low + (high - low) / 2 : low ? 2 * low : 64;
        if (n > 1000000) break;
        status = trial_of(b, n, &t, err);
        if (t.held) *best = t;
        *(t.held ? &low : &high) = n;
    }
    return status;
}

// The paper's network, with random weights, as a recogniser without phones.
static lin_status open_paper(lin_recognizer *r, const lin_model_values *v, lin_error *err)
{
    const lin_config config = lin_config_default(40);
    const lin_features features = lin_features_default();
    const lin_ops *ops;
    LIN_TRY(lin_backend_open(v->device, lin_model_precision(v), &ops, err));
    LIN_TRY(lin_model_create(&config, &features, NULL, 1, &r->model, err));
    LIN_TRY(lin_encoder_create(r->model, ops, &r->encoder, err));
    r->fbank = lin_fbank_from_model(&features, config.mel_bins);
    r->streams = 1;
    r->row_seconds = config.stack * features.hop_ms / 1000;
    r->V = config.outputs;
    return LIN_OK;
}

int lin_bench_streams(const lin_parsed *parsed)
{
    const lin_bench_values *v = parsed->values;
    lin_recognizer r = {0};
    static trial best;
    lin_error err = {0};
    bench b = {.values = v, .recognizer = &r};
    lin_progress_begin(&b.progress, 0);
    lin_status status = v->paper ? open_paper(&r, &v->model, &err) : lin_open_recognizer(&r, &v->model, &err);
    if (status == LIN_OK)
        status = parsed->operands.count > 1 ? read_speech(&b.speech, parsed->operands.items[1], &err)
                                            : make_noise(&b.speech, r.model->features.sample_hz, &err);
    b.chunk = (int)lround(1e-3 * CHUNK_MS * b.speech.rate_hz);
    if (status == LIN_OK && b.speech.frames <= 2 * b.chunk)
        status = lin_fail(&err, LIN_INVALID, "%s is shorter than two chunks", parsed->operands.items[1]);
    if (status == LIN_OK) {
        describe(&b);
        if (!v->streams) status = find(&b, &best, &err);
        else status = trial_of(&b, v->streams, &best, &err);
    }
    if (status == LIN_OK) {
        conclude(&b, &best);
        status = lin_buffer_status(&b.out, &err);
    }
    if (status == LIN_OK) status = lin_buffer_write(&b.out, stdout, "standard output", &err);
    lin_progress_end(&b.progress);
    lin_buffer_free(&b.out);
    lin_free(b.speech.samples);
    lin_recognizer_close(&r);
    return status == LIN_OK ? LIN_EXIT_OK : lin_give_up(&err);
}
