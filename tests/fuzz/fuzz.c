// fuzz.c - the table of fuzz targets. The program's name, fuzz_NAME, chooses one; each input must leave no memory.
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_ENTRY(name) {#name, fuzz_##name},
static const struct {
    const char *name;
    void (*run)(const uint8_t *data, size_t size);
} targets[] = {FUZZ_TARGETS(FUZZ_ENTRY)};

static int chosen = -1;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *name = strrchr(**argv, '/');
    (void)argc;
    name = name ? name + 1 : **argv;
    for (int i = 0; i < (int)(sizeof targets / sizeof *targets); i++)
        if (!strncmp(name, "fuzz_", 5) && !strcmp(name + 5, targets[i].name)) chosen = i;
    if (chosen < 0) fprintf(stderr, "fuzz: %s is no target; call it fuzz_NAME\n", name);
    if (chosen < 0) exit(2);
    return 0;
}

// A target may keep what it makes on its first input, so what is live is compared from the second on.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int warm;
    if (!warm) targets[chosen].run(data, size);
    warm = 1;
    const unsigned long live = lin_memory_live();
    targets[chosen].run(data, size);
    must(lin_memory_live() == live);
    return 0;
}
