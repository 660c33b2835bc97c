// cmd_prepare.c - linnet prepare: makes a feature cache with labels from a data directory, on several threads, in order.

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/common.h"
#include "app/shared_options.h"
#include "app/inputs.h"
#include "base/memory.h"
#include "base/pool.h"
#include "linnet/datadir.h"
#include "linnet/wording.h"
#include "train/batches.h"
#include "train/dataset.h"

typedef struct prepare_values {
    const char *lexicon, *add_lexicon, *phones, *g2p, *numbers, *output, *audio_root, *oov;
    int allow_commands;
    lin_numbers speed;
    int stack, no_speech, allow_oov, jobs, quiet;
    lin_fbank_config fbank;
    const char *language;
} prepare_values;

static const lin_option options[] = {
    LIN_LANGUAGE_ROW(prepare_values, language),
    LIN_DICTIONARY_ROW(prepare_values, lexicon),
    LIN_ADD_LEXICON_ROW(prepare_values, add_lexicon, ""),
    LIN_PHONE_SET_ROW(prepare_values, phones),
    LIN_G2P_ROW(prepare_values, g2p),
    LIN_NUMBERS_ROW(prepare_values, numbers),
    {.name = "output", .letter = 'o', .type = LIN_OPTION_FILE, .writes = 1, .required = 1, .at = offsetof(prepare_values, output),
     .help = "The cache to write; it appears when it is complete"},
    LIN_AUDIO_ROOT_ROW(offsetof(prepare_values, audio_root)),
    LIN_ALLOW_COMMANDS_ROW(prepare_values, allow_commands),
    {.name = "speed", .type = LIN_OPTION_NUMBERS, .at = offsetof(prepare_values, speed), .text = "1", .min = 0.5, .max = 2,
     .help = "Include each utterance once at each of these speeds; copies are named sp0.9-NAME"},
    {.name = "stack", .type = LIN_OPTION_INT, .at = offsetof(prepare_values, stack), .text = "1", .min = 1, .max = 16,
     .help = "Frames per step of the model that will be trained: utterances with too few steps for their phones are reported and "
             "left out"},
    {.name = "no-speech", .type = LIN_OPTION_FLAG, .at = offsetof(prepare_values, no_speech),
     .help = "Nobody speaks in these sounds: transcripts are ignored, and a model learns to write nothing for such sounds"},
    {.name = "oov", .type = LIN_OPTION_FILE, .writes = 1, .at = offsetof(prepare_values, oov),
     .help = "Write the words outside the dictionary, with the phones chosen for them, to this file"},
    {.name = "allow-oov", .type = LIN_OPTION_FLAG, .at = offsetof(prepare_values, allow_oov),
     .help = "Continue if more than 20 % of the words are outside the dictionary, with the phones that rules choose for them"},
    LIN_JOBS_ROW(offsetof(prepare_values, jobs)),
    LIN_QUIET_ROW(offsetof(prepare_values, quiet), "Print no progress and no summary"),
    LIN_FBANK_ROWS(prepare_values, fbank),
    {.type = LIN_OPTION_END},
};

/* A dictionary that lacks a larger share of the words is probably of another language. */
static const double MOST_UNKNOWN = 0.2;

// Labels of one utterance, made before any sound is read.
typedef struct labelled {
    int *labels;
    int n;
    int use; // 0: its transcript cannot be used
} labelled;

typedef struct slot {
    lin_status status;
    lin_error error;
    lin_audio_format format; // with the warning about the sound
    lin_matrix frames;
} slot;

typedef struct counts {
    int added, left_out, failed, incomplete; // utterances at a speed; incomplete: part of their sound is missing
    long long frames, labels;
} counts;

// Work items are (utterance, speed) in the order of the file.
typedef struct preparation {
    const prepare_values *v;
    const char *source; // stored in the cache: the data that it was made from
    lin_fbank_config fbank;
    lin_datadir *dir;
    lin_wording wording;
    counts counts;
    labelled *labels;
    lin_dataset_writer *writer;
    int n_items, n_slots;
    slot *slots;
    lin_progress progress;
} preparation;

static int speeds(const preparation *p) { return p->v->speed.count; }

static double speed_of(const preparation *p, int item) { return p->v->speed.items[item % speeds(p)]; }

static double hours(const preparation *p) { return (double)p->counts.frames * p->fbank.hop_ms / 3.6e6; }

static void work(void *context, int item, int slot_number, int thread)
{
    preparation *p = context;
    (void)thread;
    slot *s = &p->slots[slot_number];
    const lin_utterance *u = lin_datadir_at(p->dir, item / speeds(p));
    lin_feature_options how = lin_feature_options_default();
    how.fbank = p->fbank;
    how.speed = speed_of(p, item);
    s->error = (lin_error){0};
    s->format = (lin_audio_format){0};
    s->frames.rows = 0;
    s->status = LIN_OK;
    if (p->labels[item / speeds(p)].use)
        s->status = lin_cut_read(&u->cut, &how, &s->frames, &s->format, &s->error);
}

// Labels of every utterance. A transcript that cannot be pronounced is reported here and its utterance left out.
static lin_status label_all(preparation *p, lin_error *err)
{
    int n = lin_datadir_count(p->dir);
    p->labels = lin_calloc((size_t)n, sizeof *p->labels);
    if (!p->labels) return lin_no_memory(err, "labels", (size_t)n * sizeof *p->labels);
    for (int i = 0; i < n; i++) {
        const lin_utterance *u = lin_datadir_at(p->dir, i);
        if (p->v->no_speech) {
            p->labels[i].use = 1;
            continue;
        }
        const int *labels;
        int count;
        lin_error inner = {0};
        lin_status status = lin_transcriber_line(p->wording.transcriber, u->text, strlen(u->text), &labels, &count, &inner);
        if (status == LIN_NO_MEMORY || status == LIN_UNSUPPORTED) return lin_fail_at(err, lin_fail_as(err, &inner), "%s", u->id);
        if (status != LIN_OK || count == 0) {
            lin_complain("%s: %s; left out", u->id,
                     status == LIN_OK ? "its transcript is empty" : inner.message);
            p->counts.failed += status != LIN_OK;
            p->counts.left_out += status == LIN_OK;
            continue;
        }
        int *copy = lin_alloc((size_t)count, sizeof *copy);
        if (!copy) return lin_no_memory(err, "labels", (size_t)count * sizeof *copy);
        memcpy(copy, labels, (size_t)count * sizeof *copy);
        p->labels[i] = (labelled){copy, count, 1};
    }
    return LIN_OK;
}

// Refuses a dictionary that lacks too many words: it is probably of another language.
static lin_status check_words(const preparation *p, lin_error *err)
{
    const lin_transcriber *t = p->wording.transcriber;
    const long words = lin_transcriber_words(t), unknown = lin_transcriber_unknown_words(t);
    lin_buffer some = {0};
    if (p->v->allow_oov || (double)unknown <= MOST_UNKNOWN * (double)words) return LIN_OK;
    lin_status status = LIN_OK;
    for (int i = 0; i < 3 && i < lin_transcriber_unknown_count(t); i++)
        lin_buffer_format(&some, "%s%s", i ? ", " : "", lin_transcriber_unknown(t, i).word);
    status = lin_buffer_status(&some, err);
    if (status == LIN_OK)
        status = lin_fail(err, LIN_MISMATCH,
                          "%s: %ld of %ld words (%.1f %%) are not in the dictionary, among them %s; is it one of this language? "
                          "--lexicon names another, --oov lists the words, --allow-oov takes them as letter-to-sound rules have "
                          "them",
                          p->source, unknown, words, 100.0 * (double)unknown / (double)words, some.data);
    lin_buffer_free(&some);
    return status;
}

// Reports missing files together: usually all are missing, because their paths are relative to another folder.
static lin_status check_files(preparation *p, lin_error *err)
{
    const int n = lin_datadir_count(p->dir);
    int missing = 0, first = -1;
    for (int i = 0; i < n; i++) {
        const lin_cut *cut = &lin_datadir_at(p->dir, i)->cut;
        if (cut->is_command || access(cut->path, F_OK) == 0) continue;
        if (missing++ == 0) first = i;
        p->counts.failed += p->labels[i].use * speeds(p);
        p->labels[i].use = 0;
    }
    if (missing == 0) return LIN_OK;
    static const char hint[] = "--audio-root names the folder that their paths are relative to";
    const lin_utterance *u = lin_datadir_at(p->dir, first);
    if (missing == n)
        return lin_fail(err, LIN_IO, "%s: none of its %d sound files exists, the first is %s; %s", p->source, n, u->cut.path,
                        hint);
    lin_complain("%s: %d of %d sound files do not exist and are left out, the first is %s (%s); %s", p->source, missing, n,
             u->cut.path, u->id, hint);
    return LIN_OK;
}

static void speed_name(char *out, size_t size, double speed, const char *name)
{
    if (speed > 1 - 1e-9 && speed < 1 + 1e-9) snprintf(out, size, "%s", name);
    else snprintf(out, size, "sp%g-%s", speed, name);
}

// Writes a finished item to the cache; LIN_OK also if it was reported and left out.
static lin_status write_item(preparation *p, slot *s, int item, lin_error *err)
{
    const lin_utterance *u = lin_datadir_at(p->dir, item / speeds(p));
    const labelled *l = &p->labels[item / speeds(p)];
    char id[512], speaker[512];
    double speed = speed_of(p, item);
    if (!l->use) return LIN_OK;
    speed_name(id, sizeof id, speed, u->id);
    speed_name(speaker, sizeof speaker, speed, u->speaker);
    if (s->status == LIN_NO_MEMORY) {
        *err = s->error;
        return s->status;
    }
    if (s->format.warning[0]) lin_complain("%s: %s", id, s->format.warning);
    if (s->status != LIN_OK) {
        lin_complain("%s: %s; left out", id, s->error.message);
        p->counts.failed++;
        return LIN_OK;
    }
    const int stack = p->v->stack;
    const int steps = (s->frames.rows + stack - 1) / stack, needed = lin_ctc_frames_needed(l->labels, l->n);
    if (s->frames.rows < 1 || steps < needed) {
        lin_complain("%s: %d frames are too few for %d phones (%d steps of %d needed); left out", id, s->frames.rows, l->n,
                     needed, stack);
        p->counts.left_out++;
        return LIN_OK;
    }
    lin_status status = lin_dataset_add(p->writer, id, speaker, s->frames.data, s->frames.rows, l->labels, l->n, err);
    if (status == LIN_INVALID || status == LIN_NUMERIC) {
        lin_complain("%s: %s; left out", id, err->message);
        p->counts.failed++;
        return LIN_OK;
    }
    if (status != LIN_OK) return status;
    p->counts.added++;
    p->counts.incomplete += s->format.incomplete;
    p->counts.frames += s->frames.rows;
    p->counts.labels += l->n;
    return LIN_OK;
}

static lin_status take(void *context, int item, int slot_number, lin_error *err)
{
    preparation *p = context;
    lin_status status = write_item(p, &p->slots[slot_number], item, err);
    if (status == LIN_OK && lin_interrupted) status = lin_fail(err, LIN_STOPPED, "interrupted; nothing was written");
    lin_progress_of(&p->progress, (item + 1.0) / p->n_items, "%d of %d utterances, %.2f h, %s", item + 1, p->n_items, hours(p),
                    p->v->output);
    return status;
}

static lin_status run_threads(preparation *p, lin_error *err)
{
    const int n_threads = lin_ordered_threads(p->v->jobs, p->n_items);
    p->n_slots = lin_ordered_slots(n_threads);
    p->slots = lin_calloc((size_t)p->n_slots, sizeof *p->slots);
    if (!p->slots) return lin_no_memory(err, "threads", (size_t)p->n_slots * sizeof *p->slots);
    return lin_ordered_run(&(lin_ordered){p->n_items, n_threads, p, work, take}, err);
}

static lin_status write_cache(preparation *p, lin_error *err)
{
    const lin_features features = lin_fbank_to_model(&p->fbank);
    LIN_TRY(lin_dataset_create(p->v->output, p->fbank.mel_bins, &features, lin_phones_list(p->wording.phones), p->source,
                               &p->writer, err));
    lin_progress_begin(&p->progress, p->v->quiet);
    lin_status status = run_threads(p, err);
    if (status == LIN_OK && p->counts.added == 0)
        status = lin_fail(err, LIN_INVALID, "%s: no utterance is left; no cache was written", p->source);
    if (status == LIN_OK) status = lin_dataset_finish(p->writer, err);
    else lin_dataset_abort(p->writer);
    lin_progress_end(&p->progress);
    return status;
}

static lin_status write_unknown(const preparation *p, lin_error *err)
{
    lin_buffer text = {0};
    lin_status status = lin_wording_unknown(&p->wording, INT_MAX, "", &text, err);
    if (status == LIN_OK) status = lin_output_write(p->v->oov, 0, &text, err);
    lin_buffer_free(&text);
    return status;
}

static lin_status prepare(preparation *p, const char *path, lin_error *err)
{
    const prepare_values *v = p->v;
    const lin_warnings warnings = lin_complaints(0);
    const lin_datadir_options how = {v->audio_root, !v->no_speech, v->allow_commands};
    const lin_wording_files files = {
        .dictionary = v->lexicon, .added = v->add_lexicon, .phones = v->phones, .g2p = v->g2p, .numbers = v->numbers};
    LIN_TRY(lin_fbank_check(&p->fbank, err));
    LIN_TRY(lin_datadir_load(path, &how, &p->dir, err));
    for (int i = 0; i < lin_datadir_count(p->dir); i++) {
        const lin_cut *cut = &lin_datadir_at(p->dir, i)->cut;
        if (!cut->is_command) LIN_TRY(lin_guard_reads(cut->path, err));
    }
    LIN_TRY(lin_guard_writes(v->output, err));
    if (v->oov) LIN_TRY(lin_guard_writes(v->oov, err));
    LIN_TRY(lin_wording_open(&p->wording, &files, &warnings, err));
    p->n_items = lin_datadir_count(p->dir) * speeds(p);
    LIN_TRY(label_all(p, err));
    const lin_status status = check_words(p, err);
    if (status == LIN_MISMATCH && v->oov) write_unknown(p, &(lin_error){0}); // too many: the list helps
    LIN_TRY(status);
    LIN_TRY(check_files(p, err));
    LIN_TRY(write_cache(p, err));
    return v->oov ? write_unknown(p, err) : LIN_OK;
}

static void summary(const preparation *p)
{
    const lin_transcriber *t = p->wording.transcriber;
    const counts *n = &p->counts;
    const long words = lin_transcriber_words(t), unknown = lin_transcriber_unknown_words(t);
    lin_complain(
        "%s: %d utterances, %.2f hours, %lld phones; %d left out, %d failed, %d incomplete; %ld of %ld words (%.2f %%, %d "
        "distinct) are not in the dictionary; %.1f s",
        p->v->output, n->added, hours(p), n->labels, n->left_out, n->failed, n->incomplete, unknown, words,
        words ? 100.0 * (double)unknown / (double)words : 0.0, lin_transcriber_unknown_count(t), lin_now() - p->progress.begun);
    if (lin_phones_is_own(p->wording.phones))
        lin_complain("%s: %d phones, a set of its own, from %s", p->v->output, lin_phones_count(p->wording.phones) - 1,
                     p->v->phones ? p->v->phones : p->wording.path);
    const char *first_mark;
    const long marks = lin_transcriber_marks(t, &first_mark);
    lin_complain_of_marks(marks, first_mark);
}

static int run(lin_parsed *parsed)
{
    const prepare_values *v = parsed->values;
    lin_error err = {0};
    char path[4096];
    // "dir/" and "dir" are the same set.
    snprintf(path, sizeof path, "%s", parsed->operands.items[0]);
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--) path[n - 1] = 0;
    preparation p = {.v = v, .source = lin_base_name(path), .fbank = v->fbank};
    const lin_status status = prepare(&p, path, &err);
    if (status == LIN_OK && !v->quiet) summary(&p);
    for (int i = 0; i < p.n_slots && p.slots; i++) lin_matrix_free(&p.slots[i].frames);
    for (int i = 0; p.labels && i < lin_datadir_count(p.dir); i++) lin_free(p.labels[i].labels);
    lin_free(p.slots);
    lin_free(p.labels);
    if (p.wording.phones) lin_wording_close(&p.wording);
    lin_datadir_destroy(p.dir);
    if (status != LIN_OK) return lin_give_up(&err);
    return p.counts.failed + p.counts.incomplete > 0 ? LIN_EXIT_FAILED : LIN_EXIT_OK;
}

const lin_command lin_command_prepare = {
    .name = "prepare",
    .operands = "DIR",
    .summary = "make a feature cache for training from a data directory",
    .description = "Reads a Kaldi-style data directory (wav.scp, text, utt2spk, segments) or a list of lines PATH<tab>WHAT WAS "
                   "SAID (docs/corpora.md), and writes one file with the features and the phones of every utterance, which is "
                   "all that training needs.\n\n"
                   "Sound that cannot be read and transcripts that cannot be pronounced are reported and left out; the cache is "
                   "completed, and the exit status is 1. If more than 20 % of the words are outside the dictionary, no cache is "
                   "made unless --allow-oov is given. Incomplete sound is used up to its end, and the exit status is 1. "
                   "Utterances too short for their phones are reported and left out too.",
    .examples = "  linnet prepare corpus/train_native --speed 0.9,1,1.1 --fbank high-hz=5500 -o train_native.lfc\n"
                "  linnet prepare music.txt --no-speech --fbank high-hz=5500 -o music.lfc",
    .options = options,
    .values_size = sizeof(prepare_values),
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
