// The table of linnet train --sweep, from any bytes: each line that is kept has a name of its own, and its words are its own too.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "train/cmd_train_sweep.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const unsigned long live = lin_memory_live();
    char *text = malloc(size + 1);
    if (!text) return 0;
    if (size) memcpy(text, data, size);
    text[size] = 0;
    lin_sweep_line *lines;
    int n;
    lin_error err = {0};
    const lin_status status = lin_sweep_parse("table", text, size, &lines, &n, &err);
    if (status != LIN_OK && !err.message[0]) abort();
    for (int i = 0; status == LIN_OK && i < n; i++) {
        const lin_sweep_line *line = &lines[i];
        if (line->n < 1 || line->n > LIN_SWEEP_WORDS || line->words[line->n] || line->number < 1) abort();
        if (i > 0 && line->number <= line[-1].number) abort();
        // it names a folder
        if (strpbrk(line->words[0], "/ #\t") || line->words[0][0] == '-' || line->words[0][0] == '.') abort();
        for (int w = 0; w < line->n; w++)
            if (!line->words[w][0] || strpbrk(line->words[w], " \t\r#")) abort();
        for (int k = 0; k < i; k++)
            if (strcmp(lines[k].words[0], line->words[0]) == 0) abort();
    }
    if (status == LIN_OK && n == 0) abort();
    lin_free(lines);
    free(text);
    if (lin_memory_live() != live) abort();
    return 0;
}
