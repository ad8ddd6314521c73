#include "compile/products.h"

#include <map>
#include <memory>
#include <string>

#include "schedule/schedule.h"

namespace weft::compiler {

using loop::Group;
using transform::ProductChoice;
using transform::ProductForm;
using transform::ProductShape;

namespace {

constexpr double kWorth = 1.1;  // times faster, to be worth the change

// The loops of the product in one form.
Group product_group(const ProductShape& s, ProductForm form) {
  Group g;
  g.name = "product";
  const bool pairs = form == ProductForm::Pairs, narrow = form != ProductForm::Wide;
  const std::int64_t words = (pairs ? s.words : s.depth) / s.taps, channels = pairs ? 2 * words : words;
  Shape kernel = pairs ? Shape{s.taps, words, 2, s.lanes} : Shape{s.taps, words, s.lanes};
  loop::Param x{loop::Role::Input, pairs ? DType::BF16 : DType::F32, {s.runs, s.rows + (s.taps - 1), channels}, {}, false};
  loop::Param w{loop::Role::Input, narrow ? DType::BF16 : DType::F32, std::move(kernel), {}, true};
  loop::Param y{loop::Role::Output, DType::F32, {s.runs, s.rows, s.lanes}, {}, false};
  const int parts = pairs ? s.parts : 1;
  std::vector<loop::ParamId> px, pw;
  for (int part = 0; part < parts; ++part) px.push_back(g.add_param(x)), pw.push_back(g.add_param(w));
  const auto py = g.add_param(y);
  // One step is no loop.
  std::vector<std::pair<loop::LoopId, loop::ExprId>> loops;
  const auto loop = [&](loop::LoopKind kind, const Dim& extent) {
    const loop::LoopId l = extent.is(1) ? -1 : g.add_loop(kind, extent);
    loops.emplace_back(l, l < 0 ? g.constant_i64(0) : g.index(l));
    return loops.back().second;
  };
  const auto run = loop(loop::LoopKind::Parallel, s.runs), i = loop(loop::LoopKind::Parallel, s.rows), j = loop(loop::LoopKind::Parallel, s.lanes);
  const auto tap = loop(loop::LoopKind::Reduce, s.taps), k = loop(loop::LoopKind::Reduce, words);
  const auto within = pairs ? loop(loop::LoopKind::Reduce, 2) : -1;
  const auto at_k = pairs ? g.iadd(g.imul(k, g.constant_i64(2)), within) : k;
  std::vector<loop::ExprId> at_w{tap, k, j};
  if (pairs) at_w.insert(at_w.begin() + 2, within);
  const auto sum = g.add_local(DType::F32);
  std::vector<loop::Stmt> body;
  for (int q = 0; q < parts; ++q) {
    for (int p = parts - 1 - q; p >= 0; --p) {
      const auto a = g.cast(g.load(px[p], {run, g.iadd(i, tap), at_k}), DType::F32), b = g.cast(g.load(pw[q], at_w), DType::F32);
      body.push_back(loop::update_stmt(sum, Combine::Sum, g.scalar(ScalarOp::Mul, DType::F32, {a, b})));
    }
  }
  constexpr std::size_t kParallel = 3;
  for (std::size_t n = loops.size(); n-- > 0;) {
    if (loops[n].first >= 0) body = {loop::loop_stmt(loops[n].first, std::move(body))};
    if (n != kParallel) continue;
    body.insert(body.begin(), loop::local_stmt(sum, g.constant(DType::F32, 0)));
    body.push_back(loop::store_stmt(py, {run, i, j}, g.local(sum)));
  }
  g.body = std::move(body);
  return g;
}

// The loops that make the parts of the operand.
Group parts_group(const ProductShape& s) {
  Group g;
  g.name = "parts";
  const Shape shape{s.runs * s.rows, s.depth / s.taps};
  const auto px = g.add_param({loop::Role::Input, DType::F32, shape, {}, false});
  const auto i = g.add_loop(loop::LoopKind::Parallel, shape[0]), k = g.add_loop(loop::LoopKind::Parallel, shape[1]);
  auto rest = g.load(px, {g.index(i), g.index(k)});
  std::vector<loop::Stmt> body;
  for (int part = 0; part < s.parts; ++part) {
    const auto rounded = g.cast(rest, DType::BF16);
    body.push_back(loop::store_stmt(g.add_param({loop::Role::Output, DType::BF16, shape, {}, false}), {g.index(i), g.index(k)}, rounded));
    rest = g.scalar(ScalarOp::Sub, DType::F32, {rest, g.cast(rounded, DType::F32)});
  }
  g.body = {loop::loop_stmt(i, {loop::loop_stmt(k, std::move(body))})};
  return g;
}

double modelled(const ProductShape& s, ProductForm form, const Machine& m, const DimFacts& facts) {
  const auto time = [&](const Group& g) { return schedule::schedule(g, m, facts, {true, ""}).candidates.front().score(); };
  return time(product_group(s, form)) + (form == ProductForm::Pairs && s.parts > 1 ? time(parts_group(s)) : 0);
}

ProductChoice choose(const ProductShape& s, const Machine& m, const DimFacts& facts) {
  ProductChoice best;
  if (s.depth < 2 || s.lanes < 1 || m.has_groups()) return best;
  const double wide = modelled(s, ProductForm::Wide, m, facts);
  double least = wide / kWorth;
  for (const ProductForm form : {ProductForm::Pairs, ProductForm::Weights}) {
    if (form == ProductForm::Pairs && (s.words == 0 || m.dot2s() == 0)) continue;
    if (form == ProductForm::Weights && s.parts > 1) continue;
    const double time = modelled(s, form, m, facts);
    if (time >= least) continue;
    least = time;
    best = {form, wide / time};
  }
  return best;
}

}  // namespace

transform::ProductChooser product_chooser(const Machine& machine) {
  auto known = std::make_shared<std::map<std::string, ProductChoice>>();
  return [machine, known](const ProductShape& s, const DimFacts& facts) {
    std::string key = s.rows.str() + " " + s.runs.str();
    for (const std::int64_t n : {s.depth, s.lanes, s.taps, s.words, std::int64_t{s.parts}}) key += " " + std::to_string(n);
    for (const std::string& symbol : (s.rows * s.runs).symbols()) {
      const SymbolRange range = facts.range(Dim::symbol(symbol));
      key += " " + symbol + " " + std::to_string(range.lo) + " " + std::to_string(range.hi);
    }
    const auto [it, fresh] = known->try_emplace(std::move(key));
    if (fresh) it->second = choose(s, machine, facts);
    return it->second;
  };
}

void choose_products(transform::PassOptions& passes, const Machine& machine) {
  const bool asked = passes.precision == transform::Precision::Medium || machine.has_amx_bf16;
  if (!passes.products && asked) passes.products = product_chooser(machine);
}

}  // namespace weft::compiler
