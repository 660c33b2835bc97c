// protocol_linnet.c - linnet's own protocol of WebSockets (docs/serve.md): the lines of linnet listen --json; see
// serve/protocols.h.

#include <string.h>

#include "base/system.h"
#include "serve/outbox_internal.h"
#include "serve/protocols.h"

static void put_begin(const lin_client *c, lin_buffer *out)
{
    const lin_serve *s = c->serve;
    const char *model = s->recognizer.model->name;
    lin_live_put_begin(out, &(lin_live_begin){"stream", model ? model : "", (int)c->config.rate_hz, c->config.channels,
                                              lin_session_construction(&s->recognizer)});
    if (out->n) out->n--;
}

// What is settled and what is provisional as one readable text. The mark behind the last word is not known yet: it would come and
// go with every word.
static lin_status put_readable(lin_outbox *o, const lin_session_view *view)
{
    const lin_serve *s = o->client->serve;
    lin_status status = lin_result_begin(&o->whole, "", NULL, 1, NULL);
    if (status == LIN_OK) status = lin_result_append(&o->whole, view->settled, NULL);
    if (status == LIN_OK) status = lin_result_append(&o->whole, view->provisional, NULL);
    if (status == LIN_OK && view->incomplete && o->whole.n_words) o->whole.n_words--;
    if (status == LIN_OK) status = lin_live_put_readable(&o->readable, &s->words, &o->whole, NULL);
    lin_buffer *r = &o->readable;
    if (r->n && strchr(".?,", r->data[r->n - 1])) r->data[--r->n] = 0;
    return status;
}

// 0: a provisional result was left out, because its reader is slow.
static int show(lin_outbox *o, const lin_session_view *view)
{
    const lin_serve *s = o->client->serve;
    const int final = view->end != LINNET_GROWS;
    if (!final && !o->client->config.partials) return 1;
    if (!final && o->n_queued > LIN_QUEUED_PARTIALS) return 0;
    lin_session_view now = *view;
    if (o->utterance != view->utterance) o->sent_phones = o->sent_words = 0;
    o->utterance = view->utterance;
    now.old_phones = o->sent_phones; // a message that was not sent is made up for by the next one
    now.old_words = o->sent_words;
    lin_buffer_clear(&o->settled);
    lin_buffer_clear(&o->open);
    lin_buffer_clear(&o->readable);
    lin_buffer_clear(&o->out);
    const int readable = s->punctuation && (final || o->client->config.readable);
    if (lin_live_put_text(&o->settled, &s->words, now.settled, 0, NULL) != LIN_OK ||
        lin_live_put_text(&o->open, &s->words, now.provisional, now.incomplete, NULL) != LIN_OK ||
        (readable && final && lin_live_put_readable(&o->readable, &s->words, now.settled, NULL) != LIN_OK) ||
        (readable && !final && put_readable(o, view) != LIN_OK)) {
        if (final) o->lost = "out of memory";
        return 1;
    }
    const double latency = lin_now() - (o->sound_at - (o->sound_s - view->end_s));
    lin_live_put_json(&o->out, &s->words, &now, o->settled.data ? o->settled.data : "", o->open.data ? o->open.data : "",
                      readable ? o->readable.data : NULL, latency);
    if (o->out.n) o->out.n--; // its line end
    lin_outbox_add(o, &o->out, final ? LIN_NOTE_FINAL : LIN_NOTE_PARTIAL);
    o->sent_phones = view->settled->n_phones;
    o->sent_words = view->settled->n_words;
    return 1;
}

static void put_end(lin_outbox *o, int drained)
{
    lin_buffer_clear(&o->out);
    lin_buffer_text(&o->out, "{\"type\":\"end\"");
    lin_buffer_member_text(&o->out, "reason", o->failure ? "failed" : drained ? "stopping" : "ended");
    if (o->failure) lin_buffer_member_text(&o->out, "message", o->failure);
    lin_buffer_member_fixed(&o->out, "seconds", o->seconds, 3);
    lin_buffer_member_integer(&o->out, "utterances", o->n_final);
    lin_buffer_char(&o->out, '}');
    lin_outbox_add(o, &o->out, LIN_NOTE_OTHER);
}

static void put_error(lin_buffer *out, const char *message)
{
    lin_buffer_text(out, "{\"type\":\"error\"");
    lin_buffer_member_text(out, "message", message);
    lin_buffer_char(out, '}');
}

const lin_protocol lin_protocol_linnet = {.name = "linnet",
                                          .path = "/v1/stream",
                                          .about = "linnet's: settled and provisional words and phonemes, phrases, saved streams",
                                          .format = LIN_SAMPLES_S16,
                                          .parse = lin_message_parse,
                                          .put_begin = put_begin,
                                          .show = show,
                                          .put_end = put_end,
                                          .put_error = put_error};
