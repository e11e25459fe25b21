#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/dossier.h"
#include "api/openai/call.h"
#include "base/clock.h"
#include "base/result.h"
#include "generation/generation.h"
#include "generation/state.h"

namespace fermata::api {

// Where one of a session is, as far as it matters to the others.
enum class Standing : std::uint8_t {
  kWaits,   // it has not begun
  kHeld,    // it has not begun, and does not before it is let go
  kGoesOn,  // it runs, or will without anybody doing anything more
  kPaused,  // until somebody resumes it
  kEnded,
};

// What a new message does next on its way to its place in its session.
struct Move {
  enum class Kind : std::uint8_t {
    kStart,
    kPause,   // `whom`, then look again
    kCancel,  // `whom`, then look again
    kWait,    // for a change of `whom`, then look again; itself, if it is held
    kGiveUp,  // it ended before it began
  };
  Kind kind = Kind::kStart;
  std::size_t whom = 0;
  friend bool operator==(const Move&, const Move&) = default;
};

// The rule of sessions. `session` in the order of arrival, of which `me` is the new one. Pure.
Move next_move(OnNewMessage policy, std::span<const Standing> session, std::size_t me);

// At most one generation of a session goes on, whatever comes, is paused, resumed, cancelled or held. It knows who is
// of which session, and decides; what it decides, its Steering does. Owner: the io thread.
class Sessions {
 public:
  // What becomes of generations; the desk. A pause or cancel answers when it is reached.
  class Steering {
   public:
    virtual boost::asio::awaitable<Result<void>> pause(std::shared_ptr<Dossier> dossier, WaitReason reason) = 0;
    virtual boost::asio::awaitable<Result<void>> cancel(std::shared_ptr<Dossier> dossier, EndReason reason) = 0;
    // kBusy: it may be tried again.
    virtual Result<void> start(const std::shared_ptr<Dossier>& dossier,
                               const std::shared_ptr<Generation>& prepared) = 0;
    // It had waited for its turn, and cannot start.
    virtual void undo(const std::shared_ptr<Dossier>& dossier, Error error) = 0;

   protected:
    ~Steering() = default;
  };

  Sessions(boost::asio::any_io_executor executor, Steering& steering)
      : executor_(std::move(executor)), steering_(steering) {}

  // From its arrival until it is forgotten. Without a session it is alone.
  void join(const std::shared_ptr<Dossier>& dossier);
  void leave(const Dossier& dossier);
  // In the order of arrival.
  std::vector<std::shared_ptr<Dossier>> of(std::string_view tenant, std::string_view session) const;

  // One that joined is started now, or waits for its turn; what becomes of those before is its own choice. Answers when
  // that is settled. An error: what was in its way could not be paused or ended, or it could not start.
  boost::asio::awaitable<Result<void>> take_place(std::shared_ptr<Dossier> me, std::shared_ptr<Generation> prepared);
  // One that has begun is to go on: it counts as one that does until the engine's answer is here. False: another one of
  // its session does.
  bool begin_resume(Dossier& dossier) const;
  static void end_resume(Dossier& dossier);

  // One that waits does not begin before it is let go, though it has no pause. False: it has begun, or ended.
  static bool hold(Dossier& dossier, Instant now);
  // Back into the queue. False: it is not held.
  static bool let_go(Dossier& dossier);

 private:
  using Name = std::pair<std::string, std::string>;  // tenant, session
  using Members = std::vector<std::shared_ptr<Dossier>>;
  struct Planned {
    Move::Kind kind = Move::Kind::kStart;
    std::shared_ptr<Dossier> whom;
  };

  const Members* members_of(const Dossier& dossier) const;
  Planned plan(const std::shared_ptr<Dossier>& me, OnNewMessage policy) const;
  boost::asio::awaitable<Result<void>> make_room(Planned planned);
  boost::asio::awaitable<void> wait_for_turn(std::shared_ptr<Dossier> me, std::shared_ptr<Generation> prepared);

  boost::asio::any_io_executor executor_;
  Steering& steering_;
  std::map<Name, Members> members_;
};

}  // namespace fermata::api
