// Machine: lay out a launch, run its clusters, collect what was found.
#include "sim/Machine.h"
#include "support/Error.h"

#include <algorithm>
#include <exception>
#include <thread>

namespace kiln::sim {

static std::uint64_t roundUp(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

Machine::Machine(GlobalMemory &memory, const ptx::Module &module,
                 const ptx::Function &entry, const LaunchConfig &config)
    : memory_(memory), module_(module), entry_(entry), config_(config) {
  layoutSymbols();
  Decoder decoder(module_, entry_, [this](const std::string &name) {
    auto found = symbols_.find(name);
    return found == symbols_.end() ? nullptr : &found->second;
  });
  code_ = decoder.decode();
  code_.localBytes = localBytes_;
}

Machine::~Machine() {
  for (std::uint64_t base : ownRegions_)
    memory_.free(base);
}

/// Give every variable its address: shared ones as ptxas lays them out, static
/// ones first and the extern array behind them at its alignment.
void Machine::layoutSymbols() {
  std::uint64_t shared = kFirstSharedAddress, param = 0;
  std::vector<const ptx::Variable *> externs;
  auto place = [&](const ptx::Variable &variable) {
    std::uint64_t align = std::max(variable.align, 1);
    switch (variable.space) {
    case ptx::StateSpace::shared:
      if (variable.isExtern || variable.bytes == 0) {
        externs.push_back(&variable);
        return;
      }
      shared = roundUp(shared, align);
      symbols_[variable.name] = {variable.space, shared, variable.bytes};
      shared += variable.bytes;
      return;
    case ptx::StateSpace::local:
    case ptx::StateSpace::param: // of a call: private to the thread
      localBytes_ = static_cast<std::uint32_t>(roundUp(localBytes_, align));
      symbols_[variable.name] = {ptx::StateSpace::local, localBytes_,
                                 variable.bytes};
      localBytes_ += static_cast<std::uint32_t>(variable.bytes);
      return;
    default:
      break;
    }
    Region &region = memory_.allocate(variable.bytes, variable.name);
    region.isReadOnly = variable.space == ptx::StateSpace::constant;
    std::copy(variable.init.begin(), variable.init.end(), region.data.get());
    region.valid.set(0, region.bytes);
    ownRegions_.push_back(region.base);
    symbols_[variable.name] = {variable.space, region.base, variable.bytes};
  };
  for (const ptx::Variable &variable : module_.variables)
    place(variable);
  for (const ptx::Variable &variable : entry_.locals)
    place(variable);
  for (const ptx::Variable &variable : entry_.parameters) {
    param = roundUp(param, std::max(variable.align, 1));
    symbols_[variable.name] = {ptx::StateSpace::param, param, variable.bytes};
    param += variable.bytes;
  }
  for (const ptx::Variable *variable : externs) {
    std::uint64_t base = roundUp(shared, std::max(variable->align, 1));
    symbols_[variable->name] = {ptx::StateSpace::shared, base,
                                config_.dynamicSmemBytes};
    staticSharedBytes_ = std::max<std::uint32_t>(
        staticSharedBytes_, static_cast<std::uint32_t>(base));
  }
  staticSharedBytes_ =
      std::max<std::uint32_t>(staticSharedBytes_,
                              static_cast<std::uint32_t>(shared)) -
      kFirstSharedAddress;
  for (const ptx::Variable &variable : module_.variables)
    for (const ptx::Variable::Relocation &relocation : variable.relocations) {
      auto found = symbols_.find(relocation.symbol);
      if (found == symbols_.end())
        userError("the initialiser of {} names {}, which is declared nowhere",
                  variable.name, relocation.symbol);
      std::uint64_t address = found->second.address + relocation.addend;
      if (relocation.isGeneric &&
          found->second.space == ptx::StateSpace::shared)
        address += kSharedWindow;
      Region *region = memory_.find(symbols_[variable.name].address);
      std::memcpy(region->data.get() + relocation.offset, &address,
                  relocation.bytes);
    }
}

SourceLine Machine::sourceLine(const ptx::Instruction &instruction) const {
  auto file = module_.files.find(instruction.source.file);
  if (file != module_.files.end() && instruction.source.line > 0)
    return {file->second, static_cast<unsigned>(instruction.source.line)};
  return {"PTX", static_cast<unsigned>(instruction.line)};
}

Finding Machine::makeFinding(const char *id, Finding::Grade grade,
                             const Warp &warp, const Op &op, LaneMask lanes,
                             const std::string &message) const {
  const Dim3 &cta = warp.cta().index();
  int thread = warp.thread(lanes ? firstLane(lanes) : 0);
  std::string who = fmt::format("thread {} of CTA ({}, {}, {})", thread, cta[0],
                                cta[1], cta[2]);
  if (countLanes(lanes) > 1)
    who += fmt::format(" and {} more of its warp", countLanes(lanes) - 1);
  return {.id = id,
          .grade = grade,
          .message = fmt::format("{}: {} [{}]", message, who, op.origin->text),
          .where = sourceLine(*op.origin),
          .ptx_line = op.origin->line};
}

void Machine::warn(const char *id, const Warp &warp, const Op &op,
                   LaneMask lanes, const std::string &message) {
  std::lock_guard lock(mutex_);
  if (told_[{id, op.origin->line}])
    return;
  told_[{id, op.origin->line}] = true;
  findings_.push_back(
      makeFinding(id, Finding::Grade::warning, warp, op, lanes, message));
}

void Machine::fault(const char *id, const Warp &warp, const Op &op,
                    LaneMask lanes, const std::string &message) {
  throw Fault{makeFinding(id, Finding::Grade::error, warp, op, lanes, message)};
}

void Machine::print(const std::string &text) {
  std::lock_guard lock(mutex_);
  if (config_.print)
    return config_.print(text);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

/// Kernels that read and write flags in global memory need their CTAs at once;
/// the others may run one cluster after the other.
static bool talksThroughGlobal(const ptx::Function &entry) {
  return std::any_of(
      entry.body.begin(), entry.body.end(),
      [](const ptx::Instruction &instruction) {
        bool isShared = instruction.has("shared") ||
                        instruction.has("shared::cta") ||
                        instruction.has("shared::cluster");
        if (instruction.opcode == "atom" || instruction.opcode == "red")
          return !isShared;
        if (instruction.opcode != "ld" && instruction.opcode != "st")
          return false;
        return !isShared &&
               (instruction.has("acquire") || instruction.has("release") ||
                instruction.has("relaxed") || instruction.has("volatile"));
      });
}

LaunchResult Machine::run() {
  const auto &[grid, block, cluster] =
      std::tie(config_.grid, config_.block, config_.cluster);
  Dim3 clusters;
  for (int axis = 0; axis < 3; ++axis)
    clusters[axis] = grid[axis] / cluster[axis];
  std::uint64_t count = std::uint64_t(clusters[0]) * clusters[1] * clusters[2];
  auto makeCluster = [&](std::uint64_t number) {
    Dim3 first = {
        static_cast<std::uint32_t>(number % clusters[0]) * cluster[0],
        static_cast<std::uint32_t>(number / clusters[0] % clusters[1]) *
            cluster[1],
        static_cast<std::uint32_t>(number / clusters[0] / clusters[1]) *
            cluster[2]};
    return std::make_unique<Cluster>(*this, first, number);
  };

  std::atomic<std::uint64_t> next{0}, instructions{0};
  std::uint64_t faultOf = ~std::uint64_t(0);
  std::exception_ptr failure;
  Finding fault;
  auto work = [&](std::uint64_t resident) {
    std::vector<std::pair<std::uint64_t, std::unique_ptr<Cluster>>> mine;
    for (;;) {
      while (mine.size() < resident) {
        std::uint64_t number = next++;
        if (number >= count)
          break;
        mine.emplace_back(number, makeCluster(number));
      }
      if (mine.empty())
        return;
      bool hasMoved = false;
      for (auto &[number, one] : mine) {
        try {
          hasMoved |= one->step(/*isAlone=*/mine.size() == 1);
        } catch (const Fault &caught) {
          std::lock_guard lock(mutex_);
          // The first cluster's finding wins, whoever got there first.
          if (number < faultOf) {
            faultOf = number;
            fault = caught.finding;
          }
          next = count;
          return;
        } catch (...) {
          std::lock_guard lock(mutex_);
          failure = std::current_exception();
          next = count;
          return;
        }
      }
      std::erase_if(mine, [&](auto &entry) {
        if (!entry.second->isDone())
          return false;
        instructions += entry.second->instructions;
        return true;
      });
      if (!hasMoved && !mine.empty()) {
        // All that are resident wait for each other.
        try {
          mine.front().second->reportDeadlock();
        } catch (const Fault &caught) {
          std::lock_guard lock(mutex_);
          faultOf = mine.front().first;
          fault = caught.finding;
          next = count;
          return;
        }
      }
    }
  };

  auto start = std::chrono::steady_clock::now();
  bool isTalking = talksThroughGlobal(entry_);
  if (isTalking) {
    std::uint64_t perCluster =
        std::uint64_t(cluster[0]) * cluster[1] * cluster[2];
    std::uint64_t slots = std::uint64_t(config_.device.sms) *
                          std::max(1, config_.device.max_threads_per_sm /
                                          int(block[0] * block[1] * block[2]));
    work(std::max<std::uint64_t>(1, slots / perCluster));
  } else {
    int threads = config_.threads > 0
                      ? config_.threads
                      : static_cast<int>(std::thread::hardware_concurrency());
    threads =
        static_cast<int>(std::min<std::uint64_t>(std::max(threads, 1), count));
    std::vector<std::thread> pool;
    for (int i = 1; i < threads; ++i)
      pool.emplace_back(work, 1);
    work(1);
    for (std::thread &thread : pool)
      thread.join();
  }
  if (failure)
    std::rethrow_exception(failure);
  std::fflush(stdout);
  LaunchResult result;
  result.time_us = std::chrono::duration<double, std::micro>(
                       std::chrono::steady_clock::now() - start)
                       .count();
  result.instructions = instructions;
  result.findings = std::move(findings_);
  if (faultOf != ~std::uint64_t(0))
    result.findings.push_back(std::move(fault));
  return result;
}

} // namespace kiln::sim
