#include "cacct/output/answer.h"

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/strings.h"
#include "base/utf8.h"

namespace ceems::cacct {
namespace {

namespace sj = simdjson::dom;

constexpr std::size_t kMaxDepth = 16;

std::string number_text(const sj::element& value) {
  std::int64_t whole = 0;
  double number = 0;
  if (value.get(whole) == simdjson::SUCCESS) {
    return std::to_string(whole);
  }
  return value.get(number) == simdjson::SUCCESS ? fmt::format("{}", number) : std::string();
}

/// Infinities and values beyond a double are not JSON; null and texts in a metric are skipped.
Record::Numbers read_numbers(const sj::object& object) {
  Record::Numbers numbers;
  for (const auto& [name, value] : object) {
    double number = 0;
    if (value.get(number) == simdjson::SUCCESS && std::isfinite(number)) {
      numbers.emplace_back(terminal_safe(name), number);
    }
  }
  std::ranges::sort(numbers);
  return numbers;
}

Record read_record(const sj::object& object) {
  Record record;
  for (const auto& [name, value] : object) {
    std::string_view text;
    sj::object members;
    bool truth = false;
    if (value.get(text) == simdjson::SUCCESS) {
      record.texts[std::string(name)] = terminal_safe(text);
    } else if (value.get(members) == simdjson::SUCCESS) {
      if (auto numbers = read_numbers(members); !numbers.empty()) {
        record.metrics[std::string(name)] = std::move(numbers);
      }
    } else if (value.get(truth) == simdjson::SUCCESS) {
      record.texts[std::string(name)] = truth ? "true" : "false";
    } else if (value.is_number()) {
      record.texts[std::string(name)] = number_text(value);
    }
  }
  return record;
}

std::unexpected<Error> unexpected_answer(std::string_view what) {
  return fail(ErrorCode::kParse, "unexpected answer of the API server: {}", what);
}

}  // namespace

std::string_view Record::text(std::string_view tag) const {
  const auto found = texts.find(tag);
  return found == texts.end() ? std::string_view() : std::string_view(found->second);
}

const Record::Numbers* Record::numbers(std::string_view tag) const {
  const auto found = metrics.find(tag);
  return found == metrics.end() ? nullptr : &found->second;
}

std::int64_t Record::whole(std::string_view tag) const {
  return parse_int<std::int64_t>(text(tag)).value_or(0);
}

Result<std::vector<Record>> parse_answer(std::string body) {
  sj::parser parser;
  if (const auto error = parser.allocate(body.size(), kMaxDepth)) {
    return unexpected_answer(simdjson::error_message(error));
  }
  body.reserve(body.size() + simdjson::SIMDJSON_PADDING);
  sj::element document;
  if (const auto error = parser.parse(body).get(document)) {
    return unexpected_answer(simdjson::error_message(error));
  }
  std::string_view status;
  if (document["status"].get(status) != simdjson::SUCCESS) {
    return unexpected_answer("no status");
  }
  if (status == "error") {
    std::string_view reason = "unknown error";
    if (document["error"].get(reason) != simdjson::SUCCESS || reason.empty()) {
      reason = "unknown error";
    }
    return fail(ErrorCode::kUnavailable, "{}", printable(reason));
  }
  std::vector<Record> records;
  sj::element data;
  if (document["data"].get(data) != simdjson::SUCCESS || data.is_null()) {
    return records;
  }
  sj::array items;
  if (data.get(items) != simdjson::SUCCESS) {
    return unexpected_answer("data is not a list");
  }
  for (const sj::element item : items) {
    sj::object object;
    if (item.get(object) != simdjson::SUCCESS) {
      return unexpected_answer("a member of data is not an object");
    }
    records.push_back(read_record(object));
  }
  return records;
}

std::string safe_lines(std::string_view text) {
  std::string out;
  for (bool first = true; const std::string_view line : split(text, '\n')) {
    out += (std::exchange(first, false) ? "" : "\n") + terminal_safe(line);
  }
  return out;
}

}  // namespace ceems::cacct
