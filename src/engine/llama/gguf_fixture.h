#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_fixture.h"

// For tests: GGUF files written byte by byte, so that they can lie.
namespace fermata::test {

class GgufBytes {
 public:
  template <class Number>
  GgufBytes& number(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  GgufBytes& string(std::string_view text) {
    number<std::uint64_t>(text.size());
    bytes_ += text;
    return *this;
  }
  GgufBytes& begin(std::uint64_t n_tensors, std::uint64_t n_keys) {
    bytes_ += "GGUF";
    return number<std::uint32_t>(3).number(n_tensors).number(n_keys);
  }
  GgufBytes& u32(std::string_view key, std::uint32_t value) {
    return string(key).number<std::uint32_t>(4).number(value);
  }
  GgufBytes& f32(std::string_view key, float value) { return string(key).number<std::uint32_t>(6).number(value); }
  GgufBytes& text(std::string_view key, std::string_view value) {
    return string(key).number<std::uint32_t>(8).string(value);
  }
  GgufBytes& texts(std::string_view key, const std::vector<std::string>& values) {
    string(key).number<std::uint32_t>(9).number<std::uint32_t>(8).number<std::uint64_t>(values.size());
    for (const auto& value : values) string(value);
    return *this;
  }
  // An f32 matrix.
  GgufBytes& tensor(std::string_view name, std::uint64_t columns, std::uint64_t rows, std::uint64_t offset) {
    string(name).number<std::uint32_t>(2).number(columns).number(rows);
    return number<std::uint32_t>(0).number(offset);
  }
  GgufBytes& pad(std::size_t alignment = 32) {
    while (bytes_.size() % alignment != 0) bytes_ += '\0';
    return *this;
  }
  GgufBytes& data(std::size_t n_bytes, char value) {
    bytes_.append(n_bytes, value);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// What small_gguf() is made of; tests change one thing.
struct SmallGguf {
  std::string arch = "llama";
  std::string license = "apache-2.0";
  std::string chat_template = "{{ messages }}";
  std::string third_token = "c";
  float rope_base = 10000;
  std::uint32_t n_heads = 4;
  std::uint32_t n_heads_kv = 2;
  std::uint32_t n_layers = 2;
  char weight = 1;

  std::string bytes() const {
    GgufBytes out;
    out.begin(2, 12)
        .text("general.architecture", arch)
        .text("general.license", license)
        .text("general.name", "small")
        .u32("llama.block_count", n_layers)
        .u32("llama.context_length", 256)
        .u32("llama.embedding_length", 16)
        .u32("llama.attention.head_count", n_heads)
        .u32("llama.attention.head_count_kv", n_heads_kv)
        .f32("llama.rope.freq_base", rope_base)
        .text("tokenizer.ggml.model", "gpt2")
        .text("tokenizer.chat_template", chat_template)
        .texts("tokenizer.ggml.tokens", {"a", "b", third_token})
        .tensor("token_embd.weight", 16, 4, 0)
        .tensor("output.weight", 16, 2, 256)
        .pad()
        .data(256, 7)
        .data(128, weight);
    return out.bytes();
  }
};

}  // namespace fermata::test
