// language.c - a tool for the shell tests: a corpus of a language that nobody speaks, with known boundaries.
//
//   language FOLDER [utterances=60] [seed=1] [first=1]
//
// Writes FOLDER/wav.scp, text, utt2spk (paths relative to FOLDER), the sounds of 16 kHz, and
//   lexicon.dict   its words in Cyrillic letters, with phones in the IPA, of which some are none of English
//   truth.tsv      utterance, phone, begin and end in seconds: of every phone, without the pauses
// Vowels are a buzz through two resonances, consonants noise of a band, murmurs and bursts (Klatt 1980, greatly simplified).
// Three speakers have a pitch and a vocal tract of their own. Texts have capitals and full stops. first: number of the first
// utterance. The last of the 25 words, with which every third utterance ends, is not in the lexicon.

#include <math.h>
#include <sndfile.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TURN 6.283185307179586

enum { RATE = 16000, MOST_SECONDS = 12, WORDS = 25, SPEAKERS = 3 };

// kind: v(owel), n(asal), f(ricative), s(top), t(rill). a, b: resonances in Hz, or the middle and width of the band of noise.
typedef struct phone {
    const char *ipa, *letter;
    char kind;
    double a, b, level, ms;
} phone;

static const phone phones[] = {
    {"a", "а", 'v', 750, 1250, 1, 120},    {"e", "е", 'v', 480, 1900, 0.9, 110}, {"iː", "и", 'v', 290, 2300, 0.8, 140},
    {"o", "о", 'v', 500, 900, 1, 120},     {"u", "у", 'v', 320, 750, 0.8, 110},  {"ø", "ө", 'v', 400, 1500, 0.9, 120},
    {"m", "м", 'n', 250, 1000, 0.5, 80},   {"n", "н", 'n', 260, 1700, 0.5, 75},  {"s", "с", 'f', 6000, 1500, 0.5, 110},
    {"ʃ", "ш", 'f', 3200, 900, 0.6, 110},  {"x", "х", 'f', 1500, 600, 0.4, 95},  {"t", "т", 's', 4500, 2000, 0.6, 85},
    {"k", "к", 's', 1900, 700, 0.6, 90},   {"r", "р", 't', 500, 1300, 0.7, 80},
};

// Words as numbers of phones, ended by -1.
static const signed char words[WORDS][8] = {
    {6, 0, -1},          {6, 0, 6, 0, -1},     {11, 0, 7, 3, -1},       {12, 4, 8, 2, -1},        {9, 5, 7, 0, -1},
    {10, 1, 13, 3, -1},  {8, 2, 11, 4, -1},    {7, 4, 12, 0, -1},       {0, 9, 1, -1},            {3, 13, 2, 8, -1},
    {11, 5, 10, 0, -1},  {12, 2, 7, 1, -1},    {6, 5, 9, 3, -1},        {8, 0, 12, 4, 11, -1},    {13, 1, 7, 2, -1},
    {9, 4, -1},          {10, 3, 6, 1, -1},    {7, 2, 13, 0, 12, -1},   {11, 1, 8, 5, -1},        {12, 3, 10, 2, -1},
    {5, 13, 0, 11, -1},  {4, 6, 3, -1},        {8, 1, 9, 5, 7, -1},     {2, 10, 0, -1},           {11, 0, 6, 2, 12, 3, -1},
};

static uint64_t state;

static double uniform(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 40) / 16777216.0;
}

// Noise through a resonator around `hz`.
typedef struct band {
    double c1, c2, y1, y2, gain;
} band;

static band band_of(double hz, double width)
{
    const double r = exp(-TURN / 2 * width / RATE), c = 2 * r * cos(TURN * hz / RATE);
    return (band){c, -r * r, 0, 0, (1 - r) * sqrt(1 - 2 * r * cos(2 * TURN * hz / RATE) + r * r)};
}

static double next(band *b)
{
    const double y = (2 * uniform() - 1) * b->gain + b->c1 * b->y1 + b->c2 * b->y2;
    b->y2 = b->y1;
    b->y1 = y;
    return y * 3;
}

// One phone, added to out [n]; both ends fade over 8 ms. `at`: its place in the sound, for the phase of the buzz.
static void say(const phone *p, double pitch, double tract, float *out, int n, int at)
{
    band noise = band_of(p->kind == 'f' || p->kind == 's' ? p->a : 1000, p->kind == 'f' || p->kind == 's' ? p->b : 500);
    const int fade = RATE * 8 / 1000, closure = p->kind == 's' ? n * 6 / 10 : 0;
    for (int i = 0; i < n; i++) {
        const double t = (double)(at + i) / RATE;
        double x = 0, edge = fmin(1, fmin((double)(i + 1), (double)(n - i)) / fade);
        if (p->kind == 'f') {
            x = next(&noise);
        } else if (p->kind == 's') {
            x = i < closure ? 0 : 2 * next(&noise) * exp(-(double)(i - closure) / (0.012 * RATE));
        } else {
            for (int h = 1; h * pitch < 4000; h++) {
                const double hz = h * pitch;
                double a = exp(-pow((hz - p->a * tract) / 130, 2)) + 0.5 * exp(-pow((hz - p->b * tract) / 180, 2)) + 0.01;
                if (p->kind == 'n') a *= hz < 400 ? 1 : 0.15;
                x += a * sin(TURN * hz * t);
            }
            x *= 0.35;
            if (p->kind == 't') x *= 0.5 + 0.5 * cos(TURN * 28 * t);
        }
        out[i] += (float)(0.3 * p->level * edge * x);
    }
}

static FILE *create(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    if (f) return f;
    perror(path);
    exit(1);
}

static void write_sound(const char *folder, const char *name, const float *x, int n)
{
    static short samples[RATE * MOST_SECONDS];
    char path[4096];
    SF_INFO info = {.samplerate = RATE, .channels = 1, .format = SF_FORMAT_WAV | SF_FORMAT_PCM_16};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (int i = 0; i < n; i++) samples[i] = (short)lrint(fmin(fmax((double)x[i], -1), 1) * 32767);
    SNDFILE *f = sf_open(path, SFM_WRITE, &info);
    if (!f || sf_write_short(f, samples, n) != n || sf_close(f)) exit(1);
}

// The word in letters; the capitals of А to Я are 32 before the small letters, which is all that the first one may be.
static void spell(FILE *f, int word, int capital)
{
    for (int i = 0; words[word][i] >= 0; i++) {
        const unsigned char *c = (const unsigned char *)phones[words[word][i]].letter;
        unsigned code = (c[0] & 31u) << 6 | (c[1] & 63u);
        if (i == 0 && capital && code >= 0x430 && code < 0x450) code -= 32;
        fprintf(f, "%c%c", (int)(0xC0 | code >> 6), (int)(0x80 | (code & 63u)));
    }
}

static void utter(const char *folder, int number, FILE *scp, FILE *text, FILE *utt2spk, FILE *truth)
{
    static float x[RATE * MOST_SECONDS];
    char id[32], name[48];
    const int speaker = number % SPEAKERS, n_words = 3 + (int)(uniform() * 4);
    const double pitch = 105 + 45 * speaker + 20 * uniform(), tract = 0.92 + 0.08 * speaker;
    int at = RATE / 5 + (int)(uniform() * RATE / 5);
    snprintf(id, sizeof id, "s%d-%03d", speaker, number);
    snprintf(name, sizeof name, "%s.wav", id);
    memset(x, 0, sizeof x);
    fprintf(text, "%s ", id);
    for (int w = 0; w < n_words; w++) {
        const int last = w == n_words - 1, word = last && number % 3 == 0 ? WORDS - 1 : (int)(uniform() * (WORDS - 1));
        if (w) fputc(' ', text);
        spell(text, word, w == 0);
        for (int i = 0; words[word][i] >= 0; i++) {
            const phone *p = &phones[words[word][i]];
            const int n = (int)(p->ms * (0.8 + 0.5 * uniform()) / 1000 * RATE);
            say(p, pitch * (1.05 - 0.02 * w), tract, x + at, n, at);
            fprintf(truth, "%s\t%s\t%.4f\t%.4f\n", id, p->ipa, (double)at / RATE, (double)(at + n) / RATE);
            at += n;
        }
        if (!last && uniform() < 0.5) at += (int)((0.1 + 0.2 * uniform()) * RATE);
    }
    fprintf(text, ".\n");
    at += RATE / 4;
    for (int i = 0; i < at; i++) x[i] += (float)(0.0015 * (2 * uniform() - 1));
    write_sound(folder, name, x, at);
    fprintf(scp, "%s %s\n", id, name);
    fprintf(utt2spk, "%s s%d\n", id, speaker);
}

int main(int argc, char **argv)
{
    int utterances = 60, first = 1;
    state = 1;
    if (argc < 2) return 2;
    for (int i = 2; i < argc; i++) {
        const char *value = strchr(argv[i], '=');
        if (!value) return 2;
        if (!strncmp(argv[i], "utterances=", 11)) utterances = atoi(value + 1);
        else if (!strncmp(argv[i], "first=", 6)) first = atoi(value + 1);
        else if (!strncmp(argv[i], "seed=", 5)) state = strtoull(value + 1, NULL, 10) * 7919;
        else return 2;
    }
    mkdir(argv[1], 0777);
    for (int i = 0; i < 8; i++) uniform();
    FILE *scp = create(argv[1], "wav.scp"), *text = create(argv[1], "text"), *utt2spk = create(argv[1], "utt2spk");
    FILE *truth = create(argv[1], "truth.tsv"), *lexicon = create(argv[1], "lexicon.dict");
    for (int w = 0; w < WORDS - 1; w++) {
        spell(lexicon, w, 0);
        for (int i = 0; words[w][i] >= 0; i++) fprintf(lexicon, " %s", phones[words[w][i]].ipa);
        fputc('\n', lexicon);
    }
    for (int i = 0; i < utterances; i++) utter(argv[1], first + i, scp, text, utt2spk, truth);
    fclose(scp);
    fclose(text);
    fclose(utt2spk);
    fclose(truth);
    fclose(lexicon);
    return 0;
}
