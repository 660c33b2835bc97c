// The readers of data directories and lists on any bytes. The first byte chooses: bit 0 a directory or a list, bit 1 transcripts
// needed or not. A directory's files, wav.scp, text and utt2spk, are separated by bytes 0xFF, which are never part of UTF-8.

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
        if (strpbrk(u->id, " \t\n") || !*u->speaker || !*u->audio || u->line < 1) abort();
        if (need_text && (!u->text || !*u->text)) abort();
        if (u->text && (strpbrk(u->text, "\t\r\n") || strstr(u->text, "  "))) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    const unsigned long live = lin_memory_live();
    const int list = data[0] & 1, need_text = data[0] >> 1 & 1;
    lin_datadir_file files[3] = {{"wav.scp", NULL, 0}, {"text", NULL, 0}, {"utt2spk", NULL, 0}};
    const char *at = (const char *)data + 1;
    size_t left = size - 1;
    for (int i = 0; i < 3 && at; i++) {
        const char *end = list || left == 0 ? NULL : memchr(at, 0xFF, left);
        files[i].bytes = at;
        files[i].n_bytes = end ? (size_t)(end - at) : left;
        left -= files[i].n_bytes + (end != NULL);
        at = end ? end + 1 : NULL;
    }
    lin_datadir *dir;
    lin_error err = {0};
    const lin_status status = list ? lin_datadir_parse_list(&files[0], "root", need_text, &dir, &err)
                                   : lin_datadir_parse(&files[0], &files[1], &files[2], "root/", need_text, &dir, &err);
    if ((status == LIN_OK) != (dir != NULL)) abort();
    if (status != LIN_OK && (err.status != status || !*err.message || strchr(err.message, '\n'))) abort();
    if (dir) use(dir, need_text);
    lin_datadir_destroy(dir);
    if (lin_memory_live() != live) abort();
    return 0;
}
