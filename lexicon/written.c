// written.c - what a text writes otherwise than it is said, by rules from a file; see written.h.

#include "lexicon/written.h"

#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "lexicon/written_internal.h"

enum {
    LONGEST = 1024,  // bytes of a reading
    MOST_STEPS = 600 // of a match: rules that go in circles end
};
#define LARGEST LIN_WRITTEN_LARGEST

typedef lin_written_rule rule;
typedef lin_written_set set;
typedef lin_written_form form;

/* ---- lists of readings ----------------------------------------------------------------------------------------------------- */

void lin_readings_clear(lin_readings *r)
{
    for (int i = 0; i < r->n; i++) lin_free(r->items[i]);
    r->n = 0;
}

void lin_readings_free(lin_readings *r)
{
    lin_readings_clear(r);
    lin_free(r->items);
    *r = (lin_readings){0};
}

static lin_status no_memory(lin_error *err) { return lin_no_memory(err, "readings of a number", 0); }

// Adds a joined with b [n]; what is there already, is one too many or too long, is left out.
static lin_status add(lin_readings *r, const char *a, const char *b, size_t n, lin_error *err)
{
    const size_t k = strlen(a);
    if (r->n >= LIN_READINGS_MOST || k + n > LONGEST) return LIN_OK;
    lin_status status = lin_grow_int(&r->items, &r->capacity, (int64_t)r->n + 1, sizeof *r->items, "readings", err);
    if (status != LIN_OK) return status;
    char *item = lin_alloc(k + n + 1, 1);
    if (!item) return no_memory(err);
    memcpy(item, a, k);
    memcpy(item + k, b, n);
    item[k + n] = 0;
    for (int i = 0; i < r->n; i++) {
        if (strcmp(r->items[i], item) != 0) continue;
        lin_free(item);
        return LIN_OK;
    }
    r->items[r->n++] = item;
    return LIN_OK;
}

// Each of `r` followed by text [n].
static lin_status append(lin_readings *r, const char *text, size_t n, lin_error *err)
{
    lin_readings all = {0};
    lin_status status = LIN_OK;
    for (int i = 0; i < r->n && status == LIN_OK; i++) status = add(&all, r->items[i], text, n, err);
    lin_readings_free(r);
    *r = all;
    return status;
}

// Each of `r` followed by each of `parts`.
static lin_status multiply(lin_readings *r, const lin_readings *parts, lin_error *err)
{
    lin_readings all = {0};
    lin_status status = LIN_OK;
    for (int i = 0; i < r->n && all.n < LIN_READINGS_MOST; i++) {
        for (int k = 0; k < parts->n && status == LIN_OK; k++)
            status = add(&all, r->items[i], parts->items[k], strlen(parts->items[k]), err);
    }
    lin_readings_free(r);
    *r = all;
    return status;
}

/* ---- numbers by rules ------------------------------------------------------------------------------------------------------ */

typedef struct expansion {
    const lin_written *written;
    int steps;
    lin_error *err;
} expansion;

const lin_written_set *lin_written_find(const lin_written *w, const char *name, size_t n)
{
    for (int i = 0; i < w->n_sets; i++) {
        if (strlen(w->sets[i].name) == n && memcmp(w->sets[i].name, name, n) == 0) return &w->sets[i];
    }
    return NULL;
}

static lin_status expand(expansion *x, const set *s, uint64_t value, int depth, lin_readings *out);

int lin_written_refers(const lin_written *w, const char *p, const char *end, const lin_written_set *own,
                       lin_written_reference *r)
{
    if (*p != '<' && *p != '>' && *p != '=') return 0;
    size_t n = 1;
    while (p + n < end && (lin_written_is_name(p[n]) || p[n] == '#' || (p[n] == ',' && n == 2))) n++;
    *r = (lin_written_reference){.part = *p, .set = own, .n = 1};
    if (n == 1 || p + n == end || p[n] != *p) return *p != '=';
    r->n = n + 1;
    r->digits = p[1] != '#' ? 0 : n == 2 ? 1 : n == 3 && p[2] == ',' ? 2 : 0;
    r->set = r->digits ? NULL : lin_written_find(w, p + 1, n - 1);
    return 1;
}

const lin_written_rule *lin_written_choose(const lin_written *w, const lin_written_set *s, uint64_t value)
{
    const rule *rules = w->rules + s->first;
    int at = s->n - 1;
    while (at >= 0 && rules[at].base > value) at--;
    return at < 0 ? NULL : &rules[at];
}

static lin_status expand_pattern(expansion *x, const set *own, const rule *r, const char *p, const char *end, uint64_t value,
                                 int depth, lin_readings *out)
{
    const uint64_t rest = value % r->divisor;
    lin_status status = add(out, "", "", 0, x->err);
    while (p < end && status == LIN_OK && out->n) {
        lin_written_reference ref;
        if ((*p == '[' && !rest) || (*p == '(' && rest)) { // skip
            const char *close = memchr(p, *p == '[' ? ']' : ')', (size_t)(end - p));
            p = close ? close + 1 : end;
            continue;
        }
        if (strchr("[]()", *p)) {
            p++;
            continue;
        }
        if (lin_written_refers(x->written, p, end, own, &ref)) {
            lin_readings parts = {0};
            const uint64_t part = ref.part == '<' ? value / r->divisor : ref.part == '>' ? rest : value;
            status = ref.set ? expand(x, ref.set, part, depth + 1, &parts) : LIN_OK; // digits are not said
            if (status == LIN_OK) status = multiply(out, &parts, x->err);
            lin_readings_free(&parts);
            p += ref.n;
            continue;
        }
        const char *from = p++;
        while (p < end && !strchr("[]()<>=", *p)) p++;
        status = append(out, from, (size_t)(p - from), x->err);
    }
    return status;
}

// The readings of a number by a set, added to `out`; none without a rule, or where rules go too deep.
static lin_status expand(expansion *x, const set *s, uint64_t value, int depth, lin_readings *out)
{
    if (depth > LIN_WRITTEN_DEEPEST || ++x->steps > MOST_STEPS) return LIN_OK;
    const rule *r = lin_written_choose(x->written, s, value);
    if (!r) return LIN_OK;
    lin_status status = LIN_OK;
    for (const char *p = r->patterns; p && status == LIN_OK;) {
        const char *bar = strchr(p, '|'), *end = bar ? bar : p + strlen(p);
        while (bar && end > p && end[-1] == ' ') end--;
        lin_readings one = {0};
        status = expand_pattern(x, s, r, p, end, value, depth, &one);
        for (int i = 0; i < one.n && status == LIN_OK; i++) status = add(out, "", one.items[i], strlen(one.items[i]), x->err);
        lin_readings_free(&one);
        p = bar ? bar + 1 : NULL;
        while (p && *p == ' ') p++;
    }
    return status;
}

// Runs of blanks become one, those at the ends none; empty readings are dropped.
static void tidy(lin_readings *r)
{
    int kept = 0;
    for (int i = 0; i < r->n; i++) {
        char *from = r->items[i], *to = from;
        for (; *from; from++) {
            if (*from != ' ' || (to > r->items[i] && to[-1] != ' ')) *to++ = *from;
        }
        while (to > r->items[i] && to[-1] == ' ') to--;
        *to = 0;
        int is_new = *r->items[i] != 0;
        for (int k = 0; k < kept && is_new; k++) is_new = strcmp(r->items[k], r->items[i]) != 0;
        if (is_new) r->items[kept++] = r->items[i];
        else lin_free(r->items[i]);
    }
    r->n = kept;
}

lin_status lin_written_number(const lin_written *w, const char *name, uint64_t value, lin_readings *readings, lin_error *err)
{
    expansion x = {.written = w, .err = err};
    const set *s = lin_written_find(w, name, strlen(name));
    lin_readings_clear(readings);
    if (!s || value >= LARGEST) return LIN_OK;
    lin_status status = expand(&x, s, value, 0, readings);
    tidy(readings);
    return status;
}

/* ---- forms in a text ------------------------------------------------------------------------------------------------------- */

typedef struct slot {
    const char *at;
    size_t n;
    uint64_t value; // LARGEST: too long
} slot;

typedef struct match {
    size_t end; // 0: none
    int n_slots;
    slot slots[LIN_WRITTEN_SLOTS];
} match;

size_t lin_written_digits(const char *text, size_t n)
{
    size_t k = 0;
    while (k < n && lin_is_digit(text[k])) k++;
    return k;
}

// Bytes of a whole number, with thousands divided or not.
static size_t number_at(const lin_written *w, const char *text, size_t n)
{
    size_t k = lin_written_digits(text, n);
    if (!w->n_group || k == 0 || k > 3) return k;
    while (n - k > w->n_group + 2 && memcmp(text + k, w->group, w->n_group) == 0 &&
           lin_written_digits(text + k + w->n_group, n - k - w->n_group) == 3)
        k += w->n_group + 3;
    return k;
}

uint64_t lin_written_value(const char *text, size_t n)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        if (!lin_is_digit(text[i])) continue;
        value = 10 * value + (uint64_t)(text[i] - '0');
        if (value >= LARGEST) return LARGEST;
    }
    return value;
}

// Bytes of a slot of this kind, 0 if it does not fit. All digits that stand together belong to it.
static size_t slot_at(const lin_written *w, char kind, const char *text, size_t n)
{
    const size_t k = lin_written_digits(text, n);
    const uint64_t value = lin_written_value(text, k);
    switch (kind) {
    case 'N': return number_at(w, text, n);
    case 'D': return k;
    case 'Y': return k == 4 && value >= 1000 && value < 3000 ? k : 0;
    case 'H': return k > 0 && k < 3 && value <= 24 ? k : 0;
    default: return k == 2 && value < 60 ? k : 0;
    }
}

static int is_word_byte(char c) { return lin_is_letter(c) || lin_is_digit(c) || (unsigned char)c >= 0xC3; }

// Whether a form fits at a byte. A blank of the pattern is any run of blanks; letters fit in both cases if they are small.
static match match_form(const lin_written *w, const char *pattern, const char *text, size_t n, size_t at)
{
    match m = {0};
    size_t to = at;
    for (const char *p = pattern; *p;) {
        if (*p == '{') {
            const size_t k = slot_at(w, p[1], text + to, n - to);
            if (!k) return m;
            m.slots[m.n_slots++] = (slot){text + to, k, lin_written_value(text + to, k)};
            to += k;
            p += 3;
        } else if (*p == ' ') {
            if (to == n || !(lin_is_space(text[to]) || text[to] == '\n')) return m;
            while (to < n && (lin_is_space(text[to]) || text[to] == '\n')) to++;
            p++;
        } else {
            if (to == n || (text[to] != *p && lin_lower(text[to]) != *p)) return m;
            to++, p++;
        }
    }
    m.end = to;
    return m;
}

// Neither in the middle of a word, nor of a number: "3rd" does not end in "3rdly", nor does "5" in "5,000" or "2.5".
static int stands_alone(const lin_written *w, const char *text, size_t n, size_t at, size_t end)
{
    const char first = text[at], last = text[end - 1], before = at > 0 ? text[at - 1] : ' ';
    if (lin_is_digit(first) && lin_is_digit(before)) return 0;
    // Signs may follow a word, "x=2"; but not those that belong to it, "AT&T".
    if (!lin_is_digit(first) && is_word_byte(before) && (is_word_byte(first) || strchr("&-'.", first))) return 0;
    if (end == n) return 1;
    if (lin_is_digit(last) && lin_is_digit(text[end])) return 0;
    if (lin_is_digit(last) && n - end > w->n_group && w->n_group && memcmp(text + end, w->group, w->n_group) == 0 &&
        lin_is_digit(text[end + w->n_group]))
        return 1; // "1,2,3"
    return lin_is_digit(last) || !is_word_byte(last) || !is_word_byte(text[end]);
}

// "cardinal} point ...": readings of a slot.
static lin_status expand_slot(expansion *x, const slot *v, char how, const char *name, size_t n, lin_readings *out)
{
    const set *s = lin_written_find(x->written, name, n);
    lin_status status = LIN_OK;
    if (!s) return LIN_OK;
    if (how == ':') return v->value < LARGEST ? expand(x, s, v->value, 0, out) : LIN_OK;
    // Digit by digit, each with the same choice among its readings: "oh five", "zero five".
    for (int choice = 0; choice < 4 && status == LIN_OK; choice++) {
        lin_buffer text = {0};
        int more = 0;
        for (size_t i = 0; i < v->n && status == LIN_OK; i++) {
            lin_readings one = {0};
            if (!lin_is_digit(v->at[i])) continue;
            status = expand(x, s, (uint64_t)(v->at[i] - '0'), 0, &one);
            more |= one.n > choice + 1;
            if (text.n) lin_buffer_char(&text, ' ');
            if (one.n) lin_buffer_text(&text, one.items[one.n > choice ? choice : 0]);
            lin_readings_free(&one);
        }
        if (status == LIN_OK) status = lin_buffer_status(&text, x->err);
        if (status == LIN_OK && text.n && text.n <= LONGEST) status = add(out, "", text.data, text.n, x->err);
        lin_buffer_free(&text);
        if (!more) break;
    }
    return status;
}

static lin_status expand_reading(expansion *x, const char *p, const char *end, const match *m, lin_readings *out)
{
    lin_status status = add(out, "", "", 0, x->err);
    while (p < end && status == LIN_OK && out->n) {
        const char *from = p;
        if (*p == '{') {
            const char *close = memchr(p, '}', (size_t)(end - p));
            lin_readings parts = {0};
            status = expand_slot(x, &m->slots[p[1] - '1'], p[2], p + 3, (size_t)(close - p) - 3, &parts);
            if (status == LIN_OK) status = multiply(out, &parts, x->err);
            lin_readings_free(&parts);
            p = close + 1;
            continue;
        }
        while (p < end && *p != '{') p++;
        status = append(out, from, (size_t)(p - from), x->err);
    }
    return status;
}

static lin_status read_form(const lin_written *w, const form *f, const match *m, lin_readings *out, lin_error *err)
{
    expansion x = {.written = w, .err = err};
    lin_status status = LIN_OK;
    for (const char *p = f->readings; p && status == LIN_OK;) {
        const char *bar = strchr(p, '|'), *end = bar ? bar : p + strlen(p);
        lin_readings one = {0};
        status = expand_reading(&x, p, end, m, &one);
        for (int i = 0; i < one.n && status == LIN_OK; i++) status = add(out, "", one.items[i], strlen(one.items[i]), err);
        lin_readings_free(&one);
        p = bar ? bar + 1 : NULL;
    }
    tidy(out);
    return status;
}

lin_status lin_written_match(const lin_written *w, const char *text, size_t n, size_t at, size_t *end, lin_readings *readings,
                             lin_error *err)
{
    *end = 0;
    lin_readings_clear(readings);
    if (at >= n || !w->begins[(unsigned char)text[at]]) return LIN_OK;
    size_t shorter = SIZE_MAX; // than this: where the longest has no reading. Of two as long the later in the file counts
    for (;;) {
        const form *best = NULL;
        match found = {0};
        for (int i = 0; i < w->forms.n; i++) {
            const match m = match_form(w, w->forms.items[i].pattern, text, n, at);
            if (!m.end || m.end < found.end || m.end >= shorter || !stands_alone(w, text, n, at, m.end)) continue;
            found = m;
            best = &w->forms.items[i];
        }
        if (!best) return LIN_OK;
        lin_status status = read_form(w, best, &found, readings, err);
        if (status != LIN_OK) return status;
        *end = readings->n ? found.end : 0;
        if (readings->n) return LIN_OK;
        shorter = found.end;
    }
}

