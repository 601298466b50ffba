# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completion of klog for bash. The words come from klog itself, which keeps one table of its commands and options; topics, groups
# and partitions come from the cluster, where one answers within a second; views are those of klogfs(8).
_klog_ask() { klog "$@" --timeout 1 2>/dev/null; }
_klog_topics() { _klog_ask ls; }
_klog_groups() { _klog_ask group list --json | sed -n 's/.*"group": *"\([^"]*\)".*/\1/p'; }
# or -> orders; orders: -> its partitions, of which bash completes what stands behind the colon
_klog_partitions() {
    local w
    case $1 in
    *:*) ;;
    *) _klog_topics; return ;;
    esac
    for w in $(_klog_ask ls "${1%%:*}"); do echo "${1%%:*}:${w#p}"; done
}
# orders/js -> orders/json/; orders/json/ -> its partitions, and the views that are left
_klog_paths() {
    local cur=$1 dir=${1%/*} w
    if [[ $cur != */* ]]; then
        for w in $(_klog_topics); do echo "$w/"; done
        return
    fi
    for w in $(_klog_ask ls "$dir") all any; do echo "$dir/$w"; done
    [[ /$dir/ == */json/* || /$dir/ == */tsv/* ]] || printf '%s\n' "$dir/json/" "$dir/tsv/"
    [[ /$dir/ == */follow/* ]] || echo "$dir/follow/"
}
_klog() {
    local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words=() w ask=--subcommands
    for w in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        [[ $w == -* ]] || words+=("$w")
    done
    if [[ $cur == -* ]]; then
        ask=--long-options
    else
        case "${words[0]-} ${words[1]-} $before" in
        "group reset -t" | "group reset --topic")
            mapfile -t COMPREPLY < <(compgen -W "$(_klog_topics)" -- "$cur")
            return
            ;;
        run\ *" -g" | run\ *" --group")
            mapfile -t COMPREPLY < <(compgen -W "$(_klog_groups)" -- "$cur")
            return
            ;;
        esac
        case "${words[0]-} ${words[1]-}" in
        trim\ *)
            mapfile -t COMPREPLY < <(compgen -W "$(_klog_partitions "$cur")" -- "$cur")
            return
            ;;
        cat\ * | tail\ * | append\ * | ls\ *)
            mapfile -t COMPREPLY < <(compgen -W "$(_klog_paths "$cur")" -- "$cur")
            [[ ${COMPREPLY[0]-} != */ ]] || compopt -o nospace 2>/dev/null
            return
            ;;
        offsets\ * | run\ * | "topic describe" | "topic alter" | "topic delete")
            mapfile -t COMPREPLY < <(compgen -W "$(_klog_topics)" -- "$cur")
            return
            ;;
        "group describe" | "group reset" | "group delete")
            mapfile -t COMPREPLY < <(compgen -W "$(_klog_groups)" -- "$cur")
            return
            ;;
        esac
    fi
    mapfile -t COMPREPLY < <(compgen -W "$(klog "${words[@]}" $ask 2>/dev/null)" -- "$cur")
}
complete -o default -F _klog klog
