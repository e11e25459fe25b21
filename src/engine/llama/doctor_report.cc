// One list of what the doctor tells, rendered for people and for programs. A new fact is one line in sections_of().
#include <locale>
#include <sstream>
#include <string_view>
#include <type_traits>
#include <variant>

#include "engine/llama/doctor.h"
#include "engine/llama/json_text.h"

namespace fermata {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;
using Value = std::variant<bool, std::int64_t, std::uint64_t, double, std::string, std::vector<std::string>, Pairs>;

// Keys are JSON's; people read them with spaces. A key that ends in "bytes" counts bytes.
struct Field {
  std::string_view key;
  Value value;
};
struct Section {
  std::string_view name;
  std::vector<Field> fields;
};

std::vector<Section> sections_of(const DoctorReport& report) {
  const DoctorReport::Machine& machine = report.machine;
  const DoctorReport::Model& model = report.model;
  std::vector<Section> sections = {
      {"machine",
       {{"cpu", machine.cpu_name},
        {"cores", std::int64_t{machine.n_cores}},
        {"logical_cpus_allowed", std::int64_t{machine.n_allowed}},
        {"cpu_quota", machine.quota},
        {"kernels", machine.features},
        {"attention_instructions", machine.attention},
        {"amx_present", machine.amx_present},
        {"amx_used", false},
        {"memory_bytes", machine.memory_bytes},
        {"memory_available_bytes", machine.memory_available_bytes}}},
      {"threads", {{"count", std::int64_t{model.n_threads}}, {"why", model.threads_why}}},
  };
  if (!model.loaded) return sections;
  sections.push_back({"model",
                      {{"name", model.name},
                       {"path", model.path},
                       {"description", model.description},
                       {"parameters", model.n_parameters},
                       {"weights_bytes", model.weights_bytes},
                       {"context_trained", std::int64_t{model.n_ctx_train}},
                       {"fingerprint", model.fingerprint},
                       {"fingerprint_fields", model.fields}}});
  sections.push_back({"exact",
                      {{"alone", model.exactness.alone},
                       {"with_neighbours", model.exactness.with_neighbours},
                       {"why", model.exactness.why},
                       {"tiled_products", model.tiled_products},
                       {"repacked_weights", model.repacked_weights},
                       {"reordered_blocks", model.reordered_blocks}}});
  sections.push_back({"pool",
                      {{"keys", model.k_type},
                       {"values", model.v_type},
                       {"attention", model.attention},
                       {"cells", std::int64_t{model.n_cells}},
                       {"bytes", model.pool_bytes},
                       {"sequences", std::int64_t{model.n_sequences}},
                       {"rows_per_step", std::int64_t{model.n_rows_max}}}});
  return sections;
}

template <class Number>
std::string text_of(Number number) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text << number;
  return text.str();
}

std::string json_value(const Value& value) {
  return std::visit(
      [](const auto& content) -> std::string {
        using Content = std::decay_t<decltype(content)>;
        std::string out;
        if constexpr (std::is_same_v<Content, bool>) {
          return content ? "true" : "false";
        } else if constexpr (std::is_arithmetic_v<Content>) {
          return text_of(content);
        } else if constexpr (std::is_same_v<Content, std::string>) {
          return json_string(content);
        } else if constexpr (std::is_same_v<Content, Pairs>) {
          for (const auto& [name, text] : content)
            out += (out.empty() ? "\n      " : ",\n      ") + json_string(name) + ": " + json_string(text);
          return "{" + out + "\n    }";
        } else {
          for (const std::string& text : content) out += (out.empty() ? "" : ", ") + json_string(text);
          return "[" + out + "]";
        }
      },
      value);
}

// `indent`: of the lines after the first.
std::string text_value(const Field& field, const std::string& indent) {
  return std::visit(
      [&](const auto& content) -> std::string {
        using Content = std::decay_t<decltype(content)>;
        std::string out;
        if constexpr (std::is_same_v<Content, bool>) {
          return content ? "yes" : "no";
        } else if constexpr (std::is_arithmetic_v<Content>) {
          if (!field.key.ends_with("bytes")) return text_of(content);
          return text_of(static_cast<std::uint64_t>(static_cast<double>(content) / (1 << 20) + 0.5)) + " MiB";
        } else if constexpr (std::is_same_v<Content, std::string>) {
          return printable(content);
        } else if constexpr (std::is_same_v<Content, Pairs>) {
          for (const auto& [name, text] : content)
            out += (out.empty() ? "" : "\n" + indent) + printable(name) + " = " + printable(text);
          return out;
        } else {
          for (const std::string& text : content) out += (out.empty() ? "" : " ") + printable(text);
          return out;
        }
      },
      field.value);
}

// "memory_available_bytes" -> "memory available", filled up to one width.
std::string label_of(std::string_view key) {
  constexpr std::size_t kWidth = 24;
  if (key.ends_with("_bytes")) key.remove_suffix(6);
  std::string label(key);
  for (char& c : label)
    if (c == '_') c = ' ';
  label.resize(kWidth, ' ');
  return label;
}

}  // namespace

std::string DoctorReport::to_text() const {
  std::string out;
  for (const Section& section : sections_of(*this)) {
    out += std::string(section.name) + '\n';
    for (const Field& field : section.fields) {
      const std::string label = "  " + label_of(field.key);
      out += label + text_value(field, std::string(label.size(), ' ')) + '\n';
    }
  }
  return out;
}

std::string DoctorReport::to_json() const {
  std::string out;
  for (const Section& section : sections_of(*this)) {
    out += (out.empty() ? "\n  " : ",\n  ") + json_string(section.name) + ": {";
    bool first = true;
    for (const Field& field : section.fields) {
      out += (first ? "\n    " : ",\n    ") + json_string(field.key) + ": " + json_value(field.value);
      first = false;
    }
    out += "\n  }";
  }
  return "{" + out + "\n}\n";
}

}  // namespace fermata
