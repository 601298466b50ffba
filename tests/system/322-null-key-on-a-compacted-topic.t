# SPDX-License-Identifier: Apache-2.0
# A record without a key on a compacted topic is error 87 at once, and EINVAL on the mount: never an endless retry.
# https://github.com/apache/kafka/pull/2875 https://github.com/tchiotludo/akhq/issues/133
# https://github.com/smallrye/smallrye-reactive-messaging/issues/2270
klogd_start
topic ck 1 cleanup.policy=compact
topic cd 1 cleanup.policy=compact,delete
mount_start
echo v | $K -P -t ck -p 0 2>err
eq "exit status of kcat" 1 $?
echo k:v | $K -P -K: -t ck -p 0 || fail "with a key"
eq "stored" "k v" "$(consume ck -f '%k %s\n')"
echo v | $K -P -t cd -p 0 2>err
eq "exit status of kcat" 1 $?
eq "error code" 87 "$("$PY" -c "
from kwire import Conn, batch
print(Conn().produce('ck', 0, batch([b'v']))[0])")"
fails 'Invalid argument' bash -c 'echo x >>"$1"' _ "$M/ck/p0"
eq "file" v "$(cat "$M/ck/p0")"

# Every record without a key is named, and no other: clients tell by that which of the batch to blame.
eq "records named" "87 [0, 2] 87 1000" "$("$PY" -c "
from kwire import Conn, batch
def named(*records):
    c = Conn()
    r = c.ask(0, 8, c.produce_body('ck', 0, batch(list(records))))
    r.i32(), r.string(), r.i32(), r.i32()
    err = r.i16()
    r.i64(), r.i64(), r.i64()
    return err, r.array(lambda: (r.i32(), r.string())[0])
err, some = named(b'a', (b'k', b'b'), b'c')
many_err, many = named(*[b'x'] * 1500)
print(err, some, many_err, len(many))")"
