#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"
#include "cli/open_engine.h"

namespace fermata::cli {

// A server in this process, on a free port of this machine's own address, without a log. It ends with this: what it
// runs is cancelled. Clients of it are to be gone before.
class OwnServer {
 public:
  // Returns when the model is loaded. Of a model without a chat template kUnsupported: there are no dialogues.
  static Result<std::unique_ptr<OwnServer>> start(const EngineFlags& engine);
  ~OwnServer();
  OwnServer(const OwnServer&) = delete;
  OwnServer& operator=(const OwnServer&) = delete;

  const std::string& url() const { return url_; }

 private:
  OwnServer() = default;
  std::string url_;
  std::mutex mutex_;
  std::function<void()> stop_;  // empty: it does not run
  std::thread thread_;
};

}  // namespace fermata::cli
