// Readers of results, and the scorer, on any bytes.
#include "tests/fuzz/fuzz.h"

#include "base/textfile.h"
#include "lexicon/phones.h"
#include "train/score/edit.h"
#include "train/score/glm.h"
#include "train/score/score.h"
#include "train/score/score_report.h"
#include "train/score/trn.h"

// Files of results. The first byte chooses: bit 0 case, bit 1 words instead of phones, bit 2 phones in the IPA. The bytes before
// a byte 0x1E are a phone map.

// Every index is within its table; the texts have no control characters and no token has blanks.
static void look_at(const lin_trn *trn, const lin_symbols *tokens)
{
    for (int u = 0; u < trn->n; u++) {
        const lin_trn_utterance *v = &trn->utterances[u];
        if (v->n < 0 || v->line < 1 || v->first + (size_t)v->n > trn->n_tokens) abort();
        for (int i = 0; i < v->n; i++) {
            int token = trn->tokens[v->first + (size_t)i];
            if (token < LIN_EDIT_OPTIONAL || token == -1 || token >= tokens->n) abort();
        }
    }
    if (trn->ids.n != trn->n) abort();
    for (int i = 0; i < tokens->n; i++) {
        const char *text = lin_symbols_text(tokens, i);
        size_t n = tokens->items[i].n;
        if (!n || lin_text_find_control(text, n) < n || memchr(text, ' ', n) || memchr(text, '\t', n)) abort();
    }
}

static void read_any(const uint8_t *data, size_t size, lin_trn_format format)
{
    if (!size) return;
    lin_trn_options o = {.format = format, .case_sensitive = data[0] & 1, .unit = data[0] & 2 ? LIN_TRN_WORDS : LIN_TRN_PHONES};
    const char *text = (const char *)data + 1, *cut = memchr(text, 0x1E, size - 1);
    size_t n = size - 1;
    lin_error err = {0};
    lin_phone_map *map = NULL;
    lin_symbols tokens = {0};
    lin_trn trn;
    if (cut) {
        check_status(lin_phone_map_parse(text, (size_t)(cut - text), "map", o.case_sensitive, &map, &err), &err);
        n -= (size_t)(cut + 1 - text);
        text = cut + 1;
    }
    lin_phones *phones = NULL;
    if (data[0] & 4) check_status(lin_phones_create(NULL, &phones, &err), &err);
    o.phones = phones;
    o.map = map;
    lin_status status = lin_trn_parse(text, n, "x", &o, &tokens, &trn, &err);
    check_status(status, &err);
    if (status == LIN_OK) look_at(&trn, &tokens);
    lin_trn_free(&trn);
    lin_symbols_free(&tokens);
    lin_phone_map_destroy(map);
    lin_phones_destroy(phones);
}

/* ---- ctm ------------------------------------------------------------------------------------------------------------------- */

// The reader of CTM on any bytes, with and without a phone map before a byte 0x1E.
void fuzz_ctm(const uint8_t *data, size_t size)
{
    read_any(data, size, LIN_TRN_CTM);
}

/* ---- json ------------------------------------------------------------------------------------------------------------------ */

// The reader of JSON lines on any bytes, with and without a phone map before a byte 0x1E.
void fuzz_json(const uint8_t *data, size_t size)
{
    read_any(data, size, LIN_TRN_JSON);
}

/* ---- stm ------------------------------------------------------------------------------------------------------------------- */

// The reader of STM on any bytes, and the words of a CTM, behind a byte 0x1F, cut by its lines.
static void cut(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *behind = size ? memchr(text, 0x1F, size) : NULL;
    const lin_trn_options as_ctm = {.format = LIN_TRN_CTM, .by_channel = 1}, as_stm = {.format = LIN_TRN_STM};
    lin_symbols tokens = {0};
    lin_trn stm = {0}, ctm = {0};
    lin_error err = {0};
    if (!behind) return;
    lin_status status = lin_trn_parse(text, (size_t)(behind - text), "x", &as_stm, &tokens, &stm, &err);
    if (status == LIN_OK)
        status = lin_trn_parse(behind + 1, size - (size_t)(behind + 1 - text), "y", &as_ctm, &tokens, &ctm, &err);
    if (status == LIN_OK) status = lin_stm_cut(&stm, "x", &ctm, "y", &err);
    if (status == LIN_OK) status = lin_stm_rename(&stm, &ctm, &err);
    check_status(status, &err);
    if (status == LIN_OK) look_at(&ctm, &tokens);
    lin_trn_free(&stm);
    lin_trn_free(&ctm);
    lin_symbols_free(&tokens);
}

void fuzz_stm(const uint8_t *data, size_t size)
{
    read_any(data, size, LIN_TRN_STM);
    cut(data, size);
}

/* ---- trn ------------------------------------------------------------------------------------------------------------------- */

// The readers of TRN and Kaldi text and the scorer with its reports on any bytes. The first byte chooses the formats; a byte 0x1E
// divides reference and hypothesis, or with 0x20 in the first byte a map of words and the transcript that it is applied to.
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
    check_status(status, &err);
    if (status != LIN_OK) return;
    for (int i = 0; i < score->speakers.n; i++) {
        c = score->by_speaker[i];
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
    lin_trn_options options = how->read;
    lin_error err = {0};
    lin_symbols tokens = {0};
    lin_trn trn = {0};
    lin_glm glm;
    options.format = LIN_TRN_TRN;
    lin_status status = lin_trn_parse(text, n, "x", &options, &tokens, &trn, &err);
    check_status(status, &err);
    if (status == LIN_OK) check_status(status = lin_glm_parse(rules, n_rules, "map", &options, &tokens, &glm, &err), &err);
    if (status == LIN_OK) {
        check_status(lin_glm_apply(&glm, &trn, &err), &err);
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

void fuzz_trn(const uint8_t *data, size_t size)
{
    if (!size) return;
    lin_score_options options = {.read = {.format = (lin_trn_format)(data[0] & 3),
                                          .case_sensitive = data[0] >> 4 & 1,
                                          .normalize = data[0] >> 6 & 1},
                                 .hyp_format = (lin_trn_format)(data[0] >> 2 & 3)};
    const char *text = (const char *)data + 1, *cut = memchr(text, 0x1E, size - 1);
    if (cut && data[0] & 0x20) {
        try_map(text, (size_t)(cut - text), cut + 1, (size_t)((const char *)data + size - (cut + 1)), &options);
    } else if (cut) {
        size_t n = (size_t)(cut - text);
        try_score(text, n, cut + 1, size - 2 - n, &options);
    } else { // against itself: no errors
        lin_error err = {0};
        lin_score *score;
        options.hyp_format = options.read.format;
        lin_status status = lin_score_texts(text, size - 1, "x", text, size - 1, "x", &options, &score, &err);
        check_status(status, &err);
        if (status == LIN_OK) {
            lin_score_counts c = score->total;
            if (c.sub || c.del || c.ins) abort();
            lin_score_destroy(score);
        }
    }
}
