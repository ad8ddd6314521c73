// What is taken for granted of devices whose interface (OpenCL 1.2, WebGPU) does not say what goes in step. Nothing
// shuffles there, so a wrong guess costs time alone.
#pragma once

namespace weft::target {

constexpr int kMostThreads = 256;  // of a group
constexpr int kLikelyWarp = 32, kLikelyLanes = 64;

}  // namespace weft::target
