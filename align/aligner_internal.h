/* aligner_internal.h - what aligner.c (one text) and aligner_grid.c (the utterances of a TextGrid) share. */
#ifndef LIN_ALIGN_ALIGNER_INTERNAL_H
#define LIN_ALIGN_ALIGNER_INTERNAL_H

#include "align/aligner.h"
#include "align/boundaries.h"
#include "align/goodness.h"

/* An utterance with times, as part of a result. */
typedef struct lin_aligner_span {
    double start_s, end_s;
    int first_phone, first_word;
} lin_aligner_span;

struct lin_aligner {
    const lin_recognizer *recognizer;
    const lin_spoken_lexicon *lexicon;
    lin_align_options options;
    double row_s, start_s, end_s; /* of the present sound: the part of it that is aligned */
    lin_file_session *session;    /* NULL: rows only */
    int is_phones;                /* the present text is */
    lin_spoken spoken;
    lin_align *align;             /* of the present utterance */
    lin_path path;
    lin_goodness *goodness;
    int goodness_capacity;
    int keeps_rows;               /* of a TextGrid, whose utterances are aligned each within its own */
    float *rows;                  /* [n_rows, V] */
    size_t n_rows, rows_capacity; /* capacity: of floats */
    float *frames;                /* [n_frames, D], with them */
    size_t n_frames, frames_capacity;
    signed char *stress;          /* of the path's phones */
    int stress_capacity;
    lin_path whole;               /* of all utterances of a tier */
    lin_aligner_span *spans;
    int n_spans, spans_capacity;
    int n_judged;                 /* utterances of a TextGrid that the report is of */
    lin_align_report few;         /* the worst of those of few phones, which are judged together */
    double few_fit;               /* sum over their phones */
    int few_phones;
    lin_boundaries *boundaries;   /* NULL: times are those of the path */
    int has_frames;               /* of the present sound, for the boundaries */
    lin_segment *segments;
    int segments_capacity;
};

/* ---- the steps of an alignment --------------------------------------------------------------------------------------------- */

/* The words, or phones, of a text into a->spoken. */
lin_status lin_aligner_parse(lin_aligner *a, const char *text, size_t n, lin_error *err);

/* The rows of the input into a->align, or, where a->keeps_rows, into a->rows with the frames beside them. */
lin_status lin_aligner_read(lin_aligner *a, const lin_aligner_input *input, lin_alignment *out, lin_error *err);

/* Stress of the phones of a->path, while a->align knows which pronunciations it chose. */
lin_status lin_aligner_stress(lin_aligner *a, lin_error *err);

/* Goodness of the phones of a->path, while a->align has its rows, as numbers `first` and following of a->goodness. */
lin_status lin_aligner_judge(lin_aligner *a, int first, lin_error *err);

/* One more result, empty and named. */
lin_status lin_aligner_begin(lin_alignment *out, const char *id, const char *speaker, int channel, lin_result **result,
                             lin_error *err);

/* Appends a->path to the result; then, when all is appended, goodness (measured before) and times. */
lin_status lin_aligner_add_path(lin_aligner *a, lin_result *result, lin_error *err);
lin_status lin_aligner_finish(lin_aligner *a, const lin_alignment *out, lin_result *result, lin_error *err);

/* Every interval with a text of a TextGrid, each within its times: a result for each speaker. */
lin_status lin_aligner_grid(lin_aligner *a, const lin_aligner_input *input, lin_alignment *out, lin_error *err);

#endif
