#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "exporter/profile/symbol/demangle/itanium_node.h"

namespace ceems::exporter::profile::itanium {
namespace {

using Kind = Node::Kind;

constexpr unsigned kMaxPrintDepth = 256;
constexpr unsigned kMaxSteps = 50'000;
constexpr std::size_t kNoPack = std::numeric_limits<std::size_t>::max();

/// Appends nodes to a text. Types have a part to the left of the name that they declare, and one to
/// its right.
class Printer {
 public:
  Printer(DemangleMode mode, std::size_t limit) : mode_(mode), limit_(limit) {}

  void whole(const Node& node) {
    left(node);
    right(node);
  }

  [[nodiscard]] bool good() const { return good_ && out_.size() <= limit_; }
  std::string take() { return std::move(out_); }

 private:
  /// Counts a step, and fails beyond the limits.
  bool enter() {
    good_ = good_ && ++steps_ <= kMaxSteps && depth_ < kMaxPrintDepth && out_.size() <= limit_;
    return good_;
  }

  const Node& resolved(const Node& node) {
    const Node* at = &node;
    for (unsigned i = 0; i < kMaxPrintDepth; ++i) {
      if (at->kind == Kind::kParameter && at->a != nullptr) {
        at = at->a;
      } else if (at->kind == Kind::kPack && pack_index_ < at->list.size()) {
        pack_size_ = pack_size_ == kNoPack ? at->list.size() : pack_size_;
        at = at->list[pack_index_];
      } else {
        break;
      }
    }
    return *at;
  }
  /// Whether a pointer to this type is written inside of it: int (*)(char).
  bool wraps(const Node& node) {
    const Kind kind = inner_kind(node);
    return kind == Kind::kFunction || kind == Kind::kArray;
  }
  Kind inner_kind(const Node& node) {
    const Node* at = &resolved(node);
    for (unsigned i = 0; i < kMaxPrintDepth && at->kind == Kind::kQualified; ++i) {
      at = &resolved(*at->a);
    }
    return at->kind;
  }

  void joined(const std::vector<const Node*>& list) {
    bool first = true;
    for (const Node* item : list) {
      const std::size_t before = out_.size();
      if (!first) {
        out_ += ", ";
      }
      const std::size_t start = out_.size();
      whole(*item);
      if (out_.size() == start) {
        out_.resize(before);  // an empty pack
      } else {
        first = false;
      }
    }
  }

  void arguments(const std::vector<const Node*>& list) {
    out_ += '<';
    joined(list);
    out_ += out_.ends_with('>') ? " >" : ">";
  }

  void expansion(const Node& node) {
    const std::size_t outer_index = std::exchange(pack_index_, 0);
    const std::size_t outer_size = std::exchange(pack_size_, kNoPack);
    const std::size_t start = out_.size();
    whole(*node.a);
    if (pack_size_ == kNoPack) {
      out_ += "...";
    } else if (pack_size_ == 0) {
      out_.resize(std::min(start, out_.size()));
    }
    const std::size_t size = pack_size_ == kNoPack ? 0 : pack_size_;
    for (std::size_t i = 1; i < size && good(); ++i) {
      out_ += ", ";
      pack_index_ = i;
      whole(*node.a);
    }
    pack_index_ = outer_index;
    pack_size_ = outer_size;
  }

  void pack(const Node& node) {
    if (pack_index_ == kNoPack) {
      joined(node.list);
      return;
    }
    if (pack_size_ == kNoPack) {
      pack_size_ = node.list.size();
    }
    if (pack_index_ < node.list.size()) {
      const std::size_t index = std::exchange(pack_index_, kNoPack);
      const std::size_t size = std::exchange(pack_size_, kNoPack);
      whole(*node.list[index]);  // packs within it are printed completely
      pack_index_ = index;
      pack_size_ = size;
    }
  }

  /// References to references collapse: what a parameter stands for may be one.
  std::string_view pointer_sign(const Node& node, const Node*& target) {
    std::string_view sign = node.text;
    target = node.a;
    for (unsigned i = 0; i < kMaxPrintDepth && sign != "*"; ++i) {
      const Node& inner = resolved(*target);
      if (inner.kind != Kind::kPointer || inner.text == "*") {
        break;
      }
      sign = inner.text == "&" ? inner.text : sign;
      target = inner.a;  // a pack within it would be printed in part, which is rare
    }
    return sign;
  }

  void function_left(const Node& node) {
    if (node.a != nullptr) {
      left(*node.a);
      out_ += ' ';
    }
  }

  void parameters(const Node& node) {
    out_ += '(';
    joined(node.list);
    out_ += ')';
    out_ += node.text;
  }

  /// A function with its parameters. In the short modes only its name.
  void encoding(const Node& node) {
    if (mode_ != DemangleMode::kFull) {
      whole(*node.a);
      return;
    }
    if (node.b != nullptr) {
      left(*node.b);
      out_ += ' ';
    }
    whole(*node.a);
    parameters(node);
    if (node.b != nullptr) {
      right(*node.b);
    }
  }

  void base_name(const Node& node) {
    const Node* at = node.a;
    for (unsigned i = 0; i < kMaxPrintDepth; ++i) {
      if (at->kind == Kind::kNested || at->kind == Kind::kLocal) {
        at = at->b;
      } else if (at->kind == Kind::kTemplate || at->kind == Kind::kTag) {
        at = at->a;
      } else {
        break;
      }
    }
    if (at->kind == Kind::kText) {
      const std::size_t colon = at->text.rfind(':');
      out_ += colon == std::string_view::npos ? at->text : at->text.substr(colon + 1);
    } else {
      whole(*at);
    }
  }

  void left(const Node& node) {
    if (!enter()) {
      return;
    }
    ++depth_;
    switch (node.kind) {
      case Kind::kText:
        out_ += node.text;
        break;
      case Kind::kNested:
      case Kind::kLocal:
        whole(*node.a);
        out_ += "::";
        whole(*node.b);
        break;
      case Kind::kTemplate:
        whole(*node.a);
        if (mode_ != DemangleMode::kSimplified) {
          // operator< <int>
          out_ += out_.ends_with('<') ? " " : "";
          arguments(node.list);
        }
        break;
      case Kind::kPack:
        pack(node);
        break;
      case Kind::kExpansion:
        expansion(node);
        break;
      case Kind::kParameter:
        if (node.a == nullptr) {
          out_ += fmt::format("auto:{}", node.number);
        } else {
          left(*node.a);
        }
        break;
      default:
        left_of_type(node);
        break;
    }
    --depth_;
  }

  void left_of_type(const Node& node) {
    const Node* target = nullptr;
    switch (node.kind) {
      case Kind::kQualified:
        left(*node.a);
        out_ += node.text;
        break;
      case Kind::kPointer: {
        const std::string_view sign = pointer_sign(node, target);
        left(*target);
        out_ += wraps(*target) ? (inner_kind(*target) == Kind::kArray ? " (" : "(") : "";
        out_ += sign;
        break;
      }
      case Kind::kMember:
        left(*node.b);
        out_ += wraps(*node.b) ? "(" : " ";
        whole(*node.a);
        out_ += "::*";
        break;
      case Kind::kFunction:
        function_left(node);
        break;
      case Kind::kArray:
        left(*node.a);
        break;
      default:
        left_of_name(node);
        break;
    }
  }

  void left_of_name(const Node& node) {
    switch (node.kind) {
      case Kind::kEncoding:
        encoding(node);
        break;
      case Kind::kPrefixed:
        out_ += node.text;
        whole(*node.a);
        break;
      case Kind::kBaseName:
        base_name(node);
        break;
      case Kind::kLambda:
        out_ += "{lambda(";
        joined(node.list);
        out_ += fmt::format(")#{}}}", node.number);
        break;
      case Kind::kUnnamedType:
        out_ += fmt::format("{{unnamed type#{}}}", node.number);
        break;
      case Kind::kTag:
        whole(*node.a);
        out_ += fmt::format("[abi:{}]", node.text);
        break;
      case Kind::kSequence:
        for (const Node* item : node.list) {
          whole(*item);
        }
        break;
      default:
        joined(node.list);
        break;
    }
  }

  /// What stands behind a declared name: int (*NAME)(char).
  void right(const Node& node) {
    if (!enter()) {
      return;
    }
    ++depth_;
    const Node* target = nullptr;
    switch (node.kind) {
      case Kind::kParameter:
        if (node.a != nullptr) {
          right(*node.a);
        }
        break;
      case Kind::kQualified:
        right(*node.a);
        break;
      case Kind::kPointer:
        pointer_sign(node, target);
        out_ += wraps(*target) ? ")" : "";
        right(*target);
        break;
      case Kind::kMember:
        out_ += wraps(*node.b) ? ")" : "";
        right(*node.b);
        break;
      case Kind::kFunction:
        parameters(node);
        if (node.a != nullptr) {
          right(*node.a);
        }
        break;
      case Kind::kArray:
        out_ += out_.ends_with(']') ? "[" : " [";
        if (node.b != nullptr) {
          whole(*node.b);
        }
        out_ += ']';
        right(*node.a);
        break;
      default:
        break;
    }
    --depth_;
  }

  DemangleMode mode_;
  std::size_t limit_;
  std::string out_;
  unsigned depth_ = 0;
  unsigned steps_ = 0;
  bool good_ = true;
  std::size_t pack_index_ = kNoPack;
  std::size_t pack_size_ = kNoPack;
};

}  // namespace

std::optional<std::string> print(const Node& root, DemangleMode mode, std::size_t limit) {
  Printer printer(mode, limit);
  printer.whole(root);
  return printer.good() ? std::optional(printer.take()) : std::nullopt;
}

}  // namespace ceems::exporter::profile::itanium
