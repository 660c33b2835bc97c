// protocols.c - the table of the protocols of WebSockets; see protocols.h.

#include "serve/protocols.h"

#include <string.h>

static const lin_protocol *const protocols[] = {&lin_protocol_vosk, &lin_protocol_sherpa, &lin_protocol_linnet,
                                               &lin_protocol_realtime};

enum { PROTOCOLS = sizeof protocols / sizeof *protocols };

const lin_protocol *lin_protocol_at(int number) { return number >= 0 && number < PROTOCOLS ? protocols[number] : NULL; }

const lin_protocol *lin_protocol_find(const char *path, int root)
{
    if (!strcmp(path, "/")) return lin_protocol_at(root);
    for (int i = 0; i < PROTOCOLS; i++) {
        if (!strcmp(path, protocols[i]->path)) return protocols[i];
    }
    return NULL;
}
