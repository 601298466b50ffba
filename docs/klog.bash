# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completion of klog for bash. The words come from klog itself, which keeps one table of its commands and options.
_klog() {
    local cur=${COMP_WORDS[COMP_CWORD]} words=() w ask=--subcommands
    for w in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        [[ $w == -* ]] || words+=("$w")
    done
    [[ $cur != -* ]] || ask=--long-options
    mapfile -t COMPREPLY < <(compgen -W "$(klog "${words[@]}" $ask 2>/dev/null)" -- "$cur")
}
complete -o default -F _klog klog
