#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "ggml.h"

namespace fermata::attention {

// Moves the rows of a tensor [numbers, n1, n2] apart, each between two pages that nobody may touch, so that a read or
// write beside a row ends the process there and then. A row touches the page before it or the one behind it:
//
//   kBegin   |xxxxxxxx|row     |xxxxxxxx|row     |xxxxxxxx|
//   kEnd     |xxxxxxxx|     row|xxxxxxxx|     row|xxxxxxxx|
//
// The tensor must not be used after this object has gone.
class GuardedRows {
 public:
  enum class Border : std::uint8_t { kBegin, kEnd };

  GuardedRows(ggml_tensor* tensor, Border border)
      : tensor_(tensor),
        page_bytes_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))),
        row_pages_((row_bytes() + page_bytes_ - 1) / page_bytes_),
        n_bytes_((static_cast<std::size_t>(tensor->ne[1] * tensor->ne[2]) * (row_pages_ + 1) + 1) * page_bytes_) {
    void* memory = mmap(nullptr, n_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FERMATA_CHECK(memory != MAP_FAILED);
    memory_ = static_cast<char*>(memory);
    const std::size_t in_page = border == Border::kBegin ? 0 : row_pages_ * page_bytes_ - row_bytes();
    for (int i2 = 0; i2 < tensor->ne[2]; ++i2) {
      for (int i1 = 0; i1 < tensor->ne[1]; ++i1) {
        const auto* from = static_cast<const char*>(tensor->data) + i1 * tensor->nb[1] + i2 * tensor->nb[2];
        protect(i1, i2, PROT_READ | PROT_WRITE);
        std::memcpy(pages(i1, i2) + in_page, from, row_bytes());
      }
    }
    tensor->data = pages(0, 0) + in_page;
    tensor->nb[1] = (row_pages_ + 1) * page_bytes_;
    tensor->nb[2] = static_cast<std::size_t>(tensor->ne[1]) * tensor->nb[1];
  }
  ~GuardedRows() { munmap(memory_, n_bytes_); }
  GuardedRows(const GuardedRows&) = delete;
  GuardedRows& operator=(const GuardedRows&) = delete;

  // From now on the row itself may not be touched either.
  void forbid(int i1, int i2) { protect(i1, i2, PROT_NONE); }

 private:
  std::size_t row_bytes() const { return ggml_row_size(tensor_->type, tensor_->ne[0]); }
  char* pages(int i1, int i2) const {
    return memory_ + ((static_cast<std::size_t>(i2) * tensor_->ne[1] + i1) * (row_pages_ + 1) + 1) * page_bytes_;
  }
  void protect(int i1, int i2, int allowed) {
    FERMATA_CHECK_EQ(mprotect(pages(i1, i2), row_pages_ * page_bytes_, allowed), 0);
  }

  ggml_tensor* tensor_;
  std::size_t page_bytes_;
  std::size_t row_pages_;
  std::size_t n_bytes_;
  char* memory_ = nullptr;
};

}  // namespace fermata::attention
