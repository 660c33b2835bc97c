// serve_page.c - the files of the page that linnet serve shows in a browser; see serve.h.

#include <string.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "linnet/find.h"
#include "serve/serve.h"

static const struct {
    const char *path, *name, *type;
} names[] = {
    {"/", "web/index.html", "text/html; charset=utf-8"},
    {"/teach.html", "web/teach.html", "text/html; charset=utf-8"},
    {"/teach.js", "web/teach.js", "text/javascript; charset=utf-8"},
    {"/reading.js", "web/reading.js", "text/javascript; charset=utf-8"},
    {"/style.css", "web/style.css", "text/css; charset=utf-8"},
    {"/page.js", "web/page.js", "text/javascript; charset=utf-8"},
    {"/controls.js", "web/controls.js", "text/javascript; charset=utf-8"},
    {"/stream.js", "web/stream.js", "text/javascript; charset=utf-8"},
    {"/view.js", "web/view.js", "text/javascript; charset=utf-8"},
    {"/sound.js", "web/sound.js", "text/javascript; charset=utf-8"},
    {"/formats.js", "web/formats.js", "text/javascript; charset=utf-8"},
    {"/capture.js", "web/capture.js", "text/javascript; charset=utf-8"},
};

enum { FILES = sizeof names / sizeof *names };

struct lin_page {
    char *text[FILES];
    size_t n[FILES];
};

lin_status lin_page_open(lin_page **page, lin_error *err)
{
    lin_page *p = lin_calloc(1, sizeof *p);
    *page = p;
    if (!p) return lin_no_memory(err, "the page", sizeof *p);
    for (int i = 0; i < FILES; i++) {
        char path[4096];
        lin_status status = LIN_OK;
        if (lin_find_file(names[i].name, path, sizeof path)) status = lin_text_read(path, &p->text[i], &p->n[i], err);
        if (status != LIN_OK) return status;
    }
    return LIN_OK;
}

void lin_page_close(lin_page *p)
{
    for (int i = 0; p && i < FILES; i++) lin_free(p->text[i]);
    lin_free(p);
}

const char *lin_page_find(const lin_page *p, const char *path, const char **type, size_t *n)
{
    for (int i = 0; i < FILES; i++) {
        if (strcmp(names[i].path, path) != 0 || !p->text[i]) continue;
        *type = names[i].type;
        *n = p->n[i];
        return p->text[i];
    }
    return NULL;
}
