// serve_calls.c - forms, the table of calls over HTTP and what is made of it, tokens, hosts and origins; see serve_calls.h.

#include "serve/serve_calls.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/textfile.h"
#include "base/unicode.h"

/* ---- forms ----------------------------------------------------------------------------------------------------------------- */

// The number of bytes from `at` on that are in `set`.
static size_t span_of(const char *at, const char *end, const char *set)
{
    const char *begin = at;
    while (at < end && *at && strchr(set, *at)) at++;
    return (size_t)(at - begin);
}

// The value of a parameter such as ; name="x" in a header [n], without quotes; its length in *n_value. NULL: not there.
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

// Reads the headers of a part up to the empty line; returns where its data begin, NULL if it breaks off.
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
    // Blanks may follow a boundary (RFC 2046, 5.1.1).
    while (at && end - (at += span_of(at, end, " \t")) >= 2 && memcmp(at, "\r\n", 2) == 0) {
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

/* ---- the table ------------------------------------------------------------------------------------------------------------- */

#define A_FILE {.name = "file", .type = LIN_FIELD_FILE, .required = 1, .about = "Sound or video, in any format that linnet reads"}
#define A_PROMPT {.name = "prompt", .about = "Parts of it between marks, of at most 6 words, are likely phrases"}
#define A_LANGUAGE {.name = "language", .about = "The model's language, by its code or name, or nothing; any other is refused"}
#define IGNORED(field, what) {.name = field, .no_effect = 1, .about = what}

static const lin_field transcription[] = {
    A_FILE,
    IGNORED("model", "There is one, linnet"),
    A_LANGUAGE,
    {.name = "languages", .many = 1, .about = "Several languages; one must be the model's"},
    A_PROMPT,
    {.name = "keywords", .many = 1, .about = "Likely words and phrases; entries that cannot be said are left out"},
    {.name = "phrases", .many = 1, .about = "linnet's: a likely phrase, or several in lines; may be repeated"},
    {.name = "response_format", .type = LIN_FIELD_CHOICE, .otherwise = "json",
     .choices = "json verbose_json text srt vtt full_json ctm trn textgrid csv audacity",
     .about = "json, verbose_json, text, srt and vtt are OpenAI's; the other formats are linnet's"},
    {.name = "stream", .type = LIN_FIELD_FLAG, .otherwise = "false",
     .about = "Server-sent events: transcript.text.delta with text as it settles, transcript.text.done with all of it; with the "
              "formats json and text"},
    {.name = "timestamp_granularities", .type = LIN_FIELD_CHOICE, .many = 1, .choices = "word segment", .otherwise = "segment",
     .about = "The lists in verbose_json"},
    {.name = "temperature", .type = LIN_FIELD_NUMBER, .most = 1, .no_effect = 1, .about = "The search has no temperature"},
    IGNORED("include", "There are no log-probabilities of tokens"),
    IGNORED("chunking_strategy", "Sound of any length is one stream"),
    IGNORED("known_speaker_names", "Speakers (linnet serve --diarize) have no names but S1, S2, ..."),
    IGNORED("known_speaker_references", "Speakers (linnet serve --diarize) have no names but S1, S2, ..."),
    {.name = NULL}};

static const lin_field inference[] = {
    A_FILE,
    A_LANGUAGE,
    A_PROMPT,
    {.name = "response_format", .type = LIN_FIELD_CHOICE, .otherwise = "json", .choices = "json verbose_json text srt vtt",
     .about = "whisper.cpp's formats"},
    {.name = "translate", .type = LIN_FIELD_FLAG, .otherwise = "false", .about = "true is refused"},
    {.name = "temperature", .type = LIN_FIELD_NUMBER, .most = 1, .no_effect = 1, .about = "The search has no temperature"},
    IGNORED("temperature_inc", "The search has no temperature"),
    {.name = NULL}};

static const lin_field alignment[] = {
    A_FILE,
    {.name = "text", .about = "The known text in words; give text or phones"},
    {.name = "phones", .about = "The known text in phonemes; give text or phones"},
    {.name = "response_format", .type = LIN_FIELD_CHOICE, .otherwise = "json",
     .choices = "json verbose_json full_json text srt vtt ctm trn textgrid csv audacity", .about = "All json forms are equal"},
    {.name = NULL}};

#define JSON "application/json"
#define PLAIN "text/plain"
#define PAGE "text/html; charset=utf-8"

static const lin_call calls[] = {
    {LIN_CALL_TRANSCRIBE, "POST", "/v1/audio/transcriptions", "A file to text, as OpenAI's call", JSON, 0, transcription},
    {LIN_CALL_INFERENCE, "POST", "/inference", "A file to text, as whisper.cpp's server", JSON, 0, inference},
    {LIN_CALL_ALIGN, "POST", "/v1/align", "When each word and phoneme of a known text was said, and how well", JSON, 0,
     alignment},
    {LIN_CALL_MODELS, "GET", "/v1/models", "The model, in a list", JSON, 0, NULL},
    {LIN_CALL_MODEL, "GET", "/v1/models/linnet", "The model", JSON, 0, NULL},
    {LIN_CALL_HEALTH, "GET", "/healthz", "Whether the server runs", PLAIN, 1, NULL},
    {LIN_CALL_HEALTH_JSON, "GET", "/health", "Whether the server runs, as whisper.cpp's server says it", JSON, 1, NULL},
    {LIN_CALL_READY, "GET", "/readyz", "Whether it takes more streams: 200 or 503", PLAIN, 1, NULL},
    {LIN_CALL_METRICS, "GET", "/metrics", "Counts and times for Prometheus", PLAIN "; version=0.0.4", 1, NULL},
    {LIN_CALL_DOCS, "GET", "/docs", "These calls, for people", PAGE, 1, NULL},
    {LIN_CALL_OPENAPI, "GET", "/openapi.json", "These calls, for programs: OpenAPI 3.0", JSON, 1, NULL},
    {LIN_CALL_PAGE, "GET", "/", "The page for browsers", PAGE, 1, NULL}};

enum { CALLS = sizeof calls / sizeof *calls, IGNORED_BYTES = 400 };

const lin_call *lin_call_find(const char *method, const char *path, int *path_known)
{
    *path_known = 0;
    if (!strcmp(method, "HEAD")) method = "GET";
    for (int i = 0; i < CALLS; i++) {
        if (strcmp(calls[i].path, path) != 0) continue;
        *path_known = 1;
        if (!strcmp(calls[i].method, method)) return &calls[i];
    }
    return NULL;
}

/* ---- their forms ----------------------------------------------------------------------------------------------------------- */

static int has_name(const lin_form_part *part, const char *name)
{
    const size_t n = strlen(name);
    return part->n_name >= n && memcmp(part->name, name, n) == 0 && (part->n_name == n || part->name[n] == '[');
}

static const lin_field *field_of(const lin_call *call, const lin_form_part *part)
{
    for (const lin_field *f = call->fields; f && f->name; f++) {
        if (has_name(part, f->name)) return f;
    }
    return NULL;
}

static const lin_field *field_named(const lin_call *call, const char *name)
{
    return field_of(call, &(lin_form_part){.name = name, .n_name = strlen(name)});
}

const lin_form_part *lin_call_part(const lin_call *call, const lin_form *form, const char *field, int number)
{
    if (!field_named(call, field)) return NULL;
    for (int i = 0; i < form->n; i++) {
        const lin_form_part *part = &form->parts[i];
        if (part->n && has_name(part, field) && number-- == 0) return part;
    }
    return NULL;
}

void lin_call_value(const lin_call *call, const lin_form *form, const char *field, char *text, size_t capacity)
{
    const lin_form_part *part = lin_call_part(call, form, field, 0);
    const lin_field *f = field_named(call, field);
    text[0] = 0;
    if (!f) return;
    if (part) snprintf(text, capacity, "%.*s", (int)(part->n < capacity ? part->n : capacity - 1), part->data);
    else if (f->otherwise) snprintf(text, capacity, "%s", f->otherwise);
}

// Whether the part is one of the texts between blanks; any_case: in upper or lower case.
static int is_one_of(const lin_form_part *part, const char *list, int any_case)
{
    for (const char *at = list; *at;) {
        const size_t n = strcspn(at, " ");
        if (n == part->n && (any_case ? strncasecmp(at, part->data, n) : strncmp(at, part->data, n)) == 0) return 1;
        at += n + (at[n] == ' ');
    }
    return 0;
}

int lin_call_flag(const lin_call *call, const lin_form *form, const char *field)
{
    const lin_form_part *part = lin_call_part(call, form, field, 0);
    return part && is_one_of(part, "true 1 yes on", 1);
}

static int is_number(const lin_form_part *part, double least, double most)
{
    char text[64], *end;
    if (part->n >= sizeof text) return 0;
    memcpy(text, part->data, part->n);
    text[part->n] = 0;
    const double value = strtod(text, &end);
    return strlen(text) == part->n && end != text && !*end && value >= least && value <= most;
}

static lin_status check_value(const lin_field *f, const lin_form_part *part, lin_error *err)
{
    char list[160];
    switch (f->type) {
    case LIN_FIELD_CHOICE:
        if (is_one_of(part, f->choices, 0)) return LIN_OK;
        snprintf(list, sizeof list, "%s", f->choices);
        for (char *c = list; *c; c++) *c = *c == ' ' ? '|' : *c;
        return lin_fail(err, LIN_INVALID, "%s must be one of %s", f->name, list);
    case LIN_FIELD_NUMBER:
        if (is_number(part, f->least, f->most)) return LIN_OK;
        return lin_fail(err, LIN_INVALID, "%s must be a number from %g to %g", f->name, f->least, f->most);
    case LIN_FIELD_FLAG:
        if (is_one_of(part, "true false 1 0 yes no on off", 1)) return LIN_OK;
        return lin_fail(err, LIN_INVALID, "%s must be true or false", f->name);
    default: return LIN_OK;
    }
}

// Appends a client's name without the characters that a header cannot hold.
static void put_name(lin_buffer *out, const lin_form_part *part)
{
    if (out->n > IGNORED_BYTES) return;
    if (out->n) lin_buffer_text(out, ", ");
    for (size_t i = 0; i < part->n_name && i < 64; i++) {
        const char c = part->name[i];
        lin_buffer_char(out, isalnum((unsigned char)c) || (c && strchr("_-.[]", c)) ? c : '?');
    }
}

lin_status lin_call_check(const lin_call *call, const lin_form *form, lin_buffer *ignored, lin_error *err)
{
    for (const lin_field *f = call->fields; f && f->name; f++) {
        int parts = 0, values = 0;
        for (int i = 0; i < form->n; i++) {
            if (!has_name(&form->parts[i], f->name)) continue;
            parts++;
            values += form->parts[i].n > 0;
        }
        if (f->required && !values) return lin_fail(err, LIN_INVALID, parts ? "%s is empty" : "the form has no %s", f->name);
        if (values > 1 && !f->many && !f->no_effect)
            return lin_fail(err, LIN_INVALID, "the form has %d fields %s: send one%s", values, f->name,
                            f->type == LIN_FIELD_FILE ? ", and the other files in requests of their own" : "");
    }
    for (int i = 0; i < form->n; i++) {
        const lin_form_part *part = &form->parts[i];
        if (!part->n) continue;
        const lin_field *f = field_of(call, part);
        lin_status status = f ? check_value(f, part, err) : LIN_OK;
        if (status != LIN_OK) return status;
        if (!f || f->no_effect) put_name(ignored, part);
    }
    return lin_buffer_status(ignored, err);
}

/* ---- languages and prompts ------------------------------------------------------------------------------------------------- */

const char *lin_language_name(const char *language) { return strcasecmp(language, "en") == 0 ? "english" : language; }

int lin_language_is(const char *asked, const char *language)
{
    const size_t n = strlen(language);
    if (!strcmp(language, "und")) return 1;
    if (!*asked || !strcasecmp(asked, "auto") || !strcasecmp(asked, lin_language_name(language))) return 1;
    return strncasecmp(asked, language, n) == 0 && (!asked[n] || asked[n] == '-' || asked[n] == '_');
}

// The next character of a prompt: a letter in lower case, as UTF-8 in `letter`, or its class: '.' a mark between phrases, ' ',
// '\'', '0' a character that is in no word.
static char next_sign(const char *text, size_t n, size_t *at, char letter[4], size_t *n_letter)
{
    unsigned code = 0;
    const size_t width = lin_utf8_decode(text + *at, n - *at, &code);
    *n_letter = 0;
    *at += width ? width : 1;
    if (!width || !code) return '0';
    const unsigned small = code < 128 ? (unsigned)tolower((int)code) : lin_unicode_lower(code);
    if ((small >= 'a' && small <= 'z') || (code >= 128 && lin_unicode_is_letter(code))) {
        *n_letter = lin_utf8_encode(small, letter);
        return 0;
    }
    if (code == '\'' || code == 0x2018 || code == 0x2019) return '\'';
    if (code == ' ' || code == '-' || code == 0xA0 || code == 0x2010) return ' ';
    const int is_mark = code < 128 ? strchr(".,;:!?()[]{}\"\n\r\t", (int)code) != NULL : lin_unicode_is_punctuation(code);
    return is_mark ? '.' : '0';
}

int lin_prompt_phrases(const char *text, size_t n, lin_buffer *phrases)
{
    enum { MOST_WORDS = 6, MOST_BYTES = 100 };
    int made = 0;
    for (size_t at = 0; at < n && made < LIN_MESSAGE_MOST_PHRASES;) {
        char part[MOST_BYTES + 4], sign = 0;
        size_t n_part = 0, width;
        int words = 0, good = 1;
        while (at < n && (sign = next_sign(text, n, &at, part + n_part, &width)) != '.') {
            words += width && (n_part == 0 || part[n_part - 1] == ' ');
            if (width) {
                good = good && n_part + width <= MOST_BYTES;
                n_part += n_part + width <= MOST_BYTES ? width : 0;
            } else if (sign == ' ') {
                if (n_part && part[n_part - 1] == '\'') n_part--; // a quotation's end
                if (n_part && n_part < MOST_BYTES && part[n_part - 1] != ' ') part[n_part++] = ' ';
            } else if (sign == '\'' && n_part < MOST_BYTES) {
                if (n_part && part[n_part - 1] != ' ') part[n_part++] = '\'';
            } else {
                good = 0;
            }
        }
        while (n_part && (part[n_part - 1] == ' ' || part[n_part - 1] == '\'')) n_part--;
        if (!good || !n_part || words > MOST_WORDS) continue;
        lin_buffer_bytes(phrases, part, n_part);
        lin_buffer_char(phrases, 0);
        made++;
    }
    return made;
}

/* ---- secrets --------------------------------------------------------------------------------------------------------------- */

// Without branches on the bytes, so that the time does not depend on them.
static unsigned differs(const char *a, size_t n_a, const char *b, size_t n_b)
{
    volatile unsigned difference = n_a != n_b;
    for (size_t i = 0; i < n_b; i++) difference |= (unsigned char)(b[i] ^ (n_a ? a[i % n_a] : 1));
    return difference;
}

// Moves to the next line with a token, and trims its blanks; 0: no more.
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
    while (n && name[n - 1] == '.') n--; // the DNS root
    return strlen(wanted) == n && strncasecmp(name, wanted, n) == 0;
}

int lin_host_allowed(const char *host, const char *listens, const char *const *list, int n)
{
    const char *name;
    const size_t n_name = host_name(host, &name);
    if (!*host || *host == '[') return 1; // not sent by a browser, or an IPv6 address
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

// Takes the last address of a list [n], without quotes, brackets and port; *n becomes the length of the rest.
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

// An IPv4-mapped address, ::ffff:192.0.2.7, without its prefix.
static const char *unmapped(const char *address)
{
    static const char mapped[] = "::ffff:";
    const size_t n = sizeof mapped - 1;
    return strncasecmp(address, mapped, n) == 0 && strchr(address, '.') ? address + n : address;
}

static int is_proxy(const char *address, const char *const *proxies, int n)
{
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
    snprintf(out, capacity, "%s", unmapped(address));
    for (size_t left = strlen(list); left && is_proxy(out, proxies, n);) {
        take_last(list, &left, is_forwarded, next, sizeof next);
        if (!*next) return; // not said
        snprintf(out, capacity, "%s", unmapped(next));
    }
}

/* ---- errors, OpenAPI ------------------------------------------------------------------------------------------------------- */

void lin_openai_put_error(lin_buffer *out, int status, const char *message)
{
    const char *type = status == 401   ? "authentication_error"
                       : status == 429 ? "rate_limit_error"
                       : status >= 500 ? "server_error"
                                       : "invalid_request_error";
    lin_buffer_json_format(out, "{'error':{'message':%s,'type':%s,'param':null,'code':null}}", message, type);
}

static void put_values(lin_buffer *out, const char *choices)
{
    for (const char *at = choices; *at;) {
        const size_t n = strcspn(at, " ");
        if (at != choices) lin_buffer_char(out, ',');
        lin_buffer_json(out, at, n);
        at += n + (at[n] == ' ');
    }
}

static void put_schema(lin_buffer *out, const lin_field *f)
{
    const char *const type = f->type == LIN_FIELD_NUMBER ? "number" : f->type == LIN_FIELD_FLAG ? "boolean" : "string";
    lin_buffer_json_format(out, "%s:{'description':%s", f->name, f->about);
    if (f->many) lin_buffer_json_format(out, ",'type':'array','items':{'type':'string'");
    else lin_buffer_json_format(out, ",'type':%s", type);
    if (f->type == LIN_FIELD_FILE) lin_buffer_json_format(out, ",'format':'binary'");
    if (f->type == LIN_FIELD_CHOICE) {
        lin_buffer_json_format(out, ",'enum':[");
        put_values(out, f->choices);
        lin_buffer_char(out, ']');
    }
    if (f->type == LIN_FIELD_NUMBER) lin_buffer_json_format(out, ",'minimum':%.0f,'maximum':%.0f", f->least, f->most);
    if (f->many) lin_buffer_char(out, '}');
    if (f->no_effect) lin_buffer_json_format(out, ",'x-no-effect':true");
    if (f->type == LIN_FIELD_FLAG) lin_buffer_format(out, ",\"default\":%s", f->otherwise);
    else if (f->otherwise && !f->many) lin_buffer_json_format(out, ",'default':%s", f->otherwise);
    lin_buffer_char(out, '}');
}

static void put_body(lin_buffer *out, const lin_field *fields)
{
    lin_buffer_json_format(out, ",'requestBody':{'required':true,'content':{'multipart/form-data':{'schema':{'type':'object',"
                                "'properties':{");
    for (const lin_field *f = fields; f->name; f++) {
        if (f > fields) lin_buffer_char(out, ',');
        put_schema(out, f);
    }
    lin_buffer_json_format(out, "},'required':[");
    for (const lin_field *f = fields, *first = NULL; f->name; f++) {
        if (!f->required) continue;
        if (first) lin_buffer_char(out, ',');
        lin_buffer_json(out, f->name, strlen(f->name));
        first = f;
    }
    lin_buffer_text(out, "]}}}}");
}

void lin_calls_put_openapi(lin_buffer *out, const char *version)
{
    lin_buffer_json_format(out, "{'openapi':'3.0.3','info':{'title':'linnet serve','version':%s},'components':{'securitySchemes':"
                                "{'token':{'type':'http','scheme':'bearer'}}},'paths':{", version);
    for (int i = 0; i < CALLS; i++) {
        const lin_call *c = &calls[i];
        if (i) lin_buffer_char(out, ',');
        lin_buffer_json_format(out, "%s:{%s:{'summary':%s", c->path, !strcmp(c->method, "POST") ? "post" : "get", c->about);
        if (!c->is_open) lin_buffer_json_format(out, ",'security':[{},{'token':[]}]");
        if (c->fields) put_body(out, c->fields);
        lin_buffer_json_format(out, ",'responses':{'200':{'description':'The answer','content':{%s:{}}}", c->type);
        if (c->fields)
            lin_buffer_json_format(out, ",'400':{'description':'What is wrong, in JSON','content':{'application/json':{}}}");
        lin_buffer_text(out, "}}}");
    }
    lin_buffer_text(out, "}}\n");
}

/* ---- the page -------------------------------------------------------------------------------------------------------------- */

static void put_html(lin_buffer *out, const char *before, const char *text, const char *behind)
{
    lin_buffer_text(out, before);
    lin_buffer_html(out, text, strlen(text));
    lin_buffer_text(out, behind);
}

static void put_fields(lin_buffer *out, const lin_field *fields)
{
    lin_buffer_text(out, "<table><tr><th>field<th>values<th>what</tr>\n");
    for (const lin_field *f = fields; f->name; f++) {
        put_html(out, "<tr><td><code>", f->name, "</code>");
        if (f->many) lin_buffer_text(out, ", repeated");
        if (f->type == LIN_FIELD_CHOICE) put_html(out, "<td>", f->choices, "");
        else if (f->type == LIN_FIELD_NUMBER) lin_buffer_format(out, "<td>%g to %g", f->least, f->most);
        else
            lin_buffer_text(out, f->type == LIN_FIELD_FILE   ? "<td>a file"
                                 : f->type == LIN_FIELD_FLAG ? "<td>true, false"
                                                             : "<td>text");
        if (f->otherwise) put_html(out, "; <b>", f->otherwise, "</b>");
        put_html(out, "<td>", f->about, "");
        lin_buffer_text(out, f->required ? " (required)</tr>\n" : f->no_effect ? " (no effect)</tr>\n" : "</tr>\n");
    }
    lin_buffer_text(out, "</table>\n");
}

void lin_calls_put_page(lin_buffer *out, const char *version, const char *(*sockets)[2], int n)
{
    lin_buffer_text(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>linnet serve: calls</title>\n"
        "<link rel=\"stylesheet\" href=\"style.css\">\n<link rel=\"icon\" href=\"data:,\">\n</head>\n<body class=\"docs\">\n");
    put_html(
        out, "<h1>linnet serve ", version,
        "</h1>\n<p>For programs: <a href=\"openapi.json\">openapi.json</a>. Fields without "
        "effect, and those that a call does not have, are accepted and named in the header <code>linnet-ignored</code>.</p>\n");
    for (int i = 0; i < CALLS; i++) {
        put_html(out, "<h2><code>", calls[i].method, " ");
        put_html(out, "", calls[i].path, "</code></h2>\n");
        put_html(out, "<p>", calls[i].about, calls[i].is_open ? ".</p>\n" : ". Needs a token if the server has any.</p>\n");
        if (calls[i].fields) put_fields(out, calls[i].fields);
    }
    lin_buffer_text(out, "<h2>WebSockets</h2>\n<table><tr><th>address<th>protocol</tr>\n");
    for (int i = 0; i < n; i++) {
        put_html(out, "<tr><td><code>", sockets[i][0], "</code><td>");
        put_html(out, "", sockets[i][1], "</tr>\n");
    }
    lin_buffer_text(out, "</table>\n</body>\n</html>\n");
}
