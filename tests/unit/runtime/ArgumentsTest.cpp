// Arguments: what is given by name, in the order of the kernel.
#include "kiln/run/arguments.h"

#include "unit/support/ErrorText.h"

#include <gtest/gtest.h>

using namespace kiln;

/// k(d, a, m, alpha, and a workspace)
static Kernel kernelOfFive() {
  using Argument = ArgumentSpec::Kind;
  Kernel kernel;
  kernel.name = "k";
  kernel.contract.arguments = {
      {"d", Argument::buffer, Type::f32, {}, true},
      {"a", Argument::buffer, Type::f16, {}, false},
      {"m", Argument::scalar, Type::i32, {}, false},
      {"alpha", Argument::scalar, Type::f32, {}, false},
      {"parts", Argument::buffer, Type::u32, {4}, true}};
  kernel.contract.arguments.back().is_workspace = true;
  return kernel;
}

static std::string refused(const std::vector<NamedArgument> &given) {
  return errorText([&] { arguments_by_name(kernelOfFive(), given); });
}

TEST(Arguments, AreInTheOrderOfTheKernel) {
  const std::vector<NamedArgument> given = {{"alpha", Scalar(0.5)},
                                            {"a", Buffer(0x1000, 8)},
                                            {"unused", Buffer(0x3000, 8)},
                                            {"m", Scalar(std::int64_t{7})},
                                            {"d", Buffer(0x2000, 8)}};
  auto arguments = arguments_by_name(kernelOfFive(), given);
  ASSERT_EQ(arguments.size(), 4u); // workspaces are the device's
  EXPECT_EQ(std::get<Buffer>(arguments[0]).address(), 0x2000u);
  EXPECT_EQ(std::get<Buffer>(arguments[1]).address(), 0x1000u);
  EXPECT_EQ(std::get<Scalar>(arguments[2]).type, Type::i32);
  EXPECT_EQ(std::get<Scalar>(arguments[2]).bits, 7u);
  EXPECT_EQ(std::get<Scalar>(arguments[3]).type, Type::f32);
  EXPECT_EQ(std::get<Scalar>(arguments[3]).value(), 0.5);
}

TEST(Arguments, TheOrderServesWhateverHasNames) {
  const std::string_view names[] = {"unused", "alpha", "m", "a", "d"};
  EXPECT_EQ(argument_order(kernelOfFive(), names),
            (std::vector<std::size_t>{4, 3, 2, 1}));
}

TEST(Arguments, Refused) {
  Buffer buffer(0x1000, 8);
  EXPECT_EQ(refused({{"d", buffer}}),
            "k takes 'a', and a call has no such operand; give a number in the "
            "problem");
  EXPECT_EQ(refused({{"d", buffer}, {"a", Buffer()}, {"m", Scalar(1)}, {"alpha", Scalar(1)}}),
            "k takes 'a', and the call has no buffer for it");
  EXPECT_EQ(refused({{"d", Scalar(1)},
                     {"a", buffer},
                     {"m", Scalar(1)},
                     {"alpha", Scalar(1)}}),
            "k takes 'd', and the call has no buffer for it");
  EXPECT_EQ(refused({{"d", buffer},
                     {"a", buffer},
                     {"m", buffer},
                     {"alpha", Scalar(1)}}),
            "k takes 'm', and the call has no number for it");
}
