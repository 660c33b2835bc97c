// options.c - the command line and configuration files against a table; see options.h.

#include "app/options.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/textfile.h"

static int is_option(const lin_option *o) { return o->type != LIN_OPTION_HEADING; }

int lin_options_find(const lin_command *command, const char *name)
{
    for (int i = 0; command->options[i].type != LIN_OPTION_END; i++) {
        if (is_option(&command->options[i]) && strcmp(command->options[i].name, name) == 0) return i;
    }
    return -1;
}

int lin_options_given(const lin_parsed *parsed, const char *name)
{
    const int row = lin_options_find(parsed->command, name);
    return row >= 0 && parsed->from[row] != LIN_FROM_DEFAULT;
}

const lin_option *lin_options_under(const lin_command *command, const char *settings, const lin_option *row)
{
    for (row = row ? row + 1 : command->options; row->type != LIN_OPTION_END; row++) {
        if (row->under && strcmp(row->under, settings) == 0) return row;
    }
    return NULL;
}

int lin_edit_cost(const char *a, const char *b)
{
    enum { MAX = 64 };
    size_t n = strlen(a), m = strlen(b);
    if (n >= MAX || m >= MAX) return INT_MAX;
    int row[MAX + 1];
    for (size_t j = 0; j <= m; j++) row[j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            int cost = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < cost) cost = row[j] + 1;
            if (row[j - 1] + 1 < cost) cost = row[j - 1] + 1;
            row[j] = cost;
        }
    }
    return row[m];
}

const char *lin_nearest_option(const lin_command *command, const char *name)
{
    const char *best = "help";
    int best_cost = lin_edit_cost(name, best), length = (int)strlen(name), is_setting = 0;
    for (const lin_option *o = command->options; o->type != LIN_OPTION_END; o++) {
        if (!is_option(o)) continue;
        int cost = lin_edit_cost(name, o->name);
        // A prefix of a name counts as one mistake: --out for --output.
        if (length >= 2 && strncmp(name, o->name, (size_t)length) == 0) cost = 1;
        if (cost < best_cost || (cost == best_cost && is_setting && !o->under)) {
            best_cost = cost;
            best = o->name;
            is_setting = o->under != NULL;
        }
    }
    return best_cost <= (length + 2) / 3 ? best : NULL;
}

/* ---- hints ----------------------------------------------------------------------------------------------------------------- */

#define UNEXPECTED "an argument" // no option can have this name

// Names from other programs. needs: the option that a command must have for the hint to apply, NULL: none. A hint that begins
// with a dash is an option, any other a sentence. The first that applies is given.
static const struct hint {
    const char *names, *needs, *text;
} hints[] = {
    {"json", "format", "--format json"},
    {"srt|subtitles", "format", "--format srt"},
    {"vtt", "format", "--format vtt"},
    {"csv", "format", "--format csv"},
    {"ctm", "format", "--format ctm"},
    {"textgrid", "format", "--format textgrid"},
    {"txt", "format", "--format text"},
    {"output-format|response-format", "format", "--format"},
    {"outdir", "output-dir", "--output-dir"},
    {"output-file", "output", "--output"},
    {"file|input|audio", "from", "--from"},
    {"file|input|audio", NULL, "files are named without an option"},
    {"format|output-format", "json", "--json"},
    {"second-pass", "offline", "--offline"},
    {"offline", "second-pass", "--second-pass offline"},
    {"microphone|mic|live", "files-from", "linnet listen transcribes a microphone"},
    {"wake-word|hotword", "keyword", "--keyword"},
    {"threads|num-threads|workers|num-workers", "jobs", "--jobs"},
    {"jobs|num-threads|workers", "threads", "--threads"},
    {"timestamps", "layout", "--layout times"},
    {"timestamps", "json", "--json"},
    {"timestamps|word-timestamps", "format", "--format json"},
    {"word-timestamps", "json", "--json"},
    {"word-times", "cues", "--cues word-times"},
    {"diarise|diarisation|diarization", "diarize", "--diarize"},
    {"diarize", NULL, "transcribe, listen and serve tell speakers apart"},
    {"num-speakers", "diarize", "--diarize=N"},
    {"lang|locale", "language", "--language"},
    {"task", NULL, "there is one task, to write down what is said; linnet does not translate"},
    {"translate", NULL, "linnet does not translate"},
    {"gpu|cuda", "device", "--device cuda"},
    {"cpu", "device", "--device cpu"},
    {"fp16", "precision", "--precision bf16"},
    {"int8|quantize", "precision", "--precision int8"},
    {"compute-type", "precision", "--precision"},
    {"beam-size|beam-width", "beam", "--beam"},
    {"best-of|nbest|alternatives", "n-best", "--n-best"},
    {"prompt|initial-prompt|hotword", "phrase", "--phrase"},
    {"hotwords|phrases", "context", "--context"},
    {"vocabulary", "add-lexicon", "--add-lexicon"},
    {"punctuation|punctuate", "readable", "--readable"},
    {"vad|vad-filter", NULL, "speech is found without an option; --silence-after says which pause ends an utterance"},
    {"paragraphs", "layout", "--layout paragraphs"},
    {"offset", "start", "--start"},
    {"duration", "end", "--end"},
    {"sample-rate|samplerate", "rate", "--rate"},
    {"mic|input-device", "microphone", "--microphone"},
    {"port|address|bind", "listen", "--listen HOST:PORT"},
    {"api-key", "tokens", "--tokens"},
    {"verbose", "quiet", "messages are shown unless --quiet is given"},
    {"silent", "quiet", "--quiet"},
    {"version", NULL, "linnet --version prints it"},
    {UNEXPECTED, "from", "--from FILE hears a file as a microphone; linnet transcribe FILE is faster"},
};

// Whether a name, in any letters and with '_' for '-', is one of "name|name".
static int is_among(const char *given, const char *names)
{
    for (const char *c; *names; names += strcspn(names, "|"), names += *names == '|') {
        for (c = given; *c && *names != '|' && (*c == '_' ? '-' : tolower((unsigned char)*c)) == *names; c++) names++;
        if (!*c && (!*names || *names == '|')) return 1;
    }
    return 0;
}

static const char *hint_of(const lin_command *command, const char *name)
{
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (is_among(name, hints[i].names) && (!hints[i].needs || lin_options_find(command, hints[i].needs) >= 0))
            return hints[i].text;
    return NULL;
}

/* ---- values ---------------------------------------------------------------------------------------------------------------- */

// Owns a block until lin_options_free, also on failure.
static lin_status own(lin_parsed *p, void *block, lin_error *err)
{
    const lin_status status = lin_grow_int(&p->owned, &p->owned_capacity, p->n_owned + 1, sizeof *p->owned, "options", err);
    if (status != LIN_OK) {
        lin_free(block);
        return status;
    }
    p->owned[p->n_owned++] = block;
    return LIN_OK;
}

// Grows a list whose block is in p->owned; the old block is freed with p, because lists are short.
static lin_status append(lin_parsed *p, lin_list *list, const char *item, lin_error *err)
{
    size_t bytes = ((size_t)list->count + 1) * sizeof(char *);
    if ((list->count & (list->count - 1)) == 0) { // 0, 1, 2, 4, 8, ...: full
        size_t capacity = list->count ? 2 * (size_t)list->count : 1;
        const char **items = lin_alloc(capacity, sizeof(char *));
        if (!items) return lin_no_memory(err, "options", bytes);
        if (list->count) memcpy(items, list->items, (size_t)list->count * sizeof(char *));
        list->items = items;
        lin_status status = own(p, (void *)items, err);
        if (status != LIN_OK) {
            *list = (lin_list){NULL, 0};
            return status;
        }
    }
    list->items[list->count++] = item;
    return LIN_OK;
}

static int parse_flag(const char *text)
{
    static const char *const words[2][4] = {{"no", "false", "off", "0"}, {"yes", "true", "on", "1"}};
    for (int v = 0; v < 2; v++) {
        for (int i = 0; i < 4; i++) {
            if (strcmp(text, words[v][i]) == 0) return v;
        }
    }
    return -1;
}

static lin_status parse_number(const lin_option *o, const char *label, const char *text, size_t length, double *out,
                               lin_error *err)
{
    char buffer[64];
    const char *unit = lin_option_value_name(o);
    const int whole = o->type == LIN_OPTION_INT || strcmp(unit, "N,N,...") == 0;
    const char *number = whole ? "a whole number" : "a number";
    char kind[48];
    snprintf(kind, sizeof kind, "%s%s", number,
             strcmp(unit, "S") == 0 ? " of seconds" : strcmp(unit, "MS") == 0 ? " of milliseconds" : "");
    if (length == 0 || length >= sizeof buffer) {
        return lin_fail(err, LIN_INVALID, "%s needs %s, not '%.*s'", label, kind, length > 40 ? 40 : (int)length, text);
    }
    memcpy(buffer, text, length);
    buffer[length] = 0;
    char *end;
    double v = strtod(buffer, &end);
    end += end > buffer && !strcmp(end, "s") && !strcmp(unit, "S"); // "8s"
    if (*end || isspace((unsigned char)buffer[0]) || isnan(v) || (whole && v != floor(v))) {
        return lin_fail(err, LIN_INVALID, "%s needs %s, not '%s'", label, kind, buffer);
    }
    if ((v < o->min || v > o->max) && text != o->bare) { // bare may be outside the range
        return lin_fail(err, LIN_INVALID, "%s must be between %.15g and %.15g, not %s", label, o->min, o->max, buffer);
    }
    *out = v;
    return LIN_OK;
}

static lin_status parse_numbers(lin_parsed *p, const lin_option *o, const char *label, const char *text, lin_numbers *out,
                                lin_error *err)
{
    int count = 1;
    for (const char *c = text; *c; c++) count += *c == ',';
    double *items = lin_alloc((size_t)count, sizeof *items);
    if (!items) return lin_no_memory(err, "options", (size_t)count * sizeof *items);
    LIN_TRY(own(p, items, err));
    for (int i = 0; i < count; i++) {
        size_t length = strcspn(text, ",");
        LIN_TRY(parse_number(o, label, text, length, &items[i], err));
        text += length + 1;
    }
    *out = (lin_numbers){items, count};
    return LIN_OK;
}

static int parse_choice(const char *choices, const char *text)
{
    size_t length = strlen(text);
    for (int i = 0;; i++) {
        size_t n = strcspn(choices, "|");
        if (n == length && memcmp(choices, text, n) == 0) return i;
        if (!choices[n]) return -1;
        choices += n + 1;
    }
}

static lin_status set_value(lin_parsed *p, int row, const char *label, const char *text, int from, lin_error *err);

// name=value,... A comma followed by a digit or a sign belongs to the numbers before it.
static lin_status set_all(lin_parsed *p, const lin_option *settings, const char *text, int from, lin_error *err)
{
    char given[LIN_MAX_OPTIONS] = {0}; // by row
    for (;;) {
        char item[1024], label[160];
        size_t n = strcspn(text, ",");
        while (text[n] && (isdigit((unsigned char)text[n + 1]) || text[n + 1] == '-')) n += 1 + strcspn(text + n + 1, ",");
        if (n >= sizeof item)
            return lin_fail(err, LIN_INVALID, "--%s: more than %zu bytes for one value", settings->name, sizeof item - 1);
        memcpy(item, text, n);
        item[n] = 0;
        char *value = strchr(item, '=');
        if (value) *value++ = 0;
        const int off = !value && strncmp(item, "no-", 3) == 0 && lin_options_find(p->command, item) < 0;
        const int row = lin_options_find(p->command, item + 3 * off);
        const lin_option *o = row < 0 ? NULL : &p->command->options[row];
        if (!o || !o->under || strcmp(o->under, settings->name) != 0) {
            if (o && !o->under)
                return lin_fail(err, LIN_INVALID, "--%s has no '%s': it is an option, --%s", settings->name, o->name, o->name);
            const char *near = lin_nearest_option(p->command, item);
            const int near_row = near ? lin_options_find(p->command, near) : -1;
            const char *under = near_row >= 0 ? p->command->options[near_row].under : NULL;
            if (!under || strcmp(under, settings->name) != 0) near = NULL;
            if (o) return lin_fail(err, LIN_INVALID, "--%s has no '%s'; it is a value of --%s", settings->name, item, o->under);
            return lin_fail(err, LIN_INVALID, "--%s has no '%.60s'%s%s; --%s help lists its names", settings->name, item,
                            near ? ", perhaps " : "", near ? near : "", settings->name);
        }
        snprintf(label, sizeof label, "--%s %s", settings->name, o->name);
        if (given[row]++) return lin_fail(err, LIN_INVALID, "%s is given twice", label);
        if (!value && o->type != LIN_OPTION_FLAG) {
            return lin_fail(err, LIN_INVALID, "%s needs a value: %s=%s", label, o->name, lin_option_value_name(o));
        }
        LIN_TRY(set_value(p, row, label, value ? value : off ? "no" : "yes", from, err));
        if (!text[n]) return LIN_OK;
        text += n + 1;
    }
}

// label: the option as the user wrote it, for messages. Does nothing if the value has a source of higher precedence.
static lin_status set_value(lin_parsed *p, int row, const char *label, const char *text, int from, lin_error *err)
{
    const lin_option *o = &p->command->options[row];
    if (from == LIN_FROM_FILE && o->type != LIN_OPTION_FILES && o->type != LIN_OPTION_SETTINGS) {
        if (p->lines[row])
            return lin_fail(err, LIN_INVALID, "%s is given in line %d already; remove one of the two", label, p->lines[row]);
        p->lines[row] = p->line;
    }
    if (p->from[row] > from) return LIN_OK;
    void *value = (char *)p->values + o->at;
    double number;
    int word;
    switch (o->type) {
    case LIN_OPTION_FLAG:
        word = parse_flag(text);
        if (word < 0) return lin_fail(err, LIN_INVALID, "%s needs yes or no, not '%.40s'", label, text);
        *(int *)value = word;
        break;
    case LIN_OPTION_INT:
        LIN_TRY(parse_number(o, label, text, strlen(text), &number, err));
        *(int *)value = (int)number;
        break;
    case LIN_OPTION_DOUBLE:
        LIN_TRY(parse_number(o, label, text, strlen(text), value, err));
        break;
    case LIN_OPTION_CHOICE:
        word = parse_choice(o->choices, text);
        if (word < 0) return lin_fail(err, LIN_INVALID, "%s must be one of %s, not '%.40s'", label, o->choices, text);
        *(int *)value = word;
        break;
    case LIN_OPTION_NUMBERS:
        LIN_TRY(parse_numbers(p, o, label, text, value, err));
        break;
    case LIN_OPTION_STRING:
    case LIN_OPTION_FILE:
    case LIN_OPTION_FOLDER:
    case LIN_OPTION_FILES: {
        if (!*text && o->type != LIN_OPTION_STRING)
            return lin_fail(err, LIN_INVALID, "%s needs a name, not an empty string", label);
        char *copy = lin_strdup(text);
        if (!copy) return lin_no_memory(err, "options", strlen(text) + 1);
        LIN_TRY(own(p, copy, err));
        // A list from the command line replaces the file's, and the file's replaces the default.
        if (o->type == LIN_OPTION_FILES && p->from[row] < from) *(lin_list *)value = (lin_list){NULL, 0};
        if (o->type == LIN_OPTION_FILES) LIN_TRY(append(p, value, copy, err));
        else *(const char **)value = copy;
        break;
    }
    case LIN_OPTION_SETTINGS: return set_all(p, o, text, from, err);
    case LIN_OPTION_HEADING:
    case LIN_OPTION_END: break;
    }
    p->from[row] = (unsigned char)from;
    return LIN_OK;
}

lin_status lin_options_set(lin_parsed *parsed, const char *name, const char *text, lin_error *err)
{
    return set_value(parsed, lin_options_find(parsed->command, name), name, text, LIN_FROM_COMMAND_LINE, err);
}

lin_status lin_options_begin(const lin_command *command, void *values, lin_parsed *parsed, lin_error *err)
{
    memset(parsed, 0, sizeof *parsed);
    memset(values, 0, command->values_size);
    parsed->command = command;
    parsed->values = values;
    for (int i = 0; command->options[i].type != LIN_OPTION_END; i++) {
        const lin_option *o = &command->options[i];
        if (i >= LIN_MAX_OPTIONS)
            return lin_fail(err, LIN_INVALID, "%s has more than %d options", command->name, LIN_MAX_OPTIONS);
        if (is_option(o) && o->text) LIN_TRY(set_value(parsed, i, o->name, o->text, LIN_FROM_DEFAULT, err));
    }
    return LIN_OK;
}

lin_status lin_options_finish(lin_parsed *parsed, lin_error *err)
{
    const lin_command *c = parsed->command;
    int n = parsed->operands.count;
    if (n < c->min_operands) return lin_fail(err, LIN_INVALID, "%s is missing", c->operands);
    if (c->max_operands >= 0 && n > c->max_operands) {
        const char *hint = hint_of(c, UNEXPECTED);
        return lin_fail(err, LIN_INVALID, "unexpected argument '%.200s'%s%s", parsed->operands.items[c->max_operands],
                        hint ? "; " : "", hint ? hint : "");
    }
    for (int i = 0; c->options[i].type != LIN_OPTION_END; i++) {
        const lin_option *o = &c->options[i];
        if (!is_option(o) || !o->required || parsed->from[i] != LIN_FROM_DEFAULT) continue;
        return lin_fail(err, LIN_INVALID, "--%s %s is missing", o->name, lin_option_value_name(o));
    }
    return LIN_OK;
}

void lin_options_free(lin_parsed *parsed)
{
    for (int i = 0; i < parsed->n_owned; i++) lin_free(parsed->owned[i]);
    lin_free((void *)parsed->owned);
    parsed->owned = NULL;
    parsed->n_owned = parsed->owned_capacity = 0;
    parsed->operands = (lin_list){NULL, 0};
}

/* ---- the command line ------------------------------------------------------------------------------------------------------ */

static lin_status unknown(const lin_command *command, const char *shown, const char *name, lin_error *err)
{
    const char *hint = hint_of(command, name), *near = *name ? lin_nearest_option(command, name) : NULL;
    if (hint && *hint == '-') return lin_fail(err, LIN_INVALID, "unknown option %.60s; did you mean %s?", shown, hint);
    if (hint) return lin_fail(err, LIN_INVALID, "unknown option %.60s; %s", shown, hint);
    const int row = near ? lin_options_find(command, near) : -1;
    const lin_option *setting = row >= 0 && command->options[row].under ? &command->options[row] : NULL;
    if (setting)
        return lin_fail(err, LIN_INVALID, "unknown option %.60s; did you mean --%s %s%s?", shown, setting->under, near,
                        setting->type == LIN_OPTION_FLAG ? "" : "=...");
    if (near) return lin_fail(err, LIN_INVALID, "unknown option %.60s; did you mean --%s?", shown, near);
    return lin_fail(err, LIN_INVALID, "unknown option %.60s", shown);
}

// --name, --name=value, --no-name. *used: how many further words were taken.
static lin_status long_option(lin_parsed *p, char **argv, int left, int *used, lin_error *err)
{
    const char *word = argv[0] + 2, *equals = strchr(word, '=');
    char name[64], label[80];
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    if (length >= sizeof name) return unknown(p->command, argv[0], "", err);
    memcpy(name, word, length);
    name[length] = 0;
    int row = lin_options_find(p->command, name), off = 0;
    if (row < 0 && strncmp(name, "no-", 3) == 0) {
        row = lin_options_find(p->command, name + 3);
        off = row >= 0 && p->command->options[row].type == LIN_OPTION_FLAG;
        if (!off) row = -1;
    }
    snprintf(label, sizeof label, "--%s", name);
    if (equals && strncmp(word, "help=", 5) == 0) return lin_fail(err, LIN_INVALID, "--help takes no value");
    if (row < 0) return unknown(p->command, label, name, err);
    const lin_option *o = &p->command->options[row];
    if (o->under) return lin_fail(err, LIN_INVALID, "unknown option --%s; it is a value of --%s", name, o->under);
    if (o->type == LIN_OPTION_FLAG) {
        if (equals && off) return lin_fail(err, LIN_INVALID, "%s takes no value", label);
        return set_value(p, row, label, equals ? equals + 1 : off ? "no" : "yes", LIN_FROM_COMMAND_LINE, err);
    }
    if (equals) return set_value(p, row, label, equals + 1, LIN_FROM_COMMAND_LINE, err);
    if (o->bare) return set_value(p, row, label, o->bare, LIN_FROM_COMMAND_LINE, err);
    if (left < 1) return lin_fail(err, LIN_INVALID, "%s needs a value (%s)", label, lin_option_value_name(o));
    *used = 1;
    return set_value(p, row, label, argv[1], LIN_FROM_COMMAND_LINE, err);
}

// -o value, -ovalue; flags may be joined: -qv.
static lin_status short_options(lin_parsed *p, char **argv, int left, int *used, lin_error *err)
{
    for (const char *c = argv[0] + 1; *c; c++) {
        int row = -1;
        for (int i = 0; p->command->options[i].type != LIN_OPTION_END; i++) {
            if (is_option(&p->command->options[i]) && p->command->options[i].letter == *c) row = i;
        }
        char label[8] = {'-', *c, 0};
        if (row < 0) {
            if (isprint((unsigned char)*c)) return unknown(p->command, label, "", err);
            return lin_fail(err, LIN_INVALID, "unknown option -\\x%02x", (unsigned)(unsigned char)*c);
        }
        if (p->command->options[row].type == LIN_OPTION_FLAG) {
            LIN_TRY(set_value(p, row, label, "yes", LIN_FROM_COMMAND_LINE, err));
            continue;
        }
        if (c[1]) return set_value(p, row, label, c + 1, LIN_FROM_COMMAND_LINE, err);
        if (left < 1)
            return lin_fail(err, LIN_INVALID, "%s needs a value (%s)", label, lin_option_value_name(&p->command->options[row]));
        *used = 1;
        return set_value(p, row, label, argv[1], LIN_FROM_COMMAND_LINE, err);
    }
    return LIN_OK;
}

lin_status lin_options_command_line(lin_parsed *parsed, int argc, char **argv, lin_error *err)
{
    int only_operands = 0;
    // Help takes precedence over any mistake in the rest.
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) parsed->help = LIN_HELP_TEXT;
        if (strcmp(argv[i], "--help-all") == 0) parsed->help = LIN_HELP_ALL;
        const int row = strncmp(argv[i], "--", 2) || i + 1 == argc || strcmp(argv[i + 1], "help") ? -1
                                                                           : lin_options_find(parsed->command, argv[i] + 2);
        if (row < 0 || parsed->command->options[row].type != LIN_OPTION_SETTINGS) continue;
        parsed->help = LIN_HELP_SETTINGS;
        parsed->settings = parsed->command->options[row].name;
    }
    if (parsed->help) return LIN_OK;
    for (int i = 0; i < argc; i++) {
        int used = 0;
        if (only_operands || argv[i][0] != '-' || !argv[i][1]) LIN_TRY(append(parsed, &parsed->operands, argv[i], err));
        else if (strcmp(argv[i], "--") == 0) only_operands = 1;
        else if (argv[i][1] == '-') LIN_TRY(long_option(parsed, argv + i, argc - i - 1, &used, err));
        else LIN_TRY(short_options(parsed, argv + i, argc - i - 1, &used, err));
        i += used;
    }
    return LIN_OK;
}

/* ---- a configuration file -------------------------------------------------------------------------------------------------- */

// Lines `name = value` with the names of a command's options:
//
//   # a comment
//   layers = 6
//   train = "sets/a b.lfc"      # quotes keep spaces at the ends, and '#'

// A value written with a backslash before each byte still fits in a line.
enum { MAX_VALUE = 4096, MAX_LINE = 4 * MAX_VALUE, MAX_FILE = 1 << 20 };

static int is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

// Unquotes the value in place; NULL, or what is wrong with it.
static const char *read_value(char *v, char **out)
{
    if (*v == '"') {
        char *to = ++v;
        *out = v;
        for (; *v != '"'; v++) {
            if (*v == '\\' && (v[1] == '"' || v[1] == '\\')) v++;
            if (!*v) return "a quoted value has no closing quote";
            *to++ = *v;
        }
        for (v++; lin_is_space(*v); v++) {}
        if (*v && *v != '#') return "there is text after the closing quote";
        *to = 0;
        return NULL;
    }
    *out = v;
    char *end = v;
    for (; *v; v++) {
        if (*v == '#' && (v == *out || lin_is_space(v[-1]))) break;
        if (!lin_is_space(*v)) end = v + 1;
    }
    *end = 0;
    return **out ? NULL : "no value after '='";
}

static lin_status read_line(lin_parsed *p, const lin_lines *lines, lin_error *err)
{
    char line[MAX_LINE], key[64], *c = line;
    if (lines->n >= sizeof line) return lin_fail(err, LIN_FORMAT, "a line of more than %d bytes", MAX_LINE - 1);
    const size_t control = lin_text_find_control(lines->text, lines->n);
    if (control < lines->n)
        return lin_fail(err, LIN_FORMAT, "control character 0x%02x in column %zu; this is not a configuration file",
                        (unsigned)(unsigned char)lines->text[control], control + 1);
    memcpy(line, lines->text, lines->n);
    line[lines->n] = 0;
    while (lin_is_space(*c)) c++;
    if (!*c || *c == '#') return LIN_OK;
    size_t length = 0;
    while (is_name(c[length])) length++;
    char *after = c + length;
    while (lin_is_space(*after)) after++;
    if (!length || *after != '=') return lin_fail(err, LIN_FORMAT, "expected 'name = value', found '%.60s'", c);
    if (length >= sizeof key) return lin_fail(err, LIN_INVALID, "unknown name '%.60s'", c);
    for (size_t i = 0; i < length; i++) key[i] = c[i] == '_' ? '-' : c[i];
    key[length] = 0;
    int row = lin_options_find(p->command, key);
    if (row < 0) {
        const char *near = lin_nearest_option(p->command, key);
        if (near) return lin_fail(err, LIN_INVALID, "unknown name '%s'; did you mean %s?", key, near);
        return lin_fail(err, LIN_INVALID, "unknown name '%s'", key);
    }
    for (after++; lin_is_space(*after); after++) {}
    char *value;
    const char *wrong = read_value(after, &value);
    if (wrong) return lin_fail(err, LIN_FORMAT, "%s: %s", key, wrong);
    if (strlen(value) >= MAX_VALUE)
        return lin_fail(err, LIN_FORMAT, "%s: a value of more than %d bytes", key, MAX_VALUE - 1);
    p->line = lines->number;
    return set_value(p, row, key, value, LIN_FROM_FILE, err);
}

lin_status lin_options_conf(lin_parsed *parsed, const char *text, size_t size, const char *name, lin_error *err)
{
    lin_lines lines;
    lin_status status = LIN_OK;
    memset(parsed->lines, 0, sizeof parsed->lines);
    lin_lines_begin(&lines, text, size);
    while (status == LIN_OK && lin_lines_next(&lines)) status = read_line(parsed, &lines, err);
    if (status == LIN_OK || status == LIN_NO_MEMORY) return status;
    return lin_fail_at(err, status, "%s:%d", name, lines.number);
}

lin_status lin_options_conf_file(lin_parsed *parsed, const char *path, lin_error *err)
{
    char *text;
    size_t size;
    LIN_TRY(lin_text_read(path, &text, &size, err));
    lin_status status;
    if (size <= MAX_FILE) status = lin_options_conf(parsed, text, size, path, err);
    else status = lin_fail(err, LIN_FORMAT, "%s is larger than %d bytes; this is not a configuration file", path, MAX_FILE);
    lin_free(text);
    return status;
}

/* ---- writing a configuration file ------------------------------------------------------------------------------------------ */

static void add_text(lin_buffer *b, const char *name, const char *text)
{
    lin_buffer_format(b, "%s = \"", name);
    for (; *text; text++) lin_buffer_format(b, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    lin_buffer_format(b, "\"\n");
}

static void add_double(lin_buffer *b, double v, const char *before)
{
    char short_form[40];
    snprintf(short_form, sizeof short_form, "%.15g", v);
    if (strtod(short_form, NULL) != v) snprintf(short_form, sizeof short_form, "%.17g", v);
    lin_buffer_format(b, "%s%s", before, short_form);
}

static void add_choice(lin_buffer *b, const lin_option *o, int index)
{
    const char *c = o->choices;
    for (int i = 0; i < index; i++) c += strcspn(c, "|") + 1;
    lin_buffer_format(b, "%s = %.*s\n", o->name, (int)strcspn(c, "|"), c);
}

lin_status lin_options_text(const lin_parsed *parsed, int source, char **text, lin_error *err)
{
    lin_buffer b = {0};
    lin_buffer_text(&b, "");
    for (const lin_option *o = parsed->command->options; o->type != LIN_OPTION_END; o++) {
        const void *value = (const char *)parsed->values + o->at;
        if (parsed->from[o - parsed->command->options] < source) continue;
        switch (o->type) {
        case LIN_OPTION_HEADING: lin_buffer_format(&b, "\n# %s\n", o->help); break;
        case LIN_OPTION_FLAG: lin_buffer_format(&b, "%s = %s\n", o->name, *(const int *)value ? "yes" : "no"); break;
        case LIN_OPTION_INT: lin_buffer_format(&b, "%s = %d\n", o->name, *(const int *)value); break;
        case LIN_OPTION_CHOICE: add_choice(&b, o, *(const int *)value); break;
        case LIN_OPTION_DOUBLE:
            lin_buffer_format(&b, "%s", o->name);
            add_double(&b, *(const double *)value, " = ");
            lin_buffer_format(&b, "\n");
            break;
        case LIN_OPTION_STRING:
        case LIN_OPTION_FILE:
        case LIN_OPTION_FOLDER:
            if (*(const char *const *)value) add_text(&b, o->name, *(const char *const *)value);
            break;
        case LIN_OPTION_FILES: {
            const lin_list *list = value;
            for (int i = 0; i < list->count; i++) add_text(&b, o->name, list->items[i]);
            break;
        }
        case LIN_OPTION_NUMBERS: {
            const lin_numbers *numbers = value;
            if (numbers->count) lin_buffer_format(&b, "%s", o->name);
            for (int i = 0; i < numbers->count; i++) add_double(&b, numbers->items[i], i ? "," : " = ");
            if (numbers->count) lin_buffer_format(&b, "\n");
            break;
        }
        case LIN_OPTION_SETTINGS:
        case LIN_OPTION_END: break;
        }
    }
    lin_status status = lin_buffer_status(&b, err);
    if (status != LIN_OK) lin_buffer_free(&b);
    *text = b.data;
    return status;
}
