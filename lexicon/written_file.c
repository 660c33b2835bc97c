// written_file.c - rules for numbers read from a file; see written.h.

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "base/utf8.h"
#include "lexicon/written_internal.h"

enum { MOST_RULES = 4096 };
#define LARGEST LIN_WRITTEN_LARGEST

typedef lin_written_rule rule;
typedef lin_written_set set;
typedef lin_written_form form;

static lin_status no_memory(lin_error *err) { return lin_no_memory(err, "readings of a number", 0); }

/* ---- the file -------------------------------------------------------------------------------------------------------------- */

typedef struct reader {
    lin_written *written;
    const char *name;
    int line, in_marks;
    lin_written_forms *forms; // of the section with them
} reader;

static lin_status refuse(const reader *r, lin_error *err, const char *what)
{
    return lin_fail(err, LIN_FORMAT, "%s:%d: %s", r->name, r->line, what);
}

static lin_status begin_section(reader *r, const char *line, size_t n, lin_error *err)
{
    lin_written *w = r->written;
    const char *name = line + 1;
    const size_t k = n - 2;
    if (n < 3 || line[n - 1] != ']' || k > LIN_WRITTEN_NAME)
        return refuse(r, err, "a section must be [name] of at most 31 letters");
    for (size_t i = 0; i < k; i++)
        if (!lin_written_is_name(name[i])) return refuse(r, err, "the name of a section has small letters and '-' only");
    const struct {
        const char *name;
        lin_written_forms *forms;
    } sections[] = {{"marks", NULL}, {"written", &w->forms}, {"spoken", &w->spoken}, {"titles", &w->titles}};
    r->in_marks = 0;
    r->forms = NULL;
    for (int i = 0; i < 4; i++) {
        if (strlen(sections[i].name) != k || memcmp(sections[i].name, name, k) != 0) continue;
        r->in_marks = i == 0;
        r->forms = sections[i].forms;
        return LIN_OK;
    }
    if (lin_written_find(w, name, k)) return refuse(r, err, "a section of this name is there already");
    lin_status status = lin_grow_int(&w->sets, &w->sets_capacity, (int64_t)w->n_sets + 1, sizeof *w->sets, "rules", err);
    if (status != LIN_OK) return status;
    set *s = &w->sets[w->n_sets++];
    *s = (set){.first = w->n_rules};
    memcpy(s->name, name, k);
    return LIN_OK;
}

// "100/10: < hundred[ >]"
static lin_status read_rule(reader *r, const char *line, size_t n, lin_error *err)
{
    lin_written *w = r->written;
    set *s = w->n_sets ? &w->sets[w->n_sets - 1] : NULL;
    uint64_t base, divisor = 1;
    size_t k = lin_written_digits(line, n);
    if (!s) return refuse(r, err, "a rule before the first [section]");
    if (k == 0 || (base = lin_written_value(line, k)) >= LARGEST)
        return refuse(r, err, "a rule must begin with a number below 10^15");
    while (divisor <= base / 10) divisor *= 10;
    if (k < n && line[k] == '/') {
        const size_t more = lin_written_digits(line + k + 1, n - k - 1);
        divisor = lin_written_value(line + k + 1, more);
        if (divisor == 0 || divisor >= LARGEST) return refuse(r, err, "the divisor must be a number from 1 on");
        k += 1 + more;
    }
    if (k == n || line[k] != ':') return refuse(r, err, "':' must follow the number of a rule");
    if (s->n && w->rules[w->n_rules - 1].base >= base) return refuse(r, err, "the numbers of a section must increase");
    if (w->n_rules == MOST_RULES) return refuse(r, err, "over 4096 rules");
    for (k++; k < n && line[k] == ' ';) k++;
    lin_status status = lin_grow_int(&w->rules, &w->rules_capacity, (int64_t)w->n_rules + 1, sizeof *w->rules, "rules", err);
    if (status != LIN_OK) return status;
    char *patterns = lin_text_copy(line + k, n - k);
    if (!patterns) return no_memory(err);
    w->rules[w->n_rules++] = (rule){base, divisor, patterns, r->line};
    s->n++;
    return LIN_OK;
}

// The slots of a pattern, or -1.
static int count_slots(const char *p)
{
    int slots = 0;
    for (; *p; p++) {
        if (*p == '}') return -1;
        if (*p != '{') continue;
        if (!p[1] || !strchr("NDYHM", p[1]) || p[2] != '}' || slots == LIN_WRITTEN_SLOTS) return -1;
        slots++;
        p += 2;
    }
    return slots;
}

// Its references: each a slot that is there, and a name.
static int is_reading(const char *p, int slots)
{
    for (; *p; p++) {
        if (*p == '}') return 0;
        if (*p != '{') continue;
        if (p[1] < '1' || p[1] >= '1' + slots || (p[2] != ':' && p[2] != '*')) return 0;
        for (p += 3; lin_written_is_name(*p);) p++;
        if (*p != '}') return 0;
    }
    return 1;
}

// "pattern = readings", to the list of the section.
static lin_status read_form(reader *r, const char *line, size_t n, lin_error *err)
{
    lin_written *w = r->written;
    lin_written_forms *forms = r->forms;
    size_t k = 1;
    while (k + 2 < n && memcmp(line + k, " = ", 3) != 0) k++;
    if (k + 2 >= n)
        return refuse(r, err, forms == &w->forms ? "the line must be: what is written = how it is said"
                                                 : "the line must be: what is said = how it is written");
    lin_status status = lin_grow_int(&forms->items, &forms->capacity, (int64_t)forms->n + 1, sizeof *forms->items, "rules", err);
    if (status != LIN_OK) return status;
    if (forms->n == MOST_RULES) return refuse(r, err, "over 4096 forms");
    form *f = &forms->items[forms->n++];
    *f = (form){lin_text_copy(line, k), lin_text_copy(line + k + 3, n - k - 3), r->line};
    return f->pattern && f->readings ? LIN_OK : no_memory(err);
}

static lin_status read_written(reader *r, const char *line, size_t n, lin_error *err)
{
    lin_written *w = r->written;
    lin_status status = read_form(r, line, n, err);
    if (status != LIN_OK) return status;
    const form *f = &w->forms.items[w->forms.n - 1];
    const int slots = count_slots(f->pattern);
    if (slots < 0) return refuse(r, err, "what is written has up to four of {N}, {D}, {Y}, {H} and {M}");
    if (!is_reading(f->readings, slots))
        return refuse(r, err, "a reading refers to {1:set} or {1*set}, the first of what is written");
    const unsigned char first = (unsigned char)f->pattern[0];
    if (first == '{') memset(&w->begins['0'], 1, 10);
    w->begins[first] = 1;
    if (first >= 'a' && first <= 'z') w->begins[first - 32] = 1;
    return LIN_OK;
}

static lin_status read_mark(reader *r, const char *line, size_t n, lin_error *err)
{
    lin_written *w = r->written;
    static const char group[] = "group = ", onward[] = "onward = ";
    const size_t k = sizeof group - 1, m = sizeof onward - 1;
    if (n > k && n - k < sizeof w->group && memcmp(line, group, k) == 0) {
        w->n_group = n - k;
        memcpy(w->group, line + k, w->n_group);
        return LIN_OK;
    }
    if (n <= m || memcmp(line, onward, m) != 0) return refuse(r, err, "a mark must be: group = SIGN, or onward = WORD|WORD");
    lin_free(w->onward);
    w->onward = lin_text_copy(line + m, n - m);
    return w->onward ? LIN_OK : no_memory(err);
}

// Every set that is named exists.
static lin_status check_names(reader *r, lin_error *err)
{
    const lin_written *w = r->written;
    for (int i = 0; i < w->n_rules + w->forms.n; i++) {
        const int is_rule = i < w->n_rules;
        const char *p = is_rule ? w->rules[i].patterns : w->forms.items[i - w->n_rules].readings;
        r->line = is_rule ? w->rules[i].line : w->forms.items[i - w->n_rules].line;
        for (; *p; p++) {
            size_t n = 0;
            const char *name = is_rule ? p + 1 : p + 3;
            if (is_rule ? !strchr("<=>", *p) : *p != '{') continue;
            if (is_rule && *name == '#') {
                p = name + strcspn(name, "<=>");
                if (*p != name[-1]) return refuse(r, err, "digits are =#=, <#<, >#>, or with #,");
                continue;
            }
            while (lin_written_is_name(name[n])) n++;
            if (is_rule && name[n] == *p) p = name + n;
            else if (is_rule) continue;
            if (!lin_written_find(w, name, n))
                return lin_fail(err, LIN_FORMAT, "%s:%d: there is no section [%.*s]", r->name, r->line, (int)n, name);
        }
    }
    return LIN_OK;
}

static lin_status read_line(reader *r, const char *line, size_t n, lin_error *err)
{
    if (n == 0 || (line[0] == '#' && (n == 1 || line[1] == ' '))) return LIN_OK;
    if (lin_utf8_prefix(line, n, "") < n) return refuse(r, err, "a control character, or bytes that are not UTF-8");
    if (line[0] == '[' && line[n - 1] == ']') return begin_section(r, line, n, err);
    if (r->forms) return (r->forms == &r->written->forms ? read_written : read_form)(r, line, n, err);
    return r->in_marks ? read_mark(r, line, n, err) : read_rule(r, line, n, err);
}

lin_status lin_written_parse(const char *text, size_t n, const char *name, lin_written **written, lin_error *err)
{
    lin_lines lines = {0};
    reader r = {.written = lin_calloc(1, sizeof(lin_written)), .name = name};
    lin_status status = r.written ? LIN_OK : no_memory(err);
    *written = NULL;
    lin_lines_begin(&lines, text, n);
    while (status == LIN_OK && lin_lines_next(&lines)) {
        size_t k = lines.n;
        while (k && lin_is_space(lines.text[k - 1])) k--;
        r.line = lines.number;
        status = read_line(&r, lines.text, k, err);
    }
    if (status == LIN_OK) status = check_names(&r, err);
    if (status == LIN_OK) status = lin_numbers_check(r.written, name, err);
    if (status == LIN_OK && !r.written->forms.n) status = lin_fail(err, LIN_FORMAT, "%s: it has no section [written]", name);
    if (status == LIN_OK) *written = r.written;
    else lin_written_destroy(r.written);
    return status;
}

lin_status lin_written_load(const char *path, lin_written **written, lin_error *err)
{
    char *text;
    size_t n;
    *written = NULL;
    lin_status status = lin_text_read(path, &text, &n, err);
    if (status != LIN_OK) return status;
    status = lin_written_parse(text, n, path, written, err);
    lin_free(text);
    return status;
}

static void free_forms(lin_written_forms *forms)
{
    for (int i = 0; i < forms->n; i++) {
        lin_free(forms->items[i].pattern);
        lin_free(forms->items[i].readings);
    }
    lin_free(forms->items);
}

void lin_written_destroy(lin_written *w)
{
    if (!w) return;
    for (int i = 0; i < w->n_rules; i++) lin_free(w->rules[i].patterns);
    for (int i = 0; i < w->n_pieces; i++) lin_free(w->pieces[i].text);
    free_forms(&w->forms);
    free_forms(&w->spoken);
    free_forms(&w->titles);
    lin_free(w->pieces);
    lin_free(w->onward);
    lin_free(w->sets);
    lin_free(w->rules);
    lin_free(w);
}
