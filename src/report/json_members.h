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

/// What a finding says, the lines to type, and what they save.
inline void add_advice(JsonWriter& json,
                       const advice::Finding& finding,
                       std::string_view language) {
  json.member("text", text_in(finding, language));
  add_texts(json, "sbatch", finding.sbatch);
  add_texts(json, "was", finding.was);
  json.key("saves").begin_object();
  if (finding.saves_kwh) {
    json.member("kwh", *finding.saves_kwh);
  }
  json.end_object();
}

}  // namespace ceems::report
