// web_load.c - opens the library with the network side of linnet serve; see web.h.

#include <dlfcn.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/system.h"
#include "serve/web.h"

#define LIBRARY "liblinnet_web.so"

lin_status lin_web_load(const lin_web_transport **transport, lin_error *err)
{
    char found[PATH_MAX + 64];
    lin_web_interface_function interface;
    lin_web_get_function get;
    const char *path = lin_system_plugin("LINNET_WEB_LIBRARY", LIBRARY, found, sizeof found), *slash = strchr(path, '/');
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const int there = slash && access(path, F_OK) == 0;
        const char *why = dlerror();
        return lin_fail(err, LIN_UNSUPPORTED, "%s cannot be opened: %s; %s", LIBRARY, why ? why : "no reason given",
                        there ? "install libwebsockets"
                              : "install libwebsockets (Debian: libwebsockets-dev) and build linnet again, with make");
    }
    if (!lin_system_symbol(library, "lin_web_interface", &interface) || !lin_system_symbol(library, "lin_web_get", &get))
        return lin_fail(err, LIN_UNSUPPORTED, "%s is not a network library of linnet", path);
    if (interface() != LIN_WEB_INTERFACE)
        return lin_fail(err, LIN_UNSUPPORTED, "%s was built for another version of linnet: build both together", path);
    *transport = get();
    return LIN_OK;
}
