// Drawn acoustics: noise has the statistics of noise in the filterbank and reaches its ratio to speech, rooms their
// reverberation, bands their edges; parts are those asked for; all is a function of the key.
#include "kernels/acoustics.h"
#include "tests/frontend/support.h"
#include "train/augment.h"

enum { D = 40, T = 400, KEYS = 400 };

static lin_acoustics a;
static float bins[LIN_ACOUSTICS_ROWS * D];

static lin_acoustics_table *table_for(const lin_augment_options *o, const lin_fbank_config *config)
{
    lin_acoustics_table *table;
    OK(lin_acoustics_create(o, config, &table, &err));
    return table;
}

static lin_acoustics_table *table_of(const lin_augment_options *o)
{
    const lin_fbank_config config = lin_fbank_default();
    return table_for(o, &config);
}

// Draws into memory that was poisoned before; checks that all of it is written and finite.
static int draw(const lin_acoustics_table *table, int frames, float power, uint64_t key)
{
    memset(&a, 0xFF, sizeof a);
    for (int i = 0; i < LIN_ACOUSTICS_ROWS * D; i++) bins[i] = NAN;
    if (!lin_acoustics_draw(table, frames, power, key, &a, bins)) return 0;
    int bad = 0;
    for (int i = 0; i < LIN_ACOUSTICS_ROWS * D; i++) bad += !(bins[i] >= 0 && isfinite(bins[i]));
    ck_assert_int_eq(bad, 0);
    ck_assert(a.hold >= 1 && a.n_shapes >= 1 && a.n_shapes <= LIN_ACOUSTICS_SHAPES && a.n_voices <= LIN_ACOUSTICS_VOICES);
    a.bins = bins;
    return 1;
}

static float cube(float x) { return x * x * x; }

// The noise's power in bin d of frame t.
static double noise_at(int t, int d)
{
    int shape;
    const double level = exp((double)lin_acoustics_level(&a, t, &shape));
    return (double)a.noise * level * (double)bins[(4 + shape) * D + d] *
           (double)cube(lin_acoustics_root(&a, bins[2 * D + d], (uint64_t)(t * D + d)));
}

static double noise_power(int frames)
{
    double sum = 0;
    for (int t = 0; t < frames; t++)
        for (int d = 0; d < D; d++) sum += noise_at(t, d);
    return sum / frames;
}

typedef struct moments {
    double mean[D], variance[D], power[D];
} moments;

static moments moments_of(const float *x, int frames)
{
    moments m = {0};
    for (int d = 0; d < D; d++) {
        for (int t = 0; t < frames; t++) {
            m.mean[d] += (double)x[t * D + d] / frames;
            m.power[d] += exp((double)x[t * D + d]) / frames;
        }
        for (int t = 0; t < frames; t++) m.variance[d] += pow((double)x[t * D + d] - m.mean[d], 2) / frames;
    }
    return m;
}

// Rounding noise of 16-bit samples through the filterbank itself, against the noise of a limited band.
START_TEST(noise_is_noise_in_the_filterbank)
{
    enum { FRAMES = 3000, SAMPLES = 160 * FRAMES + 400 };
    static float sound[SAMPLES], real[(FRAMES + 2) * D], drawn[FRAMES * D];
    for (int i = 0; i < SAMPLES; i++) sound[i] = ((float)lin_random_uniform(5, (uint64_t)i) - 0.5f) / 32768;
    lin_fbank *fbank;
    int n;
    const lin_fbank_config config = lin_fbank_default();
    OK(lin_fbank_create(&config, &fbank, &err));
    OK(lin_fbank_push(fbank, sound, SAMPLES, real, FRAMES + 2, &n, &err));
    lin_fbank_destroy(fbank);
    ck_assert_int_ge(n, FRAMES);
    const moments want = moments_of(real, FRAMES);
    lin_acoustics_table *table = table_of(&(lin_augment_options){.band_part = 1});
    ck_assert(draw(table, FRAMES, 1, 1));
    for (int t = 0; t < FRAMES; t++)
        for (int d = 0; d < D; d++)
            drawn[t * D + d] = logf(bins[D + d] * cube(lin_acoustics_root(&a, bins[2 * D + d], (uint64_t)(t * D + d))));
    const moments got = moments_of(drawn, FRAMES);
    const double louder = got.power[D - 1] / want.power[D - 1];
    ck_assert_msg(louder > 0.95 && louder < 1050, "%g times as loud, not 0 to 30 dB", louder);
    for (int d = 0; d < D; d++) {
        const double ratio = got.power[d] / want.power[d] / louder, of_deviations = sqrt(got.variance[d] / want.variance[d]);
        // the mean of a bin's power over 3,000 frames is known to 3 %
        ck_assert_msg(fabs(ratio - 1) < 0.12, "bin %d: %g of the power in the filterbank", d, ratio);
        ck_assert_msg(fabs(of_deviations - 1) < 0.15, "bin %d: the logarithm deviates %g times as much", d, of_deviations);
    }
    lin_acoustics_destroy(table);
}
END_TEST

START_TEST(noise_reaches_its_ratio)
{
    lin_acoustics_table *table = table_of(&(lin_augment_options){.noise_part = 1, .snr_low_db = 10, .snr_high_db = 10});
    double low = 0, centre = 0, most = 0, least = 1;
    for (uint64_t key = 0; key < KEYS; key++) {
        ck_assert(draw(table, T, 1000, key));
        ck_assert(a.speech == 1 && a.room == 0 && a.n_voices == 0 && bins[0] == 1 && bins[D] == 0);
        const double power = noise_power(T);
        ck_assert_msg(power > 80 && power < 125, "key %llu: the noise has a power of %g, not 100", (unsigned long long)key,
                      power);
        low = 0;
        for (int d = 0; d < D / 4; d++) low += (double)bins[4 * D + d];
        centre += low / KEYS;
        if (low > most) most = low;
        if (low < least) least = low;
    }
    // some is low, some is high: the share of the lowest quarter of the bins
    ck_assert_msg(least < 0.01 && most > 0.8 && centre > 0.05 && centre < 0.5, "%g to %g, %g on average", least, most, centre);
    lin_acoustics_destroy(table);
    table = table_of(&(lin_augment_options){.noise_part = 1, .snr_low_db = 0, .snr_high_db = 20});
    int of[4] = {0};
    for (uint64_t key = 0; key < KEYS; key++) {
        ck_assert(draw(table, T, 1000, key));
        const double db = 10 * log10(1000 / noise_power(T));
        ck_assert_msg(db > -1 && db < 21, "%g dB", db);
        of[(int)fmin(fmax(db / 5, 0), 3)]++;
    }
    for (int i = 0; i < 4; i++) ck_assert_msg(abs(of[i] - KEYS / 4) < KEYS / 10, "%d of %d at %d dB", of[i], KEYS, 5 * i);
    lin_acoustics_destroy(table);
}
END_TEST

START_TEST(babble_reaches_its_ratio)
{
    lin_acoustics_table *table = table_of(&(lin_augment_options){.babble_part = 1, .snr_low_db = 20, .snr_high_db = 20});
    int seen[LIN_ACOUSTICS_VOICES + 1] = {0};
    for (uint64_t key = 0; key < KEYS; key++) {
        ck_assert(draw(table, T, 1000, key));
        double sum = 0;
        for (int v = 0; v < a.n_voices; v++) sum += (double)a.voices[v].scale;
        ck_assert_double_eq_tol(sum, 10, 1e-4);
        ck_assert(a.noise == 0);
        seen[a.n_voices]++;
    }
    for (int n = 3; n <= LIN_ACOUSTICS_VOICES; n++) ck_assert_int_gt(seen[n], KEYS / 8);
    lin_acoustics_destroy(table);
}
END_TEST

// What comes after a single loud frame falls by 60 dB in 0.1 to 1 s, and no energy is lost; on average none where it fluctuates.
START_TEST(rooms_reverberate)
{
    enum { LENGTH = 200 };
    static unsigned char codes[LENGTH * D];
    static float x[LENGTH * D], steps[2 * D], mean[D], istd[D];
    memset(codes, 0, sizeof codes);
    for (int d = 0; d < D; d++) {
        codes[d] = 255;
        steps[d] = -60;
        steps[D + d] = 60.0f / 255;
        istd[d] = 1;
    }
    const int offsets[] = {0, LENGTH};
    const lin_segments segments = {.B = 1, .rows = LENGTH, .longest = LENGTH, .offsets = offsets};
    const lin_ops *ops = lin_ops_cpu();
    lin_exec *exec;
    OK(ops->exec_create(ops, 1, &exec, &err));
    lin_acoustics_table *table = table_of(&(lin_augment_options){.room_part = 1});
    double shortest = 9, longest = 0, all = 0;
    for (uint64_t key = 0; key < 60; key++) {
        ck_assert(draw(table, LENGTH, 1, key));
        const lin_gather item = {.codes = codes, .steps = steps, .mean = mean, .istd = istd, .acoustics = &a};
        ops->gather(exec, x, &item, NULL, &segments, D);
        for (int i = 0; i < LENGTH * D; i++) all += exp((double)x[i]) / (60 * D);
        memset(bins + 2 * D, 0, D * sizeof *bins); // without fluctuations
        ops->gather(exec, x, &item, NULL, &segments, D);
        double sum = 0;
        for (int t = 0; t < LENGTH; t++) sum += exp((double)x[t * D + 7]);
        ck_assert_msg(fabs(sum - 1) < 1e-3, "key %llu: a power of 1 became %g", (unsigned long long)key, sum);
        const double fall_db = 10 / log(10) * (double)(x[1 * D + 7] - x[6 * D + 7]), seconds = 60 / fall_db * 0.05;
        if (seconds < shortest) shortest = seconds;
        if (seconds > longest) longest = seconds;
    }
    ck_assert_msg(shortest > 0.099 && shortest < 0.2 && longest > 0.85 && longest < 1.005, "%g to %g s", shortest, longest);
    ck_assert_msg(fabs(all - 1) < 0.02, "a power of 1 became %g on average", all);
    lin_acoustics_destroy(table);
    ops->exec_destroy(exec);
}
END_TEST

// Whole bins pass or nearly nothing does, with the edge at most two bins wide; the upper ends are the four that are documented.
START_TEST(bands_have_edges)
{
    lin_acoustics_table *table = table_of(&(lin_augment_options){.band_part = 1});
    int ends[D + 1] = {0}, low = 0, kinds = 0;
    for (uint64_t key = 0; key < KEYS; key++) {
        ck_assert(draw(table, T, 1, key));
        int first = 0, last = D;
        while (bins[first] < 0.999f) first++;
        while (bins[last - 1] < 0.999f) last--;
        for (int d = first; d < last; d++) ck_assert(bins[d] >= 0.999f && bins[d] <= 1.001f);
        for (int d = 0; d < first - 2; d++) ck_assert(bins[d] <= 0.0011f);
        for (int d = last + 2; d < D; d++) ck_assert(bins[d] <= 0.0011f);
        for (int d = 0; d < D; d++) ck_assert(bins[D + d] > 0);
        ends[last]++;
        low += first > 0;
    }
    for (int d = 0; d <= D; d++) kinds += ends[d] > KEYS / 8;
    ck_assert_int_eq(kinds, 4);
    ck_assert_int_eq(ends[D], 0);
    ck_assert(abs(low - KEYS / 2) < KEYS / 8);
    lin_acoustics_destroy(table);
}
END_TEST

// Lines of the spectrum need not be whole Hz apart: here 1.95.
START_TEST(bands_end_at_their_frequency)
{
    lin_fbank_config config = lin_fbank_default();
    config.sample_hz = 4000;
    config.window_ms = 500;
    lin_acoustics_table *table = table_for(&(lin_augment_options){.band_part = 1}, &config);
    int low = 0;
    for (uint64_t key = 0; key < KEYS; key++) {
        ck_assert(draw(table, T, 1, key));
        if (bins[0] > 0.5f) continue;
        for (int d = 0; d < D; d++) {
            const double hz = lin_mel_centre_hz(&config, d);
            ck_assert_msg(hz < 260 ? bins[d] <= 0.0011f : hz < 340 || bins[d] >= 0.999f, "%g at %g Hz", (double)bins[d], hz);
        }
        low++;
    }
    ck_assert_int_gt(low, 0);
    lin_acoustics_destroy(table);
}
END_TEST

START_TEST(gain_is_a_factor)
{
    lin_acoustics_table *table = table_of(&(lin_augment_options){.gain_db = 10});
    double least = 1, most = 1;
    for (uint64_t key = 0; key < KEYS; key++) {
        ck_assert(draw(table, T, 1, key));
        for (int d = 1; d < D; d++) ck_assert(bins[d] == bins[0]);
        ck_assert(a.speech == 1 && a.noise == 0 && bins[D] == 0 && a.n_voices == 0);
        if ((double)bins[0] < least) least = (double)bins[0];
        if ((double)bins[0] > most) most = (double)bins[0];
    }
    ck_assert_msg(least >= 0.0999 && least < 0.12 && most <= 10.001 && most > 8.5, "%g to %g", least, most);
    lin_acoustics_destroy(table);
}
END_TEST

// The logarithm of pass is a straight line through the middle of the bins, of up to 8 dB from end to end.
START_TEST(tilt_is_a_line)
{
    lin_acoustics_table *table = table_of(&(lin_augment_options){.tilt_db = 8});
    double least = 0, most = 0;
    for (uint64_t key = 0; key < KEYS; key++) {
        ck_assert(draw(table, T, 1, key));
        const double db = 10 * log10((double)(bins[D - 1] / bins[0]));
        for (int d = 0; d < D; d++) ck_assert_double_eq_tol(10 * log10((double)bins[d]), db * (d / (D - 1.0) - 0.5), 1e-4);
        least = fmin(least, db);
        most = fmax(most, db);
    }
    ck_assert_msg(least > -8.001 && least < -7.5 && most < 8.001 && most > 7.5, "%g to %g dB", least, most);
    lin_acoustics_destroy(table);
}
END_TEST

// A tone at f is heard at f times the factor; the upper end stays where it was.
START_TEST(frequencies_are_scaled)
{
    lin_acoustics_table *table = table_of(&(lin_augment_options){.warp = 0.2});
    const double low = 1127 * log(1 + 20 / 700.0), step = (1127 * log(1 + 8000 / 700.0) - low) / (D + 1);
    double least = 1, most = 1;
    for (uint64_t key = 0; key < KEYS; key++) {
        ck_assert(draw(table, T, 1, key));
        double factor = 0;
        for (int d = 0; d < D; d++) {
            const float at = bins[3 * D + d];
            ck_assert(at >= 0 && at <= D - 1 && (d == 0 || at >= bins[3 * D + d - 1]));
            const double heard = 700 * (exp((low + (d + 1) * step) / 1127) - 1);
            const double recorded = 700 * (exp((low + ((double)at + 1) * step) / 1127) - 1);
            if (d == 20) factor = heard / recorded;
            if (d > 20 && heard < 5000) ck_assert_double_eq_tol(heard / recorded, factor, 1e-4);
        }
        ck_assert_msg(fabs((double)bins[4 * D - 1] - (D - 1)) < 1, "the last bin is read at %g", (double)bins[4 * D - 1]);
        least = fmin(least, factor);
        most = fmax(most, factor);
    }
    ck_assert_msg(least > 0.799 && least < 0.82 && most > 1.18 && most < 1.201, "%g to %g", least, most);
    lin_acoustics_destroy(table);
    table = table_of(&(lin_augment_options){.gain_db = 1});
    ck_assert(draw(table, T, 1, 1));
    for (int d = 0; d < D; d++) ck_assert(bins[3 * D + d] == (float)d);
    lin_acoustics_destroy(table);
}
END_TEST

START_TEST(parts_are_those_asked_for)
{
    enum { MANY = 4000 };
    const lin_augment_options o = {.noise_part = 0.3, .babble_part = 0.2, .room_part = 0.4, .band_part = 0.1,
                                   .silence_part = 0.25, .snr_low_db = 5, .snr_high_db = 30};
    lin_acoustics_table *table = table_of(&o);
    int silent = 0, noise = 0, babble = 0, room = 0, band = 0, clean = 0;
    for (uint64_t key = 0; key < MANY; key++) {
        if (!draw(table, 5, 100, key)) {
            ck_assert(!lin_acoustics_silent(table, key));
            clean++;
            continue;
        }
        ck_assert_int_eq(lin_acoustics_silent(table, key), a.speech == 0);
        band += bins[D] > 0;
        if (a.speech == 0) {
            silent++;
            ck_assert(a.noise > 0 && a.n_voices == 0);
            continue;
        }
        noise += a.noise > 0;
        babble += a.n_voices > 0;
        room += a.room > 0;
    }
    const struct {
        const char *name;
        int got;
        double want;
    } counts[] = {{"silent", silent, 0.25},   {"noise", noise, 0.75 * 0.3}, {"babble", babble, 0.75 * 0.2},
                  {"room", room, 0.75 * 0.4}, {"band", band, 0.1},          {"clean", clean, 0.75 * 0.7 * 0.8 * 0.6 * 0.9}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        ck_assert_msg(fabs(counts[i].got - MANY * counts[i].want) < 0.03 * MANY, "%s: %d of %d, not %g", counts[i].name,
                      counts[i].got, MANY, MANY * counts[i].want);
    lin_acoustics_destroy(table);
    table = table_of(&(lin_augment_options){0});
    for (uint64_t key = 0; key < KEYS; key++) ck_assert(!draw(table, T, 1, key) && !lin_acoustics_silent(table, key));
    lin_acoustics_destroy(table);
}
END_TEST

START_TEST(a_function_of_the_key)
{
    static float first[LIN_ACOUSTICS_ROWS * D];
    const lin_augment_options o = {.gain_db = 3, .tilt_db = 6, .warp = 0.1, .noise_part = 1, .room_part = 1, .band_part = 1,
                                     .snr_high_db = 30};
    lin_acoustics_table *table = table_of(&o), *other = table_of(&o);
    for (uint64_t key = 0; key < 50; key++) {
        ck_assert(draw(table, T, 10, key));
        const lin_acoustics before = a;
        memcpy(first, bins, sizeof first);
        ck_assert(draw(table, T, 10, key + 1));
        ck_assert(memcmp(first, bins, sizeof first) != 0 && a.key != before.key);
        ck_assert(draw(other, T, 10, key));
        ck_assert(memcmp(first, bins, sizeof first) == 0);
        ck_assert(a.key == before.key && a.noise == before.noise && a.hold == before.hold && a.room == before.room &&
                  a.decay == before.decay && a.depth == before.depth && a.fall == before.fall && a.n_shapes == before.n_shapes);
    }
    lin_acoustics_destroy(table);
    lin_acoustics_destroy(other);
}
END_TEST

static lin_status create_once(const lin_augment_options *o)
{
    lin_acoustics_table *table;
    const lin_fbank_config config = lin_fbank_default();
    const lin_status status = lin_acoustics_create(o, &config, &table, NULL);
    lin_acoustics_destroy(table);
    return status;
}

START_TEST(no_memory)
{
    lin_augment_options o = {.snr_low_db = 5, .snr_high_db = 30};
    ck_assert(!lin_acoustics_any(&o));
    o.warp = 0.1;
    ck_assert(lin_acoustics_any(&o));
    o = (lin_augment_options){.gain_db = 1};
    FAIL_EVERY_ALLOCATION(create_once(&o), (void)0);
}
END_TEST

TEST_MAIN("train/augment_acoustics", TEST(noise_is_noise_in_the_filterbank), TEST(noise_reaches_its_ratio),
          TEST(babble_reaches_its_ratio), TEST(rooms_reverberate), TEST(bands_have_edges),
          TEST(bands_end_at_their_frequency), TEST(gain_is_a_factor), TEST(tilt_is_a_line), TEST(frequencies_are_scaled),
          TEST(parts_are_those_asked_for), TEST(a_function_of_the_key), TEST(no_memory))
