// decoder/beam.c in streams: phrases that change, every field of a damaged state, bad options. What holds for every search is in
// test_search.c.
#include "decoder/beam_internal.h"
#include "tests/decoder/beam_cases.h"

/* ---- contexts that change -------------------------------------------------------------------------------------------------- */

// The bonus if every prefix is in the beam: at the change, after `before` frames, every prefix that fits into them is in the beam
// and loses the bonus of unfinished phrases; later phones match only the new phrases.
static double weight_across(const int *labels, int n, int before, const lin_context *first, const lin_context *second)
{
    double weight = 0;
    int place = 0, known = 0, frames = 0;
    for (; known < n; known++) {
        frames += 1 + (known && labels[known] == labels[known - 1]);
        if (frames > before) break;
        if (first) weight += (double)lin_context_next(first, &place, labels[known]);
    }
    if (first) weight += (double)lin_context_finish(first, &place);
    for (int i = known; second && i < n; i++) weight += (double)lin_context_next(second, &place, labels[i]);
    return second ? weight + (double)lin_context_finish(second, &place) : weight;
}

START_TEST(phrases_may_change_between_pushes)
{
    enum { V = 3, T = 7 };
    const int a[] = {1, 2, 1}, b[] = {2, 2}, d[] = {2, 1};
    const lin_context_phrase first_phrases[] = {{a, 3, 3}, {b, 2, 1}}, second_phrases[] = {{d, 2, 2}, {a, 3, 1.5}};
    lin_context *contexts[3] = {NULL};
    float logp[T * V];
    OK(lin_context_create(first_phrases, 2, &contexts[1], &err));
    OK(lin_context_create(second_phrases, 2, &contexts[2], &err));
    for (uint64_t seed = 0; seed < 54; seed++) {
        const lin_context *first = contexts[seed % 3], *second = contexts[seed / 3 % 3];
        const int before = 1 + (int)(seed / 9);
        random_rows(logp, T, V, seed, 3);
        search s = begin(V, NULL, NULL, wide(LIN_BEAM_MAX), 0);
        push(&s, first, logp, before);
        push(&s, second == first ? NULL : second, logp, 0); // a call without frames changes nothing
        push(&s, second, logp + before * V, T - before);
        check_state(&s);
        OK(lin_beam_finish(s.beam, s.state, NULL, &err));
        double last = INFINITY;
        for (int which = 0; which < lin_beam_hypotheses(s.beam, s.state); which++) {
            int labels[16];
            OK(lin_beam_nbest(s.beam, s.state, which, &s.tail, &err));
            for (int i = 0; i < s.tail.n_phones; i++) labels[i] = s.tail.phones[i].label;
            const int n = s.tail.n_phones;
            double want = ctc_log(logp, T, V, labels, n, 0);
            want += first == second ? weight_across(labels, n, 0, NULL, first) : weight_across(labels, n, before, first, second);
            test_require(fabs(s.tail.score - want) < 1e-9, "seed %d, prefix %d: %.12g, expected %.12g", (int)seed, which,
                         s.tail.score, want);
            ck_assert(s.tail.score <= last);
            last = s.tail.score;
        }
        end(&s);
    }
    lin_context_destroy(contexts[1]);
    lin_context_destroy(contexts[2]);
}
END_TEST

// The bonus that a phone would get in the old context is dropped also for phones not yet complete, and the prefixes are sorted
// again at once.
START_TEST(nothing_stays_of_old_phrases)
{
    const int labels[] = {1, 2};
    const float rows[] = {-0.01f, -9, -5, -3, -0.1f, -3}, open[] = {-1, -3, -2, -0.05f, -9, -9};
    lin_context *whole, *begun;
    lin_beam_options o = wide(1);
    OK(lin_context_create(&(lin_context_phrase){labels, 1, 5}, 1, &whole, &err));
    OK(lin_context_create(&(lin_context_phrase){labels, 2, 10}, 1, &begun, &err));
    search s = begin(3, NULL, NULL, o, 0);
    push(&s, whole, rows, 1);
    push(&s, NULL, rows + 3, 1);
    OK(lin_beam_finish(s.beam, s.state, &s.settled, &err));
    ck_assert(s.settled.n_phones == 1 && fabs(s.settled.score + 0.11) < 1e-6 && s.settled.acoustic == s.settled.score);
    end(&s);
    o.width = 4;
    o.blank = 0.9;
    s = begin(3, NULL, NULL, o, 0);
    push(&s, begun, open, 1);
    OK(lin_beam_nbest(s.beam, s.state, 0, &s.tail, &err));
    ck_assert(s.tail.n_phones == 1 && fabs(s.tail.score - 2) < 1e-6);
    push(&s, NULL, open + 3, 1); // a skipped frame
    double last = INFINITY;
    for (int i = 0; i < lin_beam_hypotheses(s.beam, s.state); i++) {
        OK(lin_beam_nbest(s.beam, s.state, i, &s.tail, &err));
        ck_assert(s.tail.score <= last);
        last = s.tail.score;
    }
    OK(lin_beam_nbest(s.beam, s.state, 2, &s.tail, &err));
    ck_assert(s.tail.n_phones == 1 && s.tail.phones[0].label == 1);
    end(&s);
    lin_context_destroy(whole);
    lin_context_destroy(begun);
}
END_TEST

/* ---- failures -------------------------------------------------------------------------------------------------------------- */

// Damages one field: case `which` of the values that a state must not hold; returns 0 after the last case.
static int damage(lin_beam_view *v, int which)
{
    lin_beam_state *st = v->state;
    lin_beam_hyp *h = &v->hyps[0];
    int32_t leaf = h->node, trace = 0, free_trace = st->trace_free;
    for (int i = 0; i < v->beam->n_traces; i++)
        if (v->traces[i].parent >= 0) trace = i;
    lin_beam_node *n = &v->nodes[leaf];
    lin_beam_trace *c = &v->traces[trace];
    lin_beam_hyp *open = NULL; // one whose last run is not finished
    for (int i = 0; i < st->n_hyps; i++)
        if (v->hyps[i].before_label >= 0) open = &v->hyps[i];
    ck_assert(n->parent >= 0 && c->parent >= 0 && free_trace >= 0 && open && st->n_hyps > 1);
    switch (which) {
    case 0: n->depth++; break;
    case 1: n->label = 0; break;
    case 2: n->label = v->beam->V; break;
    case 3: n->lm = lin_ngram_states(v->beam->lm); break;
    case 4: n->parent = leaf; break;
    case 5: n->parent = v->beam->n_nodes; break;
    case 6: n->next = leaf; break;
    case 7: n->first = st->node_root; break;
    case 8: n->hyp = 1; break;
    case 9: n->gain = (double)NAN; break;
    case 10: n->pending = 1e6; break;
    case 11: n->weight = (double)INFINITY; break;
    case 12: c->depth--; break;
    case 13: c->refs++; break;
    case 14: c->refs = 0; break;
    case 15: c->label = -1; break;
    case 16: c->start = c->end; break;
    case 17: c->parent = v->beam->n_traces; break;
    case 18: c->sum = (double)NAN; break;
    case 19: v->traces[free_trace].refs = free_trace; break;
    case 20: st->trace_free = LIN_BEAM_NONE; break;
    case 21: st->node_free = st->node_root; break;
    case 22: v->nodes[st->node_free].next = st->node_free; break;
    case 23: st->n_hyps = 0; break;
    case 24: st->n_hyps = v->beam->options.width + 1; break;
    case 25: st->slots_free++; break;
    case 26: h->slot = v->hyps[1].slot; break;
    case 27: h->node = v->hyps[1].node; break;
    case 28: h->node = -3; break;
    case 29: open->before_label = trace + v->beam->n_traces; break;
    case 30: open->before_label = open->before_blank = LIN_BEAM_NONE; break;
    case 31: open->start = st->frame; break;
    case 32: open->label = (double)NAN; break;
    case 33: open->label = -0.5; break;
    case 34: h->blank = 1e30; break;
    case 35: st->frame = INT64_MAX; break;
    case 36: st->scale = INT64_MIN; break;
    case 37: st->shift = (double)NAN; break;
    case 38: v->gains[0] = -0.5; break;
    case 39: v->gains[0] = (double)INFINITY; break;
    case 40: st->node_root = leaf; break;
    case 41: st->trace_root = trace; break;
    case 42: n->depth = INT32_MAX; break;
    case 43: v->nodes[st->node_root].depth = INT32_MIN; break;
    case 44: v->traces[st->trace_root].depth = INT32_MIN; break;
    case 45: v->nodes[n->parent].depth = INT32_MAX; break;
    case 46: v->traces[c->parent].depth = INT32_MAX; break;
    default: return 0;
    }
    return 1;
}

START_TEST(every_field_is_looked_at)
{
    enum { V = 6, T = 30 };
    float logp[T * V];
    const int words[] = {-1, 0, 3, 4, 5, 2};
    lin_ngram *lm;
    OK(lin_ngram_parse(arpa, sizeof arpa - 1, "small.arpa", &lm, &err));
    random_rows(logp, T, V, 1, 5);
    search s = begin(V, lm, words, lin_beam_options_default(), 0);
    const size_t bytes = lin_beam_bytes(s.beam);
    void *damaged = lin_alloc(bytes, 1);
    push(&s, NULL, logp, T);
    for (int which = 0;; which++) {
        lin_error err = {0};
        memcpy(damaged, s.state, bytes);
        lin_beam_view v = lin_beam_view_of(s.beam, NULL, damaged);
        if (!damage(&v, which)) break;
        lin_status status = lin_beam_check(s.beam, damaged, bytes, &err);
        ck_assert_msg(status == LIN_FORMAT, "damage %d: %s", which, lin_status_name(status));
    }
    lin_free(damaged);
    end(&s);
    lin_ngram_destroy(lm);
}
END_TEST

START_TEST(bad_options)
{
    lin_beam *beam;
    lin_ngram *lm;
    const int words[] = {-1, 0, 3, 4}, beyond[] = {-1, 0, 3, 9};
    const struct {
        lin_beam_options o;
        const char *text;
    } cases[] = {
        {{.width = 0, .longest = 5}, "width is 0"},
        {{.width = LIN_BEAM_MAX + 1, .longest = 5}, "width is 1025; must be 1 to 1024"},
        {{.width = 1, .longest = 0}, "longest is 0"},
        {{.width = 1, .longest = 5, .score = -1}, "score is -1"},
        {{.width = 1, .longest = 5, .score = (double)NAN}, "score is nan"},
        {{.width = 1, .longest = 5, .labels = -1}, "labels is -1"},
        {{.width = 1, .longest = 5, .blank = 1.5}, "blank is 1.5"},
        {{.width = 1, .longest = 5, .lm_weight = -0.5}, "lm_weight is -0.5"},
        {{.width = 1, .longest = 5, .bonus = (double)INFINITY}, "bonus is inf"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FAILS(lin_beam_create(4, NULL, NULL, &cases[i].o, &beam, &err), LIN_INVALID, cases[i].text);
        ck_assert(beam == NULL);
    }
    lin_beam_options o = lin_beam_options_default();
    FAILS(lin_beam_create(0, NULL, NULL, &o, &beam, &err), LIN_INVALID, "outputs is 0");
    OK(lin_ngram_parse(arpa, sizeof arpa - 1, "small.arpa", &lm, &err));
    FAILS(lin_beam_create(4, lm, NULL, &o, &beam, &err), LIN_INVALID, "a word for each label");
    FAILS(lin_beam_create(4, lm, beyond, &o, &beam, &err), LIN_INVALID, "label 3 is word 9");
    FAIL_EVERY_ALLOCATION(lin_beam_create(4, lm, words, &o, &beam, NULL), lin_beam_destroy(beam));
    lin_beam_destroy(NULL);
    o.labels = 3; // more outputs than exist, one output
    search s = begin(1, NULL, NULL, o, 0);
    float row[] = {-0.5f, 0, -1};
    push(&s, NULL, row, 3);
    OK(lin_beam_finish(s.beam, s.state, &s.settled, &err));
    ck_assert(s.settled.n_phones == 0 && fabs(s.settled.score + 1.5) < 1e-12);
    end(&s);
    lin_ngram_destroy(lm);
}
END_TEST

TEST_MAIN("beam_state", TEST(phrases_may_change_between_pushes), TEST(nothing_stays_of_old_phrases), 
          TEST(every_field_is_looked_at), TEST(bad_options))
