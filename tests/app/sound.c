// sound.c - a tool for the shell tests and benchmarks: writes synthetic sounds, so that no corpus is needed.
//
//   sound OUT [rate=16000] [channels=1] [seconds=1] [seed=1] [format=s16|f32|raw|au|opus] [bad=nan|inf]
//         [kind=vowels] [level=-40] [from=SPEECH.raw] [voices=8]
//
// kind=vowels: a sequence of vowel-like tones (a buzz through two moving resonances) with noise between them; each channel has
// its own. The other kinds are sounds without speech, the same in all channels, whose root mean square is at `level` dBFS:
//   silence, white, pink, brown   digital zeros; Gaussian noise with a power that is constant, falls by 3, falls by 6 dB an
//                                 octave
//   hum50, hum60                  ten harmonics of the mains, slightly modulated, and hiss 40 dB below
//   music                         chords, a melody, a bass and drums, 100 beats a minute
//   keys                          a keyboard: irregular presses and releases, each a click and a thump, over faint noise
//   room                          noise between pink and brown whose level and colour change within seconds, and a fan
//   babble                        `voices` voices at once: the speech of `from` (s16le at `rate`) from random places, each with
//                                 its own speed and pitch (0.85 to 1.2) and level (0 to -6 dB)
// format=raw: s16le without a header. format=opus: Opus in Ogg. format=au: an AU file of 32-bit floats, as ffmpeg writes it to a
// pipe. bad: the middle sample of an f32 file is NaN or infinite.

#include <math.h>
#include <sndfile.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURN 6.283185307179586

typedef struct sound {
    unsigned rate, channels, seed;
    double seconds, level;
    const char *format, *bad, *kind, *from;
    unsigned voices;
} sound;

static const struct {
    const char *name;
    int format;
} formats[] = {{"s16", SF_FORMAT_WAV | SF_FORMAT_PCM_16}, {"f32", SF_FORMAT_WAV | SF_FORMAT_FLOAT},
               {"raw", SF_FORMAT_RAW | SF_FORMAT_PCM_16 | SF_ENDIAN_LITTLE}, {"au", SF_FORMAT_AU | SF_FORMAT_FLOAT},
               {"opus", SF_FORMAT_OGG | SF_FORMAT_OPUS}};

static double noise(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 40) / 8388608.0 - 1;
}

static double vowels(const sound *s, uint32_t t, unsigned c, uint64_t *state)
{
    static double heights[4 * 3 * 5 * 7][32]; // of a vowel's harmonics; 0: not computed yet
    double at = (double)t / s->rate, buzz = 0;
    int part = (int)(at * 8) * 7 + (int)c * 3 + (int)s->seed; // a new vowel every 125 ms
    double f1 = 300 + 90 * (part % 6), f2 = 900 + 230 * (part % 7), pitch = 110 + 10 * (double)(part % 5);
    double *a = heights[part % 420];
    for (int h = 1; part % 4 && h * pitch < 3500 && h * pitch < s->rate / 2.0; h++) {
        double hz = h * pitch;
        if (a[h] == 0) a[h] = exp(-pow((hz - f1) / 120, 2)) + 0.6 * exp(-pow((hz - f2) / 160, 2)) + 0.01;
        buzz += a[h] * sin(TURN * hz * at);
    }
    return 0.12 * buzz + 0.01 * noise(state);
}

/* ---- sounds without speech ------------------------------------------------------------------------------------------------- */

// Each fills x [n], which is zero before, at any level; 0 on failure.
typedef struct place {
    double *x;
    size_t n;
    const sound *s;
    uint64_t random;
} place;

// Uniform in [0, 1).
static double uniform(place *p) { return (noise(&p->random) + 1) / 2; }

static double gauss(place *p) { return sqrt(-2 * log(1 - uniform(p))) * cos(TURN * uniform(p)); }

// Of white noise: leak 0 makes it white, nearer to 1 it falls from a lower frequency on by 6 dB an octave.
typedef struct leaky {
    double y, leak;
} leaky;

static double leak(leaky *l, double w) { return l->y = l->leak * l->y + (1 - l->leak) * w; }

static int white(place *p)
{
    for (size_t i = 0; i < p->n; i++) p->x[i] = gauss(p);
    return 1;
}

// Leaky sums an octave and a half apart, from 5 kHz down: together within a decibel of 3 dB an octave.
static double pink_next(leaky *poles, double w)
{
    double y = 0, height = 1;
    for (int k = 0; k < 6; k++, height *= 1.681793) y += height * leak(&poles[k], w); // 2^0.75
    return y;
}

static void pink_begin(leaky *poles, unsigned rate)
{
    for (int k = 0; k < 6; k++) poles[k] = (leaky){0, exp(-TURN * 5000 / pow(2, 1.5 * k) / rate)};
}

static int pink(place *p)
{
    leaky poles[6];
    pink_begin(poles, p->s->rate);
    for (size_t i = 0; i < p->n; i++) p->x[i] = pink_next(poles, gauss(p));
    return 1;
}

static int brown(place *p)
{
    leaky l = {0, exp(-TURN * 20 / p->s->rate)};
    for (size_t i = 0; i < p->n; i++) p->x[i] = leak(&l, gauss(p));
    return 1;
}

static int hum(place *p, double hz)
{
    static const double height[10] = {1, 0.35, 0.5, 0.2, 0.3, 0.1, 0.18, 0.06, 0.1, 0.05};
    double phase[10];
    for (int h = 0; h < 10; h++) phase[h] = TURN * uniform(p);
    for (size_t i = 0; i < p->n; i++) {
        const double at = (double)i / p->s->rate;
        double y = 0.01 * gauss(p);
        for (int h = 0; h < 10; h++)
            y += height[h] * (1 + 0.1 * sin(TURN * 0.11 * (h + 1) * at)) * sin(TURN * hz * (h + 1) * at + phase[h]);
        p->x[i] = y;
    }
    return 1;
}

static int hum50(place *p) { return hum(p, 50); }
static int hum60(place *p) { return hum(p, 60); }

// A note from second `from` on that fades: harmonics that fall by `soft` each.
static void note(place *p, double from, double hz, double height, double fade_s, double soft)
{
    const double rate = p->s->rate;
    const size_t first = (size_t)(from * rate), last = first + (size_t)(5 * fade_s * rate);
    for (size_t i = first; i < p->n && i < last; i++) {
        const double at = ((double)i - (double)first) / rate, envelope = height * exp(-at / fade_s) * (1 - exp(-at / 0.005));
        double a = envelope;
        for (int h = 1; h <= 8 && h * hz < rate / 2; h++, a *= soft) p->x[i] += a * sin(TURN * h * hz * at);
    }
}

// Noise that fades: what is above about `hz`, or a tone that falls from 4 hz to hz.
static void strike(place *p, double from, double hz, double height, double fade_s, int tone)
{
    const double rate = p->s->rate;
    const size_t first = (size_t)(from * rate), last = first + (size_t)(6 * fade_s * rate);
    leaky low = {0, exp(-TURN * hz / rate)};
    double phase = 0;
    for (size_t i = first; i < p->n && i < last; i++) {
        const double at = ((double)i - (double)first) / rate, envelope = height * exp(-at / fade_s), w = gauss(p);
        phase += TURN * hz * (1 + 3 * exp(-at / 0.02)) / rate;
        p->x[i] += envelope * (tone ? sin(phase) : w - leak(&low, w));
    }
}

static int music(place *p)
{
    static const int roots[8] = {0, 9, 5, 7, 2, 7, 0, 4}, scale[7] = {0, 2, 4, 5, 7, 9, 11}; // semitones above C
    const double beat = 0.6, all = (double)p->n / p->s->rate;
    for (int b = 0; b * beat < all; b++) {
        const double at = b * beat, third = roots[b / 4 % 8] == 9 || roots[b / 4 % 8] == 2 || roots[b / 4 % 8] == 4 ? 3 : 4;
        const double root = 130.8128 * pow(2, roots[b / 4 % 8] / 12.0);
        if (b % 2 == 0) {
            for (int k = 0; k < 3; k++) note(p, at, root * pow(2, (k == 0 ? 0 : k == 1 ? third : 7) / 12), 0.25, 0.6, 0.5);
            note(p, at, root / 2, 0.5, 0.3, 0.4);
        }
        for (int half = 0; half < 2; half++) {
            if (uniform(p) < 0.7)
                note(p, at + half * beat / 2, 523.2511 * pow(2, scale[(int)(7 * uniform(p))] / 12.0), 0.3, 0.25, 0.6);
            strike(p, at + half * beat / 2, 5000, 0.1, 0.03, 0);
        }
        strike(p, at, b % 2 ? 1500 : 50, b % 2 ? 0.4 : 0.9, b % 2 ? 0.06 : 0.09, b % 2 == 0);
    }
    return 1;
}

static int keys(place *p)
{
    const double all = (double)p->n / p->s->rate;
    leaky poles[6];
    pink_begin(poles, p->s->rate);
    for (size_t i = 0; i < p->n; i++) p->x[i] = 0.0005 * pink_next(poles, gauss(p));
    for (double at = 0.3; at < all; at += 0.07 + 0.15 * uniform(p) + (uniform(p) < 0.06 ? 2 * uniform(p) : 0)) {
        const double height = 0.5 + 0.5 * uniform(p), release = at + 0.06 + 0.05 * uniform(p);
        strike(p, at, 1500 + 2000 * uniform(p), height, 0.004, 0);
        strike(p, at, 120 + 100 * uniform(p), 0.6 * height, 0.012, 1);
        strike(p, release, 2000 + 2000 * uniform(p), 0.3 * height, 0.003, 0);
    }
    return 1;
}

static int room(place *p)
{
    leaky poles[6], deep = {0, exp(-TURN * 60 / p->s->rate)};
    double phase[4];
    pink_begin(poles, p->s->rate);
    for (int k = 0; k < 4; k++) phase[k] = TURN * uniform(p);
    for (size_t i = 0; i < p->n; i++) {
        const double at = (double)i / p->s->rate, w = gauss(p);
        const double level = 1 + 0.4 * sin(TURN * at / 7 + phase[0]) + 0.3 * sin(TURN * at / 23 + phase[1]);
        const double colour = 0.5 + 0.4 * sin(TURN * at / 11 + phase[2]);
        const double fan = 0.3 * sin(TURN * 87 * at + phase[3]) + 0.15 * sin(TURN * 174.3 * at);
        p->x[i] = level * (colour * pink_next(poles, w) + (1 - colour) * 20 * leak(&deep, w)) + fan;
    }
    return 1;
}

static int babble(place *p)
{
    FILE *f = fopen(p->s->from, "rb");
    if (!f || fseek(f, 0, SEEK_END)) return 0;
    const size_t n = (size_t)ftell(f) / 2;
    int16_t *speech = calloc(n + 2, sizeof *speech);
    rewind(f);
    const int ok = speech && n > 1 && fread(speech, 2, n, f) == n;
    fclose(f);
    for (unsigned v = 0; ok && v < p->s->voices; v++) {
        const double speed = 0.85 + 0.35 * uniform(p), height = pow(10, -0.3 * uniform(p));
        double at = uniform(p) * (double)(n - 1);
        for (size_t i = 0; i < p->n; i++) {
            const size_t k = (size_t)at;
            p->x[i] += height * (speech[k] + (at - (double)k) * (speech[k + 1] - speech[k]));
            at += speed;
            if (at >= (double)(n - 1)) at -= (double)(n - 1);
        }
    }
    free(speech);
    return ok;
}

static int silence(place *p)
{
    (void)p;
    return 1;
}

static const struct {
    const char *name;
    int (*make)(place *);
} kinds[] = {{"silence", silence}, {"white", white}, {"pink", pink}, {"brown", brown}, {"hum50", hum50}, {"hum60", hum60},
             {"music", music}, {"keys", keys}, {"room", room}, {"babble", babble}};

// A sound without speech at its level; NULL if there is no such kind, and for vowels.
static double *background(const sound *s, size_t n)
{
    place p = {.n = n, .s = s, .random = s->seed};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (strcmp(kinds[k].name, s->kind) != 0 || !(p.x = calloc(n + 1, sizeof *p.x))) continue;
        for (int i = 0; i < 8; i++) noise(&p.random); // seeds that differ little begin alike
        if (!kinds[k].make(&p)) break;
        double sum = 0;
        for (size_t i = 0; i < n; i++) sum += p.x[i] * p.x[i];
        const double gain = sum > 0 ? pow(10, s->level / 20) / sqrt(sum / (double)n) : 0;
        for (size_t i = 0; i < n; i++) p.x[i] *= gain;
        return p.x;
    }
    free(p.x);
    return NULL;
}

int main(int argc, char **argv)
{
    sound s = {.rate = 16000, .channels = 1, .seed = 1, .seconds = 1, .level = -40, .format = "s16", .bad = "", .kind = "vowels",
               .from = "", .voices = 8};
    for (int i = 2; i < argc; i++) {
        const char *value = strchr(argv[i], '=');
        if (!value++) return 2;
        if (strncmp(argv[i], "rate=", 5) == 0) s.rate = (unsigned)atoi(value);
        if (strncmp(argv[i], "channels=", 9) == 0) s.channels = (unsigned)atoi(value);
        if (strncmp(argv[i], "seed=", 5) == 0) s.seed = (unsigned)atoi(value);
        if (strncmp(argv[i], "seconds=", 8) == 0) s.seconds = atof(value);
        if (strncmp(argv[i], "format=", 7) == 0) s.format = value;
        if (strncmp(argv[i], "bad=", 4) == 0) s.bad = value;
        if (strncmp(argv[i], "kind=", 5) == 0) s.kind = value;
        if (strncmp(argv[i], "level=", 6) == 0) s.level = atof(value);
        if (strncmp(argv[i], "from=", 5) == 0) s.from = value;
        if (strncmp(argv[i], "voices=", 7) == 0) s.voices = (unsigned)atoi(value);
    }
    SF_INFO info = {.samplerate = (int)s.rate, .channels = (int)s.channels};
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++)
        if (strcmp(s.format, formats[k].name) == 0) info.format = formats[k].format;
    const size_t frames = (size_t)(s.seconds * s.rate);
    double *made = background(&s, frames), *x = calloc(frames * s.channels + 1, sizeof *x), *to = x;
    SNDFILE *f = argc > 1 ? sf_open(argv[1], SFM_WRITE, &info) : NULL;
    if (!f || !x || (!made && strcmp(s.kind, "vowels") != 0)) return 2;
    sf_command(f, SFC_SET_ADD_PEAK_CHUNK, NULL, SF_FALSE); // it has the time of day
    const int is_au = strcmp(s.format, "au") == 0;
    uint64_t state = s.seed;
    for (size_t t = 0; t < frames; t++) {
        for (unsigned c = 0; c < s.channels; c++, to++) {
            *to = fmax(-0.99, fmin(0.99, made ? made[t] : vowels(&s, (uint32_t)t, c, &state)));
            if (is_au) *to = (double)lrint(*to * 32767) / 32768; // the samples of format=s16
        }
    }
    if (*s.bad) x[frames / 2 * s.channels] = strcmp(s.bad, "nan") == 0 ? (double)NAN : (double)INFINITY;
    int failed = sf_writef_double(f, x, (sf_count_t)frames) != (sf_count_t)frames || sf_close(f) != 0;
    FILE *header = is_au ? fopen(argv[1], "r+b") : NULL;
    if (is_au) failed |= !header || fseek(header, 8, SEEK_SET) || fwrite("\377\377\377\377", 1, 4, header) != 4 || fclose(header);
    free(made);
    free(x);
    return failed;
}
