// Files that a training run reads from its own folder besides the model, from any bytes: the counters of a checkpoint, and the
// log from which the curves are drawn.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "train/train_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const unsigned long live = lin_memory_live();
    char *text = malloc(size + 1);
    if (!text) return 0;
    if (size) memcpy(text, data, size);
    text[size] = 0;
    lin_train_counters c;
    if (lin_train_parse_counters(text, &c) &&
        (c.epoch < 0 || c.batch < 0 || (c.batch > 0 && c.step < 1) || !(c.lr_factor > 0 && c.lr_factor <= 1) ||
         !isfinite(c.loss_sum) || !isfinite(c.best_per) || !isfinite(c.run_seconds)))
        abort();
    char *svg = lin_curves_svg("", text); // a title of any bytes
    if (!svg || !strstr(svg, "</svg>")) abort();
    lin_free(svg);
    svg = lin_curves_svg(text, "a run");
    if (!svg || strncmp(svg, "<svg ", 5) != 0 || !strstr(svg, "</svg>") || strstr(svg, "points=\"nan") || strstr(svg, ",inf"))
        abort();
    lin_free(svg);
    free(text);
    if (lin_memory_live() != live) abort();
    return 0;
}
