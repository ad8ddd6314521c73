// Text of a group:
//   group "k0"
//     param p0: input f32[n, 768]
//     param p1: input f32[768, 1000] const order(1, 0) panel(1, 32)
//     check 1 "index out of range"
//     origin "fc/MatMul"
//     parallel i0: n {
//       local t0: f32 = f32(0)
//       reduce i1: 768 {
//         update t0 sum= p0[i0, i1] * p1[i1, i2]
//       }
//       store p2[i0, i2] = t0
//     }
// Integer literals are i64; other constants name their dtype. `%0 = ...` names an expression that
// is used more than once (or is deep); it is evaluated where it is used. A size expression stands
// in size(...).
#include <fmt/format.h>

#include <algorithm>

#include "loop/group.h"
#include "loop/text.h"

namespace weft::loop {
namespace {

const char* role_name(Role r) { return kRoleNames[static_cast<int>(r)]; }

std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string list(const std::vector<int>& values) {
  return fmt::format("{}", fmt::join(values, ", "));
}

std::string str(const Param& p) {
  std::string s =
      fmt::format("{} {}{}", role_name(p.role), weft::name(p.dtype), weft::str(p.shape));
  if (p.constant) s += " const";
  if (!p.map.order.empty()) s += fmt::format(" order({})", list(p.map.order));
  if (p.map.panel > 0) s += fmt::format(" panel({}, {})", p.map.panel_axis, p.map.panel);
  if (p.map.inner >= 0) s += fmt::format(" inner({})", p.map.inner);
  return s;
}

class Printer {
 public:
  explicit Printer(const Group& g)
      : g_(g),
        uses_(g.exprs().size(), 0),
        height_(g.exprs().size(), 0),
        named_(g.exprs().size(), -1) {
    count(g.body);
    // The roots of statements count as one use each; a use by an expression that is itself printed
    // once counts once.
    for (std::size_t e = g.exprs().size(); e-- > 0;) {
      if (uses_[e] == 0) continue;
      for (ExprId a : g.expr(static_cast<ExprId>(e)).args) ++uses_[a];
    }
    for (std::size_t e = 0; e < g.exprs().size(); ++e) {
      for (ExprId a : g.expr(static_cast<ExprId>(e)).args) {
        height_[e] = std::max(height_[e], let(a) ? 1 : height_[a] + 1);
      }
    }
  }

  std::string body() {
    block(g_.body, 1);
    return std::move(out_);
  }

 private:
  bool leaf(ExprId e) const {
    const Op op = g_.expr(e).op;
    return op == Op::Const || op == Op::Size || op == Op::Index || op == Op::Local;
  }
  bool let(ExprId e) const { return !leaf(e) && (uses_[e] > 1 || height_[e] >= kInlineDepth); }

  void count(const std::vector<Stmt>& block) {
    for (const Stmt& s : block) {
      for (ExprId i : s.index) ++uses_[i];
      if (s.value >= 0) ++uses_[s.value];
      count(s.body);
    }
  }

  void line(int indent, const std::string& text) {
    out_.append(2 * static_cast<std::size_t>(indent), ' ');
    out_ += text;
    out_ += '\n';
  }

  // Names, before a statement, all expressions under root that need a name and have none.
  void define(ExprId root, int indent) {
    for (ExprId e : used_exprs(g_, root)) {
      if (!let(e) || named_[e] >= 0) continue;
      const std::string text = render(e);
      named_[e] = names_++;
      line(indent, fmt::format("%{} = {}", named_[e], text));
    }
  }

  std::string constant(const Expr& e) {
    if (e.dtype == DType::I64) return fmt::format("{}", e.constant.i);
    if (is_float(e.dtype)) return fmt::format("{}({})", weft::name(e.dtype), e.constant.f);
    return fmt::format("{}({})", weft::name(e.dtype), e.constant.i);
  }

  std::string args(const Expr& e, std::size_t first) {
    std::string s;
    for (std::size_t i = first; i < e.args.size(); ++i) {
      if (i > first) s += ", ";
      s += use(e.args[i]);
    }
    return s;
  }

  // An operand inside infix arithmetic: parenthesised where it binds less.
  std::string operand(ExprId id, int level) {
    if (named_[id] >= 0) return use(id);
    const int inner = infix_level(g_.expr(id).op);
    const std::string s = use(id);
    return inner > 0 && inner < level ? "(" + s + ")" : s;
  }

  std::string use(ExprId id) {
    return named_[id] >= 0 ? fmt::format("%{}", named_[id]) : render(id);
  }

  std::string infix(const Expr& e, int level) {
    const Expr& b = g_.expr(e.args[1]);
    const std::string left = operand(e.args[0], level);
    if (e.op == Op::Add && b.op == Op::Const && b.dtype == DType::I64 && b.constant.i < 0 &&
        b.constant.i != INT64_MIN) {
      return fmt::format("{} - {}", left, -b.constant.i);
    }
    return fmt::format("{} {} {}", left, infix_symbol(e.op), operand(e.args[1], level + 1));
  }

  std::string render(ExprId id) {
    const Expr& e = g_.expr(id);
    if (const int level = infix_level(e.op)) return infix(e, level);
    switch (e.op) {
      case Op::Const:
        return constant(e);
      case Op::Size:
        return fmt::format("size({})", e.dim.str());
      case Op::Index:
        return fmt::format("i{}", e.id);
      case Op::Local:
        return fmt::format("t{}", e.id);
      case Op::Load:
        return fmt::format("p{}[{}]", e.id, args(e, 0));
      case Op::LoadIf:
        return fmt::format("load_if({}, p{}[{}])", use(e.args[0]), e.id, args(e, 1));
      case Op::Wrap:
      case Op::Require:
        return fmt::format("{}({}, {})", name(e.op), args(e, 0), e.id);
      case Op::Cast:
      case Op::Bitcast:
        return fmt::format("{}.{}({})", name(e.op), weft::name(e.dtype), args(e, 0));
      default:
        return fmt::format("{}({})", name(e.op), args(e, 0));
    }
  }

  void block(const std::vector<Stmt>& body, int indent) {
    for (const Stmt& s : body) {
      for (ExprId i : s.index) define(i, indent);
      if (s.value >= 0 && s.kind != Stmt::Kind::Loop) define(s.value, indent);
      switch (s.kind) {
        case Stmt::Kind::Loop:
          line(indent,
               fmt::format("{} i{}: {} {{", kLoopNames[static_cast<int>(g_.loops[s.id].kind)], s.id,
                           g_.loops[s.id].extent.str()));
          if (s.value >= 0) {
            define(s.value, indent + 1);
            line(indent + 1, "when " + use(s.value));
          }
          block(s.body, indent + 1);
          line(indent, "}");
          break;
        case Stmt::Kind::Local:
          line(indent,
               fmt::format("local t{}: {} = {}", s.id, weft::name(g_.locals[s.id]), use(s.value)));
          break;
        case Stmt::Kind::Update:
          line(indent, fmt::format("update t{} {}= {}", s.id, weft::name(s.combine), use(s.value)));
          break;
        case Stmt::Kind::Set:
          line(indent, fmt::format("set t{} = {}", s.id, use(s.value)));
          break;
        case Stmt::Kind::Store:
          store(s, indent);
          break;
      }
    }
  }

  void store(const Stmt& s, int indent) {
    std::string at;
    for (ExprId i : s.index) at += (at.empty() ? "" : ", ") + use(i);
    const std::string how = s.combine == Combine::None ? "" : weft::name(s.combine);
    line(indent, fmt::format("store p{}[{}] {}= {}", s.id, at, how, use(s.value)));
  }

  const Group& g_;
  std::string out_;
  std::vector<int> uses_, height_, named_;
  int names_ = 0;
};

std::string print_code(const Group& g) {
  std::string s;
  for (std::size_t i = 0; i < g.params.size(); ++i)
    s += fmt::format("  param p{}: {}\n", i, str(g.params[i]));
  return s + Printer(g).body();
}

std::string print_head(const Group& g, bool origins) {
  std::string s = fmt::format("group {}\n", quoted(g.name));
  for (std::size_t i = 0; i < g.checks.size(); ++i)
    s += fmt::format("  check {} {}\n", i + 1, quoted(g.checks[i]));
  for (std::size_t i = 0; origins && i < g.origins.size(); ++i) s += fmt::format("  origin {}\n", quoted(g.origins[i]));
  return s;
}

}  // namespace

std::string print(const Group& g) { return print_head(g, true) + print_code(g); }

std::string print_alike(const Group& g) { return print_head(g, false) + print_code(g); }

std::uint64_t Group::hash() const {
  std::uint64_t h = 0xcbf29ce484222325ull;  // FNV-1a: stable between runs, as cache keys must be
  for (unsigned char c : print_code(*this)) h = (h ^ c) * 0x100000001b3ull;
  return h;
}

}  // namespace weft::loop
