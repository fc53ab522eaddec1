#include "base/text/template.h"

#include <utility>

#include "base/check.h"
#include "base/text/html.h"

namespace ceems {
namespace {

/// The data of a section and of what surrounds it.
struct Scope {
  const TemplateData* data = nullptr;
  const Scope* outer = nullptr;
};

const std::string* find_text(const Scope* scope, std::string_view name) {
  for (; scope != nullptr; scope = scope->outer) {
    if (const auto found = scope->data->texts.find(name); found != scope->data->texts.end()) {
      return &found->second;
    }
  }
  return nullptr;
}

const std::vector<TemplateData>* find_list(const Scope* scope, std::string_view name) {
  for (; scope != nullptr; scope = scope->outer) {
    if (const auto found = scope->data->lists.find(name); found != scope->data->lists.end()) {
      return &found->second;
    }
  }
  return nullptr;
}

class Renderer {
 public:
  explicit Renderer(std::string_view text) : text_(text) {}

  /// Renders up to {{/section}}, or to the end of the text if `section` is empty. Without a scope
  /// it only skips. Leaves the position behind the closing tag.
  void render(std::string_view section, const Scope* scope) {
    while (true) {
      const Tag tag = next_tag(scope != nullptr);
      if (tag.kind == '/' || tag.name.empty()) {
        CEEMS_CHECK(tag.name == section);
        return;
      }
      if (tag.kind == '#' || tag.kind == '^') {
        render_section(tag.name, tag.kind == '^', scope);
      } else if (scope != nullptr) {
        const std::string* value = find_text(scope, tag.name);
        CEEMS_CHECK(value != nullptr);
        out_ += tag.kind == '{' ? *value : escape_html(*value);
      }
    }
  }

  std::string take() { return std::move(out_); }

 private:
  struct Tag {
    char kind = ' ';  ///< '{', '#', '^', '/' or ' '
    std::string_view name = {};
  };

  void render_section(std::string_view name, bool inverted, const Scope* scope) {
    const std::size_t begin = at_;
    const auto* const list = find_list(scope, name);
    const std::string* const value = find_text(scope, name);
    CEEMS_CHECK(scope == nullptr || list != nullptr || value != nullptr);
    const bool empty = list != nullptr ? list->empty() : value == nullptr || value->empty();
    if (scope == nullptr || empty != inverted) {
      render(name, nullptr);
    } else if (inverted || list == nullptr) {
      render(name, scope);
    } else {
      for (const TemplateData& item : *list) {
        at_ = begin;
        const Scope inner{.data = &item, .outer = scope};
        render(name, &inner);
      }
    }
  }

  /// Moves behind the next tag. Appends the text before it if `shown`. No name: end of the text.
  Tag next_tag(bool shown) {
    const std::size_t begin = at_;
    std::size_t open = text_.find("{{", at_);
    if (open == std::string_view::npos) {
      if (shown) {
        out_ += text_.substr(begin);
      }
      at_ = text_.size();
      return {};
    }
    const std::size_t end_of_braces = text_.find_first_not_of('{', open);
    CEEMS_CHECK(end_of_braces != std::string_view::npos);
    Tag tag;
    std::size_t name = end_of_braces;
    if (constexpr std::string_view kKinds = "#^/"; kKinds.contains(text_[name])) {
      tag.kind = text_[name++];
    } else if (end_of_braces - open > 2) {
      tag.kind = '{';
    }
    open = end_of_braces - (tag.kind == '{' ? 3 : 2);
    const std::string_view close = tag.kind == '{' ? "}}}" : "}}";
    const std::size_t name_end = text_.find(close, name);
    CEEMS_CHECK(name_end != std::string_view::npos && name_end > name);
    tag.name = text_.substr(name, name_end - name);
    at_ = name_end + close.size();
    if (shown) {
      out_ += text_.substr(begin, open - begin);
    }
    const bool is_section = tag.kind != ' ' && tag.kind != '{';
    const bool starts_line = open == 0 || text_[open - 1] == '\n';
    if (is_section && starts_line && text_.substr(at_).starts_with('\n')) {
      ++at_;
    }
    return tag;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string render_template(std::string_view text, const TemplateData& data) {
  const Scope scope{.data = &data};
  Renderer renderer(text);
  renderer.render({}, &scope);
  return renderer.take();
}

}  // namespace ceems
