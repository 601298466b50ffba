/* SPDX-License-Identifier: Apache-2.0 */
/* klog, the command-line tool. All of it is in the library beside, which the tests link too. */
#include <signal.h>

#include "lib/base/fsutil.h"
#include "src/cli.h"

int main(int argc, char **argv)
{
    fs_hold_std_fds();
    signal(SIGPIPE, SIG_DFL); /* "klog dump FILE | head" ends quietly, as other tools do */
    return cli_main(&klog_root, argc, argv);
}
