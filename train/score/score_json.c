// The score as one JSON object.
#include <string.h>

#include "train/score/score_report.h"

enum { MAX_CONFUSIONS = 30, MAX_MATRIX = 100 };

static void json_counts(lin_buffer *out, const lin_score_counts *c)
{
    lin_buffer_member_integer(out, "utterances", c->utterances);
    lin_buffer_member_integer(out, "wrong_utterances", c->wrong);
    lin_buffer_member_integer(out, "tokens", c->n_ref);
    lin_buffer_member_integer(out, "correct", c->correct);
    lin_buffer_member_integer(out, "substitutions", c->sub);
    lin_buffer_member_integer(out, "deletions", c->del);
    lin_buffer_member_integer(out, "insertions", c->ins);
    lin_buffer_member_fixed(out, "rate", lin_score_rate(c), 6);
}

// The next object of a list, on a line of its own.
static void json_next(lin_buffer *out, int i) { lin_buffer_text(out, i ? ",\n{" : "\n{"); }

// ,"key":[low,high]; nothing where there was only one thing to draw from
static void json_interval(lin_buffer *out, const char *key, const lin_bootstrap_interval *v)
{
    if (v->units < 2) return;
    lin_buffer_key(out, key);
    lin_buffer_char(out, '[');
    lin_buffer_fixed(out, v->low, 6);
    lin_buffer_char(out, ',');
    lin_buffer_fixed(out, v->high, 6);
    lin_buffer_char(out, ']');
}

static void json_speakers(const lin_score_report *r, lin_buffer *out)
{
    lin_score_counts c;
    lin_buffer_text(out, ",\n\"speakers\":[");
    for (int i = 0; i < r->score->speakers.n; i++) {
        const char *name = lin_score_speaker(r->score, i, &c);
        json_next(out, i);
        lin_buffer_member_text(out, "id", name);
        json_counts(out, &c);
        if (r->intervals && r->intervals->by_speaker) json_interval(out, "interval", &r->intervals->by_speaker[i]);
        lin_buffer_char(out, '}');
    }
    lin_buffer_char(out, ']');
}

static void json_utterances(const lin_score_report *r, lin_buffer *out)
{
    lin_score_counts c;
    lin_buffer_text(out, ",\n\"utterances_by_id\":[");
    for (int u = 0; u < r->score->ref.n; u++) {
        const char *name = lin_score_utterance(r->score, u, &c);
        json_next(out, u);
        lin_buffer_member_text(out, "id", name);
        json_counts(out, &c);
        lin_buffer_member_text(out, "speaker", lin_score_speaker(r->score, r->score->speaker_of[u], NULL));
        lin_buffer_char(out, '}');
    }
    lin_buffer_char(out, ']');
}

static void json_confusions(const lin_score_report *r, lin_buffer *out)
{
    int n, max = r->confusions ? r->confusions : MAX_CONFUSIONS;
    const lin_score_confusion *c = lin_score_confusions(r->score, &n);
    lin_buffer_text(out, ",\n\"confusions\":[");
    for (int i = 0; i < n && i < max; i++) {
        json_next(out, i);
        lin_buffer_member_text(out, "ref", lin_score_token_of(r->score, c[i].ref));
        lin_buffer_member_text(out, "hyp", lin_score_token_of(r->score, c[i].hyp));
        lin_buffer_member_integer(out, "count", c[i].count);
        lin_buffer_char(out, '}');
    }
    lin_buffer_char(out, ']');
}

// What became of each token of the matrix, and the matrix.
static lin_status json_matrix(const lin_score_report *r, lin_buffer *out, lin_error *err)
{
    lin_score_matrix m;
    LIN_TRY(lin_score_matrix_make(r->score, MAX_MATRIX, &m, err));
    lin_buffer_text(out, ",\n\"tokens_by_name\":[");
    for (int i = 0; i < m.n; i++) {
        lin_score_token_counts c;
        const char *name = lin_score_token(r->score, m.tokens[i], &c);
        json_next(out, i);
        lin_buffer_member_text(out, "token", name);
        lin_buffer_member_integer(out, "tokens", c.n_ref);
        lin_buffer_member_integer(out, "correct", c.correct);
        lin_buffer_member_integer(out, "substitutions", c.sub);
        lin_buffer_member_integer(out, "deletions", c.del);
        lin_buffer_member_integer(out, "insertions", c.ins);
        lin_buffer_member_integer(out, "in_place_of_others", c.put);
        lin_buffer_char(out, '}');
    }
    lin_buffer_text(out, "],\n\"matrix\":{\"tokens\":[");
    for (int i = 0; i < m.n; i++) {
        const char *name = lin_score_token_of(r->score, m.tokens[i]);
        if (i) lin_buffer_char(out, ',');
        lin_buffer_json(out, name, strlen(name));
    }
    lin_buffer_char(out, ']');
    lin_buffer_member_integer(out, "left_out", m.left_out);
    lin_buffer_key(out, "counts");
    lin_buffer_char(out, '[');
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
    lin_buffer_text(out, ",\n\"bootstrap\":{");
    lin_buffer_member_integer(out, "resamples", v->resamples);
    lin_buffer_member_integer(out, "seed", (long long)v->seed);
    lin_buffer_member_fixed(out, "level", v->level, 6);
    json_interval(out, "over_utterances", &v->utterances);
    json_interval(out, "over_speakers", &v->speakers);
    lin_buffer_char(out, '}');
}

static void json_difference(lin_buffer *out, const char *key, const lin_difference *d)
{
    if (d->interval.units < 2) return;
    lin_buffer_key(out, key);
    lin_buffer_char(out, '{');
    lin_buffer_member_fixed(out, "improvement", d->improvement, 6);
    lin_buffer_member_fixed(out, "equal", d->equal, 6);
    json_interval(out, "interval", &d->interval);
    lin_buffer_char(out, '}');
}

static void json_comparison(const lin_score_report *r, lin_buffer *out)
{
    const lin_score_comparison *c = r->comparison;
    lin_buffer_text(out, ",\n\"against\":{");
    lin_buffer_member_text(out, "name", r->other_name);
    json_counts(out, &c->other);
    lin_buffer_member_fixed(out, "difference", c->difference, 6);
    lin_buffer_member_integer(out, "better_utterances", c->better);
    lin_buffer_member_integer(out, "worse_utterances", c->worse);
    json_difference(out, "over_utterances", &c->utterances);
    json_difference(out, "over_speakers", &c->speakers);
    lin_buffer_key(out, "matched_pairs");
    lin_buffer_char(out, '{');
    lin_buffer_member_integer(out, "segments", c->segments.segments);
    lin_buffer_member_fixed(out, "mean", c->segments.mean, 6);
    lin_buffer_member_fixed(out, "deviation", c->segments.deviation, 6);
    lin_buffer_member_fixed(out, "z", c->segments.z, 6);
    lin_buffer_member_fixed(out, "p", c->segments.p, 6);
    lin_buffer_text(out, "}}");
}

lin_status lin_score_json(const lin_score_report *r, lin_buffer *out, lin_error *err)
{
    const lin_score *s = r->score;
    lin_score_counts total = s->total;
    const char *token;
    lin_buffer_char(out, '{');
    lin_buffer_member_text(out, "measure", r->measure);
    json_counts(out, &total);
    lin_buffer_member_integer(out, "without_line", s->n_without_line);
    json_speakers(r, out);
    json_confusions(r, out);
    if (r->intervals) json_bootstrap(r->intervals, out);
    if (r->comparison) json_comparison(r, out);
    if (lin_score_deleted_by_map(s) || lin_score_unmapped(s, 0)) {
        lin_buffer_text(out, ",\n\"map\":{");
        lin_buffer_member_integer(out, "deleted", lin_score_deleted_by_map(s));
        lin_buffer_key(out, "unmapped");
        lin_buffer_char(out, '[');
        for (int i = 0; (token = lin_score_unmapped(s, i)); i++) {
            if (i) lin_buffer_char(out, ',');
            lin_buffer_json(out, token, strlen(token));
        }
        lin_buffer_text(out, "]}");
    }
    LIN_TRY(json_matrix(r, out, err));
    if (r->utterances) json_utterances(r, out);
    lin_buffer_text(out, "}\n");
    return lin_buffer_status(out, err);
}
