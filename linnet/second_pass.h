/*
 * second_pass.h - an utterance of a stream once more, when it has ended: its frames through a second model, which may read the
 * whole utterance or have more look-ahead, and its rows through the search of whole utterances (lin_decoding.whole).
 *
 * Pipeline: the frames of an utterance (linnet/utterances keeps them) -> [this: model/encoder, linnet/decoding] -> final result.
 *
 *   lin_second_pass_create(&first, &second, &decoding, 1, &pass, &err);
 *   lin_second_pass_run(pass, &decoding, frames, n, row, &result, &err);     // as often as utterances end
 *   lin_second_pass_destroy(pass);
 *
 * Both models have the same features, phones and frames of a step, so that the frames of the stream, its lexicon, language
 * model and phrases serve both. Their hops may differ: frames between those of the stream are interpolated. With the same hop
 * the result is that of linnet/file_session with the second model on these frames, whatever came before them; but files compare
 * hypotheses by piece (lin_front_next_utterance) with a rescorer or combiner, which this does by utterance.
 * Threads: one at a time per object; any number of streams may share it one after the other.
 */
#ifndef LIN_LINNET_SECOND_PASS_H
#define LIN_LINNET_SECOND_PASS_H

#include "linnet/decoding.h"
#include "linnet/recognizer.h"

typedef struct lin_second_pass lin_second_pass;

/*
 * first: the recogniser of the streams; second must outlive the object. decoding: that of the streams, NULL for greedy; its
 * searches must outlive the object. n_threads work together; 0: one per core. LIN_MISMATCH if the models differ in features other
 * than the hop, phones or frames of a step; LIN_UNSUPPORTED for a second model that is normalised by speaker. On failure *pass
 * is NULL.
 */
lin_status lin_second_pass_create(const lin_recognizer *first, const lin_recognizer *second, const lin_decoding *decoding,
                                  int n_threads, lin_second_pass **pass, lin_error *err);
/* NULL is allowed. */
void lin_second_pass_destroy(lin_second_pass *pass);

/*
 * frames [n, D], unnormalised, of one utterance, the first of which is that of row `row` of the stream: what is recognised in
 * them replaces the result, with alternatives where the decoding has some. LIN_STOPPED: it was skipped (lin_recognizer.skip), and
 * the result is unchanged. decoding: of the stream, with the searches of
 * creation; its phrases count. An utterance that is longer than models are trained on is cut at pauses
 * (lin_front_next_utterance). Memory grows with the longest utterance.
 */
lin_status lin_second_pass_run(lin_second_pass *pass, const lin_decoding *decoding, const float *frames, int n, int64_t row,
                               lin_result *result, lin_error *err);

#endif
