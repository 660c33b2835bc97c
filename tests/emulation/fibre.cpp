// Stacks and the switch between them. On x86-64 a switch is a dozen instructions; elsewhere ucontext is used.
#include "tests/emulation/internal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#ifdef EMULATED_ASAN
#include <sanitizer/common_interface_defs.h>
enum { STACK_BYTES = 256 << 10 };
#else
enum { STACK_BYTES = 64 << 10 };
#endif

struct emulated_fibre {
    emulated_fibre *next; // in the list of unused ones
    char *stack;
    bool begun;
#if defined(__x86_64__)
    void *sp;
#else
    ucontext_t context;
#endif
    void *fake_stack; // AddressSanitizer's, kept while the fibre sleeps
};

static emulated_fibre *unused, *current;
static emulated_fibre host_fibre; // the stack of whoever launched
#ifdef EMULATED_ASAN
static const void *host_bottom;
static size_t host_bytes;
#endif

#if defined(__x86_64__)
extern "C" void emulated_switch_stacks(void **save, void *load);
asm(R"(
.text
.globl emulated_switch_stacks
.hidden emulated_switch_stacks
.type emulated_switch_stacks, @function
emulated_switch_stacks:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size emulated_switch_stacks, .-emulated_switch_stacks
)");
#endif

static void arrived(emulated_fibre *fibre)
{
#ifdef EMULATED_ASAN
    const void *bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(fibre->fake_stack, &bottom, &bytes);
    if (!host_bottom) { // the first switch of this launch is from the host
        host_bottom = bottom;
        host_bytes = bytes;
    }
#else
    (void)fibre;
#endif
}

static void enter(void)
{
    current->begun = true;
    arrived(current);
    emulated_fibre_body();
    abort();
}

// The top of the stack differs slightly between fibres, otherwise the frames of all would be in the same sets of the cache.
static void prepare(emulated_fibre *fibre)
{
    static unsigned made;
    const size_t shift = (made++ % 32) * 128;
#if defined(__x86_64__)
    void **top = (void **)(fibre->stack + STACK_BYTES - shift - 64);
    *--top = NULL; // where enter would return to
    *--top = (void *)enter;
    for (int i = 0; i < 6; i++) *--top = NULL;
    fibre->sp = top;
#else
    getcontext(&fibre->context);
    fibre->context.uc_stack.ss_sp = fibre->stack;
    fibre->context.uc_stack.ss_size = STACK_BYTES - shift;
    fibre->context.uc_link = NULL;
    makecontext(&fibre->context, enter, 0);
#endif
}

emulated_fibre *emulated_fibre_take(void)
{
    emulated_fibre *fibre = unused;
    if (fibre) {
        unused = fibre->next;
        return fibre;
    }
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    fibre = new emulated_fibre();
    char *block =
        (char *)mmap(NULL, page + STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED || mprotect(block, page, PROT_NONE) != 0) {
        fprintf(stderr, "emulation: no memory for the stack of a thread\n");
        abort();
    }
    fibre->stack = block + page;
    prepare(fibre);
    return fibre;
}

void emulated_fibre_give(emulated_fibre *fibre)
{
    fibre->next = unused;
    unused = fibre;
}

emulated_fibre *emulated_fibre_current(void) { return current; }

void emulated_fibre_switch(emulated_fibre *to)
{
    emulated_fibre *from = current ? current : &host_fibre, *into = to ? to : &host_fibre;
    current = to;
#ifdef EMULATED_ASAN
    if (!to) __sanitizer_start_switch_fiber(&from->fake_stack, host_bottom, host_bytes);
    else __sanitizer_start_switch_fiber(&from->fake_stack, to->stack, STACK_BYTES);
#endif
#if defined(__x86_64__)
    emulated_switch_stacks(&from->sp, into->sp);
#else
    swapcontext(&from->context, &into->context);
#endif
    arrived(from);
#ifdef EMULATED_ASAN
    if (from == &host_fibre) host_bottom = NULL; // the next launch may be on another thread of the host
#endif
}
