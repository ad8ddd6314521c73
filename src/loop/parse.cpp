// The parser of what print.cpp writes: recursive descent over the text, depth-limited.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>

#include "loop/group.h"
#include "loop/text.h"

namespace weft::loop {
namespace {

constexpr std::int64_t kMaxId = 1 << 16;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Group> run() {
    WEFT_TRY(expect("group"));
    g_.name = WEFT_TRY(quoted());
    while (true) {
      if (word("check")) {
        const std::int64_t n = WEFT_TRY(integer());
        if (n != static_cast<std::int64_t>(g_.checks.size()) + 1)
          return fail("checks are numbered from 1 in order");
        g_.checks.push_back(WEFT_TRY(quoted()));
      } else if (word("origin")) {
        g_.origins.push_back(WEFT_TRY(quoted()));
      } else if (word("param")) {
        WEFT_TRY(param());
      } else {
        break;
      }
    }
    WEFT_TRY(block(g_.body, 0));
    if (!at_end()) return fail("expected a statement");
    WEFT_TRY(verify(g_));
    return std::move(g_);
  }

 private:
  // --- text
  void skip() {
    while (pos_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[pos_]))) ++pos_;
  }
  bool at_end() { return skip(), pos_ >= text_.size(); }
  char peek() { return at_end() ? '\0' : text_[pos_]; }
  bool take(char c) {
    if (peek() != c) return false;
    ++pos_;
    return true;
  }
  static bool letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
  std::string_view peek_word() {
    skip();
    std::size_t end = pos_;
    while (end < text_.size() && letter(text_[end])) ++end;
    return text_.substr(pos_, end - pos_);
  }
  bool word(std::string_view w) {
    if (peek_word() != w) return false;
    pos_ += w.size();
    return true;
  }
  std::string_view take_word() {
    const auto w = peek_word();
    pos_ += w.size();
    return w;
  }
  Error fail(std::string message) {
    const auto line =
        1 + std::count(text_.begin(), text_.begin() + std::min(pos_, text_.size()), '\n');
    return user_error("parse", std::move(message)).at(fmt::format("line {}", line));
  }
  Result<void> expect(std::string_view what) {
    skip();
    if (text_.substr(pos_, what.size()) != what) return fail(fmt::format("expected '{}'", what));
    pos_ += what.size();
    return {};
  }
  Result<std::int64_t> integer() {
    skip();
    std::int64_t v = 0;
    const auto [end, code] = std::from_chars(text_.data() + pos_, text_.data() + text_.size(), v);
    if (code != std::errc()) return fail("expected an integer");
    pos_ = static_cast<std::size_t>(end - text_.data());
    return v;
  }
  Result<std::string> quoted() {
    WEFT_TRY(expect("\""));
    std::string s;
    while (pos_ < text_.size() && text_[pos_] != '"') {
      char c = text_[pos_++];
      if (c == '\\' && pos_ < text_.size()) {
        c = text_[pos_++];
        if (c == 'n') c = '\n';
      }
      s += c;
    }
    WEFT_TRY(expect("\""));
    return s;
  }
  // Text up to one of the stop characters outside parentheses.
  Result<Dim> dim(std::string_view stops) {
    skip();
    const std::size_t begin = pos_;
    int depth = 0;
    while (pos_ < text_.size() &&
           (depth > 0 || stops.find(text_[pos_]) == std::string_view::npos)) {
      depth += text_[pos_] == '(' ? 1 : text_[pos_] == ')' ? -1 : 0;
      ++pos_;
    }
    std::string_view s = text_.substr(begin, pos_ - begin);
    while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
    return Dim::parse(s);
  }
  // "i3" for prefix 'i'.
  Result<std::int32_t> id(char prefix) {
    WEFT_TRY(expect(std::string_view(&prefix, 1)));
    const std::int64_t n = WEFT_TRY(integer());
    if (n < 0 || n > kMaxId) return fail("a number is out of range");
    return static_cast<std::int32_t>(n);
  }
  Result<DType> dtype() {
    const auto w = take_word();
    const auto t = parse_dtype(w);
    if (!t) return fail(fmt::format("unknown dtype '{}'", w));
    return *t;
  }

  // --- declarations
  Result<void> param() {
    const auto n = WEFT_TRY(id('p'));
    if (n != static_cast<int>(g_.params.size())) return fail("parameters are numbered in order");
    WEFT_TRY(expect(":"));
    Param p;
    const auto role = take_word();
    bool known = false;
    for (int i = 0; i < 4; ++i) {
      if (role == kRoleNames[i]) p.role = static_cast<Role>(i), known = true;
    }
    if (!known) return fail(fmt::format("unknown role '{}'", role));
    p.dtype = WEFT_TRY(dtype());
    WEFT_TRY(expect("["));
    while (!take(']')) {
      if (!p.shape.empty()) WEFT_TRY(expect(","));
      p.shape.push_back(WEFT_TRY(dim(",]")));
    }
    if (word("const")) p.constant = true;
    if (word("order")) {
      WEFT_TRY(expect("("));
      while (!take(')')) {
        if (!p.map.order.empty()) WEFT_TRY(expect(","));
        p.map.order.push_back(static_cast<int>(WEFT_TRY(integer())));
      }
    }
    if (word("panel")) {
      WEFT_TRY(expect("("));
      p.map.panel_axis = static_cast<int>(WEFT_TRY(integer()));
      WEFT_TRY(expect(","));
      p.map.panel = static_cast<int>(WEFT_TRY(integer()));
      WEFT_TRY(expect(")"));
    }
    if (word("inner")) {
      WEFT_TRY(expect("("));
      p.map.inner = static_cast<int>(WEFT_TRY(integer()));
      WEFT_TRY(expect(")"));
    }
    g_.params.push_back(std::move(p));
    return {};
  }

  // --- statements
  Result<void> block(std::vector<Stmt>& body, int depth, ExprId* when = nullptr) {
    if (depth > kParseDepth) return fail("loops are nested too deeply");
    while (!at_end() && peek() != '}') {
      if (peek() == '%') {
        const auto n = WEFT_TRY(id('%'));
        WEFT_TRY(expect("="));
        lets_[n] = WEFT_TRY(sum(0));
      } else if (when != nullptr && body.empty() && word("when")) {
        *when = WEFT_TRY(sum(0));
      } else {
        body.push_back(WEFT_TRY(statement(depth)));
      }
    }
    return {};
  }

  Result<Stmt> statement(int depth) {
    const auto keyword = take_word();
    for (int kind = 0; kind < 3; ++kind) {
      if (keyword == kLoopNames[kind]) return loop(static_cast<LoopKind>(kind), depth);
    }
    if (keyword == "store") return store();
    const bool local = keyword == "local", update = keyword == "update";
    if (!local && !update && keyword != "set")
      return fail(fmt::format("unknown statement '{}'", keyword));
    const auto t = WEFT_TRY(id('t'));
    Combine how = Combine::None;
    if (local) {
      WEFT_TRY(expect(":"));
      if (t >= static_cast<int>(g_.locals.size())) g_.locals.resize(t + 1, DType::F32);
      g_.locals[t] = WEFT_TRY(dtype());
    } else if (t >= static_cast<int>(g_.locals.size())) {
      return fail("a local is used before its declaration");
    }
    if (update) how = WEFT_TRY(combine());
    WEFT_TRY(expect("="));
    const ExprId value = WEFT_TRY(sum(0));
    return local ? local_stmt(t, value) : update ? update_stmt(t, how, value) : set_stmt(t, value);
  }

  Result<Combine> combine() {
    const auto w = take_word();
    const auto c = parse_combine(w);
    if (!c) return fail(fmt::format("unknown combine '{}'", w));
    return *c;
  }

  Result<Stmt> loop(LoopKind kind, int depth) {
    const auto n = WEFT_TRY(id('i'));
    if (n >= static_cast<int>(g_.loops.size())) g_.loops.resize(n + 1);
    WEFT_TRY(expect(":"));
    g_.loops[n] = {kind, WEFT_TRY(dim("{"))};
    WEFT_TRY(expect("{"));
    std::vector<Stmt> body;
    ExprId when = -1;
    WEFT_TRY(block(body, depth + 1, &when));
    WEFT_TRY(expect("}"));
    return loop_stmt(n, std::move(body), when);
  }

  Result<Stmt> store() {
    const auto p = WEFT_TRY(id('p'));
    WEFT_TRY(expect("["));
    auto index = WEFT_TRY(arguments(']', 0));
    Combine how = Combine::None;
    if (peek() != '=') how = WEFT_TRY(combine());
    WEFT_TRY(expect("="));
    return store_stmt(p, std::move(index), WEFT_TRY(sum(0)), how);
  }

  // --- expressions
  Result<std::vector<ExprId>> arguments(char close, int depth) {
    std::vector<ExprId> args;
    while (!take(close)) {
      if (!args.empty()) WEFT_TRY(expect(","));
      args.push_back(WEFT_TRY(sum(depth)));
    }
    return args;
  }

  Result<ExprId> binary(ScalarOp op, ExprId a, ExprId b) {
    const DType t = g_.expr(a).dtype;
    if (t != g_.expr(b).dtype) return fail("the operands differ in dtype");
    return g_.scalar(op, t, {a, b});
  }

  Result<ExprId> sum(int depth) {
    ExprId a = WEFT_TRY(product(depth));
    while (peek() == '+' || peek() == '-') {
      const bool plus = text_[pos_++] == '+';
      a = WEFT_TRY(binary(plus ? ScalarOp::Add : ScalarOp::Sub, a, WEFT_TRY(product(depth))));
    }
    return a;
  }

  Result<ExprId> product(int depth) {
    ExprId a = WEFT_TRY(primary(depth));
    while (peek() == '*' || peek() == '/') {
      const bool times = text_[pos_++] == '*';
      a = WEFT_TRY(binary(times ? ScalarOp::Mul : ScalarOp::Div, a, WEFT_TRY(primary(depth))));
    }
    return a;
  }

  Result<ExprId> primary(int depth) {
    if (depth > kParseDepth) return fail("an expression is nested too deeply");
    const char c = peek();
    if (take('(')) {
      const ExprId e = WEFT_TRY(sum(depth + 1));
      WEFT_TRY(expect(")"));
      return e;
    }
    if (c == '-' || std::isdigit(static_cast<unsigned char>(c)))
      return g_.constant_i64(WEFT_TRY(integer()));
    if (c == '%') {
      const auto it = lets_.find(WEFT_TRY(id('%')));
      if (it == lets_.end()) return fail("an expression is used before its definition");
      return it->second;
    }
    const auto w = peek_word();
    const bool call = pos_ + w.size() < text_.size() &&
                      (text_[pos_ + w.size()] == '(' || text_[pos_ + w.size()] == '.');
    if (call) return function(depth + 1);
    if (c == 'p') return load(-1, depth + 1);
    if (c == 'i') {
      const auto n = WEFT_TRY(id('i'));
      if (n >= static_cast<int>(g_.loops.size())) return fail("index of an unknown loop");
      return g_.index(n);
    }
    if (c == 't') {
      const auto n = WEFT_TRY(id('t'));
      if (n >= static_cast<int>(g_.locals.size())) return fail("an unknown local");
      return g_.local(n);
    }
    return fail("expected an expression");
  }

  Result<ExprId> load(ExprId cond, int depth) {
    const auto p = WEFT_TRY(id('p'));
    if (p >= static_cast<int>(g_.params.size())) return fail("an unknown parameter");
    WEFT_TRY(expect("["));
    auto index = WEFT_TRY(arguments(']', depth));
    return cond < 0 ? g_.load(p, std::move(index)) : g_.load_if(cond, p, std::move(index));
  }

  Result<ExprId> constant(DType t) {
    skip();
    const std::size_t end = std::min(text_.find(')', pos_), text_.size());
    Expr e;
    e.op = Op::Const;
    e.dtype = t;
    const char *first = text_.data() + pos_, *last = text_.data() + end;
    const auto parsed = is_float(t) ? std::from_chars(first, last, e.constant.f)
                                    : std::from_chars(first, last, e.constant.i);
    if (parsed.ec != std::errc() || parsed.ptr != last) return fail("expected a constant");
    pos_ = end;
    WEFT_TRY(expect(")"));
    return g_.add(std::move(e));
  }

  Result<ExprId> function(int depth) {
    const auto w = take_word();
    if (const auto t = parse_dtype(w)) {
      WEFT_TRY(expect("("));
      return constant(*t);
    }
    if (w == "size") {
      WEFT_TRY(expect("("));
      const Dim d = WEFT_TRY(dim(")"));
      WEFT_TRY(expect(")"));
      return g_.size(d);
    }
    const auto op = parse_op(w);
    if (!op) return fail(fmt::format("unknown op '{}'", w));
    std::optional<DType> stated;
    if (take('.')) stated = WEFT_TRY(dtype());
    WEFT_TRY(expect("("));
    if (*op == Op::LoadIf) {
      const ExprId cond = WEFT_TRY(sum(depth));
      WEFT_TRY(expect(","));
      const ExprId e = WEFT_TRY(load(cond, depth));
      WEFT_TRY(expect(")"));
      return e;
    }
    return call(*op, stated, WEFT_TRY(arguments(')', depth)));
  }

  Result<ExprId> call(Op op, std::optional<DType> stated, std::vector<ExprId> args) {
    if (op == Op::Wrap || op == Op::Require) {
      const bool numbered = args.size() == 3 && g_.expr(args[2]).op == Op::Const;
      if (!numbered) return fail(fmt::format("{} takes two operands and a check number", name(op)));
      Expr e;
      e.op = op;
      e.dtype = g_.expr(args[0]).dtype;
      e.id = static_cast<std::int32_t>(g_.expr(args[2]).constant.i);
      e.args = {args[0], args[1]};
      return g_.add(std::move(e));
    }
    const auto scalar = as_scalar(op);
    if (!scalar) return fail(fmt::format("'{}' is not a function", name(op)));
    const ScalarOpInfo& i = info(*scalar);
    if (static_cast<int>(args.size()) != i.operands)
      return fail(fmt::format("{} takes {} operands", i.name, i.operands));
    if ((i.result == ScalarResult::Cast) != stated.has_value())
      return fail(fmt::format("{}: only casts state a dtype", i.name));
    const auto type = [&](std::size_t n) { return g_.expr(args[n]).dtype; };
    for (std::size_t n = i.result == ScalarResult::Select ? 2 : 1; n < args.size(); ++n) {
      if (type(n) != type(n - 1))
        return fail(fmt::format("the operands of {} differ in dtype", i.name));
    }
    const DType result = stated                             ? *stated
                         : i.result == ScalarResult::Bool   ? DType::Bool
                         : i.result == ScalarResult::Select ? type(1)
                                                            : type(0);
    return g_.scalar(*scalar, result, std::move(args));
  }

  std::string_view text_;
  std::size_t pos_ = 0;
  Group g_;
  std::map<std::int32_t, ExprId> lets_;
};

}  // namespace

Result<Group> parse(std::string_view text) { return Parser(text).run(); }

}  // namespace weft::loop
