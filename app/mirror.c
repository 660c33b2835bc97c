// mirror.c - names of the results below --output-dir; see mirror.h.

#include "app/mirror.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/common.h"
#include "base/memory.h"

// "/a/./b//../c" becomes "/a/c": empty parts and "." vanish, ".." takes its folder with it. In place; the path begins with '/'.
static void simplify(char *path)
{
    char *to = path;
    for (const char *at = path; *at;) {
        while (*at == '/') at++;
        const size_t n = strcspn(at, "/");
        if (n == 2 && at[0] == '.' && at[1] == '.') {
            while (to > path && *--to != '/') continue;
        } else if (n && !(n == 1 && *at == '.')) {
            *to++ = '/';
            memmove(to, at, n);
            to += n;
        }
        at += n;
    }
    *to = 0;
}

// An absolute path without "." and "..", released with lin_free; NULL where memory is short.
static char *absolute(const char *folder, const char *path)
{
    const size_t n = strlen(folder) + strlen(path) + 3;
    char *full = lin_alloc(n, 1);
    if (!full) return NULL;
    snprintf(full, n, "/%s/%s", *path == '/' ? "" : folder, path);
    simplify(full);
    return full;
}

static int leaves(const char *id)
{
    if (*id == '/') return 1;
    for (const char *at = id; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || !at[2])) return 1;
    }
    return 0;
}

// The length of the deepest folder that all paths share, including its '/'.
static size_t common_folder(char *const *paths, int n)
{
    const char *first = NULL;
    size_t common = 0;
    for (int i = 0; i < n; i++) {
        if (!paths[i]) continue;
        if (!first) {
            first = paths[i];
            common = (size_t)(lin_base_name(first) - first);
            continue;
        }
        size_t same = 0;
        for (size_t k = 0; k < common && paths[i][k] == first[k]; k++) {
            if (first[k] == '/') same = k + 1;
        }
        common = same;
    }
    return common;
}

static void cut_extension(char *name)
{
    char *base = name + (lin_base_name(name) - name), *dot = strrchr(base, '.');
    if (dot && dot != base) *dot = 0;
}

static int by_name(const void *a, const void *b)
{
    const lin_input *x = *(const lin_input *const *)a, *y = *(const lin_input *const *)b;
    const int order = strcmp(x->name, y->name);
    return order ? order : x < y ? -1 : x > y;
}

lin_status lin_mirror_check(const lin_inputs *in, lin_error *err)
{
    const lin_input **sorted = lin_alloc((size_t)in->n, sizeof *sorted);
    if (!sorted) return lin_no_memory(err, "the names of results", (size_t)in->n * sizeof *sorted);
    for (int i = 0; i < in->n; i++) sorted[i] = &in->items[i];
    qsort((void *)sorted, (size_t)in->n, sizeof *sorted, by_name);
    lin_status status = LIN_OK;
    for (int i = 1; i < in->n && status == LIN_OK; i++) {
        const lin_input *a = sorted[i - 1], *b = sorted[i];
        if (strcmp(a->name, b->name) != 0) continue;
        if (strcmp(a->path, b->path) == 0 && !lin_cut_is_part(&a->cut)) {
            status = lin_fail(err, LIN_INVALID, "%s is given twice", a->path);
        } else {
            status = lin_fail(err, LIN_INVALID,
                              "%.300s and %.300s would have the same result %s; rename one of them, or use an --output-dir for "
                              "each", a->path, b->path, a->name);
        }
    }
    lin_free((void *)sorted);
    return status;
}

// The length of the root, including its '/', with which every path begins; LIN_INVALID otherwise.
static lin_status root_folder(const lin_inputs *in, char *const *paths, const char *here, const char *root, size_t *length,
                              lin_error *err)
{
    char *folder = absolute(here, root);
    if (!folder) return lin_no_memory(err, "the names of results", strlen(root));
    const size_t n = strlen(folder);
    lin_status status = LIN_OK;
    for (int i = 0; i < in->n && status == LIN_OK; i++) {
        if (!paths[i] || (strncmp(paths[i], folder, n) == 0 && paths[i][n] == '/')) continue;
        status = lin_fail(err, LIN_INVALID, "%.300s is outside the --input-root %.300s", in->items[i].path, root);
    }
    lin_free(folder);
    *length = n + 1;
    return status;
}

static lin_status name_all(lin_inputs *in, const char *here, const char *root, char **full, lin_error *err)
{
    // ids of a data directory are names already, unless they are paths that lead out of the output folder
    for (int i = 0; i < in->n; i++) {
        lin_input *input = &in->items[i];
        const int is_id = i >= in->first_of_data && i < in->end_of_data;
        if (input->name) continue;
        if (strcmp(input->path, "-") == 0) {
            input->name = "stdin";
        } else if (is_id && !leaves(input->id)) {
            char *name = absolute("", input->id);
            if (!name || !(name = lin_inputs_own(in, name))) return lin_no_memory(err, "the names of results", strlen(input->id));
            input->name = name[0] ? name + 1 : "_";
        } else if (!(full[i] = absolute(here, is_id ? input->id : input->path))) {
            return lin_no_memory(err, "the names of results", strlen(input->path));
        } else if (!is_id) {
            cut_extension(full[i]);
        }
    }
    size_t common = 0;
    lin_status status = LIN_OK;
    if (root) status = root_folder(in, full, here, root, &common, err);
    else common = common_folder(full, in->n);
    if (status != LIN_OK) return status;
    for (int i = 0; i < in->n; i++) {
        if (!full[i]) continue;
        char *name = lin_inputs_own(in, lin_strdup(full[i] + common));
        if (!name) return lin_no_memory(err, "the names of results", strlen(full[i]));
        in->items[i].name = *name ? name : "_";
    }
    return LIN_OK;
}

lin_status lin_mirror_names(lin_inputs *in, const char *root, lin_error *err)
{
    char here[PATH_MAX];
    if (!getcwd(here, sizeof here)) here[0] = 0; // relative paths still differ
    char **full = lin_calloc((size_t)in->n, sizeof *full);
    if (!full) return lin_no_memory(err, "the names of results", (size_t)in->n * sizeof *full);
    lin_status status = name_all(in, here, root, full, err);
    for (int i = 0; i < in->n; i++) lin_free(full[i]);
    lin_free(full);
    return status;
}

/* ---- folders --------------------------------------------------------------------------------------------------------------- */

lin_status lin_mirror_folder(const char *file, lin_error *err)
{
    const size_t n = (size_t)(lin_base_name(file) - file);
    return lin_make_folders(file, n > 1 ? n - 1 : n, err);
}
