#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"

namespace fermata {

// The format of Page::bytes (docs: README of this folder), and its translation to and from libllama's state blob.
//
//   page  | magic version | fingerprint[16] | begin end | body bytes | xxh64 of all else | body
//   body  | layer 0: keys of begin, begin+1, … end-1 | layer 1: … | layer 0: values … |      rows in position order
//
// A body says nothing that we do not know better: sizes and types come from the layout of the running model. So a lying
// page cannot reach libllama's parser, and equal states give equal bytes wherever their cells stood.
class KvLayout {
 public:
  // Learnt from libllama's blob of one cell. kUnsupported if the blob is of a shape that we do not know.
  static Result<KvLayout> learn(std::span<const std::byte> blob_of_one_cell);

  std::size_t blob_bytes(std::size_t n_cells) const;
  std::size_t body_bytes(std::size_t n_cells) const { return n_cells * row_bytes_; }
  // All rows (keys and values of every layer) of one cell.
  std::size_t row_bytes() const { return row_bytes_; }

  // Appends the body made of a blob that holds exactly the positions [begin, end), in any order. False if the blob is
  // not what the layout says.
  bool blob_to_body(std::span<const std::byte> blob, Position begin, Position end, std::vector<std::byte>& out) const;
  std::vector<std::byte> body_to_blob(std::span<const std::byte> body, Position begin, Position end, SeqId seq) const;

 private:
  struct Part {  // the keys or the values of one layer
    std::int32_t type = 0;
    std::uint64_t row_bytes = 0;
  };
  std::vector<Part> parts_;  // keys of all layers, then values of all layers
  std::uint32_t magic_ = 0;
  std::uint32_t n_layers_ = 0;
  std::size_t row_bytes_ = 0;
};

inline constexpr std::size_t kPageHeaderBytes = 56;

// Writes the header into the first kPageHeaderBytes of page.bytes, the body standing behind it.
void seal_page(Page& page, std::string_view fingerprint_hex);

// kInvalidArgument, saying which field, unless the page is whole, of this fingerprint and of this layout.
Result<std::span<const std::byte>> open_page(const Page& page, std::string_view fingerprint_hex,
                                             const KvLayout& layout);

}  // namespace fermata
