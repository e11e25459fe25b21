#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "api/openai/call_parts.h"
#include "api/openai/fields.h"
#include "base/limits.h"

namespace fermata::api {
namespace {

using P = SamplingParams;

// Numbers of the table, under all their names.
void read_members(FieldReader& body, Route route, SamplingParams& params) {
  std::map<std::string_view, std::pair<double, std::string_view>> found;  // by first name: value, and the name it had
  for (const Field& field : fields()) {
    if (field.member.index() == 0 || !is_on(field, route)) continue;
    std::optional<double> number;
    if (const auto* whole = std::get_if<std::int32_t P::*>(&field.member)) {
      const auto n =
          body.integer(field.name, static_cast<std::int64_t>(field.least), static_cast<std::int64_t>(field.most));
      if (!n) continue;
      params.*(*whole) = static_cast<std::int32_t>(*n);
      number = static_cast<double>(*n);
    } else {
      number = body.number(field.name, field.least, field.most);
      if (!number) continue;
      params.*std::get<float P::*>(field.member) = static_cast<float>(*number);
    }
    const auto [before, is_new] =
        found.try_emplace(field.same_as.empty() ? field.name : field.same_as, *number, field.name);
    if (!is_new && before->second.first != *number)
      body.complain(field.name,
                    "and " + std::string(before->second.second) + " are given with different values; give one");
  }
}

void read_seed(FieldReader& body, Call& call) {
  const json::value* value = body.any("seed");
  if (value == nullptr) return;
  if (value->is_uint64()) {
    call.has_seed = true;
    call.request.sampling.seed = value->get_uint64();
    return;
  }
  // A number beyond the integers came as a float, and has lost its last digits.
  constexpr double kExact = 9007199254740992.0;  // 2^53
  const double* number = value->if_double();
  const std::int64_t* whole = value->if_int64();
  const bool is_drawn_or_seed =
      whole ? *whole >= -1 : number && *number >= -1 && *number <= kExact && *number == std::floor(*number);
  if (!is_drawn_or_seed)
    return body.complain(
        "seed",
        "must be an integer from 0 to 18446744073709551615, or -1 for one that is drawn; it is " + in_words(*value));
  const auto seed = body.integer("seed", -1, std::numeric_limits<std::int64_t>::max());
  if (!seed || *seed == -1) return;
  call.has_seed = true;
  call.request.sampling.seed = static_cast<std::uint64_t>(*seed);
}

void read_breakers(FieldReader& body, SamplingParams& params) {
  const json::array* list = body.array("dry_sequence_breakers");
  if (list == nullptr) return;
  if (list->size() > limits::kDryBreakersMax)
    return body.too_large("dry_sequence_breakers", list->size(), limits::kDryBreakersMax, "strings");
  params.dry_sequence_breakers.clear();
  for (std::size_t i = 0; i < list->size(); ++i) {
    const json::value& breaker = (*list)[i];
    const std::string name = "dry_sequence_breakers[" + std::to_string(i) + "]";
    if (!breaker.is_string() || breaker.get_string().empty())
      return body.complain(name, "must be a string that is not empty; it is " + in_words(breaker));
    if (breaker.get_string().size() > limits::kDryBreakerBytesMax)
      return body.too_large(name, breaker.get_string().size(), limits::kDryBreakerBytesMax, "bytes");
    params.dry_sequence_breakers.emplace_back(breaker.get_string().data(), breaker.get_string().size());
  }
}

std::optional<std::int32_t> token_of(std::string_view digits) {
  std::int32_t token = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), token);
  if (failed != std::errc() || end != digits.data() + digits.size() || token < 0) return std::nullopt;
  return token;
}

void add_bias(FieldReader& body, const std::string& name, std::optional<std::int32_t> token, const json::value& value,
              SamplingParams& params) {
  constexpr double kBiasMax = 10'000;
  if (!token) return body.complain(name, "must be for a token id; /tokenize gives the ids of a text");
  double bias = -std::numeric_limits<double>::infinity();
  if (value.is_number())
    bias = value.to_number<double>();
  else if (!value.is_bool() || value.get_bool())
    return body.complain(name, "must be a number, or false to forbid the token; it is " + in_words(value));
  if (value.is_number() && !(bias >= -kBiasMax && bias <= kBiasMax))
    return body.complain(name, "must be a number between -10000 and 10000; it is " + in_words(value));
  params.logit_bias.push_back({TokenId{*token}, static_cast<float>(bias)});
}

void read_bias_pair(FieldReader& body, std::size_t i, const json::value& value, SamplingParams& params) {
  const std::string name = "logit_bias[" + std::to_string(i) + "]";
  if (!value.is_array() || value.get_array().size() != 2)
    return body.complain(name, "must be a pair [token id, bias]; it is " + in_words(value));
  const json::array& pair = value.get_array();
  std::optional<std::int32_t> token;
  if (pair[0].is_int64() || pair[0].is_uint64()) token = token_of(to_text(pair[0]));
  add_bias(body, name, token, pair[1], params);
}

void read_biases(FieldReader& body, SamplingParams& params) {
  const json::value* value = body.any("logit_bias");
  if (value == nullptr) return;
  if (!value->is_object() && !value->is_array())
    return body.complain(
        "logit_bias", "must be an object from token ids to numbers, or an array of pairs; it is " + in_words(*value));
  const std::size_t n = value->is_object() ? value->get_object().size() : value->get_array().size();
  if (n > limits::kLogitBiasMax) return body.too_large("logit_bias", n, limits::kLogitBiasMax, "entries");
  if (value->is_array()) {
    for (std::size_t i = 0; i < n; ++i) read_bias_pair(body, i, value->get_array()[i], params);
    return;
  }
  for (const auto& [key, bias] : value->get_object()) {
    const std::string_view token(key.data(), key.size());
    const auto id = token_of(token);
    add_bias(body, id ? "logit_bias." + std::string(token) : "logit_bias", id, bias, params);
  }
}

constexpr std::string_view kAnyObject = R"({"type":"object"})";

std::string schema_text(FieldReader& reader, std::string_view name) {
  const json::object* schema = reader.object(name);
  if (schema == nullptr || schema->empty()) return std::string(kAnyObject);
  std::string text = to_text(*schema);
  if (text.size() > limits::kGrammarBytesMax) reader.too_large(name, text.size(), limits::kGrammarBytesMax, "bytes");
  return text;
}

// The schema it stands for; empty: text.
std::string read_response_format(FieldReader& body) {
  const json::object* object = body.object("response_format");
  if (object == nullptr) return {};
  FieldReader format(*object, "response_format", body.complaints());
  static constexpr std::string_view kTypes[] = {"text", "json_object", "json_schema"};
  const auto type = format.word("type", kTypes);
  std::string schema;
  if (!type) {
    format.complain("type", R"(must be "text", "json_object" or "json_schema")");
  } else if (*type == 1) {
    schema = schema_text(format, "schema");  // llama-server's extension
  } else if (*type == 2) {
    const json::object* wrapper = format.object("json_schema");
    if (wrapper == nullptr) {
      format.refuse_missing("json_schema");
      return {};
    }
    FieldReader inner(*wrapper, "response_format.json_schema", body.complaints());
    schema = schema_text(inner, "schema");
    for (const std::string_view harmless : {"name", "description", "strict"}) inner.ignore(harmless);
    inner.refuse_unread();
  }
  format.refuse_unread();
  return schema;
}

}  // namespace

void read_sampling(FieldReader& body, Call& call) {
  SamplingParams& params = call.request.sampling;
  read_members(body, call.route, params);
  read_seed(body, call);
  read_breakers(body, params);
  read_biases(body, params);
  params.ignore_eos = body.boolean("ignore_eos").value_or(false);
}

void read_constraint(FieldReader& body, Call& call) {
  SamplingParams& params = call.request.sampling;
  params.grammar = body.string("grammar", limits::kGrammarBytesMax).value_or("");
  std::string format = read_response_format(body);
  std::string schema;
  if (body.object("json_schema") != nullptr) schema = schema_text(body, "json_schema");
  if (!format.empty() && !schema.empty() && format != schema)
    body.complain("json_schema", "and response_format ask for different schemas; give one");
  call.schema_is_format = !format.empty();
  params.json_schema = format.empty() ? std::move(schema) : std::move(format);
  if (!params.grammar.empty() && !params.json_schema.empty())
    body.complain("grammar", "excludes response_format and json_schema; give one");
}

}  // namespace fermata::api
