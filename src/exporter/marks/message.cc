#include "exporter/marks/message.h"

#include <array>
#include <cmath>
#include <utility>

#include "base/strings.h"

namespace ceems::exporter::marks {
namespace {

using Kind = Message::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 6> kKinds{{{"begin", Kind::kBegin},
                                                                   {"end", Kind::kEnd},
                                                                   {"result", Kind::kResult},
                                                                   {"progress", Kind::kProgress},
                                                                   {"fom", Kind::kFom},
                                                                   {"attach", Kind::kAttach}}};

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxName && is_letter(text.front()) &&
         has_only_words(text, "_.-");
}

bool is_measure(std::string_view text) {
  return !text.empty() && text.size() <= kMaxMeasure &&
         (is_letter(text.front()) || text.front() == '%') && has_only_words(text, "_.-/%^*");
}

std::optional<double> parse_amount(std::string_view text) {
  const auto value = parse_double(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

}  // namespace

std::optional<Message> parse_message(std::string_view text) {
  if (text.size() > kMaxMessage) {
    return std::nullopt;
  }
  const std::string_view verb = take_word(text);
  Message message;
  bool known = false;
  for (const auto& [name, kind] : kKinds) {
    if (name == verb) {
      message.kind = kind;
      known = true;
    }
  }
  if (!known) {
    return std::nullopt;
  }
  const bool has_amount = message.kind == Kind::kResult || message.kind == Kind::kProgress ||
                          message.kind == Kind::kFom;
  const bool has_name = message.kind != Kind::kAttach;
  const std::string_view first = take_word(text);
  const std::string_view second = has_amount ? take_word(text) : std::string_view();
  const bool amount_first = message.kind == Kind::kProgress;
  message.name = amount_first ? second : first;
  if (has_name ? !is_name(message.name) : !first.empty()) {
    return std::nullopt;
  }
  if (has_amount) {
    const auto value = parse_amount(amount_first ? first : second);
    const bool counts = message.kind != Kind::kFom;
    if (!value || (counts && (*value < 0 || *value > kMaxCount))) {
      return std::nullopt;
    }
    message.value = *value;
    message.measure = amount_first ? std::string_view() : take_word(text);
    if (!message.measure.empty() && !is_measure(message.measure)) {
      return std::nullopt;
    }
  }
  return take_word(text).empty() ? std::optional(message) : std::nullopt;
}

std::optional<std::string_view> parse_cgroup_path(std::string_view text,
                                                  std::string_view controller) {
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    const std::string_view number = take_until(line, ':');
    std::string_view controllers = take_until(line, ':');
    bool found = controller.empty() && controllers.empty() && number == "0";
    while (!controllers.empty()) {
      found = take_until(controllers, ',') == controller || found;
    }
    if (found && line.starts_with('/')) {
      return line;
    }
  }
  return std::nullopt;
}

}  // namespace ceems::exporter::marks
