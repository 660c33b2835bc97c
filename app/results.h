/*
 * results.h - where results go: one stream in one format, or a folder with a file for each input and format.
 *
 * Pipeline: decoder/result -> [this, by decoder/writers] -> standard output, a file, or a folder.
 *
 *   typedef struct values { lin_results_values results; ... } values;
 *   static const lin_option options[] = {LIN_RESULTS_ROWS(values, results), ...};
 *
 *   lin_results r;
 *   exit_status = lin_results_check(&r, parsed, &values->results);              // formats; LIN_EXIT_OK if all is well
 *   lin_results_open(&r, phones, inputs, n_inputs, &err);
 *   lin_results_put(&r, name, results, n, &err);                                // for every input, in order
 *   lin_results_close(&r, &err);
 *   lin_results_free(&r);
 *
 * Text, CTM, CSV and labels of a single input can be written piece by piece, as they are settled: lin_results_flow.
 * Threads: one at a time.
 */
#ifndef LIN_APP_RESULTS_H
#define LIN_APP_RESULTS_H

#include "app/common.h"
#include "app/inputs.h"
#include "decoder/writers.h"

typedef struct lin_results_values {
    const char *format, *output, *output_dir;
    int unit, ids, ipa, word_times, skip_done;
} lin_results_values;

#define LIN_RESULTS_ROWS(owner, field)                                                                                            \
    {.name = "format", .letter = 'f', .type = LIN_OPTION_STRING, .at = offsetof(owner, field.format), .value = "NAME[,NAME]...",  \
     .choices = "text|json|ctm|trn|srt|vtt|textgrid|csv|audacity",                                                                \
     .help = "text; json: a line per file with times and confidences; ctm, trn: NIST's; srt, vtt: subtitles; textgrid: "          \
             "Praat's; csv; audacity: labels. Several with --output-dir. If not given, from the extension of --output, else "     \
             "text"},                                                                                                             \
    {.name = "output", .letter = 'o', .type = LIN_OPTION_FILE, .writes = 1, .at = offsetof(owner, field.output),                  \
     .help = "Output file; if not given, standard output"},                                                                       \
    {.name = "output-dir", .type = LIN_OPTION_FOLDER, .writes = 1, .at = offsetof(owner, field.output_dir),                       \
     .help = "Folder for a file per input and format, created if missing. It mirrors the folders of the inputs below the "        \
             "deepest common one: x/a.wav and y/a.wav give x/a.txt and y/a.txt"},                                                 \
    {.name = "skip-done", .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.skip_done),                                        \
     .help = "Skip inputs whose results all exist and are newer than the input, to continue an interrupted batch; with "          \
             "--output, do nothing if that file is newer than every input"},                                                      \
    {.name = "unit", .type = LIN_OPTION_CHOICE, .at = offsetof(owner, field.unit), .text = "auto",                                \
     .choices = "auto|phones|words|both", .help = "Unit of a line or label; auto: words if there are words, else phonemes, in "   \
                                                  "textgrid both; json always has both"},                                         \
    {.name = "word-times", .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.word_times),                                      \
     .help = "vtt: add the time of each word within a subtitle"},                                                                 \
    {.name = "ids", .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.ids),                                                    \
     .help = "Begin lines of text with the file's name even if there is only one"},                                               \
    {.name = "ipa", .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.ipa), .help = "Write phonemes in the IPA"}

enum { LIN_RESULTS_FORMATS = 16 };

typedef struct lin_results {
    const lin_results_values *values;
    const lin_writer *writers[LIN_RESULTS_FORMATS];
    int n_writers;
    lin_writer_options how;
    lin_writer_document document; /* of the one stream */
    lin_output out;
    lin_buffer text;
    int speakers; /* the results of an input are of its speakers, which a TextGrid holds together; else of its channels */
    int told;    /* something has flowed */
    int n_put;   /* inputs whose results are written */
    int is_part; /* the next results are of an input that was not heard to its end: lin_results_put_part */
} lin_results;

/* Chooses the formats and complains where the options do not go together: an exit status, LIN_EXIT_OK if all is well. */
int lin_results_check(lin_results *results, const lin_parsed *parsed, const lin_results_values *values);

/* Behind it, for commands that search: what is asked for must have a place in what is written. */
int lin_results_check_search(const lin_results *results, const lin_parsed *parsed, int words, int n_best);

/*
 * Names the results of these inputs (app/mirror.h), and with --skip-done marks those that are done. LIN_INVALID, with advice, where two would become one file, or where several do
 * not fit into one. lanes: results of each input may be several (channels).
 */
lin_status lin_results_fit(const lin_results *results, lin_inputs *inputs, int lanes, lin_error *err);

/* Makes the folder or opens the output, and writes what a file begins with. phones must outlive it. many: text needs ids. */
lin_status lin_results_open(lin_results *results, const lin_phones *phones, int many, lin_error *err);

/*
 * The n results of an input whose lin_input.name is `name`, in every format. LIN_INVALID: they cannot stand in a format, of which nothing is
 * written; other results are still welcome. LIN_IO, LIN_NO_MEMORY: the output is lost.
 */
lin_status lin_results_put(lin_results *results, const char *name, const lin_result *const *list, int n, lin_error *err);

/* Whether pieces can be written as they come: one stream of text without ids, CTM, CSV or labels. */
int lin_results_can_flow(const lin_results *results);

/* What is settled since the last call, written at once. Text and CTM allocate nothing that a call before did not need. */
lin_status lin_results_flow(lin_results *results, const lin_result *more, lin_error *err);

/* Behind the last piece; `rest` is that piece, which names the utterance if there was none. */
lin_status lin_results_flow_end(lin_results *results, const lin_result *rest, lin_error *err);

/*
 * Before results are put that end where the user stopped the program: 1 if they are wanted. Below --output-dir they go to files of
 * their own, <name>.part; in one stream they are wanted where it is of one input only and is a file.
 */
int lin_results_wants_part(lin_results *results, const lin_inputs *inputs);

/*
 * Ends the stream by how all went: `status` of what was done, and the inputs that failed. The output appears under its name for
 * LIN_OK, unless every input failed; for LIN_STOPPED what was finished is kept beside it, and told. A full disk is an error here.
 * Returns status, or that of closing.
 */
lin_status lin_results_close(lin_results *results, lin_status status, int n_failed, lin_error *err);
void lin_results_free(lin_results *results);

#endif
