// Walks a function and prints statements. A value of many lanes is a list of variables of at most
// the dialect's width, each a power of two wide: v7_0, v7_1 ...
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "codegen/text/dialect.h"

namespace weft::codegen::text {
namespace {

using kernel::Op;
using ssa::Type;
using ssa::ValueId;

struct Chunk {
  int first, width;  // lanes
};

class Emitter {
 public:
  Emitter(const kernel::Function& f, const Dialect& d)
      : f_(f), d_(d), names_(f.types.size()), zeros_(f.types.size()), sums_(f.types.size()), products_(f.types.size()) {}

  Result<std::string> run() {
    for (const Type& t : f_.types) {
      if (!d_.supports(t.dtype))
        return unsupported("dtype", fmt::format("{} in kernel text", name(t.dtype)));
    }
    if (f_.threads > 1 && !d_.has_groups()) return unsupported("groups", "groups of threads in this kernel language");
    out_ = d_.signature(f_) + " {\n" + d_.start(f_);
    for (std::size_t b = 0; b < f_.buffers.size(); ++b) {
      if (f_.buffers[b].space != ssa::Space::OnChip) continue;
      const std::string name = fmt::format("b{}", b);
      line(f_.threads > 1 ? d_.shared(f_.buffers[b], name) : d_.on_chip(f_.buffers[b], name));
    }
    WEFT_TRY(block(f_.body));
    return out_ + "}\n";
  }

 private:
  void line(const std::string& text) {
    if (text.empty()) return;
    out_.append(static_cast<std::size_t>(indent_) * 2, ' ');
    out_ += text + '\n';
  }

  // ---- values ----
  std::vector<Chunk> chunks(const Type& t) const {
    std::vector<Chunk> list;
    for (int first = 0, rest = t.lanes(); rest > 0;) {
      int width = d_.max_width();
      while (width > rest) width /= 2;
      list.push_back({first, width});
      first += width;
      rest -= width;
    }
    return list;
  }
  std::string ref(ValueId v, int chunk) const {
    const bool whole = f_.type(v).lanes() <= d_.max_width() && std::has_single_bit(static_cast<unsigned>(f_.type(v).lanes()));
    return whole ? names_[v] : fmt::format("{}_{}", names_[v], chunk);
  }
  DType dtype(ValueId v) const { return f_.type(v).dtype; }
  std::string lane(ValueId v, int lane) const {
    const auto list = chunks(f_.type(v));
    for (std::size_t c = 0; c < list.size(); ++c) {
      if (lane < list[c].first + list[c].width) {
        return d_.lane(dtype(v), list[c].width, ref(v, static_cast<int>(c)), lane - list[c].first);
      }
    }
    return "";
  }
  void name_value(ValueId v) { names_[v] = fmt::format("v{}", next_++); }
  void declare(ValueId v, int chunk, int width, const std::string& value, bool changes = false) {
    line(d_.declare(d_.type(dtype(v), width), ref(v, chunk), bare(value), changes));
  }
  // Without the parentheses around all of it.
  static std::string bare(const std::string& x) {
    int depth = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      depth += x[i] == '(' ? 1 : x[i] == ')' ? -1 : 0;
      if (depth == 0 && i + 1 < x.size()) return x;
    }
    return x.size() > 2 && x[0] == '(' ? x.substr(1, x.size() - 2) : x;
  }
  // Defines v chunk by chunk: make(chunk number, first lane, width). A value that `changes` is assigned to later.
  template <class Make>
  void define(ValueId v, Make make, bool changes = false) {
    name_value(v);
    const auto list = chunks(f_.type(v));
    for (std::size_t c = 0; c < list.size(); ++c) {
      declare(v, static_cast<int>(c), list[c].width,
              make(static_cast<int>(c), list[c].first, list[c].width), changes);
    }
  }
  // Defines v from the texts of its lanes as scalars.
  template <class Make>
  void define_lanes(ValueId v, Make make) {
    define(v, [&](int, int first, int width) {
      std::vector<std::string> lanes;
      for (int l = 0; l < width; ++l) lanes.push_back(make(first + l));
      return d_.build(dtype(v), width, lanes);
    });
  }

  // ---- scalar ops ----
  static const char* spelling(const Spelling& s, DType t) {
    if (is_bool(t)) return s.logical;
    if (is_float(t)) return s.real;
    return is_signed_int(t) ? s.signed_int : s.unsigned_int;
  }

  std::string fill(const char* form, DType t, int width, std::span<const std::string> x) const {
    std::string s;
    for (const char* p = form; *p != 0; ++p) {
      if (*p != '$') {
        s += *p;
      } else if (*++p == 'T') {
        s += d_.type(t, width);
      } else if (*p == 'U') {
        s += d_.unsigned_type(t, width);
      } else if (*p == 'W') {
        s += std::to_string(bits(t));
      } else if (*p == 'u') {
        s += fmt::format("as_{}({})", d_.unsigned_type(t, width), x[*++p - '0']);
      } else {
        s += x[*p - '0'];
      }
    }
    return s;
  }

  // The op on texts of `width` lanes.
  std::string apply(const char* form, ScalarOp op, DType t, int width,
                    std::span<const std::string> x) const {
    const std::string value = "(" + fill(form, t, width, x) + ")";
    return info(op).result == ScalarResult::Bool ? d_.from_comparison(t, width, value) : d_.narrow(t, width, value);
  }

  static bool adds(ScalarOp op) { return op == ScalarOp::Add || op == ScalarOp::Sub || op == ScalarOp::Fma; }
  // Whether the operand of float arithmetic must not be seen for what it is, by a language that would add in another order
  // or take numbers to be finite: a sum in a sum, what is subtracted (one x of x - x), 0 or a product in a product.
  bool hides(ScalarOp op, ValueId v, bool first) const {
    if (!is_float(dtype(v))) return false;
    return op == ScalarOp::Sub ? !first : (adds(op) && sums_[v]) || (op == ScalarOp::Mul && (zeros_[v] || products_[v]));
  }

  Result<void> scalar(const ssa::Inst& i, ScalarOp op) {
    const ValueId r = i.results[0];
    const DType from = dtype(i.operands.back());
    const auto all_refs = [&](int c) {
      std::vector<std::string> x;
      const int width = chunks(f_.type(r))[static_cast<std::size_t>(c)].width;
      for (ValueId v : i.operands) x.push_back(hides(op, v, x.empty()) ? d_.opaque(from, width, ref(v, c)) : ref(v, c));
      return x;
    };
    sums_[r] = adds(op) || op == ScalarOp::Neg;
    products_[r] = op == ScalarOp::Mul;
    if (info(op).result == ScalarResult::Cast) {
      define(r, [&](int c, int, int w) {
        return op == ScalarOp::Cast ? d_.cast(from, dtype(r), w, ref(i.operands[0], c))
                                    : d_.bitcast(from, dtype(r), w, ref(i.operands[0], c));
      });
      return {};
    }
    if (op == ScalarOp::Select) {
      define(r, [&](int c, int, int w) {
        return d_.select(dtype(r), w, ref(i.operands[0], c), ref(i.operands[1], c),
                         ref(i.operands[2], c));
      });
      return {};
    }
    const char* form = spelling(d_.spellings()[static_cast<int>(op)], from);
    if (form == nullptr) {
      return unsupported(
          "op", fmt::format("{} of {} in this kernel language", info(op).name, name(from)));
    }
    if (form[0] == '@') {
      define_lanes(r, [&](int l) {
        return fmt::format("weft_{}_{}({}, {})", form + 1, name(from), lane(i.operands[0], l),
                           lane(i.operands[1], l));
      });
    } else {
      define(r, [&](int c, int, int w) { return apply(form, op, from, w, all_refs(c)); });
    }
    return {};
  }

  // Pairwise over lanes, in the interpreter's order.
  Result<void> reduce(const ssa::Inst& i) {
    constexpr ScalarOp ops[] = {ScalarOp::Add, ScalarOp::Mul, ScalarOp::Max,
                                ScalarOp::Min, ScalarOp::And, ScalarOp::Or};
    ScalarOp op = ops[i.op - static_cast<int>(Op::ReduceSum)];
    const ValueId x = i.operands[0];
    const DType t = dtype(x);
    if (is_bool(t) && op == ScalarOp::Add) op = ScalarOp::Or;
    if (is_bool(t) && op == ScalarOp::Mul) op = ScalarOp::And;
    const char* form = spelling(d_.spellings()[static_cast<int>(op)], t);
    if (form == nullptr)
      return unsupported("op", fmt::format("a reduction of {} in this kernel language", name(t)));
    name_value(i.results[0]);
    std::vector<std::string> parts;
    for (int l = 0; l < f_.type(x).lanes(); ++l) parts.push_back(lane(x, l));
    for (int step = 0; parts.size() > 1; ++step) {
      const std::size_t half = (parts.size() + 1) / 2;
      for (std::size_t n = 0; n + half < parts.size(); ++n) {
        std::string both[] = {parts[n], parts[n + half]};
        for (std::string& part : both) {
          if (step > 0 && op == ScalarOp::Add && is_float(t)) part = d_.opaque(t, 1, part);
        }
        const std::string sum = fmt::format("{}_r{}_{}", names_[i.results[0]], step, n);
        line(d_.declare(d_.type(t, 1), sum, apply(form, op, t, 1, both), false));
        parts[n] = sum;
      }
      parts.resize(half);
    }
    declare(i.results[0], 0, 1, parts[0]);
    return {};
  }

  // ---- narrow elements in words ----
  void words(const ssa::Inst& i) {
    const DType from = dtype(i.operands[0]), raw = is_float(from) ? DType::U16 : from;
    const int width = bits(from), steps = 32 / width, mask = (1 << width) - 1;
    if (words_at_once(i.results[0], i.operands[0], steps)) return;
    define_lanes(i.results[0], [&](int l) {
      std::string s;
      for (int k = 0; k < steps; ++k) {
        const std::string element = d_.bitcast(from, raw, 1, lane(i.operands[0], steps * l + k));
        s += fmt::format("{}(({} & {}u) << {})", k == 0 ? "" : " | ", d_.cast(raw, DType::U32, 1, element), mask, width * k);
      }
      return d_.bitcast(DType::U32, DType::I32, 1, s);
    });
  }

  // By chunks of elements whose bits the language can take for those of words.
  bool words_at_once(ValueId result, ValueId elements, int steps) {
    struct Part {
      int first;  // word
      std::string text;
    };
    std::vector<Part> parts;
    const auto from = chunks(f_.type(elements));
    for (std::size_t c = 0; c < from.size(); ++c) {
      parts.push_back({from[c].first / steps, d_.words(dtype(elements), from[c].width, ref(elements, static_cast<int>(c)))});
      if (parts.back().text.empty()) return false;
    }
    define(result, [&](int, int first, int w) {
      std::vector<std::string> inside;
      for (const Part& p : parts) {
        if (p.first >= first && p.first < first + w) inside.push_back(p.text);
      }
      return inside.size() == 1 ? inside[0] : d_.build(DType::I32, w, inside);
    });
    return true;
  }

  Result<void> dot(const ssa::Inst& i, const char* form, DType sum) {
    if (form == nullptr) return unsupported("op", fmt::format("{} in this kernel language", f_.info(i).name));
    define(i.results[0], [&](int c, int, int w) {
      const std::string x[] = {ref(i.operands[0], c), ref(i.operands[1], c), ref(i.operands[2], c)};
      return fill(form, sum, w, x);
    });
    return {};
  }

  // ---- memory ----
  std::string buffer(const ssa::Inst& i) const { return fmt::format("b{}", i.imm); }
  static std::string beyond(const std::string& index, int by) { return by == 0 ? index : fmt::format("{} + {}", index, by); }
  std::string element_index(const ssa::Inst& i, int operand, int l) const {
    const ValueId index = i.operands[operand];
    return f_.type(index).rank == 1 ? lane(index, l) : beyond(ref(index, 0), l);
  }

  void read(const ssa::Inst& i) {
    const ValueId r = i.results[0];
    const DType t = dtype(r);
    const bool masked = i.operands.size() == 2, in_row = static_cast<Op>(i.op) == Op::Load;
    const auto element = [&](int l) {
      const std::string s = d_.load(t, 1, buffer(i), element_index(i, 0, l));
      return masked ? "(" + d_.select(t, 1, lane(i.operands[1], l), s, d_.literal(t, {})) + ")" : s;
    };
    define(r, [&](int c, int first, int w) {
      const std::string whole = in_row ? d_.load(t, w, buffer(i), beyond(ref(i.operands[0], 0), first)) : "";
      if (in_row && !masked) return whole;
      std::vector<std::string> lanes;
      for (int l = 0; l < w; ++l) lanes.push_back(element(first + l));
      const std::string apart = d_.build(t, w, lanes);
      return in_row && w > 1 ? fmt::format("{} ? {} : {}", d_.all(w, ref(i.operands[1], c)), whole, apart) : apart;
    });
  }

  void write(const ssa::Inst& i) {
    const ValueId v = i.operands[0];
    const DType t = dtype(v);
    const bool masked = i.operands.size() == 3, in_row = static_cast<Op>(i.op) == Op::Store;
    const auto list = chunks(f_.type(v));
    for (std::size_t c = 0; c < list.size(); ++c) {
      const auto [first, w] = list[c];
      const int chunk = static_cast<int>(c);
      const bool at_once = in_row && (!masked || w > 1);
      const std::string whole =
          at_once ? d_.store(t, w, buffer(i), beyond(ref(i.operands[1], 0), first), ref(v, chunk)) : "";
      if (at_once && !masked) {
        line(whole);
        continue;
      }
      if (at_once) line(fmt::format("if ({}) {{ {} }} else {{", d_.all(w, ref(i.operands[2], chunk)), whole));
      indent_ += at_once;
      for (int l = first; l < first + w; ++l) {
        const std::string store = d_.store(t, 1, buffer(i), element_index(i, 1, l), lane(v, l));
        line(masked ? fmt::format("if ({}) {{ {} }}", lane(i.operands[2], l), store) : store);
      }
      indent_ -= at_once;
      if (at_once) line("}");
    }
  }

  // One statement for each lane: they are made in order.
  Result<void> atomic(const ssa::Inst& i, Combine combine) {
    const ValueId r = i.results[0];
    const DType t = dtype(r);
    const bool masked = i.operands.size() > 2;
    std::vector<std::string> old;
    for (int l = 0; l < f_.type(r).lanes(); ++l) {
      const std::string call = d_.atomic(combine, t, buffer(i), element_index(i, 1, l), lane(i.operands[0], l));
      if (call.empty()) return unsupported("op", fmt::format("{} of {} in this kernel language", f_.info(i).name, name(t)));
      old.push_back(fmt::format("a{}", next_++));
      line(d_.declare(d_.type(t, 1), old.back(), masked ? d_.literal(t, {}) : call, masked));
      if (masked) line(fmt::format("if ({}) {{ {} = {}; }}", lane(i.operands[2], l), old.back(), call));
    }
    define_lanes(r, [&](int l) { return old[l]; });
    return {};
  }

  // ---- control ----
  void assign(std::span<const ValueId> to, std::span<const ValueId> from) {
    for (std::size_t n = 0; n < to.size(); ++n) {
      for (std::size_t c = 0; c < chunks(f_.type(to[n])).size(); ++c) {
        line(fmt::format("{} = {};", ref(to[n], static_cast<int>(c)),
                         ref(from[n], static_cast<int>(c))));
      }
    }
  }
  void declare_empty(ValueId v) {
    name_value(v);
    const auto list = chunks(f_.type(v));
    for (std::size_t c = 0; c < list.size(); ++c) {
      declare(v, static_cast<int>(c), list[c].width, "", true);
    }
  }

  Result<void> loop(const ssa::Inst& i) {
    const ssa::Block& body = i.regions[0];
    const std::span carried = std::span(body.args).subspan(1);
    const std::span inits = std::span(i.operands).subspan(3);
    for (std::size_t n = 0; n < carried.size(); ++n) {
      define(carried[n], [&](int c, int, int) { return ref(inits[n], c); }, true);
      names_[i.results[n]] = names_[carried[n]];
    }
    name_value(body.args[0]);
    const std::string iv = ref(body.args[0], 0);
    line(fmt::format("for ({0} {1} < {2}; {1} += {3}) {{", d_.declare(d_.type(DType::I64, 1), iv, ref(i.operands[0], 0), true), iv,
                     ref(i.operands[1], 0), ref(i.operands[2], 0)));
    ++indent_;
    WEFT_TRY(block(body));
    const bool moves = std::any_of(body.yields.begin(), body.yields.end(), [&](ValueId v) {
      return std::find(carried.begin(), carried.end(), v) != carried.end();
    });
    moves ? assign_at_once(carried, body.yields) : assign(carried, body.yields);
    --indent_;
    line("}");
    return {};
  }

  // Through copies: what is assigned may be what is assigned to.
  void assign_at_once(std::span<const ValueId> to, std::span<const ValueId> from) {
    std::vector<std::pair<std::string, std::string>> copies;
    for (std::size_t n = 0; n < to.size(); ++n) {
      const auto list = chunks(f_.type(to[n]));
      for (std::size_t c = 0; c < list.size() && to[n] != from[n]; ++c) {
        const std::string name = ref(to[n], static_cast<int>(c));
        copies.emplace_back(name, name + "_next");
        line(d_.declare(d_.type(dtype(to[n]), list[c].width), copies.back().second, ref(from[n], static_cast<int>(c)), false));
      }
    }
    for (const auto& [name, next] : copies) line(fmt::format("{} = {};", name, next));
  }

  Result<void> branch(const ssa::Inst& i) {
    for (ValueId v : i.results) declare_empty(v);
    line(fmt::format("if ({}) {{", ref(i.operands[0], 0)));
    for (int r = 0; r < 2; ++r) {
      if (r == 1) line("} else {");
      ++indent_;
      WEFT_TRY(block(i.regions[r]));
      assign(i.results, i.regions[r].yields);
      --indent_;
    }
    line("}");
    return {};
  }

  void check(const ssa::Inst& i) {
    const auto list = chunks(f_.type(i.operands[0]));
    for (std::size_t c = 0; c < list.size(); ++c) {
      line(fmt::format("if (!{}) {{ {} }}",
                       d_.all(list[c].width, ref(i.operands[0], static_cast<int>(c))),
                       d_.fail(i.imm)));
    }
  }

  void insert(const ssa::Inst& i) {
    const ValueId r = i.results[0];
    define(r, [&](int c, int, int) { return ref(i.operands[0], c); }, true);
    const auto list = chunks(f_.type(r));
    for (std::size_t c = 0; c < list.size(); ++c) {
      const int l = static_cast<int>(i.imm) - list[c].first;
      if (l < 0 || l >= list[c].width) continue;
      line(d_.set_lane(dtype(r), list[c].width, ref(r, static_cast<int>(c)), l,
                       ref(i.operands[1], 0)));
    }
  }

  // What an op is about that no kernel language here has; null: it has it.
  static const char* missing(Op op) {
    switch (op) {
      case Op::Exp2Unit:
      case Op::Saturate: return "exponentials by a unit";
      case Op::CopyAsync:
      case Op::CommitCopies:
      case Op::WaitCopies: return "copies beside a thread";
      case Op::LoadMatrix:
      case Op::LoadMatrixTurned:
      case Op::MultiplyMatrix:
      case Op::MultiplyGroup:
      case Op::FenceProducts:
      case Op::FenceShared:
      case Op::CommitProducts:
      case Op::WaitProducts: return "products by matrix units";
      default: return nullptr;
    }
  }

  Result<void> inst(const ssa::Inst& i) {
    const Op op = static_cast<Op>(i.op);
    if (const auto s = kernel::as_scalar(op)) return scalar(i, *s);
    if (const char* what = missing(op)) return unsupported("op", fmt::format("{} in this kernel language", what));
    const ValueId r = i.results.empty() ? -1 : i.results[0];
    switch (op) {
      case Op::Const:
        zeros_[r] = is_float(dtype(r)) && i.fimm == 0;
        if (d_.has_literals() && f_.type(r).rank == 0) return names_[r] = d_.literal(dtype(r), {i.fimm, i.imm}), Result<void>();
        define(r, [&](int, int, int) { return d_.literal(dtype(r), {i.fimm, i.imm}); });
        return {};
      case Op::Size:
        define(r, [&](int, int, int) { return fmt::format("n{}", i.imm); });
        return {};
      case Op::ProgramId:
        define(r, [&](int, int, int) { return d_.program_id(); });
        return {};
      case Op::ThreadId:
        define(r, [&](int, int, int) { return d_.thread_id(); });
        return {};
      case Op::Barrier:
        return line(d_.barrier()), Result<void>();
      case Op::Shuffle: {
        const std::string text = d_.shuffle(dtype(r), ref(i.operands[0], 0), ref(i.operands[1], 0));
        if (text.empty()) return unsupported("op", "shuffles in this kernel language");
        define(r, [&](int, int, int) { return text; });
        return {};
      }
      case Op::Splat:
        define(r, [&](int, int, int w) { return d_.splat(dtype(r), w, ref(i.operands[0], 0)); });
        return {};
      case Op::Iota:
        define_lanes(r, [&](int l) { return d_.literal(dtype(r), {0, l}); });
        return {};
      case Op::Extract:
        define(r, [&](int, int, int) { return lane(i.operands[0], static_cast<int>(i.imm)); });
        return {};
      case Op::Insert:
        return insert(i), Result<void>();
      case Op::Interleave: {
        const int first = static_cast<int>(i.imm) * f_.type(r).lanes() / 2;
        define_lanes(r, [&](int l) { return lane(i.operands[l % 2], first + l / 2); });
        return {};
      }
      case Op::Load:
      case Op::Gather:
        return read(i), Result<void>();
      case Op::Store:
      case Op::Scatter:
        return write(i), Result<void>();
      case Op::AtomicAdd:
      case Op::AtomicMax:
      case Op::AtomicMin:
        return atomic(i, *kernel::as_atomic(op));
      case Op::Ldexp:
        define(r, [&](int c, int, int w) {
          return d_.ldexp(dtype(r), w, ref(i.operands[0], c), ref(i.operands[1], c));
        });
        return {};
      case Op::Words:
        return words(i), Result<void>();
      case Op::Dot4:
        return dot(i, d_.dot4(), DType::I32);
      case Op::Dot2:
        return dot(i, d_.dot2(), DType::F32);
      case Op::Check:
        return check(i), Result<void>();
      case Op::For:
        return loop(i);
      case Op::If:
        return branch(i);
      default:
        return reduce(i);
    }
  }

  Result<void> block(const ssa::Block& b) {
    for (const ssa::Inst& i : b.insts) WEFT_TRY(inst(i));
    return {};
  }

  const kernel::Function& f_;
  const Dialect& d_;
  std::vector<std::string> names_;  // by value; a chunk appends its number
  std::vector<bool> zeros_;         // by value: the constant 0 of a float type
  std::vector<bool> sums_;          // by value: made by an addition or a negation
  std::vector<bool> products_;      // by value: made by a multiplication
  int next_ = 0, indent_ = 1;
  std::string out_;
};

}  // namespace

Result<std::string> emit(const kernel::Function& function, const Dialect& dialect) {
  return Emitter(function, dialect).run();
}

}  // namespace weft::codegen::text
