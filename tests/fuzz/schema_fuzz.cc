// Any text as a JSON schema: it is refused, or becomes a grammar that compiles or says why not; the conversion, which
// is llama-common's, never crashes, hangs or overflows its stack.
#include <cstdint>
#include <string_view>

#include "engine/llama/sampling/json_schema.h"
#include "engine/sampling/grammar/grammar.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto grammar = fermata::json_schema_grammar({reinterpret_cast<const char*>(data), size});
  if (grammar) (void)fermata::Grammar::parse(*grammar, {});
  return 0;
}
