// Every rule of simplify(): what it makes of a graph, and that the results stay the same to the bit.
#include "support.h"
#include "transform/passes.h"

namespace weft::transform {
namespace {

using namespace testing;

struct RuleCase {
  const char* name;
  const char* inputs;  // the graph's parameters
  const char* body;    // the last value is returned
  const char* ops;     // what is left, constants aside
};

const RuleCase kRuleCases[] = {
    {"mul by one", "(%x: f32[20])", "%c = constant {data=f32[](1)} : f32[]\n%s = broadcast %c {axes=[], shape=[20]} : f32[20]\n%y = mul %s, %x : f32[20]", ""},
    {"div by one", "(%x: i32[20])", "%s = constant {data=i32[1](1)} : i32[1]\n%b = broadcast %s {axes=[0], shape=[20]} : i32[20]\n%y = div %x, %b : i32[20]", ""},
    {"float plus zero stays", "(%x: f32[20])", "%c = constant {data=f32[](0)} : f32[]\n%s = broadcast %c {axes=[], shape=[20]} : f32[20]\n%y = add %x, %s : f32[20]", "broadcast add"},
    {"float plus zero to an integer", "(%x: f32[20])", "%c = constant {data=f32[](0)} : f32[]\n%s = broadcast %c {axes=[], shape=[20]} : f32[20]\n%a = add %x, %s : f32[20]\n%y = cast %a {dtype=u8} : u8[20]", "cast"},
    {"float minus zero", "(%x: f32[20])", "%c = constant {data=f32[](0)} : f32[]\n%s = broadcast %c {axes=[], shape=[20]} : f32[20]\n%y = sub %x, %s : f32[20]", ""},
    {"minus negative zero stays", "(%x: f32[20])", "%c = constant {data=f32[](-0)} : f32[]\n%s = broadcast %c {axes=[], shape=[20]} : f32[20]\n%y = sub %x, %s : f32[20]", "broadcast sub"},
    {"integer plus zero", "(%x: i64[20])", "%c = constant {data=i64[](0)} : i64[]\n%s = broadcast %c {axes=[], shape=[20]} : i64[20]\n%y = add %s, %x : i64[20]", ""},
    {"power of zero", "(%x: f32[20])", "%c = constant {data=f32[](0)} : f32[]\n%s = broadcast %c {axes=[], shape=[20]} : f32[20]\n%y = pow %x, %s : f32[20]", "broadcast"},
    {"square", "(%x: f32[20])", "%c = constant {data=f32[](2)} : f32[]\n%s = broadcast %c {axes=[], shape=[20]} : f32[20]\n%y = pow %x, %s : f32[20]", "mul"},
    {"integer square", "(%x: i32[20])", "%c = constant {data=i32[](2)} : i32[]\n%s = broadcast %c {axes=[], shape=[20]} : i32[20]\n%y = pow %x, %s : i32[20]", "mul"},
    {"reciprocal", "(%x: f32[20])", "%c = constant {data=f32[](-1)} : f32[]\n%s = broadcast %c {axes=[], shape=[20]} : f32[20]\n%y = pow %x, %s : f32[20]", "reciprocal"},
    {"root of a square", "(%x: f32[20])", "%c = constant {data=f32[](0.5)} : f32[]\n%s = broadcast %c {axes=[], shape=[20]} : f32[20]\n%q = mul %x, %x : f32[20]\n%y = pow %q, %s : f32[20]", "mul sqrt"},
    {"root of anything stays", "(%x: f32[20])", "%c = constant {data=f32[](0.5)} : f32[]\n%s = broadcast %c {axes=[], shape=[20]} : f32[20]\n%y = pow %x, %s : f32[20]", "broadcast pow"},
    {"div by eight", "(%x: f32[20])", "%c = constant {data=f32[](8)} : f32[]\n%s = broadcast %c {axes=[], shape=[20]} : f32[20]\n%y = div %x, %s : f32[20]", "broadcast mul"},
    {"div by a fraction", "(%x: f16[20])", "%c = constant {data=f16[](-0.25)} : f16[]\n%s = broadcast %c {axes=[], shape=[20]} : f16[20]\n%y = div %x, %s : f16[20]", "broadcast mul"},
    {"div by three stays", "(%x: f32[20])", "%c = constant {data=f32[](3)} : f32[]\n%s = broadcast %c {axes=[], shape=[20]} : f32[20]\n%y = div %x, %s : f32[20]", "broadcast div"},
    {"integer div by two stays", "(%x: i32[20])", "%c = constant {data=i32[](2)} : i32[]\n%s = broadcast %c {axes=[], shape=[20]} : i32[20]\n%y = div %x, %s : i32[20]", "broadcast div"},
    {"abs twice", "(%x: i8[20])", "%a = abs %x : i8[20]\n%y = abs %a : i8[20]", "abs"},
    {"max of itself", "(%x: f32[20])", "%y = max %x, %x : f32[20]", ""},
    {"neg twice", "(%x: i64[20])", "%a = neg %x : i64[20]\n%y = neg %a : i64[20]", ""},
    {"not twice", "(%x: bool[20])", "%a = not %x : bool[20]\n%y = not %a : bool[20]", ""},
    {"plus a negation", "(%x: f32[20], %z: f32[20])", "%a = neg %z : f32[20]\n%y = add %x, %a : f32[20]", "sub"},
    {"minus a negation", "(%x: i32[20], %z: i32[20])", "%a = neg %z : i32[20]\n%y = sub %x, %a : i32[20]", "add"},
    {"below a broadcast", "(%x: f32[4], %z: f32[4])", "%a = broadcast %x {axes=[1], shape=[3, 4]} : f32[3, 4]\n%b = broadcast %z {axes=[1], shape=[3, 4]} : f32[3, 4]\n%y = mul %a, %b : f32[3, 4]", "mul broadcast"},
    {"not below different broadcasts", "(%x: f32[4], %z: f32[3])", "%a = broadcast %x {axes=[1], shape=[3, 4]} : f32[3, 4]\n%b = broadcast %z {axes=[0], shape=[3, 4]} : f32[3, 4]\n%y = mul %a, %b : f32[3, 4]", "broadcast broadcast mul"},
    {"select by a constant", "(%x: f32[20], %z: f32[20])", "%c = constant {data=bool[](false)} : bool[]\n%s = broadcast %c {axes=[], shape=[20]} : bool[20]\n%y = select %s, %x, %z : f32[20]", ""},
    {"select the same", "(%c: bool[20], %x: f32[20])", "%y = select %c, %x, %x : f32[20]", ""},
    {"select by a negation", "(%c: bool[20], %x: f32[20], %z: f32[20])", "%n = not %c : bool[20]\n%y = select %n, %x, %z : f32[20]", "select"},
    {"and true", "(%x: bool[20])", "%c = constant {data=bool[](true)} : bool[]\n%s = broadcast %c {axes=[], shape=[20]} : bool[20]\n%y = and %s, %x : bool[20]", ""},
    {"or true", "(%x: bool[20])", "%c = constant {data=bool[](true)} : bool[]\n%s = broadcast %c {axes=[], shape=[20]} : bool[20]\n%y = or %s, %x : bool[20]", "broadcast"},
    {"equal to false", "(%x: bool[20])", "%c = constant {data=bool[](false)} : bool[]\n%s = broadcast %c {axes=[], shape=[20]} : bool[20]\n%y = eq %s, %x : bool[20]", "not"},
    {"widen and back", "(%x: f16[20])", "%a = cast %x {dtype=f32} : f32[20]\n%y = cast %a {dtype=f16} : f16[20]", ""},
    {"narrow and back stays", "(%x: f32[20])", "%a = cast %x {dtype=f16} : f16[20]\n%y = cast %a {dtype=f32} : f32[20]", "cast cast"},
    {"widen then narrow", "(%x: i32[20])", "%a = cast %x {dtype=i64} : i64[20]\n%y = cast %a {dtype=i8} : i8[20]", "cast"},
    {"integer by float clamps", "(%x: i32[20])", "%a = cast %x {dtype=f64} : f64[20]\n%y = cast %a {dtype=i8} : i8[20]", "cast cast"},
    {"sign lost stays", "(%x: i8[20])", "%a = cast %x {dtype=u8} : u8[20]\n%y = cast %a {dtype=i32} : i32[20]", "cast cast"},
    {"bool by integer to float", "(%x: bool[20])", "%a = cast %x {dtype=i64} : i64[20]\n%y = cast %a {dtype=f32} : f32[20]", "cast"},
    {"two transposes cancel", "(%x: f32[2, 3, 4])", "%a = transpose %x {axes=[1, 2, 0]} : f32[3, 4, 2]\n%y = transpose %a {axes=[2, 0, 1]} : f32[2, 3, 4]", ""},
    {"transpose of ones", "(%x: f32[2, 1, 4])", "%y = transpose %x {axes=[1, 0, 2]} : f32[1, 2, 4]", "reshape"},
    {"transpose of a broadcast", "(%x: f32[4])", "%a = broadcast %x {axes=[1], shape=[3, 4]} : f32[3, 4]\n%y = transpose %a {axes=[1, 0]} : f32[4, 3]", "broadcast"},
    {"reshapes merge", "(%x: f32[n, 6])", "%a = reshape %x {shape=[n, 2, 3]} : f32[n, 2, 3]\n%y = reshape %a {shape=[n*2, 3]} : f32[n*2, 3]", "reshape"},
    {"reshape past a transpose", "(%x: f32[n, 3, 4, 5])", "%a = reshape %x {shape=[n*3, 4, 5]} : f32[n*3, 4, 5]\n%b = transpose %a {axes=[0, 2, 1]} : f32[n*3, 5, 4]\n%y = reshape %b {shape=[n, 3, 5, 4]} : f32[n, 3, 5, 4]", "transpose"},
    {"broadcasts merge", "(%x: f32[4])", "%a = broadcast %x {axes=[1], shape=[3, 4]} : f32[3, 4]\n%y = broadcast %a {axes=[0, 2], shape=[3, 5, 4]} : f32[3, 5, 4]", "broadcast"},
    {"ones before a broadcast", "(%x: f32[4])", "%a = reshape %x {shape=[1, 4, 1]} : f32[1, 4, 1]\n%y = broadcast %a {axes=[0, 1, 2], shape=[5, 4, 3]} : f32[5, 4, 3]", "broadcast"},
    {"slice of everything", "(%x: f32[n, 4])", "%y = slice %x {sizes=[n, 4], starts=[0, 0], steps=[1, 1]} : f32[n, 4]", ""},
    {"slice of a slice", "(%x: f32[20])", "%a = slice %x {sizes=[9], starts=[1], steps=[2]} : f32[9]\n%y = slice %a {sizes=[3], starts=[2], steps=[3]} : f32[3]", "slice"},
    {"slice of a concat", "(%x: f32[2, 3], %z: f32[2, n])", "%a = concat %x, %z {axis=1} : f32[2, n + 3]\n%y = slice %a {sizes=[2, n], starts=[0, 3], steps=[1, 1]} : f32[2, n]", ""},
    {"slices that cover", "(%x: f32[2, 7])", "%a = slice %x {sizes=[2, 3], starts=[0, 0], steps=[1, 1]} : f32[2, 3]\n%b = slice %x {sizes=[2, 4], starts=[0, 3], steps=[1, 1]} : f32[2, 4]\n%y = concat %a, %b {axis=1} : f32[2, 7]", ""},
    {"slices that do not meet", "(%x: f32[2, 7])", "%a = slice %x {sizes=[2, 3], starts=[0, 0], steps=[1, 1]} : f32[2, 3]\n%b = slice %x {sizes=[2, 3], starts=[0, 4], steps=[1, 1]} : f32[2, 3]\n%y = concat %a, %b {axis=1} : f32[2, 6]", "slice slice concat"},
    {"pad by nothing", "(%x: f32[5])", "%c = constant {data=f32[](1)} : f32[]\n%y = pad %x, %c {hi=[0], lo=[0], mode=\"constant\"} : f32[5]", ""},
    {"gather one", "(%x: f32[n, 5, 2])", "%c = constant {data=i64[](-2)} : i64[]\n%y = gather %x, %c {axis=1} : f32[n, 2]", "slice reshape"},
    {"gather a run", "(%x: f32[9, 2])", "%c = constant {data=i32[2, 2](3, 4, 5, 6)} : i32[2, 2]\n%y = gather %x, %c {axis=0} : f32[2, 2, 2]", "slice reshape"},
    {"gather every other", "(%x: f32[9, 2])", "%c = constant {data=i64[3](1, 3, 5)} : i64[3]\n%y = gather %x, %c {axis=0} : f32[3, 2]", "slice"},
    {"gather the same", "(%x: f32[9, 2])", "%c = constant {data=i64[3](4, 4, 4)} : i64[3]\n%y = gather %x, %c {axis=0} : f32[3, 2]", "slice reshape broadcast"},
    {"gather unevenly stays", "(%x: f32[9, 2])", "%c = constant {data=i64[3](4, 2, 3)} : i64[3]\n%y = gather %x, %c {axis=0} : f32[3, 2]", "gather"},
    {"gather by iota", "(%x: f32[n, 2])", "%c = iota {axis=0, dtype=i64, shape=[n]} : i64[n]\n%y = gather %x, %c {axis=0} : f32[n, 2]", ""},
    {"gather rows of a flattened table", "(%x: f32[n, 7])",
     "%f = reshape %x {shape=[n*7]} : f32[n*7]\n%i = iota {axis=0, dtype=i64, shape=[n, 7]} : i64[n, 7]\n%j = iota {axis=1, dtype=i64, shape=[n, 7]} : i64[n, 7]\n"
     "%s = constant {data=i64[](7)} : i64[]\n%b = broadcast %s {axes=[], shape=[n, 7]} : i64[n, 7]\n%m = mul %i, %b : i64[n, 7]\n%k = add %m, %j : i64[n, 7]\n"
     "%y = gather %f, %k {axis=0} : f32[n, 7]", ""},
    {"comparison that is settled", "(%x: bool[n])", "%i = iota {axis=0, dtype=i64, shape=[n]} : i64[n]\n%c = constant {data=i64[](0)} : i64[]\n%s = broadcast %c {axes=[], shape=[n]} : i64[n]\n%g = ge %i, %s : bool[n]\n%y = and %g, %x : bool[n]", ""},
    {"concat of one", "(%x: f32[5])", "%y = concat %x {axis=0} : f32[5]", ""},
};

std::string graph_text(const RuleCase& c) {
  const std::string body = c.body;
  const std::string last = body.substr(body.rfind('\n') == std::string::npos ? 0 : body.rfind('\n') + 1);
  const std::string type = last.substr(last.rfind(" : ") + 3);
  return std::string("graph @t") + c.inputs + " -> (" + type + ") where n in 1..9 {\n" + body + "\nreturn %y\n}\n";
}

TEST(Rules, MakeWhatTheySay) {
  for (const RuleCase& c : kRuleCases) {
    SCOPED_TRACE(c.name);
    const graph::Graph before = parsed(graph_text(c));
    const auto after = simplify(before, {});
    ASSERT_TRUE(after.ok()) << after.error().what();
    EXPECT_EQ(ops_of(*after), c.ops) << graph::print(*after);
    for (std::int64_t n : {1, 5}) expect_same_results(before, *after, {{"n", n}}, Values::Wild);
  }
}

TEST(Rules, CubeIsAsExactAsAPower) {
  const graph::Graph before = parsed(
      "graph @t(%x: f32[64]) -> (f32[64]) {\n%c = constant {data=f32[](3)} : f32[]\n"
      "%s = broadcast %c {axes=[], shape=[64]} : f32[64]\n%y = pow %x, %s : f32[64]\nreturn %y\n}\n");
  const auto after = simplify(before, {});
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(ops_of(*after), "mul mul");
  expect_same_results(before, *after, {}, Values::Tame, 1e-6);
}

TEST(Rules, AnIndexOutOfRangeStaysAnError) {
  const graph::Graph before = parsed(
      "graph @t(%x: f32[4]) -> (f32[2]) {\n%c = constant {data=i64[2](3, 4)} : i64[2]\n"
      "%y = gather %x, %c {axis=0} : f32[2]\nreturn %y\n}\n");
  const auto after = simplify(before, {});
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(ops_of(*after), "gather");
}

}  // namespace
}  // namespace weft::transform
