/* version.h - the version of the program: that of the library. */
#ifndef LIN_APP_VERSION_H
#define LIN_APP_VERSION_H

#include "linnet/linnet.h"

#define LIN_VERSION LINNET_VERSION

#endif
