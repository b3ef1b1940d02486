// Target: something that takes a stranger's bytes, as fuzzers know it.
//
// One framework, two programs: fuzz_TARGET (libFuzzer.cpp) under clang's
// sanitizers, guided by coverage, and fuzz_drive (drive.cpp), which any
// compiler builds and which runs what was found before, and random changes of
// it.
#pragma once

#include "fuzz/Dice.h"

#include <span>
#include <string>
#include <string_view>

namespace kiln::fuzz {

struct Target {
  const char *name;
  /// Give the input to Kiln. What a user may see is answered with an Error or
  /// with nothing; anything else is a Misbehaviour.
  void (*run)(std::string_view input);
  /// One or more changes that know the input's form; empty: it has none. Null:
  /// bytes are changed.
  std::string (*mutate)(std::string_view input, Dice &dice);
};

std::span<const Target> targets();
/// Throws std::runtime_error with those that there are.
const Target &findTarget(std::string_view name);

/// What must not happen, in a sentence.
struct Misbehaviour {
  std::string what;
};

/// A sentence of Kiln's own that can be printed. Throws Misbehaviour.
void checkMessage(const std::string &message);

/// JSON in UTF-8. Throws Misbehaviour.
void checkReport(const std::string &json);

/// target.run; what it throws is judged: an Error is an answer, lack of memory
/// is none of Kiln's doing, and the rest is a Misbehaviour, which is thrown.
void runTarget(const Target &target, std::string_view input);

/// Change, insert, remove or repeat bytes.
std::string mutateBytes(std::string_view input, Dice &dice);
/// Change a value, a key or the order of a JSON document.
std::string mutateJson(std::string_view input, Dice &dice);
/// PTX, and the line of its launch (Launch.h).
std::string mutatePtx(std::string_view input, Dice &dice);

// The targets; each in a file of targets/.
void runPtx(std::string_view input);
void runDebugInfo(std::string_view input);
void runFatbin(std::string_view input);
void runSavedKernel(std::string_view input);
void runLaunchFile(std::string_view input);
void runNpy(std::string_view input);
void runDatabase(std::string_view input);
void runProblem(std::string_view input);
void runMlirText(std::string_view input);

} // namespace kiln::fuzz
