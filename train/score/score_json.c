// The score as one JSON object.
#include <math.h>

#include "train/score/score_report.h"

enum { MAX_CONFUSIONS = 30, MAX_MATRIX = 100 };

// ,"key":value; null for what has no value because the reference has no tokens
static void json_rate(lin_buffer *out, const char *key, double rate)
{
    lin_buffer_json_format(out, isnan(rate) ? ",%s:null" : ",%s:%.6f", key, rate);
}

static void json_counts(lin_buffer *out, const lin_score_counts *c)
{
    lin_buffer_json_format(out, ",'utterances':%lld,'wrong_utterances':%lld,'tokens':%lld,'correct':%lld,'substitutions':%lld,"
                                "'deletions':%lld,'insertions':%lld",
                           c->utterances, c->wrong, c->n_ref, c->correct, c->sub, c->del, c->ins);
    json_rate(out, "rate", lin_score_rate(c));
}

// Begins the next object of a list, on a line of its own.
static void json_next(lin_buffer *out, int i) { lin_buffer_text(out, i ? ",\n{" : "\n{"); }

// ,"key":[low,high]; nothing if there was only one unit to draw from
static void json_interval(lin_buffer *out, const char *key, const lin_bootstrap_interval *v)
{
    if (v->units >= 2) lin_buffer_json_format(out, ",%s:[%.6f,%.6f]", key, v->low, v->high);
}

static void json_speakers(const lin_score_report *r, lin_buffer *out)
{
    lin_buffer_text(out, ",\n\"speakers\":[");
    for (int i = 0; i < r->score->speakers.n; i++) {
        json_next(out, i);
        lin_buffer_json_format(out, "'id':%s", lin_score_speaker(r->score, i));
        json_counts(out, &r->score->by_speaker[i]);
        if (r->intervals && r->intervals->by_speaker) json_interval(out, "interval", &r->intervals->by_speaker[i]);
        lin_buffer_char(out, '}');
    }
    lin_buffer_char(out, ']');
}

static void json_utterances(const lin_score_report *r, lin_buffer *out)
{
    lin_buffer_text(out, ",\n\"utterances_by_id\":[");
    for (int u = 0; u < r->score->ref.n; u++) {
        json_next(out, u);
        lin_buffer_json_format(out, "'id':%s", lin_score_utterance(r->score, u));
        json_counts(out, &r->score->by_utterance[u]);
        lin_buffer_json_format(out, ",'speaker':%s}", lin_score_speaker(r->score, r->score->speaker_of[u]));
    }
    lin_buffer_char(out, ']');
}

static void json_confusions(const lin_score_report *r, lin_buffer *out)
{
    const int n = (int)r->score->n_confusions, max = r->confusions ? r->confusions : MAX_CONFUSIONS;
    const lin_score_confusion *c = r->score->confusions;
    lin_buffer_text(out, ",\n\"confusions\":[");
    for (int i = 0; i < n && i < max; i++) {
        json_next(out, i);
        lin_buffer_json_format(out, "'ref':%s,'hyp':%s,'count':%lld}", lin_score_token(r->score, c[i].ref),
                               lin_score_token(r->score, c[i].hyp), c[i].count);
    }
    lin_buffer_char(out, ']');
}

// Counts of each token of the matrix, and the matrix.
static lin_status json_matrix(const lin_score_report *r, lin_buffer *out, lin_error *err)
{
    lin_score_matrix m;
    LIN_TRY(lin_score_matrix_make(r->score, MAX_MATRIX, &m, err));
    lin_buffer_text(out, ",\n\"tokens_by_name\":[");
    for (int i = 0; i < m.n; i++) {
        const lin_score_token_counts c = r->score->by_token[m.tokens[i]];
        json_next(out, i);
        lin_buffer_json_format(out, "'token':%s,'tokens':%lld,'correct':%lld,'substitutions':%lld,'deletions':%lld,"
                                    "'insertions':%lld,'in_place_of_others':%lld}",
                               lin_symbols_text(&r->score->tokens, m.tokens[i]), c.n_ref, c.correct, c.sub, c.del, c.ins, c.put);
    }
    lin_buffer_text(out, "],\n\"matrix\":{\"tokens\":[");
    for (int i = 0; i < m.n; i++) {
        lin_buffer_json_format(out, i ? ",%s" : "%s", lin_symbols_text(&r->score->tokens, m.tokens[i]));
    }
    lin_buffer_json_format(out, "],'left_out':%d,'counts':[", m.left_out);
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
    lin_buffer_json_format(out, ",\n'bootstrap':{'resamples':%d,'seed':%lld,'level':0.950000", v->resamples, (long long)v->seed);
    json_interval(out, "over_utterances", &v->utterances);
    json_interval(out, "over_speakers", &v->speakers);
    lin_buffer_char(out, '}');
}

static void json_difference(lin_buffer *out, const char *key, const lin_difference *d)
{
    if (d->interval.units < 2) return;
    lin_buffer_json_format(out, ",%s:{'improvement':%.6f,'equal':%.6f", key, d->improvement, d->equal);
    json_interval(out, "interval", &d->interval);
    lin_buffer_char(out, '}');
}

static void json_comparison(const lin_score_report *r, lin_buffer *out)
{
    const lin_score_comparison *c = r->comparison;
    lin_buffer_json_format(out, ",\n'against':{'name':%s", r->other_name);
    json_counts(out, &c->other);
    json_rate(out, "difference", c->difference);
    lin_buffer_json_format(out, ",'better_utterances':%lld,'worse_utterances':%lld", c->better, c->worse);
    json_difference(out, "over_utterances", &c->utterances);
    json_difference(out, "over_speakers", &c->speakers);
    lin_buffer_json_format(out, ",'matched_pairs':{'segments':%d,'mean':%.6f,'deviation':%.6f", c->segments.segments,
                           c->segments.mean, c->segments.deviation);
    if (isfinite(c->segments.z)) lin_buffer_json_format(out, ",'z':%.6f", c->segments.z);
    lin_buffer_json_format(out, ",'p':%.6f}}", c->segments.p);
}

lin_status lin_score_json(const lin_score_report *r, lin_buffer *out, lin_error *err)
{
    const lin_score *s = r->score;
    lin_buffer_json_format(out, "{'measure':%s", r->measure);
    json_counts(out, &s->total);
    lin_buffer_json_format(out, ",'without_line':%d", s->n_without_line);
    json_speakers(r, out);
    json_confusions(r, out);
    if (r->intervals) json_bootstrap(r->intervals, out);
    if (r->comparison) json_comparison(r, out);
    if (s->n_deleted || s->unmapped.n) {
        lin_buffer_json_format(out, ",\n'map':{'deleted':%lld,'unmapped':[", s->n_deleted);
        for (int i = 0; i < s->unmapped.n; i++)
            lin_buffer_json_format(out, i ? ",%s" : "%s", lin_symbols_text(&s->unmapped, i));
        lin_buffer_text(out, "]}");
    }
    LIN_TRY(json_matrix(r, out, err));
    if (r->utterances) json_utterances(r, out);
    lin_buffer_text(out, "}\n");
    return lin_buffer_status(out, err);
}
