// The elements of inputs.
#include <cmath>
#include <limits>
#include <random>

#include "sweep/maker.h"

namespace weft::sweep {
namespace {

class Values {
 public:
  explicit Values(const std::string& name) {
    std::seed_seq seed(name.begin(), name.end());
    random_.seed(seed);
  }

  Result<Tensor> tensor(DType dtype, const Ints& shape, Draw draw, std::int64_t limit) {
    if (is_string(dtype)) return strings(shape, draw);
    Tensor t = WEFT_TRY(Tensor::zeros(dtype, shape));
    for (std::int64_t i = 0; i < t.size(); ++i) set(t, i, draw, limit);
    return t;
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  Tensor strings(const Ints& shape, Draw draw) {
    static const char* const kWords[] = {"", "a", "b", "weft", "Weft", "a longer string than fits in place", "\xc3\xa9"};
    static const char* const kNumbers[] = {"0", "-3", "17", "2.5", "1e2", "nan", "-inf", " 8 "};
    std::int64_t count = 1;
    for (std::int64_t d : shape) count *= d;
    std::vector<std::string> all;
    for (std::int64_t i = 0; i < count; ++i) all.emplace_back(draw == Draw::Text ? kNumbers[pick(8)] : kWords[pick(7)]);
    return Tensor::strings(shape, std::move(all));
  }

  void set(Tensor& t, std::int64_t i, Draw draw, std::int64_t limit) {
    const DType d = t.dtype();
    if (draw == Draw::Index) return t.set_i64(i, limit == 0 ? 0 : static_cast<std::int64_t>(random_() % (2 * limit)) - limit);
    if (draw == Draw::Count) return t.set_i64(i, limit == 0 ? 0 : static_cast<std::int64_t>(random_() % limit));
    if (is_complex(d)) {
      const DType part = d == DType::C64 ? DType::F32 : DType::F64;
      for (int k = 0; k < 2; ++k) store_f64(part, t.mutable_data(), 2 * i + k, tame());
    } else if (is_float(d)) {
      t.set_f64(i, number(d, draw));
    } else {
      t.set_i64(i, integer(d, draw));
    }
  }

  double tame() { return pick(3) == 0 ? pick(5) - 2 : (static_cast<double>(random_() % 4001) - 2000) / 1000; }

  double number(DType t, Draw draw) {
    constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
    if (draw == Draw::NearOne) return 0.75 + static_cast<double>(random_() % 1000) / 2000;
    if (draw == Draw::Special && pick(8) == 0) return pick(3) == 0 ? kNan : pick(2) == 0 ? kInf : -kInf;
    if (draw != Draw::Any || pick(3) == 0) return tame();
    switch (pick(4)) {
      case 0: {  // any bits
        const std::uint64_t raw = random_();
        return t == DType::F64 ? std::ldexp(tame(), static_cast<int>(raw % 2000) - 1000) : decode_float(t, raw & ((std::uint64_t{1} << bits(t)) - 1));
      }
      case 1: {
        const double specials[] = {kNan, kInf, -kInf, 0.0, -0.0, tiny(t), -tiny(t), largest(t), -largest(t), 1.0, -1.0, 0.5};
        return specials[pick(12)];
      }
      case 2: return tame() * 10;
      default: return pick(41) - 20.5;
    }
  }

  double largest(DType t) {
    return t == DType::F64 ? std::numeric_limits<double>::max() : decode_float(t, encode_float(t, std::numeric_limits<double>::max(), true));
  }

  std::int64_t integer(DType t, Draw draw) {
    const bool is_signed = is_signed_int(t);
    if (is_bool(t)) return pick(2);
    if (draw == Draw::NearOne) return is_signed && pick(4) == 0 ? -1 : 1 + (pick(6) == 0);
    if (draw != Draw::Any || pick(3) == 0) return is_signed ? pick(9) - 4 : pick(9);
    const std::uint64_t top = std::uint64_t{1} << (bits(t) - 1);
    const std::uint64_t specials[] = {0, 1, ~std::uint64_t{0}, top, top - 1, top + 1};
    return static_cast<std::int64_t>(pick(2) == 0 ? random_() : specials[pick(6)]);
  }

  std::mt19937_64 random_;
};

}  // namespace

Result<std::vector<Tensor>> inputs_of(const Case& c, const Bindings& sizes) {
  std::string seed = c.name;
  for (const auto& [symbol, value] : sizes) seed += " " + symbol + "=" + std::to_string(value);
  Values values(seed);
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    const graph::Type& type = c.graph.type(c.graph.inputs()[i]);
    const auto shape = WEFT_TRY(evaluate(type.shape, sizes));
    const std::int64_t limit = WEFT_TRY(c.inputs[i].limit.evaluate(sizes));
    inputs.push_back(WEFT_TRY(values.tensor(type.dtype, shape, c.inputs[i].draw, limit)));
  }
  return inputs;
}

}  // namespace weft::sweep
