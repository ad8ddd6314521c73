#include <bit>

#include "ssa/key.h"

namespace weft::ssa {
namespace {

// What print() says, in few bytes: values numbered in the order in which they are written, lists after their lengths.
class Keyer {
 public:
  explicit Keyer(const Function& f) : f_(f), numbers_(f.types.size(), -1) {}

  std::string run() {
    out_ = f_.table->ir;
    put(static_cast<std::int64_t>(f_.buffers.size()));
    for (const Buffer& b : f_.buffers) {
      put(static_cast<int>(b.dtype) << 3 | static_cast<int>(b.space) << 2 | int{b.read} << 1 | int{b.written});
      put(b.elements);
    }
    put(f_.sizes);
    put(f_.threads);
    put(f_.warp);
    block(f_.body);
    return std::move(out_);
  }

 private:
  // Seven bits a byte, the last one marked; small magnitudes of either sign are short.
  void put(std::int64_t v) {
    auto bits = static_cast<std::uint64_t>(v) << 1 ^ static_cast<std::uint64_t>(v >> 63);
    for (; bits >= 128; bits >>= 7) out_.push_back(static_cast<char>(bits & 127));
    out_.push_back(static_cast<char>(bits | 128));
  }

  void define(const std::vector<ValueId>& values) {
    put(static_cast<std::int64_t>(values.size()));
    for (ValueId v : values) {
      numbers_[v] = next_++;
      const Type& t = f_.types[v];
      put(static_cast<int>(t.dtype) << 2 | t.rank);
      for (int k = 0; k < t.rank; ++k) put(t.shape[k]);
    }
  }

  void use(const std::vector<ValueId>& values) {
    put(static_cast<std::int64_t>(values.size()));
    for (ValueId v : values) put(numbers_[v]);
  }

  void immediate(const Inst& inst) {
    const Imm kind = f_.info(inst).imm;
    if (kind == Imm::None) return;
    const bool real = kind == Imm::Const && is_float(f_.type(inst.results[0]).dtype);
    put(real ? std::bit_cast<std::int64_t>(inst.fimm) : inst.imm);
  }

  void block(const Block& b) {
    define(b.args);
    put(static_cast<std::int64_t>(b.insts.size()));
    for (const Inst& inst : b.insts) {
      put(inst.op);
      immediate(inst);
      use(inst.operands);
      define(inst.results);
      put(static_cast<std::int64_t>(inst.regions.size()));
      for (const Block& region : inst.regions) block(region);
    }
    use(b.yields);
  }

  const Function& f_;
  std::vector<int> numbers_;
  int next_ = 0;
  std::string out_;
};

}  // namespace

std::string key(const Function& function) { return Keyer(function).run(); }

}  // namespace weft::ssa
