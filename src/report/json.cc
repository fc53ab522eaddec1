// The report as one JSON object.
#include "base/json.h"

#include "report/json_members.h"
#include "report/members.h"
#include "report/report.h"

namespace ceems::report {
namespace {

class JsonMembers {
 public:
  JsonMembers(JsonWriter& json, std::string_view language) : json_(json), language_(language) {}

  void begin(std::string_view name) { json_.key(name).begin_object(); }
  void end() { json_.end_object(); }
  void advice(const advice::Finding& finding) { add_advice(json_, finding, language_); }

  template <typename Value>
  void operator()(const Member& member, const Value& value) {
    if (!member.json.empty()) {
      add(member, value);
    }
  }

 private:
  void add(const Member& member, const std::string& text) {
    if (member.null_if_empty) {
      add_text(json_, member.json, text);
    } else {
      json_.member(member.json, text);
    }
  }
  void add(const Member& member, const Number& number) { report::add(json_, member.json, number); }
  void add(const Member& member, const std::size_t& number) {
    json_.member(member.json, static_cast<std::int64_t>(number));
  }
  /// A moment that has not come is not known.
  void add(const Member& member, const std::int64_t& ms) {
    if (ms > 0) {
      json_.member(member.json, ms);
    } else {
      json_.member(member.json, nullptr);
    }
  }
  void add(const Member& member, const bool& from_jobstats) {
    if (from_jobstats) {
      json_.member(member.json, "js1");
    }
  }
  template <typename Enum>
    requires std::is_enum_v<Enum>
  void add(const Member& member, const Enum& value) {
    json_.member(member.json, to_string(value));
  }
  template <typename Compare>
  void add(const Member& member, const std::map<std::string, double, Compare>& numbers) {
    begin(member.json);
    for (const auto& [name, number] : numbers) {
      json_.member(name, number);
    }
    end();
  }
  template <typename Part>
  void add(const Member& member, const std::vector<Part>& parts) {
    json_.key(member.json).begin_array();
    for (const Part& part : parts) {
      json_.begin_object();
      visit_members(*this, part);
      json_.end_object();
    }
    json_.end_array();
  }

  JsonWriter& json_;
  std::string_view language_;
};

}  // namespace

std::string to_json(const Report& report, const View& view) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("v", 1);
  visit_members(JsonMembers(json, view.language), report);
  json.end_object();
  return text;
}

}  // namespace ceems::report
