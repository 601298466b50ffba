# SPDX-License-Identifier: Apache-2.0
# Keys and values that contain the delimiter.
# https://github.com/edenhill/kcat/issues/140 https://github.com/edenhill/kcat/issues/260
klogd_start
topic t1
printf 'a::b__c::d::e__' | produce -K:: -D__ -t t1 -p 0
eq "keys and values" "[a][b][c][d::e]" "$(consume t1 -f '[%k][%s]')"
