#include "server/service_manager.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/regular_file.h"

namespace fermata {
namespace {

// A manager that listens on an abstract socket.
class Listening {
 public:
  Listening() : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name_.data() + 1, name_.size() - 1);
    const auto n = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
    EXPECT_EQ(bind(socket_.number(), reinterpret_cast<const sockaddr*>(&address), n), 0);
  }
  const std::string& name() const { return name_; }
  std::string heard() {
    std::array<char, 4096> bytes{};
    const ssize_t n = recv(socket_.number(), bytes.data(), bytes.size(), 0);
    return n < 0 ? "nothing" : std::string(bytes.data(), static_cast<std::size_t>(n));
  }

 private:
  std::string name_ = "@fermata-test-" + std::to_string(getpid());
  Descriptor socket_;
};

TEST(ServiceManager, HearsWhatHappens) {
  Listening manager;
  ServiceManager told(manager.name(), seconds(4));
  told.loading();
  EXPECT_EQ(manager.heard(), "STATUS=loading the model");
  told.ready("tiny at http://127.0.0.1:8080\nREADY=0");
  EXPECT_EQ(manager.heard(), "READY=1\nSTATUS=serving tiny at http://127.0.0.1:8080");
  told.alive();
  EXPECT_EQ(manager.heard(), "WATCHDOG=1");
  told.stopping();
  EXPECT_EQ(manager.heard(), "STOPPING=1\nSTATUS=ending what runs");
  EXPECT_EQ(manager.heard(), "nothing");
}

TEST(ServiceManager, OneThatDoesNotListenIsNoMatter) {
  for (const std::string& socket : {std::string(), std::string("/nowhere/at/all"), std::string("relative"),
                                    std::string(300, '/'), std::string("@"), std::string("@nobody-listens-here")})
    ServiceManager(socket, {}).alive();
  Listening manager;
  for (int i = 0; i < 5000; ++i) ServiceManager(manager.name(), {}).alive();  // its queue is full: nobody waits
  EXPECT_EQ(manager.heard(), "WATCHDOG=1");
}

TEST(ServiceManager, TheWatchdogIsOursOnlyIfItIsMeantForUs) {
  const auto watchdog = [](const char* n_us, const std::string& pid) {
    setenv("WATCHDOG_USEC", n_us, 1);
    setenv("WATCHDOG_PID", pid.c_str(), 1);
    return ServiceManager::of_environment().watchdog();
  };
  const std::string self = std::to_string(getpid());
  EXPECT_EQ(watchdog("30000000", self), seconds(30));
  EXPECT_EQ(watchdog("30000000", ""), seconds(30));
  EXPECT_EQ(watchdog("30000000", "1"), std::nullopt);
  for (const char* wrong : {"", "0", "-5", "3s", "99999999999999999999", "900000000000000"})
    EXPECT_EQ(watchdog(wrong, self), std::nullopt) << wrong;
}

}  // namespace
}  // namespace fermata
