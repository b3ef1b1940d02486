// assemble: with a fake ptxas, everything but what the real one knows.
#include "kiln/run/assemble.h"
#include "support/Cache.h"
#include "unit/ptx/FakeTools.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace kiln {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace {

/// The cache of this process is chosen once, at its first use; it must be a
/// folder of the tests' own.
class OwnCache : public ::testing::Environment {
public:
  void SetUp() override {
    folder.emplace();
    setenv("KILN_CACHE", "on", 1);
    setenv("KILN_CACHE_DIR", (folder->path() / "cache").c_str(), 1);
  }
  void TearDown() override { folder.reset(); }

private:
  std::optional<TemporaryFolder> folder;
};

const ::testing::Environment *const kOwnCache =
    ::testing::AddGlobalTestEnvironment(new OwnCache);

constexpr std::string_view kPtx = R"(.file 1 "gemm.cpp"
.visible .entry gemm()
{
  .loc 1 20 1
  setmaxnreg.inc.sync.aligned.u32 232;
  ret;
}
)";

constexpr const char *kCounts = R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'gemm' for 'sm_90a'
ptxas info    : Function properties for gemm
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 168 registers, used 4 barriers
)";

constexpr const char *kIgnored =
    "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; "
    "unable to determine register count at entry.\n";

class Assemble : public WithoutToolkit {
protected:
  AssembleOptions options;

  void SetUp() override {
    Cache::ofProcess().clear();
    options.ptxas = writePtxas("13.0.88", 0);
    say(kCounts);
  }

  /// A ptxas that writes down its runs and arguments, says what `say` was
  /// given, and ends with `exitCode`.
  std::string writePtxas(const std::string &version, int exitCode) {
    return writeScript(inFolder("ptxas"),
                       "cd " + folder.path().string() +
                           "\nif [ \"$1\" = --version ]; then\n"
                           "  echo x >> versions\n"
                           "  echo 'release 13.0, V" +
                           version +
                           "'\n  exit 0\nfi\n"
                           "echo x >> runs\n"
                           "echo \"$1 $2 $4\" > arguments\n"
                           "echo \"${3%/*}\" > used\n"
                           "while IFS= read -r line; do echo \"$line\"; "
                           "done < \"$3\" > input\n"
                           "printf MACHINE > \"$5\"\n"
                           "while IFS= read -r line; do echo \"$line\"; "
                           "done < say\n"
                           "exit " +
                           std::to_string(exitCode) + "\n");
  }
  void say(std::string_view text) { folder.write("say", text); }
  int timesRun() const { return linesOf("runs"); }
  int linesOf(const std::string &name) const {
    if (!std::filesystem::exists(folder.path() / name))
      return 0;
    std::string text = folder.read(name);
    return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  }
  Assembly assembleGemm() { return assemble(kPtx, "gemm", options); }
  template <typename Expected>
  std::string messageFrom(std::string_view ptx = kPtx,
                          std::string_view entry = {}) {
    return messageOf<Expected>([&] { assemble(ptx, entry, options); });
  }
};

} // namespace

TEST_F(Assemble, returnsWhatPtxasMade) {
  Assembly assembly = assembleGemm();
  EXPECT_EQ(std::string(reinterpret_cast<char *>(assembly.cubin.data()),
                        assembly.cubin.size()),
            "MACHINE");
  EXPECT_EQ(assembly.resources.registers, 168);
  EXPECT_EQ(assembly.resources.barriers, 4);
  EXPECT_EQ(assembly.ptxas_version, "13.0.88");
  EXPECT_THAT(assembly.diagnostics, IsEmpty());
  EXPECT_EQ(folder.read("input"), kPtx);
  EXPECT_EQ(folder.read("arguments"), "-v --gpu-name=sm_90a -o\n");
}

TEST_F(Assemble, leavesNoFolderBehind) {
  assembleGemm();
  std::string used = folder.read("used");
  used.pop_back();
  EXPECT_THAT(used, HasSubstr("kiln-"));
  EXPECT_FALSE(std::filesystem::exists(used));

  options.ptxas = writePtxas("13.0.88", 1);
  options.use_cache = false;
  messageFrom<RuntimeError>();
  used = folder.read("used");
  used.pop_back();
  EXPECT_FALSE(std::filesystem::exists(used));
}

TEST_F(Assemble, takesTheOnlyEntry) {
  EXPECT_EQ(assemble(kPtx, {}, options).resources.registers, 168);
}

TEST_F(Assemble, asksWhichEntryIsMeant) {
  std::string two = std::string(kPtx) + ".entry other() { ret; }\n";
  EXPECT_EQ(messageFrom<UserError>(two),
            "the PTX has 2 entries; say which one is meant: gemm, other");
  EXPECT_EQ(messageFrom<UserError>(two, "third"),
            "the PTX has no entry 'third'; it has gemm, other");
  EXPECT_EQ(messageFrom<UserError>("// nothing"),
            "the PTX has no .entry function; there is nothing to assemble in "
            "10 bytes of it");
  EXPECT_EQ(timesRun(), 0);
}

TEST_F(Assemble, saysThatThereIsNoPtxas) {
  options.ptxas.clear();
  EXPECT_EQ(messageFrom<RuntimeError>(),
            "there is no ptxas: set KILN_PTXAS to one, CUDA_HOME to a CUDA "
            "toolkit, or have it on PATH. A kernel runs without it: the driver "
            "assembles PTX by itself");
}

TEST_F(Assemble, refusesAPtxasWithoutAVersion) {
  options.ptxas = writeScript(inFolder("mute"), "echo hello; exit 2\n");
  EXPECT_EQ(messageFrom<RuntimeError>(),
            "'" + options.ptxas +
                " --version' does not answer with a version such as "
                "'V13.0.88' (exit status 2); it said: hello\n");
}

TEST_F(Assemble, refusesSlowCode) {
  say(std::string(kIgnored) + kIgnored + kCounts);
  EXPECT_EQ(
      messageFrom<UserError>(),
      "gemm.cpp:20: ptxas 13.0.88 makes slower code for sm_90a than the kernel "
      "asks for:\n"
      "  gemm.cpp:20: info C7508: Potential Performance Loss: 'setmaxnreg' "
      "ignored; unable to determine register count at entry.\n"
      "    Without the size of the CTA ptxas cannot know how many registers a "
      "thread starts with. Give the entry .reqntid or .maxntid, and "
      ".minnctapersm 1; the CTA must be small enough for setmaxnreg to have "
      "registers to move.\n"
      "Change the kernel, or allow an id by AssembleOptions::allow to have it "
      "all the same");
}

TEST_F(Assemble, allowsById) {
  say(std::string(kIgnored) + kCounts);
  options.allow = {"C7508"};
  Assembly assembly = assembleGemm();
  ASSERT_THAT(assembly.diagnostics, SizeIs(1));
  EXPECT_EQ(assembly.diagnostics[0].id, "C7508");

  options.allow = {"C7514"};
  EXPECT_THAT(messageFrom<UserError>(), HasSubstr("C7508"));
}

TEST_F(Assemble, refusesAnAllowanceThatIsNoId) {
  for (const char *wrong : {"7508", "C", "C75xx", ""}) {
    options.allow = {wrong};
    EXPECT_EQ(
        messageFrom<UserError>(),
        "'" + std::string(wrong) +
            "' is not the id of a ptxas message; ids are written as C7508");
  }
}

TEST_F(Assemble, listsEachErrorWithItsPlace) {
  options.ptxas = writePtxas("13.0.88", 255);
  say("ptxas f.ptx, line 5; error   : Unknown modifier '.x'\n"
      "ptxas f.ptx, line 5; error   : Unknown symbol 'y'\n"
      "ptxas warning : not of interest\n"
      "ptxas fatal   : Ptx assembly aborted due to errors\n");
  EXPECT_EQ(messageFrom<UserError>(),
            "gemm.cpp:20: ptxas 13.0.88 does not assemble the PTX for sm_90a:\n"
            "  gemm.cpp:20: error: Unknown modifier '.x' (PTX line 5)\n"
            "  gemm.cpp:20: error: Unknown symbol 'y' (PTX line 5)\n"
            "  fatal: Ptx assembly aborted due to errors");
}

TEST_F(Assemble, tellsAFailureOfTheToolFromOneOfThePtx) {
  options.ptxas = writePtxas("13.0.88", 127);
  say("cannot load libfoo.so\n");
  EXPECT_EQ(messageFrom<RuntimeError>(),
            "'" + options.ptxas +
                "' failed with exit status 127 and no error message; it said: "
                "cannot load libfoo.so\n");
}

TEST_F(Assemble, refusesAnAnswerWithoutCounts) {
  say("ptxas info    : 0 bytes gmem\n");
  EXPECT_EQ(messageFrom<RuntimeError>(),
            "ptxas 13.0.88 does not say what 'gemm' uses; it said: "
            "ptxas info    : 0 bytes gmem\n");
}

TEST_F(Assemble, remembersTheAnswer) {
  Assembly first = assembleGemm();
  Assembly second = assembleGemm();
  EXPECT_EQ(timesRun(), 1);
  EXPECT_EQ(second.cubin, first.cubin);
  EXPECT_EQ(second.resources, first.resources);
  EXPECT_EQ(second.ptxas_version, first.ptxas_version);
}

TEST_F(Assemble, readsARememberedAnswerAnew) {
  say(std::string(kIgnored) + kCounts);
  messageFrom<UserError>();
  EXPECT_THAT(messageFrom<UserError>(), HasSubstr("C7508"));
  options.allow = {"C7508"};
  EXPECT_THAT(assembleGemm().diagnostics, SizeIs(1));
  EXPECT_EQ(timesRun(), 1);
}

TEST_F(Assemble, remembersByEverythingThatCounts) {
  assembleGemm();
  options.target = "sm_90";
  assembleGemm();
  EXPECT_EQ(timesRun(), 2);
  assemble(std::string(kPtx) + "\n", {}, options);
  EXPECT_EQ(timesRun(), 3);
  options.ptxas = writePtxas("13.1.80", 0);
  std::filesystem::last_write_time(
      options.ptxas,
      std::filesystem::last_write_time(options.ptxas) + std::chrono::hours(1));
  EXPECT_EQ(assembleGemm().ptxas_version, "13.1.80");
  EXPECT_EQ(timesRun(), 4);
}

TEST_F(Assemble, runsAgainWithoutTheCache) {
  options.use_cache = false;
  assembleGemm();
  assembleGemm();
  EXPECT_EQ(timesRun(), 2);
  options.use_cache = true;
  assembleGemm();
  EXPECT_EQ(timesRun(), 3);
}

TEST_F(Assemble, doesNotRememberFailures) {
  options.ptxas = writePtxas("13.0.88", 255);
  say("ptxas fatal   : Memory allocation failure\n");
  messageFrom<UserError>();
  messageFrom<UserError>();
  EXPECT_EQ(timesRun(), 2);
}

TEST_F(Assemble, asksForTheVersionOnce) {
  assembleGemm();
  assembleGemm();
  EXPECT_EQ(linesOf("versions"), 1);
}

TEST_F(Assemble, TellsOfAWaitThatWasMovedUp) {
  std::string ptx(kPtx);
  std::string body = "  wgmma.commit_group.sync.aligned;\n", code;
  for (int i = 0; i < 16; ++i) {
    body += "  add.f32 %f1, %f2, %f3;\n";
    code += fmt::format("echo '//## File \"x\", line {}'\n"
                        "echo '/*0010*/ FADD R1, R2, R3 ;'\n",
                        6 + i);
  }
  body += "  wgmma.wait_group.sync.aligned 0;\n"; // line 22
  ptx.insert(ptx.find("  setmaxnreg"), body);
  // Without a disassembler nobody looks.
  EXPECT_THAT(assemble(ptx, {}, options).diagnostics, IsEmpty());
  writeScript(inFolder("nvdisasm"),
              "[ \"$1\" = --print-line-info-ptx ] || exit "
              "1\necho '//## File \"x\", line 22'\n"
              "echo '/*0000*/ WARPGROUP.DEPBAR.LE gsb0 "
              ";'\n" +
                  code);
  for (bool isCached : {false, true}) {
    Assembly assembly = assemble(ptx, {}, options);
    ASSERT_THAT(assembly.diagnostics, SizeIs(1)) << isCached;
    const AssembleDiagnostic &told = assembly.diagnostics.front();
    EXPECT_EQ(told.severity, "warning");
    EXPECT_EQ(told.ptx_line, 22);
    EXPECT_EQ(told.where.line, 20);
    EXPECT_THAT(told.message,
                HasSubstr("wgmma.wait_group was moved up, before 16 "
                          "instructions of arithmetic"));
  }
  EXPECT_EQ(linesOf("runs"), 2);
  // One that does not know the code says nothing.
  Cache::ofProcess().clear();
  writeScript(inFolder("nvdisasm"), "echo unknown; exit 1\n");
  EXPECT_THAT(assemble(ptx, {}, options).diagnostics, IsEmpty());
}

using Disassemble = WithoutToolkit;

static Assembly machineCode() {
  Assembly assembly;
  assembly.cubin = {std::byte{'A'}, std::byte{'B'}};
  return assembly;
}

TEST_F(Disassemble, saysWhatIsMissing) {
  EXPECT_EQ(messageOf<RuntimeError>([] { disassemble(machineCode()); }),
            "there is neither cuobjdump nor nvdisasm beside ptxas, in "
            "CUDA_HOME/bin or on PATH; install the CUDA toolkit's binary "
            "utilities to see machine code");
}

TEST_F(Disassemble, prefersTheProgramBesidePtxas) {
  std::string show = "read code < \"$2\"; echo \"$0 $1 $code\"\n";
  writeScript(inFolder("path/cuobjdump"), show);
  WithVariable path("PATH", inFolder("path"));
  EXPECT_EQ(disassemble(machineCode()),
            inFolder("path/cuobjdump") + " -sass AB\n");

  WithVariable knob("KILN_PTXAS", writeScript(inFolder("beside/ptxas"), ""));
  writeScript(inFolder("beside/cuobjdump"), show);
  EXPECT_EQ(disassemble(machineCode()),
            inFolder("beside/cuobjdump") + " -sass AB\n");
}

TEST_F(Disassemble, looksBesideThePtxasItIsGiven) {
  writeScript(inFolder("given/cuobjdump"), "echo given\n");
  AssembleOptions options{.ptxas = writeScript(inFolder("given/ptxas"), "")};
  EXPECT_EQ(disassemble(machineCode(), options), "given\n");
}

TEST_F(Disassemble, fallsBackToNvdisasm) {
  writeScript(inFolder("cuda/bin/nvdisasm"), "read code < $1; echo $code\n");
  WithVariable home("CUDA_HOME", inFolder("cuda"));
  EXPECT_EQ(disassemble(machineCode()), "AB\n");
}

TEST_F(Disassemble, passesOnAFailure) {
  std::string tool =
      writeScript(inFolder("cuda/bin/cuobjdump"), "echo bad elf; exit 1\n");
  WithVariable home("CUDA_HOME", inFolder("cuda"));
  EXPECT_EQ(messageOf<RuntimeError>([] { disassemble(machineCode()); }),
            "'" + tool +
                "' failed with exit status 1 on 2 bytes of machine code; it "
                "said: bad elf\n");
}

} // namespace kiln
