# The PTX inside a gpu.binary that mlir-opt has printed: standard input to
# standard output.
import re
import sys

text = re.search(r'assembly = "((?:[^"\\]|\\.)*)"', sys.stdin.read()).group(1)
text = re.sub(r"\\([0-9A-Fa-f]{2})", lambda m: chr(int(m.group(1), 16)), text)
sys.stdout.write(text.rstrip("\0\n") + "\n")
