# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A bare Debian 12 to try things in, for .ci/fresh and packaging/check-deb. Sourced with $top, the tree, and $here, a directory that keeps
# the bare system for the next time. Exit status 77, and the reason, where something is missing that this needs.
: "${top:?}" "${here:?}"
release=bookworm

cannot() { echo "${0##*/}: $1"; exit 77; }
[ "$(id -u)" = 0 ] || cannot "needs root"
command -v debootstrap >/dev/null || cannot "needs debootstrap (apt-get install debootstrap)"
git -C "$top" rev-parse -q --verify HEAD >/dev/null 2>&1 || cannot "needs a git clone that git reads as this user"
# What is mounted below, tried on a directory that this leaves behind empty. Arguments: the root, then a command for it.
enter='
root=$1
shift
mount --rbind "$root" "$root" && cd "$root" && # tests make namespaces of their own, which wants a mount
mount -t proc proc "$root/proc" && mount --rbind /sys "$root/sys" && mount --rbind /dev "$root/dev" && mount -t tmpfs tmpfs "$root/tmp" || exit 1
exec "$@"'
within() { unshare -m -p -f --kill-child --propagation private bash -c "$enter" fresh "$@"; }
probe=$(mktemp -d) && mkdir "$probe"/{proc,sys,dev,tmp}
within "$probe" true 2>/dev/null
entered=$?
rmdir "$probe"/{proc,sys,dev,tmp} "$probe"
[ "$entered" = 0 ] || cannot "needs namespaces, and mounts in them"
mirror=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    awk -v r=$release '$1 == r { print $2; exit }')
[ -n "$mirror" ] || cannot "apt is not configured for Debian $release here"
# debootstrap asks with wget too, but for as long as it takes.
wget -q --tries=2 --timeout=20 -O /dev/null "${mirror%/}/dists/$release/InRelease" 2>/dev/null || cannot "$mirror does not answer"

# ---- the bare system, once ----
mkdir -p "$here" || exit 1
here=$(cd "$here" && pwd)
# How this machine reaches its mirrors and registries, if not directly.
copy_to() { # copy_to ROOT PATH...
    local root=$1 path
    shift
    for path in "$@"; do
        [ -e "$path" ] || continue
        mkdir -p "$root${path%/*}"
        cp -rLT "$path" "$root$path" 2>/dev/null
    done
}
if [ ! -e "$here/base/etc/debian_version" ]; then
    echo "making a bare Debian $release in $here/base"
    rm -rf "$here/base" "$here/base.new"
    timeout -k 10 900 debootstrap --variant=minbase --include=ca-certificates $release "$here/base.new" "$mirror" >"$here/debootstrap.log" 2>&1 || {
        tail -n 3 "$here/debootstrap.log"
        cannot "debootstrap failed"
    }
    copy_to "$here/base.new" /etc/ssl/certs /usr/local/share/ca-certificates /etc/pip.conf /etc/npmrc
    for path in /etc/apt/apt.conf.d/*; do # proxies; what belongs to packages that are not there stays away
        grep -qE '/usr/|Dir::' "$path" || copy_to "$here/base.new" "$path"
    done
    mv "$here/base.new" "$here/base"
fi

# What of the environment goes into it: NAME=VALUE words, in $passed_on.
passed_on=()
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY TEST_TIMEOUT_FACTOR; do
    [ -z "${!name:-}" ] || passed_on+=("$name=${!name}")
done
# bare_root NAME: $here/NAME is a new copy of the bare system, with the clone of the commit that is checked out in /src/klog
bare_root() {
    rm -rf "${here:?}/$1"
    cp -a --reflink=auto "$here/base" "$here/$1" && git clone -q --no-hardlinks "$top" "$here/$1/src/klog" || return 1
    echo force-unsafe-io >"$here/$1/etc/dpkg/dpkg.cfg.d/fast" # what dpkg unpacks here need not survive a power cut
    cp -L /etc/resolv.conf /etc/hosts "$here/$1/etc/" 2>/dev/null
    return 0
}
# in_root NAME COMMAND: by bash, in that copy
in_root() {
    within "$here/$1" env -i HOME=/root TERM=dumb PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${passed_on[@]}" \
        chroot "$here/$1" bash -c "$2"
}
