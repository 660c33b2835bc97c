// written.c - rules for numbers from a file, and what they say about a text; see written.h.

#include "lexicon/written_internal.h"

#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "base/unicode.h"

enum {
    LONGEST = 1024,    // bytes of a reading
    MOST_STEPS = 600,  // of a match, so that circular rules end
    MOST_RULES = 4096
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

// Adds a followed by b [n], unless it is there already, one too many, or too long.
static lin_status add(lin_readings *r, const char *a, const char *b, size_t n, lin_error *err)
{
    const size_t k = strlen(a);
    if (r->n >= LIN_READINGS_MOST || k + n > LONGEST) return LIN_OK;
    LIN_TRY(lin_grow_int(&r->items, &r->capacity, (int64_t)r->n + 1, sizeof *r->items, "readings", err));
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

static lin_status add_all(lin_readings *r, const lin_readings *more, lin_error *err)
{
    for (int i = 0; i < more->n; i++) LIN_TRY(add(r, "", more->items[i], strlen(more->items[i]), err));
    return LIN_OK;
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

int lin_written_next(const lin_written *w, const char **p, const char *end, const lin_written_set *own, int has_rest,
                     lin_written_piece *piece)
{
    for (; *p < end && strchr("[]()", **p); ++*p) {
        if ((**p != '[' || has_rest != 0) && (**p != '(' || has_rest != 1)) continue;
        const char *close = memchr(*p, **p == '[' ? ']' : ')', (size_t)(end - *p));
        *p = close ? close : end - 1;
    }
    if (*p == end) return 0;
    const char *from = *p;
    size_t n = 1;
    *piece = (lin_written_piece){.text = from, .set = own};
    if (strchr("<>=", *from)) {
        while (from + n < end && (lin_written_is_name(from[n]) || from[n] == '#' || (from[n] == ',' && n == 2))) n++;
        const int is_closed = n > 1 && from + n < end && from[n] == *from;
        if (is_closed || *from != '=') piece->part = *from;
        if (is_closed) {
            piece->digits = from[1] != '#' ? 0 : n == 2 ? 1 : n == 3 && from[2] == ',' ? 2 : 0;
            piece->set = piece->digits ? NULL : lin_written_find(w, from + 1, n - 1);
        }
        n = is_closed ? n + 1 : 1;
    }
    if (!piece->part)
        while (from + n < end && !strchr("[]()<>=", from[n])) n++;
    piece->n = n;
    *p = from + n;
    return 1;
}

const char *lin_written_alternative(const char **next, const char **end)
{
    const char *from = *next;
    if (!from) return NULL;
    const char *bar = strchr(from, '|');
    *next = bar ? bar + 1 : NULL;
    *end = bar ? bar : from + strlen(from);
    while (*from == ' ') from++;
    while (*end > from && (*end)[-1] == ' ') --*end;
    return from;
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
    const int has_rest = value % r->divisor != 0;
    lin_written_piece piece;
    lin_status status = add(out, "", "", 0, x->err);
    while (status == LIN_OK && out->n && lin_written_next(x->written, &p, end, own, has_rest, &piece)) {
        lin_readings parts = {0};
        if (!piece.part) {
            status = append(out, piece.text, piece.n, x->err);
            continue;
        }
        const uint64_t part = lin_written_part(&piece, r, value);
        if (piece.set) status = expand(x, piece.set, part, depth + 1, &parts); // digits are not said
        if (status == LIN_OK) status = multiply(out, &parts, x->err);
        lin_readings_free(&parts);
    }
    return status;
}

// The readings of a number by a set, added to `out`; none without a rule, or where rules go too deep.
static lin_status expand(expansion *x, const set *s, uint64_t value, int depth, lin_readings *out)
{
    if (depth > LIN_WRITTEN_DEEPEST || ++x->steps > MOST_STEPS) return LIN_OK;
    const rule *r = lin_written_choose(x->written, s, value);
    lin_status status = LIN_OK;
    const char *next = r ? r->patterns : NULL, *end;
    for (const char *p; status == LIN_OK && (p = lin_written_alternative(&next, &end)) != NULL;) {
        lin_readings one = {0};
        status = expand_pattern(x, s, r, p, end, value, depth, &one);
        if (status == LIN_OK) status = add_all(out, &one, x->err);
        lin_readings_free(&one);
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

// The digits at the beginning of a text.
static size_t digits_at(const char *text, size_t n)
{
    size_t k = 0;
    while (k < n && lin_is_digit(text[k])) k++;
    return k;
}

static int begins_with(const char *text, size_t n, const char *with, size_t n_with)
{
    return n >= n_with && memcmp(text, with, n_with) == 0;
}

size_t lin_written_blank(const char *text, size_t n)
{
    if (n > 0 && lin_is_blank(text[0])) return 1;
    if (begins_with(text, n, "\xC2\xA0", 2)) return 2; // no-break space
    const int is_narrow = begins_with(text, n, "\xE2\x80\xAF", 3), is_thin = begins_with(text, n, "\xE2\x80\x89", 3);
    return is_narrow || is_thin ? 3 : 0;
}

// Where a number ends whose groups of three digits are divided by the sign behind its first one.
static size_t groups_end(const char *text, size_t n, size_t first, size_t n_sign)
{
    size_t k = first;
    while (n_sign && k < LONGEST && n - k > n_sign + 2 && memcmp(text + k, text + first, n_sign) == 0 &&
           digits_at(text + k + n_sign, n - k - n_sign) == 3)
        k += n_sign + 3;
    return k;
}

// Bytes of a text that a sign of a form fits, 0 if it does not: '-' also fits the dash of "10–20" and the minus of "−5".
static size_t sign_at(char sign, const char *text, size_t n)
{
    if (n > 0 && (text[0] == sign || lin_lower(text[0]) == sign)) return 1;
    return sign == '-' && n > 2 && (memcmp(text, "\xE2\x80\x93", 3) == 0 || memcmp(text, "\xE2\x88\x92", 3) == 0) ? 3 : 0;
}

// Whether groups of digits between blanks are one number, "1 000 000", not several, as in "5 100", "555 123 4567" and
// "1 800 555-1234".
static int are_thousands(const char *text, size_t n, size_t first, size_t end)
{
    const int goes_on = n - end > 1 && text[end] == ' ' && lin_is_digit(text[end + 1]);
    const size_t after = end + sign_at('-', text + end, n - end);
    const int has_dash = after > end && after < n && lin_is_digit(text[after]);
    const int is_round = memcmp(text + end - 3, "000", 3) == 0, has_three = end - first > 4;
    return text[first] == ' ' && text[0] != '0' && !goes_on && (is_round || (has_three && first < 3 && !has_dash));
}

// Bytes of a whole number, with thousands divided or not. Of a longer one there is no reading.
static size_t number_at(const lin_written *w, const char *text, size_t n)
{
    const size_t first = digits_at(text, n);
    if (first == 0 || first == n || first > 3) return first;
    const int has_group = w->n_group && begins_with(text + first, n - first, w->group, w->n_group);
    const size_t end = groups_end(text, n, first, has_group ? w->n_group : lin_written_blank(text + first, n - first));
    return end == first || !lin_is_blank(text[first]) || are_thousands(text, n, first, end) ? end : first;
}

// LARGEST: it is too large.
static uint64_t value_of(const char *text, size_t n)
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
    const size_t k = digits_at(text, n);
    const uint64_t value = value_of(text, k);
    switch (kind) {
    case 'N': return number_at(w, text, n);
    case 'D': return k;
    case 'Y': return k == 4 && value >= 1000 && value < 3000 ? k : 0;
    case 'H': return k > 0 && k < 3 && value <= 24 ? k : 0;
    case 'C': return k == 2 ? k : 0;
    default: return k == 2 && value < 60 ? k : 0;
    }
}

static int is_word_byte(char c) { return lin_is_letter(c) || lin_is_digit(c) || (unsigned char)c >= 0xC3; }

// Whether a form fits at a byte. A blank of the pattern is any run of blanks, or none behind a number and before no other, "5km".
// Letters fit in both cases if they are small.
static match match_form(const lin_written *w, const char *pattern, const char *text, size_t n, size_t at)
{
    match m = {0};
    size_t to = at;
    for (const char *p = pattern; *p;) {
        if (*p == '{') {
            const size_t k = slot_at(w, p[1], text + to, n - to);
            if (!k) return m;
            m.slots[m.n_slots++] = (slot){text + to, k, value_of(text + to, k)};
            to += k;
            p += 3;
        } else if (*p == ' ') {
            size_t k = lin_written_blank(text + to, n - to);
            if (!k && (p == pattern || (p[-1] != '}' && !lin_is_digit(p[-1])) || p[1] == '{' || lin_is_digit(p[1]))) return m;
            for (; k; k = lin_written_blank(text + to, n - to)) to += k;
            p++;
        } else {
            const size_t k = sign_at(*p, text + to, n - to);
            if (!k) return m;
            to += k;
            p++;
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
    if (v->n > LONGEST) return LIN_OK; // its reading is too
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

static lin_status expand_form(const lin_written *w, const form *f, const match *m, lin_readings *out, lin_error *err)
{
    expansion x = {.written = w, .err = err};
    lin_readings *ways = NULL; // of each alternative
    int n = 0, capacity = 0;
    lin_status status = LIN_OK;
    const char *next = f->readings, *end;
    for (const char *p; status == LIN_OK && (p = lin_written_alternative(&next, &end)) != NULL;) {
        status = lin_grow_int(&ways, &capacity, (int64_t)n + 1, sizeof *ways, "readings", err);
        if (status != LIN_OK) break;
        ways[n] = (lin_readings){0};
        status = expand_reading(&x, p, end, m, &ways[n++]);
    }
    // One of each in turn, so that the many readings of "{1:cardinal} to {2:cardinal}" leave room for those digit by digit.
    for (int k = 0; k < LIN_READINGS_MOST; k++) {
        for (int i = 0; i < n && status == LIN_OK; i++)
            if (k < ways[i].n) status = add(out, "", ways[i].items[k], strlen(ways[i].items[k]), err);
    }
    for (int i = 0; i < n; i++) lin_readings_free(&ways[i]);
    lin_free(ways);
    tidy(out);
    return status;
}

lin_status lin_written_match(const lin_written *w, const char *text, size_t n, size_t at, size_t *end, lin_readings *readings,
                             lin_error *err)
{
    *end = 0;
    lin_readings_clear(readings);
    if (at >= n || !w->begins[(unsigned char)text[at]]) return LIN_OK;
    if (at > 0 && lin_is_digit(text[at]) && lin_is_digit(text[at - 1])) return LIN_OK; // in a number
    size_t shorter = SIZE_MAX; // than this, once a longer match had no reading. Of equally long ones the later in the file counts
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
        LIN_TRY(expand_form(w, best, &found, readings, err));
        *end = readings->n ? found.end : 0;
        if (readings->n) return LIN_OK;
        shorter = found.end;
    }
}

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
    if (n < 3 || k > LIN_WRITTEN_NAME)
        return refuse(r, err, "a section must be [name] of at most 31 letters");
    for (size_t i = 0; i < k; i++)
        if (!lin_written_is_name(name[i])) return refuse(r, err, "the name of a section must have small letters and '-' only");
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
    if (lin_written_find(w, name, k)) return refuse(r, err, "a section of this name already exists");
    LIN_TRY(lin_grow_int(&w->sets, &w->sets_capacity, (int64_t)w->n_sets + 1, sizeof *w->sets, "rules", err));
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
    size_t k = digits_at(line, n);
    if (!s) return refuse(r, err, "there is a rule before the first [section]");
    if (k == 0 || (base = value_of(line, k)) >= LARGEST)
        return refuse(r, err, "a rule must begin with a number below 10^15");
    while (divisor <= base / 10) divisor *= 10;
    if (k < n && line[k] == '/') {
        const size_t more = digits_at(line + k + 1, n - k - 1);
        divisor = value_of(line + k + 1, more);
        if (divisor == 0 || divisor >= LARGEST) return refuse(r, err, "the divisor must be a number from 1 on");
        k += 1 + more;
    }
    if (k == n || line[k] != ':') return refuse(r, err, "':' must follow the number of a rule");
    if (s->n && w->rules[w->n_rules - 1].base >= base) return refuse(r, err, "the numbers of a section must increase");
    if (w->n_rules == MOST_RULES) return refuse(r, err, "there are over 4096 rules");
    for (k++; k < n && line[k] == ' ';) k++;
    LIN_TRY(lin_grow_int(&w->rules, &w->rules_capacity, (int64_t)w->n_rules + 1, sizeof *w->rules, "rules", err));
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
        if (!p[1] || !strchr("NDYHMC", p[1]) || p[2] != '}' || slots == LIN_WRITTEN_SLOTS) return -1;
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
    LIN_TRY(lin_grow_int(&forms->items, &forms->capacity, (int64_t)forms->n + 1, sizeof *forms->items, "rules", err));
    if (forms->n == MOST_RULES) return refuse(r, err, "there are over 4096 forms");
    form *f = &forms->items[forms->n++];
    *f = (form){lin_text_copy(line, k), lin_text_copy(line + k + 3, n - k - 3), r->line};
    return f->pattern && f->readings ? LIN_OK : no_memory(err);
}

static lin_status read_written(reader *r, const char *line, size_t n, lin_error *err)
{
    lin_written *w = r->written;
    LIN_TRY(read_form(r, line, n, err));
    const form *f = &w->forms.items[w->forms.n - 1];
    const int slots = count_slots(f->pattern);
    if (slots < 0) return refuse(r, err, "what is written may have at most four of {N}, {D}, {Y}, {H}, {M} and {C}");
    if (!is_reading(f->readings, slots))
        return refuse(r, err, "a reading may refer to {1:set} or {1*set}, where 1 is the first {...} of what is written");
    const unsigned char first = (unsigned char)f->pattern[0];
    if (first == '{') memset(&w->begins['0'], 1, 10);
    w->begins[first] = 1;
    w->begins[(unsigned char)lin_upper(f->pattern[0])] = 1;
    if (first == '-') w->begins[0xE2] = 1; // of a dash
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

static lin_status no_section(const reader *r, const char *name, size_t n, lin_error *err)
{
    return lin_fail(err, LIN_FORMAT, "%s:%d: there is no section [%.*s]", r->name, r->line, (int)n, name);
}

// Every set that is named exists.
static lin_status check_names(reader *r, lin_error *err)
{
    const lin_written *w = r->written;
    lin_written_piece piece;
    for (int i = 0; i < w->n_rules; i++) {
        const char *p = w->rules[i].patterns, *end = p + strlen(p);
        r->line = w->rules[i].line;
        while (lin_written_next(w, &p, end, NULL, -1, &piece)) {
            if (strchr("<=>", *piece.text) && piece.text[1] == '#' && !piece.digits)
                return refuse(r, err, "digits are =#=, <#<, >#>, or with #,");
            if (piece.part && piece.n > 1 && !piece.digits && !piece.set)
                return no_section(r, piece.text + 1, piece.n - 2, err);
        }
    }
    for (int i = 0; i < w->forms.n; i++) {
        r->line = w->forms.items[i].line;
        for (const char *p = w->forms.items[i].readings; (p = strchr(p, '{')) != NULL;) {
            const char *name = p + 3; // behind "{1:"
            for (p = name; lin_written_is_name(*p);) p++;
            if (!lin_written_find(w, name, (size_t)(p - name))) return no_section(r, name, (size_t)(p - name), err);
        }
    }
    return LIN_OK;
}

static lin_status read_line(reader *r, const char *line, size_t n, lin_error *err)
{
    if (n == 0 || (line[0] == '#' && (n == 1 || line[1] == ' '))) return LIN_OK;
    if (lin_utf8_prefix(line, n, "") < n) return refuse(r, err, "the line has a control character, or bytes that are not UTF-8");
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
    LIN_TRY(lin_text_read(path, &text, &n, err));
    const lin_status status = lin_written_parse(text, n, path, written, err);
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
    free_forms(&w->forms);
    free_forms(&w->spoken);
    free_forms(&w->titles);
    lin_symbols_free(&w->words);
    lin_symbols_free(&w->stems);
    lin_free(w->onward);
    lin_free(w->sets);
    lin_free(w->rules);
    lin_free(w);
}
