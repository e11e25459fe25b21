#include "server/line_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>

#include "base/file_fixture.h"

namespace fermata {
namespace {

std::string told(std::uint64_t n_lost, int error) {
  return "lost " + std::to_string(n_lost) + " by " + std::to_string(error) + "\n";
}

void wait_until_lost(const LineWriter& writer, std::uint64_t n) {
  while (writer.n_lost() < n) std::this_thread::yield();
}

// A file of this process takes no more than so many bytes, as a disk that is full.
class FullDisk {
 public:
  explicit FullDisk(rlim_t n_bytes) {
    signal_before_ = signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{n_bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, signal_before_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  void (*signal_before_)(int) = SIG_DFL;
};

TEST(LineWriter, ADiskThatIsFullLosesLinesAndIsToldOfWhenItHasRoom) {
  const test::TempFolder folder;
  const std::string path = folder.file("log");
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const std::string line(29, 'x');
  {
    LineWriter writer(file.number(), told);
    {
      const FullDisk full(100);
      for (int i = 0; i < 10; ++i) writer.put(line + "\n");
      wait_until_lost(writer, 7);
    }
    writer.put("room\nagain\n");
    while (test::read_file(path).find("lost") == std::string::npos) std::this_thread::yield();
    writer.put("and more\n");
  }
  const std::string text = test::read_file(path);
  const std::string whole = line + "\n" + line + "\n" + line + "\n" + line.substr(0, 10) + "\nroom\nagain\n";
  EXPECT_EQ(text, whole + "lost 7 by " + std::to_string(EFBIG) + "\nand more\n");
}

TEST(LineWriter, LinesForAReaderThatIsGoneAreCounted) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe(ends), 0);
  const Descriptor to_it(ends[1]);
  LineWriter writer(to_it.number(), told);
  close(ends[0]);
  writer.put("a\nb\n");
  wait_until_lost(writer, 2);
  writer.put("c\n");
  wait_until_lost(writer, 3);
}

// A pipe may be somebody else's too: it is not made non-blocking under them, and their filling it between our look and
// our write stops us no more.
TEST(WithoutBlocking, APipeIsOpenedAnewAndLeftAsItWasForOthers) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe(ends), 0);
  const Descriptor from_it(ends[0]);
  const Descriptor to_it(ends[1]);
  const Descriptor own = without_blocking(to_it.number());
  ASSERT_TRUE(own.is_open());
  EXPECT_NE(fcntl(own.number(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(fcntl(to_it.number(), F_GETFL) & O_NONBLOCK, 0);
  while (write(own.number(), "x", 1) == 1) continue;
  EXPECT_EQ(errno, EAGAIN) << "and it is the same pipe, which is full for all";
  pollfd watched{to_it.number(), POLLOUT, 0};
  EXPECT_EQ(poll(&watched, 1, 0), 0);
}

TEST(WithoutBlocking, AFileNeverBlocksAndIsNotOpenedAnew) {
  const test::TempFolder folder;
  const Descriptor file(open(folder.file("log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_FALSE(without_blocking(file.number()).is_open()) << "it would begin at its beginning";
  EXPECT_FALSE(without_blocking(-1).is_open());
}

}  // namespace
}  // namespace fermata
