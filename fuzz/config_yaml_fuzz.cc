// Any text is a document or one error, and every value of a document can be read as every type.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "config/yaml.h"

namespace {

void expect(bool condition) {
  if (!condition) {
    std::abort();
  }
}

bool is_one_line(const ceems::Error& error) {
  return !error.message.empty() && error.message.find('\n') == std::string::npos;
}

void walk(const ceems::config::Node& node) {
  for (const auto& asked : {node.as_string().has_value(), node.as_bool().has_value(),
                            node.as_int().has_value(), node.as_double().has_value()}) {
    expect(!asked || node.present());
  }
  if (const auto duration = node.as_duration(); !duration) {
    expect(is_one_line(duration.error()));
  }
  expect(is_one_line(node.error("message")));
  static_cast<void>(node.as_string_list().has_value());
  static_cast<void>(node.only_keys({"clusters", "updaters", "data"}).has_value());
  for (const auto& item : node.items()) {
    walk(item);
  }
  for (const auto& [key, value] : node.entries()) {
    expect(node[key].where() == value.where());
    walk(value);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto document = ceems::config::parse_yaml(text, "fuzz.yml");
  if (document) {
    walk(*document);
  } else {
    expect(is_one_line(document.error()));
  }
  return 0;
}
