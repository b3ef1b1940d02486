// record: ask the GPU every probe and write its answers.
//
//     kiln_golden_record tests/golden/h200.json [full.txt [part of a name]]
//
// A trap ends everything a process has on the GPU, and a hang never ends: the
// probes run in a child that is replaced when that happens. The second file
// takes whole outputs in hexadecimal, to look at where the simulator differs.
#include "golden/Probes.h"

#include <ctime>
#include <fstream>
#include <iostream>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace kiln;
using namespace kiln::golden;

/// Longer than any compilation and launch of a probe takes.
static constexpr int kPatienceMs = 30'000;

namespace {
struct Answer {
  std::string trap; ///< what the driver said
  Bytes output;
};
} // namespace

/// Everything or nothing.
static void send(int pipe, const void *data, std::size_t bytes) {
  auto *at = static_cast<const char *>(data);
  while (bytes) {
    ssize_t sent = write(pipe, at, bytes);
    if (sent <= 0)
      _exit(1);
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
}

static void sendString(int pipe, const std::string &text) {
  std::uint64_t size = text.size();
  send(pipe, &size, sizeof(size));
  send(pipe, text.data(), text.size());
}

/// Run probes from `first` on until one traps.
[[noreturn]] static void child(int pipe, const std::vector<Probe> &list,
                               std::size_t first) {
  try {
    auto device = open_cuda();
    sendString(pipe, device->name());
    for (std::size_t i = first; i < list.size(); ++i) {
      std::string trap;
      Bytes output;
      try {
        LaunchResult result;
        output = runProbe(*device, list[i], result);
      } catch (const std::exception &error) {
        trap = error.what();
      }
      sendString(pipe, trap);
      sendString(pipe, std::string(output.begin(), output.end()));
      if (!trap.empty())
        _exit(0);
    }
  } catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    _exit(1);
  }
  _exit(0);
}

/// False where the child is gone or silent.
static bool receive(int pipe, void *data, std::size_t bytes) {
  auto *at = static_cast<char *>(data);
  while (bytes) {
    pollfd wanted = {pipe, POLLIN, 0};
    if (poll(&wanted, 1, kPatienceMs) <= 0)
      return false;
    ssize_t got = read(pipe, at, bytes);
    if (got <= 0)
      return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

static bool receiveString(int pipe, std::string &text) {
  std::uint64_t size = 0;
  if (!receive(pipe, &size, sizeof(size)))
    return false;
  text.resize(size);
  return receive(pipe, text.data(), size);
}

/// All answers, through as many children as it takes.
static std::vector<Answer> ask(const std::vector<Probe> &list,
                               std::string &deviceName) {
  std::vector<Answer> answers;
  while (answers.size() < list.size()) {
    int ends[2];
    if (pipe(ends) != 0)
      throw std::runtime_error("no pipe");
    pid_t process = fork();
    if (process == 0) {
      close(ends[0]);
      child(ends[1], list, answers.size());
    }
    close(ends[1]);
    if (!receiveString(ends[0], deviceName))
      throw std::runtime_error("the GPU cannot be opened");
    while (answers.size() < list.size()) {
      Answer answer;
      std::string output;
      bool isAnswered =
          receiveString(ends[0], answer.trap) && receiveString(ends[0], output);
      if (!isAnswered)
        answer.trap = "no answer";
      answer.output.assign(output.begin(), output.end());
      answers.push_back(answer);
      if (!answer.trap.empty())
        break;
    }
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
    close(ends[0]);
  }
  return answers;
}

/// The number in the first line that says it.
static std::string driverVersion() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string word;
  while (file >> word)
    if (word.size() > 6 &&
        word.find_first_not_of("0123456789.") == std::string::npos)
      return word;
  return "unknown";
}

static std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result + "\"";
}

/// A trap in words that do not change from run to run.
static std::string trapName(const std::string &message) {
  std::size_t at = message.find("CUDA_ERROR_");
  if (at == std::string::npos)
    return message.substr(0, 300);
  return message.substr(
      at, message.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_", at) - at);
}

int main(int count, char **arguments) {
  if (count < 2) {
    std::cerr << "usage: kiln_golden_record h200.json [full.txt [part of a "
                 "probe's name]]\n";
    return 2;
  }
  std::vector<Probe> list = probes();
  if (count > 3)
    std::erase_if(list, [&](const Probe &probe) {
      return (probe.group + "." + probe.name).find(arguments[3]) ==
             std::string::npos;
    });
  std::string deviceName;
  std::vector<Answer> answers;
  try {
    answers = ask(list, deviceName);
  } catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  char date[16];
  std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof(date), "%Y-%m-%d", std::gmtime(&now));
  std::ofstream json(arguments[1]);
  json << "{\n\"device\": " << quoted(deviceName)
       << ",\n\"driver\": " << quoted(driverVersion()) << ",\n\"date\": \""
       << date << "\",\n\"probes\": {";
  std::ofstream full;
  if (count > 2)
    full.open(arguments[2]);
  for (std::size_t i = 0; i < list.size(); ++i) {
    std::string name = list[i].group + "." + list[i].name;
    json << (i ? ",\n" : "\n") << quoted(name) << ": ";
    if (!answers[i].trap.empty()) {
      std::cerr << name << ": " << answers[i].trap << '\n';
      json << "{\"trap\": " << quoted(trapName(answers[i].trap)) << "}";
      continue;
    }
    json << "[";
    const char *separator = "";
    for (const std::string &row : summary(list[i], answers[i].output)) {
      json << separator << quoted(row);
      separator = ", ";
    }
    json << "]";
    Probe whole = list[i];
    whole.near = Near{};
    if (full.is_open())
      full << name << ' ' << summary(whole, answers[i].output)[0] << '\n';
  }
  json << "\n}\n}\n";
  return json ? 0 : 1;
}
