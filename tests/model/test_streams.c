// Many streams at once on the CPU: the cases of streams_cases.h, refusals, and nothing allocated by a tick.
#include "base/memory.h"
#include "tests/model/streams_cases.h"

static const struct {
    int stack, ahead, conv_layers, batch;
    streams_kind kind;
} shapes[] = {{1, 0, 0, 0, STREAMS_LINEAR}, {1, 2, 3, 4, STREAMS_LINEAR}, {3, 4, 1, 0, STREAMS_LINEAR},
              {2, 1, 0, 1, STREAMS_LINEAR}, {1, 0, 0, 0, STREAMS_SINUSOID}, {2, 1, 0, 3, STREAMS_SINUSOID},
              {1, 0, 0, 0, STREAMS_POLY2},  {2, 1, 1, 4, STREAMS_POLY2},  {1, 0, 0, 0, STREAMS_LSTM},
              {3, 2, 0, 3, STREAMS_LSTM}};

START_TEST(company)
{
    streams_case_company(lin_ops_cpu(), shapes[_i].stack, shapes[_i].ahead, shapes[_i].conv_layers, shapes[_i].kind,
                         shapes[_i].batch);
}
END_TEST

START_TEST(phones) { streams_case_phones(lin_ops_cpu(), (streams_kind)_i); }
END_TEST

START_TEST(moved) { streams_case_moved(lin_ops_cpu(), (streams_kind)_i); }
END_TEST

// With products of eight bits.
START_TEST(int8)
{
    static const streams_kind kinds[] = {STREAMS_LINEAR, STREAMS_DECAY, STREAMS_SINUSOID};
    streams_case_company(lin_ops_cpu_int8(), 2, 1, kinds[_i] != STREAMS_SINUSOID, kinds[_i], 3);
    streams_case_moved(lin_ops_cpu_int8(), kinds[_i]);
}
END_TEST

START_TEST(refusals)
{
    static streams_world w;
    lin_error why = {0};
    lin_streams *streams;
    lin_tick_results results;
    streams_begin(&w, lin_ops_cpu(), 1, 0, 0, STREAMS_LINEAR);
    const lin_streams_options none = {.capacity = 0, .longest = 1}, long_ticks = {.capacity = 1, .longest = 1025};
    ck_assert_int_eq(lin_streams_create(w.encoder, &none, &streams, &why), LIN_INVALID);
    ck_assert_ptr_null(streams);
    ck_assert_int_eq(lin_streams_create(w.encoder, &long_ticks, &streams, &why), LIN_INVALID);
    const lin_streams_options too_many = {.capacity = 40000000, .longest = 64};
    ck_assert_int_eq(lin_streams_create(w.encoder, &too_many, &streams, &why), LIN_INVALID);
    ck_assert_msg(strstr(why.message, "more than 2147483647 rows") != NULL, "%s", why.message);
    const lin_fbank_table table = {.D = STREAMS_D, .hop_samples = 1, .window_samples = 2, .n_fft = 2};
    ck_assert_int_eq(
        lin_streams_create(w.encoder, &(lin_streams_options){.capacity = 1, .longest = 1, .fbank = &table}, &streams, &why),
        LIN_UNSUPPORTED);
    streams_ok(lin_streams_create(w.encoder, &(lin_streams_options){.capacity = 3, .longest = 4}, &streams, err));
    const int twice[] = {1, 1}, none_such[] = {3}, one[] = {1}, counts[] = {1, 1}, many[] = {5}, few[] = {-1};
    const unsigned char last[] = {1};
    const lin_tick bad[] = {{2, twice, counts, NULL, w.features[0]}, {1, none_such, counts, NULL, w.features[0]},
                            {1, one, many, NULL, w.features[0]},     {1, one, few, NULL, w.features[0]},
                            {4, one, counts, NULL, w.features[0]},   {-1, one, counts, NULL, w.features[0]}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_int_eq(lin_streams_tick(streams, &bad[i], &results, &why), LIN_INVALID);
    streams_ok(lin_streams_tick(streams, &(lin_tick){1, one, counts, last, w.features[0]}, &results, err));
    ck_assert_int_eq(results.offsets[1], 1);
    streams_judge(&w, "after refusals", results.logp, w.want[0], STREAMS_V);
    ck_assert_int_eq(lin_streams_tick(streams, &(lin_tick){1, one, counts, NULL, w.features[0]}, &results, &why), LIN_INVALID);
    ck_assert(strstr(why.message, "finished") != NULL);
    ck_assert_int_eq(lin_streams_reset(streams, 3, &why), LIN_INVALID);
    lin_streams_destroy(streams);
    streams_end(&w);
}
END_TEST

START_TEST(a_tick_allocates_nothing)
{
    static streams_world w;
    streams_begin(&w, lin_ops_cpu(), 2, 1, 1, STREAMS_LINEAR);
    lin_streams *streams;
    const lin_streams_options o = {.capacity = STREAMS_N, .longest = STREAMS_LONGEST, .decodes = 1};
    streams_ok(lin_streams_create(w.encoder, &o, &streams, err));
    streams_speaker speakers[STREAMS_N] = {0};
    for (int i = 0; i < STREAMS_N; i++) speakers[i].slot = i;
    const unsigned long before = lin_memory_count();
    for (uint64_t t = 0; t < 20; t++) streams_random_tick(&w, streams, speakers, STREAMS_N, 3000 + t);
    ck_assert_uint_eq(lin_memory_count(), before);
    lin_streams_destroy(streams);
    streams_end(&w);
}
END_TEST

START_TEST(creation_without_memory)
{
    static streams_world w;
    streams_begin(&w, lin_ops_cpu(), 1, 0, 0, STREAMS_LINEAR);
    const lin_streams_options o = {.capacity = 2, .longest = 2, .decodes = 1};
    lin_streams *streams;
    FAIL_EVERY_ALLOCATION_OF(streams, lin_streams_create(w.encoder, &o, &streams, NULL), lin_streams_destroy(streams));
    streams_end(&w);
}
END_TEST

TEST_MAIN("model/streams", TESTS(company, 0, TEST_PAPER ? (int)(sizeof shapes / sizeof *shapes) : 6),
          TESTS(phones, 0, STREAMS_KINDS), TESTS(moved, 0, STREAMS_KINDS), TEST(refusals),
          TESTS(int8, 0, 3), TEST(a_tick_allocates_nothing), TEST(creation_without_memory))
