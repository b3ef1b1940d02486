// Lesson 2: saxpy by TMA. Adds shared memory, the tensor memory accelerator
// that fills it, and the mbarrier that says when it is full.
//
// In lesson 1 each thread fetched its own two numbers. Here one thread asks the
// TMA unit for a whole row of x and of y; the unit copies them to shared memory
// by itself, and all threads wait until the bytes are there:
//
//     thread 0 | init | expect 256 bytes, load x, load y | wait | compute
//     others   |      |                                  | wait | compute
//              ^ sync                        TMA writes ^
//
// One row is too little work to gain from this. It is the whole protocol,
// though, and the matrix products of the later lessons use no other.
#include "lessons.h"

using namespace kiln;

namespace lessons {

static constexpr int kColumns = 32;

// The kernel. A tensor map tells the TMA unit what a tensor looks like and
// which tile of it one load brings: here one row. It is made when the kernel is
// launched, from the buffer at hand; for the kernel it is one more parameter.
// y is read by TMA and written by threads: one argument, seen both ways.
//
// The mbarrier completes a phase when its count of arrivals has come and every
// byte announced to it has been written. One thread arrives, and announces the
// bytes of both tiles; TMA reports bytes as it writes them. wait(0) waits for
// the first phase.
//
// Three things are easy to forget. The barrier must be initialised before
// anybody uses it, hence sync_threads. The TMA unit does not look through the
// same eyes as the threads, hence fence_mbarrier_init. And the bytes announced
// must be the bytes loaded, or the wait never ends: so they are asked of the
// tensor maps and not typed in.
Module saxpy_tma() {
  KernelBuilder kb("saxpy_tma", {.threads = kColumns});
  Dim rows = kb.dim("rows");
  TmaOptions one_row = {.tile = {1, kColumns}};
  TmaTensor x = kb.tensor_map("x", f32, {rows, kColumns}, one_row);
  Tensor y = kb.tensor("y", f32, {rows, kColumns});
  TmaTensor y_map = kb.tensor_map(y, one_row);
  Value alpha = kb.scalar("alpha", f32);
  kb.grid(rows);

  SharedTile x_tile = kb.shared(x.tile(), {.name = "x"});
  SharedTile y_tile = kb.shared(y_map.tile(), {.name = "y"});
  Mbarrier loaded = kb.mbarriers(1, "loaded")[0];
  one_thread([&] {
    loaded.init(1);
    fence_mbarrier_init();
  });
  sync_threads();

  Value i = block_id();
  one_thread([&] {
    loaded.arrive_expect_tx(x.tile_bytes() + y_map.tile_bytes());
    tma_load(x_tile, x, {i, 0}, loaded);
    tma_load(y_tile, y_map, {i, 0}, loaded);
  });
  loaded.wait(0);

  Value j = thread_id();
  y(i, j) = y_tile(0, j) + alpha * x_tile(0, j);
  return kb.module();
}

} // namespace lessons

// The launcher is that of lesson 1: the caller passes the same four arguments
// and does not see that two of them became tensor maps.
int main() try {
  Kernel kernel = compile(lessons::saxpy_tma());
  lessons::describe(kernel);
  return lessons::launch_saxpy(kernel);
} catch (const Error &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.exit_status());
}

// To take away:
//
// - TMA: one thread asks, the unit copies, an mbarrier counts the bytes.
// - init, fence, sync; expect, load; wait. The order is the protocol.
// - A wait that nobody could end is refused while the kernel is built: take
//   the arrival away and see.
