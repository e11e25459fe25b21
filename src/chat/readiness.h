#pragma once

#include <poll.h>

namespace fermata::chat {

// Whether a read would return at once; also when there is nothing to read any more.
inline bool can_be_read(int descriptor) {
  pollfd watched{descriptor, POLLIN, 0};
  return poll(&watched, 1, 0) > 0;
}

}  // namespace fermata::chat
