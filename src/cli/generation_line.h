#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

namespace fermata::cli {

// A generation (docs/api.md) as a row of a table. `now`: seconds since 1970. What is missing or of another type is "-".
std::vector<std::string> generation_heads();
std::vector<std::string> generation_line(const boost::json::object& generation, double now);

// "running", "paused (user)", "finished (stop)"
std::string state_in_words(const boost::json::object& generation);

}  // namespace fermata::cli
