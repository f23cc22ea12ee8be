"""A client of GDB's remote protocol, as small as a test needs it."""
import re
import socket
import struct
import xml.etree.ElementTree as xml


class Gone(Exception):
    """The other side closed the connection."""


class Client:
    def __init__(self, port, timeout=20):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.bytes, self.acknowledge, self.console = b"", True, ""

    def close(self):
        self.socket.close()

    def take(self):
        """The next packet's payload, unescaped."""
        while not (found := re.match(rb"[^$]*\$([^#]*)#(..)", self.bytes, re.S)):
            more = self.socket.recv(65536)
            if not more:
                raise Gone
            self.bytes += more
        self.bytes = self.bytes[found.end():]
        assert sum(found[1]) % 256 == int(found[2], 16), found[0]
        if self.acknowledge:
            self.socket.sendall(b"+")
        return re.sub(rb"}(.)", lambda m: bytes([m[1][0] ^ 0x20]), found[1], flags=re.S)

    def send(self, payload):
        if isinstance(payload, str):
            payload = payload.encode()
        payload = re.sub(rb"[$#}*]", lambda m: b"}" + bytes([m[0][0] ^ 0x20]), payload)
        self.socket.sendall(b"$" + payload + b"#%02x" % (sum(payload) % 256))

    def answer(self):
        """The next packet that is not the program's output."""
        while True:
            payload = self.take()
            if payload[:1] != b"O" or payload == b"OK":
                return payload.decode("latin1")
            self.console += bytes.fromhex(payload[1:].decode()).decode()

    def ask(self, payload):
        self.send(payload)
        return self.answer()

    def silence(self):
        assert self.ask("QStartNoAckMode") == "OK"
        self.acknowledge = False

    def interrupt(self):
        self.socket.sendall(b"\3")
        return self.answer()

    def monitor(self, line):
        self.console = ""
        assert self.ask("qRcmd," + line.encode().hex()) == "OK"
        return self.console

    def describe(self):
        """Registers by name: number and size in bytes, of the target's description."""
        text, last = "", ""
        while last != "l":
            piece = self.ask(f"qXfer:features:read:target.xml:{len(text):x},7f0")
            last, text = piece[0], text + piece[1:]
        self.description = text
        self.registers = {r.get("name"): (int(r.get("regnum")), int(r.get("bitsize")) // 8)
                          for r in xml.fromstring(text).iter("reg")}

    def read(self, name):
        """A register's bytes, None where the wave lacks it."""
        number, size = self.registers[name]
        text = self.ask(f"p{number:x}")
        if "x" in text:
            return None
        data = bytes.fromhex(text)
        assert len(data) == size, (name, text)
        return data

    def number(self, name):
        return int.from_bytes(self.read(name), "little")

    def lanes(self, name):
        data = self.read(name)
        return struct.unpack(f"<{len(data) // 4}I", data)

    def write(self, name, data):
        return self.ask(f"P{self.registers[name][0]:x}={data.hex()}")

    def memory(self, address, count):
        return bytes.fromhex(self.ask(f"m{address:x},{count:x}"))

    def threads(self):
        found, reply = [], self.ask("qfThreadInfo")
        while reply.startswith("m"):
            found += [int(t, 16) for t in reply[1:].split(",")]
            reply = self.ask("qsThreadInfo")
        assert reply == "l", reply
        return found

    def name(self, thread):
        return bytes.fromhex(self.ask(f"qThreadExtraInfo,{thread:x}")).decode()


def stop_of(reply):
    """Signal and thread of a stop."""
    found = re.match(r"T(..)thread:([0-9a-f]+);", reply)
    assert found, reply
    return int(found[1], 16), int(found[2], 16)
