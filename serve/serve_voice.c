// serve_voice.c - streams of sound in the engine, and the threads that prepare them; see serve_voice.h.

#include "serve/serve_voice.h"

#include <pthread.h>
#include <string.h>

#include "base/memory.h"
#include "base/system.h"
#include "serve/serve.h"

enum { QUEUE_S = 2 };

struct lin_voice {
    lin_voices *voices;
    lin_outbox *out;
    lin_voice_about about;
    void *state;    // that it goes on from, until it is open
    lin_voice *next; // in the queue of those that have work

    // the thread's that works on it
    lin_phrases own;
    int n_own;

    // under the lock of voices
    lin_engine_id id; // 0: it is not open yet
    char **wanted;    // [n_wanted] phrases; NULL: no others than it has
    int n_wanted;
    int ready, ending, queued, working, over, closing;
    int telling, orphan; // its client is told something, and waits before it goes; the thread that works on it frees it
};

struct lin_voices {
    lin_voices_options o;
    lin_engine *engine;
    pthread_mutex_t lock;
    pthread_cond_t work, told; // there is some; a client was told
    lin_voice *first, **last;  // have work
    pthread_t *threads;        // [n_threads]
    int n_threads, open, stop;
};

/* ---- what the engine gives ------------------------------------------------------------------------------------------------- */

static void take(void *context, const lin_engine_event *event)
{
    lin_outbox *out = ((const lin_voice *)event->user)->out;
    lin_error err = {0};
    (void)context;
    if (event->kind == LIN_ENGINE_VIEW) lin_outbox_show(out, event->view);
    if (event->kind == LIN_ENGINE_SAVED) lin_outbox_state(out, event->state, event->n_state, event->time_s);
    if (event->kind == LIN_ENGINE_FINISHED) lin_outbox_ended(out, event->time_s, NULL);
    if (event->kind != LIN_ENGINE_FAILED) return;
    lin_fail(&err, event->status, "the stream failed: %s", event->message);
    lin_outbox_ended(out, 0, &err);
}

/* ---- what takes long ------------------------------------------------------------------------------------------------------- */

static void free_texts(char **texts, int n)
{
    for (int i = 0; texts && i < n; i++) lin_free(texts[i]);
    lin_free(texts);
}

static void free_voice(lin_voice *v)
{
    lin_phrases_free(&v->own);
    free_texts(v->wanted, v->n_wanted);
    lin_free(v->state);
    lin_free(v);
}

static lin_status copy_texts(char *const *texts, int n, char ***copy, lin_error *err)
{
    char **made = *copy = lin_calloc((size_t)n + 1, sizeof *made);
    int bad = !made;
    for (int i = 0; i < n && !bad; i++) bad = !(made[i] = lin_strdup(texts[i]));
    if (!bad) return LIN_OK;
    free_texts(made, n);
    *copy = NULL;
    return lin_no_memory(err, "phrases", (size_t)n * sizeof *made);
}

int lin_phrases_leave_out(linnet_phrase *list, int n)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", others[] = "' -";
    int kept = 0;
    for (int i = 0; i < n; i++) {
        const char *c = list[i].text + strspn(list[i].text, others);
        int is_plain = *c != 0;
        for (; *c && is_plain; c++) is_plain = strchr(letters, *c) || strchr(others, *c);
        if (is_plain) list[kept++] = list[i];
    }
    return kept;
}

static lin_status use_phrases(lin_voice *v, lin_engine_id id, char *const *texts, int n, lin_error *err)
{
    lin_phrases made = {NULL, NULL};
    const lin_decoding *decoding = v->voices->o.decoding;
    linnet_phrase *list = lin_calloc((size_t)n + 1, sizeof *list);
    if (!list) return lin_no_memory(err, "phrases", (size_t)n * sizeof *list);
    for (int i = 0; i < n; i++) list[i] = (linnet_phrase){texts[i], v->about.bonus};
    lin_status status = lin_decoding_make_phrases(decoding, list, n, &made, err);
    if (v->about.advice && (status == LIN_INVALID || status == LIN_UNSUPPORTED)) {
        n = lin_phrases_leave_out(list, n);
        status = n ? lin_decoding_make_phrases(decoding, list, n, &made, err) : LIN_OK;
        if (status == LIN_INVALID || status == LIN_UNSUPPORTED) n = 0;
        if (n == 0) status = LIN_OK;
    }
    lin_free(list);
    if (status == LIN_OK) status = lin_engine_set_phrases(v->voices->engine, id, n ? &made : NULL, err);
    lin_phrases_free(status == LIN_OK ? &v->own : &made);
    if (status != LIN_OK) return status;
    v->own = made;
    v->n_own = n;
    return LIN_OK;
}

static lin_status open_stream(lin_voice *v, lin_engine_id *id, lin_error *err)
{
    lin_engine *engine = v->voices->engine;
    const lin_voice_about *a = &v->about;
    if (a->state_s <= 0 && !v->state) return lin_engine_open(engine, a->rate_hz, a->channels, v, id, err);
    const lin_engine_stream s = {.rate_hz = a->rate_hz, .channels = a->channels, .user = v, .save_s = a->state_s,
                                 .state = v->state, .n_state = a->n_state};
    return lin_engine_open_saved(engine, &s, id, err);
}

// The lock is held before and after. First phrases that cannot be used end the stream; of later ones the client is told.
static void work_on(lin_voices *vs, lin_voice *v)
{
    lin_error err = {0};
    char **const wanted = v->wanted;
    const int n_wanted = v->n_wanted, first = !v->ready;
    lin_engine_id id = v->id;
    v->wanted = NULL;
    pthread_mutex_unlock(&vs->lock);
    lin_status status = id ? LIN_OK : open_stream(v, &id, &err);
    pthread_mutex_lock(&vs->lock);
    v->id = id; // who closes the voice meanwhile closes this
    pthread_mutex_unlock(&vs->lock);
    if (status == LIN_OK && wanted) status = use_phrases(v, id, wanted, n_wanted, &err);
    free_texts(wanted, n_wanted);
    pthread_mutex_lock(&vs->lock);
    if (v->closing) return;
    v->telling = 1;
    pthread_mutex_unlock(&vs->lock);
    if (!first) lin_outbox_phrases(v->out, v->n_own, status == LIN_OK ? NULL : &err);
    else if (status != LIN_OK) lin_outbox_ended(v->out, 0, &err);
    pthread_mutex_lock(&vs->lock);
    v->telling = 0;
    pthread_cond_broadcast(&vs->told);
    v->over = first && status != LIN_OK;
    v->ready = !v->over;
    if (!v->ready || !v->ending || v->wanted) return;
    v->ending = 0;
    lin_engine_finish(vs->engine, id, NULL);
}

// Locked.
static void enqueue(lin_voice *v)
{
    lin_voices *vs = v->voices;
    if (v->queued || v->working || v->over || v->closing || (v->ready && !v->wanted)) return;
    v->queued = 1;
    v->next = NULL;
    *vs->last = v;
    vs->last = &v->next;
    pthread_cond_signal(&vs->work);
}

static void *run(void *context)
{
    lin_voices *vs = context;
    pthread_mutex_lock(&vs->lock);
    while (!vs->stop) {
        lin_voice *v = vs->first;
        if (!v) {
            pthread_cond_wait(&vs->work, &vs->lock);
            continue;
        }
        vs->first = v->next;
        if (!vs->first) vs->last = &vs->first;
        v->queued = 0;
        v->working = 1;
        work_on(vs, v);
        v->working = 0;
        enqueue(v);
        if (!v->orphan) continue;
        pthread_mutex_unlock(&vs->lock);
        if (v->id) lin_engine_close(vs->engine, v->id);
        free_voice(v);
        pthread_mutex_lock(&vs->lock);
    }
    pthread_mutex_unlock(&vs->lock);
    return NULL;
}

/* ---- all of them ----------------------------------------------------------------------------------------------------------- */

lin_status lin_voices_create(const lin_voices_options *options, lin_voices **voices, lin_error *err)
{
    *voices = NULL;
    lin_voices *vs = lin_calloc(1, sizeof *vs);
    if (!vs) return lin_no_memory(err, "streams", sizeof *vs);
    vs->o = *options;
    vs->last = &vs->first;
    pthread_mutex_init(&vs->lock, NULL);
    pthread_cond_init(&vs->work, NULL);
    pthread_cond_init(&vs->told, NULL);
    lin_engine_options how = lin_engine_default(options->capacity);
    how.threads = options->threads;
    how.queue_s = QUEUE_S;
    how.endpoints = how.views = how.saves = 1;
    how.reset_at_endpoint = options->resets;
    how.endpoint = options->rules;
    how.decoding = options->decoding;
    how.second = options->second;
    how.deliver = take;
    lin_status status = lin_engine_create(options->recognizer, &how, &vs->engine, err);
    const int n = options->threads ? options->threads : lin_cores();
    if (status == LIN_OK) vs->threads = lin_calloc((size_t)n, sizeof *vs->threads);
    if (status == LIN_OK && !vs->threads) status = lin_no_memory(err, "threads", (size_t)n * sizeof *vs->threads);
    while (status == LIN_OK && vs->n_threads < n) {
        if (pthread_create(&vs->threads[vs->n_threads], NULL, run, vs) == 0) vs->n_threads++;
        else status = lin_fail(err, LIN_NO_MEMORY, "cannot start a thread");
    }
    if (status == LIN_OK) *voices = vs;
    else lin_voices_destroy(vs);
    return status;
}

void lin_voices_destroy(lin_voices *vs)
{
    if (!vs) return;
    pthread_mutex_lock(&vs->lock);
    vs->stop = 1;
    pthread_cond_broadcast(&vs->work);
    pthread_mutex_unlock(&vs->lock);
    for (int i = 0; i < vs->n_threads; i++) pthread_join(vs->threads[i], NULL);
    lin_engine_destroy(vs->engine);
    pthread_cond_destroy(&vs->work);
    pthread_cond_destroy(&vs->told);
    pthread_mutex_destroy(&vs->lock);
    lin_free(vs->threads);
    lin_free(vs);
}

lin_engine *lin_voices_engine(const lin_voices *vs) { return vs->engine; }

/* ---- one of them ----------------------------------------------------------------------------------------------------------- */

lin_status lin_voice_open(lin_voices *vs, const lin_voice_about *about, lin_outbox *out, lin_voice **voice, lin_error *err)
{
    *voice = NULL;
    if (vs->open >= vs->o.capacity) return lin_fail(err, LIN_TOO_SMALL, "all %d streams are taken", vs->o.capacity);
    lin_status status = lin_audio_check_format("the stream", about->rate_hz, about->channels, err);
    if (status != LIN_OK) return status;
    lin_voice *v = lin_calloc(1, sizeof *v);
    if (!v) return lin_no_memory(err, "a stream", sizeof *v);
    v->voices = vs;
    v->out = out;
    v->about = *about;
    const int later = about->n_phrases || about->state_s > 0 || about->state;
    if (about->state && !(v->state = lin_alloc(about->n_state, 1))) status = lin_no_memory(err, "a state", about->n_state);
    if (v->state) memcpy(v->state, about->state, about->n_state);
    v->n_wanted = about->n_phrases;
    if (status == LIN_OK && v->n_wanted) status = copy_texts(about->phrases, v->n_wanted, &v->wanted, err);
    if (status == LIN_OK && !later) status = open_stream(v, &v->id, err);
    if (status != LIN_OK) {
        free_voice(v);
        return status;
    }
    vs->open++;
    pthread_mutex_lock(&vs->lock);
    v->ready = !later;
    enqueue(v);
    pthread_mutex_unlock(&vs->lock);
    *voice = v;
    return LIN_OK;
}

// What takes long is not waited for: the thread that works on the voice frees it.
void lin_voice_close(lin_voice *v)
{
    if (!v) return;
    lin_voices *vs = v->voices;
    vs->open--;
    pthread_mutex_lock(&vs->lock);
    v->closing = 1;
    if (v->queued) {
        lin_voice **at = &vs->first;
        while (*at != v) at = &(*at)->next;
        *at = v->next;
        if (!*at) vs->last = at;
    }
    while (v->telling) pthread_cond_wait(&vs->told, &vs->lock);
    const lin_engine_id id = v->id;
    const int orphan = v->orphan = v->working;
    pthread_mutex_unlock(&vs->lock);
    if (id) lin_engine_close(vs->engine, id);
    if (!orphan) free_voice(v);
}

int lin_voice_ready(lin_voice *v)
{
    pthread_mutex_lock(&v->voices->lock);
    const int ready = v->ready;
    pthread_mutex_unlock(&v->voices->lock);
    return ready;
}

void lin_voice_room(lin_voice *v, int *samples, double *waiting_s)
{
    lin_engine_room(v->voices->engine, v->id, samples, waiting_s, NULL);
}

lin_status lin_voice_push(lin_voice *v, const float *samples, int n, lin_error *err)
{
    return lin_engine_push(v->voices->engine, v->id, samples, n, err);
}

lin_status lin_voice_end_utterance(lin_voice *v, lin_error *err)
{
    return lin_engine_end_utterance(v->voices->engine, v->id, err);
}

lin_status lin_voice_reset(lin_voice *v, lin_error *err) { return lin_engine_reset(v->voices->engine, v->id, err); }

lin_status lin_voice_finish(lin_voice *v, lin_error *err)
{
    pthread_mutex_lock(&v->voices->lock);
    const int now = v->ready && !v->wanted && !v->working; // else behind its phrases, which are to be answered
    v->ending = !now;
    pthread_mutex_unlock(&v->voices->lock);
    return now ? lin_engine_finish(v->voices->engine, v->id, err) : LIN_OK;
}

lin_status lin_voice_set_phrases(lin_voice *v, char *const *phrases, int n, lin_error *err)
{
    char **copy;
    LIN_TRY(copy_texts(phrases, n, &copy, err));
    pthread_mutex_lock(&v->voices->lock);
    free_texts(v->wanted, v->n_wanted); // not taken yet: these replace them
    v->wanted = copy;
    v->n_wanted = n;
    enqueue(v);
    pthread_mutex_unlock(&v->voices->lock);
    return LIN_OK;
}
