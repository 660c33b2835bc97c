// What each piece of the device's work moves and multiplies: LINNET_EMULATION_TRAFFIC=FILE appends a line per launch, product, copy
// and fill, in the order in which they run: name, bytes read, bytes written, operations of products, the format of their operands.
//
// Bytes are those of the pages that the work touches, each counted once, as if the cache held all of a launch's own data and none of
// the launch before: what a GPU with a large cache has to move at least. They are found by taking the access to all pages of the
// device away before each piece of work; every first access to a page then faults. A page that is first written and then read is not
// read from memory. Small blocks count as whole pages.
#include "tests/emulation/internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#if defined(__x86_64__) && defined(__linux__) && !defined(EMULATED_ASAN)
#include <ucontext.h>

enum { READ = 1, WRITTEN = 2 };

static const size_t PAGE = 4096;
static unsigned char *states; // a byte for each page of the arena
static size_t n_read, n_written;
static double operations;
static const char *format;
static bool counting;

static const char *file_name(void)
{
    static const char *name = getenv("LINNET_EMULATION_TRAFFIC");
    return name;
}

bool emulated_traffic_begin(void)
{
    size_t bytes;
    unsigned char *arena = emulated_arena(&bytes);
    if (!file_name() || !*file_name() || counting) return false;
    if (!states && arena) {
        void *made = mmap(NULL, EMULATED_ARENA / PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (made == MAP_FAILED) emulated_fail("no memory to count traffic");
        states = (unsigned char *)made;
    }
    if (arena) {
        memset(states, 0, bytes / PAGE);
        mprotect(arena, bytes, PROT_NONE);
    }
    n_read = n_written = 0;
    operations = 0;
    format = "-";
    counting = true;
    return true;
}

// In a signal handler.
bool emulated_traffic_fault(void *address, void *context)
{
    size_t bytes;
    unsigned char *arena = emulated_arena(&bytes), *at = (unsigned char *)address;
    if (!counting || at < arena || at >= arena + bytes) return false;
    const size_t page = (size_t)(at - arena) / PAGE;
    const bool write = ((const ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & 2; // of the page fault: x86's W bit
    if (write) {
        n_written++;
        states[page] |= WRITTEN;
    } else {
        n_read++;
        states[page] |= READ;
    }
    mprotect(arena + page * PAGE, PAGE, write ? PROT_READ | PROT_WRITE : PROT_READ);
    return true;
}

void emulated_traffic_operations(double count, const char *of)
{
    operations += count;
    format = of;
}

void emulated_traffic_end(const char *name)
{
    char line[1200];
    size_t bytes;
    unsigned char *arena = emulated_arena(&bytes);
    counting = false;
    if (arena) mprotect(arena, bytes, PROT_READ | PROT_WRITE);
    static const int file = open(file_name(), O_WRONLY | O_CREAT | O_APPEND, 0666);
    const int n = snprintf(line, sizeof line, "%s\t%zu\t%zu\t%.0f\t%s\n", name, n_read * PAGE, n_written * PAGE, operations, format);
    if (file < 0 || n < 0 || n >= (int)sizeof line || write(file, line, (size_t)n) != n) emulated_fail("cannot write %s", file_name());
}

#else

bool emulated_traffic_begin(void) { return false; }
bool emulated_traffic_fault(void *, void *) { return false; }
void emulated_traffic_operations(double, const char *) {}
void emulated_traffic_end(const char *) {}

#endif
