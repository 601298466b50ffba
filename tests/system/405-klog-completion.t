# SPDX-License-Identifier: Apache-2.0
# bash completes commands and options of klog.
requires klog
. "$SRCDIR/docs/klog.bash"
complete_words() {
    COMP_WORDS=("$@")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    _klog
    echo "${COMPREPLY[*]}"
}
has "commands" 'topic' "$(complete_words klog to)"
eq "below topic" "create" "$(complete_words klog topic cr)"
has "options" '--partitions' "$(complete_words klog topic create --par)"
