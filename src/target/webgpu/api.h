// What is used of webgpu.h and wgpu.h, as wgpu-native 27 and later lay it out: declared here, since no package that builds
// Weft has these headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::target::webgpu {

struct Instance;
struct Adapter;
struct GpuDevice;
struct Queue;
struct Buffer;
struct ShaderModule;
struct BindGroup;
struct BindGroupLayout;
struct PipelineLayout;
struct ComputePipeline;
struct CommandEncoder;
struct CommandBuffer;
struct ComputePass;

struct Chained {
  Chained* next = nullptr;
  std::uint32_t type = 0;
};
constexpr std::uint32_t kSourceWgsl = 2;  // a Chained::type

constexpr std::size_t kZeroEnded = ~std::size_t{0};
struct Text {
  const char* data = nullptr;
  std::size_t length = kZeroEnded;
};

struct AdapterInfo {
  Chained* next = nullptr;
  Text vendor, architecture, device, description;
  std::uint32_t backend = 0, kind = 0, vendor_id = 0, device_id = 0, least_subgroup = 0, most_subgroup = 0;
};
constexpr std::uint32_t kCpuAdapter = 3;  // an AdapterInfo::kind

struct Limits {
  Chained* next = nullptr;
  std::uint32_t texture_limits[4], bind_groups, bind_groups_and_vertex_buffers, bindings_per_group, dynamic_uniform_buffers,
      dynamic_storage_buffers, sampled_textures, samplers, storage_buffers, storage_textures, uniform_buffers;
  std::uint64_t uniform_binding_bytes, storage_binding_bytes;
  std::uint32_t uniform_alignment, storage_alignment, vertex_buffers;
  std::uint64_t buffer_bytes;
  std::uint32_t vertex_attributes, vertex_stride, shader_variables, color_attachments, color_bytes, group_storage_bytes,
      group_threads, group_threads_x, group_threads_y, group_threads_z, groups_per_dimension, immediate_bytes;
};

enum Feature : std::uint32_t {  // wgpu-native's own
  kShaderF64 = 0x0003001D,
  kShaderI64 = 0x00030026,
  kI64AtomicMinMax = 0x0003002C,
  kI64Atomics = 0x0003002D,
};

struct Future {
  std::uint64_t id;
};

enum ErrorType : std::uint32_t { kNoError = 1, kValidation = 2, kOutOfMemory = 3 };
constexpr std::uint32_t kSuccess = 1;      // of every status
constexpr std::uint32_t kDestroyed = 2;    // why a device is lost: it was let go
constexpr std::uint32_t kSpontaneous = 3;  // when callbacks come

template <class Callback>
struct CallbackInfo {
  Chained* next = nullptr;
  std::uint32_t mode = kSpontaneous;
  Callback callback = nullptr;
  void* user1 = nullptr;
  void* user2 = nullptr;
};
using OnDevice = void (*)(std::uint32_t status, GpuDevice*, Text, void*, void*);
using OnLost = void (*)(GpuDevice* const*, std::uint32_t reason, Text, void*, void*);
using OnError = void (*)(GpuDevice* const*, std::uint32_t type, Text, void*, void*);
using OnMapped = void (*)(std::uint32_t status, Text, void*, void*);
struct ErrorCallbackInfo {
  Chained* next = nullptr;
  OnError callback = nullptr;
  void* user1 = nullptr;
  void* user2 = nullptr;
};

struct InstanceExtras {  // of wgpu-native
  Chained chain{nullptr, 0x00030004};
  std::uint64_t backends = 0, flags = 0;
  std::uint32_t d3d12_compiler = 0, gles_version = 0, gl_fence = 0;
  Text dxc_path;
  std::uint32_t shader_model = 0, d3d12_presentation = 0;
  const void* creation_budget = nullptr;
  const void* loss_budget = nullptr;
  std::uint64_t display[4] = {};
};
struct InstanceDescriptor {
  Chained* next = nullptr;
  std::size_t features = 0;
  const std::uint32_t* feature = nullptr;
  const void* limits = nullptr;
};

struct EnumerateOptions {
  const Chained* next = nullptr;
  std::uint64_t backends = 0;
};
constexpr std::uint64_t kVulkanMetalAndD3d12 = 1 | 4 | 8;

struct Labelled {  // a descriptor of nothing but a label
  Chained* next = nullptr;
  Text label;
};
struct DeviceDescriptor {
  Chained* next = nullptr;
  Text label;
  std::size_t features = 0;
  const std::uint32_t* feature = nullptr;
  const Limits* limits = nullptr;
  Labelled queue;
  CallbackInfo<OnLost> lost;
  ErrorCallbackInfo error;
};

enum BufferUsage : std::uint64_t { kMapRead = 1, kCopyFrom = 4, kCopyTo = 8, kUniform = 0x40, kStorage = 0x80 };
struct BufferDescriptor {
  Chained* next = nullptr;
  Text label;
  std::uint64_t usage = 0, size = 0;
  std::uint32_t mapped = 0;
};

struct WgslSource {
  Chained chain{nullptr, kSourceWgsl};
  Text code;
};

constexpr std::uint64_t kComputeStage = 4, kMapForReading = 1;
constexpr std::uint32_t kUniformBinding = 2, kStorageBinding = 3;
struct LayoutEntry {
  Chained* next = nullptr;
  std::uint32_t binding = 0;
  std::uint64_t visibility = kComputeStage;
  std::uint32_t array = 0;
  struct {
    Chained* next = nullptr;
    std::uint32_t type = kStorageBinding, dynamic = 0;
    std::uint64_t least = 0;
  } buffer;
  struct {
    Chained* next = nullptr;
    std::uint32_t type = 0;
  } sampler;
  struct {
    Chained* next = nullptr;
    std::uint32_t sample = 0, dimension = 0, multisampled = 0;
  } texture;
  struct {
    Chained* next = nullptr;
    std::uint32_t access = 0, format = 0, dimension = 0;
  } storage_texture;
};
struct LayoutDescriptor {
  Chained* next = nullptr;
  Text label;
  std::size_t count = 0;
  const LayoutEntry* entries = nullptr;
};
struct PipelineLayoutDescriptor {
  Chained* next = nullptr;
  Text label;
  std::size_t count = 0;
  BindGroupLayout* const* layouts = nullptr;
  std::uint32_t immediate_bytes = 0;
};
struct PipelineDescriptor {
  Chained* next = nullptr;
  Text label;
  PipelineLayout* layout = nullptr;
  struct {
    Chained* next = nullptr;
    ShaderModule* module = nullptr;
    Text entry;
    std::size_t constants = 0;
    const void* constant = nullptr;
  } compute;
};
struct BindGroupEntry {
  Chained* next = nullptr;
  std::uint32_t binding = 0;
  Buffer* buffer = nullptr;
  std::uint64_t offset = 0, size = 0;
  void* sampler = nullptr;
  void* texture = nullptr;
};
struct BindGroupDescriptor {
  Chained* next = nullptr;
  Text label;
  BindGroupLayout* layout = nullptr;
  std::size_t count = 0;
  const BindGroupEntry* entries = nullptr;
};

}  // namespace weft::target::webgpu
