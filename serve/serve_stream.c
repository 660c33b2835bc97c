// serve_stream.c - WebSockets of linnet serve: sound in, results out, in vosk-server's protocol and in linnet's own; see serve.h.
//
// Vosk's protocol has one answer for each binary message. It is sent when nearly all sound before it has been decoded, so that a
// client that waits for it is slowed down to the speed of the decoder, and loses nothing. A client that does not wait is slowed
// down by the network: it is not read while its queue of sound is full.
//
// A client that reads its results slowly gets no provisional ones at first (QUEUED_PARTIALS). Final results are never left out:
// where they wait, its sound waits too (QUEUED_KEPT), so that no more of them come than the 2 s of sound give that are taken in
// already. If one of them has waited for max-unread seconds, the client is told why the stream ends, behind the results that
// wait, and has as long again to read them.

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "serve/serve.h"

#define ANSWER_S 0.45       // an answer is due when less sound than this waits, look-ahead among it
#define QUEUED_KEPT (1 << 18) // bytes of final results that wait for a reader; beyond them no sound is taken
#define QUEUED_PARTIALS 65536 // beyond them it gets no provisional results
#define MOST_SAID (16 << 20)  // Vosk: bytes of utterances that wait for the end of the message which they are an answer to
#define MOST_STATE (64 << 20)
#define CLOSE_S 2             // after the time to drain, for what waits

/* ---- what is sent ---------------------------------------------------------------------------------------------------------- */

static int is_kept(lin_note_kind kind) { return kind == LIN_NOTE_OTHER || kind == LIN_NOTE_FINAL; }

// Locked. A message that must not be left out and does not fit the memory ends the stream.
static void put(lin_client *c, const char *data, size_t n, lin_note_kind kind)
{
    lin_note *note = lin_alloc(sizeof *note + n, 1);
    if (!note) {
        if (kind != LIN_NOTE_PARTIAL) c->lost = "out of memory";
        return;
    }
    note->next = NULL;
    note->n = n;
    note->kind = kind;
    note->put_at = lin_now();
    memcpy(note->data, data, n);
    *c->last = note;
    c->last = &note->next;
    c->n_queued += n;
    if (is_kept(kind)) c->n_kept += n;
}

static void put_buffer(lin_client *c, lin_buffer *out, lin_note_kind kind)
{
    if (lin_buffer_status(out, NULL) == LIN_OK && out->n) put(c, out->data, out->n, kind);
    else if (out->n && kind != LIN_NOTE_PARTIAL) c->lost = "out of memory";
    lin_buffer_clear(out);
}

// Its results wait for their reader: no sound is taken. They grow on any thread, but only the server's makes them fewer.
// Utterances in Vosk's protocol that are not an answer to anything yet do not count: their reader cannot have them before it
// sends more.
static int is_held_back(lin_client *c)
{
    pthread_mutex_lock(&c->lock);
    const int held = c->n_kept + (c->owed ? c->n_said : 0) > QUEUED_KEPT;
    pthread_mutex_unlock(&c->lock);
    return held;
}

int lin_serve_stream_next(lin_client *c, lin_web_message *m)
{
    lin_free(c->sending);
    pthread_mutex_lock(&c->lock);
    lin_note *note = c->sending = c->first;
    int goes_on = 0;
    if (note) {
        c->first = note->next;
        if (!c->first) c->last = &c->first;
        c->n_queued -= note->n;
        goes_on = c->n_kept > QUEUED_KEPT;
        if (is_kept(note->kind)) c->n_kept -= note->n;
        goes_on = goes_on && c->n_kept <= QUEUED_KEPT;
    }
    pthread_mutex_unlock(&c->lock);
    if (goes_on) lin_serve_touch(c);
    if (note) *m = (lin_web_message){note->data, note->n, note->kind == LIN_NOTE_STATE};
    return note != NULL;
}

// No more is taken in. Sound that comes is thrown away, so that a client which sends all before it reads gets to reading.
static void end(lin_client *c, int code, const char *reason)
{
    c->ending = 1;
    c->ending_at = lin_now();
    c->is_held_back = 0;
    if (c->paused) c->serve->transport->pause(c->peer, 0);
    c->paused = 0;
    c->serve->transport->end(c->peer, code, reason);
}

// A message with type "error", or in Vosk's protocol with only that member; then the end.
static void give_up(lin_client *c, int code, const char *message)
{
    if (c->ending) return;
    pthread_mutex_lock(&c->lock);
    lin_buffer_clear(&c->out);
    lin_buffer_text(&c->out, c->kind == LIN_CLIENT_VOSK ? "{" : "{\"type\":\"error\"");
    lin_buffer_member_text(&c->out, c->kind == LIN_CLIENT_VOSK ? "error" : "message", message);
    lin_buffer_char(&c->out, '}');
    put_buffer(c, &c->out, LIN_NOTE_OTHER);
    pthread_mutex_unlock(&c->lock);
    end(c, code, message);
}

int lin_serve_stream_is_stuck(lin_client *c, double now)
{
    lin_serve *s = c->serve;
    const double most = s->v->unread_s;
    pthread_mutex_lock(&c->lock);
    const int waits = c->first != NULL, too_long = waits && now - c->first->put_at > most;
    pthread_mutex_unlock(&c->lock);
    if (c->ending) {
        const int drained = s->draining && now > s->drain_until + CLOSE_S && now > c->ending_at + CLOSE_S;
        const int stuck = now - c->ending_at > most || drained;
        if (stuck && waits && !c->is_slow) lin_serve_count(s, &s->counts.slow);
        return stuck;
    }
    if (!too_long) return 0;
    char message[100];
    snprintf(message, sizeof message, "the results are read too slowly: one has waited for %d s", s->v->unread_s);
    c->is_slow = 1;
    lin_serve_count(s, &s->counts.slow);
    give_up(c, 1008, message);
    return 0;
}

/* ---- results, on other threads --------------------------------------------------------------------------------------------- */

static char *text_of(const lin_buffer *b) { return lin_strdup(b->data ? b->data : ""); }

static void free_said(lin_said *said)
{
    lin_free(said->text);
    lin_free(said->items);
    lin_free(said);
}

static void keep_said(lin_client *c, const lin_session_view *view)
{
    const lin_serve *s = c->serve;
    lin_said *said = lin_calloc(1, sizeof *said);
    if (!said) {
        c->lost = "out of memory";
        return;
    }
    lin_buffer_clear(&c->settled);
    lin_buffer_clear(&c->open);
    lin_live_put_text(&c->settled, &s->words, view->settled, 0, NULL);
    if (c->config.alternatives)
        lin_vosk_put_alternatives(&c->open, &s->words, view->settled, c->config.alternatives, c->config.words);
    else lin_vosk_put_items(&c->open, &s->words, view->settled);
    said->text = text_of(&c->settled);
    said->items = text_of(&c->open);
    const int whole = lin_buffer_status(&c->settled, NULL) == LIN_OK && lin_buffer_status(&c->open, NULL) == LIN_OK;
    if (!said->text || !said->items || !whole) {
        c->lost = "out of memory";
        free_said(said);
        return;
    }
    *c->said_last = said;
    c->said_last = &said->next;
    c->n_said += c->settled.n + c->open.n;
    if (c->n_said > MOST_SAID) c->lost = "too many results wait for the end of a message";
}

static void show_vosk(lin_client *c, const lin_session_view *view)
{
    const lin_serve *s = c->serve;
    lin_buffer_clear(&c->partial);
    if (view->end != LIN_SESSION_OPEN) {
        keep_said(c, view);
        return;
    }
    lin_live_put_text(&c->partial, &s->words, view->settled, 0, NULL);
    const size_t n = c->partial.n;
    if (n) lin_buffer_char(&c->partial, ' ');
    // A word of which only the first phones are known is no word for Vosk's clients.
    lin_result open = *view->provisional;
    if (view->incomplete && open.n_words) open.n_words--;
    lin_live_put_text(&c->partial, &s->words, &open, 0, NULL);
    if (n && c->partial.n == n + 1) c->partial.data[--c->partial.n] = 0;
}

// 0: a provisional result was left out, because its reader is slow.
static int show_stream(lin_client *c, const lin_session_view *view)
{
    const lin_serve *s = c->serve;
    const int final = view->end != LIN_SESSION_OPEN;
    if (!final && !c->config.partials) return 1;
    if (!final && c->n_queued > QUEUED_PARTIALS) return 0;
    lin_session_view now = *view;
    if (c->utterance != view->utterance) c->sent_phones = c->sent_words = 0;
    c->utterance = view->utterance;
    now.old_phones = c->sent_phones; // a message that was not sent is made up for by the next one
    now.old_words = c->sent_words;
    lin_buffer_clear(&c->settled);
    lin_buffer_clear(&c->open);
    lin_buffer_clear(&c->readable);
    lin_buffer_clear(&c->out);
    const int readable = final && s->punctuation;
    if (lin_live_put_text(&c->settled, &s->words, now.settled, 0, NULL) != LIN_OK ||
        lin_live_put_text(&c->open, &s->words, now.provisional, now.incomplete, NULL) != LIN_OK ||
        (readable && lin_live_put_readable(&c->readable, &s->words, now.settled, NULL) != LIN_OK)) {
        if (final) c->lost = "out of memory";
        return 1;
    }
    const double latency = lin_now() - (c->sound_at - (c->sound_s - view->end_s));
    lin_live_put_json(&c->out, &s->words, &now, c->settled.data ? c->settled.data : "", c->open.data ? c->open.data : "",
                      readable ? c->readable.data : NULL, latency);
    if (c->out.n) c->out.n--; // its line end
    put_buffer(c, &c->out, final ? LIN_NOTE_FINAL : LIN_NOTE_PARTIAL);
    c->sent_phones = view->settled->n_phones;
    c->sent_words = view->settled->n_words;
    return 1;
}

static void show(void *user, const lin_session_view *view)
{
    lin_client *c = user;
    pthread_mutex_lock(&c->lock);
    c->growing = view->end == LIN_SESSION_OPEN;
    c->n_final += !c->growing;
    int shown = 1;
    if (c->kind == LIN_CLIENT_VOSK) show_vosk(c, view);
    else shown = show_stream(c, view);
    pthread_mutex_unlock(&c->lock);
    if (!shown) lin_serve_count(c->serve, &c->serve->counts.partials_dropped);
    if (view->end != LIN_SESSION_OPEN) lin_serve_count(c->serve, &c->serve->counts.utterances);
    lin_serve_touch(c);
}

// A text message that says what the binary one behind it is.
static void take_state(void *user, const void *bytes, size_t n, double seconds)
{
    lin_client *c = user;
    const lin_serve *s = c->serve;
    unsigned char *sealed = lin_alloc(n + LIN_WEB_SEAL, 1);
    const int done = sealed && s->transport->seal(s->state_key, bytes, n, sealed, NULL) == LIN_OK;
    n += LIN_WEB_SEAL;
    pthread_mutex_lock(&c->lock);
    if (done && c->n_queued < QUEUED_PARTIALS) { // a slow reader gets the next one
        lin_buffer_clear(&c->out);
        lin_buffer_text(&c->out, "{\"type\":\"state\"");
        lin_buffer_member_fixed(&c->out, "seconds", seconds, 3);
        lin_buffer_member_integer(&c->out, "bytes", (long long)n);
        lin_buffer_char(&c->out, '}');
        put_buffer(c, &c->out, LIN_NOTE_OTHER);
        put(c, (const char *)sealed, n, LIN_NOTE_STATE);
    }
    pthread_mutex_unlock(&c->lock);
    lin_free(sealed);
    lin_serve_count(c->serve, &c->serve->counts.sessions_saved);
    lin_serve_touch(c);
}

static void take_phrases(void *user, int n, const lin_error *err)
{
    lin_client *c = user;
    pthread_mutex_lock(&c->lock);
    lin_buffer_clear(&c->out);
    lin_live_put_context(&c->out, n, err ? err->message : "");
    if (c->out.n) c->out.n--; // its line end
    put_buffer(c, &c->out, LIN_NOTE_OTHER);
    pthread_mutex_unlock(&c->lock);
    lin_serve_touch(c);
}

static void ended(void *user, double seconds, const lin_error *err)
{
    lin_client *c = user;
    pthread_mutex_lock(&c->lock);
    c->ended = 1;
    c->seconds = seconds;
    if (err) c->failure = lin_strdup(err->message);
    pthread_mutex_unlock(&c->lock);
    lin_serve_touch(c);
}

const lin_voice_sink lin_serve_stream_sink = {show, take_state, take_phrases, ended};

/* ---- sound ----------------------------------------------------------------------------------------------------------------- */

void lin_serve_stream_begin(lin_client *c)
{
    pthread_mutex_init(&c->lock, NULL);
    c->last = &c->first;
    c->said_last = &c->said;
    c->config = lin_message_default(c->serve->v->rate_hz);
}

static void wait_more(lin_client *c)
{
    if (c->waiting) return;
    c->waiting = 1;
    c->waits = c->serve->waiting;
    c->serve->waiting = c;
}

static void put_begin(lin_client *c)
{
    const lin_serve *s = c->serve;
    const char *model = s->recognizer.model->name;
    lin_buffer out = {0};
    lin_live_put_begin(&out, &(lin_live_begin){"stream", model ? model : "", (int)c->config.rate_hz, c->config.channels,
                                               lin_session_construction(&s->recognizer)});
    if (out.n) out.n--;
    pthread_mutex_lock(&c->lock);
    put_buffer(c, &out, LIN_NOTE_OTHER);
    pthread_mutex_unlock(&c->lock);
    lin_buffer_free(&out);
    s->transport->want(c->peer);
}

// The state that a client sent back, as it was saved; in place.
static lin_status open_state(lin_client *c, lin_error *err)
{
    const lin_serve *s = c->serve;
    if (c->state.n == 0) return LIN_OK;
    unsigned char *plain = lin_alloc(c->state.n, 1);
    if (!plain) return lin_no_memory(err, "a state", c->state.n);
    lin_status status = s->transport->unseal(s->state_key, (const unsigned char *)c->state.data, c->state.n, plain, err);
    if (status == LIN_OK) {
        c->state.n -= LIN_WEB_SEAL;
        memcpy(c->state.data, plain, c->state.n);
    }
    lin_free(plain);
    lin_state state = {0};
    if (status == LIN_OK) status = lin_state_parse(c->state.data, c->state.n, "the state", &state, err);
    if (status == LIN_OK && state.about.rate_hz) c->pushed_s = (double)state.about.samples / state.about.rate_hz;
    lin_state_free(&state);
    return status;
}

static lin_status open_opus(lin_client *c, lin_error *err)
{
    if (c->config.channels != 1) return lin_fail(err, LIN_INVALID, "the format ogg_opus is mixed down to 1 channel");
    lin_status status = lin_grow(&c->held, &c->held_capacity, LIN_OGG_OPUS_MOST, sizeof *c->held, "sound", err);
    return status == LIN_OK ? lin_ogg_opus_create((int)c->config.rate_hz, &c->opus, err) : status;
}

// Opens the stream with its first sound: 0, and the client is told, if that fails.
static int open_voice(lin_client *c)
{
    lin_serve *s = c->serve;
    lin_error err = {0};
    if (c->voice) return 1;
    const lin_message *m = &c->config;
    if (open_state(c, &err) != LIN_OK || (m->format == LIN_SAMPLES_OPUS && open_opus(c, &err) != LIN_OK)) {
        give_up(c, 1008, err.message);
        return 0;
    }
    const lin_voice_about about = {.rate_hz = (int)m->rate_hz, .channels = m->channels, .n_phrases = m->n_phrases,
                                   .phrases = m->phrases, .bonus = s->v->decoding.context_bonus,
                                   .own = m->push_to_talk, .state_s = m->state_s,
                                   .state = c->state.n ? c->state.data : NULL, .n_state = c->state.n};
    const lin_status status = lin_voice_open(s->voices, &about, c, &c->voice, &err);
    if (status != LIN_OK) {
        give_up(c, status == LIN_TOO_SMALL ? 1013 : 1008, err.message);
        return 0;
    }
    if (about.state) lin_serve_count(s, &s->counts.resumed);
    lin_buffer_free(&c->state);
    if (c->kind == LIN_CLIENT_STREAM) put_begin(c);
    return 1;
}

// The next packet's samples, where none are held: bytes wait instead of them, because a few can hold minutes.
static void decode_more(lin_client *c)
{
    lin_error err = {0};
    int n = 0;
    if (!c->opus || c->n_held > c->at_held) return;
    if (lin_ogg_opus_take(c->opus, c->held, &n, &err) != LIN_OK) {
        lin_serve_count(c->serve, &c->serve->counts.bad);
        give_up(c, 1007, err.message);
    }
    c->at_held = 0;
    c->n_held = (size_t)n;
}

// Moves held samples into the stream; 1 if none is left, and more may be read.
static int pump(lin_client *c)
{
    const size_t channels = (size_t)c->config.channels;
    if (c->finishing >= 2) return c->n_held == 0; // what comes behind a reset waits for its end
    for (;;) {
        if (is_held_back(c)) return 0;
        decode_more(c);
        if (c->n_held - c->at_held < channels) break;
        int room;
        double waiting_s;
        lin_error err = {0};
        lin_voice_room(c->voice, &room, &waiting_s);
        const size_t have = (c->n_held - c->at_held) / channels, n = have < (size_t)room ? have : (size_t)room;
        if (n == 0) return 0;
        pthread_mutex_lock(&c->lock); // before results of it can come
        c->pushed_s += (double)n / c->config.rate_hz;
        c->pushed_at = lin_now();
        c->sound_s = c->pushed_s;
        c->sound_at = c->pushed_at;
        const int over = c->ended;
        pthread_mutex_unlock(&c->lock);
        if (over || lin_voice_push(c->voice, c->held + c->at_held, (int)n, &err) != LIN_OK) {
            if (!over) give_up(c, 1011, err.message);
            c->at_held = c->n_held = 0;
            return 1;
        }
        c->at_held += n * channels;
        c->serve->counts.sound_s += (double)n / c->config.rate_hz;
    }
    const size_t rest = c->n_held - c->at_held; // of a frame of several channels
    if (rest && c->at_held) memmove(c->held, c->held + c->at_held, rest * sizeof *c->held);
    c->at_held = 0;
    c->n_held = rest;
    return 1;
}

// The first binary message is the state that the client got from another server.
static int awaits_state(const lin_client *c) { return c->config.resume && !c->voice && !c->pushed; }

static void take_sound(lin_client *c, const char *bytes, size_t n)
{
    lin_error err = {0};
    if (awaits_state(c)) {
        if (c->state.n + n > MOST_STATE) give_up(c, 1009, "the state is too large");
        else lin_buffer_bytes(&c->state, bytes, n);
        return;
    }
    if (n && !open_voice(c)) return;
    if (c->opus) {
        if (lin_ogg_opus_push(c->opus, bytes, n, &err) != LIN_OK) give_up(c, 1011, err.message);
        return;
    }
    if (lin_grow(&c->held, &c->held_capacity, c->n_held + n / 2 + 2, sizeof *c->held, "sound", &err) != LIN_OK) {
        give_up(c, 1011, err.message);
        return;
    }
    c->n_held += lin_samples_take(c->config.format, bytes, n, &c->rest, c->held + c->n_held);
}

static void take_text(lin_client *c, const char *text, size_t n)
{
    lin_error err = {0};
    const int vosk = c->kind == LIN_CLIENT_VOSK;
    // other threads read the config of a stream
    lin_message later = lin_message_default(16000), *m = c->voice ? &later : &c->config;
    const lin_status status = vosk ? lin_message_parse_vosk(text, n, m, &err) : lin_message_parse(text, n, m, &err);
    if (status != LIN_OK) {
        lin_serve_count(c->serve, &c->serve->counts.bad);
        give_up(c, 1008, err.message);
    } else if (m->kind == LIN_MESSAGE_CONFIG) {
        if (c->voice) give_up(c, 1008, "a config comes before the first sound");
    } else if (m->kind == LIN_MESSAGE_PHRASES) { // before the first sound they are the config's
        if (c->voice && lin_voice_set_phrases(c->voice, m->phrases, m->n_phrases, &err) != LIN_OK) give_up(c, 1011, err.message);
    } else if (m->kind == LIN_MESSAGE_END_UTTERANCE) {
        if (c->voice && lin_voice_end_utterance(c->voice, &err) != LIN_OK) give_up(c, 1008, err.message);
    } else if (awaits_state(c)) {
        give_up(c, 1008, "no state came to resume");
    } else {
        c->finishing = 1;
        c->resets = m->kind == LIN_MESSAGE_RESET;
    }
    lin_message_free(&later);
}

void lin_serve_stream_data(lin_client *c, const char *bytes, size_t n, int binary, int last)
{
    if (c->ending) return;
    if (c->finishing && !c->resets) return; // behind the end
    if (!binary) {
        if (c->text.n + n > LIN_MESSAGE_BYTES) {
            lin_serve_count(c->serve, &c->serve->counts.bad);
            give_up(c, 1009, "the message is too long");
            return;
        }
        lin_buffer_bytes(&c->text, bytes, n);
        if (!last) return;
        take_text(c, c->text.data ? c->text.data : "", c->text.n);
        lin_buffer_clear(&c->text);
    } else {
        take_sound(c, bytes, n);
        const int resumes = last && awaits_state(c) && !c->ending;
        if (resumes && c->state.n == 0) give_up(c, 1008, "the state to resume is empty");
        else if (resumes && open_voice(c)) c->config.resume = 0;
        else if (last) c->owed++;
        if (last) c->pushed = 1;
    }
    lin_serve_stream_go_on(c);
}

/* ---- answers of Vosk's protocol -------------------------------------------------------------------------------------------- */

// The utterances [n] that have ended and were not sent as one result; empty ones too. Locked.
static void put_said(lin_client *c, int n)
{
    lin_buffer text = {0}, items = {0}, *out = &c->out;
    const int alternatives = c->config.alternatives > 0;
    int taken = 0;
    for (; c->said && taken < n; taken++) {
        lin_said *said = c->said;
        c->said = said->next;
        if (!c->said) c->said_last = &c->said;
        if (text.n && *said->text) lin_buffer_char(&text, ' ');
        c->n_said -= strlen(said->text) + strlen(said->items);
        lin_buffer_text(&text, said->text);
        if (alternatives) lin_buffer_clear(&items); // the last one's
        else if (items.n && *said->items) lin_buffer_char(&items, ',');
        lin_buffer_text(&items, said->items);
        free_said(said);
    }
    lin_buffer_clear(out);
    if (alternatives && taken == 1) {
        lin_buffer_bytes(out, items.data, items.n);
    } else if (alternatives) {
        lin_buffer_text(out, "{\"alternatives\":[{\"confidence\":0.0");
        lin_buffer_member_text(out, "text", text.data ? text.data : "");
        lin_buffer_text(out, "}]}");
    } else {
        lin_buffer_char(out, '{');
        if (items.n && c->config.words) {
            lin_buffer_key(out, "result");
            lin_buffer_char(out, '[');
            lin_buffer_bytes(out, items.data, items.n);
            lin_buffer_char(out, ']');
        }
        lin_buffer_member_text(out, "text", text.data ? text.data : "");
        lin_buffer_char(out, '}');
    }
    if (lin_buffer_status(&text, NULL) != LIN_OK || lin_buffer_status(&items, NULL) != LIN_OK) c->lost = "out of memory";
    put_buffer(c, out, taken ? LIN_NOTE_FINAL : LIN_NOTE_OTHER);
    lin_buffer_free(&text);
    lin_buffer_free(&items);
}

// Locked.
static void answer(lin_client *c)
{
    if (c->said) {
        put_said(c, 1);
        return;
    }
    lin_buffer_clear(&c->out);
    lin_buffer_char(&c->out, '{');
    lin_buffer_member_text(&c->out, "partial", c->partial.data ? c->partial.data : "");
    lin_buffer_char(&c->out, '}');
    put_buffer(c, &c->out, LIN_NOTE_OTHER);
}

/* ---- going on -------------------------------------------------------------------------------------------------------------- */

// The stream has ended; locked. failure: why, or NULL.
static void put_end(lin_client *c, const char *failure)
{
    if (c->kind == LIN_CLIENT_VOSK) {
        for (; c->owed > 0; c->owed--) answer(c);
        put_said(c, 1 << 30);
        return;
    }
    const int drained = c->finishing == 3;
    lin_buffer_clear(&c->out);
    lin_buffer_text(&c->out, "{\"type\":\"end\"");
    lin_buffer_member_text(&c->out, "reason", failure ? "failed" : drained ? "stopping" : "ended");
    if (failure) lin_buffer_member_text(&c->out, "message", failure);
    lin_buffer_member_fixed(&c->out, "seconds", c->seconds, 3);
    lin_buffer_member_integer(&c->out, "utterances", c->n_final);
    lin_buffer_char(&c->out, '}');
    put_buffer(c, &c->out, LIN_NOTE_OTHER);
}

// After FinalResult of a reset the next sound is another one.
static void begin_again(lin_client *c)
{
    lin_error err = {0};
    c->resets = c->finishing = c->ended = 0;
    if (lin_voice_reset(c->voice, &err) != LIN_OK) give_up(c, 1011, err.message);
    else lin_serve_touch(c);
}

static void conclude(lin_client *c)
{
    lin_serve *s = c->serve;
    pthread_mutex_lock(&c->lock);
    const char *failure = c->failure;
    const int again = c->resets && !failure && c->voice && !s->draining;
    put_end(c, failure);
    pthread_mutex_unlock(&c->lock);
    if (again) {
        begin_again(c);
        return;
    }
    if (failure) lin_serve_count(s, &s->counts.failed);
    end(c, failure ? 1011 : c->finishing == 3 ? 1001 : 1000, failure ? failure : "");
}

void lin_serve_stream_go_on(lin_client *c)
{
    lin_serve *s = c->serve;
    if (c->ending) {
        s->transport->want(c->peer);
        return;
    }
    int done = !is_held_back(c);
    double waiting_s = 0;
    if (c->voice) {
        int room;
        done = pump(c);
        if (c->ending) return;
        lin_voice_room(c->voice, &room, &waiting_s);
    }
    pthread_mutex_lock(&c->lock);
    const char *lost = c->lost;
    pthread_mutex_unlock(&c->lock);
    if (lost) {
        lin_serve_count(s, &s->counts.failed);
        give_up(c, 1011, lost);
        return;
    }
    if (done != !c->paused) {
        c->paused = !done;
        s->transport->pause(c->peer, c->paused);
    }
    pthread_mutex_lock(&c->lock);
    if (c->kind == LIN_CLIENT_VOSK && (waiting_s < ANSWER_S || !c->voice)) { // not done: too many utterances wait to be told
        for (; c->owed > 0 && c->n_kept <= QUEUED_KEPT && (done || c->said); c->owed--) answer(c);
    }
    c->is_held_back = c->n_kept > QUEUED_KEPT; // until lin_serve_stream_next has taken enough, which touches the client
    const int owes = c->kind == LIN_CLIENT_VOSK && c->owed > 0;
    const int over = c->ended || (c->finishing && !c->voice && !c->config.resume), queued = c->first != NULL;
    pthread_mutex_unlock(&c->lock);
    if (over) {
        conclude(c);
    } else if (c->finishing == 1 && done && c->voice && !owes) { // the final result is no answer to the messages before the end
        c->finishing = 2; // asked for
        lin_voice_finish(c->voice, NULL);
    }
    if (queued || over) s->transport->want(c->peer);
    if (!c->ending && !c->is_held_back && (!done || owes)) wait_more(c);
}

void lin_serve_stream_drain(lin_client *c, int now)
{
    if (c->ending || c->finishing) return;
    pthread_mutex_lock(&c->lock);
    const int growing = c->growing;
    pthread_mutex_unlock(&c->lock);
    if (growing && !now) return;
    c->finishing = 3;
    if (c->voice) lin_voice_finish(c->voice, NULL);
    else conclude(c);
}

void lin_serve_stream_free(lin_client *c)
{
    long long unread = 0;
    lin_voice_close(c->voice);
    for (lin_note *n = c->first, *next; n; n = next) {
        next = n->next;
        unread += n->kind == LIN_NOTE_FINAL;
        lin_free(n);
    }
    for (lin_said *n = c->said, *next; n; n = next, unread++) {
        next = n->next;
        free_said(n);
    }
    pthread_mutex_lock(&c->serve->lock);
    c->serve->counts.finals_unread += unread;
    pthread_mutex_unlock(&c->serve->lock);
    lin_buffer *const buffers[] = {&c->text, &c->state, &c->partial, &c->out, &c->settled, &c->open, &c->readable};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) lin_buffer_free(buffers[i]);
    lin_message_free(&c->config);
    lin_free(c->sending);
    lin_free(c->held);
    lin_ogg_opus_destroy(c->opus);
    lin_free(c->failure);
    pthread_mutex_destroy(&c->lock);
}
