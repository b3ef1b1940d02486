"""families: the kernels of tests/broken with a defect each, as launch files."""

import json
import os
import re


def planted(lines, tag, change):
    """The text with a defect, as tests/broken/OrderDefectsTest.cpp plants it."""
    old, _, new = (part.strip() for part in (change + " ").partition("=> "))
    text, changes = [], 0
    for line in lines:
        bare = line.strip()
        if bare.startswith(f"//+{tag} "):
            line = bare[len(tag) + 4:]
            changes += 1
        elif tag in re.findall(r"#(\w+)", line.partition("//#")[2] and
                               "#" + line.partition("//#")[2]):
            line = line.replace(old, new, 1) if old else ""
            changes += 1
        text.append(line)
    if not changes:
        raise ValueError(f"no line is tagged {tag}")
    return "\n".join(text) + "\n"


def write_all(source, folder, wanted):
    """Write kernels of `source` into `folder`: of each the first defect, and
    those whose id is in `wanted`. The names of the launch files, each with the
    id that is to be found."""
    found = {}
    for name in sorted(os.listdir(source)):
        with open(os.path.join(source, name), encoding="utf-8") as file:
            lines = file.read().splitlines()
        launch = dict(word.split("=") for line in lines
                      if line.startswith("// launch ")
                      for word in line.split()[2:])
        defects = [[field.strip() for field in line[4:].split(" |")]
                   for line in lines if line.startswith("//! ")]
        for number, defect in enumerate(defects):
            if number and defect[0] not in wanted:
                continue
            stem = f"{name[:-4]}_{defect[1]}"
            with open(os.path.join(folder, stem + ".ptx"), "w",
                      encoding="utf-8") as file:
                file.write(planted(lines, defect[1], defect[2]))
            buffer = {"type": "u8", "shape": [8192], "init": "zeros"}
            job = {"ptx": [stem + ".ptx"],
                   "args": [{"buffer": "in"} | buffer, {"buffer": "out"} | buffer]}
            for key in ("grid", "block", "cluster"):
                job[key] = [int(launch.get(key, 1)), 1, 1]
            with open(os.path.join(folder, stem + ".json"), "w",
                      encoding="utf-8") as file:
                json.dump(job, file)
            found[stem + ".json"] = defect[0]
    return found
