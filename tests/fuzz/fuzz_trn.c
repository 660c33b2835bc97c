// The readers of TRN and Kaldi text and the scorer with its reports on any bytes. The first byte chooses the formats; a byte 0x1E
// divides reference and hypothesis.

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "score/score.h"
#include "score/score_report.h"
#include "score/trn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(lin_status status, const lin_error *err)
{
    if (status == LIN_OK) return;
    if (status != err->status || !err->message[0]) abort();
}

static void check_counts(const lin_score_counts *c)
{
    if (c->correct + c->sub + c->del != c->n_ref || c->correct < 0 || c->sub < 0 || c->del < 0 || c->ins < 0) abort();
}

static void try_score(const char *ref, size_t n_ref, const char *hyp, size_t n_hyp, const lin_score_options *options)
{
    lin_error err = {0};
    lin_score *score;
    lin_buffer out = {0};
    lin_score_counts c, sum = {0};
    lin_status status = lin_score_texts(ref, n_ref, "ref", hyp, n_hyp, "hyp", options, &score, &err);
    check(status, &err);
    if (status != LIN_OK) return;
    for (int i = 0; i < lin_score_speakers(score); i++) {
        lin_score_speaker(score, i, &c);
        check_counts(&c);
        sum.sub += c.sub;
        sum.del += c.del;
        sum.ins += c.ins;
    }
    c = lin_score_total(score);
    check_counts(&c);
    if (sum.sub != c.sub || sum.del != c.del || sum.ins != c.ins) abort();
    lin_score_report report = {.score = score, .measure = "PER", .utterances = 1, .alignments = 1, .confusions = 5};
    if (lin_score_text(&report, &out, &err) || lin_score_json(&report, &out, &err) || lin_score_html(&report, &out, &err))
        abort();
    lin_buffer_free(&out);
    lin_score_destroy(score);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size) return 0;
    unsigned long live = lin_memory_live();
    lin_score_options options = {.ref_format = (lin_trn_format)(data[0] & 3), .hyp_format = (lin_trn_format)(data[0] >> 2 & 3),
                                 .case_sensitive = data[0] >> 4 & 1};
    const char *text = (const char *)data + 1, *cut = memchr(text, 0x1E, size - 1);
    if (cut) {
        size_t n = (size_t)(cut - text);
        try_score(text, n, cut + 1, size - 2 - n, &options);
    } else { // against itself: no errors
        lin_error err = {0};
        lin_score *score;
        options.hyp_format = options.ref_format;
        lin_status status = lin_score_texts(text, size - 1, "x", text, size - 1, "x", &options, &score, &err);
        check(status, &err);
        if (status == LIN_OK) {
            lin_score_counts c = lin_score_total(score);
            if (c.sub || c.del || c.ins) abort();
            lin_score_destroy(score);
        }
    }
    if (lin_memory_live() != live) abort();
    return 0;
}
