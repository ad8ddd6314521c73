#include <fmt/format.h>

#include <map>

#include "base/text.h"
#include "ssa/function.h"

namespace weft::ssa {
namespace {

constexpr std::int64_t kMaxExtent = std::int64_t{1} << 20, kMaxThreads = 1 << 12;
using Kind = Token::Kind;

class Parser {
 public:
  Parser(std::string_view text, const OpTable& table) : lexer_(text) { f_.table = &table; }

  Result<Function> run() {
    WEFT_TRY(lexer_.expect(f_.table->ir));
    f_.name = WEFT_TRY(lexer_.global_name());
    WEFT_TRY(lexer_.expect("{"));
    while (lexer_.accept("buffer")) f_.buffers.push_back(WEFT_TRY(buffer()));
    if (lexer_.accept("sizes"))
      f_.sizes = static_cast<int>(WEFT_TRY(within(1, kMaxExtent, "a number of sizes")));
    if (lexer_.accept("threads")) {
      f_.threads = static_cast<int>(WEFT_TRY(within(2, kMaxThreads, "a number of threads")));
      WEFT_TRY(lexer_.expect("warp"));
      f_.warp = static_cast<int>(WEFT_TRY(within(1, kMaxThreads, "a number of threads")));
    }
    WEFT_TRY(insts(f_.body, 0));
    WEFT_TRY(lexer_.expect("}"));
    WEFT_TRY(lexer_.expect_end());
    return std::move(f_);
  }

 private:
  Result<std::int64_t> within(std::int64_t lo, std::int64_t hi, const char* what) {
    const Token at = lexer_.peek();
    const std::int64_t v = WEFT_TRY(lexer_.integer(what));
    if (v < lo || v > hi)
      return lexer_.error_at(at, fmt::format("{} from {} to {} is needed", what, lo, hi));
    return v;
  }

  Result<DType> dtype() {
    const Token at = lexer_.peek();
    const std::string word = WEFT_TRY(lexer_.identifier("a dtype"));
    if (const auto t = parse_dtype(word)) return *t;
    return lexer_.error_at(at, fmt::format("there is no dtype '{}'", word));
  }

  Result<Buffer> buffer() {
    Buffer b;
    b.dtype = WEFT_TRY(dtype());
    if (lexer_.accept("on_chip")) {
      b.space = Space::OnChip;
    } else {
      WEFT_TRY(lexer_.expect("memory"));
    }
    b.read = lexer_.accept("read");
    b.written = lexer_.accept("written");
    if (b.space == Space::OnChip)
      b.elements = WEFT_TRY(within(0, INT64_MAX, "a number of elements"));
    return b;
  }

  Result<Type> type() {
    Type t;
    t.dtype = WEFT_TRY(dtype());
    if (!lexer_.accept("[")) return t;
    do {
      if (t.rank == 2) return lexer_.error("a type of at most two axes is needed");
      t.shape[t.rank++] = static_cast<std::int32_t>(WEFT_TRY(within(1, kMaxExtent, "an extent")));
    } while (lexer_.accept(","));
    WEFT_TRY(lexer_.expect("]"));
    return t;
  }

  Result<ValueId> define(const std::string& name, const Token& at, Type t) {
    const auto id = static_cast<ValueId>(f_.types.size());
    if (!names_.emplace(name, id).second)
      return lexer_.error_at(at, fmt::format("%{} is defined twice", name));
    f_.types.push_back(t);
    return id;
  }

  Result<std::vector<ValueId>> uses() {
    std::vector<ValueId> values;
    if (lexer_.peek().kind != Kind::Value) return values;
    do {
      const Token at = lexer_.peek();
      const auto it = names_.find(WEFT_TRY(lexer_.value_name()));
      if (it == names_.end())
        return lexer_.error_at(at, fmt::format("%{} is not defined", at.text));
      values.push_back(it->second);
    } while (lexer_.accept(","));
    return values;
  }

  Result<std::uint16_t> op() {
    const Token at = lexer_.peek();
    const std::string word = WEFT_TRY(lexer_.identifier("an op"));
    std::vector<std::string> names;
    for (std::size_t i = 0; i < f_.table->ops.size(); ++i) {
      if (word == f_.table->ops[i].name) return static_cast<std::uint16_t>(i);
      names.emplace_back(f_.table->ops[i].name);
    }
    return lexer_.error_at(at, fmt::format("there is no op '{}' in {} IR", word, f_.table->ir))
        .suggest(did_you_mean(word, names));
  }

  // A constant's dtype is written behind it; floats are never spelled like integers.
  Result<void> immediate(Inst& inst) {
    if (f_.info(inst).imm == Imm::None) return {};
    WEFT_TRY(lexer_.expect("("));
    if (f_.info(inst).imm == Imm::Copy) return copy(inst);
    if (f_.info(inst).imm == Imm::Blocks) return blocks(inst);
    const Token& first = lexer_.peek().is("-") ? lexer_.peek2() : lexer_.peek();
    if (first.kind == Kind::Integer) {
      inst.imm = WEFT_TRY(lexer_.integer());
    } else if (f_.info(inst).imm == Imm::Const) {
      inst.fimm = WEFT_TRY(lexer_.number("a constant"));
    } else {
      return lexer_.error("an integer is needed");
    }
    return lexer_.expect(")");
  }

  // Numbers below their limits, up to the bracket.
  template <std::size_t N>
  Result<std::array<int, N>> numbers(const std::array<int, N>& limits) {
    std::array<int, N> all{};
    for (std::size_t i = 0; i < N; ++i) {
      const Token at = lexer_.peek();
      const std::int64_t n = WEFT_TRY(lexer_.integer());
      if (n < 0 || n >= limits[i]) return lexer_.error_at(at, fmt::format("a number below {} is needed", limits[i]));
      all[i] = static_cast<int>(n);
      WEFT_TRY(lexer_.expect(i + 1 == N ? ")" : ","));
    }
    return all;
  }

  Result<void> copy(Inst& inst) {
    constexpr int kLimit = 1 << 16;
    const auto [to, from, elements] = WEFT_TRY(numbers<3>({kLimit, kLimit, kLimit}));
    inst.imm = CopyImm{to, from, elements}.packed();
    return {};
  }

  Result<void> blocks(Inst& inst) {
    const auto n = WEFT_TRY(numbers<10>({1 << 12, 8, 2, 32, 32, 1 << 12, 8, 2, 32, 32}));
    const auto block = [&](std::size_t i) { return BlockImm{n[i], n[i + 1], n[i + 2] != 0, n[i + 3], n[i + 4]}; };
    inst.imm = BlocksImm{block(0), block(5)}.packed();
    return {};
  }

  struct Named {
    Token at;
    std::string name;
  };

  Result<std::vector<Named>> result_names() {
    std::vector<Named> names;
    if (lexer_.peek().kind != Kind::Value) return names;
    do {
      const Token at = lexer_.peek();
      names.push_back({at, WEFT_TRY(lexer_.value_name())});
    } while (lexer_.accept(","));
    WEFT_TRY(lexer_.expect("="));
    return names;
  }

  Result<Inst> inst(int depth) {
    Inst i;
    const std::vector<Named> names = WEFT_TRY(result_names());
    i.op = WEFT_TRY(op());
    WEFT_TRY(immediate(i));
    // What stands behind an op without operands begins the next line.
    if (f_.info(i).operands > 0 || f_.info(i).variadic) i.operands = WEFT_TRY(uses());
    for (std::size_t r = 0; r < names.size(); ++r) {
      WEFT_TRY(lexer_.expect(r == 0 ? ":" : ","));
      // Results are numbered first but come into being behind the regions: until then their names
      // are not known.
      i.results.push_back(static_cast<ValueId>(f_.types.size()));
      f_.types.push_back(WEFT_TRY(type()));
    }
    for (int r = 0; r < f_.info(i).regions; ++r) i.regions.push_back(WEFT_TRY(region(depth + 1)));
    for (std::size_t r = 0; r < names.size(); ++r) {
      if (!names_.emplace(names[r].name, i.results[r]).second) {
        return lexer_.error_at(names[r].at, fmt::format("%{} is defined twice", names[r].name));
      }
    }
    return i;
  }

  Result<Block> region(int depth) {
    if (depth > kMaxDepth)
      return lexer_.error(fmt::format("regions nest deeper than {} levels", kMaxDepth));
    Block b;
    WEFT_TRY(lexer_.expect("{"));
    // `%5: i64` is an argument, `%5 = ` or `%5, ` the results of an instruction.
    while (lexer_.peek().kind == Kind::Value && lexer_.peek2().is(":")) {
      const Token at = lexer_.peek();
      const std::string name = WEFT_TRY(lexer_.value_name());
      WEFT_TRY(lexer_.expect(":"));
      b.args.push_back(WEFT_TRY(define(name, at, WEFT_TRY(type()))));
      if (!lexer_.accept(",")) break;
    }
    WEFT_TRY(insts(b, depth));
    WEFT_TRY(lexer_.expect("yield"));
    b.yields = WEFT_TRY(uses());
    WEFT_TRY(lexer_.expect("}"));
    return b;
  }

  Result<void> insts(Block& b, int depth) {
    while (!lexer_.peek().is("}") && !lexer_.peek().is("yield"))
      b.insts.push_back(WEFT_TRY(inst(depth)));
    return {};
  }

  Lexer lexer_;
  Function f_;
  std::map<std::string, ValueId> names_;
};

// A constant of a float dtype that was written like an integer.
void settle_constants(Function& f, Block& block) {
  for (Inst& inst : block.insts) {
    const bool real = f.info(inst).imm == Imm::Const && !inst.results.empty() &&
                      is_float(f.type(inst.results[0]).dtype);
    if (real && inst.imm != 0) {
      inst.fimm = static_cast<double>(inst.imm);
      inst.imm = 0;
    }
    for (Block& region : inst.regions) settle_constants(f, region);
  }
}

}  // namespace

Result<Function> parse(std::string_view text, const OpTable& table) {
  Function f = WEFT_TRY(Parser(text, table).run());
  settle_constants(f, f.body);
  WEFT_TRY(verify_structure(f));
  return f;
}

}  // namespace weft::ssa
