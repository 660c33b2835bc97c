// protocol_vosk.c - vosk-server's protocol of WebSockets; see serve/protocols.h.
//
// Each binary message has one answer: what is provisional, or an utterance that has ended since. The end, and a reset, have one
// with all that was not said yet.

#include <string.h>

#include "base/memory.h"
#include "serve/outbox_internal.h"
#include "serve/protocols.h"

static char *text_of(const lin_buffer *b) { return lin_strdup(b->data ? b->data : ""); }

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
        lin_said_free(said);
        return;
    }
    *o->said_last = said;
    o->said_last = &said->next;
    o->n_said += o->settled.n + o->open.n;
    if (o->n_said > LIN_MOST_SAID) o->lost = "too many results wait for the end of a message";
}

static int show(lin_outbox *o, const lin_session_view *view)
{
    const lin_serve *s = o->client->serve;
    lin_buffer_clear(&o->partial);
    if (view->end != LINNET_GROWS) {
        keep_said(o, view);
        return 1;
    }
    lin_live_put_text(&o->partial, &s->words, view->settled, 0, NULL);
    const size_t n = o->partial.n;
    if (n) lin_buffer_char(&o->partial, ' ');
    // A word of which only the first phones are known is no word for Vosk's clients.
    lin_result open = *view->provisional;
    if (view->incomplete && open.n_words) open.n_words--;
    lin_live_put_text(&o->partial, &s->words, &open, 0, NULL);
    if (n && o->partial.n == n + 1) o->partial.data[--o->partial.n] = 0;
    return 1;
}

// The utterances [n] that have ended and were not sent as one result; empty ones too.
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
        lin_said_free(said);
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
    lin_outbox_add(o, out, taken ? LIN_NOTE_FINAL : LIN_NOTE_OTHER);
    lin_buffer_free(&text);
    lin_buffer_free(&items);
}

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
    lin_outbox_add(o, &o->out, LIN_NOTE_OTHER);
}

static void put_end(lin_outbox *o, int drained)
{
    (void)drained;
    for (; o->owed > 0; o->owed--) answer(o);
    put_said(o, 1 << 30);
}

static void put_error(lin_buffer *out, const char *message)
{
    lin_buffer_char(out, '{');
    lin_buffer_member_text(out, "error", message);
    lin_buffer_char(out, '}');
}

const lin_protocol lin_protocol_vosk = {.name = "vosk",
                                        .path = "/vosk",
                                        .about = "vosk-server's: s16le, an answer to each message",
                                        .format = LIN_SAMPLES_S16,
                                        .phrases_advise = 1,
                                        .configs_later = 1,
                                        .parse = lin_message_parse_vosk,
                                        .show = show,
                                        .answer = answer,
                                        .put_end = put_end,
                                        .put_error = put_error};
