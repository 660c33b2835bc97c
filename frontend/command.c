// command.c - sound that a command of the shell writes; see lin_audio_open_command in audio.h.

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#ifndef __EMSCRIPTEN__
#include <spawn.h>
#endif
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "frontend/audio.h"

extern char **environ;

// `sh -c command` with no input and its output in a file. An errno.
static int start(const char *command, int to, pid_t *pid)
{
#ifdef __EMSCRIPTEN__ // which has no processes
    (void)command, (void)to, (void)pid;
    return ENOSYS;
#else
    char *argv[] = {"sh", "-c", (char *)command, NULL};
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!error) error = posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO);
    if (!error) error = posix_spawn(pid, "/bin/sh", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
#endif
}

// Until it has ended; a command that nobody waits for any longer is ended.
static lin_status wait_for(pid_t pid, const char *name, lin_error *err)
{
    int result = 0;
    for (;;) {
        const pid_t done = waitpid(pid, &result, WNOHANG);
        if (done == pid || (done < 0 && errno != EINTR)) break;
        if (lin_audio_is_stopped()) {
            kill(pid, SIGTERM);
            waitpid(pid, &result, 0);
            return lin_fail(err, LIN_STOPPED, "%.300s: interrupted", name);
        }
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    if (WIFSIGNALED(result)) return lin_fail(err, LIN_IO, "the command %.300s ended by signal %d", name, WTERMSIG(result));
    if (WEXITSTATUS(result) == 0) return LIN_OK;
    return lin_fail(err, LIN_IO, "the command %.300s failed with status %d", name, WEXITSTATUS(result));
}

// All of its output is stored first: then its status is known before any of it is used, and parts of it can be sought.
lin_status lin_audio_open_command(const char *command, const lin_pcm_format *raw, lin_audio **audio, lin_error *err)
{
    const char *folder;
    pid_t pid;
    *audio = NULL;
    const int to = lin_file_open_unnamed(&folder);
    if (to < 0) return lin_fail(err, LIN_IO, "cannot store the output of %.300s in %s: %s", command, folder, strerror(errno));
    const int error = start(command, to, &pid);
    lin_status status = error ? lin_fail(err, LIN_IO, "cannot run %.300s: %s", command, strerror(error))
                              : wait_for(pid, command, err);
    if (status == LIN_OK && lseek(to, 0, SEEK_END) == 0)
        status = lin_fail(err, LIN_FORMAT, "the command %.300s wrote nothing", command);
    if (status == LIN_OK) lseek(to, 0, SEEK_SET);
    if (status == LIN_OK) return lin_audio_adopt_fd(to, command, raw, audio, err);
    close(to);
    return status;
}
