#include "report/stored.h"

#include <zstd.h>

#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

#include <boost/json.hpp>

#include "base/json.h"
#include "crypto/base64.h"
#include "report/members.h"

namespace ceems::report {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxBytes = std::size_t{64} << 20U;  // of JSON

/// Writes members. What is empty or not known is left out.
class Writing {
 public:
  explicit Writing(JsonWriter& json) : json_(json) {}

  void begin(std::string_view /*name*/) {}
  void end() {}
  void advice(const advice::Finding& finding) {
    (*this)({"", "text"}, finding.text);
    (*this)({"", "lines"}, finding.lines);
    (*this)({"", "saves_kwh"}, finding.saves_kwh);
  }
  void operator()(const Member& member, const std::string& text) {
    if (!text.empty()) {
      json_.member(member.stored, text);
    }
  }
  void operator()(const Member& member, const Number& number) {
    if (number) {
      json_.member(member.stored, *number);
    }
  }
  void operator()(const Member& member, const std::int64_t& number) {
    json_.member(member.stored, number);
  }
  void operator()(const Member& member, const std::size_t& number) {
    json_.member(member.stored, static_cast<std::int64_t>(number));
  }
  void operator()(const Member& member, const bool& set) {
    if (set) {
      json_.member(member.stored, set);
    }
  }
  template <typename Enum>
    requires std::is_enum_v<Enum>
  void operator()(const Member& member, const Enum& value) {
    json_.member(member.stored, static_cast<std::int64_t>(value));
  }
  template <typename Value, typename Compare>
  void operator()(const Member& member, const std::map<std::string, Value, Compare>& map) {
    json_.key(member.stored).begin_object();
    for (const auto& [key, value] : map) {
      json_.member(key, value);
    }
    json_.end_object();
  }
  template <typename Part>
  void operator()(const Member& member, const std::vector<Part>& parts) {
    json_.key(member.stored).begin_array();
    for (const Part& part : parts) {
      json_.begin_object();
      visit_members(*this, part);
      json_.end_object();
    }
    json_.end_array();
  }

 private:
  JsonWriter& json_;
};

/// Reads the same members. What is missing, or of another kind, keeps its value.
class Reading {
 public:
  explicit Reading(const json::object& object) : object_(&object) {}

  void begin(std::string_view /*name*/) const {}
  void end() const {}
  void advice(advice::Finding& finding) const {
    (*this)({"", "text"}, finding.text);
    (*this)({"", "lines"}, finding.lines);
    // Reports that were stored before other managers had lines have the options of sbatch only.
    const std::vector<std::string> options = texts("sbatch");
    const std::vector<std::string> was = texts("was");
    for (std::size_t i = 0; i < options.size(); ++i) {
      finding.lines.push_back(
          {.type = "#SBATCH " + options[i], .was = i < was.size() ? was[i] : std::string()});
    }
    (*this)({"", "saves_kwh"}, finding.saves_kwh);
  }
  void operator()(const Member& member, std::string& text) const {
    if (const auto* value = find(member.stored); value != nullptr && value->is_string()) {
      text = value->as_string();
    }
  }
  void operator()(const Member& member, Number& number) const {
    if (const auto* value = find(member.stored); value != nullptr && value->is_number()) {
      number = value->to_number<double>();
    }
  }
  void operator()(const Member& member, std::int64_t& number) const {
    if (const auto* value = find(member.stored); value != nullptr && value->is_int64()) {
      number = value->as_int64();
    }
  }
  void operator()(const Member& member, std::size_t& number) const {
    std::int64_t read = 0;
    (*this)(member, read);
    number = read > 0 ? static_cast<std::size_t>(read) : 0;
  }
  void operator()(const Member& member, bool& set) const {
    if (const auto* value = find(member.stored); value != nullptr && value->is_bool()) {
      set = value->as_bool();
    }
  }
  template <typename Enum>
    requires std::is_enum_v<Enum>
  void operator()(const Member& member, Enum& value) const {
    std::int64_t read = static_cast<std::int64_t>(value);
    (*this)(member, read);
    constexpr std::int64_t kMaxEnum = 3;  // of all enumerations
    value = static_cast<Enum>(read >= 0 && read <= kMaxEnum ? read : 0);
  }
  template <typename Value, typename Compare>
  void operator()(const Member& member, std::map<std::string, Value, Compare>& map) const {
    if (const auto* value = find(member.stored); value != nullptr && value->is_object()) {
      for (const auto& [key, one] : value->as_object()) {
        if constexpr (std::is_same_v<Value, double>) {
          if (one.is_number()) {
            map.emplace(key, one.template to_number<double>());
          }
        } else if (one.is_string()) {
          map.emplace(key, one.as_string());
        }
      }
    }
  }
  template <typename Part>
  void operator()(const Member& member, std::vector<Part>& parts) const {
    for_each(member.stored, [&parts](const json::value& value) {
      if (value.is_object()) {
        visit_members(Reading(value.as_object()), parts.emplace_back());
      }
    });
  }

 private:
  [[nodiscard]] const json::value* find(std::string_view name) const {
    return object_->if_contains(json::string_view(name.data(), name.size()));
  }
  template <typename Each>
  void for_each(std::string_view name, const Each& each) const {
    if (const auto* value = find(name); value != nullptr && value->is_array()) {
      for (const json::value& one : value->as_array()) {
        each(one);
      }
    }
  }
  [[nodiscard]] std::vector<std::string> texts(std::string_view name) const {
    std::vector<std::string> texts;
    for_each(name, [&texts](const json::value& value) {
      if (value.is_string()) {
        texts.emplace_back(value.as_string());
      }
    });
    return texts;
  }

  const json::object* object_;
};

/// Empty if zstd fails, which needs a lack of memory.
std::string packed(std::string_view text) {
  constexpr int kLevel = 3;
  std::string bytes(ZSTD_compressBound(text.size()), '\0');
  const std::size_t size =
      ZSTD_compress(bytes.data(), bytes.size(), text.data(), text.size(), kLevel);
  bytes.resize(ZSTD_isError(size) != 0 ? 0 : size);
  return bytes;
}

std::optional<std::string> unpacked(std::string_view bytes) {
  const unsigned long long size = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR || size > kMaxBytes) {
    return std::nullopt;
  }
  std::string text(size, '\0');
  const std::size_t done = ZSTD_decompress(text.data(), text.size(), bytes.data(), bytes.size());
  return ZSTD_isError(done) == 0 && done == size ? std::optional(std::move(text)) : std::nullopt;
}

}  // namespace

std::string to_stored(const Report& report) {
  std::string text;
  JsonWriter json(text, JsonEscape::kPlain);
  json.begin_object();
  visit_members(Writing(json), report);
  json.end_object();
  return crypto::base64_encode(packed(text));
}

Result<Report> from_stored(std::string_view text) {
  const auto bytes = crypto::base64_decode(text);
  const auto read = bytes ? unpacked(*bytes) : std::nullopt;
  json::error_code error;
  const json::value value = read ? json::parse(*read, error) : json::value();
  if (error || !value.is_object()) {
    return fail(ErrorCode::kParse, "a stored report is malformed");
  }
  Report report;
  visit_members(Reading(value.as_object()), report);
  std::erase_if(report.findings,
                [](const advice::Finding& finding) { return !finding.text.contains("en"); });
  return report;
}

}  // namespace ceems::report
