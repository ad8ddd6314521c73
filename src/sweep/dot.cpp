// Products of matrices and their kin.
#include "sweep/maker.h"

namespace weft::sweep {
namespace {

struct Product {
  Shape a, b;
  Ints lhs_batch, rhs_batch, lhs_contract, rhs_contract;
};

Product plain(Dim rows, Dim k, Dim columns) { return {{rows, k}, {k, columns}, {}, {}, {1}, {0}}; }

// One row, one column, a vector's width and one beside it, nothing to sum, nothing to give.
std::vector<Product> products(DType t) {
  std::vector<Product> all{plain(n(), 33, m()), plain(5, n(), m()), plain(7, 33, 17), plain(1, 65, 33), plain(65, 63, 66)};
  if (!is_common(t)) return all;
  for (const Product& p : {plain(1, 1, 1), plain(64, 64, 64), plain(16, 128, 1), plain(5, 0, 3), plain(0, 4, 3), plain(3, 17, 0)}) all.push_back(p);
  all.push_back({{33, 7}, {17, 33}, {}, {}, {0}, {1}});                    // both transposed
  all.push_back({{7, 33}, {17, 33}, {}, {}, {1}, {1}});                    // rows by rows
  all.push_back({{3, 7, 9}, {3, 9, 5}, {0}, {0}, {2}, {1}});               // batched
  all.push_back({{n(), 2, 5, 9}, {n(), 2, 9, m()}, {0, 1}, {0, 1}, {3}, {2}});
  all.push_back({{33}, {33}, {}, {}, {0}, {0}});                           // a number
  all.push_back({{7}, {9}, {}, {}, {}, {}});                               // an outer product
  all.push_back({{4, 5, 6}, {6, 5, 3}, {}, {}, {1, 2}, {1, 0}});           // two axes summed
  return all;
}

struct Kinds {
  DType a, b, result;
};

std::vector<Kinds> kinds_of(Op op) {
  std::vector<Kinds> all;
  for (DType t : dtypes_of(graph::info(op).dtypes)) all.push_back({t, t, t});
  for (DType t : {DType::F16, DType::BF16, DType::F8E4M3FN, DType::F8E5M2}) all.push_back({t, t, DType::F32});
  for (DType a : {DType::I8, DType::U8}) {
    for (DType b : {DType::I8, DType::U8}) all.push_back({a, b, DType::I32});
  }
  all.push_back({DType::I16, DType::I16, DType::I32});
  return all;
}

}  // namespace

void sweep_dot(Op op, Cases& into) {
  for (const Kinds& k : kinds_of(op)) {
    const std::vector<Product> all = products(k.a);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Product& p = all[i];
      Maker make(graph::info(op).name, std::string(name(k.a)) + "," + name(k.b) + "-" + name(k.result) + "/" + text(p.a) + "x" + text(p.b) +
                                           "/" + text(Shape(p.lhs_contract.begin(), p.lhs_contract.end())));
      const ValueId a = make.input(k.a, p.a), b = make.input(k.b, p.b);
      // Of at most 128 terms, each below 4, a sum's error is bounded by their number times that of one.
      const double atol = 512 * eps(k.result == DType::F64 ? DType::F64 : DType::F32);
      make.tolerance(k.result == DType::F32 || k.result == DType::F64 ? 64 : 1, is_float(k.result) ? atol : 0);
      make.done(into, {make.b().dot(a, b, p.lhs_batch, p.rhs_batch, p.lhs_contract, p.rhs_contract, k.result)});
    }
  }
}

}  // namespace weft::sweep
