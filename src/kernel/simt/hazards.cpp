#include "kernel/simt/hazards.h"

#include "tile/tile.h"

namespace weft::kernel::simt {

Hazards::Hazards(const ssa::Function& tile_function) : f_(tile_function), now_(tile_function.buffers.size()) {
  for (const ssa::Buffer& b : f_.buffers) read_back_.push_back(b.space == ssa::Space::OnChip || (b.read && b.written));
}

bool Hazards::write_needs_barrier(int buffer, const ssa::Block* place, bool fixed, bool in_loop) const {
  const Access& a = now_[buffer];
  if (read_back_[buffer]) return a.read || a.written;
  if (!fixed) return a.written || in_loop;
  return a.written && a.place != place;
}

void Hazards::barrier() {
  for (Access& a : now_) a = {};
}

void Hazards::meet(const State& other) {
  for (std::size_t b = 0; b < other.size(); ++b) {
    Access& a = now_[b];
    a.read = a.read || other[b].read;
    a.place = a.written && other[b].written && a.place != other[b].place ? nullptr : other[b].written ? other[b].place : a.place;
    a.written = a.written || other[b].written;
  }
}

void Hazards::collect(const ssa::Block& block) {
  for (const ssa::Inst& inst : block.insts) {
    const auto op = static_cast<tile::Op>(inst.op);
    const bool atomic = tile::as_atomic(op).has_value();
    if ((op == tile::Op::Load || atomic) && read_back_[inst.imm]) now_[inst.imm].read = true;
    if ((op == tile::Op::Store || atomic) && read_back_[inst.imm]) now_[inst.imm].written = true;
    for (const ssa::Block& region : inst.regions) collect(region);
  }
}

void Hazards::enter_loop(const ssa::Block& body) {
  collect(body);
  // Scratch that an earlier iteration left behind.
  for (std::size_t b = f_.buffers.size(); b < now_.size(); ++b) now_[b].read = now_[b].written = true;
}

}  // namespace weft::kernel::simt
