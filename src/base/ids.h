#pragma once

#include <cstdint>
#include <ostream>
#include <type_traits>

// Ids are enums of their own, so that one cannot be passed for another and none takes part in arithmetic.
namespace fermata {

enum class TokenId : std::int32_t {};        // an entry of the model's vocabulary
enum class SeqId : std::int32_t {};          // a sequence of the KV pool, 0 .. n_seqs-1
enum class CellIndex : std::uint32_t {};     // a cell of the KV pool
enum class GenerationId : std::uint64_t {};  // unique in one process; 0 is never given out
enum class SamplingKey : std::uint64_t {};   // with a position it determines a random number

// Where a token stands in its generation: 0 is the first prompt token. A number, because it is counted with.
using Position = std::int32_t;

inline constexpr GenerationId kNoGeneration{0};

template <class Id>
requires std::is_enum_v<Id>
constexpr auto raw(Id id) { return static_cast<std::underlying_type_t<Id>>(id); }

inline std::ostream& operator<<(std::ostream& out, TokenId id) { return out << "token " << raw(id); }
inline std::ostream& operator<<(std::ostream& out, SeqId id) { return out << "sequence " << raw(id); }
inline std::ostream& operator<<(std::ostream& out, CellIndex id) { return out << "cell " << raw(id); }
inline std::ostream& operator<<(std::ostream& out, GenerationId id) { return out << "generation " << raw(id); }

}  // namespace fermata
