// driver.c - runs a fuzz target without libFuzzer: every seed unchanged, every seed cut at many places, and a fixed number of
// pseudo-random mutations. The same command always runs the same inputs.
//
//   fuzz_x [-runs=N] [-seconds=S] [FILE or FOLDER]...
//
// -runs: mutations (default 2,000); -seconds: ends earlier if they take longer (default 5). A crash leaves the input in
// ./fuzz-crash if $FUZZ_KEEP is set.
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_SEEDS = 1024, LONGEST = 1 << 16 };

typedef struct seed {
    uint8_t *data;
    size_t size;
} seed;

static seed seeds[MAX_SEEDS];
static int n_seeds;
static uint64_t state = 0x9e3779b97f4a7c15u;
static const uint8_t *running;
static size_t running_size;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 16) % below);
}

static void die(const char *what, const char *name)
{
    fprintf(stderr, "fuzz driver: %s %s: %s\n", what, name, strerror(errno));
    exit(2);
}

static void keep_seed(const void *data, size_t size)
{
    if (n_seeds == MAX_SEEDS || size > LONGEST) return;
    seed *s = &seeds[n_seeds++];
    s->data = malloc(size + 1);
    if (!s->data) die("cannot hold", "a seed");
    if (size) memcpy(s->data, data, size);
    s->size = size;
}

static void read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) die("cannot open", path);
    static uint8_t block[LONGEST + 1];
    size_t n = fread(block, 1, sizeof block, file);
    fclose(file);
    keep_seed(block, n);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void read_path(const char *path)
{
    struct stat s;
    if (stat(path, &s) != 0) die("cannot open", path);
    if (!S_ISDIR(s.st_mode)) {
        read_file(path);
        return;
    }
    struct dirent **names;
    int n = scandir(path, &names, NULL, by_name);
    if (n < 0) die("cannot read", path);
    for (int i = 0; i < n; i++) {
        if (names[i]->d_name[0] != '.') {
            char full[4096];
            snprintf(full, sizeof full, "%s/%s", path, names[i]->d_name);
            read_path(full);
        }
        free(names[i]);
    }
    free(names);
}

// The input is a block of exactly its size, so that AddressSanitizer detects a read of one byte beyond it.
static void run(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) die("cannot hold", "an input");
    if (size) memcpy(copy, data, size);
    running = copy;
    running_size = size;
    LLVMFuzzerTestOneInput(copy, size);
    running = NULL;
    free(copy);
}

static void on_crash(int number)
{
    if (running && getenv("FUZZ_KEEP")) {
        FILE *file = fopen("fuzz-crash", "wb");
        if (file) {
            fwrite(running, 1, running_size, file);
            fclose(file);
        }
    }
    signal(number, SIG_DFL);
    raise(number);
}

static size_t mutate(uint8_t *x, size_t n)
{
    static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff,
                                    '\n', ' ', '"', '{', '}', '[', ']', '0', '9', '-', '.', '/', '=', ':', '\\'};
    uint32_t changes = 1 + draw(1 + draw(8));
    for (uint32_t i = 0; i < changes; i++) {
        uint32_t at = n ? draw((uint32_t)n) : 0, length = 1 + draw(1 + draw(32));
        switch (draw(8)) {
        case 0: // flip a bit
            if (n) x[at] = (uint8_t)(x[at] ^ (1u << draw(8)));
            break;
        case 1: // a byte with a meaning to parsers
            if (n) x[at] = edges[draw(sizeof edges)];
            break;
        case 2: // any byte
            if (n) x[at] = (uint8_t)draw(256);
            break;
        case 3: // cut out
            if (length < n - at) {
                memmove(x + at, x + at + length, n - at - length);
                n -= length;
            }
            break;
        case 4: // insert
            if (n + length <= LONGEST) {
                memmove(x + at + length, x + at, n - at);
                for (uint32_t j = 0; j < length; j++) x[at + j] = edges[draw(sizeof edges)];
                n += length;
            }
            break;
        case 5: // duplicate a piece
            if (n && length <= n - at && n + length <= LONGEST) {
                memmove(x + at + length, x + at, n - at);
                n += length;
            }
            break;
        case 6: // cut off
            if (n && draw(4) == 0) n = at;
            break;
        default: { // splice another seed in
            const seed *s = &seeds[draw((uint32_t)n_seeds)];
            if (!s->size || n < 2) break;
            uint32_t from = draw((uint32_t)s->size);
            size_t most = s->size - from < n - at ? s->size - from : n - at;
            memcpy(x + at, s->data + from, most > 64 ? 64 : most);
            break;
        }
        }
    }
    return n;
}

int main(int argc, char **argv)
{
    long runs = 2000, done = 0;
    double seconds = 5;
    LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "-runs=", 6) == 0) {
            runs = atol(argv[i] + 6);
        } else if (strncmp(argv[i], "-seconds=", 9) == 0) {
            seconds = atof(argv[i] + 9);
        } else {
            read_path(argv[i]);
        }
    }
    signal(SIGABRT, on_crash);
    signal(SIGSEGV, on_crash);
    keep_seed("", 0);
    double begin = lin_now();
    for (int i = 0; i < n_seeds; i++) {
        run(seeds[i].data, seeds[i].size);
        for (size_t cut = 0; cut < seeds[i].size && cut < 256; cut++) run(seeds[i].data, seeds[i].size * cut / 256);
    }
    static uint8_t x[LONGEST + 64];
    for (; done < runs && lin_now() - begin < seconds; done++) {
        const seed *s = &seeds[draw((uint32_t)n_seeds)];
        if (s->size) memcpy(x, s->data, s->size);
        size_t n = mutate(x, s->size);
        run(x, n);
    }
    printf("%d seeds, %ld mutations, %.1f s\n", n_seeds, done, lin_now() - begin);
    for (int i = 0; i < n_seeds; i++) free(seeds[i].data);
    return 0;
}
