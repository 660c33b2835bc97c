// serve_voice.c - streams of sound in the engine or in sessions of their own; see serve_voice.h.

#include "serve/serve_voice.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/cores.h"
#include "base/memory.h"
#include "linnet/lags.h"

// A session is given a tenth of a second of its sound before the others have their turn. One whose sound comes faster than it was
// spoken has a turn when no other has work, at the latest after so many.
#define AHEAD_S 0.3 // sound of a network that was slow for a moment may come so much faster
enum { QUEUE_S = 2, TURNS_A_SECOND = 10, LIVE_TURNS = 4 };

// A thread. Its sessions share what the network computes in, which is several times the memory of a session.
typedef struct hand {
    lin_voices *voices;
    pthread_t thread;
    lin_worker *worker; // NULL before its first session
    int open;           // voices; the server's thread counts them
    // under the lock of voices
    pthread_cond_t work; // there is some
    // Of streams whose sound comes as it is spoken, and of those whose sound comes faster.
    struct {
        lin_voice *first, **last;
    } live, fast;
    int turns; // of live ones since a fast one had its own
} hand;

struct lin_voice {
    lin_voices *voices;
    void *user;
    hand *hand;
    lin_voice *next; // in the queue of those that have work
    lin_engine_id id; // of the engine; 0: a session

    // these belong to the thread that works on it
    lin_voice_about about;
    lin_phrases own;
    int n_own;
    // of a session
    void *state;
    lin_decoding decoding; // with its own phrases
    lin_session *session;
    lin_state saving;
    double saved_at;
    float *taken; // [room]
    // under the lock of voices
    char **wanted; // [n_wanted] phrases; NULL: no others than it has
    int n_wanted, unready; // unready: its first phrases are not there yet
    float *queue; // [room]
    int room, n;  // samples of all channels
    int n_utterance; // of them, before the utterance must end
    double due_at; // when the last of them came, or was due: sound that comes faster than it was spoken is not late
    int queued, working, ending, ends_utterance, over, closing;
};

struct lin_voices {
    lin_voices_options o;
    lin_engine *engine;
    pthread_mutex_t lock;
    pthread_cond_t idle; // a voice is no longer worked on
    lin_lags lags; // of sessions: from the arrival of sound until it is decoded
    long long n_lags;
    int stop;
    hand *hands; // [n_hands]
    int n_hands, open;
};

/* ---- the engine's ----------------------------------------------------------------------------------------------------------- */

static void show_engine(void *context, lin_engine_id id, void *user, const lin_session_view *view)
{
    const lin_voices *vs = context;
    const lin_voice *v = user;
    (void)id;
    vs->o.sink.show(v->user, view);
}

static void take_events(void *context, lin_engine_id id, void *user, const lin_engine_event *events, int n)
{
    const lin_voices *vs = context;
    const lin_voice *v = user;
    lin_error err = {0};
    (void)id;
    for (int i = 0; i < n; i++) {
        if (events[i].kind == LIN_ENGINE_FINISHED) vs->o.sink.ended(v->user, events[i].end_s, NULL);
        if (events[i].kind != LIN_ENGINE_FAILED) continue;
        lin_fail(&err, events[i].status, "the stream failed: %s", lin_status_name(events[i].status));
        vs->o.sink.ended(v->user, events[i].end_s, &err);
    }
}

/* ---- sessions, on their threads --------------------------------------------------------------------------------------------- */

static lin_status show_session(void *context, const lin_session_view *view, lin_error *err)
{
    const lin_voice *v = context;
    (void)err;
    v->voices->o.sink.show(v->user, view);
    return LIN_OK;
}

static void free_texts(char **texts, int n)
{
    for (int i = 0; texts && i < n; i++) lin_free(texts[i]);
    lin_free(texts);
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

// Phrases for a stream of the engine, or for its session, which may not have begun.
static lin_status use_phrases(lin_voice *v, char *const *texts, int n, lin_error *err)
{
    lin_phrases made = {NULL, NULL};
    lin_phrase *list = lin_calloc((size_t)n + 1, sizeof *list);
    if (!list) return lin_no_memory(err, "phrases", (size_t)n * sizeof *list);
    for (int i = 0; i < n; i++) list[i] = (lin_phrase){texts[i], v->about.bonus};
    lin_status status = lin_decoding_make_phrases(v->voices->o.decoding, list, n, &made, err);
    lin_free(list);
    if (status == LIN_OK && v->id) {
        status = lin_engine_set_phrases(v->voices->engine, v->id, n ? &made : NULL, err);
    } else if (status == LIN_OK && v->session && v->decoding.n_best > 1) {
        status = lin_fail(err, LIN_UNSUPPORTED, "phrases of a stream with alternatives (n_best over 1) cannot be changed");
    } else if (status == LIN_OK) {
        v->decoding.context = n ? (lin_search_context){.phones = made.phones, .words = made.words} : v->voices->o.decoding->context;
    }
    if (status != LIN_OK) {
        lin_phrases_free(&made);
        return status;
    }
    lin_phrases_free(&v->own);
    v->own = made;
    v->n_own = n;
    return LIN_OK;
}

static lin_status create_session(lin_voice *v, lin_error *err)
{
    const lin_voices *vs = v->voices;
    lin_session_options o = lin_session_options_default();
    o.rate_hz = v->about.rate_hz;
    o.channels = v->about.channels;
    o.resets = vs->o.resets;
    o.rules = vs->o.rules;
    o.decoding = &v->decoding;
    o.saves = v->about.state_s > 0 || v->state != NULL;
    lin_state state = {0};
    lin_status status = LIN_OK;
    if (!v->hand->worker) status = lin_worker_create(vs->o.recognizer->encoder, 1, &v->hand->worker, err);
    o.worker = v->hand->worker;
    if (status == LIN_OK) status = lin_session_create(vs->o.recognizer, &o, &(lin_utterances_sink){.context = v, .show = show_session}, &v->session, err);
    if (status == LIN_OK && v->state) {
        status = lin_state_parse(v->state, v->about.n_state, "the state", &state, err);
        if (status == LIN_OK) status = lin_session_load(v->session, &state, err);
        if (status == LIN_OK) v->saved_at = lin_session_seconds(v->session);
    }
    lin_state_free(&state);
    lin_free(v->state);
    v->state = NULL;
    return status;
}

static lin_status save(lin_voice *v, lin_error *err)
{
    const double now = lin_session_seconds(v->session);
    if (v->about.state_s <= 0 || now - v->saved_at < v->about.state_s) return LIN_OK;
    v->saved_at = now;
    lin_status status = lin_session_save(v->session, &v->saving, err);
    if (status != LIN_OK) return status;
    lin_state_seal(&v->saving);
    v->voices->o.sink.saved(v->user, v->saving.bytes, v->saving.n, now);
    return LIN_OK;
}

// The phrases that are wanted. LIN_OK too if those before remain.
static lin_status renew_phrases(lin_voice *v, char *const *texts, int n, int first, lin_error *err)
{
    lin_error why = {0};
    const lin_status status = use_phrases(v, texts, n, first ? err : &why);
    if (first) return status;
    v->voices->o.sink.phrases(v->user, v->n_own, status == LIN_OK ? NULL : &why);
    return LIN_OK;
}

static lin_status go_on(lin_voice *v, int n, int end, int finish, lin_error *err)
{
    lin_status status = v->session ? LIN_OK : create_session(v, err);
    if (status == LIN_OK && n) status = lin_session_push(v->session, v->taken, n / v->about.channels, err);
    if (status == LIN_OK && end) status = lin_session_end_utterance(v->session, err);
    if (status == LIN_OK && finish) return lin_session_finish(v->session, err);
    return status == LIN_OK ? save(v, err) : status;
}

static int share_of(const lin_voice *v) { return (v->about.rate_hz / TURNS_A_SECOND + 1) * v->about.channels; }

static double seconds_of(const lin_voice *v, int samples) { return (double)samples / v->about.channels / v->about.rate_hz; }

// Takes the next of what waits: a client that sends as fast as it can must not hold up the others of its thread. The lock is held
// before and after. 1: the stream is over.
static int work_on(lin_voices *vs, lin_voice *v)
{
    lin_error err = {0};
    char **const wanted = v->wanted;
    const int share = share_of(v), most = v->ends_utterance ? v->n_utterance : v->n, n = most < share ? most : share;
    const int end = v->ends_utterance && n == v->n_utterance, finish = v->ending && n == v->n;
    const int n_wanted = v->n_wanted, first = v->unready;
    if (n) memcpy(v->taken, v->queue, (size_t)n * sizeof *v->taken);
    v->n -= n;
    v->n_utterance -= v->ends_utterance ? n : 0;
    if (n && v->n) memmove(v->queue, v->queue + n, (size_t)v->n * sizeof *v->queue);
    if (end) v->ends_utterance = 0;
    v->wanted = NULL;
    pthread_mutex_unlock(&vs->lock);
    lin_status status = wanted ? renew_phrases(v, wanted, n_wanted, first, &err) : LIN_OK;
    free_texts(wanted, n_wanted);
    if (status == LIN_OK && v->id && finish) status = lin_engine_finish(vs->engine, v->id, &err); // which tells of the end
    else if (status == LIN_OK && !v->id) status = go_on(v, n, end, finish, &err);
    const int over = status != LIN_OK || (finish && !v->id);
    if (over) vs->o.sink.ended(v->user, v->session ? lin_session_seconds(v->session) : 0, status == LIN_OK ? NULL : &err);
    pthread_mutex_lock(&vs->lock);
    const double now = lin_now(), late_s = now - (v->due_at - seconds_of(v, v->n));
    if (n) lin_lags_add(&vs->lags, fmax(late_s, 0));
    vs->n_lags += n > 0;
    if (v->n == 0) v->due_at = fmin(v->due_at, now);
    v->unready = 0;
    if (v->id) v->ending = 0;
    return over;
}

static int has_work(const lin_voice *v) { return !v->over && !v->closing && (v->n || v->ending || v->ends_utterance || v->wanted); }

// Puts a voice that has work into the queue; locked.
static void enqueue(lin_voice *v)
{
    hand *h = v->hand;
    if (v->queued || v->working || !has_work(v)) return;
    v->queued = 1;
    v->next = NULL;
    lin_voice ***last = v->due_at > lin_now() + AHEAD_S ? &h->fast.last : &h->live.last;
    **last = v;
    *last = &v->next;
    pthread_cond_signal(&h->work);
}

// The next that has work; NULL: none. Locked.
static lin_voice *dequeue(hand *h)
{
    const int fast = h->fast.first && (!h->live.first || h->turns >= LIVE_TURNS);
    lin_voice **first = fast ? &h->fast.first : &h->live.first, *v = *first;
    if (!v) return NULL;
    h->turns = fast ? 0 : h->turns + 1;
    *first = v->next;
    if (!*first && fast) h->fast.last = first;
    else if (!*first) h->live.last = first;
    v->queued = 0;
    return v;
}

static void *run(void *context)
{
    hand *h = context;
    lin_voices *vs = h->voices;
    pthread_mutex_lock(&vs->lock);
    while (!vs->stop) {
        lin_voice *v = dequeue(h);
        if (!v) {
            pthread_cond_wait(&h->work, &vs->lock);
            continue;
        }
        v->working = 1;
        if (has_work(v)) v->over |= work_on(vs, v);
        v->working = 0;
        enqueue(v);
        pthread_cond_broadcast(&vs->idle);
    }
    pthread_mutex_unlock(&vs->lock);
    return NULL;
}

/* ---- all of them ------------------------------------------------------------------------------------------------------------ */

lin_status lin_voices_create(const lin_voices_options *options, lin_voices **voices, lin_error *err)
{
    *voices = NULL;
    lin_voices *vs = lin_calloc(1, sizeof *vs);
    if (!vs) return lin_no_memory(err, "streams", sizeof *vs);
    vs->o = *options;
    pthread_mutex_init(&vs->lock, NULL);
    pthread_cond_init(&vs->idle, NULL);
    lin_engine_options how = lin_engine_default(options->capacity);
    how.threads = options->threads;
    how.queue_s = QUEUE_S;
    how.endpoints = 1;
    how.reset_at_endpoint = options->resets;
    how.endpoint = options->rules;
    how.decoding = options->decoding;
    how.show = show_engine;
    how.deliver = take_events;
    how.context = vs;
    lin_status status = lin_engine_create(options->recognizer, &how, &vs->engine, err);
    const int n = options->threads ? options->threads : lin_cores();
    if (status == LIN_OK) vs->hands = lin_calloc((size_t)n, sizeof *vs->hands);
    if (status == LIN_OK && !vs->hands) status = lin_no_memory(err, "threads", (size_t)n * sizeof *vs->hands);
    for (; status == LIN_OK && vs->n_hands < n; vs->n_hands++) {
        hand *h = &vs->hands[vs->n_hands];
        *h = (hand){.voices = vs, .live.last = &h->live.first, .fast.last = &h->fast.first};
        pthread_cond_init(&h->work, NULL);
        if (pthread_create(&h->thread, NULL, run, h) == 0) continue;
        pthread_cond_destroy(&h->work);
        status = lin_fail(err, LIN_NO_MEMORY, "cannot start a thread");
        break;
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
    for (int i = 0; i < vs->n_hands; i++) pthread_cond_signal(&vs->hands[i].work);
    pthread_mutex_unlock(&vs->lock);
    for (int i = 0; i < vs->n_hands; i++) {
        pthread_join(vs->hands[i].thread, NULL);
        pthread_cond_destroy(&vs->hands[i].work);
        lin_worker_destroy(vs->hands[i].worker);
    }
    lin_engine_destroy(vs->engine);
    pthread_cond_destroy(&vs->idle);
    pthread_mutex_destroy(&vs->lock);
    lin_free(vs->hands);
    lin_free(vs);
}

void lin_voices_stats(lin_voices *vs, lin_engine_stats *stats)
{
    lin_engine_stats_get(vs->engine, stats);
    pthread_mutex_lock(&vs->lock);
    stats->rows += vs->n_lags;
    stats->lag_p50_ms = fmax(stats->lag_p50_ms, 1e3 * lin_lags_quantile(&vs->lags, 0.50));
    stats->lag_p95_ms = fmax(stats->lag_p95_ms, 1e3 * lin_lags_quantile(&vs->lags, 0.95));
    stats->lag_p99_ms = fmax(stats->lag_p99_ms, 1e3 * lin_lags_quantile(&vs->lags, 0.99));
    stats->lag_most_ms = fmax(stats->lag_most_ms, 1e3 * vs->lags.most_s);
    pthread_mutex_unlock(&vs->lock);
}

void lin_voices_stats_reset(lin_voices *vs)
{
    lin_engine_stats_reset(vs->engine);
    pthread_mutex_lock(&vs->lock);
    vs->lags = (lin_lags){0};
    vs->n_lags = 0;
    pthread_mutex_unlock(&vs->lock);
}

// The thread that has the fewest.
static hand *find_hand(lin_voices *vs)
{
    hand *best = vs->hands;
    for (int i = 1; i < vs->n_hands; i++)
        if (vs->hands[i].open < best->open) best = &vs->hands[i];
    return best;
}

static lin_status prepare_session(lin_voice *v, lin_error *err)
{
    const lin_voice_about *a = &v->about;
    v->room = a->rate_hz * QUEUE_S * a->channels;
    v->queue = lin_alloc((size_t)v->room, sizeof *v->queue);
    v->taken = lin_alloc((size_t)v->room, sizeof *v->taken);
    int bad = !v->queue || !v->taken;
    if (!bad && a->state) bad = !(v->state = lin_alloc(a->n_state, 1));
    if (bad) return lin_no_memory(err, "a stream", 2 * (size_t)v->room * sizeof *v->queue);
    if (v->state) memcpy(v->state, a->state, a->n_state);
    v->decoding = *v->voices->o.decoding;
    return LIN_OK;
}

static void free_voice(lin_voice *v)
{
    lin_session_destroy(v->session);
    lin_phrases_free(&v->own);
    lin_state_free(&v->saving);
    free_texts(v->wanted, v->n_wanted);
    lin_free(v->state);
    lin_free(v->queue);
    lin_free(v->taken);
    lin_free(v);
}

lin_status lin_voice_open(lin_voices *vs, const lin_voice_about *about, void *user, lin_voice **voice, lin_error *err)
{
    *voice = NULL;
    if (vs->open >= vs->o.capacity) return lin_fail(err, LIN_TOO_SMALL, "all %d streams are taken", vs->o.capacity);
    lin_status status = lin_audio_check_format("the stream", about->rate_hz, about->channels, err);
    if (status != LIN_OK) return status;
    lin_voice *v = lin_calloc(1, sizeof *v);
    if (!v) return lin_no_memory(err, "a stream", sizeof *v);
    v->voices = vs;
    v->user = user;
    v->hand = find_hand(vs);
    v->about = *about;
    const int own = about->own || about->state_s > 0 || about->state;
    status = own ? prepare_session(v, err) : lin_engine_open(vs->engine, about->rate_hz, about->channels, v, &v->id, err);
    if (status == LIN_OK && about->n_phrases) {
        v->unready = 1;
        status = lin_voice_set_phrases(v, about->phrases, about->n_phrases, err);
    }
    if (status != LIN_OK) {
        if (v->id) lin_engine_close(vs->engine, v->id);
        free_voice(v);
        return status;
    }
    vs->open++;
    v->hand->open++;
    *voice = v;
    return LIN_OK;
}

void lin_voice_close(lin_voice *v)
{
    if (!v) return;
    lin_voices *vs = v->voices;
    vs->open--;
    v->hand->open--;
    if (v->id) lin_engine_close(vs->engine, v->id);
    pthread_mutex_lock(&vs->lock);
    v->closing = 1;
    while (v->queued || v->working) pthread_cond_wait(&vs->idle, &vs->lock);
    pthread_mutex_unlock(&vs->lock);
    free_voice(v);
}

void lin_voice_room(lin_voice *v, int *samples, double *waiting_s)
{
    pthread_mutex_lock(&v->voices->lock);
    const int n = v->n, busy = v->working, unready = v->unready;
    pthread_mutex_unlock(&v->voices->lock);
    *samples = 0;
    *waiting_s = 0;
    if (v->id && !unready) lin_engine_room(v->voices->engine, v->id, samples, waiting_s, NULL);
    if (v->id) return;
    const int wait = n + (busy ? v->room / 2 : 0); // what is being worked on counts as half a queue
    *samples = wait < v->room ? (v->room - wait) / v->about.channels : 0;
    *waiting_s = (double)wait / v->about.channels / v->about.rate_hz;
}

lin_status lin_voice_push(lin_voice *v, const float *samples, int n, lin_error *err)
{
    if (v->id) return lin_engine_push(v->voices->engine, v->id, samples, n, err);
    const int all = n * v->about.channels;
    pthread_mutex_lock(&v->voices->lock);
    const int fits = all <= v->room - v->n;
    if (fits) v->due_at = fmax(v->due_at + seconds_of(v, all), lin_now());
    if (fits) memcpy(v->queue + v->n, samples, (size_t)all * sizeof *samples);
    if (fits) v->n += all;
    enqueue(v);
    pthread_mutex_unlock(&v->voices->lock);
    return fits ? LIN_OK : lin_fail(err, LIN_TOO_SMALL, "%d samples do not fit the queue", n);
}

lin_status lin_voice_finish(lin_voice *v, lin_error *err)
{
    pthread_mutex_lock(&v->voices->lock);
    const int now = v->id && !v->unready; // else behind its phrases
    if (!now) v->ending = 1;
    enqueue(v);
    pthread_mutex_unlock(&v->voices->lock);
    return now ? lin_engine_finish(v->voices->engine, v->id, err) : LIN_OK;
}

lin_status lin_voice_end_utterance(lin_voice *v, lin_error *err)
{
    if (v->id)
        return lin_fail(err, LIN_UNSUPPORTED, "a stream without \"push_to_talk\" in its config ends its utterances by itself");
    pthread_mutex_lock(&v->voices->lock);
    v->ends_utterance = 1;
    v->n_utterance = v->n;
    enqueue(v);
    pthread_mutex_unlock(&v->voices->lock);
    return LIN_OK;
}

lin_status lin_voice_set_phrases(lin_voice *v, char *const *phrases, int n, lin_error *err)
{
    char **copy;
    lin_status status = copy_texts(phrases, n, &copy, err);
    if (status != LIN_OK) return status;
    pthread_mutex_lock(&v->voices->lock);
    free_texts(v->wanted, v->n_wanted); // not taken yet: these replace them
    v->wanted = copy;
    v->n_wanted = n;
    enqueue(v);
    pthread_mutex_unlock(&v->voices->lock);
    return LIN_OK;
}

lin_status lin_voice_reset(lin_voice *v, lin_error *err)
{
    if (v->id) return lin_engine_reset(v->voices->engine, v->id, err);
    lin_status status = LIN_OK;
    pthread_mutex_lock(&v->voices->lock);
    while (v->queued || v->working) pthread_cond_wait(&v->voices->idle, &v->voices->lock);
    if (v->session) status = lin_session_reset(v->session, err);
    v->n = v->ending = v->ends_utterance = v->over = 0;
    v->saved_at = 0;
    pthread_mutex_unlock(&v->voices->lock);
    return status;
}
