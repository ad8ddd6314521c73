#include "cli/race.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "cli/work.h"

namespace weft::cli {
namespace {

constexpr std::size_t kLeastPairs = 8, kMostPairs = 400;
constexpr double kGain = 0.97;    // of the time: less is not told from noise
constexpr double kMostWins = 0.75;  // of the pairs

std::vector<double> ratios(const Race::Pairs& p) {
  std::vector<double> r;
  for (std::size_t k = 0; k < p.first.size(); ++k) {
    if (p.first[k] > 0) r.push_back(p.second[k] / p.first[k]);
  }
  std::sort(r.begin(), r.end());
  return r;
}

}  // namespace

double Race::Pairs::median_ratio() const {
  const std::vector<double> r = ratios(*this);
  return r.empty() ? 1 : r[r.size() / 2];
}

bool Race::Pairs::second_wins() const {
  const std::vector<double> r = ratios(*this);
  const auto wins = std::count_if(r.begin(), r.end(), [](double x) { return x < 1; });
  return r.size() >= kLeastPairs && r[r.size() / 2] < kGain && static_cast<double>(wins) >= kMostWins * static_cast<double>(r.size());
}

Result<Race> race(const runtime::Executable& first, const runtime::Executable& second, const std::vector<Tensor>& inputs,
                  int threads, const std::vector<int>& which, double seconds) {
  Race race;
  race.kernels.resize(which.empty() ? 0 : 1 + static_cast<std::size_t>(*std::max_element(which.begin(), which.end())));
  std::vector<Tensor> outputs[2];
  const runtime::Executable* const programs[] = {&first, &second};
  runtime::RunOptions options;
  options.threads = threads;
  for (int p : {0, 1}) WEFT_TRY(programs[p]->run(inputs, outputs[p], options));
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto more = [&] {
    const std::size_t done = race.whole.first.size();
    return done < kLeastPairs || (done < kMostPairs && std::chrono::duration<double>(Clock::now() - start).count() < seconds);
  };
  while (more()) {
    const int leads = static_cast<int>(race.whole.first.size() % 2);  // neither always goes first
    for (int p : {leads, 1 - leads}) {
      runtime::Profile profile;
      options.profile = &profile;
      WEFT_TRY(programs[p]->run(inputs, outputs[p], options));
      const std::vector<double> took = kernel_seconds(programs[p]->plan(), profile);
      std::vector<double> sums(race.kernels.size(), 0);
      for (std::size_t k = 0; k < std::min(took.size(), which.size()); ++k) sums[static_cast<std::size_t>(which[k])] += took[k];
      for (std::size_t k = 0; k < sums.size(); ++k) {
        (p == 0 ? race.kernels[k].first : race.kernels[k].second).push_back(sums[k]);
      }
      (p == 0 ? race.whole.first : race.whole.second).push_back(std::accumulate(took.begin(), took.end(), 0.0));
    }
  }
  return race;
}

}  // namespace weft::cli
