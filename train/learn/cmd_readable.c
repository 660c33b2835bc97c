// cmd_readable.c - linnet readable: writes plain words as readable text, learns the model for that, and scores it.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/common.h"
#include "app/inputs.h"
#include "app/shared_options.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "base/unicode.h"
#include "train/learn/punctuation_learn.h"
#include "lexicon/readable.h"
#include "linnet/wording.h"

typedef struct readable_values {
    const char *output, *model, *ctm;
    int ids, slots, quiet;
    const char *language;
} readable_values;

static const lin_option options[] = {
    {.name = "output", .letter = 'o', .type = LIN_OPTION_FILE, .writes = 1, .at = offsetof(readable_values, output),
     .help = "Output file; if not given, standard output. learn: the model to write"},
    {.name = "model", .letter = 'm', .type = LIN_OPTION_FILE, .at = offsetof(readable_values, model),
     .help = "write, score: the model; if not given, $LINNET_PUNCTUATION, else the one installed with the program"},
    LIN_LANGUAGE_ROW(readable_values, language),
    {.name = "ids", .type = LIN_OPTION_FLAG, .at = offsetof(readable_values, ids),
     .help = "write, score: every line is an utterance and begins with its name"},
    {.name = "ctm", .type = LIN_OPTION_FILE, .at = offsetof(readable_values, ctm), .value = "CTM",
     .help = "score, with --ids: times of the words, as linnet align -f ctm writes them. Marks then also depend on the pauses, "
             "and the pauses are counted"},
    {.name = "slots", .type = LIN_OPTION_INT, .at = offsetof(readable_values, slots), .text = "300000", .min = 1000,
     .max = 4000000, .help = "learn: slots for features of marks and of capitals; each takes 5 bytes of the file"},
    LIN_QUIET_ROW(offsetof(readable_values, quiet), "learn: print no summary"),
    {.type = LIN_OPTION_END},
};

static lin_status open_for(const lin_phones *phones, const char *given, lin_punctuation **p, lin_error *err)
{
    char path[4096];
    LIN_TRY(lin_find_punctuation(phones, given, path, sizeof path, err));
    if (!*path)
        return lin_fail(err, LIN_IO, "no punctuation model is installed; name one with --model or LINNET_PUNCTUATION");
    LIN_TRY(lin_punctuation_open(path, p, err));
    return lin_find_open_numbers(phones, NULL, NULL, &(*p)->numbers, err);
}

static lin_status open_model(const readable_values *v, lin_punctuation **p, lin_error *err)
{
    lin_phones *phones;
    *p = NULL;
    LIN_TRY(lin_wording_chosen_phones(&phones, err));
    const lin_status status = open_for(phones, v->model, p, err);
    lin_phones_destroy(phones);
    return status;
}

/* ---- write ----------------------------------------------------------------------------------------------------------------- */

static lin_status write_line(lin_readable *r, const lin_lines *line, int ids, lin_buffer *out, lin_error *err)
{
    const char *at = line->text, *end = line->text + line->n, *field;
    lin_buffer word = {0};
    lin_status status = LIN_OK;
    size_t n;
    int blank = 0;
    if (ids && lin_field_next(&at, end, &field, &n)) lin_buffer_bytes(out, field, n), blank = 1;
    while (status == LIN_OK && lin_field_next(&at, end, &field, &n)) {
        lin_buffer_clear(&word);
        lin_buffer_bytes(&word, field, n);
        status = lin_buffer_status(&word, err);
        if (status != LIN_OK) break;
        word.data[lin_unicode_lower_text(word.data, word.data, n)] = '\0';
        status = lin_readable_push(r, word.data, NAN, NAN, 1, err);
    }
    if (status == LIN_OK) status = lin_readable_finish(r, err);
    for (int i = 0; i < r->n && status == LIN_OK; i++) {
        if (i || blank) lin_buffer_char(out, ' ');
        lin_buffer_text(out, lin_readable_token_text(r, i));
    }
    lin_readable_clear(r);
    lin_buffer_char(out, '\n');
    lin_buffer_free(&word);
    return status;
}

static lin_status write_text(const readable_values *v, const char *text, size_t n, lin_error *err)
{
    lin_punctuation *p;
    lin_readable r;
    lin_lines lines;
    lin_buffer out = {0};
    lin_status status = open_model(v, &p, err);
    lin_readable_begin(&r, p);
    lin_lines_begin(&lines, text, n);
    while (status == LIN_OK && lin_lines_next(&lines)) status = write_line(&r, &lines, v->ids, &out, err);
    if (status == LIN_OK) status = lin_buffer_status(&out, err);
    if (status == LIN_OK) status = lin_output_write(v->output, 0, &out, err);
    lin_buffer_free(&out);
    lin_readable_free(&r);
    lin_punctuation_destroy(p);
    return status;
}

/* ---- learn ----------------------------------------------------------------------------------------------------------------- */

static lin_status learn(const readable_values *v, const char *text, size_t n, lin_error *err)
{
    lin_punctuation_learn_options how = {
        .mark_slots = v->slots, .capital_slots = (int)((int64_t)v->slots * 131072 / 300000), .bits = 8};
    lin_punctuation_learn_report report;
    lin_punctuation *p;
    const double begun = lin_now();
    while ((INT64_C(2) << how.bits) <= (int64_t)how.capital_slots * 256) how.bits++;
    lin_status status = lin_punctuation_learn(text, n, &how, &p, &report, err);
    if (status == LIN_OK) status = lin_punctuation_write(p, v->output, err);
    lin_punctuation_destroy(p);
    if (status == LIN_OK && !v->quiet) {
        lin_complain("%lld paragraphs, %lld words, %lld full stops, %lld commas, %lld question marks, %lld capitals inside "
                     "sentences; %.1f s",
                     (long long)report.paragraphs, (long long)report.words, (long long)report.marks[LIN_MARK_STOP],
                     (long long)report.marks[LIN_MARK_COMMA], (long long)report.marks[LIN_MARK_QUESTION],
                     (long long)report.capitals, lin_now() - begun);
    }
    return status;
}

/* ---- score ----------------------------------------------------------------------------------------------------------------- */

enum { CAPITAL = LIN_MARKS, SCORES };

typedef struct scoring {
    lin_readable readable;
    lin_prose prose;
    int64_t right[SCORES], written[SCORES], wanted[SCORES], words;
    int64_t pauses[LIN_PAUSES][LIN_MARKS];
    lin_lines ctm;
    const char *times; // the whole CTM; NULL: none
    size_t n_times;
    int64_t without; // utterances that the CTM lacks
} scoring;

static void score_one(scoring *s, int what, int wanted, int written)
{
    s->wanted[what] += wanted;
    s->written[what] += written;
    s->right[what] += wanted && written;
}

static void compare(scoring *s)
{
    int begins = 1;
    s->words += s->prose.n;
    for (int i = 0; i < s->prose.n; i++) {
        const lin_prose_word *w = &s->prose.words[i];
        const char *text = lin_readable_token_text(&s->readable, i), last = text[strlen(text) - 1];
        const int mark = last == ',' ? LIN_MARK_COMMA : last == '.' ? LIN_MARK_STOP : last == '?' ? LIN_MARK_QUESTION
                         : LIN_MARK_NONE;
        for (int m = 1; m < LIN_MARKS; m++) score_one(s, m, w->mark == m, mark == m);
        if (!w->quoted) score_one(s, CAPITAL, w->capital || begins, *text >= 'A' && *text <= 'Z');
        begins = w->mark == LIN_MARK_STOP || w->mark == LIN_MARK_QUESTION;
    }
}

typedef struct ctm_word {
    const char *id, *word;
    size_t n_id, n_word;
    double start_s, end_s;
} ctm_word;

static int read_ctm_line(const lin_lines *line, ctm_word *w)
{
    const char *at = line->text, *end = line->text + line->n, *field;
    size_t n;
    double length;
    if (!lin_field_next(&at, end, &w->id, &w->n_id) || !lin_field_next(&at, end, &field, &n)) return 0;
    if (!lin_field_next(&at, end, &field, &n) || !lin_text_number(field, n, &w->start_s)) return 0;
    if (!lin_field_next(&at, end, &field, &n) || !lin_text_number(field, n, &length)) return 0;
    w->end_s = w->start_s + length;
    return lin_field_next(&at, end, &w->word, &w->n_word);
}

// Moves the CTM to the first line of an utterance, searching from its position, then from its beginning.
static int find_utterance(scoring *s, const char *id, size_t n, ctm_word *w)
{
    for (int twice = 0; twice < 2; twice++) {
        while (lin_lines_next(&s->ctm))
            if (read_ctm_line(&s->ctm, w) && w->n_id == n && memcmp(w->id, id, n) == 0) return 1;
        lin_lines_begin(&s->ctm, s->times, s->n_times);
    }
    return 0;
}

// Pushes the words of the text with their times from the CTM, which must have the same words.
static lin_status push_timed(scoring *s, const char *id, size_t n, lin_error *err)
{
    ctm_word w = {0};
    double before = NAN;
    int here = find_utterance(s, id, n, &w);
    lin_status status = LIN_OK;
    if (!here) {
        s->without++;
        s->prose.n = 0;
    }
    for (int i = 0; i < s->prose.n && status == LIN_OK; i++) {
        const char *text = s->prose.text.data + s->prose.words[i].text;
        if (!here || w.n_id != n || memcmp(w.id, id, n) != 0 || strlen(text) != w.n_word || memcmp(text, w.word, w.n_word) != 0)
            return lin_fail(err, LIN_MISMATCH, "word %d of %.*s is '%s' in the text, and the CTM has another", i + 1, (int)n, id,
                            text);
        if (i) s->pauses[lin_readable_pause(w.start_s - before)][s->prose.words[i - 1].mark]++;
        before = w.end_s;
        status = lin_readable_push(&s->readable, text, w.start_s, w.end_s, 1, err);
        if (i + 1 < s->prose.n) here = lin_lines_next(&s->ctm) && read_ctm_line(&s->ctm, &w);
    }
    return status;
}

static lin_status score_text(scoring *s, const char *id, size_t n_id, const char *text, size_t n, lin_error *err)
{
    lin_status status = lin_prose_read(&s->prose, text, n, err);
    if (status == LIN_OK && s->times) status = push_timed(s, id, n_id, err);
    for (int i = 0; i < s->prose.n && status == LIN_OK && !s->times; i++)
        status = lin_readable_push(&s->readable, s->prose.text.data + s->prose.words[i].text, NAN, NAN, 1, err);
    if (status == LIN_OK) status = lin_readable_finish(&s->readable, err);
    if (status == LIN_OK) compare(s);
    lin_readable_clear(&s->readable);
    return status;
}

static void print_scores(const scoring *s)
{
    static const char *const names[SCORES] = {"", "commas", "full stops", "question marks", "capitals"};
    static const int order[] = {LIN_MARK_STOP, LIN_MARK_COMMA, LIN_MARK_QUESTION, CAPITAL};
    printf("%lld words%s\n%-15s %10s %10s %10s %8s\n", (long long)s->words, s->times ? ", with pauses" : "", "", "in text",
           "precision", "recall", "F");
    for (int i = 0; i < 4; i++) {
        const int k = order[i];
        const double right = (double)s->right[k], precision = s->written[k] ? right / (double)s->written[k] : 0;
        const double recall = s->wanted[k] ? right / (double)s->wanted[k] : 0;
        printf("%-15s %10lld %8.1f %% %8.1f %% %6.1f %%\n", names[k], (long long)s->wanted[k], 100 * precision, 100 * recall,
               precision + recall > 0 ? 200 * precision * recall / (precision + recall) : 0);
    }
    if (!s->times) return;
    printf("pauses: none, comma, full stop, question mark\n");
    static const char *const classes[LIN_PAUSES] = {"",       "below 30 ms", "30 ms",  "100 ms", "200 ms",         "300 ms",
                                                    "400 ms", "500 ms",      "600 ms", "700 ms", "900 ms and more"};
    for (int c = 1; c < LIN_PAUSES; c++) {
        const int64_t *n = s->pauses[c];
        printf("%-15s %10lld %10lld %10lld %8lld\n", classes[c], (long long)n[0], (long long)n[1], (long long)n[2],
               (long long)n[3]);
    }
    if (s->without) printf("%lld utterances are not in the CTM\n", (long long)s->without);
}

static lin_status score_lines(scoring *s, const char *text, size_t n, lin_error *err)
{
    lin_lines lines;
    lin_status status = LIN_OK;
    lin_lines_begin(&lines, text, n);
    while (status == LIN_OK && lin_lines_next(&lines)) {
        const char *at = lines.text, *end = lines.text + lines.n, *id;
        size_t n_id;
        if (lin_field_next(&at, end, &id, &n_id)) status = score_text(s, id, n_id, at, (size_t)(end - at), err);
    }
    return status;
}

static lin_status score(const readable_values *v, const char *text, size_t n, lin_error *err)
{
    lin_punctuation *p;
    lin_paragraphs paragraphs;
    scoring s = {0};
    char *times = NULL;
    lin_status status = open_model(v, &p, err);
    if (status == LIN_OK && v->ctm) status = lin_text_read(v->ctm, &times, &s.n_times, err);
    s.times = times;
    if (times) lin_lines_begin(&s.ctm, times, s.n_times);
    lin_readable_begin(&s.readable, p);
    s.readable.words_only = 1;
    if (status == LIN_OK && v->ids) status = score_lines(&s, text, n, err);
    lin_paragraphs_begin(&paragraphs, text, n);
    while (status == LIN_OK && !v->ids && lin_paragraphs_next(&paragraphs)) {
        if (lin_prose_is_running(paragraphs.text, paragraphs.n))
            status = score_text(&s, "", 0, paragraphs.text, paragraphs.n, err);
    }
    if (status == LIN_OK && !s.words)
        status = lin_fail(err, LIN_FORMAT, "the text has no %s",
                          times ? "utterance of the CTM" : v->ids ? "utterance with words" : "paragraph of sentences");
    if (status == LIN_OK) print_scores(&s);
    lin_prose_free(&s.prose);
    lin_readable_free(&s.readable);
    lin_punctuation_destroy(p);
    lin_free(times);
    return status;
}

/* ---- the command ----------------------------------------------------------------------------------------------------------- */

static int run(lin_parsed *parsed)
{
    const readable_values *v = parsed->values;
    lin_error err = {0};
    char *read = NULL, *own = NULL;
    const char *text = NULL;
    size_t n = 0;
    const char *what = parsed->operands.items[0], *path = parsed->operands.items[1];
    const int writes = strcmp(what, "write") == 0, learns = strcmp(what, "learn") == 0, scores = strcmp(what, "score") == 0;
    if (!writes && !learns && !scores) return lin_misuse(parsed, "'%s' is not write, learn or score", what);
    if (learns && !v->output) return lin_misuse(parsed, "learn needs --output");
    if (learns && (v->ids || v->model)) return lin_misuse(parsed, "--ids and --model are for write and score, not for learn");
    if (v->ctm && (!scores || !v->ids)) return lin_misuse(parsed, "--ctm needs score and --ids");
    lin_status status = strcmp(path, "-") != 0 ? lin_guard_reads(path, &err) : LIN_OK;
    if (status == LIN_OK && v->output && strcmp(v->output, "-") != 0) status = lin_guard_writes(v->output, &err);
    if (status == LIN_OK) status = lin_text_read(strcmp(path, "-") == 0 ? "/dev/stdin" : path, &read, &n, &err);
    if (status == LIN_OK) status = lin_unicode_clean(read, n, path, LIN_UNICODE_ONLY, &own, &text, &n, &err);
    if (status == LIN_OK)
        status = learns ? learn(v, text, n, &err) : writes ? write_text(v, text, n, &err) : score(v, text, n, &err);
    lin_free(own);
    lin_free(read);
    return status == LIN_OK ? LIN_EXIT_OK : lin_give_up(&err);
}

const lin_command lin_command_readable = {
    .name = "readable",
    .operands = "write|learn|score TEXT",
    .summary = "write plain words as readable text, with digits, capitals and punctuation",
    .description =
        "Makes plain words in texts readable, as transcribe, listen and decode do with recognised words (--readable).\n\n"
        "write writes lines of plain words as readable text. learn makes a model of marks and capitals from books, whose "
        "paragraphs are separated by empty lines; it leaves out paragraphs without running text. score measures how well the "
        "model restores the marks and capitals of a text that it has not seen, as precision, recall and their harmonic mean F. "
        "\"!\" and \";\" count as full stops, \":\" and dashes as commas; every sentence begins with a capital.\n\n"
        "TEXT may be - for standard input. docs/readable.md describes the rules and the model.",
    .examples = "  linnet readable write words.txt\n"
                "  linnet readable learn books.txt -o my.punctuation\n"
                "  linnet readable score --model my.punctuation other-books.txt",
    .options = options,
    .values_size = sizeof(readable_values),
    .min_operands = 2,
    .max_operands = 2,
    .verb_operand = 1,
    .run = run,
};
