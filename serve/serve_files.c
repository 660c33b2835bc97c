// serve_files.c - uploads to linnet serve: transcription with OpenAI's call, and alignment; see serve.h.
//
// A body is kept in memory until it is complete (its length is known and bounded before), then a worker writes the sound into a
// file without a name, because the readers of sound need one, and a process of its own (frontend/isolate.h) decodes it.

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "align/aligner.h"
#include "app/common.h"
#include "base/clock.h"
#include "base/cores.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/system.h"
#include "decoder/writers.h"
#include "frontend/audio.h"
#include "frontend/isolate.h"
#include "linnet/file_session.h"
#include "serve/serve.h"

enum { RETRY_S = 5 };

struct lin_job {
    lin_job *next;
    lin_serve *serve;
    lin_client *client; // NULL: gone; the server's thread
    atomic_int gone;
    int aligns, posted;
    char type[512]; // of the body
    lin_buffer body;
    int sound;       // a file without a name; -1: none
    char path[32];   // by which it can be opened again
    // the answer
    int status, done;
    const char *answer_type;
    lin_buffer answer;
    double seconds;
    double until; // it may be worked on
};

typedef struct lin_files {
    lin_serve *serve;
    pthread_mutex_t lock; // of the queue, of lin_job.done and of the lexicon
    pthread_cond_t work;
    lin_job *first, **last;
    pthread_t *threads;
    int n_threads, stop, left; // left: jobs that are not freed; the server's thread
    lin_spoken_lexicon lexicon;
    int has_lexicon;
    char program[4096]; // this one
} lin_files;

typedef struct worker {
    lin_serve *serve;
    lin_file_session *session;
    lin_aligner *aligner;
    lin_result result;
    lin_alignment alignment;
    lin_job *job;
} worker;

/* ---- what is asked for ----------------------------------------------------------------------------------------------------- */

typedef struct request {
    const lin_form_part *file, *text, *phones;
    char format[32], language[32];
    int segments, words;
} request;

static lin_status refuse(lin_job *job, int status, lin_error *err, const char *message)
{
    job->status = status;
    return lin_fail(err, LIN_INVALID, "%s", message);
}

static void copy_part(char *text, size_t capacity, const lin_form_part *part, const char *otherwise)
{
    if (part) snprintf(text, capacity, "%.*s", (int)(part->n < capacity ? part->n : capacity - 1), part->data);
    else snprintf(text, capacity, "%s", otherwise);
}

static int is_plain(const char *text)
{
    for (; *text; text++) {
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-", *text)) return 0;
    }
    return 1;
}

static lin_status read_request(lin_job *job, const lin_form *form, request *r, lin_error *err)
{
    *r = (request){.file = lin_form_find(form, "file", 0), .text = lin_form_find(form, "text", 0),
                   .phones = lin_form_find(form, "phones", 0)};
    copy_part(r->format, sizeof r->format, lin_form_find(form, "response_format", 0), "json");
    copy_part(r->language, sizeof r->language, lin_form_find(form, "language", 0), "en");
    const lin_form_part *stream = lin_form_find(form, "stream", 0);
    if (!r->file || r->file->n == 0) return refuse(job, 400, err, "the form has no file");
    if (job->aligns && !r->text == !r->phones) return refuse(job, 400, err, "give the text by one of the fields text and phones");
    if (!is_plain(r->language)) return refuse(job, 400, err, "language is a code such as en");
    if (lin_form_is(stream, "true") || lin_form_is(stream, "1"))
        return refuse(job, 400, err, "stream is not supported here; use a WebSocket at /v1/stream");
    const char *const keys[] = {"timestamp_granularities[]", "timestamp_granularities"};
    const lin_form_part *part;
    int any = 0;
    for (int k = 0; k < 2; k++) {
        for (int i = 0; (part = lin_form_find(form, keys[k], i)) != NULL; i++, any = 1) {
            r->segments |= lin_form_is(part, "segment");
            r->words |= lin_form_is(part, "word");
        }
    }
    if (!any) r->segments = 1;
    if (!lin_writer_find(r->format) && strcmp(r->format, "verbose_json") && strcmp(r->format, "full_json"))
        return refuse(job, 400, err,
                      "response_format is json, verbose_json, text, srt, vtt, full_json, ctm, trn, textgrid, csv or "
                      "audacity");
    return LIN_OK;
}

static lin_status write_sound(lin_job *job, const lin_form_part *file, lin_error *err)
{
    const char *folder;
    job->sound = lin_file_open_unnamed(&folder);
    int error = job->sound < 0 ? errno : 0;
    for (size_t at = 0; !error && at < file->n;) {
        const ssize_t n = write(job->sound, file->data + at, file->n - at);
        if (n > 0) at += (size_t)n;
        else if (n == 0 || errno != EINTR) error = n == 0 ? ENOSPC : errno;
    }
    // By this name it can be opened again, on Linux at its beginning.
#ifdef __APPLE__
    lseek(job->sound, 0, SEEK_SET);
    snprintf(job->path, sizeof job->path, "/dev/fd/%d", job->sound);
#else
    snprintf(job->path, sizeof job->path, "/proc/self/fd/%d", job->sound);
#endif
    if (!error) return LIN_OK;
    job->status = 507;
    return lin_fail(err, LIN_IO, "the sound cannot be kept: %s", strerror(error));
}

/* ---- answers --------------------------------------------------------------------------------------------------------------- */

static lin_status spell(void *context, const lin_result *part, lin_buffer *out, lin_error *err)
{
    return lin_live_put_readable(out, context, part, err);
}

static lin_status put_transcript(lin_serve *s, lin_job *job, const request *r, const lin_result *result, lin_error *err)
{
    lin_buffer text = {0}, *out = &job->answer;
    const int verbose = !strcmp(r->format, "verbose_json"), plain = !strcmp(r->format, "json");
    job->answer_type = "application/json";
    lin_status status = lin_live_put_readable(&text, &s->words, result, err);
    if (status == LIN_OK && plain) {
        lin_buffer_char(out, '{');
        lin_buffer_member_text(out, "text", text.data ? text.data : "");
        lin_buffer_char(out, '}');
    } else if (status == LIN_OK && verbose) {
        const lin_verbose how = {.language = r->language, .text = text.data ? text.data : "", .segments = r->segments,
                                 .items = r->words, .spell = spell, .context = &s->words};
        status = lin_openai_put_verbose(out, &s->words, result, &how, err);
    } else if (status == LIN_OK) {
        const int full = !strcmp(r->format, "full_json");
        const lin_writer *writer = lin_writer_find(full ? "json" : r->format);
        const lin_writer_options o = {.phones = s->words.phones, .ipa = s->words.ipa, .readable = s->words.readable,
                                      .speller = s->words.speller};
        status = writer->write(result, &o, out, err);
        if (!full) job->answer_type = !strcmp(r->format, "vtt") ? "text/vtt; charset=utf-8" : "text/plain; charset=utf-8";
    }
    lin_buffer_free(&text);
    return status == LIN_OK ? lin_buffer_status(out, err) : status;
}

// A member more in a JSON object.
static void add_warning(lin_buffer *out, const char *warning)
{
    if (!*warning) return;
    while (out->n && out->data[out->n - 1] != '}') out->n--;
    if (out->n) out->n--;
    lin_buffer_member_text(out, "warning", warning);
    lin_buffer_text(out, "}\n");
}

static lin_status put_alignment(lin_serve *s, lin_job *job, const request *r, const lin_alignment *a, double row_s,
                                lin_error *err)
{
    const int json = !strcmp(r->format, "json") || strstr(r->format, "_json");
    const lin_writer *writer = lin_writer_find(json ? "json" : r->format);
    const lin_writer_options o = {.phones = s->words.phones, .ipa = s->words.ipa, .times = 1};
    char doubt[256];
    lin_buffer *out = &job->answer;
    lin_status status = lin_write_speakers(writer, &(const lin_result *){&a->results[0]}, 1, &o, out, err);
    job->answer_type = json ? "application/json" : "text/plain; charset=utf-8";
    lin_alignment_doubt(a, row_s, 0, doubt, sizeof doubt);
    if (status == LIN_OK && json) add_warning(out, a->warning[0] ? a->warning : doubt);
    return status == LIN_OK ? lin_buffer_status(out, err) : status;
}

// Names of the machine's files do not belong into an answer.
static void hide_path(char *message, const char *path)
{
    static const char name[] = "the file";
    const size_t n = strlen(path);
    for (char *at; n >= sizeof name - 1 && (at = strstr(message, path)) != NULL;) {
        memcpy(at, name, sizeof name - 1);
        memmove(at + sizeof name - 1, at + n, strlen(at + n) + 1);
    }
}

/* ---- workers --------------------------------------------------------------------------------------------------------------- */

static lin_status begin_result(void *context, int lanes, lin_error *err)
{
    worker *w = context;
    (void)lanes; // one: all channels are mixed
    return lin_result_begin(&w->result, "sound", NULL, 1, err);
}

static int stops(void *context, double seconds, double duration)
{
    const worker *w = context;
    (void)duration; // what a container says, and need not hold
    w->job->seconds = seconds;
    return atomic_load(&w->job->gone) || lin_serve_stop > 1 || seconds > w->serve->v->max_sound_s || lin_now() > w->job->until;
}

static lin_status transcribe(worker *w, lin_job *job, const request *r, lin_error *err)
{
    lin_serve *s = w->serve;
    lin_status status = LIN_OK;
    if (!w->session) {
        const lin_utterances_options how = {.decoding = &s->decoding,
                                            .ends = lin_reset_auto(&s->recognizer, &s->v->endpoints.rules)};
        status = lin_file_session_create(&s->recognizer, 1, &how, &w->session, err);
    }
    lin_file_report report = {0};
    const lin_sound sound = {.path = job->path, .channel = LIN_CHANNEL_MIX, .results = &w->result};
    const lin_file_sink sink = {.context = w, .begin = begin_result, .progress = stops};
    if (status == LIN_OK) status = lin_file_session_run(w->session, &sound, &sink, &report, err);
    job->seconds = report.seconds;
    if (status == LIN_OK) status = put_transcript(s, job, r, &w->result, err);
    hide_path(report.warning, job->path);
    if (status == LIN_OK && strstr(r->format, "json")) add_warning(&job->answer, report.warning);
    return status;
}

static lin_status open_lexicon(lin_files *f, lin_error *err)
{
    const lin_serve *s = f->serve;
    pthread_mutex_lock(&f->lock);
    lin_status status = LIN_OK;
    if (!f->has_lexicon)
        status = lin_spoken_lexicon_open(&f->lexicon, s->v->decoding.lexicon, s->recognizer.phones, &s->recognizer.warnings, err);
    f->has_lexicon |= status == LIN_OK;
    pthread_mutex_unlock(&f->lock);
    return status;
}

static lin_status align(worker *w, lin_job *job, const request *r, lin_error *err)
{
    lin_serve *s = w->serve;
    lin_status status = LIN_OK;
    if (!w->aligner) {
        lin_aligner_options o = lin_aligner_options_default();
        o.n_threads = 1;
        status = open_lexicon(s->files, err);
        if (status == LIN_OK) status = lin_aligner_create(&s->recognizer, &s->files->lexicon, &o, &w->aligner, err);
    }
    const lin_sound sound = {.path = job->path, .channel = LIN_CHANNEL_MIX, .part = {0, s->v->max_sound_s + 1}};
    const lin_form_part *text = r->text ? r->text : r->phones;
    const lin_aligner_input in = {.id = "sound", .sound = &sound, .text = text->data, .n_text = text->n,
                                  .kind = r->text ? LIN_ALIGNER_WORDS : LIN_ALIGNER_PHONES};
    lin_alignment_clear(&w->alignment);
    if (status == LIN_OK) status = lin_aligner_align(w->aligner, &in, &w->alignment, err);
    job->seconds = w->alignment.seconds;
    if (status == LIN_OK && job->seconds > s->v->max_sound_s) status = lin_fail(err, LIN_STOPPED, "the sound is too long");
    hide_path(w->alignment.warning, job->path);
    return status == LIN_OK ? put_alignment(s, job, r, &w->alignment, s->recognizer.row_seconds, err) : status;
}

static int http_status(lin_status status)
{
    switch (status) {
    case LIN_INVALID:
    case LIN_IO:
    case LIN_FORMAT:
    case LIN_MISMATCH:
    case LIN_UNSUPPORTED:
    case LIN_NUMERIC: return 400; // the sound or the text
    case LIN_STOPPED: return 503;
    default: return 500;
    }
}

// One of the limits of an upload's work, where it was stopped by them.
static lin_status explain_stop(const lin_serve_values *v, lin_job *job, lin_error *err)
{
    const int too_long = job->seconds > v->max_sound_s, too_slow = lin_now() > job->until;
    if (!too_long && !too_slow) return LIN_STOPPED;
    job->status = 413;
    if (too_long) return lin_fail(err, LIN_STOPPED, "the sound is longer than %d s", v->max_sound_s);
    return lin_fail(err, LIN_STOPPED, "the sound takes more than %d s of work", v->max_work_s);
}

static void work_on(worker *w, lin_job *job)
{
    lin_form form;
    request r;
    lin_error err = {0};
    w->job = job;
    job->status = 0;
    job->until = lin_now() + w->serve->v->max_work_s;
    lin_audio_stop_at(job->until);
    job->sound = -1;
    lin_status status = lin_buffer_status(&job->body, &err);
    if (status == LIN_OK) status = lin_form_parse(job->type, job->body.data ? job->body.data : "", job->body.n, &form, &err);
    if (status == LIN_OK) status = read_request(job, &form, &r, &err);
    if (status == LIN_OK) status = write_sound(job, r.file, &err);
    if (status == LIN_OK) status = job->aligns ? align(w, job, &r, &err) : transcribe(w, job, &r, &err);
    lin_audio_stop_at(0);
    if (status == LIN_STOPPED) status = explain_stop(w->serve->v, job, &err);
    if (job->sound >= 0) close(job->sound);
    if (status == LIN_OK) {
        job->status = 200;
        return;
    }
    if (!job->status) job->status = http_status(status);
    hide_path(err.message, job->path);
    lin_buffer_clear(&job->answer);
    lin_openai_put_error(&job->answer, job->status, err.message);
    job->answer_type = "application/json";
}

static void free_job(lin_job *job)
{
    lin_buffer_free(&job->body);
    lin_buffer_free(&job->answer);
    lin_free(job);
}

static void *run(void *context)
{
    lin_serve *s = context;
    lin_files *f = s->files;
    worker w = {.serve = s};
    pthread_mutex_lock(&f->lock);
    for (;;) {
        while (!f->first && !f->stop) pthread_cond_wait(&f->work, &f->lock);
        if (f->stop) break;
        lin_job *job = f->first;
        f->first = job->next;
        if (!f->first) f->last = &f->first;
        pthread_mutex_unlock(&f->lock);
        if (!atomic_load(&job->gone)) work_on(&w, job);
        lin_buffer_free(&job->body);
        pthread_mutex_lock(&s->lock);
        if (job->status == 200) {
            s->counts.files += !job->aligns;
            s->counts.aligned += job->aligns;
            s->counts.file_s += job->seconds;
        } else {
            s->counts.failed++;
            s->counts.too_large += job->status == 413;
        }
        pthread_mutex_unlock(&s->lock);
        pthread_mutex_lock(&f->lock);
        job->done = 1;
        // The client cannot be freed before it has left, which takes this lock; a job that it left is the worker's.
        if (atomic_load(&job->gone)) free_job(job);
        else lin_serve_touch(job->client);
    }
    pthread_mutex_unlock(&f->lock);
    lin_file_session_destroy(w.session);
    lin_aligner_destroy(w.aligner);
    lin_result_free(&w.result);
    lin_alignment_free(&w.alignment);
    return NULL;
}

lin_status lin_files_create(lin_serve *s, lin_error *err)
{
    lin_files *f = s->files = lin_calloc(1, sizeof *f);
    if (!f) return lin_no_memory(err, "workers", sizeof *f);
    f->serve = s;
    f->last = &f->first;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->work, NULL);
    const int n = s->v->threads ? s->v->threads : lin_cores();
    if (lin_system_program(f->program, sizeof f->program)) lin_isolate_files(f->program);
    f->threads = lin_calloc((size_t)n, sizeof *f->threads);
    if (!f->threads) return lin_no_memory(err, "workers", (size_t)n * sizeof *f->threads);
    for (; f->n_threads < n; f->n_threads++) {
        if (pthread_create(&f->threads[f->n_threads], NULL, run, s) != 0)
            return lin_fail(err, LIN_NO_MEMORY, "cannot start a thread");
    }
    return LIN_OK;
}

void lin_files_destroy(lin_serve *s)
{
    lin_files *f = s->files;
    if (!f) return;
    pthread_mutex_lock(&f->lock);
    f->stop = 1;
    pthread_cond_broadcast(&f->work);
    pthread_mutex_unlock(&f->lock);
    for (int i = 0; i < f->n_threads; i++) pthread_join(f->threads[i], NULL);
    for (lin_job *job = f->first, *next; job; job = next) { // left by their clients
        next = job->next;
        free_job(job);
    }
    lin_isolate_files(NULL);
    if (f->has_lexicon) lin_spoken_lexicon_close(&f->lexicon);
    pthread_cond_destroy(&f->work);
    pthread_mutex_destroy(&f->lock);
    lin_free(f->threads);
    lin_free(f);
    s->files = NULL;
}

/* ---- the server's thread --------------------------------------------------------------------------------------------------- */

int lin_files_left(lin_serve *s) { return s->files ? s->files->left : 0; }

static lin_job *turn_away(lin_client *c, long long *count, int status, const char *message)
{
    if (count) lin_serve_count(c->serve, count);
    lin_serve_refuse(c->serve, c->peer, status, status == 429 || status == 503 ? RETRY_S : 0, message);
    return NULL;
}

lin_job *lin_files_begin(lin_client *c, const lin_web_request *r, int aligns)
{
    lin_serve *s = c->serve;
    char message[96];
    const long long most = (long long)s->v->max_upload_mb << 20;
    if (s->draining) return turn_away(c, NULL, 503, "the server is stopping");
    if (r->length < 0) return turn_away(c, NULL, 411, "the length of the body is needed (Content-Length)");
    if (r->length > most) {
        snprintf(message, sizeof message, "the body is larger than %d MB", s->v->max_upload_mb);
        return turn_away(c, &s->counts.too_large, 413, message);
    }
    if (s->files->left >= s->v->max_files) return turn_away(c, &s->counts.refused_files, 429, "too many uploads at once");
    lin_job *job = lin_calloc(1, sizeof *job);
    if (!job) return turn_away(c, NULL, 503, "out of memory");
    job->serve = s;
    job->client = c;
    job->aligns = aligns;
    snprintf(job->type, sizeof job->type, "%s", r->type);
    s->files->left++;
    return job;
}

void lin_files_data(lin_client *c, const char *bytes, size_t n)
{
    lin_job *job = c->job;
    const size_t most = (size_t)c->serve->v->max_upload_mb << 20;
    if (job && !job->posted && job->body.n + n <= most) lin_buffer_bytes(&job->body, bytes, n);
}

void lin_files_complete(lin_client *c)
{
    lin_job *job = c->job;
    lin_files *f = c->serve->files;
    if (!job || job->posted) return;
    job->posted = 1;
    pthread_mutex_lock(&f->lock);
    *f->last = job;
    f->last = &job->next;
    pthread_cond_signal(&f->work);
    pthread_mutex_unlock(&f->lock);
}

int lin_files_receives(const lin_client *c) { return c->job && !c->job->posted; }

void lin_files_give_up(lin_client *c)
{
    lin_job *job = c->job;
    c->job = NULL;
    c->serve->files->left--;
    free_job(job);
    lin_serve_refuse(c->serve, c->peer, 408, 0, "the body did not come in time");
}

void lin_files_go_on(lin_client *c)
{
    lin_job *job = c->job;
    lin_files *f = c->serve->files;
    if (!job) return;
    pthread_mutex_lock(&f->lock);
    const int done = job->done;
    pthread_mutex_unlock(&f->lock);
    if (!done) return;
    lin_serve_answer(c->serve, c->peer, job->status, job->answer_type, job->answer.data ? job->answer.data : "", job->answer.n);
    c->job = NULL;
    f->left--;
    free_job(job);
}

void lin_files_leave(lin_client *c)
{
    lin_job *job = c->job;
    if (!job) return;
    lin_files *f = c->serve->files;
    c->job = NULL;
    pthread_mutex_lock(&f->lock);
    atomic_store(&job->gone, 1);
    const int free_now = !job->posted || job->done;
    job->client = NULL;
    pthread_mutex_unlock(&f->lock);
    f->left--;
    if (free_now) free_job(job);
}
