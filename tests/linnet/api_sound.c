// What the tests of linnet.h share.
#include "tests/linnet/api_sound.h"

#include "base/memory.h"

linnet_model *model;
float sound[N];
int16_t sound_16[N];
linnet_error err;

void api_setup(void)
{
    for (int t = 0; t < N; t++) {
        const int within = t % (N / 2), vowel = within / 2000 * 7 + (2 * t / N ? 11 : 5);
        const double at = (double)within / RATE, pitch = 110 + 10 * (vowel % 5);
        const double f1 = 300 + 90 * (vowel % 6), f2 = 900 + 230 * (vowel % 7);
        double buzz = 0;
        for (int h = 1; h * pitch < 3500 && within < 25600; h++) {
            const double hz = h * pitch;
            buzz +=
                (exp(-pow((hz - f1) / 120, 2)) + 0.6 * exp(-pow((hz - f2) / 160, 2)) + 0.01) * sin(6.283185307179586 * hz * at);
        }
        const double noise = lin_random_uniform(5, (uint64_t)t) - 0.5,
                     before = t ? lin_random_uniform(5, (uint64_t)t - 1) - 0.5 : 0;
        const int hiss = within < 25600 && vowel % 4 == 0;
        sound_16[t] = (int16_t)lrint(3000 * buzz * (vowel % 4 != 0) + 2000 * (noise - before) * hiss + 130 * noise);
        sound[t] = (float)sound_16[t] / 32768;
    }
    require_ok(linnet_model_load(MODEL, NULL, &model, &err));
}

void api_teardown(void)
{
    linnet_model_destroy(model);
    ck_assert_uint_eq(lin_memory_live(), 0);
}

linnet_sound in_memory(void)
{
    DEFAULTS(linnet_sound, s);
    s.samples = sound;
    s.n_samples = N;
    return s;
}

linnet_decoder *make_decoder(int words, int beam, int n_best)
{
    linnet_decoder *d;
    DEFAULTS(linnet_decoder_options, o);
    o.words = words;
    o.beam = beam;
    o.n_best = n_best;
    if (words) o.lexicon = LEXICON, o.bonus = 2; // vowels alone are hardly words
    require_ok(linnet_decoder_create(model, &o, &d, &err));
    return d;
}

static char *json_of(const linnet_result *r)
{
    char *text;
    require_ok(linnet_result_format(r, "json", NULL, &text, NULL, &err));
    return text;
}

void same_results(const linnet_result *a, const linnet_result *b)
{
    char *x = json_of(a), *y = json_of(b);
    ck_assert_str_eq(x, y);
    linnet_free(x);
    linnet_free(y);
}
