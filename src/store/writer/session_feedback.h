#pragma once

#include <memory>
#include <utility>

#include "store/feedback.h"
#include "store/sql/session.h"

namespace ceems::store {

/// The writer of answers of every database, with a session of its own.
class SessionFeedback final : public FeedbackWriter {
 public:
  explicit SessionFeedback(std::unique_ptr<Session> session) : session_(std::move(session)) {}

  Result<> answer(const Feedback& feedback) override;

 private:
  std::unique_ptr<Session> session_;
};

}  // namespace ceems::store
