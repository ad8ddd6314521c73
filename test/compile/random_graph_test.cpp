#include "compile/random_graph.h"

#include <cstdlib>

#include "compile/support.h"

namespace weft::compiler::testing {

using graph::Attr;
using graph::Attrs;
using graph::Op;
using graph::Type;
using graph::ValueId;

namespace {

bool is_number(const Type& t) { return t.dtype != DType::Bool; }
bool is_real(const Type& t) { return is_float(t.dtype); }
bool has_axes(const Type& t) { return t.rank() > 0; }
bool is_f32_with_axes(const Type& t) { return t.dtype == DType::F32 && t.rank() > 0; }

double greatest(DType t) {
  switch (t) {
    case DType::F16: return 2048;
    case DType::BF16: return 256;
    case DType::F32: return 1 << 24;
    case DType::U8: return 255;
    case DType::I8: return 127;
    default: return 1 << 30;
  }
}

}  // namespace

RandomGraph::RandomGraph(std::uint32_t seed, int steps) : random_(seed) {
  g_.facts.declare("n", {0, 1000, 1});
  g_.facts.declare("m", {0, 1000, 1});
  const Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  const Shape shapes[] = {{n, m}, {n, 6}, {m}, {n, 3, m}, {2, 4, n}, {1, m}, {n, 1}, {7}, {}};
  const DType dtypes[] = {DType::F32, DType::F32, DType::F32, DType::I64, DType::I32, DType::U8, DType::Bool, DType::F64, DType::F16};
  for (int k = 0; k < 3; ++k) input(dtypes[pick(9)], shapes[pick(9)]);
  input(DType::F32, {n, m});
  const Make makes[] = {&RandomGraph::unary,  &RandomGraph::smooth,  &RandomGraph::binary, &RandomGraph::binary,
                        &RandomGraph::divide, &RandomGraph::compare, &RandomGraph::choose, &RandomGraph::cast,
                        &RandomGraph::reshape, &RandomGraph::transpose, &RandomGraph::broadcast, &RandomGraph::slice,
                        &RandomGraph::pad,    &RandomGraph::concat,  &RandomGraph::reverse, &RandomGraph::iota,
                        &RandomGraph::gather, &RandomGraph::scatter, &RandomGraph::reduce, &RandomGraph::reduce,
                        &RandomGraph::arg_reduce, &RandomGraph::cumulative, &RandomGraph::dot, &RandomGraph::conv,
                        &RandomGraph::window, &RandomGraph::sort};
  const std::size_t inputs = pool_.size();
  for (int tries = 0; tries < 20 * steps && pool_.size() < inputs + static_cast<std::size_t>(steps); ++tries) {
    (this->*makes[pick(static_cast<int>(std::size(makes)))])();
  }
  std::vector<ValueId> outputs{pool_.back()};
  while (chance(60)) outputs.push_back(any());
  g_.set_outputs(outputs);
  EXPECT_TRUE(b_.status().ok()) << b_.status().error().what();
}

ValueId RandomGraph::any() { return pool_[pick(static_cast<int>(pool_.size()))]; }

ValueId RandomGraph::any_of(bool (*fits)(const Type&)) {
  for (int tries = 0; tries < 20; ++tries) {
    ValueId v = chance(50) ? pool_.back() : any();
    if (fits(type(v))) return v;
  }
  return input(DType::F32, {Dim::symbol("n"), 5});
}

// Another value of the type, or one that broadcasts to it, or an input.
ValueId RandomGraph::any_like(const Type& want) {
  for (int tries = 0; tries < 10; ++tries) {
    ValueId v = any();
    if (type(v).dtype != want.dtype || type(v).rank() > want.rank()) continue;
    bool fits = true;
    for (int a = 1; a <= type(v).rank(); ++a) {
      const Dim& d = type(v).shape[type(v).rank() - a];
      fits = fits && (d.is(1) || d == want.shape[want.rank() - a]);
    }
    if (fits) return v;
  }
  if (chance(50)) return input(want.dtype, want.shape);
  Shape small;
  for (const Dim& d : want.shape) small.push_back(chance(40) ? Dim(1) : d);
  return chance(30) ? number(want.dtype, pick(5)) : input(want.dtype, small);
}

ValueId RandomGraph::input(DType dtype, Shape shape) {
  ValueId v = g_.add_input({dtype, std::move(shape)});
  keep(v, true, 8);
  return v;
}

bool RandomGraph::exact_enough(DType dtype, double most) const { return most < greatest(dtype); }

void RandomGraph::keep(ValueId v, bool exact, double most) {
  if (v < 0) return;
  info_.resize(g_.values().size());
  info_[v] = {exact && exact_enough(type(v).dtype, most), most};
  pool_.push_back(v);
}

void RandomGraph::unary() {
  ValueId v = any();
  Info i = info_of(v);
  if (type(v).dtype == DType::Bool) return keep(b_.unary(Op::Not, v), true, 1);
  const Op ops[] = {Op::Neg, Op::Abs, Op::Sign, Op::Floor, Op::Ceil, Op::Round, Op::Trunc};
  Op op = ops[pick(is_float(type(v).dtype) ? 7 : 2)];
  if (type(v).dtype == DType::U8 && op == Op::Neg) return;
  if (!i.exact && op != Op::Neg && op != Op::Abs) return;
  keep(b_.unary(op, v), i.exact, i.most);
}

void RandomGraph::smooth() {
  ValueId v = any_of(is_real);
  if (info_of(v).most > 60) v = b_.unary(Op::Tanh, v);
  const Op ops[] = {Op::Tanh, Op::Sigmoid, Op::Exp, Op::Sin, Op::Cos, Op::Erf, Op::Atan};
  if (chance(20)) {
    return keep(b_.unary(Op::Sqrt, b_.binary(Op::Add, b_.unary(Op::Abs, v), number(type(v).dtype, 1))), false, 8);
  }
  Op op = ops[pick(7)];
  double most = op == Op::Exp ? (info_of(v).most < 5 ? 200 : 1e30) : 2;
  if (most > 1e20) return;
  keep(b_.unary(op, v), false, most);
}

void RandomGraph::binary() {
  ValueId a = any();
  ValueId b = any_like(type(a));
  if (chance(30)) std::swap(a, b);
  bool exact = info_of(a).exact && info_of(b).exact;
  double x = info_of(a).most, y = info_of(b).most;
  if (type(a).dtype == DType::Bool) {
    const Op ops[] = {Op::And, Op::Or, Op::Xor};
    return keep(b_.binary(ops[pick(3)], a, b), true, 1);
  }
  const Op ops[] = {Op::Add, Op::Sub, Op::Mul, Op::Max, Op::Min};
  Op op = ops[pick(5)];
  double most = op == Op::Mul ? x * y : op == Op::Max || op == Op::Min ? std::max(x, y) : x + y;
  if (most > 1e4 || (is_float(type(a).dtype) && most > greatest(type(a).dtype))) return;
  keep(b_.binary(op, a, b), exact, most);
}

void RandomGraph::divide() {
  ValueId a = any_of(is_number);
  ValueId b = any_like(type(a));
  if (!is_float(type(a).dtype)) {
    const Op ops[] = {Op::Div, Op::Mod, Op::Fmod};
    return keep(b_.binary(ops[pick(3)], a, b), true, std::max(info_of(a).most, info_of(b).most));
  }
  ValueId d = b_.binary(Op::Add, b_.unary(Op::Abs, b), number(type(a).dtype, 1));
  keep(b_.binary(Op::Div, a, d), false, info_of(a).most);
}

void RandomGraph::compare() {
  ValueId a = any_of(is_number);
  ValueId b = any_like(type(a));
  if (!info_of(a).exact || !info_of(b).exact) return;
  const Op ops[] = {Op::Lt, Op::Le, Op::Eq, Op::Ne, Op::Gt, Op::Ge};
  keep(b_.binary(ops[pick(6)], a, b), true, 1);
}

void RandomGraph::choose() {
  ValueId a = any();
  ValueId b = any_like(type(a));
  ValueId c = any_like({DType::Bool, type(a).shape});
  keep(b_.select(c, a, b), info_of(a).exact && info_of(b).exact, std::max(info_of(a).most, info_of(b).most));
}

void RandomGraph::cast() {
  const DType dtypes[] = {DType::F32, DType::I64, DType::I32, DType::U8, DType::Bool, DType::F64, DType::F16, DType::I8, DType::BF16};
  ValueId v = any();
  DType to = dtypes[pick(9)];
  Info i = info_of(v);
  if (!i.exact && !is_float(to)) return;
  if (i.most > greatest(to)) return;
  double most = to == DType::Bool ? 1 : to == DType::U8 ? 255 : i.most;
  keep(b_.cast(v, to), i.exact, most);
}

void RandomGraph::reshape() {
  ValueId v = any();
  Shape s = type(v).shape;
  if (s.size() >= 2 && chance(60)) {
    std::size_t a = static_cast<std::size_t>(pick(static_cast<int>(s.size()) - 1));
    s[a] = s[a] * s[a + 1];
    s.erase(s.begin() + static_cast<std::ptrdiff_t>(a) + 1);
  } else if (!s.empty() && s.back().is(6)) {
    s.back() = Dim(2);
    s.push_back(Dim(3));
  } else if (s.size() < 4) {
    s.insert(s.begin() + pick(static_cast<int>(s.size()) + 1), Dim(1));
  }
  keep(b_.reshape(v, s), info_of(v).exact, info_of(v).most);
}

void RandomGraph::transpose() {
  ValueId v = any_of(has_axes);
  std::vector<std::int64_t> axes;
  for (int a = 0; a < type(v).rank(); ++a) axes.push_back(a);
  std::shuffle(axes.begin(), axes.end(), random_);
  keep(b_.transpose(v, axes), info_of(v).exact, info_of(v).most);
}

void RandomGraph::broadcast() {
  ValueId v = any();
  if (type(v).rank() > 3) return;
  Shape s = type(v).shape;
  s.insert(s.begin(), chance(50) ? Dim(3) : Dim::symbol("m"));
  for (Dim& d : s) {
    if (d.is(1) && chance(50)) d = Dim(4);
  }
  keep(b_.broadcast_to(v, s), info_of(v).exact, info_of(v).most);
}

void RandomGraph::slice() {
  ValueId v = any_of(has_axes);
  Shape starts, sizes;
  std::vector<std::int64_t> steps;
  for (const Dim& d : type(v).shape) {
    if (d.is_const() && d.value() > 1 && chance(60)) {
      std::int64_t from = pick(static_cast<int>(d.value())), step = chance(30) ? -1 : 1 + pick(2);
      std::int64_t room = step < 0 ? from + 1 : (d.value() - from + step - 1) / step;
      starts.push_back(Dim(from));
      sizes.push_back(Dim(pick(static_cast<int>(room)) + 1));
      steps.push_back(step);
    } else if (chance(40)) {
      starts.push_back(Dim(0));
      sizes.push_back(floor_div(d + 1, Dim(2)));
      steps.push_back(2);
    } else {
      starts.push_back(Dim(0));
      sizes.push_back(d);
      steps.push_back(1);
    }
  }
  keep(b_.slice(v, starts, sizes, steps), info_of(v).exact, info_of(v).most);
}

void RandomGraph::pad() {
  ValueId v = any_of(has_axes);
  if (type(v).dtype == DType::Bool) return;
  Shape lo, hi;
  bool small = false, symbolic = false;
  for (const Dim& d : type(v).shape) {
    lo.push_back(Dim(pick(3)));
    hi.push_back(Dim(pick(3)));
    symbolic = symbolic || !d.is_const();
    small = small || (d.is_const() && d.value() < 3);
  }
  const char* mode = symbolic || small || chance(50) ? "constant" : chance(50) ? "reflect" : chance(50) ? "edge" : "wrap";
  Attrs attrs;
  attrs.set(Attr::Lo, lo).set(Attr::Hi, hi).set(Attr::Mode, std::string(mode));
  keep(b_.node(Op::Pad, {v, number(type(v).dtype, 2)}, attrs), info_of(v).exact, info_of(v).most);
}

void RandomGraph::concat() {
  ValueId v = any_of(has_axes);
  int axis = pick(type(v).rank());
  std::vector<ValueId> parts{v};
  bool exact = info_of(v).exact;
  double most = info_of(v).most;
  for (int k = 1 + pick(2); k > 0; --k) {
    ValueId w = chance(30) ? v : any();
    if (type(w).rank() != type(v).rank() || type(w).dtype != type(v).dtype) w = v;
    Shape s = type(w).shape;
    s[static_cast<std::size_t>(axis)] = type(v).shape[static_cast<std::size_t>(axis)];
    if (s != type(v).shape) w = v;
    exact = exact && info_of(w).exact;
    most = std::max(most, info_of(w).most);
    parts.push_back(w);
  }
  keep(b_.concat(parts, axis), exact, most);
}

void RandomGraph::reverse() {
  ValueId v = any_of(has_axes);
  Attrs attrs;
  attrs.set(Attr::Axes, std::vector<std::int64_t>{pick(type(v).rank())});
  keep(b_.node(Op::Reverse, {v}, attrs), info_of(v).exact, info_of(v).most);
}

void RandomGraph::iota() {
  ValueId v = any_of(has_axes);
  DType t = chance(50) ? DType::F32 : DType::I64;
  keep(b_.iota(t, type(v).shape, pick(type(v).rank())), true, 1000);
}

void RandomGraph::gather() {
  ValueId v = any_of(has_axes);
  for (int a = 0; a < type(v).rank(); ++a) {
    const Dim& d = type(v).shape[static_cast<std::size_t>(a)];
    if (!d.is_const() || d.value() == 0) continue;
    std::vector<std::int64_t> at;
    for (int k = 1 + pick(4); k > 0; --k) at.push_back(pick(static_cast<int>(2 * d.value())) - d.value());
    ValueId indices = b_.constant(Tensor::of(at));
    if (chance(30)) indices = b_.cast(indices, DType::I32);
    return keep(b_.gather(v, indices, a), info_of(v).exact, info_of(v).most);
  }
}

void RandomGraph::scatter() {
  ValueId v = any_of(has_axes);
  if (type(v).dtype == DType::Bool || !type(v).shape[0].is_const() || type(v).shape[0].value() < 2) return;
  Shape s = type(v).shape;
  s[0] = Dim(2);
  ValueId updates = input(type(v).dtype, s);
  Attrs attrs;
  attrs.set(Attr::Axis, graph::AttrValue(std::int64_t{0})).set(Attr::Combine, std::string(chance(50) ? "none" : "add"));
  ValueId rows = b_.constant(Tensor::of({1, 0}));
  keep(b_.node(Op::ScatterElements, {v, b_.broadcast_in(rows, s, {0}), updates}, attrs), info_of(v).exact, info_of(v).most + 8);
}

void RandomGraph::reduce() {
  ValueId v = any_of(has_axes);
  std::vector<std::int64_t> axes;
  for (int a = 0; a < type(v).rank(); ++a) {
    if (chance(50)) axes.push_back(a);
  }
  if (type(v).dtype == DType::Bool) return keep(b_.reduce(chance(50) ? Op::ReduceAnd : Op::ReduceOr, v, axes, chance(50)), true, 1);
  if (chance(50)) {
    if (is_float(type(v).dtype) || type(v).dtype == DType::U8) return;
    return keep(b_.reduce(chance(50) ? Op::ReduceMax : Op::ReduceMin, v, axes, chance(30)), true, 1 << 30);
  }
  double most = info_of(v).most * 1000;
  if (is_float(type(v).dtype) && most > 10 * greatest(type(v).dtype)) return;
  keep(b_.reduce(Op::ReduceSum, v, axes, chance(50)), info_of(v).exact, most);
}

void RandomGraph::arg_reduce() {
  ValueId v = any_of(has_axes);
  int axis = pick(type(v).rank());
  const Dim& d = type(v).shape[static_cast<std::size_t>(axis)];
  if (!info_of(v).exact || !d.is_const() || d.is(0)) return;
  Attrs attrs;
  attrs.set(Attr::Axis, graph::AttrValue(std::int64_t{axis})).set(Attr::Last, chance(50));
  keep(b_.node(chance(50) ? Op::ArgMax : Op::ArgMin, {v}, attrs), true, 1000);
}

void RandomGraph::cumulative() {
  ValueId v = any_of(has_axes);
  if (type(v).dtype == DType::Bool || info_of(v).most * 100 > greatest(type(v).dtype)) return;
  const Op ops[] = {Op::CumSum, Op::CumMax, Op::CumMin};
  Op op = ops[pick(3)];
  Attrs attrs;
  attrs.set(Attr::Axis, graph::AttrValue(std::int64_t{pick(type(v).rank())}));
  attrs.set(Attr::Exclusive, op == Op::CumSum && chance(50)).set(Attr::Reverse, chance(50));
  keep(b_.node(op, {v}, attrs), info_of(v).exact, info_of(v).most * 100);
}

void RandomGraph::dot() {
  ValueId v = any_of(is_f32_with_axes);
  if (info_of(v).most > 1000) return;
  const Dim k = type(v).shape.back();
  const Dim width = chance(30) ? Dim(33) : chance(50) ? Dim(5) : Dim::symbol("m");
  Shape s{k, width};
  ValueId w;
  if (k.is_const() && width.is_const() && chance(60)) {
    Tensor t = random_tensor(DType::F32, {k.value(), width.value()}, random_);
    w = b_.constant(t);
  } else if (type(v).rank() == 3 && chance(40)) {
    w = input(DType::F32, {type(v).shape[0], k, width});
  } else {
    w = input(DType::F32, s);
  }
  keep(b_.matmul(v, w), info_of(v).exact, info_of(v).most * 4000);
}

void RandomGraph::conv() {
  const std::int64_t groups = chance(30) ? 2 : 1, channels = groups * (1 + pick(3)), outs = groups * (1 + pick(3));
  const int rank = 1 + pick(2);
  Shape xs{chance(50) ? Dim::symbol("n") : Dim(2), Dim(channels)};
  std::vector<std::int64_t> ws{outs, channels / groups}, strides, lo, hi, dilations, base;
  for (int d = 0; d < rank; ++d) {
    xs.push_back(chance(40) ? Dim::symbol("m") + 4 : Dim(9));
    ws.push_back(1 + pick(3));
    strides.push_back(1 + pick(2));
    dilations.push_back(1 + pick(2));
    lo.push_back(pick(3));
    hi.push_back(pick(3));
    base.push_back(1);
  }
  ValueId x = input(DType::F32, xs);
  ValueId w = chance(70) ? b_.constant(random_tensor(DType::F32, ws, random_)) : input(DType::F32, Shape(ws.begin(), ws.end()));
  Attrs attrs;
  attrs.set(Attr::Strides, strides).set(Attr::Lo, Shape(lo.begin(), lo.end())).set(Attr::Hi, Shape(hi.begin(), hi.end()));
  attrs.set(Attr::Dilations, dilations).set(Attr::BaseDilations, base).set(Attr::Groups, graph::AttrValue(groups));
  attrs.set(Attr::ChannelsLast, false).set(Attr::DType, DType::F32);
  keep(b_.node(Op::Conv, {x, w}, attrs), true, 2000);
}

void RandomGraph::window() {
  ValueId v = any_of(has_axes);
  if (type(v).dtype == DType::Bool || type(v).dtype == DType::U8) return;
  std::vector<std::int64_t> window, strides, dilations;
  Shape lo, hi;
  for (const Dim& d : type(v).shape) {
    bool wide = d.is_const() && d.value() >= 3;
    window.push_back(wide ? 1 + pick(3) : 1);
    strides.push_back(1 + pick(2));
    dilations.push_back(1);
    bool padded = wide && window.back() > 1 && chance(50);
    lo.push_back(Dim(padded ? 1 : 0));
    hi.push_back(Dim(padded ? pick(2) : 0));
  }
  Attrs attrs;
  attrs.set(Attr::Window, window).set(Attr::Strides, strides).set(Attr::Lo, lo).set(Attr::Hi, hi).set(Attr::Dilations, dilations);
  double most = info_of(v).most * 27;
  if (is_float(type(v).dtype) && most > greatest(type(v).dtype)) return;
  keep(b_.node(chance(50) ? Op::WindowSum : Op::WindowMax, {v}, attrs), info_of(v).exact, most);
}

void RandomGraph::sort() {
  ValueId v = any_of(has_axes);
  if (!info_of(v).exact) return;
  Attrs attrs;
  attrs.set(Attr::Axis, graph::AttrValue(std::int64_t{pick(type(v).rank())})).set(Attr::Descending, chance(50));
  auto results = b_.nodes(Op::Sort, {v}, attrs);
  keep(results[0], true, info_of(v).most);
  keep(results[1], true, 1000);
}

namespace {

Tensors inputs_for(const graph::Graph& g, std::int64_t n, std::int64_t m, std::mt19937& random) {
  Tensors inputs;
  for (ValueId v : g.inputs()) {
    Bindings bindings{{"n", n}, {"m", m}};
    inputs.push_back(random_tensor(g.type(v).dtype, evaluate(g.type(v).shape, bindings).value(), random));
  }
  return inputs;
}

// "" when compiled and interpreted agree; an input that the interpreter refuses must be refused.
std::string trial(const graph::Graph& g, std::uint32_t seed, Options options) {
  options.cache = false;
  options.jobs = 1;
  std::unique_ptr<runtime::Executable> exe;
  try {
    auto compiled = compile(g, options);
    if (!compiled.ok()) return compiled.error().what();
    exe = std::make_unique<runtime::Executable>(compiled->plan);
  } catch (const std::exception& e) {
    return e.what();
  }
  std::mt19937 random(seed);
  const std::int64_t sizes[][2] = {{3, 5}, {1, 1}, {0, 4}, {17, 33}, {4, 0}, {8, 16}, {3, 5}};
  for (const auto& s : sizes) {
    Tensors inputs = inputs_for(g, s[0], s[1], random);
    auto want = graph::interpret(g, inputs);
    if (!want.ok()) return "interpreter: " + std::string(want.error().what());
    Tensors got;
    runtime::RunOptions how;
    how.threads = 1 + static_cast<int>(seed % 2);
    auto status = exe->run(inputs, got, how);
    std::string where = " at n=" + std::to_string(s[0]) + " m=" + std::to_string(s[1]);
    if (!status.ok()) return status.error().what() + where;
    for (std::size_t k = 0; k < got.size(); ++k) {
      std::string d = difference(got[k], (*want)[k], 2e-3);
      if (!d.empty()) return "output " + std::to_string(k) + ": " + d + where;
    }
  }
  return "";
}

// The nodes that the outputs need, with the first of the values that fail alone as the only output.
graph::Graph reduced(const graph::Graph& g, std::uint32_t seed, const Options& options) {
  graph::Graph small = g;
  for (const graph::Node& node : g.nodes()) {
    for (ValueId v : node.results) {
      graph::Graph candidate = g;
      candidate.set_outputs({v});
      if (!trial(candidate, seed, options).empty()) return candidate;
    }
  }
  return small;
}

void compare(const Options& options, std::uint32_t count) {
  const char* wanted = std::getenv("RANDOM_GRAPHS");
  const char* first = std::getenv("RANDOM_FIRST");
  const std::uint32_t begin = first ? static_cast<std::uint32_t>(std::atoi(first)) : 1;
  if (wanted) count = static_cast<std::uint32_t>(std::atoi(wanted));
  for (std::uint32_t seed = begin; seed < begin + count; ++seed) {
    RandomGraph random(seed, 2 + static_cast<int>(seed % 7));
    std::string wrong = trial(random.graph(), seed, options);
    if (wrong.empty()) continue;
    graph::Graph small = reduced(random.graph(), seed, options);
    ADD_FAILURE() << "seed " << seed << ": " << wrong << "\nreduced: " << trial(small, seed, options) << "\n" << graph::print(small);
  }
}

Options on(const char* target) {
  Options options;
  options.target = target::open(target).value();
  return options;
}

TEST(RandomGraphs, CompiledAgreesWithInterpreted) { compare({}, 60); }

// Every kernel is checked for races, bounds, barriers and shared memory on its way.
TEST(RandomGraphs, GroupsOfThreadsAgreeWithInterpreted) {
  compare(on("sim:sm_90a"), 40);
  compare(on("sim:opencl"), 20);
}

// Every second kernel or so is here, whatever it costs: what is copied where is then as mixed as it can be.
TEST(RandomGraphs, DividedBetweenTwoPlacesAgreeWithInterpreted) {
  Options options = on("sim:opencl");
  options.cpu_too = true;
  options.on_device = [](const loop::Group& group) { return std::hash<std::string>()(loop::print_alike(group)) % 2 == 0; };
  compare(options, 60);
}

}  // namespace
}  // namespace weft::compiler::testing
