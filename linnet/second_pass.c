// second_pass.c - an utterance of a stream once more, when it has ended; see second_pass.h.

#include "linnet/second_pass.h"

#include <math.h>

#include "base/memory.h"
#include "linnet/combiner.h"
#include "linnet/second_network.h"

struct lin_second_pass {
    const lin_recognizer *r;
    lin_second_network *network;
    lin_decoding decoding; // of the stream, with this model's time between two rows and emission delay
    lin_decoder decoder;
};

// The streams' decoding, whose phrases may have changed, from the first row of this model that is not before the stream's `row`;
// times are earlier by what lies between. Returns that row.
static int64_t decode_by(lin_second_pass *p, const lin_decoding *decoding, int64_t row)
{
    const double row_s = p->r->row_seconds, from_s = (double)row * decoding->row_seconds;
    p->decoding = *decoding;
    p->decoding.search = decoding->whole;
    p->decoding.delay_s = p->r->delay_s;
    if (row_s == decoding->row_seconds) return row;
    const int64_t first = (int64_t)ceil(from_s / row_s);
    p->decoding.row_seconds = row_s;
    p->decoding.delay_s += (double)first * row_s - from_s;
    return first;
}

lin_status lin_second_pass_create(const lin_recognizer *first, const lin_recognizer *second, const lin_decoding *decoding,
                                  int n_threads, lin_second_pass **pass, lin_error *err)
{
    const lin_decoding greedy = lin_decoding_greedy(second->V, first->row_seconds, 0);
    *pass = NULL;
    lin_second_pass *p = lin_calloc(1, sizeof *p);
    if (!p) return lin_no_memory(err, "a second pass", sizeof *p);
    p->r = second;
    decode_by(p, decoding ? decoding : &greedy, 0);
    lin_status status = lin_decoder_create(&p->decoder, &p->decoding, err);
    if (status == LIN_OK)
        status = lin_second_network_create(first, second, n_threads, p->decoding.language, &p->network, err);
    if (status == LIN_OK) status = lin_combiner_create(first, &p->decoding, n_threads, &p->decoder.combiner, err);
    if (status == LIN_OK) *pass = p;
    else lin_second_pass_destroy(p);
    return status;
}

void lin_second_pass_destroy(lin_second_pass *p)
{
    if (!p) return;
    lin_second_network_destroy(p->network);
    lin_combiner_destroy(p->decoder.combiner);
    lin_decoder_free(&p->decoder);
    lin_free(p);
}

static lin_status go_on(const lin_second_pass *p, lin_error *err)
{
    return p->r->skip && *p->r->skip ? lin_fail(err, LIN_STOPPED, "the second pass is skipped") : LIN_OK;
}

static lin_status push_rows(void *context, const float *logp, int n, lin_error *err)
{
    lin_second_pass *p = context;
    const lin_status status = go_on(p, err);
    return status == LIN_OK ? lin_decoder_push(&p->decoder, logp, n, err) : status;
}

lin_status lin_second_pass_run(lin_second_pass *p, const lin_decoding *decoding, const float *frames, int n, int64_t row,
                               lin_result *result, lin_error *err)
{
    lin_decoder_reset(&p->decoder, decode_by(p, decoding, row));
    lin_status status = go_on(p, err);
    if (status == LIN_OK) status = lin_second_network_run(p->network, frames, n, push_rows, p, err);
    lin_combiner_begin(p->decoder.combiner);
    if (status == LIN_OK) status = lin_combiner_push(p->decoder.combiner, frames, n, err);
    if (status == LIN_OK) status = go_on(p, err);
    if (status != LIN_OK) return status;
    lin_result_clear(result);
    return lin_decoder_finish(&p->decoder, result, err);
}
