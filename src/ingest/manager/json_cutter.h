#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::ingest {

/// Splits a JSON document while it arrives: an object, of which some members are lists or objects
/// of many elements. Each element of these is passed on as soon as it is complete; other members
/// are passed over. Holds one element at a time, of at most 4 MiB. Tracks only brackets and quotes;
/// whether an element is valid JSON is left to its parser.
class JsonCutter {
 public:
  struct Element {
    std::string_view member;  ///< the one that it belongs to
    std::string_view key;     ///< empty in a list
    std::string_view json;
  };
  /// An error stops the splitting.
  using Take = std::function<Result<>(const Element& element)>;

  /// `members` are the names of the members to split.
  JsonCutter(std::vector<std::string> members, Take take)
      : members_(std::move(members)), take_(std::move(take)) {}

  /// kParse, or the error that Take returned. The part may end anywhere.
  Result<> add(std::string_view part);
  /// kParse if the document is incomplete.
  [[nodiscard]] Result<> finish() const;
  /// Whether there was any text.
  [[nodiscard]] bool began() const { return began_; }
  /// Whether this member was there and a list.
  [[nodiscard]] bool has_list(std::string_view member) const { return lists_.contains(member); }

 private:
  Result<> add_character(char c);
  Result<> open(char c);
  Result<> close(char c);
  Result<> end_element();
  Result<> keep(char c);
  [[nodiscard]] std::unexpected<Error> wrong(std::string_view why) const;
  [[nodiscard]] bool between() const { return depth_ == 1 || (depth_ == 2 && inside_); }

  const std::vector<std::string> members_;
  const Take take_;
  std::set<std::string, std::less<>> lists_;  // the lists among `members_`
  std::string member_;                        // key of the current member at the top
  std::string key_;                           // of the current element
  std::string text_;                          // of the current key or value so far
  bool has_member_ = false;
  bool has_key_ = false;
  bool inside_ = false;  // in a member of `members_`
  bool keyed_ = false;   // which is an object
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
  bool began_ = false;
  bool ended_ = false;
};

}  // namespace ceems::ingest
