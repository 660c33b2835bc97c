// augment.c - drawing masks and applying them; see augment.h.

#include "train/augment.h"

#include "base/rng.h"

lin_status lin_augment_check(const lin_augment_options *o, lin_error *err)
{
    if (o->freq_masks < 0 || o->freq_masks > LIN_AUGMENT_MOST)
        return lin_fail(err, LIN_INVALID, "augmentation: freq_masks is %d; must be 0 to %d", o->freq_masks,
                        LIN_AUGMENT_MOST);
    if (o->freq_width < 0) return lin_fail(err, LIN_INVALID, "augmentation: freq_width is %d; must be 0 or more", o->freq_width);
    if (o->time_masks < 0 || o->time_masks > LIN_AUGMENT_MOST)
        return lin_fail(err, LIN_INVALID, "augmentation: time_masks is %d; must be 0 to %d", o->time_masks,
                        LIN_AUGMENT_MOST);
    if (o->time_width < 0) return lin_fail(err, LIN_INVALID, "augmentation: time_width is %d; must be 0 or more", o->time_width);
    if (!(o->time_part >= 0 && o->time_part <= 1))
        return lin_fail(err, LIN_INVALID, "augmentation: time_part is %g; must be 0 to 1", o->time_part);
    return LIN_OK;
}

// A stretch of 0..widest of `size` places; *first receives its start.
static int draw(uint64_t key, uint64_t counter, int widest, int size, int *first)
{
    int width = (int)lin_random_below(key, counter, (uint32_t)(widest < size ? widest : size) + 1);
    *first = (int)lin_random_below(key, counter + 1, (uint32_t)(size - width) + 1);
    return width;
}

int lin_augment_masks(int T, int D, const lin_augment_options *o, uint64_t key, lin_mask *masks)
{
    int first, width, n = 0, longest = (int)(o->time_part * T);
    if (longest > o->time_width) longest = o->time_width;
    for (int m = 0; m < o->freq_masks; m++) {
        width = draw(lin_random_key(key, 1), 2 * (uint64_t)m, o->freq_width, D, &first);
        masks[n++] = (lin_mask){.t1 = T, .d0 = first, .d1 = first + width};
    }
    for (int m = 0; m < o->time_masks; m++) {
        width = draw(lin_random_key(key, 2), 2 * (uint64_t)m, longest, T, &first);
        masks[n++] = (lin_mask){.t0 = first, .t1 = first + width, .d1 = D};
    }
    return n;
}
