#include "api/profiles/flame.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/json_reader.h"
#include "base/strings.h"
#include "base/utf8.h"

namespace ceems::api {
namespace {

constexpr std::size_t kMaxName = 200;  ///< characters
/// The depth at which the values of unknown members are.
constexpr int kDepth = 4;

/// Takes "null" or calls `element` for each element of a list.
template <typename Element>
bool each_element(JsonScanner& scanner, const Element& element) {
  if (scanner.take_word("null")) {
    return true;
  }
  if (!scanner.take('[')) {
    return false;
  }
  if (scanner.take(']')) {
    return true;
  }
  do {
    if (!element()) {
      return false;
    }
  } while (scanner.take(','));
  return scanner.take(']');
}

/// An integer of 64 bits, which ProtoJSON writes as a string.
std::optional<std::int64_t> take_integer(JsonScanner& scanner, std::string& scratch) {
  if (scanner.at('"')) {
    return scanner.string(scratch) ? parse_int<std::int64_t>(scratch) : std::nullopt;
  }
  return parse_int<std::int64_t>(scanner.number());
}

bool skip_value(JsonScanner& scanner) {
  std::string ignored;
  return scanner.value(ignored, kDepth);
}

/// Reads the nodes of one level: four integers each.
bool take_level(JsonScanner& scanner, std::vector<Flame::Node>& level) {
  std::string scratch;
  std::int64_t end = 0;  // of the node before
  const auto next = [&](std::int64_t& value) {
    const auto found = take_integer(scanner, scratch);
    value = found.value_or(-1);
    return found && *found >= 0;
  };
  const auto node = [&] {
    std::int64_t gap = 0;
    std::int64_t name = 0;
    Flame::Node one{};
    const bool read = next(gap) && scanner.take(',') && next(one.total) && scanner.take(',') &&
                      next(one.self) && scanner.take(',') && next(name);
    if (!read || one.self > one.total || __builtin_add_overflow(end, gap, &one.start) ||
        __builtin_add_overflow(one.start, one.total, &end)) {
      return false;
    }
    one.name = static_cast<std::size_t>(name);
    level.push_back(one);
    return true;
  };
  return each_member(scanner, [&](const std::string& member) {
    return member == "values" ? each_element(scanner, node) : skip_value(scanner);
  });
}

bool take_flame(JsonScanner& scanner, Flame& flame) {
  return each_member(scanner, [&](const std::string& member) {
    if (member == "names") {
      std::string name;
      return each_element(scanner, [&] {
        const bool taken = scanner.string(name);
        flame.names.push_back(terminal_safe(name, kMaxName));
        return taken;
      });
    }
    if (member == "levels") {
      return each_element(scanner,
                          [&] { return take_level(scanner, flame.levels.emplace_back()); });
    }
    return skip_value(scanner);
  });
}

/// Whether each node lies within one of the level above.
bool is_tree(const Flame& flame) {
  if (flame.levels.front().size() != 1 || flame.levels.front().front().start != 0) {
    return false;
  }
  for (std::size_t depth = 1; depth < flame.levels.size(); ++depth) {
    const auto& above = flame.levels[depth - 1];
    auto parent = above.begin();
    for (const Flame::Node& node : flame.levels[depth]) {
      while (parent != above.end() && parent->start + parent->total < node.start + node.total) {
        ++parent;
      }
      if (parent == above.end() || node.start < parent->start) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

Result<Flame> parse_flame(std::string_view body) {
  JsonScanner scanner(body);
  Flame flame;
  const bool read = each_member(scanner, [&](const std::string& member) {
    if (member != "flamegraph") {
      return skip_value(scanner);
    }
    return scanner.take_word("null") || take_flame(scanner, flame);
  });
  if (!read || !scanner.at_end()) {
    return fail(ErrorCode::kParse, "the answer is not a profile in JSON");
  }
  const auto empty = std::ranges::find_if(flame.levels, &std::vector<Flame::Node>::empty);
  flame.levels.erase(empty, flame.levels.end());
  if (flame.levels.empty() || flame.levels.front().front().total == 0) {
    return Flame{};
  }
  for (const auto& level : flame.levels) {
    if (std::ranges::any_of(level,
                            [&](const auto& one) { return one.name >= flame.names.size(); })) {
      return fail(ErrorCode::kParse, "a node of the profile has no name");
    }
  }
  if (!is_tree(flame)) {
    return fail(ErrorCode::kParse, "the nodes of the profile are not a tree");
  }
  return flame;
}

void keep_heaviest(Flame& flame, std::size_t count) {
  struct Place {
    std::int64_t total;
    std::size_t depth, index;
  };
  std::vector<Place> places;
  for (std::size_t depth = 0; depth < flame.levels.size(); ++depth) {
    for (std::size_t index = 0; index < flame.levels[depth].size(); ++index) {
      places.push_back({flame.levels[depth][index].total, depth, index});
    }
  }
  // A parent is at least as heavy as its children and stands before them.
  const auto kept = std::min(count, places.size());
  std::ranges::stable_sort(places, std::ranges::greater(), &Place::total);
  places.resize(kept);
  std::ranges::sort(places, [](const Place& a, const Place& b) {
    return std::pair(a.depth, a.index) < std::pair(b.depth, b.index);
  });
  Flame small;
  std::vector<std::optional<std::size_t>> names(flame.names.size());
  for (const Place& place : places) {
    Flame::Node node = flame.levels[place.depth][place.index];
    auto& name = names[node.name];
    if (!name) {
      name = small.names.size();
      small.names.push_back(std::move(flame.names[node.name]));
    }
    node.name = *name;
    small.levels.resize(place.depth + 1);
    small.levels.back().push_back(node);
  }
  small.left_out = flame.left_out;
  for (const auto& level : flame.levels) {
    small.left_out += level.size();
  }
  small.left_out -= kept;
  flame = std::move(small);
}

}  // namespace ceems::api
