#pragma once

#include <string>

#include "base/result.h"

namespace ceems::exporter {

/// Decides what to log about something that is tried again and again: one line when it starts to
/// fail and one when it works again, whatever the messages in between are (they may quote hostile
/// input that is different each time).
class Outcome {
 public:
  enum class News {
    kNone,
    kFails,      ///< the first error other than "no data"
    kOtherwise,  ///< no data, or another message while failing; for debugging
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

  /// The message of the last failure; empty after a success.
  [[nodiscard]] const std::string& message() const { return message_; }

 private:
  std::string message_;
  bool failing_ = false;
};

}  // namespace ceems::exporter
