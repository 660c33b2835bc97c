// writers_subtitles.c - SubRip and WebVTT: tokens grouped into cues by the usual rules for subtitles; and Praat TextGrids.
//
// A cue has at most two lines of 42 characters and lasts at most 7 s; it does not reach over a pause of half a second. Speech
// between two pauses that does not fit one cue is cut so that the cues are even, long enough and end at the longest pauses, and,
// if its written text is known, at the ends of sentences and lines: dynamic programming finds the cheapest way to cut. A cue
// stays for at least a second and for as long as reading takes, unless the next one comes. lin_cue_options can change all of
// these numbers.

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/unicode.h"
#include "decoder/writers_internal.h"

enum { PAUSE_MS = 500 };

const char lin_vtt_header[] = "WEBVTT\n\n";

// A token, or where one is longer than a line a part of it. `cost` and `cut` belong to the parts before this one.
typedef struct part {
    size_t text; // where it begins in `texts`; it ends where the next one begins
    int chars;
    int glued; // to the part before: no blank between them
    int line;  // begins a line of the text; 2: must begin a cue
    int stop;  // ends a sentence: 2, a part of one: 1
    int64_t from_ms, to_ms;
    double cost; // of the best way to cut what is before this part
    int cut;     // where its last cue begins
} part;

typedef struct cutter {
    lin_buffer texts;
    part *parts; // [n + 1]: the last one only ends the one before
    int n, capacity;
    lin_cue_options how; // all numbers given
    int most;            // characters of a cue: its lines, and what would be the blank between them
} cutter;

static lin_cue_options usual(const lin_cue_options *o)
{
    return (lin_cue_options){.width = o->width > 0 ? o->width : 42,
                             .rows = o->rows > 0 ? o->rows : 2,
                             .shortest_ms = o->shortest_ms > 0 ? o->shortest_ms : 1000,
                             .longest_ms = o->longest_ms > 0 ? o->longest_ms : 7000,
                             .speed = o->speed > 0 ? o->speed : 17, // for adults
                             .gap_ms = o->gap_ms,
                             .script = o->script};
}

typedef struct cue {
    int first, n, second; // parts; where the second line begins: first + n if there is only one
    int64_t from_ms, to_ms;
} cue;

/* ---- parts ----------------------------------------------------------------------------------------------------------------- */

static void add_part(cutter *c, const char *text, size_t bytes, part p)
{
    if (c->texts.failed) return;
    if (lin_grow_int(&c->parts, &c->capacity, c->n + 2, sizeof *c->parts, "subtitles", NULL)) {
        c->texts.failed = ((size_t)c->n + 2) * sizeof *c->parts;
        return;
    }
    p.text = c->texts.n;
    lin_buffer_bytes(&c->texts, text, bytes);
    c->parts[c->n++] = p;
    c->parts[c->n] = (part){.text = c->texts.n};
}

static size_t char_bytes(const char *text, size_t n)
{
    const size_t k = n ? lin_utf8_decode(text, n, NULL) : 0;
    return k ? k : n > 0;
}

static int count_chars(const char *text, size_t n)
{
    int chars = 0;
    for (size_t at = 0; at < n; at += char_bytes(text + at, n - at)) chars++;
    return chars;
}

// Behind its quotation marks and brackets: 2 for the end of a sentence, 1 for a comma and the like.
static int ends_with_stop(const char *text, size_t n)
{
    static const char *const behind[] = {"\"", "'", ")", "]", "\u201d", "\u2019", "\u00bb"};
    static const char *const stops[] = {".", "!", "?", "\u2026", ",", ";", ":", "\u2013", "\u2014", "-"};
    for (int more = 1; more;) {
        more = 0;
        for (size_t i = 0; i < sizeof behind / sizeof *behind; i++) {
            const size_t k = strlen(behind[i]);
            if (n > k && memcmp(text + n - k, behind[i], k) == 0) n -= k, more = 1;
        }
    }
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        const size_t k = strlen(stops[i]);
        if (n >= k && memcmp(text + n - k, stops[i], k) == 0) return i < 4 ? 2 : 1;
    }
    return 0;
}

// Adds a token, its time shared among its parts by their length, each a millisecond at least. Returns where it ends.
static int64_t add_token(cutter *c, const char *text, int64_t from_ms, int64_t to_ms, const lin_result_word *word)
{
    const size_t n = strlen(text);
    const int width = c->how.width, chars = count_chars(text, n), parts = (chars + width - 1) / width;
    const int line = word ? word->line : 0;
    const int64_t spans = to_ms - from_ms > parts ? to_ms - from_ms : parts;
    size_t at = 0;
    for (int i = 0; i < parts; i++) {
        const int done = i * width, end = i < parts - 1 ? done + width : chars;
        size_t bytes = 0;
        for (int k = done; k < end; k++) bytes += char_bytes(text + at + bytes, n - at - bytes);
        add_part(c, text + at, bytes,
                 (part){.chars = end - done,
                        .glued = i > 0 || (word && word->glued),
                        .line = i > 0 ? 0 : c->how.script && line ? 2 : line,
                        .stop = word && i == parts - 1 ? ends_with_stop(text, n) : 0,
                        .from_ms = from_ms + spans * done / chars,
                        .to_ms = from_ms + spans * end / chars});
        at += bytes;
    }
    return from_ms + spans;
}

// All tokens, in order of time, even if the times of the result are not.
// speaker: NULL, or who is named before the first.
static void add_tokens(cutter *c, const lin_tokens *t, const char *speaker)
{
    lin_buffer scratch = {0}, clean = {0};
    int64_t at_ms = 0;
    for (int i = 0; i < t->n && !c->texts.failed && !clean.failed && !scratch.failed; i++) {
        const lin_token token = lin_token_at(t, i);
        const int64_t from = lin_ms(token.start_s);
        lin_buffer_clear(&clean);
        if (i == 0 && speaker) lin_put_clean(&clean, speaker, "", 0), lin_buffer_text(&clean, ": ");
        lin_put_clean(&clean, lin_token_text(t, i, &scratch), "", 0);
        if (clean.n) at_ms = add_token(c, clean.data, from > at_ms ? from : at_ms, lin_ms(token.end_s),
                                        t->written ? &t->result->words[i] : NULL);
    }
    lin_scratch_free(&scratch, &c->texts);
    lin_scratch_free(&clean, &c->texts);
}

/* ---- cues ------------------------------------------------------------------------------------------------------------------ */

// Characters that part i adds to a line in which it is not the first.
static int added_chars(const cutter *c, int i) { return c->parts[i].chars + !c->parts[i].glued; }

// Where the second line of a cue of n parts begins, so that the lines are alike, the first rather the shorter; first + n: one
// line is enough; -1: two are not. chars: all of it on one line.
static int second_line(const cutter *c, int first, int n, int chars)
{
    if (chars <= c->how.width) return first + n;
    if (c->how.rows < 2) return -1;
    int best = -1, longest = c->how.width + 1, above = c->parts[first].chars;
    for (int k = first + 1; k < first + n; k++) {
        const int below = chars - above - !c->parts[k].glued, longer = above > below ? above : below;
        if (longer < longest) {
            longest = longer;
            best = k;
        }
        above += added_chars(c, k);
    }
    return best;
}

static int64_t wanted_ms(const cutter *c, int chars)
{
    const int64_t reading = (int64_t)chars * 1000 / c->how.speed;
    return reading < c->how.shortest_ms ? c->how.shortest_ms : reading > c->how.longest_ms ? c->how.longest_ms : reading;
}

// The cost of a cue of parts first .. end-1: 1 for each cue, more if it is not full or has to leave too soon, less if a pause
// follows.
static double cue_cost(const cutter *c, int first, int end, int chars)
{
    const double empty = 1 - (double)chars / c->most;
    double cost = 1 + empty * empty;
    if (end == c->n) return cost;
    const int64_t pause = c->parts[end].from_ms - c->parts[end - 1].to_ms, wanted = wanted_ms(c, chars);
    const int64_t stays = c->parts[end].from_ms - c->parts[first].from_ms - c->how.gap_ms;
    // What a script says about good places, beside pauses.
    if (c->parts[end].line) cost -= 0.8;
    else cost -= 0.4 * c->parts[end - 1].stop;
    if (stays < wanted) cost += 2 * (double)(wanted - stays) / (double)wanted;
    return cost - (double)(pause < PAUSE_MS ? pause : PAUSE_MS) / PAUSE_MS;
}

// The cheapest way to cut: afterwards parts[i].cut is where the cue that begins at part i ends.
static void cut(cutter *c)
{
    for (int end = 1; end <= c->n; end++) {
        part *e = &c->parts[end];
        e->cost = INFINITY;
        int chars = 0;
        for (int i = end - 1; i >= 0; i--) {
            const part *p = &c->parts[i];
            const int one = i == end - 1;
            if (!one && (p[1].from_ms - p->to_ms >= PAUSE_MS || p[1].line > 1)) break;
            if (!one && e[-1].to_ms - p->from_ms > c->how.longest_ms) break;
            chars += p->chars + (!one && !p[1].glued);
            if (chars > c->most) break;
            const double cost = p->cost + cue_cost(c, i, end, chars);
            if (cost < e->cost && second_line(c, i, end - i, chars) >= 0) {
                e->cost = cost;
                e->cut = i;
            }
        }
    }
    // Each end is stored with its beginning; turned around, each beginning with its end.
    for (int end = c->n, after = 0; end > 0;) {
        const int begin = c->parts[end].cut;
        c->parts[end].cut = after;
        after = end;
        end = begin;
        if (!begin) c->parts[0].cut = after;
    }
}

// The cue that begins at part `first`. It stays until it is read, or the next one comes. until_ms: when the sound ends, or if
// is_followed, when another turn begins. The gap is at most half of the time until the next cue, so that none shrinks to nothing.
static cue cue_at(const cutter *c, int first, int64_t until_ms, int is_followed)
{
    const int end = c->parts[first].cut;
    cue q = {.first = first, .n = end - first, .from_ms = c->parts[first].from_ms, .to_ms = c->parts[end - 1].to_ms};
    int chars = c->parts[first].chars;
    for (int i = first + 1; i < end; i++) chars += added_chars(c, i);
    q.second = second_line(c, first, q.n, chars);
    if (end < c->n) until_ms = c->parts[end].from_ms, is_followed = 1;
    const int64_t half = (until_ms - q.from_ms) / 2, gap = !is_followed ? 0 : c->how.gap_ms < half ? c->how.gap_ms : half;
    const int64_t free_ms = until_ms - gap;
    int64_t stays = q.from_ms + wanted_ms(c, chars);
    if (stays > free_ms) stays = free_ms;
    if (q.to_ms < stays) q.to_ms = stays;
    // Speakers who speak at once have subtitles at once: the last cue of a turn may end after the next begins.
    if (q.to_ms > free_ms && free_ms > q.from_ms) q.to_ms = free_ms;
    if (q.to_ms > q.from_ms + c->how.longest_ms) q.to_ms = q.from_ms + c->how.longest_ms;
    return q;
}

/* ---- files ----------------------------------------------------------------------------------------------------------------- */

static void put_time(lin_buffer *out, int64_t ms, char point)
{
    char text[48];
    snprintf(text, sizeof text, "%02lld:%02d:%02d%c%03d", (long long)(ms / 3600000), (int)(ms / 60000 % 60),
             (int)(ms / 1000 % 60), point, (int)(ms % 1000));
    lin_buffer_text(out, text);
}

static void put_escaped(lin_buffer *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char c = text[i], *escape = c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : NULL;
        if (escape) {
            lin_buffer_text(out, escape);
        } else {
            lin_buffer_char(out, c);
        }
    }
}

static void put_cue(const cutter *c, const cue *q, int number, const char *speaker, const lin_writer_options *o, int vtt,
                    lin_buffer *out)
{
    int64_t at_ms = q->from_ms;
    if (!vtt) {
        lin_buffer_format(out, "%d\n", number);
    }
    put_time(out, q->from_ms, vtt ? '.' : ',');
    lin_buffer_text(out, " --> ");
    put_time(out, q->to_ms, vtt ? '.' : ',');
    lin_buffer_char(out, '\n');
    if (vtt && speaker) {
        lin_buffer clean = {0};
        lin_put_clean(&clean, speaker, "", 0);
        lin_buffer_text(out, "<v ");
        if (clean.n) put_escaped(out, clean.data, clean.n);
        lin_buffer_char(out, '>');
        lin_scratch_free(&clean, out);
    }
    for (int i = q->first; i < q->first + q->n; i++) {
        const part *p = &c->parts[i];
        const char *text = c->texts.data + p->text;
        const size_t n = p[1].text - p->text;
        if (i == q->second) {
            lin_buffer_char(out, '\n');
        } else if (i > q->first && !p->glued) {
            lin_buffer_char(out, ' ');
        }
        // WebVTT requires times within the cue's own, in ascending order; a gap can end a cue before its last words.
        if (vtt && o->word_times && !p->glued && p->from_ms > at_ms && p->from_ms < q->to_ms) {
            lin_buffer_char(out, '<');
            put_time(out, p->from_ms, '.');
            lin_buffer_char(out, '>');
            at_ms = p->from_ms;
        }
        if (vtt) {
            put_escaped(out, text, n);
        } else {
            lin_buffer_bytes(out, text, n);
        }
    }
    lin_buffer_text(out, "\n\n");
}

static lin_status write_subtitles(const lin_tokens *of, int vtt, lin_buffer *out, lin_error *err)
{
    const lin_result *r = of->result;
    const lin_writer_options *o = of->options;
    lin_writer_document none = {0}, *document = o->document ? o->document : &none;
    cutter c = {.how = usual(&o->cues)};
    lin_tokens t = *of;
    lin_readable readable = {0};
    lin_status status = LIN_OK;
    LIN_TRY(lin_tokens_make_readable(&t, 0, &readable, err));
    c.most = c.how.rows * (c.how.width + 1) - 1;
    if (vtt) lin_put_header(o, lin_vtt_header, out);
    const char *speaker = o->with_speaker && *r->speaker ? r->speaker : NULL;
    add_tokens(&c, &t, vtt ? NULL : speaker);
    lin_readable_free(&readable);
    if (c.texts.failed) {
        out->failed = c.texts.failed;
    } else if (c.n && c.parts[0].from_ms < document->end_ms && !o->with_speaker) {
        status = lin_fail(err, LIN_INVALID,
                          "%s begins before the last subtitle ends: recordings need a file each, use --output-dir", r->id);
    } else if (c.n) {
        cut(&c);
        const int is_followed = o->with_speaker && o->until_s > 0 && o->until_s < r->seconds; // by another turn
        const int64_t until_ms = lin_ms(is_followed ? o->until_s : r->seconds);
        for (int i = 0; i < c.n; i = c.parts[i].cut) {
            const cue q = cue_at(&c, i, until_ms, is_followed);
            put_cue(&c, &q, ++document->cues, speaker, o, vtt, out);
            document->end_ms = q.to_ms;
        }
    }
    lin_free(c.parts);
    lin_buffer_free(&c.texts);
    return status;
}

lin_status lin_write_srt(const lin_tokens *t, lin_buffer *out, lin_error *err) { return write_subtitles(t, 0, out, err); }

lin_status lin_write_vtt(const lin_tokens *t, lin_buffer *out, lin_error *err) { return write_subtitles(t, 1, out, err); }

/* ---- Praat ----------------------------------------------------------------------------------------------------------------- */

// Intervals of a tier: tokens, and empty ones wherever there is none, so that all of 0 .. end_ms is covered. Praat requires
// that every interval is longer than 0 and begins where the one before ended, whatever the times of a result are.
typedef struct tier {
    lin_tokens tokens;
    int64_t at_ms, end_ms;
    int next;
} tier;

typedef struct interval {
    int64_t from_ms, to_ms;
    int token; // -1: empty
} interval;

// The interval of a token, moved behind `at_ms` if it begins earlier.
static interval place(const lin_tokens *tokens, int i, int64_t at_ms)
{
    const lin_token token = lin_token_at(tokens, i);
    int64_t from = lin_ms(token.start_s), to = lin_ms(token.end_s);
    if (from < at_ms) from = at_ms;
    if (to <= from) to = from + 1;
    return (interval){from, to, i};
}

static int next_interval(tier *t, interval *out)
{
    if (t->next < t->tokens.n) {
        *out = place(&t->tokens, t->next, t->at_ms);
        if (out->from_ms > t->at_ms) {
            *out = (interval){t->at_ms, out->from_ms, -1};
        } else {
            t->next++;
        }
    } else {
        *out = (interval){t->at_ms, t->end_ms, -1};
    }
    if (out->to_ms <= out->from_ms) return 0;
    t->at_ms = out->to_ms;
    return 1;
}

static int64_t end_of(const lin_tokens *tokens)
{
    int64_t at = 0;
    for (int i = 0; i < tokens->n; i++) at = place(tokens, i, at).to_ms;
    return at;
}

static void put_grid_time(lin_buffer *out, const char *name, int64_t ms)
{
    lin_buffer_text(out, name);
    lin_put_ms_as_seconds(out, ms);
    lin_buffer_text(out, " \n"); // Praat's own files have the blank, and some of their readers rely on it
}

// The head of a tier of n intervals. speaker: NULL where there is one only.
static void begin_tier(const char *speaker, const char *name, int number, int64_t end_ms, int n, lin_buffer *out)
{
    lin_buffer_format(out, "    item [%d]:\n        class = \"IntervalTier\" \n        name = \"", number);
    if (speaker) lin_put_clean(out, speaker, "", '"');
    if (speaker) lin_buffer_text(out, " - "); // as the Montreal Forced Aligner names them
    lin_buffer_text(out, name);
    lin_buffer_text(out, "\" \n");
    put_grid_time(out, "        xmin = ", 0);
    put_grid_time(out, "        xmax = ", end_ms);
    lin_buffer_format(out, "        intervals: size = %d \n", n);
}

static void put_interval(int i, int64_t from_ms, int64_t to_ms, const char *text, lin_buffer *out)
{
    lin_buffer_format(out, "        intervals [%d]:\n", i);
    put_grid_time(out, "            xmin = ", from_ms);
    put_grid_time(out, "            xmax = ", to_ms);
    lin_buffer_text(out, "            text = \"");
    lin_put_clean(out, text, "", '"');
    lin_buffer_text(out, "\" \n");
}

static void put_tier(const lin_tokens *tokens, const char *speaker, int number, int64_t end_ms, lin_buffer *scratch,
                     lin_buffer *out)
{
    interval v;
    tier t = {.tokens = *tokens, .end_ms = end_ms};
    int n = 0;
    while (next_interval(&t, &v)) n++;
    begin_tier(speaker, tokens->words ? "words" : "phones", number, end_ms, n, out);
    t = (tier){.tokens = *tokens, .end_ms = end_ms};
    for (int i = 1; next_interval(&t, &v); i++)
        put_interval(i, v.from_ms, v.to_ms, v.token >= 0 ? lin_token_text(tokens, v.token, scratch) : "", out);
}

// The spans of a result, in order and without overlap; whatever is between them is empty.
static void put_spans(const lin_result *r, const char *speaker, int number, int64_t end_ms, lin_buffer *out)
{
    int n = 0;
    for (int pass = 0; pass < 2; pass++) { // counts, then writes
        int64_t at = 0;
        if (pass) begin_tier(speaker, r->has_others ? "notes" : "utterances", number, end_ms, n, out);
        n = 0;
        for (int i = 0; i <= r->n_spans; i++) {
            const lin_result_span *v = i < r->n_spans ? &r->spans[i] : NULL;
            int64_t from = v ? lin_ms(v->start_s) : end_ms;
            if (from < at) from = at;
            for (int is_span = 0; is_span < 2; is_span++) {
                int64_t to = !is_span ? from : v ? lin_ms(v->end_s) : from;
                if (to > end_ms) to = end_ms;
                if (to <= at) continue;
                n++;
                if (pass) put_interval(n, at, to, is_span ? r->text + v->text : "", out);
                at = to;
            }
        }
    }
}

// The tiers of a result. Returns their number; the end of the grid grows with them.
static int tiers_of(const lin_tokens *t, lin_tokens tiers[2], int64_t *end_ms)
{
    int n = 0;
    if (t->words) tiers[n++] = *t;
    if (t->options->unit != LIN_UNIT_WORDS) tiers[n++] = lin_tokens_only(t->result, t->options, 0);
    const int64_t seconds = lin_ms(t->result->seconds);
    if (seconds > *end_ms) *end_ms = seconds;
    for (int i = 0; i < n; i++) {
        const int64_t end = end_of(&tiers[i]);
        if (end > *end_ms) *end_ms = end;
    }
    return n;
}

lin_status lin_write_textgrid(const lin_result *const *list, int n, const lin_writer_options *o, lin_buffer *out, lin_error *err)
{
    lin_tokens t, tiers[2];
    int64_t end_ms = 0;
    int n_tiers = 0, number = 1;
    for (int i = 0; i < n; i++) {
        LIN_TRY(lin_tokens_of(&t, list[i], o, err));
        n_tiers += tiers_of(&t, tiers, &end_ms) + (list[i]->n_spans > 0);
        for (int k = 0; k < list[i]->n_spans; k++) {
            const int64_t end = lin_ms(list[i]->spans[k].end_s);
            if (end > end_ms) end_ms = end;
        }
    }
    if (o->document && o->document->utterances) {
        return lin_fail(err, LIN_INVALID, "a TextGrid holds one utterance; use --output-dir for %s",
                        list[0]->id);
    }
    if (end_ms == 0) end_ms = 1; // no sound at all: Praat requires some
    lin_buffer scratch = {0};
    lin_buffer_text(out, "File type = \"ooTextFile\"\nObject class = \"TextGrid\"\n\n");
    put_grid_time(out, "xmin = ", 0);
    put_grid_time(out, "xmax = ", end_ms);
    lin_buffer_format(out, "tiers? <exists> \nsize = %d \nitem []: \n", n_tiers);
    for (int i = 0; i < n; i++) {
        lin_status status = lin_tokens_of(&t, list[i], o, err);
        const int own = status != LIN_OK ? 0 : tiers_of(&t, tiers, &end_ms);
        const char *speaker = n > 1 || list[i]->n_voices == 1 ? list[i]->speaker : NULL;
        const int spans = own && list[i]->n_spans, first = !list[i]->has_others;
        if (spans && first) put_spans(list[i], speaker, number++, end_ms, out);
        for (int k = 0; k < own; k++) put_tier(&tiers[k], speaker, number++, end_ms, &scratch, out);
        if (spans && !first) put_spans(list[i], speaker, number++, end_ms, out);
    }
    lin_scratch_free(&scratch, out);
    return LIN_OK;
}
