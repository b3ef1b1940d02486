// Each CTA sorts its 256 keys by four bits, a split for each bit, and counts
// the sixteen digits.
extern "C" __global__ void radix_pass(const unsigned *in, unsigned *out,
                                      unsigned *counts, int shift) {
  __shared__ unsigned keys[256], zerosOfWarp[8], digits[16];
  int i = threadIdx.x, lane = i % 32, warp = i / 32;
  unsigned key = in[blockIdx.x * 256 + i];
  if (i < 16)
    digits[i] = 0;
  for (int bit = shift; bit < shift + 4; ++bit) {
    bool isZero = !((key >> bit) & 1);
    unsigned zeros = __ballot_sync(0xffffffff, isZero);
    if (lane == 0)
      zerosOfWarp[warp] = __popc(zeros);
    __syncthreads();
    unsigned before = 0, all = 0;
    for (int other = 0; other < 8; ++other) {
      before += other < warp ? zerosOfWarp[other] : 0;
      all += zerosOfWarp[other];
    }
    before += __popc(zeros & ((1u << lane) - 1));
    keys[isZero ? before : all + i - before] = key;
    __syncthreads();
    key = keys[i];
  }
  atomicAdd(&digits[(key >> shift) & 15], 1u);
  __syncthreads();
  out[blockIdx.x * 256 + i] = key;
  if (i < 16)
    counts[blockIdx.x * 16 + i] = digits[i];
}
