/*
 * phone_map.h - which phones count as the same in a score: TIMIT's 61 as the 39 of the literature, and the like.
 *
 * Pipeline: a file -> [this] -> score/trn, which maps every token of reference and hypothesis as it reads it.
 *
 *   # comment
 *   ax ah            ax becomes ah
 *   q                q is deleted
 *   cl cl sil        of more fields the last one counts, as in Kaldi's phones.60-48-39.map
 *
 * All lines except those that delete have the same number of fields. A map is applied once: "ax ah" and "ah aa" do not make ax an
 * aa. A name that is only mapped to is not changed. Example: share/linnet/timit-61-39.map.
 *
 *   lin_phone_map_load("timit-61-39.map", 0, &map, &err);
 *   switch (lin_phone_map_apply(map, &text, &n)) ...
 *   lin_phone_map_destroy(map);
 *
 * Threads: immutable once made, shared by all.
 */
#ifndef LIN_SCORE_PHONE_MAP_H
#define LIN_SCORE_PHONE_MAP_H

#include <stddef.h>

#include "base/status.h"

typedef struct lin_phone_map lin_phone_map;

typedef enum lin_phone_fate {
    LIN_PHONE_UNKNOWN, /* it is not in the map; text and n are unchanged */
    LIN_PHONE_MAPPED,  /* text and n are the new name, owned by the map */
    LIN_PHONE_DELETED
} lin_phone_fate;

/*
 * Reads n bytes of a file; messages call it name. Unless case_sensitive, ASCII letters are folded to lower case, and
 * lin_phone_map_apply expects lower case. LIN_FORMAT with name:line: a phone mapped twice, another number of fields than before,
 * control characters; a file that maps nothing. LIN_NO_MEMORY.
 */
lin_status lin_phone_map_parse(const char *text, size_t n, const char *name, int case_sensitive, lin_phone_map **map,
                               lin_error *err);
lin_status lin_phone_map_load(const char *path, int case_sensitive, lin_phone_map **map, lin_error *err);
void lin_phone_map_destroy(lin_phone_map *map); /* NULL is fine */

lin_phone_fate lin_phone_map_apply(const lin_phone_map *map, const char **text, size_t *n);

#endif
