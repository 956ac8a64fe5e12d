// Times two ways of doing the same work in turns, so that a busy machine slows both alike.
#pragma once

#include <functional>

namespace goblin::bench {

struct SideBySide {
    double ours_s = 0;   // median
    double peers_s = 0;  // median
    double ratio = 0;    // median over the pairs of peer's time / our time: above 1, we are faster
    double best_ours_s = 0;
};

// Runs each side once without timing, then `pairs` times ours, peer's, ours, peer's … with a pause before
// each, in which the threads of the side before stop spinning.
SideBySide time_side_by_side(int pairs, const std::function<void()>& ours,
                             const std::function<void()>& peers);

}  // namespace goblin::bench
