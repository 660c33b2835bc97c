// serve_stream.c - a WebSocket of linnet serve, in any protocol: a client's messages, its stream in the engine, and its answers;
// see serve.h.
//
// Vosk's protocol has one answer for each binary message (lin_protocol.answer). It is sent when nearly all sound before it
// has been decoded, so that a client that waits for answers is throttled to the decoder's speed. A client that does not wait is
// throttled by TCP: its socket is not read while its queue of sound is full.
//
// A client that reads its results slowly first loses provisional ones. Final results are never left out: while they wait, its
// sound waits too, so that only the 2 s of sound already taken can add more. If one has waited for max-unread seconds, the stream
// ends: a message with the reason is queued after the waiting results, and the client has as long again to read them.

#include <string.h>

#include "base/memory.h"
#include "base/system.h"
#include "linnet/stream.h"
#include "serve/serve.h"

/* ---- messages to a client -------------------------------------------------------------------------------------------------- */

// The head before the bytes of each message.
typedef struct note {
    size_t n;
    lin_note_kind kind;
    double put_at;
} note;

static int is_kept(lin_note_kind kind) { return kind == LIN_NOTE_OTHER || kind == LIN_NOTE_FINAL; }

static int is_full(const lin_outbox *o) { return o->n_kept > LIN_QUEUED_KEPT; }

void lin_outbox_add(lin_outbox *o, lin_buffer *out, lin_note_kind kind)
{
    const note head = {out->n, kind, lin_now()};
    const size_t before = o->waiting.n;
    if (out->n && !out->failed && !o->closed) {
        lin_buffer_bytes(&o->waiting, (const char *)&head, sizeof head);
        lin_buffer_bytes(&o->waiting, out->data, out->n);
    }
    if (out->failed || o->waiting.failed) {
        o->waiting.n = before;
        o->waiting.failed = 0;
        if (kind != LIN_NOTE_PARTIAL) o->lost = "out of memory";
    } else if (o->waiting.n > before) {
        o->n_queued += out->n;
        if (is_kept(kind)) o->n_kept += out->n;
    }
    lin_buffer_free(out);
}

// Finds the message that has waited longest; 0: none waits.
static int first_note(const lin_outbox *o, note *first, const char **data)
{
    const int is_sending = o->sent < o->sending.n;
    const lin_buffer *from = is_sending ? &o->sending : &o->waiting;
    if (from->n == 0) return 0;
    const char *at = from->data + (is_sending ? o->sent : 0);
    memcpy(first, at, sizeof *first);
    *data = at + sizeof *first;
    return 1;
}

// Takes that message out; its bytes stay valid until the next call.
static int take_note(lin_outbox *o, note *first, const char **data)
{
    if (o->sent == o->sending.n) {
        lin_buffer_free(&o->sending);
        o->sending = o->waiting;
        o->waiting = (lin_buffer){0};
        o->sent = 0;
    }
    if (!first_note(o, first, data)) return 0;
    o->sent += sizeof *first + first->n;
    o->n_queued -= first->n;
    if (is_kept(first->kind)) o->n_kept -= first->n;
    return 1;
}

int lin_serve_stream_next(lin_client *c, lin_web_message *m)
{
    lin_outbox *o = &c->out;
    note first;
    pthread_mutex_lock(&o->lock);
    const int was_full = is_full(o), has = take_note(o, &first, &m->data);
    if (has) m->n = first.n, m->binary = first.kind == LIN_NOTE_STATE;
    if (was_full && !is_full(o)) lin_serve_touch(c); // its sound goes on
    pthread_mutex_unlock(&o->lock);
    return has;
}

/* ---- on the threads that decode -------------------------------------------------------------------------------------------- */

// Sends the saved stream for the client to keep: a text message that describes the binary one after it.
static void give_state(lin_client *c, const lin_engine_event *e)
{
    lin_serve *s = c->serve;
    lin_outbox *o = &c->out;
    const size_t n = e->n_state + LIN_WEB_SEAL;
    lin_buffer about = {0}, sealed = {.data = lin_alloc(n + 1, 1), .n = n, .capacity = n + 1};
    if (sealed.data && s->transport->seal(c->state_key, e->state, e->n_state, (unsigned char *)sealed.data, NULL) == LIN_OK)
        lin_buffer_json_format(&about, "{'type':'state','seconds':%.3f,'bytes':%lld}", e->time_s, (long long)n);
    pthread_mutex_lock(&o->lock);
    if (about.n && o->n_queued < LIN_QUEUED_PARTIALS) { // a slow reader gets the next one
        lin_outbox_add(o, &about, LIN_NOTE_OTHER);
        lin_outbox_add(o, &sealed, LIN_NOTE_STATE);
        s->counts.states++;
    }
    pthread_mutex_unlock(&o->lock);
    lin_buffer_free(&about);
    lin_buffer_free(&sealed);
}

static void show(lin_client *c, const lin_session_view *view)
{
    lin_serve *s = c->serve;
    lin_outbox *o = &c->out;
    o->growing = view->end == LINNET_GROWS;
    o->n_final += !o->growing;
    s->counts.utterances += !o->growing;
    s->counts.partials_dropped += !c->protocol->show(o, view);
}

void lin_serve_stream_event(void *context, const lin_engine_event *e)
{
    lin_client *c = e->user;
    lin_outbox *o = &c->out;
    (void)context;
    if (e->kind == LIN_ENGINE_SAVED) give_state(c, e);
    pthread_mutex_lock(&o->lock);
    if (e->kind == LIN_ENGINE_VIEW) show(c, e->view);
    if (e->kind == LIN_ENGINE_FAILED) lin_fail(&o->failure, e->status, "the stream failed: %s", e->message);
    if (e->kind == LIN_ENGINE_FINISHED || e->kind == LIN_ENGINE_FAILED) {
        o->ended = 1;
        o->seconds = e->kind == LIN_ENGINE_FINISHED ? e->time_s : 0;
    }
    lin_serve_touch(c);
    pthread_mutex_unlock(&o->lock);
}

/* ---- what takes long ------------------------------------------------------------------------------------------------------- */

// Opening a stream that is saved, resumed or has phrases takes a tenth of a second or more, and so does a change of phrases.
// Threads of their own (lin_serve.preparers) do it; until they are done, no sound is taken.

static lin_status open_in_engine(lin_client *c, lin_engine_id *id, lin_error *err)
{
    const lin_message *m = &c->config;
    const lin_engine_stream how = {.rate_hz = m->rate_hz, .channels = m->channels, .user = c, .save_s = m->state_s,
                                   .state = c->out.state.n ? c->out.state.data : NULL, .n_state = c->out.state.n};
    return lin_engine_open_saved(c->serve->engine, &how, id, err);
}

// Call with the lock held.
static lin_status give_to_preparers(lin_client *c, lin_error *err)
{
    if (c->out.busy) return LIN_OK;
    c->out.busy = 1;
    return lin_workers_give(&c->serve->preparers, &c->task, c->serve, err);
}

// n = 0: the phrases of the server. On failure the stream keeps its phrases.
static lin_status use_phrases(lin_client *c, lin_engine_id id, const lin_buffer *wanted, int n, lin_error *err)
{
    lin_serve *s = c->serve;
    lin_phrases made = {0};
    int used, left_out;
    const int advised = c->protocol->phrases_advise ? n : 0;
    lin_status status = c->protocol->phrases_exclude && n
                            ? lin_serve_grammar(s, lin_text_of(wanted), used = n, &made, err)
                            : lin_serve_phrases(s, lin_text_of(wanted), n - advised, advised, &made, &used, &left_out, err);
    if (status == LIN_OK) status = lin_engine_set_phrases(s->engine, id, used ? &made : NULL, err);
    lin_phrases_free(status == LIN_OK ? &c->out.phrases : &made);
    if (status != LIN_OK) return status;
    c->out.phrases = made;
    c->out.n_phrases = used;
    return LIN_OK;
}

static void free_memory(lin_client *c)
{
    lin_outbox *o = &c->out;
    lin_buffer *const buffers[] = {&c->in.text, &c->in.state, &o->waiting, &o->sending, &o->state, &o->wanted, &o->said,
                                   &o->partial};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) lin_buffer_free(buffers[i]);
    lin_free(c->in.held);
    if (c->in.opus) lin_ogg_opus_destroy(c->in.opus);
    lin_phrases_free(&o->phrases);
    lin_settling_free(&o->settling);
    lin_message_free(&c->config);
    pthread_mutex_destroy(&o->lock);
    lin_free(c);
}

// First phrases that cannot be used end the stream; for later ones a message is sent.
static void prepare(lin_client *c)
{
    lin_outbox *o = &c->out;
    lin_error err = {0};
    pthread_mutex_lock(&o->lock);
    const int is_first = !o->ready, wants = o->wants, n_wanted = o->n_wanted;
    lin_engine_id id = o->id;
    lin_buffer wanted = o->wanted, answer = {0};
    o->wanted = (lin_buffer){0};
    o->wants = 0;
    lin_status status = o->left ? LIN_STOPPED : LIN_OK;
    pthread_mutex_unlock(&o->lock);
    if (status == LIN_OK && !id) status = open_in_engine(c, &id, &err);
    if (status == LIN_OK && wants) status = use_phrases(c, id, &wanted, n_wanted, &err);
    lin_buffer_free(&o->state);
    lin_buffer_free(&wanted);
    pthread_mutex_lock(&o->lock);
    o->id = id;
    if (o->left) {
        pthread_mutex_unlock(&o->lock);
        lin_engine_close(c->serve->engine, id);
        free_memory(c);
        return;
    }
    o->busy = 0;
    if (is_first && status != LIN_OK) {
        o->failure = err;
        o->ended = 1;
    } else if (!is_first) {
        if (!c->protocol->put_mistake) {
            lin_live_put_context(&answer, o->n_phrases, err.message);
            if (answer.n) answer.n--; // its line end
        } else if (status != LIN_OK) {
            c->protocol->put_mistake(&answer, NULL, err.message);
        }
        lin_outbox_add(o, &answer, LIN_NOTE_OTHER);
    }
    o->ready = !is_first || status == LIN_OK;
    if (o->ready && o->wants) give_to_preparers(c, NULL);
    else if (o->ready && o->finishes) lin_engine_finish(c->serve->engine, id, NULL);
    lin_serve_touch(c);
    pthread_mutex_unlock(&o->lock);
}

void *lin_serve_stream_prepare(void *serve)
{
    lin_task *task;
    while ((task = lin_workers_take(&((lin_serve *)serve)->preparers)) != NULL) prepare((lin_client *)(void *)task);
    return NULL;
}

/* ---- the end --------------------------------------------------------------------------------------------------------------- */

// The functions below run on the server's thread, which holds the lock of the outbox.

#define ANSWER_S 0.45 // an answer is sent when less sound than this waits, look-ahead included
#define MOST_STATE (64 << 20)
#define CLOSE_S 2 // extra time after draining, for messages that wait

// Ends the stream. Further sound is read and discarded, so that a client that sends everything before it reads is not blocked.
static void end(lin_client *c, int code, const char *reason)
{
    c->in.ending = 1;
    c->in.ending_at = lin_now();
    c->status = code;
    snprintf(c->cause, sizeof c->cause, "%.*s", (int)sizeof c->cause - 1,
             *reason ? reason : code == 1001 ? "the server stops" : "ended");
    c->in.is_held_back = 0;
    if (c->in.paused) c->serve->transport->pause(c->peer, 0);
    c->in.paused = 0;
    c->serve->transport->end(c->peer, code, reason);
}

// Sends the error in the form of the protocol and ends the stream. count: of such errors, or NULL.
static void give_up(lin_client *c, atomic_llong *count, int code, const char *message)
{
    if (c->in.ending) return;
    lin_buffer out = {0};
    if (count) ++*count;
    c->protocol->put_error(&out, message);
    lin_outbox_add(&c->out, &out, LIN_NOTE_OTHER);
    c->out.closed = 1;
    end(c, code, message);
}

// Sends a last message to a reader that is too slow. 1: it has not read that either.
static int is_stuck(lin_client *c, double now)
{
    lin_serve *s = c->serve;
    const double most = s->v->unread_s;
    const char *data;
    char message[100];
    note first;
    const int waits = first_note(&c->out, &first, &data);
    if (c->in.ending) {
        const int drained = s->draining && now > s->drain_until + CLOSE_S && now > c->in.ending_at + CLOSE_S;
        const int stuck = now - c->in.ending_at > most || drained;
        if (stuck && waits && !c->in.is_slow) s->counts.slow++;
        return stuck;
    }
    if (!waits || now - first.put_at <= most) return 0;
    snprintf(message, sizeof message, "the results are read too slowly: one has waited for %d s", s->v->unread_s);
    c->in.is_slow = 1;
    give_up(c, &s->counts.slow, 1008, message);
    return 0;
}

int lin_serve_stream_is_dead(lin_client *c, double now)
{
    char message[100];
    pthread_mutex_lock(&c->out.lock);
    const int stuck = is_stuck(c, now);
    if (!stuck && !c->in.paused && now - c->heard_at > c->serve->v->idle_s) {
        snprintf(message, sizeof message, "nothing has come for %d s: the stream ends", c->serve->v->idle_s);
        give_up(c, &c->serve->counts.idle, 1008, message);
    }
    pthread_mutex_unlock(&c->out.lock);
    return stuck;
}

void lin_serve_stream_leave(lin_client *c)
{
    lin_outbox *o = &c->out;
    const char *data;
    note first;
    pthread_mutex_lock(&o->lock);
    const lin_engine_id id = o->id;
    const int busy = o->left = o->busy;
    while (take_note(o, &first, &data)) c->serve->counts.finals_unread += first.kind == LIN_NOTE_FINAL;
    for (size_t i = 0, ends = 0; i < o->said.n; i++)
        if (!o->said.data[i]) c->serve->counts.finals_unread += ends++ % 2;
    pthread_mutex_unlock(&o->lock);
    if (id) lin_engine_close(c->serve->engine, id); // waits for an event that is on its way
    if (!busy) free_memory(c);
}

/* ---- sound ----------------------------------------------------------------------------------------------------------------- */

void lin_serve_stream_begin(lin_client *c)
{
    lin_buffer out = {0};
    c->config = lin_message_default(c->serve->v->rate_hz);
    c->config.format = c->protocol->format;
    c->config.language = c->serve->language;
    if (c->protocol->rate_hz) c->config.rate_hz = c->protocol->rate_hz;
    c->out.client = c;
    lin_settling_begin(&c->out.settling, &c->serve->live.words);
    pthread_mutex_init(&c->out.lock, NULL);
    if (!c->protocol->greet) return;
    c->protocol->greet(c, &out);
    lin_outbox_add(&c->out, &out, LIN_NOTE_OTHER);
    lin_serve_touch(c); // sent when the connection is set up
}

// The state that a client sent back, as it was saved.
static lin_status open_state(lin_client *c, lin_error *err)
{
    lin_outbox *o = &c->out;
    lin_state state = {0};
    if (c->in.state.n == 0) return LIN_OK;
    o->state.data = lin_alloc(c->in.state.n, 1);
    if (!o->state.data) return lin_no_memory(err, "a state", c->in.state.n);
    o->state.capacity = c->in.state.n;
    LIN_TRY(c->serve->transport->unseal(c->state_key, (const unsigned char *)c->in.state.data, c->in.state.n,
                                        (unsigned char *)o->state.data, err));
    o->state.n = c->in.state.n - LIN_WEB_SEAL;
    lin_buffer_free(&c->in.state);
    lin_status status = lin_state_parse(o->state.data, o->state.n, "the state", &state, err);
    if (status == LIN_OK && state.about.rate_hz) o->sound_s = (double)state.about.samples / state.about.rate_hz;
    lin_state_free(&state);
    return status;
}

static lin_status open_opus(lin_client *c, lin_error *err)
{
    if (c->config.channels != 1) return lin_fail(err, LIN_INVALID, "the format ogg_opus is mixed down to 1 channel");
    LIN_TRY(lin_grow(&c->in.held, &c->in.held_capacity, LIN_OGG_OPUS_MOST, sizeof *c->in.held, "sound", err));
    return lin_ogg_opus_create(c->config.rate_hz, &c->in.opus, err);
}

// Requests that this server cannot fulfil are refused before the first sound.
static lin_status take_config(lin_client *c, lin_error *err)
{
    const lin_message *m = &c->config;
    const lin_decoding *d = &c->serve->live.decoding;
    if ((m->state_s > 0 || m->resume) && d->n_best > 1)
        return lin_fail(err, LIN_UNSUPPORTED, "this server gives alternatives (--n-best), with which no stream can be saved: "
                                              "leave state_s and resume out");
    if (m->n_phrases && !d->parts && !c->protocol->phrases_advise)
        return lin_fail(err, LIN_UNSUPPORTED, "this server finds phonemes without a beam, which uses no phrases: leave them out");
    if (c->in.opus) lin_ogg_opus_destroy(c->in.opus);
    c->in.opus = NULL;
    return m->format == LIN_SAMPLES_OPUS ? open_opus(c, err) : LIN_OK;
}

static void want_phrases(lin_outbox *o, lin_message *m)
{
    lin_buffer_free(&o->wanted); // not taken yet: these replace them
    o->wanted = m->phrases;
    o->n_wanted = m->n_phrases;
    o->wants = 1;
    m->phrases = (lin_buffer){0};
    m->n_phrases = 0;
}

// Opens the stream with its first sound. 0: that failed, and the error is sent.
static int open_stream(lin_client *c)
{
    lin_outbox *o = &c->out;
    lin_error err = {0};
    lin_buffer out = {0};
    if (c->in.is_open) return 1;
    lin_status status = open_state(c, &err);
    const int later = c->config.n_phrases || c->config.state_s > 0 || o->state.n, resumes = o->state.n > 0;
    if (status == LIN_OK && c->config.n_phrases) want_phrases(o, &c->config);
    if (status == LIN_OK) status = later ? give_to_preparers(c, &err) : open_in_engine(c, &o->id, &err);
    if (status != LIN_OK) {
        o->busy = 0;
        give_up(c, NULL, status == LIN_TOO_SMALL ? 1013 : 1008, err.message);
        return 0;
    }
    c->in.is_open = 1;
    o->ready = !later;
    c->serve->counts.resumed += resumes;
    if (!c->protocol->put_begin) return 1;
    c->protocol->put_begin(c, &out);
    lin_outbox_add(o, &out, LIN_NOTE_OTHER);
    c->serve->transport->want(c->peer);
    return 1;
}

// Decodes the next packet only when no samples are held: compressed bytes wait, because a few of them can hold minutes.
static void decode_packet(lin_client *c)
{
    lin_error err = {0};
    int n = 0;
    if (!c->in.opus || c->in.n_held > c->in.at_held) return;
    if (lin_ogg_opus_take(c->in.opus, c->in.held, &n, &err) != LIN_OK) give_up(c, &c->serve->counts.bad, 1007, err.message);
    c->in.at_held = 0;
    c->in.n_held = (size_t)n;
}

// Moves held samples into the engine; 1 if none is left, and more may be read.
static int push_held(lin_client *c)
{
    lin_inbox *in = &c->in;
    lin_outbox *o = &c->out;
    lin_engine *engine = c->serve->engine;
    const size_t channels = (size_t)c->config.channels;
    if (in->finishing >= 2) return in->n_held == 0; // sound after a reset waits until the reset is done
    if (!o->ready || (o->busy && c->protocol->phrases_advise)) return 0; // no answer says when the phrases are there
    for (;;) {
        int room;
        double waiting_s;
        lin_error err = {0};
        // Utterances that no message is waiting for do not count: the client gets them only when it sends more.
        if (o->n_kept + (o->owed ? o->said.n : 0) > LIN_QUEUED_KEPT) return 0;
        if (in->end_at && in->end_at - 1 - in->at_held < channels) {
            if (lin_engine_end_utterance(engine, o->id, NULL) == LIN_TOO_SMALL) return 0; // the one before comes first
            in->end_at = 0;
        }
        decode_packet(c);
        if (in->n_held - in->at_held < channels) break;
        lin_engine_room(engine, o->id, &room, &waiting_s, NULL);
        const size_t until = in->end_at ? in->end_at - 1 : in->n_held, have = (until - in->at_held) / channels;
        const size_t n = have < (size_t)room ? have : (size_t)room;
        if (n == 0) return 0;
        const double seconds = (double)n / c->config.rate_hz;
        o->sound_s += seconds;
        o->sound_at = lin_now();
        const lin_status status = o->ended ? LIN_INVALID : lin_engine_push(engine, o->id, in->held + in->at_held, (int)n, &err);
        if (status != LIN_OK) {
            // LIN_INVALID: the stream has failed meanwhile, and its error message is on the way.
            if (status != LIN_INVALID) give_up(c, NULL, 1011, err.message);
            in->at_held = in->n_held = in->end_at = 0;
            return 1;
        }
        in->at_held += n * channels;
        c->sound_s += seconds;
        c->serve->counts.sound_s += seconds;
    }
    const size_t rest = in->n_held - in->at_held; // of a frame of several channels
    if (rest && in->at_held) memmove(in->held, in->held + in->at_held, rest * sizeof *in->held);
    in->at_held = 0;
    in->n_held = rest;
    return 1;
}

// The first binary message is the state that the client got from another server.
static int awaits_state(const lin_client *c) { return c->config.resume && !c->in.is_open && !c->in.pushed; }

static void take_sound(lin_client *c, const char *bytes, size_t n)
{
    lin_error err = {0};
    lin_inbox *in = &c->in;
    lin_status status = LIN_OK;
    if (awaits_state(c)) {
        if (in->state.n + n > MOST_STATE) give_up(c, NULL, 1009, "the state is too large");
        else lin_buffer_bytes(&in->state, bytes, n);
        return;
    }
    if (n && !open_stream(c)) return;
    if (in->opus) {
        status = lin_ogg_opus_push(in->opus, bytes, n, &err);
    } else {
        const size_t most = in->n_held + n / lin_sample_width(c->config.format) + 2;
        status = lin_grow(&in->held, &in->held_capacity, most, sizeof *in->held, "sound", &err);
        if (status == LIN_OK)
            in->n_held += lin_samples_take(c->config.format, bytes, n, &in->rest, in->held + in->n_held);
    }
    if (status != LIN_OK) give_up(c, NULL, 1011, err.message);
}

static void take_binary(lin_client *c, const char *bytes, size_t n, int last)
{
    if (c->protocol->put_mistake) {
        lin_buffer out = {0};
        if (!last) return;
        c->serve->counts.bad++;
        c->protocol->put_mistake(&out, NULL, "this protocol has no binary messages: send sound as base64 in texts");
        lin_outbox_add(&c->out, &out, LIN_NOTE_OTHER);
        return;
    }
    take_sound(c, bytes, n);
    const int resumes = last && awaits_state(c) && !c->in.ending;
    if (resumes && c->in.state.n == 0) give_up(c, NULL, 1008, "the state to resume is empty");
    else if (resumes && open_stream(c)) c->config.resume = 0;
    else if (last && c->protocol->answer) c->out.owed++;
    if (last) c->in.pushed = 1;
}

// New phrases of a stream. Before the first sound they replace the config's.
static void take_phrases(lin_client *c, lin_message *m)
{
    lin_error err = {0};
    if (c->out.failure.status != LIN_OK) return;
    want_phrases(&c->out, m);
    if (give_to_preparers(c, &err) != LIN_OK) give_up(c, NULL, 1011, err.message);
}

// 0 if the stream has no phrases and gets none. Their number is not known while a thread is busy with them.
static int advice_changes(const lin_client *c, const lin_message *m)
{
    return m->advises && (m->n_phrases || c->out.busy || c->out.n_phrases);
}

// A message m, which is the config before the first sound.
static void take_message(lin_client *c, lin_message *m)
{
    lin_error err = {0};
    const int is_open = c->in.is_open;
    switch (m->kind) {
    case LIN_MESSAGE_SOUND:
        take_sound(c, (const char *)m->sound, m->n_sound);
        c->in.pushed = 1;
        return;
    case LIN_MESSAGE_CONFIG:
    case LIN_MESSAGE_PHRASES:
        if (c->protocol->phrases_advise && !c->serve->v->decoding.words) { // phonemes use no advice
            lin_message_free(m);
            m->advises = 0;
        }
        if (!is_open && take_config(c, &err) != LIN_OK) give_up(c, NULL, 1008, err.message);
        else if (is_open && (m->kind == LIN_MESSAGE_PHRASES || advice_changes(c, m))) take_phrases(c, m);
        else if (is_open && !c->protocol->configs_later) give_up(c, NULL, 1008, "a config comes before the first sound");
        return;
    case LIN_MESSAGE_END_UTTERANCE:
        if (is_open) c->in.end_at = c->in.n_held + 1; // after the sound received so far
        return;
    default:
        if (awaits_state(c)) {
            give_up(c, NULL, 1008, "no state came to resume");
            return;
        }
        c->in.finishing = 1;
        c->out.cut = (size_t)c->in.rest.n;
        c->in.rest.n = 0; // the next sound is a new stream
        c->in.resets = m->kind == LIN_MESSAGE_RESET || m->kind == LIN_MESSAGE_CLEAR;
    }
}

static void take_text(lin_client *c, const char *text, size_t n)
{
    lin_outbox *o = &c->out;
    lin_error err = {0};
    lin_buffer out = {0};
    lin_message later = c->config, *m = c->in.is_open ? &later : &c->config; // other threads read an open stream's config
    later.sound = NULL; // still owned by the config
    later.n_sound = 0;
    later.phrases = (lin_buffer){0};
    later.n_phrases = 0;
    const lin_status status = c->protocol->parse(text, n, m, &err);
    pthread_mutex_lock(&o->lock);
    if (status == LIN_OK) {
        take_message(c, m);
        if (c->protocol->acknowledge && !c->in.ending) c->protocol->acknowledge(c, m, &out);
    } else if (c->protocol->put_mistake) {
        c->serve->counts.bad++;
        c->protocol->put_mistake(&out, m, err.message);
    } else {
        give_up(c, &c->serve->counts.bad, 1008, err.message);
    }
    lin_outbox_add(o, &out, LIN_NOTE_OTHER);
    pthread_mutex_unlock(&o->lock);
    lin_message_free(&later);
}

// A message that comes in one piece is parsed in place.
static void take_piece_of_text(lin_client *c, const char *bytes, size_t n, int last)
{
    lin_buffer *text = &c->in.text;
    if (text->n + n > (size_t)c->protocol->most_text) {
        pthread_mutex_lock(&c->out.lock);
        give_up(c, &c->serve->counts.bad, 1009, "the message is too long");
        pthread_mutex_unlock(&c->out.lock);
    } else if (last && text->n == 0) {
        take_text(c, bytes, n);
    } else {
        lin_buffer_bytes(text, bytes, n);
        if (!last) return;
        take_text(c, text->data ? text->data : "", text->n);
        lin_buffer_free(text);
    }
}

void lin_serve_stream_data(lin_client *c, const char *bytes, size_t n, int binary, int last)
{
    if (c->in.ending) return;
    if (c->in.finishing && !c->in.resets) return; // behind the end
    if (binary) {
        pthread_mutex_lock(&c->out.lock);
        take_binary(c, bytes, n, last);
        pthread_mutex_unlock(&c->out.lock);
    } else {
        take_piece_of_text(c, bytes, n, last);
    }
    lin_serve_stream_go_on(c);
}

/* ---- going on -------------------------------------------------------------------------------------------------------------- */

// After the last result of a reset, the next sound begins a new stream.
static void begin_again(lin_client *c)
{
    lin_error err = {0};
    lin_status status = LIN_OK;
    c->in.resets = c->in.finishing = 0;
    c->out.cut = 0;
    if (c->in.is_open) {
        pthread_mutex_unlock(&c->out.lock); // an event that is on its way is waited for
        status = lin_engine_reset(c->serve->engine, c->out.id, &err);
        pthread_mutex_lock(&c->out.lock);
    }
    if (status != LIN_OK) give_up(c, NULL, 1011, err.message);
    else lin_serve_touch(c);
}

static void conclude(lin_client *c)
{
    lin_serve *s = c->serve;
    lin_outbox *o = &c->out;
    const int failed = o->failure.status != LIN_OK, drained = c->in.finishing == 3;
    char cut[LIN_CUT_TEXT];
    c->protocol->put_end(o, drained);
    o->ended = 0;
    if (c->in.resets && !failed && !s->draining) {
        begin_again(c);
        return;
    }
    const int refused = failed && !o->ready; // the client's options cannot be used
    if (failed) ++*(refused ? &s->counts.bad : &s->counts.failed);
    end(c, refused ? 1008 : failed ? 1011 : drained ? 1001 : 1000, failed ? o->failure.message : lin_cut_text(o->cut, cut));
}

// Finishes the stream, after pending phrases have been looked up and answered.
static void finish(lin_client *c)
{
    lin_outbox *o = &c->out;
    o->finishes = !o->ready || o->busy;
    if (!o->finishes) lin_engine_finish(c->serve->engine, o->id, NULL);
}

static void go_on(lin_client *c)
{
    lin_serve *s = c->serve;
    lin_inbox *in = &c->in;
    lin_outbox *o = &c->out;
    const char *data;
    note first;
    if (in->ending) {
        s->transport->want(c->peer);
        return;
    }
    if (o->lost) {
        give_up(c, &s->counts.failed, 1011, o->lost);
        return;
    }
    int done = !is_full(o);
    double waiting_s = 0;
    if (in->is_open) {
        int room;
        done = push_held(c);
        if (in->ending) return;
        lin_engine_room(s->engine, o->id, &room, &waiting_s, NULL);
    }
    const int reads = done && !(in->finishing && in->resets); // messages after a reset wait until it is done
    if (reads != !in->paused) {
        in->paused = !reads;
        s->transport->pause(c->peer, in->paused);
        if (reads) lin_serve_wait(c); // bytes received before the pause may be delivered without an event
    }
    if (waiting_s < ANSWER_S) // not done: too many utterances wait to be sent
        for (; o->owed > 0 && !is_full(o) && (done || o->said.n); o->owed--) c->protocol->answer(o);
    in->is_held_back = is_full(o); // until lin_serve_stream_next has taken enough, which touches the client
    const int over = o->ended || (in->finishing && !in->is_open && !c->config.resume), last = in->finishing == 1 && done;
    if (over) {
        conclude(c);
    } else if (last && in->opus && !lin_ogg_opus_has_begun(in->opus)) {
        give_up(c, &s->counts.bad, 1007, "the sound ends before its headers of Opus in Ogg are complete");
    } else if (last && in->is_open && !o->owed) { // the final result answers no message before the end
        in->finishing = 2;
        o->cut += in->opus ? lin_ogg_opus_rest(in->opus)
                           : in->n_held * lin_sample_width(c->config.format); // of a frame of several channels
        finish(c);
    }
    if (first_note(o, &first, &data) || over) s->transport->want(c->peer);
    if (!in->ending && !in->is_held_back && (!done || o->owed)) lin_serve_wait(c);
}

void lin_serve_stream_go_on(lin_client *c)
{
    pthread_mutex_lock(&c->out.lock);
    go_on(c);
    pthread_mutex_unlock(&c->out.lock);
}

void lin_serve_stream_drain(lin_client *c, int now)
{
    pthread_mutex_lock(&c->out.lock);
    if (!c->in.ending && !c->in.finishing && (now || !c->out.growing)) {
        c->in.finishing = 3;
        if (c->in.is_open) finish(c);
        else conclude(c);
    }
    pthread_mutex_unlock(&c->out.lock);
}
