#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "graph/graph.h"

namespace weft::graph {
namespace {

std::uint64_t mix(std::uint64_t seed, const void* data, std::size_t size) {
  return XXH3_64bits_withSeed(data, size, seed);
}

std::uint64_t mix(std::uint64_t seed, std::uint64_t word) { return mix(seed, &word, sizeof word); }

// Of large tensors a few samples: equal ones hash alike, and who finds a hash again compares them whole. Weights that nobody
// else reads need not be read for this.
std::uint64_t tensor_hash(const Tensor& t) {
  constexpr std::size_t kSamples = 16, kSampleBytes = 64, kLarge = 8 << 10;
  if (is_string(t.dtype()) || t.byte_size() <= kLarge) return t.content_hash();
  const Tensor::Deferred* elsewhere = t.deferred();
  std::uint64_t h = mix(static_cast<std::uint64_t>(t.dtype()), t.shape().data(), t.shape().size() * sizeof(std::int64_t));
  if (elsewhere && elsewhere->strides != row_major_strides(elsewhere->shape)) {
    h = mix(h, elsewhere->strides.data(), elsewhere->strides.size() * sizeof(std::int64_t));
  }
  const auto* bytes = elsewhere ? elsewhere->data : static_cast<const std::byte*>(t.data());
  const std::size_t step = (t.byte_size() - kSampleBytes) / (kSamples - 1);
  for (std::size_t k = 0; k < kSamples; ++k) h = mix(h, bytes + k * step, kSampleBytes);
  return h;
}

struct HashValue {
  std::uint64_t seed;
  std::uint64_t operator()(std::int64_t v) const {
    return mix(seed, static_cast<std::uint64_t>(v));
  }
  std::uint64_t operator()(bool v) const { return mix(seed, static_cast<std::uint64_t>(v)); }
  std::uint64_t operator()(const std::string& v) const { return mix(seed, v.data(), v.size()); }
  std::uint64_t operator()(DType v) const { return mix(seed, static_cast<std::uint64_t>(v)); }
  std::uint64_t operator()(const std::vector<std::int64_t>& v) const {
    return mix(mix(seed, v.size()), v.data(), v.size() * sizeof(std::int64_t));
  }
  std::uint64_t operator()(const Shape& v) const {
    std::uint64_t h = mix(seed, v.size());
    for (const Dim& d : v) h = mix(h, d.hash());
    return h;
  }
  std::uint64_t operator()(const Tensor& v) const { return mix(seed, tensor_hash(v)); }
};

bool same_tensor(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (is_string(a.dtype())) return a.string_values() == b.string_values();
  const Tensor::Deferred *x = a.deferred(), *y = b.deferred();
  if (x && y && x->data == y->data && x->shape == y->shape && x->strides == y->strides) return true;
  return a.bytes() == b.bytes() || a.byte_size() == 0 ||
         std::memcmp(a.bytes(), b.bytes(), a.byte_size()) == 0;
}

bool same_value(const AttrValue& a, const AttrValue& b) {
  if (a.index() != b.index()) return false;
  if (const auto* t = std::get_if<Tensor>(&a)) return same_tensor(*t, std::get<Tensor>(b));
  return std::visit(
      [&](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, Tensor>) {
          return false;
        } else {
          return v == std::get<T>(b);
        }
      },
      a);
}

bool key_less(const std::pair<Attr, AttrValue>& item, Attr key) { return item.first < key; }

template <class T>
const T& get(const AttrValue* value, Attr key) {
  WEFT_CHECK(value != nullptr, std::string("missing attribute ") + info(key).name);
  const T* typed = std::get_if<T>(value);
  WEFT_CHECK(typed != nullptr, std::string("attribute of another type: ") + info(key).name);
  return *typed;
}

}  // namespace

const Attrs::Items Attrs::kNone;

Attrs& Attrs::set(Attr key, AttrValue value) {
  if (items_.use_count() != 1) items_ = std::make_shared<Items>(all());
  Items& items = *items_;
  const auto it = std::lower_bound(items.begin(), items.end(), key, key_less);
  if (it != items.end() && it->first == key) {
    it->second = std::move(value);
  } else {
    items.emplace(it, key, std::move(value));
  }
  return *this;
}

const AttrValue* Attrs::find(Attr key) const {
  const auto it = std::lower_bound(all().begin(), all().end(), key, key_less);
  return it != all().end() && it->first == key ? &it->second : nullptr;
}

std::int64_t Attrs::integer(Attr key) const { return get<std::int64_t>(find(key), key); }
bool Attrs::flag(Attr key) const {
  const AttrValue* value = find(key);
  return value != nullptr && get<bool>(value, key);
}
const std::string& Attrs::str(Attr key) const { return get<std::string>(find(key), key); }
DType Attrs::dtype(Attr key) const { return get<DType>(find(key), key); }
const std::vector<std::int64_t>& Attrs::ints(Attr key) const {
  return get<std::vector<std::int64_t>>(find(key), key);
}
const Shape& Attrs::dims(Attr key) const { return get<Shape>(find(key), key); }
const Tensor& Attrs::data(Attr key) const { return get<Tensor>(find(key), key); }

bool operator==(const Attrs& a, const Attrs& b) {
  if (a.items_ == b.items_) return true;
  return std::equal(a.all().begin(), a.all().end(), b.all().begin(), b.all().end(),
                    [](const auto& x, const auto& y) {
                      return x.first == y.first && same_value(x.second, y.second);
                    });
}

std::uint64_t Attrs::hash() const {
  std::uint64_t h = all().size();
  for (const auto& [key, value] : all()) {
    h = std::visit(HashValue{mix(h, static_cast<std::uint64_t>(key))}, value);
  }
  return h;
}

}  // namespace weft::graph
