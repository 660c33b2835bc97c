// cmd_adapt.c - linnet adapt: fits a model, its language model and its lexicon to a user's speech and texts. It runs other
// commands, which it prints, and keeps only what improves the results on held-out utterances.

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/common.h"
#include "app/shared_options.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/symbols.h"
#include "base/textfile.h"
#include "base/unicode.h"
#include "lexicon/transcript.h"
#include "linnet/find.h"
#include "model/model.h"
#include "train/holdout.h"
#include "train/learn/cmd_sentences.h"
#include "train/score/score.h"

typedef struct adapt_values {
    const char *data, *audio_root, *text, *words, *keep_data, *folder, *model, *lexicon, *g2p, *lm, *device;
    double lr, part;
    int offline, epochs, threads, seed, quiet;
    const char *language;
} adapt_values;

#define AT(field) .at = offsetof(adapt_values, field)
static const lin_option options[] = {
    {.name = "data", .type = LIN_OPTION_FOLDER, .required = 1, AT(data),
     .help = "Kaldi-style data directory with speech and its text; a part of it is held out, by speaker where possible"},
    {.name = "audio-root", .type = LIN_OPTION_FOLDER, AT(audio_root),
     .help = "Folder that the paths in its wav.scp are relative to; if not given, its parent"},
    {.name = "text", .type = LIN_OPTION_FILE, AT(text),
     .help = "Text of the kind that people will say, a sentence per line. The language model is mixed with a model of this text, "
             "and its words are added to the lexicon"},
    {.name = "words", .type = LIN_OPTION_FILE, AT(words), .value = "WORDS",
     .help = "File of words to add to the lexicon, with phonemes as in a lexicon or alone, as for --add-lexicon"},
    {.name = "keep-data", .type = LIN_OPTION_FOLDER, AT(keep_data),
     .help = "Data directory of other speech to train on as well, so that the model stays good at such speech"},
    {.name = "folder", .letter = 'o', .type = LIN_OPTION_FOLDER, .writes = 1, .required = 1, AT(folder),
     .help = "Folder of the results, for --language of other commands; created if missing"},
    {.name = "model", .letter = 'm', .type = LIN_OPTION_FILE, AT(model), .choices = "default|offline|small",
     .help = "The model to adapt: a file, or default, offline or small, which are installed with the program; if not given, "
             "$LINNET_MODEL, else default"},
    {.name = "offline", .type = LIN_OPTION_FLAG, AT(offline),
     .help = "Adapt the installed model that reads whole utterances: the same as --model offline"},
    LIN_LANGUAGE_ROW(adapt_values, language),
    LIN_DICTIONARY_ROW(adapt_values, lexicon),
    LIN_G2P_ROW(adapt_values, g2p),
    {.name = "lm", .type = LIN_OPTION_FILE, AT(lm),
     .help = "Language model of words; if not given, $LINNET_LM, else the installed one"},
    {.type = LIN_OPTION_HEADING, .help = "Training"},
    {.name = "lr", .type = LIN_OPTION_DOUBLE, AT(lr), .text = "1e-4", .min = 0, .max = 1,
     .help = "Learning rate; it is halved when the held-out part gets worse, and training ends when it does again. 0: the model "
             "is not trained"},
    {.name = "epochs", .type = LIN_OPTION_INT, AT(epochs), .text = "8", .min = 1, .max = 1000,
     .help = "Passes over the data at most"},
    {.name = "held-out", .type = LIN_OPTION_DOUBLE, AT(part), .text = "0.1", .min = 0.001, .max = 0.5, .value = "PART",
     .help = "Part of the utterances to hold out, at most 300 of them"},
    LIN_SEED_ROW(offsetof(adapt_values, seed), "Another seed holds out others and trains in another order"),
    {.name = "threads", .type = LIN_OPTION_INT, AT(threads), .text = "0", .min = 0, .max = 1024,
     .help = "Threads, 0: one per core"},
    LIN_DEVICE_ROW(offsetof(adapt_values, device)),
    LIN_QUIET_ROW(offsetof(adapt_values, quiet), "Print only the results and errors"),
    {.type = LIN_OPTION_END},
};

/* ---- the files that the commands read: data directories, texts, words ------------------------------------------------------ */

typedef struct divided {
    lin_holdout holdout;
    long held_words;
    int left_out; // utterances whose text cannot be read as words; why: the first of them
    char why[512];
} divided;

// Appends the words of a text in lower case, separated by single blanks; *words: their number.
static lin_status spell(const char *text, size_t n, lin_buffer *out, long *words, lin_error *err)
{
    lin_spelling word = {0};
    size_t at = 0;
    lin_status status;
    *words = 0;
    while ((status = lin_spelling_next(text, n, &at, &word, err)) == LIN_OK && word.n) {
        if ((*words)++) lin_buffer_char(out, ' ');
        lin_buffer_bytes(out, word.word, word.n);
    }
    return status == LIN_OK ? lin_buffer_status(out, err) : status;
}

typedef struct set {
    const char *name;
    lin_buffer text, scp, speakers, segments; // segments: written if an utterance is a part of a sound or has a channel
    int has_parts;
} set;

static void put_line(lin_buffer *out, const char *id, const char *value, size_t n)
{
    lin_buffer_text(out, id);
    lin_buffer_char(out, ' ');
    lin_buffer_bytes(out, value, n);
    lin_buffer_char(out, '\n');
}

static void put_utterance(set *s, const lin_utterance *u, const lin_buffer *words)
{
    char whole[PATH_MAX];
    const lin_cut *cut = &u->cut;
    const char *audio = realpath(cut->path, whole) ? whole : cut->path; // prepare reports one that is missing
    put_line(&s->text, u->id, words->data, words->n);
    put_line(&s->scp, u->id, audio, strlen(audio));
    put_line(&s->speakers, u->id, u->speaker, strlen(u->speaker));
    s->has_parts |= lin_cut_is_part(cut) || cut->channel > 0;
    const double end_s = cut->part.end_s > 0 ? cut->part.end_s : -1;
    lin_buffer_format(&s->segments, "%s %s %.17g %.17g", u->id, u->id, cut->part.start_s, end_s);
    if (cut->channel > 0) lin_buffer_format(&s->segments, " %d", cut->channel - 1);
    lin_buffer_char(&s->segments, '\n');
}

static lin_status write_file(const char *folder, const char *set_name, const char *name, const lin_buffer *buffer, lin_error *err)
{
    char path[PATH_MAX];
    LIN_TRY(lin_buffer_status(buffer, err));
    if (snprintf(path, sizeof path, "%s/%s/%s", folder, set_name, name) >= (int)sizeof path)
        return lin_fail(err, LIN_INVALID, "the name of the folder %.200s... is too long", folder);
    return lin_file_write_all(path, buffer->n ? buffer->data : "", buffer->n, err);
}

static lin_status write_set(const char *folder, const set *s, lin_error *err)
{
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s/%s", folder, s->name);
    LIN_TRY(lin_make_folders(path, n < PATH_MAX ? (size_t)n : PATH_MAX, err));
    LIN_TRY(write_file(folder, s->name, "text", &s->text, err));
    LIN_TRY(write_file(folder, s->name, "wav.scp", &s->scp, err));
    if (s->has_parts) LIN_TRY(write_file(folder, s->name, "segments", &s->segments, err));
    return write_file(folder, s->name, "utt2spk", &s->speakers, err);
}

static void free_set(set *s)
{
    lin_buffer_free(&s->text);
    lin_buffer_free(&s->scp);
    lin_buffer_free(&s->speakers);
    lin_buffer_free(&s->segments);
}

// Gathers the utterances to train on, sets[0], and those held out, sets[1], with absolute paths of sounds, and texts as words in
// lower case. Utterances whose text is not words are in neither, and not held out.
static lin_status gather_parts(const lin_datadir *dir, unsigned char *held, set sets[2], divided *data, lin_error *err)
{
    lin_buffer words = {0};
    lin_status status = LIN_OK;
    int counts[2] = {0, 0};
    for (int i = 0; i < lin_datadir_count(dir) && status == LIN_OK; i++) {
        const lin_utterance *u = lin_datadir_at(dir, i);
        lin_error why = {0};
        long n = 0;
        lin_buffer_clear(&words);
        status = spell(u->text, strlen(u->text), &words, &n, &why);
        if (status == LIN_NO_MEMORY) break;
        if (status != LIN_OK || n == 0) {
            if (!data->left_out++)
                snprintf(data->why, sizeof data->why, "%.200s: %.290s", u->id, n || status ? why.message : "its text is empty");
            status = LIN_OK;
            held[i] = 0;
            continue;
        }
        put_utterance(&sets[held[i]], u, &words);
        counts[held[i]]++;
        if (held[i]) data->held_words += n;
    }
    if (status == LIN_NO_MEMORY) lin_no_memory(err, "the texts", words.n);
    if (status == LIN_OK && (!counts[0] || !counts[1]))
        status = lin_fail(err, LIN_INVALID,
                          "%d utterances have a text of words, too few to train on some and to hold out others%s%s",
                          counts[0] + counts[1], *data->why ? "; left out, for example, " : "", data->why);
    lin_buffer_free(&words);
    return status;
}

// Refuses a data directory that has an utterance with the name of a held-out one: it is probably the same.
static lin_status check_kept(const char *path, const lin_datadir *dir, const unsigned char *held, lin_error *err)
{
    lin_datadir *kept;
    lin_symbols names = {0};
    int index;
    LIN_TRY(lin_datadir_load(path, &(lin_datadir_options){.need_text = 1}, &kept, err));
    lin_status status = LIN_OK;
    for (int i = 0; i < lin_datadir_count(dir) && status == LIN_OK; i++) {
        const char *id = lin_datadir_at(dir, i)->id;
        if (held[i]) status = lin_symbols_add(&names, id, strlen(id), &index, err);
    }
    for (int i = 0; i < lin_datadir_count(kept) && status == LIN_OK; i++) {
        const char *id = lin_datadir_at(kept, i)->id;
        if (lin_symbols_find(&names, id, strlen(id)) >= 0)
            status = lin_fail(err, LIN_INVALID,
                              "%s: %.200s is held out of --data, so it cannot be trained on; leave out what both have", path, id);
    }
    lin_symbols_free(&names);
    lin_datadir_destroy(kept);
    return status;
}

// Writes a text, one sentence per line, as words in lower case for linnet ngram count; lines that are not words are left out and
// counted; first: why the first of them.
static lin_status write_text(const char *path, const char *to, long *left_out, lin_error *first, lin_error *err)
{
    char *text;
    size_t n;
    lin_lines lines;
    lin_buffer out = {0}, line = {0};
    int any = 0;
    *left_out = 0;
    lin_status status = lin_sentences_read(&(lin_sentences_values){0}, path, &text, &n, err);
    if (status != LIN_OK) return status;
    lin_lines_begin(&lines, text, n);
    while (status == LIN_OK && lin_lines_next(&lines)) {
        lin_error why = {0};
        long words;
        lin_buffer_clear(&line);
        status = spell(lines.text, lines.n, &line, &words, &why);
        if (status == LIN_NO_MEMORY) {
            lin_fail_as(err, &why);
        } else if (status != LIN_OK) {
            if (!(*left_out)++) lin_fail(first, status, "line %d: %s", lines.number, why.message);
            status = LIN_OK;
        } else if (words) {
            lin_buffer_bytes(&out, line.data, line.n);
            lin_buffer_char(&out, '\n');
            any = 1;
        }
    }
    lin_free(text);
    lin_buffer_free(&line);
    if (status == LIN_OK && !any) status = lin_fail(err, LIN_FORMAT, "%s: no line of it is a sentence of words", path);
    if (status == LIN_OK) status = lin_buffer_status(&out, err);
    if (status == LIN_OK) status = lin_file_write_all(to, out.data, out.n, err);
    lin_buffer_free(&out);
    return status;
}

// Lines "word TAB count TAB how TAB phones".
static long put_unknown(lin_buffer *out, const char *text, size_t n)
{
    lin_lines lines;
    long count = 0;
    lin_lines_begin(&lines, text, n);
    while (lin_lines_next(&lines)) {
        const char *at = lines.text, *end = at + lines.n, *word, *field;
        size_t n_word, n_field;
        if (!lin_field_next(&at, end, &word, &n_word) || !lin_field_next(&at, end, &field, &n_field) ||
            !lin_field_next(&at, end, &field, &n_field) || !lin_field_next(&at, end, &field, &n_field))
            continue; // nothing pronounces it
        lin_buffer_bytes(out, word, n_word);
        lin_buffer_char(out, ' ');
        lin_buffer_bytes(out, field, (size_t)(end - field));
        lin_buffer_char(out, '\n');
        count++;
    }
    return count;
}

// The words that extend the lexicon: the lines of the files `lists` [n_lists] (NULL among them: none), then the words of
// `unknown`, a list of linnet phonemize --oov (NULL: none), with their phones. n_unknown: those of the list.
static lin_status write_words(const char *const *lists, int n_lists, const char *unknown, const char *to, long *n_unknown,
                                 lin_error *err)
{
    char *text;
    size_t n;
    lin_buffer out = {0};
    lin_status status = LIN_OK;
    *n_unknown = 0;
    for (int i = 0; i < n_lists && status == LIN_OK; i++) {
        if (!lists[i]) continue;
        status = lin_sentences_read(&(lin_sentences_values){0}, lists[i], &text, &n, err); // all in one encoding
        if (status != LIN_OK) break;
        lin_buffer_bytes(&out, text, n);
        if (n && text[n - 1] != '\n') lin_buffer_char(&out, '\n');
        lin_free(text);
    }
    if (unknown && status == LIN_OK) {
        status = lin_text_read(unknown, &text, &n, err);
        if (status == LIN_OK) {
            *n_unknown = put_unknown(&out, text, n);
            lin_free(text);
        }
    }
    if (status == LIN_OK) status = lin_buffer_status(&out, err);
    if (status == LIN_OK) status = lin_file_write_all(to, out.n ? out.data : "", out.n, err);
    lin_buffer_free(&out);
    return status;
}

static int is_packed_file(const char *path)
{
    lin_file_map file;
    if (lin_file_map_open(path, &file, NULL) != LIN_OK) return 0;
    const int is_packed = lin_gzip_is(file.bytes, file.size);
    lin_file_map_close(&file);
    return is_packed;
}

static lin_status copy_file(const char *from, const char *to, lin_error *err)
{
    lin_file_map file;
    LIN_TRY(lin_file_map_open(from, &file, err));
    const lin_status status = lin_file_write_all(to, file.bytes, file.size, err);
    lin_file_map_close(&file);
    return status;
}

/* ---- the adaptation -------------------------------------------------------------------------------------------------------- */

enum { MOST_HELD = 300, LONGEST_PATH = 4096, MOST_WORDS = 64 };

typedef struct adaptation {
    const adapt_values *v;
    int exit_status; // of the command that failed; 0 while all is well
    lin_error err;   // of adapt's own failures
    lin_phones *phones;                                     // of the model
    lin_model *given;                                       // of the file `model`
    char model[LONGEST_PATH], lm[LONGEST_PATH];             // the originals
    char own_words[LONGEST_PATH];                           // words that extend the original lexicon
    char best[LONGEST_PATH];                                // the trained model
    char words[LONGEST_PATH], mixed[LONGEST_PATH];          // new words and language model, in the folder
    char name[128], threads[16];
    divided data;
    long new_words;
    int has_begun; // there is a folder `work`
} adaptation;

// A version of the recogniser to measure: its files, NULL: none.
typedef struct version {
    const char *what, *model, *lm, *words;
    double per, wer; // in per cent; below 0: not measured
} version;

/* ---- commands -------------------------------------------------------------------------------------------------------------- */

static int is_well(const adaptation *a) { return a->exit_status == 0; }

static void failed(adaptation *a, lin_status status)
{
    if (status != LIN_OK && is_well(a)) a->exit_status = lin_give_up(&a->err);
}

// The path of a file in the folder; it lives as long as the next eight calls.
static const char *in_folder(const adaptation *a, const char *name)
{
    static char paths[8][LONGEST_PATH];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, LONGEST_PATH, "%s/%s", a->v->folder, name);
    return path;
}

// The words of a command, ending with NULL; the caller leaves out options without a value.
typedef struct words {
    char *items[MOST_WORDS];
    int n;
} words;

static void say(words *w, ...)
{
    va_list list;
    va_start(list, w);
    for (char *word; (word = va_arg(list, char *)) && w->n < MOST_WORDS;) w->items[w->n++] = word;
    va_end(list);
}

static void say_if(words *w, const char *option, const char *value)
{
    if (value) say(w, option, value, (char *)NULL);
}

// Adds the options for pronunciations: lexicon, added words, rules, and the phones of the model.
static void say_lexicon(const adaptation *a, words *w, const char *added)
{
    static const char ending[] = ".safetensors";
    const size_t n = strlen(a->model), k = sizeof ending - 1;
    say_if(w, "--language", a->v->language);
    say_if(w, "--lexicon", a->v->lexicon);
    say_if(w, "--add-lexicon", added && *added ? added : NULL);
    say_if(w, "--g2p", a->v->g2p);
    say_if(w, "--phones", n > k && !strcmp(a->model + n - k, ending) ? a->model : NULL);
}

// Runs a command unless an earlier one has failed. best_effort: status 1, for inputs that are left out, is no failure.
static void run(adaptation *a, const lin_command *command, words *w, int best_effort)
{
    lin_buffer line = {0};
    if (!is_well(a)) return;
    for (int i = 0; i < w->n; i++) {
        lin_buffer_char(&line, ' ');
        lin_buffer_shell(&line, w->items[i]);
    }
    if (!a->v->quiet && line.data) fprintf(stderr, "$ linnet %s%s\n", command->name, line.data);
    lin_buffer_free(&line);
    const int status = lin_run_command(command, w->n, w->items);
    if (status == LIN_EXIT_OK || (best_effort && status == LIN_EXIT_FAILED)) return;
    if (status == LIN_EXIT_USAGE) lin_complain("linnet %s refused the command line that linnet adapt gave it", command->name);
    a->exit_status = status == LIN_EXIT_INTERRUPTED ? status : LIN_EXIT_FAILED;
}

/* ---- what there is to begin with ------------------------------------------------------------------------------------------- */

static lin_status look_at_model(adaptation *a, lin_error *err)
{
    const adapt_values *v = a->v;
    if (v->offline && v->model) return lin_fail(err, LIN_INVALID, "--offline and --model name two models; give one of them");
    LIN_TRY(lin_find_model(v->offline ? "offline" : v->model, a->model, sizeof a->model, err));
    LIN_TRY(lin_model_open(a->model, 0, &a->given, err));
    char name[101]; // may be cut within a character
    snprintf(name, sizeof name, "%s", *a->given->name ? a->given->name : "model");
    snprintf(a->name, sizeof a->name, "%.*s, adapted", (int)lin_utf8_prefix(name, strlen(name), ""), name);
    LIN_TRY(lin_model_check_sound(a->given, a->model, err));
    LIN_TRY(lin_phones_create(a->given->phones, &a->phones, err));
    LIN_TRY(lin_find_lm(a->phones, v->lm, a->lm, sizeof a->lm, err));
    lin_find_added(a->phones, v->lexicon, a->own_words, sizeof a->own_words);
    return LIN_OK;
}

// Refuses files that are not there before hours of training need them.
static lin_status check_inputs(const adaptation *a, lin_error *err)
{
    const adapt_values *v = a->v;
    char lexicon[LONGEST_PATH], rules[LONGEST_PATH];
    LIN_TRY(lin_find_lexicon(a->phones, v->lexicon, lexicon, sizeof lexicon, err));
    LIN_TRY(lin_find_rules(a->phones, v->g2p, rules, sizeof rules, err));
    const char *const paths[] = {v->text, v->words, a->lm, lexicon, rules};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (paths[i] && *paths[i] && access(paths[i], R_OK) != 0)
            return lin_fail(err, LIN_IO, "cannot open %s: %s", paths[i], strerror(errno));
    return LIN_OK;
}

// Refuses a folder that has results: their training may have taken hours.
static lin_status check_folder(const adaptation *a, lin_error *err)
{
    static const char *const made[] = {"default.safetensors", "results.txt", "work"};
    for (int i = 0; i < 3; i++) {
        if (access(in_folder(a, made[i]), F_OK) == 0)
            return lin_fail(err, LIN_INVALID, "%s already has a file %s; name another folder, or remove that", a->v->folder,
                            made[i]);
    }
    if (strlen(a->v->folder) > LONGEST_PATH - 100) return lin_fail(err, LIN_INVALID, "the name of the folder is too long");
    return LIN_OK;
}

static void tell_divided(const adaptation *a)
{
    const lin_holdout *h = &a->data.holdout;
    if (a->data.left_out)
        lin_complain("%s: %d utterances are left out, whose text is not words: %s", a->v->data, a->data.left_out, a->data.why);
    if (h->held_speakers)
        lin_complain("held out: %d of %d utterances, %d of %d speakers, %ld words", h->held, h->n, h->held_speakers, h->speakers,
                     a->data.held_words);
    else
        lin_complain("held out: %d of %d utterances, %ld words; their speakers are in the rest too, so that the gain for others "
                     "may be smaller", h->held, h->n, a->data.held_words);
    if (a->data.held_words < 300)
        lin_complain("note: on %ld words, differences of a few per cent are chance", a->data.held_words);
}

// Divides the data into two data directories, work/train and work/heldout; nothing is written if they cannot be used.
static lin_status divide(adaptation *a, lin_error *err)
{
    const adapt_values *v = a->v;
    const lin_holdout_options how = {v->part, MOST_HELD, (unsigned long long)v->seed};
    set sets[2] = {{.name = "train"}, {.name = "heldout"}};
    lin_datadir *dir;
    LIN_TRY(lin_datadir_load(v->data, &(lin_datadir_options){.audio_root = v->audio_root, .need_text = 1}, &dir, err));
    unsigned char *held = lin_calloc((size_t)lin_datadir_count(dir) + 1, 1);
    lin_status status = held ? lin_holdout_choose(dir, &how, held, &a->data.holdout, err) : lin_no_memory(err, v->data, 1);
    if (status == LIN_OK) status = gather_parts(dir, held, sets, &a->data, err);
    if (status == LIN_INVALID) lin_fail_at(err, status, "%s", v->data);
    if (status == LIN_OK) tell_divided(a);
    if (status == LIN_OK && v->keep_data) status = check_kept(v->keep_data, dir, held, err);
    a->has_begun = status == LIN_OK;
    for (int s = 0; s < 2 && status == LIN_OK; s++) status = write_set(in_folder(a, "work"), &sets[s], err);
    for (int s = 0; s < 2; s++) free_set(&sets[s]);
    lin_free(held);
    lin_datadir_destroy(dir);
    return status;
}

/* ---- words and language model ---------------------------------------------------------------------------------------------- */

// Writes the words of the text that the lexicon lacks, with the rules' pronunciations, so that users can correct them.
static void find_new_words(adaptation *a)
{
    const adapt_values *v = a->v;
    words w = {.n = 0};
    say(&w, in_folder(a, "work/text.txt"), "-q", "--ids", "none", "-o", in_folder(a, "work/text.phones"), "--oov",
        in_folder(a, "work/text.oov"), (char *)NULL);
    say_lexicon(a, &w, v->words);
    run(a, &lin_command_phonemize, &w, 1);
}

static void extend_lexicon(adaptation *a)
{
    const adapt_values *v = a->v;
    if (v->text && is_well(a)) find_new_words(a);
    if (!is_well(a) || (!v->text && !v->words)) return;
    const char *to = in_folder(a, "added.dict");
    const char *const lists[] = {*a->own_words ? a->own_words : NULL, v->words};
    failed(a, write_words(lists, 2, v->text ? in_folder(a, "work/text.oov") : NULL, to, &a->new_words, &a->err));
    snprintf(a->words, sizeof a->words, "%s", to);
    if (is_well(a) && a->new_words)
        lin_complain("%ld words of %s are not in the lexicon: they are in %s as rules pronounce them", a->new_words, v->text, to);
}

static void mix_lm(adaptation *a)
{
    const adapt_values *v = a->v;
    long left_out;
    lin_error why;
    if (!v->text || !is_well(a)) return;
    failed(a, write_text(v->text, in_folder(a, "work/text.txt"), &left_out, &why, &a->err));
    if (is_well(a) && left_out)
        lin_complain("%s: %ld lines are left out, which are not words: %s", v->text, left_out, why.message);
    words count = {.n = 0}, mix = {.n = 0};
    say(&count, "count", in_folder(a, "work/text.txt"), "-q", "-o", in_folder(a, "work/text.arpa"), (char *)NULL);
    run(a, &lin_command_ngram, &count, 0);
    snprintf(a->mixed, sizeof a->mixed, "%s", in_folder(a, "words.lm"));
    if (!*a->lm) { // nothing to mix with
        words pack = {.n = 0};
        say(&pack, "pack", in_folder(a, "work/text.arpa"), "-o", a->mixed, (char *)NULL);
        run(a, &lin_command_ngram, &pack, 0);
        return;
    }
    say(&mix, "mix", a->lm, in_folder(a, "work/text.arpa"), "--text", in_folder(a, "work/heldout/text"), "--ids", "first",
        "--packed", "-o", a->mixed, (char *)NULL);
    if (v->quiet) say(&mix, "-q", (char *)NULL);
    run(a, &lin_command_ngram, &mix, 0);
}

/* ---- measuring ------------------------------------------------------------------------------------------------------------- */

// The error rate of words or phones on what is held out, in per cent.
static double measure(adaptation *a, const version *of, int of_words)
{
    char to[LONGEST_PATH];
    words w = {.n = 0};
    lin_score *score;
    snprintf(to, sizeof to, "%s/work/%s-%s.trn", a->v->folder, of_words ? "words" : "phones", of->what);
    say(&w, "-q", "--model", of->model, "--device", a->v->device, "--data", in_folder(a, "work/heldout"), "--audio-root", "/",
        "-f", "trn", "-o", to, "--jobs", a->threads, (char *)NULL);
    say_if(&w, "--language", a->v->language);
    if (of_words) say(&w, "--words", "--no-readable", (char *)NULL);
    if (of_words) say_if(&w, "--lexicon", a->v->lexicon);
    if (of_words) say_if(&w, "--g2p", a->v->g2p);
    if (of_words) say_if(&w, "--lm", of->lm);
    if (of_words) say_if(&w, "--add-lexicon", of->words);
    run(a, &lin_command_transcribe, &w, 0);
    const char *reference = in_folder(a, of_words ? "work/heldout/text" : "work/heldout.phones.trn");
    const lin_score_options how = {.read.format = of_words ? LIN_TRN_KALDI : LIN_TRN_TRN, .hyp_format = LIN_TRN_TRN};
    if (is_well(a)) failed(a, lin_score_files(reference, to, &how, &score, &a->err));
    if (!is_well(a)) return -1;
    const double rate = lin_score_rate(&score->total);
    lin_score_destroy(score);
    return 100 * rate;
}

// Writes the phones of the held-out texts, by the extended lexicon.
static void make_reference(adaptation *a)
{
    words w = {.n = 0};
    say(&w, in_folder(a, "work/heldout/text"), "-q", "--ids", "first", "--trn", "-o", in_folder(a, "work/heldout.phones.trn"),
        (char *)NULL);
    say_lexicon(a, &w, a->words);
    run(a, &lin_command_phonemize, &w, 0);
}

/* ---- training -------------------------------------------------------------------------------------------------------------- */

static void prepare(adaptation *a, const char *data, const char *root, const char *cache)
{
    const lin_config *c = &a->given->config;
    char stack[16];
    const char *name;
    double value;
    words w = {.n = 0};
    lin_buffer fbank = {0};
    snprintf(stack, sizeof stack, "%d", c->stack);
    lin_buffer_format(&fbank, "dereverb,mel-bins=%d", c->mel_bins);
    for (int i = 0; (name = lin_features_value(&a->given->features, i, &value)); i++)
        lin_buffer_format(&fbank, ",%s=%.9g", name, value);
    failed(a, lin_buffer_status(&fbank, &a->err));
    say(&w, data, "-q", "--fbank", fbank.data, "--stack", stack, "--jobs", a->threads, "--allow-oov", "-o", cache, (char *)NULL);
    say_if(&w, "--audio-root", root);
    say_lexicon(a, &w, a->words);
    run(a, &lin_command_prepare, &w, 1);
    lin_buffer_free(&fbank);
    if (is_well(a) && access(cache, F_OK) != 0) a->exit_status = LIN_EXIT_FAILED; // prepare has reported why
}

// Trains in small steps with a short warm-up, and masks as in the training of the installed models. The rate is halved when an
// epoch is no better on the held-out part; the second time it falls below min-lr, and training ends. A model in eight bits stays
// one.
static void train(adaptation *a)
{
    const adapt_values *v = a->v;
    static const char *const phones_lm[] = {"phones.lm", NULL};
    char lr[32], epochs[16], seed[16], settings[400], lm[LONGEST_PATH], compared[LONGEST_PATH + 32];
    words w = {.n = 0};
    snprintf(lr, sizeof lr, "%.9g", v->lr);
    snprintf(settings, sizeof settings,
             "optimizer=adam,beta2=0.98,clip=global,warmup-steps=10,patience=1,max-frames=3600,freq-masks=2,freq-width=7,"
             "time-masks=2,time-width=25,time-part=0.05,min-lr=%.9g", v->lr * 0.3);
    snprintf(epochs, sizeof epochs, "%d", v->epochs);
    snprintf(seed, sizeof seed, "%d", v->seed);
    say(&w, "--init", a->model, "--train", in_folder(a, "work/train.lfc"), "--dev", in_folder(a, "work/heldout.lfc"), "--folder",
        in_folder(a, "work/run"), "--lr", lr, "--epochs", epochs, "--schedule", "plateau", "--batch-frames", "8000", "--seed",
        seed, "--threads", a->threads, "--device", v->device, "--name", a->name, "--set", settings, (char *)NULL);
    if (v->keep_data) say(&w, "--train", in_folder(a, "work/keep.lfc"), (char *)NULL);
    if (a->given->config.search && lin_find_named(a->phones, NULL, NULL, phones_lm, lm, sizeof lm, NULL) == LIN_OK && *lm) {
        snprintf(compared, sizeof compared, "mmi=0.9,mmi-lm=%s", lm); // as in the training of the installed models
        say(&w, "--set", compared, (char *)NULL);
    }
    if (a->given->config.causal) say(&w, "--join-part", "0.5", (char *)NULL); // streams continue over pauses
    if (a->given->stored) say(&w, "--half", (char *)NULL);
    if (*a->given->license) say(&w, "--license", a->given->license, (char *)NULL);
    if (v->quiet) say(&w, "-q", (char *)NULL);
    run(a, &lin_command_train, &w, 0);
    const char *best = in_folder(a, "work/run/best.safetensors"), *rounded = in_folder(a, "work/run/eight-bits.safetensors");
    snprintf(a->best, sizeof a->best, "%s", a->given->eight_bits ? rounded : best);
    if (!a->given->eight_bits) return;
    w.n = 0;
    say(&w, best, "--output", rounded, (char *)NULL);
    run(a, &lin_command_quantise, &w, 0);
}

/* ---- what is kept ---------------------------------------------------------------------------------------------------------- */

static void put_rate(lin_buffer *out, double rate)
{
    const size_t from = out->n;
    if (rate >= 0) lin_buffer_fixed(out, rate, 1);
    else lin_buffer_char(out, '-');
    lin_buffer_pad(out, from, 12, 1);
}

static void put_row(lin_buffer *out, const char *what, double before, double after)
{
    const size_t from = out->n;
    lin_buffer_text(out, what);
    lin_buffer_pad(out, from, 24, 0);
    put_rate(out, before);
    put_rate(out, after);
    lin_buffer_char(out, '\n');
}

// The results, on standard output and in a file of the folder.
static lin_status report(const adaptation *a, const version *before, const version *after, lin_error *err)
{
    const int trained = strcmp(after->model, before->model) != 0;
    lin_buffer out = {0};
    lin_buffer_format(&out, "%ld words of %d held-out utterances", a->data.held_words, a->data.holdout.held);
    lin_buffer_text(&out, "\n\n                              before       after\n");
    put_row(&out, "phonemes, PER in %", before->per, after->per);
    put_row(&out, "words, WER in %", before->wer, after->wer);
    lin_buffer_text(&out, "\nmodel: ");
    lin_buffer_text(&out, trained ? "adapted\n"
                          : a->v->lr > 0 ? "the one that was given: training made it no better on the held-out utterances\n"
                                         : "the one that was given\n");
    if (a->v->text)
        lin_buffer_text(&out, after->lm == a->mixed ? "language model: mixed with the text\n"
                                                    : "language model: the one that was given: mixed it was no better\n");
    // "./", as the name of a folder may be the code of a language.
    char folder[LONGEST_PATH + 2];
    snprintf(folder, sizeof folder, "%s%s", strchr(a->v->folder, '/') ? "" : "./", a->v->folder);
    lin_buffer_text(&out, "\nlinnet transcribe --words --language ");
    lin_buffer_shell(&out, folder);
    lin_buffer_text(&out, " FILE\n");
    lin_status status = lin_buffer_status(&out, err);
    if (status == LIN_OK) status = lin_file_write_all(in_folder(a, "results.txt"), out.data, out.n, err);
    if (status == LIN_OK) status = lin_buffer_write(&out, stdout, "standard output", err);
    lin_buffer_free(&out);
    return status;
}

static void keep(adaptation *a, const char *from, const char *name)
{
    if (*from && is_well(a)) failed(a, copy_file(from, in_folder(a, name), &a->err));
}

// Makes the folder one of a language: it gets all files that were used.
static void fill_folder(adaptation *a, const version *kept)
{
    static const char *const rules[] = {"words.g2p", NULL}, *const marks[] = {"words.punctuation", NULL};
    const struct {
        const char *given, *variable, *const *names;
    } files[] = {{a->v->g2p, "LINNET_G2P", rules}, {NULL, "LINNET_PUNCTUATION", marks}};
    char path[LONGEST_PATH];
    keep(a, kept->model, "default.safetensors");
    if (!*a->mixed || kept->lm != a->mixed) keep(a, a->lm, "words.lm");
    if (!*a->words) keep(a, a->own_words, "added.dict");
    if (!is_well(a)) return;
    failed(a, lin_find_lexicon(a->phones, a->v->lexicon, path, sizeof path, &a->err));
    if (is_well(a)) keep(a, path, is_packed_file(path) ? "words.dict.gz" : "words.dict");
    for (size_t i = 0; i < sizeof files / sizeof *files && is_well(a); i++) {
        failed(a, lin_find_named(a->phones, files[i].given, files[i].variable, files[i].names, path, sizeof path, &a->err));
        keep(a, path, files[i].names[0]);
    }
    if (is_well(a)) failed(a, lin_find_numbers(a->phones, NULL, path, sizeof path, &a->err));
    keep(a, path, "numbers.txt");
    if (lin_find_phones(path, sizeof path)) keep(a, path, "phones.txt");
}

// Keeps what is better, one part after the other: the language model, then the network.
static void choose(adaptation *a)
{
    version before = {.what = "before", .model = a->model, .lm = a->v->lm, .per = -1}, after = before, next;
    make_reference(a);
    before.per = measure(a, &before, 0);
    before.wer = measure(a, &before, 1);
    after = before;
    if (*a->words || *a->mixed) {
        next = before;
        next.what = "lm";
        next.words = *a->words ? a->words : NULL;
        next.lm = *a->mixed ? a->mixed : a->v->lm;
        next.wer = measure(a, &next, 1);
        if (next.wer <= before.wer) {
            after = next;
        } else if (next.words) {
            // Keep the requested words, with the original language model.
            after.what = "words";
            after.words = next.words;
            after.wer = measure(a, &after, 1);
        }
        if (*a->mixed && after.lm != a->mixed && is_well(a)) remove(a->mixed);
    }
    if (*a->best && is_well(a) && access(a->best, F_OK) == 0) {
        next = after;
        next.what = "after";
        next.model = a->best;
        next.per = measure(a, &next, 0);
        next.wer = measure(a, &next, 1);
        if (next.per < after.per && next.wer <= after.wer) after = next;
    }
    if (!is_well(a)) return;
    fill_folder(a, &after);
    if (is_well(a)) failed(a, report(a, &before, &after, &a->err));
}

static int run_adapt(lin_parsed *parsed)
{
    const adapt_values *v = parsed->values;
    adaptation a = {.v = v};
    snprintf(a.threads, sizeof a.threads, "%d", v->threads);
    lin_status status = look_at_model(&a, &a.err);
    if (status == LIN_OK) status = check_folder(&a, &a.err);
    if (status == LIN_OK) status = check_inputs(&a, &a.err);
    if (status == LIN_OK) status = divide(&a, &a.err);
    failed(&a, status);
    mix_lm(&a);
    extend_lexicon(&a);
    if (v->lr > 0 && is_well(&a)) {
        prepare(&a, in_folder(&a, "work/train"), "/", in_folder(&a, "work/train.lfc"));
        prepare(&a, in_folder(&a, "work/heldout"), "/", in_folder(&a, "work/heldout.lfc"));
        if (v->keep_data) prepare(&a, v->keep_data, NULL, in_folder(&a, "work/keep.lfc"));
        train(&a);
    }
    choose(&a);
    if (!is_well(&a) && a.has_begun && access(in_folder(&a, "work"), F_OK) == 0)
        lin_complain("what was made so far is in %s; adapt does not resume it: remove it, or name another folder",
                     in_folder(&a, "work"));
    lin_phones_destroy(a.phones);
    lin_model_destroy(a.given);
    return a.exit_status;
}

const lin_command lin_command_adapt = {
    .name = "adapt",
    .operands = "",
    .summary = "fit a model, its language model and its lexicon to your speech and texts",
    .description =
        "Trains a copy of the model on the speech of --data in small steps, mixes the language model with one of --text, adds "
        "the words of --words and of the text to the lexicon, and says how many phonemes and words are wrong before and after, "
        "on a part of the data that was held out. A part that is no better is not kept, so the folder never has a model that is "
        "worse than the one it was made from. It runs other commands, which it prints, so that each step can be repeated by "
        "hand.\n\n"
        "The folder has all files of a language (docs/languages.md), and --language of every command takes it: "
        "default.safetensors, words.lm, added.dict with the words that were added, and the lexicon and rules that were used. It "
        "also gets results.txt with the rates, and a folder work, which can be deleted. docs/adapting.md says what to do first.",
    .examples = "  linnet adapt --data corpus/train --text text.txt --words names.txt -o exp/adapted\n"
                "  linnet adapt --data corpus/train --keep-data corpus/dev -o exp/kept\n"
                "  linnet transcribe --words --language exp/adapted talk.flac",
    .options = options,
    .values_size = sizeof(adapt_values),
    .max_operands = 0,
    .run = run_adapt,
};
