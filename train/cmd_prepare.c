// cmd_prepare.c - linnet prepare: a data directory becomes a feature cache with labels, by several threads, in order.

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "app/commands.h"
#include "app/common.h"
#include "app/front.h"
#include "app/guard.h"
#include "train/prepare.h"

typedef struct prepare_values {
    const char *lexicon, *output, *audio_root, *oov;
    lin_numbers speed;
    int stack, no_speech, allow_oov, jobs, quiet;
    lin_fbank_values fbank;
} prepare_values;

static const lin_option options[] = {
    {.name = "lexicon", .letter = 'l', .type = LIN_OPTION_FILE, .at = offsetof(prepare_values, lexicon), .value = "DICT",
     .help = "Pronunciation dictionary in CMUdict's format; if not given, $LINNET_LEXICON, else the one installed with "
             "the program"},
    {.name = "output", .letter = 'o', .type = LIN_OPTION_FILE, .writes = 1, .required = 1, .at = offsetof(prepare_values, output),
     .help = "The cache to write; it appears when it is complete"},
    {.name = "audio-root", .type = LIN_OPTION_FOLDER, .at = offsetof(prepare_values, audio_root),
     .help = "Folder that the paths in wav.scp are relative to; if not given, the parent of DIR, or the folder of a list"},
    {.name = "speed", .type = LIN_OPTION_NUMBERS, .at = offsetof(prepare_values, speed), .text = "1", .min = 0.5, .max = 2,
     .help = "Include each utterance once at each of these speeds; copies are named sp0.9-NAME"},
    {.name = "stack", .type = LIN_OPTION_INT, .at = offsetof(prepare_values, stack), .text = "1", .min = 1, .max = 16,
     .help = "Frames per step of the model to be trained: utterances with too few steps for their phones are reported and left "
             "out"},
    {.name = "no-speech", .type = LIN_OPTION_FLAG, .at = offsetof(prepare_values, no_speech),
     .help = "Nobody speaks in these sounds: transcripts are ignored, and a model learns to put out nothing there"},
    {.name = "oov", .type = LIN_OPTION_FILE, .writes = 1, .at = offsetof(prepare_values, oov),
     .help = "Write the words outside the dictionary, with the phones chosen for them, to this file"},
    {.name = "allow-oov", .type = LIN_OPTION_FLAG, .at = offsetof(prepare_values, allow_oov),
     .help = "Go on when more than 20 % of the words are outside the dictionary, with the phones that rules choose for them"},
    {.name = "jobs", .letter = 'j', .type = LIN_OPTION_INT, .at = offsetof(prepare_values, jobs), .text = "0", .min = 0,
     .max = 1024,
     .help = "Threads; 0: one per core"},
    {.name = "quiet", .letter = 'q', .type = LIN_OPTION_FLAG, .at = offsetof(prepare_values, quiet),
     .help = "No progress, no summary"},
    LIN_FBANK_ROWS(prepare_values, fbank),
    {.type = LIN_OPTION_END},
};

/* A dictionary that lacks more of the words than this is most often one of another language. */
static const double MOST_UNKNOWN = 0.2;

typedef struct prepare_job {
    const prepare_values *v;
    lin_datadir *dir;
    lin_wording wording;
    lin_prepare_options how;
    lin_prepare_counts counts;
    lin_progress progress;
} prepare_job;

static double hours(const prepare_job *job, const lin_prepare_counts *counts)
{
    return (double)counts->frames * job->how.fbank.hop_ms / 3.6e6;
}

static void progress(void *context, int done, int all, const lin_prepare_counts *counts)
{
    prepare_job *job = context;
    lin_progress_of(&job->progress, (double)done / all, "%d of %d utterances, %.2f h, %s", done, all, hours(job, counts),
                    job->v->output);
}

static lin_status write_unknown(const prepare_job *job, lin_error *err)
{
    lin_buffer text = {0};
    lin_status status = lin_wording_unknown(&job->wording, INT_MAX, "", &text, err);
    if (status == LIN_OK) status = lin_output_write(job->v->oov, 0, &text, err);
    lin_buffer_free(&text);
    return status;
}

static lin_status prepare(prepare_job *job, const char *path, lin_error *err)
{
    const prepare_values *v = job->v;
    lin_status status = lin_fbank_check(&job->how.fbank, err);
    if (status == LIN_OK) status = lin_datadir_load(path, v->audio_root, !v->no_speech, &job->dir, err);
    for (int i = 0; status == LIN_OK && i < lin_datadir_count(job->dir); i++)
        status = lin_guard_reads(lin_datadir_at(job->dir, i)->audio, err);
    if (status == LIN_OK) status = lin_guard_writes(v->output, err);
    if (status == LIN_OK && v->oov) status = lin_guard_writes(v->oov, err);
    if (status == LIN_OK) status = lin_wording_open(&job->wording, v->lexicon, &job->how.warnings, err);
    if (status != LIN_OK) return status;
    lin_progress_begin(&job->progress, v->quiet);
    status = lin_prepare(job->dir, &job->wording, v->output, &job->how, &job->counts, err);
    lin_progress_end(&job->progress);
    if (status == LIN_MISMATCH && v->oov) write_unknown(job, &(lin_error){0}); // too many: the list helps
    return status == LIN_OK && v->oov ? write_unknown(job, err) : status;
}

static void summary(const prepare_job *job)
{
    const lin_transcriber *t = job->wording.transcriber;
    const lin_prepare_counts *n = &job->counts;
    const long words = lin_transcriber_words(t), unknown = lin_transcriber_unknown_words(t);
    lin_complain(
        "%s: %d utterances, %.2f hours, %lld phones; %d left out, %d failed, %d incomplete; %ld of %ld words (%.2f %%, %d "
        "distinct) are not in the dictionary; %.1f s",
        job->v->output, n->added, hours(job, n), n->labels, n->left_out, n->failed, n->incomplete, unknown, words,
        words ? 100.0 * (double)unknown / (double)words : 0.0, lin_transcriber_unknown_count(t), lin_now() - job->progress.begun);
    const char *first_mark;
    const long marks = lin_transcriber_marks(t, &first_mark);
    lin_complain_of_marks(marks, first_mark);
}

static int run(lin_parsed *parsed)
{
    const prepare_values *v = parsed->values;
    prepare_job job = {.v = v};
    lin_error err = {0};
    const char *path = parsed->operands.items[0];
    char trimmed[4096];
    // "dir/" and "dir" are the same set.
    snprintf(trimmed, sizeof trimmed, "%s", path);
    for (size_t n = strlen(trimmed); n > 1 && trimmed[n - 1] == '/'; n--) trimmed[n - 1] = 0;
    job.how = (lin_prepare_options){.fbank = lin_fbank_from_values(&v->fbank),
                                    .speeds = v->speed.items,
                                    .n_speeds = v->speed.count,
                                    .stack = v->stack,
                                    .no_speech = v->no_speech,
                                    .most_unknown = v->allow_oov ? 0 : MOST_UNKNOWN,
                                    .source = lin_base_name(trimmed),
                                    .jobs = v->jobs,
                                    .warnings = lin_complaints(0),
                                    .stop = &lin_interrupted,
                                    .progress = progress,
                                    .context = &job};
    const lin_status status = prepare(&job, trimmed, &err);
    if (status == LIN_OK && !v->quiet) summary(&job);
    if (job.wording.phones) lin_wording_close(&job.wording);
    lin_datadir_destroy(job.dir);
    if (status != LIN_OK) return lin_give_up(&err);
    return job.counts.failed + job.counts.incomplete > 0 ? LIN_EXIT_FAILED : LIN_EXIT_OK;
}

const lin_command lin_command_prepare = {
    .name = "prepare",
    .operands = "DIR",
    .summary = "make a feature cache for training from a data directory",
    .description = "Reads a Kaldi-style data directory (wav.scp, text, utt2spk) or a list of lines PATH<tab>WHAT WAS SAID, and "
                   "writes one file with the features and the phones of every utterance, which is all that training needs.\n\n"
                   "Sound that cannot be read and transcripts that cannot be pronounced are reported and left out; the cache is "
                   "completed, and the exit status is 1. With more than 20 % of the words outside the dictionary nothing is made, but "
                   "with --allow-oov. Incomplete sound is used up to its end, with the same exit status. "
                   "Utterances too short for their phones are reported and left out too.",
    .examples = "  linnet prepare corpus/train_native --speed 0.9,1,1.1 --high-hz 5500 -o train_native.lfc\n"
                "  linnet prepare music.txt --no-speech --high-hz 5500 -o music.lfc",
    .options = options,
    .values_size = sizeof(prepare_values),
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
