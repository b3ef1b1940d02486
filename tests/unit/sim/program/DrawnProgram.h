// DrawnProgram: instructions for RunKernel, drawn from a seed: arithmetic of
// integers and floats, accesses of every pattern, atomics, and branches that
// part the lanes.
#pragma once

#include <fmt/format.h>
#include <random>
#include <string>

namespace kiln::sim {

class DrawnProgram {
public:
  explicit DrawnProgram(std::uint32_t seed) : random_(seed) {
    emit("mad.lo.u32 %r0, %t, 2654435761, 12345;");
    for (int i = 1; i < 8; ++i)
      emit("mad.lo.u32 %r{}, %r{}, 1664525, {};", i, i - 1, i);
    for (int i = 0; i < 8; ++i)
      emit("cvt.rn.f32.s32 %f{}, %r{};", i, i);
    emit("mov.u64 %x1, {};", random_());
    for (int i = 0; i < 4; ++i)
      emit("setp.lt.u32 %p{}, %t, {};", i, draw(64));
    addStatements(24, 0);
    // What was computed is part of the result.
    emit("mad.wide.u32 %x0, %t, 32, %out;");
    for (int i = 0; i < 4; ++i)
      emit("st.global.v2.b32 [%x0+{}], {{%r{}, %f{}}};", 8 * i, i, i + 4);
  }

  const std::string &text() const { return text_; }

private:
  std::uint32_t draw(std::size_t below) {
    return static_cast<std::uint32_t>(random_() % below);
  }
  template <std::size_t N> const char *oneOf(const char *const (&all)[N]) {
    return all[draw(N)];
  }
  template <typename... Args>
  void emit(fmt::format_string<Args...> format, Args &&...args) {
    text_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }
  std::string word() { return fmt::format("%r{}", draw(8)); }
  std::string real() { return fmt::format("%f{}", draw(8)); }
  std::string guard() {
    return draw(4) ? "" : fmt::format("@{}%p{} ", draw(2) ? "!" : "", draw(4));
  }

  void addStatements(int count, int depth) {
    for (int i = 0; i < count; ++i)
      switch (draw(depth < 2 ? 8 : 6)) {
      case 0:
      case 1:
        addInteger();
        break;
      case 2:
        addReal();
        break;
      case 3:
        addLoad();
        break;
      case 4:
        addStore();
        break;
      case 5:
        draw(2) ? addAtomic() : addCompare();
        break;
      case 6:
        addBranch(depth);
        break;
      default:
        addLoop(depth);
      }
  }
  void addInteger() {
    static constexpr const char *kTwo[] = {"add.u32", "sub.s32", "mul.lo.u32",
                                           "and.b32", "or.b32",  "xor.b32",
                                           "min.s32", "max.u32", "shl.b32"};
    static constexpr const char *kOne[] = {"not.b32", "popc.b32", "brev.b32",
                                           "clz.b32", "abs.s32"};
    std::string first = guard();
    if (draw(3))
      emit("{}{} {}, {}, {};", first, oneOf(kTwo), word(), word(), word());
    else
      emit("{}{} {}, {};", first, oneOf(kOne), word(), word());
  }
  void addReal() {
    static constexpr const char *kThree[] = {"fma.rn.f32", "fma.rm.f32",
                                             "fma.rz.ftz.f32", "fma.rp.f32"};
    static constexpr const char *kTwo[] = {"add.rn.f32", "mul.rz.f32",
                                           "div.rn.f32", "add.rm.ftz.f32"};
    static constexpr const char *kOne[] = {
        "cvt.sat.f32.f32",     "cvt.rni.f32.f32",  "cvt.rzi.f32.f32",
        "cvt.rmi.ftz.f32.f32", "cvt.rpi.f32.f32",  "cvt.rni.ftz.sat.f32.f32",
        "cvt.ftz.f32.f32",     "sqrt.rm.f32",      "rcp.rn.f32",
        "ex2.approx.ftz.f32",  "rsqrt.approx.f32", "lg2.approx.f32"};
    std::string first = guard();
    switch (draw(3)) {
    case 0:
      return emit("{}{} {}, {}, {}, {};", first, oneOf(kThree), real(), real(),
                  real(), real());
    case 1:
      return emit("{}{} {}, {}, {};", first, oneOf(kTwo), real(), real(),
                  real());
    default:
      return emit("{}{} {}, {};", first, oneOf(kOne), real(), real());
    }
  }
  void addCompare() {
    static constexpr const char *kKinds[] = {"lt.u32", "ge.s32", "eq.u32",
                                             "ne.s32"};
    emit("setp.{} %p{}, {}, {};", oneOf(kKinds), draw(4), word(), word());
  }
  /// %r15 = the offset of a lane's 16 bytes in 4096 bytes, in some pattern;
  /// 32 bytes for each thread where lanes shall not meet.
  void addOffset(bool isOwn) {
    switch (isOwn ? 0 : draw(5)) {
    case 0:
      return emit("shl.b32 %r15, %t, 5;");
    case 1:
      emit("and.b32 %r15, %t, 15;");
      return emit("shl.b32 %r15, %r15, 4;");
    case 2:
      return emit("mov.u32 %r15, {};", 16 * draw(256));
    case 3:
      emit("and.b32 %r15, {}, 255;", word());
      return emit("shl.b32 %r15, %r15, 4;");
    default:
      return emit("shl.b32 %r15, %t, {};", draw(4) ? 4 : 2 + draw(2));
    }
  }
  /// The same of four bytes, in tiles of 4, 8, 16 or 32 lanes.
  void addWordOffset() {
    std::uint32_t log = 2 + draw(4);
    emit("and.b32 %r15, %t, {};", (1u << log) - 1);
    emit("shl.b32 %r15, %r15, 2;");
    emit("shr.u32 %r14, %t, {};", log);
    emit("mad.lo.u32 %r15, %r14, 256, %r15;");
  }
  /// Where: in the space of `base`, at %x2 or %r14.
  std::string addPlace(bool isShared, const char *base) {
    if (isShared) {
      emit("add.u32 %r14, %s, %r15;");
      return "[%r14]";
    }
    emit("cvt.u64.u32 %x2, %r15;");
    emit("add.u64 %x2, %x2, {};", base);
    return "[%x2]";
  }
  void addLoad() {
    bool isShared = draw(3) == 0;
    std::uint32_t kind = draw(8);
    kind > 5 ? addWordOffset() : addOffset(false);
    std::string place = addPlace(isShared, "%in");
    const char *space = isShared ? "shared" : "global";
    std::string first = guard();
    switch (kind) {
    case 0:
      return emit("{}ld.{}.u8 {}, {};", first, space, word(), place);
    case 1:
      return emit("{}ld.{}.s16 {}, {};", first, space, word(), place);
    case 2:
      return emit("{}ld.{}.u64 %x1, {};", first, space, place);
    case 3:
      return emit("{}ld.{}.v2.f32 {{%f2, %f3}}, {};", first, space, place);
    case 4:
      return emit("{}ld.{}.v4.u32 {{%r1, %r3, %r5, %r7}}, {};", first, space,
                  place);
    default:
      return emit("{}ld.{}.u32 {}, {};", first, space, word(), place);
    }
  }
  void addStore() {
    bool isShared = draw(2);
    addOffset(draw(8) != 0);
    std::string place = addPlace(isShared, "%out");
    const char *space = isShared ? "shared" : "global";
    std::string first = guard();
    switch (draw(5)) {
    case 0:
      return emit("{}st.{}.u8 {}, {};", first, space, place, word());
    case 1:
      return emit("{}st.{}.u64 {}, %x1;", first, space, place);
    case 2:
      return emit("{}st.{}.v2.f32 {}, {{%f1, %f6}};", first, space, place);
    case 3:
      return emit("{}st.{}.v4.u32 {}, {{%r0, %r2, %r4, %r6}};", first, space,
                  place);
    default:
      return emit("{}st.{}.u32 {}, {};", first, space, place, word());
    }
  }
  void addAtomic() {
    static constexpr const char *kKinds[] = {"add", "max", "exch", "xor"};
    bool isShared = draw(2);
    addOffset(draw(2));
    std::string place = addPlace(isShared, "%out");
    const char *space = isShared ? "shared" : "global";
    std::string first = guard();
    const char *kind = oneOf(kKinds);
    const char *type = kind[0] == 'e' || kind[0] == 'x' ? "b32" : "u32";
    if (draw(4))
      emit("{}atom.{}.{}.{} {}, {}, {};", first, space, kind, type, word(),
           place, word());
    else
      emit("{}atom.{}.cas.b32 {}, {}, {}, {};", first, space, word(), place,
           word(), word());
  }
  void addBranch(int depth) {
    int label = labels_++;
    emit("@{}%p{} bra L{};", draw(2) ? "!" : "", draw(4), label);
    addStatements(3, depth + 1);
    if (draw(2)) {
      int end = labels_++;
      emit("bra L{};", end);
      emit("L{}:", label);
      addStatements(3, depth + 1);
      emit("L{}:", end);
    } else {
      emit("L{}:", label);
    }
  }
  /// Lanes leave it after one to eight rounds.
  void addLoop(int depth) {
    int label = labels_++, counter = 8 + depth;
    emit("and.b32 %r{}, {}, 7;", counter, word());
    emit("L{}:", label);
    addStatements(2, depth + 1);
    emit("sub.u32 %r{}, %r{}, 1;", counter, counter);
    emit("setp.ge.s32 %p{}, %r{}, 0;", 5 + depth, counter);
    emit("@%p{} bra L{};", 5 + depth, label);
  }

  std::mt19937 random_;
  std::string text_;
  int labels_ = 0;
};

} // namespace kiln::sim
