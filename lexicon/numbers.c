// numbers.c - spoken numbers as digits, by the rules of a language backwards; see written.h.

#include "lexicon/written_internal.h"

#include <string.h>

#include "base/memory.h"

enum {
    LONGEST = 1024,     // bytes of the words that are looked at
    MOST_FOUND = 12,    // readings of the words at one place
    MOST_STEPS = 50000, // of one call, so that circular rules end
    MOST_RUN = 40,      // digits in a row
    KNOWN = 64          // results that are kept
};

// The words, joined by single blanks.
typedef struct spoken {
    const lin_written *rules;
    const char *text;
    size_t n;
    const char *before;
    int steps;
    struct known *known; // [KNOWN]
} spoken;

/* ---- words to a number ----------------------------------------------------------------------------------------------------- */

// The text up to `end` is this number.
typedef struct found {
    uint64_t value;
    size_t end;
} found;

typedef struct founds {
    found items[MOST_FOUND]; // the longest first
    int n;
} founds;

static void add_found(founds *f, uint64_t value, size_t end)
{
    int at = 0;
    while (at < f->n && f->items[at].end > end) at++;
    for (int i = at; i < f->n && f->items[i].end == end; i++)
        if (f->items[i].value == value) return;
    if (f->n == MOST_FOUND) return;
    memmove(f->items + at + 1, f->items + at, (size_t)(f->n - at) * sizeof *f->items);
    f->items[at] = (found){value, end};
    f->n++;
}

// One pattern of a rule against the text. A number is divisor * quotient + rest; the pattern names these parts, and sets give
// their words. left: 1 the [] of numbers with a rest, 0 the () of numbers without, -1 neither.
typedef struct inversion {
    spoken *x;
    const lin_written_set *own;
    const lin_written_rule *rule;
    const char *end; // of the pattern
    size_t from;
    uint64_t most;
    int left, depth;
    founds *out;
} inversion;

typedef struct parts {
    uint64_t whole, quotient, rest;
    int has_whole, has_quotient, has_rest;
} parts;

static void invert(spoken *x, const lin_written_set *s, size_t at, uint64_t most, int depth, founds *out);

static void end_inversion(const inversion *v, size_t at, const parts *p)
{
    const lin_written_rule *r = v->rule;
    const int is_text = !p->has_quotient && !p->has_rest;
    const uint64_t quotient = p->has_quotient ? p->quotient : r->base / r->divisor;
    const uint64_t value = p->has_whole ? p->whole : is_text ? r->base : quotient * r->divisor + p->rest;
    if (at > v->from && value >= r->base && value <= v->most && (v->left < 0 || (value % r->divisor != 0) == v->left))
        add_found(v->out, value, at);
}

static void match_pattern(const inversion *v, const char *p, size_t at, parts known)
{
    spoken *x = v->x;
    lin_written_piece piece;
    if (++x->steps > MOST_STEPS) return;
    while (lin_written_next(x->rules, &p, v->end, v->own, v->left, &piece)) {
        if (piece.part) {
            founds f = {.n = 0};
            const uint64_t d = v->rule->divisor, most = piece.part == '<' ? v->most / d : piece.part == '>' ? d - 1 : v->most;
            if (piece.set) invert(x, piece.set, at, most, v->depth + 1, &f);
            for (int i = 0; i < f.n; i++) {
                parts more = known;
                const uint64_t value = f.items[i].value;
                if (piece.part == '<') more.quotient = value, more.has_quotient = 1;
                else if (piece.part == '>') more.rest = value, more.has_rest = 1;
                else more.whole = value, more.has_whole = 1;
                match_pattern(v, p, f.items[i].end, more);
            }
            return;
        }
        for (size_t i = 0; i < piece.n; i++) { // a run of blanks is one
            const char c = piece.text[i];
            if (c == '+' || (i && c == ' ' && piece.text[i - 1] == ' ')) continue;
            if (at == x->n || x->text[at++] != c) return;
        }
    }
    end_inversion(v, at, &known);
}

// The numbers up to `most` that a set says as the text begins from `at`. Each rule within a rule has a lower `most`, or another
// set, so that "< hundred" in its own set ends.
static void invert_rules(spoken *x, const lin_written_set *s, size_t at, uint64_t most, int depth, founds *out)
{
    const lin_written_rule *rules = x->rules->rules + s->first;
    for (int i = 0; i < s->n && rules[i].base <= most; i++) {
        inversion v = {.x = x, .own = s, .rule = &rules[i], .from = at, .most = most, .depth = depth, .out = out};
        if (i + 1 < s->n && rules[i + 1].base <= most) v.most = rules[i + 1].base - 1;
        const char *next = rules[i].patterns;
        for (const char *p; (p = lin_written_alternative(&next, &v.end)) != NULL;) {
            const size_t n = (size_t)(v.end - p);
            v.left = memchr(p, '[', n) || memchr(p, '(', n) ? 0 : -1;
            match_pattern(&v, p, at, (parts){0});
            if (v.left == 0) v.left = 1, match_pattern(&v, p, at, (parts){0});
        }
    }
}

// A cache of the results of `invert`, which many rules and lines ask for; a table with one entry for each hash.
struct known {
    const lin_written_set *set;
    size_t at;
    uint64_t most;
    founds founds;
};

static void invert(spoken *x, const lin_written_set *s, size_t at, uint64_t most, int depth, founds *out)
{
    const uint64_t key = (uint64_t)(s - x->rules->sets) * 31 + at * 7 + most % 1009;
    struct known *k = &x->known[key % KNOWN];
    out->n = 0;
    if (depth > LIN_WRITTEN_DEEPEST) return;
    if (k->set != s || k->at != at || k->most != most) {
        invert_rules(x, s, at, most, depth, out);
        *k = (struct known){s, at, most, *out};
    }
    *out = k->founds;
}

// Whether a word ends there.
static int is_end(const spoken *x, size_t at) { return at == x->n || x->text[at] == ' '; }

// Only those that end with a word.
static void find_numbers(spoken *x, const lin_written_set *s, size_t at, uint64_t most, founds *out)
{
    int kept = 0;
    invert(x, s, at, most, 0, out);
    for (int i = 0; i < out->n; i++)
        if (is_end(x, out->items[i].end)) out->items[kept++] = out->items[i];
    out->n = kept;
}

/* ---- what is said ---------------------------------------------------------------------------------------------------------- */

typedef struct captured {
    uint64_t value;
    char digits[MOST_RUN + 1]; // of a run; "": it is a number or a word
    size_t from, n;            // of a word; n 0: it is a number
} captured;

typedef struct matched {
    captured slots[LIN_WRITTEN_SLOTS];
    size_t end;
} matched;

static size_t word_bytes(const spoken *x, size_t at)
{
    size_t n = 0;
    while (!is_end(x, at + n)) n++;
    return n;
}

// Whether a word [n] is one of "one|another" [n_list].
static int is_one_of(const char *list, size_t n_list, const char *word, size_t n)
{
    for (const char *end = list + n_list; list < end;) {
        const char *bar = memchr(list, '|', (size_t)(end - list)), *to = bar ? bar : end;
        if ((size_t)(to - list) == n && memcmp(list, word, n) == 0) return 1;
        list = to + 1;
    }
    return 0;
}

// A number does not end before a word with which it goes on: "two hundred | three hundred".
static int goes_on(const spoken *x, size_t at)
{
    const size_t n = at <= x->n ? word_bytes(x, at) : 0;
    const char *list = x->rules->onward;
    return n && list && is_one_of(list, strlen(list), x->text + at, n);
}

static int match_said(spoken *x, const char *p, size_t at, int slot, matched *m);

// "{digit*3}": the words of three digits or more.
static int match_run(spoken *x, const lin_written_set *s, int least, const char *p, size_t at, int slot, matched *m)
{
    captured *c = &m->slots[slot];
    int n = 0;
    for (founds f; at < x->n && n < MOST_RUN; at = f.items[0].end + 1) {
        find_numbers(x, s, at, 9, &f);
        if (!f.n) break;
        c->digits[n++] = (char)('0' + f.items[0].value);
    }
    c->digits[n] = 0;
    c->n = 0;
    return n >= least && match_said(x, p, at, slot + 1, m);
}

static int match_slot(spoken *x, const char *p, size_t at, int slot, matched *m)
{
    const char *name = p + 1, *close = strchr(p, '}');
    size_t n = 0;
    captured *c = &m->slots[slot];
    while (lin_written_is_name(name[n])) n++;
    c->digits[0] = 0;
    c->n = 0;
    if (memchr(name, '|', (size_t)(close - name))) {
        const size_t k = word_bytes(x, at);
        if (!is_one_of(name, (size_t)(close - name), x->text + at, k)) return 0;
        c->from = at;
        c->n = k;
        return match_said(x, close + 1, at + k + 1, slot + 1, m);
    }
    const lin_written_set *s = lin_written_find(x->rules, name, n);
    if (name[n] == '*') return match_run(x, s, name[n + 1] == '}' ? 1 : name[n + 1] - '0', close + 1, at, slot, m);
    founds f;
    find_numbers(x, s, at, LIN_WRITTEN_LARGEST - 1, &f);
    for (int i = 0; i < f.n; i++) {
        c->value = f.items[i].value;
        if (match_said(x, close + 1, f.items[i].end + 1, slot + 1, m)) return 1;
    }
    return 0;
}

// The rest of what is said, against the text from the word at `at` on; x->n + 1: there is none.
static int match_said(spoken *x, const char *p, size_t at, int slot, matched *m)
{
    while (*p == ' ') p++;
    m->end = at - 1;
    if (!*p) return !goes_on(x, at);
    const size_t n = strcspn(p, " "), k = at <= x->n ? word_bytes(x, at) : 0;
    if (*p == '(') {
        char word[256];
        if (n != 3 || p[1] != '!') return k && is_one_of(p + 1, n - 2, x->text + at, k);
        if (k >= sizeof word) return 1;
        memcpy(word, k ? x->text + at : "", k);
        word[k] = 0;
        return !k || !lin_number_word(x->rules, word);
    }
    if (!k) return 0;
    if (*p == '{') return match_slot(x, p, at, slot, m);
    return is_one_of(p, n, x->text + at, k) && match_said(x, p + n, at + k + 1, slot, m);
}

// "(at|by) ..." needs one of the words before.
static int match_line(spoken *x, const char *said, matched *m)
{
    if (*said == '(') {
        const size_t n = strcspn(said, ")");
        if (!is_one_of(said + 1, n - 1, x->before, strlen(x->before))) return 0;
        said += n + 1;
    }
    return match_said(x, said, 0, 0, m);
}

/* ---- how it is written ----------------------------------------------------------------------------------------------------- */

static void put_digits(lin_buffer *out, const lin_written *w, uint64_t value, int grouped)
{
    if (grouped && w->n_group && value >= 1000) {
        put_digits(out, w, value / 1000, 1);
        lin_buffer_bytes(out, w->group, w->n_group);
        for (uint64_t d = 100; d; d /= 10) lin_buffer_char(out, (char)('0' + value / d % 10));
    } else {
        lin_buffer_integer(out, (long long)value);
    }
}

// The first reading of a number by a set.
static void put_by_set(lin_buffer *out, const lin_written *w, const lin_written_set *s, uint64_t value, int depth)
{
    const lin_written_rule *r = lin_written_choose(w, s, value);
    if (!r || depth > LIN_WRITTEN_DEEPEST || out->n > LONGEST) return;
    const char *next = r->patterns, *end, *p = lin_written_alternative(&next, &end);
    lin_written_piece piece;
    while (lin_written_next(w, &p, end, s, value % r->divisor != 0, &piece)) {
        const uint64_t part = lin_written_part(&piece, r, value);
        if (piece.digits) put_digits(out, w, part, piece.digits == 2);
        else if (piece.part && piece.set) put_by_set(out, w, piece.set, part, depth + 1);
        for (size_t i = 0; !piece.part && i < piece.n; i++)
            if (piece.text[i] != '+') lin_buffer_char(out, piece.text[i]);
    }
}

static void put_line(const spoken *x, const char *written, const matched *m, lin_buffer *out)
{
    for (const char *p = written; *p; p++) {
        if (*p != '{') {
            lin_buffer_char(out, *p);
            continue;
        }
        const captured *c = &m->slots[p[1] - '1'];
        const char *close = strchr(p, '}'), *name = p + 3;
        const size_t n = p[2] == ':' ? (size_t)(close - name) : 0;
        if (*c->digits) lin_buffer_text(out, c->digits);
        else if (c->n) lin_buffer_bytes(out, x->text + c->from, c->n);
        else if (!n || *name == '#') put_digits(out, x->rules, c->value, n == 2);
        else put_by_set(out, x->rules, lin_written_find(x->rules, name, n), c->value, 0);
        p = close;
    }
}

// As many of the words as fit, joined by blanks. Returns the bytes.
static size_t join(const char *const *words, int n, char text[LONGEST])
{
    size_t k = 0;
    for (int i = 0; i < n; i++) {
        const size_t more = strlen(words[i]);
        if (k + more + 2 > LONGEST) break;
        if (i) text[k++] = ' ';
        memcpy(text + k, words[i], more);
        k += more;
    }
    text[k] = 0;
    return k;
}

int lin_number_read(const lin_written *rules, const char *const *words, int n, const char *before, lin_buffer *out, int *keep)
{
    char text[LONGEST];
    *keep = 1;
    if (!rules || n < 1 || !lin_number_word(rules, words[0])) return 0;
    struct known known[KNOWN] = {{0}};
    spoken x = {.rules = rules, .text = text, .n = join(words, n, text), .before = before, .known = known};
    for (int i = 0; i < rules->spoken.n; i++) {
        const lin_written_form *f = &rules->spoken.items[i];
        matched m;
        if (!match_line(&x, f->pattern, &m)) continue;
        int used = 1;
        for (size_t k = 0; k < m.end; k++) used += text[k] == ' ';
        if (strcmp(f->readings, "=") == 0) {
            *keep = used;
            return 0;
        }
        put_line(&x, f->readings, &m, out);
        return used;
    }
    return 0;
}

/* ---- the words of numbers -------------------------------------------------------------------------------------------------- */

// Whether a word is made of pieces: "zwei", "und", "vierzig".
static int is_made(const lin_written *w, const char *word, int *steps)
{
    if (!*word) return 1;
    if (++*steps > MOST_STEPS / 10) return 0;
    for (int i = 0; i < w->stems.n; i++) {
        const size_t n = w->stems.items[i].n;
        if (strncmp(word, lin_symbols_text(&w->stems, i), n) == 0 && is_made(w, word + n, steps)) return 1;
    }
    return 0;
}

int lin_number_word(const lin_written *rules, const char *word)
{
    int steps = 0;
    return rules && *word && (lin_symbols_find(&rules->words, word, strlen(word)) >= 0 || is_made(rules, word, &steps));
}

const char *lin_number_title(const lin_written *rules, const char *word)
{
    for (int i = 0; rules && i < rules->titles.n; i++)
        if (strcmp(rules->titles.items[i].pattern, word) == 0) return rules->titles.items[i].readings;
    return NULL;
}

/* ---- checks when rules are read -------------------------------------------------------------------------------------------- */

// The texts in the rules of a set, and of the sets that these name.
static lin_status add_stems(lin_written *w, const lin_written_set *s, unsigned char *seen, lin_error *err)
{
    if (seen[s - w->sets]) return LIN_OK;
    seen[s - w->sets] = 1;
    for (int i = s->first; i < s->first + s->n; i++) {
        int index;
        lin_written_piece piece;
        const char *p = w->rules[i].patterns, *end = p + strlen(p);
        while (lin_written_next(w, &p, end, s, -1, &piece)) {
            if (piece.part && piece.set) LIN_TRY(add_stems(w, piece.set, seen, err));
            for (size_t at = 0, n; !piece.part && at < piece.n; at += n + 1) {
                for (n = 0; at + n < piece.n && !strchr(" +|=", piece.text[at + n]);) n++;
                if (n) LIN_TRY(lin_symbols_add(&w->stems, piece.text + at, n, &index, err));
            }
        }
    }
    return LIN_OK;
}

// A word of what is said: NULL, or what is wrong. *slots counts.
static const char *check_word(lin_written *w, const char *p, size_t n, int is_last, int *slots, unsigned char *seen,
                              lin_status *status, lin_error *err)
{
    if (*p == '(') return n > 2 && p[n - 1] == ')' && is_last ? NULL : "words in ( ) stand first or last";
    if (*p != '{') {
        if (memchr(p, '{', n) || memchr(p, '}', n)) return "there must be blanks around {...}";
        int index;
        for (size_t k; n; p += k < n ? k + 1 : k, n -= k < n ? k + 1 : k) {
            for (k = 0; k < n && p[k] != '|';) k++;
            if (k && *status == LIN_OK) *status = lin_symbols_add(&w->words, p, k, &index, err);
        }
        return NULL;
    }
    if (p[n - 1] != '}' || n < 3 || memchr(p + 1, '{', n - 1) || memchr(p, '}', n - 1)) return "'}' must end a '{'";
    if (++*slots > LIN_WRITTEN_SLOTS) return "what is said may have at most four {...}";
    if (memchr(p, '|', n)) return check_word(w, p + 1, n - 2, 0, slots, seen, status, err);
    size_t k = 0;
    while (lin_written_is_name(p[1 + k])) k++;
    const lin_written_set *s = lin_written_find(w, p + 1, k);
    if (!s) return "there is no section of this name";
    const size_t rest = n - 2 - k; // "", "*", "*3"
    if (rest > 2 || (rest && p[1 + k] != '*') || (rest == 2 && !(p[2 + k] >= '1' && p[2 + k] <= '9')))
        return "what is said may have {set}, {set*} for digits, {set*3} for at least three digits, and {one|another} for words";
    if (*status == LIN_OK) *status = add_stems(w, s, seen, err);
    return NULL;
}

static const char *check_written(const lin_written *w, const char *p, int slots)
{
    for (; *p; p++) {
        if (*p == '}') return "'}' without '{'";
        if (*p != '{') continue;
        const char *close = strchr(p, '}');
        if (!close || p[1] < '1' || p[1] >= '1' + slots || (p[2] != ':' && p + 2 != close))
            return "what is written may refer to {1}, {1:#,} or {1:set}, where 1 is the first {...} of what is said";
        const size_t n = p[2] == ':' ? (size_t)(close - p) - 3 : 0;
        const int is_digits = (n == 1 || n == 2) && !memcmp(p + 3, "#,", n);
        if (p[2] == ':' && !is_digits && !lin_written_find(w, p + 3, n)) return "there is no section of this name";
        p = close;
    }
    return NULL;
}

static lin_status check_line(lin_written *w, const lin_written_form *f, const char *name, unsigned char *seen, lin_error *err)
{
    const char *p = f->pattern, *wrong = NULL;
    int slots = 0;
    lin_status status = LIN_OK;
    if (*p == '(') {
        const size_t n = strcspn(p, ")");
        if (n < 2 || strncmp(p + n, ") ", 2) != 0) wrong = "words in ( ) stand first or last, with a blank beside them";
        else p += n + 2;
    }
    if (!wrong && (*p == '(' || *p == ' ' || !*p)) wrong = "nothing is said";
    while (*p && !wrong && status == LIN_OK) {
        const size_t n = strcspn(p, " ");
        wrong = check_word(w, p, n, !p[n], &slots, seen, &status, err);
        for (p += n; *p == ' ';) p++;
    }
    if (!wrong && status == LIN_OK) wrong = check_written(w, f->readings, slots);
    if (wrong) return lin_fail(err, LIN_FORMAT, "%s:%d: %s", name, f->line, wrong);
    return status;
}

lin_status lin_numbers_check(lin_written *w, const char *name, lin_error *err)
{
    unsigned char *seen = lin_calloc((size_t)w->n_sets + 1, 1);
    lin_status status = seen ? LIN_OK : lin_no_memory(err, "rules", 0);
    for (int i = 0; i < w->spoken.n && status == LIN_OK; i++) status = check_line(w, &w->spoken.items[i], name, seen, err);
    lin_free(seen);
    return status;
}
