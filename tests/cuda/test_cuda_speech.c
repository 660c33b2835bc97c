// [cuda] Live streams on a GPU compute in tf32 unless they are told otherwise: the phonemes of recorded speech are those of fp32,
// nearly always, and those of fp32 are the CPU's. Five sentences (pocketsphinx-testdata) with the model that comes with linnet,
// in ticks of 80 ms, sound in, phonemes out.
#include "frontend/audio.h"
#include "frontend/fbank.h"
#include "linnet/recognizer.h"
#include "model/model.h"
#include "model/streams.h"
#include "tests/cuda/device.h"

#define MODEL "share/linnet/en/default.safetensors"
#define SPEECH "/usr/share/pocketsphinx/test/data/librivox"

// The emulation is slow under AddressSanitizer: there the first words of one sentence, in three ticks of 640 ms.
enum { FILES = TEST_ASAN ? 1 : 5, MOST_PHONES = 400, CHUNK = TEST_ASAN ? 64 : 8 };
enum { MOST_SAMPLES = TEST_ASAN ? 3 * CHUNK * 160 : 16000 * 12 };

static const char *const numbers[] = {"0870", "0880", "0890", "0920", "0930"};
static float sound[FILES][MOST_SAMPLES];
static int n_samples[FILES];

typedef struct heard {
    lin_phone phones[FILES][MOST_PHONES];
    int n[FILES];
} heard;

// 0 if the recordings or the model are not on this machine.
static int read_speech(void)
{
    FILE *model = fopen(MODEL, "rb");
    if (!model) return 0;
    fclose(model);
    for (int i = 0; i < FILES; i++) {
        const char *const folders[] = {SPEECH, "speech"};
        char path[300];
        lin_audio *audio = NULL;
        for (int f = 0; f < 2 && !audio; f++) {
            snprintf(path, sizeof path, "%s/sense_and_sensibility_01_austen_64kb-%s.wav", folders[f], numbers[i]);
            if (lin_audio_open(path, NULL, &audio, NULL) != LIN_OK) audio = NULL;
        }
        if (!audio) return 0;
        ck_assert_int_eq(lin_audio_info(audio)->rate_hz, 16000);
        OK(lin_audio_read(audio, sound[i], MOST_SAMPLES, &n_samples[i], &err));
        lin_audio_close(audio);
    }
    return 1;
}

// The filterbanks of sounds, for the CPU, whose streams take no sound: rows [frames, D] into `to`, their number into `n`.
static void filterbanks(const lin_fbank_config *config, float *to[], int n[])
{
    lin_fbank *fbank;
    OK(lin_fbank_create(config, &fbank, &err));
    for (int i = 0; i < FILES; i++) {
        const int frames = lin_fbank_frames_out(fbank, n_samples[i]);
        to[i] = test_buffer((size_t)frames * (size_t)config->mel_bins, sizeof **to);
        OK(lin_fbank_push(fbank, sound[i], n_samples[i], to[i], frames, &n[i], &err));
        lin_fbank_reset(fbank);
    }
    lin_fbank_destroy(fbank);
}

static void hear(const lin_ops *ops, int exact, heard *h)
{
    lin_model *model;
    lin_encoder *encoder;
    lin_fbank_table table;
    lin_streams *streams;
    int slots[FILES], from[FILES] = {0}, n_of[FILES], going = FILES;
    float *of[FILES];
    memset(h, 0, sizeof *h);
    OK(lin_model_load(MODEL, &model, &err));
    model->features.level_db = 0; // a device computes filterbanks of models without a running level
    OK(lin_encoder_create(model, ops, &encoder, &err));
    const lin_fbank_config config = lin_fbank_from_model(&model->features, model->config.mel_bins);
    OK(lin_fbank_table_create(&config, &table, &err));
    const lin_streams_options o = {.capacity = FILES, .longest = CHUNK, .fbank = ops->on_host ? NULL : &table, .decodes = 1,
                                   .exact = exact};
    OK(lin_streams_create(encoder, &o, &streams, &err));
    for (int i = 0; i < FILES; i++) slots[i] = i, of[i] = sound[i], n_of[i] = n_samples[i];
    if (ops->on_host) filterbanks(&config, of, n_of);
    const int width = ops->on_host ? config.mel_bins : 1, most = ops->on_host ? CHUNK : CHUNK * table.hop_samples;
    while (going) {
        int who[FILES], tick_slots[FILES], counts[FILES], n = 0, total = 0;
        unsigned char last[FILES];
        float *input = lin_streams_input(streams);
        lin_tick_results results;
        for (int i = 0; i < FILES; i++) {
            const int left = n_of[i] - from[i];
            if (!left) continue;
            who[n] = i;
            tick_slots[n] = slots[i];
            counts[n] = left < most ? left : most;
            last[n] = left <= most;
            going -= last[n];
            memcpy(input + total * width, of[i] + from[i] * width, (size_t)(counts[n] * width) * sizeof *input);
            total += counts[n];
            from[i] += counts[n++];
        }
        OK(lin_streams_tick(streams, &(lin_tick){n, tick_slots, counts, last, input}, &results, &err));
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
        OK(lin_streams_pending(streams, slots[i], &h->phones[i][h->n[i]], &pending, &err));
        h->n[i] += pending;
        if (ops->on_host) test_buffer_free(of[i]);
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

typedef struct difference {
    int phones, differ, moved; // phonemes of the first run, edits, phonemes with other times
    double largest;            // difference of confidences
} difference;

static difference compare(const heard *a, const heard *b)
{
    difference d = {0};
    for (int i = 0; i < FILES; i++) {
        d.phones += a->n[i];
        d.differ += edits(a->phones[i], a->n[i], b->phones[i], b->n[i]);
        for (int p = 0; p < a->n[i] && a->n[i] == b->n[i]; p++) {
            const lin_phone *x = &a->phones[i][p], *y = &b->phones[i][p];
            d.moved += x->start != y->start || x->end != y->end;
            d.largest = fmax(d.largest, fabs((double)x->confidence - (double)y->confidence));
        }
    }
    return d;
}

START_TEST(phonemes_of_tf32_are_those_of_fp32)
{
    static heard host, exact, fast, coarse;
    if (!read_speech()) {
        printf("skipped: no recordings (pocketsphinx-testdata) or no model (" MODEL ")\n");
        return;
    }
    hear(lin_ops_cpu(), 1, &host);
    hear(test_device(LIN_PRECISION_FP32), 1, &exact);
    hear(test_device(LIN_PRECISION_FP32), 0, &fast);
    hear(test_device(LIN_PRECISION_BF16), 0, &coarse);
    const difference fp32 = compare(&host, &exact), tf32 = compare(&exact, &fast), bf16 = compare(&exact, &coarse);
    printf("%d phonemes in fp32; tf32: %d differ, %d have other times, confidences differ by at most %.4f (bf16: %.4f)\n",
           tf32.phones, tf32.differ, tf32.moved, tf32.largest, bf16.largest);
    // fp32: the phonemes of the CPU. model/streams.h promises 1e-4; 4e-6 measured.
    ck_assert_int_gt(fp32.phones, 0);
    ck_assert_int_eq(fp32.differ, 0);
    ck_assert_int_eq(fp32.moved, 0);
    ck_assert_double_le(fp32.largest, 1e-4);
    // tf32: rounding may decide one frame whose two best outputs are close: one phoneme, or the times of two. None measured.
    ck_assert_int_le(tf32.differ, 1);
    ck_assert_int_le(tf32.moved, 2);
    // tf32 has three bits more than bf16: about an eighth of its error. A fifth measured.
    ck_assert_double_lt(tf32.largest, bf16.largest / 2);
    ck_assert_double_gt(tf32.largest, 0); // the same computation would give the same bits
}
END_TEST

TEST_MAIN("cuda_speech", TEST(phonemes_of_tf32_are_those_of_fp32))
