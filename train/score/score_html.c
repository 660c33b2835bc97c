// The score as one page of HTML that needs nothing else: no scripts, styles inside, colours for a light and a dark screen.
#include <math.h>

#include "base/memory.h"
#include "train/score/score_report.h"

enum { MAX_MATRIX = 60, MAX_WORST = 20, MAX_SPEAKERS = 200, MAX_LIST = 20, MAX_PAIRS = 2000, CELL = 20, MARGIN = 70 };

static const char style[] =
    "<style>\n"
    ":root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--soft:#f2f4f7;--line:#d5dae1;--good:#1a7f5a;--bad:#c2410c;"
    "--dim:#5b6572}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6e9ee;--paper:#14171b;--soft:#1e2329;--line:#39414b;--good:#4cc79a;"
    "--bad:#fb923c;--dim:#9aa5b1}}\n"
    "*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}\n"
    "main{max-width:70rem;margin:0 auto;padding:1rem}h1{font-size:2rem;margin:.5rem 0 0}h2{font-size:1.2rem;margin:2rem 0 "
    ".5rem}\n"
    "p{margin:.3rem 0}.dim{color:var(--dim)}.wide{overflow-x:auto}\n"
    ".cards,.lists{display:grid;gap:.8rem;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));margin:1rem 0}\n"
    ".lists{grid-template-columns:repeat(auto-fit,minmax(15rem,1fr));align-items:start}\n"
    ".cards div{background:var(--soft);border-radius:.5rem;padding:.6rem .8rem}.cards b{display:block;font-size:1.3rem}\n"
    "table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}caption{text-align:left;font-weight:600}\n"
    "th,td{text-align:right;padding:.15rem .5rem;border-bottom:1px solid var(--line)}\n"
    "th:first-child,td:first-child{text-align:left}\n"
    "th{font-weight:600;color:var(--dim)}td.bar{width:45%;min-width:9rem}\n"
    ".track{position:relative;height:.9rem;background:var(--soft)}.track *{position:absolute}\n"
    ".track i{top:0;bottom:0;left:0;background:var(--bad);opacity:.55}.track u{top:40%;height:20%;background:var(--ink)}\n"
    "svg{display:block;font:10px system-ui,sans-serif}svg text{fill:var(--ink)}svg .g{fill:var(--good)}svg .b{fill:var(--bad)}\n"
    "svg .n{font-size:8px;text-anchor:middle;pointer-events:none}svg .r{text-anchor:end}svg path{stroke:var(--line);fill:none}\n"
    "details{border-bottom:1px solid var(--line);padding:.4rem 0}summary{cursor:pointer;overflow-wrap:anywhere}\n"
    ".al{margin:.4rem 0;font:14px/1.25 ui-monospace,monospace}\n"
    ".al span{display:inline-block;text-align:center;padding:0 .25rem .35rem}\n"
    ".al i,.al b{display:block;font-style:normal;font-weight:400}\n"
    ".al .e i{color:var(--good)}.al .e b{color:var(--bad);font-weight:700}\n"
    "</style>\n";

static const char *name_of(const lin_score *s, int token) { return token < 0 ? "–" : lin_score_token(s, token); }

static void head(const lin_score_report *r, lin_buffer *out)
{
    lin_score_counts c = r->score->total;
    const char *ref = r->ref_name ? r->ref_name : "the reference", *hyp = r->hyp_name ? r->hyp_name : "the hypothesis";
    const double rate = 100 * lin_score_rate(&c);
    lin_score_put(out,
                  "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                  "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>%h %2 %: "
                  "%h</title>\n%s</head><body><main>\n",
                  r->measure, rate, hyp, style);
    lin_score_put(out, "<h1>%h %2 %</h1>\n<p>%h, against the reference %h</p>\n", r->measure, rate, hyp, ref);
    if (r->intervals && r->intervals->utterances.units > 1) {
        lin_score_put(out, "<p>");
        lin_score_put_intervals(out, "%2 to %2 over %d %s", &r->intervals->utterances, &r->intervals->speakers);
        lin_score_put(out, " <span class=\"dim\">(bootstrap, %d resamples, seed %d)</span></p>\n",
                      (long long)r->intervals->resamples, (long long)r->intervals->seed);
    }
    lin_score_put(out, "<div class=\"cards\"><div><b>%d</b>tokens in %d utterances</div>", c.n_ref, c.utterances);
    lin_score_put(out, "<div><b>%2 %</b>%d correct</div><div><b>%2 %</b>%d substitutions</div>",
                  lin_score_percent(c.correct, c.n_ref), c.correct, lin_score_percent(c.sub, c.n_ref), c.sub);
    lin_score_put(out, "<div><b>%2 %</b>%d deletions</div><div><b>%2 %</b>%d insertions</div>", lin_score_percent(c.del, c.n_ref),
                  c.del, lin_score_percent(c.ins, c.n_ref), c.ins);
    lin_score_put(out, "<div><b>%2 %</b>%d utterances with errors</div></div>\n", lin_score_percent(c.wrong, c.utterances),
                  c.wrong);
}

static void compared(const lin_score_report *r, lin_buffer *out)
{
    const lin_score_comparison *c = r->comparison;
    lin_score_put(out, "<h2>Against %h</h2>\n<p>%h %2 %: a difference of <b>%2 points</b>",
                  r->other_name ? r->other_name : "the other", r->measure, 100 * lin_score_rate(&c->other), 100 * c->difference);
    if (c->utterances.interval.units > 1) {
        lin_score_put(out, ", ");
        lin_score_put_intervals(out, "%2 to %2 over %d %s", &c->utterances.interval, &c->speakers.interval);
    }
    lin_score_put(out, "</p>\n<p>Probability of improvement %1 % over utterances", 100 * c->utterances.improvement);
    if (c->speakers.interval.units > 1) lin_score_put(out, ", %1 % over speakers", 100 * c->speakers.improvement);
    lin_score_put(out, "; better in %d utterances, worse in %d.</p>\n", c->better, c->worse);
    lin_score_put(out, "<p>Matched pairs: %d segments, mean difference %3 errors, ", (long long)c->segments.segments,
                  c->segments.mean);
    if (isfinite(c->segments.z)) lin_score_put(out, "z %3, ", c->segments.z);
    lin_score_put(out, "p %s%4.</p>\n", c->segments.p < 0.0001 ? "&lt; " : "", fmax(0.0001, c->segments.p));
}

/* ---- speakers -------------------------------------------------------------------------------------------------------------- */

// rate NaN: no bar.
static void bar(lin_buffer *out, double rate, const lin_bootstrap_interval *v, double largest)
{
    const double scale = largest > 0 ? 100 / largest : 0;
    lin_score_put(out, "<td class=\"bar\"><div class=\"track\"><i style=\"width:%2%\"></i>", fmax(rate, 0) * scale);
    if (v && v->units > 1) lin_score_put(out, "<u style=\"left:%2%;width:%2%\"></u>", v->low * scale, (v->high - v->low) * scale);
    lin_score_put(out, "</div></td>");
}

static void speakers(const lin_score_report *r, lin_buffer *out)
{
    const int n = r->score->speakers.n, shown = n < MAX_SPEAKERS ? n : MAX_SPEAKERS;
    double largest = 0;
    for (int i = 0; i < shown; i++) {
        double end = lin_score_rate(&r->score->by_speaker[i]);
        if (r->intervals && r->intervals->by_speaker) end = fmax(end, r->intervals->by_speaker[i].high);
        if (end > largest) largest = end;
    }
    lin_score_put(
        out,
        "<h2>Speakers</h2>\n<div class=\"wide\"><table><tr><th>speaker<th>utterances<th>tokens<th>sub %<th>del %<th>ins %<th>%h "
        "%<th></tr>\n",
        r->measure);
    for (int i = 0; i < shown; i++) {
        const lin_score_counts c = r->score->by_speaker[i];
        lin_score_put(out, "<tr><td>%h<td>%d<td>%d<td>%2<td>%2<td>%2<td>%2", lin_score_speaker(r->score, i), c.utterances,
                      c.n_ref, lin_score_percent(c.sub, c.n_ref), lin_score_percent(c.del, c.n_ref),
                      lin_score_percent(c.ins, c.n_ref), 100 * lin_score_rate(&c));
        bar(out, lin_score_rate(&c), r->intervals && r->intervals->by_speaker ? &r->intervals->by_speaker[i] : NULL, largest);
        lin_score_put(out, "</tr>\n");
    }
    lin_score_put(out, "</table></div>\n");
    if (shown < n) lin_score_put(out, "<p class=\"dim\">and %d more</p>\n", (long long)(n - shown));
    if (r->intervals) lin_score_put(out, "<p class=\"dim\">The black line is the interval over the speaker's utterances.</p>\n");
}

/* ---- the matrix ------------------------------------------------------------------------------------------------------------ */

// Tokens of the row: what was said, or for the last row all insertions.
static long long row_total(const lin_score *s, const lin_score_matrix *m, int row)
{
    return row == m->n ? s->total.ins : s->by_token[m->tokens[row]].n_ref;
}

static void matrix_cell(const lin_score *s, const lin_score_matrix *m, int i, int j, long long total, lin_buffer *out)
{
    const long long count = m->counts[(size_t)i * ((size_t)m->n + 1) + (size_t)j];
    const long long x = MARGIN + CELL * j, y = MARGIN + CELL * i, size = CELL;
    const double share = lin_score_percent(count, total);
    lin_score_put(out, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill-opacity=\"%2\"><title>",
                  i == j ? "g" : "b", x, y, size, size,
                  fmin(1, 0.1 + 0.09 * sqrt(share))); // the root keeps rare confusions visible
    if (i == m->n) lin_score_put(out, "%h inserted", name_of(s, m->tokens[j]));
    else if (j == m->n) lin_score_put(out, "%h deleted", name_of(s, m->tokens[i]));
    else lin_score_put(out, "%h recognised as %h", name_of(s, m->tokens[i]), name_of(s, m->tokens[j]));
    lin_score_put(out, ": %d of %d (%1 %)</title></rect>", count, total, share);
    if (share >= 0.5) lin_score_put(out, "<text class=\"n\" x=\"%d\" y=\"%d\">%0</text>", x + CELL / 2, y + 13, share);
    lin_score_put(out, "\n");
}

static void matrix_labels(const lin_score *s, const lin_score_matrix *m, lin_buffer *out)
{
    for (int i = 0; i <= m->n; i++) {
        const char *row = i < m->n ? name_of(s, m->tokens[i]) : "inserted", *column = i < m->n ? row : "deleted";
        const long long at = MARGIN + CELL * i + 14, edge = MARGIN - 5;
        lin_score_put(out, "<text class=\"r\" x=\"%d\" y=\"%d\">%h</text>", edge, at, row);
        lin_score_put(out, "<text transform=\"translate(%d %d) rotate(-90)\">%h</text>\n", at, edge, column);
    }
}

static lin_status matrix(const lin_score_report *r, lin_buffer *out, lin_error *err)
{
    lin_score_matrix m;
    LIN_TRY(lin_score_matrix_make(r->score, MAX_MATRIX, &m, err));
    const long long size = MARGIN + CELL * (m.n + 1) + 10, end = MARGIN + CELL * (m.n + 1);
    lin_score_put(out,
                  "<h2>Confusions</h2>\n"
                  "<p>Rows are the reference, columns the hypothesis, numbers per cent of the row; point at a cell for details.");
    if (m.left_out)
        lin_score_put(out, " The %d tokens with the most errors; %d more are not shown.", (long long)m.n, (long long)m.left_out);
    lin_score_put(out,
                  "</p>\n<div class=\"wide\"><svg width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" "
                  "aria-label=\"confusion matrix\">\n",
                  size, size, size, size);
    matrix_labels(r->score, &m, out);
    for (int i = 0; i <= m.n; i++) {
        const long long total = row_total(r->score, &m, i), at = MARGIN + CELL * i;
        lin_score_put(out, "<path d=\"M%d %dH%dM%d %dV%d\"/>\n", (long long)MARGIN, at, end, at, (long long)MARGIN, end);
        for (int j = 0; j <= m.n; j++) {
            if (m.counts[(size_t)i * ((size_t)m.n + 1) + (size_t)j]) matrix_cell(r->score, &m, i, j, total, out);
        }
    }
    lin_score_put(out, "</svg></div>\n");
    lin_score_matrix_free(&m);
    return LIN_OK;
}

/* ---- lists ----------------------------------------------------------------------------------------------------------------- */

static void list_errors(const lin_score_report *r, const char *title, int ref, int hyp, lin_buffer *out)
{
    const int n = (int)r->score->n_confusions, max = r->confusions ? r->confusions : MAX_LIST;
    const lin_score_confusion *c = r->score->confusions;
    int shown = 0;
    lin_score_put(out, "<table><caption>%s</caption><tr>%s%s<th>count</tr>\n", title, ref ? "<th>said" : "",
                  hyp ? "<th>recognised" : "");
    for (int i = 0; i < n && shown < max; i++) {
        if ((c[i].ref >= 0) != ref || (c[i].hyp >= 0) != hyp) continue;
        lin_score_put(out, "<tr>");
        if (ref) lin_score_put(out, "<td>%h", name_of(r->score, c[i].ref));
        if (hyp) lin_score_put(out, "<td>%h", name_of(r->score, c[i].hyp));
        lin_score_put(out, "<td>%d</tr>\n", c[i].count);
        shown++;
    }
    lin_score_put(out, "</table>\n");
}

static lin_status lists(const lin_score_report *r, lin_buffer *out, lin_error *err)
{
    lin_confused_pair *p;
    int n, max = r->confusions ? r->confusions : MAX_LIST;
    LIN_TRY(lin_score_confused_pairs(r->score, &p, &n, err));
    lin_score_put(out,
                  "<div class=\"lists\"><table><caption>most confused pairs</caption><tr><th>pair<th>both ways<th>→<th>←</tr>\n");
    for (int i = 0; i < n && i < max; i++)
        lin_score_put(out, "<tr><td>%h ↔ %h<td>%d<td>%d<td>%d</tr>\n", name_of(r->score, p[i].a), name_of(r->score, p[i].b),
                      p[i].a_as_b + p[i].b_as_a, p[i].a_as_b, p[i].b_as_a);
    lin_free(p);
    lin_score_put(out, "</table>\n");
    list_errors(r, "substitutions", 1, 1, out);
    list_errors(r, "deletions", 1, 0, out);
    list_errors(r, "insertions", 0, 1, out);
    lin_score_put(out, "</div>\n");
    return LIN_OK;
}

/* ---- the worst utterances -------------------------------------------------------------------------------------------------- */

static void worst(const lin_score_report *r, lin_buffer *out)
{
    int utterances[MAX_WORST];
    const int n = lin_score_worst(r->score, utterances, MAX_WORST);
    lin_score_put(out, "<h2>Utterances with the most errors</h2>\n");
    for (int k = 0; k < n; k++) {
        const lin_score_counts c = r->score->by_utterance[utterances[k]];
        int n_pairs;
        const lin_edit_pair *p = lin_score_alignment(r->score, utterances[k], &n_pairs);
        lin_score_put(out,
                      "<details%s><summary>%h <span class=\"dim\">%2 % of %d: %d substitutions, %d deletions, %d "
                      "insertions</span></summary>"
                      "<div class=\"al\">",
                      k < 3 ? " open" : "", lin_score_utterance(r->score, utterances[k]), 100 * lin_score_rate(&c), c.n_ref,
                      c.sub, c.del, c.ins);
        for (int i = 0; i < n_pairs && i < MAX_PAIRS; i++)
            lin_score_put(out, "<span%s><i>%h</i><b>%h</b></span>\n", p[i].is_right ? "" : " class=\"e\"",
                          name_of(r->score, p[i].ref), name_of(r->score, p[i].hyp));
        lin_score_put(out, "</div>");
        if (n_pairs > MAX_PAIRS) lin_score_put(out, "<p class=\"dim\">and %d more</p>", (long long)(n_pairs - MAX_PAIRS));
        lin_score_put(out, "</details>\n");
    }
    if (!n) lin_score_put(out, "<p>There are no errors.</p>\n");
}

lin_status lin_score_html(const lin_score_report *r, lin_buffer *out, lin_error *err)
{
    head(r, out);
    if (r->comparison) compared(r, out);
    speakers(r, out);
    LIN_TRY(matrix(r, out, err));
    LIN_TRY(lists(r, out, err));
    worst(r, out);
    lin_score_put(out, "</main></body></html>\n");
    return lin_buffer_status(out, err);
}
