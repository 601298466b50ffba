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

# what the cluster has
klogd_start
topic orders 3
topic other
eq "topics of paths" "orders/ other/" "$(complete_words klog cat o | xargs)"
eq "partitions and names" "orders/p0 orders/p1 orders/p2" "$(complete_words klog cat orders/p | xargs)"
eq "views" "orders/json/" "$(complete_words klog tail -f orders/j)"
eq "views in views" "orders/json/follow/" "$(complete_words klog cat orders/json/f)"
eq "a view is there once" "" "$(complete_words klog cat orders/json/j)"
eq "and one form" "" "$(complete_words klog cat orders/json/t)"
eq "all" "orders/json/all orders/json/any" "$(complete_words klog cat orders/json/a | xargs)"
eq "topics" "orders other" "$(complete_words klog topic describe o | xargs)"
status 0 klog group reset billing -t orders --to-latest --execute
eq "groups" "billing" "$(complete_words klog group describe b)"
eq "groups of run" "billing" "$(complete_words klog run orders -g b)"
eq "topics of run" "orders" "$(complete_words klog run or)"
eq "topics of a reset" "orders other" "$(complete_words klog group reset billing -t o | xargs)"
eq "partitions" "orders:0 orders:1 orders:2" "$(complete_words klog trim orders: | xargs)"
eq "topics to trim" "orders other" "$(complete_words klog trim o | xargs)"
