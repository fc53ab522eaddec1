#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exporter/profile/symbol/demangle.h"

namespace ceems::exporter::profile::itanium {

/// A part of a C++ name. Nodes are shared: a substitution refers to one that came before.
struct Node {
  enum class Kind : std::uint8_t {
    kText,       ///< text
    kNested,     ///< a::b
    kTemplate,   ///< a<list>
    kPack,       ///< the list, or in an expansion one of it
    kExpansion,  ///< a for each element of its packs
    kParameter,  ///< a template parameter; a is its argument; null: auto, number
    kQualified,  ///< a text, such as "const"
    kPointer,    ///< a text: * & &&
    kMember,     ///< pointer to member b of class a
    kFunction,   ///< type: a (result, or null), list (parameters), text (qualifiers)
    kArray,      ///< a [b]
    kEncoding,   ///< function: a (name), b (result, or null), list (parameters), text (qualifiers)
    kLocal,      ///< b in the function a
    kPrefixed,   ///< text a: special names, destructors, conversions
    kBaseName,   ///< the last component of a, without template arguments: constructors
    kLambda,     ///< list (parameters), number
    kUnnamedType,  ///< number
    kTag,          ///< a [abi:text]
    kSequence,     ///< the list without separators
    kJoined,       ///< the list, with commas
  };

  Kind kind = Kind::kText;
  std::string_view text = {};  ///< of the mangled name, or a constant
  const Node* a = nullptr;
  const Node* b = nullptr;
  std::vector<const Node*> list = {};
  std::uint64_t number = 0;
};

/// Owns the nodes of a name. More than kMaxNodes are refused.
class Arena {
 public:
  static constexpr std::size_t kMaxNodes = 16'384;

  /// Null if there are too many.
  Node* make(Node node) {
    if (nodes_.size() == kMaxNodes) {
      return nullptr;
    }
    return &nodes_.emplace_back(std::move(node));
  }

 private:
  std::deque<Node> nodes_;
};

/// The text of a name; nothing if it is longer than `limit` or takes too many steps, because names
/// can grow exponentially by substitutions.
std::optional<std::string> print(const Node& root, DemangleMode mode, std::size_t limit);

/// Parses a mangled name that begins with _Z (Itanium C++ ABI, section 5.1). Suffixes of clones
/// such as
/// ".cold" are ignored. Null if it is malformed, or has something that is not supported.
const Node* parse(std::string_view mangled, Arena& arena);

}  // namespace ceems::exporter::profile::itanium
