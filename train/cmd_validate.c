// cmd_validate.c - linnet validate: checks the sounds, texts and words of a corpus before training on it.

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "align/aligner.h"
#include "align/textgrid.h"
#include "app/common.h"
#include "app/inputs.h"
#include "app/shared_options.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/symbols.h"
#include "base/textfile.h"
#include "base/unicode.h"
#include "frontend/audio.h"
#include "linnet/datadir.h"
#include "linnet/wording.h"
#include "train/batches.h"

#define MOST_UNKNOWN 0.2 // share of the words; with more, the lexicon is probably of another language, as in linnet prepare
#define SHORTEST_S 0.1     // of a sound that is not empty
#define FAINTEST 0.001F    // peak of a sound that is not silent: -60 dBFS
#define CLIP_LEVEL 0.98F   // samples at least this large
#define CLIP_RUN 3         // fewest of them in a row that count
#define CLIP_SHARE 0.001   // a sound with this share of such samples is clipped
#define FASTEST 25.0       // phones in a second; fast speech has 20

typedef struct validate_values {
    lin_model_values model;
    const char *lexicon, *add_lexicon, *phones, *g2p, *numbers, *audio_root, *oov, *output;
    int allow_commands;
    int stack, most, json, jobs, quiet;
    const char *language;
} validate_values;

static const lin_option options[] = {
    LIN_LANGUAGE_ROW(validate_values, language),
    LIN_DICTIONARY_ROW(validate_values, lexicon),
    LIN_ADD_LEXICON_ROW(validate_values, add_lexicon, ""),
    LIN_PHONE_SET_ROW(validate_values, phones),
    LIN_G2P_ROW(validate_values, g2p),
    LIN_NUMBERS_ROW(validate_values, numbers),
    {.name = "model", .letter = 'm', .type = LIN_OPTION_FILE, .at = offsetof(validate_values, model.model),
     .choices = "default|offline|small",
     .help = "Also align every text with its sound by this model (a file, default, offline or small), and name the texts that do "
             "not fit. The model's phones are used"},
    LIN_DEVICE_ROW(offsetof(validate_values, model.device)),
    LIN_AUDIO_ROOT_ROW(offsetof(validate_values, audio_root)),
    LIN_ALLOW_COMMANDS_ROW(validate_values, allow_commands),
    {.name = "stack", .type = LIN_OPTION_INT, .at = offsetof(validate_values, stack), .text = "0", .max = 16,
     .help = "Frames per step of the model that will be trained: a sound needs enough steps for the phones of its text; 0: as in "
             "--model, else 3"},
    {.name = "oov", .type = LIN_OPTION_FILE, .writes = 1, .at = offsetof(validate_values, oov),
     .help = "Write the words outside the lexicon, their counts and the phones that rules choose, to this file"},
    {.name = "most", .type = LIN_OPTION_INT, .at = offsetof(validate_values, most), .text = "10", .max = INT_MAX,
     .value = "N", .help = "Most lines of each kind that are printed; 0: all, as in JSON"},
    LIN_JSON_ROW(offsetof(validate_values, json), "Write one JSON object"),
    {.name = "output", .letter = 'o', .type = LIN_OPTION_FILE, .writes = 1, .at = offsetof(validate_values, output),
     .help = "Output file; if not given, standard output"},
    LIN_JOBS_ROW(offsetof(validate_values, jobs)),
    LIN_QUIET_ROW(offsetof(validate_values, quiet), "Print no progress"),
    {.type = LIN_OPTION_END},
};

/* ---- what may be found ----------------------------------------------------------------------------------------------------- */

// Kinds of findings.
typedef enum finding {
    NO_TEXT, NO_SOUND, REPEATED, UNREADABLE, INCOMPLETE, EMPTY, CLIPPED, BAD_TEXT, NO_PHONES, FOREIGN, TOO_SHORT, SAME_SOUND,
    SPEAKERS, NO_FIT, WORDS, UNSEEN, FINDINGS
} finding;

// Of one sound.
typedef struct measured {
    lin_status status;
    lin_error error;
    lin_audio_format format;
    int64_t frames;
    double clipped; // share of the samples
    float peak;
    uint64_t hash;
    char doubt[256]; // the model's
} measured;

typedef struct utterance {
    const lin_utterance *u;
    int set, n_labels, needed, is_used; // is_used: it has sound, and a text with a pronunciation
} utterance;

typedef struct corpus_set {
    const char *name;
    lin_datadir *dir;
    lin_utterance *beside; // [n]: of a folder with texts beside its sounds, where dir is NULL
    lin_inputs inputs;     // owns their strings
    int n, capacity;
    double seconds;
    int speakers; // 0: no list names any
} corpus_set;

typedef struct validation {
    const validate_values *v;
    corpus_set *sets;
    int n_sets;
    utterance *utterances;
    int n;
    lin_wording wording;
    lin_recognizer recognizer;
    int has_model;
    lin_aligner **aligners; // [threads]
    lin_alignment *alignments;
    int n_threads;
    measured *slots;
    lin_buffer lists[FINDINGS]; // of each: name, NUL, more, NUL; names of folders may have tabs
    int counts[FINDINGS];
    char *seen; // [V]
    lin_symbols speakers, sounds, rates;
    int *first_of, *sound_of; // [n]: of each speaker (TOLD: it was reported), of each sound, the first utterance
    long *rate_counts;        // [n]
    lin_progress progress;
} validation;

static const struct {
    const char *key, *title;
    int is_note; // reported, but does not fail the set
} kinds[FINDINGS] = {
    [NO_TEXT] = {"no_text", "sound without text", 0},
    [NO_SOUND] = {"no_sound", "text without sound", 0},
    [REPEATED] = {"repeated", "names that are there twice", 0},
    [UNREADABLE] = {"unreadable", "sound that cannot be read", 0},
    [INCOMPLETE] = {"incomplete", "sound that is incomplete", 0},
    [EMPTY] = {"empty", "empty or silent sound", 0},
    [CLIPPED] = {"clipped", "clipped sound", 0},
    [BAD_TEXT] = {"bad_text", "text that cannot be read as words", 0},
    [NO_PHONES] = {"no_pronunciation", "words that neither the lexicon nor rules pronounce", 0},
    [FOREIGN] = {"foreign", "too many words outside the lexicon", 0},
    [TOO_SHORT] = {"too_short", "sound too short for its text", 0},
    [SAME_SOUND] = {"same_sound", "the same sound twice", 0},
    [SPEAKERS] = {"speakers", "speakers that are there twice", 0},
    [NO_FIT] = {"no_fit", "text that does not fit its sound", 0},
    [WORDS] = {"unknown_words", "words outside the lexicon, by rules", 1},
    [UNSEEN] = {"unseen_phones", "phones that no text has", 1},
};

static void LIN_PRINTF(5, 6) note(validation *d, finding k, int of_set, const char *name, const char *fmt, ...)
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

enum { N_PARTS = LIN_DATADIR_SPEAKERS + 1 };

// One of wav.scp, text and utt2spk, by its number among lin_datadir_names.
typedef struct listing {
    char path[4096], *text; // text: NULL if there is no such file
    size_t n;
    lin_symbols names; // the first words of its lines
    lin_buffer kept;   // its lines without those that are left out
} listing;

// Collects the names, and notes repeated ones. Lines that repeat a name, or whose name `known` (if given) lacks, are left out.
static lin_status survey(validation *d, int of_set, listing *p, const lin_symbols *known, int notes, lin_error *err)
{
    lin_lines lines;
    lin_status status = LIN_OK;
    lin_lines_begin(&lines, p->text, p->n);
    while (status == LIN_OK && lin_lines_next(&lines)) {
        const char *at = lines.text, *name;
        size_t n_name;
        int index;
        if (!lin_field_next(&at, lines.text + lines.n, &name, &n_name)) continue;
        const int before = p->names.n;
        status = lin_symbols_add(&p->names, name, n_name, &index, err);
        if (status != LIN_OK) break;
        const int repeated = p->names.n == before, missing = known && lin_symbols_find(known, name, n_name) < 0;
        if ((repeated || missing) && notes)
            note(d, repeated ? REPEATED : NO_SOUND, of_set, lin_symbols_text(&p->names, index), "line %d", lines.number);
        if (repeated || missing) continue;
        lin_buffer_bytes(&p->kept, lines.text, lines.n);
        lin_buffer_char(&p->kept, '\n');
    }
    return status == LIN_OK ? lin_buffer_status(&p->kept, err) : status;
}

static lin_status load_list(validation *d, int index, const char *path, lin_error *err)
{
    const lin_datadir_options how = {.audio_root = d->v->audio_root, .allow_commands = d->v->allow_commands};
    return lin_datadir_load(path, &how, &d->sets[index].dir, err);
}

// An utterance of a sound with a text beside it. speaker "": unknown.
static lin_status add_beside(corpus_set *set, const lin_input *sound, const char *id, const char *speaker, lin_part part,
                             const char *text, size_t n, lin_error *err)
{
    LIN_TRY(lin_grow_int(&set->beside, &set->capacity, (int64_t)set->n + 1, sizeof *set->beside, "a corpus", err));
    lin_utterance u = {.id = lin_inputs_own(&set->inputs, lin_strdup(id)), .cut = sound->cut};
    u.speaker = *speaker ? lin_inputs_own(&set->inputs, lin_strdup(speaker)) : u.id;
    u.text = lin_inputs_own(&set->inputs, lin_text_copy(text, n));
    u.cut.part = part;
    if (!u.id || !u.speaker || !u.text) return lin_no_memory(err, "a corpus", n);
    set->beside[set->n++] = u;
    return LIN_OK;
}

// As in linnet align: each interval with words is an utterance, and several tiers are several speakers.
static lin_status add_intervals(corpus_set *set, const lin_input *sound, lin_textgrid *grid, lin_error *err)
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

static lin_status take_beside(validation *d, int index, const lin_input *sound, const char *path, lin_error *err)
{
    corpus_set *set = &d->sets[index];
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
    else if (read != LIN_OK) note(d, BAD_TEXT, index, sound->id, "%s", why.message);
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
static void note_paths(validation *d, finding k, const lin_buffer *paths)
{
    for (size_t at = 0; at < paths->n && !paths->failed; at += strlen(paths->data + at) + 1)
        note(d, k, -1, paths->data + at, "%s", "");
}

static lin_status load_beside(validation *d, int index, const char *path, lin_error *err)
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
        if (names.n == before) note(d, REPEATED, index, sound->id, "%s", sound->path);
        if (status == LIN_OK) status = take_beside(d, index, sound, sound->text, err);
    }
    note_paths(d, NO_TEXT, &corpus.no_text);
    note_paths(d, NO_SOUND, &corpus.no_sound);
    lin_symbols_free(&names);
    lin_corpus_free(&corpus);
    return status;
}

// The folder of parts that disagree, without the lines that are left out.
static lin_status load_kept(validation *d, int index, const char *path, const listing *parts, lin_error *err)
{
    char root[4096];
    lin_datadir_file files[LIN_DATADIR_FILES] = {{0}};
    for (int i = 0; i < N_PARTS; i++) {
        const lin_buffer *kept = &parts[i].kept;
        files[i] = (lin_datadir_file){parts[i].path, parts[i].text && !kept->data ? "" : kept->data, kept->n};
    }
    snprintf(root, sizeof root, "%s/..", path);
    const lin_datadir_options how = {.audio_root = d->v->audio_root ? d->v->audio_root : root,
                                     .allow_commands = d->v->allow_commands};
    return lin_datadir_parse(files, &how, &d->sets[index].dir, err);
}

// If wav.scp, text and utt2spk of a folder disagree, lines with names that are repeated or not in wav.scp are left out; with
// segments they must agree. A folder with none of these files has texts beside its sounds.
static lin_status load_folder(validation *d, int index, const char *path, lin_error *err)
{
    listing parts[N_PARTS] = {{.text = NULL}};
    char segments[4096];
    lin_status status = LIN_OK;
    const int before = d->counts[NO_SOUND] + d->counts[REPEATED];
    snprintf(segments, sizeof segments, "%s/segments", path);
    if (access(segments, F_OK) == 0) return load_list(d, index, path, err);
    for (int i = 0; i < N_PARTS && status == LIN_OK; i++) {
        listing *p = &parts[i];
        snprintf(p->path, sizeof p->path, "%s/%s", path, lin_datadir_names[i]);
        if (access(p->path, F_OK) == 0) status = lin_text_read(p->path, &p->text, &p->n, err);
    }
    const int has_sounds = parts[LIN_DATADIR_WAV].text != NULL;
    for (int i = 0; i < N_PARTS && status == LIN_OK && has_sounds; i++)
        if (parts[i].text)
            status = survey(d, index, &parts[i], i == LIN_DATADIR_WAV ? NULL : &parts[LIN_DATADIR_WAV].names,
                            i != LIN_DATADIR_SPEAKERS, err);
    if (status == LIN_OK && !has_sounds && !parts[LIN_DATADIR_TEXT].text && !parts[LIN_DATADIR_SPEAKERS].text)
        status = load_beside(d, index, path, err);
    else if (status == LIN_OK && d->counts[NO_SOUND] + d->counts[REPEATED] == before)
        status = load_list(d, index, path, err); // without wav.scp it says so
    else if (status == LIN_OK) status = load_kept(d, index, path, parts, err);
    for (int i = 0; i < N_PARTS; i++) {
        lin_symbols_free(&parts[i].names);
        lin_buffer_free(&parts[i].kept);
        lin_free(parts[i].text);
    }
    return status;
}

static lin_status load(validation *d, const lin_list *operands, lin_error *err)
{
    d->n_sets = operands->count;
    d->sets = lin_calloc((size_t)d->n_sets, sizeof *d->sets);
    if (!d->sets) return lin_no_memory(err, "a corpus", 0);
    for (int i = 0; i < d->n_sets; i++) {
        d->sets[i].name = operands->items[i];
        LIN_TRY((lin_is_folder(operands->items[i]) ? load_folder : load_list)(d, i, operands->items[i], err));
        if (d->sets[i].dir) d->sets[i].n = lin_datadir_count(d->sets[i].dir);
        d->n += d->sets[i].n;
    }
    d->utterances = lin_calloc((size_t)d->n, sizeof *d->utterances);
    d->first_of = lin_calloc((size_t)d->n, sizeof *d->first_of);
    d->sound_of = lin_calloc((size_t)d->n, sizeof *d->sound_of);
    d->rate_counts = lin_calloc((size_t)d->n, sizeof *d->rate_counts);
    if (!d->utterances || !d->first_of || !d->sound_of || !d->rate_counts)
        return lin_no_memory(err, "a corpus", (size_t)d->n * sizeof *d->utterances);
    for (int i = 0, at = 0; i < d->n_sets; i++)
        for (int k = 0; k < d->sets[i].n; k++) {
            const corpus_set *set = &d->sets[i];
            d->utterances[at++] = (utterance){.u = set->dir ? lin_datadir_at(set->dir, k) : &set->beside[k], .set = i};
        }
    return LIN_OK;
}

/* ---- texts ----------------------------------------------------------------------------------------------------------------- */

static lin_status read_text(validation *d, utterance *u, lin_error *err)
{
    const char *text = u->u->text ? u->u->text : "";
    lin_transcriber *t = d->wording.transcriber;
    const long before = lin_transcriber_words(t);
    const int *labels;
    lin_error why;
    if (!*text) {
        note(d, NO_TEXT, u->set, u->u->id, "%s", "");
        return LIN_OK;
    }
    const lin_status status = lin_transcriber_line(t, text, strlen(text), &labels, &u->n_labels, &why);
    if (status == LIN_NO_MEMORY) return lin_fail_as(err, &why);
    const int has_words = lin_transcriber_words(t) > before;
    if (status != LIN_OK) note(d, BAD_TEXT, u->set, u->u->id, "%s", why.message);
    else if (!has_words) note(d, NO_TEXT, u->set, u->u->id, "no word in it");
    for (int i = 0; i < u->n_labels; i++) d->seen[labels[i]] = 1;
    u->is_used = status == LIN_OK && has_words && !lin_transcriber_missing(t);
    u->needed = u->n_labels ? lin_ctc_frames_needed(labels, u->n_labels) : 0;
    return LIN_OK;
}

static lin_status note_words(validation *d, lin_error *err)
{
    const lin_phones *phones = d->wording.phones;
    const lin_transcriber *t = d->wording.transcriber;
    const int n = lin_transcriber_unknown_count(t);
    lin_buffer line = {0}, oov = {0};
    int *order;
    LIN_TRY(lin_transcriber_order(t, &order, err));
    for (int r = 0; r < n; r++) {
        const lin_unknown_word w = lin_transcriber_unknown(t, order[r]);
        lin_buffer_clear(&line);
        for (int i = 0; i < w.n_labels; i++)
            lin_buffer_format(&line, "%s%s", i ? " " : "", lin_phones_name(phones, w.labels[i]));
        lin_buffer_char(&line, '\0');
        if (!w.n_labels) note(d, NO_PHONES, -1, w.word, "%ld", w.count);
        else note(d, WORDS, -1, w.word, "%ld %s (%s)", w.count, line.data ? line.data : "", lin_g2p_how_name(w.how));
    }
    lin_free(order);
    if ((double)lin_transcriber_unknown_words(t) > MOST_UNKNOWN * (double)lin_transcriber_words(t)) {
        char share[64];
        snprintf(share, sizeof share, "%.1f %% of the words",
                 100.0 * (double)lin_transcriber_unknown_words(t) / (double)lin_transcriber_words(t));
        note(d, FOREIGN, -1, share, "is %.900s a lexicon of this language?", d->wording.path);
    }
    for (int i = 1; i < lin_phones_count(phones); i++)
        if (!d->seen[i] && lin_phones_kind(phones, i) == LIN_PHONE_SOUND)
            note(d, UNSEEN, -1, lin_phones_name(phones, i), "%s", "");
    lin_status status = lin_buffer_status(&line, err);
    if (status == LIN_OK && d->v->oov) status = lin_wording_unknown(&d->wording, INT_MAX, "", &oov, err);
    if (status == LIN_OK && d->v->oov) status = lin_output_write(d->v->oov, 0, &oov, err);
    lin_buffer_free(&line);
    lin_buffer_free(&oov);
    return status;
}

/* ---- sounds ---------------------------------------------------------------------------------------------------------------- */

// Moves to the beginning of the part, by seeking or by reading all before it. Returns the length of the part, in frames.
static int64_t begin_part(lin_audio *audio, const lin_cut *cut, float *x, int capacity, measured *m)
{
    const lin_audio_format *f = lin_audio_info(audio);
    const int64_t start = (int64_t)(cut->part.start_s * f->rate_hz + 0.5), end = (int64_t)(cut->part.end_s * f->rate_hz + 0.5);
    int n = 1;
    if (start > 0 && lin_audio_seek(audio, start, NULL) != LIN_OK) {
        while (m->status == LIN_OK && n > 0 && lin_audio_position(audio) < start) {
            const int64_t left = start - lin_audio_position(audio);
            m->status = lin_audio_read(audio, x, left < capacity ? (int)left : capacity, &n, &m->error);
        }
    }
    return cut->part.end_s > 0 ? end - start : INT64_MAX;
}

static void measure(const lin_cut *cut, measured *m)
{
    enum { FRAMES = 4096 };
    float *x = lin_alloc((size_t)FRAMES * LIN_AUDIO_MAX_CHANNELS, sizeof *x);
    lin_audio *audio = NULL;
    lin_hasher hash;
    int64_t clipped = 0;
    int n = 1, width = 1, run[LIN_AUDIO_MAX_CHANNELS] = {0};
    lin_hash_begin(&hash, 0);
    m->status = !x ? lin_no_memory(&m->error, "a sound", FRAMES)
                : cut->is_command ? lin_audio_open_command(cut->path, NULL, &audio, &m->error)
                                  : lin_audio_open(cut->path, NULL, &audio, &m->error);
    const int64_t most = m->status == LIN_OK ? begin_part(audio, cut, x, FRAMES, m) : 0;
    while (m->status == LIN_OK && n > 0 && m->frames < most) {
        m->status = lin_audio_read(audio, x, most - m->frames < FRAMES ? (int)(most - m->frames) : FRAMES, &n, &m->error);
        if (m->status != LIN_OK) break;
        const int channels = lin_audio_info(audio)->channels, only = cut->channel && channels > 1 ? cut->channel - 1 : -1;
        if (only >= channels) {
            m->status = lin_fail(&m->error, LIN_INVALID, "it has no channel %d", cut->channel);
            break;
        }
        width = only < 0 ? channels : 1;
        for (int i = 0; only >= 0 && i < n; i++) x[i] = x[i * channels + only];
        lin_hash_add(&hash, x, (size_t)n * (size_t)width * sizeof *x);
        for (int i = 0; i < n * width; i++) {
            int *of = &run[i % width];
            const float level = fabsf(x[i]);
            m->peak = fmaxf(m->peak, level);
            *of = level >= CLIP_LEVEL ? *of + 1 : 0;
            clipped += *of == CLIP_RUN ? CLIP_RUN : *of > CLIP_RUN;
        }
        m->frames += n;
    }
    if (audio) m->format = *lin_audio_info(audio);
    if (m->frames > 0) m->clipped = (double)clipped / ((double)m->frames * width);
    m->hash = lin_hash_end(&hash);
    lin_audio_close(audio);
    lin_free(x);
}

static void work(void *context, int item, int slot, int thread)
{
    validation *d = context;
    const utterance *u = &d->utterances[item];
    measured *m = &d->slots[slot];
    *m = (measured){0};
    const lin_cut *cut = &u->u->cut;
    measure(cut, m);
    if (m->status != LIN_OK || !d->has_model || !u->is_used || m->frames == 0) return;
    lin_alignment *a = &d->alignments[thread];
    const lin_sound sound = {.path = cut->path,
                             .is_command = cut->is_command,
                             .channel = cut->channel ? cut->channel - 1 : LIN_CHANNEL_MIX,
                             .or_only = 1,
                             .part = {cut->part.start_s, cut->part.end_s > 0 ? cut->part.end_s : INFINITY}};
    const lin_aligner_input in = {.id = u->u->id, .sound = &sound, .text = u->u->text, .n_text = strlen(u->u->text)};
    lin_error err;
    const lin_status status = lin_aligner_align(d->aligners[thread], &in, a, &err);
    if (status == LIN_OK) lin_alignment_doubt(a, m->doubt, sizeof m->doubt);
    else snprintf(m->doubt, sizeof m->doubt, "%.250s", err.message);
}

static lin_status note_rate(validation *d, const measured *m, lin_error *err)
{
    char text[48];
    int index;
    const int n = snprintf(text, sizeof text, "%d Hz, %d channel%s", m->format.rate_hz, m->format.channels,
                           m->format.channels == 1 ? "" : "s");
    LIN_TRY(lin_symbols_add(&d->rates, text, (size_t)n, &index, err));
    d->rate_counts[index]++;
    return LIN_OK;
}

static lin_status note_same(validation *d, int item, const measured *m, lin_error *err)
{
    char text[40];
    int index;
    const int before = d->sounds.n, n = snprintf(text, sizeof text, "%016llx", (unsigned long long)m->hash);
    const utterance *u = &d->utterances[item];
    LIN_TRY(lin_symbols_add(&d->sounds, text, (size_t)n, &index, err));
    if (d->sounds.n > before) {
        d->sound_of[index] = item;
        return LIN_OK;
    }
    const utterance *first = &d->utterances[d->sound_of[index]];
    note(d, SAME_SOUND, u->set, u->u->id, "the samples of %s%s%s",
                     d->n_sets > 1 ? d->sets[first->set].name : "", d->n_sets > 1 ? " " : "", first->u->id);
    return LIN_OK;
}

// Output steps for so many seconds, of the given model or of one to be trained.
static double steps_of(const validation *d, double seconds)
{
    const lin_model *model = d->has_model ? d->recognizer.model : NULL;
    const lin_features features = model ? model->features : lin_features_default();
    const int stack = d->v->stack ? d->v->stack : model ? model->config.stack : 3;
    const double frames = floor((seconds - features.window_ms / 1000) / (features.hop_ms / 1000)) + 1;
    return ceil(frames / stack);
}

static lin_status take(void *context, int item, int slot, lin_error *err)
{
    validation *d = context;
    const measured *m = &d->slots[slot];
    const utterance *u = &d->utterances[item];
    lin_progress_of(&d->progress, (item + 1.0) / d->n, "%d of %d utterances", item + 1, d->n);
    if (lin_interrupted) return lin_fail(err, LIN_STOPPED, "interrupted");
    if (m->status == LIN_NO_MEMORY) return lin_fail_as(err, &m->error);
    if (m->status != LIN_OK) {
        note(d, UNREADABLE, u->set, u->u->id, "%s", m->error.message);
        return LIN_OK;
    }
    const double seconds = (double)m->frames / m->format.rate_hz;
    d->sets[u->set].seconds += seconds;
    LIN_TRY(note_rate(d, m, err));
    if (m->format.incomplete) note(d, INCOMPLETE, u->set, u->u->id, "%s", m->format.warning);
    const double missing = u->u->cut.part.end_s - u->u->cut.part.start_s - seconds;
    if (missing > SHORTEST_S) note(d, INCOMPLETE, u->set, u->u->id, "its part ends %.3f s behind the end of the sound", missing);
    if (seconds < SHORTEST_S || m->peak < FAINTEST) {
        const double db = 20 * log10((double)m->peak);
        if (m->peak > 0) note(d, EMPTY, u->set, u->u->id, "%.3f s, peak %.1f dBFS", seconds, db);
        else note(d, EMPTY, u->set, u->u->id, "%.3f s of zeros", seconds);
        return LIN_OK;
    }
    if (m->clipped >= CLIP_SHARE)
        note(d, CLIPPED, u->set, u->u->id, "%.2f %% of its samples", 100 * m->clipped);
    if (u->is_used && (steps_of(d, seconds) < u->needed || u->n_labels > FASTEST * seconds))
        note(d, TOO_SHORT, u->set, u->u->id, "%d phones in %.2f s", u->n_labels, seconds);
    else if (m->doubt[0]) note(d, NO_FIT, u->set, u->u->id, "%s", m->doubt);
    return note_same(d, item, m, err);
}

static lin_status make_aligners(validation *d, lin_error *err)
{
    lin_model_values model = d->v->model;
    model.precision = LIN_MODEL_FP32;
    LIN_TRY(lin_open_recognizer(&d->recognizer, &model, err));
    d->has_model = 1;
    d->aligners = lin_calloc((size_t)d->n_threads, sizeof *d->aligners);
    d->alignments = lin_calloc((size_t)d->n_threads, sizeof *d->alignments);
    if (!d->aligners || !d->alignments) return lin_no_memory(err, "aligners", 0);
    lin_aligner_options o = lin_aligner_options_default();
    o.follow_sound = 0;
    for (int i = 0; i < d->n_threads; i++)
        LIN_TRY(lin_aligner_create(&d->recognizer, &d->wording, &o, &d->aligners[i], err));
    return LIN_OK;
}

static lin_status listen_to_all(validation *d, lin_error *err)
{
    d->n_threads = lin_ordered_threads(d->v->jobs, d->n);
    d->slots = lin_calloc((size_t)lin_ordered_slots(d->n_threads), sizeof *d->slots);
    if (!d->slots) return lin_no_memory(err, "sounds", 0);
    if (d->v->model.model) LIN_TRY(make_aligners(d, err));
    lin_progress_begin(&d->progress, d->v->quiet);
    const lin_status status = lin_ordered_run(&(lin_ordered){d->n, d->n_threads, d, work, take}, err);
    lin_progress_end(&d->progress);
    return status;
}

/* ---- speakers -------------------------------------------------------------------------------------------------------------- */

enum { TOLD = -1 };

// Speakers of several sets, and those whose names differ only in case.
static lin_status compare_speakers(validation *d, lin_error *err)
{
    lin_symbols by_set = {0}; // "SET NAME", to count those of each set
    lin_status status = LIN_OK;
    for (int i = 0; i < d->n && status == LIN_OK; i++) {
        const utterance *u = &d->utterances[i];
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
        if (status != LIN_OK) break;
        if (d->speakers.n > before) d->first_of[index] = i;
        if (d->speakers.n > before || d->first_of[index] == TOLD) continue;
        const utterance *first = &d->utterances[d->first_of[index]];
        const char *other = first->u->speaker;
        if (first->set != u->set)
            note(d, SPEAKERS, -1, name, "in %s and %s", d->sets[first->set].name, d->sets[u->set].name);
        else if (strcmp(other, name) != 0) note(d, SPEAKERS, u->set, name, "also spelled %s", other);
        else continue;
        d->first_of[index] = TOLD;
    }
    lin_symbols_free(&by_set);
    return status;
}

/* ---- the report ------------------------------------------------------------------------------------------------------------ */

static int problems(const validation *d)
{
    int n = 0;
    for (int k = 0; k < FINDINGS; k++) n += !kinds[k].is_note && d->counts[k] > 0;
    return n;
}

static void put_text(const validation *d, lin_buffer *out)
{
    for (int i = 0; i < d->n_sets; i++) {
        const corpus_set *set = &d->sets[i];
        put_line(out, set->name);
        lin_buffer_format(out, ": %d utterance%s, %.1f s, ", set->n, set->n == 1 ? "" : "s", set->seconds);
        if (set->speakers) lin_buffer_format(out, "%d speaker%s\n", set->speakers, set->speakers == 1 ? "" : "s");
        else lin_buffer_text(out, "speakers unknown\n");
    }
    for (int i = 0; i < d->rates.n; i++)
        lin_buffer_format(out, "%s%s: %ld", i ? ", " : "", lin_symbols_text(&d->rates, i), d->rate_counts[i]);
    const long words = lin_transcriber_words(d->wording.transcriber);
    const long unknown = lin_transcriber_unknown_words(d->wording.transcriber);
    lin_buffer_format(out, "%s%ld of %ld words (%.2f %%) are not in %s; its phones: %d\n", d->rates.n ? "\n" : "", unknown,
                      words, words ? 100.0 * (double)unknown / (double)words : 0.0, d->wording.path,
                      lin_phones_count(d->wording.phones) - 1);
    for (int k = 0; k < FINDINGS; k++) {
        const char *name, *more;
        size_t at = 0;
        int told = 0;
        if (!d->counts[k]) continue;
        lin_buffer_format(out, "%s%s: %d", kinds[k].is_note ? "note: " : "", kinds[k].title, d->counts[k]);
        lin_buffer_text(out, k == UNSEEN ? " (" : "\n");
        for (; k == UNSEEN && (name = next_finding(&d->lists[k], &at, &more)); told++) // in one line
            lin_buffer_format(out, "%s%s", told ? " " : "", name);
        if (k == UNSEEN) lin_buffer_text(out, ")\n");
        for (; (!d->v->most || told < d->v->most) && (name = next_finding(&d->lists[k], &at, &more)); told++) {
            lin_buffer_text(out, "  ");
            put_line(out, name);
            lin_buffer_text(out, *more ? "  " : "");
            put_line(out, more);
            lin_buffer_char(out, '\n');
        }
        if (told < d->counts[k]) lin_buffer_format(out, "  and %d more; --most 0 lists them all\n", d->counts[k] - told);
    }
    const char *plural = problems(d) == 1 ? "" : "s";
    if (problems(d)) lin_buffer_format(out, "%d kind%s of problem%s\n", problems(d), plural, plural);
    else lin_buffer_text(out, "nothing is wrong\n");
}

static void put_json(const validation *d, lin_buffer *out)
{
    lin_buffer_text(out, "{\"sets\": [");
    for (int i = 0; i < d->n_sets; i++) {
        const corpus_set *set = &d->sets[i];
        lin_buffer_text(out, i ? ", " : "");
        lin_buffer_json_format(out, "{'name': %s, 'utterances': %d, 'seconds': %.3f, 'speakers': ", set->name, set->n,
                               set->seconds);
        if (set->speakers) lin_buffer_format(out, "%d}", set->speakers);
        else lin_buffer_text(out, "null}");
    }
    lin_buffer_text(out, "], \"rates\": {");
    for (int i = 0; i < d->rates.n; i++)
        lin_buffer_format(out, "%s\"%s\": %ld", i ? ", " : "", lin_symbols_text(&d->rates, i), d->rate_counts[i]);
    lin_buffer_format(out, "}, \"words\": %ld, \"unknown\": %ld", lin_transcriber_words(d->wording.transcriber),
                      lin_transcriber_unknown_words(d->wording.transcriber));
    for (int k = 0; k < FINDINGS; k++) {
        const char *name, *more;
        size_t at = 0;
        lin_buffer_format(out, ", \"%s\": [", kinds[k].key);
        for (int i = 0; (name = next_finding(&d->lists[k], &at, &more)); i++) {
            lin_buffer_text(out, i ? ", " : "");
            lin_buffer_json_format(out, "{'name': %s, 'more': %s}", name, more);
        }
        lin_buffer_char(out, ']');
    }
    lin_buffer_format(out, ", \"problems\": %d}\n", problems(d));
}

static lin_status report(const validation *d, lin_error *err)
{
    lin_buffer out = {0};
    (d->v->json ? put_json : put_text)(d, &out);
    lin_status status = lin_buffer_status(&out, err);
    for (int k = 0; k < FINDINGS && status == LIN_OK; k++) status = lin_buffer_status(&d->lists[k], err);
    if (status == LIN_OK) status = lin_output_write(d->v->output, 0, &out, err);
    lin_buffer_free(&out);
    return status;
}

static void release(validation *d)
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
    for (int k = 0; k < FINDINGS; k++) lin_buffer_free(&d->lists[k]);
    lin_symbols_free(&d->speakers);
    lin_symbols_free(&d->sounds);
    lin_symbols_free(&d->rates);
    void *blocks[] = {d->aligners, d->alignments, d->sets,     d->utterances, d->slots,
                      d->seen,     d->first_of,   d->sound_of, d->rate_counts};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) lin_free(blocks[i]);
}

static lin_status validate(validation *d, const lin_list *operands, lin_error *err)
{
    const validate_values *v = d->v;
    const lin_warnings warnings = lin_complaints(v->quiet);
    const char *phones = v->model.model ? v->model.model : v->phones;
    const lin_wording_files files = {
        .dictionary = v->lexicon, .added = v->add_lexicon, .phones = phones, .g2p = v->g2p, .numbers = v->numbers};
    LIN_TRY(lin_wording_open(&d->wording, &files, &warnings, err));
    lin_transcriber_allow_missing(d->wording.transcriber);
    LIN_TRY(load(d, operands, err));
    for (int i = 0; i < d->n; i++)
        if (!d->utterances[i].u->cut.is_command) LIN_TRY(lin_guard_reads(d->utterances[i].u->cut.path, err));
    if (v->oov) LIN_TRY(lin_guard_writes(v->oov, err));
    if (v->output && strcmp(v->output, "-") != 0) LIN_TRY(lin_guard_writes(v->output, err));
    d->seen = lin_calloc((size_t)lin_phones_count(d->wording.phones), 1);
    if (!d->seen) return lin_no_memory(err, "phones", 0);
    for (int i = 0; i < d->n; i++) LIN_TRY(read_text(d, &d->utterances[i], err));
    LIN_TRY(compare_speakers(d, err));
    LIN_TRY(listen_to_all(d, err));
    LIN_TRY(note_words(d, err));
    return report(d, err);
}

static int run(lin_parsed *parsed)
{
    const validate_values *v = parsed->values;
    validation d = {.v = v};
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
        "does, and reports: sound without text and text without sound; sound that cannot be read, is incomplete, empty, silent "
        "or clipped, and one sound under two names; rates; texts that are not words; words outside the lexicon with their "
        "counts, and phones that no text has; sound that is too short for its text; speakers in several of the sets, or spelled "
        "in two ways. With --model every text is aligned with its sound, and texts that do not fit are named.\n\n"
        "The exit status is 1 if something is wrong. Words that rules pronounce and phones that no text has do not change it.",
    .examples = "  linnet validate train dev test --lexicon my.dict --g2p my.g2p\n"
                "  linnet validate train --lexicon my.dict -m my.safetensors --json -o report.json",
    .options = options,
    .values_size = sizeof(validate_values),
    .min_operands = 1,
    .max_operands = -1,
    .run = run,
};
