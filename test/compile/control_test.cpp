// Branches, loops and scans: what may alias, repeat or be empty.
#include "compile/support.h"

namespace weft::compiler::testing {
namespace {

TEST(Outputs, InputConstantAndRepeatedValues) {
  check(R"(graph @t(%0 "x": f32[n]) -> (f32[n], f32[3], f32[n], f32[n], f32[3]) where n in 0.. {
    %1 = constant {data=f32[3](1, 2, 3)} : f32[3]
    %2 = exp %0 : f32[n]
    return %0, %1, %2, %2, %1
  })",
        {{f32({4}, {1, 2, -1, 0})}, {f32({0}, {})}, {f32({1}, {3})}});
}

TEST(Outputs, ReshapedValueAndItsSource) {
  check(R"(graph @t(%0 "x": f32[n, 4]) -> (f32[n, 2, 2], f32[n*4], f32[n, 4]) where n in 0.. {
    %1 = exp %0 : f32[n, 4]
    %2 = reshape %1 {shape=[n, 2, 2]} : f32[n, 2, 2]
    %3 = reshape %0 {shape=[n*4]} : f32[n*4]
    return %2, %3, %1
  })",
        {{f32({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})}, {f32({0, 4}, {})}});
}

TEST(If, ReturnsItsInputsAndConstants) {
  const std::string text = R"(graph @t(%0 "x": f32[n], %1 "go": bool[]) -> (f32[n], f32[2], f32[n]) where n in 0.. {
    %2, %3, %4 = if %1, %0 : f32[n], f32[2], f32[n] regions {
      graph @then(%0: f32[n]) -> (f32[n], f32[2], f32[n]) {
        %1 = constant {data=f32[2](1, 2)} : f32[2]
        return %0, %1, %0
      }
      graph @else(%0: f32[n]) -> (f32[n], f32[2], f32[n]) {
        %1 = constant {data=f32[2](3, 4)} : f32[2]
        %2 = neg %0 : f32[n]
        return %2, %1, %2
      }
    }
    return %2, %3, %4
  })";
  Tensor yes = tensor(DType::Bool, {}, {1}), no = tensor(DType::Bool, {}, {0});
  check(text, {{f32({3}, {1, 2, 3}), yes}, {f32({3}, {1, 2, 3}), no}, {f32({0}, {}), yes}});
}

TEST(If, ResultIsUsedByKernels) {
  check(R"(graph @t(%0 "x": f32[n], %1 "go": bool[]) -> (f32[n]) where n in 0.. {
    %2 = exp %0 : f32[n]
    %3 = if %1, %2 : f32[n] regions {
      graph @then(%0: f32[n]) -> (f32[n]) { return %0 }
      graph @else(%0: f32[n]) -> (f32[n]) {
        %1 = abs %0 : f32[n]
        %2 = cum_sum %1 {axis=0, exclusive=false, reverse=false} : f32[n]
        return %2
      }
    }
    %4 = add %3, %2 : f32[n]
    return %4
  })",
        {{f32({3}, {1, 2, 3}), tensor(DType::Bool, {}, {1})}, {f32({5}, {1, 2, 3, 0, -1}), tensor(DType::Bool, {}, {0})}});
}

// Carried: x doubles, y stays, z is a constant in the end; the iteration number is collected.
const char* kLoop = R"(graph @t(%0 "x": f32[n], %1 "y": f32[n], %2 "trips": i64[], %3 "go": bool[])
    -> (f32[n], f32[n], f32[2], f32[k, n], i64[k]) where n in 0.. {
  %4 = constant {data=f32[2](5, 6)} : f32[2]
  %5, %6, %7, %8, %9 = loop %2, %3, %0, %1, %4 {carried=3, symbol=[k, k]}
      : f32[n], f32[n], f32[2], f32[k, n], i64[k] regions {
    graph @body(%0: i64[], %1: bool[], %2: f32[n], %3: f32[n], %4: f32[2])
        -> (bool[], f32[n], f32[n], f32[2], f32[n], i64[]) {
      %5 = constant {data=f32[2](7, 8)} : f32[2]
      %6 = add %2, %2 : f32[n]
      return %1, %6, %3, %5, %6, %0
    }
  }
  return %5, %6, %7, %8, %9
})";

TEST(Loop, CarriesUnchangedConstantAndStackedValues) {
  Tensor go = tensor(DType::Bool, {}, {1}), stop = tensor(DType::Bool, {}, {0});
  Tensor x = f32({3}, {1, 2, 3}), y = f32({3}, {4, 5, 6});
  check(kLoop, {{x, y, i64({}, {3}), go},
                {x, y, i64({}, {1}), go},
                {x, y, i64({}, {0}), go},
                {x, y, i64({}, {4}), stop},
                {x, y, i64({}, {-2}), go},
                {f32({0}, {}), f32({0}, {}), i64({}, {2}), go}});
}

TEST(Loop, EndsByItsOwnCondition) {
  check(R"(graph @t(%0 "x": f32[]) -> (f32[]) {
    %1 = constant {data=i64[](9223372036854775807)} : i64[]
    %2 = constant {data=bool[](true)} : bool[]
    %3 = loop %1, %2, %0 {carried=1} : f32[] regions {
      graph @body(%0: i64[], %1: bool[], %2: f32[]) -> (bool[], f32[]) {
        %3 = constant {data=f32[](100)} : f32[]
        %4 = add %2, %2 : f32[]
        %5 = lt %4, %3 : bool[]
        return %5, %4
      }
    }
    return %3
  })",
        {{f32({}, {1})}, {f32({}, {3})}, {f32({}, {1000})}});
}

TEST(Loop, SwapsItsCarriedValues) {
  check(R"(graph @t(%0 "x": f32[n], %1 "y": f32[n], %2 "trips": i64[]) -> (f32[n], f32[n]) where n in 0.. {
    %3 = constant {data=bool[](true)} : bool[]
    %4, %5 = loop %2, %3, %0, %1 {carried=2} : f32[n], f32[n] regions {
      graph @body(%0: i64[], %1: bool[], %2: f32[n], %3: f32[n]) -> (bool[], f32[n], f32[n]) { return %1, %3, %2 }
    }
    return %4, %5
  })",
        {{f32({2}, {1, 2}), f32({2}, {3, 4}), i64({}, {1})}, {f32({2}, {1, 2}), f32({2}, {3, 4}), i64({}, {6})},
         {f32({2}, {1, 2}), f32({2}, {3, 4}), i64({}, {7})}});
}

TEST(Scan, SwapsCarriesAndStacks) {
  check(R"(graph @t(%0 "a": f32[2], %1 "b": f32[2], %2 "x": f32[n, 2]) -> (f32[2], f32[2], f32[n, 2], f32[n, 2])
      where n in 0.. {
    %3, %4, %5, %6 = scan %0, %1, %2 {carried=2, xs=1} : f32[2], f32[2], f32[n, 2], f32[n, 2] regions {
      graph @body(%0: f32[2], %1: f32[2], %2: f32[2]) -> (f32[2], f32[2], f32[2], f32[2]) {
        %3 = add %0, %2 : f32[2]
        return %1, %3, %2, %3
      }
    }
    return %3, %4, %5, %6
  })",
        {{f32({2}, {1, 2}), f32({2}, {3, 4}), f32({3, 2}, {1, 2, 3, 4, 5, 6})},
         {f32({2}, {1, 2}), f32({2}, {3, 4}), f32({1, 2}, {1, 2})},
         {f32({2}, {1, 2}), f32({2}, {3, 4}), f32({0, 2}, {})},
         {f32({2}, {1, 2}), f32({2}, {3, 4}), f32({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})}});
}

TEST(Scan, InALoopWithCaptures) {
  check(R"(graph @t(%0 "h": f32[m], %1 "x": f32[n, m], %2 "w": f32[m, m], %3 "trips": i64[]) -> (f32[m], f32[k, n, m])
      where n in 0.., m in 0.. {
    %4 = constant {data=bool[](true)} : bool[]
    %5, %6 = loop %3, %4, %0, %1, %2 {carried=1, symbol=[k]} : f32[m], f32[k, n, m] regions {
      graph @body(%0: i64[], %1: bool[], %2: f32[m], %3: f32[n, m], %4: f32[m, m]) -> (bool[], f32[m], f32[n, m]) {
        %5, %6 = scan %2, %3, %4 {carried=1, xs=1} : f32[m], f32[n, m] regions {
          graph @step(%0: f32[m], %1: f32[m], %2: f32[m, m]) -> (f32[m], f32[m]) {
            %3 = dot %0, %2 {lhs_batch=[], rhs_batch=[], lhs_contract=[0], rhs_contract=[0], dtype=f32} : f32[m]
            %4 = add %3, %1 : f32[m]
            %5 = tanh %4 : f32[m]
            return %5, %5
          }
        }
        return %1, %5, %6
      }
    }
    return %5, %6
  })",
        {{f32({2}, {1, 2}), f32({3, 2}, {1, 2, 3, 4, 5, 6}), f32({2, 2}, {0.5, 0, 0.25, -1}), i64({}, {2})},
         {f32({1}, {1}), f32({2, 1}, {1, 2}), f32({1, 1}, {0.5}), i64({}, {3})},
         {f32({1}, {1}), f32({0, 1}, {}), f32({1, 1}, {0.5}), i64({}, {3})}});
}

TEST(Late, SizesFromData) {
  check(R"(graph @t(%0 "x": f32[n]) -> (i64[1, z], f32[z], f32[]) where n in 0.. {
    %1 = non_zero %0 {symbol=[z]} : i64[1, z]
    %2 = reshape %1 {shape=[z]} : i64[z]
    %3 = gather %0, %2 {axis=0} : f32[z]
    %4 = reduce_sum %3 {axes=[0]} : f32[]
    return %1, %3, %4
  })",
        {{f32({5}, {1, 0, 3, 0, -2})}, {f32({2}, {0, 0})}, {f32({0}, {})}});
}

TEST(Late, ASizeFromARow) {
  check(R"(graph @t(%0 "x": i64[n]) -> (i64[k]) where n in 1.., k in 0..100 {
    %1 = reduce_max %0 {axes=[0]} : i64[]
    bind %1 {shape=[k]}
    %2 = iota {dtype=i64, shape=[k], axis=0} : i64[k]
    return %2
  })",
        {{i64({3}, {1, 4, 2})}, {i64({1}, {0})}});
}

TEST(Late, BranchesThatBindASize) {
  check(R"(graph @t(%0 "x": f32[n], %1 "go": bool[]) -> (f32[z]) where n in 0.. {
    %2 = if %1, %0 : i64[1, z] regions {
      graph @then(%0: f32[n]) -> (i64[1, z]) {
        %1 = non_zero %0 {symbol=[z]} : i64[1, z]
        return %1
      }
      graph @else(%0: f32[n]) -> (i64[1, z]) {
        %1 = abs %0 : f32[n]
        %2 = add %1, %0 : f32[n]
        %3 = non_zero %2 {symbol=[z]} : i64[1, z]
        return %3
      }
    }
    %3 = cast %2 {dtype=f32} : f32[1, z]
    %4 = reshape %3 {shape=[z]} : f32[z]
    return %4
  })",
        {{f32({5}, {1, 0, 3, 0, -2}), tensor(DType::Bool, {}, {1})}, {f32({5}, {1, 0, 3, 0, -2}), tensor(DType::Bool, {}, {0})}});
}

}  // namespace
}  // namespace weft::compiler::testing
