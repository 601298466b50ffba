#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The arrows of docs/ARCHITECTURE.md, checked on every #include line: a folder may include itself and what
# stands after its colon, nothing else. Prints each line that points the wrong way.
set -u
cd "${srcdir:-.}" || exit 99

arrows='
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
daemon: lib/base lib/wire lib/record lib/store lib/loop
'
bad=0
complain() {
    echo "$1"
    bad=1
}

while IFS=: read -r folder allowed; do
    [ -n "$folder" ] && [ -d "$folder" ] || continue
    while IFS=: read -r file line text; do
        target=${text#*\"}
        target=${target%%\"*}
        ok=no
        for a in $folder $allowed; do
            case $target in "$a"/*) ok=yes ;; esac
        done
        [ $ok = yes ] || complain "$file:$line: $folder must not include \"$target\""
    done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"' --include='*.[ch]' --include='*.def' "$folder")
done <<<"$arrows"

# The cores know no I/O and no clock: only base, and each other.
while IFS=: read -r file line text; do
    complain "$file:$line: a pure state machine must not include ${text#*include }"
done < <(grep -nE '#[[:space:]]*include[[:space:]]+("lib/(loop|store|wire|record|client)|"daemon/(server|api|meta|upkeep)|"lib/base/(clock|fsutil|log)|<(sys/(socket|epoll|stat|uio)|unistd|fcntl|pthread|time)\.h>)' \
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
