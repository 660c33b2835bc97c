/*
 * arm64_count.c - a plugin for qemu-aarch64 that counts the instructions that a program executes, by function. Made and run by
 * arm64.sh. Threads are counted together, without locks: use one.
 *
 * Declares what it uses of QEMU's plugin interface (version 1, docs/devel/tcg-plugins), whose header no package of Debian 12 has.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef uint64_t plugin_id;
enum { ADD_U64 = 0, API_VERSION = 1 };
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
const char *qemu_plugin_insn_symbol(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*translated)(plugin_id id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, int operation, void *counter, uint64_t add);
void qemu_plugin_register_atexit_cb(plugin_id id, void (*end)(plugin_id id, void *context), void *context);

API int qemu_plugin_version = API_VERSION;

enum { MOST = 4096 };
static struct {
    char name[64];
    uint64_t count;
} functions[MOST] = {{"(libraries, and functions beyond the table)", 0}};
static int n = 1;

static void translated(plugin_id id, struct qemu_plugin_tb *tb)
{
    (void)id;
    const char *name = qemu_plugin_insn_symbol(qemu_plugin_tb_get_insn(tb, 0));
    int i = 0;
    if (name && *name)
        for (i = n - 1; i > 0 && strncmp(functions[i].name, name, sizeof functions->name - 1) != 0; i--) {}
    if (name && *name && i == 0 && n < MOST) snprintf(functions[i = n++].name, sizeof functions->name, "%s", name);
    qemu_plugin_register_vcpu_tb_exec_inline(tb, ADD_U64, &functions[i].count, qemu_plugin_tb_n_insns(tb));
}

static void end(plugin_id id, void *context)
{
    (void)id;
    (void)context;
    FILE *f = fopen(getenv("ARM64_COUNTS"), "w");
    for (int i = 0; f && i < n; i++)
        if (functions[i].count) fprintf(f, "%" PRIu64 "\t%s\n", functions[i].count, functions[i].name);
    if (f) fclose(f);
}

API int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv);
API int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
    (void)info;
    (void)argc;
    (void)argv;
    if (!getenv("ARM64_COUNTS")) return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, end, NULL);
    return 0;
}
