#include "base/own_machine.h"

#include <arpa/inet.h>

#include <algorithm>
#include <string>

namespace fermata {
namespace {
constexpr std::string_view kLocalhost = "localhost";
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
}  // namespace

bool names_own_machine(std::string_view host) {
  const auto same = [](char a, char b) { return lower(a) == b; };
  if (std::equal(host.begin(), host.end(), kLocalhost.begin(), kLocalhost.end(), same)) return true;
  if (host.starts_with('[') && host.ends_with(']')) {
    in6_addr address{};
    const std::string text(host.substr(1, host.size() - 2));
    return inet_pton(AF_INET6, text.c_str(), &address) == 1 && IN6_IS_ADDR_LOOPBACK(&address);
  }
  in_addr address{};
  return inet_pton(AF_INET, std::string(host).c_str(), &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

}  // namespace fermata
