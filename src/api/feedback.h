#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/result.h"
#include "net/http.h"
#include "store/feedback.h"

namespace ceems::api {

/// Stores what people say of suggestions (docs/api/insight.md). Safe for concurrent use.
class FeedbackBox {
 public:
  using OpenWriter = std::function<Result<std::unique_ptr<store::FeedbackWriter>>()>;
  /// The writer of the database is opened when it is first needed, and closed with this object.
  /// `external_url` is that of the server; may be empty.
  FeedbackBox(OpenWriter open_writer, std::string_view external_url);

  Result<> answer(const store::Feedback& feedback);
  /// Whether the request comes from a page of this server or from a program.
  [[nodiscard]] bool is_same_site(const net::Request& request) const;

 private:
  const OpenWriter open_writer_;
  const std::string origin_;
  Mutex mutex_;
  std::unique_ptr<store::FeedbackWriter> writer_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::api
