// protocols.c - the protocols of WebSockets, each with what its messages say and what a view of the stream becomes; see
// protocols.h.

#include "serve/protocols.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "base/system.h"

/* ---- vosk-server's --------------------------------------------------------------------------------------------------------- */

// vosk-server's protocol of WebSockets.
//
// Each binary message has one answer: what is provisional, or an utterance that has ended since. The end, and a reset, have one
// with all that was not said yet.

static char *text_of(const lin_buffer *b) { return lin_strdup(b->data ? b->data : ""); }

static void keep_said(lin_outbox *o, const lin_session_view *view)
{
    const lin_message *config = &o->client->config;
    const lin_live_words *words = &o->client->serve->live.words;
    lin_said *said = lin_calloc(1, sizeof *said);
    if (!said) {
        o->lost = "out of memory";
        return;
    }
    lin_buffer *const text = &o->texts.settled, *const items = &o->texts.open;
    lin_buffer_clear(text);
    lin_buffer_clear(items);
    lin_live_put_text(text, words, view->settled, 0, NULL);
    if (config->alternatives) lin_vosk_put_alternatives(items, words, view->settled, config->alternatives, config->words);
    else lin_vosk_put_items(items, words, view->settled);
    said->text = text_of(text);
    said->items = text_of(items);
    const int whole = lin_buffer_status(text, NULL) == LIN_OK && lin_buffer_status(items, NULL) == LIN_OK;
    if (!said->text || !said->items || !whole) {
        o->lost = "out of memory";
        lin_said_free(said);
        return;
    }
    *o->said_last = said;
    o->said_last = &said->next;
    o->n_said += text->n + items->n;
    if (o->n_said > LIN_MOST_SAID) o->lost = "too many results wait for the end of a message";
}

static int vosk_show(lin_outbox *o, const lin_session_view *view)
{
    const lin_serve *s = o->client->serve;
    lin_buffer_clear(&o->partial);
    if (view->end != LINNET_GROWS) {
        keep_said(o, view);
        return 1;
    }
    lin_live_put_text(&o->partial, &s->live.words, view->settled, 0, NULL);
    const size_t n = o->partial.n;
    if (n) lin_buffer_char(&o->partial, ' ');
    // A word of which only the first phones are known is no word for Vosk's clients.
    lin_result open = *view->provisional;
    if (view->incomplete && open.n_words) open.n_words--;
    lin_live_put_text(&o->partial, &s->live.words, &open, 0, NULL);
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

static void vosk_answer(lin_outbox *o)
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

static void vosk_put_end(lin_outbox *o, int drained)
{
    (void)drained;
    for (; o->owed > 0; o->owed--) vosk_answer(o);
    put_said(o, 1 << 30);
}

static void vosk_put_error(lin_buffer *out, const char *message)
{
    lin_buffer_char(out, '{');
    lin_buffer_member_text(out, "error", message);
    lin_buffer_char(out, '}');
}

static const lin_protocol vosk = {.path = "/vosk",
                                        .about = "vosk-server's: s16le, an answer to each message",
                                        .format = LIN_SAMPLES_S16,
                                        .phrases_advise = 1,
                                        .configs_later = 1,
                                        .parse = lin_message_parse_vosk,
                                        .show = vosk_show,
                                        .answer = vosk_answer,
                                        .put_end = vosk_put_end,
                                        .put_error = vosk_put_error};

/* ---- sherpa-onnx's --------------------------------------------------------------------------------------------------------- */

// the protocol of sherpa-onnx's online WebSocket server.
//
// A client sends samples of 32-bit floats, then the text Done (any other means nothing); it gets a JSON object whenever an
// utterance has changed, and in the end the text Done!. A token is a word with the blank before it, or a phoneme; times count
// from start_time on.

static lin_status sherpa_parse(const char *text, size_t n, lin_message *m, lin_error *err)
{
    (void)err;
    m->kind = n == 4 && memcmp(text, "Done", 4) == 0 ? LIN_MESSAGE_EOF : LIN_MESSAGE_CONFIG; // which says nothing
    return LIN_OK;
}

// One of the lists, of the items of both results; a last word that goes on is left out.
static void put_list(lin_buffer *out, const char *key, const lin_live_words *words, const lin_session_view *view, int times)
{
    const lin_result *const parts[] = {view->settled, view->provisional};
    int any = 0;
    lin_buffer text = {0};
    lin_buffer_key(out, key);
    lin_buffer_char(out, '[');
    for (int i = 0; i < 2; i++) {
        const lin_result *r = parts[i];
        const int n = lin_result_items(r) - (i == 1 && view->incomplete && r->has_words && r->n_words > 0);
        for (int k = 0; k < n; k++, any = 1) {
            if (any) lin_buffer_char(out, ',');
            if (times) {
                lin_buffer_fixed(out, lin_result_item_start(r, k) - view->start_s, 3);
                continue;
            }
            lin_buffer_clear(&text);
            if (any) lin_buffer_char(&text, ' ');
            lin_result_item_text(&text, words, r, k);
            lin_buffer_json(out, text.data ? text.data : "", text.n);
        }
    }
    lin_buffer_char(out, ']');
    if (text.failed) out->failed = text.failed;
    lin_buffer_free(&text);
}

// segment: counted from 0. The text is that of the tokens.
static void put_result(lin_buffer *out, const lin_live_words *words, const lin_session_view *view, const char *text, int segment)
{
    const int is_final = view->end != LINNET_GROWS;
    lin_buffer_char(out, '{');
    lin_buffer_member_text(out, "text", text);
    put_list(out, "tokens", words, view, 0);
    put_list(out, "timestamps", words, view, 1);
    lin_buffer_text(out, ",\"ys_probs\":[],\"lm_probs\":[],\"context_scores\":[],\"words\":[]");
    lin_buffer_member_integer(out, "segment", segment);
    lin_buffer_member_fixed(out, "start_time", view->start_s, 3);
    lin_buffer_text(out, is_final ? ",\"is_final\":true" : ",\"is_final\":false");
    lin_buffer_text(out, view->end == LINNET_FINISHED ? ",\"is_eof\":true}" : ",\"is_eof\":false}");
}

static int sherpa_show(lin_outbox *o, const lin_session_view *view)
{
    const lin_live_words *words = &o->client->serve->live.words;
    const int is_final = view->end != LINNET_GROWS;
    if (!is_final && o->n_queued > LIN_QUEUED_PARTIALS) return 0;
    lin_result open = *view->provisional;
    if (view->incomplete && open.n_words) open.n_words--;
    lin_buffer_clear(&o->texts.settled);
    lin_buffer_clear(&o->texts.open);
    lin_buffer_clear(&o->out);
    if (lin_live_put_text(&o->texts.settled, words, view->settled, 0, NULL) != LIN_OK ||
        lin_live_put_text(&o->texts.open, words, &open, 0, NULL) != LIN_OK) {
        if (is_final) o->lost = "out of memory";
        return 1;
    }
    if (o->texts.settled.n && o->texts.open.n) lin_buffer_char(&o->texts.settled, ' ');
    lin_buffer_bytes(&o->texts.settled, o->texts.open.data ? o->texts.open.data : "", o->texts.open.n);
    put_result(&o->out, words, view, o->texts.settled.data ? o->texts.settled.data : "", view->utterance - 1);
    lin_outbox_add(o, &o->out, is_final ? LIN_NOTE_FINAL : LIN_NOTE_PARTIAL);
    return 1;
}

// There is no message for failures: its clients show any text.
static void sherpa_put_error(lin_buffer *out, const char *message)
{
    lin_buffer_text(out, "{\"text\":\"\"");
    lin_buffer_member_text(out, "error", message);
    lin_buffer_char(out, '}');
}

static void sherpa_put_end(lin_outbox *o, int drained)
{
    (void)drained;
    lin_buffer_clear(&o->out);
    if (o->failure) {
        sherpa_put_error(&o->out, o->failure);
        lin_outbox_add(o, &o->out, LIN_NOTE_OTHER);
    }
    lin_buffer_text(&o->out, "Done!");
    lin_outbox_add(o, &o->out, LIN_NOTE_OTHER);
}

static const lin_protocol sherpa = {.path = "/sherpa-onnx",
                                          .about = "that of sherpa-onnx's online server: f32le, Done",
                                          .format = LIN_SAMPLES_F32,
                                          .configs_later = 1,
                                          .parse = sherpa_parse,
                                          .show = sherpa_show,
                                          .put_end = sherpa_put_end,
                                          .put_error = sherpa_put_error};

/* ---- linnet's own ---------------------------------------------------------------------------------------------------------- */

// linnet's own protocol of WebSockets (docs/serve.md): the lines of linnet listen --json.

static void linnet_put_begin(const lin_client *c, lin_buffer *out)
{
    const lin_serve *s = c->serve;
    const char *model = s->live.recognizer.model->name;
    lin_live_put_begin(out, &(lin_live_begin){"stream", model ? model : "", (int)c->config.rate_hz, c->config.channels,
                                              lin_session_construction(&s->live.recognizer)});
    if (out->n) out->n--;
}

// 0: a provisional result was left out, because its reader is slow.
static int linnet_show(lin_outbox *o, const lin_session_view *view)
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
    lin_buffer_clear(&o->out);
    if (lin_live_spell(&o->texts, &s->live.words, &now, o->client->config.readable, NULL) != LIN_OK) {
        if (final) o->lost = "out of memory";
        return 1;
    }
    lin_live_put_json(&o->out, &s->live.words, &now, &o->texts, lin_now() - (o->sound_at - (o->sound_s - view->end_s)));
    if (o->out.n) o->out.n--; // its line end
    lin_outbox_add(o, &o->out, final ? LIN_NOTE_FINAL : LIN_NOTE_PARTIAL);
    o->sent_phones = view->settled->n_phones;
    o->sent_words = view->settled->n_words;
    return 1;
}

static void linnet_put_end(lin_outbox *o, int drained)
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

static void linnet_put_error(lin_buffer *out, const char *message)
{
    lin_buffer_text(out, "{\"type\":\"error\"");
    lin_buffer_member_text(out, "message", message);
    lin_buffer_char(out, '}');
}

static const lin_protocol linnet = {.path = "/v1/stream",
                                          .about = "linnet's: settled and provisional words and phonemes, phrases, saved streams",
                                          .format = LIN_SAMPLES_S16,
                                          .parse = lin_message_parse,
                                          .put_begin = linnet_put_begin,
                                          .show = linnet_show,
                                          .put_end = linnet_put_end,
                                          .put_error = linnet_put_error};

/* ---- OpenAI's realtime protocol -------------------------------------------------------------------------------------------- */

// transcription sessions of OpenAI's realtime protocol. Its events are JSON texts,
// in which sound is base64.
//
// With turn detection, which is on unless a session has none, an item is an utterance, and the pauses that end one are the
// server's. Without it an item is what came before a commit, whatever the pauses. A commit and a clear end the engine's stream:
// all that was sent before has then been decoded, and the next sound begins a new one.

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
                      c->out.session, format, (int)m->rate_hz);
    lin_buffer_member_text(out, "language", c->serve->language);
    lin_buffer_text(out, "},\"noise_reduction\":null,\"turn_detection\":");
    if (m->manual) lin_buffer_text(out, "null}}}}");
    else lin_buffer_format(out, "{\"type\":\"server_vad\",\"prefix_padding_ms\":%.0f}}}}}", m->padding_s * 1000);
}

static void realtime_put_error(lin_buffer *out, const char *message)
{
    put_event(out, "error");
    lin_buffer_text(out, ",\"error\":{\"type\":\"invalid_request_error\"");
    lin_buffer_member_text(out, "message", message);
    lin_buffer_text(out, ",\"code\":null,\"param\":null,\"event_id\":null}}");
}

static void realtime_greet(lin_client *c, lin_buffer *out)
{
    c->out.session = atomic_fetch_add(&n_sessions, 1) + 1;
    put_session(out, c, "session.created");
}

static void realtime_took(lin_client *c, const lin_message *m, lin_buffer *out)
{
    const lin_message *now = &c->config; // m, before the first sound
    const int changes = m->format != now->format || m->rate_hz != now->rate_hz || m->manual != now->manual;
    if (m->kind == LIN_MESSAGE_CLEAR) lin_outbox_discard(&c->out);
    if (m->kind != LIN_MESSAGE_CONFIG) return;
    if (!c->serve->v->decoding.words) lin_message_free(&c->config); // a prompt is advice, which phonemes do not use
    if (!lin_language_is_among(m->languages, c->serve->language))
        realtime_put_error(out, "the model has another language: leave language out");
    else if (changes) realtime_put_error(out, "the format and turn_detection of a session cannot change after its first sound");
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
    lin_settling_begin(&o->settling, &o->client->serve->live.words);
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

static int realtime_show(lin_outbox *o, const lin_session_view *view)
{
    const lin_live_words *words = &o->client->serve->live.words;
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

static void realtime_put_end(lin_outbox *o, int drained)
{
    if (o->discards) {
        lin_settling_begin(&o->settling, &o->client->serve->live.words);
        add_event(o, "input_audio_buffer.cleared");
        end_event(o, LIN_NOTE_OTHER);
    } else if (o->failure || (!o->any && !drained && !o->settling.text.n && o->seconds <= 0)) {
        lin_buffer_clear(&o->out);
        realtime_put_error(&o->out, o->failure ? o->failure : "the buffer that was committed has no sound");
        lin_outbox_add(o, &o->out, LIN_NOTE_OTHER);
    } else if (o->client->config.manual || (!o->any && !drained)) {
        complete(o, o->seconds);
    }
    o->before_s += o->seconds;
    o->utterance = -1;
    o->item_end_s = o->discards = o->any = 0;
}

static const lin_protocol realtime = {.path = "/v1/realtime",
                                            .about = "OpenAI's, transcription sessions: sound and results in JSON events",
                                            .format = LIN_SAMPLES_S16,
                                            .rate_hz = 24000,
                                            .most_text = LIN_REALTIME_BYTES,
                                            .phrases_advise = 1,
                                            .configs_later = 1,
                                            .forgives = 1,
                                            .parse = lin_realtime_parse,
                                            .greet = realtime_greet,
                                            .took = realtime_took,
                                            .show = realtime_show,
                                            .put_end = realtime_put_end,
                                            .put_error = realtime_put_error};

/* ---- the table ------------------------------------------------------------------------------------------------------------- */

static const lin_protocol *const protocols[] = {&vosk, &sherpa, &linnet,
                                               &realtime};

enum { PROTOCOLS = sizeof protocols / sizeof *protocols };

const lin_protocol *lin_protocol_at(int number) { return number >= 0 && number < PROTOCOLS ? protocols[number] : NULL; }

const lin_protocol *lin_protocol_find(const char *path, int root)
{
    if (!strcmp(path, "/")) return lin_protocol_at(root);
    for (int i = 0; i < PROTOCOLS; i++) {
        if (!strcmp(path, protocols[i]->path)) return protocols[i];
    }
    return NULL;
}
