# SPDX-License-Identifier: Apache-2.0
# acks 0, 1 and -1 as they are, any other refused; a wrong CRC stores nothing.
# https://github.com/grepplabs/kafka-proxy/issues/54 https://github.com/shotover/shotover-proxy/issues/1188
# https://github.com/kafka4beam/brod/issues/65 https://github.com/tulios/kafkajs/issues/1595
# https://github.com/kafka-rust/kafka-rust/issues/97 https://github.com/WallarooLabs/pony-kafka/issues/39
klogd_start --override auto.create.topics.enable=false
topic ep
versions=0000000b0012000000000001000178
replies() { raw "$@" | sed -E 's/ len=[0-9]+ / /'; }
out=$(replies "$(mkprod 0 ep)" $versions)
eq "acks=0" "corr=1 open" "$(cut -d' ' -f1 <<<"$out" | tr '\n' ' ' | sed 's/ $//')"
for a in 1 -1; do
    out=$(replies "$(mkprod $a ep)" $versions)
    eq "acks=$a" "corr=9 corr=1 open" "$(cut -d' ' -f1 <<<"$out" | tr '\n' ' ' | sed 's/ $//')"
    has "acks=$a: error 0" '^corr=9 000000010002657000000001000000000000' "$out"
done
has "acks=2: error 21" '^corr=9 000000010002657000000001000000000015ffffffffffffffff' "$(replies "$(mkprod 2 ep)")"
has "wrong CRC: error 2" '^corr=9 000000010002657000000001000000000002ffffffffffffffff' "$(replies "$(mkprod 1 ep badcrc)")"
has "unknown topic: error 3" '^corr=9 00000001000d6e6f2e737563682e746f706963000000010000000000' "$(replies "$(mkprod 1 no.such.topic)")"
eq "acks=0 to an unknown topic" EOF "$(replies "$(mkprod 0 no.such.topic)" $versions | tail -n1)"
eq "stored" 3 "$(consume ep | wc -l)"
