#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ceems {

/// Splits a JSON document while it arrives: an object, of which some members are lists or objects
/// of many elements. Each element of these is passed on as soon as it is complete; other members
/// are passed over. Holds one element at a time, of at most 4 MiB. Tracks only brackets and quotes;
/// whether an element is valid JSON is left to its parser.
///
/// A damaged element costs that element only: if it is not taken (kParse), if its brackets do not
/// match, or if the text runs on, the splitting resumes at the next place where an element can
/// begin. In an object, that is a key that `is_key` accepts, before an object. In a list, it is an
/// object whose first member is named as in the elements before. Without such a place to look for,
/// a document whose brackets do not match is an error.
class JsonCutter {
 public:
  struct Element {
    std::string_view member;  ///< the one that it belongs to
    std::string_view key;     ///< empty in a list
    std::string_view json;
    bool damaged = false;  ///< it was not taken before; what was behind it has been cut off
  };
  /// kParse leaves the element out; any other error stops the splitting.
  using Take = std::function<Result<>(const Element& element)>;
  /// Whether only an element can have this key.
  using IsKey = std::function<bool(std::string_view key)>;

  /// `members` are the names of the members to split.
  JsonCutter(std::vector<std::string> members, Take take, IsKey is_key = {})
      : members_(std::move(members)), take_(std::move(take)), is_key_(std::move(is_key)) {}

  /// kParse, or the error that Take returned. The part may end anywhere.
  Result<> add(std::string_view part);
  /// Must be called after the last part. kParse if the document is incomplete.
  Result<> finish();
  /// Whether there was any text.
  [[nodiscard]] bool began() const { return began_; }
  /// Whether this member was there and a list.
  [[nodiscard]] bool has_list(std::string_view member) const { return lists_.contains(member); }
  [[nodiscard]] std::size_t taken() const { return taken_; }          ///< elements
  [[nodiscard]] std::size_t malformed() const { return malformed_; }  ///< elements left out
  [[nodiscard]] const std::string& first_problem() const { return first_problem_; }

 private:
  struct Place {
    std::size_t end = 0;     // of the damaged element
    std::size_t resume = 0;  // where the next one, or the next member, begins
    bool member = false;
  };

  Result<> step(std::string_view& rest);
  Result<> add_character(char c);
  Result<> open(char c);
  Result<> close(char c);
  Result<> end_element();
  Result<> read_again();
  void go_on();
  void keep(char c) { text_ += c; }
  Result<> damaged(std::string_view why);
  void lose(std::size_t end);
  Result<> search();
  [[nodiscard]] std::optional<Place> find_place(std::size_t from) const;
  [[nodiscard]] bool starts_element(std::string_view text) const;
  [[nodiscard]] bool starts_member(std::string_view text) const;
  Result<> leave_out(std::size_t end);
  void count_malformed(std::string_view problem);
  void learn_first_key();
  [[nodiscard]] bool can_resume() const {
    return split_ && (keyed_ ? bool(is_key_) : !first_key_.empty());
  }
  [[nodiscard]] bool closes() const;
  [[nodiscard]] std::unexpected<Error> wrong(std::string_view why) const;
  [[nodiscard]] bool between() const { return open_.size() == 1 || (open_.size() == 2 && inside_); }

  const std::vector<std::string> members_;
  const Take take_;
  const IsKey is_key_;
  std::set<std::string, std::less<>> lists_;  // the lists among `members_`
  std::string member_;                        // key of the current member at the top
  std::string key_;                           // of the current element
  std::string text_;                          // of the current key or value so far
  std::string open_;                          // the brackets
  bool has_member_ = false;
  bool has_key_ = false;
  bool inside_ = false;  // in a member of `members_`
  bool keyed_ = false;   // which is an object
  bool in_string_ = false;
  bool escaped_ = false;
  bool began_ = false;
  bool ended_ = false;

  // What helps when an element is damaged.
  bool split_ = false;           // a member of `members_` has begun
  std::string split_member_;     // the last one
  std::string first_key_;        // with which the elements of the list begin
  std::size_t next_search_ = 0;  // in an element of this size
  bool lost_ = false;            // `text_` has a damaged element and what came after it
  bool left_out_ = false;        // that element has been counted
  std::size_t end_ = 0;          // of that element, as far as known
  std::size_t searched_ = 0;     // `text_` up to here
  std::string again_;            // to be read again
  std::size_t taken_ = 0;
  std::size_t malformed_ = 0;
  std::string first_problem_;
};

/// Reads a whole document that is not valid JSON once more and returns one that has the elements of
/// these members that are, and nothing else. A lone surrogate in a text becomes U+FFFD.
struct MendedJson {
  std::string text;
  std::size_t left_out = 0;
  std::string first_problem;
};
/// kParse if the document cannot be split.
Result<MendedJson> mend_json(std::string_view text, const std::vector<std::string>& members);

}  // namespace ceems
