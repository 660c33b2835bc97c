// serve_outbox.c - what waits to be sent to a WebSocket: results of its stream, in vosk-server's protocol or in linnet's own; see
// serve.h.
//
// Results come on the threads that decode, and the server's thread sends them: one lock holds the whole outbox. It never calls
// the other files of a stream; the server's thread asks how things are (lin_outbox_look) and decides.

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "serve/serve.h"

#define QUEUED_KEPT (1 << 18) // bytes of final results that wait for a reader; beyond them no sound is taken
#define QUEUED_PARTIALS 65536 // beyond them it gets no provisional results
#define MOST_SAID (16 << 20)  // Vosk: bytes of utterances that wait for the end of the message which they are an answer to

/* What becomes of a message whose reader is slow: provisional results and states are left out, all others wait. */
typedef enum lin_note_kind { LIN_NOTE_PARTIAL, LIN_NOTE_STATE, LIN_NOTE_OTHER, LIN_NOTE_FINAL } lin_note_kind;

/* A message that waits to be sent. */
typedef struct lin_note {
    struct lin_note *next;
    size_t n;
    lin_note_kind kind;
    double put_at;
    char data[];
} lin_note;

/* An utterance that has ended and not been sent, for Vosk's protocol. */
typedef struct lin_said {
    struct lin_said *next;
    char *text, *items; /* released with the structure; items: alternatives, or a list of words */
} lin_said;

struct lin_outbox {
    lin_client *client;   // of which only what never changes is read: kind, config, serve
    lin_note *sending;    // given to the network; the server's thread
    pthread_mutex_t lock; // of all below
    lin_note *first, **last;
    size_t n_queued; // bytes of them
    size_t n_kept;   // of those that are neither provisional nor states
    lin_said *said, **said_last;
    size_t n_said; // bytes of them
    int owed;      // Vosk: messages that are not answered
    const char *lost; // why a final result could not be kept; NULL: all are
    lin_buffer partial, out, settled, open, readable;
    int utterance, sent_phones, sent_words; // of a growing utterance, what has been sent
    int growing, ended, n_final;
    int closed;    // it was told why it ends: nothing comes behind that
    char *failure; // why the stream ended
    double seconds;
    double sound_s, sound_at; // seconds of sound taken in, and when, for latencies
};

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

static void put_buffer(lin_outbox *o, lin_buffer *out, lin_note_kind kind)
{
    if (lin_buffer_status(out, NULL) == LIN_OK && out->n) put(o, out->data, out->n, kind);
    else if (out->n && kind != LIN_NOTE_PARTIAL) o->lost = "out of memory";
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
        goes_on = o->n_kept > QUEUED_KEPT;
        if (is_kept(note->kind)) o->n_kept -= note->n;
        goes_on = goes_on && o->n_kept <= QUEUED_KEPT;
    }
    pthread_mutex_unlock(&o->lock);
    if (goes_on) lin_serve_touch(o->client);
    if (note) *m = (lin_web_message){note->data, note->n, note->kind == LIN_NOTE_STATE};
    return note != NULL;
}

// Utterances in Vosk's protocol that are not an answer to anything yet do not count: their reader cannot have them before it
// sends more.
lin_outbox_view lin_outbox_look(lin_outbox *o)
{
    pthread_mutex_lock(&o->lock);
    const lin_outbox_view view = {.waits_since = o->first ? o->first->put_at : 0,
                                  .holds = o->n_kept + (o->owed ? o->n_said : 0) > QUEUED_KEPT,
                                  .is_full = o->n_kept > QUEUED_KEPT,
                                  .owed = o->owed,
                                  .growing = o->growing,
                                  .ended = o->ended,
                                  .lost = o->lost,
                                  .failure = o->failure};
    pthread_mutex_unlock(&o->lock);
    return view;
}

/* ---- results, on other threads --------------------------------------------------------------------------------------------- */

static char *text_of(const lin_buffer *b) { return lin_strdup(b->data ? b->data : ""); }

static void free_said(lin_said *said)
{
    lin_free(said->text);
    lin_free(said->items);
    lin_free(said);
}

static void keep_said(lin_outbox *o, const lin_session_view *view)
{
    const lin_message *config = &o->client->config;
    const lin_serve *s = o->client->serve;
    lin_said *said = lin_calloc(1, sizeof *said);
    if (!said) {
        o->lost = "out of memory";
        return;
    }
    lin_buffer_clear(&o->settled);
    lin_buffer_clear(&o->open);
    lin_live_put_text(&o->settled, &s->words, view->settled, 0, NULL);
    if (config->alternatives) lin_vosk_put_alternatives(&o->open, &s->words, view->settled, config->alternatives, config->words);
    else lin_vosk_put_items(&o->open, &s->words, view->settled);
    said->text = text_of(&o->settled);
    said->items = text_of(&o->open);
    const int whole = lin_buffer_status(&o->settled, NULL) == LIN_OK && lin_buffer_status(&o->open, NULL) == LIN_OK;
    if (!said->text || !said->items || !whole) {
        o->lost = "out of memory";
        free_said(said);
        return;
    }
    *o->said_last = said;
    o->said_last = &said->next;
    o->n_said += o->settled.n + o->open.n;
    if (o->n_said > MOST_SAID) o->lost = "too many results wait for the end of a message";
}

static void show_vosk(lin_outbox *o, const lin_session_view *view)
{
    const lin_serve *s = o->client->serve;
    lin_buffer_clear(&o->partial);
    if (view->end != LINNET_GROWS) {
        keep_said(o, view);
        return;
    }
    lin_live_put_text(&o->partial, &s->words, view->settled, 0, NULL);
    const size_t n = o->partial.n;
    if (n) lin_buffer_char(&o->partial, ' ');
    // A word of which only the first phones are known is no word for Vosk's clients.
    lin_result open = *view->provisional;
    if (view->incomplete && open.n_words) open.n_words--;
    lin_live_put_text(&o->partial, &s->words, &open, 0, NULL);
    if (n && o->partial.n == n + 1) o->partial.data[--o->partial.n] = 0;
}

// 0: a provisional result was left out, because its reader is slow.
static int show_stream(lin_outbox *o, const lin_session_view *view)
{
    const lin_serve *s = o->client->serve;
    const int final = view->end != LINNET_GROWS;
    if (!final && !o->client->config.partials) return 1;
    if (!final && o->n_queued > QUEUED_PARTIALS) return 0;
    lin_session_view now = *view;
    if (o->utterance != view->utterance) o->sent_phones = o->sent_words = 0;
    o->utterance = view->utterance;
    now.old_phones = o->sent_phones; // a message that was not sent is made up for by the next one
    now.old_words = o->sent_words;
    lin_buffer_clear(&o->settled);
    lin_buffer_clear(&o->open);
    lin_buffer_clear(&o->readable);
    lin_buffer_clear(&o->out);
    const int readable = final && s->punctuation;
    if (lin_live_put_text(&o->settled, &s->words, now.settled, 0, NULL) != LIN_OK ||
        lin_live_put_text(&o->open, &s->words, now.provisional, now.incomplete, NULL) != LIN_OK ||
        (readable && lin_live_put_readable(&o->readable, &s->words, now.settled, NULL) != LIN_OK)) {
        if (final) o->lost = "out of memory";
        return 1;
    }
    const double latency = lin_now() - (o->sound_at - (o->sound_s - view->end_s));
    lin_live_put_json(&o->out, &s->words, &now, o->settled.data ? o->settled.data : "", o->open.data ? o->open.data : "",
                      readable ? o->readable.data : NULL, latency);
    if (o->out.n) o->out.n--; // its line end
    put_buffer(o, &o->out, final ? LIN_NOTE_FINAL : LIN_NOTE_PARTIAL);
    o->sent_phones = view->settled->n_phones;
    o->sent_words = view->settled->n_words;
    return 1;
}

void lin_outbox_show(lin_outbox *o, const lin_session_view *view)
{
    lin_serve *s = o->client->serve;
    pthread_mutex_lock(&o->lock);
    o->growing = view->end == LINNET_GROWS;
    o->n_final += !o->growing;
    int shown = 1;
    if (o->client->kind == LIN_CLIENT_VOSK) show_vosk(o, view);
    else shown = show_stream(o, view);
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
    const int done = sealed && s->transport->seal(s->state_key, bytes, n, sealed, NULL) == LIN_OK;
    n += LIN_WEB_SEAL;
    pthread_mutex_lock(&o->lock);
    if (done && o->n_queued < QUEUED_PARTIALS) { // a slow reader gets the next one
        lin_buffer_clear(&o->out);
        lin_buffer_text(&o->out, "{\"type\":\"state\"");
        lin_buffer_member_fixed(&o->out, "seconds", seconds, 3);
        lin_buffer_member_integer(&o->out, "bytes", (long long)n);
        lin_buffer_char(&o->out, '}');
        put_buffer(o, &o->out, LIN_NOTE_OTHER);
        put(o, (const char *)sealed, n, LIN_NOTE_STATE);
    }
    pthread_mutex_unlock(&o->lock);
    lin_free(sealed);
    lin_serve_count(s, &s->counts.sessions_saved);
    lin_serve_touch(o->client);
}

void lin_outbox_phrases(lin_outbox *o, int n, const lin_error *err)
{
    pthread_mutex_lock(&o->lock);
    lin_buffer_clear(&o->out);
    lin_live_put_context(&o->out, n, err ? err->message : "");
    if (o->out.n) o->out.n--; // its line end
    put_buffer(o, &o->out, LIN_NOTE_OTHER);
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

void lin_outbox_put(lin_outbox *o, lin_buffer *out, int is_last)
{
    pthread_mutex_lock(&o->lock);
    put_buffer(o, out, LIN_NOTE_OTHER);
    o->closed |= is_last;
    pthread_mutex_unlock(&o->lock);
    lin_buffer_free(out);
}

int lin_outbox_take_sound(lin_outbox *o, double seconds)
{
    pthread_mutex_lock(&o->lock);
    o->sound_s += seconds;
    o->sound_at = lin_now();
    const int over = o->ended;
    pthread_mutex_unlock(&o->lock);
    return over;
}

void lin_outbox_owe(lin_outbox *o)
{
    pthread_mutex_lock(&o->lock);
    o->owed++;
    pthread_mutex_unlock(&o->lock);
}

// Vosk: the utterances [n] that have ended and were not sent as one result; empty ones too. Locked.
static void put_said(lin_outbox *o, int n)
{
    lin_buffer text = {0}, items = {0}, *out = &o->out;
    const lin_message *config = &o->client->config;
    const int alternatives = config->alternatives > 0;
    int taken = 0;
    for (; o->said && taken < n; taken++) {
        lin_said *said = o->said;
        o->said = said->next;
        if (!o->said) o->said_last = &o->said;
        if (text.n && *said->text) lin_buffer_char(&text, ' ');
        o->n_said -= strlen(said->text) + strlen(said->items);
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
        if (items.n && config->words) {
            lin_buffer_key(out, "result");
            lin_buffer_char(out, '[');
            lin_buffer_bytes(out, items.data, items.n);
            lin_buffer_char(out, ']');
        }
        lin_buffer_member_text(out, "text", text.data ? text.data : "");
        lin_buffer_char(out, '}');
    }
    if (lin_buffer_status(&text, NULL) != LIN_OK || lin_buffer_status(&items, NULL) != LIN_OK) o->lost = "out of memory";
    put_buffer(o, out, taken ? LIN_NOTE_FINAL : LIN_NOTE_OTHER);
    lin_buffer_free(&text);
    lin_buffer_free(&items);
}

// Locked.
static void answer(lin_outbox *o)
{
    if (o->said) {
        put_said(o, 1);
        return;
    }
    lin_buffer_clear(&o->out);
    lin_buffer_char(&o->out, '{');
    lin_buffer_member_text(&o->out, "partial", o->partial.data ? o->partial.data : "");
    lin_buffer_char(&o->out, '}');
    put_buffer(o, &o->out, LIN_NOTE_OTHER);
}

void lin_outbox_answer(lin_outbox *o, int also_partial)
{
    pthread_mutex_lock(&o->lock);
    for (; o->owed > 0 && o->n_kept <= QUEUED_KEPT && (also_partial || o->said); o->owed--) answer(o);
    pthread_mutex_unlock(&o->lock);
}

void lin_outbox_end(lin_outbox *o, int drained)
{
    pthread_mutex_lock(&o->lock);
    if (o->client->kind == LIN_CLIENT_VOSK) {
        for (; o->owed > 0; o->owed--) answer(o);
        put_said(o, 1 << 30);
    } else {
        lin_buffer_clear(&o->out);
        lin_buffer_text(&o->out, "{\"type\":\"end\"");
        lin_buffer_member_text(&o->out, "reason", o->failure ? "failed" : drained ? "stopping" : "ended");
        if (o->failure) lin_buffer_member_text(&o->out, "message", o->failure);
        lin_buffer_member_fixed(&o->out, "seconds", o->seconds, 3);
        lin_buffer_member_integer(&o->out, "utterances", o->n_final);
        lin_buffer_char(&o->out, '}');
        put_buffer(o, &o->out, LIN_NOTE_OTHER);
    }
    o->ended = 0;
    pthread_mutex_unlock(&o->lock);
}

/* ---- life ------------------------------------------------------------------------------------------------------------------ */

lin_outbox *lin_outbox_create(lin_client *client)
{
    lin_outbox *o = lin_calloc(1, sizeof *o);
    if (!o) return NULL;
    o->client = client;
    o->last = &o->first;
    o->said_last = &o->said;
    pthread_mutex_init(&o->lock, NULL);
    return o;
}

void lin_outbox_destroy(lin_outbox *o)
{
    if (!o) return;
    long long unread = 0;
    lin_serve *s = o->client->serve;
    for (lin_note *n = o->first, *next; n; n = next) {
        next = n->next;
        unread += n->kind == LIN_NOTE_FINAL;
        lin_free(n);
    }
    for (lin_said *n = o->said, *next; n; n = next, unread++) {
        next = n->next;
        free_said(n);
    }
    pthread_mutex_lock(&s->lock);
    s->counts.finals_unread += unread;
    pthread_mutex_unlock(&s->lock);
    lin_buffer *const buffers[] = {&o->partial, &o->out, &o->settled, &o->open, &o->readable};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) lin_buffer_free(buffers[i]);
    lin_free(o->sending);
    lin_free(o->failure);
    pthread_mutex_destroy(&o->lock);
    lin_free(o);
}
