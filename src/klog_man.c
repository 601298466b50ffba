/* SPDX-License-Identifier: Apache-2.0 */
/* Prints docs/man/klog.1 from the command table: src/klog-man > docs/man/klog.1 after changing a command. */
#include "src/cli.h"

int main(void)
{
    man_print(stdout, &klog_root);
    return ferror(stdout) != 0 || fflush(stdout) != 0;
}
