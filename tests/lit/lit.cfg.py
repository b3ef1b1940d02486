# lit.cfg: how the tests of IR are found and run.
#
# Paths come from lit.site.cfg.py, which CMake writes; run the whole suite with
# `ctest -R lit`, or one test with `lit -v BUILD/tests/lit --filter NAME`.
import os
import subprocess
import tempfile

import lit.formats

config.name = "kiln"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".test", ".mlir"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.kiln_build_dir, "tests", "lit")

# FileCheck, mlir-opt, not, split-file of the LLVM Kiln is built with come
# before those of another version.
config.environment["PATH"] = os.pathsep.join(
    [config.llvm_tools_dir, os.environ.get("PATH", "")]
)
# A cached kernel would hide a compiler that has changed.
config.environment["KILN_CACHE"] = "off"
for name in ("CUDA_HOME", "CUDA_PATH", "KILN_PTXAS", "ASAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

config.substitutions += [
    # Kiln's error statuses are numbers that mean something, so they are named.
    ("%refused", "%s %%kiln" % os.path.join(config.test_source_root, "refused")),
    ("%same_code", os.path.join(config.test_source_root, "same_code")),
    # The two schedules over a problem with many K tiles.
    ("%multistage", "%kiln emit gemm 4096 4096 4096 --schedule multistage"),
    (
        "%warp_specialized",
        "%kiln emit gemm 4096 4096 4096 --schedule warp-specialized",
    ),
    # A small kernel around one kind of atom (atoms/atoms.cpp).
    ("%atoms", config.atoms_command),
    ("%kiln", config.kiln_command),
]
config.recursiveExpansionLimit = 3


def has_ptxas():
    """Whether the command itself finds one; it knows where to look."""
    with tempfile.TemporaryDirectory() as folder:
        report = subprocess.run(
            [config.kiln_command, "gemm", "64", "64", "64"]
            + ["--tile", "64x64x64", "--device", "none"],
            cwd=folder,
            env=dict(config.environment),
            capture_output=True,
            text=True,
            check=True,
        )
    return "there is no ptxas here" not in report.stdout


if has_ptxas():
    config.available_features.add("ptxas")
