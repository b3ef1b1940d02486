// gemm_matrices: the memory of a product, on the host and on a device.
#pragma once

#include <kiln/run/device.h>
#include <kiln/kernels/gemm_reference.h>

#include <string>
#include <vector>

namespace kiln::cli {

/// Refuse matrices that this machine cannot hold, before anything is done for
/// them. Throws RuntimeError with the name of the first and its size.
void check_memory(const ReferenceGemm &gemm, bool has_c);

/// The matrices on the host. Every byte of D begins as 0xff, NaN in every float
/// type, so that an element nobody wrote cannot pass, and a gap that somebody
/// wrote shows.
struct GemmMatrices {
  std::vector<std::byte> a, b, a_scales, b_scales, c, bias, d;

  /// Random numbers from `seed` on.
  GemmMatrices(const ReferenceGemm &gemm, bool has_c, std::uint64_t seed);

  /// The product with these as its memory.
  ReferenceGemm of(ReferenceGemm gemm) const;
};

/// The same on a device; those that are empty are not there.
struct GemmBuffers {
  Buffer a, b, a_scales, b_scales, c, bias, d;
};
GemmBuffers copy_in(Device &device, const GemmMatrices &host);

/// The kernel's arguments, by their names.
std::vector<LaunchArgument> launch_arguments(const Kernel &kernel,
                                             const ReferenceGemm &gemm,
                                             const GemmBuffers &buffers);

/// Read A or B from a .npy file into `to`: (rows, columns) as stored, without
/// gaps, with the batch in front where there is one. Throws UserError.
void read_a(const std::string &path, const ReferenceGemm &gemm,
            std::vector<std::byte> &to);
void read_b(const std::string &path, const ReferenceGemm &gemm,
            std::vector<std::byte> &to);
/// Write D in the same form.
void write_d(const std::string &path, const ReferenceGemm &gemm,
             const std::vector<std::byte> &d);

/// Print A, B and D, as matrices whatever their layout. Matrices of more than
/// 32 rows or columns are not printed, and that is said.
void print_matrices(const ReferenceGemm &gemm, const GemmMatrices &host);

} // namespace kiln::cli
