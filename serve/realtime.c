// realtime.c - transcription sessions of OpenAI's realtime protocol; see serve.h. Its events are JSON texts, in which sound is
// base64.
//
// With turn detection, the default, an item is an utterance, and the server's --silence-after ends it. Without it, an item is all
// sound before a commit, whatever its pauses. A commit or a clear finishes the engine's stream, so that all earlier sound is
// decoded, and the next sound opens a new one.

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "serve/serve.h"

/* ---- what a client sends --------------------------------------------------------------------------------------------------- */

static int digit(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

long lin_base64_decode(const char *text, size_t n, unsigned char *bytes)
{
    long made = 0;
    if (n % 4) return -1;
    for (size_t at = 0; at < n; at += 4) {
        const int last = at + 4 == n, pads = last ? (text[n - 1] == '=') + (text[n - 1] == '=' && text[n - 2] == '=') : 0;
        unsigned value = 0;
        for (int i = 0; i < 4; i++) {
            const int d = i >= 4 - pads ? 0 : digit(text[at + (size_t)i]);
            if (d < 0) return -1;
            value = value << 6 | (unsigned)d;
        }
        for (int i = 0; i < 3 - pads; i++) bytes[made++] = (unsigned char)(value >> (16 - 8 * i));
    }
    return made;
}

static const cJSON *member(const cJSON *object, const char *key) { return cJSON_GetObjectItemCaseSensitive(object, key); }

static const char *text_of(const cJSON *item) { return cJSON_IsString(item) ? item->valuestring : ""; }

static lin_status take_sound(const cJSON *audio, lin_message *m, lin_error *err)
{
    const char *text = text_of(audio);
    const size_t n = strlen(text);
    unsigned char *sound = lin_alloc(n / 4 * 3 + 1, 1);
    if (!sound) return lin_no_memory(err, "sound", n);
    const long made = cJSON_IsString(audio) ? lin_base64_decode(text, n, sound) : -1;
    if (made < 0) {
        lin_free(sound);
        return lin_fail(err, LIN_INVALID, "audio is not base64 (RFC 4648)");
    }
    lin_free(m->sound);
    m->sound = sound;
    m->n_sound = (size_t)made;
    return LIN_OK;
}

static lin_status take_format(const cJSON *format, lin_message *m, lin_error *err)
{
    const cJSON *rate = member(format, "rate");
    const char *type = cJSON_IsString(format) ? format->valuestring : text_of(member(format, "type"));
    static const struct {
        const char *now, *before; // its name in earlier versions of the protocol
        lin_sample_format format;
        int rate_hz;
    } formats[] = {{"audio/pcm", "pcm16", LIN_SAMPLES_S16, 24000},
                   {"audio/pcmu", "g711_ulaw", LIN_SAMPLES_MULAW, 8000},
                   {"audio/pcma", "g711_alaw", LIN_SAMPLES_ALAW, 8000}};
    size_t i = 0;
    while (*type && i < 3 && strcmp(type, formats[i].now) != 0 && strcmp(type, formats[i].before) != 0) i++;
    if (i == 3) return lin_fail(err, LIN_UNSUPPORTED, "the format of the sound must be audio/pcm, audio/pcmu or audio/pcma");
    if (*type) {
        m->format = formats[i].format;
        m->rate_hz = formats[i].rate_hz;
    }
    const int pcm = m->format == LIN_SAMPLES_S16;
    return rate ? lin_message_int(rate, "rate", pcm ? 4000 : 8000, pcm ? 192000 : 8000, &m->rate_hz, err) : LIN_OK;
}

// Likely phrases, from a prompt and from keywords.
static lin_status take_likely(const cJSON *transcription, lin_message *m, lin_error *err)
{
    const cJSON *keyword, *keywords = member(transcription, "keywords");
    const char *prompt = text_of(member(transcription, "prompt"));
    lin_message_free(m);
    int n = lin_prompt_phrases(prompt, strlen(prompt), &m->phrases);
    cJSON_ArrayForEach(keyword, keywords) n += lin_prompt_phrases(text_of(keyword), strlen(text_of(keyword)), &m->phrases);
    m->n_phrases = n < LIN_MESSAGE_MOST_PHRASES ? n : LIN_MESSAGE_MOST_PHRASES;
    return lin_buffer_status(&m->phrases, err);
}

// Whether the model's language is among those of the configuration, or there are none.
static int has_language(const cJSON *transcription, const char *language)
{
    const char *one = text_of(member(transcription, "language"));
    const cJSON *item;
    int asked = *one != 0, fits = asked && lin_language_is(one, language);
    cJSON_ArrayForEach(item, member(transcription, "languages"))
    {
        if (!*text_of(item)) continue;
        asked = 1;
        fits |= lin_language_is(text_of(item), language);
    }
    return fits || !asked;
}

static lin_status take_turns(const cJSON *turns, lin_message *m, lin_error *err)
{
    const cJSON *padding = member(turns, "prefix_padding_ms");
    double ms = m->padding_s * 1000;
    if (turns) m->manual = !cJSON_IsObject(turns);
    if (cJSON_IsNumber(padding)) LIN_TRY(lin_message_number(padding, "prefix_padding_ms", 0, 60000, 0, &ms, err));
    if (cJSON_IsNumber(padding)) m->padding_s = ms / 1000;
    return LIN_OK;
}

// Refuses values of the wrong type: ignored, they would leave the client waiting. null counts as absent.
static lin_status check_types(const cJSON *session, const cJSON *format, const cJSON *transcription, const cJSON *turns,
                              lin_error *err)
{
    const cJSON *audio = member(session, "audio");
    const struct {
        const cJSON *item;
        int types;
        const char *name, *wanted;
    } values[] = {{audio, cJSON_Object, "audio", "an object"},
                  {member(audio, "input"), cJSON_Object, "audio.input", "an object"},
                  {format, cJSON_Object | cJSON_String, "the format", "an object with a type"},
                  {member(format, "type"), cJSON_String, "the type of the format", "a text"},
                  {turns, cJSON_Object, "turn_detection", "an object or null"},
                  {member(turns, "prefix_padding_ms"), cJSON_Number, "prefix_padding_ms", "a number from 0 to 60000"},
                  {transcription, cJSON_Object, "transcription", "an object"},
                  {member(transcription, "language"), cJSON_String, "language", "a text"},
                  {member(transcription, "languages"), cJSON_Array, "languages", "a list of texts"},
                  {member(transcription, "prompt"), cJSON_String, "prompt", "a text"},
                  {member(transcription, "keywords"), cJSON_Array, "keywords", "a list of texts"}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (values[i].item && !(values[i].item->type & (values[i].types | cJSON_NULL)))
            return lin_fail(err, LIN_INVALID, "%s must be %s", values[i].name, values[i].wanted);
    }
    return LIN_OK;
}

// Reads the present form and that of earlier versions of the protocol, without audio.input. On failure nothing changes: an error
// is sent, and the session continues.
static lin_status take_session(const cJSON *session, lin_message *m, lin_error *err)
{
    const cJSON *input = member(member(session, "audio"), "input"), *format = member(input, "format"),
                *transcription = member(input, "transcription"), *turns = member(input, "turn_detection");
    if (!cJSON_IsObject(session)) return lin_fail(err, LIN_FORMAT, "session is not an object");
    if (!strcmp(text_of(member(session, "type")), "realtime"))
        return lin_fail(err, LIN_UNSUPPORTED, "the type of a session must be transcription: this server does not speak");
    if (!input) {
        format = member(session, "input_audio_format");
        transcription = member(session, "input_audio_transcription");
        turns = member(session, "turn_detection");
    }
    lin_message next = *m;
    LIN_TRY(check_types(session, format, transcription, turns, err));
    if (!has_language(transcription, m->language))
        return lin_fail(err, LIN_UNSUPPORTED, "the model has another language: leave language out");
    LIN_TRY(take_turns(turns, &next, err));
    if (format) LIN_TRY(take_format(format, &next, err));
    next.advises = cJSON_IsObject(transcription);
    if (next.advises) LIN_TRY(take_likely(transcription, m, err));
    next.phrases = m->phrases;
    next.n_phrases = m->n_phrases;
    next.sound = m->sound;
    next.n_sound = m->n_sound;
    *m = next;
    return LIN_OK;
}

// session.update or transcription_session.update, of which format, language, languages, prompt, keywords, turn_detection and its
// prefix_padding_ms are used; and input_audio_buffer.append, .commit and .clear.
static lin_status realtime_parse(const char *text, size_t n, lin_message *m, lin_error *err)
{
    cJSON *json = NULL;
    m->event_id[0] = 0;
    m->advises = 0;
    lin_status status = lin_json_parse(text, n, "the event", 0, &json, err);
    if (status != LIN_OK) return status;
    const char *type = text_of(member(json, "type")), *id = text_of(member(json, "event_id"));
    if (strlen(id) < sizeof m->event_id) strcpy(m->event_id, id);
    if (!strcmp(type, "session.update") || !strcmp(type, "transcription_session.update")) {
        m->kind = LIN_MESSAGE_CONFIG;
        status = take_session(member(json, "session"), m, err);
    } else if (!strcmp(type, "input_audio_buffer.append")) {
        m->kind = LIN_MESSAGE_SOUND;
        status = take_sound(member(json, "audio"), m, err);
    } else if (!strcmp(type, "input_audio_buffer.commit")) {
        m->kind = LIN_MESSAGE_RESET;
    } else if (!strcmp(type, "input_audio_buffer.clear")) {
        m->kind = LIN_MESSAGE_CLEAR;
    } else {
        status =
            lin_fail(err, LIN_INVALID, "this server knows session.update and input_audio_buffer.append, .commit and .clear only");
    }
    cJSON_Delete(json);
    return status;
}

/* ---- the session ----------------------------------------------------------------------------------------------------------- */

static atomic_ullong n_events, n_sessions; // no two have the same id

static void put_event(lin_buffer *out, const char *type)
{
    lin_buffer_json_format(out, "{'type':%s", type);
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
                      c->out.session, format, m->rate_hz);
    lin_buffer_json_format(out, ",'language':%s},'noise_reduction':null,'turn_detection':", c->serve->language);
    if (m->manual) lin_buffer_text(out, "null}}}}");
    else lin_buffer_format(out, "{\"type\":\"server_vad\",\"prefix_padding_ms\":%.0f}}}}}", m->padding_s * 1000);
}

static void realtime_put_mistake(lin_buffer *out, const lin_message *m, const char *message)
{
    put_event(out, "error");
    lin_buffer_json_format(out, ",'error':{'type':'invalid_request_error','message':%s,'code':null,'param':null", message);
    if (m && *m->event_id) lin_buffer_json_format(out, ",'event_id':%s}}", m->event_id);
    else lin_buffer_text(out, ",\"event_id\":null}}");
}

static void realtime_put_error(lin_buffer *out, const char *message) { realtime_put_mistake(out, NULL, message); }

static void realtime_greet(lin_client *c, lin_buffer *out)
{
    c->out.session = atomic_fetch_add(&n_sessions, 1) + 1;
    put_session(out, c, "session.created");
}

static void realtime_acknowledge(lin_client *c, const lin_message *m, lin_buffer *out)
{
    const lin_message *now = &c->config; // m, before the first sound
    const int changes = m->format != now->format || m->rate_hz != now->rate_hz || m->manual != now->manual;
    if (m->kind == LIN_MESSAGE_CLEAR) c->out.discards = 1;
    if (m->kind == LIN_MESSAGE_RESET && m != now) strcpy(c->config.event_id, m->event_id); // for the error of an empty commit
    if (m->kind != LIN_MESSAGE_CONFIG) return;
    if (changes)
        realtime_put_mistake(out, m, "the format and turn_detection of a session cannot change after its first sound");
    else put_session(out, c, "session.updated");
}

/* ---- items ----------------------------------------------------------------------------------------------------------------- */

static void end_event(lin_outbox *o, lin_buffer *out, lin_note_kind kind)
{
    lin_buffer_char(out, '}');
    lin_outbox_add(o, out, kind);
}

static void put_item(lin_buffer *out, const char *key, int item)
{
    if (item) lin_buffer_format(out, ",\"%s\":\"item_%d\"", key, item);
    else lin_buffer_format(out, ",\"%s\":null", key);
}

static void put_delta(lin_outbox *o, size_t from)
{
    lin_buffer out = {0};
    if (o->settling.text.n <= from) return;
    put_event(&out, "conversation.item.input_audio_transcription.delta");
    put_item(&out, "item_id", o->n_items + 1);
    lin_buffer_json_format(&out, ",'content_index':0,'delta':%s", o->settling.text.data + from);
    end_event(o, &out, LIN_NOTE_OTHER);
}

// Completes an item: its sound has ended, and its text is final.
static void complete(lin_outbox *o, double seconds)
{
    const int item = ++o->n_items;
    lin_buffer out = {0};
    put_event(&out, "input_audio_buffer.committed");
    put_item(&out, "previous_item_id", item - 1);
    put_item(&out, "item_id", item);
    end_event(o, &out, LIN_NOTE_OTHER);
    static const char *const whole[] = {"conversation.item.added", "conversation.item.done"};
    for (int i = 0; i < 2; i++) {
        put_event(&out, whole[i]);
        put_item(&out, "previous_item_id", item - 1);
        lin_buffer_format(&out,
                          ",\"item\":{\"id\":\"item_%d\",\"type\":\"message\",\"object\":\"realtime.item\",\"role\":\"user\","
                          "\"status\":\"completed\",\"content\":[{\"type\":\"input_audio\",\"transcript\":null}]}",
                          item);
        end_event(o, &out, LIN_NOTE_OTHER);
    }
    put_event(&out, "conversation.item.input_audio_transcription.completed");
    put_item(&out, "item_id", item);
    lin_buffer_json_format(&out, ",'content_index':0,'transcript':%s,'usage':{'type':'duration','seconds':%.3f}",
                           lin_text_of(&o->settling.text), seconds);
    end_event(o, &out, LIN_NOTE_FINAL);
    lin_settling_begin(&o->settling, &o->client->serve->live.words);
}

// The settled part that was not sent yet.
static lin_result new_part(lin_outbox *o, const lin_session_view *view)
{
    lin_result part = *view->settled;
    const int words = o->sent_words < part.n_words ? o->sent_words : part.n_words,
              phones = part.has_words ? 0 : o->sent_phones < part.n_phones ? o->sent_phones : part.n_phones;
    part.words = part.words ? part.words + words : NULL; // points into the view's words; the phones are the same
    part.n_words -= words;
    part.phones = part.phones ? part.phones + phones : NULL;
    part.n_phones -= phones;
    o->sent_words = view->settled->n_words;
    o->sent_phones = view->settled->n_phones;
    return part;
}

static void put_speech(lin_outbox *o, const char *type, const char *key, double seconds)
{
    lin_buffer out = {0};
    put_event(&out, type);
    lin_buffer_json_format(&out, ",%s:%lld", key, (long long)((o->before_s + seconds) * 1000 + 0.5));
    put_item(&out, "item_id", o->n_items + 1);
    end_event(o, &out, LIN_NOTE_OTHER);
}

static int realtime_show(lin_outbox *o, const lin_session_view *view)
{
    const lin_writer_options *words = &o->client->serve->live.words;
    const int manual = o->client->config.manual, is_final = view->end != LINNET_GROWS,
              is_known = o->utterance == view->utterance;
    if (!is_final && !view->settled->n_phones && !view->provisional->n_phones) { // it was taken back: there will be no item
        if (is_known && !manual && !o->discards)
            put_speech(o, "input_audio_buffer.speech_stopped", "audio_end_ms", view->processed_s);
        o->utterance = -1;
        return 1;
    }
    if (!is_known) {
        o->sent_words = o->sent_phones = 0;
        o->begun_at = o->settling.text.n;
        // The first phoneme may still move a little, within the padding. Items do not overlap.
        const double start_s = fmax(view->start_s - o->client->config.padding_s, o->item_end_s);
        if (!manual && !o->discards) put_speech(o, "input_audio_buffer.speech_started", "audio_start_ms", start_s);
    }
    o->utterance = is_final ? -1 : view->utterance;
    if (o->discards) return 1;
    if (view->replaced) { // the completed item has the new text; deltas that were sent stay
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
    lin_buffer out = {0};
    char cut[LIN_CUT_TEXT];
    const int failed = o->failure.status != LIN_OK;
    if (o->discards) {
        lin_settling_begin(&o->settling, &o->client->serve->live.words);
        put_event(&out, "input_audio_buffer.cleared");
        end_event(o, &out, LIN_NOTE_OTHER);
    } else if (failed || (!o->any && !drained && !o->settling.text.n && o->seconds <= 0)) {
        realtime_put_mistake(&out, failed ? NULL : &o->client->config,
                             failed ? o->failure.message : "the buffer that was committed has no sound");
        lin_outbox_add(o, &out, LIN_NOTE_OTHER);
    } else if (o->client->config.manual || (!o->any && !drained)) {
        complete(o, o->seconds);
    }
    if (o->cut && !o->discards) {
        realtime_put_mistake(&out, &o->client->config, lin_cut_text(o->cut, cut));
        lin_outbox_add(o, &out, LIN_NOTE_OTHER);
    }
    o->before_s += o->seconds;
    o->utterance = -1;
    o->item_end_s = o->discards = o->any = 0;
}

const lin_protocol lin_protocol_realtime = {.path = "/v1/realtime",
                                            .about = "OpenAI's, transcription sessions: sound and results in JSON events",
                                            .format = LIN_SAMPLES_S16,
                                            .rate_hz = 24000,
                                            .most_text = LIN_REALTIME_BYTES,
                                            .phrases_advise = 1,
                                            .configs_later = 1,
                                            .parse = realtime_parse,
                                            .greet = realtime_greet,
                                            .acknowledge = realtime_acknowledge,
                                            .show = realtime_show,
                                            .put_end = realtime_put_end,
                                            .put_error = realtime_put_error,
                                            .put_mistake = realtime_put_mistake};
