#include "api/openapi/openapi.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>

#include "api/openai/fields.h"
#include "api/openai/http_error.h"
#include "api/openapi/doc_tables.h"
#include "api/records.h"
#include "api/routes.h"
#include "engine/fake/fake_engine.h"

namespace fermata::api {
namespace {

// All of the document is made here once; that each endpoint is described, and nothing else, is checked by making it.
// Its answers are held against the running server in tests/client.
class OpenApi : public ::testing::Test {
 protected:
  OpenApi() : desk_(io_.get_executor(), clock_, {}) {
    add_routes(router_, desk_, [] { return std::string(); });
    document_ = openapi_document(router_.endpoints());
  }
  // Each value, with the keys that lead to it.
  template <class Look>
  static void visit(const json::value& value, const std::string& path, const Look& look) {
    look(value, path);
    if (const json::object* object = value.if_object())
      for (const auto& [key, inner] : *object) visit(inner, path + "/" + std::string(key), look);
    if (const json::array* array = value.if_array())
      for (const json::value& inner : *array) visit(inner, path + "/-", look);
  }

  const json::value& schema(std::string_view name) const { return document_.at("components").at("schemas").at(name); }
  static std::set<std::string> keys_of(const json::value& object) {
    std::set<std::string> keys;
    for (const auto& [key, value] : object.get_object()) keys.emplace(key);
    return keys;
  }

  boost::asio::io_context io_;
  ManualClock clock_;
  Desk desk_;
  Router router_;
  json::object document_;
};

TEST_F(OpenApi, EveryReferenceLeadsSomewhereAndEveryComponentIsReferredTo) {
  const json::value document = document_;
  std::set<std::string> referred;
  visit(document, "", [&](const json::value& value, const std::string& path) {
    if (!path.ends_with("/$ref")) return;
    const std::string target(value.get_string());
    ASSERT_TRUE(target.starts_with("#/")) << path;
    EXPECT_NO_THROW((void)document.at_pointer(target.substr(1))) << path << " " << target;
    referred.insert(target.substr(1));
  });
  referred.insert("/components/responses/error405");  // of no call: a path asked by a method that it has not
  for (const char* kind : {"schemas", "responses", "parameters", "headers"})
    for (const auto& [name, component] : document.at("components").at(kind).get_object())
      EXPECT_TRUE(referred.contains("/components/" + std::string(kind) + "/" + std::string(name))) << name;
}

TEST_F(OpenApi, NoShortFormIsLeft) {
  visit(document_, "", [](const json::value& value, const std::string& path) {
    EXPECT_FALSE(value.is_string() && value.get_string().starts_with('=')) << path;
    EXPECT_FALSE(value.is_string() && value.get_string().starts_with('@')) << path;
    for (const char* key : {"/same_as", "/errors"}) EXPECT_FALSE(path.ends_with(key)) << path;
  });
}

// "stream_options.include_usage" is a property of a property.
std::set<std::string> names_in(const json::value& schema, const std::string& prefix) {
  std::set<std::string> names;
  const json::value* properties = schema.get_object().if_contains("properties");
  if (properties == nullptr) return names;
  for (const auto& [key, inner] : properties->get_object()) {
    names.insert(prefix + std::string(key));
    if (prefix.empty() && key != "response_format") names.merge(names_in(inner, std::string(key) + "."));
  }
  return names;
}

TEST_F(OpenApi, HasTheFieldsOfTheTableAndNoOthers) {
  const json::value document = document_;
  for (const Route route : {Route::kChat, Route::kCompletions}) {
    std::set<std::string> wanted;
    for (const Field& field : fields())
      if (is_on(field, route)) wanted.emplace(field.name);
    const std::string name = route == Route::kChat ? "ChatRequest" : "CompletionRequest";
    EXPECT_EQ(names_in(document.at_pointer("/components/schemas/" + name), ""), wanted);
  }
}

TEST_F(OpenApi, HasEveryTypeOfEvent) {
  const json::value document = document_;
  const std::set<std::string_view> wanted(kEntryTypes.begin(), kEntryTypes.end());
  std::set<std::string_view> filtered;
  for (const json::value& parameter : document.at_pointer("/paths/~1v1~1events/get/parameters").get_array())
    if (!parameter.get_object().contains("$ref") && parameter.at("name") == "types")
      for (const json::value& type : parameter.at_pointer("/schema/items/enum").get_array())
        filtered.insert(type.get_string());
  EXPECT_EQ(filtered, wanted);
  std::set<std::string_view> described;
  for (const json::value& event : document.at_pointer("/components/schemas/Event/oneOf").get_array())
    described.insert(event.at_pointer("/properties/type/const").get_string());
  EXPECT_EQ(described, wanted);
}

TEST_F(OpenApi, EveryAnswerNamesItsRequest) {
  const json::value document = document_;
  const auto names_it = [&](const json::value& response) {
    return response.get_object().contains("$ref") || response.at("headers").get_object().contains("x-request-id");
  };
  for (const auto& [path, methods] : document.at("paths").get_object())
    for (const auto& [method, operation] : methods.get_object())
      for (const auto& [status, response] : operation.at("responses").get_object())
        EXPECT_TRUE(status == "101" || names_it(response)) << path << " " << status;
  for (const auto& [name, response] : document.at_pointer("/components/responses").get_object())
    EXPECT_TRUE(names_it(response)) << name;
}

// The tables of docs/api.md say what each is, and which types have it.
TEST_F(OpenApi, EveryFieldOfAnEventSaysWhatItIs) {
  for (const json::value& event : schema("Event").at("oneOf").get_array()) {
    EXPECT_TRUE(event.get_object().contains("description"));
    for (const auto& [key, property] : event.at("properties").get_object())
      EXPECT_TRUE(key == "type" || property.get_object().contains("description")) << key;
  }
}

TEST_F(OpenApi, EveryCallStandsUnderOneTagWithASummary) {
  std::set<std::string_view> tags;
  for (const json::value& tag : document_.at("tags").get_array()) tags.insert(tag.at("name").get_string());
  std::set<std::string_view> used;
  for (const auto& [path, methods] : document_.at("paths").get_object())
    for (const auto& [method, operation] : methods.get_object()) {
      const json::array& of_call = operation.at("tags").get_array();
      ASSERT_EQ(of_call.size(), 1u) << path;
      used.insert(of_call[0].get_string());
      EXPECT_FALSE(operation.at("summary").get_string().empty()) << path;
    }
  EXPECT_EQ(used, tags);
}

// That they are right is tried in tests/client/test_openapi.py.
TEST_F(OpenApi, EveryBodyAndAnswerOfOneSchemaHasAnExample) {
  int n_seen = 0;
  const json::value document = document_;
  visit(document, "", [&](const json::value& value, const std::string& path) {
    if (!path.ends_with("/application/json") && !path.ends_with("/text/event-stream")) return;
    const bool is_of_one = value.at("schema").get_object().contains("$ref");
    const bool is_error = path.starts_with("/components/");
    EXPECT_EQ(value.get_object().contains("example"), is_of_one && !is_error) << path;
    ++n_seen;
  });
  EXPECT_GT(n_seen, 40);
}

TEST_F(OpenApi, DescribesEachFieldOfAPauseAndAGeneration) {
  Core core(std::make_unique<FakeEngine>(), clock_);
  desk_.serve(core, nullptr, "fake", "");
  const Dossier dossier(io_.get_executor());
  const json::object pause = pause_object(desk_, dossier, {});
  EXPECT_EQ(keys_of(pause), keys_of(schema("Pause").at("properties")));
  for (const char* inner : {"at", "reason"})
    EXPECT_EQ(keys_of(pause.at(inner)), keys_of(schema("Pause").at("properties").at(inner).at("properties")));
  EXPECT_EQ(pause.at("expires_at").get_double() - pause.at("paused_at").get_double(), 24 * 3600) << "as it says";
  EXPECT_EQ(keys_of(generation_object(desk_, dossier)), keys_of(schema("Generation").at("properties")));
}

// The tables of docs/api.md are made from the descriptions.
TEST_F(OpenApi, EachFieldOfAPauseAndAGenerationSaysWhatItIs) {
  for (const char* name : {"Pause", "Generation"})
    for (const auto& [key, property] : schema(name).at("properties").get_object())
      EXPECT_TRUE(property.get_object().contains("description") || property.get_object().contains("properties")) << key;
}

TEST_F(OpenApi, DocsHaveItsTables) {
  std::ifstream file(FERMATA_API_DOC);
  const std::string document{std::istreambuf_iterator<char>(file), {}};
  for (const char* table : {"fields", "errors", "Pause", "Generation", "Event"})
    ASSERT_NE(document.find("<!-- table: " + std::string(table) + " -->"), std::string::npos) << table;
  EXPECT_EQ(with_tables(document), document) << "run fermata_api_doc < docs/api.md > new.md, and put it in its place";
}

TEST_F(OpenApi, HasEveryErrorWithItsStatus) {
  const json::value document = document_;
  for (const ErrorName& error : error_names()) {
    const std::string path = "/components/responses/error" + std::to_string(error.status) + "/x-codes";
    const json::array& codes = document.at_pointer(path).get_array();
    EXPECT_NE(std::find(codes.begin(), codes.end(), json::value(error.code)), codes.end()) << error.code;
  }
}

}  // namespace
}  // namespace fermata::api
