#include "base/text.h"
#include "graph/graph.h"
#include "graph/text.h"

namespace weft::graph {

std::string str(const Type& type) { return name(type.dtype) + str(type.shape); }

Result<Type> parse_type(Lexer& lexer) {
  const Token at = lexer.peek();
  const auto dtype = parse_dtype(WEFT_TRY(lexer.identifier("a type such as f32[n, 4]")));
  if (!dtype) return lexer.error_at(at, "'" + at.text + "' is no dtype");
  Type type{*dtype, {}};
  WEFT_TRY(lexer.expect("["));
  while (!lexer.accept("]")) {
    if (!type.shape.empty()) WEFT_TRY(lexer.expect(","));
    type.shape.push_back(WEFT_TRY(parse_dim(lexer)));
  }
  return type;
}

Result<Type> parse_type(std::string_view text) {
  Lexer lexer(text, "type");
  Type type = WEFT_TRY(parse_type(lexer));
  WEFT_TRY(lexer.expect_end());
  return type;
}

Result<std::vector<Type>> parse_types(std::string_view text) {
  Lexer lexer(text, "types");
  std::vector<Type> types;
  while (!lexer.at_end()) {
    if (!types.empty()) WEFT_TRY(lexer.expect(";"));
    types.push_back(WEFT_TRY(parse_type(lexer)));
  }
  return types;
}

}  // namespace weft::graph
