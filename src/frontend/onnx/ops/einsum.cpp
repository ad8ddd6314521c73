// Einsum: operands are contracted one after the other, from the left. Labels are the equation's letters; an ellipsis
// stands for labels of its own, counted from the right.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "frontend/onnx/import/node_context.h"
#include "frontend/onnx/reader/validate.h"

namespace weft::onnx {

namespace {

using graph::Op;

using Labels = std::vector<int>;
constexpr int kEllipsis = 256;  // its last axis; the one before is kEllipsis + 1, ...

bool has(const Labels& labels, int label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }
std::int64_t position(const Labels& labels, int label) { return std::find(labels.begin(), labels.end(), label) - labels.begin(); }

struct Term {
  ValueId value;
  Labels labels;  // one per axis
};

struct Equation {
  std::vector<std::string> terms;
  std::optional<std::string> output;
};

Result<Equation> split(NodeContext& c, std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  Equation e;
  if (auto arrow = text.find("->"); arrow != std::string::npos) {
    e.output = text.substr(arrow + 2);
    text.resize(arrow);
  }
  std::size_t start = 0;
  for (std::size_t comma; (comma = text.find(',', start)) != std::string::npos; start = comma + 1) {
    e.terms.push_back(text.substr(start, comma - start));
  }
  e.terms.push_back(text.substr(start));
  if (static_cast<int>(e.terms.size()) != c.input_count()) {
    return c.bad("the equation has another number of terms than there are inputs").expected(std::to_string(c.input_count())).found(std::to_string(e.terms.size()));
  }
  return e;
}

// Labels of a term; `ellipsis` axes stand for "...".
Result<Labels> labels_of(NodeContext& c, const std::string& term, int ellipsis) {
  Labels labels;
  bool seen = false;
  for (std::size_t k = 0; k < term.size(); ++k) {
    if (std::isalpha(static_cast<unsigned char>(term[k]))) {
      labels.push_back(term[k]);
    } else if (term.compare(k, 3, "...") == 0 && !seen) {
      for (int d = ellipsis - 1; d >= 0; --d) labels.push_back(kEllipsis + d);
      seen = true;
      k += 2;
    } else {
      return c.bad(fmt::format("the equation's term '{}' cannot be read", term));
    }
  }
  return labels;
}

int letters(const std::string& term) {
  return static_cast<int>(std::count_if(term.begin(), term.end(), [](unsigned char ch) { return std::isalpha(ch); }));
}

// A label given twice takes the diagonal of its two axes.
Result<void> take_diagonals(NodeContext& c, Term& t) {
  for (std::size_t i = 0; i < t.labels.size(); ++i) {
    auto again = std::find(t.labels.begin() + static_cast<std::ptrdiff_t>(i) + 1, t.labels.end(), t.labels[i]);
    if (again == t.labels.end()) continue;
    std::int64_t j = again - t.labels.begin(), first = static_cast<std::int64_t>(i);
    const Shape s = c.b.shape(t.value);
    if (!s[i].is_const()) return c.missing("the diagonal of a symbolic size");
    if (s[j].is_const() && !(s[j] == s[i])) return c.bad("a label stands for two sizes");
    std::vector<std::int64_t> order;
    Shape merged;
    Labels left;
    for (std::int64_t d = 0; d < static_cast<std::int64_t>(s.size()); ++d) {
      if (d == first || d == j) continue;
      order.push_back(d);
      merged.push_back(s[d]);
      left.push_back(t.labels[d]);
    }
    order.push_back(first);
    order.push_back(j);
    std::int64_t n = s[i].value(), last = static_cast<std::int64_t>(merged.size());
    merged.push_back(n * n);
    left.push_back(t.labels[i]);
    t.value = c.b.slice_axis(c.b.reshape(c.b.transpose(t.value, order), merged), last, 0, n, n + 1);
    t.labels = left;
    --i;
  }
  return {};
}

void drop_axis(NodeContext& c, Term& t, int label) {
  Shape s = c.b.shape(t.value);
  std::int64_t at = position(t.labels, label);
  s.erase(s.begin() + at);
  t.labels.erase(t.labels.begin() + at);
  t.value = c.b.reshape(t.value, s);
}

void sum_unneeded(NodeContext& c, Term& t, const Labels& needed) {
  std::vector<std::int64_t> axes;
  Labels kept;
  for (std::size_t k = 0; k < t.labels.size(); ++k) {
    if (has(needed, t.labels[k])) kept.push_back(t.labels[k]);
    else axes.push_back(static_cast<std::int64_t>(k));
  }
  t.value = c.b.reduce(Op::ReduceSum, t.value, axes);
  t.labels = kept;
}

// The axes of t in the order of `labels`, with size 1 where it has none.
ValueId aligned(NodeContext& c, const Term& t, const Labels& labels) {
  std::vector<std::int64_t> order;
  Shape shape;
  for (int label : labels) {
    if (!has(t.labels, label)) {
      shape.push_back(1);
      continue;
    }
    order.push_back(position(t.labels, label));
    shape.push_back(c.b.shape(t.value)[order.back()]);
  }
  return c.b.reshape(c.b.transpose(t.value, order), shape);
}

Term contract(NodeContext& c, Term a, Term b, const Labels& needed) {
  // A size of 1 broadcasts: its axis goes, and the other operand's stays.
  for (int label : Labels(a.labels)) {
    if (!has(b.labels, label)) continue;
    const Dim &x = c.b.shape(a.value)[position(a.labels, label)], &y = c.b.shape(b.value)[position(b.labels, label)];
    bool one_left = x.is(1), one_right = y.is(1);
    if (one_left) drop_axis(c, a, label);
    else if (one_right) drop_axis(c, b, label);
  }
  Labels of_a = needed, of_b = needed;
  of_a.insert(of_a.end(), b.labels.begin(), b.labels.end());
  of_b.insert(of_b.end(), a.labels.begin(), a.labels.end());
  sum_unneeded(c, a, of_a);
  sum_unneeded(c, b, of_b);
  Labels result;
  std::vector<std::int64_t> batch_a, batch_b, contract_a, contract_b;
  for (int label : a.labels) {
    if (!has(b.labels, label)) continue;
    bool keep = has(needed, label);
    (keep ? batch_a : contract_a).push_back(position(a.labels, label));
    (keep ? batch_b : contract_b).push_back(position(b.labels, label));
    if (keep) result.push_back(label);
  }
  for (int label : a.labels) {
    if (!has(b.labels, label)) result.push_back(label);
  }
  for (int label : b.labels) {
    if (!has(a.labels, label)) result.push_back(label);
  }
  if (contract_a.empty()) {
    return {c.b.binary(Op::Mul, aligned(c, a, result), aligned(c, b, result)), result};
  }
  ValueId y = c.b.dot(a.value, b.value, batch_a, batch_b, contract_a, contract_b, c.b.dtype(a.value));
  return {y, result};
}

Result<void> einsum(NodeContext& c) {
  Equation e = WEFT_TRY(split(c, c.text("equation", "")));
  std::vector<Term> terms;
  int widest = 0;
  std::map<int, int> uses;  // of each letter, for the implicit output
  for (int i = 0; i < c.input_count(); ++i) {
    bool dots = e.terms[i].find("...") != std::string::npos;
    int ellipsis = c.rank(i) - letters(e.terms[i]);
    if (ellipsis < 0 || (ellipsis > 0 && !dots)) {
      return c.bad(fmt::format("the term '{}' does not fit input {} of rank {}", e.terms[i], i, c.rank(i)));
    }
    widest = std::max(widest, ellipsis);
    terms.push_back({c.in(i), WEFT_TRY(labels_of(c, e.terms[i], ellipsis))});
    for (int label : terms.back().labels) ++uses[label];
    WEFT_TRY(take_diagonals(c, terms.back()));
  }
  Labels output;
  if (e.output) {
    output = WEFT_TRY(labels_of(c, *e.output, widest));
  } else {
    for (int d = widest - 1; d >= 0; --d) output.push_back(kEllipsis + d);
    for (auto [label, count] : uses) {
      if (label < kEllipsis && count == 1) output.push_back(label);
    }
  }
  Term all = terms[0];
  for (std::size_t k = 1; k < terms.size(); ++k) {
    Labels needed = output;
    for (std::size_t later = k + 1; later < terms.size(); ++later) {
      needed.insert(needed.end(), terms[later].labels.begin(), terms[later].labels.end());
    }
    all = contract(c, all, terms[k], needed);
  }
  sum_unneeded(c, all, output);
  std::vector<std::int64_t> order;
  for (int label : output) {
    if (!has(all.labels, label)) return c.bad("the output has a label that no input has");
    order.push_back(position(all.labels, label));
  }
  c.out(0, c.b.transpose(all.value, order));
  return {};
}

constexpr OpEntry kEinsumOps[] = {{"Einsum", 12, kOpsetMax, 1, -1, "equation", einsum}};

}  // namespace

OpTable einsum_ops() { return {kEinsumOps, std::size(kEinsumOps)}; }

}  // namespace weft::onnx
