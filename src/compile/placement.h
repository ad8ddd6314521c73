// Which kernels run on a device and which in this process, where both may: the least sum of modelled times, copies
// between the two memories included. Found exactly, as a least cut (Stone, "Multiprocessor scheduling with the aid of
// network flow algorithms", 1977). Steps are taken to follow each other: what the two could do at the same time is not
// counted.
#pragma once

#include <vector>

namespace weft::compiler {

// Microseconds of a kernel on either side; infinite: it cannot run there.
struct KernelTimes {
  double here = 0, device = 0;
};

// What kernels hand on. Its bytes are copied at most once each way.
struct Handed {
  std::vector<int> writers, readers;  // kernels; one that writes a part reads too
  bool written_here = false, read_here = false;  // by the caller, a host step or control flow
  double copy_us = 0;
};

struct Placement {
  std::vector<bool> on_device;  // by kernel
  double us = 0;                // modelled: kernels and copies
  double copies_us = 0;         // of it
  int copies = 0;
};

// What the choice costs.
Placement priced(std::vector<bool> on_device, const std::vector<KernelTimes>& kernels, const std::vector<Handed>& values);

// The cheapest one; of equal ones that with the fewest kernels here.
Placement place(const std::vector<KernelTimes>& kernels, const std::vector<Handed>& values);

}  // namespace weft::compiler
