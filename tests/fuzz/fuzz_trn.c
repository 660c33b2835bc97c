// The readers of TRN and Kaldi text and the scorer with its reports on any bytes. The first byte chooses the formats; a byte 0x1E
// divides reference and hypothesis, or with 0x20 in the first byte a map of words and the transcript that it is applied to.

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "train/score/edit.h"
#include "train/score/glm.h"
#include "train/score/score.h"
#include "train/score/score_report.h"
#include "train/score/trn.h"

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
    for (int i = 0; i < score->speakers.n; i++) {
        lin_score_speaker(score, i, &c);
        check_counts(&c);
        sum.sub += c.sub;
        sum.del += c.del;
        sum.ins += c.ins;
    }
    c = score->total;
    check_counts(&c);
    if (sum.sub != c.sub || sum.del != c.del || sum.ins != c.ins) abort();
    lin_score_report report = {.score = score, .measure = "PER", .utterances = 1, .alignments = 1, .confusions = 5};
    if (lin_score_text(&report, &out, &err) || lin_score_json(&report, &out, &err) || lin_score_html(&report, &out, &err))
        abort();
    lin_buffer_free(&out);
    lin_score_destroy(score);
}

static void try_map(const char *rules, size_t n_rules, const char *text, size_t n, const lin_score_options *how)
{
    const lin_trn_options options = {
        .format = LIN_TRN_TRN, .case_sensitive = how->case_sensitive, .normalize = how->normalize};
    lin_error err = {0};
    lin_symbols tokens = {0};
    lin_trn trn = {0};
    lin_glm glm;
    lin_status status = lin_trn_parse(text, n, "x", &options, &tokens, &trn, &err);
    check(status, &err);
    if (status == LIN_OK) check(status = lin_glm_parse(rules, n_rules, "map", &options, &tokens, &glm, &err), &err);
    if (status == LIN_OK) {
        check(lin_glm_apply(&glm, &trn, &err), &err);
        for (int u = 0; u < trn.n; u++) {
            if (trn.utterances[u].first + (size_t)trn.utterances[u].n > trn.n_tokens) abort();
        }
        for (size_t i = 0; i < trn.n_tokens; i++) {
            if (trn.tokens[i] >= tokens.n || trn.tokens[i] < LIN_EDIT_OPTIONAL || trn.tokens[i] == -1) abort();
        }
        lin_glm_free(&glm);
    }
    lin_trn_free(&trn);
    lin_symbols_free(&tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size) return 0;
    unsigned long live = lin_memory_live();
    lin_score_options options = {.ref_format = (lin_trn_format)(data[0] & 3),
                                 .hyp_format = (lin_trn_format)(data[0] >> 2 & 3),
                                 .case_sensitive = data[0] >> 4 & 1,
                                 .normalize = data[0] >> 6 & 1};
    const char *text = (const char *)data + 1, *cut = memchr(text, 0x1E, size - 1);
    if (cut && data[0] & 0x20) {
        try_map(text, (size_t)(cut - text), cut + 1, (size_t)((const char *)data + size - (cut + 1)), &options);
    } else if (cut) {
        size_t n = (size_t)(cut - text);
        try_score(text, n, cut + 1, size - 2 - n, &options);
    } else { // against itself: no errors
        lin_error err = {0};
        lin_score *score;
        options.hyp_format = options.ref_format;
        lin_status status = lin_score_texts(text, size - 1, "x", text, size - 1, "x", &options, &score, &err);
        check(status, &err);
        if (status == LIN_OK) {
            lin_score_counts c = score->total;
            if (c.sub || c.del || c.ins) abort();
            lin_score_destroy(score);
        }
    }
    if (lin_memory_live() != live) abort();
    return 0;
}
