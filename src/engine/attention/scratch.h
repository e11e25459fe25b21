#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace fermata::attention {

// A float array that only grows, aligned to a cache line, never initialised.
class ScratchArray {
 public:
  // Throws std::bad_alloc; then it is empty.
  float* at_least(std::size_t n) {
    if (n > size_) {
      const std::size_t bytes = (n * sizeof(float) + 63) / 64 * 64;
      size_ = 0;
      data_.reset(static_cast<float*>(std::aligned_alloc(64, bytes)));
      if (data_ == nullptr) throw std::bad_alloc();
      size_ = bytes / sizeof(float);
    }
    return data_.get();
  }

 private:
  struct Free {
    void operator()(float* data) const { std::free(data); }
  };
  std::unique_ptr<float, Free> data_;
  std::size_t size_ = 0;
};

// What one thread keeps between blocks. The largest is `scores`: cells times lanes, at most kScoresMax floats unless
// one vector of lanes alone needs more.
struct Scratch {
  static constexpr std::size_t kScoresMax = std::size_t{4} << 20;

  ScratchArray queries;  // [key dims][lanes], scaled
  ScratchArray scores;   // [cells][lanes], or [heads][padded cells]
  ScratchArray weights;  // [heads][padded cells]
  ScratchArray tile;     // [kTileCells][dims], or [key dims][kTileCells]
  ScratchArray rows;     // a few rows on their way through a transposition
  ScratchArray sums;     // [value dims][lanes]
};

inline Scratch& thread_scratch() {
  thread_local Scratch scratch;
  return scratch;
}

}  // namespace fermata::attention
