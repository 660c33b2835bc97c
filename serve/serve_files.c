// serve_files.c - uploads to linnet serve: their bodies, the queue of the workers, and their answers; see serve.h. What a worker
// does with one is in serve/serve_work.c.
//
// A body is kept in memory until it is complete (bounded by its length, or as it comes), then a worker writes the sound into a
// file without a name, because the readers of sound need one, and a process of its own (frontend/isolate.h) decodes it.

#include <string.h>

#include "app/common.h"
#include "base/memory.h"
#include "base/system.h"
#include "frontend/isolate.h"
#include "serve/files_internal.h"

enum { RETRY_S = 5, BODY_S = 30, BODY_BYTES_A_SECOND = 20000 };

static void free_job(lin_job *job)
{
    lin_buffer *const buffers[] = {&job->body, &job->answer, &job->ignored, &job->warning, &job->pieces, &job->sending};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) lin_buffer_free(buffers[i]);
    lin_free(job);
}

/* ---- workers --------------------------------------------------------------------------------------------------------------- */

lin_status lin_job_put(lin_job *job, lin_buffer *piece, lin_error *err)
{
    lin_files *f = job->serve->files;
    pthread_mutex_lock(&f->lock);
    lin_status status = lin_buffer_status(piece, err);
    if (status == LIN_OK) {
        lin_buffer_bytes(&job->pieces, piece->data ? piece->data : "", piece->n);
        status = lin_buffer_status(&job->pieces, err);
        job->pieces.failed = 0; // what is there goes out; the worker ends the answer
    }
    job->n_pieces += status == LIN_OK;
    if (!atomic_load(&job->gone)) lin_serve_touch(job->client);
    pthread_mutex_unlock(&f->lock);
    lin_buffer_clear(piece);
    return status;
}

static void *run(void *context)
{
    lin_serve *s = context;
    lin_files *f = s->files;
    lin_work *w = lin_work_create(s);
    pthread_mutex_lock(&f->lock);
    for (;;) {
        while (!f->first && !f->stop) pthread_cond_wait(&f->work, &f->lock);
        if (f->stop) break;
        lin_job *job = f->first;
        f->first = job->next;
        if (!f->first) f->last = &f->first;
        pthread_mutex_unlock(&f->lock);
        if (!atomic_load(&job->gone)) lin_work_do(w, job);
        lin_buffer_free(&job->body);
        pthread_mutex_lock(&s->lock);
        if (job->status == 200) {
            s->counts.files += job->call->kind != LIN_CALL_ALIGN;
            s->counts.aligned += job->call->kind == LIN_CALL_ALIGN;
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
    lin_work_destroy(w);
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
    if (!c->serve->asked) lin_serve_log_end(c, status, message);
    lin_serve_refuse(c->serve, c->peer, status, status == 429 || status == 503 ? RETRY_S : 0, message);
    return NULL;
}

static const char *put_too_large(const lin_serve *s, char *message, size_t capacity)
{
    snprintf(message, capacity, "the body is larger than %d MB", s->v->max_upload_mb);
    return message;
}

lin_job *lin_files_begin(lin_client *c, const lin_web_request *r, const lin_call *call)
{
    lin_serve *s = c->serve;
    char message[96];
    const long long most = (long long)s->v->max_upload_mb << 20;
    const int is_chunked = strcasecmp(r->encoding, "chunked") == 0;
    if (s->draining) return turn_away(c, NULL, 503, "the server is stopping");
    if (*r->encoding && !is_chunked) return turn_away(c, NULL, 501, "the Transfer-Encoding of a body can be chunked only");
    if (is_chunked && r->length >= 0)
        return turn_away(c, NULL, 400, "a body has one of Content-Length and Transfer-Encoding");
    if (r->length == LIN_WEB_BAD_LENGTH) return turn_away(c, NULL, 400, "Content-Length is not a number");
    if (!is_chunked && r->length < 0)
        return turn_away(c, NULL, 411, "a body needs Content-Length or Transfer-Encoding: chunked");
    if (r->length > most) return turn_away(c, &s->counts.too_large, 413, put_too_large(s, message, sizeof message));
    if (s->files->left >= s->v->max_files) return turn_away(c, &s->counts.refused_files, 429, "too many uploads at once");
    lin_job *job = lin_calloc(1, sizeof *job);
    if (!job) return turn_away(c, NULL, 503, "out of memory");
    job->serve = s;
    job->client = c;
    job->call = call;
    job->is_chunked = is_chunked;
    job->body_until = lin_now() + BODY_S + (is_chunked ? 0 : (double)r->length / BODY_BYTES_A_SECOND);
    snprintf(job->type, sizeof job->type, "%s", r->type);
    s->files->left++;
    return job;
}

static void post(lin_job *job)
{
    lin_files *f = job->serve->files;
    job->posted = 1;
    pthread_mutex_lock(&f->lock);
    *f->last = job;
    f->last = &job->next;
    pthread_cond_signal(&f->work);
    pthread_mutex_unlock(&f->lock);
}

// A job that no worker has seen ends with a refusal.
static void give_up(lin_client *c, long long *count, int status, const char *message)
{
    lin_job *job = c->job;
    c->job = NULL;
    c->serve->files->left--;
    free_job(job);
    turn_away(c, count, status, message);
}

static void keep(lin_job *job, const char *bytes, size_t n)
{
    const size_t most = (size_t)job->serve->v->max_upload_mb << 20;
    if (job->body.n + n <= most) lin_buffer_bytes(&job->body, bytes, n);
    else job->too_large = 1;
}

// Whoever sends chunks may take as long for each byte as if the length had been known.
static void keep_chunks(lin_client *c, const char *bytes, size_t n)
{
    lin_job *job = c->job;
    char message[96];
    const char *data;
    for (size_t at = 0, n_data; at < n && job->chunks.state < LIN_CHUNKED_DONE; keep(job, data, n_data))
        at += lin_chunked_take(&job->chunks, bytes + at, n - at, &data, &n_data);
    job->body_until += (double)n / BODY_BYTES_A_SECOND;
    if (job->too_large) {
        give_up(c, &c->serve->counts.too_large, 413, put_too_large(c->serve, message, sizeof message));
    } else if (job->chunks.state == LIN_CHUNKED_BAD) {
        give_up(c, NULL, 400, "the chunks of the body are damaged");
    } else if (job->chunks.state == LIN_CHUNKED_DONE) {
        c->serve->transport->expect(c->peer, 0);
        post(job);
    }
}

void lin_files_data(lin_client *c, const char *bytes, size_t n)
{
    lin_job *job = c->job;
    if (!job || job->posted) return;
    if (job->is_chunked) keep_chunks(c, bytes, n);
    else keep(job, bytes, n);
}

// In chunks it is complete for the network where that does not take more of it.
void lin_files_complete(lin_client *c)
{
    char message[96];
    if (!c->job || c->job->posted) return;
    if (c->job->is_chunked) give_up(c, &c->serve->counts.too_large, 413, put_too_large(c->serve, message, sizeof message));
    else post(c->job);
}

void lin_files_expect(lin_client *c, double now)
{
    lin_job *job = c->job;
    if (!job || job->posted) return;
    if (now <= job->body_until) {
        c->serve->transport->expect(c->peer, (int)(job->body_until - now) + BODY_S);
        return;
    }
    give_up(c, NULL, 408, "the body did not come in time");
}

void lin_files_drain(lin_client *c)
{
    if (c->job && !c->job->posted) give_up(c, NULL, 503, "the server is stopping");
}

// The head of an answer, with its body if that is whole.
static void reply(lin_client *c, const lin_job *job)
{
    lin_web_header headers[2];
    lin_web_reply r = {.status = job->begun ? 200 : job->status, .headers = headers};
    if (job->ignored.n) headers[r.n_headers++] = (lin_web_header){"linnet-ignored", job->ignored.data};
    if (job->warning.n && !job->begun) headers[r.n_headers++] = (lin_web_header){"linnet-warning", job->warning.data};
    if (job->begun) {
        r.type = "text/event-stream";
        r.goes_on = 1;
    } else {
        r.type = job->answer_type;
        r.body = job->answer.data ? job->answer.data : "";
        r.n = job->answer.n;
    }
    lin_serve_reply(c->serve, c->peer, &r, 0);
}

void lin_files_go_on(lin_client *c)
{
    lin_job *job = c->job;
    lin_files *f = c->serve->files;
    if (!job) return;
    pthread_mutex_lock(&f->lock);
    const int done = job->done, waits = job->pieces.n > 0;
    pthread_mutex_unlock(&f->lock);
    if (waits && !job->begun) {
        job->begun = 1;
        reply(c, job);
    }
    if (done) {
        c->sound_s = job->seconds;
        lin_serve_log_end(c, job->status, job->status == 200 ? "ended" : job->cause);
    }
    if (job->begun) { // it is freed when the client is gone
        c->serve->transport->want(c->peer);
        if (done) c->serve->transport->end(c->peer, 0, "");
    } else if (done) {
        reply(c, job);
        c->job = NULL;
        f->left--;
        free_job(job);
    }
}

int lin_files_next(lin_client *c, lin_web_message *m)
{
    lin_job *job = c->job;
    if (!job || !job->begun) return 0;
    lin_buffer_clear(&job->sending);
    pthread_mutex_lock(&c->serve->files->lock);
    const lin_buffer now = job->pieces;
    job->pieces = job->sending;
    job->sending = now;
    pthread_mutex_unlock(&c->serve->files->lock);
    *m = (lin_web_message){.data = now.data, .n = now.n};
    return now.n > 0;
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
