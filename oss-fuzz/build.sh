#!/usr/bin/env bash
# build.sh: the fuzz targets into $OUT, as OSS-Fuzz asks for them: with its
# compiler ($CXX), its sanitizers ($CXXFLAGS), its engine ($LIB_FUZZING_ENGINE),
# and each with its seeds and its dictionary.
set -euo pipefail

cd "$(dirname "$(realpath "$0")")"
[ -f CMakePresets.json ] || cd "${SRC:-..}/kiln" 2>/dev/null || cd ..
build=${WORK:-$PWD/build-oss-fuzz}/kiln

cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Fuzz \
  -DCMAKE_CXX_COMPILER="$CXX" -DKILN_FUZZ_FLAGS="${CXXFLAGS:-}" \
  -DKILN_FUZZ_ENGINE="$LIB_FUZZING_ENGINE" -DBUILD_SHARED_LIBS=OFF \
  -DKILN_COMPILER=OFF -DKILN_BENCHMARKS=OFF -DKILN_UNITY=ON -DKILN_OWN_FMT=ON \
  -DSQLite3_LIBRARY="$(find /usr/lib -name libsqlite3.a | head -1)"
ninja -C "$build" fuzz_kiln fuzz_drive

# The sanitizers' own leaks are none of Kiln's.
ASAN_OPTIONS=detect_leaks=0 "$build/bin/fuzz_drive" --write-seeds "$build/seeds"
for link in "$build"/bin/fuzz_*; do
  [ -L "$link" ] || continue
  name=$(basename "$link")
  target=${name#fuzz_}
  cp -L "$link" "$OUT/$name"
  folders=("$build/seeds/$target")
  for kind in corpus found; do
    [ ! -d "tests/fuzz/$kind/$target" ] || folders+=("tests/fuzz/$kind/$target")
  done
  zip -q -j "$OUT/${name}_seed_corpus.zip" $(find "${folders[@]}" -type f)
  [ ! -s "$build/seeds/$target.dict" ] || cp "$build/seeds/$target.dict" "$OUT/$name.dict"
done
