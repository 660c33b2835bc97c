/* version.h - the version of the program. */
#ifndef LIN_APP_VERSION_H
#define LIN_APP_VERSION_H

#define LIN_VERSION "0.2.0"

#endif
