// What follows the sums of a tile, row by row: the sums go to on-chip memory, and a loop over the rows reads them back. Its
// code is that of one row, and rows past the end are not run at all.
#include "tile/lower/lowerer.h"

namespace weft::tile {

// The rows of which the rest of a body is done apart: it begins after a loop and does nothing but store.
std::optional<LoopId> Lowerer::finished_apart(const std::vector<Stmt>& body, std::size_t from) const {
  if (from == 0 || body[from - 1].kind != Stmt::Kind::Loop || apart_ >= 0) return std::nullopt;
  for (std::size_t i = from; i < body.size(); ++i) {
    const bool plain = body[i].kind == Stmt::Kind::Store || (body[i].kind == Stmt::Kind::Local && !changing_.count(body[i].id));
    if (!plain) return std::nullopt;
  }
  for (LoopId l : stack_) {
    if (record_.loops[l].apart && record_.loops[l].axis == 0 && tile(l) > 1) return l;
  }
  return std::nullopt;
}

// Stores the locals that the rest of the body reads and that differ from row to row; returns the buffer of each.
std::vector<std::pair<LocalId, int>> Lowerer::keep_sums(const std::vector<Stmt>& body, std::size_t from, LoopId rows) {
  std::set<LocalId> read;
  const auto add = [&](ExprId e) {
    const Depends& d = depends(e);
    for (std::size_t l = 0; l < d.locals.size(); ++l) {
      if (d.locals[l]) read.insert(static_cast<LocalId>(l));
    }
  };
  for (std::size_t i = from; i < body.size(); ++i) {
    add(body[i].value);
    for (ExprId e : body[i].index) add(e);
  }
  std::vector<std::pair<LocalId, int>> kept;
  for (LocalId id : read) {
    const auto it = locals_.find(id);
    if (it == locals_.end()) continue;
    const Type type = b_.type(it->second.value);
    if (type.rank != 2 || type.shape[0] != tile(rows)) continue;
    const int lanes = type.shape[1];
    const int buffer = b_.add_buffer({type.dtype, ssa::Space::OnChip, true, true, std::int64_t{tile(rows)} * lanes});
    const ValueId row = b_.mul(b_.iota(tile(rows), 1, 0), b_.constant_i64(lanes));
    const Type index{DType::I64, type.rank, type.shape};
    b_.store(buffer, it->second.value, as(lanes > 1 ? b_.add(row, b_.iota(1, lanes, 1)) : row, index));
    kept.emplace_back(id, buffer);
  }
  return kept;
}

void Lowerer::finish_apart(const std::vector<Stmt>& body, std::size_t from, LoopId rows) {
  const auto kept = keep_sums(body, from, rows);
  const Active tiles = *active_[rows];
  ValueId count = b_.constant_i64(tile(rows));
  if (tiles.mask >= 0) count = b_.min(count, b_.scalar(ScalarOp::Sub, {size(g_.loops[rows].extent), tiles.base}));
  const auto frames = frames_;
  const auto locals = locals_;
  const auto loop = b_.begin_for(b_.constant_i64(0), count, b_.constant_i64(1), {});
  for (auto& frame : frames_) {
    std::erase_if(frame, [&](const auto& known) {
      const Depends& d = depends(known.first);
      return d.loops[rows] || std::any_of(kept.begin(), kept.end(), [&](const auto& k) { return d.locals[k.first]; });
    });
  }
  frames_.emplace_back();
  apart_ = rows;
  const ValueId row = b_.add(tiles.base, loop.iv);
  active_[rows] = Active{row, row, -1};
  for (const auto& [id, buffer] : kept) {
    Local& local = locals_.at(id);
    const int lanes = b_.type(local.value).shape[1];
    const ValueId start = b_.mul(loop.iv, b_.constant_i64(lanes));
    local.type.shape[0] = 1;
    local.value = as(b_.load(buffer, lanes > 1 ? b_.add(start, b_.iota(1, lanes, 1)) : start), local.type);
  }
  for (std::size_t i = from; i < body.size(); ++i) statement(body[i]);
  b_.end_for({});
  apart_ = -1;
  active_[rows] = tiles;
  frames_ = frames;
  locals_ = locals;
}

}  // namespace weft::tile
