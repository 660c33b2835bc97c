// [cuda] Live streams on a GPU compute in tf32 unless they are told otherwise: the phonemes of recorded speech are those of fp32,
// nearly always. Five sentences (pocketsphinx-testdata) with the model that comes with linnet, in ticks of 80 ms, sound in,
// phonemes out.
#include "frontend/audio.h"
#include "frontend/mel.h"
#include "linnet/front.h"
#include "model/model_file.h"
#include "model/streams.h"
#include "tests/cuda/device.h"

#define MODEL "share/linnet/en/default.safetensors"
#define SPEECH "/usr/share/pocketsphinx/test/data/librivox"

enum { FILES = 5, MOST_SAMPLES = 16000 * 12, MOST_PHONES = 400, CHUNK = 8 };

static const char *const numbers[FILES] = {"0870", "0880", "0890", "0920", "0930"};
static float sound[FILES][MOST_SAMPLES];
static int n_samples[FILES];

typedef struct heard {
    lin_phone phones[FILES][MOST_PHONES];
    int n[FILES];
} heard;

static void ok(lin_status status, const lin_error *err) { ck_assert_msg(status == LIN_OK, "%s", err->message); }

// 0 if the recordings or the model are not on this machine.
static int read_speech(void)
{
    lin_error err = {0};
    FILE *model = fopen(MODEL, "rb");
    if (!model) return 0;
    fclose(model);
    for (int i = 0; i < FILES; i++) {
        const char *const folders[] = {SPEECH, "speech"};
        char path[300];
        lin_audio *audio = NULL;
        for (int f = 0; f < 2 && !audio; f++) {
            snprintf(path, sizeof path, "%s/sense_and_sensibility_01_austen_64kb-%s.wav", folders[f], numbers[i]);
            if (lin_audio_open(path, NULL, &audio, &err) != LIN_OK) audio = NULL;
        }
        if (!audio) return 0;
        ck_assert_int_eq(lin_audio_info(audio)->rate_hz, 16000);
        ok(lin_audio_read(audio, sound[i], MOST_SAMPLES, &n_samples[i], &err), &err);
        lin_audio_close(audio);
    }
    return 1;
}

static void hear(const lin_ops *ops, int exact, heard *h)
{
    lin_error err = {0};
    lin_model *model;
    lin_encoder *encoder;
    lin_fbank_table table;
    lin_streams *streams;
    int slots[FILES], from[FILES] = {0}, going = FILES;
    memset(h, 0, sizeof *h);
    ok(lin_model_load(MODEL, &model, &err), &err);
    model->features.level_db = 0; // a device computes filterbanks of models without a running level
    ok(lin_encoder_create(model, ops, &encoder, &err), &err);
    const lin_fbank_config config = lin_fbank_from_model(&model->features, model->config.mel_bins);
    ok(lin_fbank_table_create(&config, &table, &err), &err);
    const lin_streams_options o = {.capacity = FILES, .longest = CHUNK, .fbank = &table, .decodes = 1, .exact = exact};
    ok(lin_streams_create(encoder, &o, &streams, &err), &err);
    for (int i = 0; i < FILES; i++) slots[i] = i;
    while (going) {
        int who[FILES], tick_slots[FILES], counts[FILES], n = 0, total = 0;
        unsigned char last[FILES];
        float *input = lin_streams_input(streams);
        lin_tick_results results;
        for (int i = 0; i < FILES; i++) {
            const int left = n_samples[i] - from[i], most = CHUNK * table.hop_samples;
            if (!left) continue;
            who[n] = i;
            tick_slots[n] = slots[i];
            counts[n] = left < most ? left : most;
            last[n] = left <= most;
            going -= last[n];
            memcpy(input + total, sound[i] + from[i], (size_t)counts[n] * sizeof *input);
            total += counts[n];
            from[i] += counts[n++];
        }
        ok(lin_streams_tick(streams, &(lin_tick){n, tick_slots, counts, last, input}, &results, &err), &err);
        for (int b = 0; b < n; b++) {
            ck_assert_int_ge(results.n_phones[b], 0);
            for (int p = 0; p < results.n_phones[b]; p++) {
                ck_assert_int_lt(h->n[who[b]], MOST_PHONES - 1);
                h->phones[who[b]][h->n[who[b]]++] = results.phones[results.offsets[b] + p];
            }
        }
    }
    for (int i = 0; i < FILES; i++) {
        int pending;
        ok(lin_streams_pending(streams, slots[i], &h->phones[i][h->n[i]], &pending, &err), &err);
        h->n[i] += pending;
    }
    lin_streams_destroy(streams);
    lin_fbank_table_free(&table);
    lin_encoder_destroy(encoder);
    lin_model_destroy(model);
}

// Insertions, deletions and substitutions between the phones of two runs.
static int edits(const lin_phone *a, int n, const lin_phone *b, int m)
{
    int cost[MOST_PHONES + 1];
    for (int j = 0; j <= m; j++) cost[j] = j;
    for (int i = 1; i <= n; i++) {
        int diagonal = cost[0];
        cost[0] = i;
        for (int j = 1; j <= m; j++) {
            const int above = cost[j], replaced = diagonal + (a[i - 1].label != b[j - 1].label);
            const int gap = 1 + (above < cost[j - 1] ? above : cost[j - 1]);
            cost[j] = replaced < gap ? replaced : gap;
            diagonal = above;
        }
    }
    return cost[m];
}

START_TEST(phonemes_of_tf32_are_those_of_fp32)
{
    static heard exact, fast;
    int phones = 0, differ = 0, moved = 0;
    double largest = 0;
    if (!read_speech()) {
        printf("skipped: no recordings (pocketsphinx-testdata) or no model (" MODEL ")\n");
        return;
    }
    hear(test_device(LIN_PRECISION_FP32), 1, &exact);
    hear(test_device(LIN_PRECISION_FP32), 0, &fast);
    for (int i = 0; i < FILES; i++) {
        phones += exact.n[i];
        differ += edits(exact.phones[i], exact.n[i], fast.phones[i], fast.n[i]);
        for (int p = 0; p < exact.n[i] && exact.n[i] == fast.n[i]; p++) {
            const lin_phone *a = &exact.phones[i][p], *b = &fast.phones[i][p];
            moved += a->start != b->start || a->end != b->end;
            largest = fmax(largest, fabs((double)a->confidence - (double)b->confidence));
        }
    }
    printf("%d phonemes in fp32; tf32: %d differ, %d have other times, confidences differ by at most %.4f\n", phones, differ,
           moved, largest);
    ck_assert_int_gt(phones, 150);          // 24.7 s of speech
    ck_assert_int_le(200 * differ, phones); // one in 200
    ck_assert_int_le(50 * moved, phones);
    ck_assert_double_gt(largest, 1e-6);     // they are two computations
    ck_assert_double_lt(largest, 0.1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_speech");
    TCase *cases = tcase_create("streams");
    tcase_set_timeout(cases, 240);
    if (!TEST_ASAN) tcase_add_test(cases, phonemes_of_tf32_are_those_of_fp32);
    suite_add_tcase(suite, cases);
    return test_run(suite);
}
