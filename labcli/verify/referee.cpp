// Finds differing elements and computes them exactly.
#include "labcli/verify/referee.hpp"

#include <cassert>
#include <cstring>

#include "core/arithmetic/float_environment.hpp"
#include "core/arithmetic/product.hpp"
#include "core/work/hex.hpp"

namespace goblin::lab {

namespace {

// Elements as people write numbers: most significant byte first.
std::string bits_text(const std::vector<std::byte>& bytes) {
    std::vector<uint8_t> reversed;
    for (auto byte = bytes.rbegin(); byte != bytes.rend(); ++byte)
        reversed.push_back(static_cast<uint8_t>(*byte));
    return to_hex(reversed);
}

}  // namespace

std::optional<Difference> first_difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    assert(a.size() == b.size());
    for (size_t output = 0; output < a.size(); ++output) {
        assert(a[output].spec() == b[output].spec());
        if (a[output].same_bits(b[output])) continue;
        const size_t size = size_of(a[output].dtype());
        const std::byte* const left = a[output].bytes().data();
        const std::byte* const right = b[output].bytes().data();
        int64_t element = 0;
        while (std::memcmp(left + static_cast<size_t>(element) * size,
                           right + static_cast<size_t>(element) * size, size) == 0)
            ++element;
        return Difference{output, element};
    }
    return std::nullopt;
}

std::vector<std::byte> element_bytes(const std::vector<Tensor>& outputs, const Difference& place) {
    const Tensor& output = outputs[place.output];
    const size_t size = size_of(output.dtype());
    const auto bytes = output.bytes().subspan(static_cast<size_t>(place.element) * size, size);
    return {bytes.begin(), bytes.end()};
}

std::string describe_difference(const std::vector<Tensor>& found, const Difference& place,
                                const std::vector<std::byte>& expected) {
    return fmt::format("output {}, element {}: expected the bits {}, found {}", place.output, place.element,
                       bits_text(expected), bits_text(element_bytes(found, place)));
}

std::vector<std::byte> exact_product_element(const Plan& plan, TaskNumber task, const Difference& place) {
    assert(plan.is_product() && place.output == 0);
    const std::vector<SliceNumber> slices = plan.slices(task);
    const auto a = plan.slice_matrix(slices[0]);
    const auto b = plan.slice_matrix(slices[1]);
    const int64_t depth = a->cols();
    const int64_t row = place.element / b->cols();
    const int64_t col = place.element % b->cols();
    return with_product_type(a->dtype(), [&](auto zero) {
        using T = decltype(zero);
        Workspace row_memory;
        Workspace column_memory;
        ProductOf<T> element{};
        const FloatEnvironment environment;
        if (depth == 0) {
            element = product_element<T>({}, {}, 0);
        } else {
            const MatrixView a_row = a->view({row, 0, 1, depth}, row_memory);
            const MatrixView b_column = b->view({0, col, depth, 1}, column_memory);
            element =
                product_element<T>({static_cast<const T*>(a_row.elements), 1},
                                   {static_cast<const T*>(b_column.elements), b_column.row_stride}, depth);
        }
        std::vector<std::byte> bytes(sizeof element);
        std::memcpy(bytes.data(), &element, sizeof element);
        return bytes;
    });
}

}  // namespace goblin::lab
