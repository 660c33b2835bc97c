// grammar_reader.c - a file of phrases, or JSGF, as a nondeterministic automaton over words; see grammar.h.

#include "lexicon/grammar_internal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "base/unicode.h"
#include "lexicon/transcript.h"

enum { NONE = -1, DEEPEST = 64, LONGEST_NAME = 64, LONGEST_PATH = 4096 };
enum { MOST_NUMBERS = 10000, MOST_IN_ALL = 4 * MOST_NUMBERS }; // of a range, and of all of them

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
    lin_nfa *nfa;
    lin_grammar_list *list; // NULL: a grammar
    lin_buffer *others;     // names of further files; may be NULL
    int depth;
    unsigned long n_numbers; // of ranges
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

// Puts file and line before the message, once.
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

// Behind a name. The full stop behind it ends a sentence.
static const char *after_name(const char *name, const char *end)
{
    const char *after = name;
    while (after < end && is_name(*after)) after++;
    while (after > name && after[-1] == '.') after--;
    return after;
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
        const char *name = at + 1, *after = after_name(name, end);
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

// Comments and tags become blanks; lines stay. A tag may have "//", ";" and "\}" inside.
static void blank_comments_and_tags(char *text, size_t n)
{
    char inside = 0; // '"', '{', '/' or '*'
    for (size_t i = 0; i < n; i++) {
        const char c = text[i], next = i + 1 < n ? text[i + 1] : '\0';
        if (inside == '"') {
            if (c == '"' || c == '\n') inside = 0;
            continue;
        }
        if (!inside && c == '"') inside = '"';
        if (!inside && c == '{') inside = '{';
        const int opens = !inside && c == '/' && (next == '/' || next == '*');
        const int closes = inside == '*' && c == '*' && next == '/';
        if (opens) inside = next;
        if (!inside || inside == '"') continue;
        if (c != '\n') text[i] = ' ';
        if (opens || closes || (inside == '{' && c == '\\' && next == '}')) text[++i] = ' ';
        if (closes || (inside == '{' && c == '}') || (inside == '/' && c == '\n')) inside = 0;
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
    while (at < end && lin_is_blank(*at)) at++;
    return at;
}

// One statement of JSGF, without its ";".
static lin_status read_statement(maker *m, int number, int to_rule, int line, const char *at, const char *end, lin_error *err)
{
    char quoted[LIN_QUOTE];
    const char *begin = at;
    if (takes(&at, end, "grammar")) return LIN_OK;
    if (takes(&at, end, "import"))
        return lin_fail(err, LIN_UNSUPPORTED, "imports are not read; write the rule itself");
    const int is_public = takes(&at, end, "public");
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
    const char *at = text, *end = text + n, *counted = text;
    int line = 1;
    while (at < end && *at != ';' && *at != '\n') at++; // the header
    if (at < end) at++;
    blank_comments_and_tags(text, n);
    for (const char *begin; (begin = skip_blanks(at, end)) < end;) {
        const char *p = begin;
        line += lines_between(counted, begin);
        counted = begin;
        for (int quoted = 0; p < end && (quoted || *p != ';'); p++) quoted ^= *p == '"';
        lin_status status = p == end ? lin_fail(err, LIN_FORMAT, "the last rule has no ';'")
                                     : read_statement(m, number, to_rule, line, begin, p, err);
        if (status != LIN_OK) return locate(m, number, line, status, err);
        at = p + 1;
    }
    return LIN_OK;
}

// A rule whose alternatives are the phrases of a file. Takes ownership of the text.
static lin_status add_file(maker *m, const char *rule_name, size_t n_name, const char *path, char *text, size_t n, lin_error *err)
{
    const int to_rule = m->n_rules;
    lin_status status = add_rule(m, rule_name, n_name, err);
    if (status == LIN_OK)
        status = lin_grow_int(&m->files, &m->files_capacity, (int64_t)m->n_files + 1, sizeof *m->files, "a grammar", err);
    char *clean = NULL, *own = NULL;
    const char *whole;
    if (status == LIN_OK) status = lin_unicode_clean(text, n, path, LIN_UNICODE_ANY, &clean, &whole, &n, err);
    if (clean) {
        lin_free(text);
        text = clean;
    }
    if (status == LIN_OK && !(own = lin_strdup(path))) status = lin_no_memory(err, "a grammar", strlen(path));
    if (status != LIN_OK) {
        lin_free(text);
        return status;
    }
    const int jsgf = n >= 5 && !memcmp(text, "#JSGF", 5);
    m->files[m->n_files] = (file){own, text, jsgf};
    const int number = m->n_files++;
    LIN_TRY(jsgf ? read_jsgf(m, number, to_rule, text, n, err) : read_lines(m, number, to_rule, text, n, err));
    if (m->rules[to_rule].first >= 0) return LIN_OK;
    return lin_fail(err, LIN_FORMAT, jsgf ? "%s has no public rule" : "%s has no phrase; write one per line", path);
}

/* ---- phrases to an automaton ----------------------------------------------------------------------------------------------- */

static lin_status add_state(maker *m, int *state, lin_error *err)
{
    lin_nfa *a = m->nfa;
    if (a->n_states == LIN_GRAMMAR_STATES_MAX) return lin_nfa_too_large(err);
    LIN_TRY(lin_grow_int(&a->states, &a->states_capacity, (int64_t)a->n_states + 1, sizeof *a->states, "a grammar", err));
    *state = a->n_states;
    a->states[a->n_states++] = NONE;
    return LIN_OK;
}

static lin_status add_arc(maker *m, int from, int label, int to, lin_error *err)
{
    lin_nfa *a = m->nfa;
    LIN_TRY(lin_grow_int(&a->arcs, &a->arcs_capacity, (int64_t)a->n_arcs + 1, sizeof *a->arcs, "a grammar", err));
    a->arcs[a->n_arcs] = (lin_nfa_arc){label, to, a->states[from]};
    a->states[from] = a->n_arcs++;
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
    LIN_TRY(add_arc(m, p->out, LIN_NFA_EMPTY, next.in, err));
    p->out = next.out;
    return LIN_OK;
}

// One more way through `all`.
static lin_status add_way(maker *m, part all, part way, lin_error *err)
{
    LIN_TRY(add_arc(m, all.in, LIN_NFA_EMPTY, way.in, err));
    return add_arc(m, way.out, LIN_NFA_EMPTY, all.out, err);
}

// One more word behind `p`. Ways that begin in one state share their first words, as in a tree.
static lin_status add_label(maker *m, part *p, int label, lin_error *err)
{
    int next = 0;
    for (int i = m->nfa->states[p->out]; i >= 0; i = m->nfa->arcs[i].next) {
        if (m->nfa->arcs[i].label != label) continue;
        p->out = m->nfa->arcs[i].to;
        return LIN_OK;
    }
    LIN_TRY(add_state(m, &next, err));
    LIN_TRY(add_arc(m, p->out, label, next, err));
    p->out = next;
    return LIN_OK;
}

static lin_status add_word(maker *m, const char *word, size_t n, part *p, lin_error *err)
{
    int label = lin_symbols_find(&m->nfa->words, word, n);
    if (label < 0 && m->list && m->list->say) LIN_TRY(m->list->say(m->list->context, word, n, err));
    if (label < 0) LIN_TRY(lin_symbols_add(&m->nfa->words, word, n, &label, err));
    return add_label(m, p, label, err);
}

// A reading of a number, whose words are separated by blanks and may have parts.
static lin_status add_reading(maker *m, const char *reading, part *p, lin_error *err)
{
    lin_spelling word;
    lin_status status;
    size_t at = 0;
    while ((status = lin_reading_next(reading, &at, NULL, &word, err)) == LIN_OK && word.n)
        LIN_TRY(add_word(m, word.word, word.n, p, err));
    return status;
}

static lin_status add_readings(maker *m, const lin_readings *readings, part *p, lin_error *err)
{
    int out = 0;
    LIN_TRY(add_state(m, &out, err));
    for (int i = 0; i < readings->n; i++) {
        part way = *p;
        LIN_TRY(add_reading(m, readings->items[i], &way, err));
        LIN_TRY(add_arc(m, way.out, LIN_NFA_EMPTY, out, err));
    }
    p->out = out;
    return LIN_OK;
}

// Text without signs of the grammar.
static lin_status add_text(maker *m, const char *text, size_t n, part *p, lin_error *err)
{
    lin_word_reader words = {.written = m->numbers, .text = text, .n = n};
    lin_spelling word = {0};
    lin_status status;
    while ((status = lin_word_reader_next(&words, &word, err)) == LIN_OK && (word.n || words.readings.n)) {
        status = word.n ? add_word(m, word.word, word.n, p, err) : add_readings(m, &words.readings, p, err);
        if (status != LIN_OK) break;
    }
    lin_word_reader_free(&words);
    return status;
}

static lin_status add_numbers(maker *m, unsigned long from, unsigned long to, part *p, lin_error *err)
{
    int out = 0;
    m->n_numbers += to - from + 1;
    if (m->n_numbers > MOST_IN_ALL) return lin_nfa_too_large(err);
    LIN_TRY(add_state(m, &out, err));
    for (unsigned long value = from; value <= to; value++) {
        char digits[32];
        part way = *p;
        const int n = snprintf(digits, sizeof digits, "%lu", value);
        LIN_TRY(add_text(m, digits, (size_t)n, &way, err));
        LIN_TRY(add_arc(m, way.out, LIN_NFA_EMPTY, out, err));
    }
    p->out = out;
    return LIN_OK;
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
    if (sscanf(text, "%9lu..%9lu%n", from, to, &used) != 2 || strspn(text, "0123456789.") < (size_t)used || // "1..-5"
        strspn(text + used, "0123456789") > 0) // of ten digits
        return 0;
    c->at = at + used;
    return 1;
}

static lin_status parse_choices(maker *m, cursor *c, char close, part *p, lin_error *err);

// Leaves out a phrase of a list; 0 if the error does not permit that. What the phrase has added so far stays, unreachable.
static int leave_out(maker *m, int number, const lin_error *why)
{
    if (!m->list || number > 0 || (why->status != LIN_FORMAT && why->status != LIN_INVALID)) return 0;
    if (m->list->left_out++ == 0) m->list->first = *why;
    m->depth = 1;
    m->located = 0;
    for (int i = 1; i < m->n_rules; i++) m->rules[i].open = 0;
    return 1;
}

// All alternatives of a rule. Each reference has its own copy: automata have no memory of where to return to.
static lin_status expand(maker *m, int number, part *p, lin_error *err)
{
    int ways = 0;
    LIN_TRY(add_part(m, p, err));
    m->rules[number].open = 1;
    m->depth++;
    for (int i = m->rules[number].first; i >= 0; i = m->sources[i].next) {
        const source s = m->sources[i];
        cursor c = {s.text, s.text + s.n, m->files[s.file].jsgf};
        part way = {0};
        lin_error why = {0};
        const lin_status status = parse_choices(m, &c, '\0', &way, &why);
        if (status == LIN_OK) {
            LIN_TRY(add_way(m, *p, way, err));
            ways++;
            continue;
        }
        locate(m, s.file, s.line + lines_between(s.text, c.at), status, &why);
        if (!leave_out(m, number, &why)) return lin_fail_as(err, &why);
    }
    if (ways == 0 && m->list) return lin_fail_as(err, &m->list->first);
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
    if (m->others) lin_buffer_bytes(m->others, path, strlen(path) + 1);
    if (access(path, F_OK) != 0)
        return lin_fail(err, LIN_FORMAT, "$%s is not defined: write a line that begins with $%s =, or its phrases into %s",
                        quoted, quoted, path);
    LIN_TRY(lin_text_read(path, &text, &bytes, err));
    *number = m->n_rules;
    return add_file(m, name, n, path, text, bytes, err);
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
            return lin_fail(err, LIN_FORMAT, "$number needs a range of at most nine digits behind it, such as $number 1..100");
        if (from > to || to - from >= MOST_NUMBERS)
            return lin_fail(err, LIN_FORMAT, "$number %lu..%lu: a range must go up, and have at most %d numbers", from, to,
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
    if (!c->jsgf && takes(&c->at, c->end, "[unk]")) return add_label(m, p, LIN_NFA_UNKNOWN, err);
    if (m->depth >= DEEPEST) return lin_fail(err, LIN_FORMAT, "brackets are nested more than %d deep", DEEPEST);
    c->at++;
    m->depth++;
    LIN_TRY(parse_choices(m, c, open == '(' ? ')' : ']', &group, err));
    m->depth--;
    if (open == '[') LIN_TRY(add_arc(m, group.in, LIN_NFA_EMPTY, group.out, err));
    return follow(m, p, group, err);
}

// What closes a part that only JSGF has: a reference, a weight, quoted words; '\0': it is none.
static char closing(char opens)
{
    return opens == '<' ? '>' : opens == '/' || opens == '"' ? opens : '\0';
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
    return !c->jsgf && *c->at == '$' && c->end - c->at > 1 &&
           !lin_is_digit(c->at[1]) && after_name(c->at + 1, c->end) > c->at + 1;
}

static lin_status parse_item(maker *m, cursor *c, part *p, lin_error *err)
{
    const char *begin = c->at;
    if (*begin == '(' || *begin == '[') return parse_group(m, c, p, err);
    if (c->jsgf && closing(*begin)) return parse_jsgf(m, c, p, err);
    if (c->jsgf && (*begin == '*' || *begin == '+'))
        return lin_fail(err, LIN_UNSUPPORTED, "repetition (* and +) is not read; write it out");
    if (is_reference(c)) {
        c->at = after_name(begin + 1, c->end);
        return parse_reference(m, c, begin + 1, (size_t)(c->at - begin - 1), p, err);
    }
    const char *stops = c->jsgf ? "()[]|</\"*+" : "()[]|";
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
    return items ? LIN_OK : lin_fail(err, LIN_FORMAT, "there are no words here");
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

lin_status lin_nfa_read(lin_nfa *nfa, const char *name, const char *path, char *text, size_t n, const lin_written *numbers,
                        lin_grammar_list *list, lin_buffer *files, lin_error *err)
{
    maker m = {.numbers = numbers, .path = path, .nfa = nfa, .list = list, .others = files};
    part whole = {0};
    lin_status status = add_file(&m, "", 0, name, text, n, err);
    if (status == LIN_OK) status = expand(&m, 0, &whole, err);
    if (status == LIN_OK && list) status = add_arc(&m, whole.out, LIN_NFA_EMPTY, whole.in, err);
    nfa->in = whole.in;
    nfa->out = whole.out;
    for (int i = 0; i < m.n_files; i++) {
        lin_free(m.files[i].name);
        lin_free(m.files[i].text);
    }
    lin_free(m.files);
    lin_free(m.rules);
    lin_free(m.sources);
    lin_symbols_free(&m.names);
    return status;
}
