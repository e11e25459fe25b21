#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/arrivals.h"
#include "api/catalogue.h"
#include "api/dossier.h"
#include "api/edit_body.h"
#include "api/fork_body.h"
#include "api/heartbeat.h"
#include "api/http/http_message.h"
#include "api/idempotency_keys.h"
#include "api/openai/call.h"
#include "api/prompt_maker.h"
#include "api/sessions.h"
#include "api/work_lanes.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/result.h"
#include "engine/chat_template.h"
#include "runtime/core.h"

namespace fermata::api {

// What an edit did, or, of a dry run, would do.
struct Edited {
  Position first_changed = 0;  // token; all before it is kept
  Position n_recomputed = 0;   // tokens that are computed before the next one comes
  std::uint64_t version = 1;
  std::string pause_id;  // empty: it runs on
  std::size_t n_text_bytes_kept = 0;
  bool takes_text_back = false;
  bool dry_run = false;
  Duration took;
};

struct DeskOptions {
  std::string model_name;
  std::string model_path;
  std::vector<std::string> model_aliases;
  std::size_t n_threads = 2;  // that tokenise and compile
  std::size_t finished_bytes_max = limits::kFinishedBytesMax;
  Duration finished_kept = milliseconds(limits::kFinishedKeptMs);
  Duration keep_alive = milliseconds(limits::kKeepAliveMs);  // a stream is never silent for longer
  Duration pause_wait = milliseconds(limits::kPauseWaitMs);  // what a whole answer waits through a pause
};

// All generations that clients know, and what may be done with them: those rules of docs/api.md that are
// not about the shape of a message. It opens, pauses, resumes, cancels and forgets; names, keys, arrivals and sessions
// have classes of their own, which it asks. It writes nothing to a socket. Owner: the io thread, whose executor it
// gets; of it other threads see the PromptMaker alone. Before a model is loaded there is nothing to be found.
class Desk final : private Sessions::Steering {
 public:
  Desk(boost::asio::any_io_executor executor, const Clock& clock, DeskOptions options);
  ~Desk();

  // From now on it is ready. `chat` may be null: then only raw prompts are taken. Both outlive the desk.
  void serve(Core& core, const ChatTemplate* chat, std::string model_name, std::string model_path);
  bool ready() const { return core_ != nullptr; }

  struct Opened {
    std::shared_ptr<Dossier> dossier;
    bool is_repeat = false;  // of a request with the same idempotency key
  };
  // Checks, tokenises and queues. The errors are the client's to read; nothing is left behind by them. kAborted if the
  // client left before its text had its turn.
  boost::asio::awaitable<Result<Opened>> open(Call call, Principal who, std::string body_digest,
                                              std::shared_ptr<Leaver> leaver = nullptr);

  // Whether the model that a request names is the one that is served.
  Result<void> check_model(const Call& call) const;

  // By gen_…, by chatcmpl-…/cmpl-…, or by client:…; what is another tenant's is not found, what is forgotten is gone.
  Result<std::shared_ptr<Dossier>> find(std::string_view name, const Principal& who) const {
    return catalogue_.find(name, who);
  }
  // By the id of a pause, used or not.
  Result<std::shared_ptr<Dossier>> find_pause(std::string_view pause_id, const Principal& who) const {
    return catalogue_.find_pause(pause_id, who);
  }

  // Each answers when it is reached. Idempotent. One that waits for its session has no pause: asked for by a user it is
  // held, and does not begin before it is resumed.
  boost::asio::awaitable<Result<void>> pause(std::shared_ptr<Dossier> dossier, WaitReason reason) override;
  // Where in its log it goes on: behind the pause that ended. `pause_id` empty: whatever pause it is in, or is about to
  // reach; kWrongState if there is none. kAlreadyResumed if that pause was used with another body, kStale if it is not
  // the one it is in. The same body again: nothing happens.
  boost::asio::awaitable<Result<std::size_t>> resume(std::shared_ptr<Dossier> dossier, std::string pause_id,
                                                     std::string body_digest);
  boost::asio::awaitable<Result<void>> cancel(std::shared_ptr<Dossier> dossier, EndReason reason) override;
  // Changes its past. One that runs is paused for it, and goes on. kTextSent if it would take back what a stream sent
  // that cannot tell, unless the body says that such streams end.
  boost::asio::awaitable<Result<Edited>> edit(std::shared_ptr<Dossier> dossier, EditBody body);
  // Generations of their own that begin with the tokens of this one: of what was told, if it is not paused. All of them
  // or none.
  boost::asio::awaitable<Result<std::vector<std::shared_ptr<Dossier>>>> fork(std::shared_ptr<Dossier> dossier,
                                                                             ForkBody body, Principal who);
  std::vector<std::shared_ptr<Dossier>> branches_of(const Dossier& dossier) const;
  // It may begin when its turn comes. False: it was not held.
  bool let_go(const std::shared_ptr<Dossier>& dossier) { return Sessions::let_go(*dossier); }
  // The frozen point of a paused one: the most likely tokens that could come.
  boost::asio::awaitable<Result<Inspection>> inspect(std::shared_ptr<Dossier> dossier, std::int32_t n_next);
  // `name` is a client: name, and the request that it is of has not got its generation yet: it is not known, or known
  // as that of one that ended while another one is being prepared.
  bool may_come(std::string_view name, const Principal& who) const;
  bool is_forgotten(std::string_view id, const Principal& who) const { return catalogue_.is_forgotten(id, who); }
  // A client: name that is not known yet: the request ends with 0 tokens when it comes (for a minute).
  Result<void> cancel_unborn(std::string_view client_id, const Principal& who) {
    return arrivals_.cancel(who.tenant, client_id, clock_.now());
  }

  // A completion stream of this generation begins to read: `cursor` is where it is in the log; kTakesAll for one that
  // does not read piece by piece.
  static constexpr std::size_t kTakesAll = SIZE_MAX;
  void reader_comes(const std::shared_ptr<Dossier>& dossier, std::size_t* cursor);
  // It took everything there is: if it was too slow before, the generation goes on.
  void reader_caught_up(const std::shared_ptr<Dossier>& dossier);
  // `gone`: its client went away, rather than having got all it wanted.
  void reader_leaves(const std::shared_ptr<Dossier>& dossier, std::size_t* cursor, bool gone);

  // Newest last; everything the tenant may see.
  std::vector<std::shared_ptr<Dossier>> all(const Principal& who) const { return catalogue_.all(who); }
  // Of all tenants.
  void for_each(const std::function<void(const Dossier&)>& look) const;
  std::vector<std::shared_ptr<Dossier>> of_session(std::string_view session, const Principal& who) const {
    return sessions_.of(who.tenant, session);
  }

  // Called after each entry that any generation's log gains; the end once, when the server stops.
  using Follower = std::function<void(const Dossier&, std::size_t entry)>;
  void follow(Follower follower, std::function<void()> on_end = {});

  // --- the end of the process
  void begin_drain() { draining_ = true; }
  bool draining() const { return draining_; }
  std::size_t n_alive() const;
  std::size_t n_running() const;  // or about to, without anybody doing anything
  boost::asio::awaitable<void> cancel_all(EndReason reason);
  void end_following();  // who follows is told; all that happened was told before

  // To be called about once a second: forgets what was kept long enough, ends pauses that are too old, lets go on what
  // waited for a reader that reads again or left.
  void sweep();
  // Longest that a pause or cancel has been asked for and not reached.
  Duration longest_unreached() const;
  // Since when the engine thread has not answered what this and sweep() ask it.
  Duration silent_for();

  // --- these when it is ready
  Core& core() { return *core_; }
  const ChatTemplate* chat() const { return chat_; }
  const DeskOptions& options() const { return options_; }
  WorkLanes& lanes() { return lanes_; }
  const Clock& clock() const { return clock_; }
  const EngineInfo& info() const { return core_->info(); }
  const Exactness& exactness() const { return core_->info().exactness; }
  // Seconds since 1970 of an instant of the clock.
  double unix_time(Instant instant) const;

 private:
  Result<void> check_caps(const Principal& who, std::size_t n_more = 1) const;
  boost::asio::awaitable<Result<Anchor>> anchor_of(std::shared_ptr<Dossier> dossier);
  boost::asio::awaitable<Result<Revised>> put_in_place(std::shared_ptr<Dossier> dossier, Revision revision);
  boost::asio::awaitable<Result<Edited>> edit_paused(std::shared_ptr<Dossier> dossier, EditBody body);
  Result<Generation> branch_of(const Anchor& anchor, const ForkBody::Branch& branch, const ForkBody& body) const;
  std::shared_ptr<Dossier> file_branch(const Dossier& parent, const Generation& generation, const Principal& who,
                                       Position at);
  static void name_answer(AnswerHead& head);
  void enter(const std::shared_ptr<Dossier>& dossier);
  Result<void> start_in_core(const std::shared_ptr<Dossier>& dossier, Generation&& prepared, bool paused);
  Result<void> check_client_id(const Call& call, const Principal& who) const;
  std::optional<Result<Opened>> repeated(const Call& call, const Principal& who, const std::string& digest) const;
  std::shared_ptr<Dossier> file(const Call& call, const Principal& who, Prompt prompt);
  Result<void> start(const std::shared_ptr<Dossier>& dossier, const std::shared_ptr<Generation>& prepared) override;
  void drain(const std::shared_ptr<Dossier>& dossier);
  void watch_slow_reader(const std::shared_ptr<Dossier>& dossier);
  static Result<std::size_t> let_begin(Dossier& dossier, std::string body_digest);
  boost::asio::awaitable<Result<Status>> let_go_on(std::shared_ptr<Dossier> dossier, MeantPause meant);
  boost::asio::awaitable<Result<std::size_t>> resume_from(std::shared_ptr<Dossier> dossier, std::uint32_t ordinal,
                                                          std::string body_digest);
  boost::asio::awaitable<Result<std::size_t>> resume_in_no_pause(std::shared_ptr<Dossier> dossier,
                                                                 std::string body_digest);
  boost::asio::awaitable<void> go_on_for_its_reader(std::shared_ptr<Dossier> dossier);
  void go_on_unless_beside(const std::shared_ptr<Dossier>& dossier);
  void end_unborn(Dossier& dossier, EndReason reason, Error error = {});
  void undo(const std::shared_ptr<Dossier>& dossier, Error error) override;
  void tell_followers(const Dossier& dossier, std::size_t first) const;
  void forget(std::span<const std::shared_ptr<Dossier>> dossiers);
  template <class T, class Ask>
  boost::asio::awaitable<Result<T>> answer_of(std::shared_ptr<Dossier> dossier, Ask ask);

  boost::asio::any_io_executor executor_;
  Core* core_ = nullptr;
  const ChatTemplate* chat_ = nullptr;
  std::unique_ptr<const PromptMaker> prompts_;
  const Clock& clock_;
  DeskOptions options_;
  WorkLanes lanes_;
  Sessions sessions_;
  double unix_offset_s_ = 0;
  std::map<std::string, std::uint32_t> prefix_groups_;  // by tenant

  Catalogue catalogue_;
  IdempotencyKeys keys_;
  Arrivals arrivals_;
  Heartbeat heartbeat_;
  struct Following {
    Follower follower;
    std::function<void()> on_end;
  };
  std::vector<Following> followers_;
  bool draining_ = false;
};

}  // namespace fermata::api
