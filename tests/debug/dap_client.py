"""dap_client: a client of the Debug Adapter Protocol that holds every message
against the protocol's published schema."""

import json
import os
import subprocess


def find_schema():
    """The protocol's schema, as debugpy ships it; None: it is not installed."""
    path = os.environ.get("KILN_DAP_SCHEMA")
    if not path:
        import importlib.util
        found = importlib.util.find_spec("debugpy")
        if not found:
            return None
        path = os.path.join(os.path.dirname(found.origin), "_vendored/pydevd/"
                            "_pydevd_bundle/_debug_adapter/debugProtocol.json")
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class Schema:
    """Holds messages against their definitions."""

    def __init__(self, schema):
        import jsonschema
        self.schema = schema
        self.validator = jsonschema.Draft4Validator
        self.seen = set()

    def check(self, message, name):
        """Raises where the message is not what the protocol says."""
        if name not in self.schema["definitions"]:
            raise AssertionError(f"the protocol has no {name}")
        self.seen.add(name)
        self.validator({"$ref": f"#/definitions/{name}",
                        "definitions": self.schema["definitions"]}
                       ).validate(message)


class Client:
    """One adapter."""

    def __init__(self, kiln, schema, folder, *words):
        self.process = subprocess.Popen(
            [kiln, "debug", "--dap", *words], cwd=folder,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        self.schema = schema
        self.number = 0
        self.events = []

    def write(self, body):
        """Bytes as they are."""
        self.process.stdin.write(body)
        self.process.stdin.flush()

    def read(self):
        """The next message, which is held against the schema."""
        length = None
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise EOFError(self.process.stderr.read().decode())
            line = line.strip()
            if not line:
                break
            name, value = line.split(b":")
            if name == b"Content-Length":
                length = int(value)
        message = json.loads(self.process.stdout.read(length))
        if self.schema:
            self.schema.check(message, "ProtocolMessage")
            if message["type"] == "event":
                name = message["event"]
                self.schema.check(message, name[0].upper() + name[1:] + "Event")
            elif message["success"]:
                name = message["command"]
                self.schema.check(message,
                                  name[0].upper() + name[1:] + "Response")
            else:
                self.schema.check(message, "ErrorResponse")
        return message

    def send(self, command, **arguments):
        """A request without waiting; its number."""
        self.number += 1
        message = {"seq": self.number, "type": "request", "command": command,
                   "arguments": arguments}
        if self.schema:
            self.schema.check(message, command[0].upper() + command[1:]
                              + "Request")
        body = json.dumps(message).encode()
        self.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        return self.number

    def response(self, number):
        """The response to a request; events on the way are kept."""
        while True:
            message = self.read()
            if message["type"] == "event":
                self.events.append(message)
            elif message["request_seq"] == number:
                return message

    def ask(self, command, **arguments):
        """The body of the response to a request that must succeed."""
        message = self.response(self.send(command, **arguments))
        if not message["success"]:
            raise AssertionError(f"{command}: {message['message']}")
        return message.get("body")

    def refused(self, command, **arguments):
        """Why a request is refused."""
        message = self.response(self.send(command, **arguments))
        if message["success"]:
            raise AssertionError(f"{command} was not refused")
        return message["message"]

    def event(self, name):
        """The next event of that name."""
        while True:
            for i, message in enumerate(self.events):
                if message["event"] == name:
                    del self.events[: i + 1]
                    return message.get("body")
            message = self.read()
            assert message["type"] == "event", message
            self.events.append(message)

    def move(self, command, **arguments):
        """Run, and wait for the stop."""
        self.ask(command, **arguments)
        return self.event("stopped")

    def close(self):
        """The exit status."""
        self.process.stdin.close()
        self.process.stdout.read()
        self.errors = self.process.stderr.read().decode()
        return self.process.wait(timeout=30)
