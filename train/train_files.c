// The folder of a training run: its lock, checkpoint, log.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "model/model_file.h"
#include "train/train_internal.h"

static lin_status path_in(const lin_train_options *o, const char *name, char *path, size_t size, lin_error *err)
{
    const int n = snprintf(path, size, "%s/%s", o->folder, name);
    return n < 0 || (size_t)n >= size ? lin_fail(err, LIN_INVALID, "the path of the run's folder is too long") : LIN_OK;
}

static const char remedy[] = "use an older copy of it, or start a new run from best.safetensors (--init) in another folder";

/* ---- the folder's lock ----------------------------------------------------------------------------------------------------- */

// "1234 on host": the holder of the lock, in its own words; "" if it cannot be read.
static void read_holder(int fd, char text[128])
{
    const ssize_t n = pread(fd, text, 127, 0);
    text[n > 0 ? n : 0] = 0;
    text[strcspn(text, "\n")] = 0;
}

lin_status lin_train_lock(const char *folder, int *lock, lin_error *err)
{
    char path[4096], text[128], host[80] = "";
    *lock = -1;
    const lin_train_options named = {.folder = folder};
    lin_status status = path_in(&named, "lock", path, sizeof path, err);
    if (status != LIN_OK) return status;
    const int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) return lin_fail(err, LIN_IO, "cannot write %s: %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) {
            read_holder(fd, text);
            status =
                lin_fail(err, LIN_IO, "another trainer is running in %s%s%s%s; wait until it ends, or choose another --folder",
                         folder, *text ? " (process " : "", lin_utf8_line(text), *text ? ")" : "");
        }
        close(fd);
        return status;
    }
    gethostname(host, sizeof host - 1);
    const int n = snprintf(text, sizeof text, "%ld on %s\n", (long)getpid(), host);
    // the name of the holder is only for messages
    if (ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)n, 0) != n) errno = 0;
    *lock = fd;
    return LIN_OK;
}

void lin_train_unlock(int lock)
{
    if (lock >= 0) close(lock);
}

/* ---- checkpoint ------------------------------------------------------------------------------------------------------------ */

// One text per counter; %a keeps every bit of a double.
static void format_counters(const lin_train_counters *c, char *text, size_t size)
{
    snprintf(text, size, "%lld %lld %lld %a %a %lld %a %lld %lld %a %a %llu %llu %llu %llu %lld %lld", c->epoch, c->batch,
             c->step, c->lr_factor, c->best_per, c->epochs_since_best, c->loss_sum, c->label_sum, c->frame_sum, c->epoch_seconds,
             c->run_seconds, c->seed, c->data, c->content, c->dev, c->arc_begin, c->arc_end);
}

// The last four are missing in checkpoints of format version 1, the last two in those of linnet 0.2. Refuses values that no run
// can have counted.
int lin_train_parse_counters(const char *text, lin_train_counters *c)
{
    const long long most = 1LL << 53;
    c->content = c->dev = 0;
    c->arc_begin = c->arc_end = 0;
    const int n =
        sscanf(text, "%lld %lld %lld %la %la %lld %la %lld %lld %la %la %llu %llu %llu %llu %lld %lld", &c->epoch, &c->batch,
               &c->step, &c->lr_factor, &c->best_per, &c->epochs_since_best, &c->loss_sum, &c->label_sum, &c->frame_sum,
               &c->epoch_seconds, &c->run_seconds, &c->seed, &c->data, &c->content, &c->dev, &c->arc_begin, &c->arc_end);
    return (n == 13 || n == 15 || n == 17) && c->arc_begin >= 0 && c->arc_begin <= c->epoch && c->arc_end >= 0 &&
           c->arc_end <= INT_MAX && c->epoch >= 0 && c->epoch <= INT_MAX && c->batch >= 0 && c->batch <= INT_MAX &&
           c->step >= 0 && c->step <= most && (c->step > 0 || c->batch == 0) && c->lr_factor > 0 && c->lr_factor <= 1 &&
           c->best_per >= -1 && isfinite(c->best_per) && c->epochs_since_best >= 0 && c->epochs_since_best <= c->epoch &&
           c->loss_sum >= 0 && isfinite(c->loss_sum) && c->label_sum >= 0 && c->label_sum <= most && c->frame_sum >= 0 &&
           c->frame_sum <= most && c->epoch_seconds >= 0 && isfinite(c->epoch_seconds) && c->run_seconds >= 0 &&
           isfinite(c->run_seconds);
}

// No gradient accepted in training gives moments outside these bounds.
static int possible(float m, float v) { return fabsf(m) < 1e15F && v >= 0 && v < 1e30F; } // false for NaN

static lin_status check_moments(const char *path, const lin_optimizer *opt, lin_error *err)
{
    for (size_t i = 0; i < opt->n_elements; i++) {
        if (opt->average && !possible(opt->average[i], 0))
            return lin_fail(err, LIN_FORMAT, "%s is damaged: element %zu of the averaged weights is %g; %s", path, i,
                            (double)opt->average[i], remedy);
        if (!possible(opt->m[i], opt->v[i]))
            return lin_fail(err, LIN_FORMAT, "%s is damaged: element %zu of the optimiser's moments is %g and %g; %s", path, i,
                            (double)opt->m[i], (double)opt->v[i], remedy);
    }
    return LIN_OK;
}

lin_status lin_train_save(const lin_train_options *o, const lin_model *model, const lin_optimizer *opt,
                          const lin_train_counters *c, lin_error *err)
{
    char path[4096], counters[512];
    lin_status status = path_in(o, "checkpoint.safetensors", path, sizeof path, err);
    if (status != LIN_OK) return status;
    format_counters(c, counters, sizeof counters);
    lin_tensor tensors[] = {
        {.name = "train.m", .dtype = LIN_F32, .n_dims = 1, .shape = {opt->n_elements}, .data = opt->m},
        {.name = "train.v", .dtype = LIN_F32, .n_dims = 1, .shape = {opt->n_elements}, .data = opt->v},
        {.name = "train.average", .dtype = LIN_F32, .n_dims = 1, .shape = {opt->n_elements}, .data = opt->average}};
    lin_text texts[] = {{.key = "train.counters", .value = counters}};
    const lin_extras extras = {.n_tensors = opt->average ? 3 : 2, .tensors = tensors, .n_texts = 1, .texts = texts};
    return lin_model_save_extras(model, path, LIN_F32, &extras, err);
}

lin_status lin_train_load(const lin_train_options *o, lin_model *model, lin_optimizer *opt, lin_train_counters *c, lin_error *err)
{
    char path[4096];
    lin_status status = path_in(o, "checkpoint.safetensors", path, sizeof path, err);
    if (status != LIN_OK) return status;
    lin_model *saved;
    lin_extras extras;
    status = lin_model_load_extras(path, &saved, &extras, err);
    if (status != LIN_OK) return status;
    const size_t D = (size_t)model->config.mel_bins;
    char held[64], wanted[64];
    lin_config_variant(&saved->config, held, sizeof held);
    lin_config_variant(&model->config, wanted, sizeof wanted);
    if (strcmp(held, wanted) != 0)
        status = lin_fail(err, LIN_MISMATCH, "%s holds a network of kind %s, not %s; resume with the configuration that made it",
                          path, held, wanted);
    else if (!lin_config_same_shape(&saved->config, &model->config) || strcmp(saved->phones, model->phones) != 0 ||
        saved->speaker_norm != o->speaker_norm)
        status =
            lin_fail(err, LIN_MISMATCH,
                     "%s holds a network of another shape or normalisation; resume with the configuration that made it", path);
    if (status == LIN_OK) status = lin_extras_read(&extras, "train.m", LIN_F32, opt->n_elements, opt->m, err);
    if (status == LIN_OK) status = lin_extras_read(&extras, "train.v", LIN_F32, opt->n_elements, opt->v, err);
    if (status == LIN_OK && opt->average) {
        if (lin_extras_has(&extras, "train.average"))
            status = lin_extras_read(&extras, "train.average", LIN_F32, opt->n_elements, opt->average, err);
        else memcpy(opt->average, saved->values, opt->n_elements * sizeof(float));
    }
    const char *text = lin_extras_text(&extras, "train.counters");
    if (status == LIN_OK && !text) status = lin_fail(err, LIN_FORMAT, "%s is a model, not a checkpoint of a training run", path);
    if (status == LIN_OK) status = check_moments(path, opt, err);
    if (status == LIN_OK && !lin_train_parse_counters(text, c))
        status = lin_fail(err, LIN_FORMAT, "%s is damaged: no training run writes the counters \"%.200s\"; %s", path,
                          lin_utf8_line(text), remedy);
    if (status == LIN_OK) {
        memcpy(model->values, saved->values, model->params.n_elements * sizeof(float));
        memcpy(model->mean, saved->mean, D * sizeof(float));
        memcpy(model->istd, saved->istd, D * sizeof(float));
        model->speaker_norm = saved->speaker_norm;
        model->delay_ms = saved->delay_ms;
        opt->step = c->step;
    }
    lin_extras_free(&extras);
    lin_model_destroy(saved);
    return status;
}

/* ---- log ------------------------------------------------------------------------------------------------------------------- */

static const char log_head[] = "epoch\tstep\ttrain_loss\tdev_loss\tdev_per_percent\tlr\tgradient_norm\tframes_per_s\tseconds\n";
// Up to linnet 0.2 the PER was a part of 1, under another name.
static const char old_head[] = "epoch\tstep\ttrain_loss\tdev_loss\tdev_per\t";

// Appends a line; of an old log its PER, the fifth field, becomes per cent. `to` has room for EXTRA more bytes than the line.
enum { EXTRA = 16 };
static size_t copy_line(char *to, const char *line, size_t length, int old)
{
    size_t at = 0, end;
    for (int field = 0; field < 4 && at < length; at++) field += line[at] == '\t';
    for (end = at; end < length && line[end] != '\t' && line[end] != '\n'; end++) continue;
    char value[32] = "";
    if (end - at < sizeof value) memcpy(value, line + at, end - at);
    const double per = strtod(value, NULL);
    if (!old || !(per > 0 && per < 1e6)) return memcpy(to, line, length), length;
    memcpy(to, line, at);
    const size_t n = at + (size_t)sprintf(to + at, "%.4f", 100 * per);
    memcpy(to + n, line + end, length - end);
    return n + length - end;
}

// The lines of log.tsv for epochs before `epoch`, with the header; *text is released with lin_free.
static lin_status kept_lines(const char *path, int epoch, size_t room, char **text, lin_error *err)
{
    lin_file_map map = {0};
    FILE *exists = epoch >= 0 ? fopen(path, "r") : NULL;
    if (exists) {
        fclose(exists);
        lin_status status = lin_file_map_open(path, &map, err);
        if (status != LIN_OK) return status;
    }
    const int old = map.size > sizeof old_head && memcmp(map.bytes, old_head, sizeof old_head - 1) == 0;
    size_t lines = 0;
    for (size_t i = 0; old && i < map.size; i++) lines += ((const char *)map.bytes)[i] == '\n';
    char *kept = lin_alloc(map.size + lines * EXTRA + sizeof log_head + room, 1);
    if (!kept) {
        if (exists) lin_file_map_close(&map);
        return lin_no_memory(err, "the training log", map.size);
    }
    size_t n = sizeof log_head - 1;
    memcpy(kept, log_head, n);
    const char *line = (const char *)map.bytes;
    for (size_t left = map.size; left > 0;) {
        const char *end = memchr(line, '\n', left);
        const size_t length = end ? (size_t)(end - line) + 1 : left;
        char number[16] = {0};
        memcpy(number, line, length < 15 ? length : 15);
        const long e = strtol(number, NULL, 10);
        if (end && *number >= '0' && *number <= '9' && e <= epoch) n += copy_line(kept + n, line, length, old); // not the header
        line += length;
        left -= length;
    }
    kept[n] = 0;
    if (exists) lin_file_map_close(&map);
    *text = kept;
    return LIN_OK;
}

lin_status lin_train_log(const lin_train_options *o, const lin_train_progress *p, lin_error *err)
{
    char path[4096], *text = NULL;
    enum { ROOM = 512 };
    lin_status status = path_in(o, "log.tsv", path, sizeof path, err);
    if (status == LIN_OK) status = kept_lines(path, p->epoch, ROOM, &text, err);
    if (status != LIN_OK) return status;
    const size_t n = strlen(text);
    snprintf(text + n, ROOM, "%d\t%lld\t%.6f\t%.6f\t%.4f\t%.4g\t%.4g\t%.0f\t%.1f\n", p->epoch + 1, p->step, p->loss, p->dev_loss,
             p->dev_per < 0 ? -1 : 100 * p->dev_per, p->lr, p->gradient_norm, p->frames_per_s, p->seconds);
    status = lin_file_write_all(path, text, strlen(text), err);
    if (status == LIN_OK) status = path_in(o, "curves.svg", path, sizeof path, err);
    if (status == LIN_OK) {
        char *svg = lin_curves_svg(text, o->folder);
        status = svg ? lin_file_write_all(path, svg, strlen(svg), err) : lin_no_memory(err, "the training curves", 1);
        lin_free(svg);
    }
    lin_free(text);
    return status;
}
