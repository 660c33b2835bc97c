// cmd_validate.c - linnet validate: what is wrong with the sounds, texts and words of a corpus, before anything is trained on it.

#include "train/cmd_validate.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "align/textgrid.h"
#include "app/commands.h"
#include "app/inputs.h"
#include "app/shared_options.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "base/unicode.h"

static const lin_option options[] = {
    LIN_LANGUAGE_ROW(lin_validate_values, language),
    LIN_DICTIONARY_ROW(lin_validate_values, lexicon),
    LIN_ADD_LEXICON_ROW(lin_validate_values, add_lexicon, ""),
    LIN_PHONE_SET_ROW(lin_validate_values, phones),
    LIN_G2P_ROW(lin_validate_values, g2p),
    LIN_NUMBERS_ROW(lin_validate_values, numbers),
    {.name = "model", .letter = 'm', .type = LIN_OPTION_FILE, .at = offsetof(lin_validate_values, model.model),
     .help = "Also align every text with its sound by this model, of the same phones, and name those that do not fit; its set of "
             "phones is used"},
    {.name = "device", .type = LIN_OPTION_STRING, .at = offsetof(lin_validate_values, model.device), .text = "auto",
     .value = "auto|cpu|cuda[:N]", .help = "Device for the network"},
    {.name = "audio-root", .type = LIN_OPTION_FOLDER, .at = offsetof(lin_validate_values, audio_root),
     .help = "Folder that the paths in wav.scp are relative to; if not given, the parent of DIR, or the folder of a list"},
    LIN_ALLOW_COMMANDS_ROW(lin_validate_values, allow_commands),
    {.name = "stack", .type = LIN_OPTION_INT, .at = offsetof(lin_validate_values, stack), .text = "0", .max = 16,
     .help = "Frames per step of the model to be trained: its steps must suffice for the phones of a text; 0: those of --model, "
             "else 3"},
    {.name = "oov", .type = LIN_OPTION_FILE, .writes = 1, .at = offsetof(lin_validate_values, oov),
     .help = "Write the words outside the lexicon, their counts and the phones that rules choose, to this file"},
    {.name = "most", .type = LIN_OPTION_INT, .at = offsetof(lin_validate_values, most), .text = "10", .max = INT_MAX,
     .value = "N", .help = "Lines of each kind; 0: all, as in JSON"},
    {.name = "json", .type = LIN_OPTION_FLAG, .at = offsetof(lin_validate_values, json), .help = "Write one JSON object"},
    {.name = "output", .letter = 'o', .type = LIN_OPTION_FILE, .writes = 1, .at = offsetof(lin_validate_values, output),
     .help = "Output file; if not given, standard output"},
    {.name = "jobs", .letter = 'j', .type = LIN_OPTION_INT, .at = offsetof(lin_validate_values, jobs), .text = "0", .min = 0,
     .max = 1024, .help = "Threads; 0: one per core"},
    {.name = "quiet", .letter = 'q', .type = LIN_OPTION_FLAG, .at = offsetof(lin_validate_values, quiet), .help = "No progress"},
    {.type = LIN_OPTION_END},
};

/* ---- what may be found ----------------------------------------------------------------------------------------------------- */

static const struct {
    const char *key, *title;
    int is_note; // it is told, and nothing is wrong
} kinds[LIN_FINDINGS] = {
    [LIN_FINDING_NO_TEXT] = {"no_text", "sound without text", 0},
    [LIN_FINDING_NO_SOUND] = {"no_sound", "text without sound", 0},
    [LIN_FINDING_REPEATED] = {"repeated", "names that are there twice", 0},
    [LIN_FINDING_UNREADABLE] = {"unreadable", "sound that cannot be read", 0},
    [LIN_FINDING_INCOMPLETE] = {"incomplete", "sound that is incomplete", 0},
    [LIN_FINDING_EMPTY] = {"empty", "empty or silent sound", 0},
    [LIN_FINDING_CLIPPED] = {"clipped", "clipped sound", 0},
    [LIN_FINDING_BAD_TEXT] = {"bad_text", "text that cannot be read as words", 0},
    [LIN_FINDING_NO_PHONES] = {"no_pronunciation", "words that neither the lexicon nor rules pronounce", 0},
    [LIN_FINDING_FOREIGN] = {"foreign", "too many words outside the lexicon", 0},
    [LIN_FINDING_TOO_SHORT] = {"too_short", "sound too short for its text", 0},
    [LIN_FINDING_SAME_SOUND] = {"same_sound", "the same sound twice", 0},
    [LIN_FINDING_SPEAKERS] = {"speakers", "speakers that are there twice", 0},
    [LIN_FINDING_NO_FIT] = {"no_fit", "text that does not fit its sound", 0},
    [LIN_FINDING_WORDS] = {"unknown_words", "words outside the lexicon, by rules", 1},
    [LIN_FINDING_UNSEEN] = {"unseen_phones", "phones that no text has", 1},
};

void lin_finding_note(lin_validation *d, lin_finding k, int of_set, const char *name, const char *fmt, ...)
{
    lin_buffer *list = &d->lists[k];
    char more[1200] = "";
    va_list args;
    va_start(args, fmt);
    vsnprintf(more, sizeof more, fmt, args);
    va_end(args);
    if (of_set >= 0 && d->n_sets > 1) lin_buffer_format(list, "%s ", d->sets[of_set].name);
    lin_buffer_text(list, name);
    lin_buffer_char(list, '\0');
    lin_buffer_text(list, more);
    lin_buffer_char(list, '\0');
    d->counts[k]++;
}

// The next finding of a list from *at on; NULL: there are no more.
static const char *next_finding(const lin_buffer *list, size_t *at, const char **more)
{
    if (*at >= list->n || list->failed) return NULL;
    const char *name = list->data + *at;
    *more = name + strlen(name) + 1;
    *at = (size_t)(*more - list->data) + strlen(*more) + 1;
    return name;
}

// In one line.
static void put_line(lin_buffer *out, const char *text)
{
    for (; *text; text++) lin_buffer_char(out, (unsigned char)*text < ' ' ? ' ' : *text);
}

/* ---- lists that do not fit together ---------------------------------------------------------------------------------------- */

// The names that the lines of a file begin with; those that are repeated are noted. Their lines are left out of `kept`, and those
// that `known` lacks, if it is given.
static lin_status survey(lin_validation *d, int of_set, const char *text, size_t n, const lin_symbols *known, lin_symbols *names,
                         lin_buffer *kept, lin_finding missing, lin_error *err)
{
    lin_lines lines;
    lin_status status = LIN_OK;
    lin_lines_begin(&lines, text, n);
    while (status == LIN_OK && lin_lines_next(&lines)) {
        const char *at = lines.text, *name;
        size_t n_name;
        int index;
        if (!lin_field_next(&at, lines.text + lines.n, &name, &n_name)) continue;
        const int before = names->n;
        status = lin_symbols_add(names, name, n_name, &index, err);
        if (status != LIN_OK) break;
        if (names->n == before) {
            if (missing != LIN_FINDINGS)
                lin_finding_note(d, LIN_FINDING_REPEATED, of_set, lin_symbols_text(names, index), "line %d", lines.number);
            continue;
        }
        if (known && lin_symbols_find(known, name, n_name) < 0) {
            if (missing != LIN_FINDINGS)
                lin_finding_note(d, missing, of_set, lin_symbols_text(names, index), "line %d", lines.number);
            continue;
        }
        lin_buffer_bytes(kept, lines.text, lines.n);
        lin_buffer_char(kept, '\n');
    }
    return status == LIN_OK ? lin_buffer_status(kept, err) : status;
}

static lin_status read_part(const char *folder, const char *name, char *path, size_t size, char **text, size_t *n,
                            lin_error *err)
{
    struct stat st;
    snprintf(path, size, "%s/%s", folder, name);
    *text = NULL;
    *n = 0;
    return stat(path, &st) == 0 ? lin_text_read(path, text, n, err) : LIN_OK;
}

static lin_status load_list(lin_validation *d, int index, const char *path, lin_error *err)
{
    const lin_datadir_options how = {.audio_root = d->v->audio_root, .allow_commands = d->v->allow_commands};
    return lin_datadir_load(path, &how, &d->sets[index].dir, err);
}

// An utterance of a sound with a text beside it. speaker "": unknown.
static lin_status add_beside(lin_validated_set *set, const lin_input *sound, const char *id, const char *speaker, lin_part part,
                             const char *text, size_t n, lin_error *err)
{
    lin_status status = lin_grow_int(&set->beside, &set->capacity, (int64_t)set->n + 1, sizeof *set->beside, "a corpus", err);
    if (status != LIN_OK) return status;
    lin_utterance u = {.id = lin_inputs_own(&set->inputs, lin_strdup(id)), .cut = sound->cut};
    u.speaker = *speaker ? lin_inputs_own(&set->inputs, lin_strdup(speaker)) : u.id;
    u.text = lin_inputs_own(&set->inputs, lin_text_copy(text, n));
    u.cut.part = part;
    if (!u.id || !u.speaker || !u.text) return lin_no_memory(err, "a corpus", n);
    set->beside[set->n++] = u;
    return LIN_OK;
}

// As in linnet align: each interval with words is an utterance, and several tiers are several speakers.
static lin_status add_intervals(lin_validated_set *set, const lin_input *sound, lin_textgrid *grid, lin_error *err)
{
    const int several = lin_textgrid_choose(grid) > 1;
    lin_status status = LIN_OK;
    for (int i = 0; i < grid->n_tiers && status == LIN_OK; i++) {
        const lin_tier *tier = &grid->tiers[i];
        char speaker[256], id[5000];
        snprintf(speaker, sizeof speaker, "%s", several ? lin_textgrid_text(grid, tier->name) : sound->speaker);
        for (int k = 0; tier->chosen && k < tier->n && status == LIN_OK; k++) {
            const lin_textgrid_interval *v = &grid->intervals[tier->first + k];
            const char *text = lin_textgrid_text(grid, v->text);
            lin_spelling word;
            lin_error why;
            size_t at = 0;
            if (lin_spelling_next(text, strlen(text), &at, &word, &why) == LIN_OK && !word.n) continue; // [laughs] alone
            const lin_part part = {fmax(v->start_s, 0), fmin(v->end_s, 1e9)};
            snprintf(id, sizeof id, "%s%s%s-%07.0f", sound->id, several ? "-" : "", several ? speaker : "", 1000 * part.start_s);
            status = add_beside(set, sound, id, speaker, part, text, strlen(text), err);
        }
    }
    return status;
}

static lin_status take_beside(lin_validation *d, int index, const lin_input *sound, const char *path, lin_error *err)
{
    lin_validated_set *set = &d->sets[index];
    const int before = set->n;
    char *text, *own = NULL;
    const char *clean = "";
    size_t n;
    lin_textgrid grid = {0};
    lin_error why;
    lin_status status = lin_guard_reads(path, err), read = lin_text_read(path, &text, &n, &why);
    if (read == LIN_OK) read = lin_unicode_clean(text, n, path, LIN_UNICODE_ANY, &own, &clean, &n, &why);
    if (read == LIN_OK && lin_corpus_is_textgrid(path)) read = lin_textgrid_parse(clean, n, path, &grid, &why);
    else if (read == LIN_OK && memchr(clean, 0, n))
        read = lin_fail(&why, LIN_FORMAT, "%s: a NUL byte; is this a text file?", path);
    if (read == LIN_NO_MEMORY && status == LIN_OK) status = lin_fail_as(err, &why);
    else if (read != LIN_OK) lin_finding_note(d, LIN_FINDING_BAD_TEXT, index, sound->id, "%s", why.message);
    if (status == LIN_OK) status = add_intervals(set, sound, &grid, err);
    if (status == LIN_OK && set->n == before) {
        const int whole = read == LIN_OK && !lin_corpus_is_textgrid(path);
        status = add_beside(set, sound, sound->id, sound->speaker, (lin_part){0, 0}, clean, whole ? n : 0, err);
    }
    lin_textgrid_free(&grid);
    lin_free(own);
    lin_free(text);
    return status;
}

// Paths, each with its NUL.
static void note_paths(lin_validation *d, lin_finding k, const lin_buffer *paths)
{
    for (size_t at = 0; at < paths->n && !paths->failed; at += strlen(paths->data + at) + 1)
        lin_finding_note(d, k, -1, paths->data + at, "%s", "");
}

static lin_status load_beside(lin_validation *d, int index, const char *path, lin_error *err)
{
    lin_inputs *sounds = &d->sets[index].inputs;
    lin_corpus corpus = {0};
    lin_symbols names = {0};
    lin_status status = lin_corpus_gather(&corpus, sounds, &(lin_list){&path, 1}, NULL, err);
    if (status == LIN_OK && !sounds->n)
        status = lin_fail(err, LIN_INVALID, "%s: there is no wav.scp, and no sound with a text beside it (the same name with "
                                            ".lab, .txt or .TextGrid)", path);
    for (int i = 0; i < sounds->n && status == LIN_OK; i++) {
        const lin_input *sound = &sounds->items[i];
        const int before = names.n;
        int k;
        status = lin_symbols_add(&names, sound->id, strlen(sound->id), &k, err);
        if (names.n == before) lin_finding_note(d, LIN_FINDING_REPEATED, index, sound->id, "%s", sound->path);
        if (status == LIN_OK) status = take_beside(d, index, sound, sound->text, err);
    }
    note_paths(d, LIN_FINDING_NO_TEXT, &corpus.no_text);
    note_paths(d, LIN_FINDING_NO_SOUND, &corpus.no_sound);
    lin_symbols_free(&names);
    lin_corpus_free(&corpus);
    return status;
}

// A folder whose wav.scp, text and utt2spk do not agree is read as far as they do; one with segments must agree. One without any
// of them has texts beside its sounds.
static lin_status load_folder(lin_validation *d, int index, const char *path, lin_error *err)
{
    enum { N = 3 }; // of lin_datadir_names, in their order
    char paths[N][4096], root[4096], *texts[N] = {NULL};
    size_t sizes[N] = {0};
    lin_symbols names[N] = {{0}};
    lin_buffer kept[N] = {{0}};
    lin_status status = LIN_OK;
    const int before = d->counts[LIN_FINDING_NO_SOUND] + d->counts[LIN_FINDING_REPEATED];
    struct stat st;
    snprintf(root, sizeof root, "%s/segments", path);
    if (stat(root, &st) == 0) return load_list(d, index, path, err);
    for (int i = 0; i < N && status == LIN_OK; i++)
        status = read_part(path, lin_datadir_names[i], paths[i], sizeof paths[i], &texts[i], &sizes[i], err);
    if (status == LIN_OK && !texts[0] && !texts[1] && !texts[2]) {
        status = load_beside(d, index, path, err);
    } else if (status == LIN_OK && !texts[0]) {
        status = load_list(d, index, path, err); // it says what is missing
    } else if (status == LIN_OK) {
        status = survey(d, index, texts[0], sizes[0], NULL, &names[0], &kept[0], LIN_FINDING_NO_SOUND, err);
        if (status == LIN_OK && texts[1])
            status = survey(d, index, texts[1], sizes[1], &names[0], &names[1], &kept[1], LIN_FINDING_NO_SOUND, err);
        if (status == LIN_OK && texts[2])
            status = survey(d, index, texts[2], sizes[2], &names[0], &names[2], &kept[2], LIN_FINDINGS, err);
        if (status == LIN_OK && d->counts[LIN_FINDING_NO_SOUND] + d->counts[LIN_FINDING_REPEATED] == before) {
            status = load_list(d, index, path, err);
        } else if (status == LIN_OK) {
            lin_datadir_file files[LIN_DATADIR_FILES] = {{0}};
            for (int i = 0; i < N; i++)
                files[i] = (lin_datadir_file){paths[i], texts[i] ? (kept[i].data ? kept[i].data : "") : NULL, kept[i].n};
            snprintf(root, sizeof root, "%s/..", path);
            const lin_datadir_options how = {.audio_root = d->v->audio_root ? d->v->audio_root : root,
                                             .allow_commands = d->v->allow_commands};
            status = lin_datadir_parse(files, &how, &d->sets[index].dir, err);
        }
    }
    for (int i = 0; i < N; i++) {
        lin_symbols_free(&names[i]);
        lin_buffer_free(&kept[i]);
        lin_free(texts[i]);
    }
    return status;
}

static lin_status load(lin_validation *d, const lin_list *operands, lin_error *err)
{
    d->n_sets = operands->count;
    d->sets = lin_calloc((size_t)d->n_sets, sizeof *d->sets);
    if (!d->sets) return lin_no_memory(err, "a corpus", 0);
    lin_status status = LIN_OK;
    for (int i = 0; i < d->n_sets && status == LIN_OK; i++) {
        d->sets[i].name = operands->items[i];
        status = (lin_is_folder(operands->items[i]) ? load_folder : load_list)(d, i, operands->items[i], err);
        if (status == LIN_OK && d->sets[i].dir) d->sets[i].n = lin_datadir_count(d->sets[i].dir);
        d->n += d->sets[i].n;
    }
    if (status != LIN_OK) return status;
    d->utterances = lin_calloc((size_t)d->n, sizeof *d->utterances);
    if (!d->utterances) return lin_no_memory(err, "a corpus", (size_t)d->n * sizeof *d->utterances);
    for (int i = 0, at = 0; i < d->n_sets; i++)
        for (int k = 0; k < d->sets[i].n; k++) {
            const lin_validated_set *set = &d->sets[i];
            d->utterances[at++] = (lin_validated){.u = set->dir ? lin_datadir_at(set->dir, k) : &set->beside[k], .set = i};
        }
    return LIN_OK;
}

/* ---- speakers -------------------------------------------------------------------------------------------------------------- */

// Speakers of several sets, and those whose names differ only in case.
static lin_status compare_speakers(lin_validation *d, lin_error *err)
{
    char *told = lin_calloc((size_t)d->n, 1);
    lin_symbols by_set = {0}; // "SET NAME", to count those of each set
    lin_status status = told ? LIN_OK : lin_no_memory(err, "speakers", (size_t)d->n);
    for (int i = 0; i < d->n && status == LIN_OK; i++) {
        const lin_validated *u = &d->utterances[i];
        const char *name = u->u->speaker;
        char lower[256], of_set[300];
        int index;
        const int before = d->speakers.n, before_set = by_set.n;
        if (name == u->u->id) continue; // its own, as no list names any
        const size_t n = lin_unicode_lower_text(lower, name, strlen(name));
        const int n_of_set = snprintf(of_set, sizeof of_set, "%d %.*s", u->set, (int)n, lower);
        status = lin_symbols_add(&by_set, of_set, (size_t)n_of_set, &index, err);
        d->sets[u->set].speakers += by_set.n > before_set;
        if (status == LIN_OK) status = lin_symbols_add(&d->speakers, lower, n, &index, err);
        if (status == LIN_OK)
            status = lin_grow(&d->first_of, &d->speakers_capacity, (size_t)d->speakers.n, sizeof *d->first_of, "speakers", err);
        if (status != LIN_OK) break;
        if (d->speakers.n > before) {
            d->first_of[index] = i;
            continue;
        }
        const lin_validated *first = &d->utterances[d->first_of[index]];
        if (told[index]) continue;
        const char *other = first->u->speaker;
        if (first->set != u->set)
            lin_finding_note(d, LIN_FINDING_SPEAKERS, -1, name, "in %s and %s", d->sets[first->set].name, d->sets[u->set].name);
        else if (strcmp(other, name) != 0) lin_finding_note(d, LIN_FINDING_SPEAKERS, u->set, name, "also spelled %s", other);
        else continue;
        told[index] = 1;
    }
    lin_symbols_free(&by_set);
    lin_free(told);
    return status;
}

/* ---- the report ------------------------------------------------------------------------------------------------------------ */

static int problems(const lin_validation *d)
{
    int n = 0;
    for (int k = 0; k < LIN_FINDINGS; k++) n += !kinds[k].is_note && d->counts[k] > 0;
    return n;
}

static void put_text(const lin_validation *d, lin_buffer *out)
{
    for (int i = 0; i < d->n_sets; i++) {
        put_line(out, d->sets[i].name);
        lin_buffer_format(out, ": %d utterances, %.1f s, %d speaker%s\n", d->sets[i].n, d->sets[i].seconds,
                          d->sets[i].speakers, d->sets[i].speakers == 1 ? "" : "s");
    }
    for (int i = 0; i < d->rates.n; i++)
        lin_buffer_format(out, "%s%s: %ld", i ? ", " : "", lin_symbols_text(&d->rates, i), d->rate_counts[i]);
    lin_buffer_format(out, "%s%ld of %ld words (%.2f %%) are not in %s; its phones: %d\n", d->rates.n ? "\n" : "", d->n_unknown,
                      d->n_words, d->n_words ? 100.0 * (double)d->n_unknown / (double)d->n_words : 0.0, d->wording.path,
                      lin_phones_count(d->wording.phones) - 1);
    for (int k = 0; k < LIN_FINDINGS; k++) {
        const char *name, *more;
        size_t at = 0;
        int told = 0;
        if (!d->counts[k]) continue;
        lin_buffer_format(out, "%s%s: %d", kinds[k].is_note ? "note: " : "", kinds[k].title, d->counts[k]);
        lin_buffer_text(out, k == LIN_FINDING_UNSEEN ? " (" : "\n");
        for (; k == LIN_FINDING_UNSEEN && (name = next_finding(&d->lists[k], &at, &more)); told++) // in one line
            lin_buffer_format(out, "%s%s", told ? " " : "", name);
        if (k == LIN_FINDING_UNSEEN) lin_buffer_text(out, ")\n");
        for (; (!d->v->most || told < d->v->most) && (name = next_finding(&d->lists[k], &at, &more)); told++) {
            lin_buffer_text(out, "  ");
            put_line(out, name);
            lin_buffer_text(out, *more ? "  " : "");
            put_line(out, more);
            lin_buffer_char(out, '\n');
        }
        if (told < d->counts[k]) lin_buffer_format(out, "  and %d more; --most 0 lists them all\n", d->counts[k] - told);
    }
    if (problems(d)) lin_buffer_format(out, "%d kind%s of problems\n", problems(d), problems(d) == 1 ? "" : "s");
    else lin_buffer_text(out, "nothing is wrong\n");
}

static void put_json(const lin_validation *d, lin_buffer *out)
{
    lin_buffer_text(out, "{\"sets\": [");
    for (int i = 0; i < d->n_sets; i++) {
        lin_buffer_text(out, i ? ", {\"name\": " : "{\"name\": ");
        lin_buffer_json(out, d->sets[i].name, strlen(d->sets[i].name));
        lin_buffer_format(out, ", \"utterances\": %d, \"seconds\": ", d->sets[i].n);
        lin_buffer_fixed(out, d->sets[i].seconds, 3);
        lin_buffer_format(out, ", \"speakers\": %d}", d->sets[i].speakers);
    }
    lin_buffer_text(out, "], \"rates\": {");
    for (int i = 0; i < d->rates.n; i++)
        lin_buffer_format(out, "%s\"%s\": %ld", i ? ", " : "", lin_symbols_text(&d->rates, i), d->rate_counts[i]);
    lin_buffer_format(out, "}, \"words\": %ld, \"unknown\": %ld", d->n_words, d->n_unknown);
    for (int k = 0; k < LIN_FINDINGS; k++) {
        const char *name, *more;
        size_t at = 0;
        lin_buffer_format(out, ", \"%s\": [", kinds[k].key);
        for (int i = 0; (name = next_finding(&d->lists[k], &at, &more)); i++) {
            lin_buffer_text(out, i ? ", {\"name\": " : "{\"name\": ");
            lin_buffer_json(out, name, strlen(name));
            lin_buffer_text(out, ", \"more\": ");
            lin_buffer_json(out, more, strlen(more));
            lin_buffer_char(out, '}');
        }
        lin_buffer_char(out, ']');
    }
    lin_buffer_format(out, ", \"problems\": %d}\n", problems(d));
}

static lin_status report(const lin_validation *d, lin_error *err)
{
    lin_buffer out = {0};
    (d->v->json ? put_json : put_text)(d, &out);
    lin_status status = lin_buffer_status(&out, err);
    for (int k = 0; k < LIN_FINDINGS && status == LIN_OK; k++) status = lin_buffer_status(&d->lists[k], err);
    if (status == LIN_OK) status = lin_output_write(d->v->output, 0, &out, err);
    lin_buffer_free(&out);
    return status;
}

static void release(lin_validation *d)
{
    for (int i = 0; i < d->n_threads && d->aligners; i++) lin_aligner_destroy(d->aligners[i]);
    for (int i = 0; i < d->n_threads && d->alignments; i++) lin_alignment_free(&d->alignments[i]);
    if (d->has_model) lin_recognizer_close(&d->recognizer);
    if (d->wording.phones) lin_wording_close(&d->wording);
    for (int i = 0; i < d->n_sets && d->sets; i++) {
        lin_datadir_destroy(d->sets[i].dir);
        lin_inputs_free(&d->sets[i].inputs);
        lin_free(d->sets[i].beside);
    }
    for (int k = 0; k < LIN_FINDINGS; k++) lin_buffer_free(&d->lists[k]);
    lin_symbols_free(&d->unknown);
    lin_symbols_free(&d->speakers);
    lin_symbols_free(&d->sounds);
    lin_symbols_free(&d->rates);
    void *blocks[] = {d->aligners, d->alignments, d->sets,     d->utterances, d->slots,      d->words,
                      d->labels,   d->seen,       d->first_of, d->sound_of,   d->rate_counts};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) lin_free(blocks[i]);
}

static lin_status validate(lin_validation *d, const lin_list *operands, lin_error *err)
{
    const lin_validate_values *v = d->v;
    const lin_warnings warnings = lin_complaints(v->quiet);
    const char *phones = v->model.model ? v->model.model : v->phones;
    const lin_wording_files files = {
        .dictionary = v->lexicon, .added = v->add_lexicon, .phones = phones, .g2p = v->g2p, .numbers = v->numbers};
    lin_status status = lin_wording_open(&d->wording, &files, &warnings, err);
    if (status == LIN_OK) status = load(d, operands, err);
    for (int i = 0; i < d->n && status == LIN_OK; i++)
        if (!d->utterances[i].u->cut.is_command) status = lin_guard_reads(d->utterances[i].u->cut.path, err);
    if (status == LIN_OK && v->oov) status = lin_guard_writes(v->oov, err);
    if (status == LIN_OK && v->output && strcmp(v->output, "-") != 0) status = lin_guard_writes(v->output, err);
    if (status == LIN_OK) d->seen = lin_calloc((size_t)lin_phones_count(d->wording.phones), 1);
    if (status == LIN_OK && !d->seen) status = lin_no_memory(err, "phones", 0);
    for (int i = 0; i < d->n && status == LIN_OK; i++) status = lin_validation_read_text(d, &d->utterances[i], err);
    if (status == LIN_OK) status = compare_speakers(d, err);
    if (status == LIN_OK) status = lin_validation_listen(d, err);
    if (status == LIN_OK) status = lin_validation_note_words(d, err);
    return status == LIN_OK ? report(d, err) : status;
}

static int run(lin_parsed *parsed)
{
    const lin_validate_values *v = parsed->values;
    lin_validation d = {.v = v};
    lin_error err = {0};
    if (v->phones && v->model.model) return lin_misuse(parsed, "--phones and --model exclude each other: the model has phones");
    const lin_status status = validate(&d, &parsed->operands, &err);
    const int n = problems(&d);
    release(&d);
    if (status != LIN_OK) return lin_give_up(&err);
    return n ? LIN_EXIT_FAILED : LIN_EXIT_OK;
}

const lin_command lin_command_validate = {
    .name = "validate",
    .operands = "DIR...",
    .summary = "check the sounds, texts and words of a corpus before training on it",
    .description =
        "Reads data directories or lists as linnet prepare does, or folders of sounds with texts beside them as linnet align "
        "does, and reports: sound without text and text "
        "without sound; sound that cannot be read, is incomplete, empty, silent or clipped, and the same sound under two names; "
        "rates; texts that are no words; words outside the lexicon with their counts, and phones that no text has; sound that is "
        "too short for its text; speakers in several of the sets, or spelled in two ways. With --model every text is aligned "
        "with its sound, and those that do not fit are named.\n\n"
        "The exit status is 1 if something is wrong. Words that rules pronounce and phones that no text has are notes only.",
    .examples = "  linnet validate train dev test --lexicon my.dict --g2p my.g2p\n"
                "  linnet validate train --lexicon my.dict -m my.safetensors --json -o report.json",
    .options = options,
    .values_size = sizeof(lin_validate_values),
    .min_operands = 1,
    .max_operands = -1,
    .run = run,
};
