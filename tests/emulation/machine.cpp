// Kernels as nvcc compiled them: with LINNET_EMULATION_PTX=DIR a launch runs the PTX of DIR/*.ptx on the machine of tests/ptx instead
// of the kernel's C++. All else stays: memory, streams, graphs, products, limits.
//
//   LINNET_EMULATION_PTX_COUNTS=FILE   appends a line per launch: the kernel's mangled name, then, separated by tabs, warp-instructions
//     of each class of tests/ptx/ptx.h, bytes read and written, sectors, wavefronts of shared memory, those by conflicts, warps, blocks.
//     The same columns end the lines that LINNET_EMULATION_TRAFFIC writes.
//   LINNET_EMULATION_PTX_WITHOUT=KERNEL,N   the N-th barrier, wait or syncwarp of this kernel (its mangled name) is left out, from 0
//
// The kernel of a launch is known by its address; its mangled name is in the symbols of the program or library that has it.
#include "tests/emulation/internal.h"

#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "tests/ptx/ptx.h"

struct ptx_text {
    char *text;
    size_t bytes;
    ptx_module *module; // NULL: not yet needed
};
static std::vector<ptx_text> sources;
static std::map<const void *, const ptx_kernel *> kernels;
static std::map<uintptr_t, std::string> names; // of the functions, by their addresses
static const char *counts_file;
static uint64_t launches;

// Kept to the end of the process.
static ptx_text read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat s;
    char *at = NULL;
    if (!file || fstat(fileno(file), &s) != 0 || !(at = (char *)malloc((size_t)s.st_size + 1)) ||
        fread(at, 1, (size_t)s.st_size, file) != (size_t)s.st_size)
        emulated_fail("cannot read %s", path);
    at[s.st_size] = 0;
    fclose(file);
    return {at, (size_t)s.st_size, NULL};
}

static void open_folder(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder) emulated_fail("LINNET_EMULATION_PTX: cannot read %s", path);
    while (const struct dirent *entry = readdir(folder)) {
        const std::string name = entry->d_name;
        if (name.size() < 5 || name.compare(name.size() - 4, 4, ".ptx") != 0) continue;
        sources.push_back(read_file((std::string(path) + "/" + name).c_str()));
    }
    closedir(folder);
    if (sources.empty()) emulated_fail("LINNET_EMULATION_PTX: no PTX in %s", path);
}

bool emulated_machine(void)
{
    static int on = -1;
    if (on < 0) {
        const char *path = getenv("LINNET_EMULATION_PTX");
        on = path && *path;
        counts_file = getenv("LINNET_EMULATION_PTX_COUNTS");
        if (on) open_folder(path);
    }
    return on;
}

// ---- names ------------------------------------------------------------------------------------------------------------------

// Symbols of the file, functions of internal linkage too: g++ mangles those with an L that nvcc does not write.
static void read_symbols(const char *path, uintptr_t base)
{
    const ptx_text file = read_file(path);
    const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)file.text;
    const ElfW(Shdr) *sections = (const ElfW(Shdr) *)(file.text + head->e_shoff);
    for (int s = 0; s < head->e_shnum; s++) {
        if (sections[s].sh_type != SHT_SYMTAB) continue;
        const ElfW(Sym) *symbols = (const ElfW(Sym) *)(file.text + sections[s].sh_offset);
        const char *strings = file.text + sections[sections[s].sh_link].sh_offset;
        for (size_t i = 0; i < sections[s].sh_size / sizeof *symbols; i++) {
            const char *name = strings + symbols[i].st_name;
            if ((symbols[i].st_info & 15) != STT_FUNC || strncmp(name, "_Z", 2) != 0) continue;
            const std::string plain = name[2] == 'L' ? std::string("_Z") + (name + 3) : name;
            names[base + symbols[i].st_value] = plain;
        }
    }
}

static const ptx_kernel *find_kernel(const void *function, const char *source)
{
    const auto found = kernels.find(function);
    if (found != kernels.end()) return found->second;
    Dl_info info;
    if (!dladdr(function, &info)) emulated_fail("%s: no file has this kernel", source);
    if (names.empty()) {
        const bool library = strstr(info.dli_fname, ".so") != NULL; // the file of a program may have been replaced since it began
        read_symbols(library ? info.dli_fname : "/proc/self/exe", (uintptr_t)info.dli_fbase);
    }
    const auto name = names.find((uintptr_t)function);
    if (name == names.end()) emulated_fail("%s: no symbol at its address", source);
    char why[PTX_WHY] = "";
    const std::string entry = ".entry " + name->second + "(";
    for (ptx_text &from : sources) {
        if (!memmem(from.text, from.bytes, entry.data(), entry.size())) continue;
        if (!from.module && !(from.module = ptx_open(from.text, from.bytes, why))) emulated_fail("%s", why);
        ptx_kernel *kernel = ptx_find(from.module, name->second.c_str(), why);
        if (!kernel) emulated_fail("%s", why);
        const char *without = getenv("LINNET_EMULATION_PTX_WITHOUT"), *comma = without ? strrchr(without, ',') : NULL;
        if (comma && name->second == std::string(without, (size_t)(comma - without))) {
            const int left_out = ptx_remove_sync(kernel, atoi(comma + 1), why);
            if (!left_out) emulated_fail("%s has not as many barriers, waits and syncwarps", name->second.c_str());
            fprintf(stderr, "ptx: left out: %s\n", why);
        }
        return kernels[function] = kernel;
    }
    emulated_fail("%s: no PTX has %s", source, name->second.c_str());
}

// ---- memory -----------------------------------------------------------------------------------------------------------------

void emulated_machine_add(const void *first, size_t bytes, bool written)
{
    if (emulated_machine() && !ptx_memory_add(first, bytes, written)) emulated_fail("no memory to check memory");
}

void emulated_machine_remove(const void *first)
{
    if (emulated_machine()) ptx_memory_remove(first);
}

void emulated_machine_mark(const void *first, size_t bytes, bool written)
{
    if (emulated_machine()) ptx_memory_mark(first, bytes, written);
}

// ---- launches ---------------------------------------------------------------------------------------------------------------

static std::string columns, counted; // of the last launch, and its name

static void note_counts(const emulated_grid &g, const ptx_counts &c)
{
    char number[64];
    const uint64_t others[] = {c.read, c.written, c.sectors, c.wavefronts, c.conflicts, c.warps, c.blocks};
    columns.clear();
    for (uint64_t n : c.instructions) {
        snprintf(number, sizeof number, "\t%llu", (unsigned long long)n);
        columns += number;
    }
    for (uint64_t n : others) {
        snprintf(number, sizeof number, "\t%llu", (unsigned long long)n);
        columns += number;
    }
    counted = g.name;
    if (!counts_file || !*counts_file) return;
    static const int file = open(counts_file, O_WRONLY | O_CREAT | O_APPEND, 0666);
    const std::string line = names[(uintptr_t)g.kernel] + columns + "\n";
    if (file < 0 || write(file, line.data(), line.size()) != (ssize_t)line.size()) emulated_fail("cannot write %s", counts_file);
}

const char *emulated_machine_columns(const char *name) { return counted == name ? columns.c_str() : ""; }

void emulated_machine_run(const emulated_grid &g)
{
    const ptx_kernel *kernel = find_kernel(g.kernel, g.name);
    std::vector<const void *> values((size_t)g.n_arguments);
    std::vector<size_t> sizes((size_t)g.n_arguments);
    g.arguments(values.data(), sizes.data());
    ptx_launch launch = {};
    ptx_counts counts = {};
    char why[PTX_WHY];
    launch.kernel = kernel;
    const unsigned grid[3] = {g.grid.x, g.grid.y, g.grid.z}, block[3] = {g.block.x, g.block.y, g.block.z};
    memcpy(launch.grid, grid, sizeof grid);
    memcpy(launch.block, block, sizeof block);
    launch.shared_bytes = g.shared_bytes;
    launch.values = values.data();
    launch.sizes = sizes.data();
    launch.n = g.n_arguments;
    launch.together = g.together;
    launch.seed = (uint64_t)emulated_setting(EMULATION_SEED) + 1000003 * launches++;
    const char *traffic = getenv("LINNET_EMULATION_TRAFFIC");
    const bool counting = (counts_file && *counts_file) || (traffic && *traffic);
    if (!ptx_run(&launch, counting ? &counts : NULL, why)) {
        fflush(stdout);
        fprintf(stderr, "ptx: error: %s\n", why);
        abort();
    }
    static int told;
    if (ptx_removed_reached && !told++) fprintf(stderr, "ptx: the place was reached\n");
    if (counting) note_counts(g, counts);
    if (counts.instructions[PTX_TENSOR]) emulated_traffic_operations(2.0 * 16 * 8 * 8 * (double)counts.instructions[PTX_TENSOR], "tf32");
}
