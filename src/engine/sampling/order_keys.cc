#include "engine/sampling/order_keys.h"

#include <algorithm>

#include <hwy/contrib/sort/vqsort.h>

namespace fermata {

void sort_keys(std::vector<std::uint64_t>& keys) {
  constexpr std::size_t kShort = 256;
  if (keys.size() <= kShort) {
    std::sort(keys.begin(), keys.end());
    return;
  }
  thread_local hwy::Sorter sorter;
  sorter(keys.data(), keys.size(), hwy::SortAscending());
}

}  // namespace fermata
