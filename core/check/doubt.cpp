// Chooses the rows to recompute from the residuals' levels.
#include "core/check/doubt.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace goblin {

namespace {

// The largest of r = 4 residuals over 65,536 rows stays below five times the median where rounding is alike
// in all.
constexpr double outstanding = 5;
constexpr int64_t rows_for_each_outstanding = 1000;
// A liar who spoils most rows alike stands out nowhere: now and then the worst row is computed again all the
// same.
constexpr double worst_row_chance = 1.0 / 16;

}  // namespace

double rung_over(double level) {
    if (!(level <= doubt_level)) return std::numeric_limits<double>::infinity();
    double rung = doubt_level;
    for (int k = 1; k < level_rungs && level <= rung / 2; ++k) rung /= 2;
    return rung;
}

Doubted doubted_rows(std::span<const double> levels, SecretDraws& draws) {
    std::vector<int64_t> order(levels.size());
    std::iota(order.begin(), order.end(), 0);
    const auto level = [&](int64_t row) {
        const double value = levels[static_cast<size_t>(row)];
        return std::isnan(value) ? std::numeric_limits<double>::infinity() : value;
    };
    std::sort(order.begin(), order.end(), [&](int64_t left, int64_t right) {
        return level(left) != level(right) ? level(left) > level(right) : left < right;
    });

    const auto first_calm =
        static_cast<size_t>(std::partition_point(order.begin(), order.end(),
                                                 [&](int64_t row) { return level(row) > doubt_level; }) -
                            order.begin());
    size_t doubted = first_calm;
    if (first_calm < order.size()) {
        const auto rows = static_cast<int64_t>(order.size());
        const size_t most =
            first_calm + static_cast<size_t>(std::max<int64_t>(1, rows / rows_for_each_outstanding));
        const double median = level(order[first_calm + (order.size() - first_calm) / 2]);
        const double usual = rung_over(std::min(outstanding * median, doubt_level));
        while (doubted < std::min(most, order.size()) && level(order[doubted]) > usual) ++doubted;
        const double chance =
            std::min(worst_row_chance, static_cast<double>(rows) / rows_for_each_outstanding);
        if (doubted == first_calm && draws.happens(chance)) ++doubted;
    }

    Doubted result;
    result.rows.assign(order.begin(), order.begin() + static_cast<int64_t>(doubted));
    if (doubted < order.size()) {
        result.largest_level = level(order[doubted]);
        result.rung = rung_over(result.largest_level);
    }
    return result;
}

}  // namespace goblin
