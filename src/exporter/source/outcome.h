#pragma once

#include <string>

#include "base/result.h"

namespace ceems::exporter {

/// What is new for the log about something that is tried again and again: one line when failing
/// starts and one when it ends, whatever the messages in between say (they may quote hostile input
/// that is different each time).
class Outcome {
 public:
  enum class News {
    kNone,
    kFails,      ///< the first error that is more than "no data"
    kOtherwise,  ///< no data, or one more message of what fails already: for debugging
    kSucceeds,   ///< after kFails
  };

  News note(const Result<>& result) {
    if (result) {
      message_.clear();
      const bool news = failing_;
      failing_ = false;
      return news ? News::kSucceeds : News::kNone;
    }
    const bool same = message_ == result.error().message;
    message_ = result.error().message;
    if (!failing_ && result.error().code != ErrorCode::kNoData) {
      failing_ = true;
      return News::kFails;
    }
    return same ? News::kNone : News::kOtherwise;
  }

  /// Of the last failure; empty after a success.
  [[nodiscard]] const std::string& message() const { return message_; }

 private:
  std::string message_;
  bool failing_ = false;
};

}  // namespace ceems::exporter
