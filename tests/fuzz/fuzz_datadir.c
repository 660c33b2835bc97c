// The readers of data directories, lists and manifests on any bytes. The first byte chooses: bit 0 a directory or a list, bit 1
// transcripts needed or not, bit 2 commands allowed or not, bit 3 a list too. A directory's files, in the order of
// lin_datadir_names, are separated by bytes 0xFF, which are never part of UTF-8.

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "linnet/datadir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const lin_datadir *dir, int need_text)
{
    if (lin_datadir_count(dir) < 1) abort();
    for (int i = 0; i < lin_datadir_count(dir); i++) {
        const lin_utterance *u = lin_datadir_at(dir, i);
        if (strpbrk(u->id, " \t\n") || !*u->speaker || !*u->cut.path || u->line < 1) abort();
        if (u->cut.channel < 0 || u->cut.channel > 64 || !(u->cut.part.start_s >= 0 && u->cut.part.start_s < 1e9)) abort();
        if (u->cut.part.end_s != 0 && !(u->cut.part.end_s > u->cut.part.start_s)) abort();
        if (need_text && (!u->text || !*u->text)) abort();
        if (u->record && (*u->record != '{' || strpbrk(u->record, "\n"))) abort();
        if (u->text && (strpbrk(u->text, "\t\r\n") || strstr(u->text, "  "))) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    const unsigned long live = lin_memory_live();
    const int list = (data[0] & 1) | (data[0] >> 3 & 1), need_text = data[0] >> 1 & 1;
    const lin_datadir_options o = {"root/", need_text, data[0] >> 2 & 1};
    lin_datadir_file files[LIN_DATADIR_FILES];
    for (int i = 0; i < LIN_DATADIR_FILES; i++) files[i] = (lin_datadir_file){lin_datadir_names[i], NULL, 0};
    const char *at = (const char *)data + 1;
    size_t left = size - 1;
    for (int i = 0; i < LIN_DATADIR_FILES && at; i++) {
        const char *end = list || left == 0 ? NULL : memchr(at, 0xFF, left);
        files[i].bytes = at;
        files[i].n_bytes = end ? (size_t)(end - at) : left;
        left -= files[i].n_bytes + (end != NULL);
        at = end ? end + 1 : NULL;
    }
    lin_datadir *dir;
    lin_error err = {0};
    const lin_status status =
        list ? lin_datadir_parse_list(&files[0], &o, &dir, &err) : lin_datadir_parse(files, &o, &dir, &err);
    if ((status == LIN_OK) != (dir != NULL)) abort();
    if (status != LIN_OK && (err.status != status || !*err.message || strchr(err.message, '\n'))) abort();
    if (dir) use(dir, need_text);
    lin_datadir_destroy(dir);
    if (lin_memory_live() != live) abort();
    return 0;
}
