// Every operator of the catalogue is known to the grammar, to the engines and to the documentation.
#include <QFile>
#include <QtTest>
#include <algorithm>
#include <cstring>

#include "core/engine/cpu/cpu_engine.hpp"
#include "core/engine/reference/reference_engine.hpp"
#include "core/error.hpp"
#include "core/graph/graph.hpp"
#include "tests/support/error_of.hpp"

using namespace goblin;

namespace {

// Inputs that fit an operator, of a type that every processor computes with. A case for each: the compiler
// names what is missing.
std::vector<TensorSpec> fitting_inputs(Operator op) {
    switch (op) {
        case Operator::matmul:
            return {{DType::i32, Shape{3, 5}}, {DType::i32, Shape{5, 2}}};
    }
    throw std::logic_error("no inputs for an operator");
}

Graph graph_of(const OperatorInfo& info) {
    Graph graph;
    graph.inputs = fitting_inputs(info.op);
    Node node;
    node.op = info.op;
    for (uint32_t input = 0; input < graph.inputs.size(); ++input) node.inputs.push_back(input);
    graph.nodes = {node};
    graph.outputs = {static_cast<uint32_t>(graph.inputs.size())};
    return graph;
}

std::vector<Tensor> inputs_of(const Graph& graph) {
    std::vector<Tensor> inputs;
    uint8_t value = 1;
    for (const TensorSpec& spec : graph.inputs)
        for (std::byte& byte : inputs.emplace_back(spec).bytes()) byte = std::byte{value = value * 37 + 11};
    return inputs;
}

}  // namespace

class TestOperators : public QObject {
    Q_OBJECT

    static void each_operator() {
        QTest::addColumn<int>("row");
        int row = 0;
        for (const OperatorInfo& info : all_operators())
            QTest::newRow(std::string(info.name).c_str()) << row++;
    }
    static const OperatorInfo& at_hand() {
        QFETCH(const int, row);
        return all_operators()[static_cast<size_t>(row)];
    }

  private slots:
    void is_found_by_name_and_by_value_data() { each_operator(); }
    void is_found_by_name_and_by_value() {
        const OperatorInfo& info = at_hand();
        QVERIFY(operator_from_name(info.name) == info.op);
        QCOMPARE(&operator_info(info.op), &info);
    }

    void is_checked_by_the_grammar_data() { each_operator(); }
    void is_checked_by_the_grammar() {
        const OperatorInfo& info = at_hand();
        const Graph graph = graph_of(info);
        QCOMPARE(graph.inputs.size(), info.arity);
        QVERIFY(check_graph(graph).back() == info.infer(graph.inputs));
        QVERIFY(cost_of(graph).flops > 0);
        Graph short_of_one = graph;
        short_of_one.nodes[0].inputs.pop_back();
        const QString name = QString::fromStdString(std::string(info.name));
        VERIFY_REFUSED(check_graph(short_of_one), name);
    }

    void is_computed_by_both_engines_with_the_same_bits_data() { each_operator(); }
    void is_computed_by_both_engines_with_the_same_bits() {
        const Graph graph = graph_of(at_hand());
        const std::vector<Tensor> inputs = inputs_of(graph);
        const auto reference = make_reference_engine();
        const auto engine = make_cpu_engine({.threads = 1});
        QVERIFY(!reference->why_not(graph));
        QVERIFY(!engine->why_not(graph));
        const Tensor expected = std::move(reference->run(graph, inputs, {})[0]);
        const Tensor found = std::move(engine->run(graph, inputs, {})[0]);
        QVERIFY(expected.spec() == found.spec());
        QVERIFY(std::ranges::equal(expected.bytes(), found.bytes()));
        QVERIFY2(std::ranges::any_of(found.bytes(), [](std::byte byte) { return byte != std::byte{0}; }),
                 "nothing was computed");
    }

    void is_documented_data() { each_operator(); }
    void is_documented() {
        const OperatorInfo& info = at_hand();
        QFile file(GOBLIN_SOURCE_DIR "/docs/arithmetic.md");
        QVERIFY2(file.open(QIODevice::ReadOnly), qPrintable(file.errorString()));
        const auto text = [](std::string_view part) {
            return QString::fromUtf8(part.data(), static_cast<qsizetype>(part.size()));
        };
        const QString row =
            QString("| `%1` | %2 | %3 |").arg(text(info.name)).arg(info.arity).arg(text(info.summary));
        QVERIFY2(QString::fromUtf8(file.readAll()).split('\n').contains(row),
                 qPrintable("docs/arithmetic.md: expected the line\n" + row));
    }
};

QTEST_APPLESS_MAIN(TestOperators)
#include "test_operators.moc"
