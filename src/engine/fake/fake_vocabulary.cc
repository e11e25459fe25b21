#include "engine/fake/fake_vocabulary.h"

#include <algorithm>

#include "base/check.h"

namespace fermata {

namespace {

// \xf0\x9f\x98 is the beginning of many emoji, \xe4\xbd the beginning of 你 and \xa0 its end.
constexpr std::string_view kPieces[] = {
    "the",          " the",  " a",       " and", " of",  " is",    " in",  "ing",  "er",      "Paris",   " Paris",
    "ari",          " once", " time",    " cat", " dog", " story", " yes", " no",  "User",    "\nUser:", "\n\n",
    "```",          "{\"",   "\":",      "\"}",  "  ",   "你",     "好",   "世界", "，",      "。",      "\xe4\xbd",
    "\xf0\x9f\x98", "😀",     "👍🏽", "é",    "ß",    "1",      "12",   "100",  "</tool>", "Once",    " upon"};

constexpr std::string_view kMarkers[] = {"<|begin|>", "<|user|>", "<|answer|>", "<|end|>"};

using Pieces = std::map<std::string, TokenId, std::less<>>;

struct Piece {
  TokenId token{};
  std::size_t n_bytes = 0;  // 0: there is none
};

// The longest of `pieces` at the beginning of `text`.
Piece longest_piece(const Pieces& pieces, std::string_view text, std::size_t n_max) {
  for (std::size_t n = std::min(n_max, text.size()); n > 0; --n) {
    const auto piece = pieces.find(text.substr(0, n));
    if (piece != pieces.end()) return {piece->second, n};
  }
  return {};
}

}  // namespace

FakeVocabulary::FakeVocabulary() {
  for (int value = 0; value < 256; ++value) bytes_.emplace_back(1, static_cast<char>(value));
  for (const std::string_view piece : kPieces) {
    if (piece.size() > 1) bytes_.emplace_back(piece);
    n_piece_bytes_max_ = std::max(n_piece_bytes_max_, piece.size());
  }
  n_plain_ = n_tokens();
  for (std::int32_t i = 0; i < n_plain_; ++i) plain_.emplace(bytes_[static_cast<std::size_t>(i)], TokenId{i});
  FERMATA_CHECK_EQ(plain_.size(), bytes_.size());
  for (const std::string_view marker : kMarkers) {
    markers_.emplace(marker, TokenId{n_tokens()});
    bytes_.emplace_back();
    n_piece_bytes_max_ = std::max(n_piece_bytes_max_, marker.size());
  }
}

std::string_view FakeVocabulary::bytes(TokenId token) const {
  FERMATA_CHECK(contains(token));
  return bytes_[static_cast<std::size_t>(raw(token))];
}

std::vector<TokenId> FakeVocabulary::tokenize(std::string_view text, Markers markers) const {
  std::vector<TokenId> tokens;
  while (!text.empty()) {
    Piece piece = markers == Markers::kParse ? longest_piece(markers_, text, n_piece_bytes_max_) : Piece{};
    if (piece.n_bytes == 0) piece = longest_piece(plain_, text, n_piece_bytes_max_);
    FERMATA_CHECK_LT(std::size_t{0}, piece.n_bytes);  // every single byte is a piece
    tokens.push_back(piece.token);
    text.remove_prefix(piece.n_bytes);
  }
  return tokens;
}

std::vector<SpecialText> FakeVocabulary::special_texts() const {
  std::vector<SpecialText> texts;
  for (const auto& [text, token] : markers_) texts.push_back({text});
  return texts;
}

}  // namespace fermata
