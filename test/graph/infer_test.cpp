// Types of every op: a case is text whose stated types are what inference must give. Cases cover the whole table.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "snippet.h"

namespace weft::graph {
namespace {

struct Case {
  const char* inputs;
  const char* body;
};

const Case kCases[] = {
    // select, cast
    {"(%c: bool[n], %a: str[n], %b: str[n])", "%r = select %c, %a, %b : str[n]"},
    {"(%a: f32[n, 4])", "%r = cast %a {dtype=f8e4m3fn, saturate=true} : f8e4m3fn[n, 4]"},
    {"(%a: f32[])", "%r = bitcast %a {dtype=u32} : u32[]"},
    // movement
    {"(%a: f32[n, 6])", "%r = reshape %a {shape=[n*2, 3]} : f32[n*2, 3]"},
    {"(%a: f32[n, m])", "%r = reshape %a {shape=[m*n]} : f32[n*m]"},
    {"(%a: f32[n])", "%r = reshape %a {shape=[4]} : f32[4]"},
    {"(%a: f32[n, 4, m])", "%r = transpose %a {axes=[2, 0, 1]} : f32[m, n, 4]"},
    {"(%a: f32[1, n])", "%r = broadcast %a {shape=[b, n, 7], axes=[0, 1]} : f32[b, n, 7]"},
    {"(%a: f32[n, 10])", "%r = slice %a {starts=[0, 9], sizes=[n, 5], steps=[1, -2]} : f32[n, 5]"},
    {"(%a: f32[n, 3], %v: f32[])", "%r = pad %a, %v {lo=[1, 0], hi=[n, 2], mode=\"constant\"} : f32[n*2 + 1, 5]"},
    {"(%a: f32[4], %v: f32[])", "%r = pad %a, %v {lo=[3], hi=[0], mode=\"reflect\"} : f32[7]"},
    {"(%a: i8[n, 3], %b: i8[n, m])", "%r = concat %a, %b {axis=1} : i8[n, m + 3]"},
    {"(%a: f32[2, 3])", "%r = reverse %a {axes=[0, 1]} : f32[2, 3]"},
    // sources
    {"()", "%r = constant {data=f32[2](1, 2.5)} : f32[2]"},
    {"()", "%r = iota {dtype=i32, shape=[n, 4], axis=1} : i32[n, 4]"},
    {"()", "%r = shape_value {shape=[n, 4, n*m]} : i64[3]"},
    {"(%a: i64[2])", "bind %a {shape=[p, q]}"},
    {"(%k: u64[2])", "%r = random_bits %k {dtype=u32, shape=[n, 8]} : u32[n, 8]"},
    // gather, scatter
    {"(%a: f32[n, 4, m], %i: i32[2, k])", "%r = gather %a, %i {axis=1} : f32[n, 2, k, m]"},
    {"(%a: f32[9, 4], %i: i64[n, 4])", "%r = gather_elements %a, %i {axis=0} : f32[n, 4]"},
    {"(%a: f32[b, 4, 5, m], %i: i64[b, 7, 2])", "%r = gather_nd %a, %i {batch=1} : f32[b, 7, m]"},
    {"(%a: f32[9, 4], %i: i64[n, 2], %u: f32[n, 2])",
     "%r = scatter_elements %a, %i, %u {axis=0, combine=\"add\"} : f32[9, 4]"},
    {"(%a: f32[9, 4], %i: i64[n, 1], %u: f32[n, 4])", "%r = scatter_nd %a, %i, %u {combine=\"none\"} : f32[9, 4]"},
    // reductions, scans, sorts
    {"(%a: f32[n, 4, m])", "%r = reduce_sum %a {axes=[0, 2]} : f32[4]"},
    {"(%a: i32[n, 4])", "%r = reduce_prod %a {axes=[]} : i32[n, 4]"},
    {"(%a: f32[n])", "%r = reduce_max %a {axes=[0]} : f32[]"},
    {"(%a: bool[n])", "%r = reduce_min %a {axes=[0]} : bool[]"},
    {"(%a: bool[n, 2])", "%r = reduce_and %a {axes=[1]} : bool[n]"},
    {"(%a: u8[n, 2])", "%r = reduce_or %a {axes=[1]} : u8[n]"},
    {"(%a: f32[n, 2])", "%r = arg_max %a {axis=0, last=false} : i64[2]"},
    {"(%a: f32[n, 2])", "%r = arg_min %a {axis=1, last=true} : i64[n]"},
    {"(%a: f32[n, 2])", "%r = cum_sum %a {axis=0, exclusive=false, reverse=true} : f32[n, 2]"},
    {"(%a: f32[n, 2])", "%r = cum_prod %a {axis=0, exclusive=true, reverse=false} : f32[n, 2]"},
    {"(%a: i32[n, 2])", "%r = cum_max %a {axis=1, exclusive=false, reverse=false} : i32[n, 2]"},
    {"(%a: f32[n, 2])", "%r = cum_min %a {axis=1, exclusive=false, reverse=false} : f32[n, 2]"},
    {"(%a: f16[n, 9])", "%v, %i = sort %a {axis=1, descending=false} : f16[n, 9], i64[n, 9]"},
    {"(%a: f16[n, 9])", "%v, %i = top_k %a {axis=1, k=[3], descending=true} : f16[n, 3], i64[n, 3]"},
    // contraction
    {"(%a: f32[b, n, 64], %b: f32[b, 64, m])",
     "%r = dot %a, %b {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1], dtype=f32} : f32[b, n, m]"},
    {"(%a: u8[n, 64], %b: i8[m, 64])",
     "%r = dot %a, %b {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1], dtype=i32} : i32[n, m]"},
    {"(%x: f32[n, 3, 224, 224], %w: f32[64, 3, 7, 7])",
     "%r = conv %x, %w {strides=[2, 2], lo=[3, 3], hi=[3, 3], dilations=[1, 1], base_dilations=[1, 1], groups=1, "
     "channels_last=false, dtype=f32} : f32[n, 64, 112, 112]"},
    {"(%x: f32[n, h, 8], %w: f32[3, 1, 16]) where h in 4..100",
     "%r = conv %x, %w {strides=[1], lo=[0], hi=[0], dilations=[1], base_dilations=[1], groups=8, channels_last=true, "
     "dtype=f32} : f32[n, h - 2, 16]"},
    {"(%x: f32[1, 4, h], %w: f32[5, 4, 3]) where h in 1..100",
     "%r = conv %x, %w {strides=[1], lo=[2], hi=[2], dilations=[1], base_dilations=[2], groups=1, channels_last=false, "
     "dtype=f32} : f32[1, 5, h*2 + 1]"},
    {"(%x: f32[1, 4, h], %w: f32[5, 4, 3])",
     "%r = conv %x, %w {strides=[1], lo=[0], hi=[0], dilations=[1], base_dilations=[1], groups=1, channels_last=false, "
     "dtype=f32} : f32[1, 5, max(h - 2, 0)]"},
    {"(%x: f32[n, 28, 12, 8], %u: f32[36, 8, 5])",
     "%r = conv_winograd %x, %u {tile=4, lo=[1, 1], hi=[1, 1], dtype=f32} : f32[n, 28, 12, 5]"},
    // windows
    {"(%x: f32[n, 8])", "%r = window_sum %x {window=[1, 3], strides=[1, 2], lo=[0, 1], hi=[0, 1], dilations=[1, 1]} : f32[n, 4]"},
    {"(%x: f32[n, 8])", "%r = window_max %x {window=[1, 3], strides=[1, 1], lo=[0, 0], hi=[0, 0], dilations=[1, 3]} : f32[n, 2]"},
    {"(%x: f32[2])", "%r = window_arg_max %x {window=[5], strides=[1], lo=[0], hi=[0], dilations=[1]} : i64[0]"},
    // control flow
    {"(%c: bool[], %x: f32[n])", R"(%r = if %c, %x : f32[n] regions {
       graph @then(%x: f32[n]) { return %x }
       graph @else(%x: f32[n]) { %y = neg %x return %y } })"},
    {"(%t: i64[], %c: bool[], %x: f32[n])",
     R"(%r, %s, %u = loop %t, %c, %x, %c {carried=1, symbol=[p, 3]} : f32[n], f32[p, n], i64[3] regions {
       graph @body(%i: i64[], %c: bool[], %x: f32[n], %d: bool[]) { return %d, %x, %x, %i } })"},
    {"(%h: f32[4], %x: f32[t, 4], %w: f32[2])", R"(%r, %ys = scan %h, %x, %w {carried=1, xs=1} : f32[4], f32[t, 2] regions {
       graph @body(%h: f32[4], %x: f32[4], %w: f32[2]) { %n = add %h, %x return %n, %w } })"},
    {"(%x: f32[n])", R"(%r = composite %x {name="twice"} : f32[n] regions {
       graph @body(%x: f32[n]) { %y = add %x, %x return %y } })"},
    {"(%x: f32[n])", "%r, %s = custom_call %x {name=\"f\", types=\"f32[n, 2]; i64[]\"} : f32[n, 2], i64[]"},
    // host
    {"(%x: f32[n, 2])", "%r = non_zero %x {symbol=[nz]} : i64[2, nz]"},
    {"(%x: f32[n])", "fail {name=\"no\"}"},
    {"(%x: f32[n, 2])", "%v, %i, %j, %c = unique %x {symbol=[u], sorted=true} : f32[u], i64[u], i64[n*2], i64[u]"},
    {"(%x: f32[n, 2])", "%v, %i, %j, %c = unique %x {symbol=[u], sorted=true, axis=0} : f32[u, 2], i64[u], i64[n], i64[u]"},
    {"(%b: f32[1, n, 4], %s: f32[1, 80, n], %m: i64[], %i: f32[], %t: f32[])",
     "%r = non_max_suppression %b, %s, %m, %i, %t {symbol=[k], center=false} : i64[k, 3]"},
};

DType first_dtype(const OpInfo& op) {
  switch (op.dtypes[0]) {
    case 'b': return DType::Bool;
    case 'i': return DType::I32;
    case 'u': return DType::U8;
    default: return DType::F32;
  }
}

// Unary and binary ops are all alike: their cases come from the table.

std::string elementwise_case(const OpInfo& op) {
  const std::string in = name(first_dtype(op));
  const std::string out = op.dtype_rule == DTypeRule::Bool ? "bool" : in;
  const bool binary = op.family == Family::Binary;
  return snippet("(%a: " + in + "[n, 4], %b: " + in + "[n, 4])",
                 std::string("%r = ") + op.name + " %a" + (binary ? ", %b" : "") + " : " + out + "[n, 4]");
}

TEST(Infer, EveryOpOfTheTable) {
  std::set<Op> covered;
  for (const Case& c : kCases) {
    const Graph g = parsed(snippet(c.inputs, c.body));
    for (const Node& node : g.nodes()) covered.insert(node.op);
  }
  for (int i = 0; i < op_count(); ++i) {
    const auto op = static_cast<Op>(i);
    if (info(op).family == Family::Unary || info(op).family == Family::Binary) {
      const Graph g = parsed(elementwise_case(info(op)));
      for (const Node& node : g.nodes()) covered.insert(node.op);
    }
    EXPECT_EQ(covered.count(op), 1u) << "no inference case for " << info(op).name;
  }
}

struct BadCase {
  const char* inputs;
  const char* body;
  const char* message;
};

const BadCase kBad[] = {
    {"(%a: i32[n])", "%r = sqrt %a", "error[dtype-mismatch] at 'line 2': sqrt: operand 0 has a dtype that the op does not take (expected float, found i32)"},
    {"(%a: f32[n])", "%r = add %a", "add: wrong number of operands (expected 2, found 1)"},
    {"(%a: f32[n], %b: f16[n])", "%r = add %a, %b", "add: operand 1 has another dtype than it must have (expected f32, found f16)"},
    {"(%a: f32[n], %b: f32[m])", "%r = add %a, %b", "add: operand 1 must have the shape of operand 0 (expected [n], found [m])"},
    {"(%a: f32[n])", "%r = abs %a {axis=1}", "abs: the op has no attribute 'axis'"},
    {"(%a: f32[n])", "%r = concat %a", "concat: attribute 'axis' is missing"},
    {"(%a: f32[n])", "%r = cast %a", "cast: attribute 'dtype' is missing"},
    {"(%a: f32[n])", "%r = bitcast %a {dtype=f16}", "bitcast: the dtypes must have equal widths (expected 32 bits, found f16)"},
    {"(%a: c64[n])", "%r = cast %a {dtype=f32}", "cast: there is no conversion from c64 to f32"},
    {"(%a: f32[2, 3])", "%r = reshape %a {shape=[7]}", "reshape: [2, 3] and [7] hold different numbers of elements (expected 6, found 7)"},
    {"(%a: f32[n, 768])", "%r = reshape %a {shape=[100]}", "reshape: [n, 768] and [100] hold different numbers"},
    {"(%a: f32[n]) where n in 5..9", "%r = reshape %a {shape=[4]}", "reshape: [n] and [4] hold different numbers"},
    {"(%a: f32[n, 2])", "%r = transpose %a {axes=[0, 0]}", "transpose: axis 0 is named twice"},
    {"(%a: f32[n, 2])", "%r = transpose %a {axes=[0, 2]}", "transpose: an axis is out of range (expected 0 <= axis < 2, found 2)"},
    {"(%a: f32[n, 2])", "%r = transpose %a {axes=[0]}", "transpose: attribute 'axes' has another length than it must have (expected 2, found 1)"},
    {"(%a: f32[n])", "%r = broadcast %a {shape=[4], axes=[0]}", "the sizes may be equal, but it is not known"},
    {"(%a: f32[2, 3])", "%r = broadcast %a {shape=[3, 2], axes=[1, 0]}", "broadcast: the axes must increase"},
    {"(%a: f32[4])", "%r = slice %a {starts=[2], sizes=[3], steps=[1]}", "slice: index 4 is outside of axis 0 (expected 0 <= index < 4, found 4)"},
    {"(%a: f32[4])", "%r = slice %a {starts=[2], sizes=[1], steps=[0]}", "slice: a step is 0"},
    {"(%a: f32[4])", "%r = slice %a {starts=[2], sizes=[-1], steps=[1]}", "slice: a result would have a negative size"},
    {"(%a: f32[4], %v: f32[])", "%r = pad %a, %v {lo=[-1], hi=[0], mode=\"constant\"}", "pad: padding is negative"},
    {"(%a: f32[4], %v: f32[])", "%r = pad %a, %v {lo=[4], hi=[0], mode=\"reflect\"}", "pad: reflect padding is longer than the axis can give (expected <= 3, found 4)"},
    {"(%a: f32[4], %v: f32[])", "%r = pad %a, %v {lo=[4], hi=[0], mode=\"odd\"}", "pad: unknown mode (expected constant, reflect, edge or wrap, found odd)"},
    {"(%a: f32[2, 3], %b: f32[2, 4])", "%r = concat %a, %b {axis=0}", "concat: axis 1 of operand 1 must have the size of operand 0's (expected 3, found 4)"},
    {"()", "%r = iota {dtype=bool, shape=[4], axis=0}", "iota: the result has a dtype that cannot count"},
    {"(%a: i64[2])", "bind %a {shape=[p, q + 1]}", "bind: a size that the op binds must be one symbol (found q + 1)"},
    {"(%k: u64[3])", "%r = random_bits %k {dtype=u32, shape=[8]}", "random_bits: the key must hold two words"},
    {"(%a: f32[4], %i: f32[2])", "%r = gather %a, %i {axis=0}", "gather: operand 1 must hold integers"},
    {"(%a: f32[9, 4], %i: i64[2, 5])", "%r = gather_elements %a, %i {axis=0}", "gather_elements: axis 1 of the index is longer than operand 0's"},
    {"(%a: f32[9, 4], %i: i64[n])", "%r = gather_nd %a, %i {batch=0}", "gather_nd: the index's last axis must be a known number of coordinates"},
    {"(%a: f32[9], %i: i64[2], %u: f32[3])", "%r = scatter_elements %a, %i, %u {axis=0, combine=\"add\"}", "scatter_elements: the updates have another shape"},
    {"(%a: f32[9], %i: i64[2], %u: f32[2])", "%r = scatter_elements %a, %i, %u {axis=0, combine=\"sub\"}", "scatter_elements: unknown combine"},
    {"(%a: bool[9], %i: i64[2], %u: bool[2])", "%r = scatter_elements %a, %i, %u {axis=0, combine=\"add\"}", "scatter_elements: combine add of such a dtype"},
    {"(%a: f32[0])", "%r = arg_max %a {axis=0, last=false}", "arg_max: the axis is empty"},
    {"(%a: f32[3])", "%v, %i = top_k %a {axis=0, k=[4], descending=true}", "top_k: k is larger than the axis"},
    {"(%a: f32[2, 3], %b: f32[4, 5])", "%r = dot %a, %b {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0], dtype=f32}", "dot: contracted axes 1 of [2, 3] and 0 of [4, 5] differ in size (expected 3, found 4)"},
    {"(%a: f32[2, 3], %b: f32[3, 5])", "%r = dot %a, %b {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0], dtype=i32}", "dot: the result's dtype is of another kind"},
    {"(%x: f32[1, 9, 8, 4], %u: f32[16, 4, 5])", "%r = conv_winograd %x, %u {tile=2, lo=[1, 1], hi=[1, 1], dtype=f32}", "conv_winograd: the result is not of whole tiles (expected a multiple of 2, found 9)"},
    {"(%x: f32[1, 8, 8, 4], %u: f32[36, 4, 5])", "%r = conv_winograd %x, %u {tile=2, lo=[1, 1], hi=[1, 1], dtype=f32}", "conv_winograd: the weights are of another tile"},
    {"(%x: f32[1, 8, 8, 4], %u: f32[36, 4, 5])", "%r = conv_winograd %x, %u {tile=3, lo=[1, 1], hi=[1, 1], dtype=f32}", "conv_winograd: tile is 2 or 4"},
    {"(%x: f32[1, 4, 9], %w: f32[5, 3, 3])", "%r = conv %x, %w {strides=[1], lo=[0], hi=[0], dilations=[1], base_dilations=[1], groups=1, channels_last=false, dtype=f32}", "conv: the input's channels are not 1 groups of the kernel's (expected 3, found 4)"},
    {"(%x: f32[1, 4, 9], %w: f32[5, 2, 3])", "%r = conv %x, %w {strides=[1], lo=[0], hi=[0], dilations=[1], base_dilations=[1], groups=2, channels_last=false, dtype=f32}", "conv: the groups do not divide the output channels"},
    {"(%x: f32[1, 4, 9], %w: f32[5, 4, 3])", "%r = conv %x, %w {strides=[0], lo=[0], hi=[0], dilations=[1], base_dilations=[1], groups=1, channels_last=false, dtype=f32}", "conv: entries of 'strides' must be positive"},
    {"(%x: f32[8])", "%r = window_sum %x {window=[1, 1], strides=[1], lo=[0], hi=[0], dilations=[1]}", "window_sum: attribute 'window' has another length"},
    {"(%c: bool[], %x: f32[n])", "%r = if %c, %x regions { graph @then(%x: f32[n]) { return %x } }", "if: wrong number of regions (expected 2, found 1)"},
    {"(%c: bool[], %x: f32[n], %y: f32[m])",
     "%r = if %c, %x, %y regions { graph @then(%x: f32[n], %y: f32[m]) { return %x } graph @else(%x: f32[n], %y: f32[m]) { return %y } }",
     "unsupported[if-branch-shapes] at 'line 2': if: the branches give result 0 different types (expected f32[n], found f32[m])"},
    {"(%t: i64[], %c: bool[], %x: f32[4])",
     "%r = loop %t, %c, %x {carried=1} regions { graph @b(%i: i64[], %c: bool[], %x: f32[4]) { %y = concat %x, %x {axis=0} return %c, %y } }",
     "unsupported[carried-shape] at 'line 2': loop: carried value 0 changes its type"},
    {"(%t: i64[], %c: bool[])", "%r = loop %t, %c {carried=0} regions { graph @b(%i: i64[], %c: bool[]) { return %c, %i } }",
     "loop: attribute 'symbol' has another length"},
    {"(%x: f32[4])", "%r = scan %x {carried=1, xs=0} regions { graph @b(%x: f32[4]) { return %x } }", "scan: there is nothing to scan over"},
    {"(%x: f32[n])", "%r = composite %x {name=\"f\"} regions { graph @b(%x: f32[n]) { %y = custom_call %x {name=\"g\", types=\"f32[n]\"} return %y } }",
     "composite: the body holds custom_call, which is not pure"},
    {"(%x: f32[n])", "%r = custom_call %x {name=\"f\", types=\"f33[n]\"}", "'f33' is no dtype"},
    {"(%x: f32[n])", "%r = non_zero %x {symbol=[n + 1]}", "non_zero: a size that the op binds must be one symbol"},
    {"(%x: f32[n])", "%r = abs %x regions { graph @b() { return } }", "abs: the op takes no regions"},
};

TEST(Infer, ErrorsSayWhatIsWrong) {
  for (const BadCase& c : kBad) {
    const auto graph = parse(snippet(c.inputs, c.body));
    if (graph.ok()) {
      ADD_FAILURE() << "accepted: " << c.body;
    } else {
      EXPECT_NE(std::string(graph.error().what()).find(c.message), std::string::npos)
          << "expected: " << c.message << "\n  actual: " << graph.error().what();
    }
  }
}

}  // namespace
}  // namespace weft::graph
