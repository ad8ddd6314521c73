#include <fmt/format.h>

#include "base/text.h"
#include "ssa/function.h"

namespace weft::ssa {
namespace {

class Printer {
 public:
  explicit Printer(const Function& f) : f_(f), names_(f.types.size(), -1) {}

  std::string run() {
    out_ = fmt::format("{} @{} {{\n", f_.table->ir, name_text(f_.name));
    for (const Buffer& b : f_.buffers) header(b);
    if (f_.sizes != 0) out_ += fmt::format("  sizes {}\n", f_.sizes);
    if (f_.threads != 1) out_ += fmt::format("  threads {} warp {}\n", f_.threads, f_.warp);
    insts(f_.body, 1);
    return out_ + "}\n";
  }

 private:
  void header(const Buffer& b) {
    out_ += fmt::format("  buffer {} {}", name(b.dtype),
                        b.space == Space::Memory ? "memory" : "on_chip");
    if (b.read) out_ += " read";
    if (b.written) out_ += " written";
    if (b.space == Space::OnChip) out_ += fmt::format(" {}", b.elements);
    out_ += '\n';
  }

  // Names are given in the order in which they are written.
  std::string define(ValueId v) {
    names_[v] = next_++;
    return fmt::format("%{}", names_[v]);
  }

  std::string uses(const std::vector<ValueId>& values) const {
    std::string s;
    for (ValueId v : values) s += fmt::format("{}%{}", s.empty() ? " " : ", ", names_[v]);
    return s;
  }

  std::string immediate(const Inst& inst) const {
    const Imm kind = f_.info(inst).imm;
    if (kind == Imm::None) return "";
    if (kind == Imm::Copy) {
      const CopyImm copy = CopyImm::of(inst.imm);
      return fmt::format("({}, {}, {})", copy.to, copy.from, copy.elements);
    }
    if (kind == Imm::Blocks) {
      const BlocksImm blocks = BlocksImm::of(inst.imm);
      const auto text = [](const BlockImm& b) { return fmt::format("{}, {}, {}, {}, {}", b.buffer, b.row, b.turned ? 1 : 0, b.leading, b.stride); };
      return fmt::format("({}, {})", text(blocks.left), text(blocks.right));
    }
    const bool real = kind == Imm::Const && is_float(f_.type(inst.results[0]).dtype);
    if (!real) return fmt::format("({})", inst.imm);
    return "(" + float_text(inst.fimm) + ")";
  }

  void inst(const Inst& i, int depth) {
    out_.append(depth * 2, ' ');
    for (std::size_t r = 0; r < i.results.size(); ++r)
      out_ += (r ? ", " : "") + define(i.results[r]);
    if (!i.results.empty()) out_ += " = ";
    out_ += f_.info(i).name + immediate(i) + uses(i.operands);
    for (std::size_t r = 0; r < i.results.size(); ++r)
      out_ += (r ? ", " : " : ") + str(f_.type(i.results[r]));
    for (const Block& region : i.regions) block(region, depth);
    out_ += '\n';
  }

  void block(const Block& b, int depth) {
    out_ += " {";
    for (std::size_t a = 0; a < b.args.size(); ++a) {
      out_ += (a ? ", " : " ") + define(b.args[a]) + ": " + str(f_.type(b.args[a]));
    }
    out_ += '\n';
    insts(b, depth + 1);
    out_.append(depth * 2 + 2, ' ');
    out_ += "yield" + uses(b.yields) + '\n';
    out_.append(depth * 2, ' ');
    out_ += '}';
  }

  void insts(const Block& b, int depth) {
    for (const Inst& i : b.insts) inst(i, depth);
  }

  const Function& f_;
  std::vector<int> names_;
  int next_ = 0;
  std::string out_;
};

}  // namespace

std::string str(const Type& type) {
  if (type.rank == 0) return name(type.dtype);
  if (type.rank == 1) return fmt::format("{}[{}]", name(type.dtype), type.shape[0]);
  return fmt::format("{}[{},{}]", name(type.dtype), type.shape[0], type.shape[1]);
}

std::string print(const Function& function) { return Printer(function).run(); }

}  // namespace weft::ssa
