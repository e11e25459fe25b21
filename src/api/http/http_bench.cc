// CPU time of a streamed event and memory of an idle connection, over loopback sockets in this process.
//   http_bench [n_streams [n_events [n_idle]]]
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "api/http/listener.h"
#include "api/http/signal.h"

namespace fermata::api {
namespace {

double thread_cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

double resident_bytes() {
  long pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// Another process, so that neither its time nor its memory is counted: opens `n` connections, asks, reads all.
void run_clients(std::uint16_t port, int n, const std::string& request) {
  const int poll = epoll_create1(0);
  for (int i = 0; i < n; ++i) {
    const int client = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) std::abort();
    if (send(client, request.data(), request.size(), 0) < 0) std::abort();
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = client;
    epoll_ctl(poll, EPOLL_CTL_ADD, client, &event);
  }
  std::vector<char> buffer(1 << 16);
  std::vector<epoll_event> events(256);
  for (int n_open = n; n_open > 0;) {
    const int n_ready = epoll_wait(poll, events.data(), 256, -1);
    for (int i = 0; i < n_ready; ++i) {
      if (recv(events[i].data.fd, buffer.data(), buffer.size(), 0) > 0) continue;
      close(events[i].data.fd);
      --n_open;
    }
  }
}

struct Bench {
  int n_streams = 1000;
  int n_events = 200;
  int n_idle = 4000;
  boost::asio::io_context io{1};
  SystemClock clock;
  Router router;
  Guard guard = Guard::make({}).value();
  Signal tick{io.get_executor()};
  Signal opened{io.get_executor()};
  int n_open = 0;
  int number = 0;
  bool over = false;

  boost::asio::awaitable<void> stream(HttpRequest, Exchange& exchange) {
    HttpResponse head;
    head.content_type = "text/event-stream";
    if (!co_await exchange.begin_stream(std::move(head))) co_return;
    ++n_open;
    opened.notify();
    std::string event;
    for (int seen = number; !over; seen = number) {
      while (seen == number && !over) co_await tick.wait(seconds(15));
      if (over) break;
      event =
          "data: {\"id\":\"chatcmpl-0123456789\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":"
          "\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word" +
          std::to_string(seen) + "\"},\"finish_reason\":null}]}\n\n";
      if (!co_await exchange.write(event)) break;
    }
    co_await exchange.end_stream();
    --n_open;
    opened.notify();
  }

  static boost::asio::awaitable<void> answer(HttpRequest, Exchange& exchange) {
    HttpResponse response;
    response.body = "{}";
    co_await exchange.respond(std::move(response));
  }

  boost::asio::awaitable<void> measure(Listener& listener) {
    while (n_open < n_streams) co_await opened.wait(seconds(60));
    const double before = thread_cpu_us();
    for (int i = 0; i < n_events; ++i) {
      ++number;
      tick.notify();
      boost::asio::steady_timer pause(io, std::chrono::milliseconds(20));  // as tokens come
      co_await pause.async_wait(boost::asio::use_awaitable);
    }
    const double spent = thread_cpu_us() - before;
    std::printf("%d streams, %d events each: %.2f us of CPU an event\n", n_streams, n_events,
                spent / (static_cast<double>(n_streams) * n_events));
    over = true;
    tick.notify();
    while (n_open > 0) co_await opened.wait(seconds(60));
    co_await listener.stop(seconds(5));
    io.stop();
  }

  boost::asio::awaitable<void> measure_idle(Listener& listener) {
    const double before = resident_bytes();
    while (listener.counts().n_requests < static_cast<std::uint64_t>(n_idle)) co_await opened.wait(milliseconds(20));
    co_await opened.wait(milliseconds(200));
    std::printf("%d idle connections after a request each: %.0f bytes of resident memory a connection\n", n_idle,
                (resident_bytes() - before) / n_idle);
    co_await listener.stop(seconds(5));
    io.stop();
  }
};

void run(bool idle, int n_streams, int n_events, int n_idle) {
  Bench bench;
  bench.n_streams = n_streams;
  bench.n_events = n_events;
  bench.n_idle = n_idle;
  bench.router.add("GET", "/stream", Scope::kUse,
                   [&](HttpRequest request, Exchange& exchange) { return bench.stream(std::move(request), exchange); });
  bench.router.add("GET", "/answer", Scope::kUse, &Bench::answer);
  const auto render = [](const Error&) { return HttpResponse(); };
  ListenerOptions options;
  options.port = 0;
  auto bound = Listener::bind(bench.io.get_executor(), bench.clock, bench.router, bench.guard, render, options);
  const auto listener = std::move(bound).value();
  const std::string request =
      std::string("GET ") + (idle ? "/answer" : "/stream") + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const pid_t child = fork();
  if (child == 0) {
    run_clients(listener->port(), idle ? n_idle : n_streams, request);
    _exit(0);
  }
  listener->start();
  boost::asio::co_spawn(bench.io, idle ? bench.measure_idle(*listener) : bench.measure(*listener),
                        boost::asio::detached);
  bench.io.run();
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace fermata::api

int main(int argc, char** argv) {
  const auto number = [&](int i, int otherwise) { return argc > i ? std::atoi(argv[i]) : otherwise; };
  fermata::api::run(true, number(1, 1000), number(2, 200), number(3, 4000));
  fermata::api::run(false, number(1, 1000), number(2, 200), number(3, 4000));
  return 0;
}
