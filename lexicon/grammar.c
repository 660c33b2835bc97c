// grammar.c - phrases with rules as an automaton over words; see grammar.h.

#include "lexicon/grammar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/symbols.h"
#include "base/textfile.h"
#include "lexicon/transcript.h"

enum { EMPTY = -2, UNKNOWN = -1, NONE = -1, DEEPEST = 64, LONGEST_NAME = 64, LONGEST_PATH = 4096, MOST_NUMBERS = 10000 };

// Of the search for what is reached without a word: about a second.
enum { MOST_STEPS = 1 << 28, STEPS_TO_SORT = 2 };

// label: a word, or UNKNOWN, or EMPTY for none; the next arc of the same state.
typedef struct arc {
    int32_t label, to, next;
} arc;

// Of the deterministic automaton. Once it is bound, label is the rank of a pronunciation of the tree.
typedef struct edge {
    uint32_t label, to;
} edge;

struct lin_grammar {
    lin_symbols words;
    uint32_t n_states, n_edges;
    uint32_t *first; // [n_states + 1] edges of a state, by label
    edge *edges;
    uint32_t *unknown; // [n_states] the state after [unk], or LIN_GRAMMAR_NONE
    unsigned char *ends; // [n_states]
    int has_unknown;
    // Of the tree: its pronunciations in the order of a depth-first walk have ranks, and those below a node are a range of them.
    uint32_t *ranks;     // [n_ends]
    uint32_t *from, *to; // [n_nodes]
    uint64_t fingerprint;
};

/* ---- the source ------------------------------------------------------------------------------------------------------------ */

// An alternative of a rule.
typedef struct source {
    int rule, line, file;
    int next; // of the same rule
    const char *text;
    size_t n;
} source;

typedef struct rule {
    int first, last; // sources
    int open;        // it is being read: what refers to it now is part of itself
} rule;

typedef struct file {
    char *name, *text;
    int jsgf;
} file;

typedef struct maker {
    const lin_written *numbers;
    const char *path; // of the first file; NULL: no other files are read
    file *files;
    int n_files, files_capacity;
    rule *rules; // the first one is the grammar itself
    lin_symbols names; // of the rules
    int n_rules, rules_capacity;
    source *sources;
    int n_sources, sources_capacity;
    int32_t *states; // first arcs; NONE
    int n_states, states_capacity;
    arc *arcs;
    int n_arcs, arcs_capacity;
    lin_symbols words;
    int depth;
    int located; // the error has its file and line
} maker;

// Where a source is being read.
typedef struct cursor {
    const char *at, *end;
    int jsgf;
} cursor;

// A part of the automaton: where it is entered and left.
typedef struct part {
    int in, out;
} part;

static int lines_between(const char *from, const char *to)
{
    int n = 0;
    for (; from < to; from++) n += *from == '\n';
    return n;
}

// The message with its place before it, once.
static lin_status locate(maker *m, int number, int line, lin_status status, lin_error *err)
{
    if (m->located++) return status;
    return lin_fail_at(err, status, "%s:%d", m->files[number].name, line);
}

// Letters of other alphabets are bytes from 0x80 on.
static int is_name(char c)
{
    return lin_is_letter(c) || lin_is_digit(c) || (unsigned char)c >= 0x80 || c == '_' || c == '-' || c == '.';
}

static int find_rule(const maker *m, const char *name, size_t n)
{
    const int i = lin_symbols_find(&m->names, name, n);
    return i > 0 ? i : NONE;
}

static lin_status add_rule(maker *m, const char *name, size_t n, lin_error *err)
{
    char quoted[LIN_QUOTE];
    int number;
    if (n >= LONGEST_NAME)
        return lin_fail(err, LIN_FORMAT, "the name '%s' is longer than %d bytes", lin_quote(quoted, name, n), LONGEST_NAME - 1);
    LIN_TRY(lin_grow_int(&m->rules, &m->rules_capacity, (int64_t)m->n_rules + 1, sizeof *m->rules, "a grammar", err));
    LIN_TRY(lin_symbols_add(&m->names, name, n, &number, err));
    m->rules[m->n_rules++] = (rule){.first = NONE, .last = NONE};
    return LIN_OK;
}

static lin_status add_source(maker *m, source s, lin_error *err)
{
    LIN_TRY(lin_grow_int(&m->sources, &m->sources_capacity, (int64_t)m->n_sources + 1, sizeof *m->sources, "a grammar", err));
    rule *r = &m->rules[s.rule];
    s.next = NONE;
    *(r->first < 0 ? &r->first : &m->sources[r->last].next) = m->n_sources;
    r->last = m->n_sources;
    m->sources[m->n_sources++] = s;
    return LIN_OK;
}

static lin_status define(maker *m, const char *name, size_t n, source s, lin_error *err)
{
    char quoted[LIN_QUOTE];
    if (find_rule(m, name, n) >= 0)
        return lin_fail(err, LIN_FORMAT, "'%s' is defined twice", lin_quote(quoted, name, n));
    LIN_TRY(add_rule(m, name, n, err));
    s.rule = m->n_rules - 1;
    return add_source(m, s, err);
}

// The phrases of a file become alternatives of a rule; its definitions count everywhere.
static lin_status read_lines(maker *m, int number, int to_rule, const char *text, size_t n, lin_error *err)
{
    lin_lines lines = {0};
    lin_lines_begin(&lines, text, n);
    while (lin_lines_next(&lines)) {
        const char *at = lines.text, *end = at + lines.n;
        while (at < end && lin_is_space(*at)) at++;
        if (at == end || *at == '#') continue;
        source s = {.rule = to_rule, .line = lines.number, .file = number, .text = at, .n = (size_t)(end - at)};
        const char *name = at + 1, *after = name;
        while (after < end && is_name(*after)) after++;
        const size_t n_name = (size_t)(after - name);
        while (after < end && lin_is_space(*after)) after++;
        lin_status status;
        if (*at == '$' && n_name > 0 && after < end && *after == '=') {
            s.text = after + 1;
            s.n = (size_t)(end - s.text);
            status = define(m, name, n_name, s, err);
        } else status = add_source(m, s, err);
        if (status != LIN_OK) return locate(m, number, lines.number, status, err);
    }
    return LIN_OK;
}

// Comments become blanks; lines stay.
static void blank_comments(char *text, size_t n)
{
    char inside = 0; // '"', '/' or '*'
    for (size_t i = 0; i < n; i++) {
        const char c = text[i], next = i + 1 < n ? text[i + 1] : '\0';
        if (inside == '"') {
            if (c == '"' || c == '\n') inside = 0;
        } else if (inside) {
            const int closes = inside == '*' && c == '*' && next == '/';
            if (closes) text[i + 1] = ' ';
            if (c != '\n') text[i] = ' ';
            if (closes || (inside == '/' && c == '\n')) inside = 0;
        } else if (c == '"') inside = '"';
        else if (c == '/' && (next == '/' || next == '*')) {
            inside = next;
            text[i] = text[i + 1] = ' ';
            i++;
        }
    }
}

static int takes(const char **at, const char *end, const char *word)
{
    const size_t n = strlen(word);
    if ((size_t)(end - *at) < n || memcmp(*at, word, n) != 0) return 0;
    *at += n;
    return 1;
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (lin_is_space(*at) || *at == '\n')) at++;
    return at;
}

// One statement of JSGF, without its ";".
static lin_status read_statement(maker *m, int number, int to_rule, int line, const char *at, const char *end, lin_error *err)
{
    char quoted[LIN_QUOTE];
    const char *begin = at;
    if (takes(&at, end, "grammar ")) return LIN_OK;
    if (takes(&at, end, "import "))
        return lin_fail(err, LIN_UNSUPPORTED, "imports are not read; write the rule itself");
    const int is_public = takes(&at, end, "public ");
    at = skip_blanks(at, end);
    const char *name = at + 1, *close = at < end && *at == '<' ? memchr(at, '>', (size_t)(end - at)) : NULL;
    const char *equals = close ? skip_blanks(close + 1, end) : NULL;
    if (!equals || equals == end || *equals != '=' || close == name)
        return lin_fail(err, LIN_FORMAT, "'%s' is not a rule: write <name> = phrase;",
                        lin_quote(quoted, begin, (size_t)(end - begin)));
    source s = {.line = line + lines_between(begin, equals), .file = number, .text = equals + 1};
    s.n = (size_t)(end - s.text);
    LIN_TRY(define(m, name, (size_t)(close - name), s, err));
    if (!is_public) return LIN_OK;
    s.rule = to_rule;
    s.text = at; // a reference to the rule
    s.n = (size_t)(close + 1 - at);
    return add_source(m, s, err);
}

static lin_status read_jsgf(maker *m, int number, int to_rule, char *text, size_t n, lin_error *err)
{
    const char *at = memchr(text, ';', n), *end = text + n, *counted = text; // behind the header
    int line = 1;
    blank_comments(text, n);
    at = at ? at + 1 : end;
    for (const char *begin; (begin = skip_blanks(at, end)) < end;) {
        const char *p = begin;
        line += lines_between(counted, begin);
        counted = begin;
        for (char inside = 0; p < end && (inside || *p != ';'); p++) {
            if (*p == inside || (inside == '{' && *p == '}')) inside = 0;
            else if (!inside && (*p == '"' || *p == '{')) inside = *p;
        }
        lin_status status = p == end ? lin_fail(err, LIN_FORMAT, "the last rule has no ';'")
                                     : read_statement(m, number, to_rule, line, begin, p, err);
        if (status != LIN_OK) return locate(m, number, line, status, err);
        at = p + 1;
    }
    return LIN_OK;
}

// Takes the text over.
static lin_status add_file(maker *m, const char *name, char *text, size_t n, int to_rule, lin_error *err)
{
    lin_status status = lin_grow_int(&m->files, &m->files_capacity, (int64_t)m->n_files + 1, sizeof *m->files, "a grammar", err);
    char *own = status == LIN_OK ? lin_strdup(name) : NULL;
    if (!own) {
        lin_free(text);
        return status == LIN_OK ? lin_no_memory(err, "a grammar", strlen(name)) : status;
    }
    const size_t mark = lin_text_mark(text, n);
    const int jsgf = n - mark >= 5 && !memcmp(text + mark, "#JSGF", 5);
    m->files[m->n_files] = (file){own, text, jsgf};
    const int number = m->n_files++;
    LIN_TRY(jsgf ? read_jsgf(m, number, to_rule, text, n, err) : read_lines(m, number, to_rule, text, n, err));
    if (m->rules[to_rule].first >= 0) return LIN_OK;
    return lin_fail(err, LIN_FORMAT, jsgf ? "%s has no public rule" : "%s has no phrase; write one per line", name);
}

/* ---- phrases to an automaton ----------------------------------------------------------------------------------------------- */

static lin_status too_large(lin_error *err)
{
    return lin_fail(err, LIN_UNSUPPORTED, "the grammar is too large: write fewer alternatives, options and numbers");
}

static lin_status add_state(maker *m, int *state, lin_error *err)
{
    if (m->n_states == LIN_GRAMMAR_STATES_MAX) return too_large(err);
    LIN_TRY(lin_grow_int(&m->states, &m->states_capacity, (int64_t)m->n_states + 1, sizeof *m->states, "a grammar", err));
    *state = m->n_states;
    m->states[m->n_states++] = NONE;
    return LIN_OK;
}

static lin_status add_arc(maker *m, int from, int label, int to, lin_error *err)
{
    LIN_TRY(lin_grow_int(&m->arcs, &m->arcs_capacity, (int64_t)m->n_arcs + 1, sizeof *m->arcs, "a grammar", err));
    m->arcs[m->n_arcs] = (arc){label, to, m->states[from]};
    m->states[from] = m->n_arcs++;
    return LIN_OK;
}

static lin_status add_part(maker *m, part *p, lin_error *err)
{
    LIN_TRY(add_state(m, &p->in, err));
    return add_state(m, &p->out, err);
}

// `p` becomes p and then `next`.
static lin_status follow(maker *m, part *p, part next, lin_error *err)
{
    LIN_TRY(add_arc(m, p->out, EMPTY, next.in, err));
    p->out = next.out;
    return LIN_OK;
}

// One more way through `all`.
static lin_status add_way(maker *m, part all, part way, lin_error *err)
{
    LIN_TRY(add_arc(m, all.in, EMPTY, way.in, err));
    return add_arc(m, way.out, EMPTY, all.out, err);
}

static lin_status add_word(maker *m, part *p, int label, lin_error *err)
{
    int next = 0;
    LIN_TRY(add_state(m, &next, err));
    LIN_TRY(add_arc(m, p->out, label, next, err));
    p->out = next;
    return LIN_OK;
}

// A reading of a number, whose words are separated by blanks and may have parts.
static lin_status add_reading(maker *m, const char *reading, part *p, lin_error *err)
{
    while (*reading) {
        char word[LIN_WORD_MAX];
        size_t n = 0;
        int label;
        for (; *reading && *reading != ' '; reading++)
            if (*reading != '+' && n < sizeof word) word[n++] = *reading;
        while (*reading == ' ') reading++;
        LIN_TRY(lin_symbols_add(&m->words, word, n, &label, err));
        LIN_TRY(add_word(m, p, label, err));
    }
    return LIN_OK;
}

static lin_status add_readings(maker *m, const lin_readings *readings, part *p, lin_error *err)
{
    part all = {0};
    LIN_TRY(add_part(m, &all, err));
    for (int i = 0; i < readings->n; i++) {
        part way = {0};
        LIN_TRY(add_state(m, &way.in, err));
        way.out = way.in;
        LIN_TRY(add_reading(m, readings->items[i], &way, err));
        LIN_TRY(add_way(m, all, way, err));
    }
    return follow(m, p, all, err);
}

// Text without signs of the grammar.
static lin_status add_text(maker *m, const char *text, size_t n, part *p, lin_error *err)
{
    lin_word_reader words = {.written = m->numbers, .text = text, .n = n};
    lin_spelling word = {0};
    lin_status status;
    while ((status = lin_word_reader_next(&words, &word, err)) == LIN_OK && (word.n || words.readings.n)) {
        int label;
        if (word.n) {
            status = lin_symbols_add(&m->words, word.word, word.n, &label, err);
            if (status == LIN_OK) status = add_word(m, p, label, err);
        } else status = add_readings(m, &words.readings, p, err);
        if (status != LIN_OK) break;
    }
    lin_word_reader_free(&words);
    return status;
}

static lin_status add_numbers(maker *m, unsigned long from, unsigned long to, part *p, lin_error *err)
{
    part all = {0};
    LIN_TRY(add_part(m, &all, err));
    for (unsigned long value = from; value <= to; value++) {
        char digits[32];
        part way = {0};
        const int n = snprintf(digits, sizeof digits, "%lu", value);
        LIN_TRY(add_state(m, &way.in, err));
        way.out = way.in;
        LIN_TRY(add_text(m, digits, (size_t)n, &way, err));
        LIN_TRY(add_way(m, all, way, err));
    }
    return follow(m, p, all, err);
}

// "A..B" behind $number.
static int take_range(cursor *c, unsigned long *from, unsigned long *to)
{
    char text[40];
    int used = 0;
    const char *at = skip_blanks(c->at, c->end);
    const size_t n = (size_t)(c->end - at) < sizeof text - 1 ? (size_t)(c->end - at) : sizeof text - 1;
    memcpy(text, at, n);
    text[n] = '\0';
    if (!lin_is_digit(*text) || sscanf(text, "%9lu..%9lu%n", from, to, &used) != 2 || !used) return 0;
    c->at = at + used;
    return 1;
}

static lin_status parse_choices(maker *m, cursor *c, char close, part *p, lin_error *err);

// All alternatives of a rule. Each reference has its own copy: automata have no memory of where to return to.
static lin_status expand(maker *m, int number, part *p, lin_error *err)
{
    LIN_TRY(add_part(m, p, err));
    m->rules[number].open = 1;
    m->depth++;
    for (int i = m->rules[number].first; i >= 0; i = m->sources[i].next) {
        const source s = m->sources[i];
        cursor c = {s.text, s.text + s.n, m->files[s.file].jsgf};
        part way = {0};
        lin_status status = parse_choices(m, &c, '\0', &way, err);
        if (status != LIN_OK) return locate(m, s.file, s.line + lines_between(s.text, c.at), status, err);
        LIN_TRY(add_way(m, *p, way, err));
    }
    m->depth--;
    m->rules[number].open = 0;
    return LIN_OK;
}

// The phrases of name.txt beside the grammar.
static lin_status read_beside(maker *m, const char *name, size_t n, int *number, lin_error *err)
{
    char path[LONGEST_PATH], quoted[LIN_QUOTE], *text;
    size_t bytes;
    const char *slash = m->path ? strrchr(m->path, '/') : NULL;
    const int n_folder = slash ? (int)(slash + 1 - m->path) : 0;
    lin_quote(quoted, name, n);
    if (!m->path) return lin_fail(err, LIN_FORMAT, "$%s is not defined: write a line that begins with $%s =", quoted, quoted);
    if (snprintf(path, sizeof path, "%.*s%.*s.txt", n_folder, m->path, (int)n, name) >= (int)sizeof path)
        return lin_fail(err, LIN_FORMAT, "the path of $%s is too long", quoted);
    if (access(path, F_OK) != 0)
        return lin_fail(err, LIN_FORMAT, "$%s is not defined: write a line that begins with $%s =, or its phrases into %s",
                        quoted, quoted, path);
    LIN_TRY(lin_text_read(path, &text, &bytes, err));
    lin_status status = add_rule(m, name, n, err);
    *number = m->n_rules - 1;
    if (status == LIN_OK) return add_file(m, path, text, bytes, *number, err);
    lin_free(text);
    return status;
}

static lin_status parse_reference(maker *m, cursor *c, const char *name, size_t n, part *p, lin_error *err)
{
    char quoted[LIN_QUOTE];
    unsigned long from, to;
    part copy = {0};
    lin_quote(quoted, name, n);
    int number = find_rule(m, name, n);
    if (number == NONE && c->jsgf) {
        if (n == 4 && !memcmp(name, "NULL", 4)) return LIN_OK;
        return lin_fail(err, LIN_FORMAT, "<%s> is not defined in this file", quoted);
    }
    if (number == NONE && n == 6 && !memcmp(name, "number", 6)) {
        if (!take_range(c, &from, &to))
            return lin_fail(err, LIN_FORMAT, "$number has no range behind it, such as $number 1..100");
        if (from > to || to - from >= MOST_NUMBERS)
            return lin_fail(err, LIN_FORMAT, "$number %lu..%lu: a range goes up, and has at most %d numbers", from, to,
                            MOST_NUMBERS);
        if (!m->numbers) return lin_fail(err, LIN_FORMAT, "there are no rules for the numbers of this language: write the words");
        return add_numbers(m, from, to, p, err);
    }
    if (number == NONE) LIN_TRY(read_beside(m, name, n, &number, err));
    if (m->rules[number].open) return lin_fail(err, LIN_FORMAT, "'%s' contains itself", quoted);
    if (m->depth >= DEEPEST) return lin_fail(err, LIN_FORMAT, "rules are nested more than %d deep", DEEPEST);
    LIN_TRY(expand(m, number, &copy, err));
    return follow(m, p, copy, err);
}

// "(...)" or "[...]".
static lin_status parse_group(maker *m, cursor *c, part *p, lin_error *err)
{
    const char open = *c->at;
    part group = {0};
    if (!c->jsgf && takes(&c->at, c->end, "[unk]")) return add_word(m, p, UNKNOWN, err);
    if (m->depth >= DEEPEST) return lin_fail(err, LIN_FORMAT, "brackets are nested more than %d deep", DEEPEST);
    c->at++;
    m->depth++;
    LIN_TRY(parse_choices(m, c, open == '(' ? ')' : ']', &group, err));
    m->depth--;
    if (open == '[') LIN_TRY(add_arc(m, group.in, EMPTY, group.out, err));
    return follow(m, p, group, err);
}

// What closes a part that only JSGF has: a reference, a tag, a weight, quoted words; '\0': it is none.
static char closing(char opens)
{
    return opens == '<' ? '>' : opens == '{' ? '}' : opens == '/' || opens == '"' ? opens : '\0';
}

static lin_status parse_jsgf(maker *m, cursor *c, part *p, lin_error *err)
{
    const char *at = c->at, opens = *at;
    const char *close = memchr(at + 1, closing(opens), (size_t)(c->end - at - 1));
    if (!close) return lin_fail(err, LIN_FORMAT, "'%c' is not closed", opens);
    c->at = close + 1;
    if (opens == '<') return parse_reference(m, c, at + 1, (size_t)(close - at - 1), p, err);
    return opens == '"' ? add_text(m, at + 1, (size_t)(close - at - 1), p, err) : LIN_OK;
}

// "$name"; "$5" is a price.
static int is_reference(const cursor *c)
{
    return !c->jsgf && *c->at == '$' && c->end - c->at > 1 && is_name(c->at[1]) && !lin_is_digit(c->at[1]);
}

static lin_status parse_item(maker *m, cursor *c, part *p, lin_error *err)
{
    const char *begin = c->at;
    if (*begin == '(' || *begin == '[') return parse_group(m, c, p, err);
    if (c->jsgf && closing(*begin)) return parse_jsgf(m, c, p, err);
    if (c->jsgf && (*begin == '*' || *begin == '+'))
        return lin_fail(err, LIN_UNSUPPORTED, "repetition (* and +) is not read; write it out");
    if (is_reference(c)) {
        for (c->at++; c->at < c->end && is_name(*c->at);) c->at++;
        return parse_reference(m, c, begin + 1, (size_t)(c->at - begin - 1), p, err);
    }
    const char *stops = c->jsgf ? "()[]|<{/\"*+" : "()[]|";
    for (c->at++; c->at < c->end && *c->at && !strchr(stops, *c->at) && !is_reference(c);) c->at++;
    return add_text(m, begin, (size_t)(c->at - begin), p, err);
}

static lin_status parse_sequence(maker *m, cursor *c, part *p, lin_error *err)
{
    int items = 0;
    LIN_TRY(add_state(m, &p->in, err));
    p->out = p->in;
    while ((c->at = skip_blanks(c->at, c->end)) < c->end && *c->at != '|' && *c->at != ')' && *c->at != ']') {
        LIN_TRY(parse_item(m, c, p, err));
        items++;
    }
    return items ? LIN_OK : lin_fail(err, LIN_FORMAT, "there is nothing to say here");
}

// Alternatives up to `close`, '\0' for the end.
static lin_status parse_choices(maker *m, cursor *c, char close, part *p, lin_error *err)
{
    LIN_TRY(add_part(m, p, err));
    for (;;) {
        part way = {0};
        LIN_TRY(parse_sequence(m, c, &way, err));
        LIN_TRY(add_way(m, *p, way, err));
        if (c->at == c->end || *c->at != '|') break;
        c->at++;
    }
    if (c->at == c->end) return close ? lin_fail(err, LIN_FORMAT, "a '%c' is missing", close) : LIN_OK;
    if (*c->at != close) return lin_fail(err, LIN_FORMAT, "there is a '%c' too many", *c->at);
    c->at++;
    return LIN_OK;
}

/* ---- to a deterministic automaton ------------------------------------------------------------------------------------------ */

// States of the first automaton that one of the second stands for: those that have words, or are the end.
typedef struct subset {
    size_t at; // in the pool
    int n;
} subset;

typedef struct sets {
    const maker *m;
    part whole;
    int32_t *pool;
    size_t n_pool, pool_capacity;
    subset *items;
    int n, capacity;
    int32_t *slots; // [n_slots] by hash; NONE
    size_t n_slots;
    uint32_t *seen; // [m->n_states] the search that has seen it
    uint32_t search;
    int64_t steps;
    int32_t *stack; // [m->n_states]
    arc *moves; // of one set
    int n_moves, moves_capacity;
} sets;

static int compare_states(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static int compare_moves(const void *a, const void *b)
{
    const arc *x = a, *y = b;
    return x->label != y->label ? (x->label > y->label) - (x->label < y->label) : (x->to > y->to) - (x->to < y->to);
}

static int matters(const sets *x, int state)
{
    if (state == x->whole.out) return 1;
    for (int i = x->m->states[state]; i >= 0; i = x->m->arcs[i].next)
        if (x->m->arcs[i].label != EMPTY) return 1;
    return 0;
}

// Appends to the pool what is reached from n states without a word.
static lin_status reach(sets *x, const arc *from, int n, subset *set, lin_error *err)
{
    *set = (subset){.at = x->n_pool};
    x->search++;
    for (int k = 0; k < n; k++) {
        int top = 0;
        if (x->seen[from[k].to] == x->search) continue;
        x->stack[top++] = from[k].to;
        x->seen[from[k].to] = x->search;
        while (top > 0) {
            const int state = x->stack[--top];
            if (matters(x, state)) {
                LIN_TRY(lin_grow(&x->pool, &x->pool_capacity, x->n_pool + 1, sizeof *x->pool, "a grammar", err));
                x->pool[x->n_pool++] = state;
                set->n++;
                x->steps += STEPS_TO_SORT;
            }
            for (int i = x->m->states[state]; i >= 0; i = x->m->arcs[i].next, x->steps++) {
                const arc *a = &x->m->arcs[i];
                if (a->label != EMPTY || x->seen[a->to] == x->search) continue;
                x->seen[a->to] = x->search;
                x->stack[top++] = a->to;
            }
        }
    }
    if (x->steps > MOST_STEPS) return too_large(err);
    qsort(x->pool + set->at, (size_t)set->n, sizeof *x->pool, compare_states);
    return LIN_OK;
}

static lin_status widen(sets *x, lin_error *err)
{
    const size_t n = x->n_slots ? 2 * x->n_slots : 1024;
    int32_t *slots = lin_alloc(n, sizeof *slots);
    if (!slots) return lin_no_memory(err, "a grammar", n * sizeof *slots);
    memset(slots, 0xFF, n * sizeof *slots);
    lin_free(x->slots);
    x->slots = slots;
    x->n_slots = n;
    for (int i = 0; i < x->n; i++) {
        size_t at = lin_hash(x->pool + x->items[i].at, (size_t)x->items[i].n * sizeof *x->pool, 0) & (n - 1);
        while (slots[at] >= 0) at = (at + 1) & (n - 1);
        slots[at] = i;
    }
    return LIN_OK;
}

// The number of the set that was reached last, which leaves the pool if it is known.
static lin_status number_of(sets *x, subset set, uint32_t *number, lin_error *err)
{
    const size_t bytes = (size_t)set.n * sizeof *x->pool;
    if (2 * (size_t)x->n >= x->n_slots) LIN_TRY(widen(x, err));
    size_t at = lin_hash(x->pool + set.at, bytes, 0) & (x->n_slots - 1);
    for (; x->slots[at] >= 0; at = (at + 1) & (x->n_slots - 1)) {
        const subset *known = &x->items[x->slots[at]];
        if (known->n != set.n || memcmp(x->pool + known->at, x->pool + set.at, bytes) != 0) continue;
        x->n_pool = set.at;
        *number = (uint32_t)x->slots[at];
        return LIN_OK;
    }
    if (x->n == LIN_GRAMMAR_STATES_MAX || x->n_pool > 16 * (size_t)LIN_GRAMMAR_STATES_MAX) return too_large(err);
    LIN_TRY(lin_grow_int(&x->items, &x->capacity, (int64_t)x->n + 1, sizeof *x->items, "a grammar", err));
    x->items[x->n] = set;
    x->slots[at] = x->n;
    *number = (uint32_t)x->n++;
    return LIN_OK;
}

// The moves by a word from a set, by word.
static lin_status find_moves(sets *x, subset set, lin_error *err)
{
    x->n_moves = 0;
    for (int k = 0; k < set.n; k++) {
        for (int i = x->m->states[x->pool[set.at + (size_t)k]]; i >= 0; i = x->m->arcs[i].next) {
            if (x->m->arcs[i].label == EMPTY) continue;
            LIN_TRY(lin_grow_int(&x->moves, &x->moves_capacity, (int64_t)x->n_moves + 1, sizeof *x->moves, "a grammar", err));
            x->moves[x->n_moves++] = x->m->arcs[i];
        }
    }
    if (x->n_moves) qsort(x->moves, (size_t)x->n_moves, sizeof *x->moves, compare_moves);
    return LIN_OK;
}

// The arrays of the grammar, for one more state and the edges behind it.
typedef struct room {
    size_t states, unknown, ends, edges;
} room;

static lin_status add_edges(sets *x, lin_grammar *g, room *r, lin_error *err)
{
    const uint32_t state = g->n_states;
    LIN_TRY(lin_grow(&g->first, &r->states, (size_t)state + 2, sizeof *g->first, "a grammar", err));
    LIN_TRY(lin_grow(&g->unknown, &r->unknown, (size_t)state + 1, sizeof *g->unknown, "a grammar", err));
    LIN_TRY(lin_grow(&g->ends, &r->ends, (size_t)state + 1, 1, "a grammar", err));
    const subset set = x->items[state];
    g->first[state] = g->n_edges;
    g->unknown[state] = LIN_GRAMMAR_NONE;
    g->ends[state] = 0;
    for (int k = 0; k < set.n; k++) g->ends[state] |= x->pool[set.at + (size_t)k] == x->whole.out;
    LIN_TRY(find_moves(x, set, err));
    for (int i = 0, k; i < x->n_moves; i = k) {
        subset to;
        uint32_t number;
        const int label = x->moves[i].label;
        for (k = i; k < x->n_moves && x->moves[k].label == label;) k++;
        LIN_TRY(reach(x, x->moves + i, k - i, &to, err));
        LIN_TRY(number_of(x, to, &number, err));
        if (label == UNKNOWN) {
            g->unknown[state] = number;
            g->has_unknown = 1;
            continue;
        }
        LIN_TRY(lin_grow(&g->edges, &r->edges, (size_t)g->n_edges + 1, sizeof *g->edges, "a grammar", err));
        g->edges[g->n_edges++] = (edge){(uint32_t)label, number};
    }
    g->first[++g->n_states] = g->n_edges;
    return LIN_OK;
}

static lin_status determine(const maker *m, part whole, lin_grammar *g, lin_error *err)
{
    sets x = {.m = m, .whole = whole};
    const arc start = {.to = whole.in};
    room r = {0};
    subset first;
    uint32_t number;
    x.seen = lin_calloc((size_t)m->n_states, sizeof *x.seen);
    x.stack = lin_alloc((size_t)m->n_states, sizeof *x.stack);
    lin_status status = x.seen && x.stack ? LIN_OK : lin_no_memory(err, "a grammar", (size_t)m->n_states * sizeof *x.seen);
    if (status == LIN_OK) status = reach(&x, &start, 1, &first, err);
    if (status == LIN_OK) status = number_of(&x, first, &number, err);
    while (status == LIN_OK && g->n_states < (uint32_t)x.n) status = add_edges(&x, g, &r, err);
    lin_free(x.pool);
    lin_free(x.items);
    lin_free(x.slots);
    lin_free(x.seen);
    lin_free(x.stack);
    lin_free(x.moves);
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------------------------------------- */

static lin_status make(maker *m, int repeats, lin_grammar *g, lin_error *err)
{
    part whole = {0};
    LIN_TRY(expand(m, 0, &whole, err));
    if (repeats) LIN_TRY(add_arc(m, whole.out, EMPTY, whole.in, err));
    LIN_TRY(determine(m, whole, g, err));
    g->words = m->words;
    m->words = (lin_symbols){0};
    return LIN_OK;
}

// Takes the text over. path: NULL if other files are not read.
static lin_status make_from(const char *name, const char *path, char *text, size_t n, const lin_written *numbers, int repeats,
                            lin_grammar **grammar, lin_error *err)
{
    maker m = {.numbers = numbers, .path = path};
    lin_grammar *g = *grammar = lin_calloc(1, sizeof *g);
    lin_status status = g ? add_rule(&m, "", 0, err) : lin_no_memory(err, "a grammar", sizeof *g);
    if (status == LIN_OK) status = add_file(&m, name, text, n, 0, err);
    else lin_free(text);
    if (status == LIN_OK) status = make(&m, repeats, g, err);
    for (int i = 0; i < m.n_files; i++) {
        lin_free(m.files[i].name);
        lin_free(m.files[i].text);
    }
    lin_free(m.files);
    lin_free(m.rules);
    lin_free(m.sources);
    lin_free(m.states);
    lin_free(m.arcs);
    lin_symbols_free(&m.names);
    lin_symbols_free(&m.words);
    if (status == LIN_OK) return LIN_OK;
    lin_grammar_destroy(g);
    *grammar = NULL;
    return status;
}

lin_status lin_grammar_open(const char *path, const lin_written *numbers, lin_grammar **grammar, lin_error *err)
{
    char *text;
    size_t n;
    *grammar = NULL;
    LIN_TRY(lin_text_read(path, &text, &n, err));
    return make_from(path, path, text, n, numbers, 0, grammar, err);
}

lin_status lin_grammar_parse(const char *text, size_t n, const char *name, const lin_written *numbers, int repeats,
                             lin_grammar **grammar, lin_error *err)
{
    char *own = lin_text_copy(text, n);
    *grammar = NULL;
    if (!own) return lin_no_memory(err, "a grammar", n);
    return make_from(name, NULL, own, n, numbers, repeats, grammar, err);
}

void lin_grammar_destroy(lin_grammar *g)
{
    if (!g) return;
    lin_symbols_free(&g->words);
    lin_free(g->first);
    lin_free(g->edges);
    lin_free(g->unknown);
    lin_free(g->ends);
    lin_free(g->ranks);
    lin_free(g->from);
    lin_free(g->to);
    lin_free(g);
}

int lin_grammar_words(const lin_grammar *g) { return g->words.n; }
const char *lin_grammar_word(const lin_grammar *g, int word) { return lin_symbols_text(&g->words, word); }

/* ---- with the pronunciations of a tree ------------------------------------------------------------------------------------- */

static int compare_edges(const void *a, const void *b)
{
    const edge *x = a, *y = b;
    return (x->label > y->label) - (x->label < y->label);
}

// Nodes are numbered breadth first: children behind their parents.
static void rank_pronunciations(lin_grammar *g, const lin_tree *tree)
{
    const lin_tree_node *nodes = tree->nodes;
    for (int i = tree->n_nodes; i-- > 0;) { // how many end at or below it
        g->to[i] = nodes[i + 1].end - nodes[i].end;
        for (uint32_t c = nodes[i].child; c < nodes[i + 1].child; c++) g->to[i] += g->to[c];
    }
    g->from[LIN_TREE_ROOT] = 0;
    for (int i = 0; i < tree->n_nodes; i++) {
        uint32_t at = g->from[i];
        for (uint32_t e = nodes[i].end; e < nodes[i + 1].end; e++) g->ranks[e] = at++;
        for (uint32_t c = nodes[i].child; c < nodes[i + 1].child; c++) {
            g->from[c] = at;
            at += g->to[c];
        }
        g->to[i] = at;
    }
}

// Pronunciations by word: those of word i are at[i] .. at[i + 1] - 1 of `ends`.
static lin_status bind_edges(lin_grammar *g, const lin_tree *tree, const int *numbers, uint32_t *at, uint32_t *ends,
                             lin_error *err)
{
    for (int e = 0; e < tree->n_ends; e++) at[tree->ends[e].word + 2]++;
    for (int i = 2; i <= tree->words.n + 1; i++) at[i] += at[i - 1];
    for (int e = 0; e < tree->n_ends; e++) ends[at[tree->ends[e].word + 1]++] = (uint32_t)e;
    uint64_t n = 0;
    for (uint32_t i = 0; i < g->n_edges; i++) n += at[numbers[g->edges[i].label] + 1] - at[numbers[g->edges[i].label]];
    edge *bound = n < UINT32_MAX ? lin_alloc((size_t)n, sizeof *bound) : NULL;
    if (!bound) return lin_no_memory(err, "a grammar", (size_t)n * sizeof *bound);
    uint32_t used = 0;
    for (uint32_t state = 0, i = 0; state < g->n_states; state++) {
        const uint32_t begin = used, to = g->first[state + 1];
        for (; i < to; i++) {
            const int word = numbers[g->edges[i].label];
            for (uint32_t k = at[word]; k < at[word + 1]; k++) bound[used++] = (edge){g->ranks[ends[k]], g->edges[i].to};
        }
        g->first[state] = begin;
        if (used > begin) qsort(bound + begin, used - begin, sizeof *bound, compare_edges);
    }
    g->first[g->n_states] = used;
    lin_free(g->edges);
    g->edges = bound;
    g->n_edges = used;
    return LIN_OK;
}

lin_status lin_grammar_bind(lin_grammar *g, const lin_tree *tree, lin_error *err)
{
    const size_t n_ends = (size_t)tree->n_ends, n_nodes = (size_t)tree->n_nodes, n_words = (size_t)tree->words.n;
    int *numbers = lin_alloc((size_t)g->words.n, sizeof *numbers);
    uint32_t *at = lin_calloc(n_words + 2, sizeof *at), *ends = lin_alloc(n_ends, sizeof *ends);
    g->ranks = lin_alloc(n_ends, sizeof *g->ranks);
    g->from = lin_alloc(n_nodes, sizeof *g->from);
    g->to = lin_alloc(n_nodes, sizeof *g->to);
    lin_status status = numbers && at && ends && g->ranks && g->from && g->to
                            ? LIN_OK : lin_no_memory(err, "a grammar", (n_ends + n_nodes) * sizeof *at);
    for (int i = 0; i < g->words.n && status == LIN_OK; i++) {
        const char *word = lin_grammar_word(g, i);
        numbers[i] = lin_tree_find(tree, word, strlen(word));
        if (numbers[i] < 0) status = lin_fail(err, LIN_MISMATCH, "the word '%.100s' has no pronunciation", word);
    }
    if (status == LIN_OK) {
        rank_pronunciations(g, tree);
        status = bind_edges(g, tree, numbers, at, ends, err);
    }
    lin_free(numbers);
    lin_free(at);
    lin_free(ends);
    if (status != LIN_OK) return status;
    g->fingerprint = lin_hash(g->edges, g->n_edges * sizeof *g->edges, tree->fingerprint);
    g->fingerprint = lin_hash(g->first, ((size_t)g->n_states + 1) * sizeof *g->first, g->fingerprint);
    g->fingerprint = lin_hash(g->unknown, g->n_states * sizeof *g->unknown, g->fingerprint);
    g->fingerprint = lin_hash(g->ends, g->n_states, g->fingerprint);
    return LIN_OK;
}

uint32_t lin_grammar_states(const lin_grammar *g) { return g->n_states; }
uint64_t lin_grammar_fingerprint(const lin_grammar *g) { return g->fingerprint; }

// The first edge of a state from a rank on.
static uint32_t edge_from(const lin_grammar *g, uint32_t state, uint32_t rank)
{
    uint32_t low = g->first[state], high = g->first[state + 1];
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (g->edges[middle].label < rank) low = middle + 1;
        else high = middle;
    }
    return low;
}

uint32_t lin_grammar_step(const lin_grammar *g, uint32_t state, uint32_t end)
{
    const uint32_t at = edge_from(g, state, g->ranks[end]);
    return at < g->first[state + 1] && g->edges[at].label == g->ranks[end] ? g->edges[at].to : LIN_GRAMMAR_NONE;
}

uint32_t lin_grammar_unknown(const lin_grammar *g, uint32_t state) { return g->unknown[state]; }
int lin_grammar_has_unknown(const lin_grammar *g) { return g->has_unknown; }

int lin_grammar_allows(const lin_grammar *g, uint32_t state, uint32_t node)
{
    const uint32_t at = edge_from(g, state, g->from[node]);
    return at < g->first[state + 1] && g->edges[at].label < g->to[node];
}

int lin_grammar_is_end(const lin_grammar *g, uint32_t state) { return g->ends[state]; }
