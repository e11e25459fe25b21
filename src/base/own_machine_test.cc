#include "base/own_machine.h"

#include <gtest/gtest.h>

namespace fermata {
namespace {

TEST(OwnMachine, is_localhost_and_the_loopback_addresses) {
  for (const char* host : {"localhost", "LocalHost", "127.0.0.1", "127.8.9.10", "[::1]", "[0:0::1]"})
    EXPECT_TRUE(names_own_machine(host)) << host;
}

TEST(OwnMachine, is_nothing_that_only_looks_like_it) {
  for (const char* host : {"", "localhost.", "localhost.example.org", "127.example.org", "127.0.0.1.example.org",
                           "127.1", "127.0.0.256", "::1", "[::1", "[]", "[::2]", "128.0.0.1", "0.0.0.0", "xlocalhost"})
    EXPECT_FALSE(names_own_machine(host)) << host;
}

}  // namespace
}  // namespace fermata
