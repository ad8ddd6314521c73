// Holds the printed examples of docs/architecture.md to what the compiler makes of one small model, on a machine that is
// described here, so that every computer gives the same text. UPDATE_EXPECTED=1 writes them anew.
#include <cstdlib>
#include <map>
#include <regex>

#include "compile/compile.h"
#include "docs/support.h"
#include "ops/norm.h"

namespace weft::docs {
namespace {

using graph::Op;
using graph::ValueId;

Machine machine() {
  Machine m;
  m.vector_bits = 256;
  m.has_fma = true;
  m.features = {"avx", "avx2", "f16c", "fma", "popcnt", "sse4.1", "sse4.2"};
  m.cores = 2;
  return m;
}

// softmax(x @ w + b) over 48 classes, any number of rows.
graph::Graph head() {
  graph::Graph g;
  g.name = "head";
  g.facts.declare("n", {1, 512, 1});
  graph::Builder b(g);
  Tensor weights = Tensor::zeros(DType::F32, {64, 48}).value(), bias = Tensor::zeros(DType::F32, {48}).value();
  for (int i = 0; i < 64 * 48; ++i) static_cast<float*>(weights.mutable_data())[i] = static_cast<float>(i % 7) / 8;
  for (int i = 0; i < 48; ++i) static_cast<float*>(bias.mutable_data())[i] = static_cast<float>(i % 5) / 4;
  const ValueId x = g.add_input({DType::F32, {Dim::symbol("n"), 64}}, "x");
  const auto from = [&](const char* node, const char* op) { b.set_origin(std::make_shared<graph::Origin>(graph::Origin{node, op})); };
  from("fc", "Gemm");
  const ValueId y = b.binary(Op::Add, b.matmul(x, b.constant(weights)), b.constant(bias));
  from("prob", "Softmax");
  g.set_outputs({ops::softmax(b, y, {1})});
  b.status().value();
  return g;
}

// What each level prints, item by item.
const std::map<std::string, std::vector<std::string>>& levels() {
  static const auto all = [] {
    std::map<std::string, std::vector<std::string>> texts;
    texts["import"] = {graph::print(head())};
    compiler::Options options;
    options.machine = machine();
    options.jobs = 1;
    options.cache = false;
    options.dump_stages = "graph,loop,schedule,tile,kernel,llvm,asm,plan";
    options.dump = [&](const std::string& stage, const std::string&, const std::string& text) {
      texts[stage].push_back(text);
    };
    compiler::compile(head(), options).value();
    return texts;
  }();
  return all;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// "<!-- LEVEL ITEM [after WORD]: FIRST LAST, FIRST LAST -->" before a fenced block asks for these lines of what the
// level prints for its item of that number. Lines count from 1, or from the one that begins with WORD; "..." stands for
// what is left out.
std::string excerpt(const std::string& level, std::size_t item, const std::string& word, const std::string& ranges) {
  const auto it = levels().find(level);
  if (it == levels().end() || item >= it->second.size()) return "nothing is printed for this level\n";
  const std::vector<std::string> lines = lines_of(it->second[item]);
  const auto from = std::find_if(lines.begin(), lines.end(), [&](const std::string& l) { return l.starts_with(word); });
  const std::size_t start = static_cast<std::size_t>(from - lines.begin());
  std::string text;
  std::size_t next = 0;
  std::istringstream stream(ranges);
  for (std::string range; std::getline(stream, range, ',');) {
    std::size_t first = 0, last = 0;
    std::istringstream(range) >> first >> last;
    if (start + first > next + 1) text += "  ...\n";
    for (std::size_t i = start + first - 1; i < std::min(start + last, lines.size()); ++i) text += lines[i].substr(0, 140) + "\n";
    next = start + last;
  }
  return next < lines.size() ? text + "  ...\n" : text;
}

TEST(Levels, ExamplesAreWhatTheCompilerPrints) {
  const char* file = "docs/architecture.md";
  const bool update = std::getenv("UPDATE_EXPECTED") != nullptr;
  const std::string text = read(file);
  const std::regex block("<!-- ([a-z]+) ([0-9]+)(?: after ([^ ]+))?: ([0-9, ]+) -->\n```text\n([^`]*)```\n");
  std::string made;
  std::size_t at = 0;
  int blocks = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), block), end; it != end; ++it, ++blocks) {
    const std::size_t begin = static_cast<std::size_t>(it->position(5));
    const std::string now = excerpt((*it)[1], std::stoul((*it)[2]), (*it)[3], (*it)[4]);
    EXPECT_TRUE(update || (*it)[5] == now) << (*it)[1] << " prints now\n" << now << "run weft_test_docs with UPDATE_EXPECTED=1 and look at the difference";
    made += text.substr(at, begin - at) + now;
    at = begin + static_cast<std::size_t>(it->length(5));
  }
  made += text.substr(at);
  EXPECT_GE(blocks, 8);
  if (update) std::ofstream(kRoot / file) << made;
}

}  // namespace
}  // namespace weft::docs
