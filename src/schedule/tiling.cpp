// schedule(): the candidates of a group, the cheapest of them, and variants for few rows.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "schedule/code.h"
#include "schedule/model.h"
#include "schedule/schedule.h"
#include "schedule/tiler.h"
#include "schedule/tiles.h"
#include "schedule/unit.h"
#include "schedule/warps.h"

namespace weft::schedule {
namespace {

constexpr std::size_t kTiles = 8;       // shapes of a product's tile that are worked out
constexpr std::size_t kRefined = 3;     // of the cheapest, the grid is varied, too
constexpr double kPrograms = 8;         // a core: so that uneven ones even out
constexpr double kProgramWork = 20000;  // operations below which a program is not worth its start
constexpr double kAlike = 1.04;         // times as long is as long
constexpr double kShorter = 0.9;        // of the code: what is worth another choice
constexpr double kWorth = 0.9;          // of the time of what was thought of before: below it a candidate is cheaper

class Chooser {
 public:
  Chooser(const loop::Group& group, const Machine& m, const DimFacts& facts)
      : g_(group), m_(m.has_groups() ? core_of_groups(m) : m), a_(group, facts), tiler_(a_, m_) {
    const bool known = std::all_of(g_.loops.begin(), g_.loops.end(), [](const loop::Loop& l) { return l.extent.is_const(); });
    if (known) return;
    // Unknown sizes are most often a batch of one; few rows of a product have variants of their own.
    few_.emplace(group, facts, 1);
    if (tiler_.outer() && few_->extents[*tiler_.product().rows] < Analysis::kFew) few_.emplace(group, facts, Analysis::kFew);
  }

  Schedule run(const Request& request) {
    consider_all();
    Schedule s;
    std::size_t taken = 0;
    for (std::size_t k = 0; k < tried_.size() && !request.choice.empty(); ++k) {
      if (print(tried_[k].candidate.record) == request.choice) taken = k, s.tuned = true;
    }
    const Tried& best = tried_[taken];
    if (tiler_.outer() && !g_.loops[*tiler_.product().rows].extent.is_const()) few_rows(s, best.choice);
    s.variants.push_back({std::nullopt, best.candidate.record});
    s.cost = best.candidate.cost;
    s.few = best.candidate.few;
    s.instructions = best.candidate.instructions;
    s.why = fmt::format("{}: {}", tiler_.kind(best.candidate.record), print(best.candidate.record));
    if (const int n = stages(m_, a_, best.candidate.record); n > 1) s.why += fmt::format("; {} blocks of operands at once", n);
    if (request.candidates) {
      for (Tried& t : tried_) s.candidates.push_back(std::move(t.candidate));
    }
    return s;
  }

 private:
  struct Tried {
    Choice choice;
    Candidate candidate;
  };

  // Work of a program, when `parts` programs a core are wanted.
  double program_work(const Record& r, double parts) const { return std::max(kProgramWork, tiler_.known_work(r) / (parts * m_.cores)); }

  void consider(Choice c, double parts) {
    c.program_work = m_.has_groups() ? 0 : program_work(tiler_.record(c), parts);
    Record record = tiler_.record(c);
    if (!tried_.empty() && !tiler_.fits_on_chip(record)) return;
    if (tried_.size() == 1 && !tiler_.fits_on_chip(tried_.front().candidate.record)) tried_.clear();
    for (const Tried& t : tried_) {
      if (t.candidate.record == record) return;
    }
    const Cost cost = model(a_, m_, record);
    const Cost few = few_ ? model(*few_, m_, record) : cost;
    const double code = instructions(a_, m_, record);
    tried_.push_back({c, {std::move(record), cost, few, code}});
  }

  // Cheapest first; among equals, or nearly, the one that was thought of first.
  void sort() {
    std::vector<Tried> sorted;
    while (!tried_.empty()) {
      auto best = tried_.begin();
      for (auto it = tried_.begin(); it != tried_.end(); ++it) {
        if (it->candidate.score() < kWorth * best->candidate.score()) best = it;
      }
      sorted.push_back(std::move(*best));
      tried_.erase(best);
    }
    tried_ = std::move(sorted);
  }

  void consider_all() {
    for (const Choice& c : tiles()) consider(c, kPrograms);
    sort();
    std::vector<Choice> refined;
    for (std::size_t k = 0; k < std::min(kRefined, tried_.size()); ++k) refined.push_back(tried_[k].choice);
    for (const Choice& c : refined) {
      for (const double parts : {16.0, 4.0, 2.0, 1.0, 32.0}) consider(c, parts);
    }
    sort();
    shorten(tried_.front().choice);
    sort();
    take_shortest();
  }

  // Less code for the same tiles.
  void shorten(Choice best) {
    for (const bool unroll : {true, false}) {
      for (const bool masked : {false, true}) {
        for (const bool apart : {false, true}) {
          Choice c = best;
          c.unroll = unroll, c.masked = masked, c.apart = apart;
          consider(c, kPrograms);
        }
      }
    }
  }

  // Of what takes as long as the cheapest, as far as the model can tell, that with the least code for the same tiles.
  void take_shortest() {
    const Choice best = tried_.front().choice;
    const Cost cost = tried_.front().candidate.cost, few = tried_.front().candidate.few;
    auto shortest = tried_.begin();
    for (auto it = tried_.begin(); it != tried_.end(); ++it) {
      const Candidate& c = it->candidate;
      const bool same = it->choice.rows == best.rows && it->choice.row_tile == best.row_tile &&
                        it->choice.lane_tile == best.lane_tile && it->choice.vectors == best.vectors;
      const bool alike = same && c.cost.total() <= kAlike * cost.total() && c.few.total() <= kAlike * few.total();
      if (alike && c.instructions < kShorter * shortest->candidate.instructions) shortest = it;
    }
    std::rotate(tried_.begin(), shortest, shortest + 1);
  }

  std::vector<Choice> tiles() const {
    std::vector<Choice> choices;
    if (!tiler_.has_panels()) {
      for (const int vectors : {4, 2, 1, 8}) choices.push_back(pointwise(vectors));
      return choices;
    }
    if (!tiler_.outer()) {
      const double rows = tiler_.product().rows ? a_.extents[*tiler_.product().rows] : 1;
      for (const RegisterTile& t : tiles_of(std::nullopt, rows, 0, kTiles)) choices.push_back(product(std::nullopt, t));
      return choices;
    }
    std::vector<loop::LoopId> rows{*tiler_.product().rows};
    for (loop::LoopId l : tiler_.product().others) {
      if (g_.loops[l].extent.is_const() && g_.loops[rows.front()].extent.is_const()) rows.push_back(l);
    }
    if (tiler_.fits_unit()) {
      for (const RegisterTile& t : unit_tiles(a_.extents[rows.front()], a_.extents[tiler_.product().lanes])) {
        choices.push_back(product(rows.front(), t));
      }
    }
    for (loop::LoopId l : rows) {
      const std::size_t most = l == rows.front() ? kTiles : 2;
      for (const RegisterTile& t : tiles_of(l, a_.extents[l], 0, most)) choices.push_back(product(l, t));
    }
    return choices;
  }

  std::vector<RegisterTile> tiles_of(std::optional<loop::LoopId> rows, double count, int panel, std::size_t most) const {
    const int most_rows = rows ? tiler_.most_rows(*rows) : kMostRows;
    return product_tiles(m_, tiler_.product_bits(), count, a_.extents[tiler_.product().lanes], panel, most_rows, most);
  }

  static Choice pointwise(int vectors) {
    Choice c;
    c.vectors = vectors;
    return c;
  }

  static Choice product(std::optional<loop::LoopId> rows, const RegisterTile& t) {
    Choice c;
    c.rows = rows;
    c.row_tile = t.rows;
    c.lane_tile = t.lanes;
    return c;
  }

  // Few rows, when their number is only known at run time: tiles as small as they are, or rows along another loop.
  void few_rows(Schedule& s, const Choice& best) const {
    const loop::LoopId first = *tiler_.product().rows;
    const Dim rows = g_.loops[first].extent;
    const auto variant = [&](const Dim& size, std::int64_t lo, std::int64_t hi, loop::LoopId along, double count) {
      const SymbolRange range = a_.facts.range(size);
      if (range.lo > hi || range.hi < lo) return;
      Choice c = product(along, tiles_of(along, count, best.lane_tile, 1).front());
      c.unroll = best.unroll, c.apart = best.apart;
      c.masked = best.masked || (lo < hi && along == first);  // of all these counts, one fills its tile
      c.program_work = program_work(tiler_.record(c), 8);
      s.variants.push_back({Guard{size, lo, hi}, tiler_.record(c)});
    };
    if (tiler_.product().others.empty()) {
      variant(rows, 1, 1, first, 1);
      variant(rows, 2, 6, first, 6);
      return;
    }
    const loop::LoopId second = tiler_.product().others.front();
    variant(rows * g_.loops[second].extent, 1, 1, first, 1);
    variant(rows, 1, 3, second, a_.extents[second]);
  }

  const loop::Group& g_;
  const Machine m_;
  Analysis a_;
  std::optional<Analysis> few_;  // the same with small sizes, when some are not known
  Tiler tiler_;
  std::vector<Tried> tried_;
};

}  // namespace

Schedule schedule(const loop::Group& group, const Machine& machine, const DimFacts& facts, const Request& request) {
  return Chooser(group, machine, facts).run(request);
}

}  // namespace weft::schedule
