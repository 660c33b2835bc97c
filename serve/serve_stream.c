// serve_stream.c - WebSockets of linnet serve: what a client sends, and when it is answered, in any of the protocols of
// serve/protocols.h; see serve.h. All of it runs on the server's thread.
//
// Vosk's protocol has one answer for each binary message (lin_protocol.answer). It is sent when nearly all sound before it
// has been decoded, so that a client that waits for it is slowed down to the speed of the decoder, and loses nothing. A client
// that does not wait is slowed down by the network: it is not read while its queue of sound is full.
//
// A client that reads its results slowly gets no provisional ones at first. Final results are never left out: where they wait,
// its sound waits too, so that no more of them come than the 2 s of sound give that are taken in already. If one of them has
// waited for max-unread seconds, the client is told why the stream ends, behind the results that wait, and has as long again to
// read them.
//
// Results come on the threads that decode, and the server's thread sends them: one lock holds the whole outbox. What
// runs under it never touches the inbox; the server's thread asks how things are (look) and decides.

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/system.h"
#include "serve/protocols.h"

/* ---- messages -------------------------------------------------------------------------------------------------------------- */

static int is_kept(lin_note_kind kind) { return kind == LIN_NOTE_OTHER || kind == LIN_NOTE_FINAL; }

// Locked. A message that must not be left out and does not fit the memory ends the stream.
static void put(lin_outbox *o, const char *data, size_t n, lin_note_kind kind)
{
    if (o->closed) return;
    lin_note *note = lin_alloc(sizeof *note + n, 1);
    if (!note) {
        if (kind != LIN_NOTE_PARTIAL) o->lost = "out of memory";
        return;
    }
    note->next = NULL;
    note->n = n;
    note->kind = kind;
    note->put_at = lin_now();
    memcpy(note->data, data, n);
    *o->last = note;
    o->last = &note->next;
    o->n_queued += n;
    if (is_kept(kind)) o->n_kept += n;
}

void lin_outbox_add(lin_outbox *o, lin_buffer *out, lin_note_kind kind)
{
    if (lin_buffer_status(out, NULL) != LIN_OK) {
        if (kind != LIN_NOTE_PARTIAL) o->lost = "out of memory";
    } else if (out->n) {
        put(o, out->data, out->n, kind);
    }
    lin_buffer_clear(out);
}

int lin_outbox_next(lin_outbox *o, lin_web_message *m)
{
    lin_free(o->sending);
    pthread_mutex_lock(&o->lock);
    lin_note *note = o->sending = o->first;
    int goes_on = 0;
    if (note) {
        o->first = note->next;
        if (!o->first) o->last = &o->first;
        o->n_queued -= note->n;
        goes_on = o->n_kept > LIN_QUEUED_KEPT;
        if (is_kept(note->kind)) o->n_kept -= note->n;
        goes_on = goes_on && o->n_kept <= LIN_QUEUED_KEPT;
    }
    pthread_mutex_unlock(&o->lock);
    if (goes_on) lin_serve_touch(o->client);
    if (note) *m = (lin_web_message){note->data, note->n, note->kind == LIN_NOTE_STATE};
    return note != NULL;
}

// How things are.
typedef struct outbox_view {
    double waits_since;         // the message that waits longest; 0: none waits
    int holds;                  // so much waits that no sound should be taken
    int is_full;                // so much waits that nothing is added before it is read
    int owed;                   // messages that are not answered
    int growing, ended;         // an utterance has begun; the stream has ended
    const char *lost, *failure; // why results could not be kept, why the stream ended; or NULL
} outbox_view;

// Utterances that are not an answer to anything yet do not count: their reader cannot have them before it
// sends more.
static outbox_view look(lin_outbox *o)
{
    pthread_mutex_lock(&o->lock);
    const outbox_view view = {.waits_since = o->first ? o->first->put_at : 0,
                                  .holds = o->n_kept + (o->owed ? o->n_said : 0) > LIN_QUEUED_KEPT,
                                  .is_full = o->n_kept > LIN_QUEUED_KEPT,
                                  .owed = o->owed,
                                  .growing = o->growing,
                                  .ended = o->ended,
                                  .lost = o->lost,
                                  .failure = o->failure};
    pthread_mutex_unlock(&o->lock);
    return view;
}

void lin_said_free(lin_said *said)
{
    lin_free(said->text);
    lin_free(said->items);
    lin_free(said);
}

/* ---- results, on other threads --------------------------------------------------------------------------------------------- */

void lin_outbox_show(lin_outbox *o, const lin_session_view *view)
{
    lin_serve *s = o->client->serve;
    pthread_mutex_lock(&o->lock);
    o->growing = view->end == LINNET_GROWS;
    o->n_final += !o->growing;
    const int shown = o->client->protocol->show(o, view);
    pthread_mutex_unlock(&o->lock);
    if (!shown) lin_serve_count(s, &s->counts.partials_dropped);
    if (view->end != LINNET_GROWS) lin_serve_count(s, &s->counts.utterances);
    lin_serve_touch(o->client);
}

// A text message that says what the binary one behind it is.
void lin_outbox_state(lin_outbox *o, const void *bytes, size_t n, double seconds)
{
    lin_serve *s = o->client->serve;
    unsigned char *sealed = lin_alloc(n + LIN_WEB_SEAL, 1);
    const int done = sealed && s->transport->seal(o->client->state_key, bytes, n, sealed, NULL) == LIN_OK;
    n += LIN_WEB_SEAL;
    pthread_mutex_lock(&o->lock);
    const int given = done && o->n_queued < LIN_QUEUED_PARTIALS; // a slow reader gets the next one
    if (given) {
        lin_buffer_clear(&o->out);
        lin_buffer_text(&o->out, "{\"type\":\"state\"");
        lin_buffer_member_fixed(&o->out, "seconds", seconds, 3);
        lin_buffer_member_integer(&o->out, "bytes", (long long)n);
        lin_buffer_char(&o->out, '}');
        lin_outbox_add(o, &o->out, LIN_NOTE_OTHER);
        put(o, (const char *)sealed, n, LIN_NOTE_STATE);
    }
    pthread_mutex_unlock(&o->lock);
    lin_free(sealed);
    if (given) lin_serve_count(s, &s->counts.sessions_saved);
    lin_serve_touch(o->client);
}

void lin_outbox_phrases(lin_outbox *o, int n, const lin_error *err)
{
    pthread_mutex_lock(&o->lock);
    lin_buffer_clear(&o->out);
    lin_live_put_context(&o->out, n, err ? err->message : "");
    if (o->out.n) o->out.n--; // its line end
    lin_outbox_add(o, &o->out, LIN_NOTE_OTHER);
    pthread_mutex_unlock(&o->lock);
    lin_serve_touch(o->client);
}

void lin_outbox_ended(lin_outbox *o, double seconds, const lin_error *err)
{
    pthread_mutex_lock(&o->lock);
    o->ended = 1;
    o->seconds = seconds;
    if (err) o->failure = lin_strdup(err->message);
    pthread_mutex_unlock(&o->lock);
    lin_serve_touch(o->client);
}

/* ---- the server's thread --------------------------------------------------------------------------------------------------- */

static void put_message(lin_outbox *o, lin_buffer *out, int is_last)
{
    pthread_mutex_lock(&o->lock);
    lin_outbox_add(o, out, LIN_NOTE_OTHER);
    o->closed |= is_last;
    pthread_mutex_unlock(&o->lock);
    lin_buffer_free(out);
}

static int note_sound(lin_outbox *o, double seconds)
{
    pthread_mutex_lock(&o->lock);
    o->sound_s += seconds;
    o->sound_at = lin_now();
    const int over = o->ended;
    pthread_mutex_unlock(&o->lock);
    return over;
}

static void owe(lin_outbox *o)
{
    pthread_mutex_lock(&o->lock);
    o->owed++;
    pthread_mutex_unlock(&o->lock);
}

static void answer_owed(lin_outbox *o, int also_partial)
{
    pthread_mutex_lock(&o->lock);
    for (; o->owed > 0 && o->n_kept <= LIN_QUEUED_KEPT && (also_partial || o->said); o->owed--)
        o->client->protocol->answer(o);
    pthread_mutex_unlock(&o->lock);
}

void lin_outbox_discard(lin_outbox *o)
{
    pthread_mutex_lock(&o->lock);
    o->discards = 1;
    pthread_mutex_unlock(&o->lock);
}

static void put_end(lin_outbox *o, int drained)
{
    pthread_mutex_lock(&o->lock);
    o->client->protocol->put_end(o, drained);
    o->ended = 0;
    pthread_mutex_unlock(&o->lock);
}

/* ---- life ------------------------------------------------------------------------------------------------------------------ */

static void begin_outbox(lin_outbox *o, lin_client *client)
{
    o->client = client;
    o->last = &o->first;
    o->said_last = &o->said;
    lin_settling_begin(&o->settling, &client->serve->live.words);
    pthread_mutex_init(&o->lock, NULL);
}

static void free_outbox(lin_outbox *o)
{
    long long unread = 0;
    lin_serve *s = o->client->serve;
    for (lin_note *n = o->first, *next; n; n = next) {
        next = n->next;
        unread += n->kind == LIN_NOTE_FINAL;
        lin_free(n);
    }
    for (lin_said *n = o->said, *next; n; n = next, unread++) {
        next = n->next;
        lin_said_free(n);
    }
    pthread_mutex_lock(&s->lock);
    s->counts.finals_unread += unread;
    pthread_mutex_unlock(&s->lock);
    lin_buffer_free(&o->partial);
    lin_buffer_free(&o->out);
    lin_live_texts_free(&o->texts);
    lin_settling_free(&o->settling);
    lin_free(o->sending);
    lin_free(o->failure);
    pthread_mutex_destroy(&o->lock);
}

/* ---- what a client sends --------------------------------------------------------------------------------------------------- */

#define ANSWER_S 0.45 // an answer is due when less sound than this waits, look-ahead among it
#define MOST_STATE (64 << 20)
#define CLOSE_S 2 // after the time to drain, for what waits

// No more is taken in. Sound that comes is thrown away, so that a client which sends all before it reads gets to reading.
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

// What the protocol says of an error; then the end.
static void give_up(lin_client *c, int code, const char *message)
{
    if (c->in.ending) return;
    lin_buffer out = {0};
    c->protocol->put_error(&out, message);
    put_message(&c->out, &out, 1);
    end(c, code, message);
}

// A reader that is too slow is told so. 1: it has not read that either.
static int is_stuck(lin_client *c, double now)
{
    lin_serve *s = c->serve;
    const double most = s->v->unread_s, since = look(&c->out).waits_since;
    if (c->in.ending) {
        const int drained = s->draining && now > s->drain_until + CLOSE_S && now > c->in.ending_at + CLOSE_S;
        const int stuck = now - c->in.ending_at > most || drained;
        if (stuck && since > 0 && !c->in.is_slow) lin_serve_count(s, &s->counts.slow);
        return stuck;
    }
    if (!(since > 0) || now - since <= most) return 0;
    char message[100];
    snprintf(message, sizeof message, "the results are read too slowly: one has waited for %d s", s->v->unread_s);
    c->in.is_slow = 1;
    lin_serve_count(s, &s->counts.slow);
    give_up(c, 1008, message);
    return 0;
}

int lin_serve_stream_is_dead(lin_client *c, double now)
{
    if (is_stuck(c, now)) return 1;
    if (c->in.paused || c->in.ending || now - c->heard_at <= c->serve->v->idle_s) return 0;
    char message[100];
    snprintf(message, sizeof message, "nothing has come for %d s: the stream ends", c->serve->v->idle_s);
    lin_serve_count(c->serve, &c->serve->counts.idle);
    give_up(c, 1008, message);
    return 0;
}

int lin_serve_stream_is_held_back(const lin_client *c) { return c->in.is_held_back; }

/* ---- sound ----------------------------------------------------------------------------------------------------------------- */

void lin_serve_stream_begin(lin_client *c)
{
    c->config = lin_message_default(c->serve->v->rate_hz);
    c->config.format = c->protocol->format;
    if (c->protocol->rate_hz) c->config.rate_hz = c->protocol->rate_hz;
    begin_outbox(&c->out, c);
    if (!c->protocol->greet) return;
    lin_buffer out = {0};
    c->protocol->greet(c, &out);
    put_message(&c->out, &out, 0);
    lin_serve_touch(c); // it is sent when the connection is there
}

static void put_begin(lin_client *c)
{
    lin_buffer out = {0};
    if (!c->protocol->put_begin) return;
    c->protocol->put_begin(c, &out);
    put_message(&c->out, &out, 0);
    c->serve->transport->want(c->peer);
}

// The state that a client sent back, as it was saved; in place.
static lin_status open_state(lin_client *c, lin_error *err)
{
    const lin_serve *s = c->serve;
    if (c->in.state.n == 0) return LIN_OK;
    unsigned char *plain = lin_alloc(c->in.state.n, 1);
    if (!plain) return lin_no_memory(err, "a state", c->in.state.n);
    lin_status status = s->transport->unseal(c->state_key, (const unsigned char *)c->in.state.data, c->in.state.n, plain, err);
    if (status == LIN_OK) {
        c->in.state.n -= LIN_WEB_SEAL;
        memcpy(c->in.state.data, plain, c->in.state.n);
    }
    lin_free(plain);
    lin_state state = {0};
    if (status == LIN_OK) status = lin_state_parse(c->in.state.data, c->in.state.n, "the state", &state, err);
    if (status == LIN_OK && state.about.rate_hz) note_sound(&c->out, (double)state.about.samples / state.about.rate_hz);
    lin_state_free(&state);
    return status;
}

static lin_status open_opus(lin_client *c, lin_error *err)
{
    if (c->config.channels != 1) return lin_fail(err, LIN_INVALID, "the format ogg_opus is mixed down to 1 channel");
    lin_status status = lin_grow(&c->in.held, &c->in.held_capacity, LIN_OGG_OPUS_MOST, sizeof *c->in.held, "sound", err);
    return status == LIN_OK ? lin_ogg_opus_create((int)c->config.rate_hz, &c->in.opus, err) : status;
}

// What this server can do with no sound is refused before the first sound comes.
static lin_status take_config(lin_client *c, lin_error *err)
{
    const lin_message *m = &c->config;
    const lin_decoding *d = &c->serve->live.decoding;
    if ((m->state_s > 0 || m->resume) && d->n_best > 1)
        return lin_fail(err, LIN_UNSUPPORTED, "this server gives alternatives (--n-best), with which no stream can be saved: "
                                              "leave state_s and resume out");
    if (m->n_phrases && !d->parts && !c->protocol->phrases_advise)
        return lin_fail(err, LIN_UNSUPPORTED, "this server finds phonemes without a beam, which uses no phrases: leave them out");
    lin_ogg_opus_destroy(c->in.opus);
    c->in.opus = NULL;
    return m->format == LIN_SAMPLES_OPUS ? open_opus(c, err) : LIN_OK;
}

// Opens the stream with its first sound: 0, and the client is told, if that fails.
static int open_voice(lin_client *c)
{
    lin_serve *s = c->serve;
    lin_error err = {0};
    if (c->in.voice) return 1;
    const lin_message *m = &c->config;
    if (open_state(c, &err) != LIN_OK) {
        give_up(c, 1008, err.message);
        return 0;
    }
    const lin_voice_about about = {.rate_hz = (int)m->rate_hz, .channels = m->channels, .n_phrases = m->n_phrases,
                                   .phrases = m->phrases, .advice = c->protocol->phrases_advise,
                                   .bonus = s->v->decoding.context_bonus, .state_s = m->state_s,
                                   .state = c->in.state.n ? c->in.state.data : NULL, .n_state = c->in.state.n};
    const lin_status status = lin_voice_open(s->voices, &about, &c->out, &c->in.voice, &err);
    if (status != LIN_OK) {
        give_up(c, status == LIN_TOO_SMALL ? 1013 : 1008, err.message);
        return 0;
    }
    if (about.state) lin_serve_count(s, &s->counts.resumed);
    lin_buffer_free(&c->in.state);
    put_begin(c);
    return 1;
}

// The next packet's samples, where none are held: bytes wait instead of them, because a few can hold minutes.
static void decode_more(lin_client *c)
{
    lin_error err = {0};
    int n = 0;
    if (!c->in.opus || c->in.n_held > c->in.at_held) return;
    if (lin_ogg_opus_take(c->in.opus, c->in.held, &n, &err) != LIN_OK) {
        lin_serve_count(c->serve, &c->serve->counts.bad);
        give_up(c, 1007, err.message);
    }
    c->in.at_held = 0;
    c->in.n_held = (size_t)n;
}

// Moves held samples into the stream; 1 if none is left, and more may be read.
static int pump(lin_client *c)
{
    lin_inbox *in = &c->in;
    const size_t channels = (size_t)c->config.channels;
    if (in->finishing >= 2) return in->n_held == 0; // what comes behind a reset waits for its end
    if (!lin_voice_ready(in->voice)) return 0;
    for (;;) {
        int room;
        double waiting_s;
        lin_error err = {0};
        if (look(&c->out).holds) return 0;
        if (in->end_at && in->end_at - 1 - in->at_held < channels) {
            if (lin_voice_end_utterance(in->voice, NULL) == LIN_TOO_SMALL) return 0; // the one before comes first
            in->end_at = 0;
        }
        decode_more(c);
        if (in->n_held - in->at_held < channels) break;
        lin_voice_room(in->voice, &room, &waiting_s);
        const size_t until = in->end_at ? in->end_at - 1 : in->n_held, have = (until - in->at_held) / channels;
        const size_t n = have < (size_t)room ? have : (size_t)room;
        if (n == 0) return 0;
        const int over = note_sound(&c->out, (double)n / c->config.rate_hz); // before results of it can come
        const lin_status status = over ? LIN_OK : lin_voice_push(in->voice, in->held + in->at_held, (int)n, &err);
        if (over || status != LIN_OK) {
            // Of a stream that has failed meanwhile (LIN_INVALID) the end says why; it is on its way.
            if (!over && status != LIN_INVALID) give_up(c, 1011, err.message);
            in->at_held = in->n_held = in->end_at = 0;
            return 1;
        }
        in->at_held += n * channels;
        c->sound_s += (double)n / c->config.rate_hz;
        c->serve->counts.sound_s += (double)n / c->config.rate_hz;
    }
    const size_t rest = in->n_held - in->at_held; // of a frame of several channels
    if (rest && in->at_held) memmove(in->held, in->held + in->at_held, rest * sizeof *in->held);
    in->at_held = 0;
    in->n_held = rest;
    return 1;
}

// The first binary message is the state that the client got from another server.
static int awaits_state(const lin_client *c) { return c->config.resume && !c->in.voice && !c->in.pushed; }

static void take_sound(lin_client *c, const char *bytes, size_t n)
{
    lin_error err = {0};
    if (awaits_state(c)) {
        if (c->in.state.n + n > MOST_STATE) give_up(c, 1009, "the state is too large");
        else lin_buffer_bytes(&c->in.state, bytes, n);
        return;
    }
    if (n && !open_voice(c)) return;
    if (c->in.opus) {
        if (lin_ogg_opus_push(c->in.opus, bytes, n, &err) != LIN_OK) give_up(c, 1011, err.message);
        return;
    }
    if (lin_grow(&c->in.held, &c->in.held_capacity, c->in.n_held + n / lin_sample_width(c->config.format) + 2,
                 sizeof *c->in.held, "sound", &err) != LIN_OK) {
        give_up(c, 1011, err.message);
        return;
    }
    c->in.n_held += lin_samples_take(c->config.format, bytes, n, &c->in.rest, c->in.held + c->in.n_held);
}

static void take_text(lin_client *c, const char *text, size_t n)
{
    lin_error err = {0};
    lin_buffer out = {0};
    lin_message later = lin_message_plain(&c->config), *m = c->in.voice ? &later : &c->config; // others read that of a stream
    const lin_status status = c->protocol->parse(text, n, m, &err);
    if (status != LIN_OK) {
        lin_serve_count(c->serve, &c->serve->counts.bad);
        if (c->protocol->forgives) c->protocol->put_error(&out, err.message);
        else give_up(c, 1008, err.message);
    } else if (m->kind == LIN_MESSAGE_SOUND) {
        take_sound(c, (const char *)m->sound, m->n_sound);
        c->in.pushed = 1;
    } else if (m->kind == LIN_MESSAGE_CONFIG) {
        if (c->in.voice && !c->protocol->configs_later) give_up(c, 1008, "a config comes before the first sound");
        if (!c->in.voice && take_config(c, &err) != LIN_OK) give_up(c, 1008, err.message);
    } else if (m->kind == LIN_MESSAGE_PHRASES) { // before the first sound they are the config's
        if (!c->in.voice && take_config(c, &err) != LIN_OK) give_up(c, 1008, err.message);
        if (c->in.voice && lin_voice_set_phrases(c->in.voice, m->phrases, m->n_phrases, &err) != LIN_OK)
            give_up(c, 1011, err.message);
    } else if (m->kind == LIN_MESSAGE_END_UTTERANCE) {
        if (c->in.voice) c->in.end_at = c->in.n_held + 1; // behind the sound that came before
    } else if (awaits_state(c)) {
        give_up(c, 1008, "no state came to resume");
    } else {
        c->in.finishing = 1;
        c->in.rest.n = 0; // of a sample that is not complete: the next sound is another one
        c->in.resets = m->kind == LIN_MESSAGE_RESET || m->kind == LIN_MESSAGE_CLEAR;
    }
    if (status == LIN_OK && c->protocol->took && !c->in.ending) c->protocol->took(c, m, &out);
    if (out.n) put_message(&c->out, &out, 0);
    lin_message_free(&later);
}

void lin_serve_stream_data(lin_client *c, const char *bytes, size_t n, int binary, int last)
{
    if (c->in.ending) return;
    if (c->in.finishing && !c->in.resets) return; // behind the end
    if (!binary) {
        if (c->in.text.n + n > (size_t)(c->protocol->most_text ? c->protocol->most_text : LIN_MESSAGE_BYTES)) {
            lin_serve_count(c->serve, &c->serve->counts.bad);
            give_up(c, 1009, "the message is too long");
            return;
        }
        lin_buffer_bytes(&c->in.text, bytes, n);
        if (!last) return;
        take_text(c, c->in.text.data ? c->in.text.data : "", c->in.text.n);
        if (c->in.text.n > LIN_MESSAGE_BYTES) lin_buffer_free(&c->in.text);
        else lin_buffer_clear(&c->in.text);
    } else {
        take_sound(c, bytes, n);
        const int resumes = last && awaits_state(c) && !c->in.ending;
        if (resumes && c->in.state.n == 0) give_up(c, 1008, "the state to resume is empty");
        else if (resumes && open_voice(c)) c->config.resume = 0;
        else if (last && c->protocol->answer) owe(&c->out);
        if (last) c->in.pushed = 1;
    }
    lin_serve_stream_go_on(c);
}

/* ---- going on -------------------------------------------------------------------------------------------------------------- */

// After FinalResult of a reset the next sound is another one.
static void begin_again(lin_client *c)
{
    lin_error err = {0};
    c->in.resets = c->in.finishing = 0;
    if (c->in.voice && lin_voice_reset(c->in.voice, &err) != LIN_OK) give_up(c, 1011, err.message);
    else lin_serve_touch(c);
}

static void conclude(lin_client *c)
{
    lin_serve *s = c->serve;
    const char *failure = look(&c->out).failure;
    const int drained = c->in.finishing == 3;
    put_end(&c->out, drained);
    if (c->in.resets && !failure && !s->draining) {
        begin_again(c);
        return;
    }
    const int refused = failure && c->in.voice && !lin_voice_ready(c->in.voice); // what was asked for cannot be opened
    if (failure) lin_serve_count(s, refused ? &s->counts.bad : &s->counts.failed);
    end(c, refused ? 1008 : failure ? 1011 : drained ? 1001 : 1000, failure ? failure : "");
}

void lin_serve_stream_go_on(lin_client *c)
{
    lin_serve *s = c->serve;
    lin_inbox *in = &c->in;
    if (in->ending) {
        s->transport->want(c->peer);
        return;
    }
    outbox_view now = look(&c->out);
    if (now.lost) {
        lin_serve_count(s, &s->counts.failed);
        give_up(c, 1011, now.lost);
        return;
    }
    int done = !now.holds;
    double waiting_s = 0;
    if (in->voice) {
        int room;
        done = pump(c);
        if (in->ending) return;
        lin_voice_room(in->voice, &room, &waiting_s);
    }
    const int reads = done && !(in->finishing && in->resets); // what comes behind a reset waits for its end
    if (reads != !in->paused) {
        in->paused = !reads;
        s->transport->pause(c->peer, in->paused);
        if (reads) lin_serve_wait(c); // what was received before it paused may come without an event
    }
    if (waiting_s < ANSWER_S) answer_owed(&c->out, done); // not done: too many utterances wait to be told
    now = look(&c->out);
    in->is_held_back = now.is_full; // until lin_outbox_next has taken enough, which touches the client
    const int over = now.ended || (in->finishing && !in->voice && !c->config.resume);
    if (over) {
        conclude(c);
    } else if (in->finishing == 1 && done && in->opus && !lin_ogg_opus_has_begun(in->opus)) {
        lin_serve_count(s, &s->counts.bad);
        give_up(c, 1007, "the sound ends before its headers of Opus in Ogg are complete");
    } else if (in->finishing == 1 && done && in->voice && !now.owed) { // the final result answers no message before the end
        in->finishing = 2;
        lin_voice_finish(in->voice, NULL);
    }
    if (now.waits_since > 0 || over) s->transport->want(c->peer);
    if (!in->ending && !in->is_held_back && (!done || now.owed)) lin_serve_wait(c);
}

void lin_serve_stream_drain(lin_client *c, int now)
{
    if (c->in.ending || c->in.finishing || (!now && look(&c->out).growing)) return;
    c->in.finishing = 3;
    if (c->in.voice) lin_voice_finish(c->in.voice, NULL);
    else conclude(c);
}

void lin_serve_stream_free(lin_client *c)
{
    lin_voice_close(c->in.voice);
    lin_buffer_free(&c->in.text);
    lin_buffer_free(&c->in.state);
    lin_free(c->in.held);
    lin_ogg_opus_destroy(c->in.opus);
    free_outbox(&c->out);
    lin_message_free(&c->config);
}
