#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "report/report.h"
#include "report/sheet.h"

namespace ceems::report {

// Members of the JSON of reports and digests, in which what is not known is null. Each adds one to
// the object that is open.

inline void add(JsonWriter& json, std::string_view name, const Number& number) {
  if (number) {
    json.member(name, *number);
  } else {
    json.member(name, nullptr);
  }
}

/// An empty text is not known.
inline void add_text(JsonWriter& json, std::string_view name, std::string_view text) {
  if (text.empty()) {
    json.member(name, nullptr);
  } else {
    json.member(name, text);
  }
}

inline void add_texts(JsonWriter& json,
                      std::string_view name,
                      const std::vector<std::string>& texts) {
  json.key(name).begin_array();
  for (const std::string& text : texts) {
    json.value(text);
  }
  json.end_array();
}

/// The options of sbatch among the lines, and what they were: members that say the same as `lines`,
/// for programs that know them only.
inline void add_options(JsonWriter& json, const std::vector<advice::Line>& lines) {
  constexpr std::string_view kSbatch = "#SBATCH ";
  std::vector<std::string> sbatch;
  std::vector<std::string> was;
  for (const advice::Line& line : lines) {
    if (line.type.starts_with(kSbatch)) {
      sbatch.push_back(line.type.substr(kSbatch.size()));
      was.push_back(line.was);
    }
  }
  while (!was.empty() && was.back().empty()) {
    was.pop_back();
  }
  add_texts(json, "sbatch", sbatch);
  add_texts(json, "was", was);
}

/// What a finding says, the lines to type, and what they save.
inline void add_advice(JsonWriter& json,
                       const advice::Finding& finding,
                       std::string_view language) {
  json.member("text", text_in(finding, language));
  json.key("lines").begin_array();
  for (const advice::Line& line : finding.lines) {
    json.begin_object().member("type", line.type);
    add_text(json, "was", line.was);
    json.end_object();
  }
  json.end_array();
  add_options(json, finding.lines);
  json.key("saves").begin_object();
  if (finding.saves_kwh) {
    json.member("kwh", *finding.saves_kwh);
  }
  json.end_object();
}

}  // namespace ceems::report
