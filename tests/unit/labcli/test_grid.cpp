// The grid of a product: tiles that cover the output once, large enough to be worth a task, small enough for
// everybody.
#include <QTest>

#include <random>
#include <set>

#include "core/graph/graph.hpp"
#include "labcli/jobs/product/grid.hpp"
#include "tests/support/error_of.hpp"

namespace goblin::lab {

namespace {

uint64_t memory_of_tile(const ProductSize& size, const Grid& grid) {
    return cost_of(product_graph({size.dtype, Shape{grid.tile_rows(), size.depth}},
                                 {size.dtype, Shape{size.depth, grid.tile_cols()}}))
        .memory_bytes;
}

}  // namespace

class TestGrid : public QObject {
    Q_OBJECT

  private slots:
    void tiles_cover_every_element_exactly_once() {
        const auto seed = std::random_device()();
        qInfo("seed %u", seed);
        std::mt19937_64 random(seed);
        for (int i = 0; i < 200; ++i) {
            const auto up_to = [&](int64_t most) {
                return static_cast<int64_t>(random() % static_cast<uint64_t>(most)) + 1;
            };
            const ProductSize size{up_to(60), 3, up_to(60), DType::f32};
            const Grid grid(size, up_to(size.rows), up_to(size.cols));
            std::vector<int> covered(static_cast<size_t>(size.rows * size.cols), 0);
            for (uint64_t tile = 0; tile < grid.tiles(); ++tile) {
                const Block block = grid.tile(tile);
                QVERIFY(block.rows > 0 && block.cols > 0 && block.row + block.rows <= size.rows &&
                        block.col + block.cols <= size.cols);
                QCOMPARE(static_cast<int64_t>(grid.row_panel_of(tile)) * grid.tile_rows(), block.row);
                QCOMPARE(static_cast<int64_t>(grid.col_panel_of(tile)) * grid.tile_cols(), block.col);
                for (int64_t row = block.row; row < block.row + block.rows; ++row)
                    for (int64_t col = block.col; col < block.col + block.cols; ++col)
                        ++covered[static_cast<size_t>(row * size.cols + col)];
            }
            QVERIFY(std::all_of(covered.begin(), covered.end(), [](int count) { return count == 1; }));
        }
    }

    void a_run_of_tiles_shares_panels() {
        const Grid grid({1000, 10, 1000, DType::f32}, 10, 10);
        for (uint64_t first = 0; first + 64 <= grid.tiles(); first += 64) {
            std::set<uint64_t> rows, cols;
            for (uint64_t tile = first; tile < first + 64; ++tile) {
                rows.insert(grid.row_panel_of(tile));
                cols.insert(grid.col_panel_of(tile));
            }
            QVERIFY(rows.size() + cols.size() <= 26);  // 64 tiles by 16 panels, but for the end of a band
        }
    }

    void an_output_without_elements_has_no_tiles() {
        QCOMPARE(choose_grid({0, 5, 7, DType::f32}, {}).tiles(), uint64_t{0});
        QCOMPARE(choose_grid({7, 5, 0, DType::f32}, {}).tiles(), uint64_t{0});
    }

    void a_sum_of_nothing_has_tiles_all_the_same() {
        QVERIFY(choose_grid({7, 0, 7, DType::f32}, {}).tiles() >= 1);
    }

    void a_small_product_is_one_task() {
        QCOMPARE(choose_grid({100, 100, 100, DType::f32}, {}).tiles(), uint64_t{1});
    }

    void a_large_product_gives_each_computer_several_tasks() {
        Capacity capacity;
        capacity.computers = 10;
        capacity.smallest_memory_bytes = uint64_t{8} << 30;
        capacity.slowest_flops = uint64_t{1'000'000'000'000};
        QVERIFY(choose_grid({20'000, 20'000, 20'000, DType::f32}, capacity).tiles() >= 80);
    }

    void a_tile_fits_the_smallest_memory_and_takes_a_minute_at_most_data() {
        QTest::addColumn<quint64>("memory_mib");
        QTest::addColumn<quint64>("gigaflops");
        for (const quint64 memory : {64, 512, 4096})
            for (const quint64 speed : {1, 20, 1000})
                QTest::addRow("%llu MiB, %llu GFLOP/s", memory, speed) << memory << speed;
    }
    void a_tile_fits_the_smallest_memory_and_takes_a_minute_at_most() {
        QFETCH(quint64, memory_mib);
        QFETCH(quint64, gigaflops);
        Capacity capacity;
        capacity.computers = 2;
        capacity.smallest_memory_bytes = memory_mib << 20;
        capacity.slowest_flops = gigaflops * 1'000'000'000;
        for (const int64_t n : {500, 3'000, 16'000, 50'000}) {
            const ProductSize size{n, n, n, DType::f32};
            const Grid grid = choose_grid(size, capacity);
            const double tile_flops = 2.0 * static_cast<double>(grid.tile_rows()) *
                                      static_cast<double>(grid.tile_cols()) * static_cast<double>(n);
            QVERIFY(memory_of_tile(size, grid) <= capacity.smallest_memory_bytes);
            QVERIFY(tile_flops <= 60.0 * static_cast<double>(capacity.slowest_flops));
            QVERIFY(grid.tile_rows() * grid.tile_cols() * 4 <= (32 << 20));
        }
    }

    void the_worst_capacity_that_a_lab_plans_for_is_no_flood_of_tasks() {
        // What JobBoard::capacity() says at the very least.
        Capacity capacity;
        capacity.computers = 1;
        capacity.smallest_memory_bytes = uint64_t{32} << 20;
        capacity.slowest_flops = 1'000'000'000;
        const Grid grid = choose_grid({8'192, 8'192, 8'192, DType::f32}, capacity);
        QVERIFY2(grid.tiles() <= 2'000, qPrintable(QString::number(grid.tiles())));
    }

    void a_row_and_a_column_that_fit_nowhere_are_refused_with_the_next_step() {
        Capacity capacity;
        capacity.smallest_memory_bytes = 1 << 20;
        VERIFY_REFUSED(choose_grid({10, 1'000'000, 10, DType::f64}, capacity),
                       "ask for contributors with more memory");
    }
};

}  // namespace goblin::lab

QTEST_APPLESS_MAIN(goblin::lab::TestGrid)
#include "test_grid.moc"
