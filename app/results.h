/*
 * results.h - output of results: one stream in one format, or a folder with a file per input and format; and a list of inputs
 * that several threads work on.
 *
 * Pipeline: decoder/result -> [this, by decoder/writers] -> standard output, a file, or a folder.
 *
 *   typedef struct values { lin_results_values results; ... } values;
 *   static const lin_option options[] = {LIN_RESULTS_ROWS(values, results), ...};
 *
 *   lin_results r;
 *   exit_status = lin_results_check(&r, parsed, &values->results);              // formats; LIN_EXIT_OK on success
 *   lin_results_open(&r, phones, many, &err);
 *   lin_results_put(&r, input, results, n, &err);                               // for every input, in order
 *   lin_results_close(&r, status, n_failed, &err);
 *   lin_results_free(&r);
 *
 * Text, CTM, CSV and labels of a single input can be written in pieces as they are settled: lin_results_flow.
 * Threads: one at a time.
 */
#ifndef LIN_APP_RESULTS_H
#define LIN_APP_RESULTS_H

#include "app/common.h"
#include "app/inputs.h"
#include "base/symbols.h"
#include "decoder/result.h"
#include "decoder/writers.h"
#include "lexicon/readable.h"

typedef struct lin_results_values {
    const char *format, *output, *output_dir, *input_root;
    int unit, ids, ipa, skip_done, word_times, times, paragraphs, columns;
    double cue_min_s, cue_max_s;
    lin_cue_options cues; /* but for cue_min_s and cue_max_s */
} lin_results_values;

#define LIN_RESULTS_ROWS(owner, field)                                                                                           \
    {.name = "format", .letter = 'f', .type = LIN_OPTION_STRING, .at = offsetof(owner, field.format),                            \
     .value = "NAME[,NAME]...", .choices = "text|json|ctm|trn|srt|vtt|textgrid|csv|audacity|nemo|rttm",                       \
     .help = "text; json: a line per file with times and confidences; ctm, trn: NIST's; srt, vtt: subtitles; textgrid: "         \
             "Praat's; csv; audacity: labels; nemo: the manifest that was read, with pred_text; rttm: who speaks when. Several " \
             "with --output-dir. If not given, from the extension of --output, else text"},                                      \
    {.name = "output", .letter = 'o', .type = LIN_OPTION_FILE, .writes = 1, .at = offsetof(owner, field.output),                 \
     .help = "File to write; if not given, standard output"},                                                                    \
    {.name = "output-dir", .type = LIN_OPTION_FOLDER, .writes = 1, .at = offsetof(owner, field.output_dir),                      \
     .help = "Folder to write a file per input and format into; it is created if missing. It has the folders of the inputs "     \
             "below their deepest common one: x/a.wav and y/a.wav give x/a.txt and y/a.txt"},                                    \
    {.name = "input-root", .expert = 1, .type = LIN_OPTION_FOLDER, .at = offsetof(owner, field.input_root),                      \
     .help = "Folder that --output-dir mirrors, which contains all inputs; if not given, the deepest common one. With it, "      \
             "parts of a list give the results that the whole list gives"},                                                      \
    {.name = "skip-done", .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.skip_done),                                       \
     .help = "Skip inputs whose results all exist and are newer than the input, to continue an interrupted batch; with "         \
             "--output, do nothing if that file is newer than every input"},                                                     \
    {.name = "unit", .expert = 1, .type = LIN_OPTION_CHOICE, .at = offsetof(owner, field.unit), .text = "auto",                  \
     .choices = "auto|phones|words|both",                                                                                        \
     .help = "Unit of a line or label; auto: words if there are words, else phonemes, in textgrid both; json always has both"},  \
    {.name = "ids", .expert = 1, .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.ids),                                      \
     .help = "Begin each line of text with the name of its file, even if there is only one file"},                               \
    {.name = "cues", .type = LIN_OPTION_SETTINGS, .help = "How subtitles (srt, vtt) are laid out"},                              \
    LIN_SETTING_ROW("cues", "width", INT, offsetof(owner, field.cues.width), "42", 10, 200, NULL,                                \
        "Characters of a subtitle's longest line"),                                                                              \
    LIN_SETTING_ROW("cues", "rows", INT, offsetof(owner, field.cues.rows), "2", 1, 2, NULL, "Most lines of a subtitle"),         \
    LIN_SETTING_ROW("cues", "min", DOUBLE, offsetof(owner, field.cue_min_s), "1", 0.1, 10, "S",                                  \
        "Shortest time on the screen, unless the next subtitle comes before"),                                                   \
    LIN_SETTING_ROW("cues", "max", DOUBLE, offsetof(owner, field.cue_max_s), "7", 1, 60, "S", "Longest time on the screen"),     \
    LIN_SETTING_ROW("cues", "speed", INT, offsetof(owner, field.cues.speed), "17", 5, 100, NULL,                                 \
        "Characters that people read in a second. A subtitle stays so long if the speech allows it, and long text is divided "   \
        "so that it does"),                                                                                                      \
    LIN_SETTING_ROW("cues", "gap", INT, offsetof(owner, field.cues.gap_ms), "0", 0, 1000, "MS",                                  \
        "Shortest time between two subtitles, at most half of what the first would have"),                                       \
    {.name = "word-times", .under = "cues", .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.word_times),                    \
     .help = "vtt: mark the time of each word inside its subtitle"},                                                             \
    {.name = "ipa", .expert = 1, .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.ipa), .help = "Write phonemes in the IPA"}

/* Of commands whose text is running text; beside LIN_RESULTS_ROWS. */
#define LIN_TEXT_ROWS(owner, field)                                                                                              \
    {.name = "layout", .type = LIN_OPTION_SETTINGS, .help = "How text without ids looks"},                                       \
    {.name = "times", .under = "layout", .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.times),                            \
     .help = "Begin each paragraph with its time, [00:01:23]"},                                                                  \
    {.name = "paragraphs", .under = "layout", .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.paragraphs), .text = "yes",   \
     .help = "Put an empty line where nobody speaks for more than 2 s. Phonemes and plain words have paragraphs only if this "   \
             "is given"},                                                                                                        \
    LIN_SETTING_ROW("layout", "columns", INT, offsetof(owner, field.columns), "100", 0, 100000, NULL,                            \
        "Characters of the longest line; 0: any. Lines of phonemes and plain words are divided only if this is given")

/* ---- turns ----------------------------------------------------------------------------------------------------------------- */

/*
 * What several speakers say, each on a channel, as one transcript: their turns in the order of time. A turn continues over pauses
 * of up to 2 s in which nobody else speaks; where speakers interrupt each other, it ends at a pause of 0.5 s.
 *
 *   lin_turns turns = {0};                                       // reused
 *   lin_turns_make(&turns, results, n, &err);
 *   for (i = 0; i < turns.n; i++) ... turns.items[i].result, turns.items[i].until_s ...
 *   lin_turns_free(&turns);
 */
typedef struct lin_turn {
    lin_result result; /* named after the whole, its speaker and the number of the turn: "call-anna-0001" */
    double start_s, end_s, until_s; /* of what is said; when the next turn begins, at least end_s; INFINITY: there is none */
} lin_turn;

typedef struct lin_turns {
    lin_turn *items;
    int n, capacity;
} lin_turns;

/* Replaces the turns by those of results [n], whose ids begin with the name of the sound, `name`. LIN_NO_MEMORY. */
lin_status lin_turns_make(lin_turns *turns, const char *name, const lin_result *const *results, int n, lin_error *err);
void lin_turns_free(lin_turns *turns);

/* Writes results [n], of speakers, as their turns; in a format with a place for each speaker (textgrid, rttm), and without turns,
 * one behind the other. Fails as lin_write_speakers does. */
lin_status lin_turns_write(const lin_turns *turns, const lin_writer *writer, const lin_result *const *list, int n,
                           const lin_writer_options *how, lin_buffer *out, lin_error *err);

/* The name with this number, from 1, in a comma-separated list; if there is none (or no list, NULL): `other` and the number. */
const char *lin_speaker_name(const char *names, int number, const char *other, char *name, size_t capacity);

/* What each speaker says that --diarize found in `all`, under the name in the list or as S1, S2, ...: replaces the first *n of
 * results [LIN_SPEAKERS_MOST], which the caller frees. LIN_NO_MEMORY. */
lin_status lin_part_speakers(const lin_result *all, const char *names, lin_result *speakers, int *n, lin_error *err);

/* ---- results --------------------------------------------------------------------------------------------------------------- */

enum { LIN_RESULTS_FORMATS = 16 };

typedef struct lin_results {
    const lin_results_values *values;
    const lin_writer *writers[LIN_RESULTS_FORMATS];
    int n_writers;
    lin_writer_options how;
    lin_writer_document document; /* of the one stream */
    lin_output out;
    lin_buffer text;
    lin_punctuation *punctuation; /* of readable text; NULL: plain words */
    lin_g2p_rules *speller;       /* of words outside the lexicon in it; NULL: none */
    lin_readable readable;        /* of the stream that flows */
    lin_writer_layout layout;     /* likewise */
    lin_turns turns; /* room for lin_results_put */
    lin_symbols ids; /* of the one stream, where it is scored */
    int is_twice;    /* an id came twice */
    int by_turns; /* an input with at least so many results has speakers, written as turns in the order of time; 0: none has */
    lin_part part; /* of --start and --end, in which case no input is a part */
    int by_channel; /* --channel chose one or each */
    int speakers; /* 1: an input has a result per speaker, all in one TextGrid; 0: a result per channel */
    int is_laid_out; /* --layout was given */
    int told;    /* a piece has been written */
    int n_put;   /* inputs whose results are written */
    int is_part; /* the next results are of an interrupted input: lin_results_wants_part */
} lin_results;

/* Selects the formats and checks the options: an exit status, LIN_EXIT_OK on success. */
int lin_results_check(lin_results *results, const lin_parsed *parsed, const lin_results_values *values);

/* Next, for commands that search: checks that the formats can hold what the options request. */
int lin_results_check_search(const lin_results *results, const lin_parsed *parsed, const lin_decoding_values *values);

/* Before lin_results_open, for commands that recognise words: these become readable text in the formats for people, if the model
 * for it is installed. least: words of less confidence are "[...]" there. */
lin_status lin_results_make_readable(lin_results *results, const lin_phones *phones, double least, lin_error *err);

/* Creates the folder or opens the output, and writes the beginning of the file. phones must outlive it. many: text needs ids. */
lin_status lin_results_open(lin_results *results, const lin_phones *phones, int many, lin_error *err);

/*
 * Writes the n results of an input in every format. LIN_INVALID: a format cannot hold them, and
 * nothing is written in it; other results can still be written. LIN_IO, LIN_NO_MEMORY: the output is lost.
 */
lin_status lin_results_put(lin_results *results, const lin_input *input, const lin_result *const *list, int n, lin_error *err);

/* 1 if pieces can be written as they are settled: one stream of text without ids, CTM, CSV or labels. */
int lin_results_can_flow(const lin_results *results);

/* Writes at once what was settled since the last call. Text and CTM allocate no more than an earlier call did, except to spell
 * words outside the lexicon in readable text. */
lin_status lin_results_flow(lin_results *results, const lin_result *more, lin_error *err);

/* After the last piece; `rest` is that piece, which names the utterance if there was no other. */
lin_status lin_results_flow_end(lin_results *results, const lin_result *rest, lin_error *err);

/*
 * Call before putting the results of an interrupted input: 1 if they are kept. Below --output-dir they go to separate files,
 * <name>.part; one stream keeps them only if it is a file and has one input.
 */
int lin_results_wants_part(lin_results *results, const lin_inputs *inputs);

/*
 * Ends the stream by `status` and the number of inputs that failed. The output appears under its name for LIN_OK, unless every
 * input failed; for LIN_STOPPED the results so far are kept beside it, which is reported. A full disk is an error here.
 * Returns status, or that of closing.
 */
lin_status lin_results_close(lin_results *results, lin_status status, int n_failed, lin_error *err);
void lin_results_free(lin_results *results);

/* ---- many inputs, on several threads --------------------------------------------------------------------------------------- */

/*
 * Inputs done by several threads, their results written in order: what transcribe, align and decode share.
 *
 *   lin_bulk b = {.noun = "file", .jobs = v->jobs, .quiet = v->quiet, .context = &job, .work = work, .take = take};
 *   exit_status = lin_results_check(&b.results, parsed, &v->results);
 *   lin_inputs_add_paths(&b.inputs, operands, &err);
 *   status = lin_bulk_begin(&b, 0, &err);                         // names results; with --skip-done marks what is done
 *   if (status == LIN_OK && !lin_inputs_all_done(&b.inputs)) {
 *       lin_bulk_threads(&b, sizeof(slot), sizeof(thread), &err); // zeroed; the caller fills each
 *                                                                 // lin_bulk_thread(&b, 0 .. n_threads-1)
 *       lin_results_open(&b.results, phones, many, &err);
 *       lin_bulk_run(&b, &err);
 *   }
 *   exit_status = lin_bulk_end(&b, status, &err);                 // the summary, or the error
 *   ... release what slots and threads hold ...
 *   lin_bulk_free(&b);
 *
 * An input that fails is reported and counted, and the others are done.
 */
typedef struct lin_bulk lin_bulk;
typedef struct lin_bulk_outcome lin_bulk_outcome;

struct lin_bulk {
    const char *noun; /* of an input, for messages: "file" */
    int jobs, quiet;
    int own_progress; /* 1: `take` and `work` show the progress */
    void *context;
    /* Processes an input into a slot, on one of the threads. Not LIN_OK: the input has failed. */
    lin_status (*work)(void *context, int item, int slot, int thread, lin_error *err);
    /* Then called in the order of the inputs, on the caller's thread, with the status of `work`. LIN_OK: it writes the slot's
     * results; if it returns LIN_INVALID they cannot be written, which is reported and counted; any other failure ends the run.
     * After failed or interrupted work its return value is ignored. It adds to seconds and n_incomplete. */
    lin_status (*take)(void *context, int item, int slot, lin_status status, lin_error *err);
    lin_inputs inputs;
    lin_results results;
    lin_progress progress;
    int n_done, n_failed, n_incomplete;
    double seconds; /* of sound, done so far */
    int n_threads, n_slots;
    int cores_each; /* cores for the work inside a thread: more than 1 if there are fewer inputs than cores */
    /* ---- its own ----------------------------------------------------------------------------------------------------------- */
    lin_bulk_outcome *outcomes; /* [n_slots] */
    char *slots, *threads;
    size_t slot_bytes, thread_bytes;
};

/* Names the results and, with --skip-done, marks those that are done; starts the clock. */
lin_status lin_bulk_begin(lin_bulk *bulk, int lanes, lin_error *err);

/* Allocates the memory of each slot and each thread, zeroed. */
lin_status lin_bulk_threads(lin_bulk *bulk, size_t slot_bytes, size_t thread_bytes, lin_error *err);
void *lin_bulk_slot(const lin_bulk *bulk, int slot);
void *lin_bulk_thread(const lin_bulk *bulk, int thread);

/* After lin_results_open: processes all inputs that are not done, and closes the results. LIN_STOPPED after an interrupt. */
lin_status lin_bulk_run(lin_bulk *bulk, lin_error *err);

/* Complains about `status`, or writes the summary. The exit status of the command. */
int lin_bulk_end(const lin_bulk *bulk, lin_status status, const lin_error *err);

void lin_bulk_free(lin_bulk *bulk);

#endif
