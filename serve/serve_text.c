// serve_text.c - messages, forms, tokens and answers of linnet serve; see serve_text.h.

#include "serve/serve_text.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "frontend/audio.h"
#include "serve/serve_calls.h"

/* ---- messages -------------------------------------------------------------------------------------------------------------- */

lin_message lin_message_default(int rate_hz)
{
    return (lin_message){.rate_hz = rate_hz, .channels = 1, .words = 1, .partials = 1, .padding_s = 0.3};
}

lin_message lin_message_plain(const lin_message *m)
{
    lin_message plain = *m;
    plain.sound = NULL;
    plain.phrases = NULL;
    plain.n_sound = 0;
    plain.n_phrases = plain.has_phrases = 0;
    return plain;
}

void lin_message_free(lin_message *m)
{
    for (int i = 0; i < m->n_phrases; i++) lin_free(m->phrases[i]);
    lin_free(m->phrases);
    lin_free(m->sound);
    m->phrases = NULL;
    m->sound = NULL;
    m->n_sound = 0;
    m->n_phrases = m->has_phrases = 0;
}

static lin_status take_phrases(const cJSON *list, lin_message *m, lin_error *err)
{
    const int n = cJSON_GetArraySize(list);
    if (!cJSON_IsArray(list) || n > LIN_MESSAGE_MOST_PHRASES)
        return lin_fail(err, LIN_INVALID, "phrases must be a list of at most %d texts", (int)LIN_MESSAGE_MOST_PHRASES);
    lin_message_free(m);
    m->has_phrases = 1;
    m->phrases = lin_calloc((size_t)n + 1, sizeof *m->phrases);
    if (!m->phrases) return lin_no_memory(err, "phrases", (size_t)n * sizeof *m->phrases);
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        if (!cJSON_IsString(item)) return lin_fail(err, LIN_INVALID, "a phrase must be a text");
        if (!strcmp(item->valuestring, "[unk]")) continue; // Vosk's word for all others
        m->phrases[m->n_phrases] = lin_strdup(item->valuestring);
        if (!m->phrases[m->n_phrases++]) return lin_no_memory(err, "a phrase", strlen(item->valuestring));
    }
    return LIN_OK;
}

static lin_status take_number(const cJSON *item, const char *name, double least, double most, int whole, double *value,
                              lin_error *err)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= least && item->valuedouble <= most) ||
        (whole && item->valuedouble != floor(item->valuedouble)))
        return lin_fail(err, LIN_INVALID, "%s must be a%s number from %.10g to %.10g", name, whole ? " whole" : "", least, most);
    *value = item->valuedouble;
    return LIN_OK;
}

static lin_status take_int(const cJSON *item, const char *name, int least, int most, int *value, lin_error *err)
{
    double number = *value;
    lin_status status = take_number(item, name, least, most, 1, &number, err);
    *value = (int)number;
    return status;
}

static lin_status take_flag(const cJSON *item, const char *name, int *value, lin_error *err)
{
    if (!cJSON_IsBool(item) && !cJSON_IsNumber(item)) return lin_fail(err, LIN_INVALID, "%s must be true or false", name);
    *value = cJSON_IsTrue(item) || (cJSON_IsNumber(item) && item->valuedouble != 0);
    return LIN_OK;
}

static lin_status open_object(const char *text, size_t n, cJSON **json, lin_error *err)
{
    *json = NULL;
    if (n > LIN_MESSAGE_BYTES) return lin_fail(err, LIN_INVALID, "a message of more than %d bytes", (int)LIN_MESSAGE_BYTES);
    lin_status status = lin_json_parse(text, n, "the message", 0, json, err);
    if (status == LIN_OK && !cJSON_IsObject(*json)) {
        cJSON_Delete(*json);
        *json = NULL;
        status = lin_fail(err, LIN_FORMAT, "the message is not a JSON object");
    }
    return status;
}

// A number, or a text of one, as Python's float() and int() take both.
static lin_status take_number_or_text(const cJSON *item, const char *name, double least, double most, double *value,
                                      lin_error *err)
{
    char *end = NULL;
    if (!cJSON_IsString(item)) return take_number(item, name, least, most, 1, value, err);
    const double number = strtod(item->valuestring, &end);
    if (end == item->valuestring || *end) return take_number(NULL, name, least, most, 1, value, err);
    return take_number(&(cJSON){.type = cJSON_Number, .valuedouble = number}, name, least, most, 1, value, err);
}

static lin_status take_vosk_config(const cJSON *config, lin_message *m, lin_error *err)
{
    lin_status status = LIN_OK;
    const cJSON *item;
    cJSON_ArrayForEach(item, config)
    {
        const char *key = item->string;
        if (cJSON_IsNull(item)) continue;
        double alternatives = m->alternatives;
        if (!strcmp(key, "sample_rate")) status = take_number_or_text(item, key, 4000, 192000, &m->rate_hz, err);
        if (!strcmp(key, "words")) // as Python's bool(): any text but an empty one is true
            status = cJSON_IsString(item) ? LIN_OK : take_flag(item, key, &m->words, err);
        if (!strcmp(key, "words") && cJSON_IsString(item)) m->words = *item->valuestring != 0;
        if (!strcmp(key, "max_alternatives")) status = take_number_or_text(item, key, 0, INT_MAX, &alternatives, err);
        m->alternatives = (int)alternatives; // any number: there are no more than --n-best
        if (!strcmp(key, "phrase_list")) status = take_phrases(item, m, err);
        if (status != LIN_OK) return status;
    }
    return LIN_OK;
}

lin_status lin_message_parse_vosk(const char *text, size_t n, lin_message *m, lin_error *err)
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
        status = lin_fail(err, LIN_INVALID, "a message has config, eof or reset");
    }
    cJSON_Delete(json);
    return status;
}

static lin_status take_config(const cJSON *json, lin_message *m, lin_error *err)
{
    lin_status status = LIN_OK;
    const cJSON *item;
    cJSON_ArrayForEach(item, json)
    {
        const char *key = item->string;
        if (!strcmp(key, "type")) continue;
        if (!strcmp(key, "rate_hz")) {
            status = take_number(item, key, 4000, 192000, 1, &m->rate_hz, err);
        } else if (!strcmp(key, "channels")) {
            status = take_int(item, key, 1, 64, &m->channels, err);
        } else if (!strcmp(key, "format")) {
            const char *name = cJSON_IsString(item) ? item->valuestring : "";
            static const char *const names[] = {"s16le", "f32le", "mulaw", "alaw", "ogg_opus"}; // as lin_sample_format
            enum { NAMES = sizeof names / sizeof *names };
            int i = 0;
            while (i < NAMES && strcmp(name, names[i])) i++;
            m->format = (lin_sample_format)(i % NAMES);
            if (i == NAMES) status = lin_fail(err, LIN_INVALID, "format is s16le, f32le, mulaw, alaw or ogg_opus");
        } else if (!strcmp(key, "partials")) {
            status = take_flag(item, key, &m->partials, err);
        } else if (!strcmp(key, "readable")) {
            status = take_flag(item, key, &m->readable, err);
        } else if (!strcmp(key, "push_to_talk")) {
            status = take_flag(item, key, &m->push_to_talk, err);
        } else if (!strcmp(key, "phrases")) {
            status = take_phrases(item, m, err);
        } else if (!strcmp(key, "state_s")) {
            status = take_number(item, key, 0, 3600, 0, &m->state_s, err);
            if (status == LIN_OK && m->state_s > 0 && m->state_s < 0.5) m->state_s = 0.5;
        } else if (!strcmp(key, "resume")) {
            status = take_flag(item, key, &m->resume, err);
        } else {
            status = lin_fail(err, LIN_INVALID, "a config has no \"%.40s\"", key);
        }
        if (status != LIN_OK) return status;
    }
    return LIN_OK;
}

lin_status lin_message_parse(const char *text, size_t n, lin_message *m, lin_error *err)
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
        status = lin_fail(err, LIN_INVALID, "the type of a message is config, phrases, end_utterance or end");
    }
    cJSON_Delete(json);
    return status;
}

size_t lin_sample_width(lin_sample_format format) { return format == LIN_SAMPLES_S16 ? 2 : format == LIN_SAMPLES_F32 ? 4 : 1; }

static float read_sample(lin_sample_format format, const unsigned char *b)
{
    if (format == LIN_SAMPLES_S16) return (float)(int16_t)(uint16_t)(b[0] | b[1] << 8) / 32768.0f;
    float value;
    if (format != LIN_SAMPLES_F32) {
        lin_pcm_decode(format == LIN_SAMPLES_ALAW ? LIN_PCM_ALAW : LIN_PCM_MULAW, b, 1, &value);
        return value;
    }
    const uint32_t bits = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    memcpy(&value, &bits, sizeof value);
    return isfinite(value) ? fminf(fmaxf(value, -8), 8) : 0;
}

size_t lin_samples_take(lin_sample_format format, const void *bytes, size_t n, lin_sample_rest *rest, float *floats)
{
    const unsigned char *at = bytes, *const end = at + n;
    const int width = (int)lin_sample_width(format);
    size_t made = 0;
    while (rest->n && at < end) {
        rest->bytes[rest->n++] = *at++;
        if (rest->n < width) continue;
        floats[made++] = read_sample(format, rest->bytes);
        rest->n = 0;
    }
    for (; end - at >= width; at += width) floats[made++] = read_sample(format, at);
    while (at < end) rest->bytes[rest->n++] = *at++;
    return made;
}

/* ---- forms ----------------------------------------------------------------------------------------------------------------- */

// Bytes from `at` on that are among `set`.
static size_t span_of(const char *at, const char *end, const char *set)
{
    const char *begin = at;
    while (at < end && *at && strchr(set, *at)) at++;
    return (size_t)(at - begin);
}

// The value of a parameter such as ; name="x" of a header [n], without its quotes; its length in *n_value. NULL: it has none.
static const char *parameter(const char *header, size_t n, const char *name, size_t *n_value)
{
    const char *at = memchr(header, ';', n), *const end = header + n;
    const size_t n_name = strlen(name);
    while (at && at < end) {
        at += span_of(at, end, "; \t");
        const char *key = at;
        while (at < end && *at != '=' && *at != ';') at++;
        const int found = (size_t)(at - key) == n_name && strncasecmp(key, name, n_name) == 0;
        if (at == end || *at == ';') continue;
        const int quoted = ++at < end && *at == '"';
        const char *from = at += quoted;
        while (at < end && (quoted ? *at != '"' : *at != ';' && *at != ' ' && *at != '\t')) at++;
        if (quoted && at == end) return NULL;
        *n_value = (size_t)(at - from);
        if (found) return from;
        at += quoted;
    }
    return NULL;
}

// The headers of a part, up to the empty line; where its data begin, NULL: it breaks off.
static const char *read_headers(const char *at, const char *end, lin_form_part *part)
{
    static const char disposition[] = "content-disposition:";
    for (;;) {
        const char *line_end = memmem(at, (size_t)(end - at), "\r\n", 2);
        if (!line_end) return NULL;
        const size_t n = (size_t)(line_end - at);
        if (n == 0) return line_end + 2;
        if (n > sizeof disposition && strncasecmp(at, disposition, sizeof disposition - 1) == 0)
            part->name = parameter(at, n, "name", &part->n_name);
        at = line_end + 2;
    }
}

lin_status lin_form_parse(const char *type, const char *body, size_t n, lin_form *form, lin_error *err)
{
    static const char expected[] = "multipart/form-data";
    char mark[80];
    size_t n_boundary = 0;
    form->n = 0;
    if (strncasecmp(type, expected, sizeof expected - 1) != 0)
        return lin_fail(err, LIN_FORMAT, "the body must be %s, as curl -F file=@sound.wav sends it", expected);
    if (n == 0) return lin_fail(err, LIN_FORMAT, "the body is empty");
    const char *boundary = parameter(type, strlen(type), "boundary", &n_boundary);
    if (!boundary || n_boundary == 0 || n_boundary > 70) return lin_fail(err, LIN_FORMAT, "the form has no boundary");
    memcpy(mark, "\r\n--", 4);
    memcpy(mark + 4, boundary, n_boundary);
    const size_t n_mark = n_boundary + 4;
    const char *at = body, *const end = body + n;
    // The first boundary has no line before it if the body begins with it.
    if (n >= n_mark - 2 && memcmp(body, mark + 2, n_mark - 2) == 0) at += n_mark - 2;
    else if ((at = n ? memmem(body, n, mark, n_mark) : NULL) != NULL) at += n_mark;
    while (at && end - at >= 2 && memcmp(at, "\r\n", 2) == 0) {
        if (form->n == LIN_FORM_PARTS) return lin_fail(err, LIN_FORMAT, "the form has more than %d parts", (int)LIN_FORM_PARTS);
        lin_form_part part = {0};
        part.data = read_headers(at + 2, end, &part);
        const char *next = part.data ? memmem(part.data, (size_t)(end - part.data), mark, n_mark) : NULL;
        if (!next) return lin_fail(err, LIN_FORMAT, "the form breaks off");
        part.n = (size_t)(next - part.data);
        if (part.name) form->parts[form->n++] = part;
        at = next + n_mark;
    }
    if (!at || end - at < 2 || memcmp(at, "--", 2) != 0) return lin_fail(err, LIN_FORMAT, "the form breaks off");
    return LIN_OK;
}

int lin_form_is(const lin_form_part *part, const char *text)
{
    return part && part->n == strlen(text) && memcmp(part->data, text, part->n) == 0;
}

/* ---- answers --------------------------------------------------------------------------------------------------------------- */

// Word number i as it is written: outside the lexicon as its phones, "[hh_ah]".
static void put_word(lin_buffer *out, const lin_live_words *words, const lin_result *r, int i)
{
    const lin_result_word *w = &r->words[i];
    const char *text = lin_result_word_text(r, i);
    if (*text) {
        lin_buffer_text(out, text);
        return;
    }
    for (int p = 0; p < w->n_phones; p++) {
        lin_buffer_char(out, p ? '_' : '[');
        for (const char *c = lin_live_phone(words, r->phones[w->first_phone + p].label); *c; c++)
            lin_buffer_char(out, *c >= 'A' && *c <= 'Z' ? (char)(*c + 32) : *c);
    }
    lin_buffer_text(out, w->n_phones ? "]" : "[]");
}

static void put_member(lin_buffer *out, const char *key, const lin_buffer *text)
{
    lin_buffer_key(out, key);
    lin_buffer_json(out, text->data ? text->data : "", text->n);
}

int lin_result_items(const lin_result *r) { return r->has_words ? r->n_words : r->n_phones; }

void lin_result_item_text(lin_buffer *text, const lin_live_words *words, const lin_result *r, int i)
{
    if (r->has_words) put_word(text, words, r, i);
    else lin_buffer_text(text, lin_live_phone(words, r->phones[i].label));
}

double lin_result_item_start(const lin_result *r, int i) { return r->has_words ? r->words[i].start_s : r->phones[i].start_s; }
static double item_end(const lin_result *r, int i) { return r->has_words ? r->words[i].end_s : r->phones[i].end_s; }
static double item_confidence(const lin_result *r, int i)
{
    return r->has_words ? r->words[i].confidence : r->phones[i].confidence;
}

void lin_vosk_put_items(lin_buffer *out, const lin_live_words *words, const lin_result *r)
{
    lin_buffer text = {0};
    for (int i = 0; i < lin_result_items(r); i++) {
        lin_buffer_clear(&text);
        lin_result_item_text(&text, words, r, i);
        lin_buffer_text(out, i ? ",{" : "{");
        lin_buffer_member_fixed(out, "conf", item_confidence(r, i), 6);
        lin_buffer_member_fixed(out, "end", item_end(r, i), 3);
        lin_buffer_member_fixed(out, "start", lin_result_item_start(r, i), 3);
        put_member(out, "word", &text);
        lin_buffer_char(out, '}');
    }
    if (text.failed) out->failed = text.failed;
    lin_buffer_free(&text);
}

static double mean_confidence(const lin_result *r)
{
    double sum = 0;
    for (int i = 0; i < lin_result_items(r); i++) sum += item_confidence(r, i);
    return lin_result_items(r) ? sum / lin_result_items(r) : 0;
}

void lin_vosk_put_alternatives(lin_buffer *out, const lin_live_words *words, const lin_result *r, int n, int with_items)
{
    lin_buffer text = {0};
    const int there = r->n_alternatives < n ? r->n_alternatives : n;
    lin_buffer_text(out, "{\"alternatives\":[");
    for (int i = 0; i < there || i == 0; i++) {
        const lin_result *a = there ? &r->alternatives[i] : r;
        lin_buffer_clear(&text);
        if (lin_live_put_text(&text, words, a, 0, NULL) != LIN_OK) break;
        lin_buffer_text(out, i ? ",{" : "{");
        lin_buffer_member_fixed(out, "confidence", mean_confidence(a), 6);
        if (with_items) {
            lin_buffer_key(out, "result");
            lin_buffer_char(out, '[');
            lin_vosk_put_items(out, words, a);
            lin_buffer_char(out, ']');
        }
        put_member(out, "text", &text);
        lin_buffer_char(out, '}');
    }
    lin_buffer_text(out, "]}");
    if (text.failed) out->failed = text.failed;
    lin_buffer_free(&text);
}

// The list "words" of the items first .. first + n - 1; inside: as in a segment of whisper.cpp's server.
static void put_words(lin_buffer *out, const lin_live_words *words, const lin_result *r, int first, int n, int inside)
{
    lin_buffer text = {0};
    lin_buffer_text(out, ",\"words\":[");
    for (int i = first; i < first + n; i++) {
        lin_buffer_clear(&text);
        lin_result_item_text(&text, words, r, i);
        lin_buffer_text(out, i > first ? ",{" : "{");
        put_member(out, "word", &text);
        lin_buffer_member_fixed(out, "start", lin_result_item_start(r, i), 3);
        lin_buffer_member_fixed(out, "end", item_end(r, i), 3);
        if (inside) lin_buffer_text(out, ",\"t_dtw\":-1");
        if (inside) lin_buffer_member_fixed(out, "probability", item_confidence(r, i), 4);
        lin_buffer_char(out, '}');
    }
    lin_buffer_char(out, ']');
    if (text.failed) out->failed = text.failed;
    lin_buffer_free(&text);
}

static lin_status put_segment(lin_buffer *out, const lin_live_words *words, const lin_result *r, int number, int first, int n,
                              const lin_verbose *how, lin_error *err)
{
    lin_result part = *r; // the same words and phones, seen through a window
    lin_buffer text = {0};
    double sum = 0;
    if (r->has_words) {
        part.words += first;
        part.n_words = n;
    } else {
        part.phones += first;
        part.n_phones = n;
    }
    lin_status status = how->spell(how->context, &part, &text, err);
    for (int i = first; i < first + n; i++) sum += log(fmax(item_confidence(r, i), 1e-6));
    lin_buffer_text(out, number ? ",{" : "{");
    lin_buffer_member_integer(out, "id", number);
    lin_buffer_member_integer(out, "seek", 0);
    lin_buffer_member_fixed(out, "start", lin_result_item_start(r, first), 3);
    lin_buffer_member_fixed(out, "end", item_end(r, first + n - 1), 3);
    put_member(out, "text", &text);
    lin_buffer_text(out, ",\"tokens\":[],\"temperature\":0.0");
    lin_buffer_member_fixed(out, "avg_logprob", sum / n, 4);
    lin_buffer_text(out, ",\"compression_ratio\":1.0,\"no_speech_prob\":0.0");
    if (how->items_inside) put_words(out, words, r, first, n, 1);
    lin_buffer_char(out, '}');
    if (text.failed) out->failed = text.failed;
    lin_buffer_free(&text);
    return status;
}

lin_status lin_openai_put_verbose(lin_buffer *out, const lin_live_words *words, const lin_result *r, const lin_verbose *how,
                                  lin_error *err)
{
    const int n = lin_result_items(r);
    lin_status status = LIN_OK;
    lin_buffer_text(out, "{\"task\":\"transcribe\"");
    lin_buffer_member_text(out, "language", how->language);
    lin_buffer_member_fixed(out, "duration", r->seconds, 3);
    lin_buffer_member_text(out, "text", how->text);
    if (how->items) put_words(out, words, r, 0, n, 0);
    if (how->segments) {
        lin_buffer_text(out, ",\"segments\":[");
        for (int first = 0, number = 0, end; first < n && status == LIN_OK; first = end) {
            end = lin_result_segment_end(r, first);
            status = put_segment(out, words, r, number++, first, end - first, how, err);
        }
        lin_buffer_char(out, ']');
    }
    lin_buffer_char(out, '}');
    return status == LIN_OK ? lin_buffer_status(out, err) : status;
}

void lin_openai_put_error(lin_buffer *out, int status, const char *message)
{
    const char *type = status == 401   ? "authentication_error"
                       : status == 429 ? "rate_limit_error"
                       : status >= 500 ? "server_error"
                                       : "invalid_request_error";
    lin_buffer_text(out, "{\"error\":{");
    lin_buffer_member_text(out, "message", message);
    lin_buffer_member_text(out, "type", type);
    lin_buffer_text(out, ",\"param\":null,\"code\":null}}");
}

/* ---- secrets --------------------------------------------------------------------------------------------------------------- */

// Without a branch on the bytes.
static unsigned differs(const char *a, size_t n_a, const char *b, size_t n_b)
{
    volatile unsigned difference = n_a != n_b;
    for (size_t i = 0; i < n_b; i++) difference |= (unsigned char)(b[i] ^ (n_a ? a[i % n_a] : 1));
    return difference;
}

// The next line with a token, without the blanks around it; 0: no more.
static int next_token(lin_lines *lines)
{
    while (lin_lines_next(lines)) {
        for (; lines->n && lin_is_space(*lines->text); lines->n--) lines->text++;
        while (lines->n && lin_is_space(lines->text[lines->n - 1])) lines->n--;
        if (lines->n && *lines->text != '#') return 1;
    }
    return 0;
}

int lin_token_known(const char *list, size_t n_list, const char *token, size_t n_token)
{
    unsigned known = 0;
    lin_lines lines;
    lin_lines_begin(&lines, list, n_list);
    while (next_token(&lines)) known |= differs(lines.text, lines.n, token, n_token) == 0;
    return n_token > 0 && known;
}

lin_status lin_tokens_check(const char *name, const char *list, size_t n, int *weak, lin_error *err)
{
    int any = 0;
    lin_lines lines;
    lin_lines_begin(&lines, list, n);
    for (*weak = 0; next_token(&lines); any = 1) {
        if (lin_text_find_control(lines.text, lines.n) < lines.n)
            return lin_fail(err, LIN_FORMAT, "%s:%d: no request can hold this token: write the file as plain text (UTF-8)", name,
                            lines.number);
        if (!*weak && lines.n < LIN_TOKEN_LEAST) *weak = lines.number;
    }
    return any ? LIN_OK : lin_fail(err, LIN_FORMAT, "%s has no token, and would refuse everybody: write one per line", name);
}

size_t lin_token_find(const char *authorization, const char *query, const char *protocols, const char **token)
{
    static const char bearer[] = "bearer ", key[] = "access_token=", insecure[] = "openai-insecure-api-key.";
    if (strncasecmp(authorization, bearer, sizeof bearer - 1) == 0) {
        *token = authorization + sizeof bearer - 1;
        while (**token == ' ') ++*token;
        return strlen(*token);
    }
    for (const char *at = query; at; at = strchr(at, '&') ? strchr(at, '&') + 1 : NULL) {
        if (strncmp(at, key, sizeof key - 1) != 0) continue;
        *token = at + sizeof key - 1;
        return strcspn(*token, "&");
    }
    for (const char *at = protocols; *at; at += strcspn(at, ", \t")) {
        at += strspn(at, ", \t");
        if (strncmp(at, insecure, sizeof insecure - 1) != 0) continue;
        *token = at + sizeof insecure - 1;
        return strcspn(*token, ", \t");
    }
    *token = "";
    return 0;
}

// A name or address without its port and, of IPv6, its brackets.
static size_t host_name(const char *host, const char **name)
{
    const int bracket = *host == '[';
    *name = host + bracket;
    return bracket ? strcspn(*name, "]") : strcspn(host, ":");
}

static int is_name(const char *name, size_t n, const char *wanted)
{
    while (n && name[n - 1] == '.') n--; // of the root
    return strlen(wanted) == n && strncasecmp(name, wanted, n) == 0;
}

int lin_host_allowed(const char *host, const char *listens, const char *const *list, int n)
{
    const char *name;
    const size_t n_name = host_name(host, &name);
    if (!*host || *host == '[') return 1; // no browser's, or an address
    if (strspn(name, "0123456789.") >= n_name && n_name) return 1;
    if (is_name(name, n_name, "localhost") || is_name(name, n_name, listens)) return 1;
    for (int i = 0; i < n; i++) {
        if (strcmp(list[i], "*") == 0 || is_name(name, n_name, list[i])) return 1;
    }
    return 0;
}

int lin_origin_allowed(const char *origin, const char *host, int portless, const char *const *list, int n)
{
    if (!*origin) return 1; // not a page
    const char *rest = strstr(origin, "://"), *name, *own;
    if (rest && strcasecmp(rest + 3, host) == 0) return 1;
    const size_t n_host = host_name(host, &name), n_own = rest ? host_name(rest + 3, &own) : 0;
    const int has_port = name[n_host] && strchr(name + n_host, ':') != NULL;
    if (portless && n_own && !has_port && n_own == n_host && strncasecmp(own, name, n_host) == 0) return 1;
    for (int i = 0; i < n; i++) {
        if (strcmp(list[i], "*") == 0 || strcasecmp(list[i], origin) == 0) return 1;
    }
    return 0;
}

// The address at the end of a list [n], without quotes, brackets and port; *n is what is before it.
static void take_last(const char *list, size_t *n, int is_forwarded, char *out, size_t capacity)
{
    size_t from = *n, end = *n;
    while (from && list[from - 1] != ',') from--;
    *n = from ? from - 1 : 0;
    if (is_forwarded) { // for="[2001:db8::1]:80";proto=https
        size_t at = from;
        while (at < end && strncasecmp(list + at, "for=", 4) != 0) at++;
        from = at < end ? at + 4 : end;
        for (at = from; at < end && list[at] != ';';) at++;
        end = at;
    }
    while (from < end && (list[from] == ' ' || list[from] == '\t' || list[from] == '"' || list[from] == '[')) from++;
    size_t length = 0;
    while (from + length < end && !strchr(" \t\"]", list[from + length])) length++;
    const char *colon = memchr(list + from, ':', length);
    const int is_4 = colon && memchr(list + from, '.', (size_t)(colon - (list + from))) != NULL;
    if (is_4) length = (size_t)(colon - (list + from));
    snprintf(out, capacity, "%.*s", (int)length, list + from);
}

static int is_proxy(const char *address, const char *const *proxies, int n)
{
    static const char mapped[] = "::ffff:"; // of IPv4
    if (strncasecmp(address, mapped, sizeof mapped - 1) == 0 && strchr(address, '.')) address += sizeof mapped - 1;
    for (int i = 0; i < n; i++) {
        if (strcasecmp(proxies[i], address) == 0) return 1;
    }
    return 0;
}

void lin_client_address(const char *address, const char *forwarded_for, const char *forwarded, const char *const *proxies, int n,
                        char *out, size_t capacity)
{
    const int is_forwarded = !*forwarded_for;
    const char *list = is_forwarded ? forwarded : forwarded_for;
    char next[64];
    snprintf(out, capacity, "%s", address);
    for (size_t left = strlen(list); left && is_proxy(out, proxies, n);) {
        take_last(list, &left, is_forwarded, next, sizeof next);
        if (!*next) return; // not said
        snprintf(out, capacity, "%s", next);
    }
}

/* ---- events of OpenAI's realtime protocol ---------------------------------------------------------------------------------- */

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
        const char *now, *before; // its name in earlier versions
        lin_sample_format format;
        double rate_hz;
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
    if (!rate) return LIN_OK;
    const double hz = cJSON_IsNumber(rate) ? rate->valuedouble : 0;
    if (!(hz >= 4000 && hz <= 192000) || hz != floor(hz))
        return lin_fail(err, LIN_INVALID, "rate must be a whole number from 4000 to 192000");
    m->rate_hz = hz;
    return LIN_OK;
}

// Words that are likely, from a prompt and from keywords.
static lin_status take_likely(const cJSON *transcription, lin_message *m, lin_error *err)
{
    const cJSON *keyword, *keywords = member(transcription, "keywords");
    const char *prompt = text_of(member(transcription, "prompt")), *at;
    lin_buffer likely = {0};
    int n = lin_prompt_phrases(prompt, strlen(prompt), &likely);
    cJSON_ArrayForEach(keyword, keywords) n += lin_prompt_phrases(text_of(keyword), strlen(text_of(keyword)), &likely);
    if (n > LIN_MESSAGE_MOST_PHRASES) n = LIN_MESSAGE_MOST_PHRASES;
    lin_status status = lin_buffer_status(&likely, err);
    lin_message_free(m);
    m->phrases = status == LIN_OK ? lin_calloc((size_t)n + 1, sizeof *m->phrases) : NULL;
    if (status == LIN_OK && !m->phrases) status = lin_no_memory(err, "phrases", (size_t)n * sizeof *m->phrases);
    at = likely.data;
    for (; status == LIN_OK && m->n_phrases < n; at += strlen(at) + 1) {
        if (!(m->phrases[m->n_phrases] = lin_strdup(at))) status = lin_no_memory(err, "a phrase", strlen(at));
        else m->n_phrases++;
    }
    lin_buffer_free(&likely);
    return status;
}

static void add_language(const cJSON *language, lin_message *m)
{
    const size_t n = strlen(m->languages);
    if (*text_of(language)) snprintf(m->languages + n, sizeof m->languages - n, "%s ", text_of(language));
}

static lin_status take_turns(const cJSON *turns, lin_message *m, lin_error *err)
{
    const cJSON *padding = member(turns, "prefix_padding_ms");
    if (turns) m->manual = !cJSON_IsObject(turns);
    if (!cJSON_IsNumber(padding)) return LIN_OK;
    if (!(padding->valuedouble >= 0 && padding->valuedouble <= 60000))
        return lin_fail(err, LIN_INVALID, "prefix_padding_ms must be a number from 0 to 60000");
    m->padding_s = padding->valuedouble / 1000;
    return LIN_OK;
}

// Of the wrong type a value would be as if it were not there, and the client would wait for what does not come. null: not there.
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
                  {member(transcription, "languages"), cJSON_Array, "languages", "a list of texts"}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (values[i].item && !(values[i].item->type & (values[i].types | cJSON_NULL)))
            return lin_fail(err, LIN_INVALID, "%s must be %s", values[i].name, values[i].wanted);
    }
    return LIN_OK;
}

// As it is now, and as it was in earlier versions of the protocol, without audio.input. On failure all is as before: the client
// is told so, and goes on.
static lin_status take_session(const cJSON *session, lin_message *m, lin_error *err)
{
    const cJSON *input = member(member(session, "audio"), "input"), *format = member(input, "format"),
                *transcription = member(input, "transcription"), *turns = member(input, "turn_detection"), *language;
    if (!cJSON_IsObject(session)) return lin_fail(err, LIN_FORMAT, "session is not an object");
    if (!strcmp(text_of(member(session, "type")), "realtime"))
        return lin_fail(err, LIN_UNSUPPORTED, "the type of a session must be transcription: this server does not speak");
    if (!input) {
        format = member(session, "input_audio_format");
        transcription = member(session, "input_audio_transcription");
        turns = member(session, "turn_detection");
    }
    lin_message next = *m;
    next.languages[0] = 0;
    add_language(member(transcription, "language"), &next);
    cJSON_ArrayForEach(language, member(transcription, "languages")) add_language(language, &next);
    lin_status status = check_types(session, format, transcription, turns, err);
    if (status == LIN_OK) status = take_turns(turns, &next, err);
    if (status == LIN_OK && format) status = take_format(format, &next, err);
    if (status == LIN_OK && cJSON_IsObject(transcription)) status = take_likely(transcription, m, err);
    if (status != LIN_OK) return status;
    next.phrases = m->phrases;
    next.n_phrases = m->n_phrases;
    next.has_phrases = m->has_phrases;
    *m = next;
    return LIN_OK;
}

lin_status lin_realtime_parse(const char *text, size_t n, lin_message *m, lin_error *err)
{
    cJSON *json = NULL;
    if (n > LIN_REALTIME_BYTES) return lin_fail(err, LIN_INVALID, "an event of more than %d bytes", (int)LIN_REALTIME_BYTES);
    lin_status status = lin_json_parse(text, n, "the event", 0, &json, err);
    if (status != LIN_OK) return status;
    const char *type = text_of(member(json, "type"));
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
