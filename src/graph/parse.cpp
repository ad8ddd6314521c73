#include <fmt/format.h>

#include "base/text.h"
#include "graph/graph.h"
#include "graph/infer/infer.h"
#include "graph/text.h"

namespace weft::graph {
namespace {

using Regions = std::vector<std::shared_ptr<const Graph>>;

// A value's name in the text and the user's name behind it.
struct Name {
  Token token;
  std::string user;
};

template <class T, class F>
Result<std::vector<T>> parse_list(Lexer& lexer, const char* close, F&& item) {
  std::vector<T> items;
  while (!lexer.accept(close)) {
    if (!items.empty()) WEFT_TRY(lexer.expect(","));
    items.push_back(WEFT_TRY(item()));
  }
  return items;
}

Result<Tensor> parse_tensor(Lexer& lexer, const Sidecar& sidecar) {
  const Token at = lexer.peek();
  const Type type = WEFT_TRY(parse_type(lexer));
  const auto sizes = static_sizes(type.shape);
  if (!sizes) return lexer.error_at(at, "a constant of unknown size");
  for (std::int64_t d : *sizes) {
    if (d < 0) return lexer.error_at(at, "a constant of negative size");
  }
  if (lexer.accept("(")) return parse_elements(lexer, type.dtype, *sizes);
  WEFT_TRY(lexer.expect("hash"));
  const auto it = sidecar.find(WEFT_TRY(lexer.unsigned_integer("a content hash")));
  if (it == sidecar.end()) return lexer.error_at(at, "no constant of this hash is at hand");
  if (it->second.dtype() != type.dtype || it->second.shape() != *sizes) {
    return lexer.error_at(at, "the constant of this hash has another type");
  }
  return it->second;
}

Result<AttrValue> parse_value(Lexer& lexer, AttrType type, const Sidecar& sidecar) {
  switch (type) {
    case AttrType::Int:
      return AttrValue(WEFT_TRY(lexer.integer()));
    case AttrType::Str:
      return AttrValue(WEFT_TRY(lexer.string()));
    case AttrType::Data:
      return AttrValue(WEFT_TRY(parse_tensor(lexer, sidecar)));
    case AttrType::Bool: {
      const Token at = lexer.next();
      if (!at.is("true") && !at.is("false")) return lexer.error_at(at, "expected true or false");
      return AttrValue(at.is("true"));
    }
    case AttrType::DType: {
      const Token at = lexer.next();
      const auto dtype = parse_dtype(at.text);
      if (!dtype) return lexer.error_at(at, "'" + at.text + "' is no dtype");
      return AttrValue(*dtype);
    }
    case AttrType::Ints:
      WEFT_TRY(lexer.expect("["));
      return AttrValue(
          WEFT_TRY(parse_list<std::int64_t>(lexer, "]", [&] { return lexer.integer(); })));
    case AttrType::Dims:
      WEFT_TRY(lexer.expect("["));
      return AttrValue(WEFT_TRY(parse_list<Dim>(lexer, "]", [&] { return parse_dim(lexer); })));
  }
  return internal_error("an attribute of no type");
}

class Parser {
 public:
  Parser(Lexer& lexer, const Sidecar& sidecar) : lexer_(lexer), sidecar_(sidecar) {}

  Result<Graph> run(const DimFacts& outside, int depth) {
    if (depth > kMaxRegionDepth) return lexer_.error("regions are nested too deeply");
    depth_ = depth;
    graph_.facts = outside;
    WEFT_TRY(lexer_.expect("graph"));
    graph_.name = WEFT_TRY(lexer_.global_name());
    const auto inputs = WEFT_TRY(parse_inputs());
    std::vector<Type> declared;
    if (lexer_.accept("->")) {
      WEFT_TRY(lexer_.expect("("));
      declared = WEFT_TRY(parse_list<Type>(lexer_, ")", [&] { return parse_type(lexer_); }));
    }
    if (lexer_.accept("where")) WEFT_TRY(parse_facts());
    for (const auto& [name, type] : inputs) WEFT_TRY(define(name, graph_.add_input(type)));
    WEFT_TRY(lexer_.expect("{"));
    while (!lexer_.peek().is("return")) WEFT_TRY(parse_node());
    WEFT_TRY(parse_return(declared));
    WEFT_TRY(lexer_.expect("}"));
    return std::move(graph_);
  }

 private:
  Result<Name> parse_name() {
    Name name{lexer_.peek(), ""};
    WEFT_TRY(lexer_.value_name());
    if (lexer_.peek().kind == Token::Kind::String) name.user = lexer_.next().text;
    return name;
  }

  Result<void> define(const Name& name, ValueId value) {
    if (!values_.emplace(name.token.text, value).second) {
      return lexer_.error_at(name.token, "%" + name.token.text + " is defined twice");
    }
    graph_.set_name(value, name.user);
    return {};
  }

  Result<ValueId> parse_use() {
    const Token at = lexer_.peek();
    const auto it = values_.find(WEFT_TRY(lexer_.value_name()));
    if (it == values_.end()) return lexer_.error_at(at, "%" + at.text + " is not defined");
    return it->second;
  }

  Result<std::vector<ValueId>> parse_uses() {
    std::vector<ValueId> uses;
    while (lexer_.peek().kind == Token::Kind::Value) {
      uses.push_back(WEFT_TRY(parse_use()));
      if (!lexer_.accept(",")) break;
    }
    return uses;
  }

  Result<std::vector<std::pair<Name, Type>>> parse_inputs() {
    WEFT_TRY(lexer_.expect("("));
    return parse_list<std::pair<Name, Type>>(lexer_, ")", [&]() -> Result<std::pair<Name, Type>> {
      Name name = WEFT_TRY(parse_name());
      WEFT_TRY(lexer_.expect(":"));
      return std::pair<Name, Type>(std::move(name), WEFT_TRY(parse_type(lexer_)));
    });
  }

  Result<void> parse_facts() {
    do {
      const Token at = lexer_.peek();
      const auto symbol = WEFT_TRY(parse_dim(lexer_)).as_symbol();
      if (!symbol) return lexer_.error_at(at, "expected a symbol");
      SymbolRange range;
      WEFT_TRY(lexer_.expect("in"));
      range.lo = WEFT_TRY(lexer_.integer());
      WEFT_TRY(lexer_.expect(".."));
      if (lexer_.peek().kind == Token::Kind::Integer) range.hi = WEFT_TRY(lexer_.integer());
      if (lexer_.accept("multiple")) range.multiple_of = WEFT_TRY(lexer_.integer());
      if (range.lo < 0 || range.hi < range.lo || range.multiple_of < 1)
        return lexer_.error_at(at, "an empty range");
      graph_.facts.declare(*symbol, range);
    } while (lexer_.accept(","));
    return {};
  }

  Result<Attrs> parse_attrs() {
    Attrs attrs;
    if (!lexer_.accept("{")) return attrs;
    do {
      const Token at = lexer_.peek();
      const auto key = parse_attr(WEFT_TRY(lexer_.identifier("an attribute")));
      if (!key) return lexer_.error_at(at, "'" + at.text + "' is no attribute");
      if (attrs.has(*key)) return lexer_.error_at(at, "attribute '" + at.text + "' stands twice");
      WEFT_TRY(lexer_.expect("="));
      attrs.set(*key, WEFT_TRY(parse_value(lexer_, info(*key).type, sidecar_)));
    } while (lexer_.accept(","));
    WEFT_TRY(lexer_.expect("}"));
    return attrs;
  }

  Result<Regions> parse_regions() {
    Regions regions;
    if (!lexer_.accept("regions")) return regions;
    WEFT_TRY(lexer_.expect("{"));
    while (!lexer_.accept("}")) {
      Parser inner(lexer_, sidecar_);
      regions.push_back(
          std::make_shared<const Graph>(WEFT_TRY(inner.run(graph_.facts, depth_ + 1))));
    }
    return regions;
  }

  Result<std::shared_ptr<const Origin>> parse_origin() {
    if (!lexer_.accept("#")) return std::shared_ptr<const Origin>();
    auto origin = std::make_shared<Origin>();
    WEFT_TRY(lexer_.expect("node"));
    origin->node = WEFT_TRY(lexer_.string());
    if (lexer_.accept("op")) origin->op = WEFT_TRY(lexer_.string());
    return std::shared_ptr<const Origin>(std::move(origin));
  }

  Result<Op> parse_op_name() {
    const Token at = lexer_.peek();
    if (auto op = parse_op(WEFT_TRY(lexer_.identifier("an op")))) return *op;
    std::vector<std::string> names;
    for (int i = 0; i < op_count(); ++i) names.push_back(info(static_cast<Op>(i)).name);
    return lexer_.error_at(at, "'" + at.text + "' is no op").suggest(did_you_mean(at.text, names));
  }

  Result<void> parse_node() {
    const Token at = lexer_.peek();
    std::vector<Name> results;
    if (at.kind == Token::Kind::Value) {
      do results.push_back(WEFT_TRY(parse_name()));
      while (lexer_.accept(","));
      WEFT_TRY(lexer_.expect("="));
    }
    const Op op = WEFT_TRY(parse_op_name());
    std::vector<ValueId> operands = WEFT_TRY(parse_uses());
    Attrs attrs = WEFT_TRY(parse_attrs());
    std::vector<Type> types;
    if (lexer_.accept(":")) {
      do types.push_back(WEFT_TRY(parse_type(lexer_)));
      while (lexer_.accept(","));
    }
    Regions regions = WEFT_TRY(parse_regions());
    auto origin = WEFT_TRY(parse_origin());
    auto id = graph_.add_node(op, std::move(operands), std::move(attrs), std::move(regions),
                              std::move(origin));
    if (!id.ok()) {
      Error e = id.error();
      return e.where().empty() ? e.at(fmt::format("line {}", at.line)) : e;
    }
    return define_results(at, *id, results, types);
  }

  // Types in the text are claims about what is inferred; their spelling of equal sizes is kept.
  Result<void> define_results(const Token& at, NodeId id, const std::vector<Name>& names,
                              const std::vector<Type>& types) {
    const std::vector<ValueId> results = graph_.node(id).results;
    if (names.size() != results.size()) {
      return lexer_.error_at(
          at, fmt::format("the op gives {} results, not {}", results.size(), names.size()));
    }
    if (!types.empty()) WEFT_TRY(check_types(at, results, types));
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!types.empty()) graph_.set_shape(results[i], types[i].shape);
      WEFT_TRY(define(names[i], results[i]));
    }
    return {};
  }

  Result<void> check_types(const Token& at, const std::vector<ValueId>& values,
                           const std::vector<Type>& types) {
    if (values.size() != types.size()) {
      return lexer_.error_at(at,
                             fmt::format("{} types for {} values", types.size(), values.size()));
    }
    for (std::size_t i = 0; i < types.size(); ++i) {
      const Type& inferred = graph_.type(values[i]);
      if (same_type(graph_.facts, inferred, types[i])) continue;
      return lexer_.error_at(at, "a value has another type than stated")
          .expected(str(types[i]))
          .found(str(inferred));
    }
    return {};
  }

  Result<void> parse_return(const std::vector<Type>& declared) {
    const Token at = lexer_.peek();
    WEFT_TRY(lexer_.expect("return"));
    std::vector<ValueId> outputs = WEFT_TRY(parse_uses());
    if (!declared.empty()) WEFT_TRY(check_types(at, outputs, declared));
    graph_.set_outputs(std::move(outputs));
    return {};
  }

  Lexer& lexer_;
  const Sidecar& sidecar_;
  Graph graph_;
  std::map<std::string, ValueId> values_;
  int depth_ = 0;
};

}  // namespace

Result<Graph> parse(std::string_view text, const Sidecar& sidecar) {
  Lexer lexer(text, "graph");
  Graph graph = WEFT_TRY(Parser(lexer, sidecar).run({}, 0));
  WEFT_TRY(lexer.expect_end());
  return graph;
}

}  // namespace weft::graph
