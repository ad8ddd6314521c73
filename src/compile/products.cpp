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
  const bool pairs = form == ProductForm::Pairs;
  const DType narrow = form == ProductForm::Wide ? DType::F32 : DType::BF16;
  const Dim words = pairs ? s.words : s.depth, depth = pairs ? 2 * s.words : s.depth;
  loop::Param x{loop::Role::Input, pairs ? DType::BF16 : DType::F32, {s.rows, depth}, {}, false};
  loop::Param w{loop::Role::Input, narrow, pairs ? Shape{words, 2, s.lanes} : Shape{words, s.lanes}, {}, true};
  loop::Param y{loop::Role::Output, DType::F32, {s.rows, s.lanes}, {}, false};
  const int parts = pairs ? s.parts : 1;
  std::vector<loop::ParamId> px, pw;
  for (int part = 0; part < parts; ++part) px.push_back(g.add_param(x)), pw.push_back(g.add_param(w));
  const auto py = g.add_param(y);
  const auto i = g.add_loop(loop::LoopKind::Parallel, s.rows), j = g.add_loop(loop::LoopKind::Parallel, s.lanes);
  const auto k = g.add_loop(loop::LoopKind::Reduce, words), within = pairs ? g.add_loop(loop::LoopKind::Reduce, 2) : -1;
  const auto at_k = pairs ? g.iadd(g.imul(g.index(k), g.constant_i64(2)), g.index(within)) : g.index(k);
  std::vector<loop::ExprId> at_w{g.index(k), g.index(j)};
  if (pairs) at_w.insert(at_w.begin() + 1, g.index(within));
  const auto sum = g.add_local(DType::F32);
  std::vector<loop::Stmt> body;
  for (int q = 0; q < parts; ++q) {
    for (int p = parts - 1 - q; p >= 0; --p) {
      const auto a = g.cast(g.load(px[p], {g.index(i), at_k}), DType::F32), b = g.cast(g.load(pw[q], at_w), DType::F32);
      body.push_back(loop::update_stmt(sum, Combine::Sum, g.scalar(ScalarOp::Mul, DType::F32, {a, b})));
    }
  }
  if (pairs) body = {loop::loop_stmt(within, std::move(body))};
  std::vector<loop::Stmt> inner{loop::local_stmt(sum, g.constant(DType::F32, 0)), loop::loop_stmt(k, std::move(body)),
                                loop::store_stmt(py, {g.index(i), g.index(j)}, g.local(sum))};
  g.body = {loop::loop_stmt(i, {loop::loop_stmt(j, std::move(inner))})};
  return g;
}

double modelled(const ProductShape& s, ProductForm form, const Machine& m, const DimFacts& facts) {
  return schedule::schedule(product_group(s, form), m, facts, {true, ""}).candidates.front().score();
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
    std::string key = s.rows.str() + " " + std::to_string(s.depth) + " " + std::to_string(s.lanes) + " " + std::to_string(s.words) + " " + std::to_string(s.parts);
    for (const std::string& symbol : s.rows.symbols()) {
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
