// [cuda] The engine for many live streams on a GPU, where the network reads sound and decodes: each stream gives the same results
// as alone on the CPU.
#include "model/streams.h"
#include "tests/cuda/device.h"
#include "tests/linnet/engine_cases.h"

static group together;

START_TEST(as_if_alone)
{
    lin_recognizer r;
    begin_on(&r, &shapes[_i], test_device(LIN_PRECISION_FP32));
    ck_assert(lin_streams_take_sound(r.encoder));
    lin_engine_options o = lin_engine_default(N);
    o.exact = 1; // tf32 has other confidences: test_cuda_speech.c
    o.saves = _i == 1; // frames are made on the host
    o.chunk_frames = shapes[_i].chunk_frames;
    o.max_wait_ms = 3;
    o.deliver = collect;
    o.ends.endpoints = _i > 1;
    o.ends.resets = _i > 2;
    o.ends.rules = (lin_endpoint_options){.before_s = 0.3, .after_s = 0.06, .longest_s = 0.45, .blank = 0.02};
    seconds_each = 1.3;
    run_group(&r, &o, &together);
    ck_assert_int_gt(judge_group(&together), 5 * N);
    end(&r);
}
END_TEST

TEST_MAIN("cuda engine", TESTS(as_if_alone, 0, (int)(sizeof shapes / sizeof *shapes)))
