// cmd_prepare.c - linnet prepare: a data directory becomes a feature cache with labels, by several threads, in order.

#include <stdio.h>
#include <string.h>

#include "app/commands.h"
#include "app/common.h"
#include "app/front.h"
#include "app/guard.h"
#include "app/wording.h"
#include "base/memory.h"
#include "linnet/ordered.h"
#include "model/batches.h"
#include "model/datadir.h"
#include "model/dataset.h"

typedef struct prepare_values {
    const char *lexicon, *output, *audio_root, *oov;
    lin_numbers speed;
    int stack, jobs, quiet;
    lin_fbank_values fbank;
} prepare_values;

static const lin_option options[] = {
    {.name = "lexicon", .letter = 'l', .type = LIN_OPTION_FILE, .at = offsetof(prepare_values, lexicon),
     .value = "DICT",
     .help = "Pronunciation dictionary in CMUdict's format; if not given, $LINNET_LEXICON, else the one installed with "
             "the program"},
    {.name = "output", .letter = 'o', .type = LIN_OPTION_FILE, .writes = 1, .required = 1, .at = offsetof(prepare_values, output),
     .help = "The cache to write; it appears when all is done"},
    {.name = "audio-root", .type = LIN_OPTION_FOLDER, .at = offsetof(prepare_values, audio_root),
     .help = "What the paths in wav.scp are relative to; if not given, the parent of DIR, or the folder of a list"},
    {.name = "speed", .type = LIN_OPTION_NUMBERS, .at = offsetof(prepare_values, speed), .text = "1", .min = 0.5, .max = 2,
     .help = "Each utterance once at each of these speeds; copies are called sp0.9-NAME"},
    {.name = "stack", .type = LIN_OPTION_INT, .at = offsetof(prepare_values, stack), .text = "1", .min = 1, .max = 16,
     .help = "Frames per step of the model to be trained: utterances whose steps are too few for their phones are named and left "
             "out"},
    {.name = "oov", .type = LIN_OPTION_FILE, .writes = 1, .at = offsetof(prepare_values, oov),
     .help = "Write the words that the dictionary lacks here, with the phones put in their place"},
    {.name = "jobs", .letter = 'j', .type = LIN_OPTION_INT, .at = offsetof(prepare_values, jobs), .text = "0", .min = 0,
     .max = 1024,
     .help = "Threads; 0: one per core"},
    {.name = "quiet", .letter = 'q', .type = LIN_OPTION_FLAG, .at = offsetof(prepare_values, quiet),
     .help = "No progress, no summary"},
    LIN_FBANK_ROWS(prepare_values, fbank),
    {.type = LIN_OPTION_END},
};

// Labels of one utterance, made before any sound is read.
typedef struct labelled {
    int *labels;
    int n;
    int use; // 0: its transcript is of no use
} labelled;

typedef struct slot {
    lin_status status;
    lin_error error;
    lin_audio_format format; // with what was wrong with the sound
    lin_matrix frames;
} slot;

// Work items are (utterance, speed) in the order of the file.
typedef struct prepare_job {
    const prepare_values *v;
    lin_datadir *dir;
    lin_wording wording;
    lin_fbank_config fbank;
    labelled *labels;
    lin_dataset_writer *writer;
    int n_items, n_slots;
    slot *slots;
    lin_progress progress;
    // results
    int n_added, n_left_out, n_bad, n_incomplete;
    long long n_frames, n_labels;
} prepare_job;

static int speeds(const prepare_job *job)
{
    return job->v->speed.count;
}

static void work(void *context, int item, int slot_number, int thread)
{
    prepare_job *job = context;
    (void)thread;
    slot *s = &job->slots[slot_number];
    const lin_utterance *u = lin_datadir_at(job->dir, item / speeds(job));
    lin_feature_options how = lin_feature_options_default();
    how.fbank = job->fbank;
    how.speed = job->v->speed.items[item % speeds(job)];
    s->error = (lin_error){0};
    s->format = (lin_audio_format){0};
    s->frames.rows = 0;
    s->status = LIN_OK;
    if (job->labels[item / speeds(job)].use) {
        s->status = lin_front_read_all(u->audio, NULL, &how, &s->frames, &s->format, &s->error);
    }
}

// Labels of every utterance. A transcript that cannot be pronounced is told here and its utterance left out.
static lin_status label_all(prepare_job *job, lin_error *err)
{
    int n = lin_datadir_count(job->dir);
    job->labels = lin_calloc((size_t)n, sizeof *job->labels);
    if (!job->labels) return lin_no_memory(err, "labels", (size_t)n * sizeof *job->labels);
    for (int i = 0; i < n; i++) {
        const lin_utterance *u = lin_datadir_at(job->dir, i);
        const int *labels;
        int count;
        lin_error inner = {0};
        lin_status status = lin_transcriber_line(job->wording.transcriber, u->text, strlen(u->text), &labels, &count, &inner);
        if (status == LIN_NO_MEMORY || status == LIN_UNSUPPORTED) return lin_fail(err, status, "%s: %s", u->id, inner.message);
        if (status != LIN_OK || count == 0) {
            lin_complain("%s: %s; left out", u->id, status == LIN_OK ? "nothing is said in its transcript" : inner.message);
            job->n_bad += status != LIN_OK;
            job->n_left_out += status == LIN_OK;
            continue;
        }
        int *copy = lin_alloc((size_t)count, sizeof *copy);
        if (!copy) return lin_no_memory(err, "labels", (size_t)count * sizeof *copy);
        memcpy(copy, labels, (size_t)count * sizeof *copy);
        job->labels[i] = (labelled){copy, count, 1};
    }
    return LIN_OK;
}

static void speed_name(char *out, size_t size, double speed, const char *name)
{
    if (speed > 1 - 1e-9 && speed < 1 + 1e-9) {
        snprintf(out, size, "%s", name);
    } else {
        snprintf(out, size, "sp%g-%s", speed, name);
    }
}

// One finished item into the cache; LIN_OK also where it was told about and left out.
static lin_status write_item(prepare_job *job, slot *s, int item, lin_error *err)
{
    const lin_utterance *u = lin_datadir_at(job->dir, item / speeds(job));
    const labelled *l = &job->labels[item / speeds(job)];
    char id[512], speaker[512];
    double speed = job->v->speed.items[item % speeds(job)];
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
        job->n_bad++;
        return LIN_OK;
    }
    int steps = (s->frames.rows + job->v->stack - 1) / job->v->stack, needed = lin_ctc_frames_needed(l->labels, l->n);
    if (s->frames.rows < 1 || steps < needed) {
        lin_complain("%s: %d frames are too few for %d phones (%d steps of %d needed); left out", id, s->frames.rows, l->n, needed,
                     job->v->stack);
        job->n_left_out++;
        return LIN_OK;
    }
    lin_status status = lin_dataset_add(job->writer, id, speaker, s->frames.data, s->frames.rows, l->labels, l->n, err);
    if (status == LIN_INVALID || status == LIN_NUMERIC) {
        lin_complain("%s: %s; left out", id, err->message);
        job->n_bad++;
        return LIN_OK;
    }
    if (status != LIN_OK) return status;
    job->n_added++;
    job->n_incomplete += s->format.incomplete;
    job->n_frames += s->frames.rows;
    job->n_labels += l->n;
    return LIN_OK;
}

static lin_status take(void *context, int item, int slot_number, lin_error *err)
{
    prepare_job *job = context;
    lin_status status = write_item(job, &job->slots[slot_number], item, err);
    if (lin_interrupted && status == LIN_OK) status = lin_fail(err, LIN_STOPPED, "interrupted; nothing was written");
    lin_progress_of(&job->progress, (double)(item + 1) / job->n_items, "%d of %d utterances, %.2f h, %s", item + 1, job->n_items,
                    (double)job->n_frames * job->fbank.hop_ms / 3.6e6, job->v->output);
    return status;
}

static lin_status run_threads(prepare_job *job, lin_error *err)
{
    int n_threads = lin_ordered_threads(job->v->jobs, job->n_items);
    job->n_slots = lin_ordered_slots(n_threads);
    job->slots = lin_calloc((size_t)job->n_slots, sizeof *job->slots);
    if (!job->slots) return lin_no_memory(err, "threads", (size_t)job->n_slots * sizeof *job->slots);
    return lin_ordered_run(&(lin_ordered){job->n_items, n_threads, job, work, take}, err);
}

static lin_status prepare(prepare_job *job, const char *path, lin_error *err)
{
    const prepare_values *v = job->v;
    lin_features features = lin_fbank_to_model(&job->fbank);
    lin_status status = lin_fbank_check(&job->fbank, err);
    if (status == LIN_OK) status = lin_datadir_load(path, v->audio_root, 1, &job->dir, err);
    for (int i = 0; status == LIN_OK && i < lin_datadir_count(job->dir); i++)
        status = lin_guard_reads(lin_datadir_at(job->dir, i)->audio, err);
    if (status == LIN_OK) status = lin_guard_writes(v->output, err);
    if (status == LIN_OK && v->oov) status = lin_guard_writes(v->oov, err);
    if (status == LIN_OK) status = lin_wording_open(&job->wording, v->lexicon, err);
    if (status != LIN_OK) return status;
    job->n_items = lin_datadir_count(job->dir) * speeds(job);
    status = label_all(job, err);
    if (status != LIN_OK) return status;
    status = lin_dataset_create(v->output, job->fbank.mel_bins, &features, lin_phones_list(job->wording.phones),
                                lin_base_name(path), &job->writer, err);
    if (status != LIN_OK) return status;
    lin_progress_begin(&job->progress, v->quiet);
    status = run_threads(job, err);
    lin_progress_end(&job->progress);
    if (status == LIN_OK && job->n_added == 0) {
        status = lin_fail(err, LIN_INVALID, "%s: no utterance is left, so no cache was written", path);
    }
    if (status != LIN_OK) {
        lin_dataset_abort(job->writer);
        return status;
    }
    status = lin_dataset_finish(job->writer, err);
    if (status == LIN_OK && v->oov) status = lin_wording_report(&job->wording, v->oov, err);
    return status;
}

static void summary(const prepare_job *job)
{
    long words = lin_transcriber_words(job->wording.transcriber), unknown = lin_transcriber_unknown_words(job->wording.transcriber);
    lin_complain(
        "%s: %d utterances, %.2f hours, %lld phones; %d left out, %d failed, %d incomplete; %ld of %ld words (%.2f %%, %d "
        "distinct) are not in the dictionary; %.1f s",
        job->v->output, job->n_added, (double)job->n_frames * job->fbank.hop_ms / 3.6e6, job->n_labels, job->n_left_out, job->n_bad,
        job->n_incomplete, unknown, words, words ? 100.0 * (double)unknown / (double)words : 0.0,
        lin_transcriber_unknown_count(job->wording.transcriber), lin_now() - job->progress.begun);
    const char *first_mark;
    const long marks = lin_transcriber_marks(job->wording.transcriber, &first_mark);
    lin_complain_of_marks(marks, first_mark);
}

static int run(lin_parsed *parsed)
{
    prepare_job job = {.v = parsed->values, .fbank = lin_fbank_from_values(&((prepare_values *)parsed->values)->fbank)};
    lin_error err = {0};
    const char *path = parsed->operands.items[0];
    char trimmed[4096];
    // "dir/" and "dir" are the same set.
    snprintf(trimmed, sizeof trimmed, "%s", path);
    for (size_t n = strlen(trimmed); n > 1 && trimmed[n - 1] == '/'; n--) trimmed[n - 1] = 0;
    int exit_status = LIN_EXIT_OK;
    if (prepare(&job, trimmed, &err) != LIN_OK) {
        exit_status = lin_give_up(&err);
    } else {
        if (!job.v->quiet) summary(&job);
        if (job.n_bad + job.n_incomplete > 0) exit_status = LIN_EXIT_FAILED;
    }
    for (int i = 0; i < job.n_slots && job.slots; i++) lin_matrix_free(&job.slots[i].frames);
    for (int i = 0; job.labels && i < lin_datadir_count(job.dir); i++) lin_free(job.labels[i].labels);
    lin_free(job.slots);
    lin_free(job.labels);
    if (job.wording.phones) lin_wording_close(&job.wording);
    lin_datadir_destroy(job.dir);
    return exit_status;
}

const lin_command lin_command_prepare = {
    .name = "prepare",
    .operands = "DIR",
    .summary = "turn a data directory into a feature cache for training",
    .description = "Reads a Kaldi-style data directory (wav.scp, text, utt2spk) or a list of lines PATH<tab>WHAT WAS SAID, and "
                   "writes one file with the features and the phones of every utterance: all that training needs.\n\n"
                   "Sound that cannot be read and transcripts that cannot be pronounced are reported and left out; the cache is "
                   "finished, and the exit status is 1; so it is where sound breaks off, which is used as far as it goes. Utterances "
                   "too short for their phones are named and left out as well.",
    .examples = "  linnet prepare corpus/train_native --speed 0.9,1,1.1 --high-hz 5500 -o train_native.lfc",
    .options = options,
    .values_size = sizeof(prepare_values),
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
