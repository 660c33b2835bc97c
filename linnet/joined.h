/*
 * joined.h - one result from a decoder that begins anew at endpoints: the utterances between them one after the other.
 *
 * Pipeline: linnet/decoding, a segment at a time -> [this] -> app/results.
 *
 *   lin_joined joined = {0};
 *   lin_joined_begin(&joined);                                     // for every result
 *   lin_joined_endpoint(&joined, &decoder, row, 0, &result, &err); // what is decoded ends before this row; it begins anew there
 *   lin_joined_finish(&joined, &decoder, &result, &err);           // the last segment: the result is whole
 *   lin_joined_free(&joined);
 *
 * Scores of the whole are the sums of the segments' scores, since each is decoded without regard to the others. For the same
 * reason the n best alternatives of the whole are exactly the n best choices of one alternative from every segment's list.
 * Memory: without alternatives none; with them that of all segments' alternatives. Threads: one at a time per object.
 */
#ifndef LIN_LINNET_JOINED_H
#define LIN_LINNET_JOINED_H

#include "linnet/decoding.h"

typedef struct lin_joined_choice {
    double score;
    int before, alternative; /* the choice for the segments before, by number, and the alternative of this one */
} lin_joined_choice;

typedef struct lin_joined {
    double score, acoustic, language; /* of the segments that have ended */
    lin_result *segments;             /* [n] with their alternatives, where there are alternatives */
    int n, capacity;
    lin_joined_choice *choices; /* [n, n_best], the best first */
    int *n_choices;             /* [n] */
    int choices_capacity, n_choices_capacity;
} lin_joined;

void lin_joined_begin(lin_joined *joined);
void lin_joined_free(lin_joined *joined);

/* Without alternatives the segment is appended to the result, less what was taken from the decoder before. carry: of
 * lin_search_reset. LIN_NO_MEMORY; errors of lin_decoder_finish. */
lin_status lin_joined_endpoint(lin_joined *joined, lin_decoder *decoder, int64_t row, int carry, lin_result *result,
                               lin_error *err);
lin_status lin_joined_finish(lin_joined *joined, lin_decoder *decoder, lin_result *result, lin_error *err);

#endif
