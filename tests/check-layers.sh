#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The arrows of docs/ARCHITECTURE.md. A folder may use itself and what stands after its colon, nothing else: on every
# #include line, and, where there are built objects (BUILDDIR, which `make check` sets), by every symbol, so that a call up
# through a declaration of one's own is seen too. The objects also tell who calls the system without asking the world.
# Prints each place that points the wrong way.
set -u
cd "${srcdir:-.}" || exit 99

lib='lib/base lib/wire lib/record lib/store lib/loop lib/metrics'
asking='lib/base lib/view lib/wire lib/loop lib/client lib/metrics'
# The folder itself, not what is below it and has a row of its own.
arrows="
lib/base:
lib/wire: lib/base
lib/record: lib/base
lib/loop: lib/base
lib/store: lib/base lib/record
lib/view: lib/base lib/record
lib/metrics: lib/base lib/view lib/loop
lib/client: lib/base lib/wire lib/view lib/record lib/loop
fuse: fuse/meter fuse/group fuse/page fuse/file fuse/tree fuse/partition fuse/cluster fuse/text fuse/base lib/record $asking
fuse/text: lib/base lib/view lib/record
fuse/base: fuse/text $asking
fuse/cluster: fuse/base $asking
fuse/meter: fuse/base $asking
fuse/partition: fuse/cluster fuse/text fuse/base $asking
fuse/tree: fuse/partition fuse/cluster fuse/base $asking
fuse/file: fuse/tree fuse/partition fuse/cluster fuse/text fuse/base $asking
fuse/page: fuse/tree fuse/partition fuse/cluster fuse/base $asking
fuse/group: fuse/page fuse/tree fuse/partition fuse/cluster fuse/base lib/record $asking
src: lib/base lib/view lib/wire lib/record lib/store lib/loop lib/client
daemon/config: $lib
daemon/storage: daemon/config $lib
daemon/replica: daemon/storage daemon/config $lib
daemon/meta: daemon/replica daemon/storage daemon/config $lib
daemon/group: daemon/meta daemon/replica daemon/config $lib
daemon/upkeep: daemon/meta daemon/replica daemon/storage daemon/config $lib
daemon/follow: daemon/replica daemon/config lib/client $lib
daemon/server: daemon/config $lib
daemon/watch: daemon/server daemon/group daemon/meta daemon/replica daemon/storage daemon/config $lib
daemon/api: daemon/server daemon/group daemon/meta daemon/replica daemon/storage daemon/config $lib
daemon: daemon/watch daemon/api daemon/follow daemon/server daemon/upkeep daemon/group daemon/meta daemon/replica daemon/storage daemon/config $lib
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

# ---- symbols: "object: name type ...", where there are objects ----
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
symbols=$(cd "${BUILDDIR:-.}" && objects | sort | xargs -r "${NM:-nm}" -A -g -P 2>/dev/null)
wrong=$(awk -v arrows="$arrows" "$rules"'
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
    }' <<<"$symbols" | sort)
[ -z "$wrong" ] || complain "$wrong"

# ---- the world ----
# What lib/ and daemon/ ask of their surroundings goes through struct world (lib/base/world.h), so that another one can stand
# behind them. A line: the calls, a colon, the files that make them.
only="
clock_gettime gettimeofday time nanosleep clock_nanosleep sleep usleep: lib/base/clock.c lib/base/log.c
clock_mono_ns clock_mono_ms clock_wall_ms clock_real: lib/loop/exec_threads.c
getrandom random rand srandom srand drand48: lib/base/random.c
random_real: lib/loop/exec_threads.c
getrlimit setrlimit sysconf get_nprocs: lib/base/machine.c daemon/main.c
_exit _Exit kill raise fork pipe2 signal sigaction: lib/base/machine.c daemon/main.c
dup2: lib/base/service.c daemon/main.c
machine_real: lib/loop/exec_threads.c
pthread_create pthread_join pthread_setname_np: lib/loop/exec_threads.c
pthread_cond_wait pthread_cond_timedwait pthread_cond_signal pthread_cond_broadcast: lib/loop/exec_threads.c
sem_wait sem_timedwait sem_post:
socket bind listen accept accept4 connect send sendto sendmsg recv recvfrom recvmsg sendfile shutdown setsockopt getsockopt: lib/loop/net_real.c
getsockname getpeername getaddrinfo epoll_create1 epoll_ctl epoll_wait eventfd poll ppoll select readv writev: lib/loop/net_real.c
fcntl: lib/loop/net_real.c lib/base/service.c
net_real: lib/loop/exec_threads.c
open openat creat close read write pread preadv pwrite lseek: lib/store/io.c lib/base/fsutil.c lib/base/mem.c lib/base/log.c lib/base/service.c lib/loop/net_real.c daemon/main.c
opendir fdopendir readdir closedir scandir: lib/store/io.c lib/base/fsutil.c lib/base/machine.c
fopen: lib/base/conf.c
stat fstat lstat fstatat statvfs fstatvfs access faccessat mkdir mkdirat rmdir: lib/store/io.c lib/base/fsutil.c lib/base/service.c
rename renameat unlink unlinkat link linkat symlink readlink futimens utimensat: lib/store/io.c lib/base/fsutil.c lib/base/service.c
fsync fdatasync syncfs sync_file_range truncate ftruncate fallocate posix_fallocate flock lockf pwritev mmap: lib/store/io.c lib/base/fsutil.c
fs_write_all fs_pwrite_all fs_pread_full fs_read_file fs_sync_dir fs_replace_file fs_mkdir_durable fs_remove_tree: lib/base/fsutil.c lib/base/service.c
store_io_real: daemon/main.c
"
wrong=$(awk -v only="$only" '
    BEGIN {
        n = split(only, line, "\n")
        for (i = 1; i <= n; i++) {
            split(line[i], side, ":")
            n_calls = split(side[1], calls, " ")
            n_files = split(side[2], files, " ")
            for (k = 1; k <= n_calls; k++) {
                watched[calls[k]] = 1
                for (m = 1; m <= n_files; m++)
                    may[calls[k], files[m]] = 1
            }
        }
    }
    $1 ~ /^(lib|daemon)\// && $3 == "U" {
        call = $2
        if (!(call in watched)) { # what headers make of it: __open64_2, __read_chk
            sub(/^__/, "", call)
            sub(/_(chk|2)$/, "", call)
            sub(/64$/, "", call)
        }
        file = $1
        sub(/\.o:?$/, ".c", file)
        sub(/[^\/]*-/, "", file)
        if (call in watched && !((call, file) in may))
            print file ": " call "() is not for this file: the world (lib/base/world.h) has it"
    }' <<<"$symbols" | sort)
[ -z "$wrong" ] || complain "$wrong"

# The cores know no I/O and no clock: only base, and each other.
while IFS=: read -r file line text; do
    complain "$file:$line: a pure state machine must not include ${text#*include }"
done < <(grep -nE '#[[:space:]]*include[[:space:]]+("lib/(loop|store|wire|record|client)|"daemon/(storage|server|api|meta|upkeep)|"lib/base/(clock|fsutil|log)|<(sys/(socket|epoll|stat|uio)|unistd|fcntl|pthread|time)\.h>)' \
    daemon/replica/replica.[ch] daemon/replica/election.[ch] daemon/replica/state.[ch] /dev/null 2>/dev/null)

# Three libraries are known to one folder each.
while IFS=: read -r file line _; do
    case $file in fuse/* | bench/*) ;; *) complain "$file:$line: only fuse/ includes libfuse" ;; esac
done < <(grep -rnE '#[[:space:]]*include[[:space:]]+<fuse' --include='*.[ch]' lib daemon fuse src bench tests)
while IFS=: read -r file line _; do
    case $file in daemon/meta/*) ;; *) complain "$file:$line: only daemon/meta/ includes ZooKeeper's header" ;; esac
done < <(grep -rnE '#[[:space:]]*include[[:space:]]+<zookeeper' --include='*.[ch]' lib daemon fuse src bench tests)
while IFS=: read -r file line _; do
    case $file in lib/metrics/*) ;; *) complain "$file:$line: only lib/metrics/ includes libmicrohttpd" ;; esac
done < <(grep -rnE '#[[:space:]]*include[[:space:]]+<microhttpd' --include='*.[ch]' lib daemon fuse src bench tests)

exit $bad
