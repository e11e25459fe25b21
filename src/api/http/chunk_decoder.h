#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fermata::api {

// A chunked request body, byte by byte. Strict: CRLF only, at most 8 digits of size. Chunk extensions and trailers are
// read over and bounded: a trailer must not add to headers that were already judged.
class ChunkDecoder {
 public:
  ChunkDecoder(std::size_t body_bytes_max, std::size_t extra_bytes_max)
      : body_bytes_max_(body_bytes_max), extra_bytes_max_(extra_bytes_max) {}

  enum class State { kMore, kDone, kMalformed, kTooLarge };
  // Appends data to `body`; `consumed` is how many bytes of the input belong to this body.
  State put(std::string_view bytes, std::size_t& consumed, std::string& body);

 private:
  enum class Place {
    kSizeFirst,
    kSize,
    kExtension,
    kSizeLf,
    kData,
    kDataCr,
    kDataLf,
    kTrailerFirst,
    kTrailer,
    kTrailerLf,
    kEndLf,
    kEnd
  };
  bool step(char c);  // false: malformed
  bool size_digit(char c);

  const std::size_t body_bytes_max_;
  const std::size_t extra_bytes_max_;
  Place place_ = Place::kSizeFirst;
  std::uint64_t chunk_left_ = 0;
  int n_digits_ = 0;
  std::size_t body_bytes_ = 0;
  std::size_t extra_bytes_ = 0;  // of extensions and trailers
};

}  // namespace fermata::api
