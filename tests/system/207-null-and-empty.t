# SPDX-License-Identifier: Apache-2.0
# Null, empty and absent keys and values survive; on the mount each record is one line.
# https://github.com/ag2ai/faststream/pull/2932 https://github.com/twmb/kcl/issues/11
# https://github.com/tulios/kafkajs/pull/185
scene
printf 'k1:v:w\nnokey\n:v\nk2:\n' | produce -K: -t t1 -p 0
printf 'k3:\n' | produce -Z -K: -t t1 -p 0
eq "lengths" "2/3 -1/5 0/1 2/0 2/-1 " "$(consume t1 -f '%K/%S ')"
printf 'v:w\nnokey\nv\n\n\n' | same "file" - "$P"
