#!/usr/bin/env python3
"""Litmus tests of PTX in herd's columns, as Dat3M publishes them, in Kiln's
format: from_herd.py FOLDER OUT [EXPECTED.csv]. What the format has no words for
is counted by reason. Nothing of those tests is kept in this repository."""

import collections
import csv
import os
import re
import sys


class Unsupported(Exception):
    pass


OPERATIONS = {"add": "add.u32", "sub": "add.u32", "exch": "exch.b32", "and": "and.b32",
              "or": "or.b32", "xor": "xor.b32"}
BRANCHES = {"beq": "eq", "bne": "ne", "bge": "ge", "ble": "le", "bgt": "gt", "blt": "lt"}


def barrier_number(operands):
    return operands[1] if len(operands) > 1 else operands[0]


class Thread:
    def __init__(self, name, place):
        where = re.match(r"cta (\d+),\s*gpu (\d+)", place)
        if not where:
            raise Unsupported("a place that is no CTA of a GPU")
        self.name, self.cta, self.gpu = name, int(where[1]), int(where[2])
        self.registers, self.lines, self.has_barrier, self.has_branch = {}, [], False, False

    def value(self, word):
        if re.fullmatch(r"-?\d+", word):
            return str(int(word) % 2**32)
        return self.register(word)

    def register(self, word):
        if not re.fullmatch(r"r\d+", word):
            raise Unsupported("operands that are neither registers nor numbers")
        if word not in self.registers:
            if len(self.registers) == 8:
                raise Unsupported("more than eight registers of a thread")
            self.registers[word] = f"r{len(self.registers)}"
        return self.registers[word]

    def add(self, text, count):
        if text.endswith(":"):
            self.lines.append(f" {text}")
            self.has_branch = True
            return
        opcode, *operands = re.split(r"[\s,]+", text)
        words = opcode.split(".")
        if words[0] in ("sust", "suld", "tld", "cold", "suatom", "sured") or "proxy" in words:
            raise Unsupported("surfaces, textures, constants and aliases")
        if words[0] in ("ld", "st") and len(words) > 1:
            how = ".".join(words[1:])
            if words[0] == "ld":
                self.line(f"ld.{how}.global.u32 {self.register(operands[0])}, [{operands[1]}];")
            else:
                self.line(f"st.{how}.global.u32 [{operands[0]}], {self.value(operands[1])};")
        elif words[0] == "ld":
            self.line(f"mov.b32 {self.register(operands[0])}, {self.value(operands[1])};")
        elif words[0] in ("add", "sub", "mul"):
            name = "mul.lo.u32" if words[0] == "mul" else words[0] + ".u32"
            self.line(f"{name} {self.register(operands[0])}, {self.value(operands[1])}, "
                      f"{self.value(operands[2])};")
        elif words[0] in ("atom", "red"):
            self.atomic(words, operands)
        elif words[0] == "fence":
            self.line(opcode + ";")
        elif words[0] == "bar":
            number = barrier_number(operands)
            threads = int(operands[2]) if len(operands) > 2 else count(number)
            if not number.isdigit() or int(number) > 15:
                raise Unsupported("barriers whose number is in a register, or above 15")
            self.has_barrier = True
            self.lines.append(f"  bar.{words[2]} {number}, {32 * threads};")
        elif words[0] in BRANCHES:
            self.has_branch = True
            self.line(f"setp.{BRANCHES[words[0]]}.u32 p0, {self.value(operands[0])}, "
                      f"{self.value(operands[1])};")
            self.lines.append(f"  @p0 bra {operands[2]};")
        elif words[0] == "goto":
            self.has_branch = True
            self.lines.append(f"  bra {operands[0]};")
        else:
            raise Unsupported(f"instructions {words[0]}")

    def atomic(self, words, operands):
        semantics, scope, operation = words[1:4]
        how = f"{words[0]}.{semantics}.{scope}.global"
        if operation == "cas":
            self.line(f"{how}.cas.b32 {self.register(operands[0])}, [{operands[1]}], "
                      f"{self.value(operands[2])}, {self.value(operands[3])};")
            return
        if operation not in OPERATIONS:
            raise Unsupported(f"atomics {operation}")
        if operation == "sub":
            if not operands[-1].isdigit():
                raise Unsupported("atomics that subtract a register")
            operands[-1] = f"-{operands[-1]}"
        value = self.value(operands[-1])
        target = f"{self.register(operands[0])}, [{operands[1]}]" if words[0] == "atom" \
            else f"[{operands[0]}]"
        self.line(f"{how}.{OPERATIONS[operation]} {target}, {value};")

    def line(self, text):
        self.lines.append("  " + text)

    def text(self):
        if self.has_barrier and self.has_branch:
            raise Unsupported("branches in a thread that comes to a barrier")
        lines = self.lines
        if self.has_barrier:
            lines = [x if "bar." in x else "  @lead " + x.strip() for x in lines]
        return f"{self.name} cta {self.cta}{' all' if self.has_barrier else ''}\n" + \
            "".join(x + "\n" for x in lines)


def comers(rows, threads, thread, number):
    """Threads of its CTA that come to the barrier."""
    found = set()
    for row in rows:
        for other, cell in zip(threads, row.split("|")):
            opcode, *operands = re.split(r"[\s,]+", cell.strip())
            if other.cta == thread.cta and opcode.startswith("bar.") and \
                    barrier_number(operands) == number:
                found.add(other.name)
    return len(found)


def convert(text, name, holds):
    text = re.sub(r"//.*", "", text)
    head, rest = text.split("{", 1)
    init, rest = rest.split("}", 1)
    variables, values = {}, []
    for part in filter(None, (p.strip() for p in init.split(";"))):
        if "aliases" in part or "&" in part:
            raise Unsupported("surfaces, textures, constants and aliases")
        left, right = (p.strip() for p in part.split("="))
        if ":" in left:
            values.append((left, right))
        else:
            variables[left] = int(right)
    end = re.search(r"^\s*(exists|~\s*exists|forall|filter|locations)", rest, re.M)
    body, condition = rest[:end.start()], rest[end.start():].strip()
    rows = [r for r in (row.strip() for row in body.split(";")) if r]
    threads = []
    for cell in rows[0].split("|"):
        thread, place = cell.strip().split("@")
        threads.append(Thread(thread.strip(), place.strip()))
    if len({t.gpu for t in threads}) > 1:
        raise Unsupported("two GPUs")
    ctas = sorted({t.cta for t in threads})
    for t in threads:
        t.cta = ctas.index(t.cta)
    for row in rows[1:]:
        for thread, cell in zip(threads, row.split("|")):
            if cell.strip():
                thread.add(cell.strip(), lambda number: comers(rows[1:], threads, thread, number))
    for left, right in values:
        if right != "0":
            owner, register = left.split(":")
            thread = next(t for t in threads if t.name == owner)
            thread.lines.insert(0, f"  mov.b32 {thread.register(register)}, {int(right)};")
    kind, formula = re.match(r"(exists|~\s*exists|forall)\s*(.*)", condition, re.S).groups()
    formula = re.sub(r"(?<![=!<>])=(?!=)", "==", " ".join(formula.split()))
    formula = re.sub(r"\bP?(\d+)\s*:\s*(r\d+)", r"P\1:\2", formula)
    for t in threads:
        formula = re.sub(rf"\b{t.name}:(r\d+)", lambda m: f"{t.name}:{t.register(m[1])}", formula)
    if re.search(r"[<>]|==\s*[a-zA-Z]|!=\s*[a-zA-Z]", formula):
        raise Unsupported("conditions that compare more than a value and a number")
    formula = re.sub(r"\b0\s*==\s*0\b", f"{threads[0].name}:r0 != 4294967295", formula)
    for word in re.findall(r"(?<![:\w])([a-zA-Z]\w*)\s*[!=]=", formula):
        variables.setdefault(word, 0)
    for t in threads:
        for x in re.findall(r"\[(\w+)\]", "".join(t.lines)):
            variables.setdefault(x, 0)
    is_negated = kind != "exists"
    if kind == "forall":
        formula = f"~({formula})"
    allowed = holds != is_negated
    out = f"litmus {name}\nexpect {'allowed' if allowed else 'forbidden'}\n"
    out += "".join(f"global {x} = {v}\n" for x, v in sorted(variables.items()))
    out += "".join(t.text() for t in threads)
    return out + f"exists {formula}\n"


def main():
    folder, target = sys.argv[1:3]
    expected = {}
    for path in sys.argv[3:]:
        with open(path) as file:
            expected.update({row[0]: row[1] == "1" for row in csv.reader(file) if len(row) > 1})
    os.makedirs(target, exist_ok=True)
    reasons, written = collections.Counter(), 0
    for base, _, files in sorted(os.walk(folder)):
        for file in sorted(f for f in files if f.endswith(".litmus")):
            path = os.path.join(base, file)
            with open(path) as source:
                text = source.read()
            place = path[path.find("litmus/PTX"):]
            name = place.removeprefix("litmus/PTX/").removesuffix(".litmus").replace("/", ".")
            try:
                result = convert(text, name, expected.get(place, True))
            except Unsupported as why:
                reasons[str(why)] += 1
                continue
            written += 1
            with open(os.path.join(target, name.replace("+", "_") + ".litmus"), "w") as output:
                output.write(result)
    print(f"{written} converted")
    for why, count in reasons.most_common():
        print(f"{count} not: {why}")


if __name__ == "__main__":
    main()
