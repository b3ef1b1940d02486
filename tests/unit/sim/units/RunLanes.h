// RunLanes: a few PTX instructions run by one warp, with registers set and read
// by name.
#pragma once

#include "kiln/base/error.h"
#include "sim/checks/LaunchChecks.h"
#include "sim/launch/Launch.h"
#include "sim/units/Units.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace kiln::sim {

class RunLanes {
public:
  /// `registers` as declared (".reg .b32 %a, %d;"), and the instructions.
  RunLanes(const std::string &registers, const std::string &instructions)
      : module_(ptx::parse(fmt::format(".version 8.0\n.target sm_90a\n"
                                       ".address_size 64\n"
                                       ".visible .entry test()\n{{\n{}\n{}\n"
                                       "ret;\n}}\n",
                                       registers, instructions))),
        function_(module_.functions.at(0)),
        launch_(memory_, module_, function_, config()),
        checks_(launch_.machine()),
        cluster_(launch_.machine(), {0, 0, 0}, 0, &checks_),
        decoder_(instructionSet(), module_, {&function_},
                 {[](const ptx::Function &,
                     const std::string &) -> const Symbol * { return nullptr; },
                  [](const ptx::Function &) { return 0u; }}) {
    for (std::size_t i = 0; i < function_.registers.size(); ++i) {
      ptx::Operand operand;
      operand.kind = ptx::Operand::Kind::reg;
      operand.reg = static_cast<int>(i);
      const ptx::Register &declared = function_.registers[i];
      if (declared.type == ptx::ScalarType::pred)
        preds_[declared.name] = decoder_.pred(operand);
      else
        regs_[declared.name] = decoder_.reg(operand);
    }
    code_ = decoder_.decode();
    warp_ = std::make_unique<Warp>(cluster_.cta(0), 0, code_);
    for (const auto &[name, reg] : regs_)
      warp_->setPoison(reg, kAllLanes, 0);
  }

  RunLanes &set(const std::string &name, int lane, std::uint64_t bits) {
    warp_->write(regs_.at(name), lane, bits);
    return *this;
  }
  RunLanes &setPred(const std::string &name, LaneMask mask) {
    warp_->setPred(preds_.at(name), kAllLanes, mask);
    return *this;
  }
  RunLanes &run() {
    for (int i = 0; i < 1000 && !warp_->isDone(); ++i)
      if (warp_->run({.limit = 1000}) == Progress::none)
        break;
    return *this;
  }
  std::uint64_t get(const std::string &name, int lane = 0) const {
    return warp_->read(regs_.at(name), lane);
  }
  LaneMask pred(const std::string &name) const {
    return warp_->pred(preds_.at(name));
  }
  /// Lanes of a register, or bits of a lane, that come from unwritten bytes.
  RunLanes &setPoison(const std::string &name, LaneMask lanes) {
    warp_->setPoison(regs_.at(name), kAllLanes, lanes);
    return *this;
  }
  RunLanes &setPoisonBits(const std::string &name, int lane,
                          std::uint64_t bits) {
    warp_->setPoisonBits(regs_.at(name), lane, bits);
    return *this;
  }
  LaneMask poison(const std::string &name) const {
    return warp_->poison(regs_.at(name));
  }
  std::uint64_t poisonBits(const std::string &name, int lane) const {
    return warp_->poisonBits(regs_.at(name), lane);
  }
  LaneMask predPoison(const std::string &name) const {
    return warp_->predPoison(preds_.at(name));
  }
  RunLanes &setPredPoison(const std::string &name, LaneMask lanes) {
    warp_->setPredPoison(preds_.at(name), kAllLanes, lanes);
    return *this;
  }
  Warp &warp() { return *warp_; }

private:
  static LaunchConfig config() {
    LaunchConfig config;
    config.block = {32, 1, 1};
    return config;
  }

  ptx::Module module_;
  const ptx::Function &function_;
  GlobalMemory memory_;
  Launch launch_;
  LaunchChecks checks_;
  Cluster cluster_;
  Decoder decoder_;
  Code code_;
  std::map<std::string, Reg> regs_;
  std::map<std::string, Pred> preds_;
  std::unique_ptr<Warp> warp_;
};

/// One instruction `INSTRUCTION %d, %a, %b, %c` on one set of values: its
/// result. Types are of registers, the result's first.
inline std::uint64_t calculate(const std::string &instruction,
                               const std::string &types,
                               std::initializer_list<std::uint64_t> values) {
  static constexpr const char *names[] = {"%d", "%a", "%b", "%c", "%e"};
  std::string declarations, operands;
  std::size_t begin = 0, count = 0;
  while (begin < types.size()) {
    std::size_t end = std::min(types.find(' ', begin), types.size());
    declarations += fmt::format(".reg .{} {};\n",
                                types.substr(begin, end - begin), names[count]);
    operands += fmt::format("{}{}", count ? ", " : "", names[count]);
    begin = end + 1;
    ++count;
  }
  RunLanes lanes(declarations, fmt::format("{} {};", instruction, operands));
  int index = 1;
  for (std::uint64_t value : values)
    lanes.set(names[index++], 0, value);
  return lanes.run().get("%d");
}

/// What is said against an instruction; empty where it is accepted. Registers
/// are %r (32 bits), %d (64), %h (16) and %p.
inline std::string refusal(const std::string &instruction) {
  try {
    RunLanes lanes(".reg .b32 %r; .reg .b64 %d; .reg .b16 %h; .reg .pred %p;",
                   instruction);
  } catch (const UserError &error) {
    return error.what();
  }
  return "";
}

/// Each instruction with what must be said against it.
inline void expectRefusals(
    std::initializer_list<std::pair<const char *, const char *>> cases) {
  for (auto [instruction, reason] : cases) {
    std::string said = refusal(instruction);
    EXPECT_NE(said.find(reason), std::string::npos)
        << instruction << " expects '" << reason << "', got '" << said << "'";
  }
}

} // namespace kiln::sim
