/* read_sound.h - the process that reads a file for another one of this program; see frontend/isolate.h. */
#ifndef LIN_SERVE_READ_SOUND_H
#define LIN_SERVE_READ_SOUND_H

/* Reads standard input, a regular file, and ends the program. name: for messages. */
_Noreturn void lin_read_sound(const char *name);

#endif
