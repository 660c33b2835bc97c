// One utterance as sclite's "-o pralign" prints it.

#include "base/textfile.h"
#include "base/utf8.h"
#include "score/score_report.h"

static void blanks(lin_buffer *out, size_t n) { lin_buffer_pad(out, out->n, n, 0); }

// A token in a column of `width` characters and a blank after it; NULL is a gap: stars as long as the token of the other side, or
// blanks beside an optional word.
static void put_token(lin_buffer *out, const char *text, size_t width, int is_wrong, int capitals)
{
    if (!text) {
        for (size_t i = 0; i < width; i++) lin_buffer_char(out, is_wrong ? '*' : ' ');
        lin_buffer_char(out, ' ');
        return;
    }
    for (const char *c = text; *c; c++)
        lin_buffer_char(out, is_wrong && capitals && *c >= 'a' && *c <= 'z' ? (char)(*c - 32) : *c);
    blanks(out, width - lin_utf8_count(text) + 1);
}

static size_t column(const lin_score *s, const lin_score_pair *p)
{
    const size_t ref = p->ref < 0 ? 0 : lin_utf8_count(lin_score_token_of(s, p->ref)),
                 hyp = p->hyp < 0 ? 0 : lin_utf8_count(lin_score_token_of(s, p->hyp));
    return ref > hyp ? ref : hyp;
}

void lin_score_align(const lin_score_report *r, int u, lin_buffer *out)
{
    const lin_score *s = r->score;
    lin_score_counts c;
    int n;
    const char *id = lin_score_utterance(s, u, &c);
    const lin_score_pair *p = lin_score_alignment(s, u, &n);
    const long long counts[] = {c.correct, c.sub, c.del, c.ins};
    lin_buffer_text(out, "id: (");
    lin_buffer_text(out, id);
    lin_buffer_text(out, ")\nScores: (#C #S #D #I)");
    for (int i = 0; i < 4; i++) {
        lin_buffer_char(out, ' ');
        lin_buffer_integer(out, counts[i]);
    }
    if (!n) { // sclite prints no empty lines
        lin_buffer_text(out, "\n\n");
        return;
    }
    lin_buffer_text(out, "\nREF:  ");
    for (int i = 0; i < n; i++) put_token(out, lin_score_token_of(s, p[i].ref), column(s, &p[i]), !p[i].is_right, !r->keep_case);
    lin_buffer_text(out, "\nHYP:  ");
    for (int i = 0; i < n; i++) put_token(out, lin_score_token_of(s, p[i].hyp), column(s, &p[i]), !p[i].is_right, !r->keep_case);
    lin_buffer_text(out, "\nEval: ");
    for (int i = 0; i < n; i++) {
        lin_buffer_char(out, p[i].is_right ? ' ' : p[i].ref < 0 ? 'I' : p[i].hyp < 0 ? 'D' : 'S');
        blanks(out, column(s, &p[i]));
    }
    lin_buffer_text(out, "\n\n");
}
