# SPDX-License-Identifier: Apache-2.0
"""delete_records.py TOPIC OFFSET: DeleteRecords of partition 0; exits 1 with the error code."""
import sys

from kwire import Conn, array, i32, i64, string

r = Conn().ask(21, 0, array([string(sys.argv[1]) + array([i32(0) + i64(int(sys.argv[2]))])]) + i32(10000))
errors = []
r.i32()
r.array(lambda: (r.string(), r.array(lambda: (r.i32(), r.i64(), errors.append(r.i16())))))
if errors != [0]:
    sys.exit("error %s" % errors)
