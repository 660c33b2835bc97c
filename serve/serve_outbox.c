// serve_outbox.c - what waits to be sent to a WebSocket: results of its stream, in the form of its protocol; see serve.h.
//
// Results come on the threads that decode, and the server's thread sends them: one lock holds the whole outbox. It never calls
// the other files of a stream; the server's thread asks how things are (lin_outbox_look) and decides.

#include <string.h>

#include "base/memory.h"
#include "base/system.h"
#include "serve/outbox_internal.h"
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
        goes_on = o->n_kept > LIN_QUEUED_KEPT;
        if (is_kept(note->kind)) o->n_kept -= note->n;
        goes_on = goes_on && o->n_kept <= LIN_QUEUED_KEPT;
    }
    pthread_mutex_unlock(&o->lock);
    if (goes_on) lin_serve_touch(o->client);
    if (note) *m = (lin_web_message){note->data, note->n, note->kind == LIN_NOTE_STATE};
    return note != NULL;
}

// Utterances that are not an answer to anything yet do not count: their reader cannot have them before it
// sends more.
lin_outbox_view lin_outbox_look(lin_outbox *o)
{
    pthread_mutex_lock(&o->lock);
    const lin_outbox_view view = {.waits_since = o->first ? o->first->put_at : 0,
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
    if (done && o->n_queued < LIN_QUEUED_PARTIALS) { // a slow reader gets the next one
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
    lin_serve_count(s, &s->counts.sessions_saved);
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

void lin_outbox_put(lin_outbox *o, lin_buffer *out, int is_last)
{
    pthread_mutex_lock(&o->lock);
    lin_outbox_add(o, out, LIN_NOTE_OTHER);
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

void lin_outbox_answer(lin_outbox *o, int also_partial)
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

void lin_outbox_end(lin_outbox *o, int drained)
{
    pthread_mutex_lock(&o->lock);
    o->client->protocol->put_end(o, drained);
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
    lin_settling_begin(&o->settling, &client->serve->words);
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
        lin_said_free(n);
    }
    pthread_mutex_lock(&s->lock);
    s->counts.finals_unread += unread;
    pthread_mutex_unlock(&s->lock);
    lin_buffer *const buffers[] = {&o->partial, &o->out, &o->settled, &o->open, &o->readable};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) lin_buffer_free(buffers[i]);
    lin_result_free(&o->whole);
    lin_settling_free(&o->settling);
    lin_free(o->sending);
    lin_free(o->failure);
    pthread_mutex_destroy(&o->lock);
    lin_free(o);
}
