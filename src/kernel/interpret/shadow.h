// What the interpreter remembers of a buffer that threads share: who accessed each element last, and since when.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft::kernel {

// Time goes in epochs: one begins with each program and after each barrier; and in ticks, one for each instruction.
struct Moment {
  std::int64_t program = 0;
  std::int32_t thread = 0;
  std::uint32_t epoch = 1;
  std::uint32_t program_epoch = 1;  // in which the program began
  std::uint32_t tick = 0;
};

class Shadow {
 public:
  // on_chip: gone when a program ends, undefined when it begins.
  Shadow(std::int64_t elements, bool on_chip) : cells_(static_cast<std::size_t>(elements)), on_chip_(on_chip) {}

  // What is wrong with the access, if anything.
  std::optional<std::string> read(std::int64_t element, const Moment& now);
  std::optional<std::string> write(std::int64_t element, const Moment& now);
  std::optional<std::string> atomic(std::int64_t element, const Moment& now);  // any order of atomics gives the same
  // A copy beside a thread: asked for, and waited for by that thread. In between nobody may access the element; asking is a
  // write, since the copy may happen at once.
  std::optional<std::string> ask(std::int64_t element, const Moment& now);
  void arrive(std::int64_t element, const Moment& now);
  // Products beside their threads read from when they are asked for to when they are waited for, what its writer had fenced
  // (when, by thread) before the last barrier. In between nobody may write the element.
  std::optional<std::string> begin_product(std::int64_t element, const Moment& now, std::span<const std::uint32_t> fenced);
  void end_product(std::int64_t element, const Moment& now);

 private:
  static constexpr std::int32_t kSeveral = -1;
  struct Cell {  // epoch 0: never
    std::uint32_t written = 0, read = 0, first_read = 0;
    std::int32_t writer = 0, reader = 0;
    bool atomic = false;  // it was written by atomics only, since `written`
    bool coming = false;  // a copy by `writer` is on its way
    std::uint16_t products = 0;      // on their way that read it
    std::uint32_t written_tick = 0;
  };
  std::optional<std::string> still_coming(const Cell& cell, const char* verb, const Moment& now) const;
  std::vector<Cell> cells_;
  bool on_chip_;
};

}  // namespace weft::kernel
