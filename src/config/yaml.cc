#include "config/yaml.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "base/strings.h"
#include "base/utf8.h"
#include "config/duration.h"
#include "config/environment.h"
#include "config/spelling.h"

namespace ceems::config {

/// The document as plain data, because yaml-cpp's own nodes throw on nearly every call.
struct Node::Impl {
  enum class Kind { kAbsent, kNull, kScalar, kList, kMap };
  std::shared_ptr<const std::string> file;
  Kind kind = Kind::kAbsent;
  int line = 0;
  std::string where;
  std::string scalar;
  bool plain = false;
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
  static const std::shared_ptr<const Node::Impl>& unwrap(const Node& node) { return node.impl_; }
};

namespace {

using Impl = YamlAccess::Impl;

constexpr std::size_t kMaxText = std::size_t{8} << 20U;
constexpr std::size_t kMaxNodes = 200'000;  // counts each use of an alias: stops "billion laughs"
constexpr std::size_t kMaxBytes = std::size_t{64} << 20U;  // of scalars and paths, counted likewise
constexpr std::string_view kTooLarge = "the document is too large or too deep";
constexpr std::size_t kMaxKey = 1024;
constexpr int kMaxDepth = 64;

std::string place(const std::string& file, int line) {
  return line > 0 ? fmt::format("{}:{}", file, line) : file;
}

/// Thrown by an event handler to stop yaml-cpp's parser.
struct Refused {
  Error error;
};

/// Builds plain data from the parser's events. The limits are enforced during parsing, so that a
/// document that expands without bound is rejected before it fills the memory.
class Builder final : public YAML::EventHandler {
 public:
  Builder(std::string_view text, std::shared_ptr<const std::string> file)
      : text_(text), file_(std::move(file)) {}

  /// Returns the document, or a null node when it was empty.
  Node take() {
    if (odd_key_line_ != 0) {
      refuse(odd_key_line_, "expected a plain text as key");
    }
    if (!root_) {
      root_ = std::make_shared<Impl>();
      root_->file = file_;
      root_->kind = Impl::Kind::kNull;
      root_->line = 1;
    }
    return YamlAccess::wrap(std::move(root_));
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) {
      refuse(mark.line + 1, "expected one YAML document, here begins another");
    }
  }
  void OnDocumentEnd() override { check_last_quote(); }

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (!skips(mark)) {
      complete(start(Impl::Kind::kNull, mark), anchor);
    }
  }
  void OnScalar(const YAML::Mark& mark,
                const std::string& tag,
                YAML::anchor_t anchor,
                const std::string& value) override {
    last_scalar_ = mark.pos;
    if (odd_key_line_ != 0) {
      return;
    }
    if (!open_.empty() && open_.back().wants_key()) {
      take_key(mark, value, tag == "?", anchor);
      return;
    }
    auto node = start(Impl::Kind::kScalar, mark);
    count_bytes(node->line, value.size());
    node->scalar = value;
    node->plain = tag == "?";
    complete(std::move(node), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark,
                       const std::string& /*tag*/,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    if (!skips(mark)) {
      open_.push_back({.node = start(Impl::Kind::kList, mark), .anchor = anchor});
    }
  }
  void OnMapStart(const YAML::Mark& mark,
                  const std::string& /*tag*/,
                  YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    if (!skips(mark)) {
      open_.push_back({.node = start(Impl::Kind::kMap, mark), .anchor = anchor});
    }
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (skips(mark)) {
      return;
    }
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      refuse(mark.line + 1, "an alias inside the value that it stands for");
    }
    complete(copy(*found->second, next_where(), static_cast<int>(open_.size())), 0);
  }

 private:
  /// A list or mapping that is not complete yet.
  struct Open {
    std::shared_ptr<Impl> node;
    YAML::anchor_t anchor = 0;
    std::optional<std::string> key = {};  ///< in a mapping, when its value comes next
    int key_line = 0;
    bool merging = false;  ///< the key is "<<"
    std::unordered_set<std::string> keys = {};
    std::vector<std::shared_ptr<const Impl>> merged = {};  ///< values of "<<"

    [[nodiscard]] bool wants_key() const { return node->kind == Impl::Kind::kMap && !key; }
  };

  [[noreturn]] void refuse(int line, std::string_view message) const {
    throw Refused{{ErrorCode::kParse, fmt::format("{}: {}", place(*file_, line), message)}};
  }

  /// Rejects a quoted scalar that is never closed. yaml-cpp would accept it and take the rest of
  /// the file as its text.
  void check_last_quote() const {
    const auto at = static_cast<std::size_t>(std::max(last_scalar_, 0));
    const char quote = at < text_.size() ? text_[at] : '\0';
    if (quote != '\'' && quote != '"') {
      return;
    }
    for (std::size_t i = at + 1; i < text_.size(); ++i) {
      if (quote == '"' && text_[i] == '\\') {
        ++i;
      } else if (text_[i] == quote) {
        if (quote == '"' || i + 1 == text_.size() || text_[i + 1] != quote) {
          return;
        }
        ++i;  // '' inside '...' is an escaped quote
      }
    }
    const auto line = 1 + std::count(text_.begin(), text_.begin() + last_scalar_, '\n');
    refuse(static_cast<int>(line), "the quote that opens here is not closed");
  }

  void count_bytes(int line, std::size_t bytes) {
    bytes_ += bytes;
    if (bytes_ > kMaxBytes) {
      refuse(line, kTooLarge);
    }
  }
  void count_node(const Impl& node, int depth) {
    count_bytes(node.line, node.where.size() + node.scalar.size());
    if (++nodes_ > kMaxNodes || depth > kMaxDepth) {
      refuse(node.line, kTooLarge);
    }
  }

  /// The path of the next value, such as "clusters[0].manager".
  [[nodiscard]] std::string next_where() const {
    if (open_.empty()) {
      return "";
    }
    const Open& parent = open_.back();
    const std::string& at = parent.node->where;
    if (parent.node->kind == Impl::Kind::kList) {
      return fmt::format("{}[{}]", at, parent.node->items.size());
    }
    return at.empty() ? *parent.key : fmt::format("{}.{}", at, *parent.key);
  }

  std::shared_ptr<Impl> start(Impl::Kind kind, const YAML::Mark& mark) {
    // An empty value has no position of its own. The line of its key is more useful than that of
    // the next token.
    const bool after_key = !open_.empty() && open_.back().key && kind == Impl::Kind::kNull;
    const int line = after_key ? open_.back().key_line : std::max(mark.line, 0) + 1;
    auto node = std::make_shared<Impl>();
    node->file = file_;
    node->kind = kind;
    node->line = line;
    node->where = next_where();
    count_node(*node, static_cast<int>(open_.size()));
    return node;
  }

  void take_key(const YAML::Mark& mark,
                const std::string& name,
                bool plain,
                YAML::anchor_t anchor) {
    Open& map = open_.back();
    map.key_line = mark.line + 1;
    if (name.size() > kMaxKey) {
      refuse(map.key_line, fmt::format("a key of more than {} bytes", kMaxKey));
    }
    count_bytes(map.key_line, name.size());
    map.key = name;
    const bool merge = plain && name == "<<";
    if (!merge && !map.keys.insert(name).second) {
      refuse(map.key_line, fmt::format("{}: the key stands here twice", printable(next_where())));
    }
    if (anchor != 0) {
      auto node = std::make_shared<Impl>();
      node->file = file_;
      node->kind = Impl::Kind::kScalar;
      node->line = map.key_line;
      node->scalar = name;
      anchors_[anchor] = std::move(node);
    }
    map.merging = merge;
  }

  void complete(std::shared_ptr<Impl> node, YAML::anchor_t anchor) {
    if (anchor != 0) {
      anchors_[anchor] = node;
    }
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node->kind == Impl::Kind::kList) {
      parent.node->items.push_back(YamlAccess::wrap(std::move(node)));
      return;
    }
    std::string key = *std::exchange(parent.key, std::nullopt);
    if (parent.merging) {
      add_merged(parent, node);
    } else {
      parent.node->entries.emplace_back(std::move(key), YamlAccess::wrap(std::move(node)));
    }
  }

  /// Handles the merge keys "<<: *base" and "<<: [*one, *two]"; see
  /// https://yaml.org/type/merge.html.
  void add_merged(Open& map, const std::shared_ptr<const Impl>& value) const {
    if (value->kind == Impl::Kind::kMap) {
      map.merged.push_back(value);
      return;
    }
    bool maps = value->kind == Impl::Kind::kList;
    for (const Node& item : value->items) {
      maps = maps && item.is_map();
      map.merged.push_back(YamlAccess::unwrap(item));
    }
    if (!maps) {
      refuse(value->line, "<<: expected a mapping or a list of mappings");
    }
  }

  /// Remembers the first key that is not a text, and returns true from then on, so that events
  /// are skipped. The key is reported at the end, because the parser may still find the real
  /// mistake, such as an unclosed bracket.
  bool skips(const YAML::Mark& mark) {
    if (odd_key_line_ == 0 && !open_.empty() && open_.back().wants_key()) {
      odd_key_line_ = mark.line + 1;
    }
    return odd_key_line_ != 0;
  }

  void close() {
    if (odd_key_line_ != 0) {
      return;
    }
    Open done = std::move(open_.back());
    open_.pop_back();
    // The mapping's own keys take precedence, then the keys of the mapping that was merged first.
    for (const auto& from : done.merged) {
      for (const auto& [key, value] : from->entries) {
        if (done.keys.insert(key).second) {
          const std::string& at = done.node->where;
          auto node =
              copy(*YamlAccess::unwrap(value), at.empty() ? key : fmt::format("{}.{}", at, key),
                   static_cast<int>(open_.size()) + 1);
          done.node->entries.emplace_back(key, YamlAccess::wrap(std::move(node)));
        }
      }
    }
    complete(std::move(done.node), done.anchor);
  }

  /// Copies the value of an alias to its new path. Each copy counts towards the limits, which stops
  /// "billion laughs".
  std::shared_ptr<Impl> copy(const Impl& from, std::string where, int depth) {
    auto to = std::make_shared<Impl>();
    to->file = file_;
    to->kind = from.kind;
    to->line = from.line;
    to->where = std::move(where);
    to->scalar = from.scalar;
    count_node(*to, depth);
    for (const Node& item : from.items) {
      to->items.push_back(
          YamlAccess::wrap(copy(*YamlAccess::unwrap(item),
                                fmt::format("{}[{}]", to->where, to->items.size()), depth + 1)));
    }
    for (const auto& [key, value] : from.entries) {
      auto node = copy(*YamlAccess::unwrap(value), fmt::format("{}.{}", to->where, key), depth + 1);
      to->entries.emplace_back(key, YamlAccess::wrap(std::move(node)));
    }
    return to;
  }

  std::string_view text_;
  std::shared_ptr<const std::string> file_;
  std::vector<Open> open_;
  std::unordered_map<YAML::anchor_t, std::shared_ptr<const Impl>> anchors_;
  std::shared_ptr<Impl> root_;
  std::size_t nodes_ = 0;
  std::size_t bytes_ = 0;
  int documents_ = 0;
  int odd_key_line_ = 0;
  int last_scalar_ = -1;  ///< offset in the text
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
bool Node::is_plain() const {
  return impl_->kind == Impl::Kind::kScalar && impl_->plain;
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

Result<std::chrono::milliseconds> Node::as_duration() const {
  if (impl_->kind != Impl::Kind::kScalar) {
    return fail(error(fmt::format("expected a duration such as 15m, got {}", shown(*impl_))));
  }
  auto value = parse_duration(impl_->scalar);
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
    CEEMS_TRY(text, item.as_string());
    texts.push_back(std::move(text));
  }
  return texts;
}

Result<> Node::only_keys(std::span<const std::string_view> known) const {
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
  if (text.starts_with("\xEF\xBB\xBF")) {
    text.remove_prefix(3);  // the byte order mark, which yaml-cpp's offsets do not count
  }
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    Builder builder(text, name);
    while (parser.HandleNextDocument(builder)) {
    }
    return builder.take();
  } catch (const Refused& refused) {
    return fail(refused.error);
  } catch (const YAML::Exception& error) {
    return fail(ErrorCode::kParse, "{}: {}",
                place(*name, error.mark.line >= 0 ? error.mark.line + 1 : 0),
                printable(error.msg, 200));
  }
}

std::string directory_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
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
    CEEMS_TRY_IN(path, expanded, expand_environment(text, [](const std::string& name) {
                   const char* value = std::getenv(name.c_str());
                   return std::string(value != nullptr ? value : "");
                 }));
    text = std::move(expanded);
  }
  return parse_yaml(text, path);
}

}  // namespace ceems::config
