#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The arrows of docs/ARCHITECTURE.md. A folder may use itself and what stands after its colon, nothing else: on every
# #include line, and, where there are built objects (BUILDDIR, which `make check` sets), by every symbol, so that a call up
# through a declaration of one's own is seen too. Prints each place that points the wrong way.
set -u
cd "${srcdir:-.}" || exit 99

lib='lib/base lib/wire lib/record lib/store lib/loop'
# The folder itself, not what is below it and has a row of its own.
arrows="
lib/base:
lib/wire: lib/base
lib/record: lib/base
lib/loop: lib/base
lib/store: lib/base lib/record
lib/client: lib/base lib/wire lib/record lib/loop
fuse: lib/base lib/wire lib/record lib/loop lib/client
fuse/text: lib/base lib/record
fuse/base: fuse/text lib/base lib/wire lib/loop lib/client
fuse/cluster: fuse/base lib/base lib/wire lib/client
fuse/partition: fuse/cluster fuse/text fuse/base lib/base lib/wire lib/client
fuse/tree: fuse/partition fuse/cluster fuse/base lib/base
fuse/file: fuse/tree fuse/partition fuse/cluster fuse/text fuse/base lib/base
fuse/page: fuse/tree fuse/partition fuse/cluster fuse/base lib/base
fuse/group: fuse/page fuse/tree fuse/partition fuse/cluster fuse/base lib/base lib/record lib/client
src: lib/base lib/wire lib/record lib/store lib/loop lib/client
daemon/config: $lib
daemon/storage: daemon/config $lib
daemon/replica: daemon/storage daemon/config $lib
daemon/meta: daemon/replica daemon/storage daemon/config $lib
daemon/group: daemon/meta daemon/replica daemon/config $lib
daemon/upkeep: daemon/meta daemon/replica daemon/storage daemon/config $lib
daemon/server: daemon/config $lib
daemon/api: daemon/server daemon/group daemon/meta daemon/replica daemon/storage daemon/config $lib
daemon: daemon/api daemon/server daemon/upkeep daemon/group daemon/meta daemon/replica daemon/storage daemon/config $lib
"
bad=0
complain() {
    echo "$1"
    bad=1
}

# awk: may(from, to) by folders, folder_of(path): the row that a file belongs to, "" for none.
rules='
    BEGIN {
        n = split(arrows, rows, "\n")
        for (i = 1; i <= n; i++) {
            if (split(rows[i], side, ":") < 2)
                continue
            row[side[1]] = allowed[side[1], side[1]] = 1
            m = split(side[2], to, " ")
            for (k = 1; k <= m; k++)
                allowed[side[1], to[k]] = 1
        }
    }
    function folder_of(path) {
        while (sub(/\/[^\/]*$/, "", path))
            if (path in row)
                return path
        return ""
    }
    function may(from, to) { return (from, to) in allowed }'

# ---- includes: "file:line:text" ----
wrong=$(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"' --include='*.[ch]' --include='*.def' lib daemon fuse src |
    awk -v arrows="$arrows" "$rules"'
    {
        split($0, at, ":")
        from = folder_of(at[1])
        match($0, /"[^"]*"/)
        target = substr($0, RSTART + 1, RLENGTH - 2)
        if (from != "" && !may(from, folder_of(target)))
            print at[1] ":" at[2] ": " from " must not include \"" target "\""
    }')
[ -z "$wrong" ] || complain "$wrong"

# ---- symbols: "object: name type ..." ----
# An object without its source is of an earlier build.
objects() {
    local o name
    find lib daemon fuse src -name '*.o' 2>/dev/null | while read -r o; do
        name=${o##*/}
        name=${name##*-}
        name=${name%.o}.c
        [ -e "$source/${o%/*}/$name" ] || [ -e "${o%/*}/$name" ] && echo "$o"
    done
}
source=$PWD
wrong=$(cd "${BUILDDIR:-.}" && objects | sort | xargs -r "${NM:-nm}" -A -g -P 2>/dev/null |
    awk -v arrows="$arrows" "$rules"'
    {
        sub(/:$/, "", $1)
        from = folder_of($1)
        if (from == "")
            next
        if ($3 != "U" && $3 != "w" && $3 != "v") {
            defined_in[$2] = defined_in[$2] " " from
        } else if (!((from, $2) in used)) {
            used[from, $2] = $1
        }
    }
    END {
        for (u in used) {
            split(u, part, SUBSEP)
            n = split(defined_in[part[2]], in_folder, " ")
            ok = n == 0
            for (i = 1; i <= n; i++)
                ok = ok || may(part[1], in_folder[i])
            if (!ok)
                print used[u] ": " part[1] " must not use " part[2] " of" defined_in[part[2]]
        }
    }' | sort)
[ -z "$wrong" ] || complain "$wrong"

# The cores know no I/O and no clock: only base, and each other.
while IFS=: read -r file line text; do
    complain "$file:$line: a pure state machine must not include ${text#*include }"
done < <(grep -nE '#[[:space:]]*include[[:space:]]+("lib/(loop|store|wire|record|client)|"daemon/(storage|server|api|meta|upkeep)|"lib/base/(clock|fsutil|log)|<(sys/(socket|epoll|stat|uio)|unistd|fcntl|pthread|time)\.h>)' \
    daemon/replica/replica.[ch] daemon/replica/isr.[ch] /dev/null 2>/dev/null)

# Two libraries are known to one folder each.
while IFS=: read -r file line _; do
    case $file in fuse/* | bench/*) ;; *) complain "$file:$line: only fuse/ includes libfuse" ;; esac
done < <(grep -rnE '#[[:space:]]*include[[:space:]]+<fuse' --include='*.[ch]' lib daemon fuse src bench tests)
while IFS=: read -r file line _; do
    case $file in daemon/meta/*) ;; *) complain "$file:$line: only daemon/meta/ includes ZooKeeper's header" ;; esac
done < <(grep -rnE '#[[:space:]]*include[[:space:]]+<zookeeper' --include='*.[ch]' lib daemon fuse src bench tests)

# The disk is reached through struct store_io alone: calls of these names elsewhere, but for files that are no data (devices,
# /proc, pipes). tests/sim gives a broker a disk that is not there.
disk_calls='open|openat|creat|stat|fstat|fstatat|lstat|statvfs|fstatvfs|access|faccessat|unlink|unlinkat|rename|renameat|mkdir|mkdirat|rmdir|link|linkat|symlink|readlink|truncate|ftruncate|fallocate|posix_fallocate|fsync|fdatasync|syncfs|sync_file_range|pread|preadv|pwrite|pwritev|lseek|flock|lockf|futimens|utimensat|opendir|fdopendir|readdir|closedir|scandir|mmap|fopen|fs_[a-z_]+'
no_data='daemon/main.c daemon/server/server.c'
not_yet='daemon/broker.c'
while IFS=: read -r file line text; do
    case " $no_data $not_yet lib/store/io.c " in *" $file "*) continue ;; esac
    complain "$file:$line: only lib/store/io.c calls the disk itself: ${text#"${text%%[![:space:]]*}"}"
done < <(grep -rnE "(^|[^A-Za-z0-9_>.])($disk_calls)\(" --include='*.[ch]' lib/store daemon | grep -vE '^[^:]*:[0-9]+:[[:space:]]*(/?\*|//)')

exit $bad
