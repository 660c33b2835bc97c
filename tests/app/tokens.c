// tokens.c - a tool for the shell tests: writes a set of tokens (train/dataset.h).
//
//   tokens OUT TOKENS VALUES N
//
// N sequences of 20 of the first VALUES of TOKENS tokens; the target of each is the next one, 3 higher.

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "train/dataset.h"

enum { LENGTH = 20, NAME = 8 };

static void check(lin_status status, const lin_error *err)
{
    if (status == LIN_OK) return;
    fprintf(stderr, "tokens: %s\n", err->message);
    exit(1);
}

int main(int argc, char **argv)
{
    lin_error err = {0};
    lin_dataset_writer *writer;
    if (argc != 5 || atoi(argv[3]) < 2) {
        fprintf(stderr, "tokens OUT TOKENS VALUES N\n");
        return 1;
    }
    const int tokens = atoi(argv[2]), values = atoi(argv[3]), n = atoi(argv[4]);
    char *names = lin_alloc((size_t)values, NAME), id[16];
    if (!names) return 1;
    for (int v = 0, at = 0; v < values; v++)
        at += snprintf(names + at, (size_t)(values * NAME - at), v ? " %d" : "%d", v);
    check(lin_dataset_create_tokens(argv[1], tokens, names, "tests/app/tokens.c", &writer, &err), &err);
    for (int i = 0; i < n; i++) {
        int sequence[LENGTH + 1] = {i % values};
        for (int t = 0; t < LENGTH; t++) sequence[t + 1] = (sequence[t] + 3) % values;
        snprintf(id, sizeof id, "s%d", i);
        check(lin_dataset_add_tokens(writer, id, sequence, sequence + 1, LENGTH, &err), &err);
    }
    check(lin_dataset_finish(writer, &err), &err);
    lin_free(names);
    return 0;
}
