#include "base/json_cutter.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "base/json_reader.h"
#include "base/strings.h"

namespace ceems {
namespace {

constexpr std::size_t kMaxElement = std::size_t{4} << 20U;
/// An element of this size is searched for the beginning of the next one.
constexpr std::size_t kSearchFrom = std::size_t{64} << 10U;
constexpr std::size_t kSlice = 4096;
/// No beginning of an element is longer, from the comma before it.
constexpr std::size_t kMaxBeginning = 2048;
constexpr std::size_t kMaxKey = 512;
constexpr std::string_view kBlanks = " \t\n\r";

std::string_view skip_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text;
}

/// Takes a quoted text without escapes and the colon behind it off the front; nothing for any other
/// text.
std::optional<std::string_view> take_key(std::string_view& text) {
  text = skip_blanks(text);
  const std::size_t end = text.starts_with('"') ? text.find('"', 1) : std::string_view::npos;
  if (end > kMaxKey) {  // or there is none
    return std::nullopt;
  }
  const std::string_view key = text.substr(1, end - 1);
  text = skip_blanks(text.substr(end + 1));
  if (!text.starts_with(':')) {
    return std::nullopt;
  }
  text = skip_blanks(text.substr(1));
  return key;
}

}  // namespace

std::unexpected<Error> JsonCutter::wrong(std::string_view why) const {
  return key_.empty() ? fail(ErrorCode::kParse, "{}", why)
                      : fail(ErrorCode::kParse, "{}, in or after {}", why, printable(key_, 80));
}

/// The brackets or quotes of an element do not match.
Result<> JsonCutter::damaged(std::string_view why) {
  if (!can_resume()) {
    return wrong(why);
  }
  lose(std::string::npos);
  return {};
}

void JsonCutter::lose(std::size_t end) {
  lost_ = true;
  left_out_ = false;
  end_ = end;
  searched_ = 0;
}

void JsonCutter::count_malformed(std::string_view problem) {
  if (malformed_++ == 0) {
    first_problem_ = problem;
  }
}

/// Counts the damaged element, which ends here at the latest, unless it can be taken now.
Result<> JsonCutter::leave_out(std::size_t end) {
  if (left_out_) {
    return {};
  }
  left_out_ = true;
  std::string_view text = std::string_view(text_).substr(0, end);
  if (end_ < end && text.find_first_not_of(" \t\n\r,]}", end_) == std::string_view::npos) {
    text = text.substr(0, end_);
  }
  if (keyed_ && !has_key_) {
    count_malformed("a member without a name");
    return {};
  }
  auto done = take_({.member = split_member_,
                     .key = keyed_ ? key_ : std::string_view(),
                     .json = text,
                     .damaged = true});
  if (!done && done.error().code == ErrorCode::kParse) {
    count_malformed(done.error().message);
    return {};
  }
  taken_ += done ? 1 : 0;
  return done;
}

bool JsonCutter::starts_element(std::string_view text) const {
  if (keyed_) {
    const auto key = take_key(text);
    return key && text.starts_with('{') && is_key_(*key);
  }
  if (!text.starts_with('{')) {
    return false;
  }
  text.remove_prefix(1);
  return take_key(text) == first_key_;
}

bool JsonCutter::starts_member(std::string_view text) const {
  const auto key = take_key(text);
  return key && !keyed_ && std::ranges::find(members_, *key) != members_.end();
}

std::optional<JsonCutter::Place> JsonCutter::find_place(std::size_t from) const {
  const std::string_view text = text_;
  for (std::size_t at = text.find(',', from); at != std::string_view::npos;
       at = text.find(',', at + 1)) {
    const std::string_view rest = skip_blanks(text.substr(at + 1));
    const bool member = starts_member(rest) && trim(text.substr(0, at)).ends_with(']');
    if (member || starts_element(rest)) {
      return Place{.end = at, .resume = text.size() - rest.size(), .member = member};
    }
  }
  return std::nullopt;
}

/// Looks for the next element in what followed a damaged one, and resumes there.
Result<> JsonCutter::search() {
  const auto place = find_place(searched_);
  if (!place) {
    if (text_.size() > kMaxElement) {
      CEEMS_TRY(leave_out(text_.size()));
      text_.erase(0, text_.size() - kMaxBeginning);
      searched_ = 0;
      return {};
    }
    searched_ = std::max(searched_, text_.size() - std::min(text_.size(), kMaxBeginning));
    return {};
  }
  CEEMS_TRY(leave_out(place->end));
  again_ = text_.substr(place->resume);
  text_.clear();
  lost_ = in_string_ = escaped_ = ended_ = has_key_ = false;
  member_ = split_member_;
  has_member_ = inside_ = !place->member;
  open_ = place->member ? "{" : keyed_ ? "{{" : "{[";
  return {};
}

void JsonCutter::learn_first_key() {
  std::string_view text = text_;
  if (keyed_ || !first_key_.empty() || !text.starts_with('{')) {
    return;
  }
  text.remove_prefix(1);
  if (const auto key = take_key(text); key && has_only_words(*key, "_-.")) {
    first_key_ = *key;
  }
}

Result<> JsonCutter::end_element() {
  text_.resize(text_.find_last_not_of(kBlanks) + 1);
  if (text_.empty()) {
    return {};
  }
  if (!has_member_ || (open_.size() == 2 && keyed_ && !has_key_)) {
    return damaged("a member without a name");
  }
  if (open_.size() == 2 && keyed_ && can_resume() && find_place(0)) {
    lose(std::string::npos);  // a bracket is missing, and the next elements are in this one
    return {};
  }
  if (open_.size() == 2) {
    learn_first_key();
    auto done =
        take_({.member = member_, .key = keyed_ ? key_ : std::string_view(), .json = text_});
    std::string valid;
    if (!done && done.error().code == ErrorCode::kParse && can_resume() &&
        !append_json(valid, text_)) {
      lose(text_.size());
      return {};
    }
    if (!done && done.error().code == ErrorCode::kParse) {
      count_malformed(done.error().message);
      done = {};
    } else if (done) {
      ++taken_;
    }
    has_key_ = false;
    text_.clear();
    return done;
  }
  text_.clear();
  return {};
}

/// Goes on in the last member that was split.
void JsonCutter::go_on() {
  open_ = keyed_ ? "{{" : "{[";
  has_member_ = inside_ = true;
}

Result<> JsonCutter::open(char c) {
  if (c == '{' && open_.size() == 1 && !has_member_ && text_.empty() && can_resume() && !keyed_) {
    go_on();  // a bracket too many has closed the list
    member_ = split_member_;
  }
  open_ += c;
  if (open_.size() == 1) {
    return c == '{' ? Result<>() : wrong("expected a JSON object");
  }
  if (open_.size() == 2 && has_member_ && text_.empty() &&
      std::ranges::find(members_, member_) != members_.end()) {
    inside_ = split_ = true;
    keyed_ = c == '{';
    split_member_ = member_;
    key_.clear();
    first_key_.clear();
    if (!keyed_) {
      lists_.insert(member_);
    }
    return {};
  }
  keep(c);
  next_search_ = open_.size() == 3 ? kSearchFrom : next_search_;
  return {};
}

Result<> JsonCutter::close(char c) {
  const bool matches = !open_.empty() && open_.back() == (c == '}' ? '{' : '[');
  if (!matches) {
    keep(c);
    return damaged("the brackets do not match");
  }
  if (!between()) {
    open_.pop_back();
    keep(c);
    return {};
  }
  CEEMS_TRY(end_element());
  if (lost_) {
    keep(c);
    return {};
  }
  open_.pop_back();
  if (open_.size() == 1) {
    inside_ = false;
  }
  ended_ = open_.empty();
  return {};
}

Result<> JsonCutter::add_character(char c) {
  if (in_string_) {
    if (!escaped_ && c == '"') {
      in_string_ = false;
    }
    escaped_ = !escaped_ && c == '\\';
    keep(c);
    return {};
  }
  if (kBlanks.find(c) != std::string_view::npos) {
    if (!text_.empty()) {
      keep(c);
    }
    return {};
  }
  began_ = true;
  if (ended_) {
    keep(c);
    return damaged("text after the JSON document");
  }
  if (open_.empty() && c != '{' && c != '[') {
    return wrong("expected a JSON object");
  }
  switch (c) {
    case '"':
      in_string_ = true;
      keep(c);
      return {};
    case '{':
    case '[':
      return open(c);
    case '}':
    case ']':
      return close(c);
    case ',':
      if (between()) {
        CEEMS_TRY(end_element());
        if (lost_) {
          keep(c);
        } else {
          has_member_ = has_member_ && open_.size() == 2;
        }
        return {};
      }
      keep(c);
      return {};
    case ':': {
      const bool top = open_.size() == 1 && !has_member_;
      if (top || (open_.size() == 2 && inside_ && keyed_ && !has_key_)) {
        text_.resize(text_.find_last_not_of(kBlanks) + 1);
        const std::string_view quoted = text_;
        (top ? member_ : key_) =
            quoted.size() < 2 ? std::string() : std::string(quoted.substr(1, quoted.size() - 2));
        (top ? has_member_ : has_key_) = true;
        text_.clear();
        if (top && can_resume() && keyed_ && is_key_(member_)) {
          go_on();  // a bracket too many has closed the member
          key_ = std::exchange(member_, split_member_);
          has_key_ = true;
        }
        return {};
      }
      keep(c);
      return {};
    }
    default:
      keep(c);
      return {};
  }
}

/// Takes some of the text off the front.
Result<> JsonCutter::step(std::string_view& rest) {
  if (lost_) {
    const std::string_view slice = rest.substr(0, kSlice);
    text_ += slice;
    rest.remove_prefix(slice.size());
    return search();
  }
  if (in_string_ && !escaped_) {
    const std::string_view plain =
        rest.substr(0, std::min({rest.find_first_of("\"\\"), kSearchFrom, rest.size()}));
    text_ += plain;
    rest.remove_prefix(plain.size());
  }
  if (!rest.empty()) {
    CEEMS_TRY(add_character(rest.front()));
    rest.remove_prefix(1);
  }
  const bool long_element = inside_ && open_.size() > 2 && text_.size() >= next_search_;
  if (!lost_ && long_element && can_resume()) {
    next_search_ *= 2;
    if (find_place(0)) {
      lose(std::string::npos);
      return search();
    }
  }
  if (!lost_ && text_.size() > kMaxElement) {
    return damaged("an element of more than 4 MiB");
  }
  return {};
}

/// Reads the text again that was passed over before the splitting could resume.
Result<> JsonCutter::read_again() {
  struct Text {
    std::string text;
    std::size_t at = 0;  // up to where it has been read
  };
  // What is to be read before the rest of the text below it, which is never copied.
  std::vector<Text> texts;
  while (true) {
    if (!again_.empty()) {
      texts.push_back({.text = std::exchange(again_, {})});
    }
    while (!texts.empty() && texts.back().at == texts.back().text.size()) {
      texts.pop_back();
    }
    if (texts.empty()) {
      return {};
    }
    Text& top = texts.back();
    std::string_view rest = std::string_view(top.text).substr(top.at);
    const std::size_t left = rest.size();
    CEEMS_TRY(step(rest));
    top.at += left - rest.size();
  }
}

Result<> JsonCutter::add(std::string_view part) {
  while (!part.empty()) {
    CEEMS_TRY(step(part));
    CEEMS_TRY(read_again());
  }
  return {};
}

/// Whether the text ends as a document does, behind a damaged element.
bool JsonCutter::closes() const {
  const bool known_end = end_ < text_.size();
  std::size_t brackets = 0;
  for (std::string_view rest = trim(std::string_view(text_).substr(known_end ? end_ : 0));
       rest.ends_with('}') || rest.ends_with(']'); rest = trim(rest.substr(0, rest.size() - 1))) {
    brackets += 1;
  }
  return trim(text_).ends_with('}') && brackets >= (keyed_ && !known_end ? 3 : 2);
}

Result<> JsonCutter::finish() {
  while (!ended_ || lost_) {
    if (!lost_) {
      if (!can_resume() || open_.size() < 2) {
        return wrong("the JSON document is incomplete");
      }
      lose(std::string::npos);
    }
    CEEMS_TRY(search());
    if (lost_) {
      if (!closes()) {
        return wrong("the JSON document is incomplete");
      }
      return leave_out(text_.size());
    }
    CEEMS_TRY(read_again());
  }
  return {};
}

Result<MendedJson> mend_json(std::string_view text, const std::vector<std::string>& members) {
  MendedJson mended;
  std::string lists = "{";
  std::string member;
  std::set<std::string> written;
  bool keyed = false;
  const auto end_member = [&] { lists += member.empty() ? "" : keyed ? "}" : "]"; };
  JsonCutter cutter(members, [&](const JsonCutter::Element& element) -> Result<> {
    std::string value;
    if (!append_json(value, element.json)) {
      return fail(ErrorCode::kParse, "not valid JSON: '{}'", printable(element.json, 80));
    }
    if (element.member != member) {
      end_member();
      lists += member.empty() ? "" : ",";
      member = element.member;
      keyed = !element.key.empty();
      append_json_string(lists, member);
      written.insert(member);
      lists += keyed ? ":{" : ":[";
    } else {
      lists += ',';
    }
    if (keyed) {
      append_json_string(lists, element.key);
      lists += ':';
    }
    lists += value;
    return {};
  });
  CEEMS_TRY(cutter.add(text));
  CEEMS_TRY(cutter.finish());
  end_member();
  for (const std::string& name : members) {
    if (cutter.has_list(name) && !written.contains(name)) {
      lists += written.empty() ? "" : ",";
      append_json_string(lists, name);
      lists += ":[]";
      written.insert(name);
    }
  }
  mended.text = lists + "}";
  mended.left_out = cutter.malformed();
  mended.first_problem = cutter.first_problem();
  return mended;
}

}  // namespace ceems
