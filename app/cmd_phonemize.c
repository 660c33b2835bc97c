// cmd_phonemize.c - linnet phonemize: words to phones: references for scoring, labels for training.

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/common.h"
#include "app/shared_options.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "base/unicode.h"
#include "lexicon/transcript.h"
#include "linnet/wording.h"

enum { IDS_AUTO, IDS_NONE, IDS_FIRST, IDS_LAST };

typedef struct phonemize_values {
    const char *lexicon, *add_lexicon, *phones, *g2p, *numbers, *output, *oov;
    int ids, trn, stress, quiet;
    const char *language;
} phonemize_values;

static const lin_option options[] = {
    LIN_LANGUAGE_ROW(phonemize_values, language),
    LIN_DICTIONARY_ROW(phonemize_values, lexicon),
    LIN_ADD_LEXICON_ROW(phonemize_values, add_lexicon, ""),
    LIN_PHONE_SET_ROW(phonemize_values, phones),
    LIN_G2P_ROW(phonemize_values, g2p),
    LIN_NUMBERS_ROW(phonemize_values, numbers),
    {.name = "output", .letter = 'o', .type = LIN_OPTION_FILE, .writes = 1, .at = offsetof(phonemize_values, output),
     .help = "Output file; if not given, standard output"},
    {.name = "ids", .type = LIN_OPTION_CHOICE, .at = offsetof(phonemize_values, ids), .text = "auto",
     .choices = "auto|none|first|last", .help = "Position of the utterance's name in a line: none, first word (Kaldi), or last "
                                                "word in parentheses (TRN); auto: last if a line ends that way, else none"},
    {.name = "trn", .type = LIN_OPTION_FLAG, .at = offsetof(phonemize_values, trn),
     .help = "Write NIST TRN: the phones, then the name in parentheses; lines without a name are named line-1, line-2, ..."},
    {.name = "stress", .type = LIN_OPTION_FLAG, .at = offsetof(phonemize_values, stress),
     .help = "Phones with the stress that the dictionary has: AH0, OW1"},
    {.name = "oov", .type = LIN_OPTION_FILE, .writes = 1, .at = offsetof(phonemize_values, oov),
     .help = "Write the words outside the dictionary, with the phones chosen for them, to this file instead of standard error"},
    LIN_QUIET_ROW(offsetof(phonemize_values, quiet), "Print no list of unknown words on standard error"),
    {.type = LIN_OPTION_END},
};

typedef struct span {
    const char *text;
    size_t n;
} span;

static span trim(span s)
{
    while (s.n && lin_is_space(s.text[0])) s.text++, s.n--;
    while (s.n && (lin_is_space(s.text[s.n - 1]) || s.text[s.n - 1] == '\n')) s.n--;
    return s;
}

static int ends_with_id(span line)
{
    if (line.n < 3 || line.text[line.n - 1] != ')') return 0;
    for (size_t i = line.n - 1; i > 0; i--) {
        char c = line.text[i - 1];
        if (c == '(')
            return i < line.n - 1 && (i == 1 || lin_is_space(line.text[i - 2])) &&
                   !lin_mark_length(line.text + i - 1, line.n - i + 1);
        if (c == ')' || lin_is_space(c)) return 0;
    }
    return 0;
}

// Removes the utterance's name from the line; empty if there is none.
static span take_id(span *line, int ids)
{
    span id = {line->text, 0};
    if (ids == IDS_FIRST) {
        while (id.n < line->n && !lin_is_space(id.text[id.n])) id.n++;
        line->text += id.n;
        line->n -= id.n;
        *line = trim(*line);
    } else if ((ids == IDS_LAST || ids == IDS_AUTO) && ends_with_id(*line)) {
        size_t open = line->n - 1;
        while (line->text[open] != '(') open--;
        id = (span){line->text + open + 1, line->n - open - 2};
        line->n = open;
        *line = trim(*line);
    }
    return id;
}

// Sentence marks of language-model transcripts, <s> and </s>, are not words.
static span drop_marks(span s)
{
    if (s.n >= 3 && memcmp(s.text, "<s>", 3) == 0) s = trim((span){s.text + 3, s.n - 3});
    if (s.n >= 4 && memcmp(s.text + s.n - 4, "</s>", 4) == 0) s = trim((span){s.text, s.n - 4});
    return s;
}

static void print_phones(const phonemize_values *v, const lin_wording *w, const int *labels, int n, FILE *out)
{
    const signed char *stress = lin_transcriber_stress(w->transcriber);
    for (int i = 0; i < n; i++) {
        fprintf(out, "%s%s", i ? " " : "", lin_phones_name(w->phones, labels[i]));
        if (v->stress && stress[i] >= 0) fprintf(out, "%d", stress[i]);
    }
}

static lin_status one_line(const phonemize_values *v, lin_wording *w, span line, int number, FILE *out, lin_error *err)
{
    line = trim(line);
    span id = take_id(&line, v->ids);
    line = drop_marks(line);
    if (v->ids == IDS_LAST && !id.n) return lin_fail(err, LIN_FORMAT, "no (name) at the end of the line");
    const int *labels;
    int n;
    LIN_TRY(lin_transcriber_line(w->transcriber, line.text, line.n, &labels, &n, err));
    if (!v->trn && id.n) fprintf(out, "%.*s%s", (int)id.n, id.text, n ? " " : "");
    print_phones(v, w, labels, n, out);
    if (v->trn && id.n) fprintf(out, "%s(%.*s)", n ? " " : "", (int)id.n, id.text);
    if (v->trn && !id.n) fprintf(out, "%s(line-%d)", n ? " " : "", number);
    fputc('\n', out);
    return LIN_OK;
}

// A bad line is reported and left out, the others are done.
static int all_lines(const phonemize_values *v, lin_wording *w, const char *text, size_t n, const char *name, FILE *out,
                     long *done)
{
    lin_lines lines;
    lin_error err = {0};
    int failed = 0;
    lin_lines_begin(&lines, text, n);
    while (!lin_interrupted && lin_lines_next(&lines)) {
        if (one_line(v, w, (span){lines.text, lines.n}, lines.number, out, &err) == LIN_OK) {
            ++*done;
            continue;
        }
        lin_complain("%s:%d: %s", name, lines.number, err.message);
        failed = 1;
    }
    return failed;
}

// Writes all words outside the dictionary to a file, or the first of them to standard error.
static lin_status report_unknown(const lin_wording *w, const char *path, lin_error *err)
{
    enum { MOST = 20 };
    const int n = lin_transcriber_unknown_count(w->transcriber);
    lin_buffer text = {0};
    lin_status status = lin_wording_unknown(w, path ? INT_MAX : MOST, path ? "" : "  ", &text, err);
    if (status == LIN_OK && path) status = lin_output_write(path, 0, &text, err);
    if (status == LIN_OK && !path && n) {
        lin_complain("words outside the dictionary (word, count, method, phones):");
        status = lin_buffer_write(&text, stderr, "standard error", err);
        if (n > MOST) fprintf(stderr, "  and %d more; --oov FILE lists them all\n", n - MOST);
    }
    lin_buffer_free(&text);
    return status;
}

// Whether an operand names a file: there is one, or it looks like a path, "data/text" or "words.txt", not like "5 km/h".
static int names_file(const char *operand)
{
    const char *dot = strrchr(operand, '.');
    const int looks = strchr(operand, '/') || (dot && dot != operand && dot[1]);
    return access(operand, F_OK) == 0 || (looks && !strchr(operand, ' '));
}

// The operands as one line; *text is released with lin_free.
static lin_status join_words(const lin_list *operands, lin_buffer *text, lin_error *err)
{
    for (int i = 0; i < operands->count; i++) {
        if (operands->count > 1 && access(operands->items[i], F_OK) == 0)
            return lin_fail(err, LIN_INVALID, "%s names a file: give one FILE, or words", operands->items[i]);
        lin_buffer_format(text, "%s%s", i ? " " : "", operands->items[i]);
    }
    lin_buffer_char(text, '\n');
    return lin_buffer_status(text, err);
}

static int run(lin_parsed *parsed)
{
    const phonemize_values *v = parsed->values;
    lin_error err = {0};
    const char *path = parsed->operands.count ? parsed->operands.items[0] : "-";
    const int from_stdin = strcmp(path, "-") == 0 && parsed->operands.count < 2,
              from_words = !from_stdin && (parsed->operands.count > 1 || !names_file(path));
    const lin_warnings warnings = lin_complaints(0);
    lin_buffer words = {0};
    lin_wording w;
    if (from_words && join_words(&parsed->operands, &words, &err) != LIN_OK) {
        lin_buffer_free(&words);
        return lin_misuse(parsed, "%s", err.message);
    }
    const lin_wording_files files = {
        .dictionary = v->lexicon, .added = v->add_lexicon, .phones = v->phones, .g2p = v->g2p, .numbers = v->numbers};
    lin_status status = lin_wording_open(&w, &files, &warnings, &err);
    if (status != LIN_OK) {
        lin_buffer_free(&words);
        return lin_give_up(&err);
    }
    lin_output out;
    char *text = NULL, *own = NULL;
    const char *lines = words.data, *name = from_stdin ? "standard input" : from_words ? "the words" : path;
    size_t n = words.n;
    long done = 0;
    int failed;
    if (!from_words) status = lin_text_read(from_stdin ? "/dev/stdin" : path, &text, &n, &err);
    if (status == LIN_OK && text) status = lin_unicode_clean(text, n, name, LIN_UNICODE_ANY, &own, &lines, &n, &err);
    if (status == LIN_OK) status = lin_output_open(v->output, 0, &out, &err);
    if (status != LIN_OK) {
        failed = lin_give_up(&err);
    } else {
        failed = all_lines(v, &w, lines, n, name, out.file, &done);
        const lin_status how = lin_interrupted ? LIN_STOPPED : failed && !done ? LIN_IO : LIN_OK;
        if (lin_output_end(&out, how, &err) != how) failed = lin_give_up(&err);
        if ((v->oov || !v->quiet) && report_unknown(&w, v->oov, &err) != LIN_OK) failed = lin_give_up(&err);
    }
    const char *first_mark = "";
    const long marks = lin_transcriber_marks(w.transcriber, &first_mark);
    if (!v->quiet) lin_complain_of_marks(marks, first_mark);
    lin_free(own);
    lin_free(text);
    lin_wording_close(&w);
    lin_buffer_free(&words);
    return lin_interrupted ? LIN_EXIT_INTERRUPTED : failed ? LIN_EXIT_FAILED : LIN_EXIT_OK;
}

const lin_command lin_command_phonemize = {
    .name = "phonemize",
    .operands = "[FILE | WORD...]",
    .summary = "convert words to phones with a dictionary",
    .description = "Converts each line of words to phones. A word of the dictionary gets its first pronunciation, without "
                   "stress. Other words are pronounced as derived forms, as letter names or by the installed letter-to-sound "
                   "rules. Numbers, signs and abbreviations are read as they are most often said (--numbers). Reads standard "
                   "input if FILE is - or not given. Several operands are words, and so is one that is no file and does not "
                   "look like a path.\n\n"
                   "A line that cannot be pronounced is reported and left out, and the exit status is 1.",
    .examples = "  linnet phonemize --ids first data/test/text --trn -o test.ref.trn\n"
                "  linnet phonemize how are you\n"
                "  echo how are you | linnet phonemize\n"
                "  linnet phonemize --lexicon my.dict words.txt",
    .options = options,
    .values_size = sizeof(phonemize_values),
    .max_operands = -1,
    .run = run,
};
