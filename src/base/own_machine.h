#pragma once

#include <string_view>

namespace fermata {

// Whether a host, as it stands in a URL or a Host header (without a port; an IPv6 address in brackets), is this machine
// by whoever asks: localhost in any case, 127.0.0.0/8, [::1]. What only resolves to it is not: that is for its resolver
// to say.
bool names_own_machine(std::string_view host);

}  // namespace fermata
