// The reports of score.h: a table for people, JSON for programs.
#include <string.h>

#include "decoder/score.h"
#include "lexicon/textfile.h"

enum { MAX_CONFUSIONS = 30, NAME_WIDTH = 24, COLUMN = 9 };

static void cell(lin_buffer *out, double value, int digits)
{
    size_t from = out->n;
    lin_buffer_fixed(out, value, digits);
    lin_buffer_pad(out, from, COLUMN, 1);
}

static void title(lin_buffer *out, const char *text)
{
    size_t from = out->n;
    lin_buffer_text(out, text);
    lin_buffer_pad(out, from, COLUMN, 1);
}

static double percent(long long part, long long whole) { return whole ? 100.0 * (double)part / (double)whole : 0; }

static void row(lin_buffer *out, const char *name, const lin_score_counts *c)
{
    size_t from = out->n;
    lin_buffer_text(out, name);
    lin_buffer_pad(out, from, NAME_WIDTH, 0);
    cell(out, (double)c->utterances, 0);
    cell(out, (double)c->n_ref, 0);
    cell(out, percent(c->correct, c->n_ref), 2);
    cell(out, percent(c->sub, c->n_ref), 2);
    cell(out, percent(c->del, c->n_ref), 2);
    cell(out, percent(c->ins, c->n_ref), 2);
    cell(out, 100 * lin_score_rate(c), 2);
    cell(out, percent(c->wrong, c->utterances), 2);
    lin_buffer_char(out, '\n');
}

static void number(lin_buffer *out, long long value, const char *after)
{
    lin_buffer_integer(out, value);
    lin_buffer_text(out, after);
}

void lin_score_text(const lin_score *s, const char *what, lin_buffer *out)
{
    static const char *const titles[] = {"utts", "tokens", "% corr", "% sub", "% del", "% ins"};
    lin_score_counts c, total = lin_score_total(s);
    char name[LIN_QUOTE];
    size_t from = out->n;
    lin_buffer_text(out, "speaker");
    lin_buffer_pad(out, from, NAME_WIDTH, 0);
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) title(out, titles[i]);
    lin_buffer_text(out, "    % ");
    lin_buffer_text(out, what);
    title(out, "% utts");
    lin_buffer_char(out, '\n');
    for (int i = 0; i < lin_score_speakers(s); i++) {
        const char *speaker = lin_score_speaker(s, i, &c);
        row(out, lin_quote(name, speaker, strlen(speaker)), &c);
    }
    row(out, "all", &total);
    lin_buffer_char(out, '\n');
    lin_buffer_text(out, what);
    lin_buffer_char(out, ' ');
    lin_buffer_fixed(out, 100 * lin_score_rate(&total), 2);
    lin_buffer_text(out, " %: ");
    number(out, total.sub, " substitutions, ");
    number(out, total.del, " deletions, ");
    number(out, total.ins, " insertions in ");
    number(out, total.n_ref, " tokens of ");
    number(out, total.utterances, " utterances\n");
    if (lin_score_without_line(s)) {
        number(out, lin_score_without_line(s), " utterances have no line in the CTM hypothesis and count as deleted\n");
    }
}

static void json_counts(lin_buffer *out, const lin_score_counts *c)
{
    lin_buffer_text(out, "\"utterances\":");
    lin_buffer_integer(out, c->utterances);
    lin_buffer_text(out, ",\"wrong_utterances\":");
    lin_buffer_integer(out, c->wrong);
    lin_buffer_text(out, ",\"tokens\":");
    lin_buffer_integer(out, c->n_ref);
    lin_buffer_text(out, ",\"correct\":");
    lin_buffer_integer(out, c->correct);
    lin_buffer_text(out, ",\"substitutions\":");
    lin_buffer_integer(out, c->sub);
    lin_buffer_text(out, ",\"deletions\":");
    lin_buffer_integer(out, c->del);
    lin_buffer_text(out, ",\"insertions\":");
    lin_buffer_integer(out, c->ins);
    lin_buffer_text(out, ",\"rate\":");
    lin_buffer_fixed(out, lin_score_rate(c), 6);
}

static void json_text(lin_buffer *out, const char *text)
{
    if (text) lin_buffer_json(out, text, strlen(text));
    else lin_buffer_text(out, "null");
}

// A list of named counts: speakers or utterances.
static void json_list(const lin_score *s, const char *key, int n, const char *(*get)(const lin_score *, int, lin_score_counts *),
                      lin_buffer *out)
{
    lin_score_counts c;
    lin_buffer_text(out, ",\n\"");
    lin_buffer_text(out, key);
    lin_buffer_text(out, "\":[");
    for (int i = 0; i < n; i++) {
        const char *name = get(s, i, &c);
        lin_buffer_text(out, i ? ",\n{\"id\":" : "\n{\"id\":");
        json_text(out, name);
        lin_buffer_char(out, ',');
        json_counts(out, &c);
        lin_buffer_char(out, '}');
    }
    lin_buffer_char(out, ']');
}

void lin_score_json(const lin_score *s, const char *what, int with_utterances, lin_buffer *out)
{
    lin_score_counts total = lin_score_total(s);
    int n = lin_score_confusions(s) < MAX_CONFUSIONS ? lin_score_confusions(s) : MAX_CONFUSIONS;
    lin_buffer_text(out, "{\"measure\":");
    json_text(out, what);
    lin_buffer_char(out, ',');
    json_counts(out, &total);
    lin_buffer_text(out, ",\"without_line\":");
    lin_buffer_integer(out, lin_score_without_line(s));
    json_list(s, "speakers", lin_score_speakers(s), lin_score_speaker, out);
    lin_buffer_text(out, ",\n\"confusions\":[");
    for (int i = 0; i < n; i++) {
        lin_score_confusion c = lin_score_confusion_at(s, i);
        lin_buffer_text(out, i ? ",\n{\"ref\":" : "\n{\"ref\":");
        json_text(out, c.ref);
        lin_buffer_text(out, ",\"hyp\":");
        json_text(out, c.hyp);
        lin_buffer_text(out, ",\"count\":");
        lin_buffer_integer(out, c.count);
        lin_buffer_char(out, '}');
    }
    lin_buffer_char(out, ']');
    if (with_utterances) json_list(s, "utterances_by_id", lin_score_utterances(s), lin_score_utterance, out);
    lin_buffer_text(out, "}\n");
}
