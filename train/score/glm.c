// glm.c - words that count as the same; see glm.h.

#include "train/score/glm.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/unicode.h"
#include "train/score/trn_reader.h"

static const char *trimmed(const char *at, const char *end)
{
    while (end > at && lin_is_space(end[-1])) end--;
    return end;
}

// The end of a rule's replacement: the "/" before its context, outside of braces.
static const char *find_context(const char *at, const char *end)
{
    int depth = 0;
    for (; at < end; at++) {
        depth += (*at == '{') - (*at == '}');
        if (*at == '/' && !depth) return at;
    }
    return end;
}

static int is_blank_context(const char *at, const char *end)
{
    const char *expected = "/[]__[]";
    for (; at < end; at++) {
        if (!lin_is_space(*at) && *at != *expected++) return 0; // the line has no NUL, so the end of `expected` never matches
    }
    return !*expected;
}

static lin_status read_rule(lin_glm *glm, lin_trn_reader *r, const lin_lines *line, lin_error *err)
{
    const char *at = line->text, *end = line->text + line->n, *comment = memmem(at, line->n, ";;", 2), *arrow;
    char id[16], shown[LIN_QUOTE];
    LIN_TRY(lin_lines_check(line, r->name, err));
    if (comment) end = comment;
    while (at < end && lin_is_space(*at)) at++;
    if (at == end || *at == '*') return LIN_OK;
    if (!(arrow = memmem(at, (size_t)(end - at), "=>", 2)))
        return lin_fail(err, LIN_FORMAT, "%s:%d: '%s': a rule is 'words => words'", r->name, line->number,
                        lin_quote(shown, at, (size_t)(end - at)));
    const char *source = trimmed(at, arrow), *to = arrow + 2, *context = find_context(to, end);
    if (source - at > 2 && *at == '[' && source[-1] == ']') at++, source--; // NIST's files have words in brackets
    if (context < end && !is_blank_context(context, end))
        return lin_fail(err, LIN_UNSUPPORTED, "%s:%d: the context '%s' is not supported, only '/ [ ] __ [ ]'", r->name,
                        line->number, lin_quote(shown, context, (size_t)(trimmed(context, end) - context)));
    snprintf(id, sizeof id, "%d", line->number);
    r->trn = &glm->from;
    lin_status status = lin_trn_add_utterance(r, id, strlen(id), line->number, err);
    if (status == LIN_OK) status = lin_trn_add_tokens(r, at, source, err);
    if (status == LIN_OK && !glm->from.utterances[glm->from.n - 1].n)
        return lin_fail(err, LIN_FORMAT, "%s:%d: there is no word before '=>'", r->name, line->number);
    r->trn = &glm->to;
    if (status == LIN_OK) status = lin_trn_add_utterance(r, id, strlen(id), line->number, err);
    return status != LIN_OK ? status : lin_trn_add_choices(r, to, context, line->number, err);
}

// The rules that begin with the same word form a list, first to last.
static lin_status link_rules(lin_glm *glm, int n_tokens, lin_error *err)
{
    glm->n = n_tokens;
    glm->first = lin_alloc((size_t)n_tokens, sizeof *glm->first);
    glm->next = lin_alloc((size_t)glm->from.n, sizeof *glm->next);
    if (!glm->first || !glm->next)
        return lin_no_memory(err, "a map of words", (size_t)(n_tokens + glm->from.n) * sizeof *glm->first);
    for (int t = 0; t < n_tokens; t++) glm->first[t] = -1;
    for (int i = glm->from.n - 1; i >= 0; i--) {
        int *first = &glm->first[glm->from.tokens[glm->from.utterances[i].first]];
        glm->next[i] = *first;
        *first = i;
    }
    return LIN_OK;
}

lin_status lin_glm_parse(const char *text, size_t n, const char *name, const lin_trn_options *options, lin_symbols *tokens,
                         lin_glm *glm, lin_error *err)
{
    lin_trn_reader r = {.name = name, .options = *options, .tokens = tokens};
    lin_lines line;
    char *own;
    *glm = (lin_glm){0};
    lin_status status = lin_unicode_clean(text, n, name, LIN_UNICODE_ANY, &own, &text, &n, err);
    if (status != LIN_OK) return status;
    lin_lines_begin(&line, text, n);
    while (status == LIN_OK && lin_lines_next(&line)) status = read_rule(glm, &r, &line, err);
    if (status == LIN_OK && !glm->from.n) status = lin_fail(err, LIN_FORMAT, "%s: the file has no rule", name);
    if (status == LIN_OK) status = link_rules(glm, tokens->n, err);
    lin_free(own);
    lin_trn_reader_free(&r);
    if (status != LIN_OK) lin_glm_free(glm);
    return status;
}

// The first rule that matches tokens[0 ... n - 1], as rfilter1 chooses it, or -1.
static int find_rule(const lin_glm *glm, const int *tokens, int n)
{
    for (int i = *tokens >= 0 && *tokens < glm->n ? glm->first[*tokens] : -1; i >= 0; i = glm->next[i]) {
        const lin_trn_utterance *from = &glm->from.utterances[i];
        if (from->n <= n && !memcmp(glm->from.tokens + from->first, tokens, (size_t)from->n * sizeof *tokens)) return i;
    }
    return -1;
}

// Appends the words of one utterance.
static lin_status rewrite(const lin_glm *glm, const int *tokens, int n, int **out, size_t *written, size_t *capacity,
                          lin_error *err)
{
    int depth = 0;
    for (int k = 0; k < n;) {
        const int token = tokens[k], is_plain = !depth && !(k && tokens[k - 1] == LIN_EDIT_OPTIONAL);
        const int rule = is_plain ? find_rule(glm, tokens + k, n - k) : -1;
        const lin_trn_utterance *to = rule >= 0 ? &glm->to.utterances[rule] : &(lin_trn_utterance){.n = 1};
        const int *words = rule >= 0 ? glm->to.tokens + to->first : &token;
        depth += (token == LIN_EDIT_OPEN) - (token == LIN_EDIT_CLOSE);
        LIN_TRY(lin_grow(out, capacity, *written + (size_t)to->n, sizeof **out, "transcripts", err));
        if (to->n) memcpy(*out + *written, words, (size_t)to->n * sizeof **out);
        *written += (size_t)to->n;
        k += rule >= 0 ? glm->from.utterances[rule].n : 1;
    }
    return LIN_OK;
}

lin_status lin_glm_apply(const lin_glm *glm, lin_trn *trn, lin_error *err)
{
    int *tokens = NULL;
    size_t n = 0, capacity = 0;
    lin_status status = LIN_OK;
    for (int u = 0; u < trn->n && status == LIN_OK; u++) {
        lin_trn_utterance *it = &trn->utterances[u];
        const size_t first = n;
        if (it->n) status = rewrite(glm, trn->tokens + it->first, it->n, &tokens, &n, &capacity, err);
        it->first = first;
        it->n = (int)(n - first);
    }
    lin_free(trn->tokens);
    trn->tokens = tokens;
    trn->n_tokens = n;
    trn->tokens_capacity = capacity;
    if (status != LIN_OK) lin_trn_free(trn);
    return status;
}

void lin_glm_free(lin_glm *glm)
{
    lin_trn_free(&glm->from);
    lin_trn_free(&glm->to);
    lin_free(glm->first);
    lin_free(glm->next);
    *glm = (lin_glm){0};
}
