#include "decoder/result.h"

#include <limits.h>
#include <math.h>

#include "kernels/memory.h"

lin_status lin_result_begin(lin_result *r, const char *id, const char *speaker, int channel, lin_error *err)
{
    lin_free(r->id);
    lin_free(r->speaker);
    r->id = lin_strdup(id);
    r->speaker = r->id ? lin_strdup(speaker ? speaker : "") : NULL;
    r->channel = channel;
    r->seconds = 0;
    r->n_phones = 0;
    if (r->speaker) return LIN_OK;
    lin_free(r->id);
    r->id = NULL;
    return lin_no_memory(err, "a result", 1);
}

lin_status lin_result_add(lin_result *r, const lin_greedy_phone *phones, int n, double seconds_per_frame, lin_error *err)
{
    if (n < 0 || n > INT_MAX / 4 - r->n_phones) return lin_fail(err, LIN_INVALID, "a result of too many phones");
    if (r->n_phones + n > r->capacity) {
        int capacity = 2 * (r->n_phones + n) + 64;
        lin_result_phone *larger = lin_resize(r->phones, (size_t)capacity, sizeof *larger);
        if (!larger) return lin_no_memory(err, "a result", (size_t)capacity * sizeof *larger);
        r->phones = larger;
        r->capacity = capacity;
    }
    for (int i = 0; i < n; i++) {
        r->phones[r->n_phones++] = (lin_result_phone){
            .label = phones[i].label,
            .confidence = phones[i].confidence,
            .start_s = (double)phones[i].start * seconds_per_frame,
            .end_s = (double)phones[i].end * seconds_per_frame,
            .goodness = NAN,
        };
    }
    return LIN_OK;
}

void lin_result_free(lin_result *r)
{
    lin_free(r->id);
    lin_free(r->speaker);
    lin_free(r->phones);
    *r = (lin_result){0};
}
