// All operators, family by family. A new file of operators is named here and nowhere else.
#include "frontend/onnx/import/node_context.h"

namespace weft::onnx {

#define WEFT_ONNX_FAMILIES(X)                                                                         \
  X(elementwise_ops) X(shape_ops) X(activation_ops) X(matmul_ops) X(reduce_ops) X(conv_ops)           \
  X(norm_ops) X(control_ops) X(pool_ops) X(index_ops) X(pad_ops) X(recurrent_ops)       \
  X(resize_ops) X(loss_ops) X(attention_ops) X(quant_ops) X(einsum_ops)         \
  X(random_ops) X(sample_ops) X(patch_ops) X(signal_ops) X(sequence_ops)

#define X(family) OpTable family();
WEFT_ONNX_FAMILIES(X)
#undef X

const std::vector<OpTable>& op_tables() {
  static const std::vector<OpTable> tables{
#define X(family) family(),
      WEFT_ONNX_FAMILIES(X)
#undef X
  };
  return tables;
}

const OpEntry* find_op(std::string_view domain, std::string_view op, std::int64_t opset) {
  for (const OpTable& table : op_tables()) {
    for (std::size_t k = 0; k < table.count; ++k) {
      const OpEntry& e = table.entries[k];
      if (op == e.op && domain == e.domain && opset >= e.first && opset <= e.last) return &e;
    }
  }
  return nullptr;
}

bool knows_op(std::string_view domain, std::string_view op) {
  for (const OpTable& table : op_tables()) {
    for (std::size_t k = 0; k < table.count; ++k) {
      if (op == table.entries[k].op && domain == table.entries[k].domain) return true;
    }
  }
  return false;
}

}  // namespace weft::onnx
