#include "compile/placement.h"

#include <algorithm>
#include <cmath>

#include "compile/min_cut.h"

namespace weft::compiler {

Placement priced(std::vector<bool> on_device, const std::vector<KernelTimes>& kernels, const std::vector<Handed>& values) {
  Placement result;
  for (std::size_t k = 0; k < kernels.size(); ++k) result.us += on_device[k] ? kernels[k].device : kernels[k].here;
  const auto any = [&](const std::vector<int>& of, bool there) {
    return std::any_of(of.begin(), of.end(), [&](int k) { return on_device[k] == there; });
  };
  for (const Handed& v : values) {
    const bool up = (v.written_here || any(v.writers, false)) && any(v.readers, true);
    const bool down = any(v.writers, true) && (v.read_here || any(v.readers, false));
    result.copies += up + down;
    result.copies_us += (up + down) * v.copy_us;
  }
  result.us += result.copies_us;
  result.on_device = std::move(on_device);
  return result;
}

Placement place(const std::vector<KernelTimes>& kernels, const std::vector<Handed>& values) {
  constexpr auto kHere = MinCut::kFirst, kDevice = MinCut::kSecond;
  MinCut cut;
  std::vector<MinCut::Node> nodes;
  for (const KernelTimes& k : kernels) {
    const MinCut::Node node = nodes.emplace_back(cut.add_node());
    std::isfinite(k.here) ? cut.add_edge(node, kDevice, k.here) : cut.forbid(node, kDevice);
    std::isfinite(k.device) ? cut.add_edge(kHere, node, k.device) : cut.forbid(kHere, node);
  }
  for (const Handed& v : values) {
    // Up: a writer here, a reader on the device. Each side's node is where one of them is, so that one edge costs once.
    const MinCut::Node from_here = cut.add_node(), to_device = cut.add_node(), from_device = cut.add_node(), to_here = cut.add_node();
    cut.add_edge(from_here, to_device, v.copy_us);
    cut.add_edge(to_here, from_device, v.copy_us);
    if (v.written_here) cut.forbid(kHere, from_here);
    if (v.read_here) cut.forbid(kHere, to_here);
    for (int k : v.writers) {
      cut.forbid(nodes[k], from_here);
      cut.forbid(from_device, nodes[k]);
    }
    for (int k : v.readers) {
      cut.forbid(to_device, nodes[k]);
      cut.forbid(nodes[k], to_here);
    }
  }
  const std::vector<bool> second = cut.solve();
  std::vector<bool> on_device;
  for (MinCut::Node node : nodes) on_device.push_back(second[node]);
  return priced(std::move(on_device), kernels, values);
}

}  // namespace weft::compiler
