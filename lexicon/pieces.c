// pieces.c - see pieces.h.

#include "lexicon/pieces.h"

#include <string.h>

#include "base/memory.h"
#include "lexicon/dictionary.h"

const char lin_pieces_characters[] = "<s> _ ' a b c d e f g h i j k l m n o p q r s t u v w x y z";

static lin_status read_names(lin_symbols *names, const char *text, lin_error *err)
{
    const size_t first = strlen(lin_pieces_characters);
    if (strncmp(text, lin_pieces_characters, first) || (text[first] && text[first] != ' '))
        return lin_fail(err, LIN_MISMATCH, "the symbols are not pieces of words: they do not begin with <s>, _, ' and a to z");
    while (*text) {
        const size_t n = strcspn(text, " ");
        const int before = names->n;
        int index;
        const size_t letters = before ? strspn(text, "_'abcdefghijklmnopqrstuvwxyz") : n;
        if (letters != n || !n || n > LIN_PIECE_BYTES)
            return lin_fail(err, LIN_MISMATCH, "symbol %d, '%.*s', is not a piece", before, (int)(n < 60 ? n : 60), text);
        LIN_TRY(lin_symbols_add(names, text, n, &index, err));
        if (index != before) return lin_fail(err, LIN_MISMATCH, "the piece '%.*s' appears twice", (int)n, text);
        if (names->n > LIN_PIECES_MOST) return lin_fail(err, LIN_MISMATCH, "more than %d pieces", LIN_PIECES_MOST);
        text += n;
        if (*text == ' ') text++;
    }
    return LIN_OK;
}

lin_status lin_pieces_create(const char *names, lin_pieces **out, lin_error *err)
{
    *out = NULL;
    lin_pieces *p = lin_calloc(1, sizeof *p);
    if (!p) return lin_no_memory(err, "pieces", sizeof *p);
    const lin_status status = read_names(&p->names, names, err);
    if (status == LIN_OK) *out = p;
    else lin_pieces_destroy(p);
    return status;
}

void lin_pieces_destroy(lin_pieces *p)
{
    if (!p) return;
    lin_symbols_free(&p->names);
    lin_free(p);
}

// The piece that the two make together, or -1. Two of over LIN_PIECE_BYTES make none.
static int pair_of(const lin_pieces *p, int left, int right)
{
    char text[LIN_PIECE_BYTES];
    const size_t a = p->names.items[left].n, b = p->names.items[right].n;
    if (!left || !right || a + b > LIN_PIECE_BYTES) return -1;
    memcpy(text, lin_symbols_text(&p->names, left), a);
    memcpy(text + a, lin_symbols_text(&p->names, right), b);
    return lin_symbols_find(&p->names, text, a + b);
}

int lin_pieces_merge(const lin_pieces *p, int *at, int n)
{
    for (;;) {
        int best = -1, kept = 0;
        for (int i = 0; i + 1 < n; i++) {
            const int pair = pair_of(p, at[i], at[i + 1]);
            if (pair >= 0 && (best < 0 || pair < best)) best = pair;
        }
        if (best < 0) return n;
        for (int i = 0; i < n; i++) {
            if (i + 1 < n && pair_of(p, at[i], at[i + 1]) == best) at[kept++] = best, i++;
            else at[kept++] = at[i];
        }
        n = kept;
    }
}

lin_status lin_pieces_check(const char *word, size_t n, lin_error *err)
{
    if (!n || n > LIN_WORD_MAX) return lin_fail(err, LIN_FORMAT, "a word of %zu bytes; must be 1 to %d", n, LIN_WORD_MAX);
    for (size_t i = 0; i < n; i++)
        if (word[i] != '\'' && (word[i] < 'a' || word[i] > 'z'))
            return lin_fail(err, LIN_FORMAT, "'%.*s' has a character that is neither a-z nor an apostrophe",
                            (int)(n < 60 ? n : 60), word);
    return LIN_OK;
}

lin_status lin_pieces_encode(const lin_pieces *p, const char *word, size_t n, int *out, int capacity, int *n_out, lin_error *err)
{
    *n_out = 0;
    LIN_TRY(lin_pieces_check(word, n, err));
    if (capacity < (int)n + 1) return lin_fail(err, LIN_TOO_SMALL, "room for %d pieces; must be %zu", capacity, n + 1);
    out[0] = 1;
    for (size_t i = 0; i < n; i++) out[i + 1] = word[i] == '\'' ? 2 : 3 + word[i] - 'a';
    *n_out = lin_pieces_merge(p, out, (int)n + 1);
    return LIN_OK;
}

void lin_pieces_words(const lin_pieces *p, const int *at, int n, lin_buffer *text)
{
    int space = 0, any = 0;
    for (int i = 0; i < n; i++) {
        if (!at[i]) space = 1;
        for (const char *c = lin_symbols_text(&p->names, at[i]); at[i] && *c; c++) {
            if (*c == '_') {
                space = 1;
                continue;
            }
            if (space && any) lin_buffer_char(text, ' ');
            lin_buffer_char(text, *c);
            space = 0;
            any = 1;
        }
    }
}
