// The fields of onnx.proto3 that Weft reads and writes, by message. Private to reader/ and writer/.
#pragma once

#include <cstdint>
#include <iterator>

#include "frontend/onnx/model.h"

namespace weft::onnx {

struct ModelProto {
  enum : std::uint32_t {
    IrVersion = 1,
    ProducerName = 2,
    ProducerVersion = 3,
    Domain = 4,
    ModelVersion = 5,
    Graph = 7,
    OpsetImport = 8,
    MetadataProps = 14,
    TrainingInfo = 20,
    Functions = 25,
  };
};

struct OperatorSetIdProto {
  enum : std::uint32_t { Domain = 1, Version = 2 };
};

struct StringStringEntryProto {
  enum : std::uint32_t { Key = 1, Value = 2 };
};

struct GraphProto {
  enum : std::uint32_t {
    Node = 1,
    Name = 2,
    Initializer = 5,
    Input = 11,
    Output = 12,
    ValueInfo = 13,
    SparseInitializer = 15,
    MetadataProps = 16,
  };
};

struct NodeProto {
  enum : std::uint32_t {
    Input = 1,
    Output = 2,
    Name = 3,
    OpType = 4,
    Attribute = 5,
    Domain = 7,
    Overload = 8,
    MetadataProps = 9,
  };
};

struct FunctionProto {
  enum : std::uint32_t {
    Name = 1,
    Input = 4,
    Output = 5,
    Attribute = 6,
    Node = 7,
    OpsetImport = 9,
    Domain = 10,
    AttributeProto = 11,
    ValueInfo = 12,
    Overload = 13,
    MetadataProps = 14,
  };
};

struct AttributeProto {
  enum : std::uint32_t { Name = 1, Type = 20, RefAttrName = 21 };
  // The field that holds a value, by AttributeType.
  static constexpr std::uint32_t kValue[] = {0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 22, 23, 14, 15};
};
static_assert(std::variant_size_v<AttributeValue> == std::size(AttributeProto::kValue));

struct TensorProto {
  enum : std::uint32_t {
    Dims = 1,
    DataType = 2,
    Segment = 3,
    FloatData = 4,
    Int32Data = 5,
    StringData = 6,
    Int64Data = 7,
    Name = 8,
    RawData = 9,
    DoubleData = 10,
    Uint64Data = 11,
    ExternalData = 13,
    DataLocation = 14,
  };
};

struct SparseTensorProto {
  enum : std::uint32_t { Values = 1, Indices = 2, Dims = 3 };
};

struct ValueInfoProto {
  enum : std::uint32_t { Name = 1, Type = 2 };
};

// The kinds of TypeProto, and what is in them: Sequence and Optional hold their element's type as Element; Map its
// key's number as KeyType and the type of its values as MapValue.
struct TypeProto {
  enum : std::uint32_t { Tensor = 1, Sequence = 4, Map = 5, Opaque = 7, SparseTensor = 8, Optional = 9 };
  enum : std::uint32_t { ElemType = 1, Shape = 2, Element = 1, KeyType = 1, MapValue = 2 };
};

struct TensorShapeProto {
  enum : std::uint32_t { Dim = 1, DimValue = 1, DimParam = 2 };
};

}  // namespace weft::onnx
