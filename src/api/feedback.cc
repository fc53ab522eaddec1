#include "api/feedback.h"

#include <utility>

#include "api/login/cookies.h"
#include "base/log.h"

namespace ceems::api {

FeedbackBox::FeedbackBox(OpenWriter open_writer, std::string_view external_url)
    : open_writer_(std::move(open_writer)),
      origin_(external_url.empty() ? std::string() : login::origin_of(external_url)) {}

Result<> FeedbackBox::answer(const store::Feedback& feedback) {
  const MutexLock lock(mutex_);
  if (!writer_) {
    if (!open_writer_) {
      return fail(ErrorCode::kUnavailable, "this server keeps no answers");
    }
    CEEMS_TRY(writer, open_writer_());
    writer_ = std::move(writer);
  }
  auto done = writer_->answer(feedback);
  if (!done) {
    log::error("cannot write an answer about a suggestion", {{"err", done.error().message}});
  }
  return done;
}

bool FeedbackBox::is_same_site(const net::Request& request) const {
  return login::is_same_site(request, origin_);
}

}  // namespace ceems::api
