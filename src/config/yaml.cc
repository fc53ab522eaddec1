#include "config/yaml.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <yaml-cpp/yaml.h>

#include "base/strings.h"
#include "config/spelling.h"

namespace ceems::config {

/// The document as plain data: yaml-cpp's own nodes throw on nearly every call.
struct Node::Impl {
  enum class Kind { kAbsent, kNull, kScalar, kList, kMap };
  std::shared_ptr<const std::string> file;
  Kind kind = Kind::kAbsent;
  int line = 0;
  std::string where;
  std::string scalar;
  std::vector<Node> items;
  std::vector<std::pair<std::string, Node>> entries;
};

struct YamlAccess {
  using Impl = Node::Impl;
  static Node wrap(std::shared_ptr<const Node::Impl> impl) {
    Node node;
    node.impl_ = std::move(impl);
    return node;
  }
};

namespace {

using Impl = YamlAccess::Impl;

constexpr std::size_t kMaxText = std::size_t{8} << 20U;
constexpr std::size_t kMaxNodes = 200'000;  // aliases count each time: stops "billion laughs"
constexpr int kMaxDepth = 64;

std::string place(const std::string& file, int line) {
  return line > 0 ? fmt::format("{}:{}", file, line) : file;
}

struct Converter {
  std::shared_ptr<const std::string> file;
  std::size_t nodes = 0;

  Result<Node> convert(const YAML::Node& from, std::string where, int line, int depth) {
    if (++nodes > kMaxNodes || depth > kMaxDepth) {
      return fail(ErrorCode::kParse, "{}: the document is too large or too deep",
                  place(*file, line));
    }
    auto to = std::make_shared<Impl>();
    to->file = file;
    to->line = from.Mark().line >= 0 && !from.IsNull() ? from.Mark().line + 1 : line;
    to->where = std::move(where);
    switch (from.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        to->kind = Impl::Kind::kNull;
        break;
      case YAML::NodeType::Scalar:
        to->kind = Impl::Kind::kScalar;
        to->scalar = from.Scalar();
        break;
      case YAML::NodeType::Sequence:
        to->kind = Impl::Kind::kList;
        for (std::size_t i = 0; i < from.size(); ++i) {
          auto item = convert(from[i], fmt::format("{}[{}]", to->where, i), to->line, depth + 1);
          if (!item) {
            return item;
          }
          to->items.push_back(*std::move(item));
        }
        break;
      case YAML::NodeType::Map:
        to->kind = Impl::Kind::kMap;
        for (const auto& entry : from) {
          if (auto added = add_entry(*to, entry.first, entry.second, depth); !added) {
            return fail(std::move(added).error());
          }
        }
        break;
    }
    return YamlAccess::wrap(std::move(to));
  }

  Result<> add_entry(Impl& map, const YAML::Node& key, const YAML::Node& value, int depth) {
    const int line = key.Mark().line + 1;
    if (!key.IsScalar()) {
      return fail(ErrorCode::kParse, "{}: expected a plain text as key", place(*file, line));
    }
    const std::string& name = key.Scalar();
    const std::string where = map.where.empty() ? name : map.where + "." + name;
    for (const auto& [existing, ignored] : map.entries) {
      if (existing == name) {
        return fail(ErrorCode::kParse, "{}: {}: the key stands here twice", place(*file, line),
                    printable(where));
      }
    }
    auto node = convert(value, where, line, depth + 1);
    if (!node) {
      return fail(std::move(node).error());
    }
    map.entries.emplace_back(name, *std::move(node));
    return {};
  }
};

const std::shared_ptr<const Impl>& absent() {
  static const auto impl = std::make_shared<const Impl>();
  return impl;
}

std::string shown(const Impl& impl) {
  switch (impl.kind) {
    case Impl::Kind::kAbsent:
      return "nothing";
    case Impl::Kind::kNull:
      return "an empty value";
    case Impl::Kind::kScalar:
      return "'" + printable(impl.scalar, 60) + "'";
    case Impl::Kind::kList:
      return "a list";
    case Impl::Kind::kMap:
      break;
  }
  return "a mapping";
}

}  // namespace

Node::Node() : impl_(absent()) {}
Node::~Node() = default;
Node::Node(const Node&) = default;
Node& Node::operator=(const Node&) = default;

bool Node::present() const {
  return impl_->kind != Impl::Kind::kAbsent && impl_->kind != Impl::Kind::kNull;
}
bool Node::is_null() const {
  return impl_->kind == Impl::Kind::kNull;
}
bool Node::is_map() const {
  return impl_->kind == Impl::Kind::kMap;
}
bool Node::is_list() const {
  return impl_->kind == Impl::Kind::kList;
}
int Node::line() const {
  return impl_->line;
}
const std::string& Node::where() const {
  return impl_->where;
}

Node Node::operator[](std::string_view key) const {
  for (const auto& [name, node] : impl_->entries) {
    if (name == key) {
      return node;
    }
  }
  return {};
}

std::vector<Node> Node::items() const {
  return impl_->items;
}
std::vector<std::pair<std::string, Node>> Node::entries() const {
  return impl_->entries;
}

Error Node::error(std::string_view message) const {
  const std::string file = impl_->file ? *impl_->file : std::string("configuration");
  return {ErrorCode::kInvalidArgument,
          impl_->where.empty() ? fmt::format("{}: {}", place(file, impl_->line), message)
                               : fmt::format("{}: {}: {}", place(file, impl_->line),
                                             printable(impl_->where), message)};
}

Result<std::string> Node::as_string() const {
  if (impl_->kind != Impl::Kind::kScalar) {
    return fail(error(fmt::format("expected a text, got {}", shown(*impl_))));
  }
  return impl_->scalar;
}

Result<bool> Node::as_bool() const {
  if (impl_->kind == Impl::Kind::kScalar) {
    const std::string lower = to_lower(impl_->scalar);
    if (lower == "true" || lower == "yes" || lower == "on") {
      return true;
    }
    if (lower == "false" || lower == "no" || lower == "off") {
      return false;
    }
  }
  return fail(error(fmt::format("expected true or false, got {}", shown(*impl_))));
}

Result<std::int64_t> Node::as_int() const {
  if (impl_->kind == Impl::Kind::kScalar) {
    if (const auto value = parse_int<std::int64_t>(impl_->scalar)) {
      return *value;
    }
  }
  return fail(error(fmt::format("expected a whole number, got {}", shown(*impl_))));
}

Result<double> Node::as_double() const {
  if (impl_->kind == Impl::Kind::kScalar) {
    if (const auto value = parse_double(impl_->scalar); value && std::isfinite(*value)) {
      return *value;
    }
  }
  return fail(error(fmt::format("expected a number, got {}", shown(*impl_))));
}

Result<std::int64_t> Node::as_duration_ms() const {
  if (impl_->kind != Impl::Kind::kScalar) {
    return fail(error(fmt::format("expected a duration such as 15m, got {}", shown(*impl_))));
  }
  auto value = parse_duration_ms(impl_->scalar);
  if (!value) {
    return fail(error("expected a duration such as 15m: " + value.error().message));
  }
  return *value;
}

Result<std::vector<std::string>> Node::as_string_list() const {
  if (impl_->kind != Impl::Kind::kList) {
    return fail(error(fmt::format("expected a list, got {}", shown(*impl_))));
  }
  std::vector<std::string> texts;
  for (const Node& item : impl_->items) {
    auto text = item.as_string();
    if (!text) {
      return fail(std::move(text).error());
    }
    texts.push_back(*std::move(text));
  }
  return texts;
}

Result<> Node::only_keys(std::initializer_list<std::string_view> known) const {
  for (const auto& [name, node] : impl_->entries) {
    if (std::ranges::find(known, std::string_view(name)) != known.end()) {
      continue;
    }
    const std::string_view near = nearest(name, known);
    return fail(node.error(near.empty() ? "unknown key"
                                        : fmt::format("unknown key, did you mean '{}'?", near)));
  }
  return {};
}

Result<Node> parse_yaml(std::string_view text, std::string_view file) {
  const auto name = std::make_shared<const std::string>(file);
  if (text.size() > kMaxText) {
    return fail(ErrorCode::kParse, "{}: larger than {} MiB", *name, kMaxText >> 20U);
  }
  if (text.find('\0') != std::string_view::npos || !is_utf8(text)) {
    return fail(ErrorCode::kParse, "{}: not a text file in UTF-8", *name);
  }
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.size() > 1) {
      return fail(ErrorCode::kParse, "{}: expected one YAML document, got {}", *name,
                  documents.size());
    }
    Converter converter{.file = name};
    return converter.convert(documents.empty() ? YAML::Node() : documents.front(), "", 1, 0);
  } catch (const YAML::Exception& error) {
    return fail(ErrorCode::kParse, "{}: {}",
                place(*name, error.mark.line >= 0 ? error.mark.line + 1 : 0),
                printable(error.msg, 200));
  }
}

Result<Node> load_yaml(const std::string& path, bool expand_env) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) {
    return fail(errno_error(EISDIR, "read " + path));
  }
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return fail(errno_error(errno != 0 ? errno : ENOENT, "open " + path));
  }
  std::string text;
  std::array<char, 65536> chunk{};
  while (text.size() <= kMaxText && (in.read(chunk.data(), chunk.size()) || in.gcount() > 0)) {
    text.append(chunk.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad()) {
    return fail(errno_error(EIO, "read " + path));
  }
  if (expand_env) {
    auto expanded = expand_environment(text, [](const std::string& name) {
      const char* value = std::getenv(name.c_str());
      return std::string(value != nullptr ? value : "");
    });
    if (!expanded) {
      return fail(std::move(expanded).error().with_context(path));
    }
    text = *std::move(expanded);
  }
  return parse_yaml(text, path);
}

}  // namespace ceems::config
