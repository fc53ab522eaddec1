#include "api/racks.h"

#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <re2/re2.h>

#include "base/strings.h"
#include "base/text/node_list.h"
#include "config/section.h"

namespace ceems::api {
namespace {

RE2::Options quiet() {
  RE2::Options options;
  options.set_log_errors(false);
  return options;
}

}  // namespace

struct Racks::Pattern {
  explicit Pattern(const std::string& text) : name(text, quiet()) {}
  RE2 name;
  int rack = 0, slot = 0;  // numbers of the groups; 0: there is none
};

Result<> Racks::read_file(const std::string& path) {
  CEEMS_TRY(document, config::load_yaml(path));
  if (!document.is_map()) {
    return fail(document.error("expected the nodes of each rack"));
  }
  for (const auto& [rack, nodes] : document.entries()) {
    std::vector<std::string> lists;
    if (nodes.is_list()) {
      CEEMS_TRY(texts, nodes.as_string_list());
      lists = std::move(texts);
    } else {
      CEEMS_TRY(text, nodes.as_string());
      lists = {std::move(text)};
    }
    std::int64_t slot = 0;
    for (const std::string& list : lists) {
      const auto hosts = expand_node_list(list);
      if (!hosts) {
        return fail(nodes.error("expected names of nodes, such as n[01-16]"));
      }
      for (const std::string& host : *hosts) {
        if (!places_.emplace(host, RackPlace{.rack = rack, .slot = ++slot}).second) {
          return fail(nodes.error(fmt::format("node '{}' is there twice", printable(host, 40))));
        }
      }
    }
  }
  return {};
}

Result<Racks> Racks::read(const config::Node& node, const std::string& directory) {
  Racks racks;
  std::string file;
  std::string text;
  config::Section section(node);
  section.only({"file", "pattern"}).file("file", file, directory).text("pattern", text);
  if (section.ok() && !text.empty()) {
    auto pattern = std::make_shared<Pattern>(text);
    section.refuse(!pattern->name.ok(), "pattern", pattern->name.error());
    const auto& groups = pattern->name.NamedCapturingGroups();
    const auto number = [&groups](const char* name) {
      const auto found = groups.find(name);
      return found == groups.end() ? 0 : found->second;
    };
    pattern->rack = number("rack");
    pattern->slot = number("slot");
    section.refuse(pattern->rack == 0, "pattern", "expected a group (?P<rack>…)");
    racks.pattern_ = std::move(pattern);
  }
  if (section.ok() && !file.empty()) {
    section.also(racks.read_file(file));
  }
  CEEMS_TRY(section.done());
  return racks;
}

std::optional<RackPlace> Racks::find(const std::string& host) const {
  if (const auto found = places_.find(host); found != places_.end()) {
    return found->second;
  }
  if (pattern_ == nullptr) {
    return std::nullopt;
  }
  const auto count = static_cast<std::size_t>(pattern_->name.NumberOfCapturingGroups()) + 1;
  std::vector<re2::StringPiece> groups(count);
  if (!pattern_->name.Match(host, 0, host.size(), RE2::ANCHOR_BOTH, groups.data(),
                            static_cast<int>(count))) {
    return std::nullopt;
  }
  const auto group = [&groups](int number) {
    const re2::StringPiece& piece = groups[static_cast<std::size_t>(number)];
    return std::string(piece.data(), piece.size());
  };
  RackPlace place{.rack = group(pattern_->rack)};
  if (place.rack.empty()) {
    return std::nullopt;
  }
  if (pattern_->slot != 0) {
    place.slot = parse_int<std::int64_t>(group(pattern_->slot));
  }
  return place;
}

}  // namespace ceems::api
