/*
 * transcripts.h - helpers for the tests of train/score/trn and of scores: sclite's counts, and transcripts as one line of text.
 */
#ifndef LIN_TESTS_SCORE_TRANSCRIPTS_H
#define LIN_TESTS_SCORE_TRANSCRIPTS_H

#include "train/score/edit.h"
#include "train/score/score.h"
#include "train/score/trn.h"
#include "tests/lexicon/support.h"

// Compares a score with sclite's counts, "id C S D I" or "utt|spk id C S D I" in each line; returns the number of utterances.
SUPPORT int compare_with_sclite(const char *ref, const char *hyp, const char *counts)
{
    lin_score *s;
    OK(lin_score_files(golden_path(ref), golden_path(hyp), NULL, &s, &err));
    FILE *file = fopen(golden_path(counts), "r");
    ck_assert_ptr_nonnull(file);
    char line[512], id[256];
    int n_utterances = 0, n_speakers = 0;
    while (fgets(line, sizeof line, file)) {
        long long want[4];
        lin_score_counts c = {0};
        if (line[0] == '#') continue;
        const int is_speaker = !strncmp(line, "spk ", 4), kind = is_speaker || !strncmp(line, "utt ", 4) ? 4 : 0;
        ck_assert_int_eq(sscanf(line + kind, "%255s %lld %lld %lld %lld", id, &want[0], &want[1], &want[2], &want[3]), 5);
        int found = 0, n = is_speaker ? s->speakers.n : s->ref.n;
        for (int i = 0; i < n && !found; i++) {
            found = !strcmp(is_speaker ? lin_score_speaker(s, i) : lin_score_utterance(s, i), id);
            c = is_speaker ? s->by_speaker[i] : s->by_utterance[i];
        }
        ck_assert_msg(found, "%s is not in the score", id);
        ck_assert_msg(c.correct == want[0] && c.sub == want[1] && c.del == want[2] && c.ins == want[3],
                      "%s: %lld %lld %lld %lld, sclite has %lld %lld %lld %lld", id, c.correct, c.sub, c.del, c.ins, want[0],
                      want[1], want[2], want[3]);
        ck_assert_int_eq(c.n_ref, c.correct + c.sub + c.del);
        n_utterances += !is_speaker;
        n_speakers += is_speaker;
    }
    fclose(file);
    ck_assert_int_eq(n_utterances, s->ref.n);
    if (n_speakers) ck_assert_int_eq(n_speakers, s->speakers.n);
    lin_score_destroy(s);
    return n_utterances;
}

SUPPORT lin_status parse(const char *text, size_t n, const char *name, lin_trn_options o, lin_error *err)
{
    lin_symbols tokens = {0};
    lin_trn trn;
    lin_status status = lin_trn_parse(text, n, name, &o, &tokens, &trn, err);
    lin_trn_free(&trn);
    lin_symbols_free(&tokens);
    return status;
}

// The utterances read, "id: a b | id2:", then the tokens that are not in the map and the number of deleted ones.
SUPPORT const char *read_back(const char *text, const char *name, lin_trn_options o)
{
    static char out[2048];
    lin_symbols tokens = {0};
    lin_trn trn;
    OK(lin_trn_parse(text, strlen(text), name, &o, &tokens, &trn, &err));
    out[0] = '\0';
    for (int u = 0; u < trn.n; u++) {
        sprintf(out + strlen(out), "%s%s:", u ? " | " : "", lin_symbols_text(&trn.ids, u));
        for (int i = 0; i < trn.utterances[u].n; i++) {
            static const char *const marks[] = {"{", "/", "}", "@", "?"}; // from LIN_EDIT_OPEN down
            const int token = trn.tokens[trn.utterances[u].first + (size_t)i];
            sprintf(out + strlen(out), " %s", token < 0 ? marks[LIN_EDIT_OPEN - token] : lin_symbols_text(&tokens, token));
        }
    }
    for (int i = 0; i < trn.unmapped.n; i++) sprintf(out + strlen(out), " ?%s", lin_symbols_text(&trn.unmapped, i));
    if (trn.n_deleted) sprintf(out + strlen(out), " -%lld", trn.n_deleted);
    lin_trn_free(&trn);
    lin_symbols_free(&tokens);
    return out;
}

#endif
