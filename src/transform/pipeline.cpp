#include "transform/pipeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/knobs.h"
#include "base/log.h"
#include "base/text.h"
#include "transform/choices.h"
#include "transform/passes.h"

namespace weft::transform {

const std::vector<Pass>& passes() {
  static const std::vector<Pass> table{
      {"inline-composites", "replaces composite regions by their bodies", inline_composites},
      {"shapes", "replaces integer tensors whose elements are known as sizes by shape values", fold_shapes},
      {"quantised", "products of quantised values become products of their bytes, rescaled after the sum", multiply_bytes},
      {"fold", "evaluates nodes of constants, within a bound of bytes", fold_constants},
      {"sink-constants", "captures what no iteration changes, moves captured constants into bodies", sink_constants},
      {"quantised-bodies", "the same where weights are constants only now: of recurrences, or put together from parts", multiply_bytes},
      {"simplify", "algebraic rules, to a fixed point", simplify},
      {"requantise", "what becomes bytes after products of bytes: factors taken together (rounds elsewhere), orders kept", requantise},
      {"fold-scale", "scales per channel after products with constant weights into the weights (rounds elsewhere)", fold_scale},
      {"split-axes", "keeps channels and positions apart that a group normalisation joins", split_axes},
      {"layout", "convolutions to channels-last, with the transposes moved away", choose_layouts},
      {"simplify-layout", "algebraic rules on what the layout pass made", simplify},
      {"phases", "transposed convolutions as convolutions whose channels are the phases of their results", split_phases},
      {"split-contractions", "sums over joined axes run over them apart", split_contractions},
      {"fold-layout", "evaluates what the layout pass made of constants", fold_constants},
      {"tables", "quantised values that are a function of another one alone are looked up by its 256 values", look_up},
      {"narrow-weights", "weights of products in bf16, int8 or int4, where that was asked for", narrow_weights},
      {"winograd", "3 x 3 convolutions in Winograd's form where that is cheaper, at precision high", winograd},
      {"round-products", "products of f32 from bf16, at precision medium, where the machine gains by it", round_products},
      {"split-products", "products of f32 as sums of products of bf16 parts, as exact, where the machine gains by it", split_products},
      {"split-sums", "long reductions with few results, and such dots, in parts that run side by side", split_sums},
      {"data-sizes", "non-zero and unique elements by running sums, sorts and scatters", expand_data_sizes},
      {"widen", "casts around ops that kernels only do on elements of whole bytes", widen},
      {"cse", "merges equal pure nodes", merge_equal},
      {"dce", "removes what nothing needs", remove_dead},
  };
  return table;
}

std::optional<Precision> parse_precision(std::string_view name) { return chosen(kPrecisions, name); }
std::optional<Weights> parse_weights(std::string_view name) { return chosen(kWeights, name); }

namespace {

// Those that the environment switches off; one that does not exist is a warning.
const std::vector<std::string>& passes_off_by_knob() {
  static const std::vector<std::string> off = [] {
    std::vector<std::string> known, named = knob_names(Knob::PassesOff);
    for (const Pass& pass : passes()) known.push_back(pass.name);
    for (const std::string& name : named) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      const std::string hint = did_you_mean(name, known);
      warn(fmt::format("{}: there is no pass '{}'{}{}", info(Knob::PassesOff).variable, name, hint.empty() ? "" : "; ", hint));
    }
    return named;
  }();
  return off;
}

}  // namespace

PassOptions::PassOptions() : off(passes_off_by_knob()) {
  const std::int64_t most = knob_integer(Knob::PassLimit);
  if (most < static_cast<std::int64_t>(passes().size())) limit = static_cast<int>(most);
}

Result<graph::Graph> optimize(const graph::Graph& graph, const PassOptions& options) {
  graph::Graph current = graph;
  int count = 0;
  for (const Pass& pass : passes()) {
    if (options.limit >= 0 && count >= options.limit) break;
    if (std::find(options.off.begin(), options.off.end(), pass.name) != options.off.end()) continue;
    ++count;
    std::size_t before = current.nodes().size();
    auto next = pass.run(current, options);
    if (!next.ok()) return next.error();
    current = std::move(*next);
    if (log_enabled("passes")) {
      log("passes", fmt::format("{}: {} -> {} nodes", pass.name, before, current.nodes().size()));
    }
    if (options.verify_each) {
      WEFT_TRY(graph::verify(current));
      graph::Sidecar sidecar;
      graph::collect_constants(current, sidecar);
      std::string text = graph::print(current);
      graph::Graph again = WEFT_TRY(graph::parse(text, sidecar));
      if (graph::print(again) != text) return internal_error(fmt::format("after '{}' the graph does not print and parse alike", pass.name));
    }
  }
  return current;
}

}  // namespace weft::transform
