#include "graph/interpret/elements.h"

#include <algorithm>

namespace weft::graph::interpreter {
namespace {

Tensor as_codes(const Tensor& t) {
  const DType codes = bits(t.dtype()) == 4 ? DType::U4 : DType::U2;
  return Tensor::view(codes, t.shape(), t.data(), std::make_shared<Tensor>(t));
}

bool packed(DType t) { return bits(t) < 8 && !is_string(t); }

enum class Row : std::uint8_t { Run, Same, Any };  // elements that follow each other, one again and again, any

Row kind_of(const AxisTable& table) {
  if (table.empty() || std::count(table.begin(), table.end(), kFill) > 0) return Row::Any;
  bool run = true, same = true;
  for (std::size_t j = 1; j < table.size(); ++j) {
    run = run && table[j] == table[j - 1] + 1;
    same = same && table[j] == table[j - 1];
  }
  return run ? Row::Run : same ? Row::Same : Row::Any;
}

template <class T>
void copy_row(const T* in, const AxisTable& table, Row kind, const T* fill, T* out) {
  const std::size_t n = table.size();
  if (kind == Row::Run) {
    std::copy_n(in + table[0], n, out);
  } else if (kind == Row::Same) {
    std::fill_n(out, n, in[table[0]]);
  } else {
    for (std::size_t j = 0; j < n; ++j) out[j] = table[j] == kFill ? *fill : in[table[j]];
  }
}

template <class T>
void copy_tables(const T* in, const std::vector<AxisTable>& tables, const T* fill, T* out) {
  if (tables.empty()) {
    *out = *in;
    return;
  }
  Sizes outer;
  for (std::size_t a = 0; a + 1 < tables.size(); ++a) outer.push_back(static_cast<std::int64_t>(tables[a].size()));
  const AxisTable& row = tables.back();
  const Row kind = kind_of(row);
  Sizes index(outer.size(), 0);
  do {
    std::int64_t base = 0;
    bool filled = false;
    for (std::size_t a = 0; a < outer.size(); ++a) {
      const std::int64_t step = tables[a][index[a]];
      filled = filled || step == kFill;
      if (!filled) base += step;
    }
    if (filled) {
      std::fill_n(out, row.size(), *fill);
    } else {
      copy_row(in + base, row, kind, fill, out);
    }
    out += row.size();
  } while (next_index(index, outer));
}

}  // namespace

Result<Tensor> spread(const Tensor& t) {
  if (!packed(t.dtype())) return t;
  const Tensor codes = as_codes(t);
  Tensor bytes = WEFT_TRY(Tensor::empty(DType::U8, t.shape()));
  for (std::int64_t i = 0; i < t.size(); ++i) bytes.set_i64(i, codes.i64(i));
  return bytes;
}

Result<Tensor> gathered(Tensor t, DType dtype) {
  if (!packed(dtype)) return t;
  const DType codes = bits(dtype) == 4 ? DType::U4 : DType::U2;
  Tensor out = WEFT_TRY(result_tensor(dtype, t.shape()));
  void* data = out.mutable_data();
  for (std::int64_t i = 0; i < t.size(); ++i) store_i64(codes, data, i, t.i64(i));
  return out;
}

Result<Tensor> copy_by_tables(const Tensor& x, const std::vector<AxisTable>& tables, const Tensor* fill) {
  Sizes shape;
  for (const AxisTable& t : tables) shape.push_back(static_cast<std::int64_t>(t.size()));
  const Tensor source = WEFT_TRY(spread(x));
  const Tensor filler = fill ? WEFT_TRY(spread(*fill)) : Tensor{};
  Tensor out = WEFT_TRY(Tensor::empty(source.dtype(), shape));
  if (out.size() > 0) {
    with_carrier(source.dtype(), [&](auto carrier) {
      using T = decltype(carrier);
      copy_tables<T>(elements<T>(source), tables, fill ? elements<T>(filler) : nullptr, mutable_elements<T>(out));
    });
  }
  return gathered(std::move(out), x.dtype());
}

AxisTable linear_table(std::int64_t start, std::int64_t size, std::int64_t step) {
  AxisTable table(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) table[i] = start + i * step;
  return table;
}

Result<Tensor> transposed(const Tensor& x, const Sizes& axes) {
  const Sizes strides = row_major_strides(x.shape());
  std::vector<AxisTable> tables;
  for (std::int64_t axis : axes) tables.push_back(linear_table(0, x.shape()[axis], strides[axis]));
  if (std::is_sorted(axes.begin(), axes.end())) return x;
  return copy_by_tables(x, tables);
}

Result<Tensor> concatenated(const Tensors& parts, std::int64_t axis) {
  const DType dtype = parts[0].dtype();
  Sizes shape = parts[0].shape();
  shape[axis] = 0;
  Tensors sources;
  for (const Tensor& part : parts) {
    Sizes other = part.shape();
    shape[axis] += other[axis];
    other[axis] = shape[axis];
    if (other != shape) {
      return user_error("shape-mismatch", "the parts of a concat differ on another axis than the joined one")
          .expected(shape_str(parts[0].shape()))
          .found(shape_str(part.shape()));
    }
    sources.push_back(WEFT_TRY(spread(part)));
  }
  Tensor out = WEFT_TRY(Tensor::empty(sources[0].dtype(), shape));
  const std::int64_t outer = count_of(shape, 0, axis), inner = count_of(shape, axis + 1, shape.size());
  with_carrier(out.dtype(), [&](auto carrier) {
    using T = decltype(carrier);
    T* to = mutable_elements<T>(out);
    for (std::int64_t o = 0; o < outer; ++o) {
      for (const Tensor& s : sources) {
        const std::int64_t block = s.shape()[axis] * inner;
        if (block > 0) to = std::copy_n(elements<T>(s) + o * block, block, to);
      }
    }
  });
  return gathered(std::move(out), dtype);
}

}  // namespace weft::graph::interpreter
