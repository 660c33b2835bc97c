// The score as one JSON object.
#include <string.h>

#include "decoder/score_report.h"

enum { MAX_CONFUSIONS = 30, MAX_MATRIX = 100 };

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

static void json_field(lin_buffer *out, const char *key, long long value)
{
    lin_buffer_text(out, ",\"");
    lin_buffer_text(out, key);
    lin_buffer_text(out, "\":");
    lin_buffer_integer(out, value);
}

// ,"key":[low,high]; nothing where there was only one thing to draw from
static void json_interval(lin_buffer *out, const char *key, const lin_interval *v)
{
    if (v->units < 2) return;
    lin_buffer_text(out, ",\"");
    lin_buffer_text(out, key);
    lin_buffer_text(out, "\":[");
    lin_buffer_fixed(out, v->low, 6);
    lin_buffer_char(out, ',');
    lin_buffer_fixed(out, v->high, 6);
    lin_buffer_char(out, ']');
}

static void json_text(lin_buffer *out, const char *text)
{
    if (text) lin_buffer_json(out, text, strlen(text));
    else lin_buffer_text(out, "null");
}

static void json_speakers(const lin_score_report *r, lin_buffer *out)
{
    lin_score_counts c;
    lin_buffer_text(out, ",\n\"speakers\":[");
    for (int i = 0; i < lin_score_speakers(r->score); i++) {
        const char *name = lin_score_speaker(r->score, i, &c);
        lin_buffer_text(out, i ? ",\n{\"id\":" : "\n{\"id\":");
        json_text(out, name);
        lin_buffer_char(out, ',');
        json_counts(out, &c);
        if (r->intervals) json_interval(out, "interval", &r->intervals->by_speaker[i]);
        lin_buffer_char(out, '}');
    }
    lin_buffer_char(out, ']');
}

static void json_utterances(const lin_score_report *r, lin_buffer *out)
{
    lin_score_counts c;
    lin_buffer_text(out, ",\n\"utterances_by_id\":[");
    for (int u = 0; u < lin_score_utterances(r->score); u++) {
        const char *name = lin_score_utterance(r->score, u, &c);
        lin_buffer_text(out, u ? ",\n{\"id\":" : "\n{\"id\":");
        json_text(out, name);
        lin_buffer_char(out, ',');
        json_counts(out, &c);
        lin_buffer_text(out, ",\"speaker\":");
        json_text(out, lin_score_speaker(r->score, lin_score_speaker_of(r->score, u), NULL));
        lin_buffer_char(out, '}');
    }
    lin_buffer_char(out, ']');
}

static const char *token_of(const lin_score *s, int token) { return token < 0 ? NULL : lin_score_token(s, token, NULL); }

static void json_confusions(const lin_score_report *r, lin_buffer *out)
{
    int n, max = r->confusions ? r->confusions : MAX_CONFUSIONS;
    const lin_score_confusion *c = lin_score_confusions(r->score, &n);
    lin_buffer_text(out, ",\n\"confusions\":[");
    for (int i = 0; i < n && i < max; i++) {
        lin_buffer_text(out, i ? ",\n{\"ref\":" : "\n{\"ref\":");
        json_text(out, token_of(r->score, c[i].ref));
        lin_buffer_text(out, ",\"hyp\":");
        json_text(out, token_of(r->score, c[i].hyp));
        json_field(out, "count", c[i].count);
        lin_buffer_char(out, '}');
    }
    lin_buffer_char(out, ']');
}

// What became of each token of the matrix, and the matrix.
static lin_status json_matrix(const lin_score_report *r, lin_buffer *out, lin_error *err)
{
    lin_score_matrix m;
    lin_status status = lin_score_matrix_make(r->score, MAX_MATRIX, &m, err);
    if (status) return status;
    lin_buffer_text(out, ",\n\"tokens_by_name\":[");
    for (int i = 0; i < m.n; i++) {
        lin_score_token_counts c;
        const char *name = lin_score_token(r->score, m.tokens[i], &c);
        lin_buffer_text(out, i ? ",\n{\"token\":" : "\n{\"token\":");
        json_text(out, name);
        json_field(out, "tokens", c.n_ref);
        json_field(out, "correct", c.correct);
        json_field(out, "substitutions", c.sub);
        json_field(out, "deletions", c.del);
        json_field(out, "insertions", c.ins);
        json_field(out, "in_place_of_others", c.put);
        lin_buffer_char(out, '}');
    }
    lin_buffer_text(out, "],\n\"matrix\":{\"tokens\":[");
    for (int i = 0; i < m.n; i++) {
        if (i) lin_buffer_char(out, ',');
        json_text(out, token_of(r->score, m.tokens[i]));
    }
    lin_buffer_char(out, ']');
    json_field(out, "left_out", m.left_out);
    lin_buffer_text(out, ",\"counts\":[");
    for (int i = 0; i <= m.n; i++) {
        for (int j = 0; j <= m.n; j++) {
            lin_buffer_text(out, j ? "," : i ? ",\n[" : "\n[");
            lin_buffer_integer(out, m.counts[(size_t)i * ((size_t)m.n + 1) + (size_t)j]);
        }
        lin_buffer_char(out, ']');
    }
    lin_buffer_text(out, "]}");
    lin_score_matrix_free(&m);
    return LIN_OK;
}

static void json_bootstrap(const lin_score_intervals *v, lin_buffer *out)
{
    lin_buffer_text(out, ",\n\"bootstrap\":{\"resamples\":");
    lin_buffer_integer(out, v->resamples);
    json_field(out, "seed", (long long)v->seed);
    lin_buffer_text(out, ",\"level\":");
    lin_buffer_fixed(out, v->level, 6);
    json_interval(out, "over_utterances", &v->utterances);
    json_interval(out, "over_speakers", &v->speakers);
    lin_buffer_char(out, '}');
}

static void json_difference(lin_buffer *out, const char *key, const lin_difference *d)
{
    if (d->interval.units < 2) return;
    lin_buffer_text(out, ",\"");
    lin_buffer_text(out, key);
    lin_buffer_text(out, "\":{\"improvement\":");
    lin_buffer_fixed(out, d->improvement, 6);
    lin_buffer_text(out, ",\"equal\":");
    lin_buffer_fixed(out, d->equal, 6);
    json_interval(out, "interval", &d->interval);
    lin_buffer_char(out, '}');
}

static void json_comparison(const lin_score_report *r, lin_buffer *out)
{
    const lin_score_comparison *c = r->comparison;
    const struct {
        const char *key;
        double value;
    } pairs[] = {{"mean", c->segments.mean}, {"deviation", c->segments.deviation}, {"z", c->segments.z}, {"p", c->segments.p}};
    lin_buffer_text(out, ",\n\"against\":{\"name\":");
    json_text(out, r->other_name);
    lin_buffer_char(out, ',');
    json_counts(out, &c->other);
    lin_buffer_text(out, ",\"difference\":");
    lin_buffer_fixed(out, c->difference, 6);
    json_field(out, "better_utterances", c->better);
    json_field(out, "worse_utterances", c->worse);
    json_difference(out, "over_utterances", &c->utterances);
    json_difference(out, "over_speakers", &c->speakers);
    lin_buffer_text(out, ",\"matched_pairs\":{\"segments\":");
    lin_buffer_integer(out, c->segments.segments);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        lin_buffer_text(out, ",\"");
        lin_buffer_text(out, pairs[i].key);
        lin_buffer_text(out, "\":");
        lin_buffer_fixed(out, pairs[i].value, 6);
    }
    lin_buffer_text(out, "}}");
}

lin_status lin_score_json(const lin_score_report *r, lin_buffer *out, lin_error *err)
{
    const lin_score *s = r->score;
    lin_score_counts total = lin_score_total(s);
    const char *token;
    lin_buffer_text(out, "{\"measure\":");
    json_text(out, r->measure);
    lin_buffer_char(out, ',');
    json_counts(out, &total);
    json_field(out, "without_line", lin_score_without_line(s));
    json_speakers(r, out);
    json_confusions(r, out);
    if (r->intervals) json_bootstrap(r->intervals, out);
    if (r->comparison) json_comparison(r, out);
    if (lin_score_deleted_by_map(s) || lin_score_unmapped(s, 0)) {
        lin_buffer_text(out, ",\n\"map\":{\"deleted\":");
        lin_buffer_integer(out, lin_score_deleted_by_map(s));
        lin_buffer_text(out, ",\"unmapped\":[");
        for (int i = 0; (token = lin_score_unmapped(s, i)); i++) {
            if (i) lin_buffer_char(out, ',');
            json_text(out, token);
        }
        lin_buffer_text(out, "]}");
    }
    lin_status status = json_matrix(r, out, err);
    if (status) return status;
    if (r->utterances) json_utterances(r, out);
    lin_buffer_text(out, "}\n");
    return lin_buffer_status(out, err);
}
