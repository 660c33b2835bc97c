// protocols.c - the protocols of WebSockets: how each parses messages and writes views of the stream; see serve.h. OpenAI's
// realtime protocol is in serve/realtime.c.

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/system.h"
#include "frontend/audio.h"
#include "serve/serve.h"

/* ---- messages -------------------------------------------------------------------------------------------------------------- */

lin_message lin_message_default(int rate_hz)
{
    return (lin_message){
        .rate_hz = rate_hz, .channels = 1, .words = 1, .partials = 1, .padding_s = 0.3, .language = "und"};
}

void lin_message_free(lin_message *m)
{
    lin_buffer_free(&m->phrases);
    lin_free(m->sound);
    m->sound = NULL;
    m->n_sound = 0;
    m->n_phrases = 0;
}

size_t lin_sample_width(lin_sample_format format) { return format == LIN_SAMPLES_S16 ? 2 : format == LIN_SAMPLES_F32 ? 4 : 1; }

static void decode(lin_sample_format format, const unsigned char *b, size_t n, float *samples)
{
    static const lin_pcm_encoding encodings[] = {[LIN_SAMPLES_S16] = LIN_PCM_S16LE, [LIN_SAMPLES_F32] = LIN_PCM_F32LE,
                                                 [LIN_SAMPLES_MULAW] = LIN_PCM_MULAW, [LIN_SAMPLES_ALAW] = LIN_PCM_ALAW};
    lin_pcm_decode(encodings[format], b, n, samples);
    for (size_t i = 0; format == LIN_SAMPLES_F32 && i < n; i++)
        samples[i] = isfinite(samples[i]) ? fminf(fmaxf(samples[i], -8), 8) : 0;
}

size_t lin_samples_take(lin_sample_format format, const void *bytes, size_t n, lin_sample_rest *rest, float *floats)
{
    const unsigned char *at = bytes, *const end = at + n;
    const size_t width = lin_sample_width(format);
    size_t made = 0;
    while (rest->n && at < end) {
        rest->bytes[rest->n++] = *at++;
        if ((size_t)rest->n < width) continue;
        decode(format, rest->bytes, 1, floats + made++);
        rest->n = 0;
    }
    const size_t whole = (size_t)(end - at) / width;
    decode(format, at, whole, floats + made);
    for (at += whole * width; at < end;) rest->bytes[rest->n++] = *at++;
    return made + whole;
}

const char *lin_cut_text(size_t n, char text[LIN_CUT_TEXT])
{
    text[0] = 0;
    if (n == 1) snprintf(text, LIN_CUT_TEXT, "the sound breaks off: its last byte is left out");
    if (n > 1) snprintf(text, LIN_CUT_TEXT, "the sound breaks off: its last %zu bytes are left out", n);
    return text;
}

/* ---- values of messages in JSON -------------------------------------------------------------------------------------------- */

lin_status lin_message_number(const cJSON *item, const char *name, double least, double most, int whole, double *value,
                              lin_error *err)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= least && item->valuedouble <= most) ||
        (whole && item->valuedouble != floor(item->valuedouble)))
        return lin_fail(err, LIN_INVALID, "%s must be a%s number from %.10g to %.10g", name, whole ? " whole" : "", least, most);
    *value = item->valuedouble;
    return LIN_OK;
}

lin_status lin_message_int(const cJSON *item, const char *name, int least, int most, int *value, lin_error *err)
{
    double number = *value;
    LIN_TRY(lin_message_number(item, name, least, most, 1, &number, err));
    *value = (int)number;
    return LIN_OK;
}

static lin_status take_flag(const cJSON *item, const char *name, int *value, lin_error *err)
{
    if (!cJSON_IsBool(item) && !cJSON_IsNumber(item)) return lin_fail(err, LIN_INVALID, "%s must be true or false", name);
    *value = cJSON_IsTrue(item) || (cJSON_IsNumber(item) && item->valuedouble != 0);
    return LIN_OK;
}

static lin_status take_phrases(const cJSON *list, lin_message *m, lin_error *err)
{
    const int n = cJSON_GetArraySize(list);
    if (!cJSON_IsArray(list) || n > LIN_MESSAGE_MOST_PHRASES)
        return lin_fail(err, LIN_INVALID, "%s must be a list of at most %d texts", list ? list->string : "phrases",
                        (int)LIN_MESSAGE_MOST_PHRASES);
    lin_message_free(m);
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        if (!cJSON_IsString(item)) return lin_fail(err, LIN_INVALID, "a phrase must be a text");
        lin_buffer_bytes(&m->phrases, item->valuestring, strlen(item->valuestring) + 1);
        m->n_phrases++;
    }
    return lin_buffer_status(&m->phrases, err);
}

static lin_status open_object(const char *text, size_t n, cJSON **json, lin_error *err)
{
    *json = NULL;
    LIN_TRY(lin_json_parse(text, n, "the message", 0, json, err));
    if (cJSON_IsObject(*json)) return LIN_OK;
    cJSON_Delete(*json);
    return lin_fail(err, LIN_FORMAT, "the message is not a JSON object");
}

/* ---- items: words, or phones where words were not looked for --------------------------------------------------------------- */

void lin_result_item_text(lin_buffer *text, const lin_writer_options *words, const lin_result *r, int i)
{
    const lin_tokens tokens = lin_tokens_only(r, words, r->has_words);
    lin_token_spell(&tokens, i, text);
}

// The settled and provisional text, without a last word that is incomplete: clients of other servers expect whole words.
static lin_status put_growing(lin_buffer *out, const lin_writer_options *words, const lin_session_view *view)
{
    LIN_TRY(lin_live_put_text(out, words, view->settled, 0, NULL));
    const size_t n = out->n;
    if (n) lin_buffer_char(out, ' ');
    lin_result open = *view->provisional;
    if (view->incomplete && open.n_words) open.n_words--;
    LIN_TRY(lin_live_put_text(out, words, &open, 0, NULL));
    if (n && out->n == n + 1) out->data[--out->n] = 0;
    return LIN_OK;
}

/* ---- vosk-server's --------------------------------------------------------------------------------------------------------- */

// Each binary message has one answer: the provisional text, or an utterance that has ended since. The end and a reset have one
// with all utterances that were not sent yet.

// A number, or a string of one: Vosk's float() and int() in Python take both.
static lin_status take_number_or_text(const cJSON *item, const char *name, int least, int most, int *value, lin_error *err)
{
    char *end = NULL;
    if (!cJSON_IsString(item)) return lin_message_int(item, name, least, most, value, err);
    const double number = strtod(item->valuestring, &end);
    if (end == item->valuestring || *end) return lin_message_int(NULL, name, least, most, value, err);
    return lin_message_int(&(cJSON){.type = cJSON_Number, .valuedouble = number}, name, least, most, value, err);
}

static lin_status take_vosk_config(const cJSON *config, lin_message *m, lin_error *err)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, config)
    {
        const char *key = item->string;
        if (cJSON_IsNull(item)) continue;
        if (!strcmp(key, "sample_rate")) LIN_TRY(take_number_or_text(item, key, 4000, 192000, &m->rate_hz, err));
        if (!strcmp(key, "words") && cJSON_IsString(item)) // as Python's bool(): any string but an empty one is true
            m->words = *item->valuestring != 0;
        else if (!strcmp(key, "words")) LIN_TRY(take_flag(item, key, &m->words, err));
        if (!strcmp(key, "max_alternatives")) // any number: there are no more than --n-best
            LIN_TRY(take_number_or_text(item, key, 0, INT_MAX, &m->alternatives, err));
        if (!strcmp(key, "phrase_list")) LIN_TRY(take_phrases(item, m, err)); // "[unk]" stands for all other words
    }
    return LIN_OK;
}

// {"config": {...}}, {"eof": 1}, {"reset": 1}. Keys that are not known are ignored, as Vosk does.
static lin_status vosk_parse(const char *text, size_t n, lin_message *m, lin_error *err)
{
    cJSON *json;
    lin_status status = open_object(text, n, &json, err);
    if (status != LIN_OK) return status;
    const cJSON *config = cJSON_GetObjectItemCaseSensitive(json, "config");
    if (config) {
        m->kind = LIN_MESSAGE_CONFIG;
        status = cJSON_IsObject(config) ? take_vosk_config(config, m, err) : lin_fail(err, LIN_FORMAT, "config is not an object");
    } else if (cJSON_GetObjectItemCaseSensitive(json, "eof")) {
        m->kind = LIN_MESSAGE_EOF;
    } else if (cJSON_GetObjectItemCaseSensitive(json, "reset")) {
        m->kind = LIN_MESSAGE_RESET;
    } else {
        status = lin_fail(err, LIN_INVALID, "a message must have config, eof or reset");
    }
    cJSON_Delete(json);
    return status;
}

void lin_vosk_put_items(lin_buffer *out, const lin_writer_options *words, const lin_result *r)
{
    lin_buffer text = {0};
    for (int i = 0; i < lin_result_items(r); i++) {
        const lin_item item = lin_result_item(r, i);
        lin_buffer_clear(&text);
        lin_result_item_text(&text, words, r, i);
        if (i) lin_buffer_char(out, ',');
        lin_buffer_json_format(out, "{'conf':%.6f,'end':%.3f,'start':%.3f,'word':%s}", item.confidence, item.end_s, item.start_s,
                               lin_text_of(&text));
    }
    lin_scratch_free(&text, out);
}

static double mean_confidence(const lin_result *r)
{
    double sum = 0;
    for (int i = 0; i < lin_result_items(r); i++) sum += lin_result_item(r, i).confidence;
    return lin_result_items(r) ? sum / lin_result_items(r) : 0;
}

void lin_vosk_put_alternatives(lin_buffer *out, const lin_writer_options *words, const lin_result *r, int n, int with_items)
{
    lin_buffer text = {0};
    const int there = r->n_alternatives < n ? r->n_alternatives : n;
    lin_buffer_text(out, "{\"alternatives\":[");
    for (int i = 0; i < there || i == 0; i++) {
        const lin_result *a = there ? &r->alternatives[i] : r;
        lin_buffer_clear(&text);
        if (lin_live_put_text(&text, words, a, 0, NULL) != LIN_OK) break;
        lin_buffer_json_format(out, i ? ",{'confidence':%.6f" : "{'confidence':%.6f", mean_confidence(a));
        if (with_items) {
            lin_buffer_json_format(out, ",'result':[");
            lin_vosk_put_items(out, words, a);
            lin_buffer_char(out, ']');
        }
        lin_buffer_json_format(out, ",'text':%s}", lin_text_of(&text));
    }
    lin_buffer_text(out, "]}");
    lin_scratch_free(&text, out);
}

static int vosk_show(lin_outbox *o, const lin_session_view *view)
{
    const lin_message *config = &o->client->config;
    const lin_writer_options *words = &o->client->serve->live.words;
    lin_buffer_clear(&o->partial);
    if (view->end == LINNET_GROWS) {
        put_growing(&o->partial, words, view);
        return 1;
    }
    lin_live_put_text(&o->said, words, view->settled, 0, NULL);
    lin_buffer_char(&o->said, 0);
    if (config->alternatives) lin_vosk_put_alternatives(&o->said, words, view->settled, config->alternatives, config->words);
    else lin_vosk_put_items(&o->said, words, view->settled);
    lin_buffer_char(&o->said, 0);
    if (o->said.failed) o->lost = "out of memory";
    else if (o->said.n > LIN_MOST_SAID) o->lost = "too many results wait for the end of a message";
    return 1;
}

// Writes the first n utterances, even empty ones, that ended and were not sent yet, as one result.
static void put_said(lin_outbox *o, int n)
{
    lin_buffer text = {0}, items = {0}, out = {0};
    const lin_message *config = &o->client->config;
    const int alternatives = config->alternatives > 0;
    size_t at = 0;
    int taken = 0;
    for (; at < o->said.n && taken < n; taken++) {
        const char *said_text = o->said.data + at, *said_items = said_text + strlen(said_text) + 1;
        at += strlen(said_text) + strlen(said_items) + 2;
        if (text.n && *said_text) lin_buffer_char(&text, ' ');
        lin_buffer_text(&text, said_text);
        if (alternatives) lin_buffer_clear(&items); // the last one's
        else if (items.n && *said_items) lin_buffer_char(&items, ',');
        lin_buffer_text(&items, said_items);
    }
    o->said.n -= at;
    if (at) memmove(o->said.data, o->said.data + at, o->said.n);
    if (alternatives && taken == 1) {
        lin_buffer_bytes(&out, items.data, items.n);
    } else if (alternatives) {
        lin_buffer_json_format(&out, "{'alternatives':[{'confidence':0.0,'text':%s}]}", lin_text_of(&text));
    } else {
        lin_buffer_char(&out, '{');
        if (items.n && config->words) lin_buffer_format(&out, "\"result\":[%s],", items.data);
        lin_buffer_json_format(&out, "'text':%s}", lin_text_of(&text));
    }
    if (text.failed || items.failed) o->lost = "out of memory";
    lin_outbox_add(o, &out, taken ? LIN_NOTE_FINAL : LIN_NOTE_OTHER);
    lin_buffer_free(&text);
    lin_buffer_free(&items);
}

static void vosk_answer(lin_outbox *o)
{
    lin_buffer out = {0};
    if (o->said.n) {
        put_said(o, 1);
        return;
    }
    lin_buffer_json_format(&out, "{'partial':%s}", lin_text_of(&o->partial));
    lin_outbox_add(o, &out, LIN_NOTE_OTHER);
}

static void vosk_put_error(lin_buffer *out, const char *message) { lin_buffer_json_format(out, "{'error':%s}", message); }

static void vosk_put_end(lin_outbox *o, int drained)
{
    const int failed = o->failure.status != LIN_OK;
    lin_buffer out = {0};
    (void)drained;
    for (; o->owed > 0; o->owed--) vosk_answer(o);
    if (!failed || o->said.n) put_said(o, INT_MAX);
    if (failed) vosk_put_error(&out, o->failure.message);
    lin_outbox_add(o, &out, LIN_NOTE_OTHER);
}

static const lin_protocol vosk = {.path = "/vosk",
                                  .about = "vosk-server's: s16le, an answer to each message",
                                  .format = LIN_SAMPLES_S16,
                                  .most_text = LIN_MESSAGE_BYTES,
                                  .phrases_exclude = 1,
                                  .configs_later = 1,
                                  .parse = vosk_parse,
                                  .show = vosk_show,
                                  .answer = vosk_answer,
                                  .put_end = vosk_put_end,
                                  .put_error = vosk_put_error};

/* ---- sherpa-onnx's --------------------------------------------------------------------------------------------------------- */

// The protocol of sherpa-onnx's online WebSocket server. A client sends samples as 32-bit floats, then the text Done (any other
// text is ignored); it gets a JSON object whenever an utterance has changed, and at the end the text Done!. A token is a word
// with the blank before it, or a phoneme; times are relative to start_time.

static lin_status sherpa_parse(const char *text, size_t n, lin_message *m, lin_error *err)
{
    (void)err;
    m->kind = n == 4 && memcmp(text, "Done", 4) == 0 ? LIN_MESSAGE_EOF : LIN_MESSAGE_CONFIG; // which says nothing
    return LIN_OK;
}

// One of the lists, over the items of both results, without a last word that is incomplete.
static void put_list(lin_buffer *out, const char *key, const lin_writer_options *words, const lin_session_view *view, int times)
{
    const lin_result *const parts[] = {view->settled, view->provisional};
    int any = 0;
    lin_buffer text = {0};
    lin_buffer_json_format(out, ",%s:[", key);
    for (int i = 0; i < 2; i++) {
        const lin_result *r = parts[i];
        const int n = lin_result_items(r) - (i == 1 && view->incomplete && r->has_words && r->n_words > 0);
        for (int k = 0; k < n; k++, any = 1) {
            if (any) lin_buffer_char(out, ',');
            if (times) {
                lin_buffer_fixed(out, lin_result_item(r, k).start_s - view->start_s, 3);
                continue;
            }
            lin_buffer_clear(&text);
            if (any) lin_buffer_char(&text, ' ');
            lin_result_item_text(&text, words, r, k);
            lin_buffer_json(out, lin_text_of(&text), text.n);
        }
    }
    lin_buffer_char(out, ']');
    lin_scratch_free(&text, out);
}

static int sherpa_show(lin_outbox *o, const lin_session_view *view)
{
    const lin_writer_options *words = &o->client->serve->live.words;
    const int is_final = view->end != LINNET_GROWS;
    lin_buffer text = {0}, out = {0};
    if (!is_final && o->n_queued > LIN_QUEUED_PARTIALS) return 0;
    if (put_growing(&text, words, view) != LIN_OK) out.failed = 1;
    lin_buffer_json_format(&out, "{'text':%s", lin_text_of(&text));
    put_list(&out, "tokens", words, view, 0);
    put_list(&out, "timestamps", words, view, 1);
    lin_buffer_json_format(&out, ",'ys_probs':[],'lm_probs':[],'context_scores':[],'words':[],'segment':%d,'start_time':%.3f",
                           view->utterance - 1, view->start_s); // segments are counted from 0
    lin_buffer_format(&out, ",\"is_final\":%s,\"is_eof\":%s}", is_final ? "true" : "false",
                      view->end == LINNET_FINISHED ? "true" : "false");
    lin_outbox_add(o, &out, is_final ? LIN_NOTE_FINAL : LIN_NOTE_PARTIAL);
    lin_buffer_free(&text);
    return 1;
}

// The protocol has no error message: send the text, which its clients show.
static void sherpa_put_error(lin_buffer *out, const char *message)
{
    lin_buffer_json_format(out, "{'text':'','error':%s}", message);
}

static void sherpa_put_end(lin_outbox *o, int drained)
{
    lin_buffer out = {0}, done = {0};
    (void)drained;
    if (o->failure.status != LIN_OK) sherpa_put_error(&out, o->failure.message);
    lin_outbox_add(o, &out, LIN_NOTE_OTHER);
    lin_buffer_text(&done, "Done!");
    lin_outbox_add(o, &done, LIN_NOTE_OTHER);
}

static const lin_protocol sherpa = {.path = "/sherpa-onnx",
                                    .about = "that of sherpa-onnx's online server: f32le, Done",
                                    .format = LIN_SAMPLES_F32,
                                    .most_text = LIN_MESSAGE_BYTES,
                                    .configs_later = 1,
                                    .parse = sherpa_parse,
                                    .show = sherpa_show,
                                    .put_end = sherpa_put_end,
                                    .put_error = sherpa_put_error};

/* ---- linnet's own ---------------------------------------------------------------------------------------------------------- */

// linnet's own protocol of WebSockets (docs/serve.md): the lines of linnet listen --json.

static lin_status take_format(const cJSON *item, lin_message *m, lin_error *err)
{
    static const char *const names[] = {"s16le", "f32le", "mulaw", "alaw", "ogg_opus"}; // as lin_sample_format
    for (size_t i = 0; cJSON_IsString(item) && i < sizeof names / sizeof *names; i++) {
        if (strcmp(item->valuestring, names[i]) != 0) continue;
        m->format = (lin_sample_format)i;
        return LIN_OK;
    }
    return lin_fail(err, LIN_INVALID, "format must be s16le, f32le, mulaw, alaw or ogg_opus");
}

static lin_status take_config(const cJSON *json, lin_message *m, lin_error *err)
{
    const cJSON *item;
    int nothing;
    const struct {
        const char *key;
        int *value;
    } flags[] = {{"partials", &m->partials}, {"readable", &m->readable}, {"resume", &m->resume}, {"push_to_talk", &nothing}};
    enum { FLAGS = sizeof flags / sizeof *flags };
    cJSON_ArrayForEach(item, json)
    {
        const char *key = item->string;
        int flag = 0;
        while (flag < FLAGS && strcmp(key, flags[flag].key) != 0) flag++;
        if (!strcmp(key, "type")) continue;
        if (flag < FLAGS) LIN_TRY(take_flag(item, key, flags[flag].value, err));
        else if (!strcmp(key, "rate_hz")) LIN_TRY(lin_message_int(item, key, 4000, 192000, &m->rate_hz, err));
        else if (!strcmp(key, "channels")) LIN_TRY(lin_message_int(item, key, 1, 64, &m->channels, err));
        else if (!strcmp(key, "format")) LIN_TRY(take_format(item, m, err));
        else if (!strcmp(key, "phrases")) LIN_TRY(take_phrases(item, m, err));
        else if (!strcmp(key, "state_s")) LIN_TRY(lin_message_number(item, key, 0, 3600, 0, &m->state_s, err));
        else return lin_fail(err, LIN_INVALID, "a config has no \"%.40s\"", key);
    }
    if (m->state_s > 0 && m->state_s < 0.5) m->state_s = 0.5;
    return LIN_OK;
}

// {"type": "config", ...}, {"type": "end"}, {"type": "end_utterance"}, {"type": "phrases", "phrases": [...]}. Unknown keys of a
// config are errors.
static lin_status linnet_parse(const char *text, size_t n, lin_message *m, lin_error *err)
{
    cJSON *json;
    lin_status status = open_object(text, n, &json, err);
    if (status != LIN_OK) return status;
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(json, "type");
    const char *name = cJSON_IsString(type) ? type->valuestring : "";
    if (!strcmp(name, "config")) {
        m->kind = LIN_MESSAGE_CONFIG;
        status = take_config(json, m, err);
    } else if (!strcmp(name, "end")) {
        m->kind = LIN_MESSAGE_EOF;
    } else if (!strcmp(name, "end_utterance")) {
        m->kind = LIN_MESSAGE_END_UTTERANCE;
    } else if (!strcmp(name, "phrases")) {
        m->kind = LIN_MESSAGE_PHRASES;
        status = take_phrases(cJSON_GetObjectItemCaseSensitive(json, "phrases"), m, err);
    } else {
        status = lin_fail(err, LIN_INVALID, "the type of a message must be config, phrases, end_utterance or end");
    }
    cJSON_Delete(json);
    return status;
}

static void linnet_put_begin(const lin_client *c, lin_buffer *out)
{
    lin_live_put_begin(out, "stream", &c->serve->live.recognizer, c->config.rate_hz, c->config.channels);
    if (out->n) out->n--; // its line end
}

static int linnet_show(lin_outbox *o, const lin_session_view *view)
{
    const lin_writer_options *words = &o->client->serve->live.words;
    const int final = view->end != LINNET_GROWS;
    lin_live_texts texts = {0};
    lin_buffer out = {0};
    if (!final && !o->client->config.partials) return 1;
    if (!final && o->n_queued > LIN_QUEUED_PARTIALS) return 0;
    lin_session_view now = *view;
    if (o->utterance != view->utterance) o->sent_phones = o->sent_words = o->sent_keywords = 0;
    o->utterance = view->utterance;
    now.old_phones = o->sent_phones; // includes what a message that was left out would have said
    now.old_words = o->sent_words;
    now.old_keywords = o->sent_keywords;
    if (lin_live_spell(&texts, words, &now, o->client->config.readable, NULL) != LIN_OK) out.failed = 1;
    lin_live_put_json(&out, words, &now, &texts, lin_now() - (o->sound_at - (o->sound_s - view->end_s)), 1);
    if (out.n) out.n--; // its line end
    lin_outbox_add(o, &out, final ? LIN_NOTE_FINAL : LIN_NOTE_PARTIAL);
    lin_live_texts_free(&texts);
    o->sent_phones = view->settled->n_phones;
    o->sent_words = view->settled->n_words;
    o->sent_keywords = view->settled->n_keywords;
    return 1;
}

static void linnet_put_end(lin_outbox *o, int drained)
{
    lin_buffer out = {0};
    const int failed = o->failure.status != LIN_OK;
    char cut[LIN_CUT_TEXT];
    lin_buffer_json_format(&out, "{'type':'end','reason':%s", failed ? "failed" : drained ? "stopping" : "ended");
    if (failed) lin_buffer_json_format(&out, ",'message':%s", o->failure.message);
    else if (o->cut) lin_buffer_json_format(&out, ",'warning':%s", lin_cut_text(o->cut, cut));
    lin_buffer_json_format(&out, ",'seconds':%.3f,'utterances':%d}", o->seconds, o->n_final);
    lin_outbox_add(o, &out, LIN_NOTE_OTHER);
}

static void linnet_put_error(lin_buffer *out, const char *message)
{
    lin_buffer_json_format(out, "{'type':'error','message':%s}", message);
}

static const lin_protocol linnet = {.path = "/v1/stream",
                                    .about = "linnet's: settled and provisional words and phonemes, phrases, saved streams",
                                    .format = LIN_SAMPLES_S16,
                                    .most_text = LIN_MESSAGE_BYTES,
                                    .parse = linnet_parse,
                                    .put_begin = linnet_put_begin,
                                    .show = linnet_show,
                                    .put_end = linnet_put_end,
                                    .put_error = linnet_put_error};

/* ---- the table ------------------------------------------------------------------------------------------------------------- */

static const lin_protocol *const protocols[] = {&vosk, &sherpa, &linnet, &lin_protocol_realtime};

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
