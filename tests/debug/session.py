"""session: `kiln debug --batch -` as Python functions."""

import json
import os
import subprocess

here = os.path.dirname(os.path.abspath(__file__))


class Session:
    """One debugger; commands are text or dictionaries."""

    def __init__(self, kiln, *words, folder=here, env=None):
        self.process = subprocess.Popen(
            [kiln, "debug", "--batch", "-", *words], cwd=folder, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=dict(os.environ, **(env or {})))

    def ask(self, command):
        """The answer, whatever it is."""
        text = command if isinstance(command, str) else json.dumps(command)
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"no answer to {text}: "
                                 + self.process.stderr.read())
        return json.loads(line)

    def __call__(self, command):
        """The answer of a command that must not be refused."""
        answer = self.ask(command)
        if not answer["ok"]:
            raise AssertionError(f"{command}: {answer['error']}")
        return answer

    def close(self):
        """The exit status; stderr is in `errors` afterwards."""
        self.process.stdin.close()
        self.errors = self.process.stderr.read()
        self.process.stdout.read()
        return self.process.wait(timeout=30)

    def __enter__(self):
        return self

    def __exit__(self, *what):
        if self.process.poll() is None:
            self.close()
