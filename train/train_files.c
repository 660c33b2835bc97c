// train_files.c - the folder of a training run: its lock, checkpoint, log, and the plot of the log. See train.h.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "base/unicode.h"
#include "model/model.h"
#include "train/lab/plot.h"
#include "train/train_internal.h"

lin_status lin_train_path(const lin_train_options *o, const char *name, char path[4096], lin_error *err)
{
    const int n = snprintf(path, 4096, "%s/%s", o->folder, name);
    return n < 0 || n >= 4096 ? lin_fail(err, LIN_INVALID, "the path of the run's folder is too long") : LIN_OK;
}

static const char remedy[] = "use an older copy of it, or start a new run from best.safetensors (--init) in another folder";

/* ---- the folder's lock ----------------------------------------------------------------------------------------------------- */

// "1234 on host": the holder of the lock, as it wrote itself down; "" if that cannot be read.
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
    lin_status status = lin_train_path(&named, "lock", path, err);
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
    snprintf(text, size, "%lld %lld %lld %a %a %lld %a %lld %lld %a %a %llu %llu %llu %llu %lld %lld %lld %lld", c->epoch,
             c->batch, c->step, c->lr_factor, c->best_per, c->epochs_since_best, c->loss_sum, c->label_sum, c->frame_sum,
             c->epoch_seconds, c->run_seconds, c->seed, c->data, c->content, c->dev, c->arc_begin, c->arc_end, c->utterances,
             c->frames);
}

// Refuses values that no run can reach.
int lin_train_parse_counters(const char *text, lin_train_counters *c)
{
    const long long most = 1LL << 53;
    const int n = sscanf(text, "%lld %lld %lld %la %la %lld %la %lld %lld %la %la %llu %llu %llu %llu %lld %lld %lld %lld",
                         &c->epoch, &c->batch, &c->step, &c->lr_factor, &c->best_per, &c->epochs_since_best, &c->loss_sum,
                         &c->label_sum, &c->frame_sum, &c->epoch_seconds, &c->run_seconds, &c->seed, &c->data, &c->content,
                         &c->dev, &c->arc_begin, &c->arc_end, &c->utterances, &c->frames);
    return n == 19 && c->arc_begin >= 0 && c->arc_begin <= c->epoch && c->arc_end >= 0 &&
           c->arc_end <= INT_MAX && c->epoch >= 0 && c->epoch <= INT_MAX && c->batch >= 0 && c->batch <= INT_MAX &&
           c->step >= 0 && c->step <= most && (c->step > 0 || c->batch == 0) && c->lr_factor > 0 && c->lr_factor <= 1 &&
           c->best_per >= -1 && isfinite(c->best_per) && c->epochs_since_best >= 0 && c->epochs_since_best <= c->epoch &&
           c->loss_sum >= 0 && isfinite(c->loss_sum) && c->label_sum >= 0 && c->label_sum <= most && c->frame_sum >= 0 &&
           c->frame_sum <= most && c->epoch_seconds >= 0 && isfinite(c->epoch_seconds) && c->run_seconds >= 0 &&
           isfinite(c->run_seconds) && c->utterances >= 0 && c->frames >= 0;
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
    LIN_TRY(lin_train_path(o, "checkpoint.safetensors", path, err));
    format_counters(c, counters, sizeof counters);
    lin_tensor tensors[] = {
        {.name = "train.m", .dtype = LIN_F32, .n_dims = 1, .shape = {opt->n_elements}, .data = opt->m},
        {.name = "train.v", .dtype = LIN_F32, .n_dims = 1, .shape = {opt->n_elements}, .data = opt->v},
        {.name = "train.average", .dtype = LIN_F32, .n_dims = 1, .shape = {opt->n_elements}, .data = opt->average}};
    lin_text texts[] = {{.key = "train.counters", .value = counters}};
    return lin_model_save_checkpoint(model, path, tensors, opt->average ? 3 : 2, texts, 1, err);
}

// Whether a run with this model can continue the saved one.
static lin_status check_saved(const lin_train_options *o, const char *path, const lin_model *saved, const lin_model *model,
                              lin_error *err)
{
    char held[64], wanted[64], how[256];
    lin_config_variant(&saved->config, held, sizeof held);
    lin_config_variant(&model->config, wanted, sizeof wanted);
    if (strcmp(held, wanted) != 0)
        return lin_fail(err, LIN_MISMATCH, "%s holds a network of kind %s, not %s; resume with the configuration that made it",
                        path, held, wanted);
    if (!lin_features_equal(&model->features, &saved->features))
        return lin_fail(err, LIN_MISMATCH,
                        "the caches have another filterbank than %s: %s; prepare them with the model's (linnet info names it)",
                        path, lin_features_difference(&model->features, &saved->features, how, sizeof how));
    if (!lin_config_same_shape(&saved->config, &model->config) || strcmp(saved->phones, model->phones) != 0 ||
        saved->speaker_norm != o->speaker_norm)
        return lin_fail(err, LIN_MISMATCH,
                        "%s holds a network of another shape or normalisation; resume with the configuration that made it", path);
    return LIN_OK;
}

static lin_status read_state(const char *path, const lin_checkpoint *from, const lin_model *saved, lin_optimizer *opt,
                             lin_train_counters *c, lin_error *err)
{
    const size_t n = opt->n_elements;
    const char *text = lin_safetensors_text(&from->file, "train.counters");
    if (!text) return lin_fail(err, LIN_FORMAT, "%s is a model, not a checkpoint of a training run", path);
    LIN_TRY(lin_checkpoint_read(from, "train.m", n, opt->m, err));
    LIN_TRY(lin_checkpoint_read(from, "train.v", n, opt->v, err));
    if (opt->average && lin_safetensors_find(&from->file, "train.average"))
        LIN_TRY(lin_checkpoint_read(from, "train.average", n, opt->average, err));
    else if (opt->average) memcpy(opt->average, saved->values, n * sizeof(float));
    LIN_TRY(check_moments(path, opt, err));
    if (lin_train_parse_counters(text, c)) return LIN_OK;
    return lin_fail(err, LIN_FORMAT, "%s is damaged: no training run writes the counters \"%.200s\"; %s", path,
                    lin_utf8_line(text), remedy);
}

lin_status lin_train_load(const lin_train_options *o, lin_model *model, lin_optimizer *opt, lin_train_counters *c, lin_error *err)
{
    const size_t D = (size_t)model->config.mel_bins * sizeof(float);
    char path[4096];
    lin_model *saved;
    lin_checkpoint from;
    LIN_TRY(lin_train_path(o, "checkpoint.safetensors", path, err));
    LIN_TRY(lin_model_load_checkpoint(path, &saved, &from, err));
    lin_status status = check_saved(o, path, saved, model, err);
    if (status == LIN_OK) status = read_state(path, &from, saved, opt, c, err);
    if (status == LIN_OK) {
        memcpy(model->values, saved->values, model->params.n_elements * sizeof(float));
        memcpy(model->mean, saved->mean, D);
        memcpy(model->istd, saved->istd, D);
        model->speaker_norm = saved->speaker_norm;
        model->delay_ms = saved->delay_ms;
        model->features.level_db = saved->features.level_db;
        opt->step = c->step;
    }
    lin_checkpoint_close(&from);
    lin_model_destroy(saved);
    return status;
}

/* ---- the plot -------------------------------------------------------------------------------------------------------------- */

// One finished epoch, or epoch 0: the model that the run began with. Values that were not measured are negative.
enum { LOSS, DEV_LOSS, DEV_PER, LR, COLUMNS };
typedef struct point {
    double epoch, values[COLUMNS];
} point;

enum { WIDTH = 760, HEIGHT = 480, LEFT = 74, RIGHT = 70, TOP = 84, MAIN = 232, GAP = 34, RATE = 62 };

static const char blue[] = "#1f5fa8", red[] = "#b8401c", green[] = "#3d7a2e";

static double most_of(const point *points, size_t n, int column)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) most = fmax(most, points[i].values[column]);
    return most;
}

static lin_status curve(lin_buffer *out, const lin_plot_panel *p, const point *points, size_t n, int column,
                        const lin_plot_style *style)
{
    lin_plot_point *places = lin_alloc(n, sizeof *places);
    if (!places) return LIN_NO_MEMORY;
    for (size_t i = 0; i < n; i++) {
        const double value = points[i].values[column], y = value >= 0 ? value : NAN;
        places[i] = (lin_plot_point){.x = points[i].epoch, .y = y, .low = y, .high = y};
    }
    lin_plot_curve(out, p, places, (int)n, style);
    lin_free(places);
    return LIN_OK;
}

// The epoch in best.safetensors: the lowest dev PER, not of tokens, else dev loss, else training loss.
static size_t best_of(const point *points, size_t n, int of_tokens, int *column)
{
    size_t best = n > 1 && points[0].epoch < 1;
    *column = LOSS;
    if (most_of(points, n, DEV_LOSS) > 0) *column = DEV_LOSS;
    if (most_of(points, n, DEV_PER) > 0 && !of_tokens) *column = DEV_PER;
    for (size_t i = best + 1; i < n; i++) {
        const double value = points[i].values[*column], before = points[best].values[*column];
        if (value >= 0 && (value < before || before < 0)) best = i;
    }
    return best;
}

static void put_best(lin_buffer *out, const lin_plot_panel *p, const point *best, int column, const char *color)
{
    const double x = lin_plot_x(p, best->epoch), y = lin_plot_y(p, best->values[column]);
    lin_buffer_format(out, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"#888\" stroke-dasharray=\"2 3\"/>\n", x, p->y, p->y + p->h);
    lin_buffer_format(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"6\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\"/>\n", x, y,
                      color);
}

static void put_head(lin_buffer *out, const char *title, const point *best, size_t n, int column)
{
    static const char *const names[] = {"training loss %.4f", "dev loss %.4f", "dev PER %.2f %%"};
    char value[64];
    lin_plot_begin(out, WIDTH, HEIGHT, title);
    lin_buffer_format(out, "<text x=\"%d\" y=\"28\" font-size=\"16\">Training of ", LEFT);
    lin_buffer_html(out, title, strlen(title));
    lin_buffer_text(out, "</text>\n");
    if (n == 0) return; // only epoch 0, or nothing
    snprintf(value, sizeof value, names[column], best->values[column]);
    lin_buffer_format(out, "<text x=\"%d\" y=\"48\" fill=\"#555\">%zu epoch%s; best %s, epoch %.0f</text>\n", LEFT, n,
                      n == 1 ? "" : "s", value, best->epoch);
}

static void fit(lin_plot_panel *p, double most, int ticks)
{
    p->up = (lin_plot_axis){.from = 0, .to = most > 1e-12 ? most : 1};
    lin_plot_fit(&p->up, ticks);
}

static lin_status draw(lin_buffer *out, const char *title, int of_tokens, const point *points, size_t n)
{
    static const lin_plot_style training = {.color = blue}, dev = {.color = blue, .dashes = "5 3", .hollow = 1},
                                errors = {.color = red}, lr = {.color = green};
    int column;
    const point none = {1, {-1, -1, -1, -1}}, *best = n ? &points[best_of(points, n, of_tokens, &column)] : &none;
    const size_t epochs = n - (n && points[0].epoch < 1);
    if (!n) column = LOSS;
    put_head(out, title, best, epochs, column);
    lin_plot_panel p = {.x = LEFT, .y = TOP, .w = WIDTH - LEFT - RIGHT, .h = MAIN};
    p.across = (lin_plot_axis){.from = n ? points[0].epoch : 1, .to = n ? points[n - 1].epoch : 2, .whole = 1};
    p.across.to = fmax(p.across.to, p.across.from + 1);
    p.across.step = fmax(1, lin_plot_step(p.across.to - p.across.from + 1, 8));
    const double dev_loss = most_of(points, n, DEV_LOSS), per = most_of(points, n, DEV_PER);
    lin_plot_panel right = p, rate = p;
    rate.y = TOP + MAIN + GAP;
    rate.h = RATE;
    fit(&p, fmax(most_of(points, n, LOSS), dev_loss), 5);
    fit(&right, per, 5);
    fit(&rate, most_of(points, n, LR), 2);
    lin_plot_axis_y(out, &p, LIN_PLOT_LEFT, blue, "loss (nats per phoneme)");
    if (per > 0) lin_plot_axis_y(out, &right, LIN_PLOT_RIGHT, red, "dev PER (%)");
    lin_plot_axis_y(out, &rate, LIN_PLOT_LEFT, green, "learning rate");
    lin_plot_axis_x(out, &p, 0, "");
    lin_plot_axis_x(out, &rate, 1, "epoch");
    lin_plot_key(out, LEFT, 66, "training loss", &training);
    if (dev_loss > 0) lin_plot_key(out, LEFT + 130, 66, "dev loss", &dev);
    if (per > 0) lin_plot_key(out, LEFT + 232, 66, "dev PER", &errors);
    lin_plot_key(out, LEFT + 332, 66, "learning rate", &lr);
    if (epochs) put_best(out, column == DEV_PER ? &right : &p, best, column, column == DEV_PER ? red : blue);
    lin_status status = curve(out, &p, points, n, LOSS, &training);
    if (status == LIN_OK && dev_loss > 0) status = curve(out, &p, points, n, DEV_LOSS, &dev);
    if (status == LIN_OK && per > 0) status = curve(out, &right, points, n, DEV_PER, &errors);
    if (status == LIN_OK) status = curve(out, &rate, points, n, LR, &lr);
    lin_plot_end(out);
    return status;
}

// Rejects values that no run writes, which would give unbounded axes.
static int drawable(const point *p)
{
    for (int i = 0; i < COLUMNS; i++)
        if (!(fabs(p->values[i]) <= 1e9)) return 0;
    return p->epoch >= 0 && p->epoch <= 1e9;
}

char *lin_curves_svg(const char *log, const char *title, int of_tokens)
{
    point *points = NULL;
    size_t n = 0, capacity = 0;
    lin_buffer out = {0};
    lin_status status = LIN_OK;
    for (const char *line = strchr(log, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        point p;
        if (sscanf(line + 1, "%lf %*f %lf %lf %lf %lf", &p.epoch, &p.values[LOSS], &p.values[DEV_LOSS], &p.values[DEV_PER],
                   &p.values[LR]) != 5) continue;
        if (!drawable(&p) || (n && p.epoch <= points[n - 1].epoch)) continue;
        status = lin_grow(&points, &capacity, n + 1, sizeof *points, "the training curves", NULL);
        if (status != LIN_OK) break;
        points[n++] = p;
    }
    if (status == LIN_OK) status = draw(&out, title, of_tokens, points, n);
    if (status == LIN_OK) status = lin_buffer_status(&out, NULL);
    lin_free(points);
    if (status != LIN_OK) lin_buffer_free(&out);
    return out.data;
}

/* ---- log ------------------------------------------------------------------------------------------------------------------- */

static const char log_head[] = "epoch\tstep\ttrain_loss\tdev_loss\tdev_per_percent\tlr\tgradient_norm\tframes_per_s\tseconds\n";

// Appends the lines of log.tsv for epochs up to `epoch`.
static lin_status keep_lines(const char *path, int epoch, lin_buffer *out, lin_error *err)
{
    char *text;
    size_t n;
    if (epoch < 0 || access(path, F_OK) != 0) return LIN_OK;
    LIN_TRY(lin_text_read(path, &text, &n, err));
    for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) // the last line may be incomplete
        if (*line >= '0' && *line <= '9' && strtol(line, NULL, 10) <= epoch)          // not the header, or a later epoch
            lin_buffer_bytes(out, line, (size_t)(end + 1 - line));
    lin_free(text);
    return LIN_OK;
}

lin_status lin_train_log(const lin_train_options *o, const lin_train_progress *p, int of_tokens, lin_error *err)
{
    char path[4096];
    lin_buffer out = {0};
    lin_status status = lin_train_path(o, "log.tsv", path, err);
    lin_buffer_text(&out, log_head);
    if (status == LIN_OK) status = keep_lines(path, p->epoch, &out, err);
    lin_buffer_format(&out, "%d\t%lld\t%.6f\t%.6f\t%.4f\t%.4g\t%.4g\t%.0f\t%.1f\n", p->epoch + 1, p->step, p->loss, p->dev_loss,
                      p->dev_per < 0 ? -1 : 100 * p->dev_per, p->lr, p->gradient_norm, p->frames_per_s, p->seconds);
    if (status == LIN_OK) status = lin_buffer_status(&out, err);
    if (status == LIN_OK) status = lin_file_write_all(path, out.data, out.n, err);
    if (status == LIN_OK) status = lin_train_path(o, "curves.svg", path, err);
    if (status == LIN_OK) {
        char *svg = lin_curves_svg(out.data, o->folder, of_tokens);
        status = svg ? lin_file_write_all(path, svg, strlen(svg), err) : lin_no_memory(err, "the training curves", 1);
        lin_free(svg);
    }
    lin_buffer_free(&out);
    return status;
}
