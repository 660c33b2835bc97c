// endpoint.c - the rules, and the state that they look at; see endpoint.h.

#include "decoder/endpoint.h"

#include <assert.h>
#include <math.h>

static const double QUIETEST_RISES_DB_S = 1;

lin_endpoint_options lin_endpoint_default(void)
{
    return (lin_endpoint_options){.before_s = 5, .after_s = 0.8, .longest_s = 30, .blank = 0.8, .loud_db = 20};
}

lin_status lin_endpoint_check(const lin_endpoint_options *o, lin_error *err)
{
    const lin_range ranges[] = {
        {"the silence before speech, in seconds,", o->before_s, 0, 86400},
        {"the silence after speech, in seconds,", o->after_s, 0, 86400},
        {"the longest utterance, in seconds,", o->longest_s, 0, 86400},
        {"the probability of a blank", o->blank, 1e-9, 1},
        {"the loudness above the quietest, in dB,", o->loud_db, 0, 200},
    };
    return lin_check_ranges(ranges, sizeof ranges / sizeof *ranges, "endpoints: ", err);
}

void lin_endpoint_begin_utterance(lin_endpoint *e) { e->silent_s = e->spoken_s = e->length_s = 0; }

void lin_endpoint_reset(lin_endpoint *e, const lin_endpoint_options *options, double row_s)
{
    assert(row_s > 0);
    *e = (lin_endpoint){.options = *options, .row_s = row_s, .quietest_db = INFINITY};
}

// True if the sound is louder than the recent quietest level by loud_db.
static int is_loud(lin_endpoint *e, double db)
{
    if (isnan(db) || e->options.loud_db == 0) return 0;
    const double risen = e->quietest_db + QUIETEST_RISES_DB_S * e->row_s;
    e->quietest_db = risen < db ? risen : db;
    return db >= e->quietest_db + e->options.loud_db;
}

lin_endpoint_rule lin_endpoint_push(lin_endpoint *e, const float *logp, double loudness_db)
{
    const lin_endpoint_options *o = &e->options;
    const int loud = is_loud(e, loudness_db);
    e->length_s += e->row_s;
    if ((double)logp[0] >= log(o->blank)) {
        e->silent_s += loud ? e->row_s / 2 : e->row_s;
    } else {
        e->silent_s = 0;
        e->spoken_s += e->row_s;
    }
    const double slack = 1e-6; // sums of row_s are not exact
    lin_endpoint_rule rule = LIN_ENDPOINT_NONE;
    if (e->spoken_s == 0 && o->before_s > 0 && e->silent_s >= o->before_s - slack) rule = LIN_ENDPOINT_BEFORE;
    else if (e->spoken_s > 0 && o->after_s > 0 && e->silent_s >= o->after_s - slack) rule = LIN_ENDPOINT_AFTER;
    else if (o->longest_s > 0 && e->length_s >= o->longest_s - slack) rule = LIN_ENDPOINT_LONGEST;
    if (rule != LIN_ENDPOINT_NONE) lin_endpoint_begin_utterance(e);
    return rule;
}
