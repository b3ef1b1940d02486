// FakeCudaTest: a fixture with a fresh fake driver.
#pragma once

#include "unit/runtime/fake_cuda/FakeCuda.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace kiln::test {

/// The message of the Expected that `action` throws.
template <typename Expected, typename Action>
std::string messageOf(Action action) {
  try {
    action();
  } catch (const Expected &error) {
    return error.message();
  }
  return "nothing was thrown";
}

/// Each test starts with the fake as if just loaded, and must leave no context
/// current on the thread.
class FakeCudaTest : public testing::Test {
protected:
  void SetUp() override {
    void *library = dlopen(KILN_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    auto state = reinterpret_cast<FakeCuda *(*)()>(dlsym(library, "fakeCuda"));
    ASSERT_NE(state, nullptr);
    fake = state();
    *fake = FakeCuda();
  }
  void TearDown() override {
    if (fake) {
      EXPECT_EQ(fake->contextDepth, 0);
    }
  }

  FakeCuda *fake = nullptr;
};

} // namespace kiln::test
