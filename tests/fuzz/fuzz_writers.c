// Every writer on a result of any strings and times: the output follows the rules of its format.
//
// Bytes: options; bits 0-1 unit, 2 ipa, 3 ids, 4 times of words, 5 words were looked for, 6 an alternative. Then id and speaker,
// each up to a NUL, and tokens: a byte whose lowest bit says phone (its label) or word (its spelling up to a NUL), then two
// floats, its times.
#include "tests/fuzz/fuzz.h"

#include <cJSON.h>

#include "base/unicode.h"
#include "decoder/writers.h"

enum { MAX_TOKENS = 300, MAX_TEXT = 200 };

typedef struct bytes {
    const uint8_t *at, *end;
} bytes;

static int take_byte(bytes *b) { return b->at < b->end ? *b->at++ : 0; }

static float take_float(bytes *b)
{
    uint32_t bits = 0;
    float value;
    for (int i = 0; i < 4; i++) bits = bits << 8 | (uint32_t)take_byte(b);
    memcpy(&value, &bits, sizeof value);
    return value;
}

static const char *take_text(bytes *b, char text[MAX_TEXT])
{
    int n = 0;
    for (int c; n < MAX_TEXT - 1 && (c = take_byte(b)) != 0; n++) text[n] = (char)c;
    text[n] = '\0';
    return text;
}

static const char *spell(const void *context, int word)
{
    (void)word;
    return context;
}

static void add_token(lin_result *r, bytes *b, int with_words)
{
    char text[MAX_TEXT];
    const int kind = take_byte(b);
    lin_path_phone phone = {.label = 1 + (kind >> 1) % 39, .confidence = take_float(b)};
    lin_path_word word = {.word = kind & 2 ? 0 : LIN_WORD_UNKNOWN, .n_phones = kind >> 2 & 1, .confidence = phone.confidence};
    const lin_path path = {.phones = &phone,
                           .n_phones = kind & 1 ? 1 : word.n_phones,
                           .words = &word,
                           .n_words = with_words && !(kind & 1)};
    if (!(kind & 1)) take_text(b, text);
    if (lin_result_add_path(r, &path, 1, with_words ? spell : NULL, text, NULL)) abort();
    const double start = take_float(b), end = take_float(b);
    if (path.n_phones) {
        r->phones[r->n_phones - 1].start_s = start;
        r->phones[r->n_phones - 1].end_s = end;
        r->phones[r->n_phones - 1].goodness = phone.confidence;
    }
    if (path.n_words) {
        r->words[r->n_words - 1].start_s = start;
        r->words[r->n_words - 1].end_s = end;
        if ((kind & 2) && lin_result_write_word(r, r->n_words - 1, text, strlen(text), kind >> 2 & 1, kind >> 3 & 3, NULL))
            abort();
    }
    if ((kind & 192) == 192 && lin_result_add_span(r, start, end, text, NULL)) abort();
}

/* ---- the rules of each format ---------------------------------------------------------------------------------------------- */

static void check_utf8(const char *text, size_t n)
{
    for (size_t at = 0, k; at < n; at += k) must((k = lin_utf8_decode(text + at, n - at, NULL)) > 0);
}

static void check_json(const char *text, size_t n, const char *key)
{
    must(n > 0 && memchr(text, '\n', n) == text + n - 1);
    cJSON *json = cJSON_Parse(text);
    must(cJSON_IsObject(json) && cJSON_GetObjectItem(json, key));
    cJSON_Delete(json);
}

// RFC 4180: every record has the fields of the header.
static void check_csv(const char *text)
{
    int fields = 1, quoted = 0;
    for (const char *c = text; *c; c++) {
        if (quoted) {
            if (*c != '"') continue;
            if (c[1] == '"') c++;
            else quoted = 0;
        } else if (*c == '"') {
            must(c == text || c[-1] == ',' || c[-1] == '\n');
            quoted = 1;
        } else if (*c == ',') {
            fields++;
        } else if (*c == '\r') {
            must(c[1] == '\n' && fields == 9);
            fields = 1;
            c++;
        } else {
            must(*c != '\n');
        }
    }
    must(!quoted && fields == 1);
}

// Quotes in pairs, and as many intervals as announced.
static void check_textgrid(const char *text)
{
    int said = 0, found = 0, quoted = 0;
    for (const char *c = text; *c; c++) {
        quoted ^= *c == '"';
        if (quoted || (c > text && c[-1] != ' ')) continue;
        if (!strncmp(c, "intervals: size = ", 18)) said += atoi(c + 18);
        found += !strncmp(c, "intervals [", 11);
    }
    must(!quoted && said == found);
}

static double read_time(const char *at)
{
    int m, s, ms;
    long long h;
    must(sscanf(at, "%lld:%2d:%2d%*1[.,]%3d", &h, &m, &s, &ms) == 4 && h >= 0 && m < 60 && s < 60);
    return (double)h * 3600 + m * 60 + s + ms / 1000.0;
}

// Header, then cues: increasing times, one or two lines, an empty line.
static void check_vtt(const char *text, int n_cues, const lin_cue_options *o)
{
    double before = 0;
    must(!strncmp(text, "WEBVTT\n\n", 8));
    for (text += 8; *text; n_cues--) {
        const char *arrow = strstr(text, " --> ");
        must(arrow != NULL);
        const double from = read_time(text), to = read_time(arrow + 5);
        must(from >= before - 1e-6 && to > from && to <= from + o->longest_ms / 1000.0 + 1e-4);
        before = to;
        int lines = 0;
        for (text = strchr(text, '\n') + 1; *text != '\n'; lines++) {
            int chars = 0;
            for (; *text != '\n'; text++) {
                must(*text && strncmp(text, "-->", 3));
                if (*text == '<') text = strchr(text, '>');
                else if (*text == '&') text = strchr(text, ';'), chars++;
                else chars += (*text & 0xC0) != 0x80;
            }
            must(chars <= o->width);
            text++;
        }
        must(lines >= 1 && lines <= o->rows);
        text++;
    }
    must(n_cues == 0);
}

static void check_lines(const char *text, const char *format, int n_tokens)
{
    int lines = 0, tabs = 0;
    for (; *text; text++) {
        lines += *text == '\n';
        tabs += *text == '\t';
    }
    if (!strcmp(format, "audacity")) must(lines == n_tokens && tabs == 2 * n_tokens);
    else must(lines == (strcmp(format, "ctm") || !n_tokens ? 1 : n_tokens));
}

static void check(const lin_writer *w, const lin_result *r, lin_writer_options o)
{
    lin_error err = {0};
    lin_buffer out = {0};
    lin_writer_document document = {0};
    o.document = &document;
    lin_status status = lin_writer_begin(w, &o, &out, &err);
    if (status == LIN_OK) status = lin_write(w, r, &o, &out, &err);
    if (status != LIN_OK) {
        must(status == LIN_INVALID && err.message[0] && document.utterances == 0);
        must(out.n == (w->header ? strlen(w->header) : 0));
    } else {
        const int words = r->has_words && o.unit != LIN_UNIT_PHONES, n = words ? r->n_words : r->n_phones;
        const char *text = out.data ? out.data : "";
        must(strlen(text) == out.n && document.utterances == 1);
        if (!strcmp(w->name, "json")) check_json(text, out.n, "phones");
        else if (!strcmp(w->name, "nemo")) check_json(text, out.n, "pred_text");
        else if (!strcmp(w->name, "csv")) check_csv(text);
        else if (!strcmp(w->name, "rttm")) must(out.n == 0 || (!strncmp(text, "SPEAKER ", 8) && text[out.n - 1] == '\n'));
        else if (!strcmp(w->name, "textgrid")) check_textgrid(text);
        else if (!strcmp(w->name, "vtt")) check_vtt(text, document.cues, &o.cues);
        else if (strcmp(w->name, "srt")) check_lines(text, w->name, n);
        if (w->name[0] != 't' || !strcmp(w->name, "textgrid")) {
            if (strcmp(w->name, "ctm")) check_utf8(text, out.n); // text, ctm and trn write the bytes they are given
        }
        lin_buffer whole = {0}; // the same result as a file of its own
        o.document = NULL;
        must(lin_write(w, r, &o, &whole, &err) == LIN_OK && whole.n == out.n && (!out.n || !memcmp(whole.data, out.data, out.n)));
        lin_buffer_free(&whole);
    }
    lin_buffer_free(&out);
}

void fuzz_writers(const uint8_t *data, size_t size)
{
    static lin_phones *phones;
    if (!phones && lin_phones_create(NULL, &phones, NULL)) abort();
    bytes b = {data, data + size};
    char id[MAX_TEXT], speaker[MAX_TEXT];
    lin_result r = {0};
    const int flags = take_byte(&b);
    const lin_cue_options cues[] = {{42, 2, 1000, 7000, 17, 0, 0}, {12, 1, 500, 3000, 21, 80, 1}};
    const lin_writer_options o = {.phones = phones,
                                  .unit = (lin_writer_unit)(flags & 3),
                                  .ipa = flags >> 2 & 1,
                                  .with_id = flags >> 3 & 1,
                                  .word_times = flags >> 4 & 1,
                                  .with_speaker = flags >> 7 & 1,
                                  .cues = cues[flags >> 7 & 1]};
    take_text(&b, id);
    if (lin_result_begin(&r, id, take_text(&b, speaker), 1, NULL)) abort();
    r.seconds = take_float(&b);
    r.has_words = flags >> 5 & 1;
    for (int i = 0; i < MAX_TOKENS && b.at < b.end; i++) add_token(&r, &b, flags >> 5 & 1);
    if (flags & 64) {
        bytes again = {data, data + size};
        lin_result *other = lin_result_add_alternative(&r);
        if (!other) abort();
        for (int i = 0; i < 5 && again.at < again.end; i++) add_token(other, &again, 1);
    }
    for (int i = 0; lin_writer_at(i); i++) check(lin_writer_at(i), &r, o);
    lin_result_free(&r);
}
