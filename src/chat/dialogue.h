#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fermata::chat {

namespace json = boost::json;

// What was said so far: questions and answers by turns, each question with its answer.
class Dialogue {
 public:
  explicit Dialogue(std::string system = {}) : system_(std::move(system)) {}

  struct Turn {
    std::string question = {};
    std::string answer = {};
    bool is_cut = false;  // the answer was ended before it had ended by itself
  };
  const std::vector<Turn>& turns() const { return turns_; }
  const std::string& system() const { return system_; }

  void set_system(std::string text) { system_ = std::move(text); }
  void add(Turn turn) { turns_.push_back(std::move(turn)); }
  void clear() { turns_.clear(); }
  void drop_last() { turns_.pop_back(); }

  // As the API takes them: what was said, then `question` if it is not empty, and `answer_begun` if that is not.
  json::array messages(std::string_view question = {}, std::string_view answer_begun = {}) const;

  // The dialogue as {"messages": […]}, in a new file. kIo: it is there already, or cannot be written.
  Result<void> save(const std::string& path) const;

 private:
  std::string system_;
  std::vector<Turn> turns_;
};

// The answer so far and what is to stand behind it, which goes on after a blank unless it brings its own.
std::string joint_of(std::string_view answer, std::string_view sentence);

}  // namespace fermata::chat
