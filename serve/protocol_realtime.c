// protocol_realtime.c - transcription sessions of OpenAI's realtime protocol; see serve/protocols.h. Its events are JSON texts,
// in which sound is base64.
//
// With turn detection, which is on unless a session has none, an item is an utterance, and the pauses that end one are the
// server's. Without it an item is what came before a commit, whatever the pauses. A commit and a clear end the engine's stream:
// all that was sent before has then been decoded, and the next sound begins a new one.

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "serve/outbox_internal.h"
#include "serve/protocols.h"

static atomic_ullong n_events, n_sessions; // no two have the same id

static void put_event(lin_buffer *out, const char *type)
{
    lin_buffer_text(out, "{\"type\":");
    lin_buffer_json(out, type, strlen(type));
    lin_buffer_format(out, ",\"event_id\":\"event_%llu\"", atomic_fetch_add(&n_events, 1));
}

static void put_session(lin_buffer *out, const lin_client *c, const char *type)
{
    const lin_message *m = &c->config;
    const char *format = m->format == LIN_SAMPLES_MULAW ? "pcmu" : m->format == LIN_SAMPLES_ALAW ? "pcma" : "pcm";
    put_event(out, type);
    lin_buffer_format(out,
                      ",\"session\":{\"id\":\"sess_%llu\",\"object\":\"realtime.transcription_session\","
                      "\"type\":\"transcription\",\"audio\":{\"input\":{\"format\":{\"type\":\"audio/%s\",\"rate\":%d},"
                      "\"transcription\":{\"model\":\"linnet\"",
                      c->out->session, format, (int)m->rate_hz);
    lin_buffer_member_text(out, "language", c->serve->language);
    lin_buffer_text(out, "},\"noise_reduction\":null,\"turn_detection\":");
    if (m->manual) lin_buffer_text(out, "null}}}}");
    else lin_buffer_format(out, "{\"type\":\"server_vad\",\"prefix_padding_ms\":%.0f}}}}}", m->padding_s * 1000);
}

static void put_error(lin_buffer *out, const char *message)
{
    put_event(out, "error");
    lin_buffer_text(out, ",\"error\":{\"type\":\"invalid_request_error\"");
    lin_buffer_member_text(out, "message", message);
    lin_buffer_text(out, ",\"code\":null,\"param\":null,\"event_id\":null}}");
}

static void greet(const lin_client *c, lin_buffer *out)
{
    c->out->session = atomic_fetch_add(&n_sessions, 1) + 1;
    put_session(out, c, "session.created");
}

static void took(lin_client *c, const lin_message *m, lin_buffer *out)
{
    const lin_message *now = &c->config; // m, before the first sound
    const int changes = m->format != now->format || m->rate_hz != now->rate_hz || m->manual != now->manual;
    if (m->kind == LIN_MESSAGE_CLEAR) lin_outbox_discard(c->out);
    if (m->kind != LIN_MESSAGE_CONFIG) return;
    if (!c->serve->v->decoding.words) lin_message_free(&c->config); // a prompt is advice, which phonemes do not use
    if (!lin_language_is_among(m->languages, c->serve->language))
        put_error(out, "the model has another language: leave language out");
    else if (changes) put_error(out, "the format and turn_detection of a session cannot change after its first sound");
    else put_session(out, c, "session.updated");
}

/* ---- items ----------------------------------------------------------------------------------------------------------------- */

static void add_event(lin_outbox *o, const char *type)
{
    lin_buffer_clear(&o->out);
    put_event(&o->out, type);
}

static void end_event(lin_outbox *o, lin_note_kind kind)
{
    lin_buffer_char(&o->out, '}');
    lin_outbox_add(o, &o->out, kind);
}

static void put_item(lin_outbox *o, const char *key, int item)
{
    if (item) lin_buffer_format(&o->out, ",\"%s\":\"item_%d\"", key, item);
    else lin_buffer_format(&o->out, ",\"%s\":null", key);
}

static void put_delta(lin_outbox *o, size_t from)
{
    if (o->settling.text.n <= from) return;
    add_event(o, "conversation.item.input_audio_transcription.delta");
    put_item(o, "item_id", o->n_items + 1);
    lin_buffer_text(&o->out, ",\"content_index\":0");
    lin_buffer_member_text(&o->out, "delta", o->settling.text.data + from);
    end_event(o, LIN_NOTE_OTHER);
}

// The sound of an item has ended, and its text is whole.
static void complete(lin_outbox *o, double seconds)
{
    const int item = ++o->n_items;
    add_event(o, "input_audio_buffer.committed");
    put_item(o, "previous_item_id", item - 1);
    put_item(o, "item_id", item);
    end_event(o, LIN_NOTE_OTHER);
    static const char *const whole[] = {"conversation.item.added", "conversation.item.done"};
    for (int i = 0; i < 2; i++) {
        add_event(o, whole[i]);
        put_item(o, "previous_item_id", item - 1);
        lin_buffer_format(&o->out,
                          ",\"item\":{\"id\":\"item_%d\",\"type\":\"message\",\"object\":\"realtime.item\",\"role\":\"user\","
                          "\"status\":\"completed\",\"content\":[{\"type\":\"input_audio\",\"transcript\":null}]}",
                          item);
        end_event(o, LIN_NOTE_OTHER);
    }
    add_event(o, "conversation.item.input_audio_transcription.completed");
    put_item(o, "item_id", item);
    lin_buffer_text(&o->out, ",\"content_index\":0");
    lin_buffer_member_text(&o->out, "transcript", o->settling.text.data ? o->settling.text.data : "");
    lin_buffer_text(&o->out, ",\"usage\":{\"type\":\"duration\"");
    lin_buffer_member_fixed(&o->out, "seconds", seconds, 3);
    lin_buffer_char(&o->out, '}');
    end_event(o, LIN_NOTE_FINAL);
    lin_settling_begin(&o->settling, &o->client->serve->words);
}

// The part of what has settled that was not sent yet.
static lin_result new_part(lin_outbox *o, const lin_session_view *view)
{
    lin_result part = *view->settled;
    const int words = o->sent_words < part.n_words ? o->sent_words : part.n_words,
              phones = part.has_words ? 0 : o->sent_phones < part.n_phones ? o->sent_phones : part.n_phones;
    part.words = part.words ? part.words + words : NULL; // the same phones, seen through a window
    part.n_words -= words;
    part.phones = part.phones ? part.phones + phones : NULL;
    part.n_phones -= phones;
    o->sent_words = view->settled->n_words;
    o->sent_phones = view->settled->n_phones;
    return part;
}

static void put_speech(lin_outbox *o, const char *type, const char *key, double seconds)
{
    add_event(o, type);
    lin_buffer_member_integer(&o->out, key, (long long)((o->before_s + seconds) * 1000 + 0.5));
    put_item(o, "item_id", o->n_items + 1);
    end_event(o, LIN_NOTE_OTHER);
}

static int show(lin_outbox *o, const lin_session_view *view)
{
    const lin_live_words *words = &o->client->serve->words;
    const int manual = o->client->config.manual, is_final = view->end != LINNET_GROWS;
    if (o->utterance != view->utterance) {
        o->sent_words = o->sent_phones = 0;
        o->begun_at = o->settling.text.n;
        // Where its first phoneme is by now, which may still move: the padding covers that. No sound is of two items.
        const double start_s = fmax(view->start_s - o->client->config.padding_s, o->item_end_s);
        if (!manual && !o->discards) put_speech(o, "input_audio_buffer.speech_started", "audio_start_ms", start_s);
    }
    o->utterance = is_final ? -1 : view->utterance;
    if (o->discards) return 1;
    if (view->replaced) { // the whole item has it; what was sent of it stays sent
        lin_settling_back(&o->settling, words, o->begun_at);
        o->sent_words = o->sent_phones = 0;
    }
    const lin_result part = new_part(o, view);
    const size_t before = o->settling.text.n;
    if (lin_settling_add(&o->settling, words, &part, is_final, NULL) != LIN_OK) o->lost = "out of memory";
    if (!view->replaced) put_delta(o, before);
    if (!is_final || manual) return 1;
    o->any = 1;
    o->item_end_s = view->processed_s;
    put_speech(o, "input_audio_buffer.speech_stopped", "audio_end_ms", view->processed_s);
    complete(o, view->end_s - view->start_s);
    return 1;
}

static void put_end(lin_outbox *o, int drained)
{
    if (o->discards) {
        lin_settling_begin(&o->settling, &o->client->serve->words);
        add_event(o, "input_audio_buffer.cleared");
        end_event(o, LIN_NOTE_OTHER);
    } else if (o->failure || (!o->any && !drained && !o->settling.text.n && o->seconds <= 0)) {
        lin_buffer_clear(&o->out);
        put_error(&o->out, o->failure ? o->failure : "the buffer that was committed has no sound");
        lin_outbox_add(o, &o->out, LIN_NOTE_OTHER);
    } else if (o->client->config.manual || (!o->any && !drained)) {
        complete(o, o->seconds);
    }
    o->before_s += o->seconds;
    o->utterance = -1;
    o->item_end_s = o->discards = o->any = 0;
}

const lin_protocol lin_protocol_realtime = {.name = "realtime",
                                            .path = "/v1/realtime",
                                            .about = "OpenAI's, transcription sessions: sound and results in JSON events",
                                            .format = LIN_SAMPLES_S16,
                                            .rate_hz = 24000,
                                            .most_text = LIN_REALTIME_BYTES,
                                            .phrases_advise = 1,
                                            .configs_later = 1,
                                            .forgives = 1,
                                            .parse = lin_realtime_parse,
                                            .greet = greet,
                                            .took = took,
                                            .show = show,
                                            .put_end = put_end,
                                            .put_error = put_error};
