/*
 * transcripts.h - helpers for the tests of score/trn and of scores: files of tests/golden, and transcripts as one line of text.
 */
#ifndef LIN_TESTS_SCORE_TRANSCRIPTS_H
#define LIN_TESTS_SCORE_TRANSCRIPTS_H

#include "score/edit_choices.h"
#include "score/trn.h"
#include "tests/lexicon/support.h"

SUPPORT const char *golden = "tests/golden";

SUPPORT const char *golden_path(const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", golden, name);
    return path;
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
