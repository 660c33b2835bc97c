#include "frontend/augment.h"

#include "kernels/rng.h"

lin_augment_options lin_augment_default(void)
{
    return (lin_augment_options){.freq_masks = 2, .freq_width = 13, .time_masks = 2, .time_width = 50, .time_part = 0.2};
}

lin_status lin_augment_check(const lin_augment_options *o, lin_error *err)
{
    if (o->freq_masks < 0 || o->freq_masks > 100)
        return lin_fail(err, LIN_INVALID, "augmentation: freq_masks is %d, must be 0 to 100", o->freq_masks);
    if (o->freq_width < 0) return lin_fail(err, LIN_INVALID, "augmentation: freq_width is %d, must be 0 or more", o->freq_width);
    if (o->time_masks < 0 || o->time_masks > 100)
        return lin_fail(err, LIN_INVALID, "augmentation: time_masks is %d, must be 0 to 100", o->time_masks);
    if (o->time_width < 0) return lin_fail(err, LIN_INVALID, "augmentation: time_width is %d, must be 0 or more", o->time_width);
    if (!(o->time_part >= 0 && o->time_part <= 1))
        return lin_fail(err, LIN_INVALID, "augmentation: time_part is %g, must be 0 to 1", o->time_part);
    return LIN_OK;
}

// A stretch of 0..widest of `size` places; its start in *first.
static int draw(uint64_t key, uint64_t counter, int widest, int size, int *first)
{
    int width = (int)lin_random_below(key, counter, (uint32_t)(widest < size ? widest : size) + 1);
    *first = (int)lin_random_below(key, counter + 1, (uint32_t)(size - width) + 1);
    return width;
}

static void hide(float *x, int D, const float *fill, int t0, int t1, int d0, int d1)
{
    for (int t = t0; t < t1; t++)
        for (int d = d0; d < d1; d++) x[(long)t * D + d] = fill ? fill[d] : 0.0f;
}

void lin_augment_apply(float *x, int T, int D, const float *fill, const lin_augment_options *o, uint64_t key)
{
    int first, width, longest = (int)(o->time_part * T);
    if (longest > o->time_width) longest = o->time_width;
    for (int m = 0; m < o->freq_masks; m++) {
        width = draw(lin_random_key(key, 1), 2 * (uint64_t)m, o->freq_width, D, &first);
        hide(x, D, fill, 0, T, first, first + width);
    }
    for (int m = 0; m < o->time_masks; m++) {
        width = draw(lin_random_key(key, 2), 2 * (uint64_t)m, longest, T, &first);
        hide(x, D, fill, first, first + width, 0, D);
    }
}
