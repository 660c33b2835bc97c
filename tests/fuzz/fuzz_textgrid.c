// The reader of TextGrids on any bytes: accepted intervals are in order and within the tables.

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "align/textgrid.h"
#include "base/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const unsigned long live = lin_memory_live();
    lin_error err = {0};
    lin_textgrid g;
    lin_status status = lin_textgrid_parse((const char *)data, size, "x", &g, &err);
    if (status != LIN_OK && (status != err.status || !err.message[0] || g.tiers || g.intervals || g.text)) abort();
    const int n = status != LIN_OK ? 0 : lin_textgrid_choose(&g);
    if (n < 0 || n > g.n_tiers || g.n_tiers > LIN_TEXTGRID_TIERS) abort();
    for (int t = 0; t < g.n_tiers; t++) {
        const lin_tier *tier = &g.tiers[t];
        if (tier->first < 0 || tier->n < 0 || (size_t)tier->first + (size_t)tier->n > g.n_intervals) abort();
        if (tier->name + strlen(lin_textgrid_text(&g, tier->name)) >= g.text_used) abort();
        for (int i = 0; i < tier->n; i++) {
            const lin_textgrid_interval *v = &g.intervals[tier->first + i];
            if (!(v->start_s <= v->end_s) || (i && v->start_s < v[-1].end_s)) abort();
            if (v->text + strlen(lin_textgrid_text(&g, v->text)) >= g.text_used) abort();
        }
    }
    lin_textgrid_free(&g);
    if (lin_memory_live() != live) abort();
    return 0;
}
