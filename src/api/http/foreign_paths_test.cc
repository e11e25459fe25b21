#include "api/http/foreign_paths.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "api/http/http_test_server.h"

namespace fermata::api {
namespace {

std::vector<std::string> paths_of(const ForeignPath& foreign) {
  std::istringstream text{std::string(foreign.paths)};
  std::vector<std::string> paths;
  for (std::string path; text >> path;) paths.push_back(path.substr(0, path.find(',')));
  return paths;
}

TEST(ForeignPaths, EachStandsOnceAndIsFoundHoweverItIsWritten) {
  std::set<std::string> seen;
  for (const ForeignPath& foreign : foreign_paths())
    for (const std::string& path : paths_of(foreign)) {
      EXPECT_TRUE(seen.insert(path).second) << path;
      EXPECT_EQ(instead_of_path(path), foreign.instead) << path;
      if (path == "/") continue;
      EXPECT_EQ(instead_of_path("/v1" + path), foreign.instead) << path;
      EXPECT_EQ(instead_of_path(path + "/"), foreign.instead) << path;
    }
  EXPECT_NE(instead_of_path("/slots/3"), "");
  EXPECT_NE(instead_of_path("/slots/3"), instead_of_path("/slots"));
  for (const char* unknown : {"/slots/3/x", "/slot", "/completions", "", "/v2", "/nowhere"})
    EXPECT_EQ(instead_of_path(unknown), "") << unknown;
}

TEST(ForeignPaths, A404SaysWhatStandsForIt) {
  TestServer server;
  const auto said = [&](const std::string& request) {
    const Reply reply = TestClient(server.port()).ask(request);
    EXPECT_EQ(reply.status, 404) << request;
    return reply.body;
  };
  EXPECT_NE(said(post("/completion", "{}")).find("POST /v1/completions is it. /openapi.json lists"), std::string::npos);
  EXPECT_NE(said(get("/")).find("GET /v1/models"), std::string::npos);
  EXPECT_NE(said(get("/slots/0")).find("/pause"), std::string::npos);
  EXPECT_EQ(said(get("/nowhere")).find(" is it"), std::string::npos);
}

// The rows of the table in the documentation, in its order.
TEST(ForeignPaths, TheDocumentationHasTheSameTable) {
  std::ifstream file(FERMATA_ROOT "/docs/coming-from-llama-server.md");
  std::string line, stands, wanted;
  while (std::getline(file, line) && line != "<!-- table: foreign paths -->") {
  }
  while (std::getline(file, line) && line != "<!-- end -->")
    if (line.starts_with("| `")) stands += line + "\n";
  for (const ForeignPath& foreign : foreign_paths()) {
    std::string paths;
    for (const std::string& path : paths_of(foreign)) paths += (paths.empty() ? "`" : ", `") + path + "`";
    wanted += "| " + paths + " | " + std::string(foreign.instead) + " |\n";
  }
  EXPECT_EQ(stands, wanted) << "what should stand there:\n" << wanted;
}

}  // namespace
}  // namespace fermata::api
