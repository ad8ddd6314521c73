// The sweep is complete: what the op table and src/ops list has cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "sweep/maker.h"

namespace weft::sweep {
namespace {

const Cases& all() {
  static const Cases list = cases();
  return list;
}

bool uses(const graph::Graph& graph, Op op) {
  for (const graph::Node& node : graph.nodes()) {
    if (node.op == op) return true;
    for (const auto& region : node.regions) {
      if (uses(*region, op)) return true;
    }
  }
  return false;
}

TEST(Sweep, EveryPrimHasCasesThatUseIt) {
  for (int i = 0; i < graph::op_count(); ++i) {
    const auto op = static_cast<Op>(i);
    int found = 0;
    for (const Case& c : all()) {
      if (c.op != graph::info(op).name) continue;
      ++found;
      EXPECT_TRUE(uses(c.graph, op)) << c.name;
    }
    EXPECT_GT(found, 0) << graph::info(op).name << " is in no family of src/sweep";
  }
}

TEST(Sweep, EveryPrimIsSweptOverAllClassesOfItsDtypes) {
  for (int i = 0; i < graph::op_count(); ++i) {
    const auto op = static_cast<Op>(i);
    if (op == Op::Bind || op == Op::RandomBits || op == Op::ConvWinograd || op == Op::If || op == Op::Loop) continue;  // operand 0 is given
    std::set<DTypeClass> missing, swept;
    for (DType t : dtypes_of(graph::info(op).dtypes)) missing.insert(info(t).cls);
    for (const Case& c : all()) {
      if (c.op != graph::info(op).name) continue;
      for (const graph::ValueId v : c.graph.inputs()) missing.erase(info(c.graph.type(v).dtype).cls);
    }
    if (graph::info(op).family == graph::Family::Control) missing.erase(DTypeClass::Complex), missing.erase(DTypeClass::String);
    EXPECT_TRUE(missing.empty()) << graph::info(op).name << " lacks cases of " << missing.size() << " classes of dtypes";
  }
}

// src/ops names its composites where it builds them: composite(b, "name", ...).
TEST(Sweep, EveryCompositeHasCases) {
  const std::regex call("composite1?\\([a-z]+, \"([a-z_]+)\"");
  for (const auto& file : std::filesystem::directory_iterator(std::string(WEFT_SOURCE_DIR) + "/src/ops")) {
    std::stringstream text;
    text << std::ifstream(file.path()).rdbuf();
    const std::string source = text.str();
    for (auto it = std::sregex_iterator(source.begin(), source.end(), call); it != std::sregex_iterator(); ++it) {
      const std::string name = (*it)[1];
      const bool found = std::any_of(all().begin(), all().end(), [&](const Case& c) { return c.op == name; });
      EXPECT_TRUE(found) << name << " has no cases in src/sweep/composites.cpp";
    }
  }
}

TEST(Sweep, NamesAreUniqueAndGraphsAreSound) {
  std::set<std::string> names;
  for (const Case& c : all()) {
    EXPECT_TRUE(names.insert(c.name).second) << c.name << " is there twice";
    const auto sound = graph::verify(c.graph);
    EXPECT_TRUE(sound.ok()) << c.name << ": " << sound.error().what();
    EXPECT_EQ(c.inputs.size(), c.graph.inputs().size()) << c.name;
    EXPECT_FALSE(c.runs.empty()) << c.name;
  }
}

TEST(Sweep, InputsAreTheSameEachTime) {
  for (std::size_t i = 0; i < all().size(); i += 101) {
    const Case& c = all()[i];
    for (const Bindings& sizes : c.runs) {
      const auto once = inputs_of(c, sizes).value(), again = inputs_of(c, sizes).value();
      for (std::size_t k = 0; k < once.size(); ++k) EXPECT_EQ(once[k].content_hash(), again[k].content_hash()) << c.name;
    }
  }
}

// The interpreter takes what is drawn: no case is about an error but those of `fail`.
TEST(Sweep, TheInterpreterTakesTheInputs) {
  for (std::size_t i = 0; i < all().size(); i += 7) {
    const Case& c = all()[i];
    if (c.op == "fail") continue;
    const auto ran = graph::interpret(c.graph, inputs_of(c, c.runs[0]).value());
    EXPECT_TRUE(ran.ok()) << c.name << ": " << ran.error().what();
  }
}

}  // namespace
}  // namespace weft::sweep
