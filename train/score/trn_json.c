// The reader of JSON lines: one object per line, as decoder/writers and many other toolkits make them.
#include <string.h>

#include "base/buffer.h"
#include "base/json.h"
#include "train/score/trn_reader.h"

// A value costs cJSON 64 bytes and more, and a comma can make one: this keeps a hostile line below a gigabyte. An hour of speech
// has a million of them with five alternatives.
enum { MAX_VALUES = 6000000 };

typedef struct place {
    const char *name;
    int line;
} place;

// A string that may be a token or an id: not empty, no control characters, and no blanks in a token.
static lin_status check_string(const cJSON *item, const char *what, int is_token, const place *at, lin_error *err)
{
    char shown[LIN_QUOTE];
    if (!cJSON_IsString(item)) return lin_fail(err, LIN_FORMAT, "%s:%d: \"%s\" is no string", at->name, at->line, what);
    const char *text = item->valuestring;
    size_t n = strlen(text);
    if (!n) return lin_fail(err, LIN_FORMAT, "%s:%d: \"%s\" is empty", at->name, at->line, what);
    if (lin_text_find_control(text, n) < n || (is_token && strpbrk(text, " \t"))) {
        return lin_fail(err, LIN_FORMAT, "%s:%d: \"%s\" holds a %scontrol character: '%s'", at->name, at->line, what,
                        is_token ? "blank or " : "", lin_quote(shown, text, n));
    }
    return LIN_OK;
}

// A word that the lexicon lacks, as the other formats of decoder/writers spell it: its phones, small, in brackets.
static lin_status add_unknown(lin_trn_reader *r, const cJSON *phones, const place *at, lin_error *err)
{
    const cJSON *phone;
    lin_buffer spelling = {0};
    lin_status status = LIN_OK;
    cJSON_ArrayForEach(phone, phones)
    {
        status = check_string(phone, "phones", 1, at, err);
        if (status != LIN_OK) break;
        lin_buffer_char(&spelling, spelling.n ? '_' : '[');
        for (const char *c = phone->valuestring; *c; c++) lin_buffer_char(&spelling, lin_lower(*c));
    }
    lin_buffer_char(&spelling, ']');
    if (status == LIN_OK) status = lin_buffer_status(&spelling, err);
    if (status == LIN_OK) status = lin_trn_add_token(r, spelling.data, spelling.n, err);
    lin_buffer_free(&spelling);
    return status;
}

// An object of decoder/writers whose word has no spelling, but phones.
static const cJSON *unknown_phones(const cJSON *item, const cJSON *token)
{
    const cJSON *phones = cJSON_GetObjectItemCaseSensitive(item, "phones");
    const int is_unknown = cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(item, "known"));
    return is_unknown && cJSON_IsString(token) && !*token->valuestring && cJSON_IsArray(phones) && phones->child ? phones : NULL;
}

// [{"phone": "AA", ...}, ...] or ["AA", ...]
static lin_status read_list(lin_trn_reader *r, const cJSON *list, const char *key, const place *at, lin_error *err)
{
    const cJSON *item;
    lin_status status = LIN_OK;
    cJSON_ArrayForEach(item, list)
    {
        const cJSON *token = cJSON_IsObject(item) ? cJSON_GetObjectItemCaseSensitive(item, key) : item;
        const cJSON *phones = unknown_phones(item, token);
        status = phones ? add_unknown(r, phones, at, err) : check_string(token, key, 1, at, err);
        if (status == LIN_OK && !phones) status = lin_trn_add_token(r, token->valuestring, strlen(token->valuestring), err);
        if (status != LIN_OK) break;
    }
    return status;
}

// With the offset in milliseconds behind a path of which only a part is meant.
static lin_status add_utterance(lin_trn_reader *r, const cJSON *object, const cJSON *id, int is_path, const place *at,
                                lin_error *err)
{
    const cJSON *offset = is_path ? cJSON_GetObjectItemCaseSensitive(object, "offset") : NULL;
    lin_buffer name = {0};
    lin_buffer_text(&name, id->valuestring);
    if (cJSON_IsNumber(offset)) {
        lin_buffer_char(&name, '-');
        lin_buffer_fixed(&name, offset->valuedouble * 1000, 0);
    }
    lin_status status = lin_buffer_status(&name, err);
    if (status == LIN_OK) status = lin_trn_add_utterance(r, name.data, name.n, at->line, err);
    lin_buffer_free(&name);
    return status;
}

static lin_status read_object(lin_trn_reader *r, const cJSON *object, const place *at, lin_error *err)
{
    static const char *const lists[] = {[LIN_TRN_PHONES] = "phones", [LIN_TRN_WORDS] = "words"};
    static const char *const keys[] = {[LIN_TRN_PHONES] = "phone", [LIN_TRN_WORDS] = "word"};
    const lin_trn_unit unit = r->options.unit;
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(object, "id"), *text = cJSON_GetObjectItemCaseSensitive(object, "text");
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, lists[unit]);
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(object, "pred_text");
    const cJSON *path = cJSON_GetObjectItemCaseSensitive(object, "audio_filepath");
    if (found && r->options.is_hypothesis) text = found, list = NULL;
    if (!id) id = path;
    if (!id) return lin_fail(err, LIN_FORMAT, "%s:%d: the object has no \"id\"", at->name, at->line);
    if (list ? !cJSON_IsArray(list) : !cJSON_IsString(text)) {
        return lin_fail(err, LIN_FORMAT, "%s:%d: the object has neither a list \"%s\" nor a string \"text\"", at->name, at->line,
                        lists[unit]);
    }
    lin_status status = check_string(id, id == path ? "audio_filepath" : "id", 0, at, err);
    if (status == LIN_OK) status = add_utterance(r, object, id, id == path, at, err);
    if (status != LIN_OK) return status;
    if (list) return read_list(r, list, keys[unit], at, err);
    size_t n = strlen(text->valuestring);
    if (n && (status = check_string(text, "text", 0, at, err))) return status;
    return lin_trn_add_tokens(r, text->valuestring, text->valuestring + n, err);
}

// Values of a line at most: one behind each sign that can be followed by one.
static size_t count_values(const char *text, size_t n)
{
    size_t values = 0;
    for (size_t i = 0; i < n; i++) values += text[i] == ',' || text[i] == '[' || text[i] == '{';
    return values;
}

lin_status lin_trn_json_line(lin_trn_reader *r, const lin_lines *line, lin_error *err)
{
    const place at = {r->name, line->number};
    const size_t values = count_values(line->text, line->n);
    if (values > MAX_VALUES) {
        return lin_fail(err, LIN_FORMAT, "%s:%d: a line of up to %zu values is too long; one object per line is wanted", at.name,
                        at.line, values);
    }
    cJSON *tree;
    size_t end;
    lin_status status = lin_json_parse_value(line->text, line->n, &tree, &end);
    if (status == LIN_NO_MEMORY) return lin_fail(err, status, "%s:%d: no memory for the object", at.name, at.line);
    if (status != LIN_OK) return lin_fail(err, status, "%s:%d: not JSON at byte %zu of the line", at.name, at.line, end + 1);
    while (end < line->n && strchr(" \t", line->text[end])) end++;
    if (!cJSON_IsObject(tree)) status = lin_fail(err, LIN_FORMAT, "%s:%d: a line must hold one JSON object", at.name, at.line);
    else if (end < line->n)
        status = lin_fail(err, LIN_FORMAT, "%s:%d: something follows the object at byte %zu", at.name, at.line, end + 1);
    else status = read_object(r, tree, &at, err);
    cJSON_Delete(tree);
    return status;
}
