#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/http/api_keys.h"
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

struct NewKeySettings {
  std::string name;
  std::string tenant = "-";
  std::string scopes = "use";
  std::string file;
};

Error cannot(const std::string& what, const std::string& path) {
  return Error{Code::kIo, path + " " + what, std::strerror(errno), false};
}

struct KeysBefore {
  std::string text;  // ends with an end of line, unless it is empty
  struct stat status {};
  bool exists = false;
};

// What stands there already, if a server would take it.
Result<KeysBefore> read_key_file(const std::string& path) {
  KeysBefore file;
  file.exists = stat(path.c_str(), &file.status) == 0;
  if (!file.exists && errno == ENOENT) return file;
  const Result<RegularFile> opened = open_regular_file(path);
  if (!opened) return opened.error();
  if (opened->others_may_write)
    return Error{Code::kInvalidArgument, path + " may be written by others; make it yours alone: chmod 600", {}, false};
  Result<std::string> text = read_to_end(opened->descriptor, path, limits::kApiKeyFileBytesMax);
  if (!text) return text.error();
  if (auto keys = api::ApiKeys::parse(*text); !keys)
    return Error{keys.error().code, path + ": " + keys.error().message, {}, false};
  file.text = *std::move(text);
  if (!file.text.empty() && file.text.back() != '\n') file.text += '\n';
  return file;
}

Result<void> write_key_file(const std::string& path, const KeysBefore& before, const std::string& text) {
  Result<ScratchFile> scratch = ScratchFile::make(path);
  if (!scratch) return scratch.error();
  const int file = scratch->descriptor();
  // Whoever reads it now may read it afterwards.
  const bool is_anothers = before.exists && (before.status.st_uid != geteuid() || before.status.st_gid != getegid());
  if (fchmod(file, before.exists ? before.status.st_mode & 0777 : kMode) != 0) return cannot("cannot be written", path);
  if (is_anothers && fchown(file, before.status.st_uid, before.status.st_gid) != 0)
    return cannot("belongs to somebody else and would change its owner", path);
  for (std::size_t n_done = 0; n_done < text.size();) {
    const ssize_t n = write(file, text.data() + n_done, text.size() - n_done);
    if (n < 0 && errno != EINTR) return cannot("cannot be written", path);
    n_done += n > 0 ? static_cast<std::size_t>(n) : 0;
  }
  if (const Result<void> flushed = scratch->flush(); !flushed) return flushed;
  return scratch->put_in_place();
}

// Whole or not at all: a server that looks at the file meanwhile sees the old or the new one.
Result<void> append(const std::string& given_path, const std::string& line) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path path = fs::weakly_canonical(fs::absolute(given_path), error);  // a link stays one
  if (error) return Error{Code::kIo, given_path + " cannot be found", error.message(), false};
  const Descriptor folder(open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open()) return cannot("cannot be opened", path.parent_path().string());
  // Two at once would each lose the other's line.
  if (flock(folder.number(), LOCK_EX) != 0) return cannot("cannot be locked", path.parent_path().string());
  const Result<KeysBefore> before = read_key_file(path.string());
  if (!before) return before.error();
  const std::string text = before->text + line + "\n";
  if (const Result<api::ApiKeys> keys = api::ApiKeys::parse(text); !keys) return keys.error();  // too many
  return write_key_file(path.string(), *before, text);
}

int new_key(const NewKeySettings& settings) {
  const Result<std::vector<api::Scope>> scopes = api::parse_scopes(settings.scopes);
  if (!scopes) return complain(scopes.error());
  const Result<api::ApiKeys::Made> made =
      api::ApiKeys::make_key(settings.name, settings.tenant == "-" ? "" : settings.tenant, *scopes);
  if (!made) return complain(made.error());
  if (!settings.file.empty())
    if (const Result<void> appended = append(settings.file, made->line); !appended) return complain(appended.error());
  std::printf("%s\n", made->key.c_str());
  if (settings.file.empty()) std::printf("%s\n", made->line.c_str());
  if (const Result<void> told = flush_output(); !told) return complain(told.error());
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
