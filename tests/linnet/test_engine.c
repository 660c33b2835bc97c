// The engine for many live streams: what each stream gives is what it gives alone, whoever pushes when and in what pieces;
// refusals, overflows, slow consumers, dead producers, resets and closings under load; nothing allocated. LINNET_LOAD_SECONDS:
// of the load test; CK_DEFAULT_TIMEOUT: more than that.
#include "base/memory.h"
#include "base/system.h"
#include "tests/linnet/engine_cases.h"

static group together;
static lin_recognizer r;

static void leave(void) { end(&r); }

START_TEST(as_if_alone)
{
    begin(&r, &shapes[_i]);
    lin_engine_options o = lin_engine_default(N);
    o.chunk_frames = shapes[_i].chunk_frames;
    o.shards = shapes[_i].shards;
    o.threads = shapes[_i].threads;
    o.max_wait_ms = 3;
    o.deliver = collect;
    run_group(&r, &o, &together);
    ck_assert_int_gt(judge_group(&together), 20 * N);
}
END_TEST

// The first phone behind an endpoint that resets has the label of the last one before: it would be swallowed if that were
// remembered.
static int repeated(const notes *n)
{
    int count = 0;
    for (int i = 1; i + 1 < n->n; i++)
        count += n->events[i].kind == UTTERANCE_END && n->events[i - 1].kind == PHONE && n->events[i + 1].kind == PHONE &&
                 n->events[i - 1].label == n->events[i + 1].label && n->events[i + 1].start_s == n->events[i - 1].end_s;
    return count;
}

START_TEST(endpoints)
{
    begin(&r, &shapes[_i / 2]);
    lin_engine_options o = lin_engine_default(N);
    o.chunk_frames = shapes[_i / 2].chunk_frames;
    o.shards = o.threads = 2;
    o.deliver = collect;
    o.queue_s = 0.5; // which is full most of the time
    o.ends.endpoints = 1;
    o.ends.resets = _i % 2;
    o.ends.rules = (lin_endpoint_options){.before_s = 0.3, .after_s = 0.06, .longest_s = 0.45, .blank = 0.02, .loud_db = 20};
    run_group(&r, &o, &together);
    int ends[LINNET_FINISHED] = {0}, repeats = 0;
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < together.got[i].n; k++) ends[together.got[i].events[k].end]++;
        repeats += repeated(&together.want[i]);
    }
    judge_group(&together);
    ck_assert_int_gt(ends[LINNET_AFTER], 3);
    ck_assert_int_gt(ends[LINNET_LONGEST], 3);
    if (o.ends.resets) ck_assert_int_gt(repeats, 0);
    else ck_assert_int_eq(repeats, 0);
}
END_TEST

/* ---- each pays for itself -------------------------------------------------------------------------------------------------- */

static void note_for(void *context, const lin_engine_event *event)
{
    (void)context;
    note(event->user, event);
}

// got: where note_for puts its events.
static void hear(lin_engine *engine, lin_engine_id id, const voice *v, notes *got)
{
    for (int at = 0; at < v->n; at += 640) push_all(engine, id, v, at, v->n - at < 640 ? v->n - at : 640);
    OK(lin_engine_finish(engine, id, &err));
    wait_for_end(got);
}

START_TEST(admission)
{
    lin_engine *engine;
    lin_engine_stats stats;
    lin_engine_id ids[3], extra;
    begin(&r, &shapes[0]);
    lin_engine_options o = lin_engine_default(3);
    o.shards = 2;
    OK(lin_engine_create(&r, &o, &engine, &err));
    for (int i = 0; i < 3; i++) OK(lin_engine_open(engine, RATE, 1, NULL, &ids[i], &err));
    FAILS(lin_engine_open(engine, RATE, 1, NULL, &extra, &err), LIN_TOO_SMALL, "all 3 streams are taken");
    FAILS(lin_engine_open(engine, 100, 1, NULL, &extra, &err), LIN_UNSUPPORTED, "");
    lin_engine_stats_get(engine, &stats);
    ck_assert_int_eq(stats.open, 3);
    ck_assert_int_eq(stats.refused, 1);
    lin_engine_close(engine, ids[1]);
    lin_engine_close(engine, ids[1]);
    OK(lin_engine_open(engine, RATE, 1, NULL, &extra, &err));
    const float silence[160] = {0};
    ck_assert(extra != ids[1] && extra != 0); // the same place, another stream
    FAILS(lin_engine_push(engine, ids[1], silence, 160, &err), LIN_INVALID, "no open stream");
    FAILS(lin_engine_finish(engine, ids[1], &err), LIN_INVALID, "");
    FAILS(lin_engine_reset(engine, ids[1], &err), LIN_INVALID, "");
    FAILS(lin_engine_push(engine, 12345678, silence, 160, &err), LIN_INVALID, "");
    FAILS(lin_engine_push(engine, extra, silence, -1, &err), LIN_INVALID, "");
    OK(lin_engine_push(engine, extra, silence, 0, &err));
    OK(lin_engine_push(engine, extra, silence, 160, &err));
    const lin_engine_id stale = extra;
    lin_engine_close(engine, stale);
    FAILS(lin_engine_open(engine, 44100, 65, NULL, &extra, &err), LIN_UNSUPPORTED, "");
    OK(lin_engine_open(engine, 44100, 2, NULL, &extra, &err)); // closed by destroy
    lin_engine_destroy(engine);

    lin_engine_options bad[6];
    for (int i = 0; i < 6; i++) bad[i] = o;
    bad[0].capacity = 0;
    bad[1].chunk_frames = 33;
    bad[2].queue_s = 0.4;
    bad[3].max_wait_ms = NAN;
    bad[4].shards = -1;
    bad[5].ends.endpoints = 1;
    bad[5].ends.rules.blank = 2;
    for (int i = 0; i < 6; i++) {
        FAILS(lin_engine_create(&r, &bad[i], &engine, &err), LIN_INVALID, "");
        ck_assert_ptr_null(engine);
    }
}
END_TEST

// Who never says anything more does not harm others.
START_TEST(dead)
{
    static notes got, want, of_dead;
    lin_engine *engine;
    lin_engine_stats stats, later;
    lin_engine_id ids[2];
    begin(&r, &shapes[0]);
    lin_engine_options o = lin_engine_default(2);
    o.deliver = note_for;
    o.shards = 1;
    o.max_wait_ms = 20;
    OK(lin_engine_create(&r, &o, &engine, &err));
    voice v = speak(9, RATE, 1, 3);
    alone(&r, &o, &v, &want);
    OK(lin_engine_open(engine, RATE, 1, &of_dead, &ids[0], &err));
    OK(lin_engine_open(engine, RATE, 1, &got, &ids[1], &err));
    OK(lin_engine_push(engine, ids[0], v.samples, 400 + 160, &err)); // two frames of a chunk of four, and then nothing for ever
    hear(engine, ids[1], &v, &got);
    compare("beside a dead one", &got, &want);
    for (lin_engine_stats_get(engine, &stats); stats.rows < 298 + 2; lin_engine_stats_get(engine, &stats)) pause_ms(5);
    ck_assert_int_eq(stats.rows, 298 + 2); // those of the dead one too, after waiting in vain
    pause_ms(60);
    lin_engine_stats_get(engine, &later);
    ck_assert_int_eq(later.ticks, stats.ticks); // silence costs nothing
    lin_engine_destroy(engine);
    free(v.samples);
}
END_TEST

START_TEST(overflow_and_nonsense)
{
    static notes got, want;
    lin_engine *engine;
    lin_engine_stats stats;
    lin_engine_id id;
    begin(&r, &shapes[1]);
    lin_engine_options o = lin_engine_default(1);
    o.queue_s = 0.5;
    o.deliver = note_for;
    OK(lin_engine_create(&r, &o, &engine, &err));
    OK(lin_engine_open(engine, RATE, 1, &got, &id, &err));
    voice v = speak(3, RATE, 1, 0.4), much = speak(4, RATE, 1, 3);
    alone(&r, &o, &v, &want);
    push_all(engine, id, &v, 0, 3000);
    FAILS(lin_engine_push(engine, id, much.samples, much.n, &err), LIN_TOO_SMALL, "48000 lost so far");
    much.samples[77] = NAN;
    FAILS(lin_engine_push(engine, id, much.samples, 100, &err), LIN_NUMERIC, "sample 77 of channel 1");
    push_all(engine, id, &v, 3000, v.n - 3000);
    OK(lin_engine_finish(engine, id, &err));
    FAILS(lin_engine_finish(engine, id, &err), LIN_INVALID, "");
    FAILS(lin_engine_push(engine, id, v.samples, 1, &err), LIN_INVALID, "");
    wait_for_end(&got);
    compare("what did fit", &got, &want);
    ck_assert_int_eq(got.lost, 48000);
    lin_engine_stats_get(engine, &stats);
    ck_assert_int_eq(stats.lost_samples, 48000);
    lin_engine_stats_reset(engine);
    lin_engine_stats_get(engine, &stats);
    ck_assert_int_eq(stats.lost_samples + stats.ticks + stats.rows, 0);
    lin_engine_destroy(engine);
    free(v.samples);
    free(much.samples);
}
END_TEST

// A network that gives no numbers: that stream fails, and says so once; a reset gives it another chance.
START_TEST(failure)
{
    static notes got;
    lin_engine *engine;
    lin_engine_id id;
    begin(&r, &shapes[0]);
    lin_encoder_destroy(r.encoder);
    r.model->values[r.model->params.table[r.model->params.output[1]].offset] = NAN;
    OK(lin_encoder_create(r.model, lin_ops_cpu(), &r.encoder, &err));
    lin_engine_options o = lin_engine_default(1);
    o.deliver = note_for;
    OK(lin_engine_create(&r, &o, &engine, &err));
    OK(lin_engine_open(engine, RATE, 1, &got, &id, &err));
    voice v = speak(3, RATE, 1, 0.2);
    for (int life = 0; life < 2; life++) {
        memset(&got, 0, sizeof got);
        push_all(engine, id, &v, 0, v.n);
        wait_for_end(&got);
        ck_assert_int_eq(got.n, 1);
        ck_assert_int_eq(got.events[0].status, LIN_NUMERIC);
        ck_assert_int_eq(lin_engine_push(engine, id, v.samples, 10, NULL), LIN_INVALID);
        ck_assert_int_eq(lin_engine_finish(engine, id, NULL), LIN_INVALID);
        OK(lin_engine_reset(engine, id, &err));
    }
    lin_engine_destroy(engine);
    free(v.samples);
}
END_TEST

/* ---- reset and close ------------------------------------------------------------------------------------------------------- */

static atomic_int inside;

static void note_slowly(void *context, const lin_engine_event *event)
{
    atomic_store(&inside, 1);
    usleep(400);
    note_for(context, event);
    atomic_store(&inside, 0);
}

// After the return of reset and close the owner may do what it likes with what its callback uses.
START_TEST(no_event_after_reset_or_close)
{
    static notes want;
    lin_engine *engine;
    lin_engine_id id;
    begin(&r, &shapes[_i]);
    lin_engine_options o = lin_engine_default(2);
    o.deliver = note_slowly;
    o.shards = 1;
    OK(lin_engine_create(&r, &o, &engine, &err));
    voice v[2] = {speak(3, RATE, 1, 1), speak(4, 8000, 1, 1)};
    for (int turn = 0; turn < 40; turn++) {
        const voice *now = &v[turn % 2];
        notes *got = calloc(1, sizeof *got);
        alone(&r, &o, now, &want);
        OK(lin_engine_open(engine, now->rate, now->channels, got, &id, &err));
        for (uint64_t life = 0; life < 3; life++) {
            const int n = (int)lin_random_below(8, 3 * (uint64_t)turn + life, (uint32_t)now->n);
            for (int at = 0; at + 300 < n; at += 300) push_all(engine, id, now, at, 300);
            if (life == 1) OK(lin_engine_finish(engine, id, &err));
            if (turn % 3) usleep((useconds_t)lin_random_below(9, (uint64_t)turn, 3000));
            OK(lin_engine_reset(engine, id, &err));
            ck_assert_int_eq(atomic_load(&inside), 0);
            memset(got, 0, sizeof *got);
        }
        if (turn % 4 == 0) {
            for (int at = 0; at < now->n; at += 400) push_all(engine, id, now, at, 400);
            OK(lin_engine_finish(engine, id, &err));
            while (!got->ends) pause_ms(1);
            compare("after resets", got, &want);
        } else {
            push_all(engine, id, now, 0, 4000);
        }
        lin_engine_close(engine, id);
        ck_assert_int_eq(atomic_load(&inside), 0);
        free(got);
    }
    lin_engine_destroy(engine);
    free(v[0].samples);
    free(v[1].samples);
}
END_TEST

typedef struct self {
    lin_engine *engine;
    const voice *v;
    atomic_int calls, closed;
} self;

// An owner that in its callback pushes more, resets at the first end, and closes at the second.
static void serve_itself(void *context, const lin_engine_event *event)
{
    self *s = context;
    const lin_engine_id id = event->stream;
    atomic_fetch_add(&s->calls, 1);
    test_require(!atomic_load(&s->closed), "an event after closing");
    if (event->kind != LIN_ENGINE_FINISHED) return;
    if (atomic_load(&s->calls) > 1000) {
        lin_engine_close(s->engine, id);
        atomic_store(&s->closed, 1);
        return;
    }
    atomic_store(&s->calls, 1001);
    OK(lin_engine_reset(s->engine, id, &err));
    OK(lin_engine_push(s->engine, id, s->v->samples, s->v->n, &err));
    OK(lin_engine_finish(s->engine, id, &err));
}

START_TEST(from_within_a_callback)
{
    lin_engine_id id;
    begin(&r, &shapes[0]);
    voice v = speak(3, RATE, 1, 0.5);
    self s = {.v = &v};
    lin_engine_options o = lin_engine_default(1);
    o.deliver = serve_itself;
    o.context = &s;
    OK(lin_engine_create(&r, &o, &s.engine, &err));
    OK(lin_engine_open(s.engine, RATE, 1, NULL, &id, &err));
    push_all(s.engine, id, &v, 0, v.n);
    OK(lin_engine_finish(s.engine, id, &err));
    while (!atomic_load(&s.closed)) pause_ms(1);
    ck_assert_int_gt(atomic_load(&s.calls), 1001);
    ck_assert_int_eq(lin_engine_push(s.engine, id, v.samples, 1, NULL), LIN_INVALID);
    lin_engine_destroy(s.engine);
    free(v.samples);
}
END_TEST

static void close_itself(void *context, const lin_engine_event *event)
{
    self *s = context;
    test_require(!atomic_load(&s->closed), "an event after closing");
    lin_engine_close(s->engine, event->stream);
    atomic_store(&s->closed, 1);
}

// The tick that settles its first phones also has the loss of sound to tell: nobody is told.
START_TEST(closed_by_its_first_event)
{
    lin_engine_id id;
    begin(&r, &shapes[0]);
    voice v = speak(3, RATE, 1, 0.5), much = speak(4, RATE, 1, 3);
    self s = {.v = &v};
    lin_engine_options o = lin_engine_default(1);
    o.deliver = close_itself;
    o.context = &s;
    o.chunk_frames = 32;
    OK(lin_engine_create(&r, &o, &s.engine, &err));
    OK(lin_engine_open(s.engine, RATE, 1, NULL, &id, &err));
    ck_assert_int_eq(lin_engine_push(s.engine, id, much.samples, much.n, NULL), LIN_TOO_SMALL);
    OK(lin_engine_push(s.engine, id, v.samples, v.n, &err));
    while (!atomic_load(&s.closed)) pause_ms(1);
    lin_engine_destroy(s.engine); // when the tick is over
    free(v.samples);
    free(much.samples);
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------------------------------------- */

START_TEST(nothing_is_allocated)
{
    static notes got[3];
    lin_engine *engine;
    lin_engine_id ids[3];
    begin(&r, &shapes[1]);
    lin_engine_options o = lin_engine_default(3);
    o.ends.endpoints = o.ends.resets = 1;
    o.ends.rules.longest_s = 0.3;
    o.deliver = note_for;
    o.shards = o.threads = 2;
    OK(lin_engine_create(&r, &o, &engine, &err));
    voice v = speak(3, RATE, 2, 1);
    const unsigned long before = lin_memory_count();
    for (int turn = 0; turn < 3; turn++) {
        memset(got, 0, sizeof got);
        for (int i = 0; i < 3; i++) OK(lin_engine_open(engine, RATE, 2, &got[i], &ids[i], &err));
        for (int i = 0; i < 3; i++) push_all(engine, ids[i], &v, 0, 5000);
        OK(lin_engine_reset(engine, ids[turn], &err));
        for (int i = 0; i < 3; i++) {
            hear(engine, ids[i], &v, &got[i]);
            ck_assert_int_gt(got[i].n, 5);
            lin_engine_close(engine, ids[i]);
        }
    }
    ck_assert_uint_eq(lin_memory_count(), before);
    lin_engine_destroy(engine);
    free(v.samples);
}
END_TEST

START_TEST(without_memory)
{
    lin_engine *engine;
    lin_error why = {0};
    lin_engine_id id;
    begin(&r, &shapes[0]);
    lin_engine_options o = lin_engine_default(3);
    o.shards = o.threads = 2;
    FAIL_EVERY_ALLOCATION_OF(engine, lin_engine_create(&r, &o, &engine, &why), lin_engine_destroy(engine));
    const unsigned long live = lin_memory_live();
    OK(lin_engine_create(&r, &o, &engine, &err));
    const unsigned long made = lin_memory_live();
    unsigned long k = 1;
    for (; lin_memory_fail_at(k), lin_engine_open(engine, 8000, 1, NULL, &id, &why) != LIN_OK; k++) {
        ck_assert_int_eq(why.status, LIN_NO_MEMORY);
        ck_assert_uint_le(lin_memory_live(), made); // less the front end at the rate of the model
    }
    lin_memory_fail_at(0);
    ck_assert_uint_gt(k, 2);
    lin_engine_destroy(engine);
    ck_assert_uint_eq(lin_memory_live(), live);
}
END_TEST

/* ---- load ------------------------------------------------------------------------------------------------------------------ */

enum { CROWD = 200, CROWD_PRODUCERS = 4 };

typedef struct member {
    atomic_int inside;
    int events;
} member;

static struct {
    lin_engine *engine;
    _Atomic lin_engine_id ids[CROWD];
    member *_Atomic members[CROWD];
    voice v;
    notes got, want;
    atomic_int stop;
    atomic_llong pushes, resets, closings, refused;
} crowd;

static void crowd_deliver(void *context, const lin_engine_event *event)
{
    if (event->user == &crowd.got) {
        note_for(context, event);
        return;
    }
    member *m = event->user; // freed when its stream is closed
    test_require(!atomic_exchange(&m->inside, 1), "two calls for one stream at once");
    m->events++;
    atomic_store(&m->inside, 0);
}

static void reopen(int i, lin_engine_id id)
{
    static const int rates[] = {16000, 16000, 16000, 8000};
    if (id) {
        lin_engine_close(crowd.engine, id);
        free(atomic_load(&crowd.members[i]));
    }
    member *m = calloc(1, sizeof *m);
    atomic_store(&crowd.members[i], m);
    if (lin_engine_open(crowd.engine, rates[i % 4], 1, m, &id, NULL) != LIN_OK) ck_abort_msg("no place for a stream");
    atomic_store(&crowd.ids[i], id);
    atomic_fetch_add(&crowd.closings, 1);
}

// Any stream at any time: pushes mostly; resets, ends, and closings by whoever takes the id away first.
static void *jostle(void *argument)
{
    const uint64_t key = 500 + (uint64_t)(uintptr_t)argument;
    for (uint64_t turn = 0; !atomic_load(&crowd.stop); turn++) {
        const int i = (int)lin_random_below(key, 4 * turn, CROWD), n = (int)lin_random_below(key, 4 * turn + 1, 900);
        const uint64_t what = lin_random_below(key, 4 * turn + 2, 200);
        lin_engine_id id = atomic_load(&crowd.ids[i]);
        if (what == 0 && (id = atomic_exchange(&crowd.ids[i], 0)) != 0) reopen(i, id);
        else if (what < 3) atomic_fetch_add(&crowd.resets, lin_engine_reset(crowd.engine, id, NULL) == LIN_OK);
        else if (what == 3) lin_engine_finish(crowd.engine, id, NULL);
        else if (lin_engine_push(crowd.engine, id, crowd.v.samples + (turn * 31) % 9000, n, NULL) == LIN_OK)
            atomic_fetch_add(&crowd.pushes, 1);
        if (turn % 16 == 0) usleep(300);
    }
    return NULL;
}

START_TEST(load)
{
    lin_engine_stats stats;
    lin_engine_id witness;
    pthread_t threads[CROWD_PRODUCERS];
    const char *asked = getenv("LINNET_LOAD_SECONDS");
    const double seconds = asked ? atof(asked) : 2;
    begin(&r, &shapes[1]);
    lin_engine_options o = lin_engine_default(CROWD + 1);
    o.deliver = crowd_deliver;
    o.views = 1;
    o.shards = o.threads = 2;
    o.ends.endpoints = o.ends.resets = 1;
    o.ends.rules = (lin_endpoint_options){.before_s = 0.3, .after_s = 0.06, .longest_s = 0.45, .blank = 0.02, .loud_db = 20};
    OK(lin_engine_create(&r, &o, &crowd.engine, &err));
    crowd.v = speak(3, RATE, 1, 1);
    alone(&r, &o, &crowd.v, &crowd.want);
    OK(lin_engine_open(crowd.engine, RATE, 1, &crowd.got, &witness, &err));
    for (int i = 0; i < CROWD; i++) reopen(i, 0);
    for (int i = 0; i < CROWD_PRODUCERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, jostle, (void *)(uintptr_t)i), 0);
    const double begun = lin_now();
    int lives = 0;
    do { // in the midst of it one stream that is left in peace hears what it hears alone
        for (int at = 0; at < crowd.v.n; at += 640) push_all(crowd.engine, witness, &crowd.v, at, 640);
        OK(lin_engine_finish(crowd.engine, witness, &err));
        while (!crowd.got.ends) pause_ms(1);
        OK(lin_engine_reset(crowd.engine, witness, &err));
        compare("amid the crowd", &crowd.got, &crowd.want);
        lives++;
        memset(&crowd.got, 0, sizeof crowd.got);
    } while (lin_now() - begun < seconds);
    atomic_store(&crowd.stop, 1);
    for (int i = 0; i < CROWD_PRODUCERS; i++) pthread_join(threads[i], NULL);
    lin_engine_stats_get(crowd.engine, &stats);
    ck_assert_int_eq(stats.open, CROWD + 1);
    ck_assert_int_eq(stats.refused, 0);
    ck_assert_int_gt(stats.rows, 1000);
    ck_assert_int_gt(lives, 0);
    printf("load: %.0f s, %lld pushes, %lld resets, %lld streams, %lld rows in %lld ticks, %d times undisturbed\n", seconds,
           atomic_load(&crowd.pushes), atomic_load(&crowd.resets), atomic_load(&crowd.closings), stats.rows, stats.ticks, lives);
    lin_engine_destroy(crowd.engine);
    for (int i = 0; i < CROWD; i++) free(atomic_load(&crowd.members[i]));
    free(crowd.v.samples);
}
END_TEST

enum { SHAPES = sizeof shapes / sizeof *shapes };

TEST_MAIN_WITH(NULL, leave, "linnet/engine", TESTS(as_if_alone, 0, SHAPES), TESTS(endpoints, 0, 2 * SHAPES), TEST(admission),
               TEST(dead), TEST(overflow_and_nonsense), TEST(failure), TESTS(no_event_after_reset_or_close, 0, 2),
               TEST(from_within_a_callback), TEST(closed_by_its_first_event), TEST(nothing_is_allocated), TEST(without_memory),
               TEST(load))
