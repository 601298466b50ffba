# SPDX-License-Identifier: Apache-2.0
"""Kafka's wire protocol for tests, written from the protocol guide and sharing nothing with klog's own code:
requests byte by byte, record batches with every field open to be set wrong, answers decoded just as far as tests ask."""
import gzip
import socket
import struct
import time

CRC_TABLE = []
for _n in range(256):
    for _ in range(8):
        _n = (_n >> 1) ^ (0x82F63B78 if _n & 1 else 0)
    CRC_TABLE.append(_n)


def crc32c(data):
    c = 0xFFFFFFFF
    for x in data:
        c = CRC_TABLE[(c ^ x) & 255] ^ (c >> 8)
    return c ^ 0xFFFFFFFF


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


# ---- fields ----
def i8(v): return struct.pack(">b", v)
def i16(v): return struct.pack(">h", v)
def i32(v): return struct.pack(">i", v)
def i64(v): return struct.pack(">q", v)


def string(s):
    if s is None:
        return i16(-1)
    s = s.encode() if isinstance(s, str) else s
    return i16(len(s)) + s


def data(b):
    return i32(-1) if b is None else i32(len(b)) + b


def array(items):
    return i32(-1) if items is None else i32(len(items)) + b"".join(items)


def uvarint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def varint(n):
    return uvarint((n << 1) ^ (n >> 63) if n < 0 else n << 1)


class Reader:
    def __init__(self, b):
        self.b, self.at = b, 0

    def take(self, n):
        if n < 0 or self.at + n > len(self.b):
            raise ValueError("reply ends too early")
        self.at += n
        return self.b[self.at - n:self.at]

    def _int(self, n): return int.from_bytes(self.take(n), "big", signed=True)
    def i8(self): return self._int(1)
    def i16(self): return self._int(2)
    def i32(self): return self._int(4)
    def i64(self): return self._int(8)

    def string(self):
        n = self.i16()
        return None if n < 0 else self.take(n).decode()

    def data(self):
        n = self.i32()
        return None if n < 0 else self.take(n)

    def array(self, one):
        n = self.i32()
        return None if n < 0 else [one() for _ in range(n)]

    def uvarint(self):
        n = shift = 0
        while True:
            x = self.take(1)[0]
            n |= (x & 127) << shift
            shift += 7
            if x < 128:
                return n

    def varint(self):
        n = self.uvarint()
        return (n >> 1) ^ -(n & 1)

    def vdata(self):
        n = self.varint()
        return None if n < 0 else self.take(n)

    def rest(self): return len(self.b) - self.at


# ---- record batches ----
def record(delta, value, key=None, headers=(), ts_delta=0):
    def part(b):
        return varint(-1) if b is None else varint(len(b)) + b
    r = b"\0" + varint(ts_delta) + varint(delta) + part(key) + part(value) + varint(len(headers))
    for k, v in headers:
        r += varint(len(k)) + k + part(v)
    return varint(len(r)) + r


def batch(values, *, base=0, magic=2, attributes=0, ts=None, pid=-1, epoch=-1, seq=-1, count=None,
          last_delta=None, bad_crc=False, leader_epoch=-1, length=None, body=None, squeeze=None):
    """values: bytes or (key, value) or (key, value, headers). squeeze: gzip level, or a function over the records."""
    ts = int(time.time() * 1000) if ts is None else ts
    if body is None:
        body = b""
        for i, v in enumerate(values):
            key, value, headers = (None, v, ()) if isinstance(v, bytes) or v is None else (tuple(v) + ((),))[:3]
            body += record(i, value, key, headers)
    if squeeze is not None:
        body = squeeze(body) if callable(squeeze) else gzip.compress(body, squeeze)
        attributes |= 1 if not callable(squeeze) else 0
    n = len(values) if count is None else count
    last = len(values) - 1 if last_delta is None else last_delta
    tail = struct.pack(">hiqqqhii", attributes, last, ts, ts, pid, epoch, seq, n) + body
    crc = crc32c(tail) ^ (1 if bad_crc else 0)
    size = 9 + len(tail) if length is None else length
    return struct.pack(">qiib", base, size, leader_epoch, magic) + struct.pack(">I", crc) + tail


class Batch:
    """One stored batch: header fields, and records (offset, timestamp, key, value, headers) if it is not compressed."""

    def __init__(self, b):
        (self.base, self.size, self.leader_epoch, self.magic, self.crc, self.attributes, self.last_delta,
         self.first_ts, self.max_ts, self.pid, self.epoch, self.seq, self.count) = struct.unpack_from(">qiibIhiqqqhii", b)
        self.raw = b[:12 + self.size]
        self.body = b[61:12 + self.size]

    def crc_good(self): return crc32c(self.raw[21:]) == self.crc

    def records(self):
        body = self.body
        if self.attributes & 7 == 1:
            body = gzip.decompress(body)
        elif self.attributes & 7:
            raise ValueError("codec %d" % (self.attributes & 7))
        r = Reader(body)
        for _ in range(self.count):
            r.varint()
            r.i8()
            ts, delta = r.varint(), r.varint()
            key, value = r.vdata(), r.vdata()
            headers = [(r.vdata(), r.vdata()) for _ in range(r.varint())]
            yield self.base + delta, self.first_ts + ts, key, value, headers


def batches(b):
    """Splits bytes of a fetch or a .log file; a torn last batch is left out."""
    out = []
    while len(b) >= 61 and len(b) >= 12 + int.from_bytes(b[8:12], "big"):
        one = Batch(b)
        out.append(one)
        b = b[12 + one.size:]
    return out


# ---- a connection ----
class Conn:
    def __init__(self, broker="127.0.0.1:9092", timeout=10):
        self.s = socket.create_connection(address(broker), timeout=timeout)
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.corr = 0
        self.buf = b""

    def close(self): self.s.close()

    def send(self, key, version, body, client="test", corr=None, flexible=False):
        """Returns the correlation id. flexible: request header v2 (empty tag section)."""
        self.corr += 1
        corr = self.corr if corr is None else corr
        f = i16(key) + i16(version) + i32(corr) + string(client) + (b"\0" if flexible else b"") + body
        self.s.sendall(i32(len(f)) + f)
        return corr

    def frame(self):
        """The next reply, or EOFError when the broker closed the connection."""
        def need(n):
            while len(self.buf) < n:
                try:
                    d = self.s.recv(1 << 18)
                except ConnectionResetError:
                    d = b""
                if not d:
                    raise EOFError("closed")
                self.buf += d
        need(4)
        n = int.from_bytes(self.buf[:4], "big")
        need(4 + n)
        f, self.buf = self.buf[4:4 + n], self.buf[4 + n:]
        return f

    def reply(self, corr):
        f = self.frame()
        got = int.from_bytes(f[:4], "big")
        assert got == corr, "correlation id %d instead of %d" % (got, corr)
        return Reader(f[4:])

    def ask(self, key, version, body, **kw):
        return self.reply(self.send(key, version, body, **kw))

    # -- the requests tests use; each returns what its name says --
    @staticmethod
    def produce_body(topic, partition, records, acks=-1, timeout_ms=10000):
        return string(None) + i16(acks) + i32(timeout_ms) + array(
            [string(topic) + array([i32(partition) + data(records)])])

    def produce(self, topic, partition, records, acks=-1, version=7, timeout_ms=10000):
        """(error code, base offset)"""
        body = self.produce_body(topic, partition, records, acks, timeout_ms)
        if acks == 0:
            self.send(0, version, body)
            return None
        return self.produced(self.ask(0, version, body), version)

    @staticmethod
    def produced(r, version=7):
        r.i32(), r.string(), r.i32(), r.i32()
        return r.i16(), r.i64()

    def fetch(self, topic, partition, offset, max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, partition_max=1 << 20,
              isolation=0):
        """(error code, high watermark, last stable offset, bytes)"""
        body = (i32(-1) + i32(max_wait_ms) + i32(min_bytes) + i32(max_bytes) + i8(isolation) + array(
            [string(topic) + array([i32(partition) + i64(offset) + i32(partition_max)])]))
        return self.fetched(self.ask(1, 4, body))

    @staticmethod
    def fetched(r):
        r.i32(), r.i32(), r.string(), r.i32(), r.i32()
        err, hw, lso = r.i16(), r.i64(), r.i64()
        r.array(lambda: (r.i64(), r.i64()))
        return err, hw, lso, r.data()

    def records(self, topic, partition=0, offset=0):
        """Everything from offset on, of uncompressed and gzip batches."""
        out = []
        while True:
            err, hw, _, b = self.fetch(topic, partition, offset)
            assert err == 0, "fetch: error %d" % err
            got = batches(b)
            for one in got:
                out += [r for r in one.records() if r[0] >= offset]
                offset = max(offset, one.base + one.last_delta + 1)
            if not got or offset >= hw:
                return out

    def list_offset(self, topic, partition, timestamp):
        """(error code, timestamp, offset); timestamp -1 is the end, -2 the start"""
        r = self.ask(2, 1, i32(-1) + array([string(topic) + array([i32(partition) + i64(timestamp)])]))
        r.i32(), r.string(), r.i32(), r.i32()
        return r.i16(), r.i64(), r.i64()

    def metadata(self, topics=None, version=1):
        """{topic: (error code, number of partitions)}"""
        r = self.ask(3, version, array(None if topics is None else [string(t) for t in topics]))
        r.array(lambda: (r.i32(), r.string(), r.i32(), r.string()))
        r.i32()

        def topic():
            err, name, _ = r.i16(), r.string(), r.i8()
            parts = r.array(lambda: (r.i16(), r.i32(), r.i32(), r.array(r.i32), r.array(r.i32)))
            return name, (err, len(parts))
        return dict(r.array(topic))

    def create_topic(self, name, partitions=1, replication=1, configs=(), timeout_ms=10000):
        """(error code, message)"""
        one = (string(name) + i32(partitions) + i16(replication) + array([])
               + array([string(k) + string(v) for k, v in configs]))
        r = self.ask(19, 2, array([one]) + i32(timeout_ms) + i8(0))
        r.i32(), r.i32(), r.string()
        return r.i16(), r.string()

    def delete_topic(self, name, timeout_ms=10000):
        r = self.ask(20, 1, array([string(name)]) + i32(timeout_ms))
        r.i32(), r.i32(), r.string()
        return r.i16()

    def init_producer_id(self):
        """(error code, producer id, epoch)"""
        r = self.ask(22, 0, string(None) + i32(60000))
        r.i32()
        return r.i16(), r.i64(), r.i16()

    def api_versions(self):
        """{api key: (first, last version)}"""
        r = self.ask(18, 0, b"")
        err = r.i16()
        assert err == 0, "ApiVersions: error %d" % err
        return {k: (a, b) for k, a, b in r.array(lambda: (r.i16(), r.i16(), r.i16()))}
