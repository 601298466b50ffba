/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog, the command-line tool: what has to be set for the whole process, then the tree of commands. All else
 * is in the library beside, which the tests link too. Descriptors 0 to 2 are held open, so that no
 * connection gets such a number; SIGPIPE ends it quietly; SIGUSR1 and SIGUSR2 do nothing.
 */
#include <signal.h>

#include "lib/base/fsutil.h"
#include "src/cli.h"

static void on_stray(int sig)
{
    (void)sig;
}

/* They mean nothing, and must not end `klog run` in the middle of a record. A handler, since programs that are started
 * would inherit that they are ignored. */
static void survive(int sig)
{
    struct sigaction act = { .sa_handler = on_stray, .sa_flags = SA_RESTART };
    sigaction(sig, &act, NULL);
}

int main(int argc, char **argv)
{
    fs_hold_std_fds();
    signal(SIGPIPE, SIG_DFL); /* "klog dump FILE | head" ends quietly, as other tools do */
    survive(SIGUSR1);
    survive(SIGUSR2);
    return cli_main(&klog_root, argc, argv);
}
