/*
 * turns.c - two or more builds of the library against each other: processor time of a tick of live streams, in turns.
 *
 *   turns STREAMS TICK ROWS SECONDS MODEL SIDE.so...
 *
 * Made and run by turns.sh. On a busy machine a run differs from the next by more than most changes gain; here all sides meet the
 * same minutes. A side takes 24 ticks (6 of large ticks) and then the next one; the first three of each turn are not counted,
 * because they load what the side before has driven out of the caches. The checksum is of all results: sides whose bits are equal
 * have the same one.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_SIDES = 16, MAX_TICKS = 1 << 20, WARM_UP = 3 };

static int by_value(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    typedef void side_open(int streams, int tick, int rows, const char *model);
    typedef double side_tick(uint64_t *checksum);
    if (argc < 7 || argc - 6 > MAX_SIDES) {
        fprintf(stderr, "usage: turns STREAMS TICK ROWS SECONDS MODEL SIDE.so...\n");
        return 2;
    }
    const int streams = atoi(argv[1]), tick = atoi(argv[2]), rows = atoi(argv[3]), sides = argc - 6;
    const int turn = tick * rows > 16 ? 6 : 24;
    side_tick *run[MAX_SIDES];
    double *time_of[MAX_SIDES];
    uint64_t checksum[MAX_SIDES] = {0};
    int n = 0;
    for (int i = 0; i < sides; i++) {
        void *side = dlopen(argv[6 + i], RTLD_NOW | RTLD_LOCAL);
        side_open *open_side;
        if (!side) {
            fprintf(stderr, "turns: %s\n", dlerror());
            return 1;
        }
        *(void **)&open_side = dlsym(side, "side_open");
        *(void **)&run[i] = dlsym(side, "side_tick");
        time_of[i] = malloc(MAX_TICKS * sizeof **time_of);
        if (!open_side || !run[i] || !time_of[i]) return 1;
        open_side(streams, tick, rows, argv[5]);
    }
    const double end = now() + atof(argv[4]);
    do {
        for (int i = 0; i < sides; i++)
            for (int k = 0; k < WARM_UP + turn; k++) {
                const double seconds = run[i](&checksum[i]);
                if (k >= WARM_UP) time_of[i][n + k - WARM_UP] = seconds;
            }
        n += turn;
    } while (now() < end && n + turn <= MAX_TICKS);
    printf("%d streams, %d of them a tick, %d frames each; processor time of a tick in us, %d ticks\n", streams, tick, rows, n);
    for (int i = 0; i < sides; i++) {
        double *t = time_of[i];
        qsort(t, (size_t)n, sizeof *t, by_value);
        printf("%-40s best %8.1f   10 %% %8.1f   25 %% %8.1f   median %8.1f   checksum %016llx\n", argv[6 + i], 1e6 * t[0],
               1e6 * t[n / 10], 1e6 * t[n / 4], 1e6 * t[n / 2], (unsigned long long)checksum[i]);
    }
    return 0;
}
