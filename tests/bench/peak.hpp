// The most floating-point operations a second that this processor can do at all.
#pragma once

namespace goblin::bench {

// Fused multiply-adds in registers on `threads` threads at once, the best of several tries, in GFLOP/s (a
// multiply-add counts as two). 0 where the processor has no fma.
double peak_gflops_f32(unsigned threads);
double peak_gflops_f64(unsigned threads);

}  // namespace goblin::bench
