// numbers.c - spoken English numbers as digits; see numbers.h.

#include "lexicon/numbers.h"

#include <string.h>

/* ---- words ----------------------------------------------------------------------------------------------------------------- */

typedef enum kind { OTHER, UNIT, TEEN, TENS, HUNDRED, SCALE, UNIT_TH, TEEN_TH, TENS_TH, HUNDRED_TH, SCALE_TH, DECADE, OH, A, LINK,
                    MEASURE } kind;

typedef struct entry {
    const char *word;
    kind kind;
    long long value;
} entry;

// "ten" is a teen here: it is followed by no unit.
static const entry entries[] = {
    {"zero", UNIT, 0}, {"one", UNIT, 1}, {"two", UNIT, 2}, {"three", UNIT, 3}, {"four", UNIT, 4}, {"five", UNIT, 5},
    {"six", UNIT, 6}, {"seven", UNIT, 7}, {"eight", UNIT, 8}, {"nine", UNIT, 9},
    {"ten", TEEN, 10}, {"eleven", TEEN, 11}, {"twelve", TEEN, 12}, {"thirteen", TEEN, 13}, {"fourteen", TEEN, 14},
    {"fifteen", TEEN, 15}, {"sixteen", TEEN, 16}, {"seventeen", TEEN, 17}, {"eighteen", TEEN, 18}, {"nineteen", TEEN, 19},
    {"twenty", TENS, 20}, {"thirty", TENS, 30}, {"forty", TENS, 40}, {"fifty", TENS, 50}, {"sixty", TENS, 60},
    {"seventy", TENS, 70}, {"eighty", TENS, 80}, {"ninety", TENS, 90},
    {"hundred", HUNDRED, 100}, {"thousand", SCALE, 1000}, {"million", SCALE, 1000000}, {"billion", SCALE, 1000000000},
    {"trillion", SCALE, 1000000000000},
    {"first", UNIT_TH, 1}, {"second", UNIT_TH, 2}, {"third", UNIT_TH, 3}, {"fourth", UNIT_TH, 4}, {"fifth", UNIT_TH, 5},
    {"sixth", UNIT_TH, 6}, {"seventh", UNIT_TH, 7}, {"eighth", UNIT_TH, 8}, {"ninth", UNIT_TH, 9},
    {"tenth", TEEN_TH, 10}, {"eleventh", TEEN_TH, 11}, {"twelfth", TEEN_TH, 12}, {"thirteenth", TEEN_TH, 13},
    {"fourteenth", TEEN_TH, 14}, {"fifteenth", TEEN_TH, 15}, {"sixteenth", TEEN_TH, 16}, {"seventeenth", TEEN_TH, 17},
    {"eighteenth", TEEN_TH, 18}, {"nineteenth", TEEN_TH, 19},
    {"twentieth", TENS_TH, 20}, {"thirtieth", TENS_TH, 30}, {"fortieth", TENS_TH, 40}, {"fiftieth", TENS_TH, 50},
    {"sixtieth", TENS_TH, 60}, {"seventieth", TENS_TH, 70}, {"eightieth", TENS_TH, 80}, {"ninetieth", TENS_TH, 90},
    {"hundredth", HUNDRED_TH, 100}, {"thousandth", SCALE_TH, 1000}, {"millionth", SCALE_TH, 1000000},
    {"twenties", DECADE, 20}, {"thirties", DECADE, 30}, {"forties", DECADE, 40}, {"fifties", DECADE, 50}, {"sixties", DECADE, 60},
    {"seventies", DECADE, 70}, {"eighties", DECADE, 80}, {"nineties", DECADE, 90}, {"hundreds", DECADE, 0},
    {"oh", OH, 0}, {"a", A, 1}, {"and", LINK, 0}, {"point", LINK, 0},
    {"percent", MEASURE, 0}, {"per", MEASURE, 0}, {"cent", MEASURE, 0}, {"cents", MEASURE, 0}, {"dollar", MEASURE, 0},
    {"dollars", MEASURE, 0}, {"pound", MEASURE, 0}, {"pounds", MEASURE, 0}, {"pence", MEASURE, 0}, {"penny", MEASURE, 0},
    {"euro", MEASURE, 0}, {"euros", MEASURE, 0}, {"am", MEASURE, 0}, {"pm", MEASURE, 0}, {"a.m.", MEASURE, 0},
    {"p.m.", MEASURE, 0},
    {"a.", MEASURE, 0}, {"p.", MEASURE, 0}, {"m.", MEASURE, 0}, {"p", MEASURE, 0}, {"m", MEASURE, 0},
};

static const entry *find(const char *word)
{
    static const entry none = {"", OTHER, 0};
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        if (strcmp(word, entries[i].word) == 0) return &entries[i];
    }
    return &none;
}

int lin_number_word(const char *word) { return find(word)->kind != OTHER; }

typedef struct reading {
    const char *const *words;
    int n;
} reading;

static const entry *at(const reading *r, int i)
{
    return find(i < r->n ? r->words[i] : "");
}

static kind kind_at(const reading *r, int i) { return at(r, i)->kind; }
static int is_at(const reading *r, int i, const char *word) { return i < r->n && strcmp(r->words[i], word) == 0; }

/* ---- cardinals and ordinals ------------------------------------------------------------------------------------------------ */

typedef struct number {
    long long value;
    int n;       // words
    int ordinal; // the last of them is one
    int year;    // written without a comma
} number;


// 1 to 99; `last` allows an ordinal.
static number read_small(const reading *r, int i)
{
    const entry *first = at(r, i), *next = at(r, i + 1);
    switch (first->kind) {
    case UNIT: return (number){.value = first->value, .n = first->value > 0};
    case TEEN: return (number){.value = first->value, .n = 1};
    case UNIT_TH:
    case TEEN_TH:
    case TENS_TH: return (number){.value = first->value, .n = 1, .ordinal = 1};
    case TENS:
        if ((next->kind == UNIT && next->value) || next->kind == UNIT_TH)
            return (number){.value = first->value + next->value, .n = 2, .ordinal = next->kind == UNIT_TH};
        return (number){.value = first->value, .n = 1};
    default: return (number){0};
    }
}

// "and" is a part of a number only before its last two digits.
static int skip_and(const reading *r, int i) { return is_at(r, i, "and") && read_small(r, i + 1).n ? i + 1 : i; }

// 1 to 999, and hundreds of a year: "nineteen hundred and five".
static number read_hundreds(const reading *r, int i)
{
    number x = read_small(r, i);
    if (x.n == 0 && kind_at(r, i) == A && kind_at(r, i + 1) == HUNDRED) x = (number){.value = 1, .n = 1};
    if (x.n == 0 || x.ordinal || x.value > 99) return x;
    const kind k = kind_at(r, i + x.n);
    if ((k != HUNDRED && k != HUNDRED_TH) || (x.value > 9 && (x.value < 11 || x.value > 19))) return x;
    x.year = x.value > 9;
    x.value *= 100;
    x.n++;
    x.ordinal = k == HUNDRED_TH;
    if (x.ordinal) return x;
    const int rest = skip_and(r, i + x.n);
    const number small = read_small(r, rest);
    // "two hundred three hundred"
    if (small.n == 0 || (x.year && small.ordinal) || kind_at(r, rest + small.n) == HUNDRED) return x;
    return (number){.value = x.value + small.value, .n = rest + small.n - i, .ordinal = small.ordinal, .year = x.year};
}

// Any cardinal or ordinal from 1 on.
static number read_number(const reading *r, int i)
{
    number all = {0};
    long long scale = 1000000000000000;
    int begin = i;
    for (;;) {
        number part = read_hundreds(r, begin);
        if (part.n == 0 && begin == i && kind_at(r, i) == A && at(r, i + 1)->kind == SCALE) part = (number){.value = 1, .n = 1};
        if (part.n == 0) return all;
        const entry *unit = at(r, begin + part.n);
        const int scaled = !part.ordinal && !part.year && (unit->kind == SCALE || unit->kind == SCALE_TH) && unit->value < scale;
        if (!scaled && all.n && (scale < 1000 || part.year)) return all; // what follows is another number
        if (!scaled) {
            // "two thousand and five" is a year
            const int year = part.year || (all.value == 2000 && part.value < 100 && !part.ordinal);
            return (number){all.value + part.value, begin + part.n - i, part.ordinal, year};
        }
        all.value += part.value * unit->value;
        all.n = begin + part.n + 1 - i;
        all.ordinal = unit->kind == SCALE_TH;
        if (all.ordinal) return all;
        scale = unit->value;
        begin = skip_and(r, i + all.n);
    }
}

/* ---- years, times, digits -------------------------------------------------------------------------------------------------- */

// Two digits behind a century or an hour: "oh five", "fifteen", "eighty four".
static number read_pair(const reading *r, int i)
{
    if (kind_at(r, i) == OH && kind_at(r, i + 1) == UNIT && at(r, i + 1)->value)
        return (number){.value = at(r, i + 1)->value, .n = 2};
    const number x = read_small(r, i);
    return x.value >= 10 && !x.ordinal ? x : (number){0};
}

// "nineteen eighty four", "twenty twenty"
static number read_year(const reading *r, int i)
{
    const entry *century = at(r, i);
    if (century->value < 10 || century->value > 20 || (century->kind != TEEN && century->kind != TENS)) return (number){0};
    const number pair = read_pair(r, i + 1);
    const kind after = kind_at(r, i + 1 + pair.n);
    if (!pair.n || after == HUNDRED || after == SCALE) return (number){0};
    return (number){.value = century->value * 100 + pair.value, .n = 1 + pair.n, .year = 1};
}

// "nineteen eighties": 1980s. Its words, or 0.
static int read_decade(const reading *r, int i, lin_buffer *out)
{
    const entry *century = at(r, i), *decade = at(r, i + 1);
    if (century->value < 10 || century->value > 20 || (century->kind != TEEN && century->kind != TENS) || decade->kind != DECADE)
        return 0;
    lin_buffer_integer(out, century->value * 100 + decade->value);
    lin_buffer_char(out, 's');
    return 2;
}

// Words of "am", "a.m.", "a. m.", "p m"; their letter in *half.
static int read_half_day(const reading *r, int i, char *half)
{
    static const char *const whole[] = {"am", "pm", "a.m.", "p.m."}, *const first[] = {"a", "p", "a.", "p."};
    for (int k = 0; k < 4; k++) {
        *half = k % 2 ? 'p' : 'a';
        if (is_at(r, i, whole[k])) return 1;
        if (is_at(r, i, first[k]) && (is_at(r, i + 1, "m") || is_at(r, i + 1, "m."))) return 2;
    }
    return 0;
}

static void put_time(lin_buffer *out, long long hour, long long minute)
{
    lin_buffer_integer(out, hour);
    lin_buffer_char(out, ':');
    lin_buffer_char(out, (char)('0' + minute / 10));
    lin_buffer_char(out, (char)('0' + minute % 10));
}

static int is_hour_before(const char *word)
{
    static const char *const words[] = {"at", "by", "until", "till", "from", "around", "about", "since", "before", "after", NULL};
    for (int i = 0; words[i]; i++)
        if (strcmp(word, words[i]) == 0) return 1;
    return 0;
}

// "ten thirty am", "five pm", "ten thirty", "at five thirty". *keep: words that stay as they are.
static int read_time(const reading *r, const char *before, lin_buffer *out, int *keep)
{
    const entry *hour = at(r, 0);
    char half;
    if ((hour->kind != UNIT && hour->kind != TEEN) || hour->value < 1 || hour->value > 12) return 0;
    const number minute = read_pair(r, 1);
    const int end = 1 + minute.n, suffix = read_half_day(r, end, &half);
    const kind after = kind_at(r, end);
    if (minute.value > 59 || (!minute.n && !suffix)) return 0;
    if (after == HUNDRED || after == SCALE) return 0;
    if (!suffix && hour->value < 10 && !is_hour_before(before)) {
        *keep = end;
        return 0;
    }
    if (minute.n) put_time(out, hour->value, minute.value);
    else lin_buffer_integer(out, hour->value);
    if (suffix) lin_buffer_text(out, half == 'a' ? " am" : " pm");
    return end + suffix;
}

// Three digits or more, one word each: a number of a telephone.
static int read_digits(const reading *r, lin_buffer *out)
{
    int n = 0;
    while (kind_at(r, n) == UNIT || (n && kind_at(r, n) == OH)) n++;
    const kind after = kind_at(r, n);
    if (n < 3 || after == HUNDRED || after == SCALE || after == TENS || after == TEEN) return 0;
    for (int i = 0; i < n; i++) lin_buffer_integer(out, at(r, i)->value);
    return n;
}

/* ---- numbers with what follows --------------------------------------------------------------------------------------------- */

static void put_grouped(lin_buffer *out, long long value)
{
    if (value >= 1000) {
        put_grouped(out, value / 1000);
        lin_buffer_char(out, ',');
        for (long long d = 100; d; d /= 10) lin_buffer_char(out, (char)('0' + value / d % 10));
    } else {
        lin_buffer_integer(out, value);
    }
}

static const char *ending(long long value)
{
    const long long tens = value / 10 % 10, unit = value % 10;
    return tens == 1 || unit == 0 || unit > 3 ? "th" : unit == 1 ? "st" : unit == 2 ? "nd" : "rd";
}

// "5 million" is easier to read than 5,000,000.
static void put_cardinal(lin_buffer *out, const number *x)
{
    static const entry scales[] = {{"trillion", SCALE, 1000000000000}, {"billion", SCALE, 1000000000},
                                   {"million", SCALE, 1000000}};
    for (int i = 0; i < 3; i++) {
        if (x->value < scales[i].value || x->value % scales[i].value) continue;
        put_grouped(out, x->value / scales[i].value);
        lin_buffer_char(out, ' ');
        lin_buffer_text(out, scales[i].word);
        return;
    }
    if (x->year) lin_buffer_integer(out, x->value);
    else put_grouped(out, x->value);
}

// "three point one four": the words behind the number, or 0; its digits, and a scale.
static int read_fraction(const reading *r, int i, lin_buffer *out)
{
    int n = 1;
    if (!is_at(r, i, "point")) return 0;
    while (kind_at(r, i + n) == UNIT || kind_at(r, i + n) == OH) n++;
    if (n == 1) return 0;
    lin_buffer_char(out, '.');
    for (int k = 1; k < n; k++) lin_buffer_integer(out, at(r, i + k)->value);
    if (kind_at(r, i + n) != SCALE) return n;
    lin_buffer_char(out, ' ');
    lin_buffer_text(out, at(r, i + n)->word);
    return n + 1;
}

typedef struct currency {
    const char *one, *many, *sign, *cent, *cents;
} currency;

static const currency currencies[] = {{"dollar", "dollars", "$", "cent", "cents"},
                                      {"pound", "pounds", "\xC2\xA3", "penny", "pence"},
                                      {"euro", "euros", "\xE2\x82\xAC", "cent", "cents"}};

// "[and] fifty cents" or "fifty" behind dollars. Its words, or 0.
static int read_cents(const reading *r, int i, const currency *c, lin_buffer *out)
{
    const int link = is_at(r, i, "and");
    const number x = read_small(r, i + link);
    const int end = i + link + x.n, named = is_at(r, end, c->cent) || is_at(r, end, c->cents);
    if (!x.n || x.ordinal || (!named && (link || x.value < 10 || kind_at(r, end) != OTHER))) return 0;
    lin_buffer_char(out, '.');
    lin_buffer_char(out, (char)('0' + x.value / 10));
    lin_buffer_char(out, (char)('0' + x.value % 10));
    return end + named - i;
}

// Unit behind a number that is in `digits`. Appends both and returns the words of the unit; 0: there is none.
static int read_unit(const reading *r, int i, const lin_buffer *digits, int cents, lin_buffer *out)
{
    if (is_at(r, i, "percent") || (is_at(r, i, "per") && is_at(r, i + 1, "cent"))) {
        lin_buffer_text(out, digits->data);
        lin_buffer_char(out, '%');
        return is_at(r, i, "per") ? 2 : 1;
    }
    for (size_t k = 0; k < sizeof currencies / sizeof *currencies; k++) {
        const currency *c = &currencies[k];
        if ((!is_at(r, i, c->one) && !is_at(r, i, c->many)) || is_at(r, i + 1, "of")) continue; // pounds of flour
        lin_buffer_text(out, c->sign);
        lin_buffer_text(out, digits->data);
        return 1 + (cents ? read_cents(r, i + 1, c, out) : 0);
    }
    if (is_at(r, i, "cents") || is_at(r, i, "pence")) {
        lin_buffer_text(out, digits->data);
        lin_buffer_char(out, ' ');
        lin_buffer_text(out, r->words[i]);
        return 1;
    }
    return 0;
}

static int read_plain(const reading *r, lin_buffer *digits, lin_buffer *out, int *keep)
{
    number x = read_year(r, 0);
    if (!x.n) x = read_number(r, 0);
    const int zero = kind_at(r, 0) == UNIT && at(r, 0)->value == 0;
    if (!x.n && !zero) return 0;
    if (zero) x = (number){.n = 1};
    if (kind_at(r, 0) == A && x.n < 3) return 0; // "a hundred"
    *keep = x.n;
    if (x.ordinal) {
        if (x.value < 10) return 0;
        put_grouped(out, x.value);
        lin_buffer_text(out, ending(x.value));
        return x.n;
    }
    lin_buffer_clear(digits);
    put_cardinal(digits, &x);
    const int fraction = x.year && x.value >= 1000 ? 0 : read_fraction(r, x.n, digits);
    const int round = x.value >= 1000000 && x.value % 1000000 == 0;
    if (digits->failed) return 0;
    const int unit = read_unit(r, x.n + fraction, digits, !fraction && !round, out);
    if (unit) return x.n + fraction + unit;
    if (!fraction && x.value < 10) return 0;
    // A fraction such as "ten thirds" does not begin here; one ordinal behind a cardinal is not a number of its own.
    lin_buffer_text(out, digits->data);
    return x.n + fraction;
}

int lin_number_read(const char *const *words, int n, const char *before, lin_buffer *out, int *keep)
{
    const reading r = {words, n};
    lin_buffer digits = {0};
    *keep = 1;
    if (n < 1 || kind_at(&r, 0) == OTHER) return 0;
    int used = read_digits(&r, out);
    if (!used) used = read_decade(&r, 0, out);
    if (!used) used = read_time(&r, before, out, keep);
    if (!used && *keep == 1) used = read_plain(&r, &digits, out, keep);
    if (digits.failed) out->failed = digits.failed;
    lin_buffer_free(&digits);
    return used;
}
