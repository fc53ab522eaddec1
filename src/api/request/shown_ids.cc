#include "api/request/shown_ids.h"

#include <algorithm>
#include <string>

#include "base/strings.h"

namespace ceems::api {
namespace {

constexpr std::size_t kMaxDigits = 18;
constexpr std::size_t kMaxParts = 1000;

std::optional<std::uint64_t> number_of(std::string_view text) {
  return is_number(text, kMaxDigits) ? parse_int(text) : std::nullopt;
}

/// "4", "3-5" or "0-20:4"
std::optional<ShownIds::Places> places_of(std::string_view text) {
  const bool stepped = text.find(':') != std::string_view::npos;
  std::string_view range = stepped ? take_until(text, ':') : text;
  const auto step = stepped ? number_of(text) : std::optional<std::uint64_t>(1);
  const bool several = range.find('-') != std::string_view::npos;
  const auto first = number_of(several ? take_until(range, '-') : range);
  const auto last = several ? number_of(range) : first;
  if (!first || !last || *first > *last || !step || *step == 0) {
    return std::nullopt;
  }
  return ShownIds::Places{.first = *first, .last = *last, .step = *step};
}

}  // namespace

std::optional<std::uint64_t> ShownIds::place_of(std::string_view id) const {
  take_until(id, id.find('+') == std::string_view::npos ? '_' : '+');
  const auto place = number_of(id);
  const bool asked = place && (places.empty() || std::ranges::any_of(places, [&](const auto& one) {
                                 return one.first <= *place && *place <= one.last &&
                                        (*place - one.first) % one.step == 0;
                               }));
  return asked ? place : std::nullopt;
}

std::optional<ShownIds> parse_shown_ids(std::string_view text) {
  const std::size_t mark = text.find_first_of("_+");
  if (mark == std::string_view::npos || !number_of(text.substr(0, mark))) {
    return std::nullopt;
  }
  ShownIds ids{.prefix = std::string(text.substr(0, mark + 1))};
  std::string_view rest = text.substr(mark + 1);
  if (rest == "*") {
    return ids;
  }
  if (const auto place = number_of(rest)) {
    ids.prefix += std::to_string(*place);  // without leading zeros
  } else if (rest.starts_with('[') && rest.ends_with(']')) {
    rest = rest.substr(1, rest.size() - 2);
    rest = rest.substr(0, rest.find('%'));  // how many run at a time
  } else {
    return std::nullopt;
  }
  for (const std::string_view part : split(rest, ',')) {
    const auto places = places_of(part);
    if (!places || ids.places.size() == kMaxParts) {
      return std::nullopt;
    }
    ids.places.push_back(*places);
  }
  return ids;
}

std::string_view job_of_step(std::string_view id) {
  const std::size_t dot = id.find('.');
  if (dot == std::string_view::npos) {
    return id;
  }
  const std::string_view job = id.substr(0, dot);
  const std::string_view step = id.substr(dot + 1);
  const bool named = step == "batch" || step == "extern" || step == "interactive";
  const bool is_step = parse_shown_ids(job) ? named || number_of(step) : named && number_of(job);
  return is_step ? job : id;
}

std::vector<std::string_view> split_ids(std::string_view list) {
  std::vector<std::string_view> ids;
  std::size_t begin = 0;
  bool inside = false;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i == list.size() || (list[i] == ',' && !inside)) {
      ids.push_back(trim(list.substr(begin, i - begin)));
      begin = i + 1;
    } else {
      inside = list[i] == '[' || (inside && list[i] != ']');
    }
  }
  return ids;
}

}  // namespace ceems::api
