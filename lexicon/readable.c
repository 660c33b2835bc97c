// readable.c - words to text with digits, marks and capitals; see readable.h.

#include "lexicon/readable.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "lexicon/numbers.h"

enum { AHEAD = 3, LONGEST_NUMBER = 32 };

static const char nothing[] = "[...]"; // a word without a spelling
static const double apart_s = 0.3; // between the words of a number there is no longer pause

struct lin_readable_pending {
    size_t text; // in the spellings
    uint64_t id;
    double start_s, end_s;
    int known;
};

// For every mark: it makes up for the weights, which ask for certainty. Of 0, 0.4, 0.8 and 1.2 the best on books for tuning
// (docs/readable.md).
static const float mark_bonus = 0.8F;

// Logarithm of how much likelier a pause is before each mark than before none: comma, full stop, question mark. Set by hand.
static const double pause_least_s[LIN_PAUSES] = {-INFINITY, -INFINITY, 0.06, 0.15, 0.3, 0.6};
static const float pause_scores[LIN_PAUSES][LIN_MARKS] = {
    {0, 0, 0, 0},          {0, -1.0F, -2.0F, -2.0F}, {0, 0, -0.5F, -0.5F},
    {0, 1.0F, 1.0F, 1.0F}, {0, 2.0F, 2.5F, 2.5F},    {0, 2.0F, 3.5F, 3.5F},
};

int lin_readable_pause(double seconds)
{
    int class = LIN_PAUSES - 1;
    if (isnan(seconds)) return 0;
    while (class > 1 && seconds < pause_least_s[class]) class--;
    return class;
}

void lin_readable_begin(lin_readable *r, const lin_punctuation *model)
{
    *r = (lin_readable){.model = model, .mark = LIN_MARK_STOP};
}

static const char *spelling(const lin_readable *r, int i) { return r->spellings.data + r->words[i].text; }

static double pause_before(const lin_readable *r, int i)
{
    return i > 0 && i < r->n_words ? r->words[i].start_s - r->words[i - 1].end_s : NAN;
}

/* ---- one token ------------------------------------------------------------------------------------------------------------- */

// The mark in the gap before word `next`, which is the end if there is no such word.
static int choose_mark(lin_readable *r, int next)
{
    float scores[LIN_MARKS];
    int best = LIN_MARK_NONE;
    for (int k = 0; k < 3; k++) r->gap.after[k] = next + k < r->n_words ? r->words[next + k].id : 0;
    lin_punctuation_marks(r->model, &r->gap, scores);
    if (next == r->n_words) return scores[LIN_MARK_QUESTION] > scores[LIN_MARK_STOP] ? LIN_MARK_QUESTION : LIN_MARK_STOP;
    const float *pause = pause_scores[lin_readable_pause(pause_before(r, next))];
    for (int m = 1; m < LIN_MARKS; m++) {
        scores[m] += pause[m] + mark_bonus;
        if (scores[m] > scores[best]) best = m;
    }
    return best;
}

static int is_i(const char *word) { return word[0] == 'i' && (word[1] == '\0' || word[1] == '\''); }

static int begins(const lin_readable *r) { return r->mark == LIN_MARK_STOP || r->mark == LIN_MARK_QUESTION; }

static int is_capital(const lin_readable *r, int i, uint64_t before, int capital)
{
    const uint64_t after = i + 1 < r->n_words ? r->words[i + 1].id : 0;
    if (!r->words[i].known) return 0;
    return is_i(spelling(r, i)) || lin_punctuation_capital(r->model, before, capital, r->words[i].id, after) > 0;
}

// "mister" before a name.
static const char *title(const lin_readable *r, int i, int mark)
{
    if (r->words_only || mark != LIN_MARK_NONE || i + 1 >= r->n_words || !is_capital(r, i + 1, r->words[i].id, 1)) return NULL;
    return lin_number_title(lin_punctuation_numbers(r->model), spelling(r, i));
}

static void put_capital(lin_buffer *out, const char *word)
{
    const char c = *word;
    if (!c) return;
    lin_buffer_char(out, c >= 'a' && c <= 'z' ? (char)(c - 32) : c);
    lin_buffer_text(out, word + 1);
}

// Words first .. first + n-1 as one token; digits: what they are written as, or NULL for one word.
static lin_status put_token(lin_readable *r, int first, int n, const char *digits, lin_error *err)
{
    static const char *const marks[LIN_MARKS] = {"", ",", ".", "?"};
    lin_status status = lin_grow_int(&r->tokens, &r->capacity, (int64_t)r->n + 1, sizeof *r->tokens, "text", err);
    if (status != LIN_OK) return status;
    const int inside = !begins(r), capital = !digits && is_capital(r, first, r->gap.before[0], r->capital);
    int mark = r->mark;
    for (int i = first; i < first + n; i++) {
        lin_gap_move(&r->gap, mark, r->words[i].id);
        mark = LIN_MARK_NONE;
    }
    mark = choose_mark(r, first + n);
    const char *word = digits ? digits : spelling(r, first), *full = digits ? NULL : title(r, first, mark);
    r->tokens[r->n++] = (lin_readable_token){r->text.n, r->words[first].start_s, r->words[first + n - 1].end_s};
    if (full) lin_buffer_text(&r->text, full);
    else if (!digits && (capital || !inside)) put_capital(&r->text, word);
    else lin_buffer_text(&r->text, word);
    lin_buffer_text(&r->text, marks[mark]);
    lin_buffer_char(&r->text, '\0');
    r->mark = mark;
    r->capital = capital && inside;
    return lin_buffer_status(&r->text, err);
}

/* ---- what waits ------------------------------------------------------------------------------------------------------------ */

// Where the words end that could be a number from word i on.
static int number_end(const lin_readable *r, int i)
{
    const lin_written *rules = lin_punctuation_numbers(r->model);
    int end = i;
    while (end < r->n_words && end < i + LONGEST_NUMBER && r->words[end].known && lin_number_word(rules, spelling(r, end)) &&
           (end == i || !(pause_before(r, end) >= apart_s)))
        end++;
    return end;
}

// The words of the number at word i, with its digits in r->digits; 0: none, and then *keep words stay as they are.
static int read_number(lin_readable *r, int i, int end, int *keep)
{
    const char *words[LONGEST_NUMBER + 1];
    int n = 0;
    for (; i + n < end; n++) words[n] = spelling(r, i + n);
    if (end < r->n_words && !(pause_before(r, end) >= apart_s)) words[n++] = spelling(r, end);
    lin_buffer_clear(&r->digits);
    const int used = lin_number_read(lin_punctuation_numbers(r->model), words, n, r->before, &r->digits, keep);
    if (used > end - i || *keep > end - i) *keep = 1;
    return used > end - i ? 0 : used;
}

// Drops the first n words that wait.
static void drop(lin_readable *r, int n)
{
    if (n == 0) return;
    const size_t bytes = n < r->n_words ? r->words[n].text : r->spellings.n;
    r->n_words -= n;
    memmove(r->words, r->words + n, (size_t)r->n_words * sizeof *r->words);
    memmove(r->spellings.data, r->spellings.data + bytes, r->spellings.n - bytes);
    r->spellings.n -= bytes;
    for (int i = 0; i < r->n_words; i++) r->words[i].text -= bytes;
}

// The words that are certain become tokens.
static lin_status settle(lin_readable *r, int is_end, lin_error *err)
{
    int i = 0;
    lin_status status = LIN_OK;
    while (i < r->n_words && status == LIN_OK) {
        const int numbers = !r->words_only && r->keep == 0 ? number_end(r, i) : i;
        const int end = numbers > i ? numbers : i + 1;
        if (!is_end && r->n_words < end + AHEAD) break;
        int used = 0;
        if (numbers > i) used = read_number(r, i, end, &r->keep);
        if (r->digits.failed) return lin_buffer_status(&r->digits, err);
        status = put_token(r, i, used ? used : 1, used ? r->digits.data : NULL, err);
        i += used ? used : 1;
        if (used) r->keep = 0;
        else if (r->keep) r->keep--;
        snprintf(r->before, sizeof r->before, "%s", spelling(r, i - 1));
    }
    if (status == LIN_OK) drop(r, i);
    return status;
}

lin_status lin_readable_push(lin_readable *r, const char *word, double start_s, double end_s, int known, lin_error *err)
{
    const double pause = start_s - r->end_s;
    lin_status status = LIN_OK;
    if (r->paragraph_s > 0 && pause > r->paragraph_s) status = lin_readable_finish(r, err);
    if (status != LIN_OK) return status;
    r->end_s = end_s;
    if (!*word && r->n_words && !strcmp(spelling(r, r->n_words - 1), nothing) && !(pause >= apart_s)) {
        r->words[r->n_words - 1].end_s = end_s;
        return LIN_OK;
    }
    if (!*word) word = nothing;
    status = lin_grow_int(&r->words, &r->words_capacity, (int64_t)r->n_words + 1, sizeof *r->words, "text", err);
    if (status != LIN_OK) return status;
    const size_t at = r->spellings.n;
    lin_buffer_text(&r->spellings, word);
    lin_buffer_char(&r->spellings, '\0');
    status = lin_buffer_status(&r->spellings, err);
    if (status != LIN_OK) return status;
    r->words[r->n_words++] = (lin_readable_pending){at, lin_punctuation_word(word), start_s, end_s, known};
    return settle(r, 0, err);
}

lin_status lin_readable_finish(lin_readable *r, lin_error *err)
{
    lin_status status = settle(r, 1, err);
    r->gap = (lin_gap){0};
    r->mark = LIN_MARK_STOP;
    r->capital = r->keep = 0;
    r->before[0] = '\0';
    return status;
}

void lin_readable_clear(lin_readable *r)
{
    r->n = 0;
    lin_buffer_clear(&r->text);
}

const char *lin_readable_token_text(const lin_readable *r, int i) { return r->text.data + r->tokens[i].text; }

void lin_readable_free(lin_readable *r)
{
    lin_buffer_free(&r->text);
    lin_buffer_free(&r->spellings);
    lin_buffer_free(&r->digits);
    lin_free(r->tokens);
    lin_free(r->words);
    *r = (lin_readable){0};
}
