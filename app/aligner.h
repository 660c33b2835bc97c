/*
 * aligner.h - one utterance aligned: a text, or the utterances of a TextGrid, with a sound or a matrix of log-probabilities.
 *
 * Pipeline: linnet/spoken (the text), linnet/recognize (the sound) -> decoder/align -> [this] -> decoder/result.
 * linnet align has an aligner for each thread and a slot for each result that is not written yet. The aligners read the job, which
 * they share; what is counted and written in it belongs to the thread that takes the results in order.
 *
 *   lin_aligner_align(&job->aligners[thread], item, slot);          // an item of job->inputs into slot->result and slot->more
 *
 * app/cmd_align.c makes and releases all of it.
 */
#ifndef LIN_APP_ALIGNER_H
#define LIN_APP_ALIGNER_H

#include "app/common.h"
#include "app/corpus.h"
#include "app/front.h"
#include "app/inputs.h"
#include "app/model_options.h"
#include "app/results.h"
#include "app/speakers.h"
#include "base/symbols.h"
#include "decoder/align.h"
#include "decoder/boundaries.h"
#include "decoder/goodness.h"
#include "linnet/recognize.h"
#include "linnet/spoken.h"

typedef struct lin_aligner_values {
    lin_model_values model;
    lin_input_values input;
    lin_results_values results;
    const char *text, *text_file, *phones, *data, *audio_root, *lexicon, *posteriors;
    double row_ms, beam;
    int times, stress, jobs, quiet;
} lin_aligner_values;

enum { TIMES_SOUND, TIMES_PATH };

typedef struct lin_aligner_job lin_aligner_job;

// What a thread keeps from one utterance to the next.
typedef struct lin_aligner {
    lin_aligner_job *job;
    lin_ear *ear;
    lin_spoken spoken;
    lin_align *align; // of the present utterance
    lin_path path;
    lin_goodness *goodness;
    int goodness_capacity;
    int keeps_rows; // of a sound whose utterances have times, each aligned within its own
    float *rows;    // [n_rows, V]
    size_t n_rows, rows_capacity; // capacity: of floats
    float *frames;  // [n_frames, D], with them
    size_t n_frames, frames_capacity;
    signed char *stress; // of the path's phones
    int stress_capacity;
    lin_path whole; // of all utterances of a tier
    struct lin_aligner_span *spans;
    int n_spans, spans_capacity;
    lin_boundaries *boundaries; // NULL: times are those of the path
    lin_segment *segments;
    int segments_capacity;
} lin_aligner;

// An utterance with times, as part of a result.
typedef struct lin_aligner_span {
    double start_s, end_s;
    int first_phone, first_word;
} lin_aligner_span;

typedef struct lin_aligner_slot {
    lin_status status;
    lin_error error;
    lin_result result;
    lin_result *more; // of further speakers: more[0 .. n_results-2]
    int n_results, more_capacity;
    lin_buffer notes; // on single utterances, a line each
    int n_bad;        // utterances that could not be aligned
    lin_align_report report;
    lin_buffer guesses;
    int marks;
    char first_mark[48];
    double seconds;
    char warning[256];
    int incomplete; // some of the sound is missing
} lin_aligner_slot;

struct lin_aligner_job {
    const lin_aligner_values *v;
    lin_recognizer recognizer;
    lin_inputs inputs;
    lin_corpus corpus; // texts of the inputs, where they lie beside them
    int beside;        // they do
    lin_speakers speakers;
    lin_spoken_lexicon lexicon;
    int channel;
    double row_s;
    lin_part part; // of --start and --end
    char *text; // of the one file; NULL: each utterance has its own
    size_t n_text;
    lin_results_values how;
    lin_results results;
    lin_aligner *aligners;
    int n_aligners;
    lin_aligner_slot *slots;
    int n_slots;
    lin_symbols guessed; // words told of, of which only the first
    lin_progress progress;
    int n_done, n_failed, n_incomplete, n_bad; // n_bad: utterances of TextGrids that could not be aligned
    long n_marks; // such as [laughs]
    char first_mark[48];
    double seconds;
};

/* Aligns an item with its text. LIN_OK with s->n_bad: some utterances of a TextGrid could not be; s->notes names them. */
lin_status lin_aligner_align(lin_aligner *a, int item, lin_aligner_slot *s);

/* ---- its steps, for app/aligner_grid.c -------------------------------------------------------------------------------------- */

/* The words, or phones, of a text into a->spoken. */
lin_status lin_aligner_text(lin_aligner *a, const char *text, size_t n, lin_error *err);

/* The rows of a sound into a->align, or, where a->keeps_rows, into a->rows with the frames beside them. */
lin_status lin_aligner_hear(lin_aligner *a, const lin_input *input, lin_aligner_slot *s);

/* Stress of the phones of a->path, while a->align knows which pronunciations it chose. */
lin_status lin_aligner_stress(lin_aligner *a, lin_error *err);

/* a->path behind what the result has; then, when all is added, goodness and times. */
lin_status lin_aligner_add_path(lin_aligner *a, lin_result *result, lin_error *err);
lin_status lin_aligner_finish(lin_aligner *a, lin_aligner_slot *s, lin_result *result);

/* Every interval with a text of the TextGrid `path`, each within its times: a result for each speaker. */
lin_status lin_aligner_grid(lin_aligner *a, const lin_input *input, const char *path, const lin_align_options *o,
                            lin_aligner_slot *s);

#endif
