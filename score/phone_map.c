// phone_map.c - reading maps of phones, and applying them; see phone_map.h.

#include "score/phone_map.h"

#include "base/memory.h"
#include "base/symbols.h"
#include "base/textfile.h"

enum { DELETED = -1 };

typedef struct rule {
    int to; // index into `to`, or DELETED
    int line;
} rule;

struct lin_phone_map {
    int case_sensitive;
    lin_symbols from, to;
    rule *rules; // [from.n]
    int capacity;
};

static lin_status add_name(lin_phone_map *m, lin_symbols *names, const char *text, size_t n, int *index, lin_error *err)
{
    if (m->case_sensitive) return lin_symbols_add(names, text, n, index, err);
    char *folded = lin_text_copy(text, n);
    if (!folded) return lin_no_memory(err, "a phone map", n + 1);
    for (size_t i = 0; i < n; i++) folded[i] = lin_lower(folded[i]);
    lin_status status = lin_symbols_add(names, folded, n, index, err);
    lin_free(folded);
    return status;
}

static lin_status add_rule(lin_phone_map *m, const char *name, int line, const char *from, size_t n_from, const char *to,
                           size_t n_to, lin_error *err)
{
    char shown[LIN_QUOTE];
    int index, target = DELETED;
    int before = m->from.n;
    lin_status status = lin_grow_int(&m->rules, &m->capacity, (int64_t)before + 1, sizeof *m->rules, "a phone map", err);
    if (status == LIN_OK) status = add_name(m, &m->from, from, n_from, &index, err);
    if (status == LIN_OK && index < before) {
        return lin_fail(err, LIN_FORMAT, "%s:%d: '%s' is mapped twice, first in line %d", name, line,
                        lin_quote(shown, from, n_from), m->rules[index].line);
    }
    if (status == LIN_OK && to) status = add_name(m, &m->to, to, n_to, &target, err);
    if (status == LIN_OK) m->rules[index] = (rule){.to = target, .line = line};
    return status;
}

static lin_status read_lines(lin_phone_map *m, const char *text, size_t n, const char *name, lin_error *err)
{
    lin_lines line;
    lin_status status = LIN_OK;
    int fields = 0, fields_line = 0;
    lin_lines_begin(&line, text, n);
    while (status == LIN_OK && lin_lines_next(&line)) {
        const char *at = line.text, *end = line.text + line.n, *first, *field, *last = NULL;
        size_t n_first, n_field, n_last = 0, bad = lin_text_find_control(line.text, line.n);
        int count = 1;
        if (bad < line.n) {
            return lin_fail(err, LIN_FORMAT, "%s:%d: control character 0x%02x at byte %zu of the line", name, line.number,
                            (unsigned char)line.text[bad], bad + 1);
        }
        if (!lin_field_next(&at, end, &first, &n_first) || *first == '#') continue;
        for (; lin_field_next(&at, end, &field, &n_field); count++) {
            last = field;
            n_last = n_field;
        }
        if (count > 1 && fields && count != fields) {
            return lin_fail(err, LIN_FORMAT, "%s:%d: %d fields, where line %d has %d; a line is a phone and its replacement",
                            name, line.number, count, fields_line, fields);
        }
        if (count > 1) {
            fields = count;
            fields_line = line.number;
        }
        status = add_rule(m, name, line.number, first, n_first, last, n_last, err);
    }
    if (status == LIN_OK && !m->from.n) status = lin_fail(err, LIN_FORMAT, "%s: the file has no phone", name);
    return status;
}

lin_status lin_phone_map_parse(const char *text, size_t n, const char *name, int case_sensitive, lin_phone_map **map,
                               lin_error *err)
{
    *map = NULL;
    lin_phone_map *m = lin_calloc(1, sizeof *m);
    if (!m) return lin_no_memory(err, "a phone map", sizeof *m);
    m->case_sensitive = case_sensitive;
    lin_status status = read_lines(m, text, n, name, err);
    if (status != LIN_OK) lin_phone_map_destroy(m);
    else *map = m;
    return status;
}

lin_status lin_phone_map_load(const char *path, int case_sensitive, lin_phone_map **map, lin_error *err)
{
    char *text;
    size_t n;
    *map = NULL;
    lin_status status = lin_text_read(path, &text, &n, err);
    if (status == LIN_OK) status = lin_phone_map_parse(text, n, path, case_sensitive, map, err);
    lin_free(text);
    return status;
}

void lin_phone_map_destroy(lin_phone_map *m)
{
    if (!m) return;
    lin_symbols_free(&m->from);
    lin_symbols_free(&m->to);
    lin_free(m->rules);
    lin_free(m);
}

lin_phone_fate lin_phone_map_apply(const lin_phone_map *m, const char **text, size_t *n)
{
    int from = lin_symbols_find(&m->from, *text, *n), to = from >= 0 ? m->rules[from].to : lin_symbols_find(&m->to, *text, *n);
    if (to < 0) return from >= 0 ? LIN_PHONE_DELETED : LIN_PHONE_UNKNOWN;
    *text = lin_symbols_text(&m->to, to);
    *n = m->to.items[to].n;
    return LIN_PHONE_MAPPED;
}
