#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "api/http/api_keys.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/regular_file.h"
#include "base/scratch_file.h"
#include "cli/commands.h"
#include "cli/complain.h"
#include "cli/exit_codes.h"
#include "cli/flags.h"
#include "cli/output.h"

namespace fermata::cli {
namespace {

constexpr mode_t kMode = 0600;
constexpr int kLinksMax = 40;  // as Linux

struct NewKeySettings {
  std::string name;
  std::string tenant = "-";
  std::string scopes = "use";
  std::string file;
};

Error cannot(const std::string& what, const std::string& path) {
  return Error{Code::kIo, path + " " + what, std::strerror(errno), false};
}

// Two at once would each lose the other's line. One that hangs must not make others hang.
Result<Descriptor> lock(const std::string& folder) {
  Descriptor locked(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!locked.is_open()) return cannot("cannot be opened", folder);
  const SystemClock clock;
  const Instant until = clock.now() + milliseconds(limits::kKeyFolderLockMs);
  while (flock(locked.number(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return cannot("cannot be locked", folder);
    if (clock.now() >= until)
      return Error{
          Code::kBusy,
          folder +
              " is locked by another program, perhaps another 'fermata new-key' whose output nobody reads; end it "
              "('lslocks' names it), or try again",
          {},
          true};
    std::this_thread::sleep_for(std::chrono::milliseconds(limits::kKeyFolderLookMs));
  }
  return locked;
}

// What stands there already, if a server would take it. The text ends with an end of line, unless it is empty.
Result<api::KeysInFile> keys_before(const std::string& path) {
  Result<api::KeysInFile> file = api::read_key_file(path);
  if (!file && file.error().code == Code::kNotFound) return api::KeysInFile{{}, {}, {kMode, geteuid(), getegid()}};
  if (file && !file->text.empty() && file->text.back() != '\n') file->text += '\n';
  return file;
}

// A file with these keys and one more, whole on the disk, that has not its name yet.
Result<ScratchFile> prepare_key_file(const std::string& path, const std::string& line) {
  const Result<api::KeysInFile> before = keys_before(path);
  if (!before) return before.error();
  const std::string text = before->text + line + "\n";
  if (const Result<api::ApiKeys> keys = api::ApiKeys::parse(text); !keys)  // too many
    return Error{keys.error().code, path + ": " + keys.error().message, {}, false};
  Result<ScratchFile> scratch = ScratchFile::make(path);
  if (!scratch) return scratch;
  const int file = scratch->descriptor().number();
  // Whoever reads it now may read it afterwards.
  const FilePermissions& may = before->permissions;
  if (fchmod(file, may.mode) != 0) return cannot("cannot be written", path);
  const bool is_anothers = may.owner != geteuid() || may.group != getegid();
  if (is_anothers && fchown(file, may.owner, may.group) != 0)
    return cannot("belongs to somebody else and would change its owner", path);
  if (!write_whole(scratch->descriptor(), text)) return cannot("cannot be written", path);
  if (const Result<void> flushed = scratch->flush(); !flushed) return flushed.error();
  return scratch;
}

// A link stays one, also if what it leads to is not there yet.
std::filesystem::path behind_links(const std::string& given, std::error_code& error) {
  namespace fs = std::filesystem;
  fs::path path = fs::absolute(given, error);
  for (int i = 0; i < kLinksMax && !error; ++i) {
    std::error_code is_none;
    const fs::path to = fs::read_symlink(path, is_none);
    if (is_none) return fs::weakly_canonical(path, error);
    path = path.parent_path() / to;  // an absolute one replaces all
  }
  if (!error) error = std::make_error_code(std::errc::too_many_symbolic_link_levels);
  return path;
}

Result<void> print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return flush_output();
}

// Whole or not at all: a server that looks at the file meanwhile sees the old or the new one. And the key is with its
// owner before the file has its line: nobody has a key that was not printed.
Result<void> print_and_append(const api::ApiKeys::Made& made, const std::string& given_path) {
  std::error_code error;
  const std::filesystem::path path = behind_links(given_path, error);
  if (error) return Error{Code::kIo, given_path + " cannot be found", error.message(), false};
  const Result<Descriptor> locked = lock(path.parent_path().string());
  if (!locked) return locked.error();
  Result<ScratchFile> scratch = prepare_key_file(path.string(), made.line);
  if (!scratch) return scratch.error();
  if (const Result<void> printed = print(made.key + "\n"); !printed)
    return Error{printed.error().code, printed.error().message + "; " + given_path + " stays as it was",
                 printed.error().detail, false};
  if (const Result<void> placed = scratch->put_in_place(); !placed)
    return Error{placed.error().code, placed.error().message + "; the key that was printed is not valid",
                 placed.error().detail, false};
  return {};
}

int new_key(const NewKeySettings& settings) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that is gone is told as an error
  const Result<std::vector<api::Scope>> scopes = api::parse_scopes(settings.scopes);
  if (!scopes) return complain(scopes.error());
  const Result<api::ApiKeys::Made> made =
      api::ApiKeys::make_key(settings.name, settings.tenant == "-" ? "" : settings.tenant, *scopes);
  if (!made) return complain(made.error());
  const Result<void> told =
      settings.file.empty() ? print(made->key + "\n" + made->line + "\n") : print_and_append(*made, settings.file);
  if (!told) return complain(told.error());
  std::fprintf(stderr, "the key, shown this once and kept nowhere: clients send it as Authorization: Bearer KEY\n");
  if (settings.file.empty())
    std::fprintf(stderr, "and its line for the file of 'fermata serve --api-key-file FILE' (mode 600)\n");
  else
    std::fprintf(stderr, "%s has its line; a server that runs with this file takes it in a moment\n",
                 settings.file.c_str());
  return kOk;
}

}  // namespace

Command add_new_key(CLI::App& app) {
  auto settings = std::make_shared<NewKeySettings>();
  CLI::App* command = app.add_subcommand("new-key", "Make an API key for 'fermata serve --api-key-file'");
  command->footer(
      "Standard output has the key, and without --append the line for the file: name, tenant, scopes and a hash.\n"
      "Examples:\n"
      "  fermata new-key desk --append keys          then: fermata serve --api-key-file keys\n"
      "  fermata new-key ops --scopes use,review,admin --append keys\n"
      "  fermata new-key app --tenant acme\n"
      "To take a key away remove its line; a server that runs sees it. docs/security.md tells more.");
  add_text(*command, "name", settings->name, "What logs call it: letters, digits, '.', '-' and '_'")->required();
  add_text(*command, "--tenant", settings->tenant, "Whose it is; tenants do not see each other. - is the unnamed one")
      ->capture_default_str();
  add_text(*command, "--scopes", settings->scopes, "use, review, admin, with commas between; none contains another")
      ->capture_default_str();
  add_text(*command, "--append", settings->file,
           "File of keys to write the line to; made with mode 600 if it is not there");
  return [settings](InterruptSignal&) { return new_key(*settings); };
}

}  // namespace fermata::cli
