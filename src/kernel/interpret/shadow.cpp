#include "kernel/interpret/shadow.h"

#include <fmt/format.h>

namespace weft::kernel {

std::optional<std::string> Shadow::still_coming(const Cell& cell, const char* verb, const Moment& now) const {
  return fmt::format("a race: thread {} {} where a copy by thread {} is on its way, which has not waited for it", now.thread, verb, cell.writer);
}

std::optional<std::string> Shadow::read(std::int64_t element, const Moment& now) {
  Cell& c = cells_[static_cast<std::size_t>(element)];
  if (c.coming) return still_coming(c, "reads", now);
  if (on_chip_ && c.written < now.program_epoch) {
    return fmt::format("on-chip memory that was never written is read by thread {}", now.thread);
  }
  if (!on_chip_ && c.written != 0 && c.written < now.program_epoch) {
    return "a race: an element that another program wrote is read";
  }
  if (c.written == now.epoch && c.writer != now.thread) {
    return fmt::format("a race: thread {} reads what thread {} wrote, without a barrier between", now.thread, c.writer);
  }
  c.reader = c.read == now.epoch && c.reader != now.thread ? kSeveral : now.thread;
  c.read = now.epoch;
  if (c.first_read == 0) c.first_read = now.epoch;
  return std::nullopt;
}

std::optional<std::string> Shadow::ask(std::int64_t element, const Moment& now) {
  if (auto wrong = write(element, now)) return wrong;
  cells_[static_cast<std::size_t>(element)].coming = true;
  return std::nullopt;
}

void Shadow::arrive(std::int64_t element, const Moment& now) {
  Cell& c = cells_[static_cast<std::size_t>(element)];
  c.coming = false;
  c.written = now.epoch;
  c.written_tick = now.tick;
  c.writer = now.thread;
}

std::optional<std::string> Shadow::begin_product(std::int64_t element, const Moment& now, std::span<const std::uint32_t> fenced) {
  Cell& c = cells_[static_cast<std::size_t>(element)];
  if (c.coming) return still_coming(c, "reads", now);
  if (c.written < now.program_epoch) return "on-chip memory that was never written is read by a product";
  if (c.written == now.epoch) return fmt::format("a race: a product reads what thread {} wrote, without a barrier between", c.writer);
  if (fenced[static_cast<std::size_t>(c.writer)] <= c.written_tick) {
    return fmt::format("a race: a product reads what thread {} wrote, which has not fenced it before the barrier", c.writer);
  }
  ++c.products;
  return std::nullopt;
}

void Shadow::end_product(std::int64_t element, const Moment& now) {
  Cell& c = cells_[static_cast<std::size_t>(element)];
  --c.products;
  c.reader = kSeveral;
  c.read = now.epoch;
  if (c.first_read == 0) c.first_read = now.epoch;
}

std::optional<std::string> Shadow::write(std::int64_t element, const Moment& now) {
  Cell& c = cells_[static_cast<std::size_t>(element)];
  if (c.coming) return still_coming(c, "writes", now);
  if (c.products > 0) return fmt::format("a race: thread {} writes what a product on its way reads", now.thread);
  if (!on_chip_ && c.written != 0 && c.written < now.program_epoch) {
    return "a race: an element that another program wrote is written";
  }
  if (!on_chip_ && c.first_read != 0 && c.first_read < now.program_epoch) {
    return "a race: an element that another program read is written";
  }
  if (c.written == now.epoch && c.writer != now.thread) {
    return fmt::format("a race: thread {} writes where thread {} wrote, without a barrier between", now.thread, c.writer);
  }
  if (c.read == now.epoch && c.reader != now.thread) {
    return fmt::format("a race: thread {} writes what {} read, without a barrier between", now.thread,
                       c.reader == kSeveral ? "other threads" : fmt::format("thread {}", c.reader));
  }
  c.written = now.epoch;
  c.written_tick = now.tick;
  c.writer = now.thread;
  c.atomic = false;
  return std::nullopt;
}

std::optional<std::string> Shadow::atomic(std::int64_t element, const Moment& now) {
  Cell& c = cells_[static_cast<std::size_t>(element)];
  if (on_chip_ && c.written < now.program_epoch) {
    return fmt::format("on-chip memory that was never written is read by thread {}", now.thread);
  }
  const Cell before = c;
  if (c.atomic) c.written = 0;
  const auto wrong = write(element, now);
  if (wrong) c = before;
  c.atomic = before.atomic || before.written < now.epoch;
  return wrong;
}

}  // namespace weft::kernel
