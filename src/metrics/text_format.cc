#include "metrics/text_format.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/strings.h"
#include "base/utf8.h"

namespace ceems::metrics {
namespace {

struct ParsedFamily {
  std::string type;
  std::string help{kNoHelp};
};

std::unexpected<Error> wrong(std::string message) {
  return fail(Error{.code = ErrorCode::kParse, .message = std::move(message)});
}

/// Blanks and tabs separate tokens.
std::string_view skip_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

std::string_view take_token(std::string_view& rest) {
  rest = skip_blanks(rest);
  const std::size_t end = std::min(rest.find_first_of(" \t"), rest.size());
  const std::string_view token = rest.substr(0, end);
  rest.remove_prefix(end);
  return token;
}

/// In help texts \\ and \n are escapes.
std::string help_text(std::string_view text) {
  std::string help;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\\' && i + 1 < text.size();
    if (escape && (text[i + 1] == 'n' || text[i + 1] == '\\')) {
      ++i;
      help += text[i] == 'n' ? '\n' : '\\';
    } else {
      help += text[i];
    }
  }
  return clean_text(help);
}

std::optional<double> value_of(std::string_view text) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::string lower = to_lower(text);
  if (lower == "nan") {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (lower == "+inf" || lower == "inf" || lower == "+infinity" || lower == "infinity") {
    return kInfinity;
  }
  if (lower == "-inf" || lower == "-infinity") {
    return -kInfinity;
  }
  const bool plus = text.starts_with('+') && !text.starts_with("+-");
  return parse_double(text.substr(plus ? 1 : 0));
}

class Parser {
 public:
  explicit Parser(const TextLimits& limits) : limits_(limits) {}

  Result<std::vector<TextSample>> parse(std::string_view text) {
    for (int number = 1; !text.empty(); ++number) {
      std::string_view line = take_until(text, '\n');
      line.remove_suffix(line.ends_with('\r') ? 1 : 0);
      CEEMS_TRY_IN(fmt::format("line {}", number), take(skip_blanks(line)));
    }
    return std::move(samples_);
  }

 private:
  Result<> take(std::string_view line) {
    if (line.empty()) {
      return {};
    }
    return line.starts_with('#') ? take_comment(line.substr(1)) : take_sample(line);
  }

  Result<> take_comment(std::string_view rest) {
    const std::string_view kind = take_token(rest);
    if (kind != "HELP" && kind != "TYPE") {
      return {};
    }
    const std::string_view name = take_token(rest);
    if (!is_metric_name(name)) {
      return wrong(fmt::format("invalid metric name '{}'", printable(name)));
    }
    ParsedFamily& family = families_[std::string(name)];
    if (kind == "HELP") {
      family.help = help_text(skip_blanks(rest));
      return {};
    }
    const std::string type = to_lower(take_token(rest));
    static const std::set<std::string, std::less<>> kTypes{"counter", "gauge", "histogram",
                                                           "summary", "untyped"};
    if (!kTypes.contains(type)) {
      return wrong(fmt::format("unknown type '{}'", printable(type)));
    }
    if (!family.type.empty() && family.type != type) {
      return wrong(fmt::format("a second type of {}", name));
    }
    family.type = type;
    return {};
  }

  Result<> take_sample(std::string_view rest) {
    const std::size_t end = std::min(rest.find_first_of("{ \t"), rest.size());
    const std::string name(rest.substr(0, end));
    if (!is_metric_name(name)) {
      return wrong(fmt::format("invalid metric name '{}'", printable(name)));
    }
    rest = skip_blanks(rest.substr(end));
    std::vector<std::string> label_names;
    std::vector<std::string> label_values;
    if (rest.starts_with('{')) {
      rest.remove_prefix(1);
      CEEMS_TRY(take_labels(rest, label_names, label_values));
    }
    const std::string_view token = take_token(rest);
    const auto value = value_of(token);
    if (!value) {
      return wrong(fmt::format("{}: expected a number, got '{}'", name, printable(token)));
    }
    if (!skip_blanks(rest).empty()) {
      return wrong(
          fmt::format("{}: expected the end of the line, got '{}' (timestamps are not "
                      "supported)",
                      name, printable(skip_blanks(rest))));
    }
    return add(name, std::move(label_names), std::move(label_values), *value);
  }

  Result<> add(const std::string& name,
               std::vector<std::string> label_names,
               std::vector<std::string> label_values,
               double value) {
    if (samples_.size() >= limits_.max_samples) {
      return wrong(fmt::format("more than {} samples", limits_.max_samples));
    }
    std::string key = name;
    std::map<std::string_view, std::string_view> sorted;
    for (std::size_t i = 0; i < label_names.size(); ++i) {
      sorted.emplace(label_names[i], label_values[i]);
    }
    for (const auto& [label, text] : sorted) {
      key.append(1, '\0').append(label).append(1, '\0').append(text);
    }
    if (!seen_.insert(std::move(key)).second) {
      return wrong(fmt::format("{}: the same series occurs twice", name));
    }
    const ParsedFamily& family = family_of(name);
    Type type = Type::kUntyped;
    if (family.type == "counter") {
      type = Type::kCounter;
    } else if (family.type == "gauge") {
      type = Type::kGauge;
    }
    samples_.push_back({.desc = Desc(name, family.help, type, std::move(label_names)),
                        .labels = std::move(label_values),
                        .value = value});
    return {};
  }

  /// That of the name, or of the histogram or summary to which the name belongs.
  const ParsedFamily& family_of(const std::string& name) {
    if (const auto found = families_.find(name); found != families_.end()) {
      return found->second;
    }
    for (const std::string_view suffix : {"_bucket", "_sum", "_count"}) {
      if (!name.ends_with(suffix)) {
        continue;
      }
      const auto found =
          families_.find(std::string_view(name).substr(0, name.size() - suffix.size()));
      if (found != families_.end() &&
          (found->second.type == "histogram" || found->second.type == "summary")) {
        return found->second;
      }
    }
    static const ParsedFamily kNone;
    return kNone;
  }

  /// Takes `name="value",...}`.
  Result<> take_labels(std::string_view& rest,
                       std::vector<std::string>& names,
                       std::vector<std::string>& values) const {
    while (true) {
      rest = skip_blanks(rest);
      if (rest.starts_with('}')) {
        rest.remove_prefix(1);
        return {};
      }
      const std::size_t end = std::min(rest.find_first_of("= \t"), rest.size());
      const std::string name(rest.substr(0, end));
      rest = skip_blanks(rest.substr(end));
      if (!is_label_name(name) || !rest.starts_with('=')) {
        return wrong(fmt::format("expected a label and '=', got '{}'", printable(name)));
      }
      for (const std::string& other : names) {
        if (other == name) {
          return wrong(fmt::format("the label {} occurs twice", name));
        }
      }
      rest = skip_blanks(rest.substr(1));
      if (names.size() >= limits_.max_labels) {
        return wrong(fmt::format("more than {} labels", limits_.max_labels));
      }
      names.push_back(name);
      if (!take_label_value(rest, values.emplace_back())) {
        return wrong(fmt::format("{}: expected a value in double quotes", name));
      }
      rest = skip_blanks(rest);
      if (rest.starts_with(',')) {
        rest.remove_prefix(1);
      } else if (!rest.starts_with('}')) {
        return wrong(fmt::format("{}: expected ',' or '}}' after the value", name));
      }
    }
  }

  static bool take_label_value(std::string_view& rest, std::string& value) {
    if (!rest.starts_with('"')) {
      return false;
    }
    for (std::size_t i = 1; i < rest.size(); ++i) {
      if (rest[i] == '"') {
        rest.remove_prefix(i + 1);
        value = clean_text(value);
        return true;
      }
      if (rest[i] == '\\' && i + 1 < rest.size()) {
        ++i;
        if (rest[i] != '\\' && rest[i] != '"' && rest[i] != 'n') {
          return false;
        }
        value += rest[i] == 'n' ? '\n' : rest[i];
      } else {
        value += rest[i];
      }
    }
    return false;
  }

  const TextLimits& limits_;
  std::map<std::string, ParsedFamily, std::less<>> families_;
  std::set<std::string> seen_;
  std::vector<TextSample> samples_;
};

}  // namespace

Result<std::vector<TextSample>> parse_text_format(std::string_view text, const TextLimits& limits) {
  return Parser(limits).parse(text);
}

}  // namespace ceems::metrics
