#pragma once

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

// Checks for bugs of ours. They stay on in release builds, print what they compared, and end the process: no input may
// ever reach one. Expected failures are Results (result.h).
namespace fermata::internal {

[[noreturn]] inline void check_failed(const char* file, int line, const char* expression, const std::string& values) {
  std::fprintf(stderr, "%s:%d: check failed: %s%s%s\n", file, line, expression, values.empty() ? "" : " with ",
               values.c_str());
  std::fflush(stderr);
  std::abort();
}

template <class A, class B>
std::string both_values(const A& a, const B& b) {
  std::ostringstream out;
  out << a << " and " << b;
  return out.str();
}

}  // namespace fermata::internal

#define FERMATA_CHECK(condition)                                                        \
  do {                                                                                  \
    if (!(condition)) [[unlikely]]                                                      \
      ::fermata::internal::check_failed(__FILE__, __LINE__, #condition, std::string()); \
  } while (false)

#define FERMATA_CHECK_OP(a, op, b)                                                                           \
  do {                                                                                                       \
    const auto& fermata_check_a = (a);                                                                       \
    const auto& fermata_check_b = (b);                                                                       \
    if (!(fermata_check_a op fermata_check_b)) [[unlikely]]                                                  \
      ::fermata::internal::check_failed(__FILE__, __LINE__, #a " " #op " " #b,                               \
                                        ::fermata::internal::both_values(fermata_check_a, fermata_check_b)); \
  } while (false)

#define FERMATA_CHECK_EQ(a, b) FERMATA_CHECK_OP(a, ==, b)
#define FERMATA_CHECK_LE(a, b) FERMATA_CHECK_OP(a, <=, b)
#define FERMATA_CHECK_LT(a, b) FERMATA_CHECK_OP(a, <, b)
