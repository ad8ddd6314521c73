#include "sweep/maker.h"

#include <algorithm>
#include <limits>

namespace weft::sweep {
namespace {

char letter_of(DType t) {
  switch (info(t).cls) {
    case DTypeClass::Bool: return 'b';
    case DTypeClass::Int: return 'i';
    case DTypeClass::UInt: return 'u';
    case DTypeClass::Float: return 'f';
    case DTypeClass::Complex: return 'c';
    case DTypeClass::String: return 's';
  }
  return '?';
}

DType part_of(DType t) { return t == DType::C64 ? DType::F32 : t == DType::C128 ? DType::F64 : t; }

}  // namespace

Maker::Maker(std::string op, const std::string& variant) : b_(case_.graph) {
  case_.name = op + "/" + variant;
  case_.op = std::move(op);
  for (const char* symbol : {"n", "m"}) case_.graph.facts.declare(symbol, {0, 4096, 1});
}

ValueId Maker::input(DType dtype, Shape shape, Draw draw, Dim limit) {
  case_.inputs.push_back({draw, std::move(limit)});
  return case_.graph.add_input({dtype, std::move(shape)});
}

Maker& Maker::runs(std::vector<Bindings> runs) {
  case_.runs = std::move(runs);
  return *this;
}

Maker& Maker::tolerance(double steps, double atol) {
  steps_ = steps;
  atol_ = atol;
  return *this;
}

void Maker::done(Cases& into, std::vector<ValueId> outputs) {
  WEFT_CHECK(b_.status().ok(), case_.name + ": " + b_.status().error().what());
  for (ValueId v : outputs) {
    const DType t = case_.graph.type(v).dtype;
    if (!is_float(t) && !is_complex(t)) continue;
    case_.rtol = std::max(case_.rtol, steps_ * eps(t));
    case_.atol = std::max(case_.atol, steps_ * tiny(t));
  }
  case_.atol = std::max(case_.atol, atol_);
  case_.graph.set_outputs(std::move(outputs));
  if (case_.runs.empty()) {
    const bool open = std::any_of(case_.graph.inputs().begin(), case_.graph.inputs().end(),
                                  [&](ValueId v) { return !is_static(case_.graph.type(v).shape); });
    case_.runs = open ? open_sizes() : std::vector<Bindings>{{}};
  }
  into.push_back(std::move(case_));
}

const std::vector<Bindings>& open_sizes() {
  static const std::vector<Bindings> sizes = [] {
    std::vector<Bindings> all;
    for (const auto& [n, m] : {std::pair{3, 5}, {1, 1}, {0, 4}, {17, 33}, {4, 0}, {8, 16}, {2, 67}}) {
      all.push_back({{"n", n}, {"m", m}});
    }
    return all;
  }();
  return sizes;
}

Dim n() { return Dim::symbol("n"); }
Dim m() { return Dim::symbol("m"); }

const std::vector<Form>& forms(DType dtype) {
  static const std::vector<Form> all{{{n(), m()}}, {{7, 33}}, {{}}, {{3, 0, 5}}, {{1}}, {{64}}, {{65}}};
  static const std::vector<Form> some{{{n(), m()}}, {{7, 33}}};
  return is_common(dtype) ? all : some;
}

std::string text(const Shape& shape) {
  std::string s = str(shape);
  std::erase(s, ' ');
  return s;
}

std::string text(DType dtype, const Shape& shape) { return std::string(name(dtype)) + "/" + text(shape); }

std::vector<DType> dtypes_of(const char* classes) {
  const std::string wanted = classes;
  std::vector<DType> found;
  for (int i = 0; i < dtype_count(); ++i) {
    const auto t = static_cast<DType>(i);
    if (wanted.find(letter_of(t)) != std::string::npos) found.push_back(t);
  }
  return found;
}

bool is_common(DType t) {
  switch (t) {
    case DType::Bool: case DType::I8: case DType::U8: case DType::I32: case DType::I64:
    case DType::F16: case DType::BF16: case DType::F32: case DType::F64:
      return true;
    default:
      return false;
  }
}

double eps(DType dtype) {
  const DType t = part_of(dtype);
  if (t == DType::F64) return std::numeric_limits<double>::epsilon();
  double step = 1;
  while (decode_float(t, encode_float(t, 1 + step / 2)) == 1 + step / 2) step /= 2;
  return step;
}

double tiny(DType dtype) {
  const DType t = part_of(dtype);
  if (t == DType::F64) return 5e-324;
  return t == DType::F8E8M0 ? decode_float(t, 0) : decode_float(t, 1);
}

}  // namespace weft::sweep
