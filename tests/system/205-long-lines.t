# SPDX-License-Identifier: Apache-2.0
# Lines at the borders of buffers are exact; one that is too long is EMSGSIZE and leaves no piece of itself.
# https://github.com/deviceinsight/kafkactl/issues/124 https://github.com/snowplow/snowbridge/issues/47
# https://github.com/eclipse-mosquitto/mosquitto/issues/137
scene
line() { head -c "$1" /dev/zero | tr '\0' z; }
for n in 4095 4096 4097 65535 65536 65537 131072 900000; do
    line $n
    echo
done >>"$P"
eq "lengths" "4095 4096 4097 65535 65536 65537 131072 900000" "$(awk '{ print length }' "$P" | tr '\n' ' ' | sed 's/ $//')"
(
    echo before
    line 1100000
    echo
    echo after
) >input
fails 'Message too long|File too large' dd if=input of="$P" bs=4M oflag=append conv=notrunc status=none
consume t1 -o 8 >rest
[ -s rest ] && eq "what is left of it" before "$(cat rest)"
fails 'Message too long|File too large' bash -c 'cat "$1" >>"$2"' _ input "$P"
has_not "pieces" 'z' "$(consume t1 -o 8)"
has_not "glue" 'after' "$(consume t1 -o 8 | grep -v '^after$')"
echo fine >>"$P" || fail "a short line after it"
eq "last line" fine "$(tail -n1 "$P")"
